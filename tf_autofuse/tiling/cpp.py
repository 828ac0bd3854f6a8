"""The generated tiling function of one loop nest: C++14 that does at run time, for the real dims, what
tiling/solve.py does. tiling/nests.py puts those of a kernel together.

On entry: the variants of one nest. On exit texts, the same for the same input: the fields of its tiling data,
its models and solver, and the statements that choose among them. They stand in a source that has <cstdint>,
AUTOFUSE_EXPORT, struct AutofuseMachine and symbolic.size.CPP_PRELUDE. Integers are
int64_t; costs are doubles in the order of operations that formula.text prints, so a compiler must not
contract them (-ffp-contract=off) to agree with Python to the last bit.
"""
from typing import List, NamedTuple, Sequence, Tuple

from tf_autofuse.ir.asc_graph import AscNode
from tf_autofuse.schedule.impl_graph import ImplGraph
from tf_autofuse.symbolic.size import Size, SizeExpr, is_static, known_equal, symbols_of, to_cpp
from tf_autofuse.tiling import cost_table as table
from tf_autofuse.tiling.cost_model import BLOCK_DIM, FLOW
from tf_autofuse.tiling.formula import Formula, text
from tf_autofuse.tiling.model import TILES_PER_BLOCK, TilingModel
from tf_autofuse.tiling.settings import DEFAULTS, TilingSettings


class Field(NamedTuple):
    """A field of AutofuseTilingData. comment: what it is, with its unit."""

    type: str
    name: str
    comment: str


class RunTimeValue(NamedTuple):
    """A Scalar whose value is a Size, as a field of the tiling data. type: float, or int32_t for integers."""

    field: str
    type: str
    value: Size

    def is_of(self, scalar: AscNode) -> bool:
        value = scalar.attr("value")
        return not is_static(value) and known_equal(value, self.value) and self.type == _value_type(scalar)


def _value_type(scalar: AscNode) -> str:
    return "float" if scalar.y.dtype.is_floating else "int32_t"


def run_time_values(impls: Sequence[ImplGraph]) -> Tuple[RunTimeValue, ...]:
    """The Scalars of a nest that are known at run time only, each once."""
    found: List[RunTimeValue] = []
    for impl in impls:
        for node in impl.graph.of_type("Scalar"):
            value = node.attr("value")
            if isinstance(value, SizeExpr) and not any(v.is_of(node) for v in found):
                found.append(RunTimeValue("value%d" % len(found), _value_type(node), value))
    return tuple(found)


def kernel_symbols(symbols: Sequence[str], impls: Sequence[ImplGraph]) -> Tuple[str, ...]:
    """Those of `symbols` that the variants compute with, in their order."""
    used = set()

    def walk(item) -> None:
        if isinstance(item, tuple):
            for x in item:
                walk(x)
        elif not isinstance(item, str):
            used.update(symbols_of(item))

    for impl in impls:
        walk(tuple(plan for _, plan in impl.plans))
        walk(tuple(impl.graph.axis(a).size for a in impl.outer_axes + (impl.cut_axis,)))
    return tuple(s for s in symbols if s in used)


def nest_fields(symbols: Sequence[str], impls: Sequence[ImplGraph]) -> Tuple[Field, ...]:
    """The fields of one nest's tiling data in memory order: 8-byte ones first, the whole a multiple of 8
    bytes. symbols: all of the kernel's; the nest gets those that it computes with."""
    wide = [Field("int64_t", s, "size") for s in kernel_symbols(symbols, impls)]
    narrow = [Field("uint32_t", "block_dim", "cores that have work; 0: none"),
              Field("uint32_t", "tiling_key", "the kernel variant")]
    for impl in impls:
        wide.append(Field("int64_t", impl.block_symbol, "tiles of one block"))
        narrow.append(Field("uint32_t", impl.tile_symbol, "elements of the cut axis in one tile"))
        narrow += [Field("uint32_t", c.field, "bytes of one buffer") for c in impl.containers]
        if impl.tmp_bytes:
            narrow.append(Field("uint32_t", "tmp_bytes", "bytes of the scratch buffer"))
    narrow += [Field(v.type, v.field, "a constant that the sizes decide") for v in run_time_values(impls)]
    fields = list(dict.fromkeys(wide + narrow))
    if sum(f.type != "int64_t" for f in fields) % 2:
        fields.append(Field("uint32_t", "unused", "fills the last 8 bytes"))
    return tuple(fields)


