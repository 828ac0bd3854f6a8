"""Every test here starts with the native module as if never used: no callables, no switches. Afterwards the
plugin has it again, since tests of other rooms in the same process rely on it."""

import pytest


@pytest.fixture
def native():
    module = pytest.importorskip("tf_autofuse.frontend._native")
    clear_hooks(module)
    yield module
    clear_hooks(module)
    from tf_autofuse.frontend import plugin
    plugin.register_again()


def clear_hooks(module):
    for name in ("graph_pass", "wants", "report", "dump_callback", "resolver"):
        getattr(module, "set_" + name)(None)
    for name in ("strict", "dump", "timing"):
        getattr(module, "set_" + name)(False)
    module.set_options({"foreign_npu": False, "allow_remote": False})
    module.reset_stats()


@pytest.fixture(scope="session")
def kernel_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("kernels")
