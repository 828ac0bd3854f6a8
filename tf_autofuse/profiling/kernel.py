"""Runs a kernel library on the twin with recording on, and simulates what was recorded.

On entry a library of the ascend target and arrays for its inputs (their values decide nothing but the places
of a gather). On exit the plan, the outputs and the `Simulation` on a machine. One launch at a time per
library: the twin records all launches of a library together.
"""
from typing import NamedTuple, Optional, Sequence, Tuple

import numpy as np

from tf_autofuse.machine import Machine
from tf_autofuse.profiling.simulator import PIPES, Simulation, simulate
from tf_autofuse.runtime.library import KernelError, KernelLibrary, Tiling, Traced

#: Most records of one launch; a kernel of more is not modelled.
MOST_RECORDS = 1 << 20


class Modelled(NamedTuple):
    """tiling.block_dim 0: an empty shape, no launch, 0 cycles. moved: bytes that the copies moved from GM and
    to GM."""

    tiling: Tiling
    outputs: Tuple[np.ndarray, ...]
    records: Tuple[Traced, ...]
    simulation: Simulation
    moved: Tuple[int, int]


def model_kernel(library: KernelLibrary, inputs: Sequence[np.ndarray], output_dtypes: Sequence[np.dtype],
                 machine: Machine, plan: Optional[Tiling] = None) -> Modelled:
    """plan: by default the library's own. Raises KernelError where the kernel does not take the inputs,
    breaks a rule of the twin, or records more than MOST_RECORDS."""
    inputs = [np.require(x, requirements="C") for x in inputs]
    shape = library.shape([x.shape for x in inputs])
    if shape.failed:
        raise KernelError("the inputs fail a check of the kernel: %s" % shape.check)
    outputs = tuple(np.zeros(dims, dtype) for dims, dtype in zip(shape.out_dims, output_dtypes))
    tiling = plan or library.tiling(shape.sizes, *machine.launch_limits)
    if tiling.block_dim == 0:
        nothing = Simulation(0.0, (), {pipe: () for pipe in PIPES}, 0.0, ())
        return Modelled(tiling, outputs, (), nothing, (0, 0))
    buffers = list(inputs) + list(outputs)
    library.trace_begin(MOST_RECORDS)
    try:
        library.run([b.ctypes.data for b in buffers], [b.nbytes for b in buffers], tiling)
    finally:
        records = library.trace_end()
    if len(records) >= MOST_RECORDS:
        raise KernelError("the kernel issues more than %d instructions" % MOST_RECORDS)
    moved = tuple(sum(r.bytes for r in records if r.kind == "instruction" and r.pipe == pipe)
                  for pipe in ("MTE2", "MTE3"))
    return Modelled(tiling, outputs, records, simulate(records, tiling.block_dim), moved)
