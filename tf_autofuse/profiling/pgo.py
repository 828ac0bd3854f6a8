"""Tilings by measuring (--autofuse_enable_pgo): candidates run, the fastest is kept with the kernel.

On entry a kernel library that was built for it (tiling/plan_text.py: it takes pins and keeps plans), the
fused graph and its ImplGraphs, and the dims of the inputs. On exit the library has the winner for these dims,
in this process and, by its file of plans, in later ones; beside it lies a record of what was measured:

    <library>.pgo.json   {"measured": {"<sizes>@<cores>x<UB bytes>":
                                       {"how": [...], "solved": cycles, "best": [[cycles, pins], ...]}}}

The loop nests of a kernel are measured one after the other, each with the best of those before it. One
process measures a kernel, others wait for it (filelock) and then find the record. A damaged record is put
aside with a warning and made anew.

What measures is a function from a plan to a time: `on_simulator` runs the kernel on the twin, on zeros, and
simulates its trace; `on_device`, which is taken for kernels that were built for an NPU, times it there (it
has run against the stand-in of the ACL runtime only).
"""
import contextlib
import json
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np
from filelock import FileLock, Timeout

from tf_autofuse import diagnostics
from tf_autofuse.build.kernels import KernelBinary
from tf_autofuse.codegen.abi import AutofusePin
from tf_autofuse.ir.asc_graph import FusedGraph
from tf_autofuse.ir.evaluate import bind_inputs
from tf_autofuse.machine import Machine
from tf_autofuse.profiling.kernel import model_kernel
from tf_autofuse.profiling.records import write_json
from tf_autofuse.runtime import npu
from tf_autofuse.runtime.acl import AclError, NpuRuntime
from tf_autofuse.runtime.device import NpuGone, npu_for
from tf_autofuse.runtime.library import KernelError, KernelLibrary, Tiling
from tf_autofuse.runtime.registry import library_of
from tf_autofuse.runtime.target import ASCEND
from tf_autofuse.schedule.impl_graph import ImplGraph
from tf_autofuse.schedule.nests import Nest, has_frame, nests_of
from tf_autofuse.symbolic.guards import GuardFailure
from tf_autofuse.symbolic.size import Size, evaluate, is_static, symbols_of
from tf_autofuse.tiling.candidates import Candidate, candidates
from tf_autofuse.tiling.cpp import kernel_symbols
from tf_autofuse.tiling.model import build_model
from tf_autofuse.tiling.settings import settings_of
from tf_autofuse.tiling.solve import Solver

#: A plan -> its time. Raises KernelError.
Measure = Callable[[Tiling], float]
#: Seconds that a process waits for another one that measures the same kernel.
PATIENCE = 120.0
#: Launches on a device, of which the fastest counts.
LAUNCHES = 5
#: Shapes of one kernel that are measured in one go.
MOST_SHAPES = 8
#: Behind the library's path.
RECORD_SUFFIX = ".pgo.json"
#: What reading a record raises.
UNREADABLE = (OSError, ValueError, KeyError, TypeError)

Pin = Tuple[int, int, int, int]


class Measured(NamedTuple):
    """time: cycles of the simulator, or nanoseconds of a device. pins: (nest, key, tile, cores) of the nests
    that are not planned by the solver."""

    time: float
    pins: Tuple[Pin, ...]


class Subject(NamedTuple):
    """What is measured. library: shapes and plans of the kernel. device: the kernel where it was built for an
    NPU; None: it runs on the twin."""

    library: KernelLibrary
    device: Optional[npu.NpuKernel] = None


class Tuned(NamedTuple):
    """solved: the solver's own plan, measured. best: the fastest, in order, as many as pgo_topn says. fresh:
    whether it was measured now."""

    solved: float
    best: Tuple[Measured, ...]
    fresh: bool = True


def subject_of(kernel: Any, fused: FusedGraph) -> Optional[Subject]:
    """None for what is no KernelBinary, was not built for measuring, or can't be loaded (whoever runs it says
    so)."""
    if not isinstance(kernel, KernelBinary):
        return None
    try:
        if kernel.device_file:
            device = npu.kernel_of(kernel, fused)
            subject = Subject(device.library, device)
        else:
            subject = Subject(library_of(kernel, fused))
    except KernelError:
        return None
    return subject if subject.library.takes_pins else None


def hinted_dims(fused: FusedGraph) -> Optional[List[Tuple[int, ...]]]:
    """The dims of the inputs as they were first seen; None where one was not."""
    values: Dict[str, int] = {v.name: v.hint for v in fused.sizes if v.hint is not None}

    def known(size: Size) -> bool:
        return is_static(size) or set(symbols_of(size)) <= set(values)

    if not all(known(d) for io in fused.inputs for d in io.dims):
        return None
    return [tuple(evaluate(d, values) for d in io.dims) for io in fused.inputs]


