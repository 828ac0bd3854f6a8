"""Every exact host expression of the op table, compiled, against the row's numpy meaning: bit for bit.

Any NaN equals any NaN. Each runs in the processor's usual mode and with denormals flushed, as on TensorFlow's
threads. gcc's own report says that the loops are vectorized.
"""
import numpy as np
import pytest

from tests.host import compiled
from tests.ops import values
from tests.ops.test_ascend_forms import bits
from tf_autofuse.ir.dtypes import BOOL, FLOAT64
from tf_autofuse.ops import host_forms
from tf_autofuse.ops.ascir_cast import cast_array
from tf_autofuse.ops.numpy_handler import evaluate_call
from tf_autofuse.ops.table import ASC_OPS

pytestmark = pytest.mark.once  # C knows no Python

DIVISORS = (1, 2, 7, 10, 1000003, 2 ** 31 - 1, 2 ** 63 - 1, -1, -2, -7, -46341, -(2 ** 31 - 1),
            -(2 ** 63 - 1))
#: What gcc cannot vectorize for AVX2: calls of the C library, and multiplications for the upper 64 bits.
SCALAR = ("TruncateMod", "FloorMod")


_TRANSCENDENTAL = {t for t, r in ASC_OPS.items() if r.evaluate.__qualname__.startswith("_through_float64")}


def attrs_of(row, dtype):
    if row.type == "LeakyRelu":
        return ({"negative_slope": 0.25}, {"negative_slope": 0.1}, {"negative_slope": 1.0})
    if row.type.endswith("ShiftBy"):
        return tuple({"amount": a} for a in (0, 3, 8 * dtype.bytes - 1))
    if row.type.endswith(("DivBy", "ModBy")):
        info = np.iinfo(dtype.numpy)
        return tuple({"divisor": d} for d in DIVISORS if info.min < d <= info.max)
    return ({},)


def cases():
    """(row, input dtypes, output dtype, attrs)"""
    found = []
    for row in ASC_OPS.values():
        if row.reduces or row.type in _TRANSCENDENTAL:
            continue
        for key in row.host:
            ins = (BOOL, key, key) if row.type == "Where" else (key,) * row.arity
            ins = (key[0],) if row.type == "Cast" else ins
            out = key[1] if row.type == "Cast" else BOOL if row.result == "bool" else key
            found.extend((row, ins, out, attrs) for attrs in attrs_of(row, ins[-1]))
    return found


CASES = cases()


def name_of(case):
    row, ins, out, attrs = case
    return "_".join([row.type] + [d.name for d in ins + (out,)] +
                    [str(v).replace("-", "m").replace(".", "p") for v in attrs.values()])


def loop_of(case):
    row, ins, out, attrs = case
    text = row.host[row.form_key(ins, out)]
    for attr, value in attrs.items():
        text = text.replace("{attr_%s}" % attr, "(%r)" % value)
    types = (out.host,) + tuple(d.host for d in ins)
    return compiled.Loop(name_of(case), types, text, host_forms.headers(text))


def inputs_of(ins):
    special = [values.special(d) for d in ins]
    if len(ins) > 2:
        special = [s[:12] for s in special]
    grid = [g.ravel() for g in np.meshgrid(*special)]
    return [np.concatenate([g, values.random(d, 1003, i)]) for i, (g, d) in enumerate(zip(grid, ins))]


@pytest.fixture(scope="module", params=[compiled.AVX2, compiled.BASELINE], ids=["avx2", "baseline"])
def run(request):
    return compiled.library([loop_of(c) for c in CASES], request.param)


def check(case, run):
    row, ins, out, attrs = case
    arrays = inputs_of(ins)
    fed = [a.astype(np.uint8) if d is BOOL else a for a, d in zip(arrays, ins)]
    ours = run(name_of(case), np.uint8 if out is BOOL else out.numpy, *fed)
    expected = evaluate_call(row.type, arrays, ins, dict(attrs, source=ins[0]), out)
    expected = expected.astype(np.uint8) if out is BOOL else expected
    wrong = np.flatnonzero(bits(ours, out) != bits(expected, out))
    shown = [cast_array(a, d, FLOAT64) if d.is_floating else a for a, d in zip(arrays, ins)]
    assert not len(wrong), "%d differ: %s" % (len(wrong), [
        (tuple(a[k] for a in shown), ours[k], expected[k]) for k in wrong[:4]])


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_expression_does_what_the_row_means(case, run):
    check(case, run)


