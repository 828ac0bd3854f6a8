"""The solver: legal for every shape, the same in Python and in the generated C++, sensible where it is known
what is."""
import ctypes
import subprocess

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.schedule.graphs import SAMPLES, public_example, samples, shapes, softmax
from tests.schedule.ub_machine import UbMachine, reference
from tf_autofuse.codegen.abi import MACHINE_STRUCT, AutofuseMachine
from tf_autofuse.ir.asc_graph import FusedGraph
from tf_autofuse.machine import SELECT_SCRATCH, machine_for, usable_ub
from tf_autofuse.schedule.schedule import schedule, ub_bytes
from tf_autofuse.symbolic.size import CPP_PRELUDE, evaluate
from tf_autofuse.tiling import solve as solve_module
from tf_autofuse.tiling.nests import tiling_fields, tiling_functions, tiling_header
from tf_autofuse.tiling.model import build_model
from tf_autofuse.tiling.settings import DEFAULTS, SLOWER, Forced, TilingSettings
from tf_autofuse.tiling.solve import NoPlan, Solver, solve

MACHINE = machine_for()
FULL_UB = usable_ub(MACHINE, False)
#: Rows that fit UB only without double buffers, and some that fit with them.
LONG = {"long_rows": lambda: softmax(9000), "wide_softmax": lambda: softmax(4000)}
NAMES = sorted(SAMPLES) + sorted(LONG)
SETTINGS = {
    "default": DEFAULTS, "HighPerf": TilingSettings(algorithm="HighPerf"),
    "level 0": TilingSettings(accuracy_level=0), "trade": TilingSettings(tradeoff=True),
    "trade 5/90": TilingSettings(tradeoff=True, ub_threshold=5, corenum_threshold=90),
    "trade 0/0": TilingSettings(tradeoff=True, ub_threshold=0, corenum_threshold=0),
    "small shapes": TilingSettings(small_shapes=True),
    "forced": TilingSettings(forced=Forced((), ((0, 1),))),
    "HighPerf, small shapes": TilingSettings(algorithm="HighPerf", small_shapes=True)}
#: What each setting is tried on beside the defaults, which are tried on all.
SOME = ("aligned_rows", "nine_loads", "run_time_broadcast", "softmax", "transposed")
PAIRS = [("default", name) for name in NAMES] + [
    (s, name) for s in SETTINGS if s != "default" for name in SOME]


class Kernel:
    """A sample with its schedules and its solver; `cpp`: its generated tiling function."""

    def __init__(self, name, settings=DEFAULTS):
        self.settings = settings
        self.sample = (LONG if name in LONG else SAMPLES)[name]() if isinstance(name, str) else name
        # One nest: how a kernel chooses among ways is tested where it runs.
        self.impls = [i for i in schedule(self.sample.graph, MACHINE) if i.way == "whole"]
        self.models = [build_model(i) for i in self.impls]
        self.symbols = tuple(v.name for v in self.sample.graph.sizes)
        self.solver = Solver(self.models, self.symbols, settings)
        graph = self.sample.graph
        self.fused = FusedGraph("fused", "pointwise", (), (), graph.sizes, (), (graph,))
        self.fields = tiling_fields(self.fused, self.impls)
        self.cpp = None

    def cpp_plan(self, values, cores, ub):
        """(return code, block_dim, {field: value})."""
        tiling, value, size = self.cpp
        data = (ctypes.c_char * size())()
        block_dim, workspace = ctypes.c_uint32(77), ctypes.c_uint64(77)
        sizes = (ctypes.c_int64 * max(len(self.symbols), 1))(*[values[s] for s in self.symbols])
        code = tiling(sizes, ctypes.byref(AutofuseMachine(cores, 0, ub)), data, ctypes.byref(block_dim),
                      ctypes.byref(workspace))
        assert workspace.value == 0
        return code, block_dim.value, {f.name: value(data, i) for i, f in enumerate(self.fields)}


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    """All of PAIRS, their tiling functions compiled into one library."""
    folder = tmp_path_factory.mktemp("tiling")
    made = {(setting, name): Kernel(name, SETTINGS[setting]) for setting, name in PAIRS}
    text = ["#include <cstdint>", MACHINE_STRUCT, '#define AUTOFUSE_EXPORT extern "C"', "namespace {",
            CPP_PRELUDE, "}"]
    exported = ("autofuse_tiling_size", "autofuse_tiling_name", "autofuse_tiling_value", "autofuse_tiling")
    for i, kernel in enumerate(made.values()):
        header = tiling_header(kernel.fused, kernel.impls)
        header = header.replace("#pragma once", "").replace("#include <cstdint>", "")
        text += ["#define %s k%d_%s" % (e, i, e) for e in exported]
        text += ["namespace k%d {" % i, header,
                 tiling_functions(kernel.fused, kernel.impls, kernel.settings), "}"]
        text += ["#undef " + e for e in exported]
    source, library = folder / "tiling.cc", folder / "tiling.so"
    source.write_text("\n".join(text))
    subprocess.check_call(["g++", "-std=c++14", "-Og", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off",
                           "-shared", "-fPIC", "-o", str(library), str(source)])
    loaded = ctypes.CDLL(str(library))
    for i, kernel in enumerate(made.values()):
        size, _, value, tiling = (getattr(loaded, "k%d_%s" % (i, e)) for e in exported)
        size.restype = value.restype = ctypes.c_int64
        kernel.cpp = tiling, value, size
    return made


