"""Symbolic shapes: which sizes are known, which are the same symbol; no more is claimed than holds."""

import numpy as np
import pytest
import tensorflow as tf

from tests.frontend.native_session import v1

pytestmark = pytest.mark.tensorflow


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


class Shapes:
    """Shapes of a finished graph by tensor; symbols appear under their numbers."""

    def __init__(self, native, graph):
        self.columns = native.graph_columns(graph.as_graph_def().SerializeToString())
        self.at = {name: i for i, name in enumerate(self.columns["names"])}

    def __getitem__(self, tensor):
        return self.columns["out_shapes"][self.at[tensor.op.name]][tensor.value_index]

    def origin(self, dim):
        symbol = self.columns["symbols"][-dim - 1]
        return symbol["origin"], symbol["dim"]


@pytest.fixture
def shapes(native, graph):
    return lambda: Shapes(native, graph)


def placeholder(*shape, dtype=tf.float32, name=None):
    return v1.placeholder(dtype, None if shape == (None,) and name == "any" else list(shape), name=name)


def test_placeholders_give_symbols_and_elementwise_ops_keep_them(shapes):
    x = placeholder(None, 128, name="data1")
    y = tf.nn.relu(tf.abs(x) * 2.0 + x)
    got = shapes()
    symbol = got[x][0]
    assert symbol < 0 and got[x] == (symbol, 128) == got[y]
    assert got.origin(symbol) == ("data1:0", 0)


def test_an_unknown_rank_stays_unknown_and_rank_0_is_known(shapes):
    x, s = placeholder(None, name="any"), placeholder()
    y, z = tf.abs(x), tf.exp(s)
    got = shapes()
    assert got[x] is None and got[y] is None and got[s] == () == got[z]


def test_broadcasting_knows_what_must_hold(shapes):
    a, b = placeholder(None, 8), placeholder(None, 1)
    same, column, maybe = a + a, a + placeholder(1, 8), a + b
    big = a + tf.zeros([5, 8])
    got = shapes()
    assert got[same] == got[a] and got[column] == got[a] and got[big] == (5, 8)
    assert got[maybe][1] == 8 and got[maybe][0] not in (got[a][0], got[b][0])  # either may be 1
    assert got.origin(got[maybe][0]) == (maybe.op.name + ":0", 0)


def test_matmul_transpose_and_reduction_move_symbols(shapes):
    a, b = placeholder(None, None), placeholder(None, None)
    product, turned, summed = tf.matmul(a, b), tf.transpose(a, [1, 0]), tf.reduce_sum(a, [1])
    kept = tf.reduce_max(a, [0], keepdims=True)
    got = shapes()
    assert got[product] == (got[a][0], got[b][1])
    assert got[turned] == got[a][::-1] and got[summed] == got[a][:1] and got[kept] == (1, got[a][1])


def test_a_shape_made_of_tf_shape_keeps_its_symbols(shapes):
    x = placeholder(None, 8, 8)
    n = tf.shape(x)[0]
    stacked = tf.reshape(x, tf.stack([n, 64]))
    minus = tf.reshape(x, [-1, 64])
    joined = tf.reshape(x, tf.concat([tf.shape(x)[:1], [64]], 0))
    filled = tf.fill(tf.stack([n, 3]), 1.0)
    cast = tf.reshape(x, tf.stack([tf.cast(tf.shape(x, out_type=tf.int64)[0], tf.int32), 64]))
    gathered = tf.zeros(tf.gather(tf.shape(x), [2, 0]))
    unstacked = tf.ones(tf.stack(tf.unstack(tf.shape(x))[:2]))
    expanded = tf.reshape(x, tf.concat([tf.expand_dims(n, 0), tf.constant([64])], 0))
    sliced = tf.reshape(x, tf.concat([tf.slice(tf.shape(x), [0], [1]), [-1]], 0))
    tiled = tf.broadcast_to(tf.ones([1, 4]), tf.stack([n, 4]))
    got = shapes()
    s = got[x][0]
    for tensor in (stacked, minus, joined, cast, expanded):
        assert got[tensor] == (s, 64), tensor.op.name
    assert (
        got[filled] == (s, 3)
        and got[gathered] == (8, s)
        and got[unstacked] == (s, 8)
        and got[tiled] == (s, 4)
    )
    assert got[sliced][0] == s


