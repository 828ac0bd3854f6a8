"""AscIR Cast: every pair of element types, with TF's values on x86 where the target cannot hold the source.

Float to int32/int64: truncation; out of range and NaN give the smallest integer (what cvttss2si returns). Narrower
integers take the low bits of the int32 result, uint32 those of the int64 result; uint64 converts x - 2^63 as int64
and flips the top bit from 2^63 on. Integer to integer keeps the low bits. Anything to bool: x != 0.
"""
import numpy as np

from tf_autofuse.ir.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, INT16, INT32, INT64, UINT32, UINT64
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


def _truncate(x, integer):
    """Truncation to int32 or int64 as x86's cvtt instructions do it."""
    low = float(np.iinfo(integer).min)
    fits = (x >= low) & (x < -low)
    inside = np.where(fits, x, x.dtype.type(0)).astype(integer)
    return np.where(fits, inside, np.iinfo(integer).min)


def _float_to_integer(x, target):
    x = x.astype(np.float64)
    if target is UINT64:
        top = x >= 2.0 ** 63
        low_half = _truncate(np.where(top, x - 2.0 ** 63, x), np.int64)
        return np.where(top, low_half ^ np.iinfo(np.int64).min, low_half).astype(np.uint64)
    return _truncate(x, np.int64 if target in (INT64, UINT32) else np.int32).astype(target.numpy)


def cast_array(x, source, target):
    """The meaning of Cast on a numpy array of dtype `source` (bfloat16 as bits): an array of dtype `target`."""
    if source is target:
        return x
    if source is BFLOAT16:
        return cast_array(bfloat16_values(x), FLOAT32, target)
    if target is BFLOAT16:
        return bfloat16_bits(cast_array(x, source, FLOAT32))
    if source is FLOAT64 and target is FLOAT16:
        return x.astype(np.float32).astype(np.float16)  # TF rounds twice here
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
