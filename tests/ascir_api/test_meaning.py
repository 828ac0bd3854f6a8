"""Section 13 of the API and beyond: what a graph computes, against numpy, and its kernel on the twin."""

import numpy as np
import pytest

from tests.ascir_api.graphs import concatenated, fresh, pointwise, reduced, wrapped
from tf_autofuse import ascir_api
from tf_autofuse.ascir_api import functional as f
from tf_autofuse.ascir_api.convert import convert
from tf_autofuse.ascir_api.meanings import MEANINGS, REDUCTIONS
from tf_autofuse.ascir_api.operators_table import ROWS
from tf_autofuse.ascir_api.project_sizes import ConversionError
from tf_autofuse.ascir_api.running import prepared
from tf_autofuse.ir.verify import verify_fused

_X = np.array([[0.5, -1.5, 2.25], [-0.25, 3.0, -4.0]], np.float32)
_erf = np.vectorize(__import__("math").erf)


def erf(x):
    return _erf(x).astype(np.float32)


#: operator -> numpy, for one float32 input.
UNARY = {
    "Abs": np.abs,
    "Exp": np.exp,
    "Ln": np.log,
    "Sqrt": np.sqrt,
    "Rsqrt": lambda x: 1 / np.sqrt(x),
    "Erf": erf,
    "Reciprocal": lambda x: 1 / x,
    "Sign": np.sign,
    "Tanh": np.tanh,
    "Relu": lambda x: np.maximum(x, 0),
    "Neg": np.negative,
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Nop": lambda x: x,
    "RemovePad": lambda x: x,
    "Exp2": np.exp2,
    "Expm": np.expm1,
    "Log2": np.log2,
    "Log10": np.log10,
    "Log1p": np.log1p,
    "Floor": np.floor,
    "Ceil": np.ceil,
    "Round": np.round,
    "Sin": np.sin,
    "Cos": np.cos,
    "Cosh": np.cosh,
    "Asin": np.arcsin,
    "Acos": np.arccos,
    "Atan": np.arctan,
    "Asinh": np.arcsinh,
    "Acosh": np.arccosh,
    "Atanh": np.arctanh,
    "Erfc": lambda x: 1 - erf(x),
    "Isnan": np.isnan,
    "IsInf": np.isinf,
    "IsFinite": np.isfinite,
    "Ceil2Int": np.ceil,
    "FloorToInt": np.floor,
    "Tan": np.tan,
    "Sinh": np.sinh,
    "Square": np.square,
    "Trunc": np.trunc,
    "RoundToInt": np.rint,
    "TruncToInt": np.trunc,
    "Gelu": lambda x: 0.5 * x * (1 + erf(x / np.sqrt(2))),
    "LogicalNot": np.logical_not,
}
BINARY = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
    "TrueDiv": np.divide,
    "Minimum": np.minimum,
    "Maximum": np.maximum,
    "Pow": np.power,
    "Atan2": np.arctan2,
    "Remainder": np.mod,
    "Mod": np.fmod,
    "Fmod": np.fmod,
    "FloorDiv": lambda a, b: np.floor(a / b),
    "TruncDiv": lambda a, b: np.trunc(a / b),
    "Ge": np.greater_equal,
    "Gt": np.greater,
    "Le": np.less_equal,
    "Lt": np.less,
    "Eq": np.equal,
    "Ne": np.not_equal,
    "LogicalOr": np.logical_or,
    "LogicalAnd": np.logical_and,
    "LogicalXor": np.logical_xor,
}
INTEGERS = {
    "BitwiseAnd": np.bitwise_and,
    "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor,
    "Xor": np.bitwise_xor,
    "LShift": np.left_shift,
    "RShift": np.right_shift,
}
OTHERS = {"BitwiseNot", "Select", "Where", "MaskedFill", "ClipByValue", "LeakyRelu", "Axpy", "Fma"}


