"""Loop axes: what merges, what drops, what a contiguous variant assumes."""
from dataclasses import replace

import pytest

from tests.schedule.graphs import copies, fill, public_example, run_time_broadcast, three_axes
from tf_autofuse.ir.asc_graph import TensorRef
from tf_autofuse.ir.builder import HintBuilder
from tf_autofuse.ir.dtypes import FLOAT32
from tf_autofuse.schedule.axes import (assume_contiguous, check_simplified, drop_unit_axes, fold_broadcasts,
                                       is_strided, merge_contiguous_axes, simplify)
from tf_autofuse.schedule.impl_graph import ScheduleRefusal
from tf_autofuse.symbolic.size import broadcast_size, product, stride_or_zero, symbol


def axis_sizes(graph):
    return tuple(graph.axis(a).size for a in graph.loop_axes)


def dense(sizes, masks):
    """Sum of loads with these extents, stored."""
    b = HintBuilder("g", axes=[("z%d" % i, s) for i, s in enumerate(sizes)])
    total = None
    for i, mask in enumerate(masks):
        load = b.broadcast_to(b.load(b.data(i, FLOAT32), dims=mask), (1,) * len(sizes))
        total = load if total is None else b.op("Add", total, load)
    b.store(total, 0)
    return b.graph()


@pytest.mark.parametrize("sizes, masks, merged", [
    ((4, 5, 6), [(1, 1, 1)], (120,)),
    ((4, 5, 6), [(1, 1, 1), (0, 0, 1)], (20, 6)),
    ((4, 5, 6), [(1, 1, 1), (1, 0, 0)], (4, 30)),
    ((4, 5, 6), [(1, 1, 1), (0, 1, 0)], (4, 5, 6)),
    ((4, 5, 6, 7), [(1, 1, 1, 1), (0, 1, 1, 0)], (4, 30, 7)),
    ((4, 1, 6), [(1, 1, 1), (0, 1, 1)], (4, 6)),
    ((1, 1), [(1, 1)], (1,)),
    ((3, 1, 1), [(1, 0, 1)], (3,)),
])
def test_axes_that_are_walked_as_one_merge(sizes, masks, merged):
    graph = simplify(dense(sizes, masks))
    assert axis_sizes(graph) == merged


def test_symbolic_axes_merge():
    s0, s1 = symbol("s0"), symbol("s1")
    assert axis_sizes(simplify(dense((s0, s1, 4), [(1, 1, 1), (0, 0, 1)]))) == (s0 * s1, 4)
    assert axis_sizes(simplify(three_axes().graph)) == tuple(symbol("s%d" % i) for i in range(3))


def test_gm_strides_forbid_merging():
    b = HintBuilder("g", axes=[("z0", 4), ("z1", 5)])
    b.store(b.load(b.data(0, FLOAT32), dims=(1, 1), strides=(8, 1)), 0)
    assert axis_sizes(simplify(b.graph())) == (4, 5)
    b = HintBuilder("g", axes=[("z0", 4), ("z1", 5)])
    b.store(b.op("Abs", b.load(b.data(0, FLOAT32), dims=(1, 1))), 0, strides=(8, 1))
    assert axis_sizes(simplify(b.graph())) == (4, 5)


def test_merged_axes_name_what_they_are_made_of():
    graph = simplify(dense((4, 5, 6), [(1, 1, 1)]))
    axis = graph.axis(graph.loop_axes[0])
    assert axis.name == "z0z1z2"
    assert product(graph.axis(a).size for a in axis.from_axes) == 120


def test_chains_of_broadcasts_fold_into_one():
    folded = fold_broadcasts(dense((4, 5, 6), [(1, 0, 0), (0, 0, 0)]))
    broadcasts = folded.of_type("Broadcast")
    assert [n.attr("axes") for n in broadcasts] == [(1, 2), (0, 1, 2)]
    assert all(folded.node(n.inputs[0].node).type == "Load" for n in broadcasts)


