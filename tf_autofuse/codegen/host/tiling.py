"""The run-time plan of a host kernel in C: blocks and pieces of every nest, offsets in the workspace, phases,
cost.

A block is worth being claimed by a thread: about BLOCK_NS of work. Its borders depend on sizes only, so that
a launch computes the same on any number of threads.
"""
from typing import Iterable, List, NamedTuple, Sequence, Tuple

from tf_autofuse.codegen.host import streams
from tf_autofuse.ir.asc_graph import FusedGraph
from tf_autofuse.schedule.host_graph import Tensor
from tf_autofuse.schedule.host_program import STREAMED_ROW, HostProgram, PlannedNest
from tf_autofuse.symbolic.size import is_static, known_equal, product, symbols_of, to_cpp

#: Nanoseconds of work that make a block, and most blocks of one nest.
BLOCK_NS = 4000.0
MOST_BLOCKS = 64
#: Pieces of the vector axis are whole multiples of this many elements: no two blocks write to one cache line.
PIECE_ALIGN = 64

_DIVIDE = """\
#define kStreamedRow %(row)d  // bytes of a row at least that is stored around the caches
typedef struct {
  int64_t per, tile, pieces, items, blocks;
} Division;

/* rows * width elements of `ns` each in blocks. kept: whether there is nothing to do where width is 0; cut:
whether
   rows may be cut into pieces; least, most: smallest and largest piece or 0. */
COLD static void Divide(int64_t rows, int64_t width, double ns, int kept, int cut, int64_t least,
                        int64_t most, Division* d) {
  const double total = (double)rows * (double)width * ns;
  int64_t wanted = total >= %(block).1f * %(most)d ? %(most)d : (int64_t)(total / %(block).1f);
  wanted = Max(wanted, 1);
  d->tile = Max(width, 1);
  if (cut && rows > 0 && rows < wanted) {
    const int64_t pieces = (wanted + rows - 1) / rows;
    const int64_t piece = Max((width + pieces - 1) / pieces, least);
    d->tile = (piece + %(align)d - 1) / %(align)d * %(align)d;
  }
  if (most > 0) d->tile = Min(d->tile, most);
  d->pieces = cut ? (width + d->tile - 1) / d->tile : 1;
  d->items = kept && width == 0 ? 0 : rows * d->pieces;
  d->per = d->items > 0 ? (d->items + wanted - 1) / wanted : 1;
  d->blocks = (d->items + d->per - 1) / d->per;
}
""" % {"block": BLOCK_NS, "most": MOST_BLOCKS, "align": PIECE_ALIGN, "row": STREAMED_ROW}


class Field(NamedTuple):
    """An int64_t of the tiling data."""

    name: str
    comment: str


def used_symbols(fused: FusedGraph, program: HostProgram) -> Tuple[str, ...]:
    """The symbols that nests compute with, in the order of fused.sizes."""
    used = set()

    def walk(item) -> None:
        if isinstance(item, (tuple, frozenset)):
            for x in item:
                walk(x)
        elif not isinstance(item, (str, bool, float)) and item is not None:
            used.update(symbols_of(item))

    for planned in program.nests:
        walk(tuple((a.size, a.extent) for a in planned.nest.graph.axes))
        for v in planned.nest.graph.values:
            if v.access is not None:
                walk((v.access.offset, v.access.strides, v.access.gather or ()))
            if v.type == "Scalar":
                walk(v.attrs[0][1])
    return tuple(v.name for v in fused.sizes if v.name in used)


def fields(fused: FusedGraph, program: HostProgram) -> Tuple[Field, ...]:
    found = [Field(s, "size") for s in used_symbols(fused, program)]
    found += [Field("block_dim", "blocks of all nests"), Field("tiling_key", "the variant"),
              Field("cost", "nanoseconds of one block, about")]
    for p in program.nests:
        k = p.number
        found += [Field("begin%d" % k, "first block of nest %d" % k), Field("end%d" % k,
                                                                            "the one behind its last"),
                  Field("per%d" % k, "items of a block"), Field("items%d" % k, "items")]
        if p.cuts:
            found += [Field("tile%d" % k, "elements of a piece"), Field("pieces%d" % k, "pieces of a row")]
        if p.streams:
            found.append(Field("stream%d" % k, "whether it stores around the caches"))
        found += [Field("u%d_%d" % (k, i), "offset of the row buffers") for i, _, _ in p.workspace_buffers]
    found += [Field("w%d" % i, "offset of tensor %d in the workspace" % i)
              for i in range(len(program.memory))]
    return tuple(found)


def memory_field(program: HostProgram, tensor: Tensor) -> str:
    for i, scratch in enumerate(program.memory):
        if scratch.tensor == tensor:
            return "w%d" % i
    raise KeyError(tensor)


def tiling_struct(all_fields: Sequence[Field]) -> str:
    return "\n".join(["typedef struct {"] + ["  int64_t %s;  // %s" % f for f in all_fields] + ["} Tiling;"])


