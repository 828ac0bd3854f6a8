"""What a kernel costs: cycles per pipe as formulas of tile, block dim and sizes.

Each pipe costs its start, the hoisted nodes once and the loop's nodes once for each tile of a block. The
published objective is launch + the slowest pipe, as if a load of the first tile and the store of the last one
overlapped with something; ours counts them, since a core of a small kernel has one tile or two
(docs/npu-model.md).
"""
from typing import Dict, Mapping, NamedTuple, Optional, Tuple

from tf_autofuse.ir.asc_graph import AscNode
from tf_autofuse.ir.dtypes import DType
from tf_autofuse.ops.schema import AscOp
from tf_autofuse.schedule.impl_graph import (BroadcastPlan, ElementPlan, GatherPlan, ImplGraph, PadPlan,
                                             ReducePlan,
                                             TransferPlan, TransposePlan)
from tf_autofuse.symbolic.size import (Size, align_up, ceil_div, floor_div, is_static, maximum, product,
                                       substitute, symbol)
from tf_autofuse.tiling import cost_table as table
from tf_autofuse.tiling.formula import Formula, choose, larger, of, total
from tf_autofuse.tiling.helper_costs import HELPERS

#: The symbol of the number of blocks (cores) in formulas.
BLOCK_DIM = "block_dim"
PIPES = MTE2, MTE3, VECTOR = ("mte2", "mte3", "vector")
#: The pipes in the order in which a tile passes them.
FLOW = (MTE2, VECTOR, MTE3)


#: Scalar accesses for one gathered element: the index, the element, the result.
_ELEMENT_ACCESSES = ("LocalTensor::GetValue", "GlobalTensor::GetValue", "LocalTensor::SetValue")


class PipeCost(NamedTuple):
    """Cycles of one pipe: `start` once, the nodes of `hoisted` once per block, those of `body` once per tile;
    each node as (name, cycles)."""

    pipe: str
    start: Formula
    hoisted: Tuple[Tuple[str, Formula], ...]
    body: Tuple[Tuple[str, Formula], ...]


def pipe_costs(impl: ImplGraph, ops: Mapping[str, AscOp]) -> Tuple[PipeCost, ...]:
    """The pipes that the kernel uses. Formulas over the graph's symbols, the tile symbol and BLOCK_DIM."""
    parts: Dict[str, Tuple[list, list]] = {p: ([], []) for p in PIPES}
    # A tile is priced as a whole one.
    whole = impl.whole_tile
    largest: Optional[Formula] = None
    for i, nodes in enumerate((impl.hoisted, impl.body)):
        for n in nodes:
            plan = _whole(impl.plan(n), whole)
            if n.type == "Load":
                parts[MTE2][i].append((n.name, load_cost(plan, n.y.dtype)))
                bytes_ = of(plan.elements * n.y.dtype.bytes)
                largest = bytes_ if largest is None else larger(largest, bytes_)
            elif n.type == "Gather":
                parts[MTE2][i].append((n.name, gather_cost(plan, n.y.dtype)))
            elif n.type == "Store":
                parts[MTE3][i].append((n.name, store_cost(plan, n.y.dtype)))
            else:
                parts[VECTOR][i].append((n.name, vector_cost(impl, n, plan, ops)))
    starts = {MTE3: of(table.STORE_HEAD), VECTOR: of(table.VECTOR_HEAD)}
    if largest is not None:
        starts[MTE2] = choose(largest, table.DMA_LARGE_BYTES, _head(table.LOAD_HEAD_SMALL),
                              _head(table.LOAD_HEAD_LARGE))
    return tuple(PipeCost(p, starts[p], tuple(parts[p][0]), tuple(parts[p][1]))
                 for p in PIPES if any(parts[p]))


