// The ops AscBackend (one loop nest) and FusedAscBackend (several): a fused region of the graph as one node.
//
// A node is self-contained: it carries its fused graph, the key of its kernel and the original ops as a
// function. The hot path of a call: compare the inputs' dims with the last plan's, allocate the outputs, run
// the blocks; it takes no lock and allocates nothing but outputs and workspace. Whatever keeps the kernel
// from running (none yet, a guard, a value, an error) runs the original ops instead, with their own result.
//
// A kernel with a device binary runs on the NPU (device_run.h); its node may have inputs and outputs that
// stay there (attribute `carries`: which of the kernel's outputs each of the node's is).
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "device_run.h"
#include "fallback.h"
#include "kernel_registry.h"
#include "launch.h"
#include "options.h"
#include "plan_cache.h"
#include "tensorflow/core/common_runtime/dma_helper.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/lib/core/errors.h"
#include "tensorflow/core/platform/env.h"
#include "warning.h"

namespace autofuse {

using tensorflow::int64;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Status;
using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::uint64;

namespace {

// After so many errors a node does not try its kernel again (until another one is registered).
constexpr int kMaxErrors = 3;

Status BackendShape(tensorflow::shape_inference::InferenceContext* c) {
  std::vector<tensorflow::PartialTensorShape> shapes;
  TF_RETURN_IF_ERROR(c->GetAttr("output_shapes", &shapes));
  for (int i = 0; i < c->num_outputs(); ++i) {
    tensorflow::shape_inference::ShapeHandle shape = c->UnknownShape();
    if (i < static_cast<int>(shapes.size())) {
      TF_RETURN_IF_ERROR(c->MakeShapeFromPartialTensorShape(shapes[i], &shape));
    }
    c->set_output(i, shape);
  }
  return Status::OK();
}

// Host address of a tensor's data; a tensor without elements may have none.
void* Address(const Tensor& tensor) { return const_cast<void*>(tensorflow::DMAHelper::base(&tensor)); }

// Addresses of the inputs, then of the outputs; nothing is allocated up to so many.
using Addresses = tensorflow::gtl::InlinedVector<void*, 24>;

class AscBackendOp : public tensorflow::OpKernel {
 public:
  explicit AscBackendOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    tensorflow::NameAttrList function;
    OP_REQUIRES_OK(ctx, ctx->GetAttr("fallback", &function));
    OP_REQUIRES_OK(ctx, ctx->GetAttr("kernel_key", &key_));
    std::string asc_graph;
    OP_REQUIRES_OK(ctx, ctx->GetAttr("asc_graph", &asc_graph));
    std::vector<int> carries;
    OP_REQUIRES_OK(ctx, ctx->GetAttr("carries", &carries));
    ports_.reset(new NodePorts(*this, std::move(carries)));
    fallback_ = std::make_shared<Fallback>(function);
    stats_ = KernelRegistry::Global().Stats(key_);
    generation_ = KernelRegistry::Global().generation();
    Use(FindOrResolve(key_, asc_graph));
  }

  // A small kernel is cheaper than handing it to another thread. Beyond that TensorFlow's own estimate
  // decides.
  bool IsExpensive() override { return large_.load(std::memory_order_relaxed) && OpKernel::IsExpensive(); }

  void Compute(OpKernelContext* ctx) override {
    stats_->calls.fetch_add(1, std::memory_order_relaxed);
    const Kernel* kernel = CurrentKernel();
    if (kernel == nullptr) {
      RunFallback(ctx);
      return;
    }
    if (kernel->on_device()) {
      RunDevice(ctx, *kernel);
      return;
    }
    const Plan* last = plans_.last();
    if (last != nullptr && last->kernel == kernel && Fits(ctx, *last)) {
      RunPlan(ctx, *kernel, *last);
    } else {
      RunOtherShape(ctx, *kernel);
    }
  }

