// Constant folding by TensorFlow itself, for graphs that arrive unfolded because Grappler failed.
#ifndef TF_AUTOFUSE_NATIVE_FOLD_H_
#define TF_AUTOFUSE_NATIVE_FOLD_H_

#include "tensorflow/core/common_runtime/device_set.h"
#include "tensorflow/core/graph/graph.h"

namespace autofuse {

// True where some node reads constants only and could be evaluated now: Grappler leaves none behind when it
// succeeds.
bool NeedsFolding(const tensorflow::Graph& graph);

// Folds in place and removes what is then dead. On an error the graph may be half folded (each fold by itself
// keeps its meaning), so work on a copy. Does nothing without a local CPU device.
tensorflow::Status FoldConstants(const tensorflow::DeviceSet* devices, tensorflow::Graph* graph);

}  // namespace autofuse

#endif  // TF_AUTOFUSE_NATIVE_FOLD_H_
