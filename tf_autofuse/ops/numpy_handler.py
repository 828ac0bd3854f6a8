"""The op table run on numpy arrays: the TF-free meaning of every op, element for element.

`evaluate_call` is one AscIR call; `evaluate_op` runs a TfOp's lowering. Arrays hold the storage types of
ir/dtypes.py (bfloat16 as its bits in uint16). float16 and bfloat16 inputs of a TF op are promoted to float32
and the result is rounded once, as fused kernels do. Numpy warnings about NaN, overflow and division are off
inside: those results are part of the meaning. Numpy does not flush denormals; TF's pool threads (and with
them the kernels that run there) do.
"""
from typing import Any, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from tf_autofuse.ir.dtypes import BFLOAT16, BOOL, DType, FLOAT16, FLOAT32, INT64
from tf_autofuse.ops.ascir_cast import cast_array
from tf_autofuse.ops.schema import Node, OpHandler, Refusal
from tf_autofuse.ops.table import ASC_OPS, TF_OPS

_HALVES = (FLOAT16, BFLOAT16)


def result_dtype(asc_type: str, in_dtypes: Sequence[DType], dtype: Optional[DType] = None) -> DType:
    """The dtype that a call returns by its row's rule; `dtype` is the call's own, where the rule is 'attr'.

    Raises ValueError where the rule needs a dtype that is not given.
    """
    rule = ASC_OPS[asc_type].result
    if rule == "bool":
        return BOOL
    if rule == "same":
        return in_dtypes[-1]
    if dtype is None:
        raise ValueError("%s needs its result's dtype" % asc_type)
    return dtype


def evaluate_call(asc_type: str, arrays: Sequence[np.ndarray], in_dtypes: Sequence[DType],
                  attrs: Optional[Mapping[str, Any]] = None, dtype: Optional[DType] = None) -> np.ndarray:
    """One AscIR call on arrays that broadcast against each other.

    16-bit floats, where a call works on them directly, are computed in float32 and rounded once per call.
    Raises KeyError for an unknown type.
    """
    row = ASC_OPS[asc_type]
    out = result_dtype(asc_type, in_dtypes, dtype)
    with np.errstate(all="ignore"):
        if asc_type == "Cast":
            return cast_array(np.asarray(arrays[0]), in_dtypes[0], out)
        wide = [cast_array(np.asarray(a), d, FLOAT32) if d in _HALVES else np.asarray(a)
                for a, d in zip(arrays, in_dtypes)]
        inner = FLOAT32 if out in _HALVES else out
        return cast_array(np.asarray(row.evaluate(wide, dict(attrs or {}), inner)), inner, out)


class Value(NamedTuple):
    """known: the Python number that all elements are known to have at compile time, else None."""

    array: np.ndarray
    dtype: DType
    known: Any = None


class NumpyHandler(OpHandler):
    """Runs a lowering on `Value`s."""

    def constant(self, value, dtype: DType) -> Value:
        return Value(np.asarray(value).astype(dtype.numpy), dtype, value)

    def cast(self, v: Value, dtype: DType) -> Value:
        return v if v.dtype is dtype else Value(cast_array(v.array, v.dtype, dtype), dtype)

    def call(self, asc_type: str, *values: Value, dtype: Optional[DType] = None, **attrs) -> Value:
        in_dtypes = [v.dtype for v in values]
        array = evaluate_call(asc_type, [v.array for v in values], in_dtypes, attrs, dtype)
        return Value(array, result_dtype(asc_type, in_dtypes, dtype))

    def reduce(self, asc_type: str, v: Value, axes, keep_dims: bool, dtype: Optional[DType] = None) -> Value:
        if not axes:
            return v
        result = self.call(asc_type, v, dtype=dtype, axes=tuple(axes))
        return result if keep_dims else self.drop_dims(result, axes)

    def element_count(self, v: Value, axes, dtype: DType, less: int = 0) -> Value:
        count = int(np.prod([v.array.shape[i] for i in axes], dtype=np.int64))
        count = max(count - less, 1) if less else count
        return self.constant(cast_array(np.array(count), INT64, dtype).item(), dtype)

    def drop_dims(self, v: Value, axes) -> Value:
        shape = [d for i, d in enumerate(v.array.shape) if i not in axes]
        return v._replace(array=v.array.reshape(shape))

    def require_elements(self, v: Value, axis: int) -> None:
        if v.array.shape[axis] == 0:
            raise Refusal("Dim %d is empty." % axis)

    def require_size(self, v: Value, axis: int, size: int) -> None:
        if v.array.shape[axis] != size:
            raise Refusal("Dim %d is %d, not %d." % (axis, v.array.shape[axis], size))

    def dtype_of(self, v: Value) -> DType:
        return v.dtype

    def known_value(self, v: Value):
        return v.known

    def rank_of(self, v: Value) -> int:
        return v.array.ndim

    def append_dims(self, v: Value, count: int) -> Value:
        return v._replace(array=v.array.reshape(v.array.shape + (1,) * count))

    def require_equal_dim(self, v: Value, i: int, w: Value, j: int) -> None:
        if v.array.shape[i] != w.array.shape[j]:
            raise Refusal("Dim %d of an input is %d where %d is needed." %
                          (i, v.array.shape[i], w.array.shape[j]))


def evaluate_op(name: str, arrays: Sequence[np.ndarray], in_dtypes: Sequence[DType], out_dtype: DType,
                attrs: Optional[Mapping[str, Any]] = None, known: Tuple[int, ...] = ()) -> np.ndarray:
    """The first output of TF op `name` on arrays by its row's lowering. known: the inputs that are
    compile-time constants of one element. Inputs behind the row's values are constant operands.

    Raises Refusal where the lowering refuses, KeyError for an op without a row.
    """
    return evaluate_outputs(name, arrays, in_dtypes, (out_dtype,), attrs, known)[0]


def evaluate_outputs(name: str, arrays: Sequence[np.ndarray], in_dtypes: Sequence[DType],
                     out_dtypes: Sequence[DType], attrs: Optional[Mapping[str, Any]] = None,
                     known: Tuple[int, ...] = ()) -> Tuple[np.ndarray, ...]:
    """The same for as many outputs as there are out_dtypes."""
    handler = NumpyHandler()
    values = []
    row = TF_OPS[name]
    count = len(arrays) if row.inputs < 0 else row.inputs
    operands = {i: tuple(np.asarray(a).reshape(-1).tolist()) for i, a in enumerate(arrays) if i >= count}
    for i, (array, dtype) in enumerate(zip(arrays[:count], in_dtypes)):
        value = Value(np.asarray(array), dtype)
        if dtype in _HALVES and name != "Cast":
            value = handler.cast(value, FLOAT32)
        values.append(value._replace(known=value.array.reshape(-1)[0].item()) if i in known else value)
    with np.errstate(all="ignore"):
        found = row.lower(handler, Node(name, in_dtypes, out_dtypes, attrs, operands), *values)
    outputs = found if type(found) is tuple else (found,)
    return tuple(handler.cast(v, dtype).array for v, dtype in zip(outputs, out_dtypes))
