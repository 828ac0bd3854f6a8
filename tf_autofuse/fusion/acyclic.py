"""The graph of nests and of the nodes outside of them, kept acyclic while nests are joined.

A topological rank is kept for every vertex (the dynamic order of Pearce and Kelly). Whether a path leads from
one vertex to another is then a search that never leaves the ranks between the two, and joining two vertices
moves only what that search has seen.

On entry: edges (data and control) that make no cycle. Invariant: rank[u] < rank[v] for every edge u -> v.
"""

from typing import Dict, Iterable, List, Optional, Set, Tuple


class AcyclicGraph:
    def __init__(self, order: Iterable[int], edges: Iterable[Tuple[int, int]]):
        """order: the vertices in a topological order. Edges between other vertices, and self edges, are left
        out."""
        self._rank: Dict[int, int] = {v: i for i, v in enumerate(order)}
        self._after: Dict[int, Set[int]] = {v: set() for v in self._rank}
        self._before: Dict[int, Set[int]] = {v: set() for v in self._rank}
        for u, v in edges:
            if u != v and u in self._rank and v in self._rank:
                self._after[u].add(v)
                self._before[v].add(u)

    def rank(self, vertex: int) -> int:
        return self._rank[vertex]

    def detour(self, a: int, b: int) -> Optional[int]:
        """A vertex on a path between a and b that visits others, in either direction; None where joining a
        and b makes no cycle."""
        first, last = (a, b) if self._rank[a] < self._rank[b] else (b, a)
        limit = self._rank[last]
        seen: Set[int] = set()
        stack = [v for v in self._after[first] if v != last and self._rank[v] < limit]
        while stack:
            vertex = stack.pop()
            if vertex in seen:
                continue
            seen.add(vertex)
            if last in self._after[vertex]:
                return vertex
            stack.extend(v for v in self._after[vertex] if self._rank[v] < limit and v not in seen)
        return None

    def join(self, a: int, b: int, name: int) -> None:
        """Replaces a and b, between which there is no detour, by the vertex `name`."""
        first, last = (a, b) if self._rank[a] < self._rank[b] else (b, a)
        low, high = self._rank[first], self._rank[last]
        behind = self._between(first, self._after, low, high, last)
        ahead = self._between(last, self._before, low, high, first)
        ranks = sorted([low, high] + [self._rank[v] for v in behind] + [self._rank[v] for v in ahead])
        ahead.sort(key=self._rank.__getitem__)
        behind.sort(key=self._rank.__getitem__)
        after = (self._after.pop(a) | self._after.pop(b)) - {a, b}
        before = (self._before.pop(a) | self._before.pop(b)) - {a, b}
        for vertex in (a, b):
            del self._rank[vertex]
        # What leads to the joined vertex comes first, what it leads to last; one of the two ranks is left
        # over.
        for vertex, rank in zip(ahead, ranks):
            self._rank[vertex] = rank
        self._rank[name] = ranks[len(ahead)]
        for vertex, rank in zip(reversed(behind), reversed(ranks)):
            self._rank[vertex] = rank
        self._after[name], self._before[name] = after, before
        for vertex in after:
            self._before[vertex] -= {a, b}
            self._before[vertex].add(name)
        for vertex in before:
            self._after[vertex] -= {a, b}
            self._after[vertex].add(name)

    def _between(self, start: int, edges: Dict[int, Set[int]], low: int, high: int, other: int) -> List[int]:
        """The vertices reached from start along edges with ranks strictly between low and high."""
        seen: Set[int] = set()
        stack = [start]
        while stack:
            for vertex in edges[stack.pop()]:
                if vertex != other and vertex not in seen and low < self._rank[vertex] < high:
                    seen.add(vertex)
                    stack.append(vertex)
        return list(seen)
