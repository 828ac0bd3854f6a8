"""Long reductions with few results, in two nests: chunks of the reduced axis on all threads, then the chunks'
results.

Chunks have a fixed length, so that results do not depend on threads. The first nest writes one result a chunk
to a scratch tensor, [chunks, kept axes]; the second reduces that and computes what comes after the reduction.
"""
from typing import List, NamedTuple, Optional, Tuple

from tf_autofuse.schedule.host_graph import Access, HostAxis, HostGraph, Pattern, Tensor, Value, merged
from tf_autofuse.schedule.host_nest import COLUMN_TILE, vector_axis
from tf_autofuse.schedule.host_split import Scratch
from tf_autofuse.symbolic.size import Size, ceil_div, is_static, product

#: Elements that make a chunk, about; and the fewest elements in all of a reduction that is cut.
CHUNK_ELEMENTS = 32768
WORTH_ELEMENTS = 262144
#: A reduction with as many items or more has enough work for all threads as it is.
MANY_ITEMS = 16
#: What an axis of unknown size counts as.
_UNKNOWN = 64
_CHUNKED = ("Sum", "Prod", "Max", "Min", "Any", "All")


class Chunks(NamedTuple):
    """graphs: the two nests' graphs. scratch: the tensors between them."""

    graphs: Tuple[HostGraph, HostGraph]
    scratch: Tuple[Scratch, ...]


def chunked(graph: HostGraph, first_scratch: int) -> Optional[Chunks]:
    """The graph in two nests, or None where that does not pay or cannot be: its Reduces must not depend on
    each other."""
    reduces = [v for v in graph.values if v.is_reduce]
    if not reduces or any(v.type not in _CHUNKED for v in reduces):
        return None
    after = _after(graph)
    if any(i in after for v in reduces for i in v.inputs) or any(
            v.type == "Store" and v.name in after and v.pattern & reduces[0].reduced for v in graph.values):
        return None
    kept = product(graph.axes[a].size for a in reduces[0].pattern)
    if not is_static(kept) or kept == 0:
        return None
    items = kept if vector_axis(graph) in reduces[0].reduced else kept // COLUMN_TILE
    if items >= MANY_ITEMS:
        return None
    axis = _axis(graph, reduces[0].reduced)
    length = _length(graph, axis)
    if length is None:
        return None
    return _Cut(graph, reduces, after, axis, length, first_scratch).graphs()


def _after(graph: HostGraph) -> set:
    """Names of the Reduces and of all that depends on them."""
    found = set()
    for v in graph.values:
        if v.is_reduce or any(i in found for i in v.inputs):
            found.add(v.name)
    return found


def _axis(graph: HostGraph, reduced: Pattern) -> int:
    """The reduced axis to cut: the longest, one of unknown size before others, the outermost of equals."""
    def rank(a: int):
        size = graph.axes[a].size
        return (0, 0, a) if not is_static(size) else (1, -size, a)
    return min(reduced, key=rank)


def _length(graph: HostGraph, axis: int) -> Optional[int]:
    rest = 1
    for a, other in enumerate(graph.axes):
        if a != axis:
            rest *= other.size if is_static(other.size) else _UNKNOWN
    length = 64
    while length * rest * 2 <= CHUNK_ELEMENTS:
        length *= 2
    size = graph.axes[axis].size
    if is_static(size) and (size <= length or size * rest < WORTH_ELEMENTS):
        return None
    return length


