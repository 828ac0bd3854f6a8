"""From TF ops to KernelBoxes: each op output becomes a loop expression that its consumers inline.

Nodes are visited in topological order. A node that may be fused gets a box: its row's lowering, run on the
boxes of its inputs. A box is *realized* (its tensor becomes the root of a loop nest of its own, consumers
load it) when
    - something that is not fused reads it, or control edges lead to or from it,
    - it has more consumers than recomputation_threshold,
    - a consumer is on another device or in another while frame,
    - with it, its consumer would exceed max_fusion_size loop nodes or MAX_LOADS loads.
All others vanish into their consumers. Fusion (fusion/fuse.py) then joins realized boxes again where that
pays.

On exit every node has a box or a NodeVerdict that says why not. Nothing raises for what a graph contains.
"""

from typing import Dict, List, Mapping, NamedTuple, Optional, Set, Tuple

from tf_autofuse.fusion import reasons
from tf_autofuse.fusion.reasons import NodeVerdict
from tf_autofuse.ir.dtypes import BY_TF, DType, FLOAT32
from tf_autofuse.ir.loop_ir import (
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
)
from tf_autofuse.ir.loop_layout import NoCommonAxes, layout
from tf_autofuse.lowering.eligibility import Eligibility
from tf_autofuse.lowering.graph_view import GraphView, NodeRef
from tf_autofuse.lowering.handler import HALVES, LoopHandler, TargetRefusal, plain
from tf_autofuse.lowering.liveness import Liveness, liveness_of
from tf_autofuse.lowering.precision_mode import low_precision
from tf_autofuse.lowering.rows import row_of
from tf_autofuse.lowering.symbols import ShapesDiffer, SymbolTable
from tf_autofuse.lowering.views import Refused, lower_fill, lower_view
from tf_autofuse.ops.schema import Refusal
from tf_autofuse.symbolic.guards import Guard
from tf_autofuse.symbolic.size import is_static, known_equal

#: Most tensors that inlining lets one expression load (GE's max_load_num on 910B).
MAX_LOADS = 4

Tensor = Tuple[int, int]


class Lowered(NamedTuple):
    """boxes: by node; realized: the nodes whose boxes are roots, ascending; verdicts: why a node has no box;
    guards: what a boxed node needs of the run-time dims; dims: of boxed outputs; alive: per node."""

    view: GraphView
    symbols: SymbolTable
    boxes: Mapping[int, KernelBox]
    realized: Tuple[int, ...]
    verdicts: Mapping[int, NodeVerdict]
    guards: Mapping[int, Tuple[Guard, ...]]
    alive: List[Liveness]
    dims_of: "Dimensions"


class Dimensions:
    """Dims of any tensor of the graph: what lowering found, else what the columns say; None for unknown
    rank."""

    def __init__(self, view: GraphView, symbols: SymbolTable):
        self._view = view
        self._symbols = symbols
        self.found: Dict[int, Dims] = {}

    def __call__(self, tensor: Tensor) -> Optional[Dims]:
        node, port = tensor
        if port == 0 and node in self.found:
            return self.found[node]
        column = self._view.out_shapes[node][port]
        return None if column is None else self._symbols.dims(column)


def lower(
    view: GraphView, config, target: str, refused: Mapping[int, NodeVerdict], forced: Set[int]
) -> Lowered:
    """refused: nodes that may not be fused, with the reason; forced: nodes to be realized in any case."""
    return _Lowering(view, config, target, refused, forced).run()


