"""Values of integer tensors that are made of sizes, as Sizes: what tf.shape and the arithmetic around it
give.

Why: shape operands (of Reshape, Slice, Tile, Fill, ...) are computed in the graph from other tensors' dims.
With their values known as expressions over run-time dims the op that reads them is an index map like any
other, and the ops that computed them need not run.

On entry: a graph's columns and the dims of its tensors. On exit a value per tensor, or None where it is not
known; of a known value single elements may be unknown (None). Elements may be negative; nothing wraps around:
a size that does not fit its dtype fails in TensorFlow before it could be used.
"""

from typing import Callable, Dict, List, NamedTuple, Optional, Tuple

import numpy as np

from tf_autofuse.lowering.graph_view import GraphView
from tf_autofuse.symbolic.size import Size, floor_div, is_static, maximum, minimum

Tensor = Tuple[int, int]

#: Longest vector that is followed.
MAX_ELEMENTS = 64
#: Longest chain of ops that is followed.
MAX_DEPTH = 100

_INT_TYPES = (3, 9)  # DT_INT32, DT_INT64
_SAME = ("Identity", "Snapshot", "StopGradient", "PreventGradient", "Cast", "EnsureShape")
_RESHAPING = ("ExpandDims", "Squeeze", "Reshape")


class Value(NamedTuple):
    """elements: one a scalar's or vector's element, None where it is unknown."""

    elements: Tuple[Optional[Size], ...]
    scalar: bool

    @property
    def complete(self) -> bool:
        return all(e is not None for e in self.elements)


class ShapeValues:
    """dims_of: (tensor) -> its dims or None. Asked in topological order, since it remembers what it found."""

    def __init__(self, view: GraphView, dims_of: Callable[[Tensor], Optional[tuple]]):
        self._view = view
        self._dims_of = dims_of
        self._known: Dict[Tensor, Optional[Value]] = {}
        self._depth = 0

    def of(self, tensor: Tensor) -> Optional[Value]:
        """The tensor's value, as far as it is known."""
        if tensor in self._known:
            return self._known[tensor]
        node, port = tensor
        if self._view.out_dtypes[node][port] not in _INT_TYPES or self._depth >= MAX_DEPTH:
            return None
        self._depth += 1
        try:
            found = self._evaluate(node, port)
        finally:
            self._depth -= 1
        if found is not None and len(found.elements) > MAX_ELEMENTS:
            found = None
        self._known[tensor] = found
        return found

    def operand(self, node: int, at: int) -> Optional[Value]:
        """The value of input `at` of the node."""
        return self.of(self._view.inputs[node][at])

    def folds(self, node: int) -> bool:
        """Whether the node does nothing but compute sizes, all of which are known."""
        ops, dtypes = self._view.ops[node], self._view.out_dtypes[node]
        if ops == "Const" or ops not in _FOLDED or any(d not in _INT_TYPES for d in dtypes):
            return False
        values = [self.of((node, port)) for port in range(len(dtypes))]
        return bool(values) and all(v is not None and v.complete for v in values)

    def _evaluate(self, node: int, port: int) -> Optional[Value]:
        view, op = self._view, self._view.ops[node]
        if op == "Const":
            return _constant(view.constants.get(node))
        work = _FOLDED.get(op)
        return None if work is None else work(self, node, port)

    def _shape_of(self, node: int, port: int) -> Optional[Value]:
        dims = self._dims_of(self._view.inputs[node][port])
        return None if dims is None else Value(tuple(dims), False)

    def _size(self, node: int, port: int) -> Optional[Value]:
        dims = self._dims_of(self._view.inputs[node][0])
        if dims is None:
            return None
        count: Size = 1
        for d in dims:
            count = count * d
        return Value((count,), True)

    def _rank(self, node: int, port: int) -> Optional[Value]:
        dims = self._dims_of(self._view.inputs[node][0])
        return None if dims is None else Value((len(dims),), True)

    def _same(self, node: int, port: int) -> Optional[Value]:
        return self.operand(node, 0)

    def _reshaped(self, node: int, port: int) -> Optional[Value]:
        value = self.operand(node, 0)
        dims = self._dims_of((node, port))
        if value is None or dims is None or len(dims) > 1:
            return None
        scalar = not dims
        return Value(value.elements, scalar) if scalar == value.scalar or len(value.elements) == 1 else None

    def _pack(self, node: int, port: int) -> Optional[Value]:
        elements: List[Optional[Size]] = []
        for source in self._view.inputs[node]:
            value = self.of(source)
            if value is not None and not value.scalar:
                return None
            if value is None and self._dims_of(source) != ():
                return None
            elements.append(None if value is None else value.elements[0])
        return Value(tuple(elements), False)

    def _concat(self, node: int, port: int) -> Optional[Value]:
        inputs = self._view.inputs[node]
        parts = inputs[1:] if self._view.ops[node] == "Concat" else inputs[:-1]
        values = [self.of(source) for source in parts]
        if any(v is None or v.scalar for v in values):
            return None
        return Value(tuple(e for v in values for e in v.elements), False)

    def _unpack(self, node: int, port: int) -> Optional[Value]:
        value = self.operand(node, 0)
        if value is None or value.scalar or port >= len(value.elements):
            return None
        return Value((value.elements[port],), True)

    def _gather(self, node: int, port: int) -> Optional[Value]:
        value, at = self.operand(node, 0), self.operand(node, 1)
        if value is None or value.scalar or at is None:
            return None
        count = len(value.elements)
        if not all(e is not None and is_static(e) and 0 <= e < count for e in at.elements):
            return None
        return Value(tuple(value.elements[e] for e in at.elements), at.scalar)

    def _slice(self, node: int, port: int) -> Optional[Value]:
        value, begin, size = (self.operand(node, i) for i in range(3))
        if value is None or value.scalar or not (_is_one_number(begin) and _is_one_number(size)):
            return None
        first, count = begin.elements[0], len(value.elements)
        length = count - first if size.elements[0] == -1 else size.elements[0]
        if not (0 <= first and 0 <= length and first + length <= count):
            return None
        return Value(value.elements[first : first + length], False)

    def _strided_slice(self, node: int, port: int) -> Optional[Value]:
        value, begin, end, step = (self.operand(node, i) for i in range(4))
        attrs = self._view.attrs[node]
        if value is None or value.scalar or attrs.get("ellipsis_mask") or attrs.get("new_axis_mask"):
            return None
        if not all(map(_is_one_number, (begin, end, step))):
            return None
        first, last, stride = (v.elements[0] for v in (begin, end, step))
        if attrs.get("shrink_axis_mask", 0) & 1:
            count = len(value.elements)
            first = first + count if first < 0 else first
            return Value((value.elements[first],), True) if 0 <= first < count else None
        if stride == 0:
            return None
        begun = None if attrs.get("begin_mask", 0) & 1 else first
        ended = None if attrs.get("end_mask", 0) & 1 else last
        return Value(value.elements[begun:ended:stride], False)

    def _prod(self, node: int, port: int) -> Optional[Value]:
        value, axes = self.operand(node, 0), self.operand(node, 1)
        if value is None or axes is None or value.scalar or axes.elements not in ((0,), (-1,)):
            return None
        if not value.complete:
            return None
        product: Size = 1
        for e in value.elements:
            product = product * e
        return Value((product,), not self._view.attrs[node].get("keep_dims", False))

    def _arithmetic(self, node: int, port: int) -> Optional[Value]:
        a, b = self.operand(node, 0), self.operand(node, 1)
        if a is None or b is None:
            return None
        count = max(len(a.elements), len(b.elements))
        if not all(v.scalar or len(v.elements) in (1, count) for v in (a, b)):
            return None
        work = _ARITHMETIC[self._view.ops[node]]
        pairs = zip(*(v.elements * (count if len(v.elements) == 1 else 1) for v in (a, b)))
        elements = tuple(None if x is None or y is None else work(x, y) for x, y in pairs)
        return Value(elements, a.scalar and b.scalar)

    def _range(self, node: int, port: int) -> Optional[Value]:
        values = [self.operand(node, i) for i in range(3)]
        if any(v is None or not all(e is not None and is_static(e) for e in v.elements) for v in values):
            return None
        start, limit, delta = (v.elements[0] for v in values)
        if delta == 0 or abs(limit - start) // abs(delta) > MAX_ELEMENTS:
            return None
        return Value(tuple(range(start, limit, delta)), False)


