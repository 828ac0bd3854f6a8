"""AscIR transcendentals and roots. The numpy meaning is the float64 function, rounded once to the result's dtype."""
import math

import numpy as np

from tf_autofuse.ir.dtypes import FLOAT16, FLOAT32
from tf_autofuse.ops.forms import for_dtypes, unary
from tf_autofuse.ops.schema import AscOp

_FLOATS = (FLOAT32, FLOAT16)


def _through_float64(function):
    """evaluate() that computes in float64 and rounds once."""
    def evaluate(inputs, _attrs, dtype):
        return function(*(x.astype(np.float64) for x in inputs)).astype(dtype.numpy)
    return evaluate


def _elementwise(function):
    """A libm function that numpy does not have, on float64 arrays."""
    vectorized = np.frompyfunc(function, 1, 1)
    return lambda x: np.asarray(vectorized(x)).astype(np.float64)


def _sigmoid(x):
    """Of the two equal forms the one whose exp does not overflow, so that tiny results keep their precision."""
    small = np.exp(-np.abs(x))
    return np.where(x < 0, small, 1.0) / (1.0 + small)


def _row(type_, function, ascend=None, cost=()):
    return AscOp(type_, 1, "same", ascend or {}, _through_float64(function), in_place=bool(ascend), cost=cost)


ROWS = (
    _row("Exp", np.exp, for_dtypes(_FLOATS, unary("Exp")), (("Exp", 1),)),
    _row("Ln", np.log, for_dtypes(_FLOATS, unary("Ln")), (("Exp", 1),)),
    AscOp("Sqrt", 1, "same", for_dtypes(_FLOATS, unary("Sqrt")), lambda i, a, d: np.sqrt(i[0]), in_place=True,
          cost=(("Sqrt", 1),)),
    _row("Expm1", np.expm1),
    _row("Log1p", np.log1p),
    _row("Sin", np.sin),
    _row("Cos", np.cos),
    _row("Tan", np.tan),
    _row("Asin", np.arcsin),
    _row("Acos", np.arccos),
    _row("Atan", np.arctan),
    _row("Sinh", np.sinh),
    _row("Cosh", np.cosh),
    _row("Asinh", np.arcsinh),
    _row("Acosh", np.arccosh),
    _row("Atanh", np.arctanh),
    _row("Tanh", np.tanh),
    _row("Sigmoid", _sigmoid),
    _row("Erf", _elementwise(math.erf)),
    _row("Erfc", _elementwise(math.erfc)),
    AscOp("Pow", 2, "same", {}, _through_float64(np.power)),
    AscOp("Atan2", 2, "same", {}, _through_float64(np.arctan2)),
)
