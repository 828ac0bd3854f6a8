"""Stores cut into parts that hold no Concat: how a concat becomes stores into parts of one tensor.

Why: a loop nest computes one expression for all of its elements, a concat is another expression in each of
its parts. So what is computed with a concat is computed part by part, each operand sliced to the part, and
each part is stored at its place.

On entry: stores over loop expressions. On exit: parts in the order of the stores, which cover each stored
tensor once. A concat whose boundaries cannot be followed to the stored tensor (one inside of a reduction over
its axis, one under a view that merges across its parts) stays; NoCommonAxes then comes from the layout.
"""

from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from tf_autofuse.ir.loop_ir import (
    Broadcast,
    Call,
    Cast,
    Concat,
    Dims,
    Expr,
    Gather,
    LoopBuilder,
    Permute,
    Reduce,
    Same,
    Slice,
    Store,
    Tensor,
    View,
    constant_of,
    has_reduce,
    reachable,
    rebuild,
    remade,
)
from tf_autofuse.ir.loop_layout import Layout, NoCommonAxes, element_count, extents, is_unit, layout, regroups
from tf_autofuse.symbolic.size import Size, exact_quotient, is_static, known_equal, known_nonnegative

#: Most parts that the stores of one loop nest are cut into.
MAX_PARTS = 256
#: Most loop nests that these parts need.
MAX_NESTS = 64


class Part(NamedTuple):
    """tensor: what is stored into, of dims `whole`; expr: the elements from `begin` on."""

    tensor: Tensor
    expr: Expr
    begin: Dims
    whole: Dims


class Cut(NamedTuple):
    """Boundaries along dim `axis`: starts[i] is where part i begins; the first is 0."""

    axis: int
    starts: Tuple[Size, ...]


class Window(NamedTuple):
    """`size` elements along dim `axis`, from `begin` on."""

    axis: int
    begin: Size
    size: Size


def has_concat(stores: Sequence[Store]) -> bool:
    return any(isinstance(e, Concat) for e in reachable([s.expr for s in stores]))


def parts_of(stores: Sequence[Store]) -> List[Part]:
    """The stores cut along the boundaries of all Concats that can be followed. Raises NoCommonAxes."""
    if not has_concat(stores):
        return [Part(s.tensor, s.expr, (0,) * len(s.expr.dims), s.expr.dims) for s in stores]
    builder = LoopBuilder(share=True)
    cutter = _Cutter(builder)
    done: List[Part] = []
    for store in rebuild(stores, {}, builder):
        whole = store.expr.dims
        pending = [Part(store.tensor, store.expr, (0,) * len(whole), whole)]
        empty: List[Part] = []
        before = len(done)
        while pending:
            part = pending.pop()
            cut = cutter.cut_of(part.expr)
            if cut is None:
                (empty if _empty(part.expr.dims) else done).append(part)
                continue
            pending.extend(reversed(cutter.apply(part, cut)))
            if len(done) + len(empty) + len(pending) > MAX_PARTS:
                raise NoCommonAxes("more than %d parts to store" % MAX_PARTS)
        if len(done) == before:
            done.append(empty[0])
    return done


def clusters_of(parts: Sequence[Part]) -> List[List[Part]]:
    """The parts grouped by equal extents, in order of their first ones: each group has common loop axes, but
    for what views inside need."""
    clusters: List[List[Part]] = []
    known: Dict[Dims, List[Part]] = {}
    for part in parts:
        key = extents(part.expr.dims)
        home = known.get(key)
        if home is None:
            home = next((c for c in clusters if _same(extents(c[0].expr.dims), key)), None)
            if home is None:
                home = []
                clusters.append(home)
            known[key] = home
        home.append(part)
    return clusters


class Placement(NamedTuple):
    """One loop nest: parts[i] is what layout.stores[i] stands for."""

    parts: Tuple[Part, ...]
    layout: Layout


