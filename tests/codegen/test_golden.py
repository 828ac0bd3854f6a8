"""The generated text, held still: `pytest --update-golden` rewrites it, to be read before it is committed."""

import re

import pytest

from tests.codegen import regions
from tests.codegen.conftest import MACHINE
from tf_autofuse.codegen.ascendc.generate import generate
from tf_autofuse.codegen.sources import COMPILED, TWIN_SOURCE
from tf_autofuse.schedule.schedule import schedule


def sources(name):
    fused = regions.GOLDEN[name]().fused
    return generate(fused, schedule(fused.graphs[0], MACHINE), MACHINE, None)


@pytest.mark.parametrize("name", sorted(regions.GOLDEN))
def test_device_source(golden, name):
    golden(name + ".kernel.cpp", sources(name).text("kernel.cpp"))


@pytest.mark.parametrize("name", ["public_example", "run_time_broadcast"])
@pytest.mark.parametrize("file_name", ["host.cpp", "tiling_data.h"])
def test_host_source(golden, name, file_name):
    golden("%s.%s" % (name, file_name), sources(name).text(file_name))


@pytest.mark.parametrize("file_name", ["twin_launch.cpp", "CMakeLists.txt"])
def test_launch_and_device_build(golden, file_name):
    golden("public_example." + file_name, sources("public_example").text(file_name))


@pytest.mark.parametrize("name", sorted(regions.GOLDEN))
def test_same_input_same_bytes(name):
    assert sources(name) == sources(name)


@pytest.mark.parametrize("name", sorted(regions.GOLDEN))
def test_text_is_plain(name):
    made = sources(name)
    for file_name, text in made.files:
        assert text.isascii() if hasattr(text, "isascii") else text.encode("ascii")
        assert text.endswith("\n") and "\t" not in text and "\n\n\n" not in text
        for line in text.splitlines():
            assert line == line.rstrip()
            assert (
                len(line) <= 110 or line.lstrip().startswith(("//", "#")) or file_name != "kernel.cpp"
            ), line


def test_code_text_is_free_of_names_and_comments():
    """What shares a build: the same code under another name and with other origins; what does not: another
    constant."""
    import dataclasses

    region = regions.public_example()
    first = generate(region.fused, schedule(region.fused.graphs[0], MACHINE), MACHINE, None)
    graph = region.fused.graphs[0]
    renamed_nodes = tuple(dataclasses.replace(n, origin=("other/" + n.name,)) for n in graph.nodes)
    other = dataclasses.replace(
        region.fused,
        name="autofuse_pointwise_12_Abs_Add_Relu",
        graphs=(graph.with_nodes(renamed_nodes),),
        origin=("other",),
    )
    second = generate(other, schedule(other.graphs[0], MACHINE), MACHINE, None)
    assert first.files != second.files and first.code_text == second.code_text
    assert [name for name, _ in first.code_text] == list(COMPILED)
    assert "Abs(" in dict(first.code_text)["kernel.cpp"] and "KERNEL" in dict(first.code_text)[TWIN_SOURCE]
    third = sources("constants")
    changed = dataclasses.replace(third, files=tuple((n, t.replace("0.1f", "0.2f")) for n, t in third.files))
    assert changed.code_text != third.code_text


@pytest.mark.parametrize("name", sorted(regions.GOLDEN))
def test_every_statement_names_its_node(name):
    """A reader finds each node of the graph in the text, and the TF nodes that it comes from."""
    fused = regions.GOLDEN[name]().fused
    text = sources(name).text("kernel.cpp")
    for node in fused.graphs[0].nodes:
        if node.type in ("Data", "Output", "Scalar"):
            continue
        assert (
            re.search(r"// .*\b%s\b" % (node.type if node.type != "Store" else "output"), text)
            or node.type == "Broadcast"
        ), node.name
        for origin in node.origin:
            assert origin in text
