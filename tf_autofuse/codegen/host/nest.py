"""One loop nest as a C function: from schedule/host_nest.py's Nest to text.

The function runs one block, a range of items, and returns 0, or 2 where a Gather met an index outside of its
tensor. Names: iA index of axis A, nA its size, bK first element of the access of value K, pK the same moved
to where the innermost loop begins, vK a value, aK an accumulator, rK what it ends as, tK a tile array, uK a
row buffer, wK a block of what a later stage reads; f and c the first element and the count of this item's
piece of the vector axis, j the index in it.
"""
import re
from typing import Dict, List, NamedTuple, Sequence

from tf_autofuse.codegen.ascendc.body import comment
from tf_autofuse.codegen.ascendc.expressions import bare
from tf_autofuse.codegen.host import reduce, streams, tails
from tf_autofuse.codegen.host.halves import BLOCK, staging
from tf_autofuse.codegen.host.lines import Lines
from tf_autofuse.codegen.host.literals import literal, value_type
from tf_autofuse.codegen.host.operation import expression
from tf_autofuse.codegen.host.stages import stages
from tf_autofuse.ir.dtypes import BOOL
from tf_autofuse.schedule.host_graph import Access, Value
from tf_autofuse.schedule.host_nest import COLUMN_TILE, TURN, Body
from tf_autofuse.schedule.host_program import STACK_BYTES, PlannedNest, buffer_elements
from tf_autofuse.symbolic.size import ceil_div, is_static, known_equal, product, to_cpp

#: Iterations of the innermost accumulation after which a float sum's partial sums are added up: keeps the
#: error of long sums small.
CASCADE = 64
#: Elements of a row below which a chain of functions stays one loop.
SHORT = 64


class NestText(NamedTuple):
    """text: the C function nest<number>. functions: those that it calls, by name."""

    text: str
    functions: Dict[str, str]


def nest_function(planned: PlannedNest, tensor_base, symbols: Sequence[str]) -> NestText:
    """tensor_base(tensor): the C expression of a tensor's first byte. symbols: those that
    the tiling data hold."""
    printer = _Printer(planned, tensor_base, symbols)
    return NestText(printer.text(), printer.functions)


