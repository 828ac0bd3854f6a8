"""The decision log for people: what was fused, into what, and why the rest was not.

Reads journal records only; prints nothing by itself.
"""
import collections
from typing import Iterable

from rich.console import Console
from rich.table import Table

from tf_autofuse.fusion.reasons import ALL_CODES
from tf_autofuse.report.journal import GraphRecord

_EXAMPLES = 3
#: The graph's border, not its ops.
_BORDER = ("_Arg", "_Retval")


def render(records: Iterable[GraphRecord], console: Console) -> None:
    """Prints each record: the regions, what failed, and the refusals by reason with some nodes as
    examples."""
    count = 0
    for record in records:
        count += 1
        _render_one(record, console)
    if not count:
        console.print(
            "No graph reached the plugin. Is --enable_autofuse=true in AUTOFUSE_FLAGS, and is there "
            "a custom_optimizers entry (tf_autofuse.configure(config); README.md has it for Keras and "
            "Estimators)? `tf-autofuse doctor` checks what can be checked without the script."
        )


def _render_one(record: GraphRecord, console: Console) -> None:
    console.rule(
        "%s: %d nodes, fetches %s" % (record.graph, record.node_count, ", ".join(record.fetches) or "-")
    )
    compilation = record.compilation
    dropped = dict(record.dropped)
    table = Table("fused op", "TF nodes", "kernel source")
    fused = 0
    for compiled in compilation.compiled:
        emitted = compiled.region.emitted
        if emitted.name not in dropped:
            fused += 1
            table.add_row(
                emitted.name, ", ".join(emitted.origin), str(compiled.binary.source_path), end_section=True
            )
    if fused:
        console.print(table)
    elif not (dropped or compilation.pending or compilation.failures):
        text = "Nothing of this graph was fused. %s" % _why_nothing(compilation.plan)
        console.print(text, markup=False, highlight=False, soft_wrap=True)
    for name, reason in dropped.items():
        console.print("[yellow]not applied[/] %s: %s" % (name, reason))
    for pending in compilation.pending:
        console.print("[yellow]not built yet[/] %s: TensorFlow's own ops ran meanwhile" % pending.region.name)
    for failure in compilation.failures:
        console.print("[yellow]failed[/] %s in %s: %s. %s" % (
            failure.region.name, failure.stage, failure.reason, failure.remedy))
    _render_refusals(compilation.plan, console)
    console.print("%.1f ms: %s" % (record.seconds * 1e3, ", ".join(
        "%s %.1f" % (stage, seconds * 1e3) for stage, seconds in compilation.timings)))


def _why_nothing(plan) -> str:
    """The first thing to know, before the table of all refusals."""
    own = [d for d in plan.decisions if d.op not in _BORDER]
    if not own:
        return "It has no ops of its own."
    counts = collections.Counter(d.code for d in own if d.region < 0)
    code, count = counts.most_common(1)[0]
    reason = next(d.reason for d in own if d.region < 0 and d.code == code)
    text = "Of its %d nodes %d have the reason %s: %s; for example: %s"
    return text % (len(own), count, code, ALL_CODES[code].text, reason)


def _render_refusals(plan, console: Console) -> None:
    """One line per code: reasons name nodes, so that each would have a line of its own."""
    by_code = collections.OrderedDict()
    for decision in plan.decisions:
        if decision.region < 0 and decision.op not in _BORDER:
            by_code.setdefault(decision.code, []).append(
                (decision.reason, "%s (%s)" % (decision.name, decision.op))
            )
    for refusal in plan.refusals:
        by_code.setdefault(refusal.code, []).append((refusal.reason, "%s with %s" % (refusal.a, refusal.b)))
    if not by_code:
        return
    table = Table("count", "code", "why not fused", "for example", "nodes, for example")
    for code, found in sorted(by_code.items(), key=lambda item: -len(item[1])):
        reasons = list(collections.OrderedDict.fromkeys(reason for reason, _ in found))
        nodes = [node for _, node in found]
        table.add_row(str(len(found)), code, _meaning(code), _shown(reasons, "; "), _shown(nodes, ", "))
    console.print(table)


def _meaning(code: str) -> str:
    """The code's text, and what a user can do about it."""
    known = ALL_CODES[code]
    return known.text + (". Remedy: %s" % known.remedy if known.remedy else "")


def _shown(items, separator: str) -> str:
    return separator.join(items[:_EXAMPLES]) + (separator + "..." if len(items) > _EXAMPLES else "")
