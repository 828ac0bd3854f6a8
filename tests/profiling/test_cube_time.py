"""Products on the cube cores: costs worked out by hand, bounds that no plan may break, monotony, and the
figures that others measured."""

import pytest

from tf_autofuse.machine import machine_for
from tf_autofuse.profiling import heavy_table as heavy
from tf_autofuse.profiling.cube_time import Product, plan_with, product_plan
from tf_autofuse.tiling import cost_table as table

MACHINE = machine_for("")
B2 = machine_for("Ascend910B2")


def square(n, dtype="float16", m=None, batch=1):
    m, item = m or n, 4 if dtype == "float32" else 2
    return Product(batch, m, n, n, n * item, batch * (m * n + n * n) * item, dtype, item)


def test_one_tile_by_hand():
    # One core; one step of the common dim, one load of it; everything is read for the first time.
    found = plan_with(square(64), MACHINE, 64, 64)
    mte2 = 2 * 210 + 2 * 64 * 64 * 2 / 32
    mte1 = 64 * 64 * 2 / 512 + 64 * 64 * 2 / 256 + 2 * 26
    mac = 4 * 4 * 4
    fixpipe = table.STORE_START + 64 * 64 * 2 / 86
    assert found[4:8] == pytest.approx((mte2, mte1, mac, fixpipe))
    head = 300 + 15.89 + 882.09
    assert found.cycles == pytest.approx(head + mte2 + mte1 + mac + fixpipe)
    assert (found.cores, found.read) == (1, 2 * 64 * 64 * 2)


def test_many_tiles_by_hand():
    # 16 x 8 tiles of [64, 128] on 20 cores: 7 rounds; the common dim in 8 steps, and 2 loads of 4 steps.
    p = Product(1, 1024, 1024, 1024, 2048, 2 * 1024 * 1024 * 2, "float16", 2)
    found = plan_with(p, MACHINE, 64, 128)
    assert found.cores == 20 and found.read == 128 * (64 + 128) * 2048
    first = 2 * 2 * 1024 * 1024 / found.read
    mte2 = 2 * 2 * 210 + 192 * 2048 * (first / 32 + (1 - first) / 110)
    mac = 4 * 8 * 1024 / 16
    assert found.mte2 == pytest.approx(7 * mte2) and found.mac == pytest.approx(7 * mac)
    assert found.mte1 == pytest.approx(7 * 8 * (64 * 128 * 2 / 512 + 128 * 128 * 2 / 256 + 52))
    fixpipe = table.STORE_START + 64 * 128 * 2 / 86
    assert found.cycles == pytest.approx(
        300 + 15.89 * 20 + 882.09 + 7 * mte2 + (32 + 128 + 52) + mac / 8 + fixpipe)


def test_float32_takes_four_times_the_cube():
    half, single = (plan_with(square(256, d), MACHINE, 64, 64) for d in ("float16", "float32"))
    assert single.mac == 4 * half.mac
    with pytest.raises(KeyError):
        product_plan(square(64)._replace(dtype="int32"), MACHINE)


def test_no_plan_beats_the_cube_or_memory():
    for p in (square(2048), square(4096, "float32"), square(768, m=1), square(64, batch=96), square(1)):
        found = product_plan(p, MACHINE)
        peak = 2 * 16 * 16 * (16 if p.dtype == "float16" else 4) * MACHINE.cube_cores
        assert p.flops / found.cycles <= peak
        assert found.cycles >= table.LAUNCH + p.once_bytes / (MACHINE.ddr_rate * MACHINE.cube_cores)
        assert found.rows * found.columns * heavy.SUM_BYTES <= MACHINE.l0c_bytes
        assert 1 <= found.cores <= MACHINE.cube_cores
        tiles = (plan_with(p, MACHINE, 16, side).cycles for side in (16, 32))
        assert found.cycles <= min(tiles) or p.n < 32


def test_more_work_takes_longer():
    sizes = [product_plan(square(n), MACHINE).cycles for n in (16, 64, 256, 1024, 4096)]
    assert sizes == sorted(sizes) and sizes[-1] > 100 * sizes[0]
    p = square(512)
    base = product_plan(p, MACHINE).cycles
    for more in (p._replace(k=2048, row_bytes=4096), p._replace(batch=8), p._replace(dtype="float32")):
        assert product_plan(more, MACHINE).cycles > base
    assert product_plan(p, B2).cycles <= base
    assert product_plan(p._replace(m=0), MACHINE) is None


@pytest.mark.parametrize("n", [2048, 4096, 8192])
def test_measured_rates_of_a_910b2(n):
    """Published: docs/npu-model.md. The model adds no constant of these measurements."""
    measured = {"float16": {2048: 251.01, 4096: 314.52, 8192: 305.46},
                "float32": {2048: 76.92, 4096: 84.53, 8192: 80.43}}
    for dtype, rates in measured.items():
        p = square(n, dtype)
        modelled = p.flops / product_plan(p, B2).cycles * B2.clock_mhz / 1e6
        assert modelled == pytest.approx(rates[n], rel=0.12)
