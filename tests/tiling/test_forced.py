"""force_schedule_result, force_tiling_case, force_template_op_name: names, what they select, and what is said
where there is none."""
import pytest

from tests.codegen import families, regions
from tf_autofuse import diagnostics
from tf_autofuse.codegen.ascendc.generate import generate
from tf_autofuse.config import Config
from tf_autofuse.machine import machine_for
from tf_autofuse.schedule.nests import nests_of
from tf_autofuse.schedule.schedule import schedule
from tf_autofuse.tiling.forced import case_name, forced_of, report_name, results_of
from tf_autofuse.tiling.model import build_model
from tf_autofuse.tiling.settings import Forced, TilingSettings
from tf_autofuse.tiling.solve import Solver

MACHINE = machine_for("")


@pytest.fixture(autouse=True)
def fresh():
    diagnostics.forget()


def nests(fused):
    return nests_of(fused, [i for g in fused.graphs for i in schedule(g, MACHINE)])


def reduced():
    """A kernel with the ways empty, whole and parts."""
    for name, family in families.families().items():
        found = nests(family.fused)
        if {"whole", "parts"} <= {n.way for n in found} and len(family.fused.graphs) == 1:
            return family.fused, found
    raise AssertionError("no family reduces in parts")


def test_names_of_cases():
    fused, found = reduced()
    names = [case_name(n, i.tiling_key) for n in found for i in n.impls]
    assert len(set(names)) == len(names)
    partial = next(n for n in found if n.impls[0].parts_symbol)
    assert all(case_name(partial, i.tiling_key).endswith("_R") for i in partial.impls)
    for name in names:
        word = Config.from_sources({"AUTOFUSE_DFX_FLAGS": "--force_tiling_case=" + name}).force_tiling_case
        assert word == name


def test_a_case_is_forced_by_its_name_and_by_its_number():
    fused = regions.GOLDEN["run_time_broadcast"]().fused
    found = nests(fused)
    last = found[0].impls[-1].tiling_key
    assert last > 0
    for word in ("g0_%d" % last, str(last)):
        assert forced_of(Config(force_tiling_case=word), fused.name, found) == Forced((), ((0, last),))


def test_the_named_case_plans_where_it_can_and_the_best_where_it_can_not():
    fused = regions.GOLDEN["run_time_broadcast"]().fused
    (nest,) = nests(fused)
    symbols = [v.name for v in fused.sizes]
    strided = next(i.tiling_key for i in nest.impls if i.variant == "strided")
    contiguous = next(i.tiling_key for i in nest.impls if i.variant == "contiguous")
    models = [build_model(i) for i in nest.impls]

    def key(forced, values):
        settings = TilingSettings(forced=Forced((), ((0, forced),)))
        given = dict(values, **{s: 64 for s in symbols if s not in values})
        return Solver(models, symbols, settings).plan(given, *MACHINE.launch_limits).key

    same = {s: 64 for s in symbols}
    assert key(strided, same) == strided and key(contiguous, same) == contiguous
    inputs = [d for io in fused.inputs for d in io.dims]
    assert len(inputs) == 4
    assert key(contiguous, {str(inputs[0]): 1}) != contiguous, "its conditions do not hold"


@pytest.mark.parametrize("flags,valid", [
    ({"force_tiling_case": "97"}, "0"), ({"force_tiling_case": "g7_0"}, "0"),
    ({"force_tiling_case": "0_R"}, "0"), ({"force_schedule_result": 5}, "0")])
def test_a_name_that_is_not_there_is_reported_with_those_that_are(flags, valid, caplog):
    fused = regions.GOLDEN["public_example"]().fused
    assert forced_of(Config(**flags), fused.name, nests(fused)) == Forced()
    (record,) = caplog.records
    (flag,) = flags
    assert "--%s=%s" % (flag, flags[flag]) in record.getMessage()
    assert "It has %s" % valid in record.getMessage()
    forced_of(Config(**flags), fused.name, nests(fused))
    assert len(caplog.records) == 1, "once"


def test_schedule_results_are_the_ways():
    fused, found = reduced()
    assert results_of(found) == {0: ["whole", "parts"]}
    for number, way in enumerate(("whole", "parts")):
        config = Config(force_schedule_result=number)
        assert forced_of(config, fused.name, found) == Forced(((0, way),), ())
    impls = [i for n in found for i in n.impls]

    def host(number):
        config = Config(force_schedule_result=number)
        return generate(fused, impls, MACHINE, config).text("host.cpp")

    assert "if (parts && true) {" in host(1)
    assert "if (parts && !whole) {" in host(0)
    assert "if (parts && (!whole || parts_cost < whole_cost)) {" in host(-1)


def test_only_the_named_op_obeys(caplog):
    fused = regions.GOLDEN["public_example"]().fused
    found = nests(fused)
    config = Config(force_tiling_case="0", force_template_op_name=fused.name)
    assert forced_of(config, fused.name, found).cases == ((0, 0),)
    assert forced_of(config, "another", found) == Forced()
    report_name(config, [fused.name])
    report_name(config, [])
    assert not caplog.records
    report_name(config, ["autofuse_pointwise_1_Abs", fused.name + "x"])
    assert "the nearest is %sx" % fused.name in caplog.records[0].getMessage().lower().replace(
        fused.name.lower(), fused.name)
