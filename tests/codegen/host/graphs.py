"""HintGraphs for the host target's tests: reductions, gathers, parts, several loop nests."""
from dataclasses import replace
from typing import Dict, List, NamedTuple, Sequence, Tuple

import numpy as np

from tests.ir import samples
from tests.strategies import arrays_for
from tf_autofuse.ir.asc_graph import FusedGraph, KernelIO
from tf_autofuse.ir.builder import HintBuilder
from tf_autofuse.ir.dtypes import BOOL, FLOAT16, FLOAT32, FLOAT64, INT32, INT64, DType
from tf_autofuse.symbolic.guards import Guard, InputDim, SizeVar
from tf_autofuse.symbolic.size import broadcast_size, stride_or_zero, symbol

S0, S1 = symbol("s0"), symbol("s1")
#: Sums are right within 1e-5 of this or of the result, whichever is larger: inputs are moderate.
SCALE = 10.0
#: Graphs without rounding, which are compared bit for bit.
EXACT = ("fill", "concat", "transposed", "extremes", "arg", "logic", "integers", "large_flat", "many_nests",
         "short_rows_max", "transposed_any")


class Case(NamedTuple):
    fused: FusedGraph
    dims: Tuple[Tuple[Tuple[int, ...], ...], ...]


def fused(name: str, graphs, inputs, outputs, sizes=()) -> FusedGraph:
    """inputs, outputs: (dtype, dims) each."""
    return FusedGraph(name, "reduce", tuple(KernelIO(*t) for t in inputs), tuple(KernelIO(*t)
                                                                                 for t in outputs),
                      tuple(sizes), (), tuple(g.graph() for g in graphs))


def reduced(name: str, axes, along: Sequence[int], types: Sequence[str], dtype: DType = FLOAT32, sizes=(),
            out: DType = None) -> FusedGraph:
    """Reductions of |x| (or x where it is not a float) over the axes numbered in `along`, one output each."""
    b = HintBuilder(name, axes, sizes)
    x = b.load(b.data(0, dtype), (1,) * len(axes))
    x = b.op("Neg", x) if dtype.is_floating else x
    dims = [s for _, s in axes]
    kept = [1 if i in along else s for i, s in enumerate(dims)]
    outputs = []
    for i, type_ in enumerate(types):
        result = out or (BOOL if type_ in ("Any", "All") else dtype)
        b.store(b.reduce(type_, x, tuple(along), dtype=result) if out else b.reduce(type_, x, tuple(along)),
                i)
        outputs.append((result, kept))
    return fused(name, [b], [(dtype, dims)], outputs, sizes)


def normalized(name: str, rows, width, sizes=(), both: bool = False) -> FusedGraph:
    """(x - mean) / sqrt(variance + 0.5) over the last axis; both: also max(x) over all."""
    b = HintBuilder(name, [("z0", rows), ("z1", width)], sizes)
    x = b.load(b.data(0, FLOAT32), (1, 1))
    count = b.scalar(float(width) if isinstance(width, int) else width, FLOAT32)
    mean = b.op("Div", b.reduce("Sum", x, (1,)), count)
    centred = b.op("Sub", x, b.broadcast_to(mean, (1, 1)))
    variance = b.op("Div", b.reduce("Sum", b.op("Mul", centred, centred), (1,)), count)
    root = b.op("Sqrt", b.op("Add", variance, b.scalar(0.5, FLOAT32)))
    b.store(b.op("Div", centred, b.broadcast_to(root, (1, 1))), 0)
    outputs = [(FLOAT32, (rows, width))]
    if both:
        b.store(b.reduce("Max", mean, (0,)), 1)
        outputs.append((FLOAT32, (1, 1)))
    return fused(name, [b], [(FLOAT32, (rows, width))], outputs, sizes)


def relu_and_softmax() -> FusedGraph:
    b = HintBuilder("relu_and_softmax", [("z0", 4), ("z1", 37)])
    x = b.load(b.data(0, FLOAT32), (1, 1))
    b.store(b.op("Relu", x), 0)
    shifted = b.op("Sub", x, b.broadcast_to(b.reduce("Max", x, (1,)), (1, 1)))
    b.store(shifted, 1)
    return fused("relu_and_softmax", [b], [(FLOAT32, (4, 37))], [(FLOAT32, (4, 37))] * 2)


