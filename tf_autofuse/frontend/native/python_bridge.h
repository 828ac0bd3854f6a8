// The border to Python: the callables that Python registers, and the calls to them from TensorFlow's threads.
//
// Every function here but SetHook may be called from any thread without the GIL; each takes it for the call.
// Once the interpreter shuts down (its atexit handlers run) no Python is called any more. Python exceptions
// come back as Status; they never travel through TensorFlow.
#ifndef TF_AUTOFUSE_NATIVE_PYTHON_BRIDGE_H_
#define TF_AUTOFUSE_NATIVE_PYTHON_BRIDGE_H_

#include <functional>
#include <string>
#include <vector>

#include "activation.h"
#include "analysis.h"
#include "edits.h"
#include "shapes.h"

typedef struct _object PyObject;

namespace autofuse {

enum class Hook { kWants, kGraphPass, kReport, kDump, kResolver };

// Takes a new reference to `callable` (or clears the hook: null). Needs the GIL. The old one is given back.
void SetHook(Hook hook, PyObject* callable);
bool HasHook(Hook hook);
// From here on nothing calls Python.
void ShutDownPython();

// The graph's columns and what the pass makes of them, in one holding of the GIL.
tensorflow::Status CallGraphPass(const GraphAnalysis& analysis, const SymbolicShapes& shapes,
                                 const PassContext& context, std::vector<Edit>* edits);
tensorflow::Status CallWants(const PassContext& context, bool* wants);
tensorflow::Status CallReport(const std::vector<Rejection>& rejections);
tensorflow::Status CallDump(const char* stage, const std::string& graph_def, const PassContext& context);

// `use` gets the resolver's answer (a borrowed reference) under the GIL; not called without a resolver.
tensorflow::Status CallResolver(const std::string& key, const std::string& asc_graph,
                                const std::function<void(PyObject*)>& use);

}  // namespace autofuse

#endif  // TF_AUTOFUSE_NATIVE_PYTHON_BRIDGE_H_
