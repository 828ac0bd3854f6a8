"""From a HintGraph to the ImplGraphs of its kernel: variants x tiling cases x templates.

    HintGraph --stages_of--> nests, each: --simplify--> variants (contiguous | strided | static)
              --cut_positions--> tiling cases --TileGraph--> templates (general | unaligned)
              --execution_order, allocate--> ImplGraph

On exit: at least one ImplGraph without conditions has a legal tiling for every value of the symbols (a tile
of one element fits UB); variants that cannot fit UB whatever the tile are left out; each passed
`check.check`.
"""
import re
from dataclasses import replace
from typing import Dict, List, Mapping, Optional, Tuple

from tf_autofuse.ir.asc_graph import AscGraph, AscNode, Sched, TensorAttr, TensorRef
from tf_autofuse.machine import Machine, usable_ub
from tf_autofuse.ops.schema import AscOp
from tf_autofuse.ops.table import ASC_OPS
from tf_autofuse.schedule import check
from tf_autofuse.schedule.axes import assume_contiguous, extends, is_strided, simplify
from tf_autofuse.schedule.impl_graph import (BroadcastPlan, ElementPlan, ImplGraph, Limit, PadPlan, Plan,
                                             ScheduleRefusal)
from tf_autofuse.schedule.layout import broadcast, gather_plan, pad_plan, reduction, transfer, transpose_plan
from tf_autofuse.schedule.memory import allocate
from tf_autofuse.schedule.order import execution_order
from tf_autofuse.schedule.split import (Cut, axis_groups, cut_positions, innermost_cut, partial_cuts,
                                        reduced_axes, split_at, transposing_cuts)
from tf_autofuse.schedule.tile_nodes import TileGraph, TileNode
from tf_autofuse.schedule.ways import Stage, stages_of
from tf_autofuse.symbolic.guards import Guard
from tf_autofuse.symbolic.size import (Size, align_up, evaluate, is_static, known_equal, substitute, symbol,
                                       to_text)

#: Instructions that use the fixed scratch area at the end of UB (machine.SELECT_SCRATCH).
_SCRATCH_APIS = re.compile(
    r"\b(Select|SelectWithBytesMask|Power|Sign|Digamma|Lgamma|AddDeqRelu|LayerNorm|DropOut)\b")
#: Scratch bytes of the device helpers that schedules call for themselves, whatever the element count.
_FILL_TMP_BYTES = 2048
_TRANSPOSE_TMP_BYTES = 1024
_SPREAD_TMP_BYTES = 8192  # RemovePad of rows of one 8-bit element
_REMOVE_PAD_TMP_BYTES = 256  # the call names the scratch buffer; 16 and 32-bit data leave it alone


def schedule(graph: AscGraph, machine: Machine,
             table: Mapping[str, AscOp] = ASC_OPS) -> Tuple[ImplGraph, ...]:
    """The ImplGraphs of `graph` (form 'hint'), numbered by tiling key within each nest (schedule/nests.py).
    Raises ScheduleRefusal where there is none."""
    stages = stages_of(graph)
    if len(stages) == 1 and stages[0].reduced_size == 1:
        return _checked(_sure(graph, machine, table), stages[0], machine)
    ways: Dict[str, List[Tuple[ImplGraph, ...]]] = {}
    for stage in stages:
        impls, _ = _variants(stage.graph, machine, table, bool(stage.parts_symbol))
        ways.setdefault(stage.way, []).append(_checked(impls, stage, machine))
    usable = [nests for way, nests in ways.items() if all(nests)]
    if not any(impls[0].way != "empty" for nests in usable for impls in nests):
        raise ScheduleRefusal("%s reduces %s elements to one: they fit UB neither as a whole nor in parts" % (
            graph.name, to_text(stages[0].reduced_size)))
    return tuple(impl for nests in usable for impls in nests for impl in impls)


def _checked(impls: List[ImplGraph], stage: Stage, machine: Machine) -> Tuple[ImplGraph, ...]:
    return tuple(check.check(replace(impl, tiling_key=key, way=stage.way, stage=stage.number,
                                     parts_symbol=stage.parts_symbol, reduced_size=stage.reduced_size),
                                         machine)
                 for key, impl in enumerate(impls))


