"""Where to cut: tiling cases, and the axes that a cut makes.

Cutting the loop axis z at a tile size t gives zT (TILE_OUT) and zt (TILE_IN). zt and the axes inside of z lie
in UB (the vectorized axes); the axes outside of z and zT are the outer loop. They merge into one axis that is
split over blocks. Axes that a reduction runs along (group r) always lie in UB, those outside of z too; all
others are of group y. Where the cut axis itself is reduced, each tile gives a partial result.
"""
from typing import List, NamedTuple, Optional, Tuple

from tf_autofuse.ir.asc_graph import AscGraph, Axis, AxisType
from tf_autofuse.machine import Machine, usable_ub
from tf_autofuse.schedule.axes import is_reduction
from tf_autofuse.schedule.impl_graph import SecondTile
from tf_autofuse.schedule.layout import MAX_TRANSFER_DIMS
from tf_autofuse.symbolic.size import Size, ceil_div, is_static, known_equal, product, symbol

#: A DMA instruction below this many bytes is far from peak bandwidth (AscendC guide: 16 KiB).
GOOD_TRANSFER_BYTES = 16 * 1024
#: Tiling cases kept for one variant of a graph with run-time dims, and of a static one.
MAX_CASES_DYNAMIC = 3
MAX_CASES_STATIC = 2


#: Elements of the second tiled axis of a cut that tiles two: 512 B of 32-bit data, whole blocks of any type.
SECOND_TILE = 128


class Cut(NamedTuple):
    """Positions in loop_axes: of the axis that is tiled by a symbol, and of one inside of it that is tiled by
    SECOND_TILE, or -1."""

    position: int
    second: int = -1


class SplitAxes(NamedTuple):
    """The axes of one cut; `axes` are all of the graph's: the new ones last."""

    axes: Tuple[Axis, ...]
    cut: Axis
    tile_out: Axis
    tile_in: Axis
    merged: Axis
    block_out: Axis
    block_in: Axis
    outer: Tuple[int, ...]
    vectorized: Tuple[int, ...]
    tile_symbol: str
    tile_actual: str
    block_symbol: str
    reduced: Tuple[int, ...]
    second: Optional[SecondTile]

    @property
    def outer_loops(self) -> Tuple[int, ...]:
        """The loop axes that the outer loop walks, whole or by tiles."""
        second = {self.second.tile_out: self.second.axis} if self.second else {}
        return tuple(second.get(a, a) for a in self.outer[:-1]) + (self.cut.id,)

    def loop_axis(self, vectorized: int) -> int:
        """The loop axis that an axis in UB is, or is a tile of."""
        if self.second and vectorized == self.second.tile_in:
            return self.second.axis
        return self.cut.id if vectorized == self.tile_in.id else vectorized


def reduced_axes(graph: AscGraph) -> Tuple[int, ...]:
    """The loop axes that some reduction of the graph runs along, outermost first."""
    reduced = {a for n in graph.nodes if is_reduction(n) for a in n.attr("axes")}
    return tuple(a for a in graph.loop_axes if a in reduced)


def split_at(graph: AscGraph, where: Cut) -> SplitAxes:
    """The axes of a cut."""
    position = where.position
    reduced = reduced_axes(graph)
    before = graph.loop_axes[:position]
    cut = graph.axis(graph.loop_axes[position])
    tile_symbol = cut.name + "t_size"
    next_id = max(a.id for a in graph.axes) + 1
    tiles = ceil_div(cut.size, symbol(tile_symbol))
    tile_out = Axis(next_id, cut.name + "T", tiles, AxisType.TILE_OUT, (cut.id,))
    tile_in = Axis(next_id + 1, cut.name + "t", symbol(tile_symbol), AxisType.TILE_IN, (cut.id,))
    second, second_axes = None, ()
    if where.second >= 0:
        whole = graph.axis(graph.loop_axes[where.second])
        second_axes = (Axis(next_id + 2, whole.name + "T", ceil_div(whole.size, SECOND_TILE),
                            AxisType.TILE_OUT, (whole.id,)),
                       Axis(next_id + 3, whole.name + "t", SECOND_TILE, AxisType.TILE_IN, (whole.id,)))
        second = SecondTile(whole.id, next_id + 2, next_id + 3, SECOND_TILE, whole.name + "t_actual")
        next_id += 2
    outer = tuple(graph.axis(a) for a in before if a not in reduced) + second_axes[:1] + (tile_out,)
    outer_ids = tuple(a.id for a in outer)
    name, size = "".join(a.name for a in outer), product(a.size for a in outer)
    merged = Axis(next_id + 2, name, size, AxisType.MERGED, outer_ids)
    block_symbol = name + "b_size"
    blocks = ceil_div(size, symbol(block_symbol))
    block_out = Axis(next_id + 3, name + "B", blocks, AxisType.BLOCK_OUT, (merged.id,))
    block_in = Axis(next_id + 4, name + "b", symbol(block_symbol), AxisType.BLOCK_IN, (merged.id,))
    inside = tuple(second.tile_in if second and a == second.axis else a
                   for a in graph.loop_axes[position + 1:])
    return SplitAxes(
        axes=graph.axes + (tile_out, tile_in) + second_axes + (merged, block_out, block_in),
        cut=cut, tile_out=tile_out,
        tile_in=tile_in, merged=merged, block_out=block_out, block_in=block_in, outer=outer_ids,
        vectorized=tuple(a for a in before if a in reduced) + (tile_in.id,) + inside,
        tile_symbol=tile_symbol, tile_actual=cut.name + "t_actual", block_symbol=block_symbol,
        reduced=reduced, second=second)


