"""The NPU runtime (npu_kernels/runtime) as a shared library, compiled once per toolchain and kept in the
cache.

On exit of `npu_runtime` the path of a library with the functions of npu_kernels/runtime/npu_runtime.h, which
runtime/acl.py and the native op both open: one process has one runtime. A Problem says what to do where
there is none.
"""

from pathlib import Path
from typing import Mapping, Union

from tf_autofuse.build.cache import Cache, Unwritable, content_key
from tf_autofuse.build.kernels import BuildSettings, compiler_for, open_cache, tools_digest
from tf_autofuse.build.problem import Problem
from tf_autofuse.build.toolchain import CompileFailed, Toolchain, run
from tf_autofuse.build.twin_archive import tree_digest
from tf_autofuse.resources import npu_kernels_dir

LIBRARY = "libautofuse_npu.so"
FLAGS = ("-std=c++17", "-O2", "-fPIC", "-fvisibility=hidden", "-Wall", "-shared")
LINK_FLAGS = ("-static-libstdc++", "-static-libgcc", "-Wl,--exclude-libs,ALL", "-Wl,-s", "-ldl", "-pthread")
_REMEDY = "set CXX to g++ 7 or newer"


def npu_runtime(settings: BuildSettings) -> Union[str, Problem]:
    """Raises nothing."""
    try:
        folder = npu_kernels_dir() / "runtime"
    except FileNotFoundError as error:
        return Problem(str(error), "install tf_autofuse again")
    cache = open_cache(settings)
    if isinstance(cache, Problem):
        return cache
    code = content_key((("npu runtime", tree_digest(folder)),))[:24]
    toolchain = compiler_for(settings, "the NPU runtime")
    if isinstance(toolchain, Problem):
        entry = cache.find_any("archive", code)
        return str(entry.file(LIBRARY)) if entry is not None else toolchain
    return _made(cache, code, toolchain, folder)


def _made(cache: Cache, code: str, toolchain: Toolchain, folder: Path) -> Union[str, Problem]:
    sources = tuple(str(path) for path in sorted(folder.glob("*.cpp")))

    def make(into: Path) -> Mapping[str, object]:
        command = toolchain.command + FLAGS + sources + LINK_FLAGS + ("-o", LIBRARY)
        result = run(command, str(into))
        if result.code != 0:
            raise CompileFailed(result.output, folder)
        return {"name": "NPU runtime", "compiler": list(toolchain.command), "version": toolchain.version}

    try:
        entry, _ = cache.find_or_make("archive", code + tools_digest(toolchain, FLAGS, LINK_FLAGS), make)
    except CompileFailed as failed:
        return Problem("the NPU runtime does not compile: %s" % failed.error, _REMEDY, failed.output)
    except Unwritable as error:
        return error.problem
    except OSError as error:
        return Problem("the NPU runtime can't be built (%s)" % (error.strerror or error), _REMEDY)
    return str(entry.file(LIBRARY))
