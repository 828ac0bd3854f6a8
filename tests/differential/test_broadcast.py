"""Broadcasting patterns, ranks and sizes, static and unknown, each against TF."""
import itertools

import numpy as np
import pytest
import tensorflow as tf

from tests.differential.harness import bit_differences, run_pair

PATTERNS = (
    ((), ()),
    ((), (5,)),
    ((1,), (7,)),
    ((4, 1), (1, 6)),
    ((3, 5), (5,)),
    ((3, 5), (3, 1)),
    ((2, 3, 4), (3, 1)),
    ((2, 1, 4), (3, 1)),
    ((2, 1, 4, 1), (1, 3, 1, 5)),
    ((1, 1, 1), (2, 3, 4)),
    ((2, 3, 4), ()),
    ((2, 2, 3, 1, 2, 2), (1, 1, 1, 3, 2, 2)),
    ((2, 1, 2, 3, 1, 1, 1, 3), (2, 1, 2, 3, 2, 1, 2, 3)),
    ((0,), (1,)),
    ((0, 3), (3,)),
    ((3, 0), (3, 1)),
    ((0, 1), (1, 4)),
    ((65,), (1,)),
    ((33, 17), (33, 1)),
    ((130, 257), (257,)),
    ((257, 130), (257, 1)),
    ((3, 1, 1000), (1, 70, 1)),
    ((5000, 3), (5000, 1)),
    ((1, 20000), (7, 1)),
    ((64, 64), (64, 64)),
    ((2, 3, 5, 7), (3, 1, 7)),
)


def values(shape, seed):
    v = np.asarray(np.random.RandomState(seed).randn(*shape))
    return v.astype(np.float32)


def chain(a, b):
    """Uses both operands on both sides of a non-commutative op, a scalar constant and a comparison."""
    difference = tf.abs(a) - b
    return tf.where(difference > tf.zeros_like(difference), difference * 2.0, tf.nn.relu(difference) + 0.5)


def known(a_shape, b_shape):
    def build():
        a = tf.compat.v1.placeholder(tf.float32, a_shape, name="a")
        b = tf.compat.v1.placeholder(tf.float32, b_shape, name="b")
        return {"a": a, "b": b}, [chain(a, b)]
    return build


def unknown(a_rank, b_rank):
    return known([None] * a_rank, [None] * b_rank)


@pytest.mark.parametrize("pattern", PATTERNS, ids=str)
def test_static_dims(pattern):
    feed = {"a": values(pattern[0], 1), "b": values(pattern[1], 2)}
    pair = run_pair(known(*pattern), [feed])
    assert pair.fused and pair.fallbacks == 0
    (plain,), (fused,) = pair.values[0]
    assert not bit_differences(plain, fused), bit_differences(plain, fused)


@pytest.mark.parametrize("ranks", sorted({(len(a), len(b)) for a, b in PATTERNS}), ids=str)
def test_unknown_dims_of_one_binary(ranks):
    """Every pattern of these ranks from one graph: equal dims, either side 1, both 1, zero."""
    patterns = [p for p in PATTERNS if (len(p[0]), len(p[1])) == ranks]
    patterns += [(a, b) for b, a in PATTERNS if (len(a), len(b)) == ranks]
    feeds = [{"a": values(a, i), "b": values(b, i + 50)} for i, (a, b) in enumerate(patterns)]
    pair = run_pair(unknown(*ranks), feeds)
    assert pair.fused and pair.fallbacks == 0
    for feed, ((plain,), (fused,)) in zip(feeds, pair.values):
        shapes = (feed["a"].shape, feed["b"].shape)
        assert not bit_differences(plain, fused), "%s: %s" % (shapes, bit_differences(plain, fused))


def test_batches_of_one_binary():
    feeds = [{"a": values((n, 128), n), "b": values((n, 1), n + 1)} for n in (1, 7, 1024, 0, 7)]
    pair = run_pair(known([None, 128], [None, 1]), feeds)
    assert len(pair.fused) == 1 and pair.fallbacks == 0
    for (plain,), (fused,) in pair.values:
        assert not bit_differences(plain, fused)


def test_mismatching_dims_give_tensorflows_error():
    feeds = [{"a": values((4, 128), 0), "b": values((3, 1), 1)}]
    errors = []
    for switch in ("--enable_autofuse=false", "--enable_autofuse=true"):
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            from tests.differential.harness import environment, fused_config
            with tf.Graph().as_default() as graph:
                placeholders, fetches = known([None, 128], [None, 1])()
            with environment(AUTOFUSE_FLAGS=switch, AUTOFUSE_TARGET="ascend"):
                with tf.compat.v1.Session(graph=graph, config=fused_config()) as session:
                    session.run(fetches, {placeholders[k]: v for k, v in feeds[0].items()})
        errors.append(caught.value.message.split("\n")[0])
    assert "Incompatible shapes: [4,128] vs. [3,1]" in errors[0]
    assert "Incompatible shapes: [4,128] vs. [3,1]" in errors[1]


def test_the_comparator_sees_one_bit():
    """A mutation of one bit, a sign of zero and a dtype are each seen."""
    a = np.array([0.0, 1.0, np.nan], np.float32)
    flipped = a.copy().view(np.uint32)
    flipped[1] ^= 1
    assert bit_differences(a, flipped.view(np.float32))
    assert bit_differences(a, np.array([-0.0, 1.0, np.nan], np.float32))
    assert bit_differences(a, a.astype(np.float64))
    assert not bit_differences(a, a.copy())


def test_all_pairs_of_unit_dims():
    """Which dims are 1 is only known at run time: all 16 combinations of two rank-2 operands."""
    feeds = []
    for bits in itertools.product((1, 6), (1, 35), (1, 6), (1, 35)):
        feeds.append({"a": values(bits[:2], 3), "b": values(bits[2:], 4)})
    pair = run_pair(unknown(2, 2), feeds)
    assert pair.fallbacks == 0
    for (plain,), (fused,) in pair.values:
        assert not bit_differences(plain, fused)
