"""Nanoseconds an element of the host target's vector math, against the C library and numpy.

    python -m bench vector_math

One thread, arrays of 2048 float32 (float64: 1024) elements that stay in the first cache, the best of several
repetitions taken in turns. "C library": the same loop around the scalar function.
"""
import os
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np  # noqa: E402
from rich.table import Table  # noqa: E402

from tests.host import compiled  # noqa: E402
from tf_autofuse.ir.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64  # noqa: E402
from tf_autofuse.ops import host_forms  # noqa: E402
from tf_autofuse.ops.table import ASC_OPS  # noqa: E402

#: AscIR type -> (interval of the inputs, numpy's function)
CASES = {"Exp": (-20, 20, np.exp), "Expm1": (-3, 3, np.expm1), "Ln": (0.01, 100, np.log),
         "Log1p": (-0.9, 9, np.log1p), "Sigmoid": (-10, 10, None), "Tanh": (-4, 4, np.tanh),
         "Sinh": (-4, 4, np.sinh), "Cosh": (-4, 4, np.cosh), "Asinh": (-4, 4, np.arcsinh),
         "Acosh": (1, 9, np.arccosh), "Atanh": (-0.9, 0.9, np.arctanh), "Sin": (-9, 9, np.sin),
         "Cos": (-9, 9, np.cos), "Tan": (-9, 9, np.tan), "Asin": (-1, 1, np.arcsin),
         "Acos": (-1, 1, np.arccos), "Atan": (-9, 9, np.arctan), "Erf": (-3, 3, None), "Erfc": (-3, 5, None),
         "Pow": (0.1, 9, np.power), "Atan2": (-9, 9, np.arctan2), "Sqrt": (0, 9, np.sqrt)}
REPEATS, INNER = 9, 200
TIMER = """#include <time.h>
double seconds(void (*f)(void*, const void*, const void*, int64_t), void* d, const void* a, const void* b,
               int64_t n, int64_t times) {
  struct timespec from, to;
  clock_gettime(CLOCK_MONOTONIC, &from);
  for (int64_t i = 0; i < times; ++i) {
    f(d, a, b, n);
    __asm__ volatile("" ::: "memory");
  }
  clock_gettime(CLOCK_MONOTONIC, &to);
  return (to.tv_sec - from.tv_sec) + 1e-9 * (to.tv_nsec - from.tv_nsec);
}
"""


def library_call(type_, dtype, arity):
    """The C library's scalar function on {0} {1}."""
    suffix = "f" if dtype is FLOAT32 else ""
    if type_ == "Sigmoid":
        return "1 / (1 + __builtin_exp%s(-{0}))" % suffix
    name = {"Ln": "log"}.get(type_, type_.lower())
    return "__builtin_%s%s(%s)" % (name, suffix, ", ".join("{%d}" % i for i in range(arity)))


def loops():
    found = []
    for type_ in CASES:
        row = ASC_OPS[type_]
        for dtype in (FLOAT32, FLOAT64):
            # every loop takes two inputs, so that one timer calls them all
            types = (dtype.host,) * 3
            found.append(compiled.Loop("ours_%s_%s" % (type_, dtype.name), types, row.host[dtype],
                                       host_forms.headers(row.host[dtype])))
            found.append(compiled.Loop("libm_%s_%s" % (type_, dtype.name), types,
                                       library_call(type_, dtype, row.arity)))
    for half in (FLOAT16, BFLOAT16):
        for pair in ((half, FLOAT32), (FLOAT32, half)):
            text = host_forms.cast(*pair)
            found.append(compiled.Loop("cast_%s_%s" % pair, (pair[1].host, pair[0].host, pair[0].host), text,
                                       host_forms.headers(text)))
    return found


def measure(run, names, dtype, inputs, count):
    """name -> best nanoseconds an element, the names taken in turns."""
    out = np.empty(count, dtype)
    best = dict.fromkeys(names, np.inf)
    for _ in range(REPEATS):
        for name in names:
            seconds = run.seconds(name, out, *inputs, count=count, times=INNER)
            best[name] = min(best[name], seconds / INNER / count * 1e9)
    return best


def numpy_nanoseconds(function, inputs, count):
    import timeit
    if function is None:
        return None
    arguments = inputs if function in (np.power, np.arctan2) else inputs[:1]
    best = min(timeit.repeat(lambda: function(*arguments), number=INNER, repeat=REPEATS))
    return best / INNER / count * 1e9


def rows(run, dtype):
    count = 8192 // dtype.bytes
    generator = np.random.RandomState(0)
    for type_, (low, high, function) in CASES.items():
        inputs = [generator.uniform(low, high, count).astype(dtype.numpy) for _ in range(2)]
        names = ["%s_%s_%s" % (who, type_, dtype.name) for who in ("ours", "libm")]
        best = measure(run, names, dtype.numpy, inputs, count)
        theirs = numpy_nanoseconds(function, inputs, count)
        yield type_, best[names[0]], best[names[1]], theirs, run.vectorized[names[0]]


def casts(run):
    count = 2048
    for half in (FLOAT16, BFLOAT16):
        for pair in ((half, FLOAT32), (FLOAT32, half)):
            name = "cast_%s_%s" % pair
            inputs = [np.zeros(count, pair[0].numpy)] * 2
            best = measure(run, [name], pair[1].numpy, inputs, count)[name]
            yield "Cast %s to %s" % pair, best, run.vectorized[name]


def run(console):
    kernels = compiled.library(loops(), compiled.AVX2, extra="#include <stdint.h>\n" + TIMER)
    for dtype in (FLOAT32, FLOAT64):
        table = Table("type", "host target", "C library", "numpy", "times faster", "vector bytes",
                      title=dtype.name + ", ns an element")
        for type_, ours, libm, theirs, width in rows(kernels, dtype):
            table.add_row(type_, "%.2f" % ours, "%.2f" % libm, "%.2f" % theirs if theirs else "",
                          "%.1f" % (libm / ours), str(width or "scalar"))
        console.print(table)
    table = Table("conversion", "ns an element", "vector bytes")
    for name, ours, width in casts(kernels):
        table.add_row(name, "%.2f" % ours, str(width))
    console.print(table)
