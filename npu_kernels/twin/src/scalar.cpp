// Why: what the tensor-scalar instructions compute, on the dtypes the vector unit has them for.
#include "arithmetic.h"
#include "loops.h"

namespace twin {
inline namespace TWIN_ABI {

const char* Name(ScalarOp op) {
  static const char* const names[kScalarOps] = {"Adds",      "Muls",       "Maxs",       "Mins", "LeakyRelu",
                                                "ShiftLeft", "ShiftRight", "ShiftRight", "Axpy"};
  return names[op];
}

namespace {
struct LeakyOp {
  float operator()(float a, float b) const { return a >= 0.0f ? a : b * a; }
};

template <typename T>
T Load(const void* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <typename F>
void OnFloat(void* d, const void* s, const void* k, uint64_t n) {
  const float b = Load<float>(k);
  Map1<float>(d, s, n, [b](float a) { return F()(a, b); });
}
template <bool max>
void PickHalf(void* d, const void* s, const void* k, uint64_t n) {
  const uint16_t y = Load<uint16_t>(k);
  const float fy = HalfToFloat(y);
  Map1<uint16_t>(d, s, n, [y, fy](uint16_t x) {
    const float fx = HalfToFloat(x);
    return (max ? fx < fy : fy < fx) ? y : x;
  });
}
template <typename F>
void OnInt32(void* d, const void* s, const void* k, uint64_t n) {
  const uint32_t b = Load<uint32_t>(k);
  Map1<uint32_t>(d, s, n, [b](uint32_t a) { return F()(a, b); });
}
template <typename F>
void OnInt16(void* d, const void* s, const void* k, uint64_t n) {
  const uint32_t b = Load<uint16_t>(k);
  Map1<uint16_t>(d, s, n,
                 [b](uint16_t a) { return static_cast<uint16_t>(F()(static_cast<uint32_t>(a), b)); });
}
template <typename T, typename F>
void OnSigned(void* d, const void* s, const void* k, uint64_t n) {
  const T b = Load<T>(k);
  Map1<T>(d, s, n, [b](T a) { return F()(a, b); });
}

// T unsigned: a left shift drops bits; an amount of the full width gives 0.
template <typename T>
void Left(void* d, const void* s, const void* k, uint64_t n) {
  const uint64_t by = Load<T>(k);
  Map1<T>(d, s, n, [by](T x) { return static_cast<T>(by < sizeof(T) * 8 ? uint64_t(x) << by : 0); });
}
// Arithmetic on signed T, logical on unsigned.
template <typename T, bool round>
void Right(void* d, const void* s, const void* k, uint64_t n) {
  const uint64_t by = static_cast<uint64_t>(Load<T>(k));
  Map1<T>(d, s, n, [by](T x) {
    const int64_t v = x;
    const int64_t half = round && by ? int64_t(1) << (by - 1) : 0;
    return static_cast<T>((v + half) >> by);
  });
}
template <typename T>
void CheckShift(const void* k) {
  const int64_t by = static_cast<int64_t>(Load<T>(k));
  if (by < 0 || by > static_cast<int64_t>(sizeof(T) * 8))
    Violate("shift amount", "%lld; 0 to %u are allowed", static_cast<long long>(by), unsigned(sizeof(T) * 8));
}
using RawScalar = void (*)(void*, const void*, const void*, uint64_t);
template <typename T, RawScalar f>
void Checked(void* d, const void* s, const void* k, uint64_t n) {
  CheckShift<T>(k);
  f(d, s, k, n);
}

template <typename F>
ScalarFn Arithmetic(DType t) {
  switch (t) {
    case kF32:
      return {OnFloat<F>};
    case kF16:
      return {OnFloat<F>, true};
    case kI32:
      return {OnInt32<F>};
    case kI16:
      return {OnInt16<F>};
    default:
      return {};
  }
}
template <typename F, bool max>
ScalarFn Choice(DType t) {
  switch (t) {
    case kF32:
      return {OnFloat<F>};
    case kF16:
      return {PickHalf<max>};
    case kI32:
      return {OnSigned<int32_t, F>};
    case kI16:
      return {OnSigned<int16_t, F>};
    default:
      return {};
  }
}
template <bool round>
ScalarFn RightOf(DType t) {
  switch (t) {
    case kI16:
      return {Checked<int16_t, Right<int16_t, round>>};
    case kI32:
      return {Checked<int32_t, Right<int32_t, round>>};
    case kU16:
      return {round ? nullptr : Checked<uint16_t, Right<uint16_t, false>>};
    case kU32:
      return {round ? nullptr : Checked<uint32_t, Right<uint32_t, false>>};
    default:
      return {};
  }
}

void AxpyFloat(void* d, const void* s, const void* k, uint64_t n) {
  const float a = Load<float>(k);
  float* to = static_cast<float*>(d);
  const float* x = static_cast<const float*>(s);
#pragma GCC ivdep
  for (uint64_t i = 0; i < n; ++i) to[i] += a * x[i];
}
void AxpyHalf(void* d, const void* s, const void* k, uint64_t n) {
  const float a = HalfToFloat(Load<uint16_t>(k));
  uint16_t* to = static_cast<uint16_t*>(d);
  const uint16_t* x = static_cast<const uint16_t*>(s);
  for (uint64_t i = 0; i < n; ++i) to[i] = HalfBits(HalfToFloat(to[i]) + a * HalfToFloat(x[i]));
}
void AxpyWide(void* d, const void* s, const void* k, uint64_t n) {
  const float a = HalfToFloat(Load<uint16_t>(k));
  float* to = static_cast<float*>(d);
  const uint16_t* x = static_cast<const uint16_t*>(s);
  for (uint64_t i = 0; i < n; ++i) to[i] += a * HalfToFloat(x[i]);
}
}  // namespace

ScalarFn FindScalar(ScalarOp op, DType t, DType src_t) {
  if (op == kAxpy) {
    if (t == kF32) return {src_t == kF32 ? AxpyFloat : src_t == kF16 ? AxpyWide : nullptr};
    return {t == kF16 && src_t == kF16 ? AxpyHalf : nullptr};
  }
  switch (op) {
    case kAdds:
      return Arithmetic<AddOp>(t);
    case kMuls:
      return Arithmetic<MulOp>(t);
    case kMaxs:
      return Choice<MaxOp, true>(t);
    case kMins:
      return Choice<MinOp, false>(t);
    case kLeakyRelu:
      return t == kF32 || t == kF16 ? ScalarFn{OnFloat<LeakyOp>, t == kF16} : ScalarFn{};
    case kShiftLeft:
      if (t == kI16 || t == kU16) return {Checked<uint16_t, Left<uint16_t>>};
      return {t == kI32 || t == kU32 ? Checked<uint32_t, Left<uint32_t>> : nullptr};
    case kShiftRight:
      return RightOf<false>(t);
    case kShiftRightRound:
      return RightOf<true>(t);
    default:
      return {};
  }
}

}  // namespace TWIN_ABI
}  // namespace twin
