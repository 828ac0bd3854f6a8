"""TensorMemory alone, without TensorFlow: what it hands out, what it keeps and what it gives back."""
import ctypes
import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
NATIVE = HERE.parent.parent / "tf_autofuse" / "frontend" / "native"
MIB = 1 << 20
WINDOW = 5
NAMES = ("in_use", "kept", "peak", "most", "mapped", "reused", "spare")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    target = str(tmp_path_factory.mktemp("memory") / "memory.so")
    subprocess.check_call(
        [os.environ.get("CXX") or shutil.which("g++"), "-std=c++14", "-O1", "-fPIC", "-shared", "-Wall",
         "-pthread", "-I%s" % NATIVE, str(HERE / "tensor_memory_harness.cc"),
         str(NATIVE / "tensor_memory.cc"), "-o", target])
    loaded = ctypes.CDLL(target)
    for name in ("make", "take"):
        getattr(loaded, name).restype = ctypes.c_void_p
    loaded.size_of.restype = ctypes.c_uint64
    return loaded


class Memory:
    """limit: None for a memory without sessions."""

    def __init__(self, library, limit=1 << 40):
        self.library, self.handle = library, ctypes.c_void_p(library.make())
        library.set_time(ctypes.c_int64(100))
        if limit is not None:
            library.set_limit(self.handle, ctypes.c_uint64(limit))
            library.begin(self.handle)

    def take(self, size):
        return self.library.take(self.handle, ctypes.c_uint64(size))

    def give(self, address):
        return bool(self.library.give(self.handle, ctypes.c_void_p(address)))

    def size(self, address):
        return self.library.size_of(self.handle, ctypes.c_void_p(address))

    def mapped(self, address):
        return bool(self.library.mapped(ctypes.c_void_p(address)))

    def counts(self):
        values = (ctypes.c_uint64 * len(NAMES))()
        self.library.counts(self.handle, values)
        return dict(zip(NAMES, values))

    def at(self, now):
        self.library.set_time(ctypes.c_int64(now))


@pytest.fixture
def memory(library):
    return Memory(library)


def test_a_freed_block_serves_the_next_tensor_of_its_size(memory):
    first = memory.take(16 * MIB)
    assert first % 4096 == 0 and memory.size(first) == 16 * MIB
    assert memory.give(first) and memory.mapped(first)
    assert memory.take(16 * MIB) == first
    assert memory.counts() == dict(in_use=16 * MIB, kept=0, peak=16 * MIB, most=16 * MIB, mapped=1, reused=1,
                                   spare=0)


def test_the_block_freed_last_comes_first(memory):
    a, b = memory.take(MIB), memory.take(MIB)
    memory.give(a)
    memory.give(b)
    assert [memory.take(MIB), memory.take(MIB)] == [b, a]


