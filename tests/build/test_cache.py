"""The cache: an entry is whole or not there, damage is found, room is made oldest first."""

import json
import os
import shutil
import time

import pytest

from tf_autofuse.build import cache as cache_module
from tf_autofuse.build.cache import Cache, Removed, clear, collect, content_key, list_entries
from tf_autofuse.build.problem import Problem
from tf_autofuse.build.storage import LAYOUT, Storage, open_storage

KEY = "ab" + "0" * 30


@pytest.fixture
def problems():
    return []


@pytest.fixture
def cache(tmp_path, problems):
    return Cache(open_storage(str(tmp_path / "cache"), os.environ), warn=problems.append)


def write(text="contents"):
    def make(folder):
        (folder / "kernel.so").write_text(text)
        return {"name": "autofuse_pointwise_0_Abs"}

    return make


def refuse(folder):
    raise AssertionError("nothing was to be made")


def test_made_once_and_found_again(cache, problems):
    entry, made = cache.find_or_make("kernel", KEY, write())
    again, made_again = cache.find_or_make("kernel", KEY, refuse)
    assert (made, made_again) == (True, False)
    assert (
        again.file("kernel.so").read_text() == "contents"
        and again.manifest["name"] == "autofuse_pointwise_0_Abs"
    )
    assert entry.folder == again.folder and problems == []


def test_a_maker_that_fails_leaves_nothing(cache):
    def fail(folder):
        (folder / "kernel.so").write_text("half")
        raise RuntimeError("the compiler fell over")

    with pytest.raises(RuntimeError):
        cache.find_or_make("kernel", KEY, fail)
    assert cache.find("kernel", KEY) is None
    assert list((cache.root / "incoming").iterdir()) == []


DAMAGE = {
    "truncated": lambda f: (f / "kernel.so").write_text("cont"),
    "emptied": lambda f: (f / "kernel.so").write_text(""),
    "one byte changed": lambda f: (f / "kernel.so").write_text("c0ntents"),
    "file gone": lambda f: (f / "kernel.so").unlink(),
    "manifest gone": lambda f: (f / "manifest.json").unlink(),
    "manifest empty": lambda f: (f / "manifest.json").write_text(""),
    "manifest binary": lambda f: (f / "manifest.json").write_bytes(b"\xff\xfe\x00"),
    "manifest without files": lambda f: (f / "manifest.json").write_text('{"key": "%s"}' % KEY),
    "manifest a list": lambda f: (f / "manifest.json").write_text("[]"),
    "manifest of another": lambda f: (f / "manifest.json").write_text(
        (f / "manifest.json").read_text().replace(KEY, "ff" + KEY[2:])
    ),
    "manifest points elsewhere": lambda f: (f / "manifest.json").write_text(
        (f / "manifest.json").read_text().replace('"kernel.so"', '"../kernel.so"')
    ),
    "folder empty": lambda f: [p.unlink() for p in f.iterdir()],
}


@pytest.mark.parametrize("damage", sorted(DAMAGE))
def test_damage_is_found_said_and_made_good(cache, problems, damage):
    entry, _ = cache.find_or_make("kernel", KEY, write())
    DAMAGE[damage](entry.folder)
    again, made = cache.find_or_make("kernel", KEY, write())
    assert made and again.file("kernel.so").read_text() == "contents"
    assert cache.find("kernel", KEY) is not None
    assert len(problems) == 1 and "damaged" in problems[0].reason and "built again" in problems[0].remedy


def test_an_untouched_entry_is_not_called_damaged(cache, problems):
    """The guard's other side: without damage, the same steps say nothing and make nothing."""
    cache.find_or_make("kernel", KEY, write())
    _, made = cache.find_or_make("kernel", KEY, refuse)
    assert not made and problems == []


def test_the_first_of_two_writers_wins(cache):
    def make_while_another_does(folder):
        cache._make_in(cache.root, "kernel", KEY, write())
        return write()(folder)

    entry = cache._make_in(cache.root, "kernel", KEY, make_while_another_does)
    assert cache.find("kernel", KEY).folder == entry.folder
    assert list((cache.root / "incoming").iterdir()) == []


def test_a_damaged_first_writer_is_replaced(cache):
    def make_while_another_breaks(folder):
        first = cache._make_in(cache.root, "kernel", KEY, write())
        first.file("kernel.so").write_text("bad")
        return write()(folder)

    cache._make_in(cache.root, "kernel", KEY, make_while_another_breaks)
    assert cache.find("kernel", KEY).file("kernel.so").read_text() == "contents"


def test_without_locks_it_still_works(cache, monkeypatch):
    def no_locks(*args, **kwargs):
        raise NotImplementedError("no locks on this file system")

    monkeypatch.setattr(cache_module, "FileLock", no_locks)
    assert cache.find_or_make("kernel", KEY, write())[1]


def test_kinds_do_not_mix(cache):
    cache.find_or_make("kernel", KEY, write())
    assert cache.find("archive", KEY) is None


def age(entry, seconds):
    stamp = time.time() - seconds
    os.utime(str(entry.folder / "manifest.json"), (stamp, stamp))


def filled(cache, count=4):
    entries = [
        cache.find_or_make("kernel", "%02x" % i + "0" * 30, write("x" * 1000))[0] for i in range(count)
    ]
    for i, entry in enumerate(entries):
        age(entry, 1000 * (count - i))
    return entries


