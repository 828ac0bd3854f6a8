"""The ACL path against a stand-in for libascendcl whose device memory is out of the host's reach
(standin_acl.cpp)."""

import os
import re
import threading
from pathlib import Path

import numpy as np
import pytest

from tests.build.test_cann import STAND_IN
from tests.codegen import regions
from tests.codegen.conftest import MACHINE
from tests.codegen.test_cann import toolkit
from tests.runtime.standin import INJECTED, RUN_CALLS, Standin, build_standin
from tests.strategies import arrays_for
from tf_autofuse.build import cann
from tf_autofuse.build.kernels import BuildSettings, build_kernels
from tf_autofuse.build.npu_runtime import npu_runtime
from tf_autofuse.build.toolchain import find_toolchain
from tf_autofuse.codegen.ascendc.cann import find_toolkit
from tf_autofuse.codegen.ascendc.generate import generate
from tf_autofuse.ir.evaluate import evaluate_fused
from tf_autofuse.resources import npu_kernels_dir
from tf_autofuse.runtime import acl, npu, registry
from tf_autofuse.runtime.library import KernelError, KernelLibrary
from tf_autofuse.schedule.schedule import schedule
from tf_autofuse.symbolic.guards import GuardFailure

pytestmark = pytest.mark.once
#: What five runs of one kernel leave in the pools: two inputs, an output, workspace, tiling data; and on the
#: host all but the workspace.
MEMORY, HOST_MEMORY = 5, 4


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    shared = os.environ.get("AUTOFUSE_CACHE_DIR")
    return BuildSettings(cache_dir=shared or str(tmp_path_factory.mktemp("kernels")))


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """libascendcl in a toolkit's folder."""
    return build_standin(tmp_path_factory.mktemp("cann"))


@pytest.fixture(scope="module")
def runtime_library(settings):
    return npu_runtime(settings)


@pytest.fixture(scope="module")
def kernels(settings):
    """Two kernels: a chain runs the first one's output into the second. Their device binaries are twin
    builds."""
    made = {}
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
    side = Standin(library)
    side.reset()
    yield side
    assert side.state[:4] == (0, 0, 0, 0)


@pytest.fixture
def opened(standin, library, runtime_library):
    """Opens a runtime; those that are left open are closed."""
    made = []

    def open_one():
        made.append(acl.NpuRuntime(runtime_library, library))
        return made[-1]

    yield open_one
    for runtime in made:
        runtime.close()
    assert not standin.state.initialized


@pytest.fixture
def runtime(opened):
    return opened()


def inputs_of(kernel, dims=((7, 128), (7, 1)), seed=1):
    return arrays_for(kernel.fused, dims, seed)


def test_the_library_is_found(library, runtime_library, tmp_path):
    home = str(Path(library).parent.parent)
    for variable in ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"):
        assert acl.find_library({variable: home}) == library
    assert acl.find_library({}) is None and acl.find_library({"ASCEND_HOME_PATH": str(tmp_path)}) is None
    with pytest.raises(acl.AclError, match="dlopen.*none.so"):
        acl.NpuRuntime(runtime_library, str(tmp_path / "none.so"))
    with pytest.raises(acl.AclError, match="dlsym.*has no aclInit"):
        acl.NpuRuntime(runtime_library, "libm.so.6")


def test_python_and_the_header_name_the_same_functions():
    header = (npu_kernels_dir() / "runtime" / "npu_runtime.h").read_text()
    names = re.findall(r"X\(\w+, autofuse_npu_(\w+)\)", header)
    assert sorted(names) == sorted(acl._FUNCTIONS)
    assert int(re.search(r"AUTOFUSE_NPU_VERSION (\d+)", header).group(1)) == acl.VERSION


def test_a_kernel(runtime, kernels):
    kernel = kernels["symbolic"]
    for n in (7, 1, 0, 300):
        inputs = inputs_of(kernel, ((n, 128), (n, 1)), n)
        (got,) = npu.run(runtime, kernel, inputs, MACHINE)
        (expected,) = evaluate_fused(kernel.fused, inputs)
        assert got.tobytes() == expected.tobytes() and got.shape == (n, 128)
    use = runtime.use()
    assert (use.used, use.host_used, use.pending, use.lost) == (0, 0, 0, 0) and use.kept > 0


