/* exp, expm1, sigmoid, tanh, sinh, cosh.
 *
 * x = n log(2) + r with |r| <= log(2)/2. n is found by adding 1.5 * 2^23 (2^52), whose last place is 1: it
 * is in the low bits of the sum, and where the number added has a power's bias in its last places, a shift
 * makes 2^n of them. n log(2) is subtracted in two pieces, of which the first times n is exact. float32's
 * tanh takes exp(r) = (1 + t) / (1 - t) with t = tanh(r/2), whose denominator goes into the quotient that it
 * is anyway; float32's sinh and cosh compute in float64.
 */
#ifndef AUTOFUSE_HOST_EXP_H
#define AUTOFUSE_HOST_EXP_H
#include "polynomials.h"

#define AF_LN2_HIGH_F32 0x1.62e4p-1f
#define AF_LN2_LOW_F32 0x1.7f7d1cf79abcap-20f
#define AF_LN2_HIGH_F64 0x1.62e42feep-1
#define AF_LN2_LOW_F64 0x1.a39ef35793c76p-33

/* What to add for n as the low bits, plus a bias. */
#define AF_SHIFT_F32(bias) (0x1.8p23f + (float)(bias))
#define AF_SHIFT_F64(bias) (0x1.8p52 + (double)(bias))

/* x = n log(2) + high + low: high is exact, low what the second piece of log(2) gives. shifted: n as the low
 * bits, plus the bias that was asked for. */
typedef struct {
  double high, low;
  uint64_t shifted;
} af_reduced_f64;

/* Of |x| < 2000; any n for NaN. */
static inline af_reduced_f64 af_reduce_exp_f64(double x, int bias) {
  const double shifted = af_fma_f64(x, 0x1.71547652b82fep0, AF_SHIFT_F64(bias));
  const double n = shifted - AF_SHIFT_F64(bias);
  const af_reduced_f64 result = {af_fma_f64(n, -AF_LN2_HIGH_F64, x), n * -AF_LN2_LOW_F64,
                                 af_bits_f64(shifted)};
  return result;
}

/* x - n log(2) for |n| < 2^8, n whole or half. */
static inline float af_exp_rest_of_f32(float x, float n) {
  return af_fma_f32(n, -AF_LN2_LOW_F32, af_fma_f32(n, -AF_LN2_HIGH_F32, x));
}

/* The same with an error of up to n 2^-29. */
static inline float af_near_rest_of_f32(float x, float n) {
#ifdef __FMA__
  return af_fma_f32(n, -0x1.62e430p-1f, x);
#else
  return af_exp_rest_of_f32(x, n);
#endif
}

/* exp(r) and exp(r) - 1 for |r| <= log(2)/2. */
static inline float af_exp_small_f32(float r) {
  return af_fma_f32(af_fma_f32(af_poly_exp_rest_f32(r), r, 1.0f), r, 1.0f);
}

static inline float af_expm1_small_f32(float r) { return af_fma_f32(r * r, af_poly_expm1_rest_f32(r), r); }

/* tanh(u) for |u| <= 3/8 log(2). */
static inline float af_tanh_small_f32(float u) {
  const float square = u * u;
  return af_fma_f32(u * square, af_poly_tanh_small_f32(square), u);
}

/* exp(high + low) - 1, of exp's or expm1's accuracy. */
static inline double af_exp_rest_f64(af_reduced_f64 x) {
  const double r = x.high + x.low;
  return x.high + af_fma_f64(r * r, af_poly_exp_rest_f64(r), x.low);
}

static inline double af_expm1_rest_f64(af_reduced_f64 x) {
  const double r = x.high + x.low;
  return x.high + af_fma_f64(r * r, af_poly_expm1_rest_f64(r), x.low);
}

