// Why: runs blocks of a kernel on host threads (launch.h) and keeps what belongs to a launch rather than to a
// core: the comparison of what the blocks wrote, the all-block barrier, and the trace.
#include "../include/twin/launch.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "core.h"

namespace twin {
inline namespace TWIN_ABI {

// All blocks arrive, all leave; a block that died releases the others with an exception.
struct Barrier2 {
  std::mutex mutex;
  std::condition_variable moved;
  uint32_t parties = 0, waiting = 0;
  uint64_t round = 0;
  bool broken = false;
};

namespace {

struct Released {};  // another block's violation ended the launch

std::unique_ptr<Core> NewCore() {
  auto c = std::make_unique<Core>();  // value-initialised: clocks and shadows begin at zero
  return c;
}

Core& ThreadCore() {
  static thread_local std::unique_ptr<Core> owner;
  if (!owner) {
    owner = NewCore();
    t_core = owner.get();
  }
  return *owner;
}

void CopyText(char* to, uint64_t cap, const char* text) {
  if (cap) std::snprintf(to, cap, "%s", text);
}

// Blocks of one launch may come in several RunBlocks calls from several threads, which carry no launch id.
// While a launch runs, the arguments' addresses are its own, so they identify it; a record left by a launch
// that died is dropped when one of its blocks is reported again, and the oldest record goes when there are
// too many.
struct Ledger {
  struct Entry {
    void (*entry)(void**);
    std::vector<void*> args;
    const void* tiling;
    uint32_t block_dim;
    std::vector<bool> done;
    uint32_t done_count = 0;
    std::vector<Written> written;
  };
  std::mutex mutex;
  std::list<Entry> open;
};
Ledger& ledger() {
  static Ledger* l = new Ledger;  // never destroyed: threads may outlive main
  return *l;
}

void Report(const char* kernel, void (*entry)(void**), void* const* gm, uint32_t gm_count, void* workspace,
            const void* tiling, uint32_t block_dim, uint32_t first, uint32_t last,
            std::vector<Written>& written) {
  if (first == 0 && last == block_dim) {
    CheckBlockWrites(kernel, written);
    return;
  }
  std::vector<void*> args(gm, gm + gm_count);
  args.push_back(workspace);
  Ledger& l = ledger();
  std::vector<Written> all;
  {
    std::lock_guard<std::mutex> lock(l.mutex);
    auto it = std::find_if(l.open.begin(), l.open.end(), [&](const Ledger::Entry& e) {
      return e.entry == entry && e.tiling == tiling && e.block_dim == block_dim && e.args == args;
    });
    if (it != l.open.end() &&
        std::find(it->done.begin() + first, it->done.begin() + last, true) != it->done.begin() + last) {
      l.open.erase(it);
      it = l.open.end();
    }
    if (it == l.open.end()) {
      if (l.open.size() >= 64) l.open.pop_front();
      l.open.push_back(Ledger::Entry{entry, args, tiling, block_dim, std::vector<bool>(block_dim), 0, {}});
      it = std::prev(l.open.end());
    }
    std::fill(it->done.begin() + first, it->done.begin() + last, true);
    it->done_count += last - first;
    it->written.insert(it->written.end(), written.begin(), written.end());
    if (it->done_count < block_dim) return;
    all.swap(it->written);
    l.open.erase(it);
  }
  CheckBlockWrites(kernel, all);
}

int32_t RunOne(Core& c, Launch* launch, void (*entry)(void**), void** args, uint32_t block,
               std::vector<Written>& written, char* error, uint64_t cap) {
  try {
    c.written.clear();
    BeginBlock(c, launch, block);
    entry(args);
    EndBlock(c);
    written.insert(written.end(), c.written.begin(), c.written.end());
    return 0;
  } catch (const Violation& v) {
    CopyText(error, cap, v.text);
  } catch (const Released&) {
    return 2;
  } catch (const std::exception& e) {
    char text[256];
    std::snprintf(text, sizeof text, "kernel %s block %u: %s", launch->kernel, block, e.what());
    CopyText(error, cap, text);
  }
  c.pipe_open = false;
  return 1;
}

int32_t RunTogether(Launch* launch, void (*entry)(void**), void** args, uint32_t block_dim,
                    std::vector<Written>& written, char* error, uint64_t cap) {
  Barrier2 barrier;
  barrier.parties = block_dim;
  launch->barrier = &barrier;
#if defined(__SSE2__)
  const unsigned mxcsr = _mm_getcsr();
#endif
  std::mutex collect;
  int32_t result = 0;
  std::vector<std::thread> threads;
  for (uint32_t b = 0; b < block_dim; ++b) {
    threads.emplace_back([&, b] {
#if defined(__SSE2__)
      _mm_setcsr(mxcsr);
#endif
      Core& c = ThreadCore();
      std::vector<Written> mine;
      char text[sizeof(Violation::text)] = "";
      const int32_t r = RunOne(c, launch, entry, args, b, mine, text, sizeof text);
      std::lock_guard<std::mutex> lock(collect);
      written.insert(written.end(), mine.begin(), mine.end());
      if (r) {
        if (r == 1 && result == 0) CopyText(error, cap, text);
        if (r == 1) result = 1;
        std::lock_guard<std::mutex> wake(barrier.mutex);
        barrier.broken = true;
        barrier.moved.notify_all();
      } else {  // a block that ended no longer takes part: the others would wait for it forever
        std::lock_guard<std::mutex> wake(barrier.mutex);
        --barrier.parties;
        if (barrier.waiting) {
          barrier.broken = true;
          barrier.moved.notify_all();
          if (result == 0) {
            std::snprintf(text, sizeof text,
                          "kernel %s block %u: SyncAll: missing block: this block ended while "
                          "others wait in SyncAll; a device waits forever",
                          launch->kernel, b);
            CopyText(error, cap, text);
            result = 1;
          }
        }
      }
    });
  }
  for (std::thread& t : threads) t.join();
  launch->barrier = nullptr;
  return result;
}

}  // namespace

void SyncAllBlocks(Site at) {
  Core& c = Enter("SyncAll", at);
  Barrier(PIPE_ALL, at);
  c.api = "SyncAll";
  if (g_trace) {
    TraceArgs a;
    a.kind = 4;
    TraceRecord(PIPE_ALL, a);
  }
  ++c.epoch;
  if (c.launch->block_dim == 1) return;
  Barrier2* b = c.launch->barrier;
  if (!b)
    Violate("SyncAll",
            "the launch of %u blocks does not run them at the same time: launch with needs_all_blocks",
            c.launch->block_dim);
  std::unique_lock<std::mutex> lock(b->mutex);
  if (b->broken) throw Released();
  if (b->parties < c.launch->block_dim)
    Violate("SyncAll", "another block has ended without this SyncAll: a device waits forever");
  const uint64_t round = b->round;
  if (++b->waiting == b->parties) {
    b->waiting = 0;
    ++b->round;
    b->moved.notify_all();
    return;
  }
  b->moved.wait(lock, [&] { return b->round != round || b->broken; });
  if (b->round == round) throw Released();
}

int32_t RunBlocks(const char* kernel_name, void (*entry)(void** args), void* const* gm,
                  const uint64_t* gm_bytes, const uint8_t* gm_writable, uint32_t gm_count, void* workspace,
                  uint64_t workspace_bytes, const void* tiling, uint64_t tiling_bytes, uint32_t block_dim,
                  uint32_t first, uint32_t last, char* error, uint64_t cap, bool needs_all_blocks,
                  uint64_t tiling_key) {
  constexpr uint32_t kMaxGm = 512;
  if (cap) error[0] = 0;
  if (gm_count > kMaxGm || first > last || last > block_dim ||
      (needs_all_blocks && (first != 0 || last != block_dim))) {
    char text[256];
    std::snprintf(text, sizeof text,
                  "kernel %s: launch: bad arguments: %u GM buffers (at most %u), blocks [%u, %u) "
                  "of %u%s",
                  kernel_name, gm_count, kMaxGm, first, last, block_dim,
                  needs_all_blocks ? ", all needed at once" : "");
    CopyText(error, cap, text);
    return 1;
  }
  try {
    Launch launch{};
    launch.kernel = kernel_name;
    uint32_t inputs = 0, outputs = 0;
    for (uint32_t i = 0; i < gm_count; ++i) {
      const bool w = gm_writable[i] != 0;
      launch.ranges[launch.range_count++] = Range{static_cast<const uint8_t*>(gm[i]), gm_bytes[i], w,
                                                  w ? "output" : "input", w ? outputs++ : inputs++};
    }
    launch.ranges[launch.range_count++] =
        Range{static_cast<const uint8_t*>(workspace), workspace_bytes, true, "workspace", 0};
    launch.ranges[launch.range_count++] =
        Range{static_cast<const uint8_t*>(tiling), tiling_bytes, false, "tiling data", 0};
    launch.tiling = tiling;
    launch.tiling_bytes = tiling_bytes;
    launch.tiling_key = tiling_key;
    launch.block_dim = block_dim;

    void* args[kMaxGm + 2];
    std::copy(gm, gm + gm_count, args);
    args[gm_count] = workspace;
    args[gm_count + 1] = const_cast<void*>(tiling);

    std::vector<Written> written;
    if (needs_all_blocks && block_dim > 1) {
      const int32_t r = RunTogether(&launch, entry, args, block_dim, written, error, cap);
      if (r) return r;
    } else {
      Core& c = ThreadCore();
      for (uint32_t b = first; b < last; ++b) {
        const int32_t r = RunOne(c, &launch, entry, args, b, written, error, cap);
        if (r) return r;
      }
    }
#if TWIN_CHECK
    if (block_dim > 1 && first < last)
      Report(kernel_name, entry, gm, gm_count, workspace, tiling, block_dim, first, last, written);
#endif
    return 0;
  } catch (const Violation& v) {
    CopyText(error, cap, v.text);
  } catch (const std::exception& e) {
    CopyText(error, cap, e.what());
  }
  return 1;
}

// --- trace
// --------------------------------------------------------------------------------------------------------
bool g_trace = false;
namespace {
struct Trace {
  std::mutex mutex;
  std::vector<TwinTraceRecord> records;
  uint64_t limit = 0;
};
Trace& trace() {
  static Trace* t = new Trace;
  return *t;
}
}  // namespace

void TraceRecord(uint8_t pipe, const TraceArgs& a) {
  Core& c = core();
  Trace& t = trace();
  std::lock_guard<std::mutex> lock(t.mutex);
  if (t.records.size() >= t.limit) return;
  TwinTraceRecord r{};
  r.block = c.block;
  r.line = c.site.line;
  r.api = c.api;
  r.file = c.site.file;
  r.bytes = a.bytes;
  r.elements = a.elements;
  r.repeat = a.repeat;
  std::copy(a.params, a.params + 4, r.params);
  r.pipe = pipe;
  r.dtype = a.dtype;
  r.kind = a.kind;
  r.src_pipe = a.src_pipe;
  r.dst_pipe = a.dst_pipe;
  r.event_id = a.event_id;
  r.buffer = a.buffer;
  t.records.push_back(r);
}

}  // namespace TWIN_ABI
}  // namespace twin

extern "C" void twin_trace_begin(uint64_t limit) {
  twin::Trace& t = twin::trace();
  std::lock_guard<std::mutex> lock(t.mutex);
  t.records.clear();
  t.limit = limit ? limit : 1u << 20;
  twin::g_trace = true;
}

extern "C" uint64_t twin_trace_end(const TwinTraceRecord** records) {
  twin::Trace& t = twin::trace();
  std::lock_guard<std::mutex> lock(t.mutex);
  twin::g_trace = false;
  *records = t.records.data();
  return t.records.size();
}
