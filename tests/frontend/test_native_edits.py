"""Each reason to refuse an edit, and the function that keeps the original ops."""

import numpy as np
import pytest
import tensorflow as tf

from tests.frontend.native_session import edit, v1

pytestmark = pytest.mark.tensorflow


def chain():
    """x -> a -> b -> c, and d reads a and b; in a graph of its own."""
    x = v1.placeholder(tf.float32, [None], name="x")
    a = tf.abs(x, name="a")
    b = tf.exp(a, name="b")
    tf.sqrt(b, name="c")
    tf.add(a, b, name="d")
    tf.split(x, [1, 2], name="s")


class Editing:
    def __init__(self, native, build=chain):
        self.native = native
        with tf.Graph().as_default() as graph:
            build()
        self.definition = graph.as_graph_def()
        self.columns = native.graph_columns(self.definition.SerializeToString())
        self.at = {name: i for i, name in enumerate(self.columns["names"])}

    def edit(self, *names, **changes):
        made = edit(self.columns, names)
        attrs = changes.pop("attrs", {})
        made.update(changes)
        made["attrs"].update(attrs)
        return made

    def apply(self, *edits):
        serialized, rejections = self.native.apply_edits(self.definition.SerializeToString(), list(edits))
        return v1.GraphDef.FromString(serialized), rejections


def reason_of(native, build=chain, names=("a", "b"), **changes):
    editing = Editing(native, build)
    changes = {key: value(editing) if callable(value) else value for key, value in changes.items()}
    result, rejections = editing.apply(editing.edit(*names, **changes))
    (rejection,) = rejections
    by_name = {node.name: node for node in result.node}
    assert {node.name: node.SerializeToString(deterministic=True) for node in editing.definition.node} == {
        name: node.SerializeToString(deterministic=True) for name, node in by_name.items()
    }
    return rejection["reason"]


def test_an_edit_that_is_fine(native):
    editing = Editing(native)
    result, rejections = editing.apply(
        editing.edit(
            "a",
            "b",
            op="FusedAscBackend",
            attrs=dict(guards="s0 > 1", note="text", weight=2, share=0.5, flag=True, several=["p", "q"]),
        )
    )
    assert not rejections
    by_name = {node.name: node for node in result.node}
    assert not {"a", "b"} & set(by_name)
    fused = by_name["autofuse_test"]
    assert fused.op == "FusedAscBackend" and list(fused.input) == ["x"]
    assert list(by_name["d"].input) == ["autofuse_test", "autofuse_test:1"]
    assert list(by_name["c"].input) == ["autofuse_test:1"]
    attrs = fused.attr
    assert attrs["guards"].s == b"s0 > 1" and attrs["_note"].s == b"text" and attrs["_weight"].i == 2
    assert attrs["_share"].f == 0.5 and attrs["_flag"].b and list(attrs["_several"].list.s) == [b"p", b"q"]


@pytest.mark.parametrize(
    "expected, changes",
    [
        ("not AscBackend", dict(op="Abs")),
        ("not a valid node name", dict(name="")),
        ("not a valid node name", dict(name="with space")),
        ("not a valid node name", dict(name="_private")),
        ("is there already", dict(name="c")),
        ("no node or no output", dict(nodes=[])),
        ("no node or no output", dict(outputs=[])),
        ("no node has number 99", dict(nodes=[99])),
        ("no node has number -1", dict(nodes=[-1])),
        ("listed twice", dict(nodes=lambda e: [e.at["a"], e.at["a"]])),
        ("no input of the region", dict(inputs=[])),
        ("no node has number 77", dict(inputs=[(77, 0)])),
        ("has no output 3", dict(inputs=lambda e: [(e.at["x"], 3)])),
        ("inside of the region", dict(inputs=lambda e: [(e.at["x"], 0), (e.at["a"], 0)])),
        ("listed twice", dict(inputs=lambda e: [(e.at["x"], 0), (e.at["x"], 0)])),
        ("read by no node", dict(inputs=lambda e: [(e.at["x"], 0), (e.at["c"], 0)])),
        ("no output of the region", dict(outputs=lambda e: [(e.at["b"], 0)])),
        ("not of the region", dict(outputs=lambda e: [(e.at["a"], 0), (e.at["b"], 0), (e.at["x"], 0)])),
        ("has no output 1", dict(outputs=lambda e: [(e.at["a"], 0), (e.at["b"], 1)])),
        ("listed twice", dict(outputs=lambda e: [(e.at["a"], 0), (e.at["b"], 0), (e.at["b"], 0)])),
    ],
)
def test_what_does_not_hold_together_is_refused(native, expected, changes):
    assert expected in reason_of(native, **changes)


