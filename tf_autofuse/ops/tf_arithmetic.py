"""TF's arithmetic ops: their dtypes in TF 1.15's CPU kernel registry and their meaning as AscIR calls.

Integer division: TF raises an error for a zero divisor, which a fused kernel cannot do; so these ops are
lowered only where the divisor is a constant other than 0.
"""
from tf_autofuse.ir.dtypes import INT16, INT32, INT64, UINT16, UINT8
from tf_autofuse.ops.composing import (FLOATS, INTEGERS, REALS, SIGNED, SINGLE_DOUBLE, WIDE_INTEGERS, call,
                                       literal,
                                       require_same_shape, scalar_constant, zero_where_zero)
from tf_autofuse.ops.schema import Refusal, TfOp


def safe_divisor(h, divisor) -> int:
    """The value of a constant integer that can be divided by. Raises Refusal for any other."""
    known = scalar_constant(h, divisor)
    if known is None:
        raise Refusal("Integer division raises an error where the divisor is 0, and this divisor is not a "
                      "scalar constant.")
    if known == 0:
        raise Refusal("Integer division by the constant 0 raises an error in TensorFlow.")
    if known == -(1 << 8 * h.dtype_of(divisor).bytes - 1):
        raise Refusal("The smallest integer as a divisor has no absolute value.")
    return int(known)


def _division(float_lowering, integer_type):
    def lower(h, node, a, b):
        if h.dtype_of(a).is_floating:
            return float_lowering(h, a, b)
        return h.call(integer_type, a, divisor=safe_divisor(h, b))
    return lower


def _true_div(h, a, b):
    return h.call("Div", a, b)


def _floor_div(h, a, b):
    return h.call("Floor", h.call("Div", a, b))


def _fmod(h, a, b):
    return h.call("TruncateMod", a, b)


def _floor_mod(h, a, b):
    return h.call("FloorMod", a, b)


def _add_n(h, node, *values):
    require_same_shape(h, *values)
    total = values[0]
    for v in values[1:]:
        total = h.call("Add", total, v)
    return total


def _bias_add(h, node, x, bias):
    """x [..., C] + bias [C] (NHWC); for NCHW of rank 3 to 5 the channel is dim 1, as in TF's kernel."""
    rank = h.rank_of(x)
    if h.rank_of(bias) != 1:
        raise Refusal("The bias has rank %d, BiasAdd needs rank 1." % h.rank_of(bias))
    if rank < 2:
        raise Refusal("The input has rank %d, BiasAdd needs at least rank 2." % rank)
    layout = node.attr("data_format", "NHWC")
    layout = layout.decode() if isinstance(layout, bytes) else layout
    if layout == "NCHW":
        if rank > 5:
            raise Refusal("BiasAdd in NCHW layout takes rank 2 to 5, not %d." % rank)
        h.require_equal_dim(x, 1, bias, 0)
        return h.call("Add", x, h.append_dims(bias, rank - 2))
    h.require_equal_dim(x, -1, bias, 0)
    return h.call("Add", x, bias)


def _square(h, node, x):
    return h.call("Mul", x, x)


def _squared_difference(h, node, a, b):
    difference = h.call("Sub", a, b)
    return h.call("Mul", difference, difference)


def _reciprocal(h, node, x):
    return h.call("Div", literal(h, 1, x), x)


def _clip_by_value(h, node, x, low, high):
    """TF takes bounds of x's shape, or scalars, in these combinations; anything else is its error."""
    for bound in (low, high):
        if h.rank_of(bound) != 0:
            require_same_shape(h, x, bound)
    return h.call("Maximum", h.call("Minimum", x, high), low)


def _round(h, node, x):
    return h.call("Round", x) if h.dtype_of(x).is_floating else x


_DIVIDED = (INT16, INT32, INT64, UINT8, UINT16)

