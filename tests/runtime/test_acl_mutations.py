"""The stand-in for libascendcl, and tests that use it, catch what could be wrong in the NPU runtime: its
source is built with a mutant at each of these places, of which one is switched on at a time."""

import ctypes
import gc
import shutil
import subprocess
import threading

import pytest

from tests.codegen.conftest import MACHINE
from tests.runtime.standin import Standin
from tests.runtime.test_acl import (  # noqa: F401  fixtures
    chain,
    expected_of_chain,
    inputs_of,
    kernels,
    library,
    settings,
)
from tf_autofuse.ir.evaluate import evaluate_fused
from tf_autofuse.resources import npu_kernels_dir
from tf_autofuse.runtime import acl, npu

pytestmark = pytest.mark.once

#: What goes wrong: (file, text, the text with the mutant, which is on where M is true).
MUTANTS = {
    "a leak": ("device.h", "if (!Forked())", "if (!Forked() && !(M))"),
    "a double free": (
        "pool.h", "for (void* address : pieces.second) free(address);",
        "for (void* address : pieces.second) {\n"
        "        if (M) free(address);\n        free(address);\n      }"),
    "a stream that is left": (
        "device.cpp", "void* handle = stream->handle;", "void* handle = (M) ? nullptr : stream->handle;"),
    "a tensor on the device is used after its death": (
        "npu_runtime.cpp", "queued_->held.push_back(input.device->memory);",
        "if (!(M)) queued_->held.push_back(input.device->memory);"),
    "nobody waits": ("npu_runtime.cpp", "if (waits_ && !device_", "if (!(M) && waits_ && !device_"),
    "nobody waits for another stream": (
        "npu_runtime.cpp", "} else if (!device_->Wait(", "} else if (!(M) && !device_->Wait("),
    "inputs in another order": (
        "npu_runtime.cpp", "for (const Copy& copy : inputs_) {\n      if (!Append(",
        "for (const Copy& copy : (M) ? std::vector<Copy>(inputs_.rbegin(), inputs_.rend()) : inputs_) {\n"
        "      if (!Append("),
    "tiling data in the workspace's place": (
        "npu_runtime.cpp", "if (!Append(arguments, workspace_.device) || !Append(arguments, tiling_.device))",
        "if (!Append(arguments, ((M) ? tiling_ : workspace_).device) ||\n"
        "        !Append(arguments, ((M) ? workspace_ : tiling_).device))"),
    "a copy out of the caller's memory": (
        "npu_runtime.cpp", "std::memcpy(copy->host->address(), values, bytes);",
        "std::memcpy(copy->host->address(), values, bytes);\n"
        "    if (M) copy->host = *new PieceRef(std::make_shared<autofuse_npu::Piece>(\n"
        "        nullptr, const_cast<void*>(values), bytes));"),
    "too short a copy": ("npu_runtime.cpp", "copy->bytes = bytes;", "copy->bytes = (M) ? bytes / 2 : bytes;"),
    "a thread without a device": ("device.cpp", "ok_ = device->acl_.Ok(", "ok_ = (M) || device->acl_.Ok("),
}
_SWITCH = 'extern "C" __attribute__((visibility("default"))) int autofuse_mutant;\n'


class Found(Exception):
    """What a mutant did wrong."""


@pytest.fixture(scope="module")
def mutants(tmp_path_factory):
    """The library with all mutants, switched by the number in `autofuse_mutant` (0: none)."""
    folder = tmp_path_factory.mktemp("mutants") / "runtime"
    shutil.copytree(str(npu_kernels_dir() / "runtime"), str(folder))
    for number, (file, text, mutant) in enumerate(MUTANTS.values(), 1):
        source = (folder / file).read_text()
        assert source.count(text) == 1, "a mutant is out of date: " + text
        mutant = mutant.replace("(M)", "(autofuse_mutant == %d)" % number)
        (folder / file).write_text(source.replace(text, mutant))
    header = folder / "npu_runtime.h"
    header.write_text(header.read_text().replace("#include <cstdint>", "#include <cstdint>\n" + _SWITCH, 1))
    (folder / "switch.cpp").write_text('#include "npu_runtime.h"\nint autofuse_mutant = 0;\n')
    sources = [str(path) for path in sorted(folder.glob("*.cpp"))]
    flags = ["-std=c++17", "-O0", "-w", "-shared", "-fPIC", "-fvisibility=hidden"]
    subprocess.check_call(["g++"] + flags + sources + ["-o", str(folder / "mutants.so"), "-ldl", "-pthread"])
    return str(folder / "mutants.so")


def scenario(runtime_library, acl_library, made, side):
    """Raises Found, or AclError."""
    side.reset()
    runtime = acl.NpuRuntime(runtime_library, acl_library)
    try:
        _steps(runtime, made)
        gc.collect()
        if runtime.use().used or runtime.use().pending:
            raise Found("something is left")
    finally:
        runtime.close()
    if side.state[:4] != (0, 0, 0, 0):
        raise Found(str(side.state))


def _steps(runtime, made):
    first, flat = made["symbolic"], made["flat"]
    inputs, others = inputs_of(first, seed=1), inputs_of(first, seed=2)
    middle, expected = expected_of_chain(made, inputs)
    between, second = chain(runtime, made, inputs)
    _same(between.read(), middle)  # from here on only the second kernel needs its memory
    (late,) = second(keep=True)
    del between, second  # the second kernel is still queued
    (other,) = npu.run(runtime, first, others, MACHINE, keep=True)
    (both,) = npu.run(runtime, flat, [late, other._replace(dims=late.dims)], MACHINE)  # of two streams
    other_values = expected_of_chain(made, others)[0].reshape(-1)
    _same(late.read(), expected)
    _same(both, evaluate_fused(flat.fused, [expected, other_values])[0])
    failures = []

    def in_a_thread():
        try:
            _same(npu.run(runtime, first, inputs, MACHINE)[0], middle)
        except Exception as error:
            failures.append(error)

    thread = threading.Thread(target=in_a_thread)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]


def _same(got, expected):
    if got.tobytes() != expected.tobytes():
        raise Found("wrong values")


@pytest.mark.parametrize("name", ["nothing"] + list(MUTANTS))
def test_mutants(name, mutants, library, kernels):  # noqa: F811
    side = Standin(library)
    switch = ctypes.c_int.in_dll(ctypes.CDLL(mutants), "autofuse_mutant")
    switch.value = (["nothing"] + list(MUTANTS)).index(name)
    try:
        if name == "nothing":
            scenario(mutants, library, kernels, side)
        else:
            with pytest.raises((Found, acl.AclError)):
                scenario(mutants, library, kernels, side)
    finally:
        switch.value = 0
        gc.collect()
        side.reset()
