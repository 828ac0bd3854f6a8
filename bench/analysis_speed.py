"""What the plugin's analysis takes: from a graph's columns to the edits, with a warm kernel cache.

The graph is a tower of equal layers as an encoder has them: two matrix products with 44 light ops
between and behind them (bias, GELU, residual, layer norm written out of elementwise ops, gate), the
batch unknown; every eighth layer is a variant with other widths, so that not all is equal. Sizes are
the numbers of fusible ops. Times are processor times of the pass, in a process that an earlier one has
filled the cache for and that has done its imports. `python -m bench.analysis_speed` writes the table into
docs/performance.md.
"""
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from rich.table import Table

from bench import _documents as documents

ROOT = Path(__file__).resolve().parent.parent
LAYER_OPS = 44
SIZES = (1024, 4096, 16384, 65536)
AGAIN = 5
#: Largest graph that is planned without chunks.
MOST_STRAIGHT = 4096
#: The ways to the edits.
WAYS = {
    "kept": "answer kept, new process",  # on disk, by an earlier process
    "again": "answer kept, again",  # in memory
    "analysed": "analysed, kernels kept",  # nothing is known of the graph, its kernels are there
    "known": "analysed, chunks known too",  # a graph of chunks that this process has met
    "straight": "planned as one piece",  # lowering and fusion alone, without chunks
}
HEADS = ["fusible ops", "nodes", "fused ops"] + list(WAYS.values())
CONTEXT = {
    "entry": "AutofuseOptimizer",
    "parameter_map": {"autofuse_target": "auto"},
    "session": 1,
    "function_name": "",
    "signature": {"feeds": [], "fetches": []},
}


def _layer(tf, x, width, wide):
    def weights(*shape):
        return tf.compat.v1.placeholder(tf.float32, shape)

    a = tf.matmul(x, weights(width, wide)) + weights(wide)
    cube = a * a * a
    inner = (a + cube * 0.044715) * 0.7978846
    a = a * 0.5 * (tf.tanh(inner) + 1.0)
    a = tf.maximum(a * weights(wide) + weights(wide), a * 0.1)
    b = tf.matmul(a, weights(wide, width)) + weights(width)
    gate = tf.sigmoid(b * weights(width) + weights(width))
    y = x + b * gate
    scale = tf.math.rsqrt(tf.square(weights(width)) + 1e-6) * weights(width)
    y = (y - weights(width)) * scale + weights(width)
    return tf.nn.relu(y) - tf.exp(-tf.abs(y)) * 0.5


def graph_def(layers):
    """The serialized GraphDef of so many layers."""
    import tensorflow as tf
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [None, 64], name="x")
        for layer in range(layers):
            x = _layer(tf, x, 64, 256 + (layer // 8 % 3 + 1 if layer % 8 == 7 else 0) * 32)
        tf.identity(x, name="y")
        return graph.as_graph_def().SerializeToString()


def measure(size):
    """Milliseconds of the pass for one graph, {way: [times]}, with some counts. See WAYS."""
    from tf_autofuse.config import Config
    from tf_autofuse.frontend import answers, plugin
    from tf_autofuse.lowering import bodies
    from tf_autofuse.lowering.graph_view import GraphView
    from tf_autofuse.lowering.planner import straight
    native = plugin.native()
    plugin._graph_pass(native.graph_columns(graph_def(1)), CONTEXT)
    columns = native.graph_columns(graph_def(-(-size // LAYER_OPS)))
    found = {"nodes": len(columns["names"])}

    def times(way, count, work, before=lambda: None):
        found[way] = []
        for _ in range(count):
            before()
            start = time.process_time()
            result = work()
            found[way].append(1e3 * (time.process_time() - start))
        return result

    def graph_pass():
        return plugin._graph_pass(columns, CONTEXT)

    edits = times("kept", 1, graph_pass)
    found.update(fusible=sum(len(edit["nodes"]) for edit in edits), edits=len(edits))
    times("again", AGAIN, graph_pass)
    key_of = answers.key_of
    answers.key_of = lambda *arguments: None
    times("analysed", AGAIN, graph_pass, bodies.forget)
    times("known", AGAIN, graph_pass)
    answers.key_of = key_of
    if size <= MOST_STRAIGHT:
        config = Config.from_sources(os.environ, CONTEXT["parameter_map"])
        times("straight", 2, lambda: straight(GraphView.from_columns(columns), config, "host"))
    return found


def _shown(found, way):
    if way not in found:
        return ""
    rates = [ms * 1024 / found["fusible"] for ms in found[way]]
    if len(rates) == 1:
        return "%.1f" % rates[0]
    return "%.1f [%.1f, %.1f]" % (statistics.median(rates), min(rates), max(rates))


def rows(sizes=SIZES):
    """The table: of each size the numbers of ops, and of each way the milliseconds for 1,024 of them, median
    [least, most]."""
    environ = dict(os.environ, AUTOFUSE_FLAGS="--enable_autofuse=true", AUTOFUSE_BUILD="sync",
                   PYTHONPATH=str(ROOT), TF_CPP_MIN_LOG_LEVEL="2")
    result = []
    for size in sizes:
        program = "import json; from bench.analysis_speed import measure; print(json.dumps(measure(%d)))"
        command = [sys.executable, "-c", program % size]
        for _ in range(2):  # the first process fills the cache
            done = subprocess.run(command, stdout=subprocess.PIPE, env=environ, check=True)
        found = json.loads(done.stdout.decode().splitlines()[-1])
        counts = ["%d" % found[what] for what in ("fusible", "nodes", "edits")]
        result.append(counts + [_shown(found, way) for way in WAYS])
    return result


def run(console, sizes=SIZES) -> None:
    table = Table(*HEADS, title="Milliseconds of the pass for 1,024 fusible ops")
    for row in rows(sizes):
        table.add_row(*row)
    console.print(table)


if __name__ == "__main__":  # into the document
    documents.replace(ROOT / "docs" / "performance.md", "analysis", documents.markdown(HEADS, rows()))
