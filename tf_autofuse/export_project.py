"""`tf-autofuse export`: what was fused becomes a custom-operator project for CANN.

On entry the journal's records of a run for the ascend target. On exit a folder with the project
(codegen/ascendc/project.py): written whole or not at all, and nothing of somebody else's is replaced.
Regions of equal bodies are one op.
"""
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Callable, Dict, Iterable, List, MutableMapping, NamedTuple, Tuple

from tf_autofuse.codegen.ascendc.body import CodegenRefusal
from tf_autofuse.codegen.ascendc.project import ProjectOp, compute_unit, op_type, project_files, project_op
from tf_autofuse.codegen.targets import ASCEND
from tf_autofuse.config import switch_on, wait_for_kernels
from tf_autofuse.lowering.bodies import Body
from tf_autofuse.lowering.plan import Region
from tf_autofuse.machine import Machine, machine_for
from tf_autofuse.report.journal import GraphRecord
from tf_autofuse.resources import npu_kernels_dir
from tf_autofuse.schedule.impl_graph import ScheduleRefusal

#: By this file a folder is known for a project that may be replaced.
MARK = "ops.json"
_VENDOR = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")


class ExportError(Exception):
    """Nothing was written; the text says why and what to do."""


class Exported(NamedTuple):
    """ops: (op type, number of regions that it stands for). left: (region, reason) of those without an op.
    types: the op type by region."""

    folder: Path
    ops: Tuple[Tuple[str, int], ...]
    left: Tuple[Tuple[str, str], ...]
    types: Dict[str, str]


def set_environment(environ: MutableMapping[str, str]) -> None:
    """Settings for the run whose regions are exported: the ascend target, switched on, all kernels waited
    for."""
    environ["AUTOFUSE_TARGET"] = "ascend"
    wait_for_kernels(environ)
    switch_on(environ)


def check(folder: Path, soc: str, vendor: str, force: bool) -> Machine:
    """What can be wrong before anything ran. Raises ExportError; ValueError for an unknown chip."""
    machine = machine_for(soc)
    try:
        compute_unit(machine.soc)
    except ValueError as error:
        raise ExportError("%s; choose one of them with --soc" % error)
    if not _VENDOR.match(vendor):
        raise ExportError(
            "--vendor %s: a letter, then letters, digits and _; it becomes a folder's name" % vendor
        )
    if folder.exists() and not folder.is_dir():
        raise ExportError("%s is not a folder; give another one with -o" % folder)
    if folder.is_dir() and any(folder.iterdir()):
        if not (folder / MARK).is_file():
            raise ExportError("%s holds other things; give an empty or new folder with -o" % folder)
        if not force:
            raise ExportError("%s holds an earlier export; --force replaces it" % folder)
    return machine


def export(
    records: Iterable[GraphRecord],
    folder: Path,
    machine: Machine,
    vendor: str,
    further: Callable[[Dict[str, str]], Dict[str, bytes]] = lambda types: {},
) -> Exported:
    """Writes the project. further: further files, given the op types by region. Raises ExportError."""
    ops, left, types = _ops(records, machine)
    if not ops:
        raise ExportError(
            "no region came out that could be exported%s"
            % (": " + "; ".join("%s: %s" % pair for pair in left[:3]) if left else
               "; `tf-autofuse explain` with AUTOFUSE_TARGET=ascend says why nothing was fused")
        )
    files = {
        name: text.encode("utf-8")
        for name, text in project_files(ops, machine, vendor, npu_kernels_dir() / "include").items()
    }
    files.update(further(types))
    try:
        _write(files, folder)
    except OSError as error:
        raise ExportError("the project can't be written: %s; give another folder with -o" % error)
    return Exported(folder, tuple((op.type, len(op.regions)) for op in ops), tuple(left), types)


def _ops(
    records: Iterable[GraphRecord], machine: Machine
) -> Tuple[List[ProjectOp], List[Tuple[str, str]], Dict[str, str]]:
    places: Dict[Body, List[Region]] = {}
    left: List[Tuple[str, str]] = []
    for record in records:
        compilation = record.compilation
        dropped = dict(record.dropped)
        left += [(f.region.name, f.reason) for f in compilation.failures] + list(dropped.items())
        for made in compilation.compiled + compilation.pending:
            if made.region.name not in dropped:
                places.setdefault(made.region.emitted.body, []).append(made.region)
    ops: List[ProjectOp] = []
    types: Dict[str, str] = {}
    for regions in places.values():
        fused = regions[0].fused
        name = op_type(fused.name, [op.type for op in ops])
        texts = dict.fromkeys("%s: %s" % (r.name, ", ".join(r.fused.origin)) for r in regions)
        try:
            ops.append(project_op(name, fused, ASCEND.schedule(fused, machine), machine, tuple(texts)))
        except (CodegenRefusal, ScheduleRefusal) as error:
            left.append((fused.name, str(error)))
        else:
            types.update((r.name, name) for r in regions)
    return ops, left, types


def _write(files: Dict[str, bytes], folder: Path) -> None:
    """All files, beside the folder first and then in its place."""
    parent = folder.absolute().parent
    parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=".%s-" % folder.name, dir=str(parent)))
    try:
        for name, data in files.items():
            path = made / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        (made / "build.sh").chmod(0o755)
        made.chmod(0o755)
        old = made.with_name(made.name + "-old")
        if folder.exists():
            os.rename(str(folder), str(old))
        try:
            os.rename(str(made), str(folder))
        except OSError:
            if old.exists():
                os.rename(str(old), str(folder))
            raise
        shutil.rmtree(str(old), ignore_errors=True)
    finally:
        shutil.rmtree(str(made), ignore_errors=True)


__all__ = ("ExportError", "Exported", "check", "export", "set_environment")
