"""The AscBackend op: kernels, plans, dynamic shapes, and the original ops wherever a kernel can't run."""

import json
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tests.frontend.native_session import (
    FLOAT,
    Recorder,
    compile_kernel,
    config,
    edit,
    fused_nodes,
    meta,
    run_with_graph,
    same_bits,
    v1,
)

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def libraries(kernel_folder):
    """Each kind compiled once."""
    made = {}

    def get(kind, **macros):
        key = (kind,) + tuple(sorted(macros.items()))
        if key not in made:
            made[key] = compile_kernel(kernel_folder, kind, **macros)
        return made[key]

    return get


@pytest.fixture
def key(request, native):
    """A kernel key of this test's own: the registry and its counters live as long as the process."""
    name = request.node.name
    yield name
    native.unregister_kernel(name)


class Fused:
    """A session of relu(abs(a) + b) on [None, None] (SUM), |a| and -a (TWO) or -a (else) on [None], fused."""

    def __init__(self, key, kind="SUM", inputs=None, static=False):
        self.graph = tf.Graph()
        with self.graph.as_default():
            if kind == "SUM":
                shape = [None, None]
                a, b = (v1.placeholder(tf.float32, shape, name=n) for n in "ab")
                self.feeds = [a, b]
                self.fetches = tf.nn.relu(tf.add(tf.abs(a, name="Abs"), b, name="Add"), name="Relu")
                names = ["Abs", "Add", "Relu"]
            else:
                a = v1.placeholder(tf.float32, [None], name="a")
                self.feeds = [a]
                source = inputs(a) if inputs else a
                if kind == "TWO":
                    self.fetches = [tf.abs(source, name="Abs"), tf.negative(source, name="Neg")]
                    names = ["Abs", "Neg"]
                else:
                    self.fetches = tf.negative(source, name="Neg")
                    names = ["Neg"]
                if inputs:  # so that the fused node's outputs are not the session's results
                    self.fetches = tf.nest.map_structure(lambda t: tf.identity(t) + 0.0, self.fetches)
        # Grappler would simplify the graphs of single ops away.
        Recorder(lambda columns: [edit(columns, names, key=key)]).install()
        self.session = v1.Session(graph=self.graph, config=config(grappler=False))

    def __call__(self, *values):
        return self.session.run(self.fetches, dict(zip(self.feeds, values)))


def expected(a, b):
    return np.maximum(np.abs(a) + b, np.float32(0))


def random(*shape):
    return np.random.RandomState(sum(shape)).randn(*shape).astype("f")


def test_a_kernel_gives_the_values(native, libraries, key):
    native.register_kernel(key, meta(libraries("SUM")))
    fused = Fused(key)
    a, b = random(192, 128), random(128, 192).T.copy()
    result, nodes = run_with_graph(fused.session, fused.fetches, dict(zip(fused.feeds, (a, b))))
    assert len(fused_nodes(nodes)) == 1 and same_bits(result, expected(a, b))
    stats = native.stats()[key]
    assert (stats["calls"], stats["plans"], stats["fallbacks"], stats["errors"]) == (1, 1, 0, 0)
    assert stats["last"] == {"dims": [192, 128, 192, 128], "block_dim": 48, "refused": ""}
    assert stats["run_ns"] == 0


def test_one_kernel_serves_all_shapes(native, libraries, key):
    native.register_kernel(key, meta(libraries("SUM")))
    fused = Fused(key)
    shapes = [(1, 1), (7, 128), (0, 128), (3, 0), (1024, 128), (5, 3), (300, 1), (1, 65), (64, 64), (2, 2)]
    for _ in range(2):
        for shape in shapes:
            a, b = random(*shape), random(*shape)
            assert same_bits(fused(a, b), expected(a, b)), shape
    stats = native.stats()[key]
    assert stats["fallbacks"] == 0 and stats["calls"] == 2 * len(shapes)
    assert stats["plans"] == len(shapes)


def test_more_shapes_than_are_kept(native, libraries, key):
    """64 plans stay for good and 8 more for a while: 80 shapes in turn are planned again from the 65th on."""
    native.register_kernel(key, meta(libraries("WORKSPACE"), "WORKSPACE"))
    fused = Fused(key, "WORKSPACE")
    for _ in range(2):
        for size in range(80):
            assert same_bits(fused(random(size)), -random(size)), size
    assert native.stats()[key]["plans"] == 80 + 16
    for size in list(range(64)) + list(range(72, 80)):
        assert same_bits(fused(random(size)), -random(size)), size
    stats = native.stats()[key]
    assert stats["plans"] == 80 + 16 and stats["fallbacks"] == 0


