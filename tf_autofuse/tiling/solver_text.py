"""The generic part of the generated tiling function: tiling/solve.py in C++14, statement by statement.

On entry the settings; on exit the text of struct Choice and of the templates Solve<Case> and Better, which
work on the Case structs of tiling/cpp.py. Only what the settings ask for is in it. No allocation, no state.
"""
from tf_autofuse.tiling import cost_table as table
from tf_autofuse.tiling.settings import HIGH_PERF, MOST_ROUNDS, MOST_TILES, SLOWER, TilingSettings

_COMMON = """\
struct Choice {
  double cost;
  double ratio;
  int32_t key;  // -1: no legal tiling
  int64_t tile;
  int64_t tiles_per_block;
  int64_t block_dim;
  int64_t cores;
  int64_t per_core;
};

static inline int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Tiles are whole blocks of memory%(lines)s.
template <class Case>
int64_t RoundTile(int64_t tile, bool up) {
  const int64_t step = %(step)s;
  if (up) {
    return CeilDiv(tile, step) * step;
  }
  return tile >= step ? tile - tile %% step : tile;
}

template <class Case>
bool Fits(const Case& c, int64_t tile, int64_t budget) {
  return c.UbBytes(tile) <= budget && c.WithinLimits(tile);
}

// The largest tile that fits, whole blocks of memory.
template <class Case>
int64_t LargestTile(const Case& c, int64_t budget) {
  const int64_t most = Min(c.Cut(), budget);
  int64_t largest = most;
  if (!Fits(c, most, budget)) {
    largest = 1;
    int64_t too_large = most;
    while (too_large - largest > 1) {
      const int64_t middle = (largest + too_large) / 2;
      if (Fits(c, middle, budget)) {
        largest = middle;
      } else {
        too_large = middle;
      }
    }
  }
  return largest < c.Cut() ? RoundTile<Case>(largest, false) : largest;
}

// The plan of one tile on up to `cores` cores.
template <class Case>
Choice Spread(const Case& c, int64_t tile, int64_t cores, int64_t per_core, int64_t budget) {
  const int64_t total = c.Outer() * CeilDiv(c.Cut(), tile);
  const int64_t per_block = CeilDiv(total, cores);
  const int64_t block_dim = CeilDiv(total, per_block);
  return Choice{c.Cost(tile, per_block, block_dim), D(c.UbBytes(tile)) / D(budget), Case::kKey, tile,
                per_block, block_dim, cores, per_core};
}

// The largest tile with `per_core` tiles for each of `cores`, then the smallest with as few tiles per block.
template <class Case>
Choice Candidate(const Case& c, int64_t largest, int64_t cores, int64_t per_core, int64_t budget) {
  const int64_t cut = c.Cut();
  const int64_t outer = c.Outer();
  int64_t tiles = Min(CeilDiv(cores * per_core, outer), cut);
  int64_t tile = Min(Min(largest, RoundTile<Case>(CeilDiv(cut, tiles), true)), cut);
  const int64_t per_block = CeilDiv(outer * CeilDiv(cut, tile), cores);
  tiles = Min(per_block * cores / outer, cut);
  tile = Min(tile, RoundTile<Case>(CeilDiv(cut, tiles), true));
  return Spread(c, tile, cores, per_core, budget);
}

inline Choice Cheaper(const Choice& candidate, const Choice& best) {
  return candidate.cost < best.cost ? candidate : best;
}
"""

#: AxesReorder that takes its first plan: as many tiles as cores, or the largest tiles.
_FIRST = """\
template <class Case>
Choice Search(const Case& c, int64_t largest, int64_t cores, int64_t budget) {
  return Candidate(c, largest, cores, 1, budget);
}
"""

