"""The verifier of ImplGraphs: invariants G and I at the head of asc_graph.py.

It looks at the AscGraph alone, so it is independent of the schedule's own records. What the description
around the graph promises (plans, containers' bytes, limits) is checked by schedule/check.py.
"""
from typing import Dict, Set, Tuple

from tf_autofuse.ir.asc_graph import AscGraph, AscNode, AxisType, Position, TensorRef
from tf_autofuse.ir.verify_nodes import Checker, check_every_node_is_read, check_nodes
from tf_autofuse.symbolic.size import ceil_div, is_static, known_equal, product, symbols_of, to_text

IMPL_TYPES = ("RemovePad", "Copy", "Transpose")
_OUTSIDE = ("Data", "Scalar", "Output", "Workspace")
_PAIRS = {AxisType.TILE_OUT: AxisType.TILE_IN, AxisType.BLOCK_OUT: AxisType.BLOCK_IN}
_INNER = tuple(_PAIRS.values())


def verify_impl(graph: AscGraph) -> None:
    """Raises VerifyError unless `graph` is a well-formed ImplGraph (G1..G7, I1..I7)."""
    check = Checker(graph.name)
    check.require(graph.form == "impl", "I1", None, "form is %r", graph.form)
    inner = [s for a in graph.axes if a.type in _INNER for s in symbols_of(a.size)]
    _check_axes(check, graph)
    ancestors = _ancestors(graph)
    _check_loop_axes(check, graph, ancestors)
    check_nodes(check, graph, IMPL_TYPES, inner)
    vectorized = None
    for node in graph.nodes:
        _check_sched(check, graph, node, ancestors)
        for y in node.outputs:
            if node.type in _OUTSIDE or node.type == "Store":
                continue
            vectorized = vectorized or y.vectorized_axis
            check.require(
                y.vectorized_axis == vectorized,
                "I4",
                node,
                "vectorized over %s, others over %s",
                y.vectorized_axis,
                vectorized,
            )
    _check_memory(check, graph)
    _check_order(check, graph)
    check_every_node_is_read(check, graph)


def _check_axes(check: Checker, graph: AscGraph) -> None:
    known: Dict[int, object] = {}
    derived: Dict[int, Set[AxisType]] = {}
    for axis in graph.axes:
        count = len(axis.from_axes)
        fits = (
            count == 0
            if axis.type is AxisType.ORIGINAL
            else count >= 1
            if axis.type is AxisType.MERGED
            else count == 1
        )
        check.require(
            fits, "I1", None, "axis %s of type %s derives from %d axes", axis.name, axis.type.name, count
        )
        for source in axis.from_axes:
            check.require(
                source in known, "I1", None, "axis %s derives from %s, no earlier axis", axis.name, source
            )
            kinds = derived.setdefault(source, set())
            check.require(
                not kinds
                or any(
                    {other, axis.type} == set(pair) and axis.type not in kinds
                    for pair in _PAIRS.items()
                    for other in kinds
                ),
                "I1",
                None,
                "axis %s derives from %s, as %s does",
                axis.name,
                graph.axis(source).name,
                ", ".join(sorted(k.name for k in kinds)),
            )
            kinds.add(axis.type)
        if axis.type is AxisType.MERGED:
            check.require(
                known_equal(axis.size, product(graph.axis(s).size for s in axis.from_axes)),
                "I2",
                None,
                "axis %s has size %s",
                axis.name,
                axis.size,
            )
        if axis.type in _INNER:
            check.require(
                is_static(axis.size) or symbols_of(axis.size) == {to_text(axis.size)},
                "I2",
                None,
                "axis %s has size %s, neither symbol nor number",
                axis.name,
                axis.size,
            )
        known[axis.id] = axis
    for source, kinds in derived.items():
        check.require(
            kinds == {AxisType.MERGED} or any(kinds == set(pair) for pair in _PAIRS.items()),
            "I1",
            None,
            "only %s derives from axis %s",
            ", ".join(sorted(k.name for k in kinds)),
            graph.axis(source).name,
        )
    for axis in graph.axes:
        if axis.type in _PAIRS:
            (inside,) = [
                a for a in graph.axes if a.from_axes == axis.from_axes and a.type is _PAIRS[axis.type]
            ]
            whole = graph.axis(axis.from_axes[0]).size
            check.require(
                known_equal(axis.size, ceil_div(whole, inside.size)),
                "I2",
                None,
                "axis %s has size %s, not that of %s over %s",
                axis.name,
                axis.size,
                whole,
                inside.size,
            )


def _check_loop_axes(check: Checker, graph: AscGraph, ancestors: Dict[int, Set[int]]) -> None:
    loops = graph.loop_axes
    check.require(len(loops) >= 1 and set(loops) <= set(ancestors), "I1", None, "loop_axes are %s", loops)
    for a in loops:
        whole = {a} | ancestors[a]
        check.require(
            all(graph.axis(b).type in (AxisType.ORIGINAL, AxisType.MERGED) for b in whole),
            "I1",
            None,
            "loop axis %s is part of an axis",
            graph.axis(a).name,
        )
        check.require(
            not ancestors[a] & set(loops),
            "I1",
            None,
            "loop axis %s derives from another one",
            graph.axis(a).name,
        )
    covered = set(loops).union(*(ancestors[a] for a in loops))
    for axis in graph.axes:
        check.require(
            axis.type is not AxisType.ORIGINAL or axis.id in covered or known_equal(axis.size, 1),
            "I1",
            None,
            "no loop over axis %s",
            axis.name,
        )


def _ancestors(graph: AscGraph) -> Dict[int, Set[int]]:
    """Axis -> the axes that it derives from, directly or not."""
    result: Dict[int, Set[int]] = {}
    for axis in graph.axes:
        result[axis.id] = set(axis.from_axes).union(*(result[s] for s in axis.from_axes))
    return result


