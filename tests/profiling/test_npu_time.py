"""The modelled time of ops: what is modelled as what, and that the numbers are the tiling model's own."""

import numpy as np
import pytest

from tests.ir.samples import public_example, run_time_broadcast
from tests.profiling.samples import A, B
from tf_autofuse.ir import proto
from tf_autofuse.machine import machine_for
from tf_autofuse.profiling import npu_time
from tf_autofuse.profiling.records import Tensor
from tf_autofuse.schedule.schedule import schedule
from tf_autofuse.tiling import cost_table
from tf_autofuse.tiling.model import build_model
from tf_autofuse.tiling.solve import solve

MACHINE = machine_for("")


def test_a_fused_op_costs_what_its_tiling_plan_says():
    fused = public_example()
    found = npu_time.model_fused(proto.to_bytes(fused), (A, B), MACHINE)
    plan = solve([build_model(i) for i in schedule(fused.graphs[0], MACHINE)], {}, MACHINE)
    assert found.how == "fused" and found.cycles == plan.cost and found.block_dim == plan.block_dim
    # the objective: launch, the slowest pipe, and what of the others does not overlap with it
    busy = [c for _, c in found.pipes]
    starts = cost_table.LOAD_HEAD_SMALL.per_block * found.block_dim + cost_table.LOAD_HEAD_SMALL.b
    assert cost_table.LAUNCH + max(busy) < found.cycles <= cost_table.LAUNCH + starts + sum(busy)
    assert {p for p, _ in found.pipes} == {"mte2", "mte3", "vector"}
    assert (found.bytes_in, found.bytes_out) == (4 * 128 + 4 * 192 * 128, 4 * 192 * 128)
    assert found.microseconds(MACHINE) == found.cycles / 1500


def test_symbols_are_read_off_the_dims():
    graph = proto.to_bytes(run_time_broadcast())
    half = [Tensor("float16", (7, 128)), Tensor("float16", (7, 1))]
    large = [Tensor("float16", (70000, 128)), Tensor("float16", (1, 1))]
    small, big = (npu_time.model_fused(graph, inputs, MACHINE) for inputs in (half, large))
    assert big.cycles > 20 * small.cycles and big.block_dim == MACHINE.vector_cores
    for wrong in ([half[0], Tensor("float16", (6, 1))], [half[0], Tensor("", None)], half[:1]):
        assert npu_time.model_fused(graph, wrong, MACHINE) is None
    assert npu_time.model_fused(graph[:-7], half, MACHINE) is None


def test_single_ops():
    add = npu_time.model_op("AddV2", (A, B), (B,), MACHINE)
    absolute = npu_time.model_op("Abs", (A,), (A,), MACHINE)
    relu = npu_time.model_op("Relu", (B,), (B,), MACHINE)
    assert all(m.how == "op" and m.cycles > cost_table.LAUNCH for m in (add, absolute, relu))
    fused = npu_time.model_fused(proto.to_bytes(public_example()), (A, B), MACHINE)
    assert (
        max(m.cycles for m in (add, absolute, relu))
        <= fused.cycles
        < sum(m.cycles for m in (add, absolute, relu))
    )
    assert add.bytes_in + add.bytes_out == 4 * (128 + 2 * 192 * 128)
    exp = npu_time.model_op("Exp", (B,), (B,), MACHINE)
    assert exp.pipe("vector") > relu.pipe("vector") and exp.pipe("mte2") == relu.pipe("mte2")
    half = Tensor("float16", B.dims)
    assert npu_time.model_op("Relu", (half,), (half,), MACHINE).pipe("mte3") < relu.pipe("mte3")
    flag = Tensor("bool", B.dims)
    assert npu_time.model_op("Select", (flag, B, B), (B,), MACHINE).how == "op"
    assert npu_time.model_op("Greater", (B, B), (flag,), MACHINE).how == "op"
    scalar = Tensor("float32", ())
    assert npu_time.model_op("Mul", (scalar, scalar), (scalar,), MACHINE).how == "op"


