"""Many processes at one cache, some killed at any moment: whoever is left has right entries, and so has the
next."""

import os
import random
import subprocess
import sys
from pathlib import Path

from tests.faults.cache_worker import contents
from tf_autofuse.build.cache import Cache, list_entries
from tf_autofuse.build.storage import open_storage

WORKER = str(Path(__file__).with_name("cache_worker.py"))
ROOT = str(Path(__file__).resolve().parents[2])


def start(folder, seed, count, keys):
    environ = dict(os.environ, PYTHONPATH=ROOT)
    return subprocess.Popen(
        [sys.executable, WORKER, str(folder), str(seed), str(count), str(keys)],
        cwd=ROOT,
        env=environ,
        stdout=subprocess.PIPE,
        universal_newlines=True,
    )


def test_killed_writers_never_leave_a_wrong_entry(tmp_path):
    keys, choose = 6, random.Random(20)
    for round_ in range(2):
        workers = [start(tmp_path, 100 * round_ + n, 150, keys) for n in range(6)]
        victims, survivors = workers[:4], workers[4:]
        for victim in victims:
            # Killed after a number of entries, in the middle of whatever it does then.
            for _ in range(choose.randrange(1, 12)):
                assert victim.stdout.readline().startswith("HAVE")
            victim.kill()
            victim.communicate()
        for worker in survivors:
            output, _ = worker.communicate()
            assert worker.returncode == 0 and "WRONG" not in output and "PROBLEM" not in output, output[
                -2000:
            ]
            assert output.count("HAVE") == 150
        assert all(not e.damaged for e in list_entries(str(tmp_path)))
    problems = []
    cache = Cache(open_storage(str(tmp_path), os.environ), warn=problems.append)
    for k in range(keys):
        key = "%02x" % k + "0" * 30
        entry = cache.find("kernel", key)
        assert entry is None or entry.file("kernel.so").read_bytes() == contents(key)
    assert problems == []


def test_one_of_many_processes_builds(tmp_path):
    """Sixteen processes want one entry at once: one makes it, the others wait for it."""
    workers = [start(tmp_path, n, 1, 1) for n in range(16)]
    outputs = [w.communicate()[0] for w in workers]
    assert all(w.returncode == 0 for w in workers)
    assert sum("True" in o for o in outputs) == 1 and sum("HAVE" in o for o in outputs) == 16
