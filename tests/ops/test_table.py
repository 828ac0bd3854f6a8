"""The table's own rules: names, forms, texts, reasons, constants, refusals. Needs no TensorFlow."""
import re

import numpy as np
import pytest

from tf_autofuse.config_table import FAMILIES
from tf_autofuse.ir.dtypes import (BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT16, INT32, INT64, UINT8)
from tf_autofuse.ops.numpy_handler import NumpyHandler, Value, evaluate_call, evaluate_op, result_dtype
from tf_autofuse.ops.schema import Node, Refusal
from tf_autofuse.ops.table import (ASC_OPS, TARGETS, TF_OPS, missing_form, recorded_calls, support,
                                   value_dtypes)
from tf_autofuse.symbolic.size import evaluate, symbol
from tf_autofuse.tiling.cost_table import VECTOR

PLACEHOLDERS = re.compile(r"\{(\w+)\}")
ATTRIBUTES = {"LeakyRelu": {"attr_negative_slope"}, "LeftShiftBy": {"attr_amount"},
              "RightShiftBy": {"attr_amount"}}


@pytest.mark.parametrize("name", sorted(ASC_OPS))
def test_call_texts_name_their_operands_and_nothing_else(name):
    row = ASC_OPS[name]
    for key, forms in row.ascend.items():
        if row.reduces:
            assert set(forms) == {"last", "first"}, key
            for text in forms.values():
                assert set(PLACEHOLDERS.findall(text)) == {"dst", "0", "tmp", "rows", "cols", "stride"}, text
                assert text.endswith(";") and "autofuse::" in text and row.header
            continue
        assert "tensor" in forms, key
        for form, text in forms.items():
            scalars = {int(c) for c in form[len("scalar"):]} if form != "tensor" else set()
            assert form == "tensor" or form == "scalar" + "".join(map(str, sorted(scalars)))
            wanted = {"c%d" % i if i in scalars else str(i) for i in range(row.arity)} | {"dst", "n"}
            optional = {"tmp", "T"} | ATTRIBUTES.get(name, {"attr_divisor"} if name.endswith("By") else set())
            found = set(PLACEHOLDERS.findall(text))
            assert wanted <= found <= wanted | optional, (key, form, text)
            assert text.endswith(";") and ("autofuse::" in text) <= bool(row.header)


@pytest.mark.parametrize("name", sorted(ASC_OPS))
def test_costs_are_rows_of_the_cost_table(name):
    row = ASC_OPS[name]
    assert bool(row.cost) == bool(row.ascend)
    assert {api for api, _ in row.cost} <= set(VECTOR) and all(times > 0 for _, times in row.cost)


@pytest.mark.parametrize("name", sorted(ASC_OPS))
def test_scratch_grows_with_the_count_up_to_a_limit(name):
    row = ASC_OPS[name]
    for item in (1, 2, 4, 8):
        symbolic = row.tmp_bytes(item, symbol("n"))
        sizes = [evaluate(symbolic, {"n": n}) for n in (1, 255, 256, 257, 1000, 5000, 100000)]
        assert sizes == sorted(sizes) and all(s % 32 == 0 for s in sizes) and sizes[-1] <= 40000
        assert sizes == [evaluate(row.tmp_bytes(item, n), {}) for n in (1, 255, 256, 257, 1000, 5000, 100000)]


def test_a_call_without_scratch_in_its_text_takes_none():
    cast = ASC_OPS["Cast"]
    assert cast.scratch_bytes((FLOAT32,), FLOAT16, 1000) == 0
    assert cast.scratch_bytes((FLOAT32,), INT32, 1000) > 0
    assert not cast.uses_helper((FLOAT32,), FLOAT16) and cast.uses_helper((FLOAT32,), INT32)


@pytest.mark.parametrize("name", sorted(TF_OPS))
def test_rows_say_what_they_mean_in_sentences(name):
    row = TF_OPS[name]
    assert row.meaning.endswith(".") and row.exact in ("bits", "ulp")
    assert row.kind in ("elementwise", "view", "fill") + FAMILIES
    for (target, dtype), reason in row.refuse.items():
        assert target in TARGETS and reason[0].isupper() and reason.endswith(".")


@pytest.mark.parametrize("name", sorted(TF_OPS))
def test_support_gives_a_reason_wherever_it_says_no(name):
    for dtype in TF_OPS[name].dtypes:
        for target in TARGETS:
            found = support(name, dtype, target, INT32 if name == "Cast" else None)
            assert found.ok == (not found.reason)
            if not found.ok:
                assert found.reason[0].isupper() and found.reason.endswith("."), found
        assert (
            name == "ResourceGather"
            or support(name, dtype, "host", INT32 if name == "Cast" else None).ok
            or dtype.is_integer
        )


def test_support_refuses_what_tensorflow_has_no_kernel_for():
    assert "no CPU kernel" in support("Acos", FLOAT16, "ascend").reason
    assert "no CPU kernel" in support("Relu", BOOL, "ascend").reason
    with pytest.raises(ValueError):
        support("Relu", FLOAT32, "gpu")


