"""The documents that are made from the project's tables, so that they can't disagree with the code.

`DOCUMENTS` names each with its file below docs/ and the function that gives its text; a test compares file
and text.
"""
import importlib
from pathlib import Path
from typing import Dict, List, NamedTuple


class Document(NamedTuple):
    file: str
    module: str
    function: str

    def text(self) -> str:
        return getattr(importlib.import_module(self.module), self.function)()


DOCUMENTS: Dict[str, Document] = {
    "flags": Document("flags.md", "tf_autofuse.config_view", "flags_document"),
    "op-summary": Document("op-summary.md", "tf_autofuse.profiling.op_summary", "document"),
    "ops": Document("ops.md", "tf_autofuse.ops.document", "render"),
}


def docs_dir() -> Path:
    """docs/ of the checkout. Raises FileNotFoundError where the package is installed without one."""
    folder = Path(__file__).resolve().parent.parent / "docs"
    if not folder.is_dir():
        raise FileNotFoundError(
            "there is no docs folder beside the package: documents are written in a checkout only"
        )
    return folder


def write_all() -> List[Path]:
    """Writes each document whose text has changed; returns their files."""
    changed = []
    for document in DOCUMENTS.values():
        path, text = docs_dir() / document.file, document.text()
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            changed.append(path)
    return changed
