"""Graphs of the AscIR API as protobuf text: reading (utils.deserialize) and writing (utils.dump).

The messages are described by the table below; field numbers are ours, for only the text form is ever
exchanged. Upstream's text may hold fields that mean nothing here: those of compute graphs are skipped. On
exit of a reader the graph's expressions print exactly as they were written."""

import json
import threading
from typing import Dict, Optional

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

from tf_autofuse.ascir_api.expression import text
from tf_autofuse.ascir_api.expression_text import parse
from tf_autofuse.ascir_api.graphs import AxisRecord, GraphState, Node
from tf_autofuse.ascir_api.operators_table import ROWS

#: message: fields; `*` repeated, then the type: i int64, b bool, f float, s string, or a message.
_MESSAGES = """
Axis: id i, name s, axis_type i, bind_block b, size s, align s, from *i, split_pair_other_id i,
 allow_oversize_axis b, allow_unaligned_tail b
GraphAttr: tiling_key i, axis *Axis, type i, size_var *s
InputSource: src_node_name s, src_out_index i
Mem: tensor_id i, alloc_type i, position i, hardware i, buf_ids *i, name s, reuse_id i
Que: id i, depth i, buf_num i, name s
Buf: id i, name s
Opt: reuse_id i, ref_tensor i, merge_scope i
TensorAttr: dtype i, axis_ids *i, repeats *s, strides *s, vectorized_axis *i, vectorized_strides *s, mem Mem,
 que Que, buf Buf, opt Opt
Tensor: attr TensorAttr
Sched: exec_order i, axis *i, loop_axis i, exec_condition i
Api: type i, compute_type i, unit i
Value: s s, i i, f f, b b, expression s
AttrEntry: key s, value Value
IrAttr: attr *AttrEntry
TmpBuffer: size s, id i
NodeAttr: name s, type s, sched Sched, api Api, ir_attr_def IrAttr, tmp_buffers *TmpBuffer
IrDef: input_names *s, output_names *s, input_ir_type *i, output_ir_type *i, type s, input_nums *i,
 output_nums *i
AscNodeDef: input_src *InputSource, outputs *Tensor, attr NodeAttr, ir_def IrDef
AscGraphDef: asc_graph_attr GraphAttr, asc_node *AscNodeDef, graph_name s
OpValue: s s, i i, f f, b b
OpAttr: key s, value OpValue
OpDef: name s, type s, input *s, attr *OpAttr
GraphDef: name s, input *s, output *s, op *OpDef
"""
_SCALARS = {"i": 3, "b": 8, "f": 2, "s": 9}
#: attr.api.compute_type by its number in the text.
COMPUTE_TYPES = (
    "load",
    "store",
    "reduce_store",
    "elewise",
    "broadcast",
    "reduce",
    "transpose",
    "concat",
    "gather",
    "cube",
    "split",
    "unknown",
)
_BUFFER, _COMPUTE = 0, 1
_lock = threading.Lock()
_classes: Dict[str, type] = {}


def _message(name: str):
    """An empty message of this name."""
    with _lock:
        if not _classes:
            _classes.update(_build())
    return _classes[name]()


def _build() -> Dict[str, type]:
    file = descriptor_pb2.FileDescriptorProto(
        name="tf_autofuse/ascir_api.proto", package="tf_autofuse.ascir_api", syntax="proto2"
    )
    names = []
    for line in _MESSAGES.replace(",\n", ",").strip().split("\n"):
        name, fields = line.split(":")
        names.append(name)
        message = file.message_type.add(name=name)
        for number, field in enumerate(fields.split(","), 1):
            label, kind = field.split()
            repeated, kind = kind.startswith("*"), kind.lstrip("*")
            entry = message.field.add(name=label, number=number, label=3 if repeated else 1)
            if kind in _SCALARS:
                entry.type = _SCALARS[kind]
            else:
                entry.type, entry.type_name = 11, ".tf_autofuse.ascir_api." + kind
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    descriptors = [pool.FindMessageTypeByName("tf_autofuse.ascir_api." + name) for name in names]
    if hasattr(message_factory, "GetMessageClass"):
        return {d.name: message_factory.GetMessageClass(d) for d in descriptors}
    factory = message_factory.MessageFactory(pool)
    return {d.name: factory.GetPrototype(d) for d in descriptors}


def write_graph(graph: GraphState) -> str:
    """The AscGraphDef text of a graph."""
    message = _message("AscGraphDef")
    message.graph_name = graph.name
    for axis in graph.axes:
        entry = message.asc_graph_attr.axis.add()
        _set(
            entry,
            id=axis.id,
            name=axis.name,
            axis_type=axis.type,
            size=text(axis.size),
            align="1",
            allow_unaligned_tail=True,
        )
        getattr(entry, "from").extend(axis.from_axes)
    message.asc_graph_attr.size_var.extend(graph.sizes)
    for node in graph.nodes:
        _write_node(message.asc_node.add(), node)
    return text_format.MessageToString(message)


def _write_node(entry, node: Node) -> None:
    for link in node.inputs:
        source = entry.input_src.add()
        if link is not None:
            _set(source, src_node_name=link[0].name, src_out_index=link[1])
    for tensor in node.outputs:
        attr = entry.outputs.add().attr
        _set(attr, dtype=tensor.dtype)
        attr.axis_ids.extend(tensor.axis)
        attr.repeats.extend(map(text, tensor.size))
        attr.strides.extend(map(text, tensor.strides))
    entry.attr.name, entry.attr.type = node.name, node.type
    entry.attr.sched.axis.extend(node.axis)
    entry.attr.sched.loop_axis = -1
    entry.attr.api.SetInParent()
    _set(
        entry.attr.api,
        type=_BUFFER if node.is_buffer else _COMPUTE,
        compute_type=COMPUTE_TYPES.index(node.compute),
    )
    for key, value in node.attributes.items():
        _write_value(entry.attr.ir_attr_def.attr.add(key=key).value, value)
    entry.ir_def.type = node.type
    entry.ir_def.output_names.extend(node.output_names)


