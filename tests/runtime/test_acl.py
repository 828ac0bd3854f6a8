"""The ACL path against a stand-in for libascendcl whose device memory is out of the host's reach
(standin_acl.cpp)."""

import ctypes
import os
import subprocess
import threading
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest

from tests.build.test_cann import STAND_IN
from tests.codegen import regions
from tests.codegen.conftest import MACHINE
from tests.codegen.test_cann import toolkit
from tests.strategies import arrays_for
from tf_autofuse.build import cann
from tf_autofuse.build.kernels import BuildSettings, build_kernels
from tf_autofuse.build.toolchain import find_toolchain
from tf_autofuse.codegen.ascendc.cann import find_toolkit
from tf_autofuse.codegen.ascendc.generate import generate
from tf_autofuse.ir.evaluate import evaluate_fused
from tf_autofuse.runtime import acl, npu, registry
from tf_autofuse.runtime.library import KernelError, KernelLibrary
from tf_autofuse.schedule.schedule import schedule
from tf_autofuse.symbolic.guards import GuardFailure

pytestmark = pytest.mark.once
SOURCE = Path(__file__).with_name("standin_acl.cpp")
State = namedtuple("State", "allocations streams binaries misuses initialized")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """A toolkit's folder with the stand-in in it."""
    path = tmp_path_factory.mktemp("cann") / "lib64" / "libascendcl.so"
    path.parent.mkdir()
    subprocess.check_call(
        [
            "g++",
            "-O1",
            "-std=c++17",
            "-shared",
            "-fPIC",
            "-Wall",
            "-Werror",
            str(SOURCE),
            "-o",
            str(path),
            "-ldl",
        ]
    )
    return str(path)


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    """Two kernels: a chain runs the first one's output into the second. Their device binaries are twin
    builds."""
    made = {}
    settings = BuildSettings(
        cache_dir=os.environ.get("AUTOFUSE_CACHE_DIR") or str(tmp_path_factory.mktemp("kernels"))
    )
    for name, region in (("symbolic", regions.symbolic()), ("flat", regions.flat_symbolic())):
        sources = generate(region.fused, schedule(region.fused.graphs[0], MACHINE), MACHINE, None)
        (binary,) = build_kernels([sources], settings)
        made[name] = npu.NpuKernel(
            binary.library, sources.symbol, registry.library_of(binary, region.fused), region.fused
        )
    return made


@pytest.fixture
def standin(library):
    """The stand-in's own functions; afterwards nothing may be left, and nothing may have been misused."""
    side = ctypes.CDLL(library)
    side.standin_reset()
    yield side
    assert state(side)[:4] == (0, 0, 0, 0)


def state(side):
    values = (ctypes.c_int64 * 5)()
    side.standin_state(values)
    return State(*values)


@pytest.fixture
def runtime(standin, library):
    runtime = acl.AclRuntime(library)
    yield runtime
    runtime.close()
    assert not state(standin).initialized


def inputs_of(kernel, dims=((7, 128), (7, 1)), seed=1):
    return arrays_for(kernel.fused, dims, seed)


def test_the_library_is_found(library, tmp_path):
    home = str(Path(library).parent.parent)
    for variable in ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"):
        assert acl.find_library({variable: home}) == library
    assert acl.find_library({}) is None and acl.find_library({"ASCEND_HOME_PATH": str(tmp_path)}) is None
    with pytest.raises(acl.AclError, match="dlopen.*ASCEND_HOME_PATH"):
        acl.AclRuntime(str(tmp_path / "none.so"))
    with pytest.raises(acl.AclError, match="dlsym.*has no aclInit"):
        acl.AclRuntime("libm.so.6")


def test_a_kernel(runtime, kernels):
    kernel = kernels["symbolic"]
    for n in (7, 1, 0, 300):
        inputs = inputs_of(kernel, ((n, 128), (n, 1)), n)
        (got,) = npu.run(runtime, kernel, inputs, MACHINE)
        (expected,) = evaluate_fused(kernel.fused, inputs)
        assert got.tobytes() == expected.tobytes() and got.shape == (n, 128)
    assert runtime.use().used == 0 and runtime.use().kept > 0


