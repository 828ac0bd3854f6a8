"""Autofuser, Schedule and CodeGen: the API's way from a graph to sources, through this compiler's own stages.

What holds beyond the API's words: a failure has its reason as `__cause__` of the exception (the API's own
text is short); `FusedScheduledResult` has `fused` (this project's FusedGraph) and `scheduled` (its
ImplGraphs), both None where scheduling failed. Kernels are for the 2201 architecture."""

from typing import Any, Dict, List, Optional, Tuple

from tf_autofuse.ascir_api import platform, products
from tf_autofuse.ascir_api.convert import Converted, convert, input_keys
from tf_autofuse.ascir_api.graph_scripts import dump_stage
from tf_autofuse.ascir_api.graphs import (
    BUFFERS,
    FusedGraph,
    GraphState,
    HintComputeGraph,
    HintGraph,
    Node,
    ShapeInfo,
    state_of,
)
from tf_autofuse.ascir_api.nest import live_nodes
from tf_autofuse.ascir_api.operators_table import V1
from tf_autofuse.ascir_api.project_sizes import ConversionError
from tf_autofuse.ascir_api.running import Compiled, compiled, infer_open, numbered
from tf_autofuse.ir.verify import verify_fused

_CUBE_TYPES = ("MatMul", "MatMulBias", "BatchMatMul", "BatchMatMulBias")


class AutofuserOptions:
    """tiling_lib_path, tiling_lib_codegen_symbol: a library that would write the tiling code; only the
    built-in one is used here. graph_type: 0 AscGraph, 1 FusedAscBackend, 2 FusedAscGraph."""

    __slots__ = ("_graph_type",)

    def __init__(self, *ignored, **options):
        graph_type = options.get("graph_type", 0)
        self._graph_type = int(graph_type) if isinstance(graph_type, int) else 0


class FusedScheduledResult:
    """What scheduling made of a graph. Made by schedule functions only."""

    __slots__ = ("_name", "_inputs", "_outputs", "_cube", "_converted", "_compiled")

    def __init__(self, *arguments, **more):
        raise TypeError("cannot create 'FusedScheduledResult' instances")

    def get_name(self) -> str:
        return self._name

    def get_input_num(self) -> int:
        return self._inputs

    def get_output_num(self) -> int:
        return self._outputs

    def is_cube_type(self) -> bool:
        return self._cube is not None

    def is_conv_type(self) -> bool:
        return False

    def get_cube_attributes(self) -> Dict[str, Dict[str, Any]]:
        return {} if self._cube is None else {"cube_attributes": _cube_attributes(self._cube)}

    @property
    def fused(self):
        return self._converted.fused if self._converted else None

    @property
    def scheduled(self):
        return self._compiled.scheduled if self._compiled else None


def _cube_attributes(node: Node) -> Dict[str, Any]:
    from tf_autofuse.ir.dtypes import BY_ASCIR

    batch, get = node.type.startswith("Batch"), node.attributes.get
    first, second = ("adj_x1", "adj_x2") if batch else ("transpose_x1", "transpose_x2")
    dtype = BY_ASCIR.get(node.outputs[0].dtype)
    return {
        "has_relu": bool(get("has_relu", 0)),
        "is_batch": batch,
        "transpose_x1": bool(get(first, 0)),
        "transpose_x2": bool(get(second, 0)),
        "offset_x": get("offset_x", 0),
        "enable_hf32": bool(get("enable_hf32", 0)) if batch else get("enable_hf32", 0),
        "type_size": dtype.bytes if dtype else 0,
        "input_num": len(node.inputs),
    }


