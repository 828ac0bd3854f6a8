// Why: the basic vector instructions of Ascend C under their real names and argument orders (CANN 8.1.RC1).
// Each has its count form and its repeat form with a leading-lane or a bitwise mask.
#pragma once
#include "calls.h"

namespace AscendC {

namespace twin_detail {
template <typename T>
constexpr uint64_t kLanes = 256 / sizeof(T);
template <bool isSetMask>
inline twin::MaskSpec Lead(uint64_t mask) {
  return isSetMask ? twin::MaskSpec{twin::MaskSpec::kLeading, mask, 0}
                   : twin::MaskSpec{twin::MaskSpec::kRegister, 0, 0};
}
template <bool isSetMask>
inline twin::MaskSpec Word(const uint64_t mask[]) {
  return isSetMask ? twin::MaskSpec{twin::MaskSpec::kBits, mask[0], mask[1]}
                   : twin::MaskSpec{twin::MaskSpec::kRegister, 0, 0};
}
}  // namespace twin_detail

#define TWIN_UNARY(Name)                                                                                   \
  template <typename T>                                                                                    \
  inline void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int32_t& count, TWIN_AT) {  \
    twin::Unary(twin::k##Name, twin::kType<T>, dst, src, count, TWIN_HERE);                                \
  }                                                                                                        \
  template <typename T, bool isSetMask = true>                                                             \
  inline void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint64_t mask,                    \
                   const uint8_t repeat, const UnaryRepeatParams& p, TWIN_AT) {                            \
    twin::UnaryRepeat(twin::k##Name, twin::kType<T>, dst, src, twin_detail::Lead<isSetMask>(mask), repeat, \
                      {p.dstBlkStride, p.dstRepStride}, {p.srcBlkStride, p.srcRepStride}, TWIN_HERE);      \
  }                                                                                                        \
  template <typename T, bool isSetMask = true>                                                             \
  inline void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint64_t mask[],                  \
                   const uint8_t repeat, const UnaryRepeatParams& p, TWIN_AT) {                            \
    twin::UnaryRepeat(twin::k##Name, twin::kType<T>, dst, src, twin_detail::Word<isSetMask>(mask), repeat, \
                      {p.dstBlkStride, p.dstRepStride}, {p.srcBlkStride, p.srcRepStride}, TWIN_HERE);      \
  }

TWIN_UNARY(Abs)
TWIN_UNARY(Exp)
TWIN_UNARY(Ln)
TWIN_UNARY(Sqrt)
TWIN_UNARY(Rsqrt)
TWIN_UNARY(Reciprocal)
TWIN_UNARY(Relu)
TWIN_UNARY(Not)
#undef TWIN_UNARY

