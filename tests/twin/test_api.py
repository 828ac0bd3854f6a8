"""Each instruction of the twin against numpy: values, odd lengths, masks, strides; the trace.

Casts have a module of their own, test_api_casts.py.
"""

import ctypes
import math

import numpy as np
import pytest

from tests.twin import probes
from tests.twin.cases import TYPES, draw, same
from tf_autofuse.codegen.abi import TraceRecord

LENGTHS = list(range(1, 66)) + [127, 128, 129, 255, 256, 257, 2047, 2048, 2049, 4100]


@pytest.fixture(scope="module")
def run():
    return probes.library("probe_api")


def f32(x):
    return x.astype(np.float32)


def in_float(f):
    """float16 instructions compute in float32 and round once."""
    return lambda *a: f(*[f32(x) for x in a]).astype(a[0].dtype) if a[0].dtype == np.float16 else f(*a)


BINARY = {
    "Add": in_float(np.add),
    "Sub": in_float(np.subtract),
    "Mul": in_float(np.multiply),
    "Div": in_float(np.divide),
    "Max": lambda a, b: np.where(a < b, b, a),
    "Min": lambda a, b: np.where(b < a, b, a),
    "And": np.bitwise_and,
    "Or": np.bitwise_or,
    "AddRelu": in_float(lambda a, b: np.where(a + b < 0, 0, a + b)),
    "SubRelu": in_float(lambda a, b: np.where(a - b < 0, 0, a - b)),
}
UNARY = {
    "Abs": np.abs,
    "Sqrt": in_float(np.sqrt),
    "Relu": lambda a: np.where(a < 0, a.dtype.type(0), a),
    "Not": np.invert,
    "Reciprocal": in_float(lambda a: np.float32(1) / a),
    "Rsqrt": in_float(lambda a: np.float32(1) / np.sqrt(a)),
}
BINARY_TYPES = [
    ("Add", "float half int32_t int16_t"),
    ("Sub", "float half int32_t int16_t"),
    ("Mul", "float half int32_t int16_t"),
    ("Max", "float half int32_t int16_t"),
    ("Min", "float half int32_t int16_t"),
    ("Div", "float half"),
    ("And", "int16_t"),
    ("Or", "uint16_t"),
    ("AddRelu", "float half int16_t"),
    ("SubRelu", "float half int16_t"),
]
UNARY_TYPES = [
    ("Abs", "float half"),
    ("Sqrt", "float half"),
    ("Relu", "float half int32_t"),
    ("Not", "int16_t uint16_t"),
    ("Reciprocal", "float half"),
    ("Rsqrt", "float half"),
]


@pytest.mark.parametrize("op,names", BINARY_TYPES)
def test_binary(run, op, names):
    with np.errstate(all="ignore"):
        for name in names.split():
            for n in LENGTHS:
                a, b = draw(TYPES[name], n, n), draw(TYPES[name], n, n + 1)
                same(run("%s_%s" % (op, name), TYPES[name], a, b), BINARY[op](a, b))


@pytest.mark.parametrize("op,names", UNARY_TYPES)
def test_unary(run, op, names):
    with np.errstate(all="ignore"):
        for name in names.split():
            for n in LENGTHS:
                a = draw(TYPES[name], n, n)
                same(run("%s_%s" % (op, name), TYPES[name], a), UNARY[op](a))


