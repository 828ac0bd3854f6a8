"""Precision modes: which Casts appear, and where the names have them."""

import numpy as np
import pytest

from tests.graphs import GraphBuilder, evaluate_graph
from tests.lowering.checks import check_plan, keep_config, names
from tf_autofuse.config import Config
from tf_autofuse.ir.dtypes import BFLOAT16, FLOAT16, FLOAT32, INT32
from tf_autofuse.ir.evaluate import evaluate_fused
from tf_autofuse.lowering.plan import plan
from tf_autofuse.lowering.precision_mode import low_precision


def planned(g, mode="force_fp16", target="ascend", **fields):
    result = plan(g.view(), Config(precision_mode=mode, **fields), target)
    check_plan(g, result)
    return result


def graph(*ops, dtype=FLOAT32):
    g = GraphBuilder()
    x = g.arg("x", dtype, (4, 8))
    for op in ops:
        x = g.op(op, x)
    g.ret(x)
    return g


def test_one_cast_in_and_one_out():
    assert names(planned(graph("Abs", "Neg", "Relu"))) == ["autofuse_pointwise_0_Cast_Abs_Neg_Relu_Cast"]


def test_an_input_read_twice_is_cast_once():
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (4, 8))
    g.ret(g.op("Mul", g.op("Abs", x), g.op("Neg", x)))
    assert names(planned(g)) == ["autofuse_pointwise_0_Cast_Abs_Neg_Mul_Cast"]


def test_an_output_in_the_middle_is_cast_back_where_it_is_made():
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (4, 8))
    a = g.op("Abs", x)
    g.ret(a, g.op("Relu", g.op("Neg", a)))
    assert names(planned(g)) == ["autofuse_pointwise_0_Cast_Abs_Cast_Neg_Relu_Cast"]


def test_values_round_where_the_names_say():
    """float16 at the inputs, float32 inside, float16 at the output."""
    g = GraphBuilder()
    x, y = g.arg("x", FLOAT32, (64,)), g.arg("y", FLOAT32, (64,))
    g.ret(g.op("Mul", g.op("Add", x, y), y))
    (region,) = planned(g).regions
    rng = np.random.RandomState(0)
    a, b = (rng.randn(64).astype(np.float32) for _ in range(2))
    (got,) = evaluate_fused(region.fused, [a, b])
    ha, hb = (v.astype(np.float16).astype(np.float32) for v in (a, b))
    np.testing.assert_array_equal(got, ((ha + hb) * hb).astype(np.float16).astype(np.float32))
    assert (got != (a + b) * b).any()


def test_integers_and_half_graphs_get_no_casts():
    assert names(planned(graph("Abs", "Neg", dtype=INT32))) in ([], ["autofuse_pointwise_0_Abs_Neg"])
    assert names(planned(graph("Abs", "Neg", dtype=FLOAT16))) == ["autofuse_pointwise_0_Abs_Neg"]


def test_casts_of_the_user_have_no_precision_of_their_own():
    g = GraphBuilder()
    x = g.arg("x", INT32, (8,))
    f = g.op("Cast", x, dtype=FLOAT32)
    g.ret(g.op("Relu", g.op("Neg", f)))
    assert names(planned(g)) == ["autofuse_pointwise_0_Cast_Cast_Neg_Relu_Cast"]
    (region,) = planned(g).regions
    assert [n.y.dtype for n in region.fused.graphs[0].of_type("Cast")][:2] == [FLOAT32, FLOAT16]


def test_comparisons_give_bool_from_float16():
    g = GraphBuilder()
    x, y = g.arg("x", FLOAT32, (8,)), g.arg("y", FLOAT32, (8,))
    g.ret(g.op("Greater", g.op("Neg", x), y))
    assert names(planned(g)) == ["autofuse_pointwise_0_Cast_Neg_Cast_Greater"]


def test_constants_are_rounded_without_a_cast():
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (8,))
    g.ret(g.op("Relu", g.op("Add", x, g.const(0.1))))
    (region,) = planned(g).regions
    assert region.fused.name == "autofuse_pointwise_0_Cast_Add_Relu_Cast"
    assert [n.attr("value") for n in region.fused.graphs[0].of_type("Scalar")] == [0.0999755859375]


@pytest.mark.parametrize(
    "mode", ["must_keep_origin_dtype", "allow_fp32_to_fp16", "force_fp32", "cube_fp16in_fp32out"]
)
def test_modes_that_keep_float32(mode):
    assert names(planned(graph("Abs", "Neg"), mode)) == ["autofuse_pointwise_0_Abs_Neg"]


@pytest.mark.parametrize(
    "mode, dtype", [("allow_mix_precision", FLOAT16), ("allow_mix_precision_bf16", BFLOAT16)]
)
def test_mixed_precision_follows_the_producers(mode, dtype):
    g = GraphBuilder()
    x, w = g.arg("x", FLOAT32, (4, 4)), g.arg("w", FLOAT32, (4, 4))
    product = g.op("MatMul", x, w)
    g.ret(g.op("Relu", g.op("Neg", g.op("Identity", product))))
    g.ret(g.op("Relu", g.op("Neg", g.op("Mean", product, dims=(4, 4)))))
    found = planned(g, mode)
    assert sorted(n.split("_", 3)[3] for n in names(found)) == ["Identity_Cast_Neg_Relu_Cast", "Neg_Relu"]
    casts = [n.y.dtype for r in found.regions for n in r.fused.graphs[0].of_type("Cast")]
    assert casts == [dtype, FLOAT32, dtype, FLOAT32]


def test_an_op_without_float32_is_allowed_float16():
    view = graph("Abs", "Neg").view()
    found = low_precision(
        view, "allow_fp32_to_fp16", lambda op: False, lambda op, dtype: op == "Abs" and dtype is FLOAT16
    )
    assert [view.ops[n] for n, low in enumerate(found.nodes) if low] == ["Abs"]
    assert low_precision(view, "allow_fp32_to_fp16", lambda op: False, lambda op, dtype: True) is None


def test_the_mode_changes_neither_regions_nor_results_beyond_float16():
    g = graph("Abs", "Neg", "Square", "Relu")
    args = {"x": np.random.RandomState(1).randn(4, 8).astype(np.float32)}
    (kept,), (forced,) = plan(g.view(), keep_config(), "ascend").regions, planned(g).regions
    assert kept.nodes == forced.nodes
    want = evaluate_graph(g, args)[forced.outputs[0][0]][0]
    np.testing.assert_allclose(evaluate_fused(forced.fused, [args["x"]])[0], want, rtol=2e-3, atol=1e-3)
