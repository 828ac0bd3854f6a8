typedef struct {
  int64_t s0;  // size
  int64_t s1;  // size
  int64_t block_dim;  // blocks of all nests
  int64_t tiling_key;  // the variant
  int64_t cost;  // nanoseconds of one block, about
  int64_t begin0;  // first block of nest 0
  int64_t end0;  // the one behind its last
  int64_t per0;  // items of a block
  int64_t items0;  // items
  int64_t tile0;  // elements of a piece
  int64_t pieces0;  // pieces of a row
  int64_t stream0;  // whether it stores around the caches
  int64_t begin1;  // first block of nest 1
  int64_t end1;  // the one behind its last
  int64_t per1;  // items of a block
  int64_t items1;  // items
} Tiling;

// g_0: mode column, items over (), innermost z0z1
static int32_t nest0(void* const* gm, char* workspace, const Tiling* t, int64_t block) {
  const int64_t s0 = t->s0;
  const int64_t n0 = 60 * s0;  // z0z1
  const float* const b0 = (const float*)(gm[0]);
  const float* const b1 = (const float*)(gm[1]);
  float* const b3 = (float*)(gm[2]);
  const _Bool stream = t->stream0 && (const void*)b0 != (const void*)b3 && (const void*)b1 != (const void*)b3;
  const int64_t first = block * t->per0;
  const int64_t last = Min(first + t->per0, t->items0);
  const int64_t f = first * t->tile0;
  const int64_t c = Min(last * t->tile0, n0) - f;
  {
    const float* const p0 = b0 + f;
    const float* const p1 = b1 + f;
    float* const p3 = b3 + f;
    const int64_t step = stream ? 512 : c;
    for (int64_t s = 0; s < c; s += step) {
      const int64_t m = Min(step, c - s);
      float h3[512] __attribute__((aligned(64)));
      float* const o3 = stream ? h3 : p3 + s;
#pragma GCC ivdep
      for (int64_t j = 0; j < m; ++j) /* vector */ {
        const float v0 = p0[(s + j)];  // load_0
        const float v1 = p1[(s + j)];  // load_1
        const float v2 = v0 - v1;  // sub_0
        o3[j] = v2;  // store_0
      }
      if (stream) {
        af_stream_items(p3 + s, h3, m);
      }
    }
  }
  (void)gm;
  (void)workspace;
  (void)t;
  (void)block;
  if (stream) af_stream_end();
  return 0;
}

// g_0: mode column, items over (z0: broadcast_size(s0, s1)), innermost z1
static int32_t nest1(void* const* gm, char* workspace, const Tiling* t, int64_t block) {
  const int64_t s0 = t->s0;
  const int64_t s1 = t->s1;
  const float* const b0 = (const float*)(gm[0]);
  const float* const b1 = (const float*)(gm[1]);
  float* const b3 = (float*)(gm[2]);
  const int64_t first = block * t->per1;
  const int64_t last = Min(first + t->per1, t->items1);
  int64_t i0 = first;
  for (int64_t item = first; item < last; ++item) {
    {
      const float* const p0 = b0 + i0 * StrideOrZero(s0, 60);
      const float* const p1 = b1 + i0 * StrideOrZero(s1, 60);
      float* const p3 = b3 + i0 * 60;
#pragma GCC ivdep
      for (int64_t j = 0; j < 60; ++j) /* vector */ {
        const float v0 = p0[j];  // load_0
        const float v1 = p1[j];  // load_1
        const float v2 = v0 - v1;  // sub_0
        p3[j] = v2;  // store_0
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

