"""Graphs on which TensorFlow's own graph optimizer gives up, and graphs that hypothesis makes up."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.frontend.native_session import (
    Recorder,
    config,
    edit,
    fused_nodes,
    greedy_edits,
    run_with_graph,
    same_bits,
    v1,
)

pytestmark = pytest.mark.tensorflow
ROOT = Path(__file__).resolve().parents[2]


def din():
    """deepctr's Deep Interest Network with a local activation unit; (model, inputs)."""
    deepctr_models = pytest.importorskip("deepctr.models")
    from deepctr.feature_column import DenseFeat, SparseFeat, VarLenSparseFeat

    features = [
        SparseFeat("user", 10, embedding_dim=8),
        SparseFeat("item", 20, embedding_dim=8),
        DenseFeat("score", 1),
        VarLenSparseFeat(
            SparseFeat("hist_item", 20, embedding_dim=8, embedding_name="item"),
            maxlen=4,
            length_name="seq_length",
        ),
    ]
    model = deepctr_models.DIN(features, ["item"], att_weight_normalization=False, att_activation="sigmoid")
    rng = np.random.RandomState(0)
    values = {
        "user": rng.randint(0, 10, 6),
        "item": rng.randint(1, 20, 6),
        "score": rng.rand(6),
        "hist_item": rng.randint(1, 20, (6, 4)),
        "seq_length": rng.randint(1, 5, 6),
    }
    return model, values


def test_din_is_fused_although_grappler_fails(native, capfd):
    graph = tf.Graph()
    with graph.as_default():
        plain = v1.Session(graph=graph, config=config(None))
        v1.keras.backend.set_session(plain)
        model, values = din()
        plain.run(v1.global_variables_initializer())
        feeds = {
            tensor: np.asarray(values[tensor.op.name.split(":")[0]]).reshape(
                [6] + [d for d in tensor.shape.as_list()[1:]]
            )
            for tensor in model.inputs
        }
        feeds[v1.keras.backend.learning_phase()] = 0
        wanted = plain.run(model.output, feeds)
        weights = v1.trainable_variables() + [
            v for v in v1.global_variables() if v not in v1.trainable_variables()
        ]
        saved = plain.run(weights)
        capfd.readouterr()
        seen = Recorder(greedy_edits).install()
        native.set_strict(True)
        with v1.Session(graph=graph, config=config()) as session:
            session.run(
                [v.initializer for v in weights], {v.initial_value: value for v, value in zip(weights, saved)}
            )
            seen.columns.clear()
            got, nodes = run_with_graph(session, model.output, feeds)
            again = session.run(model.output, feeds)
        log = capfd.readouterr().err
        plain.close()
    assert same_bits(got, wanted) and same_bits(got, again)
    assert "couldn't be sorted in topological order" in log
    assert len(fused_nodes(nodes)) >= 5
    (columns,) = seen.columns
    assert not any(
        rank is None
        for shapes, op in zip(columns["out_shapes"], columns["ops"])
        for rank in shapes
        if op in ("Sigmoid", "BiasAdd", "Softmax")
    )


UNARY = [tf.abs, tf.exp, tf.negative, tf.sigmoid, tf.nn.relu, tf.square, tf.tanh]
BINARY = [tf.add, tf.subtract, tf.multiply, tf.maximum, tf.minimum]


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_random_graphs_with_random_regions(native, data):
    """Any regions at all: what is applied must give TensorFlow's bits."""
    size = data.draw(st.integers(3, 18))
    with tf.Graph().as_default() as graph:
        choice = v1.placeholder(tf.bool, [], name="choice")
        tensors = [v1.placeholder(tf.float32, [None, 3], name="x%d" % i) for i in range(2)]
        for number in range(size):
            kind = data.draw(
                st.sampled_from(["unary", "unary", "binary", "binary", "binary", "after", "matmul", "cond"])
            )
            name = "n%d" % number
            a = data.draw(st.sampled_from(tensors))
            b = data.draw(st.sampled_from(tensors))
            if kind == "unary":
                made = data.draw(st.sampled_from(UNARY))(a, name=name)
            elif kind == "binary":
                made = data.draw(st.sampled_from(BINARY))(a, b, name=name)
            elif kind == "after":
                with tf.control_dependencies([b]):
                    made = tf.negative(a, name=name)
            elif kind == "matmul":
                made = tf.matmul(a, tf.eye(3), name=name)
            else:
                made = v1.cond(choice, lambda: tf.abs(a) + b, lambda: tf.exp(-tf.abs(b)), name=name)
            tensors.append(made)
        fetched = data.draw(st.lists(st.sampled_from(tensors[2:]), min_size=1, max_size=4))
        feeds = {tensors[i]: np.random.RandomState(i).uniform(-1, 1, (4, 3)).astype("f") for i in range(2)}
        feeds[choice] = data.draw(st.booleans())
        if data.draw(st.booleans()):
            feeds[data.draw(st.sampled_from(tensors[2:]))] = np.full((4, 3), 0.25, "f")
        edits = []

        def choose(columns):
            light = [
                i
                for i, op in enumerate(columns["ops"])
                if op
                in (
                    "Abs",
                    "Exp",
                    "Neg",
                    "Sigmoid",
                    "Relu",
                    "Square",
                    "Tanh",
                    "AddV2",
                    "Sub",
                    "Mul",
                    "Maximum",
                    "Minimum",
                )
            ]
            groups = {}
            for node in light:
                groups.setdefault(data.draw(st.integers(0, 3)), []).append(node)
            made = [
                edit(columns, [columns["names"][n] for n in nodes], name="autofuse_%d" % g, key="none_%d" % g)
                for g, nodes in sorted(groups.items())
            ]
            edits.extend(m for m in made if m["outputs"])
            return edits

        with v1.Session(config=config(None, grappler=False)) as plain:
            wanted = plain.run(fetched, feeds)
        seen = Recorder(choose).install()
        native.set_strict(True)
        with v1.Session(config=config(grappler=False)) as session:
            got, nodes = run_with_graph(session, fetched, feeds)
        assert len(fused_nodes(nodes)) + len(seen.rejections) == len(edits)
        for a, b in zip(wanted, got):
            assert same_bits(a, b)


