"""The NPU runtime in this process, by ctypes: what the native op does in C++, for everything without
TensorFlow.

The runtime itself is npu_kernels/runtime (npu_runtime.h is its contract): libascendcl by dlopen, memory
pools, streams, launches. It is one shared library, so that Python and the op see the same device, streams and
memory. On entry an NPU's driver and CANN's runtime library; on exit, after `close()` or when the process
ends, everything that was taken is given back. Every failure is an AclError with ACL's own words."""

import atexit
import ctypes
import threading
import weakref
from pathlib import Path
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from tf_autofuse.build.kernels import BuildSettings
from tf_autofuse.build.npu_runtime import npu_runtime
from tf_autofuse.build.problem import Problem
from tf_autofuse.symbolic.guards import ValueCheckFailed

#: Where libascendcl is, below the toolkit's folder.
_PLACES = ("lib64/libascendcl.so", "runtime/lib64/libascendcl.so", "fwkacllib/lib64/libascendcl.so")
_HOMES = ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME")
#: AUTOFUSE_NPU_VERSION, AUTOFUSE_NPU_REFUSED of npu_runtime.h.
VERSION, _REFUSED = 1, 2


class AclError(Exception):
    """call: the function of ACL; code: what it returned, -1 for what is not ACL's; words: ACL's own."""

    def __init__(self, call: str, code: int, words: str):
        super().__init__("%s failed with code %d%s" % (call, code, ": " + words if words else ""))
        self.call, self.code, self.words = call, code, words


class _Error(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int32), ("call", ctypes.c_char * 60), ("text", ctypes.c_char * 960)]

    def exception(self) -> AclError:
        return AclError(self.call.decode(), self.code, self.text.decode("utf-8", "replace").strip())


class _Input(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_uint64), ("host", ctypes.c_void_p), ("device", ctypes.c_void_p),
                ("keep", ctypes.c_int32), ("kept", ctypes.c_void_p)]


class _Output(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_uint64), ("host", ctypes.c_void_p), ("keep", ctypes.c_int32),
                ("kept", ctypes.c_void_p)]


class _Run(ctypes.Structure):
    _fields_ = [("function", ctypes.c_void_p), ("block_dim", ctypes.c_uint32),
                ("all_at_once", ctypes.c_int32), ("input_count", ctypes.c_uint32),
                ("output_count", ctypes.c_uint32), ("inputs", ctypes.POINTER(_Input)),
                ("outputs", ctypes.POINTER(_Output)), ("tiling", ctypes.c_void_p),
                ("tiling_bytes", ctypes.c_uint64), ("workspace_bytes", ctypes.c_uint64),
                ("status_offset", ctypes.c_int64)]


class Use(ctypes.Structure):
    """AutofuseNpuUse: bytes of device memory in use, kept for later, most in use at once; page-locked host
    memory in use and kept; streams; runs that nobody has waited for; bytes that a failed stream may still
    use."""

    _fields_ = [(name, ctypes.c_uint64) for name in (
        "used", "kept", "peak", "host_used", "host_kept", "streams", "pending", "lost")]


_P, _E = ctypes.c_void_p, ctypes.POINTER(_Error)
_FUNCTIONS: Mapping[str, tuple] = {
    "version": (ctypes.c_int64,),
    "open": (_P, ctypes.c_char_p, ctypes.c_int32, _E),
    "close": (ctypes.c_int32, _P, _E),
    "unusable": (ctypes.c_char_p, _P),
    "function": (ctypes.c_int32, _P, ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(_P), _E),
    "run": (ctypes.c_int32, _P, ctypes.POINTER(_Run), _E),
    "read": (ctypes.c_int32, _P, _P, ctypes.c_uint64, _E),
    "settled": (ctypes.c_int32, _P),
    "release": (None, _P),
    "get_use": (None, _P, ctypes.POINTER(Use)),
    "trim": (ctypes.c_int32, _P, _E),
}


def find_library(environ: Mapping[str, str]) -> Optional[str]:
    """libascendcl of the toolkit that ASCEND_HOME_PATH (or ASCEND_TOOLKIT_HOME) names, or None."""
    for variable in _HOMES:
        for place in _PLACES if environ.get(variable) else ():
            path = Path(environ[variable]) / place
            if path.is_file():
                return str(path)
    return None


class Host(NamedTuple):
    """Values in host memory."""

    address: int
    bytes: int


class Kept:
    """Values in device memory, released when this object goes."""

    def __init__(self, runtime: "NpuRuntime", handle: int, bytes_: int):
        self.handle, self.bytes, self._runtime = handle, bytes_, runtime
        self._finalizer = weakref.finalize(self, runtime.functions["release"], handle)
        # What is left at the end of the process has been given back by `close`.
        self._finalizer.atexit = False

    def release(self) -> None:
        """May be called again."""
        self._finalizer()

    @property
    def settled(self) -> bool:
        """Whether the work that makes the values has been waited for without an error."""
        return bool(self._runtime.functions["settled"](self.handle))

    def read(self, address: int) -> None:
        """Waits for the values and copies them to host memory of `bytes` bytes. Raises AclError."""
        self._runtime.check("read", self.handle, address, self.bytes)


