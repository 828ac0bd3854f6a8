"""Names of fused ops: autofuse_<kind>_<n>_<Op>_<Op>..., the original op types in topological order.

A Cast that a precision mode puts in is named where it stands: before the first op that needs it, or after the
op whose result it casts back. Constants have no part in the name.
"""

import hashlib
from typing import Dict, List, Sequence, Tuple

from tf_autofuse.ir.loop_ir import Call, Cast, Expr, NARROW, USER, WIDEN, reachable
from tf_autofuse.lowering.graph_view import GraphView
from tf_autofuse.lowering.rows import COMPOSITION, composed_ops, row_of

#: Families that a fused op is named after, the first that is inside; pointwise where none is.
STRONGEST = ("reduce", "concat", "gather", "transpose", "split", "slice")
#: Longest name (GE's max_op_name_len).
MAX_NAME = 140


def kind_of(view: GraphView, nodes: Sequence[int]) -> str:
    """The strongest family among the nodes, for the fused op's name."""
    rows = [(row_of(view.ops[node]), view.attrs[node]) for node in nodes]
    families = {row.family(attrs) for row, attrs in rows if row is not None}
    return next((family for family in STRONGEST if family in families), "pointwise")


def op_types(view: GraphView, nodes: Sequence[int], roots: Sequence[Expr]) -> List[str]:
    """Op types of the region's nodes (ids, ascending) with the Casts of the bodies under `roots`."""
    before, after = _casts_at(reachable(roots))
    types: List[str] = []
    for node in nodes:
        types += ["Cast"] * before.get(node, 0)
        if view.ops[node] == COMPOSITION:
            types += composed_ops(view.attrs[node])
        elif view.ops[node] != "Const":
            types.append(view.ops[node])
        types += ["Cast"] * after.get(node, 0)
    return types


def _casts_at(exprs: Sequence[Expr]) -> Tuple[Dict[int, int], Dict[int, int]]:
    """How many Casts of a precision mode stand before and after each node. exprs: in topological order."""
    before: Dict[int, int] = {}
    after: Dict[int, int] = {}
    if not any(isinstance(e, Cast) and e.role in (NARROW, WIDEN) for e in exprs):
        return before, after
    first: Dict[int, int] = {}  # expression -> the least node that computes with it
    for expr in reversed(exprs):
        if isinstance(expr, Cast) and expr.role == NARROW:
            user = first.get(expr.index, expr.origin)
            before[user] = before.get(user, 0) + 1
        elif isinstance(expr, Cast) and expr.role == WIDEN:
            after[expr.origin] = after.get(expr.origin, 0) + 1
        computes = isinstance(expr, Call) or (isinstance(expr, Cast) and expr.role == USER)
        mine = expr.origin if computes else first.get(expr.index, expr.origin)
        for arg in expr.args:
            first[arg.index] = min(first.get(arg.index, mine), mine)
    return before, after


def fused_name(kind: str, number: int, types: Sequence[str]) -> str:
    """The name, cut to MAX_NAME characters; what is cut off is told by a hash, so that names stay unique per
    text."""
    name = "_".join(["autofuse", kind, str(number)] + list(types))
    if len(name) <= MAX_NAME:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return name[: MAX_NAME - len(digest) - 1] + "_" + digest
