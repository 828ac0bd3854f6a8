"""The op table as lowering sees a graph's ops: its rows, and the compositions that Grappler makes of them.

Grappler's arithmetic optimizer turns chains of unary ops into one `_UnaryOpsComposition` with their names.
Such a node is lowered as the chain that it was, so that Grappler's help does not stand in the way of fusion.
"""

from typing import List, Optional

from tf_autofuse.ir.dtypes import FLOAT16, FLOAT32, FLOAT64
from tf_autofuse.ops.schema import Refusal, TfOp
from tf_autofuse.ops.table import TF_OPS

COMPOSITION = "_UnaryOpsComposition"


class _Link:
    """One op of a composition, in the form in which its lowering asks about it."""

    def __init__(self, node, op: str):
        self.op = op
        self.in_dtypes = self.out_dtypes = node.out_dtypes[:1]

    def attr(self, name: str, default=None):
        return default


def composed_ops(attrs) -> List[str]:
    """The op types of a composition, first applied first."""
    return [n.decode() if isinstance(n, bytes) else str(n) for n in attrs.get("op_names") or ()]


def _lower_composition(handler, node, x):
    names = [n.decode() if isinstance(n, bytes) else str(n) for n in node.attr("op_names") or ()]
    for name in names:
        row = TF_OPS.get(name)
        if row is None or row.kind != "elementwise" or name == "Cast":
            raise Refusal(
                "It is composed of %s, of which %s is not in the op table." % (", ".join(names), name)
            )
        x = row.lower(handler, _Link(node, name), x)
    return x


_COMPOSED = TfOp(
    (COMPOSITION,),
    "elementwise",
    (FLOAT32, FLOAT64, FLOAT16),
    _lower_composition,
    "ulp",
    "What its ops do one after the other.",
    inputs=1,
)


def row_of(op: str) -> Optional[TfOp]:
    """The op's row, None where it has none."""
    return _COMPOSED if op == COMPOSITION else TF_OPS.get(op)
