"""AscIR arithmetic: what one vector instruction (or a helper of a few) computes on floats and integers.

On entry of `evaluate`: numpy arrays of one dtype that broadcast against each other; on exit an array of that
dtype. Floats round once per op, integers wrap around, as TF's CPU kernels do.
"""
import numpy as np

from tf_autofuse.ir.dtypes import FLOAT32, INT16, INT32
from tf_autofuse.ops.forms import (NATIVE, NATIVE_FLOATS, binary, chain, for_dtypes, helper, ops_scratch,
                                   rounding,
                                   scratch, unary)
from tf_autofuse.ops import host_forms as host
from tf_autofuse.ops.schema import AscOp


def _maximum(inputs, _attrs, _dtype):
    a, b = inputs
    return np.where(a < b, b, a)


def _minimum(inputs, _attrs, _dtype):
    a, b = inputs
    return np.where(b < a, b, a)


def _relu(inputs, _attrs, _dtype):
    (x,) = inputs
    return np.where(x < 0, x.dtype.type(0), x)


def _sign(inputs, _attrs, dtype):
    (x,) = inputs
    return ((x > 0).astype(np.int8) - (x < 0).astype(np.int8)).astype(dtype.numpy)


def _round(inputs, _attrs, _dtype):
    """Half to even; adding 0.0 turns the -0.0 of small negative numbers into 0.0, zeros themselves stay."""
    (x,) = inputs
    return np.where(x == 0, x, np.rint(x) + x.dtype.type(0))


def _leaky_relu(inputs, attrs, _dtype):
    (x,) = inputs
    return np.where(x < 0, x * x.dtype.type(attrs["negative_slope"]), x)


def _truncated(a, b):
    """a / b rounded towards zero; integers, b is not 0. The lowest integer by -1 wraps around to itself."""
    if np.ndim(b) == 0 and b == -1:
        return np.negative(a)
    quotient = np.floor_divide(a, b)
    inexact = (np.multiply(quotient, b) != a) & ((a < 0) != (b < 0))
    return quotient + inexact.astype(quotient.dtype)


def _divisor(attrs, dtype):
    return dtype.numpy(attrs["divisor"])


def _truncate_div_by(inputs, attrs, dtype):
    return _truncated(inputs[0], _divisor(attrs, dtype))


def _floor_div_by(inputs, attrs, dtype):
    """TF's integer formula, with its overflow at the edges of the range: for operands of different sign
    (1 - |a| - |b|) / |b| rounded towards zero, in C's int for 8 and 16 bits and wrapping around above.
    """
    a, b = inputs[0], _divisor(attrs, dtype)
    if dtype.kind == "u":
        return np.floor_divide(a, b)
    wide = np.dtype(np.int32 if dtype.bytes < 4 else dtype.numpy).type
    abs_a, abs_b = np.abs(a).astype(wide), np.abs(b).astype(wide)
    opposite = _truncated(-(abs_a + abs_b - wide(1)), abs_b).astype(dtype.numpy)
    return np.where((a < 0) != (b < 0), opposite, _truncated(a, b))


def _remainder(a, b):
    """C's % and fmod. By -1 it is 0, which the processor's division instruction would not survive for the
    lowest
    integer."""
    if a.dtype.kind == "i" and np.ndim(b) == 0 and b == -1:
        return np.zeros_like(a)
    return np.fmod(a, b)


def _floored_remainder(a, b):
    remainder = _remainder(a, b)
    return np.where((remainder != 0) & ((b < 0) != (remainder < 0)), remainder + b, remainder)


# c - x as (-x) + c: both are exact negations of x - c, rounding is symmetric, and signed zeros agree.
_SUB = dict(binary("Sub"), scalar0=chain("AscendC::Muls({dst}, {1}, ({T})-1, {n})",
                                         "AscendC::Adds({dst}, {dst}, {c0}, {n})"))
