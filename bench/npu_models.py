"""Whole models on an NPU, modelled: kernels and time before and after fusion, beside published reductions.

The graphs (bench/_npu_graphs.py) are analysed, not run: their regions are those that the plugin would fuse,
every kernel's time is modelled (docs/npu-model.md). `python -m bench.npu_models --write` puts the tables into
docs/npu-models.md.
"""

import os
import sys
from collections import Counter
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

from bench import _documents  # noqa: E402
from tf_autofuse.config import Config  # noqa: E402
from tf_autofuse.lowering.graph_view import GraphView  # noqa: E402
from tf_autofuse.machine import Machine, machine_for  # noqa: E402
from tf_autofuse.profiling.graph_time import GraphTime, Kernel, graph_time, total_cycles  # noqa: E402

DOCUMENT = _documents.ROOT / "docs" / "npu-models.md"
#: What AUTOFUSE_FLAGS names besides elementwise ops and broadcasts, which are always on.
FAMILIES: Dict[str, str] = {
    "elementwise, broadcast": "",
    "+ reduce, concat": "reduce,concat",
    "+ slice, split, transpose": "reduce,concat,slice,split,transpose",
    "+ gather": "reduce,concat,slice,split,transpose,gather",
}


class Figures(NamedTuple):
    """One model with one set of families. Times: microseconds, modelled. cube: of the cube cores' kernels,
    the same before and after. before, after: all kernels."""

    model: str
    families: str
    time: GraphTime
    cube: float
    before: float
    after: float

    @property
    def saved(self) -> float:
        """Percent of all op time."""
        return 100.0 * (1.0 - self.after / self.before)

    @property
    def saved_vector(self) -> float:
        """Percent of the vector cores' op time."""
        return 100.0 * (1.0 - (self.after - self.cube) / (self.before - self.cube))


def config_for(families: str) -> Config:
    flags = "--enable_autofuse=true" + (";--autofuse_enable_pass=" + families if families else "")
    return Config.from_sources({"AUTOFUSE_FLAGS": flags}, {"precision_mode": "must_keep_origin_dtype"})


def view_of(name: str) -> GraphView:
    import tensorflow as tf

    from bench import _npu_graphs

    with tf.Graph().as_default():
        return GraphView.from_columns(_npu_graphs.columns_of(_npu_graphs.MODELS[name].build()))


def microseconds(kernels: Sequence[Kernel], machine: Machine) -> float:
    return total_cycles(kernels) / machine.clock_mhz


def measure(name: str, families: str, view: GraphView, machine: Machine) -> Figures:
    found = graph_time(view, config_for(FAMILIES[families]), machine)
    cube = microseconds([k for k in found.before if k.modelled.on_cube], machine)
    before, after = (microseconds(side, machine) for side in (found.before, found.after))
    return Figures(name, families, found, cube, before, after)


def by_type(kernels: Sequence[Kernel], machine: Machine, most: int = 6) -> str:
    """The op types that take longest, as text: kernels x type, microseconds."""
    counts, times = Counter(), Counter()  # type: Counter, Counter
    for kernel in kernels:
        counts[kernel.op] += 1
        times[kernel.op] += kernel.modelled.microseconds(machine)
    return ", ".join("%d %s %.0f" % (counts[op], op, us) for op, us in times.most_common(most))


def rows_of(figures: Figures, published: Optional[Tuple[float, str]]) -> List[str]:
    said = "%.1f %% of %s" % published if published and published[0] else "-"
    return [
        figures.model,
        figures.families,
        "%d -> %d" % (len(figures.time.before), len(figures.time.after)),
        "%.0f" % figures.cube,
        "%.0f -> %.0f" % (figures.before, figures.after),
        "%.1f %%" % figures.saved,
        "%.1f %%" % figures.saved_vector,
        said,
    ]


HEADS = "model|families|kernels|cube, us|all ops, us|saved|saved of vector ops|published".split("|")


def run(console: Console, write: bool = False, only: Sequence[str] = ()) -> None:
    from bench import _npu_graphs

    unknown = sorted(set(only) - set(_npu_graphs.MODELS))
    if unknown:
        raise SystemExit("no model %s; there are %s" % (", ".join(unknown), ", ".join(_npu_graphs.MODELS)))
    if only and write:
        raise SystemExit("--write makes whole tables: name no models")
    machine = machine_for("")
    table, rows, details = Table(*HEADS), [], []
    for name, model in _npu_graphs.MODELS.items():
        if only and name not in only:
            continue
        view = view_of(name)
        for families in FAMILIES:
            figures = measure(name, families, view, machine)
            is_first = families == next(iter(FAMILIES))
            rows.append(rows_of(figures, (model.published, model.measure) if is_first else None))
            table.add_row(*rows[-1])
            if is_first:
                details.append((name, "before", by_type(figures.time.before, machine)))
            if families in list(FAMILIES)[::2]:
                details.append((name, families, by_type(figures.time.after, machine)))
            if figures.time.missing:
                console.print("not modelled in %s: %s" % (name, figures.time.missing))
    console.print(table)
    for detail in details:
        console.print("%s, %s: %s" % detail, highlight=False)
    console.print("all times are modelled for %s" % machine.soc)
    if write:
        kernel_heads = ["model", "with", "kernels of a type, us"]
        _documents.replace(DOCUMENT, "models", _documents.markdown(HEADS, rows))
        _documents.replace(DOCUMENT, "kernels", _documents.markdown(kernel_heads, details))


if __name__ == "__main__":
    arguments = sys.argv[1:]
    run(Console(width=170), "--write" in arguments, [a for a in arguments if not a.startswith("--")])
