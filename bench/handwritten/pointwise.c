/* The pointwise cases as one writes them by hand: one pass over memory, values in registers or the first
 * cache, static pieces for each thread. Arguments: out, inputs, rows, columns, threads. Out and inputs do not overlap. */
#include "blocks.h"
#include "exp.h"

#define THREADS _Pragma("omp parallel for schedule(static) num_threads(threads) if (threads > 1)")

void hand_bias_relu(float* restrict out, const float* restrict bias, const float* restrict x, int64_t rows,
                    int64_t cols, int threads) {
  THREADS
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j) {
      const float v = __builtin_fabsf(bias[j]) + x[i * cols + j];
      out[i * cols + j] = v < 0 ? 0 : v;
    }
}

/* Three functions, each of what the one before it gives, wait for each other in one loop: each has a loop of
 * its own over a piece that stays in the first cache. */
void hand_pointwise12(float* restrict out, const float* restrict x, const float* restrict y, int64_t rows,
                      int64_t cols, int threads) {
  enum { PIECE = 512 };
  THREADS
  for (int64_t i = 0; i < rows; ++i) {
    float a[PIECE], b[PIECE];
    for (int64_t j = i * cols; j < (i + 1) * cols; j += PIECE) {
      const int64_t rest = (i + 1) * cols - j;
      const int64_t n = rest < PIECE ? rest : PIECE;
      for (int64_t k = 0; k < n; ++k) a[k] = af_tanh_f32(x[j + k] * 0.5f);
      for (int64_t k = 0; k < n; ++k) b[k] = af_sigmoid_f32(y[j + k] - a[k]);
      for (int64_t k = 0; k < n; ++k) {
        const float product = a[k] * b[k];
        const float c = af_exp_f32(y[j + k] < product ? y[j + k] : product);
        const float difference = c - x[j + k];
        const float d = difference < 0.25f ? 0.25f : difference;
        out[j + k] = __builtin_fabsf(d * y[j + k]) + c * 0.125f;
      }
    }
  }
}

void hand_bias_gelu(float* restrict out, const float* restrict x, const float* restrict bias, int64_t rows,
                    int64_t cols, int threads) {
  THREADS
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j) {
      const float v = x[i * cols + j] + bias[j];
      const float t = af_tanh_f32(0.7978845608f * (v + 0.044715f * v * v * v));
      out[i * cols + j] = 0.5f * v * (1.0f + t);
    }
}

/* Rows are converted by pieces that stay in the first cache. */
void hand_half_chain(uint16_t* restrict out, const uint16_t* restrict x, const uint16_t* restrict y,
                     int64_t rows, int64_t cols, int threads) {
  enum { PIECE = 512 };
  THREADS
  for (int64_t i = 0; i < rows; ++i) {
    float a[PIECE], b[PIECE];
    uint16_t sizes[PIECE];
    for (int64_t j = i * cols; j < (i + 1) * cols; j += PIECE) {
      const int64_t rest = (i + 1) * cols - j;
      const int64_t n = rest < PIECE ? rest : PIECE;
      for (int64_t k = 0; k < n; ++k) sizes[k] = x[j + k] & 0x7fff;
      af_block_f32_f16(a, sizes, n);
      af_block_f32_f16(b, y + j, n);
      for (int64_t k = 0; k < n; ++k) {
        const float v = a[k] + b[k];
        a[k] = v < 0 ? 0 : v;
      }
      af_block_f16_f32(out + j, a, n);
    }
  }
}

/* One number a row: relu(x) * scale + offset. One thread. */
void hand_scale_rows(float* restrict out, const float* restrict x, const float* restrict scale,
                     const float* restrict offset, int64_t rows, int64_t cols) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j) {
      const float v = x[i * cols + j];
      out[i * cols + j] = (v < 0 ? 0 : v) * scale[i] + offset[i];
    }
}

/* One number a column: relu(x * scale + offset). One thread. */
void hand_scale_columns(float* restrict out, const float* restrict x, const float* restrict scale,
                        const float* restrict offset, int64_t rows, int64_t cols) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j) {
      const float v = x[i * cols + j] * scale[j] + offset[j];
      out[i * cols + j] = v < 0 ? 0 : v;
    }
}

/* relu(x[rows, 1] + y[1, cols]). One thread. */
void hand_outer(float* restrict out, const float* restrict x, const float* restrict y, int64_t rows,
                int64_t cols) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j) {
      const float v = x[i] + y[j];
      out[i * cols + j] = v < 0 ? 0 : v;
    }
}