def any_shape(sample, largest):
    """Symbol values up to `largest`: 0, 1, primes, powers of two and their neighbours, anything."""
    special = (0, 1, 2, 3, 7, 13, 31, 127, 128, 129, 997, 4096, 65537, 1 << 20, (1 << 31) - 1, 1 << 33)
    one = st.one_of(st.sampled_from([n for n in special if n <= largest]), st.integers(1, largest))

    def fix(values):
        if sample.derived:
            for left, right in (("s0", "s2"), ("s1", "s3")):
                if values[left] != 1 and values[right] != 1:
                    values = dict(values, **{right: values[left]})
        return values
    return st.fixed_dictionaries({s: one for s in sample.symbols}).map(fix)


def check_legal(kernel, values, plan, cores, ub):
    """The plan keeps the budgets, recomputed from the ImplGraph alone."""
    impl = kernel.impls[plan.key]
    assert all(g.holds(values) for g in impl.conditions)
    env = dict(values, **{impl.tile_symbol: plan.tile, impl.block_symbol: plan.tiles_per_block})
    budget = ub - (SELECT_SCRATCH if impl.uses_scratch else 0)
    assert ub_bytes(impl, env) == plan.ub_bytes <= budget
    cut = evaluate(impl.graph.axis(impl.cut_axis).size, values)
    assert 1 <= plan.tile <= cut
    assert 1 <= plan.block_dim <= cores
    total = evaluate(impl.graph.axis(impl.merged_axis).size, env)
    assert (plan.block_dim - 1) * plan.tiles_per_block < total <= plan.block_dim * plan.tiles_per_block
    assert all(evaluate(l.value, env) <= l.bound for l in impl.limits)


LARGEST = {1: 1 << 33, 2: 1 << 20, 3: 1 << 13, 4: 1 << 20}


