// Why: the building blocks of the float functions: instructions with their barrier, polynomials, sign
// handling, and the chunk loop. Everything is float; 16-bit floats pass through float outside. Only Add, Sub,
// Mul, Div, Sqrt (exact), Exp and Ln of the unit are relied on, no Reciprocal or Rsqrt (low precision on the
// device). Polynomials are minimax fits (npu_kernels/include/fit_polynomials.py); errors are stated per
// function in README.md.
#pragma once
#include "common.h"

namespace autofuse {

constexpr uint32_t kMathBudget = 16384;
constexpr float kInfinity = __builtin_inff();
constexpr float kPiOver2Hi = 1.57079637050628662109375f;  // float(pi/2)
constexpr float kPiOver2Lo = -4.37113900018624283e-8f;    // pi/2 - hi
constexpr float kPiHi = 3.1415927410125732421875f;
constexpr float kPiLo = -8.74227800037248566e-8f;
constexpr float kLn2 = 0.693147182464599609375f;     // float(ln 2)
constexpr float kLn2Lo = -1.904654323148236017e-9f;  // ln 2 - float(ln 2)

namespace detail {

using F = LocalTensor<float>;
using B = LocalTensor<uint8_t>;

// Instructions over n elements, each followed by the barrier that the next one needs.
struct Steps {
  uint32_t n;
  LocalTensor<uint16_t> sign_block;  // 32 B of 0x80000000

