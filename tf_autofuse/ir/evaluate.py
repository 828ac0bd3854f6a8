"""What a FusedGraph means, on numpy: the TF-free oracle for schedule, codegen and kernels.

On entry a verified FusedGraph and one array per input (storage types of ir/dtypes.py: bfloat16 as its bits in
uint16); on exit one array per output. Every compute node is evaluated by its row of the op table over the
whole loop nest, Loads and Stores by their strides, so run-time broadcast and views are covered; nothing here
knows of tiles. Dims are checked as the generated shape function checks them: GuardFailure is what the
fallback stands for.
"""
from typing import Dict, List, Mapping, Sequence, Tuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tf_autofuse.ir.asc_graph import AscGraph, AscNode, FusedGraph, TensorRef
from tf_autofuse.ir.dtypes import BFLOAT16, FLOAT32, DType
from tf_autofuse.symbolic.guards import GuardFailure, bind
from tf_autofuse.symbolic.size import evaluate, to_text


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

    Raises GuardFailure for dims that the kernel would refuse, EvaluationError for a wrong graph, TypeError
    for an array of another storage type.
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


class _Run:
    def __init__(self, values: Mapping[str, int], inputs, outputs):
        self.values, self.inputs, self.outputs = values, inputs, outputs
        self.written = [_Memory(dtype, int(np.prod(dims, dtype=np.int64))) for dtype, dims in outputs]
        self.workspaces: Dict[int, _Memory] = {}

    def results(self) -> List[np.ndarray]:
        for number, memory in enumerate(self.written):
            if not np.all(memory.written == 1):
                wrong = int(np.flatnonzero(memory.written != 1)[0])
                raise EvaluationError(
                    "element %d of output %d is written %d times" % (wrong, number, memory.written[wrong])
                )
        return [m.data.reshape(dims) for m, (_, dims) in zip(self.written, self.outputs)]

    def graph(self, graph: AscGraph) -> None:
        computed: Dict[TensorRef, Tuple[np.ndarray, DType]] = {}
        for node in graph.nodes:
            sources = [computed.get(r) for r in node.inputs]
            if node.type == "Data" or (node.type == "Workspace" and not node.inputs):
                continue
            if node.type == "Output":
                self.store(graph, node, self.written[node.attr("index")], computed)
            elif node.type == "Workspace":
                self.workspaces[node.attr("index")] = _Memory(node.y.dtype, self.extent(graph, node))
                self.store(graph, node, self.workspaces[node.attr("index")], computed)
            elif node.type == "Store":
                computed[TensorRef(node.name)] = sources[0]
            elif node.type == "Load":
                computed[TensorRef(node.name)] = self.load(graph, node), node.y.dtype
            elif node.type == "Scalar":
                computed[TensorRef(node.name)] = _scalar(node), node.y.dtype
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
        result = evaluate_call(
            node.type, [a for a, _ in sources], [d for _, d in sources], dict(node.attrs), node.y.dtype
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
        source = graph.node(node.inputs[0].node)
        if source.type == "Data":
            memory = self.inputs[source.attr("index")].reshape(-1)
        elif source.attr("index") in self.workspaces:
            memory = self.workspaces[source.attr("index")].data
        else:
            raise EvaluationError("%s, node %s: the workspace is not written yet" % (graph.name, node.name))
        return np.array(self.window(graph, node, memory, False))

    def extent(self, graph: AscGraph, node: AscNode) -> int:
        """Elements up to the last one that the Store before a Workspace writes."""
        store = graph.node(node.inputs[0].node)
        shape = self.shape(store)
        if 0 in shape:
            return 0
        return (
            1
            + evaluate(store.attr("offset", 0), self.values)
            + sum((e - 1) * evaluate(s, self.values) for e, s in zip(shape, store.y.strides))
        )

    def store(self, graph: AscGraph, sink: AscNode, memory: _Memory, computed) -> None:
        node = graph.node(sink.inputs[0].node)
        array = computed[TensorRef(node.name)][0]
        self.window(graph, node, memory.data, True)[...] = array
        # By index and not through a view: a Store that hits one element twice must count twice.
        index = self.window(graph, node, np.arange(memory.data.size), False)
        memory.written += np.bincount(index.reshape(-1), minlength=memory.written.size).astype(
            memory.written.dtype
        )


def _scalar(node: AscNode) -> np.ndarray:
    """The constant with shape (1,): numpy's rules for 0-d operands (dtypes by value) are not ours."""
    from tf_autofuse.ops.ascir_cast import cast_array

    value, dtype = node.attr("value"), node.y.dtype
    if dtype is BFLOAT16:
        return cast_array(np.array([value], np.float32), FLOAT32, BFLOAT16)
    return np.array([value], dtype.numpy)
