"""A short way to write a HintGraph by hand: used by lowering, by tests and by people.

    b = HintBuilder("demo", axes=[("z0", 192), ("z1", 128)])
    x = b.load(b.data(0, FLOAT32), dims=(1, 0))     # GM tensor [128]: extends along z1 only
    y = b.load(b.data(1, FLOAT32), dims=(1, 1))
    b.store(b.op("Relu", b.op("Add", b.broadcast_to(b.op("Abs", x), (1, 1)), y)), index=0)
    graph = b.graph()
"""
from dataclasses import replace
from typing import Dict, List, Optional, Sequence, Tuple

from tf_autofuse.ir.asc_graph import AXISLESS, AscGraph, AscNode, Axis, Sched, TensorAttr, TensorRef, attrs
from tf_autofuse.ir.dtypes import BOOL, DType
from tf_autofuse.symbolic.guards import SizeVar
from tf_autofuse.symbolic.size import Size, known_equal


def dense_strides(repeats: Sequence[Size]) -> Tuple[Size, ...]:
    """Row-major strides in elements, 0 where the extent is 1."""
    strides: List[Size] = []
    step: Size = 1
    for r in reversed(repeats):
        strides.append(0 if known_equal(r, 1) else step)
        step = step * r
    return tuple(reversed(strides))


class HintBuilder:
    """Appends nodes in order; every method returns the TensorRef of the new node's output."""

    def __init__(self, name: str, axes: Sequence[Tuple[str, Size]], sizes: Tuple[SizeVar, ...] = ()):
        self.name = name
        self.axes = tuple(Axis(i, n, s) for i, (n, s) in enumerate(axes))
        self.sizes = sizes
        self.nodes: List[AscNode] = []
        self._by_name: Dict[str, AscNode] = {}
        self._count: Dict[str, int] = {}
        self.axis_ids: Tuple[int, ...] = tuple(a.id for a in self.axes)
        self._inside, self._outside = Sched(axis=self.axis_ids), Sched()

    def _append(self, type_: str, inputs, outputs, node_attrs=(), origin=()) -> TensorRef:
        n = self._count.get(type_, 0)
        self._count[type_] = n + 1
        node = AscNode(
            "%s_%d" % (type_.lower(), n),
            type_,
            tuple(inputs),
            tuple(outputs),
            node_attrs,
            self._outside if type_ in AXISLESS else self._inside,
            tuple(origin),
        )
        self.nodes.append(node)
        self._by_name[node.name] = node
        return TensorRef(node.name)

    def tensor(self, ref: TensorRef) -> TensorAttr:
        return self._by_name[ref.node].outputs[ref.output]

    def data(self, index: int, dtype: DType, origin=()) -> TensorRef:
        return self._append("Data", (), (TensorAttr(dtype),), attrs(index=index), origin)

    def scalar(self, value, dtype: DType, origin=()) -> TensorRef:
        """A constant. `value` is a Python number or bool that `dtype` represents exactly."""
        return self._append("Scalar", (), (TensorAttr(dtype),), attrs(value=value), origin)

    def load(
        self,
        data: TensorRef,
        dims: Sequence[Size],
        strides: Optional[Sequence[Size]] = None,
        offset: Size = 0,
        origin=(),
    ) -> TensorRef:
        """dims[i] truthy-for-int: 1 = extends along axis i, 0 = does not. strides: GM strides, default
        dense."""
        repeats = tuple(a.size if d else 1 for a, d in zip(self.axes, dims))
        y = TensorAttr(
            self.tensor(data).dtype,
            self.axis_ids,
            repeats,
            tuple(strides) if strides is not None else dense_strides(repeats),
        )
        return self._append("Load", (data,), (y,), attrs(offset=offset), origin)

    def op(
        self, type_: str, *inputs: TensorRef, dtype: Optional[DType] = None, origin=(), **node_attrs
    ) -> TensorRef:
        """A compute node. All non-scalar inputs must have equal repeats. dtype: default that of the last
        input."""
        shaped = [self.tensor(i) for i in inputs if self._by_name[i.node].type != "Scalar"]
        repeats = shaped[0].repeats if shaped else tuple(1 for _ in self.axes)
        y = TensorAttr(dtype or self.tensor(inputs[-1]).dtype, self.axis_ids, repeats, dense_strides(repeats))
        return self._append(type_, inputs, (y,), attrs(**node_attrs), origin)

    def compare(self, type_: str, *inputs: TensorRef, origin=()) -> TensorRef:
        return self.op(type_, *inputs, dtype=BOOL, origin=origin)

    def broadcast_to(self, ref: TensorRef, dims: Sequence[int], origin=()) -> TensorRef:
        """Broadcast nodes, innermost axis first, until ref extends along every axis with dims[i] == 1. A
        Scalar becomes a tensor even where all these axes have size 1."""
        is_scalar = self._by_name[ref.node].type == "Scalar"
        repeats = tuple(1 for _ in self.axes) if is_scalar else self.tensor(ref).repeats
        wanted = [i for i in reversed(range(len(self.axes))) if dims[i]]
        changed = [i for i in wanted if known_equal(repeats[i], 1) and not known_equal(self.axes[i].size, 1)]
        for i in changed or (wanted[:1] if is_scalar else ()):
            repeats = repeats[:i] + (self.axes[i].size,) + repeats[i + 1 :]
            y = TensorAttr(self.tensor(ref).dtype, self.axis_ids, repeats, dense_strides(repeats))
            ref = self._append("Broadcast", (ref,), (y,), attrs(axis=self.axes[i].id), origin)
        return ref

    def store(
        self, ref: TensorRef, index: int, strides: Optional[Sequence[Size]] = None, origin=()
    ) -> TensorRef:
        """Store + Output number `index`. ref is broadcast to all axes first. strides: GM strides, default
        dense."""
        ref = self.broadcast_to(ref, tuple(1 for _ in self.axes), origin)
        y = self.tensor(ref)
        y = replace(y, strides=tuple(strides) if strides is not None else dense_strides(y.repeats))
        stored = self._append("Store", (ref,), (y,), attrs(offset=0), origin)
        return self._append("Output", (stored,), (TensorAttr(y.dtype),), attrs(index=index), origin)

    def graph(self) -> AscGraph:
        return AscGraph(self.name, "hint", self.axes, tuple(self.nodes), self.sizes, self.axis_ids)
