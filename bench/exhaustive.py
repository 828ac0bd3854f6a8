"""All 2^32 float32 values through every one-argument function of the host target's vector math.

    python -m bench.exhaustive [FUNCTION...] [--stride N] [--write]

Each result is compared with the C library's float64 function: the largest error in ULPs of float32 at the
exact value, where it is, and how many results are wrong, that is NaN, infinite or a zero of the other sign
where the exact result is not. --stride N takes every Nth value only. --write puts the rows into the table of
docs/numerics.md; those of functions that were not asked for stay. On two cores this takes about an hour; only
a value's bits and the functions' text decide, so it is run again where npu_kernels/host/ has changed.
"""
import argparse
import ctypes
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tqdm import tqdm

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench import _documents  # noqa: E402
from tests.host import compiled  # noqa: E402
from tests.host.test_vector_math import loop_name, loops, NAMES  # noqa: E402
from tf_autofuse.ir.dtypes import FLOAT32  # noqa: E402
from tf_autofuse.ops.table import ASC_OPS  # noqa: E402

ONE_ARGUMENT = [name for name in NAMES if ASC_OPS[name].arity == 1]
PIECE = 1 << 22  # values a call
DOCUMENT = ROOT / "docs" / "numerics.md"
HEAD = ("| op | worst error in ULPs | at | wrong |", "|---|---|---|---|")

_SWEEP = """
#define AF_SWEEP 4096
typedef void (*af_ours)(float*, const float*, int64_t);
typedef void (*af_exact)(double*, const double*, int64_t);

/* Values first, first + stride, ... below last; worst[0] error, worst[1] its argument. Returns how many are
 * wrong. */
int64_t sweep(af_ours ours, af_exact exact, int64_t first, int64_t last, int64_t stride, double* worst) {
  static __thread float x[AF_SWEEP], y[AF_SWEEP];
  static __thread double wide[AF_SWEEP], right[AF_SWEEP];
  int64_t wrong = 0;
  for (int64_t from = first; from < last; from += AF_SWEEP * stride) {
    int64_t n = 0;
    for (int64_t v = from; v < last && n < AF_SWEEP; v += stride, ++n) {
      const uint32_t bits = (uint32_t)v;
      __builtin_memcpy(x + n, &bits, 4);
      wide[n] = x[n];
    }
    ours(y, x, n);
    exact(right, wide, n);
    for (int64_t i = 0; i < n; ++i) {
      const double e = right[i];
      const float rounded = (float)e;
      if (rounded == y[i]) {
        wrong += y[i] == 0 && !__builtin_signbit(e) != !__builtin_signbit(y[i]);
        continue;
      }
      if (rounded != rounded && y[i] != y[i]) continue;
      if (!(__builtin_fabsf(y[i]) < __builtin_inff()) || e != e) {
        ++wrong;
        continue;
      }
      const int exponent = __builtin_fabs(e) < 0x1p-126 ? -126 : __builtin_ilogb(e);
      const double error = __builtin_fabs(e - y[i]) / __builtin_ldexp(1.0, exponent - 23);
      if (error > worst[0]) {
        worst[0] = error;
        worst[1] = x[i];
      }
    }
  }
  return wrong;
}
"""


class Sweep(NamedTuple):
    """error in ULPs; at: its argument; wrong: number of results of the wrong kind."""

    error: float
    at: float
    wrong: int


def library():
    return compiled.library(loops(), compiled.AVX2, extra=_SWEEP)


def sweep(kernels, name: str, stride: int = 1, progress: bool = False) -> Sweep:
    """All float32 values, or every `stride`th, through AscIR type `name`."""
    ours = kernels.function(loop_name(name, FLOAT32))
    exact = kernels.function("reference_" + name)
    run = kernels.function("sweep")
    run.restype = ctypes.c_int64

    def piece(first):
        worst = (ctypes.c_double * 2)()
        last = min(first + PIECE * stride, 1 << 32)
        wrong = run(ours, exact, ctypes.c_int64(first), ctypes.c_int64(last), ctypes.c_int64(stride), worst)
        return worst[0], worst[1], wrong

    starts = range(0, 1 << 32, PIECE * stride)
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        found = list(tqdm(pool.map(piece, starts), total=len(starts), desc=name, disable=not progress))
    error, at, _ = max(found)
    return Sweep(error, at, sum(wrong for _, _, wrong in found))


def row(name: str, found: Sweep) -> str:
    return "| %s | %.3f | %.9g | %d |" % (name, found.error, found.at, found.wrong)


def run(console):
    """Every 4099th value."""
    kernels = library()
    for line in HEAD + tuple(row(name, sweep(kernels, name, 4099)) for name in ONE_ARGUMENT):
        console.print(line, highlight=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("functions", nargs="*", metavar="FUNCTION", help=", ".join(ONE_ARGUMENT))
    parser.add_argument("--stride", type=int, default=1)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    unknown = set(options.functions) - set(ONE_ARGUMENT)
    if unknown:
        parser.error("no function %s" % ", ".join(sorted(unknown)))
    kernels = library()
    for name in options.functions or ONE_ARGUMENT:
        found = row(name, sweep(kernels, name, options.stride, progress=True))
        print(found, flush=True)
        if options.write:
            kept = [line for line in _documents.lines(DOCUMENT, "exhaustive")
                    if line not in HEAD and not line.startswith("| %s |" % name)]
            _documents.replace(DOCUMENT, "exhaustive", list(HEAD) + sorted(kept + [found]))


if __name__ == "__main__":
    main()
