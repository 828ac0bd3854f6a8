// Why: what the two-source instructions compute. Max and Min give TensorFlow's choice on NaN and signed
// zeros, integer arithmetic wraps (docs/twin.md, assumptions).
#include "arithmetic.h"
#include "loops.h"

namespace twin {
inline namespace TWIN_ABI {

const char* Name(BinaryOp op) {
  static const char* const names[kBinaryOps] = {"Add",
                                                "Sub",
                                                "Mul",
                                                "Div",
                                                "Max",
                                                "Min",
                                                "And",
                                                "Or",
                                                "AddRelu",
                                                "SubRelu",
                                                "MulAddDst",
                                                "FusedMulAdd",
                                                "FusedMulAddRelu",
                                                "Power",
                                                "Fmod",
                                                "Xor"};
  return names[op];
}

namespace {
struct SubOp {
  template <typename T>
  T operator()(T a, T b) const {
    return a - b;
  }
};
struct DivOp {
  template <typename T>
  T operator()(T a, T b) const {
    return a / b;
  }
};
struct AddReluOp {
  template <typename T>
  T operator()(T a, T b) const {
    const T v = a + b;
    return v < T(0) ? T(0) : v;
  }
};
struct SubReluOp {
  template <typename T>
  T operator()(T a, T b) const {
    const T v = a - b;
    return v < T(0) ? T(0) : v;
  }
};
struct PowOp {
  float operator()(float a, float b) const { return static_cast<float>(std::pow(double(a), double(b))); }
};
struct FmodOp {
  float operator()(float a, float b) const { return std::fmod(a, b); }
};

template <typename F>
void OnFloat(void* d, const void* a, const void* b, uint64_t n) {
  Map2<float>(d, a, b, n, F());
}
// Wraps: computed on the unsigned type. 16-bit products are formed in 32 bits, where they can't overflow.
template <typename F>
void OnInt32(void* d, const void* a, const void* b, uint64_t n) {
  Map2<uint32_t>(d, a, b, n, F());
}
template <typename F>
void OnInt16(void* d, const void* a, const void* b, uint64_t n) {
  Map2<uint16_t>(d, a, b, n, [](uint16_t x, uint16_t y) {
    return static_cast<uint16_t>(F()(static_cast<uint32_t>(x), static_cast<uint32_t>(y)));
  });
}
template <typename T, typename F>
void OnSigned(void* d, const void* a, const void* b, uint64_t n) {
  Map2<T>(d, a, b, n, F());
}

// The chosen operand's own bits come out, a NaN's payload included.
template <bool max>
void PickHalf(void* d, const void* a, const void* b, uint64_t n) {
  Map2<uint16_t>(d, a, b, n, [](uint16_t x, uint16_t y) {
    const float fx = HalfToFloat(x), fy = HalfToFloat(y);
    return (max ? fx < fy : fy < fx) ? y : x;
  });
}

template <typename F>
BinaryFn Arithmetic(DType t) {
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

void And16(void* d, const void* a, const void* b, uint64_t n) {
  Map2<uint16_t>(d, a, b, n, [](uint16_t x, uint16_t y) { return static_cast<uint16_t>(x & y); });
}
void Or16(void* d, const void* a, const void* b, uint64_t n) {
  Map2<uint16_t>(d, a, b, n, [](uint16_t x, uint16_t y) { return static_cast<uint16_t>(x | y); });
}
void Xor16(void* d, const void* a, const void* b, uint64_t n) {
  Map2<uint16_t>(d, a, b, n, [](uint16_t x, uint16_t y) { return static_cast<uint16_t>(x ^ y); });
}
template <bool relu>
void AddRelu16(void* d, const void* a, const void* b, uint64_t n) {
  Map2<int16_t>(d, a, b, n, [](int16_t x, int16_t y) {
    const int16_t v = static_cast<int16_t>(static_cast<uint16_t>(x) + static_cast<uint16_t>(relu ? y : -y));
    return static_cast<int16_t>(v < 0 ? 0 : v);
  });
}

// Three operands: dst is read too. One rounding for the product, one for the sum: the unit is not assumed to
// fuse.
template <typename F>
void Into32(void* d, const void* a, const void* b, uint64_t n, F f) {
  float* to = static_cast<float*>(d);
  const float *x = static_cast<const float*>(a), *y = static_cast<const float*>(b);
#pragma GCC ivdep
  for (uint64_t i = 0; i < n; ++i) to[i] = f(to[i], x[i], y[i]);
}
template <typename F>
void Into16(void* d, const void* a, const void* b, uint64_t n, F f) {
  uint16_t* to = static_cast<uint16_t*>(d);
  const uint16_t *x = static_cast<const uint16_t*>(a), *y = static_cast<const uint16_t*>(b);
  for (uint64_t i = 0; i < n; ++i)
    to[i] = HalfBits(f(HalfToFloat(to[i]), HalfToFloat(x[i]), HalfToFloat(y[i])));
}
float MulAdd(float d, float x, float y) { return d + x * y; }
float FusedAdd(float d, float x, float y) { return x * d + y; }
float FusedAddRelu(float d, float x, float y) {
  const float v = x * d + y;
  return v < 0.0f ? 0.0f : v;
}
template <float (*f)(float, float, float)>
void IntoFloat(void* d, const void* a, const void* b, uint64_t n) {
  Into32(d, a, b, n, f);
}
template <float (*f)(float, float, float)>
void IntoHalf(void* d, const void* a, const void* b, uint64_t n) {
  Into16(d, a, b, n, f);
}
void MulAddWide(void* d, const void* a, const void* b, uint64_t n) {
  float* to = static_cast<float*>(d);
  const uint16_t *x = static_cast<const uint16_t*>(a), *y = static_cast<const uint16_t*>(b);
  for (uint64_t i = 0; i < n; ++i) to[i] += HalfToFloat(x[i]) * HalfToFloat(y[i]);
}
template <float (*f)(float, float, float)>
BinaryFn Into(DType t) {
  return {t == kF32 ? IntoFloat<f> : t == kF16 ? IntoHalf<f> : nullptr};
}

void PowInt(void* d, const void* a, const void* b, uint64_t n) {
  Map2<int32_t>(d, a, b, n, [](int32_t x, int32_t y) {
    uint32_t r = 1, base = static_cast<uint32_t>(x);
    if (y < 0) return x == 1 ? 1 : x == -1 ? (y & 1 ? -1 : 1) : 0;
    for (uint32_t e = static_cast<uint32_t>(y); e; e >>= 1, base *= base)
      if (e & 1) r *= base;
    return static_cast<int32_t>(r);
  });
}
}  // namespace

namespace {
template <typename F>
BinaryFn Floating(DType t) {
  return t == kF32 || t == kF16 ? BinaryFn{OnFloat<F>, t == kF16} : BinaryFn{};
}
template <typename F, bool max>
BinaryFn Choice(DType t) {
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
}  // namespace

BinaryFn FindBinary(BinaryOp op, DType t, DType src_t) {
  if (t != src_t) return {op == kMulAddDst && t == kF32 && src_t == kF16 ? MulAddWide : nullptr};
  const bool word = t == kI16 || t == kU16;
  switch (op) {
    case kAdd:
      return Arithmetic<AddOp>(t);
    case kSub:
      return Arithmetic<SubOp>(t);
    case kMul:
      return Arithmetic<MulOp>(t);
    case kDiv:
      return Floating<DivOp>(t);
    case kMax:
      return Choice<MaxOp, true>(t);
    case kMin:
      return Choice<MinOp, false>(t);
    case kAnd:
      return {word ? And16 : nullptr};
    case kOr:
      return {word ? Or16 : nullptr};
    case kXor:
      return {word ? Xor16 : nullptr};
    case kAddRelu:
      return t == kI16 ? BinaryFn{AddRelu16<true>} : Floating<AddReluOp>(t);
    case kSubRelu:
      return t == kI16 ? BinaryFn{AddRelu16<false>} : Floating<SubReluOp>(t);
    case kMulAddDst:
      return Into<MulAdd>(t);
    case kFusedMulAdd:
      return Into<FusedAdd>(t);
    case kFusedMulAddRelu:
      return Into<FusedAddRelu>(t);
    case kPower:
      return t == kI32 ? BinaryFn{PowInt} : Floating<PowOp>(t);
    case kFmod:
      return Floating<FmodOp>(t);
    case kBinaryOps:
      break;
  }
  return {};
}

}  // namespace TWIN_ABI
}  // namespace twin