def test_what_the_device_build_makes(runtime, kernels, tmp_path):
    """Shapes and tiling come from the host library that the build makes; the device binary is a twin
    build."""
    found = find_toolkit({"ASCEND_HOME_PATH": str(toolkit(tmp_path / "cann", STAND_IN))})
    region = regions.symbolic()
    sources = generate(region.fused, schedule(region.fused.graphs[0], MACHINE), MACHINE, None)
    made = cann.build_device(sources, found, find_toolchain(os.environ), "/helpers", tmp_path, 96)
    library = KernelLibrary(made.host_library, [2, 2], [2], 1, host_only=True)
    kernel = npu.NpuKernel(kernels["symbolic"].device, made.symbol, library, region.fused, made.all_at_once)
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


def chain(runtime, kernels, inputs):
    """(the tensor between the two kernels, a call of the second on it)."""
    (between,) = npu.run(runtime, kernels["symbolic"], inputs, MACHINE, keep=True)
    flat = between._replace(dims=(7 * 128,))
    return between, lambda **more: npu.run(runtime, kernels["flat"], [flat, flat], MACHINE, **more)


def expected_of_chain(kernels, inputs):
    (middle,) = evaluate_fused(kernels["symbolic"].fused, inputs)
    return middle, evaluate_fused(kernels["flat"].fused, [middle.reshape(-1)] * 2)[0]


def test_tensors_stay_on_the_device(runtime, kernels, standin):
    inputs = inputs_of(kernels["symbolic"])
    middle, expected = expected_of_chain(kernels, inputs)
    between, second = chain(runtime, kernels, inputs)
    assert standin.calls("aclrtSynchronizeStream") == 0 and runtime.use().pending == 1
    copies = standin.calls("aclrtMemcpyAsync")
    (got,) = second()
    assert standin.calls("aclrtMemcpyAsync") - copies == 2  # tiling data there, the result back
    assert standin.calls("aclrtSynchronizeStream") == 1 and runtime.use().pending == 0
    assert got.tobytes() == expected.tobytes() and between.memory.settled
    assert between.read().tobytes() == middle.tobytes()
    assert runtime.use().used == 4096  # 7 * 128 floats, as a power of two
    del between, second
    assert runtime.use().used == 0


def test_memory_of_queued_work_is_not_used_again_before_it_is_done(runtime, kernels):
    """The tensor between two kernels dies while the second is still queued; a third one takes new memory."""
    inputs = inputs_of(kernels["symbolic"])
    _, expected = expected_of_chain(kernels, inputs)
    between, second = chain(runtime, kernels, inputs)
    (late,) = second(keep=True)
    del between, second
    used = runtime.use().used
    assert runtime.use().pending == 2
    others = inputs_of(kernels["symbolic"], seed=2)
    (other,) = npu.run(runtime, kernels["symbolic"], others, MACHINE, keep=True)
    assert runtime.use().used > used
    assert late.read().tobytes() == expected.tobytes()
    other.read()


def test_tensors_of_two_streams_meet(runtime, kernels, standin):
    first, flat = kernels["symbolic"], kernels["flat"]
    (a,) = npu.run(runtime, first, inputs_of(first, seed=1), MACHINE, keep=True)
    (b,) = npu.run(runtime, first, inputs_of(first, seed=2), MACHINE, keep=True)
    assert standin.calls("aclrtCreateStream") == 2  # neither waits for the other
    (got,) = npu.run(runtime, flat, [t._replace(dims=(7 * 128,)) for t in (a, b)], MACHINE)
    values = [evaluate_fused(first.fused, inputs_of(first, seed=s))[0].reshape(-1) for s in (1, 2)]
    assert got.tobytes() == evaluate_fused(flat.fused, values)[0].tobytes()


