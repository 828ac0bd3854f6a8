"""Kernel sources from a folder in the place of generated ones (--replace_kernel).

For a person who changes a generated kernel by hand and wants to see it run: the folder is laid out as
debug_dir is, <folder>/<fused op's name> or <folder>/<entry symbol>[-<digest>], and the files in it that the
generator writes, too, take their place; what is not there is generated. On entry the generated sources. On
exit sources that are built, cached and run as any others; nothing says that they compute the same.
"""
import hashlib
from dataclasses import replace
from pathlib import Path
from typing import List

from tf_autofuse import diagnostics
from tf_autofuse.codegen.sources import CMAKE, COMPILED, HOST_KERNEL, KernelSources

#: Files that may be replaced.
NAMES = COMPILED + (HOST_KERNEL, CMAKE)


def replaced(sources: KernelSources, folder: str) -> KernelSources:
    """The sources with what `folder` has of them. What can't be read is reported once and generated."""
    place = _place(sources, Path(folder))
    if place is None:
        return sources
    files = []
    found: List[str] = []
    for name, text in sources.files:
        path = place / name
        if name in NAMES and path.is_file():
            try:
                text = path.read_text(encoding="utf-8")
                found.append(name)
            except (OSError, ValueError) as error:
                diagnostics.warn_once("replace_kernel %s" % path, "%s can't be read (%s)" % (path, error),
                                      "the generated text is used")
        files.append((name, text))
    if not found:
        reason = "--replace_kernel: %s has no file of the kernel %s" % (place, sources.name)
        diagnostics.warn_once("replace_kernel %s" % place, reason, "it may have %s" % ", ".join(
            n for n, _ in sources.files if n in NAMES))
    return replace(sources, files=tuple(files))


def _place(sources: KernelSources, folder: Path):
    if not folder.is_dir():
        diagnostics.warn_once("replace_kernel %s" % folder, "--replace_kernel=%s is no folder" % folder,
                              "set it to a folder that has one folder a kernel, as debug_dir has")
        return None
    for name in (sources.name, sources.symbol):
        if (folder / name).is_dir():
            return folder / name
    places = sorted(p for p in folder.glob(sources.symbol + "-*") if p.is_dir())
    if len(places) > 1:
        diagnostics.warn_once("replace_kernel %s" % sources.symbol, "--replace_kernel: %s has %s" % (
            folder, " and ".join(p.name for p in places)), "%s is used; remove the others" % places[0].name)
    return places[0] if places else None


def digest(folder: str) -> str:
    """Of everything that may replace a file: part of the keys of kernels."""
    found = hashlib.sha256()
    try:
        for path in sorted(p for p in Path(folder).rglob("*") if p.name in NAMES and p.is_file()):
            found.update(path.relative_to(folder).as_posix().encode("utf-8", "replace") + b"\0")
            found.update(hashlib.sha256(path.read_bytes()).digest())
    except OSError:
        pass  # `replaced` says what can't be read
    return found.hexdigest()
