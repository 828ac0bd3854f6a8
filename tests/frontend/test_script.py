"""Running a user's script, and the npu_bridge that stands in for a missing one.

The scripts run in processes of their own; all but the last few import no TensorFlow, so that they start
quickly.
"""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "demo.py"


@pytest.fixture
def script(tmp_path):
    """script(text, *arguments) -> (exit code, stdout, stderr) under `python -m tf_autofuse`; cwd is another
    folder."""

    def run(text, *arguments, command=(), name="the script.py", **environ):
        path = tmp_path / "scripts" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        elsewhere = tmp_path / "cwd"
        elsewhere.mkdir(exist_ok=True)
        done = subprocess.run(
            [sys.executable, "-m", "tf_autofuse"] + list(command) + [str(path)] + list(arguments),
            cwd=str(elsewhere),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            universal_newlines=True,
            env=dict(os.environ, PYTHONPATH=str(ROOT), AUTOFUSE_FLAGS="", **environ),
        )
        return done.returncode, done.stdout, done.stderr

    run.folder = tmp_path / "scripts"
    return run


@pytest.mark.parametrize("command", [(), ("run",)])
def test_a_script_sees_what_python_would_show_it(script, command):
    text = (
        "import sys, json, __main__\nprint(json.dumps([sys.argv, sys.path[0], __name__, __file__, "
        "__main__.__file__, __spec__ is None, '__doc__' in globals()]))"
    )
    text = text.replace("__spec__ is None", "globals().get('__spec__') is None")
    code, out, err = script(text, "-h", "--flag", "x y", "--help", command=command)
    path = str(script.folder / "the script.py")
    assert (code, err) == (0, "")
    assert json.loads(out) == [
        [path, "-h", "--flag", "x y", "--help"],
        str(script.folder),
        "__main__",
        path,
        path,
        True,
        True,
    ]


@pytest.mark.parametrize(
    "ending,code",
    [
        ("sys.exit(7)", 7),
        ("sys.exit()", 0),
        ("sys.exit('told')", 1),
        ("pass", 0),
        ("os._exit(9)", 9),
        ("raise SystemExit(3)", 3),
    ],
)
def test_exit_codes(script, ending, code):
    assert script("import os, sys\n" + ending)[0] == code


def test_a_traceback_begins_in_the_script(script):
    code, out, err = script("def f():\n    return {}['key']\nf()\n")
    assert code == 1
    assert err.splitlines()[0].startswith("Traceback") and "tf_autofuse" not in err
    assert 'the script.py", line 3' in err.splitlines()[1] and err.splitlines()[-1] == "KeyError: 'key'"


def test_a_syntax_error_names_the_line(script):
    code, out, err = script("x = 1\nx = = 2\n")
    assert code == 1 and "line 2" in err and "SyntaxError" in err


def test_modules_beside_the_script_and_names_at_exit(script):
    script("value = 5", name="beside.py")
    code, out, err = script(
        "import atexit, beside, pickle\nclass C: pass\natexit.register(lambda: print(beside.value, "
        "type(pickle.loads(pickle.dumps(C()))).__name__))"
    )
    assert (code, out, err) == (0, "5 C\n", "")


def test_an_encoding_line_is_obeyed(script):
    path = script.folder
    path.mkdir(exist_ok=True)
    (path / "latin.py").write_bytes("# coding: latin-1\nprint(len('\u00e4'))\n".encode("latin-1"))
    done = subprocess.run(
        [sys.executable, "-m", "tf_autofuse", str(path / "latin.py")], cwd=str(ROOT), stdout=subprocess.PIPE
    )
    assert done.stdout == b"1\n"


def test_an_npu_bridge_beside_the_script_is_not_shadowed(script):
    package = script.folder / "npu_bridge"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "npu_init.py").write_text("mine = 'mine'")
    code, out, err = script(
        "from npu_bridge.npu_init import *\nprint(mine)\ntry:\n    import npu_bridge.other\n"
        "except ImportError as e:\n    print(e)"
    )
    assert (code, out) == (0, "mine\nNo module named 'npu_bridge.other'\n"), err


def test_an_installed_npu_bridge_is_not_shadowed(script, tmp_path):
    package = tmp_path / "site" / "npu_bridge"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("where = 'site'")
    code, out, err = script(
        "import sys; sys.path.append(%r)\nimport npu_bridge; print(npu_bridge.where)" % str(tmp_path / "site")
    )
    assert (code, out) == (0, "site\n"), err


