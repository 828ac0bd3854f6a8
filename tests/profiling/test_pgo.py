"""PGO: what is measured, that the fastest is kept and used, once a kernel, in later processes too."""
import json
import os
import shutil
from dataclasses import replace

import numpy as np
import pytest

from tests.codegen import families, regions
from tf_autofuse import diagnostics, kernel_store
from tf_autofuse.build.kernels import BuildSettings, build_kernels
from tf_autofuse.codegen.abi import AutofusePin
from tf_autofuse.codegen.ascendc.generate import generate
from tf_autofuse.codegen.targets import target_named
from tf_autofuse.config import Config
from tf_autofuse.lowering.bodies import Body
from tf_autofuse.machine import machine_for
from tf_autofuse.profiling import pgo
from tf_autofuse.runtime import registry
from tf_autofuse.runtime.library import KernelError
from tf_autofuse.schedule.schedule import schedule
from tf_autofuse.symbolic.guards import InputDim, SizeVar
from tf_autofuse.tiling import candidates as candidates_module
from tf_autofuse.tiling.candidates import CORE_SELECT, PRUNING, candidates, steps
from tf_autofuse.tiling.model import build_model
from tf_autofuse.tiling.solve import Solver

pytestmark = pytest.mark.once  # the kernels are C++, built by whatever Python
MACHINE = machine_for("")
CONFIG = Config(enable_pgo=True)


class Kernel:
    def __init__(self, name, fused, built, folder):
        """built: it in the run's cache; the copy in `folder` has neither plans nor a record yet."""
        self.fused = fused
        self.impls = [i for g in fused.graphs for i in schedule(g, MACHINE)]
        path = str(folder / (name + ".so"))
        shutil.copy(built.library, path)
        self.binary = replace(built, library=path)
        self.library = registry.library_of(self.binary, fused)

    def tune(self, dims, config=CONFIG, measure=None):
        return pgo.tune(self.library, self.fused, self.impls, dims, MACHINE, config, measure)


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    """fresh(name): a kernel that nothing was measured of, 'pointwise' or 'softmax'."""
    settings = BuildSettings(
        cache_dir=os.environ.get("AUTOFUSE_CACHE_DIR") or str(tmp_path_factory.mktemp("cache")))
    graphs = {"pointwise": regions.GOLDEN["symbolic"]().fused,
              "softmax": families.families()["softmax"].fused}
    sources = [generate(f, [i for g in f.graphs for i in schedule(g, MACHINE)], MACHINE, CONFIG)
               for f in graphs.values()]
    built = dict(zip(graphs, build_kernels(sources, settings)))
    return lambda name: Kernel(name, graphs[name], built[name], tmp_path_factory.mktemp("kernel"))


@pytest.fixture(scope="module")
def made(fresh):
    return {name: fresh(name) for name in ("pointwise", "softmax")}


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Each candidate runs on the twin."""
    monkeypatch.setattr(candidates_module, "MOST_CANDIDATES", 5)


def test_steps_double_up_to_the_largest():
    assert list(steps(40, 16)) == [1, 2, 4, 8, 16, 32, 40]
    assert list(steps(10, 2)) == [1, 2, 4, 6, 8, 10]
    assert list(steps(1, 16)) == [1]
    assert list(steps(20, 1, 8)) == [8, 16, 20]


def rows(n):
    """Dims of the pointwise kernel's inputs."""
    return [(n, 128), (n, 1)]


def problem(name="public_example"):
    fused = regions.GOLDEN[name]().fused
    impls = schedule(fused.graphs[0], MACHINE)
    return Solver([build_model(i) for i in impls], [v.name for v in fused.sizes])


def test_candidates_are_legal_distinct_and_in_the_models_order(monkeypatch):
    for way in (CORE_SELECT, PRUNING):
        found = candidates(problem(), {}, *MACHINE.launch_limits, way, 16)
        assert 2 <= len(found) <= candidates_module.MOST_CANDIDATES
        assert len({c[:3] for c in found}) == len(found)
        costs = [c.modelled for c in found]
        assert costs == sorted(costs)
        if way == PRUNING:
            assert costs[-1] <= candidates_module.PRUNED * costs[0]
    monkeypatch.setattr(candidates_module, "MOST_CANDIDATES", 24)
    fine = candidates(problem(), {}, *MACHINE.launch_limits, CORE_SELECT, 1)
    coarse = candidates(problem(), {}, *MACHINE.launch_limits, CORE_SELECT, 16)
    assert len(fine) > len(coarse) and {1, 2, 4} <= {c.cores for c in coarse}


def plan_of(kernel, sizes):
    return bytes(kernel.library.tiling(sizes, *MACHINE.launch_limits).data)


