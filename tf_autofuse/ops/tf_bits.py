"""TF's bitwise ops."""
from tf_autofuse.ops.composing import ALL_INTEGERS, call, scalar_constant
from tf_autofuse.ops.schema import TfOp


def _shift(asc_type):
    """A scalar constant amount becomes an attribute, clamped: the vector unit shifts by constants only."""
    def lower(h, node, x, y):
        amount = scalar_constant(h, y)
        if amount is None:
            return h.call(asc_type, x, y)
        return h.call(asc_type + "By", x, amount=min(max(int(amount), 0), h.dtype_of(x).bytes * 8 - 1))
    return lower


ROWS = (
    TfOp(("BitwiseAnd",), "elementwise", ALL_INTEGERS, call("BitwiseAnd"), "bits", "x & y."),
    TfOp(("BitwiseOr",), "elementwise", ALL_INTEGERS, call("BitwiseOr"), "bits", "x | y."),
    TfOp(("BitwiseXor",), "elementwise", ALL_INTEGERS, call("BitwiseXor"), "bits", "x ^ y."),
    TfOp(("Invert",), "elementwise", ALL_INTEGERS, call("BitwiseNot"), "bits", "~x."),
    TfOp(("LeftShift",), "elementwise", ALL_INTEGERS, _shift("LeftShift"), "bits",
         "x << y with y clamped to 0 .. bits - 1."),
    TfOp(("RightShift",), "elementwise", ALL_INTEGERS, _shift("RightShift"), "bits",
         "x >> y with y clamped to 0 .. bits - 1; the sign bit is copied for signed x."),
)