def tiling_functions(fused: FusedGraph, program: HostProgram, all_fields: Sequence[Field]) -> str:
    """autofuse_tiling and what tells of its result."""
    symbols = [v.name for v in fused.sizes]
    body: List[str] = []
    for key, variant in enumerate(program.variants):
        condition = " && ".join("%s == %s" % (to_cpp(g.left), to_cpp(g.right)) for g in variant.conditions)
        body.append("  %s{" % ("if (%s) " % condition if condition else "else " if key else ""))
        body.append("    t->tiling_key = %d;" % key)
        body += ["    " + line for line in _nests(variant.nests)]
        body.append("  }")
    for i, scratch in enumerate(program.memory):
        body += ["  t->w%d = bytes;" % i,
                 "  bytes += (%s * %d + 63) / 64 * 64;" % (_positive(scratch.elements),
                                                           scratch.tensor.dtype.bytes)]
    text = "\n".join(body)
    lines = [_DIVIDE, "SETUP int64_t autofuse_tiling_size(void) { return sizeof(Tiling); }", "",
             "SETUP int32_t autofuse_tiling(",
             "    const int64_t* sizes, const AutofuseMachine* machine, void* tiling, uint32_t* block_dim,",
             "    uint64_t* workspace_bytes) {",
             "  Tiling* const t = (Tiling*)tiling;",
             "  const Tiling none = {0};",
             "  int64_t blocks = 0, bytes = 0;",
             "  double total = 0;",
             "  Division d;",
             "  *t = none;",
             "  (void)sizes;",
             "  (void)machine;"]
    kept = used_symbols(fused, program)
    lines += ["  const int64_t %s = sizes[%d];" % (s, i) for i, s in enumerate(symbols) if s in kept]
    lines += ["  t->%s = %s;" % (s, s) for s in kept]
    lines += ["  if (%s == 1) return 1;  // an only element is copied, NaN too" % to_cpp(e)
              for e in _run_time_extents(program)]
    lines += [text, "  t->block_dim = blocks;", "  t->cost = blocks ? (int64_t)(total / (double)blocks) : 0;",
              "  *block_dim = (uint32_t)blocks;", "  *workspace_bytes = (uint64_t)bytes;", "  return 0;", "}",
              "",
              "EXPORT int64_t autofuse_block_cost(const void* tiling) {",
              "  return ((const Tiling*)tiling)->cost;", "}", ""]
    lines += _phases(program)
    lines += _describe(all_fields)
    return "\n".join(lines) + "\n"


def _positive(size) -> str:
    return to_cpp(size) if is_static(size) else "Max(%s, 0)" % to_cpp(size)


def _run_time_extents(program: HostProgram) -> Iterable:
    """Where it shows at run time only whether a float maximum is over one element."""
    found = {}
    for planned in program.nests:
        graph = planned.nest.graph
        for v in graph.values:
            extent = product(graph.axes[a].extent for a in v.reduced)
            if ("partial", True) in v.attrs:
                continue
            if v.type in ("Max", "Min") and v.operand.is_floating and not is_static(extent):
                found[to_cpp(extent)] = extent
    return found.values()


def _nests(nests: Sequence[PlannedNest]) -> List[str]:
    lines = []
    for p in nests:
        k = p.number
        cost = repr(round(p.cost, 4))
        if not known_equal(p.repeats, 1):
            cost += " * (double)%s" % to_cpp(p.repeats)
        cost = "(%s + %r / (double)Max(%s, 1))" % (cost, p.item_cost, to_cpp(p.width))
        lines += ["Divide(%s, %s, %s, %d, %d, %d, %d, &d);" % (
            to_cpp(p.rows), to_cpp(p.width), cost, p.nest.mode == "column", p.cuts, p.least_piece,
            p.largest_piece)]
        lines += ["t->begin%d = blocks;" % k, "t->per%d = d.per;" % k, "t->items%d = d.items;" % k,
                  "blocks += d.blocks;", "t->end%d = blocks;" % k,
                  "total += (double)%s * (double)%s * %s;" % (to_cpp(p.rows), to_cpp(p.width), cost)]
        if p.streams:
            lines += streams.planning(p)
        if p.cuts:
            lines += ["t->tile%d = d.tile;" % k, "t->pieces%d = d.pieces;" % k]
        for i, elements, item_bytes in p.workspace_buffers:
            lines += ["t->u%d_%d = bytes;" % (k, i),
                      "bytes += (d.blocks * %s * %d + 63) / 64 * 64;" % (to_cpp(elements), item_bytes)]
    return lines


def _phases(program: HostProgram) -> List[str]:
    """A phase ends before a nest that waits. Phases without blocks are left out."""
    if not any(p.waits for p in program.nests):
        return []
    lines = ["SETUP int32_t autofuse_phases(const void* tiling, uint32_t* ends, int32_t capacity) {",
             "  const Tiling* const t = (const Tiling*)tiling;", "  int64_t end = 0;", "  int32_t count = 0;",
             "  (void)capacity;", "  switch (t->tiling_key) {"]
    for key, variant in enumerate(program.variants):
        lines.append("    case %d:" % key)
        for p in variant.nests:
            if p.waits:
                lines.append("      if (end > (count ? ends[count - 1] : 0)) ends[count++] = (uint32_t)end;")
            lines.append("      end = t->end%d;" % p.number)
        lines.append("      break;")
    return lines + ["    default:", "      break;", "  }",
                    "  if (end > (count ? ends[count - 1] : 0)) ends[count++] = (uint32_t)end;",
                    "  return count;", "}", ""]


def _describe(all_fields: Sequence[Field]) -> List[str]:
    lines = ["SETUP const char* autofuse_tiling_name(int32_t index) {",
             "  static const char* const names[] = {"]
    lines += ["    \"%s\"," % f.name for f in all_fields]
    return lines + ["  };",
                    "  return index >= 0 && index < %d ? names[index] : (const char*)0;" % len(all_fields),
                    "}", "", "SETUP int64_t autofuse_tiling_value(const void* tiling, int32_t index) {",
                    "  const int64_t* const values = (const int64_t*)tiling;",
                    "  return index >= 0 && index < %d ? values[index] : 0;" % len(all_fields),
                    "}", ""]
