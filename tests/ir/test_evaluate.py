"""The numpy meaning of fused graphs, against numpy written by hand."""
from dataclasses import replace

import numpy as np
import pytest

from tests.ir import samples
from tests.ir.test_verify import attr, view
from tf_autofuse.ir.asc_graph import FusedGraph, KernelIO
from tf_autofuse.ir.builder import HintBuilder
from tf_autofuse.ir.dtypes import BFLOAT16, FLOAT32, INT32
from tf_autofuse.ir.evaluate import EvaluationError, bind_inputs, evaluate_fused
from tf_autofuse.ir.verify import verify_fused
from tf_autofuse.symbolic.guards import GuardFailure, InputDim, SizeVar, ValueCheckFailed
from tf_autofuse.symbolic.size import symbol


def test_public_example():
    rng = np.random.RandomState(0)
    x, y = rng.randn(128).astype(np.float32), rng.randn(192, 128).astype(np.float32)
    (out,) = evaluate_fused(samples.public_example(), [x, y])
    np.testing.assert_array_equal(out, np.maximum(np.abs(x) + y, 0))


@pytest.mark.parametrize("rows", [(5, 5), (1, 5), (5, 1), (1, 1), (0, 1), (1, 0), (0, 0)])
def test_run_time_broadcast(rows):
    rng = np.random.RandomState(1)
    x, y = rng.randn(rows[0], 128).astype(np.float16), rng.randn(rows[1], 1).astype(np.float16)
    chosen, mask = evaluate_fused(samples.run_time_broadcast(), [x, y])
    np.testing.assert_array_equal(mask, x > y)
    expected = np.where(x > y, x, np.float16(0.5))
    assert chosen.dtype == np.float16 and chosen.shape == expected.shape
    np.testing.assert_array_equal(chosen, expected)


@pytest.mark.parametrize(
    "dims, text",
    [
        (((5, 128), (4, 1)), "s0 broadcasts with s1 does not hold (5, 4), which model/Greater needs"),
        (((0, 128), (4, 1)), "does not hold (0, 4)"),
        (((5, 127), (5, 1)), "dim 1 of input 0 is 127, not 128"),
        (((5, 128), (5, 2)), "dim 1 of input 1 is 2"),
        (((5, 128), (5,)), "rank 1, not 2"),
        (((5, 128),), "1 inputs"),
    ],
)
def test_dims_that_fail(dims, text):
    with pytest.raises(GuardFailure) as caught:
        bind_inputs(samples.run_time_broadcast(), dims)
    assert text in str(caught.value)


def test_a_symbol_in_two_places_must_be_one_value():
    s0 = symbol("s0")
    sizes = (SizeVar("s0", InputDim(0, 0)),)
    b = HintBuilder("same", [("z0", s0)], sizes)
    x, y = (b.load(b.data(i, INT32), (1,)) for i in (0, 1))
    b.store(b.op("Add", x, y), 0)
    fused = FusedGraph(
        "same",
        "pointwise",
        (KernelIO(INT32, (s0,)), KernelIO(INT32, (s0,))),
        (KernelIO(INT32, (s0,)),),
        sizes,
        (),
        (b.graph(),),
    )
    verify_fused(fused)
    (out,) = evaluate_fused(fused, [np.array([1, 2**31 - 1], np.int32)] * 2)
    np.testing.assert_array_equal(out, np.array([2, -2], np.int32))
    with pytest.raises(GuardFailure, match="dim 0 of input 1 is 1, not s0 = 2"):
        evaluate_fused(fused, [np.zeros(2, np.int32), np.zeros(1, np.int32)])


def test_offsets_strides_and_constants():
    out, constant = evaluate_fused(samples.fill(), [np.arange(6, dtype=np.float32)])
    np.testing.assert_array_equal(out, [-5, -3, -1])
    assert constant.shape == () and constant == 0 and np.signbit(constant)


def test_workspace_between_loop_nests():
    x = np.random.RandomState(2).randn(4, 3).astype(np.float32)
    (out,) = evaluate_fused(samples.through_workspace(), [x])
    np.testing.assert_allclose(out, -np.exp(x).T, rtol=1e-6)


