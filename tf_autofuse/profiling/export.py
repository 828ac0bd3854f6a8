"""From a PROF_* folder to mindstudio_profiler_output/: op_summary_*.csv and timeline_*.json."""

import time
from pathlib import Path
from typing import List, NamedTuple, Optional, Tuple

from tf_autofuse.machine import Machine, machine_for
from tf_autofuse.profiling import op_summary, timeline
from tf_autofuse.profiling.npu_time import MODELS
from tf_autofuse.profiling.records import profiles_below, read

OUTPUT = "mindstudio_profiler_output"


class Exported(NamedTuple):
    """summary, timeline: the files. measured, modelled: rows in them. microseconds: the modelled sum.
    missing: (op type, count) of what is not modelled."""

    summary: Path
    timeline: Path
    measured: int
    modelled: int
    microseconds: float
    missing: Tuple[Tuple[str, int], ...]


def export(output: Path, soc: Optional[str] = None, model: str = "analytic") -> List[Exported]:
    """Exports every profile in `output` (a PROF_* folder, or the folder of such). model: one of
    npu_time.MODELS. soc: the chip to model,
    default the one that the profile was recorded for. Raises ProfileError, ValueError for an unknown chip,
    OSError."""
    return [_export(folder, soc, model) for folder in profiles_below(output)]


def _export(folder: Path, soc: Optional[str], model: str) -> Exported:
    profile = read(folder)
    machine: Machine = machine_for(soc if soc is not None else str(profile.info.get("soc", "")))
    measured = op_summary.measured_rows(profile)
    modelled, missing = op_summary.modelled_rows(profile, machine, time_of=MODELS[model])
    target = folder / OUTPUT
    target.mkdir(exist_ok=True)
    stamp = time.strftime("%Y%m%d%H%M%S")
    summary, trace = target / ("op_summary_%s.csv" % stamp), target / ("timeline_%s.json" % stamp)
    op_summary.write_csv(summary, measured + modelled, machine)
    timeline.write(trace, measured, modelled, machine)
    counts = {}
    for op in missing:
        counts[op.op] = counts.get(op.op, 0) + 1
    return Exported(
        summary,
        trace,
        len(measured),
        len(modelled),
        sum(r.duration for r in modelled),
        tuple(sorted(counts.items())),
    )