def test_collect_removes_the_least_recently_used_first(cache):
    entries = filled(cache)
    size = cache.entries()[0].bytes
    cache.find("kernel", entries[0].key)  # used now: no longer the oldest
    cache.max_bytes = 2 * size
    removed = cache.collect()
    assert removed == Removed(2, 2 * size)
    assert {e.key for e in cache.entries()} == {entries[0].key, entries[3].key}


def test_collect_within_the_bound_removes_nothing(cache):
    filled(cache)
    assert cache.collect() == Removed(0, 0) and len(cache.entries()) == 4


def test_collect_removes_damaged_entries_whatever_the_bound(cache):
    entries = filled(cache)
    (entries[2].folder / "manifest.json").write_text("{")
    assert cache.collect().entries == 1
    assert entries[2].key not in {e.key for e in cache.entries()}


def test_leftovers_of_killed_writers_are_swept_when_old(cache):
    filled(cache, 1)
    old, young = cache.root / "incoming" / "dead-1", cache.root / "incoming" / "busy-2"
    for folder in (old, young):
        folder.mkdir()
        (folder / "kernel.so").write_text("half")
    stamp = time.time() - 2 * cache_module.STALE_AFTER
    os.utime(str(old), (stamp, stamp))
    cache.collect()
    assert not old.exists() and young.exists()


def test_listing_collecting_and_clearing_by_folder(cache, tmp_path):
    filled(cache, 3)
    folder = str(tmp_path / "cache")
    listed = list_entries(folder)
    assert [e.name for e in listed] == ["autofuse_pointwise_0_Abs"] * 3 and not any(e.damaged for e in listed)
    assert collect(sum(e.bytes for e in listed), folder) == Removed(0, 0)
    assert clear(folder).entries == 3 and list_entries(folder) == ()


def test_listing_a_folder_that_is_not_there_makes_none(tmp_path):
    assert list_entries(str(tmp_path / "none")) == () and collect(0, str(tmp_path / "none")) == Removed(0, 0)
    assert not (tmp_path / "none").exists()


def test_the_environment_names_the_folder(cache, tmp_path, monkeypatch):
    filled(cache, 1)
    monkeypatch.setenv("AUTOFUSE_CACHE_DIR", str(tmp_path / "cache"))
    assert len(list_entries()) == 1


def test_an_entry_removed_meanwhile_is_not_damaged(cache, problems, monkeypatch):
    entry, _ = cache.find_or_make("kernel", KEY, write())
    real = cache_module.file_digest

    def vanish(path):
        shutil.rmtree(str(entry.folder))
        return real(path)

    monkeypatch.setattr(cache_module, "file_digest", vanish)
    assert cache.find("kernel", KEY) is None and problems == []


def test_a_read_only_layer_is_looked_into_and_left_alone(tmp_path, cache, problems):
    entry, _ = cache.find_or_make("kernel", KEY, write())
    (tmp_path / "own").mkdir(mode=0o700)
    layered = Cache(Storage(tmp_path / "own", (cache.root,)), warn=problems.append)
    assert layered.find_or_make("kernel", KEY, refuse)[0].folder == entry.folder
    entry.file("kernel.so").write_text("bad")
    again, made = layered.find_or_make("kernel", KEY, write())
    assert made and again.folder.parent.parent.parent == tmp_path / "own"
    assert entry.folder.is_dir() and len(set(problems)) == 1


def test_find_any_takes_the_newest_of_a_prefix(cache):
    keys = ["cd" + "0" * 22 + tail for tail in ("11111111", "22222222")]
    entries = [cache.find_or_make("kernel", k, write(k))[0] for k in keys]
    age(entries[1], 500)
    assert cache.find_any("kernel", keys[0][:24]).key == keys[0]
    assert cache.find_any("kernel", "ee" + "0" * 22) is None


def test_keys_tell_all_values_apart():
    parts = (("code", "x"), ("flags", ("-O1", "-O2")), ("check", True))
    others = [
        (("code", "y"),) + parts[1:],
        parts[:2] + (("check", False),),
        parts[:2],
        (("code", "x"), ("flags", ("-O1 -O2",)), ("check", True)),
        (("code", "x"), ("flags", ()), ("check", True)),
    ]
    keys = {content_key(p) for p in [parts] + others}
    assert len(keys) == len(others) + 1 and content_key(parts) == content_key(parts)
    assert all(len(k) == 32 and int(k, 16) >= 0 for k in keys)


def test_the_manifest_lists_every_file_with_size_and_digest(cache):
    entry, _ = cache.find_or_make("kernel", KEY, write())
    manifest = json.loads((entry.folder / "manifest.json").read_text())
    assert manifest["files"] == {
        "kernel.so": {"bytes": 8, "sha256": cache_module.file_digest(entry.file("kernel.so"))}
    }


def test_a_problem_reads_as_two_sentences():
    assert str(Problem("it broke", "mend it.")) == "it broke. mend it."


def test_layout_names_the_folder(cache, tmp_path):
    assert cache.root == tmp_path / "cache" / LAYOUT and (cache.root.stat().st_mode & 0o777) in (0o700,)
