// How an edge gets another source.
#ifndef TF_AUTOFUSE_NATIVE_REDIRECT_H_
#define TF_AUTOFUSE_NATIVE_REDIRECT_H_

#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/lib/core/errors.h"

namespace autofuse {

// The data edge's reader reads output `output` of `source` instead; the edge is gone. Graph::UpdateEdge
// writes to the name of the input in the reader's NodeDef without a look whether there is one: nodes that
// TensorFlow's inlining of functions adds have none, or have control inputs there.
inline void Redirect(tensorflow::Graph* graph, const tensorflow::Edge* edge, tensorflow::Node* source,
                     int output) {
  tensorflow::Node* reader = edge->dst();
  const int input = edge->dst_input();
  const tensorflow::NodeDef& def = reader->def();
  if (input < def.input_size() && !def.input(input).empty() && def.input(input)[0] != '^') {
    TF_CHECK_OK(graph->UpdateEdge(source, output, reader, input));
    return;
  }
  graph->RemoveEdge(edge);
  graph->AddEdge(source, output, reader, input);
}

}  // namespace autofuse

#endif  // TF_AUTOFUSE_NATIVE_REDIRECT_H_
