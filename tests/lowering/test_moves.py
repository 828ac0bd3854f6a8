"""Transpose, slice, split, concat, tile, pad and gather: one region each, with TF's results."""

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from tests.lowering.tf_plans import one_region, plan_against_tf  # noqa: E402

v1 = tf.compat.v1
RNG = np.random.RandomState(5)


def floats(*shape):
    return np.asarray(RNG.randn(*shape), np.float32)


def holder(name, *dims, dtype=tf.float32):
    return v1.placeholder(dtype, list(dims), name)


def check(body, feeds, *ops, graphs=None, kind=None, close=False, **dims):
    """body(placeholders by name) -> fetches; feeds: by name, one or more. The placeholders' dims are those of
    the first feed, or as given."""
    feeds = feeds if isinstance(feeds, list) else [feeds]

    def build():
        made = {
            k: holder(k, *dims.get(k, v.shape), dtype=tf.as_dtype(v.dtype))
            for k, v in sorted(feeds[0].items())
        }
        return made, body(made)

    region = one_region(plan_against_tf(build, feeds, close=close), *ops)
    if graphs is not None:
        assert len(region.fused.graphs) == graphs
    if kind is not None:
        assert region.fused.kind == kind
    return region


def test_transpose_add_transpose():
    feeds = [{"x": floats(2, 3, 4), "y": floats(4, 2, 3)}, {"x": floats(5, 3, 1), "y": floats(1, 5, 3)}]

    def body(t):
        return tf.transpose(tf.transpose(t["x"], [2, 0, 1]) + t["y"], [1, 2, 0])

    dims = dict(x=(None, 3, None), y=(None, None, 3))
    region = check(body, feeds, "Transpose", "AddV2", graphs=1, kind="transpose", **dims)
    assert not region.fused.graphs[0].of_type("Transpose")


@pytest.mark.parametrize("perm", ([1, 0], [0, 2, 1], [3, 1, 0, 2], [7, 6, 5, 4, 3, 2, 1, 0], [0, 1, 3, 2]))
def test_transposes_of_every_rank(perm):
    x = floats(*[(2, 1, 3, 2, 1, 2, 2, 3)[i] for i in range(len(perm))])
    check(lambda t: tf.abs(tf.transpose(tf.nn.relu(t["x"]), perm)) + 1.0, {"x": x}, "Relu", "Abs")


def test_a_transpose_merged_by_a_reshape():
    def body(t):
        swapped = tf.transpose(tf.reshape(tf.abs(t["x"]), [-1, 4, 6]), [0, 2, 1])
        return tf.reshape(swapped, [-1, 12]) * t["y"]

    feeds = [{"x": floats(3, 24), "y": floats(12)}, {"x": floats(1, 24), "y": floats(12)}]
    check(body, feeds, "Transpose", "Mul", x=(None, 24))


SLICES = {
    "rows": lambda x: x[1:3],
    "inner": lambda x: x[:, 2:5],
    "step": lambda x: x[:, 1::3],
    "one": lambda x: x[1],
    "last": lambda x: x[:, -1],
    "tail": lambda x: x[:, -2:],
    "but_last": lambda x: x[:-1, :-2],
    "new_axis": lambda x: x[:, tf.newaxis, 2:4],
    "ellipsis": lambda x: x[..., 3],
    "empty": lambda x: x[:, 3:3],
    "all": lambda x: x[:, 0:6:1],
    "beyond": lambda x: x[:, 4:100],
    "slice": lambda x: tf.slice(x, [1, 2], [2, -1]),
    "scalar": lambda x: x[2, 3],
}


@pytest.mark.parametrize("name", sorted(SLICES))
@pytest.mark.parametrize("dims", ((4, 6), (None, None)))
def test_slices(name, dims):
    take = SLICES[name]
    check(lambda t: tf.abs(take(tf.nn.relu(t["x"])) - 1.0), {"x": floats(4, 6)}, "Abs", "Sub", x=dims)


