"""From TF ops to KernelBoxes: each op output becomes a loop expression that its consumers inline.

Nodes are visited in topological order. A node that may be fused gets a box: its row's lowering, run on the
boxes of its inputs. A box is *realized* (its tensor becomes the root of a loop nest of its own, consumers
load it) when
    - something that is not fused reads it, or control edges lead to or from it,
    - it has more consumers than recomputation_threshold (but a lookup in a table that a few concats read, as
      factorization machines have it, is done by each of them),
    - a consumer is on another device or in another while frame,
    - it reduces: its value must be complete before it is read,
    - with it, its consumer would exceed max_fusion_size loop nodes or MAX_LOADS loads (for each part of a
      concat),
    - it is gathered from, or sliced although it gathers (TF looks at all indices).
An op that cuts its input into several outputs (Split) is only ever inlined: where one of them would have to
be stored, it is left to TF. All others vanish into their consumers. Of an op that computes several outputs
those are stored that something reads. Fusion (fusion/fuse.py) then joins realized boxes again where that
pays.

On exit every node has a box or a NodeVerdict that says why not. Nothing raises for what a graph contains.
"""

from typing import Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from tf_autofuse.fusion import reasons
from tf_autofuse.fusion.reasons import NodeVerdict
from tf_autofuse.ir.dtypes import BY_TF, FLOAT32
from tf_autofuse.ir.loop_ir import (
    Concat,
    DEMOTE,
    Dims,
    Expr,
    KernelBox,
    Load,
    NARROW,
    PROMOTE,
    Store,
    WIDEN,
    constant_of,
    loads_of,
    views_only,
)
from tf_autofuse.ir.loop_layout import NoCommonAxes
from tf_autofuse.ir.loop_parts import placements
from tf_autofuse.lowering.eligibility import Eligibility
from tf_autofuse.lowering.graph_view import GraphView, NodeRef
from tf_autofuse.lowering.handler import HALVES, LoopHandler, TargetRefusal, plain
from tf_autofuse.lowering.liveness import Liveness, liveness_of
from tf_autofuse.lowering.moves import KINDS, lower_move
from tf_autofuse.lowering.precision_mode import low_precision
from tf_autofuse.lowering.rows import row_of
from tf_autofuse.lowering.shape_chains import ShapeChains, chains_of, may_go
from tf_autofuse.lowering.shape_folding import ShapeValues
from tf_autofuse.lowering.symbols import ShapesDiffer, SymbolTable
from tf_autofuse.lowering.views import Refused, lower_fill, lower_view
from tf_autofuse.ops.schema import Refusal
from tf_autofuse.symbolic.guards import Guard
from tf_autofuse.symbolic.size import Size, is_static, known_equal

#: Most tensors that inlining lets one expression load (GE's max_load_num on 910B); a concat's, per part.
MAX_LOADS = 4
#: Most tensors that inlining lets all parts of a concat load: 200 tables with their indices.
MAX_LOADS_OF_PARTS = 400
#: Most concats that do the same lookup each by itself: the rows are in the caches then.
MAX_LOOKUPS = 2

Tensor = Tuple[int, int]


class Surroundings(NamedTuple):
    """What the columns of a part of a graph do not say. homes: per node the number of its chunk
    (lowering/chunks.py), -1 outside of all: what is in different ones is not fused; None: it is one piece.
    places: per node its place in the whole graph, None: its id. first: per run-time dim the node that is the
    first one to have it, -1 for one outside; alive: per node; None: as the columns say. bound: run-time dims
    that are sizes of others by what is planned elsewhere."""

    homes: Optional[Sequence[int]] = None
    places: Optional[Sequence[int]] = None
    first: Optional[Mapping[int, int]] = None
    alive: Optional[Sequence[Liveness]] = None
    bound: Optional[Mapping[int, Size]] = None


class Lowered(NamedTuple):
    """boxes: by node; realized: the nodes whose boxes are roots, ascending; verdicts: why a node has no box;
    guards: what a boxed node needs of the run-time dims; dims: of boxed outputs; alive: per node; chains: who
    reads what beside arithmetic on shapes; folded: the nodes that only compute known sizes, whose values
    shape_values tells; assuming: nodes with a guard on which their dims depend and which TF does not
    check; again: nodes that several regions may compute, each for itself."""

    view: GraphView
    symbols: SymbolTable
    boxes: Mapping[int, KernelBox]
    realized: Tuple[int, ...]
    verdicts: Mapping[int, NodeVerdict]
    guards: Mapping[int, Tuple[Guard, ...]]
    alive: Sequence[Liveness]
    dims_of: "Dimensions"
    chains: ShapeChains
    shape_values: ShapeValues
    folded: Set[int]
    assuming: Set[int]
    again: FrozenSet[int] = frozenset()


