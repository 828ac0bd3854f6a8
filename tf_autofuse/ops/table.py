"""The op table: every AscIR type and every TF op by name, and what a target can take.

Reads nothing but the rows. `support` runs a lowering with a handler that only records which AscIR calls it
makes, and asks each call's row for a form on the target.
"""
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from tf_autofuse.ir.dtypes import BFLOAT16, BOOL, DType, FLOAT16, FLOAT32, INT64
from tf_autofuse.ops import (ascir_arithmetic, ascir_bits, ascir_cast, ascir_compare, ascir_math,
                             ascir_reduce, tf_activation, tf_arithmetic, tf_bits, tf_cast_fill_view,
                             tf_compare_select, tf_gather, tf_grad, tf_layout, tf_math, tf_norm,
                             tf_reduce)
from tf_autofuse.ops.recording import Recorded, RecordedCall, RecordingHandler
from tf_autofuse.ops.schema import AscOp, Node, Refusal, TfOp

TARGETS = ("ascend", "host")
_HALVES = (FLOAT16, BFLOAT16)


def _index(rows, keys) -> Dict[str, object]:
    table: Dict[str, object] = {}
    for row in rows:
        for key in keys(row):
            if key in table:
                raise ValueError("two rows of the op table are named %s" % key)
            table[key] = row
    return table


ASC_OPS: Mapping[str, AscOp] = _index(
    ascir_arithmetic.ROWS + ascir_bits.ROWS + ascir_cast.ROWS + ascir_compare.ROWS + ascir_math.ROWS +
    ascir_reduce.ROWS,
    lambda row: (row.type,))
TF_OPS: Mapping[str, TfOp] = _index(
    tf_arithmetic.ROWS + tf_bits.ROWS + tf_math.ROWS + tf_compare_select.ROWS + tf_activation.ROWS +
    tf_grad.ROWS + tf_cast_fill_view.ROWS + tf_layout.ROWS + tf_gather.ROWS + tf_reduce.ROWS +
    tf_norm.ROWS,
    lambda row: row.names)


class Support(NamedTuple):
    """Whether a target takes an op with a dtype.

    ok: for every operand. with_constant: at least where the last input is a suitable constant (integer
    division, powers). reason: why not always, as a sentence; '' where ok.
    """

    ok: bool
    reason: str = ""
    with_constant: bool = False


def missing_form(asc_type: str, in_dtypes: Sequence[DType], out_dtype: DType, target: str) -> str:
    """Why `target` has no way to do this AscIR call, as a sentence; '' where it has one.

    The host target needs a C form for the dtypes, the ascend target an Ascend C form.
    """
    row = ASC_OPS[asc_type]
    key = row.form_key(in_dtypes, out_dtype)
    if target != "ascend":
        if key in row.host:
            return ""
        return "The host target has no %s of %s." % (asc_type, in_dtypes[-1].name)
    if key in row.ascend:
        return ""
    if asc_type == "Cast":
        return "The ascend target has no exact Cast from %s to %s." % (key[0].name, key[1].name)
    why = row.ascend_refusal(key)
    return "The ascend target has no %s of %s%s." % (asc_type, key.name, ": " + why if why else "")


def value_dtypes(name: str, dtype: DType, inputs: int = 2) -> Tuple[DType, ...]:
    """The dtypes of the value inputs of op `name` when its attr T (or SrcT) is `dtype`; AddN gets `inputs` of
    them.
    """
    if name in ("Select", "SelectV2"):
        return (BOOL, dtype, dtype)
    if name in _NORM_GRADS:
        return (dtype,) * 2 + (FLOAT32,) * 3
    if name in _NORMS:
        return (dtype,) + (FLOAT32,) * 4
    return (dtype,) * (inputs if name == "AddN" else _ARITY.get(name, 1))