// MulAddDst also has a widening form (float += half * half): T is dst's type, U the sources'.
#define TWIN_BINARY(Name)                                                                                  \
  template <typename T, typename U>                                                                        \
  inline void Name(const LocalTensor<T>& dst, const LocalTensor<U>& src0, const LocalTensor<U>& src1,      \
                   const int32_t& count, TWIN_AT) {                                                        \
    twin::Binary(twin::k##Name, twin::kType<T>, twin::kType<U>, dst, src0, src1, count, TWIN_HERE);        \
  }                                                                                                        \
  template <typename T, typename U, bool isSetMask = true>                                                 \
  inline void Name(const LocalTensor<T>& dst, const LocalTensor<U>& src0, const LocalTensor<U>& src1,      \
                   uint64_t mask, const uint8_t repeat, const BinaryRepeatParams& p, TWIN_AT) {            \
    twin::BinaryRepeat(twin::k##Name, twin::kType<T>, twin::kType<U>, dst, src0, src1,                     \
                       twin_detail::Lead<isSetMask>(mask), repeat, {p.dstBlkStride, p.dstRepStride},       \
                       {p.src0BlkStride, p.src0RepStride}, {p.src1BlkStride, p.src1RepStride}, TWIN_HERE); \
  }                                                                                                        \
  template <typename T, typename U, bool isSetMask = true>                                                 \
  inline void Name(const LocalTensor<T>& dst, const LocalTensor<U>& src0, const LocalTensor<U>& src1,      \
                   uint64_t mask[], const uint8_t repeat, const BinaryRepeatParams& p, TWIN_AT) {          \
    twin::BinaryRepeat(twin::k##Name, twin::kType<T>, twin::kType<U>, dst, src0, src1,                     \
                       twin_detail::Word<isSetMask>(mask), repeat, {p.dstBlkStride, p.dstRepStride},       \
                       {p.src0BlkStride, p.src0RepStride}, {p.src1BlkStride, p.src1RepStride}, TWIN_HERE); \
  }
// The real functions take one T (or T and isSetMask); the macro below gives them that list.
#define TWIN_BINARY_SAME(Name)                                                                             \
  template <typename T>                                                                                    \
  inline void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,      \
                   const int32_t& count, TWIN_AT) {                                                        \
    twin::Binary(twin::k##Name, twin::kType<T>, twin::kType<T>, dst, src0, src1, count, TWIN_HERE);        \
  }                                                                                                        \
  template <typename T, bool isSetMask = true>                                                             \
  inline void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,      \
                   uint64_t mask, const uint8_t repeat, const BinaryRepeatParams& p, TWIN_AT) {            \
    twin::BinaryRepeat(twin::k##Name, twin::kType<T>, twin::kType<T>, dst, src0, src1,                     \
                       twin_detail::Lead<isSetMask>(mask), repeat, {p.dstBlkStride, p.dstRepStride},       \
                       {p.src0BlkStride, p.src0RepStride}, {p.src1BlkStride, p.src1RepStride}, TWIN_HERE); \
  }                                                                                                        \
  template <typename T, bool isSetMask = true>                                                             \
  inline void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,      \
                   uint64_t mask[], const uint8_t repeat, const BinaryRepeatParams& p, TWIN_AT) {          \
    twin::BinaryRepeat(twin::k##Name, twin::kType<T>, twin::kType<T>, dst, src0, src1,                     \
                       twin_detail::Word<isSetMask>(mask), repeat, {p.dstBlkStride, p.dstRepStride},       \
                       {p.src0BlkStride, p.src0RepStride}, {p.src1BlkStride, p.src1RepStride}, TWIN_HERE); \
  }

TWIN_BINARY_SAME(Add)
TWIN_BINARY_SAME(Sub)
TWIN_BINARY_SAME(Mul)
TWIN_BINARY_SAME(Div)
TWIN_BINARY_SAME(Max)
TWIN_BINARY_SAME(Min)
TWIN_BINARY_SAME(And)
TWIN_BINARY_SAME(Or)
TWIN_BINARY_SAME(AddRelu)
TWIN_BINARY_SAME(SubRelu)
TWIN_BINARY_SAME(FusedMulAdd)
TWIN_BINARY_SAME(FusedMulAddRelu)
TWIN_BINARY(MulAddDst)
#undef TWIN_BINARY
#undef TWIN_BINARY_SAME

#define TWIN_SCALAR(Name)                                                                                  \
  template <typename T, bool isSetMask = true>                                                             \
  inline void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalar,                  \
                   const int32_t& count, TWIN_AT) {                                                        \
    twin::Scalar(twin::k##Name, twin::kType<T>, twin::kType<T>, dst, src, &scalar, count, TWIN_HERE);      \
  }                                                                                                        \
  template <typename T, bool isSetMask = true>                                                             \
  inline void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalar, uint64_t mask,   \
                   const uint8_t repeat, const UnaryRepeatParams& p, TWIN_AT) {                            \
    twin::ScalarRepeat(twin::k##Name, twin::kType<T>, twin::kType<T>, dst, src, &scalar,                   \
                       twin_detail::Lead<isSetMask>(mask), repeat, {p.dstBlkStride, p.dstRepStride},       \
                       {p.srcBlkStride, p.srcRepStride}, TWIN_HERE);                                       \
  }                                                                                                        \
  template <typename T, bool isSetMask = true>                                                             \
  inline void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalar, uint64_t mask[], \
                   const uint8_t repeat, const UnaryRepeatParams& p, TWIN_AT) {                            \
    twin::ScalarRepeat(twin::k##Name, twin::kType<T>, twin::kType<T>, dst, src, &scalar,                   \
                       twin_detail::Word<isSetMask>(mask), repeat, {p.dstBlkStride, p.dstRepStride},       \
                       {p.srcBlkStride, p.srcRepStride}, TWIN_HERE);                                       \
  }

TWIN_SCALAR(Adds)
TWIN_SCALAR(Muls)
TWIN_SCALAR(Maxs)
TWIN_SCALAR(Mins)
TWIN_SCALAR(LeakyRelu)
TWIN_SCALAR(ShiftLeft)
#undef TWIN_SCALAR

