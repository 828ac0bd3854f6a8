"""Which TF ops are matrix products, and which are streams over their data: by dtypes, dims and attributes.

Why: TF keeps these ops whatever is fused around them, so a model's time is not told without them. On entry an
op with known dims; on exit its `Product` (cube_time.py), or what a stream costs; None where the op is
neither. Convolutions are products of the image's patches with the filter; halos of patches are not counted
twice. Tables: heavy_table.py."""

import math
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence

from tf_autofuse.ir.dtypes import BY_NAME
from tf_autofuse.machine import Machine, usable_ub
from tf_autofuse.profiling import heavy_table as heavy
from tf_autofuse.profiling.cube_time import Product
from tf_autofuse.profiling.records import Tensor
from tf_autofuse.symbolic.size import product
from tf_autofuse.tiling import cost_table as table


def elements(tensor: Tensor) -> int:
    return product(tensor.dims)


def size_of(tensor: Tensor) -> int:
    """Bytes."""
    return elements(tensor) * BY_NAME[tensor.dtype].bytes


def _product(
    factors, output: Tensor, batch: int, m: int, n: int, k: int, is_image: bool = False
) -> Optional[Product]:
    a, b = factors
    if a.dtype not in heavy.MULTIPLY:
        return None
    row = k * BY_NAME[a.dtype].bytes
    if is_image:
        row = min(row, size_of(a) / max(1, batch * m))
    out = BY_NAME[output.dtype].bytes
    return Product(batch, m, n, k, row, size_of(a) + size_of(b), a.dtype, out)


def _matmul(inputs: Sequence[Tensor], output: Tensor) -> Optional[Product]:
    """Whether a factor is transposed decides nothing here: its common dim is what the result lacks."""
    a, dims = inputs[0], output.dims
    if len(dims) < 2 or len(a.dims) < 2:
        return None
    m, n = dims[-2:]
    # Matrices of a result and of a factor that is broadcast over it.
    batch, mine = elements(output) // max(1, m * n), elements(a) // max(1, a.dims[-1] * a.dims[-2])
    k = elements(a) // max(1, mine * m)
    if batch > 1 and elements(inputs[1]) == k * n:  # one right factor for all: a longer left one
        return _product(inputs[:2], output, 1, batch * m, n, k)
    return _product(inputs[:2], output, batch, m, n, k)


