"""The rows of op_summary_*.csv, with the columns that Ascend's msprof writes, and two of ours.

Each op of each run is a row measured on the host; each kernel of one iteration is also a row modelled for
the chip. `Time Source` says which: a modelled time is an estimate, not a measurement."""

import csv
from pathlib import Path
from typing import Any, Callable, Dict, FrozenSet, List, NamedTuple, Optional, Sequence, Tuple

from tf_autofuse.ir import proto
from tf_autofuse.machine import Machine
from tf_autofuse.profiling.npu_time import Modelled, TimeOf, analytic, model_fused, model_op
from tf_autofuse.profiling.records import OpRun, Profile, Tensor

MEASURED = "measured on the host"
_DTYPES = {"float32": "FLOAT", "float16": "FLOAT16", "float64": "DOUBLE", "bfloat16": "DT_BF16"}


class Row(NamedTuple):
    """One row. start, duration: microseconds; modelled: for rows of a chip. source: what `Time Source`
    says."""

    op: OpRun
    start: float
    duration: float
    wait: float
    source: str
    origin: Tuple[str, ...]
    modelled: Optional[Modelled]
    task: int
    is_dynamic: bool = False


class Column(NamedTuple):
    """value: of a row and the machine. meaning: for docs/profiling.md."""

    name: str
    value: Callable[[Row, Machine], Any]
    meaning: str


def _shapes(tensors: Sequence[Tensor]) -> str:
    """In double quotes, as msprof has them; nothing where there is no tensor."""
    return (
        ""
        if not tensors
        else '"%s"' % ";".join("" if t.dims is None else ",".join(map(str, t.dims)) for t in tensors)
    )


def _dtypes(tensors: Sequence[Tensor]) -> str:
    return ";".join(_DTYPES.get(t.dtype, t.dtype.upper()) or "UNKNOWN" for t in tensors)


def _on(core: str, text: str, value: Callable[[Modelled, Machine], float]):
    """A column of the kernels on this kind of core ('aic', 'aiv'): 0 for modelled ones on the other kind,
    empty for measured ones."""

    def column(row: Row, machine: Machine) -> str:
        if row.modelled is None:
            return ""
        here = row.modelled.on_cube == (core == "aic")
        return text % (value(row.modelled, machine) if here else 0)

    return column


def _time(core: str, pipe: Optional[str]):
    return _on(core, "%.3f", lambda k, m: (k.cycles if pipe is None else k.pipe(pipe)) / m.clock_mhz)


def _cycles(core: str):
    return _on(core, "%.0f", lambda k, m: k.cycles * k.block_dim)


def _ratio(core: str, pipe: str):
    return _on(core, "%.3f", lambda k, m: k.pipe(pipe) / k.cycles if k.cycles else 0.0)


_cube_utilization = _on(
    "aic", "%.3f", lambda k, m: 100.0 * k.pipe("mac") * k.block_dim / (k.cycles * m.cube_cores)
)


def _formats(tensors: Sequence[Tensor]) -> str:
    return ";".join("ND" for _ in tensors)


def _task_type(row: Row) -> str:
    if row.modelled is None:
        return "HOST_CPU"
    return "AI_CORE" if row.modelled.on_cube else "AI_VECTOR_CORE"


def _not_there(row: Row, machine: Machine) -> str:
    return "N/A"


