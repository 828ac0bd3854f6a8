"""What a FusedGraph means, on numpy: the TF-free oracle for schedule, codegen and kernels.

On entry a verified FusedGraph and one array per input (storage types of ir/dtypes.py: bfloat16 as its bits in
uint16); on exit one array per output. Every compute node is evaluated by its row of the op table over the
whole loop nest, Loads and Stores by their strides, so run-time broadcast and views are covered; nothing here
knows of tiles. Dims are checked as the generated shape function checks them: GuardFailure is what the
fallback stands for, also for an index out of range (ValueCheckFailed).
"""
from typing import Dict, List, Mapping, Sequence, Set, Tuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tf_autofuse.ir.asc_graph import AscGraph, AscNode, FusedGraph, TensorRef
from tf_autofuse.ir.dtypes import BFLOAT16, FLOAT32, INT64, DType
from tf_autofuse.symbolic.guards import GuardFailure, ValueCheckFailed, bind
from tf_autofuse.symbolic.size import evaluate, is_static, to_text


class EvaluationError(Exception):
    """The graph cannot be evaluated: an access outside of its tensor, or an output that is not written
    once."""


def bind_inputs(fused: FusedGraph, dims: Sequence[Sequence[int]]) -> Mapping[str, int]:
    """The value of every symbol for the dims of all inputs, after all checks of the generated shape function.

    Raises GuardFailure where a rank or dim is not what `fused.inputs` says or a guard does not hold.
    """
    for number, (io, actual) in enumerate(zip(fused.inputs, dims)):
        if len(io.dims) != len(actual):
            raise GuardFailure("input %d has rank %d, not %d" % (number, len(actual), len(io.dims)))
    if len(dims) != len(fused.inputs):
        raise GuardFailure("%d inputs, not %d" % (len(dims), len(fused.inputs)))
    values = bind(fused.sizes, tuple(tuple(int(d) for d in shape) for shape in dims))
    for number, (io, actual) in enumerate(zip(fused.inputs, dims)):
        for position, (size, found) in enumerate(zip(io.dims, actual)):
            if evaluate(size, values) != found:
                raise GuardFailure(
                    "dim %d of input %d is %d, not %s = %d"
                    % (position, number, found, to_text(size), evaluate(size, values))
                )
    for guard in fused.guards:
        if not guard.holds(values):
            raise GuardFailure(
                "%r does not hold (%d, %d)%s"
                % (
                    guard,
                    evaluate(guard.left, values),
                    evaluate(guard.right, values),
                    ", which %s needs" % guard.why if guard.why else "",
                )
            )
    return values


def evaluate_fused(fused: FusedGraph, inputs: Sequence[np.ndarray]) -> List[np.ndarray]:
    """The outputs of `fused` for `inputs`.

    Raises GuardFailure for dims that the kernel would refuse (ValueCheckFailed for values), EvaluationError
    for a wrong graph, TypeError for an array of another storage type.
    """
    arrays = [np.ascontiguousarray(a) if a.ndim else a for a in map(np.asarray, inputs)]
    for number, (io, array) in enumerate(zip(fused.inputs, arrays)):
        if array.dtype != np.dtype(io.dtype.numpy):
            raise TypeError(
                "input %d holds %s; %s is stored as %s"
                % (number, array.dtype, io.dtype.name, np.dtype(io.dtype.numpy))
            )
    values = bind_inputs(fused, [a.shape for a in arrays])
    run = _Run(
        values, arrays, [(io.dtype, tuple(evaluate(d, values) for d in io.dims)) for io in fused.outputs]
    )
    for graph in fused.graphs:
        run.graph(graph)
    return run.results()


