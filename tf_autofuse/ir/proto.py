"""FusedGraphs as bytes and back.

Why: an AscBackend node carries its fused graph, so that a process without the optimizer's state (a
distributed worker, a restored graph) can build or find the kernel. On entry of `to_bytes` any FusedGraph, on
exit the same bytes for equal graphs on every run; `from_bytes(to_bytes(f)) == f` (a NaN constant comes back
as a NaN). Bytes are data from outside: whatever is wrong with them is a FormatError, and the graph that comes
out is not verified yet.

The bytes are a body, in which neither the fused op's name nor a TF node's stands, and after it a header with
these: bodies of regions that compute the same are equal. In a body a graph's name is `#+` and what it adds to
the fused op's, and an origin is `#` and its place in the header's list; texts that begin with `#` themselves
have `#=` before them.

Messages are those of autofuse.proto. A message class costs some 10 ms to import, so it is done on first
use.
"""
from typing import Any, Dict, Iterable, Tuple

from tf_autofuse.ir.asc_graph import (
    AscGraph,
    AscNode,
    Axis,
    AxisType,
    FusedGraph,
    KernelIO,
    Memory,
    Position,
    Sched,
    TensorAttr,
    TensorRef,
)
from tf_autofuse.ir.dtypes import BY_TF, DType
from tf_autofuse.symbolic.guards import Guard, InputDim, SizeVar
from tf_autofuse.symbolic.size import SizeExpr, parse, to_text

#: Version of the format: raised by changes that an older reader would misunderstand.
FORMAT = 2


class FormatError(ValueError):
    """Bytes that are no fused graph, or one that a newer version wrote."""


def _messages():
    from tf_autofuse.ir import autofuse_pb2

    return autofuse_pb2


def to_bytes(fused: FusedGraph) -> bytes:
    """The serialized `autofuse.FusedGraph`, deterministic."""
    return with_header(body_bytes(fused), fused.name, fused.origin)


def with_header(body: bytes, name: str, origin: Iterable[str]) -> bytes:
    """The bytes of the fused graph of this body under this name, with these TF nodes. The latter are as
    many as those of the graph that the body was made of."""
    return b"".join([body, _text_field(2, name) if name else b""] + [_text_field(9, o) for o in origin])


def _text_field(number: int, text: str) -> bytes:
    """A string field in protobuf's wire format: an edit has one for every node that it replaces, and
    messages take several times as long."""
    data = text.encode("utf-8")
    if len(data) < 128:
        return bytes((number << 3 | 2, len(data))) + data
    left, length = len(data), bytearray()
    while left > 127:
        length.append(left & 127 | 128)
        left >>= 7
    length.append(left)
    return bytes((number << 3 | 2,)) + bytes(length) + data


def body_bytes(fused: FusedGraph) -> bytes:
    """Everything but the names: equal for fused graphs that differ in nothing else. Deterministic."""
    pb = _messages()
    places = {name: "#%d" % i for i, name in reversed(list(enumerate(fused.origin)))}
    message = pb.FusedGraph(
        format=FORMAT,
        kind=fused.kind,
        inputs=[_write_io(pb, io) for io in fused.inputs],
        outputs=[_write_io(pb, io) for io in fused.outputs],
        sizes=[_write_size_var(pb, v) for v in fused.sizes],
        guards=[
            pb.Guard(kind=g.kind, left=to_text(g.left), right=to_text(g.right), why=g.why)
            for g in fused.guards
        ],
        graphs=[_write_graph(pb, g, fused.name, places) for g in fused.graphs],
    )
    return message.SerializeToString(deterministic=True)


def from_bytes(data: bytes) -> FusedGraph:
    """The FusedGraph that `to_bytes` wrote. Raises FormatError."""
    from google.protobuf.message import DecodeError

    try:
        message = _messages().FusedGraph.FromString(bytes(data))
    except (DecodeError, ValueError) as error:  # ValueError: text that is not UTF-8, in pure-Python builds
        raise FormatError("not a serialized fused graph (%s)" % error)
    # At a stray end-group tag some protobuf builds stop with a mere warning; what was left out shows in the
    # size.
    if message.ByteSize() != len(data):
        raise FormatError(
            "not a serialized fused graph (only %d of its %d bytes are)" % (message.ByteSize(), len(data))
        )
    if message.format > FORMAT:
        raise FormatError(
            "the fused graph %s has format %d; this version of tf_autofuse reads formats up to %d: upgrade "
            "it here, or optimize the graph again with this version"
            % (message.name or "(unnamed)", message.format, FORMAT)
        )
    if message.format < 1:
        raise FormatError("not a serialized fused graph (it has no format number)")
    try:
        return FusedGraph(
            message.name,
            message.kind,
            _all(_read_io, message.inputs),
            _all(_read_io, message.outputs),
            _all(_read_size_var, message.sizes),
            tuple(Guard(g.kind, parse(g.left), parse(g.right), g.why) for g in message.guards),
            tuple(_read_graph(g, message.name, message.origin) for g in message.graphs),
            tuple(message.origin),
        )
    except (ValueError, LookupError, RecursionError) as error:
        raise FormatError(
            "the fused graph %s is damaged (%s: %s)" % (message.name, type(error).__name__, error)
        )


def _all(read, messages) -> Tuple[Any, ...]:
    return tuple(map(read, messages))


def _texts(sizes) -> list:
    return [to_text(s) for s in sizes]


