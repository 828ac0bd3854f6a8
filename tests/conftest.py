"""What every test room shares: which rooms need TensorFlow, and golden files.

tests/differential, tests/frontend and tests/models need TensorFlow; everything else runs without it, on
Python 3.7 to 3.11 (a single module elsewhere that compares with TensorFlow begins with
pytest.importorskip("tensorflow")).
"""
import difflib
import importlib.util
import os
import pathlib

import pytest

#: Sessions in tests wait for their kernels, however long that takes, unless a test says otherwise.
os.environ.setdefault("AUTOFUSE_BUILD", "sync")

TF_ROOMS = ("differential", "frontend", "models")
HERE = pathlib.Path(__file__).resolve().parent

collect_ignore = [] if importlib.util.find_spec("tensorflow") else list(TF_ROOMS)


def pytest_addoption(parser):
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="rewrite golden files with what the tests produce (also: AUTOFUSE_UPDATE_GOLDEN=1)",
    )


def pytest_collection_modifyitems(items):
    for item in items:
        path = pathlib.Path(str(item.fspath)).resolve()
        if HERE in path.parents and path.relative_to(HERE).parts[0] in TF_ROOMS:
            item.add_marker(pytest.mark.tensorflow)


@pytest.fixture
def golden(request):
    """golden("name.txt", text) compares text with the file golden/name.txt beside the test module."""
    folder = pathlib.Path(str(request.fspath)).parent / "golden"
    update = (
        request.config.getoption("--update-golden") or os.environ.get("AUTOFUSE_UPDATE_GOLDEN", "0") == "1"
    )

    def check(name: str, text: str) -> None:
        path = folder / name
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
            return
        if not path.exists():
            pytest.fail("golden file %s is missing; run pytest --update-golden and review it" % path)
        expected = path.read_bytes().decode()
        if text != expected:
            pytest.fail(
                "differs from %s (pytest --update-golden rewrites it):\n%s"
                % (
                    path,
                    "".join(
                        difflib.unified_diff(
                            expected.splitlines(True), text.splitlines(True), "golden", "now"
                        )
                    ),
                ),
                pytrace=False,
            )

    return check