def _variants(graph: AscGraph, machine: Machine, table, partial: bool) -> Tuple[List[ImplGraph], AscGraph]:
    """All variants that can fit UB, and the simplified graph of the last one. partial: each tile of the
    outermost reduced axis gives a result of its own."""
    variants: List[Tuple[AscGraph, str, Tuple[Guard, ...]]] = []
    if is_strided(graph):
        contiguous = assume_contiguous(graph)
        if contiguous is not None:
            variants.append((simplify(contiguous.graph), "contiguous", contiguous.conditions))
        variants.append((simplify(graph), "strided", ()))
    else:
        variants.append((simplify(graph), "static", ()))
    impls: List[ImplGraph] = []
    for simplified, variant, conditions in variants:
        if partial:
            for cut in partial_cuts(simplified):
                impls += _templates(simplified, cut, variant, conditions, machine, table)
        else:
            impls += _cases(simplified, variant, conditions, machine, table)
    return impls, variants[-1][0]


def _sure(graph: AscGraph, machine: Machine, table) -> List[ImplGraph]:
    """The variants of a graph without reductions: one of them has a tiling for every shape."""
    impls, simplified = _variants(graph, machine, table, False)
    if not any(not i.conditions and _always_fits(i, machine) for i in impls):
        raise ScheduleRefusal(_too_big(simplified, machine, table))
    return impls


def _cases(graph: AscGraph, variant: str, conditions, machine: Machine, table) -> List[ImplGraph]:
    """The variant's cases that can fit UB. The innermost cut stands in where none of the better ones is sure
    to."""
    last = innermost_cut(graph)
    positions = cut_positions(graph, machine)
    cuts = [Cut(p) for p in positions] + transposing_cuts(graph)
    impls = [i for c in cuts for i in _templates(graph, c, variant, conditions, machine, table)]
    if last not in positions and not any(_always_fits(i, machine) for i in impls):
        impls += _templates(graph, Cut(last), variant, conditions, machine, table)
    if reduced_axes(graph) and not any(_always_fits(i, machine) for i in impls):
        tight = _impl(TileGraph(graph, split_at(graph, Cut(last)), "tight", table), variant, conditions,
                      machine)
        impls += [tight] if tight is not None and _can_fit(tight, machine) else []
    return impls


def _templates(graph: AscGraph, cut: Cut, variant: str, conditions, machine: Machine,
               table) -> List[ImplGraph]:
    general = TileGraph(graph, split_at(graph, cut), "general", table)
    made = [_impl(general, variant, conditions, machine)]
    if general.allows_unaligned():
        unaligned = TileGraph(graph, split_at(graph, cut), "unaligned", table)
        made.append(_impl(unaligned, variant, conditions, machine))
    return [i for i in made if i is not None and _can_fit(i, machine)]


def ub_bytes(impl: ImplGraph, values: Mapping[str, int]) -> int:
    """UB that the kernel's buffers take, for values of all symbols including the tile symbol."""
    tmp = max([0] + [evaluate(b, values) for b in impl.tmp_bytes])
    return tmp + sum(c.buf_num * max(evaluate(b, values) for b in c.tensor_bytes) for c in impl.containers)


def _smallest_tile(impl: ImplGraph) -> Optional[int]:
    """UB bytes at a tile of 1 where that is static, else None."""
    one = {impl.tile_symbol: 1}
    sizes = [b for c in impl.containers for b in c.tensor_bytes] + list(impl.tmp_bytes)
    return ub_bytes(impl, one) if all(is_static(substitute(s, one)) for s in sizes) else None


def _can_fit(impl: ImplGraph, machine: Machine) -> bool:
    bytes_ = _smallest_tile(impl)
    return bytes_ is None or bytes_ <= usable_ub(machine, impl.uses_scratch)


def _always_fits(impl: ImplGraph, machine: Machine) -> bool:
    return _smallest_tile(impl) is not None and _can_fit(impl, machine)


def _too_big(graph: AscGraph, machine: Machine, table) -> str:
    """The sentence for a kernel that does not fit UB even with a tile of 1."""
    tiles = TileGraph(graph, split_at(graph, Cut(innermost_cut(graph))), "general", table)
    impl = _impl(tiles, "static", (), machine)
    if impl is None:
        return "a copy of %s has too many dims" % graph.name
    return "%s needs %d B of UB for a tile of one element (%s), %d B are usable" % (
        graph.name, _smallest_tile(impl), ", ".join(
            "%s: %d x %s B" % (c.name, c.buf_num, c.bytes) for c in impl.containers),
        usable_ub(machine, impl.uses_scratch))


