// Why: the high-level math functions of Ascend C (`lib/math/*.h`, `lib/activation/*.h` of 8.1.RC1). On the
// twin they give libm's float result; what they keep of the real ones is the contract a kernel can break: no
// operand overlap and the size of the shared temporary buffer (src/advanced.cpp holds the table).
#pragma once
#include "vector.h"

namespace AscendC {

#define TWIN_MATH(Name, op)                                                                               \
  template <typename T, bool isReuseSource = false>                                                       \
  inline void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint8_t>& tmp, \
                   const uint32_t count, TWIN_AT) {                                                       \
    twin::UnaryTmp(op, twin::kType<T>, dst, src, tmp, count, TWIN_HERE);                                  \
  }
TWIN_MATH(Tanh, twin::kTanh)
TWIN_MATH(Sigmoid, twin::kSigmoid)
TWIN_MATH(Erf, twin::kErf)
TWIN_MATH(Erfc, twin::kErfc)
TWIN_MATH(Log2, twin::kLog2)
TWIN_MATH(Sin, twin::kSin)
TWIN_MATH(Cos, twin::kCos)
TWIN_MATH(Tan, twin::kTan)
TWIN_MATH(Asin, twin::kAsin)
TWIN_MATH(Acos, twin::kAcos)
TWIN_MATH(Atan, twin::kAtan)
TWIN_MATH(Sinh, twin::kSinh)
TWIN_MATH(Cosh, twin::kCosh)
TWIN_MATH(Asinh, twin::kAsinh)
TWIN_MATH(Acosh, twin::kAcosh)
TWIN_MATH(Atanh, twin::kAtanh)
TWIN_MATH(Floor, twin::kFloor)
TWIN_MATH(Ceil, twin::kCeil)
TWIN_MATH(Trunc, twin::kTrunc)
TWIN_MATH(Round, twin::kRound)
TWIN_MATH(Sign, twin::kSign)
TWIN_MATH(Frac, twin::kFrac)
TWIN_MATH(Gelu, twin::kGelu)
#undef TWIN_MATH

template <typename T, bool isReuseSource = false>
inline void Log(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint32_t count, TWIN_AT) {
  twin::UnaryTmp(twin::kLog, twin::kType<T>, dst, src, twin::TensorRef(), count, TWIN_HERE);
}
template <typename T, bool isReuseSource = false>
inline void Log10(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint32_t count, TWIN_AT) {
  twin::UnaryTmp(twin::kLog10, twin::kType<T>, dst, src, twin::TensorRef(), count, TWIN_HERE);
}
#define TWIN_MATH2(Name, op)                                                                          \
  template <typename T, bool isReuseSource = false>                                                   \
  inline void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, \
                   const LocalTensor<uint8_t>& tmp, const uint32_t count, TWIN_AT) {                  \
    twin::BinaryTmp(op, twin::kType<T>, dst, src0, src1, tmp, count, TWIN_HERE);                      \
  }
TWIN_MATH2(Power, twin::kPower)
TWIN_MATH2(Fmod, twin::kFmod)
TWIN_MATH2(Xor, twin::kXor)
#undef TWIN_MATH2

template <typename T, typename U, bool isReuseMask = true>
inline void SelectWithBytesMask(const LocalTensor<T>& dst, const LocalTensor<T>& src0, T src1,
                                const LocalTensor<U>& mask, const LocalTensor<uint8_t>& tmp, uint32_t count,
                                TWIN_AT) {
  twin::SelectByteMask(twin::kType<T>, twin::kType<U>, dst, &src0, nullptr, &src1, mask, tmp, count,
                       TWIN_HERE);
}
template <typename T, typename U, bool isReuseMask = true>
inline void SelectWithBytesMask(const LocalTensor<T>& dst, T src0, const LocalTensor<T>& src1,
                                const LocalTensor<U>& mask, const LocalTensor<uint8_t>& tmp, uint32_t count,
                                TWIN_AT) {
  twin::SelectByteMask(twin::kType<T>, twin::kType<U>, dst, nullptr, &src1, &src0, mask, tmp, count,
                       TWIN_HERE);
}

}  // namespace AscendC
