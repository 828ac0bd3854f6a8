// Why: IsNan, IsInf, IsFinite, Sign and the integer forms of Abs that the unit lacks. The float classes are
// decided on integers: |bits| minus the bits of infinity is above, at or below zero. Exact, whatever a
// compare does with NaN.
//   IsNan, IsInf, IsFinite (dst u8, src, tmp, count)  T = float half
//       scratch min(round_up(count,256), chunk) * e/8 + 32, e = 64 float, 32 half (ClassifyTmpBytes<T>)
//   SignOf(dst, src, tmp, count)  T = float half int32; TensorFlow's: NaN and both zeros give +0
//       scratch min(round_up(count,256), chunk) * e/8, e = 33 float, 17 half, 32 int32 (SignTmpBytes<T>);
//       float and half use Select's reserved 8 KiB
//   AbsInt(dst, src, tmp, count)  T = int32 int16; the lowest value stays itself
//       scratch min(round_up(count,256), chunk) * sizeof(T) (AbsIntTmpBytes<T>)
//   NegInt(dst, src, tmp, count)  T = int32 int16, no scratch; wraps. In place.
#pragma once
#include "common.h"

namespace autofuse {

template <typename T>
__aicore__ constexpr inline uint32_t ClassifyTmpBytes(uint32_t count) {
  return ScratchBytes(count, sizeof(T) == 4 ? 64 : 32) + 32;
}

namespace detail {
enum Class { kNan, kInf, kFinite };

template <Class which, typename I>
__aicore__ inline void ClassFlags(const LocalTensor<I>& t, int32_t n) {
  // t = |bits| - infinity, as an integer; afterwards 0 or 1.
  if constexpr (which == kNan) {
    AscendC::Maxs(t, t, static_cast<I>(0), n);
    Sync();
    AscendC::Mins(t, t, static_cast<I>(1), n);
  } else if constexpr (which == kFinite) {
    AscendC::Maxs(t, t, static_cast<I>(-1), n);
    Sync();
    AscendC::Mins(t, t, static_cast<I>(0), n);
    Sync();
    AscendC::Muls(t, t, static_cast<I>(-1), n);
  } else {
    AscendC::Maxs(t, t, static_cast<I>(-1), n);
    Sync();
    AscendC::Mins(t, t, static_cast<I>(1), n);
    Sync();
    AscendC::Mul(t, t, t, n);
    Sync();
    AscendC::Muls(t, t, static_cast<I>(-1), n);
    Sync();
    AscendC::Adds(t, t, static_cast<I>(1), n);
  }
}

template <Class which, typename T>
__aicore__ inline void Classify(const LocalTensor<uint8_t>& dst, const LocalTensor<T>& src,
                                const LocalTensor<uint8_t>& tmp, uint32_t count) {
  constexpr bool wide = sizeof(T) == 4;
  const uint32_t chunk = Least(RoundUp(count, 256), ChunkElements(wide ? 64 : 32));
  Scratch s(tmp);
  const LocalTensor<uint16_t> mask = s.Take<uint16_t>(16);
  const LocalTensor<uint16_t> magnitude = s.Take<uint16_t>(wide ? 2 * chunk : chunk);
  const LocalTensor<half> flags = s.Take<half>(chunk);
  const LocalTensor<int16_t> narrow = s.Take<int16_t>(wide ? chunk : 0);
  if constexpr (wide)
    AscendC::Duplicate(mask.ReinterpretCast<uint32_t>(), uint32_t(0x7fffffff), 8);
  else
    AscendC::Duplicate(mask, uint16_t(0x7fff), 16);
  const LocalTensor<uint16_t> words = src.template ReinterpretCast<uint16_t>();
  constexpr uint32_t per = wide ? 2 : 1;
  for (uint32_t at = 0; at < count; at += chunk) {
    const uint32_t n = Least(count - at, chunk);
    Sync();
    AndBlock(magnitude, words[at * per], mask, n * per);
    Sync();
    if constexpr (wide) {
      const LocalTensor<int32_t> t = magnitude.ReinterpretCast<int32_t>();
      AscendC::Adds(t, t, int32_t(-0x7f800000), static_cast<int32_t>(n));
      Sync();
      ClassFlags<which>(t, static_cast<int32_t>(n));
      Sync();
      AscendC::Cast(narrow, t, RoundMode::CAST_NONE, n);
      Sync();
      AscendC::Cast(flags, narrow, RoundMode::CAST_NONE, n);
    } else {
      const LocalTensor<int16_t> t = magnitude.ReinterpretCast<int16_t>();
      AscendC::Adds(t, t, int16_t(-0x7c00), static_cast<int32_t>(n));
      Sync();
      ClassFlags<which>(t, static_cast<int32_t>(n));
      Sync();
      AscendC::Cast(flags, t, RoundMode::CAST_NONE, n);
    }
    Sync();
    AscendC::Cast(dst[at], flags, RoundMode::CAST_RINT, n);
  }
}
}  // namespace detail

template <typename T>
__aicore__ inline void IsNan(const LocalTensor<uint8_t>& dst, const LocalTensor<T>& src,
                             const LocalTensor<uint8_t>& tmp, uint32_t count) {
  detail::Classify<detail::kNan>(dst, src, tmp, count);
}
template <typename T>
__aicore__ inline void IsInf(const LocalTensor<uint8_t>& dst, const LocalTensor<T>& src,
                             const LocalTensor<uint8_t>& tmp, uint32_t count) {
  detail::Classify<detail::kInf>(dst, src, tmp, count);
}
template <typename T>
__aicore__ inline void IsFinite(const LocalTensor<uint8_t>& dst, const LocalTensor<T>& src,
                                const LocalTensor<uint8_t>& tmp, uint32_t count) {
  detail::Classify<detail::kFinite>(dst, src, tmp, count);
}

template <typename T>
__aicore__ constexpr inline uint32_t SignEighths() {
  return kSame<T, int32_t> ? 32 : 8 * sizeof(T) + 1;
}
template <typename T>
__aicore__ constexpr inline uint32_t SignTmpBytes(uint32_t count) {
  return ScratchBytes(count, SignEighths<T>());
}
// (x > 0) - (x < 0), each side a select of 1 against 0.
template <typename T>
__aicore__ inline void SignOf(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                              const LocalTensor<uint8_t>& tmp, uint32_t count) {
  const uint32_t chunk = Least(RoundUp(count, 256), ChunkElements(SignEighths<T>()));
  Scratch s(tmp);
  if constexpr (kSame<T, int32_t>) {
    AscendC::Maxs(dst, src, static_cast<T>(-1), static_cast<int32_t>(count));
    Sync();
    AscendC::Mins(dst, dst, static_cast<T>(1), static_cast<int32_t>(count));
  } else {
    const LocalTensor<T> values = s.Take<T>(chunk);
    const LocalTensor<uint8_t> bits = s.Take<uint8_t>(chunk / 8);
    for (uint32_t at = 0; at < count; at += chunk) {
      const uint32_t n = Least(count - at, chunk), whole = RoundUp(n, 256 / sizeof(T));
      if (at) Sync();
      AscendC::CompareScalar(bits, src[at], static_cast<T>(0.0f), CMPMODE::GT, whole);
      AscendC::Duplicate(values, static_cast<T>(1.0f), static_cast<int32_t>(n));
      Sync();
      AscendC::Select(dst[at], bits, values, static_cast<T>(0.0f), SELMODE::VSEL_TENSOR_SCALAR_MODE, n);
      Sync();
      AscendC::CompareScalar(bits, src[at], static_cast<T>(0.0f), CMPMODE::LT, whole);
      AscendC::Duplicate(values, static_cast<T>(-1.0f), static_cast<int32_t>(n));
      Sync();
      AscendC::Select(values, bits, values, static_cast<T>(0.0f), SELMODE::VSEL_TENSOR_SCALAR_MODE, n);
      Sync();
      AscendC::Add(dst[at], dst[at], values, static_cast<int32_t>(n));
    }
  }
}

template <typename T>
__aicore__ constexpr inline uint32_t AbsIntTmpBytes(uint32_t count) {
  return ScratchBytes(count, 8 * sizeof(T));
}
template <typename T>
__aicore__ inline void AbsInt(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                              const LocalTensor<uint8_t>& tmp, uint32_t count) {
  const uint32_t chunk = Least(RoundUp(count, 256), ChunkElements(8 * sizeof(T)));
  const LocalTensor<T> t = tmp.ReinterpretCast<T>();
  for (uint32_t at = 0; at < count; at += chunk) {
    const int32_t n = static_cast<int32_t>(Least(count - at, chunk));
    if (at) Sync();
    AscendC::Muls(t, src[at], static_cast<T>(-1), n);
    Sync();
    AscendC::Max(dst[at], src[at], t, n);
  }
}
template <typename T>
__aicore__ inline void NegInt(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                              const LocalTensor<uint8_t>&, uint32_t count) {
  AscendC::Muls(dst, src, static_cast<T>(-1), static_cast<int32_t>(count));
}

}  // namespace autofuse
