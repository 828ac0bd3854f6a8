"""Profiled sessions: what is written, and that nothing else changes."""

import json

import numpy as np
import pytest

from tf_autofuse.machine import machine_for
from tf_autofuse.profiling import npu_time
from tf_autofuse.profiling.records import profiles_below, read

tf = pytest.importorskip("tensorflow")
pytestmark = pytest.mark.tensorflow
v1 = tf.compat.v1


@pytest.fixture
def graph():
    with v1.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [None, 16], "x")
        y = tf.nn.relu(tf.abs(x) * 3.0, name="y")
        graph.x, graph.y = x, y
        yield graph


def config(output, **more):
    import tf_autofuse

    options = dict({"output": str(output), "task_trace": "on"}, **more.pop("options", {}))
    return tf_autofuse.configure(
        v1.ConfigProto(), profiling_mode=True, profiling_options=json.dumps(options), **more
    )


def run(graph, session, rows=4, **more):
    return session.run(graph.y, {graph.x: -np.ones((rows, 16), np.float32)}, **more)


def test_a_profiled_session(graph, tmp_path, monkeypatch):
    monkeypatch.setenv("AUTOFUSE_FLAGS", "--enable_autofuse=true")
    with v1.Session(config=config(tmp_path)) as session:
        for rows in (4, 4, 7):
            np.testing.assert_array_equal(run(graph, session, rows), np.full((rows, 16), 3, np.float32))
    (folder,) = profiles_below(tmp_path)
    profile = read(folder)
    assert sorted({op.run for op in profile.ops}) == [0, 1, 2]
    (name,) = profile.kernels
    fused = [op for op in profile.ops if op.name == name]
    assert [op.inputs[0].dims for op in fused] == [(4, 16), (4, 16), (7, 16)]
    assert all(op.op == "AscBackend" and op.outputs[0] == op.inputs[0] and op.duration >= 0 for op in fused)
    assert {"Abs", "mul", "y"} <= set(profile.kernels[name].origin) and profile.info["soc"]
    assert all(op.start > 10**18 for op in profile.ops)


def test_unfused_ops_have_their_dims(graph, tmp_path, monkeypatch):
    monkeypatch.setenv("AUTOFUSE_FLAGS", "--enable_autofuse=false")
    with v1.Session(config=config(tmp_path)) as session:
        run(graph, session)
    ops = {op.name: op for op in read(profiles_below(tmp_path)[0]).ops}
    assert ops["Abs"].inputs[0].dims == (4, 16) and ops["mul"].inputs[1] == ("float32", ())
    assert ops["y"].op == "Relu"


def test_what_the_model_needs_to_know_of_nodes(tmp_path, monkeypatch):
    """Attributes and constant operands decide what a pooling or a mean costs."""
    monkeypatch.setenv("AUTOFUSE_FLAGS", "--enable_autofuse=false")
    with v1.Graph().as_default():
        x = v1.placeholder(tf.float32, [2, 9, 9, 3], "x")
        pooled = tf.nn.max_pool2d(x, 3, 2, "SAME", name="pool")
        mean = tf.reduce_mean(pooled, [1, 2], name="mean")
        with v1.Session(config=config(tmp_path)) as session:
            for _ in range(2):
                session.run(mean, {x: np.zeros((2, 9, 9, 3), np.float32)})
    profile = read(profiles_below(tmp_path)[0])
    pool = profile.facts("pool").attrs
    assert pool["ksize"] == [1, 3, 3, 1] and pool["padding"] == "SAME" and pool["T"] == 1
    axes = profile.facts("mean").constants[1]
    assert axes.tolist() == [1, 2] and axes.dtype == np.int32 and not profile.facts("mean").attrs["keep_dims"]
    (op,) = {(o.op, o.inputs, o.outputs) for o in profile.ops if o.name == "mean"}
    machine = machine_for("")
    assert npu_time.model_op(*op, machine, npu_time.analytic, *profile.facts("mean")).how == "op"


