"""Cases, templates, memory and refusals of schedule(), and its verifier by mutation."""
from dataclasses import replace

import pytest

from tests.schedule.graphs import (SAMPLES, copies, fill, many_loads, public_example, rows_and_columns,
                                   run_time_broadcast, three_axes)
from tf_autofuse.ir.asc_graph import Memory, Position, Sched, TensorRef
from tf_autofuse.ir.builder import HintBuilder
from tf_autofuse.ir.dtypes import BOOL, FLOAT32, FLOAT64, INT8
from tf_autofuse.machine import MACHINES, machine_for, usable_ub
from tf_autofuse.ops.table import ASC_OPS
from tf_autofuse.schedule.check import ScheduleError, check
from tf_autofuse.schedule.impl_graph import CONTAINER_ALIGN, ScheduleRefusal
from tf_autofuse.schedule.schedule import schedule, ub_bytes
from tf_autofuse.schedule.split import cut_positions
from tf_autofuse.schedule.axes import simplify
from tf_autofuse.symbolic.size import evaluate, is_static, substitute, symbol

MACHINE = machine_for()
#: The op table without the scratch and the helpers of its rows: descriptions then depend on schedule alone.
PLAIN = {name: replace(row, tmp_bytes=lambda item, count: 0, in_place=True, header="")
         for name, row in ASC_OPS.items()}


def test_machines():
    assert machine_for().soc == "Ascend910B4-1"
    assert machine_for("910b2").vector_cores == 48
    assert machine_for("Ascend910_9362").clock_mhz == 1500
    assert (usable_ub(MACHINE, False), usable_ub(MACHINE, True)) == (196352, 188160)
    assert len(MACHINES) == 12
    with pytest.raises(ValueError, match="Ascend910B3"):
        machine_for("Ascend310")


def test_the_public_example(golden):
    impls = schedule(public_example().graph, MACHINE, PLAIN)
    golden("public_example.txt", "\n".join(i.describe() for i in impls) + "\n")
    (impl,) = impls
    assert [n.name for n in impl.hoisted] == ["load_0", "abs_0", "broadcast_0"]
    assert impl.plan(impl.graph.node("broadcast_0")).kind == "rows"
    with pytest.raises(KeyError):
        impl.plan(impl.graph.of_type("Data")[0])


@pytest.mark.parametrize("name", ["rows_and_columns", "run_time_broadcast", "three_axes", "copies"])
def test_descriptions(golden, name):
    golden(name + ".txt", "\n".join(i.describe()
                                       for i in schedule(SAMPLES[name]().graph, MACHINE, PLAIN)) + "\n")


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_some_variant_fits_for_every_value_of_the_symbols(name):
    impls = schedule(SAMPLES[name]().graph, MACHINE)
    assert [i.tiling_key for i in impls] == list(range(len(impls)))

    def always(impl):
        one = {impl.tile_symbol: 1}
        return not impl.conditions and all(
            is_static(substitute(b, one)) for c in impl.containers for b in c.tensor_bytes) and ub_bytes(
                impl, one) <= usable_ub(MACHINE, impl.uses_scratch)

    assert any(always(i) for i in impls)
    for impl in impls:
        values = {s: 5 for s in (v.name for v in impl.graph.sizes)}
        values[impl.tile_symbol] = 3
        sizes = [evaluate(b, values) for c in impl.containers for b in c.tensor_bytes]
        assert all(size % CONTAINER_ALIGN == 0 for size in sizes)


def sizes_graph(*sizes, masks=None):
    b = HintBuilder("g", axes=[("z%d" % i, s) for i, s in enumerate(sizes)])
    masks = masks or [tuple(1 if i == j else 0 for j in range(len(sizes))) for i in range(len(sizes))]
    total = None
    for i, mask in enumerate(masks):
        x = b.broadcast_to(b.load(b.data(i, FLOAT32), dims=mask), (1,) * len(sizes))
        total = x if total is None else b.op("Add", total, x)
    b.store(total, 0)
    return b.graph()


