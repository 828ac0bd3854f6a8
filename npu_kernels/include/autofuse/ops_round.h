// Why: TensorFlow's Round of float: half to even, where whatever rounds to zero gives 0.0 and only -0.0 gives
// -0.0.
//   Round(dst, src, tmp, count)     in place; RoundTmpBytes(count)
// r = rint(x) + 0.0 has the right value with every zero positive; max(min(x, r), r) is r again, but x where
// both are zeros, since min and max keep their first operand then.
#pragma once
#include "ops_vector.h"

namespace autofuse {
namespace ops {

struct RoundBody {
  static constexpr uint32_t kTensors = 2;
  __aicore__ static inline void Run(const Lanes& v, const Floats& dst, const Floats& x, Scratch s,
                                    uint32_t chunk) {
    const Floats r = s.Take<float>(chunk), t = s.Take<float>(chunk);
    v.Rint(r, x);
    v.Adds(r, r, 0.0f);
    v.Min(t, x, r);
    v.Max(dst, t, r);
  }
};

}  // namespace ops

AUTOFUSE_OPS_UNARY(Round)

}  // namespace autofuse