/* Times 2^n in two factors, so that results below the smallest normal number round once. */
static inline float af_exp_f32(float x) {
  const float inside = af_at_least_f32(af_at_most_f32(x, 89.0f), -104.0f);
  const float shifted = af_fma_f32(inside, 0x1.715476p0f, AF_SHIFT_F32(254));
  const float r = af_exp_rest_of_f32(inside, shifted - AF_SHIFT_F32(254));
  const uint32_t half = af_bits_f32(shifted) << 22 & 0xff800000u;
  const uint32_t other = (af_bits_f32(shifted) << 23) - half;
  return af_exp_small_f32(r) * af_from_bits_f32(half) * af_from_bits_f32(other);
}

static inline double af_exp_f64(double x) {
  const double inside = af_at_least_f64(af_at_most_f64(x, 710.0), -746.0);
  const af_reduced_f64 reduced = af_reduce_exp_f64(inside, 2046);
  const uint64_t half = reduced.shifted << 51 & 0xfff0000000000000u;
  const uint64_t other = (reduced.shifted << 52) - half;
  return (af_exp_rest_f64(reduced) + 1.0) * af_from_bits_f64(half) * af_from_bits_f64(other);
}

/* exp(x) - 1 = 2 (2^(n-1) (exp(r) - 1) + 2^(n-1) - 1/2): no factor overflows before the result does. */
static inline float af_expm1_f32(float x) {
  const float inside = af_at_least_f32(af_at_most_f32(x, 89.0f), -25.0f);
  const float shifted = af_fma_f32(inside, 0x1.715476p0f, AF_SHIFT_F32(126));
  const float r = af_exp_rest_of_f32(inside, shifted - AF_SHIFT_F32(126));
  const float half = af_from_bits_f32(af_bits_f32(shifted) << 23);
  const float result = 2.0f * af_fma_f32(half, af_expm1_small_f32(r), half - 0.5f);
  return __builtin_fabsf(x) < 0x1p-60f ? x : result;
}

static inline double af_expm1_f64(double x) {
  const double inside = af_at_least_f64(af_at_most_f64(x, 710.0), -50.0);
  const af_reduced_f64 reduced = af_reduce_exp_f64(inside, 1022);
  const double half = af_from_bits_f64(reduced.shifted << 52);
  const double result = 2.0 * af_fma_f64(half, af_expm1_rest_f64(reduced), half - 0.5);
  return __builtin_fabs(x) < 0x1p-200 ? x : result;
}

/* exp(x) and exp(x) - 1 for |x| <= 700, to float32's needs. */
static inline double af_wide_exp(double x) {
  const af_reduced_f64 reduced = af_reduce_exp_f64(x, 1023);
  const double r = reduced.high + reduced.low;
  const double small = af_fma_f64(r * r, af_poly_wide_expm1_rest_f64(r), r);
  return af_from_bits_f64(reduced.shifted << 52) * (small + 1.0);
}

static inline double af_wide_expm1(double x) {
  const af_reduced_f64 reduced = af_reduce_exp_f64(x, 1023);
  const double r = reduced.high + reduced.low;
  const double power = af_from_bits_f64(reduced.shifted << 52);
  return af_fma_f64(power, af_fma_f64(r * r, af_poly_wide_expm1_rest_f64(r), r), power - 1.0);
}

/* exp(x) / (1 + exp(x)), which loses nothing where it is small and is 1 from 18 on. 2^n, which float32 may
 * not have, is 2^(n + 64) 2^-64. */
static inline float af_sigmoid_f32(float x) {
  const float inside = af_at_least_f32(af_at_most_f32(x, 18.0f), -104.0f);
  const float shifted = af_fma_f32(inside, 0x1.715476p0f, AF_SHIFT_F32(127 + 64));
  const float r = af_exp_rest_of_f32(inside, shifted - AF_SHIFT_F32(127 + 64));
  const float e = af_exp_small_f32(r) * af_from_bits_f32(af_bits_f32(shifted) << 23) * 0x1p-64f;
  return e / (1.0f + e);
}