class _Printer:
    def __init__(self, planned: PlannedNest, tensor_base, symbols):
        self.planned, self.nest, self.symbols = planned, planned.nest, symbols
        self.graph = self.nest.graph
        self.values: Dict[str, Value] = self.graph.by_name()
        self.number = {v.name: i for i, v in enumerate(self.graph.values)}
        self.tensor_base = tensor_base
        self.local: set = set()
        self.level = 0
        self.uses_bad = False
        self.mask = ""
        self.carried: frozenset = frozenset()
        self.streamed: Sequence[str] = ()
        self.functions: Dict[str, str] = {}

    # Names and sizes

    def size(self, axis: int) -> str:
        found = self.graph.axes[axis]
        return str(found.size) if is_static(found.size) and found.limit is None else "n%d" % axis

    def count(self) -> str:
        """Elements of the vector axis that an item takes."""
        return "c" if self.planned.cuts else self.size(self.nest.vector)

    def id(self, prefix: str, name: str) -> str:
        return "%s%d" % (prefix, self.number[name])

    def ref(self, name: str, j: str) -> str:
        """The value as an operand, at index j of the vector axis."""
        v = self.values[name]
        if v.type == "Scalar":
            value = v.attrs[0][1] if v.attrs else 0
            return literal(value, v.dtype) if is_static(value) else self.id("v", name)
        if name in self.local:
            return self.id("v", name)
        if name in self.carried:
            return "%s[j]" % self.id("w", name)
        if v.is_reduce:
            if self.nest.mode == "row":
                return self.id("r", name)
            return "%s[%s]" % (reduce.column(v, self.id("r", name)), j)
        if name in self.nest.tiles:
            return "%s[%s]" % (self.id("t", name), j)
        if name in self.nest.buffers:
            return "%s[%s]" % (self.id("u", name), self.buffer_index(v, j))
        return self.id("v", name)

    def buffer_index(self, v: Value, j: str) -> str:
        text = ""
        for a in self.nest.reduced:
            if a in v.pattern:
                index = j if a == self.nest.vector else "i%d" % a
                text = "(%s) * %s + %s" % (text, self.size(a), index) if text else index
        return text or "0"

    def terms(self, access: Access, axes) -> List[str]:
        found = []
        for a in axes:
            stride = access.strides[a]
            if known_equal(stride, 0):
                continue
            if a == self.nest.vector and not self.planned.cuts:
                continue  # the piece begins with element 0
            index = "f" if a == self.nest.vector else "i%d" % a
            found.append(index if known_equal(stride, 1) else "%s * %s" % (index, to_cpp(stride)))
        return found

    # The function

    def text(self) -> str:
        body = Lines(1)
        self.items(body)
        code = body.text()
        head = Lines()
        number = self.planned.number
        axes = self.graph.axes
        head.add(comment("%s: mode %s, items over (%s)%s" % (
            self.graph.name, self.nest.mode,
            ", ".join("%s: %s" % (axes[a].name, axes[a].size) for a in self.nest.outer),
            "" if self.nest.vector is None else ", innermost " + axes[self.nest.vector].name)))
        parameters = "void* const* gm, char* workspace, const Tiling* t, int64_t block"
        head.open("static int32_t nest%d(%s)" % (number, parameters))
        definitions = self.definitions(code)
        text = "\n".join(definitions) + code
        for s in self.symbols:
            if _mentions(text, s):
                head.add("const int64_t %s = t->%s;" % (s, s))
        head.lines.extend("  " + d for d in definitions)
        if self.uses_bad:
            head.add("_Bool bad = 0;")
        tail = Lines(1)
        tail.extend(["(void)%s;" % name for name in ("gm", "workspace", "t", "block")])
        if self.planned.streams:
            tail.add("if (stream) af_stream_end();")
        tail.add("return %s;" % ("bad ? 2 : 0" if self.uses_bad else "0"))
        tail.close()
        return head.text() + code + tail.text()

    def definitions(self, code: str) -> List[str]:
        """Sizes, constants and first elements that the code mentions."""
        found: List[str] = []
        for a, axis in enumerate(self.graph.axes):
            if not is_static(axis.size) and axis.limit is None and _mentions(code, "n%d" % a):
                found.append("const int64_t n%d = %s;  // %s" % (a, bare(to_cpp(axis.size)), axis.name))
        if _mentions(code, "one"):
            extent = product(self.graph.axes[a].extent for a in self.nest.reduced)
            found.append("const _Bool one = %s == 1;" % to_cpp(extent))
        for v in self.graph.values:
            if v.type == "Scalar" and _mentions(code, self.id("v", v.name)):
                found.append("const %s %s = %s;" % (
                    value_type(v.dtype), self.id("v", v.name), reduce.run_time_scalar(v)))
            if v.access is not None and _mentions(code, self.id("b", v.name)):
                type_ = v.access.tensor.dtype.host
                const = "" if v.type == "Store" else "const "
                base = "(%s%s*)(%s)" % (const, type_, self.tensor_base(v.access.tensor))
                offset = "" if known_equal(v.access.offset, 0) else " + " + to_cpp(v.access.offset)
                found.append("%s%s* const %s = %s%s;" % (const, type_, self.id("b", v.name), base, offset))
        if self.planned.streams:
            loads = [v.name for v in self.graph.values if v.type == "Load" and len(v.pattern) == len(
                self.graph.axes) and v.access.tensor.kind == "input"]
            bases, stored = ([self.id("b", n) for n in names] for names in (loads, self.planned.streams))
            found.append("const _Bool stream = %s;" % streams.condition(self.planned, bases, stored))
        for name in self.nest.buffers:
            v = self.values[name]
            elements = buffer_elements(self.nest, v)
            if self.on_stack(v):
                found.append("%s %s[%s];" % (v.dtype.host, self.id("u", name), elements))
            else:
                found.append("%s* const %s = (%s*)(workspace + t->u%d_%d) + block * %s;" % (
                    v.dtype.host, self.id("u", name), v.dtype.host, self.planned.number,
                    self.nest.buffers.index(name), to_cpp(elements)))
        return found

    def on_stack(self, v: Value) -> bool:
        elements = buffer_elements(self.nest, v)
        return is_static(elements) and elements * v.dtype.bytes <= STACK_BYTES

    def items(self, out: Lines) -> None:
        """The loop over the block's items."""
        nest, k = self.nest, self.planned.number
        out.add("const int64_t first = block * t->per%d;" % k)
        out.add("const int64_t last = Min(first + t->per%d, t->items%d);" % (k, k))
        if nest.vector is None:
            out.open("for (int64_t item = first; item < last; ++item)")
            self.segments(out)
            out.close()
            return
        cuts = self.planned.cuts
        if cuts and not nest.outer and not nest.accumulates:
            out.add("const int64_t f = first * t->tile%d;" % k)
            out.add("const int64_t c = Min(last * t->tile%d, %s) - f;" % (k, self.size(nest.vector)))
            self.segments(out)
            return
        counters = ["i%d" % a for a in nest.outer]
        limits = [self.size(a) for a in nest.outer]
        if nest.turn is not None:
            at = nest.outer.index(nest.turn)
            counters[at] = "group"
            limits[at] = bare(to_cpp(ceil_div(self.graph.axes[nest.turn].size, TURN)))
        if cuts:
            if nest.outer:
                out.add("const int64_t pieces = t->pieces%d;" % k)
            counters, limits = counters + ["piece"], limits + ["pieces"]
        if len(counters) > 1:
            out.add("int64_t rest = first;")
        for i in reversed(range(len(counters))):
            source = "rest" if len(counters) > 1 else "first"
            if i == 0:
                out.add("int64_t %s = %s;" % (counters[i], source))
            else:
                out.add("int64_t %s = rest %% %s;" % (counters[i], limits[i]))
                out.add("rest /= %s;" % limits[i])
        out.open("for (int64_t item = first; item < last; ++item)")
        for a, axis in enumerate(self.graph.axes):
            if axis.limit is not None:
                chunk, extent = axis.limit
                out.add("const int64_t n%d = Min(%s, %s - i%d * %s);" % (
                    a, axis.size, to_cpp(extent), chunk, axis.size))
        if cuts:
            out.add("const int64_t f = piece * t->tile%d;" % k)
            out.add("const int64_t c = Min(t->tile%d, %s - f);" % (k, self.size(nest.vector)))
        if nest.turn is None:
            self.segments(out)
        else:
            self.turned_segments(out)
        if counters:
            self.advance(out, counters, limits)
        out.close()

    def advance(self, out: Lines, counters, limits) -> None:
        """The next item's indexes."""
        for i in reversed(range(1, len(counters))):
            out.open("if (++%s == %s)" % (counters[i], limits[i]))
            out.add("%s = 0;" % counters[i])
        out.add("++%s;" % counters[0])
        out.close(len(counters) - 1)

    # One item

    def turned_segments(self, out: Lines) -> None:
        """TURN rows: the tensors that are contiguous across the rows go into arrays by rows first."""
        turn, nest = self.nest.turn, self.nest
        out.add("const int64_t q0 = group * %d;" % TURN)
        out.add("const int64_t qn = Min(%d, %s - q0);" % (TURN, self.size(turn)))
        for name in nest.turned:
            v = self.values[name]
            type_ = v.access.tensor.dtype.host
            others = [a for a in range(len(self.graph.axes)) if a != turn]
            start = " + ".join([self.id("b", name), "q0"] + self.terms(v.access, others))
            out.add("%s %s[%d * %d];" % (type_, self.id("z", name), TURN, COLUMN_TILE))
            out.open("for (int64_t j = 0; j < %s; ++j)" % self.count())
            out.add("const %s* const line = %s + j * %s;" % (
                type_, start, to_cpp(v.access.strides[nest.vector])))
            for condition, count in (("if (qn == %d)" % TURN, str(TURN)), ("else", "qn")):
                out.open(condition)
                out.add("for (int64_t q = 0; q < %s; ++q) %s[q * %d + j] = line[q];" % (
                    count, self.id("z", name), COLUMN_TILE))
                out.close()
            out.close()
        out.open("for (int64_t i%d = q0; i%d < q0 + qn; ++i%d)" % (turn, turn, turn))
        self.segments(out)
        out.close()

    def segments(self, out: Lines) -> None:
        for segment in self.nest.segments:
            self.local = set()
            for name in segment.row:
                self.statement(out, self.values[name], "")
            self.local = set()
            if segment.tile is not None:
                self.body(out, segment.tile)
            if segment.main is not None:
                self.body(out, segment.main)

    def body(self, out: Lines, body: Body) -> None:
        self.local = set()
        reduces = [self.values[n] for n in body.values if self.values[n].is_reduce]
        loops = list(body.loops) + ([self.nest.vector] if body.vector else [])
        depths = {n: self.depth(self.values[n], loops) for n in body.values}
        for name in body.kept:
            if name in self.nest.tiles:
                out.add("%s %s[%d];" % (
                    self.values[name].dtype.host, self.id("t", name), self.nest.column_tile))
        scheme = None
        if reduces:
            inner = [n for n in body.values if depths[n] == len(loops)]
            scheme = reduce.scheme_of(self.nest, reduces, self.lane_count(reduces, inner))
        column = self.nest.mode == "column"
        names = [(v, self.id("r", v.name)) for v in reduces]
        for v, r in names:
            if column:
                reduce.declare(out, v, r, str(self.nest.column_tile), self.count())
            else:
                out.add("%s %s;" % (value_type(v.dtype), r))
        out.open("")
        for v, r in names:
            if not column:
                reduce.declare(out, v, r + "l", str(scheme.lanes), str(scheme.lanes))
        self.loops(out, body, loops, depths, 0, scheme)
        for v, r in names:
            if not column:
                function = reduce.fold(v, scheme.lanes)
                self.functions[function.name] = function.text
                out.add("%s = %s;" % (r, reduce.folded(v, function, r + "l")))
        out.close()

    def lane_count(self, reduces: Sequence[Value], inner: Sequence[str]) -> int:
        widest = max(self.values[v.inputs[0]].dtype.bytes for v in reduces)
        return tails.lane_count(self.graph.axes[self.nest.vector].size, widest,
                                tails.masked(self.values, inner, self.nest.vector))

    def depth(self, v: Value, loops: Sequence[int]) -> int:
        """How many of the loops are around the value."""
        if v.is_reduce or v.type == "Store":
            return len(loops)
        return max([i + 1 for i, a in enumerate(loops) if a in v.pattern] + [0])

    def loops(self, out: Lines, body: Body, loops, depths, depth: int, scheme) -> None:
        here = [n for n in body.values if depths[n] == depth]
        if depth == len(loops):
            for name in here:
                self.statement(out, self.values[name], "0", body.kept)
            return
        for name in here:
            self.statement(out, self.values[name], "", body.kept)
        last = depth == len(loops) - 1 and body.vector
        if last:
            inner = [n for n in body.values if depths[n] == len(loops)]
            self.innermost(out, body, inner, scheme)
            return
        axis = loops[depth]
        blocked = (scheme is not None and scheme.cascades and self.nest.mode == "column"
                   and depth == len(loops) - 2)
        if not blocked:
            out.open("for (int64_t i%d = 0; i%d < %s; ++i%d)" % (axis, axis, self.size(axis), axis))
            self.loops(out, body, loops, depths, depth + 1, scheme)
            out.close()
            return
        out.open("for (int64_t k = 0; k < %s; k += %d)" % (self.size(axis), CASCADE))
        names = [(self.values[n], self.id("r", n)) for n in body.values if self.values[n].is_reduce]
        for v, r in names:
            reduce.declare(out, v, r + "c", str(self.nest.column_tile), self.count())
        out.add("const int64_t end = Min(k + %d, %s);" % (CASCADE, self.size(axis)))
        out.open("for (int64_t i%d = k; i%d < end; ++i%d)" % (axis, axis, axis))
        self.loops(out, body, loops, depths, depth + 1, scheme)
        out.close()
        for v, r in names:
            reduce.merge(out, v, r, r + "c", self.count())
        out.close()

    def innermost(self, out: Lines, body: Body, inner: List[str], scheme) -> None:
        """The loop over the vector axis."""
        for name in inner:
            v = self.values[name]
            if v.access is not None:
                self.pointer(out, v)
        self.staged = staging(self.values, inner, self.nest.vector, body.kept)
        if scheme is None or self.nest.mode == "column":
            suffix = "c" if scheme is not None and scheme.cascades else ""
            loops, carried = self.stages(inner) if scheme is None else ((inner,), frozenset())
            if not self.staged.needed and len(loops) == 1:
                self.streamed = [n for n in inner if n in self.planned.streams]
                streams.loop(out, [self.values[n] for n in self.streamed], self.id, self.count(),
                             lambda m, j: self.vector_loop(out, body, inner, "j", m, j, j, suffix))
                self.streamed = ()
                return
            out.open("for (int64_t s = 0; s < %s; s += %d)" % (self.count(), BLOCK))
            out.add("const int64_t m = Min(%d, %s - s);" % (BLOCK, self.count()))
            self.widen(out, "s", "m")
            for name in sorted(carried, key=self.number.get):
                out.add("%s %s[%d];" % (value_type(self.values[name].dtype), self.id("w", name), BLOCK))
            self.carried = carried
            for names in loops:
                self.vector_loop(out, body, names, "j", "m", "(s + j)", "(s + j)", suffix)
            self.carried = frozenset()
            self.narrow(out, "s", "m")
            out.close()
            return
        self.lanes(out, body, inner, scheme)

    def stages(self, inner: Sequence[str]):
        """The innermost loop's values in stages; one where a row is too short to be worth it."""
        staged = self.staged
        used = [n for n in inner if n not in staged.loads and n not in staged.dropped]
        size = self.graph.axes[self.nest.vector].size
        if not self.planned.cuts and is_static(size) and size < SHORT:
            return (used,), frozenset()
        reads = {n: (staged.rounds[n],) if n in staged.rounds else (staged.stores[n],) if n in staged.stores
                 else () if n in staged.casts else self.values[n].inputs for n in used}
        inside = set(used)
        return stages(self.values, used, lambda n: [i for i in reads[n] if i in inside])

    def widen(self, out: Lines, start: str, count: str) -> None:
        for name in sorted(self.staged.loads, key=self.number.get):
            out.add("float %s[%d];" % (self.id("h", name), BLOCK))
            out.add("af_block_f32_f16(%s, %s + %s, %s);" % (self.id("h", name), self.id("p", name), start,
                                                            count))
        for name in sorted(self.staged.stores, key=self.number.get):
            out.add("float %s[%d];" % (self.id("h", name), BLOCK))

    def narrow(self, out: Lines, start: str, count: str) -> None:
        for name in sorted(self.staged.stores, key=self.number.get):
            out.add("af_block_f16_f32(%s + %s, %s, %s);" % (self.id("p", name), start, self.id("h", name),
                                                            count))

    def lanes(self, out: Lines, body: Body, inner: List[str], scheme) -> None:
        size, n = self.size(self.nest.vector), scheme.lanes
        reduces = [self.values[x] for x in inner if self.values[x].is_reduce]
        start, end, suffix = "0", size, "l"
        blocks = scheme.cascades or self.staged.needed
        if blocks:
            step = BLOCK if self.staged.needed else CASCADE * n
            out.open("for (int64_t s = 0; s < %s; s += %d)" % (size, step))
            out.add("const int64_t end = Min(s + %d, %s);" % (step, size))
            start, end = "s", "end"
            self.widen(out, "s", "end - s")
        if scheme.cascades:
            suffix = "c"
            for v in reduces:
                reduce.declare(out, v, self.id("r", v.name) + "c", str(n), str(n))
        out.add("int64_t j = %s;" % start)
        out.open("for (; j + %d <= %s; j += %d)" % (n, end, n))
        self.vector_loop(out, body, inner, "l", str(n), "(j + l)", "l", suffix)
        out.close()
        axis = self.graph.axes[self.nest.vector]
        if not is_static(axis.size) or axis.size % n or axis.limit is not None:
            self.tail(out, body, inner, n, end, suffix)
        if scheme.cascades:
            for v in reduces:
                reduce.merge(out, v, self.id("r", v.name) + "l", self.id("r", v.name) + "c", str(n))
        if blocks:
            self.narrow(out, "s", "end - s")
            out.close()

    def tail(self, out: Lines, body: Body, inner: List[str], lanes: int, end: str, suffix: str) -> None:
        """What is left of a row, fewer elements than lanes."""
        size = self.graph.axes[self.nest.vector].size
        one = is_static(size) and size % lanes == 1  # no loop for the compiler
        if one or self.staged.needed or not tails.masked(self.values, inner, self.nest.vector):
            self.vector_loop(out, body, inner, "l", "%s - j" % end, "(j + l)", "l", suffix)
            return
        out.open("if (j < %s)" % end)
        out.add("const int32_t rest = af_lanes_left(%s - j);" % end)
        self.mask = "l < rest"
        self.vector_loop(out, body, inner, "l", "af_lanes_taken(%d, rest)" % lanes, "(j + l)", "l", suffix)
        self.mask = ""
        out.close()

    def vector_loop(self, out: Lines, body: Body, inner: List[str], index: str, count: str, j: str, lane: str,
                    suffix: str) -> None:
        """j: the index along the vector axis; lane: into accumulators; suffix: of the accumulators' names."""
        before = set(self.local)
        out.vector_loop(index, count, "int32_t" if self.mask else "int64_t")
        for name in inner:
            if name not in self.staged.loads and name not in self.staged.dropped:
                self.step(out, self.values[name], j, lane, suffix, body)
                if name in self.carried:
                    out.add("%s[j] = %s;" % (self.id("w", name), self.id("v", name)))
        out.close()
        self.local = before

    def step(self, out: Lines, v: Value, j: str, lane: str, suffix: str, body: Body) -> None:
        """A statement of the innermost loop."""
        if v.name in self.staged.casts:
            out.add("const float %s = %s[%s];" % (
                self.id("v", v.name), self.id("h", self.staged.casts[v.name]), self.staged_index(j)), v.name)
            self.local.add(v.name)
            self.keep(out, v, j, body.kept)
        elif v.name in self.staged.rounds:
            form = "%s" if v.name in self.staged.copies else "af_cast_round_f16(%s)"
            out.add("const float %s = %s;" % (
                self.id("v", v.name), form % self.ref(self.staged.rounds[v.name], j)), v.name)
            self.local.add(v.name)
            self.keep(out, v, j, body.kept)
        elif v.name in self.staged.stores:
            out.add("%s[%s] = %s;" % (
                self.id("h", v.name), self.staged_index(j), self.ref(self.staged.stores[v.name], j)), v.name)
        elif v.is_reduce:
            self.accumulate(out, v, self.id("r", v.name) + suffix, lane, self.ref(v.inputs[0], j), j)
        else:
            self.statement(out, v, j, body.kept)

    def staged_index(self, j: str) -> str:
        """The index into a staged block that begins at s."""
        return "j" if j == "(s + j)" else j[1:-1] + " - s"

    def accumulate(self, out: Lines, v: Value, array: str, lane: str, x: str, j: str) -> None:
        position = None
        for a in sorted(v.reduced):
            index = "i%d" % a if a != self.nest.vector else j
            position = index if position is None else "(%s * %s + %s)" % (position, self.size(a), index)
        reduce.accumulate(out, v, array, lane, x, position or "0", self.mask)

    def pointer(self, out: Lines, v: Value) -> None:
        if v.name in self.nest.turned:
            out.add("const %s* const %s = %s + (i%d - q0) * %d;" % (
                v.access.tensor.dtype.host, self.id("p", v.name), self.id("z", v.name), self.nest.turn,
                COLUMN_TILE))
            return
        axes = [a for a in range(len(self.graph.axes)) if a != self.nest.vector]
        terms = self.terms(v.access, axes)
        if self.nest.mode == "column":
            terms += self.terms(v.access, [self.nest.vector])
        if v.type == "Gather" and self.hoisted(v, "j"):
            terms.append(self.checked_place(out, v, "", v.name))
        const = "" if v.type == "Store" else "const "
        out.add("%s%s* const %s = %s;" % (const, v.access.tensor.dtype.host, self.id("p", v.name),
                                          " + ".join([self.id("b", v.name)] + terms)))

    # One value

    def statement(self, out: Lines, v: Value, j: str, kept: Sequence[str] = ()) -> None:
        """Computes v (or stores it). j: the vector index inside of the innermost loop, '' or '0' outside."""
        note = "%s%s" % (v.name, " (%s)" % ", ".join(v.origin) if v.origin else "")
        if v.type == "Store":
            if v.name in self.streamed:
                out.add("%s[j] = %s;" % (self.id("o", v.name), self.ref(v.inputs[0], j)), note)
                return
            condition = "if (%s) " % self.mask if self.mask else ""
            out.add("%s%s = %s;" % (condition, self.element(v, j), self.ref(v.inputs[0], j)), note)
            return
        if v.type == "Gather" and not self.hoisted(v, j):
            self.gather(out, v, j, note)
        else:
            reads = v.type in ("Load", "Gather")
            text = self.element(v, j) if reads else self.compute(v, j)
            if reads and v.dtype is BOOL:
                text += " != 0"
            if reads and self.mask and self.nest.vector in v.pattern:
                text = "%s ? %s : 0" % (self.mask, text)
            out.add("const %s %s = %s;" % (value_type(v.dtype), self.id("v", v.name), bare(text)), note)
        self.local.add(v.name)
        self.keep(out, v, j, kept)

    def keep(self, out: Lines, v: Value, j: str, kept: Sequence[str]) -> None:
        if v.name in kept:
            target = "%s[%s]" % ((self.id("t", v.name), j) if v.name in self.nest.tiles
                                 else (self.id("u", v.name), self.buffer_index(v, j)))
            out.add("%s = %s;" % (target, self.id("v", v.name)))

    def compute(self, v: Value, j: str) -> str:
        dtypes = [self.values[i].dtype for i in v.inputs]
        return expression(v, [self.ref(i, j) for i in v.inputs], dtypes)

    def element(self, v: Value, j: str) -> str:
        """The lvalue of the access."""
        if j in ("", "0"):
            terms = self.terms(v.access, range(len(self.graph.axes)))
            return "%s[%s]" % (self.id("b", v.name), " + ".join(terms) or "0")
        return "%s[%s]" % (self.id("p", v.name), j if v.name in self.nest.turned else self.along(v.access, j))

    def along(self, access: Access, j: str) -> str:
        stride = access.strides[self.nest.vector]
        if known_equal(stride, 0):
            return "0"
        return j if known_equal(stride, 1) else "%s * %s" % (j, to_cpp(stride))

    def gather(self, out: Lines, v: Value, j: str, note: str) -> None:
        place = self.checked_place(out, v, j, note)
        element = self.element(v, j)
        zero = element.endswith("[0]")
        base = element[:-len("0]")] if zero else element[:-1] + " + "
        text = "%s%s]" % (base, place)
        if v.dtype is BOOL:
            text += " != 0"
        out.add("const %s %s = %s;" % (value_type(v.dtype), self.id("v", v.name), text))

    def hoisted(self, v: Value, j: str) -> bool:
        """Whether the Gather v takes one index for the whole innermost loop in which j counts."""
        return j not in ("", "0") and self.nest.vector not in self.values[v.inputs[0]].pattern

    def checked_place(self, out: Lines, v: Value, j: str, note: str) -> str:
        """What the index of a Gather adds to its first element. An index outside of the tensor is noted, and
        element 0 is read instead."""
        stride, size = (to_cpp(s) for s in v.access.gather)
        index, checked = self.id("x", v.name), self.id("y", v.name)
        self.uses_bad = True
        out.add("const int64_t %s = %s;" % (index, self.ref(v.inputs[0], j)), note)
        out.add("const _Bool %s = (uint64_t)%s >= (uint64_t)%s;" % (checked, index, size))
        out.add("bad |= %s;" % checked)
        if not (is_static(v.access.gather[1]) and v.access.gather[1] > 0):
            out.open("if (%s == 0)" % size)
            out.add("return 2;")
            out.close()
        place = "(%s ? 0 : %s)" % (checked, index)
        return place if stride == "1" else "%s * %s" % (place, stride)


def _mentions(code: str, name: str) -> bool:
    return re.search(r"(?<![\w>.])%s\b" % re.escape(name), code) is not None