def test_what_the_device_build_makes(runtime, kernels, tmp_path):
    """Shapes and tiling come from the host library that the build makes; the device binary is a twin
    build."""
    found = find_toolkit({"ASCEND_HOME_PATH": str(toolkit(tmp_path / "cann", STAND_IN))})
    region = regions.symbolic()
    sources = generate(region.fused, schedule(region.fused.graphs[0], MACHINE), MACHINE, None)
    made = cann.build_device(sources, found, find_toolchain(os.environ), "/helpers", tmp_path, 96)
    kernel = npu.kernel_of(made._replace(path=kernels["symbolic"].device), region.fused)
    inputs = inputs_of(kernel)
    (got,) = npu.run(runtime, kernel, inputs, MACHINE)
    assert got.tobytes() == evaluate_fused(region.fused, inputs)[0].tobytes() and not kernel.all_at_once
    with pytest.raises(KernelError, match="no function autofuse_run_blocks"):
        KernelLibrary(made.host_library, [2, 2], [2], 1)


def test_what_a_kernel_refuses(runtime, kernels):
    kernel = kernels["symbolic"]
    with pytest.raises(GuardFailure):
        npu.run(runtime, kernel, inputs_of(kernel, ((7, 128), (8, 1))), MACHINE)
    with pytest.raises(ValueError, match="1 inputs instead of 2"):
        npu.run(runtime, kernel, inputs_of(kernel)[:1], MACHINE)
    with pytest.raises(ValueError, match="input 0 is float64"):
        npu.run(runtime, kernel, [inputs_of(kernel)[0].astype(np.float64), inputs_of(kernel)[1]], MACHINE)
    with pytest.raises(acl.AclError, match="aclrtBinaryLoadFromFile"):
        npu.run(runtime, kernel._replace(device="/nowhere.o"), inputs_of(kernel), MACHINE)
    with pytest.raises(acl.AclError, match="no function other_0"):
        npu.run(runtime, kernel._replace(entries="other"), inputs_of(kernel), MACHINE)
    assert runtime.use().used == 0


def test_tensors_stay_on_the_device(runtime, kernels, standin):
    first, second = kernels["symbolic"], kernels["flat"]
    a = inputs_of(first)
    (between,) = npu.run(runtime, first, a, MACHINE, keep=True)
    flat = between._replace(dims=(7 * 128,))
    copies = standin.standin_calls(b"aclrtMemcpyAsync")
    (got,) = npu.run(runtime, second, [flat, flat], MACHINE)
    assert standin.standin_calls(b"aclrtMemcpyAsync") - copies == 2  # tiling data there, the result back
    (middle,) = evaluate_fused(first.fused, a)
    (expected,) = evaluate_fused(second.fused, [middle.reshape(-1)] * 2)
    assert got.tobytes() == expected.tobytes() and runtime.use().used == between.memory.capacity
    runtime.release(between.memory)


def test_memory_is_used_again(runtime, kernels, standin):
    kernel = kernels["symbolic"]
    for _ in range(5):
        npu.run(runtime, kernel, inputs_of(kernel), MACHINE)
    asked, streams = standin.standin_calls(b"aclrtMalloc"), standin.standin_calls(b"aclrtCreateStream")
    assert asked == 5 and streams == 1  # two inputs, output, workspace, tiling data
    assert (
        standin.standin_calls(b"aclrtBinaryLoadFromFile")
        == standin.standin_calls(b"aclrtBinaryGetFunction")
        == 1
    )
    kept = runtime.use().kept
    assert runtime.trim() == kept and runtime.use().kept == 0 and state(standin).allocations == 0


def test_a_full_device_gets_back_what_is_kept(runtime, standin):
    pieces = [runtime.allocate(1 << 20) for _ in range(3)]
    for piece in pieces:
        runtime.release(piece)
    standin.standin_limit(ctypes.c_uint64(4 << 20))
    large = runtime.allocate(3 << 20)
    assert large.capacity == 4 << 20 and runtime.use() == (4 << 20, 0, 4 << 20)
    with pytest.raises(acl.AclError, match="no memory"):
        runtime.allocate(1)
    runtime.release(large)


CALLS = sorted(
    set(acl._SIGNATURES)
    - {
        "aclrtMemsetAsync",
        "aclFinalize",
        "aclrtFree",
        "aclrtBinaryUnLoad",
        "aclrtDestroyStream",
        "aclrtResetDevice",
    }
)


