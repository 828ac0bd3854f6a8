/* Integer division by a constant, with the results of TF's kernels.
 *
 * The divisor is a literal, not 0 and not the smallest integer, so that the compiler makes
 * multiplications of it. The smallest integer by -1 wraps around to itself, its remainder is 0. Types
 * below 32 bits use the 32-bit functions, but for af_div_floor_i8 and af_div_floor_i16. af_div_floor_*
 * follow TF's formula for operands of different sign, -(|a| + |b| - 1) / |b|, with its wrap-around where
 * |a| + |b| - 1 leaves the type.
 */
#ifndef AUTOFUSE_HOST_INTEGER_DIVISION_H
#define AUTOFUSE_HOST_INTEGER_DIVISION_H
#include <stdint.h>

#define AF_SIGNED_DIVISION(bits)                                                                         \
  static inline int##bits##_t af_div_truncate_i##bits(int##bits##_t a, int##bits##_t b) {                \
    return b == -1 ? (int##bits##_t)(0 - (uint##bits##_t)a) : a / b;                                     \
  }                                                                                                      \
  static inline int##bits##_t af_div_truncated_rest_i##bits(int##bits##_t a, int##bits##_t b) {          \
    return b == -1 ? 0 : a % b;                                                                          \
  }                                                                                                      \
  static inline int##bits##_t af_div_floored_rest_i##bits(int##bits##_t a, int##bits##_t b) {            \
    const int##bits##_t rest = af_div_truncated_rest_i##bits(a, b);                                      \
    return rest != 0 && ((b < 0) != (rest < 0)) ? rest + b : rest;                                       \
  }                                                                                                      \
  static inline int##bits##_t af_div_floor_i##bits(int##bits##_t a, int##bits##_t b) {                   \
    const uint##bits##_t size_a = a < 0 ? 0 - (uint##bits##_t)a : (uint##bits##_t)a;                     \
    const int##bits##_t size_b = b < 0 ? -b : b;                                                         \
    const int##bits##_t sum = (int##bits##_t)(0 - (size_a + (uint##bits##_t)size_b - 1));                \
    return (a < 0) != (b < 0) ? sum / size_b : af_div_truncate_i##bits(a, b);                            \
  }

AF_SIGNED_DIVISION(32)
AF_SIGNED_DIVISION(64)
#undef AF_SIGNED_DIVISION

/* 8 and 16 bits: |a| wraps around in the type, the rest is int's arithmetic. */
#define AF_NARROW_FLOOR(bits)                                                                            \
  static inline int##bits##_t af_div_floor_i##bits(int##bits##_t a, int##bits##_t b) {                   \
    const int##bits##_t size_a = (int##bits##_t)(a < 0 ? -a : a);                                        \
    const int##bits##_t size_b = (int##bits##_t)(b < 0 ? -b : b);                                        \
    return (int##bits##_t)((a < 0) != (b < 0) ? -(size_a + size_b - 1) / size_b                          \
                                              : af_div_truncate_i32(a, b));                              \
  }

AF_NARROW_FLOOR(8)
AF_NARROW_FLOOR(16)
#undef AF_NARROW_FLOOR

static inline uint32_t af_div_truncate_u32(uint32_t a, uint32_t b) { return a / b; }
static inline uint64_t af_div_truncate_u64(uint64_t a, uint64_t b) { return a / b; }
static inline uint32_t af_div_floor_u32(uint32_t a, uint32_t b) { return a / b; }
static inline uint64_t af_div_floor_u64(uint64_t a, uint64_t b) { return a / b; }
static inline uint32_t af_div_truncated_rest_u32(uint32_t a, uint32_t b) { return a % b; }
static inline uint64_t af_div_truncated_rest_u64(uint64_t a, uint64_t b) { return a % b; }
static inline uint32_t af_div_floored_rest_u32(uint32_t a, uint32_t b) { return a % b; }
static inline uint64_t af_div_floored_rest_u64(uint64_t a, uint64_t b) { return a % b; }
#endif
