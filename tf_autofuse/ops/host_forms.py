"""How the C expressions of op rows (AscOp.host) are put together.

An expression is C99 for one element. What holds of every one: {0} {1} {2} are names, or literals in
parentheses, of the inputs' C types (DType.host; a bool is a uint8_t of 0 or 1, a 16-bit float its bits), may
stand in it several times, and the value is to be converted to the result's C type. There are no branches and
no signed overflow, so gcc's vectorizer takes a loop around it and no -fwrapv is needed. The values are right
with or without -mfma, but only with -ffp-contract=off; floating-point exceptions and errno mean nothing.
`headers` names what an expression includes.
"""
import re
from typing import Callable, Dict, Iterable, Tuple

from tf_autofuse.ir.dtypes import (BFLOAT16, BOOL, DType, FLOAT16, FLOAT32, FLOAT64, INT16, INT32, INT64,
                                   INT8, UINT16, UINT32, UINT64, UINT8)

HALVES = (FLOAT16, BFLOAT16)
SINGLES = (FLOAT32, FLOAT64)
SIGNED = (INT8, INT16, INT32, INT64)
UNSIGNED = (UINT8, UINT16, UINT32, UINT64)
INTEGERS = SIGNED + UNSIGNED
NUMBERS = SINGLES + INTEGERS

_SHORT = {FLOAT32: "f32", FLOAT64: "f64", FLOAT16: "f16", BFLOAT16: "bf16", INT8: "i8", INT16: "i16",
          INT32: "i32", INT64: "i64", UINT8: "u8", UINT16: "u16", UINT32: "u32", UINT64: "u64", BOOL: "u8"}
_CALL = re.compile(r"\b(af_[a-z0-9_]+)\(")

#: Function families by the beginning of their names -> header under npu_kernels/host/, which can be included
#: alone.
HEADERS = {
    "af_block_": "blocks.h",
    "af_cast_": "cast.h",
    "af_div_": "integer_division.h",
    "af_lanes_": "lanes.h",
    "af_shift_": "shift.h",
    "af_stream_": "stream.h",
    "af_fmod_": "remainder.h",
}
HEADERS.update(("af_%s_" % name, header) for header, names in (
    ("exp.h", "exp expm1 sigmoid tanh sinh cosh"), ("log.h", "log log1p asinh acosh atanh"),
    ("trig.h", "sin cos tan asin acos atan atan2"), ("erf.h", "erf erfc"), ("pow.h", "pow"))
    for name in names.split())

Text = Callable[[DType], str]


def short_name(dtype: DType) -> str:
    """The dtype in names of C functions: 'f32', 'i8', 'bf16'."""
    return _SHORT[dtype]


def headers(expression: str) -> Tuple[str, ...]:
    """The headers under npu_kernels/host/ that an expression needs, sorted. Raises KeyError for an unknown
    function.
    """
    return tuple(sorted({_header(name) for name in _CALL.findall(expression)}))


def _header(function: str) -> str:
    for beginning, header in HEADERS.items():
        if function.startswith(beginning):
            return header
    raise KeyError(function)


def word(dtype: DType) -> str:
    """The unsigned C type, of 32 or 64 bits, in which the dtype's arithmetic wraps around."""
    return "uint64_t" if dtype.bytes == 8 else "uint32_t"


def each(dtypes: Iterable[DType], text: Text) -> Dict[DType, str]:
    return {d: text(d) for d in dtypes}


def operator(symbol: str) -> Text:
    """{0} symbol {1}: floats as they are, integers wrapping around."""
    def text(dtype):
        if dtype.is_floating:
            return "({0} %s {1})" % symbol
        return "(%s)((%s){0} %s (%s){1})" % (dtype.host, word(dtype), symbol, word(dtype))
    return text


def negated(dtype: DType, operand: str = "{0}") -> str:
    """-operand, the smallest integer itself."""
    if dtype.is_floating:
        return "(-%s)" % operand
    return "(%s)(0 - (%s)%s)" % (dtype.host, word(dtype), operand)


def magnitude(dtype: DType) -> str:
    if dtype.is_floating:
        return "%s({0})" % builtin(dtype, "fabs")
    return "{0}" if dtype.kind == "u" else "({0} < 0 ? %s : {0})" % negated(dtype)


def builtin(dtype: DType, name: str) -> str:
    """gcc's builtin of a C library function: an instruction where there is one."""
    return "__builtin_%s%s" % (name, "f" if dtype is FLOAT32 else "")


def rounded(name: str) -> Dict[DType, str]:
    """Forms of a correctly rounded function that is one instruction: floor, ceil, rint, sqrt."""
    return arithmetic(SINGLES, lambda d: "%s({0})" % builtin(d, name), 1)


def function(name: str, arity: int) -> Dict[DType, str]:
    """Forms that call af_<name>_f32 or af_<name>_f64."""
    inputs = ", ".join("{%d}" % i for i in range(arity))
    return arithmetic(SINGLES, lambda d: "af_%s_%s(%s)" % (name, short_name(d), inputs), arity)


def cast(source: DType, target: DType) -> str:
    """TF's Cast of {0} on x86: see ops/ascir_cast.py for the values."""
    if source in HALVES:
        widened = "af_cast_f32_%s({0})" % short_name(source)
        return cast(FLOAT32, target).replace("{0}", widened) if target is not FLOAT32 else widened
    if target in HALVES:
        single = "{0}" if source is FLOAT32 else "(%s)" % cast(source, FLOAT32)
        return "af_cast_%s_f32(%s)" % (short_name(target), single)
    if target is BOOL:
        return "({0} != 0)"
    if source is BOOL:  # by way of int, for the vectorizer makes floats of masks at great length
        return "(%s)(int){0}" % target.host
    if source.is_floating and target.is_integer:
        return _float_to_integer(source, target)
    if target.is_floating and source in (INT32, INT64, UINT64):
        return "af_cast_%s_%s({0})" % (short_name(target), short_name(source))
    return "(%s){0}" % target.host


def _float_to_integer(source: DType, target: DType) -> str:
    inner = {UINT64: UINT64, INT64: INT64, UINT32: INT64}.get(target, INT32)
    operand = "{0}" if source is FLOAT64 or inner is INT32 else "(double){0}"
    kept = "f32" if operand == "{0}" and source is FLOAT32 else "f64"
    function = "af_cast_%s_%s(%s)" % (short_name(inner), kept, operand)
    return function if inner is target else "(%s)%s" % (target.host, function)


def relu(dtype: DType) -> str:
    return "{0}" if dtype.kind == "u" else "({0} < 0 ? 0 : {0})"


def sign(dtype: DType) -> str:
    """-1, 0 or 1 of the dtype; 0 for NaN."""
    below = "0" if dtype.kind == "u" else "({0} < 0 ? -1 : 0)"
    return "(%s)({0} > 0 ? 1 : %s)" % (dtype.host, below)


def arithmetic(dtypes: Iterable[DType], text: Text, arity: int) -> Dict[DType, str]:
    """Forms for these dtypes, and for the 16-bit floats by way of float32."""
    return with_halves(each(dtypes, text), arity)


def with_halves(forms: Dict[DType, str], arity: int, to_bool: bool = False) -> Dict[DType, str]:
    """Adds float16 and bfloat16 by way of float32, rounded once."""
    added = {}
    for half in HALVES:
        text = forms[FLOAT32]
        for i in range(arity):
            text = text.replace("{%d}" % i, "af_cast_f32_%s({%d})" % (short_name(half), i))
        added[half] = text if to_bool else "af_cast_%s_f32(%s)" % (short_name(half), text)
    return {**forms, **added}
