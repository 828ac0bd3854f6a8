"""Fused regions among control edges, branches, loops, variables and functions: nobody outside may notice.

No kernel is registered here: every fused node runs its region's original ops, so each result must be
TensorFlow's to the bit, however wild the fusion.
"""

import numpy as np
import pytest
import tensorflow as tf

from tests.frontend.native_session import (
    Recorder,
    config,
    edit,
    fused_nodes,
    greedy_edits,
    run_with_graph,
    same_bits,
    v1,
)

pytestmark = pytest.mark.tensorflow


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def compare(
    native, fetches, feeds=None, prepare=None, at_least=1, choose=greedy_edits, grappler=False, twice=True
):
    """Runs plainly and fused and compares bits. Returns (recorder, nodes that ran fused)."""
    plain_config = config(None, grappler=grappler)
    with v1.Session(config=plain_config) as plain:
        if prepare is not None:
            plain.run(prepare)
        wanted = [plain.run(fetches, feeds) for _ in range(2 if twice else 1)]
    seen = Recorder(choose).install()
    native.set_strict(True)
    with v1.Session(config=config(grappler=grappler)) as fused:
        if prepare is not None:
            fused.run(prepare)
        first, nodes = run_with_graph(fused, fetches, feeds)
        got = [first] + ([fused.run(fetches, feeds)] if twice else [])
    for a, b in zip(tf.nest.flatten(wanted), tf.nest.flatten(got)):
        if a is not None:
            assert same_bits(a, b)
    assert len(fused_nodes(nodes)) >= at_least
    return seen, nodes


def x_feed(shape=(None, 4)):
    x = v1.placeholder(tf.float32, list(shape), name="x")
    return x, {x: np.random.RandomState(1).randn(*[3 if d is None else d for d in shape]).astype("f")}


def test_fetched_intermediates(native):
    x, feeds = x_feed()
    a = tf.abs(x, name="a")
    b = tf.exp(a, name="b")
    c = tf.sqrt(b, name="c")
    seen, nodes = compare(native, [c, a, b, a], feeds)
    assert [len(node.attr["Tout"].list.type) for node in fused_nodes(nodes)] == [3]


def test_each_intermediate_fed_in_turn(native):
    x, feeds = x_feed()
    chain = [tf.abs(x)]
    for op in (tf.exp, tf.sqrt, tf.negative, tf.sigmoid):
        chain.append(op(chain[-1]))
    for position, tensor in enumerate(chain[:-1]):
        fed = {tensor: np.full((2, 4), 0.5 + position, "f")}
        compare(native, chain[position:], {**feeds, **fed}, at_least=position < len(chain) - 2)


def test_control_edges_in_and_out_are_kept_once(native):
    x, feeds = x_feed()
    v = v1.get_variable("v", initializer=np.float32([1, 2, 3, 4]), use_resource=True)
    before = v.assign_add([1.0] * 4)
    with tf.control_dependencies([before]):
        a = tf.abs(x, name="a")
        b = tf.exp(a, name="b")
    with tf.control_dependencies([b, a]):
        after = v.read_value()
    both = [b, after]
    seen, nodes = compare(
        native,
        both,
        feeds,
        prepare=v.initializer,
        choose=lambda c: [edit(c, ["a", "b"])] if "b" in c["names"] else [],
    )
    (fused,) = fused_nodes(nodes)
    control = [i for i in fused.input if i.startswith("^")]
    assert len(control) == len(set(control)) == 1
    followers = [n for n in nodes if "^" + fused.name in n.input]
    assert followers and all(list(n.input).count("^" + fused.name) == 1 for n in followers)


def test_a_control_edge_that_closes_a_cycle(native):
    """a -> (control) -> middle -> b: fusing a and b would wait for middle, which waits for a."""
    x, feeds = x_feed()
    a = tf.abs(x, name="a")
    with tf.control_dependencies([a]):
        middle = v1.py_func(lambda v: v + 1, [x], tf.float32, name="middle")
    middle.set_shape([None, 4])
    b = tf.add(tf.exp(a, name="e"), middle, name="b")
    seen, _ = compare(native, b, feeds, at_least=0, choose=lambda c: [edit(c, ["a", "b", "e"])])
    assert len(seen.rejections) == 1 and "cycle" in seen.rejections[0]["reason"]
    assert seen.rejections[0]["name"] == "autofuse_test"


