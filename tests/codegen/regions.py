"""Regions written by hand, one for each thing that the generator must get right; golden and end-to-end tests
share them."""

from typing import Dict, NamedTuple, Tuple

import numpy as np

from tf_autofuse.ir.asc_graph import FusedGraph, KernelIO
from tf_autofuse.ir.builder import HintBuilder
from tf_autofuse.ir.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, INT16, INT32, DType
from tf_autofuse.symbolic.guards import Guard, InputDim, SizeVar
from tf_autofuse.symbolic.size import broadcast_size, stride_or_zero, symbol

S0, S1, S2 = symbol("s0"), symbol("s1"), symbol("s2")
INF, NAN = float("inf"), float("nan")


class Region(NamedTuple):
    """dims: input dims to run with, the first ones also in golden manifests; refused: dims that a guard
    refuses."""

    fused: FusedGraph
    dims: Tuple[Tuple[Tuple[int, ...], ...], ...]
    refused: Tuple[Tuple[Tuple[int, ...], ...], ...] = ()


def region(name: str, builder: HintBuilder, inputs, outputs, dims, refused=(), sizes=(), guards=()) -> Region:
    fused = FusedGraph(
        "autofuse_pointwise_0_" + name,
        "pointwise",
        tuple(KernelIO(d, tuple(s)) for d, s in inputs),
        tuple(KernelIO(d, tuple(s)) for d, s in outputs),
        tuple(sizes),
        tuple(guards),
        (builder.graph(),),
        tuple(name.split("_")),
    )
    return Region(fused, tuple(dims), tuple(refused))


def up(b, ref):
    """16-bit floats compute in float32."""
    return b.op("Cast", ref, dtype=FLOAT32)


def public_example() -> Region:
    b = HintBuilder("g", [("z0", 192), ("z1", 128)])
    a = b.op("Abs", b.load(b.data(0, FLOAT32, ("data1",)), (0, 1), origin=("data1",)), origin=("Abs",))
    y = b.load(b.data(1, FLOAT32, ("data2",)), (1, 1), origin=("data2",))
    total = b.op("Add", b.broadcast_to(a, (1, 1), ("add",)), y, origin=("add",))
    b.store(b.op("Relu", total, origin=("Relu",)), 0, origin=("Relu",))
    return region(
        "Abs_Add_Relu",
        b,
        [(FLOAT32, (128,)), (FLOAT32, (192, 128))],
        [(FLOAT32, (192, 128))],
        [((128,), (192, 128))],
        [((127,), (192, 128)), ((1,), (192, 128)), ((128,), (192, 1))],
    )


def public_example_half() -> Region:
    b = HintBuilder("g", [("z0", 192), ("z1", 128)])
    x = b.op("Cast", b.load(b.data(0, FLOAT32), (0, 1)), dtype=FLOAT16, origin=("Cast",))
    y = b.op("Cast", b.load(b.data(1, FLOAT32), (1, 1)), dtype=FLOAT16, origin=("Cast_1",))
    total = b.op("Add", b.broadcast_to(b.op("Abs", up(b, x)), (1, 1)), up(b, y))
    low = b.op("Cast", b.op("Relu", total), dtype=FLOAT16)
    b.store(b.op("Cast", low, dtype=FLOAT32, origin=("Cast_2",)), 0)
    return region(
        "Cast_Abs_Cast_Add_Relu_Cast",
        b,
        [(FLOAT32, (128,)), (FLOAT32, (192, 128))],
        [(FLOAT32, (192, 128))],
        [((128,), (192, 128))],
    )


def column(dtype: DType = FLOAT32, width: int = 97) -> Region:
    b = HintBuilder("g", [("z0", 70), ("z1", width)])
    x, y = b.load(b.data(0, dtype), (1, 0)), b.load(b.data(1, dtype), (1, 1))
    b.store(b.op("Mul", b.broadcast_to(b.op("Neg", x), (1, 1)), y), 0)
    return region(
        "Neg_Mul_%s" % dtype.name,
        b,
        [(dtype, (70, 1)), (dtype, (70, width))],
        [(dtype, (70, width))],
        [((70, 1), (70, width))],
    )