def test_tiling_cases():
    s0, s1, s2, s3, s4 = (symbol("s%d" % i) for i in range(5))

    def cuts(*sizes):
        return cut_positions(simplify(sizes_graph(*sizes)), MACHINE)

    assert cuts(192, 128) == (0,)  # the innermost axis is too small to fill a copy, the next one surely fits
    assert cuts(192, 8192) == (1, 0)
    assert cuts(192, 100000) == (1,)  # a row is larger than UB
    assert cuts(s0, 128) == (0,)
    assert cuts(s0, s1) == (1, 0)
    assert cuts(s0, s1, s2) == (2, 1, 0)
    assert cuts(s0, s1, s2, s3, s4) == (4, 3, 1)  # at most three; a copy has at most four dims
    assert cuts(2, 2, 2, 2, 2) == (1,)
    assert cuts(2, 2, 2, 2, s0) == (4, 3, 1)


def test_tiny_inner_axes_beyond_four_dims_still_have_a_cut():
    impls = schedule(sizes_graph(2, 3, 2, 3, 2, 3), MACHINE)
    assert {len(impl.vectorized_axes) for impl in impls} == {4}


def test_the_unaligned_template_is_for_rows_that_are_no_whole_blocks():
    def templates(columns):
        return [i.template for i in schedule(rows_and_columns(columns).graph, MACHINE)]

    assert templates(3) == ["general", "unaligned"]
    assert templates(37) == ["general", "unaligned"]
    assert templates(32) == ["general"]
    # 8-byte data: RemovePad does not take them.
    b = HintBuilder("g", axes=[("z0", symbol("s0")), ("z1", 3)])
    table = dict(ASC_OPS, Neg=replace(ASC_OPS["Neg"], ascend={FLOAT64: {"tensor": ""}}))
    b.store(b.op("Neg", b.broadcast_to(b.load(b.data(0, FLOAT64), dims=(0, 1)), (1, 1))), 0)
    assert [i.template for i in schedule(b.graph(), MACHINE, table)] == ["general"]


def test_unaligned_copies_are_one_block():
    general, unaligned = schedule(rows_and_columns(3).graph, MACHINE)
    for node in unaligned.graph.of_type("Load", "Store"):
        assert unaligned.plan(node).kind == "dense"
    assert {general.plan(n).kind for n in general.graph.of_type("Store")} == {"rows"}
    removed = unaligned.graph.of_type("RemovePad")
    assert len(removed) == 2 and all(unaligned.plan(n).row == 3 for n in removed)


def test_rows_are_at_32_bytes_for_the_narrowest_type():
    impl = schedule(rows_and_columns(3).graph, MACHINE)[0]
    assert any(t.dtype is BOOL for n in impl.graph.nodes for t in n.outputs)
    assert impl.row_align == 32
    assert schedule(public_example(10, 3).graph, MACHINE)[0].row_align == 8


def test_loads_over_the_queue_limit_share_or_give_up_double_buffering():
    for count, buffers in ((2, 4), (4, 8), (6, 8), (9, 8)):
        (impl,) = schedule(many_loads(count).graph, MACHINE)
        queues = [c for c in impl.containers if c.position is Position.VECIN]
        assert sum(c.buf_num for c in queues) <= buffers
        assert sum(len(c.tensors) for c in queues) == count


def test_too_many_tensors_at_once_are_refused():
    b = HintBuilder("g", axes=[("z0", 1000)])
    loads = [b.load(b.data(i, FLOAT32), dims=(1,)) for i in range(9)]
    for i, x in enumerate(loads):  # each load is read twice, in opposite orders: all live at once
        loads[i] = b.op("Add", x, loads[0] if i == 0 else loads[i - 1])
    first = [TensorRef("load_%d" % i) for i in range(9)]
    total = loads[-1]
    for x in first:
        total = b.op("Mul", total, x)
    b.store(total, 0)
    with pytest.raises(ScheduleRefusal, match="VECIN"):
        schedule(b.graph(), MACHINE)


