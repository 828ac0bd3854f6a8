// Why: moves a tile of up to four dims between GM and UB with DataCopyPad, whatever the strides: it merges
// dims where both sides are dense, and splits where a field of the instruction has a limit.
//   LoadTile(dst UB, src GM, Tile)   StoreTile(dst GM, src UB, Tile)
// A Tile has sizes (outermost first; unused dims 1; a 0 moves nothing), GM and UB strides, in elements.
// - UB strides of the outer three dims are multiples of 32 B, or the tile is dense in UB in that dim; the
// innermost UB
//   stride is 1.
// - GM strides: innermost 1, or 0 for a load (broadcast: the DMA's filler repeats the first element over a 32
// B block,
//   one DMA a block column; for more than a few blocks load (A,1) and use BroadcastCols); outer ones any
//   value, 0 included for a load. A store has no 0 stride.
// - A row whose bytes are not a multiple of 32 is completed in UB with its first element (defined content).
// No scratch; issues MTE2 (MTE3) only: put it between AllocTensor and EnQue (DeQue and FreeTensor).
// Destinations of the DMAs of one call are disjoint, so no barrier is needed inside.
#pragma once
#include "common.h"

namespace autofuse {

struct Tile {
  uint32_t size[4];
  int64_t gm[4];   // strides in GM, elements
  uint32_t ub[4];  // strides in UB, elements
};

namespace detail {

constexpr uint32_t kMaxRows = 4095;
constexpr uint32_t kMaxRowBytes = 2097120;  // the largest multiple of 32 B that blockLen can hold

// The tile as three outer dims, rows and a row. Unit dims are dropped, dims that are dense on both sides
// merged. A tile whose last real dim is strided in GM gets rows of one element.
struct Rows {
  uint32_t size[5];
  int64_t gm[5];
  uint32_t ub[5];
};
__aicore__ inline Rows MergeDims(const Tile& t) {
  Rows r = {{1, 1, 1, 1, 1}, {0, 0, 0, 0, 1}, {0, 0, 0, 0, 1}};
  int last = 4;       // the dim being filled, from the inside
  bool open = false;  // whether r[last] holds something already
  for (int i = 3; i >= 0; --i) {
    if (t.size[i] == 1) continue;
    if (open && t.ub[i] == r.size[last] * r.ub[last] &&
        t.gm[i] == static_cast<int64_t>(r.size[last]) * r.gm[last]) {
      r.size[last] *= t.size[i];
      continue;
    }
    if (open || t.ub[i] != 1 || (t.gm[i] != 1 && t.gm[i] != 0)) --last;
    r.size[last] = t.size[i];
    r.gm[last] = t.gm[i];
    r.ub[last] = t.ub[i];
    open = true;
  }
  return r;
}

// Rows of one outer position. Strides may be anything; falls back to one DMA a row where the gap of the
// instruction can't express them.
template <typename T>
__aicore__ inline void LoadRows(const LocalTensor<T>& dst, const AscendC::GlobalTensor<T>& src, uint32_t rows,
                                uint32_t bytes, int64_t gm_stride, uint32_t ub_stride) {
  const AscendC::DataCopyPadExtParams<T> pad(false, 0, 0, T(0));
  const int64_t gap = gm_stride * static_cast<int64_t>(sizeof(T)) - bytes;
  const int64_t ub_gap = static_cast<int64_t>(ub_stride) * sizeof(T) - RoundUp(bytes, 32);
  const bool together = gap >= 0 && gap <= 0xffffffffll && ub_gap >= 0 && ub_gap % 32 == 0;
  const uint32_t step = together ? kMaxRows : 1;
  for (uint32_t r = 0; r < rows; r += step) {
    const uint16_t n = static_cast<uint16_t>(Least(rows - r, step));
    AscendC::DataCopyPad(dst[r * ub_stride], src[static_cast<uint64_t>(r * gm_stride)],
                         AscendC::DataCopyExtParams(n, bytes, together ? static_cast<uint32_t>(gap) : 0,
                                                    together ? static_cast<uint32_t>(ub_gap / 32) : 0, 0),
                         pad);
  }
}
template <typename T>
__aicore__ inline void StoreRows(const AscendC::GlobalTensor<T>& dst, const LocalTensor<T>& src,
                                 uint32_t rows, uint32_t bytes, int64_t gm_stride, uint32_t ub_stride) {
  const int64_t gap = gm_stride * static_cast<int64_t>(sizeof(T)) - bytes;
  const int64_t ub_gap = static_cast<int64_t>(ub_stride) * sizeof(T) - RoundUp(bytes, 32);
  const bool together = gap >= 0 && gap <= 0xffffffffll && ub_gap >= 0 && ub_gap % 32 == 0;
  const uint32_t step = together ? kMaxRows : 1;
  for (uint32_t r = 0; r < rows; r += step) {
    const uint16_t n = static_cast<uint16_t>(Least(rows - r, step));
    AscendC::DataCopyPad(
        dst[static_cast<uint64_t>(r * gm_stride)], src[r * ub_stride],
        AscendC::DataCopyExtParams(n, bytes, together ? static_cast<uint32_t>(ub_gap / 32) : 0,
                                   together ? static_cast<uint32_t>(gap) : 0, 0));
  }
}

}  // namespace detail

template <typename T>
__aicore__ inline void LoadTile(const LocalTensor<T>& dst, const AscendC::GlobalTensor<T>& src,
                                const Tile& tile) {
  const detail::Rows t = detail::MergeDims(tile);
  constexpr uint32_t width = sizeof(T), per_block = 32 / width, most = detail::kMaxRowBytes / width;
  for (uint32_t h = 0; h < t.size[0]; ++h) {
    for (uint32_t i = 0; i < t.size[1]; ++i) {
      for (uint32_t j = 0; j < t.size[2]; ++j) {
        const AscendC::GlobalTensor<T> from =
            src[static_cast<uint64_t>(h * t.gm[0] + i * t.gm[1] + j * t.gm[2])];
        const uint32_t at = h * t.ub[0] + i * t.ub[1] + j * t.ub[2];
        if (t.gm[4] == 0) {
          for (uint32_t k = 0; k < t.size[4]; k += per_block)
            detail::LoadRows(dst[at + k], from, t.size[3], width, t.gm[3], t.ub[3]);
          continue;
        }
        for (uint32_t k = 0; k < t.size[4]; k += most)
          detail::LoadRows(dst[at + k], from[k], t.size[3], Least(t.size[4] - k, most) * width, t.gm[3],
                           t.ub[3]);
      }
    }
  }
}

template <typename T>
__aicore__ inline void StoreTile(const AscendC::GlobalTensor<T>& dst, const LocalTensor<T>& src,
                                 const Tile& tile) {
  const detail::Rows t = detail::MergeDims(tile);
  constexpr uint32_t width = sizeof(T), most = detail::kMaxRowBytes / width;
  for (uint32_t h = 0; h < t.size[0]; ++h) {
    for (uint32_t i = 0; i < t.size[1]; ++i) {
      for (uint32_t j = 0; j < t.size[2]; ++j) {
        const AscendC::GlobalTensor<T> to =
            dst[static_cast<uint64_t>(h * t.gm[0] + i * t.gm[1] + j * t.gm[2])];
        const uint32_t at = h * t.ub[0] + i * t.ub[1] + j * t.ub[2];
        for (uint32_t k = 0; k < t.size[4]; k += most)
          detail::StoreRows(to[k], src[at + k], t.size[3], Least(t.size[4] - k, most) * width, t.gm[3],
                            t.ub[3]);
      }
    }
  }
}

}  // namespace autofuse
