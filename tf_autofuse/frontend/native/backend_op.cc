// The ops AscBackend (one loop nest) and FusedAscBackend (several): a fused region of the graph as one node.
//
// A node is self-contained: it carries its fused graph, the key of its kernel and the original ops as a
// function. The hot path of a call: gather the inputs' dims, find the plan for them, allocate the outputs,
// run the blocks. Whatever keeps the kernel from running (none yet, a guard, an error) runs the original ops
// instead, with their own result.
#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "fallback.h"
#include "kernel_registry.h"
#include "options.h"
#include "plan_cache.h"
#include "tensorflow/core/common_runtime/dma_helper.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/device_base.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/lib/core/errors.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/util/work_sharder.h"

namespace autofuse {

using tensorflow::int64;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Status;
using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::uint32;
using tensorflow::uint64;

namespace {

// After so many errors a node does not try its kernel again (until another one is registered).
constexpr int kMaxErrors = 3;
constexpr size_t kErrorBytes = 1024;

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

class AscBackendOp : public tensorflow::OpKernel {
 public:
  explicit AscBackendOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    tensorflow::NameAttrList function;
    OP_REQUIRES_OK(ctx, ctx->GetAttr("fallback", &function));
    OP_REQUIRES_OK(ctx, ctx->GetAttr("kernel_key", &key_));
    OP_REQUIRES_OK(ctx, ctx->GetAttr("asc_graph", &asc_graph_));
    fallback_.reset(new Fallback(function));
    stats_ = KernelRegistry::Global().Stats(key_);
    generation_ = KernelRegistry::Global().generation();
    Use(FindOrResolve(key_, asc_graph_));
  }

  // A small kernel is cheaper than handing it to another thread. Beyond that TensorFlow's own estimate
  // decides.
  bool IsExpensive() override { return large_.load(std::memory_order_relaxed) && OpKernel::IsExpensive(); }

  void Compute(OpKernelContext* ctx) override {
    stats_->calls.fetch_add(1, std::memory_order_relaxed);
    const std::shared_ptr<Kernel> kernel = CurrentKernel();
    if (kernel == nullptr || kernel->disabled.load(std::memory_order_relaxed)) {
      RunFallback(ctx);
      return;
    }
    Dims dims;
    const KernelMeta& meta = kernel->meta;
    for (int i = 0; i < ctx->num_inputs(); ++i) {
      const TensorShape& shape = ctx->input(i).shape();
      if (shape.dims() != meta.input_ranks[i]) {
        RunFallback(ctx);
        return;
      }
      for (int d = 0; d < shape.dims(); ++d) dims.push_back(shape.dim_size(d));
    }
    const uint64 hash = HashDims(dims);
    std::shared_ptr<const Plan> plan = plans_.Find(dims, hash);
    if (plan == nullptr) {
      plan = MakePlan(*kernel, dims, hash);
      plans_.Add(plan);
    }
    if (last_plan_.load(std::memory_order_relaxed) != plan.get()) Remember(plan, meta.small_bytes);
    if (!plan->refused.empty()) {
      RunFallback(ctx);
      return;
    }
    RunKernel(ctx, *kernel, *plan);
  }

 private:
  // A kernel fits when its description agrees with the node's types.
  void Use(std::shared_ptr<Kernel> kernel) {
    if (kernel != nullptr &&
        (kernel->meta.input_dtypes != input_types() || kernel->meta.output_dtypes != output_types())) {
      if (!kernel->warned.exchange(true)) {
        LOG(WARNING) << "TF-AutoFuse: kernel " << kernel->meta.name << " is not for the types of " << name()
                     << ", its original ops run; clear the kernel cache";
      }
      kernel = nullptr;
    }
    plans_.Clear();
    errors_.store(0, std::memory_order_relaxed);
    std::atomic_store(&kernel_, std::move(kernel));
  }

