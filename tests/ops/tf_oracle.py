"""TF 1.15's own kernels as the oracle for the op table's numpy meaning.

An op runs once over a whole array and once element by element: TF vectorizes its loops and treats the
elements that are left over with other code, so the two may differ. Numpy runs inside a tf.py_func, i.e. on a
TF pool thread, because those threads flush denormals and others don't.
"""
from typing import Any, Callable, Mapping, Sequence

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from tensorflow.python.framework import kernels, op_def_registry  # noqa: E402

from tf_autofuse.ir.dtypes import BFLOAT16, BOOL, BY_TF, DType  # noqa: E402


def tf_type(dtype: DType):
    return tf.as_dtype(dtype.tf)


def to_tf(array: np.ndarray, dtype: DType) -> np.ndarray:
    """Storage array -> what TF feeds (bfloat16 bits become TF's numpy type)."""
    return np.ascontiguousarray(array).view(tf.bfloat16.as_numpy_dtype) if dtype is BFLOAT16 else array


def from_tf(array: np.ndarray) -> np.ndarray:
    """What TF fetches -> storage array."""
    return array.view(np.uint16) if array.dtype == tf.bfloat16.as_numpy_dtype else array


def _session(graph) -> Any:
    config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = -1
    return tf.compat.v1.Session(graph=graph, config=config)


class TfOpRunner:
    """One TF op with placeholders for its inputs; constants: input number -> array that is baked in."""

    def __init__(self, name: str, in_dtypes: Sequence[DType], attrs: Mapping[str, Any],
                 constants: Mapping[int, np.ndarray]):
        definition = op_def_registry.get_registered_ops()[name]
        graph = tf.Graph()
        with graph.as_default():
            tensors = [tf.constant(to_tf(constants[i], d), tf_type(d)) if i in constants
                       else tf.compat.v1.placeholder(tf_type(d)) for i, d in enumerate(in_dtypes)]
            if definition.input_arg[0].number_attr:
                arguments = {definition.input_arg[0].name: tensors}
            else:
                names = ("condition", "x",
                         "y") if name == "Select" else [a.name for a in definition.input_arg]
                arguments = dict(zip(names, tensors))
            out = getattr(tf.raw_ops, name)(**arguments, **attrs)
        self._dtypes = [d for i, d in enumerate(in_dtypes) if i not in constants]
        self.out_dtype = BY_TF[out.dtype.as_datatype_enum]
        self._session = _session(graph)
        self._call = self._session.make_callable(out,
                                                 [t for i, t in enumerate(tensors) if i not in constants])

    def __call__(self, *arrays: np.ndarray) -> np.ndarray:
        return from_tf(self._call(*(to_tf(a, d) for a, d in zip(arrays, self._dtypes))))

    def element_by_element(self, *arrays: np.ndarray) -> np.ndarray:
        """The op on every element alone (arrays are 1-D)."""
        return np.concatenate([self(*(a[i:i + 1] for a in arrays)) for i in range(len(arrays[0]))])


class _PoolThread:
    """A session whose only op calls back into Python, made once."""

    def __init__(self):
        self.work = None
        graph = tf.Graph()
        with graph.as_default():
            op = tf.compat.v1.py_func(self._run, [], tf.int32)
        self.session = _session(graph)
        self.call = self.session.make_callable(op)

    def _run(self):
        self.result = self.work()
        return np.int32(0)


_POOL_THREAD = []


def on_pool_thread(function: Callable[[], np.ndarray]) -> np.ndarray:
    """Runs `function` where TF runs its kernels."""
    if not _POOL_THREAD:
        _POOL_THREAD.append(_PoolThread())
    pool = _POOL_THREAD[0]
    pool.work = function
    pool.call()
    return pool.result


def registered_dtypes(name: str, attr: str) -> frozenset:
    """Names of the dtypes of `attr` that TF takes: allowed by the OpDef and covered by a CPU kernel."""
    definition = op_def_registry.get_registered_ops()[name]
    by_name = {a.name: a for a in definition.attr}
    allowed = {tf.as_dtype(t).name
               for t in by_name[attr].allowed_values.list.type} if attr in by_name else set()
    everything = {tf.as_dtype(n).name for n in BY_TF}
    registered = set()
    for kernel in kernels.get_registered_kernels_for_op(name).kernel:
        if kernel.device_type == "CPU":
            constraint = [c for c in kernel.constraint if c.name == attr]
            registered |= ({tf.as_dtype(t).name for c in constraint for t in c.allowed_values.list.type}
                           if constraint else everything)
    return frozenset(registered & (allowed or everything))
