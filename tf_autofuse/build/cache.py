"""The content-addressed store of built kernels.

One folder per key holds everything about one build: the shared object, the sources, manifest.json. The folder
is the transaction: it is filled under a temporary name, synced, and renamed into place, so that a reader
finds all of it or nothing, whenever a writer was killed. Files are never changed once they are in place.

    <root>/<kind>/<first two digits>/<key>/{manifest.json, files...}    kind: one of KINDS
    <root>/incoming/<key>-<random>/         being written, or on its way out
    <root>/locks/<two digits>.lock          so that one process builds and others wait

The lock saves work, it does not carry correctness: where the file system has no locks, two writers of one key
each build it and the first rename wins.

An entry is checked when it is found (sizes and SHA-256 of all files in the manifest); a damaged one is put
aside and reported, and the caller builds it again.
"""

import contextlib
import errno
import hashlib
import json
import os
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from filelock import FileLock, Timeout

from tf_autofuse.build.problem import Problem
from tf_autofuse.build.storage import Storage, configured_root, temporary_storage

MANIFEST = "manifest.json"
KINDS = ("kernel", "archive", "region", "answer")
DEFAULT_MAX_BYTES = 2 << 30
#: Leftovers of killed writers are swept when they are older than this (seconds); longer than any build.
STALE_AFTER = 3600.0
#: How long to wait for another process that builds the same key before building it as well (seconds).
LOCK_PATIENCE = 300.0


def content_key(parts: Tuple[Tuple[str, Any], ...]) -> str:
    """32 hex digits for an explicit tuple of (what, value) pairs; values are what JSON can hold."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:32]


def file_digest(path: Path) -> str:
    digest = hashlib.sha256()
    with open(str(path), "rb") as stream:
        for block in iter(lambda: stream.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


@dataclass(frozen=True)
class Entry:
    """A verified entry: its folder and what its manifest says."""

    kind: str
    key: str
    folder: Path
    manifest: Mapping[str, Any]

    def file(self, name: str) -> Path:
        return self.folder / name


class Listed(NamedTuple):
    """An entry as `list_entries` shows it. last_used: seconds since the epoch; damaged: '' or what is
    wrong."""

    kind: str
    key: str
    name: str
    bytes: int
    last_used: float
    folder: Path
    damaged: str


class Removed(NamedTuple):
    entries: int
    bytes: int


class Damaged(Exception):
    """An entry that is there but can't be used. Raised and caught in this file only."""


class Unwritable(OSError):
    """Neither the cache folder nor a temporary one takes the entry. Carries `problem`."""

    def __init__(self, problem: Problem):
        super().__init__(problem.reason)
        self.problem = problem


def _read_manifest(folder: Path) -> Dict[str, Any]:
    try:
        with open(str(folder / MANIFEST), "r", encoding="utf-8") as stream:
            manifest = json.load(stream)
        files = manifest["files"]
        if not all(
            os.path.basename(n) == n and isinstance(f["bytes"], int) and isinstance(f["sha256"], str)
            for n, f in files.items()
        ):
            raise ValueError("a file without size and digest")
        return manifest
    except FileNotFoundError:
        raise Damaged("it has no manifest")
    except OSError as error:
        raise Damaged("its manifest can't be read (%s)" % (error.strerror or error))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Damaged("its manifest is corrupt (%s: %s)" % (type(error).__name__, error))


def _verify(folder: Path, key: str) -> Dict[str, Any]:
    """The manifest of an entry whose files are what it says. Raises Damaged."""
    manifest = _read_manifest(folder)
    if manifest.get("key") != key:
        raise Damaged("its manifest is that of another entry")
    for name, facts in sorted(manifest["files"].items()):
        try:
            size = os.stat(str(folder / name)).st_size
            if size != facts["bytes"]:
                raise Damaged("%s has %d bytes instead of %d" % (name, size, facts["bytes"]))
            if file_digest(folder / name) != facts["sha256"]:
                raise Damaged("the contents of %s have changed" % name)
        except FileNotFoundError:
            raise Damaged("%s is missing" % name)
        except OSError as error:
            raise Damaged("%s can't be read (%s)" % (name, error.strerror or error))
    return manifest


