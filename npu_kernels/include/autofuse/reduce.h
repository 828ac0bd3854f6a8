// Why: reductions inside UB. Rows are `stride` elements apart, a multiple of 32 B; what lies behind their
// `cols` elements has no influence.
//   ReduceLast<Fold>(dst, src, tmp, rows, cols, stride)    dst[i] = the fold of row i; dst is dense
//   ReduceFirst<Fold>(dst, src, tmp, rows, cols, stride)   dst[j] = the fold of column j
// Of nothing (cols, rows 0) the fold is its identity. Partial results of several tiles or cores are put
// together with Combine (fold.h) or, as rows, with ReduceFirst. tmp: kReduceTmpBytes. Types: Sum Prod Max Min
// on float, half, int32, int16; Max Min on int8, uint8; Any All on bool.
// The order of accumulation depends on rows, cols and stride only: a row is dealt out to lanes, each lane
// adds its elements from left to right, the lanes are added as a tree. Sums of half round after every step:
// cast first.
#pragma once
#include "fold.h"

namespace autofuse {

namespace detail {

template <Fold kOp, typename T>
__aicore__ inline void ReduceLastBytes(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                                       const LocalTensor<uint8_t>& tmp, uint32_t rows, uint32_t cols,
                                       uint32_t stride) {
  Scratch s(tmp);
  const LocalTensor<half> table = s.Take<half>(kFoldRows * 128), tile = s.Take<half>(kFoldRows * 128),
                          result = s.Take<half>(kFoldRows);
  for (uint32_t r = 0; r < rows; r += kFoldRows) {
    const uint32_t n = Least(rows - r, kFoldRows);
    if (r) Sync();
    AscendC::Duplicate(table, static_cast<half>(static_cast<float>(ByteIdentity<kOp, T>())),
                       static_cast<int32_t>(n * 128));
    for (uint32_t k = 0; k < cols; k += 128) {
      const uint32_t lanes = Least(cols - k, 128);
      if (k) Sync();
      WidenTile(tile, src[r * stride + k], n, lanes, stride);
      Sync();
      FoldRepeat<kOp>(table, table, tile, lanes, n, AscendC::BinaryRepeatParams(1, 1, 1, 8, 8, 8));
    }
    Sync();
    FoldTable<kOp>(result, table, tile, n);
    Sync();
    AscendC::Cast(dst[r], result, RoundMode::CAST_RINT, n);
  }
}

template <Fold kOp, typename T>
__aicore__ inline void ReduceFirstBytes(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                                        const LocalTensor<uint8_t>& tmp, uint32_t rows, uint32_t cols,
                                        uint32_t stride) {
  Scratch s(tmp);
  const LocalTensor<half> tile = s.Take<half>(kFoldRows * 128), acc = s.Take<half>(128);
  // The accumulator is the second operand here, which a repeat may read back; 8-bit data has no NaN.
  const AscendC::BinaryRepeatParams p(1, 1, 1, 0, 8, 0);
  for (uint32_t k = 0; k < cols; k += 128) {
    const uint32_t lanes = Least(cols - k, 128);
    if (k) Sync();
    AscendC::Duplicate(acc, static_cast<half>(static_cast<float>(ByteIdentity<kOp, T>())), 128);
    for (uint32_t r = 0; r < rows; r += kFoldRows) {
      const uint32_t n = Least(rows - r, kFoldRows);
      if (r) Sync();
      WidenTile(tile, src[r * stride + k], n, lanes, stride);
      Sync();
      FoldRepeat<kOp>(acc, tile, acc, lanes, n, p);
    }
    Sync();
    AscendC::Cast(dst[k], acc, RoundMode::CAST_RINT, lanes);
  }
}
}  // namespace detail

template <Fold kOp, typename T>
__aicore__ inline void ReduceLast(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                                  const LocalTensor<uint8_t>& tmp, uint32_t rows, uint32_t cols,
                                  uint32_t stride) {
  if (rows == 0) return;
  if (cols == 0) {
    FillIdentity<kOp>(dst, rows);
    return;
  }
  if constexpr (sizeof(T) == 1) {
    detail::ReduceLastBytes<kOp>(dst, src, tmp, rows, cols, stride);
  } else {
    constexpr uint32_t lanes = detail::kFoldRowBytes / sizeof(T);
    const uint32_t blocks = stride * static_cast<uint32_t>(sizeof(T)) / 32;
    if constexpr (kOp == Fold::kSum && (kSame<T, float> || kSame<T, half>)) {
      if (cols <= lanes && (blocks <= 65535 || rows == 1)) {  // a row is one repeat: the instruction itself
        for (uint32_t r = 0; r < rows; r += 240) {
          AscendC::WholeReduceSum(dst[r], src[r * stride], static_cast<int32_t>(cols),
                                  static_cast<int32_t>(Least(rows - r, 240)), 1, 1,
                                  static_cast<int32_t>(rows == 1 ? 8 : blocks));
        }
        Sync();
        AscendC::Adds(dst, dst, static_cast<T>(0.0f), static_cast<int32_t>(rows));
        return;
      }
    }
    Scratch s(tmp);
    const LocalTensor<T> table = s.Take<T>(detail::kFoldRows * lanes), acc = s.Take<T>(8192 / sizeof(T)),
                         turned = s.Take<T>(512 / sizeof(T));
    const uint32_t wide = detail::LongRowLanes<T>(cols), columns = (cols + lanes - 1) / lanes;
    uint32_t row_steps = 1 + (cols + wide - 1) / wide;  // instructions that fold one row by itself
    for (uint32_t w = wide; w > lanes; w /= 2) ++row_steps;
    for (uint32_t r = 0; r < rows; r += detail::kFoldRows) {
      const uint32_t n = Least(rows - r, detail::kFoldRows);
      if (r) Sync();
      if (blocks <= 255 && columns <= n * row_steps) {  // a repeat a row, an instruction a column of lanes
        const AscendC::BinaryRepeatParams p(1, 1, 1, 8, 8, static_cast<uint8_t>(blocks));
        detail::FillWords<kOp>(table, n * lanes);
        for (uint32_t k = 0; k < cols; k += lanes) {
          Sync();
          detail::FoldRepeat<kOp>(table, table, src[r * stride + k], Least(cols - k, lanes), n, p);
        }
      } else {
        for (uint32_t i = 0; i < n; ++i) {
          if (i) Sync();
          detail::FoldRow<kOp>(table[i * lanes], src[(r + i) * stride], acc, cols, wide);
        }
      }
      Sync();
      detail::FoldTable<kOp>(dst[r], table, turned, n);
    }
  }
}

template <Fold kOp, typename T>
__aicore__ inline void ReduceFirst(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                                   const LocalTensor<uint8_t>& tmp, uint32_t rows, uint32_t cols,
                                   uint32_t stride) {
  if (cols == 0) return;
  if constexpr (sizeof(T) == 1) {
    detail::ReduceFirstBytes<kOp>(dst, src, tmp, rows, cols, stride);
  } else {
    const uint32_t row_bytes = RoundUp(cols * static_cast<uint32_t>(sizeof(T)), 32);
    uint32_t group = 1;  // rows that one instruction adds: those of a dense tile that fit 8 KiB
    if (stride * sizeof(T) == row_bytes)
      while (group * 2 <= rows && group * 2 * row_bytes <= 8192) group *= 2;
    if (group == 1) {
      detail::FillWords<kOp>(dst, cols);
      for (uint32_t r = 0; r < rows; ++r) {
        Sync();
        detail::FoldCount<kOp>(dst, dst, src[r * stride], cols);
      }
      return;
    }
    Scratch s(tmp);
    const LocalTensor<T> acc = s.Take<T>(group * stride);
    detail::FillWords<kOp>(acc, group * stride);
    for (uint32_t r = 0; r < rows; r += group) {
      Sync();
      detail::FoldCount<kOp>(acc, acc, src[r * stride], (Least(rows - r, group) - 1) * stride + cols);
    }
    for (uint32_t g = group / 2; g > 0; g /= 2) {
      Sync();
      detail::FoldCount<kOp>(g == 1 ? dst : acc, acc, acc[g * stride], (g - 1) * stride + cols);
    }
  }
}

}  // namespace autofuse
