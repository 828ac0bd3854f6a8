"""Generated host kernels alone against C written by hand, one thread, call by call in turns.

    python -m bench.kernel_speed [PART OF A NAME...]

No session is in the way: the kernel that a session would get of the case's ops is called on buffers of the
bench's own, the hand-written function (bench/handwritten) on the same ones. Microseconds are medians over the
turns, ratios medians of the turns' ratios with their quartiles. One library of hand-written C is built with
gcc -O3 -march=native, as it comes.
"""
import ctypes
import os
import re
import sys
from typing import List, NamedTuple, Sequence

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

#: Microseconds of the turns of a case in all, of one turn at least, and the fewest turns.
ALL, TURN, FEWEST = 150e3, 20.0, 25


class Speed(NamedTuple):
    """Microseconds; the ratio's median and quartiles. blocks: of the launch; estimate: what the kernel says
    that they take together."""

    name: str
    ours: float
    hand: float
    ratio: float
    low: float
    high: float
    blocks: int
    estimate: float


class NotOneKernel(Exception):
    """The case did not become one fused op."""


def kernel_of(case, arrays):
    """(KernelBinary, FusedGraph, the case's input of each of the kernel's, TensorFlow's own results): the
    case in a session with the plugin."""
    import tensorflow as tf

    import tf_autofuse
    from tests.differential.harness import environment
    from tf_autofuse.report import journal

    rank = max(len(shape) for shape, *_ in case.inputs)
    graph = tf.Graph()
    with graph.as_default():
        holders = [tf.compat.v1.placeholder(
            dtype, [None if case.unknown and (len(shape) == rank or below) and i == 0 and d > 1 else d
                    for i, d in enumerate(shape)], "in%d_" % number)
            for number, (shape, dtype, *below) in enumerate(case.inputs)]
        outputs = case.build(*holders)
    feed = {h: a.view(h.dtype.as_numpy_dtype) for h, a in zip(holders, arrays)}
    with tf.compat.v1.Session(graph=graph) as session:
        expected = session.run(outputs, feed)
    journal.clear()
    with environment(AUTOFUSE_FLAGS="--enable_autofuse=true;--autofuse_enable_pass=reduce,concat,slice,split,"
                     "gather,transpose", AUTOFUSE_TARGET="host", AUTOFUSE_BUILD="sync"):
        config = tf_autofuse.configure(tf.compat.v1.ConfigProto(), precision_mode="must_keep_origin_dtype")
        with tf.compat.v1.Session(graph=graph, config=config) as session:
            session.run(outputs, feed)
    made = [(r.compilation, c) for r in journal.records() if r.compilation for c in r.compilation.compiled]
    if len(made) != 1:
        raise NotOneKernel("%s: %d fused ops" % (case.name, len(made)))
    compilation, compiled = made[0]
    names = {d.node: d.name for d in compilation.plan.decisions}
    order = [int(re.search(r"in(\d+)_", names[node]).group(1)) for node, _ in compiled.region.inputs]
    return compiled.binary, compiled.region.fused, order, expected


def placed(array: np.ndarray) -> np.ndarray:
    """A copy that begins at a page, as large blocks of malloc do (less a constant), or at a cache line where
    it is small: what the addresses of two tensors have in common changes the time of a loop over both."""
    align = 4096 if array.nbytes >= 1 << 17 else 64
    space = np.empty(array.nbytes + align, np.uint8)
    first = -space.ctypes.data % align
    result = space[first:first + array.nbytes].view(array.dtype).reshape(array.shape)
    result[...] = array
    return result


