"""What the suite measured, as Markdown for docs/performance.md, and as a plot."""
from typing import Dict, List, Sequence

from bench.suite.harness import Figure, Outcome, ratio


BEYOND_CACHES = 24 << 20  # bytes


def _micro(seconds: float) -> str:
    value = 1e6 * seconds
    return "%.1f" % value if value < 100 else "%.0f" % value


def _median(figure: Figure, unit: str) -> str:
    if figure.median <= figure.least_seen:
        return "< %.2g" % ((1e3 if unit == "ms" else 1e6) * figure.least_seen)
    return "%.3f" % (1e3 * figure.median) if unit == "ms" else _micro(figure.median)


def _shown(case: str) -> str:
    return case.replace("model:", "").replace(":", ", batch ")


def times_table(outcomes: Dict[str, Outcome], names: Sequence[str], unit: str = "us") -> List[str]:
    """A row a case: medians in microseconds (milliseconds), the floor taken off, the floor of the first
    contender that has one, and what was fused."""
    lines = ["| case | %s | floor | fused |" % " | ".join(names), "|---%s|---|---|" % ("|---" * len(names))]
    for case, outcome in outcomes.items():
        cells = []
        for name in names:
            cells.append(_median(outcome.figures[name], unit) if name in outcome.figures else "")
        notes = [f.note for who, f in outcome.figures.items() if who.startswith("ours")]
        shown = [outcome.figures[name] for name in names if name in outcome.figures]
        floors = [_micro(f.floor) for f in shown if f.floor]
        lines.append("| %s | %s | %s | %s |" % (_shown(case), " | ".join(cells), floors[0] if floors else "",
                                                notes[-1] if notes else ""))
    return lines


def ratios_table(outcomes: Dict[str, Outcome], pairs: Sequence) -> List[str]:
    """A row a case, a column a pair (who, to): who's time over to's, median [quartiles]; last the geometric
    mean."""
    heads = ["%s / %s" % pair for pair in pairs]
    lines = ["| case | %s |" % " | ".join(heads), "|---%s|" % ("|---" * len(pairs))]
    medians = {pair: [] for pair in pairs}
    for case, outcome in outcomes.items():
        cells = []
        for pair in pairs:
            found = ratio(outcome, *pair)
            cells.append("%.2f [%.2f, %.2f]" % found if found else "")
            medians[pair].extend([found[0]] if found else [])
        lines.append("| %s | %s |" % (_shown(case), " | ".join(cells)))
    means = ["%.2f" % _geometric_mean(m) if m else "" for m in medians.values()]
    return lines + ["| geometric mean | %s |" % " | ".join(means)]


def _geometric_mean(values: Sequence[float]) -> float:
    product = 1.0
    for value in values:
        product *= value ** (1.0 / len(values))
    return product


def roofline_table(outcomes: Dict[str, Outcome], bytes_of: Dict[str, int]) -> List[str]:
    """GB/s moved, by array size."""
    names = sorted({who for o in outcomes.values() for who in o.figures})
    lines = ["| pass | %s |" % " | ".join(names), "|---%s|" % ("|---" * len(names))]
    for case, outcome in outcomes.items():
        cells = ["%.0f" % (bytes_of[case] / outcome.figures[n].median / 1e9) if n in outcome.figures else ""
                 for n in names]
        _, kind, kib = case.split(":")
        lines.append("| %s, %s KiB an array | %s |" % (kind, kib, " | ".join(cells)))
    return lines


def bandwidth_table(outcomes: Dict[str, Outcome], bytes_of: Dict[str, int], roofline: Outcome,
                    roofline_bytes: int) -> List[str]:
    """GB/s of the cases that exceed the caches, and the share of what an addition of such arrays reaches with
    the same threads.
    """
    names = ("ours 1", "C 1", "ours 2", "C 2")
    lines = ["| case | %s |" % " | ".join(names), "|---%s|" % ("|---" * len(names))]
    limits = {n: roofline_bytes / roofline.figures["C" + n[-2:]].median / 1e9 for n in names
              if "C" + n[-2:] in roofline.figures}
    for case, outcome in outcomes.items():
        if bytes_of[case] < BEYOND_CACHES:
            continue
        cells = []
        for name in names:
            if name not in outcome.figures or name not in limits:
                cells.append("")
                continue
            speed = bytes_of[case] / outcome.figures[name].median / 1e9
            cells.append("%.1f (%.0f%%)" % (speed, 100 * speed / limits[name]))
        lines.append("| %s | %s |" % (_shown(case), " | ".join(cells)))
    return lines


def missing_lines(outcomes: Dict[str, Outcome], absent: Dict[str, str]) -> List[str]:
    """Who has no figure, and why."""
    lines = ["- %s: %s" % item for item in sorted(absent.items())]
    for case, outcome in outcomes.items():
        lines += ["- %s, %s: %s" % (case, who, why) for who, why in sorted(outcome.missing.items())]
    return lines


def plot(outcomes: Dict[str, Outcome], names: Sequence[str], to: str, path) -> bool:
    """Bars of every contender's time over `to`'s, logarithmic, as SVG; False where matplotlib is not
    there."""
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "autofuse"
    from matplotlib import pyplot
    cases = [case for case, outcome in outcomes.items() if to in outcome.figures]
    figure, axes = pyplot.subplots(figsize=(11, 0.55 * len(cases) + 1.5))
    height = 0.8 / max(1, len(names))
    for k, name in enumerate(names):
        found = [ratio(outcomes[case], name, to) for case in cases]
        places = [i + k * height for i, f in enumerate(found) if f]
        axes.barh(places, [f[0] for f in found if f], height, label=name)
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yticks([i + 0.4 for i in range(len(cases))])
    axes.set_yticklabels(cases)
    axes.invert_yaxis()
    axes.set_xlabel("time / time of %s" % to)
    axes.legend(loc="best", fontsize="small")
    figure.tight_layout()
    figure.savefig(str(path), metadata={"Date": None})
    pyplot.close(figure)
    return True
