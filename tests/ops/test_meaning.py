"""The numpy meaning of every row against TF 1.15's kernels: special values, all pairs of them, and random
ones.

'bits' rows must agree bit for bit with the vectorized loop and with single elements (any NaN equals any NaN).
Denormals count as zeros of their sign on both sides: TF's threads flush them, and whether an instruction that
only picks an operand does so is the hardware's affair. float16 and bfloat16 are computed in float32 and
rounded once: ops that round once are compared bit for bit, the others must be within half an ULP of the exact
function of their inputs.
"""
import numpy as np
import pytest

from tests.ops import values
from tests.ops.tf_oracle import TfOpRunner, on_pool_thread, tf
from tf_autofuse.ir.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, INT32
from tf_autofuse.ops.ascir_cast import cast_array
from tf_autofuse.ops.numpy_handler import evaluate_op
from tf_autofuse.ops.table import TF_OPS, recorded_calls, value_dtypes

tf.compat.v1.disable_eager_execution()

HALVES = (FLOAT16, BFLOAT16)
ROUNDING = frozenset(("Add", "Sub", "Mul", "Div", "LeakyRelu", "Floor", "Round", "TruncateMod", "FloorMod"))
DIVISIONS = frozenset(("Div", "FloorDiv", "FloorMod", "Mod", "TruncateDiv", "TruncateMod"))
ATTRS = {"LeakyRelu": {"alpha": 0.2}, "LeakyReluGrad": {"alpha": 0.2}}
#: 'ulp' rows whose formula is that of TF's vectorized loop, to the bit.
VECTOR_FORM = frozenset(("SigmoidGrad", "SqrtGrad", "RsqrtGrad"))
#: TF's own error where it cancels (exp(x) - 1, log(1 + exp(x))) or cuts off: absolute, in units of the
#: dtype's epsilon.
ABSOLUTE = {"Elu": 4, "Selu": 8, "Softplus": 4, "Sigmoid": 4}
#: dtypes whose loops TF vectorizes, so that single elements take another path.
VECTORIZED = (FLOAT32, FLOAT64, INT32)

CASES = [(name, dtype) for name, op in sorted(TF_OPS.items()) for dtype in op.dtypes
         if op.kind == "elementwise" and name not in ("Cast", "BiasAdd", "BiasAddV1")
         and not name.startswith("FusedBatchNorm")]


def _id(case):
    return "-".join(str(part) for part in case)


def constants_of(name, dtype):
    """The constant last inputs to try: integer divisions and powers are lowered with a constant only."""
    if dtype.is_integer and name in DIVISIONS:
        return [1, 2, 3, 4, 5, 7, 10, 100] + ([-2, -3, -7] if dtype.kind == "i" else [])
    if dtype.is_integer and name == "Pow":
        return [0, 1, 2, 3, 5, 10, 64]
    if name == "Pow":
        return [None, 2, -1, 3]
    return [None]


def grids(name, dtypes, constant):
    """Inputs of equal length: every combination of special values, then random ones."""
    dtypes = dtypes if constant is None else dtypes[:1]
    special = [values.special(d)[:16 if len(dtypes) > 2 else None] for d in dtypes]
    combined = [g.ravel() for g in np.meshgrid(*special)]
    return [np.concatenate([g, values.random(d, 512, i)]) for i, (g, d) in enumerate(zip(combined, dtypes))]


def flushed(array, dtype):
    """Denormals to zeros of their sign (float32 and float64; what TF's threads compute with)."""
    if dtype not in (FLOAT32, FLOAT64, BFLOAT16):
        return array
    real = cast_array(array, dtype, FLOAT64)
    tiny = np.finfo(np.float64 if dtype is FLOAT64 else np.float32).tiny
    zero = cast_array(np.copysign(0.0, real), FLOAT64, dtype)
    return np.where(np.abs(real) < tiny, zero, array)


def is_denormal(array, dtype):
    return flushed(array, dtype) != array if dtype.is_floating else np.zeros(array.shape, bool)


def comparable(array, dtype, free_zero_sign=False):
    """Bits with one NaN; zeros of either sign are one where the row says so."""
    array = flushed(array, dtype)
    real = cast_array(array, dtype, FLOAT64) if dtype.is_floating else array
    bits = np.ascontiguousarray(array).view("u%d" % array.dtype.itemsize).copy()
    if dtype.is_floating:
        bits[np.isnan(real)] = np.iinfo(bits.dtype).max
        if free_zero_sign:
            bits[real == 0] = 0
    return bits


def ulps(array, reference, dtype):
    """|array - reference| in ULPs of dtype at the reference; 0 for equal infinities and NaN, inf for unequal
    ones.
    """
    digits = {FLOAT32: 23, FLOAT64: 52, FLOAT16: 10, BFLOAT16: 7}[dtype]
    lowest = {FLOAT32: -126, FLOAT64: -1022, FLOAT16: -14, BFLOAT16: -126}[dtype]
    a, r = (cast_array(x, d, FLOAT64) for x, d in ((array, dtype), reference))
    with np.errstate(all="ignore"):
        exponent = np.maximum(np.floor(np.log2(np.abs(r))), lowest)
        error = np.abs(a - r) / np.exp2(np.where(np.isfinite(exponent), exponent, lowest) - digits)
    rounded = cast_array(cast_array(r, FLOAT64, dtype), dtype, FLOAT64)
    same = (a == rounded) | (np.isnan(a) & np.isnan(r))
    return np.where(same, 0.0, np.where(np.isnan(error), np.inf, error))


