"""The axes-reorder solver in Python: the twin of the generated C++ (tiling/cpp.py), step by step and number
by number.

For each kernel variant whose conditions hold
    1. the largest tile that fits UB and the DMA's limits, by bisection, rounded down to whole memory blocks;
    2. for a number of cores d = 1, 2, 4, ..., all: the largest tile that still gives each of them one (small
       shapes: smaller tiles on more cores), tiles per block, then the smallest tile that keeps that number of
       tiles per block (balance); the cheapest by the model wins, fewer cores on a tie;
    3. neighbouring numbers of cores, fewer first, while the objective improves.
Then the best variant: one with conditions, where it holds and has a plan, before those without; among equals
by objective, or by use of UB where objectives are close. Variants without double buffers come last.

Every shape has a plan as long as one variant always fits (schedule makes sure); a shape with an empty dim has
block_dim 0.
"""
from dataclasses import dataclass
from typing import Callable, Mapping, NamedTuple, Optional, Sequence, Tuple

from tf_autofuse.machine import Machine, usable_ub
from tf_autofuse.symbolic.size import to_cpp
from tf_autofuse.tiling import cost_table as table
from tf_autofuse.tiling.cost_model import BLOCK_DIM
from tf_autofuse.tiling.formula import compiled, text
from tf_autofuse.tiling.model import TILES_PER_BLOCK, TilingModel


class NoPlan(Exception):
    """No variant has a legal tiling for the shape."""


@dataclass(frozen=True)
class TilingPlan:
    """tile: elements of the cut axis in UB; tiles_per_block: of the largest block; block_dim: cores, 0 for an
    empty shape. containers: (tiling data field, bytes of one buffer); ub_bytes: of all buffers together;
    cost: cycles."""

    key: int
    tile: int
    tiles_per_block: int
    block_dim: int
    containers: Tuple[Tuple[str, int], ...] = ()
    tmp_bytes: int = 0
    ub_bytes: int = 0
    cost: float = 0.0


class _Case(NamedTuple):
    """A model with its formulas compiled: functions of (values..., tile[, tiles, block_dim])."""

    model: TilingModel
    applies: Callable
    axes: Callable
    bytes: Callable
    within_limits: Callable
    cost: Callable


class _Choice(NamedTuple):
    cost: float
    ratio: float
    key: int
    tile: int
    tiles_per_block: int
    block_dim: int
    cores: int


class Solver:
    """Compiled models of one kernel; `plan` may be called for any shape."""

    def __init__(self, models: Sequence[TilingModel], symbols: Sequence[str]):
        """symbols: the names of the graph's symbols, all of them."""
        self.symbols = tuple(symbols)
        self.cases = tuple(_compile(m, self.symbols) for m in models)

    def plan(self, values: Mapping[str, int], cores: int, ub_bytes: int) -> TilingPlan:
        """ub_bytes: what buffers may take, usable_ub(machine, uses_scratch=False). Raises NoPlan."""
        v = tuple(values[s] for s in self.symbols)
        if 0 in self.cases[-1].axes(*v):
            return TilingPlan(0, 0, 0, 0)
        cores = max(cores, 1)
        best: Optional[_Choice] = None
        for conditional, last_resort in ((True, False), (False, False), (True, True), (False, True)):
            for case in self.cases:
                kind = bool(case.model.conditions), case.model.last_resort
                if kind == (conditional, last_resort) and case.applies(*v):
                    best = _better(_solve(case, v, cores, ub_bytes), best)
            if best is not None:
                return self._result(best, v)
        raise NoPlan("no tiling for %s" % ", ".join("%s=%d" % p for p in zip(self.symbols, v)))

    def _result(self, best: _Choice, v) -> TilingPlan:
        case = next(c for c in self.cases if c.model.key == best.key)
        m = case.model
        sizes, tmp = case.bytes(*v, best.tile)
        return TilingPlan(best.key, best.tile, best.tiles_per_block, best.block_dim,
                          tuple((c.field, s) for c, s in zip(m.containers, sizes)), tmp,
                          sum(c.buf_num * s for c, s in zip(m.containers, sizes)) + tmp, best.cost)


def solve(models: Sequence[TilingModel], values: Mapping[str, int], machine: Machine) -> TilingPlan:
    """The plan for one shape. Raises NoPlan."""
    return Solver(models, tuple(values)).plan(values, machine.vector_cores, usable_ub(machine, False))


def _largest_of(sizes) -> str:
    printed = [to_cpp(s) for s in sizes]
    return printed[0] if len(printed) == 1 else "Max(%s)" % ", ".join(printed)


