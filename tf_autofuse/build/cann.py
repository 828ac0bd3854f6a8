"""From kernel sources to a device binary, with a CANN toolkit.

On entry KernelSources of the ascend target and a toolkit (codegen/ascendc/cann.py finds it). On exit a
folder with

    <symbol>_<key>.o    one object for each tiling key
    <symbol>_aiv.o      all of them, linked: what the ACL runtime loads (runtime/acl.py)
    <symbol>.json       the description that CANN's own tools write beside a kernel
    lib<symbol>_host.so the host part: shapes and tiling (codegen/abi.py, without what runs the kernel)

or a BuildFailure with the compiler's first error, the source line and the TF nodes it stands for. Commands
are argument lists, never a shell's."""

import ctypes
import hashlib
import json
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

from tf_autofuse.build.kernels import BuildFailure, write_sources
from tf_autofuse.build.toolchain import COMMON, Toolchain, first_error, run
from tf_autofuse.codegen.ascendc.cann import DEVICE_FLAGS, Toolkit, device_command
from tf_autofuse.codegen.sources import DEVICE_SOURCE, HOST_SOURCE, KernelSources

#: What the linker makes of a vector core's objects; CANN 8.1.RC1's own recipe.
LINK_FLAGS = ("-m", "aicorelinux", "-Ttext=0")
#: Flags of the compilers that came after 8.1: they name the NPU instead of the core.
NEWER_FLAGS = ("-O3", "-std=c++17", "-fPIC", "-x", "asc", "--npu-arch=dav-2201", "--cce-auto-sync=off")
_KEY = re.compile(r"\bTILING_KEY_IS\((\d+)\)")
_NODE_COMMENT = re.compile(r"^\s*// (\S.*?)(?: {4}(\S.*))?$")


class DeviceBinary(NamedTuple):
    """keys: the tiling keys, each with an entry `<symbol>_<key>` in `path`. all_at_once: whether its blocks
    wait for each other, so that they must be launched together."""

    name: str
    symbol: str
    keys: Tuple[int, ...]
    path: str
    description: str
    host_library: str
    all_at_once: bool = False


def keys_of(sources: KernelSources) -> Tuple[int, ...]:
    """The tiling keys of the device source."""
    found = {int(k) for k in _KEY.findall(sources.text(DEVICE_SOURCE))}
    return tuple(sorted(found)) or (0,)


def entry(symbol: str, key: int) -> str:
    return "%s_%d" % (symbol, key)


def dialect(toolkit: Toolkit, folder: Path) -> str:
    """'cce' (8.1 and before) or 'asc': what the compiler's own help knows. Raises OSError."""
    help_text = run((str(toolkit.compiler), "--help"), str(folder), 60.0).output
    return "asc" if "--npu-arch" in help_text and "--cce-aicore-arch" not in help_text else "cce"


def compile_command(
    toolkit: Toolkit, helpers: str, symbol: str, key: int, words: str = "cce"
) -> Tuple[str, ...]:
    """Compiles kernel.cpp in the working folder to `<symbol>_<key>.o`. helpers: the folder of
    autofuse/*.h."""
    command = device_command(str(toolkit.compiler), str(toolkit.framework), helpers, symbol, key)
    if words == "cce":
        return command
    behind_flags = 1 + len(("-x", "cce") + DEVICE_FLAGS)
    return command[:1] + NEWER_FLAGS + command[behind_flags:]


def link_command(toolkit: Toolkit, symbol: str, keys: Tuple[int, ...]) -> Tuple[str, ...]:
    linker = toolkit.compiler.parent / "ld.lld"
    objects = tuple(entry(symbol, key) + ".o" for key in keys)
    return (str(linker),) + LINK_FLAGS + objects + ("-static", "-o", symbol + "_aiv.o")


def host_command(toolchain: Toolchain, symbol: str) -> Tuple[str, ...]:
    return (
        toolchain.command
        + ("-O2",)
        + COMMON
        + ("-shared", "-I.", HOST_SOURCE, "-o", "lib%s_host.so" % symbol)
    )


