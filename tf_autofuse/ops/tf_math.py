"""TF's transcendental functions and roots.

TF computes float32 with polynomials in the vectorized part of its loops and with libm elsewhere, so its own
result depends on an element's position; fused kernels give one value everywhere, within the bound of
docs/numerics.md.
"""
from tf_autofuse.ir.dtypes import BFLOAT16
from tf_autofuse.ops.composing import (REALS, SINGLE_DOUBLE, WIDE_INTEGERS, call, literal, scalar_constant,
                                       zero_where_zero)
from tf_autofuse.ops.schema import Refusal, TfOp

_LONGEST_POWER = 64  # keeps a power by repeated squaring below about a dozen multiplications


def _rsqrt(h, node, x):
    return h.call("Div", literal(h, 1, x), h.call("Sqrt", x))


def _integer_power(h, x, exponent):
    """x ** exponent by repeated squaring, wrapping around as TF's integer kernel does."""
    if exponent is None:
        raise Refusal("Integer Pow raises an error for negative exponents, and this exponent is not a "
                      "scalar constant.")
    if exponent < 0:
        raise Refusal("Integer Pow with a negative exponent raises an error in TensorFlow.")
    if exponent > _LONGEST_POWER:
        raise Refusal("Integer Pow with the exponent %d is too long a chain of multiplications." % exponent)
    if exponent == 0:
        return h.call("Add", h.call("Sub", x, x), literal(h, 1, x))
    result, square = None, x
    while exponent:
        if exponent & 1:
            result = square if result is None else h.call("Mul", result, square)
        exponent >>= 1
        if exponent:
            square = h.call("Mul", square, square)
    return result


def _pow(h, node, x, y):
    exponent = scalar_constant(h, y)
    if h.dtype_of(x).is_integer:
        return _integer_power(h, x, exponent)
    if exponent == 2:
        return h.call("Mul", x, x)
    if exponent == 3:  # within 1 ULP; where x * x leaves the type, so does the result
        return h.call("Mul", x, h.call("Mul", x, x))
    if exponent == -1:
        return h.call("Div", literal(h, 1, x), x)
    return h.call("Pow", x, y)


def _rows():
    one = (
        ("Exp", REALS, "Exp", "exp(-inf) = 0, exp(inf) = inf, NaN stays."),
        ("Expm1", REALS, "Expm1", "exp(x) - 1 without cancellation; -0.0 stays, -inf gives -1."),
        ("Log", REALS + (BFLOAT16,), "Ln", "Zeros give -inf, negative numbers NaN, inf stays."),
        ("Log1p", REALS, "Log1p", "log(1 + x) without cancellation; -1 gives -inf, less gives NaN, -0.0 "
                                  "stays."),
        ("Sqrt", REALS + (BFLOAT16,), "Sqrt",
         "Correctly rounded; -0.0 stays, negative numbers give NaN, inf stays. TF's vectorized float32 loop "
         "is 1 ULP "
         "off at times, gives 0.0 for -0.0, NaN for inf and half as much again for x > 2^126."),
        ("Sin", REALS, "Sin", "NaN for infinities; -0.0 stays."),
        ("Cos", REALS, "Cos", "NaN for infinities."),
        ("Tan", REALS, "Tan", "NaN for infinities; -0.0 stays."),
        ("Asin", SINGLE_DOUBLE, "Asin", "NaN outside of [-1, 1]; -0.0 stays."),
        ("Acos", SINGLE_DOUBLE, "Acos", "NaN outside of [-1, 1]."),
        ("Atan", SINGLE_DOUBLE, "Atan", "pi/2 with the sign of x for infinities; -0.0 stays."),
        ("Sinh", SINGLE_DOUBLE, "Sinh", "Infinities and -0.0 stay."),
        ("Cosh", SINGLE_DOUBLE, "Cosh", "inf for both infinities."),
        ("Asinh", SINGLE_DOUBLE, "Asinh", "Infinities and -0.0 stay."),
        ("Acosh", SINGLE_DOUBLE, "Acosh", "NaN below 1; inf stays."),
        ("Atanh", SINGLE_DOUBLE, "Atanh", "Infinite at -1 and 1, NaN outside; -0.0 stays."),
        ("Tanh", REALS, "Tanh", "Never beyond [-1, 1]; -0.0 stays."),
        ("Sigmoid", REALS, "Sigmoid", "1 / (1 + exp(-x)), never beyond [0, 1]; 0 for -inf, 1 for inf."),
        ("Erf", REALS, "Erf", "Never beyond [-1, 1]; -0.0 stays."),
        ("Erfc", REALS, "Erfc", "1 - erf(x) without cancellation: 2 for -inf, 0 for inf."),
    )
    return tuple(TfOp((name,), "elementwise", dtypes, call(asc), "ulp", meaning)
                 for name, dtypes, asc, meaning in one)


ROWS = _rows() + (
    TfOp(("Rsqrt",), "elementwise", REALS, _rsqrt, "ulp",
         "1 / sqrt(x): inf for 0.0, -inf for -0.0, NaN for negative numbers, 0 for inf. TF's vectorized "
         "float32 loop "
         "gives NaN for inf and inf for -0.0."),
    TfOp(("Atan2",), "elementwise", SINGLE_DOUBLE, call("Atan2"), "ulp",
         "The angle of (x, y) in (-pi, pi], with C's rules for zeros and infinities."),
    TfOp(("Pow",), "elementwise", REALS + WIDE_INTEGERS, _pow, "ulp",
         "C's pow for floats: x^0 = 1 and 1^y = 1 even for NaN, NaN for a negative x and a fractional y. "
         "Integers "
         "multiply and wrap around."),
    TfOp(("Xlogy",), "elementwise", REALS,
         lambda h, node, a, b: zero_where_zero(h, a, h.call("Mul", a, h.call("Ln", b))), "ulp",
         "0.0 where x is a zero, whatever y is; otherwise x * log(y)."),
)
