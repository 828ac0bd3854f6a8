"""Every elementwise helper against TensorFlow, bit for bit: special values, all lengths near a block."""

import itertools

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from tests.twin import probes  # noqa: E402

tf.compat.v1.logging.set_verbosity("ERROR")

LENGTHS = list(range(1, 66)) + [255, 256, 257, 511, 1791, 1793, 2047, 2048, 2049, 5000]
NAMES = {
    "float": np.float32,
    "half": np.float16,
    "int32_t": np.int32,
    "int16_t": np.int16,
    "int8_t": np.int8,
    "uint8_t": np.uint8,
    "int64_t": np.int64,
    "uint16_t": np.uint16,
}
BF16 = tf.bfloat16.as_numpy_dtype


@pytest.fixture(scope="module")
def run():
    return probes.library("probe_helpers")


def evaluate(fn, *arrays):
    """fn of fed arrays in a graph without Grappler: no rewrite stands between the op and its kernel."""
    config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = -1
    with tf.Graph().as_default(), tf.compat.v1.Session(config=config) as s:
        feeds = [tf.compat.v1.placeholder(tf.as_dtype(a.dtype), a.shape) for a in arrays]
        return s.run(fn(*feeds), dict(zip(feeds, arrays)))


def specials(dtype):
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        info = np.finfo(dtype)
        base = [
            np.nan,
            -np.nan,
            np.inf,
            -np.inf,
            0.0,
            -0.0,
            0.5,
            -0.5,
            1.0,
            -1.0,
            1.5,
            2.5,
            -2.5,
            info.max,
            info.min,
            info.tiny,
            -info.tiny,
            127.0,
            128.0,
            -129.0,
            255.0,
            256.0,
            300.7,
            -300.7,
            32767.9,
            32768.0,
            -32769.0,
        ]
        if dtype == np.float32:
            base += [
                3e9,
                -3e9,
                2147483648.0,
                2147483520.0,
                -2147483648.0,
                1e20,
                -1e20,
                9.3e18,
                -9.3e18,
                65535.9,
                65504.0,
                65519.99,
                65520.0,
                1e-7,
                6e-8,
                2.9e-8,
                16777217.0,
                1.00390625,
                1.01171875,
            ]
        return np.array(base, dtype)
    info = np.iinfo(dtype)
    base = [
        0,
        1,
        -1,
        2,
        -2,
        100,
        -100,
        info.max,
        info.min,
        info.max - 1,
        info.min + 1,
        127,
        128,
        255,
        256,
        300,
        32767,
        32768,
        65535,
        70000,
        16777217,
        16777219,
        2**31 - 1,
        2**31,
        -(2**31),
        -(2**31) - 1,
        2**62 + 1,
    ]
    return np.array([b for b in base if info.min <= b <= info.max], dtype)


def draw(dtype, n, seed):
    """n values: the specials first, in random order, then random bits or random small numbers."""
    rng = np.random.RandomState(seed)
    dtype = np.dtype(dtype)
    bits = rng.randint(0, 256, n * dtype.itemsize).astype(np.uint8).view(dtype)
    with np.errstate(all="ignore"):
        small = (rng.randn(n) * 50).astype(np.float32)
        values = np.where(
            rng.randint(0, 2, n), bits, (small if dtype.kind != "u" else abs(small)).astype(dtype)
        )
    s = specials(dtype)
    m = min(n, len(s))
    values[:m] = rng.permutation(s)[:m]
    return values.astype(dtype)


def same_bits(got, want, nan_is_nan=False):
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype.itemsize == want.dtype.itemsize and got.shape == want.shape
    view = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[got.dtype.itemsize]
    differ = got.view(view) != want.view(view)
    if nan_is_nan:
        differ &= ~(np.isnan(got.astype(np.float32)) & np.isnan(want.astype(np.float32)))
    where = np.flatnonzero(differ)
    assert not len(where), "%d differ, first at %d: got %r want %r" % (
        len(where),
        where[0],
        got[where[0]],
        want[where[0]],
    )


MODES = {
    "EQ": tf.equal,
    "NE": tf.not_equal,
    "LT": tf.less,
    "LE": tf.less_equal,
    "GT": tf.greater,
    "GE": tf.greater_equal,
}


