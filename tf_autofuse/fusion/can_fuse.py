"""May two nests become one? The question apart from the deed.

    producer a --t--> consumer b        vertical: b's loads of t become a's expression; t is
                                        stored only if others read it
    a <--t-- t --t--> b                 horizontal: both load t; the joined nest loads it once

Both must survive as one loop nest: same device, frame and liveness; one list of loop axes; no path from one
to the other through ops outside, since the joined op would then wait for itself; few enough inputs and loop
nodes. A refusal is a Verdict with a code (fusion/reasons.py) and the particulars; the checks run from cheap
to dear.

can_chain asks the same of two that cannot be one loop nest: may they be one op, with a loop nest each? The
tensors between them then stay in the op's workspace: TF neither allocates nor schedules for them. That pays
where one of them reduces: relu(x) summed up along two axes.
"""

from typing import Callable, List, NamedTuple, Optional, Sequence, Tuple

from tf_autofuse.fusion import reasons
from tf_autofuse.fusion.acyclic import AcyclicGraph
from tf_autofuse.fusion.nest import Nest, body_of, chain, handed_on, join, outputs_of
from tf_autofuse.fusion.reasons import Verdict
from tf_autofuse.ir.loop_ir import Store, Tensor, skips_gathered
from tf_autofuse.ir.loop_layout import NoCommonAxes, element_count, extents
from tf_autofuse.ir.loop_parts import placements
from tf_autofuse.symbolic.size import known_equal

#: Most tensors that a joined nest reads (GE's max_input_nums_after_fuse on 910B).
MAX_INPUTS = 8
#: The same for a nest with a concat inside, each part of which reads tensors of its own: 200 tables with
#: their indices.
MAX_INPUTS_OF_PARTS = 400
#: Most bytes that the outputs of two nests side by side may take together.
MAX_HORIZONTAL_OUTPUT_BYTES = 13 << 30
#: Most bytes of a tensor that is stored again under other dims.
MAX_COPIED_VIEW_BYTES = 16 << 10
#: Most loop nests in one op.
MAX_CHAINED = 8
#: Most bytes of workspace between the loop nests of one op, which all live until it ends.
MAX_WORKSPACE_BYTES = 64 << 20


class FusionContext(NamedTuple):
    """names, inputs, consumers, alive: per TF node. tensor_bytes: (tensor) -> bytes, estimated where dims are
    symbolic. places: per TF node its place in the whole graph; homes: its chunk in it, where it has any."""

    names: Sequence[str]
    inputs: Sequence[Tuple[Tensor, ...]]
    consumers: Sequence[Tuple[int, ...]]
    graph: AcyclicGraph
    tensor_bytes: Callable[[Tensor], int]
    alive: Sequence
    max_size: int
    places: Sequence[int] = range(1 << 62)
    homes: Optional[Sequence[int]] = None


def shared_tensors(a: Nest, b: Nest) -> Tuple[List[Tensor], List[Tensor]]:
    """(tensors that one makes and the other reads, tensors that both read from outside)."""
    made_a, made_b = a.makes, b.makes
    between = (a.loads & made_b) | (b.loads & made_a)
    return sorted(between), sorted((a.loads & b.loads) - made_a - made_b)


def can_fuse(a: Nest, b: Nest, context: FusionContext) -> Verdict:
    """Whether the nests may be joined; where they may, the score (ascending is better): bytes saved,
    nearness, order."""
    between, common = shared_tensors(a, b)
    if not between and not common:
        return Verdict(False, reasons.NO_SHARED_DATA, "no tensor in common")
    if a.device != b.device:
        return Verdict(False, reasons.DEVICES, "%s and %s" % (a.device, b.device))
    if a.frame != b.frame:
        return Verdict(False, reasons.FRAMES, "frames '%s' and '%s'" % (a.frame, b.frame))
    most = context.max_size * (a.parts + b.parts - 1)
    if a.size + b.size > most:
        return Verdict(False, reasons.NODE_LIMIT, "%d loop nodes, at most %d" % (a.size + b.size, most))
    joined = join(a, b, context.inputs)
    made = joined.makes
    inputs = len(joined.loads - made)
    limit = MAX_INPUTS if joined.parts == 1 else min(MAX_INPUTS * joined.parts, MAX_INPUTS_OF_PARTS)
    if inputs > limit:
        return Verdict(False, reasons.TOO_MANY_INPUTS, "%d inputs, at most %d" % (inputs, limit))
    if joined.gathered & made:
        return Verdict(False, reasons.GATHERED, "one gathers from what the other computes")
    outputs = outputs_of(joined, context.consumers, context.inputs)
    for (node, _), _ in outputs:
        if context.alive[node] != joined.alive:
            return Verdict(
                False, reasons.LIVENESS, "%s can be alive while the rest is not" % context.names[node]
            )
    for nest in (a, b):
        if not nest.moving and not nest.makes.isdisjoint(store.tensor for store in outputs):
            if _copies(nest, joined, outputs, context):
                return Verdict(
                    False, reasons.VIEW_COPY, "%s only views other data" % context.names[nest.boxes[0].node]
                )
    if not between:
        bytes_out = sum(context.tensor_bytes(store.tensor) for store in outputs)
        if bytes_out > MAX_HORIZONTAL_OUTPUT_BYTES:
            return Verdict(False, reasons.PEAK_MEMORY, "outputs of %d bytes side by side" % bytes_out)
    why = _axes_differ(joined, outputs)
    if why:
        return Verdict(False, reasons.AXES, why)
    through = context.graph.detour(a.key, b.key)
    if through is not None:
        return Verdict(False, reasons.CYCLE, "a path leads through %s" % context.names[through])
    return Verdict(True, score=score(a, b, context))