COLUMNS: Tuple[Column, ...] = (
    Column("Device_id", lambda r, m: 0, "always 0"),
    Column("Model ID", lambda r, m: r.op.run, "number of the session run, from 0"),
    Column("Task ID", lambda r, m: r.task, "position of the task among the rows of its source"),
    Column("Stream ID", lambda r, m: 0 if r.modelled else r.op.thread, "the executor's thread; modelled: 0"),
    Column("Op Name", lambda r, m: r.op.name, "the node's name; a fused op's names its ops"),
    Column("OP Type", lambda r, m: r.op.op, "AscBackend and FusedAscBackend are fused ops"),
    Column(
        "OP State",
        lambda r, m: "dynamic" if r.is_dynamic else "static",
        "dynamic: one kernel for many shapes",
    ),
    Column(
        "Task Type",
        lambda r, m: _task_type(r),
        "measured: HOST_CPU; modelled: AI_CORE (cube) or AI_VECTOR_CORE",
    ),
    Column(
        "Task Start Time(us)", lambda r, m: "%.3f" % r.start, "measured: since the epoch; modelled: from 0"
    ),
    Column(
        "Task Duration(us)",
        lambda r, m: "%.3f" % r.duration,
        "of the op, or of the modelled kernel with launch",
    ),
    Column(
        "Task Wait Time(us)", lambda r, m: "%.3f" % r.wait, "since the end of the row before on its stream"
    ),
    Column(
        "Block Dim",
        lambda r, m: r.modelled.block_dim if r.modelled else 0,
        "cores of the modelled plan: cube or vector cores, by Task Type",
    ),
    Column("Mix Block Dim", lambda r, m: 0, "always 0: no kernel mixes core kinds"),
    Column("HF32 Eligible", lambda r, m: "NO", "always NO"),
    Column("Input Shapes", lambda r, m: _shapes(r.op.inputs), "dims of the inputs, ; between inputs"),
    Column("Input Data Types", lambda r, m: _dtypes(r.op.inputs), "their element types"),
    Column("Input Formats", lambda r, m: _formats(r.op.inputs), "always ND"),
    Column("Output Shapes", lambda r, m: _shapes(r.op.outputs), "as for the inputs"),
    Column("Output Data Types", lambda r, m: _dtypes(r.op.outputs), "as for the inputs"),
    Column("Output Formats", lambda r, m: _formats(r.op.outputs), "always ND"),
    Column("Context ID", _not_there, "always N/A"),
    Column("aicore_time(us)", _time("aic", None), "modelled: the whole kernel, where it runs on cube cores"),
    Column("aic_total_cycles", _cycles("aic"), "modelled: cycles of all its cube cores together"),
    Column("aic_mac_time(us)", _time("aic", "mac"), "modelled: multiplying, of one cube core"),
    Column("aic_mac_ratio", _ratio("aic", "mac"), "its part of aicore_time"),
    Column("aic_scalar_time(us)", _not_there, "the model has no scalar unit"),
    Column("aic_scalar_ratio", _not_there, "likewise"),
    Column("aic_mte1_time(us)", _time("aic", "mte1"), "modelled: copies from L1 to L0 of one cube core"),
    Column("aic_mte1_ratio", _ratio("aic", "mte1"), "its part of aicore_time"),
    Column("aic_mte2_time(us)", _time("aic", "cube_mte2"), "modelled: copies from GM and L2 to L1"),
    Column("aic_mte2_ratio", _ratio("aic", "cube_mte2"), "its part of aicore_time"),
    Column("aic_fixpipe_time(us)", _time("aic", "fixpipe"), "modelled: copies from L0C to GM"),
    Column("aic_fixpipe_ratio", _ratio("aic", "fixpipe"), "its part of aicore_time"),
    Column("aic_icache_miss_rate", _not_there, "the model has no instruction cache"),
    Column("aiv_time(us)", _time("aiv", None), "modelled: the whole kernel, where it runs on vector cores"),
    Column("aiv_total_cycles", _cycles("aiv"), "modelled: cycles of all its vector cores together"),
    Column("aiv_vec_time(us)", _time("aiv", "vector"), "modelled: vector instructions of one core"),
    Column("aiv_vec_ratio", _ratio("aiv", "vector"), "its part of aiv_time"),
    Column("aiv_scalar_time(us)", _not_there, "the model has no scalar unit"),
    Column("aiv_scalar_ratio", _not_there, "likewise"),
    Column("aiv_mte2_time(us)", _time("aiv", "mte2"), "modelled: copies from GM to UB of one core"),
    Column("aiv_mte2_ratio", _ratio("aiv", "mte2"), "its part of aiv_time"),
    Column("aiv_mte3_time(us)", _time("aiv", "mte3"), "modelled: copies from UB to GM of one core"),
    Column("aiv_mte3_ratio", _ratio("aiv", "mte3"), "its part of aiv_time"),
    Column("aiv_icache_miss_rate", _not_there, "the model has no instruction cache"),
    Column(
        "cube_utilization(%)",
        _cube_utilization,
        "modelled: multiplying, of what all cube cores could do in the kernel's time",
    ),
    Column("Time Source", lambda r, m: r.source, "ours: measured on the host, or modelled for which chip"),
    Column("Original Ops", lambda r, m: ";".join(r.origin), "ours: the TF nodes that a fused op stands for"),
)