def test_support_of_integer_division_asks_for_a_constant():
    found = support("FloorDiv", INT32, "ascend")
    assert not found.ok and found.with_constant and "divisor is 0" in found.reason
    assert not support("FloorDiv", INT64, "ascend").with_constant


def test_halves_are_promoted():
    types = [c.type for c in recorded_calls("Tanh", FLOAT16)]
    assert types == ["Cast", "Tanh", "Cast"]
    assert [c.type for c in recorded_calls("Cast", BFLOAT16, FLOAT16)].count("Cast") == 1


def test_missing_form_names_the_type_and_the_dtype():
    text = missing_form("Add", (INT64, INT64), INT64, "ascend")
    assert "Add" in text and "int64" in text and "64-bit" in text
    assert missing_form("Add", (FLOAT32, FLOAT32), FLOAT32, "ascend") == ""
    assert missing_form("Add", (INT64, INT64), INT64, "host") == ""
    assert "Cast from float64 to int32" in missing_form("Cast", (FLOAT64,), INT32, "ascend")


def test_result_rules():
    assert result_dtype("Eq", (INT32, INT32)) is BOOL
    assert result_dtype("Where", (BOOL, UINT8, UINT8)) is UINT8
    assert result_dtype("Cast", (INT32,), FLOAT32) is FLOAT32
    with pytest.raises(ValueError):
        result_dtype("Cast", (INT32,))


def run(name, *values, out=None, known=(), **attrs):
    arrays = [np.asarray(v) for v in values]
    by_numpy = {d.numpy: d for d in (FLOAT32, FLOAT64, INT32, INT64, INT16, UINT8, BOOL)}
    dtypes = [by_numpy[a.dtype.type] for a in arrays]
    return evaluate_op(name, arrays, dtypes, out or dtypes[-1], attrs, known)


def f32(*values):
    return np.array(values, np.float32)


def test_bias_goes_along_the_channel_dim():
    bias = f32(1, 2, 3)
    for rank in (2, 3, 4, 5):
        x = np.zeros((2, 3) + (4,) * (rank - 2), np.float32)
        expected = np.broadcast_to(bias.reshape((3,) + (1,) * (rank - 2)), x.shape)
        np.testing.assert_array_equal(run("BiasAdd", x, bias, data_format="NCHW"), expected)
        last = np.moveaxis(x, 1, -1)
        np.testing.assert_array_equal(run("BiasAdd", last, bias, data_format=b"NHWC"),
                                      np.broadcast_to(bias, last.shape))


@pytest.mark.parametrize("x, bias, attrs, words", [
    (np.zeros((2, 3), np.float32), np.zeros((1, 3), np.float32), {}, "rank 2"),
    (np.zeros(3, np.float32), np.zeros(3, np.float32), {}, "at least rank 2"),
    (np.zeros((2, 3), np.float32), np.zeros(1, np.float32), {}, "needed"),
    (np.zeros((1, 3, 1, 1, 1, 1), np.float32), np.zeros(3, np.float32), {"data_format": "NCHW"}, "2 to 5")])
def test_bias_that_does_not_fit_is_refused(x, bias, attrs, words):
    with pytest.raises(Refusal, match=words):
        run("BiasAdd", x, bias, **attrs)


def test_select_takes_rows_wholes_and_equal_shapes_only():
    a, b = np.ones((2, 3), np.float32), np.zeros((2, 3), np.float32)
    np.testing.assert_array_equal(run("Select", np.array([True, False]), a, b), [[1, 1, 1], [0, 0, 0]])
    np.testing.assert_array_equal(run("Select", np.array(False), a, b), b)
    columns = np.array([True, False, True])
    np.testing.assert_array_equal(run("SelectV2", columns, a, b), [[1, 0, 1], [1, 0, 1]])
    rows = np.array([True, False])
    for condition, other in ((np.array([True]), b), (rows, np.zeros((1, 3), np.float32)),
                             (np.ones((2, 1), bool), b), (rows, np.zeros(3, np.float32))):
        with pytest.raises(Refusal):
            run("Select", condition, a, other)


def test_equality_with_incompatible_shapes_allowed_is_refused():
    assert run("Equal", f32(1), f32(1), out=BOOL, incompatible_shape_error=True).all()
    with pytest.raises(Refusal, match="incompatible_shape_error"):
        run("Equal", f32(1), f32(1), out=BOOL, incompatible_shape_error=False)


def test_clip_bounds_have_the_shape_of_x_or_none():
    x = f32(-5, 0.5, 5, np.nan)
    np.testing.assert_array_equal(run("ClipByValue", x, np.float32(0), np.float32(1)), f32(0, 0.5, 1, np.nan))
    np.testing.assert_array_equal(run("ClipByValue", x, f32(0, 1, 2, 3), f32(1, 2, 3, 4)),
                                  f32(0, 1, 3, np.nan))
    with pytest.raises(Refusal):
        run("ClipByValue", x, f32(0), np.float32(1))


