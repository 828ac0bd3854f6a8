"""Constants as C++ literals that mean exactly the same value, on every compiler.

Infinities and NaNs have no literal: they are made from their bits by `FromBits`, which the device source
defines where `needs_from_bits` says so. Finite floats are written with the fewest digits that read back to
the same value.
"""

import math
import struct

import numpy as np

from tf_autofuse.ir.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, DType

FROM_BITS = """\
template <typename T, typename Bits>
__aicore__ inline T FromBits(Bits bits) {
  union {
    Bits bits;
    T value;
  } both;
  both.bits = bits;
  return both.value;
}
"""


def literal(value, dtype: DType) -> str:
    """A C++ expression of the device type of `dtype`. value: a Python or numpy number or bool (bfloat16: the
    number, not its bits). Raises ValueError for a number that the dtype cannot represent."""
    if dtype is BOOL:
        return "static_cast<uint8_t>(%d)" % bool(value)
    if dtype is FLOAT32:
        return _float32(value)
    if dtype is FLOAT64:
        return _float64(value)
    if dtype in (FLOAT16, BFLOAT16):
        _check_16_bit(value, dtype)
        return "static_cast<%s>(%s)" % (dtype.device, _float32(value))
    return _integer(value, dtype)


def needs_from_bits(value, dtype: DType) -> bool:
    return dtype.is_floating and not math.isfinite(float(value))


def _float32(value) -> str:
    exact = np.float32(value)
    if not np.isfinite(exact):
        if math.isfinite(float(value)):
            raise ValueError("%r is out of the range of float32" % (value,))
        return "FromBits<float>(0x%08xu)" % exact.view(np.uint32)
    text = repr(float(str(exact)))
    return (text if "." in text or "e" in text else text + ".0") + "f"


def _float64(value) -> str:
    exact = float(value)
    if not math.isfinite(exact):
        return "FromBits<double>(0x%016xull)" % struct.unpack("<Q", struct.pack("<d", exact))[0]
    return repr(exact)


def _check_16_bit(value, dtype: DType) -> None:
    number = float(value)
    if not math.isfinite(number):
        return
    if dtype is FLOAT16:
        represented = float(np.float16(number))
    else:
        represented = float((np.float32(number).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32))
    if represented != number:
        raise ValueError("%r is no %s value" % (value, dtype.name))


def _integer(value, dtype: DType) -> str:
    number = int(value)
    bits = 8 * dtype.bytes
    low, high = (0, 2**bits - 1) if dtype.kind == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if number != value or not low <= number <= high:
        raise ValueError("%r is no %s value" % (value, dtype.name))
    suffix = {"i": "", "u": "u"}[dtype.kind] + ("ll" if dtype.bytes == 8 else "")
    # C++ has no negative literals: the smallest one would be the negation of a number that does not fit.
    text = "(%d%s - 1)" % (number + 1, suffix) if number == low and low < 0 else "%d%s" % (number, suffix)
    return text if dtype.bytes >= 4 else "static_cast<%s>(%s)" % (dtype.device, text)
