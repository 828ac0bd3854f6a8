// Why: what all device helpers share. A helper is one AscIR operation that is not a single instruction of a
// 910B vector core. Contract of every helper, unless its own head says otherwise:
// - operands are UB tensors at 32 B aligned addresses; `count` elements are read and written; sources must be
// readable
//   (allocated, content irrelevant) up to round_up(count * sizeof(T), 256) bytes, because compares work on
//   whole repeats; dst is written up to round_up(count * sizeof(T), 32) bytes at most;
// - dst overlaps no source and no operand overlaps tmp, except where the head says "in place";
// - tmp is used from its start, XxxTmpBytes(count) bytes of it; bounded, because the work is done in chunks;
// - like a single instruction it needs a PipeBarrier<PIPE_V>() before it when V produced a source, and one
// after it
//   before V uses dst or tmp again. Inside it has all barriers it needs (auto-sync is off);
// - it uses no queue, leaves the mask in Normal mode and full.
#pragma once
#include "kernel_operator.h"

namespace autofuse {

using AscendC::CMPMODE;
using AscendC::LocalTensor;
using AscendC::RoundMode;
using AscendC::SELMODE;

__aicore__ constexpr inline uint32_t RoundUp(uint32_t value, uint32_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}
__aicore__ constexpr inline uint32_t Least(uint32_t a, uint32_t b) { return a < b ? a : b; }

// Elements handled at once by a helper that needs `eighths`/8 bytes of scratch an element: a multiple of 256,
// so that a chunk of any dtype, of bits even, starts at a 32 B boundary. At least 256 elements, whatever the
// budget.
constexpr uint32_t kScratchBudget = 8192;
__aicore__ constexpr inline uint32_t ChunkElements(uint32_t eighths, uint32_t budget = kScratchBudget) {
  return budget * 8 / eighths < 512 ? 256 : budget * 8 / eighths / 256 * 256;
}
// The scratch formula of all chunked helpers: min(round_up(count, 256), chunk) * eighths / 8.
__aicore__ constexpr inline uint32_t ScratchBytes(uint32_t count, uint32_t eighths,
                                                  uint32_t budget = kScratchBudget) {
  return Least(RoundUp(count, 256), ChunkElements(eighths, budget)) * eighths / 8;
}

template <typename A, typename B>
constexpr bool kSame = false;
template <typename A>
constexpr bool kSame<A, A> = true;

__aicore__ inline void Sync() { AscendC::PipeBarrier<PIPE_V>(); }

// Hands out pieces of the scratch one after another; each is a whole number of 32 B blocks.
class Scratch {
 public:
  __aicore__ inline explicit Scratch(const LocalTensor<uint8_t>& tmp) : tmp_(tmp), used_(0) {}
  template <typename T>
  __aicore__ inline LocalTensor<T> Take(uint32_t elements) {
    LocalTensor<uint8_t> piece = tmp_[used_];
    used_ += RoundUp(elements * static_cast<uint32_t>(sizeof(T)), 32);
    return piece.ReinterpretCast<T>();
  }

 private:
  LocalTensor<uint8_t> tmp_;
  uint32_t used_;
};

// dst = src AND a 32 B block that repeats. 16-bit words. In place allowed.
__aicore__ inline void AndBlock(const LocalTensor<uint16_t>& dst, const LocalTensor<uint16_t>& src,
                                const LocalTensor<uint16_t>& block, uint32_t words) {
  const AscendC::BinaryRepeatParams p(1, 1, 0, 8, 8, 0);
  const uint32_t repeats = words / 128, tail = words % 128;
  for (uint32_t r = 0; r < repeats; r += 255) {
    const uint8_t n = static_cast<uint8_t>(Least(repeats - r, 255));
    AscendC::And(dst[r * 128], src[r * 128], block, uint64_t(128), n, p);
  }
  if (tail) AscendC::And(dst[repeats * 128], src[repeats * 128], block, uint64_t(tail), uint8_t(1), p);
}

// Turns packed bits into bool bytes. `ones` holds n halves of 1 (or of 0 for kInvert); `sel` n halves of
// scratch.
template <bool kInvert>
__aicore__ inline void BitsToBool(const LocalTensor<uint8_t>& dst, const LocalTensor<uint8_t>& bits,
                                  const LocalTensor<half>& ones, const LocalTensor<half>& sel, uint32_t n) {
  AscendC::Select(sel, bits, ones, static_cast<half>(kInvert ? 1.0f : 0.0f), SELMODE::VSEL_TENSOR_SCALAR_MODE,
                  n);
  Sync();
  AscendC::Cast(dst, sel, RoundMode::CAST_RINT, n);
}

// Bool bytes to packed bits; `wide` holds n halves of scratch, rounded up to 128.
__aicore__ inline void BoolToBits(const LocalTensor<uint8_t>& bits, const LocalTensor<uint8_t>& cond,
                                  const LocalTensor<half>& wide, uint32_t n) {
  AscendC::Cast(wide, cond, RoundMode::CAST_NONE, n);
  Sync();
  AscendC::CompareScalar(bits, wide, static_cast<half>(0.0f), CMPMODE::NE, RoundUp(n, 128));
}

// Bit masks for 64-bit data, which the vector unit sees as pairs of 32-bit words: each half 0/1 in `flags`
// becomes two equal bits. `pairs` is scratch of n int32. flags and pairs are clobbered.
__aicore__ inline void FlagsToPairBits(const LocalTensor<uint8_t>& bits, const LocalTensor<half>& flags,
                                       const LocalTensor<int32_t>& pairs, uint32_t n) {
  AscendC::Cast(pairs, flags, RoundMode::CAST_RINT, n);
  Sync();
  AscendC::Muls(pairs, pairs, int32_t(0x3C003C00), static_cast<int32_t>(n));  // two halves of 1.0
  Sync();
  AscendC::CompareScalar(bits, pairs.ReinterpretCast<half>(), static_cast<half>(0.0f), CMPMODE::NE,
                         RoundUp(2 * n, 128));
}

}  // namespace autofuse
