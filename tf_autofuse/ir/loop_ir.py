"""Loop IR: what one element of a tensor is, as an expression over elements of other tensors.

Why: lowering writes each TF op once as an expression; consumers inline it; fusion counts and compares it;
emission places it on loop axes. No loops appear here: an expression has dims (a dense row-major shape), and
every node says how its dims relate to those of its arguments.

Grammar
    KernelBox ::= node Expr inlined...           the expression of one TF op's output
    Expr      ::= Load tensor                    an element of a tensor in GM; dims: any dense view of it
                | Constant value                 dims ()
                | SizeValue size                 dims (): a number that is known at run time only
                | Call type Expr+ attrs          one AscIR op; the arguments broadcast, right-aligned, to dims
                | Reduce type Expr axes          many elements to one; the argument's dims with 1 at the axes
                | Cast role Expr                 dims as the argument
                | View Expr                      other dims, the same elements in the same row-major order
                | Broadcast Expr                 the argument broadcasts, right-aligned, to dims
                | Same Expr                      other dims that a guard holds equal to the argument's
                | Permute Expr perm              dims[i] = argument's dims[perm[i]]
                | Slice Expr begin step          element i along a dim is the argument's begin + i * step
                | Concat Expr+ axis              the arguments one after the other along one dim
                | Gather tensor Expr axis        elements of a tensor in GM at indices that the argument gives
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
    L3 views, broadcasts, permutations and slices stand under promote, demote, narrow and widen, and a view of
       a Load is a Load.
    L4 Permute and Slice are index maps: ir/loop_layout.py carries them down to the loads, where they end as
       strides and offsets. Concat has no place in a loop nest: ir/loop_parts.py cuts what is stored into
       parts without it.
    L5 a Reduce stands over dims that are not known to be 1 or 0; without keep_dims a View drops its unit
       dims. It makes loop axes that its argument extends along and its readers do not.
    L6 a Gather reads its tensor where that lies in GM, never an expression.
"""

import itertools
import struct
from typing import Any, Dict, FrozenSet, Iterable, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from tf_autofuse.ir.dtypes import BFLOAT16, DType, FLOAT16, FLOAT32
from tf_autofuse.symbolic.size import Size, known_equal

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


class SizeValue(Expr):
    __slots__ = ("size",)


class Reduce(Expr):
    """type: a reduction of the op table; axes: positions of the argument's dims, ascending."""

    __slots__ = ("type", "axes", "args")


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


class Permute(Expr):
    __slots__ = ("perm", "args")


class Slice(Expr):
    """begin: a Size per dim; step: an int > 0 per dim."""

    __slots__ = ("begin", "step", "args")


class Concat(Expr):
    """The arguments' dims are the expression's but along axis, where they add up to it."""

    __slots__ = ("axis", "args")


class Gather(Expr):
    """params: dims under which the tensor is indexed along `axis`; args: the index. dims: params, with the
    index's dims in the place of dim `axis`."""

    __slots__ = ("tensor", "params", "axis", "args")


class Store(NamedTuple):
    """tensor: the TF tensor that the values are."""

    tensor: Tensor
    expr: Expr


