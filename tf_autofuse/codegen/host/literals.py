"""Constants as C expressions that mean exactly the same value, and the C types of elements.

Finite floats are written in hexadecimal; infinities and NaNs, which C has no literals for, by gcc's builtins.
16-bit floats are their bits, as everywhere in host code.
"""
import math

import numpy as np

from tf_autofuse.ir.dtypes import BFLOAT16, BOOL, DType, FLOAT16, FLOAT32, FLOAT64
from tf_autofuse.ops.ascir_cast import bfloat16_bits


def value_type(dtype: DType) -> str:
    """The C type of a local that holds one element. In memory it is dtype.host."""
    return "_Bool" if dtype is BOOL else dtype.host


def literal(value, dtype: DType) -> str:
    """value: a Python or numpy number or bool (bfloat16: the number, not its bits)."""
    if dtype is BOOL:
        return "%d" % bool(value)
    if dtype in (FLOAT32, FLOAT64):
        return float_literal(float(dtype.numpy(value)), dtype)
    if dtype is FLOAT16:
        return "0x%04xu" % int(np.float16(value).view(np.uint16))
    if dtype is BFLOAT16:
        return "0x%04xu" % int(bfloat16_bits(np.array([value], np.float32))[0])
    number = int(value)
    low = -(2 ** (8 * dtype.bytes - 1))
    suffix = ("u" if dtype.kind == "u" else "") + ("ll" if dtype.bytes == 8 else "")
    # C has no negative literals: the smallest one would be the negation of a number that does not fit.
    text = "(%d%s - 1)" % (number + 1, suffix) if number == low and low < 0 else "%d%s" % (number, suffix)
    return "(%s)" % text if number < 0 else text


def float_literal(value: float, dtype: DType) -> str:
    suffix = "f" if dtype is FLOAT32 else ""
    if math.isnan(value):
        text = "__builtin_nan%s(\"\")" % suffix
        return "(-%s)" % text if math.copysign(1.0, value) < 0 else text
    if math.isinf(value):
        return "%s__builtin_inf%s()" % ("-" if value < 0 else "", suffix) if value > 0 else \
            "(-__builtin_inf%s())" % suffix
    if value == int(value) and abs(value) < 2 ** 24:
        text = "%s%d.0%s" % ("-" if math.copysign(1.0, value) < 0 else "", abs(int(value)), suffix)
    else:
        text = value.hex() + suffix
    return "(%s)" % text if text.startswith("-") else text
