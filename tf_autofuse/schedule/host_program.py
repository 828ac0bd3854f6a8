"""The host's schedule of a fused graph: its loop nests in order, the memory between them, and where a nest
must wait.

    FusedGraph --host_graph, split, plan_nest--> nests; for run-time broadcasts a second list of nests, for
    the case that nothing is broadcast, in which axes merge and the innermost loops are contiguous

The plan that depends on sizes (blocks, pieces, offsets in the workspace) is made at run time, by the formulas
that codegen/host/tiling.py prints from what is here.
"""
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

from tf_autofuse.ir.asc_graph import AscGraph, FusedGraph
from tf_autofuse.schedule.axes import assume_contiguous, is_strided
from tf_autofuse.schedule.host_chunk import chunked
from tf_autofuse.schedule.host_cost import FOLD, ITEM, TURNED, access_cost, element_cost
from tf_autofuse.schedule.host_graph import HostGraph, Tensor, Value, host_graph
from tf_autofuse.schedule.host_nest import COLUMN_TILE, TURN, Nest, plan_nest
from tf_autofuse.schedule.host_split import Scratch, split
from tf_autofuse.symbolic.guards import Guard
from tf_autofuse.symbolic.size import Size, ceil_div, is_static, known_equal, maximum, product, to_text

#: Row buffers up to this size are arrays on the stack.
STACK_BYTES = 16384
#: Bytes of the accumulators of one Reduce in mode 'row', each of which counts for so many at least.
LANE_BYTES, NARROWEST = 128, 2
#: Elements behind a row buffer's row: the most lanes that a pass has. The last one may write them all.
ROW_END = LANE_BYTES // NARROWEST
#: A nest that is known to move fewer bytes never stores around the caches, nor in rows of fewer bytes.
STREAMED_BYTES, STREAMED_ROW = 1 << 22, 512
#: Nanoseconds a byte that memory takes, about. What computes for longer does not wait for it.
MEMORY_BYTE = 0.06
#: Rows of more elements are cut into pieces where there are too few rows for all threads.
LONG_ROW = 4096


class PlannedNest(NamedTuple):
    """number: of its function and fields. waits: whether the nests before it in its variant must have ended.
    cost: nanoseconds for one element of the vector axis of an item."""

    number: int
    nest: Nest
    waits: bool
    cost: float

    @property
    def rows(self) -> Size:
        """Items, or in mode 'column' items for each piece of the vector axis."""
        sizes = {a: self.nest.graph.axes[a].size for a in self.nest.outer}
        if self.nest.turn is not None:
            sizes[self.nest.turn] = ceil_div(sizes[self.nest.turn], TURN)
        return product(sizes.values())

    @property
    def width(self) -> Size:
        return 1 if self.nest.vector is None else self.nest.graph.axes[self.nest.vector].size

    @property
    def repeats(self) -> Size:
        """Elements of R, or of the axis `turn`, for each element of the vector axis of an item."""
        if self.nest.turn is not None:
            return TURN
        return product(self.nest.graph.axes[a].size for a in self.nest.reduced if a != self.nest.vector)

    @property
    def streams(self) -> Tuple[str, ...]:
        """The Stores that may go around the caches: of all elements of the nest, along its innermost loop."""
        axes = self.nest.graph.axes
        accesses = [v for v in self.nest.graph.values if v.access is not None]
        moved = sum(v.access.tensor.dtype.bytes * product(axes[a].size for a in v.pattern) for v in accesses)
        each = sum(v.access.tensor.dtype.bytes for v in accesses if len(v.pattern) == len(axes))
        if self.nest.vector is None or is_static(moved) and moved < STREAMED_BYTES:
            return ()
        if self.cost > MEMORY_BYTE * each:
            return ()
        bodies = [b.values for s in self.nest.segments for b in (s.tile, s.main) if b is not None]
        values = self.nest.graph.by_name()
        found = []
        for names in bodies:
            if any(values[n].is_reduce for n in names):
                continue
            for v in (values[n] for n in names if values[n].type == "Store"):
                row = self.width * v.access.tensor.dtype.bytes
                whole = len(v.pattern) == len(axes) and known_equal(v.access.strides[self.nest.vector], 1)
                words = v.access.tensor.kind != "scratch" and v.access.tensor.dtype.bytes >= 4
                if whole and words and not (is_static(row) and row < STREAMED_ROW):
                    found.append(v.name)
        return tuple(found)

    @property
    def item_cost(self) -> float:
        """Nanoseconds for an item beside its elements."""
        folds = sum(v.is_reduce for v in self.nest.graph.values) if self.nest.mode == "row" else 0
        return ITEM + FOLD * folds

    @property
    def cuts(self) -> bool:
        """Whether an item is a piece of the vector axis only. Rows of a known moderate length stay whole: the
        compiler then knows how long the innermost loop is."""
        if self.nest.mode == "row" or self.nest.vector is None:
            return False
        whole = self.largest_piece or (LONG_ROW if self.nest.outer else 0)
        return not (is_static(self.width) and self.width <= whole)

    @property
    def largest_piece(self) -> int:
        """0: pieces may be of any size."""
        nest = self.nest
        return nest.column_tile if nest.accumulates or nest.tiles or nest.turned else 0

    @property
    def least_piece(self) -> int:
        """Columns that are summed up lie side by side: narrow pieces of them waste what memory sends."""
        return COLUMN_TILE if self.nest.accumulates else 0

    @property
    def workspace_buffers(self) -> Tuple[Tuple[int, Size, int], ...]:
        """(position in nest.buffers, elements, bytes of an element) of the row buffers that are not on the
        stack."""
        found = []
        for i, name in enumerate(self.nest.buffers):
            v = self.nest.graph.value(name)
            elements = buffer_elements(self.nest, v)
            if not (is_static(elements) and elements * v.dtype.bytes <= STACK_BYTES):
                found.append((i, elements, v.dtype.bytes))
        return tuple(found)


