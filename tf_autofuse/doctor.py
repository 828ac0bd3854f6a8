"""What of this machine and environment works for TF-AutoFuse, and what to do about the rest.

Each check is a function that returns a Finding and raises nothing. On exit of `examine` every check has one
finding; a check that is itself broken reports that.
"""
import importlib
import os
import platform
import sys
from pathlib import Path
from typing import Callable, List, Mapping, NamedTuple, Tuple

from tf_autofuse.config import Config

OK = "ok"
NOTE = "note"  # works, but differently from what one might expect
PROBLEM = "problem"  # something will not work

_CANN_FOLDERS = (
    "/usr/local/Ascend/ascend-toolkit/latest",
    "/usr/local/Ascend/latest",
    "/usr/local/Ascend/cann",
)


class Finding(NamedTuple):
    """status: OK, NOTE or PROBLEM; text: what was found; remedy: what to do, '' where there is nothing to
    do."""

    name: str
    status: str
    text: str
    remedy: str = ""


def examine(environ: Mapping[str, str]) -> Tuple[Finding, ...]:
    """Runs every check. Imports TensorFlow where there is one."""
    config = Config.from_sources(environ)
    checks: List[Tuple[str, Callable[[], Finding]]] = [
        ("Python", _python),
        ("TensorFlow", _tensorflow),
        ("packages", _packages),
        ("native part", _native),
        ("kernel headers", _kernel_headers),
        ("C++ compiler", lambda: _compiler(environ)),
        ("kernel cache", lambda: _cache(environ, config)),
        ("CANN", lambda: _cann(config)),
        ("NPU", _npu),
        ("target", lambda: _target(config)),
        ("NPU path", lambda: _npu_path(config)),
        ("npu_bridge", _npu_bridge),
        ("switch", lambda: _switch(config)),
        ("settings", lambda: _settings(config)),
    ]
    findings = []
    for name, check in checks:
        try:
            findings.append(check())
        except Exception as error:
            findings.append(
                Finding(
                    name,
                    PROBLEM,
                    "the check failed (%s: %s)" % (type(error).__name__, error),
                    "please report this",
                )
            )
    return tuple(findings)


def _python() -> Finding:
    text = "%s, %s" % (platform.python_version(), sys.executable)
    if sys.version_info[:2] == (3, 7):
        return Finding("Python", OK, text)
    return Finding(
        "Python",
        PROBLEM,
        text,
        "TensorFlow 1.15 needs Python 3.7; on this one only the part without " "TensorFlow works",
    )


def _tensorflow() -> Finding:
    try:
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
        tensorflow = importlib.import_module("tensorflow")
    except Exception as error:
        return Finding(
            "TensorFlow",
            PROBLEM,
            "it can't be imported (%s: %s)" % (type(error).__name__, error),
            "pip install tensorflow==1.15.0 with Python 3.7; in a checkout, make setup",
        )
    version = getattr(tensorflow, "__version__", "unknown")
    if version.startswith("1.15."):
        return Finding("TensorFlow", OK, version)
    return Finding(
        "TensorFlow", PROBLEM, version, "the plugin is for TensorFlow 1.15: pip install tensorflow==1.15.0"
    )


def _packages() -> Finding:
    if sys.version_info[:2] != (3, 7):
        return Finding("packages", OK, "the limits of TensorFlow 1.15 do not matter here")
    wrong = []
    for name, limit in (("numpy", (1, 20)), ("google.protobuf", (3, 21))):
        version = importlib.import_module(name).__version__
        if tuple(int(part) for part in version.split(".")[:2]) >= limit:
            wrong.append("%s %s" % (name.split(".")[-1], version))
    if wrong:
        return Finding(
            "packages",
            PROBLEM,
            "%s: too new for TensorFlow 1.15" % ", ".join(wrong),
            "pip install 'numpy<1.20' 'protobuf<3.21'",
        )
    return Finding("packages", OK, "numpy and protobuf are of versions that TensorFlow 1.15 works with")


def _native() -> Finding:
    try:
        module = importlib.import_module("tf_autofuse.frontend._native")
    except ImportError as error:
        return Finding(
            "native part",
            PROBLEM,
            "it can't be loaded (%s)" % str(error).splitlines()[0],
            "in a checkout, make setup builds it; else pip install tf-autofuse again",
        )
    return Finding("native part", OK, module.__file__)


def _kernel_headers() -> Finding:
    from tf_autofuse.resources import npu_kernels_dir

    try:
        return Finding("kernel headers", OK, str(npu_kernels_dir()))
    except FileNotFoundError as error:
        return Finding("kernel headers", PROBLEM, str(error), "install tf-autofuse again")