def run_script(text):
    environ = dict(os.environ, PYTHONPATH=str(ROOT), TF_CPP_MIN_LOG_LEVEL="1")
    environ.pop("AUTOFUSE_FLAGS", None)
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(text)],
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
    )


USE = """
    import numpy as np, tensorflow as tf
    from tf_autofuse.frontend import _native
    v1 = tf.compat.v1
    def choose(columns, context):
        at = columns["names"].index
        return [dict(name="autofuse_x", op="AscBackend", nodes=[at("a"), at("b")],
                     inputs=[columns["inputs"][at("a")][0]], outputs=[(at("b"), 0)],
                     attrs=dict(kernel_name="k", kernel_key="k"))]
    _native.set_graph_pass(choose)
    _native.set_wants(None)
    x = v1.placeholder(tf.float32, [None])
    y = tf.exp(tf.abs(x, name="a"), name="b")
    proto = v1.ConfigProto()
    proto.graph_options.rewrite_options.disable_meta_optimizer = True
    proto.graph_options.rewrite_options.custom_optimizers.add().name = "AutofuseOptimizer"
    session = v1.Session(config=proto)
    print(session.run(y, {x: [0.0]}), _native.stats()["k"]["fallbacks"])
"""


@pytest.mark.parametrize(
    "end",
    [
        "",  # everything is closed by the interpreter's end
        "import builtins; builtins.kept = session",  # the session outlives the module's globals
    ],
)
def test_the_process_ends_quietly(end):
    done = run_script(USE + "    " + end)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["[1.]", "1"]
    assert "Fatal" not in done.stderr


def test_a_forked_child_can_run_its_own_session():
    done = run_script("""
    import os, tensorflow as tf
    from tf_autofuse.frontend import _native
    _native.set_graph_pass(lambda columns, context: [])
    _native.set_wants(None)
    child = os.fork()
    if child == 0:
        proto = tf.compat.v1.ConfigProto()
        proto.graph_options.rewrite_options.custom_optimizers.add().name = "AutofuseOptimizer"
        with tf.Graph().as_default(), tf.compat.v1.Session(config=proto) as session:
            os._exit(int(session.run(tf.constant(3.0) + 4.0)))
    print(os.WEXITSTATUS(os.waitpid(child, 0)[1]))
    """)
    assert done.stdout.strip() == "7", done.stderr


def test_importing_the_module_changes_nothing():
    """In a process that never asks, the sessions' graphs are the same bytes with and without the module."""
    script = """
    import hashlib, tensorflow as tf
    %s
    v1 = tf.compat.v1
    x = v1.placeholder(tf.float32, [None, 4], name="x")
    y = tf.reduce_sum(tf.exp(tf.abs(x)) + 1.0)
    metadata = v1.RunMetadata()
    options = v1.RunOptions(output_partition_graphs=True)
    with v1.Session() as session:
        session.run(y, {x: [[1, 2, 3, 4]]}, options=options, run_metadata=metadata)
    text = b"".join(g.SerializeToString(deterministic=True) for g in metadata.partition_graphs)
    print(hashlib.sha256(text).hexdigest())
    """
    outputs = [run_script(script % line) for line in ("pass", "from tf_autofuse.frontend import _native")]
    assert all(done.returncode == 0 for done in outputs), outputs[1].stderr
    assert outputs[0].stdout == outputs[1].stdout != ""


def test_together_with_xlas_automatic_clusters():
    done = run_script("""
    import os
    os.environ["TF_XLA_FLAGS"] = "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit --tf_xla_min_cluster_size=1"
    """ + USE)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["[1.]", "1"]
