// Why: the C entry points that the Python side of the twin's tests calls: run a registered probe by name.
#include "probe.h"

#include <cstdio>
#include <xmmintrin.h>

ProbeEntry* g_probes = nullptr;

extern "C" int32_t probe_run(const char* name, void** gm, const uint64_t* gm_bytes, const uint8_t* writable,
                             uint32_t gm_count, void* workspace, uint64_t workspace_bytes,
                             const ProbeTiling* tiling, uint32_t block_dim, uint32_t first, uint32_t last,
                             int32_t needs_all, char* error, uint64_t cap) {
  for (const ProbeEntry* e = g_probes; e; e = e->next)
    if (!std::strcmp(e->name, name))
      return twin::RunBlocks(name, e->run, gm, gm_bytes, writable, gm_count, workspace, workspace_bytes,
                             tiling, sizeof(ProbeTiling), block_dim, first, last, error, cap, needs_all != 0,
                             1);
  std::snprintf(error, cap, "no probe is called %s", name);
  return -1;
}

extern "C" void probe_names(void (*visit)(const char*)) {
  for (const ProbeEntry* e = g_probes; e; e = e->next) visit(e->name);
}

// Flush-to-zero and denormals-are-zero of the calling thread, as thread pools set them.
extern "C" void probe_flush(int32_t on) { _mm_setcsr((_mm_getcsr() & ~0x8040u) | (on ? 0x8040u : 0u)); }
extern "C" int32_t probe_flushes() { return (_mm_getcsr() & 0x8040u) == 0x8040u; }
