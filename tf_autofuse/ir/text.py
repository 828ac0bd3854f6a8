"""Graphs as text that people read and tests compare; HintGraphs and FusedGraphs can be read back.

    graph demo (hint)
      sizes
        s0 = input 0 dim 0, hint 7
        s2 = broadcast_size(s0, s1)
      axes
        z0: s2
        z1: 128
      nodes
        %data_0: float32 = Data(index=0)  # from x
        %load_0: float32[z0, z1] = Load(%data_0, offset=0)  strides (stride_or_zero(s0, 128), 1)
        %abs_0: float32[z0, z1] = Abs(%load_0)  # from model/Abs
        %broadcast_0: float32[z0, z1] = Broadcast(%abs_0, axis=z0)

A view's entries are an axis's name (the tensor extends along it), 1, or `=size` for anything else. Strides
are printed for Load, Gather and Store, elsewhere where they are not the dense row-major ones. `# from` lists
the TF nodes of origin; text after any other # is a comment. The same graph always gives the same text.
ImplGraphs add the axes' types, each node's loops and each tensor's place in UB; they are printed only.

On entry graphs may break invariants (a dump must show a wrong graph too); what `parse_*` returns is not
verified.
"""
import json
import math
import re
from typing import List, Optional, Sequence, Tuple

from tf_autofuse.ir.asc_graph import (
    AXISLESS,
    AscGraph,
    AscNode,
    Axis,
    AxisType,
    FusedGraph,
    KernelIO,
    Sched,
    TensorAttr,
    TensorRef,
)
from tf_autofuse.ir.builder import dense_strides
from tf_autofuse.ir.dtypes import BY_NAME, DType
from tf_autofuse.symbolic.guards import Guard, InputDim, SizeVar
from tf_autofuse.symbolic.size import Size, SizeExpr, known_equal, parse, to_text

_STRIDES_SHOWN = ("Load", "Gather", "Store")


def dump(value) -> str:
    """The text of an AscGraph (either form) or a FusedGraph, ending in a newline."""
    return "\n".join(_fused_lines(value) if isinstance(value, FusedGraph) else _graph_lines(value)) + "\n"


def _sizes(sizes: Sequence[Size]) -> str:
    return "(%s)" % ", ".join(map(to_text, sizes))


def _size_var(var: SizeVar) -> str:
    source = "input %d dim %d" % var.source if isinstance(var.source, InputDim) else to_text(var.source)
    return "%s = %s%s" % (var.name, source, "" if var.hint is None else ", hint %d" % var.hint)


def _section(title: str, lines: Sequence[str]) -> List[str]:
    return ["  " + title] + ["    " + line for line in lines] if lines else []


def _fused_lines(fused: FusedGraph) -> List[str]:
    def io(entries):
        return [
            "%d: %s[%s]" % (i, e.dtype.name, ", ".join(map(to_text, e.dims))) for i, e in enumerate(entries)
        ]

    lines = ["fused %s (%s, %s)" % (fused.name, fused.kind, fused.op_type)]
    lines += _section("inputs", io(fused.inputs)) + _section("outputs", io(fused.outputs))
    lines += _section("sizes", [_size_var(v) for v in fused.sizes])
    lines += _section("guards", ["%r%s" % (g, "  # " + g.why if g.why else "") for g in fused.guards])
    lines += _section("origin", fused.origin)
    for graph in fused.graphs:
        lines += [""] + _graph_lines(graph)
    return lines


def _graph_lines(graph: AscGraph) -> List[str]:
    lines = ["graph %s (%s)" % (graph.name, graph.form)]
    lines += _section("sizes", [_size_var(v) for v in graph.sizes])
    axes = []
    for a in graph.axes:
        line = "%s: %s" % (a.name, to_text(a.size))
        if a.type is not AxisType.ORIGINAL:
            line += "  %s of %s" % (a.type.name, ", ".join(_axis_name(graph, i) for i in a.from_axes))
        axes.append(line)
    lines += _section("axes", axes)
    if graph.loop_axes != tuple(a.id for a in graph.axes):
        lines += _section("loops", [", ".join(_axis_name(graph, i) for i in graph.loop_axes)])
    return lines + _section("nodes", [_node_line(graph, n) for n in graph.nodes])


def _axis_name(graph: AscGraph, id_: int) -> str:
    try:
        return graph.axis(id_).name
    except KeyError:
        return "axis#%d" % id_


