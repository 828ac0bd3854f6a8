"""plan(): which regions come out of small graphs, and that they compute what the graph does."""

import numpy as np
import pytest

from tests.graphs import GraphBuilder
from tests.lowering.checks import check_plan, fused_types, keep_config, names, run_and_compare
from tf_autofuse.lowering import bodies
from tf_autofuse.config import Config
from tf_autofuse.ir.dtypes import BOOL, FLOAT16, FLOAT32, FLOAT64, INT32
from tf_autofuse.ir.text import dump
from tf_autofuse.lowering.plan import plan


def public_example():
    g = GraphBuilder()
    data1 = g.arg("data1", FLOAT32, (128,))
    data2 = g.arg("data2", FLOAT32, (192, 128))
    g.ret(g.op("Relu", g.op("Add", g.op("Abs", data1), data2)))
    return g


def test_public_example_keeps_dtypes(golden):
    result = plan(public_example().view(), Config(precision_mode="must_keep_origin_dtype"), "ascend")
    assert names(result) == ["autofuse_pointwise_0_Abs_Add_Relu"]
    golden("public_example.txt", dump(result.regions[0].fused))
    check_plan(public_example(), result)


def test_public_example_in_inference(golden):
    result = plan(public_example().view(), Config(graph_run_mode=0), "ascend")
    assert names(result) == ["autofuse_pointwise_0_Cast_Abs_Cast_Add_Relu_Cast"]
    golden("public_example_float16.txt", dump(result.regions[0].fused))


def test_the_default_on_the_host_and_in_training_keeps_dtypes():
    view = public_example().view()
    assert names(plan(view, Config(graph_run_mode=0), "host")) == ["autofuse_pointwise_0_Abs_Add_Relu"]
    assert names(plan(view, Config(graph_run_mode=1), "ascend")) == ["autofuse_pointwise_0_Abs_Add_Relu"]


def test_diamond_is_one_region():
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (8, 16))
    a = g.op("Abs", x)
    g.ret(g.op("Mul", g.op("Exp", a), g.op("Neg", a)))
    result = run_and_compare(g, x=(8, 16))
    assert names(result) == ["autofuse_pointwise_0_Abs_Exp_Neg_Mul"]
    assert len(result.regions[0].outputs) == 1


def test_fetched_intermediate_is_a_second_output():
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (8, 16))
    a = g.op("Abs", x)
    g.ret(a, g.op("Relu", g.op("Neg", a)))
    result = run_and_compare(g, x=(8, 16))
    assert names(result) == ["autofuse_pointwise_0_Abs_Neg_Relu"]
    assert result.regions[0].outputs == ((a.node, 0), (a.node + 3, 0)) or len(result.regions[0].outputs) == 2


def test_several_readers_inside_and_outside():
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (8, 16))
    a = g.op("Abs", x)
    b, c = g.op("Exp", a), g.op("Neg", a)
    g.ret(g.outside(a), g.op("Add", b, c))
    result = run_and_compare(g, x=(8, 16))
    assert len(result.regions) == 1 and (a.node, 0) in result.regions[0].outputs


def test_horizontal_regions_share_an_input():
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (8, 16))
    g.ret(g.op("Relu", g.op("Neg", x)), g.op("Exp", g.op("Abs", x)))
    result = run_and_compare(g, x=(8, 16))
    assert names(result) == ["autofuse_pointwise_0_Neg_Relu_Abs_Exp"]
    assert len(result.regions[0].inputs) == 1 and len(result.regions[0].outputs) == 2


def test_nothing_shared_is_not_fused():
    g = GraphBuilder()
    x, y = g.arg("x", FLOAT32, (8, 16)), g.arg("y", FLOAT32, (8, 16))
    g.ret(g.op("Relu", g.op("Neg", x)), g.op("Exp", g.op("Abs", y)))
    assert len(run_and_compare(g, x=(8, 16), y=(8, 16)).regions) == 2


def test_small_tensor_is_computed_small():
    g = GraphBuilder()
    x, y = g.arg("x", FLOAT32, (16,)), g.arg("y", FLOAT32, (8, 16))
    g.ret(g.op("Mul", g.op("Exp", g.op("Abs", x)), y))
    graph = run_and_compare(g, x=(16,), y=(8, 16)).regions[0].fused.graphs[0]
    exp, broadcast = graph.of_type("Exp"), graph.of_type("Broadcast")
    assert [n.y.repeats for n in exp] == [(1, 16)]
    assert len(broadcast) == 1 and broadcast[0].inputs[0].node == exp[0].name


def test_two_extents_are_two_regions():
    """a[16] is read by a larger tensor's region and fetched: it cannot be stored from there."""
    g = GraphBuilder()
    x, y = g.arg("x", FLOAT32, (16,)), g.arg("y", FLOAT32, (8, 16))
    a = g.op("Exp", g.op("Abs", x))
    g.ret(a, g.op("Relu", g.op("Mul", a, y)))
    result = run_and_compare(g, x=(16,), y=(8, 16))
    assert names(result) == ["autofuse_pointwise_0_Abs_Exp", "autofuse_pointwise_1_Mul_Relu"]
    assert [r.code for r in result.refusals] == ["NF1006"]


