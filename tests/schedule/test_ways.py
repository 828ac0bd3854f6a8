"""What schedule() makes of reductions, transposes and gathers, and the verifier by mutation of
their plans."""
from dataclasses import replace

import pytest

from tests.schedule.graphs import column_sums, inner_sums, public_example, softmax, transposed
from tests.schedule.test_schedule import with_memory, with_plan
from tf_autofuse.ir.asc_graph import FusedGraph, Memory, Position
from tf_autofuse.ir.builder import HintBuilder
from tf_autofuse.ir.dtypes import FLOAT32, INT32
from tf_autofuse.ir.verify_impl import verify_impl
from tf_autofuse.ir.verify_nodes import VerifyError
from tf_autofuse.machine import machine_for
from tf_autofuse.schedule.check import ScheduleError, check
from tf_autofuse.schedule.impl_graph import BroadcastDim, ScheduleRefusal
from tf_autofuse.schedule.nests import nests_of
from tf_autofuse.schedule.schedule import schedule
from tf_autofuse.schedule.ways import stages_of
from tf_autofuse.symbolic.guards import InputDim, SizeVar
from tf_autofuse.symbolic.size import symbol

MACHINE = machine_for()

FAMILY_MUTATIONS = {
    "odd rows of a reduction": (softmax, lambda i: with_plan(i, "sum_0", stride=41)),
    "a reduction without its plan": (softmax, lambda i: replace(i, plans=tuple(
        (n, i.plan(i.graph.node("sub_0")) if n == "sum_0" else p) for n, p in i.plans))),
    "odd rows of a result": (inner_sums, lambda i: with_plan(i, "sum_0", outer=(BroadcastDim(2, 8, 3),))),
    "odd rows of a transpose": (transposed, lambda i: with_plan(i, "transpose_0", dst_stride=3)),
    "a transpose without its plan": (transposed, lambda i: replace(i, plans=tuple(
        (n, i.plan(i.graph.node("add_0")) if n == "transpose_0" else p) for n, p in i.plans))),
}


@pytest.mark.parametrize("mutation", sorted(FAMILY_MUTATIONS))
def test_the_check_finds_in_families(mutation):
    make, mutate = FAMILY_MUTATIONS[mutation]
    impls = schedule(make().graph, MACHINE)
    impl = next(i for i in impls if make is not transposed or i.graph.of_type("Transpose"))
    assert check(impl, MACHINE) is impl
    with pytest.raises(ScheduleError):
        check(mutate(impl), MACHINE)


def test_what_is_reduced_lies_in_ub():
    """Axis groups, the cut along another axis, an axis of size 1 where all are reduced."""
    (impl,) = schedule(column_sums().graph, MACHINE)[:1]
    axis = {a.name: a.id for a in impl.graph.axes}
    assert dict(impl.axis_groups) == {"y": (axis["z1"],), "r": (axis["z0"],)}
    assert impl.cut_axis == axis["z1"] and impl.vectorized_axes == (axis["z0"], axis["z1t"])
    b = HintBuilder("g", axes=[("z0", 6), ("z1", 70)])
    b.store(b.reduce("Sum", b.load(b.data(0, FLOAT32), (1, 1)), (0, 1)), 0)
    (impl,) = schedule(b.graph(), MACHINE)
    assert impl.cut_size == 1 and impl.way == "whole"
    assert not impl.hoisted and [n.type for n in impl.body] == ["Load", "Sum", "Store"]


def ways_of(*sizes, axes, types=("Sum",)):
    """The (way, stage) pairs of reductions over `axes`."""
    symbols = sorted(str(s) for s in sizes if not isinstance(s, int))
    b = HintBuilder("g", [("z%d" % i, s) for i, s in enumerate(sizes)],
                    tuple(SizeVar(s, InputDim(0, 0)) for s in symbols))
    x = b.load(b.data(0, FLOAT32), (1,) * len(sizes))
    for i, type_ in enumerate(types):
        dtype = INT32 if type_.startswith("Arg") else FLOAT32
        b.store(b.reduce(type_, x, axes, dtype=dtype), i)
    return sorted({(i.way, i.stage) for i in schedule(b.graph(), MACHINE)})


