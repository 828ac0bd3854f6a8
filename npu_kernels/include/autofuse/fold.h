// Why: the six ways to fold elements into one, as instructions: identity elements, one combining step, and
// the last step that turns a table with a 256 B row per result into the results. reduce.h and arg.h build on
// it.
//
// NaN as TensorFlow's CPU kernels have it: a maximum or minimum starts at the identity (an infinity) and
// takes an element only where it compares as greater (less), so NaN never gets in. That needs the accumulator
// to be the FIRST operand of Max and Min (docs/twin.md says what those do with a NaN) and every accumulator
// to start as the identity. Sum starts at +0, so that a sum of -0.0s is +0.0. Integers wrap around.
#pragma once
#include "common.h"
#include "fill.h"

namespace autofuse {

// Any and All are on bool (uint8 of 0 and 1); Max and Min also on int8 and uint8.
enum class Fold { kSum, kProd, kMax, kMin, kAny, kAll };

// Scratch of every function of reduce.h: a table of 32 rows, as much for one long row, a transposed group.
constexpr uint32_t kReduceTmpBytes = 8192 + 8192 + 512;

namespace detail {

constexpr uint32_t kFoldRows = 32;       // results that are worked out together: 8 KiB of table
constexpr uint32_t kFoldRowBytes = 256;  // one repeat

template <Fold kOp>
constexpr bool kTakesGreater = kOp == Fold::kMax || kOp == Fold::kAny;
template <Fold kOp>
constexpr bool kTakesLess = kOp == Fold::kMin || kOp == Fold::kAll;

template <uint32_t kWidth>
struct Word;
template <>
struct Word<2> {
  using Type = uint16_t;
};
template <>
struct Word<4> {
  using Type = uint32_t;
};

// The identity's bits in a 16- or 32-bit type.
template <Fold kOp, typename T>
__aicore__ constexpr inline uint32_t IdentityBits() {
  if (kOp == Fold::kSum) return 0;
  if (kOp == Fold::kProd) return kSame<T, float> ? 0x3f800000u : kSame<T, half> ? 0x3c00u : 1u;
  if (kSame<T, float>) return kTakesGreater<kOp> ? 0xff800000u : 0x7f800000u;
  if (kSame<T, half>) return kTakesGreater<kOp> ? 0xfc00u : 0x7c00u;
  const uint32_t lowest = sizeof(T) == 2 ? 0x8000u : 0x80000000u;
  return kTakesGreater<kOp> ? lowest : lowest - 1;
}
// The identity of an 8-bit type, which is folded as half.
template <Fold kOp, typename T>
__aicore__ constexpr inline int32_t ByteIdentity() {
  if (kOp == Fold::kAny) return 0;
  if (kOp == Fold::kAll) return 1;
  if (kOp == Fold::kMax) return kSame<T, int8_t> ? -128 : 0;
  return kSame<T, int8_t> ? 127 : 255;
}

// dst = a op b; a is the accumulator.
template <Fold kOp, typename T>
__aicore__ inline void FoldCount(const LocalTensor<T>& dst, const LocalTensor<T>& a, const LocalTensor<T>& b,
                                 uint32_t count) {
  const int32_t n = static_cast<int32_t>(count);
  if constexpr (kOp == Fold::kSum) AscendC::Add(dst, a, b, n);
  if constexpr (kOp == Fold::kProd) AscendC::Mul(dst, a, b, n);
  if constexpr (kTakesGreater<kOp>) AscendC::Max(dst, a, b, n);
  if constexpr (kTakesLess<kOp>) AscendC::Min(dst, a, b, n);
}
template <Fold kOp, typename T>
__aicore__ inline void FoldRepeat(const LocalTensor<T>& dst, const LocalTensor<T>& a, const LocalTensor<T>& b,
                                  uint32_t lanes, uint32_t repeat, const AscendC::BinaryRepeatParams& p) {
  const uint64_t mask = lanes;
  const uint8_t n = static_cast<uint8_t>(repeat);
  if constexpr (kOp == Fold::kSum) AscendC::Add(dst, a, b, mask, n, p);
  if constexpr (kOp == Fold::kProd) AscendC::Mul(dst, a, b, mask, n, p);
  if constexpr (kTakesGreater<kOp>) AscendC::Max(dst, a, b, mask, n, p);
  if constexpr (kTakesLess<kOp>) AscendC::Min(dst, a, b, mask, n, p);
}

template <Fold kOp, typename T>
__aicore__ inline void FillWords(const LocalTensor<T>& dst, uint32_t count) {
  using W = typename Word<sizeof(T)>::Type;
  AscendC::Duplicate(dst.template ReinterpretCast<W>(), static_cast<W>(IdentityBits<kOp, T>()),
                     static_cast<int32_t>(count));
}

// Rows of one block each, eight blocks apart, to one result a row: the blocks of 16 rows are transposed, so
// that lane j of all rows is contiguous, and the lanes are folded in halves. `turned` holds 512 B.
template <Fold kOp, typename T>
__aicore__ inline void FoldBlocks(const LocalTensor<T>& dst, const LocalTensor<T>& table,
                                  const LocalTensor<T>& turned, uint32_t rows) {
  using W = typename Word<sizeof(T)>::Type;
  constexpr uint32_t per_block = 32 / sizeof(T), row = kFoldRowBytes / sizeof(T);
  for (uint32_t g = 0; g < rows; g += 16) {
    const uint32_t n = Least(rows - g, 16);
    LocalTensor<W> from[16], to[16];
    for (uint32_t i = 0; i < 16; ++i) {
      from[i] = table[(g + Least(i, n - 1)) * row].template ReinterpretCast<W>();
      to[i] = turned[i * per_block].template ReinterpretCast<W>();
    }
    if (g) Sync();
    AscendC::TransDataTo5HD<W>(to, from, AscendC::TransDataTo5HDParams(false, false, 1, 0, 0));
    for (uint32_t w = per_block / 2; w > 1; w /= 2) {
      Sync();
      FoldCount<kOp>(turned, turned, turned[w * 16], w * 16);
    }
    Sync();
    FoldCount<kOp>(dst[g], turned, turned[16], n);
  }
}

// The table's rows (256 B each, at most kFoldRows) to one result a row. The table is used up.
template <Fold kOp, typename T>
__aicore__ inline void FoldTable(const LocalTensor<T>& dst, const LocalTensor<T>& table,
                                 const LocalTensor<T>& turned, uint32_t rows) {
  constexpr int32_t lanes = kFoldRowBytes / sizeof(T);
  const int32_t n = static_cast<int32_t>(rows);
  if constexpr ((kSame<T, float> || kSame<T, half>) && kOp != Fold::kProd) {
    if constexpr (kOp == Fold::kSum) AscendC::WholeReduceSum(dst, table, lanes, n, 1, 1, 8);
    if constexpr (kTakesGreater<kOp>)
      AscendC::WholeReduceMax(dst, table, lanes, n, 1, 1, 8, AscendC::ReduceOrder::ORDER_ONLY_VALUE);
    if constexpr (kTakesLess<kOp>)
      AscendC::WholeReduceMin(dst, table, lanes, n, 1, 1, 8, AscendC::ReduceOrder::ORDER_ONLY_VALUE);
  } else {
    const AscendC::BinaryRepeatParams p(1, 1, 1, 8, 8, 8);
    for (uint32_t w = lanes / 2; w >= 32 / sizeof(T); w /= 2) {
      FoldRepeat<kOp>(table, table, table[w], w, rows, p);
      Sync();
    }
    FoldBlocks<kOp>(dst, table, turned, rows);
  }
}

// A power of two of repeats that one long row is folded into: at most the row, at most 8 KiB.
template <typename T>
__aicore__ inline uint32_t LongRowLanes(uint32_t cols) {
  uint32_t wide = kFoldRowBytes / sizeof(T);
  while (wide * 2 <= cols && wide * 2 * sizeof(T) <= 8192) wide *= 2;
  return wide;
}

// One row of `cols` elements to a table row of 256 B; `acc` holds `wide` elements, a power of two of repeats.
template <Fold kOp, typename T>
__aicore__ inline void FoldRow(const LocalTensor<T>& row, const LocalTensor<T>& src,
                               const LocalTensor<T>& acc, uint32_t cols, uint32_t wide) {
  constexpr uint32_t lanes = kFoldRowBytes / sizeof(T);
  const LocalTensor<T> to = wide == lanes ? row : acc;
  FillWords<kOp>(to, wide);
  for (uint32_t k = 0; k < cols; k += wide) {
    Sync();
    FoldCount<kOp>(to, to, src[k], Least(cols - k, wide));
  }
  for (uint32_t w = wide / 2; w >= lanes; w /= 2) {
    Sync();
    FoldCount<kOp>(w == lanes ? row : acc, acc, acc[w], w);
  }
}

// Up to 32 rows of up to 128 bytes to rows of 128 halves.
template <typename T>
__aicore__ inline void WidenTile(const LocalTensor<half>& dst, const LocalTensor<T>& src, uint32_t rows,
                                 uint32_t cols, uint32_t stride) {
  if (stride / 32 <= 255) {
    AscendC::Cast(dst, src, RoundMode::CAST_NONE, uint64_t(cols), static_cast<uint8_t>(rows),
                  AscendC::UnaryRepeatParams(1, 1, 8, static_cast<uint8_t>(stride / 32)));
    return;
  }
  for (uint32_t i = 0; i < rows; ++i)
    AscendC::Cast(dst[i * 128], src[i * stride], RoundMode::CAST_NONE, cols);
}
}  // namespace detail

// dst = the identity of the fold, `count` times.
template <Fold kOp, typename T>
__aicore__ inline void FillIdentity(const LocalTensor<T>& dst, uint32_t count) {
  if constexpr (sizeof(T) == 1)
    FillScalar(dst, static_cast<T>(detail::ByteIdentity<kOp, T>()), count);
  else
    detail::FillWords<kOp>(dst, count);
}

// acc = acc op part, for accumulators of this fold (no NaN in a maximum or minimum). tmp: kReduceTmpBytes,
// used by 8-bit types only.
template <Fold kOp, typename T>
__aicore__ inline void Combine(const LocalTensor<T>& acc, const LocalTensor<T>& part,
                               const LocalTensor<uint8_t>& tmp, uint32_t count) {
  if constexpr (sizeof(T) == 1) {
    constexpr uint32_t chunk = 2048;
    Scratch s(tmp);
    const LocalTensor<half> a = s.Take<half>(chunk), b = s.Take<half>(chunk);
    for (uint32_t k = 0; k < count; k += chunk) {
      const uint32_t n = Least(count - k, chunk);
      if (k) Sync();
      AscendC::Cast(a, acc[k], RoundMode::CAST_NONE, n);
      AscendC::Cast(b, part[k], RoundMode::CAST_NONE, n);
      Sync();
      detail::FoldCount<kOp>(a, a, b, n);
      Sync();
      AscendC::Cast(acc[k], a, RoundMode::CAST_RINT, n);
    }
  } else {
    (void)tmp;
    detail::FoldCount<kOp>(acc, acc, part, count);
  }
}

}  // namespace autofuse
