"""The device source: everything in kernel.cpp, from the variants' ImplGraphs.

One function per tiling key (a TPipe lives in it, so that its buffers are that variant's alone), and the entry
that chooses among them. This module decides what stands where; templates/kernel.cpp.j2 how it looks.
"""

import textwrap
from typing import Any, Dict, Iterable, List, NamedTuple, Sequence, Tuple

from tf_autofuse.codegen.ascendc.body import TMP, BodyWriter, KernelBody, Local, comment
from tf_autofuse.codegen.ascendc.expressions import Expressions, Variable, bare, device_functions
from tf_autofuse.codegen.ascendc.gathers import FAILED
from tf_autofuse.codegen.ascendc.lines import WIDTH
from tf_autofuse.codegen.ascendc.literals import FROM_BITS
from tf_autofuse.codegen.ascendc.names import entry_symbol
from tf_autofuse.ir.asc_graph import FusedGraph, Position
from tf_autofuse.schedule.impl_graph import ImplGraph
from tf_autofuse.schedule.nests import Nest, has_frame, nests_of, workspaces_of
from tf_autofuse.tiling.cpp import run_time_values


class Queue(NamedTuple):
    """bytes: of one of its `buf_num` buffers, an expression."""

    name: str
    position: str
    buf_num: int
    bytes: str


class Buffer(NamedTuple):
    name: str
    bytes: str


class GmTensor(NamedTuple):
    """name: the entry's parameter; type: the element type."""

    name: str
    type: str


class Variant(NamedTuple):
    """What kernel.cpp.j2 prints for one tiling key of a nest, in the order of the text. function: its name;
    struct: the type of its tiling data; block: what its block index is."""

    key: int
    function: str
    struct: str
    block_index: str
    gathers: bool
    comments: Tuple[str, ...]
    queues: Tuple[Queue, ...]
    buffers: Tuple[Buffer, ...]
    gm: Tuple[GmTensor, ...]
    locals: Tuple[Local, ...]
    symbols: Tuple[Variable, ...]
    before: Tuple[Variable, ...]
    body: KernelBody
    total: str
    block: str
    decode: Tuple[str, ...]
    inside: Tuple[Variable, ...]

    @property
    def signature(self) -> str:
        names = _parameters(g.name for g in self.gm)
        block = ", int64_t block" if self.block_index == "block" else ""
        block += ", bool& %s" % FAILED if self.gathers else ""
        return "__aicore__ inline void %s(%s%sconst %s& t%s) {" % (
            self.function, names, ", " if names else "", self.struct, block)

    @property
    def arguments(self) -> str:
        """GM arguments of a call of the function, with a comma behind them."""
        return "".join(g.name + ", " for g in self.gm)

    @property
    def code(self) -> str:
        """All expressions and statements, to see which functions they call."""
        values = [v.value for v in self.symbols + self.before + self.inside]
        return "\n".join(values + [self.total] + list(self.body.hoisted + self.decode + self.body.loop))


def gm_names(fused: FusedGraph) -> Tuple[str, ...]:
    """The entry's parameters for inputs, then outputs."""
    return tuple("in%d" % i for i in range(len(fused.inputs))) + tuple(
        "out%d" % i for i in range(len(fused.outputs))
    )


def _parameters(names: Iterable[str]) -> str:
    return ", ".join("GM_ADDR " + n for n in names)


def device_values(fused: FusedGraph, impls: Sequence[ImplGraph]) -> Dict[str, Any]:
    """The template's values. Raises CodegenRefusal where a node has no Ascend C form."""
    names = gm_names(fused)
    gm = tuple(GmTensor(n, t.dtype.device) for n, t in zip(names, fused.inputs + fused.outputs))
    nests = nests_of(fused, impls)
    several = has_frame(nests)
    variants = [_variant(impl, gm, nest, several) for nest in nests for impl in nest.impls]
    functions = list(device_functions("\n".join(v.code for v in variants)))
    if any(v.body.constants for v in variants):
        functions.append(FROM_BITS.rstrip("\n"))
    return {
        "variants": variants,
        "nests": [_nest_values(n, [v for v in variants if v.struct == "AutofuseNest%d" % n.number])
                  for n in nests] if several else [],
        "reports": any(n.gathers for n in nests),
        "workspaces": [w.name for w in workspaces_of(fused, nests)],
        "functions": functions,
        "headers": sorted({h for v in variants for h in v.body.headers}),
        "signature": 'extern "C" __global__ __aicore__ void %s(%s) {'
        % (entry_symbol(fused.name), _parameters(names + ("workspace", "tiling"))),
        "arguments": ", ".join(names),
    }


class NestCall(NamedTuple):
    """What kernel.cpp.j2 prints of one nest of several. gm: the GM pointers that its variants take."""

    number: int
    comment: str
    gm: Tuple[str, ...]
    variants: Tuple[Variant, ...]
    may_wait: bool
    gathers: bool

    @property
    def signature(self) -> str:
        return "__aicore__ inline void RunNest%d(%s, const AutofuseTilingData& all%s) {" % (
            self.number, _parameters(self.gm), ", bool& %s" % FAILED if self.gathers else "")

    @property
    def arguments(self) -> str:
        return ", ".join(self.gm)