def op_graph(ascir, name, dtypes, out_dtype=None, **attributes):
    """Operator `name` on tensors [2, 3] of these dtypes."""
    graph = fresh(ascir)
    axes = [graph.create_axis("z%d" % i, n) for i, n in enumerate((2, 3))]
    op = getattr(ascir.ops, name)("op")
    for port, dtype in zip(ROWS[name].inputs, dtypes):
        setattr(op, port.name, f.Load(graph, f.Data(graph, dtype=dtype), axis=axes))
    for key, value in attributes.items():
        setattr(op.attr.ir_attr, key, value)
    op.attr.sched.axis = op.y.axis = axes
    op.y.size, op.y.strides = [2, 3], [3, 1]
    if out_dtype is not None:
        op.y.dtype = out_dtype
    op.infer_dtype()
    f.Output(graph, f.Store(graph, op.y, axis=axes))
    return graph


def test_every_meaning_is_tested():
    assert set(UNARY) | set(BINARY) | set(INTEGERS) | OTHERS == set(MEANINGS) | {"Nop", "RemovePad"}


@pytest.mark.parametrize("name", sorted(UNARY))
def test_unary(ascir, on_5102, name):
    graph = op_graph(
        ascir, name, [0] if name != "LogicalNot" else [12], 3 if name.endswith("ToInt") else None
    )
    x = np.array([[0.5, -1.5, 2.25], [-0.25, np.inf, np.nan]], np.float32)
    x = x > 0 if name == "LogicalNot" else x
    x = _X if name.endswith("Int") or name == "Sign" else x
    with np.errstate(all="ignore"):
        expected = UNARY[name](x)
        (got,) = ascir_api.evaluate(graph, [x])
    if name.endswith("Int"):
        assert got.dtype == np.int32
    np.testing.assert_allclose(got.astype(np.float64), np.asarray(expected, np.float64), 2e-6, 1e-7)


@pytest.mark.parametrize("name", sorted(BINARY))
def test_binary(ascir, on_5102, name):
    graph = op_graph(ascir, name, [0, 0])
    other = np.array([[0.5, 2.0, -1.0], [-0.5, 0.75, 0.0]], np.float32)
    with np.errstate(all="ignore"):
        expected = BINARY[name](_X, other)
        (got,) = ascir_api.evaluate(graph, [_X, other])
    np.testing.assert_allclose(got.astype(np.float64), np.asarray(expected, np.float64), 2e-6, 1e-7)


@pytest.mark.parametrize("name", sorted(INTEGERS))
def test_integers(ascir, on_5102, name):
    dtype = ascir.dtypes.int16
    x = np.array([[5, -3, 100], [32767, -32768, 0]], np.int16)
    y = np.array([[1, 2, 3], [4, 0, 5]], np.int16)
    (got,) = ascir_api.evaluate(op_graph(ascir, name, [dtype, dtype]), [x, y])
    np.testing.assert_array_equal(got, INTEGERS[name](x, y))
    (got,) = ascir_api.evaluate(op_graph(ascir, "BitwiseNot", [dtype]), [x])
    np.testing.assert_array_equal(got, ~x)


def test_the_others(ascir):
    mask = np.array([[1, 0, 3], [0, 0, 255]], np.uint8)
    y = -_X
    for name in ("Select", "Where"):
        (got,) = ascir_api.evaluate(op_graph(ascir, name, [4, 0, 0]), [mask, _X, y])
        np.testing.assert_array_equal(got, np.where(mask, _X, y))
    (got,) = ascir_api.evaluate(op_graph(ascir, "MaskedFill", [0, 4, 0]), [_X, mask, y])
    np.testing.assert_array_equal(got, np.where(mask, y, _X))
    low, high = np.full_like(_X, -1), np.full_like(_X, 2)
    (got,) = ascir_api.evaluate(op_graph(ascir, "ClipByValue", [0, 0, 0]), [_X, low, high])
    np.testing.assert_array_equal(got, np.clip(_X, -1, 2))
    (got,) = ascir_api.evaluate(op_graph(ascir, "LeakyRelu", [0], negative_slope=0.25), [_X])
    np.testing.assert_array_equal(got, np.where(_X < 0, _X * np.float32(0.25), _X))
    (got,) = ascir_api.evaluate(op_graph(ascir, "Axpy", [0, 0], alpha=0.5), [_X, y * 4])
    np.testing.assert_array_equal(got, _X + np.float32(0.5) * y * 4)
    ascir.utils.set_platform("5102", 0, 0)
    (got,) = ascir_api.evaluate(op_graph(ascir, "Fma", [0, 0, 0]), [_X, _X, y])
    np.testing.assert_array_equal(got, _X * _X + y)