def _impl(tiles: TileGraph, variant: str, conditions: Tuple[Guard, ...],
          machine: Machine) -> Optional[ImplGraph]:
    """The ImplGraph of one template; None where a copy has too many dims."""
    order = execution_order(tiles)
    plans: List[Tuple[str, Plan]] = []
    limits: List[Limit] = []
    tmp: List[Size] = []
    for n in order:
        if not n.runs:
            continue
        plan = _plan(tiles, n, machine, limits, tmp)
        if plan is None:
            return None
        plans.append((n.name, plan))
    allocation = allocate(tiles, order, machine)
    split = tiles.split
    nodes = tuple(_emit(tiles, n, allocation.memory) for n in order)
    graph = AscGraph(tiles.graph.name, "impl", split.axes, nodes, tiles.graph.sizes, tiles.graph.loop_axes)
    return ImplGraph(
        graph=graph, template=tiles.template, variant=variant, tiling_key=0, conditions=conditions,
        cut_axis=split.cut.id, tile_out=split.tile_out.id, tile_axis=split.tile_in.id,
        tile_symbol=split.tile_symbol, tile_actual=split.tile_actual, outer_axes=split.outer,
        merged_axis=split.merged.id, block_axis=split.block_out.id, block_in=split.block_in.id,
        block_symbol=split.block_symbol, vectorized_axes=split.vectorized, axis_groups=axis_groups(split),
        second=split.second, row_align=tiles.tile.row_align, containers=allocation.containers,
            tmp_bytes=tuple(tmp),
        uses_scratch=_uses_scratch(tiles), limits=tuple(dict.fromkeys(limits)), plans=tuple(plans))


