"""Verifiers of HintGraphs and FusedGraphs: the invariants at the head of asc_graph.py, under their numbers.

Why: a stage that makes a wrong graph is found where it stands, not three stages later as a wrong number.
Called by tests on everything, by lowering and schedule on what they make. On entry any value of the IR's
classes, on exit it holds the invariants, or VerifyError names graph, node, invariant and what was found.
(G1..G7: ir/verify_nodes.py; F5 and what of F2 concerns single elements: ir/verify_access.py; ImplGraphs:
ir/verify_impl.py.)
"""
from typing import Sequence

from tf_autofuse.ir.asc_graph import AXISLESS, AscGraph, AscNode, AxisType, FusedGraph, TensorAttr
from tf_autofuse.ir.builder import dense_strides
from tf_autofuse.ir.verify_access import check_accesses
from tf_autofuse.ir.verify_nodes import (
    Checker,
    VerifyError,
    check_every_node_is_read,
    check_nodes,
    check_sizes,
)
from tf_autofuse.symbolic.guards import GUARD_KINDS, InputDim
from tf_autofuse.symbolic.size import (
    Size,
    broadcast_operands,
    evaluate,
    is_static,
    known_equal,
    symbols_of,
    to_text,
)

__all__ = ["VerifyError", "trial_values", "verify_fused", "verify_hint"]


def _same_sizes(a: Sequence[Size], b: Sequence[Size]) -> bool:
    return len(a) == len(b) and all(known_equal(x, y) for x, y in zip(a, b))


def verify_hint(graph: AscGraph) -> None:
    """Raises VerifyError unless `graph` is a well-formed HintGraph (G1..G7, H1..H9)."""
    check = Checker(graph.name)
    check.require(graph.form == "hint", "H1", None, "form is %r", graph.form)
    check.require(len(graph.axes) >= 1, "H7", None, "no axis")
    check_nodes(check, graph)
    order = tuple(a.id for a in graph.axes)
    for axis in graph.axes:
        check.require(
            axis.type is AxisType.ORIGINAL and not axis.from_axes,
            "H1",
            None,
            "axis %s is %s",
            axis.name,
            axis.type.name,
        )
    check.require(
        graph.loop_axes == order, "H1", None, "loop_axes %s are not the axes %s", graph.loop_axes, order
    )
    full = tuple(a.size for a in graph.axes)
    reduced = {order.index(a) for n in graph.nodes if is_reduction(n) for a in n.attr("axes")}
    readers = graph.consumers()
    for node in graph.nodes:
        for y in node.outputs:
            if node.type in AXISLESS:
                check.require(y.axis == (), "H1", node, "%s has axes in its view", node.type)
                continue
            check.require(y.axis == order, "H1", node, "view over axes %s, not %s", y.axis, order)
            _check_extents(check, node, y, full, _index_extents(graph, node, full))
        check.require(node.sched.loop_axis == -1, "H1", node, "has a loop axis")
        wanted = () if node.type in AXISLESS else order
        check.require(
            node.sched.axis == wanted, "H1", node, "sched.axis is %s, not %s", node.sched.axis, wanted
        )
        _check_hint_node(check, graph, node, full, readers, reduced)
    check_every_node_is_read(check, graph)


def is_reduction(node: AscNode) -> bool:
    """Whether the node's row of the op table is a reduction."""
    from tf_autofuse.ops.table import ASC_OPS

    return node.type in ASC_OPS and ASC_OPS[node.type].reduces


def _index_extents(graph: AscGraph, node: AscNode, full) -> Sequence[Size]:
    """The extents of a Gather's index, all 1 for a Scalar and for other nodes."""
    repeats = graph.tensor(node.inputs[1]).repeats if node.type == "Gather" else ()
    return repeats or tuple(1 for _ in full)


def _check_extents(check: Checker, node: AscNode, y: TensorAttr, full, by_index: Sequence[Size]) -> None:
    empty = any(known_equal(r, 0) for r in y.repeats)
    for i, (repeat, stride) in enumerate(zip(y.repeats, y.strides)):
        check.require(
            known_equal(repeat, full[i]) or known_equal(repeat, 1),
            "H2",
            node,
            "repeats[%d] is %s, neither 1 nor %s",
            i,
            repeat,
            full[i],
        )
        if known_equal(repeat, 1):
            check.require(
                known_equal(stride, 0), "H2", node, "repeats[%d] is 1 but strides[%d] is %s", i, i, stride
            )
        elif not empty:
            check.require(
                not known_equal(stride, 0) or not known_equal(by_index[i], 1),
                "H2",
                node,
                "strides[%d] is 0 but repeats[%d] is %s",
                i,
                i,
                repeat,
            )


