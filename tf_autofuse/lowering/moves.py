"""Lowering of ops that put elements elsewhere: transpose, slice, split, concat, tile, pad, gather.

On entry: the node, its value inputs as expressions, its operands (axes, begins, multiples) as ShapeValues. On
exit: one expression per output, made of Permute, Slice, Concat and Gather; what must hold of the run-time
dims is a guard, and where it does not hold the fallback gives TF's result or TF's error.
"""

from typing import Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np

from tf_autofuse.fusion import reasons
from tf_autofuse.ir.dtypes import BY_TF
from tf_autofuse.ir.loop_ir import Expr, Load
from tf_autofuse.ir.loop_parts import MAX_NESTS
from tf_autofuse.lowering.views import Refused
from tf_autofuse.symbolic.guards import Guard
from tf_autofuse.symbolic.size import (
    Size,
    ceil_div,
    exact_quotient,
    floor_div,
    is_static,
    known_equal,
    known_nonnegative,
    minimum,
)

#: Positions of the inputs that hold elements, where these are not all inputs or all but the last.
VALUES: Dict[str, Tuple[int, ...]] = {
    "Transpose": (0,),
    "Slice": (0,),
    "StridedSlice": (0,),
    "Split": (1,),
    "SplitV": (0,),
    "Unpack": (0,),
    "Tile": (0,),
    "Pad": (0,),
    "PadV2": (0, 2),
    "MirrorPad": (0,),
    "Gather": (0, 1),
    "GatherV2": (0, 1),
}
_MASKS = ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
#: Most elements that a mirrored padding adds in front of or behind a dim.
MAX_MIRRORED = 8
#: Kinds of rows that are lowered here: the names of fusion families.
KINDS = frozenset(("transpose", "slice", "split", "concat", "gather"))


def value_positions(op: str, count: int) -> Tuple[int, ...]:
    """Positions of the inputs whose elements the op moves. count: number of inputs."""
    if op == "ConcatV2":
        return tuple(range(count - 1))
    if op == "Concat":
        return tuple(range(1, count))
    return VALUES.get(op, tuple(range(count)))


def lower_move(lowering, ref, args: Sequence[Expr]) -> List[Expr]:
    """The expressions of the node's outputs. Raises Refused."""
    return _Move(lowering, ref).run(list(args))


