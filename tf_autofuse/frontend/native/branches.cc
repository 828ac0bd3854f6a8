#include "branches.h"

#include <deque>
#include <set>
#include <vector>

#include "redirect.h"

#include "tensorflow/core/common_runtime/function.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/grappler/op_types.h"
#include "tensorflow/core/lib/strings/strcat.h"

namespace autofuse {

using tensorflow::Edge;
using tensorflow::Graph;
using tensorflow::Node;
using tensorflow::NodeDef;

namespace {

bool HasControlInput(const Node* node) {
  for (const Edge* edge : node->in_edges()) {
    if (edge->IsControlEdge() && !edge->src()->IsSource()) return true;
  }
  return false;
}

bool HasControlEdges(const Node* node) {
  if (HasControlInput(node)) return true;
  for (const Edge* edge : node->out_edges()) {
    if (edge->IsControlEdge()) return true;  // one to the sink too: a target of the run
  }
  return false;
}

const Edge* DataInput(const Node* node, int index) {
  const Edge* edge = nullptr;
  return node->input_edge(index, &edge).ok() ? edge : nullptr;
}

// The Const that the node is, or shows through Identities; null where there is none, or where something
// orders it: it may then be of a loop's frame.
const Node* ConstantBehind(const Node* node) {
  while (node->IsIdentity() && !HasControlInput(node)) {
    const Edge* edge = DataInput(node, 0);
    if (edge == nullptr) return nullptr;
    node = edge->src();
  }
  return node->IsConstant() && !HasControlInput(node) ? node : nullptr;
}

bool IsKnown(const Node* node, bool* value) {
  const Node* constant = ConstantBehind(node);
  tensorflow::Tensor tensor;
  if (constant == nullptr || !tensorflow::GetNodeAttr(constant->attrs(), "value", &tensor).ok() ||
      tensor.dtype() != tensorflow::DT_BOOL || tensor.dims() != 0) {
    return false;
  }
  *value = tensor.scalar<bool>()();
  return true;
}

// Whether the node need not run once nothing reads it: no state (Assign and its like are not `stateful`, but
// have a ref for an input), no transfer, no feed. Functions are unknown to the registry and stay.
bool IsForItsReadersOnly(const Node* node) {
  return node->IsOp() && !node->IsControlFlow() && tensorflow::grappler::IsFreeOfSideEffect(node->def());
}

constexpr int kUndecided = -1;

class Folding {
 public:
  explicit Folding(Graph* graph)
      : graph_(graph), dead_(graph->num_node_ids(), false), taken_(graph->num_node_ids(), kUndecided) {}

  bool Run() {
    for (Node* node : graph_->op_nodes()) {
      bool value = false;
      if (node->type_string() != "Switch") continue;
      const Edge* predicate = DataInput(node, 1);
      if (predicate == nullptr || !IsKnown(predicate->src(), &value)) continue;
      taken_[node->id()] = value ? 1 : 0;
      decided_.push_back(node);
    }
    if (decided_.empty()) return false;
    SpreadDeath();
    if (!MayGo()) return false;
    for (Node* node : decided_) {
      if (!IsDead(node)) Bypass(node, DataInput(node, 0), taken_[node->id()]);
    }
    for (Node* merge : merges_) BypassMerge(merge);
    for (Node* node : DeadNodes()) Remove(node);
    FreeOfConstants();
    RemoveUnread();
    // Ties what stays without a reader to the sink, or a later pass takes it for dead.
    tensorflow::FixupSourceAndSinkEdges(graph_);
    return true;
  }

 private:
  bool IsDead(const Node* node) const { return node->id() < dead_.size() && dead_[node->id()]; }

  // Before anything is changed.
  bool IsDead(const Edge* edge) const {
    if (IsDead(edge->src())) return true;
    const int taken = taken_[edge->src()->id()];
    return !edge->IsControlEdge() && taken != kUndecided && taken != edge->src_output();
  }

  // As the executor does it: a Merge lives while one input may, whatever its control inputs; a ControlTrigger
  // always; all others die of any input.
  bool Dies(const Node* node) const {
    if (!node->IsOp() || node->type_string() == "ControlTrigger") return false;
    bool any = false, all = true;
    for (const Edge* edge : node->in_edges()) {
      if (edge->IsControlEdge() && node->IsMerge()) continue;
      (IsDead(edge) ? any : all) = IsDead(edge);
    }
    return node->IsMerge() ? any && all : any;
  }

  void SpreadDeath() {
    std::deque<Node*> waiting;
    for (const Node* node : decided_) {
      for (const Edge* edge : node->out_edges()) waiting.push_back(edge->dst());
    }
    while (!waiting.empty()) {
      Node* node = waiting.front();
      waiting.pop_front();
      if (IsDead(node) || !Dies(node)) continue;
      dead_[node->id()] = true;
      for (const Edge* edge : node->out_edges()) waiting.push_back(edge->dst());
    }
  }

  std::vector<Node*> DeadNodes() const {
    std::vector<Node*> found;
    for (Node* node : graph_->op_nodes()) {
      if (IsDead(node)) found.push_back(node);
    }
    return found;
  }

