// The graph passes: what TensorFlow calls for every graph it prepares, and the way of a graph through the
// plugin.
//
// On exit of a pass the graph is either untouched or rewritten as a whole. Whatever goes wrong leaves it
// untouched, with one warning; in strict mode it is the session's error. A session that did not ask costs one
// look at its config.
#include <atomic>
#include <memory>

#include "activation.h"
#include "analysis.h"
#include "branches.h"
#include "edits.h"
#include "fold.h"
#include "keep_memory.h"
#include "keep_on_device.h"
#include "options.h"
#include "python_bridge.h"
#include "shapes.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/device_set.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"
#include "tensorflow/core/graph/graph_constructor.h"
#include "tensorflow/core/lib/core/errors.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/public/session_options.h"
#include "tensorflow/core/util/device_name_utils.h"
#include "warning.h"

namespace autofuse {

using tensorflow::Graph;
using tensorflow::GraphOptimizationPassOptions;
using tensorflow::Status;

namespace {

std::atomic<bool> warned{false};

// In strict mode the error itself, otherwise OK after one warning for the process.
Status Outcome(const char* pass, const Status& status) {
  if (status.ok()) return status;
  if (GlobalOptions().strict) {
    return Status(status.code(), std::string("tf_autofuse: ") + status.error_message());
  }
  if (!warned.exchange(true)) {
    Warn(std::string(pass) + " gave up, the graph runs as it is: " + status.error_message() +
         " (set AUTOFUSE_STRICT=1 to make this an error; further warnings of this kind are not shown)");
  }
  return Status::OK();
}

template <typename Body>
Status Guarded(Body body) {
  try {
    return body();
  } catch (const std::exception& error) {
    return tensorflow::errors::Internal(error.what());
  }
}

bool RunsHere(const tensorflow::DeviceSet* devices, const std::string& name) {
  tensorflow::DeviceNameUtils::ParsedName parsed;
  if (!tensorflow::DeviceNameUtils::ParseFullName(name, &parsed) || !parsed.has_type ||
      parsed.type != "CPU") {
    return false;
  }
  if (GlobalOptions().allow_remote || devices == nullptr) return true;
  const tensorflow::Device* device = devices->FindDeviceByName(name);
  return device != nullptr && device->IsLocal();
}

bool FoldingAllowed(const tensorflow::ConfigProto& config) {
  return config.graph_options().optimizer_options().opt_level() != tensorflow::OptimizerOptions::L0;
}

Status Dump(const char* stage, const Graph& graph, const tensorflow::FunctionLibraryDefinition* library,
            const PassContext& context) {
  if (!GlobalOptions().dump || !HasHook(Hook::kDump)) return Status::OK();
  tensorflow::GraphDef def;
  graph.ToGraphDef(&def);
  if (library != nullptr) *def.mutable_library() = library->ToProto();
  tensorflow::string bytes;
  if (!def.SerializeToString(&bytes)) return tensorflow::errors::Internal("the graph can't be serialized");
  return CallDump(stage, bytes, context);
}

// The whole way. `*options.graph` is replaced at the very end or not at all.
Status Fuse(const GraphOptimizationPassOptions& options, const PassContext& context, CallShapes* calls) {
  TF_RETURN_IF_ERROR(Dump("before", **options.graph, options.flib_def, context));

  std::unique_ptr<Graph> graph(new Graph((*options.graph)->flib_def()));
  tensorflow::CopyGraph(**options.graph, graph.get());
  if (FoldingAllowed(options.session_options->config)) {
    if (NeedsFolding(*graph)) TF_RETURN_IF_ERROR(FoldConstants(options.device_set, graph.get()));
    // What a Merge was between is next to each other now, as a batch norm's arithmetic and its moments.
    if (FoldBranches(graph.get())) TF_RETURN_IF_ERROR(FoldConstants(options.device_set, graph.get()));
  }
  GraphAnalysis analysis;
  TF_RETURN_IF_ERROR(analysis.Build(*graph));
  SymbolicShapes shapes(*graph, analysis, context.feed_shapes);
  shapes.Infer();

  std::vector<Edit> edits;
  BytesToKeep() = 0;
  TF_RETURN_IF_ERROR(CallGraphPass(analysis, shapes, context, &edits));

  *calls = ShapesOfCalls(analysis, shapes);
  std::vector<Rejection> rejections;
  size_t applied = 0;
  EditApplier applier(graph.get(), analysis, options.flib_def,
                      [&options](const std::string& device) { return RunsHere(options.device_set, device); });
  for (const Edit& edit : edits) {
    const Status status = applier.Apply(edit);
    if (status.ok()) {
      ++applied;
    } else if (edit.op != kConstant) {  // a constant that finds no reader is no loss
      rejections.push_back({edit.name, status.error_message()});
    }
  }
  if (applied > 0) {
    applier.Finish();
    TF_RETURN_IF_ERROR(KeepOnDevice(graph.get()));
    TF_RETURN_IF_ERROR(CheckAcyclic(*graph));
    *options.graph = std::move(graph);
    if (options.device_set != nullptr) KeepMemory(*options.device_set, BytesToKeep());
  }
  TF_RETURN_IF_ERROR(CallReport(rejections));
  return Dump("after", **options.graph, options.flib_def, context);
}

class RememberPass : public tensorflow::GraphOptimizationPass {
 public:
  Status Run(const GraphOptimizationPassOptions& options) override {
    if (options.session_options == nullptr || options.graph == nullptr || *options.graph == nullptr) {
      return Status::OK();
    }
    return Outcome("remembering shapes", Guarded([&] {
                     RememberGraph(options);
                     return Status::OK();
                   }));
  }
};

class FusePass : public tensorflow::GraphOptimizationPass {
 public:
  Status Run(const GraphOptimizationPassOptions& options) override {
    if (options.session_options == nullptr || options.graph == nullptr || *options.graph == nullptr ||
        options.flib_def == nullptr) {
      return Status::OK();
    }
    if (!HasHook(Hook::kGraphPass)) return Status::OK();
    return Outcome(
        "fusion", Guarded([&]() -> Status {
          PassContext context;
          if (!DescribeGraph(options, &context)) return Status::OK();
          bool wants = true;
          TF_RETURN_IF_ERROR(CallWants(context, &wants));
          VLOG(1) << "TF-AutoFuse: graph of " << (*options.graph)->num_op_nodes() << " nodes, function '"
                  << context.function_name << "', wanted " << wants << ", claimed " << context.claimed;
          if (!wants || context.claimed ||
              context.function_name.compare(0, sizeof(kFallbackPrefix) - 1, kFallbackPrefix) == 0) {
            return Status::OK();
          }
          CallShapes calls;
          TF_RETURN_IF_ERROR(Fuse(options, context, &calls));
          return PassEntryToFunctions(context, calls, **options.graph, options.flib_def);
        }));
  }
};

// Before TensorFlow's own passes of these groups, which begin at phase 0: function calls and control flow are
// still whole before placement, and XLA's clusters are not yet formed after it.
REGISTER_OPTIMIZATION(tensorflow::OptimizationPassRegistry::PRE_PLACEMENT, -100, RememberPass);
REGISTER_OPTIMIZATION(tensorflow::OptimizationPassRegistry::POST_REWRITE_FOR_EXEC, -100, FusePass);

}  // namespace

}  // namespace autofuse
