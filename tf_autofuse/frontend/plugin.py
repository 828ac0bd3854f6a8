"""The Python half of the graph passes: what the native side calls, and what it gets back.

`activate()` loads the native extension and hands it the callables; from then on the native passes act in
every session whose ConfigProto names one of our optimizers. Nothing here raises into TF: the native side
turns an exception into an unchanged graph and one warning (or, in strict mode, an error).

The compiler is imported by the first graph that wants it: a process that never uses the plugin does not
pay for it.
"""
import functools
import gc
import os
import sys
import threading
import time
from typing import Any, Dict, List, NamedTuple, Optional

from tf_autofuse import diagnostics
from tf_autofuse.config import Config
from tf_autofuse.frontend import npu_face

_lock = threading.RLock()  # importing tensorflow may activate the plugin on this very thread
_native = None
#: The settings of the graph that this thread is at.
_seen = threading.local()


def native():
    """The loaded native module. Raises ImportError with a remedy where it cannot be loaded."""
    activate()
    return _native


def activate() -> None:
    """Loads the native extension once and registers the callables. Raises ImportError with a remedy."""
    global _native
    with _lock:
        if _native is not None:
            return
        import tensorflow  # noqa: F401  the extension's symbols come from TF's libraries
        if _native is not None:
            return
        from tf_autofuse.frontend import _native as module
        _register(module)
        from tf_autofuse.frontend import profiler

        profiler.install()
        _native = module


def _register(module) -> None:
    """Gives the native side its callables and switches, whatever it had before."""
    config = Config.from_sources(os.environ)
    module.set_strict(bool(config.strict))
    module.set_dump(bool(config.dump_ge_graph))
    module.set_wants(_wants)
    module.set_graph_pass(_graph_pass)
    module.set_report(_report)
    module.set_dump_callback(_dump)
    module.set_resolver(_resolve)


def register_again() -> None:
    """Makes the plugin the native side's user again, where somebody else (a test) had taken it over."""
    _register(native())


def _read_config(context: Dict[str, Any]) -> Config:
    config = Config.from_sources(os.environ, context.get("parameter_map") or {})
    diagnostics.report_problems(config)
    _seen.graph = _identity(context)
    _seen.config = config
    return config


def _config_of(context: Dict[str, Any]) -> Config:
    """The settings for this graph: those that `_wants`, which the native side asks first and on the same
    thread, has read, so that they are read once and the same for all that happens to the graph."""
    if getattr(_seen, "graph", None) == _identity(context):
        return _seen.config
    return _read_config(context)


def _identity(context: Dict[str, Any]):
    return tuple(context.get(name) for name in ("session", "function_name", "signature", "parameter_map"))


def _wants(context: Dict[str, Any]) -> bool:
    if context.get("entry") == "NpuOptimizer" and _real_npu_bridge_loaded():
        return False
    config = _read_config(context)
    # A script may have changed its environment since the plugin was loaded.
    _native.set_strict(bool(config.strict))
    return config.enable_autofuse


def _real_npu_bridge_loaded() -> bool:
    """Whether an npu_bridge other than our face is in use: then the entry NpuOptimizer is its own."""
    module = sys.modules.get(npu_face.ROOT)
    return module is not None and not npu_face.is_face(module)


def _graph_pass(columns: Dict[str, Any], context: Dict[str, Any]) -> List[Dict[str, Any]]:
    # Most of what a pass makes lives on; looking through it for cycles takes as long as the pass itself.
    collects = gc.isenabled()
    gc.disable()
    try:
        return _fuse(columns, context)
    finally:
        if collects:
            gc.enable()


def _fuse(columns: Dict[str, Any], context: Dict[str, Any]) -> List[Dict[str, Any]]:
    from tf_autofuse.frontend import answers
    from tf_autofuse.report import journal
    from tf_autofuse.runtime.target import HOST, choose_target

    start = time.perf_counter()
    config = _config_of(context)
    target = choose_target(config)
    from tf_autofuse.runtime.device import NpuGone

    try:
        npu = _npu_for(config, target)
    except NpuGone as gone:
        diagnostics.warn_once("npu gone", "nothing is fused in this process: %s" % gone,
                              "or open sessions in the child only, or run it with AUTOFUSE_TARGET=host")
        return []
    key = answers.key_of(columns, config, target, npu.stamp if npu else "")
    answer = answers.find(key, config) if key is not None else None
    pending = 0
    if answer is None:
        answer, compilation = _compile(columns, config, target, npu)
        pending = len({region.key for region in compilation.pending})
        if key is not None and not compilation.pending and not compilation.failures:
            answers.keep(key, answer, config)
        again = lambda: compilation  # noqa: E731
    else:
        again = functools.lru_cache(maxsize=1)(lambda: _compile(columns, config, target, npu)[1])
    for kernel, meta in answer.kernels:
        _native.register_kernel(kernel, meta)
    _native.keep_memory(min(config.tensor_memory, 2 ** 62) if target == HOST else 0)
    signature = context.get("signature") or {}
    graph = context.get("function_name") or "graph"
    seconds = time.perf_counter() - start
    journal.add(journal.GraphRecord(
        graph, tuple(signature.get("feeds", ())), tuple(signature.get("fetches", ())), len(columns["names"]),
        target, config, tuple(edit["name"] for edit in answer.edits), again, seconds=seconds))
    if config.verbose:
        _tell(graph, columns["names"], config, answer.edits, seconds, pending)
    # An extension that was built before there were such edits does without them.
    return answer.edits + (answer.constants if getattr(_native, "EDIT_FORMAT", 1) >= 2 else [])


