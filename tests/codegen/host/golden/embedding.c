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
  int64_t tile1;  // elements of a piece
  int64_t pieces1;  // pieces of a row
} Tiling;

// embedding_0: mode column, items over (), innermost z1
static int32_t nest0(void* const* gm, char* workspace, const Tiling* t, int64_t block) {
  const _Bool one = 6 == 1;
  const int64_t* const b0 = (const int64_t*)(gm[1]);
  const float* const b1 = (const float*)(gm[0]);
  float* const b3 = (float*)(gm[2]);
  _Bool bad = 0;
  const int64_t first = block * t->per0;
  const int64_t last = Min(first + t->per0, t->items0);
  for (int64_t item = first; item < last; ++item) {
    float r2[1024];
    for (int64_t l = 0; l < 4; ++l) { r2[l] = (one ? (-0.0f) : 0.0f); }
    {
      for (int64_t i0 = 0; i0 < 6; ++i0) {
        const int64_t v0 = b0[i0];  // load_0
        const int64_t x1 = v0;  // gather_0
        const _Bool y1 = (uint64_t)x1 >= (uint64_t)10;
        bad |= y1;
        const float* const p1 = b1 + (y1 ? 0 : x1) * 4;
#pragma GCC ivdep
        for (int64_t j = 0; j < 4; ++j) /* vector */ {
          const float v1 = p1[j];  // gather_0
          r2[j] = (r2[j] + v1);
        }
      }
    }
    {
      float* const p3 = b3;
#pragma GCC ivdep
      for (int64_t j = 0; j < 4; ++j) /* vector */ {
        p3[j] = r2[j];  // store_0
      }
    }
  }
  (void)gm;
  (void)workspace;
  (void)t;
  (void)block;
  return bad ? 2 : 0;
}

// row_0: mode column, items over (), innermost z0
static int32_t nest1(void* const* gm, char* workspace, const Tiling* t, int64_t block) {
  const float* const b1 = (const float*)(gm[0]);
  float* const b2 = (float*)(gm[3]);
  _Bool bad = 0;
  const int64_t first = block * t->per1;
  const int64_t last = Min(first + t->per1, t->items1);
  const int64_t f = first * t->tile1;
  const int64_t c = Min(last * t->tile1, 4) - f;
  {
    const int64_t x1 = 2;  // gather_0
    const _Bool y1 = (uint64_t)x1 >= (uint64_t)10;
    bad |= y1;
    const float* const p1 = b1 + f + (y1 ? 0 : x1) * 4;
    float* const p2 = b2 + f;
#pragma GCC ivdep
    for (int64_t j = 0; j < c; ++j) /* vector */ {
      const float v1 = p1[j];  // gather_0
      p2[j] = v1;  // store_0
    }
  }
  (void)gm;
  (void)workspace;
  (void)t;
  (void)block;
  return bad ? 2 : 0;
}