def placements(stores: Sequence[Store]) -> List[Placement]:
    """The loop nests that the stores need: one where no Concat is inside, else one for each kind of part; and
    one of their own for constants of one element beside reductions. Raises NoCommonAxes."""
    alone = [s for s in stores if constant_of(s.expr) is not None and all(map(is_unit, s.expr.dims))]
    rest = [s for s in stores if s not in alone]
    if alone and has_reduce([s.expr for s in rest]):
        return placements(rest) + [_place([part]) for part in parts_of(alone)]
    parts = parts_of(stores)
    clusters = [parts] if len(parts) == len(stores) else clusters_of(parts)
    found: List[Placement] = []
    for cluster in clusters:
        try:
            found.append(_place(cluster))
        except NoCommonAxes:
            if len(clusters) == 1 and len(parts) == len(stores):
                raise
            found.extend(_place([part]) for part in cluster)
    if len(found) > MAX_NESTS:
        raise NoCommonAxes("%d loop nests, at most %d" % (len(found), MAX_NESTS))
    return found


def _place(parts: Sequence[Part]) -> Placement:
    return Placement(tuple(parts), layout([Store(p.tensor, p.expr) for p in parts]))


def _same(a: Dims, b: Dims) -> bool:
    return len(a) == len(b) and all(map(known_equal, a, b))


def _empty(dims: Dims) -> bool:
    return any(is_static(d) and d == 0 for d in dims)


