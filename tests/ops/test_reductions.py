"""The numpy meaning of AscIR's reductions against TensorFlow's own kernels."""
import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from tf_autofuse.ir.dtypes import BOOL, BY_NAME, FLOAT32, FLOAT64, INT32, INT64, INT8, UINT8  # noqa: E402
from tf_autofuse.ops.ascir_reduce import start_value  # noqa: E402
from tf_autofuse.ops.numpy_handler import evaluate_call, evaluate_outputs  # noqa: E402

_TF = {"Sum": tf.reduce_sum, "Prod": tf.reduce_prod, "Max": tf.reduce_max, "Min": tf.reduce_min,
       "All": tf.reduce_all, "Any": tf.reduce_any}
NAN, INF = np.nan, np.inf
LOWEST = float(np.finfo(np.float32).min)


def by_tf(asc_type, x, axes):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        p = tf.compat.v1.placeholder(x.dtype, x.shape)
        if asc_type in _TF:
            y = _TF[asc_type](p, axes, keepdims=True)
        else:
            y = tf.expand_dims(getattr(tf, asc_type.lower())(p, axes[0]), axes[0])
        return session.run(y, {p: x})


def ours(asc_type, x, axes):
    dtype = BY_NAME[x.dtype.name]
    result = INT64 if asc_type.startswith("Arg") else dtype
    return evaluate_call(asc_type, [x], [dtype], {"axes": axes}, result)


def data(dtype, shape):
    rng = np.random.RandomState(len(shape))
    if dtype is BOOL:
        return rng.rand(*shape) < 0.7
    if dtype.is_floating:
        return rng.randn(*shape).astype(dtype.numpy)
    low, high = np.iinfo(dtype.numpy).min, np.iinfo(dtype.numpy).max
    return rng.randint(low, high, shape, dtype.numpy) if dtype.bytes < 8 else rng.randint(low, high, shape)


@pytest.mark.parametrize("dtype", (FLOAT32, FLOAT64, INT8, UINT8, INT32, INT64), ids=str)
@pytest.mark.parametrize("shape, axes", [((5,), (0,)), ((3, 5), (1,)), ((3, 5), (0,)), ((2, 3, 4), (0, 2)),
                                         ((2, 3, 4), (1,)), ((2, 0, 3), (1,)), ((0, 3), (1,)),
                                         ((3, 1), (1,))])
def test_against_tf(dtype, shape, axes):
    x = data(dtype, shape)
    for asc_type in ("Sum", "Prod", "Max", "Min") + (("ArgMax", "ArgMin") if len(axes) == 1 and
                                                     shape[axes[0]] else ()):
        expected, found = by_tf(asc_type, x, axes), ours(asc_type, x, axes)
        assert expected.shape == found.shape and expected.dtype == found.dtype, asc_type
        if dtype.is_floating and asc_type in ("Sum", "Prod"):
            np.testing.assert_allclose(found, expected, rtol=1e-5, err_msg=asc_type)
        else:
            np.testing.assert_array_equal(found, expected, asc_type)


@pytest.mark.parametrize("shape, axes", [((5,), (0,)), ((3, 5), (1,)), ((2, 0), (1,)), ((2, 3, 4), (0, 2))])
def test_bool(shape, axes):
    x = data(BOOL, shape)
    for asc_type in ("All", "Any"):
        np.testing.assert_array_equal(ours(asc_type, x, axes), by_tf(asc_type, x, axes))


@pytest.mark.parametrize("row", [
    [NAN, 1, 2], [1, NAN, 2], [1, 2, NAN], [NAN, NAN, NAN], [NAN], [-INF, NAN], [INF, NAN, 1], [-INF, -INF],
    [-INF, LOWEST], [LOWEST, -INF, LOWEST], [-INF, 0.0], [1, 3, 3, 2], [INF, -INF], [1e38, 1e38, 1e38, 1e38],
], ids=str)
def test_special_values(row):
    x = np.array([row, row[::-1], [-v for v in row]], np.float32)
    for asc_type in ("Sum", "Prod", "Max", "Min", "ArgMax", "ArgMin"):
        np.testing.assert_array_equal(ours(asc_type, x, (1,)), by_tf(asc_type, x, (1,)), asc_type)


def test_one_element_is_copied():
    x = np.array([[-0.0], [NAN]], np.float32)
    for asc_type in ("Sum", "Prod", "Max", "Min"):
        expected, found = by_tf(asc_type, x, (1,)), ours(asc_type, x, (1,))
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(np.signbit(found[0]), np.signbit(expected[0]))


def test_an_index_over_several_axes_is_row_major():
    x = np.zeros((2, 3, 4), np.float32)
    x[1, 0, 2], x[0, 2, 3] = 5, -5
    assert ours("ArgMax", x, (0, 2)).reshape(-1).tolist() == [6, 0, 0]
    assert ours("ArgMin", x, (0, 1, 2)).reshape(-1).tolist() == [11]


def test_start_values():
    assert start_value("Sum", FLOAT32) == 0 and isinstance(start_value("Sum", FLOAT32), float)
    assert start_value("Prod", INT8) == 1 and start_value("Max", INT8) == -128
    assert start_value("Min", UINT8) == 255
    assert start_value("Max", FLOAT64) == -INF and start_value("ArgMax", FLOAT32) == LOWEST
    assert start_value("All", BOOL) is True and start_value("Any", BOOL) is False
    for asc_type in ("Sum", "Prod", "Max", "Min"):
        for dtype in (FLOAT32, INT32):
            empty = ours(asc_type, np.zeros((0,), dtype.numpy), (0,))
            np.testing.assert_array_equal(empty, [start_value(asc_type, dtype)])


