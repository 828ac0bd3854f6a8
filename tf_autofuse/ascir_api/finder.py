"""The modules of the AscIR API for scripts that import them where upstream's package is not installed.

Why a finder at the end of sys.meta_path: it is asked only when every other way has failed, so a real
`autofuse`, `pyautofuse` or `ascir` is never shadowed. On exit of `install()` the finder is in place, once.

    autofuse                    an empty package
    autofuse.pyautofuse, pyautofuse     one module: ascir, Autofuser, AutofuserOptions, Schedule, CodeGen
    autofuse.ascir_api          the functional helpers
    autofuse.compile_adapter    jit_compile, host_compile, kernel_compile
    autofuse.ascendc_compile    CompileError
    ascir                       in sys.modules after the first import of pyautofuse, as upstream's
"""

import importlib
import importlib.machinery
import importlib.util
import sys
import types

#: Set on each of our modules, so that one can tell them from the real ones.
MARK = "__tf_autofuse_face__"
_EXTENSION = ("pyautofuse", "autofuse.pyautofuse")
#: Module -> (module of ours, what it takes over; None: NAMES of it).
_PURE = {
    "autofuse.ascir_api": ("functional", None),
    "autofuse.compile_adapter": ("compile_adapter", ("jit_compile", "host_compile", "kernel_compile")),
    "autofuse.ascendc_compile": ("split_files", ("CompileError",)),
}
_NAMES = ("autofuse",) + tuple(_PURE) + _EXTENSION
_made = {}


def install() -> None:
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())


class _Finder:
    def find_spec(self, name, path=None, target=None):
        if name not in _NAMES:
            return None
        # Below a real package of that name a missing module stays missing.
        if "." in name and not getattr(sys.modules.get("autofuse"), MARK, False):
            return None
        return importlib.machinery.ModuleSpec(
            name, _Loader(), origin="TF-AutoFuse's AscIR API", is_package=name == "autofuse"
        )


class _Loader:
    def create_module(self, spec):
        return extension() if spec.name in _EXTENSION else None

    def exec_module(self, module):
        if module is _made.get("pyautofuse"):
            if _is_free("ascir"):
                sys.modules["ascir"] = module.ascir
            if getattr(importlib.import_module("autofuse"), MARK, False):
                sys.modules.setdefault("autofuse.pyautofuse", module)
                sys.modules["autofuse"].pyautofuse = module
            return
        setattr(module, MARK, True)
        if module.__name__ in _PURE:
            source, names = _PURE[module.__name__]
            contents = importlib.import_module("tf_autofuse.ascir_api." + source)
            module.__doc__ = contents.__doc__
            module.__dict__.update({n: getattr(contents, n) for n in names or contents.NAMES})


def _is_free(name: str) -> bool:
    """Whether nothing of this name is imported or installed."""
    return name not in sys.modules and importlib.util.find_spec(name) is None


def _module(name: str, **members) -> types.ModuleType:
    module = types.ModuleType(name, "TF-AutoFuse's %s" % name)
    setattr(module, MARK, True)
    module.__dict__.update(members)
    return module


def extension() -> types.ModuleType:
    """The one module behind `pyautofuse` and `autofuse.pyautofuse`."""
    if "pyautofuse" not in _made:
        from tf_autofuse.ascir_api import compiling, dtypes, graphs, operators, running, sizes, tools

        ascir = _module(
            "ascir",
            dtypes=_module("ascir.dtypes", **dtypes.NUMBERS),
            ops=_module("ascir.ops", **operators.CLASSES),
            utils=_module("ascir.utils", **{name: getattr(tools, name) for name in tools.__all__}),
            **{
                cls.__name__: cls
                for cls in (
                    sizes.SizeExpr,
                    graphs.Axis,
                    operators.Operator,
                    operators.OpsOperatorOutput,
                    operators.AscNodeAttr,
                    operators.ApiInfo,
                    operators.SchedInfo,
                    graphs.HintGraph,
                    graphs.HintComputeGraph,
                    graphs.FusedGraph,
                    graphs.ShapeInfo,
                    sizes.Max,
                    sizes.Min,
                    sizes.Mod,
                )
            },
        )
        _made["pyautofuse"] = _module(
            "pyautofuse",
            ascir=ascir,
            Autofuser=compiling.Autofuser,
            AutofuserOptions=compiling.AutofuserOptions,
            Schedule=compiling.Schedule,
            CodeGen=compiling.CodeGen,
            run=running.run,
            evaluate=running.evaluate,
        )
    return _made["pyautofuse"]
