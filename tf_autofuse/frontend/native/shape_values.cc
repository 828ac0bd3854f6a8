// Integer tensors that are made of sizes: what tf.shape and the arithmetic around it give.
//
// With it tf.reshape(x, tf.stack([tf.shape(x)[0], 64])) keeps the symbol of x's first dim. Holds for int32
// and int64 scalars and vectors of at most kMaxElements elements; everything else is simply not known.
#include <algorithm>

#include "shapes.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/tensor.pb.h"

namespace autofuse {

using tensorflow::Edge;
using tensorflow::int64;
using tensorflow::Node;
using tensorflow::Tensor;

namespace {

constexpr int64 kMaxElements = 64;
// Shape functions read small tensors only (axes, perms, paddings, shapes).
constexpr int64 kMaxConstantElements = 1024;

bool IsSizeType(tensorflow::DataType type) {
  return type == tensorflow::DT_INT32 || type == tensorflow::DT_INT64;
}

int64 IntAt(const Tensor& tensor, int64 at) {
  return tensor.dtype() == tensorflow::DT_INT32 ? tensor.flat<tensorflow::int32>()(at)
                                                : tensor.flat<int64>()(at);
}

}  // namespace

const Tensor* SymbolicShapes::Constant(int index) {
  const Node* node = analysis_.order()[index];
  if (!node->IsConstant()) return nullptr;
  const auto found = constants_.find(index);
  if (found != constants_.end()) return found->second.get();
  std::unique_ptr<Tensor>& slot = constants_[index];
  const tensorflow::TensorProto* proto = nullptr;
  if (!tensorflow::GetNodeAttr(node->attrs(), "value", &proto).ok()) return nullptr;
  if (!tensorflow::TensorShape::IsValid(proto->tensor_shape())) return nullptr;
  if (!tensorflow::DataTypeCanUseMemcpy(proto->dtype())) return nullptr;
  if (tensorflow::TensorShape(proto->tensor_shape()).num_elements() > kMaxConstantElements) return nullptr;
  std::unique_ptr<Tensor> tensor(new Tensor);
  if (!tensor->FromProto(*proto)) return nullptr;
  slot = std::move(tensor);
  return slot.get();
}

bool SymbolicShapes::ConstantInts(int index, int input, std::vector<int64>* out) {
  const Edge* edge = inputs_[index][input];
  const int source = edge == nullptr ? -1 : analysis_.index_of(edge->src());
  const Tensor* tensor = source < 0 ? nullptr : Constant(source);
  if (tensor == nullptr || !IsSizeType(tensor->dtype()) || tensor->dims() > 1) return false;
  if (tensor->NumElements() > kMaxElements) return false;
  for (int64 i = 0; i < tensor->NumElements(); ++i) out->push_back(IntAt(*tensor, i));
  return true;
}

SizeValue SymbolicShapes::InputValue(int index, int input) {
  const Edge* edge = inputs_[index][input];
  const int source = edge == nullptr ? -1 : analysis_.index_of(edge->src());
  SizeValue none;
  if (source < 0) return none;
  const auto& values = values_[source];
  // A back edge's value belongs to another iteration.
  if (IsBackEdge(*edge) || edge->src_output() >= static_cast<int>(values.size())) return none;
  return values[edge->src_output()];
}

bool SymbolicShapes::EvaluateStridedSlice(int index, SizeValue* out) {
  const Node* node = analysis_.order()[index];
  const SizeValue in = InputValue(index, 0);
  std::vector<int64> begin, end, strides;
  int begin_mask = 0, end_mask = 0, ellipsis_mask = 0, new_axis_mask = 0, shrink_mask = 0;
  const auto attrs = node->attrs();
  if (!in.known || in.scalar || !ConstantInts(index, 1, &begin) || !ConstantInts(index, 2, &end) ||
      !ConstantInts(index, 3, &strides) || begin.size() != 1 || end.size() != 1 || strides.size() != 1 ||
      !tensorflow::GetNodeAttr(attrs, "begin_mask", &begin_mask).ok() ||
      !tensorflow::GetNodeAttr(attrs, "end_mask", &end_mask).ok() ||
      !tensorflow::GetNodeAttr(attrs, "ellipsis_mask", &ellipsis_mask).ok() ||
      !tensorflow::GetNodeAttr(attrs, "new_axis_mask", &new_axis_mask).ok() ||
      !tensorflow::GetNodeAttr(attrs, "shrink_axis_mask", &shrink_mask).ok() || ellipsis_mask ||
      new_axis_mask) {
    return false;
  }
  const int64 size = static_cast<int64>(in.elements.size());
  int64 from = begin[0] < 0 ? begin[0] + size : begin[0];
  if (shrink_mask & 1) {
    if (from < 0 || from >= size) return false;  // TensorFlow reports it at run time
    out->scalar = true;
    out->elements = {in.elements[from]};
    return true;
  }
  if (strides[0] != 1) return false;
  int64 to = end[0] < 0 ? end[0] + size : end[0];
  if (begin_mask & 1) from = 0;
  if (end_mask & 1) to = size;
  from = std::min(std::max<int64>(from, 0), size);
  to = std::min(std::max<int64>(to, 0), size);
  for (int64 i = from; i < to; ++i) out->elements.push_back(in.elements[i]);
  return true;
}

void SymbolicShapes::EvaluateSizes(int index) {
  const Node* node = analysis_.order()[index];
  Context* c = contexts_[index].get();
  const std::string& op = node->type_string();
  if (node->num_outputs() == 0 || !IsSizeType(node->output_type(0))) return;

  SizeValue out;
  bool known = false;
  if (node->IsConstant()) {
    const Tensor* tensor = Constant(index);
    if (tensor == nullptr || tensor->dims() > 1 || tensor->NumElements() > kMaxElements) return;
    out.scalar = tensor->dims() == 0;
    for (int64 i = 0; i < tensor->NumElements(); ++i) {
      const int64 value = IntAt(*tensor, i);
      out.elements.push_back(value >= 0 ? c->MakeDim(value) : DimensionHandle());
    }
    known = true;
  } else if (op == "Shape" || op == "ShapeN") {
    for (int i = 0; i < node->num_inputs(); ++i) {
      const ShapeHandle shape = c->input(i);
      if (!Context::RankKnown(shape) || Context::Rank(shape) > kMaxElements) continue;
      SizeValue& value = values_[index][i];
      value.known = true;
      for (int d = 0; d < Context::Rank(shape); ++d)
        value.elements.push_back(Context::DimKnownRank(shape, d));
    }
    return;
  } else if (op == "Switch" || op == "Enter") {
    const SizeValue value = InputValue(index, 0);
    for (SizeValue& output : values_[index]) output = value;
    return;
  } else if (op == "Size") {
    out.scalar = true;
    out.elements = {c->NumElements(c->input(0))};
    known = Context::RankKnown(c->input(0));
  } else if (op == "Rank") {
    known = Context::RankKnown(c->input(0));
    out.scalar = true;
    if (known) out.elements = {c->MakeDim(Context::Rank(c->input(0)))};
  } else if (op == "Identity" || op == "Snapshot" || op == "StopGradient" || op == "Cast" ||
             op == "EnsureShape") {
    // A Cast between int32 and int64 keeps a size (TensorFlow's own dims are checked against int32 by Shape).
    if (IsSizeType(node->input_type(0))) {
      out = InputValue(index, 0);
      known = out.known;
    }
  } else if (op == "Pack") {
    known = node->num_inputs() <= kMaxElements;
    for (int i = 0; i < node->num_inputs() && known; ++i) {
      const SizeValue element = InputValue(index, i);
      if (element.known && !element.scalar) return;  // packs vectors: no vector comes out
      if (!element.known && !(Context::RankKnown(c->input(i)) && Context::Rank(c->input(i)) == 0)) return;
      out.elements.push_back(element.known ? element.elements[0] : DimensionHandle());
    }
  } else if (op == "ConcatV2" || op == "Concat") {
    const int first = op == "Concat" ? 1 : 0;
    known = true;
    for (int i = first; i < first + node->num_inputs() - 1 && known; ++i) {
      const SizeValue part = InputValue(index, i);
      known = part.known && !part.scalar;
      out.elements.insert(out.elements.end(), part.elements.begin(), part.elements.end());
    }
    known = known && out.elements.size() <= kMaxElements;
  } else if (op == "StridedSlice") {
    known = EvaluateStridedSlice(index, &out);
  } else if (op == "Slice") {
    const SizeValue in = InputValue(index, 0);
    std::vector<int64> begin, size;
    known = in.known && !in.scalar && ConstantInts(index, 1, &begin) && ConstantInts(index, 2, &size) &&
            begin.size() == 1 && size.size() == 1;
    if (known) {
      const int64 total = static_cast<int64>(in.elements.size());
      const int64 length = size[0] == -1 ? total - begin[0] : size[0];
      known = begin[0] >= 0 && length >= 0 && begin[0] + length <= total;
      for (int64 i = 0; known && i < length; ++i) out.elements.push_back(in.elements[begin[0] + i]);
    }
  } else if (op == "Gather" || op == "GatherV2") {
    const SizeValue in = InputValue(index, 0);
    std::vector<int64> at;
    known = in.known && !in.scalar && ConstantInts(index, 1, &at);
    if (known) {
      out.scalar = Context::RankKnown(c->input(1)) && Context::Rank(c->input(1)) == 0;
      for (int64 i : at) {
        known = known && i >= 0 && i < static_cast<int64>(in.elements.size());
        if (known) out.elements.push_back(in.elements[i]);
      }
    }
  } else if (op == "ExpandDims" || op == "Squeeze" || op == "Reshape") {
    // Between a scalar and a vector of one element; the output's inferred rank tells which.
    out = InputValue(index, 0);
    const ShapeHandle shape = c->output(0);
    known = out.known && Context::RankKnown(shape) && Context::Rank(shape) <= 1;
    if (known) {
      const bool scalar = Context::Rank(shape) == 0;
      known = scalar == out.scalar || out.elements.size() == 1;
      out.scalar = scalar;
    }
  } else if (op == "Unpack") {
    const SizeValue in = InputValue(index, 0);
    if (!in.known || in.scalar || static_cast<int>(in.elements.size()) != node->num_outputs()) return;
    for (int i = 0; i < node->num_outputs(); ++i) {
      values_[index][i].known = values_[index][i].scalar = true;
      values_[index][i].elements = {in.elements[i]};
    }
    return;
  } else if (op == "Add" || op == "AddV2" || op == "Mul" || op == "FloorDiv") {
    // Scalars only. Sizes are not negative, so sums, products and quotients of them are none either.
    const SizeValue a = InputValue(index, 0), b = InputValue(index, 1);
    if (a.known && b.known && a.scalar && b.scalar && a.elements[0].Handle() && b.elements[0].Handle()) {
      DimensionHandle result;
      const DimensionHandle x = a.elements[0], y = b.elements[0];
      if (op == "FloorDiv") {
        known = Context::ValueKnown(y) && Context::Value(y) > 0 && c->Divide(x, y, false, &result).ok();
      } else if (op == "Mul") {
        known = c->Multiply(x, y, &result).ok();
      } else {
        known = c->Add(x, y, &result).ok();
      }
      out.scalar = true;
      out.elements = {result};
    }
  } else if (op == "Prod") {
    const SizeValue in = InputValue(index, 0);
    bool keep_dims = false;
    std::vector<int64> axes;
    known = in.known && !in.scalar && ConstantInts(index, 1, &axes) && axes.size() == 1 &&
            (axes[0] == 0 || axes[0] == -1) &&
            tensorflow::GetNodeAttr(node->attrs(), "keep_dims", &keep_dims).ok();
    if (known) {
      DimensionHandle product = c->MakeDim(1);
      for (const DimensionHandle& element : in.elements) {
        known = known && element.Handle() && c->Multiply(product, element, &product).ok();
      }
      out.scalar = !keep_dims;
      out.elements = {product};
    }
  }
  if (!known) return;
  out.known = true;
  values_[index][0] = std::move(out);
}

}  // namespace autofuse
