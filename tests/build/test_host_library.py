"""Libraries of the host target: batches, what becomes of a bad kernel, keys, and the report of vectorized
loops."""
import dataclasses
import json
import re

import pytest

from tests.build import small
from tests.codegen.host import graphs
from tf_autofuse.build import host_library, kernels
from tf_autofuse.build.kernels import BuildFailure, BuildSettings, KernelBinary, build_kernels
from tf_autofuse.codegen.sources import HOST_KERNEL, KernelSources
from tf_autofuse.codegen.targets import HOST
from tf_autofuse.machine import host_machine
from tf_autofuse.runtime.library import KernelLibrary

MACHINE = host_machine()
NAMES = ("softmax", "sum_rows", "extremes", "transposed", "concat")


def sources_of(name: str) -> KernelSources:
    fused = graphs.all_graphs()[name].fused
    return HOST.generate(fused, HOST.schedule(fused, MACHINE), MACHINE, None)


@pytest.fixture(scope="module")
def good():
    return [sources_of(name) for name in NAMES]


def broken(sources: KernelSources) -> KernelSources:
    text = sources.text(HOST_KERNEL).replace("static int32_t nest0(", "static int32_t nest0(int not_there, ")
    return dataclasses.replace(sources, files=((HOST_KERNEL, text),))


def settings(folder, compiler=None) -> BuildSettings:
    return small.settings(folder, environ={"CXX": str(compiler)} if compiler else {})


def compiles(folder) -> int:
    return small.calls(folder, "-c")


def usable(binary) -> bool:
    return isinstance(binary, KernelBinary) and KernelLibrary(binary.library, (), (),
                                                              0).path == binary.library


def test_many_kernels_by_few_compiler_calls(good, tmp_path):
    compiler = small.counting_compiler(tmp_path / "bin")
    results = build_kernels(good, settings(tmp_path / "cache", compiler))
    assert all(map(usable, results)) and len({r.library for r in results}) == len(good)
    assert 1 <= compiles(tmp_path / "bin") < len(good)
    before = (tmp_path / "bin" / "calls").read_text()
    again = build_kernels(good, settings(tmp_path / "cache", compiler))
    assert [r.library for r in again] == [r.library for r in results] and all(r.cached for r in again)
    assert (tmp_path / "bin" / "calls").read_text() == before


def test_a_bad_kernel_fails_alone(good, tmp_path, monkeypatch):
    monkeypatch.setattr(host_library, "BATCH", 16)
    bad = broken(good[1])
    results = build_kernels([good[0], bad, good[2]], settings(tmp_path / "cache"))
    assert usable(results[0]) and usable(results[2])
    assert isinstance(results[1], BuildFailure) and results[1].name == bad.name
    assert "kernel.c" in results[1].reason and "nest0" in results[1].source_line


def test_equal_code_is_built_once_whatever_its_names(good, tmp_path):
    fused = graphs.all_graphs()[NAMES[0]].fused
    renamed = dataclasses.replace(fused, name="another", origin=("scope/Other",), graphs=tuple(
        dataclasses.replace(g, name="another_graph") for g in fused.graphs))
    other = HOST.generate(renamed, HOST.schedule(renamed, MACHINE), MACHINE, None)
    assert other.text(HOST_KERNEL) != good[0].text(HOST_KERNEL)
    results = build_kernels([good[0], other], settings(tmp_path / "cache"))
    assert results[0].library == results[1].library
    assert [r.name for r in results] == [good[0].name, "another"]


def test_a_batch_and_a_kernel_alone_give_the_same_interface(good, tmp_path):
    alone = build_kernels(good[:1], settings(tmp_path / "alone"))[0]
    batched = build_kernels(good, settings(tmp_path / "batch"))[0]
    assert alone.key == batched.key
    assert set(KernelLibrary(alone.library, (), (), 0)._functions) == set(
        KernelLibrary(batched.library, (), (), 0)._functions)


def test_the_cpu_and_the_host_headers_are_in_the_key(good, tmp_path, monkeypatch):
    first = build_kernels(good[:1], settings(tmp_path / "cache"))[0]
    other = MACHINE._replace(features=MACHINE.features + ("another",))
    monkeypatch.setattr(host_library, "host_machine", lambda: other)
    second = build_kernels(good[:1], settings(tmp_path / "cache"))[0]
    assert first.key != second.key and not second.cached
    monkeypatch.setattr(kernels, "_helpers_digest", lambda *_: "changed headers")
    assert build_kernels(good[:1], settings(tmp_path / "cache"))[0].key != second.key


def test_no_compiler_takes_what_is_there(good, tmp_path):
    built = build_kernels(good[:1], settings(tmp_path / "cache"))[0]
    missing = small.settings(tmp_path / "cache", environ={"CXX": "/nowhere/cc", "PATH": ""})
    results = build_kernels(good[:2], missing)
    assert results[0].library == built.library and isinstance(results[1], BuildFailure)


def test_a_batch_has_no_name_twice(good):
    text = host_library.batch_text([s.text(HOST_KERNEL) for s in good])
    for i, s in enumerate(good):
        defined = re.findall(r"^(?:COLD )?(?:static|EXPORT|SETUP)\b[^;={]*?\b(\w+)\(", s.text(HOST_KERNEL),
                             re.M)
        assert defined and all("#define %s k%d_%s" % (n, i, n) in text for n in defined)


def test_the_report_tells_a_scalar_loop(tmp_path):
    """A loop that carries a value from one iteration to the next, marked as if it did not."""
    sources = sources_of("extremes")
    text = sources.text(HOST_KERNEL)
    marked = text.replace("SETUP int64_t autofuse_abi_version(void) { return 1; }", """\
SETUP int64_t autofuse_abi_version(void) { return 1; }
EXPORT double autofuse_chain(double x, const double* p) {
  for (int64_t l = 0; l < 9; ++l) /* vector */ {
    x = 1.0 / (x + p[l]);
  }
  return x;
}""")
    assert marked != text
    binary = build_kernels([dataclasses.replace(sources, files=((HOST_KERNEL, marked),))],
                           settings(tmp_path / "cache"))[0]
    with open(binary.folder + "/manifest.json", encoding="utf-8") as stream:
        loops = host_library.vectorized_loops(json.load(stream))
    assert list(loops.values()).count(False) >= 1
    line = 1 + marked.split("\n").index("  for (int64_t l = 0; l < 9; ++l) /* vector */ {")
    assert loops[line] is False
