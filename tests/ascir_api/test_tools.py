"""Section 9 of the API: ascir.utils."""

import glob
import logging
import os

import pytest

from tests.ascir_api.test_operators import simple
from tf_autofuse.ascir_api import platform, text_forms
from tf_autofuse.ascir_api.graphs import state_of


def toy(ascir):
    """A graph with a comparison that nobody reads and a reduction."""
    graph, ops = ascir.HintGraph("toy"), ascir.ops
    n, m = graph.create_size("n"), graph.create_size("m")
    za, zb = graph.create_axis("za", n), graph.create_axis("zb", m + 8)
    data, load = ops.Data("in0", graph), ops.Load("ld")
    data.attr.ir_attr.index, data.y.dtype = 0, ascir.dtypes.float16
    load.x, load.attr.ir_attr.offset = data, 0
    compare, reduce, store, output = ops.Ge("cmp"), ops.Max("mx"), ops.Store("st"), ops.Output("out0")
    compare.x1, compare.x2 = load, load.y
    reduce.x, store.x, output.x = load, reduce, store
    output.attr.ir_attr.index = 0
    for op in (load, compare, reduce, store):
        op.attr.sched.axis = op.y.axis = [za, zb]
        full = op in (load, compare)
        op.y.size, op.y.strides = ([n, m + 8], [m + 8, 1]) if full else ([n, 1], [1, 0])
    graph.infer_dtypes()
    return graph


TOY = """\
Graph: toy
Sizes:
  n: VAR
  m: VAR
Axis:
  za(0) : ORIGINAL, size:n,_
  zb(1) : ORIGINAL, size:(8 + m),_
Nodes:
  in0: Data (0)
    .ir_attr =  {.index = i: 0}
    .axis = {}
    .y: float16
  ld: Load (1)
    .ir_attr =  {.offset = expression: "0"}
    .axis = {za, zb, }
    .x = in0.y
    .y: float16
        .axis = {za, zb}
        .repeats = (n, (8 + m))
        .strides = ((8 + m), 1)
  cmp: Ge (2)
    .axis = {za, zb, }
    .x = {ld.y, ld.y}
    .y: uint8_t
        .axis = {za, zb}
        .repeats = (n, (8 + m))
        .strides = ((8 + m), 1)
  mx: Max (3)
    .axis = {za, zb, }
    .x = ld.y
    .y: float16
        .axis = {za, zb}
        .repeats = (n, 1)
        .strides = (1, 0)
  st: Store (4)
    .axis = {za, zb, }
    .x = mx.y
    .y: float16
        .axis = {za, zb}
        .repeats = (n, 1)
        .strides = (1, 0)
  out0: Output (5)
    .ir_attr =  {.index = i: 0}
    .axis = {}
    .x = st.y
    .y: float16
""".replace(",_\n", ", \n")


def test_debug_str(ascir):
    assert ascir.utils.debug_str(toy(ascir)) == TOY
    graph = ascir.HintGraph("sizes")
    graph.create_size("s0"), graph.create_size("s0")
    assert ascir.utils.debug_str(graph) == "Graph: sizes\nSizes:\n  s0: VAR\n  s0: VAR\nAxis:\nNodes:\n"
    for bad in (3, ascir.FusedGraph("f"), ascir.ops.Abs("a")):
        with pytest.raises(TypeError, match="^Argument must be a HintGraph object$"):
            ascir.utils.debug_str(bad)