class _Cut:
    def __init__(self, graph, reduces: List[Value], after: set, axis: int, length: int, first_scratch: int):
        self.graph, self.reduces, self.after, self.axis, self.length = graph, reduces, after, axis, length
        self.first = first_scratch
        self.size = graph.axes[axis].size
        self.count = ceil_div(self.size, length)
        self.kept = sorted(reduces[0].pattern)
        # There may be no chunk at all: what is stored once for each result belongs to the second nest.
        self.later = after | {v.name for v in graph.values
                              if v.type == "Store" and not v.pattern & reduces[0].reduced}

    def graphs(self) -> Chunks:
        scratch = tuple(
            Scratch(Tensor("scratch", self.first + i, v.dtype),
                    self.count * product(self.graph.axes[a].size for a in self.kept))
            for i, v in enumerate(self.reduces))
        return Chunks((self.chunks(scratch), self.rest(scratch)), scratch)

    def dense(self) -> Tuple[Tuple[int, Size], ...]:
        """(kept axis, its stride) in a scratch tensor; and the chunks' stride under -1."""
        strides, step = [], 1
        for a in reversed(self.kept):
            strides.append((a, step))
            step = step * self.graph.axes[a].size
        return tuple(strides) + ((-1, step),)

    def chunks(self, scratch) -> HostGraph:
        """Axis `axis` becomes two: the chunk, and the place in it."""
        at = self.axis

        def moved(pattern: Pattern, with_chunk: bool) -> Pattern:
            found = frozenset(a + 1 if a >= at else a for a in pattern)
            return found | {at} if with_chunk else found

        axes = list(self.graph.axes)
        axes[at:at + 1] = [HostAxis("chunk", self.count), HostAxis(axes[at].name, self.length, (at,
                                                                                                self.size))]
        values = []
        dense = dict(self.dense())
        for v in self.graph.values:
            if v.name in self.later and not v.is_reduce:
                continue
            access = v.access
            if access is not None:
                s = list(access.strides)
                s[at:at + 1] = [s[at] * self.length, s[at]]
                access = access._replace(strides=tuple(s))
            has = at in v.pattern or at in v.reduced
            values.append(v._replace(pattern=moved(v.pattern, has), reduced=moved(v.reduced, False),
                                     access=access))
            if v.is_reduce:
                tensor = scratch[self.reduces.index(v)].tensor
                strides = [0] * len(axes)
                for a in self.kept:
                    strides[a + 1 if a >= at else a] = dense[a]
                strides[at] = dense[-1]
                pattern = moved(v.pattern, True)
                values.append(Value(v.name + "_part", "Store", v.dtype, (v.name,), (), pattern,
                                    Access(tensor, 0, tuple(strides))))
        return HostGraph(self.graph.name + "_chunks", tuple(axes), tuple(values))

    def rest(self, scratch) -> HostGraph:
        """Over (chunk, kept axes): the partial results, their reduction, and what comes after."""
        axes = (HostAxis("chunk", self.count),) + tuple(self.graph.axes[a] for a in self.kept)
        place = {a: i + 1 for i, a in enumerate(self.kept)}
        dense = dict(self.dense())
        values = []
        needed = self.needed()

        def moved(pattern: Pattern) -> Pattern:
            return frozenset(place[a] for a in pattern)

        for v in self.graph.values:
            if v.is_reduce:
                access = Access(scratch[self.reduces.index(v)].tensor, 0,
                                (dense[-1],) + tuple(dense[a] for a in self.kept))
                part = Value(v.name + "_part", "Load", v.dtype, (), (), moved(v.pattern) | {0}, access)
                values += [part, v._replace(inputs=(part.name,), pattern=moved(v.pattern),
                                            reduced=frozenset((0,)),
                                            attrs=(("partial", True),), operand=v.dtype)]
            elif v.name in needed:
                access = v.access and v.access._replace(
                    strides=(0,) + tuple(v.access.strides[a] for a in self.kept))
                values.append(v._replace(pattern=moved(v.pattern), access=access))
        return merged(HostGraph(self.graph.name + "_rest", axes, tuple(values)))

    def needed(self) -> set:
        """What the second nest computes: all after the Reduces, and what that reads beside them."""
        kinds = self.graph.by_name()
        found = set()
        stack = [n for n in self.later if not kinds[n].is_reduce]
        while stack:
            name = stack.pop()
            if name in found or kinds[name].is_reduce:
                continue
            found.add(name)
            stack.extend(kinds[name].inputs)
        return found