def test_other_sessions_write_nothing(graph, tmp_path):
    import tf_autofuse

    for settings in (
        None,
        v1.ConfigProto(),
        tf_autofuse.configure(v1.ConfigProto()),
        config(tmp_path / "off", options={"task_trace": "off"}),
    ):
        with v1.Session(config=settings) as session:
            run(graph, session)
    assert list(tmp_path.iterdir()) == []


def test_the_callers_options_and_metadata_stay(graph, tmp_path):
    metadata = v1.RunMetadata()
    with v1.Session(config=config(tmp_path)) as session:
        run(graph, session, options=v1.RunOptions(timeout_in_ms=60000), run_metadata=metadata)
        assert metadata.step_stats.dev_stats
        with pytest.raises(tf.errors.InvalidArgumentError):  # no such pool: TF's own error, and no run
            session.run(graph.y, {graph.x: np.ones((4, 16))}, v1.RunOptions(inter_op_thread_pool=77))
        run(graph, session)
    assert {op.run for op in read(profiles_below(tmp_path)[0]).ops} == {0, 1}


def test_a_folder_that_cannot_be_written(graph, tmp_path, caplog):
    (tmp_path / "file").write_text("")
    with v1.Session(config=config(tmp_path / "file")) as session:
        for _ in range(2):
            assert run(graph, session).shape == (4, 16)
    assert [r for r in caplog.records if "not profiled" in r.getMessage()]


def test_options_that_are_wrong_are_named_and_the_others_count(graph, tmp_path, caplog):
    from tf_autofuse import diagnostics

    diagnostics.forget()
    options = {"outptu": "elsewhere", "task_trace": "yes"}
    with v1.Session(config=config(tmp_path, options=options)) as session:
        run(graph, session)
    (text,) = [r.getMessage() for r in caplog.records if "profiling_options" in r.getMessage()]
    assert "did you mean output?" in text and "task_trace is 'yes'" in text
    assert profiles_below(tmp_path)


def test_every_signature_tells_its_ops(graph, tmp_path):
    with graph.as_default():
        other = tf.exp(graph.x, name="other")
    with v1.Session(config=config(tmp_path)) as session:
        run(graph, session)
        with pytest.raises(ValueError):
            session.run(other, {graph.x: np.zeros(16)})  # tells no graph
        session.run(other, {graph.x: np.zeros((2, 16))})
        session.run([graph.y, other], {graph.x: np.zeros((2, 16))})
    (folder,) = profiles_below(tmp_path)
    ops = read(folder).ops
    assert {op.run for op in ops} == {0, 1, 2} and all(op.op for op in ops)


def test_callables_are_profiled_and_give_what_they_gave(graph, tmp_path):
    from tensorflow.core.protobuf import config_pb2

    options = config_pb2.CallableOptions()
    options.feed.append(graph.x.name)
    options.fetch.extend([graph.y.name, "Abs:0"])
    options.target.append(graph.y.op.name)
    value = -np.ones((3, 16), np.float32)
    with v1.Session(graph=graph) as session:
        expected = session._make_callable_from_options(options)(value)
    with v1.Session(graph=graph, config=config(tmp_path)) as session:
        traced = session._make_callable_from_options(options)
        metadata = config_pb2.RunMetadata()
        for found in (traced(value), traced(value, run_metadata=metadata)):
            assert len(found) == 2 and all((a == b).all() for a, b in zip(found, expected))
        assert metadata.step_stats.dev_stats
    (folder,) = profiles_below(tmp_path)
    assert {op.run for op in read(folder).ops} == {0, 1}


def test_keras_training_is_profiled(tmp_path):
    with v1.Graph().as_default(), v1.Session(config=config(tmp_path)) as session:
        v1.keras.backend.set_session(session)
        model = v1.keras.Sequential([v1.keras.layers.Dense(3, activation="relu", input_shape=(5,))])
        model.compile("sgd", "mse")
        model.fit(np.ones((8, 5)), np.ones((8, 3)), batch_size=4, epochs=1, verbose=0)
    v1.keras.backend.clear_session()
    kinds = [op.op for folder in profiles_below(tmp_path) for op in read(folder).ops]
    assert kinds.count("ReluGrad") == 2
