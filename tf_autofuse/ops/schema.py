"""What a row of the op table says.

Two kinds of row. An `AscOp` is an AscIR compute type: what one instruction of a fused kernel does, on numpy
and in Ascend C. A `TfOp` is a TensorFlow op: which dtypes TF 1.15's CPU kernels take, and its meaning as
AscIR calls (its lowering). Everything else that wants to know something about an op (lowering, codegen,
tiling, docs, tests, the support matrix) reads these rows; adding an op is adding rows.

A lowering is written once against `OpHandler` and run by several handlers: to build loop IR, to infer dtypes,
to evaluate on numpy, to count the AscIR types a target would need.
"""
from dataclasses import dataclass, field
from typing import Any, Callable, Mapping, Optional, Sequence, Tuple

from tf_autofuse.ir.dtypes import DType


class OpHandler:
    """The calls that lowerings are written in. A value `v` is whatever the handler makes of it."""

    def constant(self, value, dtype: DType):
        """A scalar constant; broadcasts against anything."""
        raise TypeError("abstract")

    def cast(self, v, dtype: DType):
        """TF's Cast (x86 results for out-of-range values) of v; v itself where it has the dtype already."""
        raise TypeError("abstract")

    def call(self, asc_type: str, *values, dtype: Optional[DType] = None, **attrs):
        """One AscIR compute op on values that broadcast against each other; dtype: the result's, by default
        what the row's rule gives."""
        raise TypeError("abstract")

    def reduce(self, asc_type: str, v, axes: Sequence[int], keep_dims: bool, dtype: Optional[DType] = None):
        """One AscIR reduction of v along `axes` (positions, not negative, each once; none: v itself); dtype:
        the result's, where the row's rule is 'attr'."""
        raise TypeError("abstract")

    def element_count(self, v, axes: Sequence[int], dtype: DType, less: int = 0):
        """The number of elements of v along `axes` as a scalar of `dtype`, rounded: a constant where it is
        known while compiling. less: how much less than it, but at least 1."""
        raise TypeError("abstract")

    def drop_dims(self, v, axes: Sequence[int]):
        """v without its dims `axes`, which are known to be 1."""
        raise TypeError("abstract")

    def require_elements(self, v, axis: int) -> None:
        """Dim `axis` of v must not be 0 (TF fails otherwise): a guard where that is not known, Refusal where
        it is known not to hold."""
        raise TypeError("abstract")

    def require_size(self, v, axis: int, size: int) -> None:
        """Dim `axis` of v must be `size` (TF fails otherwise): a guard where that is not known, Refusal where
        it is known not to hold."""
        raise TypeError("abstract")

    def dtype_of(self, v) -> DType:
        """The dtype that v is computed in: float32 for a float16/bfloat16 tensor that was promoted."""
        raise TypeError("abstract")

    def known_value(self, v):
        """The Python number (or bool) that every element of v is known to have while compiling, else None."""
        raise TypeError("abstract")

    def rank_of(self, v) -> int:
        """Number of dims of v, 0 for a constant."""
        raise TypeError("abstract")

    def append_dims(self, v, count: int):
        """v with `count` unit dims after its last one: [C] -> [C, 1, 1] for count 2. count 0 gives v."""
        raise TypeError("abstract")

    def require_equal_dim(self, v, i: int, w, j: int) -> None:
        """Dim i of v must equal dim j of w, without broadcasting (TF fails otherwise): a guard where that is
        not known, Refusal where it is known not to hold. i and j may be negative, as in Python."""
        raise TypeError("abstract")