def test_a_diamond_around_an_outside_node(native):
    x, feeds = x_feed()
    a = tf.abs(x, name="a")
    outside = tf.matmul(a, tf.eye(4), name="outside")
    b = tf.add(a, outside, name="b")
    c = tf.exp(b, name="c")
    seen, nodes = compare(
        native,
        [c, a],
        feeds,
        choose=lambda cols: [edit(cols, ["a", "b"], name="bad"), edit(cols, ["b", "c"], name="good")],
    )
    assert [r["name"] for r in seen.rejections] == ["bad"]
    assert [n.name for n in fused_nodes(nodes)] == ["good"]


def test_two_regions_that_only_together_make_a_cycle(native):
    """p1 -> q1 and q2 -> p2: each region alone is fine, both are not."""
    x, feeds = x_feed()
    p1, q2 = tf.abs(x, name="p1"), tf.exp(x, name="q2")
    q1, p2 = tf.sqrt(p1, name="q1"), tf.negative(q2, name="p2")
    seen, nodes = compare(
        native,
        [q1, p2],
        feeds,
        choose=lambda cols: [edit(cols, ["p1", "p2"], name="p"), edit(cols, ["q1", "q2"], name="q")],
    )
    assert [r["name"] for r in seen.rejections] == ["q"] and "cycle" in seen.rejections[0]["reason"]
    assert [n.name for n in fused_nodes(nodes)] == ["p"]


def test_regions_in_a_chain_read_each_other(native):
    x, feeds = x_feed()
    tensor = x
    for number in range(6):
        tensor = tf.sigmoid(tensor, name="s%d" % number)
    seen, nodes = compare(
        native,
        tensor,
        feeds,
        choose=lambda cols: [
            edit(cols, ["s4", "s5"], name="third"),
            edit(cols, ["s0", "s1"], name="first"),
            edit(cols, ["s2", "s3"], name="second"),
        ],
    )
    assert not seen.rejections and len(fused_nodes(nodes)) == 3
    by_name = {n.name: n for n in nodes}
    assert by_name["third"].input[0] == "second" and by_name["second"].input[0] == "first"


@pytest.mark.parametrize("predicate", [True, False])
def test_cond_branches(native, predicate):
    x, feeds = x_feed()
    choice = v1.placeholder(tf.bool, [], name="choice")
    before = tf.exp(tf.abs(x))
    result = v1.cond(choice, lambda: tf.sqrt(tf.exp(before)) + 1.0, lambda: tf.negative(tf.abs(x)) * 2.0)
    after = tf.sigmoid(tf.exp(result * 0.1))
    seen, nodes = compare(native, [after, before], {**feeds, choice: predicate}, at_least=3)
    classes = {name: seen.columns[0]["liveness"][i] for i, name in enumerate(seen.columns[0]["names"])}
    assert classes["cond/Exp"] == classes["cond/Sqrt"] != classes["cond/Neg"] == classes["cond/Abs"]
    assert classes["Abs"] == classes["Sigmoid"] == classes["cond/Merge"] == 0
    assert 0 not in (classes["cond/Exp"], classes["cond/Neg"])


@pytest.mark.parametrize("value, inner", [(1.0, 1.0), (1.0, -1.0), (-1.0, 1.0)])
def test_branches_of_predicates_that_are_fused_before_them(native, value, inner):
    """Moving a predicate into a fused node doesn't change under which conditions its branches run."""
    x = v1.placeholder(tf.float32, [None, 4], name="x")
    y = v1.placeholder(tf.float32, [], name="y")

    def nested():
        deep = tf.exp(x, name="deep")
        choice = tf.less(tf.abs(y * 2.0, name="twice"), deep[0, 0] + y, name="choice_in")
        return v1.cond(
            choice,
            lambda: tf.sqrt(tf.sigmoid(deep, name="yes_0"), name="yes_1"),
            lambda: tf.tanh(tf.abs(deep, name="no_0"), name="no_1"),
        )

    choice = tf.greater(tf.negative(tf.reduce_sum(x), name="minus"), 0.0, name="choice_out")
    result = v1.cond(choice, lambda: tf.negative(tf.square(x, name="other_0"), name="other_1"), nested)
    pairs = [("minus", "choice_out"), ("other_0", "other_1"), ("twice", "choice_in")]
    pairs += [("yes_0", "yes_1"), ("no_0", "no_1")]

    def choose(columns):
        full = {name.rsplit("/", 1)[-1]: name for name in columns["names"]}
        return [edit(columns, [full[n] for n in pair], name="pair_%d" % i) for i, pair in enumerate(pairs)]

    feeds = {x: np.full((3, 4), value, "f"), y: np.float32(inner)}
    seen, _ = compare(native, result, feeds, at_least=len(pairs), choose=choose)
    assert not seen.rejections


