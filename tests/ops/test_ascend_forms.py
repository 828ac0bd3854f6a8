"""Every Ascend C call text of the op table, run on the twin, against the row's numpy meaning.

Exact ops bit for bit (any NaN equals any NaN), transcendental ones within their bound. The twin also stops a
text that uses more scratch than the row says, lacks a barrier or reads beyond its operands.
"""
import numpy as np
import pytest

from tests.ops import ascend_forms, values
from tf_autofuse.ir.dtypes import BOOL, FLOAT32, FLOAT64
from tf_autofuse.ops.ascir_cast import cast_array
from tf_autofuse.ops.numpy_handler import evaluate_call

#: Worst error of the helpers on the twin in ULPs of float32; docs/numerics.md has the measured figures.
ULPS = {"Exp": 0.51, "Ln": 0.51, "Expm1": 2, "Log1p": 2, "Sin": 1, "Cos": 1, "Tan": 2, "Asin": 2, "Acos": 2,
        "Atan": 2,
        "Atan2": 2, "Sinh": 2, "Cosh": 2, "Asinh": 2, "Acosh": 2, "Atanh": 2, "Tanh": 2, "Sigmoid": 2.5,
        "Erf": 2,
        "Erfc": 2.65, "Pow": 2}
ATTRS = {"LeakyRelu": ({"negative_slope": 0.25}, {"negative_slope": 1.0}),
         "LeftShiftBy": ({"amount": 0}, {"amount": 5}, {"amount": 15}),
         "RightShiftBy": ({"amount": 0}, {"amount": 3}, {"amount": 15})}
DIVISORS = (1, 2, 3, 7, 10, 127, 46341, 65536, 1000003, 2 ** 30 + 1, 2 ** 31 - 1, -1, -2, -3, -7, -1000003,
            -(2 ** 31 - 1))
FORMS = list(ascend_forms.forms())


@pytest.fixture(scope="module")
def run():
    return ascend_forms.library(FORMS)


def attrs_of(row):
    if row.type.endswith(("DivBy", "ModBy")):
        return tuple({"divisor": d} for d in DIVISORS)
    return ATTRS.get(row.type, ({},))


def constants(dtype):
    if dtype is BOOL:
        return (False, True)
    if dtype.is_floating:
        return (0.0, 1.5, -2.0, float("nan"), float("inf"))
    return (0, 3, -5 if dtype.kind == "i" else 5)


def inputs_of(form):
    """Tensor inputs: all combinations of special values, then random ones; 3 million elements at most."""
    tensors = [i for i in range(len(form.in_dtypes)) if i not in form.scalars]
    special = [values.special(form.in_dtypes[i]) for i in tensors]
    if len(tensors) > 2:
        special = [s[:12] for s in special]
    grid = [g.ravel() for g in np.meshgrid(*special)]
    return {i: np.concatenate([g, values.random(form.in_dtypes[i], 3001, i)]) for i, g in zip(tensors, grid)}


def as_fed(array, dtype):
    return array.astype(np.uint8) if dtype is BOOL else array


def check(form, run, tensors, constant, attrs, in_place=-1):
    numbers, floats = [0] * 4, [0.0] * 4
    arrays = []
    for i, dtype in enumerate(form.in_dtypes):
        if i in form.scalars:
            floats[i] = float(constant)
            numbers[i] = 0 if dtype.is_floating else int(constant)
            exact = np.asarray(constant, np.float32) if dtype.is_floating else np.asarray(constant)
            arrays.append(cast_array(exact, FLOAT32, dtype)
                          if dtype.is_floating else exact.astype(dtype.numpy))
        else:
            arrays.append(tensors[i])
    for value in attrs.values():
        floats[3], numbers[3] = float(value), int(value)
    out = np.uint8 if form.out_dtype is BOOL else form.out_dtype.numpy
    given = [as_fed(tensors[i], form.in_dtypes[i]) for i in sorted(tensors)]
    ours = run(ascend_forms.probe_name(form, in_place), out, *given, numbers=numbers, values=floats)
    expected = evaluate_call(form.row.type, arrays, form.in_dtypes, attrs, form.out_dtype)
    expected = as_fed(np.broadcast_to(expected, ours.shape), form.out_dtype)
    if form.row.type in ULPS and form.out_dtype is FLOAT32:
        wide = [a.astype(np.float64) for a in arrays]
        with np.errstate(all="ignore"):
            exact = form.row.evaluate(wide, attrs, FLOAT64)
        wrong = ulps(ours, exact) > ULPS[form.row.type]
        if form.row.type not in ("Sin", "Cos", "Tan"):  # zeros keep the sign that C gives them
            wrong |= (expected == 0) & (ours == 0) & (np.signbit(expected) != np.signbit(ours))
        wrong &= ~np.any([denormal(a) for a in arrays], axis=0)
    else:
        wrong = bits(ours, form.out_dtype) != bits(expected, form.out_dtype)
    at = np.flatnonzero(wrong)
    assert not len(at), "%s %s %s: %d differ, %s" % (form.probe, constant, attrs, len(at), [
        (tuple(np.broadcast_to(a, ours.shape)[k] for a in arrays), ours[k], expected[k]) for k in at[:4]])


def denormal(array):
    return (array != 0) & (np.abs(array) < np.finfo(np.float32).tiny)


def ulps(ours, exact):
    """Error in ULPs of float32; results whose exact value is denormal may be anything as small."""
    with np.errstate(all="ignore"):
        exponent = np.maximum(np.floor(np.log2(np.abs(exact))), -126)
        error = np.abs(ours.astype(np.float64) - exact) / np.exp2(np.where(np.isfinite(exponent), exponent,
                                                                           -126) - 23)
        rounded = exact.astype(np.float32)
    same = (ours == rounded) | (np.isnan(ours) & np.isnan(rounded))
    tiny = (np.abs(exact) < 1.2e-38) & (np.abs(ours) < 1.2e-38)
    return np.where(same | tiny, 0, np.where(np.isnan(error), np.inf, error))


def bits(array, dtype):
    result = np.ascontiguousarray(array).view("u%d" % array.dtype.itemsize).copy()
    if dtype.is_floating:
        result[np.isnan(cast_array(array, dtype, FLOAT64))] = np.iinfo(result.dtype).max
    return result


@pytest.mark.parametrize("form", FORMS, ids=lambda f: f.probe)
def test_call_text_does_what_the_row_means(form, run):
    tensors = inputs_of(form)
    for constant in constants(form.in_dtypes[form.scalars[0]]) if form.scalars else (0,):
        for attrs in attrs_of(form.row):
            check(form, run, tensors, constant, attrs)
    for length in (1, 7, 33, 65, 257):
        check(form, run, {i: a[-length:] for i, a in tensors.items()}, 0, attrs_of(form.row)[0])
    for i in ascend_forms.in_place_inputs(form):
        check(form, run, {k: a[-2049:] for k, a in tensors.items()}, 0, attrs_of(form.row)[0], i)


def test_a_wrong_text_is_seen(run):
    """The comparison itself: the row of Sub against the text of Add."""
    add = next(f for f in FORMS if f.row.type == "Add" and f.in_dtypes[0] is FLOAT32 and f.name == "tensor")
    sub = next(f for f in FORMS if f.row.type == "Sub" and f.in_dtypes[0] is FLOAT32 and f.name == "tensor")
    wrong = add._replace(row=sub.row)

    def as_add(probe, *arguments, **keywords):
        return run(add.probe, *arguments, **keywords)
    with pytest.raises(AssertionError, match="differ"):
        check(wrong, as_add, inputs_of(add), 0, {})
