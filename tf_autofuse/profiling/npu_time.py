"""The modelled time of one op on an NPU: by the performance model that tiling uses (tiling/cost_model.py,
`analytic`), or by running its kernel on the twin and simulating what it issued (`simulated`: slower, for it
is built first).

A fused op is scheduled and tiled for its real dims as its kernel is; a TF op that is not fused is modelled
like with like: as a kernel of its own, made by the same lowering (one_op.py). Matrix products and
convolutions run on the cube cores (cube_time.py); pooling and others are streams over their data
(heavy_ops.py). An op that only moves data and has no lowering is a copy of its output; views, constants and
the like have no kernel and take no time; what is none of these is not modelled.
"""

import os
from typing import Any, Callable, Dict, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from tf_autofuse.ascir_api.emitter import Emitter, Value
from tf_autofuse.build.kernels import BuildFailure, build_kernels
from tf_autofuse.codegen.ascendc.generate import CodegenRefusal
from tf_autofuse.codegen.targets import target_named
from tf_autofuse.config import Config
from tf_autofuse.ir import proto
from tf_autofuse.ir.asc_graph import FusedGraph, KernelIO, TensorAttr
from tf_autofuse.ir.builder import dense_strides
from tf_autofuse.ir.dtypes import BY_NAME
from tf_autofuse.ir.evaluate import bind_inputs
from tf_autofuse.machine import Machine
from tf_autofuse.ops.table import TF_OPS
from tf_autofuse.profiling.cube_time import Product, product_plan
from tf_autofuse.profiling.heavy_ops import (
    PRODUCTS,
    StreamCost,
    elements,
    lookup_of,
    product_of,
    size_of,
    stream_of,
)
from tf_autofuse.profiling.heavy_table import STREAMS
from tf_autofuse.profiling.kernel import model_kernel
from tf_autofuse.profiling.one_op import one_op
from tf_autofuse.profiling.records import Tensor
from tf_autofuse.runtime.library import KernelError
from tf_autofuse.runtime.registry import library_of
from tf_autofuse.schedule.impl_graph import ScheduleRefusal
from tf_autofuse.schedule.nests import Nest, nests_of
from tf_autofuse.schedule.schedule import schedule
from tf_autofuse.symbolic.guards import GuardFailure
from tf_autofuse.symbolic.size import evaluate
from tf_autofuse.tiling import cost_table
from tf_autofuse.tiling.cost_model import BLOCK_DIM
from tf_autofuse.tiling.formula import compiled, of, text, total
from tf_autofuse.tiling.model import TILES_PER_BLOCK, TilingModel, build_model
from tf_autofuse.tiling.solve import NoPlan, solve

#: Ops that leave no kernel behind on an NPU.
WITHOUT_KERNEL = frozenset("""
    _Arg _Retval _Recv _Send _HostRecv _HostSend Const Placeholder PlaceholderWithDefault NoOp Identity
    IdentityN Reshape Squeeze ExpandDims Shape ShapeN Rank Size StopGradient PreventGradient VariableV2
    Variable VarHandleOp ReadVariableOp VarIsInitializedOp IsVariableInitialized Enter RefEnter Exit
    RefExit Switch RefSwitch Merge RefMerge NextIteration RefNextIteration LoopCond ControlTrigger
    Assert Snapshot EnsureShape
""".split())
#: Ops without a lowering that only move data.
COPIES = frozenset("""
    ConcatV2 Concat Pack Unpack Split SplitV Slice StridedSlice Transpose GatherV2 Gather ResourceGather
    GatherNd Tile Pad PadV2 MirrorPad Assign AssignVariableOp ReverseV2 SpaceToBatchND BatchToSpaceND
    ReverseSequence
""".split())
_PIPES = ("mte2", "mte3", "vector")