ROWS = (
    TfOp(("Abs",), "elementwise", FLOATS + SIGNED, call("Abs"), "bits",
         "Clears the sign bit, also of NaN and -0.0; the smallest integer stays itself."),
    TfOp(("Neg",), "elementwise", FLOATS + WIDE_INTEGERS, call("Neg"), "bits",
         "Flips the sign; the smallest integer stays itself. TF gives 0.0 for both zeros in the vectorized "
         "part of "
         "its float32 and float64 loops and the flipped zero elsewhere; fused kernels always flip.",
         lane_varies=True),
    TfOp(("Sign",), "elementwise", REALS + WIDE_INTEGERS, call("Sign"), "bits",
         "-1, 0 or 1; NaN, 0.0 and -0.0 give 0.0."),
    TfOp(("Add",), "elementwise", FLOATS + SIGNED + (UINT8,), call("Add"), "bits",
         "IEEE addition; integers wrap around."),
    TfOp(("AddV2",), "elementwise", FLOATS + SIGNED + (UINT8,), call("Add"), "bits",
         "IEEE addition; integers wrap around."),
    TfOp(("AddN",), "elementwise", FLOATS + INTEGERS, _add_n, "ulp",
         "Sum of inputs of one shape, from left to right; integers wrap around. TF adds up to eight inputs "
         "at a "
         "time in the same order, later ones as a group of their own."),
    TfOp(("Sub",), "elementwise", FLOATS + INTEGERS, call("Sub"), "bits",
         "IEEE subtraction; integers wrap around."),
    TfOp(("Mul",), "elementwise", FLOATS + INTEGERS, call("Mul"), "bits",
         "IEEE multiplication; integers wrap around."),
    TfOp(("Div",), "elementwise", FLOATS + _DIVIDED, _division(_true_div, "TruncateDivBy"),
         "bits", "Floats: IEEE division. Integers: rounded towards zero."),
    TfOp(("RealDiv",), "elementwise", FLOATS, call("Div"), "bits",
         "IEEE division: x/0 is infinite, 0/0 is NaN."),
    TfOp(("TruncateDiv",), "elementwise", _DIVIDED, _division(_true_div, "TruncateDivBy"),
         "bits", "Integer division rounded towards zero."),
    TfOp(("FloorDiv",), "elementwise", REALS + INTEGERS, _division(_floor_div, "FloorDivBy"), "bits",
         "Floats: floor(x / y) with the rounded quotient, so -0.0 and infinities come from IEEE division. "
         "Integers: "
         "rounded down."),
    TfOp(("FloorMod",), "elementwise", SINGLE_DOUBLE + WIDE_INTEGERS, _division(_floor_mod, "FloorModBy"),
         "bits",
         "fmod(x, y), plus y where it is not 0 and has the other sign than y; NaN for y = 0 or infinite x."),
    TfOp(("Mod", "TruncateMod"), "elementwise", SINGLE_DOUBLE + WIDE_INTEGERS,
         _division(_fmod, "TruncateModBy"), "bits",
         "fmod(x, y), exact, with the sign of x; NaN for y = 0 or infinite x; x for infinite y."),
    TfOp(("DivNoNan",), "elementwise", REALS,
         lambda h, node, a, b: zero_where_zero(h, b, h.call("Div", a, b)), "bits",
         "0.0 where y is 0.0 or -0.0, whatever x is; otherwise x / y."),
    TfOp(("MulNoNan",), "elementwise", REALS,
         lambda h, node, a, b: zero_where_zero(h, b, h.call("Mul", a, b)), "bits",
         "0.0 where y is 0.0 or -0.0, even for infinite or NaN x; otherwise x * y."),
    TfOp(("Xdivy",), "elementwise", REALS,
         lambda h, node, a, b: zero_where_zero(h, a, h.call("Div", a, b)), "bits",
         "0.0 where x is a zero, whatever y is; otherwise x / y. For x = -0.0 TF gives -0.0 in the "
         "vectorized part "
         "of its loop and 0.0 elsewhere; fused kernels give 0.0.", lane_varies=True),
    TfOp(("BiasAdd", "BiasAddV1"), "elementwise", FLOATS + INTEGERS, _bias_add, "bits",
         "x plus a vector along the channel dim (the last one, or dim 1 for NCHW); integers wrap around."),
    TfOp(("Square",), "elementwise", FLOATS + WIDE_INTEGERS, _square, "bits", "x * x; integers wrap around."),
    TfOp(("SquaredDifference",), "elementwise", REALS + WIDE_INTEGERS, _squared_difference, "bits",
         "(x - y) * (x - y), each rounded; integers wrap around."),
    TfOp(("Reciprocal", "Inv"), "elementwise", REALS, _reciprocal, "bits",
         "IEEE 1 / x: signed zeros give infinities."),
    TfOp(("Maximum",), "elementwise", FLOATS + WIDE_INTEGERS, call("Maximum"), "bits",
         "(a < b) ? b : a: the first operand where one is NaN or both are zeros."),
    TfOp(("Minimum",), "elementwise", FLOATS + WIDE_INTEGERS, call("Minimum"), "bits",
         "(b < a) ? b : a: the first operand where one is NaN or both are zeros."),
    TfOp(("Floor",), "elementwise", REALS, call("Floor"), "bits", "Rounds down; -0.0, infinities and NaN "
                                                                  "stay."),
    TfOp(("Ceil",), "elementwise", REALS, call("Ceil"), "bits",
         "Rounds up; -0.0, infinities and NaN stay, -0.5 gives -0.0."),
    TfOp(("Rint",), "elementwise", SINGLE_DOUBLE, call("Rint"), "bits",
         "Rounds half to even and keeps the sign: -0.3 gives -0.0."),
    TfOp(("Round",), "elementwise", REALS + WIDE_INTEGERS, _round, "bits",
         "Rounds half to even; what rounds to zero gives 0.0 (-0.3 too), only -0.0 stays -0.0. Integers "
         "stay."),
    TfOp(("ClipByValue",), "elementwise", REALS + INTEGERS, _clip_by_value, "bits",
         "max(min(x, high), low) with the choices of Maximum and Minimum: NaN stays NaN."),
)
