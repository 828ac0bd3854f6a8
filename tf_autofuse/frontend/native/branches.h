// Branches that no run takes: conds whose predicate is a constant, as frozen Keras models have them for every
// dropout and batch norm. TensorFlow's own passes leave them, and its executor runs what only they read.
#ifndef TF_AUTOFUSE_NATIVE_BRANCHES_H_
#define TF_AUTOFUSE_NATIVE_BRANCHES_H_

#include "tensorflow/core/graph/graph.h"

namespace autofuse {

// Takes away each Switch whose predicate is a constant, what is dead behind it, the Merges that it leaves one
// live input, and what only these read, as far as it has no state and no other effect: what runs outside of
// the branch does so still. A RefSwitch is not decided, whatever its predicate: what is behind it writes to
// where its input lies. False: the graph is untouched, since nothing is decided or something dead could be
// seen (a fetch, a transfer, a loop, an order).
bool FoldBranches(tensorflow::Graph* graph);

}  // namespace autofuse

#endif  // TF_AUTOFUSE_NATIVE_BRANCHES_H_
