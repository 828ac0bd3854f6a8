"""TF's activation functions.

The constants of Selu are those of Klambauer et al., Self-Normalizing Neural Networks (2017), as TF writes
them.
"""
from tf_autofuse.ops.composing import FLOATS, INTEGERS, REALS, call, literal
from tf_autofuse.ops.schema import TfOp

SELU_SCALE = 1.0507009873554804934193349852946
SELU_SCALE_ALPHA = 1.7580993408473768599402175208123


def _relu6(h, node, x):
    return h.call("Minimum", h.call("Relu", x), literal(h, 6, x))


def _leaky_relu(h, node, x):
    alpha = node.attr("alpha", 0.2)
    if 0 < alpha <= 1:
        return h.call("LeakyRelu", x, negative_slope=alpha)
    return h.call("Maximum", x, h.call("Mul", x, literal(h, alpha, x)))


def _negative(h, x):
    return h.call("Lt", x, literal(h, 0, x))


def _elu(h, node, x):
    return h.call("Where", _negative(h, x), h.call("Expm1", x), x)


def _selu(h, node, x):
    curved = h.call("Mul", h.call("Expm1", x), literal(h, SELU_SCALE_ALPHA, x))
    straight = h.call("Mul", x, literal(h, SELU_SCALE, x))
    return h.call("Where", _negative(h, x), curved, straight)


def _softplus(h, node, x):
    """max(x, 0) + log1p(exp(-|x|)): the exact function without overflow; TF cuts it at +-13.94 (float32)."""
    tail = h.call("Log1p", h.call("Exp", h.call("Neg", h.call("Abs", x))))
    return h.call("Add", h.call("Relu", x), tail)


def _softsign(h, node, x):
    return h.call("Div", x, h.call("Add", h.call("Abs", x), literal(h, 1, x)))


ROWS = (
    TfOp(("Relu",), "elementwise", FLOATS + INTEGERS, call("Relu"), "bits",
         "(x < 0) ? 0 : x: NaN and -0.0 stay."),
    TfOp(("Relu6",), "elementwise", FLOATS + INTEGERS, _relu6, "bits", "min(relu(x), 6): NaN and -0.0 stay."),
    TfOp(("LeakyRelu",), "elementwise", FLOATS, _leaky_relu, "bits",
         "max(x, alpha * x) for every alpha, with the choices of Maximum: NaN and -0.0 stay for alpha >= 0."),
    TfOp(("Elu",), "elementwise", REALS, _elu, "ulp", "x < 0 ? exp(x) - 1 : x; -inf gives -1, NaN stays. TF "
         "subtracts 1 from the rounded exp, fused kernels use expm1."),
    TfOp(("Selu",), "elementwise", REALS, _selu, "ulp", "Elu with scale 1.0507 and alpha 1.6733."),
    TfOp(("Softplus",), "elementwise", FLOATS, _softplus, "ulp",
         "log(1 + exp(x)): 0 for -inf, inf for inf, NaN stays."),
    TfOp(("Softsign",), "elementwise", FLOATS, _softsign, "bits",
         "x / (|x| + 1): NaN for infinities; -0.0 stays."),
)
