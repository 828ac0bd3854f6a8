"""Every code is one of its own, and explain shows it with its text and remedy."""
import io
from types import SimpleNamespace

import pytest
from rich.console import Console

from tf_autofuse.fusion import reasons
from tf_autofuse.lowering.plan import Decision, PairRefusal, Plan, Told
from tf_autofuse.report import explain


def test_codes_have_one_meaning_each():
    codes = [c for c in vars(reasons).values() if isinstance(c, reasons.Code) and c is not reasons.FUSED]
    assert len({c.name for c in codes}) == len({c.text for c in codes}) == len(codes)
    assert set(reasons.ALL_CODES.values()) == set(codes)


@pytest.mark.parametrize("code", sorted(reasons.ALL_CODES))
def test_explain_shows_the_code_with_its_text_and_remedy(code):
    known = reasons.ALL_CODES[code]
    pair = code[:4] in ("NF10", "NF21")
    plan = Plan((), (), lambda: Told(
        () if pair else (Decision(0, "here", "Neg", -1, code, "the particulars"),),
        (PairRefusal("here", "there", code, "the particulars"),) if pair else (),
    ))
    compilation = SimpleNamespace(plan=plan, compiled=(), pending=(), failures=(), timings=())
    record = SimpleNamespace(
        graph="g", node_count=1, fetches=(), compilation=compilation, dropped={}, seconds=0.0
    )
    text = io.StringIO()
    explain.render([record], Console(file=text, width=500))
    for part in (code, known.text, known.remedy, "the particulars", "here"):
        assert part in text.getvalue()
