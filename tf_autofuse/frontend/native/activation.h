// Whether a session asked for the plugin, and what its graphs are.
//
// A session does so by a custom_optimizers entry in its ConfigProto named AutofuseOptimizer or NpuOptimizer (the
// latter only where the real NpuOptimizer is not loaded in this process).
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
  bool claimed = false;             // the function belongs to another compiler
  std::vector<std::string> feeds;   // tensor names; argument names of a function
  std::vector<std::string> fetches;
  FeedShapes feed_shapes;
};

// Fills entry_name and parameters. False: the session did not ask.
bool FindEntry(const tensorflow::ConfigProto& config, PassContext* context);

// Called before placement, where the placeholders are still to be seen with their shapes.
void RememberSession(const tensorflow::GraphOptimizationPassOptions& options);

// Called after placement: what RememberSession saw for the same SessionOptions, plus feeds and fetches.
void DescribeGraph(const tensorflow::GraphOptimizationPassOptions& options, PassContext* context);

// Gives the config of the calls to functions that remain in the graph (PartitionedCall) the session's entry, as their
// bodies are optimized under the config in the attribute `config_proto` of the call.
void PassEntryToCalls(const PassContext& context, tensorflow::Graph* graph);

}  // namespace autofuse

#endif  // TF_AUTOFUSE_NATIVE_ACTIVATION_H_