class KernelBox(NamedTuple):
    """One TF op's output as a loop expression.

    node: the TF node; expr: dtype and dims as in TF; inlined: the boxes whose expressions stand inside of
    this one; computes: whether the op itself computes something (views and constants do not); size: loop
    nodes (Call and Cast) of this and all inlined boxes; loads: the tensors read; hard: whether a view inside
    regroups dims; parts: how many loop bodies the concats inside make of it; copies: whether all that the op
    itself does is to take a part of its input, which TF may do without copying; gathered: the tensors read at
    computed places; space: the dims that its loops run over, those of the largest Reduce's argument where it
    reduces, else its own; reduces: whether there is a Reduce in the box's own expression; outputs: the
    expressions of all outputs where the op has several; ports: the outputs that are stored where the box is
    realized (none: it never is, for it has no tensor of its own).
    """

    node: int
    expr: Expr
    inlined: Tuple["KernelBox", ...]
    computes: bool
    size: int
    loads: FrozenSet[Tensor]
    hard: bool
    parts: int = 1
    copies: bool = False
    gathered: FrozenSet[Tensor] = frozenset()
    outputs: Tuple[Expr, ...] = ()
    reduces: bool = False
    space: Optional[Dims] = None
    ports: Tuple[int, ...] = (0,)

    def output(self, port: int) -> Expr:
        return self.outputs[port] if self.outputs else self.expr

    @property
    def tensors(self) -> List[Tensor]:
        """The tensors that it makes where it is realized."""
        return [(self.node, port) for port in self.ports]

    @property
    def stores(self) -> List[Store]:
        """What is stored where it is realized."""
        return [Store((self.node, port), self.output(port)) for port in self.ports]

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

    def size_value(self, size: Size, dtype: DType, origin: int = -1) -> Expr:
        """The number `size`, which has symbols, rounded to dtype at run time."""
        return self._new(SizeValue, size, dtype, (), origin, size=size)

    def reduce(self, type_: str, arg: Expr, axes: Sequence[int], dtype: DType, origin: int = -1) -> Expr:
        """The reduction `type_` of arg along the dims `axes`, which stay with size 1."""
        axes = tuple(sorted(axes))
        dims = tuple(1 if i in axes else d for i, d in enumerate(arg.dims))
        key = (type_, arg.index, axes)
        return self._new(Reduce, key, dtype, dims, origin, type=type_, axes=axes, args=(arg,))

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

    def permute(self, arg: Expr, perm: Sequence[int], origin: int = -1) -> Expr:
        """arg with its dims in another order: dims[i] = arg.dims[perm[i]]."""
        perm = tuple(perm)
        dims = tuple(arg.dims[p] for p in perm)
        shown = [p for p, d in zip(perm, dims) if not _is(d, 1)]
        if shown == sorted(shown):
            return self.view(arg, dims, origin)
        if isinstance(arg, Permute):
            return self.permute(arg.args[0], [arg.perm[p] for p in perm], origin)
        if isinstance(arg, Broadcast) and isinstance(arg.args[0], Constant):
            return self.broadcast(arg.args[0], dims, origin)
        if isinstance(arg, Cast) and arg.virtual:
            return self.cast(self.permute(arg.args[0], perm, origin), arg.dtype, arg.role, arg.origin)
        return self._new(
            Permute, (arg.index, perm), arg.dtype, dims, origin, perm=perm, args=(arg,)
        )

    def slice(self, arg: Expr, begin: Dims, dims: Dims, step: Sequence[int] = (), origin: int = -1) -> Expr:
        """The elements begin + i * step of arg; all sequences have one entry a dim. step: default 1 each. The
        caller knows that they are inside of arg."""
        begin, dims, step = tuple(begin), tuple(dims), tuple(step) or (1,) * len(dims)
        if all(_is(b, 0) and s == 1 and known_equal(d, a) for b, s, d, a in zip(begin, step, dims, arg.dims)):
            return self.same(arg, dims, origin)
        if isinstance(arg, Slice):
            begin = tuple(b + s * i for b, s, i in zip(arg.begin, arg.step, begin))
            step = tuple(a * b for a, b in zip(arg.step, step))
            return self.slice(arg.args[0], begin, dims, step, origin)
        if isinstance(arg, Broadcast) and isinstance(arg.args[0], Constant):
            return self.broadcast(arg.args[0], dims, origin)
        if isinstance(arg, Cast) and arg.virtual:
            inner = self.slice(arg.args[0], begin, dims, step, origin)
            return self.cast(inner, arg.dtype, arg.role, arg.origin)
        return self._new(
            Slice, (arg.index, begin, step), arg.dtype, dims, origin, begin=begin, step=step, args=(arg,)
        )

    def concat(self, args: Sequence[Expr], axis: int, origin: int = -1) -> Expr:
        """args one after the other along `axis`; their other dims are equal. Empty ones are left out, nested
        ones flattened, and repeated ones of one element along `axis` (how Keras repeats) are a Broadcast."""
        flat: List[Expr] = []
        for arg in args:
            flat.extend(arg.args if isinstance(arg, Concat) and arg.axis == axis else (arg,))
        flat = [a for a in flat if not _is(a.dims[axis], 0)] or flat[:1]
        flat = [a for _, run in itertools.groupby(flat, id) for a in self._repeated(list(run), axis, origin)]
        if len(flat) == 1:
            return flat[0]
        dims = list(flat[0].dims)
        for arg in flat[1:]:
            dims[axis] = dims[axis] + arg.dims[axis]
        key = (tuple(a.index for a in flat), axis)
        return self._new(Concat, key, flat[0].dtype, tuple(dims), origin, axis=axis, args=tuple(flat))

    def _repeated(self, run: List[Expr], axis: int, origin: int) -> List[Expr]:
        arg = run[0]
        if len(run) == 1 or not _is(arg.dims[axis], 1):
            return run
        return [self.broadcast(arg, arg.dims[:axis] + (len(run),) + arg.dims[axis + 1 :], origin)]

    def gather(
        self, tensor: Tensor, dtype: DType, params: Dims, index: Expr, axis: int, origin: int = -1
    ) -> Expr:
        """Elements of `tensor`, seen as of dims `params`, at `index` along dim `axis`."""
        dims = params[:axis] + index.dims + params[axis + 1 :]
        key = (tensor, params, index.index, axis)
        return self._new(
            Gather, key, dtype, dims, origin, tensor=tensor, params=params, axis=axis, args=(index,)
        )

    def same(self, arg: Expr, dims: Dims, origin: int = -1) -> Expr:
        """arg under dims that a guard holds equal to its own."""
        if arg.dims == dims:
            return arg
        if isinstance(arg, Cast) and arg.virtual:
            return self.cast(self.same(arg.args[0], dims, origin), arg.dtype, arg.role, arg.origin)
        return self._new(Same, arg.index, arg.dtype, dims, origin, args=(arg,))


