"""The ACL runtime of an NPU, by dlopen of libascendcl: no header or library of CANN is needed to build or
to import.

On entry an NPU's driver and CANN's runtime library; on exit, after `close()`, everything that was taken is
given back. Every call is checked: an error is an AclError with the call's name, its code and ACL's own
words. Functions may be called from several threads; each run has a stream of its own. A process that has
forked must not use the parent's runtime: it gets an AclError that says so, never a hang."""

import atexit
import ctypes
import os
import threading
import weakref
from pathlib import Path
from typing import Dict, List, Mapping, NamedTuple, Optional, Tuple

#: Where the runtime library is, below ASCEND_HOME_PATH, and its name for the loader.
_PLACES = ("lib64/libascendcl.so", "runtime/lib64/libascendcl.so", "fwkacllib/lib64/libascendcl.so")
_HOMES = ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME")
LIBRARY = "libascendcl.so"

_SUCCESS = 0
_ALREADY_INITIALIZED = 100002
_HUGE_FIRST = 0  # memory policy: huge pages where they fit
_TO_DEVICE, _TO_HOST = 1, 2
_SCHEDULE_MODE, _ALL_BLOCKS_AT_ONCE = 1, 1
#: Device memory comes in powers of two from this size on: ACL's own granule for aligned memory, bytes.
SMALLEST = 512

_P = ctypes.c_void_p
_PP = ctypes.POINTER(ctypes.c_void_p)
_SIGNATURES: Mapping[str, tuple] = {
    "aclInit": (ctypes.c_char_p,),
    "aclFinalize": (),
    "aclrtSetDevice": (ctypes.c_int32,),
    "aclrtResetDevice": (ctypes.c_int32,),
    "aclrtCreateStream": (_PP,),
    "aclrtDestroyStream": (_P,),
    "aclrtSynchronizeStream": (_P,),
    "aclrtMalloc": (_PP, ctypes.c_size_t, ctypes.c_int),
    "aclrtFree": (_P,),
    "aclrtMemcpyAsync": (_P, ctypes.c_size_t, _P, ctypes.c_size_t, ctypes.c_int, _P),
    "aclrtMemsetAsync": (_P, ctypes.c_size_t, ctypes.c_int32, ctypes.c_size_t, _P),
    "aclrtBinaryLoadFromFile": (ctypes.c_char_p, _P, _PP),
    "aclrtBinaryUnLoad": (_P,),
    "aclrtBinaryGetFunction": (_P, ctypes.c_char_p, _PP),
    "aclrtKernelArgsInit": (_P, _PP),
    "aclrtKernelArgsAppend": (_P, _P, ctypes.c_size_t, _PP),
    "aclrtKernelArgsFinalize": (_P,),
    "aclrtLaunchKernelWithConfig": (_P, ctypes.c_uint32, _P, _P, _P, _P),
}


class AclError(Exception):
    """call: the function of ACL; code: what it returned."""

    def __init__(self, call: str, code: int, text: str):
        super().__init__("%s failed with code %d%s" % (call, code, ": " + text if text else ""))
        self.call, self.code = call, code


class _LaunchAttribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint32), ("value", ctypes.c_uint32 * 4)]


class _LaunchConfig(ctypes.Structure):
    _fields_ = [("attributes", ctypes.POINTER(_LaunchAttribute)), ("count", ctypes.c_size_t)]


def find_library(environ: Mapping[str, str]) -> Optional[str]:
    """libascendcl of the toolkit that ASCEND_HOME_PATH (or ASCEND_TOOLKIT_HOME) names, or None."""
    for variable in _HOMES:
        for place in _PLACES if environ.get(variable) else ():
            path = Path(environ[variable]) / place
            if path.is_file():
                return str(path)
    return None


class DeviceMemory(NamedTuple):
    """A piece of device memory. capacity: bytes that the pool gave for the `bytes` asked for."""

    address: int
    bytes: int
    capacity: int


class PoolUse(NamedTuple):
    """Bytes in use, bytes kept for later, and the most that was in use at once."""

    used: int
    kept: int
    peak: int


class Binary:
    """A loaded device binary. Functions are looked up once."""

    def __init__(self, runtime: "AclRuntime", handle: int):
        self._runtime, self.handle = runtime, handle
        self._functions: Dict[str, int] = {}

    def function(self, name: str) -> int:
        found = self._functions.get(name)
        if found is None:
            result = ctypes.c_void_p()
            self._runtime.call(
                "aclrtBinaryGetFunction", self.handle, name.encode("utf-8"), ctypes.byref(result)
            )
            found = self._functions[name] = result.value
        return found