def _plan(tiles: TileGraph, node: TileNode, machine: Machine, limits: List[Limit],
          tmp: List[Size]) -> Optional[Plan]:
    """The node's plan; adds what it needs of the tiling and of the scratch buffer."""
    tile, layout = tiles.tile, tiles.layout(node)
    if node.type in ("Load", "Store"):
        copy = transfer(tile, layout, tiles.gm_strides(node), tiles.gm_offset(node), node.dtype.bytes,
                        node.hoisted, machine, node.name)
        if copy is None:
            return None
        limits += copy.limits
        return copy.plan
    if node.type == "Broadcast":
        source = tiles.nodes[node.inputs[0]]
        plan = _broadcast_plan(tiles, node, source)
        if source.type != "Scalar":
            whole = {str(a): tile.sizes[axis] for axis, a in tile.actual.items()}
            _need(tmp, substitute(broadcast_tmp_bytes(plan, node.dtype.bytes), whole))
        return plan
    if tiles.is_reduction(node):
        source = tiles.nodes[node.inputs[0]]
        _need(tmp, tiles.op(node).scratch_bytes([source.dtype], node.dtype,
                                                tile.count(tiles.layout(source), True)))
        return reduction(tile, tiles.layout(source), layout, dict(node.attrs)["axes"], node.hoisted)
    if node.type == "Gather":
        return gather_plan(tile, layout, tiles.layout(tiles.nodes[node.inputs[1]]), node.hint,
                           tiles.gm_strides(node), tiles.gm_offset(node), node.gathers_rows, node.spread,
                           node.hoisted)
    if node.type == "Transpose":
        _need(tmp, _TRANSPOSE_TMP_BYTES)
        return transpose_plan(tile, tiles.layout(tiles.nodes[node.inputs[0]]), layout, node.hoisted)
    if node.type == "RemovePad" and tiles.nodes[node.inputs[0]].spread:
        _need(tmp, _SPREAD_TMP_BYTES if node.dtype.bytes == 1 else _REMOVE_PAD_TMP_BYTES)
        return PadPlan(tile.count(layout, node.hoisted), 1, 32 // node.dtype.bytes)
    if node.type == "RemovePad":
        _need(tmp, _REMOVE_PAD_TMP_BYTES)
        return pad_plan(tile, tiles.layout(tiles.nodes[node.inputs[0]]), node.hoisted)
    if node.type != "Copy":
        dtypes = tiles.dtypes_of_inputs(node)
        _need(tmp, tiles.op(node).scratch_bytes(dtypes, node.dtype, tile.count(layout, whole=True)))
    return ElementPlan(tile.count(layout, node.hoisted))


def _broadcast_plan(tiles: TileGraph, node: TileNode, source: TileNode) -> BroadcastPlan:
    layout = tiles.layout(node)
    if node.spread:
        return BroadcastPlan("columns", (), tiles.tile.count(tiles.layout(source), node.hoisted),
                             32 // node.dtype.bytes, 1, 1)
    if not source.pattern:
        return BroadcastPlan("fill", (), 1, tiles.tile.count(layout, node.hoisted), 1, 1)
    return broadcast(tiles.tile, tiles.layout(source), layout, dict(node.attrs)["axes"], node.hoisted)


def broadcast_tmp_bytes(plan: BroadcastPlan, item_bytes: int) -> Size:
    """Scratch of the helpers that make a Broadcast from a tensor; for columns an upper bound of
    BroadcastCols' own formula (npu_kernels/include/autofuse/broadcast.h): 8-bit rows pass through half, at
    least 16 at once."""
    if plan.kind == "fill":
        return _FILL_TMP_BYTES
    if plan.kind != "columns":
        return 0
    if item_bytes == 1:
        return 2048 + 8192 + 32 * align_up(plan.extent, 32) + 2 * align_up(plan.rows, 16)
    return 8 * align_up(plan.extent, 4) if item_bytes == 8 else 2048


def _need(tmp: List[Size], bytes_: Size) -> None:
    if not known_equal(bytes_, 0) and not any(known_equal(bytes_, b) for b in tmp):
        tmp.append(bytes_)


def _uses_scratch(tiles: TileGraph) -> bool:
    """Whether a call may use the fixed scratch area. A helper (header) may call anything inside: it counts as
    one that does."""
    for n in tiles.nodes.values():
        row = tiles.table.get(n.type)
        if row is None:
            continue
        dtypes = tiles.dtypes_of_inputs(n)
        forms = row.ascend.get(row.form_key(dtypes, n.dtype), {})
        if row.uses_helper(dtypes, n.dtype) or any(_SCRATCH_APIS.search(text) for text in forms.values()):
            return True
    return False


def _emit(tiles: TileGraph, node: TileNode, memory) -> AscNode:
    inputs = tuple(TensorRef(i) for i in node.inputs)
    if not node.runs:
        outputs = node.hint.outputs
        return AscNode(node.name, node.type, inputs, outputs, node.attrs, Sched(), node.origin)
    split = tiles.split
    axis = split.outer + split.vectorized
    repeats, strides = _view(tiles, node)
    layout = tiles.layout(node)
    y = TensorAttr(node.dtype, axis, repeats, strides, split.vectorized,
                   tiles.tile.vectorized_strides(layout), memory.get(node.name))
    sched = Sched((split.block_out.id, split.block_in.id) + split.vectorized,
                  -1 if node.hoisted else split.block_in.id)
    return AscNode(node.name, node.type, inputs, (y,), node.attrs, sched, node.origin)


def _view(tiles: TileGraph, node: TileNode):
    """(repeats, strides) over outer and vectorized axes: GM strides of Load and Store, else those in UB."""
    split = tiles.split
    sizes = {a.id: a.size for a in split.axes}
    in_tile = tuple(sizes[a] if a in node.pattern else 1 for a in split.vectorized)
    if node.type not in ("Load", "Store", "Gather"):
        return (1,) * len(split.outer) + in_tile, (0,) * len(split.outer) + tiles.tile.vectorized_strides(
            tiles.layout(node))
    hint = node.hint.y
    gm = dict(zip(hint.axis, hint.strides))
    whole = {a: extends(hint, i) for i, a in enumerate(hint.axis)}
    whole[split.tile_out.id] = whole[split.cut.id]
    gm[split.tile_out.id] = gm[split.cut.id] * symbol(split.tile_symbol)
    if split.second:
        whole[split.second.tile_out] = whole[split.second.axis]
        gm[split.second.tile_out] = gm[split.second.axis] * split.second.tile
    inner = tiles.gm_strides(node)
    return (tuple(sizes[a] if whole[a] else 1 for a in split.outer) + in_tile,
            tuple(gm[a] if whole[a] else 0 for a in split.outer) + tuple(
                inner[a] if a in node.pattern else 0 for a in split.vectorized))
