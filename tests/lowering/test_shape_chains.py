"""Arithmetic on shapes: its readers know the sizes by themselves, and it goes where nothing else reads it."""

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from tests.differential.harness import (  # noqa: E402
    bit_differences, environment, executed_nodes, fused_config, plain_config)
from tests.lowering.tf_plans import plan_against_tf  # noqa: E402

v1 = tf.compat.v1
RNG = np.random.RandomState(3)
SHAPE_OPS = frozenset("Shape ShapeN StridedSlice Pack ConcatV2 GatherV2 Prod Mul AddV2 Size Fill".split())


def floats(*shape):
    return np.asarray(RNG.randn(*shape), np.float32)


def check(body, feeds, gone=(), stay=(), regions=1, close=False, **dims):
    """Plans and runs; `gone`: op types that must not run, `stay`: those that must. Host kernels run what is
    fused."""
    def build():
        made = {k: v1.placeholder(tf.float32, dims.get(k, v.shape), k) for k, v in sorted(feeds[0].items())}
        return made, body(made)

    plan = plan_against_tf(build, feeds, close=close)
    assert len(plan.regions) == regions, [(d.name, d.code, d.reason) for d in plan.decisions if d.code]
    graph = tf.Graph()
    with graph.as_default():
        placeholders, fetches = build()
    with v1.Session(graph=graph, config=plain_config()) as session:
        plain = [session.run(fetches, {placeholders[k]: v for k, v in feed.items()}) for feed in feeds]
    with environment(AUTOFUSE_FLAGS="--enable_autofuse=true", AUTOFUSE_TARGET="host", AUTOFUSE_STRICT="1"):
        with v1.Session(graph=graph, config=fused_config()) as session:
            for feed, expected in zip(feeds, plain):
                got, nodes = executed_nodes(session, fetches, {placeholders[k]: v for k, v in feed.items()})
                ran = {n.op for n in nodes}
                assert ran & {"AscBackend", "FusedAscBackend"} and not ran & set(gone), ran
                assert ran >= set(stay), ran
                for a, b in zip(tf.nest.flatten(expected), tf.nest.flatten(got)):
                    if close:
                        np.testing.assert_allclose(a, b, rtol=3e-6, atol=1e-6)
                    else:
                        assert not bit_differences(a, b)
    return plan


def test_a_reshape_to_a_computed_shape_is_a_view():
    def body(t):
        x = tf.nn.relu(t["x"])
        flat = tf.reshape(x, tf.stack([tf.shape(x)[0] * tf.shape(x)[1], 4]))
        return flat * t["w"]

    check(body, [{"x": floats(2, 3, 4), "w": floats(4)}, {"x": floats(5, 1, 4), "w": floats(4)}],
          gone=SHAPE_OPS | {"Reshape"}, x=(None, None, 4))  # fmt: skip


def test_ones_like_what_is_computed():
    def body(t):
        x = tf.concat([tf.abs(t["a"]), t["b"] * 2.0], 0)
        return tf.concat([x, tf.ones_like(x)], 1) + 1.0

    check(body, [{"a": floats(3, 4), "b": floats(2, 4)}, {"a": floats(0, 4), "b": floats(2, 4)}],
          gone=SHAPE_OPS, a=(None, 4), b=(None, 4))  # fmt: skip


def test_a_chain_that_something_else_reads_stays_for_it():
    def body(t):
        x = tf.nn.relu(t["x"]) - 1.0
        shape = tf.shape(x)
        y = tf.reshape(tf.reshape(x, tf.stack([shape[0], 12])) * 3.0, shape) * x
        return [tf.abs(y), tf.random.stateless_uniform(shape[:1], [1, 2])]

    feeds = [{"x": floats(2, 3, 4)}, {"x": floats(7, 3, 4)}]
    plan = check(body, feeds, stay=("Shape",), regions=2, x=(None, 3, 4))
    assert plan.regions[0].copies


def test_an_intermediate_whose_shape_alone_is_read_is_not_stored():
    def body(t):
        x = tf.nn.relu(t["x"]) - 1.0
        y = tf.reshape(x * 2.0, [-1, 6])
        return tf.exp(tf.reshape(y + 1.0, tf.shape(x)))

    feeds = [{"x": floats(2, 3, 2)}, {"x": floats(0, 3, 2)}]
    plan = check(body, feeds, gone=SHAPE_OPS, close=True, x=(None, 3, 2))
    assert len(plan.regions[0].outputs) == 1


def test_a_size_as_a_number():
    def body(t):
        count = tf.cast(tf.shape(t["x"])[0], tf.float32)
        return tf.abs(t["x"] / count) + tf.sqrt(count)

    check(body, [{"x": floats(7, 3)}, {"x": floats(1, 3)}], gone=("Shape", "Cast"), x=(None, 3))


def test_slices_tiles_and_broadcasts_to_computed_sizes():
    def body(t):
        rows = tf.shape(t["y"])[0]
        x = tf.nn.relu(t["x"])[:rows] + t["y"]
        wide = tf.tile(tf.expand_dims(x, 1), [1, tf.shape(t["z"])[0], 1])
        return tf.broadcast_to(t["w"], [rows, tf.shape(t["z"])[0], 3]) * wide - t["z"]

    feeds = [{"x": floats(5, 3), "y": floats(2, 3), "z": floats(4, 3), "w": floats(3)},
             {"x": floats(2, 3), "y": floats(2, 3), "z": floats(1, 3), "w": floats(3)}]  # fmt: skip
    check(body, feeds, gone=SHAPE_OPS, x=(None, 3), y=(None, 3), z=(None, 3))


