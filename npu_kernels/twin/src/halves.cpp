// Why: float16 forms of the elementwise instructions: blocks are widened to float, computed, and rounded
// once.
#include "loops.h"

namespace twin {
inline namespace TWIN_ABI {

void HalvesToFloats(float* to, const uint16_t* from, uint64_t n) {
  for (uint64_t i = 0; i < n; ++i) to[i] = HalfToFloat(from[i]);
}
void FloatsToHalves(uint16_t* to, const float* from, uint64_t n) {
  for (uint64_t i = 0; i < n; ++i) to[i] = HalfBits(from[i]);
}

void UnaryFn::operator()(void* d, const void* s, uint64_t n) const {
  if (!widened) return f(d, s, n);
  alignas(32) float x[kHalfChunk];
  for (uint64_t at = 0; at < n; at += kHalfChunk) {
    const uint64_t m = n - at < kHalfChunk ? n - at : kHalfChunk;
    HalvesToFloats(x, static_cast<const uint16_t*>(s) + at, m);
    f(x, x, m);
    FloatsToHalves(static_cast<uint16_t*>(d) + at, x, m);
  }
}

void BinaryFn::operator()(void* d, const void* a, const void* b, uint64_t n) const {
  if (!widened) return f(d, a, b, n);
  alignas(32) float x[kHalfChunk], y[kHalfChunk];
  for (uint64_t at = 0; at < n; at += kHalfChunk) {
    const uint64_t m = n - at < kHalfChunk ? n - at : kHalfChunk;
    HalvesToFloats(x, static_cast<const uint16_t*>(a) + at, m);
    HalvesToFloats(y, static_cast<const uint16_t*>(b) + at, m);
    f(x, x, y, m);
    FloatsToHalves(static_cast<uint16_t*>(d) + at, x, m);
  }
}

void ScalarFn::operator()(void* d, const void* s, const void* scalar, uint64_t n) const {
  if (!widened) return f(d, s, scalar, n);
  uint16_t bits;
  std::memcpy(&bits, scalar, sizeof bits);
  const float wide = HalfToFloat(bits);
  alignas(32) float x[kHalfChunk];
  for (uint64_t at = 0; at < n; at += kHalfChunk) {
    const uint64_t m = n - at < kHalfChunk ? n - at : kHalfChunk;
    HalvesToFloats(x, static_cast<const uint16_t*>(s) + at, m);
    f(x, x, &wide, m);
    FloatsToHalves(static_cast<uint16_t*>(d) + at, x, m);
  }
}

}  // namespace TWIN_ABI
}  // namespace twin
