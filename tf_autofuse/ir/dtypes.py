"""The element types that cross stage borders, one row each.

Every other room asks this table (size, C type, numpy type, TF and AscIR numbers) instead of keeping its
own. bfloat16 has no numpy type of its own before TF registers one, so host-side arrays carry its bits as
uint16.
"""
from typing import Dict, NamedTuple

import numpy as np


class DType(NamedTuple):
    """One element type.

    name: TF's name; tf: TF's DataType number; ascir: AscIR's number; bytes: size of one element in bytes;
    device: the type in Ascend C source; host: the type in host C source; numpy: the storage type;
    kind: 'f' floating, 'i' signed, 'u' unsigned, 'b' boolean.
    """

    name: str
    tf: int
    ascir: int
    bytes: int
    device: str
    host: str
    numpy: type
    kind: str

    @property
    def is_floating(self) -> bool:
        return self.kind == "f"

    @property
    def is_integer(self) -> bool:
        return self.kind in "iu"

    def __repr__(self) -> str:
        return self.name


FLOAT32 = DType("float32", 1, 0, 4, "float", "float", np.float32, "f")
FLOAT64 = DType("float64", 2, 11, 8, "double", "double", np.float64, "f")
INT32 = DType("int32", 3, 3, 4, "int32_t", "int32_t", np.int32, "i")
UINT8 = DType("uint8", 4, 4, 1, "uint8_t", "uint8_t", np.uint8, "u")
INT16 = DType("int16", 5, 6, 2, "int16_t", "int16_t", np.int16, "i")
INT8 = DType("int8", 6, 2, 1, "int8_t", "int8_t", np.int8, "i")
INT64 = DType("int64", 9, 9, 8, "int64_t", "int64_t", np.int64, "i")
BOOL = DType("bool", 10, 12, 1, "uint8_t", "uint8_t", np.bool_, "b")
BFLOAT16 = DType("bfloat16", 14, 27, 2, "bfloat16_t", "uint16_t", np.uint16, "f")
UINT16 = DType("uint16", 17, 7, 2, "uint16_t", "uint16_t", np.uint16, "u")
FLOAT16 = DType("float16", 19, 1, 2, "half", "uint16_t", np.float16, "f")
UINT32 = DType("uint32", 22, 8, 4, "uint32_t", "uint32_t", np.uint32, "u")
UINT64 = DType("uint64", 23, 10, 8, "uint64_t", "uint64_t", np.uint64, "u")

ALL_DTYPES = (
    FLOAT32,
    FLOAT64,
    INT32,
    UINT8,
    INT16,
    INT8,
    INT64,
    BOOL,
    BFLOAT16,
    UINT16,
    FLOAT16,
    UINT32,
    UINT64,
)
BY_NAME: Dict[str, DType] = {d.name: d for d in ALL_DTYPES}
BY_TF: Dict[int, DType] = {d.tf: d for d in ALL_DTYPES}
BY_ASCIR: Dict[int, DType] = {d.ascir: d for d in ALL_DTYPES}
