"""AscIR transcendentals and roots. The numpy meaning is the correctly rounded value (float64 inside) for float32."""
import numpy as np

from tf_autofuse.ir.dtypes import FLOAT16, FLOAT32
from tf_autofuse.ops.forms import for_dtypes, unary
from tf_autofuse.ops.schema import AscOp

_FLOATS = (FLOAT32, FLOAT16)


def through_float64(function):
    """evaluate() of a unary function: float64 inside, rounded once."""
    def evaluate(inputs, _attrs, dtype):
        return function(*(x.astype(np.float64) for x in inputs)).astype(dtype.numpy)
    return evaluate


ROWS = (
    AscOp("Exp", 1, "same", for_dtypes(_FLOATS, unary("Exp")), through_float64(np.exp), in_place=True,
          cost=(("Exp", 1),)),
    AscOp("Ln", 1, "same", for_dtypes(_FLOATS, unary("Ln")), through_float64(np.log), in_place=True,
          cost=(("Exp", 1),)),
    AscOp("Sqrt", 1, "same", for_dtypes(_FLOATS, unary("Sqrt")), lambda i, a, d: np.sqrt(i[0]), in_place=True,
          cost=(("Sqrt", 1),)),
)
