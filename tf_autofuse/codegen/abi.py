"""The C interface between a kernel library and whoever loads it: version 1.

A kernel library is one shared object with these symbols, all extern "C" (the native op and runtime/library.py
call them; codegen/ascendc writes them):

    int64_t autofuse_abi_version(void)
    int32_t autofuse_shape(const int64_t* in_dims, int64_t* out_dims, int64_t* sizes)
        in_dims: the dims of all inputs one after the other (ranks are static); out_dims likewise;
        sizes: the symbols' values, in the order of FusedGraph.sizes. 0, or the number (from 1) of the check
        that failed: then out_dims and sizes are undefined and the fallback gives the result.
    const char* autofuse_check_text(int32_t number)        what check `number` says, for people
    int64_t autofuse_tiling_size(void)                      bytes of the tiling data
    int32_t autofuse_tiling(const int64_t* sizes, const AutofuseMachine*, void* tiling, uint32_t* block_dim,
                            uint64_t* workspace_bytes)      0, or nonzero: no plan; block_dim 0: nothing to do
    int32_t autofuse_run_blocks(void* const* gm, const uint64_t* gm_bytes, void* workspace,
                                const void* tiling, uint32_t block_dim, uint32_t first_block,
                                uint32_t last_block, char* error, uint64_t error_capacity)
        runs blocks [first, last) on the calling thread; gm: inputs, then outputs. 1: violation, text in
        error. 2: a value is not one that the kernel computes (an index out of range): no error of the kernel,
        the fallback gives the result or TF's error; such a kernel has no `forward` pairs. An output may be
        the same memory as an input where the kernel's `forward` pairs say so.
    const char* autofuse_tiling_name(int32_t index)     optional: a tiling field's name, null behind the last
    int64_t autofuse_tiling_value(const void* tiling, int32_t index)    optional: its value
    void autofuse_trace_begin(uint64_t limit), uint64_t autofuse_trace_end(const TwinTraceRecord** records)
        optional: record what the kernel calls on the host twin, at most `limit` records (0: 2^20), all
        launches of this library together; the records stay valid until the next begin
    int32_t autofuse_needs_all_blocks(void)         optional: nonzero where one call must run all blocks
    int32_t autofuse_phases(const void* tiling, uint32_t* ends, int32_t capacity)   optional
        the number of phases of this plan, at most MAX_PHASES; phase p is the blocks [ends[p-1], ends[p]),
        ends[-1] being 0, and begins when the phase before it has ended (loop nests that read each other's
        workspace). Without it: one phase.
    int64_t autofuse_block_cost(const void* tiling)     optional
        about how many nanoseconds a block takes on one core; decides between the calling thread and the
        pool. Without it the runtime goes by the bytes moved.
    int32_t autofuse_tiling_pinned(const int64_t* sizes, const AutofuseMachine*, const AutofusePin* pins,
                            int32_t pin_count, void* tiling, uint32_t* block_dim, uint64_t* workspace_bytes)
        optional, for measuring: as autofuse_tiling, but the loop nests that pins name are planned by them; no
        plan where a pin is not legal. An earlier plan is not looked for
    void autofuse_plan_keep(const int64_t* sizes, const AutofuseMachine*, const void* tiling,
                            uint32_t block_dim, uint64_t workspace_bytes, int32_t on_disk)
        optional: from now on autofuse_tiling gives this plan; on_disk: also in later processes
"""

import ctypes
from typing import NamedTuple, Optional

ABI_VERSION = 1
#: Most phases of one plan.
MAX_PHASES = 64


class AutofuseMachine(ctypes.Structure):
    """core_num: vector cores to spread over; ub_size: bytes of UB that buffers may take."""

    _fields_ = [("core_num", ctypes.c_uint32), ("reserved", ctypes.c_uint32), ("ub_size", ctypes.c_uint64)]


class AutofusePin(ctypes.Structure):
    """The plan of one loop nest: its variant, elements of the cut axis in a tile, and most cores. The C++
    side is in tiling/plan_text.py."""

    _fields_ = [("nest", ctypes.c_int32), ("key", ctypes.c_int32), ("tile", ctypes.c_int64),
                ("cores", ctypes.c_int64)]


