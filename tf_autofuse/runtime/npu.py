"""A kernel on an NPU, from numpy arrays to numpy arrays: what runtime/registry.py's `run` is for the twin.

On entry a device binary (build/cann.py), the host library with shape and tiling (runtime/library.py reads
it), and inputs: arrays, or tensors that an earlier kernel left on the device. A chain of kernels whose
tensors stay on the device copies nothing in between and waits once, where a value goes to the host."""

import ctypes
import os
from typing import List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from tf_autofuse.build.kernels import KernelBinary
from tf_autofuse.ir.asc_graph import FusedGraph
from tf_autofuse.machine import Machine
from tf_autofuse.runtime.acl import Host, Kept, Launch, NpuRuntime
from tf_autofuse.runtime.library import KernelLibrary, Tiling
from tf_autofuse.symbolic.guards import GuardFailure


class DeviceTensor(NamedTuple):
    """A tensor on the device; its memory goes with it."""

    memory: Kept
    dtype: np.dtype
    dims: Tuple[int, ...]

    def read(self) -> np.ndarray:
        """Its values. Raises AclError."""
        array = np.empty(self.dims, self.dtype)
        self.memory.read(array.ctypes.data)
        return array


class NpuKernel(NamedTuple):
    """device: path of the device binary; entries: `<entries>_<tiling key>` are its functions."""

    device: str
    entries: str
    library: KernelLibrary
    fused: FusedGraph
    all_at_once: bool = False


def kernel_of(binary: KernelBinary, fused: FusedGraph) -> NpuKernel:
    """What build/kernels.py built for the device (it has a device_file), ready to run. Raises KernelError."""
    ranks = [len(t.dims) for t in fused.inputs], [len(t.dims) for t in fused.outputs]
    library = KernelLibrary(binary.library, ranks[0], ranks[1], len(fused.sizes), host_only=True)
    path = os.path.join(binary.folder, binary.device_file)
    return NpuKernel(path, binary.device_entry, library, fused, binary.all_at_once)


def run(
    runtime: NpuRuntime,
    kernel: NpuKernel,
    inputs: Sequence[Union[np.ndarray, DeviceTensor]],
    machine: Machine,
    keep: bool = False,
    plan: Optional[Tiling] = None,
) -> List[Union[np.ndarray, DeviceTensor]]:
    """The outputs, as arrays; with `keep`, as DeviceTensors, which nobody has waited for. plan:
    by default the library's own.

    Raises GuardFailure for dims that the kernel was not made for or values that it refuses (the fallback
    gives the result), ValueError for a wrong number of inputs or dtype, AclError, KernelError."""
    fused, library = kernel.fused, kernel.library
    if len(inputs) != len(fused.inputs):
        raise ValueError("%d inputs instead of %d" % (len(inputs), len(fused.inputs)))
    given = [x if isinstance(x, DeviceTensor) else np.require(x, requirements="C") for x in inputs]
    for i, (x, io) in enumerate(zip(given, fused.inputs)):
        if np.dtype(x.dtype) != np.dtype(io.dtype.numpy):
            raise ValueError("input %d is %s, not %s" % (i, x.dtype, io.dtype.name))
    shape = library.shape([x.dims if isinstance(x, DeviceTensor) else x.shape for x in given])
    if shape.failed:
        raise GuardFailure("check %d failed: %s" % (shape.failed, shape.check))
    tiling = plan or library.tiling(shape.sizes, *machine.launch_limits)
    values = dict(tiling.values)
    arrays = [np.empty(dims, io.dtype.numpy) for dims, io in zip(shape.out_dims, fused.outputs)]
    function = runtime.function(kernel.device, "%s_%d" % (kernel.entries, values.get("tiling_key", 0)))
    data = Host(ctypes.addressof(tiling.data), ctypes.sizeof(tiling.data))
    launch = Launch(function, tiling.block_dim, data, tiling.workspace_bytes,
                    values.get("status_offset", -1), kernel.all_at_once)
    kept = runtime.run(
        launch,
        [x.memory if isinstance(x, DeviceTensor) else Host(x.ctypes.data, x.nbytes) for x in given],
        [array.nbytes if keep else Host(array.ctypes.data, array.nbytes) for array in arrays])
    if not keep:
        return arrays
    return [DeviceTensor(k, array.dtype, array.shape) for k, array in zip(kept, arrays)]
