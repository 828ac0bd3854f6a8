"""can_fuse(a, b): each verdict by its smallest pair of nests, and the order of preference."""

import numpy as np
import pytest

from tests.graphs import CPU, GraphBuilder, Tensor
from tests.lowering.checks import keep_config
from tf_autofuse.fusion import reasons
from tf_autofuse.fusion.acyclic import AcyclicGraph
from tf_autofuse.fusion.can_fuse import FusionContext, can_fuse, score, shared_tensors
from tf_autofuse.fusion.fuse import fuse
from tf_autofuse.fusion.nest import join, nest_of, outputs_of
from tf_autofuse.ir.dtypes import BOOL, FLOAT32, INT32
from tf_autofuse.lowering.lower import lower


def nests_of(g, max_size=64, tensor_bytes=lambda tensor: 4):
    """The nests of a graph before fusion, by name of their root, and the context."""
    view = g.view()
    lowered = lower(view, keep_config(max_fusion_size=max_size), "ascend", {}, set())
    nests = {
        view.names[n]: nest_of(lowered.boxes[n], view.inputs, view.devices, view.frames, lowered.alive)
        for n in lowered.realized
    }
    inside = {m: nest.key for nest in nests.values() for m in nest.members}
    edges = [
        (inside.get(s, s), inside.get(n, n))
        for n in range(len(view))
        for s in [s for s, _ in view.inputs[n]] + list(view.control_inputs[n])
    ]
    order = [n for n in range(len(view)) if inside.get(n, n) == n]
    context = FusionContext(
        view.names,
        view.inputs,
        view.consumers,
        AcyclicGraph(order, edges),
        tensor_bytes,
        lowered.alive,
        max_size,
    )
    return nests, context


def shared_input(shape_a=(8,), shape_b=(8,)):
    """neg and abs both read x and are fetched."""
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (8,))
    a, b = g.arg("a", FLOAT32, shape_a), g.arg("b", FLOAT32, shape_b)
    g.ret(g.op("Add", x, a, name="left"), g.op("Sub", x, b, name="right"))
    return g


def verdict(g, a, b, **kw):
    nests, context = nests_of(g, **kw)
    return can_fuse(nests[a], nests[b], context)


def test_yes_horizontally():
    found = verdict(shared_input(), "left", "right")
    assert found.ok and found.code is reasons.FUSED and found.score[0] == -4


def test_yes_vertically_saves_twice():
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (8,))
    a = g.op("Neg", x, name="a")
    g.ret(a, g.op("Abs", a, name="b"))
    found = verdict(g, "a", "b")
    assert found.ok and found.score[0] == -8
    assert verdict(g, "b", "a").ok


def test_no_shared_data():
    g = GraphBuilder()
    g.ret(g.op("Neg", g.arg("x", FLOAT32, (8,)), name="a"), g.op("Neg", g.arg("y", FLOAT32, (8,)), name="b"))
    assert verdict(g, "a", "b").code is reasons.NO_SHARED_DATA


def test_axes_of_the_outputs_must_be_one():
    found = verdict(shared_input(shape_b=(3, 8)), "left", "right")
    assert found.code is reasons.AXES and found.reason == "outputs of shapes [3, 8] and [8]"


def test_flattened_outputs_fit():
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (2, 4))
    g.ret(g.op("Neg", x, name="left"), g.op("Abs", g.reshape(x, (8,)), name="right"))
    assert verdict(g, "left", "right").ok


def test_node_limit():
    assert verdict(shared_input(), "left", "right", max_size=1).code is reasons.NODE_LIMIT
    assert verdict(shared_input(), "left", "right", max_size=2).ok


def test_input_limit():
    g = GraphBuilder()
    xs = [g.arg("x%d" % i, FLOAT32, (8,)) for i in range(9)]
    g.ret(g.op("AddN", *xs[:5], name="left", dims=(8,)), g.op("AddN", *xs[4:], name="right", dims=(8,)))
    assert verdict(g, "left", "right").code is reasons.TOO_MANY_INPUTS
    g.ret(g.op("AddN", *xs[4:8], name="smaller", dims=(8,)))
    assert verdict(g, "left", "smaller").ok


@pytest.mark.parametrize("place, code", [("device", reasons.DEVICES), ("frame", reasons.FRAMES)])
def test_place(place, code):
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (8,))
    g.ret(g.op("Neg", x, name="left"))
    setattr(g, place, CPU.replace("CPU:0", "CPU:1") if place == "device" else "loop")
    g.ret(g.op("Abs", x, name="right"))
    assert verdict(g, "left", "right").code is code


