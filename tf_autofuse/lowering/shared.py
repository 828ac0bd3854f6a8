"""Equal chunks of a graph are planned once: the layers of a network are mostly equal.

On entry: a graph. On exit (`shared_plan`) the regions that planner.straight would give, or None where the
graph has to be planned straight. A chunk (chunks.py) is cut out with what is around it (`_Frame`): a part of
the graph (`_part`) that holds all that planning looks at, of which the frame's key is a full account but for
names and places. Planning that part gives a Template; a chunk of equal key gets its regions by renaming.

What a chunk does not decide by itself is checked, and leads to planning straight:
    - a tensor that another chunk reads has to be stored, under the dims that its columns tell;
    - no region that cannot be emitted has planning start over, and no dims are assumed (Lowered.assuming).
"""

import marshal
import threading
from bisect import bisect
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Sequence, Set, Tuple

from tf_autofuse.config_table import ROWS
from tf_autofuse.ir.loop_ir import constant_of
from tf_autofuse.lowering import bodies
from tf_autofuse.lowering.bodies import Body, Emitted
from tf_autofuse.lowering.chunks import Chunks, Signatures, chunks_of, constant_value
from tf_autofuse.lowering.eligibility import Eligibility
from tf_autofuse.lowering.graph_view import GraphView, REQUIRED
from tf_autofuse.lowering.known_operands import FLOW, RESHAPING, KnownOperand
from tf_autofuse.lowering.liveness import ALWAYS, liveness_of
from tf_autofuse.lowering.lower import Lowered, Surroundings, first_nodes
from tf_autofuse.lowering.naming import fused_name
from tf_autofuse.lowering.planner import Head, Plan, Region, Told, straight
from tf_autofuse.lowering.precision_mode import spreads
from tf_autofuse.symbolic.size import Size, substitute, symbol, symbols_of

#: Templates and signatures kept in this process for one set of settings; beyond that they are forgotten.
MOST_TEMPLATES = 4096
MOST_SIGNATURES = 1 << 16
#: An op that nothing fuses, in the place of what is around a part.
_AROUND = "_Around"

Tensor = Tuple[int, int]


class TemplateRegion(NamedTuple):
    """A Region and its Head, nodes numbered as in `_Frame.ids`."""

    key: int
    kind: str
    types: Tuple[str, ...]
    body: Body
    computed: Tuple[int, ...]
    nodes: Tuple[int, ...]
    inputs: Tuple[Tensor, ...]
    outputs: Tuple[Tensor, ...]
    device: str
    copies: Tuple[int, ...]


class Template(NamedTuple):
    """What becomes of a chunk. closed: whether it decides all by itself. bound: the run-time dims that
    lowering found to be sizes of others, by the frame's numbers; None: a size that only this chunk has."""

    regions: Tuple[TemplateRegion, ...]
    operands: Tuple[KnownOperand, ...]
    closed: bool
    bound: Tuple[Tuple[int, Optional[Size]], ...]


class _Store:
    """What is known under one set of settings."""

    def __init__(self, generation: int):
        self.generation = generation
        self.signatures = Signatures()
        self.templates: Dict[bytes, Template] = {}


_lock = threading.Lock()
_stores: Dict[tuple, _Store] = {}


def _store_of(config, target: str) -> _Store:
    settings = (target, repr([getattr(config, row.field) for row in ROWS]), repr(config.skip_list))
    generation = bodies.generation()
    with _lock:
        store = _stores.get(settings)
        if (store is None or store.generation != generation or len(store.templates) >= MOST_TEMPLATES
                or len(store.signatures.kinds) >= MOST_SIGNATURES):
            if len(_stores) >= 16:
                _stores.clear()
            store = _stores[settings] = _Store(generation)
    return store


