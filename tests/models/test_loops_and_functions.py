"""Frames and functions: loops, branches, tf.function, Keras and Estimator give the same results and gradients
with fusion on.

Each graph runs plain and with the plugin on the host target, from the same values; what is computed in
float32 by other orders or other exponentials may differ by a few units in the last place.
"""
import numpy as np
import pytest
import tensorflow as tf

import tf_autofuse
from tf_autofuse.frontend import plugin

v1 = tf.compat.v1


@pytest.fixture(autouse=True)
def fusing(monkeypatch):
    monkeypatch.setenv("AUTOFUSE_FLAGS", "--enable_autofuse=true")
    monkeypatch.setenv("AUTOFUSE_TARGET", "host")
    plugin.register_again()
    plugin.native().reset_stats()
    yield
    plugin.native().reset_stats()
    v1.disable_control_flow_v2()


def values(*shape, seed=0):
    return np.random.RandomState(seed + sum(shape)).uniform(-1, 1, shape).astype(np.float32)


def config(fused):
    proto = v1.ConfigProto()
    return tf_autofuse.configure(proto) if fused else proto


def kernel_calls():
    """How often kernels ran; none may have given way to the original ops."""
    stats = plugin.native().stats().values()
    assert not any(s["fallbacks"] or s["errors"] for s in stats), stats
    return sum(s["calls"] for s in stats)


def both_ways(build, feeds=(), times=2):
    """build(*placeholders) -> fetches; runs them plain and fused, and compares. Gives the fused values."""
    results = []
    for fused in (False, True):
        with tf.Graph().as_default():
            v1.set_random_seed(7)
            inputs = [v1.placeholder(tf.float32, [None] + list(f.shape[1:]) if f.ndim else []) for f in feeds]
            fetches = build(*inputs)
            with v1.Session(config=config(fused)) as session:
                session.run(v1.global_variables_initializer())
                for _ in range(times):
                    result = session.run(fetches, dict(zip(inputs, feeds)))
        results.append(tf.nest.flatten(result))
    for plain, fused in zip(*results):
        np.testing.assert_allclose(fused, plain, rtol=2e-5, atol=1e-6)
    assert kernel_calls() > 0
    return results[1]


def test_dynamic_rnn_with_an_lstm_cell_and_its_gradients():
    def build(x):
        cell = v1.nn.rnn_cell.LSTMCell(6, initializer=v1.initializers.random_uniform(-0.5, 0.5, seed=3))
        outputs, state = v1.nn.dynamic_rnn(cell, x, dtype=tf.float32)
        loss = tf.reduce_sum(tf.square(outputs)) + tf.reduce_sum(state.c * state.h)
        return [outputs, state.c, state.h] + tf.gradients(loss, [x] + v1.trainable_variables())

    both_ways(build, [values(3, 5, 4)])


@pytest.mark.parametrize("version", [1, 2])
def test_while_loop_and_its_gradient(version):
    def build(x):
        if version == 2:
            v1.enable_control_flow_v2()
        def body(i, y):
            return i + 1, tf.sin(y) * 1.5 + tf.abs(x) * y - 0.25

        _, y = tf.while_loop(lambda i, y: i < 5, body, [tf.constant(0), x])
        return [y] + tf.gradients(tf.reduce_sum(y * y), [x])

    both_ways(build, [values(3, 7)])


@pytest.mark.parametrize("version", [1, 2])
def test_nested_loops_and_their_gradient(version):
    def build(x):
        if version == 2:
            v1.enable_control_flow_v2()

        def inner(y):
            def body(j, z):
                return j + 1, tf.tanh(z) * 0.75 + x

            return tf.while_loop(lambda j, z: j < 2, body, [tf.constant(0), y])[1]

        def outer(i, y):
            return i + 1, tf.nn.relu(inner(y) + 0.5) * 0.5 - y

        _, y = tf.while_loop(lambda i, y: i < 3, outer, [tf.constant(0), x])
        return [y] + tf.gradients(tf.reduce_sum(y * y), [x])

    both_ways(build, [values(2, 9)])


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_cond_and_its_gradient(version, sign):
    def build(x, s):
        if version == 2:
            v1.enable_control_flow_v2()
        y = tf.cond(s > 0.0, lambda: tf.exp(x) * 0.5 + tf.square(x), lambda: tf.abs(x) * x - 2.0 * x)
        z = tf.nn.relu(y * 3.0 - x)
        return [y, z] + tf.gradients(tf.reduce_sum(z * y), [x])

    both_ways(build, [values(4, 5), np.float32(sign)])


def test_branches_are_fused_where_their_predicate_is():
    def build(x, y):
        def inner():
            z = tf.square(x) - 0.5
            low = tf.reduce_sum(z * y) < 0.0
            return tf.cond(low, lambda: tf.sigmoid(z) * y + z, lambda: tf.exp(-z) / 3.0 - y)

        return tf.cond(tf.reduce_sum(x) > 0.0, inner, lambda: tf.tanh(x) * y - 3.0)

    x = np.abs(values(3, 8)) + 1.0
    for sign, inner in ((1.0, 0.5), (1.0, -0.5), (-1.0, 0.5)):
        both_ways(build, [sign * x, np.float32(inner)])
    # The two predicates (the inner one with what its branches read) and the three branches.
    assert sum(s["calls"] > 0 for s in plugin.native().stats().values()) == 5