def cut_positions(graph: AscGraph, machine: Machine) -> Tuple[int, ...]:
    """Positions of loop_axes worth cutting at, the best guess first, never empty.

    Left out: cuts whose inner axes statically exceed UB or are more than a copy has dims, and cuts that
    statically cannot make a copy of GOOD_TRANSFER_BYTES while the next cut outwards can only make larger ones
    and surely fits. The innermost cut always fits; it is left out only where a cut that surely fits replaces
    it.
    """
    reduced = reduced_axes(graph)
    item = max(n.y.dtype.bytes for n in graph.of_type("Load", "Store"))
    candidates = _candidates(graph)
    in_ub = {p: [a for i, a in enumerate(graph.loop_axes) if i > p or (i < p and a in reduced)]
             for p in candidates}
    kept = []
    for position, further in zip(candidates, candidates[1:] + (None,)):
        inner = product(graph.axis(a).size for a in in_ub[position])
        if len(in_ub[position]) >= MAX_TRANSFER_DIMS:
            break
        if is_static(inner) and inner * item > usable_ub(machine, True):
            break
        can_move_out = further is not None and len(in_ub[further]) < MAX_TRANSFER_DIMS
        if can_move_out and _is_tiny(inner, graph.axis(graph.loop_axes[position]).size, item):
            continue
        kept.append(position)
    if all(is_static(graph.axis(a).size) for a in graph.loop_axes):
        return tuple(kept[:MAX_CASES_STATIC])
    if len(kept) > MAX_CASES_DYNAMIC:
        kept = kept[:MAX_CASES_DYNAMIC - 1] + kept[-1:]
    return tuple(kept)


def _candidates(graph: AscGraph) -> Tuple[int, ...]:
    """Positions of loop_axes that may be cut, innermost first: all but the reduced ones, at least one."""
    reduced = reduced_axes(graph)
    return tuple(p for p in reversed(range(len(graph.loop_axes))) if graph.loop_axes[p] not in reduced)


def innermost_cut(graph: AscGraph) -> int:
    """The cut with the fewest elements in UB."""
    return _candidates(graph)[0]


def _is_tiny(inner: Size, size: Size, item: int) -> bool:
    return is_static(inner) and is_static(size) and inner * size * item < GOOD_TRANSFER_BYTES


def second_cut(graph: AscGraph, position: int, inner: int) -> Optional[Cut]:
    """A cut that tiles the axis at `inner`, too; None where that one is small anyway."""
    size = graph.axis(graph.loop_axes[inner]).size
    return None if is_static(size) and size <= SECOND_TILE else Cut(position, inner)


def transposing_cuts(graph: AscGraph) -> List[Cut]:
    """Cuts that tile two axes: the innermost one of a copy and the one that is contiguous in GM, where they
    are not the same. At most one a pair; the axes between them lie in UB as a whole."""
    reduced = reduced_axes(graph)
    cuts: List[Cut] = []
    for n in graph.of_type("Load", "Store"):
        extended = [i for i, r in enumerate(n.y.repeats) if not known_equal(r, 1)]
        rows = [i for i in extended if known_equal(n.y.strides[i], 1)]
        if not rows or rows[0] == extended[-1] or graph.loop_axes[rows[0]] in reduced:
            continue
        if graph.loop_axes[extended[-1]] in reduced or len(graph.loop_axes) - rows[0] > MAX_TRANSFER_DIMS:
            continue
        cut = second_cut(graph, rows[0], extended[-1])
        if cut and cut not in cuts:
            cuts.append(cut)
    return cuts[:MAX_CASES_STATIC]


def partial_cuts(graph: AscGraph) -> List[Cut]:
    """Cuts of the outermost reduced axis; where axes that are not reduced lie inside of it, also with the
    innermost of those tiled."""
    reduced = reduced_axes(graph)
    position = graph.loop_axes.index(reduced[0])
    inside = [i for i in range(position + 1, len(graph.loop_axes)) if graph.loop_axes[i] not in reduced]
    cut = second_cut(graph, position, inside[-1]) if inside else None
    return [Cut(position)] + ([cut] if cut else [])


def axis_groups(split: SplitAxes) -> Tuple[Tuple[str, Tuple[int, ...]], ...]:
    """Loop axes by role: 'r' are reduced by some node, 'y' all others; within a group the cut one after the
    outer ones."""
    axes = split.outer_loops + tuple(a for a in split.vectorized
                                     if split.loop_axis(a) not in split.outer_loops)
    groups = (("y", tuple(a for a in axes if a not in split.reduced)),
              ("r", tuple(a for a in axes if a in split.reduced)))
    return tuple(g for g in groups if g[1])
