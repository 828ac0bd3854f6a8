"""Exported operator projects: their text, that a build of them by their own build.sh works as far as
stand-ins for CANN's headers and CMake modules go, and that what comes out plans as the kernels' own
host libraries do."""

import ctypes
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.codegen import regions
from tests.codegen.conftest import MACHINE
from tests.codegen.families import families
from tf_autofuse.build.cann import host_command
from tf_autofuse.build.toolchain import find_toolchain
from tf_autofuse.codegen.abi import AutofuseMachine
from tf_autofuse.codegen.ascendc.generate import generate
from tf_autofuse.codegen.ascendc.project import (
    compute_unit,
    op_type,
    project_files,
    project_op,
    symbol_of,
)
from tf_autofuse.codegen.sources import DEVICE_SOURCE, HOST_SOURCE, TILING_HEADER
from tf_autofuse.codegen.targets import ASCEND
from tf_autofuse.resources import npu_kernels_dir

STANDIN = Path(__file__).parent / "standin_cann"
HELPERS = npu_kernels_dir() / "include"
FAMILIES = families()


def one_of(condition):
    """A family whose op has the property, with dims to run."""
    for name in sorted(FAMILIES):
        if FAMILIES[name].dims and condition(made(name, FAMILIES[name].fused)):
            return FAMILIES[name]
    raise AssertionError("no family is like that")


def made(name, fused, taken=()):
    return project_op(
        op_type(fused.name, taken), fused, ASCEND.schedule(fused, MACHINE), MACHINE, ("%s: a, b" % name,)
    )


@pytest.fixture(scope="module")
def cases():
    """(op, dims to try) of an op without symbols, one with, one whose nests read each other, and a gather."""
    found = [
        (regions.public_example().fused, regions.public_example().dims + regions.public_example().refused),
        (regions.run_time_broadcast().fused, regions.run_time_broadcast().dims),
    ]
    for condition in (
        lambda op: op.synchronises,
        lambda op: "autofuse/gather.h" in op.sources.text(DEVICE_SOURCE),
    ):
        family = one_of(condition)
        found.append((family.fused, family.dims))
    result = []
    for fused, dims in found:
        result.append((made(fused.name, fused, [op.type for op, _, _ in result]), fused, dims))
    return result