def test_slices_of_slices_and_views():
    def body(t):
        x = tf.reshape(tf.abs(t["x"])[:, 4:20], [-1, 4, 4])
        return tf.reshape(x[:, 1:3], [-1, 8]) * tf.reshape(x[:, :, 1:2] + x[:, :, 3:], [-1, 4])[:, :1]

    check(body, {"x": floats(5, 24)}, "StridedSlice", "Mul", x=(None, 24))


def test_a_negative_stride_is_refused():
    def build():
        x = holder("x", 4, 6)
        return {"x": x}, tf.abs(x[:, ::-1] * 2.0) + 1.0

    plan = plan_against_tf(build, [{"x": floats(4, 6)}])
    (decision,) = [d for d in plan.decisions if d.op == "StridedSlice"]
    assert decision.region < 0 and "forwards" in decision.reason


def test_a_concat_of_very_many_unknown_parts_is_refused():
    """Where each begins is a sum over all before it, which takes minutes to plan and pays little."""

    def build():
        x = {"x%d" % i: holder("x%d" % i, None, 2) for i in range(65)}
        return x, tf.concat([tf.abs(v) for v in x.values()], 0)

    plan = plan_against_tf(build, [{"x%d" % i: floats(1, 2) for i in range(65)}])
    (decision,) = [d for d in plan.decisions if d.op == "ConcatV2"]
    assert decision.region < 0 and "65 parts of unknown sizes" in decision.reason


@pytest.mark.parametrize("count,axis", ((2, 0), (2, 1), (3, 2), (4, -1)))
def test_split_elementwise_concat(count, axis):
    shape = [4, 4, 12]
    shape[axis] = 12

    def body(t):
        parts = tf.split(t["x"], count, axis)
        return tf.concat([tf.nn.relu(p) * float(i) for i, p in enumerate(parts)], axis)

    check(body, {"x": floats(*shape)}, "Split", "Relu", "Mul", "ConcatV2", graphs=1, kind="concat")


def test_uneven_split_and_unpack():
    def body(t):
        a, b, c = tf.split(tf.abs(t["x"]), [1, 4, -1], 1)
        rows = tf.unstack(b * 2.0, axis=1)
        return tf.concat([a - 1.0, tf.stack([tf.exp(r) for r in rows], 1), tf.nn.relu(c)], 1)

    check(body, {"x": floats(3, 7)}, "SplitV", "Unpack", "Pack", "ConcatV2", x=(None, 7))


def test_an_lstm_cell_is_one_region():
    def body(t):
        i, j, f, o = tf.split(t["gates"] + t["bias"], 4, 1)
        c = t["c"] * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
        return [c, tf.tanh(c) * tf.sigmoid(o)]

    feed = {"gates": floats(3, 20), "bias": floats(20), "c": floats(3, 5)}
    check(body, feed, "Split", graphs=1, kind="split", close=True, gates=(None, 20), c=(None, 5))


def test_a_split_that_is_read_outside_is_left_alone():
    def build():
        x = holder("x", 4, 6)
        a, b = tf.split(x, 2, 1)
        return {"x": x}, [tf.matmul(a, a, transpose_a=True), tf.abs(tf.nn.relu(b) - 2.0)]

    plan = plan_against_tf(build, [{"x": floats(4, 6)}])
    (decision,) = [d for d in plan.decisions if d.op == "Split"]
    assert decision.code == "NF2020" and len(plan.regions) == 1


@pytest.mark.parametrize("count,axis", [(n, a) for n in (2, 16) for a in (0, 1, 2, -1)] + [(63, 0), (200, 1)])
def test_concat_of_many(count, axis):
    feed = {"x%03d" % i: floats(2, 1, 3) for i in range(count)}
    region = check(
        lambda t: tf.abs(tf.concat([t[k] for k in sorted(t)], axis)), feed, "ConcatV2", "Abs",
        graphs=1, **{k: (None, 1, 3) if axis else (2, 1, None) for k in feed}
    )  # fmt: skip
    assert len(region.inputs) >= count


