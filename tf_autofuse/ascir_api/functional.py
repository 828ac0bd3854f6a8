"""autofuse.ascir_api: one function per operator that makes, links, places and infers a node in one call.

Holds: instance names are `<operator in lower case>_<n>`, n counted per graph name and operator in a table
of this module, which also keeps the operators alive. Every function returns the output view (a tuple of
views where the operator has two outputs) and has run infer_dtype(), so the platform must be set."""

import re
from typing import Any, Dict, List, Tuple

from tf_autofuse.ascir_api.operators import CLASSES
from tf_autofuse.ascir_api.operators_table import ROWS

_UNARY = """
Workspace Broadcast Abs Exp Exp2 Floor BitwiseNot Ceil Ceil2Int FloorToInt Lgamma Cos Acos Cosh Sqrt
Rsqrt RemovePad Pad Round Neg Relu Reciprocal Erf Erfcx ModifiedBesselI0 ModifiedBesselI1
ModifiedBesselK0 ModifiedBesselK1 BesselJ0 BesselJ1 BesselY0 BesselY1 ScaledModifiedBesselK0
ScaledModifiedBesselK1 Ndtr Ndtri SphericalBesselJ0 SignBit AiryAi Erfinv Sign Tanh Sin Asin Asinh Atan
Atanh Digamma Erfc Acosh Isnan IsInf Max ArgMax Softmax Any All Sum Min Mean Prod Sigmoid Ln Expm Log2
Log10 Log1p Nop Transpose IsFinite LogicalNot Concat Frexp
""".split()
_BINARY = """
BitwiseOr BitwiseXor BitwiseAnd Atan2 CopySign Remainder Igamma Igammac Zeta FloorDiv Ge Ne Eq Gt Le Lt
RShift LShift Add Sub Div Mul TrueDiv Minimum Maximum LogicalOr LogicalAnd LogicalXor Fmod Hypot Mod Pow
""".split()
_TERNARY = "Fma Select Where ClipByValue MaskedFill".split()
_POLYNOMIALS = ["ShiftedChebyshevPolynomial" + letter for letter in "TUVW"]
_DEGREES = ["LaguerrePolynomialL", "LegendrePolynomialP"]

_kept: Dict[Tuple[str, str], List[Any]] = {}


def _instance_name(type_: str) -> str:
    if type_ in _POLYNOMIALS + _DEGREES:
        return re.sub(r"(?<!^)(?=[A-Z])", "_", type_).lower()
    return type_.lower()


def _made(graph, type_: str, start: bool = False):
    """A new operator of this graph, and its number among those of its type."""
    kept = _kept.setdefault((graph.name, type_), [])
    name = "%s_%d" % (_instance_name(type_), len(kept))
    op = CLASSES[type_](name, graph) if start else CLASSES[type_](name)
    kept.append(op)
    return op, len(kept) - 1


def _contiguous(sizes: List) -> List:
    strides: List = []
    step: Any = 1
    for size in reversed(sizes):
        strides.insert(0, step)
        step = size * step
    return strides


def _place(op, views, axis, size, stride) -> None:
    """Loop axes and views. Raises ValueError where the lengths or the combination are wrong."""
    op.attr.sched.axis = axis
    if size is None and stride is not None:
        raise ValueError("when stride is given，size must be also given")
    if size is None:
        size = [a.size for a in axis]
    if len(size) != len(axis):
        raise ValueError("size len should be same with axis len")
    if stride is None:
        stride = _contiguous(size)
    if len(stride) != len(axis):
        raise ValueError("stride should be same with axis len")
    for view in views:
        view.axis, view.size, view.strides = axis, list(size), list(stride)


def _finished(op, axis, size, stride):
    views = [getattr(op, port.name) for port in ROWS[op.type].outputs]
    _place(op, views, axis, size, stride)
    op.infer_dtype()
    return views[0] if len(views) == 1 else tuple(views)


def _ordinary(type_: str, owner_graph, inputs, axis, size, stride, attributes=None):
    op, _ = _made(owner_graph, type_)
    for port, value in zip(ROWS[type_].inputs, inputs):
        setattr(op, port.name, value)
    for name, value in (attributes or {}).items():
        setattr(op.attr.ir_attr, name, value)
    return _finished(op, axis, size, stride)


def _unary(type_):
    def helper(owner_graph, x, *, axis, size=None, stride=None):
        return _ordinary(type_, owner_graph, (x,), axis, size, stride)

    return helper