def test_a_guard_that_fails_gives_tensorflows_result(native, libraries, key):
    native.register_kernel(key, meta(libraries("SUM")))
    fused = Fused(key)
    a, b = random(4, 8), random(1, 8)
    assert same_bits(fused(a, b), expected(a, b))
    stats = native.stats()[key]
    assert stats["fallbacks"] == 1 and stats["last"]["refused"] == "the first dims agree"
    fused(a, b)
    assert native.stats()[key]["plans"] == 1  # the refusal is remembered
    assert same_bits(fused(a, a), expected(a, a))
    assert native.stats()[key]["fallbacks"] == 2


def test_mismatching_shapes_give_tensorflows_error(native, libraries, key):
    native.register_kernel(key, meta(libraries("SUM")))
    fused = Fused(key)
    with v1.Session(graph=fused.graph) as plain:
        with pytest.raises(tf.errors.OpError) as original:
            plain.run(fused.fetches, dict(zip(fused.feeds, (random(4, 8), random(3, 8)))))
    with pytest.raises(type(original.value)) as caught:
        fused(random(4, 8), random(3, 8))
    first = original.value.message.splitlines()[0]
    assert first == "Incompatible shapes: [4,8] vs. [3,8]"
    assert caught.value.message.splitlines()[0] == first
    assert "__autofuse_fallback_" not in caught.value.message
    assert caught.value.op is not None and caught.value.op.name == "Add"
    a = random(4, 8)
    assert same_bits(fused(a, a), expected(a, a))  # the session goes on


def test_two_outputs(native, libraries, key):
    native.register_kernel(key, meta(libraries("TWO"), "TWO"))
    fused = Fused(key, "TWO")
    for size in (1, 5, 0, 70000):
        a = random(size)
        absolute, negative = fused(a)
        assert same_bits(absolute, np.abs(a)) and same_bits(negative, -a)
    assert native.stats()[key]["fallbacks"] == 0


def test_an_unknown_rank_that_differs_runs_the_original_ops(native, libraries, key):
    native.register_kernel(key, meta(libraries("SUM"), input_ranks=[3, 2]))
    fused = Fused(key)
    a, b = random(4, 8), random(4, 8)
    assert same_bits(fused(a, b), expected(a, b))
    assert native.stats()[key]["fallbacks"] == 1


@pytest.mark.parametrize("kind, refused", [("NO_TILING", "no tiling fits"), ("NEGATIVE", "-5")])
def test_a_kernel_without_a_plan(native, libraries, key, kind, refused):
    native.register_kernel(key, meta(libraries(kind), kind))
    fused = Fused(key, kind)
    a = random(9)
    assert same_bits(fused(a), -a)
    stats = native.stats()[key]
    assert stats["fallbacks"] == 1 and refused in stats["last"]["refused"]


def test_workspace(native, libraries, key):
    native.register_kernel(key, meta(libraries("WORKSPACE"), "WORKSPACE"))
    fused = Fused(key, "WORKSPACE")
    for size in (3, 100000, 0):
        assert same_bits(fused(random(size)), -random(size))
    assert native.stats()[key]["fallbacks"] == 0


@pytest.mark.parametrize("kind", ["TOGETHER", "WORKSPACE"])
def test_blocks_over_threads(native, libraries, key, kind):
    """`small_bytes` 0 sends small launches to the pool too, not a kernel that wants all blocks at once."""
    native.register_kernel(key, meta(libraries(kind), kind, small_bytes=0))
    fused = Fused(key, kind)
    for size in (1, 257, 5000, 100001):
        assert same_bits(fused(random(size)), -random(size))
    stats = native.stats()[key]
    assert stats["fallbacks"] == 0 and stats["errors"] == 0


@pytest.mark.parametrize("cost", [None, 1, 10 ** 6])
def test_a_phase_begins_when_the_one_before_has_ended(native, libraries, key, cost):
    macros = {} if cost is None else {"COST": cost}
    native.register_kernel(key, meta(libraries("PHASES", **macros), "PHASES", small_bytes=0))
    fused = Fused(key, "PHASES")
    for size in (1, 257, 5000, 100001, 0):
        a = random(size) if size else np.zeros(0, "f")
        assert same_bits(fused(a), -a[::-1]), size
    stats = native.stats()[key]
    assert stats["fallbacks"] == 0 and stats["errors"] == 0


