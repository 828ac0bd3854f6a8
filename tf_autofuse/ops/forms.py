"""How the Ascend C call texts of op rows are put together.

A call text is a statement template; `AscOp` in schema.py lists the placeholders. Only codegen fills them. What
holds of every text: operands are 32 B aligned UB tensors, `{n}` counts elements, no instruction of the text waits
for a queue, and dependent vector instructions inside one text have a barrier between them (kernels are built with
the compiler's own synchronisation off).
"""
from typing import Dict, Iterable, Mapping

from tf_autofuse.ir.dtypes import DType

BARRIER = "AscendC::PipeBarrier<PIPE_V>();"

Forms = Mapping[str, str]


def chain(*instructions: str) -> str:
    """Instructions of which each depends on the one before."""
    return (" " + BARRIER + " ").join(i + ";" for i in instructions)


def unary(api: str) -> Forms:
    """A basic API instruction (dst, src, count)."""
    return {"tensor": "AscendC::%s({dst}, {0}, {n});" % api}


def binary(api: str, scalar_api: str = "") -> Forms:
    """(dst, src0, src1, count); scalar_api: the commutative tensor-scalar instruction, '' where there is none."""
    forms = {"tensor": "AscendC::%s({dst}, {0}, {1}, {n});" % api}
    if scalar_api:
        forms["scalar1"] = "AscendC::%s({dst}, {0}, {c1}, {n});" % scalar_api
        forms["scalar0"] = "AscendC::%s({dst}, {1}, {c0}, {n});" % scalar_api
    return forms


def rounding(mode: str) -> Forms:
    """float32 rounded to integral float32 values."""
    return {"tensor": "AscendC::Cast({dst}, {0}, AscendC::RoundMode::%s, {n});" % mode}


def for_dtypes(dtypes: Iterable[DType], forms: Forms) -> Dict[DType, Forms]:
    return {d: forms for d in dtypes}
