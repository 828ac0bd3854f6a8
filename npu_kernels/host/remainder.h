/* C's fmod and the remainder with the divisor's sign, exact.
 *
 * The C library computes fmod bit by bit with integers: no fixed number of float steps covers all
 * exponents. Loops around these functions are not vectorized.
 */
#ifndef AUTOFUSE_HOST_REMAINDER_H
#define AUTOFUSE_HOST_REMAINDER_H

static inline float af_fmod_f32(float a, float b) { return __builtin_fmodf(a, b); }
static inline double af_fmod_f64(double a, double b) { return __builtin_fmod(a, b); }

static inline float af_fmod_floored_f32(float a, float b) {
  const float rest = __builtin_fmodf(a, b);
  return rest != 0 && ((b < 0) != (rest < 0)) ? rest + b : rest;
}

static inline double af_fmod_floored_f64(double a, double b) {
  const double rest = __builtin_fmod(a, b);
  return rest != 0 && ((b < 0) != (rest < 0)) ? rest + b : rest;
}
#endif
