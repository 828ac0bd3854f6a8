"""What each operator of the API computes, in calls of this project's op table.

`MEANINGS[type](e, attributes, *values)` gives the result's value; `e` is the emitter of convert.py, of
which these are used: call(op, *values, dtype=None, **attrs), constant(number, dtype), cast(value, dtype),
flag(value) (as bool), dtype_of(value). Float values arrive as float32 or float64 where the graph says 16
bits: a region computes inside in float32. A type that is not here has no kernel in this compiler (REFUSED
says why where that needs saying)."""

import math
from typing import Any, Callable, Dict

from tf_autofuse.ir.dtypes import BOOL, FLOAT32, DType

Meaning = Callable[..., Any]


def _same(op: str) -> Meaning:
    return lambda e, attributes, *values: e.call(op, *values)


def _predicate(op: str) -> Meaning:
    return lambda e, attributes, *values: e.call(op, *values, dtype=BOOL)


def _logical(op: str) -> Meaning:
    return lambda e, attributes, *values: e.call(op, *[e.flag(v) for v in values], dtype=BOOL)


def _identity(e, attributes, x):
    return x


def _one(e, x):
    return e.constant(1, e.dtype_of(x))


def _reciprocal(e, attributes, x):
    return e.call("Div", _one(e, x), x)


def _rsqrt(e, attributes, x):
    return e.call("Div", _one(e, x), e.call("Sqrt", x))


def _scaled_log(base: float) -> Meaning:
    def meaning(e, attributes, x):
        return e.call("Mul", e.call("Ln", x), e.constant(1.0 / math.log(base), e.dtype_of(x)))

    return meaning


def _exp2(e, attributes, x):
    return e.call("Pow", e.constant(2.0, e.dtype_of(x)), x)


def _trunc(e, attributes, x):
    return _choose(
        e, e.call("Lt", x, e.constant(0, e.dtype_of(x)), dtype=BOOL), e.call("Ceil", x), e.call("Floor", x)
    )


def _choose(e, condition, x, y):
    return e.call("Where", e.flag(condition), x, y)


def _select(e, attributes, condition, x, y):
    return _choose(e, condition, x, y)


def _masked_fill(e, attributes, x, mask, value):
    return _choose(e, mask, value, x)


def _clip(e, attributes, x, low, high):
    return e.call("Minimum", e.call("Maximum", x, low), high)


def _gelu(e, attributes, x):
    """0.5 x (1 + erf(x / sqrt 2)), the exact form."""
    dtype = e.dtype_of(x)
    inner = e.call("Erf", e.call("Mul", x, e.constant(math.sqrt(0.5), dtype)))
    half = e.call("Mul", x, e.constant(0.5, dtype))
    return e.call("Mul", half, e.call("Add", inner, e.constant(1.0, dtype)))


def _leaky_relu(e, attributes, x):
    return e.call("LeakyRelu", x, negative_slope=float(attributes.get("negative_slope", 0.0)))


def _axpy(e, attributes, x, y):
    """x + alpha * y"""
    return e.call("Add", x, e.call("Mul", e.constant(float(attributes.get("alpha", 0.0)), e.dtype_of(x)), y))


def _fma(e, attributes, x, y, z):
    return e.call("Add", e.call("Mul", x, y), z)


def _true_div(e, attributes, x, y):
    if e.dtype_of(x).is_integer:
        x, y = e.cast(x, FLOAT32), e.cast(y, FLOAT32)
    return e.call("Div", x, y)


def _floor_div(e, attributes, x, y):
    return e.call("Floor", e.call("Div", x, y))


def _trunc_div(e, attributes, x, y):
    return _trunc(e, attributes, e.call("Div", x, y))


def _to_int(op: str) -> Meaning:
    """Rounded first; the Cast to the output's integer type follows by the output's dtype."""
    return lambda e, attributes, x: e.call(op, x)


_SAME_NAME = """
Abs Exp Ln Sqrt Erf Sign Tanh Relu Neg Sigmoid Add Sub Div Mul Minimum Maximum Pow Floor Ceil Round Log1p Sin
Cos Tan Sinh Cosh Asin Acos Atan Asinh Acosh Atanh Erfc Atan2 BitwiseAnd BitwiseOr BitwiseXor BitwiseNot
""".split()
MEANINGS: Dict[str, Meaning] = {op: _same(op) for op in _SAME_NAME}
MEANINGS.update({op: _predicate(op) for op in "Ge Eq Ne Gt Le Lt IsFinite IsInf".split()})
MEANINGS.update({op: _identity for op in ("TruncToInt",)})
MEANINGS.update(
    {
        "Isnan": _predicate("IsNan"),
        "LogicalAnd": _logical("LogicalAnd"),
        "LogicalOr": _logical("LogicalOr"),
        "LogicalNot": _logical("LogicalNot"),
        "LogicalXor": _logical("Ne"),
        "Expm": _same("Expm1"),
        "Exp2": _exp2,
        "Log2": _scaled_log(2.0),
        "Log10": _scaled_log(10.0),
        "Rsqrt": _rsqrt,
        "Reciprocal": _reciprocal,
        "Square": lambda e, attributes, x: e.call("Mul", x, x),
        "Trunc": _trunc,
        "RoundToInt": _to_int("Rint"),
        "FloorToInt": _to_int("Floor"),
        "Ceil2Int": _to_int("Ceil"),
        "Select": _select,
        "Where": _select,
        "MaskedFill": _masked_fill,
        "ClipByValue": _clip,
        "Gelu": _gelu,
        "LeakyRelu": _leaky_relu,
        "Axpy": _axpy,
        "Fma": _fma,
        "TrueDiv": _true_div,
        "FloorDiv": _floor_div,
        "TruncDiv": _trunc_div,
        "Remainder": _same("FloorMod"),
        "Mod": _same("TruncateMod"),
        "Fmod": _same("TruncateMod"),
        "Xor": _same("BitwiseXor"),
        "LShift": _same("LeftShift"),
        "RShift": _same("RightShift"),
    }
)

#: Reductions: the op table's type, by the API's.
REDUCTIONS = {
    "Max": "Max",
    "Min": "Min",
    "Sum": "Sum",
    "Prod": "Prod",
    "Mean": "Sum",
    "Any": "Any",
    "All": "All",
    "ArgMax": "ArgMax",
}

REFUSED = {
    "MatMul": "the matrix unit is not used",
    "MatMulBias": "the matrix unit is not used",
    "BatchMatMul": "the matrix unit is not used",
    "BatchMatMulBias": "the matrix unit is not used",
    "Softmax": "it does not say which axes it normalizes; write Max, Sub, Exp, Sum, Div",
    "IndexExpr": "its expression is only a number here",
    "Pad": "its pads are not part of the graph",
    "Unsupported": "the graph says so",
}


def wide(dtype: DType) -> DType:
    """The dtype that values of `dtype` are computed in."""
    return FLOAT32 if dtype.is_floating and dtype.bytes == 2 else dtype


__all__ = ["MEANINGS", "REDUCTIONS", "REFUSED", "wide"]
