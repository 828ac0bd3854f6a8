"""docs/ops.md says what the table says."""
import dataclasses
from pathlib import Path

from tf_autofuse.ops import document
from tf_autofuse.ops.table import ASC_OPS, TF_OPS

DOC = Path(__file__).resolve().parents[2] / "docs" / "ops.md"


def rows(text):
    return [[c.strip() for c in line.replace("\\|", "/").strip("|").split("|")] for line in text.splitlines()
            if line.startswith("| ")]


def test_the_committed_document_is_current():
    assert DOC.read_text() == document.render(), "python -m tf_autofuse docs ops rewrites it"


def test_every_row_is_there_once_with_as_many_cells_as_its_head():
    text = document.render()
    tables = text.split("## ")
    ops, host, left, casts, ascir = (rows(t) for t in tables[1:6])
    assert [r[0] for r in ops[2:]] == sorted(set(TF_OPS) - {"Cast"})
    assert [r[0] for r in ascir[2:]] == sorted(ASC_OPS)
    assert {r[0] for r in host[2:]} < set(TF_OPS) and "ResourceGather" in {r[0] for r in host[2:]}
    assert [r[1] for r in left[2:]] == [row.why for row in document.LEFT]
    for table in (ops, host, left, casts, ascir):
        assert {len(r) for r in table} == {len(table[0])}


def test_every_number_in_a_cell_has_its_reason():
    text = document.render()
    numbers = {c for r in rows(text.split("## ")[1])[2:] for c in r[1:14] if c.isdigit()}
    reasons = text[text.index("Reasons:"):text.index("## TensorFlow ops on the host")]
    assert numbers == {line.split(".")[0] for line in reasons.splitlines() if line[:1].isdigit()}


def test_a_changed_row_changes_the_document(monkeypatch):
    before = document.render()
    monkeypatch.setitem(document.TF_OPS, "Abs", dataclasses.replace(TF_OPS["Abs"], meaning="?"))
    assert document.render() != before
