"""The tiling cache in the generated library: the same plans, kept in memory and on disk, whatever happens to
the file; and the log of att_profiling."""
import os
import re
import shutil
import subprocess

import pytest

from tests.codegen import regions
from tf_autofuse.codegen.ascendc.generate import generate
from tf_autofuse.config import Config
from tf_autofuse.machine import machine_for
from tf_autofuse.runtime.library import KernelLibrary
from tf_autofuse.schedule.schedule import schedule
from tf_autofuse.tiling.plan_text import MOST_PLANS, PLANS_SUFFIX

MACHINE = machine_for("")
LIMITS = MACHINE.launch_limits
KEEPS = Config(enable_tiling_cache=True, att_profiling=True)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The host parts of the same kernel: `keeps` with a table and the log, `plain` with neither, `tuned` made
    for PGO."""
    folder = tmp_path_factory.mktemp("host")
    fused = regions.GOLDEN["symbolic"]().fused
    impls = schedule(fused.graphs[0], MACHINE)
    made = {"fused": fused}
    for name, config in (("keeps", KEEPS), ("plain", Config()), ("tuned", Config(enable_pgo=True))):
        place = folder / name
        place.mkdir()
        for file_name, text in generate(fused, impls, MACHINE, config).files:
            (place / file_name).write_text(text)
        made[name] = place / "host.so"
        subprocess.check_call(["g++", "-std=c++17", "-Og", "-Wall", "-Wextra", "-Werror",
                               "-Wno-unused-parameter", "-ffp-contract=off", "-fPIC", "-shared",
                               "-Wl,-z,defs", "-o", str(made[name]), str(place / "host.cpp")])
    return made


class Copy:
    """A copy of a library under a path of its own: a process of its own, as far as the library can tell."""

    def __init__(self, built, folder, name="keeps", plans=None):
        self.path = folder / ("%s%d.so" % (name, len(list(folder.iterdir()))))
        shutil.copy(str(built[name]), str(self.path))
        self.plans = self.path.with_name(self.path.name + PLANS_SUFFIX)
        if plans is not None:
            self.plans.write_bytes(plans)
        fused = built["fused"]
        self.library = KernelLibrary(str(self.path), [len(t.dims) for t in fused.inputs],
                                     [len(t.dims) for t in fused.outputs], len(fused.sizes), host_only=True)

    def plan(self, first, limits=LIMITS):
        found = self.library.tiling([first], *limits)
        return bytes(found.data), found.block_dim, found.workspace_bytes


def logged(capfd):
    line = r"tiling of (\w+): [\d.]+ us \((\w+)\), (\d+) blocks, key (\d+)\n"
    return re.findall(line, capfd.readouterr().err)


def test_a_kept_plan_is_the_solved_one(built, tmp_path, capfd):
    keeps, plain = Copy(built, tmp_path), Copy(built, tmp_path, "plain")
    wanted = [plain.plan(n) for n in (1, 7, 100, 4096)]
    assert [keeps.plan(n) for n in (1, 7, 100, 4096)] == wanted
    assert [keeps.plan(n) for n in (1, 7, 100, 4096)] == wanted
    lines = logged(capfd)
    assert [kind for _, kind, _, _ in lines] == ["solved"] * 4 + ["kept"] * 4
    assert [int(blocks) for _, _, blocks, _ in lines[:4]] == [w[1] for w in wanted]
    assert lines[0][0] == built["fused"].name
    later = Copy(built, tmp_path, plans=keeps.plans.read_bytes())
    assert [later.plan(n) for n in (1, 7, 100, 4096)] == wanted
    assert [kind for _, kind, _, _ in logged(capfd)] == ["kept"] * 4
    assert not plain.plans.exists()


def test_another_machine_has_other_plans(built, tmp_path, capfd):
    keeps, plain = Copy(built, tmp_path), Copy(built, tmp_path, "plain")
    for limits in (LIMITS, (1, LIMITS[1]), (LIMITS[0], 20000)):
        assert keeps.plan(5000, limits) == plain.plan(5000, limits)
    assert {kind for _, kind, _, _ in logged(capfd)} == {"solved"}


def test_an_empty_shape_is_not_kept(built, tmp_path):
    keeps = Copy(built, tmp_path)
    assert keeps.plan(0)[1] == 0
    assert not keeps.plans.exists()


@pytest.mark.parametrize("damage", ["byte", "cut", "garbage", "other kernel"])
def test_a_damaged_file_is_ignored_from_there_with_one_warning(built, tmp_path, capfd, damage):
    first, plain = Copy(built, tmp_path), Copy(built, tmp_path, "plain")
    for n in (1, 2, 3):
        first.plan(n)
    data = first.plans.read_bytes()
    record = len(data) // 3
    good = {"byte": 1, "cut": 2, "garbage": 0, "other kernel": 0}[damage]
    if damage == "byte":
        data = data[:record + 90] + bytes([data[record + 90] ^ 1]) + data[record + 91:]
    elif damage == "cut":
        data = data[:-3]
    elif damage == "garbage":
        data = b"no plans" * 30
    else:
        data = bytes([data[0] ^ 255]) + data[1:]
    capfd.readouterr()
    again = Copy(built, tmp_path, plans=data)
    assert [again.plan(n) for n in (1, 2, 3)] == [plain.plan(n) for n in (1, 2, 3)]
    told = capfd.readouterr().err
    assert told.count("are damaged from number %d on" % good) == 1 == told.count("are damaged from")
    assert [k for _, k in re.findall(r"(us) \((\w+)\)", told)] == ["kept"] * good + ["solved"] * (3 - good)
    mended = Copy(built, tmp_path, plans=again.plans.read_bytes())
    assert [mended.plan(n) for n in (1, 2, 3)] == [plain.plan(n) for n in (1, 2, 3)]
    assert {kind for _, kind, _, _ in logged(capfd)} == {"kept"}


def test_a_full_table_and_a_file_that_can_not_be_written_only_cost_time(built, tmp_path, capfd):
    keeps, plain = Copy(built, tmp_path), Copy(built, tmp_path, "plain")
    for n in range(1, MOST_PLANS + 40):
        keeps.plan(n)
    record = keeps.plans.stat().st_size // MOST_PLANS
    assert keeps.plans.stat().st_size == MOST_PLANS * record
    assert keeps.plan(MOST_PLANS + 9) == plain.plan(MOST_PLANS + 9)
    blocked = Copy(built, tmp_path)
    blocked.plans.mkdir()
    assert blocked.plan(77) == plain.plan(77) == blocked.plan(77)
    assert [kind for _, kind, _, _ in logged(capfd)][-2:] == ["solved", "kept"]


def test_processes_that_write_at_once_lose_nothing(built, tmp_path, capfd):
    keeps, plain = Copy(built, tmp_path), Copy(built, tmp_path, "plain")
    children = []
    for child in range(4):
        pid = os.fork()
        if pid == 0:
            try:
                for n in range(1, 21):
                    keeps.plan(100 * child + n)
            finally:
                os._exit(0)
        children.append(pid)
    assert all(os.waitpid(pid, 0)[1] == 0 for pid in children)
    capfd.readouterr()
    later = Copy(built, tmp_path, plans=keeps.plans.read_bytes())
    sizes = [100 * child + n for child in range(4) for n in range(1, 21)]
    assert [later.plan(n) for n in sizes] == [plain.plan(n) for n in sizes]
    assert {kind for _, kind, _, _ in logged(capfd)} == {"kept"}


def test_a_plan_that_is_given_wins_from_then_on(built, tmp_path):
    tuned, plain = Copy(built, tmp_path, "tuned"), Copy(built, tmp_path, "plain")
    sizes = [4096]
    assert tuned.library.takes_pins and not plain.library.takes_pins
    other = tuned.library.tiling_pinned(sizes, 3, LIMITS[1], ())
    assert other.block_dim <= 3 < plain.plan(4096)[1]
    assert tuned.plan(4096) == plain.plan(4096)
    tuned.library.keep_plan(sizes, *LIMITS, other, on_disk=False)
    assert tuned.plan(4096)[0] == bytes(other.data)
    assert Copy(built, tmp_path, "tuned", tuned.plans.read_bytes()).plan(4096) == plain.plan(4096)
    tuned.library.keep_plan(sizes, *LIMITS, other, on_disk=True)
    later = Copy(built, tmp_path, "tuned", tuned.plans.read_bytes())
    assert later.plan(4096)[0] == bytes(other.data)
    assert later.plan(4095) == plain.plan(4095)
    later.plan(4095, (3, LIMITS[1]))
    assert later.library.asked_sizes(*LIMITS) == ((4095,), (4096,))
    assert later.library.asked_sizes(3, LIMITS[1]) == ((4095,),)
    assert plain.library.asked_sizes(*LIMITS) == ()
