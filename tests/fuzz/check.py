"""Runs a recipe plain and fused and compares.

Exact results must have TF's bits. Others are compared with a float64 run of the same recipe: they may be as
far from it as TF's float32 result is, times FACTOR, plus a few roundings of the largest value on the way: no
worse than TF, with room for another order of summation.
"""

from typing import Callable, Dict, List, NamedTuple

import numpy as np
import tensorflow as tf

from tests.differential.harness import (
    bit_differences,
    environment,
    executed_nodes,
    fused_config,
    plain_config,
)
from tests.fuzz.recipe import ENABLE_FAMILIES, Recipe, build, values_of

FACTOR = 8.0
ROUNDINGS = 64.0


class Outcome(NamedTuple):
    """differences: what is wrong, in words; empty: equal. fused: names of the fused ops that ran. fallbacks:
    calls that the fallback served."""

    differences: List[str]
    fused: List[str]
    fallbacks: int


class Run(NamedTuple):
    values: List[np.ndarray]
    fused: List[str]
    fallbacks: int


def run_fused(recipe: Recipe, target: str) -> Run:
    """The recipe with the plugin on."""
    from tf_autofuse.frontend import plugin

    graph = tf.Graph()
    with graph.as_default():
        tensors = build(recipe)
    feed = dict(zip([tensors[n] for n in range(len(recipe.sources))], values_of(recipe)))

    def fallbacks() -> int:
        return sum(s["fallbacks"] for s in plugin.native().stats().values())

    before = fallbacks()
    with environment(
        AUTOFUSE_FLAGS="--enable_autofuse=true;" + ENABLE_FAMILIES,
        AUTOFUSE_TARGET=target,
        AUTOFUSE_BUILD="sync",
        AUTOFUSE_STRICT="1",
        AUTOFUSE_DFX_FLAGS=None,
    ):
        with tf.compat.v1.Session(graph=graph, config=fused_config()) as session:
            fetches = [tensors[n] for n in recipe.fetches]
            values, nodes = executed_nodes(session, fetches, feed)
            # once more: the second run takes the kept plan, and may write over inputs that die
            again = session.run(fetches, feed)
    for number, first, second in zip(recipe.fetches, values, again):
        if bit_differences(first, second) != "":
            raise AssertionError("t%d: a second run gives other bits" % number)
    names = [n.name for n in nodes if n.op in ("AscBackend", "FusedAscBackend")]
    return Run(values, names, fallbacks() - before)


def run_plain(recipe: Recipe, float_dtype=tf.float32, all_results: bool = False) -> List[np.ndarray]:
    graph = tf.Graph()
    with graph.as_default():
        tensors = build(recipe, float_dtype)
    feed = {}
    for n, value in enumerate(values_of(recipe)):
        feed[tensors[n]] = value.astype(tensors[n].dtype.as_numpy_dtype)
    wanted = sorted(tensors) if all_results else recipe.fetches
    with tf.compat.v1.Session(graph=graph, config=plain_config()) as session:
        return session.run([tensors[n] for n in wanted], feed)


def check(recipe: Recipe, run: Callable[[Recipe], Run]) -> Outcome:
    """run: gives the fused results, normally run_fused."""
    expected = run_plain(recipe)
    try:
        found = run(recipe)
    except Exception as error:  # whatever it is, the plugin must not raise where TF does not
        return Outcome(["%s: %s" % (type(error).__name__, str(error).splitlines()[0][:300])], [], 0)
    differences = []
    inexact = any(not recipe.exact(n) for n in recipe.fetches)
    everything: Dict[int, np.ndarray] = (
        dict(enumerate(run_plain(recipe, tf.float64, True))) if inexact else {}
    )
    for number, want, got in zip(recipe.fetches, expected, found.values):
        if want.shape != got.shape or want.dtype != got.dtype:
            differences.append(
                "t%d: %s%s instead of %s%s" % (number, got.dtype, got.shape, want.dtype, want.shape)
            )
        elif recipe.exact(number):
            text = bit_differences(want, got)
            if text:
                differences.append("t%d (exact): %s" % (number, text))
        else:
            text = _beyond(want, got, everything[number], _largest(recipe, number, everything))
            if text:
                differences.append("t%d: %s" % (number, text))
    return Outcome(differences, found.fused, found.fallbacks)


def fails(recipe: Recipe, target: str) -> bool:
    """Whether TF takes the recipe and the plugin's results differ."""
    try:
        return bool(check(recipe, lambda r: run_fused(r, target)).differences)
    except Exception:  # TF itself does not take it: shrinking made nonsense
        return False


def _largest(recipe: Recipe, number: int, everything: Dict[int, np.ndarray]) -> float:
    """The largest finite magnitude of any result that this one is made of."""
    seen, stack, largest = set(), [number], 1.0
    while stack:
        n = stack.pop()
        if n in seen:
            continue
        seen.add(n)
        value = np.abs(everything[n].astype(np.float64)).reshape(-1)
        value = value[np.isfinite(value)]
        largest = max(largest, float(value.max()) if value.size else 0.0)
        if n >= len(recipe.sources):
            stack.extend(recipe.steps[n - len(recipe.sources)].reads)
    return largest


def _beyond(want: np.ndarray, got: np.ndarray, reference: np.ndarray, largest: float) -> str:
    """What is too far off, or ''."""
    with np.errstate(invalid="ignore"):
        # Where TF itself is not what float64 says (1/sqrt(inf) by iteration is NaN), either will do
        odd = ~np.isfinite(got) | ~np.isfinite(want)
        wrong = odd & ~_same(got, want) & ~_same(got, reference.astype(np.float32))
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            return "element %d is %r, TF has %r" % (at, got.reshape(-1)[at], want.reshape(-1)[at])
        finite = ~odd & np.isfinite(reference)
        own = np.abs(want[finite] - reference[finite])
        off = np.abs(got[finite] - reference[finite])
    if not off.size:
        return ""
    allowed = FACTOR * own.max() + ROUNDINGS * np.finfo(np.float32).eps * largest
    if off.max() <= allowed:
        return ""
    at = int(off.argmax())
    return "element %d is %r, TF has %r, float64 %r; allowed are %.3g" % (
        at,
        got[finite][at],
        want[finite][at],
        reference[finite][at],
        allowed,
    )


def _same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a == b) | (np.isnan(a) & np.isnan(b))
