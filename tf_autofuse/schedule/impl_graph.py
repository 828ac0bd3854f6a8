"""What a schedule is: one kernel variant, complete enough for codegen to print and for tiling to price.

How codegen reads an ImplGraph
    The kernel of one tiling key is
        InitBuffer for every Container: bytes are the run-time field `container.field` of the tiling data, a
            multiple of 256; where tmp_bytes is not empty, also one scratch TBuf (field `tmp_bytes`)
        nodes with sched.loop_axis == -1 (they come first in graph.nodes), once
        for (i = 0; i < block_in && first + i < total; ++i)        first = block index * block_in
            decode first + i, row-major, into one index symbol per outer axis (index_symbol(axis))
            tile_actual = min(tile, size of the cut axis - index of TILE_OUT * tile)
            (likewise for the second tiled axis, whose tile is a number)
            the other nodes, in order
        FreeTensor for hoisted Load results that the loop reads.
    total = product of graph.axis(a).size over outer_axes.

    Every Size in a plan is an expression over: the graph's symbols, `tile_symbol`, `tile_actual`, and in
    gm_offset the index symbols. Print it with symbolic.size.to_cpp. All values are elements, not bytes.

Node types that codegen meets, beside Data, Scalar, Output and the op table's
    Load, Store   plan(node): TransferPlan. Several Stores may read one tensor.
    Broadcast     plan(node): BroadcastPlan, in UB only; broadcasts along outer axes are gone. Its input may
                  be a Scalar (then kind 'fill' from a literal).
    RemovePad     plan(node): PadPlan; rows padded to 32 B -> dense rows.
    Transpose     plan(node): TransposePlan; 16 and 32-bit data, for copies whose GM order is not the loops'.
                  Where there is none for a copy, each element has a 32 B block of its own in UB: behind a
                  Load a RemovePad of rows of one element follows, before a Store stands a Broadcast of kind
                  'columns'.
    Gather        plan(node): GatherPlan; its second input is the index tensor.
    Copy          plan(node): ElementPlan; UB -> UB by DataCopy of `count` rounded up to whole 32 B.
    a reduction   (attr axes) plan(node): ReducePlan; one step along neighbouring axes in UB. The form 'last'
                  or 'first' of the op's row is the call.
    compute       plan(node): ElementPlan: the `count` of the call.
    A Scalar input of a compute node always has a form ('scalar1' or 'scalar0') in the op's row; where it had
    none, the schedule has put a Broadcast from the Scalar before it, so codegen needs no buffers of its own.

Memory: outputs[0].memory names the Container
    VECIN   exactly the results of Loads and of Gathers of rows. AllocTensor, copy, EnQue at the Load; DeQue
            before the first reader; FreeTensor after the last reader (one that the loop reads although it
            was loaded before it: after the loop). Several
            tensors may share one queue: their life spans (Load to last reader) never overlap, so no EnQue is
            outstanding while another happens.
    VECOUT  exactly the tensors that Stores read. AllocTensor before the producing node; other readers come
            earlier in graph.nodes than the first Store; EnQue + DeQue before the first Store, FreeTensor
            after the last Store. Producer and Stores are all inside of the loop.
    VECCALC a TBuf, Get it once; tensors of one container never live at the same time, except that a node
            with in_place in its row may write the container of an input that dies with it.
    A tensor's UB bytes never exceed the container's; instructions may touch round_up(bytes, 256).

What tiling reads: axes, containers, tmp_bytes, limits, uses_scratch, and the plans for the cost model.
"""
from dataclasses import dataclass
from typing import Mapping, NamedTuple, Optional, Tuple, Union

from tf_autofuse.ir.asc_graph import AscGraph, AscNode, Position, TensorRef
from tf_autofuse.symbolic.guards import Guard
from tf_autofuse.symbolic.size import Size, maximum, symbol, to_text

#: Every container is a multiple of this, so that a count may be rounded up to whole vector repeats.
CONTAINER_ALIGN = 256


class ScheduleRefusal(Exception):
    """The graph cannot be scheduled on the machine; `reason` is a sentence for `explain`."""

    def __init__(self, reason: str):
        super().__init__(reason)
        self.reason = reason


class TransferDim(NamedTuple):
    size: Size
    gm_stride: Size
    ub_stride: Size


class TransferPlan(NamedTuple):
    """GM <-> UB of one tile.

    kind 'dense': one dim, both strides 1: DataCopyPad of one block.
    kind 'rows': two dims, inner strides 1, outer UB stride a multiple of 32 B, outer GM stride >= the row;
        the outer size is <= machine.dma_blocks (tiling keeps it): DataCopyPad of blocks.
    kind 'tile': anything else, at most 4 dims; GM strides may be 0 at run time: LoadTile / StoreTile.
    dims: outermost first, never empty. elements: product of sizes.
    """

    kind: str
    dims: Tuple[TransferDim, ...]
    gm_offset: Size
    elements: Size


class ElementPlan(NamedTuple):
    """count: elements that one call works on; padding of rows included."""

    count: Size


class BroadcastDim(NamedTuple):
    size: Size
    src_stride: Size
    dst_stride: Size


