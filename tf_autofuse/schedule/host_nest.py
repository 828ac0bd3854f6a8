"""One loop nest for the host: which values are computed in which loop.

On entry a HostGraph whose Reduces all reduce the same axes R and keep the same axes K (host_split.py makes
such). The nest runs over items, one for each element of the outer kept axes (in mode 'column' for each piece
of the vector axis too). Within an item come segments: segment L has what can be computed once L rounds of
reductions are done.

    for each item:
        for each segment:
            row values                     scalars, one of each an item
            tile body                      mode 'column': loop over the piece of the vector axis, once
            main body                      loops over R: stores and accumulates; its Reduces end the segment

mode 'row': the vector axis is in R (it is contiguous for most tensors): a Reduce accumulates into lanes.
mode 'column': the vector axis is kept: a Reduce accumulates into one element per column of the piece.

A value that a later body needs too is computed again where that costs little; else its row is kept in a
buffer (mode 'row') or its piece in a tile array (mode 'column').
"""
from typing import Dict, List, NamedTuple, Optional, Set, Tuple

from tf_autofuse.schedule.host_cost import CHEAP, element_cost
from tf_autofuse.schedule.host_graph import HostGraph, Value
from tf_autofuse.symbolic.size import is_static, known_equal

#: Indexes of an outer axis that share the cache lines of a transposed tensor.
TURN = 16
#: Elements of the vector axis that one item of mode 'column' takes where it accumulates or turns, unless its
#: arrays are so few and small that it takes more: all of them have to stay in the first cache.
COLUMN_TILE = 256
WIDEST_TILE, TILE_BYTES = 1024, 16384


class Body(NamedTuple):
    """loops: positions of the axes around the vector loop, outermost first. vector: whether there is a loop
    over the vector axis. values: what is computed, in order; Stores and Reduces among them. kept: values that
    are also written to their tile array or row buffer."""

    loops: Tuple[int, ...]
    vector: bool
    values: Tuple[str, ...]
    kept: Tuple[str, ...] = ()


class Segment(NamedTuple):
    row: Tuple[str, ...]
    tile: Optional[Body]
    main: Optional[Body]


class Nest(NamedTuple):
    """graph: axes and values. outer: positions of the item axes. vector: position of the innermost axis, or
    None where the graph has no axes. reduced: positions of R. tiles, buffers: the values that are kept in
    tile arrays and row buffers. turned: Loads that are contiguous along `turn`, one of outer, and not along
    the vector axis (transposes): an item is then TURN indexes of that axis, and such a tensor is read whole
    cache lines at a time into a small transposed array first."""

    graph: HostGraph
    mode: str
    outer: Tuple[int, ...]
    vector: Optional[int]
    reduced: Tuple[int, ...]
    segments: Tuple[Segment, ...]
    tiles: Tuple[str, ...]
    buffers: Tuple[str, ...]
    turn: Optional[int] = None
    turned: Tuple[str, ...] = ()

    @property
    def accumulates(self) -> bool:
        return any(v.is_reduce for v in self.graph.values)

    @property
    def column_tile(self) -> int:
        """Elements of the arrays of mode 'column'. A Reduce may have two: cascaded sums, indexes."""
        values = self.graph.by_name()
        bytes_ = sum(2 * max(v.dtype.bytes, v.operand.bytes) for v in values.values() if v.is_reduce)
        bytes_ += sum(values[n].dtype.bytes for n in self.tiles)
        tile = COLUMN_TILE
        while not self.turned and tile < WIDEST_TILE and 2 * tile * bytes_ <= TILE_BYTES:
            tile *= 2
        return tile


def plan_nest(graph: HostGraph) -> Nest:
    """The nest that runs `graph`."""
    return _Planner(graph).plan()


