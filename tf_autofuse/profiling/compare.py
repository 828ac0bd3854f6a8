"""A script with fusion off and on, side by side.

Each side is a process of its own (frontend/recorded_run.py) in which every session run is profiled and what
it fetched is kept; random numbers are seeded alike, so that both sides compute the same. On exit: numbers
of the run that came most often (an iteration), and the worst difference of everything that was fetched."""

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from tf_autofuse.config import switch_on, wait_for_kernels
from tf_autofuse.machine import Machine, machine_for
from tf_autofuse.profiling import op_summary
from tf_autofuse.profiling.npu_time import MODELS
from tf_autofuse.profiling.records import Profile, ProfileError, profiles_below, read

SIDES = ("off", "on")
#: Units in the last place that the rounding of a few ops after each other comes to.
_ROUNDING_ULPS = 64


class CompareError(Exception):
    """The script can't be compared; the text says why and what to do."""


class Side(NamedTuple):
    """One iteration. ops: executed, of all kinds; fused: among them; kernels: on the NPU; modelled_us:
    their time; moved_bytes: between GM and UB; host_us: median wall time of the runs but the first;
    missing: ops that the model does not know."""

    runs: int
    ops: int
    fused: int
    kernels: int
    modelled_us: float
    moved_bytes: int
    host_us: float
    missing: Tuple[str, ...]


class Difference(NamedTuple):
    """Over everything fetched. compared: arrays; worst_absolute, worst_relative: of numbers that are finite
    on both sides (relative to the value without fusion, where that is not 0); mismatched: arrays of other
    shape or type, or with other NaN or infinite elements; unequal: arrays that differ at all."""

    compared: int
    unequal: int
    mismatched: int
    worst_absolute: float
    worst_relative: float


class Judgement(NamedTuple):
    """Whether docs/numerics.md allows a Difference. within: whether it does. text: why, for people."""

    within: bool
    text: str


class Comparison(NamedTuple):
    script: str
    soc: str
    off: Side
    on: Side
    difference: Difference
    judgement: Judgement


def compare(script: str, arguments: Sequence[str], soc: str = "", model: str = "analytic") -> Comparison:
    """model: one of npu_time.MODELS. Raises CompareError, ValueError for an unknown chip."""
    machine = machine_for(soc)
    if not os.path.exists(script):
        raise CompareError("%s can't be read; give the path of a Python script" % script)
    with tempfile.TemporaryDirectory(prefix="autofuse_compare_") as folder:
        folders = {}
        for side in SIDES:
            folders[side] = Path(folder) / side
            _run(side, folders[side], script, arguments)
        profiles = {side: _profiles(folders[side]) for side in SIDES}
        sides = [_side(profiles[side], machine, model) for side in SIDES]
        found, judgement = _judged(profiles, [fetched(folders[side]) for side in ("off", "on")])
        return Comparison(script, machine.soc, sides[0], sides[1], found, judgement)


def _run(side: str, folder: Path, script: str, arguments: Sequence[str]) -> None:
    environ = dict(os.environ, PYTHONHASHSEED="0")
    wait_for_kernels(environ)  # what is measured is what will run in the end
    if side == "on":
        switch_on(environ)
    command = [sys.executable, "-m", "tf_autofuse.frontend.recorded_run", side, str(folder), script]
    done = subprocess.run(
        command + list(arguments),
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        universal_newlines=True,
    )
    if done.returncode:
        raise CompareError(
            "the script ended with exit code %d with fusion %s; its last words:\n%s"
            % (done.returncode, side, "\n".join(done.stdout.splitlines()[-15:]))
        )


def _profiles(folder: Path) -> List[Profile]:
    try:
        return [read(p) for p in profiles_below(folder)]
    except ProfileError:
        raise CompareError("the script ran no session; compare a script that calls Session.run")


def _side(profiles: Sequence[Profile], machine: Machine, model: str) -> Side:
    kinds = [(profile, kind) for profile in profiles for kind in op_summary.kinds_of_runs(profile)]
    profile, main = max(kinds, key=lambda pair: (len(pair[1].runs), len(pair[1].ops)))
    rows, missing = op_summary.modelled_rows(profile, machine, [main], MODELS[model])
    walls = _walls(profile, main.runs)
    return Side(
        len(main.runs),
        len(main.ops),
        sum(op.name in profile.kernels for op in main.ops),
        len(rows),
        sum(r.duration for r in rows),
        sum(r.modelled.bytes_in + r.modelled.bytes_out for r in rows),
        statistics.median(walls[1:] or walls),
        tuple(sorted({op.op for op in missing})),
    )


