"""Which elements a FusedGraph reads and writes, for given values of its symbols: F5, and F2's "exactly once".

On entry the graphs hold G and H and their indexes exist; on exit every Load and Gather stays inside of its
tensor and the Stores of an output or workspace write each of its elements exactly once, or VerifyError says
which does not. A tensor may be written in parts: boxes of its elements that differ in offset. They are
compared as boxes, so that the check of a concat takes no longer for more elements.
"""
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from tf_autofuse.ir.asc_graph import AscNode, FusedGraph
from tf_autofuse.ir.verify_nodes import Checker
from tf_autofuse.symbolic.size import evaluate, product

#: Parts that are no boxes of one grid are counted element by element, up to this many.
_MOST_COUNTED = 1 << 24


class Part(NamedTuple):
    """What one Store writes: offset + sum of i * stride, i < extent, over dims (extent, stride) that are not
    1."""

    node: AscNode
    offset: int
    dims: Tuple[Tuple[int, int], ...]

    @property
    def count(self) -> int:
        return int(product(extent for extent, _ in self.dims))

    @property
    def last(self) -> int:
        return self.offset + sum((extent - 1) * stride for extent, stride in self.dims)


def _part(node: AscNode, values) -> Part:
    sizes = [(evaluate(r, values), evaluate(s, values)) for r, s in zip(node.y.repeats, node.y.strides)]
    return Part(node, evaluate(node.attr("offset", 0), values), tuple(d for d in sizes if d[0] != 1))


def check_accesses(check: Checker, fused: FusedGraph, values) -> None:
    """values: of all symbols, such that the guards hold. Raises VerifyError."""
    shown = ", ".join("%s = %d" % pair for pair in values.items()) or "static sizes"
    parts: Dict[Tuple[str, int], List[Part]] = {}
    for graph in fused.graphs:
        for sink in graph.of_type("Output", "Workspace"):
            for ref in sink.inputs:
                part = _part(graph.node(ref.node), values)
                parts.setdefault((sink.type, sink.attr("index")), []).append(part)
    counts = {}
    for (kind, index), stored in parts.items():
        if kind == "Output":
            count = int(evaluate(product(fused.outputs[index].dims), values))
        else:
            count = max(p.last + 1 if p.count else 0 for p in stored)
            counts["Workspace", index] = count
        whose = "the output's" if kind == "Output" else "the workspace's"
        _check_written_once(check, stored, count, whose, shown)
    for index, io in enumerate(fused.inputs):
        counts["Data", index] = int(evaluate(product(io.dims), values))
    for graph in fused.graphs:
        for node in graph.of_type("Load", "Gather"):
            source = graph.node(node.inputs[0].node)
            _check_read(check, node, counts[source.type, source.attr("index")], values, shown)


def _check_read(check: Checker, node: AscNode, count: int, values, shown: str) -> None:
    part = _part(node, values)
    if not part.count:
        return
    steps = [(extent - 1) * stride for extent, stride in part.dims]
    if node.type == "Gather":
        indexes = evaluate(node.attr("index_size"), values)
        if indexes == 0:  # no index is right, so nothing is read
            return
        steps.append((indexes - 1) * evaluate(node.attr("index_stride"), values))
    low, high = (part.offset + sum(pick(s, 0) for s in steps) for pick in (min, max))
    check.require(
        0 <= low and high < count,
        "F5",
        node,
        "reads elements %d..%d of a tensor of %d elements (%s)",
        low,
        high,
        count,
        shown,
    )


def _check_written_once(check: Checker, parts: Sequence[Part], count: int, whose: str, shown: str) -> None:
    wrong = first_wrong(parts, count)
    check.require(
        wrong is None,
        "F2" if len(parts) > 1 else "F5",
        wrong and wrong.node,
        "extents %s with strides %s at %d do not cover %s %d elements once (%s)",
        [e for e, _ in wrong.dims] if wrong else 0,
        [s for _, s in wrong.dims] if wrong else 0,
        wrong.offset if wrong else 0,
        whose,
        count,
        shown,
    )


def first_wrong(parts: Sequence[Part], count: int) -> Optional[Part]:
    """The first part that leaves the tensor or meets an earlier one (the last one where some elements are
    left out); None where the parts are the tensor."""
    parts = [p for p in parts if p.count] or list(parts)[:1]
    for part in parts:
        if part.count and not (0 <= part.offset and part.last < count and all(s > 0 for _, s in part.dims)):
            return part
    if sum(p.count for p in parts) != count:
        return parts[-1]
    if count == 0:
        return None
    boxes = _boxes(parts, count)
    if boxes is None:
        return _first_counted_wrong(parts, count)
    starts, ends = boxes
    for i in range(1, len(parts)):
        if np.any(np.all((starts[:i] < ends[i]) & (starts[i] < ends[:i]), axis=1)):
            return parts[i]
    return None


def _boxes(parts: Sequence[Part], count: int) -> Optional[Tuple[np.ndarray, np.ndarray]]:
    """The parts as boxes [start, end) of one grid whose dims are the strides that occur; None where they are
    none, so that a part could hit one element twice. Disjoint boxes that have `count` elements together are
    the grid."""
    strides = sorted({s for p in parts for _, s in p.dims} | {1}, reverse=True)
    for outer, inner in zip(strides, strides[1:]):
        if outer % inner:
            return None
    radix = [count // strides[0]] + [a // b for a, b in zip(strides, strides[1:])]
    if radix[0] * strides[0] != count:
        return None
    starts, ends = [], []
    for part in parts:
        extents = _digits(part, strides, radix)
        if extents is None:
            return None
        start, rest = [], part.offset
        for stride in strides:
            start.append(rest // stride)
            rest %= stride
        if any(a + e > r for a, e, r in zip(start, extents, radix)):
            return None
        starts.append(start)
        ends.append([a + e for a, e in zip(start, extents)])
    return np.array(starts, np.int64), np.array(ends, np.int64)


def _digits(part: Part, strides: Sequence[int], radix: Sequence[int]) -> Optional[List[int]]:
    """The part's extent along each dim of the grid: an extent that is longer than a dim goes on along the
    next outer one."""
    extents = [1] * len(strides)
    for extent, stride in part.dims:
        at = strides.index(stride)
        while extent > 1:
            if extents[at] != 1:
                return None
            here = extent if at == 0 or extent <= radix[at] else radix[at]
            if extent % here:
                return None
            extents[at], extent, at = here, extent // here, at - 1
    return extents


def _first_counted_wrong(parts: Sequence[Part], count: int) -> Optional[Part]:
    if count > _MOST_COUNTED:
        return parts[-1]
    seen = np.zeros(count, np.bool_)
    for part in parts:
        index = np.full((), part.offset, np.int64)
        for extent, stride in part.dims:
            index = index[..., None] + np.arange(extent, dtype=np.int64) * stride
        index = index.reshape(-1)
        if seen[index].any() or len(np.unique(index)) != len(index):
            return part
        seen[index] = True
    return None
