"""Every invariant of HintGraphs and FusedGraphs: a good graph passes, the same graph with one thing broken
does not."""
from dataclasses import replace

import numpy as np
import pytest

from tests.ir import samples
from tf_autofuse.ir.asc_graph import AscNode, Axis, AxisType, KernelIO, Sched, TensorAttr, TensorRef, attrs
from tf_autofuse.ir.builder import HintBuilder
from tf_autofuse.ir.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT32, INT8, UINT64, UINT8
from tf_autofuse.ir.verify import VerifyError, verify_fused, verify_hint
from tf_autofuse.ir.verify_access import Part, first_wrong
from tf_autofuse.ir.verify_nodes import represents
from tf_autofuse.symbolic.guards import Guard, InputDim, SizeVar
from tf_autofuse.symbolic.size import broadcast_size, stride_or_zero, symbol

S0, S1, S2, FOREIGN = symbol("s0"), symbol("s1"), symbol("s2"), symbol("foreign")


@pytest.mark.parametrize("name", sorted(samples.ALL))
def test_good_graphs_pass(name):
    verify_fused(samples.ALL[name]())


def node(name, change):
    """A mutation of one node of the first graph: change(node) -> node, or a tuple of nodes."""

    def mutate(fused):
        nodes = []
        for n in fused.graphs[0].nodes:
            new = change(n) if n.name == name else n
            nodes.extend(new if isinstance(new, tuple) else (new,))
        return replace(fused, graphs=(fused.graphs[0].with_nodes(nodes),) + fused.graphs[1:])

    return mutate


def view(name, **changes):
    return node(name, lambda n: replace(n, outputs=(replace(n.outputs[0], **changes),) + n.outputs[1:]))


def reading(name, *sources):
    return node(name, lambda n: replace(n, inputs=tuple(map(TensorRef, sources))))


def graph(**changes):
    return lambda fused: replace(fused, graphs=(replace(fused.graphs[0], **changes),) + fused.graphs[1:])


def attr(name, **changes):
    return node(name, lambda n: n.with_attrs(**changes))


def fused(**changes):
    return lambda f: replace(f, **changes)


def swapped(first, second):
    """The two named nodes of the first graph change places."""

    def mutate(f):
        g = f.graphs[0]
        place = {first: g.node(second), second: g.node(first)}
        return replace(f, graphs=(g.with_nodes(place.get(n.name, n) for n in g.nodes),) + f.graphs[1:])

    return mutate


ORIGINAL = (Axis(0, "z0", 192), Axis(1, "z1", 128))
EXTRA_LOAD = (
    AscNode(
        "extra",
        "Load",
        (TensorRef("data_1"),),
        (TensorAttr(FLOAT32, (0, 1), (192, 128), (128, 1)),),
        attrs(offset=0),
        Sched((0, 1)),
    ),
)
DYNAMIC, STATIC = samples.run_time_broadcast, samples.public_example
SOFTMAX, GATHER = samples.softmax, samples.embedding

