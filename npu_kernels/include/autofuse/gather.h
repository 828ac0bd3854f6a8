// Why: loads whose place an index tensor gives. The index is in UB as int32 or int64, made by V or dequeued;
// an index outside of [0, limit) reads nothing of GM beyond the tensor and makes the call return false.
//   bool GatherRows(dst, src GM, index, rows, cols, gm_stride, ub_stride, limit)
//       row i of dst (ub_stride elements apart, a multiple of 32 B) = src[index[i]*gm_stride + 0..cols): one
//       DMA a row.
//       dst is a buffer of a VECIN queue between AllocTensor and EnQue. A row with a wrong index gets the
//       content of
//       index 0; with limit 0 nothing is loaded.
//   bool GatherElements(dst, src GM, index, count, gm_stride, limit)
//       dst[i] = src[index[i]*gm_stride], by the scalar unit through its data cache: for tensors that no core
//       writes
//       during the launch. dst is a TBuf; a wrong index gives index 0's element, with limit 0 a zero.
//   void StoreStatus(status GM, block, failed)      what the calls returned, for the host
// Both gathers wait for V (so for what V has waited for) before they read the index; GatherElements makes V
// wait for it.
#pragma once
#include "common.h"

namespace autofuse {

// Makes the second pipe of the event wait for what the first has issued.
template <AscendC::HardEvent kEvent>
__aicore__ inline void WaitFor() {
  const auto id = static_cast<event_t>(GetTPipePtr()->FetchEventID(kEvent));
  AscendC::SetFlag<kEvent>(id);
  AscendC::WaitFlag<kEvent>(id);
}

template <typename T, typename I>
__aicore__ inline bool GatherRows(const LocalTensor<T>& dst, const AscendC::GlobalTensor<T>& src,
                                  const LocalTensor<I>& index, uint32_t rows, uint32_t cols,
                                  int64_t gm_stride, uint32_t ub_stride, int64_t limit) {
  if (rows == 0 || cols == 0) return true;
  const AscendC::DataCopyExtParams copy(1, cols * static_cast<uint32_t>(sizeof(T)), 0, 0, 0);
  const AscendC::DataCopyPadExtParams<T> pad(false, 0, 0, T(0));
  bool good = true;
  WaitFor<AscendC::HardEvent::V_S>();
  for (uint32_t i = 0; i < rows; ++i) {
    int64_t at = static_cast<int64_t>(index.GetValue(i));
    if (at < 0 || at >= limit) {
      good = false;
      at = 0;
      if (limit == 0) continue;
    }
    AscendC::DataCopyPad(dst[i * ub_stride], src[static_cast<uint64_t>(at * gm_stride)], copy, pad);
  }
  return good;
}

template <typename T, typename I>
__aicore__ inline bool GatherElements(const LocalTensor<T>& dst, const AscendC::GlobalTensor<T>& src,
                                      const LocalTensor<I>& index, uint32_t count, int64_t gm_stride,
                                      int64_t limit) {
  bool good = true;
  WaitFor<AscendC::HardEvent::V_S>();
  for (uint32_t i = 0; i < count; ++i) {
    int64_t at = static_cast<int64_t>(index.GetValue(i));
    if (at < 0 || at >= limit) {
      good = false;
      at = 0;
    }
    dst.SetValue(i, limit == 0 ? T(0) : src.GetValue(static_cast<uint64_t>(at * gm_stride)));
  }
  WaitFor<AscendC::HardEvent::S_V>();
  return good;
}

// int32s between the status words of two blocks: a line of the scalar unit's data cache (64 B), which is
// written back as a whole, so no two cores may share one.
constexpr uint32_t kStatusStride = 16;

// Tells the host whether this block met a wrong index: status[kStatusStride * block] = 0 or 1. `status`
// starts at a multiple of 64 B.
__aicore__ inline void StoreStatus(AscendC::GlobalTensor<int32_t> status, int64_t block, bool failed) {
  const uint64_t at = static_cast<uint64_t>(block) * kStatusStride;
  status.SetValue(at, failed ? 1 : 0);
  AscendC::DataCacheCleanAndInvalid<int32_t, AscendC::CacheLine::SINGLE_CACHE_LINE,
                                    AscendC::DcciDst::CACHELINE_OUT>(status[at]);
}

}  // namespace autofuse
