"""TF's elementwise gradient ops. None of them broadcasts: both inputs must have one shape.

Names of the arguments follow TF's: dy is the incoming gradient, y an op's output, x an op's input.
"""
from tf_autofuse.ops.composing import FLOATS, INTEGERS, REALS, elementwise_pair, literal, zero_where_zero
from tf_autofuse.ops.schema import TfOp
from tf_autofuse.ops.tf_activation import SELU_SCALE, SELU_SCALE_ALPHA


def _gated(h, dy, gate):
    """dy * (gate ? 1 : 0): a product, so an infinite or NaN dy gives NaN where the gate is closed."""
    return h.call("Mul", dy, h.cast(gate, h.dtype_of(dy)))


def _relu_grad(h, dy, x):
    return _gated(h, dy, h.call("Gt", x, literal(h, 0, x)))


def _relu6_grad(h, dy, x):
    inside = h.call("LogicalAnd", h.call("Gt", x, literal(h, 0, x)), h.call("Lt", x, literal(h, 6, x)))
    return _gated(h, dy, inside)


def _leaky_relu_grad(h, node, dy, x):
    def lower(h, dy, x):
        scaled = h.call("Mul", dy, literal(h, node.attr("alpha", 0.2), dy))
        return h.call("Where", h.call("Gt", x, literal(h, 0, x)), dy, scaled)
    return elementwise_pair(lower)(h, node, dy, x)


def _elu_grad(h, dy, y):
    curved = h.call("Mul", h.call("Add", y, literal(h, 1, y)), dy)
    return h.call("Where", h.call("Lt", y, literal(h, 0, y)), curved, dy)


def _selu_grad(h, dy, y):
    curved = h.call("Mul", dy, h.call("Add", y, literal(h, SELU_SCALE_ALPHA, y)))
    straight = h.call("Mul", dy, literal(h, SELU_SCALE, y))
    return h.call("Where", h.call("Lt", y, literal(h, 0, y)), curved, straight)


def _softplus_grad(h, dy, x):
    return h.call("Div", dy, h.call("Add", h.call("Exp", h.call("Neg", x)), literal(h, 1, x)))


def _softsign_grad(h, dy, x):
    root = h.call("Add", h.call("Abs", x), literal(h, 1, x))
    return h.call("Div", dy, h.call("Mul", root, root))


def _sigmoid_grad(h, y, dy):
    return h.call("Mul", dy, h.call("Mul", y, h.call("Sub", literal(h, 1, y), y)))


def _tanh_grad(h, y, dy):
    return h.call("Mul", dy, h.call("Sub", literal(h, 1, y), h.call("Mul", y, y)))


def _inverse_grad(h, y, dy):
    return zero_where_zero(h, dy, h.call("Mul", h.call("Neg", h.call("Mul", y, y)), dy))


def _sqrt_grad(h, y, dy):
    return zero_where_zero(h, dy, h.call("Mul", dy, h.call("Div", literal(h, 0.5, y), y)))


def _rsqrt_grad(h, y, dy):
    product = h.call("Mul", h.call("Mul", dy, y), h.call("Mul", y, y))
    return zero_where_zero(h, dy, h.call("Mul", product, literal(h, -0.5, dy)))


ROWS = (
    TfOp(("ReluGrad",), "elementwise", FLOATS + INTEGERS, elementwise_pair(_relu_grad), "bits",
         "dy * (x > 0): NaN where dy is infinite or NaN and x is not positive."),
    TfOp(("Relu6Grad",), "elementwise", FLOATS + INTEGERS, elementwise_pair(_relu6_grad), "bits",
         "dy * (0 < x < 6): NaN where dy is infinite or NaN and x is outside."),
    TfOp(("LeakyReluGrad",), "elementwise", FLOATS, _leaky_relu_grad, "bits", "x > 0 ? dy : alpha * dy."),
    TfOp(("EluGrad",), "elementwise", REALS, elementwise_pair(_elu_grad), "bits",
         "y < 0 ? (y + 1) * dy : dy, y the output of Elu."),
    TfOp(("SeluGrad",), "elementwise", REALS, elementwise_pair(_selu_grad), "bits",
         "y < 0 ? dy * (y + scale * alpha) : dy * scale, y the output of Selu."),
    TfOp(("SoftplusGrad",), "elementwise", FLOATS, elementwise_pair(_softplus_grad), "ulp",
         "dy / (exp(-x) + 1)."),
    TfOp(("SoftsignGrad",), "elementwise", FLOATS, elementwise_pair(_softsign_grad), "bits",
         "dy / (|x| + 1)^2."),
    TfOp(("SigmoidGrad",), "elementwise", REALS, elementwise_pair(_sigmoid_grad), "ulp",
         "dy * (y * (1 - y)), y the output of Sigmoid: the rounding of TF's vectorized loop; its remaining "
         "elements "
         "are dy * y * (1 - y)."),
    TfOp(("TanhGrad",), "elementwise", REALS, elementwise_pair(_tanh_grad), "bits",
         "dy * (1 - y * y), y the output of Tanh."),
    TfOp(("InvGrad", "ReciprocalGrad"), "elementwise", REALS, elementwise_pair(_inverse_grad), "bits",
         "0.0 where dy is a zero, whatever y is; otherwise -(y * y) * dy, y the output of Reciprocal. TF's "
         "vectorized "
         "loop gives 0.0 where that is -0.0.", lane_varies=True),
    TfOp(("SqrtGrad",), "elementwise", FLOATS, elementwise_pair(_sqrt_grad), "ulp",
         "0.0 where dy is a zero, whatever y is; otherwise dy * (0.5 / y), y the output of Sqrt: the "
         "rounding of TF's "
         "vectorized loop; its remaining elements are (0.5 * dy) / y."),
    TfOp(("RsqrtGrad",), "elementwise", REALS, elementwise_pair(_rsqrt_grad), "ulp",
         "0.0 where dy is a zero, whatever y is; otherwise -0.5 * ((dy * y) * (y * y)), y the output of "
         "Rsqrt: the order "
         "of TF's vectorized loop, up to the sign of a zero; its remaining elements are (-0.5 * (dy * y)) * "
         "(y * y), "
         "which differs only next to overflow and underflow.", lane_varies=True),
)
