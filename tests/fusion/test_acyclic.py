"""AcyclicGraph against brute force: ranks stay topological, detours are exactly the longer paths."""

from hypothesis import given, settings, strategies as st

from tf_autofuse.fusion.acyclic import AcyclicGraph


def reaches_by_detour(edges, a, b):
    """Whether a path of at least two edges leads from a to b or from b to a."""

    def longer(start, goal):
        seen, stack = set(), [v for u, v in edges if u == start and v != goal]
        while stack:
            vertex = stack.pop()
            if vertex == goal:
                return True
            if vertex not in seen:
                seen.add(vertex)
                stack.extend(v for u, v in edges if u == vertex)
        return False

    return longer(a, b) or longer(b, a)


graphs = st.integers(3, 12).flatmap(
    lambda n: st.tuples(
        st.just(n),
        st.sets(
            st.tuples(st.integers(0, n - 2), st.integers(1, n - 1)).filter(lambda e: e[0] < e[1]), max_size=24
        ),
        st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=20),
    )
)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(graphs)
def test_joins(drawn):
    count, edges, joins = drawn
    graph = AcyclicGraph(range(count), edges)
    name = {v: v for v in range(count)}
    edges = set(edges)
    for a, b in joins:
        a, b = name[a], name[b]
        if a == b:
            continue
        found = graph.detour(a, b)
        assert (found is not None) == reaches_by_detour(edges, a, b)
        if found is not None:
            assert found not in (a, b)
            continue
        joined = max(a, b)
        graph.join(a, b, joined)
        name = {v: joined if n in (a, b) else n for v, n in name.items()}
        edges = {(joined if u in (a, b) else u, joined if v in (a, b) else v) for u, v in edges}
        edges = {(u, v) for u, v in edges if u != v}
        assert all(graph.rank(u) < graph.rank(v) for u, v in edges)
        assert len({graph.rank(v) for v in set(name.values())}) == len(set(name.values()))


def test_edges_of_unknown_vertices_and_self_edges_are_left_out():
    graph = AcyclicGraph([1, 2], [(1, 1), (1, 2), (7, 1), (2, 9)])
    assert graph.detour(1, 2) is None and graph.rank(1) < graph.rank(2)
