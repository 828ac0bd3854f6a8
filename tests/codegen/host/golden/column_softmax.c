typedef struct {
  int64_t block_dim;  // blocks of all nests
  int64_t tiling_key;  // the variant
  int64_t cost;  // nanoseconds of one block, about
  int64_t begin0;  // first block of nest 0
  int64_t end0;  // the one behind its last
  int64_t per0;  // items of a block
  int64_t items0;  // items
} Tiling;

// column_softmax_0: mode column, items over (), innermost z1
static int32_t nest0(void* const* gm, char* workspace, const Tiling* t, int64_t block) {
  const _Bool one = 70 == 1;
  const float* const b0 = (const float*)(gm[0]);
  float* const b11 = (float*)(gm[1]);
  float* const b12 = (float*)(gm[2]);
  const int64_t first = block * t->per0;
  const int64_t last = Min(first + t->per0, t->items0);
  for (int64_t item = first; item < last; ++item) {
    float r1[512];
    for (int64_t l = 0; l < 300; ++l) { r1[l] = (-__builtin_inff()); }
    {
      for (int64_t i0 = 0; i0 < 70; ++i0) {
        const float* const p0 = b0 + i0 * 300;
#pragma GCC ivdep
        for (int64_t j = 0; j < 300; ++j) /* vector */ {
          const float v0 = p0[j];  // load_0
          r1[j] = (r1[j] < v0 ? v0 : r1[j]);
        }
      }
    }
    float r5[512];
    for (int64_t l = 0; l < 300; ++l) { r5[l] = (one ? (-0.0f) : 0.0f); }
    {
      for (int64_t i0 = 0; i0 < 70; ++i0) {
        const float* const p0 = b0 + i0 * 300;
#pragma GCC ivdep
        for (int64_t j = 0; j < 300; ++j) /* vector */ {
          const float v0 = p0[j];  // load_0
          const float v3 = r1[j] / 3.0f;  // div_0
          const float v4 = v0 - v3;  // sub_0
          r5[j] = (r5[j] + v4);
        }
      }
    }
    float t9[512];
    {
      float* const p12 = b12;
#pragma GCC ivdep
      for (int64_t j = 0; j < 300; ++j) /* vector */ {
        const float v7 = r5[j] / 70.0f;  // div_1
        const float v8 = __builtin_fabsf(v7);  // abs_0
        const float v9 = __builtin_sqrtf(v8);  // sqrt_0
        t9[j] = v9;
        p12[j] = v9;  // store_1
      }
    }
    {
      for (int64_t i0 = 0; i0 < 70; ++i0) {
        const float* const p0 = b0 + i0 * 300;
        float* const p11 = b11 + i0 * 300;
#pragma GCC ivdep
        for (int64_t j = 0; j < 300; ++j) /* vector */ {
          const float v0 = p0[j];  // load_0
          const float v3 = r1[j] / 3.0f;  // div_0
          const float v4 = v0 - v3;  // sub_0
          const float v10 = v4 * t9[j];  // mul_0
          p11[j] = v10;  // store_0
        }
      }
    }
  }
  (void)gm;
  (void)workspace;
  (void)t;
  (void)block;
  return 0;
}

