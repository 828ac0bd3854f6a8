"""Kernels on the twin against the region's meaning on numpy: HintGraph -> schedule -> codegen -> g++ ->
bits."""

import dataclasses
import random
import threading

import numpy as np
import pytest

from tests.codegen import regions
from tests.codegen.conftest import MACHINE, Built
from tests.strategies import arrays_for
from tf_autofuse.ir.dtypes import BFLOAT16
from tf_autofuse.ir.evaluate import evaluate_fused
from tf_autofuse.machine import usable_ub
from tf_autofuse.runtime import registry
from tf_autofuse.symbolic.guards import GuardFailure

NAMES = sorted(regions.all_regions())


def same(dtype, got, expected) -> bool:
    """Equal bits, NaN for NaN."""
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return False
    if dtype is BFLOAT16:
        got, expected = ((a.astype(np.uint32) << 16).view(np.float32) for a in (got, expected))
    if got.dtype.kind == "f":
        nan = np.isnan(expected)
        return bool((np.isnan(got) == nan).all()) and got[~nan].tobytes() == expected[~nan].tobytes()
    return got.tobytes() == np.ascontiguousarray(expected).tobytes()


def check(built: Built, dims, seed=0, **options):
    fused = built.region.fused
    inputs = arrays_for(fused, dims, seed)
    with np.errstate(all="ignore"):
        expected = evaluate_fused(fused, inputs)
    kept = [a.copy() for a in inputs]
    outputs, info = registry.run(built.binary, fused, inputs, **options)
    for tensor, got, want in zip(fused.outputs, outputs, expected):
        assert same(tensor.dtype, got, want), (dims, info)
    assert all(a.tobytes() == b.tobytes() for a, b in zip(inputs, kept)) or options.get("aliased")
    return info


@pytest.mark.parametrize("name", NAMES)
def test_results(built, name):
    for seed, dims in enumerate(built[name].region.dims):
        info = check(built[name], dims, seed)
        assert (info.block_dim == 0) == (not all(n for t in evaluated_dims(built[name], dims) for n in t))


def evaluated_dims(built, dims):
    """The outputs' dims, from the library."""
    library = registry.library_of(built.binary, built.region.fused)
    return library.shape(dims).out_dims


@pytest.mark.parametrize("name", [n for n in NAMES if regions.all_regions()[n].refused])
def test_refused_dims(built, name):
    fused = built[name].region.fused
    for dims in built[name].region.refused:
        inputs = arrays_for(fused, dims, 0)
        with pytest.raises(GuardFailure):
            evaluate_fused(fused, inputs)
        with pytest.raises(GuardFailure, match="check"):
            registry.run(built[name].binary, fused, inputs)


SMALL_UB = {
    "public_example": 24,
    "column": 12,
    "several_outputs": 8,
    "symbolic": 24,
    "flat_symbolic": 8,
    "select": 24,
    "run_time_broadcast": 12,
    "outer_product": 8,
    "constants": 4,
    "run_time_broadcast_inner": 12,
}


@pytest.mark.parametrize("name", sorted(SMALL_UB))
def test_several_tiles_a_block(built, name):
    """A machine with two cores and little UB: blocks of several tiles, tails included."""
    machine = dataclasses.replace(MACHINE, vector_cores=2, ub_bytes=SMALL_UB[name] * 1024)
    tiles = []
    for dims in built[name].region.dims:
        info = check(built[name], dims, machine=machine)
        assert info.block_dim <= machine.vector_cores
        if info.block_dim:
            tiles.append(dict(info.values)[built[name].impls[info.tiling_key].block_symbol])
    assert max(tiles) > 1


@pytest.mark.parametrize("name", ["public_example", "symbolic", "run_time_broadcast"])
def test_any_order_of_blocks(built, name):
    dims = max(built[name].region.dims, key=str)
    fused = built[name].region.fused
    inputs = arrays_for(fused, dims, 3)
    expected, info = registry.run(built[name].binary, fused, inputs)
    for order in (
        range(info.block_dim)[::-1],
        random.Random(1).sample(range(info.block_dim), info.block_dim),
    ):
        got, _ = registry.run(built[name].binary, fused, inputs, blocks=order)
        assert all(a.tobytes() == b.tobytes() for a, b in zip(got, expected))


