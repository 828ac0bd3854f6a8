"""Plans of the tiling function beside the best of an exhaustive search, by the analytic model, and its time.

For each kernel x shape the generated C++ plans; a search over every tile (where there are more than 8192,
every whole block of memory) and every number of cores prices all legal plans of all variants by the same
formulas. The ratio of the two costs is what the solver loses. The time is that of one call of
autofuse_tiling on one thread, the fastest of several rounds.
"""
import ctypes
import os
import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import Dict, List, NamedTuple, Sequence, Tuple

from rich.table import Table

from bench.model_agreement import KERNELS, S0, S1, SHAPES, fused_of
from tf_autofuse.build.toolchain import KERNEL_FLAGS, find_toolchain
from tf_autofuse.codegen.abi import MACHINE_STRUCT, AutofuseMachine
from tf_autofuse.ir.dtypes import FLOAT32
from tf_autofuse.machine import machine_for
from tf_autofuse.schedule.schedule import schedule
from tf_autofuse.symbolic.size import CPP_PRELUDE
from tf_autofuse.tiling.model import build_model
from tf_autofuse.tiling.nests import tiling_functions, tiling_header
from tf_autofuse.tiling.settings import TilingSettings

#: Calls that one round times.
CALLS = 200
ROUNDS = 7


def _transposed(b):
    x = b.load(b.data(0, FLOAT32), (1, 1), strides=(1, S0))
    y = b.load(b.data(1, FLOAT32), (0, 1))
    b.store(b.op("Add", x, b.broadcast_to(y, (1, 1))), 0)
    return [(FLOAT32, (S1, S0)), (FLOAT32, (1, S1))]


def _row_sums(b):
    x = b.op("Abs", b.load(b.data(0, FLOAT32), (1, 1)))
    b.store(b.op("Sub", x, b.broadcast_to(b.reduce("Sum", x, axes=(1,)), (1, 1))), 0)
    return [(FLOAT32, (S0, S1))]


def _every_second(b):
    x = b.load(b.data(0, FLOAT32), (1, 1), strides=(2 * S1, 2))
    b.store(b.op("Abs", x), 0)
    return [(FLOAT32, (S0, 2 * S1))]


MORE = {"transposed": _transposed, "row sums": _row_sums, "every second": _every_second}

#: Behind the generated functions, in the same unit: it sees their Case structs.
_SEARCH = """\
namespace {
template <class Case>
double Exhausted(const Case& c, int64_t cores, int64_t ub_bytes, double best) {
  const int64_t budget = ub_bytes - Case::kReserved;
  if (!c.Applies() || !c.InnerWithin(budget)) return best;
  const int64_t cut = c.Cut();
  const int64_t outer = c.Outer();
  const int64_t step = cut > 8192 ? Case::kAlign : 1;
  for (int64_t tile = Min(step, cut); Fits(c, tile, budget); tile = Min(tile + step, cut)) {
    const int64_t total = outer * CeilDiv(cut, tile);
    for (int64_t d = 1; d <= cores; ++d) {
      const int64_t per_block = CeilDiv(total, d);
      const double cost = c.Cost(tile, per_block, CeilDiv(total, per_block));
      if (best < 0.0 || cost < best) best = cost;
    }
    if (tile == cut) break;
  }
  return best;
}
}  // namespace
"""

_HARNESS = """\
extern "C" double exhausted(const int64_t* sizes, const AutofuseMachine* machine) {
  double best = -1.0;
%s
  return best;
}
extern "C" double planned(const int64_t* sizes, const AutofuseMachine* machine, uint32_t* block_dim) {
  AutofuseTilingData t;
  uint64_t workspace = 0;
  if (autofuse_tiling(sizes, machine, &t, block_dim, &workspace) != 0) return -1.0;
  switch (t.tiling_key) {
%s
  }
  return -1.0;
}
extern "C" double seconds(const int64_t* sizes, const AutofuseMachine* machine, int32_t calls) {
  AutofuseTilingData t;
  uint32_t block_dim = 0;
  uint64_t workspace = 0;
  const auto start = std::chrono::steady_clock::now();
  for (int32_t i = 0; i < calls; ++i) autofuse_tiling(sizes, machine, &t, &block_dim, &workspace);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / calls;
}
"""

ALGORITHMS = {"AxesReorder": TilingSettings(), "AxesReorder, level 0": TilingSettings(accuracy_level=0),
              "HighPerf": TilingSettings(algorithm="HighPerf"),
              "AxesReorder, kept": TilingSettings(keeps_plans=True)}


class Found(NamedTuple):
    """One kernel at one shape under one algorithm. cost, best: cycles; seconds: of one call."""

    algorithm: str
    kernel: str
    shape: Tuple[int, int]
    cost: float
    best: float
    cores: int
    seconds: float

    @property
    def ratio(self) -> float:
        return self.cost / self.best


