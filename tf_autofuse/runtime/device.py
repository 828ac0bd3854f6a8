"""Whether kernels of the ascend target run on an NPU in this process, and on which.

On entry the settings; on exit of `npu_for` either an opened device with everything that building for it
needs, or None: kernels then run on the host twin. Where a toolkit is named but its NPU can't be used the user
is told once, in ACL's own words. One answer a process for the same settings.
"""

import threading
from typing import Dict, NamedTuple, Optional, Tuple, Union

from tf_autofuse import diagnostics
from tf_autofuse.build.kernels import BuildSettings
from tf_autofuse.build.problem import Problem
from tf_autofuse.codegen.ascendc.cann import Toolkit, find_toolkit
from tf_autofuse.config import Config
from tf_autofuse.runtime.acl import AclError, NpuRuntime, find_library, runtime_for
from tf_autofuse.runtime.target import ASCEND

_ELSE = "kernels run on the host twin, which checks them and is slow; AUTOFUSE_TARGET=host is fast"


class NpuPath(NamedTuple):
    """toolkit: what device binaries are built with; runtime: the opened device."""

    toolkit: Toolkit
    runtime: NpuRuntime


class NpuGone(Exception):
    """The process has forked since the NPU was opened: its kernels can't run here."""


Answer = Union[NpuPath, Problem, None]
_lock = threading.Lock()
_answers: Dict[Tuple[str, str, int], Answer] = {}


def npu_for(config: Config, target: str) -> Optional[NpuPath]:
    """None: kernels run on the host. Raises NpuGone."""
    answer = npu_path(config) if target == ASCEND else None
    if isinstance(answer, Problem):
        reason = "the NPU is not used: " + answer.reason
        diagnostics.warn_once(reason, reason, answer.remedy)
        return None
    return answer


def npu_path(config: Config) -> Answer:
    """What `npu_for` goes by, whatever the target; None where no toolkit is named. Raises NpuGone."""
    homes = {"ASCEND_HOME_PATH": config.ascend_home, "ASCEND_TOOLKIT_HOME": config.ascend_toolkit_home}
    key = (config.ascend_home, config.ascend_toolkit_home, config.ascend_device)
    with _lock:
        known = _answers.get(key)
        if isinstance(known, NpuPath) and "forked" in known.runtime.unusable:
            raise NpuGone(known.runtime.unusable)
        if known is None or (isinstance(known, NpuPath) and known.runtime.unusable):
            known = _answers[key] = _find(config, homes)
        return known


def _find(config: Config, homes) -> Answer:
    if not any(homes.values()):
        return None
    toolkit = find_toolkit(homes)
    named = " or ".join(v for v, home in homes.items() if home)
    if toolkit is None:
        return Problem("no device compiler (ccec or bisheng) and kernel_operator.h below %s" % named,
                       "set ASCEND_HOME_PATH to a complete CANN toolkit (its set_env.sh does); until then "
                       + _ELSE)
    library = find_library(homes)
    if library is None:
        return Problem("no libascendcl.so below %s" % named,
                       "install CANN's runtime and source its set_env.sh; until then " + _ELSE)
    try:
        return NpuPath(toolkit, runtime_for(library, config.ascend_device, BuildSettings.of(config)))
    except AclError as error:
        return Problem(str(error), "look at npu-smi info and the driver's installation, then start again; "
                       "until then " + _ELSE)


def forget() -> None:
    """Looks again. For tests."""
    with _lock:
        _answers.clear()