  // Whether nobody can tell the dead from what was never there. Sets merges_.
  bool MayGo() {
    for (const Node* node : DeadNodes()) {
      if (node->IsRetval() || node->IsSend() || node->IsRecv() || node->IsEnter() || node->IsExit() ||
          node->IsNextIteration() || node->IsLoopCond()) {
        return false;
      }
    }
    for (Node* node : graph_->op_nodes()) {
      if (IsDead(node)) continue;
      // What lives on though a control input dies still waits for it, and so for what that waited for.
      if (node->IsMerge() || node->type_string() == "ControlTrigger") {
        for (const Edge* edge : node->in_edges()) {
          if (edge->IsControlEdge() && IsDead(edge)) return false;
        }
      }
      if (!node->IsMerge()) continue;
      int dead = 0, alive = 0;
      for (const Edge* edge : node->in_edges()) {
        if (!edge->IsControlEdge()) ++(IsDead(edge) ? dead : alive);
      }
      if (dead == 0) continue;
      if (alive != 1 || node->type_string() != "Merge") return false;
      merges_.push_back(node);
    }
    return true;
  }

  // The only way by which a node goes: what it read may be without a reader then.
  void Remove(Node* node) {
    for (const Edge* edge : node->in_edges()) released_.insert(edge->src()->id());
    graph_->RemoveNode(node);
  }

  // What only the dead and the decided read, and what only that reads. All else stays, read or not.
  void RemoveUnread() {
    while (!released_.empty()) {
      Node* node = graph_->FindNodeId(*released_.begin());
      released_.erase(released_.begin());
      if (node != nullptr && node->out_edges().empty() && IsForItsReadersOnly(node)) Remove(node);
    }
  }

  // What reads output `port` of the node reads what `from` reads; the node goes. Where it stands in an order,
  // an Identity of its name keeps that.
  void Bypass(Node* node, const Edge* from, int port) {
    Node* source = from->src();
    int output = from->src_output();
    std::vector<const Edge*> readers(node->out_edges().begin(), node->out_edges().end());
    Node* keeper = nullptr;
    // A ref is read when the Switch or Merge runs, not when its readers do.
    if (HasControlEdges(node) || tensorflow::IsRefType(source->output_type(output))) {
      NodeDef def;
      def.set_name(node->name());
      def.set_op("Identity");
      def.set_device(node->requested_device());
      def.add_input(tensorflow::strings::StrCat(source->name(), ":", output));
      tensorflow::AddNodeAttr("T", node->output_type(port), &def);
      tensorflow::Status status;
      keeper = graph_->AddNode(def, &status);
      TF_CHECK_OK(status);
      keeper->set_assigned_device_name(node->assigned_device_name());
      graph_->AddEdge(source, output, keeper, 0);
      for (const Edge* edge : node->in_edges()) {
        if (edge->IsControlEdge()) graph_->AddControlEdge(edge->src(), keeper);
      }
      source = keeper;
      output = 0;
    }
    for (const Edge* edge : readers) {
      if (edge->IsControlEdge()) {
        graph_->AddControlEdge(keeper, edge->dst());
      } else if (edge->src_output() == port && !IsDead(edge->dst())) {
        Redirect(graph_, edge, source, output);
      }
    }
    Remove(node);
  }

  void BypassMerge(Node* merge) {
    const Edge* alive = nullptr;
    std::vector<const Edge*> indexes;
    for (const Edge* edge : merge->in_edges()) {
      if (!edge->IsControlEdge() && !IsDead(edge->src())) alive = edge;
    }
    for (const Edge* edge : merge->out_edges()) {
      if (edge->src_output() == 1) indexes.push_back(edge);
    }
    if (!indexes.empty()) {
      NodeDef def;
      def.set_name(merge->name() + "/autofuse_value_index");
      def.set_op("Const");
      tensorflow::Tensor index(tensorflow::DT_INT32, {});
      index.scalar<tensorflow::int32>()() = alive->dst_input();
      tensorflow::AddNodeAttr("dtype", tensorflow::DT_INT32, &def);
      tensorflow::AddNodeAttr("value", index, &def);
      tensorflow::Status status;
      Node* constant = graph_->AddNode(def, &status);
      TF_CHECK_OK(status);
      constant->set_assigned_device_name(merge->assigned_device_name());
      graph_->AddControlEdge(alive->src(), constant);  // its readers come behind the branch
      for (const Edge* edge : indexes) {
        if (!IsDead(edge->dst())) Redirect(graph_, edge, constant, 0);
      }
    }
    Bypass(merge, alive, 0);
  }

  // To wait for a constant is no order: the Consts of a branch that is always taken are like all others.
  void FreeOfConstants() {
    for (Node* node : graph_->op_nodes()) {
      if (!node->IsIdentity() || ConstantBehind(node) == nullptr) continue;
      std::vector<const Edge*> edges(node->out_edges().begin(), node->out_edges().end());
      for (const Edge* edge : edges) {
        if (!edge->IsControlEdge() || !edge->dst()->IsConstant()) continue;
        graph_->RemoveControlEdge(edge);
        released_.insert(node->id());
      }
    }
  }

  Graph* graph_;
  std::vector<bool> dead_;      // by node id
  std::vector<int> taken_;      // by node id: the output of a decided Switch that lives
  std::vector<Node*> decided_;  // those Switches
  std::vector<Node*> merges_;   // live ones with dead inputs
  std::set<int> released_;      // ids of nodes that lost a reader; an id is never given again
};

}  // namespace

bool FoldBranches(Graph* graph) {
  bool folded = false;
  // The predicates inside of a branch are constants once the branch is no more.
  while (Folding(graph).Run()) folded = true;
  return folded;
}

}  // namespace autofuse
