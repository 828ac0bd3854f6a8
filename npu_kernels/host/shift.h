/* Shifts by an amount that is clamped to 0 .. bits - 1, in 32 or 64 bits.
 *
 * Narrower types widen first: the vectorizer has no shifts of single bytes by different amounts. The
 * arithmetic shift of 64 bits is made of a logical one, for AVX2 has no other.
 */
#ifndef AUTOFUSE_HOST_SHIFT_H
#define AUTOFUSE_HOST_SHIFT_H
#include <stdint.h>

static inline uint32_t af_shift_amount_i32(int32_t amount, int32_t most) {
  const int32_t positive = amount < 0 ? 0 : amount;
  return (uint32_t)(positive > most ? most : positive);
}

static inline uint32_t af_shift_amount_u32(uint32_t amount, uint32_t most) {
  return amount > most ? most : amount;
}

static inline uint64_t af_shift_amount_i64(int64_t amount) {
  const int64_t positive = amount < 0 ? 0 : amount;
  return (uint64_t)(positive > 63 ? 63 : positive);
}

static inline uint64_t af_shift_amount_u64(uint64_t amount) { return amount > 63 ? 63 : amount; }

static inline uint32_t af_shift_left_32(uint32_t x, uint32_t amount) { return x << amount; }
static inline uint64_t af_shift_left_64(uint64_t x, uint64_t amount) { return x << amount; }
static inline int32_t af_shift_right_i32(int32_t x, uint32_t amount) { return x >> amount; }
static inline uint32_t af_shift_right_u32(uint32_t x, uint32_t amount) { return x >> amount; }
static inline uint64_t af_shift_right_u64(uint64_t x, uint64_t amount) { return x >> amount; }

/* Unsigned values of 8 and 16 bits, moved in the upper half of a word: the vectorizer would narrow
 * anything else to the shifts of bytes that it lacks. */
static inline uint32_t af_shift_left_narrow(uint32_t x, uint32_t amount) { return x << 16 << amount >> 16; }
static inline uint32_t af_shift_right_narrow(uint32_t x, uint32_t amount) { return x << 16 >> amount >> 16; }

static inline int64_t af_shift_right_i64(int64_t x, uint64_t amount) {
  const uint64_t sign = x < 0 ? ~(uint64_t)0 : 0;
  return (int64_t)((((uint64_t)x ^ sign) >> amount) ^ sign);
}
#endif