def tf_outputs(name, arrays, outputs, **attrs):
    """The first `outputs` outputs of TF's own op."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        values = [tf.constant(a) for a in arrays]
        names = {"FusedBatchNormV3": ("x", "scale", "offset", "mean", "variance"),
                 "FusedBatchNormGradV3": ("y_backprop", "x", "scale", "reserve_space_1", "reserve_space_2"),
                 "Sum": ("input", "axis"), "Mean": ("input", "axis"), "L2Loss": ("t",),
                 "SoftmaxCrossEntropyWithLogits": ("features", "labels"),
                 "BiasAddGrad": ("out_backprop",)}.get(name, ("logits",))
        if name == "FusedBatchNormGradV3":
            attrs = dict(attrs, reserve_space_3=tf.constant(0.0))
        result = getattr(tf.raw_ops, name)(**dict(zip(names, values)), **attrs)
        return session.run(list(result)[:outputs] if isinstance(result, tuple) else [result])


def check_op(name, arrays, rtol, outputs=1, **attrs):
    """The first `outputs` outputs."""
    expected = tf_outputs(name, arrays, outputs, **attrs)
    dtypes = [BY_NAME[a.dtype.name] for a in arrays]
    found = evaluate_outputs(name, arrays, dtypes, [BY_NAME[e.dtype.name] for e in expected], attrs)
    assert len(found) == outputs
    for theirs, ours_ in zip(expected, found):
        assert ours_.shape == theirs.shape and ours_.dtype == theirs.dtype
        np.testing.assert_allclose(ours_.astype(np.float64), theirs.astype(np.float64), rtol, rtol)


@pytest.mark.parametrize("dtype, rtol", [(np.float32, 2e-6), (np.float64, 1e-14), (np.float16, 2e-3)])
@pytest.mark.parametrize("name", ("Softmax", "LogSoftmax", "L2Loss", "BiasAddGrad"))
def test_composed_ops(name, dtype, rtol):
    for shape in ((3, 7), (2, 3, 5), (1, 1)) + (((2, 0),) if "Softmax" in name else ()):
        check_op(name, [(3 * data(FLOAT32, shape)).astype(dtype)], rtol)


@pytest.mark.parametrize(
    "row", [[NAN, 1, 2], [INF, 1, 2], [-INF, -INF, -INF], [-INF, 1, 2], [1e30, 1, 2], [INF, INF, 1]], ids=str)
def test_special_values_in_rows(row):
    for name in ("Softmax", "LogSoftmax"):
        check_op(name, [np.array([row, [1, 2, 3]], np.float32)], 1e-6)


@pytest.mark.parametrize("dtype, rtol", [(np.float32, 2e-6), (np.float64, 1e-14), (np.float16, 2e-3)])
def test_cross_entropy(dtype, rtol):
    for shape in ((3, 7), (1, 1), (4, 2)):
        features = (3 * data(FLOAT32, shape)).astype(dtype)
        labels = np.eye(*shape).astype(dtype)
        check_op("SoftmaxCrossEntropyWithLogits", [features, labels], rtol, outputs=2)


def test_bias_gradient_of_channels_first():
    check_op("BiasAddGrad", [data(INT32, (2, 3, 4, 5))], 0, data_format="NCHW")


@pytest.mark.parametrize("dtype", (np.float32, np.float16))
def test_batch_norm(dtype):
    x = data(FLOAT32, (2, 2, 3, 4)).astype(dtype)
    vectors = [data(FLOAT32, (4,)) + i for i in (1, 2, 3)] + [np.array([0, 1, 1e-3, 5], np.float32)]
    check_op("FusedBatchNormV3", [x] + vectors, 1e-6 if dtype is np.float32 else 2e-3, is_training=False,
             epsilon=0.01, data_format="NHWC")


@pytest.mark.parametrize("dtype", (np.float32, np.float16))
@pytest.mark.parametrize("shape", ((2, 2, 3, 4), (1, 1, 1, 3), (1, 5, 1, 1)))
def test_batch_norm_in_training_and_its_gradient(dtype, shape):
    x = (data(FLOAT32, shape) + 0.5).astype(dtype)
    scale, offset = data(FLOAT32, shape[3:]) + 1, data(FLOAT32, shape[3:])
    nothing = np.zeros(0, np.float32)
    rtol = 3e-6 if dtype is np.float32 else 2e-3
    how = dict(epsilon=0.01, data_format="NHWC")
    check_op("FusedBatchNormV3", [x, scale, offset, nothing, nothing], rtol, 5, is_training=True, **how)
    if dtype is np.float16 and shape[:3] == (1, 1, 1):
        return  # TF's gradient stops the process there
    x = x.astype(np.float64)
    statistics = [f(x, (0, 1, 2)).astype(np.float32) for f in (np.mean, np.var)]
    arrays = [data(FLOAT32, shape).astype(dtype), x.astype(dtype), scale] + statistics
    for training in (True, False):
        check_op("FusedBatchNormGradV3", arrays, rtol, 3, is_training=training, **how)


@pytest.mark.parametrize("dtype", (INT8, UINT8, INT32, INT64))
def test_the_mean_of_integers(dtype):
    for shape in ((3, 7), (1, 100), (200, 1)):
        for axis in ([0], [1], [0, 1]):
            check_op("Mean", [data(dtype, shape), np.array(axis, np.int32)], 0, keep_dims=False)
