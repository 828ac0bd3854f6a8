"""Values where ops go wrong, per dtype, as storage arrays."""
import numpy as np

from tf_autofuse.ir.dtypes import BFLOAT16, DType, FLOAT32
from tf_autofuse.ops.ascir_cast import cast_array

FLOATS = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 0.3, -0.3,
          0.49999997, 3.0, -3.0, 6.0, 7.0, -7.0, 88.8, -104.0, 9.2, 18.1, -18.1, 1e10, -1e10, 8388607.5,
          8388609.0, 3.4e38, -3.4e38, 1.2e-38, -1.2e-38, 1e-30, 1e-45, -1e-45, 3e-39, 65504.0, 6e-8)
INTEGERS = (0, 1, 2, 3, 5, 7, 10, 31, 32, 33, 63, 64, 100, 127, 128, 255, 46341, 65535, 2**24 + 1, 2**31 - 2)


def special(dtype: DType) -> np.ndarray:
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.is_integer:
        info = np.iinfo(dtype.numpy)
        values = {info.min, info.min + 1, info.max, info.max - 1}
        values |= {s * v for v in INTEGERS for s in (1, -1)}
        return np.array(sorted(v for v in values if info.min <= v <= info.max), dtype.numpy)
    with np.errstate(over="ignore"):
        if dtype is BFLOAT16:
            return cast_array(np.array(FLOATS, np.float32), FLOAT32, BFLOAT16)
        return np.array(FLOATS).astype(dtype.numpy)


def random(dtype: DType, count: int, seed: int) -> np.ndarray:
    """Integers over their whole range, floats over many exponents and both signs."""
    generator = np.random.RandomState(seed)
    if dtype.kind == "b":
        return generator.rand(count) < 0.5
    if dtype.is_integer:
        return generator.randint(0, 256, count * dtype.bytes).astype(np.uint8).view(dtype.numpy)
    wide = generator.randn(count) * np.exp2(generator.uniform(-12, 10, count))
    if dtype is BFLOAT16:
        return cast_array(wide.astype(np.float32), FLOAT32, BFLOAT16)
    return wide.astype(dtype.numpy)
