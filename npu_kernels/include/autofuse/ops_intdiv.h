// Why: int32 division and remainder by a constant that is not 0; the unit has no integer division.
//   TruncateDivBy FloorDivBy TruncateModBy FloorModBy (dst, src, divisor, tmp, count)     in place;
//   IntDivTmpBytes(count)
// The quotient is estimated in float twice (the remainder of the first estimate is divided again), which
// leaves it off by at most one; the remainder's sign corrects that. Exact for every int32. FloorDivBy follows
// TensorFlow's formula, (1 - |a| - |b|) / |b| for different signs, with its wrap-around at the ends of the
// range. The divisor is not INT_MIN.
#pragma once
#include "ops_vector.h"

namespace autofuse {
namespace ops {

struct IntLanes {
  int32_t n;

  __aicore__ inline void Add(const Ints& d, const Ints& a, const Ints& b) const {
    AscendC::Add(d, a, b, n);
    Sync();
  }
  __aicore__ inline void Sub(const Ints& d, const Ints& a, const Ints& b) const {
    AscendC::Sub(d, a, b, n);
    Sync();
  }
  __aicore__ inline void Mul(const Ints& d, const Ints& a, const Ints& b) const {
    AscendC::Mul(d, a, b, n);
    Sync();
  }
  __aicore__ inline void Adds(const Ints& d, const Ints& a, int32_t s) const {
    AscendC::Adds(d, a, s, n);
    Sync();
  }
  __aicore__ inline void Muls(const Ints& d, const Ints& a, int32_t s) const {
    AscendC::Muls(d, a, s, n);
    Sync();
  }
  // -1 where a is negative, else 0
  __aicore__ inline void Negative(const Ints& d, const Ints& a) const {
    AscendC::ShiftRight(d, a, int32_t(31), n);
    Sync();
  }
};

constexpr uint32_t kIntDivTensors = 5;

// q, r = a / d and a % d as C has them, d > 0. a survives; t and u are scratch.
__aicore__ inline void DivideBy(const IntLanes& v, const Ints& q, const Ints& r, const Ints& a, int32_t d,
                                const Ints& t, const Ints& u) {
  const float inverse = 1.0f / static_cast<float>(d);
  const uint32_t n = static_cast<uint32_t>(v.n);
  const Floats f = u.ReinterpretCast<float>();
  for (int round = 0; round < 2; ++round) {  // first of a, then of what that left
    AscendC::Cast(f, round ? r : a, RoundMode::CAST_RINT, n);
    Sync();
    AscendC::Muls(f, f, inverse, v.n);
    Sync();
    AscendC::Cast(t, f, RoundMode::CAST_RINT, n);
    Sync();
    if (round) {
      v.Add(q, q, t);
    } else {
      v.Adds(q, t, 0);
    }
    v.Muls(t, t, d);
    v.Sub(r, round ? r : a, t);
  }
  // The remainder must have a's sign: +1 where a < 0 and r > 0, -1 where a >= 0 and r < 0.
  v.Negative(u, a);
  v.Muls(t, r, -1);
  v.Negative(t, t);
  v.Mul(t, t, u);
  v.Add(q, q, t);
  v.Muls(t, t, d);
  v.Sub(r, r, t);
  v.Adds(u, u, 1);
  v.Negative(t, r);
  v.Mul(t, t, u);
  v.Add(q, q, t);
  v.Muls(t, t, d);
  v.Sub(r, r, t);
}

enum class IntDivision { kTruncateDiv, kFloorDiv, kTruncateMod, kFloorMod };

template <IntDivision kind>
__aicore__ inline void IntDivChunk(const IntLanes& v, const Ints& dst, const Ints& a, int32_t divisor,
                                   Scratch s, uint32_t chunk) {
  const Ints q = s.Take<int32_t>(chunk), r = s.Take<int32_t>(chunk), t = s.Take<int32_t>(chunk),
             u = s.Take<int32_t>(chunk), b = s.Take<int32_t>(chunk);
  const int32_t d = divisor < 0 ? -divisor : divisor;
  if constexpr (kind == IntDivision::kFloorDiv) {
    v.Negative(b, a);
    if (divisor > 0) {  // a < 0: a + 1 - d
      v.Muls(b, b, d - 1);
      v.Add(b, a, b);
      DivideBy(v, q, r, b, d, t, u);
      v.Adds(dst, q, 0);
    } else {  // a >= 0: 1 - d - a by d; a < 0: a by -d
      v.Muls(t, a, -1);
      v.Adds(t, t, 1 - d);
      v.Sub(t, t, a);
      v.Adds(b, b, 1);
      v.Mul(b, b, t);
      v.Add(b, b, a);
      DivideBy(v, q, r, b, d, t, u);
      v.Negative(b, a);
      v.Muls(b, b, 2);
      v.Adds(b, b, 1);
      v.Mul(dst, q, b);
    }
  } else {
    DivideBy(v, q, r, a, d, t, u);
    if constexpr (kind == IntDivision::kTruncateDiv) {
      v.Muls(dst, q, divisor < 0 ? -1 : 1);
    } else if constexpr (kind == IntDivision::kTruncateMod) {
      v.Adds(dst, r, 0);
    } else {  // a remainder of the other sign than the divisor's moves by the divisor
      v.Muls(t, r, divisor < 0 ? -1 : 1);
      v.Negative(t, t);
      v.Muls(t, t, divisor);
      v.Sub(dst, r, t);
    }
  }
}

template <IntDivision kind>
__aicore__ inline void IntDiv(const Ints& dst, const Ints& src, int32_t divisor,
                              const LocalTensor<uint8_t>& tmp, uint32_t count) {
  const uint32_t chunk = Least(RoundUp(count, 256), OpsChunk<kIntDivTensors>());
  for (uint32_t at = 0; at < count; at += chunk) {
    if (at) Sync();
    IntDivChunk<kind>(IntLanes{static_cast<int32_t>(Least(count - at, chunk))}, dst[at], src[at], divisor,
                      Scratch(tmp), chunk);
  }
}

}  // namespace ops

__aicore__ constexpr inline uint32_t IntDivTmpBytes(uint32_t count) {
  return ops::OpsTmpBytes<ops::kIntDivTensors>(count);
}
__aicore__ inline void TruncateDivBy(const LocalTensor<int32_t>& dst, const LocalTensor<int32_t>& src,
                                     int32_t divisor, const LocalTensor<uint8_t>& tmp, uint32_t count) {
  ops::IntDiv<ops::IntDivision::kTruncateDiv>(dst, src, divisor, tmp, count);
}
__aicore__ inline void FloorDivBy(const LocalTensor<int32_t>& dst, const LocalTensor<int32_t>& src,
                                  int32_t divisor, const LocalTensor<uint8_t>& tmp, uint32_t count) {
  ops::IntDiv<ops::IntDivision::kFloorDiv>(dst, src, divisor, tmp, count);
}
__aicore__ inline void TruncateModBy(const LocalTensor<int32_t>& dst, const LocalTensor<int32_t>& src,
                                     int32_t divisor, const LocalTensor<uint8_t>& tmp, uint32_t count) {
  ops::IntDiv<ops::IntDivision::kTruncateMod>(dst, src, divisor, tmp, count);
}
__aicore__ inline void FloorModBy(const LocalTensor<int32_t>& dst, const LocalTensor<int32_t>& src,
                                  int32_t divisor, const LocalTensor<uint8_t>& tmp, uint32_t count) {
  ops::IntDiv<ops::IntDivision::kFloorMod>(dst, src, divisor, tmp, count);
}

}  // namespace autofuse