class BroadcastPlan(NamedTuple):
    """dst[r][e][i] = src[r][i] for r < rows, e < extent, i < inner, for every index of the outer loops.

    kind 'fill': rows == inner == 1, one element (or a Scalar) to `extent` elements.
    kind 'rows': rows == 1, `inner` elements repeated `extent` times; inner is a multiple of 32 B.
    kind 'columns': inner == 1, each of `rows` consecutive elements to `extent` elements, a multiple of 32 B.
    kind 'blocks': rows of `inner` elements (src row stride src_row), each repeated `extent` times.
    dst rows are `extent * inner` apart: contiguous. outer: loops around it, outermost first, mostly none;
    their strides are multiples of 32 B.
    """

    kind: str
    outer: Tuple[BroadcastDim, ...]
    rows: Size
    extent: Size
    inner: Size
    src_row: Size


class PadPlan(NamedTuple):
    """rows of `row` elements: `padded` apart in the source, dense in the result."""

    rows: Size
    row: Size
    padded: Size


class ReducePlan(NamedTuple):
    """kind 'last': dst[i] = fold of src[i * stride + j] over j < cols, i < rows.
    kind 'first': dst[j] = fold of src[i * stride + j] over i < rows, j < cols; lanes of dst behind them are
    undefined.
    Rows are `stride` elements apart, a multiple of 32 B. outer: loops around it, outermost first, whose
    strides are multiples of 32 B.
    """

    kind: str
    outer: Tuple[BroadcastDim, ...]
    rows: Size
    cols: Size
    stride: Size


@dataclass(frozen=True)
class Container:
    """A queue or a buffer in UB.

    tensor_bytes: the bytes that its tensors need, in the graph's symbols and the tile symbol, each a multiple
    of CONTAINER_ALIGN; the container is as large as the largest. tensors: who lives there, in order of birth.
    """

    position: Position
    id: int
    buf_num: int
    tensor_bytes: Tuple[Size, ...]
    tensors: Tuple[TensorRef, ...]

    @property
    def bytes(self) -> Size:
        """Bytes of one buffer."""
        result = self.tensor_bytes[0]
        for b in self.tensor_bytes[1:]:
            result = maximum(result, b)
        return result

    @property
    def name(self) -> str:
        return "%s%d" % (self.position.value.lower(), self.id)

    @property
    def field(self) -> str:
        """The tiling data's field with the bytes of one buffer."""
        return self.name + "_bytes"


class Limit(NamedTuple):
    """`value <= bound` must hold of a tiling; value grows with the tile. `why` names what needs it."""

    value: Size
    bound: int
    why: str


class TransposePlan(NamedTuple):
    """dst[j * dst_stride + i] = src[i * src_stride + j] for i < rows, j < cols. Both strides and those of the
    outer loops are multiples of 32 B."""

    outer: Tuple[BroadcastDim, ...]
    rows: Size
    cols: Size
    src_stride: Size
    dst_stride: Size


class GatherDim(NamedTuple):
    size: Size
    gm_stride: Size
    dst_stride: Size
    index_stride: Size


class GatherPlan(NamedTuple):
    """For every index of the loops `outer`, whose strides move GM, dst and the index tensor:
    kind 'rows': dst[i * ub_stride + j] = gm[gm_offset + index[i] * index_stride + j] for i < count, j < cols;
        rows ub_stride apart, a multiple of 32 B. The result is a VECIN queue's, as a Load's.
    kind 'elements': dst[i] = gm[gm_offset + index[i] * index_stride] for i < count, by the scalar unit (never
    of a Workspace, which other cores write behind its cache); VECCALC.
    limit: indices are in [0, limit). All in elements.
    """

    kind: str
    outer: Tuple[GatherDim, ...]
    count: Size
    cols: Size
    ub_stride: Size
    index_stride: Size
    limit: Size
    gm_offset: Size


Plan = Union[TransferPlan, ElementPlan, BroadcastPlan, PadPlan, ReducePlan, TransposePlan, GatherPlan]


class SecondTile(NamedTuple):
    """A second tiled axis: the axis, its TILE_OUT and TILE_IN axes, elements of a tile, and the symbol of its
    extent in the tile at hand."""

    axis: int
    tile_out: int
    tile_in: int
    tile: int
    actual: str


