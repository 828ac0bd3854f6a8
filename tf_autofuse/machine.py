"""The machines that kernels are planned for: one immutable record per SoC.

Why: core count, clock and UB size decide a plan and belong to a kernel's cache key, so they have one owner.
On exit a `Machine` is complete: whoever plans for it asks nothing else. Numbers come from CANN 8.1.RC1's
platform_config ini files (the cube frequency is taken as the clock of the whole core); `usable_ub` is the
only owner of the UB budget.
"""
from dataclasses import dataclass
from typing import Dict, Tuple

#: Bytes at the end of UB that the Ascend C framework keeps for itself.
UB_RESERVED = 256
#: Bytes of UB scratch that Select (modes 1 and 2), AddDeqRelu and some adv. APIs (Power, Sign, ...) use.
SELECT_SCRATCH = 8192


@dataclass(frozen=True)
class Machine:
    """One SoC. Bytes, MHz; rates in bytes per cycle and core as the platform ini gives them (unit inferred
    there).

    soc: CANN's soc_version; vector_cores: AIV cores; ub_bytes: UB of one vector core; ub_block: alignment of
    UB operands and DMA blocks; vector_bytes: bytes of one vector repeat; cache_line: GM access granule;
    max_buffers: UB buffers one kernel may initialise; queue_buffers: buffers of all queues of one position
    (hardware event ids); dma_blocks, dma_block_bytes, dma_gap_bytes: field limits of DataCopyPad; source:
    where the numbers come from.
    """

    soc: str
    vector_cores: int
    clock_mhz: int
    l2_bytes: int
    hbm_bytes: int
    ub_bytes: int = 192 * 1024
    ub_block: int = 32
    vector_bytes: int = 256
    cache_line: int = 512
    ddr_rate: int = 32
    l2_rate: int = 110
    max_buffers: int = 64
    queue_buffers: int = 8
    dma_blocks: int = 4095
    dma_block_bytes: int = 2097151
    dma_gap_bytes: int = 2 ** 32 - 1
    source: str = "CANN 8.1.RC1 data/platform_config"


_MIB = 1 << 20
_GIB = 1 << 30


def _table(*rows: Tuple[str, int, int, int, int]) -> Dict[str, Machine]:
    return {soc: Machine(soc, cores, mhz, l2 * _MIB, hbm * _GIB) for soc, cores, mhz, l2, hbm in rows}


MACHINES: Dict[str, Machine] = _table(
    # soc, AIV cores, MHz, L2 MiB, HBM GiB (910B2C's ini leaves HBM empty: 910B2's is taken)
    ("Ascend910B1", 48, 1850, 192, 64),
    ("Ascend910B2", 48, 1800, 192, 64),
    ("Ascend910B2C", 48, 1800, 192, 64),
    ("Ascend910B3", 40, 1800, 192, 64),
    ("Ascend910B4", 40, 1500, 96, 32),
    ("Ascend910B4-1", 40, 1500, 168, 32),
    ("Ascend910_9391", 48, 1850, 192, 64),
    ("Ascend910_9392", 48, 1850, 192, 64),
    ("Ascend910_9381", 48, 1800, 192, 64),
    ("Ascend910_9382", 48, 1800, 192, 64),
    ("Ascend910_9372", 40, 1800, 192, 64),
    ("Ascend910_9362", 40, 1500, 168, 32),
)

DEFAULT_SOC = "Ascend910B4-1"


def machine_for(soc_version: str = "") -> Machine:
    """The record of a SoC, by CANN's name with or without "Ascend", in any case; '' is the default.

    Raises ValueError for a SoC that is not in the table, naming those that are.
    """
    wanted = (soc_version or DEFAULT_SOC).lower()
    for soc, machine in MACHINES.items():
        if wanted in (soc.lower(), soc.lower()[len("ascend"):]):
            return machine
    raise ValueError("unknown SoC %r; known: %s" % (soc_version, ", ".join(MACHINES)))


def usable_ub(machine: Machine, uses_scratch: bool) -> int:
    """Bytes of UB that one kernel's buffers may take in total.

    uses_scratch: whether any instruction uses the fixed 8 KiB area at the end of UB (see SELECT_SCRATCH).
    910B: 196352, or 188160 with the area left free.
    """
    return machine.ub_bytes - UB_RESERVED - (SELECT_SCRATCH if uses_scratch else 0)
