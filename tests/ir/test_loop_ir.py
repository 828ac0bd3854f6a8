"""Loop expressions: what the constructors make of views and casts, rebuilding, and the readers of a body."""

import pytest

from tf_autofuse.ir.dtypes import BFLOAT16, FLOAT16, FLOAT32, INT32
from tf_autofuse.ir.loop_ir import (
    CONVERT,
    DEMOTE,
    NARROW,
    PROMOTE,
    USER,
    WIDEN,
    Broadcast,
    Cast,
    Constant,
    Load,
    LoopBuilder,
    Store,
    constant_of,
    loads_of,
    loop_size,
    reachable,
    rebuild,
    round_to,
    to_text,
    views_only,
)
from tf_autofuse.symbolic.size import symbol


@pytest.fixture
def b():
    return LoopBuilder()


def half(b, tensor=(0, 0)):
    return b.load(tensor, FLOAT16, (2, 4))


def wide(b, tensor=(1, 0)):
    return b.load(tensor, FLOAT32, (2, 4))


def test_virtual_casts_cancel(b):
    x, y = half(b), wide(b)
    assert b.cast(b.cast(y, FLOAT16, DEMOTE), FLOAT32, PROMOTE) is y
    assert b.cast(b.cast(x, FLOAT32, PROMOTE), FLOAT16, DEMOTE) is x
    assert b.cast(b.cast(x, FLOAT32, WIDEN), FLOAT16, NARROW) is x


def test_casts_that_round_stay(b):
    y = wide(b)
    narrow = b.cast(y, FLOAT16, NARROW)
    assert b.cast(narrow, FLOAT32, WIDEN).args[0] is narrow
    assert b.cast(b.cast(y, FLOAT16, USER), FLOAT32, PROMOTE).args[0].role == USER
    assert b.cast(b.cast(y, FLOAT16, CONVERT), FLOAT32, PROMOTE).args[0].role == CONVERT
    assert b.cast(b.cast(y, FLOAT16, DEMOTE), FLOAT32, USER).args[0].role == DEMOTE


def test_a_user_cast_reads_what_was_widened(b):
    x = half(b)
    assert b.cast(b.cast(x, FLOAT32, WIDEN), INT32, USER).args[0] is x
    assert b.cast(b.cast(x, FLOAT32, WIDEN), FLOAT16, USER) is x


def test_constants_are_cast_at_once(b):
    c = b.constant(0.1, FLOAT32)
    narrow = b.cast(c, FLOAT16, NARROW)
    assert isinstance(narrow, Constant) and narrow.value == 0.0999755859375
    assert constant_of(b.cast(b.broadcast(c, (3,)), FLOAT16, NARROW)).value == 0.0999755859375


def test_views_of_loads_are_loads_and_virtual_casts_stay_outside(b):
    x = half(b)
    assert isinstance(b.view(x, (8,)), Load)
    promoted = b.view(b.cast(x, FLOAT32, PROMOTE), (8,))
    assert isinstance(promoted, Cast) and promoted.dims == (8,) and isinstance(promoted.args[0], Load)
    demoted = b.view(b.cast(b.call("Abs", [wide(b)], FLOAT32, (2, 4)), FLOAT16, DEMOTE), (8,))
    assert (
        b.cast(demoted, FLOAT32, PROMOTE).dims == (8,) and b.cast(demoted, FLOAT32, PROMOTE).dtype is FLOAT32
    )
    assert b.view(x, (2, 4)) is x
    assert b.view(b.view(b.call("Abs", [wide(b)], FLOAT32, (2, 4)), (8,)), (2, 4)).dims == (2, 4)


def test_rounding():
    assert round_to(0.1, FLOAT16) == 0.0999755859375
    assert round_to(65520.0, FLOAT16) == float("inf") and round_to(65519.0, FLOAT16) == 65504.0
    assert round_to(1 + 2.0**-8, BFLOAT16) == 1.0 and round_to(1 + 3 * 2.0**-8, BFLOAT16) == 1 + 2.0**-6
    assert str(round_to(float("nan"), BFLOAT16)) == "nan"
    with pytest.raises(ValueError):
        round_to(1.0, INT32)


