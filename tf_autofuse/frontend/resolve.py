"""A kernel from an AscBackend node alone: for graphs that were restored, imported, or sent by another
process.

The node carries the serialized FusedGraph and its kernel's content key. The kernel is taken from the cache,
or built from the FusedGraph by the same stages that the optimizer runs; a node whose kernel cannot be had
runs its fallback function.
"""
import os
from typing import Any, Callable, Dict, Optional

from tf_autofuse import diagnostics
from tf_autofuse.build.kernels import BuildFailure
from tf_autofuse.codegen.targets import target_named
from tf_autofuse.compiler import compile_fused
from tf_autofuse.config import Config
from tf_autofuse.ir import proto
from tf_autofuse.runtime import registry
from tf_autofuse.runtime.target import choose_target


def resolve_kernel(key: str, asc_graph: bytes,
                   npu_for: Callable[[Config, str], Any]) -> Optional[Dict[str, Any]]:
    """The registry's description of the kernel (see runtime/registry.py), or None after a warning.
    npu_for(config, target): what has the toolkit of the NPU that kernels run on, or None.

    The key is not compared: this process's compiler or machine may differ, and gives the kernel another key.
    """
    config = Config.from_sources(os.environ)
    target = choose_target(config)
    try:
        fused = proto.from_bytes(asc_graph)
    except Exception as error:
        diagnostics.warn_region(key, "%s: %s" % (type(error).__name__, error),
                                "the node runs its fallback function")
        return None
    npu = npu_for(config, target)
    result = compile_fused(fused, config, target, npu.toolkit if npu else None)
    if isinstance(result, BuildFailure):
        diagnostics.warn_region(fused.name, result.reason, result.remedy)
        return None
    return registry.meta(result, fused, target_named(target).machine(config))
