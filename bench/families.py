"""Reductions, norms, concat, split, transpose and gather: how many fused ops each becomes, and the results.

Every case runs plain and fused, with known sizes and with an unknown first dim, on the host target and on the
ascend target (Ascend C on the twin). "rest" are ops of TF that still run. The difference is relative to the
largest value that TF gives; 0 means that every bit is the same. `python -m bench.families --write` puts the
table, and that of bench/kernel_counts.py, into docs/families.md.
"""

import sys
from typing import Callable, List, NamedTuple, Sequence, Tuple

import numpy as np
from rich.console import Console
from rich.table import Table
from tqdm import tqdm

from bench import _documents, kernel_counts
from bench.kernel_counts import plain_and_fused

SHAPES = ((1024, 256), (7, 1000), (3, 5, 17), (2, 3, 4, 5, 6), (1, 1))
CONCATS = (2, 16, 63, 200)
TARGETS = ("host", "ascend")


class Case(NamedTuple):
    """build(placeholders) -> fetches; shapes: of the inputs; index: the inputs that are indexes, below 50."""

    name: str
    shapes: Tuple[Tuple[int, ...], ...]
    build: Callable
    index: Tuple[int, ...] = ()


class Row(NamedTuple):
    """fallbacks: calls of fused ops that ran the original ops."""

    fused: int
    rest: int
    fallbacks: int
    difference: float

    @property
    def text(self) -> str:
        return "%d + %d%s" % (self.fused, self.rest, ", by the fallback" if self.fallbacks else "")


def layer_norm(x):
    import tensorflow as tf

    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    return (x - mean) * tf.math.rsqrt(variance + 1e-6) * 1.5 + 0.25


