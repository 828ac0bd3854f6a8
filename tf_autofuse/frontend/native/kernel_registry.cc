#include "kernel_registry.h"

#include <dlfcn.h>
#include <elf.h>

#include <cstring>
#include <fstream>
#include <set>

#include "kernel_meta.h"
#include "tensorflow/core/lib/core/errors.h"
#include "warning.h"

namespace autofuse {

using tensorflow::Status;
using tensorflow::errors::FailedPrecondition;
using tensorflow::errors::NotFound;

namespace {

constexpr tensorflow::int64 kAbiVersion = 1;
constexpr tensorflow::int64 kMaxTilingBytes = 1 << 20;

template <typename Function>
Status Symbol(void* library, const std::string& path, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  if (*function != nullptr) return Status::OK();
  return NotFound("the kernel library ", path, " has no ", name, "; delete it so that it is built again");
}

// Loading a file that ends before its segments do is no error of dlopen but a bus error, so look first.
Status CheckComplete(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return NotFound("the kernel library can't be loaded: no file ", path);
  const tensorflow::uint64 size = file.tellg();
  const auto broken = [&path](const char* how) {
    return FailedPrecondition("the kernel library ", path, " ", how, "; delete it so that it is built again");
  };
  Elf64_Ehdr header;
  file.seekg(0);
  if (!file.read(reinterpret_cast<char*>(&header), sizeof(header)) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_phentsize != sizeof(Elf64_Phdr)) {
    return broken("is no shared library");
  }
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    file.seekg(header.e_phoff + i * sizeof(segment));
    if (!file.read(reinterpret_cast<char*>(&segment), sizeof(segment)) || segment.p_offset > size ||
        segment.p_filesz > size - segment.p_offset) {
      return broken("is truncated");
    }
  }
  return Status::OK();
}

Status CheckMeta(const KernelMeta& meta) {
  if (meta.input_ranks.size() != meta.input_dtypes.size() ||
      meta.output_ranks.size() != meta.output_dtypes.size() || meta.output_ranks.empty() ||
      meta.size_count < 0 || meta.machine.core_num == 0 ||
      (!meta.device_binary.empty() && meta.unread.size() != meta.input_dtypes.size())) {
    return FailedPrecondition("the description of kernel ", meta.name, " contradicts itself");
  }
  for (const auto& types : {meta.input_dtypes, meta.output_dtypes}) {
    for (auto type : types) {
      if (!tensorflow::DataTypeCanUseMemcpy(type)) {
        return FailedPrecondition("kernel ", meta.name, " handles ", tensorflow::DataTypeString(type),
                                  ", which is no plain type");
      }
    }
  }
  for (const auto& pair : meta.forward) {
    if (pair.first < 0 || pair.first >= static_cast<int>(meta.input_ranks.size()) || pair.second < 0 ||
        pair.second >= static_cast<int>(meta.output_ranks.size())) {
      return FailedPrecondition("kernel ", meta.name, " forwards input ", pair.first, " to output ",
                                pair.second);
    }
  }
  return Status::OK();
}

}  // namespace

bool KernelMeta::operator==(const KernelMeta& other) const {
  return library == other.library && name == other.name && input_ranks == other.input_ranks &&
         output_ranks == other.output_ranks && input_dtypes == other.input_dtypes &&
         output_dtypes == other.output_dtypes && size_count == other.size_count && forward == other.forward &&
         small_bytes == other.small_bytes && machine.core_num == other.machine.core_num &&
         machine.ub_size == other.machine.ub_size && device_binary == other.device_binary &&
         device_entry == other.device_entry && all_at_once == other.all_at_once && unread == other.unread;
}

