// Why: exponentials, logarithms and hyperbolic functions of float, from the unit's Exp, Ln, Sqrt and Div.
// Where those would cancel, a polynomial in a short interval takes over: its coefficients are minimax fits of
// the function named beside them, relative error below 2^-29.
//   Expm1 Log1p Sigmoid Tanh Sinh Cosh Asinh Acosh Atanh (dst, src, tmp, count)    in place;
//   XxxTmpBytes(count)
// NaN gives NaN, and infinities, domains and -0.0 are C's. docs/numerics.md has the worst errors.
#pragma once
#include "ops_vector.h"

namespace autofuse {
namespace ops {

constexpr float kLn2 = 0.693147181f;

// |x| < 0.7: x (1 + x q(x)); elsewhere exp(x) - 1, whose cancellation is harmless there.
struct Expm1Body {
  static constexpr uint32_t kTensors = 2;
  __aicore__ static inline void Run(const Lanes& v, const Floats& dst, const Floats& x, Scratch s,
                                    uint32_t chunk) {
    const Floats near = s.Take<float>(chunk), far = s.Take<float>(chunk);
    const Bits bits = s.Take<uint8_t>(chunk / 8);
    // ((exp(x) - 1) / x - 1) / x on [-0.7, 0.7]
    constexpr float q[] = {0.5f,           0.166666672f,    0.0416666791f,   0.00833332725f,
                           0.00138878089f, 0.000198427922f, 2.51022047e-05f, 2.75668049e-06f};
    v.Polynomial(near, x, q);
    v.Mul(near, near, x);
    v.Adds(near, near, 1.0f);
    v.Mul(near, near, x);
    v.Abs(far, x);
    v.Compare(bits, far, 0.7f, CMPMODE::LT);
    v.Exp(far, x);
    v.Adds(far, far, -1.0f);
    v.Choose(dst, bits, near, far);
  }
};

// -0.5 <= x <= 1: with s = x / (2 + x), log1p(x) = 2 atanh(s) = x - s (x - r), r = 2 s^2 / 3 + ...; elsewhere
// ln(1 + x), where rounding 1 + x costs at most one ulp.
struct Log1pBody {
  static constexpr uint32_t kTensors = 4;
  __aicore__ static inline void Run(const Lanes& v, const Floats& dst, const Floats& x, Scratch scratch,
                                    uint32_t chunk) {
    const Floats far = scratch.Take<float>(chunk), s = scratch.Take<float>(chunk),
                 z = scratch.Take<float>(chunk), r = scratch.Take<float>(chunk);
    const Bits bits = scratch.Take<uint8_t>(chunk / 8);
    // (2 atanh(sqrt z) / sqrt z - 2) / z on [0, 1/9]
    constexpr float c[] = {0.666666687f, 0.400000542f, 0.28568396f, 0.22301501f, 0.171478435f, 0.217924118f};
    v.Adds(far, x, 2.0f);
    v.Div(s, x, far);
    v.Mul(z, s, s);
    v.Polynomial(r, z, c);
    v.Mul(r, r, z);
    v.Sub(r, x, r);
    v.Mul(r, r, s);
    v.Sub(r, x, r);
    v.Adds(z, x, -0.25f);
    v.Abs(z, z);
    v.Compare(bits, z, 0.75f, CMPMODE::LE);
    v.Adds(far, x, 1.0f);
    v.Ln(far, far);
    v.Choose(dst, bits, r, far);
  }
};

// exp(min(x, 0)) / (1 + exp(-|x|)): no overflow, tiny results keep their precision.
struct SigmoidBody {
  static constexpr uint32_t kTensors = 2;
  __aicore__ static inline void Run(const Lanes& v, const Floats& dst, const Floats& x, Scratch s,
                                    uint32_t chunk) {
    const Floats top = s.Take<float>(chunk), bottom = s.Take<float>(chunk);
    v.Mins(top, x, 0.0f);
    v.Exp(top, top);
    v.Abs(bottom, x);
    v.Muls(bottom, bottom, -1.0f);
    v.Exp(bottom, bottom);
    v.Adds(bottom, bottom, 1.0f);
    v.Div(dst, top, bottom);
  }
};

// a = |x| < 0.625: a + a^3 p(a^2); elsewhere 1 - 2 / (exp(2 a) + 1).
struct TanhBody {
  static constexpr uint32_t kTensors = 5;
  __aicore__ static inline void Run(const Lanes& v, const Floats& dst, const Floats& x, Scratch s,
                                    uint32_t chunk) {
    const Floats a = s.Take<float>(chunk), z = s.Take<float>(chunk), near = s.Take<float>(chunk),
                 far = s.Take<float>(chunk);
    const Bits bits = s.Take<uint8_t>(chunk / 8);
    const Words sign = Pattern(v, s, chunk, kSign);
    // (tanh(sqrt z) / sqrt z - 1) / z on [0, 0.625^2]
    constexpr float p[] = {-0.333333313f, 0.133332059f,    -0.0539467633f,
                           0.0217007026f, -0.00817739777f, 0.0021429616f};
    v.Abs(a, x);
    v.Mul(z, a, a);
    v.Polynomial(near, z, p);
    v.Mul(near, near, z);
    v.Mul(near, near, a);
    v.Add(near, near, a);
    v.Add(far, a, a);
    v.Exp(far, far);
    v.Adds(far, far, 1.0f);
    v.DivInto(far, 2.0f, far, z);
    v.SubFrom(far, 1.0f, far);
    v.Compare(bits, a, 0.625f, CMPMODE::LT);
    v.Choose(near, bits, near, far);
    v.WithSign(dst, near, x, sign, z);
  }
};

// e = exp(a) / 2 for a >= 0 without early overflow: exp(min(a, 88)) / 2 * exp(max(a, 88) - 88).
__aicore__ inline void HalfExp(const Lanes& v, const Floats& e, const Floats& a, const Floats& t) {
  v.Mins(e, a, 88.0f);
  v.Exp(e, e);
  v.Muls(e, e, 0.5f);
  v.Maxs(t, a, 88.0f);
  v.Adds(t, t, -88.0f);
  v.Exp(t, t);
  v.Mul(e, e, t);
}

// a = |x| < 1: a + a^3 p(a^2); elsewhere e - 1 / (4 e).
struct SinhBody {
  static constexpr uint32_t kTensors = 6;
  __aicore__ static inline void Run(const Lanes& v, const Floats& dst, const Floats& x, Scratch s,
                                    uint32_t chunk) {
    const Floats a = s.Take<float>(chunk), z = s.Take<float>(chunk), near = s.Take<float>(chunk),
                 far = s.Take<float>(chunk), t = s.Take<float>(chunk);
    const Bits bits = s.Take<uint8_t>(chunk / 8);
    const Words sign = Pattern(v, s, chunk, kSign);
    // (sinh(sqrt z) / sqrt z - 1) / z on [0, 1]
    constexpr float p[] = {0.166666672f, 0.0083333496f, 0.000198361595f, 2.81695134e-06f};
    v.Abs(a, x);
    v.Mul(z, a, a);
    v.Polynomial(near, z, p);
    v.Mul(near, near, z);
    v.Mul(near, near, a);
    v.Add(near, near, a);
    HalfExp(v, far, a, t);
    v.DivInto(t, 0.25f, far, z);
    v.Sub(far, far, t);
    v.Compare(bits, a, 1.0f, CMPMODE::LT);
    v.Choose(near, bits, near, far);
    v.WithSign(dst, near, x, sign, z);
  }
};

struct CoshBody {
  static constexpr uint32_t kTensors = 3;
  __aicore__ static inline void Run(const Lanes& v, const Floats& dst, const Floats& x, Scratch s,
                                    uint32_t chunk) {
    const Floats a = s.Take<float>(chunk), e = s.Take<float>(chunk), t = s.Take<float>(chunk);
    v.Abs(a, x);
    HalfExp(v, e, a, t);
    v.DivInto(t, 0.25f, e, a);
    v.Add(dst, e, t);
  }
};

// ln of `sum`, or of `a` plus ln 2 where the bits of a < 2048 are off (sum is 2 a there). `far` gets it; t is
// scratch.
__aicore__ inline void LogOfSum(const Lanes& v, const Floats& far, const Floats& sum, const Floats& a,
                                const Bits& bits, const Floats& t) {
  v.Choose(far, bits, sum, a);
  v.Ln(far, far);
  v.Fill(t, 0.0f);
  v.Choose(t, bits, t, kLn2);
  v.Add(far, far, t);
}

// a = |x| < 1.25: a + a^3 p(a^2); elsewhere ln(a + sqrt(a^2 + 1)), from 2048 on ln a + ln 2.
struct AsinhBody {
  static constexpr uint32_t kTensors = 6;
  __aicore__ static inline void Run(const Lanes& v, const Floats& dst, const Floats& x, Scratch s,
                                    uint32_t chunk) {
    const Floats a = s.Take<float>(chunk), z = s.Take<float>(chunk), near = s.Take<float>(chunk),
                 far = s.Take<float>(chunk), t = s.Take<float>(chunk);
    const Bits bits = s.Take<uint8_t>(chunk / 8);
    const Words sign = Pattern(v, s, chunk, kSign);
    // (asinh(sqrt z) / sqrt z - 1) / z on [0, 1.25^2]
    constexpr float p[] = {-0.166666612f,   0.0749977902f,   -0.0446118899f,  0.0301615708f,
                           -0.021436736f,   0.014750991f,    -0.00890074763f, 0.00424632803f,
                           -0.00143929082f, 0.000301011198f, -2.8831435e-05f};
    v.Abs(a, x);
    v.Mul(z, a, a);
    v.Polynomial(near, z, p);
    v.Mul(near, near, z);
    v.Mul(near, near, a);
    v.Add(near, near, a);
    v.Adds(z, z, 1.0f);
    v.Sqrt(z, z);
    v.Add(z, z, a);
    v.Compare(bits, a, 2048.0f, CMPMODE::LT);
    LogOfSum(v, far, z, a, bits, t);
    v.Compare(bits, a, 1.25f, CMPMODE::LT);
    v.Choose(near, bits, near, far);
    v.WithSign(dst, near, x, sign, z);
  }
};

// t = x - 1 < 0.5: sqrt(2 t) (1 + t p(t)); elsewhere ln(x + sqrt(t (x + 1))), from 2048 on ln x + ln 2.
struct AcoshBody {
  static constexpr uint32_t kTensors = 5;
  __aicore__ static inline void Run(const Lanes& v, const Floats& dst, const Floats& x, Scratch s,
                                    uint32_t chunk) {
    const Floats t = s.Take<float>(chunk), root = s.Take<float>(chunk), near = s.Take<float>(chunk),
                 far = s.Take<float>(chunk), sum = s.Take<float>(chunk);
    const Bits bits = s.Take<uint8_t>(chunk / 8);
    // (acosh(1 + t) / sqrt(2 t) - 1) / t on [0, 0.5]
    constexpr float p[] = {-0.0833333284f, 0.0187497232f,    -0.0055766562f,
                           0.00187580951f, -0.000624374487f, 0.000143245474f};
    v.Adds(t, x, -1.0f);
    v.Add(root, t, t);
    v.Sqrt(root, root);
    v.Polynomial(near, t, p);
    v.Mul(near, near, t);
    v.Mul(near, near, root);
    v.Add(near, near, root);
    v.Adds(sum, x, 1.0f);
    v.Mul(sum, sum, t);
    v.Sqrt(sum, sum);
    v.Add(sum, sum, x);
    v.Compare(bits, t, 2047.0f, CMPMODE::LT);
    LogOfSum(v, far, sum, x, bits, root);
    v.Compare(bits, t, 0.5f, CMPMODE::LT);
    v.Choose(dst, bits, near, far);
  }
};

// a = |x| < 0.5: a + a^3 p(a^2); elsewhere ln((1 + a) / (1 - a)) / 2.
struct AtanhBody {
  static constexpr uint32_t kTensors = 5;
  __aicore__ static inline void Run(const Lanes& v, const Floats& dst, const Floats& x, Scratch s,
                                    uint32_t chunk) {
    const Floats a = s.Take<float>(chunk), z = s.Take<float>(chunk), near = s.Take<float>(chunk),
                 far = s.Take<float>(chunk);
    const Bits bits = s.Take<uint8_t>(chunk / 8);
    const Words sign = Pattern(v, s, chunk, kSign);
    // (atanh(sqrt z) / sqrt z - 1) / z on [0, 0.25]
    constexpr float p[] = {0.333333373f, 0.199997276f,  0.142948523f, 0.109671816f,
                           0.102826893f, 0.0245219246f, 0.17594254f};
    v.Abs(a, x);
    v.Mul(z, a, a);
    v.Polynomial(near, z, p);
    v.Mul(near, near, z);
    v.Mul(near, near, a);
    v.Add(near, near, a);
    v.Adds(far, a, 1.0f);
    v.SubFrom(z, 1.0f, a);
    v.Div(far, far, z);
    v.Ln(far, far);
    v.Muls(far, far, 0.5f);
    v.Compare(bits, a, 0.5f, CMPMODE::LT);
    v.Choose(near, bits, near, far);
    v.WithSign(dst, near, x, sign, z);
  }
};

}  // namespace ops

AUTOFUSE_OPS_UNARY(Expm1)
AUTOFUSE_OPS_UNARY(Log1p)
AUTOFUSE_OPS_UNARY(Sigmoid)
AUTOFUSE_OPS_UNARY(Tanh)
AUTOFUSE_OPS_UNARY(Sinh)
AUTOFUSE_OPS_UNARY(Cosh)
AUTOFUSE_OPS_UNARY(Asinh)
AUTOFUSE_OPS_UNARY(Acosh)
AUTOFUSE_OPS_UNARY(Atanh)

}  // namespace autofuse
