"""Kernels that reduce, move, gather or have several nests, on the twin against the graph's meaning on
numpy."""

import dataclasses

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.codegen.conftest import MACHINE
from tests.codegen.families import GOLDEN, families
from tf_autofuse.build.kernels import BuildFailure, build_kernels
from tf_autofuse.codegen.ascendc.generate import generate
from tf_autofuse.ir.dtypes import BOOL
from tf_autofuse.ir.evaluate import evaluate_fused
from tf_autofuse.ir.verify import verify_fused
from tf_autofuse.ir.verify_impl import verify_impl
from tf_autofuse.machine import usable_ub
from tf_autofuse.runtime import registry
from tf_autofuse.runtime.library import KernelError
from tf_autofuse.schedule.nests import nests_of
from tf_autofuse.schedule.schedule import schedule

FAMILIES = families()
RUN = sorted(n for n in FAMILIES if FAMILIES[n].dims)


def scheduled(fused):
    return tuple(impl for graph in fused.graphs for impl in schedule(graph, MACHINE))


def inputs_for(one, dims, seed=0):
    """Numbers of a normal distribution, small integers, anything bool."""
    rng = np.random.RandomState(seed)
    made = []
    for tensor, shape in zip(one.fused.inputs, dims):
        if tensor.dtype is BOOL:
            made.append(rng.randint(0, 2, shape).astype(np.bool_))
        elif tensor.dtype.is_integer:
            made.append(rng.randint(0, one.index_limit, shape).astype(tensor.dtype.numpy))
        else:
            made.append(rng.randn(*shape).astype(tensor.dtype.numpy))
    return made


class Kernels(dict):
    """Built families by name."""

    def __missing__(self, name):
        pytest.fail("%s was not built" % name)


@pytest.fixture(scope="module")
def kernels(build_settings):
    made = {}
    for name in RUN:
        fused = FAMILIES[name].fused
        verify_fused(fused)
        impls = scheduled(fused)
        for impl in impls:
            verify_impl(impl.graph)
        made[name] = impls, generate(fused, impls, MACHINE, None)
    result = Kernels()
    for (name, (impls, _)), binary in zip(made.items(), build_kernels([s for _, s in made.values()],
                                                                      build_settings)):
        assert not isinstance(binary, BuildFailure), "%s: %s\n%s" % (name, binary.reason, binary.log)
        result[name] = impls, binary
    return result


def run(kernels, name, dims, seed=0, **options):
    one = FAMILIES[name]
    inputs = inputs_for(one, dims, seed)
    expected = evaluate_fused(one.fused, inputs)
    outputs, info = registry.run(kernels[name][1], one.fused, inputs, **options)
    for tensor, got, want in zip(one.fused.outputs, outputs, expected):
        assert got.dtype == want.dtype and got.shape == want.shape
        if tensor.dtype.is_floating:
            np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)
        else:
            np.testing.assert_array_equal(got, want)
    return outputs, info


@pytest.mark.parametrize("name", RUN)
def test_results(kernels, name):
    for seed, dims in enumerate(FAMILIES[name].dims):
        run(kernels, name, dims, seed)


SMALL_UB = {"softmax": 64, "layer_norm": 64, "reduce_columns": 128, "transpose": 40, "pooling": 40,
            "concat_16": 16,
            "chain": 24, "embedding": 16, "integers": 64}


@pytest.mark.parametrize("name", sorted(SMALL_UB))
def test_two_cores_and_little_ub(kernels, name):
    machine = dataclasses.replace(MACHINE, vector_cores=2, ub_bytes=SMALL_UB[name] * 1024)
    for dims in FAMILIES[name].dims:
        _, info = run(kernels, name, dims, machine=machine)
        assert info.block_dim <= 2


def active(kernels, name, dims):
    """(way, stage) of the nests that have blocks."""
    _, info = run(kernels, name, dims)
    values = dict(info.values)
    nests = nests_of(FAMILIES[name].fused, kernels[name][0])
    return [(n.way, n.stage) for n in nests if values["n%d_block_dim" % n.number]], values


def test_the_way_follows_the_shape(kernels):
    assert active(kernels, "softmax", ((1024, 256),))[0] == [("whole", 0)]
    parts, values = active(kernels, "softmax", ((1, 100000),))
    assert parts == [("parts", i) for i in range(5)]
    assert [values["n%d_sync" % i] for i in range(1, 6)] == [0, 1, 1, 1, 1]
    assert active(kernels, "reduce_rows", ((7, 0),))[0] == [("empty", 0)]
    assert active(kernels, "reduce_rows", ((0, 7),))[0] == []


PLANS = [
    ("reduce_columns", dims) for dims in ((65536, 768), (100000, 4096), (1000000, 16), (300000, 768))] + [
    ("reduce_rows", dims) for dims in ((1, 60000000), (1 << 20, 3), (3, 1 << 20), (1000, 100000))] + [
    ("softmax", dims) for dims in ((4095, 8193), (1, 60000000), (100000, 1000))]