def test_what_does_not_fit_is_refused_with_the_numbers():
    tiny = replace(MACHINE, ub_bytes=2048)
    with pytest.raises(ScheduleRefusal, match=r"\d+ B of UB .* 1792 B are usable"):
        schedule(many_loads(4).graph, tiny)


def test_ops_without_a_form_are_refused():
    b = HintBuilder("g", axes=[("z0", 5)])
    b.store(b.op("Exp", b.load(b.data(0, INT8), dims=(1,))), 0)
    with pytest.raises(ScheduleRefusal, match="Exp of int8"):
        schedule(b.graph(), MACHINE)
    b = HintBuilder("g", axes=[("z0", 5)])
    b.store(b.op("NoSuchOp", b.load(b.data(0, FLOAT32), dims=(1,))), 0)
    with pytest.raises(ScheduleRefusal, match="NoSuchOp"):
        schedule(b.graph(), MACHINE)


def test_scalars_keep_a_form_or_become_tensors():
    def inputs(type_, scalar_first):
        b = HintBuilder("g", axes=[("z0", 5)])
        x, c = b.load(b.data(0, FLOAT32), dims=(1,)), b.scalar(2.0, FLOAT32)
        b.store(b.op(type_, *((c, x) if scalar_first else (x, c))), 0)
        (impl,) = schedule(b.graph(), MACHINE)
        return [impl.graph.node(r.node).type for r in impl.graph.of_type(type_)[0].inputs]

    assert inputs("Add", False) == ["Load", "Scalar"]
    assert inputs("Add", True) == ["Scalar", "Load"]
    forms = ASC_OPS["Div"].ascend[FLOAT32]
    assert inputs("Div", True) == (["Scalar", "Load"] if "scalar0" in forms else ["Broadcast", "Load"])
    no_forms = dict(ASC_OPS, Add=replace(ASC_OPS["Add"], ascend={FLOAT32: {"tensor": "", "scalar1": ""}}))
    b = HintBuilder("g", axes=[("z0", 5)])
    b.store(b.op("Add", b.scalar(2.0, FLOAT32), b.load(b.data(0, FLOAT32), dims=(1,))), 0)
    (impl,) = schedule(b.graph(), MACHINE, no_forms)  # commutative: the operands change places
    assert [impl.graph.node(r.node).type for r in impl.graph.of_type("Add")[0].inputs] == ["Load", "Scalar"]


def test_a_copy_goes_through_the_vector_unit():
    (general, *_) = schedule(copies().graph, MACHINE)
    sources = {general.graph.node(s.inputs[0].node).type for s in general.graph.of_type("Store")}
    assert sources <= {"Copy", "Abs", "Broadcast"}
    (impl,) = schedule(fill().graph, MACHINE)
    assert not impl.graph.of_type("Copy")


def test_in_place_and_reuse_keep_a_long_chain_small():
    b = HintBuilder("g", axes=[("z0", 100000)])
    x = b.load(b.data(0, FLOAT32), dims=(1,))
    for _ in range(10):
        x = b.op("Neg", b.op("Exp", x))
    b.store(x, 0)
    (impl,) = schedule(b.graph(), MACHINE, PLAIN)
    assert sum(c.position is Position.VECCALC for c in impl.containers) == 1


def test_the_same_graph_gives_the_same_schedule():
    assert schedule(three_axes().graph, MACHINE) == schedule(three_axes().graph, MACHINE)


# ---- the verifier, by mutation


def changed(impl, name, **values):
    return replace(impl, graph=impl.graph.with_nodes(
        replace(n, **values) if n.name == name else n for n in impl.graph.nodes))


def with_plan(impl, name, **values):
    return replace(impl, plans=tuple((n, p._replace(**values) if n == name else p) for n, p in impl.plans))


def with_memory(impl, name, memory):
    y = impl.graph.node(name).y
    return changed(impl, name, outputs=(replace(y, memory=memory),))


