"""One HintGraph of the API (or one part of it, where it concatenates or splits) as one loop nest of this
project's IR.

On entry the live nodes of a graph and, for each Data and Output, what it is in the fused graph; on exit an
AscGraph of form 'hint', without its sizes. Everything that the contract has no words for is a
ConversionError that names the node."""

import re
from typing import Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from tf_autofuse.ascir_api import dtypes
from tf_autofuse.ascir_api.emitter import Emitter, Value, nearest
from tf_autofuse.ascir_api.graphs import BUFFERS, GraphState, Node
from tf_autofuse.ascir_api.meanings import MEANINGS, REDUCTIONS, REFUSED, wide
from tf_autofuse.ascir_api.project_sizes import ConversionError, SizeMaker
from tf_autofuse.ir.asc_graph import AscGraph, TensorAttr, TensorRef
from tf_autofuse.ir.dtypes import BOOL, BY_ASCIR, INT32, INT64, UINT8, DType
from tf_autofuse.symbolic.size import Size, is_static, known_equal, product

_IDENTITIES = ("Nop", "RemovePad", "Transpose")
_INDEXED = ("Gather", "IndirectLoad")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class View(NamedTuple):
    """A view, its three lists of equal length."""

    axis: Tuple[int, ...]
    size: Tuple[Size, ...]
    strides: Tuple[Size, ...]

    def at(self, axis: int) -> Tuple[Size, Size]:
        """(size, stride) along an axis; (1, 0) where the view has none."""
        return (
            (self.size[self.axis.index(axis)], self.strides[self.axis.index(axis)])
            if axis in self.axis
            else (1, 0)
        )


class Part(NamedTuple):
    """What one nest does. axis: the id of the axis that is concatenated or split, None for a whole graph;
    the nest covers `size` of `total` elements from `start`. joint: the Concat or Split node; choice: its
    input or output. sinks: the Output nodes that the nest writes."""

    axis: Optional[int]
    start: Size
    size: Size
    total: Size
    joint: Optional[Node]
    choice: int
    sinks: Tuple[Node, ...]


def dtype_of(node: Node, number: int = 0) -> DType:
    """Raises ConversionError for a dtype that no kernel of this compiler takes."""
    found = BY_ASCIR.get(node.outputs[number].dtype)
    if found is None:
        raise ConversionError(
            "%s: no kernel takes %s" % (node.name, dtypes.serial(node.outputs[number].dtype))
        )
    return found


def view_of(node: Node, number: int, maker: SizeMaker) -> Optional[View]:
    """The view of a node's output, None where it has none. Raises ConversionError for lists of unequal
    length."""
    tensor = node.outputs[number]
    if not tensor.size and not tensor.strides and (not tensor.axis or node.type in BUFFERS):
        return None
    if not len(tensor.axis) == len(tensor.size) == len(tensor.strides):
        if node.type not in BUFFERS:
            raise ConversionError(
                "%s: the view has %d axes, %d sizes, %d strides"
                % (node.name, len(tensor.axis), len(tensor.size), len(tensor.strides))
            )
        if tensor.strides and len(tensor.strides) != len(tensor.size):
            return None
    axis = tuple(tensor.axis) or tuple(range(len(tensor.size)))
    sizes = tuple(map(maker.size, tensor.size))
    strides = tuple(map(maker.size, tensor.strides)) if tensor.strides else _contiguous(sizes)
    return View(axis, sizes, strides)


def _contiguous(sizes: Sequence[Size]) -> Tuple[Size, ...]:
    strides: List[Size] = []
    step: Size = 1
    for size in reversed(sizes):
        strides.insert(0, step)
        step = step * size
    return tuple(strides)


def live_nodes(
    state: GraphState, sinks: Optional[Sequence[Node]] = None, joint: Optional[Node] = None, choice: int = 0
) -> List[Node]:
    """What the Outputs (or `sinks`) need, producers first; of a Concat `joint` only input `choice` counts."""
    order: List[Node] = []
    done: Set[int] = set()
    for sink in state.of_type("Output") if sinks is None else sinks:
        if id(sink) in done:
            continue
        done.add(id(sink))
        stack = [(sink, iter(sink.inputs))]
        while stack:
            node, links = stack[-1]
            for position, link in enumerate(links):
                if link is None:
                    raise ConversionError("%s: an input is not linked" % node.name)
                if id(link[0]) not in done:
                    done.add(id(link[0]))
                    inputs = link[0].inputs
                    if link[0] is joint and joint.type == "Concat":
                        inputs = inputs[choice : choice + 1]
                    stack.append((link[0], iter(inputs)))
                    break
            else:
                order.append(node)
                stack.pop()
    return order