def first_nodes(view: GraphView) -> Dict[int, int]:
    """Per run-time dim the first node that has it."""
    first: Dict[int, int] = {}
    seen = set()
    for node, shapes in enumerate(view.out_shapes):
        if shapes not in seen:
            seen.add(shapes)
            for column in shapes:
                for d in column or ():
                    if d < 0:
                        first.setdefault(-d - 1, node)
    return first


class Dimensions:
    """Dims of any tensor of the graph: what lowering found, else what the columns say; None for unknown
    rank."""

    def __init__(self, view: GraphView, symbols: SymbolTable):
        self._view = view
        self._symbols = symbols
        self.found: Dict[Tensor, Dims] = {}

    def __call__(self, tensor: Tensor) -> Optional[Dims]:
        node, port = tensor
        if tensor in self.found:
            return self.found[tensor]
        column = self._view.out_shapes[node][port]
        return None if column is None else self._symbols.dims(column)


def lower(
    view: GraphView, config, target: str, refused: Mapping[int, NodeVerdict], forced: Set[int],
    around: Surroundings = Surroundings(),
) -> Lowered:
    """refused: nodes that may not be fused, with the reason; forced: nodes to be realized in any case."""
    refused = dict(refused)
    while True:
        lowering = _Lowering(view, config, target, refused, forced, around)
        result = lowering.run()
        if not lowering.unstorable:
            return result
        refused.update((node, _OUTPUT_OUTSIDE) for node in lowering.unstorable)


_SIZES = NodeVerdict(reasons.SIZES, "its value is known from the dims of tensors")
_OUTPUT_OUTSIDE = NodeVerdict(reasons.OUTPUT_OUTSIDE, "an op that is not fused reads an output of it")


class _OnlyConstants(Refused):
    def __init__(self):
        super().__init__(reasons.CONSTANT_INPUTS, "all of its inputs are constants")