def outer_product() -> Region:
    b = HintBuilder("g", [("z0", 37), ("z1", 41)])
    x, y = b.load(b.data(0, FLOAT32), (1, 0)), b.load(b.data(1, FLOAT32), (0, 1))
    b.store(b.op("Sub", b.broadcast_to(x, (1, 1)), b.broadcast_to(y, (1, 1))), 0)
    return region(
        "Sub", b, [(FLOAT32, (37, 1)), (FLOAT32, (1, 41))], [(FLOAT32, (37, 41))], [((37, 1), (1, 41))]
    )


def constants() -> Region:
    b = HintBuilder("g", [("z0", 1000)])
    x = y = b.load(b.data(0, FLOAT32), (1,))
    for type_, value in (("Add", 0.1), ("Maximum", -INF), ("Mul", -0.0), ("Minimum", INF), ("Add", 1e-45)):
        x = b.op(type_, x, b.scalar(float(np.float32(value)), FLOAT32))
    b.store(b.op("Sub", b.scalar(NAN, FLOAT32), x), 0)
    b.store(b.op("Div", b.scalar(1.0, FLOAT32), y), 1)
    return region("Constants", b, [(FLOAT32, (1000,))], [(FLOAT32, (1000,))] * 2, [((1000,),)])


def select() -> Region:
    b = HintBuilder("g", [("z0", 33), ("z1", 19)])
    x, y = b.load(b.data(0, FLOAT32), (1, 1)), b.load(b.data(1, FLOAT32), (0, 1))
    y = b.broadcast_to(y, (1, 1))
    positive = b.compare("Gt", x, b.scalar(0.0, FLOAT32))
    chosen = b.op("Where", b.op("LogicalAnd", positive, b.compare("Lt", x, y)), x, y, dtype=FLOAT32)
    b.store(chosen, 0)
    b.store(b.op("LogicalNot", positive, dtype=BOOL), 1)
    return region(
        "Greater_Less_LogicalAnd_Select",
        b,
        [(FLOAT32, (33, 19)), (FLOAT32, (19,))],
        [(FLOAT32, (33, 19)), (BOOL, (33, 19))],
        [((33, 19), (19,))],
    )


def several_outputs() -> Region:
    b = HintBuilder("g", [("z0", 5), ("z1", 3), ("z2", 50)])
    x, y = b.load(b.data(0, FLOAT32), (1, 1, 1)), b.load(b.data(1, FLOAT32), (1, 1, 1))
    total = b.op("Add", x, y)
    b.store(total, 0)
    b.store(b.op("Relu", total), 1)
    b.store(b.op("Mul", total, x), 2)
    dims = (5, 3, 50)
    return region("Add_Relu_Mul", b, [(FLOAT32, dims)] * 2, [(FLOAT32, dims)] * 3, [(dims, dims)])


def symbolic() -> Region:
    b = HintBuilder("g", [("z0", S0), ("z1", 128)], (SizeVar("s0", InputDim(0, 0), 7),))
    x, y = b.load(b.data(0, FLOAT32), (1, 1)), b.load(b.data(1, FLOAT32), (1, 0))
    b.store(b.op("Add", x, b.broadcast_to(y, (1, 1))), 0)
    return region(
        "AddV2",
        b,
        [(FLOAT32, (S0, 128)), (FLOAT32, (S0, 1))],
        [(FLOAT32, (S0, 128))],
        [((n, 128), (n, 1)) for n in (7, 1, 0, 1024, 3, 64, 5003)],
        [((7, 128), (8, 1)), ((7, 127), (7, 1)), ((7, 128), (7, 2))],
        [SizeVar("s0", InputDim(0, 0), 7)],
    )


