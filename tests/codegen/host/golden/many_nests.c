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
  int64_t begin2;  // first block of nest 2
  int64_t end2;  // the one behind its last
  int64_t per2;  // items of a block
  int64_t items2;  // items
  int64_t begin3;  // first block of nest 3
  int64_t end3;  // the one behind its last
  int64_t per3;  // items of a block
  int64_t items3;  // items
  int64_t tile3;  // elements of a piece
  int64_t pieces3;  // pieces of a row
  int64_t w0;  // offset of tensor 0 in the workspace
  int64_t w1;  // offset of tensor 1 in the workspace
} Tiling;

static inline float FoldMax_float32_16(float* a) {
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

static inline float FoldMin_float32_16(float* a) {
  for (int64_t l = 0; l < 8; ++l) {
    a[l] = (a[l + 8] < a[l] ? a[l + 8] : a[l]);
  }
  for (int64_t l = 0; l < 4; ++l) {
    a[l] = (a[l + 4] < a[l] ? a[l + 4] : a[l]);
  }
  for (int64_t l = 0; l < 2; ++l) {
    a[l] = (a[l + 2] < a[l] ? a[l + 2] : a[l]);
  }
  a[0] = (a[1] < a[0] ? a[1] : a[0]);
  return a[0];
}

// many_nests_0: mode row, items over (z0: 9), innermost z1
static int32_t nest0(void* const* gm, char* workspace, const Tiling* t, int64_t block) {
  const float* const b0 = (const float*)(gm[0]);
  float* const b2 = (float*)(gm[1]);
  const int64_t first = block * t->per0;
  const int64_t last = Min(first + t->per0, t->items0);
  int64_t i0 = first;
  for (int64_t item = first; item < last; ++item) {
    float r1;
    {
      float r1l[16];
      for (int64_t l = 0; l < 16; ++l) { r1l[l] = (-__builtin_inff()); }
      const float* const p0 = b0 + i0 * 35;
      int64_t j = 0;
      for (; j + 16 <= 35; j += 16) {
#pragma GCC ivdep
        for (int64_t l = 0; l < 16; ++l) /* vector */ {
          const float v0 = p0[(j + l)];  // load_0
          r1l[l] = (r1l[l] < v0 ? v0 : r1l[l]);
        }
      }
      if (j < 35) {
        const int32_t rest = af_lanes_left(35 - j);
#pragma GCC ivdep
        for (int32_t l = 0; l < af_lanes_taken(16, rest); ++l) /* vector */ {
          const float v0 = l < rest ? p0[(j + l)] : 0;  // load_0
          r1l[l] = l < rest ? (r1l[l] < v0 ? v0 : r1l[l]) : r1l[l];
        }
      }
      r1 = FoldMax_float32_16(r1l);
    }
    b2[i0] = r1;  // store_0
    ++i0;
  }
  (void)gm;
  (void)workspace;
  (void)t;
  (void)block;
  return 0;
}

// many_nests_1: mode column, items over (), innermost z1
static int32_t nest1(void* const* gm, char* workspace, const Tiling* t, int64_t block) {
  const float* const b0 = (const float*)(gm[0]);
  float* const b2 = (float*)(workspace + t->w0);
  float* const b3 = (float*)(gm[2]);
  const int64_t first = block * t->per1;
  const int64_t last = Min(first + t->per1, t->items1);
  for (int64_t item = first; item < last; ++item) {
    float r1[1024];
    for (int64_t l = 0; l < 35; ++l) { r1[l] = (-__builtin_inff()); }
    {
      for (int64_t i0 = 0; i0 < 9; ++i0) {
        const float* const p0 = b0 + i0 * 35;
#pragma GCC ivdep
        for (int64_t j = 0; j < 35; ++j) /* vector */ {
          const float v0 = p0[j];  // load_0
          r1[j] = (r1[j] < v0 ? v0 : r1[j]);
        }
      }
    }
    {
      float* const p2 = b2;
      float* const p3 = b3;
#pragma GCC ivdep
      for (int64_t j = 0; j < 35; ++j) /* vector */ {
        p2[j] = r1[j];  // max_1_kept
        p3[j] = r1[j];  // store_1
      }
    }
  }
  (void)gm;
  (void)workspace;
  (void)t;
  (void)block;
  return 0;
}

// many_nests_2: mode row, items over (), innermost z1
static int32_t nest2(void* const* gm, char* workspace, const Tiling* t, int64_t block) {
  const float* const b0 = (const float*)(workspace + t->w0);
  float* const b2 = (float*)(workspace + t->w1);
  const int64_t first = block * t->per2;
  const int64_t last = Min(first + t->per2, t->items2);
  for (int64_t item = first; item < last; ++item) {
    float r1;
    {
      float r1l[16];
      for (int64_t l = 0; l < 16; ++l) { r1l[l] = __builtin_inff(); }
      const float* const p0 = b0;
      int64_t j = 0;
      for (; j + 16 <= 35; j += 16) {
#pragma GCC ivdep
        for (int64_t l = 0; l < 16; ++l) /* vector */ {
          const float v0 = p0[(j + l)];  // max_1
          r1l[l] = (v0 < r1l[l] ? v0 : r1l[l]);
        }
      }
      if (j < 35) {
        const int32_t rest = af_lanes_left(35 - j);
#pragma GCC ivdep
        for (int32_t l = 0; l < af_lanes_taken(16, rest); ++l) /* vector */ {
          const float v0 = l < rest ? p0[(j + l)] : 0;  // max_1
          r1l[l] = l < rest ? (v0 < r1l[l] ? v0 : r1l[l]) : r1l[l];
        }
      }
      r1 = FoldMin_float32_16(r1l);
    }
    b2[0] = r1;  // min_0_kept
  }
  (void)gm;
  (void)workspace;
  (void)t;
  (void)block;
  return 0;
}

// many_nests_3: mode column, items over (), innermost z0z1
static int32_t nest3(void* const* gm, char* workspace, const Tiling* t, int64_t block) {
  const float* const b0 = (const float*)(gm[0]);
  const float* const b1 = (const float*)(workspace + t->w1);
  float* const b3 = (float*)(gm[3]);
  const int64_t first = block * t->per3;
  const int64_t last = Min(first + t->per3, t->items3);
  const int64_t f = first * t->tile3;
  const int64_t c = Min(last * t->tile3, 315) - f;
  const float v1 = b1[0];  // min_0
  {
    const float* const p0 = b0 + f;
    float* const p3 = b3 + f;
#pragma GCC ivdep
    for (int64_t j = 0; j < c; ++j) /* vector */ {
      const float v0 = p0[j];  // load_0
      const float v2 = v0 - v1;  // sub_0
      p3[j] = v2;  // store_2
    }
  }
  (void)gm;
  (void)workspace;
  (void)t;
  (void)block;
  return 0;
}

