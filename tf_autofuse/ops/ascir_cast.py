"""AscIR Cast: every pair of element types, with TF's values on x86 where the target cannot hold the source.

Float to int32/int64: truncation; out of range and NaN give the smallest integer (what cvttss2si returns).
Narrower integers take the low bits of the int32 result, uint32 those of the int64 result; uint64 converts x -
2^63 as int64 and flips the top bit from 2^63 on. Integer to integer keeps the low bits. Anything to bool: x
!= 0.
"""
import numpy as np

from tf_autofuse.ir.dtypes import (ALL_DTYPES, BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT16, INT32, INT64,
                                   INT8, UINT32, UINT64, UINT8)
from tf_autofuse.ops.forms import scratch
from tf_autofuse.ops import host_forms as host
from tf_autofuse.ops.schema import AscOp


def bfloat16_bits(x):
    """float32 array -> bfloat16 bits (uint16), rounded half to even; NaN becomes the quiet NaN 0x7fc0 or
    0xffc0.
    """
    x = np.asarray(x, np.float32)
    bits = x.view(np.uint32).astype(np.uint64)
    one, half, high = np.uint64(1), np.uint64(0x7FFF), np.uint64(16)
    rounded = (bits + half + ((bits >> high) & one)) >> high
    quiet = ((bits >> high) & np.uint64(0x8000)) | np.uint64(0x7FC0)
    return np.where(np.isnan(x), quiet, rounded).astype(np.uint16)


def bfloat16_values(bits):
    """bfloat16 bits (uint16) -> float32 array."""
    return (np.asarray(bits).astype(np.uint32) << np.uint32(16)).view(np.float32)


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
    """The meaning of Cast on a numpy array of dtype `source` (bfloat16 as bits): an array of dtype
    `target`.
    """
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


def _forms():
    """Every pair that the device helpers of cast.h have; the ones that are one instruction are written as
    such.
    """
    native = {(FLOAT32, FLOAT16): "CAST_RINT", (FLOAT16, FLOAT32): "CAST_NONE",
              (FLOAT32, BFLOAT16): "CAST_RINT",
              (BFLOAT16, FLOAT32): "CAST_NONE", (INT32, FLOAT32): "CAST_RINT", (INT16, FLOAT32): "CAST_NONE",
              (INT64, FLOAT32): "CAST_RINT", (INT32, INT64): "CAST_NONE", (INT16, FLOAT16): "CAST_RINT",
              (INT8, FLOAT16): "CAST_NONE", (UINT8, FLOAT16): "CAST_NONE", (BOOL, FLOAT16): "CAST_NONE"}
    forms = {}
    for source in _CONVERTIBLE:
        for target in _CONVERTIBLE:
            if source is target:
                continue
            if (source, target) in native:
                text = "AscendC::Cast({dst}, {0}, AscendC::RoundMode::%s, {n});" % native[source, target]
            elif target is BOOL:
                text = "autofuse::CastToBool<%s>({dst}, {0}, {tmp}, {n});" % source.device
            else:
                text = "autofuse::CastTo<%s, %s>({dst}, {0}, {tmp}, {n});" % (target.device, source.device)
            forms[source, target] = {"tensor": text}
    return forms


_CONVERTIBLE = (FLOAT32, FLOAT16, BFLOAT16, INT8, UINT8, INT16, INT32, INT64, BOOL)

ROWS = (
    # CastEighths is at most 210, so that whatever the pair, 8 KiB are enough.
    AscOp("Cast", 1, "attr", _forms(), _evaluate, tmp_bytes=scratch(256), header="cast.h",
          cost=(("Cast", 1),),
          host={(s, t): host.cast(s, t) for s in ALL_DTYPES for t in ALL_DTYPES if s is not t}),
)
