// Why: the checks of core.h: views, hazards, initialised bytes, GM bounds. On entry Core::api and Core::site
// name the call under check; a violation leaves by exception with rule and values, the launcher adds nothing
// but its return.
#include "core.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

namespace twin {
inline namespace TWIN_ABI {

thread_local Core* t_core = nullptr;

void Violate(const char* rule, const char* format, ...) {
  Core& c = core();
  Violation v;
  int n = std::snprintf(v.text, sizeof v.text,
                        "kernel %s block %u: %s:%u: %s: %s: ", c.launch ? c.launch->kernel : "?", c.block,
                        c.site.file, c.site.line, c.api, rule);
  if (n > 0 && n < static_cast<int>(sizeof v.text)) {
    va_list args;
    va_start(args, format);
    std::vsnprintf(v.text + n, sizeof v.text - n, format, args);
    va_end(args);
  }
  throw v;
}

const char* Name(DType t) {
  static const char* const names[] = {"uint8",  "int8",  "int16", "uint16", "half",   "bfloat16", "int32",
                                      "uint32", "float", "int64", "uint64", "double", "none"};
  return names[t];
}
const char* Name(pipe_t p) {
  static const char* const names[] = {"S", "V", "MTE2", "MTE3", "M", "MTE1", "ALL"};
  return names[p];
}

#if TWIN_CHECK

uint32_t Begin(Core& c, pipe_t p) {
  // The scalar unit issues in program order: what it has waited for is complete. Its own accesses are not
  // covered.
  if (p != PIPE_S) {
    for (uint32_t q = PIPE_V; q < kPipes; ++q)
      c.clock[p].seen[q] = std::max(c.clock[p].seen[q], c.clock[PIPE_S].seen[q]);
  }
  return ++c.issued[p];
}

void CheckView(Core& c, const TensorRef& t, uint64_t bytes, uint32_t align, const char* what) {
  if (t.buffer >= c.buffer_count)
    Violate("invalid tensor", "%s was never allocated from a queue or TBuf", what);
  const Buffer& b = c.buffers[t.buffer];
  if (t.generation != b.generation || b.state == kFree || b.state == kDead)
    Violate("use after free", "%s at UB 0x%x belongs to buffer %u, which was freed", what, t.addr, t.buffer);
  if (b.state == kQueued)
    Violate("queue misuse", "%s at UB 0x%x is in a queue: use what DeQue returns", what, t.addr);
  if (t.addr < b.addr || t.addr + bytes > uint64_t(b.addr) + b.bytes)
    Violate("UB overflow", "%s spans bytes [%lld, %lld) of buffer %u, which has %u", what,
            static_cast<long long>(t.addr) - b.addr,
            static_cast<long long>(t.addr) - b.addr + (long long)bytes, t.buffer, b.bytes);
  if (t.addr % align)
    Violate("misaligned UB address", "%s at UB 0x%x (byte %u of buffer %u) is not %u B aligned", what, t.addr,
            t.addr - b.addr, t.buffer, align);
}

namespace {
// Whether a block's instruction number is neither covered by `seen` nor the running instruction itself.
// Numbers stay below 2^31 (BeginBlock), so signed compares do, which every x86-64 has as vector instructions.
bool Uncovered(const uint32_t* at, uint32_t first, uint32_t last, uint32_t seen, uint32_t self) {
  int32_t any = 0;
  const int32_t covered = static_cast<int32_t>(seen), own = static_cast<int32_t>(self);
  for (uint32_t i = first; i < last; ++i) {
    const int32_t v = static_cast<int32_t>(at[i]);
    any |= -(v > covered) & -(v != own);
  }
  return any != 0;
}

[[noreturn]] void Hazard(const char* kind, pipe_t p, uint32_t q, const char* what, uint32_t addr,
                         uint64_t bytes) {
  const pipe_t other = static_cast<pipe_t>(q);
  if (p == other)
    Violate("hazard", "%s inside pipe %s on %s at UB [0x%x, 0x%llx): PipeBarrier<PIPE_%s> is missing", kind,
            Name(p), what, addr, static_cast<unsigned long long>(addr + bytes), Name(p));
  Violate("hazard",
          "%s: pipe %s on %s at UB [0x%x, 0x%llx) does not wait for pipe %s (flag %s_%s or a queue)", kind,
          Name(p), what, addr, static_cast<unsigned long long>(addr + bytes), Name(other), Name(other),
          Name(p));
}

// Whether anything of pipe q may still be running when the next instruction of p starts; `mine` for the
// running one.
inline bool MayRun(const Core& c, pipe_t p, uint32_t q) {
  const uint32_t issued = q == p ? c.issued[q] - 1 : c.issued[q];
  return issued > c.clock[p].seen[q];
}
}  // namespace

void CheckRead(Core& c, pipe_t p, uint32_t addr, uint64_t bytes, const char* what) {
  if (!bytes) return;
  const uint32_t first = addr / kBlock, last = (addr + bytes + kBlock - 1) / kBlock;
  for (uint32_t q = 0; q < kPipes; ++q) {
    if (q == p && p == PIPE_S) continue;  // the scalar unit is in order
    if (!MayRun(c, p, q)) continue;
    if (Uncovered(c.wrote[q], first, last, c.clock[p].seen[q], q == p ? c.issued[p] : 0))
      Hazard("read after write", p, q, what, addr, bytes);
  }
}

void CheckWrite(Core& c, pipe_t p, uint32_t addr, uint64_t bytes, const char* what) {
  if (!bytes) return;
  const uint32_t first = addr / kBlock, last = (addr + bytes + kBlock - 1) / kBlock;
  for (uint32_t q = 0; q < kPipes; ++q) {
    if (q == p && p == PIPE_S) continue;
    if (!MayRun(c, p, q)) continue;
    const uint32_t self = q == p ? c.issued[p] : 0;
    if (Uncovered(c.wrote[q], first, last, c.clock[p].seen[q], self))
      Hazard("write after write", p, q, what, addr, bytes);
    if (Uncovered(c.read[q], first, last, c.clock[p].seen[q], self))
      Hazard("write after read", p, q, what, addr, bytes);
  }
}

void CheckOverlap(uint32_t a, uint64_t a_bytes, uint32_t b, uint64_t b_bytes, bool allow_same,
                  const char* what) {
  if (!a_bytes || !b_bytes || a + a_bytes <= b || b + b_bytes <= a) return;
  if (allow_same && a == b && a_bytes == b_bytes) return;
  Violate("overlap", "dst UB [0x%x, 0x%llx) overlaps %s UB [0x%x, 0x%llx)%s", a,
          static_cast<unsigned long long>(a + a_bytes), what, b, static_cast<unsigned long long>(b + b_bytes),
          allow_same ? "; only the very same range may be used in place" : "; in-place use is not allowed");
}

void MarkRead(Core& c, pipe_t p, uint32_t addr, uint64_t bytes) {
  if (!bytes) return;
  std::fill(c.read[p] + addr / kBlock, c.read[p] + (addr + bytes + kBlock - 1) / kBlock, c.issued[p]);
}
void MarkWrite(Core& c, pipe_t p, uint32_t addr, uint64_t bytes) {
  if (!bytes) return;
  std::fill(c.wrote[p] + addr / kBlock, c.wrote[p] + (addr + bytes + kBlock - 1) / kBlock, c.issued[p]);
}

void UseScratch(Core& c) {
  c.scratch_used = true;
  if (c.ub_top > kUbBesideScratch)
    Violate("UB overflow",
            "this call uses the 8 KiB scratch at the end of UB; buffers end at %u, at most %u may", c.ub_top,
            kUbBesideScratch);
}

namespace {
// Whether one of the block's bytes in `mask` has uninitialised bits.
bool PartlyBad(const Core& c, uint32_t block, uint32_t mask) {
  if (!c.partial_flag[block]) return false;
  for (uint32_t i = 0; i < kBlock; ++i)
    if ((mask >> i & 1u) && c.partial[block * kBlock + i]) return true;
  return false;
}
}  // namespace

bool AllGood(const Core& c, uint32_t addr, uint64_t bytes) {
  if (!bytes) return true;
  uint32_t first = addr / kBlock, last = (addr + bytes) / kBlock;  // [first, last) whole blocks once trimmed
  const uint32_t head = addr % kBlock, tail = (addr + bytes) % kBlock;
  uint32_t all = ~0u, flags = 0;
  if (first == last) {
    const uint32_t need = ((bytes >= 32 ? 0u : 1u << bytes) - 1u) << head;
    return (c.good[first] & need) == need && !PartlyBad(c, first, need);
  }
  if (head) {
    const uint32_t need = ~0u << head;
    if ((c.good[first] & need) != need || PartlyBad(c, first, need)) return false;
    ++first;
  }
  for (uint32_t i = first; i < last; ++i) all &= c.good[i];
  for (uint32_t i = first; i < last; ++i) flags |= c.partial_flag[i];
  if (all != ~0u) return false;
  for (uint32_t i = first; flags && i < last; ++i)
    if (PartlyBad(c, i, ~0u)) return false;
  if (tail) {
    const uint32_t need = (1u << tail) - 1u;
    if ((c.good[last] & need) != need || PartlyBad(c, last, need)) return false;
  }
  return true;
}

namespace {
void SetWord(Core& c, uint32_t block, uint32_t mask, bool good) {
  if (good)
    c.good[block] |= mask;
  else
    c.good[block] &= ~mask;
  if (c.partial_flag[block]) {
    if (mask == ~0u) {
      c.partial_flag[block] = 0;
    } else {
      for (uint32_t i = 0; i < kBlock; ++i)
        if (mask >> i & 1u) c.partial[block * kBlock + i] = 0;
    }
  }
}
}  // namespace

void SetGood(Core& c, uint32_t addr, uint64_t bytes, bool good) {
  if (!bytes) return;
  uint32_t first = addr / kBlock;
  const uint32_t last = (addr + bytes) / kBlock, head = addr % kBlock, tail = (addr + bytes) % kBlock;
  if (first == last) {
    SetWord(c, first, ((1u << bytes) - 1u) << head, good);
    return;
  }
  if (head) SetWord(c, first++, ~0u << head, good);
  if (first < last) {
    std::fill(c.good + first, c.good + last, good ? ~0u : 0u);
    std::memset(c.partial_flag + first, 0, last - first);
  }
  if (tail) SetWord(c, last, (1u << tail) - 1u, good);
}

void SetBadBits(Core& c, uint32_t addr, uint8_t bits) {
  SetGood(c, addr, 1, bits != 0xff);
  if (bits == 0 || bits == 0xff) return;
  const uint32_t block = addr / kBlock;
  if (!c.partial_flag[block]) {
    std::memset(c.partial + block * kBlock, 0, kBlock);
    c.partial_flag[block] = 1;
  }
  c.partial[addr] = bits;
}

void CopyGood(Core& c, uint32_t to, uint32_t from, uint64_t bytes) {
  if (AllGood(c, from, bytes)) {
    SetGood(c, to, bytes, true);
    return;
  }
  for (uint64_t i = 0; i < bytes; ++i) SetBadBits(c, to + i, BadBits(c, from + i));
}

uint32_t FirstBad(const Core& c, uint32_t addr, uint64_t bytes) {
  for (uint64_t i = 0; i < bytes; ++i)
    if (BadBits(c, addr + i)) return addr + i;
  return addr;
}

#else

uint32_t Begin(Core&, pipe_t) { return 0; }
void CheckView(Core&, const TensorRef&, uint64_t, uint32_t, const char*) {}
void CheckRead(Core&, pipe_t, uint32_t, uint64_t, const char*) {}
void CheckWrite(Core&, pipe_t, uint32_t, uint64_t, const char*) {}
void CheckOverlap(uint32_t, uint64_t, uint32_t, uint64_t, bool, const char*) {}
void MarkRead(Core&, pipe_t, uint32_t, uint64_t) {}
void MarkWrite(Core&, pipe_t, uint32_t, uint64_t) {}
void UseScratch(Core&) {}
bool AllGood(const Core&, uint32_t, uint64_t) { return true; }
void SetGood(Core&, uint32_t, uint64_t, bool) {}
void SetBadBits(Core&, uint32_t, uint8_t) {}
void CopyGood(Core&, uint32_t, uint32_t, uint64_t) {}
uint32_t FirstBad(const Core&, uint32_t addr, uint64_t) { return addr; }

#endif

}  // namespace TWIN_ABI
}  // namespace twin
