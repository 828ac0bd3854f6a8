// Why: LocalTensor and GlobalTensor, the two views a kernel computes on, and their untyped halves (TensorRef,
// GmRef) which the archive's functions take: one body serves every dtype, so a kernel's translation unit
// stays small. Invariant: a TensorRef is a byte range of the core's UB plus the identity (buffer, generation)
// of the buffer it was handed out from; whether that buffer is still live is checked when the view is used,
// not when it is copied.
#pragma once
#include "base.h"

namespace twin {
inline namespace TWIN_ABI {

struct TensorRef {
  uint32_t addr = 0;        // byte offset in UB
  uint32_t bytes = 0;       // bytes of the view, as GetSize counts them
  uint32_t generation = 0;  // of the buffer at the time it was handed out
  uint16_t buffer = 0xffff;
  AscendC::TPosition position = AscendC::TPosition::VECCALC;
};
struct GmRef {
  uint8_t* ptr = nullptr;
  uint64_t bytes = 0;  // as given to SetGlobalBuffer; 0 = not stated
  int32_t range = -1;  // which registered GM range the base pointer lies in
};

uint8_t* UbPointer(const TensorRef& t);
void ScalarRead(const TensorRef& t, uint64_t byte, uint32_t width, void* value, Site at);
void ScalarWrite(const TensorRef& t, uint64_t byte, uint32_t width, const void* value, Site at);
int32_t FindRange(const void* ptr);
void GmScalarRead(const GmRef& g, uint64_t byte, uint32_t width, void* value, Site at);
void GmScalarWrite(const GmRef& g, uint64_t byte, uint32_t width, const void* value, Site at);
void CleanCache(const GmRef& g, uint32_t width, Site at);

}  // namespace TWIN_ABI
}  // namespace twin

namespace AscendC {

template <typename T>
class LocalTensor : public twin::TensorRef {
 public:
  using PrimType = T;
  LocalTensor() = default;
  explicit LocalTensor(const twin::TensorRef& r) : twin::TensorRef(r) {}
  T GetValue(uint32_t index, TWIN_AT) const {
    T v;
    twin::ScalarRead(*this, uint64_t(index) * sizeof(T), sizeof(T), &v, TWIN_HERE);
    return v;
  }
  template <typename V>
  void SetValue(uint32_t index, V value, TWIN_AT) const {
    const T v = static_cast<T>(value);
    twin::ScalarWrite(*this, uint64_t(index) * sizeof(T), sizeof(T), &v, TWIN_HERE);
  }
  T operator()(uint32_t index) const { return GetValue(index); }
  LocalTensor operator[](uint32_t offset) const {
    LocalTensor r = *this;
    const uint64_t skip = uint64_t(offset) * sizeof(T);
    r.addr += static_cast<uint32_t>(skip);
    r.bytes = skip < bytes ? bytes - static_cast<uint32_t>(skip) : 0;
    return r;
  }
  template <typename U>
  LocalTensor<U> ReinterpretCast() const {
    return LocalTensor<U>(*this);
  }
  uint32_t GetSize() const { return bytes / sizeof(T); }
  void SetSize(uint32_t elements) { bytes = elements * static_cast<uint32_t>(sizeof(T)); }
  uint32_t GetLength() const { return bytes; }
  TPosition GetPosition() const { return position; }
  uint64_t GetPhyAddr() const { return addr; }
  uint64_t GetPhyAddr(uint32_t offset) const { return addr + uint64_t(offset) * sizeof(T); }
};

template <typename T>
class GlobalTensor : public twin::GmRef {
 public:
  using PrimType = T;
  void SetGlobalBuffer(__gm__ T* buffer, uint64_t elements) {
    ptr = reinterpret_cast<uint8_t*>(buffer);
    bytes = elements * sizeof(T);
    range = twin::FindRange(buffer);
  }
  void SetGlobalBuffer(__gm__ T* buffer) { SetGlobalBuffer(buffer, 0); }
  GlobalTensor operator[](uint64_t offset) const {
    GlobalTensor r = *this;
    const uint64_t skip = offset * sizeof(T);
    r.ptr += skip;
    r.bytes = skip < bytes ? bytes - skip : 0;
    return r;
  }
  T GetValue(uint64_t offset, TWIN_AT) const {
    T v;
    twin::GmScalarRead(*this, offset * sizeof(T), sizeof(T), &v, TWIN_HERE);
    return v;
  }
  T operator()(uint64_t offset) const { return GetValue(offset); }
  void SetValue(uint64_t offset, T value, TWIN_AT) const {
    twin::GmScalarWrite(*this, offset * sizeof(T), sizeof(T), &value, TWIN_HERE);
  }
  uint64_t GetSize() const { return bytes / sizeof(T); }
  const __gm__ T* GetPhyAddr() const { return reinterpret_cast<const T*>(ptr); }
  const __gm__ T* GetPhyAddr(uint64_t offset) const { return reinterpret_cast<const T*>(ptr) + offset; }
};

}  // namespace AscendC