def _sync(path: Path) -> None:
    handle = os.open(str(path), os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a file system that can't sync a folder
            raise
    finally:
        os.close(handle)


class Cache:
    """Entries of one storage. Safe between threads and processes; holds no open file between calls.

    warn: called with a Problem for what the user should know (a damaged entry, a stand-in folder in use).
    """

    def __init__(
        self,
        storage: Storage,
        max_bytes: int = DEFAULT_MAX_BYTES,
        warn: Callable[[Problem], None] = lambda problem: None,
    ):
        self.storage = storage
        self.max_bytes = max_bytes
        self.warn = warn
        if storage.problem is not None:
            warn(storage.problem)

    @property
    def root(self) -> Path:
        return self.storage.root

    def _place(self, root: Path, kind: str, key: str) -> Path:
        return root / kind / key[:2] / key

    def find(self, kind: str, key: str) -> Optional[Entry]:
        """The verified entry, or None. A damaged one is reported and put aside."""
        for root in (self.root,) + self.storage.read_only:
            folder = self._place(root, kind, key)
            if not os.path.isdir(str(folder)):
                continue
            try:
                manifest = _verify(folder, key)
            except Damaged as damage:
                # Another process may have removed the entry, for room, while it was read: then nothing is
                # damaged.
                if os.path.isdir(str(folder)):
                    self.warn(
                        Problem(
                            "a cached %s in %s is damaged: %s" % (kind, folder, damage),
                            "it is built again; if this comes back, check the disk, or clear the cache "
                            "(python -m tf_autofuse cache clear)",
                        )
                    )
                    if root == self.root:
                        _put_aside(root, folder)
                continue
            with contextlib.suppress(OSError):  # the time of last use is a help to eviction, no more
                os.utime(str(folder / MANIFEST))
            return Entry(kind, key, folder, manifest)
        return None

    def find_any(self, kind: str, prefix: str) -> Optional[Entry]:
        """A verified entry whose key begins with `prefix` (at least two digits): the one used last, or
        None."""
        found = []
        for root in (self.root,) + self.storage.read_only:
            for folder in (root / kind / prefix[:2]).glob(prefix + "*"):
                with contextlib.suppress(OSError):
                    found.append((os.stat(str(folder / MANIFEST)).st_mtime, folder.name))
        for _, key in sorted(found, reverse=True):
            entry = self.find(kind, key)
            if entry is not None:
                return entry
        return None

    def find_or_make(
        self, kind: str, key: str, make: Callable[[Path], Mapping[str, Any]]
    ) -> Tuple[Entry, bool]:
        """The entry, and whether it was made now. `make(folder)` fills an empty folder and returns facts for
        the manifest; whatever it raises goes through, and nothing is stored. Raises Unwritable."""
        entry = self.find(kind, key)
        if entry is not None:
            return entry, False
        with self._lock(key):
            entry = self.find(kind, key)
            if entry is not None:
                return entry, False
            return self._make(kind, key, make), True

    def _make(self, kind: str, key: str, make) -> Entry:
        try:
            return self._make_in(self.root, kind, key, make)
        except OSError as error:
            problem = Problem(
                "the cache folder %s can't take an entry (%s)" % (self.root, error.strerror or error),
                "make room or make it writable, or set AUTOFUSE_CACHE_DIR to a folder of your own",
            )
            stand_in = temporary_storage(problem, (self.root,) + self.storage.read_only)
            if stand_in is None or stand_in.root == self.root:
                raise Unwritable(problem)
            self.storage = stand_in
            self.warn(stand_in.problem)
        try:
            return self._make_in(self.root, kind, key, make)
        except OSError as error:
            raise Unwritable(
                problem._replace(
                    reason="%s, nor can %s (%s)" % (problem.reason, self.root, error.strerror or error)
                )
            )

    def _make_in(self, root: Path, kind: str, key: str, make) -> Entry:
        incoming = root / "incoming"
        incoming.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=key[:8] + "-", dir=str(incoming)))
        try:
            facts = dict(make(folder))
            names = sorted(n for n in os.listdir(str(folder)) if n != MANIFEST)
            manifest = dict(
                facts,
                key=key,
                kind=kind,
                files={
                    n: {"bytes": os.stat(str(folder / n)).st_size, "sha256": file_digest(folder / n)}
                    for n in names
                },
            )
            with open(str(folder / MANIFEST), "w", encoding="utf-8") as stream:
                json.dump(manifest, stream, indent=1, sort_keys=True, ensure_ascii=False)
                stream.write("\n")
            for n in names + [MANIFEST]:
                _sync(folder / n)
            _sync(folder)
            place = self._place(root, kind, key)
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                os.rename(str(folder), str(place))
                _sync(place.parent)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                # Another writer was first. Its entry is as good as ours, unless it does not verify.
                try:
                    return Entry(kind, key, place, _verify(place, key))
                except Damaged:
                    _put_aside(root, place)
                    os.rename(str(folder), str(place))
            return Entry(kind, key, place, manifest)
        finally:
            shutil.rmtree(str(folder), ignore_errors=True)

    @contextlib.contextmanager
    def _lock(self, key: str) -> Iterator[None]:
        lock = None
        try:
            locks = self.root / "locks"
            locks.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = FileLock(str(locks / (key[:2] + ".lock")), timeout=LOCK_PATIENCE)
            lock.acquire()
        except (OSError, NotImplementedError, Timeout):
            lock = None
        try:
            yield
        finally:
            if lock is not None:
                lock.release()

    def entries(self) -> Tuple[Listed, ...]:
        return _list(self.root)

    def collect(self) -> Removed:
        """Keep to max_bytes; see the function of the same name."""
        return _collect(self.root, self.max_bytes)