def _walls(profile, runs: Sequence[int]) -> List[float]:
    """Wall time of each run: from the first op's start to the last one's end, in microseconds."""
    wanted, spans = set(runs), {}  # type: set, Dict[int, List[int]]
    for op in profile.ops:
        if op.run in wanted:
            span = spans.setdefault(op.run, [op.start, op.start + op.duration])
            span[0], span[1] = min(span[0], op.start), max(span[1], op.start + op.duration)
    return [(spans[run][1] - spans[run][0]) / 1e3 for run in runs]


def fetched(folder: Path) -> List[List[np.ndarray]]:
    """What each run fetched, as recorded_run kept it."""
    found = []
    for path in sorted(folder.glob("fetched_*.npz")):
        with np.load(str(path), allow_pickle=False) as arrays:
            found.append([arrays["a%d" % i] for i in range(len(arrays.files))])
    return found


def _judged(profiles: Mapping[str, Sequence[Profile]],
            values: Sequence[List[List[np.ndarray]]]) -> Tuple[Difference, Judgement]:
    """values: fetched with fusion off and on."""
    found = difference(*values)
    kinds = {op.name: op.op for profile in profiles["off"] for op in profile.ops}
    kernels = [kernel for profile in profiles["on"] for kernel in profile.kernels.values()]
    fused = {kinds[name] for kernel in kernels for name in kernel.origin if name in kinds}
    in_half = any(_computes_in_half(kernel.asc_graph) for kernel in kernels)
    return found, judge(found, fused, ulps(*values), in_half)


def _computes_in_half(asc_graph: bytes) -> bool:
    """Whether a kernel casts float32 to 16 bits between its inputs and outputs: a precision mode's doing."""
    from tf_autofuse.ir import proto

    try:
        fused = proto.from_bytes(asc_graph)
    except proto.FormatError:
        return False
    half = {node.y.dtype.name for graph in fused.graphs for node in graph.of_type("Cast")}
    return "float16" in half and not any(t.dtype.name == "float16" for t in fused.inputs + fused.outputs)


def judge(found: Difference, fused: Iterable[str], worst_ulps: float, in_half: bool) -> Judgement:
    """fused: TF op types. worst_ulps: see ulps(). in_half: whether float32 was computed in float16."""
    from tf_autofuse.ops.table import TF_OPS

    rounding = sorted(name for name in fused if name in TF_OPS and TF_OPS[name].exact == "ulp")
    if not found.unequal and not found.mismatched:
        return Judgement(True, "all are bit-identical")
    if found.mismatched:
        return Judgement(False, "arrays of other shapes, types, counts, NaNs or infinities: not rounding")
    if found.worst_absolute == 0.0:
        return Judgement(True, "only signs of zeros or bits of NaNs, which docs/numerics.md leaves open")
    size = "%.3g ULP of the array's largest value" % worst_ulps
    if in_half:
        near = worst_ulps <= _ROUNDING_ULPS * 2.0**13
        return Judgement(
            near,
            "%s; float32 is computed in float16 here, as on the NPU (precision_mode), %s"
            % (size, "which explains it" if near else "but that explains less"),
        )
    if not rounding:
        return Judgement(
            False,
            "%s, but all fused ops promise TensorFlow's bits (docs/numerics.md); please report it" % size,
        )
    listed = ", ".join(rounding[:5]) + (", ..." if len(rounding) > 5 else "")
    if worst_ulps <= _ROUNDING_ULPS:
        return Judgement(
            True, "rounding: %s; docs/numerics.md allows it for the fused %s" % (size, listed)
        )
    return Judgement(
        False,
        "%s, more than the rounding of %s usually comes to; see whether the script amplifies it "
        "(training does)" % (size, listed),
    )


def ulps(off: Sequence[Sequence[np.ndarray]], on: Sequence[Sequence[np.ndarray]]) -> float:
    """The worst difference of a floating-point array, in units in the last place of its largest finite value:
    sums that cancel have large relative errors without anybody's fault."""
    worst = 0.0
    for a_run, b_run in zip(off, on):
        for a, b in zip(a_run, b_run):
            if a.dtype.kind != "f" or a.dtype != b.dtype or a.shape != b.shape:
                continue
            usual = np.isfinite(a) & np.isfinite(b)
            if usual.any():
                gap = np.abs(a[usual].astype(np.float64) - b[usual].astype(np.float64)).max()
                worst = max(worst, float(gap / np.spacing(np.abs(a[usual]).max())))
    return worst


