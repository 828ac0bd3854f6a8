"""scripts/lint.py finds nothing in the project, and finds each kind of fault where there is one."""
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def lint():
    spec = importlib.util.spec_from_file_location("lint", str(ROOT / "scripts" / "lint.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_project_has_no_findings():
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "lint.py")],
        stdout=subprocess.PIPE,
        universal_newlines=True,
    )
    assert done.returncode == 0, done.stdout


def test_every_folder_is_checked(lint):
    files = lint.checked_files()
    for folder in lint.FOLDERS:
        assert any((ROOT / folder) in path.parents for path in files), folder
    assert ROOT / "setup.py" in files


@pytest.mark.parametrize(
    "name, text, finding",
    [
        ("a.py", "x = 1\n" * 601, (601, "the file has more than 600 lines")),
        ("a.py", "# %s\n" % ("x" * 109), (1, "111 columns")),
        ("a.h", "// %s\n" % ("x" * 108), (1, "111 columns")),
        ("a.py", "x = 1 \n", (1, "blanks at the end of the line")),
        ("a.py", "import os\n", (1, "os is imported but not used")),
        ("a.py", "from a import b as c\nb\n", (1, "c is imported but not used")),
    ],
)
def test_a_fault_is_found(lint, tmp_path, name, text, finding):
    path = tmp_path / name
    path.write_text(text)
    assert list(lint.findings(path)) == [finding]


def test_a_syntax_error_is_found(lint, tmp_path):
    path = tmp_path / "a.py"
    path.write_text("def f(:\n")
    ((line, text),) = lint.findings(path)
    assert line == 1 and text.startswith("not Python")


@pytest.mark.parametrize(
    "name, text",
    [
        ("a.py", "# %s\n" % ("x" * 108)),
        ("some_pb2.py", "# %s\n" % ("x" * 300)),
        ("a.py", "import os\nos.getcwd()\n"),
        ("a.py", "import os  # noqa\n"),
        ("__init__.py", "import os\n"),
    ],
)
def test_what_is_right_is_no_finding(lint, tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    assert list(lint.findings(path)) == []
