"""Which loop nests a kernel runs, in which order, and where its blocks must wait for each other.

Why: a FusedGraph has several HintGraphs, and a HintGraph may be run in several ways, some of them in stages
(a reduction of rows that do not fit UB: partial results first). A *nest* is one stage of one way of one
HintGraph: a set of ImplGraphs that compute the same, among which tiling chooses by shape. The nests run one
after the other; a later one may read what an earlier one stored to a Workspace.

On entry: a FusedGraph and the ImplGraphs of all its graphs, as schedule() gives them, graph after graph
(graph.name says which, names are unique). On exit: nests in order; per graph the ways 'empty', 'whole' and
'parts', of which tiling makes exactly one active (`ImplGraph.way`):
    empty   the reduced axes have no element: identities take the place of the reductions
    whole   one nest; what is reduced lies in UB
    parts   stages 0, 1, ...: partial reductions to private workspaces, then their combination
Workspaces are named: 'ws<index>' for those of the FusedGraph, 'part<graph>_<n>' for private ones (negative
index -n).
"""
from typing import Dict, List, NamedTuple, Sequence, Tuple

from tf_autofuse.ir.asc_graph import AscNode, FusedGraph
from tf_autofuse.ir.dtypes import DType
from tf_autofuse.schedule.impl_graph import ImplGraph
from tf_autofuse.symbolic.size import Size, maximum

#: The order in which the ways of one graph are listed.
WAYS = ("empty", "whole", "parts")


class Nest(NamedTuple):
    """number: position in the kernel; graph: position in FusedGraph.graphs; impls: the variants, by tiling
    key.
    """

    number: int
    graph: int
    way: str
    stage: int
    impls: Tuple[ImplGraph, ...]

    def workspace(self, node: AscNode) -> str:
        """The name of the workspace that a Workspace node of this nest stands for."""
        index = node.attr("index")
        return "ws%d" % index if index >= 0 else "part%d_%d" % (self.graph, -index)

    @property
    def reads(self) -> Tuple[str, ...]:
        """Workspaces that it loads, by name."""
        return self._workspaces(lambda n: not n.inputs)

    @property
    def writes(self) -> Tuple[str, ...]:
        """Workspaces that it stores to, by name."""
        return self._workspaces(lambda n: bool(n.inputs))

    @property
    def gathers(self) -> Tuple[AscNode, ...]:
        """The Gather nodes of its first variant."""
        return self.impls[0].graph.of_type("Gather")

    def _workspaces(self, wanted) -> Tuple[str, ...]:
        found = (self.workspace(n) for i in self.impls for n in i.graph.of_type("Workspace") if wanted(n))
        return tuple(dict.fromkeys(found))


def has_frame(nests: Sequence[Nest]) -> bool:
    """Whether the kernel needs more than one nest's tiling data and function: several nests, or a status that
    Gathers report."""
    return len(nests) > 1 or any(n.gathers for n in nests)


class Workspace(NamedTuple):
    """elements: its extent, as one expression over the kernel's symbols."""

    name: str
    dtype: DType
    elements: Size


def nests_of(fused: FusedGraph, impls: Sequence[ImplGraph]) -> Tuple[Nest, ...]:
    """The kernel's nests. Raises ValueError where the ImplGraphs are not those of the graphs, or a nest's
    keys are not 0, 1, ..."""
    groups: Dict[Tuple[int, int, int], List[ImplGraph]] = {}
    positions = {g.name: i for i, g in enumerate(fused.graphs)}
    for impl in impls:
        if impl.graph.name not in positions:
            raise ValueError("no graph of %s is called %s" % (fused.name, impl.graph.name))
        key = positions[impl.graph.name], WAYS.index(impl.way), impl.stage
        groups.setdefault(key, []).append(impl)
    nests = []
    for graph, way, stage in sorted(groups):
        members = tuple(groups[graph, way, stage])
        if [i.tiling_key for i in members] != list(range(len(members))):
            raise ValueError("the variants' tiling keys are not 0, 1, ...")
        nests.append(Nest(len(nests), graph, WAYS[way], stage, members))
    if {n.graph for n in nests} != set(range(len(fused.graphs))):
        raise ValueError("a graph of %s has no variant" % fused.name)
    return tuple(nests)


def workspaces_of(fused: FusedGraph, nests: Sequence[Nest]) -> Tuple[Workspace, ...]:
    """All workspaces of the kernel: the FusedGraph's, then the private ones, whose Workspace nodes have their
    extent as attr elements."""
    found: Dict[str, Workspace] = {}
    for graph in fused.graphs:
        for node in graph.of_type("Workspace"):
            for ref in node.inputs:
                name = "ws%d" % node.attr("index")
                elements = stored_extent(graph.node(ref.node))
                if name in found:
                    elements = maximum(elements, found[name].elements)
                found[name] = Workspace(name, node.y.dtype, elements)
    for nest in nests:
        for node in nest.impls[0].graph.of_type("Workspace"):
            if node.attr("index") < 0 and node.inputs:
                name = nest.workspace(node)
                found[name] = Workspace(name, node.y.dtype, node.attr("elements"))
    return tuple(found.values())


def stored_extent(store: AscNode) -> Size:
    """Elements up to the last one that a Store writes; for an empty Store any number that is not negative."""
    end: Size = store.attr("offset", 0) + 1
    for repeat, stride in zip(store.y.repeats, store.y.strides):
        end = end + (repeat - 1) * stride
    return maximum(end, 0)