class TraceRecord(ctypes.Structure):
    """One call of the twin's API: TwinTraceRecord of npu_kernels/twin/include/twin/launch.h, which says more.

    pipe: 0 scalar, 1 vector, 2 GM to UB, 3 UB to GM, 6 all. kind: 0 instruction, 1 set flag, 2 wait flag, 3
    barrier.
    """

    _fields_ = [
        ("block", ctypes.c_uint32),
        ("line", ctypes.c_uint32),
        ("api", ctypes.c_char_p),
        ("file", ctypes.c_char_p),
        ("bytes", ctypes.c_uint64),
        ("elements", ctypes.c_uint64),
        ("repeat", ctypes.c_uint32),
        ("params", ctypes.c_uint32 * 4),
        ("pipe", ctypes.c_uint8),
        ("dtype", ctypes.c_uint8),
        ("kind", ctypes.c_uint8),
        ("src_pipe", ctypes.c_uint8),
        ("dst_pipe", ctypes.c_uint8),
        ("event_id", ctypes.c_int8),
        ("buffer", ctypes.c_uint16),
    ]


#: The C++ side of AutofuseMachine; every generated host source has it exactly once.
MACHINE_STRUCT = """\
struct AutofuseMachine {
  uint32_t core_num;
  uint32_t reserved;
  uint64_t ub_size;
};
"""


class Symbol(NamedTuple):
    """An exported function: its C type as ctypes sees it; result None: void."""

    name: str
    result: Optional[type]
    arguments: tuple
    optional: bool = False


_I64 = ctypes.POINTER(ctypes.c_int64)

SYMBOLS = (
    Symbol("autofuse_abi_version", ctypes.c_int64, ()),
    Symbol("autofuse_shape", ctypes.c_int32, (_I64, _I64, _I64)),
    Symbol("autofuse_check_text", ctypes.c_char_p, (ctypes.c_int32,)),
    Symbol("autofuse_tiling_size", ctypes.c_int64, ()),
    Symbol(
        "autofuse_tiling",
        ctypes.c_int32,
        (
            _I64,
            ctypes.POINTER(AutofuseMachine),
            ctypes.c_void_p,
            ctypes.POINTER(ctypes.c_uint32),
            ctypes.POINTER(ctypes.c_uint64),
        ),
    ),
    Symbol(
        "autofuse_run_blocks",
        ctypes.c_int32,
        (
            ctypes.POINTER(ctypes.c_void_p),
            ctypes.POINTER(ctypes.c_uint64),
            ctypes.c_void_p,
            ctypes.c_void_p,
            ctypes.c_uint32,
            ctypes.c_uint32,
            ctypes.c_uint32,
            ctypes.c_char_p,
            ctypes.c_uint64,
        ),
    ),
    Symbol("autofuse_tiling_name", ctypes.c_char_p, (ctypes.c_int32,), True),
    Symbol("autofuse_tiling_value", ctypes.c_int64, (ctypes.c_void_p, ctypes.c_int32), True),
    Symbol("autofuse_trace_begin", None, (ctypes.c_uint64,), True),
    Symbol("autofuse_trace_end", ctypes.c_uint64, (ctypes.POINTER(ctypes.POINTER(TraceRecord)),), True),
    Symbol("autofuse_needs_all_blocks", ctypes.c_int32, (), True),
    Symbol(
        "autofuse_phases",
        ctypes.c_int32,
        (ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint32), ctypes.c_int32),
        True,
    ),
    Symbol(
        "autofuse_tiling_pinned",
        ctypes.c_int32,
        (
            _I64,
            ctypes.POINTER(AutofuseMachine),
            ctypes.POINTER(AutofusePin),
            ctypes.c_int32,
            ctypes.c_void_p,
            ctypes.POINTER(ctypes.c_uint32),
            ctypes.POINTER(ctypes.c_uint64),
        ),
        True,
    ),
    Symbol(
        "autofuse_plan_keep",
        None,
        (
            _I64,
            ctypes.POINTER(AutofuseMachine),
            ctypes.c_void_p,
            ctypes.c_uint32,
            ctypes.c_uint64,
            ctypes.c_int32,
        ),
        True,
    ),
    Symbol("autofuse_block_cost", ctypes.c_int64, (ctypes.c_void_p,), True),
)
