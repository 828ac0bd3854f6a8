"""What a cached result depends on beside its own input: the project's sources, the compiler, the processors.

Stamps are cheap (sizes and times of files, not contents), so they tell versions of one installation
apart; they are for records on this machine and never leave it.
"""
import hashlib
import os
import platform
import shutil
from pathlib import Path
from typing import Any, Dict, Mapping, Optional

from tf_autofuse.build.toolchain import ON_PATH
from tf_autofuse.codegen.ascendc.cann import Toolkit
from tf_autofuse.resources import npu_kernels_dir

_stamps: Dict[Any, str] = {}


def project_stamp() -> str:
    """Changes with the project's own sources and with the processors; both are taken for constant in a
    process."""
    found = _stamps.get("project")
    if found is None:
        digest = hashlib.sha256(platform.machine().encode())
        roots = [Path(__file__).resolve().parents[1]]
        try:
            roots.append(Path(str(npu_kernels_dir())))
        except FileNotFoundError:
            pass  # building says so
        for root in roots:
            for path in sorted(_files(str(root))):
                facts = os.stat(path)
                digest.update(("%s %d %d\n" % (path, facts.st_size, facts.st_mtime_ns)).encode())
        digest.update(_processor().encode())
        digest.update(str(len(_processors())).encode())
        found = _stamps["project"] = digest.hexdigest()
    return found


def _files(folder: str):
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.name != "__pycache__":
                    for path in _files(entry.path):
                        yield path
            elif entry.name.endswith((".py", ".h", ".hpp", ".cpp", ".inc", ".def", ".j2")):
                yield entry.path


def _processors():
    """The processors that this process may use."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)


def _processor() -> str:
    """Model and features of the first processor: code may be made for them."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as stream:
            first = stream.read().split("\n\n", 1)[0]
    except OSError:
        return platform.processor()
    wanted = ("model name", "flags", "Features", "CPU")
    return "\n".join(line for line in first.splitlines() if line.startswith(wanted))


def compiler_stamp(environ: Mapping[str, str]) -> str:
    """Changes with the compiler that build would find."""
    named, path = environ.get("CXX", ""), environ.get("PATH", os.defpath)
    key = (named, path)
    found = _stamps.get(key)
    if found is None:
        facts = []
        for name in [named, named.split(" ", 1)[0]] if named else ON_PATH:
            program = shutil.which(name, path=path) if name else None
            if program:
                real = os.path.realpath(program)
                stat = os.stat(real)
                facts.append((real, stat.st_size, stat.st_mtime_ns))
        found = _stamps[key] = repr(facts)
    return found


def toolkit_stamp(toolkit: Optional[Toolkit]) -> str:
    """Changes with the device compiler and its linker; '' without a toolkit."""
    if toolkit is None:
        return ""
    facts = [str(toolkit.framework)]
    for path in (toolkit.compiler, toolkit.compiler.parent / "ld.lld"):
        try:
            stat = os.stat(str(path))
            facts.append("%s %d %d" % (path, stat.st_size, stat.st_mtime_ns))
        except OSError:
            facts.append(str(path))  # building says so
    return repr(facts)
