"""Which nodes may be fused at all, by what can be seen of the node alone.

Everything that does not depend on other nodes' lowering is decided here, before any expression is made: op,
dtypes, target, device, state, references, claims of other compilers, skip lists, barriers.
"""

from fnmatch import fnmatchcase
from typing import Dict, Mapping, Optional, Tuple

from tf_autofuse.fusion import reasons
from tf_autofuse.fusion.reasons import NodeVerdict
from tf_autofuse.ir.dtypes import BY_TF, DType
from tf_autofuse.lowering.graph_view import GraphView
from tf_autofuse.lowering.moves import KINDS, value_positions
from tf_autofuse.lowering.rows import COMPOSITION, row_of
from tf_autofuse.lowering.views import LIKE, SAME_DIMS
from tf_autofuse.ops.table import support
from tf_autofuse.ops.tf_left import why_left

_CLAIMS = ("_XlaCompile", "_XlaMustCompile")
_A_CONSTANT = NodeVerdict(reasons.CONSTANT, "a constant")
_FILL_VALUE = {"Fill": (1,), "BroadcastTo": (0,)}


class Eligibility:
    """refused: verdicts that were found before (a region that could not be emitted). has_references: whether
    the graph has any."""

    def __init__(self, view: GraphView, config, target: str, refused: Mapping[int, NodeVerdict]):
        self._view = view
        self._config = config
        self._target = target
        self._refused = refused
        self._families = config.families_for(target)
        self._by_dtype: Dict[tuple, Optional[NodeVerdict]] = {}
        self._on_cpu: Dict[str, bool] = {}
        self._no_row: Dict[str, NodeVerdict] = {}
        self.has_references = any(d > 100 for dtypes in set(view.out_dtypes) for d in dtypes)
        self._skips = bool(config.skip_list.names or config.skip_list.types)

    def neutral(self, op: str) -> bool:
        """Whether no precision mode changes the op."""
        row = row_of(op)
        return row is not None and (not row.computes or op == "Cast")

    def kind_of(self, node: int) -> str:
        """The kind of the node's row; '' where the op has none or its family is off."""
        row = row_of(self._view.ops[node])
        on = row is not None and row.family(self._view.attrs[node]) in self._families
        return row.kind if on else ""

    def supports(self, op: str, dtype: DType) -> bool:
        """Whether the op can be fused on the target when its attr T is dtype (at least with a constant
        operand)."""
        row = row_of(op)
        if row is None or dtype not in row.dtypes:
            return False
        if op == COMPOSITION:
            return True  # what it is composed of is known of each node only
        found = support(op, dtype, self._target)
        return found.ok or found.with_constant

    def value_inputs(self, node: int) -> Tuple[int, ...]:
        """Positions of the inputs whose elements the op computes with; the others are shapes, axes or
        likenesses."""
        op = self._view.ops[node]
        if op in LIKE:
            return ()
        if op in _FILL_VALUE:
            return _FILL_VALUE[op]
        kind = row_of(op).kind
        if kind == "view":
            return (0,)
        if kind in KINDS:
            return value_positions(op, len(self._view.inputs[node]))
        count = row_of(op).inputs if kind == "reduce" else -1
        return tuple(range(len(self._view.inputs[node]) if count < 0 else count))

    def verdict(self, node: int) -> Optional[NodeVerdict]:
        """Why the node is not to be fused, None where nothing speaks against it so far."""
        op = self._view.ops[node]
        if op == "Const":
            return _A_CONSTANT
        if row_of(op) is None:
            found = self._no_row.get(op)
            if found is None:
                found = self._no_row[op] = NodeVerdict(
                    reasons.NO_ROW, why_left(op) or "no row for %s" % op
                )
            return found
        if node in self._refused:
            return self._refused[node]
        family = row_of(op).family(self._view.attrs[node])
        if family not in self._families:
            return NodeVerdict(reasons.FAMILY, "%s is of the family %s, which is off" % (op, family))
        return self._skip_verdict(node, op) or self._place_verdict(node, op) or self._dtype_verdict(node, op)

    def _skip_verdict(self, node: int, op: str) -> Optional[NodeVerdict]:
        """What the user or another compiler says."""
        attrs = self._view.attrs[node]
        if attrs.get("_disable_autofuse_scope"):
            return NodeVerdict(reasons.SKIPPED_SCOPE, "inside of a scope that turns fusion off")
        for claim in _CLAIMS:
            if attrs.get(claim):
                return NodeVerdict(reasons.CLAIMED, "it has the attribute %s" % claim)
        skipped = self._config.skip_reason(self._view.names[node], op) if self._skips else None
        if not skipped:
            return None
        by_name = any(fnmatchcase(self._view.names[node], p) for p in self._config.skip_list.names)
        return NodeVerdict(reasons.SKIPPED_NAME if by_name else reasons.SKIPPED_TYPE, skipped)

    def _place_verdict(self, node: int, op: str) -> Optional[NodeVerdict]:
        """What the node's surroundings say."""
        view = self._view
        if self.has_references:
            if any(d > 100 for d in view.in_dtypes[node] + view.out_dtypes[node]):
                return NodeVerdict(reasons.REFERENCE, "it reads or gives a reference")
            for source, port in view.inputs[node]:
                if view.out_dtypes[source][port] > 100:
                    return NodeVerdict(reasons.REFERENCE, "%s:%d is a reference" % (view.names[source], port))
        if view.stateful[node]:
            return NodeVerdict(reasons.STATEFUL, "the op has state")
        if not self._is_cpu(view.devices[node]):
            return NodeVerdict(reasons.NOT_CPU, "it is on %s" % view.devices[node])
        if op in SAME_DIMS and (view.control_inputs[node] or view.control_outputs[node]):
            return NodeVerdict(reasons.BARRIER, "an %s with control edges" % op)
        return None

    def _is_cpu(self, device: str) -> bool:
        found = self._on_cpu.get(device)
        if found is None:
            kind = [part for part in device.lower().split("/") if part.startswith(("device:", "cpu", "gpu"))]
            found = self._on_cpu[device] = not kind or "cpu" in kind[-1]
        return found

    def _dtype_verdict(self, node: int, op: str) -> Optional[NodeVerdict]:
        view, attrs = self._view, self._view.attrs[node]
        in_dtypes, out_dtypes = view.in_dtypes[node], view.out_dtypes[node]
        key = (op, in_dtypes, out_dtypes, attrs.get("T"))
        if key in self._by_dtype:
            return self._by_dtype[key]
        values = self.value_inputs(node)
        number = attrs.get("T") or attrs.get("SrcT")
        if not isinstance(number, int):
            number = in_dtypes[values[-1]] if values else out_dtypes[0]
        self._by_dtype[key] = found = self._judge(op, number, [in_dtypes[v] for v in values], out_dtypes[0])
        return found

    def _judge(self, op: str, number: int, values, out: int) -> Optional[NodeVerdict]:
        row, dtype = row_of(op), BY_TF.get(number)
        unknown = [d for d in list(values) + [out, number] if d not in BY_TF]
        if unknown:
            return NodeVerdict(reasons.DTYPE, "dtype number %d is not supported" % unknown[0])
        kinds = (dtype, BY_TF[out]) if op == "Cast" else (dtype,)
        for kind in kinds:
            if kind not in row.dtypes:
                return NodeVerdict(
                    reasons.DTYPE, "TensorFlow 1.15 has no CPU kernel of %s for %s" % (op, kind.name)
                )
        for key in ((self._target, dtype.name), (self._target, "*")):
            if key in row.refuse:
                return NodeVerdict(reasons.TARGET, row.refuse[key])
        return None