class _Cutter:
    def __init__(self, builder: LoopBuilder):
        self.builder = builder
        self.cuts: Dict[int, Optional[Cut]] = {}
        self.seen: Dict[Tuple[int, Window], Expr] = {}
        self.starts: Dict[int, Tuple[Size, ...]] = {}
        self.borders: Dict[int, Tuple[Dict[Size, int], Dict[Size, int]]] = {}

    # Where the boundaries are.

    def cut_of(self, root: Expr) -> Optional[Cut]:
        """The boundaries of one Concat under root, in root's dims; None where there is none to follow."""
        for expr in reachable([root]):
            if expr.index not in self.cuts:
                self.cuts[expr.index] = self.own_cut(expr)
        return self.cuts[root.index]

    def own_cut(self, expr: Expr) -> Optional[Cut]:
        if isinstance(expr, Concat):
            return Cut(expr.axis, self.starts_of(expr))
        for arg in expr.args:
            cut = self.cuts[arg.index]
            moved = None if cut is None else self.moved(expr, arg, cut)
            if moved is not None and len(moved.starts) > 1:
                return moved
        return None

    def moved(self, expr: Expr, arg: Expr, cut: Cut) -> Optional[Cut]:
        """The cut of arg in the dims of expr."""
        if isinstance(expr, (Cast, Same)):
            return cut
        if isinstance(expr, Reduce):
            return None if cut.axis in expr.axes else cut
        if isinstance(expr, (Call, Broadcast)):
            axis = cut.axis + len(expr.dims) - len(arg.dims)
            return Cut(axis, cut.starts) if known_equal(arg.dims[cut.axis], expr.dims[axis]) else None
        if isinstance(expr, Permute):
            return Cut(expr.perm.index(cut.axis), cut.starts)
        if isinstance(expr, Gather):
            return Cut(cut.axis + expr.axis, cut.starts)
        if isinstance(expr, View):
            return _through_view(arg.dims, expr.dims, cut)
        if isinstance(expr, Slice):
            return _through_slice(expr, cut)
        return None

    def starts_of(self, expr: Concat) -> Tuple[Size, ...]:
        found = self.starts.get(expr.index)
        if found is None:
            starts: List[Size] = [0]
            for arg in expr.args[:-1]:
                starts.append(starts[-1] + arg.dims[expr.axis])
            found = self.starts[expr.index] = tuple(starts)
        return found

    def borders_of(self, expr: Concat) -> Tuple[Dict[Size, int], Dict[Size, int]]:
        """(where a part begins -> its number, where one ends -> its number). By hash: each border is a sum
        over the parts before it, dear to compare."""
        found = self.borders.get(expr.index)
        if found is None:
            begins: Dict[Size, int] = {}
            ends: Dict[Size, int] = {}
            starts = self.starts_of(expr)
            for i, (begin, end) in enumerate(zip(starts, starts[1:] + (expr.dims[expr.axis],))):
                begins.setdefault(begin, i)
                ends.setdefault(end, i)
            found = self.borders[expr.index] = (begins, ends)
        return found

    # One part of an expression.

    def apply(self, part: Part, cut: Cut) -> List[Part]:
        ends = cut.starts[1:] + (part.expr.dims[cut.axis],)
        found = []
        for start, end in zip(cut.starts, ends):
            begin = list(part.begin)
            begin[cut.axis] = begin[cut.axis] + start
            expr = self.window(part.expr, Window(cut.axis, start, end - start))
            found.append(part._replace(expr=expr, begin=tuple(begin)))
        return found

    def window(self, root: Expr, window: Window) -> Expr:
        """The elements of root inside of the window, as an expression in which the slice stands as deep as it
        gets."""
        stack = [(root, window)]
        while stack:
            expr, own = stack[-1]
            key = (expr.index, own)
            if key in self.seen:
                stack.pop()
                continue
            if is_static(own.begin) and own.begin == 0 and known_equal(own.size, expr.dims[own.axis]):
                self.seen[key] = expr
                continue
            if isinstance(expr, Concat) and expr.axis == own.axis:
                needed = self.inside(expr, own)
            else:
                needed = [(arg, self.narrowed(expr, arg, own)) for arg in expr.args]
            if any(w is _NO_WAY for _, w in needed):
                self.seen[key] = self.sliced(expr, own)
                continue
            missing = [(a, w) for a, w in needed if w is not None and (a.index, w) not in self.seen]
            if missing:
                stack.extend(missing)
                continue
            args = [a if w is None else self.seen[a.index, w] for a, w in needed]
            self.seen[key] = self.made(expr, own, args)
        return self.seen[root.index, window]

    def sliced(self, expr: Expr, window: Window) -> Expr:
        begin: List[Size] = [0] * len(expr.dims)
        dims = list(expr.dims)
        begin[window.axis], dims[window.axis] = window.begin, window.size
        return self.builder.slice(expr, begin, dims, (), expr.origin)

    def narrowed(self, expr: Expr, arg: Expr, window: Window):
        """The window of arg that gives the window of expr; None: all of arg; _NO_WAY: a slice on top of expr
        is the way."""
        axis = window.axis
        if isinstance(expr, (Cast, Same)):
            return window
        if isinstance(expr, Reduce):
            return _NO_WAY if axis in expr.axes else window
        if isinstance(expr, (Call, Broadcast)):
            own = axis - (len(expr.dims) - len(arg.dims))
            if own < 0 or is_unit(arg.dims[own]):
                return None
            return window._replace(axis=own) if known_equal(arg.dims[own], expr.dims[axis]) else _NO_WAY
        if isinstance(expr, Permute):
            return window._replace(axis=expr.perm[axis])
        if isinstance(expr, Concat):
            return window
        if isinstance(expr, View):
            ends = _through_view(expr.dims, arg.dims, Cut(axis, (window.begin, window.begin + window.size)))
            if ends is None:
                return _NO_WAY
            return Window(ends.axis, ends.starts[0], ends.starts[1] - ends.starts[0])
        if isinstance(expr, Slice) and any(isinstance(e, Concat) for e in reachable(expr.args)):
            begin, step = window.begin * expr.step[axis] + expr.begin[axis], expr.step[axis]
            if step == 1 or (is_static(window.size) and window.size > 0):
                return Window(axis, begin, (window.size - 1) * step + 1)
        if isinstance(expr, Gather) and expr.axis <= axis < expr.axis + len(arg.dims):
            return window._replace(axis=axis - expr.axis)
        return _NO_WAY

    def inside(self, expr: Concat, window: Window):
        """The parts of a Concat that the window along its axis lies in, each with its own window."""
        starts, (begins_at, ends_at) = self.starts_of(expr), self.borders_of(expr)
        ends = starts[1:] + (expr.dims[expr.axis],)
        end = window.begin + window.size
        if window.begin in begins_at and end in ends_at:
            inside = expr.args[begins_at[window.begin] : ends_at[end] + 1]
            return [(arg, Window(expr.axis, 0, arg.dims[expr.axis])) for arg in inside]
        found = []
        for arg, start, stop in zip(expr.args, starts, ends):
            before, after = _known_order(stop, window.begin), _known_order(end, start)
            if before is None or after is None:
                return [(expr, _NO_WAY)]
            if before <= 0 or after <= 0:
                continue
            low, high = _known_order(window.begin, start), _known_order(stop, end)
            if low is None or high is None:
                return [(expr, _NO_WAY)]
            begin: Size = 0 if low <= 0 else window.begin - start
            limit = stop - start if high <= 0 else end - start
            found.append((arg, Window(expr.axis, begin, limit - begin)))
        return found or [(expr, _NO_WAY)]

    def made(self, expr: Expr, window: Window, args: Sequence[Expr]) -> Expr:
        """expr over args that were cut down to the window."""
        builder, origin = self.builder, expr.origin
        dims = tuple(window.size if i == window.axis else d for i, d in enumerate(expr.dims))
        if not expr.args:
            return self.sliced(expr, window)
        if isinstance(expr, Call):
            return builder.call(expr.type, args, expr.dtype, dims, expr.attrs, origin)
        if isinstance(expr, View):
            return builder.view(args[0], dims, origin)
        if isinstance(expr, Broadcast):
            return builder.broadcast(args[0], dims, origin)
        if isinstance(expr, Same):
            return builder.same(args[0], dims, origin)
        if isinstance(expr, Slice):
            begin = tuple(0 if i == window.axis else b for i, b in enumerate(expr.begin))
            return builder.slice(args[0], begin, dims, expr.step, origin)
        return remade(builder, expr, args)


