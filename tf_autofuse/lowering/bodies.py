"""Regions that compute the same are emitted once: the layers of a network are mostly equal.

A Body is what a region computes, without the names of the fused op and of its TF nodes. On entry of
`emit_once` what emit wants; its key says everything that emit reads but names: expressions, dtypes,
dims with the graph's symbols numbered as they are met (with their hints and what they are broadcasts
of), guards. On exit an Emitted: a Body, shared by all regions that have an equal key, and this region's
own names; the FusedGraph itself is only made where somebody reads it. What the key cannot express is
emitted anew.
"""
import hashlib
import re
import struct
import threading
from dataclasses import replace
from functools import lru_cache
from typing import Any, Dict, Optional, Sequence, Tuple

from tf_autofuse.ir import proto
from tf_autofuse.ir.asc_graph import FusedGraph
from tf_autofuse.ir.dtypes import DType
from tf_autofuse.ir.loop_ir import Expr, Store, reachable
from tf_autofuse.lowering.emit import Interface, emit
from tf_autofuse.lowering.symbols import SymbolTable
from tf_autofuse.symbolic.size import SizeExpr

#: Bodies kept in this process; beyond that all are forgotten.
MOST_BODIES = 8192

_SYMBOL = re.compile(r"\b[db]\d+\b")


class Body:
    """fused: the graph under the names of the region that was met first. Compared by identity."""

    __slots__ = ("fused", "_bytes", "_digest")

    def __init__(self, fused: FusedGraph):
        self.fused = fused
        self._bytes: Optional[bytes] = None
        self._digest = ""

    @property
    def bytes(self) -> bytes:
        """See ir/proto.py's body_bytes."""
        if self._bytes is None:
            self._bytes = proto.body_bytes(self.fused)
        return self._bytes

    @property
    def digest(self) -> str:
        """40 hex digits, equal for bodies that compute the same, in every process."""
        if not self._digest:
            self._digest = hashlib.sha256(self.bytes).hexdigest()[:40]
        return self._digest


class Emitted:
    """A body under a region's names. origin: the region's TF nodes in topological order."""

    __slots__ = ("body", "name", "origin", "_fused")

    def __init__(self, body: Body, name: str, origin: Tuple[str, ...]):
        self.body, self.name, self.origin = body, name, origin
        self._fused: Optional[FusedGraph] = None

    @property
    def fused(self) -> FusedGraph:
        if self._fused is None:
            self._fused = _renamed(self.body.fused, self.name, self.origin)
        return self._fused

    def __eq__(self, other) -> bool:
        return isinstance(other, Emitted) and (self.name, self.origin, self.body.bytes) == (
            other.name, other.origin, other.body.bytes)

    def __hash__(self) -> int:
        return hash((self.name, self.origin))

    @property
    def op_type(self) -> str:
        return self.body.fused.op_type

    @property
    def serialized(self) -> bytes:
        """proto.to_bytes(fused), without making `fused`."""
        return proto.with_header(self.body.bytes, self.name, self.origin)


def _renamed(fused: FusedGraph, name: str, origin: Tuple[str, ...]) -> FusedGraph:
    if name == fused.name and origin == fused.origin:
        return fused
    new = dict(zip(fused.origin, origin))
    graphs = tuple(
        replace(
            graph,
            name=name + graph.name[len(fused.name):] if graph.name.startswith(fused.name) else graph.name,
            nodes=tuple(replace(n, origin=tuple(new.get(o, o) for o in n.origin)) for n in graph.nodes))
        for graph in fused.graphs)
    return replace(fused, name=name, origin=origin, graphs=graphs)


_lock = threading.Lock()
_bodies: Dict[Any, Body] = {}
_generation = 0


def emit_once(name: str, kind: str, bodies: Sequence[Sequence[Store]], interface: Interface, guards,
              table: SymbolTable) -> Emitted:
    """As lowering.emit.emit. Raises EmitFailure."""
    origin = tuple(n for _, n in interface.members)
    key = _key_of(kind, bodies, interface, guards, table)
    body = _bodies.get(key) if key is not None else None
    if body is None:
        body = Body(emit(name, kind, bodies, interface, guards, table))
        if key is not None:
            with _lock:
                if len(_bodies) >= MOST_BODIES:
                    _bodies.clear()
                body = _bodies.setdefault(key, body)
    return Emitted(body, name, origin)


