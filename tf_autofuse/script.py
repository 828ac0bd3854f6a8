"""Runs a user's script as `python script.py` would, with the plugin loaded and behind it the faces for
npu_bridge and for the AscIR Python API.

Holds while the script runs: sys.argv, sys.path[0], `__main__` and `__file__` are as Python itself sets them,
SystemExit keeps its code, and a traceback begins in the script. `__main__` stays the script's afterwards, so
that what it left to run at exit finds its names.
"""
import builtins
import os
import runpy
import sys
import traceback
import types
from typing import Sequence


class CannotRun(Exception):
    """The script can't be read. The message says why and what to do."""


def run_script(path: str, arguments: Sequence[str]) -> None:
    """Runs the script to its end. Raises CannotRun, or SystemExit with the script's code (1 after a
    traceback)."""
    import tf_autofuse  # noqa: F401  the hook that loads the native part with TensorFlow

    if sys.version_info[:2] != (3, 7):
        raise CannotRun(
            "TensorFlow 1.15 needs Python 3.7, this is %d.%d; run the script with the Python 3.7 that "
            "TF-AutoFuse is installed for" % sys.version_info[:2]
        )
    from tf_autofuse import ascir_api
    from tf_autofuse.frontend import npu_face

    if os.path.isdir(path):
        npu_face.install()
        ascir_api.install()
        sys.argv = [path] + list(arguments)
        sys.path[0] = path
        runpy.run_path(path, run_name="__main__")
        return
    try:
        with open(path, "rb") as stream:
            source = stream.read()
    except OSError as error:
        raise CannotRun(
            "%s can't be read (%s); give the path of a Python script" % (path, error.strerror or error)
        )
    npu_face.install()
    ascir_api.install()
    sys.argv = [path] + list(arguments)
    sys.path[0] = os.path.dirname(os.path.abspath(path))

    module = types.ModuleType("__main__")
    module.__dict__.update(__file__=path, __builtins__=builtins, __cached__=None)
    sys.modules["__main__"] = module
    try:
        exec(compile(source, path, "exec", dont_inherit=True), module.__dict__)
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:
        # Our own frame comes first; the user wants to see the script's.
        own = error.__traceback__.tb_next if error.__traceback__ else None
        if sys.excepthook is sys.__excepthook__:
            traceback.print_exception(type(error), error, own)
        else:
            sys.excepthook(type(error), error, own)
        raise SystemExit(1)
