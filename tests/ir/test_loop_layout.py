"""Common loop axes: refinements against brute force on index maps."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tf_autofuse.ir.dtypes import FLOAT32
from tf_autofuse.ir.loop_ir import Load, LoopBuilder, Store
from tf_autofuse.ir.loop_layout import NoCommonAxes, element_count, extents, layout, regroups
from tf_autofuse.symbolic.size import evaluate, symbol


def chain_of(shapes, load_dims=None):
    """A tensor of the last shape, computed and viewed through all shapes up to the first, which is stored."""
    b = LoopBuilder()
    expr = b.call("Neg", [b.load((0, 0), FLOAT32, load_dims or shapes[-1])], FLOAT32, shapes[-1])
    for shape in reversed(shapes[:-1]):
        expr = b.call("Neg", [b.view(expr, shape)], FLOAT32, shape)
    return expr


def load_spots(placed):
    return [s for s in placed.spots if isinstance(s.expr, Load)]


def gathered(placed, spot, source, values=None):
    """What the Load gives over the loop axes, by its strides."""
    sizes = [evaluate(s, values or {}) for s in placed.sizes]
    strides = [0 if s is None else evaluate(s, values or {}) for s in placed.load_strides(spot)]
    index = np.zeros(sizes, int)
    for i, (size, stride) in enumerate(zip(sizes, strides)):
        index += (np.arange(size) * stride).reshape([-1 if j == i else 1 for j in range(len(sizes))])
    return source.reshape(-1)[index] if source.size else np.empty(sizes)


factors = st.lists(st.sampled_from((1, 2, 3, 4)), min_size=1, max_size=5)


def regrouped(axes, cuts):
    """The shape that merges axes between cuts."""
    shape, current = [], 1
    for axis, cut in zip(axes, cuts):
        current *= axis
        if cut:
            shape.append(current)
            current = 1
    return tuple(shape + [current])


@settings(max_examples=200, deadline=None, derandomize=True)
@given(factors, st.lists(st.lists(st.booleans(), min_size=5, max_size=5), min_size=2, max_size=4))
def test_views_that_merge_common_axes(axes, cuts):
    """Shapes that all merge the same fine axes always have a common refinement, and nothing moves."""
    shapes = [regrouped(axes, c) for c in cuts]
    placed = layout([Store((1, 0), chain_of(shapes))])
    source = np.arange(int(np.prod(axes)))
    (spot,) = load_spots(placed)
    np.testing.assert_array_equal(gathered(placed, spot, source).reshape(-1), source)
    assert len(placed.sizes) <= max(1, len([a for a in axes if a != 1]))


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from((2, 3, 4, 6, 12)), min_size=1, max_size=3), st.data())
def test_any_view_is_right_or_refused(shape, data):
    count = int(np.prod(shape))
    divisors = [d for d in range(1, count + 1) if count % d == 0]
    first = data.draw(st.sampled_from(divisors))
    other = (first, count // first)
    try:
        placed = layout([Store((1, 0), chain_of([other, tuple(shape)]))])
    except NoCommonAxes as error:
        assert str(first) in error.reason
        boundaries = {int(np.prod(shape[i:])) for i in range(len(shape))} | {count // first}
        ordered = sorted(boundaries)
        assert any(b % a for a, b in zip(ordered, ordered[1:])), "a refinement exists"
        return
    (spot,) = load_spots(placed)
    np.testing.assert_array_equal(gathered(placed, spot, np.arange(count)).reshape(-1), np.arange(count))


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(st.sampled_from((1, 2, 3, 5)), st.booleans(), st.booleans()), min_size=1, max_size=4)
)
def test_broadcasting(dims):
    """Two operands whose dims are dropped to 1 here and there: loads gather what numpy broadcasts."""
    shapes = [tuple(d if keep[i] else 1 for d, *keep in dims) for i in range(2)]
    out = np.broadcast(*[np.empty(s) for s in shapes]).shape
    b = LoopBuilder()
    loads = [b.load((i, 0), FLOAT32, s) for i, s in enumerate(shapes)]
    placed = layout([Store((2, 0), b.call("Add", loads, FLOAT32, out))])
    for spot in load_spots(placed):
        source = np.arange(int(np.prod(spot.expr.dims))).reshape(spot.expr.dims)
        np.testing.assert_array_equal(
            gathered(placed, spot, source).reshape(out), np.broadcast_to(source, out)
        )


def test_a_dim_that_may_be_broadcast_has_a_run_time_stride():
    a, b_dim, out = symbol("a"), symbol("b"), symbol("c")
    b = LoopBuilder()
    loads = [b.load((i, 0), FLOAT32, (d, 4)) for i, d in enumerate((a, b_dim))]
    placed = layout([Store((2, 0), b.call("Add", loads, FLOAT32, (out, 4)))])
    for values in ({"a": 1, "b": 5, "c": 5}, {"a": 5, "b": 5, "c": 5}, {"a": 5, "b": 1, "c": 5}):
        for spot, name in zip(load_spots(placed), "ab"):
            source = np.arange(values[name] * 4).reshape(-1, 4)
            np.testing.assert_array_equal(
                gathered(placed, spot, source, values), np.broadcast_to(source, (5, 4))
            )


def test_stores_share_axes_or_are_refused():
    b = LoopBuilder()
    x = b.load((0, 0), FLOAT32, (2, 3, 4))
    flat = b.view(b.call("Neg", [x], FLOAT32, (2, 3, 4)), (6, 4))
    placed = layout([Store((1, 0), flat), Store((2, 0), b.call("Abs", [x], FLOAT32, (2, 3, 4)))])
    assert placed.sizes == (2, 3, 4)
    small = b.call("Abs", [b.load((3, 0), FLOAT32, (4,))], FLOAT32, (4,))
    with pytest.raises(NoCommonAxes, match="different extents"):
        layout([Store((1, 0), flat), Store((2, 0), small)])


def test_rank_0_has_one_axis():
    b = LoopBuilder()
    placed = layout([Store((1, 0), b.call("Neg", [b.load((0, 0), FLOAT32, ())], FLOAT32, ()))])
    assert placed.sizes == (1,)


def test_shape_predicates():
    s = symbol("s")
    assert not regroups((1, s, 4), (s, 1, 4)) and regroups((2, 4), (8,)) and regroups((2, 4), (4, 2))
    assert extents((1, s, 1, 4)) == (s, 4)
    assert element_count((s, 4)) == s * 4
