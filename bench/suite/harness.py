"""Runs contenders side by side: one process each, taking turns on every case.

A round calls every contender on one case for about the same short time; rounds repeat, so that a change of
the machine's mood meets all of them. Within a round calls of the case alternate with calls of its floor,
the same call of the same contender with next to nothing to compute: a round's figure is the median of the
differences of neighbours, which a slow clock and what the call costs around the work do not enter. It is
known to about the standard error of that median, its noise. A figure is the median over the rounds; where it
is less than three times its own error it can't be seen and is in no ratio. A ratio is taken within each
round, and its median and quartiles over the rounds are kept.
"""
import difflib
import json
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Sequence

ROOT = Path(__file__).resolve().parents[2]
XLA_FLAGS = "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit --tf_xla_min_cluster_size=1"
# glibc's malloc gives no memory back: what a session of ours does with large tensors, without the fusion.
KEPT = {"MALLOC_MMAP_THRESHOLD_": "4000000000", "MALLOC_TRIM_THRESHOLD_": "8000000000",
        "MALLOC_TOP_PAD_": "67108864"}
OURS = {"AUTOFUSE_FLAGS": "--enable_autofuse=true;--autofuse_enable_pass="
                          "reduce,concat,slice,split,gather,transpose", "AUTOFUSE_TARGET": "host",
        "AUTOFUSE_BUILD": "sync"}


class Contender(NamedTuple):
    """name: in tables; backend: a module of this package; environment: on top of the process's own; python:
    the interpreter, None where its environment is not there; models, micro: whether it runs these."""

    name: str
    backend: str
    options: Dict
    environment: Dict[str, str]
    python: Optional[str]
    models: bool = False
    micro: bool = True


class Settings(NamedTuple):
    """rounds; seconds that a contender runs in a round; models: whether to run them; most_calls in a
    round."""

    rounds: int = 15
    seconds: float = 0.05
    models: bool = True
    most_calls: int = 2000


QUICK = Settings(rounds=3, seconds=0.005, most_calls=50)


class Figure(NamedTuple):
    """Seconds of a case: median, least and most of the rounds; floor: median over the rounds, 0 where there
    is none; noise: likewise, what a round's figure is known to; rounds: what each found, the floor taken
    off; note and first as the worker said."""

    median: float
    least: float
    most: float
    floor: float
    noise: float
    rounds: List[float]
    first: float
    note: str

    @property
    def least_seen(self) -> float:
        """Three times the error of the median."""
        return 3 * self.noise / len(self.rounds) ** 0.5


def environment_python(name: str) -> Optional[str]:
    """The interpreter of an environment that scripts/bench_environments.sh has made, None where it has
    not."""
    path = ROOT / (".venv-bench-" + name) / "bin" / "python"
    return str(path) if path.exists() else None


def contenders(named: Sequence[str] = ()) -> Sequence[Contender]:
    """All, or those that are named. Raises ValueError for a name that there is not."""
    known = {c.name: c for c in _all_contenders()}
    for name in named:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1, 0.0)
            raise ValueError("no contender %r; did you mean %r? There are %s" % (
                name, near[0], ", ".join(known)))
    return [c for name, c in known.items() if name in named or not named]


def _all_contenders() -> Sequence[Contender]:
    tf = [Contender("TF", "backend_tf", {"threads": 2}, {}, sys.executable, True),
          Contender("TF kept", "backend_tf", {"threads": 2}, KEPT, sys.executable, True, micro=False),
          Contender("XLA", "backend_tf", {"threads": 2}, {"TF_XLA_FLAGS": XLA_FLAGS}, sys.executable, True)]
    ours = [Contender("ours %d" % n, "backend_tf", {"threads": n, "ours": True}, OURS, sys.executable, n == 2)
            for n in (1, 2)]
    torch, jax = environment_python("torch"), environment_python("jax")
    peers = [Contender("Inductor", "backend_torch", {"threads": 2}, {}, torch),
             Contender("JAX", "backend_jax", {"threads": 2}, {"JAX_PLATFORMS": "cpu"}, jax)]
    hand = [Contender("C %d" % n, "backend_c", {"threads": n}, {}, sys.executable) for n in (1, 2)]
    return tf + ours + peers + hand


