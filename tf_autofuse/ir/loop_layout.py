"""Loop axes for a set of stores: one list of axes on which every expression's dims can be placed.

Why: a fused region is one loop nest. Views inside regroup dims, so the axes are a common refinement of all
shapes that occur. Example: add(reshape(a[16, 64], [1024]), b[1024]) gets axes (16, 64); b[1024] lies over
both.

The walk goes from the stores down to the loads. It carries for each expression its *groups*: for each dim the
loop axes that the dim lies over, outermost first. A dim of size 1 lies over none. A View regroups: its
groups, as one flat list, are cut again along the argument's dims; where a cut falls inside of an axis, the
axis is split. Where a dim may be broadcast at run time (its size is another symbol than that of the dim it
meets), the group is a conditional span: over all axes of that dim, and repeated when the argument's size
turns out to be 1. Permute reorders groups. Slice puts an offset and a step on a span, whose radix is then the
argument's dim; a View over it may still cut the span where the cut falls between whole pieces.

Reduce adds axes that only its argument extends along: those under which the same data stands elsewhere in the
nest, else what is left of the nest's axes, else new ones, which needs all axes there are under the dims that
stay. The axes that a reduction's value does not extend along, because it or a reduction below took them, must
nest: of two reductions the one's contain the other's. So the loops over what stays are around all others, and
every pass over what is reduced gives values that later passes need: softmax, moments, a sum of row sums. A
stored value extends along all axes but such as some reduction took.

On exit every Load has groups over unsplit axes, from which its strides in GM follow; every store covers all
axes in order. Where no common refinement exists, NoCommonAxes says between which shapes.
"""

from functools import lru_cache
from typing import Dict, FrozenSet, Iterable, List, NamedTuple, Optional, Sequence, Set, Tuple

from tf_autofuse.ir.loop_ir import (
    Broadcast,
    Call,
    Cast,
    Concat,
    Dims,
    Expr,
    Gather,
    Permute,
    Reduce,
    Same,
    Slice,
    Store,
    View,
    has_reduce,
    is_one_number,
)
from tf_autofuse.symbolic.size import Size, exact_quotient, is_static, known_equal, product, stride_or_zero


class NoCommonAxes(Exception):
    """The shapes have no common refinement; `reason` is a sentence."""

    def __init__(self, reason: str):
        super().__init__(reason)
        self.reason = reason


class Span(NamedTuple):
    """One digit of a dim's index: begin + step * (index over the axes), the axes (ids) outermost first.

    size: the dim's own size where it may be broadcast at run time (then 1, or the product of the axes), None
    where it surely extends along the axes. radix: how many values the digit has in the dim; None: `size`, or
    the product of the axes, and then begin is 0 and step 1. Without axes the index is fixed. inner: in the
    place of axes, digits of which the index is made (a slice over several, of which one is sliced itself)."""

    axes: Tuple[int, ...]
    size: Optional[Size] = None
    begin: Size = 0
    step: int = 1
    radix: Optional[Size] = None
    inner: Tuple["Span", ...] = ()

    @property
    def plain(self) -> bool:
        """Whether the digit is the index over its axes."""
        return self.size is None and self.radix is None

    def mapped(self, change) -> "Span":
        """With `change` applied to every size."""
        if self.plain:
            return self
        size, radix = (None if s is None else change(s) for s in (self.size, self.radix))
        inner = tuple(span.mapped(change) for span in self.inner)
        return Span(self.axes, size, change(self.begin), self.step, radix, inner)


Groups = Tuple[Tuple[Span, ...], ...]


class Spot:
    """An expression at one place of the nest. The same expression may stand at several (a[4] read as row and
    as column). args: the spots of its arguments."""

    __slots__ = ("expr", "groups", "args")

    def __init__(self, expr: Expr, groups: Groups):
        self.expr = expr
        self.groups = groups
        self.args: Tuple["Spot", ...] = ()


