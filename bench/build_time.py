"""What building kernels for the host target costs: 100 distinct kernels cold, then warm, and loading one.

The kernels are chains of elementwise ops, with a softmax or a sum among every five. Seconds of cores are
those of the compilers and of this process together.
"""
import ctypes
import os
import statistics
import tempfile
import time

from rich.table import Table

from tf_autofuse.build.kernels import BuildSettings, KernelBinary, build_kernels
from tf_autofuse.codegen.targets import HOST
from tf_autofuse.ir.asc_graph import FusedGraph, KernelIO
from tf_autofuse.ir.builder import HintBuilder
from tf_autofuse.ir.dtypes import FLOAT32
from tf_autofuse.machine import host_machine

KERNELS = 100
#: What is wanted: seconds of one core a kernel, seconds of 100 kernels on two cores, milliseconds to load
#: one.
GOALS = (0.15, 10.0, 1.0)
_UNARY = ("Abs", "Neg", "Relu", "Exp", "Tanh", "Sqrt", "Sigmoid")


def graph(number: int) -> FusedGraph:
    """The number-th of distinct regions as models have them: 3 to 9 ops on [128, 32 + 4 number]."""
    rows, width = 128, 32 + 4 * number
    b = HintBuilder("g", [("z0", rows), ("z1", width)])
    x = y = b.load(b.data(0, FLOAT32), (1, 1))
    bias = b.broadcast_to(b.load(b.data(1, FLOAT32), (0, 1)), (1, 1))
    for i in range(1 + number % 4):
        y = b.op(_UNARY[(number + 3 * i) % len(_UNARY)], b.op("Add", y, bias if i % 2 else x))
    if number % 5 == 4:
        y = b.op("Exp", b.op("Sub", y, b.broadcast_to(b.reduce("Max", y, (1,)), (1, 1))))
        y = b.op("Div", y, b.broadcast_to(b.reduce("Sum", y, (1,)), (1, 1)))
    b.store(b.op("Mul", y, bias), 0)
    return FusedGraph("g%d" % number, "pointwise", (KernelIO(FLOAT32, (rows, width)), KernelIO(FLOAT32,
                                                                                               (width,))),
                      (KernelIO(FLOAT32, (rows, width)),), (), (), (b.graph(),))


def _core_seconds() -> float:
    t = os.times()
    return t.user + t.system + t.children_user + t.children_system


def run(console) -> None:
    machine = host_machine()
    with tempfile.TemporaryDirectory() as folder:
        settings = BuildSettings(cache_dir=folder)
        start, cores = time.perf_counter(), _core_seconds()
        sources = [HOST.generate(f, HOST.schedule(f, machine), machine, None)
                   for f in map(graph, range(KERNELS))]
        generated = time.perf_counter() - start
        start = time.perf_counter()
        results = build_kernels(sources, settings, lambda done, total: None)
        cold, used = time.perf_counter() - start, _core_seconds() - cores
        assert all(isinstance(r, KernelBinary) for r in results) and len({r.key for r in results}) == KERNELS
        start = time.perf_counter()
        build_kernels(sources, settings, lambda done, total: None)
        warm = time.perf_counter() - start
        loads = []
        for r in results:
            start = time.perf_counter()
            ctypes.CDLL(r.library)
            loads.append(1e3 * (time.perf_counter() - start))
    table = Table("what", "measured", "goal")
    table.add_row("schedule and codegen, ms a kernel", "%.1f" % (1e3 * generated / KERNELS), "")
    table.add_row("core seconds a kernel", "%.3f" % (used / KERNELS), "%.2f" % GOALS[0])
    table.add_row("%d kernels on %d cores, s" % (KERNELS, machine.cores), "%.1f" % cold, "%.0f" % GOALS[1])
    table.add_row("all of them from the cache, ms a kernel", "%.2f" % (1e3 * warm / KERNELS), "")
    table.add_row("loading a library, ms (median)", "%.2f" % statistics.median(loads), "%.0f" % GOALS[2])
    console.print(table)
