/* log, log1p, asinh, acosh, atanh.
 *
 * x = 2^k (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2), read off the bits; k log(2) is added in two pieces,
 * the first of which is exact. float64 uses s = f / (2 + f), float32 a polynomial in f. log1p adds what 1
 * + x has lost to f. float32's inverse hyperbolic functions are log1p of an expression without
 * cancellation, computed in float64.
 */
#ifndef AUTOFUSE_HOST_LOG_H
#define AUTOFUSE_HOST_LOG_H
#include "exp.h"

/* k and 1 + f of a positive normal x. */
static inline float af_split_f32(float x, int32_t* k) {
  const uint32_t bits = af_bits_f32(x);
  *k = (int32_t)(bits - 0x3f3504f3u) >> 23;
  return af_from_bits_f32(bits - ((uint32_t)*k << 23));
}

/* k as a float64, made by adding it to the last place of 2^52. */
static inline double af_split_f64(double x, double* k) {
  const uint64_t bits = af_bits_f64(x);
  const uint64_t biased = (bits - 0x3fe6a09e667f3bcdu + ((uint64_t)1023 << 52)) >> 52;
  *k = af_from_bits_f64(biased | 0x4330000000000000u) - (0x1p52 + 1023.0);
  return af_from_bits_f64(bits - ((biased - 1023) << 52));
}

/* k log(2) + log(1 + f) */
static inline float af_log_sum_f32(float k, float f) {
  const float square = f * f;
  const float low = af_fma_f32(k, AF_LN2_LOW_F32, f * square * af_poly_log_rest_f32(f));
  return af_fma_f32(k, AF_LN2_HIGH_F32, f - af_fma_f32(0.5f, square, -low));
}

static inline double af_log_sum_f64(double k, double f) {
  const double s = f / (2.0 + f);
  const double z = s * s;
  const double half = 0.5 * f * f;
  const double low = af_fma_f64(k, AF_LN2_LOW_F64, s * af_fma_f64(z, af_poly_atanh_rest_f64(z), half));
  return af_fma_f64(k, AF_LN2_HIGH_F64, f - (half - low));
}

/* To float32's needs. */
static inline double af_wide_log_sum(double k, double f) {
  const double s = f / (2.0 + f);
  const double z = s * s;
  return af_fma_f64(k, 0x1.62e42fefa39efp-1, s * af_fma_f64(z, af_poly_wide_atanh_rest_f64(z), 2.0));
}

/* Denormals are scaled by 2^23. */
static inline float af_log_f32(float x) {
  const int32_t up = x < 0x1p-126f ? 23 : 0;
  int32_t k;
  const float m = af_split_f32(x * af_power_of_two_f32(up), &k);
  const float sum = af_log_sum_f32((float)(k - up), m - 1.0f);
  const float finite = x > 0 ? sum : x == 0 ? -__builtin_inff() : af_nan_f32();
  return x < __builtin_inff() ? finite : x;
}

static inline double af_log_f64(double x) {
  const double scaled = x < 0x1p-1022 ? x * 0x1p52 : x;
  double k;
  const double m = af_split_f64(scaled, &k);
  const double sum = af_log_sum_f64(k - (x < 0x1p-1022 ? 52.0 : 0.0), m - 1.0);
  const double finite = x > 0 ? sum : x == 0 ? -__builtin_inf() : af_nan_f64();
  return x < __builtin_inf() ? finite : x;
}

/* What is lost is at most 1, so that of 2^60 and more it is too small to count, however it is scaled. */
static inline float af_log1p_f32(float x) {
  const float u = 1.0f + x;
  const float lost = x < 1.0f ? x - (u - 1.0f) : 1.0f - (u - x);
  int32_t k;
  const float m = af_split_f32(u, &k);
  const float scale = af_power_of_two_f32(k < 60 ? -k : -60);
  const float f = k == 0 ? x : m - 1.0f + lost * scale;
  const float sum = af_log_sum_f32((float)k, f);
  const float finite = x > -1.0f ? sum : x == -1.0f ? -__builtin_inff() : af_nan_f32();
  return __builtin_copysignf(x < __builtin_inff() ? finite : x, x);
}

static inline double af_log1p_f64(double x) {
  const double u = 1.0 + x;
  const double lost = x < 1.0 ? x - (u - 1.0) : 1.0 - (u - x);
  double k;
  const double m = af_split_f64(u, &k);
  const double f = k == 0 ? x : m - 1.0 + (k < 100 ? lost / u * m : 0.0);
  const double sum = af_log_sum_f64(k, f);
  const double finite = x > -1.0 ? sum : x == -1.0 ? -__builtin_inf() : af_nan_f64();
  const double all = x < __builtin_inf() ? finite : x;
  return __builtin_fabs(x) < 0x1p-100 ? x : all;
}

/* log(1 + y) for finite y > -1, to float32's needs, relative to small results too. */
static inline double af_wide_log1p(double y) {
  double k;
  const double m = af_split_f64(1.0 + y, &k);
  return af_wide_log_sum(k, k == 0 ? y : m - 1.0);
}

static inline float af_asinh_f32(float x) {
  const double size = __builtin_fabsf(x);
  const double result = af_wide_log1p(size + size * size / (1.0 + __builtin_sqrt(1.0 + size * size)));
  return __builtin_fabsf(x) < __builtin_inff() ? __builtin_copysignf((float)result, x) : x;
}

static inline float af_acosh_f32(float x) {
  const double above = (double)x - 1.0;
  const double result = af_wide_log1p(above + __builtin_sqrt(above * ((double)x + 1.0)));
  const float finite = x < 1.0f ? af_nan_f32() : (float)result;
  return x < __builtin_inff() ? finite : x;
}

static inline float af_atanh_f32(float x) {
  const double size = __builtin_fabsf(x);
  const float inside = (float)(0.5 * af_wide_log1p(2.0 * size / (1.0 - size)));
  const float finite = size < 1.0 ? inside : size == 1.0 ? __builtin_inff() : af_nan_f32();
  return __builtin_copysignf(finite, x);
}

/* Beyond 2^60 log(2|x|), where log1p(|x|) is log(|x|). */
static inline double af_asinh_f64(double x) {
  const double size = __builtin_fabs(x);
  const double inside = size > 0x1p60 ? 0.0 : size;
  const double square = inside * inside;
  const double near = inside + square / (1.0 + __builtin_sqrt(1.0 + square));
  const double sum = af_log1p_f64(size > 0x1p60 ? size : near) + (size > 0x1p60 ? 0x1.62e42fefa39efp-1 : 0.0);
  return __builtin_copysign(sum, x);
}

static inline double af_acosh_f64(double x) {
  const double above = x > 0x1p60 ? 0.0 : x - 1.0;
  const double near = above + __builtin_sqrt(above * above + 2.0 * above);
  const double sum = af_log1p_f64(x > 0x1p60 ? x : near) + (x > 0x1p60 ? 0x1.62e42fefa39efp-1 : 0.0);
  return x < 1.0 ? af_nan_f64() : sum;
}

static inline double af_atanh_f64(double x) {
  const double size = __builtin_fabs(x);
  const double twice = size + size;
  const double half = 0.5 * af_log1p_f64(twice + twice * size / (1.0 - size));
  return __builtin_copysign(size > 1.0 ? af_nan_f64() : half, x);
}
#endif