def flat_symbolic() -> Region:
    b = HintBuilder("g", [("z0", S0)], (SizeVar("s0", InputDim(0, 0)),))
    x, y = b.load(b.data(0, FLOAT32), (1,)), b.load(b.data(1, FLOAT32), (1,))
    b.store(b.op("Maximum", b.op("Mul", x, y), x), 0)
    return region(
        "Mul_Maximum",
        b,
        [(FLOAT32, (S0,))] * 2,
        [(FLOAT32, (S0,))],
        [((n,), (n,)) for n in list(range(0, 66)) + [4095, 65537, 300007]],
        [((3,), (4,))],
        [SizeVar("s0", InputDim(0, 0))],
    )


def run_time_broadcast() -> Region:
    sizes = (
        SizeVar("s0", InputDim(0, 0)),
        SizeVar("s1", InputDim(1, 0)),
        SizeVar("s2", broadcast_size(S0, S1)),
    )
    b = HintBuilder("g", [("z0", broadcast_size(S0, S1)), ("z1", 60)], sizes)
    x = b.load(b.data(0, FLOAT32), (1, 1), strides=(stride_or_zero(S0, 60), 1))
    y = b.load(b.data(1, FLOAT32), (1, 1), strides=(stride_or_zero(S1, 60), 1))
    b.store(b.op("Sub", x, y), 0)
    return region(
        "Sub",
        b,
        [(FLOAT32, (S0, 60)), (FLOAT32, (S1, 60))],
        [(FLOAT32, (broadcast_size(S0, S1), 60))],
        [
            ((n, 60), (m, 60))
            for n, m in (
                (5, 5),
                (5, 1),
                (1, 5),
                (1, 1),
                (0, 1),
                (1, 0),
                (0, 0),
                (3000, 1),
                (3000, 3000),
                (1, 3000),
            )
        ],
        [((2, 60), (3, 60)), ((0, 60), (2, 60))],
        sizes,
        [Guard("broadcast", S0, S1)],
    )


def run_time_broadcast_inner() -> Region:
    """Both dims of both inputs may be broadcast, the innermost included."""
    s3 = symbol("s3")
    sizes = (
        SizeVar("s0", InputDim(0, 0)),
        SizeVar("s1", InputDim(0, 1)),
        SizeVar("s2", InputDim(1, 0)),
        SizeVar("s3", InputDim(1, 1)),
    )
    rows, columns = broadcast_size(S0, S2), broadcast_size(S1, s3)
    b = HintBuilder("g", [("z0", rows), ("z1", columns)], sizes)
    x = b.load(b.data(0, FLOAT32), (1, 1), strides=(stride_or_zero(S0, S1), stride_or_zero(S1, 1)))
    y = b.load(b.data(1, FLOAT32), (1, 1), strides=(stride_or_zero(S2, s3), stride_or_zero(s3, 1)))
    b.store(b.op("Add", b.op("Abs", x), y), 0)
    shapes = [
        ((4, 9), (4, 9)),
        ((4, 1), (1, 9)),
        ((1, 9), (4, 1)),
        ((1, 1), (4, 9)),
        ((4, 9), (1, 1)),
        ((1, 1), (1, 1)),
        ((0, 9), (1, 9)),
        ((4, 1), (4, 130)),
        ((70, 33), (1, 33)),
        ((3, 1), (1, 2000)),
    ]
    return region(
        "Abs_Add",
        b,
        [(FLOAT32, (S0, S1)), (FLOAT32, (S2, s3))],
        [(FLOAT32, (rows, columns))],
        shapes,
        [((4, 9), (3, 9)), ((4, 9), (4, 8))],
        sizes,
        [Guard("broadcast", S0, S2), Guard("broadcast", S1, s3)],
    )


def rank_0() -> Region:
    b = HintBuilder("g", [("z0", 1)])
    x, y = b.load(b.data(0, FLOAT32), (0,)), b.load(b.data(1, FLOAT32), (0,))
    b.store(b.op("Div", x, y), 0)
    return region("RealDiv", b, [(FLOAT32, ()), (FLOAT32, ())], [(FLOAT32, ())], [((), ())])


