"""GraphView: what it derives from the columns, and what it refuses."""

import pytest

from tests.graphs import GraphBuilder, Tensor
from tf_autofuse.ir.dtypes import FLOAT32, INT32
from tf_autofuse.lowering.graph_view import GraphView


def graph():
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (4,))
    a = g.op("Mul", x, x, attrs={"alpha": 0.5, "format": b"NHWC"})
    g.ret(g.op("Neg", a, control=(x,)), g.op("Abs", a))
    return g


def test_consumers_are_listed_once_and_in_order():
    view = graph().view()
    assert view.consumers[0] == (1,)
    assert view.consumers[1] == tuple(n for n in range(len(view)) if (1, 0) in view.inputs[n])
    assert view.control_outputs[0] == (view.names.index("neg_0"),)


def test_a_node_as_lowerings_see_it():
    node = graph().view().node(1)
    assert (node.op, node.name, node.in_dtypes, node.out_dtypes) == (
        "Mul",
        "mul_0",
        (FLOAT32,) * 2,
        (FLOAT32,),
    )
    assert node.attr("alpha") == 0.5 and node.attr("format") == "NHWC" and node.attr("none", 3) == 3


def test_dtypes_outside_the_table_are_none():
    g = GraphBuilder()
    g.node("_Arg", (), ((7, ()), (INT32.tf, ())))
    assert g.view().node(0).out_dtypes == (None, INT32)


def test_back_edges():
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (4,))
    merge = Tensor(g.node("Merge", (x, x), ((1, (4,)), (3, ()))))
    back = g.op("NextIteration", merge)
    view = g.view()
    assert view.is_back_edge(back.node, merge.node) and not view.is_back_edge(x.node, merge.node)


@pytest.mark.parametrize("broken", [{"names": []}, {"ops": None}, {"frames": ["", ""]}])
def test_incomplete_columns_are_refused(broken):
    columns = dict(graph().columns(), **broken)
    with pytest.raises(ValueError, match="column"):
        GraphView.from_columns(columns)