class _Lowering:
    def __init__(self, view, config, target, refused, forced, around):
        self.view = view
        self.threshold = config.recomputation_threshold
        self.max_size = config.max_fusion_size
        self.forced = forced
        self.symbols = SymbolTable(view.symbols, around.bound)
        self.dims_of = Dimensions(view, self.symbols)
        self.shape_values = ShapeValues(view, self.dims_of)
        self.handler = LoopHandler(self.symbols, target, config.enhances_precision)
        self.builder = self.handler.builder
        self.eligible = Eligibility(view, config, target, refused)
        self.low = low_precision(
            view, config.precision_mode_for(target), self.eligible.neutral, self.eligible.supports
        )
        self.boxes: Dict[int, KernelBox] = {}
        self.realized: Set[int] = set()
        self.verdicts: Dict[int, NodeVerdict] = {}
        self.guards: Dict[int, Tuple[Guard, ...]] = {}
        self.homes = around.homes
        self.alive = around.alive
        self.first = first_nodes(view) if around.first is None else around.first
        self.at = -1  # the node that is being lowered
        # By chunk, since the order of expressions must not depend on other chunks.
        self.constants: Dict[Tuple[int, int], Optional[Expr]] = {}
        self.loads: Dict[Tuple[Tensor, int], Expr] = {}
        self.folded: Set[int] = set()  # nodes that only compute known sizes
        self.known: Set[Tuple[int, int]] = set()  # (node, input position) that is taken as known
        self.assuming: Set[int] = set()  # nodes whose dims hold under a guard that TF does not check
        self.again: Set[int] = set()  # lookups that each of their readers does
        self.unstorable: Set[int] = set()  # boxed nodes with several outputs of which one had to be stored

    def run(self) -> Lowered:
        for node in range(len(self.view)):
            self.at = node
            verdict = self.sizes_verdict(node) or self.eligible.verdict(node)
            if verdict is None:
                verdict = self.try_box(node)
            if verdict is not None:
                self.verdicts[node] = verdict
                for source, _ in self.view.inputs[node]:
                    self.realize(source)
        return Lowered(
            self.view,
            self.symbols,
            self.boxes,
            tuple(sorted(self.realized)),
            self.verdicts,
            self.guards,
            liveness_of(self.view) if self.alive is None else self.alive,
            self.dims_of,
            chains_of(self.view, self.folded, self.known, self.boxes),
            self.shape_values,
            self.folded,
            self.assuming,
            frozenset(self.again),
        )

    def sizes_verdict(self, node: int) -> Optional[NodeVerdict]:
        if not self.shape_values.folds(node) or not may_go(self.view, node):
            return None
        self.folded.add(node)
        return _SIZES

    def is_fresh(self, number: int) -> bool:
        """Whether nothing is known of the run-time dim, and nothing before this node has it."""
        return self.first[number] == self.at and not self.symbols.is_bound(number)

    def realize(self, node: int) -> None:
        """Makes the node's box the root of a nest. A constant's value is inlined wherever it is read."""
        box = self.boxes.get(node)
        if box is not None and not box.ports:
            self.unstorable.add(node)
        elif box is not None and constant_of(box.expr) is None:
            self.realized.add(node)

    def try_box(self, node: int) -> Optional[NodeVerdict]:
        """Adds the node's box, or says why it gets none."""
        view = self.view
        values = self.eligible.value_inputs(node)
        for at, (source, _) in enumerate(view.inputs[node]):
            if at not in values and source in self.folded and view.devices[source] == view.devices[node]:
                self.known.add((node, at))
            if (
                at not in values
                or view.devices[source] != view.devices[node]
                or view.frames[source] != view.frames[node]
                or not self.at_home(source, node)
                or self.needs_tensor(node, at, source)
            ):
                self.realize(source)
        try:
            box = self.box(node, values)
            if self.too_big(box):
                for inner in box.inlined:
                    self.realize(inner.node)
                box = self.box(node, values)
        except TargetRefusal as refusal:
            return NodeVerdict(reasons.TARGET, refusal.reason)
        except Refusal as refusal:
            return NodeVerdict(reasons.REFUSED, refusal.reason)
        except ShapesDiffer as refusal:
            return NodeVerdict(reasons.SHAPES, refusal.reason)
        except Refused as refusal:
            return refusal.verdict
        self.boxes[node] = box
        for port, expr in enumerate(box.outputs or (box.expr,)):
            if expr is not None:
                self.dims_of.found[node, port] = expr.dims
        if self.handler.guards:
            self.guards[node] = tuple(self.handler.guards)
        if self.looked_up_again(node, box):
            self.again.add(node)
        if (
            node in self.forced
            or box.reduces
            or (len(view.consumers[node]) > self.threshold and box.ports and node not in self.again)
            or not view.consumers[node]
            or view.control_inputs[node]
            or view.control_outputs[node]
        ):
            self.realize(node)
        return None

    def looked_up_again(self, node: int, box: KernelBox) -> bool:
        """Whether the node is a plain lookup that several concats read and nothing else."""
        view = self.view
        readers = view.consumers[node]
        return (
            1 < len(readers) <= MAX_LOOKUPS
            and row_of(view.ops[node]).kind == "gather"
            and not box.inlined
            and all(self.eligible.kind_of(r) == "concat" and self.at_home(r, node) for r in readers)
            and not view.control_outputs[node]
        )

    def at_home(self, other: int, node: int) -> bool:
        """Whether the two may end up in one fused op."""
        return self.homes is None or self.homes[other] == self.homes[node]

    def needs_tensor(self, node: int, at: int, source: int) -> bool:
        """Whether the node must read input `at` from memory: what it gathers from, or slices although that
        gathers."""
        box, kind = self.boxes.get(source), row_of(self.view.ops[node]).kind
        if box is None:
            return False
        if kind == "gather" and at == 0:
            return not isinstance(box.expr, Load)
        return kind in ("slice", "split") and bool(box.gathered)

    def too_big(self, box: KernelBox) -> bool:
        if not box.inlined:
            return False
        if box.size > self.max_size * box.parts:
            return True
        if len(box.loads) > min(MAX_LOADS * box.parts, MAX_LOADS_OF_PARTS):
            return True
        if not box.hard and box.parts == 1:
            return False
        try:
            placements(box.stores or [Store((box.node, 0), expr) for expr in box.outputs])
        except NoCommonAxes:
            return True
        return False

    def box(self, node: int, values: Tuple[int, ...]) -> KernelBox:
        """The box with what may be inlined inlined. Raises Refusal, ShapesDiffer, Refused."""
        view = self.view
        ref = view.node(node, self.shape_values)
        row = row_of(ref.op)
        low = self.low is not None and self.low.nodes[node]
        args: List[Expr] = []
        inlined: List[KernelBox] = []
        for at in values:
            source, port = view.inputs[node][at]
            in_memory = row.kind == "gather" and at == values[0]
            if in_memory:
                args.append(self.tensor(node, source, port))
            elif row.computes and source in self.folded and self.is_size(node, source, port):
                self.known.add((node, at))
                (size,) = self.shape_values.of((source, port)).elements
                args.append(self.builder.size_value(size, BY_TF[view.out_dtypes[source][port]], node))
            else:
                args.append(self.value(node, source, port))
            inner = self.boxes.get(source)
            if inner is not None and source not in self.realized and inner not in inlined:
                if constant_of(inner.expr) is None or self.goes_along(source):
                    inlined.append(inner)
        filled = row.kind != "fill" and all(constant_of(a) is not None for a in args)
        # TF's folding cannot make a fill of run-time dims.
        if filled and (row.kind != "elementwise" or all(is_static(d) for a in args for d in a.dims)):
            raise _OnlyConstants()
        wide = [a.dtype for a in args if a.dtype in HALVES] if row.computes else []
        self.handler.begin(node, ref.op, self.low.dtype if low else (wide[0] if wide else None))
        hard = False
        exprs: List[Expr] = []
        if row.computes:
            exprs.extend(self.elementwise(ref, row, args, low))
        elif row.kind == "view":
            expr, hard = lower_view(self, ref, args[0])
            exprs.append(expr)
        elif row.kind in KINDS:
            exprs = lower_move(self, ref, args)
            hard = ref.op == "Tile"
        else:
            exprs.append(lower_fill(self, ref, args))
        exprs = [expr and self.settle(ref, port, expr) for port, expr in enumerate(exprs)]
        if filled and (len(exprs) > 1 or constant_of(exprs[0]) is None):
            raise _OnlyConstants()
        ports = self.stored_ports(node, exprs) if row.computes else (0,) if len(exprs) == 1 else ()
        loads = frozenset(arg.tensor for arg in args if isinstance(arg, Load))
        gathered = frozenset([args[0].tensor] if row.kind == "gather" else ())
        for inner in inlined:
            loads |= inner.loads
            gathered |= inner.gathered
        if len(exprs) > 1 and row.computes:
            loads = loads_of([exprs[port] for port in ports])  # an operand may serve other outputs only
        parts = sum(b.parts - 1 for b in inlined) + 1
        space = max(self.handler.spaces, key=len, default=exprs[0].dims)
        return KernelBox(
            node,
            exprs[ports[0] if ports else 0],
            tuple(inlined),
            row.computes
            or (row.kind in KINDS and not views_only(exprs[0], args[0]))
            or ref.op == "BroadcastTo",
            self.handler.made + sum(b.size for b in inlined),
            loads,
            hard or bool(self.handler.spaces) or any(b.hard for b in inlined),
            parts + (len(exprs[0].args) - 1 if isinstance(exprs[0], Concat) else 0),
            row.kind in ("slice", "split"),
            gathered,
            tuple(exprs) if len(exprs) > 1 else (),
            bool(self.handler.spaces),
            space,
            ports,
        )

    def is_size(self, reader: int, source: int, port: int) -> bool:
        """Whether the folded tensor is one size that is known at run time only."""
        value = self.shape_values.of((source, port))
        same_device = self.view.devices[source] == self.view.devices[reader]
        return same_device and value.scalar and not is_static(value.elements[0])

    def stored_ports(self, node: int, exprs: Sequence[Optional[Expr]]) -> Tuple[int, ...]:
        """The outputs that something reads, or the first. Raises Refused where the row does not give one."""
        view = self.view
        if len(view.out_dtypes[node]) == 1:
            return (0,)
        read = {port for c in view.consumers[node] for source, port in view.inputs[c] if source == node}
        for port in read:
            if port >= len(exprs) or exprs[port] is None:
                raise Refused(reasons.OUTPUT_OUTSIDE, "something reads its output %d" % port)
        return tuple(sorted(read)) or (0,)

    def goes_along(self, node: int) -> bool:
        """Whether a constant fill is replaced with its reader; of others only the value is inlined."""
        view = self.view
        return (
            len(view.consumers[node]) == 1
            and not view.control_inputs[node]
            and not view.control_outputs[node]
        )

    def elementwise(self, ref: NodeRef, row, args: List[Expr], low: bool) -> List[Optional[Expr]]:
        """Runs the lowering between the casts that the precision mode and 16-bit dtypes call for. An entry an
        output that the lowering gives, None for one in between that it does not."""
        builder, node = self.builder, ref.id
        if ref.op == "Cast":
            return [row.lower(self.handler, ref, *args)]
        inner = []
        for arg in args:
            if low and arg.dtype is FLOAT32:
                arg = builder.cast(arg, self.low.dtype, NARROW, node)
            inner.append(builder.cast(arg, FLOAT32, PROMOTE, node) if arg.dtype in HALVES else arg)
        found = row.lower(self.handler, ref, *inner)
        results: List[Optional[Expr]] = list(found) if isinstance(found, tuple) else [found]
        for port, result in enumerate(results):
            out_dtype = BY_TF[self.view.out_dtypes[node][port]]
            if result is None:
                continue
            if low and out_dtype is FLOAT32:
                result = builder.cast(result, self.low.dtype, DEMOTE, node)
                results[port] = builder.cast(result, FLOAT32, WIDEN, node)
            elif out_dtype in HALVES:
                results[port] = builder.cast(result, out_dtype, DEMOTE, node)
        return results

    def value(self, reader: int, source: int, port: int) -> Expr:
        """The tensor as an expression: a constant, the producer's expression, or a Load."""
        view = self.view
        if view.ops[source] == "Const":
            constant = self.constant(reader, source)
            if constant is not None:
                return constant
        box = self.boxes.get(source)
        if box is not None and (source not in self.realized or constant_of(box.expr) is not None):
            return box.output(port)
        return self.tensor(reader, source, port)

    def tensor(self, reader: int, source: int, port: int) -> Expr:
        """The tensor as it lies in memory; a view of one stays a Load of that."""
        view, box = self.view, self.boxes.get(source)
        if box is not None and source not in self.realized and isinstance(box.output(port), Load):
            return box.output(port)
        tensor = (source, port)
        key = (tensor, self.homes[reader] if self.homes is not None else 0)
        load = self.loads.get(key)
        if load is None:
            number = view.out_dtypes[source][port]
            if number > 100:
                raise Refused(reasons.REFERENCE, "%s:%d is a reference" % (view.names[source], port))
            dims = self.dims_of(tensor)
            if dims is None:
                raise Refused(
                    reasons.UNKNOWN_RANK, "the rank of %s:%d is unknown" % (view.names[source], port)
                )
            load = self.loads[key] = self.builder.load(tensor, BY_TF[number], dims, reader)
        return load

    def constant(self, reader: int, node: int) -> Optional[Expr]:
        """The Const's value where all of its elements are the same bits, else None."""
        key = (node, self.homes[reader] if self.homes is not None else 0)
        if key not in self.constants:
            array = self.view.constants.get(node)
            expr = None
            dtype = BY_TF.get(self.view.out_dtypes[node][0])
            if array is not None and dtype is not None and array.size:
                if array.size == 1 or array.tobytes() == array.reshape(-1)[:1].tobytes() * array.size:
                    expr = self.builder.constant(plain(array, dtype), dtype)
                    expr = self.builder.broadcast(expr, tuple(int(d) for d in array.shape))
            self.constants[key] = expr
        return self.constants[key]

    def settle(self, ref: NodeRef, port: int, expr: Expr) -> Expr:
        """Makes the expression's dims and the columns' dims one: run-time dims that TF's shape function could
        not tell are bound to what lowering found; where TF knows more, TF's dims count, under a guard."""
        column = self.view.out_shapes[ref.id][port]
        if column is None or expr.dims == column:
            return expr
        if len(column) != len(expr.dims):
            raise Refused(
                reasons.SHAPES, "TF infers rank %d, the inputs give rank %d" % (len(column), len(expr.dims))
            )
        dims = list(expr.dims)
        for i, d in enumerate(column):
            if d < 0 and self.is_fresh(-d - 1):
                self.symbols.bind(-d - 1, dims[i])
            elif d >= 0 and not known_equal(dims[i], d):
                if is_static(dims[i]):
                    raise Refused(reasons.SHAPES, "TF infers dim %d, the inputs give %d" % (d, dims[i]))
                self.handler.guards.append(Guard("eq", dims[i], d, ref.op))
                dims[i] = d
        return self.builder.same(expr, tuple(dims), ref.id)
