"""From a simplified HintGraph and a cut to the nodes of one tile.

On entry: `axes.simplify`'s result and the axes of a cut. On exit: TileNodes, each with its pattern and layout
in UB, whether it is hoisted out of the loop, and inputs such that codegen needs no buffer of its own:
    - Broadcasts along outer axes are gone: a tile is the same for every index of such an axis;
    - every Broadcast has a BroadcastPlan (several steps where its axes are no neighbours);
    - a Scalar input has a scalar form in the op's row, all others are filled tensors;
    - what a Store reads is made in the loop by a vector instruction (a Copy, where need be);
    - template 'unaligned': RemovePad follows a full-size Broadcast; other full-size tensors are dense.
"""
from typing import Dict, List, Mapping, Optional, Tuple

from tf_autofuse.ir.asc_graph import AscGraph, AscNode
from tf_autofuse.ir.dtypes import DType
from tf_autofuse.ops.schema import AscOp
from tf_autofuse.schedule.axes import extends, is_reduction
from tf_autofuse.schedule.impl_graph import ScheduleRefusal
from tf_autofuse.schedule.layout import Layout, Pattern, Tile, is_contiguous
from tf_autofuse.schedule.split import SplitAxes
from tf_autofuse.symbolic.size import Size, is_static, known_equal, may_be_broadcast, symbol

_OUTSIDE = ("Data", "Scalar", "Output", "Workspace")
#: Item sizes that RemovePad gathers in one pass.
_REMOVE_PAD_BYTES = (2, 4)
#: Item sizes that can be transposed in UB.
_TRANSPOSE_BYTES = (2, 4)


def gm_order(pattern: Pattern, gm_strides: Mapping[int, Size], dtype: DType) -> Optional[Pattern]:
    """The order of a tensor's axes in UB in which a copy can move rows: that of the pattern where its
    innermost axis is contiguous in GM (or may be broadcast at run time), else with a contiguous axis moved to
    the end; None where there is no such axis, or data of this width can't be transposed."""
    if not pattern or known_equal(gm_strides[pattern[-1]], 1) or any(
            may_be_broadcast(gm_strides[a]) for a in pattern):
        return pattern
    rows = [a for a in pattern if known_equal(gm_strides[a], 1)]
    if not rows or dtype.bytes not in _TRANSPOSE_BYTES:
        return None
    return tuple(a for a in pattern if a != rows[0]) + (rows[0],)


class TileNode:
    """One node of the kernel. hint: the HintGraph's node, None for those that this stage adds."""

    def __init__(self, name: str, type_: str, inputs: List[str], dtype: DType, pattern: Pattern,
                 hint: Optional[AscNode] = None, origin: Tuple[str, ...] = (), attrs=()):
        self.name = name
        self.type = type_
        self.inputs = inputs
        self.dtype = dtype
        self.pattern = pattern
        self.hint = hint
        self.origin = origin
        self.attrs = attrs
        self.padded = False
        self.hoisted = False
        self.spread = False  # each element in a 32 B block of its own
        self.gathers_rows = False

    @property
    def runs(self) -> bool:
        """Whether the kernel executes it (not Data, Scalar, Output)."""
        return self.type not in _OUTSIDE

    @property
    def enters_by_queue(self) -> bool:
        """Whether a copy from GM fills its tensor: it lives in a VECIN queue."""
        return self.type == "Load" or self.gathers_rows

    @property
    def makes_tensor(self) -> bool:
        return self.runs and self.type != "Store"