def _compiler(environ) -> Finding:
    from tf_autofuse.build.toolchain import Toolchain, find_toolchain

    found = find_toolchain(environ)
    if isinstance(found, Toolchain):
        return Finding("C++ compiler", OK, "%s (%s)" % (" ".join(found.command), found.version))
    return Finding("C++ compiler", PROBLEM, found.reason, found.remedy)


def _cache(environ, config: Config) -> Finding:
    from tf_autofuse.build.storage import open_storage

    storage = open_storage(config.cache_dir or None, environ)
    if storage is None:
        return Finding(
            "kernel cache",
            PROBLEM,
            "no folder was found that kernels can be kept in and loaded from",
            "set AUTOFUSE_CACHE_DIR to a writable folder on a file system without noexec",
        )
    if storage.problem is not None:
        return Finding("kernel cache", PROBLEM, storage.problem.reason, storage.problem.remedy)
    return Finding("kernel cache", OK, "%s, writable, files can be loaded from it" % storage.root)


def _cann(config: Config) -> Finding:
    for folder in (config.ascend_home, config.ascend_toolkit_home) + _CANN_FOLDERS:
        if folder and Path(folder).is_dir():
            return Finding("CANN", OK, folder)
    if config.ascend_home or config.ascend_toolkit_home:
        return Finding(
            "CANN",
            PROBLEM,
            "%s is not a folder" % (config.ascend_home or config.ascend_toolkit_home),
            "correct ASCEND_HOME_PATH, or unset it",
        )
    return Finding("CANN", NOTE, "not found: Ascend C kernels are built for the host twin")


def _npu() -> Finding:
    from tf_autofuse.runtime.target import npu_devices

    devices = npu_devices()
    if devices:
        return Finding("NPU", OK, ", ".join(devices))
    return Finding("NPU", NOTE, "none: Ascend C kernels run on the host twin")


def _target(config: Config) -> Finding:
    from tf_autofuse.runtime.target import choose_target

    chosen = choose_target(config)
    return Finding(
        "target",
        OK,
        chosen if config.target == chosen else "%s (AUTOFUSE_TARGET: %s)" % (chosen, config.target),
    )


def _npu_path(config: Config) -> Finding:
    """Whether fused ops run on an NPU. Opens the device."""
    from tf_autofuse.build.problem import Problem
    from tf_autofuse.runtime.device import npu_path
    from tf_autofuse.runtime.target import ASCEND, choose_target

    wanted = choose_target(config) == ASCEND
    path = npu_path(config)
    if path is None:
        text = "not active: neither ASCEND_HOME_PATH nor ASCEND_TOOLKIT_HOME is set"
        return Finding("NPU path", NOTE, text)
    if isinstance(path, Problem):
        return Finding("NPU path", PROBLEM if wanted else NOTE, "not active: " + path.reason, path.remedy)
    text = "device %d opened through %s, kernels built by %s" % (
        path.runtime.device, path.runtime.acl, path.toolkit.compiler)
    if not wanted:
        return Finding("NPU path", NOTE, "not active, since the target is not ascend: " + text,
                       "set AUTOFUSE_TARGET=ascend to use it")
    return Finding("NPU path", OK, "active: " + text)


def _npu_bridge() -> Finding:
    import importlib.util

    if importlib.util.find_spec("npu_bridge") is not None:
        return Finding(
            "npu_bridge",
            NOTE,
            "a real one is installed and is not touched; where its NpuOptimizer is "
            "loaded, only an entry named AutofuseOptimizer switches TF-AutoFuse on",
        )
    return Finding(
        "npu_bridge", OK, "none; scripts that import it run under `python -m tf_autofuse script.py`"
    )


def _switch(config: Config) -> Finding:
    if config.enable_autofuse:
        return Finding("switch", OK, "enable_autofuse is on")
    return Finding(
        "switch",
        NOTE,
        "enable_autofuse is off, so nothing is fused",
        "export AUTOFUSE_FLAGS='--enable_autofuse=true'",
    )


def _settings(config: Config) -> Finding:
    errors = [problem.text for problem in config.problems if problem.is_error]
    if errors:
        return Finding(
            "settings", PROBLEM, "; ".join(errors), "correct them; docs/flags.md lists all settings"
        )
    notes = [problem.text for problem in config.problems]
    if notes:
        return Finding("settings", NOTE, "; ".join(notes))
    return Finding("settings", OK, "taken as written")
