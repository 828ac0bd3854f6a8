"""Arithmetic on shapes beside the regions: who reads what when the readers know the sizes by themselves.

Why: tf.reshape(x, tf.stack([tf.shape(y)[0], 64])) is a view for a fused op, which knows y's dims. The ops
that computed the operand need not run then, unless something else reads them. So a region reads the
*sources* of such a chain (y, of which only the dims are looked at) in the place of its result, and the
chain's nodes are copied into the region's fallback function; what nobody reads any more goes from the graph.

On entry: the lowered boxes and, per node, which inputs were taken as known (`known`). On exit: inputs and
consumers as fusion is to see them. A folded node is *alive* where something reads its value all the same.
"""

from typing import Dict, FrozenSet, List, Mapping, Sequence, Set, Tuple

from tf_autofuse.ir.dtypes import BY_TF
from tf_autofuse.lowering.graph_view import GraphView

Tensor = Tuple[int, int]


def may_go(view: GraphView, node: int) -> bool:
    """Whether a node that only computes known sizes can be copied and can go from the graph."""
    return (
        bool(view.consumers[node])
        and not view.control_inputs[node]
        and not view.control_outputs[node]
        and not view.stateful[node]
        and all(view.out_dtypes[source][port] in BY_TF for source, port in view.inputs[node])
        and all(view.frames[c] == view.frames[node] for c in view.consumers[node])
    )


class ShapeChains:
    """folded: nodes that only compute known sizes. known: (node, input position) of boxed nodes that do not
    read the folded node there. inputs: per node the tensors that it reads, sources in the place of chains;
    consumers: the reverse, once each, ascending."""

    def __init__(self, view: GraphView, folded: Set[int], known: Set[Tuple[int, int]]):
        self._view = view
        self._folded = folded
        self._known = known
        self._sources: Dict[int, FrozenSet[Tensor]] = {}
        if not known:
            self.inputs: Sequence[Tuple[Tensor, ...]] = view.inputs
            self.consumers: Sequence[Tuple[int, ...]] = view.consumers
            return
        self.inputs = [self._inputs_of(node) for node in range(len(view))]
        alive = self._alive()
        readers: List[Dict[int, None]] = [{} for _ in view.names]
        for node, inputs in enumerate(self.inputs):
            if node not in folded or node in alive:
                for source, _ in inputs:
                    readers[source][node] = None
        self.consumers = [tuple(r) for r in readers]

    def _inputs_of(self, node: int) -> Tuple[Tensor, ...]:
        inputs = self._view.inputs[node]
        if not any((node, at) in self._known for at in range(len(inputs))):
            return inputs
        found: Dict[Tensor, None] = {}
        for at, tensor in enumerate(inputs):
            if (node, at) in self._known:
                found.update((source, None) for source in sorted(self.sources(tensor[0])))
            else:
                found[tensor] = None
        return tuple(found)

    def sources(self, node: int) -> FrozenSet[Tensor]:
        """The tensors whose dims the folded node's chain is made of."""
        if node not in self._sources:
            pending, chain = [node], {node}
            found: Set[Tensor] = set()
            while pending:
                for tensor in self._view.inputs[pending.pop()]:
                    source = tensor[0]
                    if source in self._folded:
                        if source not in chain:
                            chain.add(source)
                            pending.append(source)
                    elif self._view.ops[source] != "Const":
                        found.add(tensor)
            self._sources[node] = frozenset(found)
        return self._sources[node]

    def _alive(self) -> Set[int]:
        """Folded nodes whose value something reads."""
        view, alive = self._view, set()
        for node in sorted(self._folded, reverse=True):
            for reader in view.consumers[node]:
                if reader in self._folded:
                    reads = reader in alive
                else:
                    reads = any(
                        source == node and (reader, at) not in self._known
                        for at, (source, _) in enumerate(view.inputs[reader])
                    )
                if reads:
                    alive.add(node)
                    break
        return alive

    def copies_for(self, members: Sequence[int], loads: FrozenSet[Tensor]) -> Tuple[int, ...]:
        """The nodes that the members' known inputs are computed by, with the constants that these read,
        ascending. loads: tensors that the region reads as data; they are no copies."""
        view, found = self._view, set()
        pending = [
            view.inputs[m][at][0]
            for m in members
            for at in range(len(view.inputs[m]))
            if (m, at) in self._known
        ]
        while pending:
            node = pending.pop()
            if node not in found:
                found.add(node)
                for source, port in view.inputs[node]:
                    goes = view.ops[source] == "Const" and not view.control_inputs[source]
                    if (source in self._folded or goes) and (source, port) not in loads:
                        pending.append(source)
        return tuple(sorted(found))


def chains_of(view: GraphView, folded: Set[int], known: Set[Tuple[int, int]], boxes: Mapping) -> ShapeChains:
    """known: as lowering found it, also for nodes that have no box in the end."""
    return ShapeChains(view, folded, {(node, at) for node, at in known if node in boxes})
