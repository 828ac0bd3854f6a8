// The original nodes of a region as a TensorFlow function, for the fallback.
#include <algorithm>
#include <map>

#include "edits.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace autofuse {

using tensorflow::Edge;
using tensorflow::FunctionDef;
using tensorflow::Node;

namespace {

// "node:output_arg:index", the form in which a function's nodes name each other's outputs.
std::string OutputName(const Node& node, int port) {
  tensorflow::NameRangeMap ranges;
  TF_CHECK_OK(tensorflow::NameRangesForNode(node, node.op_def(), nullptr, &ranges));
  for (const auto& range : ranges) {
    if (port >= range.second.first && port < range.second.second) {
      return node.name() + ":" + std::string(range.first.data(), range.first.size()) + ":" +
             std::to_string(port - range.second.first);
    }
  }
  LOG(FATAL) << node.name() << " has no output " << port;
  return "";
}

}  // namespace

FunctionDef RegionFunction(const std::string& name, const std::vector<Node*>& nodes,
                           const std::vector<std::pair<Node*, int>>& inputs,
                           const std::vector<std::pair<Node*, int>>& outputs) {
  FunctionDef function;
  tensorflow::OpDef* signature = function.mutable_signature();
  signature->set_name(name);
  std::unordered_set<const Node*> members(nodes.begin(), nodes.end());
  std::map<std::pair<const Node*, int>, std::string> names;
  std::unordered_set<std::string> taken;
  for (const Node* node : nodes) taken.insert(node->name());

  // A node of the region may itself be called "i0".
  std::string prefix;
  const auto clashes = [&]() {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (taken.count(prefix + "i" + std::to_string(i))) return true;
    }
    return false;
  };
  while (clashes()) prefix += "arg_";

  for (size_t i = 0; i < inputs.size(); ++i) {
    auto* arg = signature->add_input_arg();
    arg->set_name(prefix + "i" + std::to_string(i));
    arg->set_type(inputs[i].first->output_type(inputs[i].second));
    names[{inputs[i].first, inputs[i].second}] = arg->name();
  }
  for (const Node* node : nodes) {
    tensorflow::NodeDef* def = function.add_node_def();
    *def = node->def();
    def->clear_input();
    def->clear_device();
    // Colocation named nodes of the outer graph; placement is done.
    def->mutable_attr()->erase("_class");
    std::vector<std::string> data(node->num_inputs());
    std::vector<std::string> control;
    for (const Edge* edge : node->in_edges()) {
      if (edge->IsControlEdge()) {
        if (members.count(edge->src())) control.push_back("^" + edge->src()->name());
        continue;
      }
      data[edge->dst_input()] = members.count(edge->src()) ? OutputName(*edge->src(), edge->src_output())
                                                           : names[{edge->src(), edge->src_output()}];
    }
    std::sort(control.begin(), control.end());
    for (const auto& input : data) def->add_input(input);
    for (const auto& input : control) def->add_input(input);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    auto* result = signature->add_output_arg();
    result->set_name("o" + std::to_string(i));
    result->set_type(outputs[i].first->output_type(outputs[i].second));
    (*function.mutable_ret())[result->name()] = OutputName(*outputs[i].first, outputs[i].second);
  }
  return function;
}

}  // namespace autofuse
