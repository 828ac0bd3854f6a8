"""Chains of dear functions in an innermost loop, cut into several loops over a block of elements.

A core keeps the results of some 160 vector operations that are under way. Two functions of 20 operations one
behind the other fill that with so few elements that it waits for their results; the two in loops of their own
have several times as many under way. So a value's stage is how many dear ops lie before it. A stage is a
loop, stages follow each other block by block, and what a later one reads goes through an array of the block,
which stays in the first cache. What is loaded is loaded again; what is computed from loads alone is computed
where it is needed first; stores come last, so that an output which is an input's buffer is written when
nothing of the block is to be read any more.
"""
from typing import Callable, Dict, List, NamedTuple, Sequence, Set, Tuple

from tf_autofuse.ops import host_forms
from tf_autofuse.ops.table import ASC_OPS
from tf_autofuse.schedule.host_graph import Value

#: Where the functions are; what else there is takes an instruction or a few.
_HEADERS = frozenset(("exp.h", "log.h", "trig.h", "erf.h", "pow.h"))
#: Arrays of a block, at most: they and the tensors' pieces are to stay in the first cache.
MOST_CARRIED = 6


class Stages(NamedTuple):
    """loops: names of each stage's values, in order; carried: those that a later stage reads."""

    loops: Tuple[Tuple[str, ...], ...]
    carried: frozenset


def stages(values: Dict[str, Value], inner: Sequence[str], inputs: Callable[[str], Sequence[str]]) -> Stages:
    """inner: the values of one loop without reductions; inputs: those of them that a value's statement
    reads. One stage where cutting is of no use."""
    whole = Stages((tuple(inner),), frozenset())
    depth: Dict[str, int] = {}
    for n in inner:
        depth[n] = max([depth[i] for i in inputs(n)] + [0]) + _is_dear(values[n])
    last = max(depth.values(), default=0) - 1
    if last < 1:
        return whole
    stage = {n: last if values[n].type == "Store" else max(d - 1, 0) for n, d in depth.items()}
    readers: Dict[str, List[str]] = {n: [] for n in inner}
    for n in inner:
        for i in inputs(n):
            readers[i].append(n)
    for n in reversed(inner):
        if depth[n] == 0 and readers[n]:
            stage[n] = min(stage[r] for r in readers[n])
    loaded = {n for n in inner if not inputs(n) and values[n].type != "Gather"}
    members: List[Set[str]] = [{n for n in inner if stage[n] == k} for k in range(last + 1)]
    for names in members:
        names.update([i for n in names for i in inputs(n) if i in loaded])
    carried = frozenset(n for n in inner if n not in loaded and any(stage[r] > stage[n] for r in readers[n]))
    if len(carried) > MOST_CARRIED:
        return whole
    return Stages(tuple(tuple(n for n in inner if n in names) for names in members), carried)


def _is_dear(v: Value) -> bool:
    row = ASC_OPS.get(v.type)
    text = row.host.get(v.dtype) if row is not None and row.host else None
    return text is not None and not _HEADERS.isdisjoint(host_forms.headers(text))
