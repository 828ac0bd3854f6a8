"""From a nest's body to its HintGraph and FusedGraph.

On entry: stores over loop expressions (ir/loop_ir.py) that have common axes, and the tensors that the fused
op reads. On exit: a complete FusedGraph, symbols named by the kernel's own inputs. Broadcast nodes stand as
late as possible: every node is computed over the axes that its operands extend along, and widened only where
it meets a larger one.
"""

from typing import Dict, List, NamedTuple, Sequence, Tuple

from tf_autofuse.fusion.reasons import AXES, Code, UNREADABLE_SIZE
from tf_autofuse.ir.asc_graph import FusedGraph, KernelIO, TensorRef
from tf_autofuse.ir.builder import HintBuilder
from tf_autofuse.ir.dtypes import DType
from tf_autofuse.ir.loop_ir import Call, Cast, Constant, Load, Store, Tensor
from tf_autofuse.ir.loop_layout import Layout, NoCommonAxes, Spot, layout
from tf_autofuse.lowering.symbols import Dims, RegionSizes, SymbolTable, UnreadableSize
from tf_autofuse.symbolic.guards import Guard


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
    stores: Sequence[Store],
    interface: Interface,
    guards: Sequence[Guard],
    table: SymbolTable,
) -> FusedGraph:
    """stores: in the order of interface.outputs. Raises EmitFailure."""
    try:
        placed = layout(stores)
        sizes = RegionSizes(table, [dims for _, _, dims in interface.inputs])
        axes = sizes.local_dims(placed.sizes)
        out_dims = [sizes.local_dims(dims) for _, _, dims in interface.outputs]
        needed = _guards(sizes, guards)
        body = _Body(name, placed, axes, sizes, interface)
        body.run(stores)
    except NoCommonAxes as error:
        raise EmitFailure(AXES, error.reason)
    except UnreadableSize as error:
        raise EmitFailure(UNREADABLE_SIZE, str(error), error.symbols)
    variables = tuple(sizes.variables)
    body.builder.sizes = variables
    inputs = tuple(KernelIO(dtype, sizes.local_dims(dims)) for _, dtype, dims in interface.inputs)
    outputs = tuple(KernelIO(dtype, dims) for (_, dtype, _), dims in zip(interface.outputs, out_dims))
    return FusedGraph(
        name,
        kind,
        inputs,
        outputs,
        variables,
        tuple(needed),
        (body.builder.graph(),),
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


class _Body:
    def __init__(self, name: str, placed: Layout, axes: Dims, sizes: RegionSizes, interface: Interface):
        self.placed = placed._replace(sizes=axes)
        self.sizes = sizes
        self.builder = HintBuilder(name, [("z%d" % i, size) for i, size in enumerate(axes)])
        self.names = dict(interface.members)
        self.inputs = {tensor: (i, dtype) for i, (tensor, dtype, _) in enumerate(interface.inputs)}
        self.data: Dict[Tensor, TensorRef] = {}
        self.refs: Dict[int, TensorRef] = {}
        self.extent: Dict[TensorRef, Tuple[int, ...]] = {}

    def run(self, stores: Sequence[Store]) -> None:
        for spot in self.placed.spots:
            self.refs[id(spot)] = self.emit(spot)
        for index, (store, spot) in enumerate(zip(stores, self.placed.stores)):
            self.builder.store(self.refs[id(spot)], index, origin=self.origin(store.tensor[0]))

    def origin(self, node: int) -> Tuple[str, ...]:
        return (self.names[node],) if node in self.names else ()

    def emit(self, spot: Spot) -> TensorRef:
        expr = spot.expr
        origin = self.origin(expr.origin)
        if isinstance(expr, Load):
            return self.load(spot, origin)
        if isinstance(expr, Constant):
            return self.builder.scalar(expr.value, expr.dtype, origin)
        args = [self.refs[id(arg)] for arg in spot.args]
        if isinstance(expr, Cast):
            ref = self.builder.op("Cast", args[0], dtype=expr.dtype, origin=origin)
            self.extent[ref] = self.extent.get(args[0], ())
            return ref
        if not isinstance(expr, Call):
            return args[0]  # dims are a matter of where it stands, not of what it is
        shaped = [self.extent[arg] for arg in args if arg in self.extent]
        extent = tuple(int(any(e)) for e in zip(*shaped))
        args = [self.widen(arg, extent, origin) if arg in self.extent else arg for arg in args]
        ref = self.builder.op(expr.type, *args, dtype=expr.dtype, origin=origin, **dict(expr.attrs))
        self.extent[ref] = extent
        return ref

    def load(self, spot: Spot, origin) -> TensorRef:
        local = spot
        if any(span.size is not None for group in spot.groups for span in group):
            local = Spot(
                spot.expr,
                tuple(
                    tuple(s if s.size is None else s._replace(size=self.sizes.local(s.size)) for s in group)
                    for group in spot.groups
                ),
            )
        strides = self.placed.load_strides(local)
        extent = tuple(int(s is not None) for s in strides)
        tensor = spot.expr.tensor
        if tensor not in self.data:
            self.data[tensor] = self.builder.data(*self.inputs[tensor])
        ref = self.builder.load(
            self.data[tensor],
            extent,
            tuple(0 if s is None or is_one(a) else s for s, a in zip(strides, self.placed.sizes)),
            origin=origin,
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