def test_the_fastest_is_kept_and_measured_once(made):
    kernel = made["pointwise"]
    dims = rows(96)
    sizes = kernel.library.shape(dims).sizes
    tuned = kernel.tune(dims)
    assert tuned.fresh and len(tuned.best) <= CONFIG.pgo_topn
    assert tuned.best[0].time <= tuned.solved
    assert [m.time for m in tuned.best] == sorted(m.time for m in tuned.best)
    assert all(len({pin[0] for pin in m.pins}) == len(m.pins) for m in tuned.best)
    pinned = kernel.library.tiling_pinned(sizes, *MACHINE.launch_limits,
                                          [AutofusePin(*p) for p in tuned.best[0].pins])
    assert plan_of(kernel, sizes) == bytes(pinned.data)

    def not_again(plan):
        raise AssertionError("it was measured before")

    known = kernel.tune(dims, measure=not_again)
    assert not known.fresh and known == tuned._replace(fresh=False)
    with pytest.raises(AssertionError, match="before"):
        kernel.tune(dims, Config(enable_pgo=True, pgo_algo="pruning"), not_again)


def test_what_measures_decides(made):
    """A measure that likes what the model does not: the choice follows the measure."""
    kernel = made["pointwise"]
    dims = rows(1024)
    sizes = kernel.library.shape(dims).sizes
    solved = kernel.library.tiling(sizes, *MACHINE.launch_limits).block_dim
    tuned = kernel.tune(dims, Config(enable_pgo=True, pgo_topn=0),
                        lambda plan: 1.0 + (plan.block_dim == solved))
    assert tuned.best[0].time == 1.0 < tuned.solved
    assert kernel.library.tiling(sizes, *MACHINE.launch_limits).block_dim != solved
    assert len(tuned.best) == 6 > CONFIG.pgo_topn

    def broken(plan):
        raise KernelError("no")

    with pytest.raises(KernelError):
        kernel.tune(rows(1025), measure=broken)


def test_a_kernel_of_several_nests_still_computes_the_same(made):
    kernel = made["softmax"]
    dims = families.families()["softmax"].dims[0]
    inputs = [np.random.RandomState(0).randn(*d).astype(io.dtype.numpy)
              for d, io in zip(dims, kernel.fused.inputs)]
    before, _ = registry.run(kernel.binary, kernel.fused, inputs, MACHINE)
    tuned = kernel.tune(dims)
    assert tuned.best[0].time <= tuned.solved
    after, _ = registry.run(kernel.binary, kernel.fused, inputs, MACHINE)
    for a, b in zip(before, after):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_a_damaged_record_is_made_anew(made, caplog):
    diagnostics.forget()
    kernel = made["softmax"]
    dims = families.families()["softmax"].dims[0]
    kernel.tune(dims)
    path = kernel.binary.library + ".pgo.json"
    with open(path, "w") as stream:
        stream.write("{ not json")
    assert kernel.tune(dims).fresh
    assert kernel.tune(dims).fresh is False
    assert sum("can't be read" in r.getMessage() for r in caplog.records) == 1
    assert json.load(open(path))["measured"]


def test_dims_as_first_seen():
    fused = regions.GOLDEN["symbolic"]().fused
    assert pgo.hinted_dims(fused) == rows(7)
    assert pgo.hinted_dims(replace(fused, sizes=(SizeVar("s0", InputDim(0, 0)),))) is None


def test_an_empty_shape_and_a_refused_one_are_not_measured(made):
    kernel = made["pointwise"]
    assert kernel.tune(rows(0), measure=lambda plan: 1 / 0) is None
    assert kernel.tune([(7, 128), (8, 1)], measure=lambda plan: 1 / 0) is None


def test_shapes_that_a_kernel_has_met_are_measured_when_it_is_found_again(made, monkeypatch):
    kernel = made["pointwise"]
    kernel.library.tiling([333], *MACHINE.launch_limits)
    kernel.library.tiling([334], *MACHINE.launch_limits)
    seen = []
    tune = pgo.tune

    def counted(library, fused, impls, dims, *others):
        seen.append(dims)
        return tune(library, fused, impls, dims, *others)

    monkeypatch.setattr(pgo, "tune", counted)
    for _ in range(2):
        pgo.tune_asked(pgo.Subject(kernel.library), kernel.fused, lambda: kernel.impls, MACHINE, CONFIG)
    assert rows(334) == seen[0] and rows(333) == seen[1]
    assert len(seen) == len(set(map(str, seen))), "each once"


def test_the_store_measures_what_it_builds_and_what_it_finds(fresh, tmp_path, monkeypatch):
    kernel = fresh("pointwise")
    monkeypatch.setattr(kernel_store, "build_kernels", lambda sources, settings: [kernel.binary])
    fused = kernel.fused
    config = Config(enable_pgo=True, cache_dir=str(tmp_path))
    body = Body(fused)
    kernel_store.forget()
    store = kernel_store.KernelStore(kernel_store.Recipe(target_named("ascend"), MACHINE, config))
    (binary,) = store.make([body], lambda stage, work: work()).values()

    def measured():
        return set(json.load(open(binary.library + pgo.RECORD_SUFFIX))["measured"])

    built = measured()
    assert {name.split("@")[0] for name in built} == {"7"}, "the hint"
    registry.library_of(binary, fused).tiling([50], *MACHINE.launch_limits)
    assert measured() == built
    assert store.find([body])
    assert {name.split("@")[0] for name in measured()} == {"7", "50"}
