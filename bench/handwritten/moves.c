/* Ops that put elements elsewhere, and conversions, as one writes them by hand, for one thread. Arguments:
 * outputs, inputs, sizes. Out and inputs do not overlap. */
#include <string.h>

#include "blocks.h"

/* 26 inputs of `width` columns side by side, relu of each. */
void hand_concat26(float* restrict out, const float* const* inputs, int64_t rows, int64_t width) {
  enum { PARTS = 26 };
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < PARTS; ++k) {
      const float* restrict x = inputs[k] + i * width;
      float* restrict to = out + (i * PARTS + k) * width;
      for (int64_t j = 0; j < width; ++j) to[j] = x[j] < 0 ? 0 : x[j];
    }
}

/* x cut into four parts of `width` columns: a * b + c * d. */
void hand_split4(float* restrict out, const float* restrict x, int64_t rows, int64_t width) {
  for (int64_t i = 0; i < rows; ++i) {
    const float* row = x + i * 4 * width;
    for (int64_t j = 0; j < width; ++j)
      out[i * width + j] = row[j] * row[width + j] + row[2 * width + j] * row[3 * width + j];
  }
}

/* relu of the transpose: squares of 16 by 16, turned in a small array that stays in the first cache. */
void hand_transpose(float* restrict out, const float* restrict x, int64_t rows, int64_t cols) {
  enum { SIDE = 16 };
  for (int64_t j0 = 0; j0 < cols; j0 += SIDE)
    for (int64_t i0 = 0; i0 < rows; i0 += SIDE) {
      const int64_t in = i0 + SIDE <= rows ? SIDE : rows - i0, jn = j0 + SIDE <= cols ? SIDE : cols - j0;
      float square[SIDE][SIDE];
      for (int64_t i = 0; i < in; ++i)
        for (int64_t j = 0; j < jn; ++j) {
          const float v = x[(i0 + i) * cols + j0 + j];
          square[j][i] = v < 0 ? 0 : v;
        }
      for (int64_t j = 0; j < jn; ++j)
        for (int64_t i = 0; i < in; ++i) out[(j0 + j) * rows + i0 + i] = square[j][i];
    }
}

/* relu of the transpose [0, 2, 1, 3] of x[a, b, c, d]. */
void hand_heads(float* restrict out, const float* restrict x, int64_t a, int64_t b, int64_t c, int64_t d) {
  for (int64_t n = 0; n < a; ++n)
    for (int64_t k = 0; k < c; ++k)
      for (int64_t i = 0; i < b; ++i) {
        const float* restrict from = x + ((n * b + i) * c + k) * d;
        float* restrict to = out + ((n * c + k) * b + i) * d;
        for (int64_t j = 0; j < d; ++j) to[j] = from[j] < 0 ? 0 : from[j];
      }
}

/* Rows of a table at indexes that were looked at before, times w. */
void hand_gather(float* restrict out, const float* restrict table, const int32_t* restrict index, int64_t count,
                 int64_t width, int64_t rows) {
  for (int64_t i = 0; i < count; ++i) {
    if ((uint64_t)index[i] >= (uint64_t)rows) return;
    const float* restrict from = table + index[i] * width;
    for (int64_t j = 0; j < width; ++j) out[i * width + j] = from[j] * 2.0f;
  }
}

enum { PIECE = 512 };

void hand_f16_f32(float* restrict out, const uint16_t* restrict x, int64_t n) {
  for (int64_t i = 0; i < n; i += PIECE) {
    const int64_t m = n - i < PIECE ? n - i : PIECE;
    af_block_f32_f16(out + i, x + i, m);
    for (int64_t j = i; j < i + m; ++j) out[j] += 1.0f;
  }
}

void hand_f32_f16(uint16_t* restrict out, const float* restrict x, int64_t n) {
  for (int64_t i = 0; i < n; i += PIECE) {
    const int64_t m = n - i < PIECE ? n - i : PIECE;
    float piece[PIECE];
    for (int64_t j = 0; j < m; ++j) piece[j] = x[i + j] + 1.0f;
    af_block_f16_f32(out + i, piece, m);
  }
}

void hand_bf16_f32(float* restrict out, const uint16_t* restrict x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = af_cast_f32_bf16(x[i]) + 1.0f;
}

void hand_f32_bf16(uint16_t* restrict out, const float* restrict x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = af_cast_bf16_f32(x[i] + 1.0f);
}

void hand_i32_f32(float* restrict out, const int32_t* restrict x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = (float)x[i] + 1.0f;
}

void hand_f32_i32(int32_t* restrict out, const float* restrict x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = (int32_t)(x[i] + 1.0f);
}

void hand_i64_f32(float* restrict out, const int64_t* restrict x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = (float)x[i] + 1.0f;
}

void hand_f64_f32(float* restrict out, const double* restrict x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = (float)(x[i] + 1.0);
}

void hand_f32_f64(double* restrict out, const float* restrict x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = (double)(x[i] + 1.0f);
}

void hand_bool_f32(float* restrict out, const uint8_t* restrict x, const float* restrict y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = (float)x[i] * y[i];
}

/* x > 0 and y < 1 */
void hand_both(uint8_t* restrict out, const float* restrict x, const float* restrict y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = (x[i] > 0) & (y[i] < 1);
}

/* x > y ? x : 2 y */
void hand_larger(float* restrict out, const float* restrict x, const float* restrict y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = x[i] > y[i] ? x[i] : 2 * y[i];
}

/* mask ? x : -y */
void hand_masked(float* restrict out, const uint8_t* restrict mask, const float* restrict x,
                 const float* restrict y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = mask[i] ? x[i] : -y[i];
}
