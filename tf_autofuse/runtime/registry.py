"""What the op needs to know of a kernel, and kernels run without TensorFlow.

`meta` gives the native op its description of a kernel; `run` is the same kernel on numpy arrays.
"""

import os
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple, Union

import numpy as np

from tf_autofuse.ir.asc_graph import AscGraph, AscNode, FusedGraph
from tf_autofuse.ir.builder import dense_strides
from tf_autofuse.machine import HostMachine, Machine, machine_for
from tf_autofuse.runtime.library import KernelError, KernelLibrary, Tiling, Traced
from tf_autofuse.symbolic.guards import GuardFailure, InputDim
from tf_autofuse.symbolic.size import Size, is_symbol, known_equal, product, substitute, symbols_of

#: A launch that moves fewer bytes than this runs on the calling thread, all blocks one after another.
SMALL_BYTES = 64 * 1024


@dataclass(frozen=True)
class RunInfo:
    """How a launch was planned. tiling_key and values: what the tiling data say; block_dim 0: nothing to do.
    trace: what the kernel issued, where it was asked for."""

    block_dim: int
    tiling_key: int
    values: Tuple[Tuple[str, int], ...]
    workspace_bytes: int
    trace: Tuple[Traced, ...] = ()


def meta(binary, fused: FusedGraph, machine: Union[Machine, HostMachine]) -> Dict[str, Any]:
    """The native op's description of the kernel `binary`, made of `fused`. dtypes are TF's DataType
    numbers."""
    device = {
        "device_binary": os.path.join(binary.folder, binary.device_file),
        "device_entry": binary.device_entry,
        "all_at_once": binary.all_at_once,
        "unread": unread_inputs(fused),
    } if getattr(binary, "device_file", "") else {}
    return {
        **device,
        "library": binary.library,
        "name": fused.name,
        "input_ranks": [len(t.dims) for t in fused.inputs],
        "input_dtypes": [t.dtype.tf for t in fused.inputs],
        "output_dtypes": [t.dtype.tf for t in fused.outputs],
        "output_ranks": [len(t.dims) for t in fused.outputs],
        "size_count": len(fused.sizes),
        "forward": [list(pair) for pair in allowed_pairs(binary, fused)],
        "small_bytes": SMALL_BYTES,
        "core_num": machine.launch_limits[0],
        "ub_size": machine.launch_limits[1],
    }


def unread_inputs(fused: FusedGraph) -> List[int]:
    """The inputs whose values the kernel does not read: shapes are taken from them, or only the original ops
    need them."""
    read = {n.attr("index") for graph in fused.graphs for n in graph.of_type("Data")}
    return [i for i in range(len(fused.inputs)) if i not in read]


def allowed_pairs(binary, fused: FusedGraph) -> Tuple[Tuple[int, int], ...]:
    """forward_pairs, less what the kernel's own order of accesses rules out."""
    pairs = forward_pairs(fused)
    return pairs if getattr(binary, "in_place", None) is None else tuple(p for p in pairs
                                                                         if p in binary.in_place)


def forward_pairs(fused: FusedGraph) -> Tuple[Tuple[int, int], ...]:
    """(input, output) pairs whose memory may be the same.

    Every element of the output must be written after the same element of the input was read for the last
    time. So: equal item size and number of elements (the matrix product's [50 * n, 80] may become
    [n, 50, 80]); every Load of the input reads exactly what the output's Store writes (same strides, no
    offset, nothing broadcast); and the Store depends on each of these Loads, which orders them on any
    hardware.
    """
    if len(fused.graphs) != 1:
        return ()
    graph = fused.graphs[0]
    if graph.of_type("Gather"):  # an index out of range: the fallback needs the inputs as they were
        return ()
    known = _sizes_by_guards(fused)
    pairs: List[Tuple[int, int]] = []
    for o, output in enumerate(fused.outputs):
        stores = [n for n in graph.of_type("Store") if _output_of(graph, n) == o]
        if len(stores) != 1 or stores[0].attr("offset", 0) != 0:
            continue
        store = stores[0]
        ancestors = _ancestors(graph, store)
        for i, tensor in enumerate(fused.inputs):
            loads = [n for n in graph.of_type("Load") if graph.node(n.inputs[0].node).attr("index") == i]
            if (
                loads
                and tensor.dtype.bytes == output.dtype.bytes
                and known_equal(product(known(tensor.dims)), product(known(output.dims)))
                and all(n.name in ancestors and _same_elements(n, store) for n in loads)
            ):
                pairs.append((i, o))
    return tuple(pairs)


def _sizes_by_guards(fused: FusedGraph) -> Callable[[Sequence[Size]], Tuple[Size, ...]]:
    """A function that puts sizes in terms of as few symbols as what holds on every launch allows."""
    values: Dict[str, Size] = {}
    for v in fused.sizes:
        if not isinstance(v.source, InputDim):
            values[v.name] = substitute(v.source, values)
    for guard in fused.guards:
        for a, b in ((guard.left, guard.right), (guard.right, guard.left)):
            other = substitute(b, values)
            if guard.kind != "eq" or not is_symbol(a):
                continue
            if str(a) not in values and str(a) not in symbols_of(other):
                # Values stay free of the symbols that have one.
                values = {name: substitute(size, {str(a): other}) for name, size in values.items()}
                values[str(a)] = other
                break
    return lambda sizes: tuple(substitute(size, values) for size in sizes)


