"""From a graph of the API to this project's FusedGraph.

On entry the state of a HintGraph, a FusedGraph or a GE compute graph, as it is; nothing of it is changed.
On exit a FusedGraph whose loop nests keep the contract at the head of ir/asc_graph.py, or a ConversionError
that names the node.

How the two forms differ, and what is done about it: the API has operators that are several of ours
(meanings.py); its flags are uint8, ours bool; tensors of 16-bit floats are computed in float32; a Transpose
only renames the axes of a view, which here is nothing at all; Concat and Split become one loop nest for
each part, which loads and stores its part of the tensor; a symbol that no dim of an input shows gets an
input of its own, whose only dim it is (`Converted.hidden`)."""

from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from tf_autofuse.ascir_api.graphs import GraphState, Node
from tf_autofuse.ascir_api.nest import NestMaker, dtype_of, live_nodes, parts_of, view_of
from tf_autofuse.ascir_api.project_sizes import ConversionError, SizeMaker
from tf_autofuse.ir.asc_graph import AscGraph, FusedGraph, KernelIO
from tf_autofuse.ir.builder import dense_strides
from tf_autofuse.ir.dtypes import INT32
from tf_autofuse.symbolic.guards import InputDim, SizeVar
from tf_autofuse.symbolic.size import Size, is_static, known_equal, product, symbol, symbols_of, to_text

__all__ = ["ConversionError", "Converted", "convert"]


class Converted(NamedTuple):
    """inputs: how many of fused.inputs the user gives. hidden: the API's names of the symbols whose values
    are the dims of the inputs behind those."""

    fused: FusedGraph
    inputs: int
    hidden: Tuple[str, ...]


class _Nest(NamedTuple):
    """A HintGraph with what its Data and Output nodes are in the fused graph: key (type, index) ->
    ('input', n), ('workspace', n) or, for outputs, a list of such."""

    state: GraphState
    sources: Dict[Tuple[str, int], Tuple[str, int]]
    sinks: Dict[int, List[Tuple[str, int]]]


def convert(state: GraphState, sizes: Optional[Mapping[str, int]] = None) -> Converted:
    """sizes: values that take the place of symbols. Raises ConversionError."""
    maker = SizeMaker(sizes or {})
    wrapped = state.of_type("AscGraph", "AscBackend")
    nests, count, outputs = _several(state) if wrapped else _single(state)
    tensors: Dict[Tuple[str, int], KernelIO] = {}
    graphs: List[AscGraph] = []
    for number, nest in enumerate(nests):
        live = live_nodes(nest.state)
        _collect_tensors(nest, live, maker, tensors)
        parts = parts_of(nest.state, live, maker)
        for position, part in enumerate(parts):
            name = (
                nest.state.name
                if len(nests) == 1 and len(parts) == 1
                else "%s_%d_%d" % (nest.state.name, number, position)
            )
            graphs.append(NestMaker(name, nest.state, live, part, maker, nest.sources, nest.sinks).graph())
    inputs = [_known(tensors, ("input", i)) for i in range(count)]
    results = [_known(tensors, ("output", i)) for i in range(outputs)]
    return _assembled(state.name, graphs, inputs, results, maker)


def _known(tensors, key) -> KernelIO:
    return tensors.get(key, KernelIO(INT32, ()))


def input_keys(state: GraphState) -> List[Tuple[str, int]]:
    """(type, index) of a graph's inputs in their order: Data and ScalarData by index."""
    nodes = state.of_type("Data", "ScalarData")
    return sorted({(n.type, n.attributes.get("index", 0)) for n in nodes}, key=lambda key: (key[1], key[0]))


def _single(state: GraphState):
    keys = input_keys(state)
    sinks = sorted({n.attributes.get("index", 0) for n in state.of_type("Output")})
    nest = _Nest(
        state,
        {key: ("input", i) for i, key in enumerate(keys)},
        {index: [("output", i)] for i, index in enumerate(sinks)},
    )
    return [nest], len(keys), len(sinks)