def test_small_tensor_read_twice_by_one_region_vanishes():
    g = GraphBuilder()
    x, y = g.arg("x", FLOAT32, (16,)), g.arg("y", FLOAT32, (8, 16))
    a = g.op("Exp", g.op("Abs", x))
    g.ret(g.op("Mul", g.op("Add", a, y), g.op("Neg", a)))
    result = run_and_compare(g, x=(16,), y=(8, 16))
    assert len(result.regions) == 1 and len(result.regions[0].outputs) == 1


@pytest.mark.parametrize("disable, expected", [(False, []), (True, ["autofuse_pointwise_0_Exp"])])
def test_one_op_is_lifted(disable, expected):
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (8,))
    g.ret(g.op("Identity", g.outside(g.op("Exp", x))))
    result = plan(g.view(), keep_config(disable_lifting=disable), "ascend")
    assert names(result) == expected
    if not disable:
        assert fused_types(g, result) == []
        assert [d.code for d in result.decisions if d.op == "Exp"] == ["NF2016"]


def test_views_and_casts_of_one_op_do_not_make_a_region():
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (8, 4))
    g.ret(g.op("Identity", g.reshape(g.op("Exp", x), (32,))))
    assert names(plan(g.view(), Config(graph_run_mode=0), "ascend")) == []


def test_scalar_constants_are_inlined_and_belong_to_the_region():
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (8,))
    one, splat = g.const(1.5), g.const(np.full((8,), 2.5))
    g.ret(g.op("Mul", g.op("Add", x, one), splat))
    region = run_and_compare(g, x=(8,)).regions[0]
    assert region.inputs == ((x.node, 0),)
    assert {one.node, splat.node} <= set(region.nodes)
    assert sorted(n.attr("value") for n in region.fused.graphs[0].of_type("Scalar")) == [1.5, 2.5]
    assert region.fused.name == "autofuse_pointwise_0_Add_Mul"


def test_a_constant_with_other_readers_stays_outside_as_an_unread_input():
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (8,))
    one = g.const(1.5)
    g.ret(g.op("Relu", g.op("Add", x, one)), g.outside(one))
    region = run_and_compare(g, x=(8,)).regions[0]
    assert region.inputs == ((x.node, 0), (one.node, 0)) and one.node not in region.nodes
    assert len(region.fused.graphs[0].of_type("Data")) == 1


def test_signed_zeros_and_nans_are_no_splat_and_no_common_subexpression():
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (2,))
    mixed, minus, plus, nan = g.const([0.0, -0.0]), g.const(-0.0), g.const(0.0), g.const(float("nan"))
    g.ret(
        g.op(
            "Mul",
            g.op("Add", g.op("Mul", x, mixed), nan),
            g.op("Maximum", minus, g.op("Neg", g.op("Mul", x, plus))),
        )
    )
    result = run_and_compare(g, x=(2,))
    values = [n.attr("value") for n in result.regions[0].fused.graphs[0].of_type("Scalar")]
    assert [np.signbit(v) for v in values if v == 0] in ([True, False], [False, True])
    assert (mixed.node, 0) in result.regions[0].inputs


def test_a_big_constant_is_an_input():
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (3,))
    table = g.const([1.0, 2.0, 3.0])
    g.ret(g.op("Relu", g.op("Add", x, table)))
    region = run_and_compare(g, x=(3,)).regions[0]
    # Only the region reads it, yet its elements come from outside.
    assert (table.node, 0) in region.inputs and table.node not in region.nodes


def test_only_constants_is_left_to_folding():
    g = GraphBuilder()
    a = g.op("Add", g.const(1.0), g.const(2.0))
    g.ret(g.op("Relu", g.op("Neg", a)))
    result = plan(g.view(), keep_config(), "ascend")
    assert [d.code for d in result.decisions if d.op == "Add"] == ["NF2015"]


def test_fills():
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (4, 8))
    y = g.arg("y", FLOAT32, (8,))
    one = g.op("OnesLike", x)
    wide = g.op("BroadcastTo", g.op("Neg", y), g.const([4, 8], INT32), dims=(4, 8))
    fill = g.op("Fill", g.const([4, 8], INT32), g.const(2.5), dims=(4, 8))
    g.ret(g.op("Mul", g.op("Add", g.op("Sub", x, one), wide), fill))
    result = run_and_compare(g, x=(4, 8), y=(8,))
    assert len(result.regions) == 1


def test_a_fill_wider_than_its_partner_decides_the_shape():
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, ())
    fill = g.op("Fill", g.const([4], INT32), g.const(2.5), dims=(4,))
    g.ret(g.op("Relu", g.op("Add", g.op("Neg", x), fill)))
    run_and_compare(g, x=())


