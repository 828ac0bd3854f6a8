"""Which target a session's kernels are for.

`auto` is the ascend target where an NPU is present, else the host target. `ascend` without an NPU generates
the same Ascend C and runs it on the host twin, which checks kernels and is not fast.
"""
from pathlib import Path
from typing import Tuple

from tf_autofuse.config import Config

ASCEND = "ascend"
HOST = "host"
_DEVICES = Path("/dev")


def npu_devices() -> Tuple[str, ...]:
    """The NPUs of this machine, by their device files."""
    return tuple(sorted(str(path) for path in _DEVICES.glob("davinci[0-9]*")))


def choose_target(config: Config) -> str:
    """The target's name for this config."""
    if config.target != "auto":
        return config.target
    return ASCEND if npu_devices() else HOST
