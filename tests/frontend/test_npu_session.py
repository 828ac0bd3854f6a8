"""Sessions whose fused ops run on an NPU: the stand-in for libascendcl (tests/runtime/standin_acl.cpp), whose
device memory the host can't reach and which does queued work only when it is waited for.

The device binaries are twin builds that the toolkit's stand-in compiler makes; TensorFlow's own kernels are
the oracle for the results."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tests.frontend.native_session import config, fused_nodes, run_with_graph, same_bits, v1
from tests.runtime.standin import INJECTED, RUN_CALLS, Standin, build_toolkit
from tf_autofuse import diagnostics
from tf_autofuse.build.kernels import BuildSettings
from tf_autofuse.frontend import plugin
from tf_autofuse.profiling import pgo
from tf_autofuse.runtime import acl, device
from tf_autofuse.tiling import candidates
from tf_autofuse.tiling.plan_text import PLANS_SUFFIX

pytestmark = [pytest.mark.tensorflow, pytest.mark.once]
ROOT = Path(__file__).resolve().parents[2]
#: Fused ops of `chain`.
LENGTH = 50
#: Loop nodes of one of them.
SIZE = 4
LAUNCH, WAIT = "aclrtLaunchKernelWithConfig", "aclrtSynchronizeStream"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    cache = os.environ.get("AUTOFUSE_CACHE_DIR") or str(tmp_path_factory.mktemp("kernels"))
    return build_toolkit(tmp_path_factory.mktemp("cann"), BuildSettings(cache_dir=cache))


class Npu:
    """The device as a test sees it."""

    def __init__(self, home):
        self.standin = Standin(str(home / "lib64" / "libascendcl.so"))
        self.native = plugin.native()

    @property
    def runtime(self):
        (runtime,) = [r for r in acl._runtimes.values() if not r.unusable]
        return runtime

    def counts(self):
        """(calls, fallbacks, errors) of all kernels."""
        stats = self.native.stats().values()
        return tuple(sum(s[name] for s in stats) for name in ("calls", "fallbacks", "errors"))

    def left(self):
        use = self.runtime.use()
        return use.used, use.host_used, use.pending, use.lost

    def close(self):
        for runtime in acl._runtimes.values():
            runtime.close()


@pytest.fixture
def npu(home, native, monkeypatch):
    """At the end nothing is left on the device, and nothing has been misused."""
    for name, value in (("ASCEND_HOME_PATH", str(home)), ("AUTOFUSE_TARGET", "ascend"),
                        ("AUTOFUSE_FLAGS", "--enable_autofuse=true")):
        monkeypatch.setenv(name, value)
    plugin.register_again()
    diagnostics.forget()
    made = Npu(home)
    made.standin.reset()
    yield made
    made.standin.fail("", 0)
    made.close()
    device.forget()
    assert made.standin.state == (0, 0, 0, 0, 0)


def feeds(rows=5, seed=1):
    random = np.random.RandomState(seed)
    return [random.randn(rows, 64).astype(np.float32) for _ in range(2)]


class Chain:
    """`length` fused ops of SIZE nodes, each reading the one before and the second input; `plain` is a
    session of the same graph without the plugin. also: which of the tensors between them are fetched too."""

    def __init__(self, length=LENGTH, also=(), **parameters):
        with tf.Graph().as_default() as self.graph:
            self.inputs = [v1.placeholder(tf.float32, [None, 64], name=n) for n in "ab"]
            y, b = self.inputs
            between = []
            for _ in range(length):
                y = tf.nn.relu(tf.abs(y) - b) + b
                between.append(y)
            self.fetches = [y] + [between[i] for i in also]
        self.session = v1.Session(graph=self.graph, config=config(
            grappler=False, max_fusion_size=SIZE, **parameters))
        self.plain = v1.Session(graph=self.graph)

    def __call__(self, values, session=None):
        return (session or self.session).run(self.fetches, dict(zip(self.inputs, values)))

    def right(self, values):
        expected = self(values, self.plain)
        return all(same_bits(a, b) for a, b in zip(self(values), expected))


def test_tilings_are_measured_on_the_device(npu, monkeypatch, tmp_path):
    """PGO, in a cache that knows no kernel: launches before the session's own, the fastest plan kept."""
    monkeypatch.setenv("AUTOFUSE_FLAGS", "--enable_autofuse=true;--autofuse_enable_pgo=true")
    monkeypatch.setenv("AUTOFUSE_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("AUTOFUSE_BUILD", "sync")
    monkeypatch.setattr(candidates, "MOST_CANDIDATES", 3)
    monkeypatch.setattr(pgo, "LAUNCHES", 2)
    plugin.register_again()
    with tf.Graph().as_default():
        a = v1.placeholder(tf.float32, [96, 64])
        given = np.random.RandomState(1).randn(96, 64).astype("f")
        with v1.Session(config=config("NpuOptimizer", grappler=False)) as session:
            got = session.run(tf.nn.relu(tf.abs(a) - 0.5), {a: given})
    assert same_bits(got, np.maximum(np.abs(given) - np.float32(0.5), 0))
    assert npu.counts() == (1, 0, 0) and npu.left() == (0, 0, 0, 0)
    (record,) = tmp_path.rglob("*" + pgo.RECORD_SUFFIX)
    assert Path(str(record)[: -len(pgo.RECORD_SUFFIX)] + PLANS_SUFFIX).exists(), "the plan is not kept"
    ((measured, found),) = json.loads(record.read_text())["measured"].items()
    assert found["best"][0][0] <= found["solved"] and npu.standin.calls(LAUNCH) > 2 * len(found["best"])


def test_the_public_example(npu):
    with tf.Graph().as_default():
        a, b = (v1.placeholder(tf.float32, [192, 128], name=n) for n in "ab")
        result = tf.nn.relu(tf.add(tf.abs(a), b))
        random = np.random.RandomState(1)
        given = {a: random.randn(192, 128).astype("f"), b: random.randn(192, 128).astype("f")}
        with v1.Session() as plain:
            expected = plain.run(result, given)
        with v1.Session(config=config("NpuOptimizer", grappler=False)) as session:
            got, nodes = run_with_graph(session, result, given)
            assert [n.name for n in fused_nodes(nodes)] == ["autofuse_pointwise_0_Abs_Add_Relu"]
            assert same_bits(got, expected)
            for _ in range(100):
                assert same_bits(session.run(result, given), expected)
    assert npu.counts() == (101, 0, 0)
    assert npu.standin.calls(LAUNCH) == npu.standin.calls(WAIT) == 101
    assert npu.standin.calls("aclrtMalloc") == 5 and npu.left() == (0, 0, 0, 0)


def test_fifty_fused_ops_wait_once(npu):
    chain = Chain()
    _, nodes = run_with_graph(chain.session, chain.fetches, dict(zip(chain.inputs, feeds())))
    assert len(fused_nodes(nodes)) == LENGTH
    npu.standin.fail("", 0)  # counts from here
    assert chain.right(feeds())
    assert (npu.standin.calls(LAUNCH), npu.standin.calls(WAIT)) == (LENGTH, 1)
    # To the device: the tiling data and the second input of each, the first input once. Back: the result.
    assert npu.standin.calls("aclrtMemcpyAsync") == 2 * LENGTH + 1 + 1
    for rows in (1, 0, 300):
        assert chain.right(feeds(rows))
    assert npu.counts()[1:] == (0, 0) and npu.left() == (0, 0, 0, 0)


def test_a_tensor_that_is_fetched_as_well(npu):
    chain = Chain(6, also=(2, 3))
    _, nodes = run_with_graph(chain.session, chain.fetches, dict(zip(chain.inputs, feeds())))
    fused = fused_nodes(nodes)
    assert [len(n.attr["Tout"].list.type) for n in fused] == [1, 1, 2, 2, 1, 1]
    assert [list(n.attr["carries"].list.i) for n in fused][2] == [0, 0]
    assert chain.right(feeds()) and npu.counts()[1:] == (0, 0) and npu.left() == (0, 0, 0, 0)


def test_four_threads_run_the_session_at_once(npu):
    chain = Chain(10, also=(4,))
    wrong = []

    def work(seed):
        for i in range(5):
            if not chain.right(feeds(1 + (7 * seed + i) % 9, 10 * seed + i)):
                wrong.append((seed, i))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and npu.counts()[1:] == (0, 0) and npu.left() == (0, 0, 0, 0)


#: What is called for what a device that has just been opened does not have yet.
ONCE = ("aclrtCreateStream", "aclrtMalloc", "aclrtMallocHost", "aclrtBinaryLoadFromFile",
        "aclrtBinaryGetFunction")
#: What is asked for again, once all that is kept has been given back.
AGAIN = ("aclrtMalloc", "aclrtMallocHost")


@pytest.mark.parametrize("call", RUN_CALLS)
def test_a_failure_of_every_call(npu, call, capfd):
    """Wherever it fails, the results are right, and one warning has ACL's words and a remedy. The chain's
    middle is fetched, so that a run fails with values on the device before and behind it."""
    chain = Chain(4, also=(1,))
    assert chain.right(feeds())
    for at in range(1, 40):
        if call in ONCE:
            npu.close()
            plugin._npu_for(plugin._read_config({}), "ascend")
        else:
            npu.standin.fail("", 0)
            chain(feeds())  # what fails three times in a row is not tried any more
        before = npu.counts()
        npu.standin.fail(call, at)
        assert chain.right(feeds(seed=at)), at
        if npu.standin.calls(call) < at:
            break
        failed = npu.counts()[2] - before[2]
        assert failed == (0 if call in AGAIN else 1) and npu.counts()[1] - before[1] == failed, at
    else:
        pytest.fail("it is called too often")
    npu.standin.fail("", 0)
    before = npu.counts()
    assert chain.right(feeds()) and npu.counts()[1:] == before[1:] and npu.left() == (0, 0, 0, 0)
    said = [line for line in capfd.readouterr().err.splitlines() if "did not run on the NPU" in line]
    if call not in AGAIN:
        assert len(said) == 1 and "%s failed with code %d: %s: injected" % (call, INJECTED, call) in said[0]
        assert "its original ops ran" in said[0]
        assert ("cache clear" if "Binary" in call else "AUTOFUSE_TARGET=host") in said[0]


@pytest.mark.parametrize("call", ["aclrtMalloc", "aclrtMemcpyAsync", "aclrtLaunchKernelWithConfig"])
def test_what_fails_again_and_again_is_switched_off(npu, call, capfd):
    chain = Chain(3)
    assert chain.right(feeds())
    npu.runtime.trim()
    npu.standin.fail(call, -1)
    for i in range(4):
        assert chain.right(feeds(300 + i, i))
    calls = npu.standin.calls(call)
    assert chain.right(feeds(400)) and npu.standin.calls(call) == calls > 0
    assert "for the rest of this session" in capfd.readouterr().err
    npu.standin.fail("", 0)
    before = npu.counts()
    assert Chain(3).right(feeds()) and npu.counts()[1:] == before[1:] and npu.left() == (0, 0, 0, 0)


def test_strict_mode_makes_an_error_of_it(npu):
    chain = Chain(3)
    assert chain.right(feeds())
    npu.native.set_strict(True)
    npu.standin.fail("aclrtLaunchKernelWithConfig", 1)
    with pytest.raises(tf.errors.InternalError, match="failed on the NPU: aclrtLaunchKernelWithConfig"):
        chain(feeds())
    npu.native.set_strict(False)
    assert chain.right(feeds()) and npu.left() == (0, 0, 0, 0)


def test_lost_values_are_computed_again_from_what_was_read_then(npu):
    """The variable changes in place between the run whose values are lost and the wait that finds out."""
    with tf.Graph().as_default() as graph:
        start = feeds(5)[0]
        variable = v1.get_variable("v", initializer=start, use_resource=False)
        b = v1.placeholder(tf.float32, [5, 64], name="b")
        first = tf.nn.relu(tf.abs(tf.identity(variable)) - b) + b
        with tf.control_dependencies([first]):
            change = v1.assign_add(variable, tf.ones([5, 64]))
        with tf.control_dependencies([change]):
            result = tf.nn.relu(tf.abs(first) - b) + b
        given = {b: feeds(5)[1]}

        def run(session):
            session.run(variable.initializer)
            return session.run(result, given)

        with v1.Session(graph=graph) as plain:
            expected = run(plain)
        with v1.Session(graph=graph, config=config(grappler=False, max_fusion_size=SIZE)) as session:
            assert same_bits(run(session), expected) and npu.counts() == (2, 0, 0)
            npu.standin.fail("aclrtSynchronizeStream", 1)
            assert same_bits(run(session), expected) and npu.counts() == (4, 1, 1)
            assert session.run(variable).tobytes() == (start + 1).tobytes()
    assert npu.left() == (0, 0, 0, 0)


def test_a_value_that_the_kernel_refuses_is_tensorflows_error(npu):
    with tf.Graph().as_default():
        table, index = v1.placeholder(tf.float32, [20, 16]), v1.placeholder(tf.int32, [None])
        result = tf.nn.relu(tf.gather(table, index) * 2.0)
        values = np.random.RandomState(1).randn(20, 16).astype("f")
        with v1.Session(config=config(grappler=False, autofuse_enable_pass="gather")) as session:
            got = session.run(result, {table: values, index: [3, 19, 0]})
            assert same_bits(got, np.maximum(values[[3, 19, 0]] * 2, 0))
            assert npu.counts() == (1, 0, 0)
            with pytest.raises(tf.errors.InvalidArgumentError, match="= 20 is not in"):
                session.run(result, {table: values, index: [3, 20, 0]})
            assert npu.counts() == (2, 1, 0)
    assert npu.left() == (0, 0, 0, 0)


def test_a_debugger_that_watches_a_tensor_on_the_device(npu, tmp_path):
    """It puts a copy between the two fused ops; what it writes are the values."""
    chain = Chain(3)
    _, nodes = run_with_graph(chain.session, chain.fetches, dict(zip(chain.inputs, feeds())))
    watched = fused_nodes(nodes)[0].name
    options = v1.RunOptions()
    options.debug_options.debug_tensor_watch_opts.add(
        node_name=watched, output_slot=0, debug_ops=["DebugIdentity"], debug_urls=["file://" + str(tmp_path)])
    got = chain.session.run(chain.fetches, dict(zip(chain.inputs, feeds())), options=options)
    assert same_bits(got[0], chain(feeds(), chain.plain)[0])
    (written,) = [path for path in tmp_path.rglob("*") if path.is_file() and watched in path.name]
    assert written.stat().st_size > 5 * 64 * 4


def test_with_profiling_everything_goes_over_the_host(npu, tmp_path):
    chain = Chain(3, profiling_mode=True, profiling_options='{"output": "%s"}' % tmp_path)
    assert chain.right(feeds()) and npu.counts() == (3, 0, 0)
    assert npu.standin.calls("aclrtSynchronizeStream") == 3


FORK = """
import os, sys
from tests.frontend.test_npu_session import Chain, feeds, plugin
plugin.native()
assert plugin._npu_for(plugin._read_config({}), "ascend") is not None
child = os.fork()
if child == 0:
    right = Chain(3).right(feeds())
    sys.stderr.flush()
    os._exit(0 if right else 1)
code = os.waitpid(child, 0)[1]
assert code == 0, code
assert Chain(3).right(feeds()) and plugin.native().stats()
# The runtime is left open: the process's end closes it.
"""


def test_a_forked_child_runs_the_original_ops(npu):
    done = subprocess.run([sys.executable, "-c", FORK], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=300, universal_newlines=True, cwd=str(ROOT))
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stderr.splitlines() if "forked" in line]
    assert len(said) == 1 and "nothing is fused in this process" in said[0] and "spawn" in said[0]
