"""A kernel and a twin so small that building them takes a moment: what build does with them is the same."""

import os
import stat
import sys
from pathlib import Path

from tf_autofuse.build.kernels import BuildSettings
from tf_autofuse.codegen.sources import KernelSources

_HOST = """\
#include <cstdint>
#define EXPORT extern "C" __attribute__((visibility("default")))
// {comment}
EXPORT int64_t autofuse_abi_version(void) {{ return 1; }}
EXPORT int32_t autofuse_shape(const int64_t*, int64_t*, int64_t*) {{ return 0; }}
EXPORT const char* autofuse_check_text(int32_t) {{ return ""; }}
EXPORT int64_t autofuse_tiling_size(void) {{ return 8; }}
struct AutofuseMachine;
EXPORT int32_t autofuse_tiling(const int64_t*, const AutofuseMachine*, void*, uint32_t* blocks,
                               uint64_t* w) {{
  *blocks = {answer};
  *w = 0;
  return 0;
}}
"""
_TWIN = """\
#include "kernel.cpp"
#include "twin/launch.h"
extern "C" __attribute__((visibility("default"))) int32_t autofuse_run_blocks(
    void* const*, const uint64_t*, void*, const void*, uint32_t, uint32_t, uint32_t, char*, uint64_t) {{
  return {symbol}() + twin_zero();
}}
"""


def npu_kernels(folder: Path) -> Path:
    """A npu_kernels tree with one source."""
    files = {
        "twin/include/twin/launch.h": "#pragma once\n#include <cstdint>\nint32_t twin_zero();\n",
        "twin/src/zero.cpp": '#include "twin/launch.h"\nint32_t twin_zero() { return 0; }\n',
        "twin/kernel_operator.h": "#pragma once\n",
        "include/autofuse/none.h": "#pragma once\n",
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def sources(
    name: str = "autofuse_pointwise_0_Abs", answer: int = 1, comment: str = "Abs", broken: str = ""
) -> KernelSources:
    """A kernel library whose tiling gives `answer` as block dim."""
    symbol = name.lower()
    return KernelSources(
        name,
        symbol,
        (
            (
                "kernel.cpp",
                '// %s\n#include "tiling_data.h"\nint %s() {\n  return 0;%s\n}\n' % (comment, symbol, broken),
            ),
            ("tiling_data.h", "#pragma once\n"),
            ("host.cpp", _HOST.format(answer=answer, comment=comment)),
            ("twin_launch.cpp", _TWIN.format(symbol=symbol)),
            ("CMakeLists.txt", "# device build\n"),
        ),
        origin=(comment,),
    )


def settings(cache_dir, **values) -> BuildSettings:
    environ = dict(os.environ, **values.pop("environ", {}))
    return BuildSettings(cache_dir=str(cache_dir), environ=environ, **values)


def counting_compiler(folder: Path) -> Path:
    """A compiler that notes each call in `<folder>/calls` and passes it on."""
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "counting-g++"
    script.write_text(
        '#!%s\nimport os, sys\nopen(%r, "a").write(" ".join(sys.argv[1:]) + "\\n")\n'
        'os.execvp("g++", ["g++"] + sys.argv[1:])\n' % (sys.executable, str(folder / "calls")),
        encoding="utf-8",
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return script


def calls(folder: Path, word: str) -> int:
    """How many calls of the counting compiler had `word` among their arguments."""
    log = folder / "calls"
    return sum(word in line.split() for line in log.read_text().splitlines()) if log.exists() else 0