def show(inputs, dtypes, wrong, **columns):
    i = np.flatnonzero(wrong)[0]
    shown = [cast_array(x, d, FLOAT64)[i] if d.is_floating else x[i] for x, d in zip(inputs, dtypes)]
    return "%d differ, first at inputs %s: %s" % (
        wrong.sum(), shown, {k: (v[i], hex(int(np.asarray(v[i]).view("u%d" % v.dtype.itemsize))))
                             for k, v in columns.items()})


def rounds_once(name, dtype):
    calls = [c.type for c in recorded_calls(name, dtype) if c.type in ROUNDING]
    return len(calls) <= 1 and name not in ATTRS


@pytest.mark.parametrize("case", CASES, ids=_id)
def test_numpy_meaning_is_tensorflows(case):
    name, dtype = case
    op = TF_OPS[name]
    dtypes = value_dtypes(name, dtype, inputs=3)
    attrs = ATTRS.get(name, {})
    for constant in constants_of(name, dtype):
        baked = {} if constant is None else {1: np.array(constant, dtype.numpy)}
        inputs = grids(name, dtypes, constant)
        tf_op = TfOpRunner(name, dtypes, attrs, baked)
        vector = tf_op(*inputs)
        arguments = inputs + list(baked.values())
        everything = inputs + [np.full(len(inputs[0]), c) for c in baked.values()]
        exact_attrs = {k: float(np.float32(v)) for k, v in attrs.items()}
        ours = on_pool_thread(lambda: evaluate_op(name, arguments, dtypes, tf_op.out_dtype, exact_attrs,
                                                  tuple(baked)))
        ours = np.broadcast_to(ours, vector.shape)
        step = slice(None, None, max(1, len(vector) // 120))
        single = tf_op.element_by_element(*[x[step] for x in inputs]) if dtype in VECTORIZED else vector[step]
        out = tf_op.out_dtype
        if dtype in HALVES and out is dtype and not (op.exact == "bits" and rounds_once(name, dtype)):
            check_within_half_ulp(name, dtype, dtypes, everything, exact_attrs, ours)
        elif op.exact == "bits" or not dtype.is_floating:
            check_bits(op, out, dtypes, everything, vector, ours)
            check_bits(op, out, dtypes, [x[step] for x in everything], single, ours[step])
        elif name in VECTOR_FORM:
            whole = slice(0, len(vector) // 8 * 8)
            check_bits(op, out, dtypes, [x[whole] for x in everything], vector[whole], ours[whole])
        else:
            check_close(name, dtype, dtypes, [x[step] for x in everything], single, ours[step])


def check_bits(op, dtype, dtypes, inputs, theirs, ours):
    wrong = comparable(theirs, dtype, op.lane_varies) != comparable(ours, dtype, op.lane_varies)
    assert not wrong.any(), show(inputs, dtypes, wrong, tf=theirs, ours=ours)


def check_close(name, dtype, dtypes, inputs, theirs, ours):
    """Equal NaN and infinities, values within a few ULPs of TF's scalar code (bench/numerics.py has the
    figures).
    """
    info = np.finfo(dtype.numpy)
    error = ulps(theirs, (ours, dtype), dtype)
    with np.errstate(all="ignore"):
        distance = np.abs(theirs - ours)
    close = (error <= 8) | (distance <= 4 * info.tiny) | (distance <= ABSOLUTE.get(name, 0) * info.eps)
    wrong = ~close & ~np.any([is_denormal(x, d) for x, d in zip(inputs, dtypes)], axis=0)
    assert not wrong.any(), show(inputs, dtypes, wrong, tf=theirs, ours=ours)


def check_within_half_ulp(name, dtype, dtypes, inputs, attrs, ours):
    """ours is the float64 evaluation, rounded to the half type, up to the float32 steps' own small error.

    Only for inputs of moderate size: bfloat16 has float32's range, so intermediate results overflow in
    float32.
    """
    wide = tuple(FLOAT64 if d is dtype else d for d in dtypes)
    values_64 = [cast_array(x, d, w) for x, d, w in zip(inputs, dtypes, wide)]
    exact = evaluate_op(name, values_64, wide, FLOAT64, attrs)
    with np.errstate(all="ignore"):
        sizes = np.abs(np.array([v.astype(np.float64) for v in values_64]))
    moderate = (sizes == 0) | ((sizes > 1e-8) & (sizes < 80)) | ~np.isfinite(sizes) \
        | (dtype is FLOAT16 and name != "SoftplusGrad")
    wrong = (ulps(ours, (exact, FLOAT64), dtype) > 0.52) & np.all(moderate, axis=0)
    assert not wrong.any(), show(inputs, dtypes, wrong, ours=ours, exact=np.broadcast_to(exact, ours.shape))
