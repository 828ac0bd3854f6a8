"""The modelled time of a whole graph on a chip, with and without fusion, from its columns alone.

Why: a model that no host can run in reasonable time, or for a chip that is not there, is still planned: its
regions and dims say what would run. Nothing is built or run. On entry a GraphView whose dims are all known
and whose results go to _Retval nodes; on exit the kernels of both sides, in the graph's order. A region that
the schedule refuses counts as unfused, as it would in a session."""

from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from tf_autofuse.config import Config
from tf_autofuse.ir.dtypes import BY_TF
from tf_autofuse.lowering.graph_view import GraphView
from tf_autofuse.lowering.plan import Region, plan
from tf_autofuse.machine import Machine
from tf_autofuse.profiling.npu_time import UNKNOWN, Modelled, analytic, model_op
from tf_autofuse.profiling.records import MOST_ELEMENTS, Tensor


class Kernel(NamedTuple):
    """name, op: of the node; a fused op's name names its ops."""

    name: str
    op: str
    modelled: Modelled


class GraphTime(NamedTuple):
    """before, after: kernels without fusion and with it; views and constants have none. fused: TF nodes in
    fused ops. missing: op types that are not modelled unfused, with their number: `before` lacks them, and
    `after` those that stay."""

    before: Tuple[Kernel, ...]
    after: Tuple[Kernel, ...]
    fused: int
    missing: Tuple[Tuple[str, int], ...]


def total_cycles(kernels: Sequence[Kernel]) -> float:
    return sum(k.modelled.cycles for k in kernels)


def graph_time(view: GraphView, config: Config, machine: Machine) -> GraphTime:
    """The ascend target's plan for the graph."""
    model = _Model(view, machine)
    alive = _alive(view)
    regions, inside = [], {}  # type: List[Tuple[Region, Modelled]], Dict[int, int]
    for region in plan(view, config, "ascend").regions:
        modelled = model.region(region)
        if modelled is not None:
            inside.update((node, len(regions)) for node in region.nodes)
            regions.append((region, modelled))
    # A fused op stands where the last of its nodes was that something needs.
    last = {inside[node]: node for node in alive if node in inside}
    before: List[Kernel] = []
    after: List[Kernel] = []
    missing: Dict[str, int] = {}
    for node in alive:
        at = inside.get(node)
        if at is not None and node == last[at]:
            region, modelled = regions[at]
            after.append(Kernel(region.name, region.emitted.op_type, modelled))
        alone = model.node(node)
        if alone is None:
            missing[view.ops[node]] = missing.get(view.ops[node], 0) + 1
            continue
        if alone.how == "none":
            continue
        kernel = Kernel(view.names[node], view.ops[node], alone)
        before.append(kernel)
        if at is None:
            after.append(kernel)
    return GraphTime(tuple(before), tuple(after), len(inside), tuple(sorted(missing.items())))


def _alive(view: GraphView) -> List[int]:
    """Nodes that a result depends on, in the graph's order."""
    found = set()
    waiting = [i for i, op in enumerate(view.ops) if op == "_Retval"]
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += [source for source, _ in view.inputs[node]] + list(view.control_inputs[node])
    return sorted(found)


class _Model:
    """Equal ops and equal regions are modelled once."""

    def __init__(self, view: GraphView, machine: Machine):
        self.view, self.machine = view, machine
        self.known: Dict[Any, Optional[Modelled]] = {}

    def tensor(self, node: int, port: int) -> Tensor:
        dtype = BY_TF.get(self.view.out_dtypes[node][port] % 100)
        dims = self.view.out_shapes[node][port]
        known = dims is not None and all(d >= 0 for d in dims)
        return Tensor(dtype.name if dtype else "", tuple(dims) if known else None)

    def region(self, region: Region) -> Optional[Modelled]:
        dims = tuple(self.tensor(*source).dims for source in region.inputs)
        if None in dims:
            return None
        key = (region.emitted.body, dims)
        if key not in self.known:
            try:
                self.known[key] = analytic(region.fused, dims, self.machine)
            except UNKNOWN:
                self.known[key] = None
        return self.known[key]

    def node(self, node: int) -> Optional[Modelled]:
        view = self.view
        inputs = tuple(self.tensor(*source) for source in view.inputs[node])
        # Outputs behind the last one that is read cost nothing; their dims may be unknown.
        read = [p for c in view.consumers[node] for s, p in view.inputs[c] if s == node]
        count = min(max(read + [0]) + 1, len(view.out_dtypes[node]))
        outputs = tuple(self.tensor(node, port) for port in range(count))
        constants = {}
        for i, (source, _) in enumerate(view.inputs[node]):
            value = view.constants.get(source)
            if value is not None and value.size <= MOST_ELEMENTS:
                constants[i] = np.asarray(value)
        attrs = view.attrs[node]
        key = (view.ops[node], inputs, outputs, repr(sorted(attrs.items())), repr(sorted(constants.items())))
        if key not in self.known:
            self.known[key] = model_op(
                view.ops[node], inputs, outputs, self.machine, analytic, attrs, constants
            )
        return self.known[key]
