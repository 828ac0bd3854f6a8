// two_reductions (reduce)
// input 0: float32 [3, 4]
// output 0: float32 [4]
// output 1: float32 [3]
#include <stdint.h>


#define EXPORT __attribute__((visibility("default")))
#define COLD __attribute__((cold))  // runs once for each new shape
#define SETUP EXPORT COLD

typedef struct AutofuseMachine {
  uint32_t core_num;
  uint32_t reserved;
  uint64_t ub_size;
} AutofuseMachine;

static inline int64_t FloorDiv(int64_t a, int64_t b) {
  if (b == 0) return 0;
  int64_t q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}
static inline int64_t BroadcastSize(int64_t a, int64_t b) { return a == 1 ? b : a; }
static inline int64_t StrideOrZero(int64_t dim, int64_t stride) { return dim == 1 ? 0 : stride; }
static inline int64_t Max(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t Min(int64_t a, int64_t b) { return a < b ? a : b; }

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
  int64_t w0;  // offset of tensor 0 in the workspace
} Tiling;

static inline float FoldSum_float32_4(float* a) {
  for (int64_t l = 0; l < 2; ++l) {
    a[l] = (a[l] + a[l + 2]);
  }
  a[0] = (a[0] + a[1]);
  return a[0];
}

// half_0_0: mode column, items over (z0: 3), innermost z1
static int32_t nest0(void* const* gm, char* workspace, const Tiling* t, int64_t block) {
  const float* const b0 = (const float*)(gm[0]);
  float* const b2 = (float*)(workspace + t->w0);
  const int64_t first = block * t->per0;
  const int64_t last = Min(first + t->per0, t->items0);
  int64_t i0 = first;
  for (int64_t item = first; item < last; ++item) {
    {
      const float* const p0 = b0 + i0 * 4;
      float* const p2 = b2 + i0 * 4;
#pragma GCC ivdep
      for (int64_t j = 0; j < 2; ++j) /* vector */ {
        const float v0 = p0[j];  // load_0
        const float v1 = v0 < 0 ? 0 : v0;  // relu_0
        p2[j] = v1;  // store_0
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

// half_1_0: mode column, items over (z0: 3), innermost z1
static int32_t nest1(void* const* gm, char* workspace, const Tiling* t, int64_t block) {
  const float* const b0 = (const float*)(gm[0]) + 2;
  float* const b2 = (float*)(workspace + t->w0) + 2;
  const int64_t first = block * t->per1;
  const int64_t last = Min(first + t->per1, t->items1);
  int64_t i0 = first;
  for (int64_t item = first; item < last; ++item) {
    {
      const float* const p0 = b0 + i0 * 4;
      float* const p2 = b2 + i0 * 4;
#pragma GCC ivdep
      for (int64_t j = 0; j < 2; ++j) /* vector */ {
        const float v0 = p0[j];  // load_0
        const float v1 = v0 < 0 ? 0 : v0;  // relu_0
        p2[j] = v1;  // store_0
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

// sum_0_0: mode column, items over (), innermost z1
static int32_t nest2(void* const* gm, char* workspace, const Tiling* t, int64_t block) {
  const _Bool one = 3 == 1;
  const float* const b0 = (const float*)(workspace + t->w0);
  float* const b2 = (float*)(gm[1]);
  const int64_t first = block * t->per2;
  const int64_t last = Min(first + t->per2, t->items2);
  for (int64_t item = first; item < last; ++item) {
    float r1[1024];
    for (int64_t l = 0; l < 4; ++l) { r1[l] = (one ? (-0.0f) : 0.0f); }
    {
      for (int64_t i0 = 0; i0 < 3; ++i0) {
        const float* const p0 = b0 + i0 * 4;
#pragma GCC ivdep
        for (int64_t j = 0; j < 4; ++j) /* vector */ {
          const float v0 = p0[j];  // load_0
          r1[j] = (r1[j] + v0);
        }
      }
    }
    {
      float* const p2 = b2;
#pragma GCC ivdep
      for (int64_t j = 0; j < 4; ++j) /* vector */ {
        p2[j] = r1[j];  // store_0
      }
    }
  }
  (void)gm;
  (void)workspace;
  (void)t;
  (void)block;
  return 0;
}

// sum_1_0: mode row, items over (z0: 3), innermost z1
static int32_t nest3(void* const* gm, char* workspace, const Tiling* t, int64_t block) {
  const _Bool one = 4 == 1;
  const float* const b0 = (const float*)(workspace + t->w0);
  float* const b2 = (float*)(gm[2]);
  const int64_t first = block * t->per3;
  const int64_t last = Min(first + t->per3, t->items3);
  int64_t i0 = first;
  for (int64_t item = first; item < last; ++item) {
    float r1;
    {
      float r1l[4];
      for (int64_t l = 0; l < 4; ++l) { r1l[l] = (one ? (-0.0f) : 0.0f); }
      const float* const p0 = b0 + i0 * 4;
      int64_t j = 0;
      for (; j + 4 <= 4; j += 4) {
#pragma GCC ivdep
        for (int64_t l = 0; l < 4; ++l) /* vector */ {
          const float v0 = p0[(j + l)];  // load_0
          r1l[l] = (r1l[l] + v0);
        }
      }
      r1 = FoldSum_float32_4(r1l);
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

SETUP int64_t autofuse_abi_version(void) { return 1; }

SETUP int32_t autofuse_shape(const int64_t* in_dims, int64_t* out_dims, int64_t* sizes) {
  if (!(in_dims[0] == 3)) return 1;  // dim 0 of input 0 is 3
  if (!(in_dims[1] == 4)) return 2;  // dim 1 of input 0 is 4
  out_dims[0] = 4;
  out_dims[1] = 3;
  (void)in_dims;
  (void)out_dims;
  (void)sizes;
  return 0;
}

SETUP const char* autofuse_check_text(int32_t number) {
  switch (number) {
    case 1:
      return "dim 0 of input 0 is 3";
    case 2:
      return "dim 1 of input 0 is 4";
    default:
      return "";
  }
}

#define kStreamedRow 512  // bytes of a row at least that is stored around the caches
typedef struct {
  int64_t per, tile, pieces, items, blocks;
} Division;

/* rows * width elements of `ns` each in blocks. kept: whether there is nothing to do where width is 0; cut:
whether
   rows may be cut into pieces; least, most: smallest and largest piece or 0. */
COLD static void Divide(int64_t rows, int64_t width, double ns, int kept, int cut, int64_t least,
                        int64_t most, Division* d) {
  const double total = (double)rows * (double)width * ns;
  int64_t wanted = total >= 4000.0 * 64 ? 64 : (int64_t)(total / 4000.0);
  wanted = Max(wanted, 1);
  d->tile = Max(width, 1);
  if (cut && rows > 0 && rows < wanted) {
    const int64_t pieces = (wanted + rows - 1) / rows;
    const int64_t piece = Max((width + pieces - 1) / pieces, least);
    d->tile = (piece + 64 - 1) / 64 * 64;
  }
  if (most > 0) d->tile = Min(d->tile, most);
  d->pieces = cut ? (width + d->tile - 1) / d->tile : 1;
  d->items = kept && width == 0 ? 0 : rows * d->pieces;
  d->per = d->items > 0 ? (d->items + wanted - 1) / wanted : 1;
  d->blocks = (d->items + d->per - 1) / d->per;
}

SETUP int64_t autofuse_tiling_size(void) { return sizeof(Tiling); }

SETUP int32_t autofuse_tiling(
    const int64_t* sizes, const AutofuseMachine* machine, void* tiling, uint32_t* block_dim,
    uint64_t* workspace_bytes) {
  Tiling* const t = (Tiling*)tiling;
  const Tiling none = {0};
  int64_t blocks = 0, bytes = 0;
  double total = 0;
  Division d;
  *t = none;
  (void)sizes;
  (void)machine;
  {
    t->tiling_key = 0;
    Divide(3, 2, (0.076 + 0.5 / (double)Max(2, 1)), 1, 0, 0, 0, &d);
    t->begin0 = blocks;
    t->per0 = d.per;
    t->items0 = d.items;
    blocks += d.blocks;
    t->end0 = blocks;
    total += (double)3 * (double)2 * (0.076 + 0.5 / (double)Max(2, 1));
    Divide(3, 2, (0.076 + 0.5 / (double)Max(2, 1)), 1, 0, 0, 0, &d);
    t->begin1 = blocks;
    t->per1 = d.per;
    t->items1 = d.items;
    blocks += d.blocks;
    t->end1 = blocks;
    total += (double)3 * (double)2 * (0.076 + 0.5 / (double)Max(2, 1));
    Divide(1, 4, (0.076 * (double)3 + 0.5 / (double)Max(4, 1)), 1, 0, 256, 1024, &d);
    t->begin2 = blocks;
    t->per2 = d.per;
    t->items2 = d.items;
    blocks += d.blocks;
    t->end2 = blocks;
    total += (double)1 * (double)4 * (0.076 * (double)3 + 0.5 / (double)Max(4, 1));
    Divide(3, 4, (0.044 + 2.0 / (double)Max(4, 1)), 0, 0, 256, 1024, &d);
    t->begin3 = blocks;
    t->per3 = d.per;
    t->items3 = d.items;
    blocks += d.blocks;
    t->end3 = blocks;
    total += (double)3 * (double)4 * (0.044 + 2.0 / (double)Max(4, 1));
  }
  t->w0 = bytes;
  bytes += (12 * 4 + 63) / 64 * 64;
  t->block_dim = blocks;
  t->cost = blocks ? (int64_t)(total / (double)blocks) : 0;
  *block_dim = (uint32_t)blocks;
  *workspace_bytes = (uint64_t)bytes;
  return 0;
}

EXPORT int64_t autofuse_block_cost(const void* tiling) {
  return ((const Tiling*)tiling)->cost;
}

SETUP int32_t autofuse_phases(const void* tiling, uint32_t* ends, int32_t capacity) {
  const Tiling* const t = (const Tiling*)tiling;
  int64_t end = 0;
  int32_t count = 0;
  (void)capacity;
  switch (t->tiling_key) {
    case 0:
      end = t->end0;
      end = t->end1;
      if (end > (count ? ends[count - 1] : 0)) ends[count++] = (uint32_t)end;
      end = t->end2;
      end = t->end3;
      break;
    default:
      break;
  }
  if (end > (count ? ends[count - 1] : 0)) ends[count++] = (uint32_t)end;
  return count;
}

SETUP const char* autofuse_tiling_name(int32_t index) {
  static const char* const names[] = {
    "block_dim",
    "tiling_key",
    "cost",
    "begin0",
    "end0",
    "per0",
    "items0",
    "begin1",
    "end1",
    "per1",
    "items1",
    "begin2",
    "end2",
    "per2",
    "items2",
    "begin3",
    "end3",
    "per3",
    "items3",
    "w0",
  };
  return index >= 0 && index < 20 ? names[index] : (const char*)0;
}

SETUP int64_t autofuse_tiling_value(const void* tiling, int32_t index) {
  const int64_t* const values = (const int64_t*)tiling;
  return index >= 0 && index < 20 ? values[index] : 0;
}


EXPORT int32_t autofuse_run_blocks(void* const* gm, const uint64_t* gm_bytes, void* workspace,
    const void* tiling, uint32_t block_dim, uint32_t first_block, uint32_t last_block,
    char* error, uint64_t error_capacity) {
  const Tiling* const t = (const Tiling*)tiling;
  char* const memory = (char*)workspace;
  int32_t code = 0;
  for (int64_t b = Max(first_block, t->begin0); b < Min(last_block, t->end0); ++b) {
    code |= nest0(gm, memory, t, b - t->begin0);
  }
  for (int64_t b = Max(first_block, t->begin1); b < Min(last_block, t->end1); ++b) {
    code |= nest1(gm, memory, t, b - t->begin1);
  }
  for (int64_t b = Max(first_block, t->begin2); b < Min(last_block, t->end2); ++b) {
    code |= nest2(gm, memory, t, b - t->begin2);
  }
  for (int64_t b = Max(first_block, t->begin3); b < Min(last_block, t->end3); ++b) {
    code |= nest3(gm, memory, t, b - t->begin3);
  }
  (void)gm_bytes;
  (void)block_dim;
  (void)error;
  (void)error_capacity;
  return code;
}
