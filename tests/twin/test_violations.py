"""The twin as a sanitizer: each rule broken by a small kernel, and kernels that come close and are right."""

import re
import threading

import numpy as np
import pytest

from tests.twin import probes

# kernel: what the report must contain, after "kernel NAME block 0: FILE:LINE: API: ".
BAD = {
    "ub_too_large": "InitBuffer: UB overflow: .*196384 bytes.*196352 usable",
    "ub_scratch": "Select: UB overflow: .*8 KiB scratch.*188192.*188160",
    "ub_beyond_buffer": r"Add: UB overflow: dst spans bytes \[0, 1028\) of buffer 1, which has 1024",
    "ub_misaligned": "Add: misaligned UB address: src0 at UB 0x4 .*not 32 B aligned",
    "ub_no_buffer": "Add: invalid tensor: dst",
    "buffers_65": "InitBuffer: too many buffers: .*64",
    "queue_buffers_9": "InitBuffer: too many queue buffers: 2 more in VECIN after 8; 8 ",
    "two_pipes": "TPipe: two pipes",
    "pipe_after_pipe_leak": "TPipe.*: queue misuse: buffer 0 of queue 0 was allocated and never freed",
    "field_block_count": "DataCopyPad: field over its limit: blockCount is 4096, at most 4095",
    "field_block_len": "DataCopyPad: field over its limit: blockLen is 2097152, at most 2097151",
    "field_block_len_odd": "DataCopyPad: field over its limit: blockLen 6 is not a multiple of 4",
    "field_padding": "DataCopyPad: field over its limit: leftPadding bytes is 36, at most 32",
    "repeat_256": "WholeReduceSum: repeat over its limit: repeat 256, at most 255",
    "mask_lanes": "Add: mask: 65 lanes; a repeat has 64",
    "compare_count": "Compare: count: count 63 is 252 B; Compare needs a multiple of 256 B",
    "compare_int_lt": "Compare: unsupported dtype: int32 compares for EQ only",
    "dtype_add_u8": "Add: unsupported dtype: no form for uint8",
    "dtype_cast": "Cast: unsupported dtype: no Cast from float to int8",
    "cast_mode": "Cast: unsupported round mode: Cast half to float has no round mode 5",
    "cast_deq": "Cast: mode: int32 to half needs SetDeqScale",
    "tanh_tmp": "Tanh: UB overflow: sharedTmpBuffer",
    "gather_offset": "Gather: UB overflow: src spans",
    "tiling_size": "GET_TILING_DATA: GM out of bounds: the tiling struct has 4096 bytes",
    "queue_pop_empty": "DeQue: queue misuse: DeQue before EnQue",
    "queue_push_twice": "EnQue: queue misuse: EnQue of buffer 0, which is in the queue already",
    "queue_exhausted": "AllocTensor: queue misuse: AllocTensor with all 1 buffers in use",
    "queue_not_freed": "queue misuse: buffer 0 of queue 0 was allocated and never freed",
    "queue_not_popped": "queue misuse: buffer 0 of queue 0 was enqueued and never dequeued",
    "queue_freed_twice": "FreeTensor: queue misuse: FreeTensor of buffer 0, which was freed already",
    "queue_use_after_free": "Duplicate: use after free: dst at UB 0x0 belongs to buffer 0",
    "queue_use_while_queued": "Duplicate: queue misuse: dst at UB 0x0 is in a queue",
    "queue_wrong": "EnQue: queue misuse: EnQue of a tensor that is not from this queue",
    "queue_uninit": "AllocTensor: queue misuse: .*InitBuffer",
    "queue_full": r"EnQue: queue misuse: EnQue into a full queue \(depth 1\)",
    "uninit_store": "DataCopyPad: uninitialized UB: byte 0x400 .*byte 0 of output 0",
    "uninit_through_add": "DataCopyPad: uninitialized UB: byte 0x400 ",
    "uninit_tail": r"DataCopyPad: uninitialized UB: byte 0x4fc .*byte 252 of the row.*byte 252 of output 0",
    "uninit_scalar": "GetValue: uninitialized UB",
    "uninit_select": "DataCopyPad: uninitialized UB",
    "uninit_gather_offset": "Gather: uninitialized UB: offset 0",
    "gm_read_beyond": r"DataCopyPad: GM out of bounds: read of bytes \[240, 260\) of input 0, which has 256",
    "gm_write_beyond": r"DataCopyPad: GM out of bounds: write of bytes \[4, 260\) of output 0, which has 256",
    "gm_write_before": r"DataCopyPad: GM out of bounds: write of bytes \[-4, 0\) of output 0",
    "gm_write_input": r"DataCopyPad: write into an input: bytes \[0, 256\) of input 0",
    "gm_elsewhere": "DataCopyPad: GM out of bounds: .*not in any buffer",
    "gm_scalar_beyond": r"GetValue: GM out of bounds: read of bytes \[256, 260\) of input 0",
    "gm_read_own_store": "DataCopyPad: hazard: read after write in GM: pipe MTE2",
    "hazard_v_raw": "Add: hazard: read after write inside pipe V on src0 .*PipeBarrier<PIPE_V> is missing",
    "hazard_v_waw": "Mul: hazard: write after write inside pipe V on dst",
    "hazard_v_war": "Duplicate: hazard: write after read inside pipe V on dst",
    "hazard_load_use": r"Add: hazard: read after write: pipe V on src0 .*flag MTE2_V or a queue",
    "hazard_flag_too_early": "Add: hazard: read after write: pipe V",
    "hazard_compute_store": r"DataCopyPad: hazard: read after write: pipe MTE3 .*flag V_MTE3",
    "hazard_reload": r"DataCopyPad: hazard: write after read: pipe MTE2 .*flag V_MTE2",
    "hazard_store_overwrite": r"Duplicate: hazard: write after read: pipe V .*flag MTE3_V",
    "hazard_mte2_twice": "DataCopyPad: hazard: write after write inside pipe MTE2",
    "hazard_scalar_read": r"GetValue: hazard: read after write: pipe S .*flag V_S",
    "hazard_scalar_write": r"Add: hazard: read after write: pipe V .*flag S_V",
    "overlap_partial": "Add: overlap: dst .* overlaps src0 .*only the very same range",
    "overlap_widening": "Cast: overlap: .*in-place use is not allowed",
    "overlap_advanced": "Tanh: overlap: .*in-place use is not allowed",
    "overlap_brcb": "Brcb: overlap",
    "overlap_repeats": "Adds: overlap: src of repeat 1 .*is the dst of an earlier repeat",
    "overlap_dense_repeats": "Adds: overlap: dst .* overlaps src ",
    "event_set_twice": "SetFlag: wrong event id: SetFlag V_MTE3 id 1 set twice",
    "event_wait_unset": "WaitFlag: wrong event id: WaitFlag V_MTE3 id 1 without a SetFlag",
    "event_other_id": "WaitFlag: wrong event id: WaitFlag V_MTE3 id 2",
    "event_id_8": "SetFlag: wrong event id: id 8; ids are 0 to 7",
    "event_not_waited": "wrong event id: flag V_MTE3 id 1 set at line .* never waited for",
    "event_of_queue": "SetFlag: wrong event id: .*queue 0 holds that id",
    "event_alloc_all": "AllocEventID: out of event ids: all 8 ids of event V_S",
    "event_release": "ReleaseEventID: wrong event id: .*not allocated",
    "mode_counter": "mask mode: the kernel ends in Counter mode",
    "mode_mask": "mask mode: the kernel ends with a partial vector mask",
    "mode_atomic": "atomic mode: the kernel ends with atomic",
}
GOOD = {
    "ub_all",
    "pipe_reset",
    "pipe_after_pipe",
    "uninit_beyond_count",
    "gm_read_own_store_waited",
    "hazard_v_independent",
    "hazard_load_flag",
    "hazard_through_scalar",
    "hazard_queues_good",
    "queue_turns",
    "overlap_same",
    "accumulate_repeats",
    "event_sync",
    "blocks_same",
    "tiling_key",
    "nothing",
}


