"""TF's casts, fills and views (ops that move no data)."""
from tf_autofuse.ir.dtypes import UINT32
from tf_autofuse.ops.composing import COMMON, EVERY_DTYPE
from tf_autofuse.ops.schema import Refusal, TfOp


def _cast(h, node, x):
    if node.attr("Truncate", False):
        raise Refusal("Cast with Truncate=true rounds towards zero, which no fused kernel does.")
    return h.cast(x, node.out_dtypes[0])


def _identity(h, node, x):
    return x


def _fill(h, node, dims, value):
    return value


def _uniform(value):
    def lower(h, node, x):
        dtype = h.dtype_of(x)
        return h.constant(bool(value) if dtype.kind == "b" else value, dtype)
    return lower


_NO_DOUBLE_FILL = {("ascend", "float64"): "The vector unit cannot fill local memory with a 64-bit float."}

ROWS = (
    TfOp(("Cast",), "elementwise", EVERY_DTYPE, _cast, "bits",
         "Float to integer truncates; NaN and out-of-range values give what x86's conversions give (int32 "
         "and "
         "narrower: the low bits of the smallest int32). Float to float rounds half to even. To bool: x != "
         "0."),
    TfOp(("Identity", "StopGradient", "PreventGradient"), "view", EVERY_DTYPE, _identity, "bits",
         "Copies bits.", inputs=1),
    TfOp(("Snapshot",), "view", COMMON, _identity, "bits", "Copies bits.", inputs=1),
    TfOp(("Reshape", "Squeeze", "ExpandDims"), "view", EVERY_DTYPE, _identity, "bits", "Copies bits.",
         inputs=1),
    TfOp(("BroadcastTo",), "fill", COMMON, _identity, "bits", "Copies bits.", inputs=1,
         refuse=_NO_DOUBLE_FILL),
    TfOp(("Fill",), "fill", COMMON + (UINT32,), _fill, "bits", "Copies bits; the value is input 1.",
         refuse=_NO_DOUBLE_FILL),
    TfOp(("ZerosLike",), "fill", COMMON, _uniform(0), "bits", "0 everywhere, also where the input is NaN.",
         refuse=_NO_DOUBLE_FILL),
    TfOp(("OnesLike",), "fill", COMMON, _uniform(1), "bits", "1 everywhere, also where the input is NaN.",
         refuse=_NO_DOUBLE_FILL),
)
