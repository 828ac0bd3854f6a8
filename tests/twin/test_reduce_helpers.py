"""The reductions of reduce.h, fold.h and arg.h against TF 1.15's own kernels.

Rows end in garbage that must not show.
"""

import numpy as np
import pytest

from tests.twin import probes
from tests.twin.cases import TYPES, draw, same
from tf_autofuse.ops import ascir_reduce

tf = pytest.importorskip("tensorflow")

tf.compat.v1.logging.set_verbosity("ERROR")

# rows, cols: one, a block less or more, a repeat less or more, rows more than 255 blocks apart, many rows.
SHAPES = [(1, 1), (1, 7), (5, 8), (3, 9), (33, 17), (2, 64), (31, 65), (40, 130), (1, 2500), (9, 2081),
          (70, 300), (300, 3), (17, 1000), (1, 9000)]
NARROW_SHAPES = [(1, 1), (5, 8), (33, 17), (9, 130), (2, 8200), (40, 20)]
FOLDS = {"sum": tf.reduce_sum, "prod": tf.reduce_prod, "max": tf.reduce_max, "min": tf.reduce_min,
         "any": tf.reduce_any, "all": tf.reduce_all}
CASES = ([(f, t) for t in ("float", "int32_t", "int16_t") for f in ("sum", "prod", "max", "min")]
         + [(f, t) for t in ("half", "int8_t", "uint8_t") for f in ("max", "min")]
         + [("any", "uint8_t"), ("all", "uint8_t")])


@pytest.fixture(scope="module")
def run():
    return probes.library("probe_reduce")


@pytest.fixture(scope="module")
def evaluate():
    config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    with tf.Graph().as_default(), tf.compat.v1.Session(config=config) as session:
        known = {}  # by function, axis and shape: a graph that only grows would make every run slower

        def call(function, x, axis):
            key = (function, axis, x.shape, x.dtype.str)
            if key not in known:
                feed = tf.compat.v1.placeholder(tf.as_dtype(x.dtype), x.shape)
                known[key] = (session.make_callable(function(feed, axis=axis), [feed]))
            return known[key](x)

        yield call


def padded(dtype, cols, extra=0):
    per = 32 // np.dtype(dtype).itemsize
    return (cols + per - 1) // per * per + extra * per


def rows_of(x, stride):
    """The rows `stride` apart in one array, between them what would show in any result: NaN, extremes."""
    dtype = x.dtype
    wild = [np.nan] if dtype.kind == "f" else [np.iinfo(dtype).min, np.iinfo(dtype).max, 7]
    out = np.resize(np.array(wild, dtype), (x.shape[0], stride))
    out[:, : x.shape[1]] = x
    return out.reshape(-1)[: out.size - stride + x.shape[1]].copy()


def cases_of(name, dtype, rows, cols):
    if name in ("any", "all"):
        yield (np.random.RandomState(rows).rand(rows, cols) < (0.05 if name == "any" else 0.95)).astype(dtype)
        return
    x = draw(dtype, rows * cols, seed=rows + cols).reshape(rows, cols)
    if x.dtype.kind == "f" and name in ("sum", "prod"):
        x = np.random.RandomState(cols).randn(rows, cols).astype(dtype)
    if name == "prod" and x.dtype.kind == "f":
        x = np.exp(x / np.sqrt(rows + cols)).astype(dtype)
    yield x


def agree(got, want, x, name, axis):
    if got.dtype.kind == "f" and x.shape[axis] == 1:
        # TF copies along an axis of one element; the fold starts at its identity all the same.
        want = np.where(np.isnan(want) & (name in ("max", "min")), np.inf if name == "min" else -np.inf, want)
    if name not in ("sum", "prod") or got.dtype.kind != "f":
        if got.dtype.kind == "f":  # the sign of a zero among zeros depends on TF's lanes
            got, want = got + 0, want + 0
        return same(got, want)
    exact = (np.sum if name == "sum" else np.prod)(x.astype(np.float64), axis=axis)
    magnitudes = np.sum(np.abs(x.astype(np.float64)), axis=axis)
    scale = magnitudes if name == "sum" else np.abs(exact) * x.shape[axis]
    # Each step rounds once; a lane adds fewer than 64 elements one after another, and then come the trees.
    assert (np.abs(got - exact) <= 2.0 ** -24 * scale * min(x.shape[axis], 80)).all()


