"""What a fused node costs for each call on one element, beside TensorFlow's cheapest ops.

A node's cost is the difference between a chain of 250 and one of 50 of them, on one thread, so that neither
the session's own cost nor a hand-off between threads is in it. It is processor time, and the least of some
turns in which all chains are run one after the other, so that other load on the machine disturbs little. The
kernel is made by hand (a negation), so that the node's cost is seen and not a kernel's.
"""
import tempfile
import time

import numpy as np
from rich.table import Table

SHORT, LONG = 50, 250
GROUPS, TURNS = 9, 200
KEY = "bench_launch_overhead"


class _Chain:
    """A session that runs `length` ops one after the other on one element."""

    def __init__(self, op, length, session_config):
        import tensorflow as tf
        v1 = tf.compat.v1
        session_config.inter_op_parallelism_threads = session_config.intra_op_parallelism_threads = 1
        with tf.Graph().as_default() as graph:
            x = v1.placeholder(tf.float32, [None], name="x")
            y = x
            for _ in range(length):
                y = op(y)
            self.session = v1.Session(graph=graph, config=session_config)
            self.call = self.session.make_callable(y.op, feed_list=[x])
        self.value = np.float32([1.5])
        self.call(self.value)

    def seconds(self):
        start = time.process_time()
        self.call(self.value)
        return time.process_time() - start


def _fuse_each(columns):
    from tests.frontend.native_session import edit
    return [edit(columns, [name], key=KEY, name="autofuse_%s" % name)
            for name, op in zip(columns["names"], columns["ops"]) if op == "Neg"]


def node_costs(groups=GROUPS, turns=TURNS):
    """{what: seconds of one node in each group of turns}. The kernel forwards its input's buffer as
    TensorFlow's Neg does."""
    import tensorflow as tf
    from tests.frontend.native_session import Recorder, _native, compile_kernel, config, meta
    _native.set_wants(None)
    with tempfile.TemporaryDirectory() as folder:
        library = compile_kernel(folder, "TOGETHER")
        _native.register_kernel(KEY, meta(library, "TOGETHER", forward=[[0, 0]]))
    Recorder(_fuse_each).install()
    kinds = {"tf.identity": (tf.identity, None), "tf.negative": (tf.negative, None),
             "AscBackend": (tf.negative, "AutofuseOptimizer")}
    chains = {name: tuple(_Chain(op, length, config(entry, grappler=False)) for length in (SHORT, LONG))
              for name, (op, entry) in kinds.items()}
    costs = {name: [] for name in chains}
    for _ in range(groups):
        best = {name: [float("inf")] * 2 for name in chains}
        for _ in range(turns):
            for name, pair in chains.items():
                best[name] = [min(b, chain.seconds()) for b, chain in zip(best[name], pair)]
        for name, (short, long) in best.items():
            costs[name].append((long - short) / (LONG - SHORT))
    stats = _native.stats()[KEY]
    # the last node of a chain has no reader and stays
    assert stats["calls"] >= groups * turns * (SHORT + LONG - 2), stats
    assert stats["fallbacks"] == stats["errors"] == 0, stats
    for pair in chains.values():
        for chain in pair:
            chain.session.close()
    return costs


def run(console) -> None:
    costs = node_costs()
    table = Table("node on one element", "ns", "times tf.negative, median [least, most]")
    for name, seconds in costs.items():
        ratios = [a / b for a, b in zip(seconds, costs["tf.negative"])]
        table.add_row(name, "%.0f" % (1e9 * np.median(seconds)),
                      "%.2f [%.2f, %.2f]" % (np.median(ratios), min(ratios), max(ratios)))
    console.print(table)
