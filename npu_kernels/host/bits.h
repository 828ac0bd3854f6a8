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
#endif
