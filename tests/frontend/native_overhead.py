"""Measures the native extension: a fused node's cost for each call, and the pass's cost for each node.

Run: python -m tests.frontend.native_overhead. Prints the best of many rounds, so that other load on the
machine disturbs little. A node's cost is the difference between chains of 600 and 200 of them in one run;
the sessions have one thread, so that no hand-off to another is in it.
"""

import tempfile
import time

import numpy as np
import tensorflow as tf

from tests.frontend.native_session import Recorder, compile_kernel, config, edit, meta, v1, _native

CHAIN = 200


def one_thread(session_config):
    session_config.inter_op_parallelism_threads = session_config.intra_op_parallelism_threads = 1
    return session_config


class Chain:
    """A session that runs `length` ops one after the other on one element."""

    def __init__(self, op, length, session_config):
        with tf.Graph().as_default() as graph:
            x = v1.placeholder(tf.float32, [None], name="x")
            y = x
            for _ in range(length):
                y = op(y)
            self.session = v1.Session(graph=graph, config=one_thread(session_config))
            self.run = self.session.make_callable(y.op, feed_list=[x])
        self.best = float("inf")

    def measure(self):
        value = np.float32([1.5])
        start = time.perf_counter()
        self.run(value)
        self.best = min(self.best, time.perf_counter() - start)


def seconds_per_node(op, entry, rounds=600):
    short, long = (Chain(op, length, config(entry, grappler=False)) for length in (CHAIN, 3 * CHAIN))
    for _ in range(rounds):
        short.measure()
        long.measure()
    short.session.close()
    long.session.close()
    return (long.best - short.best) / (2 * CHAIN)


def node_costs():
    key = "overhead"
    with tempfile.TemporaryDirectory() as folder:
        _native.register_kernel(key, meta(compile_kernel(folder, "TOGETHER"), "TOGETHER"))
    rows = {
        "tf.identity": seconds_per_node(tf.identity, None),
        "tf.negative": seconds_per_node(tf.negative, None),
    }

    def each(columns):
        return [
            edit(columns, [name], key=key, name="autofuse_%s" % name)
            for name, op in zip(columns["names"], columns["ops"])
            if op == "Neg"
        ]

    Recorder(each).install()
    rows["AscBackend, kernel"] = seconds_per_node(tf.negative, "AutofuseOptimizer")
    _native.disable_kernel(key)
    rows["AscBackend, original op"] = seconds_per_node(tf.negative, "AutofuseOptimizer")
    stats = _native.stats()[key]
    assert stats["errors"] == 0 and 0 < stats["fallbacks"] < stats["calls"]
    return {name: 1e6 * seconds for name, seconds in rows.items()}


def pass_costs(nodes=2000):
    """What lies between the question whether the graph is wanted and the call of the pass: copying the graph,
    looking for what can be folded, the analysis, the shapes and the columns."""
    marks = []
    _native.set_wants(lambda context: marks.append(time.perf_counter()) or True)
    seen = Recorder(lambda columns: marks.append(time.perf_counter()) or []).install()
    for _ in range(15):
        with tf.Graph().as_default() as graph, v1.Session(config=config(grappler=False)) as session:
            x = v1.placeholder(tf.float32, [None, 8], name="x")
            y = x
            while len(graph.get_operations()) < nodes:
                y = tf.nn.relu(tf.abs(y) + x * 2.0)
            session.run(y, {x: np.ones((1, 8))})
    _native.set_wants(None)
    count = len(seen.columns[-1]["names"])
    seconds = min(after - before for before, after in zip(marks[::2], marks[1::2]))
    return {"copy, analysis, shapes, columns": 1e6 * seconds / count}


def main():
    _native.set_wants(None)  # importing the package has set its own
    print("microseconds a node and call, 1 element:")
    for name, cost in node_costs().items():
        print("  %-28s %8.2f" % (name, cost))
    print("milliseconds for 1,000 nodes:")
    for name, cost in pass_costs().items():
        print("  %-28s %8.2f" % (name, cost))


if __name__ == "__main__":
    main()
