#include "edits.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <functional>
#include <set>

#include "redirect.h"

#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/lib/core/errors.h"
#include "tensorflow/core/util/device_name_utils.h"

namespace autofuse {

using tensorflow::Edge;
using tensorflow::Node;
using tensorflow::Status;
using tensorflow::errors::InvalidArgument;

EditApplier::EditApplier(tensorflow::Graph* graph, const GraphAnalysis& analysis,
                         tensorflow::FunctionLibraryDefinition* library,
                         std::function<bool(const std::string&)> runs_here)
    : graph_(graph),
      analysis_(analysis),
      library_(library),
      runs_here_(std::move(runs_here)),
      nodes_(analysis.order()),
      moved_(nodes_.size()),
      slots_(analysis.order()) {
  for (size_t i = 0; i < nodes_.size(); ++i) {
    names_.insert(nodes_[i]->name());
    rank_[nodes_[i]] = static_cast<int>(i);
  }
}

Liveness EditApplier::LivenessOf(const Edge& edge) const {
  const auto fused = fused_alive_.find(edge.src());
  return fused != fused_alive_.end() ? fused->second : analysis_.EdgeLiveness(edge);
}

Status EditApplier::CheckNodes(const Edit& edit, Region* region) {
  if (edit.op != "AscBackend" && edit.op != "FusedAscBackend") {
    return InvalidArgument("the op is ", edit.op, ", not AscBackend or FusedAscBackend");
  }
  // TensorFlow's rule for the name of a node.
  const auto allowed = [](char c) {
    return isalnum(static_cast<unsigned char>(c)) || strchr("_.\\-/>", c) != nullptr;
  };
  if (edit.name.empty() || !(isalnum(static_cast<unsigned char>(edit.name[0])) || edit.name[0] == '.') ||
      !std::all_of(edit.name.begin(), edit.name.end(), allowed)) {
    return InvalidArgument("'", edit.name, "' is not a valid node name");
  }
  if (names_.count(edit.name)) return InvalidArgument("a node named ", edit.name, " is there already");
  if (edit.nodes.empty() || edit.outputs.empty())
    return InvalidArgument("the region has no node or no output");
  for (int index : edit.nodes) {
    TF_RETURN_IF_ERROR(CheckNode(edit, index));
    Node* node = nodes_[index];
    if (!region->members.insert(node).second) return InvalidArgument(node->name(), " is listed twice");
    region->nodes.push_back(node);
    region->indices.push_back(index);
  }
  TF_RETURN_IF_ERROR(TakeCopies(edit, region));
  std::sort(region->nodes.begin(), region->nodes.end(),
            [this](const Node* a, const Node* b) { return rank_.at(a) < rank_.at(b); });
  const std::string& device = region->nodes[0]->assigned_device_name();
  if (!runs_here_(device))
    return InvalidArgument("its device ", device, " can't run the fused op in this process");
  return Status::OK();
}

// What a node must be to go into a region's function.
Status EditApplier::CheckNode(const Edit& edit, int index) {
  if (index < 0 || index >= static_cast<int>(nodes_.size()))
    return InvalidArgument("no node has number ", index);
  const Node* node = nodes_[index];
  if (node == nullptr) return InvalidArgument("node ", index, " belongs to an earlier region");
  if (node->IsControlFlow() || node->IsArg() || node->IsRetval() || node->IsSend() || node->IsRecv() ||
      node->type_string() == "LoopCond" || node->IsControlTrigger()) {
    return InvalidArgument(node->name(), " (", node->type_string(), ") directs the graph's flow");
  }
  if (node->op_def().is_stateful()) return InvalidArgument(node->name(), " is stateful");
  const auto is_ref = [](tensorflow::DataType type) { return tensorflow::IsRefType(type); };
  if (std::any_of(node->input_types().begin(), node->input_types().end(), is_ref) ||
      std::any_of(node->output_types().begin(), node->output_types().end(), is_ref)) {
    return InvalidArgument(node->name(), " reads or gives a reference");
  }
  // The first node has been checked before the others.
  const Node* first = nodes_[edit.nodes[0]];
  if (node->assigned_device_name() != first->assigned_device_name()) {
    return InvalidArgument(node->name(), " is on ", node->assigned_device_name(), ", ", first->name(), " on ",
                           first->assigned_device_name());
  }
  if (analysis_.frame(index) != analysis_.frame(edit.nodes[0])) {
    return InvalidArgument(node->name(), " is in another while frame than ", first->name());
  }
  return Status::OK();
}

// A copy that only the region reads becomes a node of it; the others are kept in `copies`.
Status EditApplier::TakeCopies(const Edit& edit, Region* region) {
  std::vector<std::pair<int, int>> order;  // rank, index
  for (int index : edit.copies) {
    TF_RETURN_IF_ERROR(CheckNode(edit, index));
    const Node* node = nodes_[index];
    if (region->members.count(node) || !region->copied.insert(node).second)
      return InvalidArgument(node->name(), " is listed twice");
    for (const Edge* edge : node->in_edges()) {
      if (edge->IsControlEdge() && !edge->src()->IsSource())
        return InvalidArgument(node->name(), " waits for ", edge->src()->name(), " and can't be copied");
    }
    order.push_back({rank_.at(node), index});
  }
  // Readers come behind what they read.
  std::sort(order.begin(), order.end(), std::greater<std::pair<int, int>>());
  for (const auto& entry : order) {
    Node* node = nodes_[entry.second];
    const bool read_elsewhere =
        std::any_of(node->out_edges().begin(), node->out_edges().end(), [&](const Edge* edge) {
          return !edge->dst()->IsSink() && (edge->IsControlEdge() || !region->members.count(edge->dst()));
        });
    if (read_elsewhere) {
      region->copies.push_back(node);
    } else {
      region->copied.erase(node);
      region->members.insert(node);
      region->nodes.push_back(node);
      region->indices.push_back(entry.second);
    }
  }
  return Status::OK();
}

Status EditApplier::CheckInputs(const Edit& edit, Region* region) {
  std::set<std::pair<const Node*, int>> given;
  for (const Port& input : edit.inputs) {
    if (input.first < 0 || input.first >= static_cast<int>(nodes_.size())) {
      return InvalidArgument("no node has number ", input.first);
    }
    Source source;
    if (nodes_[input.first] != nullptr) {
      source = {nodes_[input.first], input.second};
    } else {
      const auto moved = moved_[input.first].find(input.second);
      if (moved == moved_[input.first].end()) {
        return InvalidArgument("input ", input.first, ":", input.second, " is hidden in an earlier region");
      }
      source = moved->second;
    }
    if (source.port < 0 || source.port >= source.node->num_outputs()) {
      return InvalidArgument(source.node->name(), " has no output ", source.port);
    }
    if (region->Holds(source.node))
      return InvalidArgument(source.node->name(), " is inside of the region");
    if (tensorflow::IsRefType(source.node->output_type(source.port))) {
      return InvalidArgument(source.node->name(), " gives a reference");
    }
    if (!given.insert({source.node, source.port}).second) {
      return InvalidArgument("input ", source.node->name(), ":", source.port, " is listed twice");
    }
    region->inputs.push_back(source);
  }
  std::unordered_set<const Node*> seen;
  std::set<std::pair<const Node*, int>> read;
  std::vector<const Node*> readers(region->nodes.begin(), region->nodes.end());
  readers.insert(readers.end(), region->copies.begin(), region->copies.end());
  for (const Node* node : readers) {
    for (const Edge* edge : node->in_edges()) {
      if (edge->src()->IsSource() || region->Holds(edge->src())) continue;
      region->alive = Union(region->alive, LivenessOf(*edge));
      if (edge->IsControlEdge()) {
        if (seen.insert(edge->src()).second) region->control_inputs.push_back(edge->src());
        continue;
      }
      read.insert({edge->src(), edge->src_output()});
      if (!given.count({edge->src(), edge->src_output()})) {
        return InvalidArgument(node->name(), " reads ", edge->src()->name(), ":", edge->src_output(),
                               ", which is no input of the region");
      }
    }
  }
  // An input that no node reads could bring in another frame or liveness.
  if (read.size() != given.size()) return InvalidArgument("an input is read by no node of the region");
  if (!analysis_.frame(edit.nodes[0]).empty() && edit.inputs.empty()) {
    return InvalidArgument("a region in a while frame needs a data input");
  }
  std::sort(region->control_inputs.begin(), region->control_inputs.end(),
            [this](const Node* a, const Node* b) { return rank_.at(a) < rank_.at(b); });
  return Status::OK();
}

// What leaves the region must be listed, and must have been alive exactly when the whole region is: one dead
// input makes the fused node dead with all of its outputs.
Status EditApplier::CheckOutputs(const Edit& edit, const Region& region) {
  std::set<std::pair<const Node*, int>> given;
  for (const Port& output : edit.outputs) {
    if (output.first < 0 || output.first >= static_cast<int>(nodes_.size()) ||
        nodes_[output.first] == nullptr || !region.members.count(nodes_[output.first])) {
      return InvalidArgument("output ", output.first, ":", output.second, " is not of the region");
    }
    const Node* node = nodes_[output.first];
    if (output.second < 0 || output.second >= node->num_outputs()) {
      return InvalidArgument(node->name(), " has no output ", output.second);
    }
    if (!given.insert({node, output.second}).second) {
      return InvalidArgument("output ", node->name(), ":", output.second, " is listed twice");
    }
  }
  for (const Node* node : region.nodes) {
    bool leaves = false;
    for (int port = 0; port < node->num_outputs(); ++port) leaves = leaves || given.count({node, port}) > 0;
    for (const Edge* edge : node->out_edges()) {
      if (edge->dst()->IsSink() || region.members.count(edge->dst())) continue;
      leaves = true;
      if (!edge->IsControlEdge() && !given.count({node, edge->src_output()})) {
        return InvalidArgument(edge->dst()->name(), " reads ", node->name(), ":", edge->src_output(),
                               ", which is no output of the region");
      }
    }
    if (leaves && analysis_.liveness(analysis_.index_of(node)) != region.alive) {
      return InvalidArgument(node->name(),
                             " runs under other conditions (tf.cond branch) than the whole region");
    }
  }
  return Status::OK();
}

// A path from the region back into it can only run through positions between its members', so nothing else is
// looked at.
Status EditApplier::CheckNoCycle(Region* region) {
  region->first = region->last = rank_.at(region->nodes[0]);
  for (const Node* node : region->nodes) {
    region->first = std::min(region->first, rank_.at(node));
    region->last = std::max(region->last, rank_.at(node));
  }
  std::vector<const Node*> pending;
  const auto follow = [&](const Node* node) -> const Node* {
    for (const Edge* edge : node->out_edges()) {
      const Node* next = edge->dst();
      if (!next->IsOp() || IsBackEdge(*edge) || rank_.at(next) > region->last) continue;
      if (region->members.count(next)) {
        // The region no longer reads what it has a copy of.
        if (!region->members.count(node) && !region->copied.count(node)) return next;
      } else if (region->followers.insert(next).second) {
        pending.push_back(next);
      }
    }
    return nullptr;
  };
  for (const Node* node : region->nodes) follow(node);
  while (!pending.empty()) {
    const Node* node = pending.back();
    pending.pop_back();
    const Node* reached = follow(node);
    if (reached != nullptr) return InvalidArgument("it would make a cycle through ", reached->name());
  }
  return Status::OK();
}

// What follows a member comes behind the fused node, everything else stays before it: no follower leads to a
// node that is none, so all edges still point forwards.
void EditApplier::Reorder(const Region& region, Node* fused) {
  std::vector<Node*> order, behind;
  for (int at = region.first; at <= region.last; ++at) {
    Node* node = slots_[at];
    slots_[at] = nullptr;
    if (node != nullptr) (region.followers.count(node) ? behind : order).push_back(node);
  }
  order.push_back(fused);
  order.insert(order.end(), behind.begin(), behind.end());
  for (size_t i = 0; i < order.size(); ++i) {
    slots_[region.first + i] = order[i];
    rank_[order[i]] = region.first + static_cast<int>(i);
  }
}

Status EditApplier::Check(const Edit& edit, Region* region) {
  TF_RETURN_IF_ERROR(CheckNodes(edit, region));
  TF_RETURN_IF_ERROR(CheckInputs(edit, region));
  TF_RETURN_IF_ERROR(CheckOutputs(edit, *region));
  return CheckNoCycle(region);
}

Status EditApplier::MakeNode(const Edit& edit, const Region& region, const std::string& function,
                             Node** node) {
  tensorflow::NodeDef def;
  def.set_name(edit.name);
  def.set_op(edit.op);
  def.set_device(region.nodes[0]->assigned_device_name());
  tensorflow::DataTypeVector input_types, output_types;
  for (const Source& input : region.inputs) {
    input_types.push_back(input.node->output_type(input.port));
    def.add_input(tensorflow::strings::StrCat(input.node->name(), ":", input.port));
  }
  for (const Port& output : edit.outputs)
    output_types.push_back(nodes_[output.first]->output_type(output.second));
  std::vector<tensorflow::string> origins;
  for (const Node* origin : region.nodes) origins.push_back(origin->name());
  auto& attrs = *def.mutable_attr();
  for (const auto& attr : edit.attrs) attrs[attr.first] = attr.second;
  tensorflow::SetAttrValue(input_types, &attrs["Tin"]);
  tensorflow::SetAttrValue(output_types, &attrs["Tout"]);
  tensorflow::SetAttrValue(origins, &attrs["origin_nodes"]);
  attrs["fallback"].mutable_func()->set_name(function);
  const tensorflow::OpDef* op_def = nullptr;
  TF_RETURN_IF_ERROR(tensorflow::OpRegistry::Global()->LookUpOpDef(edit.op, &op_def));
  tensorflow::AddDefaultsToNodeDef(*op_def, &def);
  TF_RETURN_IF_ERROR(tensorflow::ValidateNodeDef(def, *op_def));
  Status status;
  *node = graph_->AddNode(def, &status);
  return status;
}

Status EditApplier::GiveConstant(const Edit& edit) {
  const auto node_at = [this](int index) {
    return index < 0 || index >= static_cast<int>(nodes_.size()) ? nullptr : nodes_[index];
  };
  Node* reader = edit.nodes.size() == 1 ? node_at(edit.nodes[0]) : nullptr;
  if (reader == nullptr || edit.slot < 0 || edit.slot >= reader->num_inputs())
    return InvalidArgument(edit.name, " has no reader");
  if (names_.count(edit.name)) return InvalidArgument("a node named ", edit.name, " is there already");
  tensorflow::NodeDef def;
  def.set_name(edit.name);
  def.set_op(kConstant);
  def.set_device(reader->assigned_device_name());
  for (const auto& attr : edit.attrs) (*def.mutable_attr())[attr.first] = attr.second;
  if (def.attr().at("dtype").type() != reader->input_type(edit.slot))
    return InvalidArgument(edit.name, " is of another dtype than ", reader->name(), " reads");
  Status status;
  Node* constant = graph_->AddNode(def, &status);
  TF_RETURN_IF_ERROR(status);
  constant->set_assigned_device_name(reader->assigned_device_name());
  const Edge* read = nullptr;
  TF_RETURN_IF_ERROR(reader->input_edge(edit.slot, &read));
  Redirect(graph_, read, constant, 0);
  names_.insert(edit.name);
  std::vector<int> chain(edit.copies);
  std::sort(chain.begin(), chain.end(), std::greater<int>());  // readers come behind what they read
  for (int index : chain) {
    Node* node = node_at(index);
    if (node == nullptr || std::any_of(node->out_edges().begin(), node->out_edges().end(),
                                       [](const Edge* edge) { return !edge->dst()->IsSink(); }))
      continue;
    nodes_[index] = nullptr;
    slots_[rank_.at(node)] = nullptr;
    rank_.erase(node);
    graph_->RemoveNode(node);
  }
  return Status::OK();
}

Status EditApplier::Apply(const Edit& edit) {
  if (edit.op == kConstant) return GiveConstant(edit);
  Region region;
  TF_RETURN_IF_ERROR(Check(edit, &region));

  std::string key = "region";
  for (const auto& attr : edit.attrs) {
    if (attr.first == "kernel_key") key = attr.second.s();
  }
  std::replace_if(
      key.begin(), key.end(), [](char c) { return !isalnum(static_cast<unsigned char>(c)); }, '_');
  std::string function;
  do {
    function = tensorflow::strings::StrCat(kFallbackPrefix, key, "_", functions_++);
  } while (library_->Contains(function));
  std::vector<std::pair<Node*, int>> inputs, outputs;
  for (const Source& input : region.inputs) inputs.push_back({input.node, input.port});
  for (const Port& output : edit.outputs) outputs.push_back({nodes_[output.first], output.second});
  std::vector<Node*> body = region.nodes;
  body.insert(body.end(), region.copies.begin(), region.copies.end());
  std::sort(body.begin(), body.end(),
            [this](const Node* a, const Node* b) { return rank_.at(a) < rank_.at(b); });
  TF_RETURN_IF_ERROR(library_->AddFunctionDef(RegionFunction(function, body, inputs, outputs)));
  Node* fused = nullptr;
  TF_RETURN_IF_ERROR(MakeNode(edit, region, function, &fused));

  // From here on nothing can be refused any more.
  fused->set_assigned_device_name(region.nodes[0]->assigned_device_name());
  for (size_t i = 0; i < inputs.size(); ++i) graph_->AddEdge(inputs[i].first, inputs[i].second, fused, i);
  for (Node* source : region.control_inputs) graph_->AddControlEdge(source, fused);
  for (size_t k = 0; k < outputs.size(); ++k) {
    std::vector<const Edge*> readers;
    for (const Edge* edge : outputs[k].first->out_edges()) {
      if (edge->src_output() == outputs[k].second && !region.members.count(edge->dst()))
        readers.push_back(edge);
    }
    for (const Edge* edge : readers) {
      Redirect(graph_, edge, fused, static_cast<int>(k));
    }
    moved_[edit.outputs[k].first][edit.outputs[k].second] = {fused, static_cast<int>(k)};
  }
  for (Node* node : region.nodes) {
    std::vector<const Edge*> followers;
    for (const Edge* edge : node->out_edges()) {
      if (edge->IsControlEdge() && edge->dst()->IsOp() && !region.members.count(edge->dst())) {
        followers.push_back(edge);
      }
    }
    for (const Edge* edge : followers) {
      Node* follower = edge->dst();
      graph_->RemoveControlEdge(edge);
      graph_->AddControlEdge(fused, follower);
    }
  }
  for (int index : region.indices) {
    Node* node = nodes_[index];
    nodes_[index] = nullptr;
    slots_[rank_.at(node)] = nullptr;
    rank_.erase(node);
    graph_->RemoveNode(node);
  }
  Reorder(region, fused);
  names_.insert(edit.name);
  fused_alive_[fused] = region.alive;
  return Status::OK();
}

void EditApplier::Finish() { tensorflow::FixupSourceAndSinkEdges(graph_); }

}  // namespace autofuse
