#include "keep_memory.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <typeinfo>
#include <vector>

#include "activation.h"
#include "tensor_memory.h"
#include "tensorflow/core/common_runtime/device_factory.h"
#include "tensorflow/core/common_runtime/threadpool_device.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/lib/strings/strcat.h"
#include "tensorflow/core/public/session_options.h"

namespace autofuse {

using tensorflow::Allocator;
using tensorflow::AllocatorAttributes;
using tensorflow::Device;
using tensorflow::Status;
using tensorflow::ThreadPoolDevice;

namespace {

// Small tensors, and large ones where the system has no block, come from TensorFlow's own allocator.
class KeepingAllocator : public tensorflow::AllocatorWrapper {
 public:
  using AllocatorWrapper::AllocatorWrapper;

  void* AllocateRaw(size_t alignment, size_t bytes) override {
    if (bytes >= TensorMemory::kLeast && alignment <= TensorMemory::kPage) {
      void* address = TensorMemory::Global().Take(bytes);
      if (address != nullptr) return address;
    }
    return wrapped()->AllocateRaw(alignment, bytes);
  }

  void* AllocateRaw(size_t alignment, size_t bytes,
                    const tensorflow::AllocationAttributes& attributes) override {
    return AllocateRaw(alignment, bytes);
  }

  void DeallocateRaw(void* address) override {
    if (!TensorMemory::Global().Give(address)) wrapped()->DeallocateRaw(address);
  }

  size_t AllocatedSizeSlow(const void* address) const override {
    const size_t size = TensorMemory::Global().SizeOf(address);
    return size != 0 ? size : wrapped()->AllocatedSizeSlow(address);
  }
};

// TensorFlow's allocator of tensors on the CPU is one for the process, and never destroyed. Neither is this:
// tensors outlive their session's devices.
KeepingAllocator* Keeping(Allocator* base) {
  static KeepingAllocator* keeping = new KeepingAllocator(base);
  return keeping;
}

std::atomic<int> devices{0};

// A session's CPU device in the place of TensorFlow's, which goes on to say where memory of other kinds (for
// transfers to a GPU) comes from.
class KeepingDevice : public ThreadPoolDevice {
 public:
  KeepingDevice(const tensorflow::SessionOptions& options, Allocator* base, std::unique_ptr<Device> original)
      : ThreadPoolDevice(options, original->name(),
                         tensorflow::Bytes(original->attributes().memory_limit()),
                         original->attributes().locality(), base),
        base_(base),
        keeping_(Keeping(base)),
        original_(std::move(original)) {
    devices.fetch_add(1);
  }

  ~KeepingDevice() override {
    Keep(0);
    devices.fetch_sub(1);
  }

  void Keep(tensorflow::uint64 limit) {
    if (limit > 0) TensorMemory::Global().SetLimit(limit);
    if (keeps_.exchange(limit > 0) == (limit > 0)) return;
    if (limit > 0) {
      TensorMemory::Global().Begin();
    } else {
      TensorMemory::Global().End();
    }
  }

  Allocator* GetAllocator(AllocatorAttributes attributes) override {
    Allocator* allocator = original_->GetAllocator(attributes);
    return allocator == base_ && keeps_.load(std::memory_order_relaxed) ? keeping_ : allocator;
  }

  // Whether both work in the same threads, as devices of a process do.
  bool SharesThreads() {
    return tensorflow_cpu_worker_threads() == original_->tensorflow_cpu_worker_threads();
  }

  std::unique_ptr<Device> TakeOriginal() { return std::move(original_); }

 private:
  Allocator* const base_;
  Allocator* const keeping_;
  std::unique_ptr<Device> original_;
  std::atomic<bool> keeps_{false};
};

// Devices of which all that a KeepingDevice does not inherit is which allocator they name. TensorFlow's
// packages for GPUs, of which the usual package is one, have a class of their own that is in no header.
bool IsPlainCpu(const Device& device) {
  return typeid(device) == typeid(ThreadPoolDevice) ||
         std::string(typeid(device).name()) == "N10tensorflow22GPUCompatibleCPUDeviceE";
}

// Makes no devices: TensorFlow calls it with those that the CPU's factory has made for a session.
class KeepingFactory : public tensorflow::DeviceFactory {
 public:
  Status ListPhysicalDevices(std::vector<tensorflow::string>* names) override { return Status::OK(); }

  Status CreateDevices(const tensorflow::SessionOptions& options, const tensorflow::string& name_prefix,
                       std::vector<std::unique_ptr<Device>>* made) override {
    PassContext context;
    if (!FindEntry(options.config, &context) || !ChosenMalloc().empty()) return Status::OK();
    for (std::unique_ptr<Device>& device : *made) {
      if (!IsPlainCpu(*device)) continue;
      Allocator* base = device->GetAllocator(AllocatorAttributes());
      // Not malloc, someone counts what it allocates, or one of several (a NUMA node's).
      if (base->Name() != "cpu" || base->TracksAllocationSizes()) continue;
      if (Keeping(base)->wrapped() != base) continue;
      std::unique_ptr<KeepingDevice> keeping(new KeepingDevice(options, base, std::move(device)));
      if (keeping->SharesThreads()) {
        device = std::move(keeping);
      } else {
        device = keeping->TakeOriginal();
      }
    }
    return Status::OK();
  }
};

tensorflow::dfactory::Registrar<KeepingFactory> registered("AUTOFUSE_MEMORY", 0);

// The library that a function comes from, by its name without the folder.
std::string LibraryOf(const char* function) {
  Dl_info info;
  void* address = dlsym(RTLD_DEFAULT, function);
  if (address == nullptr || dladdr(address, &info) == 0 || info.dli_fname == nullptr) return "";
  const std::string path = info.dli_fname;
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

tensorflow::string ChosenMalloc() {
  for (const char* name : {"MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_",
                           "MALLOC_MMAP_MAX_", "MALLOC_CHECK_", "MALLOC_PERTURB_"}) {
    if (getenv(name) != nullptr) return name;
  }
  const char* tunables = getenv("GLIBC_TUNABLES");
  if (tunables != nullptr && std::string(tunables).find("glibc.malloc.") != std::string::npos) {
    return "GLIBC_TUNABLES";
  }
  for (const char* function : {"malloc", "posix_memalign"}) {
    const std::string library = LibraryOf(function);
    if (library.compare(0, 5, "libc.") != 0 && library.compare(0, 5, "libc-") != 0) {
      return tensorflow::strings::StrCat(function, " of ", library);
    }
  }
  return "";
}

int KeepingDevices() { return devices; }

void KeepMemory(const tensorflow::DeviceSet& devices, tensorflow::uint64 limit) {
  for (Device* device : devices.devices()) {
    KeepingDevice* keeping = dynamic_cast<KeepingDevice*>(device);
    if (keeping != nullptr) keeping->Keep(limit);
  }
}

}  // namespace autofuse
