// Why: what the unary instructions compute. Exp and Ln are libm's float results (at most 1 ULP), the
// composite functions its double results rounded; Sqrt and division are exact. The device's own error is not
// modelled (docs/twin.md).
#include "loops.h"

namespace twin {
inline namespace TWIN_ABI {

const char* Name(UnaryOp op) {
  static const char* const names[kUnaryOps] = {
      "Abs",  "Exp",   "Ln",    "Sqrt",  "Rsqrt", "Reciprocal", "Relu",  "Not",   "Tanh", "Sigmoid", "Erf",
      "Erfc", "Log",   "Log2",  "Log10", "Sin",   "Cos",        "Tan",   "Asin",  "Acos", "Atan",    "Sinh",
      "Cosh", "Asinh", "Acosh", "Atanh", "Floor", "Ceil",       "Trunc", "Round", "Sign", "Frac",    "Gelu"};
  return names[op];
}

namespace {
// One struct an operation: a function on float, used for float and, through it, for half.
struct AbsF {
  float operator()(float x) const { return FromBits(Bits(x) & 0x7fffffffu); }
};
struct ReluF {
  float operator()(float x) const { return x < 0.0f ? 0.0f : x; }
};  // keeps NaN and -0.0
struct SqrtF {
  float operator()(float x) const { return std::sqrt(x); }
};
struct RsqrtF {
  float operator()(float x) const { return 1.0f / std::sqrt(x); }
};
struct ReciprocalF {
  float operator()(float x) const { return 1.0f / x; }
};
struct SigmoidF {
  float operator()(float x) const { return static_cast<float>(1.0 / (1.0 + std::exp(-double(x)))); }
};
struct FracF {
  float operator()(float x) const { return x - RoundToZero(x); }
};
struct FloorF {
  float operator()(float x) const { return RoundDown(x); }
};
struct CeilF {
  float operator()(float x) const { return RoundUp(x); }
};
struct TruncF {
  float operator()(float x) const { return RoundToZero(x); }
};
struct RoundF {
  float operator()(float x) const { return RoundEven(x); }
};
struct SignF {
  float operator()(float x) const { return static_cast<float>((x > 0.0f) - (x < 0.0f)); }
};
struct GeluF {
  float operator()(float x) const {
    return x / (1.0f + std::exp(-1.59576912f * (x + 0.044715f * x * x * x)));
  }
};
struct ExpF {
  float operator()(float x) const { return std::exp(x); }
};
struct LnF {
  float operator()(float x) const { return std::log(x); }
};
#define TWIN_LIBM(Struct, call)                                                          \
  struct Struct {                                                                        \
    float operator()(float x) const { return static_cast<float>(std::call(double(x))); } \
  };
TWIN_LIBM(TanhF, tanh)
TWIN_LIBM(ErfF, erf)
TWIN_LIBM(ErfcF, erfc)
TWIN_LIBM(Log2F, log2)
TWIN_LIBM(Log10F, log10)
TWIN_LIBM(SinF, sin)
TWIN_LIBM(CosF, cos)
TWIN_LIBM(TanF, tan)
TWIN_LIBM(AsinF, asin)
TWIN_LIBM(AcosF, acos)
TWIN_LIBM(AtanF, atan)
TWIN_LIBM(SinhF, sinh)
TWIN_LIBM(CoshF, cosh)
TWIN_LIBM(AsinhF, asinh)
TWIN_LIBM(AcoshF, acosh)
TWIN_LIBM(AtanhF, atanh)
#undef TWIN_LIBM

template <typename F>
void OnFloat(void* d, const void* s, uint64_t n) {
  Map1<float>(d, s, n, F());
}
template <typename F>
UnaryFn Floating(DType t) {
  return t == kF32 || t == kF16 ? UnaryFn{OnFloat<F>, t == kF16} : UnaryFn{};
}

void AbsHalf(void* d, const void* s, uint64_t n) {
  Map1<uint16_t>(d, s, n, [](uint16_t x) { return static_cast<uint16_t>(x & 0x7fffu); });
}
void ReluHalf(void* d, const void* s,
              uint64_t n) {  // on the bits: below zero means sign set, not -0.0, not NaN
  Map1<uint16_t>(d, s, n,
                 [](uint16_t x) { return static_cast<uint16_t>(x > 0x8000u && x <= 0xfc00u ? 0u : x); });
}
void ReluInt(void* d, const void* s, uint64_t n) {
  Map1<int32_t>(d, s, n, [](int32_t x) { return x < 0 ? 0 : x; });
}
void Not16(void* d, const void* s, uint64_t n) {
  Map1<uint16_t>(d, s, n, [](uint16_t x) { return static_cast<uint16_t>(~x); });
}
}  // namespace

UnaryFn FindUnary(UnaryOp op, DType t) {
  switch (op) {
    case kAbs:
      return t == kF16 ? UnaryFn{AbsHalf} : t == kF32 ? UnaryFn{OnFloat<AbsF>} : UnaryFn{};
    case kRelu:
      return t == kF16   ? UnaryFn{ReluHalf}
             : t == kF32 ? UnaryFn{OnFloat<ReluF>}
             : t == kI32 ? UnaryFn{ReluInt}
                         : UnaryFn{};
    case kNot:
      return t == kI16 || t == kU16 ? UnaryFn{Not16} : UnaryFn{};
    case kExp:
      return Floating<ExpF>(t);
    case kLn:
    case kLog:
      return Floating<LnF>(t);
    case kSqrt:
      return Floating<SqrtF>(t);
    case kRsqrt:
      return Floating<RsqrtF>(t);
    case kReciprocal:
      return Floating<ReciprocalF>(t);
    case kTanh:
      return Floating<TanhF>(t);
    case kSigmoid:
      return Floating<SigmoidF>(t);
    case kErf:
      return Floating<ErfF>(t);
    case kErfc:
      return Floating<ErfcF>(t);
    case kLog2:
      return Floating<Log2F>(t);
    case kLog10:
      return Floating<Log10F>(t);
    case kSin:
      return Floating<SinF>(t);
    case kCos:
      return Floating<CosF>(t);
    case kTan:
      return Floating<TanF>(t);
    case kAsin:
      return Floating<AsinF>(t);
    case kAcos:
      return Floating<AcosF>(t);
    case kAtan:
      return Floating<AtanF>(t);
    case kSinh:
      return Floating<SinhF>(t);
    case kCosh:
      return Floating<CoshF>(t);
    case kAsinh:
      return Floating<AsinhF>(t);
    case kAcosh:
      return Floating<AcoshF>(t);
    case kAtanh:
      return Floating<AtanhF>(t);
    case kFloor:
      return Floating<FloorF>(t);
    case kCeil:
      return Floating<CeilF>(t);
    case kTrunc:
      return Floating<TruncF>(t);
    case kRound:
      return Floating<RoundF>(t);
    case kSign:
      return Floating<SignF>(t);
    case kFrac:
      return Floating<FracF>(t);
    case kGelu:
      return Floating<GeluF>(t);
    case kUnaryOps:
      break;
  }
  return UnaryFn{};
}

}  // namespace TWIN_ABI
}  // namespace twin