def check_plan(kernels, name, dims):
    """All nests that take part keep UB, whatever the way; workspaces are those of the active way only."""
    library = registry.library_of(kernels[name][1], FAMILIES[name].fused)
    tiling = library.tiling(dims, MACHINE.vector_cores, usable_ub(MACHINE, False))
    values = dict(tiling.values)
    assert 1 <= tiling.block_dim <= MACHINE.vector_cores
    ways = set()
    for nest in nests_of(FAMILIES[name].fused, kernels[name][0]):
        fields = {k.split("_", 1)[1]: v for k, v in values.items() if k.startswith("n%d_" % nest.number)}
        if not fields["block_dim"]:
            continue
        ways.add(nest.way)
        impl = nest.impls[fields["tiling_key"]]
        used = sum(c.buf_num * fields[c.field] for c in impl.containers)
        used += fields["tmp_bytes"] if impl.tmp_bytes else 0
        assert used <= usable_ub(MACHINE, impl.uses_scratch)
    assert len(ways) == 1 and (tiling.workspace_bytes > 0) == (ways == {"parts"})


@pytest.mark.parametrize("name, dims", PLANS)
def test_large_shapes_have_a_plan(kernels, name, dims):
    check_plan(kernels, name, dims)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(("softmax", "layer_norm", "reduce_rows", "reduce_columns", "reduce_all")),
       st.tuples(*[st.one_of(st.integers(1, 40), st.integers(1, 70000))] * 2))
def test_every_shape_has_a_plan(kernels, name, dims):
    """But for more elements to one than the partial results of all tiles fit UB."""
    assume(name != "reduce_all" or dims[0] * dims[1] < 20 * 1000 * 1000)
    check_plan(kernels, name, dims)


def test_identities_of_empty_reductions(kernels):
    (sums, tops, means), _ = run(kernels, "reduce_rows", ((7, 0),))
    assert (sums == 0).all() and (tops == -np.inf).all() and np.isnan(means).all()


@pytest.mark.parametrize("name, dims", [("softmax", ((1, 100000),)), ("reduce_all", ((2, 50000),))])
def test_the_same_bits_every_time(kernels, name, dims):
    first, second = (run(kernels, name, dims, seed=3)[0] for _ in range(2))
    assert [a.tobytes() for a in first] == [a.tobytes() for a in second]


def test_special_values(kernels):
    one = FAMILIES["reduce_rows"]
    x = np.ones((4, 33), np.float32)
    x[0, 5], x[1, 7], x[2, :] = np.nan, np.inf, -np.inf
    expected = evaluate_fused(one.fused, [x])
    outputs, _ = registry.run(kernels["reduce_rows"][1], one.fused, [x])
    for got, want in zip(outputs, expected):
        np.testing.assert_array_equal(got, want)


def test_independent_nests_use_other_cores(kernels):
    _, values = active(kernels, "concat_16", FAMILIES["concat_16"].dims[0])
    first = [values["n%d_first_block" % i] for i in range(16)]
    assert len(set(first)) == 16 and not any(values["n%d_sync" % i] for i in range(16))
    assert values["block_dim"] <= MACHINE.vector_cores and values["workspace_bytes"] == 0


def test_a_nest_waits_for_what_it_reads_only(kernels):
    _, values = active(kernels, "chain", FAMILIES["chain"].dims[0])
    assert [values["n%d_sync" % i] for i in range(3)] == [0, 0, 1]
    assert values["n1_first_block"] == values["n0_block_dim"] and values["n2_first_block"] == 0
    assert values["workspace_bytes"] == -(-300 * 40 * 4 // 512) * 512


@pytest.mark.parametrize("wrong", [-1, 9, 2 ** 31 - 1])
def test_an_index_out_of_range_is_refused(kernels, wrong):
    one = FAMILIES["embedding"]
    inputs = inputs_for(one, ((9, 4), (50,)))
    inputs[1][37] = wrong
    with pytest.raises(Exception) as error:
        registry.run(kernels["embedding"][1], one.fused, inputs)
    assert "code 2" in str(error.value) or type(error.value).__name__ == "ValueCheckFailed"
    inputs[1][37] = 8
    registry.run(kernels["embedding"][1], one.fused, inputs)


def test_an_empty_table_has_no_plan(kernels):
    one = FAMILIES["embedding"]
    with pytest.raises(KernelError, match="no tiling"):
        registry.run(kernels["embedding"][1], one.fused, inputs_for(one, ((0, 4), (50,))))


def test_columns_too_wide_for_ub_are_tiled_twice():
    """[3000, 40000] summed over axis 0: neither all rows of a few columns nor all columns of a few rows
    fit."""
    impls = scheduled(FAMILIES["reduce_wide_columns"].fused)
    assert any(i.way == "parts" and i.second for i in impls)
    assert generate(FAMILIES["reduce_wide_columns"].fused, impls, MACHINE, None)


@pytest.mark.parametrize("name", GOLDEN)
def test_device_source(golden, name):
    fused = FAMILIES[name].fused
    sources = generate(fused, scheduled(fused), MACHINE, None)
    golden(name + ".kernel.cpp", sources.text("kernel.cpp"))
    assert sources == generate(fused, scheduled(fused), MACHINE, None)
    assert all(len(line) <= 110 or line.lstrip().startswith("//")
               for line in sources.text("kernel.cpp").splitlines())


@pytest.mark.parametrize("name", ["softmax_long", "embedding"])
def test_tiling_header(golden, name):
    fused = FAMILIES[name].fused
    golden(name + ".tiling_data.h", generate(fused, scheduled(fused), MACHINE, None).text("tiling_data.h"))
