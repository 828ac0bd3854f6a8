"""TF ops as products and streams: what is read off their dims."""

import math
from dataclasses import replace

import pytest

from tf_autofuse.machine import machine_for
from tf_autofuse.profiling import npu_time
from tf_autofuse.profiling.heavy_ops import PRODUCTS, lookup_of, product_of, stream_cost, stream_of
from tf_autofuse.profiling.heavy_table import STREAMS
from tf_autofuse.profiling.records import Tensor
from tf_autofuse.tiling import cost_table as table

MACHINE = machine_for("")
SIZES = Tensor("int32", (4,))


def half(*dims):
    return Tensor("float16", dims)


def shape_of(op, inputs, output):
    p = product_of(op, inputs, (output,))
    return p.batch, p.m, p.n, p.k


@pytest.mark.parametrize("op, inputs, output, expected", [
    ("MatMul", (half(8, 5), half(5, 3)), half(8, 3), (1, 8, 3, 5)),
    ("MatMul", (half(5, 8), half(3, 5)), half(8, 3), (1, 8, 3, 5)),  # both transposed
    ("BatchMatMulV2", (half(2, 6, 8, 5), half(2, 6, 5, 3)), half(2, 6, 8, 3), (12, 8, 3, 5)),
    ("BatchMatMul", (half(4, 5, 8), half(4, 5, 3)), half(4, 8, 3), (4, 8, 3, 5)),
    ("BatchMatMulV2", (half(4, 8, 5), half(5, 3)), half(4, 8, 3), (1, 32, 3, 5)),
    ("BatchMatMulV2", (half(8, 5), half(4, 5, 3)), half(4, 8, 3), (4, 8, 3, 5)),
    ("Conv2D", (half(1, 32, 32, 8), half(3, 3, 8, 16)), half(1, 16, 16, 16), (1, 256, 16, 72)),
    ("Conv2D", (half(1, 8, 32, 32), half(3, 3, 8, 16)), half(1, 16, 16, 16), (1, 256, 16, 72)),
    ("DepthwiseConv2dNative", (half(2, 8, 8, 20), half(3, 3, 20, 1)), half(2, 8, 8, 20), (2, 128, 16, 144)),
    ("Conv2DBackpropInput", (SIZES, half(3, 3, 8, 16), half(1, 16, 16, 16)), half(1, 32, 32, 8),
     (1, 1024, 8, 36)),
    ("Conv2DBackpropFilter", (half(1, 32, 32, 8), SIZES, half(1, 16, 16, 16)), half(3, 3, 8, 16),
     (1, 72, 16, 256)),
])
def test_products(op, inputs, output, expected):
    assert shape_of(op, inputs, output) == expected
    found = npu_time.model_op(op, inputs, (output,), MACHINE)
    assert found.how == "cube" and found.on_cube and 1 <= found.block_dim <= MACHINE.cube_cores
    assert all(found.pipe(p) > 0 for p in ("mac", "mte1", "cube_mte2", "fixpipe"))


def test_what_is_no_product():
    whole = Tensor("int32", (4, 4))
    assert product_of("MatMul", (whole, whole), (whole,)) is None
    assert product_of("Relu", (half(4),), (half(4),)) is None
    empty = npu_time.model_op("MatMul", (half(0, 4), half(4, 4)), (half(0, 4),), MACHINE)
    assert empty == npu_time.NO_KERNEL
    assert npu_time.model_op("MatMul", (half(4, 0), half(0, 4)), (half(4, 4),), MACHINE).cycles > table.LAUNCH
    assert not set(PRODUCTS) & (npu_time.WITHOUT_KERNEL | npu_time.COPIES | set(STREAMS))


def test_a_convolution_reads_its_image_once():
    image, result = half(8, 56, 56, 64), half(8, 56, 56, 64)
    conv = product_of("Conv2D", (image, half(3, 3, 64, 64)), (result,))
    assert conv.k == 576 and conv.row_bytes == 64 * 2  # of a patch of 576 elements
    assert product_of("MatMul", (half(25088, 576), half(576, 64)), (half(25088, 64),)).row_bytes == 576 * 2


def test_a_stream_by_hand():
    # On one core: 400 bytes come in, one instruction, 400 bytes go out; nothing to overlap.
    found = stream_cost(400, 400, 2.0, 20.0, replace(MACHINE, vector_cores=1))
    load = 400 / (7.9052 + 7.31) + 27.01
    store = 400 / (9.96 + 3.79) + 12.09
    assert found.cycles == pytest.approx(300 + 15.89 + 882.09 + load + 22.0 + store)
    assert found.cores == 1


def test_look_ups_of_single_elements():
    index, found = Tensor("int64", (8, 256, 256)), half(8, 256, 256)
    cost = lookup_of("GatherV2", (half(128), index, Tensor("int32", ())), (found,), MACHINE)
    count = 8 * 256 * 256
    tiles = math.ceil((2 * 40 * 256 + count * 8 + count * 2) / (40 * (196352 // 4)))
    work = count / 40 * (0.1873 + 0.018 + 0.0332) + tiles * (17.0248 + 20.7457 + 18.869)
    assert cost.cores == 40 and cost.vector == pytest.approx(work)
    narrow = lookup_of("GatherV2", (half(128), Tensor("int32", index.dims)), (found,), MACHINE)
    assert narrow.vector < cost.vector
    assert lookup_of("GatherV2", (half(128, 16), index), (half(8, 256, 256, 16),), MACHINE) is None  # rows
    assert lookup_of("GatherV2", (half(1 << 20), index), (found,), MACHINE) is None  # too large for UB
    assert lookup_of("Relu", (found,), (found,), MACHINE) is None


def test_streams():
    image, pooled = half(8, 112, 112, 64), half(8, 56, 56, 64)
    known = stream_of("MaxPool", (image,), (pooled,), {"ksize": [1, 3, 3, 1]}, MACHINE)
    guessed = stream_of("MaxPool", (image,), (pooled,), {}, MACHINE)
    assert known.mte2 == guessed.mte2 and known.vector > 2 * guessed.vector
    small = stream_of("MaxPool", (half(1, 8, 8, 16),), (half(1, 4, 4, 16),), {}, MACHINE)
    assert small.cores < known.cores == MACHINE.vector_cores and small.cycles < known.cycles
    scores, best = Tensor("float32", (64, 4096)), Tensor("float32", (64, 50))
    outputs = (best, Tensor("int32", best.dims))
    top = npu_time.model_op("TopKV2", (scores, Tensor("int32", ())), outputs, MACHINE)
    assert top.how == "stream" and top.bytes_in == 4 * 64 * 4096 + 4 and top.bytes_out == 2 * 4 * 64 * 50
    filled = npu_time.model_op("OneHot", (SIZES, SIZES, half(), half()), (half(4, 10),), MACHINE)
    assert filled.how == "stream"
    zeros = stream_of("Fill", (SIZES, half()), (half(4, 10),), {}, MACHINE)
    assert zeros.mte2 == 0 and zeros.mte3 > 0
    assert stream_of("Relu", (image,), (image,), {}, MACHINE) is None
    assert all(api in table.VECTOR for row in STREAMS.values() for api, _, _ in row.work)
