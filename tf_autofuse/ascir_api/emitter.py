"""Appends nodes of this project's IR while a graph of the API is walked.

Holds: every value has the repeats that the contract at the head of ir/asc_graph.py asks for: operands of
one call are brought to common extents by Broadcasts, constants stay Scalars, and a tensor is kept in every
dtype that somebody has asked it in (so that nothing is cast twice)."""

from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from tf_autofuse.ascir_api.project_sizes import ConversionError
from tf_autofuse.ir.asc_graph import AXISLESS, AscGraph, AscNode, Axis, Sched, TensorAttr, TensorRef, attrs
from tf_autofuse.ir.builder import dense_strides
from tf_autofuse.ir.dtypes import BFLOAT16, BOOL, DType
from tf_autofuse.ops.table import ASC_OPS
from tf_autofuse.symbolic.guards import SizeVar
from tf_autofuse.symbolic.size import Size, known_equal


class Value(NamedTuple):
    """A tensor in the nest. repeats: one per loop axis, None for a Scalar."""

    ref: TensorRef
    dtype: DType
    repeats: Optional[Tuple[Size, ...]]


class Emitter:
    """One loop nest over `axes` (name, size)."""

    def __init__(self, name: str, axes: Sequence[Tuple[str, Size]]):
        self.name = name
        self.axes = tuple(Axis(i, n, s) for i, (n, s) in enumerate(axes))
        self.ids = tuple(a.id for a in self.axes)
        self.nodes: List[AscNode] = []
        self.origin: Tuple[str, ...] = ()
        self._count: Dict[str, int] = {}
        self._casts: Dict[Tuple[TensorRef, DType], Value] = {}
        self._broadcasts: Dict[Tuple[TensorRef, Tuple[Size, ...]], Value] = {}

    def add(self, type_: str, inputs: Sequence[TensorRef], y: TensorAttr, **attributes: Any) -> TensorRef:
        number = self._count.get(type_, 0)
        self._count[type_] = number + 1
        sched = Sched() if type_ in AXISLESS else Sched(axis=self.ids)
        self.nodes.append(
            AscNode(
                "%s_%d" % (type_.lower(), number),
                type_,
                tuple(inputs),
                (y,),
                attrs(**attributes),
                sched,
                self.origin,
            )
        )
        return TensorRef(self.nodes[-1].name)

    def view(self, dtype: DType, repeats: Tuple[Size, ...], strides=None) -> TensorAttr:
        return TensorAttr(
            dtype, self.ids, repeats, dense_strides(repeats) if strides is None else tuple(strides)
        )

    def constant(self, number, dtype: DType) -> Value:
        """The nearest value of `dtype`; a Size with symbols stays one."""
        value = number
        if isinstance(number, (bool, int, float)):
            if dtype is BOOL:
                value = bool(number)
            elif dtype.is_floating:
                value = nearest(float(number), dtype)
            else:
                value = int(number)
        return Value(self.add("Scalar", (), TensorAttr(dtype), value=value), dtype, None)

    def dtype_of(self, value: Value) -> DType:
        return value.dtype

    def cast(self, value: Value, dtype: DType) -> Value:
        if value.dtype is dtype:
            return value
        key = (value.ref, dtype)
        if key not in self._casts:
            repeats = value.repeats if value.repeats is not None else self.ones()
            self._casts[key] = Value(
                self.add("Cast", (value.ref,), self.view(dtype, repeats)), dtype, repeats
            )
        return self._casts[key]

    def flag(self, value: Value) -> Value:
        return self.cast(value, BOOL)

    def ones(self) -> Tuple[Size, ...]:
        return tuple(1 for _ in self.axes)

    def broadcast(self, value: Value, repeats: Tuple[Size, ...]) -> Value:
        """The value with these extents. Raises ConversionError where it has other ones already."""
        have = value.repeats if value.repeats is not None else self.ones()
        if value.repeats is not None and _same(have, repeats):
            return value
        key = (value.ref, repeats)
        if key in self._broadcasts:
            return self._broadcasts[key]
        changed = [i for i in reversed(self.ids) if not known_equal(have[i], repeats[i])]
        for i in changed or self.ids[-1:]:
            if not known_equal(have[i], 1):
                raise ConversionError(
                    "%s: a tensor of extents %s does not broadcast to %s"
                    % (self.origin[0] if self.origin else "", list(have), list(repeats))
                )
            have = have[:i] + (repeats[i],) + have[i + 1 :]
            value = Value(
                self.add("Broadcast", (value.ref,), self.view(value.dtype, have), axis=i), value.dtype, have
            )
        self._broadcasts[key] = value
        return value

    def together(self, values: Sequence[Value]) -> List[Value]:
        """The values with common extents; Scalars stay."""
        shaped = [v.repeats for v in values if v.repeats is not None]
        repeats = shaped[0] if shaped else self.ones()
        for other in shaped[1:]:
            repeats = tuple(b if known_equal(a, 1) else a for a, b in zip(repeats, other))
        return [self.broadcast(v, repeats) if v.repeats is not None else v for v in values]

    def call(self, op: str, *values: Value, dtype: Optional[DType] = None, **attributes) -> Value:
        if op not in ASC_OPS:
            raise ConversionError("this compiler has no operator %s" % op)
        values = self.together(values)
        repeats = next((v.repeats for v in values if v.repeats is not None), self.ones())
        out = dtype or values[-1].dtype
        return Value(
            self.add(op, [v.ref for v in values], self.view(out, repeats), **attributes), out, repeats
        )

    def reduce(self, op: str, value: Value, axes: Tuple[int, ...], dtype: DType) -> Value:
        repeats = tuple(1 if i in axes else r for i, r in zip(self.ids, value.repeats))
        return Value(self.add(op, (value.ref,), self.view(dtype, repeats), axes=axes), dtype, repeats)

    def graph(self, sizes: Tuple[SizeVar, ...] = ()) -> AscGraph:
        return AscGraph(self.name, "hint", self.axes, tuple(self.nodes), sizes, self.ids)


def _same(a: Sequence[Size], b: Sequence[Size]) -> bool:
    return all(known_equal(x, y) for x, y in zip(a, b))


def nearest(number: float, dtype: DType) -> float:
    if dtype is BFLOAT16:
        bits = int(np.float32(number).view(np.uint32))
        if number == number and bits & 0x7F800000 != 0x7F800000:
            bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
        return float(np.uint32(bits & 0xFFFF0000).view(np.float32)) if number == number else number
    with np.errstate(over="ignore"):
        return float(dtype.numpy(number))


__all__ = ["Emitter", "Value", "nearest"]