def test_size_arithmetic(shapes):
    x = placeholder(None, 6)
    n = tf.shape(x)[0]
    doubled = [tf.zeros(tf.stack([n * 2, 3])) for _ in range(2)]
    twice = n * 2
    shared = [tf.zeros(tf.stack([twice, 3])) for _ in range(2)]
    same = tf.zeros(tf.stack([n + 0, n * 1, n // 1]))
    known = tf.zeros(tf.stack([tf.shape(x)[1] * 2 + 1, tf.size(tf.zeros([2, 3])), tf.rank(x)]))
    got = shapes()
    s = got[x][0]
    assert got[same] == (s, s, s) and got[known] == (13, 6, 2)
    assert got[shared[0]] == got[shared[1]] and got[shared[0]][0] not in (s, 3)
    assert got[doubled[0]][0] != got[doubled[1]][0]  # not known to be equal: two nodes


def test_an_unknown_element_is_a_new_dim_at_each_use(shapes):
    """The shape [-1, 4] shared by two reshapes says nothing about the two results."""
    a, b = placeholder(None), placeholder(None)
    shape = tf.constant([-1, 4])
    one, two = tf.reshape(a, shape), tf.reshape(b, shape)
    wanted = placeholder(dtype=tf.int32)
    packed = tf.stack([wanted, 4])
    three, four = tf.reshape(a, packed), tf.reshape(b, packed)
    got = shapes()
    dims = [got[t][0] for t in (one, two, three, four)]
    assert len(set(dims)) == 4 and all(d < 0 for d in dims)
    assert not set(dims) & {got[a][0], got[b][0]}


def test_a_merge_of_two_different_sizes_is_a_third(shapes):
    """TensorFlow's own shape function compares unknown dims by value (-1 == -1) and claims the first."""
    a, b = placeholder(None, 4), placeholder(None, 4)
    choice = placeholder(dtype=tf.bool)
    different = v1.cond(choice, lambda: tf.abs(a), lambda: tf.exp(b))
    same = v1.cond(choice, lambda: tf.abs(a), lambda: tf.exp(a))
    ranks = v1.cond(choice, lambda: tf.abs(a), lambda: tf.reshape(b, [-1]))
    got = shapes()
    assert got[same] == got[a]
    assert got[different][1] == 4 and got[different][0] not in (got[a][0], got[b][0])
    assert got[ranks] is None


def test_loop_variables(shapes):
    """A size that the body gives back is the same in each iteration; one it changes is the loop's own."""
    x, y = placeholder(None, 4), placeholder(None, 4)

    def body(i, kept, grown, first, second, ranked):
        return i + 1, tf.exp(kept), tf.concat([grown, x], 0), second, first, tf.expand_dims(ranked, 0)

    outs = v1.while_loop(
        lambda i, *_: i < 3,
        body,
        [tf.constant(0), x, x, x, y, x],
        shape_invariants=[tf.TensorShape([]), x.shape, x.shape, x.shape, x.shape, tf.TensorShape(None)],
    )
    after = [tf.abs(out) for out in outs[1:]]
    got = shapes()
    s = got[x][0]
    assert got[outs[0]] == () and got[outs[1]] == (s, 4) == got[after[0]]
    assert got[outs[2]][1] == 4 and got[outs[2]][0] < 0 and got[outs[2]][0] not in (s, got[y][0])
    swapped = {got[outs[3]][0], got[outs[4]][0]}
    assert len(swapped) == 2 and not swapped & {s, got[y][0], got[outs[2]][0]}
    assert got[outs[5]] is None
    exps = [i for i, op in enumerate(got.columns["ops"]) if op == "Exp"]
    assert [got.columns["out_shapes"][i] for i in exps] == [((s, 4),)]
    assert got.columns["frames"][exps[0]] != ""


def test_nested_loops(shapes):
    x = placeholder(None, 4)

    def inner(j, v):
        return j + 1, tf.exp(v)

    def outer(i, v, w):
        v = v1.while_loop(lambda j, _: j < 2, inner, [tf.constant(0), v])[1]
        return i + 1, v, tf.concat([w, v], 0)

    _, v, w = v1.while_loop(
        lambda i, *_: i < 3,
        outer,
        [tf.constant(0), x, x],
        shape_invariants=[tf.TensorShape([]), x.shape, x.shape],
    )
    got = shapes()
    assert got[v] == got[x] and got[w][0] != got[x][0] and got[w][1] == 4


def test_data_dependent_sizes_are_fresh(shapes):
    x = placeholder(None)
    where, unique = tf.where(x > 0.0), tf.unique(x).y
    masked = tf.boolean_mask(x, x > 0.0)
    got = shapes()
    dims = [got[where][0], got[unique][0], got[masked][0], got[x][0]]
    assert len(set(dims)) == 4 and all(d < 0 for d in dims)
    assert got[where][1] == 1


def test_variables_know_their_shapes(shapes):
    resource = v1.get_variable("r", [3, 4], use_resource=True)
    reference = v1.get_variable("v", [5], use_resource=False)
    x, y = tf.identity(resource), tf.abs(reference)
    got = shapes()
    assert got[x] == (3, 4) and got[y] == (5,)


def test_a_failing_shape_function_is_an_unknown_shape(native, graph):
    x = placeholder(3, 4)
    y = tf.transpose(x, [1, 0], name="y")
    after = tf.abs(y, name="after")
    definition = graph.as_graph_def()
    for node in definition.node:
        if node.name == "y/perm":
            node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(np.int32([0, 7])))
    columns = native.graph_columns(definition.SerializeToString())
    at = {name: i for i, name in enumerate(columns["names"])}
    assert columns["out_shapes"][at["y"]] == (None,) == columns["out_shapes"][at["after"]]
    assert columns["out_shapes"][at[x.op.name]] == ((3, 4),)


def test_zero_size_and_eight_dims(shapes):
    x = placeholder(0, None)
    y = tf.abs(x)
    z = tf.exp(placeholder(*([None] * 8)))
    got = shapes()
    assert got[y] == (0, got[x][1]) and len(set(got[z])) == 8


def test_bad_graphs_are_reported(native):
    with pytest.raises(ValueError, match="not a serialized GraphDef"):
        native.graph_columns(b"\xff\xff")
    definition = v1.GraphDef()
    for name, other in (("a", "b"), ("b", "a")):
        node = definition.node.add(name=name, op="Abs", input=[other])
        node.attr["T"].type = 1
    with pytest.raises(RuntimeError):
        native.graph_columns(definition.SerializeToString())
