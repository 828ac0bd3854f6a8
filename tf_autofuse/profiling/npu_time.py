"""The modelled time of one op on an NPU: by the performance model that tiling uses (tiling/cost_model.py,
`analytic`), or by running its kernel on the twin and simulating what it issued (`simulated`: slower, for it
is built first).

A fused op is scheduled and tiled for its real dims as its kernel is; a TF op that is not fused is modelled
like with like: as a kernel of its own with one loop nest, made by the same lowering of the op table. An op
that only moves data and has no lowering is modelled as a copy of its output; views, constants and the like
have no kernel and take no time; what is none of these (matrix products, convolutions, ...) is not modelled.
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
from tf_autofuse.ir.dtypes import BY_NAME, FLOAT32, DType
from tf_autofuse.ir.evaluate import bind_inputs
from tf_autofuse.machine import Machine, usable_ub
from tf_autofuse.ops.schema import Node, OpHandler, Refusal
from tf_autofuse.ops.table import ASC_OPS, TF_OPS
from tf_autofuse.profiling.kernel import model_kernel
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
from tf_autofuse.tiling.solve import NoPlan, Solver

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
    """A kernel on a chip. cycles: of the whole; pipes: busy cycles of MTE2, MTE3 and V; bytes_in,
    bytes_out: moved between GM and UB; how: what the kernel was taken for ('fused', 'op', 'copy',
    'none')."""

    how: str
    cycles: float = 0.0
    pipes: Tuple[Tuple[str, float], ...] = ()
    block_dim: int = 0
    bytes_in: int = 0
    bytes_out: int = 0

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
    op: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor], machine: Machine, time_of: TimeOf = analytic
) -> Optional[Modelled]:
    """The time of a TF op as a kernel of its own; None where it is not modelled."""
    if op in WITHOUT_KERNEL:
        return NO_KERNEL
    tensors = list(inputs) + list(outputs)
    if not outputs or any(t.dims is None or t.dtype not in BY_NAME for t in tensors):
        return None
    fused, how = _op_graph(op, inputs, outputs[0]), "op"
    if fused is None and op in COPIES:
        fused, how = _copy_graph(outputs), "copy"
    if fused is None:
        return None
    try:
        return time_of(fused, [io.dims for io in fused.inputs], machine)._replace(how=how)
    except UNKNOWN:
        return None


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
        symbols = tuple(known)
        plan = Solver(models, symbols).plan(known, machine.vector_cores, usable_ub(machine, False))
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
    """Busy cycles of each pipe in one block."""
    names = tuple(values) + (model.tile_symbol, TILES_PER_BLOCK, BLOCK_DIM)
    arguments = tuple(values.values()) + (plan.tile, plan.tiles_per_block, plan.block_dim)
    found = {}
    for cost in model.pipes:
        once = total([cost.start] + [cycles for _, cycles in cost.hoisted])
        body = total([of(0.0)] + [cycles for _, cycles in cost.body])
        found[cost.pipe] = float(compiled(text(once), names)(*arguments)) + plan.tiles_per_block * float(
            compiled(text(body), names)(*arguments)
        )
    return found


class _OneOp(OpHandler):
    """Runs a lowering into an Emitter: the nest of one op."""

    def __init__(self, emitter: Emitter, ranks: Mapping[Any, int]):
        self.emit, self.ranks = emitter, dict(ranks)

    def constant(self, value, dtype: DType):
        return self.emit.constant(value, dtype)

    def cast(self, v: Value, dtype: DType):
        return self.emit.cast(v, dtype)

    def call(self, asc_type: str, *values: Value, dtype: Optional[DType] = None, **attrs):
        if dtype is None and ASC_OPS[asc_type].result == "bool":
            dtype = BY_NAME["bool"]
        return self.emit.call(asc_type, *values, dtype=dtype, **attrs)

    def dtype_of(self, v: Value) -> DType:
        return v.dtype

    def known_value(self, v: Value):
        return None

    def rank_of(self, v: Value) -> int:
        return self.ranks.get(v.ref, len(self.emit.axes) if v.repeats is not None else 0)

    def append_dims(self, v: Value, count: int):
        if count:
            raise Refusal("dims are appended")
        return v

    def require_equal_dim(self, v: Value, i: int, w: Value, j: int) -> None:
        return None


def _io(tensor: Tensor) -> KernelIO:
    return KernelIO(BY_NAME[tensor.dtype], tuple(tensor.dims))


def _op_graph(op: str, inputs: Sequence[Tensor], output: Tensor) -> Optional[FusedGraph]:
    """The nest of one TF op with a lowering; None where it has none for these operands."""
    row = TF_OPS.get(op)
    if row is None or row.lower is None or row.kind != "elementwise":
        return None
    tensors = list(inputs if row.inputs < 0 else inputs[: row.inputs])
    emitter = Emitter(op, [("z%d" % i, d) for i, d in enumerate(output.dims)] or [("z0", 1)])
    loaded, ranks = [], {}
    for index, tensor in enumerate(tensors):
        value = _loaded(emitter, index, tensor)
        if value is None:
            return None
        ranks[value.ref] = len(tensor.dims)
        loaded.append(
            emitter.cast(value, FLOAT32)
            if value.dtype.is_floating and value.dtype.bytes == 2 and op != "Cast"
            else value
        )
    dtype = BY_NAME[output.dtype]
    node = Node(op, [BY_NAME[t.dtype] for t in tensors], (dtype,))
    try:
        result = row.lower(_OneOp(emitter, ranks), node, *loaded)
    except Exception:  # an op whose attributes the profile does not tell
        return None
    full = tuple(a.size for a in emitter.axes)
    _store(emitter, emitter.broadcast(emitter.cast(result, dtype), full))
    return FusedGraph(
        op, "pointwise", tuple(map(_io, tensors)), (_io(output),), (), (), (emitter.graph(),), (op,)
    )


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
    count = 0
    for tensor in outputs:
        elements = 1
        for dim in tensor.dims:
            elements *= dim
        count += elements
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
