#include "plan.h"

#include <cstring>

#include "tensorflow/core/lib/strings/strcat.h"

namespace autofuse {

using tensorflow::int64;
using tensorflow::TensorShape;
using tensorflow::uint64;

namespace {

// Waking another thread costs some microseconds: up to here one thread is faster.
constexpr int64 kAloneNs = 30000;
// The executor's hand-off of a node to another thread is dearer than that.
constexpr int64 kInlineNs = 10000;

bool FindPhases(const Kernel& kernel, Plan* plan) {
  if (kernel.phases == nullptr || plan->block_dim == 0) {
    plan->phase_ends.push_back(plan->block_dim);
    return true;
  }
  uint32_t ends[kMaxPhases];
  const int32_t count = kernel.phases(plan->tiling.data(), ends, kMaxPhases);
  if (count < 1 || count > kMaxPhases || ends[count - 1] != plan->block_dim) return false;
  for (int32_t p = 0; p < count; ++p) {
    if (p > 0 && ends[p] < ends[p - 1]) return false;
    plan->phase_ends.push_back(ends[p]);
  }
  return true;
}

void DescribeDeviceRun(const Kernel& kernel, Plan* plan) {
  const char* name = nullptr;
  for (int32_t i = 0; (name = kernel.tiling_name(i)) != nullptr; ++i) {
    const int64 value = kernel.tiling_value(plan->tiling.data(), i);
    if (std::strcmp(name, "tiling_key") == 0) plan->tiling_key = value;
    if (std::strcmp(name, "status_offset") == 0) plan->status_offset = value;
  }
  // A call waits for the device.
  plan->expensive = true;
}

void Judge(const Kernel& kernel, Plan* plan) {
  if (kernel.block_cost != nullptr && plan->block_dim > 0) {
    plan->block_ns = kernel.block_cost(plan->tiling.data());
  }
  const bool many = plan->block_dim > 1 && !kernel.needs_all_blocks;
  if (plan->block_ns >= 0) {
    // A product of int64s could overflow for a nonsensical cost.
    const double total = static_cast<double>(plan->block_ns) * plan->block_dim;
    plan->parallel = many && total > kAloneNs;
    plan->expensive = total > kInlineNs;
  } else {
    plan->expensive = plan->total_bytes > static_cast<uint64>(kernel.meta.small_bytes);
    plan->parallel = many && plan->expensive;
  }
}

}  // namespace

uint64 HashDims(const Dims& dims) {
  uint64 hash = 1469598103934665603ull;  // FNV-1a over the dims
  for (int64 dim : dims) hash = (hash ^ static_cast<uint64>(dim)) * 1099511628211ull;
  return hash;
}

std::shared_ptr<const Plan> MakePlan(const Kernel& kernel, const Dims& dims) {
  const KernelMeta& meta = kernel.meta;
  auto plan = std::make_shared<Plan>();
  plan->kernel = &kernel;
  plan->in_dims = dims;
  plan->hash = HashDims(dims);
  size_t out_count = 0;
  for (int rank : meta.output_ranks) out_count += rank;
  std::vector<int64> out_dims(out_count + 1), sizes(meta.size_count + 1);
  const int32_t check =
      kernel.shape(reinterpret_cast<const int64_t*>(dims.data()), reinterpret_cast<int64_t*>(out_dims.data()),
                   reinterpret_cast<int64_t*>(sizes.data()));
  if (check != 0) {
    const char* text = kernel.check_text == nullptr ? nullptr : kernel.check_text(check);
    plan->refused = text == nullptr ? tensorflow::strings::StrCat("check ", check, " does not hold") : text;
    return plan;
  }
  size_t at = 0;
  for (size_t i = 0; i < meta.input_ranks.size(); ++i) {
    uint64 bytes = tensorflow::DataTypeSize(meta.input_dtypes[i]);
    for (int d = 0; d < meta.input_ranks[i]; ++d) bytes *= dims[at++];
    plan->gm_bytes.push_back(bytes);
    plan->total_bytes += bytes;
  }
  at = 0;
  for (size_t i = 0; i < meta.output_ranks.size(); ++i) {
    TensorShape shape;
    const tensorflow::Status status =
        tensorflow::TensorShapeUtils::MakeShape(&out_dims[at], meta.output_ranks[i], &shape);
    if (!status.ok()) {
      plan->refused = status.error_message();
      return plan;
    }
    at += meta.output_ranks[i];
    plan->gm_bytes.push_back(shape.num_elements() * tensorflow::DataTypeSize(meta.output_dtypes[i]));
    plan->total_bytes += plan->gm_bytes.back();
    plan->out_shapes.push_back(std::move(shape));
  }
  plan->tiling.resize((kernel.tiling_size + 7) / 8 + 1);
  if (kernel.tiling(reinterpret_cast<const int64_t*>(sizes.data()), &meta.machine, plan->tiling.data(),
                    &plan->block_dim, &plan->workspace_bytes) != 0) {
    plan->refused = "no tiling fits";
    return plan;
  }
  if (plan->block_dim == 0) plan->workspace_bytes = 0;
  plan->workspace_shape.AddDim(static_cast<int64>(plan->workspace_bytes));
  if (!FindPhases(kernel, plan.get())) {
    plan->refused = "the kernel's phases make no sense";
    return plan;
  }
  Judge(kernel, plan.get());
  if (kernel.on_device()) DescribeDeviceRun(kernel, plan.get());
  return plan;
}

}  // namespace autofuse
