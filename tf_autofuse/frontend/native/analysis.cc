#include "analysis.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "tensorflow/core/graph/control_flow.h"
#include "tensorflow/core/lib/core/errors.h"

namespace autofuse {

using tensorflow::Edge;
using tensorflow::Graph;
using tensorflow::Node;
using tensorflow::Status;

namespace {

// Kahn's algorithm with the smallest node id first, so that the same graph always gives the same order.
// Returns the nodes that could be sorted; fewer than the graph's op nodes means a cycle.
std::vector<Node*> SortNodes(const Graph& graph) {
  std::vector<int> pending(graph.num_node_ids(), 0);
  std::priority_queue<int, std::vector<int>, std::greater<int>> ready;
  std::vector<Node*> order;
  order.reserve(graph.num_op_nodes());
  for (Node* node : graph.op_nodes()) {
    int count = 0;
    for (const Edge* edge : node->in_edges()) {
      if (edge->src()->IsOp() && !IsBackEdge(*edge)) ++count;
    }
    pending[node->id()] = count;
    if (count == 0) ready.push(node->id());
  }
  while (!ready.empty()) {
    Node* node = graph.FindNodeId(ready.top());
    ready.pop();
    order.push_back(node);
    for (const Edge* edge : node->out_edges()) {
      if (!edge->dst()->IsOp() || IsBackEdge(*edge)) continue;
      if (--pending[edge->dst()->id()] == 0) ready.push(edge->dst()->id());
    }
  }
  return order;
}

}  // namespace

Liveness Union(const Liveness& a, const Liveness& b) {
  Liveness result;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(result));
  return result;
}

Status CheckAcyclic(const Graph& graph) {
  const size_t sorted = SortNodes(graph).size();
  if (static_cast<int>(sorted) == graph.num_op_nodes()) return Status::OK();
  return tensorflow::errors::InvalidArgument("the graph has a cycle through ", graph.num_op_nodes() - sorted,
                                             " nodes");
}

Status GraphAnalysis::Build(const Graph& graph) {
  TF_RETURN_IF_ERROR(Sort(graph));
  TF_RETURN_IF_ERROR(FindFrames(graph));
  FindLiveness();
  return Status::OK();
}

Status GraphAnalysis::Sort(const Graph& graph) {
  order_ = SortNodes(graph);
  if (static_cast<int>(order_.size()) != graph.num_op_nodes()) {
    return tensorflow::errors::InvalidArgument("the graph has a cycle through ",
                                               graph.num_op_nodes() - order_.size(), " nodes");
  }
  index_.assign(graph.num_node_ids(), -1);
  for (size_t i = 0; i < order_.size(); ++i) index_[order_[i]->id()] = static_cast<int>(i);
  return Status::OK();
}

Status GraphAnalysis::FindFrames(const Graph& graph) {
  frames_.assign(order_.size(), std::string());
  bool loops = false;
  for (const Node* node : order_) loops = loops || node->IsEnter();
  if (!loops) return Status::OK();

  std::vector<tensorflow::ControlFlowInfo> info;
  std::vector<tensorflow::string> unreachable;
  TF_RETURN_IF_ERROR(tensorflow::BuildControlFlowInfo(&graph, &info, &unreachable));
  for (size_t i = 0; i < order_.size(); ++i) {
    const tensorflow::ControlFlowInfo* at = &info[order_[i]->id()];
    std::string path;
    // An Enter's own record names the frame it opens, so following parent_frame walks outwards.
    while (at->frame != nullptr && at->frame->IsEnter()) {
      path = path.empty() ? at->frame_name : at->frame_name + "/" + path;
      if (at->parent_frame == nullptr || !at->parent_frame->IsEnter()) break;
      at = &info[at->parent_frame->id()];
    }
    frames_[i] = path;
  }
  return Status::OK();
}

int GraphAnalysis::Token(int node, int port, int branch) {
  auto inserted = tokens_.insert({{node, port, branch}, static_cast<int>(token_info_.size())});
  if (inserted.second) token_info_.push_back({branch, -1, false});
  return inserted.first->second;
}

int GraphAnalysis::BranchToken(const Node& switch_node, int port) {
  const Edge* predicate = nullptr;
  if (!switch_node.input_edge(1, &predicate).ok()) return Token(switch_node.id(), -2, port);
  // tf.cond switches its pivot on the predicate and everything else on an Identity of it.
  while (predicate->src()->IsIdentity() && !predicate->src()->IsLoopCond()) {
    const Edge* next = nullptr;
    if (!predicate->src()->input_edge(0, &next).ok()) break;
    predicate = next;
  }
  const int node = predicate->src()->id();
  const int token = Token(node, predicate->src_output(), port);
  const int sibling = Token(node, predicate->src_output(), 1 - port);
  token_info_[token].sibling = sibling;
  token_info_[sibling].sibling = token;
  token_info_[token].of_loop_cond = token_info_[sibling].of_loop_cond = predicate->src()->IsLoopCond();
  return token;
}

Liveness GraphAnalysis::EdgeLiveness(const Edge& edge) const {
  const int source = index_of(edge.src());
  if (source < 0) return {};
  const Liveness& alive = *liveness_[source];
  // A control edge out of a Switch fires when the Switch itself ran, whichever branch it took.
  if (!edge.src()->IsSwitch() || edge.IsControlEdge()) return alive;
  return Union(alive, {branches_.at(source)[edge.src_output()]});
}

// A Merge of the two branches of one predicate is alive whenever both share the rest; anything else is
// opaque.
Liveness GraphAnalysis::MergeLiveness(const Node& merge) {
  std::vector<Liveness> inputs;
  for (const Edge* edge : merge.in_edges()) {
    if (!edge->IsControlEdge() && !IsBackEdge(*edge)) inputs.push_back(EdgeLiveness(*edge));
  }
  if (inputs.size() == 1) return inputs[0];
  if (inputs.size() == 2) {
    if (inputs[0] == inputs[1]) return inputs[0];
    Liveness only_a, only_b, both;
    const Liveness &a = inputs[0], &b = inputs[1];
    std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(only_a));
    std::set_difference(b.begin(), b.end(), a.begin(), a.end(), std::back_inserter(only_b));
    std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
    if (only_a.size() == 1 && only_b.size() == 1 && token_info_[only_a[0]].sibling == only_b[0]) return both;
  }
  return {Token(merge.id(), -1, -1)};
}

void GraphAnalysis::FindLiveness() {
  liveness_.assign(order_.size(), nullptr);
  liveness_class_.assign(order_.size(), 0);
  classes_[Liveness()] = 0;
  for (size_t i = 0; i < order_.size(); ++i) {
    const Node& node = *order_[i];
    Liveness alive;
    if (node.IsMerge()) {
      alive = MergeLiveness(node);
    } else {
      for (const Edge* edge : node.in_edges()) {
        const int source = index_of(edge->src());
        // Almost every edge of a real graph is always alive: skip the set algebra there.
        if (source < 0 || (liveness_[source]->empty() && !edge->src()->IsSwitch())) continue;
        alive = Union(alive, EdgeLiveness(*edge));
      }
      if (node.IsExit()) {
        alive.erase(std::remove_if(alive.begin(), alive.end(),
                                   [this](int token) { return token_info_[token].of_loop_cond; }),
                    alive.end());
      }
    }
    auto inserted = classes_.insert({alive, static_cast<int>(classes_.size())});
    liveness_[i] = &inserted.first->first;
    liveness_class_[i] = inserted.first->second;
    if (node.IsSwitch()) branches_[i] = {{BranchToken(node, 0), BranchToken(node, 1)}};
  }
}

}  // namespace autofuse