def _set(message, **values) -> None:
    """Plain fields as proto3 writes them: what is zero or empty is left out."""
    for name, value in values.items():
        if value:
            setattr(message, name, value)


def _write_value(entry, value) -> None:
    for kind, field in ((bool, "b"), (int, "i"), (float, "f"), (str, "s")):
        if isinstance(value, kind):
            setattr(entry, field, value)
            return
    entry.expression = text(value)


def _parsed(name: str, source: str, lenient: bool = False):
    """Raises ValueError."""
    message = _message(name)
    try:
        text_format.Parse(source, message, allow_unknown_field=lenient)
    except text_format.ParseError as error:
        raise ValueError(str(error))
    return message


def read_graph(source: str) -> GraphState:
    """Raises ValueError for what is no AscGraphDef text of known operators."""
    message = _parsed("AscGraphDef", source)
    graph = GraphState(message.graph_name)
    graph.sizes = list(message.asc_graph_attr.size_var)
    for axis in message.asc_graph_attr.axis:
        graph.axes.append(
            AxisRecord(axis.id, axis.name, parse(axis.size), axis.axis_type, getattr(axis, "from"))
        )
    by_name: Dict[str, Node] = {}
    for entry in message.asc_node:
        node = _read_node(entry)
        graph.enter(node)
        by_name.setdefault(node.name, node)
    for entry, node in zip(message.asc_node, graph.nodes):
        node.inputs = [_link(by_name, source) for source in entry.input_src] or node.inputs
    return graph


def _link(by_name: Dict[str, Node], source):
    if not source.src_node_name:
        return None
    node = by_name.get(source.src_node_name)
    if node is None or not 0 <= source.src_out_index < len(node.outputs):
        raise ValueError("there is no output %d of a node %s" % (source.src_out_index, source.src_node_name))
    return node, source.src_out_index


def _read_node(entry) -> Node:
    row = ROWS.get(entry.attr.type)
    if row is None:
        raise ValueError("node %s is of the unknown type %s" % (entry.attr.name, entry.attr.type))
    if any(port.is_list for port in row.outputs):
        names = ["y%d" % i for i in range(len(entry.outputs))]
    else:
        names = [port.name for port in row.outputs]
    if len(names) != len(entry.outputs):
        raise ValueError("node %s has %d outputs, not %d" % (entry.attr.name, len(entry.outputs), len(names)))
    inputs = 0 if any(port.is_list for port in row.inputs) else len(row.inputs)
    node = Node(entry.attr.name, row.name, row, inputs, names)
    for tensor, output in zip(node.outputs, entry.outputs):
        tensor.dtype, tensor.axis = output.attr.dtype, list(output.attr.axis_ids)
        tensor.size = [parse(word) for word in output.attr.repeats]
        tensor.strides = [parse(word) for word in output.attr.strides]
    node.axis = list(entry.attr.sched.axis)
    number = entry.attr.api.compute_type
    node.compute = COMPUTE_TYPES[number] if 0 <= number < len(COMPUTE_TYPES) else "unknown"
    node.is_buffer = (
        entry.attr.api.type == _BUFFER and entry.attr.HasField("api") and row.compute == "unknown"
    )
    known = dict(row.attributes)
    for attr in entry.attr.ir_attr_def.attr:
        kind = {"int": "i", "float": "f", "bool": "b", "str": "s", "SizeExpr": "expression"}.get(
            known.get(attr.key)
        )
        if kind is None:
            continue
        if not attr.value.HasField(kind):
            raise ValueError(
                "node %s, attribute %s is not of type %s" % (node.name, attr.key, known[attr.key])
            )
        value = getattr(attr.value, kind)
        node.attributes[attr.key] = parse(value) if kind == "expression" else value
    return node


def read_compute_graph(source: str) -> GraphState:
    """A GE graph: Data, Output (NetOutput) and AscGraph nodes, the last with their HintGraphs. Raises
    ValueError."""
    message = _parsed("GraphDef", source, lenient=True)
    graph = GraphState(message.name)
    by_name: Dict[str, Node] = {}
    for op in message.op:
        attributes = {a.key: a.value for a in op.attr}
        subgraph = read_graph(attributes["ascgraph"].s) if "ascgraph" in attributes else None
        links = [_ge_link(word) for word in op.input if not word.endswith(":-1")]
        node = Node(op.name, op.type, None, len(links), _output_names(op.type, subgraph))
        node.subgraph = subgraph
        if "index" in attributes:
            node.attributes["index"] = attributes["index"].i
        by_name[op.name] = node
        graph.enter(node)
        node.inputs = links
    for node in graph.nodes:
        node.inputs = [(by_name[name], number) if name in by_name else None for name, number in node.inputs]
    return graph


def _output_names(type_: str, subgraph: Optional[GraphState]):
    count = len({n.attributes.get("index", 0) for n in subgraph.of_type("Output")}) if subgraph else 1
    return ["y%d" % i for i in range(count)]


def _ge_link(word: str):
    name, _, number = word.rpartition(":")
    if not name or not number.lstrip("-").isdigit():
        raise ValueError("not an input of a GE graph: %r" % word)
    return name, int(number)


def read_shape_info(source: str) -> Dict[str, str]:
    """A JSON object of strings; {} for another JSON value. Raises ValueError."""
    value = json.loads(source)
    if not isinstance(value, dict):
        return {}
    if not all(isinstance(v, str) for v in value.values()):
        raise ValueError("a value is no string")
    return value
