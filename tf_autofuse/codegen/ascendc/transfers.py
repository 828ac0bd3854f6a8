"""Moves of data as calls: GM <-> UB copies, broadcasts, reductions and row padding in UB.

Each function returns the lines of one node and the helper headers that they need. One- and two-dim copies are
DataCopyPad itself; everything else is a helper that splits by the DMA's limits.
"""

import re
from typing import List, NamedTuple, Tuple

from tf_autofuse.codegen.ascendc.expressions import Expressions
from tf_autofuse.ir.asc_graph import AscNode
from tf_autofuse.ir.dtypes import DType
from tf_autofuse.schedule.impl_graph import BroadcastPlan, ReducePlan, TransferDim, TransferPlan
from tf_autofuse.symbolic.size import Size, align_up, floor_div

#: Bytes of a UB block: what DataCopyPad counts UB gaps in.
BLOCK = 32
#: The scratch tensor, and how much of it a fill from a tensor takes (the schedule budgets it).
TMP = "tmp"
FILL_TMP_BYTES = 2048
BARRIER = "AscendC::PipeBarrier<PIPE_V>();"


class Call(NamedTuple):
    lines: Tuple[str, ...]
    headers: Tuple[str, ...] = ()


def load(dst: str, gm: str, dtype: DType, plan: TransferPlan, x: Expressions) -> Call:
    """The copy of one tile from GM into `dst`."""
    source = _at(gm, plan.gm_offset, x)
    if plan.kind == "dense":
        return Call(
            (
                "AscendC::DataCopyPad(%s, %s, %s, %s);"
                % (dst, source, _blocks(1, plan.dims[0].size, 0, 0, dtype, x), _padding(dtype)),
            )
        )
    if plan.kind == "rows":
        rows, row = plan.dims
        return Call(
            (
                "AscendC::DataCopyPad(%s, %s, %s, %s);"
                % (
                    dst,
                    source,
                    _blocks(
                        rows.size, row.size, _gm_gap(rows, row, dtype), _ub_gap(rows, row, dtype), dtype, x
                    ),
                    _padding(dtype),
                ),
            )
        )
    return _tile("LoadTile", dst, source, plan, x)


def store(gm: str, src: str, dtype: DType, plan: TransferPlan, x: Expressions) -> Call:
    """The copy of one tile from `src` to GM."""
    target = _at(gm, plan.gm_offset, x)
    if plan.kind == "dense":
        return Call(
            (
                "AscendC::DataCopyPad(%s, %s, %s);"
                % (target, src, _blocks(1, plan.dims[0].size, 0, 0, dtype, x)),
            )
        )
    if plan.kind == "rows":
        rows, row = plan.dims
        return Call(
            (
                "AscendC::DataCopyPad(%s, %s, %s);"
                % (
                    target,
                    src,
                    _blocks(
                        rows.size, row.size, _ub_gap(rows, row, dtype), _gm_gap(rows, row, dtype), dtype, x
                    ),
                ),
            )
        )
    return _tile("StoreTile", target, src, plan, x)


def _at(gm: str, offset: Size, x: Expressions) -> str:
    return gm if offset == 0 else "%s[%s]" % (gm, x.text(offset))


def _blocks(count: Size, length: Size, src_gap: Size, dst_gap: Size, dtype: DType, x: Expressions) -> str:
    count_text = str(count) if isinstance(count, int) else "static_cast<uint16_t>(%s)" % x.text(count)
    return "AscendC::DataCopyExtParams{%s, %s, %s, %s, 0}" % (
        count_text,
        x.u32(length * dtype.bytes),
        x.u32(src_gap),
        x.u32(dst_gap),
    )


def _gm_gap(rows, row, dtype: DType) -> Size:
    return (rows.gm_stride - row.size) * dtype.bytes


def _ub_gap(rows, row, dtype: DType) -> Size:
    return floor_div(rows.ub_stride * dtype.bytes - align_up(row.size * dtype.bytes, BLOCK), BLOCK)


def _padding(dtype: DType) -> str:
    # No explicit padding: the rest of a row's last block repeats the row's first element, so it is never
    # undefined.
    zero = "0" if dtype.bytes != 2 or dtype.is_integer else "static_cast<%s>(0.0f)" % dtype.device
    return "AscendC::DataCopyPadExtParams<%s>{false, 0, 0, %s}" % (dtype.device, zero)


def _tile(helper: str, first: str, second: str, plan: TransferPlan, x: Expressions) -> Call:
    """The helper for up to four dims; missing outer dims have size 1."""
    dims = (TransferDim(1, 0, 0),) * (4 - len(plan.dims)) + plan.dims
    sizes = ", ".join(x.u32(d.size) for d in dims)
    gm = ", ".join(x.text(d.gm_stride) for d in dims)
    ub = ", ".join(x.u32(d.ub_stride) for d in dims)
    return Call(
        ("autofuse::%s(%s, %s, autofuse::Tile{{%s}, {%s}, {%s}});" % (helper, first, second, sizes, gm, ub),),
        ("tile.h",),
    )