#: The window cannot be followed into an argument.
_NO_WAY = Window(-1, 0, 0)


def _known_order(a: Size, b: Size) -> Optional[int]:
    """1 or -1 where a >= b or a <= b for every value of the symbols, 0 where they are equal, None where none
    of it is known."""
    if is_static(a - b):
        return (a - b > 0) - (a - b < 0)
    if known_nonnegative(a - b):
        return 1
    return -1 if known_nonnegative(b - a) else None


def _through_view(before: Dims, after: Dims, cut: Cut) -> Optional[Cut]:
    """A cut of `before` in the dims that a view makes of it, None where it does not lie along one of them."""
    if not regroups(before, after):
        position = len([d for d in before[: cut.axis] if not is_unit(d)])
        if is_unit(before[cut.axis]):
            return None
        return Cut([i for i, d in enumerate(after) if not is_unit(d)][position], cut.starts)
    outer = element_count(before[: cut.axis])
    inner = element_count(before[cut.axis + 1 :])
    for axis in range(len(after)):
        if is_unit(after[axis]) or not known_equal(element_count(after[:axis]), outer):
            continue
        rest = element_count(after[axis + 1 :])
        starts = [exact_quotient(start * inner, rest) if start != 0 else 0 for start in cut.starts]
        if all(s is not None for s in starts):
            return Cut(axis, tuple(starts))
    return None


def _through_slice(expr: Slice, cut: Cut) -> Optional[Cut]:
    """A cut of a Slice's argument in the Slice's dims: the boundaries that fall inside."""
    axis = cut.axis
    begin, step, size = expr.begin[axis], expr.step[axis], expr.dims[axis]
    starts: List[Size] = [0]
    if step != 1:
        if not all(is_static(v) for v in (begin, size) + cut.starts):
            return None
        for start in cut.starts:
            at = -(-(start - begin) // step)
            if 0 < at < size and at != starts[-1]:
                starts.append(at)
        return Cut(axis, tuple(starts))
    for start in cut.starts:
        low = _known_order(start, begin)
        high = _known_order(begin + size, start)
        if low is None or high is None:
            return None
        if low > 0 and high > 0:
            starts.append(start - begin)
    return Cut(axis, tuple(starts))
