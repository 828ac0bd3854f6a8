"""How tensors lie in UB, and the copies, counts and broadcasts that follow from it.

A tensor's pattern is the tuple of vectorized axes that it extends along, outermost first. All tensors of one
pattern have the same layout, so that elementwise nodes work on plain counts: row-major over the pattern, the
innermost row padded to `row_align` elements where `padded` holds. Strides are those of a whole tile: where
the tile axis is the outermost one, what a tail tile uses is the front of the tensor; elsewhere the rest of
each row or block holds garbage in a tail tile, which instructions work on and no copy to GM takes.

On exit every plan is legal for the instruction that it is for: rows that start at a row stride are 32 B
aligned, copies that no single DataCopyPad can do have kind 'tile'.
"""
from typing import Dict, List, NamedTuple, Optional, Tuple

from tf_autofuse.ir.asc_graph import AscNode
from tf_autofuse.machine import Machine
from tf_autofuse.schedule.impl_graph import (CONTAINER_ALIGN, BroadcastDim, BroadcastPlan, GatherDim,
                                             GatherPlan, Limit,
                                             PadPlan,
                                             ReducePlan, TransferDim, TransferPlan, TransposePlan)
from tf_autofuse.symbolic.size import Size, align_up, is_static, known_equal, may_be_broadcast, product

Pattern = Tuple[int, ...]
#: LoadTile and StoreTile take this many dims.
MAX_TRANSFER_DIMS = 4


class Layout(NamedTuple):
    """pattern: axes; sizes: extents with the whole tile; strides: in elements; row: innermost extent as laid
    out."""

    pattern: Pattern
    sizes: Tuple[Size, ...]
    strides: Tuple[Size, ...]
    row: Size

    def spread(self, block: int) -> "Layout":
        """The same with each element at the begin of a block of `block` elements."""
        return Layout(self.pattern, self.sizes, tuple(s * block for s in self.strides), self.row * block)

    @property
    def elements(self) -> Size:
        """Elements from the first to the end of the last row."""
        return self.sizes[0] * self.strides[0] if self.sizes else 1


class Tile:
    """The vectorized axes of one cut, and what their extents are.

    axes: ids, outermost first; sizes: id -> Size (a tiled axis: its whole tile); actual: tiled axis -> its
    extent in the tile at hand; row_align: elements that padded rows are a multiple of.
    """

    def __init__(self, axes: Tuple[int, ...], sizes: Dict[int, Size], actual: Dict[int, Size],
                 row_align: int):
        self.axes = axes
        self.sizes = sizes
        self.actual = actual
        self.row_align = row_align
        self._layouts: Dict[Tuple, Layout] = {}  # sizes are slow to compute, and few tensors differ
        self._bytes: Dict[Tuple, Size] = {}

    def layout(self, pattern: Pattern, padded: bool, row_align: int = 0) -> Layout:
        """row_align: of this tensor's padded rows, where it differs from that of all."""
        key = (pattern, padded, row_align)
        if key not in self._layouts:
            self._layouts[key] = self._layout(pattern, padded, row_align)
        return self._layouts[key]

    def _layout(self, pattern: Pattern, padded: bool, row_align: int) -> Layout:
        sizes = tuple(self.sizes[a] for a in pattern)
        if not sizes:
            return Layout(pattern, (), (), 1)
        row = align_up(sizes[-1], row_align or self.row_align) if padded and len(sizes) > 1 else sizes[-1]
        strides: List[Size] = [1]
        step = row
        for size in reversed(sizes[:-1]):
            strides.append(step)
            step = step * size
        return Layout(pattern, sizes, tuple(reversed(strides)), row)

    def live_sizes(self, layout: Layout, whole: bool) -> Tuple[Size, ...]:
        """The extents in the tile at hand; whole: of a full tile (nodes outside of the loop)."""
        if whole:
            return layout.sizes
        return tuple(self.actual.get(a, s) for a, s in zip(layout.pattern, layout.sizes))

    def block_sizes(self, layout: Layout, whole: bool) -> Tuple[Size, ...]:
        """The extents that instructions work on: as laid out, but for the outermost one, which may end
        early."""
        return self.live_sizes(layout, whole)[:1] + layout.sizes[1:]

    def count(self, layout: Layout, whole: bool) -> Size:
        """Elements that one instruction over the tensor works on, padding included."""
        sizes = self.block_sizes(layout, whole)
        return sizes[0] * layout.strides[0] if sizes else 1

    def bytes(self, layout: Layout, item_bytes: int) -> Size:
        """Bytes of the tensor in UB: a multiple of CONTAINER_ALIGN."""
        key = (layout.pattern, layout.row, item_bytes)
        if key not in self._bytes:
            self._bytes[key] = align_up(layout.elements * item_bytes, CONTAINER_ALIGN)
        return self._bytes[key]

    def vectorized_strides(self, layout: Layout) -> Tuple[Size, ...]:
        by_axis = dict(zip(layout.pattern, layout.strides))
        return tuple(by_axis.get(a, 0) for a in self.axes)


