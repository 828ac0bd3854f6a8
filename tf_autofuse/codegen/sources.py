"""The text of one kernel: what codegen hands to build.

Two regions that compute the same have the same code and differ only in names and comments; `code_text` is the
part that decides the machine code, so that they share one build.
"""

import re
from dataclasses import dataclass, field
from typing import NamedTuple, Optional, Tuple

#: File names that build relies on; the rest of `files` is for people and for CANN's build.
DEVICE_SOURCE = "kernel.cpp"
TILING_HEADER = "tiling_data.h"
HOST_SOURCE = "host.cpp"
TWIN_SOURCE = "twin_launch.cpp"
CMAKE = "CMakeLists.txt"
HOST_KERNEL = "kernel.c"
#: The files of a library that runs on the host twin: host code first, then what includes the device source.
TWIN_UNITS = (HOST_SOURCE, TWIN_SOURCE)
COMPILED = (DEVICE_SOURCE, TILING_HEADER) + TWIN_UNITS


class Tools(NamedTuple):
    """What build makes a library with. name: 'twin' (g++ and the host twin) or 'host' (the C compiler).
    compiled: the files that decide the machine code. main: the one that a reader wants to see."""

    name: str
    compiled: Tuple[str, ...]
    main: str


TWIN_TOOLS = Tools("twin", COMPILED, DEVICE_SOURCE)
HOST_TOOLS = Tools("host", (HOST_KERNEL,), HOST_KERNEL)

_COMMENT = re.compile(r"[ \t]*//[^\n]*")
_BLANK = re.compile(r"\n\s*\n+")


@dataclass(frozen=True)
class KernelSources:
    """name: the fused op's name. symbol: the entry function, a short safe identifier. files: (file name,
    text). origin: the TF nodes. stages: (file name, contents) of the stages before, for the debug folder.
    in_place: the (input, output) pairs that may share memory as far as the order of the kernel's accesses
    goes; None: no more is known than what the graph says."""

    name: str
    symbol: str
    files: Tuple[Tuple[str, str], ...]
    origin: Tuple[str, ...] = ()
    stages: Tuple[Tuple[str, bytes], ...] = field(default=(), compare=False, repr=False)
    tools: Tools = TWIN_TOOLS
    in_place: Optional[Tuple[Tuple[int, int], ...]] = None

    def text(self, file_name: str) -> str:
        """The text of one file. KeyError for others."""
        return dict(self.files)[file_name]

    @property
    def code_text(self) -> Tuple[Tuple[str, str], ...]:
        """The compiled files without comments and with the entry's name neutral. Generated code has no string
        literal with `//` in it (literals.py sees to that)."""
        result = []
        for name in self.tools.compiled:
            text = _BLANK.sub("\n", _COMMENT.sub("", self.text(name)))
            result.append((name, text.replace(self.symbol, "KERNEL").replace(self.name, "KERNEL")))
        return tuple(result)
