"""Branches that no run takes: gone where their predicate is a constant, and nobody may notice but by speed.

Every graph runs plainly and with a pass that fuses greedily; fused nodes have no kernel and run their
original ops, so that each result must be TensorFlow's to the bit.
"""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.ops import cond_v2

from tests.frontend.native_session import Recorder, config, greedy_edits, run_with_graph, same_bits, v1

pytestmark = pytest.mark.tensorflow
FLOW = {"Switch", "Merge", "RefSwitch", "RefMerge"}


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def x_feed():
    x = v1.placeholder(tf.float32, [None, 4], name="x")
    return x, {x: np.random.RandomState(1).randn(3, 4).astype("f")}


def ops_of(native, fetches, feeds=None, prepare=None, after=()):
    """The ops of the graph that Python gets, once the results are known to be TensorFlow's.

    `prepare` runs before, and what `after` gives once all has run counts as a result too.
    """
    results, seen = [], Recorder(greedy_edits)
    for entry in (None, "AutofuseOptimizer"):
        if entry:
            seen.install()
            native.set_strict(True)
        with v1.Session(config=config(entry, grappler=False)) as session:
            if prepare is not None:
                session.run(prepare)
            results.append([run_with_graph(session, fetches, feeds)[0] for _ in range(2)])
            # The last graph that Python gets is of the fetches.
            ops = seen.columns[-1]["ops"] if entry else None
            results[-1].append(session.run(after))
    for a, b in zip(*map(tf.nest.flatten, results)):
        assert same_bits(a, b)
    return ops


@pytest.mark.parametrize("value", [True, False])
def test_a_decided_cond_is_its_branch(native, value):
    x, feeds = x_feed()
    before = tf.exp(tf.abs(x))
    useless = tf.reduce_sum(before, 0)

    def yes():
        inner = v1.cond(tf.constant(False), lambda: tf.tan(before), lambda: tf.sqrt(before))
        return inner + 1.0

    result = v1.cond(tf.constant(value), yes, lambda: tf.negative(before) * tf.abs(useless))
    ops = ops_of(native, tf.sigmoid(tf.exp(result)), feeds)
    assert not FLOW.intersection(ops) and "Tan" not in ops
    # What only the dead branch reads does not run either.
    assert ("Sum" in ops) != value and ("Sqrt" in ops) == value
    assert "Identity" not in ops


def test_several_outputs_and_which_branch_it_was(native):
    x, feeds = x_feed()
    no, yes = tf.raw_ops.Switch(data=x, pred=tf.constant(False))
    merge = tf.raw_ops.Merge(inputs=[tf.exp(yes), tf.abs(no) + 1.0])
    ops = ops_of(native, [tf.sqrt(merge.output) * 2.0, merge.value_index + 5, no], feeds)
    assert not FLOW.intersection(ops) and "Exp" not in ops


def test_an_order_is_kept(native):
    """State in the dead branch stays as it is; a control edge to and from what goes still orders."""
    x, feeds = x_feed()
    counter = v1.get_variable("counter", initializer=0.0, use_resource=True)
    taken, first = tf.constant(True), counter.assign_add(1.0)
    with tf.control_dependencies([first]):
        no, yes = tf.raw_ops.Switch(data=x, pred=taken)
    with tf.control_dependencies([tf.identity(no)]):
        never = counter.assign_add(100.0)
    with tf.control_dependencies([no]):  # the Switch itself runs
        second = counter.assign_add(10.0)
    with tf.control_dependencies([never]):
        dead = tf.abs(no) * 3.0
    with tf.control_dependencies([first]):  # an order keeps no Merge alive
        dead = tf.raw_ops.Merge(inputs=[dead, tf.exp(no)]).output
    merged = tf.raw_ops.Merge(inputs=[dead, tf.exp(yes)]).output
    with tf.control_dependencies([merged, second]):
        read = tf.abs(counter.read_value()) + 1.0
    ops = ops_of(native, [tf.sqrt(merged) + 1.0, read], feeds, prepare=counter.initializer)
    assert not FLOW.intersection(ops)
    assert ops.count("AssignAddVariableOp") == 2


def test_an_order_next_to_what_is_fused(native):
    """What keeps the place of a Switch or a Merge reads what is fused, and is named as its reader."""
    x, feeds = x_feed()
    counter = v1.get_variable("counter", initializer=0.0, use_resource=True)
    no, yes = tf.raw_ops.Switch(data=tf.abs(x) + 1.0, pred=tf.constant(True))
    with tf.control_dependencies([no]):
        first = counter.assign_add(1.0)
    merged = tf.raw_ops.Merge(inputs=[tf.abs(no), tf.exp(yes) * 2.0]).output
    with tf.control_dependencies([merged, first]):
        second = counter.assign_add(10.0)
    ops = ops_of(native, [merged + 1.0, second], feeds, counter.initializer, counter.read_value())
    assert not FLOW.intersection(ops)


@pytest.mark.parametrize("how", ["assign", "apply", "order", "scatter"])
def test_a_write_that_only_the_dead_branch_reads(native, how):
    """It is outside of the branch, so it runs; what it reads runs with it."""
    x, feeds = x_feed()
    # A ref variable's writes are not `stateful`.
    variable = v1.Variable([0.0, 0.0], use_resource=False)
    amount = tf.reduce_max(tf.abs(x), 0)[:2]
    if how == "apply":
        update = tf.raw_ops.ApplyGradientDescent(var=variable, alpha=0.5, delta=amount)
    elif how == "scatter":
        update = v1.scatter_add(variable, [1, 0], amount)
    else:
        update = v1.assign_add(variable, amount)
    if how == "order":
        with tf.control_dependencies([update]):
            update = tf.constant([3.0, 1.0]) * x[0, :2]
    read = tf.identity(update)  # a ref goes through a RefSwitch, which stays
    chosen = v1.cond(tf.constant(False), lambda: tf.tan(read), lambda: tf.reduce_sum(x, 0)[:2])
    ops = ops_of(native, tf.abs(chosen) + 1.0, feeds, prepare=variable.initializer, after=variable)
    assert not FLOW.intersection(ops) and "Tan" not in ops


