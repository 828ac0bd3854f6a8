// Why: buffers, queues and synchronisation as a kernel writes them (TPipe, TQue, TQueBind, TBuf, SetFlag,
// WaitFlag, PipeBarrier, SyncAll). All state lives in the core (src/core.h); the classes here are handles, so
// destroying them while a violation unwinds the kernel can't fail.
#pragma once
#include "tensor.h"

namespace twin {
inline namespace TWIN_ABI {

struct QueueSpec {
  AscendC::TPosition src, dst;  // producer's and consumer's position, as TQueBind names them
  int32_t depth;
};

void PipeOpen(void* pipe, Site at);
void* LivePipe(Site at);
void PipeClose();
void PipeReset(Site at);
uint16_t InitQueue(const QueueSpec& spec, uint32_t count, uint32_t bytes, Site at);
uint16_t InitCalc(AscendC::TPosition position, uint32_t bytes, Site at);
TensorRef QueueAlloc(uint16_t queue, Site at);
void QueuePush(uint16_t queue, const TensorRef& t, Site at);
TensorRef QueuePop(uint16_t queue, Site at);
void QueueFree(uint16_t queue, const TensorRef& t, Site at);
bool QueueHasFree(uint16_t queue);
bool QueueHasTensor(uint16_t queue);
int32_t QueueTensorCount(uint16_t queue);
TensorRef CalcGet(uint16_t calc, uint64_t bytes, bool whole, Site at);
TensorRef CalcGetAt(uint16_t calc, uint64_t offset, uint64_t bytes, Site at);
void SetEvent(AscendC::HardEvent event, int32_t id, Site at);
void WaitEvent(AscendC::HardEvent event, int32_t id, Site at);
int32_t AllocEvent(AscendC::HardEvent event, bool keep, Site at);
void ReleaseEvent(AscendC::HardEvent event, int32_t id, Site at);
void Barrier(pipe_t pipe, Site at);
void SyncAllBlocks(Site at);
int64_t BlockIdx();
int64_t BlockNum();
void CopyTiling(void* to, const void* from, uint64_t bytes, Site at);
uint64_t TilingKey();

}  // namespace TWIN_ABI
}  // namespace twin

namespace AscendC {

inline int64_t GetBlockIdx() { return twin::BlockIdx(); }
inline int64_t GetBlockNum() { return twin::BlockNum(); }
inline int64_t GetSubBlockNum() { return 1; }

template <TPosition src, TPosition dst, int32_t depth, auto mask = 0>
class TQueBind {
 public:
  static constexpr TPosition srcPosition = src;
  static constexpr TPosition dstPosition = dst;
  template <typename T>
  LocalTensor<T> AllocTensor(TWIN_AT) {
    return LocalTensor<T>(twin::QueueAlloc(id_, TWIN_HERE));
  }
  template <typename T>
  void AllocTensor(LocalTensor<T>& tensor, TWIN_AT) {
    tensor = LocalTensor<T>(twin::QueueAlloc(id_, TWIN_HERE));
  }
  template <typename T>
  bool EnQue(const LocalTensor<T>& tensor, TWIN_AT) {
    twin::QueuePush(id_, tensor, TWIN_HERE);
    return true;
  }
  template <typename T>
  LocalTensor<T> DeQue(TWIN_AT) {
    return LocalTensor<T>(twin::QueuePop(id_, TWIN_HERE));
  }
  template <typename T>
  void DeQue(LocalTensor<T>& tensor, TWIN_AT) {
    tensor = LocalTensor<T>(twin::QueuePop(id_, TWIN_HERE));
  }
  template <typename T>
  void FreeTensor(LocalTensor<T>& tensor, TWIN_AT) {
    twin::QueueFree(id_, tensor, TWIN_HERE);
  }
  bool VacantInQue() { return twin::QueueHasFree(id_); }
  bool HasTensorInQue() { return twin::QueueHasTensor(id_); }
  bool HasIdleBuffer() { return twin::QueueHasFree(id_); }
  int32_t GetTensorCountInQue() { return twin::QueueTensorCount(id_); }

 private:
  friend class TPipe;
  uint16_t id_ = 0xffff;
};

// VECIN: filled from GM, read by the vector unit. VECOUT: filled by the vector unit, copied to GM. VECCALC:
// both.
template <TPosition pos, int32_t depth, auto mask = 0>
class TQue : public TQueBind<pos == TPosition::VECIN ? TPosition::GM : pos,
                             pos == TPosition::VECOUT ? TPosition::GM : pos, depth, mask> {};

template <TPosition pos = TPosition::LCM>
class TBuf {
 public:
  template <typename T>
  LocalTensor<T> Get(TWIN_AT) {
    return LocalTensor<T>(twin::CalcGet(id_, 0, true, TWIN_HERE));
  }
  template <typename T>
  LocalTensor<T> Get(uint32_t elements, TWIN_AT) {
    return LocalTensor<T>(twin::CalcGet(id_, uint64_t(elements) * sizeof(T), false, TWIN_HERE));
  }
  template <typename T>
  LocalTensor<T> GetWithOffset(uint32_t elements, uint32_t offset_bytes, TWIN_AT) {
    return LocalTensor<T>(twin::CalcGetAt(id_, offset_bytes, uint64_t(elements) * sizeof(T), TWIN_HERE));
  }

