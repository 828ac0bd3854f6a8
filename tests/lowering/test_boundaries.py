"""What must not be fused, and with which reason: control edges, frames, branches, devices, references, skip
lists."""

import pytest

from tests.graphs import CPU, GraphBuilder, Tensor
from tests.lowering.checks import check_plan, keep_config, names, run_and_compare
from tf_autofuse.ir.dtypes import BOOL, FLOAT32
from tf_autofuse.lowering.plan import plan
from tf_autofuse.skip_list import SkipList


def planned(g, config=None, target="ascend"):
    result = plan(g.view(), config or keep_config(), target)
    check_plan(g, result)
    return result


def code_of(result, name):
    return [d.code for d in result.decisions if d.name == name][0]


def chain(g, x, *ops, **kw):
    for op in ops:
        x = g.op(op, x, **kw)
    return x


# Control edges


def test_control_edges_are_carried_by_the_region():
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (8,))
    before = g.node("NoOp")
    a = g.op("Abs", x)
    b = g.op("Neg", a, control=(before,))
    c = g.op("Relu", b)
    g.node("NoOp", control=(b,))
    g.ret(c)
    assert names(run_and_compare(g, x=(8,))) == ["autofuse_pointwise_0_Abs_Neg_Relu"]


def test_an_identity_with_control_edges_is_a_barrier():
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (8,))
    a = chain(g, x, "Abs", "Neg")
    i = g.op("Identity", a, control=(g.node("NoOp"),), name="barrier")
    g.ret(chain(g, i, "Relu", "Exp"))
    result = run_and_compare(g, x=(8,))
    assert names(result) == ["autofuse_pointwise_0_Abs_Neg", "autofuse_pointwise_1_Relu_Exp"]
    assert code_of(result, "barrier") == "NF2012"


def test_no_cycle_through_a_control_edge():
    """Neg waits for an op that reads Abs: with Abs in one region it would wait for itself."""
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (8,))
    a = chain(g, x, "Exp", "Abs")
    waits = g.outside(a)
    n = chain(g, g.op("Neg", a, control=(waits,)), "Relu")
    g.ret(n)
    result = run_and_compare(g, x=(8,))
    assert names(result) == ["autofuse_pointwise_0_Exp_Abs", "autofuse_pointwise_1_Neg_Relu"]
    assert [r.code for r in result.refusals] == ["NF1002"]


def test_no_cycle_through_an_op_outside():
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (8,))
    a = chain(g, x, "Exp", "Abs")
    g.ret(g.op("Mul", g.op("Neg", a), g.op("Relu", g.outside(a))))
    result = run_and_compare(g, x=(8,))
    assert len(result.regions) == 2


def test_no_cycle_by_two_joins_that_are_fine_one_by_one():
    """a -> outside -> d and c -> outside -> b: {a, b} and {c, d} together would wait for each other."""
    g = GraphBuilder()
    x, y = g.arg("x", FLOAT32, (8,)), g.arg("y", FLOAT32, (8,))
    a, c = chain(g, x, "Exp", "Abs"), chain(g, y, "Exp", "Abs")
    b = g.op("Add", g.op("Neg", a), g.outside(c))
    d = g.op("Add", g.op("Neg", c), g.outside(a))
    g.ret(b, d)
    run_and_compare(g, x=(8,), y=(8,))


def test_a_fill_that_others_wait_for_stays_outside():
    """Its value is inlined all the same; as a member it would make a cycle through what waits for it."""
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (8,))
    zeros = g.op("ZerosLike", x)
    waits = g.op("Outside", x, control=(zeros,))
    g.ret(g.op("Relu", g.op("Sub", g.op("Maximum", waits, zeros), x)))
    result = run_and_compare(g, x=(8,))
    assert names(result) == ["autofuse_pointwise_0_Maximum_Sub_Relu"]
    assert zeros.node not in result.regions[0].nodes


def test_an_op_without_readers_but_with_followers_is_kept_whole():
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (8,))
    last = chain(g, x, "Abs", "Neg")
    g.node("NoOp", control=(last,))
    assert names(run_and_compare(g, x=(8,))) == ["autofuse_pointwise_0_Abs_Neg"]


# Frames and branches