@pytest.mark.parametrize("axis", (0, 1))
def test_concat_of_different_parts(axis):
    sizes = (1, 5, 0, 2, 5)
    feed = {"x%d" % i: floats(*((n, 4) if axis == 0 else (4, n))) for i, n in enumerate(sizes)}

    def body(t):
        scale = t["w"]
        return (tf.concat([tf.nn.relu(t[k]) for k in sorted(t) if k != "w"], axis) - 1.0) * scale

    feed["w"] = floats(4)[None, :] if axis == 0 else floats(4)[:, None]
    check(body, feed, "ConcatV2", "Sub", "Mul", graphs=3)


def test_concat_of_run_time_sizes():
    def body(t):
        x = tf.concat([tf.abs(t["a"]), t["b"] * 2.0], 0)
        return tf.concat([x, tf.exp(x) * 0.0], 1) + 1.0

    feeds = [{"a": floats(3, 4), "b": floats(2, 4)}, {"a": floats(0, 4), "b": floats(7, 4)},
             {"a": floats(2, 4), "b": floats(2, 4)}]  # fmt: skip
    check(body, feeds, "ConcatV2", "AddV2", a=(None, 4), b=(None, 4))


def test_slices_of_a_concat_pick_its_parts():
    def body(t):
        x = tf.concat([t["a"], t["b"]], 1)
        return tf.nn.relu(x[:, 1:3]) + tf.exp(x[:, 3:5]) * x[:, 1:5:2]

    region = check(body, {"a": floats(3, 2), "b": floats(3, 4)}, "ConcatV2", "StridedSlice")
    assert region.fused.outputs[0].dims == (3, 2)


@pytest.mark.parametrize("count, width, target, regions", [
    (4, 16, "host", 1), (3, 16, "host", 0), (4, 17, "host", 0), (4, 16, "ascend", 0)])
def test_a_concat_of_narrow_parts_alone(count, width, target, regions):
    """TensorFlow copies them row by row; wide ones it copies as fast."""

    def build():
        made = {"x%d" % i: holder("x%d" % i, None, width if i else 1) for i in range(count)}
        joined = tf.concat(list(made.values()), 1)
        return made, [joined, tf.reshape(joined, [-1])]

    feed = {"x%d" % i: floats(3, width if i else 1) for i in range(count)}
    assert len(plan_against_tf(build, [feed], target=target).regions) == regions


def test_concat_under_transposes_and_views():
    def body(t):
        x = tf.concat([t["a"], tf.abs(t["b"])], 1)
        y = tf.transpose(tf.reshape(x, [-1, 5, 4]), [1, 0, 2])
        return tf.nn.relu(y) + t["c"]

    feed = {"a": floats(3, 8), "b": floats(3, 12), "c": floats(5, 1, 4)}
    check(body, feed, "ConcatV2", "Transpose", "AddV2", a=(None, 8), b=(None, 12))


def test_pack_of_scalars_and_vectors():
    check(lambda t: tf.abs(tf.stack([t["a"], t["a"] * t["b"]])) - 1.0, {"a": floats(), "b": floats()}, "Pack")
    check(lambda t: tf.abs(tf.stack([t["a"], t["b"] * 2.0], axis=-1)) - 1.0,
          {"a": floats(3), "b": floats(3)}, "Pack", a=(None,), b=(None,))  # fmt: skip


@pytest.mark.parametrize("multiples", ([2, 3], [1, 4], [5, 1], [0, 2]))
def test_tile(multiples):
    check(lambda t: tf.tile(tf.abs(t["x"]), multiples) + 1.0, {"x": floats(3, 2)}, "Tile", x=(None, 2))


def test_a_tiled_mask_selects_from_what_has_a_dim_of_its_own():
    """Multi-head attention: the mask of each sequence is tiled for the heads, and only the Select says that
    the scores, whose first dim is known at run time, are as many."""

    def build():
        x, mask = v1.placeholder(tf.float32, [None, 3, 5], "x"), v1.placeholder(tf.float32, [None, 5], "m")
        tiled = tf.tile(tf.expand_dims(tf.abs(mask), 1), [4, 3, 1])
        kept = v1.where(tf.equal(tiled, 1.0), x / 3.0, tf.ones_like(x) * 2.0 - 9.0)
        return dict(x=x, m=mask), tf.nn.softmax(kept) * tiled

    feeds = [dict(x=floats(4 * n, 3, 5), m=np.eye(5, dtype=np.float32)[:n]) for n in (2, 1)]
    region = one_region(plan_against_tf(build, feeds, close=True), "Tile", "Fill", "Mul", "Select", "Softmax")
    assert len(region.fused.graphs) == 1 and not region.fused.graphs[0].of_type("Workspace")


