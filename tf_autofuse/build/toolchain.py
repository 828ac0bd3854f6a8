"""The host compiler: which one, how it is called, and what it said.

A compiler is always called with an argument list, never through a shell, so a path may hold blanks and any
letters. `Toolchain.identity` is everything about it that can change machine code; it is part of every cache
key.
"""

import os
import re
import shlex
import shutil
import signal
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Mapping, NamedTuple, Optional, Sequence, Set, Tuple, Union

from tf_autofuse.build.problem import Problem

#: Compilers looked for on PATH, in order.
ON_PATH = ("g++", "clang++", "c++")
#: Seconds after which a compiler that has not come back is stopped.
PATIENCE = 300.0

#: IEEE results, the same on every machine: no contraction to FMA, no -march; errno and trapping state are not
#: looked at.
NUMERICS = ("-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math")
COMMON = ("-std=c++17", "-fPIC", "-fvisibility=hidden") + NUMERICS
ARCHIVE_FLAGS = ("-O3", "-ffunction-sections", "-fdata-sections") + COMMON
#: A kernel's time is spent in the archive; -Og compiles it in two thirds of -O1's time and runs as fast.
KERNEL_FLAGS = ("-Og",) + COMMON
#: A kernel library hides all but its ABI, needs no libstdc++ of a certain age, and drops what it does not
#: call.
LINK_FLAGS = (
    "-shared",
    "-static-libstdc++",
    "-static-libgcc",
    "-Wl,--exclude-libs,ALL",
    "-Wl,--gc-sections",
    "-Wl,--build-id=none",
    "-Wl,-z,defs",
    "-Wl,-s",
)


@dataclass(frozen=True)
class Toolchain:
    """command: the argument list that a call begins with, the compiler's path first. version: what --version
    says."""

    command: Tuple[str, ...]
    version: str

    @property
    def identity(self) -> Tuple[Tuple[str, ...], str]:
        return self.command, self.version


class Run(NamedTuple):
    """code: the exit code, negative for a signal; output: stdout and stderr together."""

    code: int
    output: str


_versions: Dict[Tuple, str] = {}
_versions_lock = threading.Lock()
_running: Set[subprocess.Popen] = set()
_running_lock = threading.Lock()
_stopping = threading.Event()


def run(command: Sequence[str], cwd: str, patience: float = PATIENCE) -> Run:
    """Run to the end. Raises OSError where the program can't be started. A program past its patience is
    stopped and reported as code -SIGKILL; so is it when this thread is interrupted."""
    environ = dict(os.environ, LC_ALL="C", TMPDIR=cwd)
    if _stopping.is_set():
        raise OSError("the process ends")
    process = subprocess.Popen(
        list(command),
        cwd=cwd,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    with _running_lock:
        _running.add(process)
    if _stopping.is_set():  # it began just before
        _stop(process)
    try:
        output, _ = process.communicate(timeout=patience)
    except subprocess.TimeoutExpired:
        _stop(process)
        output = process.communicate()[0] + b"\n(stopped after %d seconds)" % patience
    except BaseException:
        _stop(process)
        process.communicate()
        raise
    finally:
        with _running_lock:
            _running.discard(process)
    return Run(process.returncode, output.decode("utf-8", "replace"))


def stop_all() -> None:
    """Stops every program that `run` is at, and lets it start no other: for the process's end."""
    _stopping.set()
    with _running_lock:
        for process in _running:
            _stop(process)


def _stop(process) -> None:
    # The compiler driver's children are in its process group; they must go with it.
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def find_toolchain(environ: Mapping[str, str]) -> Union[Toolchain, Problem]:
    """The compiler that CXX names (a path, or a command with arguments such as "ccache g++"), else the first
    of ON_PATH."""
    path = environ.get("PATH", os.defpath)
    named = environ.get("CXX", "").strip()
    install = "install g++ (package g++ or build-essential), or set CXX to a C++17 compiler"
    if named:
        whole = shutil.which(named, path=path)
        try:
            words = [whole] if whole else shlex.split(named)
        except ValueError:
            words = [named]
        found = shutil.which(words[0], path=path) if words else None
        if found is None:
            return Problem(
                "the compiler that CXX names can't be run: %s" % named,
                "correct CXX, or unset it to use " "the g++ or clang++ on PATH",
            )
    else:
        words = []
        found = None
        for name in ON_PATH:
            found = shutil.which(name, path=path)
            if found:
                words = [found]
                break
        if found is None:
            return Problem(
                "no C++ compiler was found (CXX is not set, and PATH has no %s)" % ", ".join(ON_PATH), install
            )
    command = (os.path.abspath(found),) + tuple(words[1:])
    version = _version(command)
    if isinstance(version, Problem):
        return version
    return Toolchain(command, version)


def _version(command: Tuple[str, ...]) -> Union[str, Problem]:
    try:
        facts = os.stat(os.path.realpath(command[0]))
        key = command + (facts.st_mtime, facts.st_size)
        with _versions_lock:
            known = _versions.get(key)
        if known is not None:
            return known
        result = run(
            command + ("--version",), os.getcwd() if os.access(".", os.R_OK | os.X_OK) else "/", 30.0
        )
    except OSError as error:
        return Problem(
            "the compiler %s can't be started (%s)" % (command[0], error.strerror or error),
            "install g++, or set CXX to a C++17 compiler",
        )
    if result.code != 0:
        return Problem(
            "%s --version failed with exit code %d" % (command[0], result.code),
            "repair the compiler, or set CXX to another C++17 compiler",
            result.output,
        )
    version = result.output.splitlines()[0] if result.output else "unknown"
    with _versions_lock:
        _versions[key] = version
    return version


_LOCATED = re.compile(r"^(?P<file>[^\n:]+):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<text>.*)$", re.M)
_UNLOCATED = re.compile(r"^.*(?:error|undefined reference|cannot find|No space left).*$", re.M | re.I)


def first_error(output: str, folder: Path) -> Tuple[str, str]:
    """(the first error in a compiler's output, the source line that it is about or '')."""
    located = _LOCATED.search(output)
    if located is None:
        other = _UNLOCATED.search(output)
        return (other.group(0).strip() if other else "no message"), ""
    name, line = os.path.basename(located.group("file")), int(located.group("line"))
    source = ""
    try:
        with open(str(folder / name), "r", encoding="utf-8", errors="replace") as stream:
            source = stream.read().splitlines()[line - 1].strip()
    except (OSError, IndexError):
        pass
    return "%s:%d: %s" % (name, line, located.group("text")), source


class CompileFailed(Exception):
    """output: the compiler's own words; error, line: see first_error."""

    def __init__(self, output: str, folder: Path):
        super().__init__(output)
        self.output = output
        self.error, self.line = first_error(output, folder)


def archiver(toolchain: Toolchain, cwd: str) -> Optional[str]:
    """The `ar` that belongs to the compiler, or the one on PATH; None where there is none."""
    try:
        named = run(toolchain.command + ("-print-prog-name=ar",), cwd, 30.0)
    except OSError:
        return None
    if named.code == 0 and named.output.strip():
        return shutil.which(named.output.strip().splitlines()[-1])
    return shutil.which("ar")
