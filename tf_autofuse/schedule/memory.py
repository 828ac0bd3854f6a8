"""UB memory: which queue or buffer each tensor lives in.

On entry: nodes in execution order. On exit every tensor has a Memory, and the containers keep the rules at
the head of schedule/impl_graph.py: Load results in VECIN queues, tensors that Stores read in VECOUT queues,
the rest in VECCALC buffers; at most machine.queue_buffers buffers of queues per position (hardware event
ids), machine.max_buffers in all.

A tensor lives from the node that makes it to its last reader; a hoisted tensor that the loop reads lives on
to the end, and so does a hoisted Load, whose queue is then freed after the loop. Queues are
double-buffered where event ids allow it: with more than four tensors per position, first tensors that follow
each other share a queue, then the smaller queues get one buffer only.
"""
from typing import Dict, List, NamedTuple, Tuple

from tf_autofuse.ir.asc_graph import Memory, Position, TensorRef
from tf_autofuse.machine import Machine
from tf_autofuse.schedule.impl_graph import Container, ScheduleRefusal
from tf_autofuse.schedule.tile_nodes import TileGraph, TileNode
from tf_autofuse.symbolic.size import Size, known_equal

_FOREVER = 1 << 30


class Life(NamedTuple):
    """A tensor's span in positions of the execution order, both ends included. big: grows with the tile."""

    node: TileNode
    first: int
    last: int
    bytes: Size
    big: bool


class Allocation(NamedTuple):
    memory: Dict[str, Memory]
    containers: Tuple[Container, ...]


class _Slot:
    """A container in the making."""

    def __init__(self, position: Position, buf_num: int):
        self.position = position
        self.buf_num = buf_num
        self.lives: List[Life] = []

    @property
    def last(self) -> int:
        return max(life.last for life in self.lives)

    @property
    def rank(self) -> Tuple[bool, int]:
        """For choosing which queues to double-buffer: those of big tensors, of wide types."""
        return any(life.big for life in self.lives), max(life.node.dtype.bytes for life in self.lives)

    def container(self, id_: int) -> Container:
        sizes: List[Size] = []
        for life in self.lives:
            if not any(known_equal(life.bytes, s) for s in sizes):
                sizes.append(life.bytes)
        return Container(self.position, id_, self.buf_num, tuple(sizes),
                         tuple(TensorRef(life.node.name) for life in self.lives))


def lives(tiles: TileGraph, order: List[TileNode]) -> Dict[str, Life]:
    """The life span of every UB tensor, by node name, in order of birth."""
    at = {n.name: i for i, n in enumerate(order)}
    readers = tiles.readers()
    big = {tiles.split.tile_in.id} | set(tiles.split.reduced)
    result: Dict[str, Life] = {}
    for n in order:
        if n.makes_tensor:
            last = max([at[r.name] for r in readers[n.name]] or [at[n.name]])
            if n.hoisted and any(not r.hoisted for r in readers[n.name]):
                last = _FOREVER
            result[n.name] = Life(n, at[n.name], last, tiles.tile.bytes(tiles.layout(n), n.dtype.bytes),
                                  bool(big & set(n.pattern)))
    return result


def allocate(tiles: TileGraph, order: List[TileNode], machine: Machine) -> Allocation:
    """Raises ScheduleRefusal where event ids or buffers do not suffice."""
    spans = lives(tiles, order)
    stored = {i for n in order if n.type == "Store" for i in n.inputs}
    loads = [life for life in spans.values() if life.node.enters_by_queue]
    results = [life for life in spans.values() if life.node.name in stored]
    rest = [life for life in spans.values() if not life.node.enters_by_queue and life.node.name not in stored]
    # What is reduced must fit UB: there queues are shared as soon as their tensors do not overlap in time.
    sharing = 1 if tiles.split.reduced else machine.queue_buffers // 2
    buffers = 1 if tiles.template == "tight" else 2
    slots = (_queues(Position.VECIN, loads, machine, sharing, buffers)
             + _queues(Position.VECOUT, results, machine, sharing, buffers) + _buffers(rest, tiles))
    count = sum(s.buf_num for s in slots) + 1  # and the scratch buffer
    if count > machine.max_buffers:
        raise ScheduleRefusal("the kernel needs %d UB buffers, the limit is %d" % (
            count, machine.max_buffers))
    memory: Dict[str, Memory] = {}
    containers: List[Container] = []
    next_id: Dict[Position, int] = {}
    for slot in slots:
        id_ = next_id.get(slot.position, 0)
        next_id[slot.position] = id_ + 1
        containers.append(slot.container(id_))
        for life in slot.lives:
            memory[life.node.name] = Memory(slot.position, id_, slot.buf_num)
    return Allocation(memory, tuple(containers))


def _queues(position: Position, tensors: List[Life], machine: Machine, most: int,
            buffers: int) -> List[_Slot]:
    """most: queues before tensors share one; buffers: of a queue that is filled in the loop."""
    slots: List[_Slot] = []
    for life in tensors:
        free = [s for s in slots if s.last < life.first and s.lives[0].big == life.big]
        if len(slots) >= most and free:
            # The queue that has been idle longest: its last copy is the least likely to be waited for.
            min(free, key=lambda s: s.last).lives.append(life)
            continue
        slots.append(_Slot(position, 1 if life.node.hoisted else buffers))
        slots[-1].lives.append(life)
    excess = sum(s.buf_num for s in slots) - machine.queue_buffers
    for slot in sorted((s for s in slots if s.buf_num == 2), key=lambda s: s.rank):
        if excess <= 0:
            break
        slot.buf_num = 1
        excess -= 1
    if excess > 0:
        raise ScheduleRefusal("%d tensors are in %s queues at the same time, the limit is %d" % (
            len(slots), position.value, machine.queue_buffers))
    return slots


def _buffers(tensors: List[Life], tiles: TileGraph) -> List[_Slot]:
    slots: List[_Slot] = []
    for life in tensors:
        slot = _in_place(life, slots, tiles) or _reusable(life, slots)
        if slot is None:
            slot = _Slot(Position.VECCALC, 1)
            slots.append(slot)
        slot.lives.append(life)
    return slots


def _in_place(life: Life, slots: List[_Slot], tiles: TileGraph):
    """The slot of an input that dies with this node, where the op may write over it."""
    row = tiles.table.get(life.node.type)
    if row is None or not row.in_place:
        return None
    for slot in slots:
        owner = slot.lives[-1]
        if (owner.node.name in life.node.inputs and owner.last == life.first
                and owner.node.dtype.bytes == life.node.dtype.bytes and known_equal(owner.bytes, life.bytes)
                and all(other.last <= life.first for other in slot.lives)):
            return slot
    return None


def _reusable(life: Life, slots: List[_Slot]):
    """A slot whose tensors are dead, one of the same bytes first; big tensors never share with small ones."""
    free = [s for s in slots if s.last < life.first and s.lives[0].big == life.big]
    for slot in free:
        if any(known_equal(other.bytes, life.bytes) for other in slot.lives):
            return slot
    return free[-1] if free else None
