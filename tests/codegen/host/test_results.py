"""Host kernels against the graph's meaning on numpy: HintGraph -> nests -> C -> gcc -> bits.

All kernels are built by one call, with warnings as errors. Sums are compared within rounding: numpy adds in
float64.
"""
import re

import numpy as np
import pytest

from tests.codegen import regions
from tests.codegen.host import graphs
from tests.codegen.host.conftest import CASES, MACHINE, REGIONS
from tests.codegen.test_end_to_end import same
from tests.strategies import arrays_for
from tf_autofuse.ir.evaluate import evaluate_fused
from tf_autofuse.runtime import registry
from tf_autofuse.runtime.library import KernelError
from tf_autofuse.symbolic.guards import GuardFailure, ValueCheckFailed

def agrees(tensor, got, expected, exact: bool) -> bool:
    if exact or not tensor.dtype.is_floating:
        return same(tensor.dtype, got, expected)
    if got.shape != expected.shape:
        return False
    a, b = got.astype(np.float64), expected.astype(np.float64)
    with np.errstate(invalid="ignore"):
        close = np.abs(a - b) <= 1e-5 * np.maximum(np.abs(b), graphs.SCALE)
    return bool(np.all(close | (a == b) | (np.isnan(a) & np.isnan(b))))


@pytest.mark.parametrize("name", sorted(CASES))
def test_results(kernels, name):
    fused, all_dims = CASES[name]
    for seed, dims in enumerate(all_dims):
        inputs = graphs.inputs_for(name, fused, dims, seed) if name not in REGIONS else arrays_for(fused,
                                                                                                   dims, seed)
        with np.errstate(all="ignore"):
            expected = evaluate_fused(fused, inputs)
        kept = [a.copy() for a in inputs]
        outputs, info = registry.run(kernels[name], fused, inputs, MACHINE)
        for tensor, got, want in zip(fused.outputs, outputs, expected):
            assert agrees(tensor, got, want, name in REGIONS or name in graphs.EXACT), (dims, info, got, want)
        assert all(a.tobytes() == b.tobytes() for a, b in zip(inputs, kept))


@pytest.mark.parametrize("name", sorted(CASES))
def test_any_order_of_blocks_gives_the_same_bits(kernels, name):
    fused, all_dims = CASES[name]
    dims = max(all_dims, key=lambda d: sum(int(np.prod(x)) for x in d))
    inputs = graphs.inputs_for(name, fused, dims, 1)
    expected, info = registry.run(kernels[name], fused, inputs, MACHINE)
    got, _ = registry.run(kernels[name], fused, inputs, MACHINE, blocks=range(info.block_dim)[::-1])
    assert all(a.tobytes() == b.tobytes() for a, b in zip(got, expected))


def test_several_blocks_are_met(kernels):
    blocks = {}
    for name in ("large_rows", "large_columns", "large_flat"):
        fused, (dims, *_) = CASES[name]
        inputs = graphs.inputs_for(name, fused, dims, 0)
        blocks[name] = registry.run(kernels[name], fused, inputs, MACHINE)[1].block_dim
    assert min(blocks.values()) > 3, blocks


@pytest.mark.parametrize("name", sorted(n for n, r in regions.all_regions().items() if r.refused))
def test_refused_dims(kernels, name):
    fused = CASES[name][0]
    for dims in regions.all_regions()[name].refused:
        with pytest.raises(GuardFailure, match="check"):
            registry.run(kernels[name], fused, arrays_for(fused, dims, 0))


@pytest.mark.parametrize("bad", [-1, 10, 2 ** 40])
def test_an_index_out_of_range_is_refused(kernels, bad):
    fused, (dims, *_) = CASES["embedding"]
    inputs = graphs.inputs_for("embedding", fused, dims, 0)
    inputs[1].reshape(-1)[-1] = bad
    with pytest.raises(ValueCheckFailed):
        registry.run(kernels["embedding"], fused, inputs, MACHINE)
    assert registry.allowed_pairs(kernels["embedding"], fused) == ()


