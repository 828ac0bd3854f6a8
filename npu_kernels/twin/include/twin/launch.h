// Why: how host code runs a kernel that was compiled against the twin, and how it records what the kernel
// called. A kernel library links the archive and exports a C function that calls RunBlocks with its own
// entry.
#pragma once
#include "base.h"

namespace twin {
inline namespace TWIN_ABI {

// Runs blocks [first, last) of `block_dim` on the calling thread; other threads may run other blocks of the
// same or of any launch at the same time. `entry` unpacks its argument array: the gm_count GM pointers, then
// the workspace, then the tiling data. gm_bytes[i] bound buffer i; a buffer with gm_writable[i] == 0 is an
// input. The floating-point environment of the calling thread (flush-to-zero included) holds inside the
// kernel and is left as it was.
//
// needs_all_blocks: the kernel calls SyncAll, so first must be 0 and last block_dim; every block then gets a
// thread of its own with the caller's floating-point state.
//
// Returns 0, or 1 after a violation: `error` then holds at most cap-1 bytes of
//   kernel K block B: FILE:LINE: API: RULE: values
// and GM may hold partial results. No exception leaves this function.
int32_t RunBlocks(const char* kernel_name, void (*entry)(void** args), void* const* gm,
                  const uint64_t* gm_bytes, const uint8_t* gm_writable, uint32_t gm_count, void* workspace,
                  uint64_t workspace_bytes, const void* tiling, uint64_t tiling_bytes, uint32_t block_dim,
                  uint32_t first, uint32_t last, char* error, uint64_t cap, bool needs_all_blocks = false,
                  uint64_t tiling_key = 0);

}  // namespace TWIN_ABI
}  // namespace twin

extern "C" {

// One instruction, in issue order within a block. Plain C layout: other languages read it in place.
struct TwinTraceRecord {
  uint32_t block;
  uint32_t line;    // in `file`
  const char* api;  // static text, e.g. "Add"
  const char* file;
  uint64_t bytes;     // moved (copies: payload bytes; vector: bytes written to dst)
  uint64_t elements;  // per instruction, all repeats
  uint32_t repeat;    // vector: repeats executed (count forms: as many as they need); copies: blockCount
  uint32_t
      params[4];     // copies: blockLen, srcStride, dstStride, 0; vector: block strides of dst, src0, src1, 0
  uint8_t pipe;      // pipe_t: S 0, V 1, MTE2 2, MTE3 3, ALL 6
  uint8_t dtype;     // twin::DType of dst, 12 = none
  uint8_t kind;      // 0 instruction, 1 set flag, 2 wait flag, 3 barrier, 4 all-block barrier
  uint8_t src_pipe;  // kinds 1, 2: the pair of pipes
  uint8_t dst_pipe;
  int8_t event_id;  // kinds 1, 2
  uint16_t buffer;  // UB buffer of the first operand, 0xffff = none
};

// Recording is process-wide per kernel library, off by default. `limit` bounds the records kept (0 = 1 <<
// 20).
void twin_trace_begin(uint64_t limit);
// Stops recording; *records stays valid until the next begin. Returns how many there are.
uint64_t twin_trace_end(const struct TwinTraceRecord** records);
}
