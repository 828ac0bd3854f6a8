"""HintGraphs for tests of schedule and tiling: named samples, and random ones with inputs to match.

A Sample knows its graph, and makes values for its symbols and inputs for them.
"""
from typing import Callable, Dict, List, NamedTuple, Tuple

import numpy as np
from hypothesis import strategies as st

from tf_autofuse.ir.asc_graph import AscGraph
from tf_autofuse.ir.builder import HintBuilder
from tf_autofuse.ir.dtypes import BOOL, FLOAT32, INT16, INT32
from tf_autofuse.symbolic.guards import InputDim, SizeVar
from tf_autofuse.symbolic.size import Size, broadcast_size, evaluate, stride_or_zero, symbol


class Sample(NamedTuple):
    """input_dims: the dims of each input, as sizes. symbols: independent symbols; derived: those computed
    from them."""

    graph: AscGraph
    input_dims: Tuple[Tuple[Size, ...], ...]
    dtypes: Tuple
    outputs: int
    symbols: Tuple[str, ...] = ()
    derived: Tuple[Tuple[str, Size], ...] = ()

    def values(self, chosen: Dict[str, int]) -> Dict[str, int]:
        result = dict(chosen)
        for name, size in self.derived:
            result[name] = evaluate(size, result)
        return result

    def inputs(self, values, seed=0) -> List[np.ndarray]:
        rng = np.random.RandomState(seed)
        result = []
        for dims, dtype in zip(self.input_dims, self.dtypes):
            n = int(np.prod([evaluate(d, values) for d in dims], dtype=np.int64))
            if dtype is BOOL:
                result.append(rng.randint(0, 2, n).astype(np.uint8))
            else:
                result.append(rng.randint(-50, 50, n).astype(dtype.numpy))
        return result

    def output_elements(self, values) -> int:
        """Elements of the loop nest."""
        sizes = [evaluate(self.graph.axis(a).size, values) for a in self.graph.loop_axes]
        return int(np.prod(sizes, dtype=np.int64))


def public_example(rows=192, columns=128) -> Sample:
    """relu(abs(data1) + data2), data1 [columns], data2 [rows, columns]."""
    b = HintBuilder("public_example", axes=[("z0", rows), ("z1", columns)])
    x = b.load(b.data(0, FLOAT32), dims=(0, 1))
    y = b.load(b.data(1, FLOAT32), dims=(1, 1))
    b.store(b.op("Relu", b.op("Add", b.broadcast_to(b.op("Abs", x), (1, 1)), y)), index=0)
    return Sample(b.graph(), ((columns,), (rows, columns)), (FLOAT32, FLOAT32), 1)


def rows_and_columns(columns=3) -> Sample:
    """Compare, select and several outputs on [s0, columns] with a row and a column operand."""
    s0 = symbol("s0")
    b = HintBuilder("rows_and_columns", axes=[("z0", s0), ("z1", columns)],
                    sizes=(SizeVar("s0", InputDim(1, 0)),))
    x = b.load(b.data(0, FLOAT32), dims=(0, 1))
    y = b.load(b.data(1, FLOAT32), dims=(1, 1))
    c = b.load(b.data(2, FLOAT32), dims=(1, 0))
    mask = b.compare("Gt", y, b.scalar(1.0, FLOAT32))
    total = b.op("Add", b.broadcast_to(c, (1, 1)), b.broadcast_to(x, (1, 1)))
    b.store(b.op("Where", mask, total, b.scalar(2.0, FLOAT32)), 0)
    b.store(b.broadcast_to(x, (1, 1)), 1)
    return Sample(b.graph(), ((columns,), (s0, columns), (s0,)), (FLOAT32,) * 3, 2, ("s0",))


