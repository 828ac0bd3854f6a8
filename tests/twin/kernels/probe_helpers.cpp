// Why: a probe for every helper of the elementwise families and every dtype it has.
#include <tuple>
#include <utility>

#include "probe.h"

#include "autofuse/bitwise.h"
#include "autofuse/cast.h"
#include "autofuse/classify.h"
#include "autofuse/compare.h"
#include "autofuse/fill.h"
#include "autofuse/where.h"

using namespace autofuse;

template <typename T>
static T ProbeScalar(const ProbeTiling& t) {
  if constexpr (kSame<T, float> || kSame<T, half>)
    return static_cast<T>(t.value[0]);
  else
    return static_cast<T>(t.number[0]);
}

#define COMPARE_MODE(T, mode)                                                         \
  PROBE2("compare_" #mode "_" #T, uint8_t, T, T, CompareTmpBytes<T>(kTile),           \
         CompareToBool<CMPMODE::mode>(dst, a, b, tmp, n));                            \
  PROBE1("compare_scalar_" #mode "_" #T, uint8_t, T, CompareScalarTmpBytes<T>(kTile), \
         CompareScalarToBool<CMPMODE::mode>(dst, a, ProbeScalar<T>(t), tmp, n));
#define COMPARE(T)     \
  COMPARE_MODE(T, EQ); \
  COMPARE_MODE(T, NE); \
  COMPARE_MODE(T, LT); \
  COMPARE_MODE(T, LE); \
  COMPARE_MODE(T, GT); \
  COMPARE_MODE(T, GE);
COMPARE(float);
COMPARE(half);
COMPARE(int32_t);
COMPARE(int16_t);
COMPARE(int8_t);
COMPARE(uint8_t);
COMPARE(int64_t);