def test_bfloat16_is_bits():
    b = HintBuilder("bf16", [("z0", 3)])
    x = b.op("Cast", b.load(b.data(0, BFLOAT16), (1,)), dtype=FLOAT32)
    b.store(b.op("Cast", b.op("Add", x, b.scalar(1.0, FLOAT32)), dtype=BFLOAT16), 0)
    b.store(b.op("Mul", b.load(b.data(1, BFLOAT16), (1,)), b.scalar(0.5, BFLOAT16)), 1)
    io = KernelIO(BFLOAT16, (3,))
    fused = FusedGraph("bf16", "pointwise", (io, io), (io, io), (), (), (b.graph(),))
    verify_fused(fused)
    bits = np.array([0x3F80, 0x3B80, 0xFF80], np.uint16)  # 1, 2^-8 (a tie at 1 + 2^-8: to even), -inf
    plus, half = evaluate_fused(fused, [bits, bits])
    assert plus.tolist() == [0x4000, 0x3F80, 0xFF80] and half.tolist() == [0x3F00, 0x3B00, 0xFF80]


def test_wrong_arrays_are_refused():
    with pytest.raises(TypeError, match="input 0 holds float64; float32 is stored as float32"):
        evaluate_fused(samples.public_example(), [np.zeros(128), np.zeros((192, 128), np.float32)])


ZEROS = [np.zeros(128, np.float32), np.zeros((192, 128), np.float32)]


@pytest.mark.parametrize(
    "mutate, text",
    [
        (attr("load_0", offset=1), "elements 1..128 of a tensor of 128"),
        (attr("load_1", offset=-1), "elements -1..24574"),
        (view("store_0", strides=(256, 1)), "of a tensor of 24576 elements"),
        (view("store_0", strides=(64, 1)), "element 64 of output 0 is written 2 times"),
        (
            lambda f: replace(f, outputs=(KernelIO(FLOAT32, (193, 128)),)),
            "element 24576 of output 0 is written 0 times",
        ),
    ],
)
def test_wrong_graphs_are_found(mutate, text):
    with pytest.raises(EvaluationError) as caught:
        evaluate_fused(mutate(samples.public_example()), ZEROS)
    assert text in str(caught.value)


def test_softmax_and_a_mean_of_run_time_length():
    for n in (1, 5, 0):
        x = np.random.RandomState(n).randn(3, n).astype(np.float32)
        soft, mean = evaluate_fused(samples.softmax(), [x])
        if n:
            e = np.exp(x - x.max(1, keepdims=True))
            np.testing.assert_allclose(soft, e / e.sum(1, keepdims=True), rtol=1e-6)
            np.testing.assert_allclose(mean, x.mean(1, dtype=np.float64), rtol=1e-6)
        else:
            assert soft.shape == (3, 0) and np.isnan(mean).all()


def test_gather():
    table = np.random.RandomState(3).randn(10, 4).astype(np.float32)
    ids = np.array([0, 9, 3, 3, 1, 0], np.int64)
    pooled, row = evaluate_fused(samples.embedding(), [table, ids])
    np.testing.assert_allclose(pooled, table[ids].sum(0, dtype=np.float64), rtol=1e-6)
    np.testing.assert_array_equal(row, table[2])
    for outside in (-1, 10, 2**40):
        with pytest.raises(ValueCheckFailed, match=r"index %d is not in \[0, 10\)" % outside):
            evaluate_fused(samples.embedding(), [table, np.where(ids == 9, outside, ids)])


def test_parts_and_workspaces_in_parts():
    x, y = (np.random.RandomState(i).randn(4, 2).astype(np.float32) for i in (4, 5))
    (out,) = evaluate_fused(samples.concat(), [x, y])
    np.testing.assert_array_equal(out, np.concatenate([-x, x, y], 1))
    x = np.random.RandomState(6).randn(3, 4).astype(np.float32)
    by_rows, by_columns = evaluate_fused(samples.two_reductions(), [x])
    np.testing.assert_allclose(by_rows, np.maximum(x, 0).sum(0), rtol=1e-6)
    np.testing.assert_allclose(by_columns, np.maximum(x, 0).sum(1), rtol=1e-6)


@pytest.mark.parametrize("change", [attr("store_1", offset=1), view("store_1", strides=(5, 1))])
def test_parts_that_meet(change):
    with pytest.raises(EvaluationError, match="is written [02] times"):
        evaluate_fused(change(samples.concat()), [np.zeros((4, 2), np.float32)] * 2)


def test_a_workspace_with_a_hole():
    broken = attr("store_0", offset=1)(samples.two_reductions())
    with pytest.raises(EvaluationError, match="element 0 of workspace 0 is written 0 times"):
        evaluate_fused(broken, [np.zeros((3, 4), np.float32)])
