"""What an element costs on one core of the host, in nanoseconds: for deciding what to keep, what to compute
again, and how much work is worth a thread.

Figures are for vectorized loops on a core of about 3 GHz, float32, data in the last cache; they need to be
right within a factor of two only. `python -m bench kernel_speed` compares them with what kernels take.
"""
from typing import Mapping

from tf_autofuse.schedule.host_graph import Value

#: A value that costs no more than this is computed again rather than kept in memory.
CHEAP = 0.17
#: What an item costs beside its elements, and each of its reductions along the innermost loop.
ITEM, FOLD = 0.5, 1.5
#: An element of a tensor that is read across its rows.
TURNED = 0.25

_BYTE = 0.008
_SIMPLE = 0.012
_OPS: Mapping[str, float] = dict(
    {"Div": 0.15, "Sqrt": 0.2, "Exp": 0.25, "Expm1": 0.3, "Ln": 0.5, "Log1p": 0.7, "Sigmoid": 0.35,
     "Tanh": 0.35, "Erf": 0.4, "Pow": 3.0, "Atan2": 2.0},
    **dict.fromkeys(("Mod", "FloorMod", "TruncateMod"), 2.0),
    **dict.fromkeys(("Sin", "Cos", "Asin", "Acos", "Atan", "Sinh", "Cosh"), 0.8),
    **dict.fromkeys(("Tan", "Erfc", "Asinh", "Acosh", "Atanh"), 1.4),
    **dict.fromkeys(("FloorDivBy", "TruncateDivBy", "FloorModBy", "TruncateModBy", "FloorDiv", "TruncateDiv"),
                    1.0))


def element_cost(value: Value) -> float:
    """Nanoseconds an element for the value alone, its inputs being there."""
    width = value.dtype.bytes / 4.0
    if value.type == "Scalar":
        return 0.0
    if value.type == "Gather":
        return 0.6
    if value.access is not None:
        return access_cost(value)
    return _OPS.get(value.type, _SIMPLE) * max(width, 0.5)


def access_cost(value: Value) -> float:
    """Nanoseconds an element of a tensor that is read or written along its rows."""
    return _BYTE * value.dtype.bytes + (0.03 if value.dtype.bytes == 2 else 0.0)
