"""A nest: realized boxes that share one loop nest, the unit that fusion joins (GE's AscBackend); or several
loop nests in order that share one op and hand tensors on through workspaces (GE's FusedAscBackend).

A nest knows what it holds and what it reads, as sets that a union keeps up to date; its loop axes and its
AscGraph are made when they are needed.
"""

from typing import Dict, FrozenSet, List, Mapping, NamedTuple, Sequence, Tuple

from tf_autofuse.ir.loop_ir import Dims, KernelBox, Store, Tensor, loads_of, rebuild
from tf_autofuse.ir.loop_layout import extents


class Nest(NamedTuple):
    """boxes: realized boxes, ascending by node. members: TF nodes inside, ascending; computing: those that
    compute something. size: loop nodes. loads: tensors that the boxes' bodies read, own ones included.
    makes: tensors that the boxes make. reads:
    per source node how many members read it. device, frame: of all members. alive: the tokens under which the
    nest runs. hard: whether a view inside regroups dims. parts: how many loop bodies its concats make of it.
    gathered: tensors read at computed places. moving: whether it does more than to take parts of other data.
    reduces: whether it holds a reduction; space: the dims that its loops run over. groups: where it is
    several loop nests, the nodes of each one's boxes, in order of execution."""

    boxes: Tuple[KernelBox, ...]
    members: Tuple[int, ...]
    computing: FrozenSet[int]
    size: int
    loads: FrozenSet[Tensor]
    makes: FrozenSet[Tensor]
    reads: Mapping[int, int]
    device: str
    frame: str
    alive: FrozenSet
    hard: bool
    parts: int = 1
    gathered: FrozenSet[Tensor] = frozenset()
    moving: bool = True
    reduces: bool = False
    space: Dims = ()
    groups: Tuple[Tuple[int, ...], ...] = ()

    @property
    def key(self) -> int:
        """The nest's number: its last box's node."""
        return self.boxes[-1].node


def nest_of(
    box: KernelBox, inputs: Sequence, devices: Sequence[str], frames: Sequence[str], alive: Sequence
) -> Nest:
    """The nest of one realized box. inputs, devices, frames, alive: per TF node."""
    boxes = box.all_boxes()
    members = tuple(b.node for b in boxes)
    return Nest(
        (box,),
        members,
        frozenset(b.node for b in boxes if b.computes),
        box.size,
        box.loads,
        frozenset(box.tensors),
        _reads(members, inputs),
        devices[box.node],
        frames[box.node],
        alive[box.node],
        box.hard,
        box.parts,
        box.gathered,
        any(b.computes and not b.copies for b in boxes),
        box.reduces,
        box.expr.dims if box.space is None else box.space,
    )


def _reads(members: Sequence[int], inputs: Sequence) -> Dict[int, int]:
    reads: Dict[int, int] = {}
    for member in members:
        for source in {source for source, _ in inputs[member]}:
            reads[source] = reads.get(source, 0) + 1
    return reads


def join(a: Nest, b: Nest, inputs: Sequence) -> Nest:
    """Both as one nest. Members that both hold (recomputed ones) are counted once. inputs: per TF node."""
    members = tuple(sorted(set(a.members).union(b.members)))
    if len(members) < len(a.members) + len(b.members):
        reads = _reads(members, inputs)
    else:
        reads = dict(a.reads)
        for source, count in b.reads.items():
            reads[source] = reads.get(source, 0) + count
    return Nest(
        tuple(sorted(a.boxes + b.boxes, key=lambda box: box.node)),
        members,
        a.computing | b.computing,
        a.size + b.size,
        a.loads | b.loads,
        a.makes | b.makes,
        reads,
        a.device,
        a.frame,
        a.alive | b.alive,
        a.hard or b.hard,
        a.parts + b.parts - 1,
        a.gathered | b.gathered,
        a.moving or b.moving,
        a.reduces or b.reduces,
        (a if len(extents(a.space)) >= len(extents(b.space)) else b).space,
    )


def chain(a: Nest, b: Nest, inputs: Sequence) -> Nest:
    """Both as one op in which each keeps its loop nests. No tensor goes from one to the other and back."""
    joined = join(a, b, inputs)
    boxes = {box.node: box for box in joined.boxes}
    waiting = [g for n in (a, b) for g in (n.groups or (tuple(box.node for box in n.boxes),))]
    waiting.sort(key=lambda group: group[-1])
    ordered: List[Tuple[int, ...]] = []
    while waiting:
        missing = {node for group in waiting for node in group}
        group = next(
            g
            for g in waiting
            if not any(t[0] in missing and t[0] not in g for node in g for t in boxes[node].loads)
        )
        waiting.remove(group)
        ordered.append(group)
    return joined._replace(groups=tuple(ordered))


def handed_on(nest: Nest) -> List[Store]:
    """What the tensors are computed by that another loop nest of the same op reads."""
    home = {node: group for group in nest.groups for node in group}
    read = {t for box in nest.boxes for t in box.loads if home.get(t[0], ()) != home.get(box.node, ())}
    return [store for box in nest.boxes for store in box.stores if store.tensor in read]


def outputs_of(nest: Nest, consumers: Sequence[Tuple[int, ...]], inputs: Sequence) -> List[Store]:
    """What the tensors are computed by that something outside of the nest reads (or nothing at all: then
    control edges need the node). consumers, inputs: per TF node."""
    found: List[Store] = []
    for box in nest.boxes:
        readers = consumers[box.node]
        if not readers or len(readers) > nest.reads.get(box.node, 0):
            found.extend(box.stores if len(box.ports) == 1 else _read_outside(nest, box, readers, inputs))
    return found


def _read_outside(nest: Nest, box: KernelBox, readers: Sequence[int], inputs: Sequence) -> List[Store]:
    members = set(nest.members)
    outside = [reader for reader in readers if reader not in members]
    found = [store for store in box.stores if any(store.tensor in inputs[reader] for reader in outside)]
    return found or box.stores[:1]


def body_of(nest: Nest, outputs: Sequence[Store]) -> List[Store]:
    """The nest's body: what is stored, over tensors from outside only."""
    inner = {store.tensor: store.expr for box in nest.boxes for store in box.stores}
    return rebuild(outputs, inner)


def bodies_of(nest: Nest, outputs: Sequence[Store]) -> List[List[Store]]:
    """The body of each loop nest: what is read outside of it is stored, also where another one of them reads
    it."""
    if not nest.groups:
        return [body_of(nest, outputs)]
    stored = {store.tensor for store in outputs}
    bodies: List[List[Store]] = []
    # From the last to the first: an earlier one stores what later bodies really load, which is less than what
    # their boxes name where parts without elements were left out.
    for group in reversed(nest.groups):
        boxes = tuple(box for box in nest.boxes if box.node in group)
        own = [store for box in boxes for store in box.stores if store.tensor in stored]
        if own:
            body = body_of(nest._replace(boxes=boxes), own)
            stored |= loads_of([store.expr for store in body])
            bodies.insert(0, body)
    return bodies
