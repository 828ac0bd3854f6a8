"""Reductions in C: accumulators as arrays, one element for each lane or column.

The order of accumulation depends on sizes only, never on threads, tiles or the width of vectors: lane l takes
the elements l, l + lanes, ..., then the lanes are folded in halves; a column takes its elements in order. A
float sum of many elements adds up partial sums of a bounded number of elements each.
"""
from typing import NamedTuple, Sequence

from tf_autofuse.codegen.ascendc.body import CodegenRefusal
from tf_autofuse.codegen.host.lines import Lines
from tf_autofuse.codegen.host.literals import literal, value_type
from tf_autofuse.codegen.host.operation import filled, form
from tf_autofuse.ir.dtypes import BFLOAT16, DType
from tf_autofuse.ops.ascir_reduce import start_value
from tf_autofuse.schedule.host_graph import Value
from tf_autofuse.schedule.host_nest import Nest
from tf_autofuse.symbolic.size import is_static, product, to_cpp

#: Elements of one accumulator from which on a float sum is cascaded.
_LONG = 128
_ARG = ("ArgMax", "ArgMin")


class Scheme(NamedTuple):
    """lanes: accumulators of a Reduce in mode 'row'. cascades: whether partial sums are added up."""

    lanes: int
    cascades: bool


def scheme_of(nest: Nest, reduces: Sequence[Value], lanes: int) -> Scheme:
    extent = product(nest.graph.axes[a].size for a in nest.reduced)
    each = extent // lanes if nest.mode == "row" and is_static(extent) else extent
    long = not is_static(each) or each > _LONG
    return Scheme(lanes, long and any(v.type == "Sum" and v.dtype.is_floating for v in reduces))


def identity(v: Value) -> str:
    """What an accumulator begins with. A float sum of one element is that element, -0.0 too: `one` says so
    where the number of elements is known at run time."""
    if v.type == "Sum" and v.operand.is_floating:
        return "(one ? %s : %s)" % (literal(-0.0, v.operand), literal(0.0, v.operand))
    return literal(start_value(v.type, v.operand), v.operand)


def declare(out: Lines, v: Value, array: str, capacity: str, count: str) -> None:
    """Declares the accumulators and starts them."""
    dtype = v.operand
    out.add("%s %s[%s];" % (dtype.host, array, capacity))
    if v.type in _ARG:
        out.add("int64_t %s_at[%s];" % (array, capacity))
    at = " %s_at[l] = 0;" % array if v.type in _ARG else ""
    out.add("for (int64_t l = 0; l < %s; ++l) { %s[l] = %s;%s }" % (count, array, identity(v), at))


def accumulate(out: Lines, v: Value, array: str, lane: str, x: str, position: str, mask: str = "") -> None:
    """One element x, the position-th of those reduced, into an accumulator. mask: a condition without which
    the accumulator stays."""
    place = "%s[%s]" % (array, lane)
    if v.type in _ARG:
        out.add("const _Bool better%s = %s;" % (array, _combined(v, v.operand, place, x)))
        out.add("%s = better%s ? %s : %s;" % (place, array, x, place))
        out.add("%s_at[%s] = better%s ? %s : %s_at[%s];" % (array, lane, array, position, array, lane))
        return
    combined = _combined(v, v.operand, place, x)
    out.add("%s = %s;" % (place, "%s ? %s : %s" % (mask, combined, place) if mask else combined))


def _combined(v: Value, dtype: DType, a: str, b: str) -> str:
    if dtype.is_floating and dtype.bytes == 2 and v.type in ("Sum", "Prod"):
        raise CodegenRefusal("the host target has no %s of %s" % (v.type, dtype.name))
    return filled(form(v.type, (dtype,), v.dtype), v, (a, b), dtype)


def column(v: Value, array: str) -> str:
    """The array that holds the results of mode 'column'."""
    return array + "_at" if v.type in _ARG else array


def merge(out: Lines, v: Value, array: str, part: str, count: str) -> None:
    """array[l] = array[l] combined with part[l]."""
    out.open("for (int64_t l = 0; l < %s; ++l)" % count)
    _merge_one(out, v, array, "l", part, "l")
    out.close()


def _merge_one(out: Lines, v: Value, array: str, i: str, part: str, j: str) -> None:
    a, b = "%s[%s]" % (array, i), "%s[%s]" % (part, j)
    if v.type not in _ARG:
        out.add("%s = %s;" % (a, _combined(v, v.operand, a, b)))
        return
    a_at, b_at = "%s_at[%s]" % (array, i), "%s_at[%s]" % (part, j)
    out.add("const _Bool better = %s || (%s == %s && %s < %s);" % (
        _combined(v, v.operand, a, b), b, a, b_at, a_at))
    out.add("%s = better ? %s : %s;" % (a, b, a))
    out.add("%s = better ? %s : %s;" % (a_at, b_at, a_at))


class Fold(NamedTuple):
    """A C function that folds an array of lanes in halves and returns the result."""

    name: str
    text: str


def fold(v: Value, lanes: int) -> Fold:
    name = "Fold%s_%s_%d" % (v.type, v.operand.name, lanes)
    arg = v.type in _ARG
    out = Lines()
    parameters = "%s* a%s" % (v.operand.host, ", int64_t* a_at" if arg else "")
    out.open("static inline %s %s(%s)" % ("int64_t" if arg else v.operand.host, name, parameters))
    half = lanes // 2
    while half > 1:  # loops of known lengths, so that the lanes stay in vector registers
        out.open("for (int64_t l = 0; l < %d; ++l)" % half)
        _merge_one(out, v, "a", "l", "a", "l + %d" % half)
        out.close()
        half //= 2
    if half:
        _merge_one(out, v, "a", "0", "a", "1")
    out.add("return %s[0];" % ("a_at" if arg else "a"))
    out.close()
    return Fold(name, out.text())


def folded(v: Value, function: Fold, array: str) -> str:
    """The call that folds the lanes."""
    return "%s(%s%s)" % (function.name, array, ", %s_at" % array if v.type in _ARG else "")


def run_time_scalar(v: Value) -> str:
    """A Scalar whose value is a Size."""
    number = to_cpp(v.attrs[0][1])
    if v.dtype is BFLOAT16 or (v.dtype.is_floating and v.dtype.bytes == 2):
        raise CodegenRefusal("the host target has no run-time constant of %s" % v.dtype.name)
    return "(%s)%s" % (value_type(v.dtype), number)
