// Why: the reducing instructions under their 8.1.RC1 names (the newer toolkit renames them).
#pragma once
#include "vector.h"

namespace AscendC {

template <typename T, bool isSetMask = true>
inline void WholeReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int32_t mask,
                           const int32_t repeat, const int32_t dstRepStride, const int32_t srcBlkStride,
                           const int32_t srcRepStride, TWIN_AT) {
  twin::ReduceWhole(twin::kSum, twin::kType<T>, dst, src, twin_detail::Lead<isSetMask>(mask), repeat,
                    dstRepStride, {uint16_t(srcBlkStride), uint16_t(srcRepStride)},
                    ReduceOrder::ORDER_ONLY_VALUE, TWIN_HERE);
}
#define TWIN_WHOLE(Name, op)                                                                             \
  template <typename T, bool isSetMask = true>                                                           \
  inline void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int32_t mask,             \
                   const int32_t repeat, const int32_t dstRepStride, const int32_t srcBlkStride,         \
                   const int32_t srcRepStride, ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX,       \
                   TWIN_AT) {                                                                            \
    twin::ReduceWhole(op, twin::kType<T>, dst, src, twin_detail::Lead<isSetMask>(mask), repeat,          \
                      dstRepStride, {uint16_t(srcBlkStride), uint16_t(srcRepStride)}, order, TWIN_HERE); \
  }
TWIN_WHOLE(WholeReduceMax, twin::kMaximum)
TWIN_WHOLE(WholeReduceMin, twin::kMinimum)
#undef TWIN_WHOLE

#define TWIN_BLOCK(Name, op)                                                                       \
  template <typename T, bool isSetMask = true>                                                     \
  inline void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int32_t repeat,     \
                   const int32_t mask, const int32_t dstRepStride, const int32_t srcBlkStride,     \
                   const int32_t srcRepStride, TWIN_AT) {                                          \
    twin::ReduceBlocks(op, twin::kType<T>, dst, src, twin_detail::Lead<isSetMask>(mask), repeat,   \
                       dstRepStride, {uint16_t(srcBlkStride), uint16_t(srcRepStride)}, TWIN_HERE); \
  }
TWIN_BLOCK(BlockReduceSum, twin::kSum)
TWIN_BLOCK(BlockReduceMax, twin::kMaximum)
TWIN_BLOCK(BlockReduceMin, twin::kMinimum)
TWIN_BLOCK(PairReduceSum, twin::kPairSum)
#undef TWIN_BLOCK

template <typename T, bool isSetMask = true>
inline void ReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& work,
                      const int32_t count, TWIN_AT) {
  twin::ReduceCount(twin::kSum, twin::kType<T>, dst, src, work, count, false, TWIN_HERE);
}
template <typename T>
inline void ReduceMax(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& work,
                      const int32_t count, bool calIndex = false, TWIN_AT) {
  twin::ReduceCount(twin::kMaximum, twin::kType<T>, dst, src, work, count, calIndex, TWIN_HERE);
}
template <typename T>
inline void ReduceMin(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& work,
                      const int32_t count, bool calIndex = false, TWIN_AT) {
  twin::ReduceCount(twin::kMinimum, twin::kType<T>, dst, src, work, count, calIndex, TWIN_HERE);
}

}  // namespace AscendC
