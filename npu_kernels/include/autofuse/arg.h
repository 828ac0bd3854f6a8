// Why: where the greatest (kMax) or least (kMin) element stands, as TensorFlow's CPU kernels say: the first
// of equal ones; NaN never wins; a row in which nothing is above (below) the type's lowest (highest) finite
// value gives its first position, as the search starts with that value at position 0. T: float or int32.
//   ArgLast<Fold>(index, value, src, tmp, rows, cols, stride, first)   per row; dense results
//   ArgFirst<Fold>(index, value, src, tmp, rows, cols, stride, first)  per column
//   ArgIdentity<Fold>(index, value, count), ArgCombine<Fold>(index, value, part_index, part_value, tmp,
//   count)
//   ArgExtremeLast<Fold, I>, ArgExtremeFirst<Fold, I> (dst, src, tmp, rows, cols, stride)   the index alone,
//   of
//       type I = int32 or int64; tmp: kArgExtremeTmpBytes
// index: int32, `first` + the position; value: that element, not beyond the finite values. Tiles of a longer
// row are put together with ArgCombine in ascending order of `first`. tmp: kArgTmpBytes. Uses the fixed
// scratch of Select. Two passes: the extreme first, then the least position where an element equals it.
#pragma once
#include "broadcast.h"
#include "reduce.h"