@pytest.fixture(scope="module")
def run():
    return probes.library("probe_bad")


def launch(run, name, **options):
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    run.launch(name, [x, y], [0, 1], 64, **options)
    return y


@pytest.mark.parametrize("name", sorted(BAD))
def test_bad_kernels(run, name):
    with pytest.raises(probes.Violation) as report:
        launch(run, name)
    text = str(report.value)
    assert re.search(BAD[name], text), text
    assert re.match(r"kernel %s block 0: .*probe_(bad\.cpp|.*\.h):\d+: " % name, text), text


@pytest.mark.parametrize("name", sorted(GOOD))
def test_good_kernels(run, name):
    y = launch(run, name)
    x = np.arange(64, dtype=np.float32)
    expect = {
        "hazard_load_flag": 2 * x,
        "hazard_through_scalar": 2 * x,
        "hazard_queues_good": 2 * x,
        "overlap_same": 2 * x,
        "accumulate_repeats": np.full(64, 4.0),
        "blocks_same": x,
        "tiling_key": x,
        "event_sync": 2 * x,
        "queue_turns": x * 0 + (np.arange(64) < 2),
    }
    if name in expect:
        assert (y == expect[name]).all()


def test_a_violation_does_not_spoil_the_next_launch(run):
    for name in sorted(BAD)[::7]:
        with pytest.raises(probes.Violation):
            launch(run, name)
        assert (launch(run, "overlap_same") == 2 * np.arange(64)).all()