class Launch(NamedTuple):
    """A planned kernel. function: of NpuRuntime.function; tiling: its data. status_offset: where the blocks'
    status words begin in the workspace, or -1."""

    function: int
    block_dim: int
    tiling: Host
    workspace_bytes: int
    status_offset: int = -1
    all_at_once: bool = False


class NpuRuntime:
    """One device of this process. `runtime_for` makes it."""

    def __init__(self, library: str, acl: str, device: int = 0):
        """library: of build/npu_runtime.py; acl: path of libascendcl. Raises AclError where the device can't
        be had."""
        loaded = ctypes.CDLL(library)
        self.library, self.acl, self.device = library, acl, device
        self.functions = {}
        for name, (result, *arguments) in _FUNCTIONS.items():
            function = getattr(loaded, "autofuse_npu_" + name)
            function.restype, function.argtypes = result, arguments
            self.functions[name] = function
        if self.functions["version"]() != VERSION:
            raise AclError("version", -1, "%s is of another version; clear the kernel cache" % library)
        error = _Error()
        self.handle = self.functions["open"](acl.encode("utf-8"), device, ctypes.byref(error))
        if not self.handle:
            raise error.exception()
        atexit.register(_close_quietly, weakref.ref(self))

    def check(self, name: str, *arguments) -> None:
        """Raises AclError, or ValueCheckFailed for a value that the kernel does not compute."""
        error = _Error()
        code = self.functions[name](*(arguments + (ctypes.byref(error),)))
        if code == _REFUSED:
            raise ValueCheckFailed("an index is out of range")
        if code:
            raise error.exception()

    @property
    def unusable(self) -> str:
        """'' while the device can be used, else why not."""
        return (self.functions["unusable"](self.handle) or b"").decode()

    def function(self, binary: str, name: str) -> int:
        """The entry of a device binary's file; both are looked up once. Raises AclError."""
        found = _P()
        self.check("function", self.handle, binary.encode("utf-8"), name.encode("utf-8"), ctypes.byref(found))
        return found.value

    def run(self, launch: Launch, inputs: Sequence, outputs: Sequence) -> List[Optional[Kept]]:
        """Queues a kernel. inputs: Host or Kept each, or None for what it does not read. outputs: Host, or a
        number of bytes that stay on the device. Waits where an output is a Host. Returns the Kept of each
        output, None for a Host. Raises AclError, ValueCheckFailed."""
        given = (_Input * max(1, len(inputs)))(*[
            _Input(x.bytes, None, x.handle) if isinstance(x, Kept)
            else _Input(x.bytes, x.address, None) if x is not None else _Input() for x in inputs])
        wanted = (_Output * max(1, len(outputs)))(*[
            _Output(x.bytes, x.address, 0) if isinstance(x, Host) else _Output(x, None, 1) for x in outputs])
        run = _Run(launch.function, launch.block_dim, launch.all_at_once, len(inputs), len(outputs), given,
                   wanted, launch.tiling.address, launch.tiling.bytes, launch.workspace_bytes,
                   launch.status_offset)
        self.check("run", self.handle, ctypes.byref(run))
        return [Kept(self, x.kept, x.bytes) if x.kept else None for x in wanted[:len(outputs)]]

    def use(self) -> Use:
        found = Use()
        self.functions["get_use"](self.handle, ctypes.byref(found))
        return found

    def trim(self) -> None:
        """Gives memory that is kept for later back to the device. Raises AclError."""
        self.check("trim", self.handle)

    def close(self) -> None:
        """Waits for all work and gives everything back; the first error is raised, the rest given back
        nevertheless. In a forked process nothing is touched: it is the parent's."""
        self.check("close", self.handle)


def _close_quietly(reference) -> None:
    runtime = reference()
    try:
        if runtime is not None:
            runtime.close()
    except AclError:
        pass  # the process ends; the driver takes everything back


_runtimes: Dict[Tuple[str, int], NpuRuntime] = {}
_lock = threading.Lock()


def runtime_for(acl: str, device: int = 0, settings: Optional[BuildSettings] = None) -> NpuRuntime:
    """The process's runtime of this libascendcl and device; it is closed when the process exits. settings:
    where the runtime's own library is kept. Raises AclError."""
    with _lock:
        found = _runtimes.get((acl, device))
        if found is None or found.unusable:
            library = npu_runtime(settings or BuildSettings())
            if isinstance(library, Problem):
                raise AclError("build", -1, str(library))
            found = _runtimes[acl, device] = NpuRuntime(library, acl, device)
        return found
