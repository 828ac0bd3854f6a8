// Symbolic shape inference by TensorFlow's own shape functions.
//
// Each node gets its own InferenceContext, which is kept alive, and receives its producers' ShapeHandles as
// they are. TensorFlow's shape functions pass handles through, so a DimensionHandle that comes out again is
// the same size: it is the symbol. On entry: a graph and its GraphAnalysis. On exit: for every output either
// an unknown rank or a list of dims, each a known size or a symbol number.
//
// What is claimed holds within one execution of a node (one iteration of its frame). Two TensorFlow shape
// functions would break it, as they compare unknown dims by value (-1 == -1): Merge and RefMerge. They are
// replaced here, and Enter, which knows less than it could.
#ifndef TF_AUTOFUSE_NATIVE_SHAPES_H_
#define TF_AUTOFUSE_NATIVE_SHAPES_H_

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis.h"
#include "tensorflow/core/framework/partial_tensor_shape.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/graph/graph.h"

namespace autofuse {

// Tensor name of a feed ("data1:0"), or a function's argument name -> its declared shape.
using FeedShapes = std::map<std::string, tensorflow::PartialTensorShape>;

// The tensor name that a feed node of a session graph stands for ("data1:0" for `_arg_data1_0_3` or
// `_recv_data1_0`), empty for any other node.
std::string FedTensor(const tensorflow::Node& node);
// Likewise for `_retval_<node>_<port>_<n>` and `_send_<node>_<port>`.
std::string FetchedTensor(const tensorflow::Node& node);

struct Symbol {
  std::string origin;  // the tensor on which the symbol is first seen
  int dim;             // and the dim there
};

struct OutputShape {
  bool rank_known = false;
  std::vector<tensorflow::int64> dims;  // size, or -number-1 of a symbol
};

// An integer scalar or vector of which some elements are known to be a size. An unset handle is an unknown
// element (it may be negative at run time, so it is never a symbol).
struct SizeValue {
  bool known = false;
  bool scalar = false;
  std::vector<tensorflow::shape_inference::DimensionHandle> elements;
};

class SymbolicShapes {
 public:
  SymbolicShapes(const tensorflow::Graph& graph, const GraphAnalysis& analysis, const FeedShapes& feeds);

  // Never fails: a shape function that does gives unknown shapes.
  void Infer();

  const std::vector<OutputShape>& outputs(int index) const { return outputs_[index]; }
  const std::vector<Symbol>& symbols() const { return symbols_; }

 private:
  using Context = tensorflow::shape_inference::InferenceContext;
  using ShapeHandle = tensorflow::shape_inference::ShapeHandle;
  using DimensionHandle = tensorflow::shape_inference::DimensionHandle;

  struct LoopMerge {
    int index;  // of the Merge
    int back;   // of the NextIteration
    bool rank_given_up = false;
    std::map<int, DimensionHandle> varies;  // dims that differ between iterations -> their own symbol
  };

  void InferNode(int index);
  void InferMerge(int index);
  // Widens what the back edges contradict. Returns the smallest index whose shapes changed, or -1.
  int WidenLoops();
  void SetFeed(int index);
  void NumberSymbols();
  ShapeHandle InputShape(const tensorflow::Edge* edge);

  // shape_values.cc
  const tensorflow::Tensor* Constant(int index);
  SizeValue InputValue(int index, int input);
  void EvaluateSizes(int index);
  bool EvaluateStridedSlice(int index, SizeValue* out);
  bool ConstantInts(int index, int input, std::vector<tensorflow::int64>* out);

  const tensorflow::Graph& graph_;
  const GraphAnalysis& analysis_;
  const FeedShapes& feeds_;
  std::vector<std::unique_ptr<Context>> contexts_;
  std::vector<std::unique_ptr<Context>> retired_;  // their handles may still be in use
  std::vector<std::vector<const tensorflow::Edge*>> inputs_;
  std::vector<std::vector<SizeValue>> values_;
  std::unordered_map<int, std::unique_ptr<tensorflow::Tensor>> constants_;
  std::vector<LoopMerge> loops_;
  std::unordered_map<int, size_t> loop_of_;
  std::vector<std::vector<OutputShape>> outputs_;
  std::vector<Symbol> symbols_;
};

}  // namespace autofuse

#endif  // TF_AUTOFUSE_NATIVE_SHAPES_H_