def shared_plan(view: GraphView, config, target: str, shares: bool = True) -> Optional[Plan]:
    """None where the graph has to be planned as one piece. shares: whether equal chunks are planned once;
    else the chunks are planned side by side."""
    if spreads(config.precision_mode_for(target)) or config.skip_list.names:
        return None
    store = _store_of(config, target)
    try:
        chunks = chunks_of(view, Eligibility(view, config, target, {}), store.signatures)
        framing = _Framing(view, chunks)
        frames = [framing.frame(number) for number in range(len(chunks.members))]
    except ValueError:
        return None  # something that cannot be written down
    found: List[Tuple[int, TemplateRegion, List[int]]] = []
    operands: List[KnownOperand] = []
    templates = store.templates
    for frame in framing.in_order(frames):
        key = framing.key(frame)
        if key is None:
            return None
        template = templates.get(key)
        if template is None:
            template = templates[key] = _planned(framing, frame, config, target)
        if not template.closed:
            return None
        if template.bound:
            framing.bind(frame, template.bound)
        if template.regions or template.operands:
            ids = frame.ids()
            found.extend([(ids[region.key], region, ids) for region in template.regions])
            operands.extend([_operand(operand, ids) for operand in template.operands])
    if not shares:
        outcome = straight(view, config, target, Surroundings(homes=chunks.home))
        return Plan(outcome.regions, outcome.operands, outcome.tell)
    found.sort(key=_first)
    names = view.names
    regions = [_region(region, ids, names, number) for number, (_, region, ids) in enumerate(found)]
    operands.sort(key=lambda operand: (operand.node, operand.at))
    return Plan(regions, operands, lambda: _told(view, config, target, chunks))


def _first(item):
    return item[0]


def _told(view: GraphView, config, target: str, chunks: Chunks) -> Told:
    return straight(view, config, target, Surroundings(homes=chunks.home)).tell()


def _region(region: TemplateRegion, ids: List[int], names: Sequence[str], number: int) -> Region:
    emitted = Emitted(
        region.body,
        fused_name(region.kind, number, region.types),
        tuple([names[ids[node]] for node in region.computed]),
    )
    return Region(
        emitted,
        tuple([ids[node] for node in region.nodes]),
        tuple([(ids[node], port) for node, port in region.inputs]),
        tuple([(ids[node], port) for node, port in region.outputs]),
        region.device,
        tuple([ids[node] for node in region.copies]),
    )


def _operand(operand: KnownOperand, ids: List[int]) -> KnownOperand:
    chain = tuple(sorted([ids[node] for node in operand.chain]))
    return operand._replace(node=ids[operand.node], chain=chain)


class _Frame:
    """A chunk and what is around it. number: the chunk's. members: its nodes, ascending. sources: other
    nodes that it reads, in the order in which it reads them; constants: such that are Consts; readers: other
    nodes that read it; both ascending. dims: the run-time dims that it meets, by their numbers in the
    frame. written: all but the facts about these."""

    __slots__ = ("number", "members", "sources", "constants", "readers", "dims", "written")

    def ids(self) -> List[int]:
        """The graph's ids of all of these nodes, in the order that a Template numbers them."""
        return self.sources + sorted(self.members + self.constants) + self.readers


