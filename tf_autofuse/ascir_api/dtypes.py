"""ascir.dtypes: the numbers of the element types, and their two text forms.

Wider than ir/dtypes.py: a graph may be built with types that no kernel of this project takes.
"""

from typing import Dict

NUMBERS: Dict[str, int] = {
    "float32": 0,
    "float16": 1,
    "int8": 2,
    "int32": 3,
    "uint8": 4,
    "int16": 6,
    "uint16": 7,
    "uint32": 8,
    "int64": 9,
    "uint64": 10,
    "double": 11,
    "bool": 12,
    "string": 13,
    "dual_sub_int8": 14,
    "dual_sub_uint8": 15,
    "complex64": 16,
    "complex128": 17,
    "qint8": 18,
    "qint16": 19,
    "qint32": 20,
    "quint8": 21,
    "quint16": 22,
    "resource": 23,
    "string_ref": 24,
    "dual": 25,
    "variant": 26,
    "bfloat16": 27,
    "bf16": 27,
    "undefined": 28,
    "int4": 29,
    "uint1": 30,
    "int2": 31,
    "uint2": 32,
    "complex32": 33,
    "hifloat8": 34,
    "float8_e5m2": 35,
    "float8_e4m3fn": 36,
    "float8_e8m0": 37,
    "float6_e3m2": 38,
    "float6_e2m3": 39,
    "float4_e2m1": 40,
    "float4_e1m2": 41,
}

UNDEFINED, UINT8, BOOL = NUMBERS["undefined"], NUMBERS["uint8"], NUMBERS["bool"]

#: The short names of operators_table.py.
BY_SHORT: Dict[str, int] = {
    short: NUMBERS[name]
    for short, name in zip(
        "f32 f16 i8 i32 u8 i16 u16 u32 i64 u64 f64 bool bf16 i4 c64 c128 qi8 qi16 qi32 qu8 qu16".split(),
        "float32 float16 int8 int32 uint8 int16 uint16 uint32 int64 uint64 double bool bfloat16 int4 "
        "complex64 complex128 qint8 qint16 qint32 quint8 quint16".split(),
    )
}

_NAMES = {number: name for name, number in NUMBERS.items() if name != "bf16"}
_DUMPED = {NUMBERS[n]: n for n in ("float32", "float16")}
_DUMPED.update({NUMBERS[n]: n + "_t" for n in "int8 int32 uint8 int16 uint16 uint32 int64 uint64".split()})


def serial(number: int) -> str:
    """As error texts name a dtype: DT_FLOAT, DT_INT8, ...; DT_UNDEFINED for a number without a name."""
    name = _NAMES.get(number, "undefined")
    return "DT_FLOAT" if name == "float32" else "DT_" + name.upper()


def dumped(number: int) -> str:
    """As debug_str names a dtype: float16, int8_t, ...; the serial form for what C has no such name for."""
    return _DUMPED.get(number) or serial(number)