def _conv(inputs: Sequence[Tensor], output: Tensor) -> Optional[Product]:
    """Conv2D, Conv3D: the filter is [.., channels in, channels out] in every data format."""
    n = inputs[1].dims[-1]
    return _product(inputs[:2], output, 1, elements(output) // max(1, n), n,
                    elements(inputs[1]) // max(1, n), True)


def _depthwise(inputs: Sequence[Tensor], output: Tensor) -> Optional[Product]:
    """The filter is [height, width, channels, multiplier]; a block's columns are as many channels, each of
    which uses its own rows only."""
    height, width, channels, multiplier = inputs[1].dims
    out = channels * multiplier
    side = heavy.BLOCK_CHANNELS
    pixels = elements(output) // max(1, out)
    return _product(inputs[:2], output, -(-out // side), pixels, side, height * width * side, True)


def _conv_to_input(inputs: Sequence[Tensor], output: Tensor) -> Optional[Product]:
    """Inputs: dims, filter, gradient of the result."""
    _, weights, gradient = inputs[:3]
    n, out = weights.dims[-2:]
    pixels = elements(output) // max(1, n)
    multiplied = elements(gradient) * (elements(weights) // max(1, out))
    return _product((gradient, weights), output, 1, pixels, n, -(-multiplied // max(1, pixels * n)), True)


def _conv_to_filter(inputs: Sequence[Tensor], output: Tensor) -> Optional[Product]:
    """Inputs: image, dims, gradient of the result."""
    image, _, gradient = inputs[:3]
    n = output.dims[-1]
    rows = elements(output) // max(1, n)
    return _product((image, gradient), output, 1, rows, n, elements(gradient) // max(1, n), True)


PRODUCTS: Dict[str, Callable[[Sequence[Tensor], Tensor], Optional[Product]]] = {
    "MatMul": _matmul,
    "BatchMatMul": _matmul,
    "BatchMatMulV2": _matmul,
    "SparseMatMul": _matmul,
    "_FusedMatMul": _matmul,
    "Conv2D": _conv,
    "_FusedConv2D": _conv,
    "Conv3D": _conv,
    "DepthwiseConv2dNative": _depthwise,
    "Conv2DBackpropInput": _conv_to_input,
    "Conv2DBackpropFilter": _conv_to_filter,
}


def product_of(op: str, inputs, outputs) -> Optional[Product]:
    """The op as a matrix product; None where it is none, or of a dtype that the cube does not take."""
    row = PRODUCTS.get(op)
    return row(inputs, outputs[0]) if row is not None else None


class StreamCost(NamedTuple):
    """Cycles of the kernel; mte2, vector, mte3: busy cycles of one core."""

    cycles: float
    cores: int
    mte2: float
    vector: float
    mte3: float


def stream_of(op: str, inputs, outputs, attrs: Mapping[str, Any], machine: Machine) -> Optional[StreamCost]:
    """The cost of an op of heavy_table.STREAMS; None for others."""
    row = heavy.STREAMS.get(op)
    if row is None:
        return None
    first = inputs[0] if inputs else outputs[0]
    cycles = 0.0
    starts = 0.0
    for api, where, times in row.work:
        on = outputs[0] if where == "out" else first
        count = _times(times, first, outputs[0], attrs)
        cost = table.VECTOR[api].of(BY_NAME[on.dtype])
        cycles += count * elements(on) * cost.k
        starts += count * cost.b
    read = sum(map(size_of, inputs)) if any(api != "Duplicate" for api, _, _ in row.work) else 0
    return stream_cost(read, sum(map(size_of, outputs)), cycles, starts, machine)


def lookup_of(op: str, inputs, outputs, machine: Machine) -> Optional[StreamCost]:
    """The cost of an op of heavy_table.GATHERS that takes single elements of a small table; None for
    others."""
    if op not in heavy.GATHERS:
        return None
    data, index = inputs[:2]
    count = elements(outputs[0])
    if not count or elements(index) != count or size_of(data) > usable_ub(machine, False) // 4:
        return None
    dtypes = [BY_NAME[t.dtype] for t in (data, index)]
    row = table.VECTOR["Gather"].of(dtypes[0])
    costs = [row, table.MULS_INT32]
    if dtypes[1].bytes == 8:
        costs.append(table.VECTOR["Cast i64->i32"].of(dtypes[1]))
    work, starts = (sum(getattr(c, part) for c in costs) for part in ("k", "b"))
    return min(
        (
            _on_cores(cores, 2 * cores * size_of(data) + size_of(index), size_of(outputs[0]), count * work,
                      starts, machine)
            for cores in _core_counts(machine)
        ),
        key=lambda s: s.cycles,
    )


def _times(times, first: Tensor, output: Tensor, attrs) -> float:
    if times == "window":
        window = attrs.get("ksize")
        # Without attributes: windows side by side, the least that the dims allow.
        return product(window) if window else max(1.0, elements(first) / max(1, elements(output)))
    length = (first.dims or (1,))[-1]
    if times == "sort":
        return 2.0 * (1 + math.ceil(math.log(max(1.0, length / 32), 4)))
    if times == "scan":
        return max(1, math.ceil(math.log2(max(2, length))))
    return float(times)


def stream_cost(read: int, written: int, work: float, starts: float, machine: Machine) -> StreamCost:
    """The cheapest number of cores for a kernel that reads and writes so many bytes in tiles of a quarter of
    UB. work: cycles of its vector instructions over all elements; starts: cycles that they take for each
    tile besides."""
    found = (_on_cores(c, read, written, work, starts, machine) for c in _core_counts(machine))
    return min(found, key=lambda s: s.cycles)


def _core_counts(machine: Machine) -> List[int]:
    return sorted({min(machine.vector_cores, 1 << i) for i in range(8)} | {machine.vector_cores})


def _on_cores(
    cores: int, read: int, written: int, work: float, starts: float, machine: Machine
) -> StreamCost:
    tiles = max(1, -(-(read + written) // (cores * (usable_ub(machine, False) // 4))))
    large = read / (cores * tiles) >= table.DMA_LARGE_BYTES
    rate = table.LOAD_RATE_LARGE if large else table.LOAD_RATE_SMALL
    head = table.LOAD_HEAD_LARGE if large else table.LOAD_HEAD_SMALL
    load = read / (cores * tiles * (rate.alone + rate.shared / cores)) + table.LOAD_START if read else 0.0
    vector = work / (cores * tiles) + starts
    out = table.STORE_RATE.alone + table.STORE_RATE.shared / cores
    store = written / (cores * tiles * out) + table.STORE_START
    begun = head.per_block * cores + head.b if read else 0.0
    ready = max(begun + load, table.VECTOR_HEAD)
    stored = max(ready + vector, table.STORE_HEAD)
    cycles = max(
        begun + tiles * load + vector + store,
        ready + tiles * vector + store,
        stored + tiles * store,
    )
    return StreamCost(table.LAUNCH + cycles, cores, tiles * load, tiles * vector, tiles * store)