def parts_of(state: GraphState, live: Sequence[Node], maker: SizeMaker) -> List[Part]:
    """The nests that a graph needs: one, or one for each input of its Concat or output of its Split."""
    joints = [n for n in live if n.type in ("Concat", "Split")]
    sinks = tuple(n for n in live if n.type == "Output")
    if not sinks:
        raise ConversionError("graph %s has no Output" % state.name)
    if not joints:
        return [Part(None, 0, 0, 0, None, 0, sinks)]
    if len(joints) > 1:
        raise ConversionError(
            "%s and %s: a graph may have one Concat or Split; put each into a graph of its own"
            % (joints[0].name, joints[1].name)
        )
    joint = joints[0]
    concat = joint.type == "Concat"
    whole = view_of(joint, 0, maker) if concat else view_of(*joint.inputs[0], maker=maker)
    views = (
        [view_of(*link, maker=maker) for link in joint.inputs]
        if concat
        else [view_of(joint, i, maker) for i in range(len(joint.outputs))]
    )
    if whole is None or None in views:
        raise ConversionError("%s: the views of its inputs and outputs must be set" % joint.name)
    axis = next(
        (
            a
            for a, size in zip(whole.axis, whole.size)
            if not all(known_equal(v.at(a)[0], size) for v in views)
        ),
        None,
    )
    if axis is None:
        axis = whole.axis[0]
        if len(views) > 1:
            raise ConversionError("%s: no axis differs between its inputs and outputs" % joint.name)
    total, start, parts = whole.at(axis)[0], 0, []  # type: Size, Size, List[Part]
    for choice, view in enumerate(views):
        size = view.at(axis)[0]
        mine = tuple(s for s in sinks if _reaches(s, joint, None if concat else choice))
        if concat and len(mine) != len(sinks):
            raise ConversionError("%s: every Output of the graph must depend on it" % joint.name)
        if mine:
            parts.append(Part(axis, start, size, total, joint, choice, mine))
        start = start + size
    if not known_equal(start, total):
        raise ConversionError("%s: the parts are %s long, the whole %s" % (joint.name, start, total))
    if not concat and sum(len(p.sinks) for p in parts) != len(sinks):
        raise ConversionError("%s: an Output must depend on one of its outputs" % joint.name)
    return parts


def _reaches(sink: Node, joint: Node, number: Optional[int]) -> bool:
    """Whether `sink` depends on `joint` (on its output `number`)."""
    stack, seen = [sink], set()
    while stack:
        node = stack.pop()
        for link in node.inputs:
            if link is None:
                continue
            if link[0] is joint and (number is None or link[1] == number):
                return True
            if id(link[0]) not in seen and link[0] is not joint:
                seen.add(id(link[0]))
                stack.append(link[0])
    return False


