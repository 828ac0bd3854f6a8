"""What a lowering would need, without running it: the AscIR calls it makes and the dtypes it makes them
with.
"""
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

from tf_autofuse.ir.dtypes import BOOL, DType
from tf_autofuse.ops.schema import AscOp, OpHandler


class RecordedCall(NamedTuple):
    """One AscIR call: its inputs' dtypes and its result's."""

    type: str
    in_dtypes: Tuple[DType, ...]
    dtype: DType


class Recorded(NamedTuple):
    """A value of which only dtype, rank and perhaps the constant are known."""

    dtype: DType
    rank: int = 2
    known: Any = None


class RecordingHandler(OpHandler):
    """Collects the calls in `calls`, in order. `rows`: AscIR type -> AscOp."""

    def __init__(self, rows):
        self._rows = rows
        self.calls: List[RecordedCall] = []

    def _result(self, row: AscOp, in_dtypes: Sequence[DType], dtype: Optional[DType]) -> DType:
        return {"bool": BOOL, "same": in_dtypes[-1], "attr": dtype}[row.result]

    def constant(self, value, dtype: DType) -> Recorded:
        return Recorded(dtype, 0, value)

    def cast(self, v: Recorded, dtype: DType) -> Recorded:
        return v if v.dtype is dtype else self.call("Cast", v, dtype=dtype)

    def call(self, asc_type: str, *values: Recorded, dtype: Optional[DType] = None, **attrs) -> Recorded:
        in_dtypes = tuple(v.dtype for v in values)
        result = self._result(self._rows[asc_type], in_dtypes, dtype)
        self.calls.append(RecordedCall(asc_type, in_dtypes, result))
        return Recorded(result, max(v.rank for v in values))

    def reduce(self, asc_type: str, v: Recorded, axes, keep_dims: bool, dtype: Optional[DType] = None):
        result = self.call(asc_type, v, dtype=dtype, axes=tuple(axes))
        return result if keep_dims else result._replace(rank=v.rank - len(axes))

    def element_count(self, v: Recorded, axes, dtype: DType, less: int = 0) -> Recorded:
        return Recorded(dtype, 0, 3)

    def drop_dims(self, v: Recorded, axes) -> Recorded:
        return v._replace(rank=v.rank - len(axes))

    def require_elements(self, v: Recorded, axis: int) -> None:
        pass

    def require_size(self, v: Recorded, axis: int, size: int) -> None:
        pass

    def dtype_of(self, v: Recorded) -> DType:
        return v.dtype

    def known_value(self, v: Recorded):
        return v.known

    def rank_of(self, v: Recorded) -> int:
        return v.rank

    def append_dims(self, v: Recorded, count: int) -> Recorded:
        return v._replace(rank=v.rank + count)

    def require_equal_dim(self, v: Recorded, i: int, w: Recorded, j: int) -> None:
        pass
