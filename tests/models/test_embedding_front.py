"""The embedding front of a recommendation model on the host target: all lookups and their concat are one
op."""
import numpy as np
import pytest
import tensorflow as tf

from tests.differential.harness import environment, executed_nodes
import tf_autofuse

v1 = tf.compat.v1
TABLES, DENSE = 34, 7


@pytest.fixture(scope="module")
def mmoe():
    """(frozen graph, placeholder name -> feature, output names) of deepctr's MMOE."""
    from deepctr.feature_column import DenseFeat, SparseFeat, get_feature_names
    from deepctr.models import MMOE
    graph = tf.Graph()
    with graph.as_default():
        v1.set_random_seed(7)
        columns = [SparseFeat("table%d" % i, 10 + i, embedding_dim=4) for i in range(TABLES)]
        columns += [DenseFeat("dense%d" % i, 1) for i in range(DENSE)]
        model = MMOE(columns, expert_dnn_hidden_units=(16,), tower_dnn_hidden_units=(8,))
        session = v1.keras.backend.get_session()
        session.run(v1.global_variables_initializer())
        outputs = [o.op.name for o in model.outputs]
        constant = tf.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), outputs)
        names = {t.op.name: n for t, n in zip(model.inputs, get_feature_names(columns))}
    v1.keras.backend.clear_session()
    return constant, names, outputs


def test_every_lookup_is_in_one_op(mmoe):
    definition, names, outputs = mmoe
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(definition, name="")
    fetches = [name + ":0" for name in outputs]
    rng = np.random.RandomState(0)
    results = []
    for flags in (None, "--enable_autofuse=true"):
        with environment(AUTOFUSE_FLAGS=flags, AUTOFUSE_TARGET="host", AUTOFUSE_STRICT="1"):
            with v1.Session(graph=graph, config=tf_autofuse.configure(v1.ConfigProto())) as session:
                values = []
                for batch in (64, 1):
                    rng.seed(batch)
                    feed = {}
                    for name, feature in sorted(names.items()):
                        tensor = graph.get_tensor_by_name(name + ":0")
                        value = rng.randint(0, 10, (batch, 1)) if "table" in feature else rng.rand(batch, 1)
                        feed[tensor] = value.astype(tensor.dtype.as_numpy_dtype)
                    got, nodes = executed_nodes(session, fetches, feed)
                    values += got
                results.append((values, nodes))
    (plain, before), (fused, after) = results
    for a, b in zip(plain, fused):
        np.testing.assert_allclose(b, a, rtol=2e-6, atol=2e-7)
    assert sum(n.op == "GatherV2" for n in before) >= TABLES
    # What is left gathers elements of a shape, for tensordot.
    assert all("Tensordot" in n.name for n in after if n.op == "GatherV2")
    fronts = [n for n in after if n.name.startswith("autofuse_concat_") and "GatherV2" in n.name]
    assert len(fronts) == 1 and len(fronts[0].input) >= 2 * TABLES
    assert len(after) < 0.8 * len(before)