_NEG = {"tensor": "AscendC::Muls({dst}, {0}, ({T})-1, {n});"}
_RELU_INT16 = {"tensor": "AscendC::Maxs({dst}, {0}, ({T})0, {n});"}
_LEAKY = {"tensor": "AscendC::LeakyRelu({dst}, {0}, ({T}){attr_negative_slope}, {n});"}
# Max and Min keep their first operand where one is NaN or both are zeros, so a scalar may only be the second
# one.
_MAX = {"tensor": "AscendC::Max({dst}, {0}, {1}, {n});", "scalar1": "AscendC::Maxs({dst}, {0}, {c1}, {n});"}
_MIN = {"tensor": "AscendC::Min({dst}, {0}, {1}, {n});", "scalar1": "AscendC::Mins({dst}, {0}, {c1}, {n});"}


def _divided(function):
    """Host forms of an integer division: functions of integer_division.h on 32 or 64 bits."""
    def text(dtype):
        kept = dtype.bytes >= 4 or (function == "floor" and dtype.kind == "i")
        wide = dtype if kept else host.UINT32 if dtype.kind == "u" else INT32
        return "(%s)af_div_%s_%s({0}, (%s){attr_divisor})" % (dtype.host, function, host.short_name(wide),
                                                              wide.host)
    return host.each(host.INTEGERS, text)


def _integer_division(name, evaluate, note, function):
    """By a constant, attr divisor, which is not 0: a helper of ops_intdiv.h for int32."""
    return AscOp(name, 1, "same",
                 {INT32: {"tensor": "autofuse::%s({dst}, {0}, {attr_divisor}, {tmp}, {n});" % name}},
                 evaluate, tmp_bytes=ops_scratch(5), header="ops_intdiv.h", in_place=True,
                 cost=(("Cast", 4), ("Muls", 9), ("Mul", 2), ("Sub", 4), ("Add", 5)), note=note,
                 host=_divided(function))


_REMAINDER_COST = (("Div", 1), ("Mul", 2), ("Sub", 3), ("Add", 2), ("Select", 2), ("And", 6), ("Cast", 1))


def _float_remainder(name, evaluate, note, function):
    return AscOp(name, 2, "same", {FLOAT32: helper(name, 2)}, lambda i, a, d: evaluate(*i),
                 tmp_bytes=ops_scratch(8),
                 header="ops_remainder.h", in_place=True,
                 cost=_REMAINDER_COST, note=note, host=host.with_halves(host.each(
                     host.SINGLES, lambda d: "%s_%s({0}, {1})" % (function, host.short_name(d))), 2))