def difference(off: Sequence[Sequence[np.ndarray]], on: Sequence[Sequence[np.ndarray]]) -> Difference:
    """Of runs in the same order."""
    compared = unequal = mismatched = 0
    absolute = relative = 0.0
    for a_run, b_run in zip(off, on):
        for a, b in zip(a_run, b_run):
            compared += 1
            worst = _worst(a, b)
            if worst is None:
                mismatched, unequal = mismatched + 1, unequal + 1
                continue
            unequal += a.tobytes() != b.tobytes()
            absolute, relative = max(absolute, worst[0]), max(relative, worst[1])
        mismatched += abs(len(a_run) - len(b_run))
    mismatched += abs(len(off) - len(on))
    return Difference(compared, unequal, mismatched, absolute, relative)


def _worst(a: np.ndarray, b: np.ndarray) -> Optional[Tuple[float, float]]:
    """(absolute, relative) difference; None where the arrays can't be compared element by element."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return None
    if a.dtype.kind not in "fc":
        return (0.0, 0.0) if a.tobytes() == b.tobytes() else _whole_numbers(a, b)
    usual = np.isfinite(a) & np.isfinite(b)
    if not np.array_equal(a[~usual].astype(str), b[~usual].astype(str)):
        return None
    if not usual.any():
        return 0.0, 0.0
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    left, right = a[usual].astype(wide), b[usual].astype(wide)
    gap = np.abs(left - right)
    nonzero = left != 0
    return float(gap.max()), float((gap[nonzero] / np.abs(left[nonzero])).max()) if nonzero.any() else 0.0


def _whole_numbers(a: np.ndarray, b: np.ndarray) -> Optional[Tuple[float, float]]:
    if a.dtype.kind not in "iub":
        return None
    left, right = a.astype(np.float64), b.astype(np.float64)
    gap = np.abs(left - right)
    nonzero = left != 0
    return float(gap.max()), float((gap[nonzero] / np.abs(left[nonzero])).max()) if nonzero.any() else 0.0


def as_json(result: Comparison) -> Dict[str, Any]:
    return {
        "script": result.script,
        "soc": result.soc,
        "off": result.off._asdict(),
        "on": result.on._asdict(),
        "difference": result.difference._asdict(),
        "judgement": result.judgement._asdict(),
    }


def render(result: Comparison, console) -> None:
    from rich.table import Table

    table = Table("one iteration", "fusion off", "fusion on", "change")
    for title, name, form in (
        ("ops executed", "ops", "%d"),
        ("fused ops", "fused", "%d"),
        ("kernels on the NPU", "kernels", "%d"),
        ("kernel time, modelled (us)", "modelled_us", "%.2f"),
        ("GM bytes moved", "moved_bytes", "%d"),
        ("host time, measured (us)", "host_us", "%.1f"),
    ):
        off, on = getattr(result.off, name), getattr(result.on, name)
        change = "%+.1f%%" % (100.0 * (on - off) / off) if off else ""
        table.add_row(title, form % off, form % on, change)
    console.print(table)
    console.print(
        "modelled for %s; median of %d and %d runs; host times are of traced runs"
        % (result.soc, result.off.runs, result.on.runs),
        highlight=False,
    )
    found = result.difference
    text = "%d fetched arrays compared" % found.compared
    if found.unequal or found.mismatched:
        text += ": %d not bit for bit equal, worst absolute %.3g, worst relative %.3g%s" % (
            found.unequal,
            found.worst_absolute,
            found.worst_relative,
            ", %d can't be compared" % found.mismatched if found.mismatched else "",
        )
    console.print(text, highlight=False)
    console.print(
        "%s: %s" % ("as promised" if result.judgement.within else "NOT as promised", result.judgement.text),
        highlight=False,
        soft_wrap=True,
    )
    for side, missing in (("off", result.off.missing), ("on", result.on.missing)):
        if missing:
            console.print("not modelled with fusion %s: %s" % (side, ", ".join(missing)), highlight=False)
