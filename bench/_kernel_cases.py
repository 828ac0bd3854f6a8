"""The cases of bench/kernel_speed.py: those of the suite, and variations that users have of them.

A case says what is computed in TensorFlow's ops, so that the kernel is what a user gets, and which function
of bench/handwritten computes the same.
"""
from typing import Callable, NamedTuple, Tuple

import numpy as np
import tensorflow as tf

from bench.suite import cases
from bench.suite.backend_tf import functions


class KernelCase(NamedTuple):
    """build(*inputs) -> outputs. inputs: (shape, TF dtype name) each; an integer behind them: indexes below
    it. sizes: the C function's arguments behind the pointers. unknown: the first dim of all inputs of the
    largest rank is known at run time only. together: the C function takes the inputs' addresses as one
    array."""

    name: str
    build: Callable
    inputs: Tuple[tuple, ...]
    c_function: str
    sizes: Tuple[int, ...]
    unknown: bool = False
    together: bool = False
    tolerance: float = 2e-5

    def arrays(self):
        """Inputs; bfloat16 as its bits."""
        generator = np.random.RandomState(len(self.name))
        made = []
        for shape, dtype, *below in self.inputs:
            if below:
                array = generator.randint(0, below[0], shape)
            elif dtype == "bool":
                array = generator.randint(0, 2, shape)
            else:
                array = generator.uniform(-2, 2, shape)
            numpy = tf.as_dtype(dtype).as_numpy_dtype
            array = np.asarray(array).astype(numpy)
            made.append(array.view(np.uint16) if dtype == "bfloat16" else array)
        return made


def all_cases():
    return _suite() + _pointwise() + _sums() + _rows() + _moves() + _casts()


def _floats(*shapes):
    return tuple((tuple(s), "float32") for s in shapes)


def _text(shape, unknown=False):
    return "[%s]" % ",".join("?" if unknown and i == 0 else str(d) for i, d in enumerate(shape))


def _suite():
    def case(c):
        return KernelCase(c.name, lambda *x: [c.formula(functions, *x)], c.inputs, c.c_function,
                          c.dims + (1,), tolerance=max(c.tolerance, 2e-5))
    return [case(c) for c in cases.MICRO]


def _micro(name, shape, inputs, unknown=False):
    c = next(c for c in cases.MICRO if c.name.startswith(name + " "))
    return KernelCase("%s %s" % (name, _text(shape, unknown)), lambda *x: [c.formula(functions, *x)],
                      _floats(*inputs), c.c_function, (int(np.prod(shape[:-1])), shape[-1], 1), unknown)


def _pointwise():
    found = []
    for shape in ((1000, 250), (777, 13), (4096, 32), (65536, 8), (64, 16384)):
        found.append(_micro("bias_relu", shape, [shape[-1:], shape]))
    for shape in ((4096, 128), (777, 13)):
        found.append(_micro("bias_relu", shape, [shape[-1:], shape], True))
    for shape in ((1000, 250), (777, 13)):
        found.append(_micro("pointwise12", shape, [shape, shape]))
    found.append(_micro("pointwise12", (256, 256), [(256, 256)] * 2, True))
    relu = tf.nn.relu
    for shape in ((1024, 256), (777, 13), (16384, 8)):
        rows, cols = (shape[0], 1), (1, shape[1])
        for unknown in (False, True):
            if unknown and shape[1] == 8:
                continue
            text = _text(shape, unknown)
            found += [
                KernelCase("rows scaled " + text, lambda x, s, o: [relu(x) * s + o],
                           _floats(shape, rows, rows), "scale_rows", shape, unknown),
                KernelCase("columns scaled " + text, lambda x, s, o: [relu(x * s + o)],
                           _floats(shape, cols[1:], cols[1:]), "scale_columns", shape, unknown),
                KernelCase("rows + columns " + text, lambda x, y: [relu(x + y)],
                           _floats(rows, cols), "outer", shape, unknown)]
    return found


def _sums():
    def along(axis):
        return lambda x: [tf.reduce_sum(tf.abs(x), axis)]

    found = []
    for shape in ((1000, 250), (4096, 32), (64, 16384)):
        found.append(KernelCase("sum, first axis " + _text(shape), along(0), _floats(shape), "abs_sum0",
                                shape + (1,), tolerance=1e-4))
    for shape in ((1024, 256), (777, 13), (4096, 32), (65536, 8), (64, 16384)):
        found.append(KernelCase("sum, last axis " + _text(shape), along(1), _floats(shape), "abs_sum_last",
                                shape, tolerance=1e-4))
    found.append(KernelCase("sum, last axis [?,256]", along(1), _floats((1024, 256)), "abs_sum_last",
                            (1024, 256), True, tolerance=1e-4))
    found.append(KernelCase("sum, all [1024,1024]", along((0, 1)), _floats((1024, 1024)), "abs_sum_last",
                            (1, 1024 * 1024), tolerance=1e-3))
    for shape in ((64, 50, 32), (1024, 50, 8), (8, 196, 512)):
        for unknown in (False, True):
            found.append(KernelCase("sum, middle axis " + _text(shape, unknown), along(1), _floats(shape),
                                    "abs_sum_middle", shape, unknown, tolerance=1e-4))
    for shape in ((64, 50, 32), (1024, 50, 8)):
        found.append(KernelCase("weighed, middle axis " + _text(shape),
                                lambda x, w: [tf.reduce_sum(x * w, 1)],
                                _floats(shape, shape[:2] + (1,)), "weighed", shape, tolerance=1e-4))
    return found