class _Lowering:
    def __init__(self, view, config, target, refused, forced):
        self.view = view
        self.threshold = config.recomputation_threshold
        self.max_size = config.max_fusion_size
        self.forced = forced
        self.symbols = SymbolTable(view.symbols)
        self.dims_of = Dimensions(view, self.symbols)
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
        self.constants: Dict[int, Optional[Expr]] = {}
        self.loads: Dict[Tensor, Expr] = {}
        self.seen_dims: Set[int] = set()

    def run(self) -> Lowered:
        for node in range(len(self.view)):
            verdict = self.eligible.verdict(node)
            if verdict is None:
                verdict = self.try_box(node)
            if verdict is not None:
                self.verdicts[node] = verdict
                for source, _ in self.view.inputs[node]:
                    self.realize(source)
            for column in self.view.out_shapes[node]:
                if column and min(column) < 0:
                    self.seen_dims.update(-d - 1 for d in column if d < 0)
        return Lowered(
            self.view,
            self.symbols,
            self.boxes,
            tuple(sorted(self.realized)),
            self.verdicts,
            self.guards,
            liveness_of(self.view),
            self.dims_of,
        )

    def realize(self, node: int) -> None:
        """Makes the node's box the root of a nest. A constant's value is inlined wherever it is read."""
        box = self.boxes.get(node)
        if box is not None and constant_of(box.expr) is None:
            self.realized.add(node)

    def try_box(self, node: int) -> Optional[NodeVerdict]:
        """Adds the node's box, or says why it gets none."""
        view = self.view
        values = self.eligible.value_inputs(node)
        for at, (source, _) in enumerate(view.inputs[node]):
            if (
                at not in values
                or view.devices[source] != view.devices[node]
                or view.frames[source] != view.frames[node]
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
        self.dims_of.found[node] = box.expr.dims
        if self.handler.guards:
            self.guards[node] = tuple(self.handler.guards)
        if (
            node in self.forced
            or len(view.consumers[node]) > self.threshold
            or not view.consumers[node]
            or view.control_inputs[node]
            or view.control_outputs[node]
        ):
            self.realize(node)
        return None

    def too_big(self, box: KernelBox) -> bool:
        if not box.inlined:
            return False
        if box.size > self.max_size or len(box.loads) > MAX_LOADS:
            return True
        if not box.hard:
            return False
        try:
            layout([Store((box.node, 0), box.expr)])
        except NoCommonAxes:
            return True
        return False

    def box(self, node: int, values: Tuple[int, ...]) -> KernelBox:
        """The box with what may be inlined inlined. Raises Refusal, ShapesDiffer, Refused."""
        view = self.view
        ref = view.node(node)
        row = row_of(ref.op)
        low = self.low is not None and self.low.nodes[node]
        out_dtype = BY_TF[view.out_dtypes[node][0]]
        args: List[Expr] = []
        inlined: List[KernelBox] = []
        for at in values:
            source, port = view.inputs[node][at]
            args.append(self.value(node, source, port))
            inner = self.boxes.get(source)
            if inner is not None and source not in self.realized and inner not in inlined:
                if constant_of(inner.expr) is None or self.goes_along(source):
                    inlined.append(inner)
        if row.kind != "fill" and all(constant_of(a) is not None for a in args):
            raise Refused(reasons.CONSTANT_INPUTS, "all of its inputs are constants")
        wide = [a.dtype for a in args if a.dtype in HALVES] if row.kind == "elementwise" else []
        self.handler.begin(node, ref.name, ref.op, self.low.dtype if low else (wide[0] if wide else None))
        hard = False
        if row.kind == "elementwise":
            expr = self.elementwise(ref, row, args, out_dtype, low)
        elif row.kind == "view":
            expr, hard = lower_view(self, ref, args[0])
        else:
            expr = lower_fill(self, ref, args)
        expr = self.settle(ref, expr)
        loads = frozenset(arg.tensor for arg in args if isinstance(arg, Load))
        for inner in inlined:
            loads |= inner.loads
        return KernelBox(
            node,
            expr,
            tuple(inlined),
            row.kind == "elementwise" or ref.op == "BroadcastTo",
            self.handler.made + sum(b.size for b in inlined),
            loads,
            hard or any(b.hard for b in inlined),
        )

    def goes_along(self, node: int) -> bool:
        """Whether a constant fill is replaced with its reader; of others only the value is inlined."""
        view = self.view
        return (
            len(view.consumers[node]) == 1
            and not view.control_inputs[node]
            and not view.control_outputs[node]
        )

    def elementwise(self, ref: NodeRef, row, args: List[Expr], out_dtype: DType, low: bool) -> Expr:
        """Runs the lowering between the casts that the precision mode and 16-bit dtypes call for."""
        builder, node = self.builder, ref.id
        if ref.op == "Cast":
            return row.lower(self.handler, ref, *args)
        inner = []
        for arg in args:
            if low and arg.dtype is FLOAT32:
                arg = builder.cast(arg, self.low.dtype, NARROW, node)
            inner.append(builder.cast(arg, FLOAT32, PROMOTE, node) if arg.dtype in HALVES else arg)
        result = row.lower(self.handler, ref, *inner)
        if low and out_dtype is FLOAT32:
            return builder.cast(builder.cast(result, self.low.dtype, DEMOTE, node), FLOAT32, WIDEN, node)
        return builder.cast(result, out_dtype, DEMOTE, node) if out_dtype in HALVES else result

    def value(self, reader: int, source: int, port: int) -> Expr:
        """The tensor as an expression: a constant, the producer's expression, or a Load."""
        view = self.view
        if view.ops[source] == "Const":
            constant = self.constant(source)
            if constant is not None:
                return constant
        box = self.boxes.get(source)
        if box is not None and (source not in self.realized or constant_of(box.expr) is not None):
            return box.expr
        tensor = (source, port)
        load = self.loads.get(tensor)
        if load is None:
            number = view.out_dtypes[source][port]
            if number > 100:
                raise Refused(reasons.REFERENCE, "%s:%d is a reference" % (view.names[source], port))
            dims = self.dims_of(tensor)
            if dims is None:
                raise Refused(
                    reasons.UNKNOWN_RANK, "the rank of %s:%d is unknown" % (view.names[source], port)
                )
            load = self.loads[tensor] = self.builder.load(tensor, BY_TF[number], dims, reader)
        return load

    def constant(self, node: int) -> Optional[Expr]:
        """The Const's value where all of its elements are the same bits, else None."""
        if node not in self.constants:
            array = self.view.constants.get(node)
            expr = None
            dtype = BY_TF.get(self.view.out_dtypes[node][0])
            if array is not None and dtype is not None and array.size:
                if array.size == 1 or array.tobytes() == array.reshape(-1)[:1].tobytes() * array.size:
                    expr = self.builder.constant(plain(array, dtype), dtype)
                    expr = self.builder.broadcast(expr, tuple(int(d) for d in array.shape))
            self.constants[node] = expr
        return self.constants[node]

    def settle(self, ref: NodeRef, expr: Expr) -> Expr:
        """Makes the expression's dims and the columns' dims one: run-time dims that TF's shape function could
        not tell are bound to what lowering found; where TF knows more, TF's dims count, under a guard."""
        column = self.view.out_shapes[ref.id][0]
        if column is None or expr.dims == column:
            return expr
        if len(column) != len(expr.dims):
            raise Refused(
                reasons.SHAPES, "TF infers rank %d, the inputs give rank %d" % (len(column), len(expr.dims))
            )
        dims = list(expr.dims)
        for i, d in enumerate(column):
            if d < 0 and -d - 1 not in self.seen_dims:
                self.symbols.bind(-d - 1, dims[i])
            elif d >= 0 and not known_equal(dims[i], d):
                if is_static(dims[i]):
                    raise Refused(reasons.SHAPES, "TF infers dim %d, the inputs give %d" % (d, dims[i]))
                self.handler.guards.append(Guard("eq", dims[i], d, ref.name))
                dims[i] = d
        return self.builder.same(expr, tuple(dims), ref.id)