@pytest.mark.parametrize("setting,name", PAIRS)
def test_cpp_is_the_python_solver(kernels, setting, name):
    kernel = kernels[setting, name]
    seen = set()

    @settings(max_examples=100 if setting == "default" else 25, deadline=None,
              suppress_health_check=list(HealthCheck))
    @given(any_shape(kernel.sample, LARGEST[max(1, len(kernel.sample.symbols))]),
           st.sampled_from((1, 2, 3, 20, 40, 48)), st.sampled_from((FULL_UB, FULL_UB, 40000, 9000, 1500)))
    def check(chosen, cores, ub):
        values = kernel.sample.values(chosen)
        code, block_dim, fields = kernel.cpp_plan(values, cores, ub)
        try:
            plan = kernel.solver.plan(values, cores, ub)
        except NoPlan:
            assert code != 0
            assert ub != FULL_UB, "every shape has a plan on a real machine"
            return
        assert code == 0
        assert block_dim == plan.block_dim
        if plan.block_dim == 0:
            assert 0 in values.values() or kernel.sample.output_elements(values) == 0
            return
        check_legal(kernel, values, plan, cores, ub)
        impl = kernel.impls[plan.key]
        expected = {"block_dim": plan.block_dim, "tiling_key": plan.key, impl.tile_symbol: plan.tile,
                    impl.block_symbol: plan.tiles_per_block, **dict(plan.containers)}
        if impl.tmp_bytes:
            expected["tmp_bytes"] = plan.tmp_bytes
        expected.update({s: values[s] for s in kernel.symbols if s in fields})
        assert {k: v for k, v in fields.items() if k in expected} == expected
        assert not any(v for k, v in fields.items() if k not in expected)
        seen.add(plan.key)

    check()
    assert seen


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_plans_cover_every_element_once(data):
    """Random graphs with the solver's own plans, on few cores and little UB so that there are tails and
    blocks."""
    kernel = Kernel(data.draw(samples()))
    sample = kernel.sample
    values = sample.values(data.draw(shapes(sample)))
    elements = sample.output_elements(values)
    assume(elements < 3000)
    cores, ub = data.draw(st.sampled_from((1, 3, 40))), data.draw(st.sampled_from((FULL_UB, 30000)))
    try:
        plan = kernel.solver.plan(values, cores, ub)
    except NoPlan:
        assert ub != FULL_UB
        return
    if elements == 0:
        assert plan.block_dim == 0
        return
    check_legal(kernel, values, plan, cores, ub)
    inputs = sample.inputs(values)
    expected = reference(sample.graph, values, inputs, sample.outputs)
    outputs = [np.zeros(e.size, e.dtype) for e in expected]
    machine = UbMachine(kernel.impls[plan.key], values, plan.tile, plan.tiles_per_block, plan.block_dim,
                        dict(plan.containers), inputs, outputs)
    machine.run()
    for got, want, written in zip(outputs, expected, machine.written):
        np.testing.assert_array_equal(got, want)
        assert (written == 1).all()


def test_small_shapes_use_few_cores_and_large_ones_all():
    plans = [solve([build_model(i) for i in schedule(public_example(rows, 128).graph, MACHINE)], {}, MACHINE)
             for rows in (1, 8, 192, 4096, 1 << 20)]
    cores = [p.block_dim for p in plans]
    assert cores[0] <= 2
    assert cores == sorted(cores)
    assert cores[-1] == MACHINE.vector_cores


def plan_of(rows, **settings):
    """Of the public example with so many rows."""
    models = [build_model(i) for i in schedule(public_example(rows, 128).graph, MACHINE)]
    return solve(models, {}, MACHINE, TilingSettings(**settings))


@pytest.mark.parametrize("rows", [1, 7, 48, 192, 1000, 5000, 1 << 20])
def test_the_small_shape_strategy_takes_fewer_cores_for_small_shapes_only(rows):
    usual, few = plan_of(rows), plan_of(rows, small_shapes=True)
    assert few.block_dim <= usual.block_dim and few.cost <= usual.cost * SLOWER
    if rows in (48, 192):
        assert few.block_dim < usual.block_dim
    if rows >= 5000:
        assert few == usual


@pytest.mark.parametrize("rows", [7, 192, 2048, 1 << 16])
def test_level_0_searches_nothing(rows):
    first, searched = plan_of(rows, accuracy_level=0), plan_of(rows)
    assert searched.cost <= first.cost
    cases = Kernel(public_example(rows, 128), TilingSettings(accuracy_level=0)).solver.problems(
        {}, *MACHINE.launch_limits)
    assert first.cost == min(p.candidate(MACHINE.vector_cores, 1).cost for p in cases)