def while_loop():
    """i = 0; while i < limit: i = relu(i + 1) * neg(i)"""
    g = GraphBuilder()
    x, limit = g.arg("x", FLOAT32, (4,)), g.arg("limit", FLOAT32, (4,))
    n = g.op("Abs", g.op("Neg", x))
    g.frame = "loop"
    enter = g.op("Enter", n)
    bound = g.op("Enter", limit)
    merge = Tensor(g.node("Merge", (enter, enter), ((1, (4,)), (3, ()))))
    less = g.op("Less", merge, bound)
    cond = g.op("LoopCond", g.op("Outside", less))
    switch = g.node("Switch", (merge, cond), ((1, (4,)), (1, (4,))))
    one = g.const(1.0, control=(switch,))
    body = g.op("Mul", g.op("Relu", g.op("Add", Tensor(switch, 1), one)), g.op("Neg", Tensor(switch, 1)))
    back = g.op("NextIteration", body)
    g.inputs[merge.node] = (tuple(enter), tuple(back))
    g.frame = ""
    out = g.op("Exit", Tensor(switch, 0))
    g.ret(g.op("Relu", g.op("Mul", g.op("Neg", out), n)))
    return g, body


def test_a_loop_body_is_a_region_of_its_own():
    g, body = while_loop()
    result = planned(g)
    inside = [r for r in result.regions if g.frames[r.nodes[0]] == "loop"]
    assert [(r.fused.name.split("_", 3)[3], r.outputs) for r in inside] == [
        ("Add_Relu_Neg_Mul", ((body.node, 0),))
    ]
    assert all(len({g.frames[n] for n in r.nodes}) == 1 for r in result.regions)


def test_frames_do_not_mix():
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (4,))
    a = chain(g, x, "Abs", "Neg")
    g.frame = "loop"
    g.ret(g.op("Mul", chain(g, a, "Relu", "Exp"), a))
    result = planned(g)
    assert [set(map(g.frames.__getitem__, r.nodes)) for r in result.regions] == [{""}, {"loop"}]
    assert "NF2102" in {r.code for r in result.refusals}


def cond_graph():
    """a is alive always, b only where the branch is taken; both read x's tensor."""
    g = GraphBuilder()
    x, p = g.arg("x", FLOAT32, (4,)), g.arg("p", BOOL, ())
    switch = g.node("Switch", (x, p), ((1, (4,)), (1, (4,))))
    return g, x, p, switch


def test_an_op_that_always_runs_is_not_fused_into_a_branch():
    g, x, p, switch = cond_graph()
    always = chain(g, x, "Abs", "Neg")
    taken = g.op("Mul", Tensor(switch, 1), always)
    g.ret(always, g.op("Relu", taken))
    result = planned(g)
    assert names(result) == ["autofuse_pointwise_0_Abs_Neg", "autofuse_pointwise_1_Mul_Relu"]
    assert {r.code for r in result.refusals} == {"NF2103"}


def test_an_op_that_only_the_branch_reads_is_fused_into_it():
    g, x, p, switch = cond_graph()
    g.ret(g.op("Relu", g.op("Mul", Tensor(switch, 1), chain(g, x, "Abs", "Neg"))))
    assert names(planned(g)) == ["autofuse_pointwise_0_Abs_Neg_Mul_Relu"]


def test_the_two_branches_do_not_mix():
    g, x, p, switch = cond_graph()
    yes = g.op("Mul", Tensor(switch, 1), chain(g, Tensor(switch, 1), "Abs"))
    no = g.op("Mul", Tensor(switch, 0), chain(g, Tensor(switch, 0), "Abs"))
    merged = Tensor(g.node("Merge", (no, yes), ((1, (4,)), (3, ()))))
    g.ret(g.op("Relu", g.op("Add", merged, x)))
    result = planned(g)
    assert len(result.regions) == 3
    # After the merge it runs always again, as x does: the last region is free to be fused with the like.
    always = g.op("Neg", g.op("Abs", x))
    g.ret(always, g.op("Exp", g.op("Add", merged, always)))
    assert len(planned(g).regions) == 3


def test_a_constant_switched_into_a_branch_is_alive_there_only():
    g, x, p, switch = cond_graph()
    pivot = g.op("Identity", Tensor(switch, 1))
    pinned = g.op("Exp", g.op("Abs", x), control=(pivot,))
    free = g.op("Exp", g.op("Neg", x))
    g.ret(pinned, free)
    assert len(planned(g).regions) == 2


# Placement, state, claims


def test_devices_do_not_mix():
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (4,))
    a = chain(g, x, "Abs", "Neg")
    g.device = CPU.replace("CPU:0", "CPU:1")
    g.ret(g.op("Mul", chain(g, a, "Relu", "Exp"), a))
    result = planned(g)
    assert [r.device[-1] for r in result.regions] == ["0", "1"]
    assert "NF2101" in {r.code for r in result.refusals}


def test_other_devices_than_the_cpu_are_left_alone():
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (4,))
    g.device = CPU.replace("CPU", "GPU")
    g.ret(chain(g, x, "Abs", "Neg"))
    assert code_of(planned(g), "abs_0") == "NF2005"
    g.devices[:] = [""] * len(g.devices)
    assert len(planned(g).regions) == 1


