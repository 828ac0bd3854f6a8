"""TF graphs as columns, written by hand and without TensorFlow, and their meaning on numpy.

    g = GraphBuilder()
    x = g.arg("x", FLOAT32, ("b", 64))       # "b": a run-time dim
    y = g.op("Relu", g.op("Add", x, g.const(1.0)))
    g.ret(y)
    plan(g.view(), Config(), "ascend")

Shapes are inferred as TF's shape functions do: equal run-time dims stay, two that may broadcast give a new
one.
"""

from typing import Any, Dict, List, Mapping, NamedTuple, Sequence, Tuple

import numpy as np

from tf_autofuse.ir.dtypes import BOOL, BY_TF, DType, FLOAT32, INT32, INT64
from tf_autofuse.lowering.graph_view import GraphView
from tf_autofuse.ops.numpy_handler import evaluate_op, evaluate_outputs
from tf_autofuse.ops.table import TF_OPS

CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
COMPARES = (
    "Equal",
    "NotEqual",
    "Greater",
    "GreaterEqual",
    "Less",
    "LessEqual",
    "LogicalAnd",
    "LogicalOr",
    "LogicalNot",
    "IsNan",
    "IsInf",
    "IsFinite",
)
_VIEWS = ("Identity", "Snapshot", "StopGradient", "PreventGradient")


class Tensor(NamedTuple):
    node: int
    port: int = 0


class GraphBuilder:
    """Appends nodes; `columns()` is what the native side would hand over."""

    def __init__(self):
        self._columns: Dict[str, list] = {
            name: []
            for name in (
                "names",
                "ops",
                "devices",
                "inputs",
                "control_inputs",
                "in_dtypes",
                "out_dtypes",
                "out_shapes",
                "attrs",
                "frames",
                "stateful",
            )
        }
        self.constants: Dict[int, np.ndarray] = {}
        self.symbols: List[dict] = []
        self._named: Dict[str, int] = {}
        self._counts: Dict[str, int] = {}
        self.frame = ""
        self.device = CPU

    def __getattr__(self, name):
        columns = self.__dict__.get("_columns", {})
        if name in columns:
            return columns[name]
        raise AttributeError(name)

    def fresh(self, origin: str = "") -> int:
        self.symbols.append({"origin": origin, "dim": 0, "hint": None})
        return -len(self.symbols)

    def shape(self, dims) -> Any:
        """None, or ints where "name" stands for a run-time dim of that name."""
        if dims is None:
            return None
        found = []
        for d in dims:
            if isinstance(d, str):
                if d not in self._named:
                    self._named[d] = self.fresh(d)
                d = self._named[d]
            found.append(d)
        return tuple(found)

    def node(self, op: str, inputs=(), outputs=(), control=(), name=None, attrs=None, stateful=False) -> int:
        """outputs: (TF dtype number, shape) each."""
        count = self._counts.get(op, 0)
        self._counts[op] = count + 1
        c = self._columns
        c["names"].append(name or "%s_%d" % (op.strip("_").lower(), count))
        c["ops"].append(op)
        c["devices"].append(self.device)
        c["inputs"].append(tuple((t.node, t.port) for t in inputs))
        c["control_inputs"].append(tuple(t.node if isinstance(t, Tensor) else t for t in control))
        c["in_dtypes"].append(tuple(c["out_dtypes"][t.node][t.port] % 100 for t in inputs))
        c["out_dtypes"].append(tuple(d for d, _ in outputs))
        c["out_shapes"].append(tuple(s for _, s in outputs))
        c["attrs"].append(dict(attrs or {}))
        c["frames"].append(self.frame)
        c["stateful"].append(stateful)
        return len(c["names"]) - 1

    def arg(self, name: str, dtype: DType, dims, **kw) -> Tensor:
        return Tensor(self.node("_Arg", (), ((dtype.tf, self.shape(dims)),), name=name, stateful=True, **kw))

    def const(self, value, dtype: DType = FLOAT32, **kw) -> Tensor:
        array = np.asarray(value, dtype.numpy)
        node = self.node("Const", (), ((dtype.tf, array.shape),), **kw)
        self.constants[node] = array
        return Tensor(node)

    def dims(self, t: Tensor):
        return self._columns["out_shapes"][t.node][t.port]

    def dtype(self, t: Tensor) -> DType:
        return BY_TF[self._columns["out_dtypes"][t.node][t.port] % 100]

    def op(self, op: str, *inputs: Tensor, dims="infer", dtype: DType = None, **kw) -> Tensor:
        """An op with one output. dims: given where TF's inference is not broadcasting."""
        if dtype is None:
            dtype = BOOL if op in COMPARES else self.dtype(inputs[-1])
        if op in ("BroadcastTo", "Reshape", "ExpandDims", "Squeeze") or op in _VIEWS:
            dtype = self.dtype(inputs[0])
        if dims == "infer":
            shape = self.dims(inputs[0]) if op in _VIEWS else self.broadcast([self.dims(t) for t in inputs])
        else:
            shape = self.shape(dims)
        return Tensor(self.node(op, inputs, ((dtype.tf, shape),), **kw))

    def reshape(self, x: Tensor, dims, **kw) -> Tensor:
        """dims: ints, names of run-time dims, or -1 for one that TF cannot tell."""
        shape = [self.fresh() if d == -1 else self.shape((d,))[0] for d in dims]
        operand = self.const(np.array([d if isinstance(d, int) else -1 for d in dims]), INT32)
        return Tensor(self.node("Reshape", (x, operand), ((self.dtype(x).tf, tuple(shape)),), **kw))

    def reduce(self, op: str, x: Tensor, axes, keep_dims: bool = False, dtype: DType = None, **kw) -> Tensor:
        """A reduction of x; axes: an int for ArgMax and ArgMin (dtype: INT64 by default), a list for
        others."""
        shape = self.dims(x)
        index = op in ("ArgMax", "ArgMin")
        gone = {a % len(shape) for a in ([axes] if index else axes)}
        dims = tuple(1 if i in gone else d for i, d in enumerate(shape) if keep_dims or i not in gone)
        out = dtype or (INT64 if index else self.dtype(x))
        operand = self.const(np.asarray(axes), INT32)
        attrs = {} if index else {"keep_dims": keep_dims}
        return Tensor(self.node(op, (x, operand), ((out.tf, dims),), attrs=attrs, **kw))

    def broadcast(self, shapes):
        result = ()
        for shape in shapes:
            if shape is None or result is None:
                return None
            long, short = (result, shape) if len(result) >= len(shape) else (shape, result)
            dims = list(long)
            for i in range(1, len(short) + 1):
                a, b = long[-i], short[-i]
                dims[-i] = (
                    a
                    if a == b or b == 1
                    else b if a == 1 or (b > 1 and a < 0) else a if a > 1 else self.fresh()
                )
            result = tuple(dims)
        return result

    def ret(self, *tensors: Tensor) -> None:
        for t in tensors:
            self.node("_Retval", (t,))

    def outside(self, *tensors: Tensor, dims=None) -> Tensor:
        """An op that nothing fuses, of the first tensor's shape."""
        shape = self.dims(tensors[0]) if dims is None else self.shape(dims)
        return Tensor(self.node("Outside", tensors, ((self.dtype(tensors[0]).tf, shape),)))

    def columns(self) -> dict:
        return dict(self._columns, constants=self.constants, symbols=self.symbols)

    def view(self) -> GraphView:
        return GraphView.from_columns(self.columns())


