"""Plans of one loop nest that are worth measuring (PGO), by the model of tiling/solve.py.

Two ways to choose them:
    core_select   for each of some numbers of cores the model's best plan, of each variant
    pruning       some tiles on each of these numbers of cores, of each variant, without those that the model
                  takes for more than PRUNED times as slow as its best
Numbers go up by steps that double to step_max: 1, 2, 4, ..., then by step_max each. On exit candidates in the
order of their modelled time, each once, at most MOST_CANDIDATES.
"""
from typing import Iterator, List, Mapping, NamedTuple

from tf_autofuse.tiling.settings import MOST_TILES
from tf_autofuse.tiling.solve import Solver

CORE_SELECT, PRUNING = "core_select", "pruning"
#: The model and the simulator agree within 20 %: what is modelled slower than this can hardly be faster.
PRUNED = 1.25
#: Each costs a run on the twin.
MOST_CANDIDATES = 24


class Candidate(NamedTuple):
    """modelled: cycles."""

    key: int
    tile: int
    cores: int
    modelled: float


def candidates(solver: Solver, values: Mapping[str, int], cores: int, ub_bytes: int, way: str,
               step_max: int) -> List[Candidate]:
    """way: CORE_SELECT or PRUNING; step_max: at least 1. Empty for an empty shape."""
    found = {}
    for problem in solver.problems(values, cores, ub_bytes):
        plans = _core_select(problem, cores, step_max) if way == CORE_SELECT else _tiles(
            problem, cores, step_max)
        for plan in plans:
            made = Candidate(plan.key, plan.tile, plan.block_dim, plan.cost)
            known = found.setdefault(made[:3], made)
            found[made[:3]] = min(made, known, key=lambda c: c.modelled)
    ordered = sorted(found.values(), key=lambda c: (c.modelled, c[:3]))
    if way == PRUNING:
        ordered = [c for c in ordered if c.modelled <= PRUNED * ordered[0].modelled]
    return ordered[:MOST_CANDIDATES]


def steps(last: int, step_max: int, unit: int = 1) -> Iterator[int]:
    """1, 2, 4, ... units, from step_max on by step_max units each, and last itself."""
    at, step = unit, unit
    while at < last:
        yield at
        step = min(at, step_max * unit)
        at += step
    yield last


def _core_select(problem, cores: int, step_max: int):
    for d in steps(cores, step_max):
        yield min((problem.candidate(d, p) for p in steps(MOST_TILES, MOST_TILES)), key=lambda c: c.cost)


def _tiles(problem, cores: int, step_max: int):
    for tile in steps(problem.largest, step_max, problem.model.align):
        for d in steps(cores, step_max):
            yield problem.spread(tile, d, 1)
