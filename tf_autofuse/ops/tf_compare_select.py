"""TF's comparisons, logic, classifications and selections."""
from tf_autofuse.ir.dtypes import BOOL, UINT8
from tf_autofuse.ops.composing import (COMMON, FLOATS, REALS, SIGNED, SINGLE_DOUBLE, call, literal,
                                       require_same_shape)
from tf_autofuse.ops.schema import Refusal, TfOp

_ORDERED = FLOATS + SIGNED + (UINT8,)


def _equality(asc_type):
    def lower(h, node, a, b):
        if not node.attr("incompatible_shape_error", True):
            raise Refusal("incompatible_shape_error=false makes the result's shape depend on the dims at "
                          "run time.")
        return h.call(asc_type, a, b)
    return lower


def _approximate_equal(h, node, a, b):
    require_same_shape(h, a, b)
    distance = h.call("Abs", h.call("Sub", a, b))
    return h.call("Lt", distance, literal(h, node.attr("tolerance", 1e-5), a))


def _select(h, node, condition, a, b):
    require_same_shape(h, a, b)
    rank = h.rank_of(a)
    if h.rank_of(condition) == 1 and rank > 1:
        h.require_equal_dim(condition, 0, a, 0)
        condition = h.append_dims(condition, rank - 1)
    elif h.rank_of(condition) != 0:
        require_same_shape(h, a, condition)
    return h.call("Where", condition, a, b)


ROWS = (
    TfOp(("Equal",), "elementwise", _ORDERED + (BOOL,), _equality("Eq"), "bits",
         "False where an operand is NaN; 0.0 equals -0.0."),
    TfOp(("NotEqual",), "elementwise", _ORDERED + (BOOL,), _equality("Ne"), "bits",
         "True where an operand is NaN; 0.0 equals -0.0."),
    TfOp(("Greater",), "elementwise", _ORDERED, call("Gt"), "bits", "False where an operand is NaN."),
    TfOp(("GreaterEqual",), "elementwise", _ORDERED, call("Ge"), "bits", "False where an operand is NaN."),
    TfOp(("Less",), "elementwise", _ORDERED, call("Lt"), "bits", "False where an operand is NaN."),
    TfOp(("LessEqual",), "elementwise", _ORDERED, call("Le"), "bits", "False where an operand is NaN."),
    TfOp(("ApproximateEqual",), "elementwise", SINGLE_DOUBLE, _approximate_equal, "bits",
         "|x - y| < tolerance: false where an operand is NaN or both are the same infinity."),
    TfOp(("IsNan",), "elementwise", FLOATS, call("IsNan"), "bits", "True for NaN of either sign."),
    TfOp(("IsInf",), "elementwise", REALS, call("IsInf"), "bits", "True for both infinities."),
    TfOp(("IsFinite",), "elementwise", REALS, call("IsFinite"), "bits", "False for NaN and both infinities."),
    TfOp(("LogicalAnd",), "elementwise", (BOOL,), call("LogicalAnd"), "bits", "Truth table of and."),
    TfOp(("LogicalOr",), "elementwise", (BOOL,), call("LogicalOr"), "bits", "Truth table of or."),
    TfOp(("LogicalNot",), "elementwise", (BOOL,), call("LogicalNot"), "bits", "Truth table of not."),
    TfOp(("Select",), "elementwise", COMMON, _select, "bits",
         "Copies bits, NaN payloads included; a vector condition selects rows, a scalar one the whole "
         "tensor."),
    TfOp(("SelectV2",), "elementwise", COMMON, call("Where"), "bits",
         "Copies bits, NaN payloads included; all three inputs broadcast."),
)
