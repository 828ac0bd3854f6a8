"""The simulator on traces whose times can be worked out by hand, each pipe rule alone."""
import pytest

from tf_autofuse.machine import MACHINES
from tf_autofuse.profiling.instructions import cost_of, vector_cycles
from tf_autofuse.profiling.simulator import simulate
from tf_autofuse.runtime.library import Traced
from tf_autofuse.tiling import cost_table as table

LAUNCH = 300.0
V_READY, MTE3_READY = LAUNCH + 37.37, LAUNCH + 497.36
ADD = 0.0206 * 64 + 23.2225  # one repeat of floats


def mte2_ready(blocks, large=False):
    return LAUNCH + (32.72 * blocks + 1575.03 if large else 15.89 * blocks + 882.09)


def load(block, bytes_, count=1, gap=0):
    return Traced(block, "MTE2", "instruction", "DataCopyPad", bytes_, bytes_ // 4, count, "k.cpp", 1,
                  "float", (bytes_ // count, gap, 0))


def store(block, bytes_, count=1, gap=0):
    return Traced(block, "MTE3", "instruction", "DataCopyPad", bytes_, bytes_ // 4, count, "k.cpp", 2,
                  "float", (bytes_ // count, 0, gap))


def add(block, elements=64):
    return Traced(block, "V", "instruction", "Add", elements * 4, elements, 1, "k.cpp", 3, "float")


def scalar(block, api="LocalTensor::GetValue"):
    return Traced(block, "S", "instruction", api, 4, 1, 0, "k.cpp", 4)


def put(block, source, target, event=0):
    return Traced(block, source, "set flag", "SetFlag", 0, 0, 0, "k.cpp", 5, "none", (0, 0, 0), source,
                  target, event)


def wait(block, source, target, event=0):
    return Traced(block, target, "wait flag", "WaitFlag", 0, 0, 0, "k.cpp", 6, "none", (0, 0, 0), source,
                  target, event)


def barrier(block, pipe="ALL"):
    return Traced(block, pipe, "barrier", "PipeBarrier", 0, 0, 0, "k.cpp", 7)


def sync_all(block):
    return [barrier(block), Traced(block, "ALL", "all blocks", "SyncAll", 0, 0, 0, "k.cpp", 8)]


def load_cycles(bytes_, cores):
    return 27.01 + bytes_ / (7.9052 + 7.3100 / cores)


def store_cycles(bytes_, cores):
    return 12.09 + bytes_ / (9.96 + 3.79 / cores)


def test_nothing_but_the_launch():
    done = simulate([], 3)
    assert done.cycles == LAUNCH and done.block_cycles == (0.0, 0.0, 0.0) and done.spans == ()


def test_one_load():
    done = simulate([load(0, 4096)], 1)
    assert done.cycles == pytest.approx(mte2_ready(1) + load_cycles(4096, 1))
    assert done.busy["MTE2"] == (pytest.approx(load_cycles(4096, 1)),)
    assert done.overlapped == pytest.approx(done.cycles)


def test_a_large_load_has_the_large_start_and_rate():
    done = simulate([load(0, 32768)], 1)
    assert done.cycles == pytest.approx(mte2_ready(1, True) + 27.01 + 32768 / (9.9074 + 15.8960))


def test_pipes_run_at_once_and_a_pipe_in_order():
    done = simulate([load(0, 4096), add(0), store(0, 4096), add(0)], 1)
    ends = {(s.pipe, s.start): s.end for s in done.spans}
    assert ends[("V", V_READY)] == pytest.approx(V_READY + ADD)
    assert ends[("V", V_READY + ADD)] == pytest.approx(V_READY + 2 * ADD)
    assert ends[("MTE3", MTE3_READY)] == pytest.approx(MTE3_READY + store_cycles(4096, 1))
    assert done.cycles == pytest.approx(mte2_ready(1) + load_cycles(4096, 1))
    assert done.mean_busy("V") == pytest.approx(2 * ADD)


def chain(block, events=(0, 0)):
    return [load(block, 4096), put(block, "MTE2", "V", events[0]), wait(block, "MTE2", "V", events[0]),
            add(block), put(block, "V", "MTE3", events[1]), wait(block, "V", "MTE3", events[1]),
            store(block, 4096)]


def test_flags_chain_load_compute_store():
    done = simulate(chain(0), 1)
    assert done.cycles == pytest.approx(mte2_ready(1) + load_cycles(4096, 1) + ADD + store_cycles(4096, 1))


def test_two_tiles_overlap():
    """The second load runs while the first tile is added and stored."""
    load_time, store_time = load_cycles(4096, 1), store_cycles(4096, 1)
    done = simulate(chain(0) + chain(0, (1, 1)), 1)
    assert done.cycles == pytest.approx(
        mte2_ready(1) + max(2 * load_time + ADD, load_time + ADD + store_time) + store_time)


def test_one_buffer_only_makes_the_second_load_wait():
    """The buffer is free again when the addition that read it has ended."""
    free = [put(0, "V", "MTE2", 3), wait(0, "V", "MTE2", 3)]
    done = simulate(chain(0) + free + chain(0, (1, 1)), 1)
    tile = load_cycles(4096, 1) + ADD
    assert done.cycles == pytest.approx(mte2_ready(1) + 2 * tile + store_cycles(4096, 1))


def test_flags_of_one_id_pair_in_order():
    """Two sets in flight of different pipes: the second wait is for the second set."""
    records = [load(0, 4096), put(0, "MTE2", "V", 0), wait(0, "MTE2", "V", 0), load(0, 8192),
               put(0, "MTE2", "V", 0), wait(0, "MTE2", "V", 0), add(0)]
    done = simulate(records, 1)
    assert done.cycles == pytest.approx(mte2_ready(1) + load_cycles(4096, 1) + load_cycles(8192, 1) + ADD)


def test_a_set_behind_a_wait_passes_it_on():
    """V waits for the load and sets a flag without working: MTE3 waits for the load through it."""
    records = [load(0, 4096), put(0, "MTE2", "V"), wait(0, "MTE2", "V"), put(0, "V", "MTE3"),
               wait(0, "V", "MTE3"), store(0, 4096)]
    done = simulate(records, 1)
    assert done.cycles == pytest.approx(mte2_ready(1) + load_cycles(4096, 1) + store_cycles(4096, 1))


def test_the_scalar_unit_holds_back_what_it_issues_later():
    records = [load(0, 4096), put(0, "MTE2", "S"), wait(0, "MTE2", "S"), scalar(0), add(0)]
    done = simulate(records, 1)
    read = table.SCALAR["LocalTensor::GetValue"]
    assert done.cycles == pytest.approx(mte2_ready(1) + load_cycles(4096, 1) + read + ADD)


def test_a_barrier_of_all_pipes():
    done = simulate([load(0, 4096), barrier(0), add(0)], 1)
    assert done.cycles == pytest.approx(mte2_ready(1) + load_cycles(4096, 1) + ADD)
    assert simulate([load(0, 4096), barrier(0, "V"), add(0)], 1).cycles < done.cycles


def test_cores_share_memory():
    """Four cores load as much each: at the rate of four, all at once."""
    done = simulate([load(b, 8192) for b in range(4)], 4)
    assert done.block_cycles == pytest.approx([mte2_ready(4) + load_cycles(8192, 4)] * 4)


def test_a_core_that_is_done_leaves_its_share():
    """Two cores; one loads 4000 B, the other 8000: together until the first is done, then alone."""
    both, alone = 7.9052 + 7.3100 / 2, 7.9052 + 7.3100
    done = simulate([load(0, 4000), load(1, 8000)], 2)
    first = mte2_ready(2) + 27.01 + 4000 / both
    assert done.block_cycles == pytest.approx([first, first + 4000 / alone])
    assert done.cycles == max(done.block_cycles)


def test_loads_and_stores_share_with_their_own_kind_only():
    done = simulate([load(0, 8192), store(1, 8192)], 2)
    assert done.block_cycles == pytest.approx([mte2_ready(2) + load_cycles(8192, 1),
                                               MTE3_READY + store_cycles(8192, 1)])


def test_sync_all_waits_for_the_slowest_block():
    records = [load(0, 4096)] + sync_all(0) + [add(0)] + sync_all(1) + [add(1)]
    done = simulate(records, 2)
    begin = mte2_ready(2) + load_cycles(4096, 1)
    assert done.block_cycles == pytest.approx([begin + ADD] * 2)


def test_what_no_launch_records():
    with pytest.raises(ValueError, match="k.cpp:6 waits for flag V_MTE3 2, which is not set"):
        simulate([wait(0, "V", "MTE3", 2)], 1)
    with pytest.raises(ValueError, match="not all of the 2 blocks reach every SyncAll"):
        simulate(sync_all(0) + [add(1)], 2)


@pytest.mark.parametrize("record,cores,cycles", [
    (store(0, 4096), 1, 12.09 + 4096 / 13.75),
    (store(0, 4 * 1000, 4, 100), 1, None),
    (store(0, 40), 1, 40 / 2 + 1.3),
    (store(0, 1000), 1, 256 + (1000 - 512) / 13.75),
    (store(0, 12, 3), 1, 12.09 + 3 * ((-0.101 - 2.2) * 4 + 8.89 + 96.24)),
    (load(0, 64, 4), 1, 27.01 + 4 * 512 / 15.2152),
    (load(0, 4096, 4, 100), 1, 27.01 + 0.07 * 4 * 100 + 4096 / 15.2152),
    (store(0, 4096, 4, 300), 1, 12.09 + 0.02 * 4 * 44 + 4096 / 13.75),
])
def test_copies_cost_what_the_published_formulas_say(record, cores, cycles):
    if cycles is None:  # rows of 1000 B are not whole blocks: no gap, the last 512 B at a price of their own
        cycles = 256 + (4000 - 512) / 13.75
    done = simulate([record], cores)
    assert done.busy[record.pipe][0] == pytest.approx(cycles)


def test_vector_instructions():
    assert vector_cycles("Add", "half", 128) == pytest.approx(0.0103 * 128 + 22.2173)
    assert vector_cycles("Cast", "uint8", 100) == pytest.approx(0.0083 * 100 + 19.9408)
    assert vector_cycles("CompareScalar", "float", 64) == pytest.approx(0.016 * 64 + 21.9749)
    unknown = table.UNKNOWN_VECTOR.single
    assert vector_cycles("NoSuchInstruction", "float", 10) == pytest.approx(unknown.k * 10 + unknown.b)
    assert cost_of(barrier(0)).fixed == 0


def test_every_renamed_instruction_has_a_price():
    assert set(table.TRACE_NAMES.values()) <= set(table.VECTOR)


def test_microseconds():
    done = simulate([load(0, 4096)], 1)
    machine = MACHINES["Ascend910B4-1"]
    assert done.microseconds(machine) == pytest.approx(done.cycles / 1500)
    assert done.microseconds(machine, 3000.0) == 2.0


def test_spans_cover_the_busy_time_and_never_overlap_on_a_pipe():
    records = []
    for tile in range(5):
        for block in range(3):
            records += chain(block, (tile % 2, tile % 2))
    done = simulate(records, 3)
    for pipe in ("V", "MTE2", "MTE3"):
        for block in range(3):
            own = [s for s in done.spans if s.pipe == pipe and s.block == block]
            assert sum(s.end - s.start for s in own) == pytest.approx(done.busy[pipe][block])
            assert all(a.end <= b.start + 1e-6 for a, b in zip(own, own[1:]))
    assert done.cycles >= done.overlapped
