// The Python face of the extension module _native.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "columns.h"
#include "keep_memory.h"
#include "kernel_meta.h"
#include "kernel_registry.h"
#include "npu.h"
#include "options.h"
#include "python_bridge.h"
#include "tensor_memory.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/graph/graph_constructor.h"

namespace py = pybind11;

namespace autofuse {

using tensorflow::Status;

namespace {

tensorflow::DataTypeVector TypesFromPython(const py::handle& types) {
  tensorflow::DataTypeVector result;
  for (py::handle type : types) result.push_back(static_cast<tensorflow::DataType>(type.cast<int>()));
  return result;
}

KernelMeta MetaFromPython(const py::dict& meta) {
  KernelMeta result;
  result.library = meta["library"].cast<std::string>();
  result.name = meta["name"].cast<std::string>();
  result.input_ranks = meta["input_ranks"].cast<std::vector<int>>();
  result.output_ranks = meta["output_ranks"].cast<std::vector<int>>();
  result.input_dtypes = TypesFromPython(meta["input_dtypes"]);
  result.output_dtypes = TypesFromPython(meta["output_dtypes"]);
  result.size_count = meta["size_count"].cast<int>();
  if (meta.contains("forward")) {
    for (py::handle item : meta["forward"]) {
      const py::sequence pair = py::reinterpret_borrow<py::sequence>(item);
      result.forward.push_back({pair[0].cast<int>(), pair[1].cast<int>()});
    }
  }
  if (meta.contains("small_bytes")) result.small_bytes = meta["small_bytes"].cast<tensorflow::int64>();
  if (meta.contains("device_binary")) {
    result.device_binary = meta["device_binary"].cast<std::string>();
    result.device_entry = meta["device_entry"].cast<std::string>();
    result.all_at_once = meta["all_at_once"].cast<bool>();
    result.unread.resize(result.input_ranks.size());
    for (py::handle input : meta["unread"]) result.unread.at(input.cast<size_t>()) = 1;
  }
  result.machine.core_num = meta["core_num"].cast<tensorflow::uint32>();
  result.machine.ub_size = meta["ub_size"].cast<tensorflow::uint64>();
  return result;
}

void ThrowIfError(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.error_message());
}

void SetHookFromPython(Hook hook, const py::object& callable) {
  if (!callable.is_none() && !PyCallable_Check(callable.ptr())) throw py::type_error("not callable");
  SetHook(hook, callable.is_none() ? nullptr : callable.ptr());
}

void SetOptions(const py::dict& options) {
  for (auto item : options) {
    const std::string name = item.first.cast<std::string>();
    const bool value = item.second.cast<bool>();
    if (name == "foreign_npu") {
      GlobalOptions().foreign_npu = value;
    } else if (name == "allow_remote") {
      GlobalOptions().allow_remote = value;
    } else {
      throw py::key_error("no option named '" + name + "' (foreign_npu, allow_remote)");
    }
  }
}

void RegisterKernel(const std::string& key, const py::dict& meta) {
  const KernelMeta description = MetaFromPython(meta);
  Status status;
  {
    py::gil_scoped_release release;  // loading runs foreign initializers
    status = Register(key, description);
  }
  ThrowIfError(status);
}

py::dict Stats() {
  py::dict result;
  for (const auto& entry : KernelRegistry::Global().AllStats()) {
    KernelStats& stats = *entry.second;
    py::dict last, counters;
    {
      std::lock_guard<std::mutex> lock(stats.mu);
      py::list dims;
      for (auto dim : stats.last_dims) dims.append(py::int_(dim));
      last["dims"] = dims;
      last["block_dim"] = stats.last_block_dim;
      last["refused"] = stats.refused;
    }
    counters["calls"] = stats.calls.load();
    counters["plans"] = stats.plans.load();
    counters["fallbacks"] = stats.fallbacks.load();
    counters["errors"] = stats.errors.load();
    counters["run_ns"] = stats.run_ns.load();
    counters["last"] = last;
    result[py::str(entry.first)] = counters;
  }
  return result;
}

py::dict Memory() {
  const TensorMemory::Counts counts = TensorMemory::Global().counts();
  py::dict result;
  result["in_use"] = counts.in_use;
  result["kept"] = counts.kept;
  result["peak"] = counts.peak;
  result["most"] = counts.most;
  result["mapped"] = counts.mapped;
  result["reused"] = counts.reused;
  result["spare"] = counts.spare;
  result["devices"] = KeepingDevices();
  return result;
}

// A graph as a pass sees it, from a serialized GraphDef.
struct ParsedGraph {
  explicit ParsedGraph(const std::string& bytes)
      : library(tensorflow::OpRegistry::Global(), {}), graph(library) {
    tensorflow::GraphDef def;
    if (!def.ParseFromString(bytes)) throw py::value_error("not a serialized GraphDef");
    ThrowIfError(library.AddLibrary(def.library()));
    tensorflow::GraphConstructorOptions options;
    options.allow_internal_ops = true;
    ThrowIfError(tensorflow::ConvertGraphDefToGraph(options, def, &graph));
    for (tensorflow::Node* node : graph.op_nodes()) {
      node->set_assigned_device_name(node->requested_device());
      tensorflow::PartialTensorShape shape;
      if (node->type_string() == "Placeholder" &&
          tensorflow::GetNodeAttr(node->attrs(), "shape", &shape).ok()) {
        feeds[node->name() + ":0"] = shape;
      }
    }
    ThrowIfError(analysis.Build(graph));
  }
  tensorflow::FunctionLibraryDefinition library;
  tensorflow::Graph graph;
  FeedShapes feeds;
  GraphAnalysis analysis;
};

py::dict GraphColumns(const py::bytes& graph_def) {
  ParsedGraph parsed{std::string(graph_def)};
  SymbolicShapes shapes(parsed.graph, parsed.analysis, parsed.feeds);
  shapes.Infer();
  return ColumnsToPython(parsed.analysis, shapes);
}

py::tuple ApplyEdits(const py::bytes& graph_def, const py::object& edits) {
  ParsedGraph parsed{std::string(graph_def)};
  EditApplier applier(&parsed.graph, parsed.analysis, &parsed.library,
                      [](const std::string&) { return true; });
  py::list rejections;
  for (const Edit& edit : EditsFromPython(edits)) {
    const Status status = applier.Apply(edit);
    if (status.ok()) continue;
    py::dict rejection;
    rejection["name"] = edit.name;
    rejection["reason"] = status.error_message();
    rejections.append(rejection);
  }
  applier.Finish();
  ThrowIfError(CheckAcyclic(parsed.graph));
  tensorflow::GraphDef result;
  parsed.graph.ToGraphDef(&result);
  *result.mutable_library() = parsed.library.ToProto();
  return py::make_tuple(py::bytes(result.SerializeAsString()), rejections);
}

}  // namespace

