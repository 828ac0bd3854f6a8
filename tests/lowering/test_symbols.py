"""SymbolTable and RegionSizes: sizes of a graph, and how a region names them."""

import pytest

from tf_autofuse.lowering.symbols import DEFAULT_HINT, RegionSizes, ShapesDiffer, SymbolTable, UnreadableSize
from tf_autofuse.symbolic.guards import Guard, InputDim, bind
from tf_autofuse.symbolic.size import evaluate, symbol


def table(*hints):
    return SymbolTable([{"origin": "x:0", "dim": 0, "hint": h} for h in hints])


def test_known_shapes_stay_plain_integers():
    assert table().dims((3, 4)) == (3, 4) and table().dims(()) == ()


def test_equal_dims_are_the_same_symbol():
    t = table()
    assert t.dims((-1, 4))[0] == t.dims((-1,))[0] == symbol("d0")
    assert t.dims((-2,))[0] != t.dims((-1,))[0]


def test_bound_dims_are_what_they_are_bound_to():
    t = table()
    t.bind(1, t.size(0) * 4)
    assert t.dims((-2, 3)) == (symbol("d0") * 4, 3)


@pytest.mark.parametrize("a, b, size", [(3, 3, 3), (3, 1, 3), (1, 3, 3), (0, 1, 0), (1, 1, 1)])
def test_static_broadcast(a, b, size):
    assert table().broadcast(a, b) == (size, None)


def test_static_dims_that_differ():
    with pytest.raises(ShapesDiffer, match="dims 3 and 4 do not broadcast"):
        table().broadcast(3, 4)


def test_symbolic_broadcast():
    t = table()
    a, b, c = symbol("d0"), symbol("d1"), symbol("d2")
    assert (
        t.broadcast(a, a) == (a, None) and t.broadcast(a, 1) == (a, None) and t.broadcast(1, a) == (a, None)
    )
    assert t.broadcast(a, 4) == (4, Guard("broadcast", a, 4))
    ab, guard = t.broadcast(a, b)
    assert guard == Guard("broadcast", a, b) and set(t.operands_of(ab)) == {a, b}
    assert t.broadcast(b, a)[0] == ab
    assert t.broadcast(ab, a)[0] == ab and t.broadcast(b, ab)[0] == ab
    abc = t.broadcast(ab, c)[0]
    assert t.broadcast(t.broadcast(b, c)[0], a)[0] == abc and set(t.operands_of(abc)) == {a, b, c}


def test_estimates_use_hints():
    t = table(5, None)
    a, b = symbol("d0"), symbol("d1")
    assert t.estimate(a * 2) == 10 and t.estimate(b) == DEFAULT_HINT and t.estimate(7) == 7
    assert t.estimate(t.broadcast(a, b)[0]) == DEFAULT_HINT


def test_a_region_numbers_its_symbols_by_its_inputs():
    sizes = RegionSizes(table(5, 7), [(symbol("d1"), 4), (symbol("d0"), symbol("d1"))])
    assert [(v.name, v.source, v.hint) for v in sizes.variables] == [
        ("s0", InputDim(0, 0), 7),
        ("s1", InputDim(1, 0), 5),
    ]
    assert sizes.local(symbol("d0") * symbol("d1")) == symbol("s0") * symbol("s1")
    assert sizes.local_dims((3, symbol("d0"))) == (3, symbol("s1"))


def test_a_size_that_no_input_tells():
    sizes = RegionSizes(table(), [(symbol("d0"),)])
    with pytest.raises(UnreadableSize, match="d7") as caught:
        sizes.local(symbol("d7") + symbol("d0"))
    assert caught.value.symbols == {"d7"}


def test_a_broadcast_is_computed_from_its_operands():
    t = table()
    ab = t.broadcast(symbol("d0"), symbol("d1"))[0]
    sizes = RegionSizes(t, [(symbol("d0"),), (symbol("d1"),)])
    assert sizes.local(ab) == symbol("s2")
    assert bind(tuple(sizes.variables), ((1,), (6,)))["s2"] == 6
    half = RegionSizes(t, [(symbol("d0"),)])
    with pytest.raises(UnreadableSize):
        half.local(ab)


def test_a_broadcast_that_an_input_tells_is_checked_where_it_can_be():
    t = table()
    ab = t.broadcast(symbol("d0"), symbol("d1"))[0]
    alone = RegionSizes(t, [(ab,)])
    assert not alone.guards and alone.local(ab) == symbol("s0")
    checked = RegionSizes(t, [(ab,), (symbol("d0"),), (symbol("d1"),)])
    (guard,) = checked.guards
    assert guard.holds({"s0": 5, "s1": 1, "s2": 5}) and not guard.holds({"s0": 4, "s1": 1, "s2": 5})


def test_an_input_dim_that_is_a_multiple_is_solved_and_checked():
    sizes = RegionSizes(table(), [(symbol("d0") * 8,)])
    values = dict(bind(tuple(sizes.variables), ((24,),)))
    assert evaluate(sizes.local(symbol("d0")), values) == 3
    assert all(g.holds(values) for g in sizes.guards)
    odd = dict(bind(tuple(sizes.variables), ((25,),)))
    assert not all(g.holds(odd) for g in sizes.guards)


def test_an_input_dim_that_is_a_product_stands_for_itself():
    d0, d1 = symbol("d0"), symbol("d1")
    sizes = RegionSizes(table(), [(d0 * d1,)])
    assert sizes.local(d0 * d1) == symbol("s0")
    with pytest.raises(UnreadableSize):
        sizes.local(d0)
    told = RegionSizes(table(), [(d0 * d1,), (d0, d1)])
    assert told.local(d0 * d1) == symbol("s0") * symbol("s1") and len(told.variables) == 2


def test_a_broadcast_is_computed_from_a_broadcast_that_an_input_tells():
    t = table()
    ab = t.broadcast(symbol("d0"), symbol("d1"))[0]
    abc = t.broadcast(ab, symbol("d2"))[0]
    assert t.ways_of(str(abc)) == ((symbol("d0"), symbol("d1"), symbol("d2")), (ab, symbol("d2")))
    sizes = RegionSizes(t, [(ab,), (symbol("d2"),)])
    assert sizes.local(abc) == symbol("s2")
    assert bind(tuple(sizes.variables), ((1,), (6,)))["s2"] == 6
    for half in ((ab,), (symbol("d2"),), (symbol("d0"), symbol("d2"))):
        with pytest.raises(UnreadableSize):
            RegionSizes(t, [half]).local(abc)
