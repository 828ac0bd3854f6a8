// Why: logical operations on bools (uint8 0/1) and bitwise ones on integers of any width, as 16-bit words:
// the unit has And, Or, Not on 16-bit types only and no exclusive or. Exact. In place: all but the Xor forms'
// tmp.
//   LogicalAnd, LogicalOr (dst, a, b, tmp, count)  scratch 0      LogicalNot (dst, a, tmp, count)  scratch 32
//   B BitwiseAnd, BitwiseOr (dst, a, b, tmp, count)  scratch 0      BitwiseNot (dst, a, tmp, count)  scratch
//   0 BitwiseXor, LogicalXor (dst, a, b, tmp, count) scratch min(round_up(count*sizeof(T), 32), 8192)
// An odd number of bytes is completed: up to round_up(bytes, 2) are read and written.
#pragma once
#include "common.h"

namespace autofuse {

template <typename T>
__aicore__ constexpr inline uint32_t BitwiseXorTmpBytes(uint32_t count) {
  return Least(RoundUp(count * static_cast<uint32_t>(sizeof(T)), 32), kScratchBudget);
}
__aicore__ constexpr inline uint32_t LogicalXorTmpBytes(uint32_t count) {
  return BitwiseXorTmpBytes<uint8_t>(count);
}
__aicore__ constexpr inline uint32_t LogicalNotTmpBytes(uint32_t) { return 32; }

namespace detail {
template <typename T>
__aicore__ inline int32_t Words(uint32_t count) {
  return static_cast<int32_t>((count * static_cast<uint32_t>(sizeof(T)) + 1) / 2);
}
}  // namespace detail

template <typename T>
__aicore__ inline void BitwiseAnd(const LocalTensor<T>& dst, const LocalTensor<T>& a, const LocalTensor<T>& b,
                                  const LocalTensor<uint8_t>&, uint32_t count) {
  AscendC::And(dst.template ReinterpretCast<uint16_t>(), a.template ReinterpretCast<uint16_t>(),
               b.template ReinterpretCast<uint16_t>(), detail::Words<T>(count));
}
template <typename T>
__aicore__ inline void BitwiseOr(const LocalTensor<T>& dst, const LocalTensor<T>& a, const LocalTensor<T>& b,
                                 const LocalTensor<uint8_t>&, uint32_t count) {
  AscendC::Or(dst.template ReinterpretCast<uint16_t>(), a.template ReinterpretCast<uint16_t>(),
              b.template ReinterpretCast<uint16_t>(), detail::Words<T>(count));
}
template <typename T>
__aicore__ inline void BitwiseNot(const LocalTensor<T>& dst, const LocalTensor<T>& a,
                                  const LocalTensor<uint8_t>&, uint32_t count) {
  AscendC::Not(dst.template ReinterpretCast<uint16_t>(), a.template ReinterpretCast<uint16_t>(),
               detail::Words<T>(count));
}
// a ^ b = (a | b) & ~(a & b)
template <typename T>
__aicore__ inline void BitwiseXor(const LocalTensor<T>& dst, const LocalTensor<T>& a, const LocalTensor<T>& b,
                                  const LocalTensor<uint8_t>& tmp, uint32_t count) {
  const LocalTensor<uint16_t> t = tmp.ReinterpretCast<uint16_t>(),
                              d = dst.template ReinterpretCast<uint16_t>(),
                              x = a.template ReinterpretCast<uint16_t>(),
                              y = b.template ReinterpretCast<uint16_t>();
  const uint32_t words = static_cast<uint32_t>(detail::Words<T>(count)), chunk = kScratchBudget / 2;
  for (uint32_t at = 0; at < words; at += chunk) {
    const int32_t n = static_cast<int32_t>(Least(words - at, chunk));
    if (at) Sync();
    AscendC::And(t, x[at], y[at], n);
    Sync();
    AscendC::Or(d[at], x[at], y[at], n);
    AscendC::Not(t, t, n);
    Sync();
    AscendC::And(d[at], d[at], t, n);
  }
}

__aicore__ inline void LogicalAnd(const LocalTensor<uint8_t>& dst, const LocalTensor<uint8_t>& a,
                                  const LocalTensor<uint8_t>& b, const LocalTensor<uint8_t>& tmp,
                                  uint32_t count) {
  BitwiseAnd<uint8_t>(dst, a, b, tmp, count);
}
__aicore__ inline void LogicalOr(const LocalTensor<uint8_t>& dst, const LocalTensor<uint8_t>& a,
                                 const LocalTensor<uint8_t>& b, const LocalTensor<uint8_t>& tmp,
                                 uint32_t count) {
  BitwiseOr<uint8_t>(dst, a, b, tmp, count);
}
__aicore__ inline void LogicalXor(const LocalTensor<uint8_t>& dst, const LocalTensor<uint8_t>& a,
                                  const LocalTensor<uint8_t>& b, const LocalTensor<uint8_t>& tmp,
                                  uint32_t count) {
  BitwiseXor<uint8_t>(dst, a, b, tmp, count);
}
__aicore__ inline void LogicalNot(const LocalTensor<uint8_t>& dst, const LocalTensor<uint8_t>& a,
                                  const LocalTensor<uint8_t>& tmp, uint32_t count) {
  const LocalTensor<uint16_t> ones = tmp.ReinterpretCast<uint16_t>(), d = dst.ReinterpretCast<uint16_t>();
  const uint32_t words = (count + 1) / 2;
  AscendC::Duplicate(ones, static_cast<uint16_t>(0x0101), 16);
  AscendC::Not(d, a.ReinterpretCast<uint16_t>(), static_cast<int32_t>(words));
  Sync();
  AndBlock(d, d, ones, words);
}

}  // namespace autofuse
