/* Times two functions call by call in turns: a generated kernel's blocks and a hand-written function, whose
 * arguments are all pointers and integers and therefore lie in the same places under the ABIs of 64-bit
 * processors, however they are declared. */
#include <stdint.h>
#include <time.h>

typedef int32_t (*run_blocks)(void* const* gm, const uint64_t* bytes, void* workspace, const void* tiling,
                              uint32_t block_dim, uint32_t first, uint32_t last, char* error, uint64_t capacity);
typedef void (*hand)(intptr_t, intptr_t, intptr_t, intptr_t, intptr_t, intptr_t, intptr_t, intptr_t, intptr_t,
                     intptr_t, intptr_t, intptr_t);

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static void run_kernel(run_blocks kernel, void* const* gm, void* workspace, const void* tiling,
                       const uint32_t* ends, int64_t phases) {
  uint32_t first = 0;
  for (int64_t p = 0; p < phases; ++p) {
    kernel(gm, 0, workspace, tiling, phases ? ends[phases - 1] : 0, first, ends[p], 0, 0);
    first = ends[p];
  }
}

static void run_hand(hand f, const intptr_t* a) {
  f(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11]);
}

/* ours[i] and theirs[i]: microseconds of a call, the mean of `each` calls, in turn i. */
void take_turns(run_blocks kernel, void* const* gm, void* workspace, const void* tiling, const uint32_t* ends,
                int64_t phases, hand f, const intptr_t* arguments, int64_t each, int64_t turns, double* ours,
                double* theirs) {
  for (int64_t i = 0; i < turns; ++i) {
    const double start = now();
    for (int64_t k = 0; k < each; ++k) run_kernel(kernel, gm, workspace, tiling, ends, phases);
    const double middle = now();
    for (int64_t k = 0; k < each; ++k) run_hand(f, arguments);
    const double end = now();
    ours[i] = (middle - start) / (double)each;
    theirs[i] = (end - middle) / (double)each;
  }
}
