"""The shape function of a kernel: from the inputs' run-time dims to symbols and output dims, or a refusal.

What it checks is everything that the kernel takes for granted about its inputs: static dims, dims that share
a symbol, dims that are expressions, broadcasts, the region's guards, and that no output has more elements
than 2^62. A shape that passes is computed right by every kernel variant whose conditions hold; one that fails
goes to the fallback.
"""

import itertools
from typing import List, NamedTuple, Tuple

from tf_autofuse.ir.asc_graph import FusedGraph
from tf_autofuse.symbolic.guards import Guard, InputDim
from tf_autofuse.symbolic.size import Size, SizeExpr, is_static, to_cpp, to_text


class Definition(NamedTuple):
    """`const int64_t symbol = value;` and what it is."""

    symbol: str
    value: str
    comment: str


class Check(NamedTuple):
    """number: what autofuse_shape returns where `condition` is false. text: the condition for people. why:
    what needs it, or ''."""

    number: int
    condition: str
    text: str
    why: str


class ShapeFunction(NamedTuple):
    definitions: Tuple[Definition, ...]
    checks: Tuple[Check, ...]
    out_dims: Tuple[str, ...]
    sizes: Tuple[str, ...]


def shape_function(fused: FusedGraph) -> ShapeFunction:
    starts = input_starts(fused)
    definitions, defining = [], set()
    for v in fused.sizes:
        if isinstance(v.source, InputDim):
            defining.add((v.source, v.name))
            definitions.append(
                Definition(
                    v.name,
                    "in_dims[%d]" % (starts[v.source.input] + v.source.dim),
                    "dim %d of input %d" % (v.source.dim, v.source.input),
                )
            )
        else:
            definitions.append(Definition(v.name, to_cpp(v.source), to_text(v.source)))

    checks: List[Check] = []

    def check(condition: str, text: str, why: str = "") -> None:
        if all(c.condition != condition for c in checks):
            checks.append(Check(len(checks) + 1, condition, text, why))

    for i, tensor in enumerate(fused.inputs):
        for d, size in enumerate(tensor.dims):
            if (InputDim(i, d), to_text(size)) not in defining:
                check(
                    "in_dims[%d] == %s" % (starts[i] + d, to_cpp(size)),
                    "dim %d of input %d is %s" % (d, i, to_text(size)),
                )
    for guard in implied_broadcasts(fused) + fused.guards:
        if guard.decided() is not True:
            check(guard_condition(guard), repr(guard), guard.why)
    out_dims = []
    for o, tensor in enumerate(fused.outputs):
        dims = [to_cpp(s) for s in tensor.dims]
        out_dims.extend(dims)
        for d, size in enumerate(tensor.dims):
            if not is_static(size) and not size.expr.is_nonnegative:
                check("%s >= 0" % dims[d], "dim %d of output %d, %s, is not negative" % (d, o, to_text(size)))
        if any(not is_static(s) for s in tensor.dims):
            count = "1"
            for text in dims:
                count = "ElementsTimes(%s, %s)" % (count, text)
            check("%s <= kMostElements" % count, "output %d has at most 2^62 elements" % o)
    return ShapeFunction(
        tuple(definitions), tuple(checks), tuple(out_dims), tuple(v.name for v in fused.sizes)
    )


def input_starts(fused: FusedGraph) -> Tuple[int, ...]:
    """Where each input's dims begin in in_dims."""
    starts, position = [], 0
    for tensor in fused.inputs:
        starts.append(position)
        position += len(tensor.dims)
    return tuple(starts)


def guard_condition(guard: Guard) -> str:
    """The guard as a C++ condition."""
    left, right = to_cpp(guard.left), to_cpp(guard.right)
    if guard.kind == "eq":
        return "%s == %s" % (left, right)
    if guard.kind == "broadcast":
        return "Broadcasts(%s, %s)" % (left, right)
    raise ValueError("a guard of unknown kind: %s" % guard.kind)


def implied_broadcasts(fused: FusedGraph) -> Tuple[Guard, ...]:
    """The guards without which a broadcast_size in a symbol or a dim would be no broadcast."""
    sizes: List[Size] = [v.source for v in fused.sizes if not isinstance(v.source, InputDim)]
    for tensor in fused.inputs + fused.outputs:
        sizes.extend(tensor.dims)
    found = []
    for size in sizes:
        if is_static(size):
            continue
        calls = size.expr.find(lambda e: type(e).__name__ == "broadcast_size")
        for call in sorted(calls, key=str):
            dims = [int(a) if a.is_Integer else SizeExpr(a) for a in call.args]
            found.extend(Guard("broadcast", left, right) for left, right in itertools.combinations(dims, 2))
    return tuple(dict.fromkeys(found))
