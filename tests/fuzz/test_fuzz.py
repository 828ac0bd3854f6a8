"""The fuzzer on a few graphs, and the fuzzer itself by mutation.

More graphs: `make fuzz ARGS="--graphs 1000"`. A failure here prints the seed and the shrunk graph as a
script.
"""

import os

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from tests.fuzz.check import Run, check, fails, run_fused, run_plain  # noqa: E402
from tests.fuzz.generate import buildable, generate  # noqa: E402
from tests.fuzz.recipe import Recipe, Source, Step, build, script_of  # noqa: E402
from tests.fuzz.shrink import shrink  # noqa: E402
from tf_autofuse.frontend import plugin  # noqa: E402

pytestmark = pytest.mark.tensorflow
COUNT = int(os.environ.get("AUTOFUSE_FUZZ_GRAPHS", "40"))
FIRST = int(os.environ.get("AUTOFUSE_FUZZ_SEED", "20261129"))
BATCH = 10


@pytest.mark.parametrize("target", ["host", "ascend"])
@pytest.mark.parametrize("first", range(FIRST, FIRST + COUNT // 2, BATCH))
def test_mixed_graphs(first, target):
    fused = []
    for seed in range(first, first + BATCH):
        recipe = buildable(generate(seed))
        if not recipe.steps:
            continue
        outcome = check(recipe, lambda r: run_fused(r, target))
        fused += outcome.fused
        if outcome.differences:
            small = shrink(recipe, lambda r: fails(r, target))
            pytest.fail("seed %d: %s\n%s" % (seed, outcome.differences, script_of(small, target, "shrunk")))
    assert fused, "nothing was fused in ten graphs: the comparison compares TF with itself"


#: Graphs that once went wrong, as the fuzzer shrank them.
FAILED_ONCE = {
    # gcc made one truncation of two casts: -0.0 for 0.0
    "cast to an integer and back": Recipe(
        1000,
        (Source((2,), "special"), Source((1,), "special")),
        (Step("tf.cast(tf.cast(tf.minimum(tf.maximum(t1, -9.0), 9.0), tf.int32), F)", True),),
        (2,),
    ),
    # what a part without elements is made of was computed and not read
    "an empty part of a Pad beside its argument repeated": Recipe(
        310000,
        (Source((0, 17), "float"), Source((0, 17), "float")),
        (
            Step("tf.where_v2(t1 <= t0, t1, t0 * 2.0)", True),
            Step("tf.pad(t2, [[0, 2], [1, 1]])", True),
            Step("tf.reduce_mean(t3, -1, True)", False),
            Step("tf.tile(t2, [1, 3])", True),
        ),
        (4, 5),
    ),
    # the region had no output for a reader whose lowering has no use for it
    "a part that an ArgMin along one element reads": Recipe(
        311116,
        (Source((2, 1, 17), "float"), Source((1,), "float")),
        (
            Step("tf.split(t0, 2, 0)[0]", True),
            Step("tf.nn.relu(tf.minimum(t1, t2))", True),
            Step("tf.argmin(t2, 1, output_type=tf.int32)", True),
        ),
        (3, 4),
    ),
    # the verifier tried a dim of 1, of which the slice that the region reads would have -1 elements
    "a slice of a run-time dim that another region makes": Recipe(
        700011,
        (Source((7,), "float", True), Source((7,), "float", True)),
        (
            Step("tf.stack([t0, t0, t1, t0], 0)", True),
            Step("t2[2:3:3, 4:7:3]", True),
            Step("tf.nn.elu(t3)", False),
            Step("t4 - t2", False),
        ),
        (3, 5),
    ),
    # the value beside a reduction over no elements was not stored
    "beside an empty reduction": Recipe(
        2043,
        (Source((0,), "float", True), Source((1,), "float")),
        (
            Step("tf.sign(t1)", True),
            Step("t2 / (tf.abs(t0) + 1.0)", True),
            Step("tf.reduce_mean(t3, [0], True)", False),
        ),
        (2, 4),
    ),
    # the number of rows, as a float, was to be stored as a tensor between two loop nests
    "a size that two reductions share": Recipe(
        1,
        (Source((9,), "float", True), Source((9, 5), "float", True)),
        (
            Step("tf.cast(tf.size(t0), F)", True),
            Step("tf.reduce_sum(t0) / t2", False),
            Step("tf.reduce_sum(t1 * (1.0 / t2), 0)", False),
        ),
        (3, 4),
    ),
    # a value that stands transposed in its nest was stored in the order of the nest's axes
    "stored beside the reduction of its transpose": Recipe(
        5093,
        (Source((5, 16), "float"),),
        (
            Step("tf.minimum(t0, t0)", True),
            Step("tf.transpose(t1, [1, 0])", True),
            Step("tf.reduce_min(t2, [-2], True)", True),
        ),
        (1, 3),
    ),
}


@pytest.mark.parametrize("target", ["host", "ascend"])
@pytest.mark.parametrize("name", sorted(FAILED_ONCE))
def test_what_failed_once(name, target):
    outcome = check(FAILED_ONCE[name], lambda r: run_fused(r, target))
    assert outcome.differences == [] and outcome.fused


def test_a_failure_of_the_plugin_is_a_difference(monkeypatch):
    """Not only a graph that runs as TensorFlow's own: strict mode reaches the session."""
    def broken(*arguments):
        raise ValueError("a deliberate mistake")

    monkeypatch.setattr(plugin, "_compile", broken)
    recipe = FAILED_ONCE["beside an empty reduction"]
    (difference,) = check(recipe, lambda r: run_fused(r, "host")).differences
    assert "a deliberate mistake" in difference


def wrong_where(recipe: Recipe, text: str) -> Run:
    """A plugin that computes results with `text` in their expression one last bit too large."""
    graph = tf.Graph()
    with graph.as_default():
        broken = recipe._replace(
            steps=tuple(
                s._replace(text="(%s) * 1.0000001" % s.text) if text in s.text else s for s in recipe.steps
            )
        )
    return Run(run_plain(broken), [], 0)


def test_one_wrong_bit_is_found_and_shrunk_to_the_op():
    recipe = next(
        r
        for r in map(generate, range(100, 200))
        if any(
            "leaky" in s.text and s.exact and len(r.sources) + at in r.fetches for at, s in enumerate(r.steps)
        )
        and all(s.kind != "special" for s in r.sources)
    )

    def differs(candidate: Recipe) -> bool:
        return bool(check(candidate, lambda r: wrong_where(r, "leaky")).differences)

    assert differs(recipe)
    small = shrink(recipe, differs)
    assert len(small.steps) == 1 and "leaky" in small.steps[0].text, small.steps


@pytest.mark.parametrize(
    "change, word",
    [
        (lambda v: v * np.float32(1.001), "allowed"),
        (lambda v: np.where(np.arange(v.size).reshape(v.shape) == 3, np.float32(np.nan), v), "is nan"),
        (lambda v: np.where(np.arange(v.size).reshape(v.shape) == 3, np.float32(np.inf), v), "is inf"),
        (lambda v: v[1:], "instead of"),
        (lambda v: v.astype(np.float64), "instead of"),
    ],
)
def test_inexact_results_are_compared(change, word):
    recipe = Recipe(5, (Source((4, 7), "float"),), (Step("tf.tanh(t0)", False),), (1,))
    assert check(recipe, lambda r: Run(run_plain(r), [], 0)).differences == []
    found = check(recipe, lambda r: Run([change(v) for v in run_plain(r)], [], 0)).differences
    assert len(found) == 1 and word in found[0]


def test_an_exception_of_the_plugin_is_a_difference():
    def broken(recipe):
        raise RuntimeError("kernel failed")

    recipe = Recipe(5, (Source((4,), "float"),), (Step("tf.abs(t0)", True),), (1,))
    assert check(recipe, broken).differences == ["RuntimeError: kernel failed"]


def test_same_seed_same_recipe():
    assert [generate(s) for s in range(3)] == [generate(s) for s in range(3)]


def test_every_family_occurs():
    texts = " ".join(step.text for seed in range(150) for step in generate(seed).steps)
    for word in (
        "reduce_sum",
        "reduce_max",
        "argmax",
        "softmax",
        "concat",
        "stack",
        "split",
        "unstack",
        "transpose",
        "reshape",
        "expand_dims",
        "squeeze",
        "tile",
        "pad",
        "gather",
        "where_v2",
        "float16",
        "tf.int32",
    ):
        assert word in texts, word


def test_a_failure_leaves_a_script_that_builds_the_same_graph():
    recipe = next(r for r in map(generate, range(300, 400)) if len(r.steps) > 8)
    text = script_of(recipe, "host", 'a """quoted""" reason')
    compile(text, "script", "exec")
    with tf.Graph().as_default():
        tensors = build(recipe)
        for number in range(len(recipe.sources), len(tensors)):
            assert ("t%d = %s" % (number, recipe.steps[number - len(recipe.sources)].text)) in text
