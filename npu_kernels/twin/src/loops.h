// Why: turns a scalar function into a loop over raw storage for each dtype, and rounds floats to integral
// values. On entry operands are identical or disjoint (vector_base.h), which is what `ivdep` asserts.
#pragma once
#include "vector_base.h"

namespace twin {
inline namespace TWIN_ABI {

constexpr uint64_t kHalfChunk = 256;

void HalvesToFloats(float* to, const uint16_t* from, uint64_t n);
void FloatsToHalves(uint16_t* to, const float* from, uint64_t n);

template <typename T, typename F>
inline void Map1(void* d, const void* s, uint64_t n, F f) {
  T* to = static_cast<T*>(d);
  const T* from = static_cast<const T*>(s);
#pragma GCC ivdep
  for (uint64_t i = 0; i < n; ++i) to[i] = f(from[i]);
}
template <typename T, typename F>
inline void Map2(void* d, const void* a, const void* b, uint64_t n, F f) {
  T* to = static_cast<T*>(d);
  const T *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
#pragma GCC ivdep
  for (uint64_t i = 0; i < n; ++i) to[i] = f(x[i], y[i]);
}
// --- rounding to integral values; exact, sign of zero kept, vectorizable on SSE2; assumes round-to-nearest
// mode ------
inline float RoundEven(float x) {
  const float a = FromBits(Bits(x) & 0x7fffffffu);
  const float r = (a + 8388608.0f) - 8388608.0f;
  const float v = a < 8388608.0f ? r : a;
  return FromBits((Bits(v) & 0x7fffffffu) | (Bits(x) & 0x80000000u));
}
inline float WithSign(float magnitude, float sign) {
  return FromBits((Bits(magnitude) & 0x7fffffffu) | (Bits(sign) & 0x80000000u));
}
inline float RoundDown(float x) {
  const float r = RoundEven(x);
  const float v = r > x ? r - 1.0f : r;
  return v == 0.0f ? WithSign(v, x) : v;
}
inline float RoundUp(float x) {
  const float r = RoundEven(x);
  const float v = r < x ? r + 1.0f : r;
  return v == 0.0f ? WithSign(v, x) : v;
}
inline float RoundToZero(float x) {
  const float a = FromBits(Bits(x) & 0x7fffffffu);
  const float r = RoundEven(a);
  return WithSign(r > a ? r - 1.0f : r, x);
}
inline float RoundAway(float x) {  // halves away from zero
  const float a = FromBits(Bits(x) & 0x7fffffffu);
  const float t = RoundToZero(a);
  return WithSign(a - t >= 0.5f ? t + 1.0f : t, x);
}

}  // namespace TWIN_ABI
}  // namespace twin
