"""Puts measured tables into the documents, between the marks that name them."""
from pathlib import Path
from typing import List, Sequence, Tuple

ROOT = Path(__file__).resolve().parent.parent


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> List[str]:
    """The lines of a Markdown table."""
    return ["| %s |" % " | ".join(cells) for cells in [head, ["---"] * len(head), *rows]]


def _parts(path: Path, name: str) -> Tuple[str, str, str]:
    """The text up to the end of the mark `<!-- begin name -->`, that between the marks, and the rest."""
    text = path.read_text(encoding="utf-8")
    begin, end = "<!-- begin %s -->" % name, "<!-- end %s -->" % name
    before, found, rest = text.partition(begin)
    between, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError("%s has no marks %s ... %s" % (path.name, begin, end))
    return before + begin, between, end + after


def lines(path: Path, name: str) -> List[str]:
    """The lines between the marks. Raises ValueError where the document lacks the marks."""
    return _parts(path, name)[1].strip("\n").splitlines()


def replace(path: Path, name: str, lines: Sequence[str]) -> None:
    """The text between `<!-- begin name -->` and `<!-- end name -->` becomes these lines. Raises ValueError
    where the document lacks the marks.
    """
    before, _, after = _parts(path, name)
    path.write_text("%s\n%s\n%s" % (before, "\n".join(lines), after), encoding="utf-8")
