"""Where kernels may lie: own folder, nobody else's write permission, loadable; else a stand-in and the
reason."""

import os
import stat

import pytest

from tf_autofuse.build import storage
from tf_autofuse.build.storage import LAYOUT, configured_root, examine, open_storage

HERE = {"HOME": "/home/someone"}


@pytest.mark.parametrize(
    "cache_dir, environ, expected",
    [
        ("/x/y", HERE, "/x/y/" + LAYOUT),
        (None, HERE, "/home/someone/.cache/tf_autofuse/" + LAYOUT),
        (None, dict(HERE, XDG_CACHE_HOME="/xdg"), "/xdg/tf_autofuse/" + LAYOUT),
        (None, dict(HERE, XDG_CACHE_HOME="relative"), "/home/someone/.cache/tf_autofuse/" + LAYOUT),
        ("", dict(HERE, XDG_CACHE_HOME=""), "/home/someone/.cache/tf_autofuse/" + LAYOUT),
    ],
)
def test_configured_root(cache_dir, environ, expected):
    assert str(configured_root(cache_dir, environ)) == expected


def test_no_home_and_no_account(monkeypatch):
    import pwd

    def unknown(uid):
        raise KeyError("getpwuid(): uid not found: %d" % uid)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert configured_root(None, {}) is None
    chosen = open_storage(None, {})
    assert chosen.root.is_dir() and "no home folder" in chosen.problem.reason
    assert "AUTOFUSE_CACHE_DIR" in chosen.problem.remedy


def test_a_good_folder_is_made_for_its_user_alone(tmp_path):
    chosen = open_storage(str(tmp_path / "a" / "b"), os.environ)
    assert chosen.problem is None and chosen.root == tmp_path / "a" / "b" / LAYOUT
    assert stat.S_IMODE(chosen.root.stat().st_mode) == 0o700
    assert os.listdir(str(chosen.root)) == []  # the probe is gone


def test_others_may_look_no_longer(tmp_path):
    root = tmp_path / LAYOUT
    root.mkdir(mode=0o755)
    assert open_storage(str(tmp_path), os.environ).problem is None
    assert stat.S_IMODE(root.stat().st_mode) == 0o700


def refused(tmp_path, expect):
    chosen = open_storage(str(tmp_path), os.environ)
    assert chosen.root != tmp_path / LAYOUT and chosen.root.is_dir()
    assert expect in chosen.problem.reason and str(chosen.root) in chosen.problem.reason
    assert "AUTOFUSE_CACHE_DIR" in chosen.problem.remedy
    return chosen


def test_a_folder_that_others_can_write_to_is_not_trusted(tmp_path):
    (tmp_path / LAYOUT).mkdir()
    os.chmod(str(tmp_path / LAYOUT), 0o777)
    assert refused(tmp_path, "others may write").read_only == ()


def test_a_folder_of_another_user_is_not_trusted(tmp_path, monkeypatch):
    (tmp_path / LAYOUT).mkdir(mode=0o700)
    monkeypatch.setattr(storage.os, "geteuid", lambda: os.stat(str(tmp_path)).st_uid + 4242)
    chosen = refused(tmp_path, "belongs to user")
    # root's folder may be read from, a stranger's not.
    assert chosen.read_only == ((tmp_path / LAYOUT,) if os.stat(str(tmp_path)).st_uid == 0 else ())


def test_a_link_is_no_folder(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / LAYOUT).symlink_to(tmp_path / "elsewhere")
    refused(tmp_path, "is not a folder")


def test_a_file_in_its_place(tmp_path):
    (tmp_path / LAYOUT).write_text("")
    refused(tmp_path, "is not a folder")


def test_a_file_in_the_way(tmp_path):
    (tmp_path / "file").write_text("")
    chosen = open_storage(str(tmp_path / "file"), os.environ)
    assert "can't be made" in chosen.problem.reason


def test_read_only_folder_is_still_read(tmp_path):
    """Also for root, whom the system would let write."""
    root = tmp_path / LAYOUT
    root.mkdir(mode=0o700)
    os.chmod(str(root), 0o500)
    chosen = refused(tmp_path, "is read-only")
    assert chosen.read_only == (root,)
    assert examine(root)[1] is not None
    os.chmod(str(root), 0o700)
    assert examine(root)[1] is None


def test_a_noexec_file_system(tmp_path, monkeypatch):
    real = storage.maps_executable
    monkeypatch.setattr(
        storage, "maps_executable", lambda folder: str(tmp_path) not in str(folder) and real(folder)
    )
    monkeypatch.setattr(storage, "_temporary", storage._Temporary())
    monkeypatch.setattr(
        storage._Temporary, "parents", staticmethod(lambda: [str(tmp_path), "/dev/shm", "/var/tmp"])
    )
    chosen = refused(tmp_path, "noexec")
    assert not str(chosen.root).startswith(str(tmp_path))
    assert not [n for n in os.listdir(str(tmp_path)) if n.startswith("tf_autofuse-")]


def test_maps_executable_is_what_the_loader_needs(tmp_path, monkeypatch):
    assert storage.maps_executable(tmp_path)

    def refuse(*args, **kwargs):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(storage.mmap, "mmap", refuse)
    assert not storage.maps_executable(tmp_path)
    assert os.listdir(str(tmp_path)) == []


def test_no_folder_at_all(tmp_path, monkeypatch):
    (tmp_path / LAYOUT).write_text("")
    monkeypatch.setattr(storage, "_temporary", storage._Temporary())
    monkeypatch.setattr(storage._Temporary, "parents", staticmethod(lambda: []))
    assert open_storage(str(tmp_path), os.environ) is None


def test_one_stand_in_for_a_process_removed_by_its_maker_only(tmp_path):
    (tmp_path / LAYOUT).write_text("")
    first, second = (open_storage(str(tmp_path), os.environ) for _ in range(2))
    assert first.root == second.root
    storage._Temporary.remove(first.root, os.getpid() + 1)
    assert first.root.is_dir()
    storage._Temporary.remove(first.root, os.getpid())
    assert not first.root.exists()
    assert open_storage(str(tmp_path), os.environ).root.is_dir()
