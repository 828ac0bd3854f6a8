"""The cost of one recorded instruction, from the tables that tiling plans with (tiling/cost_table.py).

Why: the simulator and the analytic model must differ in how they put costs together, not in the costs. On
entry a `Traced` instruction; on exit its `Cost`: cycles that depend on the instruction alone, and for a copy
between GM and UB an amount that flows at a rate which all cores share.
"""
from typing import Callable, Dict, NamedTuple, Tuple

from tf_autofuse.runtime.library import Traced
from tf_autofuse.tiling import cost_table as table

_NARROW = ("uint8", "int8", "int16", "uint16", "half", "bfloat16")


class Cost(NamedTuple):
    """fixed: cycles; flow: the kind of FLOWS that comes behind them, '' for none; amount: in that kind's
    unit."""

    fixed: float
    flow: str = ""
    amount: float = 0.0


def _rate(rate: table.Rate) -> Callable[[int], float]:
    return lambda cores: rate.alone + rate.shared / cores


#: Kind of transfer: (pipe, amount per cycle of each core while that many cores transfer on this pipe).
#: 'tiny': rows of less than 32 B, whose cost grows with the number of cores.
FLOWS: Dict[str, Tuple[str, Callable[[int], float]]] = {
    "load, large": ("MTE2", _rate(table.LOAD_RATE_LARGE)),
    "load, small": ("MTE2", _rate(table.LOAD_RATE_SMALL)),
    "store": ("MTE3", _rate(table.STORE_RATE)),
    "store, tiny": ("MTE3", lambda cores: 1.0 / cores),
}


def cost_of(record: Traced) -> Cost:
    """Cycles of an instruction; other records cost nothing."""
    if record.kind != "instruction":
        return Cost(0.0)
    if record.pipe == "V":
        return Cost(vector_cycles(record.api, record.dtype, record.elements))
    if record.pipe == "MTE2":
        return _load(record)
    if record.pipe == "MTE3":
        return _store(record)
    return Cost(table.SCALAR.get(record.api, 0.0))


def vector_cycles(api: str, dtype: str, elements: int) -> float:
    """Cycles of one vector instruction over `elements` lanes (inactive ones of a repeat included)."""
    name = table.TRACE_NAMES.get((api, dtype), table.TRACE_NAMES.get((api, ""), api))
    row = table.VECTOR.get(name, table.UNKNOWN_VECTOR)
    cost = row.half if dtype in _NARROW else row.single
    return cost.k * elements + cost.b


def _gap(record: Traced, number: int) -> int:
    """Bytes between two blocks in GM: DataCopyPad counts them in bytes, DataCopy in 32 B."""
    return record.params[number] * (1 if record.api == "DataCopyPad" else 32)


def _load(record: Traced) -> Cost:
    """The published formulas of a Load (cost_model.load_cost)."""
    count = record.repeat
    moved, block = record.bytes, record.bytes // max(1, count)
    fixed = table.LOAD_START
    if count > 1:
        fixed += table.LOAD_GAP * count * (_gap(record, 1) % 256)
    if moved >= table.DMA_LARGE_BYTES:
        return Cost(fixed, "load, large", moved)
    if count > 1 and block < 32:
        moved = count * table.LOAD_SMALL_BLOCK_BYTES
    return Cost(fixed, "load, small", moved)


def _store(record: Traced) -> Cost:
    """The published formulas of a Store (cost_model.store_cost)."""
    count = max(1, record.repeat)
    moved, block = record.bytes, record.bytes // count
    if block % 32 == 0:
        gap = table.STORE_GAP * count * (_gap(record, 2) % 256) if count > 1 else 0.0
        return Cost(table.STORE_START + gap, "store", moved)
    if block > 512:
        return Cost(table.STORE_UNALIGNED_CYCLES, "store", max(0, moved - 512))
    if block >= 32:
        return Cost(moved / table.STORE_UNALIGNED_RATE + table.STORE_UNALIGNED_START)
    byte_bd, byte, block_bd, block_cost = table.STORE_TINY
    return Cost(table.STORE_START + count * (byte * block + block_cost), "store, tiny",
                count * (byte_bd * block + block_bd))