def _copies(view: Nest, joined: Nest, outputs: Sequence[Store], context: FusionContext) -> bool:
    """Whether to store what the view makes would be a copy of other data: of what comes from outside, or of
    what is stored as well. A small one is taken all the same: it costs less than the ops that compute its
    shape."""
    if not view.loads <= joined.makes or any(b.copies for box in view.boxes for b in box.all_boxes()):
        return True
    stored = view.loads.intersection(store.tensor for store in outputs)
    return any(context.tensor_bytes(tensor) > MAX_COPIED_VIEW_BYTES for tensor in stored)


def can_chain(a: Nest, b: Nest, why: Verdict, context: FusionContext) -> Verdict:
    """Whether two that can_fuse refused for `why` may be one op with several loop nests."""
    if why.code is not reasons.AXES or not (a.reduces or b.reduces) or not shared_tensors(a, b)[0]:
        return why
    if a.size + b.size > context.max_size * (a.parts + b.parts - 1):
        return Verdict(False, reasons.NODE_LIMIT, "%d loop nodes as one op" % (a.size + b.size))
    joined = chain(a, b, context.inputs)
    if len(joined.groups) > MAX_CHAINED:
        return Verdict(False, reasons.TOO_MANY_NESTS, "%d loop nests" % len(joined.groups))
    inputs = len(joined.loads - joined.makes)
    if inputs > MAX_INPUTS * joined.parts:
        return Verdict(False, reasons.TOO_MANY_INPUTS, "%d inputs as one op" % inputs)
    for (node, _), _ in outputs_of(joined, context.consumers, context.inputs):
        if context.alive[node] != joined.alive:
            return Verdict(
                False, reasons.LIVENESS, "%s can be alive while the rest is not" % context.names[node]
            )
    memory = sum(context.tensor_bytes(store.tensor) for store in handed_on(joined))
    if memory > MAX_WORKSPACE_BYTES:
        return Verdict(False, reasons.PEAK_MEMORY, "%d bytes of workspace between the loop nests" % memory)
    through = context.graph.detour(a.key, b.key)
    if through is not None:
        return Verdict(False, reasons.CYCLE, "a path leads through %s" % context.names[through])
    return Verdict(True, score=score(a, b, context))


def separated(a: int, b: int, context: FusionContext) -> Verdict:
    """Of two nests (keys) of different chunks of the graph: there is something between them that is not
    fused."""
    through = context.graph.detour(a, b)
    return Verdict(False, reasons.CYCLE, "a path leads through %s" % (
        "what is not fused" if through is None else context.names[through]))


def score(a: Nest, b: Nest, context: FusionContext) -> tuple:
    """Ascending order of preference for joining a and b: bytes of shared tensors (written and read: twice),
    distance of the members, topological order."""
    between, common = shared_tensors(a, b)
    saved = 2 * sum(map(context.tensor_bytes, between)) + sum(map(context.tensor_bytes, common))
    places = context.places
    distance = max(
        abs(places[a.members[0]] - places[b.members[-1]]), abs(places[b.members[0]] - places[a.members[-1]])
    )
    return -saved, distance, min(a.key, b.key), max(a.key, b.key)


def _axes_differ(joined: Nest, outputs: Sequence[Store]) -> str:
    """'' where all outputs can be stored from one loop nest, else the reason."""
    dims = [store.expr.dims for store in outputs]
    first = extents(dims[0])
    same = all(len(extents(d)) == len(first) and all(map(known_equal, extents(d), first)) for d in dims[1:])
    equal = same or all(known_equal(element_count(d), element_count(first)) for d in dims[1:])
    if not equal and not joined.reduces:
        return "outputs of shapes %s" % " and ".join(sorted({"[%s]" % ", ".join(map(str, d)) for d in dims}))
    if same and not joined.hard and joined.parts == 1 and not joined.gathered:
        return ""
    body = body_of(joined, outputs)
    if joined.gathered and skips_gathered(body):
        return "a slice of what is gathered: TF looks at all indices"
    try:
        placements(body)
    except NoCommonAxes as error:
        return error.reason
    return ""