def test_blocks(run):
    with pytest.raises(probes.Violation, match="GM written by two blocks: blocks 0 and 1"):
        launch(run, "blocks_same", blocks=2)
    with pytest.raises(probes.Violation, match="GM written by two blocks"):
        launch(run, "blocks_overlap", blocks=4)
    with pytest.raises(probes.Violation, match="GM written by two blocks"):
        launch(run, "blocks_interleaved_bad", blocks=4)
    x = np.arange(64, dtype=np.float32)
    assert (launch(run, "blocks_apart", blocks=4).reshape(4, 16) == x[:16]).all()
    got = launch(run, "blocks_interleaved", blocks=4).reshape(8, 4, 2)
    assert (got[:, 0] == got[:, 3]).all() and (got[:, 0, 0] == x[::8]).all()
    assert (launch(run, "blocks_atomic", blocks=5) == 5 * x).all()


def test_blocks_of_a_launch_in_several_calls(run):
    """The comparison of what blocks wrote also spans calls that each run some of the blocks."""
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    tiling = probes.ProbeTiling(64, probes.TILE)
    for round_ in range(3):
        run.launch("blocks_same", [x, y], [0, 1], 64, blocks=3, first=0, last=2, tiling=tiling)
        with pytest.raises(probes.Violation, match="GM written by two blocks"):
            run.launch("blocks_same", [x, y], [0, 1], 64, blocks=3, first=2, last=3, tiling=tiling)
    for first in (3, 0, 2, 1):
        run.launch("blocks_apart", [x, y], [0, 1], 64, blocks=4, first=first, last=first + 1, tiling=tiling)
    assert (y.reshape(4, 16) == x[:16]).all()


def test_meeting_blocks(run):
    n = 6
    x, y, w = np.zeros(64, np.float32), np.zeros(n * n, np.int32), np.zeros(64, np.int32)
    run.launch("blocks_meet", [x, y], [0, 1], 64, blocks=n, needs_all=True, workspace=w)
    assert (y.reshape(n, n) == np.arange(1, n + 1)).all()
    with pytest.raises(probes.Violation, match="SyncAll: .*does not run them at the same time"):
        run.launch("blocks_meet", [x, y], [0, 1], 64, blocks=n, workspace=w)
    with pytest.raises(probes.Violation, match="SyncAll: .*a device waits forever"):
        launch(run, "blocks_one_missing", blocks=4, needs_all=True)
    with pytest.raises(probes.Violation, match="block 1: .*uninitialized UB"):
        launch(run, "blocks_one_fails", blocks=4, needs_all=True)
    with pytest.raises(probes.Violation, match="bad arguments"):
        launch(run, "blocks_meet", blocks=4, first=1, needs_all=True)


def test_threads(run):
    """Blocks of several launches at once: states don't mix, violations stay with their launch."""
    failures = []

    def work(k):
        for i in range(50):
            try:
                if i % 3 == 2:
                    launch(run, "uninit_store")
                    failures.append("no violation")
                elif not (launch(run, "blocks_apart", blocks=4).reshape(4, 16) == np.arange(16)).all():
                    failures.append("wrong values")
            except probes.Violation as e:
                if i % 3 != 2 or "uninitialized" not in str(e):
                    failures.append(str(e))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures, failures[:3]


def test_error_text_is_cut_to_its_capacity(run):
    import ctypes

    tiling, error = probes.ProbeTiling(64, 2048), ctypes.create_string_buffer(b"\xff" * 32, 32)
    code = run.lib.probe_run(
        b"two_pipes",
        None,
        None,
        None,
        0,
        None,
        ctypes.c_uint64(0),
        ctypes.byref(tiling),
        1,
        0,
        1,
        0,
        error,
        ctypes.c_uint64(16),
    )
    assert code == 1 and error.raw[:16] == b"kernel two_pipe\0" and error.raw[16:] == b"\xff" * 16