def test_liveness():
    g = GraphBuilder()
    x, p = g.arg("x", FLOAT32, (8,)), g.arg("p", BOOL, ())
    switch = g.node("Switch", (x, p), ((1, (8,)), (1, (8,))))
    g.ret(g.op("Neg", x, name="always"), g.op("Add", x, Tensor(switch, 1), name="taken"))
    assert verdict(g, "always", "taken").code is reasons.LIVENESS


def test_a_view_is_not_stored_as_a_copy():
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (8,))
    v = g.op("Identity", x, name="view")
    g.ret(v, g.op("Neg", v, name="neg"), g.op("Abs", x, name="abs"))
    assert verdict(g, "view", "neg").code is reasons.VIEW_COPY
    assert verdict(g, "view", "abs").code is reasons.VIEW_COPY


def test_peak_memory_counts_outputs_side_by_side_only():
    assert (
        verdict(shared_input(), "left", "right", tensor_bytes=lambda t: 7 << 30).code is reasons.PEAK_MEMORY
    )
    assert verdict(shared_input(), "left", "right", tensor_bytes=lambda t: 6 << 30).ok


def test_cycle_through_an_op_outside():
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (8,))
    a = g.op("Neg", x, name="a")
    g.ret(g.op("Mul", a, g.outside(a), name="b"))
    found = verdict(g, "a", "b")
    assert found.code is reasons.CYCLE and "outside" in found.reason


def test_cycle_through_a_control_edge():
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (8,))
    a = g.op("Neg", x, name="a")
    g.ret(a, g.op("Abs", x, name="b", control=(g.node("NoOp", control=(a,)),)))
    assert verdict(g, "a", "b").code is reasons.CYCLE


def test_a_gather_reads_what_is_in_memory():
    g = GraphBuilder()
    x, at = g.arg("x", FLOAT32, (8, 4)), g.arg("at", INT32, (3,))
    a = g.op("Neg", x, name="a")
    axis = g.const(np.array(0, np.int32), INT32)
    rows = Tensor(g.node("GatherV2", [a, at, axis], [(FLOAT32.tf, (3, 4))], name="b"))
    g.ret(rows)
    assert verdict(g, "a", "b").code is reasons.GATHERED


def test_join_knows_what_is_still_read_from_outside():
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (8,))
    a = g.op("Neg", x, name="a")
    b, c = g.op("Abs", a, name="b"), g.op("Relu", a, name="c")
    g.ret(b, c)
    nests, context = nests_of(g)

    def stored(nest):
        outputs = outputs_of(nest, context.consumers, context.inputs)
        return [context.names[store.tensor[0]] for store in outputs]

    half = join(nests["a"], nests["b"], context.inputs)
    assert stored(half) == ["a", "b"]
    whole = join(half, nests["c"], context.inputs)
    assert stored(whole) == ["b", "c"]
    assert shared_tensors(half, nests["c"]) == ([(a.node, 0)], [])


def test_preference_is_bytes_then_nearness_then_order():
    g = GraphBuilder()
    x, y = g.arg("x", FLOAT32, (8,)), g.arg("y", FLOAT32, (8,))
    g.ret(
        g.op("Add", x, y, name="a"),
        g.op("Neg", x, name="b"),
        g.op("Sub", x, y, name="c"),
        g.op("Abs", x, name="d"),
    )
    nests, context = nests_of(g)
    ordered = sorted(
        (("a", "b"), ("a", "c"), ("b", "d"), ("a", "d")),
        key=lambda pair: score(nests[pair[0]], nests[pair[1]], context),
    )
    assert ordered == [("a", "c"), ("a", "b"), ("b", "d"), ("a", "d")]


def test_a_refusal_of_one_round_may_be_allowed_in_the_next():
    """a[8] is read by b and c over [3, 8]: neither can take it alone, both together can."""
    g = GraphBuilder()
    x, y = g.arg("x", FLOAT32, (8,)), g.arg("y", FLOAT32, (3, 8))
    a = g.op("Neg", x, name="a")
    g.ret(g.op("Mul", a, y, name="b"), g.op("Sub", a, y, name="c"))
    nests, context = nests_of(g)
    assert not can_fuse(nests["a"], nests["b"], context).ok
    found = fuse(list(nests.values()), context)
    assert len(found.nests) == 1 and not found.refused


def test_reasons_are_documented_and_distinct():
    for name, code in reasons.ALL_CODES.items():
        assert name == code.name and name.startswith("NF") and len(name) == 6 and code.text
    defined = [v for v in vars(reasons).values() if isinstance(v, reasons.Code) and v is not reasons.FUSED]
    assert len(defined) == len(reasons.ALL_CODES)
