// Why: Sin, Cos, Tan on the whole float range. float, dst is not src.
//   SinOf, CosOf, TanOf (dst, src, tmp, count)
// Scratch: min(round_up(count,256), 256) * 289/8 + 4352 bytes (TrigTmpBytes): 13,600 at most. Uses Select's
// reserved 8 KiB. Infinities and NaN give NaN; odd functions keep the sign of zero.
//
// x = q*pi/2 + r. Up to 65,536, q has 16 bits and pi/2 is taken off in pieces of 8 bits whose products are
// exact. Beyond, the bits of 2/pi that matter are looked up by exponent and multiplied digit by digit (the
// method of Payne and Hanek). The long way runs only for a chunk that holds such a number: its maximum goes
// to the scalar unit, one V-to-S round trip a chunk. r comes as two floats.
#pragma once
#include "math_base.h"

namespace autofuse {
namespace detail {

constexpr uint32_t kTrigEighths = 289, kTrigBlocks = 135, kLongLanes = 64;
constexpr float kLongFrom = 65536.0f;

// (h, l) -= t: h becomes the rounded difference, its error joins l. Clobbers t, u, v.
__aicore__ inline void TakeOff(const Steps& o, const F& h, const F& l, const F& t, const F& u, const F& v) {
  o.Sub(u, h, t);
  o.Sub(v, u, h);
  o.Add(t, t, v);
  o.Sub(v, u, v);
  o.Sub(h, h, v);
  o.Sub(h, h, t);
  o.Add(l, l, h);
  o.Muls(h, u, 1.0f);
}

// q = rint(x * 2/pi), (h, l) = x - q*pi/2 for |x| < kLongFrom.
__aicore__ inline void ReduceShort(const Steps& o, const F& q, const F& h, const F& l, const F& x, const F& t,
                                   const F& u, const F& v) {
  o.Muls(q, x, 0.636619772367581343f);
  o.Integral(q, q, RoundMode::CAST_RINT);
  o.Muls(t, q, 1.5703125f);  // exact: so are the difference and the next one
  o.Sub(h, x, t);
  o.Muls(t, q, 0.0004825592041015625f);
  o.Sub(h, h, t);
  o.Muls(l, q, -5.390302953474238e-15f);
  o.Muls(t, q, 1.26659870147705078125e-06f);
  TakeOff(o, h, l, t, u, v);
  o.Muls(t, q, 9.895302355289459228515625e-10f);
  TakeOff(o, h, l, t, u, v);
  o.Muls(t, q, 2.55795384873636066913604736328e-12f);
  TakeOff(o, h, l, t, u, v);
}

// t mod 4 for t >= 0, exact; u is scratch.
__aicore__ inline void ModFour(const Steps& o, const F& t, const F& u) {
  o.Muls(u, t, 0.25f);
  o.Integral(u, u, RoundMode::CAST_FLOOR);
  o.Muls(u, u, 4.0f);
  o.Sub(t, t, u);
}

// The same for |x| >= kLongFrom, finite; other elements get some finite result. o.n <= kLongLanes. With x = M
// 256^a, M of four base-256 digits, and 2/pi = sum c_j 256^-(j+1), the term M_i c_j counts for 256^(i+a-j-1):
// powers above 0 are multiples of 4 turns, powers 0 to -8 are kept.
__aicore__ inline void ReduceLong(const Steps& o, const F& q, const F& h, const F& l, const F& x, Scratch s) {
  constexpr uint8_t digits[] = {0,   0,   162, 249, 131, 110, 78, 68,  21,  41, 252, 39,  87,
                                209, 245, 52,  221, 192, 219, 98, 149, 153, 60, 67,  144, 65};
  const F table = s.Take<float>(32);
  AscendC::Duplicate(table, 0.0f, 32);
  for (uint32_t k = 2; k < 26; ++k) {
    uint64_t lane[2] = {1ull << k, 0};
    Sync();
    AscendC::Duplicate(table, static_cast<float>(digits[k]), lane, 1, 1, 8);
  }
  Sync();
  const LocalTensor<uint16_t> fraction_block = WordBlock(s, 0x007fffffu),
                              one_block = WordBlock(s, 0x4b000000u);
  const F t = s.Take<float>(kLongLanes), u = s.Take<float>(kLongLanes), offsets = s.Take<float>(kLongLanes);
  F m[4], sum[9];
  for (uint32_t i = 0; i < 4; ++i) m[i] = s.Take<float>(kLongLanes);
  for (uint32_t i = 0; i < 9; ++i) sum[i] = s.Take<float>(kLongLanes);
  // t: |x| where it belongs here, so that exponents stay in the table. The exponent field less 142 is 8*index
  // + shift.
  o.Abs(t, x);
  o.Maxs(t, t, kLongFrom);
  o.Mins(t, t, 3.4028234663852886e38f);
  const LocalTensor<int32_t> e = u.ReinterpretCast<int32_t>(), index = offsets.ReinterpretCast<int32_t>();
  AscendC::ShiftRight(e, t.ReinterpretCast<int32_t>(), int32_t(23), o.N());
  Sync();
  AscendC::Adds(e, e, int32_t(-142), o.N());
  Sync();
  AscendC::ShiftRight(index, e, int32_t(3), o.N());
  Sync();
  const LocalTensor<int32_t> whole = m[0].ReinterpretCast<int32_t>();
  AscendC::Muls(whole, index, int32_t(-8), o.N());
  Sync();
  AscendC::Add(e, e, whole, o.N());  // the shift, 0 to 7
  AscendC::Muls(index, index, int32_t(4), o.N());
  Sync();
  AscendC::Adds(e, e, int32_t(127), o.N());
  Sync();
  AscendC::ShiftLeft(e, e, int32_t(23), o.N());  // u = 2^shift
  AndBlock(t.ReinterpretCast<uint16_t>(), t.ReinterpretCast<uint16_t>(), fraction_block, 2 * o.n);
  AscendC::Duplicate(m[0].ReinterpretCast<uint32_t>(), 0x4b000000u, o.N());
  Sync();
  o.Or(t, t, m[0]);  // the significand, 2^23 to 2^24
  o.Mul(t, t, u);
  const float weight[4] = {1.0f, 256.0f, 65536.0f, 16777216.0f};
  for (uint32_t i = 3; i > 0; --i) {
    o.Muls(m[i], t, 1.0f / weight[i]);
    o.Integral(m[i], m[i], RoundMode::CAST_FLOOR);
    o.Muls(u, m[i], weight[i]);
    o.Sub(t, t, u);
  }
  o.Muls(m[0], t, 1.0f);
  for (uint32_t k = 0; k < 9; ++k) o.Set(sum[k], 0.0f);
  for (uint32_t d = 0; d < 12; ++d) {
    AscendC::Gather(u, table, offsets.ReinterpretCast<uint32_t>(), 4 * d, o.n);
    Sync();
    for (uint32_t i = 0; i < 4; ++i) {
      if (i > d || d - i > 8) continue;
      o.Mul(t, m[i], u);
      o.Add(sum[d - i], sum[d - i], t);
    }
  }
  // h = the sum mod 4 down to 256^-2, exact; then its integer part goes to q and the rest joins as two
  // floats.
  o.Muls(t, sum[1], 1.0f / 256.0f);
  ModFour(o, t, u);
  ModFour(o, sum[0], u);
  o.Add(h, sum[0], t);
  o.Muls(t, sum[2], 1.0f / 65536.0f);
  o.Add(h, h, t);
  o.Integral(q, h, RoundMode::CAST_RINT);
  o.Sub(h, h, q);
  o.Set(l, 0.0f);
  float scale = -1.0f / 65536.0f;
  for (uint32_t k = 3; k < 6; ++k) {
    scale *= 1.0f / 256.0f;
    o.Muls(t, sum[k], scale);
    TakeOff(o, h, l, t, m[0], m[1]);
  }
  for (uint32_t k = 8; k > 5; --k) {  // the smallest first
    o.Muls(t, sum[k], k == 8 ? 0x1p-64f : k == 7 ? 0x1p-56f : 0x1p-48f);
    if (k == 8)
      o.Muls(u, t, 1.0f);
    else
      o.Add(u, u, t);
  }
  o.Add(l, l, u);
  // The sum of the tail may carry past a half: fold it in before q is final.
  o.Add(t, h, l);
  o.Sub(u, t, h);
  o.Sub(l, l, u);
  o.Muls(h, t, 1.0f);
  o.Integral(t, h, RoundMode::CAST_RINT);
  o.Sub(h, h, t);
  o.Add(q, q, t);
  // (h, l) *= pi/2, the head of h times a head of pi/2 being exact.
  const LocalTensor<uint16_t> head_block = one_block;
  AscendC::Duplicate(head_block.ReinterpretCast<uint32_t>(), 0xfffff000u, 8);
  Sync();
  o.Head(m[0], h, head_block);
  o.Sub(m[1], h, m[0]);
  o.Muls(t, m[0], 1.5703125f);
  o.Muls(u, m[0], 0.0004838267923332751f);
  o.Muls(m[2], l, kPiOver2Hi);
  o.Add(u, u, m[2]);
  o.Muls(m[2], m[1], 1.5703125f);
  o.Add(u, u, m[2]);
  o.Muls(m[2], m[1], 0.0004838267923332751f);
  o.Add(u, u, m[2]);
  o.Add(h, t, u);
  o.Sub(t, h, t);
  o.Sub(l, u, t);
  // The sign of x.
  o.SignOnly(t, x);
  o.Set(u, 1.0f);
  o.Or(t, t, u);
  o.Mul(q, q, t);
  o.Mul(h, h, t);
  o.Mul(l, l, t);
}

// Whether any |x| reaches kLongFrom. It is a maximum of zeros and ones, so NaN has no say. `most` holds one
// float, `flags` n, `work` what ReduceMax asks for.
__aicore__ inline bool AnyLong(const Steps& o, const F& magnitude, const F& flags, const F& most,
                               const F& work, const B& bits) {
  o.Test(bits, magnitude, kLongFrom, CMPMODE::GE);
  o.Set(flags, 1.0f);
  o.Pick(flags, bits, flags, 0.0f);
  AscendC::ReduceMax(most, flags, work, o.N());
  const int32_t ready = static_cast<int32_t>(AscendC::GetTPipePtr()->FetchEventID(AscendC::HardEvent::V_S));
  AscendC::SetFlag<AscendC::HardEvent::V_S>(ready);
  AscendC::WaitFlag<AscendC::HardEvent::V_S>(ready);
  const float value = most.GetValue(0);
  const int32_t read = static_cast<int32_t>(AscendC::GetTPipePtr()->FetchEventID(AscendC::HardEvent::S_V));
  AscendC::SetFlag<AscendC::HardEvent::S_V>(read);
  AscendC::WaitFlag<AscendC::HardEvent::S_V>(read);
  Sync();
  return value > 0.5f;
}

struct Reduced {
  F q, h, l, t, u, v;
  B bits;
};
__aicore__ inline Reduced Reduce(const Steps& o, const F& x, Scratch s, uint32_t chunk) {
  Reduced r;
  r.q = s.Take<float>(chunk);
  r.h = s.Take<float>(chunk);
  r.l = s.Take<float>(chunk);
  r.t = s.Take<float>(chunk);
  r.u = s.Take<float>(chunk);
  r.v = s.Take<float>(chunk);
  const F lq = s.Take<float>(chunk), lh = s.Take<float>(chunk), ll = s.Take<float>(chunk);
  r.bits = s.Take<uint8_t>(chunk / 8);
  const F most = s.Take<float>(8);
  o.Abs(r.t, x);
  const bool any = AnyLong(o, r.t, r.v, most, r.u, r.bits);
  ReduceShort(o, r.q, r.h, r.l, x, r.t, r.u, r.v);
  if (any) {
    for (uint32_t at = 0; at < o.n; at += kLongLanes)
      ReduceLong(Steps{Least(o.n - at, kLongLanes), o.sign_block}, lq[at], lh[at], ll[at], x[at], s);
    o.Abs(r.t, x);
    o.Test(r.bits, r.t, kLongFrom, CMPMODE::LT);
    o.Pick(r.q, r.bits, r.q, lq);
    o.Pick(r.h, r.bits, r.h, lh);
    o.Pick(r.l, r.bits, r.l, ll);
    o.Sub(r.t, x, x);  // NaN for infinities and NaN, else 0
    o.Add(r.h, r.h, r.t);
  }
  return r;
}

// sin(r + l) = r + (r t P(t) + l), error 2^-37 relative to r; t = r*r.
__aicore__ inline void SinSeries(const Steps& o, const F& d, const F& r, const F& l, const F& t) {
  constexpr float c[] = {-0.1666666716337204f, 0.008333329111337662f, -0.0001983921101782471f,
                         2.717159077292308e-06f};
  o.Poly(d, t, c);
  o.Mul(d, d, t);
  o.Mul(d, d, r);
  o.Add(d, d, l);
  o.Add(d, d, r);
}
// cos(r + l) = 1 - t/2 + (t^2 P(t) - r l), error 2^-42. u is scratch.
__aicore__ inline void CosSeries(const Steps& o, const F& d, const F& r, const F& l, const F& t, const F& u) {
  constexpr float c[] = {0.0416666679084301f, -0.0013888883404433727f, 2.479934846633114e-05f,
                         -2.719666554185096e-07f};
  o.Poly(d, t, c);
  o.Mul(d, d, t);
  o.Mul(d, d, t);
  o.Mul(u, r, l);
  o.Sub(d, d, u);
  o.Muls(u, t, -0.5f);
  o.Add(d, d, u);
  o.Adds(d, d, 1.0f);
}

// sin of the quadrant q + turn: the odd quadrants take the cosine, the upper two change the sign.
__aicore__ inline void SinOrCos(const F& dst, const F& src, const B& tmp, uint32_t count, float turn) {
  MathLoop<kTrigEighths, kTrigBlocks>(tmp, count,
                                      [&](const Steps& o, uint32_t at, Scratch& s, uint32_t chunk) {
                                        const F d = dst[at], x = src[at];
                                        const Reduced r = Reduce(o, x, s, chunk);
                                        o.Mul(r.t, r.h, r.h);
                                        SinSeries(o, d, r.h, r.l, r.t);
                                        CosSeries(o, r.u, r.h, r.l, r.t, r.v);
                                        if (turn != 0.0f) o.Adds(r.q, r.q, turn);
                                        o.Muls(r.t, r.q, 0.5f);
                                        o.Integral(r.t, r.t, RoundMode::CAST_FLOOR);  // q / 2
                                        o.Muls(r.v, r.t, 2.0f);
                                        o.Sub(r.q, r.q, r.v);  // 1 in odd quadrants
                                        o.Test(r.bits, r.q, 0.5f, CMPMODE::LT);
                                        o.Pick(d, r.bits, d, r.u);
                                        o.Muls(r.v, r.t, 0.5f);
                                        o.Integral(r.v, r.v, RoundMode::CAST_FLOOR);
                                        o.Muls(r.v, r.v, 2.0f);
                                        o.Sub(r.t, r.t, r.v);  // 1 in the upper quadrants
                                        o.Muls(r.t, r.t, -2.0f);
                                        o.Adds(r.t, r.t, 1.0f);
                                        o.Mul(d, d, r.t);
                                        if (turn == 0.0f) {  // sin(-0) is -0
                                          o.Test(r.bits, x, 0.0f, CMPMODE::EQ);
                                          o.Pick(d, r.bits, x, d);
                                        }
                                      });
}

}  // namespace detail

__aicore__ constexpr inline uint32_t TrigTmpBytes(uint32_t count) {
  return detail::MathBytes<detail::kTrigEighths, detail::kTrigBlocks>(count);
}
__aicore__ inline void SinOf(const LocalTensor<float>& dst, const LocalTensor<float>& src,
                             const LocalTensor<uint8_t>& tmp, uint32_t count) {
  detail::SinOrCos(dst, src, tmp, count, 0.0f);
}
__aicore__ inline void CosOf(const LocalTensor<float>& dst, const LocalTensor<float>& src,
                             const LocalTensor<uint8_t>& tmp, uint32_t count) {
  detail::SinOrCos(dst, src, tmp, count, 1.0f);
}
// r + r^3 P(r^2) + l (1 + tan^2), error 2^-29; in odd quadrants -1 over it.
__aicore__ inline void TanOf(const LocalTensor<float>& dst, const LocalTensor<float>& src,
                             const LocalTensor<uint8_t>& tmp, uint32_t count) {
  using namespace detail;
  MathLoop<kTrigEighths, kTrigBlocks>(
      tmp, count, [&](const Steps& o, uint32_t at, Scratch& s, uint32_t chunk) {
        constexpr float c[] = {0.3333335220813751f,  0.13332527875900269f,  0.05407557263970375f,
                               0.02119966223835945f, 0.011053705587983131f, -0.00019129496649838984f,
                               0.004516881424933672f};
        const F d = dst[at], x = src[at];
        const Reduced r = Reduce(o, x, s, chunk);
        o.Mul(r.t, r.h, r.h);
        o.Poly(d, r.t, c);
        o.Mul(d, d, r.t);
        o.Mul(d, d, r.h);
        o.Mul(r.u, r.l, r.t);
        o.Add(r.u, r.u, r.l);
        o.Add(d, d, r.u);
        o.Add(d, d, r.h);
        o.Set(r.u, -1.0f);
        o.Div(r.u, r.u, d);
        o.Muls(r.t, r.q, 0.5f);
        o.Integral(r.t, r.t, RoundMode::CAST_FLOOR);
        o.Muls(r.t, r.t, 2.0f);
        o.Sub(r.q, r.q, r.t);
        o.Test(r.bits, r.q, 0.5f, CMPMODE::LT);
        o.Pick(d, r.bits, d, r.u);
        o.Test(r.bits, x, 0.0f, CMPMODE::EQ);
        o.Pick(d, r.bits, x, d);
      });
}

}  // namespace autofuse
