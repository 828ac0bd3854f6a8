"""Sessions that keep the memory of large tensors: from when on, which not, and that nobody notices.

No kernel is registered here: fused nodes run their original ops, which allocate from the same device.
"""
import gc
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from tests.frontend.native_session import (
    Recorder, config, fused_nodes, greedy_edits, run_with_graph, same_bits, v1)

pytestmark = pytest.mark.tensorflow
LIMIT = 1 << 30
ROWS = 512
BYTES = ROWS * 1024 * 4


@pytest.fixture(autouse=True)
def graph(native):
    gc.collect()
    assert native.memory()["kept"] == 0
    with tf.Graph().as_default() as made:
        yield made
    gc.collect()
    assert native.memory()["kept"] == 0


@pytest.fixture(autouse=True)
def malloc_as_it_is(monkeypatch):
    for name in ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_", "MALLOC_MMAP_MAX_",
                 "GLIBC_TUNABLES"):
        monkeypatch.delenv(name, raising=False)


class Chain:
    """x -> relu(x + 1) * 2, both large, and a pass that fuses it and asks to keep `limit` bytes."""

    def __init__(self, native, limit=LIMIT, choose=greedy_edits):
        self.native, self.limit = native, limit
        self.x = v1.placeholder(tf.float32, [None, 1024], name="x")
        self.y = tf.nn.relu(self.x + 1.0) * 2.0
        self.recorder = Recorder(lambda columns: self._ask() or choose(columns)).install()
        native.set_strict(True)

    def _ask(self):
        if self.limit is not None:
            self.native.keep_memory(self.limit)

    def run(self, session, rows=ROWS):
        fed = np.random.RandomState(rows).randn(rows, 1024).astype("f")
        got = session.run(self.y, {self.x: fed})
        np.testing.assert_array_equal(got, np.maximum(fed + 1, 0) * 2)
        return got


def grown(native, before):
    now = native.memory()
    return {name: now[name] - before[name] for name in ("mapped", "reused")}


def test_the_second_call_takes_the_memory_of_the_first(native):
    chain, before = Chain(native), native.memory()
    with v1.Session(config=config()) as session:
        assert fused_nodes(run_with_graph(session, chain.y, {chain.x: np.ones((2, 1024), "f")})[1])
        assert grown(native, before) == dict(mapped=0, reused=0)  # too small
        chain.run(session)
        first = grown(native, before)
        assert first["mapped"] > 0
        for _ in range(3):
            chain.run(session)
        assert grown(native, before)["mapped"] == first["mapped"]
        assert grown(native, before)["reused"] >= first["reused"] + 3
        assert native.memory()["kept"] >= BYTES
    gc.collect()
    assert native.memory()["kept"] == native.memory()["in_use"] == 0


@pytest.mark.parametrize("entry, limit, choose", [
    (None, LIMIT, greedy_edits), ("AutofuseOptimizer", LIMIT, lambda columns: []),
    ("AutofuseOptimizer", 0, greedy_edits), ("AutofuseOptimizer", None, greedy_edits)],
    ids=["no entry", "nothing fused", "switched off", "not said"])
def test_other_sessions_stay_with_malloc(native, entry, limit, choose):
    chain, before = Chain(native, limit, choose), native.memory()
    with v1.Session(config=config(entry)) as session:
        assert native.memory()["devices"] == (entry is not None)  # else TensorFlow's own
        chain.run(session)
        chain.run(session)
    del session
    gc.collect()
    assert native.memory() == before


def test_a_session_beside_one_that_keeps_stays_with_malloc(native):
    chain = Chain(native)
    with v1.Session(config=config()) as keeps, v1.Session(config=config(None)) as other:
        chain.run(keeps)
        before = native.memory()
        chain.run(other)
        assert native.memory() == before


def test_a_session_stops_keeping_where_a_later_graph_says_so(native):
    chain = Chain(native)
    with v1.Session(config=config()) as session:
        chain.run(session)
        chain.limit = 0
        z = tf.nn.relu(chain.x - 1.0) * 3.0
        session.run(z, {chain.x: np.ones((4, 1024), "f")})
        gc.collect()
        assert native.memory()["kept"] == 0
        before = native.memory()
        chain.run(session)
        assert native.memory() == before