def test_integer_quotients_are_floats(ascir):
    x, y = np.array([[7, -7, 1], [3, 4, 5]], np.int32), np.array([[2, 2, 3], [1, -2, 2]], np.int32)
    (got,) = ascir_api.evaluate(op_graph(ascir, "TrueDiv", [3, 3]), [x, y])
    np.testing.assert_array_equal(got, x.astype(np.float32) / y.astype(np.float32))


@pytest.mark.parametrize("op", sorted(REDUCTIONS))
def test_reductions(ascir, op):
    x = np.abs(np.random.RandomState(3).randn(5, 7)).astype(np.float32)
    x[2] = 0
    x[3, 3] = 0
    (got,) = ascir_api.evaluate(reduced(ascir, op), [x])
    function = {"ArgMax": np.argmax, "Any": np.any, "All": np.all}.get(op) or getattr(np, op.lower())
    expected = np.asarray(function(x, axis=1)).reshape(5, 1)
    np.testing.assert_allclose(got.astype(np.float64), expected.astype(np.float64), 1e-6)
    assert got.dtype == (np.int64 if op == "ArgMax" else np.float32)


def test_half_floats_are_rounded_once_and_at_casts(ascir):
    def chain(graph, x, axes):
        third = f.Scalar(graph, dtype=1, value="0.3333")
        return f.Mul(graph, f.Add(graph, x, third, axis=axes), third, axis=axes)

    x = np.linspace(0, 9, 12).astype(np.float16).reshape(3, 4)
    (got,) = ascir_api.evaluate(pointwise(ascir, 1, chain), [x])
    third = np.float32(np.float16(0.3333))
    np.testing.assert_array_equal(got, ((x.astype(np.float32) + third) * third).astype(np.float16))

    def cast(graph, x, axes):
        return f.Cast(graph, chain(graph, x, axes), dtype=0, axis=axes)

    (wide,) = ascir_api.evaluate(pointwise(ascir, 1, cast), [x])
    np.testing.assert_array_equal(wide, got.astype(np.float32))


def test_flags_are_uint8_outside(ascir):
    def flags(graph, x, axes):
        return f.Cast(
            graph, f.Gt(graph, x, f.Scalar(graph, dtype=0, value="0"), axis=axes), dtype=1, axis=axes
        )

    (got,) = ascir_api.evaluate(pointwise(ascir, 0, flags), [_X])
    assert got.dtype == np.float16
    np.testing.assert_array_equal(got, _X > 0)
    (got,) = ascir_api.evaluate(op_graph(ascir, "LogicalAnd", [4, 4]), [np.full((2, 3), 2, np.uint8)] * 2)
    assert got.dtype == np.uint8 and (got == 1).all()


def test_scalars(ascir):
    for dtype, word, value in (
        (0, "11.1", np.float32(11.1)),
        (3, "-7", -7),
        (3, "0x10", 16),
        (0, "inf", np.inf),
        (3, "2.0", 2),
        (0, "1e-3f", np.float32(1e-3)),
    ):
        graph = pointwise(
            ascir, dtype, lambda g, x, axes: f.Add(g, x, f.Scalar(g, dtype=dtype, value=word), axis=axes)
        )
        x = np.ones((2, 2), np.float32 if dtype == 0 else np.int32)
        np.testing.assert_array_equal(ascir_api.evaluate(graph, [x])[0], x + x.dtype.type(value))
    graph = pointwise(ascir, 3, lambda g, x, axes: f.Add(g, x, f.Scalar(g, dtype=3, value="many"), axis=axes))
    with pytest.raises(ConversionError, match="'many' is no int32"):
        ascir_api.evaluate(graph, [np.ones((2, 2), np.int32)])


