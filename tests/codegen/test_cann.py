"""The device build as data: no CANN here, so a toolkit of empty files and a compiler that notes its
arguments."""

import os
import shutil
import stat
import subprocess

import pytest

from tests.codegen import regions
from tests.codegen.conftest import MACHINE
from tf_autofuse.codegen.ascendc.cann import device_command, find_toolkit
from tf_autofuse.codegen.ascendc.generate import generate
from tf_autofuse.schedule.schedule import schedule


def toolkit(home, compiler="#!/bin/sh\n"):
    for name in (
        "compiler/ccec_compiler/bin/ccec",
        "compiler/ccec_compiler/bin/ld.lld",
        "compiler/tikcpp/tikcfw/kernel_operator.h",
    ):
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(compiler)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return home


def test_a_toolkit_is_found_by_either_variable(tmp_path):
    home = toolkit(tmp_path / "cann")
    for variable in ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"):
        found = find_toolkit({variable: str(home)})
        assert found.home == home and found.compiler.name == "ccec"
        assert found.framework == home / "compiler" / "tikcpp" / "tikcfw"


@pytest.mark.parametrize(
    "missing", ["compiler/ccec_compiler/bin/ccec", "compiler/tikcpp/tikcfw/kernel_operator.h"]
)
def test_half_a_toolkit_is_none(tmp_path, missing):
    home = toolkit(tmp_path / "cann")
    (home / missing).unlink()
    assert find_toolkit({"ASCEND_HOME_PATH": str(home)}) is None


def test_no_toolkit(tmp_path):
    assert find_toolkit({}) is None and find_toolkit({"ASCEND_HOME_PATH": str(tmp_path / "none")}) is None


def test_each_tiling_key_has_its_own_object_and_symbol():
    command = device_command("ccec", "/f", "/h", "autofuse_x", 3)
    assert command[0] == "ccec" and "-DTILING_KEY_VAR=3" in command and "-Dautofuse_x=autofuse_x_3" in command
    assert command[-1] == "autofuse_x_3.o" and "--cce-auto-sync=off" in command


@pytest.mark.once
@pytest.mark.skipif(not shutil.which("cmake"), reason="cmake is not installed")
def test_the_cmake_recipe_builds_one_object_per_key(tmp_path):
    noted = tmp_path / "noted"
    home = toolkit(
        tmp_path / "cann",
        (
            "#!/bin/sh\necho \"$0 $@\" >> '%s'\n"
            'while [ $# -gt 0 ]; do if [ "$1" = -o ]; then : > "$2"; fi; shift; done\n' % noted
        ),
    )
    region = regions.run_time_broadcast()
    sources = generate(region.fused, schedule(region.fused.graphs[0], MACHINE), MACHINE, None)
    folder = tmp_path / "a folder"
    folder.mkdir()
    for name, text in sources.files:
        (folder / name).write_text(text)
    environ = dict(os.environ, ASCEND_HOME_PATH=str(home), AUTOFUSE_INCLUDE="/helpers")
    for command in (["cmake", "-S", ".", "-B", "out"], ["cmake", "--build", "out"]):
        done = subprocess.run(
            command, cwd=str(folder), env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        assert done.returncode == 0, done.stdout.decode()
    lines = noted.read_text().splitlines()
    objects = [line for line in lines if "kernel.cpp" in line]
    assert len(objects) == 2 and all(
        "--cce-auto-sync=off" in line and "-I/helpers" in line for line in objects
    )
    assert {k for k in (0, 1) for line in objects if "-DTILING_KEY_VAR=%d" % k in line} == {0, 1}
    link = [line for line in lines if "ld.lld" in line.split()[0]]
    assert len(link) == 1 and link[0].count(".o") >= 3 and "aicorelinux" in link[0]
    assert list((folder / "out").glob("lib*_host.so"))
