"""What a process pays for having the plugin: its import, and reading the settings of a session.

The import is the median of fresh processes, less that of processes that import nothing; a Config is the
median of calls.
"""
import statistics
import subprocess
import sys
import time
from pathlib import Path

from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
PROCESSES = 15
CALLS = 300


def _process_ms(program: str) -> float:
    times = []
    for _ in range(PROCESSES):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", program], cwd=str(ROOT), check=True)
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def _call_ms(work) -> float:
    times = []
    for _ in range(CALLS):
        start = time.perf_counter()
        work()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def run(console) -> None:
    from tf_autofuse.config import Config
    environ = {"AUTOFUSE_FLAGS": "--enable_autofuse=true;--autofuse_enable_pass=reduce,concat,slice;"}
    parameters = {"use_off_line": True, "graph_run_mode": 0, "profiling_mode": True}
    table = Table("what", "ms")
    table.add_row("import tf_autofuse (no TensorFlow)", "%.1f" % (
        _process_ms("import tf_autofuse") - _process_ms("pass")))
    table.add_row("Config.from_sources, the public example's settings", "%.3f" % _call_ms(
        lambda: Config.from_sources(environ, parameters)))
    console.print(table)
