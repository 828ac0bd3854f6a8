"""Section 11 of the API: the functional helpers."""

import pytest

from tests.ascir_api.graphs import fresh
from tf_autofuse.ascir_api import functional as f
from tf_autofuse.ascir_api.operators_table import ROWS

_OWN_SIGNATURE = (
    "Data",
    "Scalar",
    "ScalarData",
    "IndexExpr",
    "Output",
    "Load",
    "Store",
    "Cast",
    "LeakyRelu",
    "Gather",
    "IndirectLoad",
    "Concat",
)
_WITHOUT = (
    "MatMul MatMulBias BatchMatMul BatchMatMulBias Gelu Split Axpy RoundToInt Square Sinh Tan Trunc "
    "TruncToInt TruncDiv Xor Unsupported"
).split()


def view(v):
    return v.axis, [s.expression for s in v.size], [s.expression for s in v.strides]


@pytest.fixture
def graph(ascir):
    graph = fresh(ascir)
    graph.axes = [graph.create_axis("z%d" % i, graph.create_size("s%d" % i)) for i in range(2)]
    return graph


def test_names_of_helpers():
    assert set(f.NAMES) == set(ROWS) - set(_WITHOUT)


@pytest.mark.parametrize("name", sorted(set(f.NAMES) - set(_OWN_SIGNATURE)))
def test_every_helper(ascir, graph, name):
    row = ROWS[name]
    registry = 1 if 1 in row.dtypes or 1 in row.pairs else 2
    ascir.utils.set_platform({1: "2201", 2: "5102"}[registry], 0, 0)
    if registry in row.pairs:
        ins = sorted(row.pairs[registry])[0][0]
        ins = list(ins) * (len(row.inputs) // len(ins))
    else:
        ins = [min(row.dtypes[registry][p.symbol]) for p in row.inputs]
    views = [f.Data(graph, dtype=d) for d in ins]
    extra = (3,) if name.startswith("Shifted") else ()
    result = getattr(f, name)(graph, *(views + list(extra)), axis=graph.axes)
    results = result if name == "Frexp" else (result,)
    assert len(results) == len(row.outputs)
    for v in results:
        assert view(v) == ([0, 1], ["s0", "s1"], ["s1", "1"]) and v.dtype != ascir.dtypes.undefined
    node = results[0]._node
    assert node.axis == [0, 1] and [link[0] for link in node.inputs] == [v._node for v in views]
    with pytest.raises(TypeError):
        getattr(f, name)(graph, *(views + list(extra)))  # axis is needed


def test_instance_names(ascir, graph):
    data = [f.Data(graph, dtype=0), f.Data(graph, dtype=1)]
    assert [v._node.name for v in data] == ["data_0", "data_1"]
    assert [v._node.attributes["index"] for v in data] == [0, 1]
    other = ascir.HintGraph(graph.name)  # counted by the graph's name
    assert f.Data(other, dtype=0)._node.attributes["index"] == 2
    ascir.utils.set_platform("3510", 0, 0)
    assert f.ShiftedChebyshevPolynomialV(graph, data[0], 2, axis=graph.axes)._node.name == (
        "shifted_chebyshev_polynomial_v_0"
    )
    degree = f.Data(graph, dtype=3)
    assert (
        f.LegendrePolynomialP(graph, data[0], degree, axis=graph.axes)._node.name == "legendre_polynomial_p_0"
    )
    assert f.BitwiseNot(graph, degree, axis=graph.axes)._node.name == "bitwisenot_0"
    outputs = [f.Output(graph, data[0]), f.Output(graph, [data[1], data[1]])]
    assert [v._node.attributes["index"] for v in outputs] == [0, 1] and outputs[1].dtype == 1
    assert view(outputs[0]) == ([], [], [])


def test_views(ascir, graph):
    data, axes = f.Data(graph, dtype=0), graph.axes
    s0 = graph.create_size("s0")
    assert view(f.Load(graph, data, axis=axes, size=[s0, 4]))[1:] == (["s0", "4"], ["4", "1"])
    assert view(f.Load(graph, data, axis=axes, size=[s0, 1], stride=[1, 0]))[1:] == (["s0", "1"], ["1", "0"])
    assert f.Load(graph, data, axis=axes)._node.attributes == {}
    assert f.Load(graph, data, offset=s0, axis=axes)._node.attributes["offset"] == s0._e
    for arguments, text in (
        ({"stride": [1, 0]}, "when stride is given，size must be also given"),
        ({"size": [s0]}, "size len should be same with axis len"),
        ({"size": [s0, 1], "stride": [1]}, "stride should be same with axis len"),
    ):
        with pytest.raises(ValueError) as error:
            f.Abs(graph, data, axis=axes, **arguments)
        assert str(error.value) == text


def test_helpers_of_their_own(ascir, graph):
    axes, data = graph.axes, f.Data(graph, dtype=0)
    assert f.Cast(graph, data, dtype=1, axis=axes).dtype == 1
    with pytest.raises(TypeError, match="Check dtype failed for cast_1 Cast"):
        f.Cast(graph, data, dtype=29, axis=axes)
    scalar = f.Scalar(graph, dtype=0, value="11.1")
    assert scalar._node.attributes == {"value": "11.1"} and scalar._node.name == "scalar_0"
    assert f.ScalarData(graph, dtype=3)._node.attributes == {"index": 0}
    assert f.IndexExpr(graph, dtype=9, expr=4)._node.attributes == {"expr": 4}
    with pytest.raises(TypeError):
        f.IndexExpr(graph, dtype=9)
    assert f.LeakyRelu(graph, data, negative_slope=0.5, axis=axes)._node.attributes == {"negative_slope": 0.5}
    assert f.Concat(graph, [data, data], axis=axes)._node.name == "concat_0"
    index = f.Data(graph, dtype=3)
    gathered = f.Gather(graph, data, index, gather_axis=1, axis=axes)
    assert gathered._node.attributes == {"axis": 1} and gathered.dtype == 0
    with pytest.raises(AttributeError):
        f.Gather(graph, data, index, axis=axes, negative_index_support=True)
    ascir.utils.set_platform("3510", 0, 0)
    loaded = f.IndirectLoad(graph, data, index, axis=0, sched_axis=axes)
    assert loaded.dtype == 0 and loaded._node.attributes == {"axis": 0} and loaded.axis == [0, 1]
    assert f.MaskedFill(graph, data, f.Data(graph, dtype=4), data, axis=axes).dtype == 0
    assert f.Output(graph, data, dtype=0).dtype == 0


def test_without_platform(ascir, graph):
    from tf_autofuse.ascir_api import platform

    platform.restore(platform.Platform())
    with pytest.raises(TypeError, match="^Failed to get npu_arch$"):
        f.Data(graph, dtype=0)
