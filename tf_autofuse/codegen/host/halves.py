"""float16 tensors in innermost loops: converted block by block, by one instruction for eight elements.

The vectorizer knows no conversion of 16-bit floats, so what a loop loads only to widen it, and what it rounds
only to store it, is staged: a block of BLOCK elements goes through an array of float32, hK for value K, by
the functions of npu_kernels/host/blocks.h. What is rounded to float16 and widened again within the loop is
rounded as a float32.
"""
from typing import Dict, NamedTuple, Sequence

from tf_autofuse.ir.dtypes import FLOAT16, FLOAT32
from tf_autofuse.schedule.host_graph import Value
from tf_autofuse.symbolic.size import known_equal

#: Elements that are staged at a time; a multiple of every number of lanes.
BLOCK = 512
#: Ops that give one of their operands or its opposite: of float16's values one of them (a NaN stays quiet).
_CHOOSING = frozenset(("Abs", "Neg", "Relu", "Maximum", "Minimum"))


class Staging(NamedTuple):
    """loads: Load -> nothing is computed for it; casts: Cast of such a Load -> the Load; stores: Store -> the
    value that it rounds; rounds: Cast to float32 of a Cast to float16 -> what that rounds; copies: those of
    them that round nothing; dropped: the Casts to float16 that only such Stores and Casts read."""

    casts: Dict[str, str]
    stores: Dict[str, str]
    rounds: Dict[str, str]
    copies: frozenset
    dropped: frozenset

    @property
    def loads(self) -> frozenset:
        return frozenset(self.casts.values())

    @property
    def needed(self) -> bool:
        return bool(self.casts or self.stores)


def staging(values: Dict[str, Value], inner: Sequence[str], vector: int, kept: Sequence[str]) -> Staging:
    """inner: the values of one innermost loop over the axis `vector`; kept: those that something outside of
    it reads."""
    readers: Dict[str, list] = {n: [] for n in inner}
    for n in inner:
        for i in values[n].inputs:
            if i in readers:
                readers[i].append(values[n])
    casts: Dict[str, str] = {}
    stores: Dict[str, str] = {}
    rounds: Dict[str, str] = {}
    dropped = set()
    for n in inner:
        v = values[n]
        if v.dtype is not FLOAT16 or v.access is None or not known_equal(v.access.strides[vector], 1):
            continue
        if v.type == "Load" and n not in kept and readers[n] and all(
                r.type == "Cast" and r.dtype is FLOAT32 for r in readers[n]):
            casts.update((r.name, n) for r in readers[n])
        if v.type == "Store":
            rounded = values[v.inputs[0]]
            if rounded.name in readers and _rounds(rounded) and rounded.name not in kept:
                stores[n] = rounded.inputs[0]
    for n in inner:
        v = values[n]
        if not (_rounds(v) and readers[n] and n not in kept):
            continue
        widened = [r for r in readers[n] if r.type == "Cast" and r.dtype is FLOAT32]
        if all(r in widened or r.name in stores for r in readers[n]):
            dropped.add(n)
            rounds.update((r.name, v.inputs[0]) for r in widened)
        else:
            for r in readers[n]:
                stores.pop(r.name, None)
    return Staging(casts, stores, rounds, _copies(values, inner, casts, rounds), frozenset(dropped))


def _copies(values: Dict[str, Value], inner: Sequence[str], casts: Dict[str, str],
            rounds: Dict[str, str]) -> frozenset:
    """The `rounds` of values that are float16's."""
    exact, found = set(casts), set()
    for n in inner:
        if n in rounds:
            exact.add(n)
            if rounds[n] in exact:
                found.add(n)
        elif values[n].type in _CHOOSING and all(i in exact for i in values[n].inputs):
            exact.add(n)
    return frozenset(found)


def _rounds(v: Value) -> bool:
    return v.type == "Cast" and v.dtype is FLOAT16 and v.operand is FLOAT32
