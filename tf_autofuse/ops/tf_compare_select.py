"""TF's comparisons, logic and selections."""
from tf_autofuse.ir.dtypes import (BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT16, INT32, INT64, INT8, UINT16,
                                   UINT8)
from tf_autofuse.ops.schema import Refusal, TfOp

_ORDERED = (FLOAT32, FLOAT64, FLOAT16, BFLOAT16, INT8, INT16, INT32, INT64, UINT8)
_ALL = _ORDERED + (UINT16, BOOL)


def _compare(asc_type):
    def lower(h, node, a, b):
        return h.call(asc_type, a, b)
    return lower


def _equality(asc_type):
    def lower(h, node, a, b):
        if not node.attr("incompatible_shape_error", True):
            raise Refusal("incompatible_shape_error=false makes the result's shape depend on the dims at run time.")
        return h.call(asc_type, a, b)
    return lower


def require_same_shape(h, *values):
    """TF's check of ops that do not broadcast: all values have the first one's shape."""
    first = values[0]
    for v in values[1:]:
        if h.rank_of(v) != h.rank_of(first):
            raise Refusal("The inputs have different ranks (%d and %d) and the op does not broadcast."
                          % (h.rank_of(first), h.rank_of(v)))
        for i in range(h.rank_of(first)):
            h.require_equal_dim(first, i, v, i)


def _select(h, node, condition, a, b):
    require_same_shape(h, a, b)
    rank = h.rank_of(a)
    if h.rank_of(condition) == 1 and rank > 1:
        h.require_equal_dim(condition, 0, a, 0)
        condition = h.append_dims(condition, rank - 1)
    elif h.rank_of(condition) != 0:
        require_same_shape(h, a, condition)
    return h.call("Where", condition, a, b)


def _select_v2(h, node, condition, a, b):
    return h.call("Where", condition, a, b)


ROWS = (
    TfOp(("Equal",), "elementwise", _ORDERED + (BOOL,), _equality("Eq"), "bits",
         "False where an operand is NaN; 0.0 equals -0.0."),
    TfOp(("NotEqual",), "elementwise", _ORDERED + (BOOL,), _equality("Ne"), "bits",
         "True where an operand is NaN; 0.0 equals -0.0."),
    TfOp(("Greater",), "elementwise", _ORDERED, _compare("Gt"), "bits", "False where an operand is NaN."),
    TfOp(("GreaterEqual",), "elementwise", _ORDERED, _compare("Ge"), "bits", "False where an operand is NaN."),
    TfOp(("Less",), "elementwise", _ORDERED, _compare("Lt"), "bits", "False where an operand is NaN."),
    TfOp(("LessEqual",), "elementwise", _ORDERED, _compare("Le"), "bits", "False where an operand is NaN."),
    TfOp(("LogicalAnd",), "elementwise", (BOOL,), _compare("LogicalAnd"), "bits", "Truth table of and."),
    TfOp(("LogicalOr",), "elementwise", (BOOL,), _compare("LogicalOr"), "bits", "Truth table of or."),
    TfOp(("LogicalNot",), "elementwise", (BOOL,), lambda h, node, x: h.call("LogicalNot", x), "bits",
         "Truth table of not."),
    TfOp(("Select",), "elementwise", _ALL, _select, "bits",
         "Copies bits, NaN payloads included; a vector condition selects rows, a scalar one the whole tensor."),
    TfOp(("SelectV2",), "elementwise", _ALL, _select_v2, "bits",
         "Copies bits, NaN payloads included; all three inputs broadcast."),
)