def test_debug_str_of_attributes(ascir):
    graph, ops = ascir.HintGraph("g"), ascir.ops
    scalar, slope, flag = ops.Scalar("c", graph), ops.LeakyRelu("l"), ops.IndirectLoad("i")
    scalar.attr.ir_attr.value = 'a"b\\'
    slope.x = flag.x1 = flag.x2 = scalar
    slope.attr.ir_attr.negative_slope = 0.1
    flag.attr.ir_attr.axis, flag.attr.ir_attr.need_check_bound = 0, False
    text = ascir.utils.debug_str(graph)
    for line in (
        '.ir_attr =  {.value = s: "a\\"b\\\\"}',
        ".ir_attr =  {.negative_slope = f: 0.1}",
        ".ir_attr =  {.axis = i: 0.need_check_bound = b: false}",
    ):
        assert "    %s\n" % line in text
    frexp = ops.Frexp("f")
    frexp.x = scalar
    assert "    .mantissa: DT_UNDEFINED\n    .exponent: DT_UNDEFINED\n" in ascir.utils.debug_str(graph)


def test_text_form_and_back(ascir):
    graph = toy(ascir)
    text = text_forms.write_graph(state_of(graph))
    again = ascir.utils.deserialize("asc_graph", text)
    assert isinstance(again, ascir.HintGraph) and again.get_name() == again.name == "toy"
    assert ascir.utils.debug_str(again) == TOY
    assert text_forms.write_graph(state_of(again)) == text
    assert 'size: "(8 + m)"' in text and "id: 0" not in text and "loop_axis: -1" in text


def test_axes_made_by_splitting(ascir):
    text = """
    graph_name: "g"
    asc_graph_attr {
      axis { name: "z0" size: "s0" }
      axis { id: 1 name: "z0T" axis_type: 3 size: "(s0 / (t))" from: 0 }
      axis { id: 2 name: "m" axis_type: 5 size: "s0" from: 0 from: 1 }
      size_var: "s0"
    }"""
    lines = ascir.utils.debug_str(ascir.utils.deserialize("asc_graph", text)).split("\n")
    assert lines[4:7] == [
        "  z0(0) : ORIGINAL, size:s0, ",
        "  z0T(1) : TILE_OUT, size:(s0 / (t)), , from: {z0, }",
        "  m(2) : MERGED, size:s0, , from: {z0, z0T, }",
    ]


@pytest.mark.parametrize(
    "arguments, text",
    [
        ((), "UtilsDeserialize param parse failed"),
        (("asc_graph",), "UtilsDeserialize param parse failed"),
        (("asc_graph", 3), "UtilsDeserialize param parse failed"),
        (("nothing", ""), "value of type is invalid"),
        (("asc_graph", "no graph"), "HintGraph DeserializeFromReadable fail"),
        (("asc_graph", 'asc_node { attr { type: "Nothing" } }'), "HintGraph DeserializeFromReadable fail"),
        (("asc_graph", 'asc_graph_attr { axis { size: "s0+1" } }'), "HintGraph DeserializeFromReadable fail"),
        (
            ("asc_graph", 'asc_node { input_src { src_node_name: "x" } outputs { } attr { type: "Abs" } }'),
            "HintGraph DeserializeFromReadable fail",
        ),
        (("symbol_source_info", "{"), "ShapeInfo Deserialize fail"),
        (("symbol_source_info", '{"s0": 3}'), "ShapeInfo Deserialize fail"),
        (("compute_graph", "name: {"), "HintComputeGraph Deserialize fail"),
    ],
)
def test_what_deserialize_refuses(ascir, arguments, text):
    with pytest.raises(TypeError) as error:
        ascir.utils.deserialize(*arguments)
    assert str(error.value) == text


def test_shape_info(ascir):
    info = ascir.utils.deserialize("symbol_source_info", '{"s0": "GetDimValueFromGraphInputData(0, 0);"}')
    assert isinstance(info, ascir.ShapeInfo) and list(info._entries) == ["s0"]
    assert ascir.utils.deserialize("symbol_source_info", "[1]")._entries == {}


