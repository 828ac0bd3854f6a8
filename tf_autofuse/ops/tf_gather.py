"""TF's gathers: rows of a tensor at indices that another tensor gives."""
from tf_autofuse.ir.dtypes import UINT32, UINT64
from tf_autofuse.ops.composing import COMMON
from tf_autofuse.ops.schema import TfOp

_DTYPES = COMMON + (UINT32, UINT64)


def _gathered(h, node, params, *indices):
    return params


ROWS = (
    TfOp(("GatherV2", "Gather"), "gather", _DTYPES, _gathered, "bits",
         "Copies bits; an index out of range fails with TensorFlow's own error."),
    TfOp(("ResourceGather",), "gather", COMMON, None, "bits",
         "Copies bits.", refuse={
             (target, "*"): "It reads a variable, whose value a fused op could read at another moment than "
             "TensorFlow does." for target in ("ascend", "host")}),
)