def _order(impl, *names):
    rest = [n for n in impl.graph.nodes if n.name not in names]
    return replace(impl, graph=impl.graph.with_nodes(rest + [impl.graph.node(n) for n in names]))


MUTATIONS = {
    "reads before it is made": lambda i: _order(i, "broadcast_0"),
    "after a node of the loop": lambda i: changed(i, "add_0", sched=Sched((), -1)),
    "hoisted store": lambda i: changed(i, "store_0", sched=Sched((), -1)),
    "no plan of its kind": lambda i: replace(i, plans=tuple(
        (n, i.plan(i.graph.node("add_0")) if n == "load_0" else p) for n, p in i.plans)),
    "no dims": lambda i: with_plan(i, "load_1", dims=()),
    "rows of one dim": lambda i: with_plan(i, "load_1", kind="rows"),
    "dense with a stride": lambda i: with_plan(i, "load_1", dims=(
        i.plan(i.graph.node("load_1")).dims[0]._replace(gm_stride=2),)),
    "odd UB rows": lambda i: with_plan(i, "load_1", kind="tile", dims=(
        i.plan(i.graph.node("load_1")).dims[0]._replace(ub_stride=3),) + i.plan(i.graph.node("load_1")).dims),
    "broken broadcast rows": lambda i: with_plan(i, "broadcast_0", inner=127),
    "outer loops of rows": lambda i: with_plan(i, "broadcast_0", outer=((1, 1, 1),)),
    "layouts differ": lambda i: changed(i, "abs_0", outputs=(
        replace(i.graph.node("abs_0").y, vectorized_strides=(1, 1)),)),
    "a load in no input queue": lambda i: with_memory(i, "load_1", Memory(Position.VECCALC, 0, 1)),
    "no memory": lambda i: with_memory(i, "add_0", None),
    "not in the container": lambda i: replace(i, containers=tuple(
        replace(c, tensors=()) for c in i.containers)),
    "shared while alive": lambda i: replace(
        with_memory(i, "add_0", i.graph.node("broadcast_0").y.memory), containers=tuple(
            replace(c, tensors=c.tensors + (TensorRef("add_0"),))
            if TensorRef("broadcast_0") in c.tensors else c for c in i.containers)),
    "too many queue buffers": lambda i: replace(i, containers=tuple(
        replace(c, buf_num=9) for c in i.containers)),
    "too many buffers": lambda i: replace(i, containers=i.containers + tuple(
        replace(i.containers[-1], id=100 + n, position=Position.VECCALC) for n in range(64))),
}


@pytest.mark.parametrize("mutation", sorted(MUTATIONS))
def test_the_check_finds(mutation):
    (impl,) = schedule(public_example().graph, MACHINE)
    assert check(impl, MACHINE) is impl
    with pytest.raises(ScheduleError):
        check(MUTATIONS[mutation](impl), MACHINE)


def test_the_check_finds_readers_after_the_store():
    impl = schedule(copies().graph, MACHINE)[0]
    copied, late = impl.graph.of_type("Copy")[0], impl.graph.of_type("Abs")[0]
    rest = [n for n in impl.graph.nodes if n is not late and not any(r.node == late.name for r in n.inputs)]
    made = {n.name for n in rest}
    rest = [n for n in rest if all(r.node in made for r in n.inputs)]
    rest.append(replace(late, inputs=(TensorRef(copied.name),)))
    with pytest.raises(ScheduleError, match="after its Store"):
        check(replace(impl, graph=impl.graph.with_nodes(rest)), MACHINE)


def test_run_time_broadcast_has_both_variants():
    impls = schedule(run_time_broadcast().graph, MACHINE)
    assert [i.variant for i in impls] == ["contiguous", "strided", "strided"]
    assert impls[0].conditions and not impls[1].conditions
    assert all(p.kind == "tile" for i in impls[1:] for n, p in i.plans if n.startswith("load"))
