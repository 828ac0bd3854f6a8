"""The device build with a CANN toolkit, as data: flags and commands. CANN 8.1.RC1's own vector-core recipe,
but with the compiler's synchronisation off: generated code synchronises itself.
"""

from pathlib import Path
from typing import Mapping, NamedTuple, Optional, Tuple

#: For one object of one tiling key.
DEVICE_FLAGS = (
    "-O3",
    "-std=c++17",
    "--cce-aicore-arch=dav-c220-vec",
    "--cce-aicore-only",
    "--cce-auto-sync=off",
    "-mllvm",
    "-cce-aicore-stack-size=0x8000",
    "-mllvm",
    "-cce-aicore-function-stack-size=0x8000",
    "-mllvm",
    "-cce-aicore-record-overflow=true",
    "-mllvm",
    "-cce-aicore-addr-transform",
    "-mllvm",
    "-cce-aicore-dcci-insert-for-scalar=false",
)

_HOMES = ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME")
_BIN = ("compiler/ccec_compiler/bin", "tools/ccec_compiler/bin", "bin")


class Toolkit(NamedTuple):
    """home: the toolkit's folder; compiler: the device compiler; framework: the folder of
    kernel_operator.h."""

    home: Path
    compiler: Path
    framework: Path


def find_toolkit(environ: Mapping[str, str]) -> Optional[Toolkit]:
    """The CANN toolkit that ASCEND_HOME_PATH (or ASCEND_TOOLKIT_HOME) names; None where it names none, or the
    device compiler or its headers are not in it."""
    for variable in _HOMES:
        if not environ.get(variable):
            continue
        home = Path(environ[variable])
        compilers = [home / b / name for b in _BIN for name in ("ccec", "bisheng")]
        frameworks = [home / "compiler" / "tikcpp" / "tikcfw"] + sorted(home.glob("*/tikcpp/tikcfw"))
        compiler = next((c for c in compilers if c.is_file()), None)
        framework = next((f for f in frameworks if (f / "kernel_operator.h").is_file()), None)
        if compiler and framework:
            return Toolkit(home, compiler, framework)
    return None


def device_command(compiler: str, framework: str, helpers: str, symbol: str, key: int) -> Tuple[str, ...]:
    """The argument list that compiles kernel.cpp in the working folder to `<symbol>_<key>.o`.

    framework: the toolkit's tikcfw folder; helpers: the folder that holds autofuse/*.h.
    """
    includes = tuple("-I" + framework + sub for sub in ("", "/interface", "/impl")) + ("-I" + helpers, "-I.")
    return (
        (compiler, "-x", "cce")
        + DEVICE_FLAGS
        + includes
        + (
            "-DTILING_KEY_VAR=%d" % key,
            "-D%s=%s_%d" % (symbol, symbol, key),
            "-c",
            "kernel.cpp",
            "-o",
            "%s_%d.o" % (symbol, key),
        )
    )
