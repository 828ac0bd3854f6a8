// Why: division and remainder of int32 and int16, which the unit has no instruction for, and TensorFlow's
// Round.
//   DivideInt<kFloor, kRemainder>(dst, a, b, tmp, count)   T = int32 int16; dst is no source
//     kFloor: rounded towards minus infinity (FloorDiv, FloorMod), else towards zero (TruncateDiv,
//     TruncateMod, Div, Mod) kRemainder: a - quotient*b instead of the quotient
//   Exact for every a and every b but 0, and but int32 b = INT32_MIN and a quotient beyond the type (lowest /
//   -1), for which the result is some number: TensorFlow raises an error on 0, so only a divisor known not to
//   be 0 may come here. TensorFlow's own int32 FloorDiv overflows where the signs differ and |a| + |b| >
//   2^31; there this one is right. Scratch (DivideIntTmpBytes<T>): min(round_up(count,256), chunk) * e/8
//   bytes, e = 160 int32, 96 int16. RoundOf(dst, src, tmp, count)  float, to nearest, halves to even; as
//   TensorFlow's Round gives +0 in [-0.5, 0) (Rint is Cast with CAST_RINT). Scratch (RoundOfTmpBytes):
//   min(round_up(count,256), 1024) * 8 bytes. dst is not src.
#pragma once
#include "common.h"

