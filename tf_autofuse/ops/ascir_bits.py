"""AscIR bitwise ops and shifts on integers."""
import numpy as np

from tf_autofuse.ops.schema import AscOp


def _shift_amount(x, y):
    """y clamped to 0 .. bits - 1, as TF does to keep C++ shifts defined."""
    return np.clip(y, 0, x.dtype.itemsize * 8 - 1).astype(x.dtype)


def _left_shift(inputs, _attrs, dtype):
    x, y = inputs
    unsigned = np.dtype("u%d" % x.dtype.itemsize)
    return np.left_shift(x.astype(unsigned), _shift_amount(x, y).astype(unsigned)).astype(dtype.numpy)


def _right_shift(inputs, _attrs, _dtype):
    x, y = inputs
    return np.right_shift(x, _shift_amount(x, y))


ROWS = (
    AscOp("BitwiseAnd", 2, "same", {}, lambda i, a, d: np.bitwise_and(*i), commutative=True),
    AscOp("BitwiseOr", 2, "same", {}, lambda i, a, d: np.bitwise_or(*i), commutative=True),
    AscOp("BitwiseXor", 2, "same", {}, lambda i, a, d: np.bitwise_xor(*i), commutative=True),
    AscOp("BitwiseNot", 1, "same", {}, lambda i, a, d: np.bitwise_not(i[0])),
    AscOp("LeftShift", 2, "same", {}, _left_shift, note="the amount is clamped to 0 .. bits - 1"),
    AscOp("RightShift", 2, "same", {}, _right_shift, note="the amount is clamped to 0 .. bits - 1"),
)
