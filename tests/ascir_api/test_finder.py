"""Section 1 of the API: import paths, in processes of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.once


def python(code, *path):
    """What a fresh interpreter prints; its path: the checkout, then `path`."""
    environ = dict(os.environ, PYTHONPATH=os.pathsep.join(map(str, (ROOT,) + path)))
    done = subprocess.run(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        universal_newlines=True,
        env=environ,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout.strip()


INSTALL = "from tf_autofuse import ascir_api; ascir_api.install(); ascir_api.install()\n"


@pytest.mark.parametrize(
    "code",
    [
        "from autofuse.pyautofuse import ascir, Autofuser, AutofuserOptions, Schedule, CodeGen; "
        "from ascir import Max, Min, Mod",
        "import pyautofuse, sys; from ascir import Max; from autofuse.pyautofuse import ascir; "
        "assert sys.modules['ascir'] is ascir is pyautofuse.ascir",
        "import autofuse.ascir_api as f, sys; f.Data, f.ShiftedChebyshevPolynomialT; "
        "assert 'ascir' not in sys.modules",
        "import autofuse.pyautofuse, pyautofuse; assert autofuse.pyautofuse is pyautofuse",
        "import pyautofuse, autofuse; autofuse.pyautofuse.ascir.HintGraph",
    ],
)
def test_imports(code):
    assert python(INSTALL + code + "; print('fine')") == "fine"


def test_nothing_without_install():
    for name in ("autofuse", "pyautofuse", "ascir"):
        code = "import tf_autofuse, importlib.util; print(importlib.util.find_spec(%r))" % name
        assert python(code) == "None"


@pytest.mark.parametrize("name", ["ascir.ops", "ascir.utils", "autofuse.other"])
def test_other_modules_stay_missing(name):
    code = "import autofuse.pyautofuse\ntry:\n import %s\nexcept ImportError: print('missing')" % name
    assert python(INSTALL + code) == "missing"


def test_a_real_package_is_never_shadowed(tmp_path):
    for name in ("autofuse", "ascir", "pyautofuse"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("real = True\n")
    code = """
import autofuse, pyautofuse, ascir
assert autofuse.real and pyautofuse.real and ascir.real
try:
    import autofuse.pyautofuse
except ImportError:
    print("real ones stay")
"""
    assert python(INSTALL + code, tmp_path) == "real ones stay"


def test_a_real_ascir_beside_our_extension(tmp_path):
    (tmp_path / "ascir.py").write_text("real = True\n")
    assert python(INSTALL + "import pyautofuse, ascir; print(ascir.real)", tmp_path) == "True"


def test_what_the_modules_hold(pyautofuse, ascir):
    names = {n for n in vars(ascir) if not n.startswith("_")}
    assert names == {
        "SizeExpr",
        "Axis",
        "Operator",
        "OpsOperatorOutput",
        "AscNodeAttr",
        "ApiInfo",
        "SchedInfo",
        "HintGraph",
        "HintComputeGraph",
        "FusedGraph",
        "ShapeInfo",
        "Max",
        "Min",
        "Mod",
        "dtypes",
        "ops",
        "utils",
    }
    assert {n for n in vars(ascir.utils) if not n.startswith("_")} == {
        "debug_str",
        "dump",
        "deserialize",
        "duration_record",
        "report_durations",
        "set_platform",
    }
    assert {n for n in vars(pyautofuse) if not n.startswith("_")} == {
        "ascir",
        "Autofuser",
        "AutofuserOptions",
        "Schedule",
        "CodeGen",
        "run",
        "evaluate",
    }
