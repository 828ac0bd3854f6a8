"""The ways in which a HintGraph with reductions can be run, each as one or several stages of HintGraphs.

Why: what is reduced should lie in UB as a whole ('whole': x is read once), but need not fit there, may be
split over cores where there are few rows ('parts'), and may be empty ('empty'). schedule/nests.py says how
tiling chooses. A stage is again a HintGraph over the same FusedGraph's inputs and outputs, so all later
passes know of one form only.

    whole   the graph itself
    parts   for every level of reductions (those that only read lower levels' results):
                partials   the reductions of each tile of a reduced axis with all reduced axes inside of it,
                           stored to a workspace: of the outermost one whose inside can fit UB; those outside
                           of it have partial results along them
                combine    the partials reduced, stored to a workspace
            then the rest of the graph with Loads in the place of the reductions; what is stored without
            extent along the reduced axes is part of the last combine
    empty   identities in the place of the reductions, over the other axes

On entry: a verified HintGraph. On exit: stages that keep G and H, but for attr `tile_stride` of a partial
result's Store (elements from one tile's result to the next one's) and Workspace nodes with a negative index
(private to the graph) and attr `elements` (their extent). Partial results are combined in the order of the
tiles.
"""
import re
from dataclasses import replace
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from tf_autofuse.ir.asc_graph import AscGraph, AscNode, Axis, Sched, TensorAttr, TensorRef, attrs
from tf_autofuse.ir.builder import dense_strides
from tf_autofuse.ops.ascir_reduce import start_value
from tf_autofuse.schedule.axes import drop_unread, extends, is_reduction
from tf_autofuse.symbolic.guards import SizeVar
from tf_autofuse.symbolic.size import Size, is_static, product, symbol

#: Reductions of partial results that give the whole one.
_COMBINABLE = ("Sum", "Prod", "Max", "Min", "All", "Any")
#: Reduced elements below which splitting them is never worth two more nests.
_NEVER_SPLIT = 2048
#: Elements of reduced axes that a tile of the axis outside of them may hold.
_MOST_INSIDE = 4096


class Stage(NamedTuple):
    """parts_symbol: '' or, for partial results, the symbol of the number of tiles. reduced_size: elements
    that are reduced to one."""

    way: str
    number: int
    graph: AscGraph
    parts_symbol: str = ""
    reduced_size: Size = 1


def stages_of(graph: AscGraph) -> Tuple[Stage, ...]:
    """All stages of all ways of the graph, way by way; ('whole', 0) is always there."""
    graph = drop_unread(graph)
    reductions = [n for n in graph.nodes if is_reduction(n)]
    if not reductions:
        return (Stage("whole", 0, graph),)
    reduced = {a for n in reductions for a in n.attr("axes")}
    count = product(graph.axis(a).size for a in graph.loop_axes if a in reduced)
    stages: List[Stage] = []
    if not (is_static(count) and count > 0):
        empty = _empty(graph, reductions, reduced)
        stages += [Stage("empty", 0, empty, reduced_size=count)] if empty is not None else []
    stages.append(Stage("whole", 0, graph, reduced_size=count))
    splits = not (is_static(count) and count < _NEVER_SPLIT)
    alike = all(set(n.attr("axes")) == reduced and n.type in _COMBINABLE for n in reductions)
    alike = alike and all(len({extends(n.y, i) for i, a in enumerate(graph.loop_axes) if a in reduced}) == 1
                          for n in graph.of_type("Store"))
    return tuple(stages) + (_Parts(graph, reductions, reduced, count).stages() if splits and alike else ())


def _empty(graph: AscGraph, reductions: Sequence[AscNode], reduced: Set[int]) -> Optional[AscGraph]:
    """The graph for empty reduced axes; None where no output has an element then, or a reduction has no
    identity."""
    if any(n.type not in _COMBINABLE for n in reductions):
        return None
    names = {n.name for n in reductions}
    kept = [i for i, a in enumerate(graph.loop_axes) if a not in reduced]
    empty_stores = {n.name for n in graph.of_type("Store")
                    if any(extends(n.y, i) for i in range(len(graph.loop_axes)) if i not in kept)}
    nodes: List[AscNode] = []
    for n in graph.nodes:
        if n.name in names:
            source = graph.tensor(n.inputs[0]).dtype
            scalar = AscNode(n.name + "_identity", "Scalar", (), (TensorAttr(n.y.dtype),),
                             attrs(value=start_value(n.type, source)), Sched(), n.origin)
            nodes += [scalar, replace(n, type="Broadcast", inputs=(TensorRef(scalar.name),),
                                      attrs=attrs(axis=-1))]
        elif n.name not in empty_stores:
            left = tuple(r for r in n.inputs if r.node not in empty_stores)
            if left or not n.inputs:
                nodes.append(replace(n, inputs=left))
    if not any(n.type == "Store" for n in nodes):
        return None
    used = _ancestors(nodes, [n.name for n in nodes if _is_sink(n)])
    return _projected(graph, [n for n in nodes if n.name in used], kept, None)


