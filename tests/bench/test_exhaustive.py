"""The sweep over all float32 values counts what is wrong and finds the largest error: shown on functions that
are."""
import ctypes

import numpy as np
import pytest

from bench import exhaustive

pytestmark = pytest.mark.once  # C, compiled and called by whatever Python
COUNT = 4096


@pytest.fixture(scope="module")
def kernels():
    return exhaustive.library()


def loop(kind, function):
    """A C function (y, x, n) that applies a numpy function."""
    def run(y, x, n):
        array = np.ctypeslib.as_array
        array(y, (n,))[:] = function(array(x, (n,)))
    pointer = ctypes.POINTER(kind)
    return ctypes.CFUNCTYPE(None, pointer, pointer, ctypes.c_int64)(run)


def found(kernels, ours, first):
    """(how many are wrong, largest error, its argument) of `ours` against the identity."""
    run = kernels.function("sweep")
    run.restype = ctypes.c_int64
    worst = (ctypes.c_double * 2)()
    values = [ctypes.c_int64(v) for v in (first, first + COUNT, 1)]
    wrong = run(loop(ctypes.c_float, ours), loop(ctypes.c_double, np.copy), *values, worst)
    return wrong, worst[0], worst[1]


@pytest.mark.parametrize("first", [0, 0x3F800000, 0x7F800000, 0x80000000, 0xFF800000])
def test_what_is_right(kernels, first):
    assert found(kernels, np.copy, first) == (0, 0, 0)


@pytest.mark.parametrize("first, ours", [
    (0x80000000, lambda x: np.where(x == 0, np.float32(0), x)),
    (0x00000000, lambda x: np.where(x == 0, np.float32(-0.0), x)),
    (0x3F800000, lambda x: np.where(x == 1, np.float32(np.nan), x)),
    (0x3F800000, lambda x: np.where(x == 1, np.float32(np.inf), x)),
    (0x7F800000, lambda x: np.where(np.isnan(x), x, np.float32(np.nan))),
], ids=["zero for -0", "-0 for zero", "nan for a number", "inf for a number", "nan for inf"])
def test_one_that_is_wrong(kernels, first, ours):
    assert found(kernels, ours, first)[0] == 1


def test_an_error_of_one_ulp(kernels):
    def next_of_one(x):
        return np.where(x == 1, np.nextafter(x, np.float32(2)), x)
    assert found(kernels, next_of_one, 0x3F800000) == (0, 1, 1)
