"""Tilings measured by launches through ACL, against the stand-in."""
import shutil
from dataclasses import replace

import pytest

from tests.codegen import regions
from tests.codegen.conftest import MACHINE
from tests.runtime.test_acl import (  # noqa: F401
    inputs_of, library, opened, runtime, runtime_library, settings, standin)
from tf_autofuse.build.kernels import build_kernels
from tf_autofuse.codegen.ascendc.generate import generate
from tf_autofuse.config import Config
from tf_autofuse.profiling import pgo
from tf_autofuse.runtime import npu, registry
from tf_autofuse.schedule.schedule import schedule
from tf_autofuse.tiling import candidates

pytestmark = pytest.mark.once
CONFIG = Config(enable_pgo=True)


def test_candidates_are_launched_and_the_fastest_is_kept(
        runtime, settings, tmp_path, monkeypatch):  # noqa: F811
    fused = regions.symbolic().fused
    impls = schedule(fused.graphs[0], MACHINE)
    sources = generate(fused, impls, MACHINE, CONFIG)
    (binary,) = build_kernels([sources], settings)
    # A copy: nothing was measured of it yet.
    binary = replace(binary, library=shutil.copy(binary.library, str(tmp_path / "kernel.so")))
    kernel = npu.NpuKernel(binary.library, sources.symbol, registry.library_of(binary, fused), fused)
    inputs = inputs_of(kernel)
    monkeypatch.setattr(pgo, "LAUNCHES", 2)
    monkeypatch.setattr(candidates, "MOST_CANDIDATES", 5)
    launched = []
    run = npu.run

    def counted(*arguments, plan=None):
        launched.append(plan.block_dim)
        return run(*arguments, plan=plan)

    monkeypatch.setattr(npu, "run", counted)
    measure = pgo.on_device(runtime, kernel, inputs, MACHINE)
    tuned = pgo.tune(kernel.library, fused, impls, [x.shape for x in inputs], MACHINE, CONFIG, measure)
    assert tuned.fresh and 0 < tuned.best[0].time <= tuned.solved
    assert len(launched) >= 2 * len(tuned.best) and len(set(launched)) > 1
    assert launched[::2] == launched[1::2], "each plan is launched twice"
