"""A small profile: two kinds of runs, one fused op."""

from tests.ir.samples import public_example
from tf_autofuse.ir import proto
from tf_autofuse.profiling.records import Kernel, OpRun, Tensor, Writer

A, B, SQUARE = (Tensor("float32", dims) for dims in ((128,), (192, 128), (128, 128)))
FUSED = "autofuse_pointwise_0_Abs_Add_Relu"


def op(name, type_, start, duration, inputs=(), outputs=(), thread=7):
    return OpRun(0, name, type_, "/device:CPU:0", thread, start, duration, tuple(inputs), tuple(outputs))


def fused_run(start):
    return [
        op("_arg_x", "_Arg", start, 500, (), (A,)),
        op(FUSED, "AscBackend", start + 2000, 9000, (A, B), (B,)),
        op("_retval", "_Retval", start + 12000, 100, (B,), ()),
    ]


def plain_run(start):
    return [
        op("Abs", "Abs", start, 1000, (A,), (A,)),
        op("Add", "AddV2", start + 1000, 4000, (A, B), (B,)),
        op("Relu", "Relu", start + 6000, 3000, (B,), (B,), 8),
        op("MatMul", "MatMul", start + 9000, 10, (B, SQUARE), (B,)),
        op("Unique", "Unique", start + 9010, 10, (A,), (A, A)),
    ]


def write(folder, fused=2, plain=1):
    writer = Writer(str(folder), {"soc": "Ascend910B4-1", "pid": 1, "target": "ascend"})
    graph = public_example()
    writer.add_kernels({FUSED: Kernel(graph.origin, proto.to_bytes(graph))})
    for i in range(fused):
        writer.add_run(fused_run(10**9 * (i + 1)))
    for i in range(plain):
        writer.add_run(plain_run(10**9 * (i + 50)))
    return writer