@pytest.mark.parametrize("name", sorted(n for n in CASES))
def test_in_place(kernels, name):
    """Every allowed pair gives the same bits as fresh memory."""
    fused, all_dims = CASES[name]
    for pair in registry.allowed_pairs(kernels[name], fused):
        inputs = graphs.inputs_for(name, fused, all_dims[0], 2)
        expected, _ = registry.run(kernels[name], fused, [a.copy() for a in inputs], MACHINE)
        got, _ = registry.run(kernels[name], fused, inputs, MACHINE, aliased=[pair])
        assert all(a.tobytes() == b.tobytes() for a, b in zip(got, expected)), pair


def test_in_place_needs_the_last_body(kernels):
    """softmax's input is read for the last time where its output is written; relu(x) beside it is written
    before."""
    assert registry.allowed_pairs(kernels["softmax"], CASES["softmax"][0]) == ((0, 0),)
    assert registry.allowed_pairs(kernels["relu_and_softmax"], CASES["relu_and_softmax"][0]) == ((0, 1),)
    assert registry.forward_pairs(CASES["relu_and_softmax"][0]) == ((0, 0), (0, 1))


@pytest.mark.parametrize("name", sorted(CASES))
def test_stores_around_the_caches_give_the_same_bits(kernels, name):
    """As if the last cache held a byte, at any place in a cache line, and nothing beside the outputs."""
    fused, all_dims = CASES[name]
    library = registry.library_of(kernels[name], fused)
    for dims in all_dims:
        inputs = graphs.inputs_for(name, fused, dims, 4)
        shape = library.shape([a.shape for a in inputs])
        try:
            tiling = library.tiling(shape.sizes, MACHINE.cores, 1)
        except KernelError:  # an only element
            continue
        if not any(n.startswith("stream") and on for n, on in tiling.values):
            continue
        expected, _ = registry.run(kernels[name], fused, inputs, MACHINE._replace(l3_bytes=1 << 60))
        for shift in (0, 4, 60):
            frames = [np.full(128 + a.nbytes, 0xA5, np.uint8) for a in expected]
            places = [64 + (shift - f.ctypes.data) % 64 // a.itemsize * a.itemsize
                      for f, a in zip(frames, expected)]
            pointers = [a.ctypes.data for a in inputs] + [f.ctypes.data + p for f, p in zip(frames, places)]
            library.run(pointers, [a.nbytes for a in list(inputs) + expected], tiling)
            for frame, p, a in zip(frames, places, expected):
                assert frame[p:p + a.nbytes].tobytes() == a.tobytes()
                assert (frame[:p] == 0xA5).all() and (frame[p + a.nbytes:] == 0xA5).all()


def test_large_launches_store_around_the_caches(kernels):
    """Those that move as much as the last cache holds, and not those that write over what they read."""
    fused, (dims, *_) = CASES["large_flat"]
    library = registry.library_of(kernels["large_flat"], fused)
    planned = [dict(library.tiling((), 2, size).values)["stream0"] for size in (1 << 23, (1 << 23) + 1, 0)]
    assert planned == [1, 0, 0]
    with open(kernels["large_flat"].source_path, encoding="utf-8") as stream:
        assert re.search(r"stream = t->stream0 && \(const void\*\)b0 != \(const void\*\)b\d;", stream.read())


def test_outputs_alone_are_written(kernels):
    """Nothing is written beside the outputs: they lie between guard bytes."""
    for name in sorted(CASES):
        fused, all_dims = CASES[name]
        library = registry.library_of(kernels[name], fused)
        inputs = graphs.inputs_for(name, fused, all_dims[-1], 4)
        shape = library.shape([a.shape for a in inputs])
        tiling = library.tiling(shape.sizes, *MACHINE.launch_limits)
        if shape.failed or not tiling.block_dim:
            continue
        frames = []
        for dims, t in zip(shape.out_dims, fused.outputs):
            size = int(np.prod(dims, dtype=np.int64)) * t.dtype.bytes
            frames.append((np.full(size + 128, 0xA5, np.uint8), size))
        addresses = [a.ctypes.data for a in inputs] + [f.ctypes.data + 64 for f, _ in frames]
        library.run(addresses, [a.nbytes for a in inputs] + [s for _, s in frames], tiling)
        for frame, size in frames:
            assert (frame[:64] == 0xA5).all() and (frame[64 + size:] == 0xA5).all(), name