def cases() -> List[Case]:
    import tensorflow as tf

    found = []

    def loss(x, labels):
        value, gradient = tf.raw_ops.SoftmaxCrossEntropyWithLogits(features=x * 2.0, labels=labels)
        return [tf.reduce_mean(value), gradient * 0.5]

    def normed(x, scale, offset):
        y, mean, variance = tf.compat.v1.nn.fused_batch_norm(x, scale, offset)
        return [tf.nn.relu(y), mean, variance]

    def normed_gradient(x, scale, offset, dy):
        y = tf.compat.v1.nn.fused_batch_norm(x, scale, offset)[0]
        return tf.gradients(y, [x, scale, offset], dy)

    def front(*inputs):
        tables, indices = inputs[: len(inputs) // 2], inputs[len(inputs) // 2 :]
        looked_up = [tf.reshape(tf.gather(t, i), [-1, 4]) for t, i in zip(tables, indices)]
        return [tf.concat(looked_up, 1)]

    def pooled(table, index, length):
        mask = tf.cast(tf.range(10)[None, :] < length, tf.float32)[:, :, None]
        rows = tf.gather(table, index) * mask
        return [tf.reduce_sum(rows, 1) / (tf.cast(length, tf.float32) + 1e-8), tf.reduce_sum(rows, 1)]

    for shape in SHAPES:
        text = "[%s]" % ",".join(map(str, shape))
        found += [
            Case(
                "relu -> sum, max, mean %s" % text,
                (shape,),
                lambda x: [f(tf.nn.relu(x), -1) for f in (tf.reduce_sum, tf.reduce_max, tf.reduce_mean)],
            ),
            Case("softmax of 2x %s" % text, (shape,), lambda x: [tf.nn.softmax(x * 2.0)]),
            Case("layer norm %s" % text, (shape,), lambda x: [layer_norm(x)]),
        ]
    for count in CONCATS:
        for axis in range(2):
            found.append(
                Case(
                    "concat of %d abs, axis %d" % (count, axis),
                    ((6, 5),) * count,
                    lambda *x, axis=axis: [tf.concat([tf.abs(v) for v in x], axis)],
                )
            )
    found += [
        Case(
            "split, elementwise, concat",
            ((64, 48),),
            lambda x: [
                tf.concat([tf.nn.relu(a) + b for a, b in zip(tf.split(x, 4, 1), tf.split(x * 0.5, 4, 1))], 1)
            ],
        ),
        Case(
            "transpose, add, transpose",
            ((40, 64), (64, 40)),
            lambda x, y: [tf.transpose(tf.transpose(x) + y)],
        ),
        Case(
            "gather, mul, sum of an embedding",
            ((50, 16), (64, 10), (64, 10, 1)),
            lambda table, index, w: [tf.reduce_sum(tf.gather(table, index) * w, 1)],
            index=(1,),
        ),
        Case(
            "34 lookups, reshape, concat",
            ((50, 4),) * 34 + ((16, 1),) * 34,
            front,
            index=tuple(range(34, 68)),
        ),
        Case("sum and mean of a masked sequence", ((50, 16), (32, 10), (32, 1)), pooled, index=(1, 2)),
        Case("softmax loss and its gradient", ((64, 10), (64, 10)), loss),
        Case("batch norm in training", ((8, 6, 6, 16), (16,), (16,)), normed),
        Case("batch norm and its gradient", ((8, 6, 6, 16), (16,), (16,), (8, 6, 6, 16)), normed_gradient),
        Case(
            "sum of all squares, more inside than a tile",
            ((24, 9000), (9000,)),
            lambda x, row: [tf.reduce_sum(tf.square(x + row))],
        ),
    ]
    return found


def measure(case: Case, target: str, dynamic: bool) -> Row:
    """Runs the case on the target."""
    import tensorflow as tf

    from tf_autofuse.frontend import plugin

    plugin.native().reset_stats()
    random = np.random.RandomState(0)
    values = [
        (
            random.randint(0, 50, s).astype(np.int32)
            if i in case.index
            else random.uniform(-1, 1, s).astype(np.float32)
        )
        for i, s in enumerate(case.shapes)
    ]
    graph = tf.Graph()
    with graph.as_default():
        inputs = [
            tf.compat.v1.placeholder(
                v.dtype, ([None] + list(v.shape[1:])) if dynamic and v.ndim > 1 else v.shape
            )
            for v in values
        ]
        fetches = case.build(*inputs)
    feed = dict(zip(inputs, values))
    plain, found = plain_and_fused(graph, fetches, feed, target)
    fused = [n for n in found.nodes if n.rsplit("/", 1)[-1].startswith("autofuse_")]
    worst = 0.0
    for a, b in zip(plain.values, found.values):
        if a.tobytes() != b.tobytes():
            worst = max(worst, float(np.max(np.abs(a - b)) / np.max(np.abs(a))))
    fallbacks = sum(s["fallbacks"] for s in plugin.native().stats().values())
    return Row(len(fused), len(found.nodes) - len(fused), fallbacks, worst)


HEAD = ("case", "sizes") + tuple("%s: %s" % (t, c) for t in TARGETS for c in ("fused + rest", "difference"))


def rows(targets: Sequence[str] = TARGETS) -> List[List[str]]:
    found = []
    for case in tqdm(cases(), unit="case", disable=None):
        for dynamic in (False, True):
            row = [case.name, "first unknown" if dynamic else "known"]
            for target in targets:
                measured = measure(case, target, dynamic)
                row += [measured.text, "%.1g" % measured.difference]
            found.append(row)
    return found


def run(console: Console) -> None:
    table = Table(*HEAD)
    for row in rows():
        table.add_row(*row)
    console.print(table)


def main() -> None:
    found = rows()
    print("\n".join(_documents.markdown(HEAD, found)))
    if "--write" in sys.argv[1:]:
        document = _documents.ROOT / "docs" / "families.md"
        _documents.replace(document, "families", _documents.markdown(HEAD, found))
        blocks, kernels = kernel_counts.tables()
        _documents.replace(document, "blocks", _documents.markdown(kernel_counts.BLOCKS_HEAD, blocks))
        _documents.replace(document, "kernels", _documents.markdown(kernel_counts.KERNELS_HEAD, kernels))


if __name__ == "__main__":
    main()