class Layout(NamedTuple):
    """sizes: of the loop axes, outermost first (never empty); spots: in topological order; stores: the spots
    of the stores' expressions; position: axis id -> positions in `sizes` of what it was split into."""

    sizes: Tuple[Size, ...]
    spots: Tuple[Spot, ...]
    stores: Tuple[Spot, ...]
    position: Dict[int, Tuple[int, ...]]

    def load_strides(self, spot: Spot) -> Tuple[Optional[Size], ...]:
        """For each loop axis the stride in elements with which the Load at `spot` reads its dense tensor,
        None where it does not extend along the axis."""
        return self.place(spot.groups).strides

    def positions(self, group: Iterable[Span]) -> Tuple[int, ...]:
        """The positions in `sizes` that the spans lie over, in their order."""
        return tuple(p for span in group for a in span.axes for p in self.position[a])

    def covered(self, spot: Spot) -> Tuple[int, ...]:
        """Per loop axis 1 where the spot's dims lie over it or it has one element, else 0."""
        over = {p for group in spot.groups for p in self.positions(group)}
        return tuple(int(i in over or is_unit(size)) for i, size in enumerate(self.sizes))

    def place(self, groups: Groups, radixes: Optional[Dims] = None) -> "Place":
        """Where the elements of a dense tensor lie that has one dim for each group. radixes: its dims, by
        default what the groups extend over. Sizes in groups and radixes must be of the same names as
        `sizes`."""
        strides: List[Optional[Size]] = [None] * len(self.sizes)
        steps: List[Size] = []
        step: Size = 1
        offset: Size = 0
        for number in reversed(range(len(groups))):
            steps.append(step)
            moved, above = self._digits(groups[number], step, strides)
            offset = offset + moved
            step = above if radixes is None else step * radixes[number]
        return Place(tuple(strides), offset, tuple(reversed(steps)))

    def _digits(self, group: Sequence[Span], below: Size, strides: List[Optional[Size]]) -> Tuple[Size, Size]:
        """Sets the strides of the group's axes, `below` being that of its innermost digit; gives the offset
        and the stride of what comes above."""
        offset: Size = 0
        for span in reversed(group):
            inner: Size = 1
            for at in reversed([p for a in span.axes for p in self.position[a]]):
                stride = below * span.step * inner
                strides[at] = stride if span.size is None else stride_or_zero(span.size, stride)
                inner = inner * self.sizes[at]
            if span.inner:
                offset = offset + self._digits(span.inner, below * span.step, strides)[0]
            offset = offset + below * span.begin
            if span.radix is not None:
                below = below * span.radix
            else:
                below = below * (inner if span.size is None else span.size)
        return offset, below


class Place(NamedTuple):
    """strides: per loop axis, in elements, None where the tensor does not extend along it; offset: of the
    first element; dim_strides: per dim of the tensor."""

    strides: Tuple[Optional[Size], ...]
    offset: Size
    dim_strides: Tuple[Size, ...]


def is_unit(size: Size) -> bool:
    return isinstance(size, int) and size == 1


def regroups(before: Dims, after: Dims) -> bool:
    """Whether a view between the shapes does more than add and drop dims of size 1."""
    a, b = [d for d in before if not is_unit(d)], [d for d in after if not is_unit(d)]
    return len(a) != len(b) or not all(known_equal(x, y) for x, y in zip(a, b))


def extents(dims: Dims) -> Dims:
    """The dims that are not known to be 1: equal extents mean equal loop axes where no view regroups."""
    return tuple(d for d in dims if not is_unit(d))


@lru_cache(maxsize=1 << 12)
def element_count(dims: Dims) -> Size:
    """Number of elements of a shape."""
    return product(dims)


def layout(stores: Sequence[Store]) -> Layout:
    """Places the stores on common axes. Raises NoCommonAxes. Linear in the body, but for splits."""
    return _Placer().run([s.expr for s in stores])