_ARITY = dict.fromkeys("""
    Add AddV2 Sub Mul Div RealDiv TruncateDiv FloorDiv FloorMod Mod TruncateMod DivNoNan MulNoNan Xdivy
    Xlogy BiasAdd BiasAddV1 SquaredDifference Maximum Minimum BitwiseAnd BitwiseOr BitwiseXor LeftShift
    RightShift Atan2 Pow Equal NotEqual Greater GreaterEqual Less LessEqual ApproximateEqual LogicalAnd
    LogicalOr ReluGrad Relu6Grad LeakyReluGrad EluGrad SeluGrad SoftplusGrad SoftsignGrad SigmoidGrad
    TanhGrad InvGrad ReciprocalGrad SqrtGrad RsqrtGrad Fill
""".split(), 2)
_ARITY["ClipByValue"] = 3
_ARITY["SoftmaxCrossEntropyWithLogits"] = 2
_NORMS = ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
_NORM_GRADS = ("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3")
#: Ranks of the inputs where these are not all matrices.
_RANKS = dict.fromkeys(("BiasAdd", "BiasAddV1"), (2, 1))
_RANKS.update(dict.fromkeys(_NORMS, (4, 1, 1, 1, 1)), **dict.fromkeys(_NORM_GRADS, (4, 4, 1, 1, 1)))


def recorded_calls(name: str, dtype: DType, out_dtype: Optional[DType] = None,
                   constant_operand: bool = False) -> List[RecordedCall]:
    """The AscIR calls of op `name` for attr T = dtype, 16-bit floats promoted to float32. out_dtype: Cast's
    DstT.

    constant_operand: the last input is the constant 3. Raises Refusal where the lowering refuses.
    """
    op = TF_OPS[name]
    handler = RecordingHandler(ASC_OPS)
    in_dtypes = value_dtypes(name, dtype)
    values = []
    for i, d in enumerate(in_dtypes):
        value = Recorded(d, _RANKS.get(name, (2,) * (i + 1))[i])
        if d in _HALVES and op.computes and not (name == "Cast" and out_dtype in _HALVES):
            value = handler.cast(value, FLOAT32)
        if constant_operand and i == len(in_dtypes) - 1:
            value = value._replace(known=3, rank=0)
        values.append(value)
    returned = INT64 if name in ("ArgMax", "ArgMin") else out_dtype or dtype
    node = Node(name, in_dtypes, (returned,), None, {1: (0,)})
    found = op.lower(handler, node, *values)
    result = found[0] if type(found) is tuple else found
    if op.computes and result.dtype is FLOAT32 and (out_dtype or dtype) in _HALVES:
        handler.cast(result, out_dtype or dtype)
    return handler.calls


def support(name: str, dtype: DType, target: str, out_dtype: Optional[DType] = None) -> Support:
    """Whether `target` can fuse TF op `name` with attr T (SrcT) = dtype.

    out_dtype: DstT of Cast, needed there. Raises KeyError for an op without a row, ValueError for an unknown
    target.
    """
    op = TF_OPS[name]
    if target not in TARGETS:
        raise ValueError("unknown target %r, known are %s" % (target, ", ".join(TARGETS)))
    if dtype not in op.dtypes or (name == "Cast" and out_dtype not in op.dtypes):
        return Support(False, "TensorFlow 1.15 has no CPU kernel of %s for %s." % (name, dtype.name))
    for key in ((target, dtype.name), (target, "*")):
        if key in op.refuse:
            return Support(False, op.refuse[key])
    try:
        refusal = _first_missing(recorded_calls(name, dtype, out_dtype), target)
        return Support(not refusal, refusal, not refusal)
    except Refusal as refused:
        try:
            missing = _first_missing(recorded_calls(name, dtype, out_dtype, constant_operand=True), target)
        except Refusal:
            return Support(False, refused.reason)
        return Support(False, missing or refused.reason, with_constant=not missing)


def _first_missing(calls: Sequence[RecordedCall], target: str) -> str:
    return next(filter(None, (missing_form(c.type, c.in_dtypes, c.dtype, target) for c in calls)), "")
