// A hand-made kernel library for the tests of the AscBackend op. KIND picks what it computes and how it
// misbehaves.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>

#define SUM 1        // [n, m] x 2 -> relu(|a| + b); the dims must agree
#define TWO 2        // [n] -> |a|, -a
#define CLOBBER 3    // [n] -> -a; writes nonsense and fails from call FAIL_FROM on
#define WORKSPACE 4  // [n] -> -a by way of the workspace
#define TOGETHER 5   // [n] -> -a; all blocks in one call
#define NO_TILING 6  // [n] -> -a; never finds a tiling
#define NEGATIVE 7   // [n] -> a size that can't be
#define PHASES 8     // [n] -> -a backwards: the second phase reads what all of the first has written
#define GROUPS 9     // [n] -> how many blocks came in the call that wrote each element
#define VALUES 10    // [n] -> -a; negative values are not for the kernel
#define HALVES 11    // [n] -> a / 2
#define COUNTS 12    // [n] -> how often each element has been written, up to 65536 of them

#ifndef FAIL_FROM
#define FAIL_FROM 0
#endif
// The last phase ends so many blocks off.
#ifndef PHASE_ERROR
#define PHASE_ERROR 0
#endif
#ifndef ABI
#define ABI 1
#endif

struct AutofuseMachine {
  uint32_t core_num;
  uint32_t reserved;
  uint64_t ub_size;
};
struct Tiling {
  int64_t count;
  int64_t per_block;
};

static const int kRank = KIND == SUM ? 2 : 1;

extern "C" {

int64_t autofuse_abi_version(void) { return ABI; }

int32_t autofuse_shape(const int64_t* in, int64_t* out, int64_t* sizes) {
  for (int d = 0; d < kRank; ++d) {
    if (KIND == SUM && in[d] != in[d + kRank]) return d + 1;
    out[d] = sizes[d] = in[d];
  }
  if (KIND == TWO) out[1] = in[0];
  if (KIND == NEGATIVE) out[0] = -5;
  return 0;
}

#if KIND == SUM
const char* autofuse_check_text(int32_t number) {
  return number == 1 ? "the first dims agree" : "the last dims agree";
}
#endif

int64_t autofuse_tiling_size(void) { return sizeof(Tiling); }

int32_t autofuse_tiling(const int64_t* sizes, const AutofuseMachine* machine, void* tiling,
                        uint32_t* block_dim, uint64_t* workspace) {
  if (KIND == NO_TILING) return 1;
  Tiling* t = static_cast<Tiling*>(tiling);
  t->count = 1;
  for (int d = 0; d < kRank; ++d) t->count *= sizes[d];
  const int64_t blocks = std::min<int64_t>(machine->core_num, (t->count + 255) / 256);
  t->per_block = blocks == 0 ? 0 : (t->count + blocks - 1) / blocks;
  *block_dim = static_cast<uint32_t>(blocks);
  if (KIND == PHASES) *block_dim *= 2;
  *workspace = KIND == WORKSPACE || KIND == PHASES ? sizeof(float) * t->count : 0;
  return 0;
}

#if KIND == TOGETHER
int32_t autofuse_needs_all_blocks(void) { return 1; }
#endif

#ifdef COST
int64_t autofuse_block_cost(const void*) { return COST; }
#endif

#if KIND == PHASES
int32_t autofuse_phases(const void* tiling, uint32_t* ends, int32_t capacity) {
  if (capacity < 2) return capacity + 1;
  const Tiling* t = static_cast<const Tiling*>(tiling);
  ends[0] = static_cast<uint32_t>(std::min<int64_t>(48, (t->count + 255) / 256));
  ends[1] = 2 * ends[0] + PHASE_ERROR;
  return 2;
}
#endif

int32_t autofuse_run_blocks(void* const* gm, const uint64_t* bytes, void* workspace, const void* tiling,
                            uint32_t block_dim, uint32_t first, uint32_t last, char* error,
                            uint64_t capacity) {
  const Tiling* t = static_cast<const Tiling*>(tiling);
  static std::atomic<int> calls{0};
  static std::atomic<int> written[KIND == COUNTS ? 65536 : 1];
  const bool fails = KIND == CLOBBER && calls++ >= FAIL_FROM;
  const int inputs = KIND == SUM ? 2 : 1;
  const float* a = static_cast<const float*>(gm[0]);
  float* out = static_cast<float*>(gm[inputs]);
  if (bytes[0] != sizeof(float) * t->count || bytes[inputs] != sizeof(float) * t->count) {
    std::snprintf(error, capacity, "gm_bytes is %llu", static_cast<unsigned long long>(bytes[0]));
    return 5;
  }
  if ((out == nullptr && t->count > 0) || reinterpret_cast<uintptr_t>(out) % 64 != 0 ||
      ((KIND == WORKSPACE || KIND == PHASES) && reinterpret_cast<uintptr_t>(workspace) % 64)) {
    std::snprintf(error, capacity, "an output is not aligned");
    return 3;
  }
  if (KIND == TOGETHER && (first != 0 || last != block_dim)) {
    std::snprintf(error, capacity, "blocks %u to %u of %u came alone", first, last, block_dim);
    return 4;
  }
  if (KIND == PHASES) {
    float* between = static_cast<float*>(workspace);
    const uint32_t half = block_dim / 2;
    if (first < half && last > half) {
      std::snprintf(error, capacity, "blocks %u to %u lie in both phases", first, last);
      return 6;
    }
    const uint32_t from = first < half ? first : first - half, to = first < half ? last : last - half;
    for (int64_t i = from * t->per_block; i < std::min<int64_t>(to * t->per_block, t->count); ++i) {
      if (first < half) {
        between[i] = -a[i];
      } else {
        out[i] = between[t->count - 1 - i];
      }
    }
    return 0;
  }
  if (KIND == COUNTS) {  // so long that several threads are at it
    for (volatile uint32_t spin = 0; spin < 8000 * (last - first); spin = spin + 1) {
    }
  }
  for (int64_t i = first * t->per_block; i < std::min<int64_t>(last * t->per_block, t->count); ++i) {
    if (fails) {
      out[i] = 1e30f;
    } else if (KIND == VALUES && a[i] < 0) {
      return 2;
    } else if (KIND == COUNTS) {
      out[i] = static_cast<float>(++written[i % (sizeof(written) / sizeof(written[0]))]);
    } else if (KIND == HALVES) {
      out[i] = a[i] * 0.5f;
    } else if (KIND == GROUPS) {
      out[i] = static_cast<float>(last - first);
    } else if (KIND == SUM) {
      const float v = std::fabs(a[i]) + static_cast<const float*>(gm[1])[i];
      out[i] = v < 0 ? 0 : v;
    } else if (KIND == TWO) {
      const float v = a[i];  // both outputs may lie in a's place
      out[i] = std::fabs(v);
      static_cast<float*>(gm[2])[i] = -v;
    } else if (KIND == WORKSPACE) {
      static_cast<float*>(workspace)[i] = -a[i];
      out[i] = static_cast<float*>(workspace)[i];
    } else {
      out[i] = -a[i];
    }
  }
  if (fails) {
    std::snprintf(error, capacity, "a deliberate violation");
    return 1;
  }
  return 0;
}

}  // extern "C"