Status LoadKernel(const KernelMeta& meta, std::unique_ptr<Kernel>* kernel) {
  TF_RETURN_IF_ERROR(CheckMeta(meta));
  TF_RETURN_IF_ERROR(CheckComplete(meta.library));
  void* library = dlopen(meta.library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    return NotFound("the kernel library can't be loaded: ", reason == nullptr ? meta.library.c_str() : reason,
                    "; delete it so that it is built again");
  }
  std::unique_ptr<Kernel> loaded(new Kernel);
  loaded->meta = meta;
  AutofuseAbiVersion version = nullptr;
  AutofuseTilingSize tiling_size = nullptr;
  TF_RETURN_IF_ERROR(Symbol(library, meta.library, "autofuse_abi_version", &version));
  if (version() != kAbiVersion) {
    return FailedPrecondition("the kernel library ", meta.library, " has ABI version ", version(), ", not ",
                              kAbiVersion, "; clear the kernel cache");
  }
  TF_RETURN_IF_ERROR(Symbol(library, meta.library, "autofuse_shape", &loaded->shape));
  TF_RETURN_IF_ERROR(Symbol(library, meta.library, "autofuse_tiling_size", &tiling_size));
  TF_RETURN_IF_ERROR(Symbol(library, meta.library, "autofuse_tiling", &loaded->tiling));
  if (meta.device_binary.empty()) {
    TF_RETURN_IF_ERROR(Symbol(library, meta.library, "autofuse_run_blocks", &loaded->run_blocks));
  } else {
    TF_RETURN_IF_ERROR(Symbol(library, meta.library, "autofuse_tiling_name", &loaded->tiling_name));
    TF_RETURN_IF_ERROR(Symbol(library, meta.library, "autofuse_tiling_value", &loaded->tiling_value));
  }
  loaded->tiling_size = tiling_size();
  if (loaded->tiling_size < 0 || loaded->tiling_size > kMaxTilingBytes) {
    return FailedPrecondition("the kernel library ", meta.library, " wants ", loaded->tiling_size,
                              " bytes of tiling data");
  }
  loaded->check_text = reinterpret_cast<AutofuseCheckText>(dlsym(library, "autofuse_check_text"));
  const auto needs_all =
      reinterpret_cast<AutofuseNeedsAllBlocks>(dlsym(library, "autofuse_needs_all_blocks"));
  loaded->needs_all_blocks = needs_all != nullptr && needs_all() != 0;
  loaded->phases = reinterpret_cast<AutofusePhases>(dlsym(library, "autofuse_phases"));
  loaded->block_cost = reinterpret_cast<AutofuseBlockCost>(dlsym(library, "autofuse_block_cost"));
  *kernel = std::move(loaded);
  return Status::OK();
}

KernelRegistry& KernelRegistry::Global() {
  static KernelRegistry* registry = new KernelRegistry;  // outlives every session
  return *registry;
}

Kernel* KernelRegistry::Add(const std::string& key, std::unique_ptr<Kernel> kernel) {
  std::lock_guard<std::mutex> lock(mu_);
  Kernel* added = kernels_[key] = kernel.release();
  generation_.fetch_add(1, std::memory_order_release);
  return added;
}

Kernel* KernelRegistry::Find(const std::string& key) {
  std::lock_guard<std::mutex> lock(mu_);
  const auto found = kernels_.find(key);
  return found == kernels_.end() ? nullptr : found->second;
}

bool KernelRegistry::Disable(const std::string& key) {
  Kernel* kernel = Find(key);
  if (kernel != nullptr) kernel->disabled = true;
  return kernel != nullptr;
}

void KernelRegistry::Remove(const std::string& key) {
  std::lock_guard<std::mutex> lock(mu_);
  kernels_.erase(key);
}

std::shared_ptr<KernelStats> KernelRegistry::Stats(const std::string& key) {
  std::lock_guard<std::mutex> lock(mu_);
  auto& stats = stats_[key];
  if (stats == nullptr) stats = std::make_shared<KernelStats>();
  return stats;
}

std::map<std::string, std::shared_ptr<KernelStats>> KernelRegistry::AllStats() {
  std::lock_guard<std::mutex> lock(mu_);
  return stats_;
}

void KernelRegistry::ResetStats() {
  for (auto& entry : AllStats()) {
    KernelStats& stats = *entry.second;
    stats.calls = stats.plans = stats.fallbacks = stats.errors = stats.run_ns = 0;
    std::lock_guard<std::mutex> lock(stats.mu);
    stats.last_dims.clear();
    stats.last_block_dim = 0;
    stats.refused.clear();
  }
}

Status Register(const std::string& key, const KernelMeta& meta) {
  const Kernel* present = KernelRegistry::Global().Find(key);
  if (present != nullptr && !present->disabled.load(std::memory_order_relaxed) && present->meta == meta) {
    return Status::OK();
  }
  std::unique_ptr<Kernel> kernel;
  TF_RETURN_IF_ERROR(LoadKernel(meta, &kernel));
  KernelRegistry::Global().Add(key, std::move(kernel));
  return Status::OK();
}

Kernel* FindOrResolve(const std::string& key, const std::string& asc_graph) {
  Kernel* present = KernelRegistry::Global().Find(key);
  if (present != nullptr) return present;
  KernelMeta meta;
  std::unique_ptr<Kernel> kernel;
  bool found = false;
  Status status = ResolveKernel(key, asc_graph, &found, &meta);
  if (status.ok() && found) status = LoadKernel(meta, &kernel);
  if (!status.ok()) {
    static std::mutex mu;
    static auto* warned = new std::set<std::string>;
    std::lock_guard<std::mutex> lock(mu);
    if (warned->insert(key).second) {
      Warn("no kernel for " + key + ", its original ops run: " + status.error_message());
    }
  }
  return kernel == nullptr ? nullptr : KernelRegistry::Global().Add(key, std::move(kernel));
}

}  // namespace autofuse