@pytest.mark.parametrize("name", ["float", "half", "int32_t", "int16_t", "int8_t", "uint8_t", "int64_t"])
def test_compare(run, name):
    dtype = NAMES[name]
    s = specials(dtype)
    a, b = (np.array(v, dtype) for v in zip(*itertools.product(s, s)))
    a, b = np.concatenate([a, draw(dtype, 3000, 1)]), np.concatenate([b, draw(dtype, 3000, 2)])
    numpy_modes = {
        "EQ": np.equal,
        "NE": np.not_equal,
        "LT": np.less,
        "LE": np.less_equal,
        "GT": np.greater,
        "GE": np.greater_equal,
    }
    for mode, op in MODES.items():
        with np.errstate(invalid="ignore"):
            try:
                want = evaluate(op, a, b).astype(np.uint8)
            except tf.errors.InvalidArgumentError:  # TensorFlow has no kernel for this dtype and mode
                want = numpy_modes[mode](a, b).astype(np.uint8)
        same_bits(run("compare_%s_%s" % (mode, name), np.uint8, a, b), want)
        for value in s[:12]:
            with np.errstate(invalid="ignore"):
                want = numpy_modes[mode](a, value).astype(np.uint8)
            number = 0 if np.dtype(dtype).kind == "f" else value
            got = run(
                "compare_scalar_%s_%s" % (mode, name), np.uint8, a, numbers=[number], values=[float(value)]
            )
            same_bits(got, want)
    for n in LENGTHS:
        a, b = draw(dtype, n, n), draw(dtype, n, n + 1)
        with np.errstate(invalid="ignore"):
            same_bits(run("compare_LT_%s" % name, np.uint8, a, b), (a < b).astype(np.uint8))
            same_bits(run("compare_NE_%s" % name, np.uint8, a, b), (a != b).astype(np.uint8))


@pytest.mark.parametrize("name", ["float", "half", "int32_t", "int16_t", "uint8_t", "int8_t", "int64_t"])
def test_where(run, name):
    dtype = NAMES[name]
    for n in LENGTHS:
        a, b = draw(dtype, n, n), draw(dtype, n, n + 1)
        cond = np.random.RandomState(n).randint(0, 2, n).astype(np.uint8)
        want = np.where(cond, a, b)  # moves bits, NaN payloads included
        same_bits(run("where_%s" % name, dtype, cond, a, b), want)
        if name in ("float", "half", "int32_t", "int16_t", "uint8_t"):
            same_bits(run("where_sb_%s" % name, dtype, cond, a, numbers=[7]), np.where(cond, a, dtype(7)))
            same_bits(run("where_sa_%s" % name, dtype, cond, b, numbers=[7]), np.where(cond, dtype(7), b))
            same_bits(
                run("where_ss_%s" % name, dtype, cond, numbers=[7, 9]),
                np.where(cond, dtype(7), dtype(9)).astype(dtype),
            )
    a, b = draw(dtype, 4000, 5), draw(dtype, 4000, 6)
    cond = np.random.RandomState(1).randint(0, 2, 4000).astype(np.uint8)
    if name != "int8_t":
        same_bits(
            run("where_%s" % name, dtype, cond, a, b),
            evaluate(lambda c, x, y: tf.where_v2(tf.cast(c, tf.bool), x, y), cond, a, b),
        )


def test_logical(run):
    for n in LENGTHS:
        rng = np.random.RandomState(n)
        a, b = rng.randint(0, 2, n).astype(np.uint8), rng.randint(0, 2, n).astype(np.uint8)
        same_bits(run("logical_and", np.uint8, a, b), a & b)
        same_bits(run("logical_or", np.uint8, a, b), a | b)
        same_bits(run("logical_xor", np.uint8, a, b), a ^ b)
        same_bits(run("logical_not", np.uint8, a), 1 - a)


@pytest.mark.parametrize("name", ["int8_t", "uint8_t", "int16_t", "uint16_t", "int32_t", "int64_t"])
def test_bitwise(run, name):
    dtype = NAMES[name]
    for n in LENGTHS:
        a, b = draw(dtype, n, n), draw(dtype, n, n + 1)
        same_bits(run("bitwise_and_" + name, dtype, a, b), a & b)
        same_bits(run("bitwise_or_" + name, dtype, a, b), a | b)
        same_bits(run("bitwise_xor_" + name, dtype, a, b), a ^ b)
        same_bits(run("bitwise_not_" + name, dtype, a), ~a)


