// Structure of a TensorFlow graph that every later step relies on: a topological order, the while
// frame of each node and its liveness class.
//
// On entry: a well-formed Graph (every node reachable from the source node). On exit: `order` holds every
// node but source and sink, producers before consumers except along while-loop back edges (NextIteration ->
// Merge).
#ifndef TF_AUTOFUSE_NATIVE_ANALYSIS_H_
#define TF_AUTOFUSE_NATIVE_ANALYSIS_H_

#include <array>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/lib/core/status.h"

namespace autofuse {

// The conditions under which a node's output is alive, as sorted token numbers. A token stands for one branch
// of one Switch predicate, or for a Merge whose liveness could not be expressed by its inputs. A node runs
// only when all of its tokens hold; the empty set is alive always (within an iteration of its frame).
using Liveness = std::vector<int>;

Liveness Union(const Liveness& a, const Liveness& b);

inline bool IsBackEdge(const tensorflow::Edge& edge) {
  return edge.src()->IsNextIteration() && edge.dst()->IsMerge();
}

class GraphAnalysis {
 public:
  // Errors: InvalidArgument when the graph has a cycle that is no while loop, or ill-formed frames.
  tensorflow::Status Build(const tensorflow::Graph& graph);

  const std::vector<tensorflow::Node*>& order() const { return order_; }
  // Index in order(), or -1 for source, sink and unknown ids.
  int index_of(const tensorflow::Node* node) const {
    return node->id() < static_cast<int>(index_.size()) ? index_[node->id()] : -1;
  }
  // Nested frame names joined by '/'; empty outside of loops.
  const std::string& frame(int index) const { return frames_[index]; }
  const Liveness& liveness(int index) const { return *liveness_[index]; }
  // Equal numbers mean equal liveness; 0 is "always".
  int liveness_class(int index) const { return liveness_class_[index]; }
  // Liveness of what an edge carries: that of its source plus, for a Switch, the branch taken. The tokens are
  // those of the graph that Build saw, also when a predicate has been moved into another node since.
  Liveness EdgeLiveness(const tensorflow::Edge& edge) const;

 private:
  tensorflow::Status Sort(const tensorflow::Graph& graph);
  tensorflow::Status FindFrames(const tensorflow::Graph& graph);
  void FindLiveness();
  Liveness MergeLiveness(const tensorflow::Node& merge);
  int BranchToken(const tensorflow::Node& switch_node, int port);
  int Token(int node, int port, int branch);

  std::vector<tensorflow::Node*> order_;
  std::vector<int> index_;
  std::vector<std::string> frames_;
  std::map<Liveness, int> classes_;
  std::vector<const Liveness*> liveness_;
  std::vector<int> liveness_class_;
  struct TokenInfo {
    int branch;         // 0, 1, or -1 for an opaque Merge
    int sibling;        // token of the other branch, or -1
    bool of_loop_cond;  // the predicate is a LoopCond: dropped at Exit
  };
  std::map<std::vector<int>, int> tokens_;
  std::vector<TokenInfo> token_info_;
  std::unordered_map<int, std::array<int, 2>> branches_;  // by a Switch's index: the tokens of its outputs
};

// OK, or InvalidArgument when the graph has a cycle that is no while loop.
tensorflow::Status CheckAcyclic(const tensorflow::Graph& graph);

}  // namespace autofuse

#endif  // TF_AUTOFUSE_NATIVE_ANALYSIS_H_
