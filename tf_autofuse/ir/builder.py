"""A short way to write a HintGraph by hand: used by lowering, by tests and by people.

    b = HintBuilder("demo", axes=[("z0", 192), ("z1", 128)])
    x = b.load(b.data(0, FLOAT32), dims=(1, 0))     # GM tensor [128]: extends along z1 only
    y = b.load(b.data(1, FLOAT32), dims=(1, 1))
    b.store(b.op("Relu", b.op("Add", b.broadcast_to(b.op("Abs", x), (1, 1)), y)), index=0)
    graph = b.graph()

A reduction and what reads it together with full tensors:

    m = b.reduce("Max", y, axes=(1,))               # extends along z0 only
    b.store(m, index=1)                             # one element per z0
    b.store(b.op("Sub", y, b.broadcast_to(m, (1, 1))), index=2)
"""
from dataclasses import replace
from typing import Dict, FrozenSet, List, Optional, Sequence, Tuple

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
        self._sinks: Dict[Tuple[str, int], AscNode] = {}
        #: Node -> positions of the axes that were reduced on the way to it and not broadcast since.
        self._reduced: Dict[str, FrozenSet[int]] = {}
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
        self._reduced[node.name] = frozenset().union(*(self._reduced[ref.node] for ref in inputs))
        return TensorRef(node.name)

    def tensor(self, ref: TensorRef) -> TensorAttr:
        return self._by_name[ref.node].outputs[ref.output]

    def data(self, index: int, dtype: DType, origin=()) -> TensorRef:
        return self._append("Data", (), (TensorAttr(dtype),), attrs(index=index), origin)

    def scalar(self, value, dtype: DType, origin=()) -> TensorRef:
        """A constant. `value` is a Python number or bool that `dtype` represents exactly, or a Size with
        symbols, which is rounded to `dtype` at run time."""
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

    def gather(
        self,
        data: TensorRef,
        index: TensorRef,
        dims: Sequence[Size],
        strides: Sequence[Size],
        index_stride: Size,
        index_size: Size,
        offset: Size = 0,
        origin=(),
    ) -> TensorRef:
        """Element offset + sum(i_a * strides[a]) + index * index_stride of a Data or Workspace. dims as for
        `load`; strides: 0 along axes that only the index extends along. index: a tensor or Scalar of int32 or
        int64 with values in [0, index_size)."""
        repeats = tuple(a.size if d else 1 for a, d in zip(self.axes, dims))
        y = TensorAttr(self.tensor(data).dtype, self.axis_ids, repeats, tuple(strides))
        values = attrs(index_stride=index_stride, index_size=index_size, offset=offset)
        return self._append("Gather", (data, index), (y,), values, origin)

    def reduce(
        self,
        type_: str,
        ref: TensorRef,
        axes: Sequence[int],
        dtype: Optional[DType] = None,
        origin=(),
        **node_attrs
    ) -> TensorRef:
        """A reduction (Sum, Max, ArgMax, ...) of ref over `axes` (positions of loop axes that ref extends
        along); the result has extent 1 there. dtype: the result's, default that of ref."""
        axes = tuple(sorted(axes))
        before = self.tensor(ref)
        repeats = tuple(1 if i in axes else r for i, r in enumerate(before.repeats))
        y = TensorAttr(dtype or before.dtype, self.axis_ids, repeats, dense_strides(repeats))
        ids = tuple(self.axis_ids[i] for i in axes)
        result = self._append(type_, (ref,), (y,), attrs(axes=ids, **node_attrs), origin)
        self._reduced[result.node] |= frozenset(axes)
        return result

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
            self._reduced[ref.node] -= {i}
        return ref

    def store(
        self,
        ref: TensorRef,
        index: int,
        strides: Optional[Sequence[Size]] = None,
        origin=(),
        offset: Size = 0,
        dims: Optional[Sequence[int]] = None,
    ) -> TensorRef:
        """Store + Output number `index`. dims: the axes that ref is broadcast to first (1: yes); by default
        all but those that were reduced on its way. strides: GM strides, default dense. A second store to the
        same index is another part of that output, disjoint from the first."""
        return self._store("Output", ref, index, strides, offset, origin, dims)

    def workspace_store(
        self,
        ref: TensorRef,
        index: int,
        strides: Optional[Sequence[Size]] = None,
        origin=(),
        offset: Size = 0,
        dims: Optional[Sequence[int]] = None,
    ) -> TensorRef:
        """Like `store`, to the workspace number `index`, which later graphs of the fused graph load."""
        return self._store("Workspace", ref, index, strides, offset, origin, dims)

    def workspace(self, index: int, dtype: DType, origin=()) -> TensorRef:
        """The workspace number `index`, written by an earlier graph, for `load` and `gather`."""
        return self._append("Workspace", (), (TensorAttr(dtype),), attrs(index=index), origin)

    def workspace_load(
        self,
        index: int,
        dtype: DType,
        dims: Sequence[Size],
        strides: Optional[Sequence[Size]] = None,
        offset: Size = 0,
        origin=(),
    ) -> TensorRef:
        """A Load from the workspace number `index`; arguments as for `load`."""
        return self.load(self._workspace(index, dtype), dims, strides, offset, origin)

    def _workspace(self, index: int, dtype: DType) -> TensorRef:
        for node in self.nodes:
            if node.type == "Workspace" and not node.inputs and node.attr("index") == index:
                return TensorRef(node.name)
        return self.workspace(index, dtype)

    def _store(self, sink: str, ref: TensorRef, index: int, strides, offset, origin, dims) -> TensorRef:
        if dims is None:
            dims = tuple(int(i not in self._reduced[ref.node]) for i in range(len(self.axes)))
        ref = self.broadcast_to(ref, dims, origin)
        y = self.tensor(ref)
        y = replace(y, strides=tuple(strides) if strides is not None else dense_strides(y.repeats))
        stored = self._append("Store", (ref,), (y,), attrs(offset=offset), origin)
        known = self._sinks.get((sink, index))
        if known is None:
            result = self._append(sink, (stored,), (TensorAttr(y.dtype),), attrs(index=index), origin)
        else:  # once more, behind all of its Stores
            self.nodes.remove(known)
            names = known.origin + tuple(o for o in origin if o not in known.origin)
            self._by_name[known.name] = replace(known, inputs=known.inputs + (stored,), origin=names)
            self.nodes.append(self._by_name[known.name])
            result = TensorRef(known.name)
        self._sinks[sink, index] = self._by_name[result.node]
        return result

    def graph(self) -> AscGraph:
        return AscGraph(self.name, "hint", self.axes, tuple(self.nodes), self.sizes, self.axis_ids)