class Variant(NamedTuple):
    """conditions: eq guards under which the nests compute the graph."""

    conditions: Tuple[Guard, ...]
    nests: Tuple[PlannedNest, ...]


class HostProgram(NamedTuple):
    """variants: the first whose conditions hold runs; the last has none. memory: workspaces and scratch
    tensors with their elements."""

    variants: Tuple[Variant, ...]
    memory: Tuple[Scratch, ...]

    @property
    def nests(self) -> Tuple[PlannedNest, ...]:
        return tuple(n for v in self.variants for n in v.nests)


def buffer_elements(nest: Nest, v: Value) -> Size:
    """A row, and room for a last pass over all lanes that goes beyond its end."""
    return ROW_END + product(nest.graph.axes[a].size for a in nest.reduced if a in v.pattern)


def host_program(fused: FusedGraph, machine: Any = None) -> HostProgram:
    """The schedule of `fused`, a verified graph."""
    memory: List[Scratch] = list(_workspaces(fused))
    variants: List[Variant] = []
    count = 0
    graphs, conditions = _assumed(fused)
    for assumed, each in ([(conditions, graphs)] if conditions else []) + [((), fused.graphs)]:
        nests: List[PlannedNest] = []
        written: set = set()
        for graph in each:
            parts, scratch = split(host_graph(graph), len(memory))
            memory.extend(scratch)
            for part in _cut_up(parts, memory):
                nest = plan_nest(part)
                waits = bool(_tensors(nest, reads=True) & written)
                written = _tensors(nest, reads=False) | (set() if waits else written)
                nests.append(PlannedNest(count, nest, waits, _cost(nest)))
                count += 1
        variants.append(Variant(tuple(assumed), tuple(nests)))
    return HostProgram(tuple(variants), tuple(memory))


def _cut_up(parts: Sequence[HostGraph], memory: List[Scratch]) -> List[HostGraph]:
    """The graphs with long reductions cut into chunks; their scratch tensors are added to memory."""
    found: List[HostGraph] = []
    for part in parts:
        chunks = chunked(part, len(memory))
        if chunks is None:
            found.append(part)
        else:
            found.extend(chunks.graphs)
            memory.extend(chunks.scratch)
    return found


def _assumed(fused: FusedGraph) -> Tuple[Tuple[AscGraph, ...], Tuple[Guard, ...]]:
    """The graphs for the case that no dim is broadcast at run time, and what must hold; no conditions: there
    is no such case."""
    graphs, conditions = [], []
    for graph in fused.graphs:
        contiguous = assume_contiguous(graph) if is_strided(graph) else None
        graphs.append(graph if contiguous is None else contiguous.graph)
        conditions += [] if contiguous is None else list(contiguous.conditions)
    return tuple(graphs), tuple(dict.fromkeys(conditions))


def _tensors(nest: Nest, reads: bool) -> set:
    return {v.access.tensor for v in nest.graph.values
            if v.access is not None and v.access.tensor.kind in ("workspace", "scratch")
            and (v.type != "Store") == reads}


