"""A Gather as calls of the helpers that read an index tensor in UB, with loops around them.

Every call tells whether all its indices were in range; the kernel function collects that in `failed`.
"""
from typing import List

from tf_autofuse.codegen.ascendc.expressions import Expressions
from tf_autofuse.codegen.ascendc.transfers import Call
from tf_autofuse.schedule.impl_graph import GatherPlan
from tf_autofuse.symbolic.size import Size, is_static

#: The variable that a kernel function with Gathers sets.
FAILED = "failed"


def gather(dst: str, gm: str, index: str, plan: GatherPlan, x: Expressions) -> Call:
    """The Gather of one tile from `gm` into `dst`."""
    opening: List[str] = []
    at = {"dst": [], "gm": [] if plan.gm_offset == 0 else [x.text(plan.gm_offset)], "index": []}
    for dim in plan.outer:
        name = "b%d" % len(opening)
        opening.append("%sfor (uint32_t %s = 0; %s < %s; ++%s) {" % (
            "  " * len(opening), name, name, x.count(dim.size), name))
        for what, stride in (("dst", dim.dst_stride), ("gm", dim.gm_stride), ("index", dim.index_stride)):
            if not (is_static(stride) and stride == 0):
                at[what].append("%s * %s" % (name, x.factor(stride)))

    def place(tensor: str, offsets: List[str]) -> str:
        return "%s[%s]" % (tensor, " + ".join(offsets)) if offsets else tensor

    def wide(size: Size) -> str:
        return x.text(size)

    places = "%s, %s, %s" % (place(dst, at["dst"]), place(gm, at["gm"]), place(index, at["index"]))
    if plan.kind == "rows":
        call = "autofuse::GatherRows(%s, %s, %s, %s, %s, %s)" % (
            places, x.count(plan.count), x.count(plan.cols), wide(plan.index_stride), x.count(plan.ub_stride),
            wide(plan.limit))
    else:
        call = "autofuse::GatherElements(%s, %s, %s, %s)" % (
            places, x.count(plan.count), wide(plan.index_stride), wide(plan.limit))
    depth = len(opening)
    lines = opening + ["  " * depth + "%s = !%s || %s;" % (FAILED, call, FAILED)]
    lines += ["  " * d + "}" for d in reversed(range(depth))]
    if plan.kind == "rows":
        # The queue of the index orders copies behind V alone; GatherElements waits by itself.
        lines.append("autofuse::WaitFor<AscendC::HardEvent::S_V>();")
    return Call(tuple(lines), ("gather.h",))
