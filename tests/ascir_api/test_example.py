"""examples/ascir_script.py: from a graph with a reduction and dynamic sizes to a checked result."""

import runpy
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "ascir_script.py"


def test_the_example(capsys):
    runpy.run_path(str(SCRIPT), run_name="__main__")
    told = capsys.readouterr().out
    assert told.startswith("Graph: abs_max\nSizes:\n  s0: VAR\n  s1: VAR\n")
    assert told.count("give numpy's bits") == 3 and "abs_max: 1 input, 1 output" in told
