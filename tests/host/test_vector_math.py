"""The vector math of the host target against float64 (for float32) and x87's long double (for float64).

Every function over all exponents and where it does something, at the values where functions go wrong, with
denormals flushed and not, with and without fused multiply-add. `python -m bench.exhaustive` runs all float32
values.
"""
import ctypes

import numpy as np
import pytest

from tests.host import compiled
from tests.ops import values
from tests.ops.test_ascend_forms import bits, denormal, ulps
from tf_autofuse.ir.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64
from tf_autofuse.ops import host_forms
from tf_autofuse.ops.ascir_cast import cast_array
from tf_autofuse.ops.table import ASC_OPS

pytestmark = pytest.mark.once  # C knows no Python

#: Worst error in ULPs, of float32 and float64; docs/numerics.md has the measured figures. float64's 0 stands
#: for the C library's function, which is not vectorized.
ULPS = {"Exp": (1.2, 1), "Ln": (1, 1), "Expm1": (1.6, 1.6), "Log1p": (1.5, 1.5), "Sigmoid": (2.4, 2.3),
        "Tanh": (1.8, 1.5), "Erf": (1.9, 0), "Erfc": (0.6, 0), "Sinh": (0.6, 1.9), "Cosh": (0.6, 1.5),
        "Asinh": (0.6, 1.8), "Acosh": (0.6, 1.9), "Atanh": (0.6, 1.8), "Sin": (0.6, 0), "Cos": (0.6, 0),
        "Tan": (0.6, 0), "Asin": (0.6, 0), "Acos": (0.6, 0), "Atan": (0.6, 0), "Atan2": (0.6, 0),
        "Pow": (0.6, 0)}
LIBRARY_NAMES = {"Ln": "log", "Sigmoid": "sigmoid"}
NAMES = sorted(ULPS)
EXTENDED = [n for n in NAMES if ULPS[n][1]]


def loops():
    found = []
    for name in NAMES:
        row = ASC_OPS[name]
        for dtype in (FLOAT32, FLOAT64):
            text = row.host[dtype]
            found.append(compiled.Loop(loop_name(name, dtype), (dtype.host,) * (1 + row.arity), text,
                                       host_forms.headers(text)))
        inputs = ["{%d}" % i for i in range(row.arity)]
        library = LIBRARY_NAMES.get(name, name.lower())
        found.append(compiled.Loop("reference_" + name, ("double",) * (1 + row.arity),
                                   "1 / (1 + __builtin_exp(-{0}))" if name == "Sigmoid" else
                                   "__builtin_%s(%s)" % (library, ", ".join(inputs))))
    for name in EXTENDED:
        found.append(compiled.Loop("extended_" + name, ("long double", "double"),
                                   "1 / (1 + __builtin_expl(-(long double){0}))" if name == "Sigmoid" else
                                   "__builtin_%sl({0})" % LIBRARY_NAMES.get(name, name.lower())))
    return found


def loop_name(name, dtype):
    return "%s_%s" % (name, dtype.name)


@pytest.fixture(scope="module", params=[compiled.AVX2, compiled.BASELINE], ids=["avx2", "baseline"])
def run(request):
    return compiled.library(loops(), request.param)


def inputs_of(name, dtype):
    """One or two columns: special values in all combinations, every exponent, and small numbers."""
    arity = ASC_OPS[name].arity
    generator = np.random.RandomState(len(name))
    special = [values.special(dtype)] * arity
    columns = []
    for i, grid in enumerate(np.meshgrid(*special)):
        every = np.arange(i, 2 ** 32, 40009 if i else 39989, dtype=np.uint64).astype(np.uint32)
        every = every.view(np.float32)[:107000].astype(dtype.numpy)
        if i:
            generator.shuffle(every)
        sizes = generator.choice([-1, 1], 20000) * np.exp2(generator.uniform(-40, 8, 20000))
        columns.append(np.concatenate([
            grid.ravel().astype(dtype.numpy), every, sizes.astype(dtype.numpy),
            generator.uniform(-1, 1, 20000).astype(dtype.numpy),
            generator.uniform(-20, 20, 20000).astype(dtype.numpy)]))
    return columns