def _constant(array: Optional[np.ndarray]) -> Optional[Value]:
    if array is None or array.ndim > 1 or array.size > MAX_ELEMENTS:
        return None
    return Value(tuple(int(e) for e in array.reshape(-1)), array.ndim == 0)


def _is_one_number(value: Optional[Value]) -> bool:
    return value is not None and len(value.elements) == 1 and isinstance(value.elements[0], int)


def _quotient(a: Size, b: Size) -> Optional[Size]:
    return floor_div(a, b) if is_static(b) and b > 0 else None


_ARITHMETIC = {
    "Add": lambda a, b: a + b,
    "AddV2": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "FloorDiv": _quotient,
    "Maximum": maximum,
    "Minimum": minimum,
}

_FOLDED: Dict[str, Callable] = {
    "Shape": ShapeValues._shape_of,
    "ShapeN": ShapeValues._shape_of,
    "Size": ShapeValues._size,
    "Rank": ShapeValues._rank,
    "Pack": ShapeValues._pack,
    "ConcatV2": ShapeValues._concat,
    "Concat": ShapeValues._concat,
    "Unpack": ShapeValues._unpack,
    "Gather": ShapeValues._gather,
    "GatherV2": ShapeValues._gather,
    "Slice": ShapeValues._slice,
    "StridedSlice": ShapeValues._strided_slice,
    "Prod": ShapeValues._prod,
    "Range": ShapeValues._range,
}
_FOLDED.update((op, ShapeValues._same) for op in _SAME)
_FOLDED.update((op, ShapeValues._reshaped) for op in _RESHAPING)
_FOLDED.update((op, ShapeValues._arithmetic) for op in _ARITHMETIC)


def computes_sizes(op: str, out_dtypes: Optional[Tuple[int, ...]] = None) -> bool:
    """Whether a node of the op, with outputs of these TF dtypes (None: of any), may be one that `folds`."""
    return op in _FOLDED and (out_dtypes is None or all(d in _INT_TYPES for d in out_dtypes))
