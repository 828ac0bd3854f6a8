"""The stand-in for libascendcl, and the tests that use it, catch what could be wrong in the NPU runtime: each
mutant of its source is built and has to fail where the runtime itself passes."""

import gc
import shutil
import subprocess
import threading

import numpy as np
import pytest

from tests.codegen.conftest import MACHINE
from tests.runtime.test_acl import (  # noqa: F401  fixtures
    chain,
    expected_of_chain,
    inputs_of,
    kernels,
    library,
    settings,
)
from tests.runtime.standin import Standin
from tf_autofuse.resources import npu_kernels_dir
from tf_autofuse.runtime import acl, npu

pytestmark = pytest.mark.once

#: What goes wrong: (file, text, what stands there instead).
MUTANTS = {
    "nothing": ("pool.h", "namespace autofuse_npu {", "namespace autofuse_npu {"),
    "a leak": ("device.h", "if (!Forked()) pool_->Give(address_);", ""),
    "a double free": ("pool.h", "all = free(address) &&", "all = free(address) && free(address) &&"),
    "a stream that is left": ("device.cpp", "void* handle = stream->handle;", "void* handle = nullptr;"),
    "a tensor on the device is used after its death": (
        "npu_runtime.cpp", "queued_->held.push_back(input.device->memory);", ""),
    "nobody waits": ("npu_runtime.cpp", "if (waits_ && !device_->Wait(", "if (false && !device_->Wait("),
    "nobody waits for another stream": (
        "npu_runtime.cpp", "} else if (!device_->Wait(", "} else if (false && !device_->Wait("),
    "inputs in another order": (
        "npu_runtime.cpp",
        "for (const Copy& copy : inputs_) {\n      if (!Append(",
        "for (const Copy& copy : std::vector<Copy>(inputs_.rbegin(), inputs_.rend())) {\n      if (!Append("),
    "tiling data before the workspace": (
        "npu_runtime.cpp",
        "if (!Append(arguments, workspace_.device) || !Append(arguments, tiling_.device)) return false;",
        "if (!Append(arguments, tiling_.device) || !Append(arguments, workspace_.device)) return false;"),
    "a copy out of the caller's memory": (
        "npu_runtime.cpp", "std::memcpy(copy->host->address(), values, bytes);",
        "copy->host = std::make_shared<autofuse_npu::Piece>(nullptr, const_cast<void*>(values), bytes);\n"
        "    static std::vector<PieceRef> forever;\n    forever.push_back(copy->host);"),
    "too short a copy": ("npu_runtime.cpp", "copy->bytes = bytes;", "copy->bytes = bytes / 2;"),
    "a thread without a device": (
        "device.cpp", "ok_ = device->acl_.Ok(", "ok_ = true || device->acl_.Ok("),
}


class Found(Exception):
    """What a mutant did wrong."""


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
    inputs = inputs_of(made["symbolic"], seed=1)
    middle, expected = expected_of_chain(made, inputs)
    between, second = chain(runtime, made, inputs)
    (late,) = second(keep=True)
    del between, second  # the second kernel is still queued
    (other,) = npu.run(runtime, made["symbolic"], inputs_of(made["symbolic"], seed=2), MACHINE, keep=True)
    flat = other._replace(dims=(7 * 128,))
    (both,) = npu.run(runtime, made["flat"], [late, flat], MACHINE)  # of two streams
    other_values = expected_of_chain(made, inputs_of(made["symbolic"], seed=2))[0].reshape(-1)
    _same(late.read(), expected)
    _same(both, expected + other_values)
    failures = []

    def in_a_thread():
        try:
            _same(npu.run(runtime, made["symbolic"], inputs, MACHINE)[0], middle)
        except Exception as error:
            failures.append(error)

    thread = threading.Thread(target=in_a_thread)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]


def _same(got, expected):
    if got.tobytes() != np.asarray(expected, got.dtype).tobytes():
        raise Found("wrong values")


@pytest.mark.parametrize("name", MUTANTS)
def test_mutants(name, tmp_path, library, kernels):  # noqa: F811
    file, text, instead = MUTANTS[name]
    folder = tmp_path / "runtime"
    shutil.copytree(str(npu_kernels_dir() / "runtime"), str(folder))
    source = (folder / file).read_text()
    assert source.count(text) == 1, "the mutant is out of date"
    (folder / file).write_text(source.replace(text, instead))
    built = tmp_path / "mutant.so"
    sources = [str(path) for path in sorted(folder.glob("*.cpp"))]
    flags = ["-std=c++17", "-O0", "-w", "-shared", "-fPIC", "-fvisibility=hidden"]
    subprocess.check_call(["g++"] + flags + sources + ["-o", str(built), "-ldl", "-pthread"])
    side = Standin(library)
    try:
        if name == "nothing":
            scenario(str(built), library, kernels, side)
        else:
            with pytest.raises((Found, acl.AclError)):
                scenario(str(built), library, kernels, side)
    finally:
        side.reset()
