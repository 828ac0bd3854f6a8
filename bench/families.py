"""Reductions, norms, concat, split, transpose and gather: how many fused ops each becomes, and the results.

Every case runs plain and fused, with known sizes and with an unknown first dim, on the host target and on the
ascend target (Ascend C on the twin). "rest" are ops of TF that still run. The difference is relative to the
largest value that TF gives; 0 means that every bit is the same.
"""

from typing import Callable, List, NamedTuple, Sequence, Tuple

import numpy as np
from rich.console import Console
from rich.table import Table
from tqdm import tqdm

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
    fused: int
    rest: int
    difference: float


def layer_norm(x):
    import tensorflow as tf

    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    return (x - mean) * tf.math.rsqrt(variance + 1e-6) * 1.5 + 0.25


def cases() -> List[Case]:
    import tensorflow as tf

    found = []
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
    ]
    return found


def measure(case: Case, target: str, dynamic: bool) -> Row:
    """Runs the case on the target."""
    import tensorflow as tf

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
            tf.compat.v1.placeholder(v.dtype, ([None] + list(v.shape[1:])) if dynamic else v.shape)
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
    return Row(len(fused), len(found.nodes) - len(fused), worst)


def run(console: Console, targets: Sequence[str] = TARGETS) -> None:
    table = Table(
        "case", "sizes", *["%s: %s" % (t, c) for t in targets for c in ("fused", "rest", "difference")]
    )
    for case in tqdm(cases(), unit="case", disable=None):
        for dynamic in (False, True):
            row = [case.name, "first unknown" if dynamic else "known"]
            for target in targets:
                found = measure(case, target, dynamic)
                row += [str(found.fused), str(found.rest), "%.1g" % found.difference]
            table.add_row(*row)
    console.print(table)
