// Why: exponential-type functions that lose accuracy when composed from Exp and Ln. float, dst is not src.
//   Expm1Of, Log1pOf, SigmoidOf, SoftplusOf (dst, src, tmp, count)
// Scratch: min(round_up(count,256), chunk) * e/8 + 32 bytes; e = 65 Expm1, 97 Log1p, 32 Sigmoid, 129
// Softplus. All but Sigmoid use Select's reserved 8 KiB. NaN gives NaN; signed zeros are kept by Expm1 and
// Log1p.
#pragma once
#include "math_base.h"

namespace autofuse {
namespace detail {

constexpr uint32_t kExpm1Eighths = 65, kLog1pEighths = 97, kSigmoidEighths = 32, kSoftplusEighths = 129;

// exp(x) - 1: x + x^2 P(x) for |x| < 0.7, error 2^-29.
__aicore__ inline void Expm1Chunk(const Steps& o, const F& d, const F& x, Scratch s, uint32_t chunk) {
  constexpr float c[] = {0.5f,
                         0.16666673123836517f,
                         0.041666608303785324f,
                         0.008332515135407448f,
                         0.0013890675036236644f,
                         0.0002011558972299099f,
                         2.4779596060398035e-05f};
  const F u = s.Take<float>(chunk), v = s.Take<float>(chunk);
  const B small = s.Take<uint8_t>(chunk / 8);
  o.Abs(u, x);
  o.Test(small, u, 0.7f, CMPMODE::LT);
  o.Exp(u, x);
  o.Adds(u, u, -1.0f);
  o.Poly(d, x, c);
  o.Mul(d, d, x);
  o.Mul(d, d, x);
  o.Add(d, d, x);
  o.Pick(d, small, d, u);
  o.GiveSign(d, x, v);  // expm1 has the sign of x; needed for -0
}

// log(1 + x): x - x^2/2 + x^3 P(x) for -0.29 < x < 0.41, error 2^-30; else ln(u) + (x - (u - 1))/u with u = 1
// + x.
__aicore__ inline void Log1pChunk(const Steps& o, const F& d, const F& x, Scratch s, uint32_t chunk) {
  constexpr float c[] = {0.3333330750465393f,  -0.2499999850988388f,  0.20002472400665283f,
                         -0.1666892170906067f, 0.14212670922279358f,  -0.12383811920881271f,
                         0.11919490247964859f, -0.11826431006193161f, 0.06861111521720886f};
  const F u = s.Take<float>(chunk), v = s.Take<float>(chunk), w = s.Take<float>(chunk);
  const B small = s.Take<uint8_t>(chunk / 8);
  o.Mins(v, x, 1.0e30f);  // keeps the correction finite at infinity
  o.Adds(w, v, 1.0f);
  o.Adds(u, w, -1.0f);
  o.Sub(v, v, u);
  o.Maxs(w, w, 1.0e-30f);  // and at x = -1
  o.Div(v, v, w);
  o.Adds(u, x, 1.0f);
  o.Ln(u, u);
  o.Add(u, u, v);
  o.Poly(d, x, c);
  o.Mul(d, d, x);
  o.Adds(d, d, -0.5f);
  o.Mul(w, x, x);
  o.Mul(d, d, w);
  o.Add(d, d, x);
  // -0.29 < x < 0.41 is |x - 0.06| < 0.35.
  o.Adds(v, x, -0.06f);
  o.Abs(v, v);
  o.Test(small, v, 0.35f, CMPMODE::LT);
  o.Pick(d, small, d, u);
  o.GiveSign(d, x, v);  // log1p has the sign of x where it is not NaN; needed for -0
}
}  // namespace detail

__aicore__ constexpr inline uint32_t Expm1OfTmpBytes(uint32_t count) {
  return detail::MathBytes<detail::kExpm1Eighths, 0>(count);
}
__aicore__ inline void Expm1Of(const LocalTensor<float>& dst, const LocalTensor<float>& src,
                               const LocalTensor<uint8_t>& tmp, uint32_t count) {
  detail::MathLoop<detail::kExpm1Eighths, 0>(
      tmp, count, [&](const detail::Steps& o, uint32_t at, Scratch& s, uint32_t chunk) {
        detail::Expm1Chunk(o, dst[at], src[at], s, chunk);
      });
}

__aicore__ constexpr inline uint32_t Log1pOfTmpBytes(uint32_t count) {
  return detail::MathBytes<detail::kLog1pEighths, 0>(count);
}
__aicore__ inline void Log1pOf(const LocalTensor<float>& dst, const LocalTensor<float>& src,
                               const LocalTensor<uint8_t>& tmp, uint32_t count) {
  detail::MathLoop<detail::kLog1pEighths, 0>(
      tmp, count, [&](const detail::Steps& o, uint32_t at, Scratch& s, uint32_t chunk) {
        detail::Log1pChunk(o, dst[at], src[at], s, chunk);
      });
}

// 1 / (1 + exp(-x))
__aicore__ constexpr inline uint32_t SigmoidOfTmpBytes(uint32_t count) {
  return detail::MathBytes<detail::kSigmoidEighths, 0>(count);
}
__aicore__ inline void SigmoidOf(const LocalTensor<float>& dst, const LocalTensor<float>& src,
                                 const LocalTensor<uint8_t>& tmp, uint32_t count) {
  detail::MathLoop<detail::kSigmoidEighths, 0>(
      tmp, count, [&](const detail::Steps& o, uint32_t at, Scratch& s, uint32_t chunk) {
        const detail::F d = dst[at], one = s.Take<float>(chunk);
        o.Muls(d, src[at], -1.0f);
        o.Exp(d, d);
        o.Adds(d, d, 1.0f);
        o.Set(one, 1.0f);
        o.Div(d, one, d);
      });
}

// log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|))
__aicore__ constexpr inline uint32_t SoftplusOfTmpBytes(uint32_t count) {
  return detail::MathBytes<detail::kSoftplusEighths, 0>(count);
}
__aicore__ inline void SoftplusOf(const LocalTensor<float>& dst, const LocalTensor<float>& src,
                                  const LocalTensor<uint8_t>& tmp, uint32_t count) {
  detail::MathLoop<detail::kSoftplusEighths, 0>(
      tmp, count, [&](const detail::Steps& o, uint32_t at, Scratch& s, uint32_t chunk) {
        const detail::F d = dst[at], e = s.Take<float>(chunk);
        o.Abs(e, src[at]);
        o.Muls(e, e, -1.0f);
        o.Exp(e, e);
        detail::Log1pChunk(o, d, e, s, chunk);
        o.Maxs(e, src[at], 0.0f);
        o.Add(d, d, e);
      });
}

}  // namespace autofuse
