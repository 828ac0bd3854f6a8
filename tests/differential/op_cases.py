"""One graph per TF op and dtype, generated from the op table: a new row is tested without a line here.

Ops whose further inputs are not values (shapes, axes) or whose inputs have a form of their own are listed in
_SHAPED; everything else is called through tf.raw_ops with one placeholder an input.
"""
from typing import Dict, List, NamedTuple, Tuple

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import op_def_registry

from tf_autofuse.ir.dtypes import BY_NAME, DType
from tf_autofuse.ops.table import TF_OPS, support

TARGET = "ascend"


class Case(NamedTuple):
    """One op at one dtype; `supported` is the op table's word for the ascend target."""

    op: str
    dtype: DType
    out: str = ""

    def __str__(self):
        return "-".join(x for x in (self.op, self.dtype.name, self.out) if x)


def tf_dtype(dtype: DType) -> tf.DType:
    return tf.as_dtype(dtype.tf)


def numpy_dtype(dtype: DType):
    return tf_dtype(dtype).as_numpy_dtype


def cases(target: str = TARGET) -> List[Case]:
    """Every (op, dtype) that the table says the target takes, of elementwise ops, views and fills."""
    result = []
    for name in sorted(TF_OPS):
        if TF_OPS[name].kind not in ("elementwise", "view", "fill") or name.startswith("FusedBatchNorm"):
            continue  # tests of their own
        for dtype in TF_OPS[name].dtypes:
            if name == "Cast":
                result += [
                    Case(name, dtype, out)
                    for out in sorted(BY_NAME)
                    if out not in ("uint32", "uint64") and support(name, dtype, target, BY_NAME[out]).ok
                ]
            elif support(name, dtype, target).ok and (TF_OPS[name].kind == "elementwise" or _partner(dtype)):
                result.append(Case(name, dtype))
    return result


def _partner(dtype: DType) -> str:
    """A TF op that joins a view or a fill to a region, since these alone are not worth a kernel; '' for
    none."""
    for name in ("AddV2", "LogicalNot"):
        if dtype in TF_OPS[name].dtypes and support(name, dtype, TARGET).ok:
            return name
    return ""


SPECIAL_FLOATS = (
    float("nan"),
    float("inf"),
    float("-inf"),
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    -1.5,
    2.5,
    -2.5,
    3.0,
    -3.0,
    0.49999997,
    -0.49999997,
    1e-3,
    -1e-3,
    1e-30,
    -1e-30,
    3e38,
    -3e38,
    1e10,
    -1e10,
    16777217.0,
    2147483648.0,
    -2147483648.0,
    -2147483904.0,
    65504.0,
    65520.0,
    88.8,
    -88.8,
    104.0,
    -104.0,
    127.5,
    255.5,
    256.0,
    32767.5,
    -32769.0,
    0.1,
    0.9,
    7.0,
    19.9,
    -19.9,
)


def special_values(dtype: DType) -> np.ndarray:
    """Values where ops go wrong, in the dtype. No float32 denormals: TF's pool threads flush them and the
    result depends on the thread (docs/numerics.md)."""
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.is_integer:
        info = np.iinfo(dtype.numpy)
        values = {info.min, info.min + 1, info.max, info.max - 1, info.max // 2, 0, 1, 2, 3, 5, 7, 100, 127}
        values |= {-v for v in (1, 2, 3, 5, 7, 100)} if info.min < 0 else set()
        return np.array(sorted(v for v in values if info.min <= v <= info.max), dtype.numpy)
    with np.errstate(over="ignore"):
        return np.array(SPECIAL_FLOATS).astype(numpy_dtype(dtype))


def random_values(dtype: DType, count: int, seed: int) -> np.ndarray:
    generator = np.random.RandomState(seed)
    if dtype.kind == "b":
        return generator.rand(count) < 0.5
    if dtype.is_integer:
        return np.frombuffer(generator.bytes(count * dtype.bytes), dtype.numpy).copy()
    scale = np.exp2(generator.uniform(-20, 12, count))
    return (generator.randn(count) * scale).astype(numpy_dtype(dtype))


def signature(op: str, dtype: DType) -> Tuple[Tuple[str, DType], ...]:
    """(input name, dtype) of the op's value inputs."""
    if op == "AddN":
        return (("a", dtype), ("b", dtype), ("c", dtype))
    definition = op_def_registry.get_registered_ops()[op]
    inputs = definition.input_arg
    if op in _SHAPED:
        inputs = [a for a in inputs if a.name in _SHAPED[op][0]]
    return tuple((a.name, dtype if a.type_attr else BY_NAME[tf.as_dtype(a.type).name]) for a in inputs)


def fetch_of(case: Case, values: Dict[str, tf.Tensor]) -> tf.Tensor:
    """What is fetched: the op; a view or fill between two ops of its own dtype."""
    if TF_OPS[case.op].kind == "elementwise":
        return call(case, values)
    join = {
        "AddV2": lambda t: tf.raw_ops.AddV2(x=t, y=t),
        "LogicalNot": lambda t: tf.raw_ops.LogicalNot(x=t),
    }[_partner(case.dtype)]
    return join(call(case, {n: join(v) for n, v in values.items()}))


def call(case: Case, values: Dict[str, tf.Tensor]) -> tf.Tensor:
    """The op on the tensors."""
    if case.op == "AddN":
        return tf.raw_ops.AddN(inputs=[values["a"], values["b"], values["c"]])
    if case.op == "Cast":
        return tf.raw_ops.Cast(x=values["x"], DstT=tf_dtype(BY_NAME[case.out]))
    if case.op in _SHAPED:
        return _SHAPED[case.op][1](values)
    return getattr(tf.raw_ops, case.op)(**{_RENAMED.get((case.op, n), n): v for n, v in values.items()})


#: Arguments whose Python name is not the op definition's.
_RENAMED = {("Select", "t"): "x", ("Select", "e"): "y"}


def _bias_add(op):
    return lambda v: op(value=tf.raw_ops.Reshape(tensor=v["value"], shape=[1, -1]), bias=v["bias"])


_SHAPED = {
    "BroadcastTo": (("input",), lambda v: tf.raw_ops.BroadcastTo(
        input=v["input"], shape=[3, v["input"].shape[0].value])),
    "ExpandDims": (("input",), lambda v: tf.raw_ops.ExpandDims(input=v["input"], axis=1)),
    "Reshape": (("tensor",), lambda v: tf.raw_ops.Reshape(tensor=v["tensor"], shape=[-1, 1])),
    "Squeeze": (("input",), lambda v: tf.raw_ops.Squeeze(
        input=tf.raw_ops.ExpandDims(input=v["input"], axis=0), axis=[0])),
    "BiasAdd": (("value", "bias"), _bias_add(tf.raw_ops.BiasAdd)),
    "BiasAddV1": (("value", "bias"), _bias_add(tf.raw_ops.BiasAddV1)),
    "Fill": (("value",), lambda v: tf.raw_ops.Fill(
        dims=[v["value"].shape[0].value], value=tf.raw_ops.Reshape(tensor=v["value"][:1], shape=[]))),
}
#: Ops that need their inputs' dims while the graph is made.
STATIC = frozenset(("BroadcastTo", "Fill"))
