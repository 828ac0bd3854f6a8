"""How near the generated solvers come to the best of an exhaustive search, on a few of the kernels of
`python -m bench tiling_quality`."""
import statistics

import pytest

from bench import tiling_quality
from bench.model_agreement import KERNELS

pytestmark = pytest.mark.once  # the tiling functions are C++, built by whatever Python
SOME = ("Abs Exp", "row", "softmax")
SHAPES = ((7, 129), (192, 128), (333, 77), (1024, 256))


@pytest.fixture(scope="module")
def ratios():
    found = tiling_quality.measure({name: KERNELS[name] for name in SOME}, SHAPES, rounds=1)
    assert len(found) == len(SOME) * len(SHAPES) * len(tiling_quality.ALGORITHMS)
    assert all(f.ratio > 0.9999 for f in found), "the search looks at all legal plans"
    return {a: [f.ratio for f in found if f.algorithm == a] for a in tiling_quality.ALGORITHMS}


@pytest.mark.parametrize("algorithm", ["AxesReorder", "AxesReorder, kept", "HighPerf"])
def test_the_solvers_are_near_the_best(ratios, algorithm):
    assert statistics.median(ratios[algorithm]) <= 1.02
    assert max(ratios[algorithm]) <= 1.25


def test_a_solver_that_does_not_search_is_not(ratios):
    """The comparison can tell."""
    assert max(ratios["AxesReorder, level 0"]) > 1.25
    assert ratios["AxesReorder, kept"] == ratios["AxesReorder"]
