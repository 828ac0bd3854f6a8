"""The host part of a kernel, which comes as one text of several files between marker lines.

    // AUTOFUSE_SPLIT_FILE_BEGIN: <key>
    ...
    // AUTOFUSE_SPLIT_FILE_END: <key>

On exit file names and texts; whatever is not written like that is a CompileError that says `split host
source`."""

import re
from typing import Dict, List, Optional, Tuple

_MARKER = re.compile(r"^// AUTOFUSE_SPLIT_FILE_(BEGIN|END): (.*)$")
_KEY = re.compile(r"[A-Za-z0-9_.-]+\Z")
_STAGES = "State Log Pgo Base Solver Api Entry Tail".split()
HEADERS: Dict[str, str] = {"TilingHead": "autofuse_tiling_func_common.h"}
HEADERS.update({"Tiling%sHeader" % s: "autofuse_tiling_func_%s.h" % s.lower() for s in _STAGES})
HEADERS.update(
    {k: "cube_kernel_tiling_wrapper.h" for k in ("ACubeKernelTilingWrapperHpp", "CubeKernelTilingWrapperHpp")}
)
#: One of these must be there: what the units include.
_ROOTS = ("TilingHead", "TilingStateHeader", "TilingBaseHeader", "TilingEntryHeader", "TilingTailHeader")


class CompileError(Exception):
    """A kernel could not be compiled; the text has the compiler's words or what is wrong with the source."""


def _wrong(what: str) -> CompileError:
    return CompileError("invalid split host source: " + what)


def is_split(text: str) -> bool:
    return any(_MARKER.match(line) for line in text.split("\n"))


def split(text: str) -> List[Tuple[str, str]]:
    """(key, text) of each file, in order. Raises CompileError."""
    files: List[Tuple[str, str]] = []
    key: Optional[str] = None
    body: List[str] = []
    for line in text.split("\n"):
        marker = _MARKER.match(line)
        if marker is None:
            if key is None and line.strip():
                raise _wrong("text outside of the markers: %r" % line[:60])
            body.append(line)
        elif marker.group(1) == "BEGIN":
            if key is not None:
                raise _wrong("%s begins inside of %s" % (marker.group(2), key))
            key, body = marker.group(2), []
            if not _KEY.match(key) or ".." in key:
                raise CompileError("invalid split host source key: %r" % key)
            if key in [k for k, _ in files]:
                raise _wrong("%s comes twice" % key)
        else:
            if key != marker.group(2):
                raise _wrong("%s ends, but %s has begun" % (marker.group(2), key))
            files.append((key, "\n".join(body) + "\n" if body else ""))
            key = None
    if key is not None:
        raise _wrong("%s does not end" % key)
    return files


def host_files(text: str, graph: str) -> Dict[str, str]:
    """File name -> text of the host part. graph: the normalised name. Raises CompileError."""
    if not is_split(text):
        return {"%s_tiling_func.cpp" % graph: text}
    files = split(text)
    keys = [key for key, _ in files]
    for key in keys:
        if key not in HEADERS and (key.endswith("Header") or key.endswith("Hpp")):
            raise CompileError("invalid split host source key: %s is no known header" % key)
    if not any(root in keys for root in _ROOTS):
        raise _wrong("none of %s is there" % ", ".join(_ROOTS))
    old_format = [k for k in keys if k in HEADERS] == ["TilingHead"]
    made: Dict[str, str] = {}
    for key, body in files:
        if key in HEADERS:
            made[HEADERS[key]] = body
        elif "TilingData" not in key:
            first = '#include "%s"\n' % HEADERS["TilingHead"] if old_format else ""
            made["%s_tiling_func_%s.cpp" % (graph, key)] = first + body
    if not any(name.endswith(".cpp") for name in made):
        raise _wrong("there is no unit to compile")
    return made