def test_blocks_on_several_threads(built):
    region = built["symbolic"].region
    inputs = arrays_for(region.fused, ((1024, 128), (1024, 1)), 5)
    expected = evaluate_fused(region.fused, inputs)
    library = registry.library_of(built["symbolic"].binary, region.fused)
    tiling = library.tiling((1024,), MACHINE.vector_cores, usable_ub(MACHINE, False))
    output = np.full((1024, 128), 7, np.float32)
    memory = list(inputs) + [output]
    problems = []

    def work(first, last):
        try:
            library.run([a.ctypes.data for a in memory], [a.nbytes for a in memory], tiling, first, last)
        except Exception as error:
            problems.append(error)

    borders = np.linspace(0, tiling.block_dim, 5).astype(int)
    threads = [threading.Thread(target=work, args=pair) for pair in zip(borders[:-1], borders[1:])]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not problems and same(region.fused.outputs[0].dtype, output, expected[0])


@pytest.mark.parametrize("name", NAMES)
def test_forwarded_memory(built, name):
    fused = built[name].region.fused
    for pair in registry.forward_pairs(fused):
        for dims in built[name].region.dims[:8]:
            check(built[name], dims, aliased=[pair])


def test_forwarding_happens_at_all(built):
    assert registry.forward_pairs(built["public_example"].region.fused) == ((1, 0),)
    with pytest.raises(ValueError, match="no forward pairs"):
        registry.run(
            built["public_example"].binary,
            built["public_example"].region.fused,
            arrays_for(built["public_example"].region.fused, ((128,), (192, 128)), 0),
            aliased=[(0, 0)],
        )


def test_inputs_that_are_not_aligned(built):
    """GM has no alignment: views into a byte buffer at odd addresses."""
    fused = built["public_example"].region.fused
    raw = np.arange(128 * 4 + 5, dtype=np.uint8)
    view = (
        raw[5:].view(np.float32)
        if raw[5:].ctypes.data % 4 == 0
        else np.frombuffer(raw.tobytes()[5:], np.float32)
    )
    inputs = [np.nan_to_num(view[:128]), np.ones((192, 128), np.float32)]
    outputs, _ = registry.run(built["public_example"].binary, fused, inputs)
    assert same(fused.outputs[0].dtype, outputs[0], evaluate_fused(fused, inputs)[0])


def test_one_binary_serves_every_shape(built):
    """The variants of one library: the contiguous one where nothing is broadcast, the strided one
    elsewhere."""
    one = built["run_time_broadcast"]
    keys = {
        dims: check(one, dims).tiling_key for dims in one.region.dims if 0 not in (dims[0][0], dims[1][0])
    }
    variants = {dims: one.impls[key].variant for dims, key in keys.items()}
    assert variants[((5, 60), (5, 60))] == "contiguous" and variants[((3000, 60), (3000, 60))] == "contiguous"
    assert variants[((5, 60), (1, 60))] == "strided" and variants[((1, 60), (3000, 60))] == "strided"


def test_info_tells_the_plan(built):
    info = check(built["public_example"], ((128,), (192, 128)))
    values = dict(info.values)
    assert values["block_dim"] == info.block_dim >= 1 and values["tiling_key"] == info.tiling_key == 0
    impl = built["public_example"].impls[0]
    assert values[impl.tile_symbol] >= 1 and info.workspace_bytes == 0


def test_wrong_dtypes_and_ranks(built):
    one = built["public_example"]
    good = arrays_for(one.region.fused, ((128,), (192, 128)), 0)
    with pytest.raises(ValueError, match="input 0 is float64"):
        registry.run(one.binary, one.region.fused, [good[0].astype(np.float64), good[1]])
    with pytest.raises(ValueError, match="ranks"):
        registry.run(one.binary, one.region.fused, [good[0][None], good[1]])


def test_the_trace_is_what_the_text_says(built):
    """Every core issues its calls in the order of the source; the bytes moved are those of inputs and
    outputs."""
    info = check(built["public_example"], ((128,), (192, 128)), trace=True)
    copies = [t for t in info.trace if t.kind == "instruction" and t.pipe in ("MTE2", "MTE3")]
    loaded = sum(t.bytes for t in copies if t.pipe == "MTE2")
    assert loaded == 192 * 128 * 4 + info.block_dim * 128 * 4
    assert sum(t.bytes for t in copies if t.pipe == "MTE3") == 192 * 128 * 4
    apis = [t.api for t in info.trace if t.block == 0 and t.pipe == "V" and t.kind == "instruction"]
    assert apis[0] == "Abs" and apis.index("Add") < apis.index("Relu")
    assert all(t.line > 0 for t in info.trace if t.file == "kernel.cpp") and info.trace
    assert check(built["public_example"], ((128,), (192, 128))).trace == ()