@pytest.mark.parametrize("error", [-1, 1])
def test_phases_that_leave_blocks_out(native, libraries, key, error):
    native.register_kernel(key, meta(libraries("PHASES", PHASE_ERROR=error), "PHASES"))
    fused = Fused(key, "PHASES")
    assert same_bits(fused(random(1000)), -random(1000))  # the original op
    stats = native.stats()[key]
    assert stats["fallbacks"] == 1 and "phases" in stats["last"]["refused"]


@pytest.mark.parametrize("threads", [1, 2])
def test_the_cost_decides_who_runs_the_blocks(native, libraries, threads):
    """48 blocks: up to 30 us in all the calling thread takes them in one call, beyond that nobody takes them
    all. A kernel that does not know its cost (-1) is judged by its bytes. With one thread there is nothing to
    decide."""
    costs = (1, 600, 700, 10 ** 18, -1)
    program = [sys.executable, "-m", "tests.frontend.native_groups", str(threads)]
    made = [libraries("GROUPS", COST=cost) for cost in costs]
    root = str(Path(__file__).parents[2])
    done = subprocess.run(program + made, stdout=subprocess.PIPE, cwd=root, check=True)
    found = iter(json.loads(done.stdout.decode().splitlines()[-1]))
    for cost in costs:
        for small_bytes in (0, 1 << 30):
            low, high = next(found)
            alone = threads == 1 or (cost * 48 <= 30000 if cost >= 0 else small_bytes > 0)
            assert (low, high) == (48, 48) if alone else 0 < low <= high < 48, (cost, small_bytes, low, high)


@pytest.mark.parametrize("cost", [700, 10 ** 6])
def test_every_block_runs_once_whoever_takes_it(native, libraries, key, cost):
    """Also with a helper that comes late, or when all is done."""
    native.register_kernel(key, meta(libraries("COUNTS", COST=cost), "COUNTS"))
    fused = Fused(key, "COUNTS")
    values = np.ones(48 * 256, np.float32)
    for launch in range(200):
        assert (fused(values) == launch + 1).all()
    assert native.stats()[key]["fallbacks"] == 0


def test_helpers_have_the_floating_point_mode_of_the_caller(native, libraries, key):
    """TensorFlow's threads flush denormals: all blocks of a launch do, or none."""
    native.register_kernel(key, meta(libraries("HALVES", COST=10 ** 6), "HALVES"))
    fused = Fused(key, "HALVES")
    smallest = np.full(48 * 256, np.finfo(np.float32).tiny)
    assert all(len(np.unique(fused(smallest))) == 1 for _ in range(300))
    assert native.stats()[key]["fallbacks"] == 0


@pytest.mark.parametrize("cost", [1, 10 ** 6])
@pytest.mark.parametrize("strict", [False, True])
def test_a_value_that_is_not_for_the_kernel(native, libraries, key, capfd, cost, strict):
    """No error and no warning, however often: the original op gives the result, and the kernel stays in
    use."""
    native.set_strict(strict)
    native.register_kernel(key, meta(libraries("VALUES", COST=cost), "VALUES"))
    fused = Fused(key, "VALUES")
    good = np.abs(random(48 * 256))
    bad = good.copy()
    bad[[300, 5000]] *= -1
    for _ in range(5):
        assert same_bits(fused(bad), -bad)
    assert same_bits(fused(good), -good)
    stats = native.stats()[key]
    assert (stats["calls"], stats["fallbacks"], stats["errors"], stats["plans"]) == (6, 5, 0, 1)
    assert "tf_autofuse" not in capfd.readouterr().err


def test_warnings_show_whatever_tensorflow_logs(native, libraries, key, capfd, monkeypatch):
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "3")
    native.register_kernel(key, meta(libraries("SUM"), input_dtypes=[FLOAT, 3]))
    fused = Fused(key)
    fused(random(4, 8), random(4, 8))
    fused(random(4, 8), random(4, 8))
    line = "tf_autofuse: kernel test_sum is not for the types of autofuse_test"
    assert capfd.readouterr().err.count(line) == 1


def test_the_same_kernel_registered_again_keeps_the_plans(native, libraries, key):
    description = meta(libraries("SUM"))
    native.register_kernel(key, description)
    fused = Fused(key)
    for _ in range(2):
        fused(random(4, 8), random(4, 8))
        native.register_kernel(key, description)
    assert native.stats()[key]["plans"] == 1
    native.disable_kernel(key)
    native.register_kernel(key, description)  # in use again, as another kernel
    fused(random(4, 8), random(4, 8))
    assert native.stats()[key]["plans"] == 2 and native.stats()[key]["fallbacks"] == 0