_TRADE = """\
// The largest tile; where fewer than %(cores)d %% of the cores have one, smaller ones, but none that takes
// less than %(ub)d %% of UB; then the smallest with as few tiles per block on as many cores.
template <class Case>
Choice Search(const Case& c, int64_t largest, int64_t cores, int64_t budget) {
  const int64_t wanted = Max(CeilDiv(cores * %(cores)d, 100), 1);
  int64_t smallest = largest;
  int64_t too_small = 0;
  while (smallest - too_small > 1) {
    const int64_t middle = (smallest + too_small) / 2;
    if (c.UbBytes(middle) * 100 >= budget * %(ub)d) {
      smallest = middle;
    } else {
      too_small = middle;
    }
  }
  const int64_t cut = c.Cut();
  const int64_t outer = c.Outer();
  int64_t tiles = Min(CeilDiv(wanted, outer), cut);
  int64_t tile = Max(Min(Min(largest, RoundTile<Case>(CeilDiv(cut, tiles), true)), cut), smallest);
  const int64_t total = outer * CeilDiv(cut, tile);
  const int64_t per_block = CeilDiv(total, cores);
  const int64_t busy = CeilDiv(total, per_block);
  tiles = Min(per_block * busy / outer, cut);
  tile = Max(Min(tile, RoundTile<Case>(CeilDiv(cut, tiles), true)), smallest);
  return Spread(c, tile, busy, 1, budget);
}
"""

#: The neighbours of a plan: other numbers of cores first, fewer before more, then of tiles for each.
_STEPS = """\
template <class Case>
Choice Improved(const Case& c, int64_t largest, int64_t cores, int64_t budget, Choice best) {
  for (int64_t round = 0; round < %(rounds)d; ++round) {
    const int64_t step = best.cores <= 4 ? 1 : best.cores < 16 ? 2 : 4;
    const int64_t near[][2] = {{best.cores - step, best.per_core}, {best.cores + step, best.per_core},
                               {best.cores - 1, best.per_core}, {best.cores + 1, best.per_core},
                               {best.cores, best.per_core - 1}, {best.cores, best.per_core + 1}};
    const double before = best.cost;
    for (const auto& n : near) {
      if (n[0] >= 1 && n[0] <= cores && n[1] >= 1) {
        best = Cheaper(Candidate(c, largest, n[0], n[1], budget), best);
        if (best.cost < before) {
          break;
        }
      }
    }
    if (!(best.cost < before)) {
      break;
    }
  }
  return best;
}
"""

#: Rows that are stored without gaps begin and end on blocks of memory where there are enough of them.
_WHOLE_ROWS = """\
template <class Case>
Choice WholeRows(const Case& c, int64_t largest, int64_t budget, const Choice& found) {
  Choice best = found;
  if (Case::kAlign == 1) {
    const int64_t below = found.tile / Case::kRows * Case::kRows;
    for (int64_t tile = below; tile <= below + Case::kRows; tile += Case::kRows) {
      if (tile >= 1 && tile <= largest) {
        best = Cheaper(Spread(c, tile, found.cores, found.per_core, budget), best);
      }
    }
  }
  return best;
}
"""

_AXES_REORDER = """\
// Cores by doubling with one tile each, then tiles for each by doubling, then neighbours.
template <class Case>
Choice Search(const Case& c, int64_t largest, int64_t cores, int64_t budget) {
  Choice best = Candidate(c, largest, cores, 1, budget);
  for (int64_t d = 1; d < cores; d *= 2) {
    best = Cheaper(Candidate(c, largest, d, 1, budget), best);
  }
  int64_t tile = best.tile;
  for (int64_t p = 2; p <= %(tiles)d; p *= 2) {
    const Choice tried = Candidate(c, largest, best.cores, p, budget);
    if (tried.tile == tile) {
      continue;
    }
    tile = tried.tile;
    best = Cheaper(tried, best);
  }
  return WholeRows(c, largest, budget, Improved(c, largest, cores, budget, best));
}
"""

_HIGH_PERF = """\
// For tiles for each core by doubling: cores by doubling, then neighbours of the best of these.
template <class Case>
Choice Search(const Case& c, int64_t largest, int64_t cores, int64_t budget) {
  Choice best = Candidate(c, largest, cores, 1, budget);
  int64_t tile = 0;
  for (int64_t p = 1; p <= %(tiles)d; p *= 2) {
    Choice start = Candidate(c, largest, cores, p, budget);
    if (start.tile == tile) {
      continue;
    }
    tile = start.tile;
    for (int64_t d = 1; d < cores; d *= 2) {
      start = Cheaper(Candidate(c, largest, d, p, budget), start);
    }
    best = Cheaper(WholeRows(c, largest, budget, Improved(c, largest, cores, budget, start)), best);
  }
  return best;
}
"""