def wrong(name, ours, exact, columns, bound):
    bad = ulps(ours, exact) > bound
    zeros = (exact == 0) & (ours == 0) & (np.signbit(exact) != np.signbit(ours))
    return bad | zeros


def check(name, run, flushed):
    columns = inputs_of(name, FLOAT32)
    exact = run("reference_" + name, np.float64, *[c.astype(np.float64) for c in columns])
    if flushed:
        run.flush_denormals(True)
    try:
        ours = run(loop_name(name, FLOAT32), np.float32, *columns)
    finally:
        run.flush_denormals(False)
    bad = wrong(name, ours, exact, columns, ULPS[name][0])
    if flushed:
        bad &= ~(np.any([denormal(c) for c in columns], axis=0) |
                 (np.abs(exact) < 1.01 * np.finfo(np.float32).tiny))
    at = np.flatnonzero(bad)
    assert not len(at), "%d are off: %s" % (len(at), [([c[i] for c in columns], ours[i], exact[i])
                                                      for i in at[:4]])


@pytest.mark.parametrize("name", NAMES)
def test_float32(name, run):
    check(name, run, flushed=False)


@pytest.mark.parametrize("name", NAMES)
def test_float32_where_denormals_are_flushed(name, run):
    check(name, run, flushed=True)


@pytest.mark.parametrize("name", EXTENDED)
def test_float64(name, run):
    """In units of the exact result's last place, that of the smallest normal number below it."""
    (x,) = inputs_of(name, FLOAT64)
    ours = run(loop_name(name, FLOAT64), np.float64, x)
    exact = run("extended_" + name, np.longdouble, x)
    with np.errstate(all="ignore"):
        mantissa, exponent = np.frexp(np.abs(exact))
        unit = np.ldexp(np.longdouble(1), np.maximum(exponent, -1021) - 53)
        error = np.abs(ours - exact) / unit
        rounded = exact.astype(np.float64)
    same = (ours == rounded) | (np.isnan(ours) & np.isnan(rounded))
    bad = ~same & ~(error <= ULPS[name][1])
    bad |= (rounded == 0) & (ours == 0) & (np.signbit(rounded) != np.signbit(ours))
    at = np.flatnonzero(bad)
    assert not len(at), "%d are off: %s" % (len(at), [(x[i], ours[i], exact[i]) for i in at[:4]])


@pytest.mark.parametrize("name", sorted(set(NAMES) - set(EXTENDED)))
def test_float64_is_the_c_librarys(name, run):
    columns = inputs_of(name, FLOAT64)
    ours = run(loop_name(name, FLOAT64), np.float64, *columns)
    theirs = run("reference_" + name, np.float64, *columns)
    assert np.array_equal(np.isnan(ours), np.isnan(theirs))
    assert ((ours.view(np.int64) == theirs.view(np.int64)) | np.isnan(ours)).all()


def test_ranges(run):
    """What callers rely on exactly."""
    x = inputs_of("Tanh", FLOAT32)[0]
    x = x[~np.isnan(x)]
    assert (np.abs(run("Tanh_float32", np.float32, x)) <= 1).all()
    assert (np.abs(run("Erf_float32", np.float32, x)) <= 1).all()
    sigmoid = run("Sigmoid_float32", np.float32, x)
    assert (sigmoid >= 0).all() and (sigmoid <= 1).all()
    assert (run("Exp_float32", np.float32, x) >= 0).all()


def test_an_error_of_a_few_units_is_seen(run):
    """The comparison itself: results moved by three units in the last place."""
    def moved(name, *arguments):
        result = run(name, *arguments)
        if name == "Exp_float32":
            result.view(np.int32)[np.isfinite(result) & (result > 1e-30)] += 3
        return result
    moved.flush_denormals = run.flush_denormals
    with pytest.raises(AssertionError, match="are off"):
        check("Exp", moved, flushed=False)