def evaluate_graph(g: GraphBuilder, args: Mapping[str, np.ndarray]) -> List[Tuple[np.ndarray, ...]]:
    """Per node its outputs, op by op. An Outside op gives its first input reversed."""
    results: List[Tuple[np.ndarray, ...]] = []
    for i, op in enumerate(g.ops):
        values = [results[s][p] for s, p in g.inputs[i]]
        results.append(_evaluate(g, i, op, values, args))
    return results


def _evaluate(g: GraphBuilder, i: int, op: str, values: Sequence[np.ndarray], args):
    if op == "_Arg":
        return (args[g.names[i]],)
    if op == "Const":
        return (g.constants[i],)
    if op in ("_Retval", "NoOp"):
        return ()
    if op == "Outside":
        return (values[0].reshape(-1)[::-1].reshape(values[0].shape).copy(),)
    if op in _VIEWS:
        return (values[0],)
    if op == "Reshape":
        return (values[0].reshape(tuple(values[1].reshape(-1))),)
    if op == "ExpandDims":
        return (np.expand_dims(values[0], int(values[1])),)
    if op == "Squeeze":
        return (np.squeeze(values[0], tuple(g.attrs[i]["squeeze_dims"])),)
    if op == "BroadcastTo":
        return (np.broadcast_to(values[0], tuple(values[1])).copy(),)
    if op == "Fill":
        return (np.full(tuple(values[0]), values[1]),)
    if op in ("ZerosLike", "OnesLike"):
        return (np.full_like(values[0], op == "OnesLike"),)
    in_dtypes = [BY_TF[d] for d in g.in_dtypes[i]]
    known = tuple(at for at, (source, _) in enumerate(g.inputs[i]) if source in g.constants)
    out = BY_TF[g.out_dtypes[i][0]]
    if TF_OPS[op].kind == "reduce" or op.startswith("FusedBatchNorm"):
        outs = [BY_TF[d] for d in g.out_dtypes[i]]
        return evaluate_outputs(op, values, in_dtypes, outs, g.attrs[i])
    arrays = [v.reshape(1) if v.ndim == 0 else v for v in values]  # numpy treats 0-d operands by value
    result = evaluate_op(op, arrays, in_dtypes, out, g.attrs[i], known)
    return (np.asarray(result).reshape(np.broadcast(*values).shape if len(values) > 1 else values[0].shape),)
