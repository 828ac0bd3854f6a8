"""The device build: its commands word by word, and calls of a stand-in compiler. No CANN is needed."""

import json
import os
from pathlib import Path

import pytest

from tests.codegen import regions
from tests.codegen.conftest import MACHINE
from tests.codegen.test_cann import toolkit
from tf_autofuse.build import cann
from tf_autofuse.build.kernels import BuildFailure
from tf_autofuse.build.toolchain import find_toolchain
from tf_autofuse.codegen.ascendc.cann import find_toolkit
from tf_autofuse.codegen.ascendc.generate import generate
from tf_autofuse.codegen.sources import DEVICE_SOURCE
from tf_autofuse.schedule.schedule import schedule

COMPILE = """
{home}/compiler/ccec_compiler/bin/ccec -x cce -O3 -std=c++17 --cce-aicore-arch=dav-c220-vec --cce-aicore-only
--cce-auto-sync=off -mllvm -cce-aicore-stack-size=0x8000 -mllvm -cce-aicore-function-stack-size=0x8000 -mllvm
-cce-aicore-record-overflow=true -mllvm -cce-aicore-addr-transform
-mllvm -cce-aicore-dcci-insert-for-scalar=false -I{home}/compiler/tikcpp/tikcfw
-I{home}/compiler/tikcpp/tikcfw/interface -I{home}/compiler/tikcpp/tikcfw/impl
-I/helpers -I. -DTILING_KEY_VAR=3 -Dautofuse_x=autofuse_x_3 -c kernel.cpp -o autofuse_x_3.o
"""
NEWER = """
{home}/compiler/ccec_compiler/bin/ccec -O3 -std=c++17 -fPIC -x asc --npu-arch=dav-2201 --cce-auto-sync=off
-I{home}/compiler/tikcpp/tikcfw -I{home}/compiler/tikcpp/tikcfw/interface -I{home}/compiler/tikcpp/tikcfw/impl
-I/helpers -I. -DTILING_KEY_VAR=3 -Dautofuse_x=autofuse_x_3 -c kernel.cpp -o autofuse_x_3.o
"""
LINK = """
{home}/compiler/ccec_compiler/bin/ld.lld -m aicorelinux -Ttext=0 autofuse_x_0.o autofuse_x_1.o -static
-o autofuse_x_aiv.o
"""

#: Notes its words; writes what -o names; fails on the key that the file `fail` holds.
STAND_IN = """#!/bin/sh
here="$(dirname "$0")"
echo "$(basename "$0") $*" >> "$here/noted"
case "$*" in
  --help) cat "$here/help" 2>/dev/null; exit 0 ;;
esac
if [ -f "$here/fail" ] && case "$*" in *"TILING_KEY_VAR=$(cat "$here/fail")"*) true ;; *) false ;; esac; then
  echo "kernel.cpp:$(cat "$here/line"):7: error: no matching function for call to 'Add'" >&2
  exit 1
fi
while [ $# -gt 0 ]; do if [ "$1" = -o ]; then echo object > "$2"; fi; shift; done
"""


@pytest.fixture(scope="module")
def sources():
    region = regions.run_time_broadcast()
    return generate(region.fused, schedule(region.fused.graphs[0], MACHINE), MACHINE, None)


@pytest.fixture
def found(tmp_path):
    return find_toolkit({"ASCEND_HOME_PATH": str(toolkit(tmp_path / "a cann", STAND_IN))})


def build(sources, found, folder):
    folder.mkdir()
    return cann.build_device(sources, found, find_toolchain(os.environ), "/helpers", folder, 96)


def test_commands(found):
    home = str(found.home)
    for words, text in (("cce", COMPILE), ("asc", NEWER)):
        command = cann.compile_command(found, "/helpers", "autofuse_x", 3, words)
        assert [w.replace(home, "{home}") for w in command] == text.split()
    assert [w.replace(home, "{home}") for w in cann.link_command(found, "autofuse_x", (0, 1))] == LINK.split()


def test_what_is_built(sources, found, tmp_path):
    made = build(sources, found, tmp_path / "out")
    assert not isinstance(made, BuildFailure), made
    assert made.keys == cann.keys_of(sources) and len(made.keys) > 1
    noted = (found.compiler.parent / "noted").read_text().splitlines()
    assert noted[0] == "ccec --help" and noted[-1].startswith("ld.lld ") and len(noted) == 2 + len(made.keys)
    for path in (made.path, made.description, made.host_library):
        assert Path(path).stat().st_size > 0
    told = json.loads(Path(made.description).read_text())
    assert told["kernelName"] == made.symbol and told["opParaSize"] == 96 and told["intercoreSync"] == 0
    assert [k["kernelName"] for k in told["kernelList"]] == ["%s_%d" % (made.symbol, k) for k in made.keys]
    assert told["magic"] == "RT_DEV_BINARY_MAGIC_ELF_AIVEC" and len(told["sha256"]) == 64
    assert Path(made.path).name == told["binFileName"] + told["binFileSuffix"]


def test_a_newer_compiler_gets_its_own_words(sources, found, tmp_path):
    (found.compiler.parent / "help").write_text("  --npu-arch=<value>  the NPU\n")
    assert not isinstance(build(sources, found, tmp_path / "out"), BuildFailure)
    noted = (found.compiler.parent / "noted").read_text().splitlines()
    assert "--npu-arch=dav-2201" in noted[1] and "--cce-aicore-arch" not in noted[1]
    (found.compiler.parent / "help").write_text(
        "--npu-arch --cce-aicore-arch\n"
    )  # knows both: the proven ones
    assert cann.dialect(found, tmp_path) == "cce"


def test_an_error_names_line_and_region(sources, found, tmp_path):
    lines = sources.text(DEVICE_SOURCE).split("\n")
    number = next(i for i, line in enumerate(lines, 1) if "AscendC::Sub(" in line)
    (found.compiler.parent / "fail").write_text("1")
    (found.compiler.parent / "line").write_text(str(number))
    failed = build(sources, found, tmp_path / "out")
    assert isinstance(failed, BuildFailure) and failed.source_line == lines[number - 1].strip()
    assert (
        "ccec failed on the kernel of %s: kernel.cpp:%d: no matching function" % (sources.name, number)
        in failed.reason
    )
    assert "it computes sub_0 = Sub(" in failed.reason and str(tmp_path / "out") in failed.remedy
    noted = (found.compiler.parent / "noted").read_text()
    assert "ld.lld" not in noted


def test_a_toolkit_that_cannot_run(sources, found, tmp_path):
    found.compiler.chmod(0o600)
    failed = build(sources, found, tmp_path / "out")
    assert (
        isinstance(failed, BuildFailure)
        and "can't be used" in failed.reason
        and "ASCEND_HOME_PATH" in failed.remedy
    )


def test_the_region_of_a_line(sources):
    lines = sources.text(DEVICE_SOURCE).split("\n")
    assert cann.region_of(sources, 1) == ""
    store = next(i for i, line in enumerate(lines, 1) if "DataCopyPad(gm_out0" in line)
    assert cann.region_of(sources, store).startswith("output 0 = ")