def _workspaces(fused: FusedGraph) -> Tuple[Scratch, ...]:
    """The workspaces between the fused graph's graphs: as large as what the Stores span."""
    sizes: Dict[Tensor, Size] = {}
    for graph in fused.graphs:
        for v in host_graph(graph).values:
            if v.type != "Store" or v.access.tensor.kind != "workspace":
                continue
            nodes = graph.node(v.name)
            end = v.access.offset + 1
            for extent, stride in zip(nodes.y.repeats, nodes.y.strides):
                end = end + maximum(extent - 1, 0) * stride
            tensor = v.access.tensor
            sizes[tensor] = maximum(sizes[tensor], end) if tensor in sizes else end
    return tuple(Scratch(t, s) for t, s in sizes.items())


def _cost(nest: Nest) -> float:
    """Nanoseconds for one element of the vector axis and of R, all bodies together."""
    total = 0.0
    values = nest.graph.by_name()
    for segment in nest.segments:
        for body in (segment.tile, segment.main):
            if body is not None:
                total += sum(_value_cost(nest, values, values[n]) for n in body.values)
    return max(total, 0.01)


def _value_cost(nest: Nest, values: Dict[str, Value], v: Value) -> float:
    if v.type == "Gather" and nest.vector not in values[v.inputs[0]].pattern:
        return access_cost(v)  # one index a row
    return element_cost(v) + (TURNED if v.name in nest.turned else 0.0)


def in_place_pairs(fused: FusedGraph, program: HostProgram) -> Tuple[Tuple[int, int], ...]:
    """(input, output) pairs such that no element of the input is read after the output's same element is
    written.

    Each Load of the input must be in the nest of the output's one Store and in no body behind the Store's. A
    kernel that may find an index out of range keeps its inputs for the original ops: no pairs.
    """
    if any(v.type == "Gather" for p in program.nests for v in p.nest.graph.values):
        return ()
    pairs = {(i, o) for i in range(len(fused.inputs)) for o in range(len(fused.outputs))}
    for variant in program.variants:
        pairs = {(i, o) for i, o in pairs if _keeps_order(variant, i, o)}
    return tuple(sorted(pairs))


def _keeps_order(variant: Variant, input_: int, output: int) -> bool:
    stores = [p for p in variant.nests for v in p.nest.graph.values if _touches(v, "output", output)]
    loads = [p for p in variant.nests if any(_touches(v, "input", input_) for v in p.nest.graph.values)]
    if len(stores) != 1 or any(p is not stores[0] for p in loads):
        return False
    nest = stores[0].nest
    values = nest.graph.by_name()
    bodies = [names for s in nest.segments
              for names in (s.row, s.tile.values if s.tile else (), s.main.values if s.main else ())]
    written = next(i for i, names in enumerate(bodies) if any(_touches(values[n], "output", output)
                                                              for n in names))
    return not any(_touches(values[n], "input", input_) for names in bodies[written + 1:] for n in names)


def _touches(v: Value, kind: str, index: int) -> bool:
    return v.access is not None and (v.access.tensor.kind, v.access.tensor.index) == (kind, index)


def describe(program: HostProgram) -> str:
    """The nests for people: loops, bodies, what is kept, and the memory between them."""
    lines: List[str] = []
    for key, variant in enumerate(program.variants):
        why = ", if " + " and ".join(map(repr, variant.conditions)) if variant.conditions else ""
        lines.append("variant %d%s" % (key, why))
        for planned in variant.nests:
            lines += ["  " + line for line in _described(planned)]
    for scratch in program.memory:
        t = scratch.tensor
        lines.append("%s %d: %s elements of %s" % (t.kind, t.index, to_text(scratch.elements), t.dtype.name))
    return "\n".join(lines) + "\n"


def _described(planned: PlannedNest) -> List[str]:
    nest = planned.nest
    axes = nest.graph.axes

    def names(positions) -> str:
        return ", ".join("%s: %s" % (axes[a].name, to_text(axes[a].size)) for a in positions)

    lines = ["nest %d, %s%s, %.2f ns an element" % (
        planned.number, nest.mode, " (waits)" if planned.waits else "", planned.cost),
        "  items over (%s)%s" % (names(nest.outer), ", pieces" if planned.cuts else ""),
        "  innermost (%s), reduced (%s)" % (
            "" if nest.vector is None else names((nest.vector,)), names(nest.reduced))]
    if nest.turned:
        lines.append("  across %s: %s" % (axes[nest.turn].name, " ".join(nest.turned)))
    for level, segment in enumerate(nest.segments):
        for title, body in (("row", segment.row), ("tile", segment.tile and segment.tile.values),
                            ("main", segment.main and segment.main.values)):
            if body:
                lines.append("  %s %d: %s" % (title, level, " ".join(body)))
    for title, kept in (("tile arrays", nest.tiles), ("row buffers", nest.buffers)):
        if kept:
            lines.append("  %s: %s" % (title, " ".join(kept)))
    return lines