class AclRuntime:
    """One device. Made once a process (`runtime_for`); `close` may be called again."""

    def __init__(self, library: str, device: int = 0):
        """Raises AclError where the library can't be loaded or lacks a function, or the device can't be
        had."""
        try:
            self._library = ctypes.CDLL(library, mode=getattr(ctypes, "RTLD_GLOBAL", 0))
        except OSError as error:
            raise AclError("dlopen", -1, "%s; set ASCEND_HOME_PATH to the CANN toolkit" % error)
        self._functions = {}
        for name, arguments in _SIGNATURES.items():
            function = getattr(self._library, name, None)
            if function is None:
                raise AclError("dlsym", -1, "%s has no %s; install CANN 8.1 or newer" % (library, name))
            function.restype, function.argtypes = ctypes.c_int, arguments
            self._functions[name] = function
        self._words = getattr(self._library, "aclGetRecentErrMsg", None)
        if self._words is not None:
            self._words.restype, self._words.argtypes = ctypes.c_char_p, ()
        self.device, self._pid = device, os.getpid()
        self._lock = threading.RLock()
        self._kept: Dict[int, List[int]] = {}
        self._streams: List[int] = []
        self._binaries: Dict[str, Binary] = {}
        self._used = self._peak = 0
        self._open, self._owns_init = False, False
        self._begin()

    def _begin(self) -> None:
        code = self._functions["aclInit"](None)
        if code not in (_SUCCESS, _ALREADY_INITIALIZED):
            raise self._error("aclInit", code)
        # Whoever else has initialised ACL in this process finalises it.
        self._owns_init = code == _SUCCESS
        try:
            self.call("aclrtSetDevice", self.device)
        except AclError:
            self._finalize()
            raise
        self._open = True

    def _finalize(self) -> None:
        if self._owns_init:
            self._functions["aclFinalize"]()

    def _error(self, name: str, code: int) -> AclError:
        words = self._words() if self._words is not None else None
        return AclError(name, code, words.decode("utf-8", "replace").strip() if words else "")

    def call(self, name: str, *arguments) -> None:
        """Raises AclError for a code other than 0, and in a forked process."""
        if os.getpid() != self._pid:
            raise AclError(
                name, -1, "the process has forked since the NPU was initialised; start workers by spawn"
            )
        code = self._functions[name](*arguments)
        if code != _SUCCESS:
            raise self._error(name, code)

    def enter_thread(self) -> None:
        """Binds the device to the calling thread; ACL asks for it in each."""
        self.call("aclrtSetDevice", self.device)

    # Memory

    def allocate(self, bytes_: int) -> DeviceMemory:
        """Raises AclError. Memory that was released is used again before more is asked for; what is kept is
        given back to the device when it has no more."""
        capacity = SMALLEST
        while capacity < bytes_:
            capacity *= 2
        with self._lock:
            kept = self._kept.get(capacity)
            address = kept.pop() if kept else None
        if address is None:
            try:
                address = self._malloc(capacity)
            except AclError:
                if not self.trim():
                    raise
                address = self._malloc(capacity)
        with self._lock:
            self._used += capacity
            self._peak = max(self._peak, self._used)
        return DeviceMemory(address, bytes_, capacity)

    def _malloc(self, capacity: int) -> int:
        address = ctypes.c_void_p()
        self.call("aclrtMalloc", ctypes.byref(address), capacity, _HUGE_FIRST)
        return address.value

    def release(self, memory: DeviceMemory) -> None:
        """Gives memory back to the pool. Only for memory that no stream uses any more."""
        with self._lock:
            self._used -= memory.capacity
            self._kept.setdefault(memory.capacity, []).append(memory.address)

    def trim(self) -> int:
        """Gives what is kept back to the device; returns its bytes. Raises AclError."""
        with self._lock:
            kept, self._kept = self._kept, {}
        freed = 0
        for capacity, addresses in kept.items():
            for address in addresses:
                self.call("aclrtFree", address)
                freed += capacity
        return freed

    def use(self) -> PoolUse:
        with self._lock:
            kept = sum(c * len(a) for c, a in self._kept.items())
            return PoolUse(self._used, kept, self._peak)

    # Streams

    def take_stream(self) -> int:
        with self._lock:
            if self._streams:
                return self._streams.pop()
        stream = ctypes.c_void_p()
        self.call("aclrtCreateStream", ctypes.byref(stream))
        return stream.value

    def give_stream(self, stream: int) -> None:
        """Only for a stream with nothing left to do."""
        with self._lock:
            self._streams.append(stream)

    def drop_stream(self, stream: int) -> None:
        """For a stream that has failed: ACL may refuse further work on it."""
        self._functions["aclrtDestroyStream"](stream)

    def synchronize(self, stream: int) -> None:
        self.call("aclrtSynchronizeStream", stream)

    def to_device(self, memory: DeviceMemory, address: int, bytes_: int, stream: int) -> None:
        """Copies from host memory, which must stay as it is until the stream has been synchronised."""
        self.call("aclrtMemcpyAsync", memory.address, memory.capacity, address, bytes_, _TO_DEVICE, stream)

    def to_host(self, address: int, memory: DeviceMemory, bytes_: int, stream: int) -> None:
        self.call("aclrtMemcpyAsync", address, bytes_, memory.address, bytes_, _TO_HOST, stream)

    def clear(self, memory: DeviceMemory, stream: int) -> None:
        self.call("aclrtMemsetAsync", memory.address, memory.capacity, 0, memory.bytes, stream)

    # Kernels

    def binary(self, path: str) -> Binary:
        """The device binary of this file, loaded once."""
        with self._lock:
            found = self._binaries.get(path)
            if found is None:
                handle = ctypes.c_void_p()
                self.call("aclrtBinaryLoadFromFile", path.encode("utf-8"), None, ctypes.byref(handle))
                found = self._binaries[path] = Binary(self, handle.value)
            return found

    def launch(
        self, function: int, block_dim: int, addresses: List[int], stream: int, all_at_once: bool = False
    ) -> None:
        """Queues a kernel whose arguments are device addresses, in order. all_at_once: its blocks wait for
        each other."""
        handle = ctypes.c_void_p()
        self.call("aclrtKernelArgsInit", function, ctypes.byref(handle))
        for address in addresses:
            value, place = ctypes.c_uint64(address), ctypes.c_void_p()
            self.call(
                "aclrtKernelArgsAppend",
                handle,
                ctypes.byref(value),
                ctypes.sizeof(value),
                ctypes.byref(place),
            )
        self.call("aclrtKernelArgsFinalize", handle)
        config = None
        if all_at_once:
            attribute = _LaunchAttribute(_SCHEDULE_MODE, (_ALL_BLOCKS_AT_ONCE, 0, 0, 0))
            config = ctypes.byref(_LaunchConfig(ctypes.pointer(attribute), 1))
        self.call("aclrtLaunchKernelWithConfig", function, block_dim, stream, config, handle, None)

    def close(self) -> None:
        """Gives everything back. In a forked process nothing is touched: it is the parent's."""
        with self._lock:
            if not self._open or os.getpid() != self._pid:
                return
            self._open = False
            streams, self._streams = self._streams, []
            binaries, self._binaries = self._binaries, {}
        # One failure must not keep the rest from being given back.
        errors = []
        self._functions["aclrtSetDevice"](self.device)
        steps = [("aclrtDestroyStream", s) for s in streams]
        steps += [("aclrtBinaryUnLoad", b.handle) for b in binaries.values()]
        steps += [("aclrtFree", a) for addresses in self._kept.values() for a in addresses]
        self._kept = {}
        for name, argument in steps + [("aclrtResetDevice", self.device)]:
            code = self._functions[name](argument)
            if code != _SUCCESS:
                errors.append(self._error(name, code))
        self._finalize()
        if errors:
            raise errors[0]


_runtimes: Dict[Tuple[str, int], AclRuntime] = {}
_runtimes_lock = threading.Lock()


def runtime_for(library: str, device: int = 0) -> AclRuntime:
    """The process's runtime of this library and device. It is closed when the process exits. Raises
    AclError."""
    with _runtimes_lock:
        found = _runtimes.get((library, device))
        if found is None or not found._open or found._pid != os.getpid():
            found = _runtimes[library, device] = AclRuntime(library, device)
            atexit.register(_close_quietly, weakref.ref(found))
        return found


def _close_quietly(reference) -> None:
    runtime = reference()
    try:
        if runtime is not None:
            runtime.close()
    except AclError:
        pass  # the process ends; the driver takes everything back