@pytest.mark.parametrize("predicate", [True, False])
def test_an_output_may_not_die_with_a_branch(native, predicate):
    """Without a look at liveness, `live` would be dead whenever the branch is not taken."""
    x, feeds = x_feed()
    choice = v1.placeholder(tf.bool, [], name="choice")
    live = tf.abs(x, name="live")
    no, yes = tf.raw_ops.Switch(data=x, pred=choice)
    mixed = tf.add(live, yes, name="mixed")
    other = tf.exp(no, name="other")
    result = tf.raw_ops.Merge(inputs=[mixed, other]).output
    fused = [live, result]
    seen, nodes = compare(
        native,
        fused,
        {**feeds, choice: predicate},
        at_least=0,
        choose=lambda cols: [edit(cols, ["live", "mixed"])],
    )
    assert "conditions" in seen.rejections[0]["reason"]
    # Where nobody outside reads `live`, one node for both is right: it dies with `mixed`.
    seen, nodes = compare(
        native,
        result,
        {**feeds, choice: predicate},
        at_least=1,
        choose=lambda cols: [edit(cols, ["live", "mixed"])],
    )
    assert not seen.rejections


def test_while_loops(native):
    x, feeds = x_feed()
    limit = v1.placeholder(tf.int32, [], name="limit")
    outside = tf.exp(tf.negative(tf.abs(x)))

    def body(i, value, grown):
        value = tf.sigmoid(tf.exp(value * 0.5) - outside)
        return i + 1, value, tf.concat([grown, tf.abs(tf.negative(value))], 0)

    _, value, grown = v1.while_loop(
        lambda i, *_: i < limit,
        body,
        [tf.constant(0), x, x],
        shape_invariants=[tf.TensorShape([]), x.shape, tf.TensorShape([None, 4])],
    )
    result = tf.sqrt(tf.abs(value))
    seen, nodes = compare(native, [result, grown], {**feeds, limit: 5}, at_least=3)
    columns = seen.columns[0]
    frames = set(columns["frames"])
    assert len(frames) == 2 and "" in frames
    inside = [i for i, frame in enumerate(columns["frames"]) if frame and columns["ops"][i] == "Sigmoid"]
    assert len(inside) == 1
    for frame in fused_nodes(nodes):
        assert frame.name.startswith("autofuse_greedy")


def test_nested_loops_and_a_cond_inside(native):
    x, feeds = x_feed()

    def inner(j, value):
        return j + 1, v1.cond(
            tf.equal(j % 2, 0),
            lambda: tf.exp(tf.negative(tf.abs(value))),
            lambda: tf.sqrt(tf.abs(value)) + 0.5,
        )

    def outer(i, value):
        _, value = v1.while_loop(lambda j, _: j < 3, inner, [tf.constant(0), value])
        return i + 1, tf.sigmoid(tf.exp(value))

    _, value = v1.while_loop(lambda i, _: i < 4, outer, [tf.constant(0), x])
    seen, _ = compare(native, tf.exp(tf.abs(value)), feeds, at_least=3)
    assert max(frame.count("/") for frame in seen.columns[0]["frames"]) >= 1
    assert len(set(seen.columns[0]["frames"])) == 3


