"""How the Ascend C call texts of op rows are put together.

A call text is a statement template; `AscOp` in schema.py lists the placeholders. Only codegen fills them.
What holds of every text: operands are 32 B aligned UB tensors, `{n}` counts elements, no instruction of the
text waits for a queue, and dependent vector instructions inside one text have a barrier between them (kernels
are built with the compiler's own synchronisation off).
"""
from typing import Callable, Dict, Iterable, Mapping

from tf_autofuse.ir.dtypes import (BFLOAT16, BOOL, DType, FLOAT16, FLOAT32, INT16, INT32, INT64, INT8, UINT16,
                                   UINT32, UINT64, UINT8)
from tf_autofuse.symbolic.size import Size, align_up, ceil_div, minimum

BARRIER = "AscendC::PipeBarrier<PIPE_V>();"

Forms = Mapping[str, str]
TmpBytes = Callable[[int, Size], Size]

#: What the unit computes on directly, and what its data moves take.
NATIVE_FLOATS = (FLOAT32, FLOAT16)
NATIVE = (FLOAT32, FLOAT16, INT32, INT16)
INTEGER_WORDS = (INT8, UINT8, INT16, UINT16, INT32, UINT32, INT64, UINT64)
MOVABLE = (FLOAT32, FLOAT16, BFLOAT16, INT32, INT16, INT8, UINT16, UINT8, INT64, BOOL)


def chain(*instructions: str) -> str:
    """Instructions of which each depends on the one before."""
    return (" " + BARRIER + " ").join(i + ";" for i in instructions)


def unary(api: str) -> Forms:
    """A basic API instruction (dst, src, count)."""
    return {"tensor": "AscendC::%s({dst}, {0}, {n});" % api}


def binary(api: str, scalar_api: str = "") -> Forms:
    """(dst, src0, src1, count); scalar_api: the commutative tensor-scalar instruction, '' where there is
    none.
    """
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


def helper(name: str, arity: int) -> Forms:
    """A device helper autofuse::name(dst, inputs, tmp, count)."""
    inputs = ", ".join("{%d}" % i for i in range(arity))
    return {"tensor": "autofuse::%s({dst}, %s, {tmp}, {n});" % (name, inputs)}


_BUDGET = 8192
_OPS_BUDGET = 32768


def scratch(eighths: int, extra: int = 0) -> TmpBytes:
    """Scratch of the helpers of common.h: at most eighths/8 bytes an element of whole 256s, at most 8 KiB."""
    return lambda item_bytes, count: minimum(ceil_div(count, 256) * (32 * eighths),
                                             max(_BUDGET, 32 * eighths)) + extra


def ops_scratch(tensors: int) -> TmpBytes:
    """Scratch of the ops_*.h helpers with that many float tensors (OpsTmpBytes)."""
    eighths = 32 * tensors + 2
    most = max(_OPS_BUDGET * 8 // eighths // 256, 1)
    return lambda item_bytes, count: minimum(ceil_div(count, 256), most) * (32 * eighths)


def whole_words(item_bytes: int, count: Size) -> Size:
    """Scratch of BitwiseXor: the operand's bytes, at most 8 KiB."""
    return minimum(align_up(count * item_bytes, 32), _BUDGET)
