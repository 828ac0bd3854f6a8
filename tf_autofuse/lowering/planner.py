"""From a graph, or a chunk of one, to the regions that are to be fused, with every decision explained.

    lower (boxes) -> nests -> fuse -> lift regions that are not worth it -> emit FusedGraphs

A region that cannot be emitted (a run-time size that none of its inputs tells) takes its culprits out of
fusion and the planning starts over, so that the rest of it is still fused. On exit every TF node has a
Decision, and each region is complete: FusedGraph, nodes, tensors in and out in the order of the fused op's
arguments. Deterministic.
"""

from itertools import chain
from typing import Callable, Dict, FrozenSet, List, NamedTuple, Optional, Sequence, Set, Tuple

from tf_autofuse.fusion import reasons
from tf_autofuse.fusion.acyclic import AcyclicGraph
from tf_autofuse.fusion.can_fuse import FusionContext
from tf_autofuse.fusion.fuse import Refused, fuse
from tf_autofuse.fusion.nest import Nest, bodies_of, nest_of, outputs_of
from tf_autofuse.fusion.reasons import NodeVerdict
from tf_autofuse.ir.asc_graph import FusedGraph
from tf_autofuse.ir.dtypes import BY_TF
from tf_autofuse.ir.loop_ir import Concat, constant_of
from tf_autofuse.ir.loop_layout import element_count
from tf_autofuse.lowering.bodies import Emitted, emit_once
from tf_autofuse.lowering.emit import EmitFailure, Interface
from tf_autofuse.lowering.graph_view import GraphView
from tf_autofuse.lowering.known_operands import KnownOperand, known_operands
from tf_autofuse.lowering.lower import Lowered, Surroundings, lower
from tf_autofuse.lowering.naming import fused_name, kind_of, op_types
from tf_autofuse.symbolic.size import is_static, product, symbols_of

Tensor = Tuple[int, int]

#: How often planning starts over; after the last time regions that cannot be emitted are given up whole.
MAX_ATTEMPTS = 4
#: A concat of so many parts, of which none has more bytes next to each other, is worth an op on the host
#: though it stands alone: 13 numbers of a batch, which TensorFlow copies one by one.
LEAST_NARROW_PARTS, NARROW_BYTES = 4, 64


SEVERAL_APART = NodeVerdict(reasons.OUTPUT_OUTSIDE, "its outputs end up in different regions")


class Region(NamedTuple):
    """emitted: the fused graph as emission left it. nodes: ids of the TF nodes that the fused op replaces,
    ascending. inputs, outputs: (node id, output number) in the order of the fused op's arguments. device: of
    all nodes. copies: ids of TF nodes that compute sizes for these nodes: the fallback needs them too, the
    graph only where something else reads them. Among them are lookups that several regions do, each for
    itself."""

    emitted: Emitted
    nodes: Tuple[int, ...]
    inputs: Tuple[Tensor, ...]
    outputs: Tuple[Tensor, ...]
    device: str
    copies: Tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """Of the fused op."""
        return self.emitted.name

    @property
    def fused(self) -> FusedGraph:
        return self.emitted.fused


class Decision(NamedTuple):
    """What became of a node. region: index into Plan.regions, -1 where it stays. code, reason: why it stays,
    '' where it is fused."""

    node: int
    name: str
    op: str
    region: int
    code: str
    reason: str


class PairRefusal(NamedTuple):
    """Two neighbours (TF node names) that were not fused with each other."""

    a: str
    b: str
    code: str
    reason: str


class Told(NamedTuple):
    """decisions: one a TF node. refusals: of pairs."""

    decisions: Tuple[Decision, ...]
    refusals: Tuple[PairRefusal, ...]


class Plan:
    """regions; operands: constants for ops outside of all regions. Why the other nodes stay is only told
    where somebody asks: tell() -> Told."""

    def __init__(self, regions: Sequence[Region], operands: Sequence[KnownOperand],
                 tell: Callable[[], Told]):
        self.regions = tuple(regions)
        self.operands = tuple(operands)
        self._tell = tell
        self._told: Optional[Told] = None

    def __eq__(self, other) -> bool:
        return isinstance(other, Plan) and (self.regions, self.operands, self.told) == (
            other.regions, other.operands, other.told)

    @property
    def told(self) -> Told:
        if self._told is None:
            self._told = self._tell()
        return self._told

    @property
    def decisions(self) -> Tuple[Decision, ...]:
        return self.told.decisions

    @property
    def refusals(self) -> Tuple[PairRefusal, ...]:
        return self.told.refusals


