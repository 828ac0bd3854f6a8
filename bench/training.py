"""A training step with the plugin and without: losses over 20 steps, and the time of a step.

Both sessions are of one process and one graph, begin with the same weights and take turns. The session's own
memory settings, which a plugin that is on changes for the process, are so the same for both.
"""
import statistics
import time
from typing import Dict, List, NamedTuple

import numpy as np
from rich.table import Table

BATCH, STEPS, ROUNDS, CALLS = 256, 20, 15, 10


class Training(NamedTuple):
    """feed: placeholder -> a function of a generator that gives a batch's values"""

    graph: object
    feed: Dict
    loss: object
    step: object


def _training(build, make_optimizer) -> Training:
    import tensorflow as tf
    v1 = tf.compat.v1
    with tf.Graph().as_default() as graph:
        v1.set_random_seed(7)
        feed, logits = build()
        label = v1.placeholder(tf.float32, [None, 1], "label")
        feed[label] = lambda generator: generator.randint(0, 2, (BATCH, 1))
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=label, logits=logits))
        step = make_optimizer(v1.train).minimize(loss)
    return Training(graph, feed, loss, step)


def deepfm():
    """deepctr's, with its features' probabilities taken back to logits."""
    import tensorflow as tf
    from bench.suite.models import recommendation
    from bench.suite.models.features import VOCABULARY
    inputs, (probability,) = recommendation.deepfm()
    feed = {t: (lambda g: g.randint(1, VOCABULARY, (BATCH, 1))) if t.dtype.is_integer else
            (lambda g: g.uniform(0, 1, (BATCH, 1))) for t in inputs}
    kept = tf.clip_by_value(probability, 1e-6, 1 - 1e-6)
    return feed, tf.math.log(kept / (1.0 - kept))


def mlp():
    """Keras layers, a batch norm and a dropout among them, as they train."""
    import tensorflow as tf
    layers = tf.keras.layers
    x = tf.compat.v1.placeholder(tf.float32, [None, 128], "x")
    h = x
    for width in (256, 128):
        h = layers.Dense(width)(h)
        h = layers.BatchNormalization(fused=False)(h, training=True)
        h = tf.nn.elu(h)
    h = layers.Dense(64, activation="tanh")(h)
    return {x: lambda g: g.randn(BATCH, 128)}, layers.Dense(1)(h)


CASES = {
    "DeepFM, Adagrad": (deepfm, lambda train: train.AdagradOptimizer(0.05)),
    "DeepFM, Adam": (deepfm, lambda train: train.AdamOptimizer(0.001)),
    "MLP, Adam": (mlp, lambda train: train.AdamOptimizer(0.001)),
    "MLP, momentum": (mlp, lambda train: train.MomentumOptimizer(0.01, 0.9)),
}


class Measured(NamedTuple):
    """milliseconds of a step, medians; ratio: median of the rounds'; worst: the losses' largest relative
    difference."""

    plain: float
    fused: float
    ratio: float
    worst: float


def measure(training: Training) -> Measured:
    import tensorflow as tf
    from tensorflow.core.protobuf import config_pb2
    import tf_autofuse
    v1 = tf.compat.v1
    options = config_pb2.CallableOptions(feed=[t.name for t in training.feed], fetch=[training.loss.name],
                                         target=[training.step.name])
    calls, losses = [], []
    for fused in (False, True):
        config = v1.ConfigProto(intra_op_parallelism_threads=2, inter_op_parallelism_threads=2)
        if fused:
            tf_autofuse.configure(config)
        session = v1.Session(graph=training.graph, config=config)
        with training.graph.as_default():
            session.run(v1.global_variables_initializer())
        calls.append(session._make_callable_from_options(options))
        generator = np.random.RandomState(1)
        taken = []
        for _ in range(STEPS):
            batch = [v(generator).astype(t.dtype.as_numpy_dtype) for t, v in training.feed.items()]
            taken.append(float(calls[-1](*batch)[0]))
        losses.append(np.array(taken))
    times: List[List[float]] = [[], []]
    for _ in range(ROUNDS):
        for call, kept in zip(calls, times):
            seconds = []
            for _ in range(CALLS):
                start = time.perf_counter()
                call(*batch)
                seconds.append(time.perf_counter() - start)
            kept.append(statistics.median(seconds))
    plain, fused = (statistics.median(t) * 1e3 for t in times)
    worst = float(np.abs(losses[1] / losses[0] - 1.0).max())
    return Measured(plain, fused, statistics.median(b / a for a, b in zip(*times)), worst)


def run(console) -> None:
    import os
    from bench.suite.harness import OURS
    os.environ.update(OURS)
    table = Table("training", "TF ms a step", "fused ms a step", "fused / TF", "losses differ by")
    for name, (build, optimizer) in CASES.items():
        found = measure(_training(build, optimizer))
        table.add_row(name, "%.2f" % found.plain, "%.2f" % found.fused, "%.2f" % found.ratio,
                      "%.1g" % found.worst)
    console.print(table)
