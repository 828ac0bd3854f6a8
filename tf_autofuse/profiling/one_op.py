"""One TF op as a kernel of its own: a graph of that op alone goes through lowering and fusion like any other.

Why: what an op costs unfused must be told by the same lowering that a fused one uses. On entry an op with
known dims; on exit its FusedGraph, or None where the op table has no lowering for it, or none for these
operands. Nothing is kept but a bounded cache of answers."""

from functools import lru_cache
from typing import Any, Dict, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from tf_autofuse.config import Config
from tf_autofuse.ir.asc_graph import FusedGraph
from tf_autofuse.ir.dtypes import BY_NAME
from tf_autofuse.lowering.graph_view import GraphView
from tf_autofuse.lowering.plan import plan
from tf_autofuse.ops.table import TF_OPS
from tf_autofuse.profiling.records import Tensor

#: Every family on, an op that stands alone stays fused, no Casts but the op's own.
_CONFIG = Config.from_sources(
    {
        "AUTOFUSE_FLAGS": "--enable_autofuse=true;"
        "--autofuse_enable_pass=reduce,concat,slice,split,gather,transpose",
        "AUTOFUSE_DFX_FLAGS": "--disable_lifting=true",
    },
    {"precision_mode": "must_keep_origin_dtype"},
)


class OneOp(NamedTuple):
    """reads: for each input of `fused`, the number of the op's input."""

    fused: FusedGraph
    reads: Tuple[int, ...]


class _Key(NamedTuple):
    op: str
    inputs: Tuple[Tensor, ...]
    outputs: Tuple[Tensor, ...]
    attrs: Tuple[Tuple[str, Any], ...]
    constants: Tuple[Tuple[int, str, Tuple[int, ...], bytes], ...]
    read: int = -1  # how many of the outputs are read; -1: all


def one_op(
    op: str,
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    attrs: Mapping[str, Any] = {},
    constants: Mapping[int, np.ndarray] = {},
) -> Optional[OneOp]:
    """attrs: the node's, as GraphView has them; constants: values of its inputs that are constants, by
    number. All dims are known and all dtypes of ir.dtypes."""
    row = TF_OPS.get(op)
    if row is None or row.lower is None:
        return None
    values = tuple(
        (i, str(v.dtype), tuple(v.shape), np.ascontiguousarray(v).tobytes())
        for i, v in sorted(constants.items())
    )
    key = _Key(op, tuple(inputs), tuple(outputs), _frozen(attrs), values)
    found = _one_op(key)
    if found is None and len(outputs) > 1:
        # Outputs that nobody reads may be what a lowering has no answer for (statistics of a batch norm).
        found = _one_op(key._replace(read=1))
    return found


def _frozen(attrs: Mapping[str, Any]) -> Tuple[Tuple[str, Any], ...]:
    return tuple((k, tuple(v) if isinstance(v, list) else v) for k, v in sorted(attrs.items()))


@lru_cache(maxsize=4096)
def _one_op(key: _Key) -> Optional[OneOp]:
    view, args = _view(key)
    found = plan(view, _CONFIG, "ascend").regions
    if len(found) != 1 or args[-1] + 1 not in found[0].nodes:
        return None
    (region,) = found
    if any(source not in args or port for source, port in region.inputs):
        return None
    return OneOp(region.fused, tuple(args.index(source) for source, _ in region.inputs))


def _view(key: _Key) -> Tuple[GraphView, Tuple[int, ...]]:
    """The graph: an _Arg or Const for each input, the op, a _Retval for each output that is read; and the
    nodes of its inputs."""
    names = ("names", "ops", "inputs", "in_dtypes", "out_dtypes", "out_shapes", "attrs")
    columns: Dict[str, Any] = {name: [] for name in names}

    def node(name: str, op: str, inputs, outputs: Sequence[Tensor], attrs) -> int:
        columns["names"].append(name)
        columns["ops"].append(op)
        columns["inputs"].append(tuple(inputs))
        columns["in_dtypes"].append(tuple(columns["out_dtypes"][s][p] for s, p in inputs))
        columns["out_dtypes"].append(tuple(BY_NAME[t.dtype].tf for t in outputs))
        columns["out_shapes"].append(tuple(tuple(t.dims) for t in outputs))
        columns["attrs"].append(attrs)
        return len(columns["names"]) - 1

    values = {i: np.frombuffer(data, dtype).reshape(dims) for i, dtype, dims, data in key.constants}
    constants, sources = {}, []
    for i, tensor in enumerate(key.inputs):
        source = node("x%d" % i, "Const" if i in values else "_Arg", (), (tensor,), {})
        sources.append(source)
        if i in values:
            constants[source] = values[i]
    attrs = {k: list(v) if isinstance(v, tuple) else v for k, v in key.attrs}
    made = node(key.op, key.op, [(s, 0) for s in sources], key.outputs, attrs)
    for i in range(len(key.outputs) if key.read < 0 else key.read):
        node("y%d" % i, "_Retval", [(made, i)], (), {})
    count = len(columns["names"])
    columns.update(
        devices=[""] * count,
        control_inputs=[()] * count,
        frames=[""] * count,
        stateful=[op in ("_Arg", "_Retval") for op in columns["ops"]],
        constants=constants,
        symbols=(),
    )
    return GraphView.from_columns(columns), tuple(sources)
