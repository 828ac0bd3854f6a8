"""Tiling's analytic model and the simulator tell the same time; helpers cost what their instructions cost."""
import sys

import pytest

from bench import model_agreement
from tests.ops import ascend_forms
from tf_autofuse.tiling.helper_costs import HELPERS

sys.path.insert(0, str(model_agreement.ROOT / "scripts"))
import derive_helper_costs  # noqa: E402

pytestmark = pytest.mark.once  # the kernels are C++, built by whatever Python
SOME = ("Abs Exp", "column", "softmax")


@pytest.fixture(scope="module")
def found():
    kernels = {name: model_agreement.KERNELS[name] for name in SOME}
    return model_agreement.cases(kernels, ((7, 129), (192, 128), (333, 77)))


def test_within_a_fifth(found):
    """`python -m bench model_agreement` says so of 18 kernels and 12 shapes."""
    assert len(found) == 9
    for case in found:
        assert case.analytic == pytest.approx(case.simulated, rel=0.2), case


def test_both_price_the_same_work(found):
    """With pipes that never wait, the published objective is what the simulator adds up from the trace."""
    for case in found:
        assert case.published == pytest.approx(case.overlapped, rel=0.1), case
        assert case.simulated >= case.overlapped


def test_every_helper_has_a_derived_cost():
    forms = derive_helper_costs.helper_forms()
    assert {derive_helper_costs.key_of(f) for f in forms} == set(HELPERS)
    assert all(k > 0 and b >= 0 for k, b in HELPERS.values())


def test_derived_costs_are_those_of_the_helpers_instructions():
    chosen = (("Tanh", "float32"), ("Ge", "int32"), ("Cast", "float32->int8"))
    forms = [f for f in derive_helper_costs.helper_forms() if derive_helper_costs.key_of(f) in chosen]
    run = ascend_forms.library(list(ascend_forms.forms()))
    for form in forms:
        k, b = derive_helper_costs.line(run, form)
        assert HELPERS[derive_helper_costs.key_of(form)] == pytest.approx((k, b), rel=2e-3)
    assert len(forms) == 3