def test_an_edit_without_a_kernel_key_is_refused(native):
    editing = Editing(native)
    made = editing.edit("a", "b")
    del made["attrs"]["kernel_key"]
    result, (rejection,) = editing.apply(made)
    assert "kernel_key" in rejection["reason"] and "a" in [node.name for node in result.node]


def test_a_region_that_was_replaced_is_gone(native):
    editing = Editing(native)
    again = editing.edit("b", "c", name="again")
    _, (rejection,) = editing.apply(editing.edit("a", "b"), again)
    assert rejection["name"] == "again" and "earlier region" in rejection["reason"]

    def straight():
        x = v1.placeholder(tf.float32, [None], name="x")
        tf.sqrt(tf.exp(tf.abs(x, name="a"), name="b"), name="c")

    editing = Editing(native, straight)
    _, rejections = editing.apply(
        editing.edit("a", "b"),
        editing.edit("c", name="hidden", inputs=[(editing.at["a"], 0)], outputs=[(editing.at["c"], 0)]),
    )
    assert "hidden in an earlier region" in rejections[0]["reason"]


def loop():
    x = v1.placeholder(tf.float32, [None], name="x")
    tf.abs(x, name="outside")

    def body(i, v):
        free = tf.fill([3], 1.0, name="free")
        return i + 1, tf.exp(v, name="inside") * free

    v1.while_loop(lambda i, _: i < 3, body, [tf.constant(0), x])


def test_frames_do_not_mix(native):
    assert "another while frame" in reason_of(native, loop, ("outside", "while/inside"))
    reason = reason_of(native, loop, ("while/free", "while/free/dims", "while/free/value"))
    assert "needs a data input" in reason


def test_control_flow_and_state_stay(native):
    assert "directs the graph's flow" in reason_of(native, loop, ("while/inside", "while/Switch_1"))

    def random():
        tf.exp(tf.random.uniform([3], name="u"), name="e")
        tf.abs(v1.get_default_graph().get_tensor_by_name("e:0"), name="reader")

    assert "stateful" in reason_of(native, random, ("u/RandomUniform", "e"))


def test_the_fallback_function_is_the_region(native):
    def names_that_clash():
        x = v1.placeholder(tf.float32, [None], name="x")
        y = v1.placeholder(tf.float32, [None], name="y")
        first = tf.add(x, y, name="scope/i0")
        one, two = tf.split(first, 2, name="i1")
        tf.identity(tf.add(one, two, name="sum"), name="reads")
        tf.identity(two, name="reads_too")

    editing = Editing(native, names_that_clash)
    result, rejections = editing.apply(
        editing.edit("scope/i0", "i1", "i1/split_dim", "sum", name="autofuse_f")
    )
    assert not rejections
    (fused,) = [node for node in result.node if node.op == "AscBackend"]
    (function,) = result.library.function
    assert function.signature.name == fused.attr["fallback"].func.name
    assert function.signature.name.startswith("__autofuse_fallback_no_kernel_")
    arguments = [a.name for a in function.signature.input_arg]
    assert len(arguments) == 2 and not set(arguments) & {n.name for n in function.node_def}
    assert [o.type for o in function.signature.output_arg] == [1, 1]
    by_name = {n.name: n for n in function.node_def}
    assert list(by_name["scope/i0"].input) == arguments
    assert list(by_name["sum"].input) == ["i1:output:0", "i1:output:1"]
    assert not any(n.device for n in function.node_def)
    with tf.Graph().as_default() as graph:
        tf.load_op_library(native.__file__)
        tf.import_graph_def(result, name="")
        with v1.Session(graph=graph) as session:
            values = np.arange(6, dtype="f")
            total, second = session.run(["reads:0", "reads_too:0"], {"x:0": values, "y:0": values})
    assert total.tolist() == [6, 10, 14] and second.tolist() == [6, 8, 10]


def test_colocation_attributes_do_not_travel_into_the_function(native):
    def colocated():
        x = v1.placeholder(tf.float32, [None], name="x")
        a = tf.abs(x, name="a")
        with v1.colocate_with(x.op):
            tf.identity(tf.exp(a, name="b"), name="reads")

    editing = Editing(native, colocated)
    result, rejections = editing.apply(editing.edit("a", "b"))
    assert not rejections
    assert not [n for n in result.library.function[0].node_def if "_class" in n.attr]


def shaped():
    """r = reshape(b, s), s made of a's shape; others may read parts of the chain."""
    x = v1.placeholder(tf.float32, [None, 4], name="x")
    a = tf.abs(x, name="a")
    s = tf.multiply(tf.shape(a, name="shape"), 1, name="s")
    tf.reshape(tf.exp(a, name="b"), s, name="r")


def shaped_and_read():
    shaped()
    tf.negative(tf.get_default_graph().get_tensor_by_name("s:0"), name="other")


