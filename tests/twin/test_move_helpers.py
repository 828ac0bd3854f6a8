"""Tiles, broadcasts and row padding against numpy, for every element width."""

import itertools

import numpy as np
import pytest

from tests.twin import probes

WIDTHS = {"int8_t": np.int8, "half": np.float16, "float": np.float32, "int64_t": np.int64}
SHAPES = [
    (1, 1),
    (1, 5),
    (5, 1),
    (3, 7),
    (8, 8),
    (7, 16),
    (9, 17),
    (33, 3),
    (16, 31),
    (17, 33),
    (65, 9),
    (130, 2),
    (2, 300),
    (70, 64),
    (5, 129),
    (64, 65),
]


@pytest.fixture(scope="module")
def run():
    return probes.library("probe_move")


def bits(dtype, *shape):
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.random.RandomState(size).randint(0, 256, size).astype(np.uint8).view(dtype).reshape(shape)


def equal(a, b):
    return a.tobytes() == np.ascontiguousarray(b).tobytes()


def padded(dtype, cols):
    per = 32 // np.dtype(dtype).itemsize
    return (cols + per - 1) // per * per


@pytest.mark.parametrize("name", sorted(WIDTHS))
@pytest.mark.parametrize("rows,cols", SHAPES)
def test_reshaping(run, name, rows, cols):
    dtype = WIDTHS[name]
    row = padded(dtype, cols)

    def call(kernel, source, count):
        out = bits(dtype, count)
        run.launch(kernel + name, [np.ascontiguousarray(source), out], [0, 1], 0, [rows, cols])
        return out

    a = bits(dtype, cols)
    got = call("rows_", a, rows * row).reshape(rows, row)[:, :cols]
    assert equal(got.copy(), np.broadcast_to(a, (rows, cols)))
    a = bits(dtype, rows)
    got = call("cols_", a, rows * row).reshape(rows, row)[:, :cols]
    assert equal(got.copy(), np.broadcast_to(a[:, None], (rows, cols)))
    a = bits(dtype, rows, row)
    assert equal(call("remove_pad_", a, rows * cols), a[:, :cols])
    a = bits(dtype, rows, cols)
    got = call("add_pad_", a, rows * row).reshape(rows, row)[:, :cols]
    assert equal(got.copy(), a)


def tile_case(dtype, sizes, gm_shape, broadcast, dense):
    """(spec, flat GM array, UB elements, index of each tile element in GM, and in UB)."""
    gm = bits(dtype, *gm_shape)
    strides = [int(s) // gm.itemsize for s in gm.strides]
    gm_strides = [0 if b else s for b, s in zip(broadcast, strides)]
    ub = [1] * 4
    for i in (2, 1, 0):
        ub[i] = (
            ub[i + 1] * sizes[i + 1]
            if dense
            else (padded(dtype, ub[i + 1] * sizes[i + 1]) if i == 2 else ub[i + 1] * sizes[i + 1])
        )
    grid = np.indices(sizes)
    return (
        np.array(list(sizes) + gm_strides + ub, np.int64),
        gm,
        sum(g * s for g, s in zip(grid, gm_strides)),
        sum(g * s for g, s in zip(grid, ub)),
    )


TILES = [
    ((1, 1, 1, 1), False),
    ((1, 1, 1, 37), True),
    ((1, 1, 5, 7), False),
    ((1, 3, 5, 7), False),
    ((2, 3, 4, 9), False),
    ((2, 1, 4, 8), False),
    ((1, 6, 1, 8), False),
    ((3, 1, 1, 33), False),
    ((2, 2, 2, 64), True),
    ((1, 1, 40, 1), False),
    ((4, 3, 2, 1), False),
]


@pytest.mark.parametrize("name", sorted(WIDTHS))
@pytest.mark.parametrize("sizes,dense", TILES)
def test_tiles(run, name, sizes, dense):
    dtype = WIDTHS[name]
    for grow, broadcast in itertools.product((0, 3), itertools.product((0, 1), repeat=4)):
        if dense and (grow or any(broadcast)):
            continue
        shape = [s + (grow if i > 1 else 0) for i, s in enumerate(sizes)]
        spec, gm, gm_at, ub_at = tile_case(dtype, sizes, shape, broadcast, dense)
        count = int(ub_at.max()) + 1
        out = np.zeros(count, dtype)
        run.launch("tile_in_" + name, [gm.reshape(-1), spec, out], [0, 0, 1], count)
        assert equal(out[ub_at], gm.reshape(-1)[gm_at]), (sizes, broadcast, grow)
        if any(broadcast):
            continue
        ub, target = bits(dtype, count), np.zeros(gm.size, dtype)
        want = target.copy()
        want[gm_at] = ub[ub_at]
        run.launch("tile_out_" + name, [ub, spec, target], [0, 0, 1], count)
        assert equal(target, want), (sizes, grow)


def test_tiles_beyond_the_field_limits(run):
    """More rows than the 4095 that blockCount holds, in both directions."""
    rows = 4200
    gm = bits(np.int8, rows, 5)
    spec = np.array([1, 1, rows, 3, 0, 0, 5, 1, 0, 0, 32, 1], np.int64)
    out = np.zeros(rows * 32, np.int8)
    run.launch("tile_in_int8_t", [gm.reshape(-1), spec, out], [0, 0, 1], out.size)
    assert equal(out.reshape(rows, 32)[:, :3].copy(), gm[:, :3])
    ub, target = bits(np.int8, rows * 32), np.zeros((rows, 5), np.int8)
    run.launch("tile_out_int8_t", [ub, spec, target.reshape(-1)], [0, 0, 1], ub.size)
    assert equal(target[:, :3].copy(), ub.reshape(rows, 32)[:, :3]) and not target[:, 3:].any()