def objective(costs: Tuple[PipeCost, ...], tiles_per_block: Size) -> Formula:
    """Cycles of the whole kernel: a pipeline of MTE2, V and MTE3 whose slowest pipe works without a gap from
    the first tile's arrival on; what the pipes behind it do with the last tile comes on top."""
    slowest, ready = of(0.0), of(0.0)
    bodies = [total([cycles for _, cycles in c.body]) for c in costs]
    order = sorted(range(len(costs)), key=lambda i: FLOW.index(costs[i].pipe))
    for at, i in enumerate(order):
        ready = larger(costs[i].start, ready) + total([cycles for _, cycles in costs[i].hoisted])
        behind = total([bodies[k] for k in order[at + 1:]])
        slowest = larger(slowest, ready + of(tiles_per_block) * bodies[i] + behind)
        ready = ready + bodies[i]
    return of(table.LAUNCH) + slowest


def head(costs: Tuple[PipeCost, ...]) -> Formula:
    """Cycles before the slowest pipe to start works."""
    slowest = of(0.0)
    for c in costs:
        slowest = larger(slowest, c.start)
    return of(table.LAUNCH) + slowest


def _head(head: table.LoadHead) -> Formula:
    return of(head.per_block) * symbol(BLOCK_DIM) + head.b


def _rate(rate: table.Rate) -> Formula:
    return of(rate.alone) + of(rate.shared) / symbol(BLOCK_DIM)


def _whole(plan, values):
    """The plan with the actual extent replaced by the tile."""
    def walk(item):
        if isinstance(item, tuple):
            parts = [walk(x) for x in item]
            return type(item)(*parts) if hasattr(item, "_fields") else tuple(parts)
        return item if isinstance(item, str) else substitute(item, values)

    return walk(plan)


class _Blocks(NamedTuple):
    """One DMA instruction, `repeats` times: `count` blocks of `bytes`, `gap` bytes between them in GM."""

    repeats: Size
    count: Size
    bytes: Size
    gap: Optional[Size]


def _blocks(plan: TransferPlan, item: int) -> _Blocks:
    """A copy as the DMA does it: the two inner dims are one instruction. A copy whose rows may be broadcast
    at run time is priced as if they were not."""
    row = plan.dims[-1]
    if len(plan.dims) == 1:
        return _Blocks(1, 1, row.size * item, None)
    rows = plan.dims[-2]
    contiguous_gap = (rows.gm_stride - row.size) * item
    gap = contiguous_gap if is_static(contiguous_gap) and contiguous_gap >= 0 else 0
    return _Blocks(product(d.size for d in plan.dims[:-2]), rows.size, row.size * item, gap)


def _modulo(a: Size, b: int) -> Size:
    return a % b if is_static(a) else a - floor_div(a, b) * b


def load_cost(plan: TransferPlan, dtype: DType) -> Formula:
    """Cycles on MTE2 of one Load."""
    b = _blocks(plan, dtype.bytes)
    moved = b.count * b.bytes
    small = of(moved)
    if b.gap is not None:
        small = choose(b.bytes, 32, b.count * table.LOAD_SMALL_BLOCK_BYTES, moved)
    cycles = choose(moved, table.DMA_LARGE_BYTES, small / _rate(table.LOAD_RATE_SMALL),
                    of(moved) / _rate(table.LOAD_RATE_LARGE)) + table.LOAD_START
    if b.gap:
        cycles = cycles + of(table.LOAD_GAP) * (b.count * _modulo(b.gap, 256))
    return of(b.repeats) * cycles


def gather_cost(plan: GatherPlan, dtype: DType) -> Formula:
    """Cycles of a Gather (derived): a row is a copy of its own; an element costs the scalar unit a read of GM
    through its cache, priced on MTE2 since the vector unit waits for it alike."""
    calls = product(d.size for d in plan.outer) * plan.count
    if plan.kind == "elements":
        return of(total(table.SCALAR[access] for access in _ELEMENT_ACCESSES)) * calls
    row = choose(plan.cols * dtype.bytes, table.LOAD_SMALL_BLOCK_BYTES, table.LOAD_SMALL_BLOCK_BYTES,
                 plan.cols * dtype.bytes)
    return of(calls) * (row / _rate(table.LOAD_RATE_SMALL) + table.LOAD_START)