def test_transposed(ascir):
    graph = fresh(ascir)
    s0, s1 = graph.create_size("s0"), graph.create_size("s1")
    z0, z1 = graph.create_axis("z0", s0), graph.create_axis("z1", s1)
    x = f.Load(graph, f.Data(graph, dtype=0), axis=[z0, z1])
    turned, store = ascir.ops.Transpose("t"), ascir.ops.Store("s")
    turned.x, store.x = x, turned
    for op in (turned, store):
        op.attr.sched.axis = [z0, z1]
        op.y.axis, op.y.size, op.y.strides = [z1, z0], [s1, s0], [s0, 1]
        op.infer_dtype()
    f.Output(graph, store.y)
    np.testing.assert_array_equal(ascir_api.evaluate(graph, [_X])[0], _X.T)


def test_broadcasts_and_offsets(ascir):
    graph = fresh(ascir)
    s0 = graph.create_size("s0")
    axes = [graph.create_axis("z0", s0), graph.create_axis("z1", 4)]
    row = f.Load(graph, f.Data(graph, dtype=0), offset=2, axis=axes, size=[1, 4], stride=[0, 1])
    column = f.Load(
        graph, f.Data(graph, dtype=0), axis=axes, size=[s0, 4], stride=[1, 0]
    )  # loads repeat elements
    total = f.Add(graph, f.Broadcast(graph, row, axis=axes), column, axis=axes)
    f.Output(graph, f.Store(graph, total, axis=axes))
    a, b = np.arange(6, dtype=np.float32), np.array([[10], [20], [30]], np.float32)
    np.testing.assert_array_equal(ascir_api.evaluate(graph, [a, b])[0], a[2:] + b)


def test_gathered(ascir):
    graph = fresh(ascir)
    rows, width, count = graph.create_size("rows"), graph.create_size("width"), graph.create_size("count")
    z0, z1 = graph.create_axis("z0", count), graph.create_axis("z1", width)
    table = f.Data(graph, dtype=0)
    table.size, table.strides = [rows, width], [width, 1]
    index = f.Load(graph, f.Data(graph, dtype=3), axis=[z0, z1], size=[count, 1], stride=[1, 0])
    got = f.Gather(graph, table, index, gather_axis=0, axis=[z0, z1])
    f.Output(graph, f.Store(graph, f.Neg(graph, got, axis=[z0, z1]), axis=[z0, z1]))
    x, i = np.random.RandomState(0).rand(9, 5).astype(np.float32), np.array([[8], [0], [3], [3]], np.int32)
    np.testing.assert_array_equal(ascir_api.evaluate(graph, [x, i])[0], -x[i[:, 0]])


def test_concatenated(ascir):
    x = [np.random.RandomState(i).randn(3, n).astype(np.float32) for i, n in enumerate((4, 1, 6))]
    graph = concatenated(ascir)
    np.testing.assert_array_equal(ascir_api.evaluate(graph, x)[0], np.maximum(np.concatenate(x, 1), 0))
    assert len(convert(prepared(graph)).fused.graphs) == 3
    lower = [a - 1 for a in x]
    assert not np.array_equal(ascir_api.evaluate(graph, lower)[0], ascir_api.evaluate(graph, x)[0])


def test_split(ascir, on_5102):
    graph = fresh(ascir)
    s0 = graph.create_size("s0")
    axes = [graph.create_axis("z0", s0), graph.create_axis("z1", 7)]
    split = ascir.ops.Split("split", 2)
    split.x = f.Load(graph, f.Data(graph, dtype=0), axis=axes)
    split.attr.sched.axis = axes
    for y, n in zip(split.y, (3, 4)):
        y.axis, y.size, y.strides = axes, [s0, n], [n, 1]
    split.infer_dtype()
    for y, n, op in zip(split.y, (3, 4), (f.Abs, f.Neg)):
        f.Output(graph, f.Store(graph, op(graph, y, axis=axes, size=[s0, n]), axis=axes, size=[s0, n]))
    x = np.random.RandomState(1).randn(5, 7).astype(np.float32)
    got = ascir_api.evaluate(graph, [x])
    np.testing.assert_array_equal(got[0], np.abs(x[:, :3]))
    np.testing.assert_array_equal(got[1], -x[:, 3:])


