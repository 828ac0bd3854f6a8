"""Loop IR: what one element of a tensor is, as an expression over elements of other tensors.

Why: lowering writes each TF op once as an expression; consumers inline it; fusion counts and compares it;
emission places it on loop axes. No loops appear here: an expression has dims (a dense row-major shape), and
every node says how its dims relate to those of its arguments.

Grammar
    KernelBox ::= node Expr inlined...           the expression of one TF op's output
    Expr      ::= Load tensor                    an element of a tensor in GM; dims: any dense view of it
                | Constant value                 dims ()
                | Call type Expr+ attrs          one AscIR op; the arguments broadcast, right-aligned, to dims
                | Cast role Expr                 dims as the argument
                | View Expr                      other dims, the same elements in the same row-major order
                | Broadcast Expr                 the argument broadcasts, right-aligned, to dims
                | Same Expr                      other dims that a guard holds equal to the argument's
    Store     ::= tensor Expr                    a root: the expression is written out as it is
    role      ::= user                           a cast that the TF graph has: never elided
                | promote | demote               16-bit float -> float32 before what runs in float32, and back
                | narrow | widen                 float32 -> float16 and back, which a precision mode puts in
                | convert                        a cast inside of an op's lowering

Invariants
    L1 arguments have a smaller `index` than the expression: sorted by index, expressions are in topological
       order.
    L2 promote(demote(x)), demote(promote(x)) and narrow(widen(x)) never stand: the constructors give x. So
       a tensor that only the fused region reads is never rounded on the way; what leaves it is rounded once.
    L3 views and broadcasts stand under promote, demote, narrow and widen, and a view of a Load is a Load.
"""

import itertools
import struct
from typing import Any, Dict, FrozenSet, Iterable, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from tf_autofuse.ir.dtypes import BFLOAT16, DType, FLOAT16, FLOAT32
from tf_autofuse.symbolic.size import Size

Dims = Tuple[Size, ...]
Tensor = Tuple[int, int]  # (node id, output number)

USER, PROMOTE, DEMOTE, NARROW, WIDEN, CONVERT = "user", "promote", "demote", "narrow", "widen", "convert"
_INVERSE = {PROMOTE: DEMOTE, DEMOTE: PROMOTE, NARROW: WIDEN}
_VIRTUAL = frozenset((PROMOTE, DEMOTE, NARROW, WIDEN))


class Expr:
    """Base of all expressions. Immutable by convention and compared by identity (a DAG compared by structure
    would be walked once per path). origin: id of the TF node that it was made for, -1 for none."""

    __slots__ = ("index", "dtype", "dims", "origin")
    args: Tuple["Expr", ...] = ()

    def __init__(self, index: int, dtype: DType, dims: Dims, origin: int):
        self.index = index
        self.dtype = dtype
        self.dims = dims
        self.origin = origin

    def __repr__(self) -> str:
        return to_text(self)


class Load(Expr):
    __slots__ = ("tensor",)


class Constant(Expr):
    __slots__ = ("value",)


class Call(Expr):
    """attrs: sorted (name, value) pairs."""

    __slots__ = ("type", "args", "attrs")


class Cast(Expr):
    __slots__ = ("role", "args")

    @property
    def virtual(self) -> bool:
        """Whether the cast has no counterpart in the TF graph and commutes with views."""
        return self.role in _VIRTUAL


class View(Expr):
    __slots__ = ("args",)


class Broadcast(Expr):
    __slots__ = ("args",)


class Same(Expr):
    __slots__ = ("args",)


class Store(NamedTuple):
    """tensor: the TF tensor that the values are."""

    tensor: Tensor
    expr: Expr


class KernelBox(NamedTuple):
    """One TF op's output as a loop expression.

    node: the TF node; expr: dtype and dims as in TF; inlined: the boxes whose expressions stand inside of
    this one; computes: whether the op itself computes something (views and constants do not); size: loop
    nodes (Call and Cast) of this and all inlined boxes; loads: the tensors read; hard: whether a view inside
    regroups dims.
    """

    node: int
    expr: Expr
    inlined: Tuple["KernelBox", ...]
    computes: bool
    size: int
    loads: FrozenSet[Tensor]
    hard: bool

    def all_boxes(self) -> List["KernelBox"]:
        """This and all inlined boxes, ascending by node."""
        found, stack = {}, [self]
        while stack:
            box = stack.pop()
            if box.node not in found:
                found[box.node] = box
                stack.extend(box.inlined)
        return [found[node] for node in sorted(found)]


