"""Cast between every pair of dtypes of the vector unit, in every rounding mode, against numpy."""

import numpy as np
import pytest

from tests.twin import probes
from tests.twin.cases import TYPES, draw, same


@pytest.fixture(scope="module")
def run():
    return probes.library("probe_api")


NONE, RINT, FLOOR, CEIL, ROUND, TRUNC, ODD = range(7)
ROUND_BY = {
    NONE: np.rint,
    RINT: np.rint,
    FLOOR: np.floor,
    CEIL: np.ceil,
    TRUNC: np.trunc,
    ROUND: lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
}


def saturate(x, dtype):
    info = np.iinfo(dtype)
    out = np.where(np.isnan(x), 0, np.clip(x, float(info.min), float(info.max)))
    exact = np.where(out >= float(info.max), 0, out).astype(dtype)
    return np.where(out >= float(info.max), info.max, exact).astype(dtype)


def test_cast_to_integers(run):
    a = np.concatenate(
        [
            draw(np.float32, 2000, scale=1e5),
            np.arange(-20, 20, dtype=np.float32) / 4,
            np.float32([3e9, -3e9, 2147483648, 32767.5, -32768.5, 127.5, 1e19, -1e19, 9.2e18]),
        ]
    )
    half = np.arange(65536).astype(np.uint16).view(np.float16)
    for mode in (RINT, FLOOR, CEIL, ROUND, TRUNC):
        with np.errstate(invalid="ignore"):
            for name in ("int16_t", "int32_t", "int64_t"):
                want = saturate(ROUND_BY[mode](a.astype(np.float64)), TYPES[name])
                same(run("Cast_float_" + name, TYPES[name], a, numbers=[mode]), want)
                same(run("CastRepeat_float_" + name, TYPES[name], a, numbers=[mode]), want)
            for name in ("int8_t", "uint8_t", "int16_t", "int32_t"):
                same(
                    run("Cast_half_" + name, TYPES[name], half, numbers=[mode]),
                    saturate(ROUND_BY[mode](half.astype(np.float64)), TYPES[name]),
                )
            brain = half.view(np.uint16)
            same(
                run("Cast_bfloat16_t_int32_t", np.int32, brain, numbers=[mode]),
                saturate(
                    ROUND_BY[mode]((brain.astype(np.uint32) << 16).view(np.float32).astype(np.float64)),
                    np.int32,
                ),
            )
            same(run("Cast_float_float", np.float32, a, numbers=[mode]), ROUND_BY[mode](a.astype(np.float64)))


def directed(x, bits, mode, top):
    """Scalar reference of rounding a float to a 16-bit float of which `bits` maps storage to value."""
    if np.isnan(x):
        return None
    m = abs(float(x))
    low = int(np.searchsorted(bits, m, side="right")) - 1  # largest value <= m
    if low >= top:
        return top
    if bits[low] == m:
        return low
    high = low + 1
    up = (mode == CEIL) == (x > 0) if mode in (FLOOR, CEIL) else None
    if mode == TRUNC:
        return low
    if mode == ODD:
        return low if low & 1 else high
    if up is not None:
        return high if up else low
    middle = (
        (float(bits[low]) + float(bits[high])) / 2
        if np.isfinite(bits[high])
        else float(bits[low]) + (float(bits[low]) - float(bits[low - 1])) / 2
    )
    return high if m > middle or (m == middle and (mode == ROUND or low & 1)) else low


def test_cast_to_16_bit_floats(run):
    half = np.arange(0x7C01).astype(np.uint16).view(np.float16).astype(np.float64)
    brain = (np.arange(0x7F81).astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    a = np.concatenate(
        [
            draw(np.float32, 300, scale=100),
            np.float32(
                [
                    65504,
                    65519.9,
                    65520,
                    1e9,
                    6e-8,
                    3e-8,
                    2.98e-8,
                    1.0009765625,
                    1.00048828125,
                    1.00146484375,
                    6.1e-5,
                    -1.00048828125,
                    3.3e38,
                    -1e-9,
                    1.00390625,
                ]
            ),
        ]
    )
    for mode in (NONE, RINT, FLOOR, CEIL, ROUND, TRUNC, ODD):
        got = run("Cast_float_half", np.uint16, a, numbers=[mode])
        for x, g in zip(a, got):
            want = directed(x, half, RINT if mode == NONE else mode, 0x7C00)
            assert (g & 0x7FFF) == want if want is not None else (g & 0x7FFF) > 0x7C00, (x, hex(g), mode)
            assert np.isnan(x) or (g >> 15) == np.signbit(x)
        if mode in (NONE, ODD):
            continue
        got = run("Cast_float_bfloat16_t", np.uint16, a, numbers=[mode])
        for x, g in zip(a, got):
            want = directed(x, brain, mode, 0x7F80)
            assert (g & 0x7FFF) == want if want is not None else (g & 0x7FFF) > 0x7F80, (x, hex(g), mode)


def test_casts_from_integers(run):
    for name in ("int8_t", "uint8_t"):
        a = np.arange(256).astype(np.uint8).view(TYPES[name])
        same(run("Cast_%s_half" % name, np.float16, a, numbers=[NONE]), a.astype(np.float16))
    a = np.arange(65536).astype(np.uint16).view(np.int16)
    same(run("Cast_int16_t_float", np.float32, a, numbers=[NONE]), a.astype(np.float32))
    same(run("Cast_int16_t_half", np.float16, a, numbers=[RINT]), a.astype(np.float16))
    i = np.concatenate([draw(np.int32, 2000), np.int32([16777217, 16777219, -16777217, 0, 2147483647])])
    same(run("Cast_int32_t_float", np.float32, i, numbers=[RINT]), i.astype(np.float32))
    same(run("Cast_int32_t_half", np.float16, i % 4096, numbers=[NONE]), (i % 4096).astype(np.float16))
    same(run("Cast_int32_t_int16_t", np.int16, i, numbers=[NONE]), np.clip(i, -32768, 32767))
    same(run("Cast_int32_t_int64_t", np.int64, i, numbers=[NONE]), i.astype(np.int64))
    wide = np.concatenate(
        [draw(np.int64, 2000), i.astype(np.int64), np.int64([2**53 + 1, 2**62 + 2**38, -(2**63)])]
    )
    same(run("Cast_int64_t_int32_t", np.int32, wide, numbers=[NONE]), np.clip(wide, -(2**31), 2**31 - 1))
    same(run("Cast_int64_t_float", np.float32, wide, numbers=[RINT]), wide.astype(np.float32))
    near = wide.astype(np.float32)
    for mode, ok in (
        (FLOOR, lambda v, x: v <= x),
        (CEIL, lambda v, x: v >= x),
        (TRUNC, lambda v, x: abs(v) <= abs(x)),
    ):
        got = run("Cast_int64_t_float", np.float32, wide, numbers=[mode])
        for g, x, n in zip(got, wide, near):
            assert ok(int(g), int(x)) and (abs(int(g) - int(x)) <= 2**40 or g == n), (x, g, mode)
    h = np.arange(65536).astype(np.uint16).view(np.float16)
    same(run("Cast_half_float", np.float32, h, numbers=[NONE]), h.astype(np.float32))
    b = np.arange(65536).astype(np.uint16)
    same(
        run("Cast_bfloat16_t_float", np.float32, b, numbers=[NONE]),
        (b.astype(np.uint32) << 16).view(np.float32),
    )