def description(
    sources: KernelSources, keys: Tuple[int, ...], binary: bytes, tiling_bytes: int
) -> Dict[str, Any]:
    """The kernel's json. tiling_bytes: of the tiling data."""
    return {
        "binFileName": sources.symbol + "_aiv",
        "binFileSuffix": ".o",
        "blockDim": -1,
        "coreType": "VectorCore",
        "intercoreSync": int(_synchronises(sources)),
        "kernelName": sources.symbol,
        "kernelList": [
            {
                "tilingKey": k,
                "kernelName": entry(sources.symbol, k),
                "kernelType": "KERNEL_TYPE_AIV_ONLY",
                "taskRation": "0:1",
            }
            for k in keys
        ],
        "magic": "RT_DEV_BINARY_MAGIC_ELF_AIVEC",
        "opParaSize": tiling_bytes,
        "workspace": {"num": 1, "size": [-1]},
        "sha256": hashlib.sha256(binary).hexdigest(),
        "taskRation": "0:1",
        "supportInfo": {"name": sources.name, "originalOps": list(sources.origin)},
    }


def region_of(sources: KernelSources, line: int) -> str:
    """What the generated line computes: the last comment before it that names a node, and the TF nodes."""
    lines = sources.text(DEVICE_SOURCE).split("\n")[:line]
    for text in reversed(lines):
        found = _NODE_COMMENT.match(text)
        if found and " = " in found.group(1):
            return found.group(1) + (" (of %s)" % found.group(2) if found.group(2) else "")
    return ""


def build_device(
    sources: KernelSources,
    toolkit: Toolkit,
    toolchain: Toolchain,
    helpers: str,
    folder: Path,
    tiling_bytes: Optional[int] = None,
) -> Union[DeviceBinary, BuildFailure]:
    """Everything into `folder`, which exists. tiling_bytes: None: the host library is asked. Nothing is
    raised for what the tools say."""
    keys = keys_of(sources)
    write_sources(sources, folder)
    try:
        words = dialect(toolkit, folder)
        commands: List[Tuple[str, ...]] = [
            compile_command(toolkit, helpers, sources.symbol, k, words) for k in keys
        ]
        commands += [link_command(toolkit, sources.symbol, keys), host_command(toolchain, sources.symbol)]
        for command in commands:
            result = run(command, str(folder))
            if result.code != 0:
                return _failure(sources, command, result.output, folder)
        binary = (folder / (sources.symbol + "_aiv.o")).read_bytes()
        host_library = folder / ("lib%s_host.so" % sources.symbol)
        if tiling_bytes is None:
            tiling_bytes = _tiling_bytes(host_library)
    except OSError as error:
        return BuildFailure(
            "the CANN toolkit in %s can't be used (%s)" % (toolkit.home, error),
            "set ASCEND_HOME_PATH to a complete toolkit (its set_env.sh does), or unset it",
            str(error),
            sources.name,
        )
    json_path = folder / (sources.symbol + ".json")
    json_path.write_text(json.dumps(description(sources, keys, binary, tiling_bytes), indent=2) + "\n")
    return DeviceBinary(
        sources.name,
        sources.symbol,
        keys,
        str(folder / (sources.symbol + "_aiv.o")),
        str(json_path),
        str(host_library),
        _synchronises(sources),
    )


def _tiling_bytes(library: Path) -> int:
    # Of a copy: what is loaded stays so, and would be found again, under the path that it had, by whoever
    # loads the library from the cache.
    with tempfile.TemporaryDirectory() as folder:
        function = ctypes.CDLL(shutil.copy(str(library), folder)).autofuse_tiling_size
    function.restype, function.argtypes = ctypes.c_int64, ()
    return function()


def _synchronises(sources: KernelSources) -> bool:
    return "SyncAll" in sources.text(DEVICE_SOURCE)


def _failure(sources: KernelSources, command: Tuple[str, ...], output: str, folder: Path) -> BuildFailure:
    text, source_line = first_error(output, folder)
    where = _region(sources, text)
    return BuildFailure(
        "%s failed on the kernel of %s: %s%s%s"
        % (
            Path(command[0]).name,
            sources.name,
            text,
            "; the line is: %s" % source_line if source_line else "",
            "; it computes %s" % where if where else "",
        ),
        "the region runs as TensorFlow's own ops; please report it with the folder %s" % folder,
        output,
        sources.name,
        source_line,
    )


def _region(sources: KernelSources, error: str) -> Optional[str]:
    found = re.match(r"%s:(\d+):" % re.escape(DEVICE_SOURCE), error)
    return region_of(sources, int(found.group(1))) if found else None
