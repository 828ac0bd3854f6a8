// Whether a session asked for the plugin, and what its graphs are.
//
// A session does so by a custom_optimizers entry in its ConfigProto named AutofuseOptimizer or NpuOptimizer
// (the latter only where the real NpuOptimizer is not loaded in this process).
#ifndef TF_AUTOFUSE_NATIVE_ACTIVATION_H_
#define TF_AUTOFUSE_NATIVE_ACTIVATION_H_

#include <map>
#include <string>
#include <vector>

#include "shapes.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"
#include "tensorflow/core/protobuf/config.pb.h"

namespace autofuse {

struct PassContext {
  std::string entry_name;
  std::map<std::string, tensorflow::AttrValue> parameters;
  size_t session = 0;  // address of the SessionOptions; the same for all graphs of a session
  std::string session_handle;
  bool is_function = false;
  std::string function_name;
  bool claimed = false;            // the function belongs to another compiler
  std::vector<std::string> feeds;  // tensor names; argument names of a function
  std::vector<std::string> fetches;
  FeedShapes feed_shapes;
};

// Whether a session's own config has the entry; fills entry_name and parameters.
bool FindEntry(const tensorflow::ConfigProto& config, PassContext* context);

// Called before placement, where the placeholders are still to be seen with their shapes, and where a
// function's body still has the nodes by which the function can be told.
void RememberGraph(const tensorflow::GraphOptimizationPassOptions& options);

// Called after placement: the entry (of the session, or of the function's session), what RememberGraph saw
// for the same SessionOptions, feeds and fetches. False: nobody asked.
bool DescribeGraph(const tensorflow::GraphOptimizationPassOptions& options, PassContext* context);

// Names of call nodes -> the shapes of their inputs, as far as known.
using CallShapes = std::map<std::string, std::vector<tensorflow::PartialTensorShape>>;
CallShapes ShapesOfCalls(const GraphAnalysis& analysis, const SymbolicShapes& shapes);

// Marks the functions that the graph still calls (PartitionedCall) with the session's entry: TensorFlow
// instantiates their bodies with an empty config. A function with a single caller also learns its arguments'
// shapes.
tensorflow::Status PassEntryToFunctions(const PassContext& context, const CallShapes& shapes,
                                        const tensorflow::Graph& graph,
                                        tensorflow::FunctionLibraryDefinition* library);

}  // namespace autofuse

#endif  // TF_AUTOFUSE_NATIVE_ACTIVATION_H_