def on_simulator(library: KernelLibrary, fused: FusedGraph, dims: Sequence[Sequence[int]],
                 machine: Machine) -> Measure:
    """Simulated cycles of a launch. The library's trace must not be in use."""
    inputs = [np.zeros(d, io.dtype.numpy) for d, io in zip(dims, fused.inputs)]
    dtypes = [np.dtype(io.dtype.numpy) for io in fused.outputs]
    return lambda plan: model_kernel(library, inputs, dtypes, machine, plan).simulation.cycles


def on_device(runtime: NpuRuntime, kernel: npu.NpuKernel, inputs: Sequence[np.ndarray],
              machine: Machine) -> Measure:
    """Nanoseconds from the first copy to the last, the least of LAUNCHES: what differs between plans of one
    kernel is the kernel's own time."""

    def measure(plan: Tiling) -> float:
        times = []
        for _ in range(LAUNCHES):
            start = time.perf_counter()
            npu.run(runtime, kernel, inputs, machine, plan=plan)
            times.append((time.perf_counter() - start) * 1e9)
        return min(times)

    return measure


def tune(library: KernelLibrary, fused: FusedGraph, impls: Sequence[ImplGraph], dims: Sequence[Sequence[int]],
         machine: Machine, config, measure: Optional[Measure] = None) -> Optional[Tuned]:
    """Measures candidates for one shape, unless the record says that they were, and keeps the best; None for
    an empty shape or dims that the kernel refuses. measure: by default the simulator.

    Raises KernelError where the library takes no pins or the solver's own plan does not run."""
    shape = library.shape(dims)
    if shape.failed:
        return None
    limits = machine.launch_limits
    how = [config.pgo_algo, config.pgo_step_max, config.pgo_topn]
    name = _name(shape.sizes, limits)
    with _record(library.path) as record:
        known = _known(record.get(name), how)
        if known is not None:
            _keep(library, shape.sizes, limits, known.best[0])
            return known
        solved = library.tiling_pinned(shape.sizes, *limits, ())
        if solved.block_dim == 0:
            return None
        search = _Search(library, shape.sizes, limits, measure or on_simulator(_copy_of(library), fused, dims,
                                                                               machine))
        search.measure(())
        values = bind_inputs(fused, dims)
        nests = nests_of(fused, impls)
        for nest in nests:
            before = search.best.pins
            for pin in _pins(nest, fused, nests, solved, values, limits, config):
                search.measure(before + (pin,))
        best = sorted(search.measured, key=lambda m: m.time)
        _keep(library, shape.sizes, limits, best[0])
        kept = tuple(best[:config.pgo_topn] if config.pgo_topn else best)
        tuned = Tuned(search.measured[0].time, kept)
        record[name] = {"how": how, "solved": tuned.solved, "best": [list(m) for m in kept]}
        return tuned


def _copy_of(library: KernelLibrary) -> KernelLibrary:
    """The same kernel with a trace of its own: a session may be running the library at this moment."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kernel.so")
        shutil.copyfile(library.path, path)
        return KernelLibrary(path, library.input_ranks, library.output_ranks, library.size_count)


def tune_built(subject: Subject, fused: FusedGraph, impls: Sequence[ImplGraph], machine: Machine,
               config) -> None:
    """`tune` for the dims that the kernel was made for, after its build. A failure costs the measurement, no
    more: one warning, and the solver's plans are used."""
    dims = hinted_dims(fused)
    if dims is None:
        diagnostics.inform(1, config, "PGO: the dims of %s are not known yet; they are measured when a graph "
                           "finds the kernel the next time" % fused.name)
    else:
        _tune_safely(subject, fused, impls, dims, machine, config)


def tune_asked(subject: Subject, fused: FusedGraph, scheduled: Callable[[], Sequence[ImplGraph]],
               machine: Machine, config) -> None:
    """`tune` for the shapes that the kernel has met in this and in earlier processes and that are not
    measured, the latest MOST_SHAPES. scheduled() is called where there are any."""
    known, limits = _measured(subject.library.path), machine.launch_limits
    asked = [s for s in subject.library.asked_sizes(*limits) if _name(s, limits) not in known]
    impls = scheduled() if asked else ()
    for sizes in asked[:MOST_SHAPES]:
        values = {v.name: value for v, value in zip(fused.sizes, sizes)}
        dims = [tuple(evaluate(d, values) for d in io.dims) for io in fused.inputs]
        _tune_safely(subject, fused, impls, dims, machine, config)


