"""Sessions that run before their kernels are built, and that find everything ready in the next process."""
import logging
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tf_autofuse import background, diagnostics, kernel_store
from tf_autofuse.background import Workshop
from tf_autofuse.frontend import answers, plugin
from tf_autofuse.kernel_store import StageFailure
from tests.frontend.native_session import config as session_config

v1 = tf.compat.v1
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    """The plugin with an empty cache and an empty memory."""
    monkeypatch.setenv("AUTOFUSE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("AUTOFUSE_FLAGS", "--enable_autofuse=true")
    plugin.register_again()
    for memory in (answers, kernel_store, diagnostics):
        memory.forget()
    yield
    for memory in (answers, kernel_store, diagnostics):
        memory.forget()


class Gate:
    """Lets the workshop make its kernels one by one, or says what comes instead."""

    def __init__(self, instead=None):
        self.open = threading.Semaphore(0)
        self.instead = instead

    def __call__(self, store, bodies):
        self.open.acquire()
        if self.instead is not None:
            return {store.key(body): self.instead for body in bodies}
        return store.make(bodies, lambda stage, work: work())


def gated(monkeypatch, build, instead=None):
    gate = Gate(instead)
    shop = Workshop(gate)
    monkeypatch.setattr(background, "_the_workshop", shop)
    monkeypatch.setenv("AUTOFUSE_BUILD", build)
    return gate, shop


class Chain:
    """A session of relu(abs(x) + value); `value` makes its kernel another one."""

    def __init__(self, value):
        self.value = np.float32(value)
        self.edits = []
        with tf.Graph().as_default() as graph:
            self.x = v1.placeholder(tf.float32, [None, 33])
            self.y = tf.nn.relu(tf.abs(self.x) + self.value)
            self.session = v1.Session(graph=graph, config=session_config(grappler=False))

    def check(self, rows=5):
        x = np.random.RandomState(rows).randn(rows, 33).astype(np.float32)
        assert (self.session.run(self.y, {self.x: x}) == np.maximum(np.abs(x) + self.value, 0)).all()


def stats():
    """(calls, fallbacks) of the kernels that ran."""
    found = [s for s in plugin.native().stats().values() if s["calls"]]
    return sum(s["calls"] for s in found), sum(s["fallbacks"] for s in found)


@pytest.fixture(autouse=True)
def counters():
    plugin.native().reset_stats()
    yield
    plugin.native().reset_stats()


def test_original_ops_run_until_the_kernel_is_there(fresh, monkeypatch):
    gate, shop = gated(monkeypatch, "async")
    chain = Chain(0.37)
    for _ in range(3):
        chain.check()
    assert stats() == (3, 3)
    gate.open.release()
    assert shop.wait(list(shop._pending))
    chain.check()
    chain.check(7)
    assert stats() == (5, 3)


def test_verbose_says_what_is_built_in_the_background(fresh, monkeypatch, caplog):
    monkeypatch.setenv("AUTOFUSE_VERBOSE", "1")
    gate, shop = gated(monkeypatch, "async")
    with caplog.at_level(logging.INFO, logger="tf_autofuse"):
        Chain(0.371).check()
        pending = list(shop._pending)
        gate.open.release()
        assert shop.wait(pending)
        Chain(0.371).check()
    first, second = [r.getMessage() for r in caplog.records if "nodes fused into 1 op " in r.getMessage()]
    assert "; building 1 kernel in the background" in first and "background" not in second


def test_a_session_is_closed_while_its_kernel_is_built(fresh, monkeypatch):
    gate, shop = gated(monkeypatch, "async")
    chain = Chain(0.38)
    chain.check()
    chain.session.close()
    pending = list(shop._pending)
    gate.open.release()
    assert shop.wait(pending)
    other = Chain(0.38)  # finds it ready
    other.check()
    assert stats() == (2, 1)


def test_what_is_there_in_time_is_used_at_once(fresh, monkeypatch):
    gate, _ = gated(monkeypatch, "auto")
    monkeypatch.setattr("tf_autofuse.compiler.PATIENCE", 3600.0)
    gate.open.release()
    Chain(0.39).check()
    assert stats() == (1, 0)


def test_what_is_not_there_in_time_is_not_waited_for(fresh, monkeypatch):
    gate, shop = gated(monkeypatch, "auto")
    monkeypatch.setattr("tf_autofuse.compiler.PATIENCE", 1e-9)
    chain = Chain(0.40)
    chain.check()
    assert stats() == (1, 1)
    gate.open.release()
    assert shop.wait(list(shop._pending))
    chain.check()
    assert stats() == (2, 1)


def test_a_build_that_fails_is_one_warning(fresh, monkeypatch, caplog):
    gate, shop = gated(monkeypatch, "async", StageFailure("build", "the compiler is on strike", "wait"))
    with caplog.at_level(logging.WARNING, logger="tf_autofuse"):
        first, second = Chain(0.41), Chain(0.41)
        first.check()
        second.check()
        pending = list(shop._pending)
        gate.open.release()
        assert shop.wait(pending)
        for chain in (first, second, first):
            chain.check()
    assert stats() == (5, 5)
    assert [r.getMessage() for r in caplog.records if "on strike" in r.getMessage()] == [
        "tf_autofuse: autofuse_pointwise_0_Abs_AddV2_Relu was not fused: build failed: "
        "the compiler is on strike. Wait."]


def test_sync_waits(fresh, monkeypatch):
    gated(monkeypatch, "sync")
    Chain(0.42).check()
    assert stats() == (1, 0)


def test_the_next_process_analyses_nothing(fresh, monkeypatch):
    monkeypatch.setenv("AUTOFUSE_BUILD", "sync")
    Chain(0.43).check()
    for memory in (answers, kernel_store):
        memory.forget()

    def never(*_, **__):
        raise AssertionError("the graph is analysed again")

    monkeypatch.setattr("tf_autofuse.compiler.compile_graph", never)
    Chain(0.43).check()
    assert stats() == (2, 0)


COMPILER = """\
#!/bin/sh
case "$*" in
  --version) echo "g++ (stand-in) 12.2.0"; exit 0;;
esac
echo $$ > "{started}"
exec cat "{never}"
"""

PROGRAM = """\
import os
import numpy as np, tensorflow as tf
import tf_autofuse
v1 = tf.compat.v1
config = tf_autofuse.configure(v1.ConfigProto())
x = v1.placeholder(tf.float32, [None])
with v1.Session(config=config) as session:
    print(session.run(tf.nn.relu(tf.abs(x) + 0.44), {{x: np.ones(3, np.float32)}}))
with open("{started}") as stream:  # until the compiler runs
    print("compiler", stream.read().strip())
"""


def test_a_process_ends_while_its_kernel_is_built(tmp_path):
    """The stand-in compiler never ends by itself."""
    names = {name: str(tmp_path / name) for name in ("started", "never")}
    for path in names.values():
        os.mkfifo(path)
    compiler = tmp_path / "g++"
    compiler.write_text(COMPILER.format(**names))
    compiler.chmod(0o755)
    environ = dict(os.environ, CXX=str(compiler), AUTOFUSE_BUILD="async", AUTOFUSE_TARGET="host",
                   AUTOFUSE_FLAGS="--enable_autofuse=true", AUTOFUSE_CACHE_DIR=str(tmp_path / "cache"),
                   PYTHONPATH=str(ROOT))
    done = subprocess.run([sys.executable, "-c", PROGRAM.format(**names)], env=environ,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
    output = done.stdout.decode()
    assert done.returncode == 0, done.stderr.decode()
    assert "[1.44 1.44 1.44]" in output
    process = int(output.split("compiler")[1])
    with pytest.raises(ProcessLookupError):
        os.kill(process, signal.SIGCONT)
