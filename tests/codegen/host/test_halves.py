"""float16 in innermost loops: staged by blocks, rounded within float32; every bit as op by op."""
import numpy as np
import pytest

from tests.codegen.host import graphs
from tests.codegen.host.conftest import MACHINE
from tests.codegen.test_end_to_end import same
from tf_autofuse.build.kernels import BuildSettings, KernelBinary, build_kernels
from tf_autofuse.codegen.sources import HOST_KERNEL
from tf_autofuse.codegen.targets import HOST
from tf_autofuse.ir.builder import HintBuilder
from tf_autofuse.ir.dtypes import FLOAT16, FLOAT32
from tf_autofuse.ir.evaluate import evaluate_fused
from tf_autofuse.runtime import registry


def _widened(b, ref):
    return b.op("Cast", ref, dtype=FLOAT32)


def _rounded(b, ref):
    return b.op("Cast", ref, dtype=FLOAT16)


def round_trip(count: int):
    """float32 -> float16 -> float32, and the float16 itself."""
    b = HintBuilder("g", [("z0", count)])
    half = _rounded(b, b.load(b.data(0, FLOAT32), (1,)))
    b.store(_widened(b, half), 0)
    b.store(half, 1)
    return graphs.fused("round_trip", [b], [(FLOAT32, (count,))], [(FLOAT32, (count,)), (FLOAT16, (count,))])


def chain(rows: int, width: int):
    """abs(x) rounded, which changes nothing, plus y, relu; x, y and the result float16; the rows' maxima."""
    b = HintBuilder("g", [("z0", rows), ("z1", width)])
    x = _widened(b, b.load(b.data(0, FLOAT16), (1, 1)))
    y = _widened(b, b.load(b.data(1, FLOAT16), (0, 1)))
    a = _widened(b, _rounded(b, b.op("Abs", x)))
    total = b.op("Relu", b.op("Add", a, b.broadcast_to(y, (1, 1))))
    b.store(_rounded(b, total), 0)
    b.store(b.reduce("Max", total, (1,)), 1)
    return graphs.fused("chain", [b], [(FLOAT16, (rows, width)), (FLOAT16, (1, width))],
                        [(FLOAT16, (rows, width)), (FLOAT32, (rows, 1))])


def rounded_sums(count: int):
    """The widened maximum of x and -y, rounded: nothing to round; then its sum with x, rounded: much to."""
    b = HintBuilder("g", [("z0", count)])
    x, y = (_widened(b, b.load(b.data(i, FLOAT16), (1,))) for i in range(2))
    largest = _widened(b, _rounded(b, b.op("Maximum", x, b.op("Neg", y))))
    b.store(largest, 0)
    b.store(_widened(b, _rounded(b, b.op("Relu", b.op("Add", largest, x)))), 1)
    return graphs.fused("rounded_sums", [b], [(FLOAT16, (count,))] * 2, [(FLOAT32, (count,))] * 2)


GRAPHS = {"rounded_sums": rounded_sums(5003),
          "round_trip": round_trip(1 << 18), "chain": chain(7, 1037), "chain_short": chain(3, 5),
          "chain_512": chain(2, 512)}


@pytest.fixture(scope="module")
def binaries(build_settings):
    sources = [HOST.generate(f, HOST.schedule(f, MACHINE), MACHINE, None) for f in GRAPHS.values()]
    results = build_kernels(sources, BuildSettings(
        cache_dir=build_settings.cache_dir, extra_flags=("-Wall", "-Wextra", "-Werror")))
    assert all(isinstance(r, KernelBinary) for r in results), results
    return dict(zip(GRAPHS, results)), dict(zip(GRAPHS, sources))


def values(count: int, seed: int) -> np.ndarray:
    """float32 of all exponents and both signs, with every kind of tie, and infinities and NaNs."""
    random = np.random.RandomState(seed)
    bits = np.frombuffer(random.bytes(4 * count), np.uint32).copy()
    bits[::3] &= np.uint32(0xFFFFF000)  # ties of the rounding to float16, and next to them
    bits[1::3] = (bits[1::3] & np.uint32(0x87FFFFFF)) | np.uint32(0x38000000)
    bits[2::7] = (bits[2::7] & np.uint32(0x80FFFFFF)) | np.uint32(0x33000000)
    bits[:4] = [0x7F800000, 0xFF800000, 0x7FC00000, 0x80000000]
    return bits.view(np.float32)


@pytest.mark.parametrize("name", sorted(GRAPHS))
def test_bits(binaries, name):
    fused = GRAPHS[name]
    random = np.random.RandomState(3)
    for seed in range(3):
        inputs = [values(int(np.prod(t.dims)), seed).reshape(t.dims) if t.dtype is FLOAT32
                  else np.frombuffer(random.bytes(2 * int(np.prod(t.dims))), np.float16).reshape(t.dims)
                  for t in fused.inputs]
        with np.errstate(all="ignore"):
            expected = evaluate_fused(fused, inputs)
        outputs, _ = registry.run(binaries[0][name], fused, inputs, MACHINE)
        for t, got, want in zip(fused.outputs, outputs, expected):
            assert same(t.dtype, got, want)


def test_what_is_staged(binaries):
    text = binaries[1]["chain"].text(HOST_KERNEL)
    assert "af_block_f32_f16(" in text and "af_block_f16_f32(" in text and "af_cast_round_f16(" not in text
    assert "af_cast_f32_f16(" not in text and "af_cast_f16_f32(" not in text
    text = binaries[1]["round_trip"].text(HOST_KERNEL)
    assert "af_cast_round_f16(" in text and "af_block_f16_f32(" in text
    assert binaries[1]["rounded_sums"].text(HOST_KERNEL).count("af_cast_round_f16(") == 1