class Modelled(NamedTuple):
    """A kernel on a chip. cycles: of the whole; pipes: busy cycles of one core's mte2, mte3 and vector, or of
    a cube core's mac, mte1, cube_mte2 and fixpipe; block_dim: cores; bytes_in, bytes_out: of GM, each byte
    that the kernel needs and makes once (the simulator: as often as they are moved); how: what the kernel
    was taken for ('fused', 'op', 'cube', 'stream', 'copy', 'none')."""

    how: str
    cycles: float = 0.0
    pipes: Tuple[Tuple[str, float], ...] = ()
    block_dim: int = 0
    bytes_in: int = 0
    bytes_out: int = 0

    @property
    def on_cube(self) -> bool:
        return self.how == "cube"

    def pipe(self, name: str) -> float:
        return dict(self.pipes).get(name, 0.0)

    def microseconds(self, machine: Machine) -> float:
        return self.cycles / machine.clock_mhz


NO_KERNEL = Modelled("none")


#: (a fused graph, the dims of its inputs, the machine) -> its kernel's time. Raises what UNKNOWN names.
TimeOf = Callable[[FusedGraph, Sequence[Sequence[int]], Machine], Modelled]
#: What a model raises for an op whose time can't be told.
UNKNOWN = (GuardFailure, ScheduleRefusal, NoPlan, CodegenRefusal, KernelError)


def analytic(fused: FusedGraph, dims: Sequence[Sequence[int]], machine: Machine) -> Modelled:
    return model_graph(fused, bind_inputs(fused, dims), machine)


def simulated(fused: FusedGraph, dims: Sequence[Sequence[int]], machine: Machine) -> Modelled:
    """The kernel is built for the twin (or found in the cache) and run once, on zeros."""
    bind_inputs(fused, dims)
    config = Config.from_sources(os.environ)
    ascend = target_named("ascend")
    sources = ascend.generate(fused, ascend.schedule(fused, machine), machine, config)
    (binary,) = build_kernels([sources], config)
    if isinstance(binary, BuildFailure):
        raise KernelError(binary.reason)
    inputs = [np.zeros(d, io.dtype.numpy) for d, io in zip(dims, fused.inputs)]
    found = model_kernel(
        library_of(binary, fused), inputs, [np.dtype(t.dtype.numpy) for t in fused.outputs], machine
    )
    busy = found.simulation
    pipes = tuple(
        (name, busy.mean_busy(p)) for name, p in (("mte2", "MTE2"), ("mte3", "MTE3"), ("vector", "V"))
    )
    return Modelled("fused", busy.cycles, pipes, found.tiling.block_dim, *found.moved)


MODELS: Dict[str, TimeOf] = {"analytic": analytic, "simulator": simulated}


def model_fused(
    asc_graph: bytes, inputs: Sequence[Tensor], machine: Machine, time_of: TimeOf = analytic
) -> Optional[Modelled]:
    """The time of a fused op for the dims of its inputs; None where it can't be told (unknown or refused
    dims)."""
    if any(t.dims is None for t in inputs):
        return None
    try:
        return time_of(proto.from_bytes(asc_graph), [t.dims for t in inputs], machine)
    except (proto.FormatError,) + UNKNOWN:
        return None


def model_op(
    op: str,
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    machine: Machine,
    time_of: TimeOf = analytic,
    attrs: Mapping[str, Any] = {},
    constants: Mapping[int, np.ndarray] = {},
) -> Optional[Modelled]:
    """The time of a TF op as a kernel of its own; None where it is not modelled. attrs, constants: of the
    node, as one_op takes them, as far as they are known. Products and streams are told by their formulas,
    whatever `time_of`."""
    if op in WITHOUT_KERNEL:
        return NO_KERNEL
    tensors = list(inputs) + list(outputs)
    if not outputs or any(t.dims is None or t.dtype not in BY_NAME for t in tensors):
        return None
    product = product_of(op, inputs, outputs)
    if product is not None:
        return _product_time(product, machine)
    lookup = lookup_of(op, inputs, outputs, machine)
    if lookup is not None:
        return _stream_time(lookup, inputs, outputs)
    one = one_op(op, inputs, outputs, attrs, constants)
    if one is None:
        stream = stream_of(op, inputs, outputs, attrs, machine)
        if stream is not None:
            return _stream_time(stream, inputs, outputs)
        if op not in COPIES:
            return None
    fused = _copy_graph(outputs) if one is None else one.fused
    dims = [io.dims for io in fused.inputs] if one is None else [inputs[i].dims for i in one.reads]
    try:
        return time_of(fused, dims, machine)._replace(how="copy" if one is None else "op")
    except UNKNOWN:
        return None


