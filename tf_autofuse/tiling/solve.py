"""The solvers in Python: the twin of the generated C++ (tiling/solver_text.py), step by step and number by
number.

For each kernel variant whose conditions hold
    1. the largest tile that fits UB and the DMA's limits, by bisection, rounded down to whole memory blocks;
    2. candidates: for d cores and p tiles for each of them the largest tile that gives all of them so many
       (small shapes: smaller tiles on more cores), tiles per block, then the smallest tile that keeps that
       number of tiles per block (balance);
    3. a search among candidates by the model's cost: AxesReorder goes through d by doubling, then p, then
       neighbours of the best; HighPerf through both and the neighbours of each, with finer tiles. Accuracy
       level 0 takes d = all, p = 1; the trade-off between cores and UB takes d = all and bounds the tile.
Then the best variant: one with conditions, where it holds and has a plan, before those without; among equals
by objective, or by use of UB where objectives are close (AxesReorder). Variants without double buffers come
last. docs/tiling.md has it for users.

Every shape has a plan as long as one variant always fits (schedule makes sure); a shape with an empty dim has
block_dim 0.
"""
from dataclasses import dataclass
from typing import Callable, Iterator, Mapping, NamedTuple, Optional, Sequence, Tuple

from tf_autofuse.machine import Machine
from tf_autofuse.symbolic.size import to_cpp
from tf_autofuse.tiling import cost_table as table
from tf_autofuse.tiling.cost_model import BLOCK_DIM
from tf_autofuse.tiling.formula import compiled, text
from tf_autofuse.tiling.model import TILES_PER_BLOCK, TilingModel
from tf_autofuse.tiling.settings import (DEFAULTS, HIGH_PERF, MOST_ROUNDS, MOST_TILES, SLOWER,
                                         TilingSettings)


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
    head: Callable


class _Choice(NamedTuple):
    cost: float
    ratio: float
    key: int
    tile: int
    tiles_per_block: int
    block_dim: int
    cores: int
    per_core: int


class Solver:
    """Compiled models of one kernel; `plan` may be called for any shape."""

    def __init__(self, models: Sequence[TilingModel], symbols: Sequence[str],
                 settings: TilingSettings = DEFAULTS, nest: int = 0):
        """symbols: the names of the graph's symbols, all of them. nest: its number, for what is forced."""
        self.forced = settings.forced.case_of(nest)
        self.symbols = tuple(symbols)
        self.settings = settings
        self.cases = tuple(_compile(m, self.symbols) for m in models)

    def plan(self, values: Mapping[str, int], cores: int, ub_bytes: int) -> TilingPlan:
        """ub_bytes: what buffers may take, usable_ub(machine, uses_scratch=False). Raises NoPlan."""
        v = tuple(values[s] for s in self.symbols)
        if 0 in self.cases[-1].axes(*v):
            return TilingPlan(0, 0, 0, 0)
        cores = max(cores, 1)
        best: Optional[_Choice] = None
        for case in self.cases:
            if case.model.key == self.forced and case.applies(*v):
                best = Problem(case, v, cores, ub_bytes, self.settings).solve()
        if best is not None:
            return self._result(best, v)
        for conditional, last_resort in ((True, False), (False, False), (True, True), (False, True)):
            for case in self.cases:
                kind = bool(case.model.conditions), case.model.last_resort
                if kind == (conditional, last_resort) and case.applies(*v):
                    new = Problem(case, v, cores, ub_bytes, self.settings).solve()
                    best = _better(new, best, self.settings)
            if best is not None:
                return self._result(best, v)
        raise NoPlan("no tiling for %s" % ", ".join("%s=%d" % p for p in zip(self.symbols, v)))

    def problems(self, values: Mapping[str, int], cores: int, ub_bytes: int) -> Tuple["Problem", ...]:
        """The variants that may be taken, each ready to price plans; none for an empty shape."""
        v = tuple(values[s] for s in self.symbols)
        if 0 in self.cases[-1].axes(*v):
            return ()
        made = [Problem(case, v, max(cores, 1), ub_bytes, self.settings) for case in self.cases
                if not case.model.last_resort and case.applies(*v)]
        return tuple(p for p in made if p.is_legal())

    def _result(self, best: _Choice, v) -> TilingPlan:
        case = next(c for c in self.cases if c.model.key == best.key)
        m = case.model
        sizes, tmp = case.bytes(*v, best.tile)
        return TilingPlan(best.key, best.tile, best.tiles_per_block, best.block_dim,
                          tuple((c.field, s) for c, s in zip(m.containers, sizes)), tmp,
                          sum(c.buf_num * s for c, s in zip(m.containers, sizes)) + tmp, best.cost)