@pytest.mark.parametrize("name, value", [
    ("MALLOC_MMAP_THRESHOLD_", "1000000"), ("MALLOC_TRIM_THRESHOLD_", "1"), ("MALLOC_TOP_PAD_", "1"),
    ("MALLOC_MMAP_MAX_", "0"), ("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")])
def test_a_process_that_has_chosen_for_itself_is_left_alone(native, monkeypatch, name, value):
    assert native.chosen_malloc() == ""
    monkeypatch.setenv(name, value)
    assert native.chosen_malloc() == name
    chain, before = Chain(native), native.memory()
    with v1.Session(config=config()) as session:
        assert native.memory()["devices"] == 0
        chain.run(session)
    assert native.memory() == before


def test_other_tunables_choose_nothing(native, monkeypatch):
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.cpu.x86_rep_movsb_threshold=4096")
    assert native.chosen_malloc() == ""


def test_another_malloc_is_seen(tmp_path):
    source, library = tmp_path / "other.c", tmp_path / "libother.so"
    source.write_text("#include <stddef.h>\nvoid* __libc_malloc(size_t);\n"
                      "void* malloc(size_t n) { return __libc_malloc(n); }\n")
    subprocess.check_call([os.environ.get("CC") or shutil.which("gcc"), "-shared", "-fPIC", "-fno-builtin",
                           "-o", str(library), str(source)])
    program = ("import tensorflow\nfrom tf_autofuse.frontend import _native\n"
               "print(_native.chosen_malloc())")
    environment = dict(os.environ, LD_PRELOAD=str(library), TF_CPP_MIN_LOG_LEVEL="3")
    said = subprocess.check_output([sys.executable, "-W", "ignore", "-c", program], env=environment,
                                   universal_newlines=True, stderr=subprocess.DEVNULL)
    assert said.split("\n")[-2] == "malloc of libother.so"


def test_fetched_tensors_outlive_their_session(native):
    chain = Chain(native)
    session = v1.Session(config=config())
    got = [chain.run(session, rows) for rows in (ROWS, ROWS + 1, ROWS)]
    wanted = [array.copy() for array in got]
    session.close()
    del session
    gc.collect()
    held = native.memory()
    assert held["kept"] == 0 and held["in_use"] >= 3 * BYTES
    with v1.Session(config=config()) as another:
        chain.run(another)
        assert all(same_bits(a, b) for a, b in zip(got, wanted))
    got.clear()
    gc.collect()
    assert native.memory()["in_use"] == 0


def test_fetched_tensors_are_not_written_again(native):
    chain = Chain(native)
    with v1.Session(config=config()) as session:
        first = chain.run(session)
        copy = first.copy()
        for rows in (ROWS, ROWS + 8, ROWS):
            chain.run(session, rows)
            session.run(chain.y, {chain.x: np.zeros((ROWS, 1024), "f")})
        assert same_bits(first, copy)


def test_the_limit_is_kept(native):
    chain = Chain(native, limit=BYTES)
    with v1.Session(config=config()) as session:
        for rows in (ROWS, ROWS // 2, 2 * ROWS, ROWS):
            chain.run(session, rows)
            assert native.memory()["kept"] <= BYTES


def test_variables_and_loops_keep_their_values(native):
    """What lives long lies beside what is freed at each step."""
    start = np.random.RandomState(3).randn(ROWS, 1024).astype("f")
    variable = v1.get_variable("v", initializer=start, use_resource=True)
    chain = Chain(native)
    step = variable.assign_add(tf.nn.relu(variable * 0.5) * 0.25)
    total = tf.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, tf.nn.relu(s + variable) * 0.5),
                          [0, tf.zeros_like(variable)])[1]

    def run(session):
        session.run(v1.global_variables_initializer())
        values = []
        for _ in range(3):
            session.run(step)
            values.append(session.run([variable, total]))
        return values
    with v1.Session(config=config()) as session:
        got, before = run(session), native.memory()
        assert before["reused"] > 0 and before["in_use"] >= BYTES
        chain.run(session)
    with v1.Session(config=config(None)) as session:
        wanted = run(session)
    for a, b in zip(got, wanted):
        assert same_bits(a[0], b[0]) and same_bits(a[1], b[1])