@pytest.mark.parametrize("name", ["float", "half"])
def test_classes_and_sign(run, name):
    dtype = NAMES[name]
    cases = [draw(dtype, n, n) for n in LENGTHS]
    if name == "half":
        cases.append(np.arange(65536).astype(np.uint16).view(np.float16))
    for a in cases:
        same_bits(run("isnan_" + name, np.uint8, a), np.isnan(a).astype(np.uint8))
        same_bits(run("isinf_" + name, np.uint8, a), np.isinf(a).astype(np.uint8))
        same_bits(run("isfinite_" + name, np.uint8, a), np.isfinite(a).astype(np.uint8))
    a = cases[-1]
    a = a[~((abs(a) > 0) & (abs(a) < np.finfo(dtype).tiny))]  # TensorFlow's pool threads flush subnormals
    same_bits(run("sign_" + name, dtype, a), evaluate(tf.sign, a))


def test_integer_unary(run):
    for name in ("int32_t", "int16_t"):
        for n in LENGTHS:
            a = draw(NAMES[name], n, n)
            with np.errstate(all="ignore"):
                same_bits(run("abs_" + name, NAMES[name], a), np.abs(a))
                same_bits(run("neg_" + name, NAMES[name], a), -a)
    a = draw(np.int32, 4000, 1)
    same_bits(run("sign_int32_t", np.int32, a), evaluate(tf.sign, a))
    same_bits(run("abs_int32_t", np.int32, a), evaluate(tf.abs, a))


@pytest.mark.parametrize("name", ["int8_t", "int16_t", "int32_t", "int64_t"])
def test_fill(run, name):
    dtype = NAMES[name]
    for n in LENGTHS:
        value = np.iinfo(dtype).min + 5 + n % 100
        same_bits(run("fill_" + name, dtype, np.zeros(n, dtype), numbers=[value]), np.full(n, value, dtype))


CAST_TYPES = {
    "float": np.float32,
    "half": np.float16,
    "bfloat16_t": BF16,
    "int8_t": np.int8,
    "uint8_t": np.uint8,
    "int16_t": np.int16,
    "int32_t": np.int32,
    "int64_t": np.int64,
}


@pytest.mark.parametrize("source", sorted(CAST_TYPES))
def test_cast(run, source):
    """All 56 pairs and the 8 to bool. Subnormal floats are left out: TensorFlow's pool threads flush them."""
    dtype = CAST_TYPES[source]
    if source == "bfloat16_t":
        a = np.arange(65536).astype(np.uint16)
        values = (a.astype(np.uint32) << 16).view(np.float32)
        keep = ~((abs(values) > 0) & (abs(values) < np.finfo(np.float32).tiny))
        a = a[keep].view(BF16)
    elif source == "half":
        a = np.arange(65536).astype(np.uint16).view(np.float16)
        a = a[~((abs(a) > 0) & (abs(a) < 6.2e-5))]
    elif source == "float":
        a = draw(np.float32, 20000, 3)
        a = a[~((abs(a) > 0) & (abs(a) < np.finfo(np.float32).tiny))]
    else:
        a = draw(dtype, 8000, 3)
    for target, target_dtype in CAST_TYPES.items():
        if target == source:
            continue
        want = evaluate(lambda x: tf.cast(x, tf.as_dtype(target_dtype)), a)
        got = run(
            "cast_%s_%s" % (source, target),
            want.view(np.uint16).dtype if target == "bfloat16_t" else target_dtype,
            a.view(np.uint16) if source == "bfloat16_t" else a,
        )
        if target == "bfloat16_t":
            got, want = ((x.view(np.uint16).astype(np.uint32) << 16).view(np.float32) for x in (got, want))
        same_bits(got, want, nan_is_nan=target in ("float", "half", "bfloat16_t"))
    want = evaluate(lambda x: tf.cast(x, tf.bool), a).astype(np.uint8)
    same_bits(
        run("cast_%s_bool" % source, np.uint8, a.view(np.uint16) if source == "bfloat16_t" else a), want
    )


def test_cast_lengths(run):
    for source, target in (
        ("float", "int8_t"),
        ("float", "int64_t"),
        ("int64_t", "int16_t"),
        ("uint8_t", "bfloat16_t"),
        ("int32_t", "uint8_t"),
        ("half", "int32_t"),
    ):
        for n in LENGTHS:
            a = (
                draw(CAST_TYPES[source], n, n)
                if source != "float"
                else (np.random.RandomState(n).randn(n) * 1e4).astype(np.float32)
            )
            got = run(
                "cast_%s_%s" % (source, target),
                np.uint16 if target == "bfloat16_t" else CAST_TYPES[target],
                a,
            )
            assert len(got) == n
            if source == "float" or source.startswith("int"):
                with np.errstate(all="ignore"):
                    want = a.astype(np.int64).astype(CAST_TYPES[target])
                same_bits(got, want)
