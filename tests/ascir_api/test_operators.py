"""Sections 6 and 8 of the API: operators, their attributes, linking, views."""

import gc

import pytest

from tf_autofuse.ascir_api.operators_table import ROWS

_VALUES = {"int": 3, "float": 0.5, "bool": True, "str": "word", "SizeExpr": 7}
_C_TYPES = {"int": "int64_t", "float": "float", "bool": "bool", "str": "std::string"}


def node_names(ascir, graph):
    lines = ascir.utils.debug_str(graph).split("Nodes:\n")[1].split("\n")
    return [
        line.split(":")[0].strip() for line in lines if line.startswith("  ") and not line.startswith("   ")
    ]


def test_every_operator_is_a_class(ascir):
    names = [n for n in vars(ascir.ops) if not n.startswith("_")]
    assert len(names) == 145 and set(names) == set(ROWS) | {"AscBackend", "AscGraph"}
    graph = ascir.HintGraph("g")
    for name in ROWS:
        op = getattr(ascir.ops, name)("n", graph)
        assert (op.name, op.type, type(op).__name__) == ("n", name, name)
        assert isinstance(op, ascir.Operator)
        assert op.attr.api.compute_type == ROWS[name].compute
    assert {
        n: ROWS[n].compute
        for n in ("Data", "Load", "Store", "Max", "Concat", "MatMul", "Gather", "Split", "Add")
    } == {
        "Data": "unknown",
        "Load": "load",
        "Store": "store",
        "Max": "reduce",
        "Concat": "concat",
        "MatMul": "cube",
        "Gather": "gather",
        "Split": "split",
        "Add": "elewise",
    }


def test_only_start_operators_enter_at_once(ascir):
    graph, ops = ascir.HintGraph("g"), ascir.ops
    starts = [name for name in ROWS if not ROWS[name].inputs]
    assert sorted(starts) == ["Data", "IndexExpr", "Scalar", "ScalarData", "Unsupported"]
    for name in starts:
        with pytest.raises(TypeError):
            getattr(ops, name)("n")
        getattr(ops, name)(name, graph)
    ops.Abs("ignored", graph)
    assert node_names(ascir, graph) == starts


@pytest.mark.parametrize(
    "make, text",
    [
        (lambda o, g: o.Abs(), "Operator expects (name[, graph])"),
        (lambda o, g: o.Abs(3), "Operator name must be str."),
        (lambda o, g: o.Abs("n", 3), "Operator expects (name[, graph])"),
        (lambda o, g: o.Abs("n", g, g), "Operator expects (name[, graph])"),
        (lambda o, g: o.Data(g), "Operator name must be str."),
        (lambda o, g: o.Split("n", 2, 3), "Dynamic output num is duplicated."),
        (lambda o, g: o.Split("n", g, g), "Graph arg is duplicated."),
        (lambda o, g: o.Split("n", "x"), "Operator expects (name[, output_num][, graph])"),
        (
            lambda o, g: o.AscBackend("n", 3),
            "The asc graph node requires hitgraph to be passed in as an input parameter.",
        ),
        (
            lambda o, g: o.AscGraph("n", g),
            "The asc graph node requires fusedgraph to be passed in as an input parameter "
            "when has no inputs.",
        ),
        (lambda o, g: o.AscGraph("n", g, g), "The asc graph node requires fusedgraph type."),
    ],
)
def test_wrong_constructor_arguments(ascir, make, text):
    with pytest.raises(TypeError) as error:
        make(ascir.ops, ascir.HintGraph("g"))
    assert str(error.value) == text


def test_split(ascir):
    graph, ops = ascir.HintGraph("g"), ascir.ops
    assert ops.Split("n").y == [] and len(ops.Split("n", graph, 3).y) == len(ops.Split("n", 3, graph).y) == 3
    for count in (2**32, -1):
        with pytest.raises(OverflowError, match="^Dynamic output num is out of range.$"):
            ops.Split("n", count)
    split, data, sink = ops.Split("n", 2), ops.Data("d", graph), ops.Abs("a")
    split.x = data
    sink.x = split.y[1]
    assert "    .x = n.y[1]\n" in ascir.utils.debug_str(graph)
    assert split.y is split.y