def _node_line(graph: AscGraph, node: AscNode) -> str:
    arguments = ["%%%s%s" % (r.node, ".%d" % r.output if r.output else "") for r in node.inputs]
    for name, value in node.attrs:
        shown = _axis_name(graph, value) if name == "axis" and type(value) is int else _attr(value)
        if name == "axes" and graph.form == "hint" and isinstance(value, tuple):
            shown = "(%s)" % ", ".join(_axis_name(graph, i) if type(i) is int else _attr(i) for i in value)
        arguments.append("%s=%s" % (name, shown))
    views = [_view(graph, y) for y in node.outputs]
    line = "%%%s: %s = %s(%s)" % (
        node.name,
        views[0] if len(views) == 1 else "{%s}" % "; ".join(views),
        node.type,
        ", ".join(arguments),
    )
    for y in node.outputs:
        if y.strides and (node.type in _STRIDES_SHOWN or y.strides != dense_strides(y.repeats)):
            line += "  strides " + _sizes(y.strides)
    if graph.form != "hint":
        line += _impl_part(graph, node)
    return line + ("  # from " + ", ".join(node.origin) if node.origin else "")


def _view(graph: AscGraph, y: TensorAttr) -> str:
    if not y.axis:
        return y.dtype.name
    entries = []
    for id_, repeat in zip(y.axis, y.repeats):
        name = _axis_name(graph, id_)
        if not name.startswith("axis#") and known_equal(graph.axis(id_).size, repeat):
            entries.append(name)
        else:
            entries.append("1" if known_equal(repeat, 1) else "=" + to_text(repeat))
    return "%s[%s]" % (y.dtype.name, ", ".join(entries))


def _impl_part(graph: AscGraph, node: AscNode) -> str:
    parts = []
    if node.sched.axis:
        loops = [_axis_name(graph, i) for i in node.sched.axis]
        where = (
            node.sched.axis.index(node.sched.loop_axis) + 1 if node.sched.loop_axis in node.sched.axis else 0
        )
        parts.append("at %s|%s" % ("/".join(loops[:where]), "/".join(loops[where:])))
    for y in node.outputs:
        if y.vectorized_axis:
            parts.append(
                "ub [%s] strides %s"
                % (", ".join(_axis_name(graph, i) for i in y.vectorized_axis), _sizes(y.vectorized_strides))
            )
        if y.memory is not None:
            m = y.memory
            parts.append(
                "in %s" % m.position.value + ("" if m.container < 0 else "%d x%d" % (m.container, m.buf_num))
            )
    return "".join("  " + p for p in parts)


def _attr(value) -> str:
    if isinstance(value, DType):
        return value.name
    if isinstance(value, SizeExpr):
        return "{%s}" % to_text(value)
    if isinstance(value, tuple):
        return "(%s)" % ", ".join(map(_attr, value))
    if isinstance(value, str):
        return json.dumps(value)
    return repr(value)


# Reading

_LINE = re.compile(r"%(\w+): (.*?) = (\w+)\((.*)$")
_NUMBER = re.compile(r"-?(?:inf|nan|\d+\.\d*(?:e[-+]?\d+)?|\d+e[-+]?\d+|\d+)")


class ParseError(ValueError):
    """Text that is no dump. Names the line."""


class _Lines:
    """The lines with something on them, their indentation, and where reading stands."""

    def __init__(self, text: str):
        self.rows = [
            (number, len(line) - len(line.lstrip()), line.strip())
            for number, line in enumerate(text.splitlines(), 1)
            if line.strip() and not line.lstrip().startswith("#")
        ]
        base = min(
            (r[1] for r in self.rows), default=0
        )  # dumps in tests are indented with the code around them
        self.rows = [(n, indent - base, line) for n, indent, line in self.rows]
        self.at = 0

    def error(self, what: str) -> ParseError:
        number, _, line = self.rows[min(self.at, len(self.rows) - 1)] if self.rows else (0, 0, "")
        return ParseError("line %d, %r: %s" % (number, line, what))

    def peek(self) -> str:
        return self.rows[self.at][2] if self.at < len(self.rows) else ""

    def header(self, pattern: str) -> Tuple[str, ...]:
        match = re.match(pattern + r"\s*(?:#.*)?\Z", self.peek())
        if not match:
            raise self.error("expected %s" % pattern.split("(")[0].strip())
        self.at += 1
        return match.groups()

    def sections(self, known: Sequence[str]):
        """{title: lines} of the indented part that follows."""
        found = {title: [] for title in known}
        title = ""
        while self.at < len(self.rows) and self.rows[self.at][1] > 0:
            _, indent, line = self.rows[self.at]
            if indent == 2:
                title = line
                if title not in found:
                    raise self.error("unknown section; known are %s" % ", ".join(known))
            elif not title:
                raise self.error("a line outside of all sections")
            else:
                found[title].append(self.at)
            self.at += 1
        return found

    def read(self, positions: Sequence[int], parse_line):
        """parse_line(line) for each; what it raises comes out with the line's number."""
        end, results = self.at, []
        for self.at in positions:
            try:
                results.append(parse_line(self.peek()))
            except ParseError:
                raise
            except (ValueError, KeyError, IndexError) as error:
                raise self.error(str(error))
        self.at = end
        return tuple(results)