def _check_hint_node(check: Checker, graph: AscGraph, node: AscNode, full, readers, reduced) -> None:
    sources = [graph.node(r.node) for r in node.inputs]
    if node.type in ("Data", "Scalar"):
        return
    if node.type in ("Output", "Workspace"):
        check.require(
            all(s.type == "Store" for s in sources),
            "H6",
            node,
            "reads a %s, not a Store",
            sources[0].type if sources else "",
        )
        return
    if node.type in ("Load", "Gather"):
        source = sources[0]
        check.require(
            source.type == "Data" or (source.type == "Workspace" and not source.inputs),
            "H3",
            node,
            "loads from %s %s",
            source.type,
            source.name,
        )
    for source in sources[1:] if node.type in ("Load", "Gather") else sources:
        check.require(
            source.type not in ("Data", "Output", "Workspace", "Store"),
            "H3",
            node,
            "reads %s %s without a Load",
            source.type,
            source.name,
        )
    shapes = [graph.tensor(r).repeats for r, s in zip(node.inputs, sources) if s.type != "Scalar"]
    if node.type == "Load":
        return
    if node.type == "Gather":
        for i, index in enumerate(shapes[-1] if sources[1].type != "Scalar" else ()):
            check.require(
                known_equal(index, 1) or known_equal(index, node.y.repeats[i]),
                "H9",
                node,
                "its index extends along axis %d, it does not",
                i,
            )
        return
    if node.type == "Store":
        check.require(bool(shapes), "H6", node, "stores the Scalar %s", node.inputs[0].node)
        for i, size in enumerate(full):
            check.require(
                known_equal(node.y.repeats[i], size) or i in reduced,
                "H6",
                node,
                "repeats %s are not full, %s",
                node.y.repeats,
                full,
            )
        check.require(
            _same_sizes(shapes[0], node.y.repeats),
            "H6",
            node,
            "its input's repeats %s are not its own, %s",
            shapes[0],
            node.y.repeats,
        )
        to = [r.type for r in readers[node.name]]
        check.require(len(to) == 1 and to[0] in ("Output", "Workspace"), "H6", node, "is read by %s", to)
        return
    ones = tuple(1 for _ in full)
    before = shapes[0] if shapes else ones
    for shape in shapes[1:]:
        check.require(_same_sizes(shape, before), "H4", node, "inputs with repeats %s and %s", before, shape)
    if node.type == "Broadcast":
        position = node.y.axis.index(node.attr("axis"))
        wanted = before[:position] + (full[position],) + before[position + 1 :]
        check.require(
            known_equal(before[position], 1),
            "H4",
            node,
            "its input extends along axis %d already",
            node.attr("axis"),
        )
        check.require(
            not shapes or not known_equal(full[position], 1),
            "H4",
            node,
            "axis %d has size 1: no change",
            node.attr("axis"),
        )
    elif is_reduction(node):
        positions = [node.y.axis.index(a) for a in node.attr("axes")]
        for i in positions:
            check.require(
                known_equal(before[i], full[i]), "H8", node, "its input does not extend along axis %d", i
            )
        wanted = tuple(1 if i in positions else r for i, r in enumerate(before))
        check.require(
            not all(known_equal(before[i], 1) for i in positions), "H8", node, "nothing is reduced"
        )
    else:
        wanted = before
    for y in node.outputs:
        check.require(_same_sizes(y.repeats, wanted), "H4", node, "repeats %s, not %s", y.repeats, wanted)
        dense = dense_strides(y.repeats)
        check.require(
            _same_sizes(y.strides, dense), "H5", node, "strides %s, not the dense %s", y.strides, dense
        )


def verify_fused(fused: FusedGraph) -> None:
    """Raises VerifyError unless `fused` and all its graphs are well-formed (G, H, F1..F5)."""
    check = Checker(fused.name)
    check.require(len(fused.graphs) >= 1, "F1", None, "no graph")
    check.require(
        len({g.name for g in fused.graphs}) == len(fused.graphs), "F1", None, "two graphs share a name"
    )
    for graph in fused.graphs:
        verify_hint(graph)
    _check_io(check, fused)
    _check_fused_sizes(check, fused)
    _check_guards(check, fused)
    for values in trial_values(fused):
        check_accesses(check, fused, values)