def test_scalar(run):
    with np.errstate(all="ignore"):
        for name in ("float", "half", "int32_t", "int16_t"):
            dtype = TYPES[name]
            k = dtype(3 if name.startswith("int") else 1.5)
            for n in LENGTHS:
                a = draw(dtype, n, n)
                same(run("Adds_" + name, dtype, a, values=[k]), BINARY["Add"](a, np.full_like(a, k)))
                same(run("Muls_" + name, dtype, a, values=[k]), BINARY["Mul"](a, np.full_like(a, k)))
                same(run("Maxs_" + name, dtype, a, values=[k]), np.where(a < k, k, a))
                same(run("Mins_" + name, dtype, a, values=[k]), np.where(k < a, k, a))
        for name in ("float", "half"):
            a = draw(TYPES[name], 1000)
            slope = TYPES[name](0.25)
            same(run("LeakyRelu_" + name, TYPES[name], a, values=[slope]), np.where(a >= 0, a, slope * a))
        for name in ("int16_t", "uint16_t", "int32_t", "uint32_t"):
            a = draw(TYPES[name], 500)
            for by in (0, 1, 7, 15):
                same(run("ShiftLeft_" + name, TYPES[name], a, values=[by]), np.left_shift(a, TYPES[name](by)))
                same(
                    run("ShiftRight_" + name, TYPES[name], a, values=[by]), np.right_shift(a, TYPES[name](by))
                )
        a = draw(np.int32, 500)
        same(run("ShiftRightRound_int32_t", np.int32, a, values=[4]), (a.astype(np.int64) + 8) >> 4)
        a, b, three = draw(np.float32, 500, 1), draw(np.float32, 500, 2), np.float32(3)
        same(run("MulAddDst_float", np.float32, a, b), three + a * b)
        same(run("FusedMulAdd_float", np.float32, a, b), a * three + b)
        same(run("Axpy_float", np.float32, a), three + np.float32(2) * a)
        same(
            run("Axpy_half_float", np.float32, a.astype(np.float16)),
            three + np.float32(2) * f32(a.astype(np.float16)),
        )


def ulp(got, want):
    with np.errstate(all="ignore"):
        ok = np.isfinite(want) & (abs(want) < 3e38) & (abs(want) > 1e-37)
        return np.where(ok, abs(got - want) / np.spacing(abs(want).astype(np.float32)), 0).max()


def test_transcendental_instructions(run):
    """Exp, Ln and the high-level functions are within 1 ULP in float, and rounded once in half."""
    x = np.random.RandomState(0).uniform(-3, 3, 4000).astype(np.float32)
    u = np.clip(x / 3, -1, 1)
    log = abs(x) + np.float32(1e-3)
    table = {
        "Exp": (np.exp, x),
        "Ln": (np.log, log),
        "adv_Tanh": (np.tanh, x),
        "adv_Sin": (np.sin, x),
        "adv_Cos": (np.cos, x),
        "adv_Tan": (np.tan, x),
        "adv_Asin": (np.arcsin, u),
        "adv_Acos": (np.arccos, u),
        "adv_Atan": (np.arctan, x),
        "adv_Sinh": (np.sinh, x),
        "adv_Cosh": (np.cosh, x),
        "adv_Asinh": (np.arcsinh, x),
        "adv_Acosh": (np.arccosh, log + 1),
        "adv_Atanh": (np.arctanh, u * np.float32(0.9)),
        "adv_Erf": (np.vectorize(math.erf), x),
        "adv_Erfc": (np.vectorize(math.erfc), x),
        "adv_Log2": (np.log2, log),
        "adv_Sigmoid": (lambda v: 1 / (1 + np.exp(-v)), x),
    }
    for name, (f, a) in table.items():
        assert ulp(run(name + "_float", np.float32, a), f(a.astype(np.float64))) <= 1.0, name
        h = a.astype(np.float16)
        with np.errstate(all="ignore"):
            want = f(h.astype(np.float64)).astype(np.float16)
        got = run(name + "_half", np.float16, h)
        off = abs(got.view(np.int16).astype(int) - want.view(np.int16).astype(int))
        assert (off[np.isfinite(want)] <= 1).all() and (off == 0).mean() > 0.99, name
    a, b = log, x
    assert ulp(run("adv_Power_float", np.float32, a, b), a.astype(np.float64) ** b) <= 1
    same(run("adv_Fmod_float", np.float32, x, log), np.fmod(x, log))
    i, j = draw(np.int16, 300, 1), draw(np.int16, 300, 2)
    same(run("adv_Xor_int16_t", np.int16, i, j), i ^ j)


def test_rounding_functions(run):
    a = np.concatenate(
        [
            draw(np.float32, 3000, scale=3),
            np.arange(-20, 20, dtype=np.float32) / 4,
            np.float32([8388608, 8388607.5, 1e30, -8388607.5, 4194304.5, 1e-30, -1e-30]),
        ]
    )
    for name, f in {"Floor": np.floor, "Ceil": np.ceil, "Trunc": np.trunc, "Round": np.rint}.items():
        same(run("adv_%s_float" % name, np.float32, a), f(a))
    with np.errstate(invalid="ignore"):
        same(run("adv_Sign_float", np.float32, a), np.where(a > 0, 1, np.where(a < 0, -1, 0)))
        same(run("adv_Frac_float", np.float32, a), a - np.trunc(a))