def _binary(type_):
    def helper(owner_graph, x1, x2, *, axis, size=None, stride=None):
        return _ordinary(type_, owner_graph, (x1, x2), axis, size, stride)

    return helper


def _ternary(type_):
    def helper(owner_graph, x1, x2, x3, *, axis, size=None, stride=None):
        return _ordinary(type_, owner_graph, (x1, x2, x3), axis, size, stride)

    return helper


def _polynomial(type_):
    def helper(owner_graph, x, n, *, axis, size=None, stride=None):
        return _ordinary(type_, owner_graph, (x,), axis, size, stride, {"n": n})

    return helper


def _masked_fill(owner_graph, x, mask, value, *, axis, size=None, stride=None):
    return _ordinary("MaskedFill", owner_graph, (x, mask, value), axis, size, stride)


def Data(owner_graph, *, dtype):
    op, number = _made(owner_graph, "Data", True)
    op.y.dtype = dtype
    op.attr.ir_attr.index = number
    op.infer_dtype()
    return op.y


def ScalarData(owner_graph, *, dtype, index=None):
    """A scalar that is an argument of the kernel; index: its number among the inputs, default: counted."""
    op, number = _made(owner_graph, "ScalarData", True)
    op.y.dtype = dtype
    op.attr.ir_attr.index = number if index is None else index
    op.infer_dtype()
    return op.y


def Scalar(owner_graph, *, dtype, value):
    op, _ = _made(owner_graph, "Scalar", True)
    op.y.dtype = dtype
    op.attr.ir_attr.value = value
    op.infer_dtype()
    return op.y


def IndexExpr(owner_graph, *, dtype, expr=None):
    op, _ = _made(owner_graph, "IndexExpr", True)
    op.y.dtype = dtype
    op.attr.ir_attr.expr = expr
    op.infer_dtype()
    return op.y


def Output(owner_graph, x, *, dtype=None):
    """x: a view, or a list of views of Stores that write parts of the output."""
    op, number = _made(owner_graph, "Output")
    op.x = x
    op.attr.ir_attr.index = number
    if dtype is not None:
        op.y.dtype = dtype
    op.infer_dtype()
    return op.y


def _moving(type_):
    def helper(owner_graph, x, *, offset=None, axis, size=None, stride=None):
        attributes = {} if offset is None else {"offset": offset}
        return _ordinary(type_, owner_graph, (x,), axis, size, stride, attributes)

    return helper


def Cast(owner_graph, x, *, dtype, axis, size=None, stride=None):
    op, _ = _made(owner_graph, "Cast")
    op.x = x
    op.y.dtype = dtype
    return _finished(op, axis, size, stride)


def LeakyRelu(owner_graph, x, *, negative_slope, axis, size=None, stride=None):
    return _ordinary("LeakyRelu", owner_graph, (x,), axis, size, stride, {"negative_slope": negative_slope})


def Gather(owner_graph, x1, x2, *, gather_axis=0, axis, size=None, stride=None, negative_index_support=False):
    """gather_axis: the dim of x1 that x2 indexes (an addition: the API's own helper never sets it).
    negative_index_support is taken as False: no kernel has it."""
    if negative_index_support:
        raise AttributeError("Gather has no attribute negative_index_support")
    return _ordinary("Gather", owner_graph, (x1, x2), axis, size, stride, {"axis": gather_axis})


def IndirectLoad(owner_graph, x1, x2, *, axis, sched_axis, size=None, stride=None):
    """axis: the dim of x1 that x2 indexes; sched_axis: the loop axes."""
    return _ordinary("IndirectLoad", owner_graph, (x1, x2), sched_axis, size, stride, {"axis": axis})


def _fill() -> None:
    made = {"Load": _moving("Load"), "Store": _moving("Store"), "MaskedFill": _masked_fill}
    for names, maker in (
        (_UNARY, _unary),
        (_BINARY + _DEGREES, _binary),
        (_TERNARY, _ternary),
        (_POLYNOMIALS, _polynomial),
    ):
        for name in names:
            made.setdefault(name, maker(name))
    for name, helper in made.items():
        helper.__name__ = helper.__qualname__ = name
        helper.__doc__ = "Appends an operator %s; returns its output." % name
        globals()[name] = helper


_fill()
NAMES = tuple(_UNARY + _BINARY + _TERNARY + _POLYNOMIALS + _DEGREES) + (
    "Data",
    "Scalar",
    "ScalarData",
    "IndexExpr",
    "Output",
    "Load",
    "Store",
    "Cast",
    "LeakyRelu",
    "Gather",
    "IndirectLoad",
)