def test_gradients_through_a_loop_and_a_cond(native):
    x, feeds = x_feed()
    choice = v1.placeholder(tf.bool, [], name="choice")
    w = v1.get_variable("w", initializer=np.float32(np.eye(4)), use_resource=True)
    _, value = v1.while_loop(
        lambda i, _: i < 3,
        lambda i, v: (i + 1, tf.tanh(tf.matmul(v, w)) * 0.5 + tf.abs(v)),
        [tf.constant(0), x],
    )
    value = v1.cond(choice, lambda: tf.exp(tf.negative(value)) * 2.0, lambda: tf.square(value) + 1.0)
    loss = tf.reduce_sum(tf.square(value))
    (gradient,) = tf.gradients(loss, [w])
    for taken in (True, False):
        compare(native, [loss, gradient], {**feeds, choice: taken}, prepare=w.initializer, at_least=3)


@pytest.mark.parametrize("resource", [True, False])
def test_variables_and_training(native, resource):
    x, feeds = x_feed()
    w = v1.get_variable("w", initializer=np.float32(np.eye(4)), use_resource=resource)
    loss = tf.reduce_mean(tf.square(tf.sigmoid(tf.abs(tf.matmul(x, w)) - 0.3)))
    step = v1.train.AdamOptimizer(0.1).minimize(loss)
    init = v1.global_variables_initializer()
    compare(native, [loss, step], feeds, prepare=init, at_least=2, choose=lambda c: greedy_edits(c, limit=2))
    trained = []
    for entry in (None, "AutofuseOptimizer"):
        with v1.Session(config=config(entry)) as session:
            session.run(init)
            for _ in range(5):
                session.run(step, feeds)
            trained.append(session.run(w))
    assert np.allclose(trained[0], trained[1], rtol=1e-6) and not np.allclose(trained[0], np.eye(4))


def test_refs_and_stateful_ops_are_never_taken(native):
    x, feeds = x_feed()
    w = v1.get_variable("w", initializer=np.float32([1, 2, 3, 4]), use_resource=False)
    y = tf.add(x, w._ref(), name="y")
    z = tf.exp(tf.negative(y, name="n"), name="z")
    r = tf.add(tf.random.uniform([3, 4], seed=1, name="u"), z, name="r")

    def choose(columns):
        edits = [edit(columns, ["y", "n"], name="reads_a_ref"), edit(columns, ["n", "z"], name="fine")]
        random = [name for name, op in zip(columns["names"], columns["ops"]) if op == "RandomUniform"]
        return edits + [edit(columns, random + ["r"], name="random")] if random else []

    seen, nodes = compare(
        native,
        z,
        feeds,
        prepare=w.initializer,
        at_least=0,
        choose=lambda c: ([edit(c, ["y", "n"], name="reads_a_ref")] if "y" in c["names"] else []),
    )
    assert "reference" in seen.rejections[0]["reason"]
    seen = Recorder(lambda c: choose(c) if "r" in c["names"] else []).install()
    with v1.Session(config=config(grappler=False)) as session:
        session.run(w.initializer)
        _, nodes = run_with_graph(session, [r, z], feeds)
    reasons = {rejection["name"]: rejection["reason"] for rejection in seen.rejections}
    assert "stateful" in reasons["random"] and set(reasons) == {"reads_a_ref", "random"}
    assert [n.name for n in fused_nodes(nodes)] == ["fine"]


def test_other_devices_are_left_alone(native):
    x, feeds = x_feed()
    with tf.device("/cpu:0"):
        a = tf.abs(x, name="a")
    with tf.device("/cpu:1"):
        b = tf.exp(a, name="b")
        c = tf.negative(b, name="c")
    seen = Recorder(
        lambda cols: [edit(cols, ["a", "b"], name="two"), edit(cols, ["b", "c"], name="one")]
    ).install()
    proto = config(grappler=False)
    proto.device_count["CPU"] = 2
    with v1.Session(config=proto) as session:
        result, nodes = run_with_graph(session, c, feeds)
    assert np.allclose(result, -np.exp(np.abs(feeds[x])))
    assert [r["name"] for r in seen.rejections] == ["two"] and "CPU:1" in seen.rejections[0]["reason"]
    (fused,) = fused_nodes(nodes)
    assert fused.name == "one" and fused.device.endswith("CPU:1")