BROKEN = [
    ("G1", STATIC, swapped("abs_0", "load_0"), "no earlier node"),
    ("G1", STATIC, node("abs_0", lambda n: replace(n, inputs=(TensorRef("nobody"),))), "nobody"),
    ("G1", STATIC, node("abs_0", lambda n: replace(n, inputs=(TensorRef("load_0", 1),))), "has no output 1"),
    ("G1", STATIC, node("abs_0", lambda n: (n, n)), "taken"),
    ("G1", STATIC, node("relu_0", lambda n: replace(n, name="re-lu")), "identifier"),
    ("G1", STATIC, node("abs_0", lambda n: replace(n, outputs=())), "no output"),
    ("G2", STATIC, view("relu_0", dtype=FLOAT16), "Relu of float32 gives float32, not float16"),
    ("G2", STATIC, view("load_1", dtype=INT32), "Load of float32 gives int32"),
    ("G2", STATIC, view("store_0", dtype=INT32), "Store of float32"),
    ("G2", STATIC, view("data_0", dtype=FLOAT16), "Load of float16"),
    ("G2", DYNAMIC, view("gt_0", dtype=FLOAT32), "gives bool"),
    (
        "G2",
        DYNAMIC,
        node("where_0", lambda n: replace(n, inputs=(n.inputs[0], TensorRef("load_0"), n.inputs[2]))),
        "different dtypes",
    ),
    ("G3", STATIC, node("abs_0", lambda n: replace(n, type="NoSuchOp")), "NoSuchOp"),
    ("G3", STATIC, node("abs_0", lambda n: replace(n, inputs=n.inputs * 2)), "has 2 inputs"),
    ("G3", STATIC, node("load_0", lambda n: replace(n, inputs=n.inputs * 2)), "has 2 inputs"),
    ("G4", STATIC, graph(axes=(Axis(0, "z0", S0), ORIGINAL[1])), "axis size s0 uses s0"),
    ("G4", DYNAMIC, view("load_0", strides=(FOREIGN, 1)), "foreign"),
    ("G4", DYNAMIC, attr("load_0", offset=FOREIGN), "foreign"),
    ("G4", DYNAMIC, lambda f: graph(sizes=f.graphs[0].sizes[::-1])(f), "not yet known"),
    ("G4", DYNAMIC, lambda f: graph(sizes=f.graphs[0].sizes + f.graphs[0].sizes[:1])(f), "listed twice"),
    ("G5", STATIC, node("load_0", lambda n: replace(n, attrs=(("z", 1), ("offset", 0)))), "not sorted"),
    ("G5", STATIC, attr("abs_0", strange=[1]), "list"),
    ("G5", STATIC, attr("abs_0", strange=({},)), "tuple"),
    ("G5", STATIC, attr("data_0", index="0"), "index"),
    ("G5", STATIC, attr("output_0", index=-1), "index"),
    ("G5", STATIC, attr("load_0", offset=0.5), "offset"),
    ("G5", STATIC, attr("broadcast_0", axis=7), "axis"),
    ("G5", DYNAMIC, attr("scalar_0", value=0.1), "float32 does not represent the value 0.1"),
    ("G5", DYNAMIC, attr("scalar_0", value=True), "does not represent"),
    ("G6", STATIC, node("load_1", lambda n: (n,) + EXTRA_LOAD), "nothing reads it"),
    ("G6", STATIC, attr("data_1", index=0), "a second Data of index 0"),
    ("G7", STATIC, graph(axes=(ORIGINAL[0], Axis(0, "z1", 128))), "share an id"),
    ("G7", STATIC, graph(axes=(ORIGINAL[0], Axis(1, "z0", 128))), "share an id or a name"),
    ("G7", STATIC, view("abs_0", repeats=(1,)), "2 axes, 1 repeats"),
    ("G7", STATIC, view("abs_0", axis=(0, 5)), "does not have"),
    ("H1", STATIC, graph(form="impl"), "form"),
    ("H1", STATIC, graph(axes=(ORIGINAL[0], replace(ORIGINAL[1], type=AxisType.TILE_IN))), "TILE_IN"),
    ("H1", STATIC, graph(loop_axes=(1, 0)), "loop_axes"),
    ("H1", STATIC, view("abs_0", axis=(1, 0)), "view over axes"),
    ("H1", STATIC, view("data_0", axis=(0,), repeats=(192,), strides=(1,)), "has axes"),
    ("H1", STATIC, node("abs_0", lambda n: replace(n, sched=Sched((1, 0)))), "sched.axis"),
    ("H1", STATIC, node("data_0", lambda n: replace(n, sched=Sched((0, 1)))), "sched.axis"),
    ("H1", STATIC, node("abs_0", lambda n: replace(n, sched=Sched((0, 1), 0))), "loop axis"),
    ("H2", STATIC, view("load_1", repeats=(192, 64)), "neither 1 nor 128"),
    ("H2", STATIC, view("load_0", strides=(128, 1)), "strides[0] is 128"),
    ("H2", STATIC, view("load_1", strides=(0, 1)), "strides[0] is 0"),
    ("H3", DYNAMIC, node("cast_1", lambda n: replace(n, inputs=(TensorRef("data_1"),))), "without a Load"),
    (
        "H3",
        STATIC,
        node("abs_0", lambda n: replace(n, type="Load", attrs=attrs(offset=0))),
        "loads from Load",
    ),
    (
        "H3",
        STATIC,
        node("add_0", lambda n: replace(n, inputs=(TensorRef("data_1"), n.inputs[1]))),
        "without a Load",
    ),
    (
        "H4",
        STATIC,
        node("add_0", lambda n: replace(n, inputs=(TensorRef("abs_0"), n.inputs[1]))),
        "inputs with repeats",
    ),
    ("H4", STATIC, view("abs_0", repeats=(192, 128), strides=(128, 1)), "not (1, 128)"),
    ("H4", STATIC, attr("broadcast_0", axis=1), "extends along"),
    ("H4", STATIC, view("broadcast_0", repeats=(1, 128), strides=(0, 1)), "not (192, 128)"),
    ("H5", STATIC, view("relu_0", strides=(256, 1)), "not the dense (128, 1)"),
    ("H5", STATIC, view("broadcast_0", strides=(1, 192)), "not the dense"),
    (
        "H6",
        STATIC,
        node(
            "output_0",
            lambda n: (n, replace(n, name="second", inputs=(TensorRef("relu_0"),), attrs=attrs(index=1))),
        ),
        "not a Store",
    ),
    ("H6", STATIC, view("store_0", repeats=(1, 128), strides=(0, 1)), "not full"),
    (
        "H6",
        STATIC,
        node("store_0", lambda n: replace(n, inputs=(TensorRef("abs_0"),))),
        "its input's repeats (1, 128) are not its own",
    ),
    (
        "H6",
        STATIC,
        node("output_0", lambda n: (n, replace(n.with_attrs(index=1), name="output_1"))),
        "is read by",
    ),
    ("H7", STATIC, graph(axes=(), loop_axes=()), "no axis"),
    ("H6", SOFTMAX, view("store_1", repeats=(1, S0), strides=(0, 1)), "are not full"),
    ("H6", SOFTMAX, view("store_1", repeats=(3, S0), strides=(S0, 1)), "its input's repeats (3, 1)"),
    ("H8", SOFTMAX, attr("max_0", axes=()), "are not some of the loop axes"),
    ("H8", SOFTMAX, attr("max_0", axes=(1, 1)), "are not some of the loop axes"),
    ("H8", SOFTMAX, attr("max_0", axes=(1, 0)), "are not some of the loop axes"),
    ("H8", SOFTMAX, attr("max_0", axes=1), "are not some of the loop axes"),
    ("H8", SOFTMAX, reading("sum_0", "max_0"), "does not extend"),
    ("H4", SOFTMAX, attr("max_0", axes=(0,)), "repeats (3, 1), not (1, s0)"),
    ("H4", SOFTMAX, reading("sub_0", "load_0", "max_0"), "inputs with"),
    ("G2", SOFTMAX, view("sum_0", dtype=INT32), "Sum of float32"),
    ("G5", SOFTMAX, attr("scalar_0", value=True), "does not represent"),
    ("G4", SOFTMAX, attr("scalar_0", value=FOREIGN), "foreign"),
    ("G2", GATHER, view("load_0", dtype=FLOAT32), "Load of"),
    ("G2", GATHER, reading("gather_0", "data_0", "data_0"), "an index of float32"),
    ("G3", GATHER, reading("gather_0", "data_0"), "Gather has 1 inputs"),
    ("G5", GATHER, attr("gather_0", index_size=None), "holds a NoneType"),
    ("G5", GATHER, attr("gather_0", index_size=1.0), "index_size is 1.0"),
    ("H2", GATHER, view("gather_0", strides=(0, 0)), "strides[1] is 0"),
    ("H9", GATHER, view("gather_0", repeats=(1, 4), strides=(0, 1)), "its index extends along axis 0"),
    ("F5", GATHER, attr("gather_0", index_size=11), "reads elements 0..43 of a tensor of 40"),
    ("F5", GATHER, attr("gather_0", offset=1), "reads elements 1..40"),
    ("F2", samples.concat, attr("store_1", offset=5), "do not cover the output's 24 elements once"),
    ("F2", samples.concat, attr("store_1", offset=1), "do not cover"),
    ("F2", samples.concat, view("store_1", strides=(5, 1)), "do not cover"),
    ("F2", samples.concat, lambda f: replace(f, graphs=f.graphs[:1]), "do not cover"),
    ("F1", STATIC, fused(graphs=()), "no graph"),
    ("F1", STATIC, lambda f: replace(f, graphs=f.graphs * 2), "share a name"),
    ("F2", STATIC, lambda f: replace(f, inputs=f.inputs[:1]), "there is no input 1"),
    (
        "F2",
        STATIC,
        lambda f: replace(f, inputs=f.inputs[:1] + (KernelIO(INT32, (192, 128)),)),
        "input 1 is int32",
    ),
    ("F2", STATIC, fused(outputs=()), "there is no output 0"),
    ("F2", STATIC, lambda f: replace(f, outputs=f.outputs * 2), "output [1] is not used"),
    ("F2", STATIC, fused(outputs=(KernelIO(INT32, (192, 128)),)), "output 0 is int32"),
    (
        "F2",
        STATIC,
        lambda f: replace(f, graphs=f.graphs + (replace(f.graphs[0], name="again"),)),
        "do not cover the output's 24576 elements once",
    ),
    ("F2", samples.through_workspace, lambda f: replace(f, graphs=f.graphs[::-1]), "before it is written"),
    (
        "F2",
        samples.through_workspace,
        lambda f: replace(f, graphs=(f.graphs[0], replace(f.graphs[0], name="again"), f.graphs[1])),
        "do not cover the workspace's 12 elements once",
    ),
    (
        "F2",
        samples.through_workspace,
        lambda f: replace(f, graphs=f.graphs + (replace(f.graphs[0], name="again"),)),
        "written after it is read",
    ),
    ("F3", DYNAMIC, lambda f: replace(f, sizes=(SizeVar("s0", InputDim(0, 4)),) + f.sizes[1:]), "not there"),
    (
        "F3",
        DYNAMIC,
        lambda f: replace(f, sizes=(SizeVar("s0", InputDim(0, 1)),) + f.sizes[1:]),
        "a dim that is 128",
    ),
    ("F3", DYNAMIC, fused(outputs=(KernelIO(FLOAT16, (FOREIGN, 128)), KernelIO(BOOL, (S2, 128)))), "foreign"),
    ("F3", DYNAMIC, lambda f: replace(f, guards=f.guards + (Guard("eq", FOREIGN, 3),)), "foreign"),
    (
        "F3",
        DYNAMIC,
        lambda f: replace(f, sizes=f.sizes[:2] + (SizeVar("s2", broadcast_size(S0, S1), 3),)),
        "not the fused graph's",
    ),
    ("F4", DYNAMIC, fused(guards=(Guard("near", S0, S1),)), "near"),
    ("F4", DYNAMIC, lambda f: replace(f, guards=f.guards + (Guard("eq", 3, 4),)), "never holds"),
    ("F4", DYNAMIC, fused(guards=()), "no guard covers"),
    (
        "F5",
        STATIC,
        fused(inputs=(KernelIO(FLOAT32, (127,)), KernelIO(FLOAT32, (192, 128)))),
        "reads elements 0..127",
    ),
    ("F5", STATIC, attr("load_0", offset=1), "reads elements 1..128"),
    ("F5", STATIC, attr("load_0", offset=-1), "reads elements -1..126"),
    ("F5", DYNAMIC, view("load_1", strides=(1, 0)), "s1 = 1, s2 = "),
    ("F5", STATIC, fused(outputs=(KernelIO(FLOAT32, (192, 129)),)), "do not cover"),
    ("F5", STATIC, view("store_0", strides=(64, 1)), "do not cover"),
    ("F5", STATIC, attr("store_0", offset=4), "do not cover"),
    ("F5", DYNAMIC, view("store_1", strides=(stride_or_zero(S0, 128), 1)), "do not cover"),
    ("F5", DYNAMIC, view("load_0", strides=(128, 1)), "(s0 = 1, s1 = 4"),
]


