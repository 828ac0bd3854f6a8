"""Where the suite's models spend the time of their ops, and how much of it fusion could and does save.

Times are those of TensorFlow's tracer, medians over runs of each op, in a session with one thread for ops
and two within them, so that ops do not overlap. 'light' has a lowering; 'bound' is the time of all ops over
that of the rest: a fusion whose ops took nothing would reach it. 'saved of the bound' is the share of the
light ops' time that the plugin's session does without; products on kept memory may take it beyond all.
Tracing makes small ops dearer for both; the sessions take turns.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Dict, NamedTuple

from rich.table import Table

RUNS, WARM = 25, 5
CASES = {"MMOE": (64, 1024), "PLE": (64, 1024), "DIN": (64, 1024), "DeepFM": (64, 1024), "DCN": (64, 1024),
         "BST": (64, 1024), "wide-deep": (64,), "LSTM": (64,), "BERT-small": (64,)}
PRODUCTS = frozenset(("MatMul", "BatchMatMul", "BatchMatMulV2", "Conv2D", "DepthwiseConv2dNative",
                      "_FusedConv2D", "_FusedMatMul"))
FUSED = frozenset(("AscBackend", "FusedAscBackend"))


class Times(NamedTuple):
    """Microseconds of a run's ops by class."""

    products: float
    fused: float
    light: float  # has a lowering, and is TensorFlow's
    other: float

    @property
    def all(self) -> float:
        return sum(self)


def class_of(op: str) -> str:
    from tf_autofuse.ops.table import TF_OPS
    if op in PRODUCTS:
        return "products"
    if op in FUSED:
        return "fused"
    return "light" if op in TF_OPS else "other"


def by_class(runs) -> Times:
    """runs: StepStats of each run."""
    nodes, sums = defaultdict(list), defaultdict(float)
    for stats in runs:
        of_run = defaultdict(float)
        for device in stats.dev_stats:
            for node in device.node_stats:
                name, _, label = node.timeline_label.partition(" = ")
                of_run[name, label.partition("(")[0]] += (
                    node.op_end_rel_nanos - node.op_start_rel_nanos) / 1e3
        for key, microseconds in of_run.items():
            nodes[key].append(microseconds)
    for (_, op), times in nodes.items():
        sums[class_of(op)] += statistics.median(times) * len(times) / len(runs)
    return Times(*(sums[name] for name in Times._fields))


def times_of(model: str, batch: int) -> Dict[bool, Times]:
    """With the plugin (True) and without."""
    import tensorflow as tf
    import tf_autofuse
    from bench.suite.models import files
    v1 = tf.compat.v1
    definition, output, feed = files.load(model, batch)
    sessions, runs = {}, {False: [], True: []}
    for fused in runs:
        with tf.Graph().as_default() as graph:
            tf.import_graph_def(definition, name="")
        config = v1.ConfigProto(intra_op_parallelism_threads=2, inter_op_parallelism_threads=1)
        if fused:
            tf_autofuse.configure(config, precision_mode="must_keep_origin_dtype")
        sessions[fused] = v1.Session(graph=graph, config=config)
    options = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)
    for run in range(WARM + RUNS):
        for fused, session in sessions.items():
            metadata = v1.RunMetadata()
            session.run(output, feed, options=options, run_metadata=metadata)
            runs[fused] += [metadata.step_stats] if run >= WARM else []
    return {fused: by_class(taken) for fused, taken in runs.items()}


def row(model: str, batch: int, plain: Times, ours: Times):
    could = plain.light / plain.all
    saved = 1 - ours.all / plain.all
    shares = ["%.0f%%" % (100 * part) for part in (
        plain.products / plain.all, could, ours.products / ours.all, ours.fused / ours.all,
        ours.light / ours.all, saved / could)]
    return (["%s, batch %d" % (model, batch), "%.0f" % plain.all] + shares[:2] +
            ["%.2f" % (1 / (1 - could)), "%.0f" % ours.all] + shares[2:5] +
            ["%.2f" % (ours.all / plain.all), shares[5]])


def run(console) -> None:
    from bench.suite.harness import OURS, make_models
    from bench.suite.models import files
    table = Table("model", "TF us", "products", "light", "bound", "ours us", "products", "fused",
                  "light left", "ours / TF", "saved of the bound")
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, **OURS, PYTHONPATH=str(Path(__file__).resolve().parent.parent))
        environment.update({files.FOLDER: folder, "TF_CPP_MIN_LOG_LEVEL": "3"})
        failed = make_models(Path(folder), CASES)
        program = ("import json, sys; from bench.model_bounds import times_of;"
                   "found = times_of(sys.argv[1], int(sys.argv[2]));"
                   "print(json.dumps([found[False], found[True]]))")
        for model, batches in CASES.items():
            for batch in batches if model not in failed else ():
                done = subprocess.run([sys.executable, "-W", "ignore", "-c", program, model, str(batch)],
                                      env=environment, stdout=subprocess.PIPE, check=True)
                plain, ours = json.loads(done.stdout.decode().splitlines()[-1])
                table.add_row(*row(model, batch, Times(*plain), Times(*ours)))
    console.print(table)
    for model, why in failed.items():
        console.print("%s: %s" % (model, why))
