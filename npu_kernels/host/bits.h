/* Floats as their bits, for the other headers of this folder.
 *
 * What holds of every function of the folder: plain C99 with gcc's builtins, no branches that keep the
 * vectorizer out, no calls, no tables, no state. Inputs may be any bit pattern. Results are the same on
 * threads that flush denormals, but for denormal inputs and results: there those count as zeros. Build
 * with -fno-trapping-math -fno-math-errno -ffp-contract=off, and never with -ffast-math or any part of
 * it that assumes finite values.
 */
#ifndef AUTOFUSE_HOST_BITS_H
#define AUTOFUSE_HOST_BITS_H
#include <stdint.h>

static inline uint32_t af_bits_f32(float x) {
  uint32_t u;
  __builtin_memcpy(&u, &x, 4);
  return u;
}

static inline float af_from_bits_f32(uint32_t u) {
  float x;
  __builtin_memcpy(&x, &u, 4);
  return x;
}

static inline uint64_t af_bits_f64(double x) {
  uint64_t u;
  __builtin_memcpy(&u, &x, 8);
  return u;
}

static inline double af_from_bits_f64(uint64_t u) {
  double x;
  __builtin_memcpy(&x, &u, 8);
  return x;
}

/* a * b + c: rounded once where the processor has the instruction, else twice. No function needs the one
 * rounding. */
#ifdef __FMA__
static inline float af_fma_f32(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static inline double af_fma_f64(double a, double b, double c) { return __builtin_fma(a, b, c); }
#else
static inline float af_fma_f32(float a, float b, float c) { return a * b + c; }
static inline double af_fma_f64(double a, double b, double c) { return a * b + c; }
#endif

/* 2^k for k of the type's normal exponents. */
static inline float af_power_of_two_f32(int32_t k) { return af_from_bits_f32((uint32_t)(k + 127) << 23); }
static inline double af_power_of_two_f64(int64_t k) { return af_from_bits_f64((uint64_t)(k + 1023) << 52); }

/* The limit, of which the optimizer does not know that it is a constant. For a comparison with a constant and
 * a choice of the same gcc makes a mask and a blend, of two in a row seven instructions; for variables it
 * takes the processor's minimum and maximum. What computes it is moved out of the loop. */
#ifdef __SSE2__
typedef float af_four_f32 __attribute__((vector_size(16)));
typedef double af_two_f64 __attribute__((vector_size(16)));

static inline float af_limit_f32(float c) {
  const af_four_f32 all = {c, c, c, c};
  return __builtin_ia32_minss(all, all)[0];
}

static inline double af_limit_f64(double c) {
  const af_two_f64 all = {c, c};
  return __builtin_ia32_minsd(all, all)[0];
}
#else
static inline float af_limit_f32(float c) { return c; }
static inline double af_limit_f64(double c) { return c; }
#endif

/* x, but not above or below a constant; NaN stays. */
static inline float af_at_most_f32(float x, float c) {
  const float limit = af_limit_f32(c);
  return limit < x ? limit : x;
}

static inline float af_at_least_f32(float x, float c) {
  const float limit = af_limit_f32(c);
  return limit > x ? limit : x;
}

static inline double af_at_most_f64(double x, double c) {
  const double limit = af_limit_f64(c);
  return limit < x ? limit : x;
}

static inline double af_at_least_f64(double x, double c) {
  const double limit = af_limit_f64(c);
  return limit > x ? limit : x;
}

static inline float af_nan_f32(void) { return af_from_bits_f32(0x7fc00000u); }
static inline double af_nan_f64(void) { return af_from_bits_f64(0x7ff8000000000000u); }
#endif
