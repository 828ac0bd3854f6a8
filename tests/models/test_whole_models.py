"""Whole models through the whole plugin: same results, and the regions that matter are fused.

DIN is the model on which Grappler 1.15.0 fails by itself ("couldn't be sorted in topological order") and
drops all its work, a custom optimizer's included; the graph passes are not part of Grappler and fuse it all
the same.
"""
import numpy as np
import pytest
import tensorflow as tf

from tests.differential.harness import ON, bit_differences, environment, executed_nodes
import tf_autofuse

v1 = tf.compat.v1


def fused_of(nodes):
    return [n for n in nodes if n.op in ("AscBackend", "FusedAscBackend")]


def both(graph, fetches, feed, config=None, initialize=True, runs=1):
    """(plain values, fused values, fused nodes); variables are initialized alike by the graph's seed."""
    results = []
    for flags in (None, ON):
        with environment(AUTOFUSE_FLAGS=flags, AUTOFUSE_TARGET="ascend", AUTOFUSE_DFX_FLAGS=None):
            settings = tf_autofuse.configure(config() if config else v1.ConfigProto(),
                                             precision_mode="must_keep_origin_dtype")
            with v1.Session(graph=graph, config=settings) as session:
                if initialize:
                    with graph.as_default():
                        session.run([v1.global_variables_initializer(), v1.local_variables_initializer()])
                for _ in range(runs):
                    values, nodes = executed_nodes(session, fetches, feed)
                results.append((values, fused_of(nodes)))
    assert not results[0][1]
    return results[0][0], results[1][0], results[1][1]


@pytest.fixture(scope="module")
def din():
    from deepctr.feature_column import DenseFeat, SparseFeat, VarLenSparseFeat, get_feature_names
    from deepctr.models import DIN
    graph = tf.Graph()
    with graph.as_default():
        v1.set_random_seed(7)
        columns = [
            SparseFeat("user", 9, embedding_dim=8),
            SparseFeat("gender", 3, embedding_dim=8),
            SparseFeat("item", 16, embedding_dim=8),
            DenseFeat("score", 1),
            VarLenSparseFeat(
                SparseFeat("hist_item", 16, embedding_dim=8, embedding_name="item"),
                maxlen=12,
                length_name="seq_length",
            ),
        ]
        model = DIN(columns, ["item"], att_weight_normalization=False)
        session = v1.keras.backend.get_session()
        session.run(v1.global_variables_initializer())
        constant = tf.graph_util.convert_variables_to_constants(
            session, graph.as_graph_def(), [model.output.op.name]
        )
        names = {t.op.name: n for t, n in zip(model.inputs, get_feature_names(columns))}
        output = model.output.op.name
    v1.keras.backend.clear_session()
    return constant, names, output


@pytest.mark.parametrize("batch", (1, 64))
def test_din_with_its_attention_unit(din, batch):
    definition, names, output = din
    generator = np.random.RandomState(batch)
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(definition, name="")
    feed = {}
    present = {o.name for o in graph.get_operations()}
    for name in sorted(present.intersection(names)):
        tensor = graph.get_tensor_by_name(name + ":0")
        dims = [batch if d.value is None else d.value for d in tensor.shape]
        feed[tensor] = (generator.randint(1, 3, dims) if "seq" not in name and "score" not in name else
                        generator.randint(1, 12, dims)).astype(tensor.dtype.as_numpy_dtype)
    plain, fused, nodes = both(graph, output + ":0", feed, initialize=False)
    assert len(nodes) >= 3, [n.name for n in nodes]
    np.testing.assert_allclose(fused, plain, rtol=2e-6, atol=2e-7)
    ops = {o for n in nodes for o in n.name.split("_")}
    assert {"Sub", "Mul"} & ops


def chain(x, y):
    return tf.nn.relu(tf.abs(x) - y) * 2.0


