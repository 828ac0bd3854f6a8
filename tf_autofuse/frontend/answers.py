"""Answers of the graph pass that are kept: the same graph under the same settings gets the same edits.

A model that is started again has the graph that it had before. On entry the graph's columns and
everything else that the answer depends on: settings, target, the project's sources, compiler and
processors. On exit of `find` the answer as it was given then, its kernels verified, or None. Kept are
complete answers only: no failure, nothing pending. Nothing of the compiler is imported here, so that
such a start does not pay for it.
"""
import hashlib
import marshal
import os
import threading
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from tf_autofuse.build.cache import Cache
from tf_autofuse.build.kernels import BuildSettings, open_cache
from tf_autofuse.build.stamps import compiler_stamp, project_stamp
from tf_autofuse.config import Config
from tf_autofuse.config_table import ROWS

KIND = "answer"
FILE = "answer.bin"
#: Version of what is written.
FORMAT = 3
#: Answers remembered in this process.
MOST_ANSWERS = 64


class Answer(NamedTuple):
    """edits, constants: as the native side takes them, those that make fused ops and those that give other
    ops constant operands. kernels: (key, description for the native side) of each kernel once."""

    edits: List[Dict[str, Any]]
    kernels: List[Tuple[str, Dict[str, Any]]]
    constants: List[Dict[str, Any]] = []


def key_of(columns: Dict[str, Any], config: Config, target: str, place: str = "") -> Optional[str]:
    """32 hex digits; None where the columns hold what can't be told, or where the settings want every
    stage to run. place: of kernels that don't run on the host, all that matters about it."""
    # Checks and dumps; shapes to be measured; a folder that may have changed; names to be reported.
    if (config.strict or config.codegen_compile_debug or config.enable_pgo or config.replace_kernel
            or config.force_tiling_case or config.force_schedule_result >= 0):
        return None
    digest = hashlib.blake2b(digest_size=16)
    settings = tuple((row.field, repr(getattr(config, row.field))) for row in ROWS)
    stamps = (project_stamp(), compiler_stamp(os.environ), place)
    digest.update(repr((FORMAT, target, settings, config.skip_list, stamps)).encode())
    try:
        for name in sorted(columns):
            column = columns[name]
            if name == "constants":
                column = [(node, a.dtype.str, a.shape, a.tobytes()) for node, a in sorted(column.items())]
            # Version 2 writes values only; later ones also which objects are the same.
            digest.update(marshal.dumps((name, column), 2))
    except ValueError:
        return None
    return digest.hexdigest()


_lock = threading.Lock()
_known: Dict[str, Answer] = {}


def find(key: str, config: Config) -> Optional[Answer]:
    """The answer, or None. What is damaged on disk is reported by the cache and None."""
    answer = _known.get(key)
    if answer is not None and all(os.path.exists(meta["library"]) for _, meta in answer.kernels):
        return answer
    cache = open_cache(BuildSettings.of(config))
    if not isinstance(cache, Cache):
        return None
    entry = cache.find(KIND, key)
    if entry is None:
        return None
    try:
        with open(str(entry.file(FILE)), "rb") as stream:
            edits, kernels, constants = _read(stream.read())
    except (OSError, ValueError, EOFError, TypeError, KeyError):
        return None
    found = []
    for kernel, meta in kernels:
        library = cache.find("kernel", kernel)
        if library is None:
            return None
        files = {name: str(library.file(os.path.basename(meta[name])))
                 for name in ("library", "device_binary") if name in meta}
        found.append((kernel, dict(meta, **files)))
    answer = Answer(edits, found, constants)
    _remember(key, answer)
    return answer


def keep(key: str, answer: Answer, config: Config) -> None:
    """Remembers the answer, here and on disk where that can be."""
    _remember(key, answer)
    cache = open_cache(BuildSettings.of(config))
    if not isinstance(cache, Cache):
        return

    def write(folder) -> Dict[str, Any]:
        with open(str(folder / FILE), "wb") as stream:
            stream.write(_written(answer))
        return {"name": "%d fused ops" % len(answer.edits)}

    try:
        cache.find_or_make(KIND, key, write)
    except (OSError, ValueError):
        pass  # the next process analyses the graph again


def _written(answer: Answer) -> bytes:
    """What edits of one kernel have in common, their graph but for the names behind it, is written once."""
    graphs: Dict[str, List[bytes]] = {}
    for edit in answer.edits:
        graphs.setdefault(edit["attrs"]["kernel_key"], []).append(edit["attrs"]["asc_graph"])
    shared = {key: os.path.commonprefix(of_kernel) for key, of_kernel in graphs.items()}
    edits = []
    for edit in answer.edits:
        attrs = edit["attrs"]
        own = attrs["asc_graph"][len(shared[attrs["kernel_key"]]):]
        edits.append(dict(edit, attrs=dict(attrs, asc_graph=own)))
    return marshal.dumps((shared, edits, answer.kernels, answer.constants), 2)


def _read(written: bytes):
    """(edits, kernels, constants). The inverse of _written."""
    shared, edits, kernels, constants = marshal.loads(written)
    for edit in edits:
        attrs = edit["attrs"]
        attrs["asc_graph"] = shared[attrs["kernel_key"]] + attrs["asc_graph"]
    return edits, kernels, constants


def _remember(key: str, answer: Answer) -> None:
    with _lock:
        if len(_known) >= MOST_ANSWERS:
            _known.pop(next(iter(_known)))
        _known[key] = answer


def forget() -> None:
    """Empties this process's memory of answers; those on disk stay. For tests and measurements."""
    with _lock:
        _known.clear()


__all__ = ("Answer", "find", "forget", "keep", "key_of")