def test_flattened_products_as_tensordot_makes_them():
    def body(t):
        x = tf.abs(t["x"]) * 2.0
        shape = tf.shape(x)
        free = tf.reduce_prod(tf.gather(shape, [0, 1]))
        flat = tf.reshape(tf.transpose(x, [0, 1, 2]), tf.stack([free, tf.reduce_prod(tf.gather(shape, [2]))]))
        product = tf.matmul(flat, t["w"])
        back = tf.reshape(product, tf.concat([tf.gather(shape, [0, 1]), [5]], 0))
        return tf.nn.relu(back + t["b"])

    check(body, [{"x": floats(2, 3, 4), "w": floats(4, 5), "b": floats(5)}], regions=2, gone=("Prod", "Pack"),
          x=(None, None, 4))  # fmt: skip


def product_of(x, w):
    """tf.tensordot of x [.., k] and w [k, n], as it is without static shapes."""
    shape = tf.shape(x)
    rows = tf.reduce_prod(tf.gather(shape, [0, 1]))
    flat = tf.reshape(x, tf.stack([rows, tf.reduce_prod(tf.gather(shape, [2]))]))
    return tf.reshape(tf.matmul(flat, w), tf.concat([tf.gather(shape, [0]), [3, w.shape[1]]], 0))


def test_an_op_outside_reads_a_constant_where_all_but_one_dim_are_known():
    def body(t):
        return tf.nn.relu(product_of(product_of(tf.abs(t["x"]) * 2.0, t["w"]), t["v"]) + 1.0)

    feeds = [{"x": floats(n, 3, 4), "w": floats(4, 5), "v": floats(5, 2)} for n in (2, 1, 0)]
    plan = check(body, feeds, regions=2, gone=SHAPE_OPS, stay=("Reshape", "MatMul"), close=True,
                 x=(None, 3, 4))  # fmt: skip
    assert plan.operands and all(-1 in o.elements and not o.scalar for o in plan.operands)


def test_a_sparse_tensor_is_reshaped_by_a_constant():
    def body(t):
        sparse = tf.sparse.from_dense(tf.nn.relu(t["x"] * 2.0))
        shape = sparse.dense_shape
        flat = tf.sparse.reshape(sparse, tf.stack([tf.reduce_prod(shape[:2]), shape[2]]))
        other = tf.sparse.reshape(sparse, tf.stack([shape[0], 12, 1]))
        return flat.indices, flat.dense_shape, other.indices, other.dense_shape

    feeds = [{"x": floats(n, 3, 4)} for n in (2, 1, 0)]
    plan = check(body, feeds, gone=("Prod", "Pack"), stay=("SparseReshape",), x=(None, 3, 4))
    assert sorted(o.elements for o in plan.operands if -1 in o.elements) == [(-1, 4), (-1, 12, 1)]


@pytest.mark.parametrize("dims", [(None, None, 4), (None, 3, 4)])
def test_what_two_unknown_dims_make_is_computed(dims):
    def body(t):
        x = tf.abs(t["x"]) * 2.0
        shape = tf.shape(x)
        flat = tf.matmul(tf.reshape(x, [-1, 4]), t["w"])
        back = tf.reshape(flat, tf.stack([shape[1], shape[0], 4]))
        return tf.matmul(back, back, transpose_b=True)

    feeds = [{"x": floats(2, 3, 4), "w": floats(4, 4)}, {"x": floats(5, 3, 4), "w": floats(4, 4)}]
    computed = dims[1] is None
    check(body, feeds, gone=() if computed else SHAPE_OPS, stay=("Pack",) if computed else (), close=True,
          x=dims)  # fmt: skip


def test_a_dim_that_is_only_assumed_is_no_constant():
    def build():
        made = {"x": v1.placeholder(tf.float32, (2, None)), "w": v1.placeholder(tf.float32, (None,)),
                "n": v1.placeholder(tf.float32, (None,))}  # fmt: skip
        few = (tf.abs(made["x"]) * 2.0)[:, : tf.shape(made["n"])[0]]  # fewer than n where x is shorter
        part = few - made["w"][: tf.shape(few)[1]]
        flat = tf.matmul(tf.reshape(part, [-1, 1]), [[2.0]])
        return made, tf.matmul(tf.reshape(flat, tf.shape(part)), part, transpose_b=True)

    feeds = [{"x": floats(2, 7), "w": floats(9), "n": floats(n)} for n in (5, 9)]
    plan = plan_against_tf(build, feeds[:1], close=True)
    assert plan.regions and not plan.operands
    with tf.Graph().as_default() as graph:
        placeholders, fetch = build()
    fed = [{placeholders[k]: v for k, v in feed.items()} for feed in feeds]
    with v1.Session(graph=graph, config=plain_config()) as session:
        plain = [session.run(fetch, feed) for feed in fed]
    with environment(AUTOFUSE_FLAGS="--enable_autofuse=true", AUTOFUSE_TARGET="host", AUTOFUSE_STRICT="1"):
        with v1.Session(graph=graph, config=fused_config()) as session:
            for feed, expected in zip(fed, plain):
                np.testing.assert_allclose(session.run(fetch, feed), expected, rtol=3e-6, atol=1e-6)