@pytest.mark.parametrize("call", CALLS)
def test_a_failure_of_every_call(standin, library, kernels, call):
    """The error names the call, nothing leaks, and the next run is right."""
    kernel = kernels["symbolic"]
    inputs = inputs_of(kernel)
    (expected,) = evaluate_fused(kernel.fused, inputs)
    failures = 0
    for at in range(1, 12):
        standin.standin_fail(call.encode(), at)
        runtime = None
        try:
            runtime = acl.AclRuntime(library)
            npu.run(runtime, kernel, inputs, MACHINE)
        except acl.AclError as error:
            failures += 1
            assert error.call == call and error.code == 507899 and "injected" in str(error)
            standin.standin_fail(b"", 0)
            if runtime is not None:
                (got,) = npu.run(runtime, kernel, inputs, MACHINE)
                assert got.tobytes() == expected.tobytes() and runtime.use().used == 0
        finally:
            standin.standin_fail(b"", 0)
            if runtime is not None:
                runtime.close()
        assert state(standin)[:3] == (0, 0, 0)
        if at > failures:
            break
    assert failures >= 1


@pytest.mark.parametrize("call", ["aclrtFree", "aclrtBinaryUnLoad", "aclrtDestroyStream", "aclrtResetDevice"])
def test_a_failure_while_closing_is_told_and_the_rest_given_back(standin, library, kernels, call):
    runtime = acl.AclRuntime(library)
    npu.run(runtime, kernels["symbolic"], inputs_of(kernels["symbolic"]), MACHINE)
    standin.standin_fail(call.encode(), 1)
    with pytest.raises(acl.AclError, match=call):
        runtime.close()
    left = state(standin)
    assert sum(left[:3]) == (0 if call == "aclrtResetDevice" else 1)
    assert left.misuses == (1 if call == "aclrtResetDevice" else 0)  # finalised with the device open
    standin.standin_fail(b"", 0)
    runtime.close()  # nothing more
    assert state(standin) == left
    standin.standin_reset()


def test_four_threads(runtime, kernels):
    kernel = kernels["symbolic"]
    wrong = []

    def work(seed):
        for i in range(6):
            n = 1 + (seed * 37 + i * 11) % 200
            inputs = inputs_of(kernel, ((n, 128), (n, 1)), seed + i)
            (got,) = npu.run(runtime, kernel, inputs, MACHINE)
            (expected,) = evaluate_fused(kernel.fused, inputs)
            if got.tobytes() != expected.tobytes():
                wrong.append((seed, i))

    threads = [threading.Thread(target=work, args=(s,)) for s in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong and runtime.use().used == 0


def test_who_else_has_initialised_acl_finalises_it(library, standin):
    standin.standin_foreign(1)
    runtime = acl.AclRuntime(library)
    runtime.close()
    assert state(standin).initialized
    standin.standin_foreign(0)


def test_a_forked_process(runtime, kernels):
    kernel = kernels["symbolic"]
    npu.run(runtime, kernel, inputs_of(kernel), MACHINE)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            npu.run(runtime, kernel, inputs_of(kernel), MACHINE)
        except acl.AclError as error:
            code = 0 if "spawn" in str(error) else 2
        try:
            runtime.close()  # the parent's: nothing happens
        except BaseException:
            code = 3
        os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    npu.run(runtime, kernel, inputs_of(kernel), MACHINE)


def test_one_runtime_a_process(standin, library):
    first = acl.runtime_for(library)
    assert acl.runtime_for(library) is first
    first.close()
    again = acl.runtime_for(library)
    assert again is not first
    again.close()


def test_the_stand_in_catches_mistakes(runtime, standin, kernels):
    """What the tests above rely on: wrong copies, double frees and missing waits are seen."""
    memory = runtime.allocate(64)
    stream = runtime.take_stream()
    host = np.arange(16, dtype=np.float32)
    back = np.zeros(16, np.float32)
    runtime.to_device(memory, host.ctypes.data, 64, stream)
    runtime.to_host(back.ctypes.data, memory, 64, stream)
    assert not back.any()  # nothing is done before the wait
    runtime.synchronize(stream)
    np.testing.assert_array_equal(back, host)
    for call in (
        lambda: runtime.to_device(memory._replace(address=host.ctypes.data), host.ctypes.data, 64, stream),
        lambda: runtime.to_device(memory, memory.address, 64, stream),
        lambda: runtime.to_host(back.ctypes.data, memory, 1 << 20, stream),
        lambda: runtime.call("aclrtFree", memory.address + 64),
    ):
        with pytest.raises(acl.AclError):
            call()
    assert state(standin).misuses == 4
    runtime.give_stream(stream)
    runtime.release(memory)
    runtime.close()
    standin.standin_reset()