class NestMaker:
    """Walks the nodes of one part. sources: (type, index) of a Data -> ('input' | 'workspace', number);
    sinks: index of an Output -> the same for what it writes."""

    def __init__(
        self, name: str, state: GraphState, live: Sequence[Node], part: Part, maker: SizeMaker, sources, sinks
    ):
        self.state, self.part, self.maker, self.sources, self.sinks = state, part, maker, sources, sinks
        self.live = (
            live_nodes(state, part.sinks, part.joint, part.choice) if part.joint is not None else list(live)
        )
        self.loop = self._loop_axes()
        records = {a.id: a for a in state.axes}
        names: List[str] = []
        axes = []
        for position, id_ in enumerate(self.loop):
            if id_ not in records:
                raise ConversionError("graph %s has no axis %d" % (state.name, id_))
            word = records[id_].name if _NAME.match(records[id_].name) else "z%d" % position
            names.append(word if word not in names else "%s_%d" % (word, position))
            size = part.size if id_ == part.axis else maker.size(records[id_].size)
            axes.append((names[-1], size))
        self.emit = Emitter(_identifier(name), axes or [("z0", 1)])
        self.values: Dict[Tuple[int, int], Value] = {}
        self.memory: Dict[Tuple[str, int], TensorRef] = {}

    def _loop_axes(self) -> Tuple[int, ...]:
        lists = [
            tuple(n.axis) or tuple(n.outputs[0].axis)
            for n in self.live
            if n.type not in BUFFERS and n.outputs
        ]
        longest = max(lists, key=len) if lists else ()
        for node in self.live:
            if node.type not in BUFFERS and not set(node.axis) <= set(longest):
                raise ConversionError("%s: its loop axes are not among those of the other nodes" % node.name)
        return longest

    def graph(self) -> AscGraph:
        for node in self.live:
            self.emit.origin = (node.name,)
            if node.type == "Output":
                self._output(node)
            elif node.type not in ("Data", "ScalarData", "Store"):
                numbers = range(len(node.outputs)) if node.type != "Split" else [self.part.choice]
                for number in numbers:
                    self._compute(node, number)
        return self.emit.graph()

    def _repeats(self, node: Node, view: View) -> Tuple[Tuple[Size, ...], Tuple[Size, ...], Size]:
        """(repeats, strides, offset) over the loop axes, for this part. Raises where an extent is neither 1
        nor the axis's."""
        repeats, strides, offset = [], [], 0  # type: List[Size], List[Size], Size
        extra = [a for a, s in zip(view.axis, view.size) if a not in self.loop and not known_equal(s, 1)]
        if extra:
            raise ConversionError(
                "%s: its view has axis %d, over which the graph does not loop" % (node.name, extra[0])
            )
        for axis, id_ in zip(self.emit.axes, self.loop):
            size, stride = view.at(id_)
            if id_ == self.part.axis and known_equal(size, self.part.total) and not known_equal(size, 1):
                offset, size = offset + self.part.start * stride, self.part.size
            if not known_equal(size, 1) and not known_equal(size, axis.size):
                raise ConversionError(
                    "%s: its size along axis %s is %s, neither 1 nor %s"
                    % (node.name, axis.name, size, axis.size)
                )
            repeats.append(size)
            strides.append(0 if known_equal(size, 1) else stride)
        return tuple(repeats) or (1,), tuple(strides) or (0,), offset

    def _value(self, link) -> Value:
        key = (id(link[0]), link[1])
        if key not in self.values:
            raise ConversionError("%s: %s is memory; read it by a Load" % (self.emit.origin[0], link[0].name))
        return self.values[key]

    def _stored(self, link) -> Value:
        """The value in the dtype that the graph gives it, rounded to that."""
        return self.emit.cast(self._value(link), dtype_of(*link))

    def _operand(self, link) -> Value:
        """The value as an operand: 16-bit floats in float32; flags stay bool for who takes flags."""
        value, dtype = self._value(link), dtype_of(*link)
        return value if value.dtype is BOOL and dtype in (BOOL, UINT8) else self.emit.cast(value, wide(dtype))

    def _compute(self, node: Node, number: int) -> None:
        if node.type in REFUSED:
            raise ConversionError("%s: %s has no kernel: %s" % (node.name, node.type, REFUSED[node.type]))
        if node.type == "Scalar":
            value = self._scalar(node)
        elif node.type == "Load":
            value = self._load(node)
        elif node.type in _INDEXED:
            value = self._gather(node)
        elif node.type == "Workspace":
            value = self._stored(node.inputs[0][0].inputs[0])
        elif node.type in ("Concat", "Split"):
            value = self._value(node.inputs[self.part.choice if node.type == "Concat" else 0])
        elif node.type in _IDENTITIES:
            value = self._value(node.inputs[0])
        elif node.type == "Cast":
            value = self.emit.cast(self._stored(node.inputs[0]), dtype_of(node))
        elif node.type == "Broadcast":
            value = self._value(node.inputs[0])
        elif node.type in REDUCTIONS:
            value = self._reduce(node)
        elif node.type in MEANINGS:
            operands = [self._operand(link) for link in node.inputs]
            if node.type not in (
                "Select",
                "Where",
                "MaskedFill",
                "LogicalAnd",
                "LogicalOr",
                "LogicalNot",
                "LogicalXor",
            ):
                operands = [
                    self.emit.cast(v, dtype_of(*link)) if v.dtype is BOOL else v
                    for v, link in zip(operands, node.inputs)
                ]
            else:
                operands = [
                    self.emit.cast(v, dtype_of(*link)) if v.dtype is BOOL and self._is_number(node, i) else v
                    for i, (v, link) in enumerate(zip(operands, node.inputs))
                ]
            value = MEANINGS[node.type](self.emit, node.attributes, *operands)
        else:
            raise ConversionError("%s: %s has no kernel in this compiler" % (node.name, node.type))
        self.values[id(node), number] = self._placed(node, number, value)

    @staticmethod
    def _is_number(node: Node, position: int) -> bool:
        """Whether an input of an operator with flags is a value and no flag."""
        flags = {"Select": (0,), "Where": (0,), "MaskedFill": (1,)}.get(node.type)
        return flags is not None and position not in flags

    def _placed(self, node: Node, number: int, value: Value) -> Value:
        """The value with the dtype (or what it is computed in) and extents that the graph gives it."""
        dtype = dtype_of(node, number)
        if value.dtype is not dtype and value.dtype is not wide(dtype):
            if not (value.dtype is BOOL and dtype in (BOOL, UINT8)):
                value = self.emit.cast(value, wide(dtype))
        view = view_of(node, number, self.maker) if node.type not in BUFFERS else None
        if view is None:
            return value
        repeats, _, _ = self._repeats(node, view)
        return (
            value
            if value.repeats is None and node.type != "Broadcast"
            else self.emit.broadcast(value, repeats)
        )

    def _scalar(self, node: Node) -> Value:
        dtype, word = dtype_of(node), node.attributes.get("value", "")
        try:
            if dtype is BOOL:
                number = {"true": True, "false": False}.get(word.lower())
                number = bool(float(word)) if number is None else number
            elif dtype.is_floating:
                number = nearest(float(word.rstrip("fF") if "inf" not in word.lower() else word), dtype)
            else:
                number = (
                    int(word, 0)
                    if not any(c in word for c in ".eE") or word.lower().startswith("0x")
                    else int(float(word))
                )
        except (ValueError, OverflowError):
            raise ConversionError("%s: %r is no %s" % (node.name, word, dtype.name))
        return self.emit.constant(number, wide(dtype))

    def _memory(self, node: Node) -> TensorRef:
        kind, number = self.sources[node.type, node.attributes.get("index", 0)]
        if (kind, number) not in self.memory:
            type_ = "Data" if kind == "input" else "Workspace"
            self.memory[kind, number] = self.emit.add(type_, (), TensorAttr(dtype_of(node)), index=number)
        return self.memory[kind, number]

    def _load(self, node: Node) -> Value:
        source = node.inputs[0][0]
        if source.type == "Workspace":
            return self._through_workspace(node, source)
        if source.type not in ("Data", "ScalarData"):
            raise ConversionError("%s: a Load reads Data or a Workspace, not %s" % (node.name, source.type))
        view = view_of(node, 0, self.maker) or View((), (), ())
        wanted, strides, offset = self._repeats(node, view)
        repeats = tuple(1 if known_equal(s, 0) else r for r, s in zip(wanted, strides))
        if "offset" in node.attributes:
            offset = offset + self.maker.size(node.attributes["offset"])
        ref = self.emit.add(
            "Load", (self._memory(source),), self.emit.view(dtype_of(source), repeats, strides), offset=offset
        )
        return self.emit.broadcast(Value(ref, dtype_of(source), repeats), wanted)

    def _through_workspace(self, node: Node, source: Node) -> Value:
        """What one nest stores into a Workspace and loads again as it is stays where it is."""
        store = source.inputs[0][0]
        written, read = view_of(store, 0, self.maker), view_of(node, 0, self.maker)
        offsets = [n.attributes.get("offset") for n in (store, node)]
        if written != read or offsets[0] != offsets[1]:
            raise ConversionError(
                "%s: within one graph a Workspace is read just as it is written; split the graph" % node.name
            )
        return self._stored(store.inputs[0])

    def _gather(self, node: Node) -> Value:
        source = node.inputs[0][0]
        if source.type != "Data":
            raise ConversionError("%s: its x1 must be Data" % node.name)
        table, view = view_of(source, 0, self.maker), view_of(node, 0, self.maker)
        if table is None or view is None:
            raise ConversionError("%s: the views of its x1 and output must be set" % node.name)
        rank, axis = len(table.size), node.attributes.get("axis", 0)
        axis = axis + rank if axis < 0 else axis
        behind = rank - axis - 1
        if not 0 <= axis < rank or len(view.axis) < axis + behind:
            raise ConversionError("%s: x1 of rank %d has no axis %d" % (node.name, rank, axis))
        own = dict(zip(view.axis[:axis], table.strides[:axis]))
        own.update(zip(view.axis[len(view.axis) - behind :], table.strides[axis + 1 :]))
        repeats, _, _ = self._repeats(node, view)
        strides = tuple(0 if known_equal(r, 1) else own.get(id_, 0) for r, id_ in zip(repeats, self.loop))
        index = self._stored(node.inputs[1])
        if index.dtype not in (INT32, INT64):
            raise ConversionError("%s: its index is %s" % (node.name, index.dtype.name))
        ref = self.emit.add(
            "Gather",
            (self._memory(source), index.ref),
            self.emit.view(dtype_of(source), repeats, strides),
            index_stride=table.strides[axis],
            index_size=table.size[axis],
            offset=0,
        )
        return Value(ref, dtype_of(source), repeats)

    def _reduce(self, node: Node) -> Value:
        link = node.inputs[0]
        value = self.emit.flag(self._value(link)) if node.type in ("Any", "All") else self._operand(link)
        value = (
            self.emit.cast(value, dtype_of(*link))
            if node.type not in ("Any", "All") and value.dtype is BOOL
            else value
        )
        view = view_of(node, 0, self.maker)
        if view is None:
            raise ConversionError("%s: its view says which axes are reduced; it must be set" % node.name)
        repeats, _, _ = self._repeats(node, view)
        if value.repeats is None:
            value = self.emit.broadcast(value, self.emit.ones())
        axes = tuple(
            i
            for i, (before, after) in enumerate(zip(value.repeats, repeats))
            if known_equal(after, 1) and not known_equal(before, 1)
        )
        op = REDUCTIONS[node.type]
        if not axes:
            return self.emit.constant(0, INT64) if op == "ArgMax" else value
        count = product(value.repeats[i] for i in axes)
        value = self.emit.reduce(op, value, axes, INT64 if op == "ArgMax" else value.dtype)
        if node.type == "Mean":
            number = float(count) if is_static(count) else count
            value = self.emit.call("Div", value, self.emit.constant(number, value.dtype))
        return value

    def _output(self, node: Node) -> None:
        for kind, number in self.sinks.get(node.attributes.get("index", 0), ()):
            stores = []
            for store, _ in node.inputs:
                if store.type != "Store":
                    raise ConversionError("%s: an Output reads Stores, not %s" % (node.name, store.type))
                stores.append(self._store(store))
            type_ = "Output" if kind == "output" else "Workspace"
            self.emit.add(type_, stores, TensorAttr(dtype_of(node.inputs[0][0])), index=number)

    def _store(self, node: Node) -> TensorRef:
        self.emit.origin = (node.name,)
        value = self.emit.cast(self._stored(node.inputs[0]), dtype_of(node))
        view = view_of(node, 0, self.maker)
        if view is None:
            raise ConversionError("%s: its view says where it writes; it must be set" % node.name)
        repeats, strides, offset = self._repeats(node, view)
        value = self.emit.broadcast(value, repeats)
        if "offset" in node.attributes:
            offset = offset + self.maker.size(node.attributes["offset"])
        return self.emit.add(
            "Store", (value.ref,), self.emit.view(value.dtype, repeats, strides), offset=offset
        )


def _identifier(name: str) -> str:
    word = re.sub(r"\W", "_", name, flags=re.ASCII)
    return word if _NAME.match(word) else "g_" + word