def forget() -> None:
    """Empties this process's memory of bodies, and of what holds them. For tests and measurements."""
    global _generation
    with _lock:
        _bodies.clear()
        _generation += 1


def generation() -> int:
    """Another number after each `forget`."""
    return _generation


class _NoKey(Exception):
    """Something that has no place in a key."""


def _key_of(kind, bodies, interface, guards, table) -> Optional[Tuple]:
    try:
        return _Keys(interface, table).of(kind, bodies, guards)
    except _NoKey:
        return None


#: Slots of an expression that a key has otherwise, or that say nothing about what is computed.
_APART = frozenset(("index", "dtype", "dims", "origin", "args", "tensor"))
_slots: Dict[type, Tuple[str, ...]] = {}


@lru_cache(maxsize=1 << 14)
def _text(size: SizeExpr) -> str:
    return str(size)


def _own_slots(cls: type) -> Tuple[str, ...]:
    found = _slots.get(cls)
    if found is None:
        names = [name for c in cls.__mro__ for name in getattr(c, "__slots__", ())]
        found = _slots[cls] = tuple(sorted(set(names) - _APART))
    return found


class _Keys:
    def __init__(self, interface: Interface, table: SymbolTable):
        self.table = table
        self.interface = interface
        self.numbers: Dict[str, int] = {}
        self.symbols = []
        self.members = {node: i for i, (node, _) in enumerate(interface.members)}
        self.inputs = {tensor: i for i, (tensor, _, _) in enumerate(interface.inputs)}

    def of(self, kind: str, bodies: Sequence[Sequence[Store]], guards) -> Tuple:
        sizes, interface = self.sizes, self.interface
        return (
            kind,
            tuple((dtype.name, sizes(dims)) for _, dtype, dims in interface.inputs),
            tuple((self.tensor(t), dtype.name, sizes(dims)) for t, dtype, dims in interface.outputs),
            len(interface.members),
            tuple([self.nest(stores) for stores in bodies]),
            tuple(self.value(tuple(guard)) for guard in guards),
            self.described(),
        )

    def nest(self, stores: Sequence[Store]) -> Tuple:
        places: Dict[int, int] = {}
        exprs = []
        for place, expr in enumerate(reachable([s.expr for s in stores])):
            places[expr.index] = place
            exprs.append(self.expr(expr, places))
        return tuple(exprs), tuple([(self.tensor(s.tensor), places[s.expr.index]) for s in stores])

    def tensor(self, tensor) -> Any:
        """A kernel input by its number; what the region computes by its place among the members."""
        number = self.inputs.get(tensor)
        if number is None:
            member = self.members.get(tensor[0])
            if member is None:
                raise _NoKey()
            number = (member, tensor[1])
        return number

    def expr(self, expr: Expr, places: Dict[int, int]) -> Tuple:
        cls = type(expr)
        tensor = getattr(expr, "tensor", None)
        return (
            cls.__name__,
            expr.dtype.name,
            self.sizes(expr.dims),
            tuple([places[a.index] for a in expr.args]),
            self.members.get(expr.origin, -1),
            None if tensor is None else self.tensor(tensor),
            tuple([self.value(getattr(expr, name)) for name in _own_slots(cls)]),
        )

    def sizes(self, dims) -> Tuple:
        return tuple([d if type(d) is int else self.value(d) for d in dims])

    def value(self, value) -> Any:
        """Equal where the values are the same to emit: 1, 1.0 and True are three values, 0.0 and -0.0 are
        two."""
        kind = type(value)
        if kind is int or kind is str or value is None:
            return value
        if kind is tuple:
            return tuple([self.value(v) for v in value])
        if kind is SizeExpr:
            return ("size", _SYMBOL.sub(self.number, _text(value)))
        if kind is float:
            return ("float", struct.pack("<d", value))
        if kind is bool:
            return ("bool", value)
        if kind is DType:
            return ("dtype", value.name)
        raise _NoKey()

    def number(self, found) -> str:
        name = found.group(0)
        number = self.numbers.get(name)
        if number is None:
            number = self.numbers[name] = len(self.numbers)
            self.symbols.append(name)
        return "$%d" % number

    def described(self) -> Tuple:
        """Of each symbol the hint and what it is the broadcast of; the latter's symbols get their numbers
        here."""
        result = []
        for name in self.symbols:  # grows on the way
            result.append((self.table.hint(name), tuple(map(self.sizes, self.table.ways_of(name)))))
        return tuple(result)