class _Placer:
    def __init__(self):
        self.sizes: List[Size] = []
        self.split: Dict[int, Tuple[int, int]] = {}
        self.order: List[int] = []
        self.spots: Dict[Tuple[int, Groups], Spot] = {}
        self.places: Dict[int, List[Groups]] = {}  # expression -> where it stands
        self.taken: List[FrozenSet[int]] = []  # the axes of each reduction

    def run(self, roots: List[Expr]) -> Layout:
        reducing = [has_reduce([root]) for root in roots]
        # The largest that reduces comes first: its axes are there when others look for theirs.
        order = list(range(len(roots)))
        if any(reducing):
            order.sort(key=lambda i: (not reducing[i], -len(extents(roots[i].dims))))
        stores: Dict[int, Spot] = {}
        stack: List[Spot] = []
        for i in order:
            groups = self.root_groups(roots[i], roots[order[0]], not stores)
            stores[i] = self.spot(roots[i], groups, stack)
            while stack and (any(reducing) or len(stores) == len(roots)):
                spot = stack.pop()
                spot.args = tuple(self.spot(arg, self.groups_of(spot, arg), stack) for arg in spot.expr.args)
        if not self.order:
            self.axis(1)
        leaves = [a for top in self.order for a in self.resolve((top,))]
        at = {a: i for i, a in enumerate(leaves)}
        position = {a: tuple(at[leaf] for leaf in self.resolve((a,))) for a in range(len(self.sizes))}
        spots = sorted(self.spots.values(), key=lambda s: s.expr.index)
        placed = Layout(
            tuple(self.sizes[a] for a in leaves),
            tuple(spots),
            tuple(stores[i] for i in range(len(roots))),
            position,
        )
        if any(reducing):
            _check_nesting(placed)
        return placed

    def root_groups(self, root: Expr, first: Expr, is_first: bool) -> Groups:
        if is_first:
            return tuple(() if is_unit(dim) else (Span((self.axis(dim),)),) for dim in root.dims)
        whole = self.all_axes()
        if self.taken:
            if all(map(is_unit, root.dims)):
                return ((),) * len(root.dims)
            groups = self.anchored(root, set())
            if groups is not None:
                return groups
            whole = next(
                (axes for axes in self.remainders(whole) if self.has_extent(axes, root.dims)), whole
            )
        return self.regroup([Span((a,)) for a in whole], root.dims, first.dims)

    def anchored(self, expr: Expr, seen: Set[int]) -> Optional[Groups]:
        """Where expr stands if what it is computed from stays where it stands already; None where that does
        not tell. seen: expressions of which that is known."""
        if expr.index in seen:
            return None
        seen.add(expr.index)
        for groups in self.places.get(expr.index, ()):
            if all(span.plain for group in groups for span in group):
                return groups
        for arg in expr.args:
            if isinstance(expr, Reduce) or (
                isinstance(expr, (Call, Cast, Same)) and _same_dims(arg.dims, expr.dims)
            ):
                groups = self.anchored(arg, seen)
                if groups is not None and isinstance(expr, Reduce):
                    groups = tuple(() if i in expr.axes else group for i, group in enumerate(groups))
            elif isinstance(expr, View) and not regroups(arg.dims, expr.dims):
                groups = self.anchored(arg, seen)
                if groups is not None:
                    shown = iter([g for g, dim in zip(groups, arg.dims) if not is_unit(dim)])
                    groups = tuple(() if is_unit(dim) else next(shown) for dim in expr.dims)
            else:
                groups = None
            if groups is not None:
                return groups
        return None

    def all_axes(self) -> List[int]:
        """The axes that are not split, outermost first, without those of size 1."""
        return [a for a in self.resolve(tuple(self.order)) if not is_unit(self.sizes[a])]

    def remainders(self, axes: List[int]) -> List[List[int]]:
        """axes, and axes without those that one reduction took."""
        taken = [frozenset(self.resolve(tuple(t))) for t in self.taken]
        return [axes] + [[a for a in axes if a not in t] for t in taken]

    def has_extent(self, axes: Iterable[int], dims: Dims) -> bool:
        return known_equal(product(self.sizes[a] for a in axes), element_count(dims))

    def reduced_groups(self, spot: Spot, arg: Expr) -> Groups:
        """The groups of a Reduce's argument."""
        reduce: Reduce = spot.expr
        if len(reduce.axes) == 0:
            return spot.groups
        groups = self.known_place(spot, arg)
        if groups is None:
            kept = self.resolve(tuple(a for group in spot.groups for span in group for a in span.axes))
            rest = [a for a in self.all_axes() if a not in kept]
            dims = tuple(arg.dims[i] for i in reduce.axes)
            if rest:
                rest = next((axes for axes in self.remainders(rest) if self.has_extent(axes, dims)), rest)
                own = list(self.regroup([Span((a,)) for a in rest], dims, arg.dims))
            else:
                own = self.new_axes(spot, arg)
            taken = dict(zip(reduce.axes, own))
            groups = tuple(taken.get(i, group) for i, group in enumerate(spot.groups))
        self.taken.append(frozenset(a for i in reduce.axes for span in groups[i] for a in span.axes))
        return groups

    def known_place(self, spot: Spot, arg: Expr) -> Optional[Groups]:
        """Where the argument, or what it is computed from element by element, stands already so that the dims
        that stay lie over the same axes. Raises NoCommonAxes where it stands in another way: then another
        reduction goes along other dims."""
        reduce: Reduce = spot.expr
        seen: Set[int] = set()
        stack, elsewhere = [arg], False
        while stack:
            expr = stack.pop()
            if expr.index in seen:
                continue
            seen.add(expr.index)
            for groups in self.places.get(expr.index, ()):
                if not all(span.plain for i in reduce.axes for span in groups[i]):
                    continue
                if all(groups[i] == own for i, own in enumerate(spot.groups) if i not in reduce.axes):
                    return groups
                elsewhere = True
            if isinstance(expr, (Call, Cast, Same)):
                stack.extend(a for a in expr.args if _same_dims(a.dims, arg.dims))
        if elsewhere:
            raise NoCommonAxes("one tensor is reduced along different dims")
        return None

    def new_axes(self, spot: Spot, arg: Expr) -> List[Tuple[Span, ...]]:
        """New axes for the dims that are reduced, each before those of the next dim that stays."""
        self.order = list(self.resolve(tuple(self.order)))
        found = []
        for i in spot.expr.axes:
            later = [a for group in spot.groups[i + 1 :] for span in group for a in self.resolve(span.axes)]
            self.sizes.append(arg.dims[i])
            at = self.order.index(later[0]) if later and later[0] in self.order else len(self.order)
            self.order.insert(at, len(self.sizes) - 1)
            found.append((Span((len(self.sizes) - 1,)),))
        return found

    def axis(self, size: Size) -> int:
        self.sizes.append(size)
        self.order.append(len(self.sizes) - 1)
        return len(self.sizes) - 1

    def spot(self, expr: Expr, groups: Groups, stack: List[Spot]) -> Spot:
        found = self.spots.get((expr.index, groups))
        if found is None:
            found = self.spots[(expr.index, groups)] = Spot(expr, groups)
            self.places.setdefault(expr.index, []).append(groups)
            stack.append(found)
        return found

    def resolve(self, axes: Tuple[int, ...]) -> Tuple[int, ...]:
        """The unsplit axes that `axes` consist of now."""
        if not self.split:
            return axes
        found: List[int] = []
        stack = list(reversed(axes))
        while stack:
            axis = stack.pop()
            if axis in self.split:
                stack.extend(reversed(self.split[axis]))
            else:
                found.append(axis)
        return tuple(found)

    def groups_of(self, spot: Spot, arg: Expr) -> Groups:
        expr, groups = spot.expr, spot.groups
        if isinstance(expr, View) and not regroups(arg.dims, expr.dims):
            kept = iter([g for g, dim in zip(groups, expr.dims) if not is_unit(dim)])
            return tuple(() if is_unit(dim) else next(kept) for dim in arg.dims)
        if isinstance(expr, View):
            return self.regroup([s for g in groups for s in g], arg.dims, expr.dims)
        if isinstance(expr, (Call, Broadcast)) and arg.dims is not expr.dims:
            skipped = len(groups) - len(arg.dims)
            return tuple(
                self.broadcast(arg.dims[i], expr.dims[skipped + i], groups[skipped + i])
                for i in range(len(arg.dims))
            )
        if isinstance(expr, Reduce):
            return self.reduced_groups(spot, arg)
        if isinstance(expr, Permute):
            moved = dict(zip(expr.perm, groups))
            return tuple(moved[i] for i in range(len(groups)))
        if isinstance(expr, Slice):
            return tuple(map(self.sliced, arg.dims, expr.dims, groups, expr.begin, expr.step))
        if isinstance(expr, Gather):
            return groups[expr.axis : expr.axis + len(arg.dims)]
        if isinstance(expr, Concat):
            dims = ", ".join(map(str, expr.dims))
            raise NoCommonAxes("a concat of dims [%s] cannot be cut into parts" % dims)
        return groups

    @staticmethod
    def broadcast(own: Size, full: Size, group: Tuple[Span, ...]) -> Tuple[Span, ...]:
        if is_unit(own):
            return ()
        if known_equal(own, full):
            return group
        if all(span.radix is None for span in group):
            return (Span(tuple(a for span in group for a in span.axes), own),)
        if len(group) == 1 and group[0].size is None and not group[0].inner:
            # The slice of a dim that may be broadcast.
            (span,) = group
            return (Span(span.axes, own, stride_or_zero(own, span.begin), span.step, own),)
        raise NoCommonAxes("a slice of the dim %s, which may be broadcast to %s" % (own, full))

    @staticmethod
    def sliced(own: Size, taken: Size, group: Tuple[Span, ...], begin: Size, step: int) -> Tuple[Span, ...]:
        """The group of a dim of size `own` of which `taken` elements from `begin` are seen."""
        if is_unit(own) or (is_static(begin) and begin == 0 and step == 1 and known_equal(own, taken)):
            return group
        if all(span.plain for span in group):
            return (Span(tuple(a for span in group for a in span.axes), None, begin, step, own),)
        if len(group) == 1:
            (span,) = group
            return (Span(span.axes, span.size, begin + step * span.begin, step * span.step, own, span.inner),)
        return (Span((), None, begin, step, own, group),)

    def regroup(self, flat: List[Span], dims: Dims, shown: Dims) -> Groups:
        """Cuts the spans, as one list, along dims. `shown` is the shape that they came from, for the
        message."""
        rest: List[Span] = []
        for span in flat:
            rest.extend([Span((a,)) for a in self.resolve(span.axes)] if span.plain else [span])
        groups: List[Tuple[Span, ...]] = []
        for dim in reversed(dims):
            taken: List[Span] = []
            covered: Size = 1
            while not known_equal(covered, dim):
                piece = self.take(rest, dim, covered)
                if piece is None:
                    raise NoCommonAxes(
                        "shapes [%s] and [%s] have no common loop axes"
                        % (", ".join(map(str, shown)), ", ".join(map(str, dims)))
                    )
                taken.insert(0, piece)
                covered = covered * self.radix(piece)
            groups.insert(0, tuple(taken))
        if rest:
            raise NoCommonAxes(
                "shapes [%s] and [%s] have different extents"
                % (", ".join(map(str, shown)), ", ".join(map(str, dims)))
            )
        return tuple(groups)

    def radix(self, span: Span) -> Size:
        if span.radix is not None:
            return span.radix
        return self.sizes[span.axes[0]] if span.size is None else span.size

    def take(self, rest: List[Span], dim: Size, covered: Size) -> Optional[Span]:
        """The innermost span of `rest`, or the inner part of it, so that covered * its radix divides dim."""
        if not rest:
            return None
        size = self.radix(rest[-1])
        if exact_quotient(dim, covered * size) is not None or (size == 0 and dim == 0):
            return rest.pop()
        needed = exact_quotient(dim, covered)
        outer = exact_quotient(size, needed) if needed is not None else None
        if outer is None or rest[-1].size is not None:
            return None
        cut = self.cut_sliced(rest[-1], outer, needed) if rest[-1].radix is not None else None
        if rest[-1].radix is None:
            cut = tuple(Span((a,)) for a in self.cut_axis(rest[-1].axes[0], outer, needed))
        if cut is None:
            return None
        rest[-1] = cut[0]
        return cut[1]

    def cut_axis(self, axis: int, outer: Size, inner: Size) -> Tuple[int, int]:
        self.sizes.extend((outer, inner))
        self.split[axis] = (len(self.sizes) - 2, len(self.sizes) - 1)
        return self.split[axis]

    def cut_sliced(self, span: Span, outer: Size, inner: Size) -> Optional[Tuple[Span, Span]]:
        """A sliced span as two, of radixes outer and inner; None where its elements are neither whole pieces
        of `inner` nor inside of one nor a whole number of pieces apart."""
        if span.inner:
            return None
        axes = self.resolve(span.axes)
        count = product(self.sizes[a] for a in axes)
        first, pieces = exact_quotient(span.begin, inner), exact_quotient(count, inner)
        if span.step == 1 and first is not None and pieces is not None and len(axes) == 1:
            high, low = self.cut_axis(axes[0], pieces, inner)
            return Span((high,), None, first, 1, outer), Span((low,))
        if not (is_static(span.begin) and is_static(inner)):
            return None
        at, within = divmod(span.begin, inner)
        if is_static(count) and within + (count - 1) * span.step < inner:
            return Span((), None, at, 1, outer), Span(axes, None, within, span.step, inner)
        if span.step % inner == 0:
            return Span(axes, None, at, span.step // inner, outer), Span((), None, within, 1, inner)
        return None


def _same_dims(a: Dims, b: Dims) -> bool:
    return a is b or (len(a) == len(b) and all(map(known_equal, a, b)))


def _check_nesting(placed: Layout) -> None:
    """Raises NoCommonAxes where reductions do not nest, or a store misses an axis that none took."""
    gone: Dict[int, FrozenSet[int]] = {}
    sets: Set[FrozenSet[int]] = set()
    taken: Set[int] = set()
    for spot in placed.spots:
        found = frozenset().union(*(gone[id(arg)] for arg in spot.args))
        if isinstance(spot.expr, Reduce):
            (arg,) = spot.args
            own = [p for i in spot.expr.axes for p in placed.positions(arg.groups[i])]
            if spot.expr.type.startswith("Arg") and own != sorted(own):
                raise NoCommonAxes("an index over axes in another order than that of the loops")
            taken.update(own)
            found |= frozenset(own)
        found -= {p for group in spot.groups for p in placed.positions(group)}
        gone[id(spot)] = found
        if isinstance(spot.expr, Reduce):
            sets.add(found)
    ordered = sorted(sets, key=len)
    if not all(a <= b for a, b in zip(ordered, ordered[1:])):
        raise NoCommonAxes("reductions along axes that do not nest")
    for spot in placed.stores:
        covered = placed.covered(spot)
        if not any(covered) and is_one_number(spot.expr):
            raise NoCommonAxes("a number of one element beside a reduction")
        missing = [i for i, over in enumerate(covered) if not over]
        if not taken.issuperset(missing):
            raise NoCommonAxes("a value of dims [%s] among larger ones" % ", ".join(map(str, spot.expr.dims)))