def test_a_stream_that_fails_loses_its_values_and_nothing_else(runtime, kernels, standin):
    inputs = inputs_of(kernels["symbolic"])
    _, expected = expected_of_chain(kernels, inputs)
    between, second = chain(runtime, kernels, inputs)
    standin.fail("aclrtSynchronizeStream", 1)
    with pytest.raises(acl.AclError, match="injected"):
        second()
    assert not between.memory.settled and state_of(runtime) == (0, 0, 0)
    for again in (second, between.read):  # the values are gone for good
        with pytest.raises(acl.AclError, match="aclrtSynchronizeStream.*injected"):
            again()
    del between, second, again
    (got,) = chain(runtime, kernels, inputs)[1]()
    assert got.tobytes() == expected.tobytes() and runtime.use().used == 0


def state_of(runtime):
    use = runtime.use()
    return use.pending, use.lost, use.host_used


def test_memory_that_a_failed_stream_may_still_use_comes_back_at_the_end(runtime, kernels, standin):
    inputs = inputs_of(kernels["symbolic"])
    standin.fail("aclrtSynchronizeStream", -1)
    with pytest.raises(acl.AclError, match="injected"):
        npu.run(runtime, kernels["symbolic"], inputs, MACHINE)
    standin.fail("", 0)
    lost = runtime.use()
    assert lost.lost > 0 and lost.used > 0
    (got,) = npu.run(runtime, kernels["symbolic"], inputs, MACHINE)
    assert got.tobytes() == expected_of_chain(kernels, inputs)[0].tobytes()
    assert runtime.use().used == lost.used
    runtime.close()
    # It has been destroyed with its work left, which the stand-in takes for a mistake.
    assert standin.state[:4] == (0, 0, 0, 1)
    standin.reset()


def test_memory_is_used_again(runtime, kernels, standin):
    kernel = kernels["symbolic"]
    for _ in range(5):
        npu.run(runtime, kernel, inputs_of(kernel), MACHINE)
    assert standin.calls("aclrtMalloc") == MEMORY and standin.calls("aclrtMallocHost") == HOST_MEMORY
    assert standin.calls("aclrtCreateStream") == 1
    assert standin.calls("aclrtBinaryLoadFromFile") == standin.calls("aclrtBinaryGetFunction") == 1
    assert runtime.use().kept > 0
    runtime.trim()
    assert runtime.use().kept == runtime.use().host_kept == 0 and standin.state.allocations == 0


def test_a_full_device_gets_back_what_is_kept(runtime, kernels, standin):
    kernel = kernels["symbolic"]
    (kept,) = npu.run(runtime, kernel, inputs_of(kernel, ((3000, 128), (3000, 1))), MACHINE, keep=True)
    del kept
    # Room for the next size, but not beside what is kept of the first, which nobody has waited for either.
    standin.limit(10 << 20)
    inputs = inputs_of(kernel, ((5000, 128), (5000, 1)))
    (got,) = npu.run(runtime, kernel, inputs, MACHINE)
    assert got.tobytes() == evaluate_fused(kernel.fused, inputs)[0].tobytes()
    standin.limit(4 << 20)
    with pytest.raises(acl.AclError, match="no memory"):
        npu.run(runtime, kernel, inputs_of(kernel, ((20000, 128), (20000, 1))), MACHINE)
    assert runtime.use().used == 0


@pytest.mark.parametrize("call", ("aclInit",) + RUN_CALLS)
def test_a_failure_of_every_call(standin, opened, kernels, call):
    """The error names the call, nothing leaks, and the next run is right."""
    inputs = inputs_of(kernels["symbolic"])
    _, expected = expected_of_chain(kernels, inputs)
    failures = 0
    for at in range(1, 20):
        standin.fail(call, at)
        runtime = None
        try:
            runtime = opened()
            chain(runtime, kernels, inputs)[1]()
        except acl.AclError as error:
            failures += 1
            assert error.call == call and error.code == INJECTED and "injected" in str(error)
        standin.fail("", 0)
        if runtime is not None:
            (got,) = chain(runtime, kernels, inputs)[1]()
            assert got.tobytes() == expected.tobytes()
            assert runtime.use().used == 0 and state_of(runtime) == (0, 0, 0)
            runtime.close()
        assert standin.state[:3] == (0, 0, 0)
        if at > failures:
            break
    # Memory that can't be had is asked for again, once what is kept has been given back.
    assert failures >= (0 if "Malloc" in call else 1)