def compute_graph_text(ascir):
    inner = text_forms.write_graph(state_of(simple(ascir)))
    return """
    name: "ge"
    version: 3
    op { name: "x" type: "Data" attr { key: "index" value { i: 0 } } output_desc { name: "y" } }
    op { name: "a" type: "AscGraph" input: "x:0" attr { key: "ascgraph" value { s: "%s" } } }
    op { name: "out" type: "NetOutput" input: "a:0" }
    """ % inner.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def test_compute_graph(ascir):
    graph = ascir.utils.deserialize("compute_graph", compute_graph_text(ascir))
    assert isinstance(graph, ascir.HintComputeGraph) and graph.get_name() == "ge"
    assert graph.get_info() == (
        "ge\nNode num:3\nNode name: x, Node type: Data\nNode name: a, Node type: AscGraph\n"
        "Node name: out, Node type: NetOutput\n"
    )


@pytest.mark.parametrize(
    "variable, folder",
    [
        ("NPU_COLLECT_PATH", "extra-info/graph/%d_0"),
        ("DUMP_GRAPH_PATH", "pid_%d_deviceid_0"),
        ("ASCEND_WORK_PATH", ""),
    ],
)
def test_dump(ascir, monkeypatch, tmp_path, variable, folder):
    for name in ("NPU_COLLECT_PATH", "DUMP_GRAPH_PATH", "ASCEND_WORK_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, str(tmp_path))
    fused = ascir.FusedGraph("a/b")
    ascir.ops.Data("d", fused)
    ascir.utils.dump(toy(ascir)), ascir.utils.dump(fused)
    where = os.path.join(str(tmp_path), folder % os.getpid() if folder else "")
    for kind, ending in (("proto", "txt"), ("onnx", "pbtxt"), ("readable", "txt")):
        (path,) = glob.glob(os.path.join(where, "ge_%s_[0-9]*_graph_[0-9]*_toy.%s" % (kind, ending)))
        assert os.path.getsize(path) > 50 and len(os.path.basename(path).split("_")[2]) == 8
        assert glob.glob(os.path.join(where, "ge_%s_*_a_b.%s" % (kind, ending)))
    with open(glob.glob(os.path.join(where, "ge_proto_*_toy.txt"))[0]) as stream:
        assert ascir.utils.debug_str(ascir.utils.deserialize("asc_graph", stream.read())) == TOY
    with pytest.raises(TypeError, match="^Argument must be a HintGraph or FusedGraph object, got Data$"):
        ascir.utils.dump(ascir.ops.Data("d", fused))


def test_durations(ascir, caplog):
    ascir.utils.report_durations()
    ascir.utils.duration_record(["one", "two"], 5, 7)
    with caplog.at_level(logging.INFO, "tf_autofuse.ascir"):
        ascir.utils.report_durations(), ascir.utils.report_durations()
    assert [r.getMessage() for r in caplog.records] == ["one/two: start 5 ns, 7 ns"]
    for arguments, text in (
        ((), "UtilsDurationRecord param parse failed"),
        ((["a"], "x", 3), "UtilsDurationRecord param parse failed"),
        ((("a",), 1, 1), "target param is invalid"),
        (([1], 1, -1), "target param is invalid"),
        ((["a"], 1, -1), "duration param is invalid"),
    ):
        with pytest.raises(TypeError) as error:
            ascir.utils.duration_record(*arguments)
        assert str(error.value) == text


def test_set_platform(ascir):
    assert ascir.utils.set_platform("", 0, 65536) is None
    assert platform.current() == ("2201", 40, 65536) and platform.machine().ub_bytes == 65536
    ascir.utils.set_platform("anything", 3, 245760)
    assert platform.current().soc == "anything" and platform.machine().vector_cores == 3
    assert platform.machine().ub_bytes == 192 * 1024  # never more than the chip has
    for arguments in ((), ("2201", 1), (2201, 1, 1), ("2201", "1", 1), ("2201", 1, 1, 1)):
        with pytest.raises(
            TypeError, match="^UtilsSetPlatform param parse failed, expected string, long, long$"
        ):
            ascir.utils.set_platform(*arguments)
