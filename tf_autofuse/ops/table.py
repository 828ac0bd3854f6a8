"""The op table: every AscIR type and every TF op by name, and what a target can take.

Reads nothing but the rows. `support` runs a lowering with a handler that only records which AscIR calls it makes,
and asks each call's row for a form on the target.
"""
from typing import Dict, Mapping, NamedTuple, Tuple

from tf_autofuse.ir.dtypes import BFLOAT16, BOOL, BY_NAME, DType, FLOAT16, FLOAT32
from tf_autofuse.ops import (ascir_arithmetic, ascir_cast, ascir_compare, ascir_math, tf_activation, tf_arithmetic,
                             tf_cast_fill_view, tf_compare_select, tf_math)
from tf_autofuse.ops.schema import AscOp, TfOp


def _index(rows, keys) -> Dict[str, object]:
    table: Dict[str, object] = {}
    for row in rows:
        for key in keys(row):
            if key in table:
                raise ValueError("two rows of the op table are named %s" % key)
            table[key] = row
    return table


ASC_OPS: Mapping[str, AscOp] = _index(
    ascir_arithmetic.ROWS + ascir_compare.ROWS + ascir_cast.ROWS + ascir_math.ROWS, lambda row: (row.type,))
TF_OPS: Mapping[str, TfOp] = _index(
    tf_arithmetic.ROWS + tf_compare_select.ROWS + tf_activation.ROWS + tf_math.ROWS + tf_cast_fill_view.ROWS,
    lambda row: row.names)
