"""What the user is told, how often, and when it is an error."""
import logging

import pytest

from tf_autofuse import diagnostics
from tf_autofuse.config import Config


@pytest.fixture(autouse=True)
def silence(monkeypatch):
    monkeypatch.delenv("AUTOFUSE_STRICT", raising=False)
    diagnostics.forget()
    yield
    diagnostics.forget()
    diagnostics.logger.setLevel(logging.NOTSET)


def test_a_warning_names_region_reason_and_remedy_on_one_line_once(caplog):
    for _ in range(3):
        diagnostics.warn_region(
            "autofuse_pointwise_0_Abs", "the compiler failed:\n  error", "install g++\nor set CXX."
        )
    assert [record.getMessage() for record in caplog.records] == [
        "tf_autofuse: autofuse_pointwise_0_Abs was not fused: the compiler failed: error. "
        "Install g++ or set CXX."
    ]
    diagnostics.warn_region("autofuse_pointwise_1_Abs", "the compiler failed", "install g++")
    diagnostics.warn_region("autofuse_pointwise_0_Abs", "the disk is full", "make room")
    assert len(caplog.records) == 3


@pytest.mark.parametrize("value,is_strict", [("1", True), ("true", True), ("0", False), ("", False)])
def test_strict_mode_raises_every_time(monkeypatch, caplog, value, is_strict):
    monkeypatch.setenv("AUTOFUSE_STRICT", value)
    for _ in range(2):
        if is_strict:
            with pytest.raises(diagnostics.StrictError, match="no compiler. Install one."):
                diagnostics.warn_once("key", "no compiler", "install one")
        else:
            diagnostics.warn_once("key", "no compiler", "install one")
    assert len(caplog.records) == (0 if is_strict else 1)


def test_config_problems_are_told_once_and_what_comes_later_in_one_line(caplog):
    config = Config.from_sources(
        {"AUTOFUSE_FLAGS": "enable_autofues=true;--experimental_enable_jit_executor_v2=true"},
        {"use_off_line": True},
    )
    for _ in range(2):
        diagnostics.report_problems(config)
    first, second = [record.getMessage() for record in caplog.records]
    assert "enable_autofues" in first and "did you mean enable_autofuse?" in first
    assert "experimental_enable_jit_executor_v2=true" in second
    diagnostics.report_problems(Config.from_sources({"AUTOFUSE_FLAGS": "enable_autofuss=true"}))
    assert len(caplog.records) == 3


def test_what_has_no_effect_is_told_only_on_request(caplog):
    caplog.set_level(logging.INFO, "tf_autofuse")
    diagnostics.report_problems(Config.from_sources({}, {"use_off_line": True}))
    assert not caplog.records
    diagnostics.report_problems(Config.from_sources({"AUTOFUSE_VERBOSE": "1"}, {"use_off_line": True}))
    assert [record.levelname for record in caplog.records] == ["INFO"]


def test_strict_mode_refuses_bad_settings_but_not_notes(caplog):
    strict = {
        "AUTOFUSE_STRICT": "1",
        "AUTOFUSE_FLAGS": "--codegen_compile_debug=true;--experimental_enable_jit_executor_v2=true",
    }
    diagnostics.report_problems(Config.from_sources(strict))
    assert len(caplog.records) == 2
    for bad in ("enable_autofues=true", "max_fusion_size=many"):
        config = Config.from_sources(dict(strict, AUTOFUSE_FLAGS=bad))
        for _ in range(2):
            with pytest.raises(diagnostics.StrictError, match=bad.split("=")[0]):
                diagnostics.report_problems(config)


@pytest.mark.parametrize("verbose,heard", [("0", []), ("1", ["graph"]), ("2", ["graph", "region"])])
def test_verbosity(caplog, verbose, heard):
    config = Config.from_sources({"AUTOFUSE_VERBOSE": verbose})
    diagnostics.inform(1, config, "graph")
    diagnostics.inform(2, config, "region")
    assert [record.getMessage() for record in caplog.records] == ["tf_autofuse: " + text for text in heard]
