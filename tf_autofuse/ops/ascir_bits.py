"""AscIR bitwise ops and shifts on integers."""
import numpy as np

from tf_autofuse.ir.dtypes import INT16, INT32, UINT16, UINT32
from tf_autofuse.ops.forms import INTEGER_WORDS, for_dtypes, helper, whole_words
from tf_autofuse.ops import host_forms as host
from tf_autofuse.ops.schema import AscOp


def _left(x, amount):
    unsigned = np.dtype("u%d" % x.dtype.itemsize)
    return np.left_shift(x.astype(unsigned), amount.astype(unsigned)).astype(x.dtype)


def _clamped(x, y):
    """y clamped to 0 .. bits - 1, as TF does to keep C++ shifts defined."""
    return np.clip(y, 0, x.dtype.itemsize * 8 - 1).astype(x.dtype)


def _host_shift(direction, amount):
    """C of a shift: amount is an expression of {1} or of the attribute, as the dtype's own type."""
    def text(dtype):
        bits = 64 if dtype.bytes == 8 else 32
        most = "" if bits == 64 else ", %d" % (8 * dtype.bytes - 1)
        clamped = "af_shift_amount_%s%d(%s%s)" % (dtype.kind, bits, amount % dtype.host, most)
        signed = dtype.kind == "i" and direction == "right"
        kind = "%s%d" % ("" if direction == "left" else dtype.kind, bits)
        if dtype.kind == "u" and dtype.bytes < 4:
            kind = "narrow"
        return "(%s)af_shift_%s_%s((%sint%d_t){0}, %s)" % (dtype.host, direction, kind, "" if signed else "u",
                                                           bits, clamped)
    return host.each(host.INTEGERS, text)


def _shifts(name, function, instruction, direction):
    """By a tensor (no such instruction on the vector unit) and by the attribute amount, 0 .. bits - 1."""
    lacks = {d: "shift amounts are one constant for all elements" for d in INTEGER_WORDS if d.bytes < 8}
    text = "AscendC::%s({dst}, {0}, ({T}){attr_amount}, {n});" % instruction
    return (AscOp(name, 2, "same", {}, lambda i, a, d: function(i[0], _clamped(*i)), lacks=lacks,
                  note="the amount is clamped to 0 .. bits - 1", host=_host_shift(direction, "(%s){1}")),
            AscOp(name + "By", 1, "same", for_dtypes((INT32, INT16, UINT32, UINT16), {"tensor": text}),
                  lambda i, a, d: function(i[0], d.numpy(a["amount"])), in_place=True, cost=(("Muls", 1),),
                  host=_host_shift(direction, "(%s){attr_amount}")))


def _bitwise(name, arity, function, expression, tmp_bytes=lambda item, count: 32):
    """32: the helpers that need no scratch take one all the same, as all helpers do."""
    return AscOp(name, arity, "same", for_dtypes(INTEGER_WORDS, helper(name, arity)),
                 lambda i, a, d: function(*i), tmp_bytes=tmp_bytes, header="bitwise.h", in_place=True,
                 cost=(("And", 2),), commutative=arity == 2,
                 host=host.each(host.INTEGERS, lambda d: "(%s)%s" % (d.host, expression)))


ROWS = (
    _bitwise("BitwiseAnd", 2, np.bitwise_and, "({0} & {1})"),
    _bitwise("BitwiseOr", 2, np.bitwise_or, "({0} | {1})"),
    _bitwise("BitwiseXor", 2, np.bitwise_xor, "({0} ^ {1})", whole_words),
    _bitwise("BitwiseNot", 1, np.bitwise_not, "~{0}"),
) + _shifts("LeftShift", _left, "ShiftLeft", "left") + _shifts("RightShift", np.right_shift, "ShiftRight",
                                                            "right")
