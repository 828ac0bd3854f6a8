// Why: dst = cond ? a : b with a bool (uint8) condition. Values are moved as bits, so every pattern, NaN
// payloads included, comes out as it went in.
//   WhereSelect(dst, cond, a, b, tmp, count)   T = half float int32 uint32 int16 uint16 bfloat16 int8 uint8
//   int64
// a and b may each be a tensor or a scalar of T (not for 64-bit).
// Scratch: min(round_up(count,256), chunk) * e/8 bytes, e = 17 for 16/32-bit, 65 for 8-bit, 50 for 64-bit; a
// scalar operand adds 8*sizeof(T) each (WhereTmpBytes<T>(count, scalars)). Uses Select's reserved 8 KiB. In
// place: dst may be a or b for 16/32/64-bit types; dst may not be cond.
#pragma once
#include "common.h"
#include "fill.h"

namespace autofuse {

template <typename T>
__aicore__ constexpr inline uint32_t WhereEighths(uint32_t scalars) {
  return (sizeof(T) == 8 ? 2 + 16 + 32 : sizeof(T) == 1 ? 17 + 3 * 16 : 17) + 8 * sizeof(T) * scalars;
}
template <typename T>
__aicore__ constexpr inline uint32_t WhereTmpBytes(uint32_t count, uint32_t scalars = 0) {
  return ScratchBytes(count, WhereEighths<T>(scalars));
}

namespace detail {

template <typename T>
__aicore__ inline void WhereChunk(const LocalTensor<T>& dst, const LocalTensor<uint8_t>& cond,
                                  const LocalTensor<T>& a, const LocalTensor<T>& b, Scratch s, uint32_t chunk,
                                  uint32_t n) {
  const auto mode = SELMODE::VSEL_TENSOR_TENSOR_MODE;
  if constexpr (sizeof(T) == 8) {
    const LocalTensor<uint8_t> bits = s.Take<uint8_t>(chunk / 4);
    const LocalTensor<half> flags = s.Take<half>(chunk);
    const LocalTensor<int32_t> pairs = s.Take<int32_t>(chunk);
    AscendC::Cast(flags, cond, RoundMode::CAST_NONE, n);
    Sync();
    FlagsToPairBits(bits, flags, pairs, n);
    Sync();
    AscendC::Select(dst.template ReinterpretCast<float>(), bits, a.template ReinterpretCast<float>(),
                    b.template ReinterpretCast<float>(), mode, 2 * n);
  } else {
    const LocalTensor<uint8_t> bits = s.Take<uint8_t>(chunk / 8);
    const LocalTensor<half> wide = s.Take<half>(chunk);
    BoolToBits(bits, cond, wide, n);
    if constexpr (sizeof(T) == 4) {
      Sync();
      AscendC::Select(dst.template ReinterpretCast<float>(), bits, a.template ReinterpretCast<float>(),
                      b.template ReinterpretCast<float>(), mode, n);
    } else if constexpr (sizeof(T) == 2) {
      Sync();
      AscendC::Select(dst.template ReinterpretCast<half>(), bits, a.template ReinterpretCast<half>(),
                      b.template ReinterpretCast<half>(), mode, n);
    } else {
      const LocalTensor<half> x = s.Take<half>(chunk), y = s.Take<half>(chunk), z = s.Take<half>(chunk);
      AscendC::Cast(x, a.template ReinterpretCast<uint8_t>(), RoundMode::CAST_NONE, n);
      AscendC::Cast(y, b.template ReinterpretCast<uint8_t>(), RoundMode::CAST_NONE, n);
      Sync();
      AscendC::Select(z, bits, x, y, mode, n);
      Sync();
      AscendC::Cast(dst.template ReinterpretCast<uint8_t>(), z, RoundMode::CAST_RINT, n);
    }
  }
}

template <typename T, bool kScalarA, bool kScalarB>
__aicore__ inline void WhereLoop(const LocalTensor<T>& dst, const LocalTensor<uint8_t>& cond,
                                 const LocalTensor<T>& a, T a_value, const LocalTensor<T>& b, T b_value,
                                 const LocalTensor<uint8_t>& tmp, uint32_t count) {
  constexpr uint32_t kScalars = (kScalarA ? 1 : 0) + (kScalarB ? 1 : 0);
  const uint32_t chunk = Least(RoundUp(count, 256), ChunkElements(WhereEighths<T>(kScalars)));
  Scratch s(tmp);
  LocalTensor<T> fa = a, fb = b;
  if constexpr (kScalarA) {
    fa = s.Take<T>(chunk);
    FillScalar(fa, a_value, chunk);
  }
  if constexpr (kScalarB) {
    fb = s.Take<T>(chunk);
    FillScalar(fb, b_value, chunk);
  }
  for (uint32_t at = 0; at < count; at += chunk) {
    if (at || kScalars) Sync();
    WhereChunk<T>(dst[at], cond[at], kScalarA ? fa : a[at], kScalarB ? fb : b[at], s, chunk,
                  Least(count - at, chunk));
  }
}

}  // namespace detail

template <typename T>
__aicore__ inline void WhereSelect(const LocalTensor<T>& dst, const LocalTensor<uint8_t>& cond,
                                   const LocalTensor<T>& a, const LocalTensor<T>& b,
                                   const LocalTensor<uint8_t>& tmp, uint32_t count) {
  detail::WhereLoop<T, false, false>(dst, cond, a, T(), b, T(), tmp, count);
}
template <typename T>
__aicore__ inline void WhereSelect(const LocalTensor<T>& dst, const LocalTensor<uint8_t>& cond,
                                   const LocalTensor<T>& a, T b, const LocalTensor<uint8_t>& tmp,
                                   uint32_t count) {
  detail::WhereLoop<T, false, true>(dst, cond, a, T(), a, b, tmp, count);
}
template <typename T>
__aicore__ inline void WhereSelect(const LocalTensor<T>& dst, const LocalTensor<uint8_t>& cond, T a,
                                   const LocalTensor<T>& b, const LocalTensor<uint8_t>& tmp, uint32_t count) {
  detail::WhereLoop<T, true, false>(dst, cond, b, a, b, T(), tmp, count);
}
template <typename T>
__aicore__ inline void WhereSelect(const LocalTensor<T>& dst, const LocalTensor<uint8_t>& cond, T a, T b,
                                   const LocalTensor<uint8_t>& tmp, uint32_t count) {
  detail::WhereLoop<T, true, true>(dst, cond, dst, a, dst, b, tmp, count);
}

}  // namespace autofuse