def run_time_broadcast() -> Sample:
    """[s0, s1] + [s2, s3] where every dim may be 1 at run time."""
    s = [symbol("s%d" % i) for i in range(6)]
    derived = (("s4", broadcast_size(s[0], s[2])), ("s5", broadcast_size(s[1], s[3])))
    sizes = tuple(SizeVar("s%d" % i, InputDim(i // 2, i % 2)) for i in range(4)) + tuple(
        SizeVar(n, e) for n, e in derived)
    b = HintBuilder("run_time_broadcast", axes=[("z0", s[4]), ("z1", s[5])], sizes=sizes)
    x = b.load(b.data(0, FLOAT32), dims=(1, 1), strides=(stride_or_zero(s[0], s[1]), stride_or_zero(s[1], 1)))
    y = b.load(b.data(1, FLOAT32), dims=(1, 1), strides=(stride_or_zero(s[2], s[3]), stride_or_zero(s[3], 1)))
    b.store(b.op("Sub", b.op("Neg", x), y), index=0)
    return Sample(b.graph(), ((s[0], s[1]), (s[2], s[3])), (FLOAT32, FLOAT32), 1, ("s0", "s1", "s2", "s3"),
                  derived)


def fill(dims=(4, 5)) -> Sample:
    """A constant into every element."""
    b = HintBuilder("fill", axes=[("z%d" % i, d) for i, d in enumerate(dims)])
    c = b.op("Add", b.scalar(1.0, FLOAT32), b.scalar(2.0, FLOAT32))
    b.store(c, index=0)
    return Sample(b.graph(), (), (), 1)


def copies() -> Sample:
    """A Load straight to a Store, twice, and a broadcast of it."""
    s0 = symbol("s0")
    b = HintBuilder("copies", axes=[("z0", s0), ("z1", 7)], sizes=(SizeVar("s0", InputDim(0, 0)),))
    x = b.load(b.data(0, FLOAT32), dims=(1, 1))
    r = b.load(b.data(1, INT32), dims=(0, 1))
    b.store(x, 0)
    b.store(x, 1)
    b.store(r, 2)
    b.store(b.op("Abs", x), 3)
    return Sample(b.graph(), ((s0, 7), (7,)), (FLOAT32, INT32), 4, ("s0",))


def many_loads(count: int) -> Sample:
    """A sum of `count` loads."""
    b = HintBuilder("many_loads", axes=[("z0", 1000)])
    total = b.load(b.data(0, FLOAT32), dims=(1,))
    for i in range(1, count):
        total = b.op("Add", total, b.load(b.data(i, FLOAT32), dims=(1,)))
    b.store(total, 0)
    return Sample(b.graph(), ((1000,),) * count, (FLOAT32,) * count, 1)


def rank_zero() -> Sample:
    b = HintBuilder("rank_zero", axes=[("z0", 1)])
    x = b.load(b.data(0, FLOAT32), dims=(0,))
    b.store(b.op("Mul", x, b.scalar(3.0, FLOAT32)), 0)
    return Sample(b.graph(), ((),), (FLOAT32,), 1)


def three_axes() -> Sample:
    """[s0, s1, s2] with operands [s1, 1], [s0, 1, s2] and [1]: broadcasts along every axis, in the middle
    too."""
    s = [symbol("s%d" % i) for i in range(3)]
    b = HintBuilder("three_axes", axes=[("z%d" % i, s[i]) for i in range(3)],
                    sizes=tuple(SizeVar("s%d" % i, InputDim(0, i)) for i in range(3)))
    x = b.load(b.data(0, FLOAT32), dims=(1, 1, 1))
    middle = b.load(b.data(1, FLOAT32), dims=(0, 1, 0))
    around = b.load(b.data(2, FLOAT32), dims=(1, 0, 1))
    one = b.load(b.data(3, FLOAT32), dims=(0, 0, 0))
    column = b.op("Mul", b.op("Abs", middle), b.scalar(2.0, FLOAT32))
    left = b.op("Add", x, b.broadcast_to(column, (1, 1, 1)))
    right = b.op("Maximum", b.broadcast_to(around, (1, 1, 1)), b.broadcast_to(one, (1, 1, 1)))
    b.store(b.op("Sub", left, right), 0)
    return Sample(b.graph(), (tuple(s), (s[1],), (s[0], s[2]), ()), (FLOAT32,) * 4, 1, ("s0", "s1", "s2"))


def mixed_types() -> Sample:
    """int16 and int32 loads, casts and a bool output on [s0, s1]."""
    s0, s1 = symbol("s0"), symbol("s1")
    b = HintBuilder("mixed_types", axes=[("z0", s0), ("z1", s1)],
                    sizes=(SizeVar("s0", InputDim(0, 0)), SizeVar("s1", InputDim(0, 1))))
    x = b.op("Cast", b.load(b.data(0, INT32), dims=(1, 1)), dtype=FLOAT32)
    y = b.op("Cast", b.load(b.data(1, INT16), dims=(0, 1)), dtype=FLOAT32)
    b.store(b.compare("Gt", x, b.broadcast_to(y, (1, 1))), 0)
    return Sample(b.graph(), ((s0, s1), (s1,)), (INT32, INT16), 1, ("s0", "s1"))


def softmax(columns=40) -> Sample:
    """Softmax over the last axis of [s0, columns]."""
    s0 = symbol("s0")
    b = HintBuilder("softmax", axes=[("z0", s0), ("z1", columns)], sizes=(SizeVar("s0", InputDim(0, 0)),))
    x = b.load(b.data(0, FLOAT32), dims=(1, 1))
    above = b.op("Sub", x, b.broadcast_to(b.reduce("Max", x, (1,)), (1, 1)))
    b.store(b.op("Sub", above, b.broadcast_to(b.reduce("Sum", above, (1,)), (1, 1))), 0)
    return Sample(b.graph(), ((s0, columns),), (FLOAT32,), 1, ("s0",))


def column_sums(rows=21) -> Sample:
    """Sums and least elements of the columns of [rows, s0], and the rows above them."""
    s0 = symbol("s0")
    b = HintBuilder("column_sums", axes=[("z0", rows), ("z1", s0)], sizes=(SizeVar("s0", InputDim(0, 1)),))
    x = b.op("Abs", b.load(b.data(0, FLOAT32), dims=(1, 1)))
    total = b.reduce("Sum", x, (0,))
    b.store(total, 0)
    b.store(b.reduce("Min", x, (0,)), 1)
    b.store(b.op("Sub", x, b.broadcast_to(total, (1, 1))), 2)
    return Sample(b.graph(), ((rows, s0),), (FLOAT32,), 3, ("s0",))


def inner_sums() -> Sample:
    """Sums over axes 1 and 3 of [s0, 5, 3, 7]."""
    s0 = symbol("s0")
    b = HintBuilder("inner_sums", axes=[("z0", s0), ("z1", 5), ("z2", 3), ("z3", 7)],
                    sizes=(SizeVar("s0", InputDim(0, 0)),))
    x = b.load(b.data(0, INT32), dims=(1, 1, 1, 1))
    b.store(b.reduce("Sum", x, (1, 3)), 0)
    return Sample(b.graph(), ((s0, 5, 3, 7),), (INT32,), 1, ("s0",))


def transposed() -> Sample:
    """[s1, s0] as [s0, s1], plus a row."""
    s0, s1 = symbol("s0"), symbol("s1")
    b = HintBuilder("transposed", axes=[("z0", s0), ("z1", s1)],
                    sizes=(SizeVar("s0", InputDim(0, 1)), SizeVar("s1", InputDim(0, 0))))
    x = b.load(b.data(0, FLOAT32), dims=(1, 1), strides=(1, s0))
    y = b.load(b.data(1, FLOAT32), dims=(0, 1))
    b.store(b.op("Add", x, b.broadcast_to(y, (1, 1))), 0)
    return Sample(b.graph(), ((s1, s0), (s1,)), (FLOAT32, FLOAT32), 1, ("s0", "s1"))


def every_third() -> Sample:
    """Every third element of the rows of [s0, 31]."""
    s0 = symbol("s0")
    b = HintBuilder("every_third", axes=[("z0", s0), ("z1", 10)], sizes=(SizeVar("s0", InputDim(0, 0)),))
    x = b.load(b.data(0, FLOAT32), dims=(1, 1), strides=(31, 3), offset=1)
    b.store(b.op("Abs", x), 0)
    return Sample(b.graph(), ((s0, 31),), (FLOAT32,), 1, ("s0",))


SAMPLES: Dict[str, Callable[[], Sample]] = {
    "public_example": public_example, "rows_and_columns": rows_and_columns,
    "run_time_broadcast": run_time_broadcast, "fill": fill, "copies": copies,
    "nine_loads": lambda: many_loads(9), "rank_zero": rank_zero, "three_axes": three_axes,
    "mixed_types": mixed_types,
    "softmax": softmax, "column_sums": column_sums, "inner_sums": inner_sums, "transposed": transposed,
    "every_third": every_third,
    "aligned_rows": lambda: rows_and_columns(8), "wide_rows": lambda: rows_and_columns(37)}

_UNARY = {FLOAT32: ("Abs", "Neg", "Relu"), INT32: ("Neg", "Relu"), INT16: ("Neg",)}
_BINARY = {FLOAT32: ("Add", "Sub", "Mul", "Maximum"), INT32: ("Add", "Sub", "Maximum"),
           INT16: ("Add", "Minimum")}
_CASTS = {FLOAT32: (INT32,), INT32: (FLOAT32,), INT16: (FLOAT32,)}


@st.composite
def samples(draw) -> Sample:
    """Random graphs of 1 to 4 axes: masks of extents, scalars, comparisons, selects, casts, several outputs,
    run-time broadcasts."""
    rank = draw(st.integers(1, 4))
    symbols, derived, sizes, axes = [], [], [], []
    for i in range(rank):
        if draw(st.booleans()):
            name = "s%d" % i
            symbols.append(name)
            sizes.append(SizeVar(name, InputDim(0, i)))
            axes.append(("z%d" % i, symbol(name)))
        else:
            axes.append(("z%d" % i, draw(st.sampled_from((1, 2, 3, 5, 8, 16, 33)))))
    may_stride = draw(st.booleans())
    if may_stride:  # one axis whose size is decided at run time
        at = draw(st.integers(0, rank - 1))
        left, right, name = "a%d" % at, "b%d" % at, "r%d" % at
        if "s%d" % at in symbols:
            symbols.remove("s%d" % at)
        symbols += [left, right]
        derived.append((name, broadcast_size(symbol(left), symbol(right))))
        sizes = [v for v in sizes if v.name != "s%d" % at] + [
            SizeVar(left, InputDim(0, at)), SizeVar(right, InputDim(1, at)), SizeVar(name, derived[-1][1])]
        axes[at] = ("z%d" % at, symbol(name))
    b = HintBuilder("random", axes=axes, sizes=tuple(sizes))
    input_dims, dtypes, pool = [], [], []
    for i in range(draw(st.integers(1, 4))):
        mask = [1 if i == 0 else draw(st.integers(0, 1)) for _ in range(rank)]
        dtype = draw(st.sampled_from((FLOAT32, FLOAT32, INT32, INT16)))
        dims = [axes[k][1] if mask[k] else 1 for k in range(rank)]
        strides = None
        if may_stride and i < 2 and mask[at]:
            dims[at] = symbol(left if i == 0 else right)
            strides, step = [0] * rank, 1
            for k in reversed(range(rank)):
                strides[k] = (stride_or_zero(dims[k], step) if k == at else step) if mask[k] else 0
                step = step * dims[k]
        elif may_stride and mask[at]:
            mask[at], dims[at] = 0, 1
        input_dims.append(tuple(dims))
        dtypes.append(dtype)
        pool.append((b.load(b.data(i, dtype), dims=mask, strides=strides), tuple(mask), dtype))
    for _ in range(draw(st.integers(1, 7))):
        pool.append(_step(draw, b, pool))
    outputs = draw(st.integers(1, 3))
    for i, (ref, _, _) in enumerate(pool[-outputs:]):
        b.store(ref, i)
    return Sample(b.graph(), tuple(input_dims), tuple(dtypes), min(outputs, len(pool)), tuple(symbols),
                  tuple(derived))


def _step(draw, b, pool):
    ref, mask, dtype = draw(st.sampled_from(pool[-4:]))
    kind = draw(st.sampled_from(("unary", "binary", "binary", "scalar", "select", "cast")))
    if dtype is BOOL:
        kind = "select"
    if kind == "cast":
        target = draw(st.sampled_from(_CASTS[dtype]))
        if (dtype, target) in ((FLOAT32, INT32),):
            kind = "unary"  # the table has no plain form for every pair
        else:
            return b.op("Cast", ref, dtype=target), mask, target
    if kind == "unary":
        return b.op(draw(st.sampled_from(_UNARY[dtype])), ref), mask, dtype
    if kind == "scalar":
        scalar = b.scalar(2, dtype)
        operands = draw(st.sampled_from(((ref, scalar), (scalar, ref))))
        return b.op(draw(st.sampled_from(_BINARY[dtype])), *operands), mask, dtype
    others = [p for p in pool if p[2] is (FLOAT32 if dtype is BOOL else dtype)]
    if not others:
        value = b.scalar(1.5, FLOAT32)
        return b.op("Where", ref, value, b.scalar(0.5, FLOAT32), dtype=FLOAT32), mask, FLOAT32
    other, other_mask, _ = draw(st.sampled_from(others))
    union = tuple(max(p) for p in zip(mask, other_mask))
    first, second = b.broadcast_to(ref, union), b.broadcast_to(other, union)
    if dtype is BOOL:
        return b.op("Where", first, second, b.scalar(0.5, FLOAT32), dtype=FLOAT32), union, FLOAT32
    if kind == "select" and dtype in (FLOAT32, INT32):
        condition = b.compare("Gt", first, second)
        return (condition, union, BOOL) if draw(st.booleans()) else (
            b.op("Where", condition, first, second, dtype=dtype), union, dtype)
    return b.op(draw(st.sampled_from(_BINARY[dtype])), first, second), union, dtype


def shapes(sample: Sample, largest: int = 9):
    """Values of the sample's symbols: small, often 0 or 1; run-time broadcast partners are equal or one is
    1."""
    def fix(chosen):
        values = dict(chosen)
        for name in chosen:
            partner = {"a": "b", "b": "a"}.get(name[0])
            if name[0] == "b" and values[name] != 1 and values.get(partner + name[1:], 1) != 1:
                values[name] = values["a" + name[1:]]
        if {"s0", "s1", "s2", "s3"} <= set(values):  # run_time_broadcast
            for left, right in (("s0", "s2"), ("s1", "s3")):
                if values[left] != 1 and values[right] != 1 and sample.derived:
                    values[right] = values[left]
        return values

    one = st.one_of(st.sampled_from((0, 1, 2)), st.integers(1, largest))
    return st.fixed_dictionaries({n: one for n in sample.symbols}).map(fix)
