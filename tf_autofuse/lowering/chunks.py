"""The graph cut into chunks that can be planned each by itself.

Why: a network is the same few structures again and again, with ops between them that nothing fuses (matrix
products). What is in different chunks never becomes one fused op, so each chunk has a plan of its own, and
equal chunks have equal ones (lowering/shared.py).

On entry: a graph's columns and its ops' eligibility. On exit (`chunks_of`): per node its chunk's number, -1
outside of all.

Invariants
    C1 No path leaves a chunk and comes back, chunks taken as one vertex each. Every node has a level: an op
       that is not fused is above all that it depends on, and so is what a control edge leads to; other edges
       never lead down. Where all chunks have one level, a path out of one is above it for good; else what is
       between the parts of a chunk is put into it.
    C2 Between chunks go only tensors that are computed by elementwise ops and reductions, and not from fills
       alone, or by what is not fused, and constants. What computes sizes is in the chunk of what it computes
       them for.
    C3 No fusion is lost: where an edge, or a tensor that two nodes read, leads from one chunk to another, a
       path leads from the one to the other through an op that is not fused. Where that cannot be shown they
       are one chunk.
"""

import marshal
import threading
from itertools import chain
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from tf_autofuse.lowering.eligibility import Eligibility
from tf_autofuse.lowering.graph_view import GraphView
from tf_autofuse.lowering.rows import row_of
from tf_autofuse.lowering.shape_folding import MAX_ELEMENTS, computes_sizes

#: Most nodes that are looked at to show that a path leads from one chunk to another.
MAX_SEARCH = 400
#: How far fills are followed to what is computed from them.
MAX_DEPTH = 20
#: Most readers at one level of one tensor between which and the next level's paths are looked for.
MAX_READERS = 8

#: What a node is: never fused; a Const without control inputs; elementwise or a reduction; anything else that
#: may be fused or folded.
OUTSIDE, CONSTANT, COMPUTES, OTHER = range(4)
_FREE = 1 << 60


class Chunks(NamedTuple):
    """home: per node its chunk's number, -1 outside of all. members: per chunk its nodes, ascending; chunks
    by their first nodes. signature: per node of a chunk a number that stands for what the node alone says
    (`Signatures`), -1 outside. readers: per node the nodes that read it, once each, ascending."""

    home: List[int]
    members: List[List[int]]
    signature: List[int]
    readers: List[List[int]]


class Signatures:
    """Numbers for what a node's columns but its edges, dims and name say: op, attributes, dtypes, device.
    Equal numbers mean equal columns. kinds: per number what such a node is."""

    def __init__(self):
        self.numbers: Dict[tuple, int] = {}
        self.kinds: List[int] = []
        self._lock = threading.Lock()

    def add(self, key: tuple, kind: int) -> int:
        with self._lock:
            number = self.numbers.get(key)
            if number is None:
                self.kinds.append(kind)
                number = self.numbers[key] = len(self.kinds) - 1
        return number

    def of_outside(self, view: GraphView, node: int) -> int:
        """The number of a node that is not fused, where it is in the midst of a chunk. Raises ValueError
        where an attribute cannot be written down."""
        key = ("outside", view.ops[node], marshal.dumps(view.attrs[node], 2), view.in_dtypes[node],
               view.out_dtypes[node], view.devices[node], view.frames[node], view.stateful[node],
               constant_value(view, node))
        number = self.numbers.get(key)
        return self.add(key, OUTSIDE) if number is None else number