def test_an_equal_op_twice_is_computed_once():
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (8,))
    g.ret(g.op("Mul", g.op("Exp", x), g.op("Exp", x)))
    assert len(run_and_compare(g, x=(8,)).regions[0].fused.graphs[0].of_type("Exp")) == 1


def test_casts_of_the_user_are_kept():
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (64,))
    half = g.op("Cast", x, dtype=FLOAT16, attrs={"SrcT": 1, "DstT": 19})
    g.ret(g.op("Neg", g.op("Cast", half, dtype=FLOAT32, attrs={"SrcT": 19, "DstT": 1})))
    graph = run_and_compare(g, x=(64,)).regions[0].fused.graphs[0]
    assert [n.y.dtype for n in graph.of_type("Cast")] == [FLOAT16, FLOAT32]


def test_a_cast_read_twice_keeps_both_readers_right():
    """The middle of a float32 -> float16 -> float32 pair has a second reader."""
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (64,))
    half = g.op("Cast", x, dtype=FLOAT16)
    g.ret(half, g.op("Neg", g.op("Cast", half, dtype=FLOAT32)))
    run_and_compare(g, x=(64,))


def test_float16_computes_in_float32_and_rounds_once(golden):
    g = GraphBuilder()
    x, y = g.arg("x", FLOAT16, (8, 16)), g.arg("y", FLOAT16, (16,))
    a = g.op("Abs", x)
    g.ret(g.op("Mul", g.op("Exp", a), g.op("Add", a, y)))
    result = plan(g.view(), keep_config(), "ascend")
    check_plan(g, result)
    golden("float16.txt", dump(result.regions[0].fused))


def test_blacklisted_types_stay_in_16_bits():
    g = GraphBuilder()
    x = g.arg("x", FLOAT16, (8, 16))
    g.ret(g.op("Relu", g.op("Add", g.op("Abs", x), x)))
    result = plan(g.view(), keep_config(enhance_precision_blacklist=("add",)), "ascend")
    check_plan(g, result)
    graph = result.regions[0].fused.graphs[0]
    assert {n.type: n.y.dtype for n in graph.nodes if n.type in ("Abs", "Add", "Relu")} == {
        "Abs": FLOAT32,
        "Add": FLOAT16,
        "Relu": FLOAT32,
    }


def test_dtypes_beyond_the_target_are_refused_with_a_reason():
    g = GraphBuilder()
    x = g.arg("x", FLOAT64, (8,))
    g.ret(g.op("Relu", g.op("Neg", x)))
    result = plan(g.view(), keep_config(), "ascend")
    assert names(result) == []
    assert {d.code for d in result.decisions if d.op in ("Relu", "Neg")} == {"NF2003"}
    assert names(plan(g.view(), keep_config(), "host")) == ["autofuse_pointwise_0_Neg_Relu"]


def test_bool_and_select():
    g = GraphBuilder()
    x, y = g.arg("x", FLOAT32, (8, 4)), g.arg("y", FLOAT32, (4,))
    c = g.op("Greater", x, y)
    g.ret(g.op("SelectV2", c, g.op("Neg", x), y))
    run_and_compare(g, x=(8, 4), y=(4,))


def test_select_by_rows():
    g = GraphBuilder()
    x, c = g.arg("x", FLOAT32, (8, 4)), g.arg("c", BOOL, (8,))
    g.ret(g.op("Neg", g.op("Select", g.op("LogicalNot", c), x, g.op("Abs", x), dims=(8, 4))))
    result = plan(g.view(), keep_config(), "ascend")
    check_plan(g, result)
    assert len(result.regions) == 1


def test_plan_is_deterministic():
    first = plan(public_example().view(), Config(graph_run_mode=0), "ascend")
    bodies.forget()
    assert plan(public_example().view(), Config(graph_run_mode=0), "ascend") == first


@pytest.mark.parametrize("perm, rows, fetched, outputs", [
    ([0, 1], 512, True, 1), ([1, 0], 512, True, 2), ([0, 1], 8, True, 2), ([0, 1], 512, False, 1)])
def test_a_transpose_that_keeps_the_order_is_a_view(perm, rows, fetched, outputs):
    """Stored in the place of what it views, beside it only where it is small."""
    g = GraphBuilder()
    a = g.op("Abs", g.op("Neg", g.arg("x", FLOAT32, (rows, 64))))
    dims = tuple((rows, 64)[p] for p in perm)
    moved = g.op("Transpose", a, g.const(perm, INT32), dims=dims, dtype=FLOAT32)
    flat = g.op("Reshape", moved, g.const([rows * 64], INT32), dims=(rows * 64,), dtype=FLOAT32)
    g.ret(*([a] if fetched else []), flat)
    result = plan(g.view(), keep_config(), "host")
    check_plan(g, result)
    (region,) = result.regions
    assert len(region.outputs) == outputs
    assert ((flat.node, 0) in region.outputs) == (outputs == 2 or not fetched)
