#include "columns.h"

#include <pybind11/numpy.h>

#include <algorithm>
#include <cstring>

#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor.pb.h"

namespace py = pybind11;

namespace autofuse {

using tensorflow::AttrValue;
using tensorflow::DataType;
using tensorflow::Edge;
using tensorflow::int64;
using tensorflow::Node;

namespace {

using AttrMap = google::protobuf::Map<std::string, AttrValue>;

constexpr int64 kMaxConstantBytes = 65536;

// Text where it is UTF-8, bytes elsewhere.
py::object StringToPython(const std::string& text) {
  PyObject* decoded = PyUnicode_DecodeUTF8(text.data(), text.size(), nullptr);
  if (decoded != nullptr) return py::reinterpret_steal<py::object>(decoded);
  PyErr_Clear();
  return py::bytes(text);
}

py::object ShapeToPython(const tensorflow::TensorShapeProto& shape) {
  if (shape.unknown_rank()) return py::none();
  py::tuple dims(shape.dim_size());
  for (int i = 0; i < shape.dim_size(); ++i) dims[i] = py::int_(shape.dim(i).size());
  return std::move(dims);
}

template <typename Items, typename Convert>
py::object ListToPython(const Items& items, Convert convert) {
  py::list list;
  for (const auto& item : items) list.append(convert(item));
  return std::move(list);
}

// Types as their DataType number, shapes as a tuple (-1 unknown) or None. Tensors and functions have no
// meaning for the fusion: a null object.
py::object AttrToPython(const AttrValue& value) {
  const auto to_int = [](int64 item) { return py::int_(item); };
  switch (value.value_case()) {
    case AttrValue::kS:
      return StringToPython(value.s());
    case AttrValue::kI:
      return py::int_(value.i());
    case AttrValue::kF:
      return py::float_(value.f());
    case AttrValue::kB:
      return py::bool_(value.b());
    case AttrValue::kType:
      return py::int_(static_cast<int>(value.type()));
    case AttrValue::kShape:
      return ShapeToPython(value.shape());
    case AttrValue::kList: {
      const auto& list = value.list();
      if (list.tensor_size() || list.func_size()) return py::object();
      if (list.s_size()) return ListToPython(list.s(), StringToPython);
      if (list.i_size()) return ListToPython(list.i(), to_int);
      if (list.f_size()) return ListToPython(list.f(), [](float item) { return py::float_(item); });
      if (list.b_size()) return ListToPython(list.b(), [](bool item) { return py::bool_(item); });
      if (list.type_size()) return ListToPython(list.type(), to_int);
      if (list.shape_size()) return ListToPython(list.shape(), ShapeToPython);
      return py::list();
    }
    default:
      return py::object();
  }
}

bool KeepsAttr(const std::string& name) {
  if (name[0] != '_') return true;
  return name == "_disable_autofuse_scope" || name == "_XlaCompile" || name == "_XlaMustCompile" ||
         name == "_kernel";
}

// Numpy's name of a type, null where it has none. bfloat16 comes as its bits.
const char* NumpyType(DataType type) {
  switch (type) {
    case tensorflow::DT_FLOAT:
      return "float32";
    case tensorflow::DT_DOUBLE:
      return "float64";
    case tensorflow::DT_HALF:
      return "float16";
    case tensorflow::DT_BFLOAT16:
      return "uint16";
    case tensorflow::DT_INT8:
      return "int8";
    case tensorflow::DT_INT16:
      return "int16";
    case tensorflow::DT_INT32:
      return "int32";
    case tensorflow::DT_INT64:
      return "int64";
    case tensorflow::DT_UINT8:
      return "uint8";
    case tensorflow::DT_UINT16:
      return "uint16";
    case tensorflow::DT_UINT32:
      return "uint32";
    case tensorflow::DT_UINT64:
      return "uint64";
    case tensorflow::DT_BOOL:
      return "bool";
    case tensorflow::DT_COMPLEX64:
      return "complex64";
    case tensorflow::DT_COMPLEX128:
      return "complex128";
    default:
      return nullptr;
  }
}

py::object ConstantToPython(const Node& node) {
  const tensorflow::TensorProto* proto = nullptr;
  if (!tensorflow::GetNodeAttr(node.attrs(), "value", &proto).ok()) return py::object();
  const char* type = NumpyType(proto->dtype());
  if (type == nullptr || !tensorflow::TensorShape::IsValid(proto->tensor_shape())) return py::object();
  const tensorflow::TensorShape shape(proto->tensor_shape());
  if (shape.num_elements() > kMaxConstantBytes / tensorflow::DataTypeSize(proto->dtype()))
    return py::object();
  tensorflow::Tensor tensor;
  if (!tensor.FromProto(*proto)) return py::object();
  std::vector<py::ssize_t> dims;
  for (int i = 0; i < shape.dims(); ++i) dims.push_back(shape.dim_size(i));
  py::array array(py::dtype(std::string(type)), dims);
  const auto data = tensor.tensor_data();
  if (!data.empty()) std::memcpy(array.mutable_data(), data.data(), data.size());
  return std::move(array);
}

template <typename Types>
py::tuple TypesToPython(const Types& types) {
  py::tuple result(types.size());
  for (size_t i = 0; i < types.size(); ++i) result[i] = py::int_(static_cast<int>(types[i]));
  return result;
}

bool IsStateful(const Node& node) {
  const auto is_ref = [](DataType type) { return tensorflow::IsRefType(type); };
  return node.op_def().is_stateful() ||
         std::any_of(node.input_types().begin(), node.input_types().end(), is_ref) ||
         std::any_of(node.output_types().begin(), node.output_types().end(), is_ref);
}

}  // namespace

py::dict ColumnsToPython(const GraphAnalysis& analysis, const SymbolicShapes& shapes) {
  py::list names, ops, devices, inputs, control_inputs, in_dtypes, out_dtypes, out_shapes, attrs, colocation,
      frames, liveness, stateful, symbols;
  py::dict constants;
  const auto& order = analysis.order();
  for (size_t i = 0; i < order.size(); ++i) {
    const Node& node = *order[i];
    names.append(StringToPython(node.name()));
    ops.append(py::str(node.type_string()));
    devices.append(py::str(node.assigned_device_name()));

    py::tuple data(node.num_inputs());
    for (int k = 0; k < node.num_inputs(); ++k) data[k] = py::make_tuple(-1, 0);
    std::vector<int> control;
    for (const Edge* edge : node.in_edges()) {
      const int source = analysis.index_of(edge->src());
      if (source < 0) continue;
      if (edge->IsControlEdge()) {
        control.push_back(source);
      } else {
        data[edge->dst_input()] = py::make_tuple(source, edge->src_output());
      }
    }
    inputs.append(data);
    std::sort(control.begin(), control.end());
    control.erase(std::unique(control.begin(), control.end()), control.end());
    py::tuple control_ids(control.size());
    for (size_t k = 0; k < control.size(); ++k) control_ids[k] = py::int_(control[k]);
    control_inputs.append(control_ids);

    in_dtypes.append(TypesToPython(node.input_types()));
    out_dtypes.append(TypesToPython(node.output_types()));
    py::tuple shape_of(node.num_outputs());
    for (int port = 0; port < node.num_outputs(); ++port) {
      const OutputShape& shape = shapes.outputs(i)[port];
      if (!shape.rank_known) {
        shape_of[port] = py::none();
        continue;
      }
      py::tuple dims(shape.dims.size());
      for (size_t d = 0; d < shape.dims.size(); ++d) dims[d] = py::int_(shape.dims[d]);
      shape_of[port] = dims;
    }
    out_shapes.append(shape_of);

    py::dict of_node;
    py::tuple groups(0);
    // By name: a protobuf map has another order in every process.
    std::vector<const AttrMap::value_type*> sorted;
    for (const auto& attr : node.def().attr()) sorted.push_back(&attr);
    std::sort(sorted.begin(), sorted.end(),
              [](const AttrMap::value_type* a, const AttrMap::value_type* b) { return a->first < b->first; });
    for (const AttrMap::value_type* attr : sorted) {
      if (attr->first == "_class") {
        groups = py::tuple(ListToPython(attr->second.list().s(), StringToPython));
      } else if (!attr->first.empty() && KeepsAttr(attr->first)) {
        py::object value = AttrToPython(attr->second);
        if (value) of_node[py::str(attr->first)] = value;
      }
    }
    attrs.append(of_node);
    colocation.append(groups);
    frames.append(StringToPython(analysis.frame(i)));
    liveness.append(py::int_(analysis.liveness_class(i)));
    stateful.append(py::bool_(IsStateful(node)));
    if (node.IsConstant()) {
      py::object value = ConstantToPython(node);
      if (value) constants[py::int_(i)] = value;
    }
  }
  for (const Symbol& symbol : shapes.symbols()) {
    py::dict entry;
    entry["origin"] = StringToPython(symbol.origin);
    entry["dim"] = symbol.dim;
    entry["hint"] = py::none();
    symbols.append(entry);
  }
  py::dict columns;
  columns["names"] = names;
  columns["ops"] = ops;
  columns["devices"] = devices;
  columns["inputs"] = inputs;
  columns["control_inputs"] = control_inputs;
  columns["in_dtypes"] = in_dtypes;
  columns["out_dtypes"] = out_dtypes;
  columns["out_shapes"] = out_shapes;
  columns["attrs"] = attrs;
  columns["colocation"] = colocation;
  columns["frames"] = frames;
  columns["liveness"] = liveness;
  columns["stateful"] = stateful;
  columns["constants"] = constants;
  columns["symbols"] = symbols;
  return columns;
}

py::dict ContextToPython(const PassContext& context) {
  py::dict parameters, result;
  for (const auto& parameter : context.parameters) {
    py::object value = AttrToPython(parameter.second);
    if (value) parameters[py::str(parameter.first)] = value;
  }
  py::list feeds, fetches;
  for (const auto& feed : context.feeds) feeds.append(StringToPython(feed));
  for (const auto& fetch : context.fetches) fetches.append(StringToPython(fetch));
  py::dict signature;
  signature["feeds"] = feeds;
  signature["fetches"] = fetches;
  result["entry"] = context.entry_name;
  result["parameter_map"] = parameters;
  result["session"] = context.session;
  result["session_handle"] = context.session_handle;
  result["is_function"] = context.is_function;
  result["function_name"] = context.function_name;
  result["signature"] = signature;
  return result;
}

namespace {

std::vector<Port> PortsFromPython(const py::handle& ports) {
  std::vector<Port> result;
  for (py::handle port : ports) {
    const py::tuple pair = py::reinterpret_borrow<py::object>(port);
    if (pair.size() != 2) throw py::value_error("a port is a pair (node id, output)");
    result.push_back({pair[0].cast<int>(), pair[1].cast<int>()});
  }
  return result;
}

AttrValue AttrFromPython(const std::string& name, const py::handle& value) {
  AttrValue attr;
  if (py::isinstance<py::bool_>(value)) {
    attr.set_b(value.cast<bool>());
  } else if (py::isinstance<py::int_>(value)) {
    attr.set_i(value.cast<int64>());
  } else if (py::isinstance<py::float_>(value)) {
    attr.set_f(value.cast<float>());
  } else if (py::isinstance<py::str>(value) || py::isinstance<py::bytes>(value)) {
    attr.set_s(value.cast<std::string>());
  } else if (py::isinstance<py::list>(value) || py::isinstance<py::tuple>(value)) {
    for (py::handle item : value) attr.mutable_list()->add_s(item.cast<std::string>());
    attr.mutable_list();
  } else {
    throw py::type_error("attribute '" + name + "' is neither text, bytes, a number nor a list of text");
  }
  return attr;
}

// dtype and value of a Const: a scalar or a vector of int32 or int64.
std::vector<std::pair<std::string, AttrValue>> ConstantAttrs(const py::object& elements, int dtype,
                                                             bool scalar) {
  std::vector<int64> values;
  for (py::handle element : elements) values.push_back(element.cast<int64>());
  const auto type = static_cast<tensorflow::DataType>(dtype);
  if ((type != tensorflow::DT_INT32 && type != tensorflow::DT_INT64) || (scalar && values.size() != 1))
    throw py::type_error("a constant operand is a scalar or a vector of int32 or int64");
  tensorflow::TensorShape shape;
  if (!scalar) shape.AddDim(values.size());
  tensorflow::Tensor tensor(type, shape);
  for (size_t i = 0; i < values.size(); ++i) {
    if (type == tensorflow::DT_INT32) {
      tensor.flat<tensorflow::int32>()(i) = static_cast<tensorflow::int32>(values[i]);
    } else {
      tensor.flat<int64>()(i) = values[i];
    }
  }
  AttrValue kind, value;
  kind.set_type(type);
  tensor.AsProtoTensorContent(value.mutable_tensor());
  return {{"dtype", kind}, {"value", value}};
}

}  // namespace

std::vector<Edit> EditsFromPython(const py::object& edits) {
  std::vector<Edit> result;
  if (edits.is_none()) return result;
  for (py::handle item : edits) {
    const py::dict entry = py::reinterpret_borrow<py::object>(item);
    Edit edit;
    edit.name = entry["name"].cast<std::string>();
    edit.op = entry["op"].cast<std::string>();
    for (py::handle node : entry["nodes"]) edit.nodes.push_back(node.cast<int>());
    if (edit.op == kConstant) edit.slot = entry["slot"].cast<int>();
    if (entry.contains("copies")) {
      for (py::handle node : entry["copies"]) edit.copies.push_back(node.cast<int>());
    }
    if (edit.op == kConstant) {
      edit.attrs = ConstantAttrs(entry["elements"], entry["dtype"].cast<int>(), entry["scalar"].cast<bool>());
      result.push_back(std::move(edit));
      continue;
    }
    edit.inputs = PortsFromPython(entry["inputs"]);
    edit.outputs = PortsFromPython(entry["outputs"]);
    for (auto attr : entry["attrs"].cast<py::dict>()) {
      std::string name = attr.first.cast<std::string>();
      const bool of_op =
          name == "kernel_name" || name == "kernel_key" || name == "asc_graph" || name == "guards";
      // What the op does not declare travels as a private attribute.
      if (!of_op && name[0] != '_') name = "_" + name;
      edit.attrs.push_back({name, AttrFromPython(name, attr.second)});
    }
    result.push_back(std::move(edit));
  }
  return result;
}

}  // namespace autofuse
