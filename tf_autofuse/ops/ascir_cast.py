"""AscIR Cast: every pair of element types, with TF's values on x86 where the target cannot hold the source.

Float to int32/int64: truncation; out of range and NaN give the smallest integer (what cvttss2si returns). Narrower
integers take the low bits of the int32 result. Integer to integer keeps the low bits. Anything to bool: x != 0.
"""
import numpy as np

from tf_autofuse.ir.dtypes import BFLOAT16, FLOAT16, FLOAT32, INT16, INT32, INT64
from tf_autofuse.ops.schema import AscOp


def bfloat16_bits(x):
    """float32 array -> bfloat16 bits (uint16), rounded half to even; NaN becomes the quiet NaN 0x7fc0 or 0xffc0."""
    bits = x.astype(np.float32).view(np.uint32)
    rounded = ((bits.astype(np.uint64) + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    quiet = ((bits >> 16) & 0x8000).astype(np.uint16) | np.uint16(0x7FC0)
    return np.where(np.isnan(x), quiet, rounded)


def bfloat16_values(bits):
    """bfloat16 bits (uint16) -> float32 array."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def _float_to_integer(x, target):
    wide = np.int64 if target.bytes == 8 or target is INT64 else np.int32
    low, high = float(np.iinfo(wide).min), -float(np.iinfo(wide).min)
    fits = (x >= low) & (x < high)
    inside = np.where(fits, x, x.dtype.type(0)).astype(wide)
    return np.where(fits, inside, np.iinfo(wide).min).astype(target.numpy)


def cast_array(x, source, target):
    """The meaning of Cast on a numpy array of dtype `source` (bfloat16 as bits): an array of dtype `target`."""
    if source is target:
        return x
    if source is BFLOAT16:
        return cast_array(bfloat16_values(x), FLOAT32, target)
    if target is BFLOAT16:
        return bfloat16_bits(cast_array(x, source, FLOAT32))
    if target.kind == "b":
        return x != 0
    if source.kind == "f" and target.is_integer:
        return _float_to_integer(x, target)
    return x.astype(target.numpy)


def _evaluate(inputs, attrs, dtype):
    return cast_array(inputs[0], attrs["source"], dtype)


def _native(mode):
    return {"tensor": "AscendC::Cast({dst}, {0}, AscendC::RoundMode::%s, {n});" % mode}


ROWS = (
    AscOp("Cast", 1, "attr", {
        (FLOAT32, FLOAT16): _native("CAST_RINT"),
        (FLOAT16, FLOAT32): _native("CAST_NONE"),
        (FLOAT32, BFLOAT16): _native("CAST_RINT"),
        (BFLOAT16, FLOAT32): _native("CAST_NONE"),
        (INT32, FLOAT32): _native("CAST_RINT"),
        (INT16, FLOAT32): _native("CAST_NONE"),
        (INT32, INT64): _native("CAST_NONE"),
    }, _evaluate, cost=(("Cast", 1),)),
)
