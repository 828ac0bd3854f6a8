"""Every op of the table at every dtype of the host target against TF 1.15's own kernel.

One TF graph a dtype holds all of its ops, so that all kernels of a dtype are built by one call. The feeds
hold all pairs (triples) of special values and random values of odd lengths.
"""
import itertools

import numpy as np
import pytest
import tensorflow as tf

from tests.differential import op_cases
from tests.differential.harness import run_pair
from tests.differential.test_ops import check
from tf_autofuse.ir.dtypes import ALL_DTYPES
from tf_autofuse.ops.table import TF_OPS
from tf_autofuse.report import journal

TARGET = "host"
LENGTHS = (0, 1, 7, 33, 1000)
CASES = [c for c in op_cases.cases(TARGET) if TF_OPS[c.op].kind == "elementwise"]


def columns(dtypes):
    """One array for each dtype: all combinations of special values, at most 24 of each where there are
    three."""
    specials = [op_cases.special_values(d) for d in dtypes]
    if len(dtypes) > 2:
        specials = [s[:24] for s in specials]
    return [np.array(c, dtype=s.dtype) for c, s in zip(zip(*itertools.product(*specials)), specials)]


@pytest.mark.parametrize("dtype", [d for d in ALL_DTYPES if any(c.dtype is d for c in CASES)],
                         ids=lambda d: d.name)
def test_all_ops_of_a_dtype(dtype):
    cases = [c for c in CASES if c.dtype is dtype]
    signatures = sorted({tuple(d for _, d in op_cases.signature(c.op, c.dtype)) for c in cases}, key=str)
    names = {s: ["in%d_%d" % (i, k) for k in range(len(s))] for i, s in enumerate(signatures)}

    nodes = {}

    def build():
        placeholders = {n: tf.compat.v1.placeholder(op_cases.tf_dtype(d), [None], name=n)
                        for s in signatures for n, d in zip(names[s], s)}
        fetches = [op_cases.fetch_of(c, values(c, placeholders)) for c in cases]
        nodes.update(zip(cases, (t.op.name for t in fetches)))
        return placeholders, fetches

    def values(case, given):
        signature = op_cases.signature(case.op, case.dtype)
        return {n: given[place] for (n, _), place in zip(signature, names[tuple(d for _, d in signature)])}

    feeds = [{n: a for s in signatures for n, a in zip(names[s], columns(s))}]
    for length in LENGTHS:
        feeds.append({n: op_cases.random_values(d, length, length * 7 + i)
                      for s in signatures for i, (n, d) in enumerate(zip(names[s], s))})
    journal.clear()
    pair = run_pair(build, feeds, target=TARGET)
    fused = {n for r in journal.records() for c in r.compilation.compiled for n in c.region.fused.origin}
    missing = [str(c) for c in cases if nodes[c] not in fused]
    assert not missing, missing
    assert pair.fallbacks == 0
    wrong = []
    for feed, (plain, ours) in zip(feeds, pair.values):
        for case, a, b in zip(cases, plain, ours):
            try:
                check(case, values(case, feed), a, b)
            except AssertionError as error:
                wrong.append(str(error)[:300])
    assert not wrong, "\n".join(wrong)
