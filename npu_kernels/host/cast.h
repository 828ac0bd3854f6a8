/* Conversions whose C operator is undefined for some values, or which the vectorizer does not take.
 *
 * af_cast_<target>_<source>. Float to integer: what x86's cvtt instructions give, also for NaN and out
 * of range. 64-bit integers: built from 32-bit halves and exact float64 additions, since AVX2 has no
 * such conversion; with AVX-512DQ there is one. 16-bit floats are their bits; rounding is half to even.
 */
#ifndef AUTOFUSE_HOST_CAST_H
#define AUTOFUSE_HOST_CAST_H
#include "bits.h"

/* Truncation; the smallest int32 for NaN and values out of range. */
static inline int32_t af_cast_i32_f32(float x) {
  const float below = x < 2147483648.0f ? x : -2147483648.0f;
  return (int32_t)(below > -2147483648.0f ? below : -2147483648.0f);
}

static inline int32_t af_cast_i32_f64(double x) {
  const double below = x < 2147483648.0 ? x : -2147483648.0;
  return (int32_t)(below > -2147483648.0 ? below : -2147483648.0);
}

/* Truncation; the smallest int64 for NaN and values out of range. |x| < 2^63 splits exactly into high *
 * 2^32 + low with 0 <= low < 2^32; adding 2^52 (1.5 * 2^52 for the signed half) leaves an integer in the
 * low bits. */
static inline int64_t af_cast_i64_f64(double x) {
  const double below = x < 9223372036854775808.0 ? x : -9223372036854775808.0;
  const double inside = below > -9223372036854775808.0 ? below : -9223372036854775808.0;
#ifdef __AVX512DQ__
  return (int64_t)inside;
#else
  const double whole = __builtin_trunc(inside);
  const double high = __builtin_floor(whole * 0x1p-32);
  const double low = whole - high * 0x1p32;
  const uint64_t high_bits = af_bits_f64(high + 0x1.8p52) - af_bits_f64(0x1.8p52);
  return (int64_t)((high_bits << 32) + (af_bits_f64(low + 0x1p52) - af_bits_f64(0x1p52)));
#endif
}

/* From 2^63 on by way of x - 2^63; below as int64, negative values too. */
static inline uint64_t af_cast_u64_f64(double x) {
  const uint64_t top = x >= 9223372036854775808.0 ? 0x8000000000000000u : 0;
  return (uint64_t)af_cast_i64_f64(x >= 9223372036854775808.0 ? x - 9223372036854775808.0 : x) ^ top;
}

/* (2^84 + high * 2^32) - (2^84 + 2^52) is exact, so that adding (2^52 + low) is the only rounding. */
static inline double af_cast_f64_u64(uint64_t x) {
  const double high = af_from_bits_f64((x >> 32) | 0x4530000000000000u) - (0x1p84 + 0x1p52);
  return high + af_from_bits_f64((x & 0xffffffffu) | 0x4330000000000000u);
}

/* gcc with -fno-trapping-math takes (float)(int)x for trunc(x), which is -0.0 where x is above -1 and not
 * above -0.0; an integer 0 is +0.0. The mask says so in a way that it does not see through. */
static inline float af_cast_f32_i32(int32_t x) {
  return af_from_bits_f32(af_bits_f32((float)x) & (0 - (uint32_t)(x != 0)));
}

static inline double af_cast_f64_i32(int32_t x) {
  return af_from_bits_f64(af_bits_f64((double)x) & (0 - (uint64_t)(x != 0)));
}

static inline double af_cast_f64_i64(int64_t x) {
#ifdef __AVX512DQ__
  return af_from_bits_f64(af_bits_f64((double)x) & (0 - (uint64_t)(x != 0)));
#else
  const uint64_t biased = ((uint64_t)x >> 32) ^ 0x80000000u;
  const double high = af_from_bits_f64(biased | 0x4530000000000000u) - (0x1p84 + 0x1p63 + 0x1p52);
  return high + af_from_bits_f64(((uint64_t)x & 0xffffffffu) | 0x4330000000000000u);
#endif
}

/* Rounded to odd at bit 11 where float64 would round, so that float32's rounding is the only one that
 * counts. */
