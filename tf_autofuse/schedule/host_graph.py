"""A HintGraph as the host's loops see it: values over few axes, no Broadcasts.

A loop that computes one element of a value per iteration needs no Broadcast: a value that does not extend
along an axis is simply not computed inside of that loop. So on exit Broadcasts, unit axes and the order of
nodes are gone, neighbouring axes that all tensors walk as one are merged, and every value knows its
`pattern`, the axes that it really changes along (of a Load those with a stride, of others what their inputs
have, of a Reduce less its axes).
"""
from typing import Any, Dict, FrozenSet, List, NamedTuple, Optional, Tuple

from tf_autofuse.ir.asc_graph import AscGraph, AscNode
from tf_autofuse.ir.dtypes import DType
from tf_autofuse.ops.table import ASC_OPS
from tf_autofuse.symbolic.size import Size, known_equal, product

Pattern = FrozenSet[int]


class HostAxis(NamedTuple):
    """limit: of an axis that is cut into chunks of `size`: (position of the chunks' axis, elements in all);
    the last chunk is as long as what is left."""

    name: str
    size: Size
    limit: Optional[Tuple[int, Size]] = None

    @property
    def extent(self) -> Size:
        """Elements in all chunks."""
        return self.size if self.limit is None else self.limit[1]


class Tensor(NamedTuple):
    """A tensor in memory. kind: 'input', 'output' or 'workspace'; index: its number among those."""

    kind: str
    index: int
    dtype: DType


class Access(NamedTuple):
    """Where in a tensor an element lies, in elements: offset + sum(index of axis * stride). gather: of a
    Gather (index_stride, index_size), whose index is input 0 of the value."""

    tensor: Tensor
    offset: Size
    strides: Tuple[Size, ...]
    gather: Optional[Tuple[Size, Size]] = None


class Value(NamedTuple):
    """type: 'Scalar' (attrs value), 'Load', 'Gather', 'Store' (no result), or a type of the op table. inputs:
    names of values. reduced: positions of the axes that a Reduce reduces. pattern: see the head; of a Store
    the axes that it runs over. operand: dtype of input 0."""

    name: str
    type: str
    dtype: DType
    inputs: Tuple[str, ...]
    attrs: Tuple[Tuple[str, Any], ...]
    pattern: Pattern
    access: Optional[Access] = None
    reduced: Pattern = frozenset()
    origin: Tuple[str, ...] = ()
    operand: Optional[DType] = None

    @property
    def is_reduce(self) -> bool:
        return self.type in ASC_OPS and ASC_OPS[self.type].reduces


class HostGraph(NamedTuple):
    """axes: outermost first; a pattern holds positions in it. values: in topological order."""

    name: str
    axes: Tuple[HostAxis, ...]
    values: Tuple[Value, ...]

    def value(self, name: str) -> Value:
        return self.by_name()[name]

    def by_name(self) -> Dict[str, Value]:
        return {v.name: v for v in self.values}


def host_graph(graph: AscGraph) -> HostGraph:
    """The HintGraph `graph` in host form."""
    kept = [i for i, a in enumerate(graph.axes) if not known_equal(a.size, 1)]
    read = _Reader(graph, kept)
    for node in graph.nodes:
        read.node(node)
    axes = tuple(HostAxis(graph.axes[i].name, graph.axes[i].size) for i in kept)
    return merged(_wanted(HostGraph(graph.name, axes, tuple(read.values))))


