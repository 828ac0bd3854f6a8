"""TF's reductions, the norms that are composed with them, and their dtypes in TF 1.15's CPU kernel registry.

The axes are constant operands (Node.operand); an axis of one element is no reduction. float16 and bfloat16
are computed in float32, sums too, where TF adds up in 16 bits.
"""
from tf_autofuse.ir.dtypes import BOOL
from tf_autofuse.ops.composing import COMMON, FLOATS, INTEGERS, REALS, literal, require_same_shape
from tf_autofuse.ops.schema import Refusal, TfOp
from tf_autofuse.ops.tf_arithmetic import safe_divisor

_NUMBERS = tuple(d for d in COMMON if d is not BOOL)


def _axes(h, node, x):
    """The axes as positions, ascending."""
    operand = node.operand(1)
    if operand is None:
        raise Refusal("The axes of the reduction are not known while compiling.")
    rank = h.rank_of(x)
    if not all(-rank <= a < rank for a in operand):
        raise Refusal("The axes %s do not fit rank %d." % (list(operand), rank))
    axes = sorted(a % rank for a in operand)
    if len(set(axes)) != len(axes):
        raise Refusal("The axes %s name a dim twice, which is an error in TensorFlow." % list(operand))
    return axes


def _reduction(asc_type):
    def lower(h, node, x):
        return h.reduce(asc_type, x, _axes(h, node, x), bool(node.attr("keep_dims", False)))
    return lower


def _mean(h, node, x):
    axes = _axes(h, node, x)
    dtype = h.dtype_of(x)
    total = h.reduce("Sum", x, axes, bool(node.attr("keep_dims", False)))
    count = h.element_count(x, axes, dtype)
    if dtype.is_floating:
        return total if h.known_value(count) == 1 else h.call("Div", total, count)
    if h.known_value(count) is None:
        raise Refusal("The mean of integers over a number of elements that is known at run time only.")
    return h.call("TruncateDivBy", total, divisor=safe_divisor(h, count))


def _arg_extreme(asc_type):
    def lower(h, node, x):
        axes = _axes(h, node, x)
        if len(axes) != 1:
            raise Refusal("An index over %d axes." % len(axes))
        h.require_elements(x, axes[0])
        return h.reduce(asc_type, x, axes, False, dtype=node.out_dtypes[0])
    return lower


def _l2_loss(h, node, x):
    halves = h.call("Mul", h.call("Mul", x, x), literal(h, 0.5, x))
    return h.reduce("Sum", halves, range(h.rank_of(x)), False)


def _bias_add_grad(h, node, gradient):
    """[..., C] to [C] (NHWC), or [N, C, ...] to [C]."""
    rank = h.rank_of(gradient)
    if rank < 2:
        raise Refusal("The gradient has rank %d, BiasAddGrad needs at least rank 2." % rank)
    layout = node.attr("data_format", "NHWC")
    layout = layout.decode() if isinstance(layout, bytes) else layout
    if layout == "NCHW" and rank > 5:
        raise Refusal("BiasAddGrad in NCHW layout takes rank 2 to 5, not %d." % rank)
    channel = 1 if layout == "NCHW" else rank - 1
    return h.reduce("Sum", gradient, [i for i in range(rank) if i != channel], False)


def _shifted(h, x):
    """x minus the greatest element of its row, and the row's axis."""
    rank = h.rank_of(x)
    if rank < 1:
        raise Refusal("The logits have rank 0.")
    return h.call("Sub", x, h.reduce("Max", x, [rank - 1], True)), [rank - 1]


def _softmax(h, node, x):
    shifted, axes = _shifted(h, x)
    powers = h.call("Exp", shifted)
    total = h.reduce("Sum", powers, axes, True)
    return h.call("Mul", powers, h.call("Div", literal(h, 1, x), total))


def _log_softmax(h, node, x):
    shifted, axes = _shifted(h, x)
    return h.call("Sub", shifted, h.call("Ln", h.reduce("Sum", h.call("Exp", shifted), axes, True)))


def _cross_entropy(h, node, features, labels):
    """The loss, sum(labels * (log(sum(exp(shifted))) - shifted)), and the gradient of the features."""
    if h.rank_of(features) != 2:
        raise Refusal("The logits have rank %d, not 2." % h.rank_of(features))
    require_same_shape(h, features, labels)
    shifted, axes = _shifted(h, features)
    powers = h.call("Exp", shifted)
    total = h.reduce("Sum", powers, axes, True)
    parts = h.call("Mul", labels, h.call("Sub", h.call("Ln", total), shifted))
    return h.reduce("Sum", parts, axes, False), h.call("Sub", h.call("Div", powers, total), labels)


def _row(names, dtypes, lower, exact, meaning, inputs=1, kind="reduce"):
    return TfOp((names,) if isinstance(names, str) else names, kind, dtypes, lower, exact, meaning, inputs)


ROWS = (
    _row("Sum", _NUMBERS, _reduction("Sum"), "ulp",
         "Sums in a fixed order; integers wrap around, 16-bit floats add up in float32. Nothing gives 0."),
    _row("Mean", _NUMBERS, _mean, "ulp",
         "The sum, divided by the number of elements in the op's dtype (integers: rounded towards zero). "
         "Nothing gives NaN."),
    _row("Prod", _NUMBERS, _reduction("Prod"), "ulp",
         "Products in a fixed order; integers wrap around. Nothing gives 1."),
    _row("Max", _NUMBERS, _reduction("Max"), "bits",
         "NaN is skipped unless it is the only element; only NaNs give -inf, as nothing does."),
    _row("Min", _NUMBERS, _reduction("Min"), "bits",
         "NaN is skipped unless it is the only element; only NaNs give inf, as nothing does."),
    _row("All", (BOOL,), _reduction("All"), "bits", "Whether all are true; true for nothing."),
    _row("Any", (BOOL,), _reduction("Any"), "bits", "Whether one is true; false for nothing."),
    _row("ArgMax", _NUMBERS, _arg_extreme("ArgMax"), "bits",
         "The index of the first greatest element; NaN is skipped, and where no element is above the lowest "
         "finite number the index is 0."),
    _row("ArgMin", _NUMBERS, _arg_extreme("ArgMin"), "bits",
         "The index of the first least element; NaN is skipped, and where no element is below the highest "
         "finite number the index is 0."),
    _row("L2Loss", REALS, _l2_loss, "ulp", "The sum of x * x / 2 over all elements."),
    _row("BiasAddGrad", FLOATS + INTEGERS, _bias_add_grad, "ulp",
         "The sum over all dims but the channel's."),
    _row("Softmax", REALS, _softmax, "ulp",
         "exp(x - max) over the sum of the row. NaN or inf in a row make all of it NaN."),
    _row("LogSoftmax", REALS, _log_softmax, "ulp",
         "x - max - log of the row's sum of exp(x - max). NaN or inf in a row make all of it NaN."),
    _row("SoftmaxCrossEntropyWithLogits", REALS, _cross_entropy, "ulp",
         "For labels of the logits' shape. The loss: the sum of labels * (log of the row's sum of "
         "exp(x - max) - (x - max)); its gradient: softmax(x) - labels.", 2),
)
