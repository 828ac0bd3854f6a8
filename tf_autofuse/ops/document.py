"""docs/ops.md, generated from the op table: what is fused, at which dtypes, with which result, and why
not.
"""
from typing import Dict, List

from tf_autofuse.ir.dtypes import ALL_DTYPES, DType
from tf_autofuse.ops.schema import AscOp, TfOp
from tf_autofuse.ops.table import ASC_OPS, TF_OPS, support
from tf_autofuse.ops.tf_left import LEFT

_SHORT = {"float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "int8": "i8",
          "int16": "i16",
          "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
          "bool": "bool"}
_COLUMNS = sorted(
    ALL_DTYPES, key=lambda d: ("fiub".index(d.kind), d.name.startswith("b"), d.name != "float32", d.bytes)
)

_HEAD = """# The ops

Generated from the op table by `python -m tf_autofuse docs ops`; change the rows in `tf_autofuse/ops/`, not
this file.

## TensorFlow ops on the ascend target

A blank cell: TensorFlow 1.15 has no CPU kernel for the op and dtype (a test compares the table with its
registry). **yes**: fused. **const**: fused where the last input is a scalar constant. A number: left to
TensorFlow, for the reason of that number below the table. float16 and bfloat16 are computed in float32 and
rounded once at the region's outputs.

Result: *bits* means bit-identical to TensorFlow's kernel (any NaN counts as any NaN), *bits, zeros free* the
same up to the sign of a zero, where TensorFlow's own answer depends on an element's position; *ulp* means
within the bound that docs/numerics.md measures.
"""

_HOST = """## TensorFlow ops on the host target

Fused at every dtype that has a cell in the table above, and Cast for every pair, except for:
"""

_LEFT = """## Left to TensorFlow on both targets

Ops of the same families without a row in the table:
"""

_CASTS = """## Cast on the ascend target

Source in the row, target in the column, signs as above.
"""

_ASCIR = """## AscIR compute types

What kernels are made of: the dtypes that have an Ascend C form, whether the result may take an input's place
in local memory, the helper header under `npu_kernels/include/autofuse/` where one instruction does not do it,
and the forms in which a constant is an instruction's scalar (the numbers are input positions).
"""


class _Reasons:
    """Numbers the reasons in the order of their first use."""

    def __init__(self):
        self._numbers: Dict[str, int] = {}

    def number(self, reason: str) -> str:
        return str(self._numbers.setdefault(reason, len(self._numbers) + 1))

    def lines(self) -> List[str]:
        return ["%d. %s" % (number, reason) for reason, number in self._numbers.items()]


def _general(reason: str, name: str) -> str:
    """A refusal without the AscIR type and dtype in it, so that ops share one number."""
    head, colon, why = reason.partition(": ")
    if reason.startswith("The ascend target has no ") and colon:
        return why[0].upper() + why[1:]
    if reason.startswith("The ascend target has no "):
        return "No exact form of the op for this dtype on the vector unit."
    return reason


def _cell(name: str, op: TfOp, dtype: DType, reasons: _Reasons) -> str:
    if dtype not in op.dtypes:
        return ""
    found = support(name, dtype, "ascend")
    if found.ok:
        return "yes"
    return "const" if found.with_constant else reasons.number(_general(found.reason, name))


def _result(op: TfOp) -> str:
    return "ulp" if op.exact == "ulp" else "bits, zeros free" if op.lane_varies else "bits"


def _table(head: List[str], rows: List[List[str]]) -> List[str]:
    return [
        "| %s |" % " | ".join(cell.replace("|", "\\|") for cell in row)
        for row in [head, ["---"] * len(head)] + rows
    ]


def _ops() -> List[str]:
    reasons = _Reasons()
    rows = []
    for name in sorted(TF_OPS):
        op = TF_OPS[name]
        if name != "Cast":
            rows.append([name] + [_cell(name, op, d, reasons) for d in _COLUMNS] + [_result(op), op.meaning])
    lines = _table(["op"] + [_SHORT[d.name] for d in _COLUMNS] + ["result", "what it does"], rows)
    return lines + ["", "Reasons:", ""] + reasons.lines()


def _host() -> List[str]:
    """What the host target leaves to TensorFlow, wholly or but for constants, and why."""
    rows = []
    for name in sorted(TF_OPS):
        refused: Dict[str, List[str]] = {}
        for dtype in (d for d in _COLUMNS if d in TF_OPS[name].dtypes and name != "Cast"):
            found = support(name, dtype, "host")
            if not found.ok:
                why = found.reason + (" Fused with a scalar constant." if found.with_constant else "")
                refused.setdefault(why, []).append(_SHORT[dtype.name])
        rows += [[name, ", ".join(dtypes), why] for why, dtypes in refused.items()]
    return _table(["op", "dtypes", "why"], rows)


def _left() -> List[str]:
    return _table(["ops", "why"], [[" ".join(sorted(row.names)), row.why] for row in LEFT])


def _casts() -> List[str]:
    rows = [
        [_SHORT[s.name]]
        + ["" if s is t else "yes" if support("Cast", s, "ascend", t).ok else "no" for t in _COLUMNS]
        for s in _COLUMNS
    ]
    lines = _table(["from"] + [_SHORT[d.name] for d in _COLUMNS], rows)
    return lines + [
        "",
        TF_OPS["Cast"].meaning + " The pairs marked *no* have a 64-bit float or an unsigned type of more "
        "than 8 bits, which the vector unit does not convert.",
    ]


def _forms(row: AscOp) -> str:
    names = sorted(
        {form[len("scalar"):] for forms in row.ascend.values() for form in forms if form.startswith("scalar")}
    )
    return ", ".join(names)


def _ascir() -> List[str]:
    rows = []
    for name in sorted(ASC_OPS):
        row = ASC_OPS[name]
        keys = row.ascend
        dtypes = "see above" if name == "Cast" else ", ".join(_SHORT[d.name] for d in _COLUMNS if d in keys)
        rows.append(
            [
                name,
                dtypes,
                "yes" if row.in_place else "no",
                "`%s`" % row.header if row.header else "",
                _forms(row),
                row.note,
            ]
        )
    return _table(["type", "dtypes", "in place", "helper", "scalar inputs", "note"], rows)


def render() -> str:
    """The text of docs/ops.md; the same table gives the same bytes."""
    parts = []
    for head, table in ((_HEAD, _ops), (_HOST, _host), (_LEFT, _left), (_CASTS, _casts), (_ASCIR, _ascir)):
        parts += [head, "\n".join(table()), ""]
    return "\n".join(parts)