def _put_aside(root: Path, folder: Path) -> bool:
    """Take an entry out of its place in one step, then delete it. Whether it was there and is gone."""
    try:
        incoming = root / "incoming"
        incoming.mkdir(mode=0o700, parents=True, exist_ok=True)
        grave = tempfile.mkdtemp(prefix="out-", dir=str(incoming))
        os.rename(str(folder), os.path.join(grave, "entry"))
    except OSError:
        return False
    shutil.rmtree(grave, ignore_errors=True)
    return True


def _list(root: Path) -> Tuple[Listed, ...]:
    found: List[Listed] = []
    for kind in KINDS:
        for folder in sorted((root / kind).glob("??/*")):
            damaged, name, last_used = "", folder.name, 0.0
            try:
                name = str(_read_manifest(folder).get("name", folder.name))
            except Damaged as damage:
                damaged = str(damage)
            try:
                sizes = [e.stat(follow_symlinks=False).st_size for e in os.scandir(str(folder))]
                marker = folder if damaged else folder / MANIFEST
                last_used = os.stat(str(marker)).st_mtime
            except OSError:
                continue  # removed by another process meanwhile
            found.append(Listed(kind, folder.name, name, sum(sizes), last_used, folder, damaged))
    return tuple(found)


def _collect(root: Path, max_bytes: int) -> Removed:
    _sweep(root)
    entries = sorted(_list(root), key=lambda e: (not e.damaged, e.last_used, e.key))
    total = sum(e.bytes for e in entries)
    removed, freed = 0, 0
    for e in entries:
        if total <= max_bytes and not e.damaged:
            break
        if _put_aside(root, e.folder):
            removed, freed = removed + 1, freed + e.bytes
        total -= e.bytes
    return Removed(removed, freed)


def _sweep(root: Path) -> None:
    """Delete what killed writers left."""
    oldest = time.time() - STALE_AFTER
    with contextlib.suppress(OSError):
        for left in os.scandir(str(root / "incoming")):
            with contextlib.suppress(OSError):
                if left.stat(follow_symlinks=False).st_mtime < oldest:
                    shutil.rmtree(left.path, ignore_errors=True)


def _root_of(cache_dir: Optional[str]) -> Optional[Path]:
    return configured_root(cache_dir or os.environ.get("AUTOFUSE_CACHE_DIR"), os.environ)


def list_entries(cache_dir: Optional[str] = None) -> Tuple[Listed, ...]:
    """Every entry of the configured cache folder (default: AUTOFUSE_CACHE_DIR, else the XDG one). Makes
    nothing."""
    root = _root_of(cache_dir)
    return _list(root) if root is not None else ()


def describe_root(cache_dir: Optional[str] = None) -> str:
    """The configured cache folder for people, and what is wrong with it where there is no cache in it."""
    root = _root_of(cache_dir)
    if root is None:
        return "there is no home folder, and AUTOFUSE_CACHE_DIR is not set: kernels are kept for one process"
    folder = root.parent
    if not folder.exists():
        return "%s does not exist yet; the first kernel makes it" % folder
    if not folder.is_dir():
        return "%s is not a folder; set AUTOFUSE_CACHE_DIR to one" % folder
    if not root.is_dir():
        return "%s is no kernel cache: nothing of TF-AutoFuse is in it; is AUTOFUSE_CACHE_DIR right?" % folder
    return str(folder)


def collect(max_bytes: int = DEFAULT_MAX_BYTES, cache_dir: Optional[str] = None) -> Removed:
    """Remove damaged entries, then the least recently used ones, until at most `max_bytes` are left. Kernels
    that a process has loaded stay usable in it."""
    root = _root_of(cache_dir)
    return _collect(root, max_bytes) if root is not None else Removed(0, 0)


def clear(cache_dir: Optional[str] = None) -> Removed:
    """Remove every entry."""
    return collect(-1, cache_dir)
