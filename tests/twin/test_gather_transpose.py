"""Transposed tiles and gathers against numpy, bit for bit."""

import numpy as np
import pytest

from tests.twin import probes
from tests.twin.cases import TYPES
from tests.twin.test_move_helpers import bits, equal, padded


@pytest.fixture(scope="module")
def run():
    return probes.library("probe_reduce")


TURNS = [(1, 1), (3, 5), (16, 16), (17, 8), (8, 17), (33, 40), (200, 3), (3, 200), (100, 60),
         (15, 260), (300, 9)]


@pytest.mark.parametrize("name", ["int16_t", "half", "float", "uint32_t"])
@pytest.mark.parametrize("rows,cols", TURNS)
def test_transpose(run, name, rows, cols):
    dtype = TYPES[name]
    for extra in (0, 1):
        block = 32 // np.dtype(dtype).itemsize
        stride, to_stride = padded(dtype, cols) + extra * block, padded(dtype, rows) + 2 * extra * block
        x = bits(dtype, rows, stride)
        out = np.zeros((cols, rows), dtype)
        run.launch("turn_" + name, [x, out], [0, 1], 0, [rows, cols, stride, to_stride])
        assert equal(out, x[:, :cols].T.copy())


def test_repeats_do_not_leave_the_scratch(run):
    """Columns that do not fill a block, over more groups of rows than the scratch has room for."""
    x = bits(np.float32, 400, 8)
    out = np.zeros((5, 400), np.float32)
    run.launch("turn_float", [x, out], [0, 1], 0, [400, 5, 8, 400])
    assert equal(out, x[:, :5].T.copy())


TAKES = [("float", "int32_t"), ("float", "int64_t"), ("half", "int32_t"), ("int8_t", "int64_t"),
         ("int64_t", "int32_t")]


@pytest.mark.parametrize("name,index_name", TAKES)
def test_gather(run, name, index_name):
    dtype, index_dtype = TYPES[name], TYPES[index_name]
    for rows, cols, limit in ((1, 1, 1), (9, 5, 4), (40, 33, 100)):
        table = bits(dtype, limit, cols)
        index = np.random.RandomState(rows).randint(0, limit, rows).astype(index_dtype)
        index[-1] = limit - 1
        out, status = np.zeros((rows, cols), dtype), np.full(1, 9, np.int32)
        run.launch("take_rows_%s_%s" % (name, index_name), [table, index, out, status], [0, 0, 1, 1], 0,
                   [rows, cols, cols, limit])
        assert status[0] == 0 and equal(out, table[index])
        out = np.zeros(rows, dtype)
        run.launch("take_%s_%s" % (name, index_name), [table, index, out, status], [0, 0, 1, 1], 0,
                   [rows, 1, cols, limit])
        assert status[0] == 0 and equal(out, table[index, 0].copy())


@pytest.mark.parametrize("kernel", ["take_rows_float_int64_t", "take_float_int64_t"])
@pytest.mark.parametrize("wrong", [-1, 7, 1 << 40, -(1 << 62)])
def test_an_index_out_of_range_is_reported_and_reads_nothing_outside(run, kernel, wrong):
    table, index = bits(np.float32, 7, 1), np.array([3, wrong, 6], np.int64)
    out, status = np.zeros(3, np.float32), np.zeros(1, np.int32)
    run.launch(kernel, [table, index, out, status], [0, 0, 1, 1], 0, [3, 1, 1, 7])
    assert status[0] == 1
    assert equal(out, table[[3, 0, 6], 0].copy())


@pytest.mark.parametrize("kernel", ["take_rows_float_int64_t", "take_float_int64_t"])
def test_a_gather_from_an_empty_table(run, kernel):
    out, status = np.ones(3, np.float32), np.zeros(1, np.int32)
    buffers = [np.zeros(0, np.float32), np.zeros(3, np.int64), out, status]
    run.launch(kernel, buffers, [0, 0, 1, 1], 0, [3, 1, 1, 0])
    assert status[0] == 1
