// Why: the state of one simulated vector core (UB, buffers, queues, events, the clocks of its pipes) and the
// checks every instruction goes through. One Core per thread, reused between blocks; nothing here is shared
// except Launch.
//
// The hazard model. Each pipe p numbers its instructions 1, 2, ... `clock[p][q]` is the last instruction of
// pipe q that is known to be complete before the next instruction of p starts. SetFlag copies the source's
// clock (all its own issued instructions included), WaitFlag joins that copy into the destination's,
// PipeBarrier<p> sets clock[p][p] to what p has issued. For each 32 B block of UB the last read and write of
// every pipe is kept; touching a block whose conflicting access the clock does not cover is a hazard. The
// scalar unit issues everything, so what it has waited for also orders later instructions of every pipe; its
// own UB accesses do not (S_V and the like are needed). Numbers grow over all blocks a thread runs: a new
// block starts with every clock up to date, so nothing is cleared.
//
// The initialised-bytes model. One bit per byte of UB; a fully set word means the whole 32 B block is good. A
// packed mask byte may be good in part: then its block is flagged and `partial` holds the bits that are not.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "../include/twin/base.h"
#include "../include/twin/calls.h"
#include "../include/twin/launch.h"
#include "../include/twin/pipe.h"

namespace twin {
inline namespace TWIN_ABI {

constexpr uint32_t kUbBytes = 192 * 1024;
constexpr uint32_t kUbUsable = kUbBytes - 256;  // the framework keeps the last 256 B
constexpr uint32_t kUbBesideScratch =
    kUbUsable - 8 * 1024;  // when an instruction uses the fixed 8 KiB scratch
constexpr uint32_t kBlock = 32;
constexpr uint32_t kUbBlocks = kUbBytes / kBlock;
constexpr uint32_t kPipes = 4;
constexpr uint32_t kMaxBuffers = 64;
constexpr uint32_t kMaxQueueBuffers = 8;  // per TPosition: each takes a hardware event
constexpr uint32_t kEvents = 8;

struct Violation {
  char text[512];
};

enum BufferState : uint8_t { kFree, kAllocated, kQueued, kDequeued, kCalc, kDead };

struct Clock {
  uint32_t seen[kPipes];
};
struct Buffer {
  uint32_t addr, bytes, generation;
  BufferState state;
  uint16_t queue;  // 0xffff: a TBuf
  Clock ready;     // of the last EnQue (while queued) or FreeTensor (while free)
  bool has_ready;
  int8_t event;  // held between EnQue and DeQue, or FreeTensor and AllocTensor
};
struct Queue {
  QueueSpec spec;
  uint16_t first, count;        // its buffers
  uint16_t cursor;              // of them, the one that AllocTensor looks at next: they take turns
  uint16_t order[kMaxBuffers];  // ids of queued buffers, oldest first
  uint16_t queued;
};
struct Event {
  bool set, taken;
  Clock at;
  Site site;
};
struct Range {
  const uint8_t* ptr;
  uint64_t bytes;
  bool writable;
  const char* kind;
  uint32_t number;
};
// What a block wrote to GM: `rows` pieces of `bytes`, `stride` bytes from the start of one to the next.
struct Written {
  const uint8_t* ptr;
  uint64_t bytes, stride;
  uint32_t rows, block, epoch;
  bool atomic;
  uint32_t seq;
};

struct Barrier2;  // the all-block barrier of launch.cpp
struct Launch {
  const char* kernel;
  Range ranges[512 + 2];  // GM buffers, the workspace, the tiling data
  uint32_t range_count;
  const void* tiling;
  uint64_t tiling_bytes, tiling_key;
  uint32_t block_dim;
  Barrier2* barrier;
};

struct Core {
  alignas(64) uint8_t ub[kUbBytes + 256];
  alignas(64) uint32_t good[kUbBlocks];
  alignas(64) uint8_t partial_flag[kUbBlocks];
  alignas(64) uint8_t partial[kUbBytes];
  alignas(64) uint32_t wrote[kPipes][kUbBlocks];
  alignas(64) uint32_t read[kPipes][kUbBlocks];
  uint32_t issued[kPipes];
  Clock clock[kPipes];
  Event events[static_cast<int>(AscendC::HardEvent::MAX)][kEvents];
  Buffer buffers[kMaxBuffers];
  Queue queues[kMaxBuffers];
  uint32_t buffer_count, queue_count, queue_buffers[16], ub_top;
  bool pipe_open, scratch_used;
  void* pipe;
  bool counter_mode, atomic, mask_full;
  uint64_t mask_hi, mask_lo;
  DType atomic_type;
  float deq;
  Launch* launch;
  uint32_t block, epoch;
  std::vector<Written> written;
  const char* api;
  Site site;
  uint32_t generation;
};

extern thread_local Core* t_core;
inline Core& core() { return *t_core; }

[[noreturn]] void Violate(const char* rule, const char* format, ...) __attribute__((format(printf, 2, 3)));

extern bool g_trace;  // read without a lock: recording starts and stops between launches
struct TraceArgs {
  uint64_t bytes = 0, elements = 0;
  uint32_t repeat = 0;
  uint32_t params[4] = {0, 0, 0, 0};
  DType dtype = kNone;
  uint8_t kind = 0, src_pipe = 0, dst_pipe = 0;
  int8_t event_id = -1;
  uint16_t buffer = 0xffff;
};
void TraceRecord(uint8_t pipe, const TraceArgs& a);

constexpr uint32_t kWidths[] = {1, 1, 2, 2, 2, 2, 4, 4, 4, 8, 8, 8, 1};
constexpr uint32_t Width(DType t) { return kWidths[t]; }
const char* Name(DType t);
const char* Name(pipe_t p);

// --- an API entry: who is called from where
// --------------------------------------------------------------------
inline Core& Enter(const char* api, Site at) {
  Core& c = core();
  c.api = api;
  c.site = at;
  return c;
}

// --- one instruction: Begin, check the operands, compute, Commit the operands
// -----------------------------------
struct Operand {
  uint32_t addr;
  uint64_t bytes;
};

uint32_t Begin(Core& c, pipe_t p);
// The whole range must lie in the live buffer the view came from; `align` (32 for vector operands) divides
// the address.
void CheckView(Core& c, const TensorRef& t, uint64_t bytes, uint32_t align, const char* what);
void CheckRead(Core& c, pipe_t p, uint32_t addr, uint64_t bytes, const char* what);
void CheckWrite(Core& c, pipe_t p, uint32_t addr, uint64_t bytes, const char* what);
// allow_same: both operands may be the very same range.
void CheckOverlap(uint32_t a, uint64_t a_bytes, uint32_t b, uint64_t b_bytes, bool allow_same,
                  const char* what);
void MarkRead(Core& c, pipe_t p, uint32_t addr, uint64_t bytes);
void MarkWrite(Core& c, pipe_t p, uint32_t addr, uint64_t bytes);
void UseScratch(Core& c);

// --- initialised bytes
// ------------------------------------------------------------------------------------------
bool AllGood(const Core& c, uint32_t addr, uint64_t bytes);
void SetGood(Core& c, uint32_t addr, uint64_t bytes, bool good);
inline bool ByteGood(const Core& c, uint32_t addr) {
  return (c.good[addr / kBlock] >> (addr % kBlock) & 1u) &&
         !(c.partial_flag[addr / kBlock] && c.partial[addr]);
}
inline bool BytesGood(const Core& c, uint32_t addr, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i)
    if (!ByteGood(c, addr + i)) return false;
  return true;
}
// Bits of the byte that are not initialised.
inline uint8_t BadBits(const Core& c, uint32_t addr) {
  if (!(c.good[addr / kBlock] >> (addr % kBlock) & 1u)) return 0xff;
  return c.partial_flag[addr / kBlock] ? c.partial[addr] : 0;
}
void SetBadBits(Core& c, uint32_t addr, uint8_t bits);
// Copies the state of `bytes` bytes.
void CopyGood(Core& c, uint32_t to, uint32_t from, uint64_t bytes);
// Where the first uninitialised byte is, for messages.
uint32_t FirstBad(const Core& c, uint32_t addr, uint64_t bytes);

// --- GM
// -----------------------------------------------------------------------------------------------------------
void CheckGm(Core& c, const GmRef& g, const uint8_t* from, uint64_t bytes, bool write);
void NoteGmWrite(Core& c, const uint8_t* ptr, uint64_t bytes, uint64_t stride, uint32_t rows, pipe_t p);
void CheckGmOrder(Core& c, const uint8_t* ptr, uint64_t bytes, uint64_t stride, uint32_t rows, pipe_t p);

// --- blocks
// ---------------------------------------------------------------------------------------------------------
void BeginBlock(Core& c, Launch* launch, uint32_t block);
void EndBlock(Core& c);
// Throws a Violation that names the first pair of blocks that wrote the same byte of GM without atomics.
void CheckBlockWrites(const char* kernel, std::vector<Written>& all);

}  // namespace TWIN_ABI
}  // namespace twin
