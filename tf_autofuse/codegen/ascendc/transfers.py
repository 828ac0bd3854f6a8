"""Moves of data as calls: GM <-> UB copies, broadcasts and row padding in UB.

Each function returns the lines of one node and the helper headers that they need. One- and two-dim copies are
DataCopyPad itself; everything else is a helper that splits by the DMA's limits.
"""
from typing import NamedTuple, Tuple

from tf_autofuse.codegen.ascendc.expressions import Expressions
from tf_autofuse.ir.asc_graph import AscNode
from tf_autofuse.ir.dtypes import DType
from tf_autofuse.schedule.impl_graph import BroadcastPlan, TransferDim, TransferPlan
from tf_autofuse.symbolic.size import Size, align_up, floor_div

#: Bytes of a UB block: what DataCopyPad counts UB gaps in.
BLOCK = 32


class Call(NamedTuple):
    lines: Tuple[str, ...]
    headers: Tuple[str, ...] = ()


def load(dst: str, gm: str, dtype: DType, plan: TransferPlan, x: Expressions) -> Call:
    """The copy of one tile from GM into `dst`."""
    source = _at(gm, plan.gm_offset, x)
    if plan.kind == "dense":
        return Call(("AscendC::DataCopyPad(%s, %s, %s, %s);" % (
            dst, source, _blocks(1, plan.dims[0].size, 0, 0, dtype, x), _padding(dtype)),))
    if plan.kind == "rows":
        rows, row = plan.dims
        return Call(("AscendC::DataCopyPad(%s, %s, %s, %s);" % (
            dst, source, _blocks(rows.size, row.size, _gm_gap(rows, row, dtype), _ub_gap(rows, row, dtype), dtype, x),
            _padding(dtype)),))
    return _tile("LoadTile", dst, source, plan, x)


def store(gm: str, src: str, dtype: DType, plan: TransferPlan, x: Expressions) -> Call:
    """The copy of one tile from `src` to GM."""
    target = _at(gm, plan.gm_offset, x)
    if plan.kind == "dense":
        return Call(("AscendC::DataCopyPad(%s, %s, %s);" % (
            target, src, _blocks(1, plan.dims[0].size, 0, 0, dtype, x)),))
    if plan.kind == "rows":
        rows, row = plan.dims
        return Call(("AscendC::DataCopyPad(%s, %s, %s);" % (
            target, src,
            _blocks(rows.size, row.size, _ub_gap(rows, row, dtype), _gm_gap(rows, row, dtype), dtype, x)),))
    return _tile("StoreTile", target, src, plan, x)


def _at(gm: str, offset: Size, x: Expressions) -> str:
    return gm if offset == 0 else "%s[%s]" % (gm, x.text(offset))


def _blocks(count: Size, length: Size, src_gap: Size, dst_gap: Size, dtype: DType, x: Expressions) -> str:
    count_text = str(count) if isinstance(count, int) else "static_cast<uint16_t>(%s)" % x.text(count)
    return "AscendC::DataCopyExtParams{%s, %s, %s, %s, 0}" % (
        count_text, x.u32(length * dtype.bytes), x.u32(src_gap), x.u32(dst_gap))


def _gm_gap(rows, row, dtype: DType) -> Size:
    return (rows.gm_stride - row.size) * dtype.bytes


def _ub_gap(rows, row, dtype: DType) -> Size:
    return floor_div(rows.ub_stride * dtype.bytes - align_up(row.size * dtype.bytes, BLOCK), BLOCK)


def _padding(dtype: DType) -> str:
    # No explicit padding: the rest of a row's last block repeats the row's first element, so it is never undefined.
    zero = "0" if dtype.bytes != 2 or dtype.is_integer else "static_cast<%s>(0.0f)" % dtype.device
    return "AscendC::DataCopyPadExtParams<%s>{false, 0, 0, %s}" % (dtype.device, zero)


def _tile(helper: str, first: str, second: str, plan: TransferPlan, x: Expressions) -> Call:
    """The helper for up to four dims; missing outer dims have size 1."""
    dims = (TransferDim(1, 0, 0),) * (4 - len(plan.dims)) + plan.dims
    sizes = ", ".join(x.u32(d.size) for d in dims)
    gm = ", ".join(x.text(d.gm_stride) for d in dims)
    ub = ", ".join(x.u32(d.ub_stride) for d in dims)
    return Call(("autofuse::%s(%s, %s, autofuse::Tile{{%s}, {%s}, {%s}});" % (helper, first, second, sizes, gm, ub),),
                ("tile.h",))


def move(node: AscNode, dtype: DType, dst: str, src: str, scalar: bool, plan, x: Expressions) -> Call:
    """A Broadcast, RemovePad or Copy. src: a tensor, or a literal where `scalar`."""
    if node.type == "Copy":
        whole = align_up(plan.count * dtype.bytes, BLOCK)
        return Call(("AscendC::DataCopy(%s, %s, %s);" % (dst, src, x.count(floor_div(whole, dtype.bytes))),))
    if node.type == "RemovePad":
        return Call(("autofuse::RemovePad(%s, %s, %s, %s, %s);" % (
            dst, src, x.count(plan.rows), x.count(plan.row), x.count(plan.padded)),), ("broadcast.h",))
    if scalar:
        return _fill(dtype, dst, src, plan, x)
    return Call(("autofuse::Todo%s(%s, %s);" % (plan.kind, dst, src),))


def _fill(dtype: DType, dst: str, value: str, plan: BroadcastPlan, x: Expressions) -> Call:
    count = x.count(plan.extent)
    if dtype.bytes in (2, 4):
        return Call(("AscendC::Duplicate(%s, %s, %s);" % (dst, value, count),))
    return Call(("autofuse::FillScalar<%s>(%s, %s, %s);" % (dtype.device, dst, value, count),), ("fill.h",))