def test_wrapped_graphs(ascir):
    x = np.random.RandomState(1).randn(5, 7).astype(np.float32)
    got = ascir_api.evaluate(wrapped(ascir), [x])
    np.testing.assert_array_equal(got[0], -np.abs(x))
    np.testing.assert_array_equal(got[1], np.abs(x))


def test_symbols_that_no_input_shows(ascir):
    graph = fresh(ascir)
    s0, s1 = graph.create_size("s0"), graph.create_size("s1")
    z0 = graph.create_axis("z0", s0 * s1)
    f.Output(
        graph,
        f.Store(graph, f.Abs(graph, f.Load(graph, f.Data(graph, dtype=0), axis=[z0]), axis=[z0]), axis=[z0]),
    )
    x = -np.ones(6, np.float32)
    with pytest.raises(ConversionError, match="s0, s1"):
        ascir_api.evaluate(graph, [x])
    np.testing.assert_array_equal(ascir_api.evaluate(graph, [x], {"s0": 2, "s1": 3})[0], -x)
    converted = convert(prepared(graph))
    assert converted.hidden == ("s0", "s1") and len(converted.fused.inputs) == 3
    verify_fused(converted.fused)


def test_graphs_hold_the_contract(ascir):
    graphs = [pointwise(ascir), reduced(ascir), reduced(ascir, "Mean"), concatenated(ascir), wrapped(ascir)]
    for graph in graphs:
        verify_fused(convert(prepared(graph)).fused)


@pytest.mark.parametrize(
    "change, word",
    [
        (lambda state: state.nodes[2].axis.append(9), "no axis 9"),
        (
            lambda state: state.nodes[2].outputs[0].size.__setitem__(0, state.nodes[2].outputs[0].size[1]),
            "size along axis",
        ),
        (lambda state: state.nodes[2].inputs.__setitem__(0, None), "not linked"),
        (lambda state: state.nodes[2].inputs.__setitem__(0, (state.nodes[0], 0)), "memory"),
        (lambda state: setattr(state.nodes[2].outputs[0], "dtype", 16), "DT_COMPLEX64"),
        (lambda state: setattr(state.nodes[2], "type", "Digamma"), "no kernel"),
    ],
)
def test_what_conversion_refuses(ascir, change, word):
    graph = pointwise(ascir)
    state = prepared(graph)
    change(state)
    with pytest.raises(ConversionError, match=word):
        convert(state)


def test_run_on_the_twin(ascir):
    """Bits of the kernel against the evaluator's, for sizes with tails; nothing of the graph is changed."""

    def chain(graph, x, axes):
        y = f.Add(graph, f.Abs(graph, x, axis=axes), f.Scalar(graph, dtype=0, value="0.5"), axis=axes)
        flag = f.Gt(graph, y, f.Scalar(graph, dtype=0, value="1.0"), axis=axes)
        return f.Where(graph, flag, y, x, axis=axes)

    graph = pointwise(ascir, 0, chain)
    before = ascir.utils.debug_str(graph)
    for shape in ((3, 5), (1, 1), (0, 4), (37, 129)):
        x = np.random.RandomState(4).randn(*shape).astype(np.float32)
        (got,), (expected,) = ascir_api.run(graph, [x]), ascir_api.evaluate(graph, [x])
        assert got.tobytes() == expected.tobytes() and got.shape == shape
    assert ascir.utils.debug_str(graph) == before
    # several loop nests, and symbols that are called as a kernel's own variables (n0, n1, n2)
    x = [np.random.RandomState(i).randn(3, n).astype(np.float32) for i, n in enumerate((4, 1, 6))]
    joined = concatenated(ascir)
    assert ascir_api.run(joined, x)[0].tobytes() == ascir_api.evaluate(joined, x)[0].tobytes()
    with pytest.raises(ValueError, match="0 inputs, not 1"):
        ascir_api.run(graph, [])
    with pytest.raises(TypeError, match="HintGraph or FusedGraph"):
        ascir_api.run(3, [])
