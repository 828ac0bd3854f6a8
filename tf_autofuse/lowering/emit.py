"""From the bodies of one op's loop nests to its HintGraphs and FusedGraph.

On entry: for each loop nest stores over loop expressions (ir/loop_ir.py) that have common axes, or whose
parts have, and the tensors that the fused op reads. A tensor that one loop nest stores and a later one loads
becomes a Workspace. On exit: a complete FusedGraph, symbols named by the kernel's own inputs. Broadcast
nodes stand as late as possible: every node is computed over the axes that its operands extend along, and
widened only where it meets a larger one.
"""

from typing import Dict, List, Mapping, NamedTuple, Sequence, Tuple

from tf_autofuse.fusion.reasons import AXES, Code, UNREADABLE_SIZE
from tf_autofuse.ir.asc_graph import FusedGraph, KernelIO, TensorRef
from tf_autofuse.ir.builder import HintBuilder
from tf_autofuse.ir.dtypes import DType
from tf_autofuse.ir.loop_ir import (
    Call,
    Cast,
    Constant,
    Gather,
    Load,
    Reduce,
    SizeValue,
    Store,
    Tensor,
    loads_of,
)
from tf_autofuse.ir.loop_layout import Groups, NoCommonAxes, Place, Spot
from tf_autofuse.ir.loop_parts import Part, Placement, placements
from tf_autofuse.lowering.symbols import Dims, RegionSizes, SymbolTable, UnreadableSize
from tf_autofuse.symbolic.guards import Guard
from tf_autofuse.symbolic.size import Size


class Interface(NamedTuple):
    """What the fused op looks like from outside. inputs: (tensor, dtype, dims) in order; outputs likewise;
    members: (node id, name) of the region in topological order."""

    inputs: Tuple[Tuple[Tensor, DType, Dims], ...]
    outputs: Tuple[Tuple[Tensor, DType, Dims], ...]
    members: Tuple[Tuple[int, str], ...]


class EmitFailure(Exception):
    """The region cannot be emitted. symbols: the run-time dims that no input tells, if that is why."""

    def __init__(self, code: Code, reason: str, symbols=frozenset()):
        super().__init__(reason)
        self.code = code
        self.reason = reason
        self.symbols = symbols


def emit(
    name: str,
    kind: str,
    bodies: Sequence[Sequence[Store]],
    interface: Interface,
    guards: Sequence[Guard],
    table: SymbolTable,
) -> FusedGraph:
    """bodies: the stores of each loop nest, in order of execution. Raises EmitFailure."""
    try:
        placed = [placement for stores in bodies for placement in placements(stores)]
        sizes = RegionSizes(table, [dims for _, _, dims in interface.inputs])
        axes = [sizes.local_dims(p.layout.sizes) for p in placed]
        out_dims = [sizes.local_dims(dims) for _, _, dims in interface.outputs]
        needed = _guards(sizes, guards)
        sinks = _Sinks(
            {tensor: number for number, (tensor, _, _) in enumerate(interface.outputs)}, _handed_on(bodies)
        )
        nests = []
        for number, (placement, local) in enumerate(zip(placed, axes)):
            graph_name = name if len(placed) == 1 else "%s_p%d" % (name, number)
            nests.append(_Body(graph_name, placement, local, sizes, interface, sinks))
            nests[-1].run()
    except NoCommonAxes as error:
        raise EmitFailure(AXES, error.reason)
    except UnreadableSize as error:
        raise EmitFailure(UNREADABLE_SIZE, str(error), error.symbols)
    variables = tuple(sizes.variables)
    graphs = []
    for body in nests:
        body.builder.sizes = variables
        graphs.append(body.builder.graph())
    inputs = tuple(KernelIO(dtype, sizes.local_dims(dims)) for _, dtype, dims in interface.inputs)
    outputs = tuple(KernelIO(dtype, dims) for (_, dtype, _), dims in zip(interface.outputs, out_dims))
    return FusedGraph(
        name,
        kind,
        inputs,
        outputs,
        variables,
        tuple(needed),
        tuple(graphs),
        tuple(n for _, n in interface.members),
    )