def merge_dims(dims) -> Tuple[TransferDim, ...]:
    """Without unit dims; dims that both sides walk as one are one."""
    merged: List[TransferDim] = []
    for d in reversed([TransferDim(*d) for d in dims]):
        if known_equal(d.size, 1):
            continue
        if merged:
            inner = merged[-1]
            if known_equal(d.gm_stride, inner.size * inner.gm_stride) and known_equal(
                    d.ub_stride, inner.size * inner.ub_stride):
                merged[-1] = TransferDim(d.size * inner.size, inner.gm_stride, inner.ub_stride)
                continue
        merged.append(d)
    return tuple(reversed(merged)) or (TransferDim(1, 1, 1),)


def is_contiguous(tile: Tile, pattern: Pattern, gm_strides: Dict[int, Size]) -> bool:
    """Whether the tensor, dense in UB, is one block of GM."""
    layout = tile.layout(pattern, padded=False)
    dims = merge_dims((s, gm_strides[a], u) for a, s, u in zip(pattern, layout.sizes, layout.strides))
    return len(dims) == 1 and (known_equal(dims[0].gm_stride, 1) or known_equal(dims[0].size, 1))


class Transfer(NamedTuple):
    plan: TransferPlan
    limits: Tuple[Limit, ...]


def transfer(tile: Tile, layout: Layout, gm_strides: Dict[int, Size], gm_offset: Size, item_bytes: int,
             whole: bool, machine: Machine, name: str) -> Optional[Transfer]:
    """The copy of a tensor between GM and UB; None where it has more dims than LoadTile takes.

    gm_strides: vectorized axis -> GM stride in elements.
    """
    sizes = tile.live_sizes(layout, whole)
    dims = merge_dims((s, gm_strides[a], u) for a, s, u in zip(layout.pattern, sizes, layout.strides))
    elements = product(d.size for d in dims)
    if len(dims) == 1 and (known_equal(dims[0].gm_stride, 1) or known_equal(dims[0].size, 1)):
        block = (TransferDim(dims[0].size, 1, 1),)
        return Transfer(TransferPlan("dense", block, gm_offset, elements), ())
    if len(dims) > MAX_TRANSFER_DIMS:
        return None
    unit = () if known_equal(dims[-1].ub_stride, 1) else (TransferDim(1, 1, 1),)
    limits = _rows_limits(tile, dims + unit, item_bytes, machine, name)
    if limits is not None:
        dims = dims + unit
    if limits is None:
        return Transfer(TransferPlan("tile", dims, gm_offset, elements), ())
    return Transfer(TransferPlan("rows", dims, gm_offset, elements), limits)


def _rows_limits(tile: Tile, dims, item_bytes: int, machine: Machine,
                 name: str) -> Optional[Tuple[Limit, ...]]:
    """What one DataCopyPad of blocks needs of the tiling; None where it cannot do the copy whatever the
    tiling."""
    if len(dims) != 2 or may_be_broadcast(dims[0].gm_stride):
        return None
    rows, row = dims
    if not (known_equal(row.gm_stride, 1) and known_equal(row.ub_stride, 1)):
        return None
    limits = []
    if is_static(rows.size):
        if rows.size > machine.dma_blocks:
            return None
    else:
        tiled = [tile.sizes[a] for a, actual in tile.actual.items()
                 if known_equal(rows.size, actual) or known_equal(rows.size, tile.sizes[a])]
        if not tiled or (is_static(tiled[0]) and tiled[0] > machine.dma_blocks):
            return None
        if not is_static(tiled[0]):
            limits.append(Limit(tiled[0], machine.dma_blocks, "blocks of one DataCopyPad of " + name))
    gap = rows.gm_stride - row.size
    if known_equal(gap, 0):
        return tuple(limits)
    if is_static(gap):
        return tuple(limits) if 0 <= gap * item_bytes <= machine.dma_gap_bytes else None
    # The sign of a symbolic gap is unknown: such a copy is left to LoadTile.
    return None


def broadcast(tile: Tile, source: Layout, result: Layout, grown: Pattern,
              whole: bool) -> Optional[BroadcastPlan]:
    """Extending `source` along the axes `grown` gives `result`. None where the grown axes are not neighbours
    in the result's pattern: such a broadcast is done in several steps."""
    first = result.pattern.index(grown[0])
    if result.pattern[first:first + len(grown)] != grown:
        return None
    sizes = tile.block_sizes(result, whole)
    if not source.pattern:
        return BroadcastPlan("fill", (), 1, tile.count(result, whole), 1, 1)
    last = first + len(grown)
    ends_row = last == len(result.pattern)
    inner = 1 if ends_row else _span(result, last)
    extent = product(sizes[first:last - 1]) * (result.row if ends_row else sizes[last - 1])
    source_at = dict(zip(source.pattern, source.strides))
    outer = _merge_outer([BroadcastDim(sizes[i], source_at[result.pattern[i]], result.strides[i])
                          for i in range(first)])
    if not outer:
        return BroadcastPlan("rows", (), 1, extent, inner, inner)
    rows = outer[-1]
    kind = "columns" if ends_row else "blocks"
    return BroadcastPlan(kind, outer[:-1], rows.size, extent, inner, rows.src_stride)