def _tuple(items) -> str:
    return "(%s)" % "".join(i + ", " for i in items)


def _compile(m: TilingModel, symbols: Tuple[str, ...]) -> _Case:
    tile = symbols + (m.tile_symbol,)
    conditions = ["%s == %s" % (to_cpp(g.left), to_cpp(g.right)) for g in m.conditions]
    return _Case(
        m,
        compiled(" and ".join(conditions) or "1 == 1", symbols),
        compiled(_tuple(map(to_cpp, (m.cut, m.outer) + m.inner_sizes)), symbols),
        compiled("(%s, %s)" % (_tuple(_largest_of(c.sizes) for c in m.containers),
                               _largest_of(m.tmp_bytes) if m.tmp_bytes else "0"), tile),
        compiled(" and ".join("%s <= %d" % (to_cpp(l.value), l.bound) for l in m.limits) or "1 == 1", tile),
        compiled(text(m.cost), tile + (TILES_PER_BLOCK, BLOCK_DIM)))


def _ceil_div(a: int, b: int) -> int:
    return (a + b - 1) // b


def _round(m: TilingModel, tile: int, up: bool) -> int:
    """To whole blocks of memory: cache lines where the tile is larger than one."""
    step = m.line if tile >= m.line else m.align
    if up:
        return _ceil_div(tile, step) * step
    return tile - tile % step if tile >= step else tile


def _solve(case: _Case, v, cores: int, ub_bytes: int) -> Optional[_Choice]:
    m = case.model
    budget = ub_bytes - m.reserved
    cut, outer = case.axes(*v)[:2]
    inner = 1
    for size in case.axes(*v)[2:]:  # step by step: the product of large sizes would not fit 64 bits
        if size > budget:
            return None
        inner *= size
        if inner > budget:
            return None

    def ub(tile: int) -> int:
        sizes, tmp = case.bytes(*v, tile)
        return sum(c.buf_num * s for c, s in zip(m.containers, sizes)) + tmp

    def fits(tile: int) -> bool:
        return ub(tile) <= budget and case.within_limits(*v, tile)

    most = min(cut, budget)
    if not fits(1):
        return None
    largest = most
    if not fits(most):
        largest, too_large = 1, most
        while too_large - largest > 1:
            middle = (largest + too_large) // 2
            if fits(middle):
                largest = middle
            else:
                too_large = middle
    if largest < cut:
        largest = _round(m, largest, up=False)

    def candidate(d: int) -> _Choice:
        tiles = min(_ceil_div(d, outer), cut)
        tile = min(largest, _round(m, _ceil_div(cut, tiles), up=True), cut)
        per_block = _ceil_div(outer * _ceil_div(cut, tile), d)
        tiles = min(per_block * d // outer, cut)
        tile = min(tile, _round(m, _ceil_div(cut, tiles), up=True))
        total = outer * _ceil_div(cut, tile)
        per_block = _ceil_div(total, d)
        block_dim = _ceil_div(total, per_block)
        cost = case.cost(*v, tile, per_block, block_dim)
        return _Choice(cost, float(ub(tile)) / float(budget), m.key, tile, per_block, block_dim, d)

    best = candidate(1)
    d = 2
    while d < cores:
        best = _cheaper(candidate(d), best)
        d *= 2
    best = _cheaper(candidate(cores), best)
    for direction in (-1, 1):
        while True:
            step = 1 if best.cores <= 4 else 2 if best.cores < 16 else 4
            d = best.cores + direction * step
            if d < 1 or d > cores:
                break
            tried = candidate(d)
            if not tried.cost < best.cost:
                break
            best = tried
    return best


def _cheaper(new: _Choice, best: _Choice) -> _Choice:
    return new if new.cost < best.cost else best


def _better(new: Optional[_Choice], best: Optional[_Choice]) -> Optional[_Choice]:
    """The better of two variants' choices; `best` on a tie."""
    if new is None or best is None:
        return new if best is None else best
    lower = new if new.cost < best.cost else best
    higher = best if new.cost < best.cost else new
    decisive = lower.cost * table.DECISIVE_FRACTION
    if table.DECISIVE_CYCLES < decisive:
        decisive = table.DECISIVE_CYCLES
    if higher.cost - lower.cost > decisive:
        return lower
    new_good, best_good = new.ratio >= table.GOOD_UB_RATIO, best.ratio >= table.GOOD_UB_RATIO
    if new_good != best_good:
        return new if new_good else best
    if not new_good:
        return new if new.ratio > best.ratio else best
    return lower
