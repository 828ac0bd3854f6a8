#include "activation.h"

#include <algorithm>
#include <mutex>
#include <set>

#include "options.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/grappler/optimizers/custom_graph_optimizer_registry.h"
#include "tensorflow/core/protobuf/rewriter_config.pb.h"
#include "tensorflow/core/public/session_options.h"

namespace autofuse {

using tensorflow::Node;

namespace {

constexpr char kOwnEntry[] = "AutofuseOptimizer";
constexpr char kNpuEntry[] = "NpuOptimizer";
// Sessions remembered at a time; a forgotten one only loses its placeholders' shapes.
constexpr size_t kMaxSessions = 256;

bool RealNpuOptimizerLoaded() {
  if (GlobalOptions().foreign_npu) return true;
  const auto known = tensorflow::grappler::CustomGraphOptimizerRegistry::GetRegisteredOptimizers();
  return std::find(known.begin(), known.end(), kNpuEntry) != known.end();
}

struct Remembered {
  std::string handle;
  bool is_function = false;
  bool claimed = false;
  std::string function_name;
  FeedShapes shapes;
  tensorflow::uint64 age = 0;
};

// Never destroyed: sessions may be closed after main() has returned.
struct Memory {
  std::mutex mu;
  std::map<const void*, Remembered> sessions;
  tensorflow::uint64 clock = 0;
};

Memory& TheMemory() {
  static Memory* memory = new Memory;
  return *memory;
}

bool IsPlaceholder(const std::string& op) {
  return op == "Placeholder" || op == "PlaceholderV2" || op == "PlaceholderWithDefault";
}

FeedShapes PlaceholderShapes(const tensorflow::Graph& graph) {
  FeedShapes shapes;
  for (const Node* node : graph.op_nodes()) {
    if (!IsPlaceholder(node->type_string())) continue;
    tensorflow::PartialTensorShape shape;
    if (!tensorflow::GetNodeAttr(node->attrs(), "shape", &shape).ok()) continue;
    // Graphs of the first TensorFlow versions write an unknown shape as the empty one.
    if (node->type_string() == "Placeholder" && graph.versions().producer() < 24 && shape.dims() == 0) continue;
    shapes[node->name() + ":0"] = shape;
  }
  return shapes;
}

// A function's body arrives without its name: find the function with the same arguments and nodes.
const tensorflow::FunctionDef* FindFunction(const tensorflow::Graph& graph,
                                            const tensorflow::FunctionLibraryDefinition& library) {
  std::set<std::string> nodes;
  int arguments = 0;
  for (const Node* node : graph.op_nodes()) {
    if (node->IsArg()) {
      ++arguments;
    } else if (!node->IsRetval()) {
      nodes.insert(node->name());
    }
  }
  for (const auto& name : library.ListFunctionNames()) {
    const tensorflow::FunctionDef* function = library.Find(name);
    if (function == nullptr || function->signature().input_arg_size() != arguments ||
        function->node_def_size() != static_cast<int>(nodes.size())) {
      continue;
    }
    const bool same = std::all_of(function->node_def().begin(), function->node_def().end(),
                                  [&nodes](const tensorflow::NodeDef& def) { return nodes.count(def.name()) > 0; });
    if (same) return function;
  }
  return nullptr;
}

bool IsClaimed(const tensorflow::FunctionDef& function) {
  for (const char* attr : {"_XlaCompile", "_XlaMustCompile"}) {
    const auto found = function.attr().find(attr);
    if (found != function.attr().end() && found->second.b()) return true;
  }
  return false;
}

}  // namespace

bool FindEntry(const tensorflow::ConfigProto& config, PassContext* context) {
  const auto& entries = config.graph_options().rewrite_options().custom_optimizers();
  if (entries.empty()) return false;
  for (const char* wanted : {kOwnEntry, kNpuEntry}) {
    for (const auto& entry : entries) {
      if (entry.name() != wanted) continue;
      if (entry.name() == kNpuEntry && RealNpuOptimizerLoaded()) continue;
      context->entry_name = entry.name();
      for (const auto& parameter : entry.parameter_map()) context->parameters[parameter.first] = parameter.second;
      return true;
    }
  }
  return false;
}

void RememberSession(const tensorflow::GraphOptimizationPassOptions& options) {
  Remembered seen;
  seen.handle = options.session_handle;
  seen.is_function = options.session_handle.empty();
  seen.shapes = PlaceholderShapes(**options.graph);
  if (seen.is_function && options.flib_def != nullptr) {
    const tensorflow::FunctionDef* function = FindFunction(**options.graph, *options.flib_def);
    if (function != nullptr) {
      seen.function_name = function->signature().name();
      seen.claimed = IsClaimed(*function);
    }
  }
  Memory& memory = TheMemory();
  std::lock_guard<std::mutex> lock(memory.mu);
  seen.age = ++memory.clock;
  Remembered& slot = memory.sessions[options.session_options];
  // An extended graph adds to what the session has; another session may have got a dead one's address.
  if (!seen.handle.empty() && slot.handle == seen.handle) {
    for (const auto& old : slot.shapes) seen.shapes.insert(old);
  }
  slot = std::move(seen);
  if (memory.sessions.size() > kMaxSessions) {
    const auto oldest = std::min_element(
        memory.sessions.begin(), memory.sessions.end(),
        [](const std::pair<const void* const, Remembered>& a, const std::pair<const void* const, Remembered>& b) {
          return a.second.age < b.second.age;
        });
    memory.sessions.erase(oldest);
  }
}

void DescribeGraph(const tensorflow::GraphOptimizationPassOptions& options, PassContext* context) {
  context->session = reinterpret_cast<size_t>(options.session_options);
  {
    Memory& memory = TheMemory();
    std::lock_guard<std::mutex> lock(memory.mu);
    const auto found = memory.sessions.find(options.session_options);
    if (found != memory.sessions.end()) {
      context->session_handle = found->second.handle;
      context->is_function = found->second.is_function;
      context->function_name = found->second.function_name;
      context->claimed = found->second.claimed;
      context->feed_shapes = found->second.shapes;
    }
  }
  std::map<int, std::string> arguments, results;
  for (const Node* node : (*options.graph)->op_nodes()) {
    int index = 0;
    if (node->IsArg() || node->IsRetval()) {
      tensorflow::GetNodeAttr(node->attrs(), "index", &index).IgnoreError();
    }
    const std::string fed = FedTensor(*node), fetched = FetchedTensor(*node);
    if (node->IsArg()) {
      arguments[index] = fed.empty() || context->is_function ? node->name() : fed;
    } else if (node->IsRetval()) {
      results[index] = fetched.empty() || context->is_function ? node->name() : fetched;
    } else if (!fed.empty()) {
      context->feeds.push_back(fed);
    } else if (!fetched.empty()) {
      context->fetches.push_back(fetched);
    }
  }
  for (const auto& argument : arguments) context->feeds.push_back(argument.second);
  for (const auto& result : results) context->fetches.push_back(result.second);
}

void PassEntryToCalls(const PassContext& context, tensorflow::Graph* graph) {
  for (Node* node : graph->op_nodes()) {
    if (!node->IsPartitionedCall()) continue;
    tensorflow::string text;
    tensorflow::ConfigProto config;
    if (!tensorflow::GetNodeAttr(node->attrs(), "config_proto", &text).ok() || !config.ParseFromString(text)) continue;
    PassContext there;
    if (FindEntry(config, &there)) continue;
    auto* entry = config.mutable_graph_options()->mutable_rewrite_options()->add_custom_optimizers();
    entry->set_name(kOwnEntry);
    for (const auto& parameter : context.parameters) (*entry->mutable_parameter_map())[parameter.first] = parameter.second;
    tensorflow::string changed;
    // An unset config_proto means "the default"; an entry does not change any other field of it.
    if (config.SerializeToString(&changed)) {
      node->ClearAttr("config_proto");
      node->AddAttr("config_proto", changed);
    }
  }
}

}  // namespace autofuse