@pytest.mark.parametrize(
    "invariant, sample, mutate, text", BROKEN, ids=["%s-%d" % (row[0], i) for i, row in enumerate(BROKEN)]
)
def test_broken_graphs_are_found(invariant, sample, mutate, text):
    good = sample()
    with pytest.raises(VerifyError) as caught:
        verify_fused(mutate(good))
    assert caught.value.invariant == invariant, caught.value
    assert text in caught.value.found, caught.value
    assert caught.value.graph in (good.name,) + tuple(g.name for g in good.graphs)


def test_an_input_need_not_be_read():
    good = STATIC()
    verify_fused(replace(good, inputs=good.inputs + (KernelIO(INT32, (2,)),)))


def test_every_invariant_is_mutated():
    expected = {"%s%d" % (form, i) for form, n in (("G", 7), ("H", 9), ("F", 5)) for i in range(1, n + 1)}
    assert {row[0] for row in BROKEN} == expected


def test_a_scalar_is_not_stored():
    b = HintBuilder("g", [("z0", 1)])
    b.store(b.scalar(1.0, FLOAT32), 0)
    good = b.graph()
    verify_hint(good)
    nodes = [
        replace(n, inputs=(TensorRef("scalar_0"),)) if n.type == "Store" else n
        for n in good.nodes
        if n.type != "Broadcast"
    ]
    with pytest.raises(VerifyError, match="breaks H6: stores the Scalar"):
        verify_hint(good.with_nodes(nodes))