def _result(
    name: str, state: GraphState, converted: Optional[Converted] = None, made: Optional[Compiled] = None
) -> FusedScheduledResult:
    result = FusedScheduledResult.__new__(FusedScheduledResult)
    result._name, result._converted, result._compiled = name, converted, made
    result._inputs = len(input_keys(state))
    result._outputs = len(
        {n.attributes.get("index", 0) for n in state.nodes if n.type in ("Output", "NetOutput")}
    )
    graphs = [state] + [n.subgraph for n in state.nodes if n.subgraph is not None]
    cubes = [n for g in graphs for n in g.nodes if n.type in _CUBE_TYPES]
    result._cube = cubes[0] if cubes else None
    return result


def complete(state: GraphState) -> None:
    """What scheduling does to a HintGraph: indexes in node order, nodes that no Output needs removed
    (inputs stay), memory nodes marked as such."""
    numbered(state)
    live = {id(n) for n in live_nodes(state)}
    state.nodes = [n for n in state.nodes if id(n) in live or n.type in ("Data", "ScalarData")]
    for node in state.nodes:
        node.is_buffer = node.type in BUFFERS


def _scheduled(state: GraphState, name: str) -> FusedScheduledResult:
    """Raises what the stages raise."""
    arch = platform.current().soc
    if arch is not None and arch not in V1:
        raise ConversionError("no kernels are generated for the architecture %r, only for %s" % (arch, V1[0]))
    for graph in [state] + [n.subgraph for n in state.nodes if n.subgraph is not None]:
        infer_open(graph)
    converted = convert(state)
    verify_fused(converted.fused)
    return _result(name, state, converted, compiled(converted))


def _schedule_graph(graph, graph_type: int) -> FusedScheduledResult:
    """Raises RuntimeError with the API's text."""
    state = state_of(graph)
    dump_stage(state, "before_schedule")
    try:
        if isinstance(graph, HintGraph):
            complete(state)
        elif not any(n.subgraph is not None for n in state.nodes):
            raise ConversionError("graph %s has no AscGraph or AscBackend" % state.name)
        hidden_name = graph_type != 0 and isinstance(graph, HintGraph)
        result = _scheduled(state, "" if hidden_name else state.name)
        dump_stage(state, "after_schedule")
        return result
    except Exception as error:
        dump_stage(state, "failed")
        raise RuntimeError("Optimize fail") from error


def _texts(result: FusedScheduledResult) -> Tuple[str, str, str]:
    if result._compiled is None:
        raise ConversionError("scheduling failed; there is nothing to generate from")
    return products.texts(result._compiled)


class Autofuser:
    """schedule and codegen for one graph."""

    def __init__(self, *arguments, **ignored):
        if len(arguments) != 1 or not isinstance(arguments[0], AutofuserOptions):
            raise TypeError("Autofuser requires AutofuserOptions")
        self._options = arguments[0]

    def schedule(self, *arguments, **ignored) -> FusedScheduledResult:
        """Raises RuntimeError('Optimize fail') with the reason as its cause."""
        if len(arguments) != 1:
            raise ValueError("autofuse input args error")
        if not isinstance(arguments[0], (HintGraph, FusedGraph)):
            raise RuntimeError("schedule requires hint graph or fused graph")
        return _schedule_graph(arguments[0], self._options._graph_type)

    def codegen(self, *arguments, **ignored) -> Tuple[str, str, str]:
        """(tiling_data, tiling, kernel)"""
        if len(arguments) != 1:
            raise ValueError("codegen requires a list of schedule result")
        if not isinstance(arguments[0], FusedScheduledResult):
            raise TypeError("codegen requires FusedScheduledResult")
        try:
            return _texts(arguments[0])
        except Exception as error:
            raise TypeError("Codegen generate kernel failed or abort") from error

    def autofuse_backend(self, *arguments, **ignored) -> Tuple[str, str, str]:
        """schedule, then codegen; texts are empty where generation fails."""
        result = self.schedule(*arguments)
        try:
            return _texts(result)
        except Exception:
            return "", "", ""


