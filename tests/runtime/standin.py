"""What the tests of the NPU path share: the stand-in for libascendcl, and a toolkit's folder with it whose
compiler makes twin builds."""

import ctypes
import stat
import subprocess
from collections import namedtuple
from pathlib import Path

from tests.codegen.test_cann import toolkit
from tf_autofuse.build.kernels import BuildSettings, open_cache, twin_command
from tf_autofuse.build.toolchain import find_toolchain
from tf_autofuse.build.twin_archive import twin_archive
from tf_autofuse.resources import npu_kernels_dir

SOURCE = Path(__file__).with_name("standin_acl.cpp")
State = namedtuple("State", "allocations streams binaries misuses initialized")
INJECTED = 507899
#: What a run on a device that has just been opened calls.
RUN_CALLS = tuple(
    "aclrtSetDevice aclrtCreateStream aclrtSynchronizeStream aclrtMalloc aclrtMallocHost aclrtMemcpyAsync "
    "aclrtBinaryLoadFromFile aclrtBinaryGetFunction aclrtKernelArgsInit aclrtKernelArgsAppend "
    "aclrtKernelArgsFinalize aclrtLaunchKernelWithConfig".split()
)
_COMPILER = """#!/bin/sh
while [ $# -gt 0 ]; do if [ "$1" = -o ]; then echo object > "$2"; fi; shift; done
"""


def build_standin(home: Path) -> str:
    """Path of libascendcl.so in the toolkit's folder `home`."""
    path = home / "lib64" / "libascendcl.so"
    path.parent.mkdir(parents=True, exist_ok=True)
    flags = ["-O1", "-std=c++17", "-shared", "-fPIC", "-Wall", "-Werror"]
    subprocess.check_call(["g++"] + flags + [str(SOURCE), "-o", str(path), "-ldl"])
    return str(path)


def build_toolkit(home: Path, settings: BuildSettings) -> Path:
    """A CANN toolkit in which the compiler writes empty objects and the linker makes the working folder's
    twin library under the device binary's name: what the stand-in loads."""
    toolchain = find_toolchain(settings.environ)
    archive = twin_archive(open_cache(settings), toolchain, npu_kernels_dir(), True, 2)
    command = [word for word in twin_command(toolchain, archive, True) if word != "kernel.so"][:-1]
    toolkit(home, _COMPILER)
    linker = home / "compiler" / "ccec_compiler" / "bin" / "ld.lld"
    words = " ".join("'%s'" % word for word in command)
    linker.write_text('#!/bin/sh\nfor last; do :; done\nexec %s -o "$last"\n' % words)
    linker.chmod(linker.stat().st_mode | stat.S_IXUSR)
    build_standin(home)
    return home


class Standin:
    """The stand-in's own functions: failures are injected, and what is left over is counted."""

    def __init__(self, library: str):
        self._library = ctypes.CDLL(library)
        self.reset = self._library.standin_reset

    def fail(self, call: str, at: int) -> None:
        """The at-th call from now on fails; at < 0: that and every later one; 0: none."""
        self._library.standin_fail(call.encode(), at)

    def calls(self, name: str) -> int:
        return self._library.standin_calls(name.encode())

    def limit(self, bytes_: int) -> None:
        self._library.standin_limit(ctypes.c_uint64(bytes_))

    def foreign(self, on: bool) -> None:
        """Whether somebody else has initialised ACL."""
        self._library.standin_foreign(int(on))

    @property
    def state(self) -> State:
        values = (ctypes.c_int64 * 5)()
        self._library.standin_state(values)
        return State(*values)
