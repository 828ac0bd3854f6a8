"""The generated C, held still: `pytest --update-golden` rewrites it, to be read before it is committed.
Goldens hold the loop nests; what is around them is the same in every kernel and is in one of them."""
import dataclasses
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.codegen.host import graphs
from tests.codegen.host.conftest import CASES, MACHINE
from tf_autofuse.build.kernels import build_kernels
from tf_autofuse.codegen.ascendc.body import CodegenRefusal
from tf_autofuse.codegen.sources import HOST_KERNEL
from tf_autofuse.codegen.targets import HOST
from tf_autofuse.config import Config
from tf_autofuse.ir.builder import HintBuilder
from tf_autofuse.ir.dtypes import FLOAT32
from tf_autofuse.schedule.host_program import describe
from tf_autofuse.symbolic.guards import InputDim, SizeVar
from tf_autofuse.symbolic.size import symbol

GOLDEN = ("public_example", "run_time_broadcast", "public_example_half", "softmax", "column_softmax",
          "embedding",
          "many_nests", "chunked_columns", "transposed", "concat", "functions", "functions_half")
ROOT = Path(__file__).resolve().parents[3]
DEBUG = Config.from_sources({"AUTOFUSE_DFX_FLAGS": "--codegen_compile_debug=true;--debug_dir=x"})


def sources(name, config=None):
    fused = CASES[name][0]
    return HOST.generate(fused, HOST.schedule(fused, MACHINE), MACHINE, config)


def nests_of(text: str) -> str:
    """The part from the tiling data to the last nest."""
    return text[text.index("typedef struct {"):text.index("SETUP int64_t autofuse_abi_version")]


@pytest.mark.parametrize("name", GOLDEN)
def test_nests(golden, name):
    golden(name + ".c", nests_of(sources(name).text(HOST_KERNEL)))


def test_a_whole_kernel(golden):
    golden("whole.c", sources("two_reductions").text(HOST_KERNEL))


@pytest.mark.parametrize("name", ["softmax", "many_nests", "run_time_broadcast", "chunked_columns"])
def test_description(golden, name):
    golden(name + ".nests.txt", describe(HOST.schedule(CASES[name][0], MACHINE)))


@pytest.mark.parametrize("name", sorted(CASES))
def test_text_is_plain_and_the_same_every_time(name):
    made = sources(name)
    assert made == sources(name)
    text = made.text(HOST_KERNEL)
    text.encode("ascii")
    assert "\t" not in text and all(line == line.rstrip() for line in text.split("\n"))


def test_code_text_is_free_of_names_and_comments():
    fused = graphs.all_graphs()["softmax"].fused
    other = dataclasses.replace(fused, name="autofuse_reduce_7_Other", origin=("a/b",), graphs=tuple(
        dataclasses.replace(g, name="other", nodes=tuple(
            dataclasses.replace(n, origin=("evil */ \\ \n name",)) for n in g.nodes)) for g in fused.graphs))
    first, second = sources("softmax"), HOST.generate(other, HOST.schedule(other, MACHINE), MACHINE, None)
    assert first.text(HOST_KERNEL) != second.text(HOST_KERNEL) and first.code_text == second.code_text


@pytest.mark.parametrize("name", ["n0", "j", "first"])
def test_a_symbol_that_the_source_uses_itself_is_refused(name):
    size = symbol(name)
    b = HintBuilder("g", [("z0", size)])
    b.store(b.op("Neg", b.load(b.data(0, FLOAT32), (1,))), 0)
    fused = graphs.fused("g", [b], [(FLOAT32, (size,))], [(FLOAT32, (size,))],
                         (SizeVar(name, InputDim(0, 0)),))
    with pytest.raises(CodegenRefusal, match=name):
        HOST.generate(fused, HOST.schedule(fused, MACHINE), MACHINE, None)


def test_debug_folder(build_settings, tmp_path):
    """Every stage is there, the compile command works, and repro.py runs the region alone."""
    made = sources("symbolic", DEBUG)
    (result,) = build_kernels([made], dataclasses.replace(build_settings, debug_dir=str(tmp_path),
                                                          extra_flags=()))
    (folder,) = tmp_path.iterdir()
    names = {p.name for p in folder.iterdir()}
    assert {"kernel.c", "hint.txt", "nests.txt", "fused.pb", "compile_host.sh", "repro.py",
            "manifest.json"} <= names
    assert (folder / "compile_host.sh").stat().st_mode & stat.S_IXUSR and "compile_ascend.sh" not in names
    subprocess.run(["sh", str(folder / "compile_host.sh")], check=True)
    assert (folder / "kernel.so").exists()
    ran = subprocess.run([sys.executable, str(folder / "repro.py"), "--size", "s0=5"], cwd="/", check=False,
                         env=dict(os.environ, PYTHONPATH=str(ROOT)), stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, universal_newlines=True)
    assert ran.returncode == 0 and "bit-identical to numpy" in ran.stdout, ran.stdout