def test_a_failing_kernel_gives_way_for_good(native, libraries, key, capfd):
    native.register_kernel(key, meta(libraries("CLOBBER", FAIL_FROM=0), "CLOBBER"))
    fused = Fused(key, "CLOBBER")
    for _ in range(6):
        assert same_bits(fused(random(1000)), -random(1000))
    stats = native.stats()[key]
    assert stats["errors"] == 3 and stats["fallbacks"] == 6
    written = capfd.readouterr().err
    assert written.count("a deliberate violation") == 1
    assert "test_clobber" in written and "--skip_node_names_cfg" in written


def test_strict_makes_a_failing_kernel_an_error(native, libraries, key):
    native.register_kernel(key, meta(libraries("CLOBBER", FAIL_FROM=0), "CLOBBER"))
    fused = Fused(key, "CLOBBER")
    native.set_strict(True)
    with pytest.raises(tf.errors.InternalError, match="a deliberate violation"):
        fused(random(10))


def test_an_input_is_overwritten_only_by_a_proven_plan(native, libraries, key):
    """The kernel fails at its third call after it has written to the output. Its first run must not have used
    the input's buffer; the third did, so that only an error is honest."""
    native.register_kernel(key, meta(libraries("CLOBBER", FAIL_FROM=2), "CLOBBER", forward=[[0, 0]]))
    fused = Fused(key, "CLOBBER", inputs=lambda a: a + 1.0)
    a = random(1000)
    for _ in range(2):
        assert same_bits(fused(a), -(a + np.float32(1)))
    with pytest.raises(tf.errors.InternalError, match="a deliberate violation"):
        fused(a)

    native.register_kernel(key, meta(libraries("CLOBBER", FAIL_FROM=0), "CLOBBER", forward=[[0, 0]]))
    fused = Fused(key, "CLOBBER", inputs=lambda a: a + 1.0)
    assert same_bits(fused(a), -(a + np.float32(1)))


def test_forwarding_never_touches_a_value_that_lives_on(native, libraries, key):
    native.register_kernel(key, meta(libraries("TWO"), "TWO", forward=[[0, 0], [0, 1]]))
    a = random(1000)
    fused = Fused(key, "TWO", inputs=lambda a: a + 1.0)
    for _ in range(3):
        absolute, negative = fused(a)
        assert same_bits(absolute, np.abs(a + np.float32(1))) and same_bits(negative, -(a + np.float32(1)))
    kept = Fused(key, "TWO", inputs=lambda a: tf.identity(a + 1.0, name="kept"))
    for _ in range(3):
        result = kept.session.run([kept.fetches, kept.graph.get_tensor_by_name("kept:0")], {kept.feeds[0]: a})
        assert same_bits(result[1], a + np.float32(1)) and same_bits(result[0][0], np.abs(result[1]))


def test_a_kernel_that_comes_later_is_used(native, libraries, key):
    fused = Fused(key)
    a, b = random(4, 8), random(4, 8)
    assert same_bits(fused(a, b), expected(a, b))
    assert native.stats()[key]["fallbacks"] == 1 and not native.has_kernel(key)
    native.register_kernel(key, meta(libraries("SUM")))
    assert same_bits(fused(a, b), expected(a, b))
    assert native.stats()[key]["fallbacks"] == 1 and native.stats()[key]["plans"] == 1
    assert native.disable_kernel(key)
    fused(a, b)
    assert native.stats()[key]["fallbacks"] == 2
    assert not native.disable_kernel("never registered")


def test_the_resolver_is_asked_for_a_missing_kernel(native, libraries, key):
    asked = []
    native.set_resolver(lambda *what: asked.append(what) or meta(libraries("SUM")))
    fused = Fused(key)
    a, b = random(4, 8), random(4, 8)
    for _ in range(3):
        assert same_bits(fused(a, b), expected(a, b))
    assert asked == [(key, b"\x00\xffgraph")]
    assert native.stats()[key]["fallbacks"] == 0 and native.has_kernel(key)


@pytest.mark.parametrize("answer", ["none", "raises", "nonsense", "no file"])
def test_a_resolver_without_a_kernel(native, key, answer):
    def resolver(_key, _graph):
        if answer == "raises":
            raise RuntimeError("no compiler")
        return {"none": None, "nonsense": 3, "no file": meta("/nowhere/kernel.so")}[answer]

    native.set_resolver(resolver)
    fused = Fused(key)
    a, b = random(4, 8), random(4, 8)
    assert same_bits(fused(a, b), expected(a, b))
    assert native.stats()[key]["fallbacks"] == 1


