"""AscIR transcendentals and roots.

The numpy meaning is the float64 function, rounded once to the result's dtype. On the ascend target Exp, Ln
and Sqrt are instructions; the rest are helpers (npu_kernels/include/autofuse/ops_*.h), whose errors
docs/numerics.md states. Costs count the helpers' instructions; Ln, which the cost table lacks, is priced as
Exp.
"""
import math

import numpy as np

from tf_autofuse.ir.dtypes import FLOAT32
from tf_autofuse.ops.forms import NATIVE_FLOATS, for_dtypes, helper, ops_scratch, unary
from tf_autofuse.ops import host_forms as host
from tf_autofuse.ops.schema import AscOp

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
    """Of the two equal forms the one whose exp does not overflow, so that tiny results keep their
    precision.
    """
    small = np.exp(-np.abs(x))
    return np.where(x < 0, small, 1.0) / (1.0 + small)


def _instruction(type_, function, cost, host_name):
    """One instruction of the vector unit; host_name: the function of npu_kernels/host/."""
    return AscOp(type_, 1, "same", for_dtypes(NATIVE_FLOATS, unary(type_)), _through_float64(function),
                 in_place=True, cost=((cost, 1),), host=host.function(host_name, 1))


def _helper(type_, arity, function, header, tensors, *cost):
    """A device helper on float32 with that many float scratch tensors; cost: (API, how often) pairs."""
    return AscOp(type_, arity, "same", {FLOAT32: helper(type_, arity)}, _through_float64(function),
                 tmp_bytes=ops_scratch(tensors), in_place=True, header=header, cost=cost,
                 host=host.function(type_.lower(), arity))


def _chain(adds, muls, *others):
    """Cost of a chain of that many tensor-scalar additions and multiplications."""
    return (("Adds", adds), ("Muls", muls)) + others


ROWS = (
    _instruction("Exp", np.exp, "Exp", "exp"),
    _instruction("Ln", np.log, "Exp", "log"),
    AscOp("Sqrt", 1, "same", for_dtypes(NATIVE_FLOATS, unary("Sqrt")), lambda i, a, d: np.sqrt(i[0]),
          in_place=True, cost=(("Sqrt", 1),), host=host.rounded("sqrt")),
    _helper("Expm1", 1, np.expm1, "ops_exp.h", 2, *_chain(9, 1, ("Mul", 8), ("Exp", 1), ("Select", 1))),
    _helper("Log1p", 1, np.log1p, "ops_exp.h", 4, *_chain(8, 1, ("Mul", 8), ("Sub", 2), ("Div", 1),
                                                          ("Exp", 1), ("Select", 1))),
    _helper("Sigmoid", 1, _sigmoid, "ops_exp.h", 2, ("Mins", 1), ("Exp", 2), ("Abs", 1), ("Muls", 1),
            ("Adds", 1), ("Div", 1)),
    _helper("Tanh", 1, np.tanh, "ops_exp.h", 5, *_chain(7, 2, ("Mul", 7), ("Exp", 1), ("Div", 1),
                                                        ("Select", 1), ("And", 4))),
    _helper("Sinh", 1, np.sinh, "ops_exp.h", 6, *_chain(5, 3, ("Mul", 7), ("Exp", 2), ("Div", 1),
                                                        ("Select", 1), ("And", 4))),
    _helper("Cosh", 1, np.cosh, "ops_exp.h", 3, *_chain(3, 1, ("Mul", 1), ("Exp", 2), ("Div", 1),
                                                        ("Add", 1))),
    _helper("Asinh", 1, np.arcsinh, "ops_exp.h", 6, *_chain(11, 1, ("Mul", 12), ("Sqrt", 1), ("Exp", 1),
                                                            ("Select", 3), ("And", 4))),
    _helper("Acosh", 1, np.arccosh, "ops_exp.h", 5, *_chain(8, 1, ("Mul", 7), ("Sqrt", 2), ("Exp", 1),
                                                            ("Select", 3))),
    _helper("Atanh", 1, np.arctanh, "ops_exp.h", 5, *_chain(8, 3, ("Mul", 8), ("Div", 1), ("Exp", 1),
                                                            ("Select", 1), ("And", 4))),
    _helper("Sin", 1, np.sin, "ops_trig.h", 8, *_chain(8, 14, ("Mul", 9), ("Sub", 12), ("Select", 2))),
    _helper("Cos", 1, np.cos, "ops_trig.h", 8, *_chain(8, 14, ("Mul", 9), ("Sub", 12), ("Select", 1))),
    _helper("Tan", 1, np.tan, "ops_trig.h", 7, *_chain(9, 8, ("Mul", 10), ("Sub", 9), ("Div", 1),
                                                       ("Select", 2))),
    _helper("Asin", 1, np.arcsin, "ops_trig.h", 5, *_chain(7, 5, ("Mul", 7), ("Sqrt", 1), ("Select", 3),
                                                           ("And", 4))),
    _helper("Acos", 1, np.arccos, "ops_trig.h", 7, *_chain(10, 8, ("Mul", 7), ("Sqrt", 1), ("Select", 4),
                                                           ("And", 8))),
    _helper("Atan", 1, np.arctan, "ops_trig.h", 5, *_chain(12, 3, ("Mul", 12), ("Div", 1), ("Select", 2),
                                                           ("And", 4))),
    AscOp("Atan2", 2, "same", {FLOAT32: helper("Atan2", 2)}, _through_float64(np.arctan2),
          tmp_bytes=ops_scratch(7), in_place=True, header="ops_trig.h", host=host.function("atan2", 2),
          cost=_chain(14, 5, ("Mul", 12), ("Max", 2), ("Div", 1), ("Select", 4), ("And", 4))),
    _helper("Erf", 1, _elementwise(math.erf), "ops_erf.h", 5,
            *_chain(18, 4, ("Mul", 18), ("Div", 2), ("Exp", 1), ("Select", 1), ("And", 4))),
    _helper("Erfc", 1, _elementwise(math.erfc), "ops_erf.h", 9,
            *_chain(22, 10, ("Mul", 34), ("Sub", 8), ("Div", 3), ("Exp", 1), ("Select", 2), ("And", 6))),
    _helper("Pow", 2, np.power, "ops_pow.h", 10, *_chain(18, 10, ("Mul", 26), ("Sub", 12), ("Div", 2),
                                                        ("Exp", 1), ("Select", 8), ("And", 14))),
)