@pytest.mark.parametrize("kept, wanted, fits", [
    (2 * MIB, 2 * MIB - 1, True), (2 * MIB, MIB, True), (2 * MIB, MIB // 4, True),
    (2 * MIB, MIB // 4 - 32768, False), (2 * MIB, 2 * MIB + 1, False), (9 * MIB, 8 * MIB + 1, True)])
def test_a_block_serves_what_is_at_least_an_eighth_of_it(memory, kept, wanted, fits):
    memory.take(16 * MIB)  # of its peak a quarter may be spare
    memory.give(memory.take(kept))
    memory.take(wanted)
    assert memory.counts()["reused"] == fits


@pytest.mark.parametrize("size", [1, 4096, 65535, 65536, 65537, 100000, MIB + 1, 16 * MIB - 1, 16 * MIB + 1])
def test_a_block_is_at_most_an_eighth_or_a_page_larger_than_asked_for(memory, size):
    address = memory.take(size)
    assert size <= memory.size(address) <= size + max(4096, size // 8)
    ctypes.memset(address, 1, memory.size(address))


def test_what_is_not_its_own_is_refused(memory):
    address = memory.take(MIB)
    assert not memory.give(address + 64) and not memory.give(address + 4096)
    assert memory.give(address) and not memory.give(address)
    assert memory.size(address + 4096) == 0


def test_memory_that_the_system_has_not_is_null(memory):
    block = memory.take(MIB)
    memory.give(block)
    assert memory.take(1 << 60) is None
    assert memory.counts()["in_use"] == memory.counts()["kept"] == 0  # what was kept went first
    assert not memory.mapped(block)


def test_without_a_session_nothing_is_kept(library):
    memory = Memory(library, limit=None)
    address = memory.take(MIB)
    memory.give(address)
    assert not memory.mapped(address) and memory.counts()["kept"] == 0
    assert memory.size(address) == 0 and not memory.give(address)


def test_the_last_session_gives_all_back_but_what_is_in_use(library, memory):
    a, b = memory.take(MIB), memory.take(MIB)
    library.begin(memory.handle)
    memory.give(a)
    library.end(memory.handle)
    assert memory.mapped(a)
    library.end(memory.handle)
    assert not memory.mapped(a) and memory.mapped(b)
    assert memory.give(b) and not memory.mapped(b)


def test_the_limit_holds_and_the_longest_unused_goes_first(library, memory):
    library.set_limit(memory.handle, ctypes.c_uint64(2 * MIB))
    blocks = [memory.take(MIB) for _ in range(4)]
    for block in blocks:
        memory.give(block)
        assert memory.counts()["kept"] <= 2 * MIB
    assert [memory.mapped(b) for b in blocks] == [False, False, True, True]
    library.set_limit(memory.handle, ctypes.c_uint64(MIB))
    assert [memory.mapped(b) for b in blocks[2:]] == [False, True]


def test_sizes_that_change_do_not_add_up(memory):
    for size in range(1, 40):
        memory.give(memory.take(size * MIB))
        counts = memory.counts()
        assert counts["in_use"] + counts["kept"] <= counts["peak"] * 3 // 2
    assert memory.counts()["most"] < 60 * MIB


@pytest.mark.parametrize("seed", range(6))
def test_a_step_of_many_sizes_comes_to_rest(memory, seed):
    choose = random.Random(seed)
    sizes = [int(2 ** choose.uniform(17, 25)) for _ in range(24)]
    ends = [i + choose.choice((1, 1, 2, 3, 5)) for i in range(24)]
    mapped = []
    for _ in range(12):
        held = {}
        for i, size in enumerate(sizes):
            held[i] = memory.take(size)
            for done in [j for j in held if ends[j] <= i]:
                memory.give(held.pop(done))
        for address in held.values():
            memory.give(address)
        mapped.append(memory.counts()["mapped"])
    assert mapped[-1] == mapped[3]


def test_tensors_that_are_kept_hold_few_bytes_that_nobody_asked_for(memory):
    asked = 0
    for _ in range(200):  # each step frees a large tensor and leaves a small one
        memory.give(memory.take(MIB))
        memory.take(160 << 10)
        asked += 160 << 10
    counts = memory.counts()
    assert counts["in_use"] <= asked + max(MIB, counts["peak"] // 4)
    assert counts["in_use"] == asked + counts["spare"]


def test_large_blocks_begin_at_a_huge_page(library, memory):
    def mapped_pages():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[0])
    before = mapped_pages()
    blocks = [memory.take(9 * MIB) for _ in range(8)]
    assert mapped_pages() - before == pytest.approx(8 * 9 * MIB // 4096, abs=MIB // 4096)
    assert all(block % (2 * MIB) == 0 for block in blocks)
    large, small = blocks[0], memory.take(MIB)
    assert memory.mapped(large + 9 * MIB - 4096)
    library.set_limit(memory.handle, ctypes.c_uint64(0))
    memory.give(large)
    assert not memory.mapped(large) and not memory.mapped(large + 9 * MIB - 4096) and memory.mapped(small)


def test_a_peak_is_forgotten_after_two_windows(memory):
    memory.give(memory.take(64 * MIB))
    small = memory.take(MIB)
    memory.at(100 + WINDOW)
    memory.give(small)
    assert memory.counts()["kept"] == 65 * MIB
    memory.take(MIB)
    memory.at(100 + 2 * WINDOW)
    memory.give(memory.take(MIB))
    counts = memory.counts()
    assert counts["peak"] == 2 * MIB and counts["kept"] <= 2 * MIB


def test_a_pause_forgets_a_peak_at_once(memory):
    memory.give(memory.take(64 * MIB))
    memory.at(1000)
    memory.give(memory.take(MIB))
    assert memory.counts()["kept"] <= 2 * MIB


@pytest.mark.parametrize("seed", range(4))
def test_random_use(library, seed):
    """Blocks in use never overlap; counters are right; the bounds hold after every step."""
    choose = random.Random(seed)
    limit = choose.choice((8 * MIB, 1 << 40))
    memory, held, now = Memory(library, limit), {}, 100
    for _ in range(400):
        now += choose.choice((0, 0, 0, 1, 7))
        memory.at(now)
        if held and choose.random() < 0.5:
            assert memory.give(held.popitem()[0])
        else:
            size = int(2 ** choose.uniform(16, 23))
            address = memory.take(size)
            real = memory.size(address)
            assert real >= size and all(a + s <= address or address + real <= a for a, s in held.items())
            held[address] = real
        counts = memory.counts()
        assert counts["in_use"] == sum(held.values()) and counts["spare"] <= counts["in_use"]
        assert counts["kept"] <= limit and counts["in_use"] <= counts["peak"]
        assert counts["in_use"] + counts["kept"] <= counts["peak"] * 3 // 2
    for address in list(held):
        memory.give(address)
    library.end(memory.handle)
    assert memory.counts()["in_use"] == memory.counts()["kept"] == memory.counts()["spare"] == 0


def test_threads_share_it(library, memory):
    assert library.hammer(memory.handle, 4, 3000) == 0
    counts = memory.counts()
    assert counts["in_use"] == 0 and counts["mapped"] + counts["reused"] == 12000


def test_a_child_of_fork_may_free_what_it_inherits(library):
    assert library.in_children(30) == 0
