"""From compiled regions to edits of the TF graph.

An edit is a plain dict (the native side's form): which nodes go, what takes their place, and the attributes that make
the new node self-contained: the serialized FusedGraph and the content key of its kernel. The native side
keeps the nodes as the fallback function.
"""
from typing import Any, Dict

from tf_autofuse.compiler import CompiledRegion
from tf_autofuse.ir import proto


def edit_of(compiled: CompiledRegion) -> Dict[str, Any]:
    """The edit that puts the region's kernel in its place."""
    region, fused = compiled.region, compiled.region.fused
    return {
        "name": fused.name,
        "op": fused.op_type,
        "nodes": list(region.nodes),
        "copies": list(region.copies),
        "inputs": [tuple(t) for t in region.inputs],
        "outputs": [tuple(t) for t in region.outputs],
        "attrs": {
            "kernel_name": fused.name,
            "kernel_key": compiled.binary.key,
            "asc_graph": proto.to_bytes(fused),
        },
    }