 private:
  // A kernel fits when its description agrees with the node's types.
  void Use(Kernel* kernel) {
    // A node whose inputs or outputs stay on the device needs a kernel that runs there.
    if (kernel != nullptr && ports_->has_residents && !kernel->on_device()) kernel = nullptr;
    if (kernel != nullptr && !ports_->Fit(kernel->meta)) {
      if (!kernel->warned.exchange(true)) {
        Warn("kernel " + kernel->meta.name + " is not for the types of " + name() +
             ", its original ops run; clear the kernel cache");
      }
      kernel = nullptr;
    }
    errors_.store(0, std::memory_order_relaxed);
    kernel_.store(kernel, std::memory_order_release);
  }

  // The kernel, looked up again where it was missing or another one has been registered meanwhile.
  const Kernel* CurrentKernel() {
    const int64 now = KernelRegistry::Global().generation();
    if (generation_.load(std::memory_order_acquire) != now) {
      std::lock_guard<std::mutex> lock(mu_);
      if (generation_.load(std::memory_order_relaxed) != now) {
        Kernel* found = KernelRegistry::Global().Find(key_);
        if (found != kernel_.load(std::memory_order_relaxed)) Use(found);
        generation_.store(now, std::memory_order_release);
      }
    }
    const Kernel* kernel = kernel_.load(std::memory_order_acquire);
    if (kernel == nullptr || kernel->disabled.load(std::memory_order_relaxed) ||
        errors_.load(std::memory_order_relaxed) >= kMaxErrors) {
      return nullptr;
    }
    return kernel;
  }

  // Whether the inputs have the plan's dims. The node's number of inputs is the kernel's (see Use).
  static bool Fits(OpKernelContext* ctx, const Plan& plan) {
    const std::vector<int>& ranks = plan.kernel->meta.input_ranks;
    const int64* expected = plan.in_dims.data();
    for (size_t i = 0; i < ranks.size(); ++i) {
      const TensorShape& shape = ctx->input(i).shape();
      const int rank = ranks[i];
      if (shape.dims() != rank) return false;
      for (int d = 0; d < rank; ++d) {
        if (shape.dim_size(d) != *expected++) return false;
      }
    }
    return true;
  }

  // False: an input has another rank than the kernel is for.
  template <typename ShapeOf>
  static bool ReadDims(const Kernel& kernel, ShapeOf shape_of, Dims* dims) {
    const std::vector<int>& ranks = kernel.meta.input_ranks;
    for (size_t i = 0; i < ranks.size(); ++i) {
      const TensorShape& shape = shape_of(i);
      if (shape.dims() != ranks[i]) return false;
      for (int d = 0; d < shape.dims(); ++d) dims->push_back(shape.dim_size(d));
    }
    return true;
  }

  void RunOtherShape(OpKernelContext* ctx, const Kernel& kernel) {
    Dims dims;
    if (!ReadDims(kernel, [&](int i) -> const TensorShape& { return ctx->input(i).shape(); }, &dims)) {
      RunFallback(ctx);
      return;
    }
    const PlanRef found = PlanFor(kernel, dims);
    RunPlan(ctx, kernel, *found.plan);
  }

  // The plan for these dims, known or made now.
  PlanRef PlanFor(const Kernel& kernel, const Dims& dims) {
    PlanRef found = plans_.Find(&kernel, dims);
    if (found.plan == nullptr) {
      stats_->plans.fetch_add(1, std::memory_order_relaxed);
      found = plans_.Add(MakePlan(kernel, dims));
    }
    const Plan& plan = *found.plan;
    large_.store(plan.expensive, std::memory_order_relaxed);
    std::lock_guard<std::mutex> lock(stats_->mu);
    stats_->last_dims = plan.in_dims;
    stats_->last_block_dim = plan.block_dim;
    stats_->refused = plan.refused;
    return found;
  }