static inline float af_cast_f32_u64(uint64_t x) {
  const uint64_t odd = (x & ~(uint64_t)0x7ff) | ((x & 0x7ff) ? 0x800 : 0);
  return (float)af_cast_f64_u64(x >> 53 ? odd : x);
}

static inline float af_cast_f32_i64(int64_t x) {
#ifdef __AVX512DQ__
  return af_from_bits_f32(af_bits_f32((float)x) & (0 - (uint32_t)(x != 0)));
#else
  const uint64_t u = (uint64_t)x;
  const uint64_t odd = (u & ~(uint64_t)0x7ff) | ((u & 0x7ff) ? 0x800 : 0);
  return (float)af_cast_f64_i64((int64_t)((u + ((uint64_t)1 << 53)) >> 54 ? odd : u));
#endif
}

/* All bits, or none. Selecting by masks keeps the optimizer from making branches of conversions whose
 * results are compared next, which the vectorizer would not take. */
static inline uint32_t af_mask(int condition) { return 0 - (uint32_t)condition; }

/* float16 bits to float32. Denormals come out of an exact subtraction of normal numbers, so flushing
 * does not harm them; NaN keeps its payload and becomes quiet. */
static inline float af_cast_f32_f16(uint16_t h) {
  const uint32_t size = (uint32_t)(h & 0x7fff) << 13;
  const uint32_t sign = (uint32_t)(h & 0x8000) << 16;
  const uint32_t special = af_mask(size >= 0x0f800000u);
  const uint32_t quiet = af_mask(size > 0x0f800000u) & 0x00400000u;
  const uint32_t normal = (size + 0x38000000u + (special & 0x38000000u)) | quiet;
  const uint32_t tiny = af_bits_f32(af_from_bits_f32(size + 0x38800000u) - af_from_bits_f32(0x38800000u));
  const uint32_t denormal = af_mask(size < 0x00800000u);
  return af_from_bits_f32((tiny & denormal) | (normal & ~denormal) | sign);
}

/* float32 to float16 bits; NaN becomes quiet and keeps the upper ten bits of its payload. Below 2^-14 an
 * addition of 0.5 rounds at float16's last place, 2^-24. */
static inline uint16_t af_cast_f16_f32(float x) {
  const uint32_t bits = af_bits_f32(x);
  const uint32_t size = bits & 0x7fffffffu;
  const uint32_t sign = bits >> 16 & 0x8000u;
  const uint32_t tiny = af_bits_f32(af_from_bits_f32(size) + 0.5f) - 0x3f000000u;
  const uint32_t normal = (size - 0x38000000u + 0xfffu + (size >> 13 & 1)) >> 13;
  const uint32_t finite = size < 0x38800000u ? tiny : size < 0x477ff000u ? normal : 0x7c00u;
  return (uint16_t)((size > 0x7f800000u ? 0x7e00u | (size >> 13 & 0x3ffu) : finite) | sign);
}

/* af_cast_f32_f16(af_cast_f16_f32(x)) without the way through the bits of float16. Next to 2^13 times its
 * power of two a float32 has float16's last place, so adding that and taking it off again rounds, half to
 * even; from 2^-14 down the last place is 2^-24, which 0.5 has; from 2^16 up all becomes infinite anyway. */
static inline float af_cast_round_f16(float x) {
  const uint32_t bits = af_bits_f32(x);
  const float size = __builtin_fabsf(x);
  const uint32_t power = af_bits_f32(size) & 0x7f800000u;
  const uint32_t below = power > 0x47800000u ? 0x47800000u : power;
  const float large = af_from_bits_f32((below > 0x38800000u ? below : 0x38800000u) + 0x06800000u);
  const float rounded = (size + large) - large;
  const float finite = rounded > 65504.0f ? __builtin_inff() : rounded;
  return af_from_bits_f32((af_bits_f32(finite) & 0xffffe000u) | (bits & 0x80000000u));
}

/* bfloat16 bits to float32: its upper half. */
static inline float af_cast_f32_bf16(uint16_t h) { return af_from_bits_f32((uint32_t)h << 16); }

/* float32 to bfloat16 bits; NaN becomes 0x7fc0 or 0xffc0. */
static inline uint16_t af_cast_bf16_f32(float x) {
  const uint32_t bits = af_bits_f32(x);
  const uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
  return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16 & 0x8000u) | 0x7fc0u : rounded);
}
#endif
