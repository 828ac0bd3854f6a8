"""Lowering of ops that move no data: views (Identity, Reshape, ...) and fills (BroadcastTo, Fill, ZerosLike,
...).

A view is the same elements under other dims. It is fused where the number of elements is known to be the same
for every value of the run-time dims; the shape operand itself is never read by a kernel, since TF's shape
inference (and, for a reshape's -1, an exact quotient) has told the dims already.
"""

from typing import Tuple

from tf_autofuse.fusion import reasons
from tf_autofuse.fusion.reasons import Code, NodeVerdict
from tf_autofuse.ir.dtypes import BY_TF
from tf_autofuse.ir.loop_ir import Dims, Expr
from tf_autofuse.ir.loop_layout import element_count, is_unit, regroups
from tf_autofuse.symbolic.guards import Guard
from tf_autofuse.symbolic.size import exact_quotient, is_static, known_equal, known_nonnegative, minimum

SAME_DIMS = frozenset(("Identity", "Snapshot", "StopGradient", "PreventGradient"))
LIKE = {"ZerosLike": 0, "OnesLike": 1}


class Refused(Exception):
    """Lowering's own refusal of a node, as a value that crosses a few calls."""

    def __init__(self, code: Code, reason: str):
        super().__init__(reason)
        self.verdict = NodeVerdict(code, reason)


def lower_view(lowering, ref, arg: Expr) -> Tuple[Expr, bool]:
    """The view's expression and whether it regroups dims. Raises Refused."""
    if ref.op in SAME_DIMS:
        return arg, False
    dims = _viewed_dims(lowering, ref, arg.dims)
    return lowering.builder.view(arg, dims, ref.id), regroups(arg.dims, dims)


def _viewed_dims(lowering, ref, before: Dims) -> Dims:
    column = lowering.view.out_shapes[ref.id][0]
    if column is None:
        raise Refused(reasons.UNKNOWN_RANK, "the rank of its result is unknown")
    if ref.op == "Reshape":
        bind_operand(lowering, ref, column, 1)
    fresh = [i for i, d in enumerate(column) if d < 0 and lowering.is_fresh(-d - 1)]
    if not fresh:
        dims = lowering.symbols.dims(column)
        if not regroups(before, dims) or known_equal(element_count(before), element_count(dims)):
            return dims
    elif len(fresh) == 1:
        at = fresh[0]
        others = [d if d >= 0 else lowering.symbols.size(-d - 1) for i, d in enumerate(column) if i != at]
        divisor = element_count(tuple(others))
        rest = exact_quotient(element_count(before), divisor)
        if rest is not None:
            if not is_static(divisor):  # TF's Reshape fails where it would have to divide 0 by 0
                lowering.handler.guards.append(Guard("eq", minimum(divisor, 1), 1, ref.op))
            return tuple(others[:at]) + (rest,) + tuple(others[at:])
    else:
        units = [d for d in before if not is_unit(d)]
        if len(units) == len([d for d in column if d != 1]) and ref.op != "Reshape":
            rest = iter(units)
            return tuple(1 if d == 1 else next(rest) for d in column)
    raise Refused(
        reasons.SHAPES,
        "[%s] cannot be shown to have as many elements as the result" % ", ".join(map(str, before)),
    )


def bind_operand(lowering, ref, column, at: int) -> None:
    """Gives the result's dims that only operand `at` tells the values that it is known to have."""
    value = lowering.shape_values.operand(ref.id, at)
    if value is None or len(value.elements) != len(column):
        return
    for d, size in zip(column, value.elements):
        if d < 0 and lowering.is_fresh(-d - 1) and size is not None and not is_static(size):
            if not known_nonnegative(size):
                lowering.handler.guards.append(Guard("eq", minimum(size, 0), 0, ref.op))
                lowering.assuming.add(ref.id)
            lowering.symbols.bind(-d - 1, size)


def lower_fill(lowering, ref, args) -> Expr:
    """Raises Refused."""
    builder = lowering.builder
    if ref.op in LIKE:
        dims = lowering.dims_of(lowering.view.inputs[ref.id][0])
        if dims is None:
            raise Refused(reasons.UNKNOWN_RANK, "the rank of its input is unknown")
        dtype = BY_TF[lowering.view.out_dtypes[ref.id][0]]
        return builder.broadcast(lowering.handler.constant(LIKE[ref.op], dtype), dims, ref.id)
    column = lowering.view.out_shapes[ref.id][0]
    if column is None:
        raise Refused(reasons.UNKNOWN_RANK, "the rank of its result is unknown")
    bind_operand(lowering, ref, column, 0 if ref.op == "Fill" else 1)
    dims = lowering.symbols.dims(column)
    arg = args[0]
    for own, full in zip(reversed(arg.dims), reversed(dims)):
        if not is_unit(own) and not known_equal(own, full):
            raise Refused(reasons.SHAPES, "dim %s cannot be shown to broadcast to %s" % (own, full))
    if len(arg.dims) > len(dims):
        raise Refused(
            reasons.SHAPES, "a rank %d tensor does not broadcast to rank %d" % (len(arg.dims), len(dims))
        )
    if any(is_static(d) and d < 0 for d in dims):
        raise Refused(reasons.SHAPES, "a negative dim")
    return builder.broadcast(arg, dims, ref.id)
