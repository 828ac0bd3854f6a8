"""What an element costs on one core of the host, in nanoseconds: for deciding what to keep, what to compute
again, and how much work is worth a thread.

Figures are for vectorized loops on a core of about 2.5 GHz with 32-byte vectors, float32, data in the L2
cache; they need to be right within a factor of two only.
"""
from typing import Mapping

from tf_autofuse.schedule.host_graph import Value

#: A value that costs no more than this is computed again rather than kept in memory.
CHEAP = 0.35

_BYTE = 0.015
_SIMPLE = 0.03
_OPS: Mapping[str, float] = dict(
    {"Div": 0.3, "Sqrt": 0.3, "Mod": 2.0, "FloorMod": 2.0, "TruncateMod": 2.0, "Pow": 4.0, "Atan2": 3.0},
    **dict.fromkeys(("Exp", "Expm1", "Ln", "Log1p", "Sigmoid", "Tanh", "Erf", "Sin", "Cos", "Asin", "Acos",
                     "Atan",
                     "Sinh", "Cosh"), 0.9),
    **dict.fromkeys(("Tan", "Erfc", "Asinh", "Acosh", "Atanh"), 1.8),
    **dict.fromkeys(("FloorDivBy", "TruncateDivBy", "FloorModBy", "TruncateModBy", "FloorDiv", "TruncateDiv"),
                    1.5))


def element_cost(value: Value) -> float:
    """Nanoseconds an element for the value alone, its inputs being there."""
    width = value.dtype.bytes / 4.0
    if value.type == "Scalar":
        return 0.0
    if value.type == "Gather":
        return 1.0
    if value.access is not None:
        return _BYTE * value.dtype.bytes + (0.05 if value.dtype.bytes == 2 else 0.0)
    return _OPS.get(value.type, _SIMPLE) * max(width, 0.5)
