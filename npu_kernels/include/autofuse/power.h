// Why: Pow on floats with C's results on every special case. dst is no source.
//   PowOf(dst, x, y, tmp, count)
// Scratch: min(round_up(count,256), 256) * 325/8 + 64 bytes (PowOfTmpBytes). Uses Select's reserved 8 KiB.
//
// |x| = 2^e m with m in [sqrt(1/2), sqrt(2)). log2 |x| = e + (2 atanh(s))/ln 2 with s = (m-1)/(m+1) is formed
// as a sum of two floats (the quotient with its remainder, products of 12-bit heads being exact), multiplied
// by y the same way, and split into an integer n and a rest f: the result is 2^n exp(f ln 2). Its sign and
// the special cases follow.
#pragma once
#include "math_base.h"

namespace autofuse {

namespace detail {
constexpr uint32_t kPowEighths = 10 * 32 + 5;
}
__aicore__ constexpr inline uint32_t PowOfTmpBytes(uint32_t count) {
  return detail::MathBytes<detail::kPowEighths, 1>(count);
}

namespace detail {

// (h, l) = log2 of the positive finite a, |l| small against h. Clobbers a. e is the exponent, then scratch.
__aicore__ inline void Log2Pair(const Steps& o, const F& h, const F& l, const F& a, const F& e, const F& m,
                                const F& g, const F& t, const F& u, const F& v, const F& w, const B& bits,
                                const LocalTensor<uint16_t>& head) {
  // R of atanh(s) = s + s^3/3 + s^5 R(s^2), |s| <= 0.172: error 2^-37 of the whole.
  constexpr float c[] = {0.2000008076429367f, 0.14273066818714142f, 0.11721660196781158f};
  // Subnormal numbers are scaled by 2^24 first.
  o.Test(bits, a, 1.1754943508222875e-38f, CMPMODE::LT);
  o.Muls(t, a, 16777216.0f);
  o.Pick(a, bits, t, a);
  o.Set(v, -24.0f);
  o.Pick(v, bits, v, 0.0f);
  const LocalTensor<int32_t> word = t.ReinterpretCast<int32_t>(), bits_of_a = a.ReinterpretCast<int32_t>(),
                             mantissa = m.ReinterpretCast<int32_t>();
  AscendC::Adds(word, bits_of_a, int32_t(-0x3f3504f3), o.N());
  Sync();
  AscendC::ShiftRight(word, word, int32_t(23), o.N());
  Sync();
  AscendC::Cast(e, word, RoundMode::CAST_RINT, o.n);
  AscendC::Muls(mantissa, word, int32_t(-(1 << 23)), o.N());
  Sync();
  AscendC::Add(mantissa, bits_of_a, mantissa, o.N());
  Sync();
  o.Add(e, e, v);
  // s = f/g, f = m - 1 exact, g = m + 1 with the error l.
  o.Adds(h, m, -1.0f);
  o.Adds(g, m, 1.0f);
  o.Adds(l, g, -1.0f);
  o.Sub(l, m, l);
  o.Div(a, h, g);  // s
  // The remainder h - s*g - s*l, in exact products of heads: s = u + t, g = v + m.
  o.Head(u, a, head);
  o.Sub(t, a, u);
  o.Head(v, g, head);
  o.Sub(m, g, v);
  // Each step is exact; s*l, inexact but small, goes last.
  o.Mul(l, l, a);
  o.Mul(w, u, v);
  o.Sub(h, h, w);
  o.Mul(w, u, m);
  o.Sub(h, h, w);
  o.Mul(w, t, v);
  o.Sub(h, h, w);
  o.Mul(w, t, m);
  o.Sub(h, h, w);
  o.Sub(h, h, l);
  o.Div(h, h, g);  // what s lacks
  // s^3/3 counts for 1% of the sum, so it too comes as two floats: s^2 = v + g with v = u*u exact, the head
  // of v times u is exact (l), and so is the head of that times a head of 1/3.
  o.Mul(v, u, u);
  o.Head(w, v, head);
  o.Sub(g, v, w);
  o.Mul(l, u, w);
  o.Mul(m, u, g);
  o.Mul(g, t, v);
  o.Add(m, m, g);
  o.Add(g, a, u);
  o.Mul(g, g, t);
  o.Mul(w, g, a);
  o.Add(m, m, w);  // s^3 = l + m
  o.Add(v, v, g);
  o.Mul(w, v, h);
  o.Add(h, h, w);  // what s lacks counts in s^3/3 too: s^2 times it
  o.Poly(w, v, c);
  o.Mul(w, w, v);
  o.Mul(w, w, v);
  o.Mul(w, w, a);
  o.Head(g, l, head);
  o.Sub(u, l, g);
  o.Add(u, u, m);
  o.Muls(u, u, 1.0f / 3.0f);
  o.Muls(t, g, 8.1380210758652538e-05f);
  o.Add(u, u, t);
  o.Muls(g, g, 0.333251953125f);
  o.Add(u, u, w);
  o.Add(h, h, u);
  o.Add(t, a, g);
  o.Sub(u, t, a);
  o.Sub(g, g, u);
  o.Add(h, h, g);
  // ln m = 2(t + h), as t + l
  o.Muls(h, h, 2.0f);
  o.Muls(a, t, 2.0f);
  o.Add(t, a, h);
  o.Sub(l, t, a);
  o.Sub(l, h, l);
  // times 1/ln 2 = 1.4423828125 + 3.12e-4: (u + v) = t * that + l * that
  o.Head(u, t, head);
  o.Sub(v, t, u);
  o.Muls(m, u, 1.4423828125f);
  o.Muls(u, u, 0.00031222839606925845f);
  o.Muls(t, v, 1.4426950216293335f);
  o.Add(u, u, t);
  o.Muls(l, l, 1.4426950216293335f);
  o.Add(u, u, l);
  // plus e: |e| >= 1 > m or e is 0, so the error of the sum is m - (h - e).
  o.Add(h, e, m);
  o.Sub(t, h, e);
  o.Sub(t, m, t);
  o.Add(u, u, t);
  o.Add(t, h, u);
  o.Sub(l, t, h);
  o.Sub(l, u, l);
  o.Muls(h, t, 1.0f);
}
}  // namespace detail

__aicore__ inline void PowOf(const LocalTensor<float>& dst, const LocalTensor<float>& x,
                             const LocalTensor<float>& y, const LocalTensor<uint8_t>& tmp, uint32_t count) {
  using namespace detail;
  MathLoop<kPowEighths, 1>(tmp, count, [&](const Steps& o, uint32_t at, Scratch& s, uint32_t chunk) {
    const LocalTensor<uint16_t> head = WordBlock(s, 0xfffff000u);
    const F d = dst[at], xs = x[at], ys = y[at];
    const F a = s.Take<float>(chunk), e = s.Take<float>(chunk), m = s.Take<float>(chunk),
            g = s.Take<float>(chunk), h = s.Take<float>(chunk), l = s.Take<float>(chunk),
            t = s.Take<float>(chunk), u = s.Take<float>(chunk), v = s.Take<float>(chunk),
            w = s.Take<float>(chunk);
    const B p = s.Take<uint8_t>(chunk / 8), q = s.Take<uint8_t>(chunk / 8), r = s.Take<uint8_t>(chunk / 8),
            odd = s.Take<uint8_t>(chunk / 8), whole = s.Take<uint8_t>(chunk / 8);
    o.Abs(a, xs);
    // Special magnitudes (0, infinity, NaN) are replaced by 1 here and settled below.
    o.Test(p, a, 0.0f, CMPMODE::GT);
    o.Test(q, a, kInfinity, CMPMODE::LT);
    o.BitsAnd(p, p, q);
    o.Pick(a, p, a, 1.0f);
    Log2Pair(o, h, l, a, e, m, g, t, u, v, w, q, head);
    // z = y * (h + l). |log2| >= 2^-24 where it is not 0, so y may be cut at 2^40.
    o.Mins(w, ys, 1099511627776.0f);
    o.Maxs(w, w, -1099511627776.0f);
    o.Test(q, ys, ys, CMPMODE::EQ);
    o.Pick(w, q, w, 1.0f);  // NaN
    o.Head(u, w, head);
    o.Sub(v, w, u);
    o.Head(t, h, head);
    o.Sub(m, h, t);
    o.Mul(g, u, t);  // exact
    o.Mul(u, u, m);
    o.Mul(t, v, t);
    o.Add(u, u, t);
    o.Mul(v, v, m);
    o.Add(u, u, v);
    o.Mul(l, l, w);
    o.Add(u, u, l);  // z = g + u
    o.Add(t, g, u);
    o.Mins(t, t, 300.0f);
    o.Maxs(t, t, -300.0f);
    o.Integral(t, t, RoundMode::CAST_RINT);  // n
    o.Sub(g, g, t);
    o.Add(g, g, u);
    o.Mins(g, g, 1.0f);  // cut where n was
    o.Maxs(g, g, -1.0f);
    o.Muls(g, g, kLn2);
    o.Exp(d, g);
    // times 2^n in two factors, so that no step overflows before the result does
    o.Muls(u, t, 0.5f);
    o.Integral(u, u, RoundMode::CAST_FLOOR);
    o.Sub(t, t, u);
    for (int half_step = 0; half_step < 2; ++half_step) {
      const LocalTensor<int32_t> k = v.ReinterpretCast<int32_t>();
      AscendC::Cast(k, half_step ? t : u, RoundMode::CAST_RINT, o.n);
      Sync();
      AscendC::Adds(k, k, int32_t(127), o.N());
      Sync();
      AscendC::Maxs(k, k, int32_t(0), o.N());
      Sync();
      AscendC::Mins(k, k, int32_t(255), o.N());
      Sync();
      AscendC::ShiftLeft(k, k, int32_t(23), o.N());
      Sync();
      o.Mul(d, d, v);
    }
    // |x| of 0 or infinity: |x| where y > 0, else 1/|x|.
    o.Abs(a, xs);
    o.Set(u, 1.0f);
    o.Div(u, u, a);
    o.Test(q, ys, 0.0f, CMPMODE::GT);
    o.Pick(u, q, a, u);
    o.Pick(d, p, d, u);
    // Whether y is whole, and odd.
    o.Integral(u, ys, RoundMode::CAST_FLOOR);
    o.Test(whole, u, ys, CMPMODE::EQ);
    o.Muls(u, ys, 0.5f);
    o.Integral(u, u, RoundMode::CAST_FLOOR);
    o.Muls(u, u, 2.0f);
    o.Test(odd, u, ys, CMPMODE::NE);
    o.BitsAnd(odd, odd, whole);
    // The sign of x counts for odd y.
    o.SignOnly(v, xs);
    o.Or(v, v, d);
    o.Pick(d, odd, v, d);
    // NaN: x < 0 finite with y not whole; x or y NaN.
    o.Test(q, xs, 0.0f, CMPMODE::LT);
    o.BitsAnd(q, q, p);
    o.BitsNot(whole, whole);
    o.BitsAnd(q, q, whole);
    o.BitsNot(q, q);
    o.Test(r, xs, xs, CMPMODE::EQ);
    o.BitsAnd(q, q, r);
    o.Test(r, ys, ys, CMPMODE::EQ);
    o.BitsAnd(q, q, r);
    o.Pick(d, q, d, __builtin_nanf(""));
    // y == 0 or x == 1: 1, whatever the other.
    o.Test(q, ys, 0.0f, CMPMODE::EQ);
    o.Test(r, xs, 1.0f, CMPMODE::EQ);
    o.BitsOr(q, q, r);
    o.BitsNot(q, q);
    o.Pick(d, q, d, 1.0f);
  });
}

}  // namespace autofuse
