"""The store of kernels, with a stand-in target and a stand-in build: what is made, what is found, what a
key tells apart."""
from dataclasses import replace

import pytest

from tests.ir import samples
from tf_autofuse import kernel_store
from tf_autofuse.build.kernels import BuildFailure, BuildSettings, KernelBinary, open_cache
from tf_autofuse.codegen.targets import Target
from tf_autofuse.config import Config
from tf_autofuse.ir import proto
from tf_autofuse.kernel_store import KernelStore, Recipe, StageFailure
from tf_autofuse.lowering.bodies import Body


class Shop:
    """Counts what each stage is asked for. The build puts a library of one line into the real cache."""

    def __init__(self, folder, monkeypatch):
        self.calls = []
        self.refuse = None
        self.config = Config(cache_dir=str(folder))
        monkeypatch.setattr(kernel_store, "build_kernels", self.build)
        kernel_store.forget()

    def target(self, name="stand-in"):
        return Target(name, lambda config: "machine", self.schedule, lambda scheduled: None, self.generate)

    def store(self, machine="machine", name="stand-in", **settings):
        return KernelStore(Recipe(self.target(name), machine, replace(self.config, **settings)))

    def stage(self, name, fused):
        self.calls.append((name, fused.name))
        if self.refuse == name:
            raise ValueError("not today")

    def schedule(self, fused, machine):
        self.stage("schedule", fused)
        return fused

    def generate(self, fused, scheduled, machine, config):
        self.stage("codegen", fused)
        return fused

    def build(self, sources, settings):
        return [self.library(fused, settings) for fused in sources]

    def library(self, fused, settings):
        self.calls.append(("build", fused.name))
        if self.refuse == "build":
            return BuildFailure("no compiler", "install one", "")

        def write(folder):
            (folder / "kernel.so").write_text("of " + fused.name)
            return {"name": fused.name}

        key = (fused.name.encode().hex() + "0" * 32)[:32]
        entry, _ = open_cache(settings).find_or_make("kernel", key, write)
        return KernelBinary(fused.name, entry.key, str(entry.file("kernel.so")), False, 1.5)

    def make(self, *bodies, **settings):
        store = self.store(**settings)
        found = store.find(bodies)
        missing = [body for body in bodies if store.key(body) not in found]
        results = dict(found, **(store.make(missing, lambda stage, work: work()) if missing else {}))
        return [results[store.key(body)] for body in bodies]


@pytest.fixture
def shop(tmp_path, monkeypatch):
    yield Shop(tmp_path, monkeypatch)
    kernel_store.forget()


@pytest.fixture
def body():
    return Body(samples.run_time_broadcast())


def test_a_kernel_is_made_once(shop, body):
    (first,) = shop.make(body)
    assert [stage for stage, _ in shop.calls] == ["schedule", "codegen", "build"]
    (again,) = shop.make(body)
    assert again is first and len(shop.calls) == 3


def test_bodies_that_are_equal_have_one_kernel(shop, body):
    same = Body(samples.run_time_broadcast())
    assert body is not same
    first, second = shop.make(body, same)
    assert first is second and len(shop.calls) == 3


def test_another_process_finds_it_on_disk(shop, body):
    (first,) = shop.make(body)
    kernel_store.forget()
    (found,) = shop.make(body)
    assert len(shop.calls) == 3
    assert found == replace(first, cached=True, seconds=0.0) and found is not first


@pytest.mark.parametrize("harm", ["damaged", "gone"])
def test_a_library_that_is_no_more_is_made_again(shop, body, harm):
    (first,) = shop.make(body)
    kernel_store.forget()
    with open(first.library, "r+") as stream:
        stream.truncate(1)
    if harm == "gone":
        open_cache(BuildSettings.of(shop.config)).find("kernel", first.key)  # puts the damaged one aside
    (second,) = shop.make(body)
    assert len(shop.calls) == 6
    with open(second.library) as stream:
        assert stream.read() == "of " + body.fused.name


def test_a_library_that_goes_while_it_is_remembered(shop, body):
    import shutil
    (first,) = shop.make(body)
    shutil.rmtree(first.folder)
    shop.make(body)
    assert len(shop.calls) == 6


@pytest.mark.parametrize("changes", [
    {"machine": "another"}, {"name": "another"}, {"soc_version": "Ascend910B1"}, {"twin_check": False},
    {"att_accuracy_level": 0},
], ids=str)
def test_what_can_change_a_kernel_is_in_its_key(shop, body, changes):
    shop.make(body)
    shop.make(body, **changes)
    assert len(shop.calls) == 6


def test_the_sources_and_the_compiler_are_in_the_key(shop, body, monkeypatch):
    one = shop.store().key(body)
    assert shop.store().key(body) == one
    for name in ("project_stamp", "compiler_stamp"):
        with monkeypatch.context() as patch:
            patch.setattr(kernel_store, name, lambda *_: "another")
            assert shop.store().key(body) != one


def test_another_body_has_another_key(shop, body):
    others = [Body(make()) for make in samples.ALL.values()]
    keys = {shop.store().key(other) for other in others}
    assert len(keys) == len(others) and shop.store().key(body) in keys


@pytest.mark.parametrize("settings", [{"strict": True}, {"codegen_compile_debug": True}], ids=str)
def test_checks_want_every_stage(shop, body, settings, tmp_path):
    for _ in range(2):
        shop.make(body, debug_dir=str(tmp_path / "debug"), **settings)
    assert len(shop.calls) == 6


@pytest.mark.parametrize("stage", ["schedule", "codegen", "build"])
def test_one_failure_does_not_cost_the_others(shop, body, stage):
    other = Body(next(f for f in (make() for make in samples.ALL.values()) if f.name != body.fused.name))
    shop.make(other)
    shop.refuse = stage
    bad, good = shop.make(body, other)
    assert isinstance(bad, StageFailure) and bad.stage == stage and bad.remedy
    assert isinstance(good, KernelBinary)
    shop.refuse = None
    assert isinstance(shop.make(body)[0], KernelBinary)  # a failure is not remembered


@pytest.mark.parametrize("stage", ["schedule", "codegen"])
def test_what_a_stage_refuses_is_kept_in_the_debug_folder(shop, body, stage, tmp_path):
    shop.refuse = stage
    shop.make(body, codegen_compile_debug=True, debug_dir=str(tmp_path / "debug"))
    (folder,) = (tmp_path / "debug").iterdir()
    assert proto.from_bytes((folder / "fused.pb").read_bytes()) == body.fused
    assert body.fused.name in (folder / "hint.txt").read_text()
    text = (folder / "failure.txt").read_text()
    assert "stage " + stage in text and "Traceback" in text and "not today" in text


def test_a_debug_folder_that_cannot_be_written_costs_a_warning(shop, body, tmp_path, caplog):
    shop.refuse = "schedule"
    (tmp_path / "file").write_text("")
    (bad,) = shop.make(body, codegen_compile_debug=True, debug_dir=str(tmp_path / "file"))
    assert isinstance(bad, StageFailure) and "not today" in bad.reason
    assert "debug folder" in caplog.text
