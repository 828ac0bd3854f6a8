/* The memory roofline: arrays of n floats, copied and added. Arguments: out, two inputs, n, threads. */
#include <stdint.h>

void stream_copy(float* restrict out, const float* restrict a, const float* restrict b, int64_t n,
                 int threads) {
  (void)b;
#pragma omp parallel for simd schedule(static) num_threads(threads) if (parallel : threads > 1)
  for (int64_t i = 0; i < n; ++i) out[i] = a[i];
}

void stream_add(float* restrict out, const float* restrict a, const float* restrict b, int64_t n,
                int threads) {
#pragma omp parallel for simd schedule(static) num_threads(threads) if (parallel : threads > 1)
  for (int64_t i = 0; i < n; ++i) out[i] = a[i] + b[i];
}

/* What a call costs: takes any arguments. */
void hand_nothing() {}