def _check_io(check: Checker, fused: FusedGraph) -> None:
    written = set()
    filled, read = {}, {}  # workspace -> dtype
    for graph in fused.graphs:
        for node in graph.nodes:
            index = node.attr("index")
            if node.type == "Data":
                check.require(index < len(fused.inputs), "F2", node, "there is no input %d", index)
                check.require(
                    node.y.dtype is fused.inputs[index].dtype,
                    "F2",
                    node,
                    "input %d is %s",
                    index,
                    fused.inputs[index].dtype.name,
                )
            elif node.type == "Output":
                check.require(index < len(fused.outputs), "F2", node, "there is no output %d", index)
                check.require(
                    node.y.dtype is fused.outputs[index].dtype,
                    "F2",
                    node,
                    "output %d is %s",
                    index,
                    fused.outputs[index].dtype.name,
                )
                written.add(index)
            elif node.type == "Workspace" and not node.inputs:
                check.require(index in filled, "F2", node, "workspace %d is read before it is written", index)
                check.require(
                    filled[index] is node.y.dtype, "F2", node, "workspace %d is %s", index, filled[index].name
                )
                read[index] = node.y.dtype
        for node in graph.of_type("Workspace"):
            if node.inputs:
                index = node.attr("index")
                check.require(
                    index not in read, "F2", node, "workspace %d is written after it is read", index
                )
                check.require(
                    filled.setdefault(index, node.y.dtype) is node.y.dtype,
                    "F2",
                    node,
                    "workspace %d is %s",
                    index,
                    filled[index].name,
                )
    missing = sorted(set(range(len(fused.outputs))) - written)
    check.require(not missing, "F2", None, "output %s is not used", missing)


def _check_fused_sizes(check: Checker, fused: FusedGraph) -> None:
    check_sizes(check, fused.sizes, "F3", [len(io.dims) for io in fused.inputs])
    known = {v.name: v for v in fused.sizes}
    for var in fused.sizes:
        if isinstance(var.source, InputDim):
            dim = fused.inputs[var.source.input].dims[var.source.dim]
            check.require(
                not is_static(dim) and to_text(dim) == var.name,
                "F3",
                None,
                "symbol %s is read off a dim that is %s",
                var.name,
                dim,
            )
    used = [d for io in fused.inputs + fused.outputs for d in io.dims] + [
        side for g in fused.guards for side in (g.left, g.right)
    ]
    for size in used:
        missing = sorted(symbols_of(size) - set(known))
        check.require(
            not missing, "F3", None, "%s uses %s, which sizes does not list", size, ", ".join(missing)
        )
    for graph in fused.graphs:
        for var in graph.sizes:
            check.require(
                known.get(var.name) == var,
                "F3",
                None,
                "symbol %s of graph %s is not the fused graph's",
                var.name,
                graph.name,
            )


def _check_guards(check: Checker, fused: FusedGraph) -> None:
    covered = set()
    for guard in fused.guards:
        check.require(guard.kind in GUARD_KINDS, "F4", None, "guard of kind %r", guard.kind)
        check.require(guard.decided() is not False, "F4", None, "guard %r never holds", guard)
        covered |= symbols_of(guard.left) | symbols_of(guard.right)
    sizes = (
        [v.source for v in fused.sizes if not isinstance(v.source, InputDim)]
        + [d for io in fused.outputs for d in io.dims]
        + [a.size for g in fused.graphs for a in g.axes]
    )
    for size in sizes:
        for dims in broadcast_operands(size):
            for dim in dims:
                check.require(
                    bool(symbols_of(dim) & covered),
                    "F4",
                    None,
                    "%s takes %s for compatible, but no guard covers it",
                    size,
                    dim,
                )


def trial_values(fused: FusedGraph):
    """Values of all symbols that satisfy the guards, with inputs that exist: the hints where all are there,
    and a few that are made up."""
    read = [v for v in fused.sizes if isinstance(v.source, InputDim)]
    trials = [{}]
    if read:
        trials = [
            {v.name: 3 for v in read},
            {v.name: 1 for v in read},
            {v.name: 2 + i for i, v in enumerate(read)},
        ]
        for side in (1, 2):  # one side of every run-time broadcast is 1
            ones = {name for g in fused.guards if g.kind == "broadcast" for name in symbols_of(g[side])}
            trials.append({v.name: 1 if v.name in ones else 4 for v in read})
    if read and all(v.hint is not None for v in read):
        trials.insert(0, {v.name: v.hint for v in read})
    for values in trials:
        for v in fused.sizes:
            if not isinstance(v.source, InputDim):
                values[v.name] = evaluate(v.source, values)
        # A launch compares the dims of inputs that are computed from others': a slice of x[4:] that another
        # region makes has no -1 elements, though x may have 3 here.
        exist = all(evaluate(dim, values) >= 0 for io in fused.inputs for dim in io.dims)
        if exist and all(g.holds(values) for g in fused.guards):
            yield values
