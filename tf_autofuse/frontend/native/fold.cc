#include "fold.h"

#include "tensorflow/core/common_runtime/constant_folding.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/function.h"
#include "tensorflow/core/platform/env.h"

namespace autofuse {

using tensorflow::Edge;
using tensorflow::Node;
using tensorflow::Status;

namespace {

bool MayFold(const Node* node) {
  return node->IsOp() && !node->IsControlFlow() && !node->IsArg() && !node->IsRetval() && !node->IsSend() &&
         !node->IsRecv() && !node->op_def().is_stateful() && !node->IsPartitionedCall() &&
         node->type_string() != "AscBackend" && node->type_string() != "FusedAscBackend";
}

}  // namespace

bool NeedsFolding(const tensorflow::Graph& graph) {
  for (const Node* node : graph.op_nodes()) {
    // An Identity of a constant is how a variable's initial value looks; folding it gains nothing by itself.
    if (node->num_inputs() == 0 || node->num_outputs() == 0 || node->IsIdentity() || !MayFold(node)) continue;
    bool constant = true;
    for (const Edge* edge : node->in_edges()) {
      constant = constant && (edge->IsControlEdge() || edge->src()->IsConstant());
    }
    if (constant) return true;
  }
  return false;
}

Status FoldConstants(const tensorflow::DeviceSet* devices, tensorflow::Graph* graph) {
  if (devices == nullptr) return Status::OK();
  for (tensorflow::Device* device : devices->devices()) {
    if (device->device_type() != tensorflow::DEVICE_CPU || !device->IsLocal()) continue;
    tensorflow::ConstantFoldingOptions options;
    const std::string name = device->name();
    options.consider = [&name](const Node* node) {
      return MayFold(node) && node->assigned_device_name() == name;
    };
    bool mutated = false;
    TF_RETURN_IF_ERROR(
        tensorflow::ConstantFold(options, nullptr, tensorflow::Env::Default(), device, graph, &mutated));
    if (mutated) tensorflow::RemoveDeadNodes(graph);
  }
  return Status::OK();
}

}  // namespace autofuse
