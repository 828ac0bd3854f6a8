"""The graph passes: who switches them on, what they hand to Python, and that a failure leaves the graph."""

import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from tests.frontend.native_session import Recorder, config, edit, fused_nodes, run_with_graph, same_bits, v1

pytestmark = pytest.mark.tensorflow
NAMES = ["Abs", "add", "Relu"]


def public_graph():
    a = v1.placeholder(tf.float32, [None, 128], name="a")
    b = v1.placeholder(tf.float32, [None, 128], name="b")
    return a, b, tf.nn.relu(tf.abs(a) + b)


@pytest.fixture
def graph():
    with tf.Graph().as_default() as made:
        yield made


def values(rows=3):
    rng = np.random.RandomState(0)
    return rng.randn(rows, 128).astype("f"), rng.randn(rows, 128).astype("f")


def ran_nodes(native, session_config, recorder=None):
    with tf.Graph().as_default():
        a, b, y = public_graph()
        x, z = values()
        with v1.Session(config=session_config) as session:
            result, nodes = run_with_graph(session, y, {a: x, b: z})
    assert same_bits(result, np.maximum(np.abs(x) + z, 0))
    return nodes


@pytest.mark.parametrize("entry", ["NpuOptimizer", "AutofuseOptimizer"])
def test_an_entry_switches_the_pass_on(native, entry):
    seen = Recorder(lambda columns: [edit(columns, NAMES)]).install()
    nodes = ran_nodes(
        native, config(entry, use_off_line=True, graph_run_mode=0, share=0.5, precision_mode="force_fp16")
    )
    assert [n.name for n in fused_nodes(nodes)] == ["autofuse_test"]
    (context,) = seen.contexts
    assert context["entry"] == entry
    assert context["parameter_map"] == {
        "use_off_line": True,
        "graph_run_mode": 0,
        "share": 0.5,
        "precision_mode": "force_fp16",
    }
    assert isinstance(context["parameter_map"]["use_off_line"], bool)
    assert context["signature"] == {"feeds": ["a:0", "b:0"], "fetches": ["Relu:0"]}
    assert not context["is_function"] and context["session"] and context["session_handle"]


@pytest.mark.parametrize("entry", [None, "SomeoneElse"])
def test_without_an_entry_python_is_not_called(native, entry):
    asked = []
    native.set_wants(lambda context: asked.append(context) or True)
    seen = Recorder(lambda columns: [edit(columns, NAMES)]).install()
    assert not fused_nodes(ran_nodes(native, config(entry)))
    assert not asked and not seen.contexts


def test_a_real_npu_bridge_keeps_its_entry(native):
    seen = Recorder(lambda columns: [edit(columns, NAMES)]).install()
    native.set_options({"foreign_npu": True})
    assert not fused_nodes(ran_nodes(native, config("NpuOptimizer")))
    assert not seen.contexts
    assert fused_nodes(ran_nodes(native, config("AutofuseOptimizer")))


def test_an_unwanted_graph_is_the_same_bytes(native):
    plain = ran_nodes(native, config(None))
    seen = Recorder(lambda columns: [edit(columns, NAMES)]).install()
    native.set_wants(lambda context: False)
    dumps = []
    native.set_dump_callback(lambda *dump: dumps.append(dump))
    native.set_dump(True)
    off = ran_nodes(native, config("NpuOptimizer"))
    assert not seen.contexts and not dumps
    assert [n.SerializeToString(deterministic=True) for n in off] == [
        n.SerializeToString(deterministic=True) for n in plain
    ]


def test_no_edits_leave_the_same_bytes(native):
    plain = ran_nodes(native, config(None))
    Recorder(lambda columns: []).install()
    seen = ran_nodes(native, config("NpuOptimizer"))
    assert [n.SerializeToString(deterministic=True) for n in seen] == [
        n.SerializeToString(deterministic=True) for n in plain
    ]


def raises(columns):
    raise ValueError("a deliberate mistake")


BAD_PASSES = {
    "exception": raises,
    "no list": lambda columns: 7,
    "no dict": lambda columns: ["edit"],
    "missing key": lambda columns: [{"name": "x"}],
    "bad port": lambda columns: [dict(edit(columns, NAMES), inputs=[(1, 2, 3)])],
    "bad attr": lambda columns: [edit(columns, NAMES, guards=object())],
}


@pytest.mark.parametrize("name", sorted(BAD_PASSES))
def test_a_failing_pass_leaves_the_graph(native, name):
    Recorder(BAD_PASSES[name]).install()
    assert not fused_nodes(ran_nodes(native, config()))