def measured_rows(profile: Profile) -> List[Row]:
    """Every op of every run, in order of start."""
    rows, ends, dynamic = [], {}, _dynamic(profile)
    for task, op in enumerate(sorted(profile.ops, key=lambda o: (o.run, o.start))):
        start, duration = op.start / 1e3, op.duration / 1e3
        wait = max(0.0, start - ends[op.thread]) if op.thread in ends else 0.0
        ends[op.thread] = start + duration
        kernel = profile.kernels.get(op.name)
        rows.append(
            Row(
                op,
                start,
                duration,
                wait,
                MEASURED,
                kernel.origin if kernel else (),
                None,
                task,
                op.name in dynamic,
            )
        )
    return rows


class Kind(NamedTuple):
    """Runs with the same ops and dims: their numbers, and the ops of the last one in order of start."""

    runs: Tuple[int, ...]
    ops: Tuple[OpRun, ...]


def kinds_of_runs(profile: Profile) -> List[Kind]:
    """In the order in which they first came."""
    runs: Dict[int, List[OpRun]] = {}
    for op in profile.ops:
        runs.setdefault(op.run, []).append(op)
    kinds: Dict[Any, Kind] = {}
    for run in sorted(runs):
        ops = tuple(sorted(runs[run], key=lambda o: o.start))
        key = frozenset((o.name, o.inputs, o.outputs) for o in ops)
        before = kinds[key].runs if key in kinds else ()
        kinds[key] = Kind(before + (run,), ops)
    return list(kinds.values())


def _dynamic(profile: Profile) -> FrozenSet[str]:
    """Names of the fused ops whose kernels have symbols."""
    found = set()
    for name, kernel in profile.kernels.items():
        try:
            if proto.from_bytes(kernel.asc_graph).sizes:
                found.add(name)
        except proto.FormatError:
            continue
    return frozenset(found)


def modelled_rows(
    profile: Profile, machine: Machine, kinds: Optional[Sequence[Kind]] = None, time_of: TimeOf = analytic
) -> Tuple[List[Row], List[OpRun]]:
    """One modelled row for each kernel of the last run of each kind (the same ops with the same dims), one
    kernel after the other; and the ops that could not be modelled."""
    rows: List[Row] = []
    missing: List[OpRun] = []
    cache: Dict[Any, Optional[Modelled]] = {}
    clock, source, dynamic = 0.0, "modelled for %s" % machine.soc, _dynamic(profile)
    for kind in kinds_of_runs(profile) if kinds is None else kinds:
        for op in kind.ops:
            kernel = profile.kernels.get(op.name)
            facts = profile.facts(op.name)
            key = (kernel, op.op, op.inputs, op.outputs, repr(facts))
            if key not in cache:
                cache[key] = (
                    model_fused(kernel.asc_graph, op.inputs, machine, time_of)
                    if kernel
                    else model_op(op.op, op.inputs, op.outputs, machine, time_of, *facts)
                )
            modelled = cache[key]
            if modelled is None:
                missing.append(op)
            elif modelled.how != "none":
                duration = modelled.microseconds(machine)
                rows.append(
                    Row(
                        op,
                        clock,
                        duration,
                        0.0,
                        source,
                        kernel.origin if kernel else (),
                        modelled,
                        len(rows),
                        op.name in dynamic,
                    )
                )
                clock += duration
    return rows, missing


def write_csv(path: Path, rows: Sequence[Row], machine: Machine) -> None:
    with open(str(path), "w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow([c.name for c in COLUMNS])
        for row in rows:
            writer.writerow([c.value(row, machine) for c in COLUMNS])


def document() -> str:
    """docs/op-summary.md."""
    lines = [
        "# The columns of op_summary_*.csv",
        "",
        "Made by `tf-autofuse docs --write` from the table in `tf_autofuse/profiling/op_summary.py`; how to",
        "get such a file: docs/profiling.md. Names and order are msprof's for the pipe utilization metrics;",
        "the last two are ours. msprof has more columns with other options (Model Name, Infer ID, other",
        "metrics); newer releases call Block Dim Block Num. Values that a row can't have are empty (times",
        "of pipes in a measured row), 0 (cube pipes of a vector kernel) or N/A (no unit in the model).",
        "",
        "| Column | What it holds |",
        "|---|---|",
    ]
    return "\n".join(lines + ["| %s | %s |" % (c.name, c.meaning) for c in COLUMNS]) + "\n"
