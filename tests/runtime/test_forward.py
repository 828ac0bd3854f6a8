"""Which inputs' memory an output may take: only where each element is read before it is written over."""

from dataclasses import replace

from tf_autofuse.ir.asc_graph import FusedGraph, KernelIO
from tf_autofuse.ir.builder import HintBuilder
from tf_autofuse.ir.dtypes import BOOL, FLOAT16, FLOAT32, INT32
from tf_autofuse.machine import machine_for
from tf_autofuse.runtime.registry import forward_pairs, meta
from tf_autofuse.symbolic.guards import Guard, InputDim, SizeVar
from tf_autofuse.symbolic.size import stride_or_zero, symbol

AXES = [("z0", 6), ("z1", 8)]
FULL, ROW = (6, 8), (8,)


def fused(builder, inputs, outputs, sizes=()):
    return FusedGraph(
        "f",
        "pointwise",
        tuple(KernelIO(*t) for t in inputs),
        tuple(KernelIO(*t) for t in outputs),
        tuple(sizes),
        (),
        (builder.graph(),),
        ("Add",),
    )


def test_the_full_input_and_not_the_broadcast_one():
    b = HintBuilder("f", AXES)
    row, full = b.load(b.data(0, FLOAT32), (0, 1)), b.load(b.data(1, FLOAT32), (1, 1))
    b.store(b.op("Add", b.broadcast_to(row, (1, 1)), full), 0)
    graph = fused(b, [(FLOAT32, ROW), (FLOAT32, FULL)], [(FLOAT32, FULL)])
    assert forward_pairs(graph) == ((1, 0),)


def test_other_item_size_or_dims():
    b = HintBuilder("f", AXES)
    x, y = b.load(b.data(0, FLOAT32), (1, 1)), b.load(b.data(1, FLOAT32), (1, 1))
    b.store(b.compare("Gt", x, y), 0)
    b.store(b.op("Cast", x, dtype=INT32), 1)
    graph = fused(b, [(FLOAT32, FULL), (FLOAT32, (48,))], [(BOOL, FULL), (INT32, FULL)])
    # The int32 has the float's item size; the second input is flat, and output 1 does not depend on it
    # anyway.
    assert forward_pairs(graph) == ((0, 1),)


def test_the_store_must_depend_on_the_load():
    b = HintBuilder("f", AXES)
    x, y = b.load(b.data(0, FLOAT32), (1, 1)), b.load(b.data(1, FLOAT32), (1, 1))
    b.store(b.op("Abs", x), 0)
    b.store(b.op("Abs", y), 1)
    graph = fused(b, [(FLOAT32, FULL)] * 2, [(FLOAT32, FULL)] * 2)
    assert forward_pairs(graph) == ((0, 0), (1, 1))


def test_every_load_of_the_input_counts():
    b = HintBuilder("f", [("z0", 8), ("z1", 8)])
    data = b.data(0, FLOAT32)
    straight, turned = b.load(data, (1, 1)), b.load(data, (1, 1), strides=(1, 8))
    b.store(b.op("Add", straight, turned), 0)
    graph = fused(b, [(FLOAT32, (8, 8))], [(FLOAT32, (8, 8))])
    assert forward_pairs(graph) == ()


def test_an_offset_or_a_run_time_stride_is_none():
    n = symbol("s0")
    for options in ({"offset": 8}, {"strides": (stride_or_zero(n, 8), 1)}):
        b = HintBuilder("f", [("z0", n), ("z1", 8)])
        b.store(b.op("Abs", b.load(b.data(0, FLOAT32), (1, 1), **options)), 0)
        graph = fused(b, [(FLOAT32, (n, 8))], [(FLOAT32, (n, 8))], [SizeVar("s0", InputDim(0, 0))])
        assert forward_pairs(graph) == ()


def test_other_dims_of_as_many_elements():
    """What a matrix product gives, under the dims that it is read as; what a guard says of run-time dims."""
    n, m, whole = symbol("s0"), symbol("s1"), symbol("s2")
    sizes = [SizeVar("s0", InputDim(0, 0)), SizeVar("s1", InputDim(1, 0)), SizeVar("s2", 3 * n)]
    for guards, expected in (((Guard("eq", m, 3 * n),), ((0, 0), (1, 0))), ((), ((0, 0),))):
        b = HintBuilder("f", [("z0", n), ("z1", 3), ("z2", 8)])
        x, y = b.load(b.data(0, FLOAT32), (1, 1, 1)), b.load(b.data(1, FLOAT32), (1, 1, 1))
        b.store(b.op("Add", x, y), 0)
        dims = [(FLOAT32, (n, 24)), (FLOAT32, (m, 8))]
        graph = replace(fused(b, dims, [(FLOAT32, (whole, 8))], sizes), guards=guards)
        assert forward_pairs(graph) == expected


def test_symbolic_dims_that_are_the_same():
    n = symbol("s0")
    b = HintBuilder("f", [("z0", n), ("z1", 8)])
    b.store(b.op("Abs", b.load(b.data(0, FLOAT32), (1, 1))), 0)
    graph = fused(b, [(FLOAT32, (n, 8))], [(FLOAT32, (n, 8))], [SizeVar("s0", InputDim(0, 0))])
    assert forward_pairs(graph) == ((0, 0),)


def test_meta_is_plain_data():
    class Binary:
        library = "kernel.so"

    n = symbol("s0")
    b = HintBuilder("f", [("z0", n)])
    b.store(b.op("Abs", b.load(b.data(0, FLOAT16), (1,))), 0)
    graph = fused(b, [(FLOAT16, (n,))], [(FLOAT16, (n,))], [SizeVar("s0", InputDim(0, 0))])
    assert meta(Binary, graph, machine_for("Ascend910B3")) == {
        "library": "kernel.so",
        "name": "f",
        "input_ranks": [1],
        "input_dtypes": [19],
        "output_dtypes": [19],
        "output_ranks": [1],
        "size_count": 1,
        "forward": [[0, 0]],
        "small_bytes": 65536,
        "core_num": 40,
        "ub_size": 196352,
    }
