// Why: x to the power of y for floats, with C's results for every special case and about one ulp of error.
//   Pow(dst, x, y, tmp, count)     in place (dst may be x or y); PowTmpBytes(count)
// x^y = 2^(y log2 |x|). y log2 |x| can be 128 and must be right to 2^-25, so log2 is computed as head + tail
// with about 34 bits: |x| = m 2^e with m in [sqrt(1/2), sqrt 2), s = (m - 1) / (m + 1), log2 m = 2 / (3 ln 2)
// s (3 + s^2 + r). Products of heads of 12 bits are exact.
#pragma once
#include "ops_vector.h"

namespace autofuse {
namespace ops {

// Where |y log2 |x|| is this or more, the result is infinite or 0.
constexpr float kPowLimit = 159.0f;

// log2 of a = |x|, normal and finite, as head + tail. a survives; t0 .. t5 are scratch.
__aicore__ inline void LogTwo(const Lanes& v, const Floats& head, const Floats& tail, const Floats& a,
                              const Words& head12, const Floats& t0, const Floats& t1, const Floats& t2,
                              const Floats& t3, const Floats& t4, const Floats& t5) {
  // 2 / (3 ln 2) as 12 bits and the rest
  constexpr float kScale = 0.961796694f, kScaleHead = 0.961669922f, kScaleTail = 0.000126772051f;
  // 3 (atanh(sqrt z) / sqrt z - 1 - z / 3) / z^2 on [0, 0.0296]
  constexpr float c[] = {0.599999964f, 0.428578228f, 0.332768828f, 0.292129159f};
  const Ints e = t0.ReinterpretCast<int32_t>(), m = t1.ReinterpretCast<int32_t>();
  AscendC::Adds(e, a.ReinterpretCast<int32_t>(), int32_t(-0x3f3504f3),
                v.Count());  // minus the bits of sqrt(1/2)
  Sync();
  AscendC::ShiftRight(e, e, int32_t(23), v.Count());
  Sync();
  AscendC::ShiftLeft(m, e, int32_t(23), v.Count());
  Sync();
  AscendC::Sub(m, a.ReinterpretCast<int32_t>(), m, v.Count());
  Sync();
  AscendC::Cast(t0, e, RoundMode::CAST_RINT, v.n);
  Sync();
  // m + 1 = gh + gl; s = sh + sl
  v.Adds(t2, t1, 1.0f);
  v.And(t3, t2, head12);  // gh
  v.Adds(t4, t3, -1.0f);
  v.Sub(t4, t1, t4);          // gl
  v.Adds(t1, t1, -1.0f);      // m - 1
  v.Div(head, t1, t2);        // s
  v.And(tail, head, head12);  // sh
  v.Mul(t3, t3, tail);
  v.Sub(t1, t1, t3);
  v.Mul(t4, t4, tail);
  v.Sub(t1, t1, t4);
  v.Div(t1, t1, t2);  // sl
  // z = zh + dz; r = z^2 c(z) + dz
  v.Mul(t2, tail, tail);  // zh
  v.Add(t3, tail, head);
  v.Mul(t3, t3, t1);  // dz
  v.Add(t4, t2, t3);  // z
  v.Polynomial(t5, t4, c);
  v.Mul(t5, t5, t4);
  v.Mul(t5, t5, t4);
  v.Add(t5, t5, t3);  // r
  // 3 + zh + r = th + tl
  v.Adds(t3, t2, 3.0f);
  v.Add(t3, t3, t5);
  v.And(t3, t3, head12);  // th
  v.Adds(t4, t3, -3.0f);
  v.Sub(t4, t4, t2);
  v.Sub(t4, t5, t4);  // tl
  // (sh + sl) (th + tl) = ph + pl
  v.Mul(t2, tail, t3);
  v.Mul(t1, t1, t3);
  v.Mul(t4, t4, head);
  v.Add(t1, t1, t4);
  v.Add(t3, t2, t1);
  v.And(t3, t3, head12);  // ph
  v.Sub(t2, t3, t2);
  v.Sub(t1, t1, t2);  // pl
  // e + scale (ph + pl)
  v.Muls(t2, t3, kScaleHead);
  v.Add(head, t0, t2);
  v.Sub(t0, head, t0);
  v.Sub(t2, t2, t0);
  v.Muls(t3, t3, kScaleTail);
  v.Muls(t1, t1, kScale);
  v.Add(t3, t3, t1);
  v.Add(tail, t2, t3);
}

struct PowBody {
  static constexpr uint32_t kTensors = 10;
  __aicore__ static inline void Run(const Lanes& v, const Floats& dst, const Floats& x, const Floats& y,
                                    Scratch s, uint32_t chunk) {
    const Floats a = s.Take<float>(chunk), head = s.Take<float>(chunk), tail = s.Take<float>(chunk),
                 t0 = s.Take<float>(chunk), t1 = s.Take<float>(chunk), t2 = s.Take<float>(chunk),
                 t3 = s.Take<float>(chunk), t4 = s.Take<float>(chunk), t5 = s.Take<float>(chunk);
    const Bits bits = s.Take<uint8_t>(chunk / 8), other = s.Take<uint8_t>(chunk / 8);
    const Words head12 = Pattern(v, s, chunk, kHead12);
    v.Abs(a, x);
    LogTwo(v, head, tail, a, head12, t0, t1, t2, t3, t4, t5);

    // The plain product decides about overflow; log2 of 0 is -inf there, of inf inf, of NaN NaN.
    v.Add(t0, head, tail);
    v.Compare(bits, a, kInfinity, CMPMODE::NE);
    v.Choose(t0, bits, t0, kInfinity);
    v.Compare(bits, a, 1.17549435e-38f, CMPMODE::GE);
    v.Choose(t0, bits, t0, -kInfinity);
    v.Compare(bits, a, a, CMPMODE::EQ);
    v.Choose(t0, bits, t0, a);
    v.Mul(t0, t0, y);

    // y (head + tail) = n + f, |f| <= 1/2; clamped, so that nothing here is infinite where the result matters
    v.And(t1, head, head12);
    v.Sub(head, head, t1);
    v.Add(tail, tail, head);
    v.And(t2, y, head12);
    v.Sub(t3, y, t2);
    v.Mul(t2, t2, t1);  // exact
    v.Mul(t3, t3, t1);
    v.Mul(t4, tail, y);
    v.Add(t3, t3, t4);
    v.Add(t4, t2, t3);
    v.Rint(t4, t4);
    v.Maxs(t4, t4, -160.0f);
    v.Mins(t4, t4, 160.0f);  // n
    v.Sub(t2, t2, t4);
    v.Add(t2, t2, t3);
    v.Maxs(t2, t2, -0.6f);
    v.Mins(t2, t2, 0.6f);  // f
    // (2^f - 1) / f on [-0.51, 0.51]
    constexpr float exp2[] = {0.693147182f,   0.240226507f,    0.0555041097f, 0.009618029f,
                              0.00133334205f, 0.000154696841f, 1.5317466e-05f};
    v.Polynomial(t1, t2, exp2);
    v.Mul(t1, t1, t2);
    v.Adds(t1, t1, 1.0f);
    // times 2^n in two steps, so that neither factor overflows
    const Ints n = t2.ReinterpretCast<int32_t>(), half = t3.ReinterpretCast<int32_t>();
    AscendC::Cast(n, t4, RoundMode::CAST_RINT, v.n);
    Sync();
    AscendC::ShiftRight(half, n, int32_t(1), v.Count());
    Sync();
    AscendC::Sub(n, n, half, v.Count());
    Sync();
    Scale(v, t1, half);
    Scale(v, t1, n);

    // Beyond the limit exp gives inf or 0 by the sign, and NaN for NaN.
    v.Muls(t2, t0, 1000.0f);
    v.Exp(t2, t2);
    v.Abs(t0, t0);
    v.Compare(bits, t0, kPowLimit, CMPMODE::LT);
    v.Choose(t1, bits, t1, t2);
    v.Compare(bits, a, 1.0f, CMPMODE::NE);
    v.Choose(t1, bits, t1, 1.0f);  // 1 for x = 1 and x = -1, whatever y is

    // Negative x: odd y flips the sign, a y that is no integer gives NaN (not for zeros and infinities).
    v.Muls(t2, y, 1.0f);
    v.Rint(t0, t2);
    v.Compare(bits, t0, t2, CMPMODE::EQ);  // y is an integer (infinities are)
    v.Muls(t3, t2, 0.5f);
    v.Rint(t4, t3);
    v.Compare(other, t3, t4, CMPMODE::NE);  // y / 2 is none
    AndBits(v, other, bits, other);
    v.Fill(t3, -0.0f);
    v.Choose(t3, other, t3, 0.0f);
    // t4 = the sign of x where y is odd, as bits to be or-ed
    AscendC::And(t4.ReinterpretCast<uint16_t>(), t3.ReinterpretCast<uint16_t>(),
                 x.ReinterpretCast<uint16_t>(), static_cast<int32_t>(2 * v.n));
    Sync();
    AscendC::Or(t1.ReinterpretCast<uint16_t>(), t1.ReinterpretCast<uint16_t>(),
                t4.ReinterpretCast<uint16_t>(), static_cast<int32_t>(2 * v.n));
    Sync();
    // keep = y is an integer, or x >= 0, or |x| infinite; x = -0.0 counts as x >= 0
    v.Muls(t3, x, 1.0f);
    v.Compare(other, t3, 0.0f, CMPMODE::LT);
    NotBits(v, other);
    OrBits(v, bits, bits, other);
    v.Compare(other, a, kInfinity, CMPMODE::EQ);
    OrBits(v, bits, bits, other);
    v.Choose(t1, bits, t1, __builtin_nanf(""));
    // x^0 = 1 and 1^y = 1, even for NaN
    v.Compare(bits, t2, 0.0f, CMPMODE::NE);
    v.Compare(other, t3, 1.0f, CMPMODE::NE);
    AndBits(v, bits, bits, other);
    v.Choose(dst, bits, t1, 1.0f);
  }

