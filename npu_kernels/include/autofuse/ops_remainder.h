// Why: the exact remainder of float division: C's fmod, and TensorFlow's FloorMod, which adds the divisor
// where the remainder is not 0 and has the other sign.
//   TruncateMod FloorMod (dst, x, y, tmp, count)     in place (dst may be x or y); XxxTmpBytes(count)
// A quotient up to 1024 leaves an exact remainder on the vector unit: the divisor is split at 12 bits, and
// the quotient is rounded to nearest so that what stays fits 24 bits. Other quotients (and those that are no
// numbers) are reduced one by one on the scalar unit by integer division of the significands.
#pragma once
#include "ops_vector.h"

namespace autofuse {
namespace ops {

constexpr float kLargestVectorQuotient = 1024.0f;

// |x| fmod |y| as bits, for any bits of x and y.
__aicore__ inline uint32_t RemainderBits(uint32_t x, uint32_t y) {
  x &= 0x7fffffffu;
  y &= 0x7fffffffu;
  if (x >= 0x7f800000u || y > 0x7f800000u || y == 0) return 0x7fc00000u;
  if (x < y) return x;
  int32_t ex = static_cast<int32_t>(x >> 23), ey = static_cast<int32_t>(y >> 23);
  const uint64_t my = ey ? (y & 0x7fffffu) | 0x800000u : y;
  uint64_t m = ex ? (x & 0x7fffffu) | 0x800000u : x;
  ex = ex ? ex : 1;
  ey = ey ? ey : 1;
  m %= my;
  for (int32_t left = ex - ey; left > 0 && m; left -= 40) m = (m << (left < 40 ? left : 40)) % my;
  if (!m) return 0;
  uint32_t r = static_cast<uint32_t>(m);
  while (!(r & 0x800000u) && ey > 1) {
    r <<= 1;
    --ey;
  }
  return r & 0x800000u ? static_cast<uint32_t>(ey) << 23 | (r & 0x7fffffu) : r;
}

// r[i] = |x[i]| fmod |y[i]| where `vector` has no bit.
__aicore__ inline void RemaindersOneByOne(const Floats& r, const Floats& x, const Floats& y,
                                          const Bits& vector, uint32_t n) {
  AscendC::TPipe* const pipe = GetTPipePtr();
  const auto ready = static_cast<AscendC::TEventID>(pipe->FetchEventID(AscendC::HardEvent::V_S));
  AscendC::SetFlag<AscendC::HardEvent::V_S>(ready);
  AscendC::WaitFlag<AscendC::HardEvent::V_S>(ready);
  const LocalTensor<uint32_t> words = vector.ReinterpretCast<uint32_t>(),
                              result = r.ReinterpretCast<uint32_t>(), xs = x.ReinterpretCast<uint32_t>(),
                              ys = y.ReinterpretCast<uint32_t>();
  for (uint32_t at = 0; at < n; at += 32) {
    uint32_t word = ~words.GetValue(at / 32);
    if (n - at < 32) word &= (1u << (n - at)) - 1;
    for (uint32_t i = at; word; ++i, word >>= 1)
      if (word & 1) result.SetValue(i, RemainderBits(xs.GetValue(i), ys.GetValue(i)));
  }
  const auto done = static_cast<AscendC::TEventID>(pipe->FetchEventID(AscendC::HardEvent::S_V));
  AscendC::SetFlag<AscendC::HardEvent::S_V>(done);
  AscendC::WaitFlag<AscendC::HardEvent::S_V>(done);
}

template <bool kFloor>
struct RemainderBody {
  static constexpr uint32_t kTensors = 8;
  __aicore__ static inline void Run(const Lanes& v, const Floats& dst, const Floats& x, const Floats& y,
                                    Scratch s, uint32_t chunk) {
    const Floats ax = s.Take<float>(chunk), ay = s.Take<float>(chunk), q = s.Take<float>(chunk),
                 r = s.Take<float>(chunk), t = s.Take<float>(chunk), u = s.Take<float>(chunk);
    const Bits bits = s.Take<uint8_t>(chunk / 8), other = s.Take<uint8_t>(chunk / 8);
    const Words head = Pattern(v, s, chunk, kHead12), sign = Pattern(v, s, chunk, kSign);
    v.Abs(ax, x);
    v.Abs(ay, y);
    v.DefineRest(q);
    v.Div(q, ax, ay);
    v.Compare(bits, q, kLargestVectorQuotient, CMPMODE::LE);
    v.Rint(q, q);
    v.And(t, ay, head);
    v.Sub(u, ay, t);
    v.Mul(t, t, q);
    v.Sub(r, ax, t);
    v.Mul(t, u, q);
    v.Sub(r, r, t);
    v.Compare(other, r, 0.0f, CMPMODE::LT);
    v.Add(t, r, ay);
    v.Choose(r, other, t, r);
    v.Compare(other, ax, ay, CMPMODE::LT);
    v.Choose(r, other, ax, r);
    RemaindersOneByOne(r, x, y, bits, v.n);
    if constexpr (!kFloor) {
      v.WithSign(dst, r, x, sign, t);
    } else {
      v.WithSign(q, r, x, sign, t);
      v.Add(u, q, y);
      // the signs differ where exactly one of them is set
      const Ints a = t.ReinterpretCast<int32_t>(), b = ax.ReinterpretCast<int32_t>();
      AscendC::ShiftRight(a, q.ReinterpretCast<int32_t>(), int32_t(31), v.Count());
      AscendC::ShiftRight(b, y.ReinterpretCast<int32_t>(), int32_t(31), v.Count());
      Sync();
      AscendC::Add(a, a, b, v.Count());
      Sync();
      AscendC::CompareScalar(bits, a, int32_t(-1), CMPMODE::EQ, RoundUp(v.n, 64));
      Sync();
      v.Choose(u, bits, u, q);
      v.Compare(other, r, 0.0f, CMPMODE::NE);
      v.Choose(dst, other, u, q);
    }
  }
};
using TruncateModBody = RemainderBody<false>;
using FloorModBody = RemainderBody<true>;

}  // namespace ops

AUTOFUSE_OPS_BINARY(TruncateMod)
AUTOFUSE_OPS_BINARY(FloorMod)

}  // namespace autofuse
