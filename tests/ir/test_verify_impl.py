"""Invariants of ImplGraphs: what the schedule makes passes, a good graph with one thing broken does not."""
from dataclasses import replace

import pytest
from hypothesis import given, settings

from tests.ir.samples import ALL, impl_example
from tests.strategies import fused_graphs
from tf_autofuse.ir.asc_graph import AxisType, Memory, Position, Sched, TensorRef
from tf_autofuse.ir.dtypes import FLOAT32, INT32
from tf_autofuse.ir.verify import VerifyError
from tf_autofuse.ir.verify_impl import verify_impl
from tf_autofuse.machine import machine_for
from tf_autofuse.schedule.schedule import schedule
from tf_autofuse.symbolic.size import symbol


def test_a_good_graph_passes():
    verify_impl(impl_example())


@pytest.mark.parametrize("name", ("concat", "fill", "public_example", "run_time_broadcast"))
def test_scheduled_samples_pass(name):
    for graph in ALL[name]().graphs:
        for impl in schedule(graph, machine_for()):
            verify_impl(impl.graph)


@settings(max_examples=40, deadline=None)
@given(fused_graphs(input_dtypes=(FLOAT32, INT32), max_size=40))
def test_scheduled_random_graphs_pass(fused):
    for impl in schedule(fused.graphs[0], machine_for()):
        verify_impl(impl.graph)


def node(name, change):
    return lambda g: g.with_nodes(change(n) if n.name == name else n for n in g.nodes)


def sched(name, *args):
    return node(name, lambda n: replace(n, sched=Sched(*args)))


def view(name, **changes):
    return node(name, lambda n: replace(n, outputs=(replace(n.y, **changes),)))


def memory(name, *args):
    return view(name, memory=Memory(*args))


def axis(id_, **changes):
    return lambda g: replace(g, axes=tuple(replace(a, **changes) if a.id == id_ else a for a in g.axes))


def moved(name, before):
    """The named node stands right before another one."""

    def mutate(g):
        return g.with_nodes(
            m for n in g.nodes if n.name != name for m in ((g.node(name), n) if n.name == before else (n,))
        )

    return mutate


IN, OUT, CALC = Position.VECIN, Position.VECOUT, Position.VECCALC

BROKEN = [
    ("I1", lambda g: replace(g, form="hint"), "form"),
    ("I1", lambda g: replace(g, loop_axes=(0,)), "no loop over axis z1"),
    ("I1", lambda g: replace(g, loop_axes=(0, 1, 9)), "loop_axes"),
    ("I1", lambda g: replace(g, loop_axes=(0, 3, 1)), "part of an axis"),
    ("I1", lambda g: replace(g, loop_axes=()), "loop_axes"),
    ("I1", axis(3, from_axes=()), "derives from 0 axes"),
    ("I1", axis(0, from_axes=(1,)), "derives from 1 axes"),
    ("I1", axis(2, from_axes=(3,)), "no earlier axis"),
    ("I1", axis(3, from_axes=(1,)), "only TILE_OUT derives"),
    ("I1", axis(3, type=AxisType.MERGED), "as TILE_OUT does"),
    ("I1", axis(6, type=AxisType.BLOCK_OUT), "as BLOCK_OUT does"),
    ("I2", axis(2, size=symbol("z0t_size")), "axis z0T has size"),
    ("I2", axis(5, size=3), "not that of"),
    ("I2", axis(4, size=192), "axis z0T has size 192"),
    ("I2", axis(3, size=symbol("z0t_size") + 1), "neither symbol nor number"),
    ("I3", sched("add_0", (5, 6, 3, 3), 6), "sched.axis is"),
    ("I3", sched("add_0", (5, 6, 3, 9), 6), "sched.axis is"),
    ("I3", sched("add_0", (), -1), "sched.axis is ()"),
    ("I3", sched("add_0", (4, 6, 3, 1), 6), "which it derives from"),
    ("I3", sched("add_0", (5, 6, 0, 3, 1), 6), "z0TB and z0, which it derives from"),
    ("I3", sched("add_0", (5, 6, 3, 1), 4), "loop_axis 4"),
    ("I3", sched("data_0", (1,), -1), "has axes"),
    ("I4", sched("add_0", (5, 6, 3, 1), 3), "inside of the loop are (1,)"),
    ("I4", sched("add_0", (5, 6, 1, 3), 6), "inside of the loop are (1, 3)"),
    ("I4", view("add_0", vectorized_axis=(1,), vectorized_strides=(1,)), "others over (3, 1)"),
    ("I4", view("add_0", vectorized_strides=(1,)), "2 vectorized axes, 1 strides"),
    ("I4", view("add_0", vectorized_axis=(), vectorized_strides=()), "no vectorized axis"),
    ("I4", view("add_0", axis=(2, 3, 0)), "viewed over"),
    ("I5", memory("load_0", CALC, 3, 1), "not VECIN"),
    ("I5", memory("relu_0", CALC, 3, 1), "not VECOUT"),
    ("I5", memory("add_0", OUT, 1, 2), "not VECCALC"),
    ("I5", view("add_0", memory=None), "lives in None"),
    ("I5", memory("store_0", OUT, 1, 2), "writes GM"),
    ("I5", memory("data_0", IN, 2, 2), "has a UB tensor"),
    ("I5", memory("add_0", CALC, 2, 2), "2 buffers"),
    ("I5", memory("load_1", IN, 1, 0), "0 buffers"),
    ("I5", memory("load_1", IN, 0, 2), "has 1 buffers and 2"),
    ("I5", memory("load_1", IN, 2, 2), "numbered [0, 2]"),
    ("I6", memory("wide", CALC, 0, 1), "shares VECCALC0 with abs_0"),  # Broadcast never writes over its input
    ("I6", memory("add_0", CALC, 1, 1), "shares VECCALC1 with wide"),  # which the next iteration reads again
    ("I6", view("neg_0", memory=Memory(CALC, 1, 1)), "with wide"),
    ("I7", sched("abs_0", (5, 6, 3, 1), 6), "stands outside of the loop but after"),
    (
        "I7",
        lambda g: g.with_nodes(
            replace(n, sched=Sched(n.sched.axis, -1)) if n.sched.axis else n for n in g.nodes
        ),
        "a Store outside",
    ),
    ("G1", moved("relu_0", "neg_0"), "no earlier node"),
    ("G2", view("neg_0", dtype=INT32), "not int32"),
    ("G3", node("neg_0", lambda n: replace(n, type="NoSuchOp")), "NoSuchOp"),
    ("G4", view("load_1", strides=(symbol("other"), 128, 1)), "other"),
    ("G6", node("add_0", lambda n: replace(n, inputs=(TensorRef("load_1"),) * 2)), "nothing reads it"),
]


@pytest.mark.parametrize(
    "invariant, mutate, text", BROKEN, ids=["%s-%d" % (r[0], i) for i, r in enumerate(BROKEN)]
)
def test_broken_graphs_are_found(invariant, mutate, text):
    with pytest.raises(VerifyError) as caught:
        verify_impl(mutate(impl_example()))
    assert caught.value.invariant == invariant, caught.value
    assert text in caught.value.found, caught.value


def test_every_invariant_is_mutated():
    assert {"I%d" % i for i in range(1, 8)} <= {row[0] for row in BROKEN}