def measure(case) -> Speed:
    from bench.suite import backend_c
    from tf_autofuse.machine import host_machine
    from tf_autofuse.runtime import registry

    arrays = [placed(a) for a in case.arrays()]
    binary, fused, order, expected = kernel_of(case, arrays)
    library = registry.library_of(binary, fused)
    given = [arrays[i] for i in order]
    shape = library.shape([a.shape for a in given])
    assert not shape.failed, shape.check
    tiling = library.tiling(shape.sizes, *host_machine().launch_limits)
    outputs = [placed(np.zeros(dims, t.dtype.numpy)) for dims, t in zip(shape.out_dims, fused.outputs)]
    workspace = placed(np.zeros(tiling.workspace_bytes + 64, np.uint8))
    ends = (ctypes.c_uint32 * 64)(*[e for _, e in library.phases(tiling)])
    gm = (ctypes.c_void_p * 64)(*[a.ctypes.data for a in given + outputs])
    hand = backend_c.library()
    theirs = [a.ctypes.data for a in outputs]
    together = (ctypes.c_void_p * 64)(*[a.ctypes.data for a in arrays])
    theirs += [ctypes.addressof(together)] if case.together else [a.ctypes.data for a in arrays]
    arguments = (ctypes.c_int64 * 12)(*(theirs + list(case.sizes)))
    path = ctypes.CDLL(binary.library)

    def turns(each: int, count: int):
        ours, other = np.empty(count), np.empty(count)
        hand.take_turns(
            path.autofuse_run_blocks, gm, ctypes.c_void_p(workspace.ctypes.data), tiling.data, ends,
            ctypes.c_int64(len(library.phases(tiling))), getattr(hand, "hand_" + case.c_function), arguments,
            ctypes.c_int64(each), ctypes.c_int64(count), ctypes.c_void_p(ours.ctypes.data),
            ctypes.c_void_p(other.ctypes.data))
        return ours, other

    def check(who: str) -> None:
        for got, want in zip(outputs, expected):
            want = np.asarray(want)
            if want.dtype.itemsize == 2 and got.dtype == np.uint16:
                got, want = ((got.astype(np.uint32) << 16).view(np.float32), want.astype(np.float32))
            np.testing.assert_allclose(got.astype(np.float64).ravel(), want.astype(np.float64).ravel(),
                                       rtol=case.tolerance, atol=case.tolerance,
                                       err_msg=case.name + ", " + who)

    library.run([a.ctypes.data for a in given + outputs], [a.nbytes for a in given + outputs], tiling)
    check("kernel")
    for output in outputs:
        output[...] = 0
    turns(1, 1)
    check("hand-written C")
    ours, other = turns(1, 9)
    once = float(np.median(ours) + np.median(other))
    each = max(1, int(TURN / once))
    ours, other = turns(each, max(FEWEST, int(ALL / (once * each))))
    ratios = ours / other
    low, middle, high = np.percentile(ratios, (25, 50, 75))
    return Speed(case.name, float(np.median(ours)), float(np.median(other)), float(middle), float(low),
                 float(high), tiling.block_dim, 1e-3 * tiling.block_dim * library.block_cost(tiling))


def speeds(names: Sequence[str] = ()) -> List[Speed]:
    from bench import _kernel_cases

    found = []
    for case in _kernel_cases.all_cases():
        if names and not any(n in case.name for n in names):
            continue
        try:
            found.append(measure(case))
        except NotOneKernel as problem:
            print(problem, file=sys.stderr)
    return found


def run(console: Console, names: Sequence[str] = ()) -> None:
    table = Table("case", "kernel, us", "C, us", "kernel / C", "quartiles", "blocks", "estimate / kernel")
    found = speeds(names)
    for s in found:
        table.add_row(s.name, "%.2f" % s.ours, "%.2f" % s.hand, "%.2f" % s.ratio,
                      "%.2f %.2f" % (s.low, s.high), str(s.blocks),
                      "%.1f" % (s.estimate / s.ours))
    console.print(table)
    console.print("geometric mean %.3f of %d cases; above 1.15: %d" % (
        np.exp(np.mean(np.log([s.ratio for s in found]))), len(found), sum(s.ratio > 1.15 for s in found)))


if __name__ == "__main__":
    run(Console(width=None if sys.stdout.isatty() else 120), sys.argv[1:])
