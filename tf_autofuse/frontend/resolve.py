"""A kernel from an AscBackend node alone: for graphs that were restored, imported, or sent by another process.

The node carries the serialized FusedGraph and its kernel's content key. The kernel is taken from the cache, or
built from the FusedGraph by the same stages that the optimizer runs; a node whose kernel cannot be had runs its
fallback function.
"""
import os
from typing import Any, Dict, Optional

from tf_autofuse import diagnostics
from tf_autofuse.build.kernels import BuildFailure, build_kernels
from tf_autofuse.codegen.ascendc.generate import generate
from tf_autofuse.config import Config
from tf_autofuse.ir import proto
from tf_autofuse.machine import machine_for
from tf_autofuse.runtime import registry
from tf_autofuse.schedule.schedule import schedule


def resolve_kernel(key: str, asc_graph: bytes) -> Optional[Dict[str, Any]]:
    """The registry's description of the kernel (see runtime/registry.py), or None after a warning.

    The key is not compared: this process's compiler or machine may differ, and gives the kernel another key.
    """
    name = key
    try:
        fused = proto.from_bytes(asc_graph)
        name = fused.name
        config = Config.from_sources(os.environ)
        machine = machine_for(config.soc_version)
        impls = tuple(impl for graph in fused.graphs for impl in schedule(graph, machine))
        result = build_kernels([generate(fused, impls, machine, config)], config)[0]
    except Exception as error:
        result = BuildFailure("%s: %s" % (type(error).__name__, error), "the node runs its fallback function", "")
    if isinstance(result, BuildFailure):
        diagnostics.warn_region(name, result.reason, result.remedy)
        return None
    return registry.meta(result, fused, machine)