def softmax() -> FusedGraph:
    """x - max(x), over the last axis, divided by the sum of its square roots: a softmax of exact ops."""
    b = HintBuilder("softmax", [("z0", 5), ("z1", 200)])
    x = b.load(b.data(0, FLOAT32), (1, 1))
    shifted = b.op("Sqrt", b.op("Abs", b.op("Sub", x, b.broadcast_to(b.reduce("Max", x, (1,)), (1, 1)))))
    dear = b.op("Div", shifted, b.op("Add", shifted, b.scalar(1.0, FLOAT32)))
    b.store(b.op("Div", dear, b.broadcast_to(b.reduce("Sum", dear, (1,)), (1, 1))), 0)
    return fused("softmax", [b], [(FLOAT32, (5, 200))], [(FLOAT32, (5, 200))])


def column_softmax() -> FusedGraph:
    """The same over axis 0, and the divisor through a dear tile value."""
    b = HintBuilder("column_softmax", [("z0", 70), ("z1", 300)])
    x = b.load(b.data(0, FLOAT32), (1, 1))
    peak = b.op("Div", b.reduce("Max", x, (0,)), b.scalar(3.0, FLOAT32))
    shifted = b.op("Sub", x, b.broadcast_to(peak, (1, 1)))
    total = b.op("Sqrt", b.op("Abs", b.op("Div", b.reduce("Sum", shifted, (0,)), b.scalar(70.0, FLOAT32))))
    b.store(b.op("Mul", shifted, b.broadcast_to(total, (1, 1))), 0)
    b.store(total, 1)
    return fused("column_softmax", [b], [(FLOAT32, (70, 300))], [(FLOAT32, (70, 300)), (FLOAT32, (1, 300))])


def kept_any(rows, width, sizes=()) -> FusedGraph:
    """y = r / (r + 1) for r = sqrt(abs(x)), or 0 in rows where no y is above 0.75: y is kept in a row buffer,
    by passes over as many lanes as bools have."""
    b = HintBuilder("kept_any", [("z0", rows), ("z1", width)], sizes)
    root = b.op("Sqrt", b.op("Abs", b.load(b.data(0, FLOAT32), (1, 1))))
    ratio = b.op("Div", root, b.op("Add", root, b.scalar(1.0, FLOAT32)))
    found = b.reduce("Any", b.compare("Gt", ratio, b.scalar(0.75, FLOAT32)), (1,))
    kept = b.op("Cast", b.broadcast_to(found, (1, 1)), dtype=FLOAT32)
    b.store(b.op("Mul", ratio, kept), 0)
    return fused("kept_any", [b], [(FLOAT32, (rows, width))], [(FLOAT32, (rows, width))], sizes)


def functions(rows, width, sizes=(), half: bool = False) -> FusedGraph:
    """Functions of functions: each has a loop of its own; what the first gives is an output too. y is a row.
    half: of float16."""
    b = HintBuilder("functions", [("z0", rows), ("z1", width)], sizes)
    dtype = FLOAT16 if half else FLOAT32
    x, y = b.load(b.data(0, dtype), (1, 1)), b.load(b.data(1, dtype), (0, 1))
    if half:
        x, y = b.op("Cast", x, dtype=FLOAT32), b.op("Cast", y, dtype=FLOAT32)
    y = b.broadcast_to(y, (1, 1))
    first = b.op("Tanh", b.op("Mul", x, b.scalar(0.5, FLOAT32)))
    second = b.op("Sigmoid", b.op("Sub", b.op("Mul", y, y), first))
    third = b.op("Exp", b.op("Mul", first, b.op("Minimum", second, y)))
    result = b.op("Sub", third, x)
    b.store(b.op("Cast", result, dtype=FLOAT16) if half else result, 0)
    b.store(first, 1)
    return fused("functions", [b], [(dtype, (rows, width)), (dtype, (1, width))],
                 [(dtype, (rows, width)), (FLOAT32, (rows, width))], sizes)


