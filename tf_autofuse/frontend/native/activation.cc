#include "activation.h"

#include <algorithm>
#include <atomic>
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

// A function is marked by attributes of its first node, as its body is instantiated without its name, its
// attributes or a library that holds it.
constexpr char kEntryAttr[] = "_autofuse_entry";  // the session's entry, serialized
constexpr char kFunctionAttr[] = "_autofuse_function";
constexpr char kClaimedAttr[] = "_autofuse_claimed";
constexpr char kArgumentsAttr[] = "_autofuse_arguments";
constexpr char kShapesAttr[] = "_autofuse_argument_shapes";

struct Remembered {
  PassContext context;
  tensorflow::uint64 age = 0;
};

// Never destroyed: sessions may be closed after main() has returned.
struct Memory {
  std::mutex mu;
  std::map<const void*, Remembered> sessions;
  tensorflow::uint64 clock = 0;
  // No function has been marked yet: bodies need not be looked at.
  std::atomic<bool> functions_marked{false};
};

Memory& TheMemory() {
  static Memory* memory = new Memory;
  return *memory;
}

using Entry = tensorflow::RewriterConfig::CustomGraphOptimizer;

void ReadEntry(const Entry& entry, PassContext* context) {
  context->entry_name = entry.name();
  for (const auto& parameter : entry.parameter_map()) context->parameters[parameter.first] = parameter.second;
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
    if (node->type_string() == "Placeholder" && graph.versions().producer() < 24 && shape.dims() == 0)
      continue;
    shapes[node->name() + ":0"] = shape;
  }
  return shapes;
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
      ReadEntry(entry, context);
      return true;
    }
  }
  return false;
}

namespace {

// False: the body of a function that no session of ours calls. Takes the marks off.
bool DescribeFunction(tensorflow::Graph* graph, PassContext* seen) {
  for (Node* node : graph->op_nodes()) {
    tensorflow::string text, function;
    if (!tensorflow::GetNodeAttr(node->attrs(), kEntryAttr, &text).ok()) continue;
    Entry entry;
    std::vector<tensorflow::string> arguments;
    std::vector<tensorflow::PartialTensorShape> shapes;
    const bool read = entry.ParseFromString(text) &&
                      tensorflow::GetNodeAttr(node->attrs(), kFunctionAttr, &function).ok() &&
                      tensorflow::GetNodeAttr(node->attrs(), kClaimedAttr, &seen->claimed).ok() &&
                      tensorflow::GetNodeAttr(node->attrs(), kArgumentsAttr, &arguments).ok() &&
                      tensorflow::GetNodeAttr(node->attrs(), kShapesAttr, &shapes).ok();
    for (const char* attr : {kEntryAttr, kFunctionAttr, kClaimedAttr, kArgumentsAttr, kShapesAttr}) {
      node->ClearAttr(attr);
    }
    if (!read) return false;
    ReadEntry(entry, seen);
    seen->is_function = true;
    seen->function_name = function;
    for (size_t i = 0; i < shapes.size() && i < arguments.size(); ++i)
      seen->feed_shapes[arguments[i]] = shapes[i];
    return true;
  }
  return false;
}

}  // namespace

void RememberGraph(const tensorflow::GraphOptimizationPassOptions& options) {
  Memory& memory = TheMemory();
  PassContext seen;
  const bool session = FindEntry(options.session_options->config, &seen);
  if (session) {
    seen.session_handle = options.session_handle;
    seen.feed_shapes = PlaceholderShapes(**options.graph);
  } else if (!memory.functions_marked || !options.session_handle.empty()) {
    return;
  }
  const bool asked = session || DescribeFunction(options.graph->get(), &seen);
  std::lock_guard<std::mutex> lock(memory.mu);
  // The address may have belonged to another session, or to the options of another function on this stack.
  if (!asked) {
    memory.sessions.erase(options.session_options);
    return;
  }
  Remembered& slot = memory.sessions[options.session_options];
  slot.age = ++memory.clock;
  // An extended graph adds to what its session has.
  if (!seen.session_handle.empty() && slot.context.session_handle == seen.session_handle) {
    for (const auto& old : slot.context.feed_shapes) seen.feed_shapes.insert(old);
  }
  slot.context = std::move(seen);
  if (memory.sessions.size() > kMaxSessions) {
    using Item = std::pair<const void* const, Remembered>;
    memory.sessions.erase(
        std::min_element(memory.sessions.begin(), memory.sessions.end(),
                         [](const Item& a, const Item& b) { return a.second.age < b.second.age; }));
  }
}

