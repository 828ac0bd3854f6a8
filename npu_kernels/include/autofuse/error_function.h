// Why: Erf and Erfc. float, dst is not src.
//   ErfOf, ErfcOf (dst, src, tmp, count)
// Scratch: min(round_up(count,256), chunk) * e/8 + 64 bytes, e = 161 Erf (ErfOfTmpBytes), 321 Erfc
// (ErfcOfTmpBytes). Uses Select's reserved 8 KiB.
#pragma once
#include "math_base.h"

namespace autofuse {

__aicore__ constexpr inline uint32_t ErfOfTmpBytes(uint32_t count) {
  return detail::MathBytes<161, 1>(count);
}
__aicore__ constexpr inline uint32_t ErfcOfTmpBytes(uint32_t count) {
  return detail::MathBytes<321, 1>(count);
}

namespace detail {

// erf(x) = x + x*(Q(x^2)), |x| <= 1, error 2^-34.
__aicore__ inline void ErfSeries(const Steps& o, const F& d, const F& x, const F& t) {
  constexpr float c[] = {0.12837916612625122f,   -0.37612637877464294f,  0.11283780634403229f,
                         -0.02686532586812973f,  0.0052207172848284245f, -0.0008479264797642827f,
                         0.0001122945177485235f, -9.558529200148769e-06f};
  o.Mul(t, x, x);
  o.Poly(d, t, c);
  o.Mul(d, d, x);
  o.Add(d, d, x);
}

// erfc(a) = exp(-a^2) N(t)/(1 + 2a) for a >= 0.5, t = (a-2)/(a+2), error 2^-30. a^2 is split: the head of a
// has an exact square, and exp of the rest is expanded into N, so that only one exponential's error enters. a
// <= 10.5 is enough: beyond, the result is below the smallest float. On return u is exp(-head^2), N = k + d.
// Clobbers a, v, w.
constexpr float kErfcScale = 1.2769783735275269f;
__aicore__ inline void ErfcParts(const Steps& o, const F& d, const F& a, const F& u, const F& v, const F& w,
                                 const LocalTensor<uint16_t>& head_block) {
  constexpr float c[] = {-0.09276381880044937f,  -0.16603034734725952f,   0.16405069828033447f,
                         -0.05422098934650421f,  -0.008025702089071274f,  0.008730263449251652f,
                         0.0012214635498821735f, -0.0014796662144362926f, -0.0003184099041391164f,
                         0.0002276693849125877f};
  o.Mins(a, a, 10.5f);
  o.Head(u, a, head_block);
  o.Sub(v, a, u);
  o.Add(w, a, u);
  o.Mul(v, v, w);  // l = a^2 - head^2, at most 0.06
  // v = exp(-l) - 1 = -l (1 - l/2 (1 - l/3 (1 - l/4)))
  o.Muls(v, v, -1.0f);
  o.Muls(w, v, 0.25f);
  o.Adds(w, w, 1.0f);
  o.Mul(w, w, v);
  o.Muls(w, w, 1.0f / 3.0f);
  o.Adds(w, w, 1.0f);
  o.Mul(w, w, v);
  o.Muls(w, w, 0.5f);
  o.Adds(w, w, 1.0f);
  o.Mul(v, v, w);
  o.Mul(u, u, u);
  o.Muls(u, u, -1.0f);
  o.Exp(u, u);
  // N = k + t P(t); N exp(-l) = k + (t P(t) + N v)
  o.Adds(w, a, 2.0f);
  o.Adds(d, a, -2.0f);
  o.Div(w, d, w);
  o.Poly(d, w, c);
  o.Mul(d, d, w);
  o.Adds(w, d, kErfcScale);
  o.Mul(w, w, v);
  o.Add(d, d, w);
}
}  // namespace detail

__aicore__ inline void ErfOf(const LocalTensor<float>& dst, const LocalTensor<float>& src,
                             const LocalTensor<uint8_t>& tmp, uint32_t count) {
  using namespace detail;
  MathLoop<161, 1>(tmp, count, [&](const Steps& o, uint32_t at, Scratch& s, uint32_t chunk) {
    const LocalTensor<uint16_t> head = WordBlock(s, 0xfffff000u);
    const F d = dst[at], x = src[at], a = s.Take<float>(chunk), u = s.Take<float>(chunk),
            v = s.Take<float>(chunk), w = s.Take<float>(chunk), r = s.Take<float>(chunk);
    const B small = s.Take<uint8_t>(chunk / 8);
    o.Abs(a, x);
    o.Test(small, a, 1.0f, CMPMODE::LT);
    ErfSeries(o, d, a, u);
    ErfcParts(o, r, a, u, v, w, head);
    o.Adds(r, r, kErfcScale);
    o.Muls(w, a, 2.0f);
    o.Adds(w, w, 1.0f);
    o.Div(r, r, w);
    o.Mul(r, r, u);
    o.Muls(r, r, -1.0f);
    o.Adds(r, r, 1.0f);
    o.Pick(d, small, d, r);
    o.GiveSign(d, x, u);
  });
}

// x < 0.5: 1 - erf(x) near zero, 2 minus the tail beyond; x >= 0.5: the tail. There erfc is relative to
// itself, so the quotient N/(1 + 2a) is formed with its remainder.
__aicore__ inline void ErfcOf(const LocalTensor<float>& dst, const LocalTensor<float>& src,
                              const LocalTensor<uint8_t>& tmp, uint32_t count) {
  using namespace detail;
  MathLoop<321, 1>(tmp, count, [&](const Steps& o, uint32_t at, Scratch& s, uint32_t chunk) {
    const LocalTensor<uint16_t> head = WordBlock(s, 0xfffff000u);
    const F d = dst[at], x = src[at], a = s.Take<float>(chunk), u = s.Take<float>(chunk),
            v = s.Take<float>(chunk), w = s.Take<float>(chunk), r = s.Take<float>(chunk),
            q = s.Take<float>(chunk), y = s.Take<float>(chunk), f = s.Take<float>(chunk),
            g = s.Take<float>(chunk), p = s.Take<float>(chunk);
    const B bits = s.Take<uint8_t>(chunk / 8);
    o.Abs(a, x);
    ErfcParts(o, r, a, u, v, w, head);
    // N = w + r
    o.Adds(w, r, kErfcScale);
    o.Adds(y, w, -kErfcScale);
    o.Sub(r, r, y);
    // 1 + 2a = v + y
    o.Muls(y, a, 2.0f);
    o.Adds(v, y, 1.0f);
    o.Sub(y, v, y);
    o.Muls(y, y, -1.0f);
    o.Adds(y, y, 1.0f);
    o.Div(q, w, v);
    // w = N - q*(v + y): products of heads are exact
    o.Head(f, q, head);
    o.Head(g, v, head);
    o.Sub(p, v, g);
    o.Mul(a, f, g);
    o.Sub(w, w, a);
    o.Mul(a, f, p);
    o.Sub(w, w, a);
    o.Sub(f, q, f);
    o.Mul(a, f, g);
    o.Sub(w, w, a);
    o.Mul(a, f, p);
    o.Sub(w, w, a);
    o.Add(w, w, r);
    o.Mul(a, q, y);
    o.Sub(w, w, a);
    o.Div(w, w, v);
    o.Mul(r, q, u);
    o.Mul(w, w, u);
    o.Add(r, r, w);
    o.Muls(u, r, -1.0f);
    o.Adds(u, u, 2.0f);
    o.Test(bits, x, 0.0f, CMPMODE::LT);
    o.Pick(r, bits, u, r);
    o.Abs(a, x);
    ErfSeries(o, d, x, u);
    o.Muls(d, d, -1.0f);
    o.Adds(d, d, 1.0f);
    o.Test(bits, a, 0.5f, CMPMODE::LT);
    o.Pick(d, bits, d, r);
  });
}

}  // namespace autofuse