class _Planner:
    def __init__(self, graph: HostGraph):
        self.graph = graph
        self.values: Dict[str, Value] = graph.by_name()
        self.order = {v.name: i for i, v in enumerate(graph.values)}
        self.reduced = frozenset().union(*(v.reduced for v in graph.values))
        self.vector = vector_axis(graph)
        self.mode = "row" if self.vector in self.reduced else "column"
        self.levels: Dict[str, int] = {}
        for v in graph.values:
            below = max([self.levels[i] for i in v.inputs] + [0])
            self.levels[v.name] = below + (1 if v.is_reduce else 0)
        self.costs: Dict[str, float] = {}
        self.tiles: Set[str] = set()
        self.buffers: Dict[str, int] = {}  # value -> the level whose main body writes it
        self.first_body: Dict[str, int] = {}

    def plan(self) -> Nest:
        axes = range(len(self.graph.axes))
        outer = tuple(a for a in axes if a not in self.reduced and a != self.vector)
        loops = tuple(a for a in axes if a in self.reduced and a != self.vector)
        levels = range(max(self.levels.values(), default=0) + 1)
        targets = [self.main_targets(level) for level in levels]
        self.choose_tiles(set().union(*targets))
        mains = []
        for level in levels:
            mains.append(self.inline(level, targets[level], may_buffer=self.mode == "row"))
            for name in mains[level]:
                self.first_body.setdefault(name, level)
        tiles = [self.inline(level, self.tile_targets(level)) for level in levels]
        rows = self.row_values(mains + tiles)
        segments = []
        for level in levels:
            tile = main = None
            if tiles[level]:
                tile = Body((), True, tuple(tiles[level]), tuple(n for n in tiles[level] if n in self.tiles))
            if mains[level]:
                kept = tuple(n for n in mains[level] if self.buffers.get(n) == level)
                main = Body(loops, self.vector is not None, tuple(mains[level]), kept)
            row = tuple(self.sorted(n for n in rows if self.levels[n] == level))
            segments.append(Segment(row, tile, main))
        turn, turned = (None, ()) if self.reduced else _turned(self.graph, outer, self.vector)
        return Nest(self.graph, self.mode, outer, self.vector, tuple(sorted(self.reduced)), tuple(segments),
                    tuple(self.sorted(self.tiles)), tuple(self.sorted(self.buffers)), turn, turned)

    def sorted(self, names) -> List[str]:
        return sorted(names, key=self.order.__getitem__)

    def is_full(self, v: Value) -> bool:
        return bool(v.pattern & self.reduced)

    def is_tile(self, v: Value) -> bool:
        return not self.is_full(v) and self.mode == "column" and self.vector in v.pattern

    def is_row(self, v: Value) -> bool:
        """A scalar of an item. A Reduce's result is there when its segment ends."""
        return v.type != "Scalar" and not v.is_reduce and not self.is_full(v) and not self.is_tile(v)

    def main_targets(self, level: int) -> Set[str]:
        """What the main body of a level is for: the Reduces that end it, and full Stores."""
        return {v.name for v in self.graph.values
                if (v.is_reduce and self.levels[v.name] == level + 1)
                or (v.type == "Store" and self.is_full(v) and self.levels[v.name] == level)}

    def tile_targets(self, level: int) -> Set[str]:
        return {v.name for v in self.graph.values if self.levels[v.name] == level
                and (v.name in self.tiles or (v.type == "Store" and self.is_tile(v)))}

    def cost(self, name: str) -> float:
        """Nanoseconds to compute one element from memory, Reduces and scalars being there."""
        if name not in self.costs:
            v = self.values[name]
            self.costs[name] = element_cost(v) + sum(
                self.cost(i) for i in v.inputs
                if not self.values[i].is_reduce and not self.is_row(self.values[i]))
        return self.costs[name]

    def choose_tiles(self, targets: Set[str]) -> None:
        """The dear tile values that main bodies would compute anew for every element of R."""
        seen: Set[str] = set()

        def visit(name: str) -> None:
            v = self.values[name]
            if name in seen or (v.is_reduce and name not in targets):
                return
            seen.add(name)
            if self.is_tile(v) and not v.is_reduce and self.cost(name) > CHEAP:
                self.tiles.add(name)
                return
            for i in v.inputs:
                visit(i)

        for name in targets:
            visit(name)

    def inline(self, level: int, targets: Set[str], may_buffer: bool = False) -> List[str]:
        """The values that a body of this level computes itself, in order: targets and what they need, up to
        what is there already: row values, Reduces, tile arrays. may_buffer: dear values that an earlier main
        body has computed are read from a row buffer."""
        found: Set[str] = set()

        def visit(name: str) -> None:
            v = self.values[name]
            if name in found or v.type == "Scalar":
                return
            if name not in targets:
                if v.is_reduce or name in self.tiles or self.is_row(v):
                    return
                if may_buffer and self.first_body.get(name, level) < level and self.cost(name) > CHEAP:
                    self.buffers[name] = self.first_body[name]
                    return
            found.add(name)
            for i in v.inputs:
                visit(i)

        for name in self.sorted(targets):
            visit(name)
        return self.sorted(found)

    def row_values(self, bodies: List[List[str]]) -> Set[str]:
        """The row values that bodies read and row Stores need, with all that they need."""
        rows = {v.name for v in self.graph.values if v.type == "Store" and self.is_row(v)}
        stack = list(rows) + [n for body in bodies for n in body]
        while stack:
            for i in self.values[stack.pop()].inputs:
                if i not in rows and self.is_row(self.values[i]):
                    rows.add(i)
                    stack.append(i)
        return rows


def vector_axis(graph: HostGraph) -> Optional[int]:
    """The axis along which most elements are read and written contiguously: accesses over all axes count,
    Stores a little more; of others only where these say nothing. The innermost on a tie. An axis of which
    every loop would be short is passed over where another one does as well. Never an axis of chunks: the
    length of the last chunk is a matter of which it is."""
    if not graph.axes:
        return None
    chunks = {axis.limit[0] for axis in graph.axes if axis.limit is not None}
    accesses = [v for v in graph.values if v.access is not None]
    rank = max([len(v.pattern) for v in accesses] + [0])
    scores = []
    for a in range(len(graph.axes)):
        if a in chunks:
            continue
        score = 0.0
        for v in accesses:
            if a in v.pattern and known_equal(v.access.strides[a], 1):
                score += (1.5 if v.type == "Store" else 1.0) * (1.0 if len(v.pattern) == rank else 0.01)
        size = graph.axes[a].size
        if is_static(size) and size < 4:
            score *= 0.25
        scores.append((score, a))
    return max(scores)[1]


def _turned(graph: HostGraph, outer: Tuple[int, ...], vector: Optional[int]) -> Tuple[Optional[int],
                                                                                      Tuple[str, ...]]:
    """(axis, Loads) of which the Loads are contiguous along the axis; (None, ()) where there are none."""
    best: Tuple[Optional[int], Tuple[str, ...]] = (None, ())
    for axis in outer:
        size = graph.axes[axis].size
        if is_static(size) and size < TURN // 2:
            continue
        found = tuple(v.name for v in graph.values if v.type == "Load" and {axis, vector} <= v.pattern
                      and known_equal(v.access.strides[axis], 1)
                      and not known_equal(v.access.strides[vector], 1))
        if len(found) > len(best[1]):
            best = axis, found
    return best