def _check_sched(check: Checker, graph: AscGraph, node: AscNode, ancestors) -> None:
    axes, loop = node.sched.axis, node.sched.loop_axis
    if node.type in _OUTSIDE:
        check.require(axes == () and loop == -1, "I3", node, "%s has axes in sched", node.type)
        for y in node.outputs:
            check.require(
                y.vectorized_axis == () and y.memory is None, "I5", node, "%s has a UB tensor", node.type
            )
        return
    check.require(
        set(axes) <= set(ancestors) and len(set(axes)) == len(axes) and len(axes) >= 1,
        "I3",
        node,
        "sched.axis is %s",
        axes,
    )
    for a in axes:
        both = sorted(ancestors[a] & set(axes))
        check.require(
            not both,
            "I3",
            node,
            "sched.axis has %s and %s, which it derives from",
            graph.axis(a).name,
            ", ".join(graph.axis(b).name for b in both),
        )
    check.require(loop == -1 or loop in axes, "I3", node, "loop_axis %s is not in sched.axis", loop)
    inside = axes[axes.index(loop) + 1 :] if loop != -1 else axes
    for y in node.outputs:
        check.require(
            len(y.vectorized_axis) == len(y.vectorized_strides),
            "I4",
            node,
            "%d vectorized axes, %d strides",
            len(y.vectorized_axis),
            len(y.vectorized_strides),
        )
        if node.type == "Store" and y.vectorized_axis == ():
            continue
        check.require(len(y.vectorized_axis) >= 1, "I4", node, "no vectorized axis")
        check.require(
            tuple(a for a in inside if a in y.vectorized_axis) == y.vectorized_axis,
            "I4",
            node,
            "vectorized over %s, but inside of the loop are %s",
            y.vectorized_axis,
            inside,
        )
        check.require(
            set(y.vectorized_axis) <= set(y.axis),
            "I4",
            node,
            "vectorized over %s, viewed over %s",
            y.vectorized_axis,
            y.axis,
        )


def _tensors(graph: AscGraph):
    """(node, ref) of every UB tensor, in order of birth."""
    return [
        (n, TensorRef(n.name, i))
        for n in graph.nodes
        if n.type not in _OUTSIDE and n.type != "Store"
        for i in range(len(n.outputs))
    ]


def _check_memory(check: Checker, graph: AscGraph) -> None:
    stored = {n.inputs[0] for n in graph.of_type("Store")}
    at = {n.name: i for i, n in enumerate(graph.nodes)}
    forever = len(graph.nodes)
    last: Dict[TensorRef, int] = {}
    for node in graph.nodes:
        for ref in node.inputs:
            # A tensor made before the loop and read inside is read again by every iteration.
            carried = graph.node(ref.node).sched.loop_axis == -1 != node.sched.loop_axis
            last[ref] = forever if carried else max(at[node.name], last.get(ref, 0))
        if node.type == "Store":
            check.require(
                all(y.memory is None or y.memory.position is Position.GM for y in node.outputs),
                "I5",
                node,
                "a Store writes GM",
            )
    buffers: Dict[Tuple[Position, int], int] = {}
    living: Dict[Tuple[Position, int], list] = {}
    for node, ref in _tensors(graph):
        memory = graph.tensor(ref).memory
        wanted = (
            Position.VECIN if node.type == "Load" else Position.VECOUT if ref in stored else Position.VECCALC
        )
        if node.type == "Gather" and memory is not None and memory.position is Position.VECIN:
            wanted = Position.VECIN  # of rows, by a copy as a Load's
        check.require(
            memory is not None and memory.position is wanted and memory.container >= 0,
            "I5",
            node,
            "lives in %s, not %s",
            memory,
            wanted.value,
        )
        most = 1 if wanted is Position.VECCALC else 2
        check.require(1 <= memory.buf_num <= most, "I5", node, "%d buffers", memory.buf_num)
        place = memory[:2]
        check.require(
            buffers.setdefault(place, memory.buf_num) == memory.buf_num,
            "I5",
            node,
            "container %s%d has %d buffers and %d",
            wanted.value,
            memory.container,
            buffers[place],
            memory.buf_num,
        )
        for other in living.get(place, ()):
            end = last.get(other, at[other.node])
            check.require(
                end < at[node.name] or (end == at[node.name] and _in_place(graph, node, other)),
                "I6",
                node,
                "shares %s%d with %s, which still lives",
                wanted.value,
                memory.container,
                other.node,
            )
        living.setdefault(place, []).append(ref)
    for position in (Position.VECIN, Position.VECOUT, Position.VECCALC):
        ids = sorted(i for p, i in buffers if p is position)
        check.require(
            ids == list(range(len(ids))), "I5", None, "%s containers are numbered %s", position.value, ids
        )


def _in_place(graph: AscGraph, node: AscNode, other: TensorRef) -> bool:
    from tf_autofuse.ops.table import ASC_OPS

    row = ASC_OPS.get(node.type)
    return (
        row is not None
        and row.in_place
        and other in node.inputs
        and node.y.memory.position is Position.VECCALC
        and node.y.dtype.bytes == graph.tensor(other).dtype.bytes
    )


def _check_order(check: Checker, graph: AscGraph) -> None:
    in_loop = False
    for node in graph.nodes:
        if node.type in _OUTSIDE:
            continue
        if node.sched.loop_axis != -1:
            in_loop = True
            continue
        check.require(not in_loop, "I7", node, "stands outside of the loop but after a node inside")
        check.require(node.type != "Store", "I7", node, "a Store outside of the loop")