def copying(editing, names=("a", "b", "r"), copies=("shape", "s", "s/y"), **changes):
    outside = [tuple(t) for n in copies for t in editing.columns["inputs"][editing.at[n]]]
    inside = {editing.at[n] for n in tuple(names) + tuple(copies)}
    made = editing.edit(*names, copies=[editing.at[n] for n in copies], **changes)
    made["inputs"] = [t for t in made["inputs"] if t[0] not in inside]
    made["inputs"] += [t for t in outside if t[0] not in inside and t not in made["inputs"]]
    return made


def test_copies_that_nothing_else_reads_go_with_the_region(native):
    editing = Editing(native, shaped)
    result, rejections = editing.apply(copying(editing, outputs=[(editing.at["r"], 0)]))
    assert not rejections
    assert {n.name for n in result.node} == {"x", "autofuse_test"}
    (function,) = result.library.function
    assert {n.name for n in function.node_def} == {"a", "b", "r", "shape", "s", "s/y"}


def test_copies_that_something_else_reads_stay(native):
    """The region gives a, which the Shape that stays reads; that is no cycle, as the fused node reads no
    Shape."""
    editing = Editing(native, shaped_and_read)
    result, rejections = editing.apply(copying(editing, outputs=[(editing.at["r"], 0), (editing.at["a"], 0)]))
    assert not rejections
    by_name = {n.name: n for n in result.node}
    assert set(by_name) == {"x", "autofuse_test", "shape", "s", "s/y", "other"}
    assert list(by_name["shape"].input) == ["autofuse_test:1"]
    assert list(by_name["autofuse_test"].input) == ["x"]
    (function,) = result.library.function
    assert {n.name for n in function.node_def} == {"a", "b", "r", "shape", "s", "s/y"}


def test_what_a_copy_that_stays_reads_must_be_an_output(native):
    editing = Editing(native, shaped_and_read)
    _, (rejection,) = editing.apply(copying(editing, outputs=[(editing.at["r"], 0)]))
    assert "shape reads a:0, which is no output" in rejection["reason"]


@pytest.mark.parametrize(
    "copies, expected",
    [(("s", "s/y"), "s reads shape:0, which is no input"), (("shape", "s", "s/y", "s"), "listed twice")],
)
def test_copies_are_checked_as_nodes_are(native, copies, expected):
    editing = Editing(native, shaped)
    made = copying(editing, outputs=[(editing.at["r"], 0)])
    made["copies"] = [editing.at[n] for n in copies]
    _, (rejection,) = editing.apply(made)
    assert expected in rejection["reason"]


def reshaped():
    """x reshaped to a shape that the graph computes; the size alone is read elsewhere too."""
    x = v1.placeholder(tf.float32, [None, 4], name="x")
    rows = tf.strided_slice(tf.shape(x, name="shape"), [0], [1], shrink_axis_mask=1, name="rows")
    stacked = tf.stack([rows, 4], name="stack")
    tf.reshape(x, stacked, name="y")
    tf.multiply(rows, 2, name="twice")


def constant_edit(editing, **changes):
    chain = [editing.at[name] for name in ("shape", "rows", "stack")]
    made = dict(name="y/known", op="Const", nodes=[editing.at["y"]], slot=1, elements=[-1, 4], scalar=False,
                dtype=3, copies=chain)  # fmt: skip
    made.update(changes)
    return made


def test_a_constant_in_the_place_of_what_is_known(native):
    editing = Editing(native, reshaped)
    result, rejections = editing.apply(constant_edit(editing))
    assert not rejections
    by_name = {node.name: node for node in result.node}
    assert list(by_name["y"].input) == ["x", "y/known"]
    assert tf.make_ndarray(by_name["y/known"].attr["value"].tensor).tolist() == [-1, 4]
    # What something else reads stays.
    assert "stack" not in by_name and {"shape", "rows", "twice"} <= set(by_name)
    assert by_name["y/known"].attr["dtype"].type == tf.int32.as_datatype_enum


@pytest.mark.parametrize(
    "changes", [dict(nodes=[99]), dict(nodes=[]), dict(slot=2), dict(dtype=9), dict(name="y")]
)
def test_a_constant_that_does_not_fit(native, changes):
    editing = Editing(native, reshaped)
    result, rejections = editing.apply(constant_edit(editing, **changes))
    assert len(rejections) == 1
    assert {node.name for node in result.node} == {node.name for node in editing.definition.node}


def test_a_constant_is_made_of_integers(native):
    editing = Editing(native, reshaped)
    for changes in (dict(dtype=1), dict(scalar=True)):
        with pytest.raises(TypeError, match="int32 or int64"):
            editing.apply(constant_edit(editing, **changes))
