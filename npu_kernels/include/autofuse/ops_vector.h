// Why: what the transcendental helpers (ops_*.h) share: float instructions on a chunk where each waits for
// the one before, polynomials, selects, signs, and the split of a float into a 12-bit head and a tail.
// Contract: that of common.h; dst of an ops_* helper may be its (first) source, because every chunk writes
// dst last. Scratch of a helper with t float tensors: min(round_up(count, 256), chunk) * (32 t + 2) / 8
// bytes, where the chunk is what fits 32 KiB (OpsTmpBytes<t>): longer chunks than common.h's, because these
// chains are long and every instruction costs about 20 cycles to start. All use Select's reserved 8 KiB.
#pragma once
#include "common.h"

namespace autofuse {
namespace ops {

using Floats = LocalTensor<float>;
using Ints = LocalTensor<int32_t>;
using Bits = LocalTensor<uint8_t>;
using Words = LocalTensor<uint16_t>;

constexpr uint32_t kBudget = 32768;
constexpr float kInfinity = __builtin_inff();

// How a body with kTensors float scratch tensors (and two masks of bits) cuts its work.
template <uint32_t kTensors>
__aicore__ constexpr inline uint32_t OpsChunk() {
  return ChunkElements(32 * kTensors + 2, kBudget);
}
template <uint32_t kTensors>
__aicore__ constexpr inline uint32_t OpsTmpBytes(uint32_t count) {
  return ScratchBytes(count, 32 * kTensors + 2, kBudget);
}

// Instructions on the first n elements; each is complete before the next begins.
struct Lanes {
  uint32_t n;

  __aicore__ inline int32_t Count() const { return static_cast<int32_t>(n); }
  __aicore__ inline void Add(const Floats& d, const Floats& a, const Floats& b) const {
    AscendC::Add(d, a, b, Count());
    Sync();
  }
  __aicore__ inline void Sub(const Floats& d, const Floats& a, const Floats& b) const {
    AscendC::Sub(d, a, b, Count());
    Sync();
  }
  __aicore__ inline void Mul(const Floats& d, const Floats& a, const Floats& b) const {
    AscendC::Mul(d, a, b, Count());
    Sync();
  }
  __aicore__ inline void Div(const Floats& d, const Floats& a, const Floats& b) const {
    AscendC::Div(d, a, b, Count());
    Sync();
  }
  __aicore__ inline void Max(const Floats& d, const Floats& a, const Floats& b) const {
    AscendC::Max(d, a, b, Count());
    Sync();
  }
  __aicore__ inline void Min(const Floats& d, const Floats& a, const Floats& b) const {
    AscendC::Min(d, a, b, Count());
    Sync();
  }
  __aicore__ inline void Adds(const Floats& d, const Floats& a, float s) const {
    AscendC::Adds(d, a, s, Count());
    Sync();
  }
  __aicore__ inline void Muls(const Floats& d, const Floats& a, float s) const {
    AscendC::Muls(d, a, s, Count());
    Sync();
  }
  __aicore__ inline void Maxs(const Floats& d, const Floats& a, float s) const {
    AscendC::Maxs(d, a, s, Count());
    Sync();
  }
  __aicore__ inline void Mins(const Floats& d, const Floats& a, float s) const {
    AscendC::Mins(d, a, s, Count());
    Sync();
  }
  __aicore__ inline void Abs(const Floats& d, const Floats& a) const {
    AscendC::Abs(d, a, Count());
    Sync();
  }
  __aicore__ inline void Exp(const Floats& d, const Floats& a) const {
    AscendC::Exp(d, a, Count());
    Sync();
  }
  __aicore__ inline void Ln(const Floats& d, const Floats& a) const {
    AscendC::Ln(d, a, Count());
    Sync();
  }
  __aicore__ inline void Sqrt(const Floats& d, const Floats& a) const {
    AscendC::Sqrt(d, a, Count());
    Sync();
  }
  __aicore__ inline void Fill(const Floats& d, float s) const {
    AscendC::Duplicate(d, s, Count());
    Sync();
  }
  __aicore__ inline void Rint(const Floats& d, const Floats& a) const {
    AscendC::Cast(d, a, RoundMode::CAST_RINT, n);
    Sync();
  }
  __aicore__ inline void Truncate(const Floats& d, const Floats& a) const {
    AscendC::Cast(d, a, RoundMode::CAST_TRUNC, n);
    Sync();
  }

  // s - a and s / a; `t` is scratch that may not be a.
  __aicore__ inline void SubFrom(const Floats& d, float s, const Floats& a) const {
    Muls(d, a, -1.0f);
    Adds(d, d, s);
  }
  __aicore__ inline void DivInto(const Floats& d, float s, const Floats& a, const Floats& t) const {
    Fill(t, s);
    Div(d, t, a);
  }

  // Gives a value to the lanes after n that Compare reads: where the scalar unit reads the bits, all must be
  // known.
  __aicore__ inline void DefineRest(const Floats& d) const {
    if (n % 64 == 0) return;
    AscendC::Duplicate(d, 0.0f, static_cast<int32_t>(RoundUp(n, 64)));
    Sync();
  }

