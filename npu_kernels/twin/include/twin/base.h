// Why: the words every other twin header needs: the compiler's address-space keywords as no-ops, the number
// types that bisheng has built in (half, bfloat16_t), the enums and parameter structs of Ascend C with their
// real names. On entry nothing is assumed; on exit a kernel source may use these names. No standard header
// but <cstdint>: a kernel's compile time is dominated by what it includes, and hundreds of kernels are
// compiled in a test run.
#pragma once
#include <cstdint>

#ifndef TWIN_CHECK
#define TWIN_CHECK 1
#endif

#define __aicore__
#define __global__
#define __gm__
#define __ubuf__
#define __sync_noalias__
#define GM_ADDR uint8_t*
#define __NPU_ARCH__ 2201
#define ASCENDC_TWIN 1

// Two builds of the archive exist (checked and unchecked); the inline namespace makes a mixed link fail by
// name.
#if TWIN_CHECK
#define TWIN_ABI checked1
#else
#define TWIN_ABI unchecked1
#endif
// Every API entry takes where it was called from; a violation and a trace record name it.
#define TWIN_AT const char *twin_file = __builtin_FILE(), uint32_t twin_line = __builtin_LINE()
#define TWIN_HERE (::twin::Site{twin_file, twin_line})

namespace twin {
inline namespace TWIN_ABI {

struct Site {
  const char* file;
  uint32_t line;
};

constexpr uint32_t Bits(float f) { return __builtin_bit_cast(uint32_t, f); }
constexpr float FromBits(uint32_t u) { return __builtin_bit_cast(float, u); }

// Round to nearest even, overflow to infinity, NaN keeps the upper payload bits and becomes quiet.
// Branch-free, so loops over it vectorize; integer arithmetic only where a subnormal float16 is involved: the
// thread may flush.
constexpr uint16_t HalfBits(float f) {
  const uint32_t u = Bits(f), sign = (u >> 16) & 0x8000u, a = u & 0x7fffffffu;
  const uint32_t normal = (a - 0x38000000u + 0xfffu + ((a >> 13) & 1u)) >> 13;
  // |f| < 2^-14: adding 0.5 leaves the 10 bits of a subnormal at the end of the mantissa, rounded half to
  // even.
  const uint32_t small = Bits(FromBits(a < 0x38800000u ? a : 0u) + 0.5f) - 0x3f000000u;
  const uint32_t special = a > 0x7f800000u ? (0x7e00u | ((a >> 13) & 0x3ffu)) : 0x7c00u;
  const uint32_t finite = a < 0x38800000u ? small : normal;
  return static_cast<uint16_t>(sign | (a >= 0x477ff000u ? special : finite));
}
constexpr float HalfToFloat(uint16_t h) {
  const uint32_t m = h & 0x7fffu, sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  const uint32_t normal = (m << 13) + (m >= 0x7c00u ? 0x70000000u : 0x38000000u);
  const uint32_t small = Bits(static_cast<float>(static_cast<int32_t>(m & 0x3ffu)) * 5.9604644775390625e-8f);
  const uint32_t quiet = m > 0x7c00u ? 0x400000u : 0u;
  return FromBits(sign | quiet | (m < 0x400u ? small : normal));
}
constexpr uint16_t BrainBits(float f) {
  const uint32_t u = Bits(f);
  return static_cast<uint16_t>((u & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u
                                                               : (u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

}  // namespace TWIN_ABI
}  // namespace twin

// bisheng's built-in 16-bit floats are global names; here they are storage types that convert through float.
struct half {
  uint16_t bits;
  half() = default;
  template <typename N>
  constexpr half(N v) : bits(twin::HalfBits(static_cast<float>(v))) {}
  constexpr operator float() const { return twin::HalfToFloat(bits); }
};
struct bfloat16_t {
  uint16_t bits;
  bfloat16_t() = default;
  template <typename N>
  constexpr explicit bfloat16_t(N v) : bits(twin::BrainBits(static_cast<float>(v))) {}
  constexpr operator float() const { return twin::FromBits(static_cast<uint32_t>(bits) << 16); }
};

enum pipe_t { PIPE_S = 0, PIPE_V = 1, PIPE_MTE2 = 2, PIPE_MTE3 = 3, PIPE_M = 4, PIPE_MTE1 = 5, PIPE_ALL = 6 };
enum event_t { EVENT_ID0, EVENT_ID1, EVENT_ID2, EVENT_ID3, EVENT_ID4, EVENT_ID5, EVENT_ID6, EVENT_ID7 };

namespace twin {
inline namespace TWIN_ABI {
enum DType : uint8_t { kU8, kI8, kI16, kU16, kF16, kBF16, kI32, kU32, kF32, kI64, kU64, kF64, kNone };
template <typename T>
struct TypeOf {
  static constexpr DType value = kNone;
};
template <>
struct TypeOf<uint8_t> {
  static constexpr DType value = kU8;
};
template <>
struct TypeOf<int8_t> {
  static constexpr DType value = kI8;
};
template <>
struct TypeOf<bool> {
  static constexpr DType value = kU8;
};
template <>
struct TypeOf<int16_t> {
  static constexpr DType value = kI16;
};
template <>
struct TypeOf<uint16_t> {
  static constexpr DType value = kU16;
};
template <>
struct TypeOf<half> {
  static constexpr DType value = kF16;
};
template <>
struct TypeOf<bfloat16_t> {
  static constexpr DType value = kBF16;
};
template <>
struct TypeOf<int32_t> {
  static constexpr DType value = kI32;
};
template <>
struct TypeOf<uint32_t> {
  static constexpr DType value = kU32;
};
template <>
struct TypeOf<float> {
  static constexpr DType value = kF32;
};
template <>
struct TypeOf<int64_t> {
  static constexpr DType value = kI64;
};
template <>
struct TypeOf<uint64_t> {
  static constexpr DType value = kU64;
};
template <>
struct TypeOf<double> {
  static constexpr DType value = kF64;
};
template <typename T>
constexpr DType kType = TypeOf<T>::value;
}  // namespace TWIN_ABI
}  // namespace twin

namespace AscendC {

using TEventID = int8_t;

enum class TPosition : uint8_t {
  GM,
  A1,
  A2,
  B1,
  B2,
  C1,
  C2,
  CO1,
  CO2,
  VECIN,
  VECOUT,
  VECCALC,
  LCM = VECCALC,
  SPM,
  MAX
};
using QuePosition = TPosition;
enum class HardEvent : uint8_t {
  S_V,
  S_MTE2,
  S_MTE3,
  V_S,
  V_V,
  V_MTE2,
  V_MTE3,
  MTE2_S,
  MTE2_V,
  MTE2_MTE2,
  MTE2_MTE3,
  MTE3_S,
  MTE3_V,
  MTE3_MTE2,
  MTE3_MTE3,
  MAX
};
enum class CacheLine : uint64_t { SINGLE_CACHE_LINE = 0, ENTIRE_DATA_CACHE };
enum class DcciDst : uint64_t { CACHELINE_ALL = 0, CACHELINE_UB, CACHELINE_OUT, CACHELINE_ATOMIC };
enum class CMPMODE : uint8_t { LT = 0, GT, EQ, LE, GE, NE };
enum class SELMODE : uint8_t { VSEL_CMPMASK_SPR = 0, VSEL_TENSOR_SCALAR_MODE, VSEL_TENSOR_TENSOR_MODE };
enum class RoundMode : uint8_t {
  CAST_NONE = 0,
  CAST_RINT,
  CAST_FLOOR,
  CAST_CEIL,
  CAST_ROUND,
  CAST_TRUNC,
  CAST_ODD
};
enum class MaskMode : uint8_t { NORMAL = 0, COUNTER };
enum class ReduceOrder : uint8_t {
  ORDER_VALUE_INDEX = 0,
  ORDER_INDEX_VALUE,
  ORDER_ONLY_VALUE,
  ORDER_ONLY_INDEX
};

constexpr uint64_t MASK_PLACEHOLDER = 0;
constexpr uint32_t ONE_BLK_SIZE = 32;
constexpr uint32_t DEFAULT_BLK_NUM = 8;
constexpr uint32_t ONE_REPEAT_BYTE_SIZE = 256;
constexpr uint8_t DEFAULT_BLK_STRIDE = 1;
constexpr uint8_t DEFAULT_REPEAT_STRIDE = 8;

struct DataCopyParams {
  uint16_t blockCount = 1, blockLen = 0, srcStride = 0, dstStride = 0;
  DataCopyParams() = default;
  DataCopyParams(uint16_t count, uint16_t len, uint16_t src, uint16_t dst)
      : blockCount(count), blockLen(len), srcStride(src), dstStride(dst) {}
};
struct DataCopyExtParams {
  uint16_t blockCount = 1;
  uint32_t blockLen = 0, srcStride = 0, dstStride = 0, rsv = 0;
  DataCopyExtParams() = default;
  DataCopyExtParams(uint16_t count, uint32_t len, uint32_t src, uint32_t dst, uint32_t reserved)
      : blockCount(count), blockLen(len), srcStride(src), dstStride(dst), rsv(reserved) {}
};
template <typename T>
struct DataCopyPadExtParams {
  bool isPad = false;
  uint8_t leftPadding = 0, rightPadding = 0;
  T paddingValue = T(0);
  DataCopyPadExtParams() = default;
  DataCopyPadExtParams(bool pad, uint8_t left, uint8_t right, T value)
      : isPad(pad), leftPadding(left), rightPadding(right), paddingValue(value) {}
};
struct CopyRepeatParams {
  uint16_t dstStride = 1, srcStride = 1, dstRepeatSize = 8, srcRepeatSize = 8;
  CopyRepeatParams() = default;
  CopyRepeatParams(uint16_t d, uint16_t s, uint16_t dr, uint16_t sr)
      : dstStride(d), srcStride(s), dstRepeatSize(dr), srcRepeatSize(sr) {}
};
struct UnaryRepeatParams {
  uint16_t dstBlkStride = 1, srcBlkStride = 1;
  uint8_t dstRepStride = 8, srcRepStride = 8;
  UnaryRepeatParams() = default;
  UnaryRepeatParams(uint16_t db, uint16_t sb, uint8_t dr, uint8_t sr)
      : dstBlkStride(db), srcBlkStride(sb), dstRepStride(dr), srcRepStride(sr) {}
};
struct BinaryRepeatParams {
  uint8_t dstBlkStride = 1, src0BlkStride = 1, src1BlkStride = 1, dstRepStride = 8, src0RepStride = 8,
          src1RepStride = 8;
  BinaryRepeatParams() = default;
  BinaryRepeatParams(uint8_t db, uint8_t s0b, uint8_t s1b, uint8_t dr, uint8_t s0r, uint8_t s1r)
      : dstBlkStride(db),
        src0BlkStride(s0b),
        src1BlkStride(s1b),
        dstRepStride(dr),
        src0RepStride(s0r),
        src1RepStride(s1r) {}
};
struct BrcbRepeatParams {
  uint16_t dstBlkStride = 1, dstRepStride = 8;
  BrcbRepeatParams() = default;
  BrcbRepeatParams(uint16_t blk, uint16_t rep) : dstBlkStride(blk), dstRepStride(rep) {}
};
struct GatherMaskParams {
  uint8_t src0BlockStride = 1;
  uint16_t repeatTimes = 0, src0RepeatStride = 0;
  uint8_t src1RepeatStride = 0;
  GatherMaskParams() = default;
  GatherMaskParams(uint8_t blk, uint16_t times, uint16_t rep0, uint8_t rep1)
      : src0BlockStride(blk), repeatTimes(times), src0RepeatStride(rep0), src1RepeatStride(rep1) {}
};
struct TransDataTo5HDParams {
  bool dstHighHalf = false, srcHighHalf = false;
  uint8_t repeatTimes = 1;
  uint16_t dstRepStride = 0, srcRepStride = 0;
  TransDataTo5HDParams() = default;
  TransDataTo5HDParams(bool dh, bool sh, uint8_t times, uint16_t dr, uint16_t sr)
      : dstHighHalf(dh), srcHighHalf(sh), repeatTimes(times), dstRepStride(dr), srcRepStride(sr) {}
};

}  // namespace AscendC
