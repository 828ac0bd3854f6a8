// Why: the reducing instructions. A sum over one repeat is a binary tree over its lanes in order; Max and Min
// keep the first of equal values. The count forms fold repeats left to right.
#include "loops.h"

namespace twin {
inline namespace TWIN_ABI {

namespace {
float LoadValue(DType t, const void* p, uint32_t i) {
  if (t == kF32) {
    float v;
    std::memcpy(&v, static_cast<const uint8_t*>(p) + i * 4, 4);
    return v;
  }
  uint16_t h;
  std::memcpy(&h, static_cast<const uint8_t*>(p) + i * 2, 2);
  return HalfToFloat(h);
}
float RoundTo(DType t, float v) { return t == kF32 ? v : HalfToFloat(HalfBits(v)); }
void StoreValue(Core& c, DType t, uint32_t addr, float v, bool good) {
  if (t == kF32) {
    std::memcpy(c.ub + addr, &v, 4);
  } else {
    const uint16_t h = HalfBits(v);
    std::memcpy(c.ub + addr, &h, 2);
  }
  SetGood(c, addr, Width(t), good);
}
void StoreIndex(Core& c, DType t, uint32_t addr, uint32_t index, bool good) {
  if (t == kF32) {
    std::memcpy(c.ub + addr, &index, 4);
  } else {
    const uint16_t i = static_cast<uint16_t>(index);
    std::memcpy(c.ub + addr, &i, 2);
  }
  SetGood(c, addr, Width(t), good);
}

struct Found {
  float value;
  uint32_t index;
  bool good, any;
};
Found Fold(ReduceOp op, DType t, const void* lanes, const bool* active, const bool* bad, uint32_t from,
           uint32_t to) {
  Found f{0.0f, 0, true, false};
  if (op == kSum) {
    float tree[128];
    uint32_t n = 0;
    for (uint32_t i = from; i < to; ++i) {
      tree[n++] = active[i] ? LoadValue(t, lanes, i) : 0.0f;
      if (active[i]) f.good = f.good && !bad[i], f.any = true;
    }
    while (n > 1) {
      const uint32_t half_n = n / 2;
      for (uint32_t i = 0; i < half_n; ++i) tree[i] = RoundTo(t, tree[2 * i] + tree[2 * i + 1]);
      if (n % 2) tree[half_n] = tree[n - 1];
      n = half_n + n % 2;
    }
    f.value = n ? tree[0] : 0.0f;
    return f;
  }
  for (uint32_t i = from; i < to; ++i) {
    if (!active[i]) continue;
    const float v = LoadValue(t, lanes, i);
    f.good = f.good && !bad[i];
    if (!f.any || (op == kMaximum ? f.value < v : v < f.value)) f.value = v, f.index = i - from;
    f.any = true;
  }
  return f;
}
void NeedReduceType(DType t) {
  if (t != kF16 && t != kF32) UnsupportedType(t);
}
}  // namespace

void ReduceWhole(ReduceOp op, DType t, const TensorRef& d, const TensorRef& s, MaskSpec m, uint32_t repeat,
                 uint32_t dst_stride, Strides ss, AscendC::ReduceOrder order, Site at) {
  using AscendC::ReduceOrder;
  Core& c = Enter(op == kSum ? "WholeReduceSum" : op == kMaximum ? "WholeReduceMax" : "WholeReduceMin", at);
  NeedReduceType(t);
  const uint32_t w = Width(t);
  const LanePlan p = ResolveMask(c, m, repeat, w);
  if (!p.repeats || (!p.total && !p.lo && !p.hi)) return;
  const bool both =
      op != kSum && (order == ReduceOrder::ORDER_VALUE_INDEX || order == ReduceOrder::ORDER_INDEX_VALUE);
  const uint32_t item = both ? 2 * w : w;  // dstRepStride counts results, not blocks
  const RepeatOperand src{&s, ss, w, "src"};
  CheckRepeatView(c, src, p);
  const uint64_t end = (uint64_t(p.repeats - 1) * dst_stride + 1) * item;
  CheckView(c, d, end, item, "dst");
  Begin(c, PIPE_V);
  CheckWrite(c, PIPE_V, d.addr, end, "dst");
  alignas(32) uint8_t lanes[256];
  for (uint32_t r = 0; r < p.repeats; ++r) {
    bool bad[256] = {false}, active[256] = {false};
    CheckRepeatRead(c, src, p, r, true);
    GatherLanes(c, src, p, r, lanes, bad);
    for (uint32_t i = 0; i < p.Span(r); ++i) active[i] = p.Active(r, i);
    const Found f = Fold(op, t, lanes, active, bad, 0, p.Span(r));
    uint32_t to = d.addr + r * dst_stride * item;
    if (op != kSum && order == ReduceOrder::ORDER_INDEX_VALUE) StoreIndex(c, t, to, f.index, f.good), to += w;
    if (op != kSum && order == ReduceOrder::ORDER_ONLY_INDEX) {
      StoreIndex(c, t, to, f.index, f.good);
    } else {
      StoreValue(c, t, to, f.value, f.good);
      if (op != kSum && order == ReduceOrder::ORDER_VALUE_INDEX) StoreIndex(c, t, to + w, f.index, f.good);
    }
    MarkRepeat(c, src, p, r, false);
  }
  MarkWrite(c, PIPE_V, d.addr, end);
  const Strides strides[2] = {{uint16_t(dst_stride), 0}, ss};
  TraceVector(c, t, d, uint64_t(p.lanes) * p.repeats, w, p.repeats, strides, 2);
}

// One result per 32 B block, or per pair of neighbouring elements. dst repeat stride: in results of a whole
// repeat.
void ReduceBlocks(ReduceOp op, DType t, const TensorRef& d, const TensorRef& s, MaskSpec m, uint32_t repeat,
                  uint32_t dst_stride, Strides ss, Site at) {
  Core& c = Enter(op == kPairSum   ? "PairReduceSum"
                  : op == kSum     ? "BlockReduceSum"
                  : op == kMaximum ? "BlockReduceMax"
                                   : "BlockReduceMin",
                  at);
  NeedReduceType(t);
  const uint32_t w = Width(t);
  const LanePlan p = ResolveMask(c, m, repeat, w);
  if (!p.repeats || (!p.total && !p.lo && !p.hi)) return;
  const uint32_t group = op == kPairSum ? 2 : kBlock / w, results = p.lanes / group;
  const RepeatOperand src{&s, ss, w, "src"};
  CheckRepeatView(c, src, p);
  const uint64_t end = (uint64_t(p.repeats - 1) * dst_stride + 1) * results * w;
  CheckView(c, d, end, 16, "dst");
  Begin(c, PIPE_V);
  CheckWrite(c, PIPE_V, d.addr, end, "dst");
  alignas(32) uint8_t lanes[256];
  for (uint32_t r = 0; r < p.repeats; ++r) {
    bool bad[256] = {false}, active[256] = {false};
    CheckRepeatRead(c, src, p, r, true);
    GatherLanes(c, src, p, r, lanes, bad);
    for (uint32_t i = 0; i < p.Span(r); ++i) active[i] = p.Active(r, i);
    for (uint32_t g = 0; g < results && g * group < p.Span(r); ++g) {
      const Found f = Fold(op == kPairSum ? kSum : op, t, lanes, active, bad, g * group, (g + 1) * group);
      if (f.any) StoreValue(c, t, d.addr + (r * dst_stride * results + g) * w, f.value, f.good);
    }
    MarkRepeat(c, src, p, r, false);
  }
  MarkWrite(c, PIPE_V, d.addr, end);
  const Strides strides[2] = {{uint16_t(dst_stride), 0}, ss};
  TraceVector(c, t, d, uint64_t(p.lanes) * p.repeats, w, p.repeats, strides, 2);
}

void ReduceCount(ReduceOp op, DType t, const TensorRef& d, const TensorRef& s, const TensorRef& work,
                 uint64_t count, bool index, Site at) {
  Core& c = Enter(op == kSum ? "ReduceSum" : op == kMaximum ? "ReduceMax" : "ReduceMin", at);
  NeedReduceType(t);
  if (!count) return;
  const uint32_t w = Width(t), lanes = Lanes(w);
  const CountOperand dst{&d, (index ? 2 : 1) * w, "dst"}, src{&s, count * w, "src"};
  StartCount(c, dst, &src, 1, false);
  if (op != kSum && !index) {  // two elements a repeat, rounded up to a block
    const uint64_t need = (uint64_t(Repeats(count, w)) * 2 * w + kBlock - 1) / kBlock * kBlock;
    CheckView(c, work, need, kBlock, "workLocal");
    CheckWrite(c, PIPE_V, work.addr, need, "workLocal");
    SetGood(c, work.addr, need, false);
    MarkWrite(c, PIPE_V, work.addr, need);
  }
  Found best{0.0f, 0, true, false};
  for (uint64_t at_element = 0; at_element < count; at_element += lanes) {
    const uint32_t n = static_cast<uint32_t>(count - at_element < lanes ? count - at_element : lanes);
    bool active[128], bad[128];
    for (uint32_t i = 0; i < n; ++i) {
      active[i] = true;
      bad[i] = !BytesGood(c, s.addr + (at_element + i) * w, w);
    }
    const Found f = Fold(op, t, c.ub + s.addr + at_element * w, active, bad, 0, n);
    best.good = best.good && f.good;
    if (op == kSum) {
      best.value = best.any ? RoundTo(t, best.value + f.value) : f.value;
    } else if (!best.any || (op == kMaximum ? best.value < f.value : f.value < best.value)) {
      best.value = f.value;
      best.index = static_cast<uint32_t>(at_element) + f.index;
    }
    best.any = true;
  }
  StoreValue(c, t, d.addr, best.value, best.good);
  if (index) StoreIndex(c, t, d.addr + w, best.index, best.good);
  FinishCount(c, dst, &src, 1);
  TraceVector(c, t, d, count, w, 0, nullptr, 0);
}

}  // namespace TWIN_ABI
}  // namespace twin
