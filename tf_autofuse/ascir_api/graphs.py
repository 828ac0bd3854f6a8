"""Graphs of the AscIR API: axes, nodes, HintGraph and the containers around it.

What a user touches (HintGraph, Axis, ...) and what a graph really is (GraphState, Node, Tensor) are apart:
the API lets one write members of an Axis or rename an operator object without changing the graph. Convert,
dump and inference read the states only. Node order is the order in which nodes entered the graph; it need
not be topological."""

from typing import Any, Dict, List, Optional, Tuple

from tf_autofuse.ascir_api import dtypes
from tf_autofuse.ascir_api import expression as ex
from tf_autofuse.ascir_api.sizes import SizeExpr, size_of, wrap, wrong_type

#: Types of nodes that stand for memory: after scheduling they have no axes of their own.
BUFFERS = ("Data", "ScalarData", "Scalar", "IndexExpr", "Output", "Workspace")


class Tensor:
    """The description of a node's output, as data: dtype number, axis ids, sizes and strides
    (expressions)."""

    __slots__ = ("dtype", "axis", "size", "strides")

    def __init__(self, dtype: int = dtypes.UNDEFINED):
        self.dtype = dtype
        self.axis: List[int] = []
        self.size: List[ex.Expression] = []
        self.strides: List[ex.Expression] = []


class Node:
    """A node. row: its line of operators_table, None for a wrapped graph. inputs: (node, output number) or
    None where nothing is linked. attributes: those that were set, in order; sizes as expressions. subgraph:
    the HintGraph state of an AscBackend or AscGraph."""

    __slots__ = (
        "name",
        "type",
        "row",
        "inputs",
        "outputs",
        "output_names",
        "attributes",
        "axis",
        "compute",
        "graph",
        "is_buffer",
        "subgraph",
    )

    def __init__(self, name: str, type_: str, row, inputs: int, output_names: List[str]):
        self.name, self.type, self.row = name, type_, row
        self.inputs: List[Optional[Tuple["Node", int]]] = [None] * inputs
        self.output_names = output_names
        self.outputs = [Tensor() for _ in output_names]
        self.attributes: Dict[str, Any] = {}
        self.axis: List[int] = []
        self.compute = row.compute if row else "unknown"
        self.graph: Optional["GraphState"] = None
        self.is_buffer = False
        self.subgraph: Optional["GraphState"] = None


class AxisRecord:
    """An axis of a graph. type: its number as the API has it (0 is an original axis)."""

    __slots__ = ("id", "name", "size", "type", "from_axes")

    def __init__(
        self, id_: int, name: str, size: ex.Expression, type_: int = 0, from_axes: Tuple[int, ...] = ()
    ):
        self.id, self.name, self.size, self.type, self.from_axes = id_, name, size, type_, tuple(from_axes)


class GraphState:
    """A graph: name, symbols and axes in order of creation, nodes in order of entry."""

    def __init__(self, name: str):
        self.name = name
        self.sizes: List[str] = []
        self.axes: List[AxisRecord] = []
        self.nodes: List[Node] = []

    def enter(self, node: Node) -> None:
        if node.graph is None:
            node.graph = self
            self.nodes.append(node)

    def axis_name(self, id_: int) -> str:
        for axis in self.axes:
            if axis.id == id_:
                return axis.name
        return str(id_)

    def of_type(self, *types: str) -> List[Node]:
        return [n for n in self.nodes if n.type in types]


def copy_state(state: GraphState) -> GraphState:
    """A graph that later changes of `state` do not reach."""
    copy = GraphState(state.name)
    copy.sizes = list(state.sizes)
    copy.axes = [AxisRecord(a.id, a.name, a.size, a.type, a.from_axes) for a in state.axes]
    twins: Dict[int, Node] = {}
    for n in state.nodes:
        twin = Node(n.name, n.type, n.row, len(n.inputs), list(n.output_names))
        for tensor, source in zip(twin.outputs, n.outputs):
            tensor.dtype = source.dtype
            tensor.axis, tensor.size, tensor.strides = (
                list(source.axis),
                list(source.size),
                list(source.strides),
            )
        twin.attributes, twin.axis, twin.compute = dict(n.attributes), list(n.axis), n.compute
        twin.is_buffer, twin.subgraph = n.is_buffer, n.subgraph
        twins[id(n)] = twin
        copy.enter(twin)
    for n in state.nodes:
        twins[id(n)].inputs = [
            (twins[id(link[0])], link[1]) if link is not None and id(link[0]) in twins else None
            for link in n.inputs
        ]
    return copy


class Axis:
    """A loop axis. Members may be written; the graph keeps its own. type: a number as text, '0' original."""

    __slots__ = ("id", "size", "name", "type", "__weakref__")

    def __init__(self, *ignored, **also_ignored):
        self.id, self.size, self.name, self.type = -1, None, None, None


def make_axis(record: AxisRecord) -> Axis:
    axis = Axis()
    axis.id, axis.name, axis.size, axis.type = record.id, record.name, wrap(record.size), str(record.type)
    return axis