def test_a_loop_whose_trip_count_is_fed():
    def build(x, n):
        def body(i, y):
            return i + 1.0, tf.abs(y) * 0.5 - x

        _, y = tf.while_loop(lambda i, y: i < n, body, [tf.constant(0.0), x])
        return tf.nn.relu(y * 2.0) - y

    for n in (0.0, 1.0, 6.0):
        both_ways(build, [values(3, 4), np.float32(n)])


def test_tf_function_in_a_graph_and_its_gradient():
    def build(x):
        @tf.function
        def layer(a, b):
            return tf.nn.relu(a * b + 0.5) - tf.abs(b) * a

        y = layer(layer(x, x + 1.0), x)
        return [y] + tf.gradients(tf.reduce_sum(y * y), [x])

    both_ways(build, [values(4, 6)])


def test_tensor_arrays_and_map_fn():
    def build(x):
        y = tf.map_fn(lambda row: tf.nn.relu(row * 2.0 - 0.5) + tf.abs(row), x)
        return [y] + tf.gradients(tf.reduce_sum(y * y), [x])

    both_ways(build, [values(5, 6)])


def trained(fused, make, batch):
    """Weights and predictions of a Keras model after some steps."""
    tf.keras.backend.clear_session()
    with tf.Graph().as_default(), v1.Session(config=config(fused)) as session:
        tf.keras.backend.set_session(session)
        v1.set_random_seed(11)
        model = make()
        x, y = batch
        history = [model.train_on_batch(x, y) for _ in range(3)]
        result = [np.asarray(history, np.float32), model.predict(x)] + model.get_weights()
    tf.keras.backend.clear_session()
    return result


def test_keras_trains_to_the_same_weights():
    def make():
        layers = tf.keras.layers

        def start(seed):
            return tf.keras.initializers.RandomUniform(-0.3, 0.3, seed=seed)

        model = tf.keras.Sequential([
            layers.Dense(16, activation="relu", input_shape=(8,), kernel_initializer=start(1)),
            layers.BatchNormalization(),
            layers.Dense(8, activation="tanh", kernel_initializer=start(2)),
            layers.Dense(1, activation="sigmoid", kernel_initializer=start(3)),
        ])
        model.compile("adam", "binary_crossentropy")
        return model

    batch = values(12, 8), (values(12, 1) > 0).astype(np.float32)
    plain, fused = (trained(way, make, batch) for way in (False, True))
    for a, b in zip(plain, fused):
        np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-5)
    assert kernel_calls() > 0


@pytest.mark.parametrize("resource", [True, False])
def test_tables_train_the_same_by_sparse_gradients(resource):
    results = []
    for fused in (False, True):
        with tf.Graph().as_default():
            ids = v1.placeholder(tf.int64, [None, 3])
            start = v1.initializers.random_uniform(-0.5, 0.5, seed=3)
            with v1.variable_scope("", use_resource=resource, initializer=start):
                table, weights = v1.get_variable("table", [9, 4]), v1.get_variable("weights", [4])
            rows = tf.nn.embedding_lookup(table, ids)
            logits = tf.reduce_sum(tf.tanh(tf.reduce_sum(rows, 1) + 0.5) * weights, 1)
            loss = tf.reduce_mean(tf.square(tf.sigmoid(logits) - 0.25))
            step = v1.train.AdamOptimizer(0.1).minimize(loss)
            with v1.Session(config=config(fused)) as session:
                session.run(v1.global_variables_initializer())
                feed = {ids: np.random.RandomState(1).randint(0, 9, (8, 3))}
                losses = [session.run([loss, step], feed)[0] for _ in range(4)]
                results.append([np.float32(losses)] + session.run([table, weights]))
    for plain, fused in zip(*results):
        np.testing.assert_allclose(fused, plain, rtol=2e-5, atol=1e-6)
    assert kernel_calls() > 0


def test_estimator_trains_evaluates_and_predicts_the_same(tmp_path):
    x, y = values(16, 4), values(16, 1, seed=5)

    def model(features, labels, mode):
        start = v1.initializers.random_uniform(-0.5, 0.5, seed=9)
        h = v1.layers.dense(features["x"], 8, activation=tf.nn.elu, kernel_initializer=start)
        out = v1.layers.dense(h * tf.sigmoid(h), 1, kernel_initializer=start)
        if mode == tf.estimator.ModeKeys.PREDICT:
            return tf.estimator.EstimatorSpec(mode, predictions={"out": out})
        loss = tf.reduce_mean(tf.square(out - labels))
        step = v1.train.AdamOptimizer(0.05).minimize(loss, v1.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=step)

    def batches():
        return tf.data.Dataset.from_tensors(({"x": x}, y)).repeat(4)

    results = []
    for fused in (False, True):
        folder = str(tmp_path / str(fused))
        run = tf.estimator.RunConfig(folder, tf_random_seed=3, session_config=config(fused))
        estimator = tf.estimator.Estimator(model, config=run)
        estimator.train(batches)
        loss = estimator.evaluate(batches)["loss"]
        predicted = [p["out"] for p in estimator.predict(lambda: tf.data.Dataset.from_tensors({"x": x}))]
        results.append((np.float32(loss), np.asarray(predicted)))
    for a, b in zip(*results):
        np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-5)
    assert kernel_calls() > 0
