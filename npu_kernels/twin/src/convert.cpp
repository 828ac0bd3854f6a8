// Why: Cast between the dtype pairs the vector unit has, with its rounding modes, and Duplicate.
// Float to integer saturates and NaN gives 0; float to float16 overflows to infinity (docs/twin.md,
// assumptions).
#include "loops.h"

namespace twin {
inline namespace TWIN_ABI {

using AscendC::RoundMode;

namespace {
using CastFn = void (*)(void* d, const void* s, uint64_t n, RoundMode mode);

template <RoundMode mode>
inline float Rounded(float x) {
  switch (mode) {
    case RoundMode::CAST_FLOOR:
      return RoundDown(x);
    case RoundMode::CAST_CEIL:
      return RoundUp(x);
    case RoundMode::CAST_ROUND:
      return RoundAway(x);
    case RoundMode::CAST_TRUNC:
      return RoundToZero(x);
    default:
      return RoundEven(x);
  }
}

template <RoundMode mode>
void RoundAll(float* to, const float* from, uint64_t n) {
#pragma GCC ivdep
  for (uint64_t i = 0; i < n; ++i) to[i] = Rounded<mode>(from[i]);
}
void RoundFloats(float* to, const float* from, uint64_t n, RoundMode mode) {
  switch (mode) {
    case RoundMode::CAST_FLOOR:
      return RoundAll<RoundMode::CAST_FLOOR>(to, from, n);
    case RoundMode::CAST_CEIL:
      return RoundAll<RoundMode::CAST_CEIL>(to, from, n);
    case RoundMode::CAST_ROUND:
      return RoundAll<RoundMode::CAST_ROUND>(to, from, n);
    case RoundMode::CAST_TRUNC:
      return RoundAll<RoundMode::CAST_TRUNC>(to, from, n);
    default:
      return RoundAll<RoundMode::CAST_RINT>(to, from, n);
  }
}

// Integral-valued float to an integer type of at most 32 bits, saturating; NaN gives 0.
template <typename I>
inline I Saturate(float r) {
  constexpr float low = static_cast<float>(-(int64_t(1) << (sizeof(I) * 8 - 1)));
  if constexpr (sizeof(I) == 4) {
    // The largest float below 2^31 is not INT_MAX, so the upper end is chosen by comparison, not by clamping.
    const float safe = r >= 2147483648.0f ? 0.0f : (r > low ? r : low);
    const int32_t v = static_cast<int32_t>(r == r ? safe : 0.0f);
    return r >= 2147483648.0f ? 2147483647 : v;
  } else {
    constexpr bool is_signed = I(-1) < I(0);
    constexpr float lo = is_signed ? low : 0.0f, hi = is_signed ? -low - 1.0f : -2.0f * low - 1.0f;
    const float v = r < lo ? lo : (r > hi ? hi : r);
    return static_cast<I>(static_cast<int32_t>(v == v ? v : 0.0f));
  }
}

inline int64_t Saturate64(float r) {
  return r != r                        ? 0
         : r >= 9223372036854775808.0f ? INT64_MAX
         : r < -9223372036854775808.0f ? INT64_MIN
                                       : static_cast<int64_t>(r);
}
template <typename I>
void StoreInts(I* to, const float* from, uint64_t n) {
  for (uint64_t i = 0; i < n; ++i) {
    if constexpr (sizeof(I) == 8)
      to[i] = Saturate64(from[i]);
    else
      to[i] = Saturate<I>(from[i]);
  }
}
void BrainsToFloats(float* to, const uint16_t* from, uint64_t n) {
  for (uint64_t i = 0; i < n; ++i) to[i] = FromBits(uint32_t(from[i]) << 16);
}

// Any floating source to an integer: widened, rounded and saturated block by block.
template <DType source, typename I>
void ToInt(void* d, const void* s, uint64_t n, RoundMode mode) {
  alignas(32) float x[kHalfChunk];
  for (uint64_t at = 0; at < n; at += kHalfChunk) {
    const uint64_t m = n - at < kHalfChunk ? n - at : kHalfChunk;
    if (source == kF16) HalvesToFloats(x, static_cast<const uint16_t*>(s) + at, m);
    if (source == kBF16) BrainsToFloats(x, static_cast<const uint16_t*>(s) + at, m);
    RoundFloats(x, source == kF32 ? static_cast<const float*>(s) + at : x, m, mode);
    StoreInts(static_cast<I*>(d) + at, x, m);
  }
}
void FloatToFloat(void* d, const void* s, uint64_t n, RoundMode mode) {
  RoundFloats(static_cast<float*>(d), static_cast<const float*>(s), n, mode);
}

// Adjusts a magnitude rounded to nearest (storage bits without sign) to a directed mode. `exact` is |x|,
// `near` the magnitude's value. Away from zero adds one storage unit, towards zero takes one.
inline uint16_t Directed(uint16_t near_bits, float near, float x, RoundMode mode, uint16_t infinity) {
  const float a = FromBits(Bits(x) & 0x7fffffffu);
  const bool negative = Bits(x) >> 31;
  if (a != a || near == a || near_bits > infinity) return near_bits;
  if (a == FromBits(0x7f800000u)) return near_bits;
  const uint16_t below = near < a ? near_bits : static_cast<uint16_t>(near_bits - 1);
  const uint16_t above = static_cast<uint16_t>(below + 1);
  switch (mode) {
    case RoundMode::CAST_FLOOR:
      return negative ? above : below;
    case RoundMode::CAST_CEIL:
      return negative ? below : above;
    case RoundMode::CAST_TRUNC:
      return below;
    case RoundMode::CAST_ODD:
      return below & 1 ? below : above;
    case RoundMode::CAST_ROUND: {  // halves away from zero; the spacing is exact in double
      return near_bits == above ? above : below;
    }
    default:
      return near_bits;
  }
}
void FloatToHalf(void* d, const void* s, uint64_t n, RoundMode mode) {
  uint16_t* to = static_cast<uint16_t*>(d);
  const float* from = static_cast<const float*>(s);
  if (mode == RoundMode::CAST_NONE || mode == RoundMode::CAST_RINT) {
    FloatsToHalves(to, from, n);
    return;
  }
  for (uint64_t i = 0; i < n; ++i) {
    const uint16_t h = HalfBits(from[i]), m = h & 0x7fffu;
    uint16_t r = Directed(m, HalfToFloat(m), from[i], mode, 0x7c00u);
    if (mode == RoundMode::CAST_ROUND && m < 0x7c00u) {
      const double a = std::fabs(double(from[i])), lo = HalfToFloat(m), up = HalfToFloat(m + 1);
      if (m < 0x7bffu && a - lo == up - a && a != lo) r = static_cast<uint16_t>(m + 1);  // a tie kept at even
    }
    to[i] = static_cast<uint16_t>((h & 0x8000u) | r);
  }
}
void FloatToBrain(void* d, const void* s, uint64_t n, RoundMode mode) {
  uint16_t* to = static_cast<uint16_t*>(d);
  const float* from = static_cast<const float*>(s);
  if (mode == RoundMode::CAST_NONE || mode == RoundMode::CAST_RINT) {
    for (uint64_t i = 0; i < n; ++i) to[i] = BrainBits(from[i]);
    return;
  }
  for (uint64_t i = 0; i < n; ++i) {
    const uint16_t h = BrainBits(from[i]), m = h & 0x7fffu;
    uint16_t r = Directed(m, FromBits(uint32_t(m) << 16), from[i], mode, 0x7f80u);
    if (mode == RoundMode::CAST_ROUND && m < 0x7f80u && (Bits(from[i]) & 0xffffu) == 0x8000u)
      r = static_cast<uint16_t>(((Bits(from[i]) & 0x7fffffffu) >> 16) + 1);
    to[i] = static_cast<uint16_t>((h & 0x8000u) | r);
  }
}
template <typename I>
void IntToHalf(void* d, const void* s, uint64_t n, RoundMode mode) {
  const I* from = static_cast<const I*>(s);
  for (uint64_t i = 0; i < n; ++i) {
    const float x = static_cast<float>(from[i]);
    FloatToHalf(static_cast<uint16_t*>(d) + i, &x, 1, mode);
  }
}
template <typename I>
void IntToFloat(void* d, const void* s, uint64_t n, RoundMode mode) {
  float* to = static_cast<float*>(d);
  const I* from = static_cast<const I*>(s);
  if (sizeof(I) == 2 || mode == RoundMode::CAST_NONE || mode == RoundMode::CAST_RINT) {
#pragma GCC ivdep
    for (uint64_t i = 0; i < n; ++i) to[i] = static_cast<float>(from[i]);
    return;
  }
  for (uint64_t i = 0; i < n; ++i) {
    const float near = static_cast<float>(from[i]);
    const __int128 gap = static_cast<__int128>(from[i]) - static_cast<__int128>(near);  // what rounding lost
    float r = near;
    if (gap != 0) {
      const float down = gap > 0 ? near : std::nextafter(near, -INFINITY),
                  up = gap > 0 ? std::nextafter(near, INFINITY) : near;
      const __int128 to_down = static_cast<__int128>(from[i]) - static_cast<__int128>(down);
      const __int128 to_up = static_cast<__int128>(up) - static_cast<__int128>(from[i]);
      const bool negative = from[i] < 0;
      switch (mode) {
        case RoundMode::CAST_FLOOR:
          r = down;
          break;
        case RoundMode::CAST_CEIL:
          r = up;
          break;
        case RoundMode::CAST_TRUNC:
          r = negative ? up : down;
          break;
        default:
          r = to_down < to_up ? down : to_up < to_down ? up : negative ? down : up;
          break;
      }
    }
    to[i] = r;
  }
}
void Int32ToHalf(void* d, const void* s, uint64_t n, RoundMode) {
  const float scale = core().deq;
  if (scale == 0.0f) Violate("mode", "int32 to half needs SetDeqScale first");
  const int32_t* from = static_cast<const int32_t*>(s);
  for (uint64_t i = 0; i < n; ++i)
    static_cast<uint16_t*>(d)[i] = HalfBits(static_cast<float>(from[i]) * scale);
}
void HalfToFloats(void* d, const void* s, uint64_t n, RoundMode) {
  HalvesToFloats(static_cast<float*>(d), static_cast<const uint16_t*>(s), n);
}
void BrainToFloats(void* d, const void* s, uint64_t n, RoundMode) {
  BrainsToFloats(static_cast<float*>(d), static_cast<const uint16_t*>(s), n);
}
template <typename D, typename S>
void Narrow(void* d, const void* s, uint64_t n, RoundMode) {  // saturating
  D* to = static_cast<D*>(d);
  const S* from = static_cast<const S*>(s);
  constexpr S lo = static_cast<S>(-(int64_t(1) << (sizeof(D) * 8 - 1))), hi = static_cast<S>(-(lo + 1));
  for (uint64_t i = 0; i < n; ++i) to[i] = static_cast<D>(from[i] < lo ? lo : from[i] > hi ? hi : from[i]);
}
void Widen32(void* d, const void* s, uint64_t n, RoundMode) {
  int64_t* to = static_cast<int64_t*>(d);
  const int32_t* from = static_cast<const int32_t*>(s);
  for (uint64_t i = 0; i < n; ++i) to[i] = from[i];
}

enum Modes : uint8_t { kNoneOnly = 1, kAll5 = 0x3e, kNone5 = 0x3f, kNone5Odd = 0x7f };
struct Pair {
  DType dst, src;
  CastFn f;
  uint8_t modes;  // bit per RoundMode
};
const Pair kCasts[] = {{kF16, kI8, IntToHalf<int8_t>, kNoneOnly},
                       {kF16, kU8, IntToHalf<uint8_t>, kNoneOnly},
                       {kF16, kI16, IntToHalf<int16_t>, kNone5},
                       {kF32, kI16, IntToFloat<int16_t>, kNoneOnly},
                       {kI8, kF16, ToInt<kF16, int8_t>, kNone5},
                       {kU8, kF16, ToInt<kF16, uint8_t>, kNone5},
                       {kI16, kF16, ToInt<kF16, int16_t>, kAll5},
                       {kI32, kF16, ToInt<kF16, int32_t>, kAll5},
                       {kI32, kBF16, ToInt<kBF16, int32_t>, kAll5},
                       {kF32, kF16, HalfToFloats, kNoneOnly},
                       {kF32, kBF16, BrainToFloats, kNoneOnly},
                       {kF32, kF32, FloatToFloat, kAll5},
                       {kF16, kF32, FloatToHalf, kNone5Odd},
                       {kBF16, kF32, FloatToBrain, kAll5},
                       {kI16, kF32, ToInt<kF32, int16_t>, kAll5},
                       {kI32, kF32, ToInt<kF32, int32_t>, kAll5},
                       {kI64, kF32, ToInt<kF32, int64_t>, kAll5},
                       {kF32, kI32, IntToFloat<int32_t>, kNone5},
                       {kI16, kI32, Narrow<int16_t, int32_t>, kNoneOnly},
                       {kI64, kI32, Widen32, kNoneOnly},
                       {kF16, kI32, Int32ToHalf, kNone5Odd},
                       {kI32, kI64, Narrow<int32_t, int64_t>, kNoneOnly},
                       {kF32, kI64, IntToFloat<int64_t>, kAll5}};

CastFn FindCast(DType dt, DType st, RoundMode mode) {
  for (const Pair& p : kCasts) {
    if (p.dst != dt || p.src != st) continue;
    if (!(p.modes >> static_cast<int>(mode) & 1))
      Violate("unsupported round mode", "Cast %s to %s has no round mode %d", Name(st), Name(dt),
              static_cast<int>(mode));
    return p.f;
  }
  Violate("unsupported dtype", "no Cast from %s to %s on this core", Name(st), Name(dt));
}
}  // namespace

void SetDeq(float scale, Site at) { Enter("SetDeqScale", at).deq = scale; }

void Convert(DType dt, DType st, const TensorRef& d, const TensorRef& s, RoundMode mode, uint64_t count,
             Site at) {
  Core& c = Enter("Cast", at);
  const CastFn f = FindCast(dt, st, mode);
  if (!count) return;
  const uint32_t dw = Width(dt), sw = Width(st);
  const CountOperand dst{&d, count * dw, "dst"}, src{&s, count * sw, "src"};
  StartCount(c, dst, &src, 1, dw == sw);
  SpreadGood(c, dst, dw, &src, &sw, 1, count);
  f(c.ub + d.addr, c.ub + s.addr, count, mode);
  FinishCount(c, dst, &src, 1);
  TraceVector(c, dt, d, count, dw > sw ? dw : sw, 0, nullptr, 0);
}

void ConvertRepeat(DType dt, DType st, const TensorRef& d, const TensorRef& s, RoundMode mode, MaskSpec m,
                   uint32_t repeat, Strides ds, Strides ss, Site at) {
  Core& c = Enter("Cast", at);
  const CastFn f = FindCast(dt, st, mode);
  const uint32_t dw = Width(dt), sw = Width(st);
  const LanePlan p = ResolveMask(c, m, repeat, dw > sw ? dw : sw);
  if (!p.repeats || (!p.total && !p.lo && !p.hi)) return;
  const RepeatOperand dst{&d, ds, dw, "dst"}, src{&s, ss, sw, "src"};
  CheckRepeatView(c, dst, p);
  CheckRepeatView(c, src, p);
  Begin(c, PIPE_V);
  alignas(32) uint8_t in[256], out[256];
  uint64_t elements = 0;
  for (uint32_t r = 0; r < p.repeats; ++r) {
    CheckRepeatRead(c, src, p, r, false);
    CheckRepeatOverlap(dst, src, p, r);
    CheckRepeatWrite(c, dst, p, r);
    bool bad[256] = {false};
    GatherLanes(c, src, p, r, in, bad);
    f(out, in, p.Span(r), mode);
    ScatterLanes(c, dst, p, r, out, bad);
    MarkRepeat(c, src, p, r, false);
    MarkRepeat(c, dst, p, r, true);
    elements += p.Span(r);
  }
  const Strides strides[2] = {ds, ss};
  TraceVector(c, dt, d, elements, dw > sw ? dw : sw, p.repeats, strides, 2);
}

// --- Duplicate
// ---------------------------------------------------------------------------------------------------
namespace {
void NeedFillType(DType t) {
  if (t != kI16 && t != kU16 && t != kF16 && t != kBF16 && t != kI32 && t != kU32 && t != kF32)
    UnsupportedType(t);
}
template <typename T>
void FillWith(void* d, const void* scalar, uint64_t n) {
  T v, *to = static_cast<T*>(d);
  std::memcpy(&v, scalar, sizeof v);
  for (uint64_t i = 0; i < n; ++i) to[i] = v;
}
}  // namespace

void Fill(DType t, const TensorRef& d, const void* scalar, uint64_t count, Site at) {
  Core& c = Enter("Duplicate", at);
  NeedFillType(t);
  if (!count) return;
  const CountOperand dst{&d, count * Width(t), "dst"};
  StartCount(c, dst, nullptr, 0, true);
  SetGood(c, d.addr, dst.bytes, true);
  if (Width(t) == 2)
    FillWith<uint16_t>(c.ub + d.addr, scalar, count);
  else
    FillWith<uint32_t>(c.ub + d.addr, scalar, count);
  FinishCount(c, dst, nullptr, 0);
  TraceVector(c, t, d, count, Width(t), 0, nullptr, 0);
}

void FillRepeat(DType t, const TensorRef& d, const void* scalar, MaskSpec m, uint32_t repeat, Strides ds,
                Site at) {
  Core& c = Enter("Duplicate", at);
  NeedFillType(t);
  const uint32_t w = Width(t);
  const LanePlan p = ResolveMask(c, m, repeat, w);
  if (!p.repeats || (!p.total && !p.lo && !p.hi)) return;
  const RepeatOperand dst{&d, ds, w, "dst"};
  CheckRepeatView(c, dst, p);
  Begin(c, PIPE_V);
  alignas(32) uint8_t out[256];
  if (w == 2)
    FillWith<uint16_t>(out, scalar, 128);
  else
    FillWith<uint32_t>(out, scalar, 64);
  const bool bad[256] = {false};
  uint64_t elements = 0;
  for (uint32_t r = 0; r < p.repeats; ++r) {
    CheckRepeatWrite(c, dst, p, r);
    ScatterLanes(c, dst, p, r, out, bad);
    MarkRepeat(c, dst, p, r, true);
    elements += p.Span(r);
  }
  TraceVector(c, t, d, elements, w, p.repeats, &ds, 1);
}

}  // namespace TWIN_ABI
}  // namespace twin