def axis_ids(value) -> List[int]:
    """Ids of a list of Axis. Raises TypeError and ValueError as setters of the API do."""
    if not isinstance(value, list):
        raise TypeError("value must be a list")
    for i, axis in enumerate(value):
        if not isinstance(axis, Axis):
            raise ValueError("axis on %d is not Axis type" % i)
    return [axis.id for axis in value]


def checked_name(name) -> str:
    """A graph's name. Raises TypeError in CPython's own words."""
    if not isinstance(name, str):
        raise TypeError("argument 1 must be str, not %s" % type(name).__name__)
    return name


class HintGraph:
    """A graph of operators over one set of loop axes."""

    def __init__(self, name="fused_graph"):
        self.name = checked_name(name)
        self._state = GraphState(self.name)

    def create_size(self, name) -> SizeExpr:
        """The symbol `name`, also put into the graph's list of sizes."""
        self._state.sizes.append(checked_name(name))
        return wrap(ex.symbol(name))

    def create_axis(self, name, size) -> Axis:
        checked_name(name)
        record = AxisRecord(len(self._state.axes), name, size_of(size, wrong_type())._e)
        self._state.axes.append(record)
        return make_axis(record)

    def infer_dtypes(self) -> None:
        """Infers or checks the dtypes of every node, in node order. Raises TypeError at the first failure."""
        from tf_autofuse.ascir_api.inference import infer_node

        for node in list(self._state.nodes):
            infer_node(node)

    def set_axis_map(self, mapping) -> None:
        """Replaces axes in every node and view: {axis: [axes that take its place]}."""
        if not isinstance(mapping, dict):
            raise TypeError("argument 1 must be dict, not %s" % type(mapping).__name__)
        records = {a.id: a for a in self._state.axes}
        targets: Dict[int, List[AxisRecord]] = {}
        for axis, replacements in mapping.items():
            if not isinstance(axis, Axis):
                raise TypeError("Input type is invalid.")
            ids = axis_ids(replacements)
            if any(i not in records for i in ids):
                raise TypeError("Input type is invalid.")
            targets[axis.id] = [records[i] for i in ids]
        for node in self._state.nodes:
            node.axis = [
                i for old in node.axis for i in ([t.id for t in targets[old]] if old in targets else [old])
            ]
            for tensor in node.outputs:
                _map_view(tensor, targets)

    def get_input_num(self) -> int:
        return len(self._state.of_type("Data"))

    def get_output_num(self) -> int:
        return len(self._state.of_type("Output"))

    def get_name(self) -> str:
        return self._state.name

    def set_name(self, name) -> None:
        if not isinstance(name, str):
            raise TypeError("name is invalid.")
        self._state.name = name


def _map_view(tensor: Tensor, targets: Dict[int, List[AxisRecord]]) -> None:
    if len({len(tensor.axis), len(tensor.size), len(tensor.strides)}) != 1:
        tensor.axis = [
            i for old in tensor.axis for i in ([t.id for t in targets[old]] if old in targets else [old])
        ]
        return
    axis, size, strides = [], [], []
    for id_, r, t in zip(tensor.axis, tensor.size, tensor.strides):
        replacements = targets.get(id_)
        if replacements is None or len(replacements) == 1:
            axis.append(id_ if replacements is None else replacements[0].id)
            size.append(r)
            strides.append(t)
            continue
        steps, step = [], t
        for record in reversed(replacements):
            steps.append(step)
            step = ex.multiply(step, record.size)
        axis += [record.id for record in replacements]
        size += [record.size for record in replacements]
        strides += reversed(steps)
    tensor.axis, tensor.size, tensor.strides = axis, size, strides


class FusedGraph:
    """A graph whose nodes are whole HintGraphs (ops.AscGraph, ops.AscBackend) between Data and Output."""

    def __init__(self, name="fused_graph"):
        self._state = GraphState(checked_name(name))


class HintComputeGraph:
    """A graph as GE hands it over, read by utils.deserialize('compute_graph', text). Empty when made
    directly."""

    def __init__(self, *ignored, **also_ignored):
        self._state = GraphState("fused_graph")

    def get_name(self) -> str:
        return self._state.name

    def get_info(self) -> str:
        lines = ["%s\n" % self._state.name, "Node num:%d\n" % len(self._state.nodes)]
        lines += ["Node name: %s, Node type: %s\n" % (n.name, n.type) for n in self._state.nodes]
        return "".join(lines)


class ShapeInfo:
    """Where dims come from: symbol -> C expression, read by utils.deserialize('symbol_source_info', text)."""

    def __init__(self, *ignored, **also_ignored):
        self._entries: Dict[str, str] = {}


def state_of(graph) -> GraphState:
    """The state behind a HintGraph, FusedGraph or HintComputeGraph."""
    return graph._state


def graph_of(state: GraphState) -> HintGraph:
    """A HintGraph with this state."""
    graph = HintGraph(state.name)
    graph._state = state
    return graph
