/* erf, erfc.
 *
 * float32's erf is -expm1(-v) with v = |x| + |x| P(|x|), whose error counts less the nearer the result is to
 * 1. float32's erfc computes exp(-x^2) times a polynomial in (x - 3) / (x + 3) in float64, where x^2 is
 * exact.
 */
#ifndef AUTOFUSE_HOST_ERF_H
#define AUTOFUSE_HOST_ERF_H
#include "exp.h"

/* -v = n log(2) + r. From 3.93 on erf is 1. */
static inline float af_erf_f32(float x) {
  const float size = af_at_most_f32(__builtin_fabsf(x), 3.93f);
#ifdef __FMA__
  const float v = af_fma_f32(size, af_poly_erf_decay_f32(size), size);
#else /* scaled, for a product with P might be flushed */
  const float large = 0x1p60f * size;
  const float v = 0x1p-60f * (large * af_poly_erf_decay_f32(size) + large);
#endif
  const float shifted = af_fma_f32(v, -0x1.715476p0f, AF_SHIFT_F32(127));
  const float r = af_near_rest_of_f32(-v, shifted - AF_SHIFT_F32(127));
  const float power = af_from_bits_f32(af_bits_f32(shifted) << 23);
  const float less = af_fma_f32(r * r, af_poly_decay_f32(r), r);
  return __builtin_copysignf(af_fma_f32(-power, less, 1.0f - power), x);
}

static inline float af_erfc_f32(float x) {
  const double inside = af_at_most_f64(__builtin_fabsf(x), 10.2);
  const double scaled = af_poly_wide_erfcx_f64((inside - 3.0) / (inside + 3.0));
  const double result = af_wide_exp(-inside * inside) * scaled;
  return (float)(x < 0 ? 2.0 - result : result);
}

static inline double af_erf_f64(double x) { return __builtin_erf(x); }
static inline double af_erfc_f64(double x) { return __builtin_erfc(x); }
#endif
