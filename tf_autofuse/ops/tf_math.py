"""TF's transcendental functions and roots."""
from tf_autofuse.ir.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64
from tf_autofuse.ops.schema import TfOp

FLOATS = (FLOAT32, FLOAT64, FLOAT16)

ROWS = (
    TfOp(("Exp",), "elementwise", FLOATS, lambda h, node, x: h.call("Exp", x), "ulp",
         "exp(-inf) = 0, exp(inf) = inf, NaN stays."),
    TfOp(("Log",), "elementwise", FLOATS + (BFLOAT16,), lambda h, node, x: h.call("Ln", x), "ulp",
         "log(0) = -inf, log of a negative number is NaN."),
    TfOp(("Sqrt",), "elementwise", FLOATS + (BFLOAT16,), lambda h, node, x: h.call("Sqrt", x), "bits",
         "Correctly rounded; sqrt(-0.0) = -0.0, the root of a negative number is NaN."),
)
