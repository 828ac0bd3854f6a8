typedef struct {
  int64_t block_dim;  // blocks of all nests
  int64_t tiling_key;  // the variant
  int64_t cost;  // nanoseconds of one block, about
  int64_t begin0;  // first block of nest 0
  int64_t end0;  // the one behind its last
  int64_t per0;  // items of a block
  int64_t items0;  // items
} Tiling;

// transposed_0: mode column, items over (z0: 33), innermost z1
static int32_t nest0(void* const* gm, char* workspace, const Tiling* t, int64_t block) {
  const float* const b0 = (const float*)(gm[0]);
  const float* const b1 = (const float*)(gm[1]);
  float* const b3 = (float*)(gm[2]);
  const int64_t first = block * t->per0;
  const int64_t last = Min(first + t->per0, t->items0);
  int64_t group = first;
  for (int64_t item = first; item < last; ++item) {
    const int64_t q0 = group * 16;
    const int64_t qn = Min(16, 33 - q0);
    float z0[16 * 256];
    for (int64_t j = 0; j < 45; ++j) {
      const float* const line = b0 + q0 + j * 33;
      if (qn == 16) {
        for (int64_t q = 0; q < 16; ++q) z0[q * 256 + j] = line[q];
      }
      else {
        for (int64_t q = 0; q < qn; ++q) z0[q * 256 + j] = line[q];
      }
    }
    for (int64_t i0 = q0; i0 < q0 + qn; ++i0) {
      {
        const float* const p0 = z0 + (i0 - q0) * 256;
        const float* const p1 = b1 + i0 * 45;
        float* const p3 = b3 + i0 * 45;
#pragma GCC ivdep
        for (int64_t j = 0; j < 45; ++j) /* vector */ {
          const float v0 = p0[j];  // load_0
          const float v1 = p1[j];  // load_1
          const float v2 = v0 + v1;  // add_0
          p3[j] = v2;  // store_0
        }
      }
    }
    ++group;
  }
  (void)gm;
  (void)workspace;
  (void)t;
  (void)block;
  return 0;
}

