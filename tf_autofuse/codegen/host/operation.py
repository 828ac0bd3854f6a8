"""One call of the op table as a C expression of one element."""
from typing import Sequence

from tf_autofuse.codegen.ascendc.body import CodegenRefusal
from tf_autofuse.codegen.host.literals import literal
from tf_autofuse.ir.dtypes import DType, FLOAT32
from tf_autofuse.ops.table import ASC_OPS
from tf_autofuse.schedule.host_graph import Value


def form(type_: str, in_dtypes: Sequence[DType], out_dtype: DType) -> str:
    """The row's C text. Raises CodegenRefusal where it has none for the dtypes."""
    row = ASC_OPS[type_]
    text = row.host.get(row.form_key(in_dtypes, out_dtype))
    if text is None:
        raise CodegenRefusal("the host target has no %s of %s" % (type_, in_dtypes[-1].name))
    return text


def expression(value: Value, operands: Sequence[str], in_dtypes: Sequence[DType]) -> str:
    """The value's element from operands, C texts of values of in_dtypes."""
    if value.type == "Cast" and in_dtypes[0] is value.dtype:
        return operands[0]
    return filled(form(value.type, in_dtypes, value.dtype), value, operands, in_dtypes[-1])


def filled(text: str, value: Value, operands: Sequence[str], dtype: DType) -> str:
    """The form with its operands and attributes, whose literals have `dtype`."""
    for i, operand in enumerate(operands):
        text = text.replace("{%d}" % i, operand)
    for name, attr in value.attrs:
        if "{attr_%s}" % name in text:
            number = isinstance(attr, (int, float)) and not isinstance(attr, bool)
            kind = FLOAT32 if dtype.is_floating and dtype.bytes == 2 else dtype
            text = text.replace("{attr_%s}" % name, literal(attr, kind) if number else "%d" % bool(attr))
    return text