def _rows():
    found = []
    for shape, unknown in (((4096, 50), False), ((4096, 50), True), ((12800, 10), False),
                           ((256, 1000), False)):
        found.append(_micro("softmax", shape, [shape], unknown))
    for shape, unknown in (((4096, 64), False), ((4096, 64), True), ((1000, 250), False),
                           ((1024, 256), True)):
        found.append(_micro("layer_norm", shape, [shape, shape[-1:], shape[-1:]], unknown))
    return found


def _moves():
    relu = tf.nn.relu
    return [
        KernelCase("concat 26 of [1024,16]", lambda *x: [relu(tf.concat(x, 1))],
                   _floats(*[(1024, 16)] * 26), "concat26", (1024, 16), together=True),
        KernelCase("concat 26 of [?,16]", lambda *x: [relu(tf.concat(x, 1))],
                   _floats(*[(1024, 16)] * 26), "concat26", (1024, 16), True, together=True),
        KernelCase("concat 26 of [64,16]", lambda *x: [relu(tf.concat(x, 1))],
                   _floats(*[(64, 16)] * 26), "concat26", (64, 16), together=True),
        KernelCase("split 4 of [1024,256]", lambda x: [_products(tf.split(x, 4, 1))], _floats((1024, 256)),
                   "split4", (1024, 64)),
        KernelCase("transpose [1024,768]", lambda x: [relu(tf.transpose(x))], _floats((1024, 768)),
                   "transpose", (1024, 768)),
        KernelCase("transpose [1000,250]", lambda x: [relu(tf.transpose(x))], _floats((1000, 250)),
                   "transpose", (1000, 250)),
        KernelCase("transpose [4096,32]", lambda x: [relu(tf.transpose(x))], _floats((4096, 32)),
                   "transpose", (4096, 32)),
        KernelCase("[0,2,1,3] of [32,128,12,64]", lambda x: [relu(tf.transpose(x, [0, 2, 1, 3]))],
                   _floats((32, 128, 12, 64)), "heads", (32, 128, 12, 64)),
        KernelCase("[0,2,1,3] of [1024,50,2,8]", lambda x: [relu(tf.transpose(x, [0, 2, 1, 3]))],
                   _floats((1024, 50, 2, 8)), "heads", (1024, 50, 2, 8)),
        KernelCase("gather 4096 of [10000,16]", lambda t, i: [tf.gather(t, i) * 2.0],
                   (((10000, 16), "float32"), ((4096,), "int32", 10000)), "gather", (4096, 16, 10000)),
        KernelCase("gather ? of [10000,16]", lambda t, i: [tf.gather(t, i) * 2.0],
                   (((10000, 16), "float32"), ((4096,), "int32", 10000)), "gather", (4096, 16, 10000), True),
    ]


def _products(parts):
    a, b, c, d = parts
    return a * b + c * d


def _casts():
    count = (512, 512)
    size = (512 * 512,)

    def case(name, build, types, c_function, tolerance=2e-5):
        return KernelCase(name + " [512,512]", build, tuple((count, t) for t in types), c_function, size,
                          tolerance=tolerance)

    def cast(target, one=1.0):
        return lambda x: [tf.cast(x, target) + one]

    return [
        case("float16 to float32", cast("float32"), ["float16"], "f16_f32"),
        case("float32 to float16", lambda x: [tf.cast(x + 1.0, "float16")], ["float32"], "f32_f16"),
        case("bfloat16 to float32", cast("float32"), ["bfloat16"], "bf16_f32"),
        case("float32 to bfloat16", lambda x: [tf.cast(x + 1.0, "bfloat16")], ["float32"], "f32_bf16"),
        case("int32 to float32", cast("float32"), ["int32"], "i32_f32"),
        case("float32 to int32", lambda x: [tf.cast(x + 1.0, "int32")], ["float32"], "f32_i32"),
        case("int64 to float32", cast("float32"), ["int64"], "i64_f32"),
        case("float64 to float32", lambda x: [tf.cast(x + 1.0, "float32")], ["float64"], "f64_f32"),
        case("float32 to float64", lambda x: [tf.cast(x + 1.0, "float64")], ["float32"], "f32_f64"),
        case("bool to float32", lambda x, y: [tf.cast(x, "float32") * y], ["bool", "float32"], "bool_f32"),
        case("compare and", lambda x, y: [tf.logical_and(x > 0.0, y < 1.0)], ["float32"] * 2, "both"),
        case("compare, select", lambda x, y: [tf.where(x > y, x, y * 2.0)], ["float32"] * 2, "larger"),
        case("select by bool", lambda m, x, y: [tf.where(m, x, -y)], ["bool", "float32", "float32"],
             "masked"),
    ]
