"""The commands that need neither TensorFlow nor a script; tests/frontend/test_script.py has the others."""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tf_autofuse import __version__, cli, documents
from tf_autofuse.config_table import ROWS

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def command(monkeypatch, capsys, tmp_path):
    """command(*arguments, **environ) -> (exit code, stdout, stderr) of one command line in this process."""
    monkeypatch.setenv("AUTOFUSE_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("AUTOFUSE_FLAGS", "AUTOFUSE_DFX_FLAGS", "AUTOFUSE_TARGET", "AUTOFUSE_STRICT"):
        monkeypatch.delenv(name, raising=False)

    def call(*arguments, **environ):
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(SystemExit) as end:
            cli.main(list(arguments))
        out, err = capsys.readouterr()
        return end.value.code, out, err

    return call


def test_version(command):
    assert command("version") == (0, __version__ + "\n", "")
    assert command("--version")[1].strip().endswith(__version__)


@pytest.mark.parametrize(
    "arguments,told",
    [
        (["confg"], "did you mean config?"),
        (["run", "nosuch.py"], "nosuch.py can't be read"),
        (["nosuch.py"], "nosuch.py can't be read"),
        (["config", "--jsno"], "--json"),
        (["run"], "SCRIPT"),
        (["compare", "--modle", "analytic", "x.py"], "no option --modle (did you mean --model?)"),
        (["compare", "--modle=analytic", "x.py"], "no option --modle (did you mean --model?)"),
        (["explain", "-x", "x.py"], "explain has no option -x; its options are: --help"),
        (["docs"], "There are: flags"),
        (["docs", "flgs"], "did you mean flags?"),
        (["cache", "gc", "--max-size", "lots"], "500M or 2G"),
        (["cache", "lss"], "lss"),
    ],
)
def test_a_mistake_ends_with_code_2_and_advice(command, arguments, told):
    if sys.version_info[:2] != (3, 7) and "nosuch.py" in arguments:
        told = "Python 3.7"
    code, out, err = command(*arguments)
    assert code == 2 and told in err and "Traceback" not in err


def test_config_prints_every_value_with_its_origin_and_the_misspelt_flag(command):
    code, out, err = command(
        "config", AUTOFUSE_FLAGS="--enable_autofuse=true;--max_fusoin_size=3", AUTOFUSE_TARGET="ascend"
    )
    assert code == 0
    cells = {
        line.split("│")[1].strip(): [cell.strip() for cell in line.split("│")[2:4]]
        for line in out.splitlines()
        if line.startswith("│")
    }
    assert set(cells) == {row.key for row in ROWS}
    assert cells["enable_autofuse"] == ["true", "AUTOFUSE_FLAGS"]
    assert cells["max_fusion_size"] == ["64", "default"]
    assert cells["AUTOFUSE_TARGET"] == ["ascend", "AUTOFUSE_TARGET"]
    assert re.search(r"error: .*max_fusoin_size.*did you mean max_fusion_size\?", out)


def test_config_as_json(command):
    code, out, err = command(
        "config", "--json", AUTOFUSE_FLAGS="autofuse_enable_pass=reduce;max_fusion_size=x"
    )
    told = json.loads(out)
    assert told["settings"]["autofuse_enable_pass"] == {
        "field": "enable_pass",
        "value": ["reduce"],
        "origin": "AUTOFUSE_FLAGS",
        "place": "AUTOFUSE_FLAGS",
        "effect": "now",
    }
    assert [(p["name"], p["given"], p["used"]) for p in told["problems"] if p["kind"] == "value"] == [
        ("max_fusion_size", "x", "64")
    ]


def test_docs_prints_the_document(command):
    assert command("docs", "flags") == (0, documents.DOCUMENTS["flags"].text(), "")


def test_cache_commands(command, tmp_path):
    pytest.importorskip("tf_autofuse.build.cache")
    code, out, err = command("cache", "ls")
    assert code == 0 and out.startswith("0 entries, 0 bytes\n") and "does not exist yet" in out
    assert json.loads(command("cache", "ls", "--json")[1]) == []
    from tf_autofuse.build.cache import Cache, list_entries
    from tf_autofuse.build.storage import open_storage

    store = Cache(open_storage(str(tmp_path / "cache"), os.environ))

    def fill(folder):
        (folder / "kernel.so").write_bytes(b"x" * 1000)
        return {"name": "autofuse_pointwise_0_Abs"}

    for key in ("aa" + "0" * 30, "bb" + "0" * 30):
        store.find_or_make("kernel", key, fill)
    code, out, err = command("cache", "ls")
    assert code == 0 and out.count("autofuse_pointwise_0_Abs") == 2 and "2 entries" in out
    assert {entry["key"][:2] for entry in json.loads(command("cache", "ls", "--json")[1])} == {"aa", "bb"}
    size = max(entry.bytes for entry in list_entries(str(tmp_path / "cache")))
    assert command("cache", "gc", "--max-size", str(size))[1].startswith("removed 1 entries")
    assert command("cache", "gc")[1].startswith("removed 0 entries")
    assert command("cache", "clear")[1].startswith("removed 1 entries")
    assert not list_entries(str(tmp_path / "cache"))


def test_python_m_is_the_same_command_and_a_closed_pipe_is_quiet():
    done = subprocess.run(
        [sys.executable, "-m", "tf_autofuse", "confg"], cwd=str(ROOT), stderr=subprocess.PIPE
    )
    assert done.returncode == 2 and b"did you mean config?" in done.stderr
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "tf_autofuse", "docs", "flags"],
        cwd=str(ROOT),
        stdout=writer,
        stderr=subprocess.PIPE,
    )
    os.close(writer)
    assert b"Traceback" not in done.stderr and b"Exception ignored" not in done.stderr