def test_while_loops_and_their_gradients():
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [None, 4], "x")

        def body(i, a):
            inner = tf.while_loop(lambda j, b: j < 2, lambda j, b: (j + 1, chain(b, x) * 0.5), (0, a))[1]
            return i + 1, chain(a + inner, x) * 0.25

        result = tf.while_loop(lambda i, a: i < 3, body, (0, x))[1]
        gradient = tf.gradients(result, x)[0]
    feed = {x: np.random.RandomState(0).randn(5, 4).astype(np.float32)}
    plain, fused, nodes = both(graph, [result, gradient], feed)
    assert any(n.name.startswith("autofuse_") for n in nodes)
    for a, b in zip(plain, fused):
        assert not bit_differences(a, b)


@pytest.mark.parametrize("branch", (True, False))
def test_cond_fuses_inside_its_branches(branch):
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [None], "x")
        predicate = v1.placeholder(tf.bool, [], "p")
        result = tf.cond(predicate, lambda: chain(x, x + 1.0), lambda: tf.square(tf.abs(x) + 3.0))
    plain, fused, _ = both(graph, result, {x: np.arange(-3, 4, dtype=np.float32), predicate: branch})
    assert not bit_differences(plain, fused)


def test_a_function_body_is_fused():
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [None, 3], "x")

        @tf.function
        def f(a):
            return chain(a, a * 3.0)

        result = f(x) + 1.0
    plain, fused, _ = both(graph, result, {x: np.random.RandomState(1).randn(4, 3).astype(np.float32)})
    assert not bit_differences(plain, fused)


@pytest.mark.parametrize("resource", (True, False))
def test_training_steps_are_the_same(resource):
    with tf.Graph().as_default() as graph:
        v1.set_random_seed(3)
        x = v1.placeholder(tf.float32, [None, 6], "x")
        weights = v1.get_variable("w", [6, 2], use_resource=resource,
                                  initializer=tf.compat.v1.random_normal_initializer(seed=5))
        bias = v1.get_variable("b", [2], use_resource=resource, initializer=v1.zeros_initializer())
        hidden = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, weights), bias)) + 0.5
        loss = tf.reduce_mean(tf.square(tf.abs(hidden) - 1.0))
        step = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
        with tf.control_dependencies([step]):
            after = tf.identity(loss)
    feed = {x: np.random.RandomState(2).randn(8, 6).astype(np.float32)}
    plain, fused, nodes = both(graph, [after, weights, bias], feed, runs=5)
    assert nodes
    for a, b in zip(plain, fused):
        np.testing.assert_allclose(b, a, rtol=1e-6)


def test_every_intermediate_can_be_fetched_and_fed():
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [None, 5], "x")
        a = tf.abs(x)
        b = a * 3.0
        c = tf.nn.relu(b - 1.0)
        d = c / (a + 1.0)
        tensors = [a, b, c, d]
    value = np.random.RandomState(3).randn(6, 5).astype(np.float32)
    for tensor in tensors:
        plain, fused, _ = both(graph, tensor, {x: value})
        assert not bit_differences(plain, fused), tensor.name
    plain, fused, _ = both(graph, tensors, {x: value})
    for p, f in zip(plain, fused):
        assert not bit_differences(p, f)
    for fed in tensors[:-1]:
        plain, fused, _ = both(graph, d, {x: value, fed: value * 0.5})
        assert not bit_differences(plain, fused), fed.name


def test_one_and_many_threads_give_the_same_bits():
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [None, 301], "x")
        result = tf.nn.relu(tf.abs(x) * 3.0 - tf.exp(x))
    value = np.random.RandomState(4).randn(700, 301).astype(np.float32)
    outcomes = []
    for threads in (1, 2):
        def config():
            proto = v1.ConfigProto(use_per_session_threads=True, intra_op_parallelism_threads=threads,
                                   inter_op_parallelism_threads=threads)
            return proto
        _, fused, nodes = both(graph, result, {x: value}, config)
        assert len(nodes) == 1
        outcomes.append(fused)
    assert outcomes[0].tobytes() == outcomes[1].tobytes()