template <typename T, bool isSetMask = true>
inline void ShiftRight(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalar,
                       const int32_t& count, bool roundEn = false, TWIN_AT) {
  twin::Scalar(roundEn ? twin::kShiftRightRound : twin::kShiftRight, twin::kType<T>, twin::kType<T>, dst, src,
               &scalar, count, TWIN_HERE);
}
template <typename T, bool isSetMask = true>
inline void ShiftRight(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalar, uint64_t mask,
                       const uint8_t repeat, const UnaryRepeatParams& p, bool roundEn = false, TWIN_AT) {
  twin::ScalarRepeat(roundEn ? twin::kShiftRightRound : twin::kShiftRight, twin::kType<T>, twin::kType<T>,
                     dst, src, &scalar, twin_detail::Lead<isSetMask>(mask), repeat,
                     {p.dstBlkStride, p.dstRepStride}, {p.srcBlkStride, p.srcRepStride}, TWIN_HERE);
}
template <typename T, typename U, bool isSetMask = true>
inline void Axpy(const LocalTensor<T>& dst, const LocalTensor<U>& src, const U& scalar, const int32_t& count,
                 TWIN_AT) {
  twin::Scalar(twin::kAxpy, twin::kType<T>, twin::kType<U>, dst, src, &scalar, count, TWIN_HERE);
}

template <typename T, typename U>
inline void Cast(const LocalTensor<T>& dst, const LocalTensor<U>& src, const RoundMode& mode,
                 const uint32_t count, TWIN_AT) {
  twin::Convert(twin::kType<T>, twin::kType<U>, dst, src, mode, count, TWIN_HERE);
}
template <typename T, typename U, bool isSetMask = true>
inline void Cast(const LocalTensor<T>& dst, const LocalTensor<U>& src, const RoundMode& mode,
                 const uint64_t mask, const uint8_t repeat, const UnaryRepeatParams& p, TWIN_AT) {
  twin::ConvertRepeat(twin::kType<T>, twin::kType<U>, dst, src, mode, twin_detail::Lead<isSetMask>(mask),
                      repeat, {p.dstBlkStride, p.dstRepStride}, {p.srcBlkStride, p.srcRepStride}, TWIN_HERE);
}
inline void SetDeqScale(half scale, TWIN_AT) { twin::SetDeq(static_cast<float>(scale), TWIN_HERE); }

template <typename T, bool isSetMask = true>
inline void Duplicate(const LocalTensor<T>& dst, const T& scalar, const int32_t& count, TWIN_AT) {
  twin::Fill(twin::kType<T>, dst, &scalar, count, TWIN_HERE);
}
template <typename T, bool isSetMask = true>
inline void Duplicate(const LocalTensor<T>& dst, const T& scalar, uint64_t mask, const uint8_t repeat,
                      const uint16_t dstBlkStride, const uint8_t dstRepStride, TWIN_AT) {
  twin::FillRepeat(twin::kType<T>, dst, &scalar, twin_detail::Lead<isSetMask>(mask), repeat,
                   {dstBlkStride, dstRepStride}, TWIN_HERE);
}
template <typename T, bool isSetMask = true>
inline void Duplicate(const LocalTensor<T>& dst, const T& scalar, uint64_t mask[], const uint8_t repeat,
                      const uint16_t dstBlkStride, const uint8_t dstRepStride, TWIN_AT) {
  twin::FillRepeat(twin::kType<T>, dst, &scalar, twin_detail::Word<isSetMask>(mask), repeat,
                   {dstBlkStride, dstRepStride}, TWIN_HERE);
}

