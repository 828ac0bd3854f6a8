"""Ops that put elements elsewhere, through a session on the host target, against TF 1.15's own kernels, bit
for bit.

Many cases share a graph, each with placeholders of its own whose dims are unknown while it is built; they
are fed with shapes that have unit dims, no elements and odd lengths, and with NaN, infinities and both zeros.
"""
import numpy as np
import pytest
import tensorflow as tf

from tests.differential.harness import (bit_differences, environment, executed_nodes, fused_config,
                                        plain_config)
from tf_autofuse.frontend import plugin

v1 = tf.compat.v1
ON = "--enable_autofuse=true"
SIZES = ({"a": 5, "b": 3}, {"a": 1, "b": 1}, {"a": 0, "b": 2}, {"a": 33, "b": 17})


def twice(x):
    return x if x.dtype == tf.bool else x + x


def merged(parts, axis):
    return twice(tf.concat([twice(p) for p in parts], axis))


def head(x):
    """Transposes around an op, two splits of one tensor, slices of a concat."""
    swapped = tf.transpose(twice(tf.transpose(x, [0, 2, 1])), [0, 2, 1])
    left, right = tf.split(swapped, 2, 2)
    both = tf.concat([left, right[:, :, 1:], right], 2)
    return twice(both)[:, :, 1:3]


#: name -> (dims of each input, a and b being run-time sizes; body)
CASES = {
    "transpose": ((("a", "b", 4),), lambda x: twice(tf.transpose(twice(x), [2, 0, 1]))),
    "transpose_rank_5": ((("a", 2, 3, "b", 2),), lambda x: twice(tf.transpose(twice(x), [4, 2, 0, 1, 3]))),
    "merged_transpose": ((("a", 12),),
                         lambda x: twice(tf.reshape(tf.transpose(tf.reshape(x, [-1, 3, 4]), [0, 2, 1]),
                                                    [-1, 12]))),
    "strided": ((("a", 9),), lambda x: twice(twice(x)[:, 1:8:3])),
    "last": ((("a", 4, 3),), lambda x: twice(twice(x)[:, -1])),
    "slice": ((("a", 7),), lambda x: twice(twice(tf.slice(x, [0, 2], [-1, 4])))),
    "split_concat": ((("a", "b", 8),), lambda x: merged(tf.split(x, 4, 2), 2)),
    "split_rows": (((6, "b"),), lambda x: merged(tf.split(x, [1, 2, 3], 0), 0)),
    "unstack_stack": ((("a", 3, "b"),),
                      lambda x: twice(tf.stack([twice(r) for r in tf.unstack(x, axis=1)], 2))),
    "concat_axis_0": ((("a", 4), ("b", 4), ("a", 4)), lambda *x: merged(x, 0)),
    "concat_axis_1": ((("a", 1), ("a", 6), ("a", 6), ("a", 3)), lambda *x: merged(x, 1)),
    "many_parts": ((("a", 2),) * 24, lambda *x: merged(x, -1)),
    "tile": ((("a", 3),), lambda x: twice(tf.tile(twice(x), [2, 3]))),
    "tile_rows": ((("a", 1),), lambda x: twice(tf.tile(twice(x), [1, 5]))),
    "repeat_elements": ((("a", 1, "b"), ("a", 6, "b")),
                        lambda x, y: twice(tf.concat([k for k in tf.split(twice(x), 1, 1) for _ in range(6)],
                                                     1) - y)),
    "pad": ((("a", 5),), lambda x: twice(tf.pad(twice(x), [[1, 2], [0, 3]]))),
    "mirror": ((("b", 5),), lambda x: twice(tf.pad(twice(x), [[0, 0], [2, 1]], "REFLECT"))),
    "head": ((("a", "b", 4),), head),
}  # fmt: skip
#: Those that a float32 graph runs only: the same index maps as others.
FLOAT_ONLY = frozenset(("repeat_elements", "transpose_rank_5", "split_rows", "tile_rows", "mirror",
                        "many_parts", "slice"))
NUMPY = {tf.float32: np.float32, tf.float64: np.float64, tf.float16: np.float16, tf.int8: np.int8,
         tf.int64: np.int64, tf.bool: np.bool_}  # fmt: skip


def values(dtype, shape, seed):
    rng = np.random.RandomState(seed)
    if dtype == tf.bool:
        return rng.rand(*shape) < 0.5
    if dtype.is_integer:
        return rng.randint(-128, 128, shape).astype(NUMPY[dtype])
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2.25], NUMPY[dtype])
    mixed = np.where(rng.rand(*shape) < 0.3, special[rng.randint(7, size=shape)], rng.randn(*shape))
    return mixed.astype(NUMPY[dtype])


