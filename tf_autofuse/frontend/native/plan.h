// The plan of one launch: all that a kernel's functions say about the dims of its inputs, asked once.
//
// A plan is immutable but for `proven` and `function`.
#ifndef TF_AUTOFUSE_NATIVE_PLAN_H_
#define TF_AUTOFUSE_NATIVE_PLAN_H_

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "kernel_registry.h"
#include "tensorflow/core/framework/tensor_shape.h"

namespace autofuse {

struct Plan {
  Plan() = default;
  ~Plan() { delete function.load(); }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  const Kernel* kernel = nullptr;
  Dims in_dims;  // of all inputs, one after the other
  tensorflow::uint64 hash = 0;
  std::string refused;  // why the kernel is not for these shapes; empty: it is
  tensorflow::gtl::InlinedVector<tensorflow::TensorShape, 2> out_shapes;
  tensorflow::gtl::InlinedVector<uint64_t, 8> gm_bytes;  // inputs, then outputs
  tensorflow::uint64 total_bytes = 0;
  std::vector<tensorflow::uint64> tiling;  // the tiling data in 8-byte words
  uint32_t block_dim = 0;
  uint64_t workspace_bytes = 0;
  tensorflow::TensorShape workspace_shape;
  tensorflow::gtl::InlinedVector<uint32_t, 2> phase_ends;  // the last one is block_dim
  tensorflow::int64 block_ns = -1;                          // a block's time on one core; -1: not known
  bool parallel = false;   // the launch is worth more than the calling thread
  bool expensive = false;  // worth a hand-off by the executor
  // Of a kernel on the NPU: which of its functions, and where its blocks' status words are (-1: it has none).
  tensorflow::int64 tiling_key = 0;
  tensorflow::int64 status_offset = -1;
  struct DeviceFunction {
    const void* npu;  // the opened device that it belongs to
    const void* function;
  };
  mutable std::atomic<const DeviceFunction*> function{nullptr};
  // The kernel has run once with this plan without an error. Before that no output takes an input's buffer,
  // so that the original ops can still run on intact inputs.
  mutable std::atomic<bool> proven{false};
};

tensorflow::uint64 HashDims(const Dims& dims);

// Never null; where the kernel has no plan for these dims, `refused` says why. The dims' number is the sum of
// the kernel's input ranks.
std::shared_ptr<const Plan> MakePlan(const Kernel& kernel, const Dims& dims);

}  // namespace autofuse

#endif  // TF_AUTOFUSE_NATIVE_PLAN_H_
