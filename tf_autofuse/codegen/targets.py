"""The targets, each as one plug-in: what turns a FusedGraph into the sources of a kernel.

A target says for which machine it plans, how it schedules, what it prints, and by its sources' `toolchain`
how build makes a library of them. On entry a verified FusedGraph; on exit KernelSources with the interface of
codegen/abi.py. Whatever else depends on the target asks the op table by the target's name; compiler, runtime
and frontend name none.
"""
from typing import Any, Callable, Dict, NamedTuple, Tuple

from tf_autofuse.codegen.ascendc.generate import generate as generate_ascendc
from tf_autofuse.codegen.host.generate import generate as generate_host
from tf_autofuse.codegen.sources import KernelSources
from tf_autofuse.config import Config
from tf_autofuse.ir.asc_graph import FusedGraph
from tf_autofuse.ir.verify_impl import verify_impl
from tf_autofuse.machine import Machine, host_machine, machine_for
from tf_autofuse.schedule.host_program import host_program
from tf_autofuse.schedule.impl_graph import ImplGraph
from tf_autofuse.schedule.schedule import schedule as schedule_for_ub


class Target(NamedTuple):
    """machine(config): the record that kernels are planned for. schedule(fused, machine): an immutable value
    that only this target reads; raises ScheduleRefusal. verify(scheduled): checks its invariants, raises on a
    breach. generate(fused, scheduled, machine, config): raises CodegenRefusal."""

    name: str
    machine: Callable[[Config], Any]
    schedule: Callable[[FusedGraph, Any], Any]
    verify: Callable[[Any], None]
    generate: Callable[[FusedGraph, Any, Any, Config], KernelSources]


def _ascend_schedule(fused: FusedGraph, machine: Machine) -> Tuple[ImplGraph, ...]:
    return tuple(impl for graph in fused.graphs for impl in schedule_for_ub(graph, machine))


def _ascend_verify(impls: Tuple[ImplGraph, ...]) -> None:
    for impl in impls:
        verify_impl(impl.graph)


ASCEND = Target("ascend", lambda config: machine_for(config.soc_version), _ascend_schedule, _ascend_verify,
                generate_ascendc)

HOST = Target("host", lambda config: host_machine(), host_program, lambda program: None, generate_host)

_TARGETS: Dict[str, Target] = {t.name: t for t in (ASCEND, HOST)}


def target_named(name: str) -> Target:
    """Raises ValueError for a name that no target has."""
    if name not in _TARGETS:
        raise ValueError("unknown target %r; known: %s" % (name, ", ".join(_TARGETS)))
    return _TARGETS[name]