class Schedule:
    """schedule that never raises for a graph it can't take: the result is empty then."""

    def __init__(self, *ignored, **also_ignored):
        pass

    def schedule(self, *arguments, **ignored) -> FusedScheduledResult:
        if len(arguments) != 1 or not isinstance(arguments[0], HintGraph):
            raise ValueError("Schedule requires a hint graph")
        try:
            return _schedule_graph(arguments[0], 0)
        except RuntimeError:
            state = state_of(arguments[0])
            return _result(state.name, state)

    def scheduleV2(self, *arguments, **ignored) -> FusedScheduledResult:
        if len(arguments) != 1 or not isinstance(arguments[0], HintComputeGraph):
            raise ValueError("Schedule requires a hint compute graph")
        return _schedule_graph(arguments[0], 0)


class CodeGen:
    """Sources of a schedule result, by template. The one template of graphs without matrix products is
    'default'."""

    def __init__(self, *ignored, **also_ignored):
        pass

    def device_code_generator(self, *arguments, **ignored) -> Tuple[Dict[str, str], Dict[str, str]]:
        """(tiling data, kernel), each by template."""
        if len(arguments) != 1:
            raise ValueError("codegen param parse failed")
        if not isinstance(arguments[0], FusedScheduledResult):
            raise TypeError("device_code_generator requires FusedScheduledResult")
        try:
            tiling_data, _, kernel = _texts(arguments[0])
        except Exception as error:
            raise ValueError(
                "codegen generate kernel fail: %s" % error if str(error) else "codegen generate kernel fail"
            ) from error
        return {"default": tiling_data}, {"default": kernel}

    def host_code_generator(self, *arguments, **ignored) -> Tuple[Dict[str, Dict[str, str]], str]:
        """(result, shape_info, output_shape, pgo_dir, vector_core_num) -> (host sources by template and
        key, source of the shape function)."""
        if len(arguments) != 5 or not all(isinstance(a, str) for a in arguments[3:]):
            raise ValueError("codegen param parse failed")
        result, shape_info, output_shape = arguments[:3]
        if shape_info is not None and not isinstance(shape_info, ShapeInfo):
            raise ValueError("host_code_generator shape info type invalid")
        if not isinstance(result, FusedScheduledResult):
            raise TypeError("host_code_generator requires FusedScheduledResult")
        if not _is_shape_list(output_shape):
            raise ValueError("output_symbol_shape parse fail")
        try:
            if result._compiled is None:
                raise ConversionError("scheduling failed; there is nothing to generate from")
            entries = shape_info._entries if shape_info is not None else {}
            return (
                {"default": products.host_files(result._compiled)},
                products.infer_shape_source(entries, output_shape),
            )
        except Exception as error:
            raise ValueError("codegen generate host fail") from error

    def get_kernel_and_json_generator(self, *arguments, **ignored) -> str:
        """(kernel_path, json_path) -> C++ source that holds the kernel's bytes."""
        if len(arguments) != 2 or not all(isinstance(a, str) for a in arguments):
            raise ValueError("codegen param parse failed")
        try:
            with open(arguments[0], "rb") as stream:
                return products.kernel_bytes_source(stream.read())
        except OSError as error:
            raise ValueError("codegen generate get_kernel fail") from error

    def pgo_code_generator(self, *arguments, **ignored) -> str:
        """(result, pgo_dir) -> C++ source of a program that measures the kernel's plans."""
        if len(arguments) != 2 or not isinstance(arguments[1], str):
            raise ValueError("codegen param parse failed")
        if not isinstance(arguments[0], FusedScheduledResult):
            raise TypeError("pgo_code_generator requires FusedScheduledResult")
        if arguments[0]._compiled is None:
            raise ValueError("codegen generate pgo fail")
        return products.pgo_source(arguments[0]._compiled, arguments[1])


def _is_shape_list(value) -> bool:
    return isinstance(value, list) and all(
        isinstance(dims, list) and all(isinstance(d, str) for d in dims) for dims in value
    )


__all__: List[str] = ["Autofuser", "AutofuserOptions", "CodeGen", "FusedScheduledResult", "Schedule"]
