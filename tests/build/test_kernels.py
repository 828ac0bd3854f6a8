"""build_kernels: one result a region, in order; a compiler runs only for what is not there; failures are
values."""

import json
import os
import subprocess

import pytest

from tests.build import small
from tf_autofuse.build import kernels
from tf_autofuse.build.kernels import BuildFailure, KernelBinary, build_kernels
from tf_autofuse.runtime.library import KernelLibrary


def block_dim(binary: KernelBinary) -> int:
    return KernelLibrary(binary.library, (), (), 0).tiling((), 1, 1).block_dim


def test_one_result_for_each_source_in_order(tree, tmp_path):
    named = [small.sources("autofuse_pointwise_%d_Abs" % i, answer=i + 1) for i in range(4)]
    results = build_kernels(named, small.settings(tmp_path / "cache"))
    assert [r.name for r in results] == [s.name for s in named]
    assert [block_dim(r) for r in results] == [1, 2, 3, 4]
    assert not any(r.cached for r in results)


def test_same_code_is_built_once_whatever_its_names_and_comments(tree, tmp_path):
    compiler = small.counting_compiler(tmp_path / "bin")
    pair = [
        small.sources("autofuse_pointwise_0_Abs", comment="first"),
        small.sources("autofuse_pointwise_1_Abs", comment="second"),
    ]
    results = build_kernels(pair, small.settings(tmp_path / "cache", environ={"CXX": str(compiler)}))
    assert results[0].library == results[1].library
    assert [r.name for r in results] == [s.name for s in pair]
    assert small.calls(tmp_path / "bin", "host.cpp") == 1


def test_second_run_calls_no_compiler(tree, tmp_path):
    compiler = small.counting_compiler(tmp_path / "bin")
    settings = small.settings(tmp_path / "cache", environ={"CXX": str(compiler)})
    first = build_kernels([small.sources()], settings)
    before = (tmp_path / "bin" / "calls").read_text()
    second = build_kernels([small.sources()], settings)
    after = (tmp_path / "bin" / "calls").read_text()
    assert "-o" in before and before == after
    assert second[0].library == first[0].library and second[0].cached and not first[0].cached


def test_another_code_value_another_key(tree, tmp_path):
    """Everything that can change code is in the key."""
    base = build_kernels([small.sources()], small.settings(tmp_path / "cache"))[0]
    other_code = build_kernels([small.sources(answer=2)], small.settings(tmp_path / "cache"))[0]
    other_config = build_kernels(
        [small.sources()], small.settings(tmp_path / "cache", code_key=(("solver", "x"),))
    )[0]
    unchecked = build_kernels([small.sources()], small.settings(tmp_path / "cache", twin_check=False))[0]
    (tree / "include" / "autofuse" / "none.h").write_text("#pragma once\n// changed\n", encoding="utf-8")
    other_helpers = build_kernels([small.sources()], small.settings(tmp_path / "cache"))[0]
    assert len({r.key for r in (base, other_code, other_config, unchecked, other_helpers)}) == 5


def test_helpers_do_not_rebuild_the_twin(tree, tmp_path):
    """The archive depends on the twin's sources alone; kernels on the helpers too."""
    first = build_kernels([small.sources()], small.settings(tmp_path / "cache"))[0]
    (tree / "include" / "autofuse" / "none.h").write_text("#pragma once\n// changed\n", encoding="utf-8")
    second = build_kernels([small.sources()], small.settings(tmp_path / "cache"))[0]
    (tree / "twin" / "src" / "zero.cpp").write_text(
        'int zero_zero;\nextern "C" int more() { return 0; }\n'
        '#include "twin/launch.h"\nint32_t twin_zero() { return 0; }\n',
        encoding="utf-8",
    )
    third = build_kernels([small.sources()], small.settings(tmp_path / "cache"))[0]
    kinds = [e.kind for e in kernels.open_cache(small.settings(tmp_path / "cache")).entries()]
    assert kinds.count("archive") == 2 and len({first.key, second.key, third.key}) == 3


def test_paths_with_blanks_and_letters_of_any_kind(tree, tmp_path):
    cache = tmp_path / "a b'\"$(c)" / "\u00fc\u4e2d"
    result = build_kernels([small.sources()], small.settings(cache))[0]
    assert isinstance(result, KernelBinary), result
    assert block_dim(result) == 1


def test_library_exports_the_interface_and_nothing_else(tree, tmp_path):
    result = build_kernels([small.sources()], small.settings(tmp_path / "cache"))[0]
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", result.library], stdout=subprocess.PIPE, check=True
    ).stdout
    names = {line.split()[-1] for line in listed.decode().splitlines()}
    assert names and all(n.startswith("autofuse_") for n in names), names


