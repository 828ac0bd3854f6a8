"""The pipeline on one page: each stage is one call from one immutable value to the next.

    GraphView -> Plan (regions) -> ImplGraphs -> KernelSources -> KernelBinaries

Nothing here decides anything; the rooms do. A region that a stage cannot take ends as a RegionFailure (stage, reason,
remedy) and the others go on: on exit every region of the plan is either compiled or failed, never lost.
"""
import time
from dataclasses import dataclass
from typing import Callable, List, Optional, Tuple

from tf_autofuse.build.kernels import BuildFailure, KernelBinary, build_kernels
from tf_autofuse.codegen.ascendc.generate import KernelSources, generate
from tf_autofuse.config import Config
from tf_autofuse.ir.verify import verify_fused
from tf_autofuse.ir.verify_impl import verify_impl
from tf_autofuse.lowering.graph_view import GraphView
from tf_autofuse.lowering.plan import Plan, Region, plan
from tf_autofuse.machine import Machine, machine_for
from tf_autofuse.schedule.impl_graph import ImplGraph
from tf_autofuse.schedule.schedule import schedule


@dataclass(frozen=True)
class CompiledRegion:
    """A region with everything that was made of it, stage by stage."""

    region: Region
    impls: Tuple[ImplGraph, ...]
    sources: KernelSources
    binary: KernelBinary


@dataclass(frozen=True)
class RegionFailure:
    """A region that stays as TF has it. stage: 'schedule', 'codegen' or 'build'."""

    region: Region
    stage: str
    reason: str
    remedy: str


@dataclass(frozen=True)
class Compilation:
    """What became of one graph. timings: (stage, seconds) in order."""

    plan: Plan
    compiled: Tuple[CompiledRegion, ...]
    failures: Tuple[RegionFailure, ...]
    timings: Tuple[Tuple[str, float], ...]


def compile_graph(view: GraphView, config: Config, target: str,
                  observe: Optional[Callable[[str, object], None]] = None) -> Compilation:
    """Compiles every region of the graph that can be fused. `observe(stage, value)` sees what flows at each arrow."""
    observe = observe or (lambda stage, value: None)
    clock = _StageClock()
    machine = machine_for(config.soc_version)

    the_plan = clock.run("lowering and fusion", lambda: plan(view, config, target))
    observe("plan", the_plan)

    failures: List[RegionFailure] = []
    scheduled = clock.run("schedule", lambda: _each(
        the_plan.regions, "schedule", failures,
        lambda region: (region, _schedule(region, machine, config.strict or config.codegen_compile_debug))))
    observe("schedule", scheduled)

    generated = clock.run("codegen", lambda: _each(
        scheduled, "codegen", failures,
        lambda pair: (pair[0], pair[1], generate(pair[0].fused, pair[1], machine, config))))
    observe("codegen", generated)

    built = clock.run("build", lambda: build_kernels([sources for _, _, sources in generated], config))
    compiled = []
    for (region, impls, sources), result in zip(generated, built):
        if isinstance(result, BuildFailure):
            failures.append(RegionFailure(region, "build", result.reason, result.remedy))
        else:
            compiled.append(CompiledRegion(region, impls, sources, result))
    result = Compilation(the_plan, tuple(compiled), tuple(failures), clock.timings)
    observe("build", result)
    return result


def _schedule(region: Region, machine: Machine, verify: bool) -> Tuple[ImplGraph, ...]:
    """`verify` checks the invariants of what goes in and of what comes out; it takes longer than the scheduling."""
    if verify:
        verify_fused(region.fused)
    impls = tuple(impl for graph in region.fused.graphs for impl in schedule(graph, machine))
    if verify:
        for impl in impls:
            verify_impl(impl.graph)
    return impls


def _each(items, stage: str, failures: List[RegionFailure], work):
    """work(item) for each; an exception becomes the region's failure, since one region must not cost the others."""
    done = []
    for item in items:
        try:
            done.append(work(item))
        except Exception as error:
            region = item if isinstance(item, Region) else item[0]
            failures.append(RegionFailure(
                region, stage, "%s: %s" % (type(error).__name__, error),
                "the region runs as TensorFlow's own ops; set --codegen_compile_debug=true;--debug_dir=DIR "
                "(AUTOFUSE_DFX_FLAGS) to keep its stages, and report them"))
    return tuple(done)


class _StageClock:
    def __init__(self):
        self.timings: Tuple[Tuple[str, float], ...] = ()

    def run(self, name: str, work):
        start = time.perf_counter()
        try:
            return work()
        finally:
            self.timings += ((name, time.perf_counter() - start),)
