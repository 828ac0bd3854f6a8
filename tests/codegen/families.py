"""Regions of the families that move, reduce and gather, and of several nests: written by hand, run end to
end."""

from typing import Dict, NamedTuple, Sequence, Tuple

import numpy as np

from tf_autofuse.ir.asc_graph import FusedGraph, KernelIO
from tf_autofuse.ir.builder import HintBuilder
from tf_autofuse.ir.dtypes import BOOL, FLOAT32, INT16, INT32, INT64, UINT8
from tf_autofuse.symbolic.guards import InputDim, SizeVar
from tf_autofuse.symbolic.size import Size, is_static, product, symbol

S0, S1 = symbol("s0"), symbol("s1")
SIZES = (SizeVar("s0", InputDim(0, 0), 7), SizeVar("s1", InputDim(0, 1), 7))


class Family(NamedTuple):
    """dims: input dims to run with. index_limit: what integer inputs stay below."""

    fused: FusedGraph
    dims: Tuple[Tuple[Tuple[int, ...], ...], ...]
    index_limit: int = 100


def family(name, builders, inputs, outputs, dims, index_limit=100) -> Family:
    dynamic = any(not is_static(d) for _, shape in inputs for d in shape)
    fused = FusedGraph(
        "autofuse_reduce_0_" + name, "reduce", tuple(KernelIO(d, tuple(s)) for d, s in inputs),
        tuple(KernelIO(d, tuple(s)) for d, s in outputs), SIZES if dynamic else (), (),
        tuple(b.graph() for b in builders), tuple(name.split("_")))
    return Family(fused, tuple(dims), index_limit)


def builder(shape: Sequence[Size], name="g") -> HintBuilder:
    dynamic = any(not is_static(d) for d in shape)
    return HintBuilder(name, [("z%d" % i, d) for i, d in enumerate(shape)], SIZES if dynamic else ())


def own(shape) -> Tuple[Tuple[Tuple[int, ...], ...], ...]:
    return ((tuple(shape),),)


def softmax(shape, dims=None) -> Family:
    b, full, last = builder(shape), (1,) * len(shape), (len(shape) - 1,)
    x = b.load(b.data(0, FLOAT32), full, origin=("x",))
    top = b.reduce("Max", x, last, origin=("Max",))
    e = b.op("Exp", b.op("Sub", x, b.broadcast_to(top, full), origin=("Sub",)), origin=("Exp",))
    b.store(b.op("Div", e, b.broadcast_to(b.reduce("Sum", e, last, origin=("Sum",)), full), origin=("Div",)),
            0)
    return family("Softmax", (b,), [(FLOAT32, shape)], [(FLOAT32, shape)], dims or own(shape))


def layer_norm(shape, dims=None) -> Family:
    """(x - mean) / sqrt(variance + epsilon) * gamma, and the mean."""
    b, full, last = builder(shape), (1,) * len(shape), len(shape) - 1
    x = b.load(b.data(0, FLOAT32), full)
    count = b.scalar(float(shape[-1]) if is_static(shape[-1]) else shape[-1], FLOAT32)
    mean = b.op("Div", b.reduce("Sum", x, (last,)), count)
    d = b.op("Sub", x, b.broadcast_to(mean, full))
    variance = b.op("Div", b.reduce("Sum", b.op("Mul", d, d), (last,)), count)
    scale = b.op("Sqrt", b.op("Add", variance, b.scalar(float(np.float32(1e-3)), FLOAT32)))
    gamma = b.load(b.data(1, FLOAT32), (0,) * last + (1,))
    y = b.op("Mul", b.op("Div", d, b.broadcast_to(scale, full)), b.broadcast_to(gamma, full))
    b.store(y, 0)
    b.store(mean, 1)
    return family("LayerNorm", (b,), [(FLOAT32, shape), (FLOAT32, shape[-1:])],
                  [(FLOAT32, shape), (FLOAT32, shape[:-1])], dims or ((tuple(shape), tuple(shape[-1:])),))


