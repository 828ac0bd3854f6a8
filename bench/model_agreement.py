"""Tiling's analytic model beside the simulator, on kernels x shapes.

Two comparisons: the simulated time; and, whether both price the same work alike, the simulator with its pipes
taken to overlap perfectly beside the published objective, which says so too: launch and the slowest pipe.
"""
import os
import statistics
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.table import Table

from tf_autofuse.build.kernels import BuildSettings, build_kernels
from tf_autofuse.codegen.ascendc.generate import generate
from tf_autofuse.ir.asc_graph import FusedGraph, KernelIO
from tf_autofuse.ir.builder import HintBuilder
from tf_autofuse.ir.dtypes import FLOAT16, FLOAT32, INT32
from tf_autofuse.machine import machine_for
from tf_autofuse.ops.table import ASC_OPS
from tf_autofuse.profiling.kernel import model_kernel
from tf_autofuse.runtime import registry
from tf_autofuse.schedule.schedule import schedule
from tf_autofuse.symbolic.guards import InputDim, SizeVar
from tf_autofuse.symbolic.size import symbol
from tf_autofuse.tiling import cost_table
from tf_autofuse.tiling.cost_model import BLOCK_DIM
from tf_autofuse.tiling.formula import compiled, text, total
from tf_autofuse.tiling.model import TILES_PER_BLOCK, build_model
from tf_autofuse.tiling.solve import NoPlan, solve

ROOT = Path(__file__).resolve().parent.parent
SHAPES = ((1, 1000), (7, 129), (48, 64), (64, 1024), (192, 128), (200, 500), (333, 77), (512, 768),
          (1000, 10), (1024, 256), (2048, 1024), (100, 8000))
S0, S1 = symbol("s0"), symbol("s1")


def _chain(types, dtype=FLOAT32, inputs=1):
    """x [s0, s1] through unary ops; with two inputs a binary op between each."""
    def build(b):
        x = b.load(b.data(0, dtype), (1, 1))
        y = b.load(b.data(1, dtype), (1, 1)) if inputs > 1 else None
        for type_ in types:
            x = b.op(type_, *((x, y) if ASC_OPS[type_].arity == 2 else (x,)))
        b.store(x, 0)
        return [(dtype, (S0, S1))] * inputs
    return build


def _broadcast(dims):
    def build(b):
        x = b.load(b.data(0, FLOAT32), (1, 1))
        y = b.load(b.data(1, FLOAT32), dims)
        b.store(b.op("Relu", b.op("Add", x, b.broadcast_to(y, (1, 1)))), 0)
        return [(FLOAT32, (S0, S1)), (FLOAT32, tuple(s if d else 1 for s, d in zip((S0, S1), dims)))]
    return build


def _select(b):
    x, y = (b.load(b.data(i, FLOAT32), (1, 1)) for i in range(2))
    b.store(b.op("Where", b.compare("Gt", x, y), b.op("Abs", x), y, dtype=FLOAT32), 0)
    return [(FLOAT32, (S0, S1))] * 2


def _casts(b):
    x = b.op("Cast", b.load(b.data(0, FLOAT16), (1, 1)), dtype=FLOAT32)
    b.store(b.op("Cast", b.op("Exp", b.op("Abs", x)), dtype=FLOAT16), 0)
    return [(FLOAT16, (S0, S1))]


def _softmax(b):
    x = b.load(b.data(0, FLOAT32), (1, 1))
    e = b.op("Exp", b.op("Sub", x, b.broadcast_to(b.reduce("Max", x, axes=(1,)), (1, 1))))
    b.store(b.op("Div", e, b.broadcast_to(b.reduce("Sum", e, axes=(1,)), (1, 1))), 0)
    return [(FLOAT32, (S0, S1))]


KERNELS = {
    "Relu": _chain(["Relu"]), "Abs Exp": _chain(["Abs", "Exp"]),
    "Exp Sqrt Abs Relu": _chain(["Exp", "Sqrt", "Abs", "Relu"]),
    "8 ops": _chain(["Abs", "Sqrt", "Exp", "Relu", "Abs", "Sqrt", "Neg", "Exp"]), "Tanh": _chain(["Tanh"]),
    "Sigmoid": _chain(["Sigmoid"]), "Add": _chain(["Add"], inputs=2),
    "Add Mul Div": _chain(["Add", "Mul", "Div"], inputs=2),
    "Sub Abs Maximum Exp": _chain(["Sub", "Abs", "Maximum", "Exp"], inputs=2),
    "half Relu": _chain(["Relu"], FLOAT16), "half Add Mul": _chain(["Add", "Mul"], FLOAT16, 2),
    "int32 Add Mul": _chain(["Add", "Mul"], INT32, 2), "casts": _casts, "select": _select,
    "row": _broadcast((0, 1)), "column": _broadcast((1, 0)), "scalar": _broadcast((0, 0)),
    "softmax": _softmax,
}