class Worker:
    """A contender's process. Its answers are dicts; one with 'error' is no exception."""

    def __init__(self, contender: Contender, extra: Dict[str, str]):
        environment = dict(os.environ, PYTHONPATH=str(ROOT), **extra)
        environment.update(contender.environment)
        self.contender = contender
        self._process = subprocess.Popen(
            [contender.python, "-m", "bench.suite.worker", contender.backend, json.dumps(contender.options)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=str(ROOT),
            env=environment, universal_newlines=True)

    def ask(self, **request) -> Dict:
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except (BrokenPipeError, OSError):
            line = ""
        return json.loads(line) if line else {"error": "the process ended"}

    def close(self) -> None:
        try:
            self._process.stdin.close()
        except OSError:  # it has ended and left a request unread
            pass
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()


class Outcome(NamedTuple):
    """figures: contender -> Figure; missing: contender -> why it has none."""

    figures: Dict[str, Figure]
    missing: Dict[str, str]


def run_case(name: str, workers: Sequence[Worker], settings: Settings) -> Outcome:
    """All workers on one case, in turns."""
    missing, calls, said, found = {}, {}, {}, {}
    for worker in workers:
        who = worker.contender.name
        said[who] = worker.ask(prepare=name)
        if "error" in said[who]:
            missing[who] = said[who]["error"]
            continue
        once = worker.ask(run=name, calls=3)
        seconds = min(once["seconds"]) + min(once["floors"] or [0])
        calls[who] = max(1, min(settings.most_calls, int(settings.seconds / max(seconds, 1e-7))))
        found[who] = []
    for _ in range(settings.rounds):
        for worker in workers:
            who = worker.contender.name
            if who not in calls:
                continue
            answer = worker.ask(run=name, calls=calls[who])
            if "error" in answer:
                missing[who] = answer["error"]
                calls.pop(who)
            else:
                found[who].append(round_of(answer["seconds"], answer["floors"]))
    return Outcome({who: _figure(found[who], said[who]) for who in calls}, missing)


class Round(NamedTuple):
    """Seconds: of the work, of the floor's call, and what the first is known to."""

    left: float
    floor: float
    noise: float


def round_of(seconds: Sequence[float], floors: Sequence[float]) -> Round:
    """What a round's calls say, each beside the floor's call before it where there is a floor."""
    left = sorted(s - f for s, f in zip(seconds, floors)) if floors else sorted(seconds)
    quarter = len(left) // 4
    # the standard error of a median, the deviation taken from the quartiles so that outliers have no say
    deviation = (left[-1 - quarter] - left[quarter]) / 1.349
    return Round(statistics.median(left), statistics.median(floors or [0.0]),
                 1.2533 * deviation / len(left) ** 0.5)


def _figure(rounds: Sequence[Round], said) -> Figure:
    return figure([r.left for r in rounds], statistics.median(r.floor for r in rounds),
                  statistics.median(r.noise for r in rounds), said["first"], said.get("note", ""))


def figure(rounds: List[float], floor: float, noise: float, first: float, note: str) -> Figure:
    """The Figure of rounds that the floor has been taken off."""
    return Figure(statistics.median(rounds), min(rounds), max(rounds), floor, noise, rounds, first, note)


def ratio(outcome: Outcome, who: str, to: str):
    """Median, first and third quartile of who's time over to's within each round; None where one has no
    figure, or one that can't be seen in most rounds. A round in which one can't be seen is left out."""
    if who not in outcome.figures or to not in outcome.figures:
        return None
    ours, theirs = outcome.figures[who], outcome.figures[to]
    pairs = list(zip(ours.rounds, theirs.rounds))
    values = sorted(a / b for a, b in pairs if a > ours.least_seen and b > theirs.least_seen)
    if 2 * len(values) <= len(pairs):
        return None
    quarter = len(values) // 4
    return statistics.median(values), values[quarter], values[-1 - quarter]


def make_models(folder: Path, chosen: Dict[str, Sequence[int]]) -> Dict[str, str]:
    """Builds the models in processes of their own; model -> why it could not be built."""
    failed = {}
    for name, batches in chosen.items():
        done = subprocess.run([sys.executable, "-m", "bench.suite.models", str(folder), name] +
                              [str(b) for b in batches], cwd=str(ROOT), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, universal_newlines=True,
                              env=dict(os.environ, PYTHONPATH=str(ROOT)))
        if done.returncode:
            failed[name] = done.stdout.strip().splitlines()[-1]
    return failed


def start(chosen: Sequence[Contender], extra: Dict[str, str]):
    """(workers, {contender: why it does not take part})"""
    absent = {c.name: "no environment; scripts/bench_environments.sh makes it"
              for c in chosen if not c.python}
    if shutil.which(os.environ.get("CC", "gcc")) is None:
        absent.update({c.name: "no C compiler" for c in chosen if c.backend == "backend_c"})
    return [Worker(c, extra) for c in chosen if c.name not in absent], absent