class _Move:
    def __init__(self, lowering, ref):
        self.lowering = lowering
        self.ref = ref
        self.builder = lowering.builder
        self.origin = ref.id

    def run(self, args: List[Expr]) -> List[Expr]:
        return _WORK[self.ref.op](self, args)

    # Operands and guards.

    def refuse(self, reason: str) -> Refused:
        return Refused(reasons.SHAPES, reason)

    def operand(self, at: int, what: str) -> Tuple[Optional[Size], ...]:
        """The elements of operand `at`, of which some may be unknown."""
        value = self.lowering.shape_values.operand(self.origin, at)
        if value is None:
            raise self.refuse("its %s is neither a constant nor made of sizes" % what)
        return value.elements

    def numbers(self, at: int, what: str) -> Tuple[int, ...]:
        """The elements of operand `at`, which must be constants."""
        elements = self.operand(at, what)
        if not all(e is not None and is_static(e) for e in elements):
            raise self.refuse("its %s is not a constant" % what)
        return elements

    def axis(self, value: int, rank: int) -> int:
        if not -rank <= value < rank:
            raise self.refuse("axis %d of rank %d" % (value, rank))
        return value % rank

    def assume(self, a: Size, b: Size) -> None:
        """What follows holds where a <= b, which TF does not ask for."""
        if not known_nonnegative(b - a):
            self.lowering.assuming.add(self.origin)
            self.at_most(a, b)

    def at_most(self, a: Size, b: Size) -> None:
        """What follows holds where a <= b, and TF fails elsewhere."""
        if known_nonnegative(b - a):
            return
        if is_static(a) and is_static(b):
            raise self.refuse("%d is more than %d" % (a, b))
        self.lowering.handler.guards.append(Guard("eq", minimum(a, b), a, self.ref.op))

    def equal(self, a: Size, b: Size) -> None:
        if known_equal(a, b):
            return
        if is_static(a) and is_static(b):
            raise self.refuse("dims %d and %d differ" % (a, b))
        self.lowering.handler.guards.append(Guard("eq", a, b, self.ref.op))

    # Transpose and slices.

    def transpose(self, args: List[Expr]) -> List[Expr]:
        (x,) = args
        perm = [self.axis(p, len(x.dims)) for p in self.numbers(1, "permutation")]
        if sorted(perm) != list(range(len(x.dims))):
            raise self.refuse("%s is no permutation of %d dims" % (perm, len(x.dims)))
        return [self.builder.permute(x, perm, self.origin)]

    def slice(self, args: List[Expr]) -> List[Expr]:
        (x,) = args
        begin, sizes = self.operand(1, "begin"), self.operand(2, "size")
        if len(begin) != len(x.dims) or len(sizes) != len(x.dims) or None in begin or None in sizes:
            raise self.refuse("its begin or size is neither a constant nor made of sizes")
        dims = []
        for d, b, s in zip(x.dims, begin, sizes):
            self.at_most(0, b)
            whole = is_static(s) and s == -1
            size = d - b if whole else s
            self.at_most(0, size)
            if not whole:
                self.at_most(b + size, d)
            dims.append(size)
        return [self.builder.slice(x, begin, dims, (), self.origin)]

    def strided_slice(self, args: List[Expr]) -> List[Expr]:
        (x,) = args
        spec = [self.operand(i, what) for i, what in ((1, "begin"), (2, "end"), (3, "strides"))]
        masks = {n: self.ref.attr(n + "_mask", 0) for n in _MASKS}
        begin: List[Size] = []
        dims: List[Size] = []
        step: List[int] = []
        shown: List[Size] = []  # with new axes and without shrunk ones
        count = len(spec[0])
        new = bin(masks["new_axis"] & ~masks["ellipsis"] & ((1 << count) - 1)).count("1")
        rest = len(x.dims) - (count - new - bool(masks["ellipsis"]))
        if rest < 0:
            raise self.refuse("it slices more than the %d dims there are" % len(x.dims))

        def keep(number: int) -> None:
            for d in x.dims[len(dims) : len(dims) + number]:
                begin.append(0), step.append(1), dims.append(d), shown.append(d)

        for i, (b, e, s) in enumerate(zip(*spec)):
            on = {n: bool(m >> i & 1) for n, m in masks.items()}
            if on["ellipsis"]:
                keep(rest)
            elif on["new_axis"]:
                shown.append(1)
            else:
                own = x.dims[len(dims)]
                if on["shrink_axis"]:
                    first, size, stride = self.element_of(own, b, s)
                else:
                    bounds = (None if on["begin"] else (b,), None if on["end"] else (e,))
                    first, size, stride = self.range_of(own, bounds[0], bounds[1], s)
                begin.append(first), step.append(stride), dims.append(size)
                if not on["shrink_axis"]:
                    shown.append(size)
        keep(len(x.dims) - len(dims))
        part = self.builder.slice(x, begin, dims, step, self.origin)
        return [self.builder.view(part, tuple(shown), self.origin)]

    def element_of(self, own: Size, index, stride) -> Tuple[Size, Size, int]:
        """Like `range_of`, of the one element at `index`."""
        if stride is None or not is_static(stride):
            raise self.refuse("its strides are not constants")
        at = self.bound(index, own)
        self.at_most(0, at)
        self.at_most(at + 1, own)
        return at, 1, 1

    def range_of(self, own: Size, begin, end, stride) -> Tuple[Size, Size, int]:
        """(first element, how many, step) of one dim of a StridedSlice. begin, end: (value,), or None where a
        mask leaves them out."""
        if stride is None or not is_static(stride):
            raise self.refuse("its strides are not constants")
        if stride <= 0:
            raise self.refuse("a stride of %d: kernels read forwards only" % stride)
        first = self.clamped(self.bound(begin[0], own), own) if begin is not None else 0
        last = own
        if end is not None:
            last = self.bound(end[0], own)
            if is_static(last) and is_static(first) and not is_static(own):
                if last <= first:
                    return first, 0, stride
                size = minimum(last, own) - first  # `last` or however many there are
                return first, (size if stride == 1 else ceil_div(size, stride)), stride
            last = self.clamped(last, own)
        size = last - first
        if is_static(size):
            size = max(size, 0)
        else:
            self.assume(0, size)
        return first, (size if stride == 1 else ceil_div(size, stride)), stride

    def bound(self, value: Optional[Size], own: Size) -> Size:
        """A begin, end or index as TF counts it: from the end where it is negative."""
        if value is None:
            raise self.refuse("its begin or end is neither a constant nor made of sizes")
        if is_static(value):
            return value + own if value < 0 else value
        self.assume(0, value)
        return value

    def clamped(self, value: Size, own: Size) -> Size:
        """value within [0, own]: computed where both are numbers, under a guard elsewhere."""
        if is_static(value) and is_static(own):
            return min(max(value, 0), own)
        self.assume(0, value)
        self.assume(value, own)
        return value

    # Split.

    def split(self, args: List[Expr]) -> List[Expr]:
        (x,) = args
        axis = self.axis(self.numbers(0, "axis")[0], len(x.dims))
        number, own = len(self.lowering.view.out_dtypes[self.origin]), x.dims[axis]
        size = exact_quotient(own, number)
        if size is None:
            size = floor_div(own, number)
            self.equal(size * number, own)
        return self.pieces(x, axis, [size] * number)

    def split_v(self, args: List[Expr]) -> List[Expr]:
        (x,) = args
        sizes = list(self.operand(1, "sizes"))
        axis = self.axis(self.numbers(2, "axis")[0], len(x.dims))
        own = x.dims[axis]
        if None in sizes:
            raise self.refuse("its sizes are neither constants nor made of sizes")
        open_ = [i for i, s in enumerate(sizes) if is_static(s) and s == -1]
        total: Size = 0
        for i, size in enumerate(sizes):
            if i not in open_:
                self.at_most(0, size)
                total = total + size
        if len(open_) > 1:
            raise self.refuse("two of its sizes are -1")
        if open_:
            self.at_most(total, own)
            sizes[open_[0]] = own - total
        else:
            self.equal(total, own)
        return self.pieces(x, axis, sizes)

    def unpack(self, args: List[Expr]) -> List[Expr]:
        (x,) = args
        axis = self.axis(self.ref.attr("axis", 0), len(x.dims))
        number = len(self.lowering.view.out_dtypes[self.origin])
        self.equal(x.dims[axis], number)
        dims = x.dims[:axis] + x.dims[axis + 1 :]
        return [self.builder.view(p, dims, self.origin) for p in self.pieces(x, axis, [1] * number)]

    def pieces(self, x: Expr, axis: int, sizes: Sequence[Size]) -> List[Expr]:
        at: Size = 0
        found = []
        for size in sizes:
            found.append(self.piece(x, axis, at, size))
            at = at + size
        return found

    def piece(self, x: Expr, axis: int, at: Size, size: Size) -> Expr:
        begin = tuple(at if i == axis else 0 for i in range(len(x.dims)))
        dims = x.dims[:axis] + (size,) + x.dims[axis + 1 :]
        return self.builder.slice(x, begin, dims, (), self.origin)

    # Concat and what is made of it.

    def concat(self, args: List[Expr]) -> List[Expr]:
        at = 0 if self.ref.op == "Concat" else len(args)
        axis = self.axis(self.numbers(at, "axis")[0], len(args[0].dims))
        unknown = {arg.dims[axis] for arg in args if axis < len(arg.dims) and not is_static(arg.dims[axis])}
        # Parts of different unknown sizes: where each begins is a sum over those before it.
        if len(unknown) > MAX_NESTS:
            raise self.refuse(
                "%d parts of unknown sizes, each a loop nest of its own, at most %d"
                % (len(unknown), MAX_NESTS)
            )
        return [self.joined(args, axis)]

    def pack(self, args: List[Expr]) -> List[Expr]:
        rank = len(args[0].dims) + 1
        axis = self.axis(self.ref.attr("axis", 0), rank)
        views = []
        for arg in args:
            if len(arg.dims) != rank - 1:
                raise self.refuse("inputs of ranks %d and %d" % (rank - 1, len(arg.dims)))
            views.append(self.builder.view(arg, arg.dims[:axis] + (1,) + arg.dims[axis:], self.origin))
        return [self.joined(views, axis)]

    def joined(self, args: Sequence[Expr], axis: int) -> Expr:
        """args one after the other; their other dims must be equal."""
        first = args[0]
        aligned = []
        for arg in args:
            if len(arg.dims) != len(first.dims):
                raise self.refuse("inputs of ranks %d and %d" % (len(first.dims), len(arg.dims)))
            for i, (mine, theirs) in enumerate(zip(first.dims, arg.dims)):
                if i != axis:
                    self.equal(mine, theirs)
            dims = first.dims[:axis] + (arg.dims[axis],) + first.dims[axis + 1 :]
            if not all(map(known_equal, arg.dims, dims)):
                arg = self.builder.same(arg, dims, self.origin)
            aligned.append(arg)
        return self.builder.concat(aligned, axis, self.origin)

    def tile(self, args: List[Expr]) -> List[Expr]:
        (x,) = args
        multiples = self.operand(1, "multiples")
        if len(multiples) != len(x.dims) or None in multiples:
            raise self.refuse("its multiples are neither constants nor made of sizes")
        for m in multiples:
            self.at_most(0, m)
        apart: List[Size] = []
        wide: List[Size] = []
        dims = []
        for d, m in zip(x.dims, multiples):
            repeated = not (is_static(m) and m == 1)
            apart += [1, d] if repeated else [d]
            wide += [m, d] if repeated else [d]
            dims.append(d * m)
        view = self.builder.view(x, tuple(apart), self.origin)
        repeated = self.builder.broadcast(view, tuple(wide), self.origin)
        return [self.builder.view(repeated, tuple(dims), self.origin)]

    def paddings(self, x: Expr, at: int = 1) -> List[Tuple[int, int]]:
        source = self.lowering.view.inputs[self.origin][at][0]
        array = self.lowering.view.constants.get(source)
        if array is None or np.shape(array) != (len(x.dims), 2) or np.any(np.asarray(array) < 0):
            raise self.refuse("its paddings are not constants")
        return [(int(a), int(b)) for a, b in array]

    def pad(self, args: List[Expr]) -> List[Expr]:
        x = args[0]
        filling = args[1] if len(args) > 1 else self.lowering.handler.constant(0, x.dtype)
        if filling.dims:
            raise self.refuse("its padding value is no scalar")
        for axis, (before, after) in enumerate(self.paddings(x)):
            around = []
            for size in (before, after):
                dims = x.dims[:axis] + (size,) + x.dims[axis + 1 :]
                around.append(self.builder.broadcast(filling, dims, self.origin))
            x = self.builder.concat([around[0], x, around[1]], axis, self.origin) if before or after else x
        return [x]

    def mirror_pad(self, args: List[Expr]) -> List[Expr]:
        (x,) = args
        edge = 1 if self.ref.attr("mode") == "REFLECT" else 0
        for axis, (before, after) in enumerate(self.paddings(x)):
            if max(before, after) > MAX_MIRRORED:
                raise self.refuse(
                    "it mirrors more than %d elements: kernels read forwards only" % MAX_MIRRORED
                )
            own = x.dims[axis]
            self.at_most(max(before, after) + edge, own)
            left = [self.piece(x, axis, i, 1) for i in range(before - 1 + edge, edge - 1, -1)]
            right = [self.piece(x, axis, own - 1 - edge - i, 1) for i in range(after)]
            x = self.builder.concat(left + [x] + right, axis, self.origin)
        return [x]

    # Gather.

    def gather(self, args: List[Expr]) -> List[Expr]:
        params, index = args
        axis = self.axis(self.numbers(2, "axis")[0], len(params.dims)) if self.ref.op == "GatherV2" else 0
        if self.ref.attr("batch_dims", 0) != 0:
            raise self.refuse("batch_dims are not 0")
        if not isinstance(params, Load):
            raise self.refuse("it does not gather from a tensor in memory")
        if not params.dims:
            raise self.refuse("it gathers from a scalar")
        # TF looks at the indices even where the rows are empty.
        for d in params.dims[axis + 1 :]:
            self.at_most(1, d)
        dtype = BY_TF[self.lowering.view.out_dtypes[self.origin][0]]
        return [self.builder.gather(params.tensor, dtype, params.dims, index, axis, self.origin)]


_WORK: Dict[str, Callable] = {
    "Transpose": _Move.transpose,
    "Slice": _Move.slice,
    "StridedSlice": _Move.strided_slice,
    "Split": _Move.split,
    "SplitV": _Move.split_v,
    "Unpack": _Move.unpack,
    "Concat": _Move.concat,
    "ConcatV2": _Move.concat,
    "Pack": _Move.pack,
    "Tile": _Move.tile,
    "Pad": _Move.pad,
    "PadV2": _Move.pad,
    "MirrorPad": _Move.mirror_pad,
    "Gather": _Move.gather,
    "GatherV2": _Move.gather,
}
