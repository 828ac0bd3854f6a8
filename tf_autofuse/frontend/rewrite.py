"""From regions to edits of the TF graph.

An edit is a plain dict (the native side's form): which nodes go, what takes their place, and the
attributes that make the new node self-contained: the serialized FusedGraph and the key of its kernel,
made of its content. The native side keeps the nodes as the fallback function.
"""
from typing import Any, Dict

from tf_autofuse.lowering.known_operands import KnownOperand
from tf_autofuse.lowering.plan import Region

#: What an edit puts in where it only gives a node a constant operand.
CONSTANT = "Const"


def edit_of(region: Region, kernel_key: str, keeps: bool = False) -> Dict[str, Any]:
    """The edit that puts an op with this kernel in the region's place. keeps: the kernel runs on the NPU, and
    what only goes to another such op stays there."""
    emitted = region.emitted
    return {
        "name": emitted.name,
        "op": emitted.op_type,
        "nodes": list(region.nodes),
        "copies": list(region.copies),
        "inputs": [tuple(t) for t in region.inputs],
        "outputs": [tuple(t) for t in region.outputs],
        "attrs": {
            "kernel_name": emitted.name,
            "kernel_key": kernel_key,
            "asc_graph": emitted.serialized,
            **({"_on_device": True} if keeps else {}),
        },
    }


def constant_edit_of(operand: KnownOperand, reader: str) -> Dict[str, Any]:
    """The edit that gives the TF node, of name `reader`, a constant operand."""
    return {
        "name": "%s/autofuse_known_%d" % (reader, operand.at),
        "op": CONSTANT,
        "nodes": [operand.node],
        "slot": operand.at,
        "elements": list(operand.elements),
        "scalar": operand.scalar,
        "dtype": operand.dtype,
        "copies": list(operand.chain),
    }