def transposed() -> FusedGraph:
    """x[n, m] read as [m, n], added to y[m, n]."""
    b = HintBuilder("transposed", [("z0", 33), ("z1", 45)])
    x = b.load(b.data(0, FLOAT32), (1, 1), strides=(1, 33))
    b.store(b.op("Add", x, b.load(b.data(1, FLOAT32), (1, 1))), 0)
    return fused("transposed", [b], [(FLOAT32, (45, 33)), (FLOAT32, (33, 45))], [(FLOAT32, (33, 45))])


def transposed_any() -> FusedGraph:
    """x[s1, 6, s0] with all axes the other way round, less y[6, s1]: two tensors are read across their
    rows."""
    sizes = (SizeVar("s0", InputDim(0, 2), 4), SizeVar("s1", InputDim(0, 0), 5))
    b = HintBuilder("transposed_any", [("z0", S0), ("z1", 6), ("z2", S1)], sizes)
    x = b.load(b.data(0, INT32), (1, 1, 1), strides=(1, S0, 6 * S0))
    y = b.load(b.data(1, INT32), (0, 1, 1), strides=(0, S1, 1))
    b.store(b.op("Sub", x, b.broadcast_to(y, (1, 1, 1))), 0)
    return fused("transposed_any", [b], [(INT32, (S1, 6, S0)), (INT32, (6, S1))], [(INT32, (S0, 6, S1))],
                 sizes)


def transposed_sum() -> FusedGraph:
    """The sum over axis 0 of x[m, n] read as [n, m]: contiguous along the reduced axis."""
    b = HintBuilder("transposed_sum", [("z0", 50), ("z1", 7)])
    x = b.load(b.data(0, FLOAT32), (1, 1), strides=(1, 50))
    b.store(b.reduce("Sum", x, (0,)), 0)
    return fused("transposed_sum", [b], [(FLOAT32, (7, 50))], [(FLOAT32, (1, 7))])


def large_flat() -> FusedGraph:
    b = HintBuilder("large_flat", [("z0", 1 << 20)])
    b.store(b.op("Relu", b.op("Neg", b.load(b.data(0, FLOAT32), (1,)))), 0)
    return fused("large_flat", [b], [(FLOAT32, (1 << 20,))], [(FLOAT32, (1 << 20,))])


def many_nests() -> FusedGraph:
    """Maxima over each axis of one tensor, over both, and the tensor less the latter: nests with scratch
    tensors."""
    b = HintBuilder("many_nests", [("z0", 9), ("z1", 35)])
    x = b.load(b.data(0, FLOAT32), (1, 1))
    b.store(b.reduce("Max", x, (1,)), 0)
    columns = b.reduce("Max", x, (0,))
    b.store(columns, 1)
    b.store(b.op("Sub", x, b.broadcast_to(b.reduce("Min", columns, (1,)), (1, 1))), 2)
    return fused("many_nests", [b], [(FLOAT32, (9, 35))],
                 [(FLOAT32, (9, 1)), (FLOAT32, (1, 35)), (FLOAT32, (9, 35))])


def gathered_elements() -> FusedGraph:
    """table[index[i]] for every element, in the innermost loop."""
    b = HintBuilder("gathered_elements", [("z0", S0)], (SizeVar("s0", InputDim(1, 0), 9),))
    index = b.load(b.data(1, INT32), (1,))
    rows = b.gather(b.data(0, FLOAT32), index, (1,), (0,), index_stride=1, index_size=10)
    b.store(b.op("Neg", rows), 0)
    return fused("gathered_elements", [b], [(FLOAT32, (10,)), (INT32, (S0,))], [(FLOAT32, (S0,))],
                 (SizeVar("s0", InputDim(1, 0), 9),))


def chunked_any() -> FusedGraph:
    """abs(x[s0, 5, 20]) summed over axes 0 and 2, then its square root; and abs(x) itself."""
    sizes = (SizeVar("s0", InputDim(0, 0), 9),)
    b = HintBuilder("chunked_any", [("z0", S0), ("z1", 5), ("z2", 20)], sizes)
    x = b.op("Abs", b.load(b.data(0, FLOAT32), (1, 1, 1)))
    b.store(x, 0)
    b.store(b.op("Sqrt", b.reduce("Sum", x, (0, 2))), 1)
    return fused("chunked_any", [b], [(FLOAT32, (S0, 5, 20))], [(FLOAT32, (S0, 5, 20)), (FLOAT32, (1, 5, 1))],
                 sizes)


