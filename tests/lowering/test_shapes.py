"""Views, run-time dims, broadcasting at run time, rank 0, empty tensors, unknown ranks."""

import numpy as np
import pytest

from tests.graphs import GraphBuilder
from tests.lowering.checks import (
    check_plan,
    compare_with_graph,
    keep_config,
    names,
    random_array,
    run_and_compare,
)
from tf_autofuse.ir.dtypes import FLOAT32, INT32
from tf_autofuse.ir.evaluate import GuardFailure, evaluate_fused
from tf_autofuse.ir.text import dump
from tf_autofuse.lowering.plan import plan


def runs_for(g: GraphBuilder, *cases):
    """One plan, several shapes: each case maps argument names to shapes."""
    result = plan(g.view(), keep_config(), "ascend")
    check_plan(g, result)
    for case in cases:
        compare_with_graph(
            g, result, {n: random_array(FLOAT32, s, i) for i, (n, s) in enumerate(sorted(case.items()))}
        )
    return result


def refuses(region, *arrays):
    with pytest.raises(GuardFailure):
        evaluate_fused(region.fused, arrays)


def test_one_symbol_serves_every_batch():
    g = GraphBuilder()
    x, y = g.arg("x", FLOAT32, ("b", 128)), g.arg("y", FLOAT32, ("b", 1))
    g.ret(g.op("Relu", g.op("Add", x, y)))
    result = runs_for(g, *[dict(x=(b, 128), y=(b, 1)) for b in (1, 7, 1024, 0)])
    assert [str(v.source) for v in result.regions[0].fused.sizes] == ["InputDim(input=0, dim=0)"]
    refuses(result.regions[0], np.zeros((3, 128), np.float32), np.zeros((4, 1), np.float32))
    refuses(result.regions[0], np.zeros((3, 127), np.float32), np.zeros((3, 1), np.float32))


def test_two_symbols_broadcast_at_run_time(golden):
    g = GraphBuilder()
    x, y = g.arg("x", FLOAT32, ("a", 4)), g.arg("y", FLOAT32, ("b", 4))
    g.ret(g.op("Relu", g.op("Add", g.op("Abs", x), y)))
    result = runs_for(
        g,
        dict(x=(3, 4), y=(3, 4)),
        dict(x=(1, 4), y=(5, 4)),
        dict(x=(5, 4), y=(1, 4)),
        dict(x=(1, 4), y=(1, 4)),
        dict(x=(0, 4), y=(1, 4)),
        dict(x=(0, 4), y=(0, 4)),
    )
    golden("run_time_broadcast.txt", dump(result.regions[0].fused))
    refuses(result.regions[0], np.zeros((3, 4), np.float32), np.zeros((2, 4), np.float32))


def test_three_symbols_broadcast_to_one():
    g = GraphBuilder()
    x, y, z = (g.arg(n, FLOAT32, (n,)) for n in "xyz")
    g.ret(g.op("Mul", g.op("Add", x, y), g.op("Sub", g.op("Add", y, x), z)))
    result = runs_for(
        g, dict(x=(1,), y=(4,), z=(1,)), dict(x=(1,), y=(1,), z=(6,)), dict(x=(3,), y=(3,), z=(3,))
    )
    assert len(result.regions) == 1
    refuses(result.regions[0], *[np.zeros(n, np.float32) for n in (2, 1, 3)])


def test_a_symbol_against_a_known_dim():
    g = GraphBuilder()
    x, y = g.arg("x", FLOAT32, ("a", 4)), g.arg("y", FLOAT32, (3, 4))
    g.ret(g.op("Relu", g.op("Mul", g.op("Neg", x), y)))
    result = runs_for(g, dict(x=(3, 4), y=(3, 4)), dict(x=(1, 4), y=(3, 4)))
    refuses(result.regions[0], np.zeros((2, 4), np.float32), np.zeros((3, 4), np.float32))