def source(fused, impls, settings: TilingSettings) -> str:
    """The generated tiling function of one kernel, and beside it the search."""
    models = [build_model(i) for i in impls]
    cases = "\n".join("  best = Exhausted(Case%d(sizes), machine->core_num, machine->ub_size, best);" % m.key
                      for m in models if not m.last_resort)
    prices = "\n".join("    case %d: return Case%d(sizes).Cost(t.%s, t.%s, t.block_dim);" % (
        m.key, m.key, m.tile_symbol, m.block_symbol) for m in models)
    parts = ["#include <chrono>", "#include <cstdint>", "#include <cstdio>", MACHINE_STRUCT,
             '#define AUTOFUSE_EXPORT extern "C"', "namespace {", CPP_PRELUDE, "}",
             tiling_header(fused, impls).replace("#pragma once", ""),
             tiling_functions(fused, impls, settings), _SEARCH, _HARNESS % (cases, prices)]
    return "\n".join(parts)


def compile_all(sources: Dict[str, str], folder: Path) -> Dict[str, ctypes.CDLL]:
    command = find_toolchain(os.environ).command
    flags = [f for f in KERNEL_FLAGS if f.startswith(("-O", "-std", "-ff"))]
    libraries = {}
    running = []
    for i, (name, text) in enumerate(sources.items()):
        path = folder / ("k%d.cc" % i)
        path.write_text(text, encoding="utf-8")
        libraries[name] = folder / ("k%d.so" % i)
        output = ["-shared", "-fPIC", "-o", str(libraries[name]), str(path)]
        running.append(subprocess.Popen(list(command) + flags + output))
        if len(running) == 2:
            _finish(running)
    _finish(running)
    return {name: _loaded(path) for name, path in libraries.items()}


def _finish(running: List[subprocess.Popen]) -> None:
    while running:
        if running.pop().wait() != 0:
            raise RuntimeError("the compiler failed")


def _loaded(path: Path) -> ctypes.CDLL:
    library = ctypes.CDLL(str(path))
    library.exhausted.restype = library.planned.restype = library.seconds.restype = ctypes.c_double
    return library


def measure(kernels=None, shapes: Sequence[Tuple[int, int]] = SHAPES, rounds: int = ROUNDS) -> List[Found]:
    """A Found for each algorithm, kernel and shape that the whole way has a plan for."""
    machine = machine_for("")
    cores, ub_bytes = machine.launch_limits
    given = AutofuseMachine(cores, 0, ub_bytes)
    found: List[Found] = []
    with tempfile.TemporaryDirectory() as folder:
        sources = {}
        for name, build in (kernels or dict(KERNELS, **MORE)).items():
            fused = fused_of(name, build)
            impls = [i for i in schedule(fused.graphs[0], machine) if i.way == "whole" and i.stage == 0]
            for algorithm, settings in ALGORITHMS.items():
                sources[algorithm, name] = source(fused, impls, settings)
        libraries = compile_all(sources, Path(folder))
        best: Dict[Tuple[str, Tuple[int, int]], float] = {}
        for (algorithm, name), library in libraries.items():
            for shape in shapes:
                sizes = (ctypes.c_int64 * 2)(*shape)
                cores = ctypes.c_uint32()
                cost = library.planned(sizes, ctypes.byref(given), ctypes.byref(cores))
                if cost < 0:
                    continue  # rows that do not fit UB: another way of the kernel is taken
                if (name, shape) not in best:
                    best[name, shape] = library.exhausted(sizes, ctypes.byref(given))
                seconds = min(library.seconds(sizes, ctypes.byref(given), CALLS) for _ in range(rounds))
                found.append(Found(algorithm, name, shape, cost, best[name, shape], cores.value, seconds))
    return found


def run(console) -> None:
    found = measure()
    table = Table("%s, modelled" % machine_for("").soc, "kernels x shapes", "median ratio", "90 %", "worst",
                  "us a plan, median", "90 %", "longest")
    for algorithm in ALGORITHMS:
        of = [f for f in found if f.algorithm == algorithm]
        ratios, times = sorted(f.ratio for f in of), sorted(f.seconds * 1e6 for f in of)
        table.add_row(algorithm, str(len(of)), *["%.3f" % v for v in (
            statistics.median(ratios), ratios[len(ratios) * 9 // 10], ratios[-1])], *["%.1f" % v for v in (
                statistics.median(times), times[len(times) * 9 // 10], times[-1])])
    console.print(table)
    worst = Table("algorithm", "kernel", "shape", "cores", "planned", "best", "ratio", "us")
    for algorithm in ALGORITHMS:
        of = [f for f in found if f.algorithm == algorithm]
        for f in sorted(of, key=lambda f: -f.ratio)[:6]:
            worst.add_row(f.algorithm, f.kernel, "%d x %d" % f.shape, str(f.cores), "%.0f" % f.cost,
                          "%.0f" % f.best, "%.3f" % f.ratio, "%.1f" % (f.seconds * 1e6))
    console.print(worst)
