/* exp, expm1, sigmoid, tanh, sinh, cosh.
 *
 * x = k log(2) + r with |r| <= log(2)/2, k found by adding 1.5 * 2^23 (2^52), whose last place is 1; k
 * log(2) is subtracted in two pieces, of which the first times k is exact. 2^k is put together from its
 * exponent, for exp in two factors, so that results below the smallest normal number round once.
 * float32's sinh and cosh compute in float64.
 */
#ifndef AUTOFUSE_HOST_EXP_H
#define AUTOFUSE_HOST_EXP_H
#include "polynomials.h"

#define AF_LN2_HIGH_F32 0x1.62e4p-1f
#define AF_LN2_LOW_F32 0x1.7f7d1cf79abcap-20f
#define AF_LN2_HIGH_F64 0x1.62e42feep-1
#define AF_LN2_LOW_F64 0x1.a39ef35793c76p-33

/* x = k log(2) + high + low: high is exact, low what the second piece of log(2) gives, and high + low is
 * r. */
typedef struct {
  float high, low;
  int32_t k;
} af_reduced_f32;

typedef struct {
  double high, low;
  int64_t k;
} af_reduced_f64;

/* |x| < 2^15; any k for NaN. */
static inline af_reduced_f32 af_reduce_exp_f32(float x) {
  const float shifted = af_fma_f32(x, 0x1.715476p0f, 0x1.8p23f);
  const float n = shifted - 0x1.8p23f;
  const int32_t k = (int32_t)(af_bits_f32(shifted) - af_bits_f32(0x1.8p23f));
  const af_reduced_f32 result = {af_fma_f32(n, -AF_LN2_HIGH_F32, x), n * -AF_LN2_LOW_F32, k};
  return result;
}

/* |x| < 2000 */
static inline af_reduced_f64 af_reduce_exp_f64(double x) {
  const double shifted = af_fma_f64(x, 0x1.71547652b82fep0, 0x1.8p52);
  const double n = shifted - 0x1.8p52;
  const int64_t k = (int64_t)(af_bits_f64(shifted) - af_bits_f64(0x1.8p52));
  const af_reduced_f64 result = {af_fma_f64(n, -AF_LN2_HIGH_F64, x), n * -AF_LN2_LOW_F64, k};
  return result;
}

/* exp(high + low) - 1, of exp's or expm1's accuracy. */
static inline float af_exp_rest_f32(af_reduced_f32 x) {
  const float r = x.high + x.low;
  return x.high + af_fma_f32(r * r, af_poly_exp_rest_f32(r), x.low);
}

static inline float af_expm1_rest_f32(af_reduced_f32 x) {
  const float r = x.high + x.low;
  return x.high + af_fma_f32(r * r, af_poly_expm1_rest_f32(r), x.low);
}

static inline double af_exp_rest_f64(af_reduced_f64 x) {
  const double r = x.high + x.low;
  return x.high + af_fma_f64(r * r, af_poly_exp_rest_f64(r), x.low);
}

static inline double af_expm1_rest_f64(af_reduced_f64 x) {
  const double r = x.high + x.low;
  return x.high + af_fma_f64(r * r, af_poly_expm1_rest_f64(r), x.low);
}

static inline float af_exp_f32(float x) {
  const float below = x > 89.0f ? 89.0f : x;
  const af_reduced_f32 reduced = af_reduce_exp_f32(below < -104.0f ? -104.0f : below);
  const int32_t half = reduced.k >> 1;
  const float e = (af_exp_rest_f32(reduced) + 1.0f) * af_power_of_two_f32(half);
  return e * af_power_of_two_f32(reduced.k - half);
}

static inline double af_exp_f64(double x) {
  const double below = x > 710.0 ? 710.0 : x;
  const af_reduced_f64 reduced = af_reduce_exp_f64(below < -746.0 ? -746.0 : below);
  const int64_t half = (int64_t)((uint64_t)(reduced.k + 2048) >> 1) - 1024;
  const double e = (af_exp_rest_f64(reduced) + 1.0) * af_power_of_two_f64(half);
  return e * af_power_of_two_f64(reduced.k - half);
}