def fallbacks():
    return sum(s["fallbacks"] for s in plugin.native().stats().values())


@pytest.mark.parametrize("dtype", sorted(NUMPY, key=str), ids=lambda d: d.name)
def test_moves_are_tensorflows_to_the_bit(dtype):
    cases = {k: c for k, c in CASES.items() if dtype == tf.float32 or k not in FLOAT_ONLY}
    graph = tf.Graph()
    with graph.as_default():
        holders = {
            name: [
                v1.placeholder(dtype, [d if isinstance(d, int) else None for d in dims], "%s_%d" % (name, i))
                for i, dims in enumerate(inputs)
            ]
            for name, (inputs, _) in cases.items()
        }
        fetches = {name: body(*holders[name]) for name, (_, body) in cases.items()}
    feeds = []
    for seed, sizes in enumerate(SIZES):
        feed = {}
        for name, (inputs, _) in cases.items():
            for i, dims in enumerate(inputs):
                shape = [sizes.get(d, d) for d in dims]
                feed[holders[name][i]] = values(dtype, shape, 100 * seed + i)
        feeds.append(feed)
    with v1.Session(graph=graph, config=plain_config()) as session:
        plain = [session.run(fetches, feed) for feed in feeds]
    with environment(AUTOFUSE_FLAGS=ON, AUTOFUSE_TARGET="host", AUTOFUSE_STRICT="1"):
        with v1.Session(graph=graph, config=fused_config()) as session:
            session.run(fetches, feeds[0])
            before = fallbacks()
            for feed, wanted in zip(feeds, plain):
                got, nodes = executed_nodes(session, fetches, feed)
                wrong = {n: bit_differences(wanted[n], got[n]) for n in cases}
                assert not any(wrong.values()), {n: w for n, w in wrong.items() if w}
    if dtype != tf.bool:  # whose cases are often a single op
        fused = [n for n in nodes if n.op in ("AscBackend", "FusedAscBackend")]
        assert len(fused) >= len(cases) - 2, [n.name for n in fused]
        # An empty tensor cannot be reshaped with -1 where that would divide by 0; everything else runs fused.
        assert fallbacks() - before <= 2 * len(SIZES)


def gathers(t, at, wide, w):
    rows = tf.gather(t, at) * w
    inner = tf.abs(tf.gather(wide, at, axis=1)) - 1.0
    parts = [tf.reshape(tf.gather(t, at + 1), [-1, 4]), tf.gather(t, at), w * tf.ones_like(rows)]
    front = tf.concat(parts, 1)
    return [rows, inner, front * 2.0]


def test_gathers_and_their_errors():
    graph = tf.Graph()
    with graph.as_default():
        t, at = v1.placeholder(tf.float32, [None, 4]), v1.placeholder(tf.int32, [None])
        wide, w = v1.placeholder(tf.float32, [3, None]), v1.placeholder(tf.float32, [1])
        fetches = gathers(t, at, wide, w)

    def feed(rows, indices):
        return {t: values(tf.float32, (rows, 4), 1), at: np.array(indices, np.int32),
                wide: values(tf.float32, (3, rows), 2), w: np.array([-0.5], np.float32)}  # fmt: skip

    good = [feed(9, [0, 7, 3, 3]), feed(2, [0]), feed(5, [])]
    bad = [feed(5, [0, 4, 2]), feed(5, [-1]), feed(5, [1, 2, 900000000]), feed(0, [0])]
    with v1.Session(graph=graph, config=plain_config()) as session:
        plain = [session.run(fetches, f) for f in good]
        errors = []
        for f in bad:
            with pytest.raises(tf.errors.InvalidArgumentError) as caught:
                session.run(fetches, f)
            errors.append(caught.value.message.split("\n")[0].split(" = ")[1])
    with environment(AUTOFUSE_FLAGS=ON, AUTOFUSE_TARGET="host", AUTOFUSE_STRICT="1"):
        with v1.Session(graph=graph, config=fused_config()) as session:
            for f, wanted in zip(good, plain):
                got, nodes = executed_nodes(session, fetches, f)
                assert not any(map(bit_differences, wanted, got))
            assert not any(n.op.startswith("Gather") for n in nodes)
            for f, error in zip(bad, errors):
                with pytest.raises(tf.errors.InvalidArgumentError) as caught:
                    session.run(fetches, f)
                assert error.split(" ")[-1] in caught.value.message and "is not in" in caught.value.message
            again, _ = executed_nodes(session, fetches, good[0])
            assert not any(map(bit_differences, plain[0], again))
