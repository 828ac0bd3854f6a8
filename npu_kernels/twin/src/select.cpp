// Why: Compare and Select on packed bits (element i is bit i % 8 of byte i / 8), SelectWithBytesMask, and the
// mask register. A compare of an uninitialised element gives an uninitialised bit, not a violation: garbage
// beyond the count is compared by design. A select that an uninitialised bit decides gives an uninitialised
// element.
#include "loops.h"

namespace twin {
inline namespace TWIN_ABI {

using AscendC::CMPMODE;
using AscendC::SELMODE;

namespace {
void NeedCompareType(DType t, CMPMODE mode) {
  if (t == kF16 || t == kF32) return;
  if (t != kI32) UnsupportedType(t);
  if (mode != CMPMODE::EQ) Violate("unsupported dtype", "int32 compares for EQ only on this core");
}

// One byte an element first, which vectorizes, then packed. GT and GE are LT and LE of swapped operands.
template <typename T, typename F>
void Decide(uint8_t* one, const T* a, const T* b, uint64_t n, F f) {
  for (uint64_t i = 0; i < n; ++i) one[i] = f(a[i], b[i]);
}
template <typename T>
void DecideMode(CMPMODE mode, uint8_t* one, const T* a, const T* b, uint64_t n) {
  switch (mode) {
    case CMPMODE::GT:
      return DecideMode(CMPMODE::LT, one, b, a, n);
    case CMPMODE::GE:
      return DecideMode(CMPMODE::LE, one, b, a, n);
    case CMPMODE::LT:
      return Decide(one, a, b, n, [](T x, T y) { return x < y; });
    case CMPMODE::LE:
      return Decide(one, a, b, n, [](T x, T y) { return x <= y; });
    case CMPMODE::EQ:
      return Decide(one, a, b, n, [](T x, T y) { return x == y; });
    case CMPMODE::NE:
      return Decide(one, a, b, n, [](T x, T y) { return x != y; });
  }
}
// n elements, a multiple of 8, to n/8 bytes. b_scalar: b is a single element.
void CompareRaw(DType t, CMPMODE mode, uint8_t* out, const void* a, const void* b, bool b_scalar,
                uint64_t n) {
  constexpr uint64_t kChunk = 256;
  alignas(32) float fa[kChunk], fb[kChunk];
  alignas(32) int32_t ib[kChunk];
  const auto floats = [&](float* to, const void* from, uint64_t at, uint64_t m) -> const float* {
    if (t == kF32) return static_cast<const float*>(from) + at;
    HalvesToFloats(to, static_cast<const uint16_t*>(from) + at, m);
    return to;
  };
  if (b_scalar && t == kI32) {
    int32_t v;
    std::memcpy(&v, b, 4);
    for (uint64_t i = 0; i < kChunk; ++i) ib[i] = v;
  } else if (b_scalar) {
    float v;
    if (t == kF32) {
      std::memcpy(&v, b, 4);
    } else {
      uint16_t h;
      std::memcpy(&h, b, 2);
      v = HalfToFloat(h);
    }
    for (uint64_t i = 0; i < kChunk; ++i) fb[i] = v;
  }
  uint8_t one[kChunk];
  for (uint64_t at = 0; at < n; at += kChunk) {
    const uint64_t m = n - at < kChunk ? n - at : kChunk;
    if (t == kI32)
      DecideMode(mode, one, static_cast<const int32_t*>(a) + at,
                 b_scalar ? ib : static_cast<const int32_t*>(b) + at, m);
    else
      DecideMode(mode, one, floats(fa, a, at, m), b_scalar ? fb : floats(fb, b, at, m), m);
    for (uint64_t i = 0; i < m; i += 8) {  // eight bytes of 0/1 to eight bits
      uint64_t bytes;
      std::memcpy(&bytes, one + i, 8);
      out[(at + i) / 8] = static_cast<uint8_t>((bytes * 0x0102040810204080ull) >> 56);
    }
  }
}

void CompareCount(DType t, const TensorRef& d, const TensorRef& a, const TensorRef* b, const void* scalar,
                  CMPMODE mode, uint64_t count, const char* api, Site at) {
  Core& c = Enter(api, at);
  NeedCompareType(t, mode);
  const uint32_t w = Width(t);
  if (count * w % 256)
    Violate("count", "count %llu is %llu B; Compare needs a multiple of 256 B", (unsigned long long)count,
            (unsigned long long)(count * w));
  if (!count) return;
  const CountOperand dst{&d, count / 8, "dst"};
  const CountOperand src[2] = {{&a, count * w, "src0"}, {b ? b : &a, count * w, "src1"}};
  const uint32_t sources = b ? 2 : 1;
  StartCount(c, dst, src, sources, false);
  CompareRaw(t, mode, c.ub + d.addr, c.ub + a.addr, b ? c.ub + b->addr : scalar, !b, count);
#if TWIN_CHECK
  if (AllGood(c, a.addr, count * w) && (!b || AllGood(c, b->addr, count * w))) {
    SetGood(c, d.addr, count / 8, true);
  } else {
    for (uint64_t i = 0; i < count; i += 8) {
      unsigned bad = 0;
      for (uint32_t j = 0; j < 8; ++j)
        if (!BytesGood(c, a.addr + (i + j) * w, w) || (b && !BytesGood(c, b->addr + (i + j) * w, w)))
          bad |= 1u << j;
      SetBadBits(c, d.addr + i / 8, static_cast<uint8_t>(bad));
    }
  }
#endif
  FinishCount(c, dst, src, sources);
  TraceVector(c, t, d, count, w, 0, nullptr, 0);
}
}  // namespace

void CompareBits(DType t, const TensorRef& d, const TensorRef& a, const TensorRef& b, CMPMODE mode,
                 uint64_t count, Site at) {
  CompareCount(t, d, a, &b, nullptr, mode, count, "Compare", at);
}
void CompareScalarBits(DType t, const TensorRef& d, const TensorRef& a, const void* scalar, CMPMODE mode,
                       uint64_t count, Site at) {
  CompareCount(t, d, a, nullptr, scalar, mode, count, "CompareScalar", at);
}

// Each repeat writes its lanes' bits (32-bit types: 8 B, 16-bit: 16 B) after those of the repeat before.
void CompareRepeat(DType t, const TensorRef& d, const TensorRef& a, const TensorRef* b, const void* scalar,
                   CMPMODE mode, MaskSpec m, uint32_t repeat, Strides as, Strides bs, Site at) {
  Core& c = Enter(b ? "Compare" : "CompareScalar", at);
  NeedCompareType(t, mode);
  const uint32_t w = Width(t);
  const LanePlan p = ResolveMask(c, m, repeat, w);
  if (!p.repeats || (!p.total && !p.lo && !p.hi)) return;
  const RepeatOperand s0{&a, as, w, "src0"}, s1{b, bs, w, "src1"};
  CheckRepeatView(c, s0, p);
  if (b) CheckRepeatView(c, s1, p);
  const uint32_t bytes = p.lanes / 8;
  CheckView(c, d, uint64_t(bytes) * p.repeats, kBlock, "dst");
  Begin(c, PIPE_V);
  CheckWrite(c, PIPE_V, d.addr, uint64_t(bytes) * p.repeats, "dst");
  alignas(32) uint8_t x[256] = {0}, y[256] = {0};
  for (uint32_t r = 0; r < p.repeats; ++r) {
    bool bad[256] = {false};
    CheckRepeatRead(c, s0, p, r, false);
    if (b) CheckRepeatRead(c, s1, p, r, false);
    GatherLanes(c, s0, p, r, x, bad);
    if (b) GatherLanes(c, s1, p, r, y, bad);
    CompareRaw(t, mode, c.ub + d.addr + r * bytes, x, b ? y : scalar, !b, p.lanes);
    for (uint32_t i = 0; i < p.lanes; i += 8) {
      unsigned bits = 0;
      for (uint32_t j = 0; j < 8; ++j) bits |= unsigned(bad[i + j] || !p.Active(r, i + j)) << j;
      SetBadBits(c, d.addr + r * bytes + i / 8, static_cast<uint8_t>(bits));
    }
    MarkRepeat(c, s0, p, r, false);
    if (b) MarkRepeat(c, s1, p, r, false);
  }
  MarkWrite(c, PIPE_V, d.addr, uint64_t(bytes) * p.repeats);
  const Strides strides[3] = {{1, 8}, as, b ? bs : as};
  TraceVector(c, t, d, uint64_t(p.lanes) * p.repeats, w, p.repeats, strides, 3);
}

namespace {
inline bool Bit(const uint8_t* mask, uint64_t i) { return mask[i / 8] >> (i % 8) & 1; }

template <typename T>
void SelectRaw(void* d, const uint8_t* mask, uint64_t mask_period, const void* a, const void* b,
               uint64_t b_step, uint64_t n) {
  T* to = static_cast<T*>(d);
  const T *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
  for (uint64_t i = 0; i < n; ++i)
    to[i] = Bit(mask, mask_period ? i % mask_period : i) ? x[i] : y[i * b_step];
}

// The poison of element i: its deciding bit's, and that of the source it was taken from.
void SelectGood(Core& c, const TensorRef& d, const TensorRef& mask, uint64_t mask_period, const TensorRef& a,
                const TensorRef* b, uint32_t w, uint64_t n) {
#if TWIN_CHECK
  const uint64_t bits = mask_period ? mask_period : n;
  if (AllGood(c, mask.addr, (bits + 7) / 8) && AllGood(c, a.addr, n * w) &&
      (!b || AllGood(c, b->addr, n * w))) {
    SetGood(c, d.addr, n * w, true);
    return;
  }
  for (uint64_t i = 0; i < n; ++i) {
    const uint64_t k = mask_period ? i % mask_period : i;
    bool good = !(BadBits(c, mask.addr + k / 8) >> (k % 8) & 1);
    if (good) {
      const bool first = Bit(c.ub + mask.addr, k);
      good = first ? BytesGood(c, a.addr + i * w, w) : !b || BytesGood(c, b->addr + i * w, w);
    }
    SetGood(c, d.addr + i * w, w, good);
  }
#else
  (void)c, (void)d, (void)mask, (void)mask_period, (void)a, (void)b, (void)w, (void)n;
#endif
}

void CheckSelectForm(DType t, const TensorRef* b, SELMODE mode) {
  if (t != kF16 && t != kF32) UnsupportedType(t);
  if ((mode == SELMODE::VSEL_TENSOR_SCALAR_MODE) != (b == nullptr))
    Violate("select mode", "mode %d with a %s as the second source", static_cast<int>(mode),
            b ? "tensor" : "scalar");
}
}  // namespace

void SelectBits(DType t, const TensorRef& d, const TensorRef& mask, const TensorRef& a, const TensorRef* b,
                const void* scalar, SELMODE mode, uint64_t count, Site at) {
  Core& c = Enter("Select", at);
  CheckSelectForm(t, b, mode);
  if (!count) return;
  const uint32_t w = Width(t);
  // Mode 0 uses the same 256/sizeof(T) bits for every repeat and needs no scratch.
  const uint64_t period = mode == SELMODE::VSEL_CMPMASK_SPR ? Lanes(w) : 0;
  if (!period) UseScratch(c);
  const uint64_t mask_bytes = ((period && period < count ? period : count) + 7) / 8;
  const CountOperand dst{&d, count * w, "dst"};
  const CountOperand src[3] = {
      {&a, count * w, "src0"}, {&mask, mask_bytes, "mask"}, {b ? b : &a, count * w, "src1"}};
  const uint32_t sources = b ? 3 : 2;
  CheckOverlap(d.addr, count * w, mask.addr, mask_bytes, false, "mask");
  StartCount(c, dst, src, sources, true);
  SelectGood(c, d, mask, period, a, b, w, count);
  const void* second = b ? c.ub + b->addr : scalar;
  if (w == 4)
    SelectRaw<uint32_t>(c.ub + d.addr, c.ub + mask.addr, period, c.ub + a.addr, second, b ? 1 : 0, count);
  else
    SelectRaw<uint16_t>(c.ub + d.addr, c.ub + mask.addr, period, c.ub + a.addr, second, b ? 1 : 0, count);
  FinishCount(c, dst, src, sources);
  TraceVector(c, t, d, count, w, 0, nullptr, 0);
}

void SelectRepeat(DType t, const TensorRef& d, const TensorRef& mask, const TensorRef& a, const TensorRef* b,
                  const void* scalar, SELMODE mode, MaskSpec m, uint32_t repeat, Strides ds, Strides as,
                  Strides bs, Site at) {
  Core& c = Enter("Select", at);
  CheckSelectForm(t, b, mode);
  const uint32_t w = Width(t);
  const LanePlan p = ResolveMask(c, m, repeat, w);
  if (!p.repeats || (!p.total && !p.lo && !p.hi)) return;
  const bool same = mode == SELMODE::VSEL_CMPMASK_SPR;
  if (!same) UseScratch(c);
  const RepeatOperand dst{&d, ds, w, "dst"}, s0{&a, as, w, "src0"}, s1{b, bs, w, "src1"};
  CheckRepeatView(c, dst, p);
  CheckRepeatView(c, s0, p);
  if (b) CheckRepeatView(c, s1, p);
  const uint64_t mask_bytes = uint64_t(p.lanes / 8) * (same ? 1 : p.repeats);
  CheckView(c, mask, mask_bytes, kBlock, "mask");
  Begin(c, PIPE_V);
  CheckRead(c, PIPE_V, mask.addr, mask_bytes, "mask");
  alignas(32) uint8_t x[256], y[256], out[256];
  for (uint32_t r = 0; r < p.repeats; ++r) {
    bool bad_a[256] = {false}, bad_b[256] = {false}, bad[256] = {false};
    CheckRepeatRead(c, s0, p, r, false);
    CheckRepeatOverlap(dst, s0, p, r);
    if (b) CheckRepeatRead(c, s1, p, r, false), CheckRepeatOverlap(dst, s1, p, r);
    CheckRepeatWrite(c, dst, p, r);
    GatherLanes(c, s0, p, r, x, bad_a);
    if (b) GatherLanes(c, s1, p, r, y, bad_b);
    const uint32_t at_bit = same ? 0 : r * p.lanes;
    for (uint32_t i = 0; i < p.Span(r); ++i) {
      const uint32_t k = at_bit + i;
      const bool first = Bit(c.ub + mask.addr, k);
      std::memcpy(out + i * w, first ? x + i * w : b ? y + i * w : scalar, w);
      bad[i] = (BadBits(c, mask.addr + k / 8) >> (k % 8) & 1) || (first ? bad_a[i] : b && bad_b[i]);
    }
    ScatterLanes(c, dst, p, r, out, bad);
    MarkRepeat(c, s0, p, r, false);
    if (b) MarkRepeat(c, s1, p, r, false);
    MarkRepeat(c, dst, p, r, true);
  }
  MarkRead(c, PIPE_V, mask.addr, mask_bytes);
  const Strides strides[3] = {ds, as, b ? bs : as};
  TraceVector(c, t, d, uint64_t(p.lanes) * p.repeats, w, p.repeats, strides, 3);
}

// mask byte != 0 takes the second source (as the API has it: src0 where the mask is 0).
void SelectByteMask(DType t, DType mask_t, const TensorRef& d, const TensorRef* a, const TensorRef* b,
                    const void* scalar, const TensorRef& mask, const TensorRef& tmp, uint64_t count,
                    Site at) {
  Core& c = Enter("SelectWithBytesMask", at);
  if (t != kF16 && t != kF32) UnsupportedType(t);
  if (!count) return;
  UseScratch(c);
  const uint32_t w = Width(t), mw = Width(mask_t);
  const TensorRef& tensor = a ? *a : *b;
  const CountOperand dst{&d, count * w, "dst"};
  const CountOperand src[2] = {{&tensor, count * w, "src"}, {&mask, count * mw, "mask"}};
  StartCount(c, dst, src, 2, true);
  CheckView(c, tmp, kBlock, kBlock, "sharedTmpBuffer");
  uint8_t* to = c.ub + d.addr;
  for (uint64_t i = 0; i < count; ++i) {
    bool on = false;
    for (uint32_t j = 0; j < mw; ++j) on = on || c.ub[mask.addr + i * mw + j];
    const bool take_tensor = a ? !on : on;
    const bool good =
        BytesGood(c, mask.addr + i * mw, mw) && (!take_tensor || BytesGood(c, tensor.addr + i * w, w));
    std::memcpy(to + i * w, take_tensor ? c.ub + tensor.addr + i * w : scalar, w);
    SetGood(c, d.addr + i * w, w, good);
  }
  FinishCount(c, dst, src, 2);
  TraceVector(c, t, d, count, w, 0, nullptr, 0);
}

void SetMaskMode(bool counter, Site at) {
  Enter(counter ? "SetMaskCount" : "SetMaskNorm", at).counter_mode = counter;
}
void SetMaskRegister(uint64_t hi, uint64_t lo, Site at) {
  Core& c = Enter("SetVectorMask", at);
  c.mask_hi = hi;
  c.mask_lo = lo;
  c.mask_full = hi == ~0ull && lo == ~0ull;
}

}  // namespace TWIN_ABI
}  // namespace twin
