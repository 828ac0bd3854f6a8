"""Puts measured tables into the documents, between the marks that name them."""
from pathlib import Path
from typing import List, Sequence

ROOT = Path(__file__).resolve().parent.parent


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> List[str]:
    """The lines of a Markdown table."""
    return ["| %s |" % " | ".join(cells) for cells in [head, ["---"] * len(head), *rows]]


def replace(path: Path, name: str, lines: Sequence[str]) -> None:
    """The text between `<!-- begin name -->` and `<!-- end name -->` becomes these lines. Raises ValueError
    where the document lacks the marks.
    """
    text = path.read_text(encoding="utf-8")
    begin, end = "<!-- begin %s -->" % name, "<!-- end %s -->" % name
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError("%s has no marks %s ... %s" % (path.name, begin, end))
    path.write_text("%s%s\n%s\n%s%s" % (before, begin, "\n".join(lines), end, after), encoding="utf-8")
