"""Where built kernels may lie on this machine.

A folder that kernels are loaded from is a folder that code is run from. So on exit of `open_storage`:
    S1 the folder to write to belongs to this user, nobody else can write to it, and its files can be mapped
       for execution;
    S2 every folder that is only read from belongs to this user or to root, and nobody else can write to it;
    S3 where the configured folder does not qualify, a folder of this process alone stands in, and `problem`
       says why.
A folder whose owner has taken its write permission away counts as read-only for root too: its entries are
still used.
"""

import atexit
import errno
import mmap
import os
import shutil
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, List, Mapping, Optional, Tuple

from tf_autofuse.build.problem import Problem

#: Folder below the configured one; its number grows when the layout of entries changes.
LAYOUT = "autofuse-cache-1"


@dataclass(frozen=True)
class Storage:
    """root: the folder to write to. read_only: folders to look into as well. problem: see S3."""

    root: Path
    read_only: Tuple[Path, ...] = ()
    problem: Optional[Problem] = None


def configured_root(cache_dir: Optional[str], environ: Mapping[str, str]) -> Optional[Path]:
    """The cache folder that the settings ask for: `cache_dir`, else below XDG_CACHE_HOME, else below
    ~/.cache. None where there is no home folder (HOME unset and a user id without an account)."""
    if cache_dir:
        return Path(os.path.abspath(os.path.expanduser(cache_dir))) / LAYOUT
    xdg = environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(xdg):
        return Path(xdg) / "tf_autofuse" / LAYOUT
    home = environ.get("HOME", "")
    if not home:
        try:
            import pwd

            home = pwd.getpwuid(os.geteuid()).pw_dir
        except KeyError:
            return None
    return Path(home) / ".cache" / "tf_autofuse" / LAYOUT if os.path.isabs(home) else None


def maps_executable(folder: Path) -> bool:
    """Whether a file of `folder` can be mapped for execution, as the loader must do (it can't on a noexec
    mount)."""
    handle, name = tempfile.mkstemp(prefix="probe-", dir=str(folder))
    try:
        os.write(handle, b"\0" * mmap.PAGESIZE)
        try:
            mmap.mmap(
                handle, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC
            ).close()
        except PermissionError:
            return False
        return True
    finally:
        os.close(handle)
        os.unlink(name)


def examine(folder: Path) -> Tuple[bool, Optional[Problem]]:
    """(may be read from, why it can't be written to or None). Makes the folder where it is missing."""
    choose = "set AUTOFUSE_CACHE_DIR to a folder of your own"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        # Root may make a folder in a read-only one; the user who set that permission did not mean it.
        if not folder.exists() and not os.stat(str(folder.parent)).st_mode & stat.S_IWUSR:
            return False, Problem(
                "the cache folder %s is read-only" % folder.parent,
                "give yourself write permission (chmod u+w), or " + choose,
            )
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            pass
        facts = os.lstat(str(folder))
    except OSError as error:
        return False, Problem(
            "the cache folder %s can't be made (%s)" % (folder, error.strerror or error),
            "make it writable, or " + choose,
        )
    if not stat.S_ISDIR(facts.st_mode):
        return False, Problem("the cache folder %s is not a folder" % folder, "remove it, or " + choose)
    if facts.st_mode & 0o022:
        return False, Problem(
            "others may write to the cache folder %s, so its kernels can't be trusted" % folder,
            "empty it and take that permission away (chmod 700), or " + choose,
        )
    if facts.st_uid != os.geteuid():
        return facts.st_uid == 0, Problem(
            "the cache folder %s belongs to user %d, not to user %d" % (folder, facts.st_uid, os.geteuid()),
            choose,
        )
    if not facts.st_mode & stat.S_IWUSR:
        return True, Problem(
            "the cache folder %s is read-only" % folder,
            "give yourself write permission (chmod u+w), or " + choose,
        )
    try:
        if facts.st_mode & 0o077:
            os.chmod(str(folder), 0o700)
        executable = maps_executable(folder)
    except OSError as error:
        readable = error.errno in (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT)
        return readable, Problem(
            "the cache folder %s can't be written to (%s)" % (folder, error.strerror or error),
            "make room or make it writable, or " + choose,
        )
    if not executable:
        return False, Problem(
            "the cache folder %s lies on a file system mounted noexec: kernels can't be loaded from it"
            % folder,
            "set AUTOFUSE_CACHE_DIR to a folder on another file system",
        )
    return True, None


class _Temporary:
    """The stand-in folder of this process; one, however many caches ask for it. Removed at exit by its
    maker."""

    def __init__(self):
        self.folder: Optional[Path] = None

    def get(self, probe: Callable[[Path], bool]) -> Optional[Path]:
        if self.folder is not None and self.folder.is_dir():
            return self.folder
        for parent in self.parents():
            try:
                folder = Path(tempfile.mkdtemp(prefix="tf_autofuse-", dir=parent))
            except OSError:
                continue
            try:
                if probe(folder):
                    self.folder = folder
                    atexit.register(self.remove, folder, os.getpid())
                    return folder
            except OSError:
                pass
            shutil.rmtree(str(folder), ignore_errors=True)
        return None

    @staticmethod
    def parents() -> List[str]:
        named = [os.environ.get("XDG_RUNTIME_DIR", ""), "/dev/shm", "/var/tmp"]
        try:
            named.insert(0, tempfile.gettempdir())
        except OSError:
            pass
        return [p for p in dict.fromkeys(named) if p and os.path.isdir(p)]

    @staticmethod
    def remove(folder: Path, maker: int) -> None:
        # A forked child inherits the exit handler, but the folder stays its parent's.
        if os.getpid() == maker:
            shutil.rmtree(str(folder), ignore_errors=True)


_temporary = _Temporary()


def temporary_storage(problem: Problem, read_only: Tuple[Path, ...] = ()) -> Optional[Storage]:
    """Storage of this process alone, because of `problem`; None where no folder at all can hold kernels."""
    folder = _temporary.get(maps_executable)
    if folder is None:
        return None
    told = problem._replace(
        reason="%s; kernels are kept in %s for this process only" % (problem.reason.rstrip("."), folder)
    )
    return Storage(folder, read_only, told)


def open_storage(cache_dir: Optional[str], environ: Mapping[str, str]) -> Optional[Storage]:
    """The storage for these settings (S1 to S3). None where kernels can't be kept anywhere."""
    root = configured_root(cache_dir, environ)
    if root is None:
        return temporary_storage(
            Problem(
                "there is no home folder to keep kernels in", "set AUTOFUSE_CACHE_DIR to a folder of your own"
            )
        )
    readable, problem = examine(root)
    if problem is None:
        return Storage(root)
    return temporary_storage(problem, (root,) if readable else ())
