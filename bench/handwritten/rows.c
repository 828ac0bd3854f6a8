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

/* Sums of |x| along the last axis. One thread. */
void hand_abs_sum_last(float* restrict out, const float* restrict x, int64_t rows, int64_t cols) {
  enum { WIDE = 64 };
  for (int64_t i = 0; i < rows; ++i) {
    const float* row = x + i * cols;
    int64_t j = 0;
    float total = 0;
    if (cols >= WIDE) {
      float lanes[WIDE] = {0};
      for (; j + WIDE <= cols; j += WIDE)
        for (int k = 0; k < WIDE; ++k) lanes[k] += __builtin_fabsf(row[j + k]);
      for (int k = 0; k < LANES; ++k) lanes[k] += lanes[k + 16] + lanes[k + 32] + lanes[k + 48];
      total = sum_of(lanes);
    } else if (cols >= 8) {
      float lanes[8] = {0};
      for (; j + 8 <= cols; j += 8)
        for (int k = 0; k < 8; ++k) lanes[k] += __builtin_fabsf(row[j + k]);
      total = ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
    }
    for (; j < cols; ++j) total += __builtin_fabsf(row[j]);
    out[i] = total;
  }
}

/* Sums of |x[a, b, c]| along the middle axis. One thread. */
void hand_abs_sum_middle(float* restrict out, const float* restrict x, int64_t a, int64_t b, int64_t c) {
  for (int64_t n = 0; n < a; ++n) {
    float* to = out + n * c;
    const float* from = x + n * b * c;
    for (int64_t j = 0; j < c; ++j) to[j] = __builtin_fabsf(from[j]);
    for (int64_t i = 1; i < b; ++i)
      for (int64_t j = 0; j < c; ++j) to[j] += __builtin_fabsf(from[i * c + j]);
  }
}

/* x[a, b, c] times w[a, b, 1], summed up along b: a history weighed. One thread. */
void hand_weighed(float* restrict out, const float* restrict x, const float* restrict w, int64_t a, int64_t b,
                  int64_t c) {
  for (int64_t n = 0; n < a; ++n) {
    float* to = out + n * c;
    for (int64_t j = 0; j < c; ++j) to[j] = 0;
    for (int64_t i = 0; i < b; ++i)
      for (int64_t j = 0; j < c; ++j) to[j] += x[(n * b + i) * c + j] * w[n * b + i];
  }
}
