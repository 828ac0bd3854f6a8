// Why: what the instruction bodies share: typed access to UB, the element loop that also serves float16
// (computed in float, rounded once), the frame of a count-form and of a repeat-form call, and the poison rule
// of elementwise ops.
#pragma once
#include <cmath>

#include "core.h"

namespace twin {
inline namespace TWIN_ABI {

// dst[i] = f(src0[i], src1[i], ...) over raw storage. The callers have excluded every overlap but the exact
// one, so the loops assert that their iterations are independent. A float16 form is the float one on widened
// blocks with one rounding at the end (`widened`), so each operation's loop is compiled once.
struct UnaryFn {
  void (*f)(void* d, const void* s, uint64_t n) = nullptr;
  bool widened = false;
  explicit operator bool() const { return f != nullptr; }
  void operator()(void* d, const void* s, uint64_t n) const;
};
struct BinaryFn {
  void (*f)(void* d, const void* a, const void* b, uint64_t n) = nullptr;
  bool widened = false;
  explicit operator bool() const { return f != nullptr; }
  void operator()(void* d, const void* a, const void* b, uint64_t n) const;
};
struct ScalarFn {
  void (*f)(void* d, const void* s, const void* scalar, uint64_t n) = nullptr;
  bool widened = false;
  explicit operator bool() const { return f != nullptr; }
  void operator()(void* d, const void* s, const void* scalar, uint64_t n) const;
};

UnaryFn FindUnary(UnaryOp op, DType t);
BinaryFn FindBinary(BinaryOp op, DType t, DType src_t);
ScalarFn FindScalar(ScalarOp op, DType t, DType src_t);
const char* Name(UnaryOp op);
const char* Name(BinaryOp op);
const char* Name(ScalarOp op);

inline uint32_t Lanes(uint32_t width) { return 256 / width; }
inline uint32_t Repeats(uint64_t elements, uint32_t width) {
  return static_cast<uint32_t>((elements + Lanes(width) - 1) / Lanes(width));
}

// The active lanes of one repeat, and the repeats: MaskSpec resolved against the mask register and the mode.
struct LanePlan {
  uint64_t lo, hi;  // active lanes of a full repeat
  uint32_t lanes;   // per repeat at most
  uint32_t repeats;
  uint64_t total;  // Counter mode: elements over all repeats, 0 = not in Counter mode
  bool full;       // every lane of every repeat is active
  bool Active(uint32_t repeat, uint32_t lane) const {
    if (total) return uint64_t(repeat) * lanes + lane < total;
    return (lane < 64 ? lo >> lane : hi >> (lane - 64)) & 1;
  }
  // One past the last active lane.
  uint32_t Span(uint32_t repeat) const {
    if (total) {
      const uint64_t left = total - uint64_t(repeat) * lanes;
      return left < lanes ? static_cast<uint32_t>(left) : lanes;
    }
    if (hi) return 128 - static_cast<uint32_t>(__builtin_clzll(hi));
    return lo ? 64 - static_cast<uint32_t>(__builtin_clzll(lo)) : 0;
  }
  bool Dense(uint32_t repeat) const {  // lanes 0 .. Span-1 are all active
    if (total) return true;
    const uint32_t n = Span(repeat);
    const uint64_t want_lo = n >= 64 ? ~0ull : (1ull << n) - 1;
    const uint64_t want_hi = n <= 64 ? 0 : n >= 128 ? ~0ull : (1ull << (n - 64)) - 1;
    return (lo & want_lo) == want_lo && (hi & want_hi) == want_hi;
  }
};
// `width`: bytes of the widest operand's element. Violation: a mask with more lanes than a repeat has.
LanePlan ResolveMask(Core& c, MaskSpec m, uint32_t repeat, uint32_t width, uint32_t max_repeat = 255);

// One operand of a repeat-form call.
struct RepeatOperand {
  const TensorRef* t;
  Strides strides;
  uint32_t width;
  const char* what;
  uint32_t Address(uint32_t repeat, uint32_t lane) const {
    const uint32_t per_block = kBlock / width;
    return t->addr +
           (uint32_t(strides.repeat) * repeat + uint32_t(strides.block) * (lane / per_block)) * kBlock +
           lane % per_block * width;
  }
};
void CheckRepeatView(Core& c, const RepeatOperand& o, const LanePlan& p);
void CheckRepeatRead(Core& c, const RepeatOperand& o, const LanePlan& p, uint32_t repeat, bool reads_own_dst);
void CheckRepeatWrite(Core& c, const RepeatOperand& o, const LanePlan& p, uint32_t repeat);
void MarkRepeat(Core& c, const RepeatOperand& o, const LanePlan& p, uint32_t repeat, bool write);
void CheckRepeatOverlap(const RepeatOperand& d, const RepeatOperand& s, const LanePlan& p, uint32_t repeat);
// Copies lanes [0, Span) to dense storage; inactive lanes become zero. Returns whether all active bytes are
// good; `bad[lane]` is set for those that are not.
bool GatherLanes(Core& c, const RepeatOperand& o, const LanePlan& p, uint32_t repeat, void* to, bool* bad);
void ScatterLanes(Core& c, const RepeatOperand& o, const LanePlan& p, uint32_t repeat, const void* from,
                  const bool* bad);
// Whether the strides make the whole call one dense run over `width`-byte elements.
bool IsDense(const RepeatOperand& o, const LanePlan& p);

// Frame of a count-form vector instruction over dense operands.
struct CountOperand {
  const TensorRef* t;
  uint64_t bytes;
  const char* what;
};
// An instruction that reads its dst too lists it as its last source; `apart` is then how many sources come
// before it.
void StartCount(Core& c, const CountOperand& d, const CountOperand* s, uint32_t sources,
                bool in_place_allowed, uint32_t apart = ~0u);
void FinishCount(Core& c, const CountOperand& d, const CountOperand* s, uint32_t sources);
// Poison of an elementwise result: an element is good if all its sources' bytes are.
void SpreadGood(Core& c, const CountOperand& d, uint32_t dw, const CountOperand* s, const uint32_t* sw,
                uint32_t sources, uint64_t count);
void TraceVector(Core& c, DType t, const TensorRef& d, uint64_t elements, uint32_t width, uint32_t repeat,
                 const Strides* strides, uint32_t n);

[[noreturn]] void UnsupportedType(DType t);

}  // namespace TWIN_ABI
}  // namespace twin
