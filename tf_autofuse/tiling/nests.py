"""The tiling of a kernel of several loop nests: struct AutofuseTilingData and the host functions around it.

On entry: a fused graph and the ImplGraphs of all its nests (schedule/nests.py). On exit two texts, the same
for the same input: `tiling_header` (struct AutofuseTilingData, included by host and device) and
`tiling_functions` (autofuse_tiling_size, autofuse_tiling, the names and values of the struct's fields). A
kernel of one nest has its fields at the top; in one of several, or with Gathers, each nest has a struct of
its own (AutofuseNest<n>, member n<n>), and around them stand the workspaces' places and what decides where
the blocks wait for each other.

Per graph one way is made active: 'empty' where the reduced axes are empty, else the cheaper of 'whole' and
'parts' by the sum of their nests' costs, 'whole' on a tie. The nests between two waits spread over the cores
one behind the other (first_block), so that small independent ones run side by side.
"""
from typing import Dict, List, NamedTuple, Sequence, Tuple

from tf_autofuse.ir.asc_graph import FusedGraph
from tf_autofuse.schedule.impl_graph import ImplGraph
from tf_autofuse.schedule.nests import Nest, Workspace, has_frame, nests_of, workspaces_of
from tf_autofuse.symbolic.size import is_static, symbols_of, to_cpp
from tf_autofuse.tiling.cpp import (Field, case_texts, choice_lines, field_functions, nest_fields,
                                    struct_text)
from tf_autofuse.tiling.formula import PRELUDE
from tf_autofuse.tiling.model import build_model
from tf_autofuse.tiling.plan_text import (PINNED, SIGNATURE, include_lines, is_wrapped, plan_functions,
                                          plan_signature)
from tf_autofuse.tiling.settings import DEFAULTS, TilingSettings
from tf_autofuse.tiling.solver_text import solver_text

#: Bytes that a workspace begins at a multiple of: GM's access granule.
WORKSPACE_ALIGN = 512
#: Bytes of the workspace in which one block reports: a cache line of the scalar unit (gather.h).
STATUS_BYTES = 64
_NEST_FIELDS = (Field("uint32_t", "first_block", "block of the kernel that is the nest's block 0"),
                Field("uint32_t", "sync", "1: all blocks wait for each other before this nest"))


class KernelTiling(NamedTuple):
    """symbols: the fused graph's, then those that plans define (numbers of parts). fields: per nest."""

    nests: Tuple[Nest, ...]
    symbols: Tuple[str, ...]
    parts: Tuple[Tuple[str, Nest], ...]
    fields: Tuple[Tuple[Field, ...], ...]
    workspaces: Tuple[Workspace, ...]

    @property
    def top(self) -> Tuple[Field, ...]:
        """The fields of AutofuseTilingData outside of the nests' structs."""
        wide = tuple(Field("int64_t", w.name + "_offset", "bytes from the workspace's begin")
                     for w in self.workspaces)
        if any(n.gathers for n in self.nests):
            wide += (Field("int64_t", "status_offset",
                           "bytes to the words that report indices out of range"),)
        return wide + (Field("int64_t", "workspace_bytes", "of all workspaces"),
                       Field("uint32_t", "block_dim", "cores that have work; 0: none"),
                       Field("uint32_t", "tiling_key", "one kernel for all shapes"))


def kernel_tiling(fused: FusedGraph, impls: Sequence[ImplGraph]) -> KernelTiling:
    nests = nests_of(fused, impls)
    parts = tuple((n.impls[0].parts_symbol, n) for n in nests if n.impls[0].parts_symbol)
    symbols = tuple(v.name for v in fused.sizes) + tuple(s for s, _ in parts)
    several = has_frame(nests)
    fields = []
    for nest in nests:
        own = nest_fields(symbols, nest.impls)
        fields.append(own + _NEST_FIELDS if several else own)
    return KernelTiling(nests, symbols, parts, tuple(fields), workspaces_of(fused, nests))


def tiling_fields(fused: FusedGraph, impls: Sequence[ImplGraph]) -> Tuple[Field, ...]:
    """All fields of AutofuseTilingData, in the order of autofuse_tiling_name; those of nest n of several are
    called n<n>_<field>."""
    tiling = kernel_tiling(fused, impls)
    if not has_frame(tiling.nests):
        return tiling.fields[0]
    inner = [f._replace(name="n%d_%s" % (i, f.name)) for i, fields in enumerate(tiling.fields)
             for f in fields]
    return tiling.top + tuple(inner)


def tiling_header(fused: FusedGraph, impls: Sequence[ImplGraph]) -> str:
    """The text of tiling_data.h."""
    tiling = kernel_tiling(fused, impls)
    lines = ["// The tiling data that the host computes and the kernel reads.", "#pragma once",
             "#include <cstdint>", ""]
    if not has_frame(tiling.nests):
        return "\n".join(lines + struct_text("AutofuseTilingData", tiling.fields[0]) + [""])
    for nest, fields in zip(tiling.nests, tiling.fields):
        lines += ["// nest %d: %s, %s, stage %d" % (nest.number, nest.impls[0].graph.name, nest.way,
                                                    nest.stage)]
        lines += struct_text("AutofuseNest%d" % nest.number, fields) + [""]
    lines.append("struct AutofuseTilingData {")
    lines += ["  %s %s;  // %s" % f for f in tiling.top]
    lines += ["  AutofuseNest%d n%d;" % (n.number, n.number) for n in tiling.nests]
    return "\n".join(lines + ["};", ""])