def _nest_values(nest: Nest, variants: Sequence[Variant]) -> NestCall:
    gm = tuple(dict.fromkeys(g.name for v in variants for g in v.gm))
    text = "nest %d: %s" % (nest.number, nest.impls[0].graph.name)
    if nest.way != "whole":
        text += ", %s, stage %d" % (nest.way, nest.stage)
    return NestCall(nest.number, comment(text), gm, tuple(variants), bool(nest.reads), bool(nest.gathers))


def _gm_of(impl: ImplGraph, gm: Tuple[GmTensor, ...], nest: Nest) -> Tuple[GmTensor, ...]:
    """The GM tensors that a variant of one nest among several reads or writes."""
    wanted = {"in%d" % n.attr("index") for n in impl.graph.of_type("Data")}
    wanted |= {"out%d" % n.attr("index") for n in impl.graph.of_type("Output")}
    workspaces = {nest.workspace(n): n.y.dtype.device for n in impl.graph.of_type("Workspace")}
    return tuple(g for g in gm if g.name in wanted) + tuple(
        GmTensor(name, type_) for name, type_ in sorted(workspaces.items()))


def _described(impl: ImplGraph) -> Tuple[str, ...]:
    """The variant for readers: schedule's description as comment lines."""
    lines: List[str] = []
    for line in impl.describe().splitlines():
        lines += textwrap.wrap(
            line, WIDTH - 3, subsequent_indent=" " * 6, break_long_words=False, drop_whitespace=False
        )
    return tuple(comment(line.rstrip()) for line in lines)


def _variant(impl: ImplGraph, gm: Tuple[GmTensor, ...], nest: Nest, several: bool) -> Variant:
    indices = {impl.index_symbol(a) for a in impl.outer_axes}
    x = Expressions(in_loop=indices | set(impl.actuals))
    body = BodyWriter(impl, x, nest.workspace, run_time_values(nest.impls)).write()
    if several:
        gm = _gm_of(impl, gm, nest)
    decode = _decode(impl, x)
    total = bare(" * ".join(x.factor(impl.graph.axis(a).size) for a in impl.outer_axes))
    queues = tuple(
        Queue(c.name, c.position.value, c.buf_num, "t." + c.field)
        for c in impl.containers
        if c.position is not Position.VECCALC
    )
    buffers = tuple(Buffer(c.name, "t." + c.field) for c in impl.containers if c.position is Position.VECCALC)
    local_tensors = body.locals
    if impl.tmp_bytes:
        buffers += (Buffer(TMP + "_buffer", "t.tmp_bytes"),)
        local_tensors += (Local(TMP, "uint8_t", TMP + "_buffer"),)
    known = sorted(x.used - indices - set(impl.actuals))
    return Variant(
        impl.tiling_key,
        "RunNest%dKey%d" % (nest.number, impl.tiling_key) if several else "RunKey%d" % impl.tiling_key,
        "AutofuseNest%d" % nest.number if several else "AutofuseTilingData",
        "block" if several else "AscendC::GetBlockIdx()",
        bool(nest.gathers),
        _described(impl),
        queues,
        buffers,
        gm,
        local_tensors,
        tuple(Variable(s, "t." + s) for s in known),
        tuple(x.before),
        body,
        total,
        "t." + impl.block_symbol,
        decode,
        tuple(x.inside),
    )


def _decode(impl: ImplGraph, x: Expressions) -> Tuple[str, ...]:
    """Statements from the loop variable `i` to the outer axes' indices and the tile's actual size."""
    axis = impl.graph.axis
    tile, tile_index = impl.tile_symbol, impl.index_symbol(impl.tile_out)
    cut = impl.tile_actual in x.used
    if cut:
        x.used |= {tile, tile_index}
        actual = "Min(%s, %s - %s * %s)" % (tile, x.factor(axis(impl.cut_axis).size), tile_index, tile)
    second = impl.second
    if second and second.actual in x.used:
        x.used.add(impl.index_symbol(second.tile_out))
        second_size = x.factor(axis(second.axis).size)
    else:
        second = None
    lines: List[str] = []
    rest = "i"
    if len(impl.outer_axes) > 1:
        lines.append("int64_t rest = i;")
        rest = "rest"
    for a in reversed(impl.outer_axes):
        name, last = impl.index_symbol(a), a == impl.outer_axes[0]
        size = x.factor(axis(a).size)
        if name in x.used:
            lines.append("const int64_t %s = %s;" % (name, rest if last else "%s %% %s" % (rest, size)))
        if not last:
            lines.append("%s /= %s;" % (rest, size))
    if lines and lines[-1].startswith("rest /=") or lines == ["int64_t rest = i;"]:
        lines.pop()
    if cut:
        lines.append("const int64_t %s = %s;" % (impl.tile_actual, actual))
    if second:
        lines.append("const int64_t %s = Min(%d, %s - %s * %d);" % (
            second.actual, second.tile, second_size, impl.index_symbol(second.tile_out), second.tile))
    return tuple(lines)