  // p *= 2^k; k is clobbered.
  __aicore__ static inline void Scale(const Lanes& v, const Floats& p, const Ints& k) {
    AscendC::Adds(k, k, int32_t(127), v.Count());
    Sync();
    AscendC::ShiftLeft(k, k, int32_t(23), v.Count());
    Sync();
    v.Mul(p, p, k.ReinterpretCast<float>());
  }
  __aicore__ static inline int32_t MaskWords(const Lanes& v) {
    return static_cast<int32_t>(RoundUp(v.n, 64) / 16);
  }
  __aicore__ static inline void AndBits(const Lanes& v, const Bits& d, const Bits& a, const Bits& b) {
    AscendC::And(d.ReinterpretCast<uint16_t>(), a.ReinterpretCast<uint16_t>(), b.ReinterpretCast<uint16_t>(),
                 MaskWords(v));
    Sync();
  }
  __aicore__ static inline void OrBits(const Lanes& v, const Bits& d, const Bits& a, const Bits& b) {
    AscendC::Or(d.ReinterpretCast<uint16_t>(), a.ReinterpretCast<uint16_t>(), b.ReinterpretCast<uint16_t>(),
                MaskWords(v));
    Sync();
  }
  __aicore__ static inline void NotBits(const Lanes& v, const Bits& d) {
    AscendC::Not(d.ReinterpretCast<uint16_t>(), d.ReinterpretCast<uint16_t>(), MaskWords(v));
    Sync();
  }
};

}  // namespace ops

AUTOFUSE_OPS_BINARY(Pow)

}  // namespace autofuse
