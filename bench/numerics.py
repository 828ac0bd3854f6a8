"""Worst errors of the transcendental ops: TensorFlow's kernels and fused ones of both targets, against
float64.

    python -m bench.numerics [--points N] [--write]

float32: N points (default 2^20) an op, half of them over all exponents, half where the function does
something. float16: every value. Errors are in ULPs of the op's dtype at the exact value; results whose exact
value is below the smallest normal number count as right when they are that small too. Kernels run on
TensorFlow's threads, which flush denormals. --write puts the tables into docs/numerics.md between the marks
that name them.
"""
import argparse
import math
import os
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402

from tests.ops.tf_oracle import TfOpRunner, on_pool_thread, tf  # noqa: E402
from bench import _documents  # noqa: E402
from tests.host import handler as host  # noqa: E402
from tests.ops.twin_handler import TwinHandler, library, run_op  # noqa: E402
from tf_autofuse.ir.dtypes import FLOAT16, FLOAT32, FLOAT64  # noqa: E402
from tf_autofuse.ops.numpy_handler import evaluate_op  # noqa: E402
from tf_autofuse.ops.table import TF_OPS  # noqa: E402

HEAD = ("| op | TF, vectorized loop | TF, single elements | ascend | worst at | host | worst at |",
        "|---|---|---|---|---|---|---|")
SINGLE = 4096  # points of which TF computes one at a time

#: op -> intervals of the second half of the points, for each input
INTERVALS = {
    "Exp": [(-88, 88)],
    "Expm1": [(-3, 3)],
    "Log": [(0, 4)],
    "Log1p": [(-1, 3)],
    "Sqrt": [(0, 4)],
    "Rsqrt": [(0, 4)],
    "Sin": [(-100, 100)],
    "Cos": [(-100, 100)],
    "Tan": [(-100, 100)],
    "Asin": [(-1, 1)],
    "Acos": [(-1, 1)],
    "Atan": [(-4, 4)],
    "Sinh": [(-4, 4)],
    "Cosh": [(-4, 4)],
    "Asinh": [(-4, 4)],
    "Acosh": [(1, 4)],
    "Atanh": [(-1, 1)],
    "Tanh": [(-4, 4)],
    "Sigmoid": [(-20, 20)],
    "Erf": [(-4, 4)],
    "Erfc": [(-4, 9.2)],
    "Softplus": [(-20, 20)],
    "Elu": [(-4, 1)],
    "Selu": [(-4, 1)],
    "Atan2": [(-4, 4), (-4, 4)],
    "Pow": [(0, 8), (-40, 40)],
    "Xlogy": [(-4, 4), (0, 4)],
    "SoftplusGrad": [(-4, 4), (-20, 20)],
    "SigmoidGrad": [(0, 1), (-4, 4)],
    "SqrtGrad": [(0, 4), (-4, 4)],
    "RsqrtGrad": [(0, 4), (-4, 4)],
}


def points(name, count, seed):
    """float32 inputs of op `name`."""
    generator = np.random.RandomState(seed)
    columns = []
    for low, high in INTERVALS[name]:
        if name.endswith("Grad"):  # over all exponents their products overflow, in TensorFlow too
            columns.append(generator.uniform(low, high, count).astype(np.float32))
            continue
        bits = generator.randint(0, 2 ** 32, count // 2, dtype=np.uint64).astype(np.uint32).view(np.float32)
        anywhere = np.where(np.isfinite(bits), bits, np.float32(1))
        near = generator.uniform(low, high, count - count // 2).astype(np.float32)
        columns.append(np.concatenate([anywhere, near]))
    return columns


def errors(values, exact, dtype):
    """ULPs of `values` (dtype) against `exact` (float64)."""
    info = np.finfo(dtype.numpy)
    lowest = int(round(math.log2(float(info.tiny))))
    with np.errstate(all="ignore"):
        exponent = np.maximum(np.floor(np.log2(np.abs(exact))), lowest)
        unit = np.exp2(np.where(np.isfinite(exponent), exponent, lowest) - info.nmant)
        error = np.abs(values.astype(np.float64) - exact) / unit
        rounded = exact.astype(dtype.numpy)
    same = (values == rounded) | (np.isnan(values) & np.isnan(rounded))
    tiny = (np.abs(exact) < 1.01 * float(info.tiny)) & (np.abs(values) < 1.01 * info.tiny)
    return np.where(same | tiny, 0.0, np.where(np.isnan(error), np.inf, error))


def show(error):
    return "%.2f" % error if error < 1e4 else "wrong" if not np.isfinite(error) else "%.0e" % error


def row(handlers, name, dtype, inputs):
    """A line of the table: TF's worst error in its vectorized loop and for single elements, and that of each
    handler with its argument.
    """
    tf_op = TfOpRunner(name, (dtype,) * len(inputs), {}, {})
    exact = evaluate_op(name, [x.astype(np.float64) for x in inputs], (FLOAT64,) * len(inputs), FLOAT64)
    normal = np.all([(np.abs(x) >= np.finfo(dtype.numpy).tiny) | (x == 0) for x in inputs], axis=0)
    if dtype is FLOAT16:
        normal = np.ones(len(inputs[0]), bool)  # half denormals are normal float32 numbers
    vector = errors(tf_op(*inputs), exact, dtype)
    step = slice(None, None, max(1, len(inputs[0]) // SINGLE))
    single = errors(tf_op.element_by_element(*[x[step] for x in inputs]), exact[step], dtype)
    cells = [show(vector[normal].max()), show(single[normal[step]].max())]
    for handler in handlers:
        ours = errors(on_pool_thread(lambda h=handler: run_op(h, name, inputs, dtype)), exact, dtype)
        worst = int(np.argmax(np.where(normal, ours, -1)))
        cells += [show(ours[normal].max()), ", ".join("%.9g" % x[worst] for x in inputs)]
    return "| %s | %s |" % (name, " | ".join(cells))


def targets():
    """The handlers of the ascend target, on the twin, and of the host target."""
    return TwinHandler(library()), host.HostHandler(host.library())


def float32_table(handlers, count):
    lines = list(HEAD)
    for name in sorted(INTERVALS):
        lines.append(row(handlers, name, FLOAT32, points(name, count, len(name))))
    return lines


def float16_table(handlers):
    every = np.arange(65536, dtype=np.uint16).view(np.float16)
    lines = list(HEAD)
    for name in sorted(INTERVALS):
        if len(INTERVALS[name]) == 1 and FLOAT16 in TF_OPS[name].dtypes:
            lines.append(row(handlers, name, FLOAT16, [every]))
    return lines


def run(console, count=1 << 17):
    """Prints both tables."""
    tf.compat.v1.disable_eager_execution()
    kernels = targets()
    for lines in (float32_table(kernels, count), float16_table(kernels)):
        for line in lines:
            console.print(line, highlight=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=1 << 20)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    tf.compat.v1.disable_eager_execution()
    kernels = targets()
    tables = {"float32": float32_table(kernels, options.points), "float16": float16_table(kernels)}
    for name, lines in tables.items():
        print("\n".join(lines))
        if options.write:
            _documents.replace(ROOT / "docs" / "numerics.md", name, lines)


if __name__ == "__main__":
    main()