def test_add_n_and_gradients_do_not_broadcast():
    assert run("AddN", f32(1), f32(2), f32(3)) == 6
    for name, shapes in (("AddN", ((2,), (1,))), ("ReluGrad", ((2, 1), (2, 3))),
                         ("TanhGrad", ((3,), (1, 3)))):
        with pytest.raises(Refusal):
            run(name, *[np.zeros(s, np.float32) for s in shapes])


@pytest.mark.parametrize("name", ["Div", "TruncateDiv", "FloorDiv", "FloorMod", "Mod", "TruncateMod"])
def test_integer_division_needs_a_scalar_constant_that_is_not_zero(name):
    x = np.array([7, -7], np.int32)
    run(name, x, np.int32(2), known=(1,))
    for divisor, known in ((np.int32(2), ()), (np.int32(0), (1,)), (np.array([2, 2], np.int32), (1,)),
                           (np.int32(-2 ** 31), (1,))):
        with pytest.raises(Refusal):
            run(name, x, divisor, known=known)


def test_integer_powers():
    x = np.array([-3, 2, 7], np.int64)
    for exponent in (0, 1, 2, 3, 10, 64):
        expected = np.array([(int(v) ** exponent + 2 ** 63) % 2 ** 64 - 2 ** 63 for v in x])
        np.testing.assert_array_equal(run("Pow", x, np.int64(exponent), known=(1,)), expected)
    for exponent, known in ((-1, (1,)), (65, (1,)), (2, ())):
        with pytest.raises(Refusal):
            run("Pow", x, np.int64(exponent), known=known)


def test_powers_with_small_constants_become_arithmetic():
    def calls(exponent):
        handler = NumpyHandler()
        seen = []
        handler_call = handler.call
        handler.call = lambda t, *v, **k: seen.append(t) or handler_call(t, *v, **k)
        x = Value(f32(2, 3), FLOAT32)
        TF_OPS["Pow"].lower(handler, Node("Pow", (FLOAT32,) * 2, (FLOAT32,)), x,
                            Value(np.float32(exponent), FLOAT32, exponent))
        return seen
    assert calls(2.0) == ["Mul"] and calls(-1.0) == ["Div"] and calls(2.5) == ["Pow"]
    assert calls(3.0) == ["Mul", "Mul"]


def test_a_constant_operand_with_dims_still_shapes_the_result():
    exponent = np.full((3, 1), 2, np.float32)
    assert run("Pow", f32(2, 3), exponent, known=(1,)).shape == (3, 2)


def test_shift_amounts_are_clamped():
    x = np.array([-8, 5], np.int32)
    np.testing.assert_array_equal(run("RightShift", x, np.int32(99), known=(1,)), [-1, 0])
    np.testing.assert_array_equal(run("LeftShift", x, np.int32(-3), known=(1,)), x)
    np.testing.assert_array_equal(run("RightShift", x, np.array([99, 1], np.int32)), [-1, 2])


def test_cast_that_truncates_is_refused():
    with pytest.raises(Refusal, match="Truncate"):
        run("Cast", f32(1), out=BFLOAT16, Truncate=True)


def test_division_of_the_lowest_integer_by_minus_one_survives():
    lowest = np.array([-2 ** 31], np.int32)
    assert run("TruncateDiv", lowest, np.int32(-1), known=(1,)) == lowest
    assert run("FloorMod", lowest, np.int32(-1), known=(1,)) == 0


def test_leaky_relu_with_any_slope():
    x = f32(-2, 2, -np.inf, np.nan)
    np.testing.assert_array_equal(run("LeakyRelu", x, alpha=0.5), f32(-1, 2, -np.inf, np.nan))
    np.testing.assert_array_equal(run("LeakyRelu", x, alpha=2.0), f32(-2, 4, -np.inf, np.nan))
    np.testing.assert_array_equal(run("LeakyRelu", x, alpha=0.0), f32(-0.0, 2, -np.inf, np.nan))


def test_sixteen_bit_calls_round_once():
    bits = np.array([0x3F80, 0x4040], np.uint16)  # 1, 3
    third = evaluate_call("Div", [bits[:1], bits[1:]], (BFLOAT16, BFLOAT16))
    assert third.dtype == np.uint16 and third[0] == 0x3EAB
    half = evaluate_call("Mul", [np.float16([3]), np.float16([1 / 3])], (FLOAT16, FLOAT16))
    assert half.dtype == np.float16


def test_value_dtypes():
    assert value_dtypes("Select", FLOAT32) == (BOOL, FLOAT32, FLOAT32)
    assert value_dtypes("AddN", FLOAT32, 3) == (FLOAT32,) * 3
    assert value_dtypes("Abs", INT16) == (INT16,)