  // On the NPU. What it can't do, or fails at, the original ops do.
  void RunDevice(OpKernelContext* ctx, const Kernel& kernel) {
    DeviceInputs inputs;
    OP_REQUIRES_OK(ctx, inputs.Read(ctx, *ports_));
    Dims dims;
    if (!ReadDims(kernel, [&](int i) -> const TensorShape& { return inputs.shape(ctx, i); }, &dims)) {
      RunFallback(ctx);
      return;
    }
    const Plan* last = plans_.last();
    PlanRef found{last, nullptr};
    if (last == nullptr || last->kernel != &kernel || last->in_dims != dims) found = PlanFor(kernel, dims);
    const Npu* npu = CurrentNpu();
    if (!found.plan->refused.empty() || npu == nullptr) {
      RunFallback(ctx);
      return;
    }
    AutofuseNpuError error = {};
    Status status;
    const int32_t code = Timed([&] {
      return RunOnDevice(ctx, *npu, *ports_, *found.plan, inputs, fallback_, &error, &status);
    });
    OP_REQUIRES_OK(ctx, status);
    if (code == AUTOFUSE_NPU_DONE) {
      if (errors_.load(std::memory_order_relaxed) != 0) errors_.store(0, std::memory_order_relaxed);
      return;
    }
    if (code == AUTOFUSE_NPU_FAILED) {
      stats_->errors.fetch_add(1, std::memory_order_relaxed);
      WarnOfNpu(kernel.meta.name, name(), error);
      if (errors_.fetch_add(1, std::memory_order_relaxed) + 1 == kMaxErrors) {
        WarnOfNpuSwitchedOff(kernel.meta.name, kMaxErrors);
      }
      OP_REQUIRES(ctx, !GlobalOptions().strict,
                  tensorflow::errors::Internal("tf_autofuse: kernel ", kernel.meta.name,
                                               " failed on the NPU: ", NpuErrorText(error)));
    }
    DropOutputs(ctx);
    RunFallback(ctx);
  }

  void RunPlan(OpKernelContext* ctx, const Kernel& kernel, const Plan& plan) {
    if (!plan.refused.empty()) {
      RunFallback(ctx);
      return;
    }
    Addresses gm;
    for (int i = 0; i < ctx->num_inputs(); ++i) gm.push_back(Address(ctx->input(i)));
    bool forwarded = false;
    for (size_t i = 0; i < plan.out_shapes.size(); ++i) {
      Tensor* output = nullptr;
      OP_REQUIRES_OK(ctx, Place(ctx, kernel.meta, plan, i, &output, &forwarded));
      gm.push_back(Address(*output));
    }
    std::string error;
    Launch launch = {&kernel, &plan, gm.data(), nullptr};
    int32_t code = kDone;
    if (plan.workspace_bytes > 0) {
      Tensor workspace;
      OP_REQUIRES_OK(ctx, ctx->allocate_temp(tensorflow::DT_UINT8, plan.workspace_shape, &workspace));
      launch.workspace = Address(workspace);
      code = Execute(ctx, launch, &error);
    } else if (plan.block_dim > 0) {
      code = Execute(ctx, launch, &error);
    }
    if (code != kDone) {
      RunInstead(ctx, kernel, code, error, forwarded);
    } else if (!plan.proven.load(std::memory_order_relaxed)) {
      plan.proven.store(true, std::memory_order_relaxed);
    }
  }

  // Output `index`: the buffer of an input that dies here, where the kernel allows it, or a new one.
  static Status Place(OpKernelContext* ctx, const KernelMeta& meta, const Plan& plan, int index,
                      Tensor** output, bool* forwarded) {
    if (plan.proven.load(std::memory_order_relaxed)) {
      for (const auto& pair : meta.forward) {
        if (pair.second == index && ctx->forward_input_to_output_with_shape(pair.first, index,
                                                                            plan.out_shapes[index], output)) {
          *forwarded = true;
          return Status::OK();
        }
      }
    }
    return ctx->allocate_output(index, plan.out_shapes[index], output);
  }

