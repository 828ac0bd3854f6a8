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
} Tiling;

// parts_0: mode column, items over (z0: 4), innermost z1
static int32_t nest0(void* const* gm, char* workspace, const Tiling* t, int64_t block) {
  const float* const b0 = (const float*)(gm[0]);
  float* const b2 = (float*)(gm[2]);
  float* const b3 = (float*)(gm[2]) + 2;
  const int64_t first = block * t->per0;
  const int64_t last = Min(first + t->per0, t->items0);
  int64_t i0 = first;
  for (int64_t item = first; item < last; ++item) {
    {
      const float* const p0 = b0 + i0 * 2;
      float* const p2 = b2 + i0 * 6;
      float* const p3 = b3 + i0 * 6;
#pragma GCC ivdep
      for (int64_t j = 0; j < 2; ++j) /* vector */ {
        const float v0 = p0[j];  // load_0
        const float v1 = -v0;  // neg_0
        p2[j] = v1;  // store_0
        p3[j] = v0;  // store_1
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

// last_0: mode column, items over (z0: 4), innermost z1
static int32_t nest1(void* const* gm, char* workspace, const Tiling* t, int64_t block) {
  const float* const b0 = (const float*)(gm[1]);
  float* const b1 = (float*)(gm[2]) + 4;
  const int64_t first = block * t->per1;
  const int64_t last = Min(first + t->per1, t->items1);
  int64_t i0 = first;
  for (int64_t item = first; item < last; ++item) {
    {
      const float* const p0 = b0 + i0 * 2;
      float* const p1 = b1 + i0 * 6;
#pragma GCC ivdep
      for (int64_t j = 0; j < 2; ++j) /* vector */ {
        const float v0 = p0[j];  // load_0
        p1[j] = v0;  // store_0
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

