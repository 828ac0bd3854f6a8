"""Loop axes made few: unit axes dropped, broadcasts folded, contiguous axes merged.

Why: every axis that stays costs a loop or a dim of a copy, and most graphs are one long vector once their
axes are merged. Each function maps an AscGraph of form 'hint' to another that computes the same. On exit of
`fold_broadcasts` a Broadcast may extend several axes at once (attr axes: their ids), a form that stays inside
of schedule/; all other invariants of a HintGraph hold throughout (`check_simplified`).
"""
from dataclasses import replace
from typing import Dict, List, NamedTuple, Optional, Tuple

from tf_autofuse.ir.asc_graph import AscGraph, AscNode, Axis, AxisType, TensorAttr, TensorRef, attrs
from tf_autofuse.ir.builder import dense_strides
from tf_autofuse.schedule.impl_graph import ScheduleRefusal
from tf_autofuse.symbolic.guards import Guard
from tf_autofuse.symbolic.size import (Size, SizeExpr, is_static, known_equal, may_be_broadcast, product,
                                       substitute)

_GM_VIEWS = ("Load", "Store", "Gather")


def extends(tensor: TensorAttr, position: int) -> bool:
    """Whether the tensor extends along the axis at this position of its axis list."""
    return not known_equal(tensor.repeats[position], 1)


def is_reduction(node: AscNode) -> bool:
    """Whether the node reduces axes (attr axes)."""
    return node.type not in ("Broadcast", "Load", "Store") and node.attr("axes") is not None


def fold_broadcasts(graph: AscGraph) -> AscGraph:
    """Chains of Broadcast nodes become one each, from the first tensor that is no Broadcast; a Broadcast that
    changes nothing goes. Equal Broadcasts of one tensor become one node."""
    source: Dict[TensorRef, TensorRef] = {}
    seen: Dict[Tuple[TensorRef, Tuple[int, ...]], TensorRef] = {}
    replaced: Dict[TensorRef, TensorRef] = {}
    nodes: List[AscNode] = []
    for n in graph.nodes:
        inputs = tuple(replaced.get(r, r) for r in n.inputs)
        if n.type != "Broadcast":
            nodes.append(replace(n, inputs=inputs))
            continue
        root = source.get(n.inputs[0], n.inputs[0])
        root = replaced.get(root, root)
        source[TensorRef(n.name)] = root
        before = graph.tensor(root)
        grown = tuple(a for i, a in enumerate(n.y.axis)
                      if extends(n.y, i) and not (before.axis and extends(before, i)))
        if not grown and before.axis:
            replaced[TensorRef(n.name)] = root
        elif (root, grown) in seen:
            replaced[TensorRef(n.name)] = seen[root, grown]
        else:
            seen[root, grown] = TensorRef(n.name)
            nodes.append(replace(n, inputs=(root,), attrs=attrs(axes=grown)))
    return drop_unread(graph.with_nodes(nodes))


def drop_unread(graph: AscGraph) -> AscGraph:
    """Without the nodes that nothing reads (Output nodes and written Workspaces are read by the outside)."""
    wanted = set()
    for n in reversed(graph.nodes):
        if n.type == "Output" or (n.type == "Workspace" and n.inputs) or n.name in wanted:
            wanted.add(n.name)
            wanted.update(r.node for r in n.inputs)
    return graph.with_nodes(n for n in graph.nodes if n.name in wanted)


def drop_unit_axes(graph: AscGraph) -> AscGraph:
    """Without the loop axes whose size is statically 1; one axis always stays."""
    kept = [i for i, a in enumerate(graph.loop_axes) if not known_equal(graph.axis(a).size, 1)] or [0]
    if len(kept) == len(graph.loop_axes):
        return graph
    return _with_tensors(graph, tuple(graph.loop_axes[i] for i in kept), graph.axes,
                         lambda t: (tuple(t.repeats[i] for i in kept), tuple(t.strides[i] for i in kept)))


