"""Cast, all 156 pairs, bit for bit against TF: in a vector and element by element."""
import numpy as np
import pytest

from tests.ops.tf_oracle import TfOpRunner, on_pool_thread, tf, tf_type
from tf_autofuse.ir.dtypes import ALL_DTYPES, BFLOAT16, FLOAT16, FLOAT32, FLOAT64
from tf_autofuse.ops.ascir_cast import cast_array
from tf_autofuse.ops.numpy_handler import evaluate_op

tf.compat.v1.disable_eager_execution()

PAIRS = [(s, t) for s in ALL_DTYPES for t in ALL_DTYPES if s is not t]
FLOATS = (np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1, -1, .5, -.5, .99, -.99, 1.5, 2.5, -1.5, 127, 127.5,
          128, -128,
          -128.9, -129, 255, 255.9, 256, 257, -255, 300, 32767, 32767.9, 32768, -32768, -32769, 65535, 65536,
          -65536,
          70000, 2147483520, 2147483647, 2147483648, -2147483648, -2147483649, -2147483904, 4294967040,
          4294967295,
          4294967296, -4294967296, 5e9, -5e9, 9.2e18, 2.0 ** 63, -2.0 ** 63, 1.2e19, 1.8446742974197924e19,
          1.85e19,
          -1e19, 1e-10, 3.4e38, -3.4e38, 65504, 65519, 65519.999999, 65520, 1e-7, 6e-8, 3e-8, 2.98e-8, 1
          + 2 ** -11,
          1 + 2 ** -11 + 2 ** -30, 1 + 2 ** -10 + 2 ** -11, 1 + 2 ** -8, 1 + 2 ** -7 + 2 ** -8, 1 + 2 ** -8
          + 2 ** -40,
          1 + 2 ** -24, 2049, 2051, 1e300, -1e300)
INTEGERS = (0, 1, 2, 3, 127, 128, 129, 255, 256, 257, 771, 2049, 2051, 32767, 32768, 32769, 65504, 65519,
            65520, 65535,
            65536, 2 ** 24 - 1, 2 ** 24 + 1, 2 ** 24 + 3, 2 ** 31 - 1, 2 ** 31, 2 ** 31 + 1, 2 ** 32 - 1,
            2 ** 32,
            2 ** 53 + 1, 2 ** 53 + 3, 2 ** 62 + 1, 2 ** 63 - 1, 2 ** 63, 2 ** 64 - 1)


def source_values(dtype):
    if dtype.kind == "b":
        return np.array([False, True] * 8)
    if dtype.is_integer:
        info = np.iinfo(dtype.numpy)
        values = {s * v for v in INTEGERS for s in (1, -1)} | {info.min, info.max}
        return np.array(sorted(v for v in values if info.min <= v <= info.max), dtype.numpy)
    with np.errstate(over="ignore"):
        wide = np.array(FLOATS, np.float64)
        return cast_array(wide.astype(np.float32), FLOAT32, dtype) if dtype in (BFLOAT16, FLOAT16) \
            else wide.astype(dtype.numpy)


def one_nan(array, dtype):
    bits = np.ascontiguousarray(array).view("u%d" % array.dtype.itemsize).copy()
    if dtype.is_floating:
        bits[np.isnan(cast_array(array, dtype, FLOAT64))] = np.iinfo(bits.dtype).max
    return bits


@pytest.mark.parametrize("pair", PAIRS, ids=lambda p: "%s-%s" % p)
def test_cast_is_tensorflows(pair):
    source, target = pair
    values = source_values(source)
    values = np.concatenate([values, values[:(7 - len(values)) % 8]])  # seven elements beyond whole vectors
    cast = TfOpRunner("Cast", (source,), {"DstT": tf_type(target)}, {})
    ours = one_nan(on_pool_thread(lambda: evaluate_op("Cast", [values], (source,), target)), target)
    for theirs in (cast(values), cast.element_by_element(values)):
        wrong = np.flatnonzero(one_nan(theirs, target) != ours)
        assert not len(wrong), [(values[i], theirs[i], ours[i]) for i in wrong[:4]]
