typedef struct {
  int64_t block_dim;  // blocks of all nests
  int64_t tiling_key;  // the variant
  int64_t cost;  // nanoseconds of one block, about
  int64_t begin0;  // first block of nest 0
  int64_t end0;  // the one behind its last
  int64_t per0;  // items of a block
  int64_t items0;  // items
  int64_t begin1;  // first block of nest 1
  int64_t end1;  // the one behind its last
  int64_t per1;  // items of a block
  int64_t items1;  // items
  int64_t w0;  // offset of tensor 0 in the workspace
  int64_t w1;  // offset of tensor 1 in the workspace
} Tiling;

// chunked_columns_0_chunks: mode column, items over (chunk: 17), innermost z1
static int32_t nest0(void* const* gm, char* workspace, const Tiling* t, int64_t block) {
  const _Bool one = 4099 == 1;
  const float* const b0 = (const float*)(gm[0]);
  float* const b3 = (float*)(workspace + t->w0);
  float* const b5 = (float*)(workspace + t->w1);
  const int64_t first = block * t->per0;
  const int64_t last = Min(first + t->per0, t->items0);
  int64_t i0 = first;
  for (int64_t item = first; item < last; ++item) {
    const int64_t n1 = Min(256, 4099 - i0 * 256);
    float r2[1024];
    for (int64_t l = 0; l < 70; ++l) { r2[l] = (one ? (-0.0f) : 0.0f); }
    float r4[1024];
    for (int64_t l = 0; l < 70; ++l) { r4[l] = __builtin_inff(); }
    {
      for (int64_t k = 0; k < n1; k += 64) {
        float r2c[1024];
        for (int64_t l = 0; l < 70; ++l) { r2c[l] = (one ? (-0.0f) : 0.0f); }
        float r4c[1024];
        for (int64_t l = 0; l < 70; ++l) { r4c[l] = __builtin_inff(); }
        const int64_t end = Min(k + 64, n1);
        for (int64_t i1 = k; i1 < end; ++i1) {
          const float* const p0 = b0 + i0 * 17920 + i1 * 70;
#pragma GCC ivdep
          for (int64_t j = 0; j < 70; ++j) /* vector */ {
            const float v0 = p0[j];  // load_0
            const float v1 = -v0;  // neg_0
            r2c[j] = (r2c[j] + v1);
            r4c[j] = (v1 < r4c[j] ? v1 : r4c[j]);
          }
        }
        for (int64_t l = 0; l < 70; ++l) {
          r2[l] = (r2[l] + r2c[l]);
        }
        for (int64_t l = 0; l < 70; ++l) {
          r4[l] = (r4c[l] < r4[l] ? r4c[l] : r4[l]);
        }
      }
    }
    {
      float* const p3 = b3 + i0 * 70;
      float* const p5 = b5 + i0 * 70;
#pragma GCC ivdep
      for (int64_t j = 0; j < 70; ++j) /* vector */ {
        p3[j] = r2[j];  // sum_0_part
        p5[j] = r4[j];  // min_0_part
      }
    }
    ++i0;
  }
  (void)gm;
  (void)workspace;
  (void)t;
  (void)block;
  return 0;
}

// chunked_columns_0_rest: mode column, items over (), innermost z1
static int32_t nest1(void* const* gm, char* workspace, const Tiling* t, int64_t block) {
  const _Bool one = 17 == 1;
  const float* const b0 = (const float*)(workspace + t->w0);
  float* const b2 = (float*)(gm[1]);
  const float* const b3 = (const float*)(workspace + t->w1);
  float* const b5 = (float*)(gm[2]);
  const int64_t first = block * t->per1;
  const int64_t last = Min(first + t->per1, t->items1);
  for (int64_t item = first; item < last; ++item) {
    float r1[1024];
    for (int64_t l = 0; l < 70; ++l) { r1[l] = (one ? (-0.0f) : 0.0f); }
    float r4[1024];
    for (int64_t l = 0; l < 70; ++l) { r4[l] = __builtin_inff(); }
    {
      for (int64_t i0 = 0; i0 < 17; ++i0) {
        const float* const p0 = b0 + i0 * 70;
        const float* const p3 = b3 + i0 * 70;
#pragma GCC ivdep
        for (int64_t j = 0; j < 70; ++j) /* vector */ {
          const float v0 = p0[j];  // sum_0_part
          r1[j] = (r1[j] + v0);
          const float v3 = p3[j];  // min_0_part
          r4[j] = (v3 < r4[j] ? v3 : r4[j]);
        }
      }
    }
    {
      float* const p2 = b2;
      float* const p5 = b5;
#pragma GCC ivdep
      for (int64_t j = 0; j < 70; ++j) /* vector */ {
        p2[j] = r1[j];  // store_0
        p5[j] = r4[j];  // store_1
      }
    }
  }
  (void)gm;
  (void)workspace;
  (void)t;
  (void)block;
  return 0;
}

