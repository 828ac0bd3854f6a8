// Why: the element operations that instructions on two tensors and those on a tensor and a scalar share. Max
// and Min give the first operand unless the second is larger or smaller: TensorFlow's choice on NaN and
// signed zeros.
#pragma once
#include "vector_base.h"

namespace twin {
inline namespace TWIN_ABI {

struct AddOp {
  template <typename T>
  T operator()(T a, T b) const {
    return a + b;
  }
};
struct MulOp {
  template <typename T>
  T operator()(T a, T b) const {
    return a * b;
  }
};
struct MaxOp {
  template <typename T>
  T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};
struct MinOp {
  template <typename T>
  T operator()(T a, T b) const {
    return b < a ? b : a;
  }
};

}  // namespace TWIN_ABI
}  // namespace twin
