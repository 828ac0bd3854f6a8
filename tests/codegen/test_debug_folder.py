"""A region's debug folder: every stage is there, and its repro.py runs the region alone."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.codegen import regions
from tests.codegen.conftest import MACHINE
from tf_autofuse.build import debug_folder
from tf_autofuse.build.kernels import BuildFailure, build_kernels
from tf_autofuse.codegen.ascendc.generate import generate
from tf_autofuse.config import Config
from tf_autofuse.ir import proto
from tf_autofuse.ir.text import parse_fused
from tf_autofuse.schedule.schedule import schedule

ROOT = Path(__file__).resolve().parents[2]
DEBUG = Config.from_sources({"AUTOFUSE_DFX_FLAGS": "--codegen_compile_debug=true;--debug_dir=x"})


def made(name):
    region = regions.GOLDEN[name]()
    impls = schedule(region.fused.graphs[0], MACHINE)
    return region, impls, generate(region.fused, impls, MACHINE, DEBUG)


@pytest.fixture(scope="module")
def folder(build_settings, tmp_path_factory):
    region, impls, sources = made("run_time_broadcast")
    settings = dataclasses.replace(
        build_settings, debug_dir=str(tmp_path_factory.mktemp("debug") / "a folder")
    )
    result = build_kernels([sources], settings)[0]
    (found,) = Path(settings.debug_dir).iterdir()
    return found, region, impls, sources, result


def run_repro(folder, *arguments, **environ):
    environ = dict(os.environ, PYTHONPATH=str(ROOT), **environ)
    return subprocess.run(
        [sys.executable, str(folder / "repro.py")] + list(arguments),
        env=environ,
        cwd="/",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        universal_newlines=True,
    )


def test_every_stage_is_there(folder):
    path, region, impls, sources, result = folder
    names = {p.name for p in path.iterdir()}
    assert {
        "hint.txt",
        "fused.pb",
        "tiling.txt",
        "repro.py",
        "compile_twin.sh",
        "compile_ascend.sh",
        "manifest.json",
        "kernel.cpp",
        "host.cpp",
        "tiling_data.h",
        "twin_launch.cpp",
        "CMakeLists.txt",
    } <= names
    assert {"impl_%d.txt" % i.tiling_key for i in impls} <= names
    assert (path / "kernel.cpp").read_text() == sources.text("kernel.cpp")
    assert proto.from_bytes((path / "fused.pb").read_bytes()) == region.fused
    assert parse_fused((path / "hint.txt").read_text()) == region.fused
    assert impls[1].tile_symbol in (path / "tiling.txt").read_text()
    assert json.loads((path / "manifest.json").read_text())["library"] == result.library


def test_the_folder_is_named_by_symbol_and_code(folder):
    path, _, _, sources, _ = folder
    assert path.name.startswith(sources.symbol + "-")


def test_repro_runs_alone_and_agrees(folder, build_settings):
    path = folder[0]
    done = run_repro(path, "--size", "s0=70", "--size", "s1=1", AUTOFUSE_CACHE_DIR=build_settings.cache_dir)
    assert done.returncode == 0, done.stdout
    assert "bit-identical" in done.stdout and "block_dim" in done.stdout and "[70, 60]" in done.stdout
    assert "tensorflow" not in done.stdout.lower()


def test_repro_says_what_a_guard_refuses(folder, build_settings):
    done = run_repro(
        folder[0], "--size", "s0=70", "--size", "s1=3", AUTOFUSE_CACHE_DIR=build_settings.cache_dir
    )
    assert done.returncode == 2 and "refused" in done.stdout


def test_repro_runs_what_was_changed_by_hand(folder, build_settings, tmp_path):
    """An edited kernel is what runs; --regenerate is the way back."""
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(str(folder[0]), str(copy))
    kernel = copy / "kernel.cpp"
    kernel.write_text(kernel.read_text().replace("AscendC::Sub", "AscendC::Add"))
    done = run_repro(copy, AUTOFUSE_CACHE_DIR=build_settings.cache_dir)
    assert done.returncode == 1 and "elements differ" in done.stdout
    assert run_repro(copy, "--regenerate", AUTOFUSE_CACHE_DIR=build_settings.cache_dir).returncode == 0


@pytest.mark.once
def test_compile_script_is_runnable_text(folder, tmp_path):
    """With a compiler that only notes its arguments: the script itself is right shell for any path."""
    noted = tmp_path / "noted"
    compiler = tmp_path / "g++"
    compiler.write_text('#!/bin/sh\nfor a in "$@"; do echo "$a" >> \'%s\'; done\n' % noted)
    compiler.chmod(0o755)
    subprocess.run(
        ["sh", str(folder[0] / "compile_twin.sh")], env=dict(os.environ, CXX=str(compiler)), check=True
    )
    arguments = noted.read_text().splitlines()
    assert (
        "host.cpp" in arguments
        and "-shared" in arguments
        and any(a.endswith("launch.cpp") for a in arguments)
    )
    home = tmp_path / "cann"
    for name in ("compiler/ccec_compiler/bin/ccec", "compiler/tikcpp/tikcfw/kernel_operator.h"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(compiler.read_text())
        (home / name).chmod(0o755)
    noted.unlink()
    subprocess.run(
        ["sh", str(folder[0] / "compile_ascend.sh")],
        env=dict(os.environ, ASCEND_HOME_PATH=str(home)),
        check=True,
    )
    arguments = noted.read_text().splitlines()
    assert arguments.count("kernel.cpp") == 2 and "-DTILING_KEY_VAR=1" in arguments
    assert "--cce-aicore-arch=dav-c220-vec" in arguments and "--cce-auto-sync=off" in arguments


def test_a_failure_is_kept_too(build_settings, tmp_path):
    _, _, sources = made("public_example")
    broken = dataclasses.replace(
        sources, files=tuple((n, t.replace("AscendC::Relu", "AscendC::Rely")) for n, t in sources.files)
    )
    settings = dataclasses.replace(build_settings, debug_dir=str(tmp_path))
    result = build_kernels([broken], settings)[0]
    assert isinstance(result, BuildFailure)
    (path,) = tmp_path.iterdir()
    manifest = json.loads((path / "manifest.json").read_text())
    assert "Rely" in manifest["reason"] and "AscendC::Rely(relu_0, add_0" in manifest["source_line"]
    assert "Rely" in (path / "compiler.log").read_text()
    assert run_repro(path, AUTOFUSE_CACHE_DIR=build_settings.cache_dir).returncode == 2


def test_a_folder_that_cannot_be_written_costs_a_warning_only(build_settings, tmp_path, caplog):
    _, _, sources = made("public_example")
    (tmp_path / "file").write_text("")
    settings = dataclasses.replace(build_settings, debug_dir=str(tmp_path / "file"))
    assert build_kernels([sources], settings)[0].library
    assert any("debug folder" in r.getMessage() for r in caplog.records)


def test_without_the_flag_there_are_no_stages():
    region = regions.public_example()
    assert generate(region.fused, schedule(region.fused.graphs[0], MACHINE), MACHINE, None).stages == ()
    assert debug_folder.DEFAULT == "autofuse_debug"