def chunks_of(view: GraphView, eligible: Eligibility, signatures: Signatures) -> Chunks:
    """Raises ValueError where an attribute cannot be written down."""
    inputs = view.inputs
    if any(view.frames):  # without the ways back of loops
        inputs = [tuple([edge for edge in mine if edge[0] < node]) for node, mine in enumerate(inputs)]
    graph = _Graph(view, inputs, view.control_outputs if any(view.control_inputs) else None)
    graph.classify(eligible, signatures)
    graph.set_levels()
    joiner = _Joiner(graph, eligible)
    joiner.run()
    signature, parent = graph.signature, joiner.parent
    if joiner.mixed:
        for node in joiner.enclose():
            signature[node] = signatures.of_outside(view, node)
    home = [-1] * len(view)
    members: List[List[int]] = []
    for node, number in enumerate(signature):
        if number >= 0:
            first = parent[node]
            if first == node:
                home[node] = len(members)
                members.append([node])
            else:  # an earlier node of the same chunk
                home[node] = home[first]
                members[home[first]].append(node)
    return Chunks(home, members, signature, graph.readers)


class _Graph:
    """What is to be known of the nodes. kinds, signature, levels: per node. readers: per node the nodes that
    read it, once each, ascending."""

    def __init__(self, view: GraphView, inputs: Sequence[Sequence[Tuple[int, int]]], followers):
        self.view = view
        self.inputs = inputs
        self.followers = followers
        self.kinds: List[int] = []
        self.signature: List[int] = []
        self.readers: List[List[int]] = []
        self.low: List[int] = []
        self.levels: List[int] = []

    def classify(self, eligible: Eligibility, signatures: Signatures) -> None:
        """Kinds, signatures, readers, and the lowest level that each node can have (C1). Raises ValueError
        where an attribute cannot be written down."""
        view, followers = self.view, self.followers
        kinds, numbers = self.kinds, self.signature
        low = self.low = [-1] * len(view)
        readers = self.readers = [[] for _ in low]
        known, kind_of = signatures.numbers, signatures.kinds
        by_op: Dict[str, int] = {}
        references = eligible.has_references
        write = marshal.dumps
        for node, (op, attrs, inputs, ins, outs, device, frame, stateful, controls) in enumerate(zip(
                view.ops, view.attrs, self.inputs, view.in_dtypes, view.out_dtypes, view.devices, view.frames,
                view.stateful, view.control_inputs)):
            kind = by_op.get(op)
            if kind is None:
                kind = by_op[op] = (
                    CONSTANT if op == "Const" else OTHER if row_of(op) or computes_sizes(op) else OUTSIDE)
            number = -1
            if kind == OTHER:
                if references and any(view.out_dtypes[source][port] > 100 for source, port in inputs):
                    kind = OUTSIDE
                else:
                    ordered = bool(controls or followers and followers[node])
                    # Version 2 writes values only; later ones also which objects are the same.
                    key = (op, write(attrs, 2), ins, outs, device, frame, stateful, ordered)
                    number = known.get(key)
                    if number is None:
                        number = signatures.add(key, _kind(view, eligible, node))
                    kind = kind_of[number]
                    if kind == OUTSIDE:
                        number = -1
            elif controls:
                kind = OUTSIDE
            numbers.append(number)
            kinds.append(kind)
            level = -1
            for source, _ in inputs:
                if low[source] > level:
                    level = low[source]
                mine = readers[source]
                if not mine or mine[-1] != node:
                    mine.append(node)
            for source in controls:
                if low[source] >= level:
                    level = low[source] + 1
            if kind == OUTSIDE:
                low[node] = level + 1
            elif kind != CONSTANT:
                low[node] = level if level > 0 else 0

    def set_levels(self) -> None:
        """As low as can be for what is not fused, then as high as that allows for what may be."""
        view, low = self.view, self.low
        levels = self.levels = [_FREE] * len(low)
        for node, (kind, inputs, controls) in enumerate(zip(
                reversed(self.kinds), reversed(self.inputs), reversed(view.control_inputs)), 1 - len(low)):
            node = -node
            level = levels[node]
            if kind == OUTSIDE or level == _FREE:
                level = levels[node] = low[node]
            below = level - 1 if kind == OUTSIDE else level
            for source, _ in inputs:
                if levels[source] > below:
                    levels[source] = below
            for source in controls:
                if levels[source] >= level and source < node:
                    levels[source] = level - 1