@pytest.mark.parametrize("name,type_name", CASES)
def test_folds(run, evaluate, name, type_name):
    dtype = TYPES[type_name]
    # Narrow types pass through half, a repeat of 128 lanes at a time: fewer paths.
    for number, (rows, cols) in enumerate(SHAPES if type_name in ("float", "int32_t") else NARROW_SHAPES):
        for extra in (3 * (number % 2),):
            stride = padded(dtype, cols, extra)
            if rows * stride * np.dtype(dtype).itemsize > 150000:
                continue
            for x in cases_of(name, dtype, rows, cols):
                tensor = x.astype(bool) if name in ("any", "all") else x
                for where, axis, count in (("last_", 1, rows), ("first_", 0, cols)):
                    got = np.zeros(count, dtype)
                    run.launch("%s%s_%s" % (where, name, type_name), [rows_of(x, stride), got], [0, 1], 0,
                               [rows, cols, stride])
                    agree(got, evaluate(FOLDS[name], tensor, axis=axis).astype(dtype), x, name, axis)


@pytest.mark.parametrize("name,type_name", CASES)
def test_folds_of_nothing(run, evaluate, name, type_name):
    dtype = TYPES[type_name]
    for where, rows, cols, axis in (("last_", 5, 0, 1), ("first_", 0, 5, 0)):
        got = np.full(5, 3, dtype)
        run.launch("%s%s_%s" % (where, name, type_name), [np.zeros(1, dtype), got], [0, 1], 0,
                   [rows, cols, 64])
        empty = np.zeros((rows, cols), bool if name in ("any", "all") else dtype)
        want = evaluate(FOLDS[name], empty, axis=axis).astype(dtype)
        same(got, want)
        got = np.full(5, 3, dtype)
        run.launch("identity_%s_%s" % (name, type_name), [got], [1], 0, [5])
        same(got, want)


@pytest.mark.parametrize("name,type_name", CASES)
def test_combine(run, evaluate, name, type_name):
    """Accumulators hold no NaN in a maximum or minimum; parts neither."""
    dtype = TYPES[type_name]
    for n in (1, 31, 2050):
        a, b = draw(dtype, n, 1), draw(dtype, n, 2)
        if name in ("any", "all"):
            a, b = a & 1, b & 1
        if a.dtype.kind == "f" and name in ("max", "min"):
            a, b = np.nan_to_num(a), np.nan_to_num(b)
        out = np.zeros(n, dtype)
        run.launch("combine_%s_%s" % (name, type_name), [a, b, out], [0, 0, 1], 0, [n])
        both = np.stack([a, b])
        with np.errstate(all="ignore"):
            want = evaluate(FOLDS[name], both.astype(bool) if name in ("any", "all") else both, axis=0)
        same(out + 0 if out.dtype.kind == "f" else out, want.astype(dtype) + 0)


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("type_name", ["float", "half"])
def test_nan_is_never_an_extreme(run, evaluate, name, type_name):
    dtype = TYPES[type_name]
    x = np.arange(40 * 70, dtype=dtype).reshape(40, 70) / 8 - 100
    for i in range(40):
        x[i, :: i + 1] = np.nan  # row 0 is all NaN
    for where, axis, y in (("last_", 1, x), ("first_", 0, np.ascontiguousarray(x.T))):
        got = np.zeros(40, dtype)
        rows, cols = y.shape
        run.launch("%s%s_%s" % (where, name, type_name), [rows_of(y, padded(dtype, cols)), got], [0, 1], 0,
                   [rows, cols, padded(dtype, cols)])
        same(got, evaluate(FOLDS[name], y, axis=axis))


def test_a_sum_of_negative_zeros_is_positive(run):
    x = np.full((3, 70), -0.0, np.float32)
    for where, count, cols in (("last_", 3, 70), ("last_", 3, 9), ("first_", 70, 70), ("first_", 9, 9)):
        got = np.ones(count, np.float32)
        stride = padded(np.float32, cols)
        run.launch(where + "sum_float", [rows_of(x[:, :cols], stride), got], [0, 1], 0, [3, cols, stride])
        assert not got.any() and not np.signbit(got).any()


def test_infinities_and_nan_in_a_sum(run):
    x = np.ones((4, 100), np.float32)
    x[0, 50], x[1, 3], x[1, 99], x[2, 70] = np.inf, np.inf, -np.inf, np.nan
    got = np.zeros(4, np.float32)
    run.launch("last_sum_float", [rows_of(x, 104), got], [0, 1], 0, [4, 100, 104])
    same(got, np.array([np.inf, np.nan, np.nan, 100], np.float32))


