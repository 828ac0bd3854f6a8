"""What `explain` prints of records, from stages that are told and not run."""
import io
from types import SimpleNamespace

from rich.console import Console

from tf_autofuse.fusion.reasons import CONSTANT, LIFTED, NO_ROW
from tf_autofuse.lowering.plan import Decision
from tf_autofuse.report import explain


def shown(decisions, compiled=(), pending=(), failures=(), dropped=()):
    plan = SimpleNamespace(decisions=decisions, refusals=())
    compilation = SimpleNamespace(
        plan=plan, compiled=compiled, pending=pending, failures=failures, timings=(("lowering", 0.001),)
    )
    record = SimpleNamespace(
        graph="graph", node_count=3, fetches=("y:0",), compilation=compilation, dropped=dropped, seconds=0.002
    )
    out = io.StringIO()
    explain.render([record], Console(file=out, width=200))
    return out.getvalue()


def test_a_graph_of_which_nothing_was_fused_says_why():
    decisions = (
        Decision(0, "x", "_Arg", -1, CONSTANT.name, "It is an argument."),
        Decision(1, "product", "MatMul", -1, NO_ROW.name, "MatMul [a, b] stays."),
        Decision(2, "other", "MatMul", -1, NO_ROW.name, "MatMul [a, b] stays."),
        Decision(3, "act", "Relu", -1, LIFTED.name, "It is alone."),
    )
    text = shown(decisions)
    first = "Nothing of this graph was fused. Of its 3 nodes 2 have the reason %s: %s; for example: %s"
    assert first % (NO_ROW.name, NO_ROW.text, "MatMul [a, b] stays.") in text
    assert "fused op" not in text and "TF nodes" not in text


def test_a_graph_without_ops_of_its_own():
    assert "It has no ops of its own." in shown((Decision(4, "x", "_Arg", -1, CONSTANT.name, "It is one."),))


def test_what_was_fused_or_waits_has_no_such_line():
    emitted = SimpleNamespace(name="autofuse_pointwise_0_Abs", origin=("a", "b"))
    made = SimpleNamespace(
        region=SimpleNamespace(emitted=emitted, name=emitted.name), binary=SimpleNamespace(source_path="k.c")
    )
    done = (Decision(5, "a", "Abs", 0, "", ""),)
    text = shown(done, compiled=(made,))
    assert "Nothing of this graph" not in text and "autofuse_pointwise_0_Abs" in text and "fused op" in text
    text = shown(done, pending=(made,))
    assert "Nothing of this graph" not in text and "not built yet" in text
    text = shown(done, compiled=(made,), dropped=((emitted.name, "no such node"),))
    assert "Nothing of this graph" not in text and "not applied" in text


def test_no_record_says_what_may_be_missing():
    out = io.StringIO()
    explain.render([], Console(file=out, width=200))
    assert "No graph reached the plugin" in out.getvalue()
