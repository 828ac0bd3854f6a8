"""What the tests of the native extension share: configs with the plugin's entry, hand-made kernels, passes.

`Recorder` is a graph pass that records what it gets and answers with the edits of a chooser. Without a
registered kernel every fused node runs its fallback, so that a graph can be fused as wildly as the native
side allows and must still give TensorFlow's results.
"""

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import tensorflow as tf

from tf_autofuse.frontend import _native

v1 = tf.compat.v1
FLOAT = 1
KERNEL_SOURCE = Path(__file__).with_name("native_kernel.cc")

#: Stateless ops on which a fallback-only fusion may be tried.
LIGHT = frozenset(
    (
        "Abs Add AddV2 AddN Sub Mul RealDiv Div Neg Exp Log Sqrt Square Relu Sigmoid Tanh Maximum Minimum "
        "Greater Less Equal Select Cast Reshape ExpandDims Squeeze BiasAdd Softplus SquaredDifference Rsqrt "
        "LogicalNot LogicalOr GreaterEqual ZerosLike OnesLike Fill Pow ReluGrad SigmoidGrad Tile Transpose"
    ).split()
)


def compile_kernel(folder, kind, **macros):
    """Path of a new library of native_kernel.cc with KIND=kind; each call gives a file of its own."""
    target = Path(str(folder)) / ("%s_%d.so" % (kind.lower(), len(os.listdir(str(folder)))))
    defines = ["-D%s=%s" % item for item in dict(macros, KIND=kind).items()]
    compiler = os.environ.get("CXX") or shutil.which("g++")
    subprocess.check_call(
        [
            compiler,
            "-std=c++14",
            "-O1",
            "-fPIC",
            "-shared",
            "-Wall",
            *defines,
            str(KERNEL_SOURCE),
            "-o",
            str(target),
        ]
    )
    return str(target)


def meta(library, kind="SUM", **changes):
    rank = 2 if kind == "SUM" else 1
    inputs, outputs = (2 if kind == "SUM" else 1), (2 if kind == "TWO" else 1)
    result = dict(
        library=library,
        name="test_" + kind.lower(),
        input_ranks=[rank] * inputs,
        input_dtypes=[FLOAT] * inputs,
        output_ranks=[rank] * outputs,
        output_dtypes=[FLOAT] * outputs,
        size_count=rank,
        forward=[],
        small_bytes=65536,
        core_num=48,
        ub_size=196352,
    )
    result.update(changes)
    return result


def region(columns, names):
    """(nodes, inputs, outputs) of the region of these nodes: all that goes in, all that is read outside."""
    nodes = sorted(columns["names"].index(name) for name in names)
    inside = set(nodes)
    inputs, outputs = [], []
    for node in nodes:
        for source in columns["inputs"][node]:
            if source[0] not in inside and tuple(source) not in inputs:
                inputs.append(tuple(source))
    for node, sources in enumerate(columns["inputs"]):
        if node in inside:
            continue
        for source in sources:
            if source[0] in inside and tuple(source) not in outputs:
                outputs.append(tuple(source))
    return nodes, inputs, sorted(outputs)


def edit(columns, names, key="no_kernel", name="autofuse_test", op="AscBackend", **attrs):
    nodes, inputs, outputs = region(columns, names)
    return dict(
        name=name,
        op=op,
        nodes=nodes,
        inputs=inputs,
        outputs=outputs,
        attrs=dict(dict(kernel_name=name, kernel_key=key, asc_graph=b"\x00\xffgraph"), **attrs),
    )


def greedy_edits(columns, limit=12):
    """Regions grown along data edges without regard for cycles or branches: native refuses or is right."""
    group = {}
    members = []
    for node, op in enumerate(columns["ops"]):
        if op not in LIGHT or columns["stateful"][node]:
            continue
        for source, _ in columns["inputs"][node]:
            near = group.get(source)
            if near is not None and len(members[near]) < limit:
                break
        else:
            near = len(members)
            members.append([])
        group[node] = near
        members[near].append(node)
    edits = []
    for number, nodes in enumerate(members):
        names = [columns["names"][n] for n in nodes]
        made = edit(columns, names, name="autofuse_greedy_%d" % number, key="no_kernel_%d" % number)
        if made["outputs"] and len(nodes) > 1:
            edits.append(made)
    return edits


class Recorder:
    """The graph pass of a test. `choose(columns)` gives the edits; everything seen is kept."""

    def __init__(self, choose):
        self.choose = choose
        self.columns, self.contexts, self.rejections = [], [], []

    def __call__(self, columns, context):
        self.columns.append(columns)
        self.contexts.append(context)
        return self.choose(columns)

    def install(self):
        _native.set_graph_pass(self)
        _native.set_report(self.rejections.extend)
        return self


def config(entry="AutofuseOptimizer", grappler=True, **parameters):
    proto = v1.ConfigProto()
    if not grappler:
        proto.graph_options.rewrite_options.disable_meta_optimizer = True
    if entry is None:
        return proto
    made = proto.graph_options.rewrite_options.custom_optimizers.add()
    made.name = entry
    for name, value in parameters.items():
        if isinstance(value, bool):
            made.parameter_map[name].b = value
        elif isinstance(value, int):
            made.parameter_map[name].i = value
        elif isinstance(value, float):
            made.parameter_map[name].f = value
        else:
            made.parameter_map[name].s = value.encode()
    return proto


def run_with_graph(session, fetches, feeds=None):
    """(result, nodes that really ran as a list of NodeDefs)."""
    options, metadata = v1.RunOptions(output_partition_graphs=True), v1.RunMetadata()
    result = session.run(fetches, feeds, options=options, run_metadata=metadata)
    return result, [node for graph in metadata.partition_graphs for node in graph.node]


def fused_nodes(nodes):
    return [node for node in nodes if node.op in ("AscBackend", "FusedAscBackend")]


def same_bits(a, b):
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
