"""The machines that kernels are planned for: one immutable record per SoC, and the record of this host's CPU.

Why: core count, clock and UB size decide a plan and belong to a kernel's cache key, so they have one owner.
On exit a `Machine` is complete: whoever plans for it asks nothing else. Numbers come from the platform_config
ini files of CANN 8.1.RC1 (the cube frequency is taken as the clock of the whole core), or from those of the
CANN installation at hand, which are of the same format: `installed_machine`. `usable_ub` is the only owner of
the UB budget.
"""
import configparser
import os
import platform
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Dict, Iterator, Mapping, NamedTuple, Optional, Tuple

#: Bytes at the end of UB that the Ascend C framework keeps for itself.
UB_RESERVED = 256
#: Bytes of UB scratch that Select (modes 1 and 2), AddDeqRelu and some adv. APIs (Power, Sign, ...) use.
SELECT_SCRATCH = 8192


@dataclass(frozen=True)
class Machine:
    """One SoC. Bytes, MHz; rates in bytes per cycle and core as the platform ini gives them (unit inferred
    there).

    soc: CANN's soc_version; vector_cores, cube_cores: AIV and AIC cores; l2_bytes, hbm_bytes: shared by
    all; ub_bytes: UB of one vector core; ub_block: alignment of UB operands and DMA blocks; vector_bytes:
    bytes of one vector repeat; cache_line: GM access granule; ddr_rate: GM; l2_read_rate, l2_write_rate:
    L2; ub_l2_rate, ub_ddr_rate: UB to L2 and to GM; max_buffers: UB buffers one kernel may initialise;
    queue_buffers: buffers of all queues of one position (hardware event ids); dma_blocks, dma_block_bytes,
    dma_gap_bytes: field limits of DataCopyPad; cube_side: rows, columns and depth of what a cube core
    multiplies in a cycle, of 16-bit floats; l1_bytes, l0a_bytes, l0b_bytes, l0c_bytes: buffers of one cube
    core; l1_l0a_rate, l1_l0b_rate: from L1 to L0A and L0B; source: where the numbers come from.
    """

    soc: str
    vector_cores: int
    clock_mhz: int
    l2_bytes: int
    hbm_bytes: int
    cube_cores: int
    ub_bytes: int = 192 * 1024
    ub_block: int = 32
    vector_bytes: int = 256
    cache_line: int = 512
    ddr_rate: int = 32
    l2_read_rate: int = 110
    l2_write_rate: int = 86
    ub_l2_rate: int = 64
    ub_ddr_rate: int = 64
    max_buffers: int = 64
    queue_buffers: int = 8
    dma_blocks: int = 4095
    dma_block_bytes: int = 2097151
    dma_gap_bytes: int = 2 ** 32 - 1
    cube_side: int = 16
    l1_bytes: int = 512 * 1024
    l0a_bytes: int = 64 * 1024
    l0b_bytes: int = 64 * 1024
    l0c_bytes: int = 128 * 1024
    l1_l0a_rate: int = 512
    l1_l0b_rate: int = 256
    source: str = "CANN 8.1.RC1 data/platform_config"

    @property
    def launch_limits(self) -> Tuple[int, int]:
        """(cores, bytes of local memory) that a kernel's tiling function is given."""
        return self.vector_cores, usable_ub(self, False)


class HostMachine(NamedTuple):
    """The CPU of this machine. cores: those that this process may use. vector_bytes: of one vector register.
    l1_bytes, l2_bytes, l3_bytes: data caches as the first core sees them, 0 where the system does not say.
    features: all that decides which machine code runs here, for cache keys."""

    model: str
    cores: int
    vector_bytes: int
    l1_bytes: int
    l2_bytes: int
    l3_bytes: int
    features: Tuple[str, ...]

    @property
    def launch_limits(self) -> Tuple[int, int]:
        """(cores, bytes of the last cache) that a kernel's tiling function is given."""
        return self.cores, self.l3_bytes or self.l2_bytes


@lru_cache(maxsize=1)
def host_machine() -> HostMachine:
    """Read from the system once; features that it does not tell count as none."""
    facts = _cpu_facts()
    flags = tuple(sorted(set((facts.get("flags") or facts.get("Features") or "").split())))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    caches = _caches()
    width = 64 if "avx512f" in flags else 32 if "avx2" in flags else 16
    identity = tuple(facts.get(k, "") for k in ("vendor_id", "cpu family", "model", "CPU part"))
    return HostMachine(facts.get("model name", platform.processor() or platform.machine()), cores, width,
                       caches.get((1, "Data"), 0), caches.get((2, "Unified"), 0), caches.get((3, "Unified"),
                                                                                             0),
                       (platform.machine(),) + identity + flags)


