"""Lookups in tables that two concats read are done by each of them: a factorization machine beside a net."""

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from tests.differential.harness import (  # noqa: E402
    bit_differences, environment, executed_nodes, fused_config, plain_config)
from tests.lowering.tf_plans import plan_against_tf  # noqa: E402

v1 = tf.compat.v1
RNG = np.random.RandomState(4)
TABLES, WIDTH = 3, 4
FEED = {"ids%d" % i: RNG.randint(0, 5, 6).astype(np.int32) for i in range(TABLES)}
FEED.update(weights=RNG.randn(15, 12).astype(np.float32), dense=RNG.randn(6, 3).astype(np.float32))
FLAGS = "--enable_autofuse=true;--autofuse_enable_pass=reduce,concat,gather,slice,split"


def model(more=None, axis=1):
    """Two concats of the same lookups, with a matrix product between one and the other's readers."""
    made = {k: v1.placeholder(v.dtype, (None,) + v.shape[1:], k) for k, v in sorted(FEED.items())}
    rows = []
    for i in range(TABLES):
        table = v1.placeholder_with_default(np.float32(RNG.randn(5, WIDTH)), (None, WIDTH), "t%d" % i)
        rows.append(tf.gather(table, made["ids%d" % i], name="row%d" % i))
    deep = tf.matmul(tf.concat(rows + [made["dense"]], axis), made["weights"])
    wide = tf.reduce_sum(tf.square(tf.stack(rows, 1)), 1)
    fetches = [tf.nn.relu(deep - 1.0), tf.abs(wide * 2.0)]
    return made, fetches + ([more(rows)] if more else [])


def planned(more=None):
    one = {k: v if k == "weights" else v[:1] for k, v in FEED.items()}
    plan = plan_against_tf(lambda: model(more), [FEED, one], close=True)
    return plan, {d.node: d for d in plan.decisions if d.op == "GatherV2"}


def test_each_region_has_a_copy_of_a_lookup_that_both_need():
    plan, lookups = planned()
    holders = [r for r in plan.regions if set(lookups) <= set(r.copies)]
    assert len(lookups) == TABLES and len(holders) == 2
    for region in holders:
        assert not set(lookups).intersection(region.nodes)
        assert {"row%d" % i for i in range(TABLES)} <= set(region.fused.origin)
    assert {d.region for d in lookups.values()} == {plan.regions.index(holders[0])}


@pytest.mark.parametrize("more", [lambda rows: tf.concat(rows + rows[:1], 0) + 1.0,
                                  lambda rows: tf.add_n(rows), lambda rows: rows[0]],
                         ids=["three concats", "another op", "fetched"])
def test_a_lookup_with_other_readers_is_done_once(more):
    plan, lookups = planned(more)
    first = min(lookups)
    assert all(first not in r.copies for r in plan.regions)


def test_a_lookup_that_one_concat_must_read_from_memory_is_done_once():
    """The axis of one of the two is not known while compiling."""
    def build():
        axis = v1.placeholder_with_default(1, (), "axis")
        return model(lambda rows: axis + 0, axis)

    plan = plan_against_tf(build, [FEED], close=True)
    lookups = {d.node for d in plan.decisions if d.op == "GatherV2"}
    assert len(lookups) == TABLES and plan.regions
    assert not any(lookups.intersection(r.copies) for r in plan.regions)


def test_in_a_session_the_lookups_are_gone_and_a_bad_index_is_tensorflows_error():
    graph = tf.Graph()
    with graph.as_default():
        made, fetches = model()
    feed = {made[k]: v for k, v in FEED.items()}
    with v1.Session(graph=graph, config=plain_config()) as session:
        expected = session.run(fetches, feed)
    with environment(AUTOFUSE_FLAGS=FLAGS, AUTOFUSE_TARGET="host", AUTOFUSE_STRICT="1"):
        with v1.Session(graph=graph, config=fused_config()) as session:
            got, nodes = executed_nodes(session, fetches, feed)
            ran = {n.op for n in nodes}
            assert ran & {"AscBackend", "FusedAscBackend"} and "GatherV2" not in ran
            assert not bit_differences(expected[0], got[0])
            np.testing.assert_allclose(got[1], expected[1], rtol=3e-6)
            bad = dict(feed)
            bad[made["ids1"]] = np.where(np.arange(6) == 4, 5, FEED["ids1"])
            with pytest.raises(tf.errors.InvalidArgumentError, match="is not in"):
                session.run(fetches, bad)
