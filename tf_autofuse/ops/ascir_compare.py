"""AscIR comparison, logic and selection.

A bool is one byte, 0 or 1, in UB and in GM. Compare ops are IEEE: every comparison with NaN is false but Ne.
"""
import numpy as np

from tf_autofuse.ir.dtypes import BOOL, FLOAT16, FLOAT32, INT16, INT32
from tf_autofuse.ops.forms import for_dtypes
from tf_autofuse.ops.schema import AscOp

_HEADER = "compare.h"


def _compare(name, mode, function):
    forms = {"tensor": "autofuse::Compare<AscendC::CMPMODE::%s>({dst}, {0}, {1}, {tmp}, {n});" % mode,
             "scalar1": "autofuse::CompareScalar<AscendC::CMPMODE::%s>({dst}, {0}, {c1}, {tmp}, {n});" % mode}
    return AscOp(name, 2, "bool", for_dtypes((FLOAT32, FLOAT16, INT32), forms), lambda i, a, d: function(*i),
                 tmp_bytes=lambda item, count: 8192, header=_HEADER,
                 cost=(("Compare" + mode, 1), ("Select", 1), ("Cast f16->u8", 1)), commutative=mode in ("EQ", "NE"))


def _where(inputs, _attrs, _dtype):
    condition, a, b = inputs
    return np.where(condition, a, b)


ROWS = (
    _compare("Eq", "EQ", np.equal),
    _compare("Ne", "NE", np.not_equal),
    _compare("Gt", "GT", np.greater),
    _compare("Ge", "GE", np.greater_equal),
    _compare("Lt", "LT", np.less),
    _compare("Le", "LE", np.less_equal),
    AscOp("LogicalAnd", 2, "bool", for_dtypes((BOOL,), {"tensor": "autofuse::LogicalAnd({dst}, {0}, {1}, {tmp}, {n});"}),
          lambda i, a, d: np.logical_and(*i), tmp_bytes=lambda item, count: 8192, header="logical.h",
          cost=(("Mul", 0.5),), commutative=True),
    AscOp("LogicalOr", 2, "bool", for_dtypes((BOOL,), {"tensor": "autofuse::LogicalOr({dst}, {0}, {1}, {tmp}, {n});"}),
          lambda i, a, d: np.logical_or(*i), tmp_bytes=lambda item, count: 8192, header="logical.h",
          cost=(("Max", 0.5),), commutative=True),
    AscOp("LogicalNot", 1, "bool", for_dtypes((BOOL,), {"tensor": "autofuse::LogicalNot({dst}, {0}, {tmp}, {n});"}),
          lambda i, a, d: np.logical_not(i[0]), tmp_bytes=lambda item, count: 8192, header="logical.h",
          cost=(("Sub", 0.5),)),
    AscOp("Where", 3, "same", for_dtypes((FLOAT32, FLOAT16, INT32, INT16, BOOL),
                                         {"tensor": "autofuse::Where({dst}, {0}, {1}, {2}, {tmp}, {n});"}),
          _where, tmp_bytes=lambda item, count: 8192, header="where.h",
          cost=(("Cast u8->f16", 1), ("CompareScalarEQ", 0.5), ("Select", 1))),
    AscOp("IsNan", 1, "bool", {}, lambda i, a, d: np.isnan(i[0])),
    AscOp("IsInf", 1, "bool", {}, lambda i, a, d: np.isinf(i[0])),
    AscOp("IsFinite", 1, "bool", {}, lambda i, a, d: np.isfinite(i[0])),
)