def test_the_trade_between_cores_and_ub():
    """A tile as large as UB allows, smaller for busy cores, never below the least share of UB."""
    def cores_and_share(rows, ub, cores):
        plan = plan_of(rows, tradeoff=True, ub_threshold=ub, corenum_threshold=cores)
        return plan.block_dim, plan.ub_bytes / FULL_UB

    # Many rows: the cores are busy with tiles as large as fit.
    assert cores_and_share(1 << 16, 20, 40)[0] >= MACHINE.vector_cores - 1
    assert cores_and_share(1 << 16, 20, 40)[1] > 0.8
    # Few rows: the share of UB bounds how many cores get one ...
    few = [cores_and_share(512, ub, 100) for ub in (0, 5, 20, 60)]
    assert [cores for cores, _ in few] == sorted((cores for cores, _ in few), reverse=True)
    assert few[0][0] > 2 * few[-1][0]
    assert all(share >= ub / 100 for (_, share), ub in zip(few, (0, 5, 20, 60)))
    # ... and the number of cores that must be busy bounds how small tiles get.
    some = [cores_and_share(512, 0, cores) for cores in (0, 25, 50, 100)]
    assert [share for _, share in some] == sorted((share for _, share in some), reverse=True)
    assert all(cores >= MACHINE.vector_cores * wanted // 100 for (cores, _), wanted in zip(some, (0, 25, 50)))


def test_a_large_shape_fills_ub():
    kernel = Kernel("public_example")
    model = build_model(schedule(public_example(1 << 20, 128).graph, MACHINE)[0])
    plan = solve([model], {}, MACHINE)
    assert plan.ub_bytes > 0.8 * FULL_UB
    assert kernel.solver.plan({}, 40, FULL_UB).tile < plan.tile


def test_the_contiguous_variant_is_taken_where_it_holds():
    kernel = Kernel("run_time_broadcast")
    for dims, variant in (((64, 32, 64, 32), "contiguous"), ((1, 1, 1, 1), "contiguous"),
                          ((64, 32, 1, 32), "strided"), ((64, 1, 64, 32), "strided")):
        values = kernel.sample.values(dict(zip(("s0", "s1", "s2", "s3"), dims)))
        assert kernel.impls[kernel.solver.plan(values, 40, FULL_UB).key].variant == variant


def test_templates_are_chosen_by_the_documented_rule():
    def choice(cost, ratio, key):
        return solve_module._Choice(cost, ratio, key, 1, 1, 1, 1, 1)

    better = solve_module._better
    # More than 5000 cycles apart: the cheaper one, whatever its use of UB.
    assert better(choice(100000.0, 0.01, 1), choice(105001.0, 0.9, 0)).key == 1
    # Close: the only one that uses UB well; both badly: the larger ratio; both well: the cheaper one.
    assert better(choice(100000.0, 0.01, 1), choice(104000.0, 0.9, 0)).key == 0
    assert better(choice(104000.0, 0.18, 1), choice(100000.0, 0.1, 0)).key == 1
    assert better(choice(100000.0, 0.3, 1), choice(104000.0, 0.9, 0)).key == 1
    # A tenth of a small kernel's time decides too.
    assert better(choice(1000.0, 0.01, 1), choice(1101.0, 0.9, 0)).key == 1
    assert better(choice(1000.0, 0.01, 1), choice(1099.0, 0.9, 0)).key == 0
    # A tie keeps the earlier key.
    assert better(choice(1000.0, 0.5, 1), choice(1000.0, 0.5, 0)).key == 0
    assert better(None, choice(1.0, 0.5, 0)).key == 0
    assert better(choice(1.0, 0.5, 1), None).key == 1


def test_the_tiling_data_has_no_padding_and_no_field_twice():
    for name in NAMES:
        kernel = Kernel(name)
        fields = [f.name for f in kernel.fields]
        assert len(set(fields)) == len(fields)
        assert sum(8 if f.type == "int64_t" else 4 for f in kernel.fields) % 8 == 0


def test_the_text_is_the_same_every_time():
    first, second = Kernel("three_axes"), Kernel("three_axes")
    assert tiling_functions(first.fused, first.impls) == tiling_functions(second.fused, second.impls)
