// Why: TensorFlow's casts on x86 among float, half, bfloat16, int8, uint8, int16, int32, int64 and bool, from
// the casts that the unit has. TensorFlow converts float to int32 with INT_MIN for NaN and everything out of
// range, to narrower integers through int32 by dropping bits, to int64 with INT64_MIN; integers narrow by
// dropping bits; half and bfloat16 round half to even and go to integers through float; to bool is "not equal
// to zero" (NaN is true).
//   CastTo<D, S>(dst, src, tmp, count)       every pair of the list above with D != S but bool as D; bool as
//   S = uint8 CastToBool<S>(dst u8, src, tmp, count)   the same S
// Exact (bit for bit TensorFlow's) for all pairs. Scratch: min(round_up(count,256), chunk) * e/8 bytes with
// e = CastEighths<D, S>() <= 163: CastTmpBytes<D, S>(count); 0 where the unit has the cast itself.
// float or 16-bit float to int32/int64 and narrower, and CastToBool, use Select's reserved 8 KiB. Not in
// place.
#pragma once
#include "common.h"
#include "compare.h"
#include "fill.h"

namespace autofuse {

namespace detail {

template <typename T>
constexpr bool kFloating = kSame<T, float> || kSame<T, half> || kSame<T, bfloat16_t>;
template <typename T>
constexpr bool kByte = kSame<T, int8_t> || kSame<T, uint8_t>;

// Pairs that are one instruction of the unit with TensorFlow's result.
template <typename D, typename S>
constexpr bool kNativeCast = (kSame<S, float> && (kSame<D, half> || kSame<D, bfloat16_t>)) ||
                             (kSame<D, float> &&
                              (kSame<S, half> || kSame<S, bfloat16_t> || kSame<S, int16_t> ||
                               kSame<S, int32_t> || kSame<S, int64_t>)) ||
                             (kSame<D, half> &&
                              (kSame<S, int8_t> || kSame<S, uint8_t> || kSame<S, int16_t>)) ||
                             (kSame<D, int64_t> && kSame<S, int32_t>) || (kByte<D> && kByte<S>) ||
                             (kSame<D, int32_t> && kSame<S, int64_t>);

// The float (or half) stage that a pair passes through, and the scratch it takes, in 1/8 bytes an element.
template <typename D, typename S>
__aicore__ constexpr inline uint32_t Eighths() {
  if (kSame<D, S> || kNativeCast<D, S>) return 0;
  uint32_t e = 0;
  if (kFloating<S>) {
    if (!kSame<S, float>) e += 32;                                // to float first
    if (kFloating<D>) return e;                                   // half <-> bfloat16
    if (kSame<D, int64_t>) return e + 1 + 2 + 16 + 16 + 32 + 64;  // bits, pair bits, flags, pairs, INT64_MIN
    e += 1;                                                       // the in-range bits
    if (!kSame<D, int32_t>) e += 32;
    if (kByte<D>) e += 16 + 16;
    return e;
  }
  if (kSame<S, int64_t> && !kFloating<D>) e += 32;
  if (kByte<S>) {
    if (kSame<D, int16_t> || kSame<D, float> || kSame<D, int32_t>) return 16;
    return kSame<D, int64_t> || kSame<D, bfloat16_t> ? 16 + 32 : 16;
  }
  if (kSame<D, half> || kSame<D, bfloat16_t>) return 32 + e;
  if (kSame<S, int16_t> && (kSame<D, int32_t> || kSame<D, int64_t>)) return 32 + (kSame<D, int64_t> ? 32 : 0);
  if (kByte<D>) return e + 16 + 16;
  return e;
}

// Low halves of n int32: every second 16-bit word.
__aicore__ inline void LowWords(const LocalTensor<int16_t>& dst, const LocalTensor<int32_t>& src,
                                uint32_t n) {
  uint64_t kept = 0;
  AscendC::GatherMask(dst, src.ReinterpretCast<int16_t>(), static_cast<uint8_t>(1), true, 2 * n,
                      AscendC::GatherMaskParams(1, 1, 8, 0), kept);
}
// Low bytes of n int16 (clobbered), through half, which holds them exactly. `byte_mask` is a 32 B block of
// 0x00ff.
template <typename D>
__aicore__ inline void LowBytes(const LocalTensor<D>& dst, const LocalTensor<int16_t>& src,
                                const LocalTensor<half>& wide, uint32_t n) {
  AscendC::ShiftLeft(src, src, int16_t(8), static_cast<int32_t>(n));
  Sync();
  if constexpr (kSame<D, int8_t>) {
    AscendC::ShiftRight(src, src, int16_t(8), static_cast<int32_t>(n));
  } else {
    const LocalTensor<uint16_t> u = src.ReinterpretCast<uint16_t>();
    AscendC::ShiftRight(u, u, uint16_t(8), static_cast<int32_t>(n));
  }
  Sync();
  AscendC::Cast(wide, src, RoundMode::CAST_RINT, n);
  Sync();
  AscendC::Cast(dst, wide, RoundMode::CAST_RINT, n);
}

// float to int32 as x86 does it: truncated, INT_MIN where that does not fit. The unit saturates and gives 0
// for NaN; only what is not below 2^31 (NaN included) needs repair. INT_MIN has the bits of -0.0f.
__aicore__ inline void FloatToInt32(const LocalTensor<int32_t>& dst, const LocalTensor<float>& src,
                                    const LocalTensor<uint8_t>& bits, uint32_t n) {
  AscendC::Cast(dst, src, RoundMode::CAST_TRUNC, n);
  AscendC::CompareScalar(bits, src, 2147483648.0f, CMPMODE::LT, RoundUp(n, 64));
  Sync();
  const LocalTensor<float> d = dst.ReinterpretCast<float>();
  AscendC::Select(d, bits, d, -0.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, n);
}

__aicore__ inline void FloatToInt64(const LocalTensor<int64_t>& dst, const LocalTensor<float>& src, Scratch s,
                                    uint32_t chunk, uint32_t n) {
  const LocalTensor<uint8_t> bits = s.Take<uint8_t>(chunk / 8), pair_bits = s.Take<uint8_t>(chunk / 4);
  const LocalTensor<half> ones = s.Take<half>(chunk), flags = s.Take<half>(chunk);
  const LocalTensor<int32_t> pairs = s.Take<int32_t>(chunk);
  const LocalTensor<int64_t> lowest = s.Take<int64_t>(chunk);
  AscendC::Cast(dst, src, RoundMode::CAST_TRUNC, n);
  AscendC::CompareScalar(bits, src, 9223372036854775808.0f, CMPMODE::LT, RoundUp(n, 64));
  AscendC::Duplicate(ones, static_cast<half>(1.0f), static_cast<int32_t>(n));
  FillScalar(lowest, static_cast<int64_t>(1ull << 63), n);
  Sync();
  AscendC::Select(flags, bits, ones, static_cast<half>(0.0f), SELMODE::VSEL_TENSOR_SCALAR_MODE, n);
  Sync();
  FlagsToPairBits(pair_bits, flags, pairs, n);
  Sync();
  const LocalTensor<float> d = dst.ReinterpretCast<float>();
  AscendC::Select(d, pair_bits, d, lowest.ReinterpretCast<float>(), SELMODE::VSEL_TENSOR_TENSOR_MODE, 2 * n);
}

template <typename D, typename S>
__aicore__ inline void CastChunk(const LocalTensor<D>& dst, const LocalTensor<S>& src, Scratch s,
                                 uint32_t chunk, uint32_t n) {
  if constexpr (kFloating<S>) {
    LocalTensor<float> x;
    if constexpr (kSame<S, float>) {
      x = src;
    } else {
      x = s.Take<float>(chunk);
      AscendC::Cast(x, src, RoundMode::CAST_NONE, n);
      Sync();
    }
    if constexpr (kFloating<D>) {
      AscendC::Cast(dst, x, RoundMode::CAST_RINT, n);
    } else if constexpr (kSame<D, int64_t>) {
      FloatToInt64(dst, x, s, chunk, n);
    } else {
      const LocalTensor<uint8_t> bits = s.Take<uint8_t>(chunk / 8);
      if constexpr (kSame<D, int32_t>) {
        FloatToInt32(dst, x, bits, n);
      } else {
        const LocalTensor<int32_t> wide = s.Take<int32_t>(chunk);
        FloatToInt32(wide, x, bits, n);
        Sync();
        CastChunk<D, int32_t>(dst, wide, s, chunk, n);
      }
    }
  } else if constexpr (kSame<S, int64_t>) {
    // Every result depends on the low word only, but for the floating ones.
    if constexpr (kSame<D, half> || kSame<D, bfloat16_t>) {
      const LocalTensor<float> x = s.Take<float>(chunk);
      AscendC::Cast(x, src, RoundMode::CAST_RINT, n);
      Sync();
      AscendC::Cast(dst, x, RoundMode::CAST_RINT, n);
    } else if constexpr (kSame<D, int32_t>) {
      TakeWords(dst, src.template ReinterpretCast<int32_t>(), false, n);
    } else {
      const LocalTensor<int32_t> low = s.Take<int32_t>(chunk);
      TakeWords(low, src.template ReinterpretCast<int32_t>(), false, n);
      Sync();
      CastChunk<D, int32_t>(dst, low, s, chunk, n);
    }
  } else if constexpr (kByte<S>) {
    const LocalTensor<half> h = s.Take<half>(chunk);
    AscendC::Cast(h, src, RoundMode::CAST_NONE, n);
    Sync();
    if constexpr (kSame<D, float>) {
      AscendC::Cast(dst, h, RoundMode::CAST_NONE, n);
    } else if constexpr (kSame<D, int16_t> || kSame<D, int32_t>) {
      AscendC::Cast(dst, h, RoundMode::CAST_RINT, n);
    } else if constexpr (kSame<D, int64_t>) {
      const LocalTensor<int32_t> w = s.Take<int32_t>(chunk);
      AscendC::Cast(w, h, RoundMode::CAST_RINT, n);
      Sync();
      AscendC::Cast(dst, w, RoundMode::CAST_NONE, n);
    } else {  // bfloat16
      const LocalTensor<float> x = s.Take<float>(chunk);
      AscendC::Cast(x, h, RoundMode::CAST_NONE, n);
      Sync();
      AscendC::Cast(dst, x, RoundMode::CAST_RINT, n);
    }
  } else if constexpr (kFloating<D>) {  // int16, int32 to half or bfloat16
    const LocalTensor<float> x = s.Take<float>(chunk);
    if constexpr (kSame<S, int32_t>)
      AscendC::Cast(x, src, RoundMode::CAST_RINT, n);
    else
      AscendC::Cast(x, src, RoundMode::CAST_NONE, n);
    Sync();
    AscendC::Cast(dst, x, RoundMode::CAST_RINT, n);
  } else if constexpr (kSame<S, int16_t> && !kByte<D>) {  // widening, exact through float
    const LocalTensor<float> x = s.Take<float>(chunk);
    AscendC::Cast(x, src, RoundMode::CAST_NONE, n);
    Sync();
    if constexpr (kSame<D, int32_t>) {
      AscendC::Cast(dst, x, RoundMode::CAST_RINT, n);
    } else {
      const LocalTensor<int32_t> w = s.Take<int32_t>(chunk);
      AscendC::Cast(w, x, RoundMode::CAST_RINT, n);
      Sync();
      AscendC::Cast(dst, w, RoundMode::CAST_NONE, n);
    }
  } else if constexpr (kByte<D>) {
    const LocalTensor<int16_t> low = s.Take<int16_t>(chunk);
    const LocalTensor<half> wide = s.Take<half>(chunk);
    if constexpr (kSame<S, int32_t>)
      LowWords(low, src, n);
    else
      AscendC::Adds(low, src, int16_t(0), static_cast<int32_t>(n));
    Sync();
    LowBytes(dst, low, wide, n);
  } else {  // int32 to int16
    LowWords(dst, src, n);
  }
}

}  // namespace detail

template <typename D, typename S>
__aicore__ constexpr inline uint32_t CastEighths() {
  return detail::Eighths<D, S>();
}
template <typename D, typename S>
__aicore__ constexpr inline uint32_t CastTmpBytes(uint32_t count) {
  return CastEighths<D, S>() == 0 ? 0 : ScratchBytes(count, CastEighths<D, S>());
}

template <typename D, typename S>
__aicore__ inline void CastTo(const LocalTensor<D>& dst, const LocalTensor<S>& src,
                              const LocalTensor<uint8_t>& tmp, uint32_t count) {
  if constexpr (detail::kByte<D> && detail::kByte<S>) {  // the same bits
    const LocalTensor<uint16_t> from = src.template ReinterpretCast<uint16_t>();
    AscendC::Or(dst.template ReinterpretCast<uint16_t>(), from, from, static_cast<int32_t>((count + 1) / 2));
  } else if constexpr (kSame<D, int32_t> && kSame<S, int64_t>) {
    detail::TakeWords(dst, src.template ReinterpretCast<int32_t>(), false, count);
  } else if constexpr (detail::kNativeCast<D, S>) {
    constexpr bool rounds =
        kSame<D, half> ? !detail::kByte<S> : kSame<D, bfloat16_t> || kSame<S, int32_t> || kSame<S, int64_t>;
    AscendC::Cast(dst, src, rounds && !kSame<D, int64_t> ? RoundMode::CAST_RINT : RoundMode::CAST_NONE,
                  count);
  } else if constexpr (detail::Eighths<D, S>() == 0) {  // int32 to int16
    detail::LowWords(dst, src, count);
  } else {
    const uint32_t chunk = Least(RoundUp(count, 256), ChunkElements(detail::Eighths<D, S>()));
    for (uint32_t at = 0; at < count; at += chunk) {
      if (at) Sync();
      detail::CastChunk<D, S>(dst[at], src[at], Scratch(tmp), chunk, Least(count - at, chunk));
    }
  }
}

// bfloat16 is widened first; the others compare with their own zero. int64: its two words are joined first.
template <typename S>
__aicore__ constexpr inline uint32_t CastToBoolEighths() {
  if (kSame<S, int64_t>) return CompareScalarEighths<int32_t>() + 2 * 32;
  if (kSame<S, bfloat16_t>) return CompareScalarEighths<float>() + 32;
  return CompareScalarEighths<S>();
}
template <typename S>
__aicore__ constexpr inline uint32_t CastToBoolTmpBytes(uint32_t count) {
  return ScratchBytes(count, CastToBoolEighths<S>());
}
template <typename S>
__aicore__ inline void CastToBool(const LocalTensor<uint8_t>& dst, const LocalTensor<S>& src,
                                  const LocalTensor<uint8_t>& tmp, uint32_t count) {
  if constexpr (kSame<S, int64_t> || kSame<S, bfloat16_t>) {
    const uint32_t chunk = Least(RoundUp(count, 256), ChunkElements(CastToBoolEighths<S>()));
    for (uint32_t at = 0; at < count; at += chunk) {
      const uint32_t n = Least(count - at, chunk);
      Scratch s(tmp);
      if (at) Sync();
      if constexpr (kSame<S, bfloat16_t>) {
        const LocalTensor<float> x = s.Take<float>(chunk);
        AscendC::Cast(x, src[at], RoundMode::CAST_NONE, n);
        Sync();
        CompareScalarToBool<CMPMODE::NE>(dst[at], x, 0.0f, s.Take<uint8_t>(0), n);
      } else {
        const LocalTensor<int32_t> low = s.Take<int32_t>(chunk), high = s.Take<int32_t>(chunk);
        const LocalTensor<int32_t> words = src[at].template ReinterpretCast<int32_t>();
        detail::TakeWords(low, words, false, n);
        detail::TakeWords(high, words, true, n);
        Sync();
        const LocalTensor<uint16_t> l = low.ReinterpretCast<uint16_t>(), h = high.ReinterpretCast<uint16_t>();
        AscendC::Or(l, l, h, static_cast<int32_t>(2 * n));
        Sync();
        CompareScalarToBool<CMPMODE::NE>(dst[at], low, int32_t(0), s.Take<uint8_t>(0), n);
      }
    }
  } else {
    CompareScalarToBool<CMPMODE::NE>(dst, src, static_cast<S>(0), tmp, count);
  }
}

}  // namespace autofuse