def merge_contiguous_axes(graph: AscGraph) -> AscGraph:
    """Neighbouring loop axes that every tensor walks as one become one MERGED axis.

    Axes i and i+1 merge where every tensor extends along both or neither, and every Load and Store that does
    has strides[i] == size[i+1] * strides[i+1] for all values of the symbols.
    """
    runs: List[List[int]] = [[0]]
    for i in range(1, len(graph.loop_axes)):
        if _mergeable(graph, i - 1):
            runs[-1].append(i)
        else:
            runs.append([i])
    if all(len(run) == 1 for run in runs):
        return graph
    axes, loop_axes = list(graph.axes), []
    next_id = max(a.id for a in axes) + 1
    for run in runs:
        ids = tuple(graph.loop_axes[i] for i in run)
        if len(run) == 1:
            loop_axes.append(ids[0])
            continue
        parts = [graph.axis(a) for a in ids]
        axes.append(Axis(next_id, "".join(a.name for a in parts), product(a.size for a in parts),
                         AxisType.MERGED, ids))
        loop_axes.append(next_id)
        next_id += 1
    size_of = {a.id: a.size for a in axes}

    def merged(t: TensorAttr):
        repeats, strides = [], []
        for run, axis in zip(runs, loop_axes):
            full = any(extends(t, i) for i in run)
            repeats.append(size_of[axis] if full else 1)
            strides.append(t.strides[run[-1]] if full else 0)
        return tuple(repeats), tuple(strides)

    return _with_tensors(graph, tuple(loop_axes), tuple(axes), merged)


def _mergeable(graph: AscGraph, i: int) -> bool:
    for n in graph.nodes:
        if not n.outputs or not n.y.axis:
            continue
        t = n.y
        if extends(t, i) != extends(t, i + 1):
            return False
        if n.type in _GM_VIEWS and extends(t, i):
            if not known_equal(t.strides[i], t.repeats[i + 1] * t.strides[i + 1]):
                return False
    return True


def _with_tensors(graph: AscGraph, loop_axes, axes, view) -> AscGraph:
    """The graph over other loop axes; view(tensor) gives its repeats and strides along them."""
    new_axis = {}  # old loop axis -> the new one that holds it
    for a in axes:
        for part in a.from_axes:
            new_axis[part] = a.id
    nodes = []
    for n in graph.nodes:
        if n.outputs and n.y.axis:
            repeats, strides = view(n.y)
            if n.type not in _GM_VIEWS:
                strides = dense_strides(repeats)
            n = replace(n, outputs=(replace(n.y, axis=loop_axes, repeats=repeats, strides=strides),))
        if n.attr("axes") is not None:
            grown = tuple(dict.fromkeys(new_axis.get(a, a) for a in n.attr("axes")))
            n = n.with_attrs(axes=tuple(a for a in grown if a in loop_axes))
        nodes.append(replace(n, sched=replace(n.sched, axis=loop_axes)))
    return replace(graph, axes=axes, loop_axes=loop_axes, nodes=tuple(nodes))


class Contiguous(NamedTuple):
    graph: AscGraph
    conditions: Tuple[Guard, ...]


def is_strided(graph: AscGraph) -> bool:
    """Whether a Load learns only at run time along which axes it broadcasts."""
    return any(may_be_broadcast(s) for n in graph.of_type("Load") for s in n.y.strides)


def assume_contiguous(graph: AscGraph) -> Optional[Contiguous]:
    """The graph for the case that no dim is broadcast at run time, and the conditions that say so.

    A stride `stride_or_zero(dim, stride)` along an axis becomes `stride` under the condition dim == the
    axis's size (where both are 1 the stride does not matter). Symbols that the conditions make equal become
    one symbol, so that axes can merge. None where a run-time stride has another form.
    """
    equal: List[Tuple[Size, Size]] = []
    nodes = []
    for n in graph.nodes:
        if n.type == "Load":
            strides = []
            for i, stride in enumerate(n.y.strides):
                if may_be_broadcast(stride):
                    parts = _stride_or_zero(stride)
                    if parts is None:
                        return None
                    equal.append((parts[0], n.y.repeats[i]))
                    stride = parts[1]
                strides.append(stride)
            n = replace(n, outputs=(replace(n.y, strides=tuple(strides)),))
        nodes.append(n)
    conditions = []
    for dim, size in equal:
        guard = Guard("eq", dim, size, "contiguous variant")
        if not known_equal(dim, size) and guard not in conditions:
            conditions.append(guard)
    return Contiguous(_substituted(graph.with_nodes(nodes), _representatives(equal)), tuple(conditions))


def _stride_or_zero(stride: SizeExpr) -> Optional[Tuple[Size, Size]]:
    if type(stride.expr).__name__ != "stride_or_zero":
        return None
    dim, real = (int(e) if e.is_Integer else SizeExpr(e) for e in stride.expr.args)
    return None if may_be_broadcast(real) else (dim, real)


def _symbol_name(size: Size) -> Optional[str]:
    return size.expr.name if not is_static(size) and size.expr.is_Symbol else None