class _Reader:
    def __init__(self, graph: AscGraph, kept: List[int]):
        self.graph, self.kept = graph, kept
        self.position = {graph.axes[i].id: k for k, i in enumerate(kept)}
        self.values: List[Value] = []
        self.named: Dict[str, str] = {}  # node -> the value that it stands for
        self.patterns: Dict[str, Pattern] = {}

    def node(self, node: AscNode) -> None:
        if node.type in ("Data", "Output", "Workspace"):
            return
        if node.type == "Broadcast":
            self.named[node.name] = self.named[node.inputs[0].node]
            return
        inputs = tuple(self.named[r.node] for r in node.inputs if r.node in self.named)
        pattern = frozenset().union(*(self.patterns[i] for i in inputs))
        access, reduced = None, frozenset()
        if node.type in ("Load", "Gather"):
            access = self.access(node, self.graph.node(node.inputs[0].node))
            pattern |= frozenset(k for k, s in enumerate(access.strides) if not known_equal(s, 0))
        elif node.type == "Store":
            access = self.access(node, self.sink(node))
            pattern = frozenset(k for k, i in enumerate(self.kept) if not known_equal(node.y.repeats[i], 1))
        elif node.type in ASC_OPS and ASC_OPS[node.type].reduces:
            reduced = frozenset(self.position[a] for a in node.attr("axes") if a in self.position)
            pattern -= reduced
        operand = self.graph.tensor(node.inputs[0]).dtype if inputs else None
        value = Value(node.name, node.type, node.outputs[0].dtype, inputs, node.attrs, pattern, access,
                      reduced,
                      node.origin, operand)
        self.named[node.name] = node.name
        self.patterns[node.name] = pattern
        self.values.append(value)

    def sink(self, store: AscNode) -> AscNode:
        for n in self.graph.nodes:
            if n.type in ("Output", "Workspace") and any(r.node == store.name for r in n.inputs):
                return n
        raise ValueError("nothing reads %s" % store.name)

    def access(self, node: AscNode, memory: AscNode) -> Access:
        kind = {"Data": "input", "Output": "output", "Workspace": "workspace"}[memory.type]
        tensor = Tensor(kind, memory.attr("index"), node.outputs[0].dtype)
        gather = (node.attr("index_stride"), node.attr("index_size")) if node.type == "Gather" else None
        return Access(tensor, node.attr("offset", 0), tuple(node.y.strides[i] for i in self.kept), gather)


def _wanted(graph: HostGraph) -> HostGraph:
    """Without the values that no Store needs."""
    wanted = set()
    for v in reversed(graph.values):
        if v.type == "Store" or v.name in wanted:
            wanted.add(v.name)
            wanted.update(v.inputs)
    return graph._replace(values=tuple(v for v in graph.values if v.name in wanted))


def merged(graph: HostGraph) -> HostGraph:
    """Neighbouring axes become one where every access walks them as one: both strides 0, or the outer one the
    inner one times the inner size; and every Reduce reduces both or neither, every Store runs over both or
    neither."""
    runs: List[List[int]] = []
    for i in range(len(graph.axes)):
        if runs and _mergeable(graph, i - 1):
            runs[-1].append(i)
        else:
            runs.append([i])
    if all(len(run) == 1 for run in runs):
        return graph
    axes = tuple(HostAxis("".join(graph.axes[i].name for i in run), product(graph.axes[i].size for i in run))
                 for run in runs)

    def positions(pattern: Pattern) -> Pattern:
        return frozenset(k for k, run in enumerate(runs) if run[-1] in pattern)

    values = []
    for v in graph.values:
        access = v.access and v.access._replace(strides=tuple(v.access.strides[run[-1]] for run in runs))
        values.append(v._replace(pattern=positions(v.pattern), reduced=positions(v.reduced), access=access))
    return graph._replace(axes=axes, values=tuple(values))


def _mergeable(graph: HostGraph, i: int) -> bool:
    if any(a.limit is not None for a in graph.axes):
        return False
    for v in graph.values:
        if (i in v.pattern) != (i + 1 in v.pattern) or (i in v.reduced) != (i + 1 in v.reduced):
            return False
        if v.access is not None:
            outer, inner = v.access.strides[i], v.access.strides[i + 1]
            if not known_equal(outer, inner * graph.axes[i + 1].size):
                return False
    return True