class Head(NamedTuple):
    """What a region's name is made of, and its place among the regions. key: the key of its nest. computed:
    the TF nodes that it computes, ascending: those that it replaces and those that several regions do, each
    for itself."""

    key: int
    kind: str
    types: Tuple[str, ...]
    computed: Tuple[int, ...]


class Outcome(NamedTuple):
    """A planned graph. heads: one a region. repeated: whether planning started over since a region could not
    be emitted, which takes what is planned beside it along."""

    regions: Tuple[Region, ...]
    heads: Tuple[Head, ...]
    operands: Tuple[KnownOperand, ...]
    lowered: Lowered
    tell: Callable[[], Told]
    repeated: bool


def straight(view: GraphView, config, target: str, around: Surroundings = Surroundings()) -> Outcome:
    """The regions of all of the graph, each emitted anew or found among the bodies. config:
    tf_autofuse.config.Config; target: 'ascend' or 'host'. Never raises for what the graph contains."""
    refused: Dict[int, NodeVerdict] = {}
    forced: Set[int] = set()
    repeated = False
    for attempt in range(MAX_ATTEMPTS):
        planner = _Planner(view, config, target, refused, forced, attempt == MAX_ATTEMPTS - 1, around)
        result = planner.run(repeated)
        if result is not None:
            return result
        repeated = repeated or planner.emission_failed
    raise AssertionError("the last attempt always gives a plan")


def joins_narrow_parts(nest: Nest) -> bool:
    """Whether the nest is a concat for which TensorFlow would copy a few bytes at a time, with its views."""
    computed = [box.expr for box in nest.boxes if box.node in nest.computing]
    if len(computed) != 1 or not isinstance(computed[0], Concat):
        return False
    (expr,) = computed
    if len(expr.args) < LEAST_NARROW_PARTS:
        return False
    runs = [product(arg.dims[expr.axis:]) for arg in expr.args]
    return all(is_static(run) and run * expr.dtype.bytes <= NARROW_BYTES for run in runs)


