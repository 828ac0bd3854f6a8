"""Random graphs: every plan is well formed and computes what the graph does, op by op, on the same arguments.

Ops are such that numpy gives the same bits whatever the array's layout. Run-time dims a and b take equal,
broadcasting and empty values.
"""

import numpy as np
from hypothesis import HealthCheck, given, settings, strategies as st

from tests.graphs import GraphBuilder, Tensor
from tests.lowering.checks import check_plan, compare_with_graph, keep_config, random_array
from tf_autofuse.config import Config
from tf_autofuse.ir.dtypes import BOOL, BY_TF, FLOAT32, INT32
from tf_autofuse.lowering.plan import plan

UNARY = ("Abs", "Neg", "Relu", "Square", "Identity")
BINARY = ("Add", "Sub", "Mul", "Maximum", "Minimum", "AddV2")
COMPARE = ("Greater", "Less", "Equal")
SHAPES = (
    (),
    (4,),
    (3, 1),
    (3, 4),
    ("a", 3, 4),
    ("a", 1, 4),
    ("b", 3, 1),
    (1, 3, 4),
    ("b", 1, 1),
    ("a", 12),
    ("b", 3, 4),
)
RUN_TIME = (
    {"a": 5, "b": 5},
    {"a": 1, "b": 5},
    {"a": 5, "b": 1},
    {"a": 1, "b": 1},
    {"a": 0, "b": 1},
    {"a": 0, "b": 0},
)


class Source:
    """Reads a drawn list of numbers as choices."""

    def __init__(self, numbers):
        self.numbers = list(numbers)

    def pick(self, options):
        return options[(self.numbers.pop() if self.numbers else 0) % len(options)]


def build(numbers, values):
    """A graph made from the numbers; values: what a and b are at run time (only to draw nothing that TF
    refuses)."""
    source, g = Source(numbers), GraphBuilder()
    tensors, shapes, real = [], {}, {}

    def add(t, actual):
        tensors.append(t)
        real[t] = actual

    for i in range(2 + source.pick(range(3))):
        dims = source.pick(SHAPES)
        actual = tuple(values[d] if isinstance(d, str) else d for d in dims)
        shapes["x%d" % i] = actual
        add(g.arg("x%d" % i, source.pick((FLOAT32, FLOAT32, INT32)), dims), actual)
    steps = 4 + source.pick(range(24))
    for _ in range(steps):
        step(g, source, tensors, real, add)
    for t in {source.pick(tensors) for _ in range(3)} | {tensors[-1]}:
        g.ret(t)
    return g, shapes


def step(g, source, tensors, real, add):
    kind = source.pick(
        (
            "unary",
            "binary",
            "binary",
            "binary",
            "compare",
            "select",
            "view",
            "const",
            "outside",
            "fill",
            "control",
        )
    )
    a = source.pick(tensors[-6:])
    numeric = g.dtype(a) is not BOOL
    b = source.pick([t for t in tensors if g.dtype(t) is g.dtype(a)])
    try:
        both = np.broadcast(np.empty(real[a]), np.empty(real[b])).shape
    except ValueError:
        b, both = a, real[a]
    if kind == "unary" and numeric:
        add(g.op(source.pick(UNARY), a), real[a])
    elif kind == "control" and numeric:
        add(g.op("Neg", a, control=(source.pick(tensors),)), real[a])
    elif kind == "binary" and numeric:
        add(g.op(source.pick(BINARY), a, b), both)
    elif kind == "compare" and numeric:
        add(g.op(source.pick(COMPARE), a, b), both)
    elif kind == "compare":
        add(g.op(source.pick(("LogicalAnd", "LogicalOr")), a, b), both)
    elif kind == "const" and numeric:
        add(g.op(source.pick(BINARY), a, g.const(source.pick((0, 2, -3)), g.dtype(a))), real[a])
    elif kind == "outside":
        add(g.outside(a), real[a])
    elif kind == "fill":
        add(g.op(source.pick(("ZerosLike", "OnesLike")), a), real[a])
    elif kind == "select":
        conditions = [t for t in tensors if g.dtype(t) is BOOL]
        if conditions and numeric:
            c = source.pick(conditions)
            try:
                shape = np.broadcast(np.empty(real[c]), np.empty(both)).shape
            except ValueError:
                return
            add(g.op("SelectV2", c, a, b), shape)
    elif kind == "view" and len(real[a]) > 1:
        flat_view(g, source, a, real, add)


def flat_view(g, source, a, real, add):
    """[d, 3, 4] <-> [d, 12], [3, 4] <-> [12], and everything to [-1]."""
    dims, actual = g.dims(a), real[a]
    if sum(d < 0 for d in dims) > 1:
        return  # the operand could not say it with one -1
    if source.pick((True, False)) and min(dims) >= 0:
        add(g.reshape(a, (int(np.prod(dims)),)), (int(np.prod(actual)),))
    elif dims[-1] == 12:
        add(reshape_to(g, a, dims[:-1] + (3, 4)), actual[:-1] + (3, 4))
    elif dims[-2:] == (3, 4):
        add(reshape_to(g, a, dims[:-2] + (12,)), actual[:-2] + (12,))


def reshape_to(g, a, dims):
    """The operand is an argument's stand-in: -1 for the run-time dim."""
    operand = g.const([d if d >= 0 else -1 for d in dims], INT32)
    return Tensor(g.node("Reshape", (a, operand), ((g.dtype(a).tf, dims),)))


def args_of(g, shapes):
    dtypes = {g.names[i]: BY_TF[g.out_dtypes[i][0]] for i, op in enumerate(g.ops) if op == "_Arg"}
    return {
        name: random_array(dtypes[name], shape, i) for i, (name, shape) in enumerate(sorted(shapes.items()))
    }


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(
    st.lists(st.integers(0, 2**16), min_size=30, max_size=160),
    st.sampled_from(RUN_TIME),
    st.sampled_from((1, 1, 2, 3)),
    st.sampled_from((64, 64, 5)),
)
def test_random_graphs(numbers, values, threshold, size):
    g, shapes = build(numbers, values)
    result = plan(g.view(), keep_config(recomputation_threshold=threshold, max_fusion_size=size), "ascend")
    check_plan(g, result)
    # An empty dim cannot be reshaped with -1; everything else runs.
    if 0 not in values.values() or "Reshape" not in g.ops:
        compare_with_graph(g, result, args_of(g, shapes))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(st.lists(st.integers(0, 2**16), min_size=30, max_size=160))
def test_random_graphs_in_float16(numbers):
    """With the Casts of force_fp16 every plan is still well formed, and the same nodes are fused."""
    g, _ = build(numbers, RUN_TIME[0])
    kept, forced = (plan(g.view(), c, "ascend") for c in (keep_config(), Config(graph_run_mode=0)))
    check_plan(g, forced)
    assert [r.nodes for r in forced.regions] == [r.nodes for r in kept.regions]
    assert [d.code for d in forced.decisions] == [d.code for d in kept.decisions]
