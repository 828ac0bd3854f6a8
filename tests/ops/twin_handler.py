"""Runs a TF op's lowering on the twin, one kernel call after the other, with the call texts that kernels
use.
"""
from typing import Optional, Sequence

import numpy as np

from tests.ops import ascend_forms
from tests.ops.compiled_handler import CompiledHandler
from tf_autofuse.ir.dtypes import BOOL, DType, FLOAT32
from tf_autofuse.ops.numpy_handler import Value, result_dtype
from tf_autofuse.ops.schema import Node
from tf_autofuse.ops.table import ASC_OPS, TF_OPS


class TwinHandler(CompiledHandler):
    """Values are numpy arrays of one length; constants become the scalar forms' scalars, or full arrays."""

    def call(self, asc_type: str, *values: Value, dtype: Optional[DType] = None, **attrs) -> Value:
        in_dtypes = [v.dtype for v in values]
        out = result_dtype(asc_type, in_dtypes, dtype)
        row = ASC_OPS[asc_type]
        texts = row.ascend[row.form_key(in_dtypes, out)]
        scalars = [i for i, v in enumerate(values) if v.array.ndim == 0]
        name = "scalar" + "".join(map(str, scalars)) if scalars else "tensor"
        shape = np.broadcast(*[v.array for v in values]).shape
        if name not in texts:
            scalars, name = [], "tensor"
        numbers, floats, tensors = [0] * 4, [0.0] * 4, []
        for i, v in enumerate(values):
            if i in scalars:
                floats[i] = float(v.array)
                numbers[i] = int(v.array) if v.dtype.kind != "f" else 0
            else:
                full = np.ascontiguousarray(np.broadcast_to(v.array, shape))
                tensors.append(full.astype(np.uint8) if v.dtype is BOOL else full)
        for value in attrs.values():
            floats[3], numbers[3] = float(value), int(value)
        probe = "%s:%s:%s" % (asc_type, "-".join(d.name for d in in_dtypes + [out]), name)
        array = self._run(
            probe, np.uint8 if out is BOOL else out.numpy, *tensors, numbers=numbers, values=floats
        )
        return Value(array.astype(bool) if out is BOOL else array, out)


def run_op(handler, name: str, arrays: Sequence[np.ndarray], dtype: DType, attrs=None) -> np.ndarray:
    """TF op `name` by a handler on arrays of one dtype (16-bit floats widened first, rounded at the end)."""
    values = [
        handler.cast(Value(a, dtype), FLOAT32) if dtype.bytes == 2 and dtype.is_floating else Value(a, dtype)
        for a in arrays
    ]
    node = Node(name, (dtype,) * len(arrays), (dtype,), attrs)
    return handler.cast(TF_OPS[name].lower(handler, node, *values), dtype).array


def run_on_twin(run, name: str, arrays: Sequence[np.ndarray], dtype: DType, attrs=None) -> np.ndarray:
    """TF op `name` on the twin."""
    return run_op(TwinHandler(run), name, arrays, dtype, attrs)


def library():
    """The probes of all forms."""
    return ascend_forms.library(list(ascend_forms.forms()))
