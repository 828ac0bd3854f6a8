import logging
import os

import pytest

from tests.build import small
from tf_autofuse import diagnostics
from tf_autofuse.build import kernels, storage


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A small npu_kernels tree that build uses instead of the project's."""
    folder = small.npu_kernels(tmp_path / "npu_kernels")
    monkeypatch.setattr(kernels, "npu_kernels_dir", lambda: folder)
    monkeypatch.delenv("AUTOFUSE_STRICT", raising=False)
    monkeypatch.setattr(storage, "_temporary", storage._Temporary())
    diagnostics.forget()
    yield folder
    if storage._temporary.folder is not None:
        storage._temporary.remove(storage._temporary.folder, os.getpid())


@pytest.fixture
def warnings(caplog):
    """The lines that the user has been warned with so far."""
    return lambda: [
        r.getMessage() for r in caplog.records if r.name == "tf_autofuse" and r.levelno >= logging.WARNING
    ]
