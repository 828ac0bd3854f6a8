"""Compiles C loops around host expressions, keeps gcc's vectorizer report, and calls them on arrays.

A loop is named, takes a destination and its inputs as pointers without aliasing, and runs over n elements.
Products go to a folder under the system's temporary directory that is named after all sources and flags.
"""
import ctypes
import hashlib
import os
import re
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Dict, List, NamedTuple, Sequence, Tuple

import numpy as np
import pytest
from filelock import FileLock

HEADERS = Path(__file__).resolve().parents[2] / "npu_kernels" / "host"
#: What the headers ask for, and the instruction sets that are tried.
#: Equal functions are not merged, so that each has its own line in the report.
FLAGS = ("-std=gnu11", "-fPIC", "-fno-trapping-math", "-fno-math-errno", "-ffp-contract=off", "-fno-ipa-icf",
         "-Wall", "-Werror", "-Wno-unused-function")
AVX2 = ("-O3", "-mavx2", "-mfma", "-mf16c", "-mbmi2")
BASELINE = ("-O1", "-msse2")
PARTS = 4

#: Turns flushing of denormals on or off for the calling thread.
_FLUSH = """
void flush_denormals(int on) {
  unsigned state = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(on ? state | 0x8040u : state & ~0x8040u);
}
"""


class Loop(NamedTuple):
    """dst[i] = expression of {0} {1} {2}; types: C types of the result and of the inputs; headers: files."""

    name: str
    types: Tuple[str, ...]
    expression: str
    headers: Tuple[str, ...] = ()

    def text(self) -> str:
        inputs = ["const %s* restrict in%d" % (t, i) for i, t in enumerate(self.types[1:])]
        values = ["const %s v%d = in%d[i];" % (t, i, i) for i, t in enumerate(self.types[1:])
                  if "{%d}" % i in self.expression]
        body = re.sub(r"\{(\d)\}", r"v\1", self.expression)
        parameters = ", ".join(["%s* restrict dst" % self.types[0]] + inputs + ["int64_t n"])
        return "void %s(%s) { for (int64_t i = 0; i < n; ++i) { %s dst[i] = %s; } }\n" % (
            self.name, parameters, " ".join(values), body)


class Library:
    """Loops, compiled. vectorized: a loop's name -> bytes of its widest vectors, 0 where it is scalar."""

    def __init__(self, path: Path, vectorized: Dict[str, int]):
        self._library = ctypes.CDLL(str(path))
        self.vectorized = vectorized

    def __call__(self, name: str, out_type, *arrays: np.ndarray) -> np.ndarray:
        arrays = [np.ascontiguousarray(a) for a in arrays]
        out = np.empty(len(arrays[0]), out_type)
        function = getattr(self._library, name)
        function.restype = None
        function(*[ctypes.c_void_p(a.ctypes.data) for a in [out] + arrays], ctypes.c_int64(len(out)))
        return out

    def function(self, name: str):
        """The function itself, for ctypes."""
        return getattr(self._library, name)

    def seconds(self, name: str, out: np.ndarray, *arrays: np.ndarray, count: int, times: int) -> float:
        """What the function `seconds` of the library measures for that many calls of a loop."""
        timer = self._library.seconds
        timer.restype = ctypes.c_double
        return timer(getattr(self._library, name), *[ctypes.c_void_p(a.ctypes.data) for a in (out,) + arrays],
                     ctypes.c_int64(count), ctypes.c_int64(times))

    def flush_denormals(self, on: bool) -> None:
        """For the calling thread; numpy's arithmetic follows."""
        self._library.flush_denormals(ctypes.c_int(on))


def can_run(flags: Sequence[str]) -> bool:
    """Whether this machine's processor has the instructions."""
    features = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    return all(" %s" % flag[2:] in features for flag in flags if flag[:2] == "-m")


def library(loops: Sequence[Loop], flags: Sequence[str] = AVX2, extra: str = "") -> Library:
    """The loops and the C functions of the text `extra`, compiled once for all runs with the same sources;
    skips where they cannot run."""
    if not can_run(flags):
        pytest.skip("this processor lacks %s" % " ".join(flags))
    parts = [list(loops[i::PARTS]) for i in range(PARTS)]
    texts = ["#include <stdint.h>\n" + "".join('#include "%s"\n' % h for h in headers(part)) +
             "".join(loop.text() for loop in part) for part in parts]
    texts[0] += _FLUSH + extra
    digest = hashlib.sha256(repr((FLAGS, tuple(flags), texts)).encode())
    for path in sorted(HEADERS.glob("*.h")):
        digest.update(path.read_bytes())
    folder = Path(tempfile.gettempdir()) / ("autofuse-host-loops-%d" % os.getuid()) / digest.hexdigest()[:20]
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / "loops.so"
    with FileLock(str(folder / "lock")):
        if not target.exists():
            with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
                units = list(pool.map(lambda i: _compile(folder, i, texts[i], flags), range(PARTS)))
            _gcc(["-shared", *units, "-o", folder / "part.so", "-lm"])
            os.replace(str(folder / "part.so"), str(target))
    return Library(target, _report(folder, parts, texts))


def check_header(name: str, language: str) -> None:
    """Raises RuntimeError where the header does not compile alone, as 'c' or 'c++'."""
    warnings = [f for f in FLAGS if f.startswith("-W")]
    _gcc([*warnings, "-x", language, "-fsyntax-only", "-include", HEADERS / name, os.devnull])


def headers(loops: Sequence[Loop]) -> List[str]:
    return sorted({h for loop in loops for h in loop.headers})


def _compile(folder: Path, i: int, text: str, flags: Sequence[str]) -> Path:
    source, target = folder / ("loops_%d.c" % i), folder / ("loops_%d.o" % i)
    source.write_text(text)
    report = _gcc([*FLAGS, *flags, "-I%s" % HEADERS, "-fopt-info-vec-optimized", "-c", source, "-o", target])
    (folder / ("report_%d" % i)).write_text(report)
    return target


def _gcc(arguments: Sequence) -> str:
    command = [os.environ.get("CC", "gcc")] + [str(a) for a in arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
    if done.returncode:
        raise RuntimeError("%s\n%s" % (" ".join(map(str, arguments)), done.stdout[:4000]))
    return done.stdout


def _report(folder: Path, parts, texts) -> Dict[str, int]:
    """A loop is one line of its source, so the report's lines say which one they are about."""
    widths = {}
    for i, part in enumerate(parts):
        first = texts[i][:texts[i].find("void %s(" % part[0].name)].count("\n") + 1 if part else 0
        for loop in part:
            widths[loop.name] = 0
        found = re.findall(r"loops_%d\.c:(\d+):\d+: optimized: loop vectorized using (\d+) byte" % i,
                           (folder / ("report_%d" % i)).read_text())
        for line, width in found:
            name = part[int(line) - first].name
            widths[name] = max(widths[name], int(width))
    return widths
