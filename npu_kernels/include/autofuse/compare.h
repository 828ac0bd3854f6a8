// Why: comparisons that give TensorFlow's bool (uint8 0/1). The unit compares half and float in all modes and
// int32 for EQ only, into packed bits.
//   CompareToBool<mode>(dst u8, a, b, tmp, count)            T = half float int32 int16 int8 uint8 int64
//   CompareScalarToBool<mode>(dst u8, a, scalar, tmp, count) the same types
// int32 orders through Max/Min and EQ, so no difference is formed that could overflow; int16 through float
// and 8-bit through half, both exact; int64 as two 32-bit words. NaN compares false except for NE (IEEE).
// Scratch: min(round_up(count,256), chunk) * e/8 bytes, e = 33 half/float, 65 int32, 97 int16, 65 8-bit, 211
// int64 (CompareTmpBytes<T>); the scalar form adds what a chunk of T takes (CompareScalarTmpBytes<T>). Uses
// Select's reserved 8 KiB. dst may not be a source.
#pragma once
#include "common.h"
#include "fill.h"

namespace autofuse {

// 1/8 bytes an element: bits 1, ones and selected 2 x 16; then what the type adds.
template <typename T>
__aicore__ constexpr inline uint32_t CompareEighths() {
  constexpr bool narrow = sizeof(T) == 1;
  if (sizeof(T) == 8) return 33 + 5 * 32 + 2 * 1 + 16;
  if (narrow) return 33 + 2 * 16;
  if (kSame<T, int16_t>) return 33 + 2 * 32;
  if (kSame<T, int32_t>) return 33 + 32;
  return 33;
}
template <typename T>
__aicore__ constexpr inline uint32_t CompareTmpBytes(uint32_t count) {
  return ScratchBytes(count, CompareEighths<T>());
}
template <typename T>
__aicore__ constexpr inline uint32_t CompareScalarEighths() {
  return CompareEighths<T>() + 8 * sizeof(T);
}
template <typename T>
__aicore__ constexpr inline uint32_t CompareScalarTmpBytes(uint32_t count) {
  return ScratchBytes(count, CompareScalarEighths<T>());
}

namespace detail {

// int32 has EQ only: LE is min(a,b)==a, GE is max(a,b)==a, the others are their negations. Gives bits of the
// un-negated relation. `t` is scratch of n int32.
template <CMPMODE mode>
__aicore__ inline void IntBits(const LocalTensor<uint8_t>& bits, const LocalTensor<int32_t>& a,
                               const LocalTensor<int32_t>& b, const LocalTensor<int32_t>& t, uint32_t n) {
  const uint32_t whole = RoundUp(n, 64);
  if constexpr (mode == CMPMODE::EQ || mode == CMPMODE::NE) {
    AscendC::Compare(bits, a, b, CMPMODE::EQ, whole);
  } else {
    if constexpr (mode == CMPMODE::LE || mode == CMPMODE::GT)
      AscendC::Min(t, a, b, static_cast<int32_t>(n));
    else
      AscendC::Max(t, a, b, static_cast<int32_t>(n));
    Sync();
    AscendC::Compare(bits, t, a, CMPMODE::EQ, whole);
  }
}

template <CMPMODE mode>
constexpr bool kNegated = mode == CMPMODE::NE || mode == CMPMODE::GT || mode == CMPMODE::LT;

__aicore__ inline void TakeWords(const LocalTensor<int32_t>& dst, const LocalTensor<int32_t>& src, bool high,
                                 uint32_t n) {
  uint64_t kept = 0;
  AscendC::GatherMask(dst, src, static_cast<uint8_t>(high ? 2 : 1), true, 2 * n,
                      AscendC::GatherMaskParams(1, 1, 8, 0), kept);
}

// One chunk; `b` holds n elements. ones: halves of 1 (0 where the relation is computed negated).
template <CMPMODE mode, typename T>
__aicore__ inline void CompareChunk(const LocalTensor<uint8_t>& dst, const LocalTensor<T>& a,
                                    const LocalTensor<T>& b, Scratch s, const LocalTensor<half>& ones,
                                    uint32_t chunk, uint32_t n) {
  const LocalTensor<uint8_t> bits = s.Take<uint8_t>(chunk / 8);
  const LocalTensor<half> sel = s.Take<half>(chunk);
  if constexpr (sizeof(T) == 8) {
    const LocalTensor<int32_t> ah = s.Take<int32_t>(chunk), al = s.Take<int32_t>(chunk),
                               bh = s.Take<int32_t>(chunk), bl = s.Take<int32_t>(chunk),
                               t = s.Take<int32_t>(chunk);
    const LocalTensor<uint8_t> equal = s.Take<uint8_t>(chunk / 8), low = s.Take<uint8_t>(chunk / 8);
    const LocalTensor<int32_t> aw = a.template ReinterpretCast<int32_t>(),
                               bw = b.template ReinterpretCast<int32_t>();
    TakeWords(ah, aw, true, n);
    TakeWords(al, aw, false, n);
    TakeWords(bh, bw, true, n);
    TakeWords(bl, bw, false, n);
    Sync();
    const LocalTensor<uint16_t> bits16 = bits.ReinterpretCast<uint16_t>(),
                                low16 = low.ReinterpretCast<uint16_t>(),
                                equal16 = equal.ReinterpretCast<uint16_t>();
    const int32_t words = static_cast<int32_t>(RoundUp(n, 64) / 16);
    AscendC::Compare(equal, ah, bh, CMPMODE::EQ, RoundUp(n, 64));
    if constexpr (mode == CMPMODE::EQ || mode == CMPMODE::NE) {
      AscendC::Compare(low, al, bl, CMPMODE::EQ, RoundUp(n, 64));
      Sync();
      AscendC::And(bits16, equal16, low16, words);
    } else {
      // The low words order as unsigned: flip their sign bit. (high relation) and (low relation or highs
      // differ).
      AscendC::Adds(al, al, int32_t(-2147483647 - 1), static_cast<int32_t>(n));
      AscendC::Adds(bl, bl, int32_t(-2147483647 - 1), static_cast<int32_t>(n));
      Sync();
      IntBits<mode>(low, al, bl, t, n);
      Sync();
      IntBits<mode>(bits, ah, bh, t, n);
      AscendC::Not(equal16, equal16, words);
      Sync();
      AscendC::Or(low16, low16, equal16, words);
      Sync();
      AscendC::And(bits16, bits16, low16, words);
    }
    Sync();
    BitsToBool<kNegated<mode>>(dst, bits, ones, sel, n);
  } else if constexpr (sizeof(T) == 1) {
    const LocalTensor<half> x = s.Take<half>(chunk), y = s.Take<half>(chunk);
    AscendC::Cast(x, a, RoundMode::CAST_NONE, n);
    AscendC::Cast(y, b, RoundMode::CAST_NONE, n);
    Sync();
    AscendC::Compare(bits, x, y, mode, RoundUp(n, 128));
    Sync();
    BitsToBool<false>(dst, bits, ones, sel, n);
  } else if constexpr (kSame<T, int32_t>) {
    const LocalTensor<int32_t> t = s.Take<int32_t>(chunk);
    IntBits<mode>(bits, a, b, t, n);
    Sync();
    BitsToBool<kNegated<mode>>(dst, bits, ones, sel, n);
  } else if constexpr (kSame<T, int16_t>) {
    const LocalTensor<float> x = s.Take<float>(chunk), y = s.Take<float>(chunk);
    AscendC::Cast(x, a, RoundMode::CAST_NONE, n);
    AscendC::Cast(y, b, RoundMode::CAST_NONE, n);
    Sync();
    AscendC::Compare(bits, x, y, mode, RoundUp(n, 64));
    Sync();
    BitsToBool<false>(dst, bits, ones, sel, n);
  } else {
    AscendC::Compare(bits, a, b, mode, RoundUp(n, 256 / sizeof(T)));
    Sync();
    BitsToBool<false>(dst, bits, ones, sel, n);
  }
}

template <CMPMODE mode, typename T>
constexpr bool kComparesNegated = kNegated<mode> && (sizeof(T) == 8 || kSame<T, int32_t>);

}  // namespace detail

template <CMPMODE mode, typename T>
__aicore__ inline void CompareToBool(const LocalTensor<uint8_t>& dst, const LocalTensor<T>& a,
                                     const LocalTensor<T>& b, const LocalTensor<uint8_t>& tmp,
                                     uint32_t count) {
  constexpr uint32_t kChunk = ChunkElements(CompareEighths<T>());
  const uint32_t chunk = Least(RoundUp(count, 256), kChunk);
  Scratch s(tmp);
  const LocalTensor<half> ones = s.Take<half>(chunk);
  AscendC::Duplicate(ones, static_cast<half>(detail::kComparesNegated<mode, T> ? 0.0f : 1.0f),
                     static_cast<int32_t>(chunk));
  for (uint32_t at = 0; at < count; at += chunk) {
    if (at) Sync();
    detail::CompareChunk<mode, T>(dst[at], a[at], b[at], s, ones, chunk, Least(count - at, chunk));
  }
}

template <CMPMODE mode, typename T>
__aicore__ inline void CompareScalarToBool(const LocalTensor<uint8_t>& dst, const LocalTensor<T>& a, T scalar,
                                           const LocalTensor<uint8_t>& tmp, uint32_t count) {
  constexpr uint32_t kChunk = ChunkElements(CompareScalarEighths<T>());
  const uint32_t chunk = Least(RoundUp(count, 256), kChunk);
  Scratch s(tmp);
  const LocalTensor<half> ones = s.Take<half>(chunk);
  const LocalTensor<T> b = s.Take<T>(chunk);
  AscendC::Duplicate(ones, static_cast<half>(detail::kComparesNegated<mode, T> ? 0.0f : 1.0f),
                     static_cast<int32_t>(chunk));
  FillScalar(b, scalar, chunk);
  Sync();
  for (uint32_t at = 0; at < count; at += chunk) {
    if (at) Sync();
    detail::CompareChunk<mode, T>(dst[at], a[at], b, s, ones, chunk, Least(count - at, chunk));
  }
}

}  // namespace autofuse
