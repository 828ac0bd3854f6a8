// Why: sine, cosine, tangent and the inverse functions of float, for every argument.
//   Sin Cos Tan Asin Acos Atan (dst, src, tmp, count)   Atan2(dst, y, x, tmp, count)     in place;
//   XxxTmpBytes(count)
// Arguments up to 12000 are reduced by multiples of pi/2 in five exact pieces on the vector unit; larger
// ones, which are rare, one by one on the scalar unit with 96 bits of 2/pi (Payne and Hanek's method).
// Coefficients are minimax fits of the function named beside them, relative error below 2^-28. NaN,
// infinities, domains and zeros are C's.
#pragma once
#include "ops_vector.h"

namespace autofuse {
namespace ops {

constexpr float kPi = 3.14159274f, kPiLow = -8.74227766e-08f;          // pi to 48 bits
constexpr float kHalfPi = 1.57079637f, kHalfPiLow = -4.37113883e-08f;  // pi / 2 to 48 bits
constexpr float kLargestVectorArgument = 12000.0f;

// x = quarter * pi/2 + r (the nearest quarter; only quarter mod 4 matters). r = head + tail.
struct Reduced {
  Floats head, tail, quarter;
};

// One large finite argument by its bits. 2^e * m * 2/pi modulo 4 from the 96 bits of 2/pi that matter, then
// times pi/2.
__aicore__ inline void ReduceLargeArgument(const Reduced& r, uint32_t at, uint32_t bits) {
  // 2/pi = 0.a2f9836e..., after one word of zeros
  constexpr uint32_t kTwoOverPi[] = {0,           0xa2f9836eu, 0x4e441529u, 0xfc2757d1u,
                                     0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu};
  const uint64_t m = (bits & 0x7fffffu) | 0x800000u;
  const int32_t e = static_cast<int32_t>(bits >> 23 & 0xff) - 150;
  // Bits of 2/pi with a weight of 4 or more after the multiplication drop out: the first that stays is number
  // e - 1.
  const uint32_t first = static_cast<uint32_t>(e - 2 + 32), word = first / 32, shift = first % 32;
  uint64_t window[3];
  for (uint32_t i = 0; i < 3; ++i) {
    const uint64_t pair = static_cast<uint64_t>(kTwoOverPi[word + i]) << 32 | kTwoOverPi[word + i + 1];
    window[i] = (pair << shift) >> 32;
  }
  const uint64_t low = m * window[2], middle = m * window[1] + (low >> 32),
                 high = m * window[0] + (middle >> 32);
  const uint64_t fixed = high << 32 | (middle & 0xffffffffu);  // modulo 4 in units of 2^-62
  uint64_t fraction = fixed << 2 | (low & 0xffffffffu) >> 30;
  uint32_t quarter = static_cast<uint32_t>(fixed >> 62);
  bool negative = false;
  if (fraction >> 63) {  // nearer to the next quarter
    fraction = ~fraction + 1;
    quarter += 1;
    negative = true;
  }
  if (bits >> 31) {
    negative = !negative;
    quarter = 4 - quarter % 4;
  }
  // fraction / 2^64 * pi/2 as the leading 24 bits and the 24 after them. A float is never so near to a
  // multiple of pi/2 that `fraction` is 0.
  uint32_t leading = 0;
  while (!(fraction >> 63)) {
    fraction <<= 1;
    ++leading;
  }
  uint64_t product = (fraction >> 32) * 0xc90fdaa2u;  // pi/2 = 0xc90fdaa2 / 2^31
  if (!(product >> 63)) {
    product <<= 1;
    ++leading;
  }
  const uint32_t exponent = 127 - leading;  // product / 2^63 * 2^(1 - 1 - leading)
  const uint32_t sign = negative ? kSign : 0;
  const Ints head = r.head.ReinterpretCast<int32_t>(), tail = r.tail.ReinterpretCast<int32_t>();
  head.SetValue(
      at, static_cast<int32_t>(sign | exponent << 23 | (static_cast<uint32_t>(product >> 40) & 0x7fffffu)));
  uint32_t rest = static_cast<uint32_t>(product >> 16 & 0xffffffu);
  uint32_t below = 1;
  while (rest && !(rest & 0x800000u)) {
    rest <<= 1;
    ++below;
  }
  tail.SetValue(at,
                static_cast<int32_t>(rest ? sign | (exponent - 23 - below) << 23 | (rest & 0x7fffffu) : 0));
  r.quarter.SetValue(at, static_cast<float>(static_cast<int32_t>(quarter % 4)));
}

// Replaces what the vector unit could not reduce: bits of |x| > kLargestVectorArgument are on (NaN off).
__aicore__ inline void ReduceLargeArguments(const Reduced& r, const Floats& x, const Bits& large,
                                            uint32_t n) {
  AscendC::TPipe* const pipe = GetTPipePtr();
  const auto ready = static_cast<AscendC::TEventID>(pipe->FetchEventID(AscendC::HardEvent::V_S));
  AscendC::SetFlag<AscendC::HardEvent::V_S>(ready);
  AscendC::WaitFlag<AscendC::HardEvent::V_S>(ready);
  const LocalTensor<uint32_t> words = large.ReinterpretCast<uint32_t>();
  const Ints source = x.ReinterpretCast<int32_t>();
  for (uint32_t at = 0; at < n; at += 32) {
    uint32_t word = words.GetValue(at / 32);
    if (n - at < 32) word &= (1u << (n - at)) - 1;
    for (uint32_t i = at; word; ++i, word >>= 1) {
      if (!(word & 1)) continue;
      const uint32_t bits = static_cast<uint32_t>(source.GetValue(i));
      if ((bits & 0x7f800000u) != 0x7f800000u) ReduceLargeArgument(r, i, bits);
    }
  }
  const auto done = static_cast<AscendC::TEventID>(pipe->FetchEventID(AscendC::HardEvent::S_V));
  AscendC::SetFlag<AscendC::HardEvent::S_V>(done);
  AscendC::WaitFlag<AscendC::HardEvent::S_V>(done);
}

// t and u are scratch.
__aicore__ inline void Reduce(const Lanes& v, const Reduced& r, const Floats& x, const Bits& bits,
                              const Floats& t, const Floats& u) {
  // pi/2 = p0 + ... + p4; k * p0 and k * p1 are exact for |x| <= 12000, and so are the differences they leave
  constexpr float p0 = 1.5703125f, p1 = 0.000483751297f, p2 = 7.54953362e-08f, p3 = 2.56328292e-12f,
                  p4 = 6.12323426e-17f;
  const Floats k = r.quarter;
  v.Muls(k, x, 0.636619747f);
  v.Rint(k, k);
  v.Adds(k, k, 0.0f);  // no -0.0: x - 0.0 keeps the sign of a zero
  v.Muls(t, k, p0);
  v.Sub(u, x, t);
  v.Muls(t, k, p1);
  v.Sub(u, u, t);
  v.Muls(t, k, p2);
  v.Sub(r.head, u, t);
  v.Sub(u, u, r.head);
  v.Sub(u, u, t);  // what rounding the head lost
  v.Muls(t, k, p3);
  v.Sub(u, u, t);
  v.Muls(t, k, p4);
  v.Sub(u, u, t);
  v.Add(t, r.head, u);
  v.Sub(r.head, r.head, t);
  v.Add(r.tail, r.head, u);
  v.Adds(r.head, t, 0.0f);
  v.DefineRest(t);
  v.Abs(t, x);
  v.Compare(bits, t, kLargestVectorArgument, CMPMODE::GT);
  ReduceLargeArguments(r, x, bits, v.n);
}

// Quarters as integers: bits get "odd", and flip gets the sign bit of quarters 2 and 3 (mod 4).
__aicore__ inline void OddQuarters(const Lanes& v, const Bits& bits, const Ints& quarters, const Words& one,
                                   const Ints& t) {
  v.And(t.ReinterpretCast<float>(), quarters.ReinterpretCast<float>(), one);
  AscendC::CompareScalar(bits, t, int32_t(1), CMPMODE::EQ, RoundUp(v.n, 64));
  Sync();
}

// sin for kShift 0, cos for kShift 1 (a quarter further).
template <int32_t kShift>
struct SineBody {
  static constexpr uint32_t kTensors = 8;
  __aicore__ static inline void Run(const Lanes& v, const Floats& dst, const Floats& x, Scratch s,
                                    uint32_t chunk) {
    const Reduced r{s.Take<float>(chunk), s.Take<float>(chunk), s.Take<float>(chunk)};
    const Floats z = s.Take<float>(chunk), sine = s.Take<float>(chunk), cosine = s.Take<float>(chunk),
                 t = s.Take<float>(chunk);
    const Bits bits = s.Take<uint8_t>(chunk / 8);
    const Words one = Pattern(v, s, chunk, 1);
    Reduce(v, r, x, bits, sine, cosine);
    // sin r = r + ((r z p(z)) + tail), (sin(sqrt z) / sqrt z - 1) / z on [0, (pi/4)^2]
    constexpr float p[] = {-0.166666672f, 0.00833332911f, -0.000198392721f, 2.71774593e-06f};
    // cos r = 1 - z/2 + (z^2 q(z) - r tail), (cos(sqrt z) - 1 + z/2) / z^2
    constexpr float q[] = {0.0416666456f, -0.00138873374f, 2.4434843e-05f};
    v.Mul(z, r.head, r.head);
    v.Polynomial(sine, z, p);
    v.Mul(sine, sine, z);
    v.Mul(sine, sine, r.head);
    v.Add(sine, sine, r.tail);
    v.Add(sine, sine, r.head);
    v.Polynomial(cosine, z, q);
    v.Mul(cosine, cosine, z);
    v.Mul(cosine, cosine, z);
    v.Mul(t, r.head, r.tail);
    v.Sub(cosine, cosine, t);
    v.Muls(z, z, 0.5f);
    v.SubFrom(r.head, 1.0f, z);  // w = 1 - z/2, rounded
    v.SubFrom(t, 1.0f, r.head);
    v.Sub(t, t, z);  // what w lost
    v.Add(cosine, cosine, t);
    v.Add(cosine, cosine, r.head);
    const Ints k = r.quarter.ReinterpretCast<int32_t>(), flip = t.ReinterpretCast<int32_t>();
    AscendC::Cast(k, r.quarter, RoundMode::CAST_RINT, v.n);
    Sync();
    if constexpr (kShift != 0) {
      AscendC::Adds(k, k, kShift, v.Count());
      Sync();
    }
    OddQuarters(v, bits, k, one, flip);
    v.Choose(sine, bits, cosine, sine);
    // The second bit of the quarter becomes the sign bit; adding it to the bits of a float flips the sign.
    AscendC::ShiftRight(k, k, int32_t(1), v.Count());
    Sync();
    AscendC::ShiftLeft(k, k, int32_t(31), v.Count());
    Sync();
    const Ints result = sine.ReinterpretCast<int32_t>();
    AscendC::Add(result, result, k, v.Count());
    Sync();
    if constexpr (kShift == 0) {  // sin x = x for tiny x, -0.0 included
      v.Abs(t, x);
      v.Compare(bits, t, 0.0001220703125f, CMPMODE::LT);
      v.Choose(dst, bits, x, sine);
    } else {
      v.Muls(dst, sine, 1.0f);
    }
  }
};
using SinBody = SineBody<0>;
using CosBody = SineBody<1>;

// tan r = r + (r z p(z) + tail (1 + 1.5 z)); -1 / tan r in odd quarters.
struct TanBody {
  static constexpr uint32_t kTensors = 7;
  __aicore__ static inline void Run(const Lanes& v, const Floats& dst, const Floats& x, Scratch s,
                                    uint32_t chunk) {
    const Reduced r{s.Take<float>(chunk), s.Take<float>(chunk), s.Take<float>(chunk)};
    const Floats z = s.Take<float>(chunk), tangent = s.Take<float>(chunk), t = s.Take<float>(chunk);
    const Bits bits = s.Take<uint8_t>(chunk / 8);
    const Words one = Pattern(v, s, chunk, 1);
    Reduce(v, r, x, bits, tangent, t);
    // (tan(sqrt z) / sqrt z - 1) / z on [0, (pi/4)^2]
    constexpr float p[] = {0.333333313f,   0.13333413f,    0.053954158f,     0.0219880901f,
                           0.00831829198f, 0.00502016069f, -0.000625464891f, 0.0020540657f};
    v.Mul(z, r.head, r.head);
    v.Polynomial(tangent, z, p);
    v.Mul(tangent, tangent, z);
    v.Mul(tangent, tangent, r.head);
    v.Muls(z, z, 1.5f);
    v.Adds(z, z, 1.0f);
    v.Mul(z, z, r.tail);
    v.Add(tangent, tangent, z);
    v.Add(tangent, tangent, r.head);
    v.DivInto(z, -1.0f, tangent, t);
    const Ints k = r.quarter.ReinterpretCast<int32_t>();
    AscendC::Cast(k, r.quarter, RoundMode::CAST_RINT, v.n);
    Sync();
    OddQuarters(v, bits, k, one, t.ReinterpretCast<int32_t>());
    v.Choose(tangent, bits, z, tangent);
    v.Abs(t, x);  // tan x = x for tiny x, -0.0 included
    v.Compare(bits, t, 0.0001220703125f, CMPMODE::LT);
    v.Choose(dst, bits, x, tangent);
  }
};

// asin of a = |x| <= 1/2, or of sqrt((1 - a) / 2) beyond: base + rest. small: bits of a <= 1/2. z is scratch.
__aicore__ inline void ArcSineParts(const Lanes& v, const Floats& a, const Floats& base, const Floats& rest,
                                    const Bits& small, const Floats& z) {
  // (asin(sqrt z) / sqrt z - 1) / z on [0, 1/4]
  constexpr float p[] = {0.166666597f,  0.0750050396f, 0.0445169546f,
                         0.0318077244f, 0.0144385872f, 0.0375164747f};
  v.Compare(small, a, 0.5f, CMPMODE::LE);
  v.SubFrom(base, 1.0f, a);
  v.Muls(base, base, 0.5f);
  v.Mul(z, a, a);
  v.Choose(z, small, z, base);
  v.Sqrt(base, base);
  v.Choose(base, small, a, base);
  v.Polynomial(rest, z, p);
  v.Mul(rest, rest, z);
  v.Mul(rest, rest, base);
}

// asin(a), or pi/2 - 2 asin(sqrt((1 - a) / 2)).
struct AsinBody {
  static constexpr uint32_t kTensors = 5;
  __aicore__ static inline void Run(const Lanes& v, const Floats& dst, const Floats& x, Scratch s,
                                    uint32_t chunk) {
    const Floats a = s.Take<float>(chunk), base = s.Take<float>(chunk), rest = s.Take<float>(chunk),
                 z = s.Take<float>(chunk);
    const Bits small = s.Take<uint8_t>(chunk / 8);
    const Words sign = Pattern(v, s, chunk, kSign);
    v.Abs(a, x);
    ArcSineParts(v, a, base, rest, small, z);
    v.Add(a, base, rest);
    v.Muls(rest, rest, 2.0f);
    v.Adds(rest, rest, -kHalfPiLow);
    v.Muls(base, base, 2.0f);
    v.Add(rest, rest, base);
    v.SubFrom(rest, kHalfPi, rest);
    v.Choose(a, small, a, rest);
    v.WithSign(dst, a, x, sign, z);
  }
};

// pi/2 - asin(x); 2 asin(sqrt((1 - a) / 2)) for x > 1/2 and pi minus that for x < -1/2.
struct AcosBody {
  static constexpr uint32_t kTensors = 7;
  __aicore__ static inline void Run(const Lanes& v, const Floats& dst, const Floats& x, Scratch s,
                                    uint32_t chunk) {
    const Floats a = s.Take<float>(chunk), base = s.Take<float>(chunk), rest = s.Take<float>(chunk),
                 z = s.Take<float>(chunk), near = s.Take<float>(chunk), far = s.Take<float>(chunk);
    const Bits small = s.Take<uint8_t>(chunk / 8), bits = s.Take<uint8_t>(chunk / 8);
    const Words sign = Pattern(v, s, chunk, kSign);
    v.Abs(a, x);
    ArcSineParts(v, a, base, rest, small, z);
    v.WithSign(near, rest, x, sign, z);
    v.Adds(near, near, -kHalfPiLow);
    v.WithSign(far, base, x, sign, z);
    v.Add(near, near, far);
    v.SubFrom(near, kHalfPi, near);
    v.Add(a, base, rest);
    v.Add(a, a, a);
    v.Muls(rest, rest, 2.0f);
    v.Adds(rest, rest, -kPiLow);
    v.Muls(base, base, 2.0f);
    v.Add(rest, rest, base);
    v.SubFrom(rest, kPi, rest);
    v.Muls(z, x, 1.0f);
    v.Compare(bits, z, 0.0f, CMPMODE::LT);
    v.Choose(a, bits, rest, a);
    v.Choose(dst, small, near, a);
  }
};

// rest of atan on [0, 1]: atan q = q + rest. z is scratch.
__aicore__ inline void ArcTangentRest(const Lanes& v, const Floats& rest, const Floats& q, const Floats& z) {
  // (atan(sqrt z) / sqrt z - 1) / z on [0, 1]
  constexpr float p[] = {-0.333333313f,  0.199999273f,   -0.142841667f,   0.110945031f,
                         -0.0898543671f, 0.0725943148f,  -0.0545158423f,  0.0344757251f,
                         -0.0162993409f, 0.00492631085f, -0.000697949028f};
  v.Mul(z, q, q);
  v.Polynomial(rest, z, p);
  v.Mul(rest, rest, z);
  v.Mul(rest, rest, q);
}

// pi/2 - (q + rest), q and rest untouched.
__aicore__ inline void HalfPiMinus(const Lanes& v, const Floats& d, const Floats& q, const Floats& rest) {
  v.Adds(d, rest, -kHalfPiLow);
  v.Add(d, d, q);
  v.SubFrom(d, kHalfPi, d);
}

// q = |x| or, beyond 1, 1 / |x|, which gives pi/2 - atan q.
struct AtanBody {
  static constexpr uint32_t kTensors = 5;
  __aicore__ static inline void Run(const Lanes& v, const Floats& dst, const Floats& x, Scratch s,
                                    uint32_t chunk) {
    const Floats q = s.Take<float>(chunk), t = s.Take<float>(chunk), rest = s.Take<float>(chunk),
                 z = s.Take<float>(chunk);
    const Bits beyond = s.Take<uint8_t>(chunk / 8);
    const Words sign = Pattern(v, s, chunk, kSign);
    v.Abs(q, x);
    v.Compare(beyond, q, 1.0f, CMPMODE::GT);
    v.DivInto(t, 1.0f, q, z);
    v.Choose(q, beyond, t, q);
    ArcTangentRest(v, rest, q, z);
    HalfPiMinus(v, t, q, rest);
    v.Add(q, q, rest);
    v.Choose(q, beyond, t, q);
    v.WithSign(dst, q, x, sign, z);
  }
};

// With q = min / max of |y| and |x|: atan q, reflected at pi/4 where |y| > |x|, at pi/2 where x is negative.
struct Atan2Body {
  static constexpr uint32_t kTensors = 7;
  __aicore__ static inline void Run(const Lanes& v, const Floats& dst, const Floats& y, const Floats& x,
                                    Scratch s, uint32_t chunk) {
    const Floats ax = s.Take<float>(chunk), ay = s.Take<float>(chunk), q = s.Take<float>(chunk),
                 t = s.Take<float>(chunk), rest = s.Take<float>(chunk), z = s.Take<float>(chunk);
    const Bits steep = s.Take<uint8_t>(chunk / 8), bits = s.Take<uint8_t>(chunk / 8);
    const Words sign = Pattern(v, s, chunk, kSign);
    v.Abs(ax, x);
    v.Abs(ay, y);
    v.Compare(steep, ay, ax, CMPMODE::GT);
    v.Min(q, ay, ax);
    v.Max(t, ay, ax);
    v.Div(rest, q, t);
    v.Compare(bits, t, 0.0f, CMPMODE::NE);  // 0 / 0 is 0 here
    v.Choose(rest, bits, rest, 0.0f);
    v.Compare(bits, q, kInfinity, CMPMODE::NE);  // inf / inf is 1 here
    v.Choose(q, bits, rest, 1.0f);
    ArcTangentRest(v, rest, q, z);
    HalfPiMinus(v, t, q, rest);
    v.Add(q, q, rest);
    v.Choose(q, steep, t, q);
    const Ints k = t.ReinterpretCast<int32_t>();
    AscendC::ShiftRight(k, x.ReinterpretCast<int32_t>(), int32_t(31), v.Count());
    Sync();
    AscendC::CompareScalar(bits, k, int32_t(-1), CMPMODE::EQ, RoundUp(v.n, 64));
    Sync();
    v.Adds(rest, q, -kPiLow);
    v.SubFrom(rest, kPi, rest);
    v.Choose(q, bits, rest, q);
    // Max and Min may have lost a NaN: add 0 times the sum, or NaN.
    v.Add(t, ax, ay);
    v.Mins(t, t, 1.0f);
    v.Muls(t, t, 0.0f);
    v.Add(q, q, t);
    v.WithSign(dst, q, y, sign, z);
  }
};

}  // namespace ops

AUTOFUSE_OPS_UNARY(Sin)
AUTOFUSE_OPS_UNARY(Cos)
AUTOFUSE_OPS_UNARY(Tan)
AUTOFUSE_OPS_UNARY(Asin)
AUTOFUSE_OPS_UNARY(Acos)
AUTOFUSE_OPS_UNARY(Atan)
AUTOFUSE_OPS_BINARY(Atan2)

}  // namespace autofuse