def _representatives(equal) -> Dict[str, Size]:
    """symbol -> what it equals: the axis's size, or the first dim of an axis whose size is an expression of
    them."""
    values: Dict[str, Size] = {}
    first: Dict[Size, Size] = {}
    for dim, size in equal:
        name = _symbol_name(dim)
        target = size if is_static(size) or _symbol_name(size) else first.setdefault(size, dim)
        is_new = name and name not in values and not known_equal(dim, target)
        if is_new and _symbol_name(target) not in values:
            values[name] = target
    return values


def _substituted(graph: AscGraph, values: Dict[str, Size]) -> AscGraph:
    """All axes and views with the symbols replaced until nothing changes."""
    def final(size: Size) -> Size:
        for _ in range(len(values) + 1):
            after = substitute(size, values)
            if known_equal(after, size):
                break
            size = after
        return size

    def view(t: TensorAttr) -> TensorAttr:
        return replace(t, repeats=tuple(map(final, t.repeats)), strides=tuple(map(final, t.strides)))

    nodes = [replace(n, outputs=tuple(map(view, n.outputs)),
                     attrs=tuple((k, final(v) if isinstance(v, SizeExpr) else v) for k, v in n.attrs))
             for n in graph.nodes]
    return replace(graph, axes=tuple(replace(a, size=final(a.size)) for a in graph.axes), nodes=tuple(nodes))


def simplify(graph: AscGraph) -> AscGraph:
    """Folded, without unit axes, merged, with an axis that is not reduced; checked."""
    graph = constant_gathers(graph)
    return check_simplified(with_outer_axis(merge_contiguous_axes(drop_unit_axes(fold_broadcasts(graph)))))


def constant_gathers(graph: AscGraph) -> AscGraph:
    """With a Load in the place of each Gather whose index is a constant."""
    nodes = []
    for n in graph.nodes:
        if n.type == "Gather" and graph.node(n.inputs[1].node).type == "Scalar":
            index, limit = graph.node(n.inputs[1].node).attr("value"), n.attr("index_size")
            if not (is_static(index) and is_static(limit) and 0 <= index < limit):
                raise ScheduleRefusal("%s: whether the index %r is below %r is known at run time only" % (
                    n.name, index, limit))
            offset = n.attr("offset", 0) + index * n.attr("index_stride")
            n = replace(n, type="Load", inputs=n.inputs[:1], attrs=attrs(offset=offset))
        nodes.append(n)
    return drop_unread(graph.with_nodes(nodes))


def with_outer_axis(graph: AscGraph) -> AscGraph:
    """With an outermost axis of size 1 where every axis is reduced: one is needed to cut at."""
    reduced = {a for n in graph.nodes if is_reduction(n) for a in n.attr("axes")}
    if not reduced or not set(graph.loop_axes) <= reduced:
        return graph
    names, name = {a.name for a in graph.axes}, "one"
    while name in names:
        name += "_"
    one = Axis(max(a.id for a in graph.axes) + 1, name, 1)
    return _with_tensors(graph, (one.id,) + graph.loop_axes, graph.axes + (one,),
                         lambda t: ((1,) + t.repeats, (0,) + t.strides))


def check_simplified(graph: AscGraph) -> AscGraph:
    """The graph itself. Raises ScheduleRefusal where it is none that the passes after this one can take."""
    if not graph.loop_axes:
        raise ScheduleRefusal("%s has no loop axis" % graph.name)
    size_of = {a.id: a.size for a in graph.axes}
    reduced = {a for n in graph.nodes if is_reduction(n) for a in n.attr("axes")}
    for n in graph.nodes:
        if n.type in ("Data", "Scalar", "Output", "Workspace"):
            continue
        t = n.y
        if t.axis != graph.loop_axes:
            raise ScheduleRefusal("%s: views other axes than the loop's" % n.name)
        for a, r in zip(t.axis, t.repeats):
            if not (known_equal(r, 1) or known_equal(r, size_of[a])):
                raise ScheduleRefusal("%s: extent %r along an axis of size %r" % (n.name, r, size_of[a]))
        if n.type == "Store" and not all(known_equal(r, size_of[a]) or a in reduced
                                         for a, r in zip(t.axis, t.repeats)):
            raise ScheduleRefusal("%s: does not cover all loop axes" % n.name)
        if n.type in ("Broadcast", "Load", "Store", "Gather") or is_reduction(n):
            continue
        for ref in n.inputs:
            other = graph.tensor(ref)
            if other.axis and tuple(extends(other, i) for i in range(len(t.axis))) != tuple(
                    extends(t, i) for i in range(len(t.axis))):
                raise ScheduleRefusal("%s: its input %s extends along other axes" % (n.name, ref.node))
    return graph
