"""Small pieces that lowerings of TF ops are put together from.

All of them are written against OpHandler only, so every handler (loop IR, numpy, support matrix) can run
them.
"""
import numpy as np

from tf_autofuse.ir.dtypes import (ALL_DTYPES, BFLOAT16, BOOL, DType, FLOAT16, FLOAT32, FLOAT64, INT16, INT32,
                                   INT64, INT8, UINT16, UINT32, UINT64, UINT8)
from tf_autofuse.ops.schema import OpHandler, Refusal

HALVES = (FLOAT16, BFLOAT16)
REALS = (FLOAT32, FLOAT64, FLOAT16)          # what most of TF's float kernels are registered for
FLOATS = (FLOAT32, FLOAT64, FLOAT16, BFLOAT16)
SINGLE_DOUBLE = (FLOAT32, FLOAT64)
SIGNED = (INT8, INT16, INT32, INT64)
INTEGERS = SIGNED + (UINT8, UINT16)
WIDE_INTEGERS = (INT32, INT64)
ALL_INTEGERS = INTEGERS + (UINT32, UINT64)
COMMON = FLOATS + INTEGERS + (BOOL,)
EVERY_DTYPE = tuple(ALL_DTYPES)


def call(asc_type: str):
    """A lowering that is one AscIR call on the op's inputs."""
    def lower(h: OpHandler, node, *values):
        return h.call(asc_type, *values)
    return lower


def literal(h: OpHandler, value: float, like):
    """The constant `value`, rounded to the dtype that `like` is computed in."""
    dtype: DType = h.dtype_of(like)
    rounded = np.asarray(value).astype(dtype.numpy).item()
    return h.constant(rounded, dtype)


def scalar_constant(h: OpHandler, v):
    """The value of a constant of rank 0, else None: only such an operand adds nothing to the result's
    shape.
    """
    return h.known_value(v) if h.rank_of(v) == 0 else None


def zero_where_zero(h: OpHandler, tested, value):
    """tested == 0 ? 0 : value: the way TF's *NoNan and X* ops are guarded."""
    return h.call("Where", h.call("Eq", tested, literal(h, 0, tested)), literal(h, 0, value), value)


def require_same_shape(h: OpHandler, *values) -> None:
    """TF's check of ops that do not broadcast: all values have the first one's shape."""
    first = values[0]
    for v in values[1:]:
        if h.rank_of(v) != h.rank_of(first):
            raise Refusal("The inputs have different ranks (%d and %d) and the op does not broadcast."
                          % (h.rank_of(first), h.rank_of(v)))
        for i in range(h.rank_of(first)):
            h.require_equal_dim(first, i, v, i)


def elementwise_pair(lower):
    """A lowering of two inputs of one shape (TF's gradient ops do not broadcast)."""
    def checked(h: OpHandler, node, a, b):
        require_same_shape(h, a, b)
        return lower(h, a, b)
    return checked