def _is(size: Size, value: int) -> bool:
    return isinstance(size, int) and size == value


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


#: What gives the same value everywhere where its argument does.
_MAPS = (Broadcast, View, Same, Permute, Slice)


def constant_of(expr: Expr) -> Optional[Constant]:
    """The Constant that every element of expr is, as far as its form shows it."""
    expr = _spread(expr)
    return expr if isinstance(expr, Constant) else None


def views_only(expr: Expr, arg: Expr) -> bool:
    """Whether the form of expr shows that it is all elements of arg, and no others, in the same order."""
    ends = []
    for end in (expr, arg):
        while isinstance(end, (View, Same)) or (isinstance(end, Cast) and end.virtual):
            end = end.args[0]
        ends.append(end)
    a, b = ends
    return a is b or (isinstance(a, Load) and isinstance(b, Load) and a.tensor == b.tensor)


def is_one_number(expr: Expr) -> bool:
    """Whether the form of expr shows that all elements are one number that no load gives."""
    return isinstance(_spread(expr), (Constant, SizeValue))


def _spread(expr: Expr) -> Expr:
    """What stands under the maps and virtual casts of expr."""
    while isinstance(expr, _MAPS) or (isinstance(expr, Cast) and expr.virtual):
        expr = expr.args[0]
    return expr


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
    """Read set of a body: the tensors that its expressions load or gather from."""
    return frozenset(e.tensor for e in reachable(exprs) if isinstance(e, (Load, Gather)))


def has_reduce(exprs: Iterable[Expr]) -> bool:
    return any(isinstance(e, Reduce) for e in reachable(exprs))