def repeat_index(lanes, repeats, block, repeat_stride, per_block):
    """Element index of (repeat, lane)."""
    lane = np.arange(lanes)
    return (
        np.arange(repeats)[:, None] * repeat_stride + (lane // per_block) * block
    ) * per_block + lane % per_block


@pytest.mark.parametrize(
    "mask,repeats,db,sb,dr,sr",
    [
        (64, 4, 1, 1, 8, 8),
        (64, 3, 1, 0, 8, 0),
        (37, 4, 1, 1, 8, 8),
        (8, 5, 1, 1, 3, 2),
        (64, 4, 2, 1, 16, 8),
        (20, 3, 3, 2, 24, 20),
        (64, 2, 1, 2, 8, 16),
        (0, 3, 1, 1, 8, 8),
    ],
)
def test_repeat_forms(run, mask, repeats, db, sb, dr, sr):
    with np.errstate(all="ignore"):
        a, b = draw(np.float32, 2048, 1), draw(np.float32, 2048, 2)
        d, s = repeat_index(mask, repeats, db, dr, 8), repeat_index(mask, repeats, sb, sr, 8)
        numbers = [mask, repeats, db, sb, dr, sr]

        def expect(values):
            out = np.zeros(2048, values.dtype)
            for r in range(repeats):
                out[d[r]] = values[r]
            return out

        same(run("AddRepeat_float", np.float32, a, b, numbers=numbers), expect(a[s] + b[s]))
        same(run("AbsRepeat_float", np.float32, a, numbers=numbers), expect(abs(a[s])))
        same(run("CopyRepeat_float", np.float32, a, numbers=numbers), expect(a[s]))
        same(
            run("DuplicateRepeat_float", np.float32, a, numbers=numbers),
            expect(np.full(s.shape, 5, np.float32)),
        )
        h = draw(np.float16, 2048, 3)
        hd, hs = repeat_index(2 * mask, repeats, db, dr, 16), repeat_index(2 * mask, repeats, sb, sr, 16)
        if hd.size and max(hd.max(), hs.max()) < 2048:
            out = np.zeros(2048, np.float16)
            for r in range(repeats):
                out[hd[r]] = h[hs[r]] * np.float16(2)
            same(run("MulsRepeat_half", np.float16, h, numbers=[2 * mask] + numbers[1:]), out)


def test_mask_registers(run):
    with np.errstate(all="ignore"):
        a, b = draw(np.float16, 2048, 1), draw(np.float16, 2048, 2)
        low, high = 0x5555555500000001, 0x00FF00000000000F
        lanes = np.array([(low >> i if i < 64 else high >> (i - 64)) & 1 for i in range(128)] * 4, bool)
        want = np.zeros(2048, np.float16)
        want[:512][lanes] = BINARY["Add"](a, b)[:512][lanes]
        same(run("AddBits_half", np.float16, a, b, numbers=[low, high]), want)
        a, b = draw(np.float32, 2048, 1), draw(np.float32, 2048, 2)
        for n in (1, 63, 64, 65, 777):
            want = np.zeros(2048, np.float32)
            want[:n] = a[:n] + b[:n]
            same(run("AddCounter_float", np.float32, a, b, numbers=[n]), want)


def test_compare_and_select(run):
    modes = [np.less, np.greater, np.equal, np.less_equal, np.greater_equal, np.not_equal]
    for name in ("float", "half", "int32_t"):
        dtype = TYPES[name]
        for n in (128, 256, 640, 2048):
            a, b = draw(dtype, n, 1, 2), draw(dtype, n, 2, 2)
            b[::3] = a[::3]
            for mode, f in enumerate(modes):
                if name == "int32_t" and mode != 2:
                    continue
                with np.errstate(invalid="ignore"):
                    bits = np.packbits(f(a, b), bitorder="little")
                    scalar = np.packbits(f(a, dtype(1)), bitorder="little")
                for probe in ("Compare_", "CompareRepeat_"):
                    got = run(probe + name, np.uint8, a, b, numbers=[mode])
                    assert (got[: n // 8] == bits).all() and not got[n // 8 :].any(), (name, n, mode)
                got = run("CompareScalar_" + name, np.uint8, a, numbers=[mode], values=[1])
                assert (got[: n // 8] == scalar).all(), (name, n, mode)
    for name in ("float", "half"):
        for n in (1, 7, 64, 65, 500, 2048):
            a, b = draw(TYPES[name], n, 1), draw(TYPES[name], n, 2)
            packed = np.random.RandomState(n).randint(0, 256, n).astype(np.uint8)
            bits = np.unpackbits(packed, bitorder="little")
            same(run("Select_" + name, TYPES[name], packed, a, b), np.where(bits[:n], a, b))
            same(run("SelectScalar_" + name, TYPES[name], packed, a), np.where(bits[:n], a, TYPES[name](7)))
            period = 256 // a.itemsize
            same(
                run("SelectSame_" + name, TYPES[name], packed, a, b),
                np.where(np.resize(bits[:period], n), a, b) if n > period // 8 else np.where(bits[:n], a, b),
            )
            if n * a.itemsize % 256 == 0:
                same(run("SelectRepeat_" + name, TYPES[name], packed, a, b), np.where(bits[:n], a, b))
    a, mask = draw(np.float32, 300, 1), (np.arange(300) % 3).astype(np.uint8)
    same(run("SelectBytes_float", np.float32, mask, a), np.where(mask, np.float32(7), a))


def tree(values):
    values = list(values)
    while len(values) > 1:
        pairs = [values[i] + values[i + 1] for i in range(0, len(values) - 1, 2)]
        values = pairs + ([values[-1]] if len(values) % 2 else [])
    return values[0]


def test_reductions(run):
    for name in ("float", "half"):
        dtype = TYPES[name]
        lanes, block = 256 // np.dtype(dtype).itemsize, 32 // np.dtype(dtype).itemsize
        a = np.random.RandomState(1).randn(2048).astype(dtype)
        for mask, repeats in ((lanes, 5), (lanes // 2 + 3, 3), (1, 2)):
            rows = a[: lanes * repeats].reshape(repeats, lanes)[:, :mask]
            got = run("WholeReduceSum_" + name, dtype, a, numbers=[mask, repeats])
            same(got[:repeats], np.array([tree(r) for r in rows], dtype))
            got = run("WholeReduceMax_" + name, dtype, a, numbers=[mask, repeats, 2])
            same(got[:repeats], rows.max(1))
            got = run("WholeReduceMin_" + name, dtype, a, numbers=[mask, repeats, 0])
            same(got[: 2 * repeats : 2], rows.min(1))
            index = got[1 : 2 * repeats : 2].copy().view({2: np.uint16, 4: np.uint32}[a.itemsize])
            assert (index == rows.argmin(1)).all()
            blocks = -(-mask // block)
            got = run("BlockReduceMax_" + name, dtype, a, numbers=[mask, repeats])[: 8 * repeats].reshape(
                repeats, 8
            )
            for j in range(blocks):
                same(got[:, j].copy(), rows[:, j * block : (j + 1) * block].max(1))
            got = run("BlockReduceSum_" + name, dtype, a, numbers=[lanes, repeats])[: 8 * repeats]
            same(got, np.array([tree(r) for r in a[: lanes * repeats].reshape(-1, block)], dtype))
            got = run("PairReduceSum_" + name, dtype, a, numbers=[lanes, repeats])[: lanes * repeats // 2]
            same(got, a[: lanes * repeats : 2] + a[1 : lanes * repeats : 2])
        for n in (1, 5, lanes, lanes + 1, 1000, 2048):
            x = a[:n]
            rows = [tree(x[i : i + lanes]) for i in range(0, n, lanes)]
            total = rows[0]
            for r in rows[1:]:
                total = dtype(total + r)
            same(run("ReduceSum_" + name, dtype, x)[:1], np.array([total], dtype))
            same(run("ReduceMax_" + name, dtype, x)[:1], x.max()[None])
            if n > 1:
                got = run("ReduceMin_" + name, dtype, x, numbers=[1])
                same(got[:1], x.min()[None])
                assert got[1:2].view({2: np.uint16, 4: np.uint32}[x.itemsize])[0] == x.argmin()


def test_movement(run):
    a = draw(np.float32, 2048, 1)
    for n in (1, 8, 9, 100, 2048):
        got = run("CopyUb_float", np.float32, a[:n])
        whole = n // 8 * 8  # rounded down to blocks
        same(got, np.concatenate([a[:whole], np.zeros(n - whole, np.float32)]))
    want = np.zeros(2048, np.float32)
    for i in range(4):
        want[i * 40 : i * 40 + 16] = a[i * 24 : i * 24 + 16]
    same(run("CopyUbBlocks_float", np.float32, a), want)
    for name in ("float", "half"):
        x = draw(TYPES[name], 2048, 2)
        n = 32 // x.itemsize
        same(run("Brcb_" + name, TYPES[name], x), np.repeat(x[: 2048 // n], n))
    for n in LENGTHS:
        same(
            run("CreateVecIndex_int32_t", np.int32, np.zeros(min(n, 2048), np.int32), numbers=[-5]),
            np.arange(min(n, 2048)) - 5,
        )
    same(run("CreateVecIndex_half", np.float16, np.zeros(100, np.float16), numbers=[3]), np.arange(100) + 3)
    same(run("ArithProgression_float", np.float32, np.zeros(100, np.float32)), 2 + np.arange(100) / 2)
    index = np.random.RandomState(1).randint(0, 1000, 1000)
    for name in ("float", "half"):
        x = draw(TYPES[name], 1000, 3)
        same(run("Gather_" + name, TYPES[name], x, (index * x.itemsize).astype(np.uint32)), x[index])
    x = draw(np.float32, 1000, 3)
    same(
        run("Gather_float", np.float32, x, (index // 2 * 4).astype(np.uint32), numbers=[64]),
        x[index // 2 + 16],
    )
    blocks = np.random.RandomState(2).randint(0, 64, 512)
    got = run("Gatherb_float", np.float32, x[:512], (blocks * 32).astype(np.uint32))
    same(got[:256], x[:512].reshape(64, 8)[blocks[:32]].reshape(-1))


def test_gather_mask(run):
    for name in ("float", "half", "int32_t"):
        x = draw(TYPES[name], 2048, 1)
        lanes = 256 // x.itemsize
        for pattern in range(1, 8):
            keep = {1: np.arange(2048) % 2 == 0, 2: np.arange(2048) % 2 == 1, 7: np.arange(2048) >= 0}.get(
                pattern, np.arange(2048) % 4 == pattern - 3
            )
            got = run("GatherMask_" + name, TYPES[name], x, numbers=[pattern, 0, 0, 3, 8])
            kept = x[: 3 * lanes][keep[: 3 * lanes]]
            same(got[: len(kept)], kept)
            assert got[2047] == len(kept)
            got = run("GatherMask_" + name, TYPES[name], x, numbers=[pattern, 1, 37, 4, 10])
            rows = np.concatenate([x[r * 10 * lanes // 8 :][:37][keep[:37]] for r in range(4)])
            same(got[: len(rows)], rows)
            assert got[2047] == len(rows)
    x = draw(np.float32, 256, 1)
    bits = np.random.RandomState(3).randint(0, 2, 64)
    pattern = np.zeros(256, np.uint32)
    pattern[:2] = np.packbits(bits, bitorder="little").view(np.uint32)
    got = run("GatherMaskTensor_float", np.float32, x, pattern)
    kept = x.reshape(4, 64)[:, bits == 1].reshape(-1)
    same(got[: len(kept)], kept)


def test_transposes(run):
    x = draw(np.float16, 256, 1)
    same(run("Transpose_half", np.float16, x), x.reshape(16, 16).T.reshape(-1))
    same(run("To5HD_half", np.float16, x), x.reshape(16, 16).T.reshape(-1))
    y = draw(np.float32, 128, 2)
    same(run("To5HD_float", np.float32, y), y.reshape(16, 8).T.reshape(-1))
    z = draw(np.int8, 512, 3)
    want = np.zeros((16, 32), np.int8)
    want[:, :16] = z.reshape(16, 32)[:, :16].T
    same(run("To5HD_int8_t", np.int8, z), want.reshape(-1))


def test_copies(run):
    a, out = np.arange(512, dtype=np.float32), np.zeros(512, np.float32)
    run.launch("copy_blocks", [a, out], [0, 1], 512)
    want, ub = np.zeros(512, np.float32), np.zeros(1024, np.float32)
    for i in range(4):
        ub[i * 40 : i * 40 + 16] = a[i * 24 : i * 24 + 16]
    for i in range(4):
        want[i * 32 : i * 32 + 16] = ub[i * 40 : i * 40 + 16]
    want[256:352] = ub[:96]
    same(out, want)
    out[:] = 0
    run.launch("pad_values", [a, out], [0, 1], 512)
    ub[:] = 0
    for i in range(3):
        ub[i * 16 : i * 16 + 8] = [-3] + list(a[i * 7 : i * 7 + 5]) + [-3, -3]
    for i in range(2):  # no padding asked for: the rest of the block repeats the first element
        ub[128 + i * 8 : 128 + i * 8 + 8] = list(a[i * 4 : i * 4 + 3]) + [a[i * 4]] * 5
    want = ub[:256]
    same(out[:256], want)


def test_trace(run):
    a, out = np.zeros(256, np.float32), np.zeros(256, np.float32)
    records = ctypes.POINTER(TraceRecord)()
    run.lib.twin_trace_end.restype = ctypes.c_uint64
    run.lib.twin_trace_begin(ctypes.c_uint64(0))
    run.launch("traced", [a, out], [0, 1], 256)
    n = run.lib.twin_trace_end(ctypes.byref(records))
    got = [records[i] for i in range(n)]
    assert [(r.api.decode(), r.pipe, r.kind) for r in got] == [
        ("DataCopyPad", 2, 0),
        ("TQue::EnQue", 2, 1),
        ("TQue::DeQue", 1, 2),
        ("Abs", 1, 0),
        ("PipeBarrier", 1, 3),
        ("Muls", 1, 0),
        ("TQue::FreeTensor", 1, 1),
        ("TQue::EnQue", 1, 1),
        ("TQue::DeQue", 3, 2),
        ("DataCopyPad", 3, 0),
        ("TQue::FreeTensor", 3, 1),
    ]
    load, store, vector = got[0], got[9], got[3]
    assert (load.bytes, load.elements, load.repeat, list(load.params)) == (800, 200, 2, [400, 16, 0, 0])
    assert (vector.bytes, vector.elements, vector.repeat, vector.dtype) == (400, 100, 2, 8)
    assert (store.bytes, store.repeat) == (400, 1) and load.line > 0 and b"probe_api.cpp" in load.file
    run.launch("traced", [a, out], [0, 1], 256)
    assert run.lib.twin_trace_end(ctypes.byref(records)) == n  # nothing is recorded when it is off


def test_caller_keeps_its_floating_point_state(run):
    """The caller's flush-to-zero holds inside the kernel, on own threads too, and is left as it was."""
    x = np.float32([1e-39, 2e-39, 1.0, -3e-39] * 16)
    for flush in (0, 1, 0):
        run.lib.probe_flush(flush)
        try:
            got = run("Add_float", np.float32, x, x)
            out = np.zeros(64, np.float32)
            run.launch("add_on_two_threads", [x, out], [0, 1], 64, blocks=2, needs_all=True)
            kept = run.lib.probe_flushes()
        finally:
            run.lib.probe_flush(0)
        assert kept == flush
        for y in (got, out):
            # As bits: this thread, and numpy with it, may flush.
            assert (y.view(np.uint32)[:2] == (0 if flush else (x.view(np.uint32) * 2)[:2])).all() and y[
                2
            ] == 2


def test_unchecked_build():
    """Without checks the same kernels give the same values."""
    run = probes.library("probe_api", checked=False)
    with np.errstate(all="ignore"):
        for name in ("float", "half", "int32_t"):
            a, b = draw(TYPES[name], 3000, 1), draw(TYPES[name], 3000, 2)
            same(run("Add_" + name, TYPES[name], a, b), BINARY["Add"](a, b))
    a = draw(np.float32, 2048, 1)
    d = repeat_index(20, 3, 3, 24, 8), repeat_index(20, 3, 2, 20, 8)
    want = np.zeros(2048, np.float32)
    want[d[0]] = abs(a[d[1]])
    same(run("AbsRepeat_float", np.float32, a, numbers=[20, 3, 3, 2, 24, 20]), want)
