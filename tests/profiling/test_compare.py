"""`tf-autofuse compare`: the differences, and a script from end to end."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from tf_autofuse.cli import cli
from tf_autofuse.profiling import compare as comparing
from tf_autofuse.profiling.compare import Difference, difference

X = np.array([1.0, -2.0, np.nan, np.inf, 0.0], np.float32)


def changed(index, value):
    y = X.copy()
    y[index] = value
    return y


@pytest.mark.parametrize(
    "on, expected",
    [
        (X, (1, 0, 0, 0.0, 0.0)),
        (changed(1, -2.5), (1, 1, 0, 0.5, 0.25)),
        (changed(4, 0.125), (1, 1, 0, 0.125, 0.0)),  # relative to 0 says nothing
        (changed(4, -0.0), (1, 1, 0, 0.0, 0.0)),
        (changed(2, 1.0), (1, 1, 1, 0.0, 0.0)),
        (changed(3, -np.inf), (1, 1, 1, 0.0, 0.0)),
        (X[:4], (1, 1, 1, 0.0, 0.0)),
        (X.astype(np.float64), (1, 1, 1, 0.0, 0.0)),
    ],
)
def test_differences(on, expected):
    assert difference([[X]], [[on]]) == Difference(*expected)


def test_differences_of_other_types_and_counts():
    whole = np.array([1, 5], np.int32)
    assert difference([[whole]], [[np.array([1, 4], np.int32)]]) == (1, 1, 0, 1.0, 0.2)
    assert difference([[whole, whole]], [[whole]]) == (1, 0, 1, 0.0, 0.0)
    assert difference([[whole], [whole]], [[whole]]) == (1, 0, 1, 0.0, 0.0)
    assert difference([[np.zeros((0, 3), np.float32)]] * 2, [[np.zeros((0, 3), np.float32)]] * 2) == (
        2,
        0,
        0,
        0.0,
        0.0,
    )
    flags = np.array([True, False])
    assert difference([[flags]], [[~flags]]).worst_absolute == 1.0


def test_units_in_the_last_place_are_those_of_the_largest_value():
    a = np.array([1024.0, 1e-6, np.nan], np.float32)
    b = a + np.array([0.0, np.spacing(np.float32(1024.0)), 0.0], np.float32)
    assert comparing.ulps([[a]], [[b]]) == pytest.approx(1.0, rel=1e-3)
    assert comparing.ulps([[a.astype(np.float64)]], [[b]]) == 0.0  # another type is no rounding
    assert comparing.ulps([[np.array([3])], [a[2:]]], [[np.array([4])], [a[2:]]]) == 0.0


@pytest.mark.parametrize(
    "found, fused, worst, in_half, within, told",
    [
        (Difference(3, 0, 0, 0.0, 0.0), ["Exp"], 0.0, False, True, "bit-identical"),
        (Difference(3, 1, 0, 1e-7, 1e-7), ["Exp", "AddV2"], 1.0, False, True, "the fused Exp"),
        (Difference(3, 1, 0, 1e-7, 1e-7), ["Abs", "AddV2"], 1.0, False, False, "please report"),
        (Difference(3, 1, 0, 1e-7, 1e-7), [], 1.0, False, False, "please report"),
        (Difference(3, 1, 0, 1e-2, 1e-2), ["Exp"], 1e5, False, False, "training"),
        (Difference(3, 1, 0, 1e-3, 1e-3), ["Abs"], 8192.0, True, True, "float16"),
        (Difference(3, 1, 0, 1.0, 1.0), ["Abs"], 1e7, True, False, "explains less"),
        (Difference(3, 1, 0, 0.0, 0.0), ["Neg"], 0.0, False, True, "signs of zeros"),
        (Difference(3, 1, 1, 0.0, 0.0), ["Exp"], 0.0, False, False, "not rounding"),
        (Difference(3, 0, 1, 0.0, 0.0), [], 0.0, False, False, "not rounding"),
    ],
)
def test_judgements(found, fused, worst, in_half, within, told):
    judgement = comparing.judge(found, fused, worst, in_half)
    assert judgement.within == within and told in judgement.text, judgement


SCRIPT = """
import sys
import numpy as np
import tensorflow as tf
tf.compat.v1.disable_eager_execution()
x = tf.compat.v1.placeholder(tf.float32, [None, 64])
noise = tf.random.uniform([64])
y = tf.nn.relu(tf.abs(x) * 2.0 - noise)
with tf.compat.v1.Session() as session:  # no entry for the plugin
    for _ in range(int(sys.argv[1])):
        session.run({"y": y, "pair": (y, noise)}, {x: np.random.randn(32, 64)})
"""


@pytest.mark.tensorflow
def test_a_script(tmp_path, monkeypatch):
    pytest.importorskip("tensorflow")
    monkeypatch.setenv("AUTOFUSE_FLAGS", "")
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    done = CliRunner().invoke(cli, ["compare", "--json", str(path), "4"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.output)
    off, on = found["off"], found["on"]
    assert (off["fused"], on["fused"]) == (0, 1) and on["kernels"] < off["kernels"]
    assert on["modelled_us"] < off["modelled_us"] and on["moved_bytes"] < off["moved_bytes"]
    assert off["runs"] == on["runs"] == 4 and on["ops"] < off["ops"] and off["host_us"] > 0
    # the same seeds: what differs is rounding at most
    assert found["difference"]["compared"] == 12 and found["difference"]["mismatched"] == 0
    assert found["difference"]["worst_absolute"] <= 1e-6
    assert found["judgement"]["within"], found["judgement"]


def test_what_cannot_be_compared(tmp_path, monkeypatch):
    done = CliRunner().invoke(cli, ["compare", str(tmp_path / "none.py")])
    assert done.exit_code == 2 and "can't be read" in done.output
    stub = tmp_path / "python"  # stands for an interpreter whose script fails
    stub.write_text("#!/bin/sh\necho the last words\nexit 3\n")
    stub.chmod(0o755)
    monkeypatch.setattr(comparing.sys, "executable", str(stub))
    path = tmp_path / "script.py"
    path.write_text("")
    done = CliRunner().invoke(cli, ["compare", str(path)])
    assert done.exit_code == 2 and "exit code 3" in done.output and "the last words" in done.output
    stub.write_text("#!/bin/sh\nexit 0\n")  # a script that runs no session
    done = CliRunner().invoke(cli, ["compare", str(path)])
    assert done.exit_code == 2 and "ran no session" in done.output