def test_loops_are_vectorized():
    run = compiled.library(loops(), compiled.AVX2)
    expected = {loop_name(n, d) for n in NAMES for i, d in enumerate((FLOAT32, FLOAT64)) if ULPS[n][i]}
    assert {name for name in expected if run.vectorized[name] < 32} == set()


@pytest.mark.parametrize("header", sorted(p.name for p in compiled.HEADERS.glob("*.h")))
def test_headers_stand_alone(header):
    """Each compiles as the only include of a C and of a C++ file, in both cases without a warning."""
    for language in ("c", "c++"):
        compiled.check_header(header, language)


BLOCKS = "".join("""
void block_%s_%s(%s* dst, const %s* src, int64_t n) { af_block_%s_%s(dst, src, n); }
""" % (a, b, "float" if a == "f32" else "uint16_t", "float" if b == "f32" else "uint16_t", a, b)
    for a, b in (("f32", "f16"), ("f16", "f32"), ("f32", "bf16"), ("bf16", "f32")))


@pytest.mark.parametrize("flags", [compiled.AVX2, compiled.BASELINE], ids=["f16c", "baseline"])
def test_blocks_give_the_bits_of_single_conversions(flags):
    """All 16-bit values, a sweep over the float32 ones; every length up to three vectors, not one more."""
    loop = compiled.Loop("none", ("float", "float"), "{0}", ("blocks.h",))
    run = compiled.library([loop], flags, extra=BLOCKS)
    halves = np.arange(65536, dtype=np.uint32).astype(np.uint16)
    singles = np.arange(0, 2 ** 32, 65521, dtype=np.uint64).astype(np.uint32).view(np.float32)
    for half, short in ((FLOAT16, "f16"), (BFLOAT16, "bf16")):
        wide = run("block_f32_" + short, np.float32, halves)
        expected = cast_array(halves.view(half.numpy), half, FLOAT32)
        assert (bits(wide, FLOAT32) == bits(expected, FLOAT32)).all()
        narrow = run("block_%s_f32" % short, np.uint16, singles)
        with np.errstate(all="ignore"):
            expected = cast_array(singles, FLOAT32, half)
        assert (bits(narrow.view(half.numpy), half) == bits(expected, half)).all()
        for n in range(25):
            out = np.full(32, 7, np.uint16)
            run.function("block_%s_f32" % short)(ctypes.c_void_p(out.ctypes.data),
                                                ctypes.c_void_p(singles.ctypes.data), ctypes.c_int64(n))
            assert (out[:n] == narrow[:n]).all() and (out[n:] == 7).all()


def test_rounding_to_float16_in_place_is_there_and_back():
    """A sweep over float32, and every float16 value and every middle of two with both float32 neighbours."""
    there_and_back = "af_cast_f32_f16(af_cast_f16_f32({0}))"
    run = compiled.library([compiled.Loop("once", ("float", "float"), "af_cast_round_f16({0})", ("cast.h",)),
                            compiled.Loop("twice", ("float", "float"), there_and_back, ("cast.h",))])
    every = np.arange(65536, dtype=np.uint32).astype(np.uint16).view(np.float16).astype(np.float32)
    midway = (every.view(np.uint32) | 0x1000).view(np.float32)
    sweep = np.arange(0, 2 ** 32, 65521, dtype=np.uint64).astype(np.uint32).view(np.float32)
    near = [(x.view(np.uint32) + np.uint32(d)).view(np.float32) for x in (every, midway)
            for d in (1, 2 ** 32 - 1)]
    values_ = np.concatenate([every, midway, sweep] + near)
    assert (run("once", np.uint32, values_) == run("twice", np.uint32, values_)).all()
    assert run.vectorized["once"] == 32


def test_long_double_is_wider():
    assert ctypes.sizeof(ctypes.c_longdouble) == np.dtype(np.longdouble).itemsize > 8
