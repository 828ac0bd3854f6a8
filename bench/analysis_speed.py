"""What the plugin's analysis takes: from a graph's columns to the edits, with a warm kernel cache.

The graph is a tower of equal layers as an encoder has them: two matrix products with 44 light ops
between and behind them (bias, GELU, residual, layer norm written out of elementwise ops, gate), the
batch unknown; every eighth layer is a variant with other widths, so that not all is equal. Sizes are
the numbers of fusible ops. Times are processor times of the pass, in a process that an earlier one has
filled the cache for and that has done its imports.
"""
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
LAYER_OPS = 44
SIZES = (1024, 4096, 16384, 65536)
AGAIN = 5
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


def measure(size, again=AGAIN):
    """Milliseconds of the pass for one graph: 'kept', the first time in this process where an earlier one
    has left the answer; 'again', the next times; 'analysed', where the answer is unknown but the
    kernels are there; 'stages' of the latter."""
    from tf_autofuse.frontend import answers, plugin
    from tf_autofuse.report import journal
    native = plugin.native()
    plugin._graph_pass(native.graph_columns(graph_def(1)), CONTEXT)
    columns = native.graph_columns(graph_def(-(-size // LAYER_OPS)))

    def milliseconds():
        start = time.process_time()
        edits = plugin._graph_pass(columns, CONTEXT)
        return 1e3 * (time.process_time() - start), edits

    kept, edits = milliseconds()
    times = [milliseconds()[0] for _ in range(again)]
    key_of = answers.key_of
    answers.key_of = lambda *arguments: None
    analysed = [milliseconds()[0] for _ in range(3)]
    answers.key_of = key_of
    stages = [(name, 1e3 * seconds) for name, seconds in journal.records()[-1].compilation.timings]
    return {
        "fusible": sum(len(edit["nodes"]) for edit in edits),
        "nodes": len(columns["names"]),
        "edits": len(edits),
        "kept": kept,
        "again": statistics.median(times),
        "analysed": statistics.median(analysed),
        "stages": stages,
    }


def run(console, sizes=SIZES) -> None:
    ways = ("kept", "again", "analysed")
    heads = ["fusible ops", "nodes", "fused ops"] + ["%s, ms" % way for way in ways]
    table = Table(*(heads + ["per 1,024 ops, ms"]))
    environ = dict(os.environ, AUTOFUSE_FLAGS="--enable_autofuse=true", AUTOFUSE_BUILD="sync",
                   PYTHONPATH=str(ROOT), TF_CPP_MIN_LOG_LEVEL="2")
    for size in sizes:
        program = "import json; from bench.analysis_speed import measure; print(json.dumps(measure(%d)))"
        command = [sys.executable, "-c", program % size]
        for _ in range(2):  # the first process fills the cache
            done = subprocess.run(command, stdout=subprocess.PIPE, env=environ, check=True)
        found = json.loads(done.stdout.decode().splitlines()[-1])
        rates = ["%.2f" % (found[way] * 1024 / found["fusible"]) for way in ways]
        counts = ["%d" % found[what] for what in ("fusible", "nodes", "edits")]
        table.add_row(*(counts + ["%.1f" % found[way] for way in ways] + [", ".join(rates)]))
    console.print(table)
