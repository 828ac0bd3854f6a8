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
} Tiling;

// functions_0: mode column, items over (z0: s0), innermost z1
static int32_t nest0(void* const* gm, char* workspace, const Tiling* t, int64_t block) {
  const int64_t s1 = t->s1;
  const int64_t n1 = s1;  // z1
  const float* const b0 = (const float*)(gm[0]);
  const float* const b1 = (const float*)(gm[1]);
  float* const b12 = (float*)(gm[2]);
  float* const b13 = (float*)(gm[3]);
  const int64_t first = block * t->per0;
  const int64_t last = Min(first + t->per0, t->items0);
  const int64_t pieces = t->pieces0;
  int64_t rest = first;
  int64_t piece = rest % pieces;
  rest /= pieces;
  int64_t i0 = rest;
  for (int64_t item = first; item < last; ++item) {
    const int64_t f = piece * t->tile0;
    const int64_t c = Min(t->tile0, n1 - f);
    {
      const float* const p0 = b0 + i0 * s1 + f;
      const float* const p1 = b1 + f;
      float* const p12 = b12 + i0 * s1 + f;
      float* const p13 = b13 + i0 * s1 + f;
      for (int64_t s = 0; s < c; s += 512) {
        const int64_t m = Min(512, c - s);
        float w4[512];
        float w6[512];
        float w9[512];
#pragma GCC ivdep
        for (int64_t j = 0; j < m; ++j) /* vector */ {
          const float v0 = p0[(s + j)];  // load_0
          const float v1 = p1[(s + j)];  // load_1
          const float v3 = v0 * 0x1.0000000000000p-1f;  // mul_0
          const float v4 = af_tanh_f32(v3);  // tanh_0
          w4[j] = v4;
          const float v5 = v1 * v1;  // mul_1
          const float v6 = v5 - v4;  // sub_0
          w6[j] = v6;
        }
#pragma GCC ivdep
        for (int64_t j = 0; j < m; ++j) /* vector */ {
          const float v1 = p1[(s + j)];  // load_1
          const float v7 = af_sigmoid_f32(w6[j]);  // sigmoid_0
          const float v8 = v1 < v7 ? v1 : v7;  // minimum_0
          const float v9 = w4[j] * v8;  // mul_2
          w9[j] = v9;
        }
#pragma GCC ivdep
        for (int64_t j = 0; j < m; ++j) /* vector */ {
          const float v0 = p0[(s + j)];  // load_0
          const float v10 = af_exp_f32(w9[j]);  // exp_0
          const float v11 = v10 - v0;  // sub_1
          p12[(s + j)] = v11;  // store_0
          p13[(s + j)] = w4[j];  // store_1
        }
      }
    }
    if (++piece == pieces) {
      piece = 0;
      ++i0;
    }
  }
  (void)gm;
  (void)workspace;
  (void)t;
  (void)block;
  return 0;
}