def is_described(op: str) -> bool:
    """Whether model_op asks for the attributes and constant operands of such an op."""
    return op in TF_OPS or op in PRODUCTS or op in STREAMS


def _product_time(product: Product, machine: Machine) -> Modelled:
    plan = product_plan(product, machine)
    if plan is None:
        return NO_KERNEL
    pipes = (("mac", plan.mac), ("mte1", plan.mte1), ("cube_mte2", plan.mte2), ("fixpipe", plan.fixpipe))
    written = product.batch * product.m * product.n * product.out_bytes
    return Modelled("cube", plan.cycles, pipes, plan.cores, product.once_bytes, written)


def _stream_time(stream: StreamCost, inputs, outputs) -> Modelled:
    pipes = (("mte2", stream.mte2), ("mte3", stream.mte3), ("vector", stream.vector))
    return Modelled(
        "stream",
        stream.cycles,
        tuple((name, cycles) for name, cycles in pipes if cycles),
        stream.cores,
        sum(map(size_of, inputs)) if stream.mte2 else 0,
        sum(map(size_of, outputs)),
    )


def model_graph(fused: FusedGraph, values: Mapping[str, int], machine: Machine) -> Modelled:
    """The kernel of a FusedGraph for the values of its symbols. Raises ScheduleRefusal, NoPlan."""
    impls = tuple(impl for graph in fused.graphs for impl in schedule(graph, machine))
    chosen = [_cheapest(nests, values, machine) for nests in _by_graph(nests_of(fused, impls))]
    busy: Dict[str, float] = {}
    for plan in chosen:
        for pipe, cycles in plan.pipes:
            busy[pipe] = busy.get(pipe, 0.0) + cycles
    # Several nests are one launch.
    cycles = sum(p.cycles for p in chosen) - cost_table.LAUNCH * sum(p.extra_launches for p in chosen)
    cycles -= cost_table.LAUNCH * max(0, len([p for p in chosen if p.block_dim]) - 1)
    return Modelled(
        "fused",
        cycles,
        tuple((p, busy[p]) for p in _PIPES if p in busy),
        max(p.block_dim for p in chosen),
        *_moved(fused, values),
    )


def _moved(fused: FusedGraph, values) -> Tuple[int, int]:
    """Bytes that the kernel reads of its inputs (each element that its Loads address, once) and writes."""

    def count(io: KernelIO) -> int:
        elements = 1
        for dim in io.dims:
            elements *= evaluate(dim, values)
        return elements * io.dtype.bytes

    read = {n.attr("index") for g in fused.graphs for n in g.of_type("Data")}
    return (sum(count(io) for i, io in enumerate(fused.inputs) if i in read), sum(map(count, fused.outputs)))


class _Plan(NamedTuple):
    cycles: float
    pipes: Tuple[Tuple[str, float], ...]
    block_dim: int
    extra_launches: int


def _by_graph(nests: Sequence[Nest]):
    graphs: Dict[int, Dict[str, list]] = {}
    for nest in nests:
        graphs.setdefault(nest.graph, {}).setdefault(nest.way, []).append(nest)
    return [graphs[g] for g in sorted(graphs)]