@dataclass(frozen=True)
class ImplGraph:
    """See the head of the file.

    template: 'general' (rows padded to 32 B wherever vector instructions need it), 'unaligned' (full-size
    tensors dense, RemovePad after their broadcasts) or 'tight' (as general, but no queue is double-buffered:
    where nothing else fits). variant: 'static', 'contiguous' (every dim that might be
    broadcast at run time is not; `conditions` say so) or 'strided' (run-time strides). tiling_key: number
    of the variant within its nest. cut_axis: id of the ORIGINAL axis that is split into tile_out and
    tile_axis. outer_axes: ids, outermost first, the last is tile_out; merged_axis is their MERGED axis, split
    into block_axis and block_in. vectorized_axes: tile_axis, everything inside of it, and the reduced axes
    outside of it, outermost first. axis_groups: loop axes by role, (name, ids); 'y', and 'r' for reduced
    ones. row_align: elements that padded rows are a multiple of.
    way, stage: the nest that this is a variant of, see schedule/nests.py. parts_symbol: of a nest of partial
    reductions, the symbol that stands for its number of tiles in the nests behind it, else ''. reduced_size:
    elements that are reduced to one, 1 where none are.
    """

    graph: AscGraph
    template: str
    variant: str
    tiling_key: int
    conditions: Tuple[Guard, ...]
    cut_axis: int
    tile_out: int
    tile_axis: int
    tile_symbol: str
    tile_actual: str
    outer_axes: Tuple[int, ...]
    merged_axis: int
    block_axis: int
    block_in: int
    block_symbol: str
    vectorized_axes: Tuple[int, ...]
    axis_groups: Tuple[Tuple[str, Tuple[int, ...]], ...]
    row_align: int
    containers: Tuple[Container, ...]
    tmp_bytes: Tuple[Size, ...]
    uses_scratch: bool
    limits: Tuple[Limit, ...]
    plans: Tuple[Tuple[str, Plan], ...]
    way: str = "whole"
    stage: int = 0
    parts_symbol: str = ""
    reduced_size: Size = 1
    second: Optional[SecondTile] = None

    def plan(self, node: AscNode) -> Plan:
        """The plan of a Load, Store, Broadcast, RemovePad, Copy or compute node. KeyError for others."""
        for name, plan in self.plans:
            if name == node.name:
                return plan
        raise KeyError(node.name)

    def container(self, ref: TensorRef) -> Container:
        memory = self.graph.tensor(ref).memory
        for c in self.containers:
            if (c.position, c.id) == (memory.position, memory.container):
                return c
        raise KeyError(ref)

    @property
    def actuals(self) -> Tuple[str, ...]:
        """The symbols of tiled axes' extents in the tile at hand."""
        return (self.tile_actual,) + ((self.second.actual,) if self.second else ())

    @property
    def whole_tile(self) -> Mapping[str, Size]:
        """What these symbols are in a whole tile."""
        sizes = {self.tile_actual: symbol(self.tile_symbol)}
        if self.second:
            sizes[self.second.actual] = self.second.tile
        return sizes

    @property
    def cut_size(self) -> Size:
        """Elements of the cut axis."""
        return self.graph.axis(self.cut_axis).size

    def index_symbol(self, axis: int) -> str:
        """The symbol of an outer axis's loop index in gm_offset expressions."""
        return "i_" + self.graph.axis(axis).name

    @property
    def scratch_bytes(self) -> Size:
        """Bytes of the scratch TBuf that helper calls share; 0 for none."""
        result: Size = 0
        for b in self.tmp_bytes:
            result = maximum(result, b)
        return result

    @property
    def hoisted(self) -> Tuple[AscNode, ...]:
        """Nodes that run once per block, before the loop, in order (without Data, Scalar, Output)."""
        planned = {name for name, _ in self.plans}
        return tuple(n for n in self.graph.nodes if n.name in planned and n.sched.loop_axis == -1)

    @property
    def body(self) -> Tuple[AscNode, ...]:
        """Nodes that run for every tile, in order."""
        planned = {name for name, _ in self.plans}
        return tuple(n for n in self.graph.nodes if n.name in planned and n.sched.loop_axis != -1)

    def describe(self) -> str:
        """Template, key, way, axes and containers, for people."""
        def sizes(axes) -> str:
            found = [self.graph.axis(a) for a in axes]
            return ", ".join("%s: %s" % (a.name, to_text(a.size)) for a in found)

        conditions = ", if " + " and ".join(map(repr, self.conditions)) if self.conditions else ""
        cut = self.graph.axis(self.cut_axis)
        way = "" if self.way == "whole" else ", %s stage %d" % (self.way, self.stage)
        second = self.second and self.graph.axis(self.second.axis)
        tiled = " and %s (%s) of %d" % (second.name, to_text(second.size), self.second.tile) if second else ""
        lines = ["key %d: %s, %s%s%s" % (self.tiling_key, self.template, self.variant, way, conditions),
                 "  cut %s (%s) into tiles of %s%s; loop over (%s), blocks of %s" % (
                     cut.name, to_text(cut.size), self.tile_symbol, tiled, sizes(self.outer_axes),
                     self.block_symbol),
                 "  in UB: (%s), rows padded to %d elements" % (sizes(self.vectorized_axes), self.row_align)]
        for c in self.containers:
            lines.append("  %-9s x%d  %-40s %s" % (
                c.name, c.buf_num, " | ".join(map(to_text, c.tensor_bytes)),
                " ".join(t.node for t in c.tensors)))
        if self.tmp_bytes:
            lines.append("  scratch       %s" % " | ".join(map(to_text, self.tmp_bytes)))
        for title, nodes in (("once per block", self.hoisted), ("per tile", self.body)):
            if nodes:
                lines.append("  %s: %s" % (title, " ".join(n.name for n in nodes)))
        return "\n".join(lines)