def _cpu_facts() -> Dict[str, str]:
    """The first processor of /proc/cpuinfo."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split("\n\n")[0]
    except OSError:
        return {}
    return {k.strip(): v.strip() for k, _, v in (line.partition(":") for line in text.split("\n"))}


def _caches() -> Dict[Tuple[int, str], int]:
    """(level, type) -> bytes."""
    found = {}
    for folder in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        try:
            level, type_, size = ((folder / n).read_text().strip() for n in ("level", "type", "size"))
        except OSError:
            continue
        match = re.match(r"(\d+)([KM]?)$", size)
        if match:
            found[int(level), type_] = int(match.group(1)) * {"": 1, "K": 1024, "M": 1 << 20}[match.group(2)]
    return found


_MIB = 1 << 20
_GIB = 1 << 30


def _table(*rows: Tuple[str, int, int, int, int]) -> Dict[str, Machine]:
    return {soc: Machine(soc, cores, mhz, l2 * _MIB, hbm * _GIB, cores // 2)
            for soc, cores, mhz, l2, hbm in rows}


MACHINES: Dict[str, Machine] = _table(
    # soc, AIV cores (two to an AIC core), MHz, L2 MiB, HBM GiB (910B2C's ini leaves HBM empty: 910B2's is
    # taken; 910B4-1's says 32 although cards with 64 are sold)
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


#: Record field -> section and keys of a platform_config ini, the first that is there; the rates' keys differ
#: between releases.
_INI = {
    "vector_cores": ("SoCInfo", ("vector_core_cnt",)),
    "cube_cores": ("SoCInfo", ("cube_core_cnt", "ai_core_cnt")),
    "l2_bytes": ("SoCInfo", ("l2_size",)),
    "hbm_bytes": ("SoCInfo", ("memory_size",)),
    "clock_mhz": ("AICoreSpec", ("cube_freq",)),
    "ub_bytes": ("AICoreSpec", ("ub_size",)),
    "ub_block": ("AICoreSpec", ("ubblock_size",)),
    "ddr_rate": ("AICoreMemoryRates", ("ddr_rate", "ddr_read_rate")),
    "l2_read_rate": ("AICoreMemoryRates", ("l2_read_rate", "l2_rate")),
    "l2_write_rate": ("AICoreMemoryRates", ("l2_write_rate",)),
    "ub_l2_rate": ("AICoreMemoryRates", ("ub_to_l2_rate",)),
    "ub_ddr_rate": ("AICoreMemoryRates", ("ub_to_ddr_rate",)),
    "cube_side": ("AICoreSpec", ("cube_m_size",)),
    "l1_bytes": ("AICoreSpec", ("l1_size",)),
    "l0a_bytes": ("AICoreSpec", ("l0_a_size",)),
    "l0b_bytes": ("AICoreSpec", ("l0_b_size",)),
    "l0c_bytes": ("AICoreSpec", ("l0_c_size",)),
    "l1_l0a_rate": ("AICoreMemoryRates", ("l1_to_l0_a_rate",)),
    "l1_l0b_rate": ("AICoreMemoryRates", ("l1_to_l0_b_rate",)),
}
_FOLDERS = ("data", "compiler/data", "runtime/data", "x86_64-linux/data", "aarch64-linux/data")


def machine_for(soc_version: str = "", environment: Mapping[str, str] = os.environ) -> Machine:
    """The record of a SoC, by CANN's name with or without "Ascend", in any case; '' is the default. Where the
    environment names a CANN installation (ASCEND_HOME_PATH, ASCEND_TOOLKIT_HOME) that has the SoC's ini, what
    that says wins over the table.

    Raises ValueError for a SoC that is in neither, naming those of the table.
    """
    wanted = (soc_version or DEFAULT_SOC).lower()
    known = next((machine for soc, machine in MACHINES.items()
                  if wanted in (soc.lower(), soc.lower()[len("ascend"):])), None)
    for name in ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"):
        if environment.get(name):
            found = installed_machine(known.soc if known else soc_version, environment[name], known)
            if found is not None:
                return found
    if known is None:
        raise ValueError("unknown SoC %r; known: %s" % (soc_version, ", ".join(MACHINES)))
    return known


def installed_machine(soc: str, cann: str, base: Optional[Machine] = None) -> Optional[Machine]:
    """The record of a SoC from the CANN installation in folder `cann`; None where it has no readable ini of
    it. What the ini does not say, or says as an empty value, comes from `base`, by default the default SoC's
    record."""
    for path in _ini_files(cann):
        if os.path.basename(path)[: -len(".ini")].lower() not in (soc.lower(), "ascend" + soc.lower()):
            continue
        parser = configparser.ConfigParser(strict=False, interpolation=None)
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                parser.read_file(file)
        except (OSError, configparser.Error):
            return None
        _say_what_is_wrong(path, parser)
        values = {}
        for field, (section, keys) in _INI.items():
            for key in keys:
                text = parser.get(section, key, fallback="").strip()
                if text.isdigit() and int(text) > 0:
                    values[field] = int(text)
                    break
        return replace(base or MACHINES[DEFAULT_SOC], soc=os.path.basename(path)[: -len(".ini")],
                       source=path, **values)
    return None


def _say_what_is_wrong(path: str, parser: configparser.ConfigParser) -> None:
    from tf_autofuse import diagnostics, schemas  # which know of settings, and those of chips

    found = {section: dict(parser.items(section)) for section in parser.sections()}
    wrong = schemas.faults(found, schemas.platform_ini(_INI))
    if wrong:
        diagnostics.warn_once(
            path,
            "%s: %s" % (path, "; ".join(wrong)),
            "the figures that come with TF-AutoFuse count instead; the CANN installation may be damaged",
        )


def _ini_files(cann: str) -> Iterator[str]:
    for folder in _FOLDERS:
        path = os.path.join(cann, folder, "platform_config")
        if os.path.isdir(path):
            for name in sorted(os.listdir(path)):
                if name.endswith(".ini"):
                    yield os.path.join(path, name)


def usable_ub(machine: Machine, uses_scratch: bool) -> int:
    """Bytes of UB that one kernel's buffers may take in total.

    uses_scratch: whether any instruction uses the fixed 8 KiB area at the end of UB (see SELECT_SCRATCH).
    910B: 196352, or 188160 with the area left free.
    """
    return machine.ub_bytes - UB_RESERVED - (SELECT_SCRATCH if uses_scratch else 0)
