"""AscIR arithmetic: what one vector instruction (or a helper of a few) computes on floats and integers.

On entry of `evaluate`: numpy arrays of one dtype that broadcast against each other; on exit an array of that dtype.
Floats round once per op, integers wrap around, as TF's CPU kernels do.
"""
import numpy as np

from tf_autofuse.ir.dtypes import FLOAT16, FLOAT32, INT16, INT32
from tf_autofuse.ops.forms import binary, chain, for_dtypes, rounding, unary
from tf_autofuse.ops.schema import AscOp

_FLOATS = (FLOAT32, FLOAT16)
_NATIVE = (FLOAT32, FLOAT16, INT32, INT16)


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


def _truncate_div(inputs, _attrs, _dtype):
    a, b = np.broadcast_arrays(*inputs)
    quotient = np.floor_divide(a, b)
    inexact = (np.multiply(quotient, b) != a) & ((a < 0) != (b < 0))
    return quotient + inexact.astype(a.dtype)


def _floor_div(inputs, _attrs, dtype):
    """TF's integer formula, with its overflow at the edges of the range: for operands of different sign
    (1 - |a| - |b|) / |b| rounded towards zero, in C's int for 8 and 16 bits and wrapping around above.
    """
    a, b = np.broadcast_arrays(*inputs)
    if dtype.kind == "u":
        return np.floor_divide(a, b)
    wide = np.int32 if dtype.bytes < 4 else dtype.numpy
    abs_a, abs_b = np.abs(a).astype(wide), np.abs(b).astype(wide)
    opposite = _truncate_div((-(abs_a + abs_b - wide(1)), abs_b), None, None).astype(dtype.numpy)
    return np.where((a < 0) != (b < 0), opposite, _truncate_div((a, b), None, None))


def _truncate_mod(inputs, _attrs, _dtype):
    return np.fmod(*inputs)


def _floor_mod(inputs, _attrs, _dtype):
    a, b = inputs
    remainder = np.fmod(a, b)
    return np.where((remainder != 0) & ((b < 0) != (remainder < 0)), remainder + b, remainder)


# c - x as (-x) + c: both are exact negations of x - c, rounding is symmetric, and signed zeros agree.
_SUB = dict(binary("Sub"), scalar0=chain("AscendC::Muls({dst}, {1}, ({T})-1, {n})",
                                         "AscendC::Adds({dst}, {dst}, {c0}, {n})"))

_LEAKY = "AscendC::LeakyRelu({dst}, {0}, ({T}){attr_negative_slope}, {n});"

ROWS = (
    AscOp("Add", 2, "same", for_dtypes(_NATIVE, binary("Add", "Adds")),
          lambda i, a, d: np.add(*i), in_place=True, cost=(("Add", 1),), commutative=True),
    AscOp("Sub", 2, "same", for_dtypes(_NATIVE, _SUB),
          lambda i, a, d: np.subtract(*i), in_place=True, cost=(("Sub", 1),)),
    AscOp("Mul", 2, "same", for_dtypes(_NATIVE, binary("Mul", "Muls")),
          lambda i, a, d: np.multiply(*i), in_place=True, cost=(("Mul", 1),), commutative=True),
    AscOp("Div", 2, "same", for_dtypes(_FLOATS, binary("Div")),
          lambda i, a, d: np.divide(*i), in_place=True, cost=(("Div", 1),)),
    AscOp("Maximum", 2, "same", for_dtypes(_NATIVE, {"tensor": "AscendC::Max({dst}, {0}, {1}, {n});",
                                                     "scalar1": "AscendC::Maxs({dst}, {0}, {c1}, {n});"}),
          _maximum, in_place=True, cost=(("Max", 1),), note="(a < b) ? b : a"),
    AscOp("Minimum", 2, "same", for_dtypes(_NATIVE, {"tensor": "AscendC::Min({dst}, {0}, {1}, {n});",
                                                     "scalar1": "AscendC::Mins({dst}, {0}, {c1}, {n});"}),
          _minimum, in_place=True, cost=(("Min", 1),), note="(b < a) ? b : a"),
    AscOp("Abs", 1, "same", for_dtypes(_FLOATS, unary("Abs")),
          lambda i, a, d: np.abs(i[0]), in_place=True, cost=(("Abs", 1),)),
    AscOp("Neg", 1, "same", for_dtypes(_NATIVE, {"tensor": "AscendC::Muls({dst}, {0}, ({T})-1, {n});"}),
          lambda i, a, d: np.negative(i[0]), in_place=True, cost=(("Muls", 1),)),
    AscOp("Relu", 1, "same", for_dtypes(_FLOATS + (INT32,), unary("Relu")),
          _relu, in_place=True, cost=(("Relu", 1),), note="(x < 0) ? 0 : x"),
    AscOp("LeakyRelu", 1, "same", for_dtypes(_FLOATS, {"tensor": _LEAKY}), _leaky_relu, in_place=True,
          cost=(("Relu", 1),), note="x < 0 ? negative_slope * x : x, for slopes in (0, 1]"),
    AscOp("Sign", 1, "same", {}, _sign, cost=(("Sign", 1),), note="NaN and zeros give 0.0"),
    AscOp("Floor", 1, "same", for_dtypes((FLOAT32,), rounding("CAST_FLOOR")), lambda i, a, d: np.floor(i[0]),
          in_place=True, cost=(("Cast", 1),)),
    AscOp("Ceil", 1, "same", for_dtypes((FLOAT32,), rounding("CAST_CEIL")), lambda i, a, d: np.ceil(i[0]),
          in_place=True, cost=(("Cast", 1),)),
    AscOp("Rint", 1, "same", for_dtypes((FLOAT32,), rounding("CAST_RINT")), lambda i, a, d: np.rint(i[0]),
          in_place=True, cost=(("Cast", 1),)),
    AscOp("Round", 1, "same", {}, _round, cost=(("Cast", 1), ("Adds", 1)),
          note="half to even; only -0.0 gives -0.0"),
    AscOp("TruncateDiv", 2, "same", {}, _truncate_div, note="integers only; the divisor is not 0"),
    AscOp("FloorDiv", 2, "same", {}, _floor_div, note="integers only; the divisor is not 0"),
    AscOp("TruncateMod", 2, "same", {}, _truncate_mod, note="C's % and fmod; an integer divisor is not 0"),
    AscOp("FloorMod", 2, "same", {}, _floor_mod, note="the divisor's sign; an integer divisor is not 0"),
)
