"""When the native part is loaded: with TensorFlow, whichever is imported first, and never twice."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Stands in for the plugin: these tests are about when it is called.
PLUGIN = """
import sys, types
plugin = types.ModuleType("tf_autofuse.frontend.plugin")
plugin.calls = []
def activate():
    plugin.calls.append(sys.modules["tensorflow"].__name__)
    %s
plugin.activate = activate
sys.modules["tf_autofuse.frontend.plugin"] = plugin
import tf_autofuse.frontend as frontend
frontend.plugin = plugin
"""


def python(program, tmp_path, fails="pass", **environ):
    """Runs the program with a tensorflow of its own, an empty module, so that it starts quickly."""
    fake = tmp_path / "fake" / "tensorflow"
    fake.mkdir(parents=True, exist_ok=True)
    (fake / "__init__.py").write_text(
        "import os\nvalue = 1\nif os.environ.get('BROKEN') == '1': raise ImportError('no')\n"
    )
    (fake / "data.txt").write_text("data")
    done = subprocess.run(
        [sys.executable, "-c", PLUGIN % fails + program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
        env=dict(os.environ, PYTHONPATH="%s:%s" % (fake.parent, ROOT), **environ),
    )
    return done.returncode, done.stdout.split(), done.stderr


def test_import_is_free_of_tensorflow(tmp_path):
    program = (
        "import sys, tf_autofuse; print('tensorflow' in sys.modules, 'numpy' in sys.modules, "
        "'sympy' in sys.modules)"
    )
    assert python(program, tmp_path) == (0, ["False", "False", "False"], "")


@pytest.mark.parametrize(
    "order",
    [
        "import tf_autofuse; import tensorflow",
        "import tensorflow; import tf_autofuse",
        "import tf_autofuse; import tensorflow; import tf_autofuse; import tensorflow",
        "import tf_autofuse; from tf_autofuse.frontend import activation; "
        "activation.install(); activation.install(); import tensorflow",
    ],
)
def test_either_order_activates_once_and_leaves_no_hook(tmp_path, order):
    program = (
        order + "; import sys, tensorflow; print(len(plugin.calls), tensorflow.value, "
        "sum('TensorFlow' in type(f).__name__ for f in sys.meta_path), type(tensorflow.__loader__).__name__, "
        "type(tensorflow.__spec__.loader).__name__)"
    )
    assert python(program, tmp_path) == (0, ["1", "1", "0", "SourceFileLoader", "SourceFileLoader"], "")


def test_looking_for_tensorflow_is_not_importing_it(tmp_path):
    program = (
        "import tf_autofuse, importlib.util as u, pkgutil\n"
        "print(u.find_spec('tensorflow').name, len(plugin.calls), u.find_spec('no_such_module'))\n"
        "import tensorflow; print(len(plugin.calls), pkgutil.get_data('tensorflow', 'data.txt').decode())"
    )
    assert python(program, tmp_path)[1] == ["tensorflow", "0", "None", "1", "data"]


def test_a_failing_import_of_tensorflow_fails_as_ever_and_may_be_tried_again(tmp_path):
    program = (
        "import tf_autofuse, os\n"
        "try:\n    import tensorflow\nexcept ImportError as e:\n    print(e, len(plugin.calls))\n"
        "os.environ['BROKEN'] = '0'; import tensorflow; print(tensorflow.value, len(plugin.calls))"
    )
    assert python(program, tmp_path, BROKEN="1") == (0, ["no", "0", "1", "1"], "")


def test_a_failure_is_one_warning_and_tensorflow_works(tmp_path):
    program = "import tf_autofuse, tensorflow; print(tensorflow.value)"
    code, out, err = python(program, tmp_path, fails="raise ImportError('undefined symbol')")
    assert (code, out) == (0, ["1"])
    assert err.count("\n") == 1 and "undefined symbol" in err and "tf_autofuse doctor" in err


def test_strict_mode_makes_the_failure_an_error(tmp_path):
    code, out, err = python(
        "import tf_autofuse, tensorflow",
        tmp_path,
        fails="raise ImportError('undefined symbol')",
        AUTOFUSE_STRICT="1",
    )
    assert code == 1 and "StrictError" in err


def test_without_tensorflow_its_absence_is_the_usual_error(tmp_path):
    program = (
        "import tf_autofuse, sys; "
        "sys.path[:] = [p for p in sys.path if 'site-packages' not in p and 'fake' not in p]"
        "\ntry:\n    import tensorflow\nexcept ModuleNotFoundError as e:\n    print(e)"
    )
    assert python(program, tmp_path)[1] == ["No", "module", "named", "'tensorflow'"]
