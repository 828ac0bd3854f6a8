typedef struct {
  int64_t block_dim;  // blocks of all nests
  int64_t tiling_key;  // the variant
  int64_t cost;  // nanoseconds of one block, about
  int64_t begin0;  // first block of nest 0
  int64_t end0;  // the one behind its last
  int64_t per0;  // items of a block
  int64_t items0;  // items
} Tiling;

static inline float FoldMax_float32_32(float* a) {
  for (int64_t l = 0; l < 16; ++l) {
    a[l] = (a[l] < a[l + 16] ? a[l + 16] : a[l]);
  }
  for (int64_t l = 0; l < 8; ++l) {
    a[l] = (a[l] < a[l + 8] ? a[l + 8] : a[l]);
  }
  for (int64_t l = 0; l < 4; ++l) {
    a[l] = (a[l] < a[l + 4] ? a[l + 4] : a[l]);
  }
  for (int64_t l = 0; l < 2; ++l) {
    a[l] = (a[l] < a[l + 2] ? a[l + 2] : a[l]);
  }
  a[0] = (a[0] < a[1] ? a[1] : a[0]);
  return a[0];
}

static inline float FoldSum_float32_32(float* a) {
  for (int64_t l = 0; l < 16; ++l) {
    a[l] = (a[l] + a[l + 16]);
  }
  for (int64_t l = 0; l < 8; ++l) {
    a[l] = (a[l] + a[l + 8]);
  }
  for (int64_t l = 0; l < 4; ++l) {
    a[l] = (a[l] + a[l + 4]);
  }
  for (int64_t l = 0; l < 2; ++l) {
    a[l] = (a[l] + a[l + 2]);
  }
  a[0] = (a[0] + a[1]);
  return a[0];
}

// softmax_0: mode row, items over (z0: 5), innermost z1
static int32_t nest0(void* const* gm, char* workspace, const Tiling* t, int64_t block) {
  const _Bool one = 200 == 1;
  const float* const b0 = (const float*)(gm[0]);
  float* const b10 = (float*)(gm[1]);
  float u7[264];
  const int64_t first = block * t->per0;
  const int64_t last = Min(first + t->per0, t->items0);
  int64_t i0 = first;
  for (int64_t item = first; item < last; ++item) {
    float r1;
    {
      float r1l[32];
      for (int64_t l = 0; l < 32; ++l) { r1l[l] = (-__builtin_inff()); }
      const float* const p0 = b0 + i0 * 200;
      int64_t j = 0;
      for (; j + 32 <= 200; j += 32) {
#pragma GCC ivdep
        for (int64_t l = 0; l < 32; ++l) /* vector */ {
          const float v0 = p0[(j + l)];  // load_0
          r1l[l] = (r1l[l] < v0 ? v0 : r1l[l]);
        }
      }
      if (j < 200) {
        const int32_t rest = af_lanes_left(200 - j);
#pragma GCC ivdep
        for (int32_t l = 0; l < af_lanes_taken(32, rest); ++l) /* vector */ {
          const float v0 = l < rest ? p0[(j + l)] : 0;  // load_0
          r1l[l] = l < rest ? (r1l[l] < v0 ? v0 : r1l[l]) : r1l[l];
        }
      }
      r1 = FoldMax_float32_32(r1l);
    }
    float r8;
    {
      float r8l[32];
      for (int64_t l = 0; l < 32; ++l) { r8l[l] = (one ? (-0.0f) : 0.0f); }
      const float* const p0 = b0 + i0 * 200;
      int64_t j = 0;
      for (; j + 32 <= 200; j += 32) {
#pragma GCC ivdep
        for (int64_t l = 0; l < 32; ++l) /* vector */ {
          const float v0 = p0[(j + l)];  // load_0
          const float v2 = v0 - r1;  // sub_0
          const float v3 = __builtin_fabsf(v2);  // abs_0
          const float v4 = __builtin_sqrtf(v3);  // sqrt_0
          const float v6 = v4 + 1.0f;  // add_0
          const float v7 = v4 / v6;  // div_0
          u7[(j + l)] = v7;
          r8l[l] = (r8l[l] + v7);
        }
      }
      if (j < 200) {
        const int32_t rest = af_lanes_left(200 - j);
#pragma GCC ivdep
        for (int32_t l = 0; l < af_lanes_taken(32, rest); ++l) /* vector */ {
          const float v0 = l < rest ? p0[(j + l)] : 0;  // load_0
          const float v2 = v0 - r1;  // sub_0
          const float v3 = __builtin_fabsf(v2);  // abs_0
          const float v4 = __builtin_sqrtf(v3);  // sqrt_0
          const float v6 = v4 + 1.0f;  // add_0
          const float v7 = v4 / v6;  // div_0
          u7[(j + l)] = v7;
          r8l[l] = l < rest ? (r8l[l] + v7) : r8l[l];
        }
      }
      r8 = FoldSum_float32_32(r8l);
    }
    {
      float* const p10 = b10 + i0 * 200;
#pragma GCC ivdep
      for (int64_t j = 0; j < 200; ++j) /* vector */ {
        const float v9 = u7[j] / r8;  // div_1
        p10[j] = v9;  // store_0
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