def scalar_tensor() -> Region:
    b = HintBuilder("g", [("z0", 300)])
    x, y = b.load(b.data(0, FLOAT32), (1,)), b.load(b.data(1, FLOAT32), (0,))
    b.store(b.op("Add", x, b.broadcast_to(b.op("Neg", y), (1,))), 0)
    return region("Neg_Add", b, [(FLOAT32, (300,)), (FLOAT32, ())], [(FLOAT32, (300,))], [((300,), ())])


def middle_broadcast() -> Region:
    b = HintBuilder("g", [("z0", 6), ("z1", 5), ("z2", 24)])
    x, y = b.load(b.data(0, FLOAT32), (1, 0, 1)), b.load(b.data(1, FLOAT32), (1, 1, 1))
    b.store(b.op("Add", b.broadcast_to(x, (1, 1, 1)), y), 0)
    return region(
        "Add3",
        b,
        [(FLOAT32, (6, 1, 24)), (FLOAT32, (6, 5, 24))],
        [(FLOAT32, (6, 5, 24))],
        [((6, 1, 24), (6, 5, 24))],
    )


def four_dims() -> Region:
    b = HintBuilder("g", [("z0", 3), ("z1", 4), ("z2", 5), ("z3", 7)])
    x, y = b.load(b.data(0, FLOAT32), (1, 0, 1, 0)), b.load(b.data(1, FLOAT32), (0, 1, 0, 1))
    b.store(b.op("Mul", b.broadcast_to(x, (1,) * 4), b.broadcast_to(y, (1,) * 4)), 0)
    return region(
        "Mul4",
        b,
        [(FLOAT32, (3, 1, 5, 1)), (FLOAT32, (4, 1, 7))],
        [(FLOAT32, (3, 4, 5, 7))],
        [((3, 1, 5, 1), (4, 1, 7))],
    )


def sliced() -> Region:
    b = HintBuilder("g", [("z0", 12), ("z1", 20)])
    x = b.load(b.data(0, FLOAT32), (1, 1), strides=(40, 1), offset=20)
    y = b.load(b.data(1, FLOAT32), (1, 1))
    b.store(b.op("Add", x, y), 0)
    return region(
        "Slice_Add",
        b,
        [(FLOAT32, (12, 40)), (FLOAT32, (12, 20))],
        [(FLOAT32, (12, 20))],
        [((12, 40), (12, 20))],
    )


def copies() -> Region:
    b = HintBuilder("g", [("z0", 11), ("z1", 35)])
    b.store(b.load(b.data(0, FLOAT32), (1, 1)), 0)
    b.store(b.load(b.data(1, INT32), (0, 1)), 1)
    b.store(b.load(b.data(2, BOOL), (1, 0)), 2)
    b.store(b.scalar(2.5, FLOAT32), 3)
    return region(
        "BroadcastTo",
        b,
        [(FLOAT32, (11, 35)), (INT32, (35,)), (BOOL, (11, 1))],
        [(FLOAT32, (11, 35)), (INT32, (11, 35)), (BOOL, (11, 35)), (FLOAT32, (11, 35))],
        [((11, 35), (35,), (11, 1))],
    )


def sixteen_bit(dtype: DType) -> Region:
    b = HintBuilder("g", [("z0", 9), ("z1", 77)])
    x, y = up(b, b.load(b.data(0, dtype), (1, 1))), up(b, b.load(b.data(1, dtype), (1, 0)))
    b.store(b.op("Cast", b.op("Mul", x, b.broadcast_to(y, (1, 1))), dtype=dtype), 0)
    return region(
        "Mul_%s" % dtype.name, b, [(dtype, (9, 77)), (dtype, (9, 1))], [(dtype, (9, 77))], [((9, 77), (9, 1))]
    )