#: Where launch and starts of pipes are at least half of the time, what each further core costs beside the
#: model (it fetches the same code) counts for more than a small gain.
_FEWEST = """\
template <class Case>
Choice Fewest(const Case& c, int64_t largest, int64_t budget, const Choice& best) {
  if (c.Head(best.tile, best.block_dim) * 2.0 < best.cost) {
    return best;
  }
  for (int64_t d = 1; d < best.block_dim; ++d) {
    const Choice tried = Candidate(c, largest, d, best.per_core, budget);
    if (tried.cost <= best.cost * %(slower)s) {
      return tried;
    }
  }
  return best;
}
"""

_SOLVE = """\
template <class Case>
Choice Solve(const Case& c, int64_t cores, int64_t ub_bytes) {
  const int64_t budget = ub_bytes - Case::kReserved;
  if (!c.InnerWithin(budget) || !Fits(c, 1, budget)) {
    return Choice{0.0, 0.0, -1, 0, 0, 0, 0, 0};
  }
%(result)s
}
"""

_SEARCHED = "  return Search(c, LargestTile(c, budget), cores, budget);"
_FEWEST_OF = """\
  const int64_t largest = LargestTile(c, budget);
  return Fewest(c, largest, budget, Search(c, largest, cores, budget));"""

_CHEAPEST = """\
// The cheaper of two variants' choices; `best` on a tie.
inline Choice Better(const Choice& candidate, const Choice& best) {
  return candidate.key >= 0 && (best.key < 0 || candidate.cost < best.cost) ? candidate : best;
}
"""

_BETTER = """\
// The better of two variants' choices; `best` on a tie.
inline Choice Better(const Choice& candidate, const Choice& best) {
  if (candidate.key < 0 || best.key < 0) {
    return best.key < 0 ? candidate : best;
  }
  const bool cheaper = candidate.cost < best.cost;
  const Choice& lower = cheaper ? candidate : best;
  const Choice& higher = cheaper ? best : candidate;
  double decisive = lower.cost * %(fraction)s;
  if (%(cycles)s < decisive) {
    decisive = %(cycles)s;
  }
  if (higher.cost - lower.cost > decisive) {
    return lower;
  }
  const bool candidate_good = candidate.ratio >= %(ratio)s;
  const bool best_good = best.ratio >= %(ratio)s;
  if (candidate_good != best_good) {
    return candidate_good ? candidate : best;
  }
  if (!candidate_good) {
    return candidate.ratio > best.ratio ? candidate : best;
  }
  return lower;
}
"""


_BY_LINE = {"lines": ": cache lines where the tile is larger than one",
            "step": "tile >= Case::kLine ? Case::kLine : Case::kAlign"}
_BY_BLOCK = {"lines": "", "step": "Case::kAlign"}


def solver_text(settings: TilingSettings) -> str:
    """C++ definitions that the Case structs are solved with."""
    numbers = {"tiles": MOST_TILES, "rounds": MOST_ROUNDS, "slower": repr(SLOWER),
               "cores": settings.corenum_threshold, "ub": settings.ub_threshold}
    if settings.algorithm == HIGH_PERF:
        search = [_STEPS % numbers, _WHOLE_ROWS, _HIGH_PERF % numbers]
    elif settings.tradeoff:
        search = [_TRADE % numbers]
    elif settings.searches:
        search = [_STEPS % numbers, _WHOLE_ROWS, _AXES_REORDER % numbers]
    else:
        search = [_FIRST]
    if settings.small_shapes:
        search.append(_FEWEST % numbers)
    solve = _SOLVE % {"result": _FEWEST_OF if settings.small_shapes else _SEARCHED}
    better = _BETTER % {"fraction": repr(table.DECISIVE_FRACTION), "cycles": repr(table.DECISIVE_CYCLES),
                        "ratio": repr(table.GOOD_UB_RATIO)}
    return "\n".join([_COMMON % (_BY_LINE if settings.keeps_lines else _BY_BLOCK)] + search + [
        solve, better if settings.weighs_ub else _CHEAPEST])