class LoopBuilder:
    """Makes expressions. With `share`, equal expressions are made once (the first origin stays)."""

    def __init__(self, share: bool = False):
        self._count = itertools.count()
        self._known: Optional[Dict[Any, Expr]] = {} if share else None

    def _new(self, cls, key, dtype: DType, dims: Dims, origin: int, **fields) -> Expr:
        if self._known is not None:
            key = (cls.__name__, key, dtype.name, dims)
            found = self._known.get(key)
            if found is not None:
                return found
        expr = cls(next(self._count), dtype, dims, origin)
        for name, value in fields.items():
            setattr(expr, name, value)
        if self._known is not None:
            self._known[key] = expr
        return expr

    def load(self, tensor: Tensor, dtype: DType, dims: Dims, origin: int = -1) -> Expr:
        return self._new(Load, tensor, dtype, dims, origin, tensor=tensor)

    def constant(self, value, dtype: DType, origin: int = -1) -> Expr:
        """value: a Python number or bool. Floats are kept apart by their bits: -0.0, NaN."""
        key = struct.pack("<d", value) if isinstance(value, float) else (type(value).__name__, value)
        return self._new(Constant, key, dtype, (), origin, value=value)

    def call(
        self, type_: str, args: Sequence[Expr], dtype: DType, dims: Dims, attrs=(), origin: int = -1
    ) -> Expr:
        return self._new(
            Call,
            (type_, tuple(a.index for a in args), attrs),
            dtype,
            dims,
            origin,
            type=type_,
            args=tuple(args),
            attrs=attrs,
        )

    def cast(self, arg: Expr, dtype: DType, role: str, origin: int = -1) -> Expr:
        """See L2 for what cancels. A constant under a virtual cast is cast at once."""
        if isinstance(arg, Cast):
            if arg.role == _INVERSE.get(role):
                return arg.args[0]
            if role == USER and arg.role == WIDEN:  # float16 -> float32 is exact: cast what it was
                inner = arg.args[0]
                return inner if inner.dtype is dtype else self.cast(inner, dtype, role, origin)
        elif isinstance(arg, Constant) and role in _VIRTUAL:
            return self.constant(round_to(float(arg.value), dtype), dtype, origin)
        elif isinstance(arg, Broadcast) and isinstance(arg.args[0], Constant) and role in _VIRTUAL:
            return self.broadcast(self.cast(arg.args[0], dtype, role, origin), arg.dims, origin)
        return self._new(Cast, (role, arg.index), dtype, arg.dims, origin, role=role, args=(arg,))

    def view(self, arg: Expr, dims: Dims, origin: int = -1) -> Expr:
        """arg under other dims of as many elements."""
        if arg.dims == dims:
            return arg
        if isinstance(arg, Load):
            return self.load(arg.tensor, arg.dtype, dims, arg.origin)
        if isinstance(arg, View):
            return self.view(arg.args[0], dims, origin)
        if isinstance(arg, Broadcast) and isinstance(arg.args[0], Constant):
            return self.broadcast(arg.args[0], dims, origin)
        if isinstance(arg, Cast) and arg.virtual:
            return self.cast(self.view(arg.args[0], dims, origin), arg.dtype, arg.role, arg.origin)
        return self._new(View, arg.index, arg.dtype, dims, origin, args=(arg,))

    def broadcast(self, arg: Expr, dims: Dims, origin: int = -1) -> Expr:
        if arg.dims == dims:
            return arg
        if isinstance(arg, Cast) and arg.virtual:
            return self.cast(self.broadcast(arg.args[0], dims, origin), arg.dtype, arg.role, arg.origin)
        return self._new(Broadcast, arg.index, arg.dtype, dims, origin, args=(arg,))

    def same(self, arg: Expr, dims: Dims, origin: int = -1) -> Expr:
        """arg under dims that a guard holds equal to its own."""
        if arg.dims == dims:
            return arg
        if isinstance(arg, Cast) and arg.virtual:
            return self.cast(self.same(arg.args[0], dims, origin), arg.dtype, arg.role, arg.origin)
        return self._new(Same, arg.index, arg.dtype, dims, origin, args=(arg,))