def store_cost(plan: TransferPlan, dtype: DType) -> Formula:
    """Cycles on MTE3 of one Store."""
    b = _blocks(plan, dtype.bytes)
    moved = b.count * b.bytes
    rate = _rate(table.STORE_RATE)
    aligned = of(moved) / rate + table.STORE_START
    if b.gap:
        aligned = aligned + of(table.STORE_GAP) * (b.count * _modulo(b.gap, 256))
    rest = of(table.STORE_START) + of(512.0) / rate
    over = of(moved) / rate + table.STORE_START + (of(table.STORE_UNALIGNED_CYCLES) + of(-1.0) * rest)
    middle = of(moved) / table.STORE_UNALIGNED_RATE + table.STORE_UNALIGNED_START
    byte_bd, byte, block_bd, block = table.STORE_TINY
    bd = of(symbol(BLOCK_DIM))
    tiny = ((of(byte_bd) * bd + byte) * b.bytes + (of(block_bd) * bd + block)) * b.count + table.STORE_START
    unaligned = choose(b.bytes, 32, tiny, choose(b.bytes, 513, middle, over))
    return of(b.repeats) * choose(_modulo(b.bytes, 32), 1, aligned, unaligned)


def linear(api: str, dtype: DType, elements: Size) -> Formula:
    """Cycles of one vector instruction over `elements` elements."""
    cost = table.VECTOR.get(api, table.UNKNOWN_VECTOR).of(dtype)
    return of(cost.k) * elements + cost.b


