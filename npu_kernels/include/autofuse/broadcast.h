// Why: broadcasts inside UB and the change between dense rows and rows padded to 32 B. T of width 1, 2, 4 or
// 8; bits are moved, so every pattern is exact. "Padded" rows are PaddedRow<T>(cols) elements apart: cols
// rounded up to 32 B.
//   BroadcastRows(dst, src, rows, cols)            (1,cols) -> (rows,cols), padded rows; no scratch
//   BroadcastCols(dst, src, tmp, rows, cols)       (rows,1) dense -> (rows,cols), padded rows; src readable
//   up to
//                                                  round_up(rows*sizeof(T), 32)
//   RemovePad(dst, src, tmp, rows, cols)           padded rows -> dense
//   AddPad(dst, src, tmp, rows, cols)              dense -> padded rows; the pad elements are undefined
// Scratch (XxxTmpBytes<T>(rows, cols)): BroadcastCols 16/32-bit: 32*min(round_up(rows,8), 64); 8-bit:
// 2*round_up(rows, 16) + R*(64*... see the function; the others as their functions say. No operand overlaps
// another.
#pragma once
#include "common.h"

namespace autofuse {

template <typename T>
__aicore__ constexpr inline uint32_t PaddedRow(uint32_t cols) {
  return RoundUp(cols * static_cast<uint32_t>(sizeof(T)), 32) / static_cast<uint32_t>(sizeof(T));
}

// The filled rows are doubled: log2(rows) copies.
template <typename T>
__aicore__ inline void BroadcastRows(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint32_t rows,
                                     uint32_t cols) {
  const uint32_t row = PaddedRow<T>(cols);
  if (rows == 0 || cols == 0) return;
  AscendC::DataCopy(dst, src, row);
  for (uint32_t done = 1; done < rows;) {
    Sync();
    const uint32_t n = Least(done, rows - done);
    AscendC::DataCopy(dst[done * row], dst, n * row);
    done += n;
  }
}

namespace detail {
constexpr uint32_t kBrcbRows = 64;  // rows whose scalar blocks are kept at once: 2 KiB

// (rows,1) -> (rows, row) for 16/32-bit T; `row` is a whole number of blocks. One instruction covers 256 B of
// every row of up to 255 rows, or one row of up to 255 * 256 B, whichever needs fewer.
template <typename T>
__aicore__ inline void SpreadScalars(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                                     const LocalTensor<T>& blocks, uint32_t rows, uint32_t row) {
  constexpr uint32_t lanes = 256 / sizeof(T), per_block = 32 / sizeof(T);
  for (uint32_t r = 0; r < rows; r += kBrcbRows) {
    const uint32_t n = Least(rows - r, kBrcbRows);
    if (r) Sync();
    AscendC::Brcb(blocks, src[r], static_cast<uint8_t>((n + 7) / 8), AscendC::BrcbRepeatParams(1, 8));
    Sync();
    const uint32_t columns = (row + lanes - 1) / lanes, row_blocks = row / per_block;
    if (columns <= n && row_blocks <= 4095) {
      for (uint32_t k = 0; k < row; k += lanes)
        AscendC::Copy(dst[r * row + k], blocks, uint64_t(Least(row - k, lanes)), static_cast<uint8_t>(n),
                      AscendC::CopyRepeatParams(1, 0, static_cast<uint16_t>(row_blocks), 1));
    } else {
      for (uint32_t i = 0; i < n; ++i) {
        const uint32_t whole = row / lanes, tail = row % lanes;
        for (uint32_t k = 0; k < whole; k += 255)
          AscendC::Copy(dst[(r + i) * row + k * lanes], blocks[i * per_block], uint64_t(lanes),
                        static_cast<uint8_t>(Least(whole - k, 255)), AscendC::CopyRepeatParams(1, 0, 8, 0));
        if (tail)
          AscendC::Copy(dst[(r + i) * row + whole * lanes], blocks[i * per_block], uint64_t(tail), uint8_t(1),
                        AscendC::CopyRepeatParams(1, 0, 8, 0));
      }
    }
  }
}

// Rows of 8-bit data handled at once where they pass through half: as many as fit `bytes`, at least one.
__aicore__ constexpr inline uint32_t HalfRows(uint32_t rows, uint32_t cols, uint32_t bytes) {
  return Least(rows, bytes / (2 * RoundUp(cols, 32)) ? bytes / (2 * RoundUp(cols, 32)) : 1);
}
}  // namespace detail

// 16/32-bit: 32 B for each of min(rows rounded up to 8, 64) rows.
// 8-bit: that for R rows, plus 2*R*round_up(cols,32), plus 2*round_up(rows,16); R = min(rows, max(1, 8192/(2*
// round_up(cols,32)))). 64-bit: 8*round_up(cols,4).
template <typename T>
__aicore__ constexpr inline uint32_t BroadcastColsTmpBytes(uint32_t rows, uint32_t cols) {
  if (sizeof(T) == 8) return 8 * RoundUp(cols, 4);
  const uint32_t at_once = sizeof(T) == 1 ? RoundUp(detail::HalfRows(rows, cols, kScratchBudget), 16) : rows;
  const uint32_t blocks = 32 * Least(RoundUp(at_once, 8), detail::kBrcbRows);
  if (sizeof(T) != 1) return blocks;
  return blocks + 2 * at_once * RoundUp(cols, 32) + 2 * RoundUp(rows, 16);
}
template <typename T>
__aicore__ inline void BroadcastCols(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                                     const LocalTensor<uint8_t>& tmp, uint32_t rows, uint32_t cols) {
  if (rows == 0 || cols == 0) return;
  const uint32_t row = PaddedRow<T>(cols);
  Scratch s(tmp);
  if constexpr (sizeof(T) == 2 || sizeof(T) == 4) {
    detail::SpreadScalars(dst, src, s.Take<T>(Least(RoundUp(rows, 8), detail::kBrcbRows) * (32 / sizeof(T))),
                          rows, row);
  } else if constexpr (sizeof(T) == 1) {
    // Scalars widen to half, spread, and narrow again; a padded 8-bit row is 32 halves wide at least.
    const uint32_t at_once = RoundUp(detail::HalfRows(rows, cols, kScratchBudget), 16);
    const LocalTensor<half> blocks = s.Take<half>(16 * Least(RoundUp(at_once, 8), detail::kBrcbRows));
    const LocalTensor<half> spread = s.Take<half>(at_once * row), scalars = s.Take<half>(RoundUp(rows, 16));
    const LocalTensor<uint8_t> from = src.template ReinterpretCast<uint8_t>();
    AscendC::Cast(scalars, from, RoundMode::CAST_NONE, rows);
    for (uint32_t r = 0; r < rows; r += at_once) {
      const uint32_t n = Least(rows - r, at_once);
      Sync();
      detail::SpreadScalars(spread, scalars[r], blocks, n, row);
      Sync();
      AscendC::Cast(dst[r * row].template ReinterpretCast<uint8_t>(), spread, RoundMode::CAST_RINT, n * row);
    }
  } else {
    // Pairs of 32-bit words: offsets 0, 4, 0, 4, ... gather one element over a row.
    const LocalTensor<int32_t> offsets = s.Take<int32_t>(2 * row);
    uint64_t odd[2] = {0xAAAAAAAAAAAAAAAAull, 0};
    AscendC::Duplicate(offsets, int32_t(0), static_cast<int32_t>(2 * row));
    Sync();
    const uint32_t words = 2 * row, repeats = words / 64, tail = words % 64;
    for (uint32_t r = 0; r < repeats; r += 255)
      AscendC::Duplicate(offsets[r * 64], int32_t(4), odd, static_cast<uint8_t>(Least(repeats - r, 255)), 1,
                         8);
    if (tail) {
      uint64_t part[2] = {odd[0] & ((1ull << tail) - 1), 0};
      AscendC::Duplicate(offsets[repeats * 64], int32_t(4), part, 1, 1, 8);
    }
    Sync();
    const LocalTensor<uint32_t> to = dst.template ReinterpretCast<uint32_t>(),
                                from = src.template ReinterpretCast<uint32_t>();
    for (uint32_t r = 0; r < rows; ++r)
      AscendC::Gather(to[r * words], from, offsets.ReinterpretCast<uint32_t>(), r * 8, words);
  }
}

// 16/32/64-bit: 0. 8-bit: 4*R*round_up(cols,32), R = min(rows, max(1, 4096/(2*round_up(cols,32)))), rounded
// up so that R*cols is a multiple of 32 where R < rows.
template <typename T>
__aicore__ constexpr inline uint32_t RemovePadTmpBytes(uint32_t rows, uint32_t cols) {
  if (sizeof(T) != 1) return 0;
  return 4 * RoundUp(detail::HalfRows(rows, cols, kScratchBudget / 2), 32) * RoundUp(cols, 32);
}
template <typename T>
__aicore__ inline void RemovePad(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                                 const LocalTensor<uint8_t>& tmp, uint32_t rows, uint32_t cols) {
  if (rows == 0 || cols == 0) return;
  if constexpr (sizeof(T) == 8) {
    RemovePad(dst.template ReinterpretCast<uint32_t>(), src.template ReinterpretCast<uint32_t>(), tmp, rows,
              2 * cols);
  } else if constexpr (sizeof(T) == 1) {
    const uint32_t at_once = RoundUp(detail::HalfRows(rows, cols, kScratchBudget / 2), 32),
                   row = RoundUp(cols, 32);
    Scratch s(tmp);
    const LocalTensor<half> padded = s.Take<half>(at_once * row), dense = s.Take<half>(at_once * row);
    for (uint32_t r = 0; r < rows; r += at_once) {
      const uint32_t n = Least(rows - r, at_once);
      uint64_t kept = 0;
      if (r) Sync();
      AscendC::Cast(padded, src[r * row].template ReinterpretCast<uint8_t>(), RoundMode::CAST_NONE,
                    (n - 1) * row + cols);
      Sync();
      AscendC::GatherMask(
          dense, padded, uint8_t(7), true, cols,
          AscendC::GatherMaskParams(1, static_cast<uint16_t>(n), static_cast<uint16_t>(row / 16), 0), kept);
      Sync();
      AscendC::Cast(dst[r * cols].template ReinterpretCast<uint8_t>(), dense, RoundMode::CAST_RINT, n * cols);
    }
  } else {
    // Each repeat takes `cols` elements of a row and appends them to dst.
    uint64_t kept = 0;
    AscendC::GatherMask(
        dst, src, uint8_t(7), true, cols,
        AscendC::GatherMaskParams(1, static_cast<uint16_t>(rows),
                                  static_cast<uint16_t>(PaddedRow<T>(cols) * sizeof(T) / 32), 0),
        kept);
  }
}

// Gather offsets of one row: 4*cols bytes rounded up to 32 (64-bit: of 2*cols). 8-bit: that and
// 2*round_up(rows*cols, 16) + 2*rows*round_up(cols,32): bounded by the caller's tile, not chunked.
template <typename T>
__aicore__ constexpr inline uint32_t AddPadTmpBytes(uint32_t rows, uint32_t cols) {
  const uint32_t offsets = RoundUp(4 * cols * (sizeof(T) == 8 ? 2 : 1), 32);
  return sizeof(T) == 1 ? offsets + 2 * RoundUp(rows * cols, 16) + 2 * rows * RoundUp(cols, 32) : offsets;
}
template <typename T>
__aicore__ inline void AddPad(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                              const LocalTensor<uint8_t>& tmp, uint32_t rows, uint32_t cols) {
  if (rows == 0 || cols == 0) return;
  if constexpr (sizeof(T) == 8) {
    AddPad(dst.template ReinterpretCast<uint32_t>(), src.template ReinterpretCast<uint32_t>(), tmp, rows,
           2 * cols);
  } else {
    constexpr uint32_t width = sizeof(T) == 1 ? 2 : sizeof(T);
    Scratch s(tmp);
    const LocalTensor<int32_t> offsets = s.Take<int32_t>(cols);
    AscendC::CreateVecIndex(offsets, int32_t(0), cols);
    Sync();
    AscendC::Muls(offsets, offsets, static_cast<int32_t>(width), static_cast<int32_t>(cols));
    if constexpr (sizeof(T) == 1) {
      const uint32_t row = RoundUp(cols, 32);
      const LocalTensor<half> dense = s.Take<half>(RoundUp(rows * cols, 16)),
                              padded = s.Take<half>(rows * row);
      AscendC::Cast(dense, src.template ReinterpretCast<uint8_t>(), RoundMode::CAST_NONE, rows * cols);
      Sync();
      for (uint32_t r = 0; r < rows; ++r)
        AscendC::Gather(padded[r * row], dense, offsets.ReinterpretCast<uint32_t>(), r * cols * width, cols);
      Sync();
      AscendC::Cast(dst.template ReinterpretCast<uint8_t>(), padded, RoundMode::CAST_RINT,
                    (rows - 1) * row + cols);
    } else {
      Sync();
      for (uint32_t r = 0; r < rows; ++r)
        AscendC::Gather(dst[r * PaddedRow<T>(cols)], src, offsets.ReinterpretCast<uint32_t>(),
                        r * cols * width, cols);
    }
  }
}

}  // namespace autofuse