def test_without_the_command_there_is_no_face(script, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", "import tf_autofuse, npu_bridge"],
        stderr=subprocess.PIPE,
        env=dict(os.environ, PYTHONPATH=str(ROOT)),
        cwd=str(tmp_path),
        universal_newlines=True,
    )
    assert "No module named 'npu_bridge'" in done.stderr


def test_modules_of_the_face_refuse_in_words(script):
    code, out, err = script(
        """
import npu_bridge
print('tensorflow' in __import__('sys').modules)
from npu_bridge.estimator import npu_ops
from npu_bridge.estimator.npu.npu_config import NPURunConfig
from npu_bridge.estimator.npu import util
from npu_bridge.hccl import hccl_ops
import npu_bridge.estimator.npu.npu_estimator as npu_estimator
print(hasattr(npu_ops, '__wrapped__'), isinstance(1, NPURunConfig))
def tried(use):
    try:
        use()
        print('went through')
    except ImportError as e:
        print(str(e).split(',')[0])
tried(lambda: npu_ops.dropout(1))
tried(lambda: NPURunConfig())
tried(lambda: type('X', (), {}) and exec('class Mine(NPURunConfig): pass', {'NPURunConfig': NPURunConfig}))
tried(lambda: util.set_value('a', 1))
tried(lambda: npu_estimator.NPUEstimator.train)
""",
        TF_CPP_MIN_LOG_LEVEL="3",
    )
    assert code == 0, err
    lines = out.splitlines()
    assert lines[0] == "False" and lines[1] == "False False"
    assert [line.split(" needs the real npu_bridge")[0] for line in lines[2:]] == [
        "npu_bridge.estimator.npu_ops.dropout",
        "npu_bridge.estimator.npu.npu_config.NPURunConfig",
        "npu_bridge.estimator.npu.npu_config.NPURunConfig",
        "npu_bridge.estimator.npu.util.set_value",
        "npu_bridge.estimator.npu.npu_estimator.NPUEstimator",
    ]


def test_what_npu_init_gives_works():
    from tensorflow.core.protobuf import config_pb2
    from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig

    from tf_autofuse.frontend import npu_init

    names = {}
    for name in npu_init.__all__:
        names[name] = getattr(npu_init, name)
    assert names["RewriterConfig"] is RewriterConfig and names["tf"].__version__.startswith("1.15")
    given = config_pb2.ConfigProto(intra_op_parallelism_threads=3, log_device_placement=True)
    config = names["npu_session_config_init"](given)
    assert config is given and config.intra_op_parallelism_threads == 3
    assert config.allow_soft_placement and not config.log_device_placement
    assert config.graph_options.rewrite_options.remapping == RewriterConfig.OFF
    assert config.graph_options.optimizer_options.global_jit_level == config_pb2.OptimizerOptions.OFF
    assert [entry.name for entry in config.graph_options.rewrite_options.custom_optimizers] == [
        "NpuOptimizer"
    ]
    assert not names["npu_config_proto"]().graph_options.rewrite_options.custom_optimizers
    run_config = names["npu_run_config_init"](names["tf"].estimator.RunConfig(save_checkpoints_steps=7))
    assert run_config.save_checkpoints_steps == 7
    assert run_config.session_config.graph_options.rewrite_options.custom_optimizers[0].name == "NpuOptimizer"
    hooks = [object()]
    assert names["npu_hooks_append"](hooks) is hooks and names["npu_hooks_append"]() == []
    assert (names["get_rank_id"](), names["get_rank_size"](), names["get_rank_size"]("group")) == (0, 1, 1)
    assert set(npu_init.REFUSED) <= set(names)
    for name in npu_init.REFUSED:
        with pytest.raises(ImportError, match=name):
            names[name]()


def test_the_public_example_runs_unmodified(script):
    text = EXAMPLE.read_text()
    assert "from npu_bridge.npu_init import *" in text and "tf_autofuse" not in text
    code, out, err = script(text)
    assert (code, out) == (0, "(192, 128)\n"), err


def test_the_doctor_finds_tensorflow():
    done = subprocess.run(
        [sys.executable, "-m", "tf_autofuse", "doctor", "--json"],
        cwd=str(ROOT),
        stdout=subprocess.PIPE,
        universal_newlines=True,
    )
    found = {finding["name"]: finding for finding in json.loads(done.stdout)}
    assert found["TensorFlow"]["status"] == "ok" and found["TensorFlow"]["text"].startswith("1.15")
    assert found["Python"]["status"] == "ok" and found["npu_bridge"]["status"] == "ok"
    assert not [finding for finding in found.values() if "the check failed" in finding["text"]]
