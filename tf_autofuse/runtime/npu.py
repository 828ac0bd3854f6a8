"""A kernel on an NPU, from numpy arrays to numpy arrays: what runtime/registry.py's `run` is for the twin.

On entry a device binary (build/cann.py), the host library with shape and tiling (runtime/library.py reads
it), and inputs: arrays, or tensors that an earlier kernel left on the device. Copies and the kernel are
queued on one stream and waited for once, at the end; a chain of kernels whose tensors stay on the device
copies nothing in between."""

import ctypes
from typing import List, NamedTuple, Sequence, Tuple, Union

import numpy as np

from tf_autofuse.build.cann import DeviceBinary
from tf_autofuse.ir.asc_graph import FusedGraph
from tf_autofuse.machine import Machine, usable_ub
from tf_autofuse.runtime.acl import AclError, AclRuntime, DeviceMemory
from tf_autofuse.runtime.library import KernelLibrary
from tf_autofuse.symbolic.guards import GuardFailure

#: Bytes between the words in which blocks report what they refuse (npu_kernels/include/autofuse/gather.h).
_STATUS_BYTES = 64


class DeviceTensor(NamedTuple):
    """A tensor on the device. Whoever has it releases its memory: `runtime.release(t.memory)`."""

    memory: DeviceMemory
    dtype: np.dtype
    dims: Tuple[int, ...]


class NpuKernel(NamedTuple):
    """device: path of the device binary; entries: `<entries>_<tiling key>` are its functions."""

    device: str
    entries: str
    library: KernelLibrary
    fused: FusedGraph
    all_at_once: bool = False


def kernel_of(made: DeviceBinary, fused: FusedGraph) -> NpuKernel:
    """What build/cann.py built, ready to run. Raises KernelError."""
    ranks = [len(t.dims) for t in fused.inputs], [len(t.dims) for t in fused.outputs]
    library = KernelLibrary(made.host_library, ranks[0], ranks[1], len(fused.sizes), host_only=True)
    return NpuKernel(made.path, made.symbol, library, fused, made.all_at_once)


class _Launch:
    """One run: what it took of the runtime, so that all of it is given back however it ends."""

    def __init__(self, runtime: AclRuntime):
        self.runtime = runtime
        self.stream = runtime.take_stream()
        self.taken: List[DeviceMemory] = []
        self.failed = True

    def memory(self, bytes_: int) -> DeviceMemory:
        self.taken.append(self.runtime.allocate(max(bytes_, 1)))
        return self.taken[-1]

    def upload(self, address: int, bytes_: int) -> DeviceMemory:
        memory = self.memory(bytes_)
        if bytes_:
            self.runtime.to_device(memory, address, bytes_, self.stream)
        return memory

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if self.failed:
            # What is queued may still use our memory.
            try:
                self.runtime.synchronize(self.stream)
            except AclError:
                pass
            self.runtime.drop_stream(self.stream)
        else:
            self.runtime.give_stream(self.stream)
        for memory in self.taken:
            self.runtime.release(memory)


def run(
    runtime: AclRuntime,
    kernel: NpuKernel,
    inputs: Sequence[Union[np.ndarray, DeviceTensor]],
    machine: Machine,
    keep: bool = False,
) -> List[Union[np.ndarray, DeviceTensor]]:
    """The outputs, as arrays; with `keep`, as DeviceTensors.

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
    tiling = library.tiling(shape.sizes, machine.vector_cores, usable_ub(machine, False))
    dtypes = [np.dtype(io.dtype.numpy) for io in fused.outputs]
    runtime.enter_thread()
    with _Launch(runtime) as launch:
        device_inputs = [
            x.memory if isinstance(x, DeviceTensor) else launch.upload(x.ctypes.data, x.nbytes) for x in given
        ]
        sizes = [int(np.prod(dims, dtype=np.int64)) * d.itemsize for dims, d in zip(shape.out_dims, dtypes)]
        device_outputs = [launch.memory(n) for n in sizes]
        values = dict(tiling.values)
        status = None
        if tiling.block_dim:
            workspace = launch.memory(tiling.workspace_bytes)
            if "status_offset" in values:
                runtime.clear(workspace, launch.stream)
            data = launch.upload(ctypes.addressof(tiling.data), ctypes.sizeof(tiling.data))
            binary = runtime.binary(kernel.device)
            function = binary.function("%s_%d" % (kernel.entries, values.get("tiling_key", 0)))
            places = [m.address for m in device_inputs + device_outputs + [workspace, data]]
            runtime.launch(function, tiling.block_dim, places, launch.stream, kernel.all_at_once)
            if "status_offset" in values:
                status = np.empty(tiling.workspace_bytes, np.uint8)
                runtime.to_host(status.ctypes.data, workspace, status.nbytes, launch.stream)
        outputs = [np.empty(dims, d) for dims, d in zip(shape.out_dims, dtypes)]
        if not keep:
            for array, memory, bytes_ in zip(outputs, device_outputs, sizes):
                if bytes_:
                    runtime.to_host(array.ctypes.data, memory, bytes_, launch.stream)
        runtime.synchronize(launch.stream)
        launch.failed = False
        if status is not None:
            _check_status(status, values["status_offset"], tiling.block_dim)
        if not keep:
            return outputs
        for memory in device_outputs:
            launch.taken.remove(memory)
        return [DeviceTensor(m, d, tuple(dims)) for m, d, dims in zip(device_outputs, dtypes, shape.out_dims)]


def _check_status(workspace: np.ndarray, offset: int, block_dim: int) -> None:
    words = workspace[offset : offset + _STATUS_BYTES * block_dim].reshape(-1, _STATUS_BYTES)[:, :4]
    if words.any():
        raise GuardFailure("an index is out of range")