template <typename T, typename U>
inline void Compare(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                    CMPMODE mode, uint32_t count, TWIN_AT) {
  static_assert(sizeof(U) == 1, "Compare writes packed bits into int8_t/uint8_t");
  twin::CompareBits(twin::kType<T>, dst, src0, src1, mode, count, TWIN_HERE);
}
template <typename T, typename U, bool isSetMask = true>
inline void Compare(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                    CMPMODE mode, const uint64_t mask, uint8_t repeat, const BinaryRepeatParams& p, TWIN_AT) {
  static_assert(sizeof(U) == 1, "Compare writes packed bits into int8_t/uint8_t");
  twin::CompareRepeat(twin::kType<T>, dst, src0, &src1, nullptr, mode, twin_detail::Lead<isSetMask>(mask),
                      repeat, {p.src0BlkStride, p.src0RepStride}, {p.src1BlkStride, p.src1RepStride},
                      TWIN_HERE);
}
template <typename T, typename U>
inline void CompareScalar(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const T scalar, CMPMODE mode,
                          uint32_t count, TWIN_AT) {
  static_assert(sizeof(U) == 1, "CompareScalar writes packed bits into int8_t/uint8_t");
  twin::CompareScalarBits(twin::kType<T>, dst, src0, &scalar, mode, count, TWIN_HERE);
}
template <typename T, typename U, bool isSetMask = true>
inline void CompareScalar(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const T scalar, CMPMODE mode,
                          const uint64_t mask, uint8_t repeat, const UnaryRepeatParams& p, TWIN_AT) {
  static_assert(sizeof(U) == 1, "CompareScalar writes packed bits into int8_t/uint8_t");
  twin::CompareRepeat(twin::kType<T>, dst, src0, nullptr, &scalar, mode, twin_detail::Lead<isSetMask>(mask),
                      repeat, {p.srcBlkStride, p.srcRepStride}, {0, 0}, TWIN_HERE);
}

template <typename T, typename U>
inline void Select(const LocalTensor<T>& dst, const LocalTensor<U>& mask, const LocalTensor<T>& src0,
                   const LocalTensor<T>& src1, SELMODE mode, uint32_t count, TWIN_AT) {
  twin::SelectBits(twin::kType<T>, dst, mask, src0, &src1, nullptr, mode, count, TWIN_HERE);
}
template <typename T, typename U>
inline void Select(const LocalTensor<T>& dst, const LocalTensor<U>& mask, const LocalTensor<T>& src0, T src1,
                   SELMODE mode, uint32_t count, TWIN_AT) {
  twin::SelectBits(twin::kType<T>, dst, mask, src0, nullptr, &src1, mode, count, TWIN_HERE);
}
template <typename T, typename U>
inline void Select(const LocalTensor<T>& dst, const LocalTensor<U>& mask, const LocalTensor<T>& src0,
                   const LocalTensor<T>& src1, SELMODE mode, uint64_t lanes, uint8_t repeat,
                   const BinaryRepeatParams& p, TWIN_AT) {
  twin::SelectRepeat(twin::kType<T>, dst, mask, src0, &src1, nullptr, mode, twin_detail::Lead<true>(lanes),
                     repeat, {p.dstBlkStride, p.dstRepStride}, {p.src0BlkStride, p.src0RepStride},
                     {p.src1BlkStride, p.src1RepStride}, TWIN_HERE);
}
template <typename T, typename U>
inline void Select(const LocalTensor<T>& dst, const LocalTensor<U>& mask, const LocalTensor<T>& src0, T src1,
                   SELMODE mode, uint64_t lanes, uint8_t repeat, const BinaryRepeatParams& p, TWIN_AT) {
  twin::SelectRepeat(twin::kType<T>, dst, mask, src0, nullptr, &src1, mode, twin_detail::Lead<true>(lanes),
                     repeat, {p.dstBlkStride, p.dstRepStride}, {p.src0BlkStride, p.src0RepStride}, {0, 0},
                     TWIN_HERE);
}

inline void SetMaskCount(TWIN_AT) { twin::SetMaskMode(true, TWIN_HERE); }
inline void SetMaskNorm(TWIN_AT) { twin::SetMaskMode(false, TWIN_HERE); }
template <typename T, MaskMode mode = MaskMode::NORMAL>
inline void SetVectorMask(const uint64_t maskHigh, const uint64_t maskLow, TWIN_AT) {
  twin::SetMaskRegister(maskHigh, maskLow, TWIN_HERE);
}
template <typename T, MaskMode mode = MaskMode::NORMAL>
inline void SetVectorMask(int32_t len, TWIN_AT) {
  if (mode == MaskMode::COUNTER) {
    twin::SetMaskRegister(0, len, TWIN_HERE);
    return;
  }
  const uint64_t low = len >= 64 ? ~0ull : (1ull << len) - 1;
  const uint64_t high = len <= 64 ? 0 : len >= 128 ? ~0ull : (1ull << (len - 64)) - 1;
  twin::SetMaskRegister(high, low, TWIN_HERE);
}
inline void ResetMask(TWIN_AT) { twin::SetMaskRegister(~0ull, ~0ull, TWIN_HERE); }

}  // namespace AscendC
