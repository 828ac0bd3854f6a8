"""AscIR arithmetic: what one vector instruction (or a helper of a few) computes on floats and integers.

On entry of `evaluate`: numpy arrays of one dtype that broadcast against each other; on exit an array of that dtype.
Floats round once per op, integers wrap around, as TF's CPU kernels do.
"""
import numpy as np

from tf_autofuse.ir.dtypes import FLOAT16, FLOAT32, INT16, INT32
from tf_autofuse.ops.forms import binary, chain, for_dtypes, unary
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


def _div(inputs, _attrs, _dtype):
    return np.divide(*inputs)


# c - x as (-x) + c: both are exact negations of x - c, rounding is symmetric, and signed zeros agree.
_SUB = dict(binary("Sub"), scalar0=chain("AscendC::Muls({dst}, {1}, ({T})-1, {n})",
                                         "AscendC::Adds({dst}, {dst}, {c0}, {n})"))

ROWS = (
    AscOp("Add", 2, "same", for_dtypes(_NATIVE, binary("Add", "Adds")),
          lambda i, a, d: np.add(*i), in_place=True, cost=(("Add", 1),), commutative=True),
    AscOp("Sub", 2, "same", for_dtypes(_NATIVE, _SUB),
          lambda i, a, d: np.subtract(*i), in_place=True, cost=(("Sub", 1),)),
    AscOp("Mul", 2, "same", for_dtypes(_NATIVE, binary("Mul", "Muls")),
          lambda i, a, d: np.multiply(*i), in_place=True, cost=(("Mul", 1),), commutative=True),
    AscOp("Div", 2, "same", for_dtypes(_FLOATS, binary("Div")),
          _div, in_place=True, cost=(("Div", 1),)),
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
)
