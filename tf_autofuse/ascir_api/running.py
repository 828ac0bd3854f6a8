"""Graphs of the API computed: on numpy, and by their generated kernel on the host twin. An addition to
upstream's API.

On entry a HintGraph or FusedGraph and numpy inputs in the order of the graph's indexes (Data and
ScalarData; where indexes are not set or not unique, in node order); the graph is not changed. On exit one
array per output."""

import os
from typing import Any, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from tf_autofuse.ascir_api import dtypes, platform
from tf_autofuse.ascir_api.convert import ConversionError, Converted, convert
from tf_autofuse.ascir_api.graphs import FusedGraph, GraphState, HintGraph, copy_state, state_of
from tf_autofuse.ascir_api.inference import infer_node
from tf_autofuse.build.kernels import BuildFailure, build_kernels
from tf_autofuse.codegen.sources import KernelSources
from tf_autofuse.codegen.targets import target_named
from tf_autofuse.config import Config
from tf_autofuse.ir.evaluate import evaluate_fused
from tf_autofuse.ir.verify import verify_fused
from tf_autofuse.runtime import registry


class BuildError(Exception):
    """The kernel can't be built; the text says why and what to do."""


class Compiled(NamedTuple):
    """A graph with everything that was made of it. scheduled: what the target's schedule made of its
    nests."""

    converted: Converted
    scheduled: Any
    sources: KernelSources


def numbered(state: GraphState) -> None:
    """Gives Data and Output the indexes 0, 1, ... in node order, each type for itself."""
    for type_ in ("Data", "Output"):
        for number, node in enumerate(state.of_type(type_)):
            node.attributes["index"] = number


def prepared(graph) -> GraphState:
    """A copy of the graph with dtypes inferred where they are open. Raises TypeError for another object,
    and what inference raises."""
    if not isinstance(graph, (HintGraph, FusedGraph)):
        raise TypeError("a HintGraph or FusedGraph is needed, not %s" % type(graph).__name__)
    state = copy_state(state_of(graph))
    for node in state.nodes:
        if node.subgraph is not None:
            node.subgraph = copy_state(node.subgraph)
            infer_open(node.subgraph)
    for type_ in ("Data", "Output"):
        indexes = [n.attributes.get("index", 0) for n in state.of_type(type_)]
        if len(set(indexes)) != len(indexes):
            numbered(state)
    infer_open(state)
    return state


def infer_open(state: GraphState) -> None:
    """Infers the dtypes of nodes that have none yet."""
    for node in state.nodes:
        if node.row is not None and any(t.dtype == dtypes.UNDEFINED for t in node.outputs):
            if all(link is not None and link[0].row is not None for link in node.inputs):
                infer_node(node)


def compiled(converted: Converted, target_name: str = "ascend", config: Optional[Config] = None) -> Compiled:
    """Schedules the nests and generates the kernel. Raises what the stages raise."""
    target = target_named(target_name)
    config = config or Config.from_sources(os.environ)
    machine = platform.machine() if target_name == "ascend" else target.machine(config)
    scheduled = target.schedule(converted.fused, machine)
    return Compiled(converted, scheduled, target.generate(converted.fused, scheduled, machine, config))


def _arguments(converted: Converted, inputs: Sequence[Any]) -> List[np.ndarray]:
    """The inputs as arrays of the ranks that the fused graph has. Raises ValueError for another number of
    them, ConversionError where a symbol's value is missing."""
    if len(inputs) != converted.inputs:
        raise ValueError("%d inputs, not %d" % (len(inputs), converted.inputs))
    arrays = [np.asarray(a) for a in inputs]
    # A tensor whose shape the graph does not show is any dense array with as many elements.
    for number, io in enumerate(converted.fused.inputs[: converted.inputs]):
        if len(io.dims) == 1 and arrays[number].ndim != 1:
            arrays[number] = np.ascontiguousarray(arrays[number]).reshape(-1)
    if converted.hidden:
        raise ConversionError(
            "the values of %s are needed: no dim of an input shows them; give sizes={...}"
            % ", ".join(converted.hidden)
        )
    return arrays


def evaluate(graph, inputs: Sequence[Any], sizes: Optional[Mapping[str, int]] = None) -> List[np.ndarray]:
    """See tf_autofuse.ascir_api.evaluate."""
    converted = convert(prepared(graph), sizes)
    return evaluate_fused(converted.fused, _arguments(converted, inputs))


def run(
    graph, inputs: Sequence[Any], sizes: Optional[Mapping[str, int]] = None, target: str = "ascend"
) -> List[np.ndarray]:
    """See tf_autofuse.ascir_api.run. target: 'ascend' (on the twin) or another target of this
    installation."""
    outputs, _ = run_with_info(graph, inputs, sizes, target)
    return outputs


def run_with_info(
    graph, inputs: Sequence[Any], sizes: Optional[Mapping[str, int]] = None, target: str = "ascend"
) -> Tuple[List[np.ndarray], registry.RunInfo]:
    """As `run`, with how the launch was planned."""
    converted = convert(prepared(graph), sizes)
    arrays = _arguments(converted, inputs)
    verify_fused(converted.fused)
    config = Config.from_sources(os.environ)
    made = compiled(converted, target, config)
    (binary,) = build_kernels([made.sources], config)
    if isinstance(binary, BuildFailure):
        raise BuildError("%s; %s\n%s" % (binary.reason, binary.remedy, binary.log))
    return registry.run(binary, converted.fused, arrays, platform.machine() if target == "ascend" else None)