def _cheapest(ways: Mapping[str, Sequence[Nest]], values: Mapping[str, int], machine: Machine) -> _Plan:
    """The plan of one graph, as the kernel's host code chooses it. Raises NoPlan."""
    if "empty" in ways and evaluate(ways["empty"][0].impls[0].reduced_size, values) == 0:
        return _planned(ways["empty"], values, machine)
    plans = []
    for way in ("whole", "parts"):
        if way in ways:
            try:
                plans.append(_planned(ways[way], values, machine))
            except NoPlan:
                continue
    if not plans:
        raise NoPlan("no tiling for %s" % (values,))
    return min(plans, key=lambda p: p.cycles)


def _planned(nests: Sequence[Nest], values: Mapping[str, int], machine: Machine) -> _Plan:
    known, cycles, busy, blocks = dict(values), 0.0, {}, 0
    for nest in nests:
        models = [build_model(impl) for impl in nest.impls]
        parts = nest.impls[0].parts_symbol
        plan = solve(models, known, machine)
        if parts:
            cut = evaluate(nest.impls[0].cut_size, known)
            known[parts] = -(-cut // max(plan.tile, 1))
        blocks = max(blocks, plan.block_dim)
        if plan.block_dim == 0:
            continue
        cycles += plan.cost
        model = next(m for m in models if m.key == plan.key)
        for pipe, spent in _busy(model, known, plan).items():
            busy[pipe] = busy.get(pipe, 0.0) + spent
    return _Plan(cycles, tuple(busy.items()), blocks, len(nests) - 1 if blocks else 0)


def _busy(model: TilingModel, values: Mapping[str, int], plan) -> Dict[str, float]:
    """Busy cycles of each pipe in one block: what its instructions take, without the pipe's start."""
    names = tuple(values) + (model.tile_symbol, TILES_PER_BLOCK, BLOCK_DIM)
    arguments = tuple(values.values()) + (plan.tile, plan.tiles_per_block, plan.block_dim)
    found = {}
    for cost in model.pipes:
        once = total([of(0.0)] + [cycles for _, cycles in cost.hoisted])
        body = total([of(0.0)] + [cycles for _, cycles in cost.body])
        found[cost.pipe] = float(compiled(text(once), names)(*arguments)) + plan.tiles_per_block * float(
            compiled(text(body), names)(*arguments)
        )
    return found


def _io(tensor: Tensor) -> KernelIO:
    return KernelIO(BY_NAME[tensor.dtype], tuple(tensor.dims))


def _loaded(emitter: Emitter, index: int, tensor: Tensor) -> Optional[Value]:
    dtype, shift = BY_NAME[tensor.dtype], len(emitter.axes) - len(tensor.dims)
    if shift < 0:
        return None
    repeats = (1,) * shift + tuple(tensor.dims)
    if any(r not in (1, a.size) for r, a in zip(repeats, emitter.axes)):
        return None
    data = emitter.add("Data", (), TensorAttr(dtype), index=index)
    load = emitter.add("Load", (data,), emitter.view(dtype, repeats), offset=0)
    return Value(load, dtype, repeats)


def _store(emitter: Emitter, value: Value) -> None:
    stored = emitter.add(
        "Store",
        (value.ref,),
        emitter.view(value.dtype, value.repeats, dense_strides(value.repeats)),
        offset=0,
    )
    emitter.add("Output", (stored,), TensorAttr(value.dtype), index=0)


def _copy_graph(outputs: Sequence[Tensor]) -> FusedGraph:
    """A copy of as many bytes as all outputs have."""
    dtype = BY_NAME[outputs[0].dtype]
    count = sum(map(elements, outputs))
    whole = Tensor(outputs[0].dtype, (count,))
    emitter = Emitter("copy", [("z0", count)])
    _store(emitter, emitter.broadcast(_loaded(emitter, 0, whole), (count,)))
    return FusedGraph(
        "copy",
        "pointwise",
        (KernelIO(dtype, (count,)),),
        (KernelIO(dtype, (count,)),),
        (),
        (),
        (emitter.graph(),),
    )
