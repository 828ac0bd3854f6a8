// Edits: a region of nodes is replaced by one AscBackend or FusedAscBackend node.
//
// A region may need nodes that others need too (arithmetic on shapes, whose result the fused op knows by
// itself): `copies`. The fallback function has them as well; those that nothing else reads go with the
// region.
//
// On entry: a graph, its GraphAnalysis and the edits, whose numbers are indices into the analysis' order. On
// exit: each edit is either applied whole or rejected whole with a reason. An edit is checked completely
// before the graph is touched, against the graph as the edits before it left it.
#ifndef TF_AUTOFUSE_NATIVE_EDITS_H_
#define TF_AUTOFUSE_NATIVE_EDITS_H_

#include <functional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "analysis.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/graph/graph.h"

namespace autofuse {

using Port = std::pair<int, int>;  // node index, output

// With op "Const" an edit gives one node, nodes[0], a constant of `attrs` as its input `slot`, and takes away
// what nobody reads any more among `copies`. Such edits come after all others.
constexpr char kConstant[] = "Const";

struct Edit {
  std::string name;
  std::string op;
  std::vector<int> nodes;
  std::vector<int> copies;
  std::vector<Port> inputs;
  std::vector<Port> outputs;
  std::vector<std::pair<std::string, tensorflow::AttrValue>> attrs;
  int slot = -1;
};

struct Rejection {
  std::string name;
  std::string reason;
};

// The name of every fallback function begins with it.
constexpr char kFallbackPrefix[] = "__autofuse_fallback_";

class EditApplier {
 public:
  // `runs_here(device)` says whether this process can run an AscBackend node on that (full) device name.
  EditApplier(tensorflow::Graph* graph, const GraphAnalysis& analysis,
              tensorflow::FunctionLibraryDefinition* library,
              std::function<bool(const std::string&)> runs_here);

  // OK, or InvalidArgument with the reason why this edit is refused (then nothing has changed).
  tensorflow::Status Apply(const Edit& edit);

  // To be called once after the last edit.
  void Finish();

 private:
  struct Source {
    tensorflow::Node* node = nullptr;
    int port = 0;
  };
  struct Region {
    std::vector<tensorflow::Node*> nodes;  // those that the fused node replaces
    std::unordered_set<const tensorflow::Node*> members;
    std::vector<int> indices;  // of `nodes`
    // What stays in the graph and is in the function too.
    std::vector<tensorflow::Node*> copies;
    std::unordered_set<const tensorflow::Node*> copied;

    bool Holds(const tensorflow::Node* node) const { return members.count(node) || copied.count(node); }
    std::vector<Source> inputs;
    std::vector<tensorflow::Node*> control_inputs;  // in topological order, once each
    Liveness alive;
    // Positions of the first and the last member, and what follows a member in between: all that a
    // replacement can bring out of order.
    int first = 0;
    int last = 0;
    std::unordered_set<const tensorflow::Node*> followers;
  };

  tensorflow::Status GiveConstant(const Edit& edit);
  tensorflow::Status Check(const Edit& edit, Region* region);
  tensorflow::Status CheckNodes(const Edit& edit, Region* region);
  tensorflow::Status CheckNode(const Edit& edit, int index);
  tensorflow::Status TakeCopies(const Edit& edit, Region* region);
  tensorflow::Status CheckInputs(const Edit& edit, Region* region);
  tensorflow::Status CheckOutputs(const Edit& edit, const Region& region);
  tensorflow::Status CheckNoCycle(Region* region);
  void Reorder(const Region& region, tensorflow::Node* fused);
  tensorflow::Status MakeNode(const Edit& edit, const Region& region, const std::string& function,
                              tensorflow::Node** node);
  Liveness LivenessOf(const tensorflow::Edge& edge) const;

  tensorflow::Graph* const graph_;
  const GraphAnalysis& analysis_;
  tensorflow::FunctionLibraryDefinition* const library_;
  const std::function<bool(const std::string&)> runs_here_;
  std::vector<tensorflow::Node*> nodes_;  // by index; null once replaced
  std::unordered_set<std::string> names_;
  std::vector<std::unordered_map<int, Source>> moved_;  // by index: where a replaced node's outputs are now
  std::unordered_map<const tensorflow::Node*, Liveness> fused_alive_;
  // The current graph's topological order: a node's position, and back. Replaced nodes leave holes.
  std::unordered_map<const tensorflow::Node*, int> rank_;
  std::vector<tensorflow::Node*> slots_;
  int functions_ = 0;
};

// The region as a function: arguments i0, i1, ... (in the order of `inputs`), results o0, o1, ... (in the
// order of `outputs`), the region's nodes under their own names in between. Each input is (source node,
// port).
tensorflow::FunctionDef RegionFunction(const std::string& name, const std::vector<tensorflow::Node*>& nodes,
                                       const std::vector<std::pair<tensorflow::Node*, int>>& inputs,
                                       const std::vector<std::pair<tensorflow::Node*, int>>& outputs);

}  // namespace autofuse

#endif  // TF_AUTOFUSE_NATIVE_EDITS_H_
