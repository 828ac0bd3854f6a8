"""Random fused graphs: verified, printed and read back, serialized and read back, and evaluated."""
import numpy as np
from hypothesis import given, settings, strategies as st

from tests.strategies import arrays_for, dims_for, fused_graphs
from tf_autofuse.ir.evaluate import evaluate_fused
from tf_autofuse.ir.proto import from_bytes, to_bytes
from tf_autofuse.ir.text import dump, parse_fused, parse_graph
from tf_autofuse.ir.verify import verify_fused


@settings(max_examples=150, deadline=None)
@given(fused_graphs())
def test_text_and_bytes_round_trip(fused):
    verify_fused(fused)
    text, data = dump(fused), to_bytes(fused)
    assert parse_fused(text) == fused and dump(parse_fused(text)) == text
    assert parse_graph(dump(fused.graphs[0])) == fused.graphs[0]
    again = from_bytes(data)
    assert again == fused and to_bytes(again) == data and dump(again) == text


def meaning(fused, arrays):
    """The outputs element by element of a broadcast, without strides: numpy's own broadcasting over the node
    list."""
    from tf_autofuse.ops.numpy_handler import evaluate_call

    graph, found, outputs = fused.graphs[0], {}, {}
    for node in graph.nodes:
        sources = [found[r.node] for r in node.inputs]
        if node.type == "Data":
            found[node.name] = arrays[node.attr("index")]
        elif node.type == "Scalar":
            found[node.name] = np.array([node.attr("value")], node.y.dtype.numpy)
        elif node.type in ("Load", "Broadcast", "Store"):
            found[node.name] = sources[0]
        elif node.type == "Output":
            outputs[node.attr("index")] = sources[0]
        else:
            dtypes = [graph.tensor(r).dtype for r in node.inputs]
            found[node.name] = evaluate_call(node.type, sources, dtypes, dict(node.attrs), node.y.dtype)
    return [outputs[i] for i in range(len(fused.outputs))]


@settings(max_examples=150, deadline=None)
@given(fused_graphs(), st.lists(st.integers(0, 119), max_size=8), st.integers(0, 1000))
def test_evaluation_is_broadcasting(fused, numbers, seed):
    arrays = arrays_for(fused, dims_for(fused, numbers), seed)
    results = evaluate_fused(fused, arrays)
    for io, result, expected in zip(fused.outputs, results, meaning(fused, arrays)):
        expected = np.broadcast_to(expected, result.shape)
        assert result.dtype == io.dtype.numpy == expected.dtype
        assert result.tobytes() == np.ascontiguousarray(expected).tobytes() or (
            result.dtype.kind == "f"
            and np.array_equal(np.isnan(result), np.isnan(expected))
            and np.array_equal(result[~np.isnan(result)], expected[~np.isnan(expected)])
        )


def test_the_strategy_reaches_what_it_promises():
    """Drawn graphs cover static, symbolic and run-time broadcast dims, several outputs, and every node
    kind."""
    seen = set()

    @settings(max_examples=200, deadline=None, database=None, derandomize=True)
    @given(fused_graphs())
    def look(fused):
        graph = fused.graphs[0]
        seen.update(n.type for n in graph.nodes)
        seen.add("static" if not fused.sizes else "guarded" if fused.guards else "symbolic")
        seen.add("outputs %d" % min(len(fused.outputs), 2))

    look()
    assert seen >= {
        "static",
        "symbolic",
        "guarded",
        "outputs 1",
        "outputs 2",
        "Cast",
        "Where",
        "Broadcast",
        "Scalar",
        "Add",
        "Abs",
        "Gt",
    }