class _Npu(NamedTuple):
    """keeps: tensors between fused ops stay on the device. stamp: all that an answer depends on."""

    toolkit: Any
    keeps: bool
    stamp: str


def _npu_for(config: Config, target: str):
    """The NPU that this graph's kernels run on, known to the native side, or None."""
    from tf_autofuse.build.stamps import toolkit_stamp
    from tf_autofuse.frontend import profiler
    from tf_autofuse.runtime.device import npu_for

    npu = npu_for(config, target)
    if npu is None:
        return None
    try:
        _native.use_npu(npu.runtime.library, npu.runtime.acl, npu.runtime.device)
    except RuntimeError as error:
        diagnostics.warn_once("npu", "the NPU is not used: %s" % error, "clear the kernel cache")
        return None
    # A profile wants every tensor's shape, which TensorFlow's tracer does not see on the device.
    keeps = not profiler.wants_tensors(config)
    return _Npu(npu.toolkit, keeps, repr((toolkit_stamp(npu.toolkit), keeps)))


def _compile(columns: Dict[str, Any], config: Config, target: str, npu):
    """(the answer, the Compilation)."""
    from tf_autofuse.compiler import compile_graph
    from tf_autofuse.frontend import rewrite
    from tf_autofuse.frontend.answers import Answer
    from tf_autofuse.lowering.graph_view import GraphView
    from tf_autofuse.runtime import registry

    compilation = compile_graph(GraphView.from_columns(columns), config, target, _deliver_for(config, target),
                                npu.toolkit if npu else None)
    keeps = npu is not None and npu.keeps
    for failure in compilation.failures:
        diagnostics.warn_region(
            failure.region.name, "%s failed: %s" % (failure.stage, failure.reason), failure.remedy)
    kernels: Dict[str, Dict[str, Any]] = {}
    for compiled in compilation.compiled:
        if compiled.binary.key not in kernels:
            kernels[compiled.binary.key] = registry.meta(
                compiled.binary, compiled.region.emitted.body.fused, compilation.machine)
    edits = [rewrite.edit_of(c.region, c.binary.key, keeps) for c in compilation.compiled]
    edits += [rewrite.edit_of(p.region, p.key, keeps) for p in compilation.pending]
    operands = compilation.plan.operands if edits else ()
    constants = [rewrite.constant_edit_of(o, columns["names"][o.node]) for o in operands]
    return Answer(edits, list(kernels.items()), constants), compilation


def _deliver_for(config: Config, target: str):
    """What takes a kernel that the session has not waited for: its nodes use it from their next call."""
    def deliver(key: str, body, result) -> None:
        from tf_autofuse.codegen.targets import target_named
        from tf_autofuse.kernel_store import StageFailure
        from tf_autofuse.runtime import registry
        if not isinstance(result, StageFailure):
            try:
                machine = target_named(target).machine(config)
                _native.register_kernel(key, registry.meta(result, body.fused, machine))
                return
            except RuntimeError as error:
                result = StageFailure("loading", str(error), "the region runs as TensorFlow's own ops")
        diagnostics.warn_region(
            body.fused.name, "%s failed: %s" % (result.stage, result.reason), result.remedy)

    return deliver


def _tell(
    graph: str, names: List[str], config: Config, edits: List[Dict[str, Any]], seconds: float, pending: int
) -> None:
    for edit in edits:
        members = ", ".join(names[node] for node in edit["nodes"])
        diagnostics.inform(2, config, "%s: %s" % (edit["name"], members))
    text = "%s: %d of %d nodes fused into %d op%s (%.0f ms)" % (
        graph, sum(len(edit["nodes"]) for edit in edits), len(names), len(edits),
        "" if len(edits) == 1 else "s", 1e3 * seconds)
    if pending:
        text += "; building %d kernel%s in the background, TensorFlow's own ops run until then" % (
            pending, "s" if pending > 1 else "")
    diagnostics.inform(1, config, text)


def _report(dropped: List[Dict[str, str]]) -> None:
    from tf_autofuse.report import journal
    journal.mark_dropped({d["name"]: d["reason"] for d in dropped})
    for d in dropped:
        diagnostics.warn_region(d["name"], d["reason"], "the region runs as TensorFlow's own ops")


def _dump(stage: str, serialized: bytes, context: Dict[str, Any]) -> None:
    from tf_autofuse.frontend import graph_dump
    config = _config_of(context)
    try:
        graph_dump.dump_graph(stage, serialized, context.get("function_name") or "graph", config)
    except OSError as error:
        diagnostics.warn_once("dump", "the graph dump was not written: %s" % error,
                              "set DUMP_GRAPH_PATH to a folder that can be written")


def _resolve(key: str, asc_graph: bytes) -> Optional[Dict[str, Any]]:
    """A kernel for a node that this process's optimizer has not made: restored, imported or sent by
    another worker."""
    from tf_autofuse import background
    from tf_autofuse.frontend.resolve import resolve_kernel
    if background.unavailable(key):
        return None
    return resolve_kernel(key, asc_graph, _npu_for)