def struct_text(name: str, fields: Sequence[Field]) -> List[str]:
    """Lines of a struct, with a check that the compiler adds no padding."""
    lines = ["struct %s {" % name]
    lines += ["  %s %s;  // %s" % f for f in fields]
    size = sum(8 if f.type == "int64_t" else 4 for f in fields)
    return lines + ["};", "static_assert(sizeof(%s) == %d, \"padding in %s\");" % (name, size, name)]


def case_texts(models: Sequence[TilingModel], impls: Sequence[ImplGraph], symbols: List[str],
               fields: Sequence[Field], struct: str, settings: TilingSettings) -> List[str]:
    """models: of the impls. struct Case<key> of every variant; struct: the type that Fill fills."""
    used = {f.name for f in fields if f.type == "int64_t"}
    values = run_time_values(impls)
    return [_case(m, symbols, used, values, struct, settings) for m in models]


def _largest(sizes: Sequence[Size]) -> str:
    result = to_cpp(sizes[0])
    for s in sizes[1:]:
        result = "Max(%s, %s)" % (result, to_cpp(s))
    return result


class _Method(NamedTuple):
    """A const member function; lines: its body."""

    result: str
    name: str
    parameters: str
    lines: Tuple[str, ...]


def _case(m: TilingModel, symbols: List[str], fields, values: Sequence[RunTimeValue], struct: str,
          settings: TilingSettings) -> str:
    """struct Case<key>: one variant's model. Members are the symbols that it computes with."""
    conditions = " && ".join("%s == %s" % (to_cpp(g.left), to_cpp(g.right)) for g in m.conditions) or "true"
    limits = " && ".join(dict.fromkeys("%s <= %d" % (to_cpp(l.value), l.bound) for l in m.limits)) or "true"
    decisive = [s for s in (m.cut, m.outer) + m.inner_sizes if not is_static(s) or s == 0]
    empty = " || ".join("%s == 0" % to_cpp(s) for s in decisive)
    inner = ["int64_t inner = 1;"] if m.inner_sizes else []
    inner += ["if (%s > budget || (inner *= %s) > budget) return false;" % (to_cpp(s), to_cpp(s))
              for s in m.inner_sizes]
    bytes_ = ["int64_t bytes = %s;" % (_largest(m.tmp_bytes) if m.tmp_bytes else "0")]
    bytes_ += ["bytes += %d * %s;  // %s" % (c.buf_num, _largest(c.sizes), c.field) for c in m.containers]
    fill = ["t->%s = %s;" % (s, s) for s in symbols if s in fields]
    fill += ["t->%s = choice.tiles_per_block;" % m.block_symbol,
             "t->%s = static_cast<uint32_t>(%s);" % (m.tile_symbol, m.tile_symbol)]
    fill += ["t->%s = static_cast<uint32_t>(%s);" % (c.field, _largest(c.sizes)) for c in m.containers]
    if m.tmp_bytes:
        fill.append("t->tmp_bytes = static_cast<uint32_t>(%s);" % _largest(m.tmp_bytes))
    fill += ["t->%s = static_cast<%s>(%s);" % (v.field, v.type, to_cpp(v.value)) for v in values]
    fill += ["t->block_dim = static_cast<uint32_t>(choice.block_dim);", "t->tiling_key = %d;" % m.key]
    tile = "int64_t " + m.tile_symbol
    methods = (
        _Method("bool", "Applies", "", ("return %s;" % conditions,)),
        _Method("bool", "Empty", "", ("return %s;" % (empty or "false"),)),
        _Method("int64_t", "Cut", "", ("return %s;" % to_cpp(m.cut),)),
        _Method("int64_t", "Outer", "", ("return %s;" % to_cpp(m.outer),)),
        _Method("bool", "InnerWithin", "int64_t budget", tuple(inner) + ("return true;",)),
        _Method("bool", "WithinLimits", tile, ("return %s;" % limits,)),
        _Method("int64_t", "UbBytes", tile, tuple(bytes_) + ("return bytes;",)),
        _Method("double", "Cost", "%s, int64_t %s, int64_t %s" % (tile, TILES_PER_BLOCK, BLOCK_DIM),
                _cost_lines(m)),
        _Method("void", "Fill", "const Choice& choice, %s* t" % struct,
                ("const int64_t %s = choice.tile;" % m.tile_symbol,) + tuple(fill)),
    )
    if settings.small_shapes:
        methods += (_Method("double", "Head", "%s, int64_t %s" % (tile, BLOCK_DIM),
                            ("return %s;" % text(m.head),)),)
    bodies = "\n".join(line for method in methods for line in method.lines)
    members = [s for s in symbols if _mentions(bodies, s)]
    lines = ["// key %d: %s" % (m.key, m.template), "struct Case%d {" % m.key]
    constants = (("int32_t kKey", m.key), ("int64_t kAlign", m.align), ("int64_t kLine", m.line),
                 ("int64_t kRows", m.rows),
                 ("int64_t kReserved", m.reserved))
    lines += ["  static constexpr %s = %d;" % c for c in constants]
    lines += ["  int64_t %s;" % s for s in members]
    lines.append("  explicit Case%d(const int64_t* sizes)%s { (void)sizes; }" % (
        m.key, "".join("%s %s(sizes[%d])" % (":" if i == 0 else ",", s, symbols.index(s))
                       for i, s in enumerate(members))))
    for method in methods:
        lines.append("  %s %s(%s) const {" % (method.result, method.name, method.parameters))
        body = "\n".join(method.lines)
        for parameter in filter(None, method.parameters.split(", ")):
            name = parameter.split()[-1].lstrip("*&")
            if not _mentions(body, name):
                lines.append("    (void)%s;" % name)
        lines += ["    " + line for line in method.lines]
        lines.append("  }")
    return "\n".join(lines + ["};", ""])


