"""TF's arithmetic ops: their dtypes in TF 1.15's CPU kernel registry and their meaning as AscIR calls."""
from tf_autofuse.ir.dtypes import (BFLOAT16, FLOAT16, FLOAT32, FLOAT64, INT16, INT32, INT64, INT8, UINT16, UINT8)
from tf_autofuse.ops.schema import TfOp

FLOATS = (FLOAT32, FLOAT64, FLOAT16, BFLOAT16)


def same(asc_type):
    """A lowering that is one AscIR call on the op's inputs."""
    def lower(h, node, *values):
        return h.call(asc_type, *values)
    return lower


ROWS = (
    TfOp(("Abs",), "elementwise", FLOATS + (INT8, INT16, INT32, INT64), same("Abs"), "bits",
         "Clears the sign bit, also of NaN and -0.0; the smallest integer stays itself."),
    TfOp(("Neg",), "elementwise", FLOATS + (INT32, INT64), same("Neg"), "bits",
         "Flips the sign bit, also of NaN and zeros; the smallest integer stays itself."),
    TfOp(("Add",), "elementwise", FLOATS + (INT8, INT16, INT32, INT64, UINT8), same("Add"), "bits",
         "IEEE addition; integers wrap around."),
    TfOp(("AddV2",), "elementwise", FLOATS + (INT8, INT16, INT32, INT64, UINT8), same("Add"), "bits",
         "IEEE addition; integers wrap around."),
    TfOp(("Sub",), "elementwise", FLOATS + (INT8, INT16, INT32, INT64, UINT8, UINT16), same("Sub"), "bits",
         "IEEE subtraction; integers wrap around."),
    TfOp(("Mul",), "elementwise", FLOATS + (INT8, INT16, INT32, INT64, UINT8, UINT16), same("Mul"), "bits",
         "IEEE multiplication; integers wrap around."),
    TfOp(("RealDiv",), "elementwise", FLOATS, same("Div"), "bits",
         "IEEE division: x/0 is infinite, 0/0 is NaN."),
    TfOp(("Maximum",), "elementwise", FLOATS + (INT32, INT64), same("Maximum"), "bits",
         "(a < b) ? b : a: the first operand where one is NaN or both are zeros."),
    TfOp(("Minimum",), "elementwise", FLOATS + (INT32, INT64), same("Minimum"), "bits",
         "(b < a) ? b : a: the first operand where one is NaN or both are zeros."),
)
