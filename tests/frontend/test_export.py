"""`tf-autofuse export`: scripts and frozen graphs to operator projects, and what it refuses."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import tensorflow as tf
from google.protobuf import text_format

from tf_autofuse import cli, export_project
from tf_autofuse.report import journal

ROOT = Path(__file__).resolve().parents[2]
v1 = tf.compat.v1


def build():
    """relu(|x| + y), a MatMul that stays, and two sides of the same form behind it."""
    graph = tf.Graph()
    with graph.as_default():
        x = v1.placeholder(tf.float32, [None, 8], "x")
        y = v1.placeholder(tf.float32, [8], "y")
        act = tf.nn.relu(tf.abs(x) + y, name="act")
        product = tf.matmul(act, tf.constant([[0.5] * 4] * 8), name="product")
        tf.abs(tf.negative(product), name="left")
        tf.abs(tf.negative(tf.matmul(act, tf.constant([[0.25] * 4] * 8))), name="right")
    return graph.as_graph_def()


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.pb"
    path.write_bytes(build().SerializeToString())
    return path


@pytest.fixture
def command(monkeypatch, capsys, tmp_path):
    """command(*arguments) -> (exit code, stdout, stderr) of `tf-autofuse export` in this process."""
    for name, value in (("AUTOFUSE_FLAGS", ""), ("AUTOFUSE_TARGET", ""), ("AUTOFUSE_BUILD", "sync")):
        monkeypatch.setenv(name, value)
    journal.clear()

    def call(*arguments):
        with pytest.raises(SystemExit) as end:
            cli.main(["export"] + [str(a) for a in arguments])
        out, err = capsys.readouterr()
        return end.value.code, out, err

    yield call
    journal.clear()


def test_a_frozen_graph(command, model, tmp_path):
    folder = tmp_path / "a new" / "folder"
    code, out, err = command("-o", folder, model)
    assert code == 0, err
    ops = json.loads((folder / "ops.json").read_text())
    assert {op["type"]: len(op["regions"]) for op in ops} == {
        "AutofusePointwiseAbsAddvRelu": 1,
        "AutofusePointwiseNegAbs": 2,
    }
    assert "AutofusePointwiseNegAbs for 2 regions" in out and str(folder) in out
    assert os.access(str(folder / "build.sh"), os.X_OK)
    graph = tf.compat.v1.GraphDef()
    graph.ParseFromString((folder / "fused_graph.pb").read_bytes())
    nodes = {node.name: node for node in graph.node}
    kinds = sorted(node.op for node in graph.node if node.op != "Const")
    assert kinds == sorted(
        ["Placeholder"] * 2 + ["AutofusePointwiseAbsAddvRelu"] + ["AutofusePointwiseNegAbs"] * 2
        + ["MatMul"] * 2 + ["Identity"] * 2
    )
    assert not any(node.device or any(a.startswith("_") for a in node.attr) for node in graph.node)
    assert not graph.library.function
    assert json.loads((folder / "fused_graph.json").read_text()) == {
        "inputs": ["x", "y"],
        "outputs": {"left:0": "left", "right:0": "right"},
    }
    assert nodes["left"].attr["T"].type == tf.float32.as_datatype_enum
    assert [d.size for d in nodes["x"].attr["shape"].shape.dim] == [-1, 8]
    for node in graph.node:  # whatever is read is there
        assert all(i.lstrip("^").split(":")[0] in nodes for i in node.input), node
    (fused,) = (n for n in graph.node if n.op == "AutofusePointwiseAbsAddvRelu")
    assert list(fused.input) == ["x", "y"] and list(nodes["product"].input)[0] == fused.name


def test_named_outputs_and_a_fetch_that_stays(command, model, tmp_path):
    text = tmp_path / "model.pbtxt"
    text.write_text(text_format.MessageToString(build()))
    folder = tmp_path / "out"
    code, out, err = command("-o", folder, "--outputs", "act, product:0", text)
    assert code == 0, err
    outputs = json.loads((folder / "fused_graph.json").read_text())["outputs"]
    assert outputs == {"act:0": "act", "product:0": "product"}
    assert [op["type"] for op in json.loads((folder / "ops.json").read_text())] == [
        "AutofusePointwiseAbsAddvRelu"
    ]


@pytest.mark.parametrize(
    "content, told",
    [
        (b"", "has no nodes"),
        (b"\xff\xff nonsense", "is no GraphDef"),
        (text_format.MessageToString(build()).encode(), "is no GraphDef"),
    ],
)
def test_files_that_are_no_graph(command, tmp_path, content, told):
    path = tmp_path / "model.pb"
    path.write_bytes(content)
    code, out, err = command("-o", tmp_path / "out", path)
    assert code == 2 and told in err and not (tmp_path / "out").exists()


def test_a_tensor_that_is_not_there(command, model, tmp_path):
    code, out, err = command("-o", tmp_path / "out", "--outputs", "produkt", model)
    assert code == 2 and "no tensor produkt (did you mean product?)" in err


def test_variables_must_be_frozen(command, tmp_path):
    graph = tf.Graph()
    with graph.as_default():
        held = v1.get_variable("held", [4], use_resource=True)
        tf.abs(held + 1.0)
    path = tmp_path / "model.pb"
    path.write_bytes(graph.as_graph_def().SerializeToString())
    code, out, err = command("-o", tmp_path / "out", path)
    assert code == 2 and "convert_variables_to_constants" in err


def test_a_graph_without_anything_to_fuse(command, tmp_path):
    graph = tf.Graph()
    with graph.as_default():
        tf.matmul(v1.placeholder(tf.float32, [2, 2]), tf.zeros([2, 2]))
    path = tmp_path / "model.pb"
    path.write_bytes(graph.as_graph_def().SerializeToString())
    code, out, err = command("-o", tmp_path / "out", path)
    assert code == 2 and "no region" in err and "explain" in err and not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "arguments, told",
    [
        ([], "Give it with -o FOLDER"),
        (["-o", "OUT", "--soc", "Ascend910B9"], "Ascend910B"),
        (["-o", "OUT", "--vendor", "a b"], "--vendor a b"),
        (["-o", "FULL"], "holds other things"),
        (["-o", "FILE"], "is not a folder"),
        (["-o", "EARLIER"], "--force replaces it"),
    ],
)
def test_what_is_refused_before_anything_runs(command, model, tmp_path, arguments, told):
    for name, inside in (("FULL", "letter.txt"), ("EARLIER", export_project.MARK)):
        (tmp_path / name).mkdir()
        (tmp_path / name / inside).write_text("[]")
    (tmp_path / "FILE").write_text("")
    upper = ("OUT", "FULL", "FILE", "EARLIER")
    code, out, err = command(*[tmp_path / a if a in upper else a for a in arguments], model)
    assert code == 2 and told in err and not journal.records()
    assert (tmp_path / "FULL" / "letter.txt").read_text() == "[]"


def test_a_missing_source(command, tmp_path):
    code, out, err = command("-o", tmp_path / "out", tmp_path / "nosuch.pb")
    assert code == 2 and "nosuch.pb can't be read" in err


@pytest.mark.parametrize("fails", [1, 2])
def test_what_cannot_be_written_leaves_no_traces(tmp_path, monkeypatch, fails):
    """fails: which renaming does, that of the earlier project or that of the new one."""
    calls, rename = [], os.rename

    def renamed(*paths):
        calls.append(paths)
        if len(calls) == fails:
            raise OSError("no room")
        rename(*paths)

    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "ops.json").write_text("old")
    monkeypatch.setattr(export_project.os, "rename", renamed)
    with pytest.raises(OSError):
        export_project._write({"build.sh": b"new"}, folder)
    assert os.listdir(str(tmp_path)) == ["out"] and (folder / "ops.json").read_text() == "old"


SCRIPT = """
import sys
import numpy as np
import tensorflow as tf
x = tf.compat.v1.placeholder(tf.float32, [None, 16])
y = tf.abs(x) + 1.0
with tf.compat.v1.Session() as session:
    session.run(y, {x: np.zeros((3, 16))})
sys.exit(int(sys.argv[1]))
"""


@pytest.mark.parametrize("code", [0, 4])
def test_a_script_with_a_session_of_its_own(tmp_path, code):
    script, folder = tmp_path / "script.py", tmp_path / "out"
    script.write_text(SCRIPT)
    folder.mkdir()
    (folder / "ops.json").write_text("[]")
    done = subprocess.run(
        [sys.executable, "-m", "tf_autofuse", "export", "--force", str(script), "-o", str(folder), str(code)],
        env=dict(os.environ, PYTHONPATH=str(ROOT), AUTOFUSE_FLAGS="", AUTOFUSE_TARGET=""),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
    )
    assert done.returncode == code, done.stderr
    ops = json.loads((folder / "ops.json").read_text())
    if code:
        assert ops == [] and "nothing is exported" in done.stderr
    else:
        assert [op["type"] for op in ops] == ["AutofusePointwiseAbsAddv"]
        assert not (folder / "fused_graph.pb").exists()
