"""Whole graphs: what counts on each side, from columns written by hand and from the graph of a TF model."""

import pytest

from tests.graphs import GraphBuilder
from tf_autofuse.config import Config
from tf_autofuse.ir.dtypes import FLOAT16, INT32
from tf_autofuse.machine import machine_for
from tf_autofuse.profiling.graph_time import graph_time, total_cycles
from tf_autofuse.profiling.npu_time import model_op
from tf_autofuse.profiling.records import Tensor

MACHINE = machine_for("")
CONFIG = Config.from_sources(
    {"AUTOFUSE_FLAGS": "--enable_autofuse=true"}, {"precision_mode": "must_keep_origin_dtype"}
)
X = Tensor("float16", (64, 128))


def layer():
    """relu(x * w + b) with a product, an op that nothing reads, and one that is not modelled."""
    g = GraphBuilder()
    x = g.arg("x", FLOAT16, (64, 128))
    product = g.op("MatMul", x, g.arg("w", FLOAT16, (128, 128)), dims=(64, 128))
    relu = g.op("Relu", g.op("AddV2", product, g.arg("b", FLOAT16, (128,))))
    g.op("Exp", relu)
    g.ret(g.outside(relu))
    return g.view()


def test_both_sides_of_a_layer():
    found = graph_time(layer(), CONFIG, MACHINE)
    assert [k.op for k in found.before] == ["MatMul", "AddV2", "Relu"]
    assert [k.op for k in found.after] == ["MatMul", "AscBackend"] and "AddV2_Relu" in found.after[1].name
    assert found.fused >= 2 and found.missing == (("Outside", 1),)
    product, _, relu = (k.modelled for k in found.before)
    assert found.after[0].modelled == product and product.on_cube
    assert relu == model_op("Relu", (X,), (X,), MACHINE)
    assert total_cycles(found.after) < total_cycles(found.before)


def test_without_fusion_both_sides_are_equal():
    g = GraphBuilder()
    g.ret(g.op("Relu", g.arg("x", FLOAT16, (64, 128))))
    found = graph_time(g.view(), CONFIG, MACHINE)
    assert found.before == found.after and len(found.before) == 1 and found.fused == 0


def test_unknown_dims_are_not_modelled():
    g = GraphBuilder()
    x = g.arg("x", FLOAT16, ("b", 128))
    g.ret(g.op("Relu", g.op("Abs", x)))
    found = graph_time(g.view(), CONFIG, MACHINE)
    assert found.before == found.after == () and found.missing == (("Abs", 1), ("Relu", 1))


def test_constant_operands_reach_the_model():
    g = GraphBuilder()
    x = g.arg("x", FLOAT16, (64, 128))
    perm = g.const([1, 0], INT32)
    g.ret(g.op("Transpose", x, perm, dims=(128, 64), dtype=FLOAT16))
    (kernel,) = graph_time(g.view(), CONFIG, MACHINE).before
    assert kernel.modelled.how == "op" and kernel.modelled.pipe("vector") > 0


@pytest.mark.tensorflow
def test_a_model_of_tf():
    """One of HSTU's layers: the graph goes through the native shim, and everything in it is modelled."""
    tf = pytest.importorskip("tensorflow")
    from bench import _npu_graphs
    from bench.npu_models import config_for
    from tf_autofuse.lowering.graph_view import GraphView

    with tf.Graph().as_default():
        fetches = _npu_graphs.generative(batch=2, length=16, width=32, heads=2, layers=1)
        view = GraphView.from_columns(_npu_graphs.columns_of(fetches))
    found = graph_time(view, config_for("reduce,concat"), MACHINE)
    assert found.missing == () and len(found.after) < len(found.before) / 2
    assert 0 < total_cycles(found.after) < total_cycles(found.before)
    cube = [[k for k in side if k.modelled.on_cube] for side in (found.before, found.after)]
    assert cube[0] == cube[1] and len(cube[0]) == 4 + 1