def test_pads():
    x = floats(3, 4)
    check(lambda t: tf.pad(tf.abs(t["x"]), [[0, 0], [2, 1]]) + 1.0, {"x": x}, "Pad", graphs=3, x=(None, 4))
    check(lambda t: tf.pad(tf.abs(t["x"]), [[1, 0], [2, 1]], constant_values=2.5) * 2.0, {"x": x}, "PadV2")
    check(lambda t: tf.pad(tf.abs(t["x"]), [[1, 1], [2, 2]], "REFLECT") * 2.0, {"x": x}, "MirrorPad")
    check(lambda t: tf.pad(tf.abs(t["x"]), [[0, 0], [2, 0]], "SYMMETRIC") * 2.0, {"x": x}, "MirrorPad")


@pytest.mark.parametrize("index_type", (np.int32, np.int64))
@pytest.mark.parametrize("axis,shape", ((0, (3,)), (0, ()), (0, (2, 2)), (1, (3,)), (-1, (2,))))
def test_gather_mul(axis, shape, index_type):
    feed = {"table": floats(5, 4), "at": RNG.randint(0, 4, shape).astype(index_type), "w": floats(1)}
    check(lambda t: tf.abs(tf.gather(t["table"], t["at"], axis=axis) * t["w"]), feed, "GatherV2", "Mul",
          kind="gather", at=(None,) * len(shape), table=(None, 4))  # fmt: skip


def test_gather_at_computed_indices():
    def body(t):
        at = tf.cast(t["ids"], tf.int32) + 1
        return tf.gather(tf.nn.relu(t["table"]), at) * 2.0

    feed = {"table": floats(6, 3), "ids": np.array([[0, 3], [4, 1]], np.int64)}
    def build():
        made = {k: holder(k, *v.shape, dtype=tf.as_dtype(v.dtype)) for k, v in feed.items()}
        return made, body(made)

    plan = plan_against_tf(build, [feed])
    (region,) = [r for r in plan.regions]
    assert {d.op for d in plan.decisions if d.region == 0} - {"Const"} == {"Cast", "AddV2", "GatherV2", "Mul"}
    assert any(d.op == "Relu" and d.code for d in plan.decisions) and region.fused.kind == "gather"


def test_a_slice_of_what_is_gathered_stays_apart():
    """TF looks at every index, so none may be left out."""
    def build():
        made = {"table": holder("table", 5, 4), "at": holder("at", None, dtype=tf.int32)}
        return made, tf.abs(tf.gather(made["table"], made["at"])[:2] - 1.0) * 3.0

    plan = plan_against_tf(build, [{"table": floats(5, 4), "at": np.array([1, 2, 4], np.int32)}])
    assert all(not ({"GatherV2", "StridedSlice"} <= {d.op for d in plan.decisions if d.region == i})
               for i in range(len(plan.regions)))  # fmt: skip


def test_an_embedding_front_is_one_op():
    tables, width = 34, 4

    def body(t):
        parts = [tf.reshape(tf.gather(t["t%02d" % i], t["ids"][:, i]), [-1, width]) for i in range(tables)]
        return tf.concat(parts + [t["dense"] * 0.5], 1)

    feed = {"t%02d" % i: floats(3 + i, width) for i in range(tables)}
    feed.update(ids=RNG.randint(0, 3, (6, tables)).astype(np.int32), dense=floats(6, 7))
    dims = dict(ids=(None, tables), dense=(None, 7))
    region = check(body, feed, "GatherV2", "ConcatV2", "Mul", kind="concat", **dims)
    assert len(region.inputs) >= tables and len(region.fused.graphs) == 2
