"""ascir.utils: dumping, reading back, tracing, the platform."""

import logging
import os
import threading
from typing import List, Tuple

from tf_autofuse.ascir_api.debug_text import debug_text
from tf_autofuse.ascir_api.graphs import (
    FusedGraph,
    GraphState,
    HintComputeGraph,
    HintGraph,
    ShapeInfo,
    graph_of,
    state_of,
)
from tf_autofuse.ascir_api.platform import set_platform
from tf_autofuse.ascir_api.text_forms import read_compute_graph, read_graph, read_shape_info, write_graph

_log = logging.getLogger("tf_autofuse.ascir")
_lock = threading.Lock()
_samples: List[Tuple[Tuple[str, ...], int, int]] = []
_dumped = [0]


def debug_str(graph) -> str:
    """The graph as text. Raises TypeError for anything but a HintGraph."""
    if not isinstance(graph, HintGraph):
        raise TypeError("Argument must be a HintGraph object")
    return debug_text(state_of(graph))


def dump(graph) -> None:
    """Writes the graph as protobuf text, as an ONNX-like node list and in readable form, one file each."""
    if not isinstance(graph, (HintGraph, FusedGraph)):
        raise TypeError("Argument must be a HintGraph or FusedGraph object, got %s" % type(graph).__name__)
    state = state_of(graph)
    folder = _dump_folder()
    os.makedirs(folder, exist_ok=True)
    with _lock:
        number = _dumped[0]
        _dumped[0] += 1
    name = "".join(c if c.isalnum() or c in "_-." else "_" for c in state.name)
    for kind, ending, text in (
        ("proto", "txt", write_graph(state)),
        ("onnx", "pbtxt", onnx_text(state)),
        ("readable", "txt", debug_text(state)),
    ):
        path = os.path.join(folder, "ge_%s_%08d_graph_%d_%s.%s" % (kind, number, number, name, ending))
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)


def _dump_folder() -> str:
    pid = os.getpid()
    if os.environ.get("NPU_COLLECT_PATH"):
        return os.path.join(os.environ["NPU_COLLECT_PATH"], "extra-info", "graph", "%d_0" % pid)
    if os.environ.get("DUMP_GRAPH_PATH"):
        return os.path.join(os.environ["DUMP_GRAPH_PATH"], "pid_%d_deviceid_0" % pid)
    return os.environ.get("ASCEND_WORK_PATH") or "."


def onnx_text(state: GraphState) -> str:
    """The nodes and edges as ONNX's text format has them, for graph viewers."""
    from tf_autofuse.ascir_api.debug_text import escaped

    lines = ["ir_version: 5", "graph {", '  name: "%s"' % escaped(state.name)]
    for node in state.nodes:
        lines.append("  node {")
        for link in node.inputs:
            if link is not None:
                lines.append('    input: "%s:%d"' % (escaped(link[0].name), link[1]))
        for number in range(len(node.outputs)):
            lines.append('    output: "%s:%d"' % (escaped(node.name), number))
        lines += ['    name: "%s"' % escaped(node.name), '    op_type: "ge:%s"' % node.type, "  }"]
    return "\n".join(lines + ["}"]) + "\n"


def deserialize(*arguments, **ignored):
    """(kind, text) -> HintGraph, ShapeInfo or HintComputeGraph. Raises TypeError."""
    if len(arguments) != 2 or not all(isinstance(a, str) for a in arguments):
        raise TypeError("UtilsDeserialize param parse failed")
    kind, text = arguments
    if kind == "asc_graph":
        return graph_of(_read(read_graph, text, "HintGraph DeserializeFromReadable fail"))
    if kind == "symbol_source_info":
        info = ShapeInfo()
        info._entries = _read(read_shape_info, text, "ShapeInfo Deserialize fail")
        return info
    if kind == "compute_graph":
        graph = HintComputeGraph()
        graph._state = _read(read_compute_graph, text, "HintComputeGraph Deserialize fail")
        return graph
    raise TypeError("value of type is invalid")


def _read(reader, text: str, failure: str):
    try:
        return reader(text)
    except ValueError as error:
        raise TypeError(failure) from error


def duration_record(*arguments, **ignored) -> None:
    """(labels, start, duration in nanoseconds): one sample of a trace."""
    if len(arguments) != 3 or not isinstance(arguments[1], int) or not isinstance(arguments[2], int):
        raise TypeError("UtilsDurationRecord param parse failed")
    labels, start, duration = arguments
    if not isinstance(labels, list) or not all(isinstance(word, str) for word in labels):
        raise TypeError("target param is invalid")
    if start < 0 or duration < 0:
        raise TypeError("duration param is invalid")
    with _lock:
        _samples.append((tuple(labels), int(start), int(duration)))


def report_durations() -> None:
    """Logs the collected samples (logger tf_autofuse.ascir, level INFO) and forgets them."""
    with _lock:
        samples, _samples[:] = list(_samples), []
    for labels, start, duration in samples:
        _log.info("%s: start %d ns, %d ns", "/".join(labels), start, duration)


__all__ = ["debug_str", "deserialize", "dump", "duration_record", "report_durations", "set_platform"]