  // bits of `a mode s`. `a` must be scratch: whole repeats are read.
  __aicore__ inline void Compare(const Bits& bits, const Floats& a, float s, CMPMODE mode) const {
    AscendC::CompareScalar(bits, a, s, mode, RoundUp(n, 64));
    Sync();
  }
  __aicore__ inline void Compare(const Bits& bits, const Floats& a, const Floats& b, CMPMODE mode) const {
    AscendC::Compare(bits, a, b, mode, RoundUp(n, 64));
    Sync();
  }
  __aicore__ inline void Choose(const Floats& d, const Bits& bits, const Floats& yes,
                                const Floats& no) const {
    AscendC::Select(d, bits, yes, no, SELMODE::VSEL_TENSOR_TENSOR_MODE, n);
    Sync();
  }
  __aicore__ inline void Choose(const Floats& d, const Bits& bits, const Floats& yes, float no) const {
    AscendC::Select(d, bits, yes, no, SELMODE::VSEL_TENSOR_SCALAR_MODE, n);
    Sync();
  }

  // acc = c[0] + c[1] z + ... by Horner's rule; acc is neither z nor any other operand.
  template <uint32_t N>
  __aicore__ inline void Polynomial(const Floats& acc, const Floats& z, const float (&c)[N]) const {
    static_assert(N >= 2, "a polynomial of degree 1 at least");
    Muls(acc, z, c[N - 1]);
    Adds(acc, acc, c[N - 2]);
    for (uint32_t i = N - 2; i > 0; --i) {
      Mul(acc, acc, z);
      Adds(acc, acc, c[i - 1]);
    }
  }

  // d = source AND a tensor of one pattern (Pattern).
  __aicore__ inline void And(const Floats& d, const Floats& source, const Words& pattern) const {
    AscendC::And(d.ReinterpretCast<uint16_t>(), source.ReinterpretCast<uint16_t>(), pattern,
                 static_cast<int32_t>(2 * n));
    Sync();
  }
  // d = the non-negative `magnitude` with the sign of x. `sign` is the pattern kSign, t scratch.
  __aicore__ inline void WithSign(const Floats& d, const Floats& magnitude, const Floats& x,
                                  const Words& sign, const Floats& t) const {
    And(t, x, sign);
    AscendC::Or(d.ReinterpretCast<uint16_t>(), magnitude.ReinterpretCast<uint16_t>(),
                t.ReinterpretCast<uint16_t>(), static_cast<int32_t>(2 * n));
    Sync();
  }
};

// A tensor of one 32-bit pattern, for Lanes::And and WithSign; counts as one of the body's scratch tensors.
// The count form of And reads it: the repeat form could reuse a single block, but costs an instruction every
// 255 repeats.
__aicore__ inline Words Pattern(const Lanes& v, Scratch& s, uint32_t chunk, uint32_t pattern) {
  const LocalTensor<uint32_t> whole = s.Take<uint32_t>(chunk);
  AscendC::Duplicate(whole, pattern, v.Count());
  Sync();
  return whole.ReinterpretCast<uint16_t>();
}
constexpr uint32_t kSign = 0x80000000u;
constexpr uint32_t kHead12 =
    0xfffff000u;  // the leading 12 of a float's 24 significant bits: head * head is exact

// Runs Body::Run(lanes, dst, src, scratch, chunk) over chunks.
template <typename Body>
__aicore__ inline void Unary(const Floats& dst, const Floats& src, const LocalTensor<uint8_t>& tmp,
                             uint32_t count) {
  const uint32_t chunk = Least(RoundUp(count, 256), OpsChunk<Body::kTensors>());
  for (uint32_t at = 0; at < count; at += chunk) {
    if (at) Sync();
    Body::Run(Lanes{Least(count - at, chunk)}, dst[at], src[at], Scratch(tmp), chunk);
  }
}
template <typename Body>
__aicore__ inline void Binary(const Floats& dst, const Floats& a, const Floats& b,
                              const LocalTensor<uint8_t>& tmp, uint32_t count) {
  const uint32_t chunk = Least(RoundUp(count, 256), OpsChunk<Body::kTensors>());
  for (uint32_t at = 0; at < count; at += chunk) {
    if (at) Sync();
    Body::Run(Lanes{Least(count - at, chunk)}, dst[at], a[at], b[at], Scratch(tmp), chunk);
  }
}

}  // namespace ops
}  // namespace autofuse

// The public face of a body: autofuse::Name(dst, src, tmp, count) and NameTmpBytes(count).
#define AUTOFUSE_OPS_UNARY(Name)                                                            \
  __aicore__ constexpr inline uint32_t Name##TmpBytes(uint32_t count) {                     \
    return ops::OpsTmpBytes<ops::Name##Body::kTensors>(count);                              \
  }                                                                                         \
  __aicore__ inline void Name(const LocalTensor<float>& dst, const LocalTensor<float>& src, \
                              const LocalTensor<uint8_t>& tmp, uint32_t count) {            \
    ops::Unary<ops::Name##Body>(dst, src, tmp, count);                                      \
  }
#define AUTOFUSE_OPS_BINARY(Name)                                                           \
  __aicore__ constexpr inline uint32_t Name##TmpBytes(uint32_t count) {                     \
    return ops::OpsTmpBytes<ops::Name##Body::kTensors>(count);                              \
  }                                                                                         \
  __aicore__ inline void Name(const LocalTensor<float>& dst, const LocalTensor<float>& a,   \
                              const LocalTensor<float>& b, const LocalTensor<uint8_t>& tmp, \
                              uint32_t count) {                                             \
    ops::Binary<ops::Name##Body>(dst, a, b, tmp, count);                                    \
  }
