"""A kernel library in this process, by ctypes: no TensorFlow needed. What the native op does in C++, for
tests, repro scripts and the demo.

On entry: the path of a library that build has verified. Every method is safe to call from several threads.
"""

import ctypes
import os
from typing import List, NamedTuple, Optional, Sequence, Tuple

from tf_autofuse.codegen.abi import (
    ABI_VERSION,
    MAX_PHASES,
    SYMBOLS,
    AutofuseMachine,
    AutofusePin,
    TraceRecord,
)
from tf_autofuse.symbolic.guards import ValueCheckFailed
from tf_autofuse.tiling.plan_text import PLANS_SUFFIX, kept_sizes

_ERROR_BYTES = 4096
#: autofuse_run_blocks' code for a value that the kernel does not compute.
VALUE_REFUSED = 2


class KernelError(Exception):
    """A library that can't be used, or a kernel that broke a rule of the twin; the text says which."""


class Shape(NamedTuple):
    """failed: number of the check that the dims failed, 0 for none; then out_dims and sizes hold."""

    failed: int
    check: str
    out_dims: Tuple[Tuple[int, ...], ...]
    sizes: Tuple[int, ...]


class Tiling(NamedTuple):
    """data: the tiling struct's bytes. workspace_bytes: GM scratch that the kernel needs. values: the
    struct's fields that describe the plan, by name."""

    data: ctypes.Array
    block_dim: int
    workspace_bytes: int
    values: Tuple[Tuple[str, int], ...]

    def value(self, name: str) -> int:
        """Raises KeyError for a name that the struct does not have."""
        return dict(self.values)[name]


class Traced(NamedTuple):
    """One instruction that a kernel issued on the twin. line: of kernel.cpp or of a helper header (`file`);
    pipe: 'S', 'V', 'MTE2', 'MTE3' or 'ALL'; kind: 'instruction', 'set flag', 'wait flag', 'barrier' or 'all
    blocks' (SyncAll, behind a barrier of all pipes). dtype: the result's, by the twin's name. params: of a
    copy blockLen, srcStride and dstStride as given; source, target, event: of a flag, its pipes and id."""

    block: int
    pipe: str
    kind: str
    api: str
    bytes: int
    elements: int
    repeat: int
    file: str
    line: int
    dtype: str = "none"
    params: Tuple[int, ...] = (0, 0, 0)
    source: str = ""
    target: str = ""
    event: int = -1


_PIPES = {0: "S", 1: "V", 2: "MTE2", 3: "MTE3", 6: "ALL"}
_KINDS = ("instruction", "set flag", "wait flag", "barrier", "all blocks")
#: The twin's DType, in its order.
_DTYPES = ("uint8", "int8", "int16", "uint16", "half", "bfloat16", "int32", "uint32", "float", "int64",
           "uint64", "double", "none")


def traced(r: TraceRecord) -> Traced:
    """A record as the twin wrote it, as a value."""
    return Traced(
        r.block,
        _PIPES.get(r.pipe, str(r.pipe)),
        _KINDS[min(r.kind, len(_KINDS) - 1)],
        (r.api or b"").decode(),
        r.bytes,
        r.elements,
        r.repeat,
        os.path.basename((r.file or b"").decode("utf-8", "replace")),
        r.line,
        _DTYPES[min(r.dtype, len(_DTYPES) - 1)],
        tuple(r.params[:3]),
        _PIPES.get(r.src_pipe, "") if r.kind in (1, 2) else "",
        _PIPES.get(r.dst_pipe, "") if r.kind in (1, 2) else "",
        r.event_id,
    )


