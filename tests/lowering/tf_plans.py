"""Plans of TF graphs, checked against TF: each region is evaluated on numpy (ir/evaluate.py) over the
tensors that TF computes, and must give the tensors that TF computes.

What is checked is thus lowering, fusion and emission, whatever targets can run. The session runs without
fusion; the native side's columns are recorded on the way.
"""

import re
from typing import List

import numpy as np
import tensorflow as tf

from tests.differential.harness import bit_differences, plain_config
from tests.frontend.native_session import Recorder
from tests.lowering.checks import keep_config
from tf_autofuse.frontend import _native, plugin
from tf_autofuse.ir.evaluate import evaluate_fused
from tf_autofuse.ir.verify import verify_fused
from tf_autofuse.lowering.graph_view import GraphView
from tf_autofuse.lowering.plan import Plan, plan

v1 = tf.compat.v1
_FED = re.compile(r"_arg_(.*)_(\d+)_\d+$")
ALL_FAMILIES = ("reduce", "concat", "slice", "split", "transpose", "gather")


def columns_of(graph, fetches, feed):
    """The columns of the graph that runs for these fetches."""
    recorder = Recorder(lambda columns: []).install()
    _native.set_wants(None)
    try:
        config = plain_config()
        config.graph_options.rewrite_options.custom_optimizers.add().name = "AutofuseOptimizer"
        with v1.Session(graph=graph, config=config) as session:
            session.run(fetches, feed)
    finally:
        plugin.register_again()
    return recorder.columns[0]


def tf_names(columns) -> List[str]:
    """The name in the TF graph of each node of the columns."""
    found = []
    for name in columns["names"]:
        fed = _FED.match(name)
        found.append(fed.group(1) if fed else name)
    return found


def plan_against_tf(build, feeds, target="host", config=None, close=False) -> Plan:
    """build() -> (placeholders by name, fetches), in the default graph. The plan of what the first feed runs,
    checked with every feed; close: with functions that numpy rounds otherwise than TF."""
    graph = tf.Graph()
    with graph.as_default():
        placeholders, fetches = build()
    named = [{placeholders[k]: v for k, v in feed.items()} for feed in feeds]
    columns = columns_of(graph, fetches, named[0])
    view = GraphView.from_columns(columns)
    result = plan(view, config or keep_config(enable_pass=ALL_FAMILIES), target)
    names = tf_names(columns)
    for region in result.regions:
        verify_fused(region.fused)
    with v1.Session(graph=graph, config=plain_config()) as session:
        for feed in named:
            for region in result.regions:
                ports = list(region.inputs) + list(region.outputs)
                fetched = {}
                for node, port in ports:
                    if node in view.constants and columns["ops"][node] == "Const":
                        fetched[node, port] = view.constants[node]
                    else:
                        tensor = graph.get_tensor_by_name("%s:%d" % (names[node], port))
                        fetched[node, port] = session.run(tensor, feed)
                outputs = evaluate_fused(region.fused, [np.asarray(fetched[t]) for t in region.inputs])
                for tensor, got in zip(region.outputs, outputs):
                    if close:
                        np.testing.assert_allclose(got, fetched[tensor], rtol=3e-6, atol=1e-6)
                        continue
                    wrong = bit_differences(np.asarray(fetched[tensor]), got)
                    assert not wrong, "%s %s: %s" % (region.fused.name, columns["names"][tensor[0]], wrong)
    return result


def one_region(result: Plan, *ops: str):
    """The plan's only region; it must hold these TF ops."""
    assert len(result.regions) == 1, [(r.fused.name) for r in result.regions] + [
        (d.name, d.code, d.reason) for d in result.decisions if d.code
    ]
    (region,) = result.regions
    inside = [d.op for d in result.decisions if d.region == 0]
    for op in ops:
        assert op in inside, (op, inside)
    return region
