"""TF's casts, fills and views (ops that move no data)."""
from tf_autofuse.ir.dtypes import (ALL_DTYPES, BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT16, INT32, INT64, INT8,
                                   UINT16, UINT32, UINT64, UINT8)
from tf_autofuse.ops.schema import Refusal, TfOp

_NUMBERS = (FLOAT32, FLOAT64, FLOAT16, BFLOAT16, INT8, INT16, INT32, INT64, UINT8, UINT16)
_COMMON = _NUMBERS + (BOOL,)


def _cast(h, node, x):
    if node.attr("Truncate", False):
        raise Refusal("Cast with Truncate=true rounds towards zero, which no fused kernel does.")
    return h.cast(x, node.out_dtypes[0])


def _identity(h, node, x):
    return x


ROWS = (
    TfOp(("Cast",), "elementwise", _COMMON + (UINT32, UINT64), _cast, "bits",
         "Float to integer truncates; NaN and out-of-range values give what x86 conversion gives."),
    TfOp(("Identity", "Snapshot", "StopGradient", "PreventGradient"), "view", _COMMON, _identity, "bits",
         "Copies bits.", inputs=1),
    TfOp(("Reshape", "Squeeze", "ExpandDims"), "view", tuple(ALL_DTYPES), _identity, "bits",
         "Copies bits.", inputs=1),
    TfOp(("BroadcastTo", "Fill"), "fill", _COMMON, _identity, "bits", "Copies bits.", inputs=1),
    TfOp(("ZerosLike", "OnesLike"), "fill", _COMMON, None, "bits", "0 (or 1) everywhere, whatever the input."),
)