def test_readers_of_a_body(b):
    x, y = wide(b), wide(b, (2, 0))
    total = b.call("Add", [b.cast(b.cast(x, FLOAT16, USER), FLOAT32, PROMOTE), y], FLOAT32, (2, 4))
    assert loads_of([total]) == {(1, 0), (2, 0)}
    assert loop_size([total]) == 2
    assert [e.index for e in reachable([total, x])] == sorted(e.index for e in reachable([total]))


def test_rebuild_puts_producers_in_and_cancels_at_the_seam(b):
    """t = demote(abs(promote(a))); the consumer loads t, flattened, and promotes it."""
    made = b.call("Abs", [b.cast(half(b), FLOAT32, PROMOTE)], FLOAT32, (2, 4))
    t = b.cast(made, FLOAT16, DEMOTE)
    reads = b.cast(b.load((5, 0), FLOAT16, (8,)), FLOAT32, PROMOTE)
    out = b.call("Neg", [reads], FLOAT32, (8,))
    (apart,) = rebuild([Store((6, 0), out)], {})
    assert loads_of([apart.expr]) == {(5, 0)}
    (store,) = rebuild([Store((6, 0), out)], {(5, 0): t})
    assert to_text(store.expr) == "\n".join(
        [
            "%0: float16[2, 4] = Load t0:0",
            "%1: float32[2, 4] = Cast(promote) %0",
            "%2: float32[2, 4] = Abs %1",
            "%3: float32[8] = View %2",
            "%4: float32[8] = Neg %3",
        ]
    )


def test_rebuild_makes_equal_expressions_one_but_for_signed_zeros(b):
    x = wide(b)
    twice = [b.call("Neg", [x], FLOAT32, (2, 4)) for _ in range(2)]
    (store,) = rebuild([Store((3, 0), b.call("Add", twice, FLOAT32, (2, 4)))], {})
    assert loop_size([store.expr]) == 2
    zeros = [b.call("Add", [x, b.constant(z, FLOAT32)], FLOAT32, (2, 4)) for z in (0.0, -0.0)]
    (store,) = rebuild([Store((3, 0), b.call("Add", zeros, FLOAT32, (2, 4)))], {})
    assert loop_size([store.expr]) == 3


def test_rebuild_handles_deep_bodies(b):
    expr = wide(b)
    for _ in range(5000):
        expr = b.call("Neg", [expr], FLOAT32, (2, 4))
    (store,) = rebuild([Store((3, 0), expr)], {})
    assert loop_size([store.expr]) == 5000


def test_a_repeated_part_of_one_element_is_a_broadcast(b):
    x, y = (b.view(wide(b, (n, 0)), (1, 8)) for n in (1, 2))
    row = b.concat([x, x, x], 0)
    assert type(row) is Broadcast and row.args == (x,) and row.dims == (3, 8)
    mixed = b.concat([x, x, y, x], 0)
    assert [type(a) for a in mixed.args] == [Broadcast, Load, Load] and mixed.dims == (4, 8)
    assert mixed.args[0].dims == (2, 8) and mixed.args[1] is y and mixed.args[2] is x


def test_a_repeated_part_of_several_elements_is_none(b):
    x = wide(b)
    assert b.concat([x, x], 0).args == (x, x)
    unknown = b.load((3, 0), FLOAT32, (symbol("d0"), 4))
    assert b.concat([unknown, unknown], 0).args == (unknown, unknown)


def test_views_only(b):
    x, h = wide(b), half(b)
    wider = b.cast(h, FLOAT32, PROMOTE)
    call = b.call("Neg", (x,), FLOAT32, x.dims)
    for arg in (x, wider, call):
        assert views_only(b.view(arg, (8,)), arg) and views_only(arg, arg)
        assert views_only(b.permute(b.view(arg, (2, 1, 4)), (1, 0, 2)), arg)
        assert not views_only(b.permute(arg, (1, 0)), arg)
        assert not views_only(b.broadcast(arg, (3, 2, 4)), arg)
        assert not views_only(b.slice(arg, (0, 1), (2, 3)), arg)
    assert not views_only(wide(b, (2, 0)), x) and not views_only(call, x)
    assert not views_only(b.cast(x, FLOAT16, USER), x)
