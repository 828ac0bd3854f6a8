"""From one HostGraph to several such that each is one loop nest of host_nest.py.

A nest reduces over one set of axes and keeps one set. What reduces over other axes, and Stores over other
axes, get nests of their own; a Reduce's result that another nest needs goes through a scratch tensor, dense
over the axes that it extends along; everything else is computed again from memory. On exit the graphs are in
the order of execution.
"""
from typing import Dict, List, NamedTuple, Set, Tuple

from tf_autofuse.schedule.host_graph import Access, HostGraph, Pattern, Tensor, Value, merged
from tf_autofuse.symbolic.size import Size, product


class Scratch(NamedTuple):
    """A tensor between the nests of one kernel. elements: its size."""

    tensor: Tensor
    elements: Size


class _Group(NamedTuple):
    kept: Pattern
    reduced: Pattern
    reduces: Set[str]
    stores: Set[str]


def split(graph: HostGraph, first_scratch: int) -> Tuple[Tuple[HostGraph, ...], Tuple[Scratch, ...]]:
    """The nests of the graph and the scratch tensors that they share, numbered from first_scratch."""
    values = graph.by_name()
    needs = _reduces_below(graph)
    groups = _grouped(graph, needs)
    home = {name: i for i, g in enumerate(groups) for name in g.reduces}
    scratch: Dict[str, Scratch] = {}
    for i, g in enumerate(groups):
        for name in sorted(g.reduces | g.stores):
            for below in needs[name]:
                if home[below] != i and below not in scratch:
                    v = values[below]
                    dims = [graph.axes[a].size for a in sorted(v.pattern)]
                    tensor = Tensor("scratch", first_scratch + len(scratch), v.dtype)
                    scratch[below] = Scratch(tensor, product(dims))
    parts = tuple(_part(graph, i, g, home, scratch) for i, g in enumerate(groups))
    return parts, tuple(scratch.values())


def _reduces_below(graph: HostGraph) -> Dict[str, Set[str]]:
    """Value -> the Reduces that it reads without another Reduce between."""
    below: Dict[str, Set[str]] = {}
    kinds = graph.by_name()
    for v in graph.values:
        below[v.name] = set()
        for i in v.inputs:
            below[v.name] |= {i} if kinds[i].is_reduce else below[i]
    return below


def _grouped(graph: HostGraph, needs) -> List[_Group]:
    """Reduces of equal axes whose operands are ready share a group; Stores join the first group that runs
    over their axes and has what they need. What is left over is grouped by its axes, behind the Reduces."""
    groups: List[_Group] = []
    done: Set[str] = set()
    left = [v for v in graph.values if v.is_reduce]
    while left:
        ready = next(v for v in left if needs[v.name] <= done)
        group = _Group(ready.pattern, ready.reduced, set(), set())
        for v in left:
            if (v.pattern, v.reduced) == group[:2] and needs[v.name] <= done | group.reduces:
                group.reduces.add(v.name)
        done |= group.reduces
        left = [v for v in left if v.name not in done]
        groups.append(group)
    for v in graph.values:
        if v.type != "Store":
            continue
        for i, g in enumerate(groups):
            ready = set().union(*(h.reduces for h in groups[:i + 1]))
            runs = v.pattern == g.kept or (v.pattern == g.kept | g.reduced)
            if runs and needs[v.name] <= ready:
                g.stores.add(v.name)
                break
        else:
            groups.append(_Group(v.pattern, frozenset(), set(), {v.name}))
    return groups


def _part(graph: HostGraph, number: int, group: _Group, home, scratch) -> HostGraph:
    """The group's values over its own axes. Reduces of other groups are Loads of their scratch tensors."""
    values = graph.by_name()
    axes = sorted(group.kept | group.reduced)
    place = {a: i for i, a in enumerate(axes)}
    wanted: Set[str] = set()
    loads: Dict[str, Value] = {}

    def moved(pattern: Pattern) -> Pattern:
        return frozenset(place[a] for a in pattern if a in place)

    def dense(pattern: Pattern) -> Tuple[Size, ...]:
        strides: Dict[int, Size] = {}
        step: Size = 1
        for a in sorted(pattern, reverse=True):
            strides[a] = step
            step = step * graph.axes[a].size
        return tuple(strides.get(a, 0) for a in axes)

    def visit(name: str) -> None:
        v = values[name]
        if name in wanted or name in loads:
            return
        if v.is_reduce and home[name] != number:
            access = Access(scratch[name].tensor, 0, dense(v.pattern))
            loads[name] = Value(name, "Load", v.dtype, (), (), moved(v.pattern), access, origin=v.origin)
            return
        wanted.add(name)
        for i in v.inputs:
            visit(i)

    for name in group.reduces | group.stores:
        visit(name)
    made: List[Value] = []
    for v in graph.values:
        if v.name in loads:
            made.append(loads[v.name])
        elif v.name in wanted:
            access = v.access and v.access._replace(strides=tuple(v.access.strides[a] for a in axes))
            made.append(v._replace(pattern=moved(v.pattern), reduced=moved(v.reduced), access=access))
            if v.is_reduce and v.name in scratch:
                store = Access(scratch[v.name].tensor, 0, dense(v.pattern))
                made.append(Value(v.name + "_kept", "Store", v.dtype, (v.name,), (), moved(v.pattern), store))
    return merged(HostGraph("%s_%d" % (graph.name, number), tuple(graph.axes[a] for a in axes), tuple(made)))