def integers(dtype: DType) -> Region:
    b = HintBuilder("g", [("z0", 13), ("z1", 21)])
    x, y = b.load(b.data(0, dtype), (1, 1)), b.load(b.data(1, dtype), (0, 1))
    total = b.op("Add", b.op("Mul", x, b.broadcast_to(y, (1, 1))), b.scalar(-3, dtype))
    b.store(b.op("Maximum", total, x), 0)
    return region(
        "Mul_Add_Maximum_%s" % dtype.name,
        b,
        [(dtype, (13, 21)), (dtype, (21,))],
        [(dtype, (13, 21))],
        [((13, 21), (21,))],
    )


def bool_column() -> Region:
    b = HintBuilder("g", [("z0", 40), ("z1", 50)])
    mask = b.broadcast_to(b.load(b.data(0, BOOL), (1, 0)), (1, 1))
    x, y = b.load(b.data(1, FLOAT32), (1, 1)), b.load(b.data(2, FLOAT32), (1, 1))
    b.store(b.op("Where", mask, x, y, dtype=FLOAT32), 0)
    return region(
        "SelectV2",
        b,
        [(BOOL, (40, 1)), (FLOAT32, (40, 50)), (FLOAT32, (40, 50))],
        [(FLOAT32, (40, 50))],
        [((40, 1), (40, 50), (40, 50))],
    )


def many_inputs() -> Region:
    b = HintBuilder("g", [("z0", 700)])
    total = b.load(b.data(0, FLOAT32), (1,))
    for i in range(1, 7):
        total = b.op("Add", total, b.load(b.data(i, FLOAT32), (1,)))
    b.store(total, 0)
    return region("AddN", b, [(FLOAT32, (700,))] * 7, [(FLOAT32, (700,))], [((700,),) * 7])


def unread_input() -> Region:
    """An input that only the original ops read: its dims are checked, its memory is left alone."""
    b = HintBuilder("g", [("z0", 10)])
    b.store(b.op("Sqrt", b.load(b.data(1, FLOAT32), (1,))), 0)
    return region(
        "Sqrt", b, [(INT32, (2,)), (FLOAT32, (10,))], [(FLOAT32, (10,))], [((2,), (10,))], [((3,), (10,))]
    )


def zero_size() -> Region:
    b = HintBuilder("g", [("z0", 0), ("z1", 8)])
    b.store(b.op("Abs", b.load(b.data(0, FLOAT32), (1, 1))), 0)
    return region("Abs0", b, [(FLOAT32, (0, 8))], [(FLOAT32, (0, 8))], [((0, 8),)])


def static_vector(n: int) -> Region:
    b = HintBuilder("g", [("z0", n)])
    x, y = b.load(b.data(0, FLOAT32), (1,)), b.load(b.data(1, FLOAT32), (1,))
    b.store(b.op("Relu", b.op("Sub", x, y)), 0)
    return region("Sub_Relu%d" % n, b, [(FLOAT32, (n,))] * 2, [(FLOAT32, (n,))], [((n,), (n,))])


GOLDEN = {
    "public_example": public_example,
    "public_example_half": public_example_half,
    "column": column,
    "outer_product": outer_product,
    "constants": constants,
    "select": select,
    "several_outputs": several_outputs,
    "symbolic": symbolic,
    "run_time_broadcast": run_time_broadcast,
}


def all_regions() -> Dict[str, Region]:
    regions = {name: make() for name, make in GOLDEN.items()}
    regions.update(
        {
            f.__name__: f()
            for f in (
                flat_symbolic,
                run_time_broadcast_inner,
                rank_0,
                scalar_tensor,
                middle_broadcast,
                four_dims,
                sliced,
                copies,
                bool_column,
                many_inputs,
                unread_input,
                zero_size,
            )
        }
    )
    for dtype in (FLOAT16, BFLOAT16):
        regions["sixteen_bit_" + dtype.name] = sixteen_bit(dtype)
    for dtype in (INT32, INT16):
        regions["integers_" + dtype.name] = integers(dtype)
    regions["column_int32"] = column(INT32, 8)
    for n in (1, 7, 8, 31, 65):
        regions["static_vector_%d" % n] = static_vector(n)
    return regions
