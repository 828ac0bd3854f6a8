"""PROF_* folders: one for each profiled session.

    PROF_<6 digits>_<yyyymmddhhmmssmmm>_<8 letters>/
        info.json       version, chip, target, process
        kernels.json    for each fused op: its TF nodes and its serialized FusedGraph
        nodes.json      for other ops, where that is known: attributes and small constant operands
        ops.jsonl       one line for each op of each run

On entry of the writer: plain values; every line is complete once `add_run` has returned, so a killed
process leaves a folder that can be read (a cut last line is left out). On exit of the reader everything is
checked: a file that is not ours is a ProfileError that names the file and the line."""

import base64
import json
import os
import random
import string
import threading
import time
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Sequence, Tuple

import numpy as np

VERSION = 1
_INFO, _KERNELS, _NODES, _OPS = "info.json", "kernels.json", "nodes.json", "ops.jsonl"


class ProfileError(Exception):
    """A folder that holds no profile, or a damaged one; the text says what to do."""


class Tensor(NamedTuple):
    """dtype: TF's name, '' where it is not known; dims likewise None."""

    dtype: str
    dims: Any


class OpRun(NamedTuple):
    """One op of one run. start, duration: nanoseconds (start since the epoch). thread: the executor's."""

    run: int
    name: str
    op: str
    device: str
    thread: int
    start: int
    duration: int
    inputs: Tuple[Tensor, ...]
    outputs: Tuple[Tensor, ...]


class Kernel(NamedTuple):
    """A fused op: the TF nodes that it stands for, and its FusedGraph (ir/proto.py)."""

    origin: Tuple[str, ...]
    asc_graph: bytes


#: Constants of more elements are data, not operands.
MOST_ELEMENTS = 64


class NodeFacts(NamedTuple):
    """What a node says of itself. attrs: as lowering.graph_view has them, without tensors; constants: number
    of an input -> its value, where it is a constant of at most
    MOST_ELEMENTS."""

    attrs: Mapping[str, Any] = {}
    constants: Mapping[int, np.ndarray] = {}


class Profile(NamedTuple):
    """A folder that was read. info: what info.json holds. nodes: of ops that are not fused, as far as the
    recorder knew them."""

    folder: Path
    info: Mapping[str, Any]
    kernels: Mapping[str, Kernel]
    ops: Tuple[OpRun, ...]
    nodes: Mapping[str, NodeFacts] = {}

    def facts(self, name: str) -> NodeFacts:
        return self.nodes.get(name, NodeFacts())


class Writer:
    """Writes one folder; made when the first run comes. Safe from several threads."""

    def __init__(self, output: str, info: Mapping[str, Any]):
        """output: the folder for PROF_* folders. Raises OSError."""
        self._lock = threading.Lock()
        self._kernels: Dict[str, Any] = {}
        self._nodes: Dict[str, Any] = {}
        self.runs = 0
        self.folder = _new_folder(Path(output))
        write_json(self.folder / _INFO, dict(info, version=VERSION))
        write_json(self.folder / _KERNELS, {})

    def add_kernels(self, kernels: Mapping[str, Kernel]) -> None:
        with self._lock:
            new = {n: k for n, k in kernels.items() if n not in self._kernels}
            if not new:
                return
            for name, kernel in new.items():
                text = base64.b64encode(kernel.asc_graph).decode("ascii")
                self._kernels[name] = {"origin": list(kernel.origin), "asc_graph": text}
            write_json(self.folder / _KERNELS, self._kernels)

    def add_nodes(self, nodes: Mapping[str, NodeFacts]) -> None:
        with self._lock:
            new = {n: f for n, f in nodes.items() if n not in self._nodes}
            if not new:
                return
            for name, facts in new.items():
                constants = {
                    str(i): {"dtype": v.dtype.name, "dims": list(v.shape), "values": v.reshape(-1).tolist()}
                    for i, v in facts.constants.items()
                }
                self._nodes[name] = {"attrs": dict(facts.attrs), "constants": constants}
            write_json(self.folder / _NODES, self._nodes)

    def add_run(self, ops: Sequence[OpRun]) -> None:
        """The ops of one run; their `run` is set here."""
        with self._lock:
            lines = [json.dumps(_plain(op._replace(run=self.runs)), separators=(",", ":")) for op in ops]
            with open(str(self.folder / _OPS), "a", encoding="utf-8") as stream:
                stream.write("".join(line + "\n" for line in lines))
            self.runs += 1


