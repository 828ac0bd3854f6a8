"""The handler that op lowerings run with to become loop IR.

On entry: values are loop expressions; 16-bit floats have been promoted to float32 by the caller. On exit the
result is an expression in the compute dtype; `guards` holds what must hold of the run-time dims, `made` how
many loop nodes were made, `spaces` the dims that reductions go over. A lowering that the target cannot
compute ends with TargetRefusal, dims that do not fit with ShapesDiffer.
"""

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np

from tf_autofuse.ir.dtypes import BFLOAT16, DType, FLOAT16, FLOAT32, FLOAT64, INT32, INT64
from tf_autofuse.ir.loop_ir import (
    CONVERT,
    Constant,
    DEMOTE,
    Dims,
    Expr,
    LoopBuilder,
    PROMOTE,
    SizeValue,
    USER,
    WIDEN,
    Cast,
    constant_of,
)
from tf_autofuse.ir.loop_layout import is_unit
from tf_autofuse.lowering.symbols import SymbolTable
from tf_autofuse.ops.ascir_cast import bfloat16_values, cast_array
from tf_autofuse.ops.ascir_reduce import start_value
from tf_autofuse.ops.numpy_handler import evaluate_call, result_dtype
from tf_autofuse.ops.schema import OpHandler, Refusal
from tf_autofuse.ops.table import missing_form
from tf_autofuse.symbolic.guards import Guard
from tf_autofuse.symbolic.size import (
    Size,
    is_static,
    is_symbol,
    known_equal,
    maximum,
    minimum,
    product,
)

HALVES = (FLOAT16, BFLOAT16)
#: What a size may be cast to while compiling: dtypes that hold it, or round it as a Cast does.
_OF_SIZES = (INT32, INT64, FLOAT32, FLOAT64)


class TargetRefusal(Refusal):
    """The target has no way to compute a call."""


