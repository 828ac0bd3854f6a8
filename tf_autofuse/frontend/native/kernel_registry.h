// The kernels of this process by key, and what is counted about them.
//
// A kernel gets here by register_kernel from Python (also while sessions run: a node that had none looks
// again when the registry's generation has changed) or by the resolver, which is asked once when a node is
// made. Kernels and their libraries stay until the process ends, so that whoever has found one may keep it.
#ifndef TF_AUTOFUSE_NATIVE_KERNEL_REGISTRY_H_
#define TF_AUTOFUSE_NATIVE_KERNEL_REGISTRY_H_

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "kernel_abi.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/lib/core/status.h"
#include "tensorflow/core/lib/gtl/inlined_vector.h"

namespace autofuse {

using Dims = tensorflow::gtl::InlinedVector<tensorflow::int64, 16>;

constexpr int kMaxPhases = 64;

struct KernelMeta {
  std::string library;  // path
  std::string name;
  std::vector<int> input_ranks;
  std::vector<int> output_ranks;
  tensorflow::DataTypeVector input_dtypes;
  tensorflow::DataTypeVector output_dtypes;
  int size_count = 0;
  std::vector<std::pair<int, int>> forward;  // (input, output): the output may take the input's buffer
  tensorflow::int64 small_bytes = 65536;  // up to so many bytes of GM traffic the calling thread runs alone
  AutofuseMachine machine = {0, 0, 0};     // what the tiling function plans for
  // Of a kernel that runs on the NPU: the file of its device binary, in which `<device_entry>_<tiling key>`
  // are its functions; empty: it runs on the host. Its library has shapes and tiling only.
  std::string device_binary;
  std::string device_entry;
  bool all_at_once = false;   // the blocks wait for each other
  std::vector<char> unread;   // by input: nonzero where the kernel does not read its values

  bool operator==(const KernelMeta& other) const;
};

// Counters of all nodes that share a kernel key.
struct KernelStats {
  std::atomic<tensorflow::int64> calls{0};      // by the kernel or by the fallback
  std::atomic<tensorflow::int64> plans{0};      // distinct shapes planned
  std::atomic<tensorflow::int64> fallbacks{0};  // calls that ran the original ops
  std::atomic<tensorflow::int64> errors{0};     // kernels that broke a rule
  std::atomic<tensorflow::int64> run_ns{0};     // in run_blocks, when timing is on
  std::mutex mu;                                // guards the rest
  Dims last_dims;
  tensorflow::uint32 last_block_dim = 0;
  std::string refused;  // why the kernel was last not for a node's shapes
};

struct Kernel {
  KernelMeta meta;
  AutofuseShape shape = nullptr;
  AutofuseCheckText check_text = nullptr;  // may be missing
  AutofuseTiling tiling = nullptr;
  AutofuseRunBlocks run_blocks = nullptr;  // null: it runs on the NPU
  AutofuseTilingName tiling_name = nullptr;    // may be missing
  AutofuseTilingValue tiling_value = nullptr;  // may be missing
  AutofusePhases phases = nullptr;         // may be missing
  AutofuseBlockCost block_cost = nullptr;  // may be missing
  tensorflow::int64 tiling_size = 0;
  bool needs_all_blocks = false;
  bool on_device() const { return run_blocks == nullptr; }
  std::atomic<bool> disabled{false};
  mutable std::atomic<bool> warned{false};
};

// Loads meta.library and checks it. Errors: NotFound (no such file, a symbol is missing), FailedPrecondition
// (another ABI version, or numbers that make no sense).
tensorflow::Status LoadKernel(const KernelMeta& meta, std::unique_ptr<Kernel>* kernel);

class KernelRegistry {
 public:
  static KernelRegistry& Global();

  Kernel* Add(const std::string& key, std::unique_ptr<Kernel> kernel);
  // Null: there is none.
  Kernel* Find(const std::string& key);
  // The kernel's calls run the original ops from now on. False: no such kernel.
  bool Disable(const std::string& key);
  void Remove(const std::string& key);
  // Changes with every Add.
  tensorflow::int64 generation() const { return generation_.load(std::memory_order_acquire); }

  std::shared_ptr<KernelStats> Stats(const std::string& key);
  std::map<std::string, std::shared_ptr<KernelStats>> AllStats();
  void ResetStats();

 private:
  std::mutex mu_;
  std::unordered_map<std::string, Kernel*> kernels_;
  std::map<std::string, std::shared_ptr<KernelStats>> stats_;
  std::atomic<tensorflow::int64> generation_{0};
};

// Loads the kernel and adds it, unless this very one is there and in use: nodes that have it keep their
// plans.
tensorflow::Status Register(const std::string& key, const KernelMeta& meta);

// Find, else ask Python's resolver, load what it gives and add it. Null: there is none (a failure is warned
// about once for each key).
Kernel* FindOrResolve(const std::string& key, const std::string& asc_graph);

}  // namespace autofuse

#endif  // TF_AUTOFUSE_NATIVE_KERNEL_REGISTRY_H_
