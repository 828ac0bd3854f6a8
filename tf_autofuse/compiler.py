"""The pipeline on one page: each stage is one call from one immutable value to the next.

    GraphView -> Plan (regions) -> scheduled graphs -> KernelSources -> KernelBinaries

Nothing here decides anything; the rooms do, and codegen/targets.py says which of them a target takes.
Regions of equal bodies share their kernel, and what kernel_store.py knows skips the stages after the
plan. A region that a stage cannot take ends as a RegionFailure (stage, reason, remedy) and the others
go on: on exit every region of the plan is compiled, failed or pending, never lost.
"""
import time
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple

from tf_autofuse.background import Deliver, workshop
from tf_autofuse.build.kernels import BuildFailure, BuildResult, BuildSettings, KernelBinary, build_kernels
from tf_autofuse.codegen.ascendc.cann import Toolkit
from tf_autofuse.codegen.sources import KernelSources
from tf_autofuse.codegen.targets import target_named
from tf_autofuse.config import Config
from tf_autofuse.ir.asc_graph import FusedGraph
from tf_autofuse.kernel_store import KernelStore, Recipe, Result, StageFailure
from tf_autofuse.lowering.bodies import Body
from tf_autofuse.lowering.graph_view import GraphView
from tf_autofuse.lowering.plan import Plan, Region, plan
from tf_autofuse.tiling import forced

#: Seconds that a session waits for its kernels before the original ops run meanwhile (AUTOFUSE_BUILD=auto).
PATIENCE = 5.0


@dataclass(frozen=True)
class CompiledRegion:
    """A region with its kernel. What was made of it on the way is made again where somebody asks for it:
    scheduled: what the target's schedule made."""

    region: Region
    binary: KernelBinary
    recipe: Recipe

    @property
    def scheduled(self) -> Any:
        return self.recipe.schedule(self.region.fused)

    @property
    def sources(self) -> KernelSources:
        return self.recipe.generate(self.region.fused, self.scheduled)


@dataclass(frozen=True)
class PendingRegion:
    """A region whose kernel is still being made. key: under which it will be delivered."""

    region: Region
    key: str


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
    pending: Tuple[PendingRegion, ...] = ()


def compile_graph(view: GraphView, config: Config, target_name: str,
                  deliver: Optional[Deliver] = None, toolkit: Optional[Toolkit] = None) -> Compilation:
    """Compiles every region of the graph that can be fused. deliver(key, body, result) gets the kernels
    that are not waited for, on another thread; without it all are waited for. toolkit: compile for the
    device, with it."""
    clock = _StageClock()
    target = target_named(target_name)
    recipe = Recipe(target, target.machine(config), config, toolkit)
    the_plan = clock.run("lowering and fusion", lambda: plan(view, config, target_name))
    kernels, keys = _kernels(the_plan.regions, recipe, clock, deliver)
    compiled: List[CompiledRegion] = []
    failures: List[RegionFailure] = []
    pending: List[PendingRegion] = []
    for region, key in zip(the_plan.regions, keys):
        result = kernels.get(key)
        if result is None:
            pending.append(PendingRegion(region, key))
        elif isinstance(result, StageFailure):
            failures.append(RegionFailure(region, *result))
        else:
            compiled.append(CompiledRegion(region, result, recipe))
    return Compilation(
        the_plan, tuple(compiled), tuple(failures), clock.timings, recipe.machine, tuple(pending))


def _kernels(regions, recipe: Recipe, clock: "_StageClock",
             deliver: Optional[Deliver]) -> Tuple[Dict[str, Result], List[str]]:
    """(what is there by key, each region's key). Keys that are missing are pending."""
    if not regions:
        return {}, []
    store = clock.run("kernels known", lambda: KernelStore(recipe))
    forced.report_name(recipe.config, [region.emitted.name for region in regions])
    by_body: Dict[Body, str] = {}
    keys = []
    for region in regions:
        body = store.body_of(region.emitted)
        if body not in by_body:
            by_body[body] = store.key(body)
        keys.append(by_body[body])
    results: Dict[str, Result] = dict(clock.run("kernels known", lambda: store.find(list(by_body))))
    missing = {key: body for body, key in by_body.items() if key not in results}
    if not missing:
        return results, keys
    patience = _patience(recipe.config, deliver)
    if patience is None:
        results.update(store.make(list(missing.values()), clock.run))
        return results, keys
    made: Dict[str, Result] = {}

    def take(key: str, body: Body, result: Result) -> None:
        made[key] = result
        deliver(key, body, result)

    shop = workshop()
    shop.start(store, missing, take)
    if patience > 0:
        clock.run("waiting for kernels", lambda: shop.wait(list(missing), patience))
    results.update({key: made[key] for key in missing if key in made})
    # What another graph ordered went to that graph's deliver.
    results.update(store.find([body for key, body in missing.items() if key not in results]))
    return results, keys


def _patience(config: Config, deliver: Optional[Deliver]) -> Optional[float]:
    """Seconds; None: for ever, on this thread."""
    if deliver is None or config.strict or config.codegen_compile_debug or config.build in ("sync", "cached"):
        return None
    return 0.0 if config.build == "async" else PATIENCE


def sources_of(fused: FusedGraph, config: Config, target_name: str) -> KernelSources:
    """The sources of one fused graph's kernel. Raises what a stage refuses with."""
    target = target_named(target_name)
    recipe = Recipe(target, target.machine(config), config)
    return recipe.generate(fused, recipe.schedule(fused))


def compile_fused(fused: FusedGraph, config: Config, target_name: str,
                  toolkit: Optional[Toolkit] = None) -> BuildResult:
    """The kernel of one fused graph: for graphs that come without the TF graph they were made from. Never
    raises."""
    try:
        settings = BuildSettings.of(config, toolkit)
        return build_kernels([sources_of(fused, config, target_name)], settings)[0]
    except Exception as error:
        reason = "%s: %s" % (type(error).__name__, error)
        return BuildFailure(reason, "the node runs its fallback function", "", fused.name)


class _StageClock:
    def __init__(self):
        self.timings: Tuple[Tuple[str, float], ...] = ()

    def run(self, name: str, work):
        start = time.perf_counter()
        try:
            return work()
        finally:
            self.timings += ((name, time.perf_counter() - start),)
