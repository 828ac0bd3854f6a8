// autofuse_pointwise_0_Abs_Add_Relu
// What the host computes before a launch: output dims, symbols, tiling. C++14, no allocation, no state.
#include <cstdint>

#include "tiling_data.h"

struct AutofuseMachine {
  uint32_t core_num;
  uint32_t reserved;
  uint64_t ub_size;
};

#ifndef AUTOFUSE_EXPORT
#define AUTOFUSE_EXPORT extern "C" __attribute__((visibility("default")))
#endif

namespace {

static inline int64_t FloorDiv(int64_t a, int64_t b) {
  if (b == 0) return 0;
  int64_t q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}
static inline int64_t BroadcastSize(int64_t a, int64_t b) { return a == 1 ? b : a; }
static inline int64_t StrideOrZero(int64_t dim, int64_t stride) { return dim == 1 ? 0 : stride; }
static inline int64_t Max(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t Min(int64_t a, int64_t b) { return a < b ? a : b; }

}  // namespace

AUTOFUSE_EXPORT int64_t autofuse_abi_version(void) { return 1; }

// in0: float32 [128]
// in1: float32 [192, 128]
// out0: float32 [192, 128]
AUTOFUSE_EXPORT int32_t autofuse_shape(const int64_t* in_dims, int64_t* out_dims, int64_t* sizes) {
  if (!(in_dims[0] == 128)) {
    return 1;  // dim 0 of input 0 is 128
  }
  if (!(in_dims[1] == 192)) {
    return 2;  // dim 0 of input 1 is 192
  }
  if (!(in_dims[2] == 128)) {
    return 3;  // dim 1 of input 1 is 128
  }
  out_dims[0] = 192;
  out_dims[1] = 128;
  (void)in_dims;
  (void)out_dims;
  (void)sizes;
  return 0;
}

AUTOFUSE_EXPORT const char* autofuse_check_text(int32_t number) {
  switch (number) {
    case 1:
      return "dim 0 of input 0 is 128";
    case 2:
      return "dim 0 of input 1 is 192";
    case 3:
      return "dim 1 of input 1 is 128";
    default:
      return "";
  }
}

namespace {

static inline double D(int64_t size) { return static_cast<double>(size); }
static inline double Larger(double a, double b) { return a < b ? b : a; }
static inline double Choose(double x, double bound, double below, double otherwise) {
  return x < bound ? below : otherwise;
}

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

// Tiles are whole blocks of memory: cache lines where the tile is larger than one.
template <class Case>
int64_t RoundTile(int64_t tile, bool up) {
  const int64_t step = tile >= Case::kLine ? Case::kLine : Case::kAlign;
  if (up) {
    return CeilDiv(tile, step) * step;
  }
  return tile >= step ? tile - tile % step : tile;
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

template <class Case>
Choice Improved(const Case& c, int64_t largest, int64_t cores, int64_t budget, Choice best) {
  for (int64_t round = 0; round < 32; ++round) {
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

// Cores by doubling with one tile each, then tiles for each by doubling, then neighbours.
template <class Case>
Choice Search(const Case& c, int64_t largest, int64_t cores, int64_t budget) {
  Choice best = Candidate(c, largest, cores, 1, budget);
  for (int64_t d = 1; d < cores; d *= 2) {
    best = Cheaper(Candidate(c, largest, d, 1, budget), best);
  }
  int64_t tile = best.tile;
  for (int64_t p = 2; p <= 64; p *= 2) {
    const Choice tried = Candidate(c, largest, best.cores, p, budget);
    if (tried.tile == tile) {
      continue;
    }
    tile = tried.tile;
    best = Cheaper(tried, best);
  }
  return WholeRows(c, largest, budget, Improved(c, largest, cores, budget, best));
}

template <class Case>
Choice Solve(const Case& c, int64_t cores, int64_t ub_bytes) {
  const int64_t budget = ub_bytes - Case::kReserved;
  if (!c.InnerWithin(budget) || !Fits(c, 1, budget)) {
    return Choice{0.0, 0.0, -1, 0, 0, 0, 0, 0};
  }
  return Search(c, LargestTile(c, budget), cores, budget);
}

// The better of two variants' choices; `best` on a tie.
inline Choice Better(const Choice& candidate, const Choice& best) {
  if (candidate.key < 0 || best.key < 0) {
    return best.key < 0 ? candidate : best;
  }
  const bool cheaper = candidate.cost < best.cost;
  const Choice& lower = cheaper ? candidate : best;
  const Choice& higher = cheaper ? best : candidate;
  double decisive = lower.cost * 0.1;
  if (5000.0 < decisive) {
    decisive = 5000.0;
  }
  if (higher.cost - lower.cost > decisive) {
    return lower;
  }
  const bool candidate_good = candidate.ratio >= 0.19;
  const bool best_good = best.ratio >= 0.19;
  if (candidate_good != best_good) {
    return candidate_good ? candidate : best;
  }
  if (!candidate_good) {
    return candidate.ratio > best.ratio ? candidate : best;
  }
  return lower;
}

// key 0: general
struct Case0 {
  static constexpr int32_t kKey = 0;
  static constexpr int64_t kAlign = 1;
  static constexpr int64_t kLine = 1;
  static constexpr int64_t kRows = 8;
  static constexpr int64_t kReserved = 0;
  explicit Case0(const int64_t* sizes) { (void)sizes; }
  bool Applies() const {
    return true;
  }
  bool Empty() const {
    return false;
  }
  int64_t Cut() const {
    return 192;
  }
  int64_t Outer() const {
    return 1;
  }
  bool InnerWithin(int64_t budget) const {
    int64_t inner = 1;
    if (128 > budget || (inner *= 128) > budget) return false;
    return true;
  }
  bool WithinLimits(int64_t z0t_size) const {
    (void)z0t_size;
    return true;
  }
  int64_t UbBytes(int64_t z0t_size) const {
    int64_t bytes = 0;
    bytes += 1 * 512;  // vecin0_bytes
    bytes += 2 * (512 * z0t_size);  // vecin1_bytes
    bytes += 2 * (512 * z0t_size);  // vecout0_bytes
    bytes += 1 * 512;  // veccalc0_bytes
    bytes += 1 * (512 * z0t_size);  // veccalc1_bytes
    bytes += 1 * (512 * z0t_size);  // veccalc2_bytes
    return bytes;
  }
  double Cost(int64_t z0t_size, int64_t block_in, int64_t block_dim) const {
    double mte2_once = ((512.0 / (7.9052 + (7.31 / D(block_dim)))) + 27.01);  // load_0
    double mte2_tile = (Choose(D((512 * z0t_size)), 25000.0, (D((512 * z0t_size)) / (7.9052 + (7.31 / D(block_dim)))), (D((512 * z0t_size)) / (9.9074 + (15.896 / D(block_dim))))) + 27.01);  // load_1
    double vector_once = 21.9408;  // abs_0
    vector_once += ((0.0157 * D((128 * z0t_size))) + (12.9966 * D(FloorDiv((2 * z0t_size + 254), 255))));  // broadcast_0
    double vector_tile = ((0.0206 * D((128 * z0t_size))) + 23.2225);  // add_0
    vector_tile += ((0.0154 * D((128 * z0t_size))) + 20.0189);  // relu_0
    double mte3_tile = ((D((512 * z0t_size)) / (9.96 + (3.79 / D(block_dim)))) + 12.09);  // store_0
    double ready = 0.0, slowest = 0.0;
    ready = Larger(Choose(Larger(512.0, D((512 * z0t_size))), 25000.0, ((15.89 * D(block_dim)) + 882.09), ((32.72 * D(block_dim)) + 1575.03)), ready) + mte2_once;  // mte2
    slowest = Larger(slowest, ready + D(block_in) * mte2_tile + (vector_tile + mte3_tile));
    ready += mte2_tile;
    ready = Larger(37.37, ready) + vector_once;  // vector
    slowest = Larger(slowest, ready + D(block_in) * vector_tile + (mte3_tile));
    ready += vector_tile;
    ready = Larger(497.36, ready);  // mte3
    slowest = Larger(slowest, ready + D(block_in) * mte3_tile);
    return 300.0 + slowest;
  }
  void Fill(const Choice& choice, AutofuseTilingData* t) const {
    const int64_t z0t_size = choice.tile;
    t->z0Tb_size = choice.tiles_per_block;
    t->z0t_size = static_cast<uint32_t>(z0t_size);
    t->vecin0_bytes = static_cast<uint32_t>(512);
    t->vecin1_bytes = static_cast<uint32_t>((512 * z0t_size));
    t->vecout0_bytes = static_cast<uint32_t>((512 * z0t_size));
    t->veccalc0_bytes = static_cast<uint32_t>(512);
    t->veccalc1_bytes = static_cast<uint32_t>((512 * z0t_size));
    t->veccalc2_bytes = static_cast<uint32_t>((512 * z0t_size));
    t->block_dim = static_cast<uint32_t>(choice.block_dim);
    t->tiling_key = 0;
  }
};

}  // namespace

AUTOFUSE_EXPORT int64_t autofuse_tiling_size(void) { return sizeof(AutofuseTilingData); }

AUTOFUSE_EXPORT int32_t autofuse_tiling(
    const int64_t* sizes, const AutofuseMachine* machine, void* tiling, uint32_t* block_dim,
    uint64_t* workspace_bytes) {
  auto* t = static_cast<AutofuseTilingData*>(tiling);
  *t = AutofuseTilingData{};
  *block_dim = 0;
  *workspace_bytes = 0;
  const Case0 case0(sizes);
  if (case0.Empty()) {
    return 0;
  }
  const int64_t cores = Max(machine->core_num, 1);
  const int64_t ub_bytes = static_cast<int64_t>(machine->ub_size);
  Choice best{0.0, 0.0, -1, 0, 0, 0, 0, 0};
  best = Better(Solve(case0, cores, ub_bytes), best);
  switch (best.key) {
    case 0:
      case0.Fill(best, t);
      break;
    default:
      return 1;
  }
  *block_dim = t->block_dim;
  return 0;
}

AUTOFUSE_EXPORT const char* autofuse_tiling_name(int32_t index) {
  switch (index) {
    case 0:
      return "z0Tb_size";
    case 1:
      return "block_dim";
    case 2:
      return "tiling_key";
    case 3:
      return "z0t_size";
    case 4:
      return "vecin0_bytes";
    case 5:
      return "vecin1_bytes";
    case 6:
      return "vecout0_bytes";
    case 7:
      return "veccalc0_bytes";
    case 8:
      return "veccalc1_bytes";
    case 9:
      return "veccalc2_bytes";
    case 10:
      return "unused";
    default:
      return nullptr;
  }
}

AUTOFUSE_EXPORT int64_t autofuse_tiling_value(const void* tiling, int32_t index) {
  const auto* t = static_cast<const AutofuseTilingData*>(tiling);
  switch (index) {
    case 0:
      return t->z0Tb_size;
    case 1:
      return t->block_dim;
    case 2:
      return t->tiling_key;
    case 3:
      return t->z0t_size;
    case 4:
      return t->vecin0_bytes;
    case 5:
      return t->vecin1_bytes;
    case 6:
      return t->vecout0_bytes;
    case 7:
      return t->veccalc0_bytes;
    case 8:
      return t->veccalc1_bytes;
    case 9:
      return t->veccalc2_bytes;
    case 10:
      return t->unused;
    default:
      return 0;
  }
}