@dataclass(frozen=True)
class AscOp:
    """An AscIR compute type.

    type: AscIR's name (upstream's where it has one; our own otherwise).
    arity: number of inputs, -1 for any.
    result: 'same' (dtype of the last input), 'bool', or 'attr' (the call's dtype, e.g. Cast).
    ascend: input dtypes -> Ascend C call forms. Key: `form_key`, i.e. the DType of the last input (all inputs
        but the condition of Where have the same dtype), for Cast the pair (source, target).
        The value maps a form to call text. Forms: 'tensor' (all inputs are UB tensors); 'scalar' and the
        numbers of the inputs that are Scalars: 'scalar1', 'scalar0', 'scalar12'; of a reduction: 'last' and
        'first', {rows} rows of {cols} elements, {stride} elements apart, folded each or all into one. Where a
        needed form is missing, a UB tensor is filled with the constant and another form is used.
        Placeholders: {dst} {0} {1} {2} LocalTensors, {c0} {c1} {c2} scalar literals, {tmp}
        LocalTensor<uint8_t>, {n} element count, {attr_name} attribute literals, {T} the device type of the
        last input. A (dtype) that is not a key is refused on the ascend target.
    tmp_bytes: scratch need in bytes: (last input's item size, element count as a Size) -> Size; a multiple of
        32, or 0; what the neediest form of an item size takes. A text without {tmp} takes none: ask
        `scratch_bytes`.
    in_place: whether dst may be the same tensor as an input of equal item size (exactly equal, never partly).
    reduces: a reduction (AscGraph's H8): one input, attr axes; `ascend` then names the device helper, not a
        call on equal counts.
    host: input dtypes (keys as for `ascend`) -> a C expression of one element with {0} {1} {2} for the inputs
        and {attr_name}, or for a reduction the combining step of {0} (accumulator) and {1}. Functions it
        calls are in npu_kernels/host/. A (dtype) that is not a key is refused on the host target.
    header: the helper header under npu_kernels/include/autofuse/ that the call needs, or ''.
    evaluate: the meaning on numpy arrays: (inputs, attrs, result dtype) -> array. float16/bfloat16 never
    reach it. cost: rows of the vector cost table that make one call, as (API name, repeat count per element)
    pairs. lacks: dtype -> why the ascend target has no form for it (the end of a sentence), where that needs
    saying.
    """

    type: str
    arity: int
    result: str
    ascend: Mapping[Any, Mapping[str, str]]
    evaluate: Callable[..., Any]
    tmp_bytes: Callable[[int, Any], Any] = lambda item_bytes, count: 0
    in_place: bool = False
    reduces: bool = False
    host: Mapping[Any, str] = field(default_factory=dict)
    header: str = ""
    cost: Tuple[Tuple[str, float], ...] = ()
    commutative: bool = False
    note: str = ""
    lacks: Mapping[DType, str] = field(default_factory=dict)

    def form_key(self, in_dtypes: Sequence[DType], out_dtype: DType):
        """The key into `ascend` for a call with these dtypes: Cast (source, target), otherwise the last
        input's.
        """
        return (in_dtypes[0], out_dtype) if self.type == "Cast" else in_dtypes[-1]

    def scratch_bytes(self, in_dtypes: Sequence[DType], out_dtype: DType, count):
        """Scratch that a call with these dtypes takes on the ascend target, in bytes, as a Size (0: none)."""
        forms = self.ascend.get(self.form_key(in_dtypes, out_dtype), {})
        if not any("{tmp}" in text for text in forms.values()):
            return 0
        return self.tmp_bytes(in_dtypes[-1].bytes, count)

    def uses_helper(self, in_dtypes: Sequence[DType], out_dtype: DType) -> bool:
        """Whether a call with these dtypes needs `header`."""
        forms = self.ascend.get(self.form_key(in_dtypes, out_dtype), {})
        return any("autofuse::" in text for text in forms.values())

    def ascend_refusal(self, dtype: DType) -> str:
        """Why there is no Ascend C form for this dtype, as the end of a sentence."""
        if dtype in self.lacks:
            return self.lacks[dtype]
        if dtype.bytes == 8:
            return "the vector unit has no 64-bit arithmetic"
        if dtype.name in ("int8", "uint8", "uint16", "uint32"):
            return ("the vector unit computes on 16-bit and 32-bit signed integers only, and conversions "
                    "saturate where TensorFlow wraps around")
        return ""