def test_entry_holds_sources_and_a_readable_manifest(tree, tmp_path):
    result = build_kernels([small.sources(comment="scope/Abs")], small.settings(tmp_path / "cache"))[0]
    with open(os.path.join(result.folder, "manifest.json"), encoding="utf-8") as stream:
        manifest = json.load(stream)
    assert manifest["name"] == "autofuse_pointwise_0_Abs" and manifest["origin"] == ["scope/Abs"]
    assert set(manifest["files"]) == {
        "kernel.so",
        "kernel.cpp",
        "tiling_data.h",
        "host.cpp",
        "twin_launch.cpp",
        "CMakeLists.txt",
    }
    assert open(result.source_path, encoding="utf-8").read() == small.sources(comment="scope/Abs").text(
        "kernel.cpp"
    )


def test_a_refused_kernel_names_region_line_and_source(tree, tmp_path):
    good, bad = small.sources("autofuse_pointwise_0_Abs"), small.sources(
        "autofuse_pointwise_1_Neg", broken=" not_there();"
    )
    results = build_kernels([good, bad], small.settings(tmp_path / "cache"))
    assert isinstance(results[0], KernelBinary)
    failure = results[1]
    assert isinstance(failure, BuildFailure) and failure.name == bad.name
    assert "autofuse_pointwise_1_Neg" in failure.reason and "kernel.cpp:4" in failure.reason
    assert "not_there" in failure.reason and failure.source_line == "return 0; not_there();"
    assert "debug_dir" in failure.remedy and "not_there" in failure.log


def test_nothing_of_a_refused_kernel_is_kept(tree, tmp_path):
    settings = small.settings(tmp_path / "cache")
    build_kernels([small.sources(broken=" not_there();")], settings)
    cache = kernels.open_cache(settings)
    assert [e.kind for e in cache.entries()] == ["archive"]
    assert list((cache.root / "incoming").iterdir()) == []


def test_a_kernel_of_any_compiler_serves_where_there_is_none(tree, tmp_path):
    built = build_kernels([small.sources()], small.settings(tmp_path / "cache"))[0]
    alone = small.settings(tmp_path / "cache", environ={"PATH": "", "CXX": ""})
    found, missing = build_kernels([small.sources(), small.sources(answer=7)], alone)
    assert found.library == built.library and found.cached
    assert (
        isinstance(missing, BuildFailure) and "no C++ compiler" in missing.reason and "g++" in missing.remedy
    )


def test_cached_mode_calls_no_compiler(tree, tmp_path):
    result = build_kernels([small.sources()], small.settings(tmp_path / "cache", compiles=False))[0]
    assert isinstance(result, BuildFailure) and "AUTOFUSE_BUILD" in result.remedy


def test_progress_counts_distinct_kernels(tree, tmp_path):
    seen = []
    build_kernels(
        [small.sources(answer=1), small.sources(answer=1), small.sources(answer=2)],
        small.settings(tmp_path / "cache"),
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen == [(1, 2), (2, 2)]


def test_no_sources_need_nothing(tmp_path):
    assert build_kernels([], small.settings(tmp_path / "none", environ={"PATH": ""})) == []
    assert not (tmp_path / "none").exists()


def test_twin_sources_that_are_missing_are_a_failure(tmp_path, monkeypatch):
    def missing():
        raise FileNotFoundError("the folder npu_kernels is missing")

    monkeypatch.setattr(kernels, "npu_kernels_dir", missing)
    result = build_kernels([small.sources()], small.settings(tmp_path / "cache"))[0]
    assert isinstance(result, BuildFailure) and "npu_kernels" in result.reason


def test_the_size_bound_removes_the_least_recently_used(tree, tmp_path):
    settings = small.settings(tmp_path / "cache")
    old, kept = build_kernels([small.sources(answer=1), small.sources(answer=2)], settings)
    cache = kernels.open_cache(settings)
    sizes = {e.key: e.bytes for e in cache.entries()}
    for key, age in ((old.key, 300), (kept.key, 200)):
        manifest = next(e for e in cache.entries() if e.key == key).folder / "manifest.json"
        stamp = manifest.stat().st_mtime - age
        os.utime(str(manifest), (stamp, stamp))
    bounded = small.settings(tmp_path / "cache", cache_bytes=sum(sizes.values()))
    new = build_kernels([small.sources(answer=3)], bounded)[0]
    left = {e.key for e in cache.entries()}
    assert old.key not in left and {kept.key, new.key} <= left


@pytest.mark.parametrize("broken", ["syntax error here", '#include "not_there.h"'])
def test_a_twin_that_does_not_compile_fails_every_region(tree, tmp_path, broken):
    (tree / "twin" / "src" / "bad.cpp").write_text(broken + "\n", encoding="utf-8")
    results = build_kernels(
        [small.sources(answer=1), small.sources(answer=2)], small.settings(tmp_path / "cache")
    )
    assert all(
        isinstance(r, BuildFailure) and "twin does not compile" in r.reason and "bad.cpp:1" in r.reason
        for r in results
    )
