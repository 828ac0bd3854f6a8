"""The host twin of the Ascend C API as a static archive, compiled once per toolchain and kept in the cache.

On exit of `twin_archive` the archive's folder holds libtwin.a, and `link_flags` links a kernel library with
this toolchain (tried with a small one: not every machine has the static C++ runtime).
"""

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import List, Tuple, Union

from tf_autofuse import diagnostics
from tf_autofuse.build.cache import Cache, Unwritable, content_key
from tf_autofuse.build.problem import Problem
from tf_autofuse.build.toolchain import ARCHIVE_FLAGS, LINK_FLAGS, Toolchain, archiver, first_error, run

ARCHIVE = "libtwin.a"
_STATIC_RUNTIME = ("-static-libstdc++", "-static-libgcc")
_PROBE = (
    'extern "C" __attribute__((visibility("default"))) int probe(int x)\n'
    "{ try { if (x) throw x; } catch (int) { return 1; } return 0; }\n"
)


@dataclass(frozen=True)
class TwinArchive:
    """path: libtwin.a. include: the folders a kernel's compilation looks into. key: of the archive's entry.
    made: whether it was built now."""

    path: Path
    include: Tuple[Path, ...]
    link_flags: Tuple[str, ...]
    key: str
    made: bool


class _Failed(Exception):
    def __init__(self, problem: Problem):
        super().__init__(problem.reason)
        self.problem = problem


def include_folders(npu_kernels: Path) -> Tuple[Path, ...]:
    return npu_kernels / "twin", npu_kernels / "twin" / "include", npu_kernels / "include"


def tree_digest(*folders: Path) -> str:
    """A digest of all C++ files below the folders: names and contents."""
    digest = hashlib.sha256()
    for folder in folders:
        for path in sorted(
            p for p in folder.rglob("*") if p.suffix in (".h", ".hpp", ".cpp", ".inc", ".def")
        ):
            digest.update(path.relative_to(folder).as_posix().encode("utf-8") + b"\0")
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def defines(check: bool) -> Tuple[str, ...]:
    """check: whether the twin checks every call's rules; the archive and the kernels must agree on it."""
    return () if check else ("-DTWIN_CHECK=0",)


def twin_archive(
    cache: Cache, toolchain: Toolchain, npu_kernels: Path, check: bool, jobs: int
) -> Union[TwinArchive, Problem]:
    """The archive for the twin's sources below `npu_kernels`, from the cache or built now with `jobs`
    compilers."""
    twin = npu_kernels / "twin"
    sources = sorted((twin / "src").glob("*.cpp"))
    if not sources:
        return Problem(
            "the sources of the host twin are missing below %s" % npu_kernels,
            "install tf_autofuse again: its npu_kernels folder is incomplete",
        )
    flags = ARCHIVE_FLAGS + defines(check)
    include = include_folders(npu_kernels)
    key = content_key(
        (
            ("twin sources", tree_digest(twin)),
            ("toolchain", toolchain.identity),
            ("flags", flags),
            ("link", LINK_FLAGS),
        )
    )

    def make(folder: Path):
        diagnostics.announce(
            "building the host twin of the Ascend C API, once for this compiler (about half a minute)"
        )
        objects = _compile(toolchain, flags, include, sources, folder, jobs)
        _archive(toolchain, objects, folder)
        link_flags = _usable_link_flags(toolchain, folder)
        return {
            "name": "host twin",
            "compiler": list(toolchain.command),
            "version": toolchain.version,
            "flags": list(flags),
            "link_flags": list(link_flags),
        }

    try:
        entry, made = cache.find_or_make("archive", key, make)
    except _Failed as failed:
        return failed.problem
    except Unwritable as error:
        return error.problem
    return TwinArchive(entry.file(ARCHIVE), include, tuple(entry.manifest["link_flags"]), key, made)


def _compile(toolchain: Toolchain, flags, include, sources, folder: Path, jobs: int) -> List[str]:
    def one(source: Path) -> str:
        target = source.stem + ".o"
        command = (
            toolchain.command + flags + tuple("-I%s" % i for i in include) + ("-c", str(source), "-o", target)
        )
        result = run(command, str(folder))
        if result.code != 0:
            raise _Failed(
                Problem(
                    "the host twin does not compile: %s" % first_error(result.output, source.parent)[0],
                    "use g++ 11 or newer (set CXX), or see the compiler's log",
                    result.output,
                )
            )
        return target

    with ThreadPoolExecutor(max_workers=max(1, jobs)) as pool:
        return list(pool.map(one, sources))


def _archive(toolchain: Toolchain, objects: List[str], folder: Path) -> None:
    tool = archiver(toolchain, str(folder))
    if tool is None:
        raise _Failed(Problem("the archiver `ar` was not found", "install binutils"))
    result = run((tool, "rcsD", ARCHIVE) + tuple(objects), str(folder))
    if result.code != 0:
        raise _Failed(
            Problem(
                "the archiver failed: %s" % first_error(result.output, folder)[0],
                "see its log",
                result.output,
            )
        )
    for name in objects:
        os.unlink(str(folder / name))


def _usable_link_flags(toolchain: Toolchain, folder: Path) -> Tuple[str, ...]:
    source = folder / "probe.cpp"
    source.write_text(_PROBE, encoding="ascii")
    tries = (LINK_FLAGS, tuple(f for f in LINK_FLAGS if f not in _STATIC_RUNTIME))
    try:
        for flags in tries:
            result = run(toolchain.command + ("-fPIC", "probe.cpp") + flags + ("-o", "probe.so"), str(folder))
            if result.code == 0:
                return flags
    finally:
        for name in ("probe.cpp", "probe.so"):
            if (folder / name).exists():
                (folder / name).unlink()
    raise _Failed(
        Problem(
            "the compiler can't link a shared object: %s" % first_error(result.output, folder)[0],
            "repair the compiler, or set CXX to another one",
            result.output,
        )
    )