@dataclass(frozen=True)
class TfOp:
    """A TensorFlow op.

    names: TF op types that share the row. kind: 'elementwise' (incl. broadcasting), 'view' (moves no data:
    Identity, Reshape, ...; lowering/views.py knows them by name), 'fill' (BroadcastTo, Fill, ZerosLike,
    OnesLike), or a fusion family: 'reduce' for reductions and what is composed with them, or that of an op
    that puts elements elsewhere ('transpose', 'slice', 'split', 'concat', 'gather'; lowering/moves.py knows
    them by name). dtypes: the dtypes of attr T (or SrcT, for Cast) that TF 1.15.0's CPU kernels are
    registered for; never more. inputs: how many leading inputs are values (-1: all); further ones (shape,
    axes) are read as constants. Fill's value is its input 1.
    lane_varies: TF's own result for the same input differs between the vectorized part of its loop and the
        rest, in the sign of a zero; a 'bits' row then promises TF's value up to that sign. `meaning` says
        which one we give.
    reduces_if: the name of a bool attribute (by default true) that makes an elementwise op a reduction.
    lower: (handler, node, *values) -> value, or a tuple with a value for each output, the last ones of which
        may be missing. `node` is a Node, or anything with the same members. May raise Refusal.
    exact: 'bits' (bit-identical to TF) or 'ulp' (numerics.md states the bound). refuse: (target,
    dtype name or '*') -> the reason why that target leaves the op to TF. Whatever lowers to an
        AscOp without a form for the dtype is refused without a row here.
    meaning: NaN, inf, -0.0 and zero behaviour of TF, in a sentence, for docs/ops.md.
    """

    names: Tuple[str, ...]
    kind: str
    dtypes: Tuple[DType, ...]
    lower: Optional[Callable[..., Any]]
    exact: str
    meaning: str
    inputs: int = -1
    lane_varies: bool = False
    refuse: Mapping[Tuple[str, str], str] = field(default_factory=dict)
    reduces_if: str = ""

    def family(self, attrs: Mapping[str, Any]) -> str:
        """The kernel family that turns the fusion of an op with these attributes on or off
        (config_table.FAMILIES, ALWAYS_ON)."""
        if self.reduces_if and attrs.get(self.reduces_if, True):
            return "reduce"
        return {"view": "elementwise", "fill": "broadcast"}.get(self.kind, self.kind)

    @property
    def computes(self) -> bool:
        """Whether `lower` says what it computes, 16-bit floats in float32."""
        return self.kind in ("elementwise", "reduce")


class Node:
    """What a lowering may ask of the TF node: op type, attributes, dtypes of inputs and outputs, constant
    operands (position -> ints)."""

    def __init__(self, op: str, in_dtypes: Sequence[DType], out_dtypes: Sequence[DType],
                 attrs: Optional[Mapping[str, Any]] = None, operands: Optional[Mapping[int, Any]] = None):
        self._operands = dict(operands or {})
        self.op = op
        self.in_dtypes = tuple(in_dtypes)
        self.out_dtypes = tuple(out_dtypes)
        self._attrs = dict(attrs or {})

    def attr(self, name: str, default: Any = None) -> Any:
        return self._attrs.get(name, default)

    def operand(self, at: int) -> Optional[Tuple[int, ...]]:
        """The elements of input `at`, a scalar or vector of integers, where they are known while
        compiling."""
        return self._operands.get(at)


class Refusal(Exception):
    """Raised by a lowering for an op instance that cannot be fused; `reason` is a sentence for `explain`.

    The only exception that crosses from rows to lowering; lowering turns it into a value (graph import never
    raises).
    """

    def __init__(self, reason: str):
        super().__init__(reason)
        self.reason = reason
