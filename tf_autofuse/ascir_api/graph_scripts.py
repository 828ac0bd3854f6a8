"""What scheduling leaves behind on request (AUTOFUSE_DFX_FLAGS: codegen_compile_debug, debug_dir).

Each scheduled graph gets, in a folder of its own, its text and nodes before and after scheduling and a
Python script in the API that builds it again. On exit of `script_of` the text is a runnable script whose
graph prints as the one given. A folder that can't be written costs a warning, never the schedule."""

import os
import threading
from pathlib import Path
from typing import Any, Dict, List, Optional

from tf_autofuse import diagnostics
from tf_autofuse.ascir_api import dtypes, platform
from tf_autofuse.ascir_api import expression as ex
from tf_autofuse.ascir_api.debug_text import debug_text
from tf_autofuse.ascir_api.graphs import GraphState, Node
from tf_autofuse.ascir_api.tools import onnx_text
from tf_autofuse.config import Config

_lock = threading.Lock()
_count = [0]
_LINE = "=" * 80 + "\n"


def dump_stage(state: GraphState, stage: str) -> None:
    """Writes the graph as it is now. stage: 'before_schedule', 'after_schedule' or 'failed'."""
    config = Config.from_sources(os.environ)
    if not config.codegen_compile_debug:
        return
    with _lock:
        number = _count[0]
        _count[0] += 1
    folder = Path(config.debug_dir or ".") / "autofuse_compile_debug" / ("ascgen_dump_pid_%d" % os.getpid())
    folder = folder / _safe(state.name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for graph in [state] + [n.subgraph for n in state.nodes if n.subgraph is not None]:
            name = _safe(graph.name)
            _write(folder / ("ascgraph_%05d_%s_%s_0.txt" % (number, name, stage)), report(graph, stage))
            _write(folder / ("ge_onnx_%05d_%s_%s.pbtxt" % (number, name, stage)), onnx_text(graph))
            if stage == "before_schedule" and not any(n.subgraph is not None for n in graph.nodes):
                _write(folder / ("py_code_%s.py" % name), script_of(graph))
    except OSError as error:
        diagnostics.warn_once(
            "graph dump",
            "the dump of graph %s was not written (%s)" % (state.name, error),
            "set --debug_dir (AUTOFUSE_DFX_FLAGS) to a folder that can be written",
        )


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _safe(name: str) -> str:
    return "".join(c if c.isalnum() or c in "_-" else "_" for c in name) or "graph"


def report(graph: GraphState, stage: str) -> str:
    """For people: the loops, then the graph."""
    loops = []
    for node in graph.nodes:
        words = " ".join(graph.axis_name(i) for i in node.axis)
        loops.append("%-24s %-16s loops over (%s)" % (node.name, node.type, words))
    return "".join(
        (
            _LINE,
            "AscGraph %s, %s\n" % (graph.name, stage),
            _LINE,
            "VIEW 1: Loop Execution\n",
            "-" * 80 + "\n",
            "".join(line.rstrip() + "\n" for line in loops),
            "VIEW 2: Graph Structure\n",
            "-" * 80 + "\n",
            debug_text(graph),
            _LINE,
            "End of Dump\n",
        )
    )


def script_of(graph: GraphState) -> str:
    """A script in the API that builds the graph, schedules it and generates its code."""
    writer = _Script(graph)
    return "\n".join(writer.lines()) + "\n"


class _Script:
    def __init__(self, graph: GraphState):
        self.graph = graph
        self.names: Dict[int, str] = {id(n): "op%d" % i for i, n in enumerate(graph.nodes)}

    def lines(self) -> List[str]:
        soc = platform.current()
        found = [
            "from autofuse.pyautofuse import Autofuser, AutofuserOptions, ascir",
            "",
            "ascir.utils.set_platform(%r, %d, %d)" % (soc.soc or "", soc.vector_cores, soc.ub_bytes),
            "graph = ascir.HintGraph(%r)" % self.graph.name,
        ]
        found += ["graph.create_size(%r)" % name for name in self.graph.sizes]
        found += [
            "",
            "",
            "def symbol(name):",
            "    return ascir.HintGraph('symbols').create_size(name)",
            "",
            "",
        ]
        for axis in self.graph.axes:
            found.append("z%d = graph.create_axis(%r, %s)" % (axis.id, axis.name, expression_code(axis.size)))
        for node in self.graph.nodes:
            found.append("")
            found += self._node(node)
        return found + [
            "",
            "",
            'if __name__ == "__main__":',
            "    print(ascir.utils.debug_str(graph))",
            "    fuser = Autofuser(AutofuserOptions())",
            "    result = fuser.schedule(graph)",
            "    tiling_data, tiling, kernel = fuser.codegen(result)",
            "    print(kernel)",
        ]

    def _node(self, node: Node) -> List[str]:
        name = self.names[id(node)]
        found = [self._made(name, node)]
        found += self._links(name, node)
        for key, value in node.attributes.items():
            shown = expression_code(value) if not isinstance(value, (bool, int, float, str)) else repr(value)
            found.append("%s.attr.ir_attr.%s = %s" % (name, key, shown))
        if node.row is not None and node.compute != node.row.compute and node.compute != "unknown":
            word = "elemwise" if node.compute == "elewise" else node.compute
            found.append("%s.attr.api.compute_type = %r" % (name, word))
        if node.axis:
            found.append("%s.attr.sched.axis = [%s]" % (name, ", ".join("z%d" % i for i in node.axis)))
        for i, tensor in enumerate(node.outputs):
            view = "%s.%s" % (name, "y[%d]" % i if node.type == "Split" else node.output_names[i])
            if tensor.dtype != dtypes.UNDEFINED:
                found.append("%s.dtype = %d  # %s" % (view, tensor.dtype, dtypes.serial(tensor.dtype)))
            if tensor.axis:
                found.append("%s.axis = [%s]" % (view, ", ".join("z%d" % i for i in tensor.axis)))
            for what, values in (("size", tensor.size), ("strides", tensor.strides)):
                if values:
                    found.append("%s.%s = [%s]" % (view, what, ", ".join(map(expression_code, values))))
        return found

    def _made(self, name: str, node: Node) -> str:
        more = ", graph" if node.row.is_start else ", %d" % len(node.outputs) if node.type == "Split" else ""
        return "%s = ascir.ops.%s(%r%s)" % (name, node.type, node.name, more)

    def _links(self, name: str, node: Node) -> List[str]:
        sources = [self._source(link) for link in node.inputs]
        ports = node.row.inputs
        if ports and (ports[0].is_list or len(sources) > len(ports)):
            return (
                ["%s.%s = [%s]" % (name, ports[0].name, ", ".join(s for s in sources if s))]
                if sources
                else []
            )
        return ["%s.%s = %s" % (name, p.name, s) for p, s in zip(ports, sources) if s]

    def _source(self, link: Optional[Any]) -> str:
        if link is None:
            return ""
        node, number = link
        return "%s.%s" % (
            self.names[id(node)],
            "y[%d]" % number if node.type == "Split" else node.output_names[number],
        )


def expression_code(e: ex.Expression) -> str:
    """A Python expression over `symbol` and `ascir` that makes the size again."""
    if ex.is_number(e):
        return (
            str(e.numerator)
            if e.denominator == 1
            else "ascir.SizeExpr(%d) / %d" % (e.numerator, e.denominator)
        )
    kind = e[0]
    if kind == "symbol":
        return "symbol(%r)" % e[1]
    if kind == "sum":
        words = ["(%s) * (%s)" % (expression_code(c), expression_code(t)) for t, c in e[2]]
        return " + ".join(words + (["(%s)" % expression_code(e[1])] if e[1] else []))
    if kind == "product":
        words = ["(%s) ** (%s)" % (expression_code(b), expression_code(p)) for b, p in e[2]]
        return " * ".join(["(%s)" % expression_code(e[1])] + words)
    if kind == "power":
        return "ascir.SizeExpr(%s) ** (%s)" % (expression_code(e[1]), expression_code(e[2]))
    words = [expression_code(a) for a in e[2]]
    if e[1] in ("Max", "Min", "Mod"):
        line = words[0]
        for word in words[1:]:
            line = "ascir.%s(%s, %s)" % (e[1], line, word)
        return line
    if e[1] == "Floor":
        return "(%s) // 1" % words[0]
    raise ValueError("the API has no way to write %s" % ex.text(e))