def parse_graph(text: str) -> AscGraph:
    """The HintGraph that `dump` printed. Raises ParseError. Not verified: tests also write wrong graphs."""
    lines = _Lines(text)
    graph = _read_graph(lines)
    if lines.peek():
        raise lines.error("text after the graph")
    return graph


def parse_fused(text: str) -> FusedGraph:
    """The FusedGraph that `dump` printed. Raises ParseError."""
    lines = _Lines(text)
    name, kind, op_type = lines.header(r"fused (\S+) \((\w+), (\w+)\)")
    found = lines.sections(("inputs", "outputs", "sizes", "guards", "origin"))
    ios = [tuple(e for _, e in sorted(lines.read(found[part], _parse_io))) for part in ("inputs", "outputs")]
    sizes = lines.read(found["sizes"], _parse_size_var)
    guards = lines.read(found["guards"], _parse_guard)
    origin = lines.read(found["origin"], str)
    graphs = []
    while lines.peek():
        graphs.append(_read_graph(lines))
    fused = FusedGraph(name, kind, ios[0], ios[1], sizes, guards, tuple(graphs), origin)
    if fused.op_type != op_type:
        raise lines.error("an %s of %d graphs" % (op_type, len(graphs)))
    return fused


def _read_graph(lines: _Lines) -> AscGraph:
    name, form = lines.header(r"graph (\S+) \((\w+)\)")
    if form != "hint":
        lines.at -= 1
        raise lines.error("only HintGraphs can be read back")
    found = lines.sections(("sizes", "axes", "loops", "nodes"))
    sizes = lines.read(found["sizes"], _parse_size_var)
    axes: List[Axis] = []

    def axis(line):
        axis_name, size = _uncommented(line).split(":", 1)
        axes.append(Axis(len(axes), axis_name.strip(), parse(size)))

    lines.read(found["axes"], axis)
    by_name = {a.name: a for a in axes}
    order = tuple(a.id for a in axes)
    loops = lines.read(found["loops"], lambda line: tuple(by_name[n.strip()].id for n in line.split(",")))
    nodes = lines.read(found["nodes"], lambda line: _parse_node(line, by_name, order))
    return AscGraph(name, form, tuple(axes), nodes, sizes, loops[0] if loops else order)


def _uncommented(line: str) -> str:
    return line.split("#")[0].strip()


def _parse_io(line: str) -> Tuple[int, KernelIO]:
    match = re.match(r"(\d+): (\w+)\[(.*)\]\Z", _uncommented(line))
    if not match:
        raise ValueError("not an input or output")
    return int(match.group(1)), KernelIO(BY_NAME[match.group(2)], tuple(map(parse, _split(match.group(3)))))


def _parse_size_var(line: str) -> SizeVar:
    name, source = _uncommented(line).split(" = ", 1)
    hint: Optional[int] = None
    match = re.match(r"(.*), hint (\d+)\Z", source)
    if match:
        source, hint = match.group(1), int(match.group(2))
    match = re.match(r"input (\d+) dim (\d+)\Z", source)
    return SizeVar(name, InputDim(int(match.group(1)), int(match.group(2))) if match else parse(source), hint)


def _parse_guard(line: str) -> Guard:
    text, _, why = line.partition("#")
    for kind, sign in (("eq", " == "), ("broadcast", " broadcasts with ")):
        if sign in text:
            left, right = text.split(sign)
            return Guard(kind, parse(left), parse(right), why.strip())
    raise ValueError("not a guard")