def round_to(value: float, dtype: DType) -> float:
    """The float16, bfloat16 or float32 number nearest to value (ties to even), as a Python float."""
    with np.errstate(over="ignore"):
        if dtype is FLOAT16:
            return float(np.float16(value))
        if dtype is FLOAT32:
            return float(np.float32(value))
    if dtype is BFLOAT16:
        bits = int(np.float32(value).view(np.uint32))
        if value != value:
            return value
        bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
        return float(np.uint32(bits).view(np.float32))
    raise ValueError("a virtual cast to %s" % dtype.name)


def constant_of(expr: Expr) -> Optional[Constant]:
    """The Constant that every element of expr is, as far as its form shows it."""
    while isinstance(expr, (Broadcast, View, Same)) or (isinstance(expr, Cast) and expr.virtual):
        expr = expr.args[0]
    return expr if isinstance(expr, Constant) else None


def reachable(roots: Iterable[Expr]) -> List[Expr]:
    """The expressions under the roots, in topological order (L1)."""
    found: Dict[int, Expr] = {}
    stack = list(roots)
    while stack:
        expr = stack.pop()
        if expr.index not in found:
            found[expr.index] = expr
            stack.extend(expr.args)
    return [found[i] for i in sorted(found)]


def loads_of(exprs: Iterable[Expr]) -> FrozenSet[Tensor]:
    """Read set of a body: the tensors that its expressions load."""
    return frozenset(e.tensor for e in reachable(exprs) if isinstance(e, Load))


def loop_size(exprs: Iterable[Expr]) -> int:
    """Number of loop nodes of a body: Calls, and Casts that the TF graph or a lowering has."""
    return sum(isinstance(e, Call) or (isinstance(e, Cast) and not e.virtual) for e in reachable(exprs))


def rebuild(stores: Sequence[Store], inner: Dict[Tensor, Expr]) -> List[Store]:
    """The stores with every Load of a tensor in `inner` replaced by that tensor's expression, equal
    expressions made one, and the casts that meet at the seams cancelled (L2). Loads of other tensors stay.
    Linear in the body."""
    builder = LoopBuilder(share=True)
    new: Dict[int, Expr] = {}

    def pull(expr: Expr) -> Tuple[Expr, ...]:
        inside = inner.get(expr.tensor) if isinstance(expr, Load) else None
        return (inside,) if inside is not None else expr.args

    found: Dict[int, Expr] = {}
    stack = [s.expr for s in stores]
    while stack:
        expr = stack.pop()
        if expr.index not in found:
            found[expr.index] = expr
            stack.extend(pull(expr))
    for index in sorted(found):
        expr = found[index]
        args = tuple(new[a.index] for a in pull(expr))
        if isinstance(expr, Load):
            new[index] = (
                builder.view(args[0], expr.dims, expr.origin)
                if args
                else builder.load(expr.tensor, expr.dtype, expr.dims, expr.origin)
            )
        elif isinstance(expr, Constant):
            new[index] = builder.constant(expr.value, expr.dtype, expr.origin)
        elif isinstance(expr, Call):
            new[index] = builder.call(expr.type, args, expr.dtype, expr.dims, expr.attrs, expr.origin)
        elif isinstance(expr, Cast):
            new[index] = builder.cast(args[0], expr.dtype, expr.role, expr.origin)
        elif isinstance(expr, View):
            new[index] = builder.view(args[0], expr.dims, expr.origin)
        elif isinstance(expr, Broadcast):
            new[index] = builder.broadcast(args[0], expr.dims, expr.origin)
        else:
            new[index] = builder.same(args[0], expr.dims, expr.origin)
    return [Store(s.tensor, new[s.expr.index]) for s in stores]


def to_text(root: Expr) -> str:
    """One line per expression, for people and for tests."""
    exprs = reachable([root])
    names = {e.index: "%%%d" % i for i, e in enumerate(exprs)}
    lines = []
    for e in exprs:
        what = type(e).__name__
        if isinstance(e, Load):
            what = "Load t%d:%d" % e.tensor
        elif isinstance(e, Constant):
            what = "Constant %r" % (e.value,)
        elif isinstance(e, Call):
            what = e.type + "".join(" %s=%r" % pair for pair in e.attrs)
        elif isinstance(e, Cast):
            what = "Cast(%s)" % e.role
        args = " ".join(names[a.index] for a in e.args)
        lines.append(
            "%s: %s[%s] = %s%s"
            % (names[e.index], e.dtype.name, ", ".join(map(str, e.dims)), what, " " + args if args else "")
        )
    return "\n".join(lines)