@pytest.mark.parametrize("call", ["aclrtMalloc", "aclrtMallocHost"])
def test_memory_that_can_not_be_had(standin, runtime, kernels, call):
    for at in range(1, 5):
        runtime.trim()
        standin.fail(call, -at)
        with pytest.raises(acl.AclError, match=call + ".*injected"):
            npu.run(runtime, kernels["symbolic"], inputs_of(kernels["symbolic"]), MACHINE)
        assert runtime.use().used == 0 and state_of(runtime) == (0, 0, 0)


@pytest.mark.parametrize("call", ["aclrtFree", "aclrtFreeHost", "aclrtBinaryUnLoad", "aclrtDestroyStream",
                                  "aclrtResetDevice"])
def test_a_failure_while_closing_is_told_and_the_rest_given_back(standin, opened, kernels, call):
    runtime = opened()
    npu.run(runtime, kernels["symbolic"], inputs_of(kernels["symbolic"]), MACHINE)
    standin.fail(call, 1)
    with pytest.raises(acl.AclError, match=call):
        runtime.close()
    left = standin.state
    assert sum(left[:3]) == (0 if call == "aclrtResetDevice" else 1)
    assert left.misuses == (1 if call == "aclrtResetDevice" else 0)  # finalised with the device open
    standin.fail("", 0)
    runtime.close()  # nothing more
    assert standin.state == left
    standin.reset()


def test_four_threads(runtime, kernels):
    """Each with chains of its own, whose tensors stay on the device."""
    wrong = []

    def work(seed):
        for i in range(6):
            inputs = inputs_of(kernels["symbolic"], seed=10 * seed + i)
            between, second = chain(runtime, kernels, inputs)
            middle, expected = expected_of_chain(kernels, inputs)
            if second()[0].tobytes() != expected.tobytes() or between.read().tobytes() != middle.tobytes():
                wrong.append((seed, i))

    threads = [threading.Thread(target=work, args=(s,)) for s in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong and runtime.use().used == 0 and state_of(runtime) == (0, 0, 0)


def test_who_else_has_initialised_acl_finalises_it(opened, standin):
    standin.foreign(True)
    opened().close()
    assert standin.state.initialized
    standin.foreign(False)


def test_a_forked_process(runtime, kernels):
    kernel = kernels["symbolic"]
    (kept,) = npu.run(runtime, kernel, inputs_of(kernel), MACHINE, keep=True)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            npu.run(runtime, kernel, inputs_of(kernel), MACHINE)
        except acl.AclError as error:
            code = 0 if "spawn" in str(error) else 2
        try:
            kept.memory.release()
            runtime.close()  # the parent's: nothing happens
            acl.NpuRuntime(runtime.library, runtime.acl)
            code = 4
        except acl.AclError as error:
            code = code if "spawn" in str(error) else 5
        except BaseException:
            code = 3
        os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert kept.read().tobytes() == npu.run(runtime, kernel, inputs_of(kernel), MACHINE)[0].tobytes()


def test_one_runtime_a_process(standin, library, settings):
    first = acl.runtime_for(library, settings=settings)
    assert acl.runtime_for(library, settings=settings) is first
    assert acl.NpuRuntime(first.library, library).handle == first.handle
    first.close()
    assert first.unusable == "the NPU has been closed"
    again = acl.runtime_for(library, settings=settings)
    assert again is not first
    again.close()


def test_what_outlives_the_runtime(opened, kernels):
    runtime = opened()
    between, second = chain(runtime, kernels, inputs_of(kernels["symbolic"]))
    runtime.close()
    for call in (second, between.read, lambda: runtime.function("x", "y"), runtime.trim):
        with pytest.raises(acl.AclError, match="closed"):
            call()
    assert runtime.use().used == 0
    between.memory.release()
