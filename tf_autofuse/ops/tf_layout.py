"""TF's ops that put elements elsewhere: transpose, slice, split, concat, tile, pad.

None of them computes: their kinds are the names of fusion families, and lowering/moves.py makes index maps
and parts of them. What they store is what they read, bit for bit.
"""
from tf_autofuse.ir.dtypes import (BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT16, INT32, INT64, INT8,
                                   UINT32, UINT64, UINT8)
from tf_autofuse.ops.composing import COMMON
from tf_autofuse.ops.schema import TfOp

#: Tile's kernel is registered for every dtype and refuses the others when it runs.
_TILED = (FLOAT32, FLOAT64, FLOAT16, BFLOAT16, INT8, INT16, INT32, INT64, UINT8, BOOL)
_UNSIGNED = (UINT32, UINT64)
_NO_DOUBLE_FILL = {("ascend", "float64"): "The vector unit cannot fill local memory with a 64-bit float."}


def _moved(h, node, x, *others):
    return x


ROWS = (
    TfOp(("Transpose",), "transpose", COMMON, _moved, "bits", "Copies bits; the permutation is a constant.",
         inputs=1),
    TfOp(("Slice",), "slice", COMMON, _moved, "bits",
         "Copies bits; begin and size are constants or sizes of tensors.", inputs=1),
    TfOp(("StridedSlice",), "slice", COMMON + _UNSIGNED, _moved, "bits",
         "Copies bits; begin and end are constants or sizes of tensors, strides are positive constants.",
         inputs=1),
    TfOp(("Split", "SplitV", "Unpack"), "split", COMMON, _moved, "bits",
         "Copies bits; fused where only fused ops read its outputs.", inputs=1),
    TfOp(("ConcatV2", "Concat"), "concat", COMMON + _UNSIGNED, _moved, "bits",
         "Copies bits; the axis is a constant."),
    TfOp(("Pack",), "concat", COMMON, _moved, "bits", "Copies bits."),
    TfOp(("Tile",), "concat", _TILED, _moved, "bits",
         "Copies bits; multiples are constants or sizes of tensors.", inputs=1),
    TfOp(("Pad",), "concat", COMMON, _moved, "bits", "Copies bits, 0 around them; paddings are constants.",
         inputs=1, refuse=_NO_DOUBLE_FILL),
    TfOp(("PadV2",), "concat", COMMON, _moved, "bits",
         "Copies bits, one value around them; paddings are constants.", refuse=_NO_DOUBLE_FILL),
    TfOp(("MirrorPad",), "concat", COMMON, _moved, "bits",
         "Copies bits; paddings are constants, of at most 8 elements: each is a part of its own.", inputs=1),
)