def solve(models: Sequence[TilingModel], values: Mapping[str, int], machine: Machine,
          settings: TilingSettings = DEFAULTS) -> TilingPlan:
    """The plan for one shape. Raises NoPlan."""
    return Solver(models, tuple(values), settings).plan(values, *machine.launch_limits)


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
        compiled(text(m.cost), tile + (TILES_PER_BLOCK, BLOCK_DIM)),
        compiled(text(m.head), tile + (BLOCK_DIM,)))


def _ceil_div(a: int, b: int) -> int:
    return (a + b - 1) // b


class Problem:
    """One variant at one shape, on a machine."""

    def __init__(self, case: _Case, v, cores: int, ub_bytes: int, settings: TilingSettings):
        self.case, self.v, self.cores, self.settings = case, v, cores, settings
        self.model = case.model
        self.budget = ub_bytes - self.model.reserved
        axes = case.axes(*v)
        self.cut, self.outer, self.inner = axes[0], axes[1], axes[2:]
        self.largest = 0

    def is_legal(self) -> bool:
        """Whether any tile is; from here on `largest` is the largest that is."""
        if not self._inner_within() or not self._fits(1):
            return False
        self.largest = self._largest_tile()
        return True

    def solve(self) -> Optional[_Choice]:
        if not self.is_legal():
            return None
        best = self._search()
        return self._fewest(best) if self.settings.small_shapes else best

    def _search(self) -> _Choice:
        if self.settings.algorithm == HIGH_PERF:
            return self._high_perf()
        if self.settings.tradeoff:
            return self._trade()
        return self._axes_reorder() if self.settings.searches else self.candidate(self.cores, 1)

    def _inner_within(self) -> bool:
        inner = 1
        for size in self.inner:  # step by step: the product of large sizes would not fit 64 bits
            if size > self.budget:
                return False
            inner *= size
            if inner > self.budget:
                return False
        return True

    def ub(self, tile: int) -> int:
        sizes, tmp = self.case.bytes(*self.v, tile)
        return sum(c.buf_num * s for c, s in zip(self.model.containers, sizes)) + tmp

    def _fits(self, tile: int) -> bool:
        return self.ub(tile) <= self.budget and self.case.within_limits(*self.v, tile)

    def _round(self, tile: int, up: bool) -> int:
        """To whole blocks of memory; by `settings.keeps_lines` to cache lines where the tile is larger than
        one."""
        m = self.model
        step = m.line if self.settings.keeps_lines and tile >= m.line else m.align
        if up:
            return _ceil_div(tile, step) * step
        return tile - tile % step if tile >= step else tile

    def _largest_tile(self) -> int:
        most = min(self.cut, self.budget)
        largest = most
        if not self._fits(most):
            largest, too_large = 1, most
            while too_large - largest > 1:
                middle = (largest + too_large) // 2
                if self._fits(middle):
                    largest = middle
                else:
                    too_large = middle
        return self._round(largest, up=False) if largest < self.cut else largest

    def spread(self, tile: int, cores: int, per_core: int) -> _Choice:
        """The plan of one tile on up to `cores` cores."""
        total = self.outer * _ceil_div(self.cut, tile)
        per_block = _ceil_div(total, cores)
        block_dim = _ceil_div(total, per_block)
        return _Choice(self.case.cost(*self.v, tile, per_block, block_dim),
                       float(self.ub(tile)) / float(self.budget), self.model.key, tile, per_block, block_dim,
                       cores, per_core)

    def candidate(self, cores: int, per_core: int) -> _Choice:
        cut, outer = self.cut, self.outer
        tiles = min(_ceil_div(cores * per_core, outer), cut)
        tile = min(self.largest, self._round(_ceil_div(cut, tiles), up=True), cut)
        per_block = _ceil_div(outer * _ceil_div(cut, tile), cores)
        tiles = min(per_block * cores // outer, cut)
        tile = min(tile, self._round(_ceil_div(cut, tiles), up=True))
        return self.spread(tile, cores, per_core)

    def _trade(self) -> _Choice:
        wanted = max(_ceil_div(self.cores * self.settings.corenum_threshold, 100), 1)
        smallest, too_small = self.largest, 0
        while smallest - too_small > 1:
            middle = (smallest + too_small) // 2
            if self.ub(middle) * 100 >= self.budget * self.settings.ub_threshold:
                smallest = middle
            else:
                too_small = middle
        tiles = min(_ceil_div(wanted, self.outer), self.cut)
        tile = max(min(self.largest, self._round(_ceil_div(self.cut, tiles), up=True), self.cut), smallest)
        total = self.outer * _ceil_div(self.cut, tile)
        per_block = _ceil_div(total, self.cores)
        busy = _ceil_div(total, per_block)
        tiles = min(per_block * busy // self.outer, self.cut)
        tile = max(min(tile, self._round(_ceil_div(self.cut, tiles), up=True)), smallest)
        return self.spread(tile, busy, 1)

    def _improved(self, best: _Choice) -> _Choice:
        for _ in range(MOST_ROUNDS):
            step = 1 if best.cores <= 4 else 2 if best.cores < 16 else 4
            before = best.cost
            for d, p in ((best.cores - step, best.per_core), (best.cores + step, best.per_core),
                         (best.cores - 1, best.per_core), (best.cores + 1, best.per_core),
                         (best.cores, best.per_core - 1), (best.cores, best.per_core + 1)):
                if 1 <= d <= self.cores and p >= 1:
                    best = _cheaper(self.candidate(d, p), best)
                    if best.cost < before:
                        break
            if not best.cost < before:
                break
        return best

    def _whole_rows(self, found: _Choice) -> _Choice:
        best = found
        if self.model.align == 1:
            below = found.tile // self.model.rows * self.model.rows
            for tile in (below, below + self.model.rows):
                if 1 <= tile <= self.largest:
                    best = _cheaper(self.spread(tile, found.cores, found.per_core), best)
        return best

    def _axes_reorder(self) -> _Choice:
        best = self.candidate(self.cores, 1)
        for d in _doubling(1, self.cores - 1):
            best = _cheaper(self.candidate(d, 1), best)
        tile = best.tile
        for p in _doubling(2, MOST_TILES):
            tried = self.candidate(best.cores, p)
            if tried.tile == tile:
                continue
            tile = tried.tile
            best = _cheaper(tried, best)
        return self._whole_rows(self._improved(best))

    def _high_perf(self) -> _Choice:
        best = self.candidate(self.cores, 1)
        tile = 0
        for p in _doubling(1, MOST_TILES):
            start = self.candidate(self.cores, p)
            if start.tile == tile:
                continue
            tile = start.tile
            for d in _doubling(1, self.cores - 1):
                start = _cheaper(self.candidate(d, p), start)
            best = _cheaper(self._whole_rows(self._improved(start)), best)
        return best

    def _fewest(self, best: _Choice) -> _Choice:
        if self.case.head(*self.v, best.tile, best.block_dim) * 2.0 < best.cost:
            return best
        for d in range(1, best.block_dim):
            tried = self.candidate(d, best.per_core)
            if tried.cost <= best.cost * SLOWER:
                return tried
        return best


def _doubling(first: int, last: int) -> Iterator[int]:
    while first <= last:
        yield first
        first *= 2


def _cheaper(new: _Choice, best: _Choice) -> _Choice:
    return new if new.cost < best.cost else best


def _better(new: Optional[_Choice], best: Optional[_Choice],
            settings: TilingSettings = DEFAULTS) -> Optional[_Choice]:
    """The better of two variants' choices; `best` on a tie."""
    if new is None or best is None:
        return new if best is None else best
    if not settings.weighs_ub:
        return _cheaper(new, best)
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