def test_the_same_sum_on_every_run(run):
    """The order of accumulation is a function of the sizes: equal rows give equal bits, wherever."""
    row = np.random.RandomState(5).randn(777).astype(np.float32)
    x = np.tile(row, (45, 1))
    got = np.zeros(45, np.float32)
    run.launch("last_sum_float", [rows_of(x, 784), got], [0, 1], 0, [45, 777, 784])
    assert len(set(got.view(np.uint32))) == 1


ARG_SHAPES = [(1, 1), (4, 9), (33, 64), (5, 65), (36, 130), (3, 2100)]


def arg_case(dtype, rows, cols):
    x = np.random.RandomState(rows + cols).randint(-6, 7, (rows, cols)).astype(dtype)  # many equal extremes
    if dtype is np.int32:
        x[0, cols // 2] = np.iinfo(np.int32).max
        x[-1, cols // 3] = np.iinfo(np.int32).min
        return x
    x[0, ::3] = np.nan
    if rows > 2:
        x[1], x[2] = np.nan, -np.inf
        x[2, cols // 2] = np.finfo(np.float32).min  # not above the lowest finite value: position 0
    if rows > 3:
        x[3], x[3, cols // 2] = np.inf, np.finfo(np.float32).max
    return x


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("type_name", ["float", "int32_t"])
def test_positions_of_extremes(run, evaluate, name, type_name):
    dtype = TYPES[type_name]
    function = tf.argmax if name == "max" else tf.argmin
    for rows, cols in ARG_SHAPES:
        x = arg_case(dtype, rows, cols)
        for where, axis, y in (("last", 1, x), ("first", 0, np.ascontiguousarray(x.T))):
            m, n = y.shape
            stride = padded(dtype, n)
            want = evaluate(function, y, axis=axis)
            if m * stride > 36000:
                continue
            whole = n if where == "last" else m
            for first, tile in ((0, whole), (11, whole), (0, 64 if where == "last" else 7)):
                got, value = np.zeros(rows, np.int32), np.zeros(rows, dtype)
                run.launch("arg_%s_%s_%s" % (where, name, type_name), [rows_of(y, stride), got, value],
                           [0, 1, 1], 0, [m, n, stride, first, tile])
                assert (got == want + first).all(), (rows, cols, where, first, tile)
                found = np.take_along_axis(x, want[:, None], 1)[:, 0]
                finite = np.isfinite(found) if dtype is np.float32 else np.full(rows, True)
                same(value[finite] + 0, found[finite] + 0)


@pytest.mark.parametrize("type_name,index_dtype", [("float", np.int64), ("int32_t", np.int32)])
def test_positions_as_an_op_gives_them(run, evaluate, type_name, index_dtype):
    """More results than the wrapper works on at a time."""
    x = arg_case(TYPES[type_name], 300, 12)
    for where, axis, y in (("last", 1, x), ("first", 0, np.ascontiguousarray(x.T))):
        got = np.zeros(300, index_dtype)
        run.launch("extreme_%s_%s_%s" % (where, type_name, "int%d_t" % (8 * got.itemsize)),
                   [rows_of(y, padded(x.dtype, y.shape[1])), got], [0, 1], 0,
                   [y.shape[0], y.shape[1], padded(x.dtype, y.shape[1])])
        assert (got == evaluate(tf.argmax, y, axis=axis)).all()


def test_the_op_table_knows_the_scratch(run):
    sizes = np.zeros(2, np.int32)
    run.launch("scratch_sizes", [sizes], [1], 0)
    assert list(sizes) == [ascir_reduce.REDUCE_SCRATCH, ascir_reduce.ARG_SCRATCH]


@pytest.mark.parametrize("kernel,rule", [
    ("reduce_short_scratch", "reduce.h|fold.h.*UB overflow"),
    ("reduce_garbage", "DataCopyPad: uninitialized UB: .*byte 156 of the row"),
    ("reduce_no_barrier", "hazard: read after write inside pipe V"),
])
def test_careless_uses_are_stopped(run, kernel, rule):
    out = np.zeros(40, np.float32)
    run.launch("reduce_good", [out], [1], 0)
    assert (out == 1).all()
    with pytest.raises(probes.Violation, match=rule):
        run.launch(kernel, [out], [1], 0)