class _Framing:
    """Makes the frames of one graph's chunks."""

    def __init__(self, view: GraphView, chunks: Chunks):
        self.view = view
        self.chunks = chunks
        self.first = first_nodes(view) if view.symbols else {}
        # Run-time dims that planned chunks found to be sizes of others; None: of a broadcast made there.
        self.bound: Dict[int, Optional[Size]] = {}
        self.described: Dict[int, tuple] = {}
        self.controlled = any(view.control_inputs)
        self.outside_readers = self._outside_readers()
        self.alive = liveness_of(view)
        self.lives = any(self.alive)

    def in_order(self, frames: List[_Frame]) -> Iterable[_Frame]:
        """Each frame after those in which its run-time dims come up."""
        if not self.first:
            return frames
        first, home = self.first, self.chunks.home
        ordered: Dict[int, _Frame] = {}
        pending = frames[::-1]
        while pending:
            frame = pending[-1]
            missing = {home[first[dim]] for dim in frame.dims}.difference(ordered, (-1, frame.number))
            if missing and len(pending) <= 2 * len(frames):
                pending.extend(frames[number] for number in missing)
            else:
                ordered.setdefault(frame.number, pending.pop())
        return ordered.values()

    def _outside_readers(self) -> List[Set[int]]:
        """Per chunk the nodes outside of it that read it."""
        home = self.chunks.home
        found: List[Set[int]] = [set() for _ in self.chunks.members]
        for node, (mine, inputs) in enumerate(zip(home, self.view.inputs)):
            for source, _ in inputs:
                if home[source] != mine and home[source] >= 0:
                    found[home[source]].add(node)
        return found

    def bind(self, frame: _Frame, bound: Sequence[Tuple[int, Optional[Size]]]) -> None:
        names = {"d%d" % i: symbol("d%d" % dim) for i, dim in enumerate(frame.dims)}
        for i, size in bound:
            self.bound[frame.dims[i]] = None if size is None else substitute(size, names)

    def frame(self, number: int) -> _Frame:
        """Raises ValueError where something cannot be written down."""
        view, chunks = self.view, self.chunks
        home, signature = chunks.home, chunks.signature
        all_inputs, ops = view.inputs, view.ops
        members = chunks.members[number]
        base = members[0]
        sources: Dict[int, int] = {}
        constants: Dict[int, int] = {}
        shapes = _Shapes()
        known = shapes.known
        tokens: Dict[tuple, int] = {}
        rows: List[Any] = []
        for node in members:
            dims = view.out_shapes[node]
            # Flat, and without ambiguity: a node's inputs follow its three other entries up to the next None.
            rows += (None, node - base, signature[node], known.get(dims) or shapes.of(dims))
            for source, port in all_inputs[node]:
                if home[source] == number:
                    rows.append(source - base)
                elif ops[source] == "Const":
                    rows.append(-2 * constants.setdefault(source, len(constants)) - 1)
                else:
                    rows.append(-2 * sources.setdefault(source, len(sources)) - 2)
                if port:
                    rows.append((port,))
            if self.controlled:
                rows.append(self.order(node, number, base))
            if self.lives:
                alive = sorted(self.alive[node], key=repr)
                rows.append([tokens.setdefault(token, len(tokens)) for token in alive])
        readers = sorted(self.outside_readers[number])
        frame = _Frame()
        frame.number = number
        frame.members = members
        frame.sources = list(sources)
        frame.constants = sorted(constants)
        frame.readers = readers
        frame.written = marshal.dumps((
            rows,
            [self.source(source, shapes) for source in sources],
            [self.constant(node, number, bisect(members, node)) for node in constants],
            [constants[node] for node in frame.constants],
            [self.reader(reader, number, bisect(members, reader), base) for reader in readers],
        ), 2)
        frame.dims = shapes.dims
        return frame

    def key(self, frame: _Frame) -> Optional[bytes]:
        """Equal for chunks of which the same becomes. To be asked when all is bound that earlier chunks
        bind. None where the chunk has a size that only another one has."""
        if self.bound and any(self.bound.get(dim, 0) is None for dim in frame.dims):
            return None
        return frame.written + marshal.dumps(self.facts(frame), 2) if frame.dims else frame.written

    def facts(self, frame: _Frame) -> tuple:
        """Of each run-time dim where it stands first, its hint, and the size that it is known to be; and the
        order of their names, in which sizes are written."""
        symbols, home, dims, base = self.view.symbols, self.chunks.home, frame.dims, frame.members[0]
        found = []
        for dim in dims:  # grows on the way
            first = self.first[dim]
            size = self.bound.get(dim)
            if size is not None:
                dims.extend(sorted({int(name[1:]) for name in symbols_of(size)}.difference(dims)))
                numbers = {"d%d" % other: symbol("d%d" % i) for i, other in enumerate(dims)}
            found.append((
                first - base if home[first] == frame.number else -1,
                symbols[dim].get("hint") if dim < len(symbols) else None,
                None if size is None else str(substitute(size, numbers)),
            ))
        return found, sorted(range(len(dims)), key=lambda i: str(dims[i])) if len(dims) > 1 else []

    def order(self, node: int, number: int, base: int) -> tuple:
        """The node's control edges."""
        home, view = self.chunks.home, self.view
        before, after = view.control_inputs[node], view.control_outputs[node]
        return ([source - base for source in before if home[source] == number],
                any(home[source] != number for source in before), any(home[n] != number for n in after))

    def source(self, node: int, shapes: "_Shapes") -> tuple:
        view = self.view
        return view.out_dtypes[node], shapes.of(view.out_shapes[node]), view.devices[node], view.frames[node]

    def constant(self, node: int, number: int, place: int) -> tuple:
        found = self.described.get(node)
        if found is None:
            found = self.described[node] = self._constant(node)
        home, readers = self.chunks.home, self.chunks.readers[node]
        beside = len(readers) > 1 and any([home[reader] != number for reader in readers])
        return found, place, beside

    def _constant(self, node: int) -> tuple:
        view = self.view
        return (constant_value(view, node), view.out_dtypes[node], view.out_shapes[node], view.devices[node],
                view.frames[node], bool(view.control_inputs[node]), bool(view.control_outputs[node]))

    def reader(self, node: int, number: int, place: int, base: int) -> tuple:
        """What an op outside reads, and what known_operands.py asks about it. Raises ValueError where that is
        more than a part has."""
        view, home = self.view, self.chunks.home
        edges: List[int] = []
        for at, (source, port) in enumerate(view.inputs[node]):
            if home[source] == number:
                edges += (at, source - base, port)
        if view.ops[node] in RESHAPING and home[node] < 0 and any(edges[::3]):
            raise ValueError("what it views is not in the part")
        return (edges, place, view.ops[node] in FLOW, view.devices[node], view.frames[node],
                not self.alive[node], home[node] >= 0)


