"""TF's activation functions."""
from tf_autofuse.ir.dtypes import (BFLOAT16, FLOAT16, FLOAT32, FLOAT64, INT16, INT32, INT64, INT8, UINT16, UINT8)
from tf_autofuse.ops.schema import TfOp

FLOATS = (FLOAT32, FLOAT64, FLOAT16, BFLOAT16)
INTEGERS = (INT8, INT16, INT32, INT64, UINT8, UINT16)

ROWS = (
    TfOp(("Relu",), "elementwise", FLOATS + INTEGERS, lambda h, node, x: h.call("Relu", x), "bits",
         "(x < 0) ? 0 : x: NaN and -0.0 stay."),
)
