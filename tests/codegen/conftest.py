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
    return BuildSettings(cache_dir=os.environ.get("AUTOFUSE_CACHE_DIR") or str(shared / "kernels"))


@pytest.fixture(scope="session")
def built(build_settings) -> Dict[str, Built]:
    """Every region with its kernel, by name."""
    made = {}
    for name, region in regions_module.all_regions().items():
        verify_fused(region.fused)
        impls = schedule(region.fused.graphs[0], MACHINE)
        made[name] = region, impls, generate(region.fused, impls, MACHINE, None)
    results = build_kernels([sources for _, _, sources in made.values()], build_settings)
    failures = ["%s: %s\n%s" % (name, r.reason, r.log) for name, r in zip(made, results) if isinstance(r, BuildFailure)]
    assert not failures, "\n".join(failures)
    return {name: Built(*parts, binary=binary) for (name, parts), binary in zip(made.items(), results)}
