"""The host kernels of all cases, built by one call with warnings as errors."""
import pytest

from tests.codegen import regions
from tests.codegen.host import graphs
from tf_autofuse.build.kernels import BuildFailure, BuildSettings, build_kernels
from tf_autofuse.codegen.targets import HOST
from tf_autofuse.ir.verify import verify_fused
from tf_autofuse.machine import host_machine

MACHINE = host_machine()
REGIONS = {name: (r.fused, r.dims) for name, r in regions.all_regions().items()}
CASES = dict(REGIONS, **graphs.all_graphs())


def sources_of_cases():
    """Every case's sources, by name; the graphs are verified."""
    found = {}
    for name, (fused, _) in CASES.items():
        verify_fused(fused)
        found[name] = HOST.generate(fused, HOST.schedule(fused, MACHINE), MACHINE, None)
    return found


@pytest.fixture(scope="session")
def kernels(build_settings):
    """Every case's binary, by name."""
    sources = list(sources_of_cases().values())
    settings = BuildSettings(cache_dir=build_settings.cache_dir, extra_flags=("-Wall", "-Wextra", "-Werror"))
    results = dict(zip(CASES, build_kernels(sources, settings)))
    failed = ["%s: %s\n%s" % (n, r.reason, r.log) for n, r in results.items() if isinstance(r, BuildFailure)]
    assert not failed, "\n".join(failed)
    return results