/* From 40 on 1. */
static inline double af_sigmoid_f64(double x) {
  const double e = af_exp_f64(af_at_most_f64(x, 40.0));
  return e / (1.0 + e);
}

/* (exp(2|x|) - 1) / (exp(2|x|) + 1) = (2^n - 1 + (2^n + 1) t) / (2^n + 1 + (2^n - 1) t). The denominator is
 * computed as the numerator plus 2 - 2 t, so that both have the numerator's error. half is n/2, of which a
 * rounding to quarters has been cut off: n is 0 and the quotient t up to 3/8 log(2). */
static inline float af_tanh_f32(float x) {
  const float inside = af_at_most_f32(__builtin_fabsf(x), 10.0f);
  const float shifted = af_fma_f32(inside, 0x1.715476p0f, 0.25f * AF_SHIFT_F32(2 * 127));
  const uint32_t bits = af_bits_f32(shifted) & ~(uint32_t)1;
  const float half = af_from_bits_f32(bits) - 0.25f * AF_SHIFT_F32(2 * 127);
  const float t = af_tanh_small_f32(af_near_rest_of_f32(inside, half));
  const float power = af_from_bits_f32(bits << 22);
  const float over = af_fma_f32(power + 1.0f, t, power - 1.0f);
  return __builtin_copysignf(over / (over + af_fma_f32(-2.0f, t, 2.0f)), x);
}

/* An odd polynomial up to 0.55, 1 - 2 / (exp(2|x|) + 1) beyond, which is 1 where |x| is cut. */
static inline double af_tanh_f64(double x) {
  const double size = __builtin_fabs(x);
  const af_reduced_f64 reduced = af_reduce_exp_f64(2.0 * af_at_most_f64(size, 20.0), 1023);
  const double e = (af_exp_rest_f64(reduced) + 1.0) * af_from_bits_f64(reduced.shifted << 52);
  const double large = 1.0 - 2.0 / (e + 1.0);
  const double square = size * size;
  const double small = af_fma_f64(size * square, af_poly_tanh_rest_f64(square), size);
  return __builtin_copysign(size < 0.55 ? small : large, x);
}

static inline float af_sinh_f32(float x) {
  const double t = af_wide_expm1(af_at_most_f64(__builtin_fabsf(x), 100.0));
  return __builtin_copysignf((float)(0.5 * (t + t / (t + 1.0))), x);
}

static inline float af_cosh_f32(float x) {
  const double e = af_wide_expm1(af_at_most_f64(__builtin_fabsf(x), 100.0)) + 1.0;
  return (float)(0.5 * (e + 1.0 / e));
}

/* w = exp(|x|) / 4 - 1/4, for twice a number overflows only where the result does. sinh(|x|) is 2 (w + q) or
 * 2 (2 w - 4 w q) with q = w / (4 w + 1): the latter has small |x|'s small rest apart. */
static inline double af_sinh_f64(double x) {
  const double size = __builtin_fabs(x);
  const af_reduced_f64 reduced = af_reduce_exp_f64(af_at_most_f64(size, 710.6), 1021);
  const double quarter = af_from_bits_f64(reduced.shifted << 52);
  const double w = af_fma_f64(quarter, af_expm1_rest_f64(reduced), quarter - 0.25);
  const double quotient = w / (4.0 * w + 1.0);
  const double half = size < 1.0 ? af_fma_f64(-4.0 * w, quotient, 2.0 * w) : w + quotient;
  return __builtin_copysign(size < 0x1p-200 ? size : 2.0 * half, x);
}

/* w = exp(|x|) / 4 */
static inline double af_cosh_f64(double x) {
  const af_reduced_f64 reduced = af_reduce_exp_f64(af_at_most_f64(__builtin_fabs(x), 710.6), 1021);
  const double quarter = af_from_bits_f64(reduced.shifted << 52);
  const double w = af_fma_f64(quarter, af_exp_rest_f64(reduced), quarter);
  return 2.0 * (w + 0.0625 / w);
}
#endif
