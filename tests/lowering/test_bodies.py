"""Regions that compute the same share a body, and only those."""
import itertools

import pytest

from tests.graphs import GraphBuilder
from tf_autofuse.config import Config
from tf_autofuse.ir import proto
from tf_autofuse.ir.dtypes import FLOAT32, INT32
from tf_autofuse.lowering import bodies
from tf_autofuse.lowering.emit import Interface
from tf_autofuse.lowering.plan import plan
from tf_autofuse.lowering.symbols import SymbolTable
from tf_autofuse.symbolic.size import symbol


def chain(g, x, *, op="Add", value=0.5, flip=False, second="Relu", attrs=None):
    """x -> op with a constant -> second."""
    pair = (g.const(value, g.dtype(x)), x) if flip else (x, g.const(value, g.dtype(x)))
    return g.op(second, g.op(op, *pair), attrs=attrs)


def two(first, then):
    """The regions of two chains with an op between them that nothing fuses."""
    bodies.forget()
    g = GraphBuilder()
    y = first(g, g.arg("x", FLOAT32, ("b", 8)))
    g.ret(then(g, g.outside(y)))
    regions = plan(g.view(), CONFIG, "ascend").regions
    assert len(regions) == 2
    return regions


CONFIG = Config(precision_mode="must_keep_origin_dtype")


def test_equal_regions_share_a_body_and_keep_their_names():
    a, b = two(chain, chain)
    assert a.emitted.body is b.emitted.body
    assert (a.name, b.name) == ("autofuse_pointwise_0_Add_Relu", "autofuse_pointwise_1_Add_Relu")
    assert a.fused.origin == ("const_0", "add_0", "relu_0")
    assert b.fused.origin == ("const_1", "add_1", "relu_1")
    for region in (a, b):
        assert region.emitted.serialized == proto.to_bytes(region.fused)
        assert proto.from_bytes(region.emitted.serialized) == region.fused
        assert {o for n in region.fused.graphs[0].nodes for o in n.origin} <= set(region.fused.origin)
        assert region.fused.graphs[0].name == region.name


def test_what_is_shared_is_what_would_have_been_emitted(monkeypatch):
    def regions():
        bodies.forget()
        g = GraphBuilder()
        x = g.arg("x", FLOAT32, ("b", 8))
        for layer in range(3):
            row = g.arg("row%d" % layer, FLOAT32, (8,) if layer < 2 else ("c", 8))
            y = g.op("Mul", g.op("Add", x, row), g.const(0.25))
            x = g.outside(g.op("Maximum", y, g.op("Neg", y)))
            g.ret(y)
        return plan(g.view(), CONFIG, "ascend", shares=False).regions

    shared = regions()
    monkeypatch.setattr(bodies, "_key_of", lambda *_: None)
    alone = regions()
    assert len(shared) == 3 and [r.fused for r in shared] == [r.fused for r in alone]
    assert len({id(r.emitted.body) for r in shared}) == 2 and len({id(r.emitted.body) for r in alone}) == 3


@pytest.mark.parametrize("changes", [
    {"op": "Sub"}, {"value": 0.25}, {"value": -0.5}, {"second": "Abs"}, {"flip": True, "op": "Sub"},
], ids=str)
def test_another_computation_has_another_body(changes):
    a, b = two(chain, lambda g, x: chain(g, x, **changes))
    assert a.emitted.body is not b.emitted.body and a.emitted.body.digest != b.emitted.body.digest


def test_signed_zeros_differ():
    a, b = two(lambda g, x: chain(g, x, value=0.0), lambda g, x: chain(g, x, value=-0.0))
    assert a.emitted.body is not b.emitted.body


def test_attributes_count():
    def leaky(alpha):
        return lambda g, x: chain(g, x, second="LeakyRelu", attrs={"alpha": alpha})

    a, b = two(leaky(0.1), leaky(0.2))
    assert a.emitted.body is not b.emitted.body
    c, d = two(leaky(0.1), leaky(0.1))
    assert c.emitted.body is d.emitted.body


