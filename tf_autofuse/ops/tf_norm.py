"""TF's fused batch norms and their gradients, NHWC, as TF 1.15's CPU kernels compute them.

Sums are divided by the number of elements, where TF multiplies with its reciprocal. Statistics have the dtype
of scale (float32), x may be float16. reserve_space_3, in which TF leaves what was there, is the number 0; the
gradient's last two outputs hold nothing and are not given.
"""
from tf_autofuse.ir.dtypes import FLOAT16, FLOAT32
from tf_autofuse.ops.composing import literal, require_same_shape
from tf_autofuse.ops.schema import Refusal, TfOp

_SUMMED = (0, 1, 2)  # N, H, W

_NORM = ("NHWC. Inference: (x - mean) * (rsqrt(variance + epsilon) * scale) + offset. Training: the same "
         "with the batch's mean and variance, which are outputs too, the first variance with Bessel's "
         "correction.")
_GRAD = ("NHWC. Training: the gradients of x, scale and offset through the batch's mean and variance, which "
         "are inputs; otherwise with these as constants.")


def _check(h, node, x, *vectors) -> None:
    """x is [N, H, W, C] and each vector [C]."""
    layout = node.attr("data_format", "NHWC")
    if (layout.decode() if isinstance(layout, bytes) else layout) != "NHWC":
        raise Refusal("TensorFlow 1.15 has no CPU kernel of FusedBatchNorm in NCHW layout.")
    if h.rank_of(x) != 4:
        raise Refusal("The input has rank %d, FusedBatchNorm needs rank 4." % h.rank_of(x))
    for vector in vectors:
        if h.rank_of(vector) != 1:
            raise Refusal("Scale, offset, mean and variance must be vectors.")
        h.require_equal_dim(x, 3, vector, 0)


def _inverse_deviation(h, node, variance):
    """1 / sqrt(variance + epsilon)."""
    epsilon = literal(h, node.attr("epsilon", 1e-4), variance)
    return h.call("Div", literal(h, 1, variance), h.call("Sqrt", h.call("Add", variance, epsilon)))


def _normed(h, node, centered, scale, offset, variance):
    factor = h.call("Mul", _inverse_deviation(h, node, variance), scale)
    return h.call("Add", h.call("Mul", centered, factor), offset)


def _batch_norm(h, node, x, scale, offset, mean, variance):
    if not node.attr("is_training", True):
        _check(h, node, x, scale, offset, mean, variance)
        return _normed(h, node, h.call("Sub", x, mean), scale, offset, variance)
    _check(h, node, x, scale, offset)
    for unused in (mean, variance):
        if h.rank_of(unused) != 1:
            raise Refusal("Mean and variance must be vectors.")
        h.require_size(unused, 0, 0)
    for axis in _SUMMED:
        h.require_elements(x, axis)
    dtype = h.dtype_of(x)
    mean = h.call("Div", h.reduce("Sum", x, _SUMMED, False), h.element_count(x, _SUMMED, dtype))
    centered = h.call("Sub", x, mean)
    squares = h.reduce("Sum", h.call("Mul", centered, centered), _SUMMED, False)
    variance = h.call("Div", squares, h.element_count(x, _SUMMED, dtype))
    unbiased = h.call("Div", squares, h.element_count(x, _SUMMED, dtype, less=1))
    y = _normed(h, node, centered, scale, offset, variance)
    return (y, mean, unbiased, mean, variance, literal(h, 0, scale))[: len(node.out_dtypes)]


def _batch_norm_grad(h, node, dy, x, scale, mean, variance):
    _check(h, node, x, scale, mean, variance)
    require_same_shape(h, x, dy)
    for axis in _SUMMED:
        h.require_elements(x, axis)
    inverse = _inverse_deviation(h, node, variance)
    centered = h.call("Sub", x, mean)
    offset_gradient = h.reduce("Sum", dy, _SUMMED, False)
    if node.attr("is_training", True):
        scale_gradient = h.reduce("Sum", h.call("Mul", dy, h.call("Mul", centered, inverse)), _SUMMED, False)
        count = h.element_count(x, _SUMMED, h.dtype_of(x))
        product = h.reduce("Sum", h.call("Mul", dy, centered), _SUMMED, False)
        slope = h.call("Mul", h.call("Mul", inverse, inverse), h.call("Div", product, count))
        rest = h.call("Sub", h.call("Sub", dy, h.call("Div", offset_gradient, count)),
                      h.call("Mul", centered, slope))
        gradient = h.call("Mul", h.call("Mul", scale, inverse), rest)
    else:
        product = h.reduce("Sum", h.call("Mul", dy, centered), _SUMMED, False)
        scale_gradient = h.call("Mul", product, inverse)
        gradient = h.call("Mul", dy, h.call("Mul", scale, inverse))
    return gradient, scale_gradient, offset_gradient


def _row(names, dtypes):
    return TfOp(names, "elementwise", dtypes, _batch_norm, "ulp", _NORM, 5, reduces_if="is_training")


def _grad_row(names, dtypes):
    return TfOp(names, "reduce", dtypes, _batch_norm_grad, "ulp", _GRAD, 5)


ROWS = (
    _row(("FusedBatchNormV2", "FusedBatchNormV3"), (FLOAT32, FLOAT16)),
    _row(("FusedBatchNorm",), (FLOAT32,)),
    _grad_row(("FusedBatchNormGradV2", "FusedBatchNormGradV3"), (FLOAT32, FLOAT16)),
    _grad_row(("FusedBatchNormGrad",), (FLOAT32,)),
)
