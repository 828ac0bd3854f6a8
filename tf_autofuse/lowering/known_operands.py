"""Operands of ops outside of all regions that are known while planning: constants take their place.

Why: shape arithmetic runs where an op that is not fused reads it, as the Reshapes around a matrix product do.
Where its value is known, or is the shape of a Reshape (of a sparse tensor too) of which one dim follows from
the number of elements (then that is -1), the op reads a constant and the arithmetic goes from the graph where
nothing else reads it.

On entry: a lowered graph and its regions. On exit: constants that hold on every run, not only where a guard
does: TensorFlow's op is not guarded. What lowering assumes of dims without TensorFlow failing where that does
not hold (`Lowered.assuming`), and all that is computed from it, is left alone.
"""

from typing import List, NamedTuple, Optional, Sequence, Set, Tuple

from tf_autofuse.ir.loop_layout import element_count
from tf_autofuse.lowering.graph_view import GraphView
from tf_autofuse.lowering.liveness import ALWAYS
from tf_autofuse.lowering.shape_folding import Value
from tf_autofuse.symbolic.size import Size, is_static, known_equal, product

#: Ops whose operands are left alone.
FLOW = frozenset(
    "_Arg _Retval _Send _Recv _HostSend _HostRecv Switch Merge Enter Exit NextIteration LoopCond".split()
)

#: Ops of which an operand may be a shape that is known but for one dim; never the first one.
RESHAPING = ("Reshape", "SparseReshape")


class KnownOperand(NamedTuple):
    """Input `at` of a TF node is the vector `elements`, or the scalar that is its only element, of the TF
    dtype number `dtype`. chain: the nodes that compute it, which go where nothing else reads them."""

    node: int
    at: int
    elements: Tuple[int, ...]
    scalar: bool
    dtype: int
    chain: Tuple[int, ...]


def known_operands(view: GraphView, lowered, fused: Set[int]) -> Tuple[KnownOperand, ...]:
    """fused: the nodes that fused ops replace."""
    if not lowered.folded:
        return ()
    unsure = _unsure(view, lowered.assuming)
    found: List[KnownOperand] = []
    for node, op in enumerate(view.ops):
        if node in fused or node in lowered.folded or op in FLOW or unsure[node]:
            continue
        if view.frames[node] or lowered.alive[node] is not ALWAYS:
            continue
        for at, (source, port) in enumerate(view.inputs[node]):
            if source in lowered.folded and view.devices[source] == view.devices[node]:
                value = lowered.shape_values.of((source, port))
                elements = _numbers(view, lowered, node, at, value)
                if elements is not None:
                    dtype = view.out_dtypes[source][port]
                    chain = _chain(view, lowered.folded, source)
                    found.append(KnownOperand(node, at, elements, value.scalar, dtype, chain))
    return tuple(found)


def _unsure(view: GraphView, assuming: Set[int]) -> List[bool]:
    """Per node whether it is, or is computed from, one whose dims are assumed."""
    unsure = [False] * len(view)
    for node, inputs in enumerate(view.inputs):
        unsure[node] = node in assuming or any(unsure[source] for source, _ in inputs if source < node)
    return unsure


def _numbers(view: GraphView, lowered, node: int, at: int, value: Value) -> Optional[Tuple[int, ...]]:
    elements = value.elements
    unknown = [i for i, e in enumerate(elements) if not is_static(e)]
    if not unknown:
        return elements
    if len(unknown) > 1:
        return None
    # TensorFlow finds the dim at -1 where it need not divide by 0.
    if any(e <= 0 for i, e in enumerate(elements) if i not in unknown):
        return None
    count = _reshaped_elements(view, lowered, node, at)
    if count is None or not known_equal(count, product(elements)):
        return None
    return tuple(-1 if i in unknown else e for i, e in enumerate(elements))


def _reshaped_elements(view: GraphView, lowered, node: int, at: int) -> Optional[Size]:
    """How many elements the node's input `at` is a shape for, None where it is no such operand."""
    if view.ops[node] == "Reshape" and at == 1:
        dims = lowered.dims_of(view.inputs[node][0])
        return None if dims is None else element_count(dims)
    if view.ops[node] == "SparseReshape" and at == 2:
        shape = lowered.shape_values.of(view.inputs[node][1])
        return product(shape.elements) if shape is not None and shape.complete else None
    return None


def _chain(view: GraphView, folded: Set[int], node: int) -> Tuple[int, ...]:
    """The node, the folded nodes that it is computed from, and their constants."""
    found: Set[int] = set()
    pending: Sequence[int] = [node]
    while pending:
        found.update(pending)
        sources = {source for n in pending if n in folded for source, _ in view.inputs[n]} - found
        pending = [s for s in sources if s in folded or _is_free_constant(view, s)]
    return tuple(sorted(found))


def _is_free_constant(view: GraphView, node: int) -> bool:
    return view.ops[node] == "Const" and not view.control_inputs[node] and not view.control_outputs[node]
