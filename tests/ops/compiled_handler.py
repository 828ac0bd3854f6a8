"""What the handlers share that run a lowering by compiled code, one AscIR call after the other."""
from tf_autofuse.ir.dtypes import DType
from tf_autofuse.ops.numpy_handler import NumpyHandler, Value


class CompiledHandler(NumpyHandler):
    """Values are numpy arrays of one length, or constants, which stay known. A cast is a call like any other.
    run: what runs the code of one call, by its name."""

    def __init__(self, run):
        self._run = run

    def cast(self, v: Value, dtype: DType) -> Value:
        return v if v.dtype is dtype else self.call("Cast", v, dtype=dtype)

    def constant(self, value, dtype: DType) -> Value:
        return super().constant(value, dtype)._replace(known=value)