def _is_sink(node: AscNode) -> bool:
    return node.type == "Output" or (node.type == "Workspace" and bool(node.inputs))


def _ancestors(nodes: Sequence[AscNode], roots: Sequence[str]) -> Set[str]:
    """The roots and all that they need."""
    wanted = set(roots)
    for n in reversed(nodes):
        if n.name in wanted:
            wanted.update(r.node for r in n.inputs)
    return wanted


def _projected(graph: AscGraph, nodes: Sequence[AscNode], kept: Sequence[int], parts: Optional[Axis],
               parts_first: bool = False) -> AscGraph:
    """A graph of the nodes over the loop axes at positions `kept`, and over `parts`, which the nodes do not
    extend along; an axis of size 1 where that leaves none."""
    axes = [graph.axis(graph.loop_axes[i]) for i in kept]
    if not axes and parts is None:
        axes = [Axis(max(a.id for a in graph.axes) + 1, "one", 1)]
    more = len(axes) - len(kept) + (parts is not None)
    if parts is not None:
        axes = [parts] + axes if parts_first else axes + [parts]
    ids = tuple(a.id for a in axes)

    def over(values: Tuple[Size, ...], other: Size) -> Tuple[Size, ...]:
        own, rest = tuple(values[i] for i in kept), (other,) * more
        return rest + own if parts_first else own + rest

    result = []
    for n in nodes:
        if n.outputs and n.y.axis:
            y = replace(n.y, axis=ids, repeats=over(n.y.repeats, 1), strides=over(n.y.strides, 0))
            n = replace(n, outputs=(y,), sched=replace(n.sched, axis=ids))
        result.append(n)
    return replace(graph, axes=tuple(axes), loop_axes=ids, nodes=tuple(result))


def _outside(graph: AscGraph, reduced: Set[int]) -> Tuple[int, ...]:
    """The reduced axes outside of the one that tiles are taken of: those inside of which, for all that is
    known, there are too many elements for a tile."""
    axes = [a for a in graph.loop_axes if a in reduced]
    for i in range(len(axes)):
        inside = product(graph.axis(a).size for a in axes[i + 1:])
        if not is_static(inside) or inside <= _MOST_INSIDE:
            return tuple(axes[:i])
    return ()