ROWS = (
    AscOp("Add", 2, "same", for_dtypes(NATIVE, binary("Add", "Adds")),
          lambda i, a, d: np.add(*i), in_place=True, cost=(("Add", 1),), commutative=True,
          host=host.arithmetic(host.NUMBERS, host.operator("+"), 2)),
    AscOp("Sub", 2, "same", for_dtypes(NATIVE, _SUB),
          lambda i, a, d: np.subtract(*i), in_place=True, cost=(("Sub", 1),),
          host=host.arithmetic(host.NUMBERS, host.operator("-"), 2)),
    AscOp("Mul", 2, "same", for_dtypes(NATIVE, binary("Mul", "Muls")),
          lambda i, a, d: np.multiply(*i), in_place=True, cost=(("Mul", 1),), commutative=True,
          host=host.arithmetic(host.NUMBERS, host.operator("*"), 2)),
    AscOp("Div", 2, "same", for_dtypes(NATIVE_FLOATS, binary("Div")),
          lambda i, a, d: np.divide(*i), in_place=True, cost=(("Div", 1),),
          host=host.arithmetic(host.SINGLES, host.operator("/"), 2)),
    AscOp("Maximum", 2, "same", for_dtypes(NATIVE, _MAX), _maximum, in_place=True, cost=(("Max", 1),),
          note="(a < b) ? b : a",
          host=host.arithmetic(host.NUMBERS, lambda d: "({0} < {1} ? {1} : {0})", 2)),
    AscOp("Minimum", 2, "same", for_dtypes(NATIVE, _MIN), _minimum, in_place=True, cost=(("Min", 1),),
          note="(b < a) ? b : a",
          host=host.arithmetic(host.NUMBERS, lambda d: "({1} < {0} ? {1} : {0})", 2)),
    AscOp("Abs", 1, "same", {**for_dtypes(NATIVE_FLOATS, unary("Abs")),
                             **for_dtypes((INT32, INT16), helper("AbsInt", 1))},
          lambda i, a, d: np.abs(i[0]), tmp_bytes=scratch(32), header="classify.h", in_place=True,
          cost=(("Abs", 1),), host=host.arithmetic(host.NUMBERS, host.magnitude, 1)),
    AscOp("Neg", 1, "same", for_dtypes(NATIVE, _NEG), lambda i, a, d: np.negative(i[0]), in_place=True,
          cost=(("Muls", 1),), host=host.arithmetic(host.NUMBERS, host.negated, 1)),
    AscOp("Relu", 1, "same", {**for_dtypes(NATIVE_FLOATS + (INT32,), unary("Relu")), INT16: _RELU_INT16},
          _relu, in_place=True, cost=(("Relu", 1),), note="(x < 0) ? 0 : x",
          host=host.arithmetic(host.NUMBERS, host.relu, 1)),
    AscOp("LeakyRelu", 1, "same", for_dtypes(NATIVE_FLOATS, _LEAKY), _leaky_relu, in_place=True,
          cost=(("Relu", 1),),
          note="x < 0 ? negative_slope * x : x, for slopes in (0, 1]",
          host=host.arithmetic(host.SINGLES,
                               lambda d: "({0} < 0 ? {0} * (%s){attr_negative_slope} : {0})" % d.host, 1)),
    AscOp("Sign", 1, "same", for_dtypes(NATIVE_FLOATS + (INT32,), helper("SignOf", 1)), _sign,
          tmp_bytes=scratch(33),
          header="classify.h", cost=(("Sign", 1),), note="NaN and zeros give 0.0",
          host=host.arithmetic(host.NUMBERS, host.sign, 1)),
    AscOp("Floor", 1, "same", {FLOAT32: rounding("CAST_FLOOR")}, lambda i, a, d: np.floor(i[0]),
          in_place=True, cost=(("Cast", 1),), host=host.rounded("floor")),
    AscOp("Ceil", 1, "same", {FLOAT32: rounding("CAST_CEIL")}, lambda i, a, d: np.ceil(i[0]), in_place=True,
          cost=(("Cast", 1),), host=host.rounded("ceil")),
    AscOp("Rint", 1, "same", {FLOAT32: rounding("CAST_RINT")}, lambda i, a, d: np.rint(i[0]), in_place=True,
          cost=(("Cast", 1),), host=host.rounded("rint")),
    AscOp("Round", 1, "same", {FLOAT32: helper("Round", 1)}, _round, tmp_bytes=ops_scratch(2),
          header="ops_round.h",
          in_place=True, cost=(("Cast", 1), ("Adds", 1), ("Max", 1), ("Min", 1)),
          note="half to even; only -0.0 gives -0.0",
          host=host.arithmetic(host.SINGLES,
                               lambda d: "({0} == 0 ? {0} : %s({0}) + 0)" % host.builtin(d, "rint"), 1)),
    _integer_division("TruncateDivBy", _truncate_div_by, "integers by the attribute divisor",
                      "truncate"),
    _integer_division("FloorDivBy", _floor_div_by, "integers by the attribute divisor", "floor"),
    _integer_division("TruncateModBy", lambda i, a, d: _remainder(i[0], _divisor(a, d)), "C's %",
                      "truncated_rest"),
    _integer_division("FloorModBy", lambda i, a, d: _floored_remainder(i[0], _divisor(a, d)),
                      "the divisor's sign", "floored_rest"),
    _float_remainder("TruncateMod", _remainder, "C's fmod, exact", "af_fmod"),
    _float_remainder("FloorMod", _floored_remainder, "fmod, plus the divisor where the signs differ",
                     "af_fmod_floored"),
)
