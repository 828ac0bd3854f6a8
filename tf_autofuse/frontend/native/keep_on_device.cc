#include "keep_on_device.h"

#include <map>
#include <vector>

#include "tensorflow/core/framework/node_def_util.h"

namespace autofuse {

using tensorflow::DataType;
using tensorflow::Edge;
using tensorflow::Node;
using tensorflow::Status;

namespace {

struct Change {
  tensorflow::DataTypeVector inputs, outputs;
  std::vector<tensorflow::int32> carries;
  std::map<int, int> resident;  // output -> the output that has it as a Resident
};

// Graphs come out the same in every process.
struct ById {
  bool operator()(const Node* a, const Node* b) const { return a->id() < b->id(); }
};
using Changes = std::map<Node*, Change, ById>;

bool IsMarked(const Node* node) {
  bool marked = false;
  return tensorflow::GetNodeAttr(node->attrs(), kOnDevice, &marked).ok() && marked;
}

Change& ChangeOf(Node* node, Changes* changes) {
  const auto found = changes->find(node);
  if (found != changes->end()) return found->second;
  Change& change = (*changes)[node];
  change.inputs = node->input_types();
  change.outputs = node->output_types();
  for (int o = 0; o < node->num_outputs(); ++o) change.carries.push_back(o);
  return change;
}

bool StaysOnDevice(const Edge* edge) {
  return !edge->IsControlEdge() && IsMarked(edge->src()) && IsMarked(edge->dst()) &&
         edge->src()->assigned_device_name() == edge->dst()->assigned_device_name();
}

// The node as it will be; the old one and its edges are still there.
Status AddChanged(tensorflow::Graph* graph, const Node* node, const Change& change, Node** made) {
  tensorflow::NodeDef def = node->def();
  def.clear_input();  // edges say it
  auto& attrs = *def.mutable_attr();
  tensorflow::SetAttrValue(change.inputs, &attrs["Tin"]);
  tensorflow::SetAttrValue(change.outputs, &attrs["Tout"]);
  tensorflow::SetAttrValue(change.carries, &attrs["carries"]);
  Status status;
  *made = graph->AddNode(def, &status);
  if (status.ok()) (*made)->set_assigned_device_name(node->assigned_device_name());
  return status;
}

}  // namespace

Status KeepOnDevice(tensorflow::Graph* graph) {
  Changes changes;
  for (Node* node : graph->op_nodes()) {
    if (!IsMarked(node)) continue;
    std::map<int, bool> read_elsewhere;  // of outputs that stay
    for (const Edge* edge : node->out_edges()) {
      if (StaysOnDevice(edge)) read_elsewhere[edge->src_output()] = false;
    }
    for (const Edge* edge : node->out_edges()) {
      const auto found = read_elsewhere.find(edge->src_output());
      if (found != read_elsewhere.end() && !StaysOnDevice(edge)) found->second = true;
    }
    for (const auto& output : read_elsewhere) {
      Change& change = ChangeOf(node, &changes);
      int slot = output.first;
      if (output.second) {
        slot = static_cast<int>(change.outputs.size());
        change.outputs.push_back(tensorflow::DT_VARIANT);
        change.carries.push_back(output.first);
      } else {
        change.outputs[slot] = tensorflow::DT_VARIANT;
      }
      change.resident[output.first] = slot;
    }
    for (const Edge* edge : node->out_edges()) {
      if (!StaysOnDevice(edge)) continue;
      ChangeOf(edge->dst(), &changes).inputs[edge->dst_input()] = tensorflow::DT_VARIANT;
    }
  }
  std::map<Node*, Node*, ById> made;
  for (const auto& item : changes) {
    Node* node = nullptr;
    const Status status = AddChanged(graph, item.first, item.second, &node);
    if (!status.ok()) {
      for (const auto& other : made) graph->RemoveNode(other.second);
      return status;
    }
    made[item.first] = node;
  }
  const auto now = [&made](Node* node) {
    const auto found = made.find(node);
    return found == made.end() ? node : found->second;
  };
  for (const auto& item : made) {
    for (const Edge* edge : item.first->in_edges()) {
      int output = edge->src_output();
      if (StaysOnDevice(edge)) output = changes.at(edge->src()).resident.at(output);
      graph->AddEdge(now(edge->src()), output, item.second, edge->dst_input());
    }
    for (const Edge* edge : item.first->out_edges()) {
      // Those to changed nodes are added with the readers.
      if (made.count(edge->dst())) continue;
      graph->AddEdge(item.second, edge->src_output(), edge->dst(), edge->dst_input());
    }
  }
  for (const auto& item : made) graph->RemoveNode(item.first);
  return Status::OK();
}

}  // namespace autofuse
