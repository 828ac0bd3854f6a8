"""What Auto Tiling is told by the user: one immutable value, made of a Config once for each fused op.

The solver in Python (tiling/solve.py) and the one in the generated C++ (tiling/solver_text.py) read the same
value, so they give the same plan. docs/tiling.md says what each setting does.
"""
from typing import NamedTuple, Optional, Tuple

AXES_REORDER, HIGH_PERF = ALGORITHMS = ("AxesReorder", "HighPerf")
#: Most tiles that a search tries for one core at first.
MOST_TILES = 64
#: Most moves of a search from a plan to a cheaper neighbour.
MOST_ROUNDS = 32
#: How much slower a plan on fewer cores may be in the small-shape strategy.
SLOWER = 1.05


class Forced(NamedTuple):
    """What force_schedule_result and force_tiling_case come to for one kernel. ways: (position of the graph,
    its way); cases: (number of the nest, tiling key). Where the named one has no plan for a shape, the best
    is taken."""

    ways: Tuple[Tuple[int, str], ...] = ()
    cases: Tuple[Tuple[int, int], ...] = ()

    def case_of(self, nest: int) -> Optional[int]:
        return dict(self.cases).get(nest)

    def way_of(self, graph: int) -> Optional[str]:
        return dict(self.ways).get(graph)


class TilingSettings(NamedTuple):
    """algorithm: one of ALGORITHMS. accuracy_level: 0 takes the first legal plan, 1 searches from it.
    tradeoff: AxesReorder weighs the use of UB (at least ub_threshold percent of it) against busy cores (at
    least corenum_threshold percent of them) by these two numbers and not by the model. small_shapes: where
    launch and starts of pipes are most of the time, the fewest cores that are about as fast. keeps_plans: a
    plan is made once for a shape and kept on disk. measures: so they are, and plans
    may be pinned, to be measured. profiles: each plan is logged with the time that it took."""

    algorithm: str = AXES_REORDER
    accuracy_level: int = 1
    tradeoff: bool = False
    ub_threshold: int = 20
    corenum_threshold: int = 40
    small_shapes: bool = False
    keeps_plans: bool = False
    measures: bool = False
    profiles: bool = False
    forced: Forced = Forced()

    @property
    def remembers(self) -> bool:
        """Whether the kernel library has a table of plans (tiling/plan_text.py)."""
        return self.keeps_plans or self.measures

    @property
    def searches(self) -> bool:
        """Whether AxesReorder looks for better plans than its first one."""
        return self.accuracy_level > 0 and not self.tradeoff

    @property
    def keeps_lines(self) -> bool:
        """Whether tiles of more than a cache line are whole lines. The model knows no cost of broken ones."""
        return self.algorithm != HIGH_PERF

    @property
    def weighs_ub(self) -> bool:
        """Whether the use of UB decides between variants of about the same cost."""
        return self.algorithm != HIGH_PERF


DEFAULTS = TilingSettings()


def settings_of(config) -> TilingSettings:
    """config: a Config, or None for the defaults."""
    if config is None:
        return DEFAULTS
    return TilingSettings(config.att_algorithm, config.att_accuracy_level,
                          config.att_enable_multicore_ub_tradeoff, config.att_ub_threshold,
                          config.att_corenum_threshold, config.att_enable_small_shape_strategy,
                          config.enable_tiling_cache, config.enable_pgo, config.att_profiling)