namespace autofuse {

constexpr uint32_t kArgTmpBytes = 8192 + 8192 + 512 + 1024 + 512 + 3 * 256;
constexpr uint32_t kArgExtremeChunk = 256;  // results at a time
constexpr uint32_t kArgExtremeTmpBytes = kArgTmpBytes + 2 * 4 * kArgExtremeChunk;

namespace detail {

constexpr uint32_t kArgLanes = 64;
constexpr int32_t kNoPosition = 0x7f7fffff;  // a large integer whose bits are a finite float

template <Fold kOp>
__aicore__ constexpr inline float FiniteEnd() {
  return kOp == Fold::kMax ? -3.4028234663852886e38f : 3.4028234663852886e38f;
}
template <Fold kOp, typename T>
__aicore__ inline void ClampToFinite(const LocalTensor<T>& value, uint32_t count) {
  if constexpr (kSame<T, float>) {
    Sync();
    if constexpr (kOp == Fold::kMax)
      AscendC::Maxs(value, value, FiniteEnd<kOp>(), static_cast<int32_t>(count));
    else
      AscendC::Mins(value, value, FiniteEnd<kOp>(), static_cast<int32_t>(count));
  }
}

// Selects move bits: integers go through them as float.
__aicore__ inline LocalTensor<float> AsFloat(const LocalTensor<int32_t>& t) {
  return t.ReinterpretCast<float>();
}

// Up to 64 results: where the extreme is the finite end, the position is `first`.
template <Fold kOp>
__aicore__ inline void FirstWhereNothing(const LocalTensor<int32_t>& index, const LocalTensor<float>& value,
                                         const LocalTensor<uint8_t>& bits, const LocalTensor<int32_t>& firsts,
                                         uint32_t count) {
  AscendC::CompareScalar(bits, value, FiniteEnd<kOp>(), CMPMODE::EQ, uint64_t(count), uint8_t(1),
                         AscendC::UnaryRepeatParams(1, 1, 8, 8));
  Sync();
  AscendC::Select(AsFloat(index), bits, AsFloat(firsts), AsFloat(index), SELMODE::VSEL_TENSOR_TENSOR_MODE,
                  uint64_t(count), uint8_t(1), AscendC::BinaryRepeatParams(1, 1, 1, 8, 8, 8));
}

// acc[i] = min(acc[i], the positions of one repeat where src equals the extreme); `found` and `bits` are
// scratch. at: 64 positions, the same for every repeat (position_stride 0) or one row of them a repeat (8).
template <typename T>
__aicore__ inline void TakePositions(const LocalTensor<int32_t>& found, const LocalTensor<uint8_t>& bits,
                                     const LocalTensor<T>& src, const LocalTensor<T>& extreme,
                                     const LocalTensor<int32_t>& at, uint32_t lanes, uint32_t repeat,
                                     const AscendC::BinaryRepeatParams& compare, uint32_t position_stride) {
  const uint8_t n = static_cast<uint8_t>(repeat);
  AscendC::Compare(bits, src, extreme, CMPMODE::EQ, uint64_t(lanes), n, compare);
  Sync();
  AscendC::Select(AsFloat(found), bits, AsFloat(at), __builtin_bit_cast(float, kNoPosition),
                  SELMODE::VSEL_TENSOR_SCALAR_MODE, uint64_t(lanes), n,
                  AscendC::BinaryRepeatParams(1, 1, 1, 8, static_cast<uint8_t>(position_stride), 8));
}
}  // namespace detail

template <Fold kOp, typename T>
__aicore__ inline void ArgIdentity(const LocalTensor<int32_t>& index, const LocalTensor<T>& value,
                                   uint32_t count) {
  AscendC::Duplicate(index, int32_t(0), static_cast<int32_t>(count));
  if constexpr (kSame<T, float>)
    AscendC::Duplicate(value, detail::FiniteEnd<kOp>(), static_cast<int32_t>(count));
  else
    FillIdentity<kOp>(value, count);
}

template <Fold kOp, typename T>
__aicore__ inline void ArgCombine(const LocalTensor<int32_t>& index, const LocalTensor<T>& value,
                                  const LocalTensor<int32_t>& part_index, const LocalTensor<T>& part_value,
                                  const LocalTensor<uint8_t>& tmp, uint32_t count) {
  constexpr uint32_t chunk = 1024;
  Scratch s(tmp);
  const LocalTensor<T> best = s.Take<T>(chunk);
  const LocalTensor<uint8_t> bits = s.Take<uint8_t>(chunk / 8);
  const AscendC::BinaryRepeatParams p(1, 1, 1, 8, 8, 8);
  for (uint32_t k = 0; k < count;) {
    // Whole repeats together, then the rest: a compare writes the bits of whole repeats.
    const uint32_t left = count - k;
    const uint32_t lanes = Least(left, detail::kArgLanes);
    const uint32_t repeats = left / detail::kArgLanes;
    const uint8_t n = static_cast<uint8_t>(repeats ? Least(repeats, 16) : 1);
    if (k) Sync();
    detail::FoldRepeat<kOp>(best, value[k], part_value[k], lanes, n, p);
    Sync();
    AscendC::Compare(bits, best, value[k], CMPMODE::EQ, uint64_t(lanes), n, p);
    Sync();
    const LocalTensor<float> kept = detail::AsFloat(index[k]);
    AscendC::Select(kept, bits, kept, detail::AsFloat(part_index[k]),
                    SELMODE::VSEL_TENSOR_TENSOR_MODE, uint64_t(lanes), n, p);
    detail::FoldRepeat<kOp>(value[k], value[k], part_value[k], lanes, n, p);
    k += lanes * n;
  }
}

template <Fold kOp, typename T>
__aicore__ inline void ArgLast(const LocalTensor<int32_t>& index, const LocalTensor<T>& value,
                               const LocalTensor<T>& src, const LocalTensor<uint8_t>& tmp, uint32_t rows,
                               uint32_t cols, uint32_t stride, int32_t first) {
  using detail::kArgLanes;
  if (rows == 0) return;
  ReduceLast<kOp>(value, src, tmp, rows, cols, stride);
  detail::ClampToFinite<kOp>(value, rows);
  Sync();
  Scratch s(tmp);
  const LocalTensor<int32_t> table = s.Take<int32_t>(detail::kFoldRows * kArgLanes),
                             found = s.Take<int32_t>(detail::kFoldRows * kArgLanes),
                             turned = s.Take<int32_t>(128);
  const LocalTensor<T> extremes = s.Take<T>(detail::kFoldRows * 8);  // a block of equal values a row
  const LocalTensor<uint8_t> bits = s.Take<uint8_t>(256);
  const LocalTensor<int32_t> at = s.Take<int32_t>(kArgLanes), firsts = s.Take<int32_t>(kArgLanes);
  const AscendC::BinaryRepeatParams take(1, 1, 1, 8, 8, 8);
  const uint32_t blocks = stride / 8;
  const uint8_t row_stride = static_cast<uint8_t>(blocks <= 255 ? blocks : 8);
  AscendC::Duplicate(firsts, first, static_cast<int32_t>(kArgLanes));
  for (uint32_t r = 0; r < rows; r += detail::kFoldRows) {
    const uint32_t n = Least(rows - r, detail::kFoldRows), step = blocks <= 255 ? n : 1;
    if (r) Sync();
    AscendC::Duplicate(table, detail::kNoPosition, static_cast<int32_t>(n * kArgLanes));
    AscendC::CreateVecIndex(at, first, kArgLanes);
    AscendC::Brcb(extremes, value[r], static_cast<uint8_t>((n + 7) / 8), AscendC::BrcbRepeatParams(1, 8));
    for (uint32_t k = 0; k < cols; k += kArgLanes) {
      const uint32_t lanes = Least(cols - k, kArgLanes);
      for (uint32_t i = 0; i < n; i += step) {  // all rows at once, where a repeat can express the stride
        Sync();
        detail::TakePositions(found, bits, src[(r + i) * stride + k], extremes[i * 8], at, lanes, step,
                              AscendC::BinaryRepeatParams(1, 1, 0, 8, row_stride, 1), 0);
        Sync();
        detail::FoldRepeat<Fold::kMin>(table[i * kArgLanes], table[i * kArgLanes], found, lanes, step, take);
      }
      AscendC::Adds(at, at, static_cast<int32_t>(kArgLanes), static_cast<int32_t>(kArgLanes));
    }
    Sync();
    detail::FoldTable<Fold::kMin>(index[r], table, turned, n);
    if constexpr (kSame<T, float>) {
      Sync();
      detail::FirstWhereNothing<kOp>(index[r], value[r], bits, firsts, n);
    }
  }
}

template <Fold kOp, typename T>
__aicore__ inline void ArgFirst(const LocalTensor<int32_t>& index, const LocalTensor<T>& value,
                                const LocalTensor<T>& src, const LocalTensor<uint8_t>& tmp, uint32_t rows,
                                uint32_t cols, uint32_t stride, int32_t first) {
  using detail::kArgLanes;
  if (cols == 0) return;
  ReduceFirst<kOp>(value, src, tmp, rows, cols, stride);
  detail::ClampToFinite<kOp>(value, cols);
  Sync();
  Scratch s(tmp);
  const LocalTensor<int32_t> at = s.Take<int32_t>(detail::kFoldRows * kArgLanes),
                             found = s.Take<int32_t>(detail::kFoldRows * kArgLanes);
  const LocalTensor<uint8_t> bits = s.Take<uint8_t>(256);
  const LocalTensor<int32_t> firsts = s.Take<int32_t>(kArgLanes);
  const uint32_t blocks = stride / 8, step = blocks <= 255 ? detail::kFoldRows : 1;
  const uint8_t row_stride = static_cast<uint8_t>(blocks <= 255 ? blocks : 8);
  AscendC::Duplicate(firsts, first, static_cast<int32_t>(kArgLanes));
  for (uint32_t k = 0; k < cols; k += kArgLanes) {
    const uint32_t lanes = Least(cols - k, kArgLanes);
    if (k) Sync();
    AscendC::Duplicate(at, first, static_cast<int32_t>(kArgLanes));
    for (uint32_t done = 1; done < step; done *= 2) {  // row i holds first + i
      Sync();
      AscendC::Adds(at[done * kArgLanes], at, static_cast<int32_t>(done),
                    static_cast<int32_t>(done * kArgLanes));
    }
    AscendC::Duplicate(index[k], detail::kNoPosition, static_cast<int32_t>(lanes));
    for (uint32_t r = 0; r < rows; r += step) {
      const uint32_t n = Least(rows - r, step);
      Sync();
      detail::TakePositions(found, bits, src[r * stride + k], value[k], at, lanes, n,
                            AscendC::BinaryRepeatParams(1, 1, 1, 8, row_stride, 0), 8);
      Sync();
      detail::FoldRepeat<Fold::kMin>(index[k], found, index[k], lanes, n,
                                     AscendC::BinaryRepeatParams(1, 1, 1, 0, 8, 0));
      AscendC::Adds(at, at, static_cast<int32_t>(step), static_cast<int32_t>(step * kArgLanes));
    }
    if constexpr (kSame<T, float>) {
      Sync();
      detail::FirstWhereNothing<kOp>(index[k], value[k], bits, firsts, lanes);
    }
  }
}

namespace detail {
template <typename I>
__aicore__ inline void StoreIndex(const LocalTensor<I>& dst, const LocalTensor<int32_t>& index,
                                  uint32_t count) {
  Sync();
  if constexpr (kSame<I, int32_t>)
    AscendC::Adds(dst, index, int32_t(0), static_cast<int32_t>(count));
  else
    AscendC::Cast(dst, index, RoundMode::CAST_NONE, count);
}
}  // namespace detail

template <Fold kOp, typename I, typename T>
__aicore__ inline void ArgExtremeLast(const LocalTensor<I>& dst, const LocalTensor<T>& src,
                                      const LocalTensor<uint8_t>& tmp, uint32_t rows, uint32_t cols,
                                      uint32_t stride) {
  Scratch s(tmp);
  const LocalTensor<uint8_t> rest = s.Take<uint8_t>(kArgTmpBytes);
  const LocalTensor<int32_t> index = s.Take<int32_t>(kArgExtremeChunk);
  const LocalTensor<T> value = s.Take<T>(kArgExtremeChunk);
  for (uint32_t r = 0; r < rows; r += kArgExtremeChunk) {
    const uint32_t n = Least(rows - r, kArgExtremeChunk);
    if (r) Sync();
    ArgLast<kOp>(index, value, src[r * stride], rest, n, cols, stride, 0);
    detail::StoreIndex(dst[r], index, n);
  }
}
template <Fold kOp, typename I, typename T>
__aicore__ inline void ArgExtremeFirst(const LocalTensor<I>& dst, const LocalTensor<T>& src,
                                       const LocalTensor<uint8_t>& tmp, uint32_t rows, uint32_t cols,
                                       uint32_t stride) {
  Scratch s(tmp);
  const LocalTensor<uint8_t> rest = s.Take<uint8_t>(kArgTmpBytes);
  const LocalTensor<int32_t> index = s.Take<int32_t>(kArgExtremeChunk);
  const LocalTensor<T> value = s.Take<T>(kArgExtremeChunk);
  for (uint32_t k = 0; k < cols; k += kArgExtremeChunk) {
    const uint32_t n = Least(cols - k, kArgExtremeChunk);
    if (k) Sync();
    ArgFirst<kOp>(index, value, src[k], rest, rows, n, stride, 0);
    detail::StoreIndex(dst[k], index, n);
  }
}

}  // namespace autofuse