def _kind(view: GraphView, eligible: Eligibility, node: int) -> int:
    op = view.ops[node]
    row = row_of(op)
    if row is None or eligible.verdict(node) is not None:
        return OTHER if computes_sizes(op, view.out_dtypes[node]) else OUTSIDE
    if row.kind in ("elementwise", "reduce") and not computes_sizes(op, view.out_dtypes[node]):
        return COMPUTES
    return OTHER


def constant_value(view: GraphView, node: int) -> Optional[tuple]:
    """All that planning looks at of a Const's value; None for other nodes, and for a value that is not in
    the columns."""
    array = view.constants.get(node)
    if array is None:
        return None
    written: Optional[bytes] = array.tobytes()
    if array.size > MAX_ELEMENTS:
        one = array.reshape(-1)[:1].tobytes()
        written = one if one * array.size == written else None
    return array.dtype.str, array.shape, written


class _Joiner:
    """Chunks as sets of nodes. parent: per node an earlier one of its set, the first one itself. mixed:
    whether a set has nodes of several levels."""

    def __init__(self, graph: _Graph, eligible: Eligibility):
        self.graph = graph
        self.view = graph.view
        self.eligible = eligible
        self.kinds = graph.kinds
        self.levels = graph.levels
        self.parent = list(range(len(graph.kinds)))
        self.mixed = False
        self.constant: Dict[int, bool] = {}

    def find(self, node: int) -> int:
        parent = self.parent
        while parent[node] != node:
            parent[node] = node = parent[parent[node]]
        return node

    def join(self, a: int, b: int) -> None:
        a, b = self.find(a), self.find(b)
        self.parent[max(a, b)] = min(a, b)

    def run(self) -> None:
        """Joins what must be one chunk for C2 and C3."""
        kinds, levels, parent = self.kinds, self.levels, self.parent
        for source, readers in enumerate(self.graph.readers):
            if not readers:
                continue
            if kinds[source] >= COMPUTES:
                level = levels[source]
                first = source
                while parent[first] != first:
                    first = parent[first]
                apart = False
                for reader in readers:
                    if kinds[reader] >= COMPUTES:
                        if levels[reader] != level:
                            apart = True
                        elif parent[reader] == reader and first < reader:
                            parent[reader] = first
                        else:
                            self.join(first, reader)
                            first = self.find(first)
                if apart:
                    self.cut([source], [r for r in readers if kinds[r] >= COMPUTES])
            elif len(readers) > 1 and not self.is_inlined(source):
                self.cut([], [r for r in readers if self.shares(source, r)])

    def is_inlined(self, node: int) -> bool:
        """Whether the node is a constant that nobody loads: it is one value, or has no elements."""
        array = self.view.constants.get(node)
        if array is None:
            return False
        return array.size <= 1 or array.tobytes() == array.reshape(-1)[:1].tobytes() * array.size

    def shares(self, source: int, reader: int) -> bool:
        """Whether the reader may load the source's elements beside others that do."""
        if self.kinds[reader] < COMPUTES:
            return False
        if row_of(self.view.ops[reader]) is None:
            return False
        inputs = self.view.inputs[reader]
        return any(inputs[at][0] == source for at in self.eligible.value_inputs(reader))

    def cut(self, first: List[int], readers: Sequence[int]) -> None:
        """Joins the readers of one level each, and levels between which no path can be shown. first: the
        source, where it is in a chunk itself."""
        levels = self.levels
        groups: Dict[int, List[int]] = {levels[node]: [node] for node in first}
        for reader in readers:
            groups.setdefault(levels[reader], []).append(reader)
        whole = bool(first) and (self.kinds[first[0]] == OTHER or self.may_be_constant(first[0]))
        before: List[int] = []
        for level in sorted(groups):
            group = groups[level]
            for node in group[1:]:
                self.join(group[0], node)
            if before and (whole or not self.all_lead(before, group, bool(first))):
                self.join(before[0], group[0])
                self.mixed = True
                group = before + group
            before = group

    def may_be_constant(self, node: int, depth: int = 0) -> bool:
        """Whether lowering may find that all elements are one number, which its readers then have for
        themselves: the node is a fill, or computed from fills and constants."""
        if self.kinds[node] == CONSTANT or depth > MAX_DEPTH:
            return True
        found = self.constant.get(node)
        if found is None:
            row = row_of(self.view.ops[node]) if self.kinds[node] >= COMPUTES else None
            inputs = self.view.inputs[node]
            found = self.constant[node] = row is not None and (row.kind == "fill" or all(
                self.may_be_constant(inputs[at][0], depth + 1) for at in self.eligible.value_inputs(node)))
        return found

    def all_lead(self, before: Sequence[int], behind: Sequence[int], computed: bool) -> bool:
        if len(before) > MAX_READERS or len(behind) > MAX_READERS:
            return False
        if computed and any(computes_sizes(self.view.ops[b], self.view.out_dtypes[b]) for b in behind):
            return False
        return all(self.leads(a, b) for a in before for b in behind)

    def leads(self, a: int, b: int) -> bool:
        """Whether a path leads from a to b through what is not fused, as far as a search shows it."""
        all_inputs, kinds, levels = self.graph.inputs, self.kinds, self.levels
        least = levels[a]
        seen, beyond = {b}, set()
        near, far = [b], []
        left = MAX_SEARCH
        while near:
            node = near.pop()
            left -= 1
            for source, _ in all_inputs[node]:
                if source > a and source not in seen:
                    kind = kinds[source]
                    if kind == OUTSIDE:
                        if levels[source] > least and source not in beyond:
                            beyond.add(source)
                            far.append(source)
                    elif kind != CONSTANT and levels[source] >= least:
                        seen.add(source)
                        near.append(source)
            if left < 0:
                return False
        while far:
            node = far.pop()
            left -= 1
            if left < 0:
                return False
            for source, _ in all_inputs[node]:
                if source == a:
                    return True
                if source > a and source not in beyond:
                    level = levels[source]
                    if level > least or (level == least and kinds[source] != OUTSIDE):
                        beyond.add(source)
                        far.append(source)
        return False


    def enclose(self) -> List[int]:
        """Joins chunks that lie on a cycle of chunks and other nodes; gives the nodes on such cycles that
        are not fused. Tarjan's strongly connected components."""
        find = self.find
        after: Dict[int, List[int]] = {}
        for node, mine in enumerate(self.graph.readers):
            followers = self.graph.followers[node] if self.graph.followers else ()
            if mine or followers:
                after.setdefault(find(node), []).extend(
                    [find(reader) for reader in chain(mine, followers) if reader > node])
        number: Dict[int, int] = {}
        low: Dict[int, int] = {}
        open_: List[int] = []
        is_open = set()
        found: List[List[int]] = []
        for start in list(after):
            if start in number:
                continue
            number[start] = low[start] = len(number)
            open_.append(start)
            is_open.add(start)
            stack = [(start, iter(after[start]))]
            while stack:
                vertex, rest = stack[-1]
                for other in rest:
                    if other not in number:
                        number[other] = low[other] = len(number)
                        open_.append(other)
                        is_open.add(other)
                        stack.append((other, iter(after.get(other, ()))))
                        break
                    if other in is_open and number[other] < low[vertex]:
                        low[vertex] = number[other]
                else:
                    stack.pop()
                    if stack and low[vertex] < low[stack[-1][0]]:
                        low[stack[-1][0]] = low[vertex]
                    if low[vertex] == number[vertex]:
                        group = [open_.pop()]
                        while group[-1] != vertex:
                            group.append(open_.pop())
                        is_open.difference_update(group)
                        if len(group) > 1:
                            found.append(group)
        enclosed: List[int] = []
        for group in found:
            for vertex in group:
                if self.kinds[vertex] < COMPUTES:
                    enclosed.append(vertex)
                self.join(group[0], vertex)
        return enclosed


__all__ = ("Chunks", "Signatures", "chunks_of")
