"""What can go wrong on the way to a kernel library: always a result for each region, with a reason and a
remedy."""

import ctypes
import errno
import os
import stat
import sys

import pytest

from tests.build import small
from tests.build.conftest import tree, warnings  # noqa: F401 (fixtures)
from tf_autofuse.build import cache as cache_module
from tf_autofuse.build import kernels, storage, toolchain
from tf_autofuse.build.kernels import BuildFailure, KernelBinary, build_kernels
from tf_autofuse.build.problem import Problem
from tf_autofuse.build.storage import LAYOUT
from tf_autofuse.runtime.library import KernelError, KernelLibrary


def script(path, text):
    path.write_text("#!%s\n%s" % (sys.executable, text), encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def build(tmp_path, **values):
    return build_kernels([small.sources()], small.settings(tmp_path / "cache", **values))[0]


def works(result) -> bool:
    return isinstance(result, KernelBinary) and ctypes.CDLL(result.library).autofuse_abi_version() == 1


def test_no_compiler(tree, tmp_path):  # noqa: F811
    result = build(tmp_path, environ={"PATH": "", "CXX": ""})
    assert isinstance(result, BuildFailure)
    assert "no C++ compiler was found" in result.reason and "install g++" in result.remedy


def test_cxx_names_nothing(tree, tmp_path):  # noqa: F811
    result = build(tmp_path, environ={"CXX": "/not/there/g++"})
    assert "/not/there/g++" in result.reason and "CXX" in result.remedy


def test_cxx_with_arguments(tree, tmp_path):  # noqa: F811
    assert works(build(tmp_path, environ={"CXX": "g++ -DEXTRA=1"}))


def test_cxx_in_a_folder_with_a_blank(tree, tmp_path):  # noqa: F811
    compiler = small.counting_compiler(tmp_path / "a folder")
    assert works(build(tmp_path, environ={"CXX": str(compiler)}))


def test_a_compiler_that_fails(tree, tmp_path):  # noqa: F811
    broken = script(
        tmp_path / "g++", "import sys\nprint('g++ 1.0') if '--version' in sys.argv else sys.exit(3)\n"
    )
    result = build(tmp_path, environ={"CXX": broken})
    assert isinstance(result, BuildFailure) and "twin does not compile" in result.reason


def test_a_compiler_that_is_none(tree, tmp_path):  # noqa: F811
    not_a_program = tmp_path / "g++"
    not_a_program.write_bytes(b"\x7fELF nothing")
    not_a_program.chmod(0o755)
    result = build(tmp_path, environ={"CXX": str(not_a_program)})
    assert isinstance(result, BuildFailure) and "can't be started" in result.reason


def test_a_compiler_that_hangs_is_stopped(tmp_path):
    forever = script(tmp_path / "slow", "import sys, signal\nprint('on it', flush=True)\nsignal.pause()\n")
    result = toolchain.run([forever], str(tmp_path), patience=0.5)
    assert result.code < 0 and "stopped" in result.output


def test_a_compiler_that_crashes(tree, tmp_path):  # noqa: F811
    text = (
        "import os, sys\nif 'host.cpp' in sys.argv:\n    os.abort()\n"
        "os.execvp('g++', ['g++'] + sys.argv[1:])\n"
    )
    result = build(tmp_path, environ={"CXX": script(tmp_path / "crash", text)})
    assert isinstance(result, BuildFailure) and "no message" in result.reason


def full_disk(path_part, monkeypatch):
    """Every rename into place below `path_part` fails as on a full disk."""
    real = os.rename

    def rename(source, target):
        if path_part in str(target):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(source, target)

    monkeypatch.setattr(cache_module.os, "rename", rename)


def test_disk_full(tree, tmp_path, monkeypatch, warnings):  # noqa: F811
    full_disk(str(tmp_path / "cache"), monkeypatch)
    result = build(tmp_path)
    assert works(result) and not result.library.startswith(str(tmp_path / "cache"))
    assert len(warnings()) == 1 and "No space left" in warnings()[0] and "Make room" in warnings()[0]
    assert list((tmp_path / "cache" / LAYOUT / "incoming").iterdir()) == []


def test_every_disk_full(tree, tmp_path, monkeypatch):  # noqa: F811
    full_disk("", monkeypatch)
    result = build(tmp_path)
    assert isinstance(result, BuildFailure) and "No space left" in result.reason and "room" in result.remedy


def test_disk_full_for_the_compiler(tree, tmp_path):  # noqa: F811
    text = (
        "import os, sys\nif 'host.cpp' in sys.argv:\n"
        "    sys.exit('fatal: kernel.so: No space left on device')\n"
        "os.execvp('g++', ['g++'] + sys.argv[1:])\n"
    )
    result = build(tmp_path, environ={"CXX": script(tmp_path / "full", text)})
    assert (
        isinstance(result, BuildFailure)
        and "No space left" in result.reason
        and "AUTOFUSE_CACHE_DIR" in result.remedy
    )


def test_cache_folder_read_only(tree, tmp_path, warnings):  # noqa: F811
    first = build(tmp_path)
    os.chmod(str(tmp_path / "cache" / LAYOUT), 0o500)
    try:
        again = build(tmp_path)
        assert again.library == first.library and again.cached
        other = build_kernels([small.sources(answer=5)], small.settings(tmp_path / "cache"))[0]
        assert works(other) and not other.library.startswith(str(tmp_path))
    finally:
        os.chmod(str(tmp_path / "cache" / LAYOUT), 0o700)
    assert len(set(warnings())) == 1 and "read-only" in warnings()[0] and "chmod u+w" in warnings()[0]


def test_noexec_cache_folder(tree, tmp_path, monkeypatch, warnings):  # noqa: F811
    real = storage.maps_executable
    monkeypatch.setattr(
        storage, "maps_executable", lambda f: str(tmp_path / "cache") not in str(f) and real(f)
    )
    assert works(build(tmp_path))
    assert len(warnings()) == 1 and "noexec" in warnings()[0] and "another file system" in warnings()[0]


def test_no_home_no_account(tree, monkeypatch, warnings):  # noqa: F811
    import pwd

    def unknown(uid):
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    environ = {
        k: v for k, v in os.environ.items() if k not in ("HOME", "XDG_CACHE_HOME", "AUTOFUSE_CACHE_DIR")
    }
    result = build_kernels([small.sources()], kernels.BuildSettings(environ=environ))[0]
    assert works(result) and "no home folder" in warnings()[0]


@pytest.mark.parametrize("size", [0, 100, -1])
def test_kernel_truncated(tree, tmp_path, warnings, size):  # noqa: F811
    first = build(tmp_path)
    with open(first.library, "r+b") as stream:
        stream.truncate(os.path.getsize(first.library) + size if size < 0 else size)
    again = build(tmp_path)
    assert works(again) and not again.cached
    assert len(warnings()) == 1 and "damaged" in warnings()[0]
    assert build(tmp_path).cached


def test_manifest_corrupt(tree, tmp_path, warnings):  # noqa: F811
    first = build(tmp_path)
    with open(os.path.join(first.folder, "manifest.json"), "w") as stream:
        stream.write('{"key": ')
    assert works(build(tmp_path)) and len(warnings()) == 1


def test_archive_damaged(tree, tmp_path, warnings):  # noqa: F811
    build(tmp_path)
    archive = next((tmp_path / "cache").rglob("libtwin.a"))
    archive.write_bytes(b"!<arch>\n")
    assert works(build_kernels([small.sources(answer=6)], small.settings(tmp_path / "cache"))[0])
    assert len(warnings()) == 1 and "archive" in warnings()[0]


def test_a_library_that_is_none(tmp_path):
    fake = tmp_path / "kernel.so"
    fake.write_bytes(b"not a library")
    with pytest.raises(KernelError, match="can't be loaded"):
        KernelLibrary(str(fake), (), (), 0)


def test_a_library_of_another_version(tree, tmp_path):  # noqa: F811
    text = small.sources().text("host.cpp").replace("return 1;", "return 999;", 1)
    files = tuple((n, text if n == "host.cpp" else t) for n, t in small.sources().files)
    import dataclasses

    other = dataclasses.replace(small.sources(), files=files)
    result = build_kernels([other], small.settings(tmp_path / "cache"))[0]
    with pytest.raises(KernelError, match="ABI version 999"):
        KernelLibrary(result.library, (), (), 0)


def test_strict_mode_raises(tree, tmp_path, monkeypatch):  # noqa: F811
    from tf_autofuse.diagnostics import StrictError

    first = build(tmp_path)
    with open(first.library, "r+b") as stream:
        stream.truncate(10)
    monkeypatch.setenv("AUTOFUSE_STRICT", "1")
    with pytest.raises(StrictError, match="damaged"):
        build(tmp_path)


def test_every_failure_names_a_remedy(tree, tmp_path):  # noqa: F811
    """The shape of a failure: no empty sentence reaches the user."""
    for environ in ({"PATH": "", "CXX": ""}, {"CXX": "/not/there"}, {"CXX": '"unbalanced'}):
        result = build(tmp_path, environ=environ)
        assert isinstance(result, BuildFailure) and result.reason.strip() and result.remedy.strip()
    assert isinstance(toolchain.find_toolchain({"PATH": ""}), Problem)
