"""The last elements of a row where a Reduce accumulates into lanes: one pass over all lanes, of which those
behind the row's end load zeros, store nothing and leave their accumulators alone.

The compiler makes masked loads and stores of that (AVX2 and AVX-512 have them for elements of 4 bytes), so a
row of 50 costs as much as one of 64, where a loop over what is left would go element by element. Without AVX2
the pass ends at the row's end. npu_kernels/host/lanes.h holds what depends on the processor.
"""
from typing import Dict, Sequence

from tf_autofuse.ir.dtypes import BOOL
from tf_autofuse.schedule.host_graph import Value
from tf_autofuse.schedule.host_program import LANE_BYTES, NARROWEST
from tf_autofuse.symbolic.size import is_static, known_equal

#: Bytes of the accumulators of a short row at least.
LEAST_BYTES = 32
#: Ops whose loops the compiler does not vectorize, or whose accumulators are wider.
_OTHERS = ("Mod", "FloorMod", "TruncateMod", "ArgMax", "ArgMin")


def masked(values: Dict[str, Value], inner: Sequence[str], vector: int) -> bool:
    """Whether the values of an innermost loop over the axis `vector` can be computed for lanes behind its
    end."""
    for n in inner:
        v = values[n]
        if v.type in _OTHERS or v.dtype.bytes != 4 and (v.dtype is not BOOL or v.access is not None):
            return False
        if v.access is not None and not any(known_equal(v.access.strides[vector], s) for s in (0, 1)):
            return False
        if v.type == "Gather" and vector in values[v.inputs[0]].pattern:
            return False
    return True


def lane_count(size, item_bytes: int, masks: bool) -> int:
    """Accumulators for rows of `size` elements of item_bytes: a power of two, for a short row the largest
    that leaves few lanes idle in the last pass; where there are no masks, no more than the row fills."""
    most = LANE_BYTES // max(item_bytes, NARROWEST)
    if not is_static(size):
        return most
    least = LEAST_BYTES // item_bytes if masks else 1
    choices = [most >> i for i in range(8) if most >> i >= least]
    if not masks:
        return next((n for n in choices if n <= size), 1)
    padded = [-(-size // n) * n for n in choices]
    lanes = next(n for n, p in zip(choices, padded) if p * 5 <= min(padded) * 6)
    while lanes // 2 >= max(size, 1):
        lanes //= 2
    return lanes