def test_the_broadcast_dim_is_known_downstream():
    """TF's shape function gives a new dim for each Add; both are the broadcast of a and b, so the Mul needs
    no guard."""
    g = GraphBuilder()
    x, y = g.arg("x", FLOAT32, ("a",)), g.arg("y", FLOAT32, ("b",))
    p, q = g.outside(g.op("Add", x, y)), g.op("Add", y, x)
    g.ret(g.op("Relu", g.op("Mul", p, q)))
    result = runs_for(g, dict(x=(1,), y=(4,)), dict(x=(4,), y=(4,)))
    assert all(len(r.fused.graphs[0].of_type("Broadcast")) == 0 for r in result.regions)


def test_select_demands_equal_shapes_as_tf_does():
    g = GraphBuilder()
    x, y = g.arg("x", FLOAT32, ("a", 4)), g.arg("y", FLOAT32, ("b", 4))
    c = g.op("Greater", x, g.const(0.0))
    g.ret(g.op("Neg", g.op("Select", c, g.op("Abs", x), y, dims=("a", 4))))
    result = runs_for(g, dict(x=(3, 4), y=(3, 4)))
    refuses(result.regions[-1], np.zeros((3, 4), np.float32), np.zeros((1, 4), np.float32))


@pytest.mark.parametrize("view", ["Identity", "StopGradient", "PreventGradient", "Snapshot"])
def test_identity_like_views_vanish(view):
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (4, 8))
    g.ret(g.op(view, g.op("Relu", g.op(view, g.op("Neg", g.op(view, x))))))
    result = run_and_compare(g, x=(4, 8))
    assert names(result) == ["autofuse_pointwise_0_%s_Neg_%s_Relu_%s" % (view, view, view)]
    assert len(result.regions[0].fused.graphs[0].nodes) == 6


def test_squeeze_and_expand_dims():
    g = GraphBuilder()
    x, y = g.arg("x", FLOAT32, ("b", 1, 8)), g.arg("y", FLOAT32, ("b", 4, 8))
    s = g.op("Squeeze", g.op("Abs", x), dims=("b", 8), attrs={"squeeze_dims": [1]})
    e = g.op("ExpandDims", g.op("Neg", s), g.const(1, INT32), dims=("b", 1, 8))
    g.ret(g.op("Mul", e, y))
    result = runs_for(g, *[dict(x=(b, 1, 8), y=(b, 4, 8)) for b in (3, 1, 0)])
    assert len(result.regions) == 1


def test_flattening_refines_the_axes(golden):
    g = GraphBuilder()
    x, y = g.arg("x", FLOAT32, (16, 64)), g.arg("y", FLOAT32, (1024,))
    g.ret(g.op("Add", g.reshape(g.op("Exp", g.op("Abs", x)), (1024,)), y))
    result = run_and_compare(g, x=(16, 64), y=(1024,))
    golden("flattening.txt", dump(result.regions[0].fused))


def test_unflattening_with_a_broadcast_partner():
    g = GraphBuilder()
    x, y, z = g.arg("x", FLOAT32, (6, 20)), g.arg("y", FLOAT32, (3, 1, 4)), g.arg("z", FLOAT32, (120,))
    cube = g.reshape(g.op("Neg", g.reshape(g.op("Abs", x), (120,))), (3, 10, 4))
    g.ret(g.op("Add", g.reshape(g.op("Mul", cube, y), (120,)), z))
    result = run_and_compare(g, x=(6, 20), y=(3, 1, 4), z=(120,))
    assert len(result.regions) >= 1
    # 20 = 5 * 4 and 10 = 2 * 5: the axes of all three shapes are (3, 2, 5, 4).
    assert [a.size for a in result.regions[-1].fused.graphs[0].axes] == [3, 2, 5, 4]


def test_shapes_without_a_common_refinement_are_cut_apart():
    g = GraphBuilder()
    x, y = g.arg("x", FLOAT32, (4, 6)), g.arg("y", FLOAT32, (6, 1))
    a = g.op("Exp", g.op("Mul", x, g.op("Neg", x)))
    g.ret(g.op("Relu", g.op("Mul", g.reshape(a, (6, 4)), y)))
    result = run_and_compare(g, x=(4, 6), y=(6, 1))
    assert len(result.regions) == 2
    assert "NF1006" in {r.code for r in result.refusals}


