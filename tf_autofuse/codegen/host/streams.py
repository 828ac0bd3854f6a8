"""Stores around the caches, for a launch that moves more than the last of them holds.

What such a loop stores goes through a small array in the first cache, hK for value K, BLOCK elements at a
time; npu_kernels/host/stream.h takes it to memory. Whether it does, `stream` says at run time: oK is that
array or the tensor itself. A tensor that is also read (an output in the place of an input) is stored as
usual: its cache lines are there.
"""
from typing import Callable, List, Sequence

from tf_autofuse.codegen.host.lines import Lines
from tf_autofuse.schedule.host_graph import Value
from tf_autofuse.schedule.host_program import PlannedNest
from tf_autofuse.symbolic.size import product, to_cpp

#: Elements that are stored at a time.
BLOCK = 512


def condition(planned: PlannedNest, bases: Sequence[str], stored: Sequence[str]) -> str:
    """Whether the nest streams. bases, stored: first elements of what it reads and what it would stream."""
    pairs = ["(const void*)%s != (const void*)%s" % (a, b) for b in stored for a in bases]
    return " && ".join(["t->stream%d" % planned.number] + pairs)


def planning(planned: PlannedNest) -> List[str]:
    """Statements of the tiling function that set stream<number>."""
    nest = planned.nest
    values = nest.graph.by_name()
    moved = {}
    for v in nest.graph.values:
        if v.access is not None:
            moved[v.access.tensor] = "%d * (double)%s" % (
                v.access.tensor.dtype.bytes, to_cpp(product(nest.graph.axes[a].size for a in v.pattern)))
    item = min(values[n].access.tensor.dtype.bytes for n in planned.streams)
    return ["t->stream%d = machine->ub_size > 0 && %s * %d >= kStreamedRow" % (
        planned.number, to_cpp(planned.width), item),
        "    && %s >= (double)machine->ub_size;" % " + ".join(sorted(moved.values()))]


def loop(out: Lines, stores: Sequence[Value], id_: Callable[[str, str], str], count: str,
         vector_loop: Callable[[str, str], None]) -> None:
    """The innermost loop over `count` elements with the Stores that may be streamed. id_(prefix, value): C
    names; vector_loop(m, j): prints the loop over m elements, of which j is the index in the tensors."""
    if not stores:
        vector_loop(count, "j")
        return
    whole = count.isdigit() and int(count) <= BLOCK
    m, behind = (count, "") if whole else ("m", " + s")
    if not whole:
        out.add("const int64_t step = stream ? %d : %s;" % (BLOCK, count))
        out.open("for (int64_t s = 0; s < %s; s += step)" % count)
        out.add("const int64_t m = Min(step, %s - s);" % count)
    for v in stores:
        type_, array = v.access.tensor.dtype.host, id_("h", v.name)
        out.add("%s %s[%d] __attribute__((aligned(64)));" % (type_, array, BLOCK))
        out.add("%s* const %s = stream ? %s : %s%s;" % (
            type_, id_("o", v.name), array, id_("p", v.name), behind))
    vector_loop(m, "j" if whole else "(s + j)")
    out.open("if (stream)")
    for v in stores:
        words = v.access.tensor.dtype.bytes // 4
        out.add("af_stream_items(%s%s, %s, %s);" % (
            id_("p", v.name), behind, id_("h", v.name), m if words == 1 else "%s * %d" % (m, words)))
    out.close(1 if whole else 2)
