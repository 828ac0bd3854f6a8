"""The process-wide platform of the AscIR API: what utils.set_platform says.

Holds: nothing is set until somebody sets it; there is no device to ask.
"""

from dataclasses import replace
from typing import NamedTuple, Optional

from tf_autofuse.machine import Machine, machine_for

_TEXT = "UtilsSetPlatform param parse failed, expected string, long, long"


class Platform(NamedTuple):
    """soc: the architecture's word, e.g. '2201'; None: never set. vector_cores, ub_bytes: 0 where the
    platform's own numbers hold."""

    soc: Optional[str] = None
    vector_cores: int = 0
    ub_bytes: int = 0


_current = Platform()


def current() -> Platform:
    return _current


def set_platform(*arguments, **ignored) -> None:
    """(soc, vector_core_num, ub_size in bytes). An empty soc leaves the architecture as it was."""
    global _current
    if len(arguments) != 3:
        raise TypeError(_TEXT)
    soc, cores, ub = arguments
    if not isinstance(soc, str) or not isinstance(cores, int) or not isinstance(ub, int):
        raise TypeError(_TEXT)
    _current = Platform(
        soc or _current.soc,
        int(cores) if cores > 0 else _current.vector_cores,
        int(ub) if ub > 0 else _current.ub_bytes,
    )


def restore(platform: Platform) -> None:
    """Puts back what `current` gave before."""
    global _current
    _current = platform


def machine() -> Machine:
    """The machine that kernels are planned for: the default chip of the 2201 architecture with the numbers of
    set_platform, but never with more UB than the chip has (the twin would not run such a kernel)."""
    chip = machine_for("")
    return replace(
        chip,
        vector_cores=_current.vector_cores or chip.vector_cores,
        ub_bytes=min(_current.ub_bytes or chip.ub_bytes, chip.ub_bytes),
    )