def _mentions(code: str, name: str) -> bool:
    at = code.find(name)
    while at >= 0:
        before, after = code[at - 1:at], code[at + len(name):at + len(name) + 1]
        if not (before.isalnum() or before == "_" or after.isalnum() or after == "_"):
            return True
        at = code.find(name, at + 1)
    return False


def _cost_lines(m: TilingModel) -> Tuple[str, ...]:
    """The objective, one statement a node: the same operations in the same order as m.cost."""
    lines: List[str] = []
    pipes = sorted(m.pipes, key=lambda p: FLOW.index(p.pipe))
    for p in pipes:
        if p.hoisted:
            lines += _sum("%s_once" % p.pipe, p.hoisted)
        if p.body:
            lines += _sum("%s_tile" % p.pipe, p.body)
    lines.append("double ready = 0.0, slowest = 0.0;")
    for at, p in enumerate(pipes):
        lines.append("ready = Larger(%s, ready)%s;  // %s" % (
            text(p.start), " + %s_once" % p.pipe if p.hoisted else "", p.pipe))
        behind = ["%s_tile" % b.pipe for b in pipes[at + 1:] if b.body]
        lines.append("slowest = Larger(slowest, ready%s%s);" % (
            " + D(%s) * %s_tile" % (TILES_PER_BLOCK, p.pipe) if p.body else "",
            " + (%s)" % " + ".join(behind) if behind else ""))
        if p.body and p is not pipes[-1]:
            lines.append("ready += %s_tile;" % p.pipe)
    return tuple(lines) + ("return %s + slowest;" % repr(table.LAUNCH),)


def _sum(name: str, parts: Sequence[Tuple[str, Formula]]) -> List[str]:
    (first, value), rest = parts[0], parts[1:]
    return ["double %s = %s;  // %s" % (name, text(value), first)] + [
        "%s += %s;  // %s" % (name, text(v), n) for n, v in rest]