def reductions(shape, axes, dims=None) -> Family:
    """relu -> {sum, max, mean}."""
    b = builder(shape)
    x = b.op("Relu", b.load(b.data(0, FLOAT32), (1,) * len(shape)))
    count = product(shape[a] for a in axes)
    b.store(b.reduce("Sum", x, axes), 0)
    b.store(b.reduce("Max", x, axes), 1)
    b.store(b.op("Div", b.reduce("Sum", x, axes),
                 b.scalar(float(count) if is_static(count) else count, FLOAT32)), 2)
    rest = tuple(d for i, d in enumerate(shape) if i not in axes)
    return family("Relu_Sum_Max_Mean", (b,), [(FLOAT32, shape)], [(FLOAT32, rest)] * 3, dims or own(shape))


def integers(shape=(30, 50)) -> Family:
    """Wrapping sums, products and extremes of int32, and whether any or all are true."""
    b = builder(shape)
    x = b.load(b.data(0, INT32), (1, 1))
    for i, type_ in enumerate(("Sum", "Prod", "Min")):
        b.store(b.reduce(type_, x, (i % 2,)), i)
    y = b.load(b.data(1, BOOL), (1, 1))
    b.store(b.reduce("Any", y, (1,)), 3)
    b.store(b.reduce("All", y, (0,)), 4)
    rows, columns = shape[:1], shape[1:]
    return family("Sum_Prod_Min_Any_All", (b,), [(INT32, shape), (BOOL, shape)],
                  [(INT32, columns), (INT32, rows), (INT32, columns), (BOOL, rows), (BOOL, columns)],
                  ((shape, shape),))


def positions(shape=(13, 70)) -> Family:
    b = builder(shape)
    x = b.load(b.data(0, FLOAT32), (1, 1))
    b.store(b.reduce("ArgMax", x, (1,), dtype=INT64), 0)
    b.store(b.reduce("ArgMin", x, (0,), dtype=INT32), 1)
    return family("ArgMax_ArgMin", (b,), [(FLOAT32, shape)], [(INT64, shape[:1]), (INT32, shape[1:])],
                  own(shape))


def concat(shapes, axis) -> Family:
    """Parts of one output, a nest each."""
    total = list(shapes[0])
    total[axis] = sum(s[axis] for s in shapes)
    strides = [int(np.prod(total[i + 1:])) for i in range(len(total))]
    builders, offset = [], 0
    for number, shape in enumerate(shapes):
        b = builder(shape, "part%d" % number)
        x = b.op("Abs", b.load(b.data(number, FLOAT32), (1,) * len(shape)), origin=("Abs_%d" % number,))
        b.store(x, 0, tuple(0 if d == 1 else s for d, s in zip(shape, strides)), offset=offset,
                origin=("concat",))
        offset += shape[axis] * strides[axis]
        builders.append(b)
    return family("Abs_ConcatV2_%d" % len(shapes), builders, [(FLOAT32, s) for s in shapes],
                  [(FLOAT32, tuple(total))], (tuple(shapes),))


def split_concat(rows=9, columns=24) -> Family:
    """The halves of the rows, changed, in the other order."""
    builders, half = [], columns // 2
    for number, op in enumerate(("Relu", "Neg")):
        b = builder((rows, half), "half%d" % number)
        x = b.load(b.data(0, FLOAT32), (1, 1), (columns, 1), number * half)
        b.store(b.op(op, x), 0, (columns, 1), offset=(1 - number) * half)
        builders.append(b)
    shape = (rows, columns)
    return family("Split_Relu_Neg_ConcatV2", builders, [(FLOAT32, shape)], [(FLOAT32, shape)], own(shape))


def pack(count, dtype, length=100) -> Family:
    """Stack along a new innermost axis: stores of single elements."""
    b = builder((length,))
    for number in range(count):
        b.store(b.load(b.data(number, dtype), (1,)), 0, (count,), offset=number)
    return family("Pack", (b,), [(dtype, (length,))] * count, [(dtype, (length, count))],
                  (((length,),) * count,))


