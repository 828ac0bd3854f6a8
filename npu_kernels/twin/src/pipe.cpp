// Why: buffers, queues, events and barriers (pipe.h) on the core's state. On a device most misuse here hangs;
// the twin says what would hang.
#include <algorithm>

#include "core.h"

namespace twin {
inline namespace TWIN_ABI {

using AscendC::HardEvent;
using AscendC::TPosition;

namespace {

struct PipePair {
  pipe_t src, dst;
};
constexpr PipePair kPairs[] = {{PIPE_S, PIPE_V},       {PIPE_S, PIPE_MTE2},    {PIPE_S, PIPE_MTE3},
                               {PIPE_V, PIPE_S},       {PIPE_V, PIPE_V},       {PIPE_V, PIPE_MTE2},
                               {PIPE_V, PIPE_MTE3},    {PIPE_MTE2, PIPE_S},    {PIPE_MTE2, PIPE_V},
                               {PIPE_MTE2, PIPE_MTE2}, {PIPE_MTE2, PIPE_MTE3}, {PIPE_MTE3, PIPE_S},
                               {PIPE_MTE3, PIPE_V},    {PIPE_MTE3, PIPE_MTE2}, {PIPE_MTE3, PIPE_MTE3}};

HardEvent EventOf(pipe_t src, pipe_t dst) {
  for (int i = 0; i < static_cast<int>(HardEvent::MAX); ++i)
    if (kPairs[i].src == src && kPairs[i].dst == dst) return static_cast<HardEvent>(i);
  return HardEvent::MAX;
}

const char* PositionName(TPosition p) {
  switch (p) {
    case TPosition::GM:
      return "GM";
    case TPosition::VECIN:
      return "VECIN";
    case TPosition::VECOUT:
      return "VECOUT";
    case TPosition::VECCALC:
      return "VECCALC";
    default:
      return "a cube position";
  }
}

Clock Snapshot(const Core& c, pipe_t p) {
  Clock k = c.clock[p];
  k.seen[p] = c.issued[p];
  if (p != PIPE_S)
    for (uint32_t q = PIPE_V; q < kPipes; ++q) k.seen[q] = std::max(k.seen[q], c.clock[PIPE_S].seen[q]);
  return k;
}
void Join(Core& c, pipe_t p, const Clock& k) {
  for (uint32_t q = 0; q < kPipes; ++q) c.clock[p].seen[q] = std::max(c.clock[p].seen[q], k.seen[q]);
}

void TraceFlag(uint8_t kind, HardEvent event, int32_t id, uint16_t buffer) {
  if (!g_trace) return;
  TraceArgs a;
  a.kind = kind;
  a.src_pipe = kPairs[static_cast<int>(event)].src;
  a.dst_pipe = kPairs[static_cast<int>(event)].dst;
  a.event_id = static_cast<int8_t>(id);
  a.buffer = buffer;
  TraceRecord(kind == 1 ? a.src_pipe : a.dst_pipe, a);
}

// Producer and consumer pipe of a queue: data from GM arrives by MTE2, leaves to GM by MTE3, else V works on
// it.
pipe_t Producer(const QueueSpec& s) {
  return s.src == TPosition::GM || s.src == TPosition::VECIN ? PIPE_MTE2 : PIPE_V;
}
pipe_t Consumer(const QueueSpec& s) {
  return s.dst == TPosition::GM || s.dst == TPosition::VECOUT ? PIPE_MTE3 : PIPE_V;
}

int8_t TakeEvent(Core& c, HardEvent event) {
  if (event == HardEvent::V_V) return -1;  // a barrier on the device, no event
  Event* e = c.events[static_cast<int>(event)];
  for (uint32_t i = 0; i < kEvents; ++i) {
    if (e[i].taken || e[i].set) continue;
    e[i].taken = true;
    return static_cast<int8_t>(i);
  }
  Violate("out of event ids", "all %u ids of event %s_%s are taken; a device hangs here", kEvents,
          Name(kPairs[static_cast<int>(event)].src), Name(kPairs[static_cast<int>(event)].dst));
}
void GiveEvent(Core& c, HardEvent event, int8_t id) {
  if (id >= 0) c.events[static_cast<int>(event)][id].taken = false;
}

Queue& QueueAt(Core& c, uint16_t id) {
  if (id >= c.queue_count) Violate("queue misuse", "the queue was not given buffers with TPipe::InitBuffer");
  return c.queues[id];
}
Buffer& OwnBuffer(Core& c, Queue& q, const TensorRef& t, const char* verb) {
  if (t.buffer < q.first || t.buffer >= q.first + q.count)
    Violate("queue misuse", "%s of a tensor that is not from this queue", verb);
  Buffer& b = c.buffers[t.buffer];
  if (t.generation != b.generation || b.state == kFree)
    Violate("queue misuse", "%s of buffer %u, which was freed already (freed twice, or used after free)",
            verb, t.buffer);
  return b;
}

uint16_t NewBuffer(Core& c, uint32_t bytes) {
  if (!c.pipe_open) Violate("queue misuse", "InitBuffer without a live TPipe");
  if (c.buffer_count == kMaxBuffers) Violate("too many buffers", "a kernel may have %u buffers", kMaxBuffers);
  if (bytes == 0) Violate("UB overflow", "a buffer of 0 bytes");
  const uint64_t size = (uint64_t(bytes) + kBlock - 1) / kBlock * kBlock;
  const uint32_t limit = c.scratch_used ? kUbBesideScratch : kUbUsable;
  if (c.ub_top + size > limit)
    Violate("UB overflow", "a buffer of %llu bytes after %u in use exceeds the %u usable bytes of UB",
            static_cast<unsigned long long>(size), c.ub_top, limit);
  const uint16_t id = static_cast<uint16_t>(c.buffer_count++);
  Buffer& b = c.buffers[id];
  b = Buffer{c.ub_top, static_cast<uint32_t>(size), ++c.generation, kFree, 0xffff, Clock{}, false, -1};
  SetGood(c, b.addr, b.bytes, false);
  c.ub_top += static_cast<uint32_t>(size);
  return id;
}

TensorRef View(const Core& c, uint16_t id, TPosition position) {
  const Buffer& b = c.buffers[id];
  return TensorRef{b.addr, b.bytes, b.generation, id, position};
}

void DropBuffers(Core& c) {
  for (uint32_t i = 0; i < c.buffer_count; ++i) {
    Buffer& b = c.buffers[i];
    if (b.event >= 0 && b.queue != 0xffff) {
      const QueueSpec& s = c.queues[b.queue].spec;
      GiveEvent(c, b.state == kQueued ? EventOf(Producer(s), Consumer(s)) : EventOf(Consumer(s), Producer(s)),
                b.event);
    }
    b.state = kDead;
  }
}

void CheckAllFreed(Core& c) {
  for (uint32_t i = 0; i < c.buffer_count; ++i) {
    const Buffer& b = c.buffers[i];
    if (b.queue == 0xffff) continue;
    if (b.state == kQueued)
      Violate("queue misuse", "buffer %u of queue %u was enqueued and never dequeued", i, b.queue);
    if (b.state != kFree && b.state != kDead)
      Violate("queue misuse", "buffer %u of queue %u was allocated and never freed", i, b.queue);
  }
}

}  // namespace

uint8_t* UbPointer(const TensorRef& t) { return core().ub + t.addr; }

void PipeOpen(void* pipe, Site at) {
  Core& c = Enter("TPipe", at);
  if (c.pipe_open) Violate("two pipes", "a kernel may have one live TPipe");
  if (c.buffer_count) PipeReset(at);  // a pipe after another one: the first one's buffers are gone
  c.pipe_open = true;
  c.pipe = pipe;
}
void* LivePipe(Site at) {
  Core& c = Enter("GetTPipePtr", at);
  if (!c.pipe_open) Violate("queue misuse", "no TPipe is live");
  return c.pipe;
}
void PipeClose() {
  if (t_core) t_core->pipe_open = false;
}
void PipeReset(Site at) {
  Core& c = Enter("TPipe::Reset", at);
  CheckAllFreed(c);
  DropBuffers(c);
  Barrier(PIPE_ALL, at);
  c.buffer_count = c.queue_count = c.ub_top = 0;
  std::memset(c.queue_buffers, 0, sizeof c.queue_buffers);
}

uint16_t InitQueue(const QueueSpec& spec, uint32_t count, uint32_t bytes, Site at) {
  Core& c = Enter("TPipe::InitBuffer", at);
  const TPosition home = spec.src == TPosition::GM ? spec.dst : spec.src;
  if (home != TPosition::VECIN && home != TPosition::VECOUT && home != TPosition::VECCALC)
    Violate("unsupported", "a queue in %s: the twin is a vector core", PositionName(home));
  if (count == 0) Violate("queue misuse", "a queue of 0 buffers");
  uint32_t& used = c.queue_buffers[static_cast<int>(home)];
  if (used + count > kMaxQueueBuffers)
    Violate("too many queue buffers", "%u more in %s after %u; %u have a hardware event", count,
            PositionName(home), used, kMaxQueueBuffers);
  used += count;
  const uint16_t id = static_cast<uint16_t>(c.queue_count++);
  Queue& q = c.queues[id];
  q.spec = spec;
  q.queued = 0;
  q.cursor = 0;
  q.count = static_cast<uint16_t>(count);
  for (uint32_t i = 0; i < count; ++i) {
    const uint16_t b = NewBuffer(c, bytes);
    if (i == 0) q.first = b;
    c.buffers[b].queue = id;
  }
  return id;
}

uint16_t InitCalc(TPosition position, uint32_t bytes, Site at) {
  Core& c = Enter("TPipe::InitBuffer", at);
  if (position != TPosition::VECIN && position != TPosition::VECOUT && position != TPosition::VECCALC)
    Violate("unsupported", "a TBuf in %s: the twin is a vector core", PositionName(position));
  const uint16_t b = NewBuffer(c, bytes);
  c.buffers[b].state = kCalc;
  return b;
}

TensorRef QueueAlloc(uint16_t queue, Site at) {
  Core& c = Enter("TQue::AllocTensor", at);
  Queue& q = QueueAt(c, queue);
  for (uint16_t tried = 0; tried < q.count; ++tried) {
    const uint16_t i = static_cast<uint16_t>(q.first + (q.cursor + tried) % q.count);
    Buffer& b = c.buffers[i];
    if (b.state != kFree) continue;
    q.cursor = static_cast<uint16_t>((i - q.first + 1) % q.count);
    if (b.has_ready) {
      const pipe_t producer = Producer(q.spec);
      const HardEvent event = EventOf(Consumer(q.spec), producer);
      Join(c, producer, b.ready);
      TraceFlag(2, event, b.event, i);
      GiveEvent(c, event, b.event);
      b.event = -1;
    }
    b.state = kAllocated;
    b.generation = ++c.generation;
    SetGood(c, b.addr, b.bytes, false);
    return View(c, i, q.spec.src == TPosition::GM ? q.spec.dst : q.spec.src);
  }
  Violate("queue misuse", "AllocTensor with all %u buffers in use: a device waits forever", q.count);
}

void QueuePush(uint16_t queue, const TensorRef& t, Site at) {
  Core& c = Enter("TQue::EnQue", at);
  Queue& q = QueueAt(c, queue);
  Buffer& b = OwnBuffer(c, q, t, "EnQue");
  if (b.state == kQueued)
    Violate("queue misuse", "EnQue of buffer %u, which is in the queue already", t.buffer);
  const int32_t depth = std::max<int32_t>(q.spec.depth, 1);
  if (q.queued >= depth)
    Violate("queue misuse", "EnQue into a full queue (depth %d): DeQue first or declare a deeper queue",
            depth);
  const pipe_t producer = Producer(q.spec);
  const HardEvent event = EventOf(producer, Consumer(q.spec));
  b.event = TakeEvent(c, event);
  b.ready = Snapshot(c, producer);
  b.state = kQueued;
  q.order[q.queued++] = t.buffer;
  TraceFlag(1, event, b.event, t.buffer);
}

TensorRef QueuePop(uint16_t queue, Site at) {
  Core& c = Enter("TQue::DeQue", at);
  Queue& q = QueueAt(c, queue);
  if (!q.queued) Violate("queue misuse", "DeQue before EnQue: the queue is empty, a device waits forever");
  const uint16_t id = q.order[0];
  std::copy(q.order + 1, q.order + q.queued, q.order);
  --q.queued;
  Buffer& b = c.buffers[id];
  const pipe_t consumer = Consumer(q.spec);
  const HardEvent event = EventOf(Producer(q.spec), consumer);
  Join(c, consumer, b.ready);
  TraceFlag(2, event, b.event, id);
  GiveEvent(c, event, b.event);
  b.event = -1;
  b.state = kDequeued;
  return View(c, id, q.spec.dst == TPosition::GM ? q.spec.src : q.spec.dst);
}

void QueueFree(uint16_t queue, const TensorRef& t, Site at) {
  Core& c = Enter("TQue::FreeTensor", at);
  Queue& q = QueueAt(c, queue);
  Buffer& b = OwnBuffer(c, q, t, "FreeTensor");
  if (b.state == kQueued)
    Violate("queue misuse", "FreeTensor of buffer %u while it is in the queue", t.buffer);
  const pipe_t consumer = Consumer(q.spec);
  const HardEvent event = EventOf(consumer, Producer(q.spec));
  b.event = TakeEvent(c, event);
  b.ready = Snapshot(c, consumer);
  if (b.state ==
      kAllocated) {  // freed without having gone through the queue: the producer's own work counts too
    const Clock own = Snapshot(c, Producer(q.spec));
    for (uint32_t p = 0; p < kPipes; ++p) b.ready.seen[p] = std::max(b.ready.seen[p], own.seen[p]);
  }
  b.has_ready = true;
  b.state = kFree;
  TraceFlag(1, event, b.event, t.buffer);
}

bool QueueHasFree(uint16_t queue) {
  Core& c = core();
  const Queue& q = QueueAt(c, queue);
  for (uint16_t i = q.first; i < q.first + q.count; ++i)
    if (c.buffers[i].state == kFree) return true;
  return false;
}
bool QueueHasTensor(uint16_t queue) { return QueueAt(core(), queue).queued > 0; }
int32_t QueueTensorCount(uint16_t queue) { return QueueAt(core(), queue).queued; }

TensorRef CalcGet(uint16_t calc, uint64_t bytes, bool whole, Site at) {
  Core& c = Enter("TBuf::Get", at);
  if (calc >= c.buffer_count) Violate("queue misuse", "the TBuf was not given bytes with TPipe::InitBuffer");
  TensorRef t = View(c, calc, TPosition::VECCALC);
  if (!whole && bytes > t.bytes)
    Violate("UB overflow", "a view of %llu bytes of a TBuf of %u", static_cast<unsigned long long>(bytes),
            t.bytes);
  if (!whole) t.bytes = static_cast<uint32_t>(bytes);
  return t;
}
TensorRef CalcGetAt(uint16_t calc, uint64_t offset, uint64_t bytes, Site at) {
  TensorRef t = CalcGet(calc, offset + bytes, false, at);
  if (offset % kBlock)
    Violate("misaligned UB address", "offset %llu", static_cast<unsigned long long>(offset));
  t.addr += static_cast<uint32_t>(offset);
  t.bytes = static_cast<uint32_t>(bytes);
  return t;
}

namespace {
Event& EventAt(Core& c, HardEvent event, int32_t id) {
  if (id < 0 || id >= static_cast<int32_t>(kEvents))
    Violate("wrong event id", "id %d; ids are 0 to %u", id, kEvents - 1);
  return c.events[static_cast<int>(event)][id];
}
}  // namespace

void SetEvent(HardEvent event, int32_t id, Site at) {
  Core& c = Enter("SetFlag", at);
  Event& e = EventAt(c, event, id);
  const PipePair pair = kPairs[static_cast<int>(event)];
  if (e.set)
    Violate("wrong event id", "SetFlag %s_%s id %d set twice without a WaitFlag (first at line %u)",
            Name(pair.src), Name(pair.dst), id, e.site.line);
  for (uint32_t i = 0; i < c.buffer_count; ++i) {
    const Buffer& b = c.buffers[i];
    if (b.event != id || b.queue == 0xffff || b.state == kDead) continue;
    const QueueSpec& s = c.queues[b.queue].spec;
    if (event == (b.state == kQueued ? EventOf(Producer(s), Consumer(s)) : EventOf(Consumer(s), Producer(s))))
      Violate("wrong event id",
              "SetFlag %s_%s id %d while queue %u holds that id: take one from AllocEventID", Name(pair.src),
              Name(pair.dst), id, b.queue);
  }
  e.set = true;
  e.site = at;
  e.at = Snapshot(c, pair.src);
  TraceFlag(1, event, id, 0xffff);
}

void WaitEvent(HardEvent event, int32_t id, Site at) {
  Core& c = Enter("WaitFlag", at);
  Event& e = EventAt(c, event, id);
  const PipePair pair = kPairs[static_cast<int>(event)];
  if (!e.set)
    Violate("wrong event id", "WaitFlag %s_%s id %d without a SetFlag: a device waits forever",
            Name(pair.src), Name(pair.dst), id);
  e.set = false;
  Join(c, pair.dst, e.at);
  TraceFlag(2, event, id, 0xffff);
}

int32_t AllocEvent(HardEvent event, bool keep, Site at) {
  Core& c = Enter(keep ? "TPipe::AllocEventID" : "TPipe::FetchEventID", at);
  const int8_t id = TakeEvent(c, event);
  if (!keep) GiveEvent(c, event, id);
  return id;
}
void ReleaseEvent(HardEvent event, int32_t id, Site at) {
  Core& c = Enter("TPipe::ReleaseEventID", at);
  Event& e = EventAt(c, event, id);
  if (!e.taken) Violate("wrong event id", "ReleaseEventID of id %d, which is not allocated", id);
  if (e.set) Violate("wrong event id", "ReleaseEventID of id %d while its flag is set", id);
  e.taken = false;
}

void Barrier(pipe_t pipe, Site at) {
  Core& c = Enter("PipeBarrier", at);
  if (pipe == PIPE_ALL) {
    for (uint32_t p = 0; p < kPipes; ++p)
      for (uint32_t q = 0; q < kPipes; ++q) c.clock[p].seen[q] = c.issued[q];
  } else if (pipe < PIPE_M) {
    c.clock[pipe].seen[pipe] = c.issued[pipe];
  }
  if (g_trace) {
    TraceArgs a;
    a.kind = 3;
    TraceRecord(pipe, a);
  }
}

int64_t BlockIdx() { return core().block; }
int64_t BlockNum() { return core().launch->block_dim; }
uint64_t TilingKey() { return core().launch->tiling_key; }

void CopyTiling(void* to, const void* from, uint64_t bytes, Site at) {
  Core& c = Enter("GET_TILING_DATA", at);
  if (from != c.launch->tiling)
    Violate("GM out of bounds", "the tiling address is not the launch's tiling data");
  if (bytes > c.launch->tiling_bytes)
    Violate("GM out of bounds", "the tiling struct has %llu bytes, the launch gave %llu",
            static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(c.launch->tiling_bytes));
  std::memcpy(to, from, bytes);
}

void BeginBlock(Core& c, Launch* launch, uint32_t block) {
  c.launch = launch;
  c.block = block;
  c.epoch = 0;
  c.api = "kernel";
  c.site = Site{"", 0};
  if (*std::max_element(c.issued, c.issued + kPipes) >
      0x3fffffffu) {  // they must stay below 2^31 within a block
    std::memset(c.wrote, 0, sizeof c.wrote);
    std::memset(c.read, 0, sizeof c.read);
    std::memset(c.issued, 0, sizeof c.issued);
  }
  for (uint32_t p = 0; p < kPipes; ++p) std::copy(c.issued, c.issued + kPipes, c.clock[p].seen);
  std::memset(c.events, 0, sizeof c.events);
  std::memset(c.queue_buffers, 0, sizeof c.queue_buffers);
  c.buffer_count = c.queue_count = c.ub_top = 0;
  c.pipe_open = c.scratch_used = c.counter_mode = c.atomic = false;
  c.mask_hi = c.mask_lo = ~0ull;
  c.mask_full = true;
  c.deq = 0;
}

void EndBlock(Core& c) {
  c.api = "end of kernel";
  CheckAllFreed(c);
  for (int e = 0; e < static_cast<int>(HardEvent::MAX); ++e)
    for (uint32_t i = 0; i < kEvents; ++i)
      if (c.events[e][i].set)
        Violate("wrong event id", "flag %s_%s id %u set at line %u is never waited for", Name(kPairs[e].src),
                Name(kPairs[e].dst), i, c.events[e][i].site.line);
  if (c.counter_mode) Violate("mask mode", "the kernel ends in Counter mode: call SetMaskNorm and ResetMask");
  if (!c.mask_full) Violate("mask mode", "the kernel ends with a partial vector mask: call ResetMask");
  if (c.atomic) Violate("atomic mode", "the kernel ends with atomic accumulation on: call SetAtomicNone");
  DropBuffers(c);
}

}  // namespace TWIN_ABI
}  // namespace twin