def test_references_are_never_fused():
    g = GraphBuilder()
    variable = Tensor(g.node("VariableV2", (), ((101, (4,)),), stateful=True))
    x = g.arg("x", FLOAT32, (4,))
    read = g.op("Mul", x, variable, dtype=FLOAT32, name="read")
    g.ret(chain(g, read, "Abs", "Neg"))
    result = planned(g)
    assert code_of(result, "read") == "NF2007"
    assert names(result) == ["autofuse_pointwise_0_Abs_Neg"]


def test_stateful_ops_are_never_fused():
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (4,))
    g.ret(chain(g, g.op("Abs", x, stateful=True), "Neg"))
    assert code_of(planned(g), "abs_0") == "NF2006"


@pytest.mark.parametrize("attr, code", [("_XlaCompile", "NF2008"), ("_disable_autofuse_scope", "NF2011")])
def test_marked_ops(attr, code):
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (4,))
    g.ret(chain(g, g.op("Abs", x, attrs={attr: True}), "Neg", "Relu"))
    result = planned(g)
    assert code_of(result, "abs_0") == code and names(result) == ["autofuse_pointwise_0_Neg_Relu"]


@pytest.mark.parametrize(
    "skip, code", [(SkipList(names=("abs_*",)), "NF2009"), (SkipList(types=("Abs",)), "NF2010")]
)
def test_skip_lists(skip, code):
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (4,))
    g.ret(chain(g, x, "Abs", "Neg", "Relu"))
    result = planned(g, keep_config(skip_list=skip))
    assert code_of(result, "abs_0") == code and names(result) == ["autofuse_pointwise_0_Neg_Relu"]


def test_an_unsupported_input_of_the_fallback_is_refused_with_a_reason():
    """The shape operand of a Reshape is an input of the fused op; one of unknown rank cannot be."""
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (2, 4))
    shape = g.arg("shape", FLOAT32, None)
    flat = g.op("Reshape", g.op("Exp", g.op("Abs", x)), shape, dims=(8,))
    g.ret(g.op("Neg", flat))
    result = planned(g)
    assert "NF2019" in {d.code for d in result.decisions}


# Limits


def test_max_fusion_size():
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (4,))
    g.ret(chain(g, x, *["Neg", "Abs"] * 10))
    result = planned(g, keep_config(max_fusion_size=8))
    assert [len(r.nodes) for r in result.regions] == [8, 8, 4]
    assert {r.code for r in result.refusals} == {"NF1010"}


def test_inputs_are_limited_to_eight():
    g = GraphBuilder()
    xs = [g.arg("x%d" % i, FLOAT32, (4,)) for i in range(20)]
    total = xs[0]
    for x in xs[1:]:
        total = g.op("Add", total, x)
    g.ret(total)
    result = run_and_compare(g, **{"x%d" % i: (4,) for i in range(20)})
    assert all(len(r.inputs) <= 8 for r in result.regions)
    assert "NF1007" in {r.code for r in result.refusals}
    assert sum(len(r.nodes) for r in result.regions) >= 18


@pytest.mark.parametrize("threshold", [0, 1, 2, 255])
def test_recomputation_threshold(threshold):
    """Whatever the threshold, a node ends up in one region and the results are the same."""
    g = GraphBuilder()
    x, y = g.arg("x", FLOAT32, (4,)), g.arg("y", FLOAT32, (3, 4))
    shared = g.op("Abs", x)
    g.ret(g.op("Relu", g.op("Neg", shared)), g.op("Mul", g.op("Exp", shared), y))
    result = run_and_compare(g, keep_config(recomputation_threshold=threshold), x=(4,), y=(3, 4))
    assert len(result.regions) == 2


def test_a_long_name_is_cut_and_stays_unique():
    first, second = [], []
    for tail, found in (("Relu", first), ("Exp", second)):
        g = GraphBuilder()
        x = g.arg("x", FLOAT32, (4,))
        g.ret(chain(g, x, *["Neg", "Abs"] * 20 + [tail]))
        found.extend(names(planned(g)))
    assert len(first[0]) == len(second[0]) == 140 and first != second
    assert first[0].startswith("autofuse_pointwise_0_Neg_Abs_Neg_Abs")


def test_regions_are_numbered_in_order():
    g = GraphBuilder()
    for i in range(3):
        g.ret(chain(g, g.arg("x%d" % i, FLOAT32, (4 + i,)), "Abs", "Neg"))
    assert [n.split("_")[2] for n in names(planned(g))] == ["0", "1", "2"]
