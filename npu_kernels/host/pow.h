/* pow with C's rules for zeros, infinities, negative bases and NaN.
 *
 * float32: 2^(y log2|x|) in float64, where log2 has 10 bits more than the product with y needs. float64
 * is the C library's: loops around it are not vectorized.
 */
#ifndef AUTOFUSE_HOST_POW_H
#define AUTOFUSE_HOST_POW_H
#include "log.h"

/* log2 of |x|; for zeros and infinities a number so large that no y makes the product small. */
static inline double af_log2_size(double size) {
  double k;
  const double m = af_split_f64(size, &k);
  const double f = m - 1.0;
  const double s = f / (2.0 + f);
  const double z = s * s;
  const double rest = s * af_fma_f64(z, af_poly_wide_atanh_rest_f64(z), 2.0);
  const double finite = af_fma_f64(rest, 0x1.71547652b82fep0, k);
  return size == 0 ? -1e300 : size > 1e300 ? 1e300 : finite;
}

static inline float af_pow_f32(float x, float y) {
  const double size = __builtin_fabsf(x);
  const double exponent = size == 1.0 ? 0.0 : (double)y * af_log2_size(size);
  const double below = exponent > 200.0 ? 200.0 : exponent;
  const double inside = below < -200.0 ? -200.0 : below;
  const double shifted = inside + 0x1.8p52;
  const double r = (inside - (shifted - 0x1.8p52)) * 0x1.62e42fefa39efp-1;
  const double power = af_from_bits_f64((af_bits_f64(shifted) + 1023) << 52);
  const double result = power * (af_fma_f64(r * r, af_poly_wide_expm1_rest_f64(r), r) + 1.0);
  const float half = 0.5f * y;
  const int whole = __builtin_rintf(y) == y;
  const int odd = whole & (__builtin_rintf(half) != half);
  const int negative = af_bits_f32(x) >> 31;
  const float signed_result = negative & odd ? (float)-result : (float)result;
  const int undefined = (x < 0) & (x > -__builtin_inff()) & (whole == 0) & (y == y);
  const int unordered = ((x != x) | (y != y)) != 0;
  const float value = undefined | unordered ? af_nan_f32() : signed_result;
  return (y == 0) | (x == 1.0f) ? 1.0f : value;
}

static inline double af_pow_f64(double x, double y) { return __builtin_pow(x, y); }
#endif