def choice_lines(models: Sequence[TilingModel], partial: bool = False, settings: TilingSettings = DEFAULTS,
                 nest: int = 0) -> List[str]:
    """Statements of a function that returns 0 where `best` is filled into `t`, 1 where there is no plan;
    given sizes, machine and t, and where plans may be pinned, pins and pin_count. partial: the nest makes
    partial results: the variant with the largest tile makes the fewest, which the next nest must hold in UB
    together, so it is taken whatever the cost."""
    lines = ["  const Case%d case%d(sizes);" % (m.key, m.key) for m in models]
    lines += ["  if (case%d.Empty()) {" % models[-1].key, "    return 0;", "  }",
              "  const int64_t cores = Max(machine->core_num, 1);",
              "  const int64_t ub_bytes = static_cast<int64_t>(machine->ub_size);",
              "  Choice best{0.0, 0.0, -1, 0, 0, 0, 0, 0};"]
    first = _pinned_lines(models, nest) if settings.measures else []
    forced = settings.forced.case_of(nest)
    first += _forced_lines([m for m in models if m.key == forced])
    chosen = _best_lines(models, partial)
    if first:
        chosen = ["  if (best.key < 0) {"] + ["  " + line for line in chosen] + ["  }"]
    lines += first + chosen + ["  switch (best.key) {"]
    for m in models:
        lines += ["    case %d:" % m.key, "      case%d.Fill(best, t);" % m.key, "      break;"]
    return lines + ["    default:", "      return 1;", "  }"]


def _pinned_lines(models: Sequence[TilingModel], nest: int) -> List[str]:
    """The plan that a pin names, or none."""
    lines = ["  for (int32_t i = 0; i < pin_count; ++i) {", "    if (pins[i].nest != %d) {" % nest,
             "      continue;", "    }", "    switch (pins[i].key) {"]
    for m in models:
        lines += ["      case %d:" % m.key, "        if (case%d.Applies()) {" % m.key,
                  "          best = Pinned(case%d, pins[i], cores, ub_bytes);" % m.key, "        }",
                  "        break;"]
    return lines + ["    }", "    if (best.key < 0) {", "      return 1;", "    }", "  }"]


def _forced_lines(models: Sequence[TilingModel]) -> List[str]:
    lines: List[str] = []
    for m in models:
        lines += ["  if (best.key < 0 && case%d.Applies()) {  // forced" % m.key,
                  "    best = Solve(case%d, cores, ub_bytes);" % m.key, "  }"]
    return lines


def _best_lines(models: Sequence[TilingModel], partial: bool) -> List[str]:
    lines: List[str] = []
    for m in (m for m in models if m.conditions and not m.last_resort):
        lines += ["  if (case%d.Applies()) {" % m.key,
                  "    best = Better(Solve(case%d, cores, ub_bytes), best);" % m.key, "  }"]
    rest = ["best = Better(Solve(case%d, cores, ub_bytes), best);" % m.key
            for m in models if not m.conditions and not m.last_resort]
    if partial:
        for m in (m for m in models if not m.conditions):
            lines += ["  const Choice choice%d = Solve(case%d, cores, ub_bytes);" % (m.key, m.key),
                      "  if (choice%d.key >= 0 && (best.key < 0 || choice%d.tile > best.tile)) {"
                      % (m.key, m.key),
                      "    best = choice%d;" % m.key, "  }"]
    elif any(m.conditions for m in models):
        lines += ["  if (best.key < 0) {"] + ["    " + line for line in rest] + ["  }"]
    else:
        lines += ["  " + line for line in rest]
    for m in sorted((m for m in models if m.last_resort), key=lambda m: not m.conditions):
        lines += ["  if (best.key < 0 && case%d.Applies()) {" % m.key,
                  "    best = Solve(case%d, cores, ub_bytes);" % m.key, "  }"]
    return lines


def field_functions(fields: Sequence[Tuple[str, str]]) -> str:
    """autofuse_tiling_name and autofuse_tiling_value of (name, member) pairs."""
    lines = ["AUTOFUSE_EXPORT const char* autofuse_tiling_name(int32_t index) {", "  switch (index) {"]
    for i, (name, _) in enumerate(fields):
        lines += ["    case %d:" % i, "      return \"%s\";" % name]
    lines += ["    default:", "      return nullptr;", "  }", "}", "",
              "AUTOFUSE_EXPORT int64_t autofuse_tiling_value(const void* tiling, int32_t index) {",
              "  const auto* t = static_cast<const AutofuseTilingData*>(tiling);", "  switch (index) {"]
    for i, (_, member) in enumerate(fields):
        lines += ["    case %d:" % i, "      return t->%s;" % member]
    return "\n".join(lines + ["    default:", "      return 0;", "  }", "}", ""])
