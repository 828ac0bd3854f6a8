"""A timeline in Chrome's trace format (chrome://tracing, Perfetto): the host's threads, and the chip's pipes.

Process 1 is measured, one lane for each executor thread. Process 2 is modelled: one lane for the kernels
and one for each pipe, where a pipe's bar is its busy time, set at the kernel's begin. Times are
microseconds."""

import json
from pathlib import Path
from typing import Any, Dict, List, Sequence

from tf_autofuse.machine import Machine
from tf_autofuse.profiling.op_summary import Row

HOST, CHIP = 1, 2
_LANES = (
    ("kernels", None),
    ("MTE2 (GM to UB)", "mte2"),
    ("V (vector)", "vector"),
    ("MTE3 (UB to GM)", "mte3"),
    ("cube: MTE2 (GM to L1)", "cube_mte2"),
    ("cube: MTE1 (L1 to L0)", "mte1"),
    ("cube: M (multiply)", "mac"),
    ("cube: FIXPIPE (L0C to GM)", "fixpipe"),
)


def events(measured: Sequence[Row], modelled: Sequence[Row], machine: Machine) -> List[Dict[str, Any]]:
    found = [
        _name("process_name", HOST, 0, "host (measured)"),
        _name("process_name", CHIP, 0, "%s (modelled)" % machine.soc),
    ]
    threads = {t: i for i, t in enumerate(sorted({r.op.thread for r in measured}))}
    found += [_name("thread_name", HOST, i, "thread %d" % t) for t, i in threads.items()]
    found += [_name("thread_name", CHIP, i, title) for i, (title, _) in enumerate(_LANES)]
    first = min([r.start for r in measured] or [0.0])
    for row in measured:
        found.append(_bar(row, HOST, threads[row.op.thread], row.start - first, row.duration))
    for row in modelled:
        for lane, (_, pipe) in enumerate(_LANES):
            cycles = row.modelled.cycles if pipe is None else row.modelled.pipe(pipe)
            if cycles:
                found.append(_bar(row, CHIP, lane, row.start, cycles / machine.clock_mhz))
    return found


def _name(kind: str, process: int, thread: int, text: str) -> Dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": process, "tid": thread, "args": {"name": text}}


def _bar(row: Row, process: int, thread: int, start: float, duration: float) -> Dict[str, Any]:
    args = {
        "op": row.op.op,
        "run": row.op.run,
        "time": row.source,
        "inputs": ["%s%s" % (t.dtype, list(t.dims) if t.dims is not None else "?") for t in row.op.inputs],
    }
    if row.origin:
        args["original ops"] = list(row.origin)
    if row.modelled is not None:
        args["block dim"] = row.modelled.block_dim
    # Both ends are rounded, not the length: bars of a lane that follow each other never overlap.
    begin, end = round(start, 3), round(start + duration, 3)
    return {
        "name": row.op.name,
        "cat": row.op.op,
        "ph": "X",
        "pid": process,
        "tid": thread,
        "ts": begin,
        "dur": round(end - begin, 3),
        "args": args,
    }


def write(path: Path, measured: Sequence[Row], modelled: Sequence[Row], machine: Machine) -> None:
    with open(str(path), "w", encoding="utf-8") as stream:
        json.dump({"displayTimeUnit": "ns", "traceEvents": events(measured, modelled, machine)}, stream)
