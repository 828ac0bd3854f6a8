"""The micro cases: each formula is written once and computed by every contender.

A formula gets `xp`, a contender's functions under common names (`numpy_functions` lists them), and its
inputs. This file needs numpy only, so that workers in any environment can import it. `seeded_inputs` gives
all of them the same numbers.
"""
import functools
import operator
from typing import Callable, NamedTuple, Tuple

import numpy as np


class Case(NamedTuple):
    """name: as reports print it; inputs: (shape, dtype name) each; c_function: of bench/handwritten; dims:
    its sizes; bytes: what must be moved at least; tolerance: relative and absolute, against numpy in
    float64."""

    name: str
    inputs: Tuple[Tuple[Tuple[int, ...], str], ...]
    formula: Callable
    c_function: str
    dims: Tuple[int, ...]
    bytes: int
    tolerance: float = 3e-6


def _bias_relu(xp, bias, x):
    return xp.relu(xp.abs(bias) + x)


def _pointwise12(xp, x, y):
    """exp tanh sigmoid, each twice or once, and nine cheap ops."""
    a = xp.tanh(x * 0.5)
    b = xp.sigmoid(y - a)
    c = xp.exp(xp.minimum(a * b, y))
    d = xp.maximum(c - x, 0.25)
    return xp.abs(d * y) + c * 0.125


def _layer_norm(xp, x, gamma, beta):
    mean = xp.mean(x, -1)
    centered = x - mean
    variance = xp.mean(centered * centered, -1)
    return centered * xp.rsqrt(variance + 1e-5) * gamma + beta


def _softmax(xp, x):
    powers = xp.exp(x - xp.max(x, -1))
    return powers / xp.sum(powers, -1)


def _half_chain(xp, x, y):
    """float16 in and out, as the example of the NPU route has it: cast, abs, cast, add, relu, cast."""
    a = xp.cast(xp.abs(xp.cast(x, "float32")), "float16")
    return xp.cast(xp.relu(xp.cast(a, "float32") + xp.cast(y, "float32")), "float16")


def _bias_gelu(xp, x, bias):
    v = x + bias
    return 0.5 * v * (1.0 + xp.tanh(0.7978845608 * (v + 0.044715 * v * v * v)))


def _abs_sum(xp, x):
    return xp.sum(xp.abs(x), 0)


def _float32(*shapes):
    return tuple((shape, "float32") for shape in shapes)


def _elementwise(name, formula, function, shape, *inputs, dtype="float32", tolerance=3e-6):
    item = np.dtype(dtype).itemsize
    moved = item * (sum(int(np.prod(s)) for s in inputs) + int(np.prod(shape)))
    dims = (int(np.prod(shape[:-1])), shape[-1])
    return Case("%s [%s]" % (name, ",".join(map(str, shape))), tuple((s, dtype) for s in inputs), formula,
                function, dims, moved, tolerance)


MICRO = (
    _elementwise("bias_relu", _bias_relu, "bias_relu", (192, 128), (128,), (192, 128)),
    _elementwise("bias_relu", _bias_relu, "bias_relu", (4096, 1024), (1024,), (4096, 1024)),
    _elementwise("pointwise12", _pointwise12, "pointwise12", (1024,), (1024,), (1024,)),
    _elementwise("pointwise12", _pointwise12, "pointwise12", (256, 256), (256, 256), (256, 256)),
    _elementwise("pointwise12", _pointwise12, "pointwise12", (4096, 1024), (4096, 1024), (4096, 1024)),
    _elementwise("layer_norm", _layer_norm, "layer_norm", (1024, 256), (1024, 256), (256,), (256,),
                 tolerance=2e-5),
    _elementwise("layer_norm", _layer_norm, "layer_norm", (4096, 1024), (4096, 1024), (1024,), (1024,),
                 tolerance=2e-5),
    _elementwise("softmax", _softmax, "softmax", (1024, 256), (1024, 256), tolerance=1e-5),
    _elementwise("half_chain", _half_chain, "half_chain", (1024, 1024), (1024, 1024), (1024, 1024),
                 dtype="float16", tolerance=2e-3),
    _elementwise("bias_gelu", _bias_gelu, "bias_gelu", (512, 3072), (512, 3072), (3072,), tolerance=1e-5),
    Case("abs_sum0 [1024,128]", _float32((1024, 128)), _abs_sum, "abs_sum0", (1024, 128),
         4 * 1024 * 128 + 4 * 128, 1e-5),
)
BY_NAME = {case.name: case for case in MICRO}


def seeded_inputs(case: Case):
    """The inputs of a case: the same arrays in every process. 64-byte aligned, so that nobody needs a
    copy."""
    generator = np.random.RandomState(len(case.name))
    return [aligned(generator.uniform(-2, 2, shape).astype(dtype)) for shape, dtype in case.inputs]


def first_elements(*inputs):
    """What a compiled function of the same inputs computes that does next to nothing, for floors. It computes
    something of one input too: a mere view costs more."""
    return functools.reduce(operator.add, [x.reshape(-1)[:1] for x in inputs], 1)


def aligned(array: np.ndarray) -> np.ndarray:
    """A copy whose data begins at a multiple of 64 bytes."""
    space = np.empty(array.nbytes + 64, np.uint8)
    first = -space.ctypes.data % 64
    result = space[first:first + array.nbytes].view(array.dtype).reshape(array.shape)
    result[...] = array
    return result


class numpy_functions:
    """The names that formulas use, in numpy: reductions keep their dims."""

    abs = staticmethod(np.abs)
    exp = staticmethod(np.exp)
    tanh = staticmethod(np.tanh)
    minimum = staticmethod(np.minimum)
    maximum = staticmethod(np.maximum)

    @staticmethod
    def relu(x):
        return np.maximum(x, 0)

    @staticmethod
    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    @staticmethod
    def rsqrt(x):
        return 1 / np.sqrt(x)

    @staticmethod
    def mean(x, axis):
        return np.mean(x, axis, keepdims=True)

    @staticmethod
    def sum(x, axis):
        return np.sum(x, axis, keepdims=True)

    @staticmethod
    def max(x, axis):
        return np.max(x, axis, keepdims=True)

    @staticmethod
    def cast(x, dtype):
        return x  # float64 all the way


def check(case: Case, result: np.ndarray, inputs) -> None:
    """Raises AssertionError where a contender's result is not the formula's."""
    exact = case.formula(numpy_functions, *[x.astype(np.float64) for x in inputs])
    shaped = np.asarray(result, np.float64).reshape(exact.shape)
    np.testing.assert_allclose(shaped, exact, rtol=case.tolerance, atol=case.tolerance, err_msg=case.name)
