"""Builds the twin's archive and the probe kernels once per test run, and runs probes on numpy arrays.

The products go to a folder under the system's temporary directory, named after the content of every source
that goes in, so parallel test workers and repeated runs share them.
"""

import ctypes
import hashlib
import os
import pathlib
import shutil
import subprocess
import tempfile

import numpy as np
from filelock import FileLock

HERE = pathlib.Path(__file__).resolve().parent
NPU_KERNELS = HERE.parent.parent / "npu_kernels"
TWIN = NPU_KERNELS / "twin"
ARCHIVE_FLAGS = ["-O3", "-std=c++17", "-fPIC", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"]
KERNEL_FLAGS = [
    "-O0",
    "-std=c++17",
    "-fPIC",
    "-Wall",
    "-Wno-unused-variable",
    "-I%s" % TWIN,
    "-I%s" % (TWIN / "include"),
    "-I%s" % (NPU_KERNELS / "include"),
]
TILE = 2048


def compiler() -> str:
    return os.environ.get("CXX") or shutil.which("g++") or "g++"


def _digest(*folders: pathlib.Path) -> str:
    h = hashlib.sha256()
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".h", ".cpp"):
                h.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes() + b"\0")
    return h.hexdigest()[:20]


def _run(command):
    done = subprocess.run(
        [str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True
    )
    if done.returncode:
        raise RuntimeError("%s\n%s" % (" ".join(str(c) for c in command), done.stdout))
    return done.stdout


def _folder(name: str) -> pathlib.Path:
    folder = pathlib.Path(tempfile.gettempdir()) / ("autofuse-twin-tests-%d" % os.getuid()) / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def archive(checked: bool = True) -> pathlib.Path:
    """The twin's static library; checked=False builds it without its checks."""
    folder = _folder(_digest(TWIN) + ("" if checked else "-unchecked"))
    target = folder / "libtwin.a"
    with FileLock(str(folder / "lock")):
        if not target.exists():
            objects = []
            for source in sorted((TWIN / "src").glob("*.cpp")):
                obj = folder / (source.stem + ".o")
                level = [] if checked else ["-O1"]  # the second build is for its values, not its speed
                _run(
                    [compiler(), *ARCHIVE_FLAGS, *level, "-DTWIN_CHECK=%d" % checked, "-c", source, "-o", obj]
                )
                objects.append(obj)
            _run(["ar", "rcs", folder / "part.a", *objects])
            os.replace(str(folder / "part.a"), str(target))
    return target


def library(*sources: str, checked: bool = True) -> "Probes":
    """Compiles kernels/<source>.cpp with probe_main.cpp into one shared library and loads it."""
    twin = archive(checked)
    folder = _folder(
        _digest(TWIN, NPU_KERNELS / "include", HERE / "kernels")
        + "-"
        + "-".join(sources)
        + ("" if checked else "-unchecked")
    )
    target = folder / "probes.so"
    with FileLock(str(folder / "lock")):
        if not target.exists():
            part = folder / "part.so"
            _run(
                [
                    compiler(),
                    *KERNEL_FLAGS,
                    "-DTWIN_CHECK=%d" % checked,
                    "-shared",
                    *[HERE / "kernels" / (s + ".cpp") for s in ("probe_main",) + sources],
                    twin,
                    "-o",
                    part,
                    "-pthread",
                ]
            )
            os.replace(str(part), str(target))
    return Probes(target)


class ProbeTiling(ctypes.Structure):
    _fields_ = [
        ("count", ctypes.c_uint32),
        ("tile", ctypes.c_uint32),
        ("number", ctypes.c_int64 * 6),
        ("value", ctypes.c_double * 4),
    ]


class Violation(Exception):
    """What the launcher reported."""


class Probes:
    def __init__(self, path: pathlib.Path):
        self.lib = ctypes.CDLL(str(path))
        self.lib.probe_run.restype = ctypes.c_int32

    def launch(
        self,
        name,
        buffers,
        writable,
        count,
        numbers=(),
        values=(),
        blocks=1,
        first=0,
        last=None,
        needs_all=False,
        workspace=None,
        tile=TILE,
        tiling=None,
    ):
        """Runs a probe; buffers are numpy arrays, changed in place where writable.

        Raises Violation with the text.
        """
        tiling = tiling or ProbeTiling(count, tile)
        for i, v in enumerate(numbers):
            tiling.number[i] = int(v)
        for i, v in enumerate(values):
            tiling.value[i] = float(v)
        n = len(buffers)
        gm = (ctypes.c_void_p * n)(*[b.ctypes.data for b in buffers])
        sizes = (ctypes.c_uint64 * n)(*[b.nbytes for b in buffers])
        flags = (ctypes.c_uint8 * n)(*[int(w) for w in writable])
        error = ctypes.create_string_buffer(512)
        code = self.lib.probe_run(
            name.encode(),
            gm,
            sizes,
            flags,
            n,
            ctypes.c_void_p(workspace.ctypes.data if workspace is not None else None),
            ctypes.c_uint64(workspace.nbytes if workspace is not None else 0),
            ctypes.byref(tiling),
            blocks,
            first,
            blocks if last is None else last,
            int(needs_all),
            error,
            ctypes.c_uint64(len(error)),
        )
        if code:
            raise Violation(error.value.decode())

    def __call__(self, name, out_dtype, *inputs, numbers=(), values=()):
        """An elementwise probe: arrays of one length in, an array of that length out."""
        inputs = [np.ascontiguousarray(x) for x in inputs]
        out = np.full(len(inputs[0]), 0x5A, np.uint8).astype(out_dtype)
        self.launch(name, inputs + [out], [0] * len(inputs) + [1], len(out), numbers, values)
        return out
