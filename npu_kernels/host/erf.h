/* erf, erfc.
 *
 * float32's erf: an odd polynomial up to 1, 1 - exp(P(x)) beyond. float32's erfc computes exp(-x^2) times
 * a polynomial in (x - 3) / (x + 3) in float64, where x^2 is exact.
 */
#ifndef AUTOFUSE_HOST_ERF_H
#define AUTOFUSE_HOST_ERF_H
#include "exp.h"

static inline float af_erf_f32(float x) {
  const float size = __builtin_fabsf(x);
  const float inside = size > 4.0f ? 4.0f : size;
  const af_reduced_f32 reduced = af_reduce_exp_f32(af_poly_erf_large_f32(inside));
  const float large = 1.0f - (af_exp_rest_f32(reduced) + 1.0f) * af_power_of_two_f32(reduced.k);
  const float small = af_fma_f32(size, af_poly_erf_small_f32(size * size), size);
  const float scaled = 0x1p60f * size; /* where a product with the coefficient might be flushed */
  const float tiny = 0x1p-60f * af_fma_f32(scaled, 0x1.06eba8p-3f, scaled);
  const float near = size < 0x1p-60f ? tiny : small;
  return __builtin_copysignf(size > 1.0f ? large : near, x);
}

static inline float af_erfc_f32(float x) {
  const double size = __builtin_fabsf(x);
  const double inside = size > 10.2 ? 10.2 : size;
  const af_reduced_f64 reduced = af_reduce_exp_f64(-inside * inside);
  const double r = reduced.high + reduced.low;
  const double rest = af_fma_f64(r * r, af_poly_wide_expm1_rest_f64(r), r);
  const double decay = af_power_of_two_f64(reduced.k) * (rest + 1.0);
  const double result = decay * af_poly_wide_erfcx_f64((inside - 3.0) / (inside + 3.0));
  return (float)(x < 0 ? 2.0 - result : result);
}

static inline double af_erf_f64(double x) { return __builtin_erf(x); }
static inline double af_erfc_f64(double x) { return __builtin_erfc(x); }
#endif