def tiling_functions(fused: FusedGraph, impls: Sequence[ImplGraph],
                     settings: TilingSettings = DEFAULTS) -> str:
    """The host functions of the tiling: everything behind AutofuseTilingData."""
    tiling = kernel_tiling(fused, impls)
    size = "AUTOFUSE_EXPORT int64_t autofuse_tiling_size(void) { return sizeof(AutofuseTilingData); }\n"
    several = has_frame(tiling.nests)
    parts = ["namespace {", "", PRELUDE, solver_text(settings)]
    parts += [PINNED] if settings.measures else []
    if several:
        for nest, fields in zip(tiling.nests, tiling.fields):
            parts.append(_nest_text(nest, fields, list(tiling.symbols), settings))
        body = _kernel_lines(fused, tiling, settings) + ["}", ""]
        named = [(f.name, f.name) for f in tiling.top]
        named += [("n%d_%s" % (i, f.name), "n%d.%s" % (i, f.name)) for i, own in enumerate(tiling.fields)
                  for f in own]
    else:
        fields = tiling.fields[0]
        models = [build_model(i) for i in impls]
        parts += case_texts(models, impls, list(tiling.symbols), fields, "AutofuseTilingData", settings)
        body = choice_lines(models, False, settings) + [
            "  *block_dim = t->block_dim;", "  return 0;", "}", ""]
        named = [(f.name,) * 2 for f in fields]
    begin = ["  *t = AutofuseTilingData{};", "  *block_dim = 0;", "  *workspace_bytes = 0;"]
    if is_wrapped(settings):
        parts += ["\n".join(plan_signature(settings) + begin + body), "}  // namespace", "", size]
        parts.append(plan_functions(settings, fused.name, len(fused.sizes), "\n".join(parts)))
    else:
        parts += ["}  // namespace", "", size, "\n".join(list(SIGNATURE) + begin + body)]
    return "\n".join(include_lines(settings) + parts + [field_functions(named)])


def _nest_text(nest: Nest, fields: Sequence[Field], symbols: List[str], settings: TilingSettings) -> str:
    """namespace nest<n>: its variants, and Plan, which also gives the cost of the plan."""
    models = [build_model(i) for i in nest.impls]
    struct = "AutofuseNest%d" % nest.number
    lines = ["namespace nest%d {" % nest.number, ""]
    lines += case_texts(models, nest.impls, symbols, fields, struct, settings)
    pins = ", const AutofusePin* pins,\n             int32_t pin_count" if settings.measures else ""
    lines += ["int32_t Plan(const int64_t* sizes, const AutofuseMachine* machine, %s* t," % struct,
              "             double* cost%s) {" % pins,
              "  *t = %s{};" % struct, "  *cost = 0.0;"]
    lines += choice_lines(models, bool(nest.impls[0].parts_symbol), settings, nest.number)
    lines += ["  *cost = best.cost;", "  return 0;", "}", "", "}  // namespace nest%d" % nest.number, ""]
    return "\n".join(lines)


def _kernel_lines(fused: FusedGraph, tiling: KernelTiling, settings: TilingSettings) -> List[str]:
    lines = ["  int64_t values[%d] = {};" % max(1, len(tiling.symbols))]
    lines += ["  values[%d] = sizes[%d];" % (i, i) for i in range(len(fused.sizes))]
    lines.append("  double cost = 0.0;")
    by_graph: Dict[int, List[Nest]] = {}
    for nest in tiling.nests:
        by_graph.setdefault(nest.graph, []).append(nest)
    for nests in by_graph.values():
        lines += _graph_lines(nests, tiling, settings)
    lines += _order_lines(tiling)
    lines += _workspace_lines(tiling)
    return lines + ["  t->block_dim = static_cast<uint32_t>(launched);", "  *block_dim = t->block_dim;",
                    "  *workspace_bytes = static_cast<uint64_t>(t->workspace_bytes);", "  return 0;"]


def _plan_call(nest: Nest, settings: TilingSettings) -> str:
    pins = ", pins, pin_count" if settings.measures else ""
    return "nest%d::Plan(values, machine, &t->n%d, &cost%s)" % (nest.number, nest.number, pins)


