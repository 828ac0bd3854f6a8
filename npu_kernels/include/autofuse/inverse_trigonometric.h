// Why: Asin, Acos, Atan, Atan2. float, dst is no source.
//   AsinOf, AcosOf, AtanOf (dst, src, tmp, count)   Atan2Of(dst, y, x, tmp, count)
// Scratch: min(round_up(count,256), chunk) * 97/8 + 32 bytes (InverseTrigTmpBytes); Atan2: 130/8
// (Atan2OfTmpBytes). Uses Select's reserved 8 KiB. Asin and Acos give NaN outside [-1, 1]; odd functions keep
// the sign of zero; Atan2 has C's results on signed zeros and infinities.
#pragma once
#include "math_base.h"

namespace autofuse {

__aicore__ constexpr inline uint32_t InverseTrigTmpBytes(uint32_t count) {
  return detail::MathBytes<97, 0>(count);
}
__aicore__ constexpr inline uint32_t Atan2OfTmpBytes(uint32_t count) {
  return detail::MathBytes<130, 0>(count);
}

namespace detail {

// P of asin(x) = x + x^3 P(x^2), |x| <= 0.5, error 2^-31.
constexpr float kAsinPoly[] = {0.16666659712791443f, 0.07500503957271576f, 0.04451695457100868f,
                               0.03180773691587303f, 0.01443860400468111f, 0.03751645237207413f};
// P of atan(x) = x + x^3 P(x^2), |x| <= 1, error 2^-33.
constexpr float kAtanPoly[] = {-0.3333333134651184f,   0.19999927282333374f,   -0.1428416669368744f,
                               0.11094502359628677f,   -0.08985434472560883f,  0.07259423285722733f,
                               -0.054515693336725235f, 0.034475550055503845f,  -0.016299208626151085f,
                               0.004926254972815514f,  -0.0006979388417676091f};

// Of |x|: z = (1 - a)/2 and s = sqrt(z) where a >= 0.5, z = a^2 and s = a below; d = s z P(z). Leaves a, z in
// u, s in v.
__aicore__ inline void AsinParts(const Steps& o, const F& d, const F& a, const F& u, const F& v,
                                 const B& small) {
  o.Test(small, a, 0.5f, CMPMODE::LT);
  o.Muls(u, a, -0.5f);
  o.Adds(u, u, 0.5f);
  o.Sqrt(v, u);
  o.Mul(d, a, a);
  o.Pick(u, small, d, u);
  o.Pick(v, small, a, v);
  o.Poly(d, u, kAsinPoly);
  o.Mul(d, d, u);
  o.Mul(d, d, v);
}
}  // namespace detail

__aicore__ inline void AsinOf(const LocalTensor<float>& dst, const LocalTensor<float>& src,
                              const LocalTensor<uint8_t>& tmp, uint32_t count) {
  using namespace detail;
  MathLoop<97, 0>(tmp, count, [&](const Steps& o, uint32_t at, Scratch& s, uint32_t chunk) {
    const F d = dst[at], a = s.Take<float>(chunk), u = s.Take<float>(chunk), v = s.Take<float>(chunk);
    const B small = s.Take<uint8_t>(chunk / 8);
    o.Abs(a, src[at]);
    AsinParts(o, d, a, u, v, small);
    o.Add(u, v, d);      // below 0.5
    o.Muls(d, d, 2.0f);  // else pi/2 - 2 (s + s z P): the parts from large to small
    o.Adds(d, d, -kPiOver2Lo);
    o.Muls(v, v, -2.0f);
    o.Adds(v, v, kPiOver2Hi);
    o.Sub(d, v, d);
    o.Pick(d, small, u, d);
    o.GiveSign(d, src[at], u);
  });
}

// |x| < 0.5: pi/2 - asin(x); x >= 0.5: 2 asin(sqrt((1-x)/2)); x <= -0.5: pi minus that of |x|.
__aicore__ inline void AcosOf(const LocalTensor<float>& dst, const LocalTensor<float>& src,
                              const LocalTensor<uint8_t>& tmp, uint32_t count) {
  using namespace detail;
  MathLoop<97, 0>(tmp, count, [&](const Steps& o, uint32_t at, Scratch& s, uint32_t chunk) {
    const F d = dst[at], x = src[at], a = s.Take<float>(chunk), u = s.Take<float>(chunk),
            v = s.Take<float>(chunk);
    const B bits = s.Take<uint8_t>(chunk / 8);
    o.Abs(a, x);
    AsinParts(o, d, a, u, v, bits);
    o.Add(u, v, d);
    o.Muls(u, u, 2.0f);  // x >= 0.5
    o.Muls(a, d, 2.0f);  // x <= -0.5: (pi - 2s) - (2 s z P - pi_lo)
    o.Adds(a, a, -kPiLo);
    o.Muls(v, v, -2.0f);
    o.Adds(v, v, kPiHi);
    o.Sub(v, v, a);
    o.Test(bits, x, 0.0f, CMPMODE::LT);
    o.Pick(u, bits, v, u);
    // |x| < 0.5, signed: pi/2 - (x + (x z P - pi/2_lo)); d = |x| z P.
    o.SignOnly(v, x);
    o.Or(d, d, v);
    o.Adds(d, d, -kPiOver2Lo);
    o.Add(d, d, x);
    o.Muls(d, d, -1.0f);
    o.Adds(d, d, kPiOver2Hi);
    o.Abs(a, x);
    o.Test(bits, a, 0.5f, CMPMODE::LT);
    o.Pick(d, bits, d, u);
  });
}

__aicore__ inline void AtanOf(const LocalTensor<float>& dst, const LocalTensor<float>& src,
                              const LocalTensor<uint8_t>& tmp, uint32_t count) {
  using namespace detail;
  MathLoop<97, 0>(tmp, count, [&](const Steps& o, uint32_t at, Scratch& s, uint32_t chunk) {
    const F d = dst[at], a = s.Take<float>(chunk), u = s.Take<float>(chunk), v = s.Take<float>(chunk);
    const B large = s.Take<uint8_t>(chunk / 8);
    o.Abs(a, src[at]);
    o.Test(large, a, 1.0f, CMPMODE::GT);
    o.Set(u, 1.0f);
    o.Div(u, u, a);
    o.Pick(a, large, u, a);  // in [0, 1]
    o.Mul(u, a, a);
    o.Odd(d, a, u, kAtanPoly);
    o.Adds(u, d, -kPiOver2Lo);
    o.Muls(u, u, -1.0f);
    o.Adds(u, u, kPiOver2Hi);
    o.Pick(d, large, u, d);
    o.GiveSign(d, src[at], v);
  });
}

// atan(min/max) of the magnitudes, mirrored at the diagonal and at the y axis, with the sign of y.
__aicore__ inline void Atan2Of(const LocalTensor<float>& dst, const LocalTensor<float>& y,
                               const LocalTensor<float>& x, const LocalTensor<uint8_t>& tmp, uint32_t count) {
  using namespace detail;
  MathLoop<130, 0>(tmp, count, [&](const Steps& o, uint32_t at, Scratch& s, uint32_t chunk) {
    const F d = dst[at], ys = y[at], xs = x[at], a = s.Take<float>(chunk), b = s.Take<float>(chunk),
            u = s.Take<float>(chunk), v = s.Take<float>(chunk);
    const B steep = s.Take<uint8_t>(chunk / 8), bits = s.Take<uint8_t>(chunk / 8);
    o.Abs(a, ys);
    o.Abs(b, xs);
    o.Test(steep, a, b, CMPMODE::GT);
    o.Min(d, a, b);
    o.Max(u, a, b);
    o.Div(v, d, u);
    o.Test(bits, d, u, CMPMODE::EQ);  // 1, infinity over infinity included
    o.Set(a, 1.0f);
    o.Pick(v, bits, a, v);
    o.Test(bits, u, 0.0f, CMPMODE::GT);  // 0 over 0 is 0 here
    o.Pick(v, bits, v, 0.0f);
    o.Mul(u, v, v);
    o.Odd(d, v, u, kAtanPoly);
    // steep: pi/2 - d; x negative (-0 included): pi - that. Low parts enter with d.
    o.Adds(u, d, -kPiOver2Lo);
    o.Muls(u, u, -1.0f);
    o.Adds(u, u, kPiOver2Hi);
    o.Pick(d, steep, u, d);
    o.Adds(u, d, -kPiLo);
    o.Muls(u, u, -1.0f);
    o.Adds(u, u, kPiHi);
    o.SignOnly(v, xs);
    o.Set(b, 1.0f);
    o.Or(v, v, b);  // +1 or -1: a compare can see the sign of -0
    o.Test(bits, v, 0.0f, CMPMODE::LT);
    o.Pick(d, bits, u, d);
    // A NaN operand wins.
    o.Add(u, xs, ys);
    o.Test(bits, xs, xs, CMPMODE::EQ);
    o.Pick(d, bits, d, u);
    o.Test(bits, ys, ys, CMPMODE::EQ);
    o.Pick(d, bits, d, u);
    o.GiveSign(d, ys, v);
  });
}

}  // namespace autofuse