def test_linking(ascir):
    graph, ops = ascir.HintGraph("g"), ascir.ops
    loose, far = ops.Abs("loose"), ops.Abs("far")
    far.x = loose  # from no graph: nothing happens
    assert node_names(ascir, graph) == []
    data, add, other = ops.Data("d", graph), ops.Add("add"), ops.Data("e", graph)
    add.x2 = other.y
    assert node_names(ascir, graph) == ["d", "e", "add"]
    assert "    .x = {, e.y}\n" in ascir.utils.debug_str(graph)
    add.x1 = data
    assert "    .x = {d.y, e.y}\n" in ascir.utils.debug_str(graph)
    add.x1 = other
    assert "    .x = {e.y, e.y}\n" in ascir.utils.debug_str(graph)
    for name in ("x1", "x2"):
        with pytest.raises(AttributeError):
            getattr(add, name)
    with pytest.raises(AttributeError):
        add.y = data.y
    with pytest.raises(AttributeError):
        add.x3 = data
    for bad in (3, None, "d", [data], graph):
        with pytest.raises(TypeError, match="^Input Type is invalid.$"):
            add.x1 = bad


def test_lists_of_inputs(ascir):
    graph, ops = ascir.HintGraph("g"), ascir.ops
    data = [ops.Data("d%d" % i, graph) for i in range(3)]
    concat = ops.Concat("c")
    with pytest.raises(TypeError, match="^Input Type is invalid.$"):
        concat.x = [data[0], 3]
    with pytest.raises(TypeError, match="^Input Type is invalid.$"):
        concat.x = data[0]
    assert "c" not in node_names(ascir, graph)
    concat.x = [data[0], data[1].y, data[2]]
    assert "    .x = {d0.y, d1.y, d2.y}\n" in ascir.utils.debug_str(graph)
    with pytest.raises(TypeError):
        concat.x = data
    output = ops.Output("o")
    output.x = [data[0], data[1]]
    assert "    .x = {d0.y, d1.y}\n" in ascir.utils.debug_str(graph)


def test_views(ascir):
    graph, ops = ascir.HintGraph("g"), ascir.ops
    s0, axis = graph.create_size("s0"), graph.create_axis("z0", 4)
    data, load = ops.Data("d", graph), ops.Load("l")
    assert data.y.dtype == ascir.dtypes.float32 and load.y.dtype == ascir.dtypes.undefined
    assert (load.y.axis, load.y.size, load.y.strides) == ([], [], []) and load.y is load.y
    load.y.axis, load.y.size, load.y.strides, load.y.dtype = [axis], [s0, 3], [1], 777
    assert (load.y.axis, load.y.size, load.y.strides, load.y.dtype) == ([0], [s0, 3], [1], 777)
    load.y.size.append(s0)
    assert load.y.size == [s0, 3]
    for name in ("axis", "size", "strides"):
        for bad in ((axis,), None, axis, 3):
            with pytest.raises(TypeError, match="^value must be a list$"):
                setattr(load.y, name, bad)
    with pytest.raises(ValueError, match="^axis on 1 is not Axis type$"):
        load.y.axis = [axis, 3]
    with pytest.raises(ValueError, match="^repeats on 1 is not SizeExpr or long type.$"):
        load.y.size = [s0, "s0"]
    with pytest.raises(ValueError, match="^strides on 0 is not SizeExpr or long type.$"):
        load.y.strides = [None]
    assert (load.y.axis, load.y.size, load.y.strides) == ([0], [s0, 3], [1])
    with pytest.raises(TypeError):
        ascir.OpsOperatorOutput()


def test_a_view_keeps_its_operator(ascir):
    graph = ascir.HintGraph("g")
    view = ascir.ops.Data("d", graph).y
    gc.collect()
    sink = ascir.ops.Abs("a")
    sink.x = view
    assert node_names(ascir, graph) == ["d", "a"] and view.dtype == 0


def test_attr(ascir):
    graph, ops = ascir.HintGraph("g"), ascir.ops
    axis = graph.create_axis("z0", 4)
    op = ops.Abs("a")
    op.attr.sched.axis = [axis, axis]
    assert op.attr.sched.axis == [0, 0]
    with pytest.raises(TypeError, match="^value must be a list$"):
        op.attr.sched.axis = (axis,)
    with pytest.raises(ValueError, match="^axis on 0 is not Axis type$"):
        op.attr.sched.axis = [0]
    for word in "load gather store broadcast reduce transpose concat cube split".split():
        op.attr.api.compute_type = word
        assert op.attr.api.compute_type == word
    op.attr.api.compute_type = "elemwise"
    assert op.attr.api.compute_type == "elewise"
    for word in ("elewise", "unknown", "", 3):
        with pytest.raises(ValueError, match="^unknown compute type$"):
            op.attr.api.compute_type = word
    with pytest.raises(AttributeError):
        op.attr.ir_attr
    del op.attr
    with pytest.raises(AttributeError):
        op.attr


