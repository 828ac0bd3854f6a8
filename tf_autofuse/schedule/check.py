"""The schedule's own verifier: what codegen and tiling rely on, checked again on the finished ImplGraph.

It recomputes from nodes and plans alone, not from the state that made them. A failure is a bug in schedule/,
so it is an error of its own kind and names node and rule.
"""
from typing import Dict, List

from tf_autofuse.ir.asc_graph import Position, TensorRef
from tf_autofuse.machine import Machine
from tf_autofuse.schedule.axes import is_reduction
from tf_autofuse.schedule.impl_graph import (BroadcastPlan, ElementPlan, GatherPlan, ImplGraph, PadPlan,
                                             ReducePlan,
                                             TransferPlan, TransposePlan)
from tf_autofuse.symbolic.size import is_static, known_equal

_FOREVER = 1 << 30


class ScheduleError(AssertionError):
    """An ImplGraph that breaks the contract at the head of schedule/impl_graph.py."""


def check(impl: ImplGraph, machine: Machine) -> ImplGraph:
    """The ImplGraph itself. Raises ScheduleError."""
    _check_order(impl)
    _check_plans(impl, machine)
    _check_memory(impl, machine)
    return impl


def _fail(impl: ImplGraph, node: str, text: str):
    raise ScheduleError("%s, key %d, %s: %s" % (impl.graph.name, impl.tiling_key, node, text))


def _check_order(impl: ImplGraph) -> None:
    seen = set()
    in_loop = False
    stored = set()
    planned = {name for name, _ in impl.plans}
    for n in impl.graph.nodes:
        for r in n.inputs:
            if r.node not in seen:
                _fail(impl, n.name, "reads %s before it is made" % r.node)
            if r.node in stored and n.type not in ("Store", "Output", "Workspace"):
                _fail(impl, n.name, "reads %s after its Store" % r.node)
        seen.add(n.name)
        if n.type == "Store":
            stored.add(n.inputs[0].node)
        if n.name not in planned:
            continue
        hoisted = n.sched.loop_axis == -1
        if hoisted and in_loop:
            _fail(impl, n.name, "stands outside of the loop but after a node of the loop")
        made = [impl.graph.node(r.node) for r in n.inputs if r.node in planned]
        if hoisted and any(m.sched.loop_axis != -1 for m in made):
            _fail(impl, n.name, "is hoisted but reads a tensor of the loop")
        if n.type == "Store" and (hoisted or impl.graph.node(n.inputs[0].node).sched.loop_axis == -1):
            _fail(impl, n.name, "its tensor is not made in the loop")
        in_loop = in_loop or not hoisted


def _check_plans(impl: ImplGraph, machine: Machine) -> None:
    kinds = {"Load": TransferPlan, "Store": TransferPlan, "Broadcast": BroadcastPlan, "RemovePad": PadPlan,
             "Transpose": TransposePlan, "Gather": GatherPlan}
    for n in impl.graph.nodes:
        if n.type in ("Data", "Scalar", "Output", "Workspace"):
            continue
        plan = impl.plan(n)
        if not isinstance(plan, ReducePlan if is_reduction(n) else kinds.get(n.type, ElementPlan)):
            _fail(impl, n.name, "has a %s" % type(plan).__name__)
        if isinstance(plan, TransferPlan):
            _check_transfer(impl, n, plan, machine)
        if isinstance(plan, TransposePlan):
            for stride in (plan.src_stride, plan.dst_stride):
                if is_static(stride) and stride * n.y.dtype.bytes % machine.ub_block:
                    _fail(impl, n.name, "rows %s elements apart are not at 32 B" % stride)
        if isinstance(plan, ReducePlan):
            for stride in (plan.stride,) + tuple(d.dst_stride for d in plan.outer):
                if is_static(stride) and stride * n.y.dtype.bytes % machine.ub_block:
                    _fail(impl, n.name, "rows %s elements apart are not at 32 B" % stride)
        if isinstance(plan, BroadcastPlan):
            row = {"rows": plan.inner, "blocks": plan.inner, "columns": plan.extent}.get(plan.kind, 0)
            if is_static(row) and row * n.y.dtype.bytes % machine.ub_block:
                _fail(impl, n.name, "rows of %s elements are no whole 32 B blocks" % row)
            if plan.kind in ("fill", "rows") and plan.outer:
                _fail(impl, n.name, "a %s broadcast with outer loops" % plan.kind)
        if isinstance(plan, ElementPlan) and n.type != "Copy":
            shapes = {impl.graph.tensor(r).vectorized_strides for r in n.inputs
                      if impl.graph.node(r.node).type != "Scalar"}
            if shapes and shapes != {n.y.vectorized_strides}:
                _fail(impl, n.name, "its tensors differ in layout")