  // The kernel, looked up again where it was missing or another one has been registered meanwhile.
  std::shared_ptr<Kernel> CurrentKernel() {
    const int64 now = KernelRegistry::Global().generation();
    if (generation_.load(std::memory_order_acquire) != now) {
      std::lock_guard<std::mutex> lock(mu_);
      if (generation_.load(std::memory_order_relaxed) != now) {
        std::shared_ptr<Kernel> found = KernelRegistry::Global().Find(key_);
        if (found != std::atomic_load(&kernel_)) Use(std::move(found));
        generation_.store(now, std::memory_order_release);
      }
    }
    if (errors_.load(std::memory_order_relaxed) >= kMaxErrors) return nullptr;
    return std::atomic_load(&kernel_);
  }

  std::shared_ptr<const Plan> MakePlan(const Kernel& kernel, const Dims& dims, uint64 hash) {
    stats_->plans.fetch_add(1, std::memory_order_relaxed);
    const KernelMeta& meta = kernel.meta;
    auto plan = std::make_shared<Plan>();
    plan->in_dims = dims;
    plan->hash = hash;
    size_t out_count = 0;
    for (int rank : meta.output_ranks) out_count += rank;
    std::vector<int64> out_dims(out_count + 1), sizes(meta.size_count + 1);
    const int32_t check =
        kernel.shape(reinterpret_cast<const int64_t*>(dims.data()),
                     reinterpret_cast<int64_t*>(out_dims.data()), reinterpret_cast<int64_t*>(sizes.data()));
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
      const Status status =
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
    }
    return plan;
  }

  void Remember(const std::shared_ptr<const Plan>& plan, int64 small_bytes) {
    last_plan_.store(plan.get(), std::memory_order_relaxed);
    large_.store(plan->total_bytes > static_cast<uint64>(small_bytes), std::memory_order_relaxed);
    std::lock_guard<std::mutex> lock(stats_->mu);
    stats_->last_dims = plan->in_dims;
    stats_->last_block_dim = plan->block_dim;
    stats_->refused = plan->refused;
  }

  void RunKernel(OpKernelContext* ctx, Kernel& kernel, const Plan& plan) {
    const KernelMeta& meta = kernel.meta;
    tensorflow::gtl::InlinedVector<void*, 16> gm;
    tensorflow::gtl::InlinedVector<Tensor, 4> outputs(meta.output_ranks.size());
    for (int i = 0; i < ctx->num_inputs(); ++i) gm.push_back(Address(ctx->input(i)));
    bool forwarded = false;
    for (size_t i = 0; i < outputs.size(); ++i) {
      bool placed = false;
      if (plan.proven.load(std::memory_order_relaxed)) {
        for (const auto& pair : meta.forward) {
          if (pair.second != static_cast<int>(i)) continue;
          std::unique_ptr<Tensor> taken = ctx->forward_input(
              pair.first, OpKernelContext::Params::kNoReservation, meta.output_dtypes[i], plan.out_shapes[i],
              tensorflow::DEVICE_MEMORY, tensorflow::AllocatorAttributes());
          if (taken == nullptr) continue;
          outputs[i] = std::move(*taken);
          forwarded = placed = true;
          break;
        }
      }
      if (!placed) {
        OP_REQUIRES_OK(ctx, ctx->allocate_temp(meta.output_dtypes[i], plan.out_shapes[i], &outputs[i]));
      }
      gm.push_back(Address(outputs[i]));
    }
    Tensor workspace;
    void* workspace_address = nullptr;
    if (plan.workspace_bytes > 0) {
      OP_REQUIRES_OK(ctx,
                     ctx->allocate_temp(tensorflow::DT_UINT8,
                                        TensorShape({static_cast<int64>(plan.workspace_bytes)}), &workspace));
      workspace_address = Address(workspace);
    }
    std::string error;
    if (plan.block_dim > 0) {
      const bool timing = GlobalOptions().timing.load(std::memory_order_relaxed);
      const uint64 start = timing ? tensorflow::Env::Default()->NowNanos() : 0;
      error = RunBlocks(ctx, kernel, plan, gm.data(), workspace_address);
      if (timing)
        stats_->run_ns.fetch_add(tensorflow::Env::Default()->NowNanos() - start, std::memory_order_relaxed);
    }
    if (error.empty()) {
      plan.proven.store(true, std::memory_order_relaxed);
      for (size_t i = 0; i < outputs.size(); ++i) ctx->set_output(i, outputs[i]);
      return;
    }
    stats_->errors.fetch_add(1, std::memory_order_relaxed);
    errors_.fetch_add(1, std::memory_order_relaxed);
    if (!kernel.warned.exchange(true)) {
      LOG(WARNING) << "TF-AutoFuse: kernel " << meta.name << " (node " << name() << ") failed: " << error
                   << "; the original ops run instead. Please report it with the kernel's debug folder "
                      "(--codegen_compile_debug=true;--debug_dir=DIR), or leave its nodes out with "
                      "--skip_node_names_cfg";
    }
    // Once an input's buffer has been written to, the original ops have nothing to run on.
    OP_REQUIRES(ctx, !forwarded && !GlobalOptions().strict,
                tensorflow::errors::Internal("TF-AutoFuse: kernel ", meta.name, " failed: ", error));
    RunFallback(ctx);
  }