def test_a_broadcast_of_a_tensor_over_a_unit_axis_is_refused():
    b = HintBuilder("g", [("z0", 1)])
    b.store(b.load(b.data(0, FLOAT32), (1,)), 0)
    good = b.graph()
    extra = AscNode(
        "b", "Broadcast", (TensorRef("load_0"),), (good.node("load_0").y,), attrs(axis=0), Sched((0,))
    )
    nodes = [
        n
        for m in good.nodes
        for n in ((extra, replace(m, inputs=(TensorRef("b"),))) if m.type == "Store" else (m,))
    ]
    with pytest.raises(VerifyError, match="no change"):
        verify_hint(good.with_nodes(nodes))


def test_the_error_names_its_place():
    broken = view("relu_0", dtype=FLOAT16)(samples.public_example())
    with pytest.raises(VerifyError) as caught:
        verify_fused(broken)
    error = caught.value
    assert (error.graph, error.node, error.invariant) == ("autofuse_pointwise_0_Abs_Add_Relu", "relu_0", "G2")
    assert (
        str(error)
        == "autofuse_pointwise_0_Abs_Add_Relu, node relu_0 breaks G2: Relu of float32 gives float32, "
        "not float16"
    )


@pytest.mark.parametrize(
    "dtype, value, expected",
    [
        (FLOAT32, 0.5, True),
        (FLOAT32, 0.1, False),
        (FLOAT32, float("nan"), True),
        (FLOAT32, float("-inf"), True),
        (FLOAT32, 1e39, False),
        (FLOAT32, -0.0, True),
        (FLOAT32, 3, True),
        (FLOAT32, 2**24 + 1, False),
        (FLOAT32, 10**400, False),
        (FLOAT64, 0.1, True),
        (FLOAT16, 65504.0, True),
        (FLOAT16, 65536.0, False),
        (FLOAT16, 2.0**-24, True),
        (BFLOAT16, 1.0078125, True),
        (BFLOAT16, 1.00390625, False),
        (BFLOAT16, 1e39, False),
        (INT8, 127, True),
        (INT8, 128, False),
        (INT8, 1.0, False),
        (UINT8, -1, False),
        (UINT64, 2**64 - 1, True),
        (BOOL, True, True),
        (BOOL, 1, False),
        (INT32, True, False),
        (FLOAT32, "1", False),
    ],
)
def test_represents(dtype, value, expected):
    assert represents(dtype, value) is expected