def stored_beside() -> FusedGraph:
    """abs(x[5]) stored, and its sum with y[s0, 5] over axis 0: the first is stored where s0 is 0 too."""
    sizes = (SizeVar("s0", InputDim(1, 0), 9),)
    b = HintBuilder("stored_beside", [("z0", S0), ("z1", 5)], sizes)
    x = b.op("Abs", b.load(b.data(0, FLOAT32), (0, 1)))
    y = b.load(b.data(1, FLOAT32), (1, 1))
    b.store(b.reduce("Sum", b.op("Add", b.broadcast_to(x, (1, 1)), y), (0,)), 0)
    b.store(x, 1, dims=(0, 1))
    return fused(
        "stored_beside", [b], [(FLOAT32, (1, 5)), (FLOAT32, (S0, 5))], [(FLOAT32, (1, 5))] * 2, sizes
    )


def strided_sum() -> FusedGraph:
    """The sum of x[s0] + y[s1], either of which may have one element that counts for all: long, so
    in chunks."""
    size = broadcast_size(S0, S1)
    sizes = (SizeVar("s0", InputDim(0, 0)), SizeVar("s1", InputDim(1, 0)), SizeVar("s2", size))
    b = HintBuilder("strided_sum", [("z0", size)], sizes)
    x = b.load(b.data(0, FLOAT32), (1,), strides=(stride_or_zero(S0, 1),))
    y = b.load(b.data(1, FLOAT32), (1,), strides=(stride_or_zero(S1, 1),))
    b.store(b.reduce("Sum", b.op("Add", x, y), (0,)), 0)
    graph = fused("strided_sum", [b], [(FLOAT32, (S0,)), (FLOAT32, (S1,))], [(FLOAT32, (1,))], sizes)
    return replace(graph, guards=(Guard("broadcast", S0, S1),))


