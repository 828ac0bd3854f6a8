"""Kernels before and after fusion on four building blocks, with each kernel's tiling and UB use.

Counted are the ops that the executor runs (constants, arguments and results left out): on an NPU each of them
is a kernel launch. Both sides go through TensorFlow's own graph optimizations. The ascend target: kernels for
its default chip, run here on the host twin; results are compared with TensorFlow's.
"""

from typing import Callable, Dict, List, NamedTuple, Tuple

import numpy as np
from rich.console import Console
from rich.table import Table

FAMILIES = "reduce,concat,slice,split,gather,transpose"
BATCH = 64
_NOT_KERNELS = (
    "Const",
    "_Arg",
    "_Retval",
    "_Recv",
    "_Send",
    "_HostRecv",
    "_HostSend",
    "NoOp",
    "VariableV2",
    "VarHandleOp",
    "Placeholder",
)


class Executed(NamedTuple):
    """values: of the fetches. nodes: names of the nodes that ran, without what is no kernel."""

    values: List[np.ndarray]
    nodes: List[str]


class Counted(NamedTuple):
    """plain, fused: executed ops. kernels: (name, TF ops inside, UB bytes, tiling) of fused ops. worst: the
    largest difference from TF, relative to TF's largest value."""

    plain: int
    fused: int
    kernels: Tuple[Tuple[str, int, int, str], ...]
    worst: float


def mlp_tower():
    """Three dense layers, each with bias, layer norm and relu."""
    import tensorflow as tf

    x = tf.compat.v1.placeholder(tf.float32, [None, 128], "x")
    h = x
    for i, width in enumerate((256, 128, 64)):
        h = tf.matmul(h, _weights((h.shape[-1], width), i)) + _weights((width,), 10 + i)
        h = tf.nn.relu(layer_norm(h, width, i))
    return {x: (BATCH, 128)}, [h]


def layer_norm(h, width, seed):
    import tensorflow as tf

    mean, variance = tf.nn.moments(h, [-1], keepdims=True)
    return (h - mean) * tf.math.rsqrt(variance + 1e-6) * _weights((width,), 20 + seed) + _weights(
        (width,), 30 + seed
    )


def attention():
    """Multi-head attention with mask, softmax and a residual, 4 heads of 16."""
    import tensorflow as tf

    length, heads, size = 32, 4, 16
    x = tf.compat.v1.placeholder(tf.float32, [None, length, heads * size], "x")
    mask = tf.compat.v1.placeholder(tf.float32, [None, 1, 1, length], "mask")
    split = []
    for i in range(3):
        flat = tf.matmul(tf.reshape(x, [-1, heads * size]), _weights((heads * size, heads * size), i))
        split.append(
            tf.transpose(
                tf.reshape(flat + _weights((heads * size,), 5 + i), [-1, length, heads, size]), [0, 2, 1, 3]
            )
        )
    scores = tf.matmul(split[0], split[1], transpose_b=True) * (1.0 / size**0.5) + (1.0 - mask) * -1e4
    mixed = tf.transpose(tf.matmul(tf.nn.softmax(scores), split[2]), [0, 2, 1, 3])
    y = layer_norm(tf.reshape(mixed, [-1, length, heads * size]) + x, heads * size, 9)
    return {x: (8, length, heads * size), mask: (8, 1, 1, length)}, [y]


def din_attention():
    """DIN's local activation unit: query against each item of a history, masked weighted sum."""
    import tensorflow as tf

    length, size = 50, 32
    query = tf.compat.v1.placeholder(tf.float32, [None, size], "query")
    keys = tf.compat.v1.placeholder(tf.float32, [None, length, size], "keys")
    lengths = tf.compat.v1.placeholder(tf.int32, [None, 1], "lengths")
    queries = tf.tile(tf.expand_dims(query, 1), [1, length, 1])
    h = tf.concat([queries, keys, queries - keys, queries * keys], -1)
    for i, width in enumerate((64, 16)):
        flat = tf.matmul(tf.reshape(h, [-1, h.shape[-1]]), _weights((h.shape[-1], width), i))
        h = tf.sigmoid(tf.reshape(flat, [-1, length, width]) + _weights((width,), 7 + i))
    scores = tf.reshape(tf.matmul(tf.reshape(h, [-1, 16]), _weights((16, 1), 9)), [-1, length])
    mask = tf.range(length)[None, :] < lengths
    weights = tf.nn.softmax(tf.where_v2(mask, scores * size**-0.5, -1e9))
    return (
        {query: (BATCH, size), keys: (BATCH, length, size), lengths: (BATCH, 1)},
        [tf.reduce_sum(tf.expand_dims(weights, -1) * keys, 1)],
    )


