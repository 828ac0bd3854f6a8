"""Moves of data as calls: GM <-> UB copies, broadcasts and row padding in UB.

Each function returns the lines of one node and the helper headers that they need. One- and two-dim copies are
DataCopyPad itself; everything else is a helper that splits by the DMA's limits.
"""
from typing import NamedTuple, Tuple

from tf_autofuse.codegen.ascendc.expressions import Expressions
from tf_autofuse.ir.dtypes import DType
from tf_autofuse.schedule.impl_graph import TransferPlan
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
    return _tile("LoadTile", "load_tile.h", dst, source, plan, x)


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
    return _tile("StoreTile", "store_tile.h", target, src, plan, x)


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
    return "AscendC::DataCopyPadExtParams<%s>{false, 0, 0, static_cast<%s>(0)}" % (dtype.device, dtype.device)


def _tile(helper: str, header: str, first: str, second: str, plan: TransferPlan, x: Expressions) -> Call:
    raise AssertionError("written when the helper is there")


def move(node, dst: str, src: str, scalar: bool, plan, x: Expressions) -> Call:
    return Call(("autofuse::Todo%s(%s, %s);" % (plan.kind, dst, src),))