def _graph_lines(nests: Sequence[Nest], tiling: KernelTiling, settings: TilingSettings) -> List[str]:
    """Plans for the nests of one graph; those of ways that are not taken end with block_dim 0."""
    ways: Dict[str, List[Nest]] = {}
    for nest in nests:
        ways.setdefault(nest.way, []).append(nest)
    lines = ["  // %s" % nests[0].impls[0].graph.name]
    whole = ways["whole"][0] if "whole" in ways else None
    if len(ways) == 1 and whole:
        return lines + ["  if (%s != 0) {" % _plan_call(whole, settings), "    return 1;", "  }"]
    indent = "  "
    if "empty" in ways:
        (empty,) = ways["empty"]
        lines += ["  if (%s) {" % _condition(empty.impls[0].reduced_size, tiling),
                  "    if (%s != 0) {" % _plan_call(empty, settings), "      return 1;", "    }",
                  "  } else {"]
        indent = "    "
    inner = ["bool whole = %s;" % ("%s == 0" % _plan_call(whole, settings) if whole else "false")]
    if "parts" in ways:
        forced = settings.forced.way_of(nests[0].graph)
        inner += [] if forced else ["const double whole_cost = cost;"]
        inner += ["bool parts = true;", "double parts_cost = 0.0;"]
        for nest in ways["parts"]:
            inner += ["parts = parts && %s == 0;" % _plan_call(nest, settings), "parts_cost += cost;"]
            inner += ["if (parts) {", "  values[%d] = CeilDiv(%s, Max(t->n%d.%s, 1));" % (
                tiling.symbols.index(nest.impls[0].parts_symbol), _value(nest.impls[0].cut_size, tiling),
                nest.number, nest.impls[0].tile_symbol)] if nest.impls[0].parts_symbol else []
            if nest.impls[0].parts_symbol:
                symbol = nest.impls[0].parts_symbol
                if any(f.name == symbol for f in tiling.fields[nest.number]):
                    inner.append("  t->n%d.%s = values[%d];" % (nest.number, symbol,
                                                                tiling.symbols.index(symbol)))
                inner.append("}")
        better = {"whole": "!whole", "parts": "true", None: "(!whole || parts_cost < whole_cost)"}
        inner.append("if (parts && %s) {" % better[forced])
        inner += ["  t->n%d = AutofuseNest%d{};" % (whole.number, whole.number)] if whole else []
        inner.append("} else {")
        inner += ["  t->n%d = AutofuseNest%d{};" % (n.number, n.number) for n in ways["parts"]]
        inner += ["  parts = false;", "}", "whole = whole || parts;"]
    inner += ["if (!whole) {", "  return 1;", "}"]
    lines += [indent + line for line in inner]
    return lines + (["  }"] if "empty" in ways else [])


def _value(size, tiling: KernelTiling) -> str:
    """The size as C++ over values[]."""
    return to_cpp(size, {s: "values[%d]" % i for i, s in enumerate(tiling.symbols) if s in symbols_of(size)})


def _condition(size, tiling: KernelTiling) -> str:
    return "%s == 0" % _value(size, tiling)


def _order_lines(tiling: KernelTiling) -> List[str]:
    """Which blocks run which nest, and where all wait: before a nest that reads a workspace which a nest
    since the last wait writes. Workspaces are bits of a mask; more than 63 share bits, which only adds
    waits."""
    bits = {w.name: i % 63 for i, w in enumerate(tiling.workspaces)}

    def mask(names) -> int:
        result = 0
        for name in names:
            result |= 1 << bits[name]
        return result

    lines = ["  const int64_t cores = Max(machine->core_num, 1);", "  int64_t launched = 0;",
             "  int64_t group = 0;", "  int64_t written = 0;"]
    for n in tiling.nests:
        at = "t->n%d" % n.number
        lines.append("  if (%s.block_dim != 0) {" % at)
        for limit in dict.fromkeys(_condition(g.attr("index_size"), tiling) for g in n.gathers
                                   if not (is_static(g.attr("index_size")) and g.attr("index_size") > 0)):
            lines += ["    if (%s) {  // no index is in range" % limit, "      return 1;", "    }"]
        if n.reads:
            lines += ["    if ((written & INT64_C(%d)) != 0) {" % mask(n.reads), "      %s.sync = 1;" % at,
                      "      written = 0;", "      group = 0;", "    }"]
        lines += ["    %s.first_block = static_cast<uint32_t>(group %% cores);" % at,
                  "    group += %s.block_dim;" % at, "    launched = Max(launched, Min(group, cores));"]
        if n.writes:
            lines.append("    written |= INT64_C(%d);" % mask(n.writes))
        lines.append("  }")
    return lines + ["  (void)written;"]


def _workspace_lines(tiling: KernelTiling) -> List[str]:
    lines = ["  int64_t offset = 0;"]
    for w in tiling.workspaces:
        writers = " || ".join("t->n%d.block_dim != 0" % n.number for n in tiling.nests if w.name in n.writes)
        lines += ["  t->%s_offset = offset;" % w.name,
                  "  if (%s) {" % writers,
                  "    offset += CeilDiv(Max(%s, 0) * %d, %d) * %d;" % (
                      _value(w.elements, tiling), w.dtype.bytes, WORKSPACE_ALIGN, WORKSPACE_ALIGN), "  }"]
    if any(n.gathers for n in tiling.nests):
        lines += ["  t->status_offset = offset;", "  offset += launched * %d;" % STATUS_BYTES]
    return lines + ["  t->workspace_bytes = offset;"]
