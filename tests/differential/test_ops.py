"""Every op of the table, at every dtype that the ascend target takes, against TF 1.15's own kernel.

One graph an op and dtype, lengths unknown while it is built, so that one kernel serves every length. The
feeds hold all pairs (triples) of special values, random values, odd lengths 1..65, one element, and none;
one-argument ops get every float16 there is.
"""
import itertools

import numpy as np
import pytest
import tensorflow as tf

from tests.differential import op_cases
from tests.differential.harness import bit_differences, run_pair, ulp_error
from tf_autofuse.ir.dtypes import BY_NAME, FLOAT16
from tf_autofuse.config_table import ALWAYS_ON
from tf_autofuse.ops.table import TF_OPS

CASES = op_cases.cases()
LENGTHS = (0, 1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65)
ULP_BOUND = 2.0


def feeds_of(case):
    """Feeds for the op's inputs; integer ops that TF fails on (division by zero) never reach here: the table
    refuses them unless the divisor is a constant."""
    names = op_cases.signature(case.op, case.dtype)
    specials = [op_cases.special_values(d) for _, d in names]
    if len(names) > 2:
        specials = [s[:24] for s in specials]
    grid = (
        [np.array(column, dtype=s.dtype) for column, s in zip(zip(*itertools.product(*specials)), specials)]
        if len(names) > 1
        else specials
    )
    feeds = [{n: g for (n, _), g in zip(names, grid)}]
    if case.dtype is FLOAT16 and len(names) == 1:
        feeds.append({names[0][0]: np.arange(65536, dtype=np.uint16).view(np.float16)})
    for length in LENGTHS + (3001,):
        feeds.append({n: op_cases.random_values(d, length, length * 7 + i) for i, (n, d) in enumerate(names)})
    return feeds


def graph_of(case, length=None):
    def build():
        placeholders = {n: tf.compat.v1.placeholder(op_cases.tf_dtype(d), [length], name=n)
                        for n, d in op_cases.signature(case.op, case.dtype)}
        return placeholders, [op_cases.fetch_of(case, placeholders)]
    return build


#: Where TF's float64 kernel is no measure: it computes exp(x) - 1 or log(exp(x) + 1), which loses digits.
SELU_SCALE, SELU_SCALE_ALPHA = 1.0507009873554804934193349852946, 1.7580993408473768599402175208123
REFERENCES = {
    "Elu": lambda x: np.where(x < 0, np.expm1(x), x),
    "Selu": lambda x: np.where(x < 0, SELU_SCALE_ALPHA * np.expm1(x), SELU_SCALE * x),
    "Softplus": lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))),
}

#: Ops of which TF itself gives 0.0 or -0.0 by an element's position: its vectorized loops negate by 0 - x and
#: take x for a zero, the scalar tails do not (docs/numerics.md).
SIGN_OF_ZERO_BY_POSITION = frozenset(("Neg", "InvGrad", "ReciprocalGrad", "Xdivy", "Xlogy"))


def reference64(case, feed):
    """The op in float64, the measure for transcendentals: by TF's own float64 kernel."""
    if case.op in REFERENCES:
        with np.errstate(all="ignore"):
            return REFERENCES[case.op](*(np.asarray(v).astype(np.float64) for v in feed.values()))
    wide = case._replace(dtype=BY_NAME["float64"])
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        values = {
            n: tf.constant(np.asarray(v).astype(np.float64) if np.asarray(v).dtype.kind not in "bi" else v)
            for n, v in feed.items()
        }
        return session.run(op_cases.call(wide, values))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_op_gives_what_tensorflow_gives(case):
    feeds = feeds_of(case)
    if case.op in op_cases.STATIC:
        feeds = [f for f in feeds if len(next(iter(f.values()))) in (1, 33)]
    lengths = [len(next(iter(f.values()))) for f in feeds]
    groups = [[f for f, n in zip(feeds, lengths) if n == length] for length in sorted(set(lengths))] \
        if case.op in op_cases.STATIC else [feeds]
    for group in groups:
        length = len(next(iter(group[0].values()))) if case.op in op_cases.STATIC else None
        pair = run_pair(graph_of(case, length), group)
        # A fill may become a constant of the region that reads it, and then is in no name.
        named = sum(case.op in name.split("_") for name in pair.fused)
        assert named == 1 or (pair.fused and TF_OPS[case.op].kind == "fill"), \
            "%s was not fused: %s" % (case, pair.fused)
        assert pair.fallbacks == 0, "the kernel handed %d calls to the fallback" % pair.fallbacks
        for feed, ((plain,), (fused,)) in zip(group, pair.values):
            check(case, feed, plain, fused)