@pytest.mark.parametrize("name", [n for n in sorted(ROWS) if ROWS[n].attributes])
def test_own_attributes(ascir, name):
    graph = ascir.HintGraph("g")
    ir_attr = getattr(ascir.ops, name)("n", graph).attr.ir_attr
    for attribute, kind in ROWS[name].attributes:
        value = _VALUES[kind]
        if kind == "SizeExpr":
            with pytest.raises(TypeError):
                getattr(ir_attr, attribute)
            for bad in ("s0", 1.5):
                with pytest.raises(TypeError, match="^Only support type of SizeExpr or long$"):
                    setattr(ir_attr, attribute, bad)
        else:
            assert getattr(ir_attr, attribute) == type(value)()
            for bad in (None, [], "x" if kind != "str" else 3, 3 if kind in ("float", "bool") else 1.5):
                with pytest.raises(TypeError) as error:
                    setattr(ir_attr, attribute, bad)
                assert str(error.value) == "%s attr %s expected %s" % (name, attribute, _C_TYPES[kind])
        setattr(ir_attr, attribute, value)
        assert getattr(ir_attr, attribute) == value
    for other in ("nothing", "gid", "negative_slopes"):
        with pytest.raises(AttributeError):
            setattr(ir_attr, other, 1)


def test_attributes_are_as_listed():
    listed = {name: dict(row.attributes) for name, row in ROWS.items() if row.attributes}
    matmul = dict.fromkeys(("has_relu", "offset_x", "transpose_x1", "transpose_x2", "enable_hf32"), "int")
    batch = dict.fromkeys(("has_relu", "offset_x", "adj_x1", "adj_x2", "enable_hf32"), "int")
    wanted = {n: {"index": "int"} for n in ("Data", "Output", "ScalarData")}
    wanted.update({n: {"offset": "SizeExpr"} for n in ("Load", "Store")})
    wanted.update({"ShiftedChebyshevPolynomial" + c: {"n": "int"} for c in "TUVW"})
    wanted.update(
        {
            "Scalar": {"value": "str"},
            "IndexExpr": {"expr": "int"},
            "Gather": {"axis": "int"},
            "IndirectLoad": {
                "axis": "int",
                "negative_index_support": "bool",
                "need_check_bound": "bool",
                "max": "int",
            },
            "MatMul": matmul,
            "MatMulBias": matmul,
            "BatchMatMul": batch,
            "BatchMatMulBias": batch,
            "LeakyRelu": {"negative_slope": "float"},
            "Axpy": {"alpha": "float"},
            "Unsupported": {"error_msg": "str"},
        }
    )
    assert listed == wanted


def simple(ascir, name="inner", indexes=(0,)):
    """A HintGraph of one Data and as many Outputs as indexes."""
    graph, ops = ascir.HintGraph(name), ascir.ops
    z0 = graph.create_axis("z0", 8)
    data, load = ops.Data("d", graph), ops.Load("l")
    load.x = data
    for i, index in enumerate(indexes):
        store, output = ops.Store("st%d" % i), ops.Output("o%d" % i)
        store.x, output.x = load, store
        if index is not None:
            output.attr.ir_attr.index = index
        for op in (load, store):
            op.attr.sched.axis = op.y.axis = [z0]
            op.y.size, op.y.strides = [8], [1]
    return graph


def test_wrapped_graphs(ascir):
    ops, fused = ascir.ops, ascir.FusedGraph("f")
    inner = simple(ascir, indexes=(0, 1, 1))
    data = ops.Data("d", fused)
    for cls in (ops.AscGraph, ops.AscBackend):
        node = cls("n", inner)
        assert len(node.y) == 2
        with pytest.raises(AttributeError):
            node.attr
        with pytest.raises(TypeError, match="^n %s should has 1 input but given 2$" % cls.__name__):
            node.x = [data, data]
        with pytest.raises(TypeError, match="^Input Type is invalid.$"):
            node.x = [3]
        node.x = [data]
        with pytest.raises(TypeError, match="^%s has no infer dtype func$" % cls.__name__):
            node.infer_dtype()
    with pytest.raises(TypeError, match="^Op o0 Output must set ir_attr for index.$"):
        ops.AscGraph("n", simple(ascir, indexes=(None,)))
    kept, live = ops.AscGraph("a", inner), ops.AscBackend("b", inner)
    inner.set_name("renamed")
    assert (kept._node.subgraph.name, live._node.subgraph.name) == ("inner", "renamed")
