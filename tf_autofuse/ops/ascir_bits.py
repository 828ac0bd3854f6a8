"""AscIR bitwise ops and shifts on integers."""
import numpy as np

from tf_autofuse.ir.dtypes import INT16, INT32, UINT16, UINT32
from tf_autofuse.ops.forms import INTEGER_WORDS, for_dtypes, helper, whole_words
from tf_autofuse.ops.schema import AscOp


def _left(x, amount):
    unsigned = np.dtype("u%d" % x.dtype.itemsize)
    return np.left_shift(x.astype(unsigned), amount.astype(unsigned)).astype(x.dtype)


def _clamped(x, y):
    """y clamped to 0 .. bits - 1, as TF does to keep C++ shifts defined."""
    return np.clip(y, 0, x.dtype.itemsize * 8 - 1).astype(x.dtype)


def _shifts(name, function, instruction):
    """By a tensor (no such instruction on the vector unit) and by the attribute amount, 0 .. bits - 1."""
    lacks = {d: "shift amounts are one constant for all elements" for d in INTEGER_WORDS if d.bytes < 8}
    text = "AscendC::%s({dst}, {0}, ({T}){attr_amount}, {n});" % instruction
    return (AscOp(name, 2, "same", {}, lambda i, a, d: function(i[0], _clamped(*i)), lacks=lacks,
                  note="the amount is clamped to 0 .. bits - 1"),
            AscOp(name + "By", 1, "same", for_dtypes((INT32, INT16, UINT32, UINT16), {"tensor": text}),
                  lambda i, a, d: function(i[0], d.numpy(a["amount"])), in_place=True, cost=(("Muls", 1),)))


def _bitwise(name, arity, function, tmp_bytes=lambda item, count: 32):
    """32: the helpers that need no scratch take one all the same, as all helpers do."""
    return AscOp(name, arity, "same", for_dtypes(INTEGER_WORDS, helper(name, arity)),
                 lambda i, a, d: function(*i), tmp_bytes=tmp_bytes, header="bitwise.h", in_place=True,
                 cost=(("And", 2),),
                 commutative=arity == 2)


ROWS = (
    _bitwise("BitwiseAnd", 2, np.bitwise_and),
    _bitwise("BitwiseOr", 2, np.bitwise_or),
    _bitwise("BitwiseXor", 2, np.bitwise_xor, whole_words),
    _bitwise("BitwiseNot", 1, np.bitwise_not),
) + _shifts("LeftShift", _left, "ShiftLeft") + _shifts("RightShift", np.right_shift, "ShiftRight")
