/* sin, cos, tan, asin, acos, atan, atan2: float32's compute in float64.
 *
 * Reduction to quarter turns: 2/pi is cut into seven pieces of 27 bits, so that every product with a
 * float32 is exact in float64. Of each product the multiples of four are dropped, which is exact too;
 * what is left is added up from the largest piece on, after the nearest integer n has been taken away.
 * Consecutive remainders share enough of their places that a sum is exact until the first remainder below
 * 1 has been added; from there on, roundings are relative to the result or to a remainder 2^-27 above the
 * last place needed. So one formula serves every finite argument. float64's functions are the C
 * library's: loops around them are not vectorized.
 */
#ifndef AUTOFUSE_HOST_TRIG_H
#define AUTOFUSE_HOST_TRIG_H
#include "polynomials.h"

/* x * piece modulo 4, exact, in [-2, 2]; NaN for infinite x. */
static inline double af_turns_of_piece(double x, double piece) {
  const double product = x * piece;
  return product - 4.0 * __builtin_rint(0.25 * product);
}

/* x = (4 m + n) pi/2 + r pi/2 for a float32 x >= 0: r in [-1/2, 1/2] (a little more by rounding), n
 * modulo 4 in *n. */
static inline double af_quarter_turns(double x, uint64_t* n) {
  const double p1 = af_turns_of_piece(x, 0x1.45f306cp-1);
  const double p2 = af_turns_of_piece(x, 0x1.c9c8828p-29);
  const double p3 = af_turns_of_piece(x, 0x1.29fc27p-56);
  const double p4 = af_turns_of_piece(x, 0x1.5f47d4cp-82);
  const double p5 = af_turns_of_piece(x, 0x1.3770368p-110);
  const double p6 = af_turns_of_piece(x, 0x1.629599p-136);
  const double p7 = x * 0x1.e21c82p-163;
  const double whole = __builtin_rint(p1 + p2 + p3 + p4 + p5 + p6);
  *n = af_bits_f64(whole + 0x1.8p52);
  return (((((p1 - whole) + p2) + p3) + p4) + p5) + p6 + p7;
}

static inline float af_sin_f32(float x) {
  uint64_t n;
  const double r = af_quarter_turns(__builtin_fabsf(x), &n);
  const double z = r * r;
  const double size = n & 1 ? af_poly_wide_cos_f64(z) : r * af_poly_wide_sin_f64(z);
  const float sine = (float)af_from_bits_f64(af_bits_f64(size) ^ (n & 2) << 62);
  return af_from_bits_f32(af_bits_f32(sine) ^ (af_bits_f32(x) & 0x80000000u));
}

static inline float af_cos_f32(float x) {
  uint64_t n;
  const double r = af_quarter_turns(__builtin_fabsf(x), &n);
  const double z = r * r;
  const double size = n & 1 ? r * af_poly_wide_sin_f64(z) : af_poly_wide_cos_f64(z);
  return (float)af_from_bits_f64(af_bits_f64(size) ^ ((n + 1) & 2) << 62);
}

static inline float af_tan_f32(float x) {
  uint64_t n;
  const double r = af_quarter_turns(__builtin_fabsf(x), &n);
  const double z = r * r;
  const double sine = r * af_poly_wide_sin_f64(z);
  const double cosine = af_poly_wide_cos_f64(z);
  const double size = (n & 1 ? -cosine : sine) / (n & 1 ? sine : cosine);
  return (float)(x < 0 ? -size : x == 0 ? x : size);
}

/* asin(s) for s = |x| up to 1/2, else for s = sqrt((1 - |x|) / 2), with asin(|x|) = pi/2 - 2 asin(s). */
static inline double af_half_asin(double size) {
  const double halved = 0.5 * (1.0 - size);
  const double z = size > 0.5 ? halved : size * size;
  const double s = size > 0.5 ? __builtin_sqrt(halved) : size;
  return af_fma_f64(s * z, af_poly_wide_asin_rest_f64(z), s);
}

static inline float af_asin_f32(float x) {
  const double size = __builtin_fabsf(x);
  const double part = af_half_asin(size);
  return __builtin_copysignf((float)(size > 0.5 ? 0x1.921fb54442d18p0 - 2.0 * part : part), x);
}

static inline float af_acos_f32(float x) {
  const double size = __builtin_fabsf(x);
  const double part = af_half_asin(size);
  const double outer = x < 0 ? 0x1.921fb54442d18p1 - 2.0 * part : 2.0 * part;
  return (float)(size > 0.5 ? outer : 0x1.921fb54442d18p0 - (x < 0 ? -part : part));
}

/* atan(y / x) in [0, pi/2] for y, x >= 0, not both 0 or infinite: the quotient itself up to tan(pi/8),
 * that of the angle less pi/4 up to tan(3 pi/8), that of the angle less pi/2 beyond. */
static inline double af_first_quadrant(double y, double x) {
  const int steep = y > 0x1.3504f333f9de6p1 * x;
  const int middle = y > 0x1.a827999fcef32p-2 * x;
  const double over = steep ? -x : middle ? y - x : y;
  const double under = steep ? y : middle ? y + x : x;
  const double t = over / under;
  const double z = t * t;
  const double angle = steep ? 0x1.921fb54442d18p0 : middle ? 0x1.921fb54442d18p-1 : 0.0;
  return angle + af_fma_f64(t * z, af_poly_wide_atan_rest_f64(z), t);
}

static inline float af_atan_f32(float x) {
  const double size = __builtin_fabsf(x);
  return __builtin_copysignf((float)af_first_quadrant(size > 1e30 ? 1e30 : size, 1.0), x);
}

/* Infinities become a number that no float32 is near, two zeros the quotient 0 / 1. */
static inline float af_atan2_f32(float y, float x) {
  const double size_y = __builtin_fabsf(y), size_x = __builtin_fabsf(x);
  const double cut_y = size_y > 1e100 ? 1e100 : size_y;
  const double cut_x = size_x > 1e100 ? 1e100 : size_x;
  const double acute = af_first_quadrant(cut_y, cut_x + (cut_y + cut_x == 0 ? 1.0 : 0.0));
  const double angle = af_bits_f32(x) >> 31 ? 0x1.921fb54442d18p1 - acute : acute;
  const float signed_angle = __builtin_copysignf((float)angle, y);
  return x != x || y != y ? af_nan_f32() : signed_angle;
}

static inline double af_sin_f64(double x) { return __builtin_sin(x); }
static inline double af_cos_f64(double x) { return __builtin_cos(x); }
static inline double af_tan_f64(double x) { return __builtin_tan(x); }
static inline double af_asin_f64(double x) { return __builtin_asin(x); }
static inline double af_acos_f64(double x) { return __builtin_acos(x); }
static inline double af_atan_f64(double x) { return __builtin_atan(x); }
static inline double af_atan2_f64(double y, double x) { return __builtin_atan2(y, x); }
#endif
