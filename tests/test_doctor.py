"""The doctor: each check can find its problem."""
import json
import sys

import pytest

from tf_autofuse import cli, doctor
from tf_autofuse.config import Config

pytest.importorskip("tf_autofuse.build.toolchain")


def finding(name, findings):
    return next(f for f in findings if f.name == name)


def config(**environ):
    return Config.from_sources(environ)


def test_every_problem_has_a_remedy(monkeypatch):
    for name in ("_tensorflow", "_native"):  # they import TensorFlow: tests/frontend/test_script.py
        monkeypatch.setattr(doctor, name, lambda: doctor.Finding("x", doctor.OK, ""))
    for environ in (
        {},
        {
            "PATH": "/nonexistent",
            "CXX": "/nonexistent/g++",
            "ASCEND_HOME_PATH": "/nonexistent",
            "AUTOFUSE_CACHE_DIR": "/dev/null/x",
            "AUTOFUSE_FLAGS": "enable=1",
        },
    ):
        for found in doctor.examine(environ):
            assert found.status in (doctor.OK, doctor.NOTE, doctor.PROBLEM) and found.text is not None
            assert found.status != doctor.PROBLEM or found.remedy
            assert "the check failed" not in found.text


def test_compiler(tmp_path):
    assert doctor._compiler({"PATH": str(tmp_path)}).status == doctor.PROBLEM
    fake = tmp_path / "g++"
    fake.write_text("#!/bin/sh\necho fake 1.0\n")
    fake.chmod(0o755)
    assert doctor._compiler({"PATH": str(tmp_path)}) == (
        "C++ compiler",
        doctor.OK,
        "%s (fake 1.0)" % fake,
        "",
    )


def test_cache(tmp_path):
    good = {"AUTOFUSE_CACHE_DIR": str(tmp_path / "cache")}
    assert doctor._cache(good, config(**good)).status == doctor.OK
    (tmp_path / "file").write_text("")
    bad = {"AUTOFUSE_CACHE_DIR": str(tmp_path / "file")}
    found = doctor._cache(bad, config(**bad))
    assert found.status == doctor.PROBLEM and str(tmp_path / "file") in found.text and found.remedy


def test_cann(tmp_path, monkeypatch):
    monkeypatch.setattr(doctor, "_CANN_FOLDERS", ())
    assert doctor._cann(config()).status == doctor.NOTE
    assert doctor._cann(config(ASCEND_HOME_PATH=str(tmp_path))).status == doctor.OK
    assert doctor._cann(config(ASCEND_TOOLKIT_HOME=str(tmp_path))).status == doctor.OK
    assert doctor._cann(config(ASCEND_HOME_PATH=str(tmp_path / "x"))).status == doctor.PROBLEM


def test_switch_and_settings():
    assert doctor._switch(config()).status == doctor.NOTE
    assert doctor._switch(config(AUTOFUSE_FLAGS="enable_autofuse=true")).status == doctor.OK
    assert doctor._settings(config()).status == doctor.OK
    assert doctor._settings(config(AUTOFUSE_FLAGS="enable_autofus=true")).status == doctor.PROBLEM
    later = config(AUTOFUSE_FLAGS="experimental_enable_jit_executor_v2=true")
    assert doctor._settings(later).status == doctor.NOTE


@pytest.mark.parametrize(
    "numpy,protobuf,status",
    [
        ("1.19.5", "3.20.3", "ok"),
        ("1.20.0", "3.20.3", "problem"),
        ("1.19.5", "3.21.1", "problem"),
        ("1.19.5", "4.21.1", "problem"),
    ],
)
def test_packages(monkeypatch, numpy, protobuf, status):
    versions = {"numpy": numpy, "google.protobuf": protobuf}
    monkeypatch.setattr(doctor.sys, "version_info", (3, 7, 16))
    monkeypatch.setattr(
        doctor.importlib,
        "import_module",
        lambda name: type(sys)(name) if name not in versions else _versioned(name, versions[name]),
    )
    assert doctor._packages().status == status


def _versioned(name, version):
    module = type(sys)(name)
    module.__version__ = version
    return module


def test_a_broken_check_is_a_finding(monkeypatch):
    def broken():
        raise KeyError("x")

    for name in ("_tensorflow", "_native"):
        monkeypatch.setattr(doctor, name, broken)
    assert finding("TensorFlow", doctor.examine({})).text == "the check failed (KeyError: 'x')"


@pytest.mark.parametrize("status,code", [("ok", 0), ("note", 0), ("problem", 1)])
def test_the_exit_code(monkeypatch, capsys, status, code):
    monkeypatch.setattr(
        doctor, "examine", lambda environ: (doctor.Finding("thing", status, "[text]", "[do] this"),)
    )
    with pytest.raises(SystemExit) as end:
        cli.main(["doctor"])
    assert end.value.code == code
    out = capsys.readouterr().out
    assert status in out and "thing: [text]" in out and "-> [do] this" in out
    with pytest.raises(SystemExit) as end:
        cli.main(["doctor", "--json"])
    assert end.value.code == code
    assert json.loads(capsys.readouterr().out) == [
        {"name": "thing", "status": status, "text": "[text]", "remedy": "[do] this"}
    ]


def test_npu_path(tmp_path, monkeypatch):
    from tf_autofuse.runtime import device

    device.forget()
    assert doctor._npu_path(config()).text.startswith("not active: neither ASCEND_HOME_PATH")
    broken = {"ASCEND_HOME_PATH": str(tmp_path)}
    assert doctor._npu_path(config(AUTOFUSE_TARGET="ascend", **broken)).status == doctor.PROBLEM
    found = doctor._npu_path(config(AUTOFUSE_TARGET="host", **broken))
    assert found.status == doctor.NOTE and "no device compiler" in found.text and "set_env.sh" in found.remedy
    device.forget()