def all_graphs() -> Dict[str, Case]:
    two = (SizeVar("s0", InputDim(0, 0), 4), SizeVar("s1", InputDim(0, 1), 6))
    ends = ("Max", "Min")
    any_size = tuple(((n, m),) for n, m in ((4, 6), (1, 65), (3, 1000), (0, 5), (5, 0), (200, 33), (2, 2),
                                            (65, 1)))
    found = {
        "fill": Case(samples.fill(), (((6,),),)),
        "concat": Case(samples.concat(), (((4, 2), (4, 2)),)),
        "two_reductions": Case(samples.two_reductions(), (((3, 4),),)),
        "embedding": Case(samples.embedding(), (((10, 4), (6,)),)),
        "gathered_elements": Case(gathered_elements(), tuple(((10,), (n,)) for n in (9, 1, 0, 100))),
        "relu_and_softmax": Case(relu_and_softmax(), (((4, 37),),)),
        "softmax": Case(softmax(), (((5, 200),),)),
        "kept_any": Case(kept_any(S0, S1, two), any_size),
        "kept_any_514": Case(kept_any(7, 514), (((7, 514),),)),
        "column_softmax": Case(column_softmax(), (((70, 300),),)),
        "functions": Case(functions(S0, S1, two), tuple(((n, m), (1, m)) for n, m in (
            (3, 1100), (4, 6), (2, 512), (1, 1), (0, 5), (5, 0)))),
        "functions_half": Case(functions(3, 700, half=True), (((3, 700), (1, 700)),)),
        "functions_short": Case(functions(50, 9), (((50, 9), (1, 9)),)),
        "transposed": Case(transposed(), (((45, 33), (33, 45)),)),
        "transposed_any": Case(transposed_any(), tuple(
            ((m, 6, n), (6, m)) for n, m in ((4, 5), (1, 1), (16, 300), (35, 64), (0, 3), (3, 0)))),
        "transposed_sum": Case(transposed_sum(), (((7, 50),),)),
        "norm": Case(normalized("norm", 6, 129), (((6, 129),),)),
        "norm_any": Case(normalized("norm_any", S0, S1, two), any_size[:3] + any_size[5:]),
        "norm_both": Case(normalized("norm_both", 40, 64, both=True), (((40, 64),),)),
        "sum_rows": Case(reduced("sum_rows", [("z0", S0), ("z1", S1)], (1,), ("Sum", "Prod"), sizes=two),
                         any_size),
        "sum_columns": Case(reduced("sum_columns", [("z0", S0), ("z1", S1)], (0,), ("Sum",), sizes=two),
                            any_size),
        "sum_all": Case(reduced("sum_all", [("z0", S0), ("z1", S1)], (0, 1), ("Sum",), sizes=two), any_size),
        "sum_middle": Case(reduced("sum_middle", [("z0", 3), ("z1", 70), ("z2", 40)], (1,), ("Sum",)),
                           (((3, 70, 40),),)),
        "sum_outer_inner": Case(reduced("sum_outer_inner", [("z0", 6), ("z1", 5), ("z2", 43)], (0, 2),
                                        ("Sum",)),
                                (((6, 5, 43),),)),
        "sum_double": Case(reduced("sum_double", [("z0", 4), ("z1", 999)], (1,), ("Sum",), FLOAT64), (((4,
                999),),)),
        "extremes": Case(reduced("extremes", [("z0", 7), ("z1", 77)], (1,), ends), (((7, 77),),)),
        "short_rows_max": Case(reduced("short_rows_max", [("z0", 50), ("z1", 3)], (1,), ends), (((50, 3),),)),
        "integers": Case(reduced("integers", [("z0", 9), ("z1", 41)], (0,), ("Sum", "Prod") + ends, INT32),
                         (((9, 41),),)),
        "logic": Case(reduced("logic", [("z0", 9), ("z1", 70)], (1,), ("Any", "All"), BOOL), (((9, 70),),)),
        "arg": Case(reduced("arg", [("z0", 6), ("z1", 100)], (1,), ("ArgMax", "ArgMin"), out=INT64), (((6,
                100),),)),
        "arg_columns": Case(reduced("arg_columns", [("z0", 30), ("z1", 21)], (0,), ("ArgMax", "ArgMin"),
                                    out=INT64),
                            (((30, 21),),)),
        "large_rows": Case(reduced("large_rows", [("z0", 512), ("z1", 2048)], (1,), ("Sum",)), (((512,
                                                                                                  2048),),)),
        "large_columns": Case(reduced("large_columns", [("z0", 512), ("z1", 2048)], (0,), ("Sum",)),
                              (((512, 2048),),)),
        "chunked_rows": Case(reduced("chunked_rows", [("z0", 3), ("z1", 100001)], (1,), ("Sum", "Max")),
                             (((3, 100001),),)),
        "chunked_columns": Case(reduced("chunked_columns", [("z0", 4099), ("z1", 70)], (0,), ("Sum", "Min")),
                                (((4099, 70),),)),
        "chunked_any": Case(chunked_any(), tuple(((n, 5, 20),) for n in (1, 0, 7, 200, 2000))),
        "stored_beside": Case(stored_beside(), tuple(((1, 5), (n, 5)) for n in (9, 0, 1, 3000))),
        "strided_sum": Case(strided_sum(), tuple(
            ((n,), (m,)) for n, m in ((5, 5), (1, 9), (9, 1), (1, 1), (0, 1), (70000, 1), (40000, 40000)))),
        "large_flat": Case(large_flat(), (((1 << 20,),),)),
        "many_nests": Case(many_nests(), (((9, 35),),)),
    }
    return found


def inputs_for(name: str, graph: FusedGraph, dims, seed: int) -> List[np.ndarray]:
    """Moderate values for what rounds; indices in range; special values for the rest."""
    if name in EXACT:
        return arrays_for(graph, dims, seed)
    random = np.random.RandomState(seed)
    made = []
    for t, shape in zip(graph.inputs, dims):
        if t.dtype.is_integer:
            made.append(random.randint(0, 10, shape).astype(t.dtype.numpy))
        elif t.dtype in (FLOAT32, FLOAT64):
            made.append(np.asarray(random.uniform(0.5, 1.5, shape) * random.choice([-1, 1], shape),
                                   t.dtype.numpy))
        else:
            return arrays_for(graph, dims, seed)
    return made
