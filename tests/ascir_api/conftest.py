"""The API's modules, and a platform that no test leaves behind."""

import pytest

from tf_autofuse.ascir_api import finder, platform


@pytest.fixture(scope="session")
def pyautofuse():
    return finder.extension()


@pytest.fixture(scope="session")
def ascir(pyautofuse):
    return pyautofuse.ascir


@pytest.fixture(autouse=True)
def on_2201(ascir):
    """The first registry, unless a test says otherwise."""
    before = platform.current()
    platform.restore(platform.Platform())
    ascir.utils.set_platform("2201", 40, 196608)
    yield
    platform.restore(before)


@pytest.fixture
def on_5102(ascir, on_2201):
    ascir.utils.set_platform("5102", 0, 0)
