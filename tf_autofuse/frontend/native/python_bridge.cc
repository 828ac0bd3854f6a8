#include "python_bridge.h"

#include <pybind11/pybind11.h>

#include <atomic>

#include "columns.h"
#include "tensorflow/core/lib/core/errors.h"

namespace py = pybind11;

namespace autofuse {

using tensorflow::Status;

namespace {

constexpr int kHooks = 5;
// Plain references, never given up at exit: a session may be closed after the interpreter is gone.
std::atomic<PyObject*> hooks[kHooks];
std::atomic<bool> python_down{false};

PyObject* Get(Hook hook) { return hooks[static_cast<int>(hook)].load(); }

// Runs `body` under the GIL and turns what it throws into a Status.
template <typename Body>
Status WithPython(const char* what, Body body) {
  if (python_down || !Py_IsInitialized()) return tensorflow::errors::Unavailable("Python has shut down");
  py::gil_scoped_acquire gil;
  try {
    body();
    return Status::OK();
  } catch (py::error_already_set& error) {
    if (error.matches(PyExc_KeyboardInterrupt)) {
      // Ctrl-C is for the script: it comes again as soon as Python runs on.
      PyErr_SetInterrupt();
      return tensorflow::errors::Cancelled(what, " was interrupted");
    }
    return tensorflow::errors::Internal(what, " raised ", error.what());
  } catch (const std::exception& error) {
    return tensorflow::errors::Internal(what, " gave what can't be used: ", error.what());
  }
}

// A callable of its own reference, so that SetHook from another thread can't take it away during the call.
py::object Callable(Hook hook) { return py::reinterpret_borrow<py::object>(Get(hook)); }

}  // namespace

void SetHook(Hook hook, PyObject* callable) {
  Py_XINCREF(callable);
  PyObject* old = hooks[static_cast<int>(hook)].exchange(callable);
  Py_XDECREF(old);
}

bool HasHook(Hook hook) { return !python_down && Get(hook) != nullptr; }

void ShutDownPython() { python_down = true; }

Status CallWants(const PassContext& context, bool* wants) {
  *wants = true;
  if (!HasHook(Hook::kWants)) return Status::OK();
  return WithPython("reading the settings", [&] {
    const py::object callable = Callable(Hook::kWants);
    if (callable) *wants = callable(ContextToPython(context)).cast<py::object>().cast<bool>();
  });
}

Status CallGraphPass(const GraphAnalysis& analysis, const SymbolicShapes& shapes, const PassContext& context,
                     std::vector<Edit>* edits) {
  return WithPython("the graph pass", [&] {
    const py::object callable = Callable(Hook::kGraphPass);
    if (!callable) return;
    *edits = EditsFromPython(callable(ColumnsToPython(analysis, shapes), ContextToPython(context)));
  });
}

Status CallReport(const std::vector<Rejection>& rejections) {
  if (rejections.empty() || !HasHook(Hook::kReport)) return Status::OK();
  return WithPython("noting what was not applied", [&] {
    py::list list;
    for (const Rejection& rejection : rejections) {
      py::dict entry;
      entry["name"] = rejection.name;
      entry["reason"] = rejection.reason;
      list.append(entry);
    }
    const py::object callable = Callable(Hook::kReport);
    if (callable) callable(list);
  });
}

Status CallDump(const char* stage, const std::string& graph_def, const PassContext& context) {
  if (!HasHook(Hook::kDump)) return Status::OK();
  return WithPython("the graph dump", [&] {
    const py::object callable = Callable(Hook::kDump);
    if (callable) callable(py::str(stage), py::bytes(graph_def), ContextToPython(context));
  });
}

Status CallResolver(const std::string& key, const std::string& asc_graph,
                    const std::function<void(PyObject*)>& use) {
  if (!HasHook(Hook::kResolver)) return Status::OK();
  return WithPython("the kernel resolver", [&] {
    const py::object callable = Callable(Hook::kResolver);
    if (callable) use(py::object(callable(py::str(key), py::bytes(asc_graph))).ptr());
  });
}

}  // namespace autofuse
