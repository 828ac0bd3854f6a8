#include "shapes.h"

#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/lib/core/errors.h"

namespace autofuse {

using tensorflow::Edge;
using tensorflow::int64;
using tensorflow::Node;
using tensorflow::Status;
using tensorflow::Tensor;
using tensorflow::shape_inference::ShapeAndType;

namespace {

// A loop body whose shapes still move after this many rounds gets unknown ranks.
constexpr int kMaxLoopRounds = 6;

bool TakeNumber(std::string* text, std::string* number) {
  const size_t at = text->rfind('_');
  if (at == std::string::npos || at + 1 == text->size()) return false;
  *number = text->substr(at + 1);
  if (number->find_first_not_of("0123456789") != std::string::npos) return false;
  text->resize(at);
  return true;
}

std::string EndpointTensor(std::string name, const char* prefix, bool has_index) {
  const std::string start(prefix);
  if (name.compare(0, start.size(), start) != 0) return "";
  name.erase(0, start.size());
  std::string index, port;
  if (has_index && !TakeNumber(&name, &index)) return "";
  if (!TakeNumber(&name, &port) || name.empty()) return "";
  return name + ":" + port;
}

}  // namespace

std::string FedTensor(const Node& node) {
  if (node.IsArg()) return EndpointTensor(node.name(), "_arg_", true);
  if (node.IsRecv()) return EndpointTensor(node.name(), "_recv_", false);
  return "";
}

std::string FetchedTensor(const Node& node) {
  if (node.IsRetval()) return EndpointTensor(node.name(), "_retval_", true);
  if (node.IsSend()) return EndpointTensor(node.name(), "_send_", false);
  return "";
}

SymbolicShapes::SymbolicShapes(const tensorflow::Graph& graph, const GraphAnalysis& analysis,
                               const FeedShapes& feeds)
    : graph_(graph), analysis_(analysis), feeds_(feeds) {
  const size_t count = analysis.order().size();
  contexts_.resize(count);
  values_.resize(count);
  inputs_.resize(count);
  outputs_.resize(count);
}

SymbolicShapes::ShapeHandle SymbolicShapes::InputShape(const Edge* edge) {
  const int source = edge == nullptr ? -1 : analysis_.index_of(edge->src());
  if (source < 0 || contexts_[source] == nullptr) return ShapeHandle();
  if (edge->src_output() >= contexts_[source]->num_outputs()) return ShapeHandle();
  return contexts_[source]->output(edge->src_output());
}

void SymbolicShapes::Infer() {
  const auto& order = analysis_.order();
  for (size_t i = 0; i < order.size(); ++i) {
    const Node* node = order[i];
    inputs_[i].assign(node->num_inputs(), nullptr);
    for (const Edge* edge : node->in_edges()) {
      if (!edge->IsControlEdge()) inputs_[i][edge->dst_input()] = edge;
      if (IsBackEdge(*edge)) {
        LoopMerge loop;
        loop.index = static_cast<int>(i);
        loop.back = analysis_.index_of(edge->src());
        loop_of_[loop.index] = loops_.size();
        loops_.push_back(loop);
      }
    }
  }
  for (size_t i = 0; i < order.size(); ++i) InferNode(static_cast<int>(i));
  for (int round = 0; !loops_.empty(); ++round) {
    if (round == kMaxLoopRounds) {
      for (LoopMerge& loop : loops_) loop.rank_given_up = true;
    }
    const int from = round == kMaxLoopRounds ? 0 : WidenLoops();
    if (from < 0) break;
    for (size_t i = from; i < order.size(); ++i) InferNode(static_cast<int>(i));
    if (round == kMaxLoopRounds) break;
  }
  NumberSymbols();
}

void SymbolicShapes::InferNode(int index) {
  Node* node = analysis_.order()[index];
  values_[index].assign(node->num_outputs(), SizeValue());
  if (contexts_[index] != nullptr) retired_.push_back(std::move(contexts_[index]));

  const tensorflow::OpRegistrationData* registered = nullptr;
  std::unique_ptr<Context> context(new Context(graph_.versions().producer(), &node->def(), node->op_def(),
                                               std::vector<ShapeHandle>(node->num_inputs()), {}, {}, {}));
  if (!context->construction_status().ok()) return;  // outputs stay unknown: no context
  Context* c = context.get();
  contexts_[index] = std::move(context);

  std::vector<const Tensor*> tensors(node->num_inputs(), nullptr);
  std::vector<ShapeHandle> as_shapes(node->num_inputs());
  std::vector<std::unique_ptr<Tensor>> made;
  for (int i = 0; i < node->num_inputs(); ++i) {
    const Edge* edge = inputs_[index][i];
    const ShapeHandle shape = InputShape(edge);
    c->SetInput(i, Context::RankKnown(shape) ? shape : c->UnknownShape());
    const int source = edge == nullptr ? -1 : analysis_.index_of(edge->src());
    if (source < 0 || contexts_[source] == nullptr) continue;
    if (edge->src_output() < contexts_[source]->num_outputs()) {
      const auto* handles = contexts_[source]->output_handle_shapes_and_types(edge->src_output());
      if (handles != nullptr) c->set_input_handle_shapes_and_types(i, *handles);
    }
    tensors[i] = Constant(source);
    if (tensors[i] != nullptr) continue;
    const SizeValue value = InputValue(index, i);
    if (!value.known) continue;
    bool all_known = true;
    for (const auto& element : value.elements)
      all_known = all_known && element.Handle() && Context::ValueKnown(element);
    if (all_known) {
      const tensorflow::DataType type = tensorflow::BaseType(node->input_type(i));
      tensorflow::TensorShape shape_of_value;
      if (!value.scalar) shape_of_value.AddDim(value.elements.size());
      made.emplace_back(new Tensor(type, shape_of_value));
      for (size_t k = 0; k < value.elements.size(); ++k) {
        const int64 size = Context::Value(value.elements[k]);
        if (type == tensorflow::DT_INT32) {
          made.back()->flat<tensorflow::int32>()(k) = static_cast<tensorflow::int32>(size);
        } else {
          made.back()->flat<int64>()(k) = size;
        }
      }
      tensors[i] = made.back().get();
    } else if (!value.scalar) {
      // An unknown element becomes a dim of its own at every use: as it may be -1, two uses need not agree.
      std::vector<DimensionHandle> dims;
      for (const auto& element : value.elements) dims.push_back(element.Handle() ? element : c->UnknownDim());
      as_shapes[i] = c->MakeShape(dims);
    }
  }
  c->set_input_tensors(tensors);
  c->set_input_tensors_as_shapes(as_shapes);

  bool inferred = false;
  if (node->IsMerge()) {
    InferMerge(index);
    inferred = true;
  } else if (node->IsArg() || (node->IsRecv() && !FedTensor(*node).empty())) {
    SetFeed(index);
    inferred = true;
  } else if (graph_.op_registry()->LookUp(node->type_string(), &registered).ok() &&
             registered->shape_inference_fn != nullptr) {
    inferred = c->Run(registered->shape_inference_fn).ok();
  }
  // TensorFlow gives what enters a loop an unknown shape, for fear of the loop's Merge. InferMerge sees to
  // that.
  if (node->IsEnter() && inferred) c->set_output(0, c->input(0));
  if (!inferred) {
    for (int i = 0; i < c->num_outputs(); ++i) c->set_output(i, c->UnknownShape());
  }
  // The made tensors die here; a shape function has no business with them afterwards.
  c->set_input_tensors(std::vector<const Tensor*>(node->num_inputs(), nullptr));
  EvaluateSizes(index);
}

void SymbolicShapes::SetFeed(int index) {
  Node* node = analysis_.order()[index];
  Context* c = contexts_[index].get();
  ShapeHandle shape = c->UnknownShape();
  const std::string tensor = FedTensor(*node);
  const auto feed = feeds_.find(tensor.empty() ? node->name() : tensor);
  if (feed != feeds_.end()) {
    if (!c->MakeShapeFromPartialTensorShape(feed->second, &shape).ok()) shape = c->UnknownShape();
  } else {
    std::vector<tensorflow::PartialTensorShape> declared;
    if (tensorflow::GetNodeAttr(node->attrs(), "_output_shapes", &declared).ok() && declared.size() == 1) {
      if (!c->MakeShapeFromPartialTensorShape(declared[0], &shape).ok()) shape = c->UnknownShape();
    }
  }
  c->set_output(0, shape);
}

void SymbolicShapes::InferMerge(int index) {
  Context* c = contexts_[index].get();
  const auto loop = loop_of_.find(index);
  ShapeHandle merged;
  for (int i = 0; i < c->num_inputs(); ++i) {
    const Edge* edge = inputs_[index][i];
    if (edge == nullptr) {
      merged = c->UnknownShape();
      break;
    }
    // The first iteration's shape is assumed here; WidenLoops takes back what the body does not keep.
    if (IsBackEdge(*edge)) continue;
    const ShapeHandle shape = c->input(i);
    if (!merged.Handle()) {
      merged = shape;
      continue;
    }
    if (!Context::RankKnown(shape) || !Context::RankKnown(merged) ||
        Context::Rank(shape) != Context::Rank(merged)) {
      merged = c->UnknownShape();
      break;
    }
    std::vector<DimensionHandle> dims;
    for (int d = 0; d < Context::Rank(shape); ++d) {
      const DimensionHandle a = Context::DimKnownRank(merged, d), b = Context::DimKnownRank(shape, d);
      const bool same = a.SameHandle(b) || (Context::ValueKnown(a) && Context::Value(a) == Context::Value(b));
      dims.push_back(same ? a : c->UnknownDim());
    }
    merged = c->MakeShape(dims);
  }
  if (!merged.Handle()) merged = c->UnknownShape();
  if (loop != loop_of_.end()) {
    const LoopMerge& state = loops_[loop->second];
    if (state.rank_given_up) merged = c->UnknownShape();
    for (const auto& varies : state.varies) {
      if (!Context::RankKnown(merged) || varies.first >= Context::Rank(merged)) break;
      ShapeHandle replaced;
      if (!c->ReplaceDim(merged, varies.first, varies.second, &replaced).ok()) replaced = c->UnknownShape();
      merged = replaced;
    }
  }
  c->set_output(0, merged);
  if (c->num_outputs() > 1) c->set_output(1, c->Scalar());
}

// A loop Merge's assumed shape is an invariant when the body gives it back: same rank, and every dim the same
// handle or the same known size. Otherwise the dim gets a symbol of its own (it varies between iterations),
// for good, so the search ends after at most one round for each dim.
int SymbolicShapes::WidenLoops() {
  int changed = -1;
  for (LoopMerge& loop : loops_) {
    Context* c = contexts_[loop.index] == nullptr ? nullptr : contexts_[loop.index].get();
    if (c == nullptr || loop.rank_given_up) continue;
    const ShapeHandle assumed = c->output(0);
    if (!Context::RankKnown(assumed)) continue;
    const Context* back_context = contexts_[loop.back].get();
    const ShapeHandle back = back_context == nullptr ? ShapeHandle() : back_context->output(0);
    bool moved = false;
    if (!Context::RankKnown(back) || Context::Rank(back) != Context::Rank(assumed)) {
      loop.rank_given_up = moved = true;
    } else {
      for (int d = 0; d < Context::Rank(assumed); ++d) {
        if (loop.varies.count(d)) continue;
        const DimensionHandle a = Context::DimKnownRank(assumed, d), b = Context::DimKnownRank(back, d);
        if (a.SameHandle(b) || (Context::ValueKnown(a) && Context::Value(a) == Context::Value(b))) continue;
        loop.varies[d] = c->UnknownDim();  // c retires but lives as long as this object
        moved = true;
      }
    }
    if (moved && (changed < 0 || loop.index < changed)) changed = loop.index;
  }
  return changed;
}

void SymbolicShapes::NumberSymbols() {
  std::unordered_map<size_t, int64> numbers;
  for (size_t i = 0; i < contexts_.size(); ++i) {
    const Node* node = analysis_.order()[i];
    outputs_[i].assign(node->num_outputs(), OutputShape());
    if (contexts_[i] == nullptr) continue;
    for (int port = 0; port < node->num_outputs() && port < contexts_[i]->num_outputs(); ++port) {
      const ShapeHandle shape = contexts_[i]->output(port);
      if (!Context::RankKnown(shape)) continue;
      OutputShape& out = outputs_[i][port];
      out.rank_known = true;
      for (int d = 0; d < Context::Rank(shape); ++d) {
        const DimensionHandle dim = Context::DimKnownRank(shape, d);
        if (Context::ValueKnown(dim)) {
          out.dims.push_back(Context::Value(dim));
          continue;
        }
        const auto found = numbers.insert({dim.Handle(), static_cast<int64>(symbols_.size())});
        if (found.second) {
          const std::string fed = FedTensor(*node);
          symbols_.push_back({fed.empty() ? node->name() + ":" + std::to_string(port) : fed, d});
        }
        out.dims.push_back(-found.first->second - 1);
      }
    }
  }
}

}  // namespace autofuse