class TileGraph:
    """All TileNodes by name, in a topological order."""

    def __init__(self, graph: AscGraph, split: SplitAxes, template: str, table: Mapping[str, AscOp]):
        self.graph = graph
        self.split = split
        self.template = template
        self.table = table
        self.nodes: Dict[str, TileNode] = {}
        self._position = {a: i for i, a in enumerate(graph.loop_axes)}
        self._fills: Dict[Tuple[str, Pattern], str] = {}
        self._broadcasts: Dict[Tuple[str, Pattern], str] = {}
        self._alias: Dict[str, str] = {}
        # A single tile gains nothing from nodes outside of the loop, and their tensors live on.
        self._may_hoist = not (split.reduced and len(split.outer) == 1 and known_equal(split.cut.size, 1))
        for node in graph.nodes:
            self._add(node)
        self._feed_stores()
        self.tile = self._tile()
        self._choose_padding()

    def layout(self, node: TileNode) -> Layout:
        layout = self.tile.layout(node.pattern, node.padded, self._row_align(node))
        return layout.spread(32 // node.dtype.bytes) if node.spread else layout

    def _row_align(self, node: TileNode) -> int:
        """Elements that the rows of a padded tensor are a multiple of. What goes straight into RemovePad
        meets no tensor of another type: its rows are padded for its own only, unless rows of its source are
        copied as they are."""
        if self.template == "unaligned" and self._is_row_broadcast(node) and self._is_full(node.pattern):
            source = self.nodes[node.inputs[0]].pattern
            if not (len(source) > 1 and source[-1] == node.pattern[-1]):
                return 32 // node.dtype.bytes
        return self.tile.row_align

    def readers(self) -> Dict[str, List[TileNode]]:
        result: Dict[str, List[TileNode]] = {name: [] for name in self.nodes}
        for n in self.nodes.values():
            for i in dict.fromkeys(n.inputs):
                result[i].append(n)
        return result

    def gm_strides(self, node: TileNode) -> Dict[int, Size]:
        """Vectorized axis -> GM stride of a Load or Store, in elements."""
        strides = dict(zip(node.hint.y.axis, node.hint.y.strides))
        return {a: strides[self.split.loop_axis(a)] for a in self.split.vectorized}

    def gm_offset(self, node: TileNode) -> Size:
        """Where the tile of a Load or Store begins in GM, in elements, over the outer axes' index symbols."""
        offset: Size = node.hint.attr("offset", 0)
        strides = dict(zip(node.hint.y.axis, node.hint.y.strides))
        second = self.split.second
        if second and extends(node.hint.y, self._position[second.axis]):
            tile_index = symbol("i_" + next(a.name for a in self.split.axes if a.id == second.tile_out))
            offset = offset + tile_index * second.tile * strides[second.axis]
        for a in self.split.outer[:-1]:
            if a in self._position and extends(node.hint.y, self._position[a]):
                offset = offset + symbol("i_" + self._axis_name(a)) * strides[a]
        if extends(node.hint.y, self._position[self.split.cut.id]):
            tile_index = symbol("i_" + self.split.tile_out.name)
            offset = offset + tile_index * symbol(self.split.tile_symbol) * strides[self.split.cut.id]
        if node.hint.attr("tile_stride") is not None:
            offset = offset + symbol("i_" + self.split.tile_out.name) * node.hint.attr("tile_stride")
        return offset

    def dtypes_of_inputs(self, node: TileNode) -> List[DType]:
        return [self.nodes[i].dtype for i in node.inputs]

    def op(self, node: TileNode) -> AscOp:
        return self.table[node.type]

    def _axis_name(self, axis: int) -> str:
        return self.graph.axis(axis).name

    def _pattern(self, node: AscNode) -> Pattern:
        return tuple(a for a in self.split.vectorized if extends(node.y,
                                                                 self._position[self.split.loop_axis(a)]))

    def _put(self, node: TileNode) -> str:
        self.nodes[node.name] = node
        return node.name

    def _fresh(self, stem: str) -> str:
        n = 0
        while "%s_%d" % (stem, n) in self.nodes or any(
                x.name == "%s_%d" % (stem, n) for x in self.graph.nodes):
            n += 1
        return "%s_%d" % (stem, n)

    def _add(self, n: AscNode) -> None:
        inputs = [self._alias.get(r.node, r.node) for r in n.inputs]
        dtype = n.y.dtype if n.outputs else None
        if n.type in _OUTSIDE:
            self._put(TileNode(n.name, n.type, inputs, dtype, (), n, n.origin, n.attrs))
        elif n.type == "Broadcast":
            self._add_broadcast(n, inputs[0])
        elif is_reduction(n):
            self._add_reduction(n, inputs[0])
        elif n.type == "Gather":
            self._add_gather(n, inputs)
        elif n.type in ("Load", "Store"):
            if n.type == "Store" and self.nodes[inputs[0]].type == "Scalar":
                inputs = [self._fill(inputs[0], self._pattern(n), n.origin)]
            node = TileNode(n.name, n.type, inputs, dtype, self._pattern(n), n, n.origin, n.attrs)
            node.hoisted = self._may_hoist and n.type == "Load" and not any(
                extends(n.y, self._position[a]) for a in self.split.outer_loops)
            self._put_copy(node)
        else:
            self._add_compute(n, inputs)

    def _put_copy(self, node: TileNode) -> None:
        """A Load or Store, with what reorders its tensor in UB where the innermost axis is not that of GM."""
        order = gm_order(node.pattern, self.gm_strides(node), node.dtype)
        if order == node.pattern:
            self._put(node)
            return
        is_load = node.type == "Load"
        target = node.pattern
        node.pattern, node.spread = order or target, order is None
        step = TileNode(self._fresh("transpose" if order else "removepad" if is_load else "spread"),
                        "Transpose" if order else "RemovePad" if is_load else "Broadcast",
                        [node.name] if is_load else node.inputs, node.dtype,
                        target if is_load else node.pattern,
                        None, node.origin, () if order or is_load else (("axes", ()),))
        step.spread = order is None and not is_load
        step.hoisted = node.hoisted
        if is_load:
            self._put(node)
            self._alias[node.name] = self._put(step)
        else:
            node.inputs = [self._put(step)]
            self._put(node)

    def _add_gather(self, n: AscNode, inputs: List[str]) -> None:
        node = TileNode(n.name, n.type, inputs, n.y.dtype, self._pattern(n), n, n.origin, n.attrs)
        index, innermost = self.nodes[inputs[1]], node.pattern[-1:]
        node.gathers_rows = bool(innermost) and innermost[0] not in index.pattern and known_equal(
            self.gm_strides(node)[innermost[0]], 1)
        node.hoisted = self._may_hoist and index.hoisted and not any(
            extends(n.y, self._position[a]) for a in self.split.outer_loops)
        self._put(node)
        if not node.gathers_rows and self.nodes[inputs[0]].type == "Workspace":
            # Other cores wrote it: copies see that, the scalar unit's cache may not.
            node.gathers_rows = node.spread = True
            step = TileNode(self._fresh("removepad"), "RemovePad", [node.name], node.dtype, node.pattern,
                            None, n.origin)
            step.hoisted = node.hoisted
            self._alias[node.name] = self._put(step)

    def _add_compute(self, n: AscNode, inputs: List[str]) -> None:
        if n.type not in self.table:
            raise ScheduleRefusal("the op table has no AscIR type %s (%s)" % (n.type, n.name))
        pattern = self._pattern(n)
        row = self.table[n.type]
        dtypes = [self.nodes[i].dtype for i in inputs]
        forms = row.ascend.get(row.form_key(dtypes, n.y.dtype))
        if forms is None:
            raise ScheduleRefusal("%s of %s has no Ascend C form" % (n.type, dtypes[-1].name))
        scalars = [i for i, name in enumerate(inputs) if self.nodes[name].type == "Scalar"]
        kept = None
        if len(scalars) < len(inputs) or len(inputs) > 1:
            if 1 in scalars and "scalar1" in forms:
                kept = 1
            elif 0 in scalars and "scalar0" in forms:
                kept = 0
            elif scalars == [0] and len(inputs) == 2 and row.commutative and "scalar1" in forms:
                inputs, scalars, kept = inputs[::-1], [1], 1
        inputs = [self._fill(name, pattern, n.origin) if i in scalars and i != kept else name
                  for i, name in enumerate(inputs)]
        node = TileNode(n.name, n.type, inputs, n.y.dtype, pattern, n, n.origin, n.attrs)
        node.hoisted = self._may_hoist and all(
            self.nodes[i].hoisted for i in inputs if self.nodes[i].type != "Scalar")
        self._put(node)

    def _fill(self, scalar: str, pattern: Pattern, origin) -> str:
        """A tensor full of the Scalar's value."""
        key = (scalar, pattern)
        if key not in self._fills:
            dtype = self.nodes[scalar].dtype
            node = TileNode(self._fresh("fill"), "Broadcast", [scalar], dtype, pattern, None, origin,
                            (("axes", pattern),))
            node.hoisted = self._may_hoist
            self._fills[key] = self._put(node)
        return self._fills[key]

    def _add_broadcast(self, n: AscNode, source: str) -> None:
        target = self._pattern(n)
        if self.nodes[source].type == "Scalar":
            self._alias[n.name] = self._fill(source, target, n.origin)
            return
        while self.nodes[source].pattern != target:
            have = self.nodes[source].pattern
            step = self._innermost_run(have, target)
            pattern = tuple(a for a in target if a in have or a in step)
            key = (source, pattern)
            if key not in self._broadcasts:
                name = n.name if pattern == target and n.name not in self.nodes else self._fresh("broadcast")
                node = TileNode(name, "Broadcast", [source], n.y.dtype, pattern, n, n.origin,
                                (("axes", step),))
                node.hoisted = self.nodes[source].hoisted
                self._broadcasts[key] = self._put(node)
                if self._is_full(pattern) and have and self._needs_remove_pad(n.y.dtype):
                    padless = TileNode(self._fresh("removepad"), "RemovePad", [name], n.y.dtype, pattern,
                                       None, n.origin)
                    padless.hoisted = node.hoisted
                    self._broadcasts[key] = self._put(padless)
            source = self._broadcasts[key]
        self._alias[n.name] = source

    def _add_reduction(self, n: AscNode, source: str) -> None:
        """One node for each run of neighbouring axes, innermost first; the innermost axis of a tensor
        alone."""
        row = self.table.get(n.type)
        if row is None or not row.reduces:
            raise ScheduleRefusal("the op table has no reduction %s (%s)" % (n.type, n.name))
        kept = tuple((k, v) for k, v in n.attrs if k != "axes")
        target = self._pattern(n)
        while self.nodes[source].pattern != target:
            made = self.nodes[source]
            run = self._innermost_run(target, made.pattern)
            form = "first"
            if run[-1] == made.pattern[-1]:
                run, form = run[-1:], "last"
            pattern = tuple(a for a in made.pattern if a not in run)
            if pattern != target and row.result == "attr":
                raise ScheduleRefusal("%s runs along axes that are no neighbours (%s)" % (n.type, n.name))
            if form not in row.ascend.get(row.form_key([made.dtype], n.y.dtype), {}):
                raise ScheduleRefusal("%s of %s has no Ascend C form" % (n.type, made.dtype.name))
            name = n.name if pattern == target else self._fresh("partial")
            node = TileNode(name, n.type, [source], n.y.dtype, pattern, n, n.origin,
                            tuple(sorted(kept + (("axes", run),))))
            node.hoisted = self._may_hoist and made.hoisted
            source = self._put(node)

    def is_reduction(self, node: TileNode) -> bool:
        return node.hint is not None and is_reduction(node.hint)

    @staticmethod
    def _innermost_run(have: Pattern, target: Pattern) -> Pattern:
        """The innermost run of axes of `target` that `have` lacks."""
        run: List[int] = []
        for a in reversed(target):
            if a not in have:
                run.append(a)
            elif run:
                break
        return tuple(reversed(run))

    def _is_full(self, pattern: Pattern) -> bool:
        return len(pattern) == len(self.split.vectorized) and len(pattern) > 1

    def _needs_remove_pad(self, dtype: DType) -> bool:
        if self.template != "unaligned":
            return False
        row = self.graph.axis(self.split.vectorized[-1]).size
        return not (is_static(row) and row * dtype.bytes % 32 == 0)

    def _feed_stores(self) -> None:
        """Store sources that no vector instruction makes in the loop get one."""
        readers = self.readers()
        copies: Dict[str, str] = {}
        for store in [n for n in self.nodes.values() if n.type == "Store"]:
            source = self.nodes[store.inputs[0]]
            only_stored = all(r.type == "Store" for r in readers[source.name])
            is_read = source.type in ("Load", "Gather")
            if not is_read and source.hoisted and only_stored:
                source.hoisted = False
            if is_read or source.hoisted:
                if source.name not in copies:
                    copies[source.name] = self._put(TileNode(
                        self._fresh("copy"), "Copy", [source.name], source.dtype, source.pattern, None,
                        store.origin))
                store.inputs = [copies[source.name]]
        self._sort()

    def _sort(self) -> None:
        """Topological again, otherwise in the order of before."""
        placed: Dict[str, TileNode] = {}

        def place(node: TileNode) -> None:
            if node.name not in placed:
                for i in node.inputs:
                    place(self.nodes[i])
                placed[node.name] = node

        for node in list(self.nodes.values()):
            place(node)
        self.nodes = placed

    def _tile(self) -> Tile:
        split = self.split
        item = min(n.dtype.bytes for n in self.nodes.values() if n.makes_tensor)
        sizes = {a: self.graph.axis(a).size for a in split.vectorized if split.loop_axis(a) == a}
        sizes[split.tile_in.id] = split.tile_in.size
        actual = {split.tile_in.id: symbol(split.tile_actual)}
        if split.second:
            sizes[split.second.tile_in] = split.second.tile
            actual[split.second.tile_in] = symbol(split.second.actual)
        return Tile(split.vectorized, sizes, actual, 32 // item)

    def _choose_padding(self) -> None:
        """A pattern's rows are padded where some instruction needs its rows at 32 B: the result of a
        Broadcast, the source of one that copies whole rows, and copies that are more than one block of GM."""
        self._needs = set()
        for n in self.nodes.values():
            if n.spread:
                continue  # its elements are at 32 B, whatever its rows
            if n.type == "Transpose":
                self._needs.update((n.pattern, self.nodes[n.inputs[0]].pattern))
            elif self._is_row_broadcast(n):
                self._needs.add(n.pattern)
                if dict(n.attrs)["axes"][-1] != n.pattern[-1]:
                    self._needs.add(self.nodes[n.inputs[0]].pattern)
            elif self.is_reduction(n):
                source = self.nodes[n.inputs[0]].pattern
                self._needs.add(source)
                if dict(n.attrs)["axes"][-1] != source[-1]:
                    self._needs.add(n.pattern)
            elif n.gathers_rows and len(n.pattern) > 1:
                self._needs.add(n.pattern)
            elif n.type in ("Load", "Store") and len(n.pattern) > 1:
                if not is_contiguous(self.tile, n.pattern, self.gm_strides(n)):
                    self._needs.add(n.pattern)
        for n in self.nodes.values():
            unpadded = self.template == "unaligned" and self._is_full(n.pattern)
            dense = unpadded and not self._is_row_broadcast(n)
            n.padded = len(n.pattern) > 1 and not dense and n.pattern in self._needs

    def _is_row_broadcast(self, node: TileNode) -> bool:
        """A Broadcast of more than one element."""
        return node.type == "Broadcast" and bool(self.nodes[node.inputs[0]].pattern)

    def allows_unaligned(self) -> bool:
        """Whether the template 'unaligned' is legal and differs from 'general': rows are not whole 32 B
        blocks anyway, every full-size Load and Store is one block of GM, and RemovePad takes the dtypes, each
        padded for itself."""
        if len(self.split.vectorized) < 2 or self.split.vectorized not in self._needs:
            return False
        if self.split.reduced or any(
                n.spread or n.type in ("Transpose", "Gather") for n in self.nodes.values()):
            return False
        row = self.tile.sizes[self.split.vectorized[-1]]
        if is_static(row) and row % self.tile.row_align == 0:
            return False
        for n in self.nodes.values():
            if not self._is_full(n.pattern):
                continue
            if n.type in ("Load", "Store") and not is_contiguous(self.tile, n.pattern, self.gm_strides(n)):
                return False
            if self._is_row_broadcast(n):
                source = self.nodes[n.inputs[0]].pattern
                copies_rows = len(source) > 1 and source[-1] == n.pattern[-1]
                padded_for_others = copies_rows and self.tile.row_align * n.dtype.bytes != 32
                if n.dtype.bytes not in _REMOVE_PAD_BYTES or padded_for_others:
                    return False
        return True
