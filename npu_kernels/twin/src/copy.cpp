// Why: DataCopy and DataCopyPad between GM and UB, and scalar accesses. Limits of the parameter fields, GM
// bounds and alignment are checked before anything moves; a store of uninitialised UB bytes is a violation
// here, not where they were computed.
#include <algorithm>
#include <atomic>

#include "loops.h"

namespace twin {
inline namespace TWIN_ABI {

namespace {
constexpr uint32_t kMaxBlockCount = 4095;
constexpr uint32_t kMaxBlockBytes = 2097151;

void Limit(const char* field, uint64_t value, uint64_t limit) {
  if (value > limit)
    Violate("field over its limit", "%s is %llu, at most %llu", field, (unsigned long long)value,
            (unsigned long long)limit);
}

void TraceCopy(pipe_t pipe, DType t, const TensorRef& ub, uint64_t bytes, uint32_t count, uint32_t len,
               uint32_t ss, uint32_t ds) {
  if (!g_trace) return;
  TraceArgs a;
  a.bytes = bytes;
  a.elements = bytes / Width(t);
  a.repeat = count;
  a.params[0] = len, a.params[1] = ss, a.params[2] = ds;
  a.dtype = t;
  a.buffer = ub.buffer;
  TraceRecord(pipe, a);
}

void NeedGood(Core& c, uint32_t addr, uint64_t bytes, const uint8_t* to) {
  if (AllGood(c, addr, bytes)) return;
  const uint32_t at = FirstBad(c, addr, bytes);
  const int32_t r = FindRange(to);
  Violate("uninitialized UB",
          "byte 0x%x of UB (byte %u of the row) was never written; it would reach byte %lld of %s %u", at,
          at - addr, r < 0 ? -1ll : static_cast<long long>(to + (at - addr) - c.launch->ranges[r].ptr),
          r < 0 ? "?" : c.launch->ranges[r].kind, r < 0 ? 0 : c.launch->ranges[r].number);
}

template <typename T>
void Accumulate(uint8_t* to, const uint8_t* from, uint64_t bytes) {
  for (uint64_t i = 0; i + sizeof(T) <= bytes; i += sizeof(T)) {
    T a, b;
    std::memcpy(&a, to + i, sizeof a);
    std::memcpy(&b, from + i, sizeof b);
    a = static_cast<T>(a + b);
    std::memcpy(to + i, &a, sizeof a);
  }
}

// A store under SetAtomicAdd. Blocks on other threads may add to the same bytes, so one lock serves them all.
void AtomicStore(Core& c, uint8_t* to, const uint8_t* from, uint64_t bytes) {
  static std::atomic_flag busy = ATOMIC_FLAG_INIT;
  while (busy.test_and_set(std::memory_order_acquire)) {
  }
  switch (c.atomic_type) {
    case kF32:
      Accumulate<float>(to, from, bytes);
      break;
    case kF16:
      Accumulate<half>(to, from, bytes);
      break;
    case kBF16:
      for (uint64_t i = 0; i + 2 <= bytes; i += 2) {
        bfloat16_t a, b;
        std::memcpy(&a, to + i, 2);
        std::memcpy(&b, from + i, 2);
        a = bfloat16_t(float(a) + float(b));
        std::memcpy(to + i, &a, 2);
      }
      break;
    case kI32:
      Accumulate<uint32_t>(to, from, bytes);
      break;
    case kI16:
      Accumulate<uint16_t>(to, from, bytes);
      break;
    default:
      Accumulate<uint8_t>(to, from, bytes);
      break;
  }
  busy.clear(std::memory_order_release);
}

// Rows from GM to UB. A row whose bytes are not a multiple of 32 is completed in UB with `filler`.
struct RowsIn {
  uint32_t rows;
  uint64_t bytes, gm_stride, ub_stride;  // from the start of a row to the next
  uint32_t left, right;                  // padding bytes
  uint8_t filler[8];
  uint32_t filler_width;  // 0: repeat the row's first element
  bool filler_defined;
  uint32_t width;
};

void LoadRows(Core& c, const TensorRef& d, const GmRef& s, const RowsIn& p) {
  const uint64_t inner = p.left + p.bytes + p.right, padded = (inner + kBlock - 1) / kBlock * kBlock;
  CheckView(c, d, (p.rows - 1) * p.ub_stride + padded, kBlock, "dst");
  for (uint32_t r = 0; r < p.rows; r += p.rows - 1 ? p.rows - 1 : 1) {  // first and last row bound the others
    CheckGm(c, s, s.ptr + r * p.gm_stride, p.bytes, false);
  }
  CheckGmOrder(c, s.ptr, p.bytes, p.gm_stride, p.rows, PIPE_MTE2);
  Begin(c, PIPE_MTE2);
  const bool packed = p.ub_stride == padded;
  if (packed)
    CheckWrite(c, PIPE_MTE2, d.addr, p.rows * padded, "dst");
  else
    for (uint32_t r = 0; r < p.rows; ++r) CheckWrite(c, PIPE_MTE2, d.addr + r * p.ub_stride, padded, "dst");
  for (uint32_t r = 0; r < p.rows; ++r) {
    const uint32_t to = d.addr + static_cast<uint32_t>(r * p.ub_stride);
    const uint8_t* from = s.ptr + r * p.gm_stride;
    std::memcpy(c.ub + to + p.left, from, p.bytes);
    if (padded != p.bytes) {
      const uint8_t* fill = p.filler_width ? p.filler : from;
      const auto pad = [&](uint64_t at, uint64_t end) {
        for (; at < end; ++at) c.ub[to + at] = fill[at % p.width];
      };
      pad(0, p.left);
      pad(p.left + p.bytes, padded);
      SetGood(c, to, padded, p.filler_defined);
    }
    if (!packed || padded != p.bytes) SetGood(c, to + p.left, p.bytes, true);
    if (!packed) MarkWrite(c, PIPE_MTE2, to, padded);
  }
  if (packed) {
    if (padded == p.bytes) SetGood(c, d.addr, p.rows * padded, true);
    MarkWrite(c, PIPE_MTE2, d.addr, p.rows * padded);
  }
}

void StoreRows(Core& c, const GmRef& d, const TensorRef& s, uint32_t rows, uint64_t bytes, uint64_t gm_stride,
               uint64_t ub_stride) {
  const uint64_t padded = (bytes + kBlock - 1) / kBlock * kBlock;
  CheckView(c, s, (rows - 1) * ub_stride + bytes, kBlock, "src");
  CheckGm(c, d, d.ptr, bytes, true);
  CheckGm(c, d, d.ptr + (rows - 1) * gm_stride, bytes, true);
  Begin(c, PIPE_MTE3);
  const bool packed = ub_stride == padded;
  if (packed)
    CheckRead(c, PIPE_MTE3, s.addr, rows * ub_stride, "src");
  else
    for (uint32_t r = 0; r < rows; ++r) CheckRead(c, PIPE_MTE3, s.addr + r * ub_stride, bytes, "src");
  for (uint32_t r = 0; r < rows; ++r) {
    const uint32_t from = s.addr + static_cast<uint32_t>(r * ub_stride);
    NeedGood(c, from, bytes, d.ptr + r * gm_stride);
    if (c.atomic)
      AtomicStore(c, d.ptr + r * gm_stride, c.ub + from, bytes);
    else
      std::memcpy(d.ptr + r * gm_stride, c.ub + from, bytes);
    if (!packed) MarkRead(c, PIPE_MTE3, from, bytes);
  }
  if (packed) MarkRead(c, PIPE_MTE3, s.addr, rows * ub_stride);
  NoteGmWrite(c, d.ptr, bytes, gm_stride, rows, PIPE_MTE3);
}
}  // namespace

void CopyIn(DType t, const TensorRef& d, const GmRef& s, uint64_t count, Site at) {
  Core& c = Enter("DataCopy", at);
  const uint64_t bytes =
      count * Width(t) / kBlock * kBlock;  // rounded down: the instruction moves whole blocks
  if (!bytes) return;
  Limit("blocks", bytes / kBlock, 65535);
  LoadRows(c, d, s, RowsIn{1, bytes, bytes, bytes, 0, 0, {}, 0, true, Width(t)});
  TraceCopy(PIPE_MTE2, t, d, bytes, 1, bytes / kBlock, 0, 0);
}
void CopyOut(DType t, const GmRef& d, const TensorRef& s, uint64_t count, Site at) {
  Core& c = Enter("DataCopy", at);
  const uint64_t bytes = count * Width(t) / kBlock * kBlock;
  if (!bytes) return;
  Limit("blocks", bytes / kBlock, 65535);
  StoreRows(c, d, s, 1, bytes, bytes, bytes);
  TraceCopy(PIPE_MTE3, t, s, bytes, 1, bytes / kBlock, 0, 0);
}
void CopyInBlocks(const TensorRef& d, const GmRef& s, const AscendC::DataCopyParams& p, Site at) {
  Core& c = Enter("DataCopy", at);
  Limit("blockCount", p.blockCount, kMaxBlockCount);
  if (!p.blockCount || !p.blockLen) return;
  const uint64_t bytes = uint64_t(p.blockLen) * kBlock;
  LoadRows(c, d, s,
           RowsIn{p.blockCount,
                  bytes,
                  bytes + uint64_t(p.srcStride) * kBlock,
                  bytes + uint64_t(p.dstStride) * kBlock,
                  0,
                  0,
                  {},
                  0,
                  true,
                  1});
  TraceCopy(PIPE_MTE2, kNone, d, bytes * p.blockCount, p.blockCount, p.blockLen, p.srcStride, p.dstStride);
}
void CopyOutBlocks(const GmRef& d, const TensorRef& s, const AscendC::DataCopyParams& p, Site at) {
  Core& c = Enter("DataCopy", at);
  Limit("blockCount", p.blockCount, kMaxBlockCount);
  if (!p.blockCount || !p.blockLen) return;
  const uint64_t bytes = uint64_t(p.blockLen) * kBlock;
  StoreRows(c, d, s, p.blockCount, bytes, bytes + uint64_t(p.dstStride) * kBlock,
            bytes + uint64_t(p.srcStride) * kBlock);
  TraceCopy(PIPE_MTE3, kNone, s, bytes * p.blockCount, p.blockCount, p.blockLen, p.srcStride, p.dstStride);
}

void PadIn(DType t, const TensorRef& d, const GmRef& s, const AscendC::DataCopyExtParams& p, bool pad,
           uint8_t left, uint8_t right, const void* value, Site at) {
  Core& c = Enter("DataCopyPad", at);
  const uint32_t w = Width(t);
  if (t == kNone) UnsupportedType(t);
  Limit("blockCount", p.blockCount, kMaxBlockCount);
  Limit("blockLen", p.blockLen, kMaxBlockBytes);
  Limit("leftPadding bytes", uint32_t(left) * w, kBlock);
  Limit("rightPadding bytes", uint32_t(right) * w, kBlock);
  if (p.blockLen % w) Violate("field over its limit", "blockLen %u is not a multiple of %u B", p.blockLen, w);
  if (!p.blockCount || !p.blockLen) return;
  RowsIn rows{p.blockCount, p.blockLen, uint64_t(p.blockLen) + p.srcStride, 0, left * w, right * w, {}, 0,
              true,         w};
  if (pad) {
    std::memcpy(rows.filler, value, w);
    rows.filler_width = w;
    const uint64_t zero = 0;
    if (w == 8 && std::memcmp(value, &zero, 8))
      Violate("field over its limit", "paddingValue must be 0 for 64-bit types");
  } else {
    rows.filler_defined =
        !left && !right;  // then the hardware repeats the first element; else it is undefined
  }
  const uint64_t inner = uint64_t(rows.left) + p.blockLen + rows.right;
  rows.ub_stride = (inner + kBlock - 1) / kBlock * kBlock + uint64_t(p.dstStride) * kBlock;
  LoadRows(c, d, s, rows);
  TraceCopy(PIPE_MTE2, t, d, uint64_t(p.blockCount) * p.blockLen, p.blockCount, p.blockLen, p.srcStride,
            p.dstStride);
}

void PadOut(DType t, const GmRef& d, const TensorRef& s, const AscendC::DataCopyExtParams& p, Site at) {
  Core& c = Enter("DataCopyPad", at);
  const uint32_t w = Width(t);
  if (t == kNone) UnsupportedType(t);
  Limit("blockCount", p.blockCount, kMaxBlockCount);
  Limit("blockLen", p.blockLen, kMaxBlockBytes);
  if (p.blockLen % w) Violate("field over its limit", "blockLen %u is not a multiple of %u B", p.blockLen, w);
  if (!p.blockCount || !p.blockLen) return;
  const uint64_t padded = (uint64_t(p.blockLen) + kBlock - 1) / kBlock * kBlock;
  StoreRows(c, d, s, p.blockCount, p.blockLen, uint64_t(p.blockLen) + p.dstStride,
            padded + uint64_t(p.srcStride) * kBlock);
  TraceCopy(PIPE_MTE3, t, s, uint64_t(p.blockCount) * p.blockLen, p.blockCount, p.blockLen, p.srcStride,
            p.dstStride);
}

void SetAtomic(DType t, bool on, Site at) {
  Core& c = Enter(on ? "SetAtomicAdd" : "SetAtomicNone", at);
  if (on && t != kF32 && t != kF16 && t != kBF16 && t != kI32 && t != kI16 && t != kI8) UnsupportedType(t);
  c.atomic = on;
  c.atomic_type = t;
}

// --- scalar accesses
// ----------------------------------------------------------------------------------------------
namespace {
void TraceScalar(const char*, uint32_t width) {
  if (!g_trace) return;
  TraceArgs a;
  a.bytes = width;
  a.elements = 1;
  TraceRecord(PIPE_S, a);
}
TensorRef At(const TensorRef& t, uint64_t byte) {
  TensorRef r = t;
  r.addr += static_cast<uint32_t>(byte);
  return r;
}
}  // namespace

void ScalarRead(const TensorRef& t, uint64_t byte, uint32_t width, void* value, Site at) {
  Core& c = Enter("LocalTensor::GetValue", at);
  const TensorRef e = At(t, byte);
  CheckView(c, e, width, width, "element");
  Begin(c, PIPE_S);
  CheckRead(c, PIPE_S, e.addr, width, "element");
  if (!AllGood(c, e.addr, width))
    Violate("uninitialized UB", "the scalar at UB 0x%x was never written", e.addr);
  std::memcpy(value, c.ub + e.addr, width);
  MarkRead(c, PIPE_S, e.addr, width);
  TraceScalar("GetValue", width);
}
void ScalarWrite(const TensorRef& t, uint64_t byte, uint32_t width, const void* value, Site at) {
  Core& c = Enter("LocalTensor::SetValue", at);
  const TensorRef e = At(t, byte);
  CheckView(c, e, width, width, "element");
  Begin(c, PIPE_S);
  CheckWrite(c, PIPE_S, e.addr, width, "element");
  std::memcpy(c.ub + e.addr, value, width);
  SetGood(c, e.addr, width, true);
  MarkWrite(c, PIPE_S, e.addr, width);
  TraceScalar("SetValue", width);
}
void GmScalarRead(const GmRef& g, uint64_t byte, uint32_t width, void* value, Site at) {
  Core& c = Enter("GlobalTensor::GetValue", at);
  CheckGm(c, g, g.ptr + byte, width, false);
  Begin(c, PIPE_S);
  CheckGmOrder(c, g.ptr + byte, width, width, 1, PIPE_S);
  std::memcpy(value, g.ptr + byte, width);
  TraceScalar("GM GetValue", width);
}
void GmScalarWrite(const GmRef& g, uint64_t byte, uint32_t width, const void* value, Site at) {
  Core& c = Enter("GlobalTensor::SetValue", at);
  CheckGm(c, g, g.ptr + byte, width, true);
  Begin(c, PIPE_S);
  std::memcpy(g.ptr + byte, value, width);
  NoteGmWrite(c, g.ptr + byte, width, width, 1, PIPE_S);
  TraceScalar("GM SetValue", width);
}
void CleanCache(const GmRef& g, uint32_t width, Site at) {
  Core& c = Enter("DataCacheCleanAndInvalid", at);
  CheckGm(c, g, g.ptr, width, false);
  TraceScalar("DataCacheCleanAndInvalid", width);
}

}  // namespace TWIN_ABI
}  // namespace twin