def test_copies_views_and_the_rest():
    joined = Tensor("float32", (192, 256))
    copy = npu_time.model_op("ConcatV2", (B, B, Tensor("int32", ())), (joined,), MACHINE)
    assert copy.how == "copy" and copy.bytes_out == 4 * 192 * 256
    assert npu_time.model_op("Unpack", (joined,), (B, B), MACHINE).bytes_out == 4 * 192 * 256
    for op in sorted(npu_time.WITHOUT_KERNEL):
        assert npu_time.model_op(op, (), (), MACHINE) == npu_time.NO_KERNEL
    for op, inputs, outputs in (
        ("Unique", (A,), (A,)),
        ("Relu", (Tensor("", None),), (B,)),
        ("Relu", (B,), ()),
        ("NoSuchOp", (B,), (B,)),
        ("Relu", (Tensor("string", (3,)),), (Tensor("string", (3,)),)),
    ):
        assert npu_time.model_op(op, inputs, outputs, MACHINE) is None
    assert not npu_time.COPIES & npu_time.WITHOUT_KERNEL


def test_attributes_and_constants_decide():
    """What dims alone do not tell: the lowering gets it from the node."""
    x = Tensor("float16", (8, 128, 64))
    axes = Tensor("int32", (1,))

    def mean(axis, out):
        arguments = ("Mean", (x, axes), (Tensor("float16", out),), MACHINE, npu_time.analytic)
        return npu_time.model_op(*arguments, {"keep_dims": False}, {1: np.array([axis], np.int32)})

    assert mean(1, (8, 64)).how == mean(2, (8, 128)).how == "op"
    assert mean(1, (8, 64)).bytes_out == 2 * 8 * 64
    assert npu_time.model_op("Mean", (x, axes), (Tensor("float16", (8, 64)),), MACHINE) is None
    perm = Tensor("int32", (3,))
    swapped = npu_time.model_op(
        "Transpose", (x, perm), (Tensor("float16", (8, 64, 128)),), MACHINE, npu_time.analytic, {},
        {1: np.array([0, 2, 1], np.int32)})
    assert swapped.how == "op" and swapped.bytes_in == swapped.bytes_out == 2 * 8 * 128 * 64
    unknown = npu_time.model_op("Transpose", (x, perm), (Tensor("float16", (8, 64, 128)),), MACHINE)
    assert unknown.how == "copy"
    softmax = npu_time.model_op("Softmax", (x,), (x,), MACHINE)
    assert softmax.how == "op" and softmax.pipe("vector") > swapped.pipe("vector")
    # statistics of a batch norm: outputs that nobody reads
    image, channel = Tensor("float16", (2, 4, 4, 64)), Tensor("float32", (64,))
    outputs = (image,) + (channel,) * 4 + (Tensor("float32", (0,)),)
    norm = npu_time.model_op(
        "FusedBatchNormV3", (image,) + (channel,) * 4, outputs, MACHINE, npu_time.analytic,
        {"is_training": False, "epsilon": 1e-3, "data_format": "NHWC"})
    assert norm.how == "op" and norm.bytes_out == 2 * 2 * 4 * 4 * 64


def test_an_empty_tensor_costs_no_more_than_its_launch():
    empty = Tensor("float32", (0, 8))
    found = npu_time.model_op("Relu", (empty,), (empty,), MACHINE)
    assert found.block_dim == 0 and found.cycles == 0.0


@pytest.mark.once
def test_the_simulator_takes_the_same_kernel():
    fused = public_example()
    graph = proto.to_bytes(fused)
    found = npu_time.model_fused(graph, (A, B), MACHINE, npu_time.simulated)
    analytic = npu_time.model_fused(graph, (A, B), MACHINE)
    assert found.block_dim == analytic.block_dim and found.bytes_out == analytic.bytes_out
    assert 0.5 < found.cycles / analytic.cycles < 2.0
    assert {p for p, _ in found.pipes} == {"mte2", "mte3", "vector"} and all(c > 0 for _, c in found.pipes)
    # every block reads the row of 128 for itself
    assert found.bytes_in == 4 * 192 * 128 + found.block_dim * 4 * 128
    assert npu_time.model_fused(graph, (B, A), MACHINE, npu_time.simulated) is None
