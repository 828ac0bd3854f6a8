"""One folder a region that shows how its kernel came to be, and runs it alone.

    <debug_dir>/<entry symbol>-<code digest>/
        hint.txt, impl_<key>.txt, tiling.txt, fused.pb    the stages before codegen
        kernel.cpp, tiling_data.h, host.cpp, ...          the sources
        compile_twin.sh, compile_ascend.sh                the compile commands as runnable text (of the host
                                                          target: compile_host.sh)
        repro.py                                          rebuilds and reruns the region (see its --help)
        manifest.json, compiler.log                       what became of it

A region that a stage before the build refuses leaves hint.txt, fused.pb and failure.txt in a folder of its
own. A second run writes the same files again. Nothing is deleted.
"""

import hashlib
import json
import os
import re
import shlex
from pathlib import Path
from typing import Sequence, Union

from tf_autofuse.codegen.ascendc import cann
from tf_autofuse.codegen.ascendc.names import entry_symbol
from tf_autofuse.codegen.sources import DEVICE_SOURCE, HOST_KERNEL, TWIN_TOOLS, TWIN_UNITS, KernelSources
from tf_autofuse.ir import proto
from tf_autofuse.ir.asc_graph import FusedGraph
from tf_autofuse.ir.text import dump

DEFAULT = "autofuse_debug"

_REPRO = '''\
"""Rebuilds and reruns {name} alone, without TensorFlow. See --help."""
import sys
from pathlib import Path

from tf_autofuse.runtime.repro import main

sys.exit(main(Path(__file__).resolve().parent))
'''

_TWIN = """\
#!/bin/sh
# The host library of {name} on the twin of the Ascend C API. NPU_KERNELS: the project's npu_kernels folder.
set -e
cd "$(dirname "$0")"
: "${{NPU_KERNELS:={npu_kernels}}}"
: "${{CXX:={compiler}}}"
INCLUDE="-I. -I$NPU_KERNELS/twin -I$NPU_KERNELS/twin/include -I$NPU_KERNELS/include"
"$CXX" {flags} $INCLUDE {units} "$NPU_KERNELS"/twin/src/*.cpp -shared -o kernel.so
"""

_HOST = """\
#!/bin/sh
# The library of {name} for this machine's CPU. NPU_KERNELS: the project's npu_kernels folder.
set -e
cd "$(dirname "$0")"
: "${{NPU_KERNELS:={npu_kernels}}}"
: "${{CXX:={compiler}}}"
"$CXX" {flags} "-I$NPU_KERNELS/host" {units} -shared -o kernel.so
"""

_ASCEND = """\
#!/bin/sh
# The device objects of {name}, one per tiling key, with a CANN toolkit.
# NPU_KERNELS: the project's npu_kernels folder.
set -e
cd "$(dirname "$0")"
: "${{NPU_KERNELS:={npu_kernels}}}"
: "${{ASCEND_HOME_PATH:?set it to the CANN toolkit}}"
CCEC="$(ls "$ASCEND_HOME_PATH"/compiler/ccec_compiler/bin/ccec \\
        "$ASCEND_HOME_PATH"/tools/ccec_compiler/bin/ccec \\
        "$ASCEND_HOME_PATH"/bin/bisheng 2>/dev/null | head -n 1)"
TIKCFW="$(ls -d "$ASCEND_HOME_PATH"/compiler/tikcpp/tikcfw \\
          "$ASCEND_HOME_PATH"/*/tikcpp/tikcfw 2>/dev/null | head -n 1)"
{commands}
"""


def write_failure(debug_dir: str, fused: FusedGraph, stage: str, trace: str) -> Path:
    """Write the folder of a region that `stage` has refused; trace: the exception's. Raises OSError."""
    data = proto.to_bytes(fused)
    digest = hashlib.sha256(data).hexdigest()
    folder = Path(debug_dir) / ("%s-%s" % (entry_symbol(fused.name), digest[:8]))
    folder.mkdir(parents=True, exist_ok=True)
    _put(folder / "hint.txt", dump(fused))
    _put(folder / "fused.pb", data)
    _put(folder / "failure.txt", "%s, stage %s\n\n%s" % (fused.name, stage, trace))
    return folder


def write(
    debug_dir: str, code: str, sources: KernelSources, result, compile_flags: Sequence[str], npu_kernels: Path
) -> Path:
    """Write the folder of one region; result: its KernelBinary or BuildFailure. compile_flags: the compiler
    and its flags. Raises OSError."""
    folder = Path(debug_dir) / ("%s-%s" % (sources.symbol, code[:8]))
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in sources.stages:
        _put(folder / name, data)
    for name, text in sources.files:
        _put(folder / name, text)
    kernels = shlex.quote(str(npu_kernels))
    on_twin = sources.tools == TWIN_TOOLS
    _put(
        folder / ("compile_twin.sh" if on_twin else "compile_host.sh"),
        (_TWIN if on_twin else _HOST).format(
            name=sources.symbol,
            npu_kernels=kernels,
            compiler=shlex.quote(compile_flags[0]),
            flags=" ".join(map(shlex.quote, compile_flags[1:])),
            units=" ".join(TWIN_UNITS if on_twin else (HOST_KERNEL,)),
        ),
        0o755,
    )
    if on_twin:
        _put(
            folder / "compile_ascend.sh",
            _ASCEND.format(
                name=sources.symbol, npu_kernels=kernels, commands="\n".join(_device_commands(sources))
            ),
            0o755,
        )
    _put(folder / "repro.py", _REPRO.format(name=sources.symbol))
    library = getattr(result, "library", None)
    _put(
        folder / "manifest.json",
        json.dumps(
            {
                "name": sources.name,
                "symbol": sources.symbol,
                "code": code,
                "origin": list(sources.origin),
                "library": library,
                "key": getattr(result, "key", None),
                "reason": getattr(result, "reason", None),
                "source_line": getattr(result, "source_line", None),
            },
            indent=1,
            sort_keys=True,
        )
        + "\n",
    )
    log = getattr(result, "log", "")
    if log:
        _put(folder / "compiler.log", log)
    return folder


def _device_commands(sources: KernelSources):
    keys = re.findall(r"TILING_KEY_IS\((\d+)\)", sources.text(DEVICE_SOURCE))
    for key in sorted(set(map(int, keys))):
        words = cann.device_command("$CCEC", "$TIKCFW", "$NPU_KERNELS/include", sources.symbol, key)
        yield " ".join('"%s"' % w if "$" in w else shlex.quote(w) for w in words)


def _put(path: Path, data: Union[str, bytes], mode: int = 0o644) -> None:
    with open(str(path), "wb") as stream:
        stream.write(data.encode("utf-8") if isinstance(data, str) else data)
    os.chmod(str(path), mode)