@pytest.fixture(scope="module")
def project(cases, tmp_path_factory):
    """The project's folder, with blanks in its path, built by its own script."""
    folder = tmp_path_factory.mktemp("a project") / "ops"
    for name, text in project_files([op for op, _, _ in cases], MACHINE, "ours", HELPERS).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    toolkit = tmp_path_factory.mktemp("toolkit")
    modules = toolkit / "compiler" / "tikcpp" / "ascendc_kernel_cmake"
    shutil.copytree(str(STANDIN), str(modules))
    (modules / "cmake" / "ASCConfig.cmake").rename(modules / "ASCConfig.cmake")
    text = (modules / "ASCConfig.cmake").read_text()
    (modules / "ASCConfig.cmake").write_text(
        text.replace("${CMAKE_CURRENT_LIST_DIR}/..", "${CMAKE_CURRENT_LIST_DIR}")
    )
    done = subprocess.run(
        ["sh", str(folder / "build.sh")],
        env=dict(os.environ, ASCEND_HOME_PATH=str(toolkit)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        universal_newlines=True,
    )
    assert done.returncode == 0, done.stdout
    return folder


@pytest.fixture(scope="module")
def library(project):
    (path,) = (project / "build_out").rglob("libcust_optiling.so")
    return ctypes.CDLL(str(path))


@pytest.fixture(scope="module")
def prototypes(project):
    (path,) = (project / "build_out").rglob("libcust_op_proto.so")
    return ctypes.CDLL(str(path))


def flat(dims):
    """rank, dims, rank, dims, ..."""
    return [x for shape in dims for x in (len(shape),) + tuple(shape)]


def int64s(values):
    return (ctypes.c_int64 * max(1, len(values)))(*values)


def infer(lib, op, dims):
    """Output dims, or None."""
    out = int64s([0] * 64)
    if lib.infer(op.type.encode(), int64s(flat(dims)), len(op.out_ranks), out):
        return None
    result, at = [], 0
    for _ in op.out_ranks:
        result.append(tuple(out[at + 1 : at + 1 + out[at]]))
        at += 1 + out[at]
    return result


def plan(lib, op, dims, cores=40, ub=196352, capacity=8192):
    """(block dim, tiling key, workspace bytes, schedule mode, tiling data), or None."""
    data, numbers = (ctypes.c_uint8 * 8192)(), int64s([0] * 5)
    failed = lib.tiling(
        op.type.encode(), int64s(flat(dims)), ctypes.c_uint32(cores), ctypes.c_uint64(ub),
        ctypes.c_uint64(capacity), data, numbers,
    )
    return None if failed else (numbers[0], numbers[1], numbers[2], numbers[4], bytes(data[: numbers[3]]))


class HostPart:
    """The kernel's own host library, as the ACL runtime uses it."""

    def __init__(self, op, folder):
        for name in (HOST_SOURCE, TILING_HEADER):
            (folder / name).write_text(op.sources.text(name))
        command = host_command(find_toolchain(os.environ), op.symbol)
        subprocess.run(command, cwd=str(folder), check=True)
        self.op, self.library = op, ctypes.CDLL(str(folder / ("lib%s_host.so" % op.symbol)))
        self.library.autofuse_tiling_size.restype = ctypes.c_int64

    def __call__(self, dims, cores=40, ub=196352):
        """(output dims, block dim, workspace bytes, tiling data), or None where a check fails."""
        out, sizes = int64s([0] * 64), int64s([0] * 64)
        if self.library.autofuse_shape(int64s([x for shape in dims for x in shape]), out, sizes):
            return None
        data = (ctypes.c_uint8 * self.library.autofuse_tiling_size())()
        block, workspace = ctypes.c_uint32(), ctypes.c_uint64()
        machine = AutofuseMachine(cores, 0, ub)
        assert not self.library.autofuse_tiling(
            sizes, ctypes.byref(machine), data, ctypes.byref(block), ctypes.byref(workspace)
        )
        shapes, at = [], 0
        for rank in self.op.out_ranks:
            shapes.append(tuple(out[at : at + rank]))
            at += rank
        return shapes, block.value, workspace.value, bytes(data)


def test_the_text_of_a_small_project(golden):
    """All files but the kernel's own and the helpers, which other tests hold still."""
    op = made("autofuse_pointwise_0_Abs_Add_Relu", regions.public_example().fused)
    files = project_files([op], MACHINE, "customize", HELPERS)
    kernels_own = (HOST_SOURCE, TILING_HEADER, op.symbol + ".cpp")
    shown = [n for n in sorted(files) if n.count("/") < 2]
    assert {Path(n).name for n in set(files) - set(shown) if "/autofuse/" not in n} == set(kernels_own)
    text = "\n".join(sorted(files)) + "\n"
    golden("project.txt", text + "".join("\n==== %s\n%s" % (n, files[n]) for n in shown))


def test_kernels_are_those_of_the_twin_byte_for_byte(cases, project):
    for op, fused, _ in cases:
        sources = generate(replace(fused, name=op.symbol), ASCEND.schedule(fused, MACHINE), MACHINE, None)
        kernel, host = project / "op_kernel" / op.symbol, project / "op_host" / op.symbol
        assert (kernel / (op.symbol + ".cpp")).read_text() == sources.text(DEVICE_SOURCE)
        assert (host / HOST_SOURCE).read_text() == sources.text(HOST_SOURCE)
        for folder in (kernel, host):
            assert (folder / TILING_HEADER).read_text() == sources.text(TILING_HEADER)
        for header in (kernel / "autofuse").iterdir():
            assert header.read_bytes() == (HELPERS / "autofuse" / header.name).read_bytes()


def test_a_kernels_folder_has_all_that_it_includes(cases, project):
    op = cases[-1][0]
    kernel = project / "op_kernel" / op.symbol / (op.symbol + ".cpp")
    twin = npu_kernels_dir() / "twin"
    command = [
        "g++",
        "-std=c++17",
        "-fsyntax-only",
        "-w",
        "-I%s" % twin,
        "-I%s" % (twin / "include"),
        str(kernel),
    ]
    done = subprocess.run(command, stderr=subprocess.PIPE, universal_newlines=True)
    assert done.returncode == 0, done.stderr


def test_what_the_build_is_told(cases, project):
    calls = (project / "build_out" / "calls.txt").read_text().splitlines()
    assert calls[0] == "ascend910b ours"
    assert "npu_op_kernel_options ascendc_kernels ALL OPTIONS --cce-auto-sync=off" in calls
    for op, _, _ in cases:
        assert (
            "npu_op_kernel_sources ascendc_kernels OP_TYPE %s KERNEL_DIR ./%s KERNEL_FILE %s.cpp"
            % (op.type, op.symbol, op.symbol) in calls
        )
    packed = [name for call in calls if call.startswith("npu_op_package_add") for name in call.split()[3:]]
    assert packed == ["cust_optiling", "cust_opapi", "cust_op_proto", "ascendc_kernels", "cust_tf_parsers"]


def test_shapes_and_plans_are_the_kernels_own(cases, library, prototypes, tmp_path):
    for op, fused, all_dims in cases:
        folder = tmp_path / op.symbol
        folder.mkdir()
        host = HostPart(op, folder)
        refused = 0
        for dims in all_dims:
            expected = host(dims)
            if expected is None:
                refused += 1
                assert infer(prototypes, op, dims) is None and plan(library, op, dims) is None
                continue
            shapes, block_dim, workspace, data = expected
            assert infer(prototypes, op, dims) == shapes
            found = plan(library, op, dims)
            if block_dim:
                assert found[0] == block_dim and found[4] == data
            else:
                assert found[0] == 1
            assert found[2] == workspace and found[3] == int(op.synchronises)
            if op.has_frame:
                assert found[1] == 0
        assert refused == (3 if op is cases[0][0] else 0)
        assert plan(library, op, all_dims[0], capacity=len(plan(library, op, all_dims[0])[4]) - 1) is None


def test_plans_are_for_the_chip_that_runs(cases, library, tmp_path):
    """Fewer cores and less UB than the kernel was written for count; more UB does not."""
    op, _, dims = cases[0]
    host = HostPart(op, tmp_path)
    assert plan(library, op, dims[0], cores=8, ub=65536)[0] == host(dims[0], 8, 65536)[1] <= 8
    assert plan(library, op, dims[0], cores=8, ub=65536)[4] == host(dims[0], 8, 65536)[3]
    assert plan(library, op, dims[0], ub=1 << 20) == plan(library, op, dims[0])


def test_dims_that_are_not_known_yet(cases, prototypes):
    static, dynamic = cases[0][0], cases[1][0]
    assert infer(prototypes, static, [(-1,), (-1, -1)]) == [(192, 128)]
    ranks = dynamic.in_ranks
    assert infer(prototypes, dynamic, [(-1,) * r for r in ranks]) == [tuple(dynamic.out_dims)]
    assert -1 in dynamic.out_dims
    assert infer(prototypes, dynamic, [(-2,)] * len(ranks)) == [tuple(dynamic.out_dims)]
    assert infer(prototypes, static, [(128, 1), (192, 128)]) is None  # another rank


def test_prototypes(cases, prototypes):
    numbers = {"float32": 0, "float16": 1, "int32": 3, "int64": 9, "bool": 12}
    for op, fused, _ in cases:
        for output, tensors in enumerate((fused.inputs, fused.outputs)):
            for i, tensor in enumerate(tensors):
                expected = numbers[tensor.dtype.name]
                assert prototypes.argument_type(op.type.encode(), output, i) == expected
                assert not output or prototypes.infers_type(op.type.encode(), i) == expected
            assert prototypes.argument_type(op.type.encode(), output, len(tensors)) == -1
        assert prototypes.is_for(op.type.encode(), b"ascend910b")
    assert prototypes.op_count() == len(cases)


def test_the_tensorflow_parser_knows_the_ops(cases, project):
    (path,) = (project / "build_out").rglob("libcust_tf_parsers.so")
    parsers = ctypes.CDLL(str(path))
    assert all(parsers.parses(op.type.encode()) for op, _, _ in cases)
    assert not parsers.parses(b"AutofuseOther")


def test_a_build_without_cann_says_so(project):
    environ = {k: v for k, v in os.environ.items() if k != "ASCEND_HOME_PATH"}
    done = subprocess.run(["sh", str(project / "build.sh")], env=environ, stderr=subprocess.PIPE)
    assert done.returncode == 2 and b"set_env.sh" in done.stderr


@pytest.mark.parametrize(
    "name, taken, expected",
    [
        ("autofuse_pointwise_0_Abs_AddV2_Relu", (), "AutofusePointwiseAbsAddvRelu"),
        ("autofuse_reduce_12_L2Loss", (), "AutofuseReduceLloss"),
        ("autofuse_pointwise_0_Abs", ("AutofusePointwiseAbs",), "AutofusePointwiseAbsNob"),
        (
            "autofuse_pointwise_0_Abs",
            ("AutofusePointwiseAbs", "AutofusePointwiseAbsNob"),
            "AutofusePointwiseAbsNoc",
        ),
        ("0_1", (), "Autofuse"),
        ("autofuse_x_" + "_".join(["Softmax"] * 30), (), "AutofuseX" + "Softmax" * 7),
        ("a" * 200, (), "A" + "a" * 63),
    ],
)
def test_names_of_ops(name, taken, expected):
    assert op_type(name, taken) == expected


def test_names_that_came_often():
    taken = []
    for _ in range(60):
        taken.append(op_type("autofuse_pointwise_3_Abs", taken))
    assert len(set(taken)) == 60 and taken[26] == "AutofusePointwiseAbsNoaa"
    assert len({symbol_of(name) for name in taken}) == 60
    assert symbol_of("AutofusePointwiseAbsNob") == "autofuse_pointwise_abs_nob"


def test_chips():
    assert compute_unit("Ascend910B4-1") == "ascend910b"
    assert compute_unit("Ascend910_9391") == "ascend910_93"
    with pytest.raises(ValueError, match="Ascend310P3"):
        compute_unit("Ascend310P3")
    with pytest.raises(ValueError, match="at least one"):
        project_files([], MACHINE, "customize", HELPERS)


def test_same_input_same_bytes(cases):
    ops = [op for op, _, _ in cases]
    first = project_files(ops, MACHINE, "ours", HELPERS)
    assert first == project_files(ops, MACHINE, "ours", HELPERS)
    assert all(text.endswith("\n") and np.all([ord(c) < 128 for c in text]) for text in first.values())
