"""--replace_kernel: which folder and files are taken, what is said where there are none, and that keys
follow."""
import pytest

from tests.codegen import regions
from tests.codegen.conftest import MACHINE
from tf_autofuse import diagnostics
from tf_autofuse.codegen.ascendc.generate import generate
from tf_autofuse.codegen.replacement import digest, replaced
from tf_autofuse.codegen.targets import target_named
from tf_autofuse.config import Config
from tf_autofuse.kernel_store import KernelStore, Recipe
from tf_autofuse.lowering.bodies import Body, Emitted
from tf_autofuse.schedule.schedule import schedule

FUSED = regions.GOLDEN["public_example"]().fused


@pytest.fixture(autouse=True)
def fresh():
    diagnostics.forget()


@pytest.fixture(scope="module")
def sources():
    return generate(FUSED, schedule(FUSED.graphs[0], MACHINE), MACHINE, None)


def put(folder, name, text="// by hand\n"):
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)


@pytest.mark.parametrize("place", ["name", "symbol", "debug"])
def test_a_file_takes_the_place_of_the_generated_one(sources, tmp_path, place, caplog):
    names = {"name": sources.name, "symbol": sources.symbol, "debug": sources.symbol + "-0123abcd"}
    put(tmp_path / names[place], "kernel.cpp")
    put(tmp_path / names[place], "notes.txt")
    made = replaced(sources, str(tmp_path))
    assert made.text("kernel.cpp") == "// by hand\n"
    assert made.text("host.cpp") == sources.text("host.cpp")
    assert [n for n, _ in made.files] == [n for n, _ in sources.files]
    assert made.code_text != sources.code_text
    assert not caplog.records


def test_other_kernels_folders_are_not_taken(sources, tmp_path, caplog):
    put(tmp_path / "autofuse_pointwise_9_Other", "kernel.cpp")
    assert replaced(sources, str(tmp_path)) == sources
    assert not caplog.records


def test_what_can_not_be_taken_is_said_once(sources, tmp_path, caplog):
    for _ in range(2):
        assert replaced(sources, str(tmp_path / "nowhere")) == sources
    assert len(caplog.records) == 1 and "is no folder" in caplog.text
    (tmp_path / sources.name).mkdir()
    assert replaced(sources, str(tmp_path)) == sources
    assert "has no file of the kernel" in caplog.text
    (tmp_path / sources.name / "kernel.cpp").write_bytes(b"\xff\xfe\x00")
    assert replaced(sources, str(tmp_path)) == sources
    assert "kernel.cpp can't be read" in caplog.text


def test_of_two_debug_folders_the_first_is_taken_and_both_are_named(sources, tmp_path, caplog):
    put(tmp_path / (sources.symbol + "-1111"), "kernel.cpp", "// one\n")
    put(tmp_path / (sources.symbol + "-2222"), "kernel.cpp", "// two\n")
    assert replaced(sources, str(tmp_path)).text("kernel.cpp") == "// one\n"
    assert "1111" in caplog.text and "2222" in caplog.text


def test_the_digest_follows_the_files(sources, tmp_path):
    seen = {digest(str(tmp_path)), digest(str(tmp_path / "nowhere"))}
    put(tmp_path / sources.name, "kernel.cpp")
    seen.add(digest(str(tmp_path)))
    put(tmp_path / sources.name, "kernel.cpp", "// changed\n")
    seen.add(digest(str(tmp_path)))
    put(tmp_path / "other", "kernel.cpp", "// changed\n")
    seen.add(digest(str(tmp_path)))
    put(tmp_path / "other", "notes.txt")
    seen.add(digest(str(tmp_path)))
    assert len(seen) == 4


def store(**settings):
    return KernelStore(Recipe(target_named("ascend"), MACHINE, Config(**settings)))


def keys(made, *names):
    """Of fused ops of these names that share one body."""
    body = Body(FUSED)
    return [made.key(made.body_of(Emitted(body, name, FUSED.origin))) for name in names]


def test_equal_bodies_share_a_kernel_unless_their_names_matter(tmp_path):
    first, other = FUSED.name, FUSED.name + "_1"
    one, two = keys(store(), first, other)
    assert one == two
    for forced in (first, other):
        one, two = keys(store(force_template_op_name=forced), first, other)
        assert one != two
    one, two = keys(store(replace_kernel=str(tmp_path)), first, other)
    assert one != two
    put(tmp_path / first, "kernel.cpp")
    assert keys(store(replace_kernel=str(tmp_path)), first) != [one]


def test_the_recipe_takes_the_folder(sources, tmp_path):
    put(tmp_path / FUSED.name, "kernel.cpp")
    recipe = Recipe(target_named("ascend"), MACHINE, Config(replace_kernel=str(tmp_path)))
    assert recipe.generate(FUSED, recipe.schedule(FUSED)).text("kernel.cpp") == "// by hand\n"