def vector_cost(impl: ImplGraph, node: AscNode, plan, ops: Mapping[str, AscOp]) -> Formula:
    """Cycles on the V pipe of one node."""
    dtype = impl.graph.tensor(node.inputs[-1]).dtype if node.inputs else node.y.dtype
    if isinstance(plan, BroadcastPlan):
        return broadcast_cost(plan, node.y.dtype)
    if isinstance(plan, TransposePlan):
        # Blocks of 16 rows.
        rows = align_up(plan.rows, 16) * product(d.size for d in plan.outer)
        columns = align_up(plan.cols, 32 // node.y.dtype.bytes)
        return linear("TransDataTo5HD", node.y.dtype, rows * columns)
    if isinstance(plan, ReducePlan):
        return reduce_cost(plan, dtype, node.type)
    if isinstance(plan, PadPlan):
        return linear("GatherMask", node.y.dtype, plan.rows * plan.row)
    assert isinstance(plan, ElementPlan)
    if node.type == "Copy":
        return linear("Ub2ub", node.y.dtype, plan.count)
    row = ops[node.type]
    key = "%s->%s" % (dtype.name, node.y.dtype.name) if node.type == "Cast" else dtype.name
    if (node.type, key) in HELPERS:
        k, b = HELPERS[node.type, key]
        return of(k) * plan.count + b
    if not row.cost:
        return linear("", dtype, plan.count)
    return total([of(float(times)) * linear(_cast_row(api, dtype, node.y.dtype), dtype, plan.count)
                  for api, times in row.cost])


def _cast_row(api: str, source: DType, target: DType) -> str:
    if api != "Cast":
        return api
    known = {("float16", "uint8"): "Cast f16->u8", ("uint8", "float16"): "Cast u8->f16",
             ("int64", "int32"): "Cast i64->i32"}
    return known.get((source.name, target.name), api)


#: Bytes of a repeat; rows of a result that ReduceLast works out together; bytes that it and ReduceFirst fold
#: into at once (npu_kernels/include/autofuse/fold.h, reduce.h).
_REPEAT, _FOLD_ROWS, _FOLD_BYTES = 256, 32, 8192


def reduce_cost(plan: ReducePlan, dtype: DType, type_: str) -> Formula:
    """Cycles of one step of a reduction, instruction by instruction as its helper makes it up. type_: of the
    node."""
    fold = _reduce_last(plan, dtype, type_) if plan.kind == "last" else _reduce_first(plan, dtype)
    return of(product(d.size for d in plan.outer)) * fold


def _instructions(api: str, dtype: DType, count, elements) -> Formula:
    """Cycles of `count` vector instructions over `elements` elements in all."""
    cost = table.VECTOR[api].of(dtype)
    return of(cost.b) * count + of(cost.k) * elements


def _halvings(size: Size, one: int, most: int) -> Formula:
    """How often `one` can be doubled without getting more than size or `most`."""
    steps = []
    doubled = 2 * one
    while doubled <= most:
        steps.append(choose(size, doubled, 0.0, 1.0))
        doubled *= 2
    return total(steps)


def _reduce_last(plan: ReducePlan, dtype: DType, type_: str) -> Formula:
    """Rows to a repeat each, by columns of lanes for 32 rows together or row by row, whichever takes fewer
    instructions; then the repeats to one element each. A Sum of at most a repeat is one instruction."""
    rows, cols, lanes = plan.rows, plan.cols, _REPEAT // dtype.bytes
    most = _FOLD_BYTES // dtype.bytes
    groups, columns = of(ceil_div(rows, _FOLD_ROWS)), ceil_div(cols, lanes)
    together = groups * columns
    wide = choose(cols, most, cols, most)
    steps = choose(cols, lanes + 1, 1.0, larger(2.0, ceil_div(cols, most))) + _halvings(cols, lanes, most)
    alone = of(rows) * steps
    fold = choose(
        alone, together,
        _instructions("Add", dtype, alone, of(rows) * (of(cols) + wide))
        + _instructions("Duplicate", dtype, rows, of(rows) * wide),
        _instructions("Add", dtype, together, rows * columns * lanes)
        + _instructions("Duplicate", dtype, groups, rows * lanes))
    if not dtype.is_floating:
        blocks = ceil_div(rows, 16)
        turned = _instructions("Copy", dtype, blocks, blocks * 16 * (32 // dtype.bytes))
        return fold + _instructions("Add", dtype, groups * 3.0 + of(blocks) * 4.0, rows * lanes) + turned
    last = _instructions("WholeReduceSum" if type_ in ("Sum", "Mean") else "WholeReduceMax", dtype, groups,
                         rows * lanes)
    if type_ not in ("Sum", "Mean"):
        return fold + last
    return choose(cols, lanes + 1, last + _instructions("Adds", dtype, 1, rows), fold + last)


def _reduce_first(plan: ReducePlan, dtype: DType) -> Formula:
    """As many rows at once as are 8 KiB, then these in halves."""
    rows, elements = plan.rows, plan.rows * plan.cols
    most = _FOLD_BYTES // dtype.bytes
    limit = _FOLD_BYTES // 32
    halves = choose(elements, most, _halvings(rows, 1, limit),
                    _halvings(floor_div(most, maximum(plan.cols, 1)), 1, limit))
    adds = of(ceil_div(elements, most)) + halves
    at_once = choose(elements, most, elements, most)
    return _instructions("Add", dtype, adds, of(elements) + at_once) + _instructions("Duplicate", dtype, 1,
                                                                                    at_once)


def _copies(dtype: DType, rows: Size, row: Size) -> Formula:
    """`rows` rows of `row` elements by Copy: whole vector repeats, 255 to an instruction (published for one
    repeat a row; derived for longer rows)."""
    repeat = 256 // dtype.bytes
    repeats = rows * ceil_div(row, repeat)
    cost = table.VECTOR["Copy"].of(dtype)
    return of(cost.k) * (repeats * repeat) + of(cost.b) * ceil_div(repeats, 255)


def broadcast_cost(plan: BroadcastPlan, dtype: DType) -> Formula:
    """Cycles of a Broadcast in UB, by the published composition of each kind."""
    block = 32 // dtype.bytes
    if plan.kind == "fill":
        once = linear("Duplicate", dtype, plan.extent)
    elif plan.kind == "rows":
        once = _copies(dtype, plan.extent, plan.inner)
    elif plan.kind == "columns":
        once = linear("Brcb", dtype, align_up(plan.rows, 8) * block) + _copies(dtype, plan.rows, plan.extent)
    else:
        spread = table.VECTOR["Or"].half
        words = ceil_div(plan.inner, block) * (256 // 2)
        once = of(plan.rows) * (of(table.VECTOR["Duplicate"].half.k) * 16.0 + table.VECTOR["Duplicate"].half.b
                                + of(ceil_div(plan.extent, 8)) * (of(spread.k) * words + spread.b))
    return of(product(d.size for d in plan.outer)) * once