def test_reshape_with_run_time_dims():
    g = GraphBuilder()
    x, y = g.arg("x", FLOAT32, ("b", 8, 16)), g.arg("y", FLOAT32, (128,))
    flat = g.reshape(g.op("Abs", x), (-1, 128))
    back = g.reshape(g.op("Exp", g.op("Mul", flat, y)), ("b", 8, 16))
    g.ret(g.op("Add", back, x))
    # The operand's "b" reads -1 at run time: TF's Reshape takes one of them.
    result = runs_for(g, *[dict(x=(b, 8, 16), y=(128,)) for b in (3, 1)])
    assert len(result.regions) == 1


def test_reshape_of_everything_into_one_dim():
    g = GraphBuilder()
    x, y = g.arg("x", FLOAT32, ("b", "c")), g.arg("y", FLOAT32, ("b", "c"))
    g.ret(g.op("Mul", g.reshape(g.op("Abs", x), (-1,)), g.reshape(g.op("Neg", y), (-1,))))
    result = runs_for(g, dict(x=(3, 5), y=(3, 5)), dict(x=(1, 4), y=(1, 4)))
    assert len(result.regions) == 1


def test_reshape_with_a_rest_beside_a_run_time_dim():
    """[b, 4, c] -> [b, -1]: TF fails for an empty batch, so the fused op must leave that to it."""
    g = GraphBuilder()
    x, y = g.arg("x", FLOAT32, ("b", 4, "c")), g.arg("y", FLOAT32, ("b", 1))
    g.ret(g.op("Mul", g.reshape(g.op("Abs", x), ("b", -1)), y))
    g.out_shapes[g.names.index("mul_0")] = (g.out_shapes[g.names.index("reshape_0")][0],)
    result = plan(g.view(), keep_config(), "ascend")
    check_plan(g, result)
    (region,) = result.regions
    (out,) = evaluate_fused(region.fused, [np.ones((3, 4, 5), np.float32), np.full((3, 1), 2, np.float32)])
    assert out.shape == (3, 20) and (out == 2).all()
    refuses(region, np.ones((0, 4, 5), np.float32), np.ones((0, 1), np.float32))


def test_inexact_reshape_stays():
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, ("b", 64))
    g.ret(g.op("Relu", g.reshape(g.op("Abs", x), (-1, 128))))
    result = plan(g.view(), keep_config(), "ascend")
    assert [d.code for d in result.decisions if d.op == "Reshape"] == ["NF2014"]


def test_reshape_of_a_broadcast_at_run_time_stays_right():
    g = GraphBuilder()
    x, y = g.arg("x", FLOAT32, ("a", 4)), g.arg("y", FLOAT32, ("b", 4))
    s = g.op("Add", g.op("Abs", x), y)
    g.ret(g.op("Relu", g.reshape(s, (-1,))))
    runs_for(g, dict(x=(3, 4), y=(3, 4)), dict(x=(1, 4), y=(5, 4)), dict(x=(5, 4), y=(1, 4)))


def test_an_operand_that_is_flattened_and_may_be_broadcast():
    g = GraphBuilder()
    x, y = g.arg("x", FLOAT32, ("a", 4, 2)), g.arg("y", FLOAT32, ("b", 8))
    g.ret(g.op("Relu", g.op("Add", g.op("Neg", g.reshape(g.op("Abs", x), ("a", 8))), y)))
    runs_for(g, dict(x=(3, 4, 2), y=(3, 8)), dict(x=(1, 4, 2), y=(5, 8)))


def test_the_same_tensor_as_row_and_column():
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (5,))
    n = g.op("Neg", x)
    g.ret(g.op("Sub", g.reshape(n, (5, 1)), g.op("Abs", n)))
    run_and_compare(g, x=(5,))


def test_rank_0():
    g = GraphBuilder()
    x, y = g.arg("x", FLOAT32, ()), g.arg("y", FLOAT32, (1, 1))
    g.ret(g.op("Relu", g.op("Neg", x)), g.op("Mul", g.op("Abs", y), x))
    result = run_and_compare(g, x=(), y=(1, 1))
    assert all([a.size for a in r.fused.graphs[0].axes] == [1] for r in result.regions)


@pytest.mark.parametrize("shape", [(0,), (0, 4), (4, 0), (0, 0)])
def test_empty_tensors(shape):
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, shape)
    g.ret(g.reshape(g.op("Relu", g.op("Add", x, g.op("Neg", x))), (0,)))
    run_and_compare(g, x=shape)