Status ResolveKernel(const std::string& key, const std::string& asc_graph, bool* found, KernelMeta* meta) {
  *found = false;
  return CallResolver(key, asc_graph, [&](PyObject* answer) {
    if (answer == Py_None) return;
    *meta = MetaFromPython(py::reinterpret_borrow<py::object>(answer).cast<py::dict>());
    *found = true;
  });
}

PYBIND11_MODULE(_native, m) {
  m.doc() = "TF-AutoFuse's graph passes, the AscBackend op and the kernels of this process.";
  m.attr("EDIT_FORMAT") = 2;  // 2: edits with op "Const"
  m.attr("LEAST_KEPT") = size_t{TensorMemory::kLeast};
  m.def(
      "set_graph_pass", [](const py::object& f) { SetHookFromPython(Hook::kGraphPass, f); },
      py::arg("callable"),
      "callable(graph: dict, context: dict) -> list of edits, called for each graph of a session that "
      "asked.");
  m.def(
      "set_wants", [](const py::object& f) { SetHookFromPython(Hook::kWants, f); }, py::arg("callable"),
      "callable(context) -> bool, asked first; where it says no, the graph is not looked at.");
  m.def(
      "set_report", [](const py::object& f) { SetHookFromPython(Hook::kReport, f); }, py::arg("callable"),
      "callable(list of {name, reason}), told the edits that were refused.");
  m.def(
      "set_dump_callback", [](const py::object& f) { SetHookFromPython(Hook::kDump, f); },
      py::arg("callable"),
      "callable(stage: 'before' | 'after', serialized GraphDef, context), called while set_dump(True).");
  m.def(
      "set_resolver", [](const py::object& f) { SetHookFromPython(Hook::kResolver, f); }, py::arg("callable"),
      "callable(key, asc_graph: bytes) -> kernel description | None, asked for kernels that are not "
      "registered.");
  m.def(
      "set_strict", [](bool on) { GlobalOptions().strict = on; }, py::arg("on"));
  m.def(
      "set_dump", [](bool on) { GlobalOptions().dump = on; }, py::arg("on"));
  m.def(
      "set_timing", [](bool on) { GlobalOptions().timing = on; }, py::arg("on"));
  m.def("set_options", &SetOptions, py::arg("options"), "Switches foreign_npu and allow_remote.");
  m.def("register_kernel", &RegisterKernel, py::arg("key"), py::arg("meta"),
        "Loads a kernel library; nodes with this key use it from their next call. RuntimeError says what is "
        "wrong.");
  m.def(
      "disable_kernel", [](const std::string& key) { return KernelRegistry::Global().Disable(key); },
      py::arg("key"),
      "Nodes with this key run their original ops from now on. False where there is no such kernel.");
  m.def(
      "unregister_kernel", [](const std::string& key) { KernelRegistry::Global().Remove(key); },
      py::arg("key"), "Forgets a kernel for nodes made from now on.");
  m.def(
      "has_kernel", [](const std::string& key) { return KernelRegistry::Global().Find(key) != nullptr; },
      py::arg("key"));
  m.def(
      "use_npu",
      [](const std::string& runtime, const std::string& acl, int device) {
        Status status;
        {
          py::gil_scoped_release release;
          status = UseNpu(runtime, acl, device);
        }
        ThrowIfError(status);
      },
      py::arg("runtime"), py::arg("acl"), py::arg("device"),
      "Kernels with a device binary run on this device of libascendcl (`acl`), through the NPU runtime's "
      "library. RuntimeError says what is wrong.");
  m.def(
      "keep_memory", [](unsigned long long bytes) { BytesToKeep() = bytes; }, py::arg("bytes"),
      "Called from the graph pass: the most bytes of freed tensors that sessions keep, if something is fused "
      "in this graph. Not called: its session keeps none.");
  m.def("memory", &Memory,
        "Of the large tensors of sessions that keep memory: bytes in_use and kept, peak (in use at one time "
        "within the last seconds), most (mapped at one time, ever); blocks handed out: mapped, reused. "
        "spare: bytes in use beyond what was asked for. devices: of sessions that can keep memory.");
  m.def("chosen_malloc", &ChosenMalloc,
        "What the user has chosen for malloc, for which sessions keep nothing; '': nothing.");
  m.def("stats", &Stats,
        "Counters by kernel key: calls, plans, fallbacks, errors, run_ns, last {dims, block_dim, refused}.");
  m.def("reset_stats", [] {
    KernelRegistry::Global().ResetStats();
    ForgetNpuWarnings();
  });
  m.def("graph_columns", &GraphColumns, py::arg("graph_def"),
        "The columns of a serialized GraphDef, as a graph pass gets them (placeholders in place of feeds).");
  m.def("apply_edits", &ApplyEdits, py::arg("graph_def"), py::arg("edits"),
        "(serialized GraphDef with the edits applied, list of {name, reason} of those refused).");
  m.attr("ABI_VERSION") = 1;

  py::module::import("atexit").attr("register")(py::cpp_function(&ShutDownPython));
}

}  // namespace autofuse