class _Shapes:
    """Dims of one frame, with its own numbers for run-time dims."""

    def __init__(self):
        self.dims: List[int] = []
        self.numbers: Dict[int, int] = {}
        self.known: Dict[tuple, tuple] = {}

    def of(self, shapes: tuple) -> tuple:
        found = self.known.get(shapes)
        if found is None:
            found = self.known[shapes] = tuple([
                column if not column or min(column) >= 0 else tuple([
                    d if d >= 0 else -1 - self.of_dim(-d - 1) for d in column
                ]) for column in shapes
            ])
        return found

    def of_dim(self, dim: int) -> int:
        number = self.numbers.get(dim)
        if number is None:
            number = self.numbers[dim] = len(self.dims)
            self.dims.append(dim)
        return number


def _planned(framing: _Framing, frame: _Frame, config, target: str) -> Template:
    part = _Part(framing, frame)
    outcome = straight(part.view, config, target, part.around)
    lowered = outcome.lowered
    numbers = {"d%d" % dim: symbol("d%d" % i) for i, dim in enumerate(frame.dims)}
    bound = [
        (frame.dims.index(dim), substitute(size, numbers) if symbols_of(size) <= numbers.keys() else None)
        for dim, size in lowered.symbols.bound().items()]
    closed = not outcome.repeated and not lowered.assuming and part.is_closed(lowered)
    return Template(
        tuple([part.region(*found) for found in zip(outcome.regions, outcome.heads)]),
        tuple([_operand(operand, part.numbers) for operand in outcome.operands]),
        closed,
        tuple(bound),
    )


