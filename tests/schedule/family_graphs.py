"""Random HintGraphs of the families that move and reduce: reductions over any axes, copies of any order of
strides, gathers. Numbers are small integers, so that sums are exact in any order."""
from hypothesis import strategies as st

from tests.schedule.graphs import Sample
from tf_autofuse.ir.builder import HintBuilder
from tf_autofuse.ir.dtypes import FLOAT32, INT16, INT32, INT64
from tf_autofuse.symbolic.guards import InputDim, SizeVar
from tf_autofuse.symbolic.size import symbol


def _axes(draw, rank):
    """(axes, symbols, sizes); the sizes' sources are not read by schedules."""
    axes, symbols = [], []
    for i in range(rank):
        if draw(st.integers(0, 2)) == 0:
            symbols.append("s%d" % i)
            axes.append(("z%d" % i, symbol("s%d" % i)))
        else:
            axes.append(("z%d" % i, draw(st.sampled_from((2, 3, 5, 8, 9, 17)))))
    return axes, tuple(symbols), tuple(SizeVar(s, InputDim(0, int(s[1:]))) for s in symbols)


def _permuted(draw, b, number, dtype, axes):
    """A Load of a tensor whose axes lie in GM in another order than the loops'; (ref, dims of the tensor)."""
    order = draw(st.permutations(range(len(axes))))
    strides, step = [0] * len(axes), 1
    for i in reversed(order):
        strides[i] = step
        step = step * axes[i][1]
    return b.load(b.data(number, dtype), (1,) * len(axes), strides), tuple(axes[i][1] for i in order)


@st.composite
def moving_samples(draw) -> Sample:
    """Loads and Stores in any order of strides, of data of any width."""
    rank = draw(st.integers(1, 4))
    axes, symbols, sizes = _axes(draw, rank)
    b = HintBuilder("moving", axes, sizes)
    dtypes, dims = [], []
    for number in range(draw(st.integers(1, 2))):
        dtypes.append(draw(st.sampled_from((FLOAT32, INT16, INT32, INT64))))
        x, shape = _permuted(draw, b, number, dtypes[-1], axes)
        dims.append(shape)
        b.store(b.op("Neg", x) if dtypes[-1] is FLOAT32 and draw(st.booleans()) else x, number)
    return Sample(b.graph(), tuple(dims), tuple(dtypes), len(dims), symbols)


@st.composite
def reducing_samples(draw) -> Sample:
    """One or two reductions over the same or other axes, read again together with their source."""
    rank = draw(st.integers(1, 4))
    axes, symbols, sizes = _axes(draw, rank)
    full = (1,) * rank
    b = HintBuilder("reducing", axes, sizes)
    dtype = draw(st.sampled_from((FLOAT32, FLOAT32, INT32)))
    if draw(st.booleans()):
        x, shape = _permuted(draw, b, 0, dtype, axes)
    else:
        x, shape = b.load(b.data(0, dtype), full), tuple(a[1] for a in axes)
    dims, dtypes = [shape], [dtype]
    if draw(st.booleans()):
        mask = tuple(draw(st.integers(0, 1)) for _ in range(rank))
        row = b.load(b.data(1, dtype), mask)
        x = b.op("Add", x, b.broadcast_to(row, full))
        dims.append(tuple(a[1] if m else 1 for a, m in zip(axes, mask)))
        dtypes.append(dtype)
    outputs = 0
    for _ in range(draw(st.integers(1, 2))):
        reduced = draw(st.sets(st.integers(0, rank - 1), min_size=1))
        value = b.reduce(draw(st.sampled_from(("Sum", "Max", "Min"))), x, tuple(reduced))
        if draw(st.booleans()):
            b.store(value, outputs)
            outputs += 1
        x = b.op("Sub", x, b.broadcast_to(value, full))
    if outputs == 0 or draw(st.booleans()):
        b.store(x, outputs)
        outputs += 1
    return Sample(b.graph(), tuple(dims), tuple(dtypes), outputs, symbols)


@st.composite
def gathering_samples(draw) -> Sample:
    """table[..., index, ...] with the index along one axis, behind it what a model does with it."""
    before, after = draw(st.integers(0, 1)), draw(st.integers(0, 2))
    rank = before + 1 + after
    axes, symbols, sizes = _axes(draw, rank)
    b = HintBuilder("gathering", axes, sizes)
    limit = draw(st.sampled_from((1, 4, 60)))
    table = [a[1] for a in axes]
    table[before] = limit
    strides, step = [0] * rank, 1
    for i in reversed(range(rank)):
        strides[i] = step
        step = step * table[i]
    index_stride, strides[before] = strides[before], 0
    mask = tuple(int(i == before) for i in range(rank))
    index = b.load(b.data(1, draw(st.sampled_from((INT32, INT64)))), mask)
    x = b.gather(b.data(0, FLOAT32), index, (1,) * rank, strides, index_stride, limit)
    if rank > 1 and draw(st.booleans()):
        b.store(b.reduce("Sum", x, (draw(st.integers(0, rank - 1)),)), 0)
    else:
        b.store(b.op("Abs", x) if draw(st.booleans()) else x, 0)
    return Sample(b.graph(), (tuple(table), (axes[before][1],)), (FLOAT32, b.tensor(index).dtype), 1, symbols)


def index_limit(sample: Sample) -> int:
    """The size that the indices of a gathering sample must stay below."""
    (node,) = sample.graph.of_type("Gather")
    return node.attr("index_size")
