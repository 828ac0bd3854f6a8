/* The cases with reductions as one writes them by hand: a row is read once from memory and then from the
 * cache, sums have sixteen accumulators that the compiler keeps in vectors. Arguments: out, inputs, rows,
 * columns, threads. */
#include "exp.h"

#define THREADS _Pragma("omp parallel for schedule(static) num_threads(threads) if (threads > 1)")
enum { LANES = 16 };

static inline float sum_of(const float* lanes) {
  float total = 0;
  for (int k = 0; k < LANES; ++k) total += lanes[k];
  return total;
}

void hand_layer_norm(float* restrict out, const float* restrict x, const float* restrict gamma,
                     const float* restrict beta, int64_t rows, int64_t cols, int threads) {
  THREADS
  for (int64_t i = 0; i < rows; ++i) {
    const float* row = x + i * cols;
    float lanes[LANES] = {0};
    float squares[LANES] = {0};
    int64_t j = 0;
    for (; j + LANES <= cols; j += LANES)
      for (int k = 0; k < LANES; ++k) lanes[k] += row[j + k];
    float total = sum_of(lanes);
    for (int64_t k = j; k < cols; ++k) total += row[k];
    const float mean = total / (float)cols;
    for (j = 0; j + LANES <= cols; j += LANES)
      for (int k = 0; k < LANES; ++k) {
        const float d = row[j + k] - mean;
        squares[k] += d * d;
      }
    float square = sum_of(squares);
    for (int64_t k = j; k < cols; ++k) square += (row[k] - mean) * (row[k] - mean);
    const float scale = 1.0f / __builtin_sqrtf(square / (float)cols + 1e-5f);
    for (j = 0; j < cols; ++j) out[i * cols + j] = (row[j] - mean) * scale * gamma[j] + beta[j];
  }
}

void hand_softmax(float* restrict out, const float* restrict x, int64_t rows, int64_t cols, int threads) {
  THREADS
  for (int64_t i = 0; i < rows; ++i) {
    const float* row = x + i * cols;
    float* to = out + i * cols;
    float most[LANES], lanes[LANES] = {0};
    for (int k = 0; k < LANES; ++k) most[k] = -__builtin_inff();
    int64_t j = 0;
    for (; j + LANES <= cols; j += LANES)
      for (int k = 0; k < LANES; ++k) most[k] = most[k] < row[j + k] ? row[j + k] : most[k];
    float top = -__builtin_inff();
    for (int k = 0; k < LANES; ++k) top = top < most[k] ? most[k] : top;
    for (int64_t k = j; k < cols; ++k) top = top < row[k] ? row[k] : top;
    for (j = 0; j < cols; ++j) to[j] = af_exp_f32(row[j] - top);
    for (j = 0; j + LANES <= cols; j += LANES)
      for (int k = 0; k < LANES; ++k) lanes[k] += to[j + k];
    float total = sum_of(lanes);
    for (int64_t k = j; k < cols; ++k) total += to[k];
    const float scale = 1.0f / total;
    for (j = 0; j < cols; ++j) to[j] *= scale;
  }
}

/* Threads take columns, in pieces whose sums stay in the first cache. */
void hand_abs_sum0(float* restrict out, const float* restrict x, int64_t rows, int64_t cols, int threads) {
  const int64_t piece = (cols + threads - 1) / threads;
  THREADS
  for (int64_t first = 0; first < cols; first += piece) {
    const int64_t last = first + piece < cols ? first + piece : cols;
    for (int64_t j = first; j < last; ++j) out[j] = 0;
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = first; j < last; ++j) out[j] += __builtin_fabsf(x[i * cols + j]);
  }
}