def _several(state: GraphState):
    """The nests of a FusedGraph in an order that has producers first."""
    inputs = {("Data", index): i for i, (_, index) in enumerate(input_keys(state))}
    outputs = sorted({n.attributes.get("index", 0) for n in state.nodes if n.type in ("Output", "NetOutput")})
    workspaces: Dict[Tuple[int, int], int] = {}
    nests: List[_Nest] = []
    for node in _topological(state):
        if node.subgraph is None:
            continue
        sources = {}
        for key, link in zip(input_keys(node.subgraph), node.inputs):
            if link is None:
                raise ConversionError("%s: an input is not linked" % node.name)
            producer, number = link
            if producer.subgraph is not None:
                place = workspaces.setdefault((id(producer), number), len(workspaces))
                sources[key] = ("workspace", place)
            else:
                sources[key] = ("input", inputs["Data", producer.attributes.get("index", 0)])
        nests.append(_Nest(node.subgraph, sources, {}))
    by_node = {
        id(n): nest for n, nest in zip([n for n in _topological(state) if n.subgraph is not None], nests)
    }
    for node in state.nodes:
        if node.type in ("Output", "NetOutput"):
            for position, link in enumerate(node.inputs):
                if link is None or id(link[0]) not in by_node:
                    raise ConversionError("%s: an Output must read a wrapped graph" % node.name)
                index = outputs.index(node.attributes.get("index", 0)) + (
                    position if node.type == "NetOutput" else 0
                )
                _sink(by_node[id(link[0])], link[1]).append(("output", index))
    for (owner, number), place in workspaces.items():
        _sink(by_node[owner], number).append(("workspace", place))
    extra = max([len(n.inputs) for n in state.of_type("NetOutput")] or [0])
    return nests, len(inputs), max(len(outputs), extra)


def _sink(nest: _Nest, number: int) -> List[Tuple[str, int]]:
    indexes = sorted({n.attributes.get("index", 0) for n in nest.state.of_type("Output")})
    return nest.sinks.setdefault(indexes[number], [])


def _topological(state: GraphState) -> List[Node]:
    done, order = set(), []

    def visit(node):
        stack = [(node, iter(node.inputs))]
        done.add(id(node))
        while stack:
            current, links = stack[-1]
            for link in links:
                if link is not None and id(link[0]) not in done:
                    done.add(id(link[0]))
                    stack.append((link[0], iter(link[0].inputs)))
                    break
            else:
                order.append(current)
                stack.pop()

    for node in state.nodes:
        if id(node) not in done:
            visit(node)
    return order


def _collect_tensors(nest: _Nest, live: Sequence[Node], maker: SizeMaker, tensors) -> None:
    """Dims of the fused graph's inputs and outputs that this nest reads or writes, as far as it shows
    them."""
    for node in nest.state.of_type("Data", "ScalarData"):
        kind, number = nest.sources[node.type, node.attributes.get("index", 0)]
        if kind != "input":
            continue
        dims = () if node.type == "ScalarData" else _dims(node, _readers(node, live), maker)
        io = KernelIO(dtype_of(node, 0), dims if dims is not None else (1,))
        tensors.setdefault((kind, number), io)
    for node in live:
        if node.type == "Output":
            for kind, number in nest.sinks.get(node.attributes.get("index", 0), ()):
                if kind == "output":
                    sources = [link[0] for link in node.inputs if link is not None]
                    dims = _dims(node, sources, maker)
                    dtype = dtype_of(sources[0], 0)
                    tensors[kind, number] = KernelIO(dtype, dims if dims is not None else (1,))


def _readers(node: Node, live: Sequence[Node]) -> List[Node]:
    return [
        n for n in live if n.type == "Load" and any(link is not None and link[0] is node for link in n.inputs)
    ]


