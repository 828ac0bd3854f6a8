// Why: see vector_base.h. The order in every frame is: views, Begin, hazards of all operands, compute, marks;
// so an in-place operand is checked against earlier instructions only.
#include "vector_base.h"

#include <algorithm>

namespace twin {
inline namespace TWIN_ABI {

void UnsupportedType(DType t) { Violate("unsupported dtype", "no form for %s on this core", Name(t)); }

void TraceVector(Core&, DType t, const TensorRef& d, uint64_t elements, uint32_t width, uint32_t repeat,
                 const Strides* strides, uint32_t n) {
  if (!g_trace) return;
  TraceArgs a;
  a.bytes = elements * Width(t);
  a.elements = elements;
  a.repeat = repeat ? repeat : Repeats(elements, width);
  a.dtype = t;
  a.buffer = d.buffer;
  for (uint32_t i = 0; i < n && i < 3; ++i) a.params[i] = strides[i].block;
  if (!n) a.params[0] = a.params[1] = a.params[2] = 1;
  TraceRecord(PIPE_V, a);
}

void StartCount(Core& c, const CountOperand& d, const CountOperand* s, uint32_t sources,
                bool in_place_allowed, uint32_t apart) {
#if TWIN_CHECK
  CheckView(c, *d.t, d.bytes, kBlock, d.what);
  for (uint32_t i = 0; i < sources; ++i) CheckView(c, *s[i].t, s[i].bytes, kBlock, s[i].what);
  for (uint32_t i = 0; i < sources && i < apart; ++i)
    CheckOverlap(d.t->addr, d.bytes, s[i].t->addr, s[i].bytes, in_place_allowed, s[i].what);
  Begin(c, PIPE_V);
  for (uint32_t i = 0; i < sources; ++i) CheckRead(c, PIPE_V, s[i].t->addr, s[i].bytes, s[i].what);
  CheckWrite(c, PIPE_V, d.t->addr, d.bytes, d.what);
#else
  (void)c, (void)d, (void)s, (void)sources, (void)in_place_allowed, (void)apart;
#endif
}

void FinishCount(Core& c, const CountOperand& d, const CountOperand* s, uint32_t sources) {
#if TWIN_CHECK
  for (uint32_t i = 0; i < sources; ++i) MarkRead(c, PIPE_V, s[i].t->addr, s[i].bytes);
  MarkWrite(c, PIPE_V, d.t->addr, d.bytes);
#else
  (void)c, (void)d, (void)s, (void)sources;
#endif
}

void SpreadGood(Core& c, const CountOperand& d, uint32_t dw, const CountOperand* s, const uint32_t* sw,
                uint32_t sources, uint64_t count) {
#if TWIN_CHECK
  bool all = true;
  for (uint32_t i = 0; i < sources; ++i) all = all && AllGood(c, s[i].t->addr, s[i].bytes);
  if (all) {
    SetGood(c, d.t->addr, d.bytes, true);
    return;
  }
  for (uint64_t e = 0; e < count; ++e) {
    bool good = true;
    for (uint32_t i = 0; i < sources; ++i) good = good && BytesGood(c, s[i].t->addr + e * sw[i], sw[i]);
    SetGood(c, d.t->addr + e * dw, dw, good);
  }
#else
  (void)c, (void)d, (void)dw, (void)s, (void)sw, (void)sources, (void)count;
#endif
}

LanePlan ResolveMask(Core& c, MaskSpec m, uint32_t repeat, uint32_t width, uint32_t max_repeat) {
  LanePlan p{};
  p.lanes = Lanes(width);
  p.repeats = repeat;
  if (repeat > max_repeat) Violate("repeat over its limit", "repeat %u, at most %u", repeat, max_repeat);
  if (c.counter_mode) {
    p.total = m.kind == MaskSpec::kRegister ? c.mask_lo : m.lo;
    if (p.total == 0) {
      p.repeats = 0;
      return p;
    }
    p.repeats = static_cast<uint32_t>((p.total + p.lanes - 1) / p.lanes);
    p.full = p.total % p.lanes == 0;
    return p;
  }
  if (m.kind == MaskSpec::kLeading) {
    if (m.lo > p.lanes) Violate("mask", "%llu lanes; a repeat has %u", (unsigned long long)m.lo, p.lanes);
    const uint64_t n = m.lo;
    p.lo = n >= 64 ? ~0ull : (1ull << n) - 1;
    p.hi = n <= 64 ? 0 : n >= 128 ? ~0ull : (1ull << (n - 64)) - 1;
  } else {
    p.lo = m.kind == MaskSpec::kBits ? m.lo : c.mask_lo;
    p.hi = m.kind == MaskSpec::kBits ? m.hi : c.mask_hi;
    if (m.kind == MaskSpec::kRegister) {  // the register is wider than the repeat of a wide type
      if (p.lanes <= 64) p.hi = 0;
      if (p.lanes == 32) p.lo &= 0xffffffffull;
    }
    const bool over = (p.lanes <= 64 && p.hi) || (p.lanes == 32 && p.lo >> 32);
    if (over) Violate("mask", "bits beyond the %u lanes of a repeat are set", p.lanes);
  }
  const uint64_t all_lo = p.lanes >= 64 ? ~0ull : (1ull << p.lanes) - 1;
  p.full = p.lo == all_lo && (p.lanes <= 64 || p.hi == ~0ull);
  return p;
}

bool IsDense(const RepeatOperand& o, const LanePlan& p) {
  const uint32_t blocks_per_repeat = p.lanes * o.width / kBlock;
  if (p.repeats > 1 && o.strides.repeat != blocks_per_repeat) return false;
  return o.strides.block == 1 && (p.full || p.total || (p.repeats <= 1 && p.Dense(0)));
}

void CheckRepeatView(Core& c, const RepeatOperand& o, const LanePlan& p) {
#if TWIN_CHECK
  uint64_t end = 0;
  for (uint32_t r = 0; r < p.repeats; ++r) {
    const uint32_t span = p.Span(r);
    if (!span) continue;
    const uint32_t per_block = kBlock / o.width;
    // Blocks ascend within a repeat, so the farthest byte is in the last block or, with block stride 0, in a
    // full one.
    const uint32_t last = span - 1;
    uint64_t reach = o.Address(r, last) + o.width;
    if (span > per_block)
      reach = std::max<uint64_t>(reach, o.Address(r, (last / per_block) * per_block - 1) + o.width);
    end = std::max(end, reach);
  }
  CheckView(c, *o.t, end > o.t->addr ? end - o.t->addr : 0, kBlock, o.what);
#else
  (void)c, (void)o, (void)p;
#endif
}

namespace {
// Calls f(address, bytes) for the pieces of one repeat: a single one where the blocks are adjacent.
template <typename F>
void Pieces(const RepeatOperand& o, const LanePlan& p, uint32_t repeat, F f) {
  const uint32_t span = p.Span(repeat), per_block = kBlock / o.width;
  if (!span) return;
  if (o.strides.block == 1 && p.Dense(repeat)) {
    f(o.Address(repeat, 0), uint64_t(span) * o.width);
    return;
  }
  for (uint32_t lane = 0; lane < span; lane += per_block) {
    uint32_t first = per_block, last = 0;
    for (uint32_t i = 0; i < per_block && lane + i < span; ++i)
      if (p.Active(repeat, lane + i)) first = std::min(first, i), last = i + 1;
    if (first < last) f(o.Address(repeat, lane + first), uint64_t(last - first) * o.width);
  }
}
}  // namespace

void CheckRepeatRead(Core& c, const RepeatOperand& o, const LanePlan& p, uint32_t repeat,
                     bool reads_own_dst) {
#if TWIN_CHECK
  Pieces(o, p, repeat, [&](uint32_t addr, uint64_t bytes) {
    CheckRead(c, PIPE_V, addr, bytes, o.what);
    if (reads_own_dst) return;
    for (uint32_t b = addr / kBlock; b * kBlock < addr + bytes; ++b)
      if (c.wrote[PIPE_V][b] == c.issued[PIPE_V])
        Violate("overlap",
                "%s of repeat %u at UB 0x%x is the dst of an earlier repeat of the same instruction", o.what,
                repeat, addr);
  });
#else
  (void)c, (void)o, (void)p, (void)repeat, (void)reads_own_dst;
#endif
}

void CheckRepeatWrite(Core& c, const RepeatOperand& o, const LanePlan& p, uint32_t repeat) {
#if TWIN_CHECK
  Pieces(o, p, repeat, [&](uint32_t addr, uint64_t bytes) { CheckWrite(c, PIPE_V, addr, bytes, o.what); });
#else
  (void)c, (void)o, (void)p, (void)repeat;
#endif
}

void MarkRepeat(Core& c, const RepeatOperand& o, const LanePlan& p, uint32_t repeat, bool write) {
#if TWIN_CHECK
  Pieces(o, p, repeat, [&](uint32_t addr, uint64_t bytes) {
    if (write)
      MarkWrite(c, PIPE_V, addr, bytes);
    else
      MarkRead(c, PIPE_V, addr, bytes);
  });
#else
  (void)c, (void)o, (void)p, (void)repeat, (void)write;
#endif
}

void CheckRepeatOverlap(const RepeatOperand& d, const RepeatOperand& s, const LanePlan& p, uint32_t repeat) {
#if TWIN_CHECK
  if (d.Address(repeat, 0) == s.Address(repeat, 0) && d.strides.block == s.strides.block &&
      d.width == s.width)
    return;
  Pieces(d, p, repeat, [&](uint32_t da, uint64_t db) {
    Pieces(s, p, repeat, [&](uint32_t sa, uint64_t sb) { CheckOverlap(da, db, sa, sb, true, s.what); });
  });
#else
  (void)d, (void)s, (void)p, (void)repeat;
#endif
}

bool GatherLanes(Core& c, const RepeatOperand& o, const LanePlan& p, uint32_t repeat, void* to, bool* bad) {
  const uint32_t span = p.Span(repeat);
  uint8_t* out = static_cast<uint8_t*>(to);
  bool good = true;
  if (p.Dense(repeat)) {  // by blocks, or all at once where they are adjacent
    const uint32_t step = o.strides.block == 1 ? span : kBlock / o.width;
    for (uint32_t lane = 0; lane < span; lane += step) {
      const uint32_t n = std::min(step, span - lane), addr = o.Address(repeat, lane);
      std::memcpy(out + lane * o.width, c.ub + addr, n * o.width);
      if (AllGood(c, addr, n * o.width)) continue;
      for (uint32_t i = 0; i < n; ++i) {
        if (BytesGood(c, addr + i * o.width, o.width)) continue;
        bad[lane + i] = true;
        good = false;
      }
    }
    return good;
  }
  for (uint32_t lane = 0; lane < span; ++lane) {
    if (!p.Active(repeat, lane)) {
      std::memset(out + lane * o.width, 0, o.width);
      continue;
    }
    const uint32_t addr = o.Address(repeat, lane);
    std::memcpy(out + lane * o.width, c.ub + addr, o.width);
#if TWIN_CHECK
    if (!BytesGood(c, addr, o.width)) {
      bad[lane] = true;
      good = false;
    }
#endif
  }
  (void)bad;
  return good;
}

void ScatterLanes(Core& c, const RepeatOperand& o, const LanePlan& p, uint32_t repeat, const void* from,
                  const bool* bad) {
  const uint32_t span = p.Span(repeat);
  const uint8_t* in = static_cast<const uint8_t*>(from);
  if (p.Dense(repeat) && !std::memchr(bad, 1, span)) {
    const uint32_t step = o.strides.block == 1 ? span : kBlock / o.width;
    for (uint32_t lane = 0; lane < span; lane += step) {
      const uint32_t n = std::min(step, span - lane), addr = o.Address(repeat, lane);
      std::memcpy(c.ub + addr, in + lane * o.width, n * o.width);
      SetGood(c, addr, n * o.width, true);
    }
    return;
  }
  for (uint32_t lane = 0; lane < span; ++lane) {
    if (!p.Active(repeat, lane)) continue;
    const uint32_t addr = o.Address(repeat, lane);
    std::memcpy(c.ub + addr, in + lane * o.width, o.width);
    SetGood(c, addr, o.width, !bad[lane]);
  }
}

}  // namespace TWIN_ABI
}  // namespace twin