def _span(layout: Layout, first: int) -> Size:
    """Elements of one index of the axis before position `first`: the inner block, its padding included."""
    size = layout.row
    for s in layout.sizes[first:-1]:
        size = size * s
    return size


def _merge_outer(dims: List[BroadcastDim]) -> Tuple[BroadcastDim, ...]:
    merged: List[BroadcastDim] = []
    for d in reversed([d for d in dims if not known_equal(d.size, 1)]):
        if merged:
            inner = merged[-1]
            if known_equal(d.src_stride, inner.size * inner.src_stride) and known_equal(
                    d.dst_stride, inner.size * inner.dst_stride):
                merged[-1] = BroadcastDim(d.size * inner.size, inner.src_stride, inner.dst_stride)
                continue
        merged.append(d)
    return tuple(reversed(merged))


def reduction(tile: Tile, source: Layout, result: Layout, axes: Pattern, whole: bool) -> ReducePlan:
    """Reducing `source` along neighbouring axes gives `result`; the innermost axis goes alone."""
    first = source.pattern.index(axes[0])
    last = first + len(axes)
    assert source.pattern[first:last] == axes, "reduced axes are no neighbours"
    sizes, live = tile.block_sizes(source, whole), tile.live_sizes(source, whole)
    result_at = dict(zip(result.pattern, result.strides))
    outer = _merge_outer([BroadcastDim(sizes[i], source.strides[i], result_at[source.pattern[i]])
                          for i in range(first)])
    if last == len(source.pattern):
        assert len(axes) == 1, "the innermost axis is reduced together with others"
        if outer:
            return ReducePlan("last", outer[:-1], outer[-1].size, live[-1], outer[-1].src_stride)
        return ReducePlan("last", (), 1, live[-1], align_up(source.row, tile.row_align))
    stride = source.strides[last - 1]
    columns = live[last] if last == len(source.pattern) - 1 else stride
    return ReducePlan("first", outer, product((live[first],) + sizes[first + 1:last]), columns, stride)


def transpose_plan(tile: Tile, source: Layout, result: Layout, whole: bool) -> TransposePlan:
    """From one order of axes to another: the two innermost ones change places, the others are loops."""
    sizes = tile.live_sizes(source, whole)
    src = dict(zip(source.pattern, source.strides))
    dst = dict(zip(result.pattern, result.strides))
    row, col = result.pattern[-1], source.pattern[-1]
    extents = dict(zip(source.pattern, sizes))
    outer = tuple(BroadcastDim(extents[a], src[a], dst[a]) for a in result.pattern if a not in (row, col))
    return TransposePlan(tuple(d for d in outer if not known_equal(d.size, 1)), extents[row], extents[col],
                         src[row],
                         dst[col])


def gather_plan(tile: Tile, layout: Layout, index: Layout, node: AscNode, gm_strides: Dict[int, Size],
                gm_offset: Size, by_rows: bool, spread: bool, whole: bool) -> GatherPlan:
    """A Gather of the tensor laid out as `layout` by the index tensor laid out as `index`: one call for the
    innermost axis of the index (and, by rows, the row), loops for the others. spread: rows of one element."""
    sizes = dict(zip(layout.pattern, tile.live_sizes(layout, whole)))
    dst, idx = dict(zip(layout.pattern, layout.strides)), dict(zip(index.pattern, index.strides))
    called = index.pattern[-1:]
    if by_rows and not spread:
        row = layout.pattern[-1]
        cols, inside = sizes[row], called + (row,)
    else:
        called = called if called == layout.pattern[-1:] else ()
        cols, inside = 1, called
    outer = tuple(GatherDim(sizes[a], gm_strides[a], dst[a], idx.get(a, 0)) for a in layout.pattern
                  if a not in inside)
    count, ub_stride = (sizes[called[0]], dst[called[0]]) if called else (1,
                                                                          align_up(layout.row,
                                                                                   tile.row_align))
    return GatherPlan("rows" if by_rows else "elements", tuple(d for d in outer
                                                               if not known_equal(d.size, 1)), count,
                      cols, ub_stride, node.attr("index_stride"), node.attr("index_size"), gm_offset)


def pad_plan(tile: Tile, padded: Layout, whole: bool) -> PadPlan:
    """RemovePad of a padded tensor of at least two axes."""
    sizes = tile.live_sizes(padded, whole)
    return PadPlan(product(sizes[:-1]), sizes[-1], padded.row)