def _plain(op: OpRun) -> Dict[str, Any]:
    fields = op._asdict()
    fields["inputs"], fields["outputs"] = [list(t) for t in op.inputs], [list(t) for t in op.outputs]
    return fields


def _new_folder(output: Path) -> Path:
    """A folder that nobody else has, numbered after those that are there."""
    output.mkdir(parents=True, exist_ok=True)
    letters = "".join(random.SystemRandom().choice(string.ascii_uppercase) for _ in range(8))
    now = time.time()
    stamp = time.strftime("%Y%m%d%H%M%S", time.localtime(now)) + "%03d" % (now * 1000 % 1000)
    number = 1 + len(list(output.glob("PROF_*")))
    folder = output / ("PROF_%06d_%s_%s" % (number, stamp, letters))
    folder.mkdir()
    return folder


def write_json(path: Path, value) -> None:
    """Written aside and renamed into place: a reader never sees half a file."""
    aside = path.with_name(path.name + ".%d" % os.getpid())
    with open(str(aside), "w", encoding="utf-8") as stream:
        json.dump(value, stream, indent=1)
    os.replace(str(aside), str(path))


def profiles_below(output: Path) -> List[Path]:
    """`output` itself where it is a PROF_* folder, else those in it. Raises ProfileError where there is
    none."""
    if (output / _INFO).is_file():
        return [output]
    found = sorted(p for p in output.glob("PROF_*") if (p / _INFO).is_file())
    if not found:
        raise ProfileError(
            "%s holds no profile; give a PROF_* folder, or the folder that profiling_options' "
            "output names" % output
        )
    return found


def read(folder: Path) -> Profile:
    """Raises ProfileError."""
    info = _read_json(folder / _INFO)
    if not isinstance(info, dict) or info.get("version") != VERSION:
        raise ProfileError("%s is not of version %d; record the profile again" % (folder / _INFO, VERSION))
    kernels = {}
    for name, entry in _read_json(folder / _KERNELS).items():
        try:
            kernels[name] = Kernel(
                tuple(map(str, entry["origin"])), base64.b64decode(entry["asc_graph"], None, True)
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ProfileError("%s: kernel %s is damaged (%s)" % (folder / _KERNELS, name, error))
    return Profile(folder, info, kernels, tuple(_read_ops(folder / _OPS)), _read_nodes(folder / _NODES))


def _read_nodes(path: Path) -> Dict[str, NodeFacts]:
    """Nothing where the profile has no such file."""
    nodes = {}
    for name, entry in (_read_json(path) if path.exists() else {}).items():
        try:
            constants = {
                int(i): np.array(c["values"], c["dtype"]).reshape(c["dims"])
                for i, c in entry["constants"].items()
            }
            nodes[name] = NodeFacts(dict(entry["attrs"]), constants)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ProfileError("%s: node %s is damaged (%s)" % (path, name, error))
    return nodes


def _read_json(path: Path):
    try:
        with open(str(path), "r", encoding="utf-8") as stream:
            return json.load(stream)
    except (OSError, ValueError) as error:
        raise ProfileError("%s can't be read (%s); record the profile again" % (path, error))


def _read_ops(path: Path) -> Iterable[OpRun]:
    if not path.exists():
        return
    with open(str(path), "r", encoding="utf-8") as stream:
        lines = stream.read().split("\n")
    # The last item is what follows the last newline: nothing, or a line that was cut.
    for number, line in enumerate(lines[:-1], 1):
        try:
            fields = json.loads(line)
            fields["inputs"] = tuple(Tensor(str(d), _dims(s)) for d, s in fields["inputs"])
            fields["outputs"] = tuple(Tensor(str(d), _dims(s)) for d, s in fields["outputs"])
            op = OpRun(**fields)
            if not all(isinstance(v, int) for v in (op.run, op.thread, op.start, op.duration)):
                raise ValueError("a number is missing")
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ProfileError("%s:%d is damaged (%s); record the profile again" % (path, number, error))
        yield op


def _dims(value):
    return None if value is None else tuple(int(d) for d in value)
