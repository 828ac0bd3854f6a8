"""Reductions from TF ops to HintGraphs: which become one loop nest, that they compute what the graph does,
and why others do not fuse."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tests.graphs import GraphBuilder, Tensor, evaluate_graph
from tests.lowering.checks import check_plan, compare_with_graph, keep_config, names, random_array
from tf_autofuse.config import Config
from tf_autofuse.config_table import FAMILIES
from tf_autofuse.fusion import fuse, reasons
from tf_autofuse.ir.dtypes import BOOL, BY_TF, FLOAT16, FLOAT32, FLOAT64, INT32, INT64, INT8
from tf_autofuse.ir.evaluate import evaluate_fused
from tf_autofuse.ir.text import dump
from tf_autofuse.lowering.plan import plan


def run(g, config=None, seed=0, **shapes):
    result = plan(g.view(), config or keep_config(), "host")
    check_plan(g, result)
    dtypes = {g.names[i]: BY_TF[g.out_dtypes[i][0]] for i, op in enumerate(g.ops) if op == "_Arg"}
    args = {name: random_array(dtypes[name], shapes[name], seed + i) for i, name in enumerate(sorted(dtypes))}
    compare_with_graph(g, result, args, sums=True)
    return result


def axes_of(result, region=0, graph=0):
    return [str(a.size) for a in result.regions[region].fused.graphs[graph].axes]


def nodes_of(result, *types):
    return [n for r in result.regions for graph in r.fused.graphs for n in graph.of_type(*types)]


def layer_norm(g, x, axis=-1):
    d = g.op("Sub", x, g.reduce("Mean", x, [axis], True))
    variance = g.reduce("Mean", g.op("Square", d), [axis], True)
    return g.op("Mul", d, g.op("Rsqrt", g.op("AddV2", variance, g.const(1e-3))))


def test_layer_norm_is_one_loop_nest(golden):
    g = GraphBuilder()
    g.ret(layer_norm(g, g.arg("x", FLOAT32, ("b", 64))))
    result = run(g, x=(5, 64))
    assert names(result) == ["autofuse_reduce_0_Mean_Sub_Square_Mean_AddV2_Rsqrt_Mul"]
    golden("layer_norm.txt", dump(result.regions[0].fused))


def test_softmax_written_out_and_as_an_op(golden):
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (7, "n"))
    e = g.op("Exp", g.op("Sub", x, g.reduce("Max", x, [1], True)))
    g.ret(g.op("RealDiv", e, g.reduce("Sum", e, [1], True)))
    assert len(nodes_of(run(g, x=(7, 10)), "Load")) == 1
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (2, 3, "n"))
    g.ret(g.op("Neg", g.op("Softmax", g.op("Relu", x))))
    result = run(g, x=(2, 3, 5))
    assert names(result) == ["autofuse_reduce_0_Relu_Softmax_Neg"]
    assert len(result.regions[0].fused.graphs) == 1
    golden("softmax.txt", dump(result.regions[0].fused))


def test_several_reductions_of_one_input():
    g = GraphBuilder()
    x = g.op("Relu", g.arg("x", FLOAT32, (4, 8)))
    g.ret(*[g.reduce(op, x, [1]) for op in ("Sum", "Max", "Mean")])
    result = run(g, x=(4, 8))
    assert names(result) == ["autofuse_reduce_0_Relu_Sum_Max_Mean"]
    assert len(nodes_of(result, "Load")) == 1 and axes_of(result) == ["4", "8"]


def test_a_reduction_and_what_it_reduces():
    g = GraphBuilder()
    x = g.op("Relu", g.arg("x", FLOAT32, (4, 8)))
    g.ret(x, g.reduce("Sum", x, [0]), g.op("Exp", x))
    result = run(g, x=(4, 8))
    assert len(result.regions) == 1 and len(result.regions[0].fused.graphs) == 1


def test_axes_that_nest():
    g = GraphBuilder()
    x = g.op("Abs", g.arg("x", FLOAT32, (3, 4, 5)))
    g.ret(g.reduce("Sum", x, [2]), g.reduce("Max", x, [1, 2]), g.reduce("Mean", g.reduce("Sum", x, [2]), [1]))
    result = run(g, x=(3, 4, 5))
    assert names(result) == ["autofuse_reduce_0_Abs_Sum_Max_Sum_Mean"]
    assert len(result.regions[0].fused.graphs) == 1 and axes_of(result) == ["3", "4", "5"]


@pytest.mark.parametrize("axes", [[0], [1], [2], [0, 1], [1, 2], [0, 2], [0, 1, 2], [-1], [-3, 2], []])
@pytest.mark.parametrize("keep", [False, True])
def test_axes(axes, keep):
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (3, "n", 5))
    g.ret(g.op("Neg", g.reduce("Sum", g.op("Abs", x), axes, keep)))
    result = run(g, x=(3, 4, 5))
    assert len(result.regions) == 1
    assert len(nodes_of(result, "Sum")) == bool(axes)


@pytest.mark.parametrize("shape", [(1, 4, 1), (0, 4, 2), (3, 0, 2), (3, 1, 0), (1, 1, 1)])
@pytest.mark.parametrize("op", ["Sum", "Mean", "Max", "Prod"])
def test_unit_and_empty_dims(shape, op):
    for axes in ([0], [1], [0, 2], [0, 1, 2]):
        for dims in (shape, ("a", "b", "c")):
            g = GraphBuilder()
            x = g.arg("x", FLOAT32, dims)
            g.ret(g.op("Neg", g.reduce(op, g.op("Abs", x), axes)))
            result = run(g, x=shape)
            if dims is not shape:
                assert len(result.regions) == 1


def test_all_ops():
    for op in ("Sum", "Mean", "Max", "Min", "Prod"):
        for dtype in (FLOAT32, FLOAT64, FLOAT16, INT32, INT64, INT8):
            g = GraphBuilder()
            x = g.arg("x", dtype, (3, 7))
            g.ret(g.reduce(op, g.op("Abs", x), [1]))
            result = run(g, x=(3, 7))
            assert len(result.regions) == 1, (op, dtype)
    for op in ("All", "Any"):
        g = GraphBuilder()
        x = g.arg("x", BOOL, (3, 7))
        g.ret(g.reduce(op, g.op("LogicalNot", x), [0]))
        assert names(run(g, x=(3, 7))) == ["autofuse_reduce_0_LogicalNot_%s" % op]
    for op in ("ArgMax", "ArgMin"):
        for dtype in (INT32, INT64):
            g = GraphBuilder()
            x = g.arg("x", FLOAT16, ("b", 7))
            g.ret(g.reduce(op, g.op("Neg", x), 1, dtype=dtype))
            assert names(run(g, x=(3, 7))) == ["autofuse_reduce_0_Neg_%s" % op]


def test_composed_ops():
    for op, dims, shape in (
        ("L2Loss", (), ("b", 7)), ("BiasAddGrad", (7,), ("b", 7)), ("LogSoftmax", ("b", 7), ("b", 7))
    ):
        g = GraphBuilder()
        x = g.arg("x", FLOAT32, shape)
        g.ret(g.op(op, g.op("Abs", x), dims=dims))
        assert names(run(g, x=(3, 7))) == ["autofuse_reduce_0_Abs_%s" % op]
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (2, 3, 4, "c"))
    g.ret(g.op("BiasAddGrad", g.op("Abs", x), dims=(3,), attrs={"data_format": b"NCHW"}))
    assert len(run(g, x=(2, 3, 4, 5)).regions) == 1


def test_cross_entropy_and_its_gradient():
    for read in ((0,), (1,), (0, 1)):
        g = GraphBuilder()
        x, labels = g.arg("x", FLOAT32, ("b", 5)), g.arg("y", FLOAT32, ("c", 5))
        loss = g.node("SoftmaxCrossEntropyWithLogits", [g.op("Relu", x), labels],
                      [(1, g.shape(("b",))), (1, g.shape(("b", 5)))])
        for port in read:
            g.ret(g.op("Neg", Tensor(loss, 1)) if port else g.reduce("Mean", Tensor(loss), [0]))
        result = run(g, x=(3, 5), y=(3, 5))
        assert [d.code for d in result.decisions if d.node == loss] == [""]
        assert [len(r.fused.guards) for r in result.regions] == [1]
        # A result that only the region reads is not stored.
        assert [len(r.outputs) for r in result.regions] == [len(read)]


def test_of_several_outputs_those_are_stored_that_something_outside_reads():
    g = GraphBuilder()
    x, labels = g.arg("x", FLOAT32, ("b", 5)), g.arg("y", FLOAT32, ("b", 5))
    node = g.node("SoftmaxCrossEntropyWithLogits", [g.op("Relu", x), labels],
                  [(1, g.shape(("b",))), (1, g.shape(("b", 5)))])
    g.ret(g.reduce("Mean", Tensor(node), [0]), Tensor(node, 1))
    (region,) = run(g, x=(3, 5), y=(3, 5)).regions
    assert (node, 1) in region.outputs and (node, 0) not in region.outputs


def batch_norm(attrs, **kw):
    g = GraphBuilder()
    training = attrs.get("is_training", True)
    x = g.arg("x", kw.get("dtype", FLOAT32), ("b", 2, 2, 3))
    vectors = [g.op("Abs", g.arg("v%d" % i, FLOAT32, (3,))) for i in range(2 if training else 4)]
    for i in range(2 if training else 0):
        vectors.append(g.arg("none%d" % i, FLOAT32, (kw.get("statistics", 0),)))
    y = g.node("FusedBatchNormV3", [x] + vectors,
               [(g.dtype(x).tf, g.dims(x))] + [(1, (3,))] * 4 + [(1, ())], attrs=dict(attrs, epsilon=0.01))
    g.ret(g.op("Relu", Tensor(y)), *(Tensor(y, port) for port in kw.get("read", ())))
    return g


NORM_SHAPES = dict(x=(2, 2, 2, 3), v0=(3,), v1=(3,), v2=(3,), v3=(3,), none0=(0,), none1=(0,))


def test_batch_norm_in_inference():
    g = batch_norm({"is_training": False, "data_format": "NHWC"})
    assert [len(r.nodes) for r in run(g, **NORM_SHAPES).regions] == [6]
    for broken in (batch_norm({"is_training": False, "data_format": "NCHW"}),
                   batch_norm({"is_training": False}, read=(1,)), batch_norm({}, statistics=3)):
        result = plan(broken.view(), keep_config(), "host")
        (decision,) = [d for d in result.decisions if d.op == "FusedBatchNormV3"]
        assert decision.region < 0 and decision.code in (reasons.REFUSED.name, reasons.OUTPUT_OUTSIDE.name)


@pytest.mark.parametrize("dtype", (FLOAT32, FLOAT16), ids=str)
@pytest.mark.parametrize("read", ((), (1, 2), (3, 4, 5)))
def test_batch_norm_in_training(dtype, read):
    result = run(batch_norm({}, dtype=dtype, read=read), **NORM_SHAPES)
    (name,) = [n for n in names(result) if n.startswith("autofuse_reduce_")]
    assert name.endswith("FusedBatchNormV3_Relu")
    # The number that TF's last output is has a loop nest of its own.
    assert [len(r.fused.graphs) for r in result.regions if r.name == name] == [1 + (5 in read)]
    off = keep_config(enable_pass=tuple(f for f in FAMILIES if f != "reduce"), disable_pass=("reduce",))
    decisions = plan(batch_norm({}).view(), off, "host").decisions
    (decision,) = [d for d in decisions if d.op == "FusedBatchNormV3"]
    assert decision.code == reasons.FAMILY.name


@pytest.mark.parametrize("training", (True, False))
@pytest.mark.parametrize("dtype", (FLOAT32, FLOAT16), ids=str)
def test_the_gradient_of_batch_norm(training, dtype):
    g = GraphBuilder()
    dy, x = (g.arg(name, dtype, ("b", 2, 2, 3)) for name in "yx")
    vectors = [g.arg("v%d" % i, FLOAT32, (3,)) for i in range(3)]
    vectors[2] = g.op("Abs", vectors[2])
    node = g.node("FusedBatchNormGradV2", [g.op("Neg", dy), x] + vectors,
                  [(dtype.tf, g.dims(x))] + [(1, (3,))] * 2 + [(1, (0,))] * 2,
                  attrs={"epsilon": 0.01, "is_training": training})
    g.ret(*(Tensor(node, port) for port in range(3)))
    assert len(run(g, y=(4, 2, 2, 3), x=(4, 2, 2, 3), v0=(3,), v1=(3,), v2=(3,)).regions) == 1
    g.ret(Tensor(node, 3))
    (decision,) = [d for d in plan(g.view(), keep_config(), "host").decisions if d.node == node]
    assert decision.code == reasons.OUTPUT_OUTSIDE.name


@pytest.mark.parametrize("axes, dtype, op, text", [
    ([3], FLOAT32, "Sum", "do not fit rank 2"),
    ([1, -1], FLOAT32, "Sum", "name a dim twice"),
    (["read"], FLOAT32, "Max", "not known while compiling"),
    ([0], INT32, "Mean", "known at run time only"),
])
def test_refusals(axes, dtype, op, text):
    g = GraphBuilder()
    x = g.arg("x", dtype, ("b", 4))
    operand = g.arg("axes", INT32, (1,)) if axes == ["read"] else g.const(np.array(axes), INT32)
    reduced = Tensor(g.node(op, (g.op("Abs", x), operand), ((dtype.tf, (4,)),), attrs={"keep_dims": False}))
    g.ret(reduced)
    result = plan(g.view(), keep_config(), "host")
    (decision,) = [d for d in result.decisions if d.op == op]
    assert decision.code == reasons.REFUSED.name and text in decision.reason


def test_an_index_over_nothing_is_left_to_tf():
    g = GraphBuilder()
    g.ret(g.op("Neg", g.reduce("ArgMax", g.op("Abs", g.arg("x", FLOAT32, (3, "n"))), 1)))
    (region,) = run(g, x=(3, 4)).regions
    assert [str(guard) for guard in region.fused.guards] == ["Min(1, s0) == 1"]
    g = GraphBuilder()
    g.ret(g.reduce("ArgMax", g.op("Abs", g.arg("x", FLOAT32, (3, 0))), 1))
    assert not plan(g.view(), keep_config(), "host").regions


def test_the_mean_of_a_run_time_number_of_elements():
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, ("a", 3, "b"))
    g.ret(g.op("Neg", g.reduce("Mean", x, [0, 2])))
    result = run(g, x=(4, 3, 5))
    assert [str(n.attr("value")) for n in nodes_of(result, "Scalar")] == ["s0*s1"]
    run(g, x=(0, 3, 5))


def test_a_view_between_reduction_and_reader():
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (2, 3, 4))
    mean = g.op("ExpandDims", g.reduce("Mean", x, [2]), g.const(-1, INT32), dims=(2, 3, 1))
    flat = g.reshape(g.op("Sub", x, mean), (6, 4))
    g.ret(g.reduce("Max", flat, [1]), g.op("Exp", flat))
    result = run(g, x=(2, 3, 4))
    assert len(result.regions) == 1 and axes_of(result) == ["2", "3", "4"]


def test_a_reduction_between_split_axes():
    """[6] = max over the middle of [2, 5, 3]: the new axis stands between the parts of the old one."""
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (2, 5, 3))
    flat = g.reshape(g.reduce("Max", g.op("Abs", x), [1]), (6,))
    g.ret(g.op("Add", flat, g.arg("y", FLOAT32, (6,))))
    result = run(g, x=(2, 5, 3), y=(6,))
    assert len(result.regions) == 1 and axes_of(result) == ["2", "5", "3"]


def test_what_is_broadcast_before_it_is_summed_counts_as_often():
    g = GraphBuilder()
    x, y = g.arg("x", FLOAT32, (3, 1)), g.arg("y", FLOAT32, (1, 4))
    g.ret(g.reduce("Sum", g.op("Add", g.op("Abs", x), y), [1]), g.reduce("Max", g.op("Mul", x, y), [1]))
    run(g, x=(3, 1), y=(1, 4))


def test_run_time_broadcast_below_a_reduction():
    for shape in ((5,), (1,)):
        g = GraphBuilder()
        x, y = g.arg("x", FLOAT32, (3, "n")), g.arg("y", FLOAT32, ("m",))
        g.ret(g.reduce("Sum", g.op("Add", x, y), [1], True))
        run(g, x=(3, 5), y=shape)


def random_reduce_graph(numbers):
    """Elementwise ops and reductions over a few tensors, two of which have unit dims."""
    choices = iter(numbers)

    def pick(n):
        return next(choices, 0) % n

    g = GraphBuilder()
    shape = [(3, 4), (2, 3, 4), (4, 1), (2, 1, 5), (3, 3)][pick(5)]
    symbolic = pick(2)
    dims = tuple("d%d" % i if symbolic and d != 1 else d for i, d in enumerate(shape))
    made = [g.arg("x", FLOAT32, dims), g.op("Abs", g.arg("y", FLOAT32, dims))]
    for _ in range(2 + pick(7)):
        x = made[pick(len(made))]
        what = pick(5)
        if what == 0:
            made.append(g.op(("Neg", "Relu", "Square")[pick(3)], x))
        elif what <= 2 and g.dims(x):
            rank = len(g.dims(x))
            axes = sorted({pick(rank) for _ in range(1 + pick(2))})
            made.append(g.reduce(("Max", "Min", "Sum", "Mean")[pick(4)], x, axes, bool(pick(3))))
        else:
            others = [t for t in made if broadcasts(g.dims(t), g.dims(x))]
            made.append(g.op(("Add", "Sub", "Maximum")[pick(3)], x, others[pick(len(others))]))
    read = {s for i in g.inputs for s, _ in i}
    g.ret(*[t for t in made if t.node not in read or pick(4) == 0])
    return g, shape


def broadcasts(a, b):
    return all(x == y or 1 in (x, y) for x, y in zip(a[::-1], b[::-1]))


@settings(max_examples=120, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 59), min_size=8, max_size=60))
def test_random_graphs(numbers):
    g, shape = random_reduce_graph(numbers)
    run(g, x=shape, y=shape)


def test_families():
    g = GraphBuilder()
    x = g.op("Abs", g.arg("x", FLOAT32, (4, 8)))
    g.ret(g.reduce("Sum", g.op("Neg", x), [1]))
    for target, flags, fused in (
        ("ascend", {}, False),
        ("ascend", {"enable_pass": ("concat",)}, False),
        ("host", {}, True),
        ("host", {"enable_pass": ("concat",)}, False),
        ("host", {"disable_pass": ("reduce",)}, False),
    ):
        result = plan(g.view(), Config(precision_mode="must_keep_origin_dtype", **flags), target)
        (decision,) = [d for d in result.decisions if d.op == "Sum"]
        assert (decision.region == 0) == fused
        assert fused or (decision.code == reasons.FAMILY.name and "reduce" in decision.reason)
        assert len(result.regions) == 1


def sums_along_both_axes(rest=()):
    g = GraphBuilder()
    x = g.op("Relu", g.arg("x", FLOAT32, ("b", 8)))
    g.ret(g.op("Neg", g.reduce("Sum", x, [0])), g.reduce("Sum", x, [1]), *[g.op(op, x) for op in rest])
    return g


def test_two_loop_nests_in_one_op(golden):
    result = run(sums_along_both_axes(), x=(5, 8))
    assert names(result) == ["autofuse_reduce_0_Relu_Sum_Neg_Sum"]
    assert result.regions[0].fused.op_type == "FusedAscBackend"
    golden("two_sums.txt", dump(result.regions[0].fused))


def test_pairs_refused_in_a_last_round_that_joined_others(monkeypatch):
    """What a refusal was between is another nest by then; the plan is smaller than it could be, but right."""
    monkeypatch.setattr(fuse, "MAX_ROUNDS", 1)
    result = run(sums_along_both_axes(), x=(5, 8))
    assert result.regions


def test_a_tensor_that_is_read_outside_and_by_the_next_loop_nest():
    g = GraphBuilder()
    x = g.op("Relu", g.arg("x", FLOAT32, ("b", 8)))
    g.ret(x, g.op("Neg", g.reduce("Sum", x, [0])), g.reduce("Sum", x, [1]))
    (region,) = run(g, x=(5, 8)).regions
    assert (x.node, 0) in region.outputs and len(region.fused.graphs) == 2


def test_chains_of_reductions_along_other_axes():
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (4, 8))
    soft = g.op("Softmax", x)
    other = g.op("Sub", soft, g.reduce("Max", soft, [0], True))
    g.ret(g.reduce("Sum", other, [1]))
    (region,) = run(g, x=(4, 8)).regions
    assert len(region.fused.graphs) in (2, 3)


def test_force_fp16_sums_in_float32():
    """The NPU route's default in inference: 16-bit tensors at the borders, float32 inside."""
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (5, 64))
    y = layer_norm(g, x)
    g.ret(y)
    config = Config(graph_run_mode=0, enable_pass=("reduce",))
    result = plan(g.view(), config, "ascend")
    check_plan(g, result)
    assert {n.y.dtype for n in nodes_of(result, "Sum")} == {FLOAT32}
    (region,) = result.regions
    assert region.fused.name.startswith("autofuse_reduce_0_Cast_Mean_")
    value = random_array(FLOAT32, (5, 64), 3)
    (got,) = evaluate_fused(region.fused, [value] * len(region.inputs))
    np.testing.assert_allclose(got, evaluate_graph(g, {"x": value})[y.node][0], rtol=2e-2, atol=2e-3)


def test_a_reduced_value_with_constants_around_it():
    """The parts of a Pad that are one constant element have no axis of the reduction's loops."""
    g = GraphBuilder()
    x = g.op("Abs", g.arg("x", FLOAT32, (4, 3)))
    paddings = g.const(np.array([[1, 1], [2, 2]]), INT32)
    padded = g.op("Pad", g.reduce("Max", x, [0, 1], True), paddings, dims=(3, 5), dtype=FLOAT32)
    g.ret(padded)
    result = plan(g.view(), keep_config(), "host")
    check_plan(g, result)
    (region,) = result.regions
    value = random_array(FLOAT32, (4, 3), 1)
    (got,) = evaluate_fused(region.fused, [value] * len(region.inputs))
    np.testing.assert_array_equal(
        got, np.pad(np.abs(value).max().reshape(1, 1), [(1, 1), (2, 2)], "constant")
    )