  // Runs all blocks; the first error's text, or nothing.
  std::string RunBlocks(OpKernelContext* ctx, const Kernel& kernel, const Plan& plan, void* const* gm,
                        void* workspace) {
    const auto run = [&](uint32 first, uint32 last, std::string* error) {
      char text[kErrorBytes];
      text[0] = '\0';
      const int32_t code = kernel.run_blocks(gm, plan.gm_bytes.data(), workspace, plan.tiling.data(),
                                             plan.block_dim, first, last, text, sizeof(text));
      if (code == 0) return;
      text[sizeof(text) - 1] = '\0';
      *error = text[0] == '\0' ? tensorflow::strings::StrCat("code ", code) : text;
    };
    std::string error;
    const bool small = plan.total_bytes <= static_cast<uint64>(kernel.meta.small_bytes);
    if (small || plan.block_dim == 1 || kernel.needs_all_blocks) {
      run(0, plan.block_dim, &error);
      return error;
    }
    const auto& workers = *ctx->device()->tensorflow_cpu_worker_threads();
    std::mutex mu;
    // About a cycle a byte; what matters is that blocks beyond small_bytes are worth a thread each.
    const int64 cost = std::max<int64>(plan.total_bytes / plan.block_dim, 10000);
    tensorflow::Shard(workers.num_threads, workers.workers, plan.block_dim, cost,
                      [&](int64 first, int64 last) {
                        std::string mine;
                        run(static_cast<uint32>(first), static_cast<uint32>(last), &mine);
                        if (mine.empty()) return;
                        std::lock_guard<std::mutex> lock(mu);
                        if (error.empty()) error = std::move(mine);
                      });
    return error;
  }

  void RunFallback(OpKernelContext* ctx) {
    stats_->fallbacks.fetch_add(1, std::memory_order_relaxed);
    // Not OP_REQUIRES: the original op has already logged its error.
    const Status status = fallback_->Run(ctx);
    if (!status.ok()) ctx->SetStatus(status);
  }

  std::string key_;
  std::string asc_graph_;
  std::unique_ptr<Fallback> fallback_;
  std::shared_ptr<KernelStats> stats_;
  std::shared_ptr<Kernel> kernel_;  // read and written by the atomic_ functions
  std::atomic<int64> generation_{0};
  std::atomic<int> errors_{0};
  std::atomic<bool> large_{false};
  std::atomic<const Plan*> last_plan_{nullptr};  // compared only, never followed
  PlanCache plans_;
  std::mutex mu_;
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
      .Attr("origin_nodes: list(string) = []") \
      .Attr("output_shapes: list(shape) = []") \
      .SetShapeFn(BackendShape);               \
  REGISTER_KERNEL_BUILDER(Name(name).Device(tensorflow::DEVICE_CPU), AscBackendOp)

AUTOFUSE_BACKEND("AscBackend");
AUTOFUSE_BACKEND("FusedAscBackend");

}  // namespace

}  // namespace autofuse