GRIDS = [
    ([((12, 1),)], [0], 12, True),
    ([((3, 4), (4, 1))], [0], 12, True),
    ([((4, 1), (3, 4))], [0], 12, True),  # a transpose
    ([((2, 6), (3, 1))] * 2, [0, 3], 12, True),
    ([((2, 6), (3, 1))] * 2, [0, 2], 12, False),  # they meet
    ([((2, 6), (2, 1)), ((2, 6), (4, 1))], [0, 2], 12, True),
    ([((2, 6), (2, 1)), ((6, 1),), ((2, 1),)], [0, 2, 10], 12, False),
    ([((6, 1),), ((2, 3), (3, 1))], [0, 6], 12, True),  # one part with its axes merged
    ([((2, 6), (2, 3), (3, 1))], [0], 12, True),
    ([((5, 1),), ((7, 1),)], [0, 5], 12, True),
    ([((5, 1),), ((7, 1),)], [0, 4], 12, False),
    ([((4, 3), (4, 2))], [0], 16, False),  # strides 3 and 2 are no grid, and elements are hit twice
    ([((2, 3), (3, 1)), ((2, 2), (3, 4))], [0, 6], 12, False),
    ([((6, 2),), ((6, 2),)], [0, 1], 12, True),
    ([((6, 2),), ((6, 2),)], [0, 0], 12, False),
    ([((12, 1),)], [1], 12, False),
    ([((12, -1),)], [11], 12, False),
    ([((0, 1),)], [0], 0, True),
    ([((0, 1),), ((3, 1),)], [0, 0], 3, True),
    ([()], [0], 1, True),
    ([(), ()], [0, 1], 2, True),
    ([(), ()], [0, 0], 2, False),
]


@pytest.mark.parametrize("dims, offsets, count, once", GRIDS)
def test_parts_that_cover_a_tensor_once(dims, offsets, count, once):
    """Against counting the elements one by one."""
    parts = [Part(None, offset, d) for offset, d in zip(offsets, dims)]
    seen = []
    for part in parts:
        index = np.full((), part.offset)
        for extent, stride in part.dims:
            index = index[..., None] + np.arange(extent) * stride
        seen += index.reshape(-1).tolist()
    by_hand = sorted(seen) == list(range(count)) and all(s > 0 for p in parts for _, s in p.dims)
    assert by_hand == once
    assert (first_wrong(parts, count) is None) == once
