"""The modules npu_bridge.* for scripts that import them where none is installed.

Why a finder at the end of sys.meta_path: it is asked only when every other way has failed, so a real
npu_bridge, in the environment or in the script's own folder, is never shadowed. Importing one of these
modules imports TensorFlow only where its contents need it. On exit of `install()` the finder is in place,
once.

    npu_bridge, .estimator, .estimator.npu, .hccl   packages
    npu_bridge.npu_init                             the names of tf_autofuse.frontend.npu_init
    any other module below npu_bridge               every name in it refuses to be used, and says why
"""
import importlib
import importlib.machinery
import sys

ROOT = "npu_bridge"
_PACKAGES = (ROOT, ROOT + ".estimator", ROOT + ".estimator.npu", ROOT + ".hccl")
#: Set on each of our modules, so that one can tell them from the real ones.
MARK = "__tf_autofuse_face__"


def install() -> None:
    """Puts the face where the import of npu_bridge would fail otherwise."""
    if not any(isinstance(finder, _FaceFinder) for finder in sys.meta_path):
        sys.meta_path.append(_FaceFinder())


def is_face(module) -> bool:
    return bool(getattr(module, MARK, False))


class _FaceFinder:
    def find_spec(self, name, path=None, target=None):
        if name != ROOT and not name.startswith(ROOT + "."):
            return None
        # Below a real npu_bridge a missing module stays missing.
        if name != ROOT and not is_face(sys.modules.get(ROOT)):
            return None
        return importlib.machinery.ModuleSpec(
            name, _FaceLoader(), origin="TF-AutoFuse's stand-in for npu_bridge", is_package=name in _PACKAGES
        )


class _FaceLoader:
    def create_module(self, spec):
        return None

    def exec_module(self, module):
        name = module.__name__
        setattr(module, MARK, True)
        module.__doc__ = "TF-AutoFuse's stand-in for %s; see tf_autofuse.frontend.npu_init." % name
        if name == ROOT + ".npu_init":
            from tf_autofuse.frontend import npu_init as contents

            module.__dict__.update({word: getattr(contents, word) for word in contents.__all__})
            module.__all__ = list(contents.__all__)
        elif name not in _PACKAGES:
            module.__getattr__ = lambda word: _refused(name, word)
        elif name == ROOT:
            # as the real package does: its parts are there after `import npu_bridge`
            module.__getattr__ = lambda word: _part(module, word)


def _refused(module_name: str, word: str):
    if word.startswith("__"):
        raise AttributeError(word)
    from tf_autofuse.frontend.npu_init import Refusal

    return Refusal("%s.%s" % (module_name, word))


def _part(module, word: str):
    if word in ("npu_init", "estimator", "hccl"):
        return importlib.import_module("%s.%s" % (ROOT, word))
    raise AttributeError(
        "TF-AutoFuse's stand-in for npu_bridge has no %s; the real one comes with CANN's TF Adapter" % word
    )
