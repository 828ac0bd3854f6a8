"""force_schedule_result, force_tiling_case and force_template_op_name: what they name in one kernel.

Names of cases. A kernel's nests are numbered (schedule/nests.py); nest X has the variants 0, 1, ... by tiling
key. gX_Y is variant Y of nest X; gX_Y_R where that variant cuts an axis that is reduced. Without gX: nest 0,
of a kernel of several nests every nest that has the variant. Schedule result N is the N-th way of a graph:
reduced axes whole in UB, or in parts; a graph without reductions has result 0 alone.

On entry what the user wrote, which config.py has checked for its form. On exit a Forced; a name that the
kernel does not have is reported once with those that it has, and the best is used.
"""
import difflib
import re
from typing import Dict, List, Sequence, Tuple

from tf_autofuse import diagnostics
from tf_autofuse.schedule.nests import Nest
from tf_autofuse.tiling.settings import Forced

_CASE = re.compile(r"^(?:g(\d+)_)?(\d+)(_R)?$")
_DFX = "(AUTOFUSE_DFX_FLAGS)"


def forced_of(config, kernel: str, nests: Sequence[Nest]) -> Forced:
    """kernel: the fused op's name."""
    if config is None or config.force_template_op_name not in ("", kernel):
        return Forced()
    ways: Tuple[Tuple[int, str], ...] = ()
    if config.force_schedule_result >= 0:
        ways = _ways(config.force_schedule_result, kernel, nests)
    return Forced(ways, _cases(config.force_tiling_case, kernel, nests))


def case_name(nest: Nest, key: int) -> str:
    """The full name of a variant."""
    impl = next(i for i in nest.impls if i.tiling_key == key)
    reduced = any(name == "r" and impl.cut_axis in axes for name, axes in impl.axis_groups)
    return "g%d_%d%s" % (nest.number, key, "_R" if reduced else "")


def results_of(nests: Sequence[Nest]) -> Dict[int, List[str]]:
    """By graph its ways in the order of their numbers; where the reduced axes are empty is no choice."""
    found: Dict[int, List[str]] = {}
    for nest in nests:
        ways = found.setdefault(nest.graph, [])
        if nest.way != "empty" and nest.way not in ways:
            ways.append(nest.way)
    return found


def report_name(config, kernels: Sequence[str]) -> None:
    """Says so where force_template_op_name is no fused op of the graph. kernels: the names of all."""
    name = config.force_template_op_name
    if name and kernels and name not in kernels:
        near = difflib.get_close_matches(name, kernels, n=1, cutoff=0.0)
        diagnostics.warn_once("force_template_op_name " + name,
                              "--force_template_op_name=%s: the graph has no fused op of this name" % name,
                              "the nearest is %s; set it %s" % (near[0], _DFX))


def _ways(result: int, kernel: str, nests: Sequence[Nest]) -> Tuple[Tuple[int, str], ...]:
    results = results_of(nests)
    forced = tuple((graph, ways[result]) for graph, ways in sorted(results.items()) if result < len(ways))
    if not forced:
        most = max(map(len, results.values()))
        _unknown("force_schedule_result", str(result), kernel, [str(i) for i in range(most)])
    return forced


def _cases(text: str, kernel: str, nests: Sequence[Nest]) -> Tuple[Tuple[int, int], ...]:
    known = {case_name(nest, i.tiling_key): (nest.number, i.tiling_key) for nest in nests for i in nest.impls}
    forced: Dict[int, int] = {}
    for word in filter(None, (w.strip() for w in text.split(","))):
        group, key, reduced = _CASE.match(word).groups()
        wanted = [group] if group else [str(n.number) for n in nests]
        names = ["g%s_%s%s" % (g, key, reduced or "") for g in wanted]
        found = [known[name] for name in names if name in known]
        forced.update(found)
        if not found:
            short = len(nests) == 1
            _unknown("force_tiling_case", word, kernel,
                     [name[len("g0_"):] if short else name for name in known])
    return tuple(sorted(forced.items()))


def _unknown(setting: str, given: str, kernel: str, valid: List[str]) -> None:
    diagnostics.warn_once(
        "%s %s %s" % (setting, given, kernel),
        "--%s=%s: %s has none of this name; the best is used" % (setting, given, kernel),
        "it has %s; set one of these, and --force_template_op_name=%s if it is meant for this op alone %s" % (
            ", ".join(valid), kernel, _DFX))
