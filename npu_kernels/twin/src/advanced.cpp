// Why: the high-level math functions: libm's values, and the real functions' contracts: no operand may
// overlap another (a few are exempt), and the shared temporary buffer has at least the documented minimum.
#include "vector_base.h"

namespace twin {
inline namespace TWIN_ABI {

namespace {
// Minimum bytes of the temporary buffer: factor x 256, for half and for float.
struct Rule {
  UnaryOp op;
  uint8_t half_factor, float_factor;
  bool in_place, scratch;
};
constexpr Rule kRules[] = {
    {kTanh, 4, 1, false, false},  {kSigmoid, 1, 1, false, false}, {kErf, 8, 3, false, false},
    {kErfc, 16, 7, false, false}, {kLog2, 4, 0, false, false},    {kSin, 8, 3, false, false},
    {kCos, 8, 3, false, false},   {kTan, 10, 4, false, false},    {kAsin, 6, 2, false, false},
    {kAcos, 6, 2, false, false},  {kAtan, 12, 5, false, false},   {kSinh, 4, 1, false, false},
    {kCosh, 6, 2, false, false},  {kAsinh, 6, 3, false, false},   {kAcosh, 6, 2, false, false},
    {kAtanh, 4, 1, false, false}, {kFloor, 2, 0, false, false},   {kCeil, 2, 1, false, false},
    {kTrunc, 2, 1, true, false},  {kRound, 1, 0, true, false},    {kSign, 1, 1, false, true},
    {kFrac, 4, 0, false, false},  {kGelu, 3, 3, true, false},     {kLog, 0, 0, false, false},
    {kLog10, 0, 0, false, false}};

void CheckTmp(Core& c, const TensorRef& tmp, uint64_t bytes, const CountOperand& d, const CountOperand* s,
              uint32_t n) {
#if TWIN_CHECK
  if (!bytes) return;
  CheckView(c, tmp, bytes, kBlock, "sharedTmpBuffer");
  CheckOverlap(tmp.addr, bytes, d.t->addr, d.bytes, false, "dst");
  for (uint32_t i = 0; i < n; ++i) CheckOverlap(tmp.addr, bytes, s[i].t->addr, s[i].bytes, false, s[i].what);
  CheckWrite(c, PIPE_V, tmp.addr, bytes, "sharedTmpBuffer");
  SetGood(c, tmp.addr, bytes, false);
  MarkWrite(c, PIPE_V, tmp.addr, bytes);
#else
  (void)c, (void)tmp, (void)bytes, (void)d, (void)s, (void)n;
#endif
}
}  // namespace

void UnaryTmp(UnaryOp op, DType t, const TensorRef& d, const TensorRef& s, const TensorRef& tmp,
              uint64_t count, Site at) {
  Core& c = Enter(Name(op), at);
  const UnaryFn f = FindUnary(op, t);
  const Rule* rule = nullptr;
  for (const Rule& r : kRules)
    if (r.op == op) rule = &r;
  if (!f || !rule) UnsupportedType(t);
  if (!count) return;
  const uint32_t w = Width(t);
  const CountOperand dst{&d, count * w, "dst"}, src{&s, count * w, "src"};
  if (rule->scratch) UseScratch(c);
  StartCount(c, dst, &src, 1, rule->in_place);
  CheckTmp(c, tmp, (t == kF16 ? rule->half_factor : rule->float_factor) * 256u, dst, &src, 1);
  SpreadGood(c, dst, w, &src, &w, 1, count);
  f(c.ub + d.addr, c.ub + s.addr, count);
  FinishCount(c, dst, &src, 1);
  TraceVector(c, t, d, count, w, 0, nullptr, 0);
}

void BinaryTmp(BinaryOp op, DType t, const TensorRef& d, const TensorRef& a, const TensorRef& b,
               const TensorRef& tmp, uint64_t count, Site at) {
  Core& c = Enter(Name(op), at);
  const BinaryFn f = FindBinary(op, t, t);
  if (!f) UnsupportedType(t);
  if (!count) return;
  const uint32_t w = Width(t);
  const CountOperand dst{&d, count * w, "dst"};
  const CountOperand src[2] = {{&a, count * w, "src0"}, {&b, count * w, "src1"}};
  const uint32_t widths[2] = {w, w};
  uint32_t factor = 1;
  if (op == kPower) factor = t == kF16 ? 14 : t == kF32 ? 4 : 6;
  if (op == kFmod) factor = t == kF16 ? 8 : 1;
  if (op == kPower) UseScratch(c);
  StartCount(c, dst, src, 2, false);
  CheckTmp(c, tmp, factor * 256u, dst, src, 2);
  SpreadGood(c, dst, w, src, widths, 2, count);
  f(c.ub + d.addr, c.ub + a.addr, c.ub + b.addr, count);
  FinishCount(c, dst, src, 2);
  TraceVector(c, t, d, count, w, 0, nullptr, 0);
}

}  // namespace TWIN_ABI
}  // namespace twin