@pytest.mark.parametrize("name", sorted(BAD_PASSES))
def test_strict_makes_a_failing_pass_an_error(native, name):
    Recorder(BAD_PASSES[name]).install()
    native.set_strict(True)
    with pytest.raises(tf.errors.OpError, match="tf_autofuse: ") as caught:
        ran_nodes(native, config())
    if name == "exception":
        assert "a deliberate mistake" in str(caught.value)


INTERRUPTED = """
import signal
import tensorflow
from tf_autofuse.frontend import _native as native
from tests.frontend.conftest import clear_hooks
from tests.frontend.native_session import Recorder, config, edit, fused_nodes
from tests.frontend.test_native_passes import NAMES, ran_nodes

def interrupted(columns):
    raise KeyboardInterrupt

signal.signal(signal.SIGINT, signal.default_int_handler)
clear_hooks(native)
Recorder(interrupted).install()
try:
    ran_nodes(native, config())
except KeyboardInterrupt:
    print("interrupted")
Recorder(lambda columns: [edit(columns, NAMES)]).install()
print("fused" if fused_nodes(ran_nodes(native, config())) else "as it was")
"""


def test_an_interrupted_pass_interrupts_the_script():
    """In a process of its own: an interrupt is the main thread's, which tests need not run in, and is ignored
    in what a shell has started in the background."""
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, timeout=120,
                          universal_newlines=True)
    assert done.stdout.split() == ["interrupted", "fused"]


def test_a_failing_wants_leaves_the_graph(native):
    native.set_wants(raises)
    seen = Recorder(lambda columns: [edit(columns, NAMES)]).install()
    assert not fused_nodes(ran_nodes(native, config()))
    assert not seen.contexts


def test_the_dump_has_the_graph_before_and_after(native):
    Recorder(lambda columns: [edit(columns, NAMES)]).install()
    dumps = []
    native.set_dump_callback(
        lambda stage, serialized, context: dumps.append((stage, serialized, context["entry"]))
    )
    ran_nodes(native, config())
    assert not dumps
    native.set_dump(True)
    ran_nodes(native, config())
    assert [(stage, entry) for stage, _, entry in dumps] == [
        ("before", "AutofuseOptimizer"),
        ("after", "AutofuseOptimizer"),
    ]
    before, after = (v1.GraphDef.FromString(serialized) for _, serialized, _ in dumps)
    assert {"Abs", "AddV2", "Relu"} <= {n.op for n in before.node}
    (fused,) = fused_nodes(after.node)
    assert fused.attr["asc_graph"].s == b"\x00\xffgraph"
    assert list(fused.attr["origin_nodes"].list.s) == [b"Abs", b"add", b"Relu"]
    (function,) = [f for f in after.library.function if f.signature.name == fused.attr["fallback"].func.name]
    assert sorted(n.name for n in function.node_def) == sorted(NAMES)


def test_columns_describe_the_graph(native, graph):
    seen = Recorder(lambda columns: []).install()
    a = v1.placeholder(tf.float32, [None, 4], name="a")
    c = tf.constant(np.arange(4, dtype="f"), name="c")
    with tf.control_dependencies([v1.placeholder(tf.int32, [], name="after") + 1]):
        y = tf.multiply(a, c, name="y")
    z = tf.cast(y, tf.bfloat16, name="z")
    table = v1.get_variable("table", [3], use_resource=False)
    with v1.Session(config=config(grappler=False)) as session:
        session.run(v1.global_variables_initializer())
        seen.columns.clear()
        session.run([z, y, table], {a: np.ones((2, 4)), "after:0": 3})
    (columns,) = seen.columns
    count = len(columns["names"])
    assert {len(columns[key]) for key in columns if key not in ("constants", "symbols")} == {count}
    at = {name: i for i, name in enumerate(columns["names"])}
    for node, sources in enumerate(columns["inputs"]):
        assert all(0 <= source < node for source, _ in sources)
    (a_at,) = [node for name, node in at.items() if name.startswith("_arg_a_0_")]
    assert columns["inputs"][at["y"]] == ((a_at, 0), (at["c"], 0))
    assert columns["ops"][at["y"]] == "Mul" and columns["attrs"][at["y"]]["T"] == 1
    (before,) = columns["control_inputs"][at["y"]]
    assert columns["ops"][before] in ("AddV2", "Identity")
    assert columns["out_dtypes"][at["z"]] == (14,) and columns["in_dtypes"][at["z"]] == (1,)
    assert columns["out_dtypes"][at["table"]] == (101,)
    assert columns["stateful"][at["table"]] and not columns["stateful"][at["y"]]
    value = columns["constants"][at["c"]]
    assert value.dtype == np.float32 and value.flags.owndata and value.tolist() == [0, 1, 2, 3]
    assert all(device.endswith("CPU:0") for device in columns["devices"])
    symbol = columns["out_shapes"][at["y"]][0][0]
    assert symbol < 0 and columns["out_shapes"][at["y"]] == ((symbol, 4),)
    assert columns["symbols"][-symbol - 1] == {"origin": "a:0", "dim": 0, "hint": None}