def mmoe_gate():
    """MMOE: four experts mixed by a softmax gate for each of two tasks."""
    import tensorflow as tf

    x = tf.compat.v1.placeholder(tf.float32, [None, 64], "x")
    experts = tf.stack(
        [tf.nn.relu(tf.matmul(x, _weights((64, 32), i)) + _weights((32,), 4 + i)) for i in range(4)], 1
    )
    outputs = []
    for task in range(2):
        gate = tf.nn.softmax(tf.matmul(x, _weights((64, 4), 10 + task)))
        mixed = tf.reduce_sum(tf.expand_dims(gate, -1) * experts, 1)
        outputs.append(tf.sigmoid(tf.matmul(mixed, _weights((32, 1), 12 + task)) + 0.1))
    return {x: (BATCH, 64)}, outputs


BLOCKS: Dict[str, Callable] = {
    "MLP tower with layer norm": mlp_tower,
    "attention block": attention,
    "DIN attention unit": din_attention,
    "MMOE gate": mmoe_gate,
}


def _weights(shape, seed):
    import tensorflow as tf

    return tf.constant(
        np.random.RandomState(seed).uniform(-0.2, 0.2, [int(d) for d in shape]).astype(np.float32)
    )


def count(build: Callable, target: str = "ascend") -> Counted:
    """Runs the block plain and fused on the target."""
    import tensorflow as tf

    from tf_autofuse.report import journal

    graph = tf.Graph()
    with graph.as_default():
        shapes, fetches = build()
    random = np.random.RandomState(1)
    feed = {
        t: random.randint(0, 40, s) if t.dtype == tf.int32 else random.uniform(0, 1, s).astype(np.float32)
        for t, s in shapes.items()
    }
    journal.clear()
    plain, fused = plain_and_fused(graph, fetches, feed, target)
    worst = max(
        float(np.max(np.abs(a - b)) / max(np.max(np.abs(a)), 1e-30))
        for a, b in zip(plain.values, fused.values)
    )
    kernels: List[Tuple[str, int, int, str]] = []
    for record in journal.records():
        for compiled in record.compilation.compiled if record.compilation else ():
            if compiled.region.fused.name in fused.nodes:
                kernels.append(_kernel(compiled, record.compilation.machine))
    return Counted(len(plain.nodes), len(fused.nodes), tuple(kernels), worst)


def plain_and_fused(graph, fetches, feed, target: str) -> Tuple[Executed, Executed]:
    """The graph without the plugin and with it, every family on, computed in the graph's dtypes."""
    import tensorflow as tf

    import tf_autofuse
    from tests.differential.harness import environment, executed_nodes

    def run(config) -> Executed:
        with tf.compat.v1.Session(graph=graph, config=config) as session:
            values, nodes = executed_nodes(session, fetches, feed)
        return Executed(values, [n.name for n in nodes if n.op not in _NOT_KERNELS])

    with environment(
        AUTOFUSE_FLAGS="--enable_autofuse=true;--autofuse_enable_pass=" + FAMILIES,
        AUTOFUSE_TARGET=target,
        AUTOFUSE_BUILD="sync",
    ):
        plain = run(tf.compat.v1.ConfigProto())
        return plain, run(
            tf_autofuse.configure(tf.compat.v1.ConfigProto(), precision_mode="must_keep_origin_dtype")
        )


def _kernel(compiled, machine) -> Tuple[str, int, int, str]:
    """(name, TF ops inside, UB bytes, tiling) for the dims of the kernel's last call."""
    from tf_autofuse.frontend import plugin
    from tf_autofuse.runtime import registry

    fused = compiled.region.fused
    flat = iter(plugin.native().stats()[compiled.binary.key]["last"]["dims"])
    dims = [tuple(int(next(flat)) for _ in t.dims) for t in fused.inputs]
    library = registry.library_of(compiled.binary, fused)
    chosen = library.tiling(library.shape(dims).sizes, *machine.launch_limits)
    ub = sum(v for k, v in chosen.values if k.endswith("_bytes"))
    text = ", ".join("%s %d" % (k, v) for k, v in chosen.values if k != "unused" and not k.endswith("_bytes"))
    return fused.name, len(compiled.region.nodes), ub, text


BLOCKS_HEAD = (
    "block", "ops before", "ops after", "fused kernels", "TF ops inside", "largest relative difference"
)
KERNELS_HEAD = ("kernel", "TF ops", "UB bytes", "tiling")


def tables() -> Tuple[List[List[str]], List[List[str]]]:
    """The rows of both tables, of the blocks and of their kernels."""
    blocks, kernels = [], []
    for name, build in BLOCKS.items():
        counted = count(build)
        inside = sum(k[1] for k in counted.kernels)
        numbers = [counted.plain, counted.fused, len(counted.kernels), inside]
        blocks.append([name] + [str(n) for n in numbers] + ["%.2g" % counted.worst])
        kernels += [[k[0], str(k[1]), str(k[2]), k[3]] for k in counted.kernels]
    return blocks, kernels


def run(console: Console) -> None:
    for head, rows in zip((BLOCKS_HEAD, KERNELS_HEAD), tables()):
        table = Table(*head)
        for row in rows:
            table.add_row(*row)
        console.print(table)