class _Planner:
    def __init__(self, view, config, target, refused, forced, last, around):
        self.view = view
        self.config = config
        self.target = target
        self.refused = refused
        self.forced = forced
        self.last = last
        self.around = around
        self.emission_failed = False
        self.heads: List[Head] = []
        self.kept: Dict[int, NodeVerdict] = {}  # boxed nodes that stay, with the reason
        self.again: FrozenSet[int] = frozenset()  # nodes that several nests compute, each for itself

    def run(self, repeated: bool) -> Optional[Outcome]:
        """The outcome; None where `refused` or `forced` have grown and planning is to start over."""
        view = self.view
        self.lowered = lowered = lower(
            view, self.config, self.target, self.refused, self.forced, self.around)
        nests = [
            nest_of(lowered.boxes[node], lowered.chains.inputs, view.devices, view.frames, lowered.alive)
            for node in lowered.realized
        ]
        context = FusionContext(
            view.names,
            lowered.chains.inputs,
            lowered.chains.consumers,
            self.contracted(nests),
            self.tensor_bytes,
            lowered.alive,
            self.config.max_fusion_size,
            homes=self.around.homes,
        )
        if self.around.places is not None:
            context = context._replace(places=self.around.places)
        fusion = fuse(nests, context)
        if not self.recomputed_apart(fusion.nests):
            return None
        regions: List[Region] = []
        for nest in fusion.nests:
            if not self.worth(nest, fusion.refused):
                continue
            try:
                regions.append(self.region(nest, len(regions)))
            except EmitFailure as failure:
                if not self.give_up(nest, failure):
                    return None
        fused = {node for region in regions for node in region.nodes}
        return Outcome(
            tuple(regions), tuple(self.heads), known_operands(view, lowered, fused), lowered,
            lambda: self.told(regions, fusion.refused), repeated or self.emission_failed)

    def told(self, regions: Sequence[Region], refused: Sequence[Refused]) -> Told:
        names = self.view.names
        return Told(self.decisions(regions), tuple(
            PairRefusal(names[r.a], names[r.b], r.verdict.code.name, r.verdict.reason) for r in refused))

    def contracted(self, nests: Sequence[Nest]) -> AcyclicGraph:
        """The graph whose vertices are nests and nodes outside of all nests. A nest is named by its key, its
        root's id; all its members come before that, and only its root is read from outside, so ids are a
        topological order."""
        view = self.view
        owners: Dict[int, List[int]] = {}
        for nest in nests:
            for member in nest.members:
                owners.setdefault(member, []).append(nest.key)
        roots = {nest.key for nest in nests}
        edges: List[Tensor] = []
        order: List[int] = []
        for node, (inputs, controls) in enumerate(zip(self.lowered.chains.inputs, view.control_inputs)):
            mine = owners.get(node)
            if mine is None or node in roots:
                order.append(node)
            for source in chain((s for s, _ in inputs), controls):
                # What is inlined only is read by members of its own nests alone.
                if (source in roots or source not in owners) and not (
                    source >= node and view.is_back_edge(source, node)
                ):
                    if mine is None:
                        edges.append((source, node))
                    else:
                        edges.extend((source, vertex) for vertex in mine)
        return AcyclicGraph(order, edges)

    def tensor_bytes(self, tensor: Tensor) -> int:
        dims = self.lowered.dims_of(tensor)
        dtype = BY_TF.get(self.view.out_dtypes[tensor[0]][tensor[1]])
        if dims is None or dtype is None:
            return 0
        return self.lowered.symbols.estimate(element_count(dims)) * dtype.bytes

    def recomputed_apart(self, nests: Sequence[Nest]) -> bool:
        """A node that several nests inline and that did not end up in one region is realized instead: a
        TF node can be replaced by one fused op only. So is one that a nest inlines and cannot store, where
        a node outside reads it too. True where there is none but those that each region is to have a copy
        of."""
        owner: Dict[int, int] = {}
        apart = {
            member
            for nest in nests
            for member in nest.members
            if owner.setdefault(member, nest.key) != nest.key or self.read_beside(member, nest)
        }
        self.again = self.lowered.again.intersection(apart).difference(self.lowered.realized)
        apart -= self.again
        if apart and not self.last:
            several = {node for node in apart if not self.lowered.boxes[node].ports}
            self.forced |= apart - several
            self.refused.update((node, SEVERAL_APART) for node in several)
            return False
        for nest in nests:
            mine = apart.intersection(nest.members)
            if mine:
                self.keep(nest, NodeVerdict(reasons.LIFTED, "it shares recomputed nodes with another region"))
        return True

    def read_beside(self, member: int, nest: Nest) -> bool:
        """Whether a node outside of the nest reads an inlined member of several outputs. Its lowering may
        have had no use for them (an ArgMin along one element): no nest of its own holds the member."""
        box = self.lowered.boxes.get(member)
        return (
            box is not None and not box.ports
            and not set(self.lowered.chains.consumers[member]) <= set(nest.members)
        )

    def keep(self, nest: Nest, verdict: NodeVerdict) -> None:
        for member in nest.members:
            self.kept.setdefault(member, verdict)

    def worth(self, nest: Nest, pairs: Sequence[Refused]) -> bool:
        """Whether the nest is to become a region."""
        if nest.key in self.kept:
            return False
        if not nest.moving:
            self.keep(nest, NodeVerdict(reasons.LIFTED, "it only takes parts of other data"))
            return False
        if len(nest.computing) >= 2 or (nest.computing and self.config.disable_lifting):
            return True
        if self.target == "host" and joins_narrow_parts(nest):
            return True
        reason = "it stands alone" if nest.computing else "it only views other data"
        for pair in pairs:
            if nest.key in (pair.a, pair.b):
                other = pair.b if pair.a == nest.key else pair.a
                reason += ": not with %s (%s, %s)" % (
                    self.view.names[other],
                    pair.verdict.code.name,
                    pair.verdict.reason,
                )
                break
        self.keep(nest, NodeVerdict(reasons.LIFTED, reason))
        return False

    def region(self, nest: Nest, number: int) -> Region:
        """Raises EmitFailure."""
        view, lowered = self.view, self.lowered
        outputs = outputs_of(nest, lowered.chains.consumers, lowered.chains.inputs)
        bodies = bodies_of(nest, outputs)
        again = self.again.intersection(nest.members)
        members = set(nest.members) - again
        copies = self.copies_of(nest, again)
        inputs: Dict[Tensor, None] = {}
        for member in chain(nest.members, copies):
            for tensor in view.inputs[member]:
                if tensor[0] not in members and tensor[0] not in copies and tensor not in inputs:
                    if self.absorbs(tensor[0], members, nest):
                        members.add(tensor[0])
                    else:
                        inputs[tensor] = None
        if not inputs:
            raise EmitFailure(reasons.CONSTANT_INPUTS, "it reads constants only")
        taken = tuple((tensor,) + self.described(tensor) for tensor in inputs)
        given = tuple((store.tensor, store.expr.dtype, store.expr.dims) for store in outputs)
        nodes = tuple(sorted(members))
        computed = tuple(sorted(members | again))
        kind = kind_of(view, computed)
        types = op_types(view, computed, [s.expr for body in bodies for s in body])
        name = fused_name(kind, number, types)
        guards = [guard for member in nest.members for guard in lowered.guards.get(member, ())]
        emitted = emit_once(
            name,
            kind,
            bodies,
            Interface(taken, given, tuple((n, view.names[n]) for n in computed)),
            guards,
            lowered.symbols,
        )
        self.heads.append(Head(nest.key, kind, tuple(types), computed))
        stored = tuple(tensor for tensor, _, _ in given)
        return Region(emitted, nodes, tuple(inputs), stored, nest.device, copies)

    def copies_of(self, nest: Nest, again: FrozenSet[int]) -> Tuple[int, ...]:
        """See Region.copies."""
        view, sizes = self.view, self.lowered.chains.copies_for(nest.members, nest.loads)
        if not again:
            return sizes
        operands = {source for node in again for source, _ in view.inputs[node]}
        constants = {
            node
            for node in operands
            if view.ops[node] == "Const" and not view.control_inputs[node] and (node, 0) not in nest.loads
        }
        return tuple(sorted(again.union(sizes, constants)))

    def absorbs(self, node: int, members: Set[int], nest: Nest) -> bool:
        """Whether a constant that only the region reads goes with it, into the fallback function: one whose
        value the kernel has in its text, or never needs."""
        view = self.view
        return (
            view.ops[node] == "Const"
            and (node, 0) not in nest.loads
            and all(c in members for c in view.consumers[node])
            and not view.control_outputs[node]
            and not view.control_inputs[node]
            and view.devices[node] == nest.device
            and view.frames[node] == nest.frame
        )

    def described(self, tensor: Tensor):
        """(dtype, dims) of a tensor that the region reads. Raises EmitFailure where a fused op cannot have
        it."""
        number = self.view.out_dtypes[tensor[0]][tensor[1]]
        dims = self.lowered.dims_of(tensor)
        if number not in BY_TF or dims is None:
            raise EmitFailure(
                reasons.OUTSIDE_INPUT,
                "%s:%d has an unsupported dtype or an unknown rank" % (self.view.names[tensor[0]], tensor[1]),
            )
        return BY_TF[number], dims

    def give_up(self, nest: Nest, failure: EmitFailure) -> bool:
        """Takes the culprits of the failure out of fusion; False where planning is to start over without
        them."""
        verdict = NodeVerdict(failure.code, failure.reason)
        culprits = [m for m in nest.members if self.is_culprit(m, failure.symbols)]
        if culprits and not self.last:
            self.refused.update((m, verdict) for m in culprits)
            self.emission_failed = True
            return False
        self.keep(nest, verdict)
        return True

    def is_culprit(self, node: int, symbols) -> bool:
        """Whether the node brings a missing size in: its result has it, none of its inputs has."""

        def has(tensor: Tensor) -> bool:
            dims = self.lowered.dims_of(tensor)
            return dims is not None and any(symbols & symbols_of(d) for d in dims)

        return bool(symbols) and has((node, 0)) and not any(has(tensor) for tensor in self.view.inputs[node])

    def decisions(self, regions: Sequence[Region]) -> Tuple[Decision, ...]:
        view, lowered = self.view, self.lowered
        region_of = {node: i for i, region in enumerate(regions) for node in region.nodes}
        for i, region in enumerate(regions):
            for node in self.again.intersection(region.copies):
                region_of.setdefault(node, i)
        result = []
        for node in range(len(view)):
            at = region_of.get(node, -1)
            if at >= 0:
                code, reason = "", ""
            else:
                verdict = self.kept.get(node) or lowered.verdicts.get(node)
                if verdict is None:
                    box = lowered.boxes[node]
                    verdict = (
                        NodeVerdict(reasons.CONSTANT, "a constant for its readers")
                        if constant_of(box.expr) is not None
                        else NodeVerdict(reasons.LIFTED, "nothing reads it")
                    )
                code, reason = verdict.code.name, verdict.reason
            result.append(Decision(node, view.names[node], view.ops[node], at, code, reason))
        return tuple(result)
