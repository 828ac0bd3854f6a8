// Why: the error function of float and its complement.
//   Erf Erfc (dst, src, tmp, count)     in place; XxxTmpBytes(count)
// Near 0 a polynomial; beyond, erfc(a) = exp(-a^2) q(t) / a with t = (a - 2) / (a + 2). erfc is small there
// and must be accurate relative to itself, so exp(-a^2) is split at 12 bits of a, and the product is summed
// as head and tail. Coefficients are minimax fits of the function named beside them. NaN gives NaN; the ends
// are exactly -1, 0, 1 and 2.
#pragma once
#include "ops_vector.h"

namespace autofuse {
namespace ops {

// (erf(sqrt z) / sqrt z - 1) on [0, 1], into acc
__aicore__ inline void ErfNearZero(const Lanes& v, const Floats& acc, const Floats& z) {
  constexpr float p[] = {0.128379166f,   -0.376126379f,    0.112837821f,    -0.0268654004f,
                         0.00522094546f, -0.000848282885f, 0.000112569491f, -9.64151877e-06f};
  v.Polynomial(acc, z, p);
}

// q(t) but for its leading term: erfc(a) exp(a^2) a on [0.68, 10.2], t = (a - 2) / (a + 2); t is clobbered by
// t q(t).
constexpr float kErfcLeading = 0.510791361f;
constexpr float kErfcScale = 18446744073709551616.0f;  // 2^64
__aicore__ inline void ErfcQuotient(const Lanes& v, const Floats& rest, const Floats& a, const Floats& t) {
  constexpr float q[] = {0.167211041f,   -0.203844294f,  0.121513747f,    -0.0289764255f,  -0.00749954395f,
                         0.00478076981f, 0.00103997346f, -0.00071208633f, -0.000135352791f};
  v.Adds(t, a, -2.0f);
  v.Adds(rest, a, 2.0f);
  v.Div(t, t, rest);
  v.Polynomial(rest, t, q);
  v.Mul(rest, rest, t);
}

// a = |x| < 1: a (1 + p(a^2)), not a + a p, whose product would be flushed to zero for tiny a; elsewhere
// 1 - erfc(a), which need not be accurate relative to itself.
struct ErfBody {
  static constexpr uint32_t kTensors = 5;
  __aicore__ static inline void Run(const Lanes& v, const Floats& dst, const Floats& x, Scratch s,
                                    uint32_t chunk) {
    const Floats a = s.Take<float>(chunk), near = s.Take<float>(chunk), far = s.Take<float>(chunk),
                 t = s.Take<float>(chunk);
    const Bits bits = s.Take<uint8_t>(chunk / 8);
    const Words sign = Pattern(v, s, chunk, kSign);
    v.Abs(a, x);
    v.Mul(t, a, a);
    ErfNearZero(v, near, t);
    v.Adds(near, near, 1.0f);
    v.Mul(near, near, a);
    v.Compare(bits, a, 1.0f, CMPMODE::LT);
    v.Mins(a, a, 11.0f);
    ErfcQuotient(v, far, a, t);
    v.Adds(far, far, kErfcLeading);
    v.Div(far, far, a);
    v.Mul(t, a, a);
    v.Muls(t, t, -1.0f);
    v.Exp(t, t);
    v.Mul(far, far, t);
    v.SubFrom(far, 1.0f, far);
    v.Choose(near, bits, near, far);
    v.WithSign(dst, near, x, sign, t);
  }
};

// |x| < 0.7: (1 - x) - x p(x^2); elsewhere erfc(|x|) as above, and 2 minus that for negative x.
struct ErfcBody {
  static constexpr uint32_t kTensors = 9;
  __aicore__ static inline void Run(const Lanes& v, const Floats& dst, const Floats& x, Scratch s,
                                    uint32_t chunk) {
    const Floats a = s.Take<float>(chunk), ah = s.Take<float>(chunk), al = s.Take<float>(chunk),
                 q = s.Take<float>(chunk), ql = s.Take<float>(chunk), e = s.Take<float>(chunk),
                 t = s.Take<float>(chunk), u = s.Take<float>(chunk);
    const Bits bits = s.Take<uint8_t>(chunk / 8);
    const Words head = Pattern(v, s, chunk, kHead12);
    v.Abs(a, x);
    v.Mins(a, a, 11.0f);
    v.And(ah, a, head);
    v.Sub(al, a, ah);
    // q = leading + rest, ql what that rounding lost; then quotient = q / a as head (in t) and tail (in ql).
    ErfcQuotient(v, u, a, t);
    v.Adds(q, u, kErfcLeading);
    v.SubFrom(t, kErfcLeading, q);
    v.Add(ql, t, u);
    v.Div(u, q, a);
    v.And(t, u, head);
    v.Mul(e, t, ah);
    v.Sub(q, q, e);
    v.Mul(e, t, al);
    v.Sub(q, q, e);
    v.Add(ql, ql, q);
    v.Div(ql, ql, a);
    // exp(-a^2) = e (1 + w'), e = exp(-ah^2), w' = expm1(-al (ah + a)): at most 0.08 in size.
    v.Mul(e, ah, ah);
    v.Muls(e, e, -1.0f);
    v.Exp(e, e);
    // Scaled up until the sum is done: its small terms must not be subnormal, threads may flush those.
    v.Muls(e, e, kErfcScale);
    v.Add(ah, ah, a);
    v.Mul(al, al, ah);
    v.Muls(al, al, -1.0f);
    constexpr float expm1[] = {1.0f, 0.5f, 0.166666672f, 0.0416666679f, 0.00833333377f};
    v.Polynomial(ah, al, expm1);
    v.Mul(al, al, ah);
    // result = eh t + (eh ql + el (q / a) + e (q / a) w')
    v.Mul(q, e, u);
    v.Mul(al, al, q);
    v.And(ah, e, head);
    v.Sub(e, e, ah);
    v.Mul(e, e, u);
    v.Mul(ql, ql, ah);
    v.Add(ql, ql, e);
    v.Add(ql, ql, al);
    v.Mul(t, t, ah);
    v.Add(t, t, ql);
    v.Muls(t, t, 1.0f / kErfcScale);
    // 2 - erfc(a) for negative x
    v.SubFrom(u, 2.0f, t);
    v.Mins(q, x, 2.0f);
    v.Compare(bits, q, 0.0f, CMPMODE::LT);
    v.Choose(t, bits, u, t);
    // near 0
    v.Mul(u, x, x);
    ErfNearZero(v, q, u);
    v.Mul(q, q, x);
    v.SubFrom(u, 1.0f, x);
    v.Sub(q, u, q);
    v.Compare(bits, a, 0.7f, CMPMODE::LT);
    v.Choose(dst, bits, q, t);
  }
};

}  // namespace ops

AUTOFUSE_OPS_UNARY(Erf)
AUTOFUSE_OPS_UNARY(Erfc)

}  // namespace autofuse