class Case(NamedTuple):
    """One kernel at one shape; cycles. tiles: of a core; published, overlapped: both with pipes that never
    wait."""

    kernel: str
    shape: tuple
    tiles: int
    analytic: float
    simulated: float
    published: float
    overlapped: float


def fused_of(name, build):
    sizes = (SizeVar("s0", InputDim(0, 0), 7), SizeVar("s1", InputDim(0, 1), 129))
    b = HintBuilder("g", [("z0", S0), ("z1", S1)], sizes)
    inputs = build(b)
    graph = b.graph()
    output = next(n for n in graph.nodes if n.type == "Output")
    dtype = graph.tensor(output.inputs[0]).dtype
    return FusedGraph("autofuse_pointwise_0_model", "pointwise",
                      tuple(KernelIO(d, dims) for d, dims in inputs), (KernelIO(dtype, (S0, S1)),),
                      sizes, (), (graph,), tuple(name.split()))


def _case(name, fused, models, library, shape, machine):
    values = dict(zip(("s0", "s1"), shape))
    dims = [[values.get(str(d), d) for d in map(_plain, io.dims)] for io in fused.inputs]
    inputs = [np.abs(np.random.RandomState(0).randn(*d) * 3).astype(io.dtype.numpy)
              for d, io in zip(dims, fused.inputs)]
    modelled = model_kernel(library, inputs, [o.dtype.numpy for o in fused.outputs], machine)
    try:
        plan = solve(models, values, machine)
    except NoPlan:
        return None  # rows that do not fit UB: another way of the kernel was taken
    if plan.block_dim != modelled.tiling.block_dim:
        return None
    model = next(m for m in models if m.key == plan.key)
    names = tuple(values) + (model.tile_symbol, TILES_PER_BLOCK, BLOCK_DIM)
    arguments = shape + (plan.tile, plan.tiles_per_block, plan.block_dim)
    pipes = []
    for pipe in model.pipes:
        once = total([pipe.start] + [c for _, c in pipe.hoisted])
        body = total([c for _, c in pipe.body])
        once, body = (compiled(text(f), names)(*arguments) for f in (once, body))
        pipes.append(once + plan.tiles_per_block * body)
    s = modelled.simulation
    return Case(name, shape, plan.tiles_per_block, plan.cost, s.cycles, cost_table.LAUNCH + max(pipes),
                s.overlapped)


def _plain(size):
    return size if isinstance(size, int) else {S0: "s0", S1: "s1"}[size]


def cases(kernels=None, shapes=SHAPES):
    """A Case for each kernel and shape that the planned way runs."""
    machine = machine_for("")
    with tempfile.TemporaryDirectory() as folder:
        regions, sources = [], []
        for name, build in (kernels or KERNELS).items():
            fused = fused_of(name, build)
            impls = schedule(fused.graphs[0], machine)
            regions.append((name, fused, [i for i in impls if i.way == "whole" and i.stage == 0]))
            sources.append(generate(fused, impls, machine, None))
        found = []
        settings = BuildSettings(cache_dir=os.environ.get("AUTOFUSE_CACHE_DIR") or folder)
        for (name, fused, impls), binary in zip(regions, build_kernels(sources, settings)):
            library = registry.library_of(binary, fused)
            models = [build_model(i) for i in impls]
            found += [_case(name, fused, models, library, shape, machine) for shape in shapes]
    return [c for c in found if c is not None]


def _row(table, label, pairs):
    errors = sorted(abs(a / b - 1) for a, b in pairs)
    within = sum(e <= 0.2 for e in errors)
    table.add_row(label, "%d of %d" % (within, len(errors)), "%.1f %%" % (100 * statistics.median(errors)),
                  "%.0f %%" % (100 * errors[-1]))


def run(console) -> None:
    found = cases()
    table = Table("%d kernels x shapes on %s" % (len(found), machine_for("").soc), "within 20 %",
                  "median difference", "largest")
    _row(table, "analytic : simulated", [(c.analytic, c.simulated) for c in found])
    _row(table, "published objective : simulated", [(c.published, c.simulated) for c in found])
    _row(table, "published objective : simulated, pipes never wait",
         [(c.published, c.overlapped) for c in found])
    console.print(table)
    worst = Table("kernel", "shape", "tiles a core", "analytic", "simulated", "published objective",
                  "pipes never wait")
    for c in sorted(found, key=lambda c: -abs(c.analytic / c.simulated - 1))[:12]:
        worst.add_row(c.kernel, "%d x %d" % c.shape, str(c.tiles), *["%.0f" % v for v in c[3:]])
    console.print(worst)
    console.print("launch of %.0f cycles included; a cycle is 1/%d us"
                  % (cost_table.LAUNCH, machine_for("").clock_mhz))
