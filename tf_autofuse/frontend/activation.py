"""Loads the native part when TensorFlow is there, and not before.

Why: `import tf_autofuse` must be cheap and must not import TensorFlow, yet a script that imports both, in any
order, must have the graph passes registered before its first session runs. On exit of `install()` either the
native part is loaded, or a finder waits for the import of tensorflow, loads the native part right after it
and is gone. A failure is one warning; TensorFlow works on without the plugin.
"""
import importlib.util
import sys
import threading

from tf_autofuse import diagnostics

_TENSORFLOW = "tensorflow"


def install() -> None:
    """Activates the plugin now if tensorflow is imported, else as soon as it is. May be called again."""
    module = sys.modules.get(_TENSORFLOW)
    if module is not None and not _is_being_imported(module):
        _activate()
    elif not any(isinstance(finder, _TensorFlowFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _TensorFlowFinder())


def _is_being_imported(module) -> bool:
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))


def _activate() -> None:
    try:
        from tf_autofuse.frontend import plugin

        plugin.activate()
    except diagnostics.StrictError:
        raise
    except Exception as error:
        diagnostics.warn_once(
            "activation",
            "the native part could not be loaded, nothing will be fused (%s: %s)"
            % (type(error).__name__, error),
            "run `python -m tf_autofuse doctor`; in a checkout, `make setup` builds the native part",
        )


class _TensorFlowFinder:
    """A meta-path finder that finds nothing by itself: it lets the others find tensorflow and wraps the
    loader."""

    def __init__(self):
        self._searching = threading.local()

    def find_spec(self, name, path=None, target=None):
        if name != _TENSORFLOW or getattr(self._searching, "now", False):
            return None
        self._searching.now = True
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError):
            return None
        finally:
            self._searching.now = False
        if spec is None or not hasattr(spec.loader, "exec_module"):
            return None
        spec.loader = _ActivatingLoader(spec.loader, self)
        return spec


class _ActivatingLoader:
    """Runs the real loader, then activates the plugin. Leaves no trace: the module gets its real loader
    back."""

    def __init__(self, loader, finder):
        self._loader = loader
        self._finder = finder

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__loader__ = module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        # Only now: an import of tensorflow that fails may be tried again.
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)
        _activate()