@pytest.mark.parametrize("op", ["Merge", "ControlTrigger"])
def test_what_a_dead_node_waits_for(native, op):
    """What lives on after a dead control input waits for it, and so for what comes before that."""
    x, feeds = x_feed()
    counter = v1.get_variable("counter", initializer=0.0, use_resource=True)
    no, yes = tf.raw_ops.Switch(data=x, pred=tf.constant(True))
    branches = [tf.abs(no), tf.exp(yes)]
    with tf.control_dependencies([counter.assign_add(1.0)]):
        dead = tf.identity(no)
    with tf.control_dependencies([dead]):
        waits = tf.raw_ops.Merge(inputs=branches).output if op == "Merge" else tf.raw_ops.ControlTrigger()
    with tf.control_dependencies([waits]):
        read = counter.read_value() * 2.0
    ops = ops_of(native, [branches[1] + 1.0, read], feeds, prepare=counter.initializer)
    assert {"Switch", op}.issubset(ops)


def test_a_predicate_of_more_than_no_dims_stays_an_error(native):
    x, feeds = x_feed()
    chosen = tf.raw_ops.Switch(data=x, pred=v1.placeholder_with_default([True], None)).output_true
    Recorder(greedy_edits).install()
    with v1.Session(config=config(grappler=False)) as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match="scalar"):
            session.run(tf.abs(chosen) + 1.0, feeds)


@pytest.mark.parametrize("value", [True, False])
def test_a_functional_cond(native, value):
    """TensorFlow lowers it to Switches and Merges before the pass; those of a constant go as all others."""
    x, feeds = x_feed()
    before = tf.exp(tf.abs(x)) * 2.0
    counter = v1.get_variable("counter", initializer=0.0, use_resource=True)

    def yes():
        with tf.control_dependencies([counter.assign_add(1.0)]):
            return tf.abs(before) + 1.0

    result = cond_v2.cond_v2(tf.constant(value), yes, lambda: tf.abs(before) * 3.0)
    ops = ops_of(native, tf.abs(result) + 1.0, feeds, prepare=counter.initializer, after=counter.read_value())
    assert not FLOW.intersection(ops)


def test_what_cannot_be_told_stays(native):
    x, feeds = x_feed()
    choice = v1.placeholder_with_default(True, [], name="choice")
    result = v1.cond(choice, lambda: tf.exp(tf.abs(x)), lambda: tf.abs(x) * 2.0)
    assert "Switch" in ops_of(native, tf.sqrt(result) + 1.0, {**feeds, choice: False})
    # Three ways, of which one is decided: the Merge still has two.
    no, yes = tf.raw_ops.Switch(data=x, pred=choice)
    dead, live = tf.raw_ops.Switch(data=x, pred=tf.constant(True))
    merged = tf.raw_ops.Merge(inputs=[tf.exp(no), tf.abs(yes) + 2.0, tf.tan(dead)]).output
    assert "Tan" in ops_of(native, tf.sqrt(merged) + tf.abs(live), {**feeds, choice: False})


def test_a_dead_fetch_stays_an_error(native):
    x, feeds = x_feed()
    dead = tf.abs(tf.raw_ops.Switch(data=x, pred=tf.constant(True)).output_false) + 1.0
    Recorder(greedy_edits).install()
    with v1.Session(config=config(grappler=False)) as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match="does not have value"):
            session.run(dead, feeds)


def test_loops_around_and_inside(native):
    x, feeds = x_feed()

    def body(i, a):
        taken = v1.cond(tf.constant(True), lambda: tf.exp(tf.abs(a)) * 0.1, lambda: tf.tan(a))
        return i + 1, taken + 0.5

    inside = tf.while_loop(lambda i, a: i < 3, body, (0, x))[1]
    ops_of(native, tf.abs(inside) + 1.0, feeds)
    # A whole loop in a branch that is not taken.
    loop = v1.cond(
        tf.constant(False), lambda: tf.while_loop(lambda a: tf.reduce_sum(a) < 9.0, lambda a: a + 1.0, (x,)),
        lambda: tf.exp(x) + 1.0)
    ops_of(native, tf.abs(loop) + 1.0, feeds)


def test_gradients_through_a_decided_cond(native):
    x, feeds = x_feed()
    result = v1.cond(tf.constant(False), lambda: tf.tan(x), lambda: tf.exp(tf.abs(x)) * 2.0)
    ops = ops_of(native, [result, tf.gradients(result, x)[0]], feeds)
    assert not FLOW.intersection(ops) and "Tan" not in ops


def test_arithmetic_behind_a_decided_merge_is_folded(native):
    """A batch norm out of training: its own moments are for nobody, and the moving ones are constants."""
    x, feeds = x_feed()
    moving = tf.identity(tf.constant([1.0, 2.0, 3.0, 4.0]))
    variance = v1.cond(tf.constant(False), lambda: tf.reduce_mean(tf.square(x), 0), lambda: moving)
    ops = ops_of(native, tf.abs(x * tf.math.rsqrt(variance + 1e-3)) + 1.0, feeds)
    assert not {"Rsqrt", "Mean", "Square"}.intersection(ops)
