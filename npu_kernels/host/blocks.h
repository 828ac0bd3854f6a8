/* Conversions of 16-bit floats by blocks, for loops that stage a row or a tile in float32.
 *
 * With F16C eight elements are one instruction, about three times as fast as what the vectorizer makes of
 * af_cast_f32_f16 and af_cast_f16_f32; the last elements and processors without F16C use those. The bits
 * are the same: NaN becomes quiet and keeps the upper ten bits of its payload, and F16C does not look at
 * the mode that flushes denormals, but for float32 inputs, which are zeros as float16 anyway. Source and
 * target may not overlap.
 */
#ifndef AUTOFUSE_HOST_BLOCKS_H
#define AUTOFUSE_HOST_BLOCKS_H
#include "cast.h"

#ifdef __F16C__
typedef int16_t af_halves __attribute__((vector_size(16)));
typedef float af_singles __attribute__((vector_size(32)));
#endif

static inline void af_block_f32_f16(float* dst, const uint16_t* src, int64_t n) {
  int64_t done = 0;
#ifdef __F16C__
  done = n & ~(int64_t)7;
  for (int64_t i = 0; i < done; i += 8) {
    af_halves halves;
    __builtin_memcpy(&halves, src + i, 16);
    const af_singles singles = __builtin_ia32_vcvtph2ps256(halves);
    __builtin_memcpy(dst + i, &singles, 32);
  }
#endif
  for (int64_t i = 0; i < n - done; ++i) dst[done + i] = af_cast_f32_f16(src[done + i]);
}

static inline void af_block_f16_f32(uint16_t* dst, const float* src, int64_t n) {
  int64_t done = 0;
#ifdef __F16C__
  done = n & ~(int64_t)7;
  for (int64_t i = 0; i < done; i += 8) {
    af_singles singles;
    __builtin_memcpy(&singles, src + i, 32);
    const af_halves halves = __builtin_ia32_vcvtps2ph256(singles, 0);
    __builtin_memcpy(dst + i, &halves, 16);
  }
#endif
  for (int64_t i = 0; i < n - done; ++i) dst[done + i] = af_cast_f16_f32(src[done + i]);
}

static inline void af_block_f32_bf16(float* dst, const uint16_t* src, int64_t n) {
  for (int64_t i = 0; i < n; ++i) dst[i] = af_cast_f32_bf16(src[i]);
}

static inline void af_block_bf16_f32(uint16_t* dst, const float* src, int64_t n) {
  for (int64_t i = 0; i < n; ++i) dst[i] = af_cast_bf16_f32(src[i]);
}
#endif