def skips_gathered(stores: Sequence[Store]) -> bool:
    """Whether a Slice may leave out elements of a Gather, whose indices would then not all be looked at."""
    exprs = reachable([s.expr for s in stores])
    over: Dict[int, bool] = {}
    for expr in exprs:
        over[expr.index] = isinstance(expr, Gather) or any(over[a.index] for a in expr.args)
    return any(isinstance(e, Slice) and over[e.index] for e in exprs)


def loop_size(exprs: Iterable[Expr]) -> int:
    """Number of loop nodes of a body: Calls, Reduces, and Casts that the TF graph or a lowering has."""
    return sum(
        isinstance(e, (Call, Reduce)) or (isinstance(e, Cast) and not e.virtual) for e in reachable(exprs)
    )


def rebuild(
    stores: Sequence[Store], inner: Dict[Tensor, Expr], builder: Optional[LoopBuilder] = None
) -> List[Store]:
    """The stores with every Load of a tensor in `inner` replaced by that tensor's expression, equal
    expressions made one, and the casts that meet at the seams cancelled (L2). Loads of other tensors stay.
    builder: one that shares, by default a new one. Linear in the body."""
    builder = builder or LoopBuilder(share=True)
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
        if isinstance(expr, Load) and args:
            new[index] = builder.view(args[0], expr.dims, expr.origin)
        else:
            new[index] = remade(builder, expr, args)
    return [Store(s.tensor, new[s.expr.index]) for s in stores]


def remade(builder: LoopBuilder, expr: Expr, args: Sequence[Expr]) -> Expr:
    """expr made by `builder` over other arguments of the same dims."""
    origin = expr.origin
    if isinstance(expr, Load):
        return builder.load(expr.tensor, expr.dtype, expr.dims, origin)
    if isinstance(expr, Constant):
        return builder.constant(expr.value, expr.dtype, origin)
    if isinstance(expr, Call):
        return builder.call(expr.type, args, expr.dtype, expr.dims, expr.attrs, origin)
    if isinstance(expr, SizeValue):
        return builder.size_value(expr.size, expr.dtype, origin)
    if isinstance(expr, Reduce):
        return builder.reduce(expr.type, args[0], expr.axes, expr.dtype, origin)
    if isinstance(expr, Cast):
        return builder.cast(args[0], expr.dtype, expr.role, origin)
    if isinstance(expr, View):
        return builder.view(args[0], expr.dims, origin)
    if isinstance(expr, Broadcast):
        return builder.broadcast(args[0], expr.dims, origin)
    if isinstance(expr, Same):
        return builder.same(args[0], expr.dims, origin)
    if isinstance(expr, Permute):
        return builder.permute(args[0], expr.perm, origin)
    if isinstance(expr, Slice):
        return builder.slice(args[0], expr.begin, expr.dims, expr.step, origin)
    if isinstance(expr, Concat):
        return builder.concat(args, expr.axis, origin)
    return builder.gather(expr.tensor, expr.dtype, expr.params, args[0], expr.axis, origin)


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
        elif isinstance(e, SizeValue):
            what = "SizeValue %s" % e.size
        elif isinstance(e, Reduce):
            what = "%s axes=%s" % (e.type, list(e.axes))
        elif isinstance(e, Cast):
            what = "Cast(%s)" % e.role
        elif isinstance(e, Permute):
            what = "Permute%s" % (list(e.perm),)
        elif isinstance(e, Slice):
            what = "Slice[%s]" % ", ".join("%s:%d" % pair for pair in zip(e.begin, e.step))
        elif isinstance(e, Concat):
            what = "Concat axis=%d" % e.axis
        elif isinstance(e, Gather):
            what = "Gather t%d:%d[%s] axis=%d" % (e.tensor + (", ".join(map(str, e.params)), e.axis))
        args = " ".join(names[a.index] for a in e.args)
        lines.append(
            "%s: %s[%s] = %s%s"
            % (names[e.index], e.dtype.name, ", ".join(map(str, e.dims)), what, " " + args if args else "")
        )
    return "\n".join(lines)
