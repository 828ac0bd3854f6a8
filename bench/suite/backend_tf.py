"""TensorFlow 1.15: plain, with XLA's auto-jit (by the environment of the process) or with this plugin.

Micro cases read their inputs from resource variables and have no fetch, so that a call moves no data in or
out of the session; an Identity that XLA may not compile takes the result, else XLA would leave the work
out. The floor is a call of the same session that reads the variables and does nothing with them. XLA
compiles these reads, so that what it costs to start a program of XLA's is in its floor; what it costs to
start a fused op of this plugin, or an op of TensorFlow's, is in no floor.

The graph of a micro case runs in the calling thread (inter_op_parallelism_threads=-1), as the other
contenders' programs do. Else the calling thread sleeps during a call, and waking it costs 5 or 40
microseconds by how deep its core slept, which a longer call decides otherwise than the floor's call.
Intra-op threads are not concerned. Models are fed, and run in TensorFlow's own threads, as in a server.
"""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from tensorflow.core.protobuf import config_pb2  # noqa: E402

from bench.suite import cases  # noqa: E402
from bench.suite.models import files  # noqa: E402
from bench.suite.worker import Prepared  # noqa: E402

v1 = tf.compat.v1


class functions:
    abs, exp, tanh, sigmoid, relu = tf.abs, tf.exp, tf.tanh, tf.sigmoid, tf.nn.relu
    minimum, maximum, rsqrt = tf.minimum, tf.maximum, tf.math.rsqrt

    @staticmethod
    def mean(x, axis):
        return tf.reduce_mean(x, axis, keepdims=True)

    @staticmethod
    def sum(x, axis):
        return tf.reduce_sum(x, axis, keepdims=True)

    @staticmethod
    def max(x, axis):
        return tf.reduce_max(x, axis, keepdims=True)

    @staticmethod
    def cast(x, dtype):
        return tf.cast(x, dtype)


IN_CALLER = -1


def session(graph, options, inter_op_threads):
    config = v1.ConfigProto(intra_op_parallelism_threads=options["threads"],
                            inter_op_parallelism_threads=inter_op_threads)
    if options.get("ours"):
        import tf_autofuse
        tf_autofuse.configure(config, precision_mode="must_keep_origin_dtype")
    return v1.Session(graph=graph, config=config)


def callable_of(session_, feeds=(), fetches=(), targets=()):
    """A callable on numpy arrays without Session.run's Python."""
    options = config_pb2.CallableOptions()
    options.feed.extend(feeds)
    options.fetch.extend(fetches)
    options.target.extend(targets)
    return session_._make_callable_from_options(options)


def fused_ops(session_, fetches, feed):
    """Names of the fused ops in the graph that runs."""
    options, metadata = v1.RunOptions(output_partition_graphs=True), v1.RunMetadata()
    values = session_.run(fetches, feed, options=options, run_metadata=metadata)
    nodes = [n for g in metadata.partition_graphs for n in g.node]
    nodes += [n for g in metadata.partition_graphs for f in g.library.function for n in f.node_def]
    return values, [n.name for n in nodes if n.op in ("AscBackend", "FusedAscBackend")]


def note(options, fused):
    return "%d fused" % len(fused) if options.get("ours") else ""


def prepare(name, options):
    if name.startswith("model:"):
        return prepare_model(name, options)
    case = cases.BY_NAME[name]
    inputs = cases.seeded_inputs(case)
    with tf.Graph().as_default() as graph:
        variables = [v1.get_variable("in%d" % i, initializer=x, use_resource=True, trainable=False)
                     for i, x in enumerate(inputs)]
        read = [v.value() for v in variables]
        computed = case.formula(functions, *read)
        with tf.xla.experimental.jit_scope(compile_ops=False):
            result = tf.identity(computed, name="result")
        nothing = tf.group(*read, name="nothing")
        initialize = v1.global_variables_initializer()
    session_ = session(graph, options, IN_CALLER)
    session_.run(initialize)
    value, fused = fused_ops(session_, result, None)
    cases.check(case, value, inputs)
    call = callable_of(session_, targets=[result.op.name])
    floor = callable_of(session_, targets=[nothing.name])
    call(), floor()
    return Prepared(call, floor, note(options, fused))


def prepare_model(name, options):
    _, model, batch = name.split(":")
    definition, output, feed = files.load(model, int(batch))
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(definition, name="")
    session_ = session(graph, options, options["threads"])
    value, fused = fused_ops(session_, output, feed)
    plain = files.expected(model, int(batch))
    np.testing.assert_allclose(value, plain, rtol=1e-4, atol=1e-5 * max(1.0, float(np.abs(plain).max())))
    names = sorted(feed)
    make = callable_of(session_, feeds=names, fetches=[output])
    arrays = [cases.aligned(feed[n]) for n in names]
    make(*arrays)
    return Prepared(lambda: make(*arrays), None, note(options, fused))