#define WHERE(T) \
  PROBE3("where_" #T, T, uint8_t, T, T, WhereTmpBytes<T>(kTile), WhereSelect(dst, a, b, c, tmp, n));
#define WHERE_SCALARS(T)                                               \
  PROBE2("where_sb_" #T, T, uint8_t, T, WhereTmpBytes<T>(kTile, 1),    \
         WhereSelect(dst, a, b, static_cast<T>(t.number[0]), tmp, n)); \
  PROBE2("where_sa_" #T, T, uint8_t, T, WhereTmpBytes<T>(kTile, 1),    \
         WhereSelect(dst, a, static_cast<T>(t.number[0]), b, tmp, n)); \
  PROBE1("where_ss_" #T, T, uint8_t, WhereTmpBytes<T>(kTile, 2),       \
         WhereSelect(dst, a, static_cast<T>(t.number[0]), static_cast<T>(t.number[1]), tmp, n));
WHERE(float);
WHERE(half);
WHERE(int32_t);
WHERE(int16_t);
WHERE(uint8_t);
WHERE(int8_t);
WHERE(int64_t);
WHERE_SCALARS(float);
WHERE_SCALARS(half);
WHERE_SCALARS(int32_t);
WHERE_SCALARS(int16_t);
WHERE_SCALARS(uint8_t);

PROBE2("logical_and", uint8_t, uint8_t, uint8_t, 0, LogicalAnd(dst, a, b, tmp, n));
PROBE2("logical_or", uint8_t, uint8_t, uint8_t, 0, LogicalOr(dst, a, b, tmp, n));
PROBE2("logical_xor", uint8_t, uint8_t, uint8_t, LogicalXorTmpBytes(kTile), LogicalXor(dst, a, b, tmp, n));
PROBE1("logical_not", uint8_t, uint8_t, LogicalNotTmpBytes(kTile), LogicalNot(dst, a, tmp, n));
#define BITWISE(T)                                                                                    \
  PROBE2("bitwise_and_" #T, T, T, T, 0, BitwiseAnd<T>(dst, a, b, tmp, n));                            \
  PROBE2("bitwise_or_" #T, T, T, T, 0, BitwiseOr<T>(dst, a, b, tmp, n));                              \
  PROBE2("bitwise_xor_" #T, T, T, T, BitwiseXorTmpBytes<T>(kTile), BitwiseXor<T>(dst, a, b, tmp, n)); \
  PROBE1("bitwise_not_" #T, T, T, 0, BitwiseNot<T>(dst, a, tmp, n));
BITWISE(int8_t);
BITWISE(uint8_t);
BITWISE(int16_t);
BITWISE(uint16_t);
BITWISE(int32_t);
BITWISE(int64_t);

#define CLASSIFY(T)                                                                   \
  PROBE1("isnan_" #T, uint8_t, T, ClassifyTmpBytes<T>(kTile), IsNan(dst, a, tmp, n)); \
  PROBE1("isinf_" #T, uint8_t, T, ClassifyTmpBytes<T>(kTile), IsInf(dst, a, tmp, n)); \
  PROBE1("isfinite_" #T, uint8_t, T, ClassifyTmpBytes<T>(kTile), IsFinite(dst, a, tmp, n));
CLASSIFY(float);
CLASSIFY(half);
PROBE1("sign_float", float, float, SignTmpBytes<float>(kTile), SignOf(dst, a, tmp, n));
PROBE1("sign_half", half, half, SignTmpBytes<half>(kTile), SignOf(dst, a, tmp, n));
PROBE1("sign_int32_t", int32_t, int32_t, SignTmpBytes<int32_t>(kTile), SignOf(dst, a, tmp, n));
PROBE1("abs_int32_t", int32_t, int32_t, AbsIntTmpBytes<int32_t>(kTile), AbsInt(dst, a, tmp, n));
PROBE1("abs_int16_t", int16_t, int16_t, AbsIntTmpBytes<int16_t>(kTile), AbsInt(dst, a, tmp, n));
PROBE1("neg_int32_t", int32_t, int32_t, 0, NegInt(dst, a, tmp, n));
PROBE1("neg_int16_t", int16_t, int16_t, 0, NegInt(dst, a, tmp, n));

#define FILL(T) PROBE1("fill_" #T, T, T, 0, (void)a; FillScalar(dst, static_cast<T>(t.number[0]), n));
FILL(int8_t);
FILL(int16_t);
FILL(int32_t);
FILL(int64_t);

#define CAST(D, S) \
  PROBE1("cast_" #S "_" #D, D, S, (CastTmpBytes<D, S>(kTile)), (CastTo<D, S>(dst, a, tmp, n)));
#define CASTS_FROM(S) \
  PROBE1("cast_" #S "_bool", uint8_t, S, CastToBoolTmpBytes<S>(kTile), CastToBool<S>(dst, a, tmp, n));
CAST(half, float);
CAST(bfloat16_t, float);
CAST(int8_t, float);
CAST(uint8_t, float);
CAST(int16_t, float);
CAST(int32_t, float);
CAST(int64_t, float);
CAST(float, half);
CAST(bfloat16_t, half);
CAST(int8_t, half);
CAST(uint8_t, half);
CAST(int16_t, half);
CAST(int32_t, half);
CAST(int64_t, half);
CAST(float, bfloat16_t);
CAST(half, bfloat16_t);
CAST(int8_t, bfloat16_t);
CAST(uint8_t, bfloat16_t);
CAST(int16_t, bfloat16_t);
CAST(int32_t, bfloat16_t);
CAST(int64_t, bfloat16_t);
CAST(float, int8_t);
CAST(half, int8_t);
CAST(bfloat16_t, int8_t);
CAST(uint8_t, int8_t);
CAST(int16_t, int8_t);
CAST(int32_t, int8_t);
CAST(int64_t, int8_t);
CAST(float, uint8_t);
CAST(half, uint8_t);
CAST(bfloat16_t, uint8_t);
CAST(int8_t, uint8_t);
CAST(int16_t, uint8_t);
CAST(int32_t, uint8_t);
CAST(int64_t, uint8_t);
CAST(float, int16_t);
CAST(half, int16_t);
CAST(bfloat16_t, int16_t);
CAST(int8_t, int16_t);
CAST(uint8_t, int16_t);
CAST(int32_t, int16_t);
CAST(int64_t, int16_t);
CAST(float, int32_t);
CAST(half, int32_t);
CAST(bfloat16_t, int32_t);
CAST(int8_t, int32_t);
CAST(uint8_t, int32_t);
CAST(int16_t, int32_t);
CAST(int64_t, int32_t);
CAST(float, int64_t);
CAST(half, int64_t);
CAST(bfloat16_t, int64_t);
CAST(int8_t, int64_t);
CAST(uint8_t, int64_t);
CAST(int16_t, int64_t);
CAST(int32_t, int64_t);
CASTS_FROM(float);
CASTS_FROM(half);
CASTS_FROM(bfloat16_t);
CASTS_FROM(int8_t);
CASTS_FROM(uint8_t);
CASTS_FROM(int16_t);
CASTS_FROM(int32_t);
CASTS_FROM(int64_t);
