"""Builds a model, freezes it, and keeps it with feeds and TensorFlow's own results."""
import importlib
from pathlib import Path

import numpy as np
import tensorflow as tf

from bench.suite.models import MODELS, files
from bench.suite.models.features import LONGEST, VOCABULARY

v1 = tf.compat.v1


def _values(tensor, batch, generator):
    """What an input is fed with; its name says what integers mean."""
    dims = [batch if d.value is None else d.value for d in tensor.shape]
    if tensor.dtype == tf.string:
        return generator.randint(1, VOCABULARY, dims).astype("S")
    if not tensor.dtype.is_integer:
        return generator.uniform(0, 1, dims).astype(tensor.dtype.as_numpy_dtype)
    ranges = {"seq_length": (1, LONGEST), "mask": (0, 2), "segment": (0, 2)}
    least, most = next((r for name, r in ranges.items() if name in tensor.op.name), (1, VOCABULARY))
    return generator.randint(least, most, dims).astype(tensor.dtype.as_numpy_dtype)


def _as_trained(session, generator) -> None:
    """Weights that begin alike, as biases and batch norms do, get small differences: Grappler would leave out
    what adds zeros or multiplies by ones, and no mistake with them would be seen."""
    for variable in v1.global_variables():
        value = session.run(variable)
        if value.dtype.kind == "f" and (value == value.flat[0]).all():
            variable.load((value + generator.uniform(0, 0.1, value.shape)).astype(value.dtype), session)


def build(folder: Path, name: str, batches) -> None:
    graph = tf.Graph()
    with graph.as_default():
        v1.set_random_seed(7)
        model = MODELS[name]
        family = importlib.import_module("bench.suite.models." + model.family)
        inputs, outputs = getattr(family, model.builder)()
        joined = tf.concat([tf.reshape(o, [-1]) for o in outputs], 0) if len(outputs) > 1 else outputs[0]
        session = v1.keras.backend.get_session()
        with session.as_default():
            session.run([v1.global_variables_initializer(), v1.tables_initializer()])
            _as_trained(session, np.random.RandomState(5))
        definition = v1.graph_util.convert_variables_to_constants(
            session, graph.as_graph_def(), [joined.op.name])
        present = {n.name for n in definition.node}
        feeds = {}
        for batch in batches:
            generator = np.random.RandomState(batch)
            feeds[batch] = {t.name: _values(t, batch, generator) for t in inputs if t.op.name in present}
    with tf.Graph().as_default() as frozen:
        tf.import_graph_def(definition, name="")
    with v1.Session(graph=frozen) as plain:
        for batch, feed in feeds.items():
            files.save_feed(folder, name, batch, feed, plain.run(joined.name, feed))
    files.save(folder, name, definition, joined.name)