class _Part:
    """The chunk as a graph of its own: what is in the frame, in the order of the graph but for what is read,
    which comes first. Behind that one node that reads the constants that something outside reads too, and one
    at each end of the control edges from and to outside. numbers: of its nodes in the frame."""

    def __init__(self, framing: _Framing, frame: _Frame):
        self.framing = framing
        self.frame = frame
        numbers = {node: i for i, node in enumerate(frame.ids())}
        ids = frame.sources + sorted(frame.members + frame.constants + frame.readers)
        self.numbers = [numbers[node] for node in ids]
        self.place = {node: i for i, node in enumerate(ids)}
        self.columns: Dict[str, list] = {name: [] for name in REQUIRED}
        home, number = framing.chunks.home, frame.number
        for node in ids:
            if home[node] == number:
                self.add_member(node)
            elif framing.view.ops[node] == "Const":
                self.add_constant(node)
            else:
                self.add_other(node)
        self.add_ends(ids)
        view = GraphView.from_columns(dict(
            self.columns, symbols=framing.view.symbols,
            constants={self.place[n]: framing.view.constants[n] for n in ids if n in framing.view.constants}))
        self.view = view
        inside = [0 if home[node] == number else -1 for node in ids]
        first = {dim: self.place.get(framing.first[dim], -1) for dim in frame.dims}
        alive = [framing.alive[node] for node in ids]
        self.around = Surroundings(inside + [-1] * 3, ids + [0] * 3, first, alive + [ALWAYS] * 3, {
            dim: framing.bound[dim] for dim in frame.dims if dim in framing.bound})

    def add(self, **fields) -> None:
        for name, column in self.columns.items():
            column.append(fields.get(name, ()))

    def add_own(self, node: int, inputs, controls) -> None:
        """A node with all that its own columns say."""
        own = {name: getattr(self.framing.view, name)[node] for name in self.columns}
        self.add(**dict(own, inputs=inputs, control_inputs=controls))

    def add_member(self, node: int) -> None:
        view, home, number = self.framing.view, self.framing.chunks.home, self.frame.number
        controls = [self.place[n] for n in view.control_inputs[node] if home[n] == number]
        if any(home[n] != number for n in view.control_inputs[node]):
            controls.append(len(self.place))
        self.add_own(node, tuple([(self.place[s], port) for s, port in view.inputs[node]]), tuple(controls))

    def add_constant(self, node: int) -> None:
        self.add_own(node, (), (len(self.place),) if self.framing.view.control_inputs[node] else ())

    def add_other(self, node: int) -> None:
        """What is read, or what reads: that is in a place of its own (a node that does both is outside of a
        path that comes back)."""
        view, home, number = self.framing.view, self.framing.chunks.home, self.frame.number
        plain = {"names": view.names[node], "ops": _AROUND, "devices": view.devices[node], "attrs": {},
                 "frames": view.frames[node], "stateful": False}
        if self.place[node] < len(self.frame.sources):
            self.add(**dict(plain, out_dtypes=view.out_dtypes[node], out_shapes=view.out_shapes[node]))
            return
        inputs = []
        for source, port in view.inputs[node]:
            inside = home[source] == number
            inputs.append((self.place[source], port) if inside else (len(self.place), 0))
        op = "_Retval" if view.ops[node] in FLOW else _AROUND
        self.add(**dict(plain, ops=op, inputs=tuple(inputs), in_dtypes=view.in_dtypes[node]))

    def add_ends(self, ids: List[int]) -> None:
        framing, number = self.framing, self.frame.number
        view, home, readers = framing.view, framing.chunks.home, framing.chunks.readers
        plain = {"ops": _AROUND, "devices": "", "attrs": {}, "frames": "", "stateful": False}
        self.add(**dict(plain, names="before", out_dtypes=(0,), out_shapes=(None,)))
        beside = [n for n in self.frame.constants if any(home[r] != number for r in readers[n])]
        self.add(**dict(plain, names="beside", inputs=tuple([(self.place[n], 0) for n in beside]),
                        in_dtypes=tuple([view.out_dtypes[n][0] for n in beside])))
        followed = [
            n for n in self.frame.members + self.frame.constants
            if any(home[n] != number or home[f] != number for f in view.control_outputs[n])]
        self.add(**dict(plain, names="after", control_inputs=tuple([self.place[n] for n in followed])))

    def is_closed(self, lowered: Lowered) -> bool:
        """Whether what other chunks read is stored, under the dims that its columns tell."""
        home, inputs, number = self.framing.chunks.home, self.framing.view.inputs, self.frame.number
        for reader in self.frame.readers:
            for source, port in inputs[reader] if home[reader] >= 0 else ():
                if home[source] != number:
                    continue
                node = self.place[source]
                box, column = lowered.boxes.get(node), self.view.out_shapes[node][port]
                if box is None:
                    continue
                if node not in lowered.realized or constant_of(box.output(port)) is not None:
                    return False
                if column is None or lowered.dims_of((node, port)) != lowered.symbols.dims(column):
                    return False
        return True

    def region(self, region: Region, head: Head) -> TemplateRegion:
        numbers = self.numbers
        nodes, copies, computed = (
            tuple(sorted([numbers[node] for node in which]))
            for which in (region.nodes, region.copies, head.computed))
        inputs, outputs = (
            tuple([(numbers[node], port) for node, port in tensors])
            for tensors in (region.inputs, region.outputs))
        return TemplateRegion(numbers[head.key], head.kind, head.types, region.emitted.body, computed, nodes,
                              inputs, outputs, region.device, copies)