def _check_transfer(impl: ImplGraph, node, plan: TransferPlan, machine: Machine) -> None:
    if not 1 <= len(plan.dims) <= 4:
        _fail(impl, node.name, "a copy of %d dims" % len(plan.dims))
    wanted = {"dense": 1, "rows": 2}.get(plan.kind, len(plan.dims))
    if len(plan.dims) != wanted:
        _fail(impl, node.name, "a %s copy of %d dims" % (plan.kind, len(plan.dims)))
    if plan.kind != "tile":
        inner = plan.dims[-1]
        if not (known_equal(inner.gm_stride, 1) and known_equal(inner.ub_stride, 1)):
            _fail(impl, node.name, "a %s copy whose inner strides are not 1" % plan.kind)
    for d in plan.dims[:-1]:
        if is_static(d.ub_stride) and d.ub_stride * node.y.dtype.bytes % machine.ub_block:
            _fail(impl, node.name, "UB rows %s elements apart are not at 32 B" % d.ub_stride)


def _check_memory(impl: ImplGraph, machine: Machine) -> None:
    at = {n.name: i for i, n in enumerate(impl.graph.nodes)}
    last: Dict[TensorRef, int] = {}
    for n in impl.graph.nodes:
        for r in n.inputs:
            last[r] = at[n.name]
            made = impl.graph.node(r.node)
            if made.type not in ("Data", "Scalar",
                                 "Workspace") and made.sched.loop_axis == -1 != n.sched.loop_axis:
                last[r] = _FOREVER
    stored = {n.inputs[0].node for n in impl.graph.of_type("Store")}
    owners: Dict[object, List[TensorRef]] = {}
    for n in impl.graph.nodes:
        if n.type in ("Data", "Scalar", "Output", "Workspace", "Store"):
            continue
        memory = n.y.memory
        queue = Position.VECOUT if n.name in stored else Position.VECCALC
        enters = n.type == "Load" or (n.type == "Gather" and impl.plan(n).kind == "rows")
        position = Position.VECIN if enters else queue
        if memory is None or memory.position is not position:
            _fail(impl, n.name, "lives in %s" % (memory,))
        container = impl.container(TensorRef(n.name))
        if TensorRef(n.name) not in container.tensors:
            _fail(impl, n.name, "is not listed in %s" % container.name)
        for other in owners.setdefault((memory.position, memory.container), []):
            end = last.get(other, at[other.node])
            in_place = end == at[n.name] and other in n.inputs and position is Position.VECCALC
            if end > at[n.name] or (end == at[n.name] and not in_place):
                _fail(impl, n.name, "shares %s with %s, which still lives" % (container.name, other.node))
        owners[memory.position, memory.container].append(TensorRef(n.name))
    for position in (Position.VECIN, Position.VECOUT):
        buffers = sum(c.buf_num for c in impl.containers if c.position is position)
        if buffers > machine.queue_buffers:
            _fail(impl, position.value, "%d queue buffers, event ids for %d" % (
                buffers, machine.queue_buffers))
    if sum(c.buf_num for c in impl.containers) + 1 > machine.max_buffers:
        _fail(impl, "UB", "more than %d buffers" % machine.max_buffers)