def check(case, feed, plain, fused):
    narrow = case.dtype.name in ("float16", "bfloat16")
    if narrow and fused.size and fused.dtype == plain.dtype and bit_differences(plain, fused):
        # Computed in float32 and rounded once: it may differ from TF's rounding after each step, but only for
        # the better.
        check_16_bit(case, feed, plain, fused, reference64(case, feed))
        return
    if TF_OPS[case.op].exact == "bits" or not case.dtype.is_floating:
        if case.op in SIGN_OF_ZERO_BY_POSITION:
            plain, fused = plain + np.zeros_like(plain), fused + np.zeros_like(fused)
        assert not bit_differences(plain, fused), "%s: %s" % (case, bit_differences(plain, fused))
        return
    assert plain.dtype == fused.dtype and plain.shape == fused.shape
    if not plain.size:
        return
    reference = reference64(case, feed)
    if narrow:
        return
    theirs, ours = ulp_error(plain, reference), ulp_error(fused, reference)
    # In float64 the measure is no more exact than what is measured.
    allowed = 2 * ULP_BOUND if case.dtype.name == "float64" else ULP_BOUND
    bound = max(allowed, float(theirs[np.isfinite(theirs)].max() if np.isfinite(theirs).any() else 0))
    # Where TF itself is wrong without bound (overflow inside its formula) ours may be right or equal to it.
    bad = (ours > bound) & ~(np.isinf(theirs) & (op_cases_equal(plain, fused)))
    assert not bad.any(), "%s at %s: TF %r, fused %r, exact %r (%.1f ulp, bound %.1f)" % (
        (
            case,
            {n: v[np.argmax(bad)] for n, v in feed.items()},
            plain[bad][0],
            fused[bad][0],
            reference[bad][0],
            ours[bad][0],
            bound,
        )
    )


def float32_kernel(case, feed, dtype):
    """TF's float32 kernel on the same values, rounded once: what computing in float32 gives where it is
    inexact itself (a quotient that is flushed, say)."""
    wide = case._replace(dtype=BY_NAME["float32"])
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        values = {n: tf.constant(v if np.asarray(v).dtype.kind in "bi" else np.asarray(v).astype(np.float32))
                  for n, v in feed.items()}
        return session.run(op_cases.call(wide, values)).astype(dtype)


def check_16_bit(case, feed, plain, fused, reference):
    """16-bit results are computed in float32 and rounded once: never further from the exact value than
    TF's."""
    def distance(v):
        v = v.astype(np.float32).astype(np.float64)
        same = (np.isnan(v) & np.isnan(reference)) | (v == reference)
        with np.errstate(all="ignore"):
            return np.where(same, 0, np.abs(v - reference))
    info = np.finfo(np.float16) if case.dtype is FLOAT16 else None
    mantissa = info.nmant if info else 7
    with np.errstate(all="ignore"):
        unit = np.exp2(np.floor(np.log2(np.maximum(np.abs(reference), 2.0 ** -14))) - mantissa)
    ours, theirs = distance(fused), distance(plain)
    # NaN distances (infinite on one side only) must be TF's own.
    bad = ~((ours <= theirs) | (ours <= unit * 0.51)) & ~op_cases_equal(plain, fused)
    if bad.any():
        bad &= ~op_cases_equal(float32_kernel(case, feed, fused.dtype), fused)
    assert not bad.any(), "%s at %s: TF %r, fused %r, exact %r" % (
        case,
        {n: v[np.argmax(bad)] for n, v in feed.items()},
        plain[bad][0],
        fused[bad][0],
        reference[bad][0],
    )


def op_cases_equal(plain, fused):
    a, b = plain.astype(np.float64), fused.astype(np.float64)
    return (a == b) | (np.isnan(a) & np.isnan(b))


def test_the_table_covers_the_ops_that_graphs_use():
    """The ascend target takes float32 for at least nine tenths of the elementwise float ops of the table; the
    other families have tests of their own."""
    float_ops = [n for n, row in TF_OPS.items()
                 if BY_NAME["float32"] in row.dtypes and row.family({}) in ALWAYS_ON]
    taken = {c.op for c in CASES if c.dtype.name == "float32"}
    assert len(taken) >= 0.9 * len(float_ops), sorted(set(float_ops) - taken)
