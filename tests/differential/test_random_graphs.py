"""Random DAGs of elementwise ops with random fetches and feeds against TF.

The count is AUTOFUSE_RANDOM_GRAPHS (default 300). Graphs of one seed share a session run in batches, so that
kernels are built in parallel; a failure prints the seed and the graph as a script that rebuilds it.
"""
import os

import numpy as np
import pytest
import tensorflow as tf

from tests.differential.harness import bit_differences, run_pair

COUNT = int(os.environ.get("AUTOFUSE_RANDOM_GRAPHS", "300"))
BATCH = 10
SHAPES = ((), (1,), (17,), (4, 17), (4, 1), (3, 4, 17), (3, 1, 1), (0, 17))

#: Bit-identical ops only: TF 1.15's square root is off by 1 ULP at times, and its Neg gives 0.0 or -0.0 by an
#: element's position (docs/numerics.md).
UNARY = ("abs", "abs", "square", "sign", "floor", "ceil", "rint", "nn.relu", "nn.relu6", "identity",
         "reciprocal", "zeros_like", "ones_like")
BINARY = ("add", "subtract", "multiply", "maximum", "minimum", "math.squared_difference", "divide")


def function(name):
    f = tf
    for part in name.split("."):
        f = getattr(f, part)
    return f


def program(seed):
    """A random graph as a list of (result, op, arguments) over named tensors, and its input shapes."""
    generator = np.random.RandomState(seed)
    compatible = [s for s in SHAPES if s != (0, 17)] if generator.rand() < 0.8 else [(), (1,), (17,), (0, 17)]
    inputs = {
        "x%d" % i: compatible[generator.randint(len(compatible))] for i in range(generator.randint(1, 5))
    }
    shapes = dict(inputs)
    lines = []
    for i in range(generator.randint(3, 20)):
        names = sorted(shapes, key=lambda n: (len(n), n))
        recent = names[-4:] if generator.rand() < 0.6 else names
        a, b = (recent[generator.randint(len(recent))] for _ in range(2))
        kind = generator.rand()
        result = "t%d" % i
        if kind < 0.4:
            lines.append((result, UNARY[generator.randint(len(UNARY))], (a,)))
            shapes[result] = shapes[a]
        elif kind < 0.85:
            lines.append((result, BINARY[generator.randint(len(BINARY))], (a, b)))
            shapes[result] = np.broadcast(np.empty(shapes[a]), np.empty(shapes[b])).shape
        elif kind < 0.95:
            lines.append((result, "where_less", (a, b)))
            shapes[result] = np.broadcast(np.empty(shapes[a]), np.empty(shapes[b])).shape
        else:
            lines.append((result, "cast_round_trip", (a,)))
            shapes[result] = shapes[a]
    results = [l[0] for l in lines]
    fetched = sorted(set([results[-1]] + [r for r in results if generator.rand() < 0.2]))
    fed = [r for r in results[:-1] if generator.rand() < 0.05 and r not in fetched]
    unknown = generator.rand() < 0.5
    return inputs, lines, fetched, fed, shapes, unknown


def apply(op, arguments):
    if op == "where_less":
        a, b = arguments
        return tf.where_v2(a < b, a, b * 2.0)
    if op == "cast_round_trip":
        return tf.cast(tf.cast(arguments[0], tf.float16), tf.float32)
    return function(op)(*arguments)


def build_program(prefix, plan, placeholders):
    inputs, lines, fetched, fed, shapes, unknown = plan
    tensors = {}
    for name, shape in inputs.items():
        known = [None] * len(shape) if unknown else shape
        tensors[name] = placeholders[prefix + name] = tf.compat.v1.placeholder(
            tf.float32, known, prefix + name
        )
    for result, op, arguments in lines:
        tensors[result] = apply(op, [tensors[a] for a in arguments])
        if result in fed:
            placeholders[prefix + result] = tensors[result]
    return [tensors[f] for f in fetched]


def feed_of(prefix, plan, seed):
    inputs, _, _, fed, shapes, _ = plan
    generator = np.random.RandomState(seed + 1)
    names = sorted(inputs) + sorted(fed)
    feed = {}
    for name in names:
        value = np.asarray(generator.randn(*shapes[name]) * 3, np.float32)
        if value.size and generator.rand() < 0.3:
            value.flat[generator.randint(value.size)] = (np.nan, np.inf, -np.inf, -0.0)[generator.randint(4)]
        feed[prefix + name] = value
    return feed


def as_script(seed):
    inputs, lines, fetched, fed, _, unknown = program(seed)
    text = ["# seed %d, unknown dims: %s, fed: %s, fetched: %s" % (seed, unknown, fed, fetched)]
    text += ["%s = placeholder(float32, %s)" % i for i in inputs.items()]
    return "\n".join(text + ["%s = %s(%s)" % (r, o, ", ".join(a)) for r, o, a in lines])


@pytest.mark.parametrize("first", range(0, COUNT, BATCH))
def test_random_graphs(first):
    seeds = range(first, min(first + BATCH, COUNT))
    plans = {seed: program(seed) for seed in seeds}
    fetch_of = []

    def build():
        placeholders, fetches = {}, []
        for seed, plan in plans.items():
            made = build_program("g%d_" % seed, plan, placeholders)
            fetch_of.extend([seed] * len(made))
            fetches += made
        return placeholders, fetches

    feed = {}
    for seed, plan in plans.items():
        feed.update(feed_of("g%d_" % seed, plan, seed))
    pair = run_pair(build, [feed, feed], dfx="")
    assert pair.fused, "nothing was fused"
    for plain_values, fused_values in pair.values:
        for seed, plain, fused in zip(fetch_of, plain_values, fused_values):
            difference = bit_differences(plain, fused)
            assert not difference, "%s\n%s" % (difference, as_script(seed))
