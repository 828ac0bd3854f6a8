"""The table says which settings have an effect now. The code says which it reads. Both must say the same."""
import re
from pathlib import Path

import pytest

from tf_autofuse.config_table import NOW, ROWS

PACKAGE = Path(__file__).resolve().parent.parent / "tf_autofuse"
# They show or check settings, but obey none.
ONLY_SHOWING = {"config.py", "config_table.py", "config_values.py", "config_view.py", "doctor.py"}
# Settings that the code reads through a method of Config, or as a variable.
THROUGH = {
    "skip_node_names_cfg": r"config\.skip_reason\(",
    "graph_run_mode": r"config\.precision_mode_for\(",
    "precision_mode": r"config\.precision_mode_for\(",
    "enhance_precision_blacklist": r"config\.enhances_precision\b",
    "enable_pass": r"config\.families_for\(",
    "disable_pass": r"config\.families_for\(",
    "target": r"choose_target\(config\)",
    "cxx": r"environ\.get\(\"CXX\"",
}


def sources():
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.name not in ONLY_SHOWING:
            yield path, path.read_text(encoding="utf-8")


def readers(row):
    pattern = re.compile(
        THROUGH.get(row.field, r"(?:config|_(?:config_of|read_config)\(context\))\.%s\b" % row.field)
    )
    return [str(path.relative_to(PACKAGE)) for path, text in sources() if pattern.search(text)]


@pytest.mark.parametrize("row", [row for row in ROWS if row.effect == NOW], ids=lambda row: row.field)
def test_what_has_an_effect_now_is_read(row):
    assert readers(row), "%s is said to have an effect, but nothing reads it" % row.key


@pytest.mark.parametrize("row", [row for row in ROWS if row.effect != NOW], ids=lambda row: row.field)
def test_what_comes_later_is_not_read_yet(row):
    assert not readers(row), "%s is read by %s: say so in config_table.py" % (row.key, readers(row))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.field)
def test_values_that_come_later_are_allowed_ones(row):
    assert set(row.later) < set(getattr(row.kind, "words", ()) or "any") and row.default not in row.later