class KernelLibrary:
    """The functions of one library. input_ranks, output_ranks, size_count: of the FusedGraph it was made
    from."""

    def __init__(self, path: str, input_ranks: Sequence[int], output_ranks: Sequence[int], size_count: int,
                 host_only: bool = False):
        """host_only: the library plans a kernel that runs elsewhere (an NPU), and has nothing to run it."""
        self.path = path
        self.input_ranks, self.output_ranks, self.size_count = (
            tuple(input_ranks),
            tuple(output_ranks),
            size_count,
        )
        try:
            self._library = ctypes.CDLL(path, mode=getattr(ctypes, "RTLD_LOCAL", 0))
        except OSError as error:
            raise KernelError("the kernel library %s can't be loaded: %s" % (path, error))
        self._functions = {}
        for symbol in SYMBOLS:
            try:
                function = getattr(self._library, symbol.name)
            except AttributeError:
                if symbol.optional or (host_only and symbol.name == "autofuse_run_blocks"):
                    continue
                raise KernelError("the kernel library %s has no function %s" % (path, symbol.name))
            function.restype, function.argtypes = symbol.result, symbol.arguments
            self._functions[symbol.name] = function
        version = self._functions["autofuse_abi_version"]()
        if version != ABI_VERSION:
            raise KernelError(
                "the kernel library %s has ABI version %d, this is %d" % (path, version, ABI_VERSION)
            )

    def shape(self, input_dims: Sequence[Sequence[int]]) -> Shape:
        """Output dims and symbol values for input dims. Raises ValueError where a rank is wrong."""
        if tuple(map(len, input_dims)) != self.input_ranks:
            raise ValueError(
                "the inputs' ranks are %s, not %s" % (list(map(len, input_dims)), list(self.input_ranks))
            )
        flat = [d for dims in input_dims for d in dims]
        given = (ctypes.c_int64 * max(1, len(flat)))(*flat)
        out = (ctypes.c_int64 * max(1, sum(self.output_ranks)))()
        sizes = (ctypes.c_int64 * max(1, self.size_count))()
        failed = self._functions["autofuse_shape"](given, out, sizes)
        if failed:
            text = self._functions["autofuse_check_text"](failed)
            return Shape(failed, text.decode("utf-8", "replace"), (), ())
        dims: List[Tuple[int, ...]] = []
        at = 0
        for rank in self.output_ranks:
            dims.append(tuple(out[at : at + rank]))
            at += rank
        return Shape(0, "", tuple(dims), tuple(sizes[: self.size_count]))

    def tiling(self, sizes: Sequence[int], core_num: int, ub_size: int) -> Tiling:
        """The plan for symbol values on a machine. Raises KernelError where there is none."""
        return self._tiling("autofuse_tiling", (), sizes, core_num, ub_size)

    @property
    def takes_pins(self) -> bool:
        """Whether plans can be pinned and kept: it was built for measuring them."""
        return "autofuse_tiling_pinned" in self._functions

    def tiling_pinned(self, sizes: Sequence[int], core_num: int, ub_size: int,
                      pins: Sequence[AutofusePin]) -> Tiling:
        """As `tiling`, with the loop nests that pins name planned by them. Raises KernelError where a pin is
        not legal, or the library was not made for measuring plans."""
        if not self.takes_pins:
            raise KernelError("the kernel library %s takes no pins; it was not built for PGO" % self.path)
        given = (AutofusePin * max(1, len(pins)))(*pins)
        return self._tiling("autofuse_tiling_pinned", (given, len(pins)), sizes, core_num, ub_size)

    def keep_plan(self, sizes: Sequence[int], core_num: int, ub_size: int, plan: Tiling,
                  on_disk: bool) -> None:
        """From now on `tiling` gives this plan for these sizes; on_disk: in later processes, too. Only for a
        library that takes pins."""
        self._functions["autofuse_plan_keep"](
            (ctypes.c_int64 * max(1, self.size_count))(*sizes),
            ctypes.byref(AutofuseMachine(core_num, 0, ub_size)),
            ctypes.cast(plan.data, ctypes.c_void_p),
            plan.block_dim,
            plan.workspace_bytes,
            int(on_disk),
        )

    def asked_sizes(self, core_num: int, ub_size: int) -> Tuple[Tuple[int, ...], ...]:
        """The symbol values that plans were kept for on disk, for a machine."""
        try:
            bytes_ = self._functions["autofuse_tiling_size"]()
            return tuple(kept_sizes(self.path + PLANS_SUFFIX, self.size_count, bytes_, (core_num, ub_size)))
        except OSError:
            return ()

    def _tiling(self, name: str, pins: tuple, sizes: Sequence[int], core_num: int, ub_size: int) -> Tiling:
        values = (ctypes.c_int64 * max(1, self.size_count))(*sizes)
        # 8-byte items: the struct is 8 B aligned.
        data = (ctypes.c_uint64 * (max(8, self._functions["autofuse_tiling_size"]()) + 7 >> 3))()
        block_dim, workspace = ctypes.c_uint32(), ctypes.c_uint64()
        code = self._functions[name](
            values,
            ctypes.byref(AutofuseMachine(core_num, 0, ub_size)),
            *pins,
            data,
            ctypes.byref(block_dim),
            ctypes.byref(workspace),
        )
        if code:
            raise KernelError("no tiling for sizes %s (code %d)" % (list(sizes), code))
        return Tiling(data, block_dim.value, workspace.value, self._values(data))

    def _values(self, data) -> Tuple[Tuple[str, int], ...]:
        name_of = self._functions.get("autofuse_tiling_name")
        value_of = self._functions.get("autofuse_tiling_value")
        values = []
        while name_of and value_of:
            name = name_of(len(values))
            if name is None:
                break
            values.append((name.decode("ascii"), value_of(data, len(values))))
        return tuple(values)

    def phases(self, tiling: Tiling) -> Tuple[Tuple[int, int], ...]:
        """The blocks (first, behind the last) of each phase; a phase begins when the one before has ended."""
        function = self._functions.get("autofuse_phases")
        if function is None:
            return ((0, tiling.block_dim),) if tiling.block_dim else ()
        ends = (ctypes.c_uint32 * MAX_PHASES)()
        count = function(ctypes.cast(tiling.data, ctypes.c_void_p), ends, MAX_PHASES)
        return tuple(zip([0] + list(ends[: count - 1]), ends[:count]))

    def block_cost(self, tiling: Tiling) -> Optional[int]:
        """About how many nanoseconds a block takes, None where the library does not say."""
        function = self._functions.get("autofuse_block_cost")
        return None if function is None else function(ctypes.cast(tiling.data, ctypes.c_void_p))

    def workspace(self, tiling: Tiling):
        """Memory for the kernel's workspace, to be kept for all blocks of a launch."""
        return ctypes.create_string_buffer(max(1, tiling.workspace_bytes))

    def run(
        self,
        addresses: Sequence[int],
        sizes_in_bytes: Sequence[int],
        tiling: Tiling,
        first: int = 0,
        last: Optional[int] = None,
        workspace=None,
    ) -> None:
        """Blocks [first, last) of one phase on this thread; without first and last all blocks, phase by
        phase. addresses: of inputs, then outputs. workspace: that of the launch, by default one of this
        call's own. Raises KernelError on a violation of the twin's rules, ValueCheckFailed for a value that
        the kernel does not compute."""
        gm = (ctypes.c_void_p * len(addresses))(*addresses)
        gm_bytes = (ctypes.c_uint64 * len(addresses))(*sizes_in_bytes)
        workspace = self.workspace(tiling) if workspace is None else workspace
        error = ctypes.create_string_buffer(_ERROR_BYTES)
        whole = first == 0 and last is None
        for begin, end in self.phases(tiling) if whole else ((first, tiling.block_dim
                                                              if last is None else last),):
            code = self._functions["autofuse_run_blocks"](
                gm,
                gm_bytes,
                ctypes.cast(workspace, ctypes.c_void_p),
                ctypes.cast(tiling.data, ctypes.c_void_p),
                tiling.block_dim,
                begin,
                end,
                error,
                _ERROR_BYTES,
            )
            if code == VALUE_REFUSED:
                raise ValueCheckFailed("a value is not one that the kernel %s computes" % self.path)
            if code:
                raise KernelError(
                    error.value.decode("utf-8", "replace") or "the kernel failed with code %d" % code
                )

    def trace_begin(self, limit: int = 0) -> None:
        """Record what the library's kernel does from now on, in all threads; limit: most records, 0 for 2^20.
        Raises KernelError where the library can't."""
        if "autofuse_trace_begin" not in self._functions:
            raise KernelError("the kernel library %s records no trace" % self.path)
        self._functions["autofuse_trace_begin"](limit)

    def trace_end(self) -> Tuple[Traced, ...]:
        """Stop recording; what was recorded, in the order of issue within each block."""
        records = ctypes.POINTER(TraceRecord)()
        count = self._functions["autofuse_trace_end"](ctypes.byref(records))
        return tuple(map(traced, records[:count]))
