"""AscIR comparison, classification, logic and selection.

A bool is one byte, 0 or 1, in UB and in GM. Compare ops are IEEE: every comparison with NaN is false but Ne.
"""
import numpy as np

from tf_autofuse.ir.dtypes import ALL_DTYPES, BOOL, FLOAT16, FLOAT32, INT16, INT32, INT64, INT8, UINT8
from tf_autofuse.ops.forms import MOVABLE, NATIVE_FLOATS, for_dtypes, helper, scratch
from tf_autofuse.ops import host_forms as host
from tf_autofuse.ops.schema import AscOp

_COMPARED = (FLOAT32, FLOAT16, INT32, INT16, INT8, UINT8, INT64)
_SYMBOLS = {"EQ": "==", "NE": "!=", "GT": ">", "GE": ">=", "LT": "<", "LE": "<="}
_MIRRORED = {"EQ": "EQ", "NE": "NE", "GT": "LT", "GE": "LE", "LT": "GT", "LE": "GE"}


def _scratch_of_compare(item_bytes, count):
    """The largest over the dtypes of that size, with the constant's chunk (CompareScalarEighths)."""
    return scratch({1: 73, 2: 113, 4: 97, 8: 275}[item_bytes])(item_bytes, count)


def _compare(name, mode, function):
    scalar = "autofuse::CompareScalarToBool<AscendC::CMPMODE::%s>({dst}, %s, ({T})%s, {tmp}, {n});"
    forms = {"tensor": "autofuse::CompareToBool<AscendC::CMPMODE::%s>({dst}, {0}, {1}, {tmp}, {n});" % mode,
             "scalar1": scalar % (mode, "{0}", "{c1}"), "scalar0": scalar % (_MIRRORED[mode], "{1}", "{c0}")}
    dtypes = _COMPARED + ((BOOL,) if mode in ("EQ", "NE") else ())
    return AscOp(name, 2, "bool", for_dtypes(dtypes, forms), lambda i, a, d: function(*i),
                 tmp_bytes=_scratch_of_compare, header="compare.h", commutative=mode in ("EQ", "NE"),
                 cost=(("Compare" + mode, 1), ("Select", 0.5), ("Cast", 0.5)),
                 host=host.with_halves(host.each(host.NUMBERS + (BOOL,),
                                                 lambda d: "({0} %s {1})" % _SYMBOLS[mode]), 2, to_bool=True))


def _classify(name, function, expression):
    return AscOp(name, 1, "bool", for_dtypes(NATIVE_FLOATS, helper(name, 1)), lambda i, a, d: function(i[0]),
                 tmp_bytes=scratch(64, 32), header="classify.h",
                 cost=(("And", 2), ("Adds", 1), ("Maxs", 1), ("Mins", 1), ("Muls", 1), ("Cast", 1.5)),
                 host=host.with_halves(host.each(host.SINGLES, lambda d: expression.format(
                     "{0}", size=host.magnitude(d), inf=host.builtin(d, "inf") + "()")), 1, to_bool=True))


def _logical(name, arity, function, expression):
    return AscOp(name, arity, "bool", {BOOL: helper(name, arity)}, lambda i, a, d: function(*i),
                 tmp_bytes=lambda item, count: 32, header="bitwise.h", in_place=True,
                 cost=(("And", 0.5),), commutative=arity == 2, host={BOOL: expression})


def _where(inputs, _attrs, _dtype):
    condition, a, b = inputs
    return np.where(condition, a, b)


def _where_text(a, b):
    return "autofuse::WhereSelect({dst}, {0}, %s, %s, {tmp}, {n});" % (a, b)


def _scratch_of_where(item_bytes, count):
    """WhereTmpBytes with both values constants."""
    return scratch({1: 65, 2: 17, 4: 17, 8: 50}[item_bytes] + (16 * item_bytes if item_bytes < 8 else 0))(
        item_bytes, count)


_WHERE = {"tensor": _where_text("{1}", "{2}")}
_WHERE_SCALARS = dict(_WHERE, scalar1=_where_text("({T}){c1}", "{2}"),
                      scalar2=_where_text("{1}", "({T}){c2}"),
                      scalar12=_where_text("({T}){c1}", "({T}){c2}"))

ROWS = (
    _compare("Eq", "EQ", np.equal),
    _compare("Ne", "NE", np.not_equal),
    _compare("Gt", "GT", np.greater),
    _compare("Ge", "GE", np.greater_equal),
    _compare("Lt", "LT", np.less),
    _compare("Le", "LE", np.less_equal),
    _classify("IsNan", np.isnan, "({0} != {0})"),
    _classify("IsInf", np.isinf, "({size} == {inf})"),
    _classify("IsFinite", np.isfinite, "({size} < {inf})"),
    _logical("LogicalAnd", 2, np.logical_and, "({0} & {1})"),
    _logical("LogicalOr", 2, np.logical_or, "({0} | {1})"),
    _logical("LogicalNot", 1, np.logical_not, "({0} ^ 1)"),
    AscOp("Where", 3, "same", {**for_dtypes(MOVABLE, _WHERE_SCALARS), INT64: _WHERE}, _where,
          tmp_bytes=_scratch_of_where, header="where.h",
          cost=(("Cast", 0.5), ("CompareScalarNE", 0.5), ("Select", 1)),
          note="moves bits, NaN payloads included",
          host=host.each(ALL_DTYPES, lambda d: "({0} ? {1} : {2})")),
)