def test_constants_come_in_every_type_and_big_ones_do_not(native, graph):
    seen = Recorder(lambda columns: []).install()
    types = [
        tf.float32,
        tf.float64,
        tf.float16,
        tf.int8,
        tf.int16,
        tf.int32,
        tf.int64,
        tf.uint8,
        tf.uint16,
        tf.bool,
    ]
    fetched = []
    with tf.device("/cpu:0"):
        for dtype in types:
            fetched.append(tf.constant(np.array([0, 1], dtype.as_numpy_dtype), name="c_" + dtype.name))
        fetched.append(tf.constant(1.5, tf.bfloat16, name="c_bfloat16"))
        fetched.append(tf.constant("text", name="c_text"))
        fetched.append(tf.constant(np.arange(16384, dtype="f"), name="c_fits"))
        fetched.append(tf.constant(np.arange(16385, dtype="f"), name="c_big"))
        fetched.append(tf.zeros([0, 3], name="c_empty"))
    with v1.Session(config=config(grappler=False)) as session:
        session.run([f.op for f in fetched])
    got = {seen.columns[0]["names"][i]: value for i, value in seen.columns[0]["constants"].items()}
    for dtype in types:
        assert got["c_" + dtype.name].dtype == dtype.as_numpy_dtype and got["c_" + dtype.name].tolist() == [
            0,
            1,
        ]
    assert got["c_bfloat16"].dtype == np.uint16 and got["c_bfloat16"].item() == 0x3FC0
    assert got["c_fits"].shape == (16384,) and got["c_empty"].shape == (0, 3)
    assert "c_big" not in got and "c_text" not in got


