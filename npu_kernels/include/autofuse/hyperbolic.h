// Why: hyperbolic functions and their inverses. float, dst is not src.
//   TanhOf, SinhOf, CoshOf, AsinhOf, AcoshOf, AtanhOf (dst, src, tmp, count)
// Scratch: min(round_up(count,256), chunk) * 97/8 + 32 bytes each (HyperbolicTmpBytes). Uses Select's
// reserved 8 KiB. |tanh| <= 1 always; NaN outside the domains of Acosh and Atanh; odd functions keep the sign
// of zero.
#pragma once
#include "math_base.h"

namespace autofuse {

__aicore__ constexpr inline uint32_t HyperbolicTmpBytes(uint32_t count) {
  return detail::MathBytes<97, 0>(count);
}

namespace detail {
// Three floats and bits of scratch an element, and a = |x| in the first of them.
template <typename Body>
__aicore__ inline void OddLoop(const F& dst, const F& src, const B& tmp, uint32_t count, bool odd,
                               Body body) {
  MathLoop<97, 0>(tmp, count, [&](const Steps& o, uint32_t at, Scratch& s, uint32_t chunk) {
    const F a = s.Take<float>(chunk), u = s.Take<float>(chunk), v = s.Take<float>(chunk);
    const B bits = s.Take<uint8_t>(chunk / 8);
    o.Abs(a, src[at]);
    body(o, dst[at], src[at], a, u, v, bits);
    if (odd) o.GiveSign(dst[at], src[at], u);
  });
}

// exp(a)/2 for sinh and cosh: exp(a - c) * k with c short enough for a - c to be exact from 1 on, exp(c)/2
// within 0.01 ULP of the float k, and no overflow before the result overflows.
__aicore__ inline void HalfExp(const Steps& o, const F& d, const F& a) {
  o.Adds(d, a, -0.888671875f);
  o.Exp(d, d);
  o.Muls(d, d, 1.2159488201141357f);
}
}  // namespace detail

// a + a^3 P(a^2) below 0.625 (error 2^-28), else 1 - 2/(exp(2a) + 1).
__aicore__ inline void TanhOf(const LocalTensor<float>& dst, const LocalTensor<float>& src,
                              const LocalTensor<uint8_t>& tmp, uint32_t count) {
  using namespace detail;
  OddLoop(dst, src, tmp, count, true,
          [](const Steps& o, const F& d, const F&, const F& a, const F& u, const F& v, const B& bits) {
            constexpr float c[] = {-0.3333328068256378f, 0.13331441581249237f, -0.05373971164226532f,
                                   0.020639078691601753f, -0.005704978480935097f};
            o.Muls(u, a, 2.0f);
            o.Exp(u, u);
            o.Adds(u, u, 1.0f);
            o.Set(v, 2.0f);
            o.Div(u, v, u);
            o.Muls(u, u, -1.0f);
            o.Adds(u, u, 1.0f);
            o.Test(bits, a, 0.625f, CMPMODE::LT);
            o.Mul(v, a, a);
            o.Odd(d, a, v, c);
            o.Pick(d, bits, d, u);
          });
}

// a + a^3 P(a^2) below 1 (error 2^-34), else h - 1/(4h) with h = exp(a)/2.
__aicore__ inline void SinhOf(const LocalTensor<float>& dst, const LocalTensor<float>& src,
                              const LocalTensor<uint8_t>& tmp, uint32_t count) {
  using namespace detail;
  OddLoop(dst, src, tmp, count, true,
          [](const Steps& o, const F& d, const F&, const F& a, const F& u, const F& v, const B& bits) {
            constexpr float c[] = {0.1666666716337204f, 0.008333349600434303f, 0.0001983615948120132f,
                                   2.8169513370812638e-06f};
            HalfExp(o, u, a);
            o.Set(v, 0.25f);
            o.Div(v, v, u);
            o.Sub(u, u, v);
            o.Test(bits, a, 1.0f, CMPMODE::LT);
            o.Mul(v, a, a);
            o.Odd(d, a, v, c);
            o.Pick(d, bits, d, u);
          });
}

__aicore__ inline void CoshOf(const LocalTensor<float>& dst, const LocalTensor<float>& src,
                              const LocalTensor<uint8_t>& tmp, uint32_t count) {
  using namespace detail;
  OddLoop(dst, src, tmp, count, false,
          [](const Steps& o, const F& d, const F&, const F& a, const F& u, const F& v, const B&) {
            HalfExp(o, u, a);
            o.Set(v, 0.25f);
            o.Div(v, v, u);
            o.Add(d, u, v);
          });
}

// a + a^3 P(a^2) below 1 (error 2^-36), else ln(a + 1/(2(a + sqrt(a^2 + 1)))) + ln 2.
__aicore__ inline void AsinhOf(const LocalTensor<float>& dst, const LocalTensor<float>& src,
                               const LocalTensor<uint8_t>& tmp, uint32_t count) {
  using namespace detail;
  OddLoop(dst, src, tmp, count, true,
          [](const Steps& o, const F& d, const F&, const F& a, const F& u, const F& v, const B& bits) {
            constexpr float c[] = {-0.1666666567325592f,  0.0749998465180397f,     -0.044639695435762405f,
                                   0.03034854680299759f,  -0.02216373383998871f,   0.016513515263795853f,
                                   -0.01165818516165018f, 0.007038491312414408f,   -0.0032110235188156366f,
                                   0.000942744838539511f, -0.00013025668158661574f};
            o.Mins(u, a, 1.0e15f);  // the correction vanishes far below, and its square stays finite
            o.Mul(v, u, u);
            o.Adds(v, v, 1.0f);
            o.Sqrt(v, v);
            o.Add(u, u, v);
            o.Set(v, 0.5f);
            o.Div(u, v, u);
            o.Add(u, a, u);
            o.Ln(u, u);
            o.Adds(u, u, kLn2);
            o.Test(bits, a, 1.0f, CMPMODE::LT);
            o.Mul(v, a, a);
            o.Odd(d, a, v, c);
            o.Pick(d, bits, d, u);
          });
}

// With t = x - 1: sqrt(2t) (1 + t P(t)) below x = 2 (error 2^-35), else ln(x - 1/(2(x + sqrt(x^2 - 1)))) +
// ln 2.
__aicore__ inline void AcoshOf(const LocalTensor<float>& dst, const LocalTensor<float>& src,
                               const LocalTensor<uint8_t>& tmp, uint32_t count) {
  using namespace detail;
  OddLoop(dst, src, tmp, count, false,
          [](const Steps& o, const F& d, const F& x, const F& a, const F& u, const F& v, const B& bits) {
            constexpr float c[] = {-0.0833333283662796f,    0.018749894574284554f,   -0.005579168442636728f,
                                   0.0018922582967206836f,  -0.0006783354328945279f, 0.0002315203455509618f,
                                   -6.177291652420536e-05f, 8.792360858933534e-06f};
            o.Mins(u, x, 1.0e15f);
            o.Mul(v, u, u);
            o.Adds(v, v, -1.0f);
            o.Sqrt(v, v);
            o.Add(u, u, v);
            o.Set(v, 0.5f);
            o.Div(u, v, u);
            o.Sub(u, x, u);
            o.Ln(u, u);
            o.Adds(u, u, kLn2);
            o.Test(bits, x, 2.0f, CMPMODE::LT);
            o.Adds(a, x, -1.0f);
            o.Poly(d, a, c);
            o.Mul(d, d, a);
            o.Muls(v, a, 2.0f);
            o.Sqrt(v, v);
            o.Mul(d, d, v);
            o.Add(d, d, v);
            o.Pick(d, bits, d, u);
          });
}

// a + a^3 P(a^2) below 0.5 (error 2^-33), else ln((1 + a)/(1 - a))/2.
__aicore__ inline void AtanhOf(const LocalTensor<float>& dst, const LocalTensor<float>& src,
                               const LocalTensor<uint8_t>& tmp, uint32_t count) {
  using namespace detail;
  OddLoop(dst, src, tmp, count, true,
          [](const Steps& o, const F& d, const F&, const F& a, const F& u, const F& v, const B& bits) {
            constexpr float c[] = {0.3333333730697632f,  0.19999685883522034f, 0.1429603099822998f,
                                   0.10951936990022659f, 0.10381605476140976f, 0.021385865285992622f,
                                   0.17980800569057465f};
            o.Adds(u, a, 1.0f);
            o.Muls(v, a, -1.0f);
            o.Adds(v, v, 1.0f);
            o.Div(u, u, v);
            o.Ln(u, u);
            o.Muls(u, u, 0.5f);
            o.Test(bits, a, 0.5f, CMPMODE::LT);
            o.Mul(v, a, a);
            o.Odd(d, a, v, c);
            o.Pick(d, bits, d, u);
          });
}

}  // namespace autofuse
