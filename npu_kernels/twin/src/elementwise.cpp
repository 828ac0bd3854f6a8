// Why: the count and repeat frames of the unary, binary and tensor-scalar instructions. Which function an
// (op, dtype) has is FindUnary/FindBinary/FindScalar's business (unary.cpp, binary.cpp, scalar.cpp).
#include "vector_base.h"

namespace twin {
inline namespace TWIN_ABI {

namespace {
bool WritesInto(BinaryOp op) { return op == kMulAddDst || op == kFusedMulAdd || op == kFusedMulAddRelu; }

// The general overlap rule lets some binary instructions accumulate: dst is also src1, and its repeats stand
// still.
bool MayAccumulate(BinaryOp op, DType t) {
  const bool type = t == kF16 || t == kI32 || t == kF32;
  return type && (op == kAdd || op == kSub || op == kMul || op == kMax || op == kMin || op == kAddRelu ||
                  op == kSubRelu);
}
}  // namespace

#if TWIN_CHECK
namespace {
// Bitwise instructions combine packed masks of which some bits are not initialised (a compare of garbage
// beyond the count): poison goes bit by bit. An initialised 0 decides an And, an initialised 1 an Or.
uint8_t BadBitsOf(int op, uint8_t pa, uint8_t va, uint8_t pb, uint8_t vb) {
  uint8_t decided = 0;
  if (op == kAnd) decided = static_cast<uint8_t>((~pa & ~va) | (~pb & ~vb));
  if (op == kOr) decided = static_cast<uint8_t>((~pa & va) | (~pb & vb));
  return static_cast<uint8_t>((pa | pb) & ~decided);
}

bool SpreadBits(Core& c, int op, const TensorRef& d, const TensorRef& a, const TensorRef* b, uint64_t bytes) {
  if (AllGood(c, a.addr, bytes) && (!b || AllGood(c, b->addr, bytes))) return false;
  for (uint64_t i = 0; i < bytes; ++i) {
    const uint8_t pa = BadBits(c, a.addr + i), pb = b ? BadBits(c, b->addr + i) : 0;
    SetBadBits(c, d.addr + i, BadBitsOf(op, pa, c.ub[a.addr + i], pb, b ? c.ub[b->addr + i] : 0));
  }
  return true;
}
}  // namespace
#endif

void Unary(UnaryOp op, DType t, const TensorRef& d, const TensorRef& s, uint64_t count, Site at) {
  Core& c = Enter(Name(op), at);
  const UnaryFn f = FindUnary(op, t);
  if (!f) UnsupportedType(t);
  if (!count) return;
  const uint32_t w = Width(t);
  const CountOperand dst{&d, count * w, "dst"}, src{&s, count * w, "src"};
  StartCount(c, dst, &src, 1, true);
#if TWIN_CHECK
  if (op != kNot || !SpreadBits(c, kBinaryOps, d, s, nullptr, count * w))
#endif
    SpreadGood(c, dst, w, &src, &w, 1, count);
  f(c.ub + d.addr, c.ub + s.addr, count);
  FinishCount(c, dst, &src, 1);
  TraceVector(c, t, d, count, w, 0, nullptr, 0);
}

void Binary(BinaryOp op, DType t, DType src_t, const TensorRef& d, const TensorRef& a, const TensorRef& b,
            uint64_t count, Site at) {
  Core& c = Enter(Name(op), at);
  const BinaryFn f = FindBinary(op, t, src_t);
  if (!f) UnsupportedType(src_t);
  if (!count) return;
  const uint32_t w = Width(t), sw = Width(src_t);
  const uint32_t sources = WritesInto(op) ? 3 : 2;
  const CountOperand dst{&d, count * w, "dst"};
  const CountOperand src[3] = {{&a, count * sw, "src0"}, {&b, count * sw, "src1"}, {&d, count * w, "dst"}};
  const uint32_t widths[3] = {sw, sw, w};
  StartCount(c, dst, src, sources, t == src_t, 2);
#if TWIN_CHECK
  if ((op != kAnd && op != kOr) || !SpreadBits(c, op, d, a, &b, count * w))
#endif
    SpreadGood(c, dst, w, src, widths, sources, count);
  f(c.ub + d.addr, c.ub + a.addr, c.ub + b.addr, count);
  FinishCount(c, dst, src, sources);
  TraceVector(c, t, d, count, w, 0, nullptr, 0);
}

void Scalar(ScalarOp op, DType t, DType src_t, const TensorRef& d, const TensorRef& s, const void* scalar,
            uint64_t count, Site at) {
  Core& c = Enter(Name(op), at);
  const ScalarFn f = FindScalar(op, t, src_t);
  if (!f) UnsupportedType(t);
  if (!count) return;
  const uint32_t w = Width(t), sw = Width(src_t);
  const CountOperand dst{&d, count * w, "dst"};
  const CountOperand src[2] = {{&s, count * sw, "src"}, {&d, count * w, "dst"}};
  const uint32_t widths[2] = {sw, w};
  const uint32_t sources = op == kAxpy ? 2 : 1;
  StartCount(c, dst, src, sources, t == src_t, 1);
  SpreadGood(c, dst, w, src, widths, sources, count);
  f(c.ub + d.addr, c.ub + s.addr, scalar, count);
  FinishCount(c, dst, src, sources);
  TraceVector(c, t, d, count, w, 0, nullptr, 0);
}

namespace {
// The frame of a repeat-form call: `compute(dense_dst, dense_src...)` once per repeat, or once over
// everything when all operands are dense. Storage per repeat is at most 256 B an operand (512 for a widening
// source count is not needed: lanes go by the widest type). bitwise: the BinaryOp whose poison goes bit by
// bit, or -1.
template <typename F>
void RunRepeats(Core& c, DType t, const RepeatOperand& d, const RepeatOperand* s, uint32_t sources,
                const LanePlan& p, bool accumulates, F compute, int bitwise = -1) {
  if (!p.repeats || (!p.total && !p.lo && !p.hi)) return;
  if (d.strides.block == 0 && p.Span(0) > kBlock / d.width)
    Violate("stride", "a dst block stride of 0 writes the blocks of a repeat over each other");
  CheckRepeatView(c, d, p);
  for (uint32_t i = 0; i < sources; ++i) CheckRepeatView(c, s[i], p);
  Begin(c, PIPE_V);
  uint64_t elements = 0;
  alignas(32) uint8_t in[3][256], out[256];
  for (uint32_t r = 0; r < p.repeats; ++r) {
    const uint32_t span = p.Span(r);
    elements += span;
    if (!span) continue;
    for (uint32_t i = 0; i < sources; ++i) {
      CheckRepeatRead(c, s[i], p, r, accumulates);
      CheckRepeatOverlap(d, s[i], p, r);
    }
    CheckRepeatWrite(c, d, p, r);
    bool bad[256] = {false};
    for (uint32_t i = 0; i < sources; ++i) GatherLanes(c, s[i], p, r, in[i], bad);
    if (sources == 3) std::memcpy(out, in[2], sizeof out);
    compute(out, in[0], in[1], span);
#if TWIN_CHECK
    // Read before dst is written: dst may be a source.
    uint8_t poison[256];
    for (uint32_t i = 0; bitwise >= 0 && i < span * d.width; ++i) {
      const uint32_t lane = i / d.width, byte = i % d.width;
      if (bad[lane])
        poison[i] = BadBitsOf(bitwise, BadBits(c, s[0].Address(r, lane) + byte), in[0][i],
                              BadBits(c, s[1].Address(r, lane) + byte), in[1][i]);
    }
#endif
    ScatterLanes(c, d, p, r, out, bad);
#if TWIN_CHECK
    for (uint32_t i = 0; bitwise >= 0 && i < span * d.width; ++i)
      if (bad[i / d.width] && p.Active(r, i / d.width))
        SetBadBits(c, d.Address(r, i / d.width) + i % d.width, poison[i]);
#else
    (void)bitwise;
#endif
    for (uint32_t i = 0; i < sources; ++i) MarkRepeat(c, s[i], p, r, false);
    MarkRepeat(c, d, p, r, true);
  }
  const Strides strides[3] = {d.strides, s[0].strides, s[sources > 1 ? 1 : 0].strides};
  TraceVector(c, t, *d.t, elements, d.width, p.repeats, strides, sources > 1 ? 3 : 2);
}
}  // namespace

void UnaryRepeat(UnaryOp op, DType t, const TensorRef& d, const TensorRef& s, MaskSpec m, uint32_t repeat,
                 Strides ds, Strides ss, Site at) {
  Core& c = Enter(Name(op), at);
  const UnaryFn f = FindUnary(op, t);
  if (!f) UnsupportedType(t);
  const uint32_t w = Width(t);
  const LanePlan p = ResolveMask(c, m, repeat, w);
  const RepeatOperand dst{&d, ds, w, "dst"}, src{&s, ss, w, "src"};
  if (p.repeats && p.Span(0) && IsDense(dst, p) && IsDense(src, p)) {
    Unary(op, t, d, s, p.total ? p.total : p.full ? uint64_t(p.repeats) * p.lanes : p.Span(0), at);
    return;
  }
  RunRepeats(c, t, dst, &src, 1, p, false,
             [&](void* out, const void* x, const void*, uint32_t n) { f(out, x, n); });
}

void BinaryRepeat(BinaryOp op, DType t, DType src_t, const TensorRef& d, const TensorRef& a,
                  const TensorRef& b, MaskSpec m, uint32_t repeat, Strides ds, Strides as, Strides bs,
                  Site at) {
  Core& c = Enter(Name(op), at);
  const BinaryFn f = FindBinary(op, t, src_t);
  if (!f) UnsupportedType(src_t);
  const uint32_t w = Width(t), sw = Width(src_t);
  const LanePlan p = ResolveMask(c, m, repeat, w);
  const RepeatOperand dst{&d, ds, w, "dst"};
  const RepeatOperand src[3] = {{&a, as, sw, "src0"}, {&b, bs, sw, "src1"}, {&d, ds, w, "dst"}};
  if (p.repeats && p.Span(0) && IsDense(dst, p) && IsDense(src[0], p) && IsDense(src[1], p)) {
    Binary(op, t, src_t, d, a, b, p.total ? p.total : p.full ? uint64_t(p.repeats) * p.lanes : p.Span(0), at);
    return;
  }
  const bool accumulates = MayAccumulate(op, t) && d.addr == b.addr && (bs.repeat == 0 || ds.repeat == 0);
  RunRepeats(
      c, t, dst, src, WritesInto(op) ? 3 : 2, p, accumulates,
      [&](void* out, const void* x, const void* y, uint32_t n) { f(out, x, y, n); },
      op == kAnd || op == kOr ? op : -1);
}

void ScalarRepeat(ScalarOp op, DType t, DType src_t, const TensorRef& d, const TensorRef& s,
                  const void* scalar, MaskSpec m, uint32_t repeat, Strides ds, Strides ss, Site at) {
  Core& c = Enter(Name(op), at);
  const ScalarFn f = FindScalar(op, t, src_t);
  if (!f || op == kAxpy) UnsupportedType(t);
  const uint32_t w = Width(t);
  const LanePlan p = ResolveMask(c, m, repeat, w);
  const RepeatOperand dst{&d, ds, w, "dst"}, src{&s, ss, w, "src"};
  if (p.repeats && p.Span(0) && IsDense(dst, p) && IsDense(src, p)) {
    Scalar(op, t, src_t, d, s, scalar,
           p.total  ? p.total
           : p.full ? uint64_t(p.repeats) * p.lanes
                    : p.Span(0),
           at);
    return;
  }
  RunRepeats(c, t, dst, &src, 1, p, false,
             [&](void* out, const void* x, const void*, uint32_t n) { f(out, x, scalar, n); });
}

}  // namespace TWIN_ABI
}  // namespace twin