def test_equal_broadcasts_are_one_and_unread_nodes_go():
    b = HintBuilder("g", axes=[("z0", 4), ("z1", 5)])
    x = b.load(b.data(0, FLOAT32), dims=(0, 1))
    b.op("Neg", x)
    left, right = b.broadcast_to(x, (1, 1)), b.broadcast_to(x, (1, 1))
    b.store(b.op("Mul", left, right), 0)
    folded = fold_broadcasts(b.graph())
    assert len(folded.of_type("Broadcast")) == 1
    assert not folded.of_type("Neg")
    mul = folded.of_type("Mul")[0]
    assert mul.inputs[0] == mul.inputs[1]


def test_unit_axes_drop_but_one_stays():
    assert axis_sizes(drop_unit_axes(fold_broadcasts(dense((1, 7, 1), [(1, 1, 1)])))) == (7,)
    assert axis_sizes(drop_unit_axes(fold_broadcasts(dense((1, 1), [(1, 1)])))) == (1,)


def test_contiguous_variant_of_a_run_time_broadcast():
    sample = run_time_broadcast()
    assert is_strided(sample.graph)
    assert not is_strided(public_example().graph)
    contiguous = assume_contiguous(sample.graph)
    assert [repr(g) for g in contiguous.conditions] == ["s0 == s4", "s1 == s5", "s2 == s4", "s3 == s5"]
    assert axis_sizes(simplify(contiguous.graph)) == (symbol("s4") * symbol("s5"),)
    assert axis_sizes(simplify(sample.graph)) == (symbol("s4"), symbol("s5"))


def test_contiguous_variant_against_a_static_dim_and_without_an_axis_symbol():
    s0, s1 = symbol("s0"), symbol("s1")
    b = HintBuilder("g", axes=[("z0", 4), ("z1", 8)])
    b.store(b.op("Abs", b.load(b.data(0, FLOAT32), dims=(1, 1), strides=(stride_or_zero(s0, 8), 1))), 0)
    contiguous = assume_contiguous(b.graph())
    assert [repr(g) for g in contiguous.conditions] == ["s0 == 4"]
    assert axis_sizes(simplify(contiguous.graph)) == (32,)
    size = broadcast_size(s0, s1)
    b = HintBuilder("g", axes=[("z0", 2), ("z1", size)])
    x = b.load(b.data(0, FLOAT32), dims=(1, 1), strides=(s0, stride_or_zero(s0, 1)))
    y = b.load(b.data(1, FLOAT32), dims=(1, 1), strides=(s1, stride_or_zero(s1, 1)))
    b.store(b.op("Add", x, y), 0)
    merged = simplify(assume_contiguous(b.graph()).graph)
    assert axis_sizes(merged) in ((2 * s0,), (2 * s1,))


def test_a_run_time_stride_of_another_form_has_no_contiguous_variant():
    s0 = symbol("s0")
    b = HintBuilder("g", axes=[("z0", 4)])
    b.store(b.op("Abs", b.load(b.data(0, FLOAT32), dims=(1,), strides=(stride_or_zero(s0, 1) + 1,))), 0)
    assert assume_contiguous(b.graph()) is None


@pytest.mark.parametrize("sample", [public_example(), copies(), fill(), three_axes()])
def test_simplified_graphs_pass_the_check_and_broken_ones_do_not(sample):
    graph = simplify(sample.graph)
    assert check_simplified(graph) is graph
    store = graph.of_type("Store")[0]
    small = replace(store, outputs=(replace(store.y, repeats=(1,) * len(store.y.repeats)),))
    with pytest.raises(ScheduleRefusal):
        check_simplified(graph.with_nodes(small if n is store else n for n in graph.nodes))
    with pytest.raises(ScheduleRefusal):
        check_simplified(replace(graph, loop_axes=()))
    odd = replace(store, outputs=(replace(store.y, repeats=(17,) + store.y.repeats[1:]),))
    with pytest.raises(ScheduleRefusal):
        check_simplified(graph.with_nodes(odd if n is store else n for n in graph.nodes))


def test_inputs_of_unequal_extent_are_refused():
    graph = simplify(public_example().graph)
    add = graph.of_type("Add")[0]
    wrong = replace(add, inputs=(add.inputs[1], TensorRef(graph.of_type("Abs")[0].name)))
    with pytest.raises(ScheduleRefusal):
        check_simplified(graph.with_nodes(wrong if n is add else n for n in graph.nodes))


def test_merging_twice_changes_nothing():
    graph = simplify(three_axes().graph)
    assert merge_contiguous_axes(graph) is graph