  int32_t Execute(OpKernelContext* ctx, const Launch& launch, std::string* error) {
    return Timed([&] { return RunLaunch(ctx, launch, error); });
  }

  // run(), whose time is counted where the user asked for times.
  template <typename Body>
  int32_t Timed(Body run) {
    if (!GlobalOptions().timing.load(std::memory_order_relaxed)) return run();
    const uint64 start = tensorflow::Env::Default()->NowNanos();
    const int32_t code = run();
    stats_->run_ns.fetch_add(tensorflow::Env::Default()->NowNanos() - start, std::memory_order_relaxed);
    return code;
  }

  // The kernel has stopped: the original ops give the result.
  void RunInstead(OpKernelContext* ctx, const Kernel& kernel, int32_t code, const std::string& error,
                  bool forwarded) {
    if (code != kRefusedValue) {
      stats_->errors.fetch_add(1, std::memory_order_relaxed);
      errors_.fetch_add(1, std::memory_order_relaxed);
      if (!kernel.warned.exchange(true)) {
        Warn("kernel " + kernel.meta.name + " (node " + name() + ") failed: " + error +
             "; the original ops run instead. Please report it with the kernel's debug folder "
             "(--codegen_compile_debug=true;--debug_dir=DIR), or leave its nodes out with "
             "--skip_node_names_cfg");
      }
    }
    // Once an input's buffer has been written to, the original ops have nothing to run on.
    OP_REQUIRES(ctx, !forwarded && (code == kRefusedValue || !GlobalOptions().strict),
                tensorflow::errors::Internal("tf_autofuse: kernel ", kernel.meta.name, " failed: ", error));
    DropOutputs(ctx);
    RunFallback(ctx);
  }

  static void DropOutputs(OpKernelContext* ctx) {
    for (int i = 0; i < ctx->num_outputs(); ++i) delete ctx->release_output(i).tensor;
  }

  void RunFallback(OpKernelContext* ctx) {
    stats_->fallbacks.fetch_add(1, std::memory_order_relaxed);
    // Not OP_REQUIRES: the original op has already logged its error.
    const Status status = RunOriginals(ctx, *ports_, fallback_.get());
    if (!status.ok()) ctx->SetStatus(status);
  }

  // What every call reads comes first, on one or two cache lines.
  std::atomic<bool> large_{false};
  std::atomic<int> errors_{0};
  std::atomic<int64> generation_{0};
  std::atomic<Kernel*> kernel_{nullptr};
  std::shared_ptr<KernelStats> stats_;
  PlanCache plans_;
  std::mutex mu_;  // one thread at a time looks for another kernel
  std::string key_;
  std::unique_ptr<const NodePorts> ports_;
  std::shared_ptr<Fallback> fallback_;  // shared with the lineage of what is on the device
};

#define AUTOFUSE_BACKEND(name)                 \
  REGISTER_OP(name)                            \
      .Input("inputs: Tin")                    \
      .Output("outputs: Tout")                 \
      .Attr("Tin: list(type) >= 0")            \
      .Attr("Tout: list(type) >= 1")           \
      .Attr("kernel_name: string")             \
      .Attr("kernel_key: string")              \
      .Attr("asc_graph: string = ''")          \
      .Attr("guards: string = ''")             \
      .Attr("fallback: func")                  \
      .Attr("carries: list(int) = []")         \
      .Attr("origin_nodes: list(string) = []") \
      .Attr("output_shapes: list(shape) = []") \
      .SetShapeFn(BackendShape);               \
  REGISTER_KERNEL_BUILDER(Name(name).Device(tensorflow::DEVICE_CPU), AscBackendOp)

AUTOFUSE_BACKEND("AscBackend");
AUTOFUSE_BACKEND("FusedAscBackend");

}  // namespace

}  // namespace autofuse
