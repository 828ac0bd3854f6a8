// Why: data movement under its real names: GM<->UB copies, UB<->UB copies, gathers, transposes and index
// generation.
#pragma once
#include "vector.h"

namespace AscendC {

template <typename T>
inline void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const uint32_t count, TWIN_AT) {
  twin::CopyIn(twin::kType<T>, dst, src, count, TWIN_HERE);
}
template <typename T>
inline void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t count, TWIN_AT) {
  twin::CopyOut(twin::kType<T>, dst, src, count, TWIN_HERE);
}
template <typename T>
inline void DataCopy(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t count, TWIN_AT) {
  twin::CopyUb(twin::kType<T>, dst, src, count, TWIN_HERE);
}
template <typename T>
inline void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const DataCopyParams& p,
                     TWIN_AT) {
  twin::CopyInBlocks(dst, src, p, TWIN_HERE);
}
template <typename T>
inline void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyParams& p,
                     TWIN_AT) {
  twin::CopyOutBlocks(dst, src, p, TWIN_HERE);
}
template <typename T>
inline void DataCopy(const LocalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyParams& p, TWIN_AT) {
  twin::CopyUbBlocks(dst, src, p, TWIN_HERE);
}
template <typename T>
inline void DataCopyPad(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const DataCopyExtParams& p,
                        const DataCopyPadExtParams<T>& pad, TWIN_AT) {
  twin::PadIn(twin::kType<T>, dst, src, p, pad.isPad, pad.leftPadding, pad.rightPadding, &pad.paddingValue,
              TWIN_HERE);
}
template <typename T>
inline void DataCopyPad(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyExtParams& p,
                        TWIN_AT) {
  twin::PadOut(twin::kType<T>, dst, src, p, TWIN_HERE);
}

template <typename T, bool isSetMask = true>
inline void Copy(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint64_t mask,
                 const uint8_t repeat, const CopyRepeatParams& p, TWIN_AT) {
  twin::CopyRepeat(twin::kType<T>, dst, src, twin_detail::Lead<isSetMask>(mask), repeat,
                   {p.dstStride, p.dstRepeatSize}, {p.srcStride, p.srcRepeatSize}, TWIN_HERE);
}
template <typename T, bool isSetMask = true>
inline void Copy(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint64_t mask[],
                 const uint8_t repeat, const CopyRepeatParams& p, TWIN_AT) {
  twin::CopyRepeat(twin::kType<T>, dst, src, twin_detail::Word<isSetMask>(mask), repeat,
                   {p.dstStride, p.dstRepeatSize}, {p.srcStride, p.srcRepeatSize}, TWIN_HERE);
}
template <typename T>
inline void Brcb(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint8_t repeat,
                 const BrcbRepeatParams& p, TWIN_AT) {
  twin::BlockBroadcast(twin::kType<T>, dst, src, repeat, p.dstBlkStride, p.dstRepStride, TWIN_HERE);
}
template <typename T>
inline void CreateVecIndex(LocalTensor<T> dst, const T& first, uint32_t count, TWIN_AT) {
  const T step = T(1);
  twin::VecIndex(twin::kType<T>, dst, &first, &step, count, TWIN_HERE);
}
template <typename T>
inline void ArithProgression(const LocalTensor<T>& dst, const T first, const T diff, const int32_t count,
                             TWIN_AT) {
  twin::VecIndex(twin::kType<T>, dst, &first, &diff, count, TWIN_HERE);
}
template <typename T>
inline void Gather(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint32_t>& offsets,
                   const uint32_t base, const uint32_t count, TWIN_AT) {
  twin::GatherElements(twin::kType<T>, dst, src, offsets, base, count, TWIN_HERE);
}
struct GatherRepeatParams {
  uint16_t dstBlkStride = 1, dstRepStride = 8;
  GatherRepeatParams() = default;
  GatherRepeatParams(uint16_t blk, uint16_t rep) : dstBlkStride(blk), dstRepStride(rep) {}
};
template <typename T>
inline void Gatherb(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                    const LocalTensor<uint32_t>& offsets, const uint8_t repeat, const GatherRepeatParams& p,
                    TWIN_AT) {
  twin::GatherBlocks(twin::kType<T>, dst, src, offsets, repeat, {p.dstBlkStride, p.dstRepStride}, TWIN_HERE);
}
template <typename T>
inline void GatherMask(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint8_t pattern,
                       const bool reduceMode, const uint32_t mask, const GatherMaskParams& p,
                       uint64_t& rsvdCnt, TWIN_AT) {
  twin::GatherByMask(twin::kType<T>, dst, src, nullptr, pattern, reduceMode, mask, p, &rsvdCnt, TWIN_HERE);
}
template <typename T, typename U>
inline void GatherMask(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<U>& pattern,
                       const bool reduceMode, const uint32_t mask, const GatherMaskParams& p,
                       uint64_t& rsvdCnt, TWIN_AT) {
  static_assert(sizeof(U) == sizeof(T), "the pattern has the width of the data");
  twin::GatherByMask(twin::kType<T>, dst, src, &pattern, 0, reduceMode, mask, p, &rsvdCnt, TWIN_HERE);
}
template <typename T>
inline void Transpose(const LocalTensor<T>& dst, const LocalTensor<T>& src, TWIN_AT) {
  twin::Transpose16(twin::kType<T>, dst, src, TWIN_HERE);
}
template <typename T>
inline void TransDataTo5HD(uint64_t dstList[16], uint64_t srcList[16], const TransDataTo5HDParams& p,
                           TWIN_AT) {
  twin::To5HD(twin::kType<T>, dstList, srcList, p, TWIN_HERE);
}
template <typename T>
inline void TransDataTo5HD(const LocalTensor<T> (&dstList)[16], const LocalTensor<T> (&srcList)[16],
                           const TransDataTo5HDParams& p, TWIN_AT) {
  uint64_t dst[16], src[16];
  for (int i = 0; i < 16; ++i) {
    dst[i] = dstList[i].GetPhyAddr();
    src[i] = srcList[i].GetPhyAddr();
  }
  twin::To5HD(twin::kType<T>, dst, src, p, TWIN_HERE);
}

template <typename T>
inline void SetAtomicAdd(TWIN_AT) {
  twin::SetAtomic(twin::kType<T>, true, TWIN_HERE);
}
inline void SetAtomicNone(TWIN_AT) { twin::SetAtomic(twin::kNone, false, TWIN_HERE); }

}  // namespace AscendC
