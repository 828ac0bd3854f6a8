"""TF's bitwise ops."""
from tf_autofuse.ops.composing import ALL_INTEGERS, call
from tf_autofuse.ops.schema import TfOp

ROWS = (
    TfOp(("BitwiseAnd",), "elementwise", ALL_INTEGERS, call("BitwiseAnd"), "bits", "x & y."),
    TfOp(("BitwiseOr",), "elementwise", ALL_INTEGERS, call("BitwiseOr"), "bits", "x | y."),
    TfOp(("BitwiseXor",), "elementwise", ALL_INTEGERS, call("BitwiseXor"), "bits", "x ^ y."),
    TfOp(("Invert",), "elementwise", ALL_INTEGERS, call("BitwiseNot"), "bits", "~x."),
    TfOp(("LeftShift",), "elementwise", ALL_INTEGERS, call("LeftShift"), "bits",
         "x << y with y clamped to 0 .. bits - 1."),
    TfOp(("RightShift",), "elementwise", ALL_INTEGERS, call("RightShift"), "bits",
         "x >> y with y clamped to 0 .. bits - 1; the sign bit is copied for signed x."),
)