class LoopHandler(OpHandler):
    """enhances(asc_type): whether the type computes 16-bit floats in float32."""

    def __init__(self, symbols: SymbolTable, target: str, enhances: Callable[[str], bool]):
        self.builder = LoopBuilder()
        self.guards: List[Guard] = []
        self.made = 0
        self.spaces: List[Dims] = []
        self._symbols = symbols
        self._target = target
        self._enhances = enhances
        self._equal: Dict[Size, Size] = {}
        self._low: Optional[DType] = None
        self._origin = -1
        self._op = ""
        self._role = CONVERT
        self._missing: Dict[tuple, str] = {}

    def begin(self, origin: int, op: str, low: Optional[DType]) -> None:
        """Before each op. low: the 16-bit dtype that its values were promoted from, None for none."""
        self.guards = []
        self.made = 0
        self.spaces = []
        self._equal = {}
        self._low = low
        self._origin = origin
        self._op = op
        self._role = USER if op == "Cast" else CONVERT

    # What lowerings call.

    def constant(self, value, dtype: DType) -> Expr:
        return self.builder.constant(plain(np.asarray(value).astype(dtype.numpy), dtype), dtype, self._origin)

    def cast(self, v: Expr, dtype: DType) -> Expr:
        if v.dtype is dtype:
            return v
        if isinstance(v, SizeValue) and dtype in _OF_SIZES:
            return self.builder.size_value(v.size, dtype, self._origin)
        constant = constant_of(v)
        if constant is not None:
            folded = plain(cast_array(stored(constant.value, constant.dtype), constant.dtype, dtype), dtype)
            return self.builder.broadcast(
                self.builder.constant(folded, dtype, self._origin), v.dims, self._origin
            )
        if (
            isinstance(v, Cast)
            and v.role == WIDEN
            and self._role == USER
            and not self._missing_form("Cast", (v.args[0].dtype,), dtype)
        ):
            v = v.args[0]
            if v.dtype is dtype:
                return v
        if self._missing_form("Cast", (v.dtype,), dtype):
            if v.dtype in HALVES:  # exact, and the same as TF: its 16-bit types convert by way of float32
                v = self.builder.cast(v, FLOAT32, PROMOTE, self._origin)
            elif dtype in HALVES and v.dtype is not FLOAT32:
                v = self._cast(v, FLOAT32)
        return v if v.dtype is dtype else self._cast(v, dtype)

    def _cast(self, v: Expr, dtype: DType) -> Expr:
        self._require_form("Cast", (v.dtype,), dtype)
        self.made += 1
        return self.builder.cast(v, dtype, self._role, self._origin)

    def call(self, asc_type: str, *values: Expr, dtype: Optional[DType] = None, **attrs) -> Expr:
        in_dtypes = tuple(v.dtype for v in values)
        out = result_dtype(asc_type, in_dtypes, dtype)
        if all(isinstance(v, Constant) for v in values):
            arrays = [stored(v.value, v.dtype) for v in values]
            folded = evaluate_call(asc_type, arrays, in_dtypes, attrs, dtype)
            return self.builder.constant(plain(folded, out), out, self._origin)
        args = [self._aligned(v) for v in values]
        dims = args[0].dims
        for arg in args[1:]:
            dims = self.broadcast_dims(dims, arg.dims)
        fills = [constant_of(v) for v in values]
        if all(fill is not None for fill in fills):
            return self.builder.broadcast(
                self.call(asc_type, *fills, dtype=dtype, **attrs), dims, self._origin
            )
        pairs = tuple(sorted(attrs.items()))
        self.made += 1
        if self._low is not None and not self._enhances(asc_type):
            lowered = tuple(self._low if d is FLOAT32 else d for d in in_dtypes)
            low_out = self._low if out is FLOAT32 else out
            if lowered != in_dtypes and not self._missing_form(asc_type, lowered, low_out):
                args = [
                    self.builder.cast(a, self._low, DEMOTE, self._origin) if a.dtype is FLOAT32 else a
                    for a in args
                ]
                result = self.builder.call(asc_type, args, low_out, dims, pairs, self._origin)
                return self.builder.cast(result, FLOAT32, PROMOTE, self._origin) if out is FLOAT32 else result
        self._require_form(asc_type, in_dtypes, out)
        return self.builder.call(asc_type, args, out, dims, pairs, self._origin)

    def reduce(
        self, asc_type: str, v: Expr, axes: Sequence[int], keep_dims: bool, dtype: Optional[DType] = None
    ) -> Expr:
        out = result_dtype(asc_type, (v.dtype,), dtype)
        v = self._aligned(v)
        kept = tuple(1 if i in axes else d for i, d in enumerate(v.dims))
        real = [i for i in axes if not is_unit(v.dims[i])]
        if not real and out is v.dtype:
            result = v
        elif not real:  # the index of the only element
            result = self.builder.broadcast(self.constant(0, out), kept, self._origin)
        elif any(is_static(v.dims[i]) and v.dims[i] == 0 for i in real):
            start = self.constant(start_value(asc_type, v.dtype), out)
            result = self.builder.broadcast(start, kept, self._origin)
        else:
            self._require_form(asc_type, (v.dtype,), out)
            self.made += 1
            self.spaces.append(v.dims)
            result = self.builder.reduce(asc_type, v, real, out, self._origin)
        return result if keep_dims else self.drop_dims(result, axes)

    def element_count(self, v: Expr, axes: Sequence[int], dtype: DType, less: int = 0) -> Expr:
        count = product(v.dims[i] for i in axes)
        count = maximum(count - less, 1) if less else count
        if is_static(count):
            return self.constant(plain(cast_array(np.asarray(count, np.int64), INT64, dtype), dtype), dtype)
        return self.builder.size_value(count, dtype, self._origin)

    def drop_dims(self, v: Expr, axes: Sequence[int]) -> Expr:
        return self.builder.view(v, tuple(d for i, d in enumerate(v.dims) if i not in axes), self._origin)

    def require_elements(self, v: Expr, axis: int) -> None:
        size = v.dims[axis]
        if is_static(size) and size == 0:
            raise Refusal("Dim %d is empty, which is an error in TensorFlow." % axis)
        if not is_static(size):
            self.guards.append(Guard("eq", minimum(size, 1), 1, self._op))

    def require_size(self, v: Expr, axis: int, size: int) -> None:
        if is_static(v.dims[axis]) and v.dims[axis] != size:
            raise Refusal("Dim %d is %d, not %d." % (axis, v.dims[axis], size))
        if not is_static(v.dims[axis]):
            self.guards.append(Guard("eq", v.dims[axis], size, self._op))

    def dtype_of(self, v: Expr) -> DType:
        return v.dtype

    def known_value(self, v: Expr) -> Any:
        constant = constant_of(v)
        return None if constant is None else constant.value

    def rank_of(self, v: Expr) -> int:
        return len(v.dims)

    def append_dims(self, v: Expr, count: int) -> Expr:
        return self.builder.view(v, v.dims + (1,) * count, self._origin)

    def require_equal_dim(self, v: Expr, i: int, w: Expr, j: int) -> None:
        a, b = self._canonical(v.dims[i]), self._canonical(w.dims[j])
        if known_equal(a, b):
            return
        if is_static(a) and is_static(b):
            raise Refusal("Dims %d and %d must be equal: the op does not broadcast." % (a, b))
        self.guards.append(Guard("eq", a, b, self._op))
        # The one that says more stands for both: views can cut 4 * s0 where they could not cut s1.
        if is_static(b) or (is_symbol(a) and not is_symbol(b)):
            a, b = b, a
        self._equal[b] = a

    # What lowering itself calls beside them.

    def broadcast_dims(self, a: Dims, b: Dims) -> Dims:
        """TF's broadcast of two shapes; records the guards. Raises ShapesDiffer."""
        if a is b or a == b:
            return a
        if len(a) < len(b):
            a, b = b, a
        skipped = len(a) - len(b)
        dims = list(a)
        for i, other in enumerate(b):
            mine = a[skipped + i]
            dims[skipped + i], guard = self._symbols.broadcast(mine, other)
            if guard is not None:
                self.guards.append(guard._replace(why=self._op))
        return tuple(dims)

    def _canonical(self, size: Size) -> Size:
        while size in self._equal:
            size = self._equal[size]
        return size

    def _aligned(self, v: Expr) -> Expr:
        if not self._equal:
            return v
        return self.builder.same(v, tuple(self._canonical(d) for d in v.dims), self._origin)

    def _missing_form(self, asc_type: str, in_dtypes: Tuple[DType, ...], out: DType) -> str:
        key = (asc_type, in_dtypes, out)
        found = self._missing.get(key)
        if found is None:
            found = self._missing[key] = missing_form(asc_type, in_dtypes, out, self._target)
        return found

    def _require_form(self, asc_type: str, in_dtypes: Tuple[DType, ...], out: DType) -> None:
        missing = self._missing_form(asc_type, in_dtypes, out)
        if missing:
            raise TargetRefusal(missing)


def plain(array: np.ndarray, dtype: DType):
    """The single element of a storage array as the Python number or bool that it is."""
    if dtype is BFLOAT16:
        array = bfloat16_values(np.asarray(array))
    return np.asarray(array).reshape(-1)[0].item()


def stored(value, dtype: DType) -> np.ndarray:
    """The inverse of `plain`, as a rank-0 array."""
    if dtype is BFLOAT16:
        return cast_array(np.asarray(value, np.float32), FLOAT32, BFLOAT16)
    return np.asarray(value).astype(dtype.numpy)