def move(node: AscNode, dtype: DType, dst: str, src: str, scalar: bool, plan, x: Expressions) -> Call:
    """A Broadcast, RemovePad, Transpose or Copy. src: a tensor, or a literal where `scalar`."""
    if node.type == "Copy":
        whole = align_up(plan.count * dtype.bytes, BLOCK)
        return Call(("AscendC::DataCopy(%s, %s, %s);" % (dst, src, x.count(floor_div(whole, dtype.bytes))),))
    if node.type == "Transpose":
        loops = Loops(x)
        for dim in plan.outer:
            loops.add(dim.size, dim.dst_stride, dim.src_stride)
        before = [BARRIER] if plan.outer else []
        call = "autofuse::TransposeTile(%s, %s, %s, %s, %s, %s, %s);" % (
            loops.dst(dst), loops.src(src), TMP, x.count(plan.rows), x.count(plan.cols),
            x.count(plan.src_stride), x.count(plan.dst_stride))
        return Call(loops.around(before + [call]), ("transpose.h",))
    if node.type == "RemovePad":
        return Call(
            (
                "autofuse::RemovePad(%s, %s, tmp, %s, %s);"
                % (dst, src, x.count(plan.rows), x.count(plan.row)),
            ),
            ("broadcast.h",),
        )
    if plan.kind == "fill":
        return (
            _fill_from_literal(dtype, dst, src, plan, x)
            if scalar
            else _fill_from_tensor(dtype, dst, src, plan, x)
        )
    return _looped(plan, dst, src, x)


def _fill_from_literal(dtype: DType, dst: str, value: str, plan: BroadcastPlan, x: Expressions) -> Call:
    count = x.count(plan.extent)
    if dtype.bytes in (2, 4):
        return Call(("AscendC::Duplicate(%s, %s, %s);" % (dst, value, count),))
    return Call(("autofuse::FillScalar<%s>(%s, %s, %s);" % (dtype.device, dst, value, count),), ("fill.h",))


def _fill_from_tensor(dtype: DType, dst: str, src: str, plan: BroadcastPlan, x: Expressions) -> Call:
    # One block of the element first, at the end of the scratch; whole blocks are then copied, whatever the
    # width.
    items = BLOCK // dtype.bytes
    blocks = x.count(floor_div(plan.extent * dtype.bytes + BLOCK - 1, BLOCK))
    piece = "%s[%d].ReinterpretCast<%s>()" % (TMP, FILL_TMP_BYTES - BLOCK, dtype.device)
    return Call(
        (
            "autofuse::BroadcastCols(%s, %s, %s, 1, %d);" % (piece, src, TMP, items),
            BARRIER,
            "autofuse::BroadcastRows(%s, %s, %s, %d);" % (dst, piece, blocks, items),
        ),
        ("broadcast.h",),
    )


class Loops:
    """Loops around a helper's call, over blocks of its operands; blocks of different indices are
    independent."""

    def __init__(self, x: Expressions):
        self.x = x
        self.opening: List[str] = []
        self.dst_at: List[str] = []
        self.src_at: List[str] = []

    def add(self, size: Size, dst_stride: Size, src_stride: Size) -> None:
        """One more loop inside of those there are."""
        index = "b%d" % len(self.opening)
        self.opening.append("%sfor (uint32_t %s = 0; %s < %s; ++%s) {" % (
            "  " * len(self.opening), index, index, self.x.count(size), index))
        self.dst_at.append("%s * %s" % (index, self.x.factor(dst_stride)))
        self.src_at.append("%s * %s" % (index, self.x.factor(src_stride)))

    def dst(self, name: str) -> str:
        """The destination's block."""
        return "%s[%s]" % (name, " + ".join(self.dst_at)) if self.dst_at else name

    def src(self, name: str) -> str:
        """The source's block."""
        return "%s[%s]" % (name, " + ".join(self.src_at)) if self.src_at else name

    def around(self, calls: List[str]) -> Tuple[str, ...]:
        """The statements with the loops around them."""
        depth = len(self.opening)
        closing = ["  " * d + "}" for d in reversed(range(depth))]
        return tuple(self.opening + ["  " * depth + line for line in calls] + closing)


def reduce(text: str, header: str, dst: str, src: str, plan: ReducePlan, x: Expressions) -> Call:
    """A step of a reduction: the op's call text for the plan's kind, with the plan's loops around it."""
    loops = Loops(x)
    for dim in plan.outer:
        loops.add(dim.size, dim.dst_stride, dim.src_stride)
    values = {"dst": loops.dst(dst), "0": loops.src(src), "tmp": TMP, "rows": x.count(plan.rows),
              "cols": x.count(plan.cols), "stride": x.count(plan.stride)}
    call = re.sub(r"\{(\w+)\}", lambda match: values[match.group(1)], text)
    # The scratch is used again by the next round.
    before = [BARRIER] if plan.outer else []
    return Call(loops.around(before + [call]), (header,))


def _looped(plan: BroadcastPlan, dst: str, src: str, x: Expressions) -> Call:
    """The helper's call of a Broadcast with the plan's outer loops around it."""
    loops = Loops(x)
    for dim in plan.outer:
        loops.add(dim.size, dim.dst_stride, dim.src_stride)
    if plan.kind == "blocks":
        loops.add(plan.rows, plan.extent * plan.inner, plan.src_row)
    at_dst, at_src = loops.dst(dst), loops.src(src)
    if plan.kind == "columns":
        call = "autofuse::BroadcastCols(%s, %s, %s, %s, %s);" % (
            at_dst,
            at_src,
            TMP,
            x.count(plan.rows),
            x.count(plan.extent),
        )
        # The scratch is used again by the next round.
        before = [BARRIER] if loops.opening else []
    else:
        call = "autofuse::BroadcastRows(%s, %s, %s, %s);" % (
            at_dst,
            at_src,
            x.count(plan.extent),
            x.count(plan.inner),
        )
        before = []
    return Call(loops.around(before + [call]), ("broadcast.h",))
