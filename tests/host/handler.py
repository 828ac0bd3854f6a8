"""Runs a TF op's lowering with the host target's expressions, one compiled loop after the other."""
from typing import Optional

import numpy as np

from tests.host import compiled
from tests.ops.compiled_handler import CompiledHandler
from tf_autofuse.ir.dtypes import BOOL, DType, FLOAT16, FLOAT32
from tf_autofuse.ops import host_forms
from tf_autofuse.ops.numpy_handler import Value, result_dtype
from tf_autofuse.ops.table import ASC_OPS

_DTYPES = (FLOAT32, FLOAT16, BOOL)


def _name(type_, in_dtypes, out):
    return "_".join([type_] + [d.name for d in in_dtypes] + [out.name])


def _loops():
    """Of every row that computes on float32 or bool, and of casts between these and float16."""
    for row in ASC_OPS.values():
        for key, text in row.host.items():
            keys = key if row.type == "Cast" else (key,)
            if row.reduces or "{attr_" in text or not set(keys) <= set(_DTYPES):
                continue
            ins = (BOOL, key, key) if row.type == "Where" else keys[:1] * row.arity
            out = BOOL if row.result == "bool" else keys[-1]
            yield compiled.Loop(_name(row.type, ins, out), (out.host,) + tuple(d.host for d in ins), text,
                                host_forms.headers(text))


def library():
    return compiled.library(list(_loops()), compiled.AVX2)


class HostHandler(CompiledHandler):
    """Values are numpy arrays of one length, or constants. run: what `library` gives."""

    def call(self, asc_type: str, *values: Value, dtype: Optional[DType] = None, **attrs) -> Value:
        in_dtypes = [v.dtype for v in values]
        out = result_dtype(asc_type, in_dtypes, dtype)
        shape = np.broadcast(*[v.array for v in values]).shape
        full = [np.ascontiguousarray(np.broadcast_to(v.array, shape)) for v in values]
        arrays = [a.astype(np.uint8) if a.dtype == np.bool_ else a for a in full]
        array = self._run(_name(asc_type, in_dtypes, out), np.uint8 if out is BOOL else out.numpy, *arrays)
        return Value(array.astype(bool) if out is BOOL else array, out)