  __aicore__ inline int32_t N() const { return static_cast<int32_t>(n); }
  __aicore__ inline void Add(const F& d, const F& a, const F& b) const {
    AscendC::Add(d, a, b, N());
    Sync();
  }
  __aicore__ inline void Sub(const F& d, const F& a, const F& b) const {
    AscendC::Sub(d, a, b, N());
    Sync();
  }
  __aicore__ inline void Mul(const F& d, const F& a, const F& b) const {
    AscendC::Mul(d, a, b, N());
    Sync();
  }
  __aicore__ inline void Div(const F& d, const F& a, const F& b) const {
    AscendC::Div(d, a, b, N());
    Sync();
  }
  __aicore__ inline void Adds(const F& d, const F& a, float k) const {
    AscendC::Adds(d, a, k, N());
    Sync();
  }
  __aicore__ inline void Muls(const F& d, const F& a, float k) const {
    AscendC::Muls(d, a, k, N());
    Sync();
  }
  __aicore__ inline void Mins(const F& d, const F& a, float k) const {
    AscendC::Mins(d, a, k, N());
    Sync();
  }
  __aicore__ inline void Maxs(const F& d, const F& a, float k) const {
    AscendC::Maxs(d, a, k, N());
    Sync();
  }
  __aicore__ inline void Min(const F& d, const F& a, const F& b) const {
    AscendC::Min(d, a, b, N());
    Sync();
  }
  __aicore__ inline void Max(const F& d, const F& a, const F& b) const {
    AscendC::Max(d, a, b, N());
    Sync();
  }
  __aicore__ inline void Exp(const F& d, const F& a) const {
    AscendC::Exp(d, a, N());
    Sync();
  }
  __aicore__ inline void Ln(const F& d, const F& a) const {
    AscendC::Ln(d, a, N());
    Sync();
  }
  __aicore__ inline void Sqrt(const F& d, const F& a) const {
    AscendC::Sqrt(d, a, N());
    Sync();
  }
  __aicore__ inline void Abs(const F& d, const F& a) const {
    AscendC::Abs(d, a, N());
    Sync();
  }
  __aicore__ inline void Set(const F& d, float k) const {
    AscendC::Duplicate(d, k, N());
    Sync();
  }
  __aicore__ inline void Integral(const F& d, const F& a, RoundMode mode) const {
    AscendC::Cast(d, a, mode, n);
    Sync();
  }
  // bits = a (mode) k
  __aicore__ inline void Test(const B& bits, const F& a, float k, CMPMODE mode) const {
    AscendC::CompareScalar(bits, a, k, mode, RoundUp(n, 64));
    Sync();
  }
  __aicore__ inline void Test(const B& bits, const F& a, const F& b, CMPMODE mode) const {
    AscendC::Compare(bits, a, b, mode, RoundUp(n, 64));
    Sync();
  }
  // d = bits ? a : b. In place with a or b.
  __aicore__ inline void Pick(const F& d, const B& bits, const F& a, const F& b) const {
    AscendC::Select(d, bits, a, b, SELMODE::VSEL_TENSOR_TENSOR_MODE, n);
    Sync();
  }
  __aicore__ inline void Pick(const F& d, const B& bits, const F& a, float b) const {
    AscendC::Select(d, bits, a, b, SELMODE::VSEL_TENSOR_SCALAR_MODE, n);
    Sync();
  }
  // Packed bits as 16-bit words.
  __aicore__ inline void BitsAnd(const B& d, const B& a, const B& b) const {
    AscendC::And(d.ReinterpretCast<uint16_t>(), a.ReinterpretCast<uint16_t>(), b.ReinterpretCast<uint16_t>(),
                 static_cast<int32_t>(RoundUp(n, 64) / 16));
    Sync();
  }
  __aicore__ inline void BitsOr(const B& d, const B& a, const B& b) const {
    AscendC::Or(d.ReinterpretCast<uint16_t>(), a.ReinterpretCast<uint16_t>(), b.ReinterpretCast<uint16_t>(),
                static_cast<int32_t>(RoundUp(n, 64) / 16));
    Sync();
  }
  __aicore__ inline void BitsNot(const B& d, const B& a) const {
    AscendC::Not(d.ReinterpretCast<uint16_t>(), a.ReinterpretCast<uint16_t>(),
                 static_cast<int32_t>(RoundUp(n, 64) / 16));
    Sync();
  }
  // d = the sign bit of a, everything else 0. d != a allowed only.
  __aicore__ inline void SignOnly(const F& d, const F& a) const {
    AndBlock(d.ReinterpretCast<uint16_t>(), a.ReinterpretCast<uint16_t>(), sign_block, 2 * n);
    Sync();
  }
  __aicore__ inline void Or(const F& d, const F& a, const F& b) const {
    AscendC::Or(d.ReinterpretCast<uint16_t>(), a.ReinterpretCast<uint16_t>(), b.ReinterpretCast<uint16_t>(),
                static_cast<int32_t>(2 * n));
    Sync();
  }
  // d (>= 0 or NaN) gets the sign of a; t is scratch.
  __aicore__ inline void GiveSign(const F& d, const F& a, const F& t) const {
    SignOnly(t, a);
    Or(d, d, t);
  }
  // d = c[0] + t*(c[1] + t*(... c[kTerms-1])); d is not t.
  template <uint32_t kTerms>
  __aicore__ inline void Poly(const F& d, const F& t, const float (&c)[kTerms]) const {
    Muls(d, t, c[kTerms - 1]);
    for (uint32_t i = kTerms - 2; i > 0; --i) {
      Adds(d, d, c[i]);
      Mul(d, d, t);
    }
    Adds(d, d, c[0]);
  }
  // d = x + x*t*poly(t), with t = x*x: an odd function's series. d is neither x nor t; t is kept.
  template <uint32_t kTerms>
  __aicore__ inline void Odd(const F& d, const F& x, const F& t, const float (&c)[kTerms]) const {
    Poly(d, t, c);
    Mul(d, d, t);
    Mul(d, d, x);
    Add(d, d, x);
  }
  // Keeps the upper 12 bits of the significand: products of two such numbers are exact. `head_block` holds
  // 0xfffff000.
  __aicore__ inline void Head(const F& d, const F& a, const LocalTensor<uint16_t>& head_block) const {
    AndBlock(d.ReinterpretCast<uint16_t>(), a.ReinterpretCast<uint16_t>(), head_block, 2 * n);
    Sync();
  }
};

__aicore__ inline LocalTensor<uint16_t> WordBlock(Scratch& s, uint32_t word) {
  const LocalTensor<uint32_t> block = s.Take<uint32_t>(8);
  AscendC::Duplicate(block, word, 8);
  return block.ReinterpretCast<uint16_t>();
}

// Runs body(steps, at, scratch, chunk) over chunks. kEighths: scratch of the body, 1/8 bytes an element; the
// sign block takes 32 B more, `kBlocks` further blocks 32 B each (the body takes them once per chunk).
template <uint32_t kEighths, uint32_t kBlocks, typename Body>
__aicore__ inline void MathLoop(const LocalTensor<uint8_t>& tmp, uint32_t count, Body body) {
  const uint32_t chunk = Least(RoundUp(count, 256), ChunkElements(kEighths, kMathBudget));
  for (uint32_t at = 0; at < count; at += chunk) {
    Scratch s(tmp);
    const LocalTensor<uint16_t> sign_block = WordBlock(s, 0x80000000u);
    Sync();
    body(Steps{Least(count - at, chunk), sign_block}, at, s, chunk);
  }
}
template <uint32_t kEighths, uint32_t kBlocks>
__aicore__ constexpr inline uint32_t MathBytes(uint32_t count) {
  return ScratchBytes(count, kEighths, kMathBudget) + 32 * (1 + kBlocks);
}

}  // namespace detail
}  // namespace autofuse