class _Parts:
    """The stages of way 'parts'."""

    def __init__(self, graph: AscGraph, reductions: Sequence[AscNode], reduced: Set[int], count: Size):
        self.graph, self.reductions, self.reduced, self.count = graph, reductions, reduced, count
        self.outer = _outside(graph, reduced)
        self.results = self._size_of([i for i, a in enumerate(graph.loop_axes) if a not in reduced])
        # The axes that partial results extend along.
        self.kept = [i for i, a in enumerate(graph.loop_axes) if a not in reduced or a in self.outer]
        self.kept_size = self._size_of(self.kept)
        # Rows of partial results stand next to each other where their tile holds no element of another axis.
        self.parts_first = bool(self.kept) and self.kept[-1] != len(self.kept) - 1
        self.number = {n.name: i for i, n in enumerate(reductions)}
        self.level: Dict[str, int] = {}
        for n in graph.nodes:
            below = max([self.level[r.node] for r in n.inputs] or [0])
            self.level[n.name] = below + (n.name in self.number)

    def _size_of(self, positions: Sequence[int]) -> Size:
        return product(self.graph.axis(self.graph.loop_axes[i]).size for i in positions)

    def stages(self) -> Tuple[Stage, ...]:
        last = max(self.level[n.name] for n in self.reductions)
        safe = re.sub(r"\W", "_", self.graph.name, flags=re.ASCII)
        stages: List[Stage] = []
        reduced = {i for i, a in enumerate(self.graph.loop_axes) if a in self.reduced}
        full = [n.name for n in self.graph.of_type("Store") if any(extends(n.y, i) for i in reduced)]
        rest = self._rest(full)
        joined = self._rest([n.name for n in self.graph.of_type("Store") if n.name not in full])
        read = {n.name for n in rest}
        for level in range(1, last + 1):
            parts = Axis(max(a.id for a in self.graph.axes) + 2, "parts%d" % level,
                         symbol("%s_parts%d" % (safe, level)))
            name = parts.size.expr.name
            stages.append(Stage("parts", len(stages), self._with_size(self._partials(level, parts), name),
                                name, self.count))
            is_last = level == last
            combined = self._combined(level, parts, joined if is_last else (), read if is_last else None)
            stages.append(Stage("parts", len(stages), self._with_size(combined, name),
                                reduced_size=self.count))
        if rest:
            stages.append(Stage("parts", len(stages), self.graph.with_nodes(rest), reduced_size=self.count))
        return tuple(stages)

    def _rest(self, stores: Sequence[str]) -> List[AscNode]:
        """What these Stores and their sinks need, with Loads in the place of the reductions."""
        nodes = []
        for n in self._loaded(lambda name: True, [n.name for n in self.graph.nodes if _is_sink(n)]):
            left = tuple(r for r in n.inputs if r.node in stores)
            if not _is_sink(n):
                nodes.append(n)
            elif left:
                nodes.append(replace(n, inputs=left))
        wanted = _ancestors(nodes, [n.name for n in nodes if _is_sink(n)])
        return [n for n in nodes if n.name in wanted]

    def _with_size(self, graph: AscGraph, parts: str) -> AscGraph:
        return replace(graph, sizes=graph.sizes + (SizeVar(parts, self.count, 1),))

    def _loaded(self, is_lower: Callable[[str], bool], roots: Sequence[str]) -> List[AscNode]:
        """What `roots` need, with Loads of the reductions that are lower."""
        nodes: List[AscNode] = []
        for n in self.graph.nodes:
            if n.name not in self.number or not is_lower(n.name):
                nodes.append(n)
                continue
            source = self._workspace(n, final=True)
            nodes += [source, AscNode(n.name, "Load", (TensorRef(source.name),), (n.y,), attrs(offset=0),
                                      n.sched, n.origin)]
        wanted = _ancestors(nodes, roots)
        return [n for n in nodes if n.name in wanted]

    def _workspace(self, node: AscNode, final: bool, inputs: Tuple[TensorRef, ...] = (),
                   elements: Optional[Size] = None) -> AscNode:
        index = -(2 * self.number[node.name] + 1 + final)
        values = attrs(index=index) if elements is None else attrs(index=index, elements=elements)
        name = "%s_%s_%s" % (node.name, "result" if final else "partial", "out" if inputs else "in")
        return AscNode(name, "Workspace", inputs, (TensorAttr(node.y.dtype),), values, Sched(), node.origin)

    def _level(self, level: int) -> List[AscNode]:
        return [n for n in self.reductions if self.level[n.name] == level]

    def _partials(self, level: int, parts: Axis) -> AscGraph:
        wanted = self._level(level)
        nodes = self._loaded(lambda name: self.level[name] < level, [n.name for n in wanted])
        for n in wanted:
            partial = self._partial(n)
            nodes[nodes.index(n)] = partial
            if self.parts_first:
                strides, step = partial.y.strides, self.kept_size
            else:
                strides, step = tuple(s * parts.size for s in partial.y.strides), 1
            y = replace(partial.y, strides=strides)
            store = AscNode(n.name + "_partial", "Store", (TensorRef(n.name),), (y,),
                            attrs(offset=0, tile_stride=step), n.sched, n.origin)
            nodes += [store, self._workspace(n, False, (TensorRef(store.name),), self.kept_size * parts.size)]
        return self.graph.with_nodes(nodes)

    def _partial(self, node: AscNode) -> AscNode:
        """The reduction without the axes outside of the tile's."""
        if not self.outer:
            return node
        repeats = tuple(self.graph.axis(a).size if a in self.outer else r
                        for a, r in zip(node.y.axis, node.y.repeats))
        y = replace(node.y, repeats=repeats, strides=dense_strides(repeats))
        inner = tuple(a for a in node.attr("axes") if a not in self.outer)
        return replace(node, outputs=(y,), attrs=attrs(axes=inner))

    def _combined(self, level: int, parts: Axis, rest: Sequence[AscNode],
                  read: Optional[Set[str]]) -> AscGraph:
        """The reductions of the partial results. rest: the nodes that read them here, with Loads in their
        place; read: the reductions that later stages read, by default all."""
        names = {n.name for n in self._level(level)}
        drop = {r.node for n in rest if n.name in names for r in n.inputs} | names
        over = _projected(self.graph, [n for n in rest if n.name not in drop], self.kept, parts,
                          self.parts_first)
        repeats = tuple(over.axis(a).size for a in over.loop_axes)
        nodes: List[AscNode] = []
        for n in self._level(level):
            y = TensorAttr(n.y.dtype, over.loop_axes, repeats, dense_strides(repeats))
            source, sched = self._workspace(n, False), Sched(axis=over.loop_axes)
            load = AscNode(n.name + "_partials", "Load", (TensorRef(source.name),), (y,), attrs(offset=0),
                           sched,
                           n.origin)
            gone = [a for a in over.loop_axes if a == parts.id or a in self.outer]
            kept = tuple(1 if a in gone else r for a, r in zip(over.loop_axes, repeats))
            result = replace(y, repeats=kept, strides=dense_strides(kept))
            combine = replace(n, inputs=(TensorRef(load.name),), outputs=(result,),
                              attrs=attrs(axes=tuple(gone)), sched=sched)
            nodes += [source, load, combine]
            if read is None or n.name in read:
                store = AscNode(n.name + "_result", "Store", (TensorRef(n.name),), (result,), attrs(offset=0),
                                sched,
                                n.origin)
                nodes += [store, self._workspace(n, True, (TensorRef(store.name),), self.results)]
        return replace(over, nodes=tuple(nodes) + over.nodes)