def _guards(sizes: RegionSizes, guards: Sequence[Guard]) -> List[Guard]:
    """The guards in the region's symbols, those left out that hold by their form or stand there already."""
    needed: Dict[tuple, Guard] = {}
    for guard in list(guards) + sizes.guards:
        if guard not in sizes.guards:
            guard = guard._replace(left=sizes.local(guard.left), right=sizes.local(guard.right))
        if guard.decided() is not True:
            needed.setdefault((guard.kind, frozenset((guard.left, guard.right))), guard)
    return list(needed.values())


class _Sinks(NamedTuple):
    """The numbers of the tensors that are stored: outputs, and workspaces between the loop nests."""

    outputs: Mapping[Tensor, int]
    workspaces: Mapping[Tensor, int]


def _handed_on(bodies: Sequence[Sequence[Store]]) -> Dict[Tensor, int]:
    """The tensors that one body stores and another one reads, numbered."""
    read = [loads_of([store.expr for store in stores]) for stores in bodies]
    found = [s.tensor for stores in bodies for s in stores if any(s.tensor in tensors for tensors in read)]
    return {tensor: number for number, tensor in enumerate(found)}


class _Body:
    def __init__(
        self,
        name: str,
        placed: Placement,
        axes: Dims,
        sizes: RegionSizes,
        interface: Interface,
        sinks: _Sinks,
    ):
        self.sinks = sinks
        self.parts = placed.parts
        self.placed = placed.layout._replace(sizes=axes)
        self.sizes = sizes
        self.builder = HintBuilder(name, [("z%d" % i, size) for i, size in enumerate(axes)])
        self.names = dict(interface.members)
        self.inputs = {tensor: (i, dtype) for i, (tensor, dtype, _) in enumerate(interface.inputs)}
        self.data: Dict[Tensor, TensorRef] = {}
        self.refs: Dict[int, TensorRef] = {}
        self.extent: Dict[TensorRef, Tuple[int, ...]] = {}

    def run(self) -> None:
        for spot in self.placed.spots:
            self.refs[id(spot)] = self.emit(spot)
        for part, spot in zip(self.parts, self.placed.stores):
            for store, numbers in (
                (self.builder.store, self.sinks.outputs),
                (self.builder.workspace_store, self.sinks.workspaces),
            ):
                if part.tensor in numbers:
                    self.store(part, spot, store, numbers[part.tensor])

    def store(self, part: Part, spot: Spot, store, index: int) -> None:
        ref, origin = self.refs[id(spot)], self.origin(part.tensor[0])
        whole = self.sizes.local_dims(part.whole)
        place = self.placed.place(self.local(spot.groups), whole)
        offset: Size = 0
        for begin, stride in zip(part.begin, place.dim_strides):
            offset = offset + self.sizes.local(begin) * stride
        store(ref, index, self.strides(place), origin, offset, self.placed.covered(spot))

    def origin(self, node: int) -> Tuple[str, ...]:
        return (self.names[node],) if node in self.names else ()

    def emit(self, spot: Spot) -> TensorRef:
        expr = spot.expr
        origin = self.origin(expr.origin)
        if isinstance(expr, Load):
            return self.load(spot, origin)
        if isinstance(expr, Constant):
            return self.builder.scalar(expr.value, expr.dtype, origin)
        if isinstance(expr, SizeValue):
            return self.builder.scalar(self.sizes.local(expr.size), expr.dtype, origin)
        args = [self.refs[id(arg)] for arg in spot.args]
        if isinstance(expr, Cast):
            ref = self.builder.op("Cast", args[0], dtype=expr.dtype, origin=origin)
            self.extent[ref] = self.extent.get(args[0], (0,) * len(self.placed.sizes))
            return ref
        if isinstance(expr, Gather):
            return self.gather(spot, args[0], origin)
        if isinstance(expr, Reduce):
            return self.reduce(spot, args[0], origin)
        if not isinstance(expr, Call):
            return args[0]  # dims are a matter of where it stands, not of what it is
        shaped = [self.extent[arg] for arg in args if arg in self.extent]
        extent = tuple(int(any(e)) for e in zip(*shaped)) or (0,) * len(self.placed.sizes)
        args = [self.widen(arg, extent, origin) if arg in self.extent else arg for arg in args]
        ref = self.builder.op(expr.type, *args, dtype=expr.dtype, origin=origin, **dict(expr.attrs))
        self.extent[ref] = extent
        return ref

    def reduce(self, spot: Spot, arg: TensorRef, origin) -> TensorRef:
        """The argument is widened to the reduced axes first: what does not extend along them counts as
        often."""
        (over,) = spot.args
        axes = [p for i in spot.expr.axes for p in self.placed.positions(over.groups[i])]
        before = self.extent.get(arg, (0,) * len(self.placed.sizes))
        extent = tuple(int(bool(e) or i in axes) for i, e in enumerate(before))
        if before != extent:
            arg = self.builder.broadcast_to(arg, extent, origin)
        ref = self.builder.reduce(spot.expr.type, arg, axes, spot.expr.dtype, origin)
        self.extent[ref] = tuple(0 if i in axes else e for i, e in enumerate(extent))
        return ref

    def local(self, groups: Groups) -> Groups:
        """The groups in the region's symbols."""
        if all(span.plain for group in groups for span in group):
            return groups
        return tuple(tuple(span.mapped(self.sizes.local) for span in group) for group in groups)

    def strides(self, place: Place) -> Dims:
        """0 along axes that the tensor does not extend along or that have one element."""
        return tuple(
            0 if s is None or is_one(a) else s for s, a in zip(place.strides, self.placed.sizes)
        )

    def data_of(self, tensor: Tensor, dtype: DType) -> TensorRef:
        if tensor not in self.data:
            self.data[tensor] = (
                self.builder.workspace(self.sinks.workspaces[tensor], dtype)
                if tensor in self.sinks.workspaces
                else self.builder.data(*self.inputs[tensor])
            )
        return self.data[tensor]

    def load(self, spot: Spot, origin) -> TensorRef:
        place = self.placed.place(self.local(spot.groups))
        extent = tuple(int(s is not None) for s in place.strides)
        data = self.data_of(spot.expr.tensor, spot.expr.dtype)
        ref = self.builder.load(data, extent, self.strides(place), place.offset, origin)
        self.extent[ref] = extent
        return ref

    def gather(self, spot: Spot, index: TensorRef, origin) -> TensorRef:
        """The gathered dim has a digit of its own: no axes, the index instead."""
        expr: Gather = spot.expr
        axis, rank = expr.axis, len(expr.args[0].dims)
        params = self.sizes.local_dims(expr.params)
        groups = spot.groups[:axis] + ((),) + spot.groups[axis + rank :]
        place = self.placed.place(self.local(groups), params)
        over = self.extent.get(index, (0,) * len(place.strides))
        extent = tuple(int(s is not None or bool(i)) for s, i in zip(place.strides, over))
        ref = self.builder.gather(
            self.data_of(expr.tensor, expr.dtype),
            index,
            extent,
            self.strides(place),
            place.dim_strides[axis],
            params[axis],
            place.offset,
            origin,
        )
        self.extent[ref] = extent
        return ref

    def widen(self, ref: TensorRef, extent: Tuple[int, ...], origin) -> TensorRef:
        if self.extent[ref] == extent:
            return ref
        wide = self.builder.broadcast_to(ref, extent, origin)
        self.extent[wide] = extent
        return wide


def is_one(size) -> bool:
    return isinstance(size, int) and size == 1
