"""What the suite has measured, kept as JSON beside the document, so that a run of some cases replaces those
and the tables are always written from everything that there is.

A case's figures come from one run, in which all contenders took turns: `merged` replaces a case as a whole.
"""
import json
from pathlib import Path
from typing import Dict, List, NamedTuple, Sequence

from bench.suite.harness import Figure, Outcome, figure


class Results(NamedTuple):
    """outcomes: by case; runs: case -> where and how it was measured; absent: contender or model -> why the
    latest run that could have had it did not."""

    outcomes: Dict[str, Outcome]
    runs: Dict[str, str]
    absent: Dict[str, str]

    def of(self, names: Sequence[str]) -> Dict[str, Outcome]:
        """The outcomes of those cases that were measured, in this order."""
        return {n: self.outcomes[n] for n in names if n in self.outcomes}

    def run_lines(self) -> List[str]:
        """Each run once, with its cases where there are several runs."""
        cases: Dict[str, List[str]] = {}
        for case, run in self.runs.items():
            cases.setdefault(run, []).append(case)
        if len(cases) == 1:
            return list(cases)
        return ["- %s: %s" % (run, ", ".join(sorted(names))) for run, names in sorted(cases.items())]


NONE = Results({}, {}, {})


def merged(old: Results, new: Results) -> Results:
    """`new` where it has something, else `old`. What a contender lacked counts until it has a figure."""
    outcomes = {**old.outcomes, **new.outcomes}
    present = {who for o in outcomes.values() for who in o.figures}
    present |= {"model:" + case.split(":")[1] for case in outcomes if case.startswith("model:")}
    absent = {who: why for who, why in {**old.absent, **new.absent}.items() if who not in present}
    return Results(outcomes, {**old.runs, **new.runs}, absent)


def load(path: Path) -> Results:
    """The results in the file; none where there is no file."""
    if not path.exists():
        return NONE
    kept = json.loads(path.read_text(encoding="utf-8"))
    outcomes = {case: Outcome({who: _figure(f) for who, f in c["figures"].items()}, c["missing"])
                for case, c in kept["cases"].items()}
    return Results(outcomes, {case: c["run"] for case, c in kept["cases"].items()}, kept["absent"])


def save(path: Path, results: Results) -> None:
    """Of each contender and case: seconds of the rounds with the floor taken off, the floor, what a round is
    known to, the first call."""
    cases = {case: {"run": results.runs[case], "missing": outcome.missing,
                    "figures": {who: _kept(f) for who, f in outcome.figures.items()}}
             for case, outcome in results.outcomes.items()}
    text = json.dumps({"cases": cases, "absent": results.absent}, indent=1, sort_keys=True)
    path.write_text(text + "\n", encoding="utf-8")


def _kept(f: Figure) -> Dict:
    return {"rounds": " ".join("%.4g" % s for s in f.rounds), "floor": float("%.4g" % f.floor),
            "noise": float("%.4g" % f.noise), "first": float("%.4g" % f.first), "note": f.note}


def _figure(kept: Dict) -> Figure:
    return figure([float(s) for s in kept["rounds"].split()], kept["floor"], kept["noise"], kept["first"],
                  kept["note"])
