"""Dumps: golden texts, reading back, and errors that name the line."""
import math
from dataclasses import replace

import pytest

from tests.ir import samples
from tf_autofuse.ir.asc_graph import AscNode, TensorAttr, TensorRef, attrs
from tf_autofuse.ir.dtypes import FLOAT32
from tf_autofuse.ir.text import ParseError, dump, parse_fused, parse_graph
from tf_autofuse.ir.verify import VerifyError, verify_hint
from tf_autofuse.symbolic.size import symbol


@pytest.mark.parametrize("name", sorted(samples.ALL))
def test_fused_graphs(name, golden):
    fused = samples.ALL[name]()
    golden(name + ".txt", dump(fused))
    assert parse_fused(dump(fused)) == fused


def test_impl_graphs(golden):
    golden("impl_example.txt", dump(samples.impl_example()))
    with pytest.raises(ParseError, match="only HintGraphs"):
        parse_graph(dump(samples.impl_example()))


def test_a_graph_written_by_hand():
    graph = parse_graph(
        """
        # a test's input
        graph by_hand (hint)
          axes
            a: 4
            b: 8   # columns
          nodes
            %x: float32 = Data(index=0)
            %l: float32[a, 1] = Load(%x)  strides (2, 0)
            %w: float32[a, b] = Broadcast(%l, axis=b)   # not an origin
            %s: float32[a, b] = Store(%w)  strides (8, 1)   # from p/q, r
            %o: float32 = Output(%s, index=0)
        """
    )
    verify_hint(graph)
    assert graph.node("w").y.strides == (8, 1) and graph.node("w").attr("axis") == 1
    assert graph.node("s").origin == ("p/q", "r") and graph.node("w").origin == ()


def test_broken_graphs_print_and_read_back():
    graph = samples.public_example().graphs[0]
    nodes = [
        replace(n, outputs=(replace(n.y, repeats=(3, symbol("k") * 2), strides=(7, 7)),))
        if n.name == "abs_0"
        else n
        for n in graph.nodes
    ]
    broken = graph.with_nodes(nodes)
    line = "    %abs_0: float32[=3, =2*k] = Abs(%load_0)  strides (7, 7)  # from Abs\n"
    assert line in dump(broken)
    assert parse_graph(dump(broken)) == broken
    with pytest.raises(VerifyError):
        verify_hint(broken)


def test_every_kind_of_attribute_reads_back():
    values = attrs(
        a=1,
        b=-2.5,
        c=True,
        d='x, "y" (z) # {',
        e=symbol("s0") + 1,
        f=FLOAT32,
        g=(1, (2.0, "(")),
        h=(),
        i=float("-inf"),
        j=1e300,
        k=-0.0,
        l=2**64 - 1,
        m=1e-7,
        n=("x",),
    )
    graph = samples.fill().graphs[0]
    node = AscNode(
        "n",
        "Thing",
        (TensorRef("load_0"), TensorRef("load_0", 3)),
        (replace(graph.node("neg_0").y), TensorAttr(FLOAT32)),
        values,
        graph.node("neg_0").sched,
    )
    changed = graph.with_nodes(graph.nodes + (node,))
    again = parse_graph(dump(changed))
    assert again == changed
    for (_, x), (_, y) in zip(again.node("n").attrs, values):
        assert type(x) is type(y) and repr(x) == repr(y)


def test_nan_reads_back():
    graph = samples.fill().graphs[1]
    changed = graph.with_nodes(n.with_attrs(value=math.nan) if n.type == "Scalar" else n for n in graph.nodes)
    assert math.isnan(parse_graph(dump(changed)).node("scalar_0").attr("value"))


@pytest.mark.parametrize(
    "line, text",
    [
        ("%x: float33 = Data(index=0)", "unknown dtype 'float33'"),
        ("%x: float32 = Data(index=0", "not closed"),
        ("%x float32 = Data(index=0)", "not a node"),
        ("%x: float32 = Data(index=what)", "not an attribute value"),
        ("%x: float32[b] = Load(%y)", "entry b stands where axis a belongs"),
        ("%x: float32[a, 1] = Load(%y)", "a view of 2 entries over 1 axes"),
        ("%x: float32[a] = Load(%y)  strides (f(2))", "unknown function f"),
        ("%x: float32[a] = Load(%y)  stride (2)", "unexpected 'stride (2)'"),
    ],
)
def test_errors_name_the_line(line, text):
    with pytest.raises(ParseError) as caught:
        parse_graph("graph g (hint)\n  axes\n    a: 4\n  nodes\n    " + line)
    assert str(caught.value).startswith("line 5, ") and text in str(caught.value)


@pytest.mark.parametrize(
    "text, found",
    [
        ("", "expected graph"),
        ("graph g (hint)\n  what\n    x", "line 2, 'what': unknown section"),
        ("graph g (hint)\n    a: 4", "line 2"),
        ("graph g (hint)\n  axes\n    a: 4\nrest", "text after the graph"),
    ],
)
def test_other_text_is_refused(text, found):
    with pytest.raises(ParseError) as caught:
        parse_graph(text)
    assert found in str(caught.value)
