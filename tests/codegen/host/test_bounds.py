"""Kernels touch nothing behind what they are given: inputs, outputs and the workspace end where memory ends.

A kernel that goes beyond dies by a signal, so it runs in a process of its own.
"""
import ctypes
import faulthandler
import mmap
import os
import resource

import numpy as np
import pytest

from tests.codegen.host import graphs
from tests.codegen.host.conftest import CASES, MACHINE
from tf_autofuse.runtime import registry

PAGE = mmap.PAGESIZE


class Memory:
    """`size` bytes at `address`, behind which is a page that can't be touched."""

    def __init__(self, size: int):
        whole = -(-size // PAGE) * PAGE
        self.pages = mmap.mmap(-1, whole + PAGE)
        guard = ctypes.addressof(ctypes.c_char.from_buffer(self.pages)) + whole
        assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(guard), ctypes.c_size_t(PAGE), 0) == 0
        self.address = guard - size


def signal_of(run) -> int:
    """The signal that ends a child process that calls run(), 0 if none does."""
    child = os.fork()
    if not child:
        faulthandler.disable()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        try:
            run()
            os._exit(0)
        finally:
            os._exit(1)
    status = os.waitpid(child, 0)[1]
    assert not os.WIFEXITED(status) or os.WEXITSTATUS(status) == 0
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def launch(binary, fused, inputs) -> None:
    library = registry.library_of(binary, fused)
    shape = library.shape([a.shape for a in inputs])
    tiling = library.tiling(shape.sizes, *MACHINE.launch_limits)
    if shape.failed or not tiling.block_dim:
        return
    sizes = [a.nbytes for a in inputs] + [
        int(np.prod(dims, dtype=np.int64)) * t.dtype.bytes for dims, t in zip(shape.out_dims, fused.outputs)]
    memory = [Memory(size) for size in sizes + [tiling.workspace_bytes]]
    for m, a in zip(memory, inputs):
        ctypes.memmove(m.address, a.ctypes.data, a.nbytes)
    *tensors, workspace = [m.address for m in memory]
    library.run(tensors, sizes, tiling, workspace=ctypes.c_void_p(workspace))


@pytest.mark.parametrize("name", sorted(CASES))
def test_nothing_is_touched_behind_the_end(kernels, name):
    fused, all_dims = CASES[name]

    def run():
        for seed, dims in enumerate(all_dims):
            launch(kernels[name], fused, graphs.inputs_for(name, fused, dims, seed))

    assert signal_of(run) == 0


def test_a_touch_behind_the_end_is_seen():
    memory = Memory(12)
    assert signal_of(lambda: ctypes.memset(memory.address, 0, 12)) == 0
    assert signal_of(lambda: ctypes.memset(memory.address, 0, 13)) != 0
