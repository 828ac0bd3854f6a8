"""Generated documents are what their tables say now."""
import pytest

from tf_autofuse import documents
from tf_autofuse.config_table import NPU_ONLY, ROWS


@pytest.mark.parametrize("name", sorted(documents.DOCUMENTS))
def test_documents_are_up_to_date(name):
    document = documents.DOCUMENTS[name]
    path = documents.docs_dir() / document.file
    assert path.read_text(encoding="utf-8") == document.text(), "run `make docs`"


def test_every_setting_is_in_the_document():
    text = documents.DOCUMENTS["flags"].text()
    for row in ROWS:
        assert "| `%s`" % row.key in text and row.meaning.replace("|", "\\|") in text
    for name in NPU_ONLY:
        assert "`%s`" % name in text


def test_only_what_has_changed_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(documents, "docs_dir", lambda: tmp_path)
    assert {path.name for path in documents.write_all()} == {d.file for d in documents.DOCUMENTS.values()}
    assert documents.write_all() == []
    (tmp_path / "flags.md").write_text("old")
    assert [path.name for path in documents.write_all()] == ["flags.md"]
