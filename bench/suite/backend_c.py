"""Fused C written by hand (bench/handwritten), the practical limit, and the memory roofline.

Built with gcc -O3 -march=native, OpenMP for the second thread, and the host target's vector math, so that
what is compared is the loops. The floor is an empty C function that gets the same arguments.
"""
import ctypes
import hashlib
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from bench.suite import cases
from bench.suite.worker import Prepared

BENCH = Path(__file__).resolve().parent.parent
HEADERS = BENCH.parent / "npu_kernels" / "host"
SOURCES = sorted((BENCH / "handwritten").glob("*.c"))
FLAGS = ("-O3", "-march=native", "-std=gnu11", "-fPIC", "-shared", "-fopenmp", "-fno-trapping-math",
         "-fno-math-errno", "-Wall", "-Werror")


def library():
    digest = hashlib.sha256(repr(FLAGS).encode())
    for path in SOURCES + sorted(HEADERS.glob("*.h")):
        digest.update(path.read_bytes())
    folder = Path(tempfile.gettempdir()) / ("autofuse-bench-%d" % os.getuid())
    folder.mkdir(exist_ok=True)
    target = folder / (digest.hexdigest()[:20] + ".so")
    if not target.exists():
        part = folder / ("part-%d.so" % os.getpid())
        subprocess.run([os.environ.get("CC", "gcc"), *FLAGS, "-I%s" % HEADERS, "-o", str(part)] +
                       [str(s) for s in SOURCES] + ["-lm"], check=True)
        os.replace(str(part), str(target))
    return ctypes.CDLL(str(target))


def prepare(name, options):
    if name.startswith("stream:"):
        return stream(name, options)
    case = cases.BY_NAME[name]
    inputs = cases.seeded_inputs(case)
    exact = case.formula(cases.numpy_functions, *[x.astype(np.float64) for x in inputs])
    out = cases.aligned(np.zeros(exact.shape, case.inputs[0][1]))
    loaded = library()
    function, nothing = getattr(loaded, "hand_" + case.c_function), loaded.hand_nothing
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in [out] + inputs]
    arguments = pointers + [ctypes.c_int64(d) for d in case.dims] + [ctypes.c_int(options["threads"])]

    def call(_keep=(out, inputs)):
        function(*arguments)
    call()
    cases.check(case, out, inputs)
    return Prepared(call, lambda: nothing(*arguments))


def stream(name, options):
    """stream:KIND:KiB, KIND copy or add: one pass over arrays of that size."""
    _, kind, kib = name.split(":")
    arrays = [cases.aligned(np.ones(int(kib) * 256, np.float32)) for _ in range(3)]
    function = getattr(library(), "stream_" + kind)
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in arrays]
    arguments = pointers + [ctypes.c_int64(arrays[0].size), ctypes.c_int(options["threads"])]
    return Prepared(lambda _keep=arrays: function(*arguments))