def test_attributes_that_python_can_use(native, graph):
    seen = Recorder(lambda columns: []).install()
    x = v1.placeholder(tf.float32, [1, 4, 4, 1], name="x")
    with graph._attr_scope({"_disable_autofuse_scope": v1.AttrValue(b=True), "_secret": v1.AttrValue(i=1)}):
        y = tf.nn.max_pool2d(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME", name="y")
    with v1.Session(config=config(grappler=False)) as session:
        session.run(y, {x: np.ones((1, 4, 4, 1))})
    (columns,) = seen.columns
    attrs = columns["attrs"][columns["names"].index("y")]
    assert attrs["ksize"] == [1, 2, 2, 1] and attrs["padding"] == "SAME" and attrs["data_format"] == "NHWC"
    assert attrs["_disable_autofuse_scope"] is True and "_secret" not in attrs and attrs["T"] == 1


def test_what_grappler_leaves_unfolded_is_folded(native, graph):
    """With Grappler out of the way the constants' arithmetic is done before Python sees the graph."""
    seen = Recorder(lambda columns: [edit(columns, ["y", "z"])]).install()
    x = v1.placeholder(tf.float32, [None], name="x")
    scale = tf.exp(tf.constant([2.0]) * tf.constant([3.0]), name="scale")
    z = tf.abs(tf.multiply(x, scale, name="y"), name="z")
    with v1.Session(config=config(grappler=False)) as session:
        result, nodes = run_with_graph(session, z, {x: np.float32([1, -1])})
    assert "Exp" not in seen.columns[0]["ops"]
    (folded,) = seen.columns[0]["constants"].values()
    assert folded.shape == (1,) and abs(folded[0] - np.exp(6)) < 1e-3
    assert result.tolist() == [folded[0]] * 2 and fused_nodes(nodes)


def test_folding_is_off_where_the_user_switched_it_off(native, graph):
    seen = Recorder(lambda columns: []).install()
    x = v1.placeholder(tf.float32, [None], name="x")
    z = tf.abs(tf.multiply(x, tf.exp(tf.constant([2.0])), name="y"), name="z")
    proto = config(grappler=False)
    proto.graph_options.optimizer_options.opt_level = v1.OptimizerOptions.L0
    with v1.Session(config=proto) as session:
        session.run(z, {x: [1.0]})
    assert "Exp" in seen.columns[0]["ops"]


def test_two_sessions_have_their_own_parameters(native, graph):
    seen = Recorder(lambda columns: [edit(columns, NAMES)] if len(seen.contexts) % 2 else []).install()
    a, b, y = public_graph()
    x, z = values()
    with v1.Session(config=config(mode="one")) as one, v1.Session(config=config(mode="two")) as two:
        with v1.Session() as plain:
            results = [run_with_graph(s, y, {a: x, b: z}) for s in (one, two, plain)]
    assert [c["parameter_map"]["mode"] for c in seen.contexts] == ["one", "two"]
    assert seen.contexts[0]["session"] != seen.contexts[1]["session"]
    assert [len(fused_nodes(nodes)) for _, nodes in results] == [1, 0, 0]
    assert all(same_bits(result, results[0][0]) for result, _ in results)


def test_a_graph_extended_after_the_first_run(native, graph):
    seen = Recorder(lambda columns: [edit(columns, NAMES)] if "Relu" in columns["names"] else []).install()
    a, b, y = public_graph()
    x, z = values()
    with v1.Session(config=config()) as session:
        session.run(y, {a: x, b: z})
        c = v1.placeholder(tf.float32, [None, 128], name="c")
        more = y * c
        result, nodes = run_with_graph(session, more, {a: x, b: z, c: z})
    assert same_bits(result, np.maximum(np.abs(x) + z, 0) * z)
    assert fused_nodes(nodes)
    columns = seen.columns[-1]
    for feed in ("a", "b", "c"):
        (at,) = [i for i, name in enumerate(columns["names"]) if name.startswith("_arg_%s_0" % feed)]
        assert columns["out_shapes"][at][0][1] == 128


def test_partial_runs_feed_and_fetch_through_rendezvous(native, graph):
    seen = Recorder(lambda columns: []).install()
    a, b, y = public_graph()
    x, z = values()
    with v1.Session(config=config()) as session:
        handle = session.partial_run_setup([y], [a, b])
        assert same_bits(session.partial_run(handle, y, {a: x, b: z}), np.maximum(np.abs(x) + z, 0))
    (context,) = seen.contexts
    assert sorted(context["signature"]["feeds"]) == ["a:0", "b:0"] and context["signature"]["fetches"] == [
        "Relu:0"
    ]
    columns = seen.columns[0]
    assert columns["out_shapes"][columns["ops"].index("Abs")][0][1] == 128


@pytest.mark.parametrize("remapping", ["OFF", "ON"])
@pytest.mark.parametrize("arithmetic", ["OFF", "ON"])
@pytest.mark.parametrize("memory", ["NO_MEM_OPT", "HEURISTICS"])
def test_beside_grapplers_own_passes(native, remapping, arithmetic, memory):
    """Sessions for the NPU switch some of them off; both ways must fuse."""

    def choose(columns):
        names = [
            name
            for name, op in zip(columns["names"], columns["ops"])
            if op in ("Abs", "AddV2", "Relu", "Add")
        ]
        return [edit(columns, names)]

    Recorder(choose).install()
    proto = config()
    options = proto.graph_options.rewrite_options
    toggles = type(options)
    options.remapping = getattr(toggles, remapping)
    options.arithmetic_optimization = getattr(toggles, arithmetic)
    options.memory_optimization = getattr(toggles, memory)
    assert fused_nodes(ran_nodes(native, proto))


def test_a_traced_run_sees_the_fused_node_and_its_original_ops(native, graph):
    Recorder(lambda columns: [edit(columns, NAMES)]).install()
    a, b, y = public_graph()
    x, z = values()
    metadata = v1.RunMetadata()
    with v1.Session(config=config()) as session:
        session.run(
            y,
            {a: x, b: z},
            options=v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE),
            run_metadata=metadata,
        )
    traced = {node.node_name for device in metadata.step_stats.dev_stats for node in device.node_stats}
    assert "autofuse_test" in traced and "Relu" in traced


def test_a_local_server_runs_fused_graphs(native, graph):
    """A session through the distributed runtime, whose one worker is this process."""
    seen = Recorder(lambda columns: [edit(columns, NAMES)]).install()
    native.set_strict(True)
    a, b, y = public_graph()
    x, z = values()
    server = v1.train.Server.create_local_server()
    with v1.Session(server.target, config=config()) as session:
        for _ in range(2):
            assert same_bits(session.run(y, {a: x, b: z}), np.maximum(np.abs(x) + z, 0))
    assert len(seen.contexts) == 1 and not seen.contexts[0]["is_function"]
    assert sorted(seen.contexts[0]["signature"]["feeds"]) == ["a:0", "b:0"]
    assert not seen.rejections
