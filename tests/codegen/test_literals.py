"""Literals mean exactly the value: a compiler reads them back."""

import ctypes
import math
import subprocess

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tf_autofuse.codegen.ascendc.literals import FROM_BITS, literal, needs_from_bits
from tf_autofuse.codegen.ascendc.names import LONGEST, entry_symbol
from tf_autofuse.ir.dtypes import (
    ALL_DTYPES,
    BFLOAT16,
    BOOL,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
)

FLOATS = [
    0.0,
    -0.0,
    1.0,
    -1.5,
    0.1,
    1e-45,
    -1e-45,
    1.17549435e-38,
    1.17549421e-38,
    3.4028234663852886e38,
    1e38,
    16777217.0,
    float("inf"),
    -float("inf"),
    float("nan"),
    2.0**-149,
    5.0,
    123456.789,
    1e10,
    0.5,
    65504.0,
    1e-8,
]
DOUBLES = FLOATS + [5e-324, 1e308, 0.1, 1 / 3, 2.0**53 + 2]
HALVES = [
    0.0,
    -0.0,
    1.0,
    65504.0,
    -65504.0,
    2.0**-24,
    2.0**-14,
    0.0999755859375,
    float("inf"),
    float("nan"),
    -float("inf"),
]
BRAINS = [0.0, -0.0, 1.0, 3.3895313892515355e38, 2.0**-133, 1.0078125, float("inf"), float("nan")]
LIMITS = {
    d: [np.iinfo(d.numpy).min, -1 if d.kind == "i" else 1, 0, 7, np.iinfo(d.numpy).max]
    for d in (INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64)
}
CASES = (
    [(FLOAT32, v) for v in FLOATS]
    + [(FLOAT64, v) for v in DOUBLES]
    + [(BOOL, True), (BOOL, False)]
    + [(d, int(v)) for d, values in LIMITS.items() for v in values]
)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """A library with one function per case that stores the literal."""
    folder = tmp_path_factory.mktemp("literals")
    lines = ["#include <cstdint>", "#define __aicore__", FROM_BITS]
    for i, (dtype, value) in enumerate(CASES):
        lines.append('extern "C" void get%d(%s* p) { *p = %s; }' % (i, dtype.device, literal(value, dtype)))
    (folder / "literals.cpp").write_text("\n".join(lines) + "\n")
    subprocess.run(
        [
            "g++",
            "-std=c++17",
            "-O1",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-fPIC",
            "-shared",
            "literals.cpp",
            "-o",
            "literals.so",
        ],
        cwd=str(folder),
        check=True,
    )
    return ctypes.CDLL(str(folder / "literals.so"))


@pytest.mark.parametrize("index", range(len(CASES)), ids=lambda i: "%s %r" % CASES[i])
def test_a_compiler_reads_the_value_back(compiled, index):
    dtype, value = CASES[index]
    got = np.zeros(1, dtype.numpy)
    getattr(compiled, "get%d" % index)(ctypes.c_void_p(got.ctypes.data))
    expected = np.array([value], dtype.numpy)
    assert got.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype, values", [(FLOAT16, HALVES), (BFLOAT16, BRAINS)])
def test_16_bit_floats_go_through_an_exact_float32(dtype, values):
    for value in values:
        text = literal(value, dtype)
        assert text.startswith("static_cast<%s>(" % dtype.device)
        inner = text[text.index("(") + 1 : -1]
        if math.isfinite(value):
            assert np.float32(float(inner.rstrip("f"))) == np.float32(value)
            assert math.copysign(1, float(inner.rstrip("f"))) == math.copysign(1, value)
        else:
            assert inner == literal(value, FLOAT32)


@settings(max_examples=300, deadline=None)
@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_float32_text_reads_back(value):
    text = literal(value, FLOAT32)
    assert text.endswith("f") and ("." in text or "e" in text)
    back = np.float32(float(text[:-1]))
    assert back.tobytes() == np.float32(value).tobytes()


@pytest.mark.parametrize(
    "value, dtype",
    [
        (1e39, FLOAT32),
        (1.0 / 3, FLOAT16),
        (1.00390625, BFLOAT16),
        (128, INT8),
        (-1, UINT8),
        (2**31, INT32),
        (2**64, UINT64),
        (0.5, INT32),
    ],
)
def test_what_the_dtype_does_not_have_is_refused(value, dtype):
    with pytest.raises(ValueError):
        literal(value, dtype)


def test_from_bits_is_needed_for_what_is_not_finite_only():
    for dtype in ALL_DTYPES:
        assert not needs_from_bits(1, dtype)
        assert needs_from_bits(float("nan"), dtype) == dtype.is_floating if dtype.is_floating else True
    for value in FLOATS:
        assert ("FromBits" in literal(value, FLOAT32)) == needs_from_bits(value, FLOAT32)


def test_numpy_scalars_are_numbers():
    assert literal(np.float32(0.1), FLOAT32) == "0.1f" and literal(np.int32(-5), INT32) == "-5"
    assert literal(np.bool_(True), BOOL) == "static_cast<uint8_t>(1)"


def test_entry_symbols_are_identifiers():
    assert entry_symbol("autofuse_pointwise_0_Abs_Add_Relu") == "autofuse_pointwise_0_abs_add_relu"
    assert entry_symbol("0/weird name-\u00fc") == "k_0_weird_name__"
    assert entry_symbol("") == "k_"
    long = "autofuse_pointwise_0_" + "_".join(["Add"] * 64)
    assert len(entry_symbol(long)) <= LONGEST and entry_symbol(long) != entry_symbol(long + "_Mul")
    assert entry_symbol(long).isidentifier() and entry_symbol(long) == entry_symbol(long)