def _output_of(graph: AscGraph, store: AscNode) -> Optional[int]:
    readers = [n for n in graph.of_type("Output") if n.inputs[0].node == store.name]
    return readers[0].attr("index") if len(readers) == 1 else None


def _ancestors(graph: AscGraph, node: AscNode) -> Set[str]:
    found: Set[str] = set()
    stack = [r.node for r in node.inputs]
    while stack:
        name = stack.pop()
        if name not in found:
            found.add(name)
            stack.extend(r.node for r in graph.node(name).inputs)
    return found


def _same_elements(load: AscNode, store: AscNode) -> bool:
    full = store.y.repeats
    return (
        load.attr("offset", 0) == 0
        and len(load.y.repeats) == len(full)
        and all(known_equal(a, b) for a, b in zip(load.y.repeats, full))
        and all(known_equal(a, b) for a, b in zip(load.y.strides, store.y.strides))
        and all(known_equal(a, b) for a, b in zip(load.y.strides, dense_strides(full)))
    )


def library_of(binary, fused: FusedGraph) -> KernelLibrary:
    """The loaded library. Raises KernelError."""
    return KernelLibrary(
        binary.library,
        [len(t.dims) for t in fused.inputs],
        [len(t.dims) for t in fused.outputs],
        len(fused.sizes),
    )


def run(
    binary,
    fused: FusedGraph,
    inputs: Sequence[np.ndarray],
    machine: Union[Machine, HostMachine, None] = None,
    aliased: Sequence[Tuple[int, int]] = (),
    blocks: Optional[Sequence[int]] = None,
    trace: bool = False,
) -> Tuple[List[np.ndarray], RunInfo]:
    """Run the kernel on numpy arrays (bfloat16 as uint16 bits) on this thread.

    aliased: forward pairs to make use of: the output's memory is the input's, which is overwritten. blocks:
    the order in which blocks run within each phase, default ascending. trace: record what the kernel issues.
    Raises GuardFailure, KernelError, or ValueError for wrong dtypes or ranks.
    """
    machine = machine or machine_for("")
    library = library_of(binary, fused)
    arrays = [np.ascontiguousarray(a).reshape(np.shape(a)) for a in inputs]
    for i, (a, t) in enumerate(zip(arrays, fused.inputs)):
        if a.dtype != np.dtype(t.dtype.numpy):
            raise ValueError("input %d is %s, not %s" % (i, a.dtype, t.dtype.name))
    if len(arrays) != len(fused.inputs):
        raise ValueError("%d inputs instead of %d" % (len(arrays), len(fused.inputs)))
    shape = library.shape([a.shape for a in arrays])
    if shape.failed:
        raise GuardFailure(
            "check %d failed for input dims %s: %s"
            % (shape.failed, [list(a.shape) for a in arrays], shape.check)
        )
    tiling = library.tiling(shape.sizes, *machine.launch_limits)
    shared = {o: i for i, o in aliased}
    if not set((i, o) for o, i in shared.items()) <= set(allowed_pairs(binary, fused)):
        raise ValueError("%s are no forward pairs" % (sorted(shared.items()),))
    outputs = [
        arrays[shared[o]].reshape(dims) if o in shared else np.empty(dims, t.dtype.numpy)
        for o, (dims, t) in enumerate(zip(shape.out_dims, fused.outputs))
    ]
    memory = arrays + outputs
    traced: Tuple[Traced, ...] = ()
    if tiling.block_dim:
        if trace:
            library.trace_begin()
        try:
            _launch(library, tiling, memory, blocks)
        finally:
            traced = library.trace_end() if trace else ()
    return outputs, RunInfo(tiling.block_dim, _key_of(tiling), tiling.values, tiling.workspace_bytes, traced)


def _launch(
    library: KernelLibrary, tiling: Tiling, memory: Sequence[np.ndarray], blocks: Optional[Sequence[int]]
) -> None:
    addresses, sizes = [a.ctypes.data for a in memory], [a.nbytes for a in memory]
    if blocks is None:
        library.run(addresses, sizes, tiling)
        return
    workspace = library.workspace(tiling)
    for first, last in library.phases(tiling):
        for b in blocks:
            if first <= b < last:
                library.run(addresses, sizes, tiling, b, b + 1, workspace)


def _key_of(tiling: Tiling) -> int:
    return dict(tiling.values).get("tiling_key", 0)


__all__ = [
    "GuardFailure",
    "KernelError",
    "RunInfo",
    "SMALL_BYTES",
    "forward_pairs",
    "library_of",
    "meta",
    "run",
]