namespace autofuse {

template <typename T>
__aicore__ constexpr inline uint32_t DivideIntTmpBytes(uint32_t count) {
  return ScratchBytes(count, sizeof(T) == 4 ? 160 : 96);
}

namespace detail {

// Quotient in q, remainder times the sign of b in r, 0 <= r < |b|. Two float estimates leave the quotient at
// most one off; products wrap, but every remainder fits.
__aicore__ inline void FloorDivide32(const LocalTensor<int32_t>& q, const LocalTensor<int32_t>& r,
                                     const LocalTensor<int32_t>& size, const LocalTensor<int32_t>& t,
                                     const LocalTensor<float>& x, const LocalTensor<float>& y,
                                     const LocalTensor<int32_t>& a, const LocalTensor<int32_t>& b,
                                     uint32_t n) {
  const int32_t c = static_cast<int32_t>(n);
  AscendC::Cast(x, a, RoundMode::CAST_RINT, n);
  AscendC::Cast(y, b, RoundMode::CAST_RINT, n);
  Sync();
  AscendC::Div(x, x, y, c);
  Sync();
  AscendC::Cast(q, x, RoundMode::CAST_TRUNC, n);
  Sync();
  AscendC::Mul(t, q, b, c);
  Sync();
  AscendC::Sub(r, a, t, c);
  Sync();
  AscendC::Cast(x, r, RoundMode::CAST_RINT, n);
  Sync();
  AscendC::Div(x, x, y, c);
  Sync();
  AscendC::Cast(t, x, RoundMode::CAST_TRUNC, n);
  Sync();
  AscendC::Add(q, q, t, c);
  Sync();
  AscendC::Mul(t, t, b, c);
  Sync();
  AscendC::Sub(r, r, t, c);
  Sync();
  // size = |b|, t = the sign of b as -1 or 1
  AscendC::ShiftRight(t, b, int32_t(31), c);
  Sync();
  AscendC::Muls(t, t, int32_t(2), c);
  Sync();
  AscendC::Adds(t, t, int32_t(1), c);
  Sync();
  AscendC::Mul(r, r, t, c);
  AscendC::Mul(size, b, t, c);
  Sync();
  // r < 0: one back
  AscendC::ShiftRight(t, r, int32_t(31), c);
  Sync();
  AscendC::Add(q, q, t, c);
  Sync();
  AscendC::Mul(t, t, size, c);
  Sync();
  AscendC::Sub(r, r, t, c);
  Sync();
  // r >= size: one on
  AscendC::Sub(t, r, size, c);
  Sync();
  AscendC::ShiftRight(t, t, int32_t(31), c);
  Sync();
  AscendC::Adds(t, t, int32_t(1), c);
  Sync();
  AscendC::Add(q, q, t, c);
  Sync();
  AscendC::Mul(t, t, size, c);
  Sync();
  AscendC::Sub(r, r, t, c);
  Sync();
}

// Towards zero: where the signs differ and something remains, one on and one size off. t, u are scratch.
__aicore__ inline void FloorToTrunc32(const LocalTensor<int32_t>& q, const LocalTensor<int32_t>& r,
                                      const LocalTensor<int32_t>& size, const LocalTensor<int32_t>& t,
                                      const LocalTensor<int32_t>& u, const LocalTensor<int32_t>& a,
                                      const LocalTensor<int32_t>& b, uint32_t n) {
  const int32_t c = static_cast<int32_t>(n);
  AscendC::ShiftRight(t, a, int32_t(31), c);
  AscendC::ShiftRight(u, b, int32_t(31), c);
  Sync();
  AscendC::Sub(t, t, u, c);
  Sync();
  AscendC::Mins(u, r, int32_t(1), c);
  Sync();
  AscendC::Mul(t, t, t, c);
  Sync();
  AscendC::Mul(t, t, u, c);
  Sync();
  AscendC::Add(q, q, t, c);
  Sync();
  AscendC::Mul(t, t, size, c);
  Sync();
  AscendC::Sub(r, r, t, c);
  Sync();
}
}  // namespace detail

template <bool kFloor, bool kRemainder, typename T>
__aicore__ inline void DivideInt(const LocalTensor<T>& dst, const LocalTensor<T>& a, const LocalTensor<T>& b,
                                 const LocalTensor<uint8_t>& tmp, uint32_t count) {
  const uint32_t chunk = Least(RoundUp(count, 256), ChunkElements(sizeof(T) == 4 ? 160 : 96));
  for (uint32_t at = 0; at < count; at += chunk) {
    const uint32_t n = Least(count - at, chunk);
    const int32_t c = static_cast<int32_t>(n);
    Scratch s(tmp);
    if (at) Sync();
    if constexpr (sizeof(T) == 2) {  // float holds the operands and decides the quotient exactly
      const LocalTensor<float> x = s.Take<float>(chunk), y = s.Take<float>(chunk), q = s.Take<float>(chunk);
      AscendC::Cast(x, a[at], RoundMode::CAST_NONE, n);
      AscendC::Cast(y, b[at], RoundMode::CAST_NONE, n);
      Sync();
      AscendC::Div(q, x, y, c);
      Sync();
      AscendC::Cast(q, q, kFloor ? RoundMode::CAST_FLOOR : RoundMode::CAST_TRUNC, n);
      if constexpr (kRemainder) {
        Sync();
        AscendC::Mul(q, q, y, c);
        Sync();
        AscendC::Sub(q, x, q, c);
      }
      Sync();
      AscendC::Cast(dst[at], q, RoundMode::CAST_TRUNC, n);
    } else {
      const LocalTensor<int32_t> r = s.Take<int32_t>(chunk), size = s.Take<int32_t>(chunk),
                                 t = s.Take<int32_t>(chunk);
      const LocalTensor<float> x = s.Take<float>(chunk), y = s.Take<float>(chunk);
      const LocalTensor<int32_t> q = dst[at];
      detail::FloorDivide32(q, r, size, t, x, y, a[at], b[at], n);
      if constexpr (!kFloor)
        detail::FloorToTrunc32(q, r, size, t, x.ReinterpretCast<int32_t>(), a[at], b[at], n);
      if constexpr (kRemainder) {  // give r the sign of b back
        AscendC::ShiftRight(t, b[at], int32_t(31), c);
        Sync();
        AscendC::Muls(t, t, int32_t(2), c);
        Sync();
        AscendC::Adds(t, t, int32_t(1), c);
        Sync();
        AscendC::Mul(q, r, t, c);
      }
    }
  }
}

__aicore__ constexpr inline uint32_t RoundOfTmpBytes(uint32_t count) { return ScratchBytes(count, 64); }
__aicore__ inline void RoundOf(const LocalTensor<float>& dst, const LocalTensor<float>& src,
                               const LocalTensor<uint8_t>& tmp, uint32_t count) {
  // floor(x) - (floor(t) - rint(t)), t being x cut to where it may have a fraction: the difference is 0 or
  // -1, and subtracting it makes -1 + 1 = +0 but keeps -0.
  const uint32_t chunk = Least(RoundUp(count, 256), ChunkElements(64));
  for (uint32_t at = 0; at < count; at += chunk) {
    const uint32_t n = Least(count - at, chunk);
    const int32_t c = static_cast<int32_t>(n);
    Scratch s(tmp);
    const LocalTensor<float> t = s.Take<float>(chunk), u = s.Take<float>(chunk), d = dst[at];
    if (at) Sync();
    AscendC::Mins(t, src[at], 8388608.0f, c);
    AscendC::Cast(d, src[at], RoundMode::CAST_FLOOR, n);
    Sync();
    AscendC::Maxs(t, t, -8388608.0f, c);
    Sync();
    AscendC::Cast(u, t, RoundMode::CAST_FLOOR, n);
    Sync();
    AscendC::Cast(t, t, RoundMode::CAST_RINT, n);
    Sync();
    AscendC::Sub(t, u, t, c);
    Sync();
    AscendC::Sub(d, d, t, c);
  }
}

}  // namespace autofuse
