"""Inputs for the tests of single instructions, and bit-for-bit comparison."""

import numpy as np

TYPES = {
    "float": np.float32,
    "half": np.float16,
    "int32_t": np.int32,
    "int16_t": np.int16,
    "uint16_t": np.uint16,
    "uint32_t": np.uint32,
    "int8_t": np.int8,
    "uint8_t": np.uint8,
    "int64_t": np.int64,
}


def draw(dtype, n, seed=0, scale=50):
    rng = np.random.RandomState(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        x = (rng.randn(n) * scale).astype(dtype)
        edge = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1, -1], dtype)
        x[: min(n, 7)] = rng.permutation(edge)[: min(n, 7)]
        return x
    info = np.iinfo(dtype)
    x = rng.randint(info.min, int(info.max) + 1, n, np.int64).astype(dtype)
    x[: min(n, 2)] = [info.min, info.max][: min(n, 2)]
    return x


def same(got, want):
    want = np.asarray(want).astype(got.dtype)
    view = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[got.dtype.itemsize]
    equal = got.view(view) == want.view(view)
    if got.dtype.kind == "f":
        equal |= np.isnan(got) & np.isnan(want)
    assert equal.all(), (np.flatnonzero(~equal)[:5], got[~equal][:5], want[~equal][:5])