def _dims(node: Node, movers: Sequence[Node], maker: SizeMaker) -> Optional[Tuple[Size, ...]]:
    """The dims of the tensor behind a Data or Output: its own view, else that of the only dense Load or
    Store, else as many elements as these touch."""
    own = view_of(node, 0, maker)
    if own is not None and own.size and _is_dense(own.size, own.strides):
        return own.size
    views = [view_of(m, 0, maker) for m in movers] if own is None or not own.size else [own]
    views = [v for v in views if v is not None]
    if not views:
        return None
    offsets = [
        maker.size(m.attributes["offset"]) if "offset" in m.attributes and own is not views[0] else 0
        for m in movers
    ] or [0]
    for view, offset in zip(views, offsets):
        if len(views) == 1 and is_static(offset) and offset == 0:
            shown = tuple(1 if known_equal(t, 0) else s for s, t in zip(view.size, view.strides))
            if _is_dense(shown, view.strides):
                return shown
    if node.type == "Output" and len(views) > 1:
        total: Size = 0
        for view in views:
            total = total + product(view.size)
        return (total,)
    ends = [_end(view, offset) for view, offset in zip(views, offsets)]
    if all(is_static(e) for e in ends):
        return (max(ends),)
    if all(known_equal(e, ends[0]) for e in ends):
        return (ends[0],)
    raise ConversionError("%s: give its view; its readers do not show how large it is" % node.name)


def _end(view, offset: Size) -> Size:
    last = offset + 1
    for size, stride in zip(view.size, view.strides):
        last = last + (size - 1) * stride
    return last


def _is_dense(size, strides) -> bool:
    if not strides:
        return True
    return all(known_equal(s, 1) or known_equal(t, d) for s, t, d in zip(size, strides, dense_strides(size)))


def _assembled(
    name: str, graphs: Sequence[AscGraph], inputs: List[KernelIO], outputs: List[KernelIO], maker: SizeMaker
) -> Converted:
    sources: Dict[str, InputDim] = {}
    for i, io in enumerate(inputs):
        for d, dim in enumerate(io.dims):
            if not is_static(dim) and to_text(dim) in symbols_of(dim):
                sources.setdefault(to_text(dim), InputDim(i, d))
    used = set()
    for size in _all_sizes(graphs, inputs, outputs):
        used |= symbols_of(size)
    hidden = []
    for original, symbol_name in maker.names.items():
        if symbol_name in used and symbol_name not in sources:
            sources[symbol_name] = InputDim(len(inputs) + len(hidden), 0)
            hidden.append((original, symbol_name))
    extra = [KernelIO(INT32, (symbol(symbol_name),)) for _, symbol_name in hidden]
    variables = tuple(SizeVar(n, sources[n]) for n in sorted(sources, key=lambda n: sources[n]))
    placed = tuple(_with_sizes(graph, variables) for graph in graphs)
    kind = "reduce" if any(n.attr("axes") is not None for g in graphs for n in g.nodes) else "pointwise"
    fused = FusedGraph(
        name,
        kind,
        tuple(inputs + extra),
        tuple(outputs),
        variables,
        (),
        placed,
        tuple(dict.fromkeys(o for g in graphs for n in g.nodes for o in n.origin)),
    )
    return Converted(fused, len(inputs), tuple(original for original, _ in hidden))


def _all_sizes(graphs, inputs, outputs):
    for io in list(inputs) + list(outputs):
        for dim in io.dims:
            yield dim
    for graph in graphs:
        for size in _sizes_of(graph):
            yield size


def _sizes_of(graph: AscGraph):
    for axis in graph.axes:
        yield axis.size
    for node in graph.nodes:
        for y in node.outputs:
            for size in y.repeats + y.strides:
                yield size
        for _, value in node.attrs:
            if not isinstance(value, (bool, int, float, str, tuple)):
                yield value


def _with_sizes(graph: AscGraph, variables: Sequence[SizeVar]) -> AscGraph:
    used = set()
    for size in _sizes_of(graph):
        used |= symbols_of(size)
    return AscGraph(
        graph.name,
        graph.form,
        graph.axes,
        graph.nodes,
        tuple(v for v in variables if v.name in used),
        graph.loop_axes,
    )
