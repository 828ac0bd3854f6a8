// The graph as Python columns, and edits from Python. All functions need the GIL.
#ifndef TF_AUTOFUSE_NATIVE_COLUMNS_H_
#define TF_AUTOFUSE_NATIVE_COLUMNS_H_

#include <pybind11/pybind11.h>

#include <vector>

#include "activation.h"
#include "analysis.h"
#include "edits.h"
#include "shapes.h"

namespace autofuse {

// One entry a node, in topological order (a node's index is its id):
//   names, ops, devices (assigned)   str
//   inputs                           tuple of (source id, output) by input
//   control_inputs                   tuple of ids, ascending
//   in_dtypes, out_dtypes            tuple of DataType numbers (a reference type is over 100)
//   out_shapes                       tuple by output of None (unknown rank) or a tuple of ints; d < 0 is
//   symbol -d-1 attrs                            dict of the attributes that Python can use (see
//   AttrToPython) colocation                       tuple of str frames                           nested while
//   frames joined by '/', '' outside of loops liveness                         int; equal numbers run under
//   the same tf.cond branches, 0 is always stateful                         bool: a stateful op, or one that
//   reads or gives a reference
// and beside them: constants (id -> numpy array, at most kMaxConstantBytes), symbols (list of dicts origin,
// dim, hint).
pybind11::dict ColumnsToPython(const GraphAnalysis& analysis, const SymbolicShapes& shapes);
pybind11::dict ContextToPython(const PassContext& context);

// Throws pybind11 exceptions on anything that is not a list of edits as described in edits.h.
std::vector<Edit> EditsFromPython(const pybind11::object& edits);

}  // namespace autofuse

#endif  // TF_AUTOFUSE_NATIVE_COLUMNS_H_
