"""Sections 2, 4 and 5 of the API: dtypes, axes, graphs."""

import pytest

from tf_autofuse.ascir_api import dtypes


def test_dtypes(ascir):
    numbers = {n: getattr(ascir.dtypes, n) for n in vars(ascir.dtypes) if not n.startswith("_")}
    assert numbers == dtypes.NUMBERS and all(type(v) is int for v in numbers.values())
    wanted = {
        "float32": 0,
        "float16": 1,
        "int8": 2,
        "int32": 3,
        "uint8": 4,
        "int16": 6,
        "int64": 9,
        "double": 11,
        "bool": 12,
        "bfloat16": 27,
        "bf16": 27,
        "undefined": 28,
        "int4": 29,
        "float4_e1m2": 41,
    }
    assert {n: numbers[n] for n in wanted} == wanted
    assert sorted(set(range(42)) - set(numbers.values())) == [5] and len(numbers) == 42
    shown = [
        (dtypes.serial(numbers[n]), dtypes.dumped(numbers[n])) for n in ("float32", "int8", "bf16", "bool")
    ]
    assert shown == [
        ("DT_FLOAT", "float32"),
        ("DT_INT8", "int8_t"),
        ("DT_BFLOAT16", "DT_BFLOAT16"),
        ("DT_BOOL", "DT_BOOL"),
    ]
    assert dtypes.serial(5) == dtypes.serial(28) == "DT_UNDEFINED"


def test_axis(ascir):
    graph = ascir.HintGraph("g")
    axes = [graph.create_axis("z", graph.create_size("s0")), graph.create_axis("z", 512)]
    assert [(a.id, a.name, a.type) for a in axes] == [(0, "z", "0"), (1, "z", "0")]
    assert axes[1].size == 512 and axes[0].size.expression == "s0"
    assert axes[0] != axes[1] and {axes[0]: 1}[axes[0]] == 1
    axes[0].name, axes[0].id = "other", 7
    assert "z(0)" in ascir.utils.debug_str(graph) and (axes[0].name, axes[0].id) == ("other", 7)
    empty = ascir.Axis()
    assert (empty.id, empty.name, empty.size, empty.type) == (-1, None, None, None)
    for bad in ("s0", 1.5, None):
        with pytest.raises(TypeError, match="^Only support type of SizeExpr or long$"):
            graph.create_axis("z", bad)


def test_names(ascir):
    for make in (ascir.HintGraph, ascir.FusedGraph):
        with pytest.raises(TypeError, match="^argument 1 must be str, not int$"):
            make(3)
    graph = ascir.HintGraph()
    assert graph.name == graph.get_name() == "fused_graph"
    graph.name = "member"
    assert graph.get_name() == "fused_graph"
    graph.set_name("real")
    assert (graph.get_name(), graph.name) == ("real", "member")
    with pytest.raises(TypeError, match="^name is invalid.$"):
        graph.set_name(3)
    assert graph.get_name() == "real"


def test_counts(ascir):
    graph, ops = ascir.HintGraph("g"), ascir.ops
    data = [ops.Data("d%d" % i, graph) for i in range(3)]
    ops.Scalar("c", graph), ops.ScalarData("e", graph)
    output = ops.Output("o")
    assert (graph.get_input_num(), graph.get_output_num()) == (3, 0)
    output.x = data[0]
    assert graph.get_output_num() == 1


def view(output):
    return output.axis, [s.expression for s in output.size], [s.expression for s in output.strides]


def test_axis_map(ascir):
    graph, ops = ascir.HintGraph("g"), ascir.ops
    a, b = graph.create_size("a"), graph.create_size("b")
    z0, z1 = graph.create_axis("z0", a), graph.create_axis("z1", b)
    y0, y1 = graph.create_axis("y0", a // 4), graph.create_axis("y1", 4)
    load = ops.Load("load")
    load.x = ops.Data("data", graph)
    load.attr.sched.axis = load.y.axis = [z0, z1]
    load.y.size, load.y.strides = [a, 1], [b, 0]
    graph.set_axis_map({z0: [y0, y1], z1: [z1]})
    assert load.attr.sched.axis == [2, 3, 1]
    assert view(load.y) == ([2, 3, 1], ["Floor((Rational(1 , 4) * a))", "4", "1"], ["(4 * b)", "b", "0"])
    graph.set_axis_map({y1: [z0]})  # one target: size and stride stay as they are
    assert load.attr.sched.axis == [2, 0, 1] and view(load.y)[1:] == (
        ["Floor((Rational(1 , 4) * a))", "4", "1"],
        ["(4 * b)", "b", "0"],
    )
    before = ascir.utils.debug_str(graph)
    graph.set_axis_map({z0: [z0], z1: [z1], y0: [y0]})
    assert ascir.utils.debug_str(graph) == before
    for bad in ({"z0": [z0]}, {0: [z0]}):
        with pytest.raises(TypeError, match="^Input type is invalid.$"):
            graph.set_axis_map(bad)
    with pytest.raises(TypeError):
        graph.set_axis_map([(z0, [z0])])


def test_containers_made_directly_are_empty(ascir):
    compute = ascir.HintComputeGraph("ignored", 3)
    assert compute.get_name() == "fused_graph" and compute.get_info() == "fused_graph\nNode num:0\n"
    assert ascir.ShapeInfo({"s0": "x"})._entries == {}
    op = ascir.Operator("n", "t")
    op.name = "m"
    assert (op.name, op.type) == ("m", "t")
    for arguments in ((), ("n",), ("n", 3)):
        with pytest.raises(TypeError):
            ascir.Operator(*arguments)