def _split(text: str, separator: str = ",") -> List[str]:
    """Parts between separators that stand outside of brackets and strings."""
    parts, depth, start, quoted, i = [], 0, 0, False, 0
    while i < len(text):
        c = text[i]
        if quoted:
            i += c == "\\"
            quoted = c != '"'
        elif c == '"':
            quoted = True
        elif c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        elif c == separator and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
        i += 1
    last = text[start:].strip()
    return parts + [last] if last else parts


def _closing(text: str) -> int:
    """Position of the bracket that closes the one before text[0]."""
    depth, quoted, i = 1, False, 0
    while i < len(text):
        c = text[i]
        if quoted:
            i += c == "\\"
            quoted = c != '"'
        elif c == '"':
            quoted = True
        elif c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
            if depth == 0:
                return i
        i += 1
    raise ValueError("a bracket is not closed")


def _parse_node(line: str, axes, order: Tuple[int, ...]) -> AscNode:
    match = _LINE.match(line)
    if not match:
        raise ValueError("not a node")
    name, views, type_, rest = match.groups()
    end = _closing(rest)
    inputs, node_attrs = [], []
    for argument in _split(rest[:end]):
        if argument.startswith("%"):
            source, _, output = argument[1:].partition(".")
            inputs.append(TensorRef(source, int(output or 0)))
        else:
            key, value = argument.split("=", 1)
            node_attrs.append((key, _parse_axes(key, value, axes)))
    rest, _, comment = rest[end + 1 :].partition("#")
    origin = (
        tuple(o.strip() for o in comment.strip()[5:].split(","))
        if comment.strip().startswith("from ")
        else ()
    )
    strides = [tuple(map(parse, _split(s))) for s in _strides(rest)]
    texts = _split(views[1:-1], ";") if views.startswith("{") else [views]
    outputs = [_parse_view(v, axes) for v in texts]
    if strides and len(strides) != len(outputs):
        raise ValueError("strides of %d views, not %d" % (len(strides), len(outputs)))
    if strides:
        outputs = [TensorAttr(y.dtype, y.axis, y.repeats, s) for y, s in zip(outputs, strides)]
    sched = Sched() if type_ in AXISLESS else Sched(axis=order)
    return AscNode(name, type_, tuple(inputs), tuple(outputs), tuple(node_attrs), sched, origin)


def _parse_axes(key: str, text: str, axes):
    """The attribute's value; names of loop axes become their ids."""
    if key == "axis" and text in axes:
        return axes[text].id
    if key == "axes" and text.startswith("("):
        return tuple(axes[t].id if t in axes else _parse_attr(t) for t in _split(text[1:-1]))
    return _parse_attr(text)


def _strides(text: str) -> List[str]:
    found = []
    text = text.strip()
    while text:
        if not text.startswith("strides ("):
            raise ValueError("unexpected %r" % text)
        text = text[len("strides (") :]
        end = _closing(text)
        found.append(text[:end])
        text = text[end + 1 :].strip()
    return found


def _parse_view(text: str, axes) -> TensorAttr:
    name, _, entries = text.strip().partition("[")
    if name not in BY_NAME:
        raise ValueError("unknown dtype %r" % name)
    if not entries:
        return TensorAttr(BY_NAME[name])
    texts = _split(entries[:-1])
    if len(texts) != len(axes):
        raise ValueError("a view of %d entries over %d axes" % (len(texts), len(axes)))
    repeats = []
    for entry, (axis_name, axis) in zip(texts, axes.items()):
        if entry == axis_name:
            repeats.append(axis.size)
        elif entry == "1" or entry.startswith("="):
            repeats.append(parse(entry.lstrip("=")))
        else:
            raise ValueError("entry %s stands where axis %s belongs" % (entry, axis_name))
    return TensorAttr(
        BY_NAME[name], tuple(a.id for a in axes.values()), tuple(repeats), dense_strides(repeats)
    )


def _parse_attr(text: str):
    if text in BY_NAME:
        return BY_NAME[text]
    if text in ("True", "False"):
        return text == "True"
    if text.startswith("{"):
        return parse(text[1:-1])
    if text.startswith("("):
        return tuple(map(_parse_attr, _split(text[1:-1])))
    if text.startswith('"'):
        return json.loads(text)
    if not _NUMBER.fullmatch(text):
        raise ValueError("not an attribute value: %r" % text)
    try:
        return int(text)
    except ValueError:
        return math.nan if "nan" in text else float(text)
