"""The suite's command line: which cases, which contenders, how long, and where the tables go.

    python -m bench.suite [--quick] [--only TEXT] [--no-models] [--write]

--write puts the tables between the marks of docs/performance.md and the plot into docs/performance.svg.
"""
import argparse
import os
import platform
import tempfile
from pathlib import Path
from typing import Dict

from bench import _documents
from bench.suite import cases, report
from bench.suite.harness import (QUICK, ROOT, Settings, contenders, make_models, run_case, start)

STREAM_KIB = (32, 1024, 65536)
MODEL_NAMES = {"MMOE": (1, 64, 1024), "DIN": (1, 64, 1024), "DeepFM": (1, 64, 1024), "BST": (1, 64, 1024),
               "BERT-layer": (1, 8), "ResNet-50": (1, 4)}
RATIOS = (("ours 2", "TF"), ("ours 2", "XLA"), ("ours 2", "Inductor"), ("ours 2", "JAX"), ("ours 1", "C 1"),
          ("ours 2", "C 2"))
MODEL_RATIOS = (("ours 2", "TF"), ("ours 2", "XLA"))
SHOWN = ("TF", "XLA", "Inductor", "JAX", "ours 1", "ours 2", "C 1", "C 2")


def machine() -> str:
    """The processor, how many of its cores are ours, and the load at the start."""
    names = [line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
             if line.startswith("model name")] if Path("/proc/cpuinfo").exists() else [platform.processor()]
    return "%s, %d cores, load %.1f at the start" % (names[0], os.cpu_count() or 1, os.getloadavg()[0])


def stream_names() -> Dict[str, int]:
    """Roofline passes -> bytes that one moves."""
    return {"stream:%s:%d" % (kind, kib): arrays * kib * 1024
            for kind, arrays in (("copy", 2), ("add", 3)) for kib in STREAM_KIB}


def measure(settings: Settings, say, only: str = "") -> Dict[str, list]:
    """Runs everything; tables by the name of their marks."""
    say(machine())
    tables = {}
    with tempfile.TemporaryDirectory() as folder:
        chosen = contenders()
        workers, absent = start(chosen, {"AUTOFUSE_BENCH_MODELS": folder})
        try:
            micro = {}
            for case in cases.MICRO:
                if only in case.name:
                    micro[case.name] = run_case(case.name, workers, settings)
                    say(report.times_table({case.name: micro[case.name]}, SHOWN)[-1])
            hand = [w for w in workers if w.contender.backend == "backend_c"]
            streams = {name: run_case(name, hand, settings) for name in stream_names() if only in name}
            nets, failed = {}, {}
            if settings.models:
                wanted = {n: b for n, b in MODEL_NAMES.items() if only in n}
                failed = make_models(Path(folder), wanted)
                takers = [w for w in workers if w.contender.models]
                for name in (n for n in wanted if n not in failed):
                    for batch in wanted[name]:
                        key = "model:%s:%d" % (name, batch)
                        nets[key] = run_case(key, takers, settings)
                        say(report.times_table({key: nets[key]}, SHOWN, "ms")[-1])
        finally:
            for worker in workers:
                worker.close()
    tables["machine"] = [machine() + "; %d rounds of %g s a contender." % (settings.rounds, settings.seconds)]
    tables["micro times"] = report.times_table(micro, SHOWN)
    tables["micro ratios"] = report.ratios_table(micro, RATIOS)
    tables["roofline"] = report.roofline_table(streams, stream_names())
    largest = "stream:add:%d" % STREAM_KIB[-1]
    if largest in streams:
        tables["bandwidth"] = report.bandwidth_table(micro, {c.name: c.bytes for c in cases.MICRO},
                                                     streams[largest], stream_names()[largest])
    tables["model times"] = report.times_table(nets, ("TF", "XLA", "ours 2"), "ms")
    tables["model ratios"] = report.ratios_table(nets, MODEL_RATIOS)
    tables["missing"] = report.missing_lines({**micro, **nets}, {**absent, **failed}) or ["- nobody"]
    tables["outcomes"] = [micro]
    return tables


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few short rounds, to see that all works")
    parser.add_argument("--only", default="", help="cases and models whose names have this text in them")
    parser.add_argument("--no-models", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    settings = QUICK if options.quick else Settings()
    tables = measure(settings._replace(models=not options.no_models), print, options.only)
    (micro,) = tables.pop("outcomes")
    for name, lines in tables.items():
        print("\n%s\n%s" % (name, "\n".join(lines)))
    if options.write:
        for name, lines in tables.items():
            _documents.replace(ROOT / "docs" / "performance.md", name, lines)
        names = [n for n in SHOWN if n != "C 2"]
        if not report.plot(micro, names, "C 2", ROOT / "docs" / "performance.svg"):
            print("no plot: matplotlib is not installed")
    return 0