def _tune_safely(subject: Subject, fused, impls, dims, machine, config) -> None:
    try:
        measure = _on_its_device(subject.device, dims, machine, config) if subject.device else None
        tuned = tune(subject.library, fused, impls, dims, machine, config, measure)
    except (AclError, NpuGone, KernelError, GuardFailure, ValueError, OSError, Timeout) as error:
        diagnostics.warn_once(
            "pgo " + fused.name, "PGO could not measure %s: %s" % (fused.name, error),
            "the solver's own tilings are used; unset --autofuse_enable_pgo (AUTOFUSE_FLAGS)")
        return
    if tuned is not None:
        diagnostics.inform(1, config, "PGO: %s: %.0f %s by the solver's tiling, %.0f by the best%s" % (
            fused.name, tuned.solved, "ns" if subject.device else "cycles", tuned.best[0].time,
            "" if tuned.fresh else " (measured before)"))


def _on_its_device(kernel: npu.NpuKernel, dims: Sequence[Sequence[int]], machine: Machine, config) -> Measure:
    """On zeros. Raises KernelError, NpuGone."""
    path = npu_for(config, ASCEND)
    if path is None:
        raise KernelError("it was built for an NPU that can't be used")
    inputs = [np.zeros(d, io.dtype.numpy) for d, io in zip(dims, kernel.fused.inputs)]
    return on_device(path.runtime, kernel, inputs, machine)


def _keep(library: KernelLibrary, sizes: Sequence[int], limits: Tuple[int, int], best: Measured) -> None:
    """The library's plan is this one, unless it is already."""
    plan = library.tiling_pinned(sizes, *limits, [AutofusePin(*p) for p in best.pins])
    if bytes(library.tiling(sizes, *limits).data) != bytes(plan.data):
        library.keep_plan(sizes, *limits, plan, on_disk=True)


def _name(sizes: Sequence[int], limits: Tuple[int, int]) -> str:
    return "%s@%dx%d" % (",".join(map(str, sizes)), *limits)


def _read(path: str) -> Dict[str, Any]:
    """What a record says; {} where there is none. Raises UNREADABLE."""
    try:
        with open(path, encoding="utf-8") as stream:
            return dict(json.load(stream)["measured"])
    except FileNotFoundError:
        return {}


def _measured(library: str) -> Dict[str, Any]:
    """What the record says at this moment; {} for none that can be read."""
    try:
        return _read(library + RECORD_SUFFIX)
    except UNREADABLE:
        return {}


class _Search:
    """measured: in order of measuring, the solver's own plan first."""

    def __init__(self, library: KernelLibrary, sizes: Sequence[int], limits: Tuple[int, int],
                 measure: Measure):
        self.library, self.sizes, self.limits, self.time_of = library, sizes, limits, measure
        self.measured: List[Measured] = []

    @property
    def best(self) -> Measured:
        return min(self.measured, key=lambda m: m.time)

    def measure(self, pins: Tuple[Pin, ...]) -> None:
        """A plan that is not legal, or breaks a rule of the twin, is no candidate; the solver's own must
        be."""
        try:
            plan = self.library.tiling_pinned(self.sizes, *self.limits, [AutofusePin(*p) for p in pins])
            self.measured.append(Measured(self.time_of(plan), pins))
        except KernelError:
            if not pins:
                raise


def _pins(nest: Nest, fused: FusedGraph, nests: Sequence[Nest], solved: Tiling, values, limits,
          config) -> Iterator[Pin]:
    """Candidates of a nest that is active. Nests whose sizes depend on how another one is planned stay with
    the solver."""
    if has_frame(nests) and solved.value("n%d_block_dim" % nest.number) == 0:
        return
    parts = {n.impls[0].parts_symbol for n in nests} - {""}
    if set(kernel_symbols(sorted(parts), nest.impls)):
        return
    solver = Solver([build_model(i) for i in nest.impls], [v.name for v in fused.sizes], settings_of(config),
                    nest.number)
    found: Sequence[Candidate] = candidates(solver, values, *limits, config.pgo_algo, config.pgo_step_max)
    for c in found:
        yield nest.number, c.key, c.tile, c.cores


def _known(entry: Any, how: List[Any]) -> Optional[Tuned]:
    try:
        if entry is None or entry["how"] != how:
            return None
        best = tuple(Measured(float(t), tuple(tuple(map(int, pin)) for pin in pins))
                     for t, pins in entry["best"])
        return Tuned(float(entry["solved"]), best, False) if best else None
    except (KeyError, TypeError, ValueError):
        return None


@contextlib.contextmanager
def _record(library: str) -> Iterator[Dict[str, Any]]:
    """The record of a library, to be read and changed by one process at a time; written where it has
    changed."""
    path = library + RECORD_SUFFIX
    with FileLock(path + ".lock", timeout=PATIENCE):
        measured: Dict[str, Any] = {}
        try:
            measured = _read(path)
        except UNREADABLE as error:
            reason = "the record of measured tilings %s can't be read (%s)" % (path, error)
            diagnostics.warn_once("pgo record " + path, reason, "it is made anew")
        before = dict(measured)  # entries are replaced, not changed
        yield measured
        if measured != before:
            write_json(Path(path), {"measured": measured})
