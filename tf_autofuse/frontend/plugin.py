"""The Python half of the graph passes: what the native side calls, and what it gets back.

`activate()` loads the native extension and hands it the callables; from then on the native passes act in every
session whose ConfigProto names one of our optimizers. Nothing here raises into TF: the native side turns an
exception into an unchanged graph and one warning (or, in strict mode, an error).

The compiler is imported by the first graph that wants it: a process that never uses the plugin does not pay for it.
"""
import os
import sys
import threading
import time
from typing import Any, Dict, List, Optional

from tf_autofuse import diagnostics
from tf_autofuse.config import Config
from tf_autofuse.frontend import npu_face

_lock = threading.Lock()
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
    """The settings for this graph: those that `_wants`, which the native side asks first and on the same thread, has read,
    so that they are read once and the same for all that happens to the graph."""
    if getattr(_seen, "graph", None) == _identity(context):
        return _seen.config
    return _read_config(context)


def _identity(context: Dict[str, Any]):
    return (context.get("session"), context.get("function_name"), context.get("signature"), context.get("parameter_map"))


def _wants(context: Dict[str, Any]) -> bool:
    if context.get("entry") == "NpuOptimizer" and _real_npu_bridge_loaded():
        return False
    return _read_config(context).enable_autofuse


def _real_npu_bridge_loaded() -> bool:
    """Whether an npu_bridge other than our face is in use: then the entry NpuOptimizer is its own."""
    module = sys.modules.get(npu_face.ROOT)
    return module is not None and not npu_face.is_face(module)


def _graph_pass(columns: Dict[str, Any], context: Dict[str, Any]) -> List[Dict[str, Any]]:
    from tf_autofuse.compiler import compile_graph
    from tf_autofuse.frontend import rewrite
    from tf_autofuse.lowering.graph_view import GraphView
    from tf_autofuse.report import journal
    from tf_autofuse.runtime import registry
    from tf_autofuse.runtime.target import choose_target

    start = time.perf_counter()
    config = _config_of(context)
    target = choose_target(config)
    view = GraphView.from_columns(columns)
    compilation = compile_graph(view, config, target)
    for failure in compilation.failures:
        diagnostics.warn_region(failure.region.fused.name, "%s failed: %s" % (failure.stage, failure.reason),
                                failure.remedy)
    edits = []
    for compiled in compilation.compiled:
        _native.register_kernel(compiled.binary.key, registry.meta(
            compiled.binary, compiled.region.fused, compilation.machine))
        edits.append(rewrite.edit_of(compiled))
    signature = context.get("signature") or {}
    journal.add(journal.GraphRecord(
        context.get("function_name") or "graph", tuple(signature.get("feeds", ())),
        tuple(signature.get("fetches", ())), len(columns["names"]), target, config, compilation,
        seconds=time.perf_counter() - start))
    for compiled in compilation.compiled:
        diagnostics.inform(2, config, "%s: %s" % (compiled.region.fused.name, ", ".join(compiled.region.fused.origin)))
    diagnostics.inform(1, config, "%s: %d of %d nodes fused into %d ops (%.0f ms)" % (
        context.get("function_name") or "graph", sum(len(c.region.nodes) for c in compilation.compiled),
        len(columns["names"]), len(compilation.compiled), 1e3 * (time.perf_counter() - start)))
    return edits


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
    """A kernel for a node that this process's optimizer has not made: restored, imported or sent by another worker."""
    from tf_autofuse.frontend.resolve import resolve_kernel
    return resolve_kernel(key, asc_graph)
