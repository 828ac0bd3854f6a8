"""The suite's command line: which cases, which contenders, how long, and where the tables go.

    python -m bench.suite [--quick] [--only TEXT] [--no-models] [--contenders NAME,NAME] [--write]

--write keeps what was measured in docs/performance.json, in place of what it had of the same cases, and puts
the tables of all that is in there between the marks of docs/performance.md and the plot into
docs/performance.svg.
"""
import argparse
import os
import platform
import tempfile
from pathlib import Path
from typing import Dict, List, Sequence

from bench import _documents
from bench.suite import cases, report, results
from bench.suite.harness import QUICK, ROOT, Settings, contenders, make_models, run_case, start
from bench.suite.models import MODELS

STREAM_KIB = (32, 1024, 65536)
MODEL_NAMES = {name: model.batches for name, model in MODELS.items()}
RATIOS = (("ours 2", "TF"), ("ours 2", "XLA"), ("ours 2", "Inductor"), ("ours 2", "JAX"), ("ours 1", "C 1"),
          ("ours 2", "C 2"))
MODEL_RATIOS = (("ours 2", "TF"), ("ours 2", "TF kept"), ("ours 2", "XLA"))
SHOWN = ("TF", "XLA", "Inductor", "JAX", "ours 1", "ours 2", "C 1", "C 2")
MODELS_SHOWN = ("TF", "TF kept", "XLA", "ours 2")


def machine() -> str:
    """The processor, how many of its cores are ours, and the load at the start."""
    names = [line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
             if line.startswith("model name")] if Path("/proc/cpuinfo").exists() else [platform.processor()]
    return "%s, %d cores, load %.1f at the start" % (names[0], os.cpu_count() or 1, os.getloadavg()[0])


def stream_names() -> Dict[str, int]:
    """Roofline passes -> bytes that one moves."""
    return {"stream:%s:%d" % (kind, kib): arrays * kib * 1024
            for kind, arrays in (("copy", 2), ("add", 3)) for kib in STREAM_KIB}


def model_cases() -> List[str]:
    return ["model:%s:%d" % (name, batch) for name, batches in MODEL_NAMES.items() for batch in batches]


def measure(settings: Settings, say, only: str = "", named: Sequence[str] = ()) -> results.Results:
    """Runs every case that has `only` in its name, with the contenders that are named, or all."""
    run = "%s; %d rounds of %g s a contender" % (machine(), settings.rounds, settings.seconds)
    say(run)
    outcomes, failed = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        workers, absent = start(contenders(named), {"AUTOFUSE_BENCH_MODELS": folder})

        def take(case: str, takers, shown: Sequence[str], unit: str) -> None:
            outcomes[case] = run_case(case, takers, settings)
            say(report.times_table({case: outcomes[case]}, shown, unit)[-1])
        try:
            small = [w for w in workers if w.contender.micro]
            for case in cases.MICRO:
                if only in case.name:
                    take(case.name, small, SHOWN, "us")
            hand = [w for w in workers if w.contender.backend == "backend_c"]
            for name in stream_names():
                if only in name and hand:
                    take(name, hand, SHOWN, "us")
            if settings.models:
                wanted = {n: b for n, b in MODEL_NAMES.items() if only in n}
                failed = {"model:" + n: why for n, why in make_models(Path(folder), wanted).items()}
                takers = [w for w in workers if w.contender.models]
                for case in model_cases():
                    name = case.split(":")[1]
                    if name in wanted and "model:" + name not in failed:
                        take(case, takers, MODELS_SHOWN, "ms")
        finally:
            for worker in workers:
                worker.close()
    return results.Results(outcomes, dict.fromkeys(outcomes, run), {**absent, **failed})


def tables(measured: results.Results) -> Dict[str, List[str]]:
    """Lines by the name of their marks in docs/performance.md."""
    micro = measured.of([c.name for c in cases.MICRO])
    streams = measured.of(list(stream_names()))
    nets = measured.of(model_cases())
    largest = "stream:add:%d" % STREAM_KIB[-1]
    found = {"machine": measured.run_lines(), "micro times": report.times_table(micro, SHOWN),
             "micro ratios": report.ratios_table(micro, RATIOS),
             "roofline": report.roofline_table(streams, stream_names()),
             "model times": report.times_table(nets, MODELS_SHOWN, "ms"),
             "model ratios": report.ratios_table(nets, MODEL_RATIOS),
             "missing": report.missing_lines({**micro, **nets}, measured.absent) or ["- nobody"]}
    if largest in streams:
        found["bandwidth"] = report.bandwidth_table(micro, {c.name: c.bytes for c in cases.MICRO},
                                                    streams[largest], stream_names()[largest])
    return found


def write(measured: results.Results, docs: Path) -> None:
    """Adds the results to performance.json and writes the document and the plot anew."""
    every = results.merged(results.load(docs / "performance.json"), measured)
    results.save(docs / "performance.json", every)
    for name, lines in tables(every).items():
        _documents.replace(docs / "performance.md", name, lines)
    micro = every.of([c.name for c in cases.MICRO])
    if micro and not report.plot(micro, [n for n in SHOWN if n != "C 2"], "C 2", docs / "performance.svg"):
        print("no plot: matplotlib is not installed")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few short rounds, to see that all works")
    parser.add_argument("--only", default="", help="cases and models whose names have this text in them")
    parser.add_argument("--no-models", action="store_true")
    parser.add_argument("--contenders", default="", help="names, separated by commas; not with --write")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    named = [n.strip() for n in options.contenders.split(",") if n.strip()]
    if named and options.write:
        parser.error("--write keeps whole cases: leave --contenders out")
    try:
        contenders(named)
    except ValueError as error:
        parser.error(str(error))
    settings = QUICK if options.quick else Settings()
    measured = measure(settings._replace(models=not options.no_models), print, options.only, named)
    for name, lines in tables(measured).items():
        print("\n%s\n%s" % (name, "\n".join(lines)))
    if options.write:
        write(measured, ROOT / "docs")
    return 0