def _write_io(pb, io: KernelIO):
    return pb.KernelIO(dtype=io.dtype.tf, dims=_texts(io.dims))


def _read_io(message) -> KernelIO:
    return KernelIO(BY_TF[message.dtype], _all(parse, message.dims))


def _write_size_var(pb, var: SizeVar):
    message = pb.SizeVar(name=var.name)
    if isinstance(var.source, InputDim):
        message.input_dim.input, message.input_dim.dim = var.source
    else:
        message.size = to_text(var.source)
    if var.hint is not None:
        message.hint = var.hint
    return message


def _read_size_var(message) -> SizeVar:
    source = (
        InputDim(message.input_dim.input, message.input_dim.dim)
        if message.WhichOneof("source") == "input_dim"
        else parse(message.size)
    )
    return SizeVar(message.name, source, message.hint if message.HasField("hint") else None)


def _write_attr(pb, value):
    if isinstance(value, bool):
        return pb.AttrValue(bool=value)
    if isinstance(value, int):
        return pb.AttrValue(uint=value) if value >= 1 << 63 else pb.AttrValue(int=value)
    if isinstance(value, float):
        return pb.AttrValue(float=value)
    if isinstance(value, str):
        return pb.AttrValue(str=value)
    if isinstance(value, SizeExpr):
        return pb.AttrValue(size=to_text(value))
    if isinstance(value, DType):
        return pb.AttrValue(dtype=value.tf)
    if isinstance(value, tuple):
        return pb.AttrValue(list=pb.AttrValue.List(values=[_write_attr(pb, v) for v in value]))
    raise TypeError("an attribute cannot hold a %s" % type(value).__name__)


def _read_attr(message):
    kind = message.WhichOneof("value")
    if kind == "size":
        return parse(message.size)
    if kind == "dtype":
        return BY_TF[message.dtype]
    if kind == "list":
        return _all(_read_attr, message.list.values)
    if kind is None:
        raise ValueError("an attribute without value")
    return getattr(message, kind)


def _literal(text: str) -> str:
    return "#=" + text if text.startswith("#") else text


def _write_graph(pb, graph: AscGraph, fused_name: str, places: Dict[str, str]):
    own = graph.name.startswith(fused_name)
    return pb.AscGraph(
        name="#+" + graph.name[len(fused_name) :] if own else _literal(graph.name),
        form=graph.form,
        loop_axes=graph.loop_axes,
        axes=[
            pb.Axis(id=a.id, name=a.name, size=to_text(a.size), type=a.type.value, from_axes=a.from_axes)
            for a in graph.axes
        ],
        nodes=[_write_node(pb, n, places) for n in graph.nodes],
        sizes=[_write_size_var(pb, v) for v in graph.sizes],
    )


def _read_name(text: str, fused_name: str) -> str:
    if text.startswith("#+"):
        return fused_name + text[2:]
    return text[2:] if text.startswith("#=") else text


def _read_origin(text: str, origin) -> str:
    if text.startswith("#="):
        return text[2:]
    return origin[int(text[1:])] if text.startswith("#") else text


def _read_graph(message, fused_name: str, origin) -> AscGraph:
    axes = tuple(
        Axis(a.id, a.name, parse(a.size), AxisType(a.type), tuple(a.from_axes)) for a in message.axes
    )
    return AscGraph(
        _read_name(message.name, fused_name),
        message.form,
        axes,
        tuple(_read_node(n, origin) for n in message.nodes),
        _all(_read_size_var, message.sizes),
        tuple(message.loop_axes),
    )


def _write_node(pb, node: AscNode, places: Dict[str, str]):
    return pb.AscNode(
        name=node.name,
        type=node.type,
        inputs=[pb.TensorRef(node=r.node, output=r.output) for r in node.inputs],
        outputs=[_write_tensor(pb, y) for y in node.outputs],
        attrs=[pb.Attr(name=name, value=_write_attr(pb, value)) for name, value in node.attrs],
        sched=pb.Sched(axis=node.sched.axis, loop_axis=node.sched.loop_axis),
        origin=[places.get(name) or _literal(name) for name in node.origin],
    )


def _read_node(message, origin) -> AscNode:
    return AscNode(
        message.name,
        message.type,
        tuple(TensorRef(r.node, r.output) for r in message.inputs),
        _all(_read_tensor, message.outputs),
        tuple((a.name, _read_attr(a.value)) for a in message.attrs),
        Sched(tuple(message.sched.axis), message.sched.loop_axis),
        tuple(_read_origin(name, origin) for name in message.origin),
    )


def _write_tensor(pb, y: TensorAttr):
    message = pb.TensorAttr(
        dtype=y.dtype.tf,
        axis=y.axis,
        repeats=_texts(y.repeats),
        strides=_texts(y.strides),
        vectorized_axis=y.vectorized_axis,
        vectorized_strides=_texts(y.vectorized_strides),
    )
    if y.memory is not None:
        message.memory.position = y.memory.position.value
        message.memory.container, message.memory.buf_num = y.memory.container, y.memory.buf_num
    return message


def _read_tensor(message) -> TensorAttr:
    memory = None
    if message.HasField("memory"):
        memory = Memory(Position(message.memory.position), message.memory.container, message.memory.buf_num)
    return TensorAttr(
        BY_TF[message.dtype],
        tuple(message.axis),
        _all(parse, message.repeats),
        _all(parse, message.strides),
        tuple(message.vectorized_axis),
        _all(parse, message.vectorized_strides),
        memory,
    )