@pytest.mark.parametrize("type_", sorted({c[0].type for c in CASES}))
def test_expression_where_denormals_are_flushed(type_, run):
    run.flush_denormals(True)
    try:
        for case in CASES:
            if case[0].type == type_:
                check(case, run)
    finally:
        run.flush_denormals(False)


def test_flushing_is_seen(run):
    """The comparison itself: a product of denormals is not what it is elsewhere."""
    tiny = np.full(8, 1e-38, np.float32)
    half = np.full(8, 0.5, np.float32)
    plain = run("Mul_float32_float32_float32", np.float32, tiny, half)
    run.flush_denormals(True)
    try:
        flushed = run("Mul_float32_float32_float32", np.float32, tiny, half)
    finally:
        run.flush_denormals(False)
    assert (plain > 0).all() and (flushed == 0).all()


def test_a_wrong_expression_is_seen(run):
    add = next(c for c in CASES if name_of(c) == "Add_float32_float32_float32")

    def subtract(_name, *arguments):
        return run("Sub_float32_float32_float32", *arguments)
    with pytest.raises(AssertionError, match="differ"):
        check(add, subtract)


def is_copy_or_fill(case):
    """Whether the loop is the C library's memcpy or memset."""
    row, ins, out, attrs = case
    return (set(attrs.values()) & {0, 1} and row.type != "LeakyRelu" or attrs.get("negative_slope") == 1.0 or
            attrs.get("divisor") == -1 and row.type.endswith("ModBy") or
            ins[-1].kind == "u" and row.type in ("Abs", "Relu") or
            row.type == "Cast" and {d.name for d in ins + (out,)} == {"bool", "uint8"})


def test_loops_are_vectorized():
    run = compiled.library([loop_of(c) for c in CASES], compiled.AVX2)
    scalar = {name_of(c) for c in CASES if not run.vectorized[name_of(c)]}
    allowed = {name_of(c) for c in CASES if c[0].type in SCALAR or is_copy_or_fill(c) or
               c[0].type.endswith(("DivBy", "ModBy")) and c[1][0].bytes == 8}
    assert sorted(scalar - allowed) == []


def test_every_row_has_a_host_form_for_each_of_its_dtypes():
    """What the ascend target takes, the host target takes as well; reductions never see 16-bit floats."""
    for row in ASC_OPS.values():
        assert row.reduces or set(row.ascend) <= set(row.host), row.type


def test_headers_of_expressions():
    assert host_forms.headers("af_cast_i32_f32({0}) + {1}") == ("cast.h",)
    assert host_forms.headers("({0} + {1})") == ()
    with pytest.raises(KeyError):
        host_forms.headers("af_unknown({0})")


CHAINS = [(f, i) for f in host_forms.SINGLES for i in host_forms.INTEGERS]


@pytest.fixture(scope="module", params=[compiled.AVX2, compiled.BASELINE], ids=["avx2", "baseline"])
def chain(request):
    texts = [host_forms.cast(i, f).replace("{0}", "(%s)" % host_forms.cast(f, i)) for f, i in CHAINS]
    return compiled.library(
        [compiled.Loop("chain_%s_%s" % (f.name, i.name), (f.host, f.host), text, host_forms.headers(text))
         for (f, i), text in zip(CHAINS, texts)], request.param)


@pytest.mark.parametrize("real, whole", CHAINS, ids=lambda d: d.name)
def test_casts_to_an_integer_and_back_are_two_casts(real, whole, chain):
    """gcc would make one truncation of them, which keeps the sign of what becomes 0."""
    (x,) = inputs_of((real,))
    expected = cast_array(cast_array(x, real, whole), whole, real)
    ours = chain("chain_%s_%s" % (real.name, whole.name), real.numpy, x)
    wrong = np.flatnonzero(bits(ours, real) != bits(expected, real))
    assert not len(wrong), [(x[k], ours[k], expected[k]) for k in wrong[:4]]
