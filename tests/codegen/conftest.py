"""The regions' kernels, built once per test process, in a cache that all tests of a run share."""

import os
from typing import Dict, NamedTuple, Tuple

import pytest

from tests.codegen import regions as regions_module
from tf_autofuse.build.kernels import BuildFailure, BuildSettings, KernelBinary, build_kernels
from tf_autofuse.codegen.ascendc.generate import KernelSources, generate
from tf_autofuse.ir.verify import verify_fused
from tf_autofuse.machine import machine_for
from tf_autofuse.schedule.impl_graph import ImplGraph
from tf_autofuse.schedule.schedule import schedule

MACHINE = machine_for("")


class Built(NamedTuple):
    region: regions_module.Region
    impls: Tuple[ImplGraph, ...]
    sources: KernelSources
    binary: KernelBinary


@pytest.fixture(scope="session")
def build_settings(tmp_path_factory) -> BuildSettings:
    """A cache that the run's processes share: AUTOFUSE_CACHE_DIR where the run has set it."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base
    return BuildSettings(
        cache_dir=os.environ.get("AUTOFUSE_CACHE_DIR") or str(shared / "kernels"),
        extra_flags=("-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"),
    )


class Kernels(Dict[str, Built]):
    """Built regions by name; a region that was not built fails the test that asks for it."""

    def __init__(self):
        super().__init__()
        self.failures: Dict[str, str] = {}

    def __missing__(self, name: str) -> Built:
        pytest.fail(self.failures[name])


@pytest.fixture(scope="session")
def built(build_settings) -> Kernels:
    """Every region with its kernel, by name."""
    made = {}
    for name, region in regions_module.all_regions().items():
        verify_fused(region.fused)
        impls = schedule(region.fused.graphs[0], MACHINE)
        made[name] = region, impls, generate(region.fused, impls, MACHINE, None)
    kernels = Kernels()
    results = build_kernels([sources for _, _, sources in made.values()], build_settings)
    for (name, parts), result in zip(made.items(), results):
        if isinstance(result, BuildFailure):
            kernels.failures[name] = "%s\n%s\n%s" % (result.reason, result.source_line, result.log)
        else:
            kernels[name] = Built(*parts, binary=result)
    return kernels