bool DescribeGraph(const tensorflow::GraphOptimizationPassOptions& options, PassContext* context) {
  Memory& memory = TheMemory();
  const bool session = FindEntry(options.session_options->config, context);
  if (!session && !memory.functions_marked) return false;
  {
    std::lock_guard<std::mutex> lock(memory.mu);
    const auto found = memory.sessions.find(options.session_options);
    if (session && found != memory.sessions.end() && !found->second.context.is_function) {
      context->session_handle = found->second.context.session_handle;
      context->feed_shapes = found->second.context.feed_shapes;
    } else if (!session) {
      if (found == memory.sessions.end() || !found->second.context.is_function) return false;
      *context = std::move(found->second.context);
      memory.sessions.erase(found);
    }
  }
  context->session = reinterpret_cast<size_t>(options.session_options);
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
  return true;
}

CallShapes ShapesOfCalls(const GraphAnalysis& analysis, const SymbolicShapes& shapes) {
  CallShapes result;
  for (const Node* node : analysis.order()) {
    if (!node->IsPartitionedCall()) continue;
    std::vector<tensorflow::PartialTensorShape>& inputs = result[node->name()];
    inputs.resize(node->num_inputs());
    for (const tensorflow::Edge* edge : node->in_edges()) {
      const int source = analysis.index_of(edge->src());
      if (edge->IsControlEdge() || source < 0) continue;
      const OutputShape& shape = shapes.outputs(source)[edge->src_output()];
      if (!shape.rank_known) continue;
      std::vector<tensorflow::int64> dims;
      for (tensorflow::int64 dim : shape.dims) dims.push_back(std::max<tensorflow::int64>(dim, -1));
      tensorflow::PartialTensorShape known;
      if (tensorflow::PartialTensorShape::MakePartialShape(dims.data(), dims.size(), &known).ok()) {
        inputs[edge->dst_input()] = known;
      }
    }
  }
  return result;
}

namespace {

// Calls `use` with the name of every function that a node refers to.
template <typename Attrs, typename Use>
void ForEachFunction(const std::string& op, const Attrs& attrs, Use use) {
  use(op);  // a call may name the function as its op
  for (const auto& attr : attrs) {
    if (attr.second.has_func()) use(attr.second.func().name());
    for (const auto& function : attr.second.list().func()) use(function.name());
  }
}

bool IsCall(const std::string& op) { return op == "PartitionedCall" || op == "StatefulPartitionedCall"; }

}  // namespace

tensorflow::Status PassEntryToFunctions(const PassContext& context, const CallShapes& shapes,
                                        const tensorflow::Graph& graph,
                                        tensorflow::FunctionLibraryDefinition* library) {
  std::vector<std::string> reached;
  std::map<std::string, const Node*> caller;
  for (const Node* node : graph.op_nodes()) {
    if (!IsCall(node->type_string())) continue;
    const auto found = node->def().attr().find("f");
    if (found == node->def().attr().end()) continue;
    reached.push_back(found->second.func().name());
    caller[reached.back()] = node;
  }
  if (reached.empty()) return tensorflow::Status::OK();

  std::map<std::string, int> references;
  const auto count = [&references](const std::string& name) { ++references[name]; };
  for (const Node* node : graph.op_nodes()) ForEachFunction(node->type_string(), node->def().attr(), count);
  for (const auto& name : library->ListFunctionNames()) {
    for (const auto& def : library->Find(name)->node_def()) ForEachFunction(def.op(), def.attr(), count);
  }
  Entry entry;
  entry.set_name(context.entry_name);
  for (const auto& parameter : context.parameters)
    (*entry.mutable_parameter_map())[parameter.first] = parameter.second;
  std::set<std::string> done;
  for (size_t i = 0; i < reached.size(); ++i) {
    const std::string name = reached[i];
    const tensorflow::FunctionDef* function = library->Find(name);
    if (function == nullptr || !done.insert(name).second) continue;
    tensorflow::FunctionDef marked = *function;
    for (const auto& def : marked.node_def()) {
      if (IsCall(def.op()) && def.attr().count("f")) reached.push_back(def.attr().at("f").func().name());
    }
    if (marked.node_def_size() == 0) continue;  // hands its arguments on
    std::vector<tensorflow::string> arguments;
    for (const auto& argument : marked.signature().input_arg()) arguments.push_back(argument.name());
    std::vector<tensorflow::PartialTensorShape> argument_shapes;
    if (references[name] == 1 && caller.count(name)) {
      const auto known = shapes.find(caller[name]->name());
      if (known != shapes.end()) argument_shapes = known->second;
    }
    auto& attrs = *marked.mutable_node_def(0)->mutable_attr();
    if (!entry.SerializeToString(attrs[kEntryAttr].mutable_s())) continue;
    tensorflow::SetAttrValue(name, &attrs[kFunctionAttr]);
    tensorflow::SetAttrValue(IsClaimed(marked), &attrs[kClaimedAttr]);
    tensorflow::SetAttrValue(arguments, &attrs[kArgumentsAttr]);
    tensorflow::SetAttrValue(argument_shapes, &attrs[kShapesAttr]);
    TF_RETURN_IF_ERROR(library->ReplaceFunction(name, marked));
    TheMemory().functions_marked = true;
  }
  return tensorflow::Status::OK();
}

}  // namespace autofuse