/* exp(x) - 1 = 2 (2^(k-1) (exp(r) - 1) + 2^(k-1) - 1/2): no factor overflows before the result does. */
static inline float af_expm1_f32(float x) {
  const float below = x > 89.0f ? 89.0f : x;
  const af_reduced_f32 reduced = af_reduce_exp_f32(below < -25.0f ? -25.0f : below);
  const float half = af_power_of_two_f32(reduced.k - 1);
  const float result = 2.0f * af_fma_f32(half, af_expm1_rest_f32(reduced), half - 0.5f);
  return __builtin_fabsf(x) < 0x1p-60f ? x : result;
}

static inline double af_expm1_f64(double x) {
  const double below = x > 710.0 ? 710.0 : x;
  const af_reduced_f64 reduced = af_reduce_exp_f64(below < -50.0 ? -50.0 : below);
  const double half = af_power_of_two_f64(reduced.k - 1);
  const double result = 2.0 * af_fma_f64(half, af_expm1_rest_f64(reduced), half - 0.5);
  return __builtin_fabs(x) < 0x1p-200 ? x : result;
}

/* exp(x) - 1 for |x| <= 700, to float32's needs. */
static inline double af_wide_expm1(double x) {
  const af_reduced_f64 reduced = af_reduce_exp_f64(x);
  const double r = reduced.high + reduced.low;
  const double power = af_power_of_two_f64(reduced.k);
  return af_fma_f64(power, af_fma_f64(r * r, af_poly_wide_expm1_rest_f64(r), r), power - 1.0);
}

/* 1 / (1 + exp(-x)), for negative x as exp(x) / (1 + exp(x)), which loses nothing where it is small. */
static inline float af_sigmoid_f32(float x) {
  const float e = af_exp_f32(-__builtin_fabsf(x));
  return (x < 0 ? e : 1.0f) / (1.0f + e);
}

static inline double af_sigmoid_f64(double x) {
  const double e = af_exp_f64(-__builtin_fabs(x));
  return (x < 0 ? e : 1.0) / (1.0 + e);
}

/* An odd polynomial up to 0.55, 1 - 2 / (exp(2|x|) + 1) beyond, which is 1 where |x| is cut. */
static inline float af_tanh_f32(float x) {
  const float size = __builtin_fabsf(x);
  const af_reduced_f32 reduced = af_reduce_exp_f32(2.0f * (size > 10.0f ? 10.0f : size));
  const float e = (af_exp_rest_f32(reduced) + 1.0f) * af_power_of_two_f32(reduced.k);
  const float large = 1.0f - 2.0f / (e + 1.0f);
  const float square = size * size;
  const float small = af_fma_f32(size * square, af_poly_tanh_rest_f32(square), size);
  return __builtin_copysignf(size < 0.55f ? small : large, x);
}

static inline double af_tanh_f64(double x) {
  const double size = __builtin_fabs(x);
  const af_reduced_f64 reduced = af_reduce_exp_f64(2.0 * (size > 20.0 ? 20.0 : size));
  const double e = (af_exp_rest_f64(reduced) + 1.0) * af_power_of_two_f64(reduced.k);
  const double large = 1.0 - 2.0 / (e + 1.0);
  const double square = size * size;
  const double small = af_fma_f64(size * square, af_poly_tanh_rest_f64(square), size);
  return __builtin_copysign(size < 0.55 ? small : large, x);
}

static inline float af_sinh_f32(float x) {
  const double size = __builtin_fabsf(x);
  const double t = af_wide_expm1(size > 100.0 ? 100.0 : size);
  return __builtin_copysignf((float)(0.5 * (t + t / (t + 1.0))), x);
}

static inline float af_cosh_f32(float x) {
  const double size = __builtin_fabsf(x);
  const double e = af_wide_expm1(size > 100.0 ? 100.0 : size) + 1.0;
  return (float)(0.5 * (e + 1.0 / e));
}

static inline double af_sinh_f64(double x) { return __builtin_sinh(x); }
static inline double af_cosh_f64(double x) { return __builtin_cosh(x); }
#endif