def test_rank_8():
    shape = (1, 2, 1, 3, 2, 1, 2, 1)
    g = GraphBuilder()
    x, y = g.arg("x", FLOAT32, shape), g.arg("y", FLOAT32, (2, 1, 2, 1))
    g.ret(g.op("Relu", g.op("Add", x, y)))
    run_and_compare(g, x=shape, y=(2, 1, 2, 1))


def test_unknown_rank_is_refused():
    g = GraphBuilder()
    x, y = g.arg("x", FLOAT32, None), g.arg("y", FLOAT32, (4,))
    g.ret(g.op("Relu", g.op("Add", x, y)), g.op("Neg", g.op("Abs", y)))
    result = plan(g.view(), keep_config(), "ascend")
    assert {d.name: d.code for d in result.decisions if d.op in ("Relu", "Add", "Neg")} == {
        "add_0": "NF2004",
        "relu_0": "NF2004",
        "neg_0": "",
    }


def test_known_shapes_that_do_not_broadcast_are_left_to_tf():
    g = GraphBuilder()
    x, y = g.arg("x", FLOAT32, (3,)), g.arg("y", FLOAT32, (4,))
    g.ret(g.op("Relu", g.op("Add", x, y, dims=(3,))))
    result = plan(g.view(), keep_config(), "ascend")
    assert [(d.code, d.reason) for d in result.decisions if d.op == "Add"] == [
        ("NF2014", "dims 3 and 4 do not broadcast")
    ]


def test_what_tf_infers_beyond_the_inputs_becomes_a_guard():
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, ("b", 4))
    g.ret(g.op("Relu", g.op("Neg", x, dims=(3, 4))))
    result = runs_for(g, dict(x=(3, 4)))
    refuses(result.regions[0], np.zeros((2, 4), np.float32))


def test_a_size_that_no_input_tells_takes_only_its_op_out():
    """BroadcastTo to a shape computed outside: no dim of the region's tensors is n."""
    g = GraphBuilder()
    x, shape = g.arg("x", FLOAT32, (1, 4)), g.arg("n", INT32, (2,))
    wide = g.op("BroadcastTo", g.op("Exp", g.op("Abs", x)), shape, dims=("n", 4))
    g.ret(g.op("Relu", g.op("Neg", wide)))
    result = plan(g.view(), keep_config(), "ascend")
    check_plan(g, result)
    assert {
        d.op: d.code for d in result.decisions if d.op in ("BroadcastTo", "Exp", "Abs", "Relu", "Neg")
    } == {"BroadcastTo": "NF2017", "Exp": "", "Abs": "", "Relu": "", "Neg": ""}


def test_a_size_that_another_input_tells_is_fused():
    g = GraphBuilder()
    x, y, shape = g.arg("x", FLOAT32, (1, 4)), g.arg("y", FLOAT32, ("n", 4)), g.arg("s", INT32, (2,))
    wide = g.op("BroadcastTo", g.op("Exp", g.op("Abs", x)), shape, dims=("n", 4))
    g.ret(g.op("Mul", wide, y))
    result = plan(g.view(), keep_config(), "ascend")
    check_plan(g, result)
    assert names(result) == ["autofuse_pointwise_0_Abs_Exp_BroadcastTo_Mul"]
    compare_with_graph(
        g,
        result,
        dict(x=np.ones((1, 4), np.float32), y=np.ones((6, 4), np.float32), s=np.array([6, 4], np.int32)),
    )


def test_an_input_dim_that_is_a_multiple_of_another():
    """The flat tensor comes from outside with 8 * b elements; the region splits it again and so needs b
    itself."""
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, ("b", 8))
    flat = g.outside(g.reshape(g.outside(x), (-1,)))
    g.symbols[-1]["hint"] = 16
    a = g.reshape(flat, ("b", 8))
    y = g.arg("y", FLOAT32, (8,))
    g.ret(g.op("Relu", g.op("Mul", a, y)))
    runs_for(g, dict(x=(3, 8), y=(8,)), dict(x=(1, 8), y=(8,)))
