// Which tensors stay on the device: those that a fused op reads of another one on the same device.
//
// On entry a graph whose edits are applied; fused nodes whose kernels run on the NPU are marked (kOnDevice).
// On exit every edge between two of them carries a Resident: an output that only fused ops read has no values
// on the host any more, one that others read as well (a fetch, an ordinary op) has both, as two outputs of
// the node.
#ifndef TF_AUTOFUSE_NATIVE_KEEP_ON_DEVICE_H_
#define TF_AUTOFUSE_NATIVE_KEEP_ON_DEVICE_H_

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/lib/core/status.h"

namespace autofuse {

// The mark: a boolean attribute of the node, set by the edit.
constexpr char kOnDevice[] = "_on_device";

// The graph is changed as a whole or, with an error, not at all.
tensorflow::Status KeepOnDevice(tensorflow::Graph* graph);

}  // namespace autofuse

#endif  // TF_AUTOFUSE_NATIVE_KEEP_ON_DEVICE_H_