def test_a_kernel_for_other_types_is_not_used(native, libraries, key):
    native.register_kernel(key, meta(libraries("SUM"), input_dtypes=[FLOAT, 3]))
    fused = Fused(key)
    a, b = random(4, 8), random(4, 8)
    assert same_bits(fused(a, b), expected(a, b))
    assert native.stats()[key]["fallbacks"] == 1


def test_a_bad_library_is_refused_with_its_reason(native, libraries, key, kernel_folder):
    with pytest.raises(RuntimeError, match="can't be loaded.*nowhere"):
        native.register_kernel(key, meta("/nowhere/kernel.so"))
    with pytest.raises(RuntimeError, match="ABI version 2"):
        native.register_kernel(key, meta(libraries("SUM", ABI=2)))
    with open(libraries("SUM"), "rb") as whole:
        content = whole.read()
    for size, reason in ((0, "no shared library"), (1000, "truncated"), (len(content) // 2, "truncated")):
        cut = kernel_folder / ("cut_%d.so" % size)
        cut.write_bytes(content[:size])
        with pytest.raises(RuntimeError, match=reason + "; delete it so that it is built again"):
            native.register_kernel(key, meta(str(cut)))
    with pytest.raises(RuntimeError, match="no autofuse_abi_version"):
        native.register_kernel(key, meta(native.__file__))
    with pytest.raises(RuntimeError, match="contradicts itself"):
        native.register_kernel(key, meta(libraries("SUM"), output_ranks=[]))
    with pytest.raises(RuntimeError, match="forwards input 5"):
        native.register_kernel(key, meta(libraries("SUM"), forward=[[5, 0]]))
    assert not native.has_kernel(key)


def test_timing_counts_only_when_on(native, libraries, key):
    native.register_kernel(key, meta(libraries("SUM")))
    fused = Fused(key)
    fused(random(64, 64), random(64, 64))
    assert native.stats()[key]["run_ns"] == 0
    native.set_timing(True)
    fused(random(64, 64), random(64, 64))
    assert native.stats()[key]["run_ns"] > 0
    native.reset_stats()
    assert native.stats()[key]["calls"] == 0 and native.stats()[key]["run_ns"] == 0


@pytest.mark.parametrize("small_bytes", [0, 1 << 30])
def test_eight_threads_at_once(native, libraries, key, small_bytes):
    native.register_kernel(key, meta(libraries("SUM"), small_bytes=small_bytes))
    fused = Fused(key)
    wrong = []
    start = threading.Barrier(8)

    def work(seed):
        rng = np.random.RandomState(seed)
        start.wait()
        for _ in range(40):
            rows, other = rng.randint(0, 20), rng.randint(3) == 0
            a = rng.randn(rows, 33).astype("f")
            b = rng.randn(1 if other else rows, 33).astype("f")
            if not same_bits(fused(a, b), expected(a, b)):
                wrong.append((seed, a.shape, b.shape))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    stats = native.stats()[key]
    assert stats["calls"] == 320 and 0 < stats["fallbacks"] < 320 and stats["errors"] == 0


def test_one_thread_pool_thread_is_enough_for_the_fallback(native, key):
    """A fallback that waited for another thread of the pool it runs on would never end."""
    fused = Fused(key)
    proto = config(grappler=False)
    proto.intra_op_parallelism_threads = proto.inter_op_parallelism_threads = 1
    with v1.Session(graph=fused.graph, config=proto) as session:
        a, b = random(400, 300), random(400, 300)
        assert same_bits(session.run(fused.fetches, dict(zip(fused.feeds, (a, b)))), expected(a, b))


def test_a_node_in_a_saved_graph_runs_in_a_process_without_its_kernel(native, key):
    """The node carries all that it needs: import it with its function and run it without any pass."""
    dumps = []
    native.set_dump_callback(lambda stage, serialized, _: dumps.append(serialized))
    native.set_dump(True)
    fused = Fused(key)
    a, b = random(4, 8), random(4, 8)
    fused(a, b)
    after = v1.GraphDef.FromString(dumps[-1])
    (node,) = fused_nodes(after.node)
    kept = v1.GraphDef(library=after.library, versions=after.versions, node=[node])
    for port in (0, 1):
        kept.node.add(name="in%d" % port, op="Placeholder").attr["dtype"].type = FLOAT
        kept.node[0].input[port] = "in%d" % port
    kept.node[0].device = ""
    with tf.Graph().as_default() as graph:
        # The Python side of TensorFlow learns of an op only by load_op_library; the runtime knows it already.
        tf.load_op_library(native.__file__)
        tf.import_graph_def(kept, name="")
        with v1.Session(graph=graph) as session:
            assert same_bits(session.run(node.name + ":0", {"in0:0": a, "in1:0": b}), expected(a, b))