 private:
  friend class TPipe;
  uint16_t id_ = 0xffff;
};

class TPipe {
 public:
  explicit TPipe(TWIN_AT) { twin::PipeOpen(this, TWIN_HERE); }
  ~TPipe() { twin::PipeClose(); }
  TPipe(const TPipe&) = delete;
  TPipe& operator=(const TPipe&) = delete;
  template <TPosition src, TPosition dst, int32_t depth, auto mask>
  bool InitBuffer(TQueBind<src, dst, depth, mask>& que, uint8_t num, uint32_t len, TWIN_AT) {
    que.id_ = twin::InitQueue(twin::QueueSpec{src, dst, depth}, num, len, TWIN_HERE);
    return true;
  }
  template <TPosition pos>
  bool InitBuffer(TBuf<pos>& buf, uint32_t len, TWIN_AT) {
    buf.id_ = twin::InitCalc(pos, len, TWIN_HERE);
    return true;
  }
  template <HardEvent evt>
  TEventID AllocEventID(TWIN_AT) {
    return static_cast<TEventID>(twin::AllocEvent(evt, true, TWIN_HERE));
  }
  template <HardEvent evt>
  void ReleaseEventID(TEventID id, TWIN_AT) {
    twin::ReleaseEvent(evt, id, TWIN_HERE);
  }
  template <HardEvent evt>
  TEventID FetchEventID(TWIN_AT) {
    return static_cast<TEventID>(twin::AllocEvent(evt, false, TWIN_HERE));
  }
  TEventID FetchEventID(HardEvent evt, TWIN_AT) {
    return static_cast<TEventID>(twin::AllocEvent(evt, false, TWIN_HERE));
  }
  void Reset(TWIN_AT) { twin::PipeReset(TWIN_HERE); }
};

inline TPipe* GetTPipePtr(TWIN_AT) { return static_cast<TPipe*>(twin::LivePipe(TWIN_HERE)); }

template <HardEvent event>
inline void SetFlag(int32_t id, TWIN_AT) {
  twin::SetEvent(event, id, TWIN_HERE);
}
template <HardEvent event>
inline void WaitFlag(int32_t id, TWIN_AT) {
  twin::WaitEvent(event, id, TWIN_HERE);
}
template <pipe_t pipe>
inline void PipeBarrier(TWIN_AT) {
  static_assert(pipe != PIPE_S, "PipeBarrier<PIPE_S> does not exist: the scalar unit is in order");
  twin::Barrier(pipe, TWIN_HERE);
}
// The scalar unit's data cache: the twin's scalar accesses go to memory at once, so there is nothing to write
// back.
template <typename T, CacheLine line, DcciDst where>
inline void DataCacheCleanAndInvalid(const GlobalTensor<T>& tensor, TWIN_AT) {
  twin::CleanCache(tensor, sizeof(T), TWIN_HERE);
}
template <bool isAIVOnly = true>
inline void SyncAll(TWIN_AT) {
  twin::SyncAllBlocks(TWIN_HERE);
}

template <pipe_t src, pipe_t dst>
class TQueSync {
 public:
  void SetFlag(TEventID id, TWIN_AT) { twin::SetEvent(Event(), id, TWIN_HERE); }
  void WaitFlag(TEventID id, TWIN_AT) { twin::WaitEvent(Event(), id, TWIN_HERE); }

 private:
  static constexpr HardEvent Event() {
    constexpr HardEvent none = HardEvent::MAX;
    constexpr HardEvent table[4][4] = {
        {none, HardEvent::S_V, HardEvent::S_MTE2, HardEvent::S_MTE3},
        {HardEvent::V_S, HardEvent::V_V, HardEvent::V_MTE2, HardEvent::V_MTE3},
        {HardEvent::MTE2_S, HardEvent::MTE2_V, HardEvent::MTE2_MTE2, HardEvent::MTE2_MTE3},
        {HardEvent::MTE3_S, HardEvent::MTE3_V, HardEvent::MTE3_MTE2, HardEvent::MTE3_MTE3}};
    static_assert(src < PIPE_M && dst < PIPE_M && table[src][dst] != none,
                  "no such pair of pipes on a vector core");
    return table[src][dst];
  }
};

}  // namespace AscendC

using AscendC::GetTPipePtr;  // global on the device

// What the host framework generates around a kernel on the device. The tiling data is one struct in GM.
#define KERNEL_TASK_TYPE_DEFAULT(type)
#define KERNEL_TASK_TYPE(key, type)
#define REGISTER_TILING_DEFAULT(type) using twin_default_tiling [[maybe_unused]] = type
#define REGISTER_TILING_FOR_TILINGKEY(expression, type)
#define GET_TILING_DATA_WITH_STRUCT(type, name, address) \
  type name;                                             \
  ::twin::CopyTiling(&name, address, sizeof(type), ::twin::Site{__FILE__, __LINE__})
#define GET_TILING_DATA(name, address) GET_TILING_DATA_WITH_STRUCT(twin_default_tiling, name, address)
#define TILING_KEY_IS(key) (::twin::TilingKey() == static_cast<uint64_t>(key))