class _Memory:
    """A dense tensor in GM that is being written: which elements are, is part of the state."""

    def __init__(self, dtype: DType, count: int):
        self.data = np.zeros(count, dtype.numpy)
        self.written = np.zeros(count, np.int64)


    def grow(self, count: int) -> None:
        more = max(count - self.data.size, 0)
        self.data = np.concatenate([self.data, np.zeros(more, self.data.dtype)])
        self.written = np.concatenate([self.written, np.zeros(more, np.int64)])

    def require_written_once(self, what: str) -> None:
        if not np.all(self.written == 1):
            wrong = int(np.flatnonzero(self.written != 1)[0])
            raise EvaluationError("element %d of %s is written %d times" % (wrong, what, self.written[wrong]))


class _Run:
    def __init__(self, values: Mapping[str, int], inputs, outputs):
        self.values, self.inputs, self.outputs = values, inputs, outputs
        self.written = [_Memory(dtype, int(np.prod(dims, dtype=np.int64))) for dtype, dims in outputs]
        self.workspaces: Dict[int, _Memory] = {}
        self.complete: Set[int] = set()  # workspaces that were read, so that all of it was checked

    def results(self) -> List[np.ndarray]:
        for number, memory in enumerate(self.written):
            memory.require_written_once("output %d" % number)
        return [m.data.reshape(dims) for m, (_, dims) in zip(self.written, self.outputs)]

    def graph(self, graph: AscGraph) -> None:
        computed: Dict[TensorRef, Tuple[np.ndarray, DType]] = {}
        for node in graph.nodes:
            sources = [computed.get(r) for r in node.inputs]
            if node.type == "Data" or (node.type == "Workspace" and not node.inputs):
                continue
            if node.type in ("Output", "Workspace"):
                for ref in node.inputs:
                    store = graph.node(ref.node)
                    self.store(graph, store, self.sink(node, store), computed[ref][0])
            elif node.type == "Store":
                computed[TensorRef(node.name)] = sources[0]
            elif node.type == "Load":
                computed[TensorRef(node.name)] = self.load(graph, node), node.y.dtype
            elif node.type == "Scalar":
                computed[TensorRef(node.name)] = _scalar(node, self.values), node.y.dtype
            elif node.type == "Gather":
                computed[TensorRef(node.name)] = self.gather(graph, node, sources[1][0]), node.y.dtype
            elif node.type == "Broadcast":
                computed[TensorRef(node.name)] = (
                    np.broadcast_to(sources[0][0], self.shape(node)),
                    node.y.dtype,
                )
            else:
                computed[TensorRef(node.name)] = self.compute(node, sources), node.y.dtype

    def shape(self, node: AscNode) -> Tuple[int, ...]:
        return tuple(evaluate(r, self.values) for r in node.y.repeats)

    def compute(self, node: AscNode, sources) -> np.ndarray:
        from tf_autofuse.ops.numpy_handler import evaluate_call

        if len(node.outputs) != 1:
            raise EvaluationError("node %s has %d outputs" % (node.name, len(node.outputs)))
        node_attrs = dict(node.attrs)
        if "axes" in node_attrs:  # rows know positions, not ids
            node_attrs["axes"] = tuple(node.y.axis.index(a) for a in node_attrs["axes"])
        result = evaluate_call(
            node.type, [a for a, _ in sources], [d for _, d in sources], node_attrs, node.y.dtype
        )
        return np.broadcast_to(result, self.shape(node))

    def window(self, graph: AscGraph, node: AscNode, memory: np.ndarray, writeable: bool) -> np.ndarray:
        """The elements of flat `memory` that a Load or Store touches, as a view over the loop axes."""
        shape = self.shape(node)
        strides = [evaluate(s, self.values) for s in node.y.strides]
        offset = evaluate(node.attr("offset", 0), self.values)
        if 0 in shape:
            return np.empty(shape, memory.dtype)
        steps = [(e - 1) * s for e, s in zip(shape, strides)]
        low, high = offset + sum(min(s, 0) for s in steps), offset + sum(max(s, 0) for s in steps)
        if low < 0 or high >= memory.size:
            raise EvaluationError(
                "%s, node %s: elements %d..%d of a tensor of %d elements"
                % (graph.name, node.name, low, high, memory.size)
            )
        return as_strided(memory[offset:], shape, [s * memory.itemsize for s in strides], writeable=writeable)

    def load(self, graph: AscGraph, node: AscNode) -> np.ndarray:
        return np.array(self.window(graph, node, self.source(graph, node), False))

    def source(self, graph: AscGraph, node: AscNode) -> np.ndarray:
        """The flat tensor that a Load or Gather reads."""
        source = graph.node(node.inputs[0].node)
        index = source.attr("index")
        if source.type == "Data":
            return self.inputs[index].reshape(-1)
        if index not in self.workspaces:
            raise EvaluationError("%s, node %s: the workspace is not written yet" % (graph.name, node.name))
        if index not in self.complete:
            self.workspaces[index].require_written_once("workspace %d" % index)
            self.complete.add(index)
        return self.workspaces[index].data

    def gather(self, graph: AscGraph, node: AscNode, index: np.ndarray) -> np.ndarray:
        memory, shape = self.source(graph, node), self.shape(node)
        if 0 in shape:
            return np.empty(shape, memory.dtype)
        size, step = (evaluate(node.attr(name), self.values) for name in ("index_size", "index_stride"))
        index = np.broadcast_to(index, shape).astype(np.int64)
        outside = (index < 0) | (index >= size)
        if outside.any():
            raise ValueCheckFailed(
                "%s, node %s: index %d is not in [0, %d)"
                % (graph.name, node.name, index[outside].reshape(-1)[0], size)
            )
        at = evaluate(node.attr("offset", 0), self.values) + index * step
        for axis, stride in enumerate(node.y.strides):
            along = [-1 if i == axis else 1 for i in range(len(shape))]
            at = at + np.arange(shape[axis]).reshape(along) * evaluate(stride, self.values)
        if at.min() < 0 or at.max() >= memory.size:
            raise EvaluationError(
                "%s, node %s: elements %d..%d of a tensor of %d elements"
                % (graph.name, node.name, at.min(), at.max(), memory.size)
            )
        return memory[at]

    def sink(self, node: AscNode, store: AscNode) -> _Memory:
        """The tensor that an Output or Workspace stands for; a workspace is as long as its Stores span."""
        index = node.attr("index")
        if node.type == "Output":
            return self.written[index]
        memory = self.workspaces.setdefault(index, _Memory(node.y.dtype, 0))
        memory.grow(self.extent(store))
        return memory

    def extent(self, store: AscNode) -> int:
        """Elements up to the last one that the Store writes."""
        shape = self.shape(store)
        if 0 in shape:
            return 0
        return (
            1
            + evaluate(store.attr("offset", 0), self.values)
            + sum((e - 1) * evaluate(s, self.values) for e, s in zip(shape, store.y.strides))
        )

    def store(self, graph: AscGraph, node: AscNode, memory: _Memory, array: np.ndarray) -> None:
        self.window(graph, node, memory.data, True)[...] = array
        # By index and not through a view: a Store that hits one element twice must count twice.
        index = self.window(graph, node, np.arange(memory.data.size), False)
        memory.written += np.bincount(index.reshape(-1), minlength=memory.written.size).astype(
            memory.written.dtype
        )


def _scalar(node: AscNode, values: Mapping[str, int]) -> np.ndarray:
    """The constant with shape (1,): numpy's rules for 0-d operands (dtypes by value) are not ours."""
    from tf_autofuse.ops.ascir_cast import cast_array

    value, dtype = node.attr("value"), node.y.dtype
    if not is_static(value):
        return cast_array(np.array([evaluate(value, values)], np.int64), INT64, dtype)
    if dtype is BFLOAT16:
        return cast_array(np.array([value], np.float32), FLOAT32, BFLOAT16)
    return np.array([value], dtype.numpy)