def transpose(shape, order, dtype=FLOAT32, dims=None) -> Family:
    out = tuple(shape[i] for i in order)
    strides = [product(shape[i + 1:]) for i in range(len(shape))]
    b, full = builder(out), (1,) * len(out)
    x = b.load(b.data(0, dtype), full, tuple(strides[i] for i in order))
    y = b.load(b.data(1, dtype), full)
    b.store(b.op("Add", x, y) if dtype is FLOAT32 else x, 0)
    if dtype is not FLOAT32:
        b.store(y, 1)
    outputs = [(dtype, out)] * (1 if dtype is FLOAT32 else 2)
    return family("Transpose_%s" % dtype.name, (b,), [(dtype, shape), (dtype, out)], outputs,
                  dims or ((tuple(shape), out),))


def transposed_store(rows=60, columns=90) -> Family:
    b = builder((rows, columns))
    x = b.op("Abs", b.load(b.data(0, FLOAT32), (1, 1)))
    b.store(x, 0, (1, rows))
    b.store(x, 1)
    shape = (rows, columns)
    return family("Abs_Transpose", (b,), [(FLOAT32, shape)], [(FLOAT32, shape[::-1]), (FLOAT32, shape)],
                  own(shape))


def every_other(dtype, rows=30, columns=41) -> Family:
    b = builder((rows, (columns + 1) // 2))
    b.store(b.load(b.data(0, dtype), (1, 1), (columns, 2)), 0)
    return family("StridedSlice_%s" % dtype.name, (b,), [(dtype, (rows, columns))],
                  [(dtype, (rows, (columns + 1) // 2))], own((rows, columns)))


def embedding(count=50, index=INT32) -> Family:
    """Rows of [s0, s1] by an index tensor, as they are and doubled."""
    b = HintBuilder("g", [("z0", count), ("z1", S1)], SIZES)
    rows = b.load(b.data(1, index), (1, 0))
    x = b.gather(b.data(0, FLOAT32), rows, (1, 1), (0, 1), S1, S0, origin=("GatherV2",))
    b.store(b.op("Mul", x, b.scalar(2.0, FLOAT32)), 0)
    b.store(x, 1)
    dims = tuple(((n, c), (count,)) for n, c in ((9, 4), (5, 1), (100, 300)))
    return family("GatherV2_Mul", (b,), [(FLOAT32, (S0, S1)), (index, (count,))],
                  [(FLOAT32, (count, S1))] * 2, dims, 5)


def pooling(batch=20, length=7, table=50, width=9) -> Family:
    """gather -> mul by a mask -> sum over the sequence."""
    b = builder((batch, length, width))
    rows = b.load(b.data(1, INT64), (1, 1, 0))
    x = b.gather(b.data(0, FLOAT32), rows, (1, 1, 1), (0, 0, 1), width, table)
    mask = b.load(b.data(2, FLOAT32), (1, 1, 0))
    b.store(b.reduce("Sum", b.op("Mul", x, b.broadcast_to(mask, (1, 1, 1))), (1,)), 0)
    shapes = ((table, width), (batch, length), (batch, length))
    return family("GatherV2_Mul_Sum", (b,), list(zip((FLOAT32, INT64, FLOAT32), shapes)),
                  [(FLOAT32, (batch, width))], (shapes,), table)


def columns_by_index(rows=6, columns=40, count=33) -> Family:
    """Gather along the innermost axis: single elements."""
    b = builder((rows, count))
    index = b.load(b.data(1, INT32), (0, 1))
    b.store(b.op("Abs", b.gather(b.data(0, FLOAT32), index, (1, 1), (columns, 0), 1, columns)), 0)
    return family("GatherV2_Abs", (b,), [(FLOAT32, (rows, columns)), (INT32, (count,))],
                  [(FLOAT32, (rows, count))],
                  (((rows, columns), (count,)),), columns)


def chain() -> Family:
    """abs -> workspace -> its transpose plus one; beside it a nest that waits for nobody."""
    first = builder((300, 40), "first")
    first.workspace_store(first.op("Abs", first.load(first.data(0, FLOAT32), (1, 1))), 0)
    beside = builder((7, 100), "beside")
    beside.store(beside.op("Relu", beside.load(beside.data(1, FLOAT32), (1, 1))), 1)
    last = builder((40, 300), "last")
    x = last.workspace_load(0, FLOAT32, (1, 1), (1, 40))
    last.store(last.op("Add", x, last.scalar(1.0, FLOAT32)), 0)
    return family("Abs_Transpose_Add_Relu", (first, beside, last),
                  [(FLOAT32, (300, 40)), (FLOAT32, (7, 100))],
                  [(FLOAT32, (40, 300)), (FLOAT32, (7, 100))], (((300, 40), (7, 100)),))


def computed_table(size=300, count=70) -> Family:
    """Single elements of what an earlier nest has computed."""
    first = builder((size,), "first")
    first.workspace_store(first.op("Abs", first.load(first.data(0, FLOAT32), (1,))), 0)
    second = builder((3, count), "second")
    index = second.load(second.data(1, INT32), (0, 1))
    x = second.gather(second.workspace(0, FLOAT32), index, (1, 1), (100, 0), 1, 100)
    second.store(second.op("Neg", x), 0)
    return family("Abs_GatherV2_Neg", (first, second), [(FLOAT32, (size,)), (INT32, (count,))],
                  [(FLOAT32, (3, count))], (((size,), (count,)),), 100)


_ROWS = tuple(((r, c),) for r, c in (
    (1024, 256), (7, 1000), (1, 1), (3, 17), (2, 50000), (1, 100000), (0, 7), (7, 0)))


def families() -> Dict[str, Family]:
    made = {
        "softmax": softmax((S0, S1), _ROWS), "softmax_static": softmax((1024, 256)),
        "softmax_3": softmax((3, 5, 17)), "softmax_long": softmax((1, 100000)),
        "layer_norm": layer_norm((S0, S1), tuple((d[0], (d[0][1],)) for d in _ROWS)),
        "layer_norm_5": layer_norm((2, 3, 4, 5, 6)),
        "reduce_rows": reductions((S0, S1), (1,), _ROWS),
        "reduce_columns": reductions((S0, S1), (0,), tuple((d[0][::-1],) for d in _ROWS)),
        "reduce_all": reductions((S0, S1), (0, 1), _ROWS),
        "reduce_inner": reductions((6, 7, 9, 5), (1, 3)),
        "reduce_wide_columns": reductions((3000, 40000), (0,), ()),
        "integers": integers(), "positions": positions(),
        "concat": concat([(4, 5), (4, 7)], 1), "concat_16": concat([(6, i + 1, 3) for i in range(16)], 1),
        "split_concat": split_concat(), "pack": pack(3, FLOAT32), "pack_bytes": pack(2, UINT8),
        "transpose": transpose((S1, S0), (1, 0), FLOAT32),
        "transpose_201": transpose((3, 5, 7), (2, 0, 1)), "transpose_210": transpose((3, 5, 70), (2, 1, 0)),
        "transpose_16": transpose((50, 70), (1, 0), INT16),
        "transpose_64": transpose((50, 70), (1, 0), INT64),
        "transposed_store": transposed_store(), "every_other": every_other(FLOAT32),
        "embedding": embedding(), "pooling": pooling(), "columns_by_index": columns_by_index(),
        "chain": chain(), "computed_table": computed_table(),
    }
    made["transpose"] = transpose((S0, S1), (1, 0), dims=tuple(
        (d, d[::-1]) for d in ((5, 7), (1, 9), (9, 1), (600, 700), (3, 2000), (0, 5))))
    return made


#: Regions whose device source is held still.
GOLDEN = ("softmax_static", "softmax_long", "concat", "transpose_201", "embedding")