def test_colocation_groups_do_not_matter(native):
    x, feeds = x_feed()
    a = tf.abs(x, name="a")
    with v1.colocate_with(a.op):
        b = tf.exp(a, name="b")
    c = tf.sqrt(b, name="c")
    with v1.colocate_with(b.op):
        d = tf.identity(tf.negative(c), name="d")
    seen, _ = compare(native, d, feeds, choose=lambda cols: [edit(cols, ["a", "b"])])
    at = seen.columns[0]["names"].index("b")
    assert seen.columns[0]["colocation"][at] == ("loc:@a",)


def calls_in(graph_nodes):
    return [node.op for node in graph_nodes if node.op.endswith("PartitionedCall")]


@pytest.mark.parametrize("grappler", [True, False])
def test_a_function_body_goes_through_the_pass(native, grappler):
    x, feeds = x_feed()

    @tf.function(autograph=False)
    def inner(v):
        return tf.exp(tf.negative(tf.abs(v)))

    @tf.function(autograph=False)
    def outer(v):
        return tf.sqrt(tf.exp(inner(v) + 1.0))

    result = tf.negative(outer(x))
    seen = Recorder(greedy_edits).install()
    native.set_strict(True)
    with v1.Session(config=config(grappler=grappler, mode="mine")) as session:
        first, nodes = run_with_graph(session, result, feeds)
        second = session.run(result, feeds)
    with v1.Session() as plain:
        wanted = plain.run(result, feeds)
    assert calls_in(nodes) and np.allclose(first, wanted, rtol=1e-6) and same_bits(first, second)
    functions = [
        (context, columns) for context, columns in zip(seen.contexts, seen.columns) if context["is_function"]
    ]
    assert functions and not seen.rejections
    for context, columns in functions:
        assert context["parameter_map"] == {"mode": "mine"} and context["entry"] == "AutofuseOptimizer"
        assert "outer" in context["function_name"] or "inner" in context["function_name"]
        (argument,) = [i for i, op in enumerate(columns["ops"]) if op == "_Arg"]
        assert columns["out_shapes"][argument][0][1:] == (4,)  # told by the one caller
    assert any(
        "Exp" in columns["ops"] or "_UnaryOpsComposition" in columns["ops"] for _, columns in functions
    )


def test_a_function_with_two_callers_keeps_its_arguments_open(native):
    x, feeds = x_feed()

    @tf.function(autograph=False, input_signature=[tf.TensorSpec(None, tf.float32)])
    def body(v):
        return tf.sqrt(tf.exp(tf.abs(v)))

    result = [body(x), body(tf.reshape(x, [-1]))]
    seen = Recorder(greedy_edits).install()
    native.set_strict(True)
    with v1.Session(config=config(grappler=False)) as session:
        first, second = session.run(result, feeds)
    assert same_bits(first.reshape(-1), second)
    functions = [columns for context, columns in zip(seen.contexts, seen.columns) if context["is_function"]]
    assert functions
    for columns in functions:
        assert columns["out_shapes"][columns["ops"].index("_Arg")] == (None,)


def test_functions_of_a_session_that_did_not_ask_are_left_alone(native):
    x, feeds = x_feed()

    @tf.function(autograph=False)
    def body(v):
        return tf.sqrt(tf.exp(tf.abs(v)))

    result = body(x)
    seen = Recorder(greedy_edits).install()
    with v1.Session(config=config(grappler=False)) as session:
        session.run(result, feeds)
    asked = len(seen.contexts)
    assert asked == 2
    with v1.Session(config=config(None, grappler=False)) as plain:
        plain.run(result, feeds)
    assert len(seen.contexts) == asked


def test_functions_claimed_by_xla_are_left_alone(native):
    x, feeds = x_feed()

    @tf.function(autograph=False, experimental_compile=True)
    def body(v):
        return tf.sqrt(tf.exp(tf.abs(v)))

    result = tf.negative(body(x))
    seen = Recorder(greedy_edits).install()
    with v1.Session(config=config(grappler=False)) as session:
        fused = session.run(result, feeds)
    assert not [c for c in seen.contexts if c["is_function"]]
    with v1.Session() as plain:
        assert np.allclose(fused, plain.run(result, feeds), rtol=1e-5)
