"""The pipeline on one page: each stage is one call from one immutable value to the next.

    GraphView -> Plan (regions) -> scheduled graphs -> KernelSources -> KernelBinaries

Nothing here decides anything; the rooms do, and codegen/targets.py says which of them a target takes. A
region that a stage cannot take ends as a RegionFailure (stage, reason, remedy) and the others go on: on exit
every region of the plan is either compiled or failed, never lost.
"""
import time
from dataclasses import dataclass
from typing import Any, Callable, List, Optional, Tuple

from tf_autofuse.build.kernels import BuildFailure, BuildResult, KernelBinary, build_kernels
from tf_autofuse.codegen.sources import KernelSources
from tf_autofuse.codegen.targets import Target, target_named
from tf_autofuse.config import Config
from tf_autofuse.ir.asc_graph import FusedGraph
from tf_autofuse.ir.verify import verify_fused
from tf_autofuse.lowering.graph_view import GraphView
from tf_autofuse.lowering.plan import Plan, Region, plan


@dataclass(frozen=True)
class CompiledRegion:
    """A region with everything that was made of it, stage by stage. scheduled: what the target's schedule
    made."""

    region: Region
    scheduled: Any
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
    """What became of one graph. machine: what its kernels are planned for. timings: (stage, seconds) in
    order."""

    plan: Plan
    compiled: Tuple[CompiledRegion, ...]
    failures: Tuple[RegionFailure, ...]
    timings: Tuple[Tuple[str, float], ...]
    machine: Any = None


def compile_graph(view: GraphView, config: Config, target_name: str,
                  observe: Optional[Callable[[str, object], None]] = None) -> Compilation:
    """Compiles every region of the graph that can be fused. `observe(stage, value)` sees what flows at each
    arrow."""
    observe = observe or (lambda stage, value: None)
    clock = _StageClock()
    target = target_named(target_name)
    machine = target.machine(config)

    the_plan = clock.run("lowering and fusion", lambda: plan(view, config, target_name))
    observe("plan", the_plan)

    failures: List[RegionFailure] = []
    scheduled = clock.run("schedule", lambda: _each(
        the_plan.regions, "schedule", failures,
        lambda region: (region, _schedule(region.fused, config, target, machine))))
    observe("schedule", scheduled)

    generated = clock.run("codegen", lambda: _each(
        scheduled, "codegen", failures,
        lambda pair: (pair[0], pair[1], target.generate(pair[0].fused, pair[1], machine, config))))
    observe("codegen", generated)

    built = clock.run("build", lambda: build_kernels([sources for _, _, sources in generated], config))
    compiled = []
    for (region, impls, sources), result in zip(generated, built):
        if isinstance(result, BuildFailure):
            failures.append(RegionFailure(region, "build", result.reason, result.remedy))
        else:
            compiled.append(CompiledRegion(region, impls, sources, result))
    result = Compilation(the_plan, tuple(compiled), tuple(failures), clock.timings, machine)
    observe("build", result)
    return result


def sources_of(fused: FusedGraph, config: Config, target_name: str) -> KernelSources:
    """The sources of one fused graph's kernel. Raises what a stage refuses with."""
    target = target_named(target_name)
    machine = target.machine(config)
    return target.generate(fused, _schedule(fused, config, target, machine), machine, config)


def compile_fused(fused: FusedGraph, config: Config, target_name: str) -> BuildResult:
    """The kernel of one fused graph: for graphs that come without the TF graph they were made from. Never
    raises."""
    try:
        return build_kernels([sources_of(fused, config, target_name)], config)[0]
    except Exception as error:
        return BuildFailure("%s: %s" % (type(error).__name__, error), "the node runs its fallback function",
                            "",
                            fused.name)


def _schedule(fused: FusedGraph, config: Config, target: Target, machine) -> Any:
    """In strict and debug mode the invariants of what goes in and of what comes out are checked, which takes
    longer than the scheduling."""
    verify = config.strict or config.codegen_compile_debug
    if verify:
        verify_fused(fused)
    scheduled = target.schedule(fused, machine)
    if verify:
        target.verify(scheduled)
    return scheduled


def _each(items, stage: str, failures: List[RegionFailure], work):
    """work(item) for each; an exception becomes the region's failure, since one region must not cost the
    others."""
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
