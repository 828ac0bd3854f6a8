typedef struct {
  int64_t block_dim;  // blocks of all nests
  int64_t tiling_key;  // the variant
  int64_t cost;  // nanoseconds of one block, about
  int64_t begin0;  // first block of nest 0
  int64_t end0;  // the one behind its last
  int64_t per0;  // items of a block
  int64_t items0;  // items
} Tiling;

// g_0: mode column, items over (z0: 192), innermost z1
static int32_t nest0(void* const* gm, char* workspace, const Tiling* t, int64_t block) {
  const float* const b0 = (const float*)(gm[0]);
  const float* const b2 = (const float*)(gm[1]);
  float* const b11 = (float*)(gm[2]);
  const int64_t first = block * t->per0;
  const int64_t last = Min(first + t->per0, t->items0);
  int64_t i0 = first;
  for (int64_t item = first; item < last; ++item) {
    {
      const float* const p0 = b0;
      const float* const p2 = b2 + i0 * 128;
      float* const p11 = b11 + i0 * 128;
#pragma GCC ivdep
      for (int64_t j = 0; j < 128; ++j) /* vector */ {
        const float v0 = p0[j];  // load_0
        const float v2 = p2[j];  // load_1
        const float v4 = af_cast_round_f16(v0);  // cast_2
        const float v5 = __builtin_fabsf(v4);  // abs_0
        const float v6 = af_cast_round_f16(v2);  // cast_3
        const float v7 = v5 + v6;  // add_0
        const float v8 = v7 < 0 ? 0 : v7;  // relu_0
        const float v10 = af_cast_round_f16(v8);  // cast_5
        p11[j] = v10;  // store_0
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

