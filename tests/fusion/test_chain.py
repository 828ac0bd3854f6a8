"""can_chain: which nests that share no loops may be one op, and in which order it runs them."""

import pytest

from tests.fusion.test_can_fuse import nests_of
from tests.graphs import GraphBuilder
from tf_autofuse.fusion import can_fuse as rules, reasons
from tf_autofuse.fusion.can_fuse import can_chain, can_fuse
from tf_autofuse.fusion.fuse import fuse
from tf_autofuse.fusion.nest import bodies_of, chain, handed_on, join, outputs_of
from tf_autofuse.ir.dtypes import FLOAT32


def both_axes():
    g = GraphBuilder()
    x = g.op("Relu", g.arg("x", FLOAT32, (4, 8)), name="relu")
    g.ret(g.reduce("Sum", x, [0], name="down"), g.reduce("Sum", x, [1], name="across"))
    return g


def verdict(g, a, b, **kw):
    nests, context = nests_of(g, **kw)
    why = can_fuse(nests[a], nests[b], context)
    return why, can_chain(nests[a], nests[b], why, context)


def fused(g, **kw):
    nests, context = nests_of(g, **kw)
    return fuse(list(nests.values()), context)


def test_one_op_of_two_nests():
    g = both_axes()
    (nest,) = fused(g).nests
    assert [[g.names[n] for n in group] for group in nest.groups] == [["relu", "down"], ["across"]]
    assert [g.names[store.tensor[0]] for store in handed_on(nest)] == ["relu"]
    bodies = bodies_of(nest, outputs_of(nest, g.view().consumers, g.view().inputs))
    stored = [[g.names[s.tensor[0]] for s in body] for body in bodies]
    assert stored == [["relu", "down"], ["across"]]


def test_side_by_side_gains_nothing():
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (4, 8))
    g.ret(g.reduce("Sum", x, [0], name="down"), g.reduce("Sum", x, [1], name="across"))
    why, found = verdict(g, "down", "across")
    assert not found.ok and found is why and found.code is reasons.AXES


def test_without_a_reduction_nests_stay_apart():
    g = GraphBuilder()
    x = g.op("Relu", g.arg("x", FLOAT32, (4,)), name="relu")
    g.ret(x, g.op("Add", x, g.arg("y", FLOAT32, (3, 4)), name="wide"))
    why, found = verdict(g, "relu", "wide")
    assert not found.ok and found is why


@pytest.mark.parametrize(
    "code, change",
    [
        (reasons.PEAK_MEMORY, {"MAX_WORKSPACE_BYTES": 3}),
        (reasons.TOO_MANY_NESTS, {"MAX_CHAINED": 1}),
        (reasons.TOO_MANY_INPUTS, {"MAX_INPUTS": 0}),
    ],
)
def test_limits(monkeypatch, code, change):
    nests, context = nests_of(both_axes())
    (joined, across), why = fused_but(nests, context)
    assert can_chain(joined, across, why, context).ok
    for name, value in change.items():
        monkeypatch.setattr(rules, name, value)
    assert can_chain(joined, across, why, context).code is code


def fused_but(nests, context):
    """relu with the sum along the rows, and the sum along the columns; why these do not share loops."""
    joined = join(nests["relu"], nests["down"], context.inputs)
    context.graph.join(nests["relu"].key, nests["down"].key, joined.key)
    why = can_fuse(joined, nests["across"], context)
    assert why.code is reasons.AXES
    return (joined, nests["across"]), why


def test_a_path_outside_keeps_two_ops():
    g = GraphBuilder()
    x = g.op("Relu", g.arg("x", FLOAT32, (4, 8)), name="relu")
    down = g.reduce("Sum", x, [0], name="down")
    g.ret(g.reduce("Sum", g.op("Add", x, g.outside(down)), [1], name="across"))
    found = fused(g)
    assert len(found.nests) == 2 and reasons.CYCLE in {r.verdict.code for r in found.refused}


def test_what_is_read_runs_first():
    """The nest with the greatest node runs in the middle."""
    g = GraphBuilder()
    x = g.op("Relu", g.arg("x", FLOAT32, (4, 8)), name="relu")
    early = g.reduce("Max", x, [1], name="early")
    soft = g.op("Sub", x, g.reduce("Max", x, [0], True, name="max"), name="sub")
    g.ret(early, g.reduce("Sum", soft, [1], name="last"))
    for nest in fused(g).nests:
        seen = set()
        for group in nest.groups:
            boxes = [box for box in nest.boxes if box.node in group]
            own = {box.node for box in boxes}
            made = {box.node for box in nest.boxes}
            assert all(t[0] in seen | own for box in boxes for t in box.loads if t[0] in made)
            seen |= own
    assert any(nest.groups for nest in fused(g).nests)
    nests, context = nests_of(g)
    assert chain(nests["last"], nests["relu"], context.inputs).groups[0][-1] == nests["relu"].key