@pytest.mark.parametrize("dims", [("c", 8), (4, 8), ("b", 1), ("b", 8, 1), (8,)], ids=str)
def test_dims_count_but_not_how_run_time_dims_are_called(dims):
    bodies.forget()
    g = GraphBuilder()
    regions = []
    for i, d in enumerate((("b", 8), dims)):
        x = g.arg("x%d" % i, FLOAT32, d)
        g.ret(g.op("Relu", g.op("Add", x, g.const(1.0))))
    regions = plan(g.view(), CONFIG, "ascend").regions
    assert len(regions) == 2
    assert (regions[0].emitted.body is regions[1].emitted.body) == (dims == ("c", 8))


def test_dtypes_count():
    bodies.forget()
    g = GraphBuilder()
    for i, dtype in enumerate((FLOAT32, INT32)):
        x = g.arg("x%d" % i, dtype, ("b", 8))
        g.ret(g.op("Abs", g.op("Neg", x)))
    a, b = plan(g.view(), CONFIG, "ascend").regions
    assert a.emitted.body is not b.emitted.body


def test_which_dims_are_equal_counts():
    """a + b with both dims the same run-time dim needs no guard, with two dims it does."""
    bodies.forget()
    g = GraphBuilder()
    for i, other in enumerate(("b", "c")):
        x, y = g.arg("x%d" % i, FLOAT32, ("b", 8)), g.arg("y%d" % i, FLOAT32, (other, 8))
        g.ret(g.op("Relu", g.op("Add", x, y)))
    a, b = plan(g.view(), CONFIG, "ascend").regions
    assert a.emitted.body is not b.emitted.body and not a.fused.guards and b.fused.guards


def test_the_reduced_axis_counts():
    bodies.forget()
    g = GraphBuilder()
    for i, axis in enumerate((0, 1, 1)):
        x = g.arg("x%d" % i, FLOAT32, (8, 8))
        g.ret(g.op("Neg", g.reduce("Sum", g.op("Abs", x), [axis])))
    config = Config(precision_mode="must_keep_origin_dtype", enable_pass=("reduce",))
    a, b, c = [r.emitted.body for r in plan(g.view(), config, "host").regions]
    assert a is not b and a.digest != b.digest and b is c


def test_how_a_broadcast_dim_was_made_counts():
    """The key tells which sizes are enough to compute a broadcast dim: without that, a region whose inputs
    tell it would share a body with one whose inputs do not."""
    def key(pairs):
        table = SymbolTable([])
        for a, b in pairs:
            made = table.broadcast(a, b)[0]
        keys = bodies._Keys(Interface((), (), ()), table)
        keys.sizes((made,))
        return keys.described()

    d0, d1, d2 = (symbol("d%d" % i) for i in range(3))
    b0 = SymbolTable([]).broadcast(d0, d1)[0]
    alone = [(d0, d1), (b0, d2)]
    assert key(alone) == key(alone)
    other = [(d1, d2), (d0, b0)]
    assert key(alone) != key(other)


def test_which_outputs_are_read_counts():
    bodies.forget()
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, ("b", 8))
    for read in (False, True):
        y = g.op("Add", x, g.const(1.0))
        z = g.op("Relu", y)
        x = g.outside(z, *([y] if read else []))
    g.ret(x)
    a, b = plan(g.view(), CONFIG, "ascend").regions
    assert a.emitted.body is not b.emitted.body and len(b.outputs) == 2


def test_unknown_values_are_emitted_anew():
    """What a key cannot express must not be taken for equal."""
    keys = bodies._Keys(Interface((), (), ()), None)
    for value in (object(), [1], {1: 2}, 1j):
        with pytest.raises(bodies._NoKey):
            keys.value(value)
    values = [1, True, 1.0, "1", 0.0, -0.0, None, (1,), (True,), FLOAT32]
    for (i, a), (j, b) in itertools.product(enumerate(values), repeat=2):
        assert (keys.value(a) == keys.value(b)) == (i == j), (a, b)
