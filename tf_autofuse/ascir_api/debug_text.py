"""utils.debug_str: a HintGraph as text, in the exact layout of the AscIR API (docs/ascir-api.md)."""

from typing import Any, List

import numpy as np
from google.protobuf import text_encoding

from tf_autofuse.ascir_api import dtypes
from tf_autofuse.ascir_api.expression import text
from tf_autofuse.ascir_api.graphs import GraphState, Node

_AXIS_TYPES = ("ORIGINAL", "BLOCK_OUT", "BLOCK_IN", "TILE_OUT", "TILE_IN", "MERGED")


def debug_text(graph: GraphState) -> str:
    """Every line ends in a newline."""
    lines = ["Graph: " + graph.name, "Sizes:"]
    lines += ["  %s: VAR" % name for name in graph.sizes]
    lines.append("Axis:")
    for axis in graph.axes:
        kind = _AXIS_TYPES[axis.type] if 0 <= axis.type < len(_AXIS_TYPES) else "UNKNOWN"
        line = "  %s(%d) : %s, size:%s, " % (axis.name, axis.id, kind, text(axis.size))
        if axis.from_axes:
            line += ", from: {%s}" % "".join(graph.axis_name(i) + ", " for i in axis.from_axes)
        lines.append(line)
    lines.append("Nodes:")
    for position, node in enumerate(graph.nodes):
        lines += _node_lines(graph, node, position)
    return "\n".join(lines) + "\n"


def _node_lines(graph: GraphState, node: Node, position: int) -> List[str]:
    lines = ["  %s: %s (%d)" % (node.name, node.type, position)]
    if node.attributes:
        shown = "".join(".%s = %s" % (key, _attribute(value)) for key, value in node.attributes.items())
        lines.append("    .ir_attr =  {%s}" % shown)
    if not node.is_buffer:
        lines.append("    .axis = {%s}" % "".join(graph.axis_name(i) + ", " for i in node.axis))
    if any(link is not None for link in node.inputs):
        sources = [_source(link) if link is not None else "" for link in node.inputs]
        lines.append("    .x = " + (sources[0] if len(sources) == 1 else "{%s}" % ", ".join(sources)))
    for name, tensor in zip(node.output_names, node.outputs):
        lines.append("    .%s: %s" % (name, dtypes.dumped(tensor.dtype)))
        if tensor.axis:
            lines.append("        .axis = {%s}" % ", ".join(graph.axis_name(i) for i in tensor.axis))
        if tensor.size:
            lines.append("        .repeats = (%s)" % ", ".join(map(text, tensor.size)))
        if tensor.strides:
            lines.append("        .strides = (%s)" % ", ".join(map(text, tensor.strides)))
    return lines


def _source(link) -> str:
    node, number = link
    return node.name + (".y" if len(node.outputs) == 1 else ".y[%d]" % number)


def _attribute(value: Any) -> str:
    """A value as protobuf's short text form prints it."""
    if isinstance(value, bool):
        return "b: %s" % str(value).lower()
    if isinstance(value, int):
        return "i: %d" % value
    if isinstance(value, float):
        return "f: %s" % float_text(value)
    if isinstance(value, str):
        return 's: "%s"' % escaped(value)
    return 'expression: "%s"' % escaped(text(value))


def float_text(value: float) -> str:
    """A float32 as protobuf prints it: the fewest of 6 to 9 digits that read back the same."""
    single = np.float32(value)
    words = ("%.*g" % (digits, single) for digits in range(6, 10))
    return next((word for word in words if np.float32(word) == single), repr(float(single)))


def escaped(word: str) -> str:
    """`word` inside the double quotes of protobuf's text format."""
    return text_encoding.CEscape(word, as_utf8=True)