def test_ways_by_what_is_known_of_the_reduced_axes():
    s0 = symbol("s0")
    assert ways_of(s0, 100, axes=(1,)) == [("whole", 0)]
    assert ways_of(7, s0, axes=(1,)) == [("empty", 0), ("parts", 0), ("parts", 1), ("whole", 0)]
    assert ways_of(7, 0, axes=(1,)) == [("empty", 0), ("whole", 0)]
    assert ways_of(7, 4000, axes=(1,)) == [("parts", 0), ("parts", 1), ("whole", 0)]
    assert ways_of(7, 10 ** 6, axes=(1,)) == [("parts", 0), ("parts", 1)]
    assert ways_of(7, s0, axes=(1,), types=("ArgMax",)) == [("whole", 0)]
    with pytest.raises(ScheduleRefusal, match="fit UB neither as a whole nor in parts"):
        ways_of(7, 10 ** 6, axes=(1,), types=("ArgMax",))


def test_a_tile_of_the_outermost_axis_whose_inside_can_fit():
    s0 = symbol("s0")

    def partial(*sizes):
        """Sizes of the axes that one partial result is made of, and of those that there is one for."""
        b = HintBuilder("g", [("z%d" % i, s) for i, s in enumerate(sizes)], (SizeVar("s0", InputDim(0, 0)),))
        x, row = b.load(b.data(0, FLOAT32), (1, 1, 1)), b.load(b.data(1, FLOAT32), (0, 1, 0))
        b.store(b.reduce("Sum", b.op("Add", x, b.broadcast_to(row, (1, 1, 1))), (0, 1)), 0)
        first = next(s for s in stages_of(b.graph()) if s.way == "parts")
        (node,) = first.graph.of_type("Sum")
        return [first.graph.axis(a).size for a in node.attr("axes")], node.y.repeats

    assert partial(8, 300, 5) == ([8, 300], (1, 1, 5))
    assert partial(8, 30000, 5) == ([30000], (8, 1, 5))
    assert partial(s0, 30000, 5) == ([30000], (s0, 1, 5))
    assert partial(8, s0, 5) == ([8, s0], (1, 1, 5))


def test_nests_need_the_variants_of_all_graphs():
    sample = softmax()
    fused = FusedGraph("fused", "reduce", (), (), sample.graph.sizes, (), (sample.graph,))
    impls = schedule(sample.graph, MACHINE)
    assert [(n.way, len(n.impls)) for n in nests_of(fused, impls)] == [("whole", len(impls))]
    with pytest.raises(ValueError, match="no graph"):
        nests_of(replace(fused, graphs=(replace(sample.graph, name="other"),)), impls)
    with pytest.raises(ValueError, match="keys"):
        nests_of(fused, [replace(impls[0], tiling_key=1)])
    with pytest.raises(ValueError, match="no variant"):
        nests_of(replace(fused, graphs=(sample.graph, public_example().graph)), impls)


def test_a_gather_lives_in_an_input_queue_or_a_buffer():
    b = HintBuilder("g", axes=[("z0", 12), ("z1", 8)])
    rows = b.load(b.data(1, INT32), (1, 0))
    b.store(b.op("Abs", b.gather(b.data(0, FLOAT32), rows, (1, 1), (0, 1), 8, 5)), 0)
    for impl in schedule(b.graph(), MACHINE):
        verify_impl(impl.graph)
        (gather,) = impl.graph.of_type("Gather")
        assert gather.y.memory.position is Position.VECIN and impl.plan(gather).kind == "rows"
        wrong = with_memory(impl, gather.name, Memory(Position.VECOUT, 0, 2))
        with pytest.raises(VerifyError, match="I5"):
            verify_impl(wrong.graph)
        with pytest.raises(ScheduleError):
            check(with_memory(impl, gather.name, Memory(Position.VECCALC, 0, 1)), MACHINE)


def test_constant_indices_are_loads():
    def gathered(index):
        b = HintBuilder("g", axes=[("z0", 12)])
        x = b.gather(b.data(0, FLOAT32), b.scalar(index, INT32), (1,), (1,), 12, 5, offset=3)
        b.store(b.op("Abs", x), 0)
        return b.graph()

    (impl,) = schedule(gathered(4), MACHINE)
    (load,) = impl.graph.of_type("Load")
    assert load.attr("offset") == 3 + 4 * 12 and not impl.graph.of_type("Gather")
    with pytest.raises(ScheduleRefusal, match="index 5"):
        schedule(gathered(5), MACHINE)
