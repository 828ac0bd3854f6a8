"""Costs of instructions on a 910B vector core, as data: cycles, with unit and source of every number.

Sources: 'ATT v1' is the published AutoFuse performance model for NPU arch 2201 (one table for all 910B);
'derived' is our own reasoning from it, said at the row. Vector rows: cycles = k * elements + b for one
instruction (k in cycles per element, b in cycles), for 16-bit and for 32-bit elements. Narrower integers
count as 16-bit, 64-bit as 32-bit, as there.
"""
from typing import Dict, NamedTuple, Tuple

from tf_autofuse.ir.dtypes import DType


class Linear(NamedTuple):
    """cycles = k * elements + b."""

    k: float
    b: float


class VectorCost(NamedTuple):
    half: Linear
    single: Linear

    def of(self, dtype: DType) -> Linear:
        return self.single if dtype.bytes >= 4 else self.half


def _rows(*rows: Tuple[str, float, float, float, float]) -> Dict[str, VectorCost]:
    return {name: VectorCost(Linear(kh, bh), Linear(ks, bs)) for name, kh, bh, ks, bs in rows}


#: ATT v1, except the rows marked derived.
VECTOR: Dict[str, VectorCost] = _rows(
    # name, k 16-bit, b 16-bit, k 32-bit, b 32-bit
    ("Abs", 0.0077, 20.0153, 0.0147, 20.0592),
    ("Add", 0.0103, 22.2173, 0.0206, 23.2225),
    ("Adds", 0.0071, 22.0938, 0.0141, 22.0936),
    ("And", 0.0107, 17.1393, 0.0112, 17.5611),
    ("BlockReduceMax", 0.0547, 18.0042, 0.0198, 16.7401),
    ("BlockReduceMin", 0.0547, 18.0092, 0.0198, 16.7413),
    ("BlockReduceSum", 0.0547, 37.159, 0.1094, 36.964),  # derived: as PairReduceSum, which also adds
    ("Brcb", 0.0074, 13.0572, 0.0146, 13.0732),
    ("Cast", 0.0087, 20.4393, 0.0147, 20.1204),  # f32->f16 | f16->f32; derived for other pairs of such widths
    ("Cast f16->u8", 0.0083, 19.9408, 0.0083, 19.9408),
    ("Cast u8->f16", 0.0102, 46.512, 0.0102, 46.512),
    ("Cast i64->i32", 0.0332, 18.869, 0.0332, 18.869),
    ("CompareEQ", 0.0155, 21.034, 0.031, 21.0316),
    ("CompareNE", 0.0164, 20.9123, 0.031, 21.0313),
    ("CompareGE", 0.0155, 21.0279, 0.031, 21.0309),
    ("CompareGT", 0.016, 20.9711, 0.031, 21.0319),
    ("CompareLE", 0.0155, 21.9556, 0.031, 21.0303),
    ("CompareLT", 0.0155, 21.0297, 0.0316, 20.994),
    ("CompareScalarEQ", 0.0084, 21.9204, 0.016, 21.9749),
    ("CompareScalarNE", 0.0084, 21.9114, 0.0161, 22.969),
    ("CompareScalarGE", 0.0086, 21.9025, 0.0161, 21.9643),
    ("CompareScalarGT", 0.0084, 21.92, 0.016, 21.9712),
    ("CompareScalarLE", 0.0084, 21.921, 0.0161, 21.9722),
    ("CompareScalarLT", 0.0084, 21.9381, 0.0161, 22.986),
    ("Copy", 0.0078, 13.0049, 0.0157, 12.9966),
    ("Div", 0.046, 29.1233, 0.0454, 29.0892),
    ("Duplicate", 0.0078, 16.9993, 0.0156, 16.9965),
    ("Erf", 0.6996, 478.4175, 0.6038, 458.2933),
    ("Exp", 0.0311, 28.0144, 0.0307, 28.0376),
    ("Gather", 0.1873, 17.0248, 0.1875, 15.0),
    ("GatherMask", 0.0156, 14.0242, 0.0313, 14.0207),
    ("Ln", 0.0311, 28.0144, 0.0307, 28.0376),  # derived: as Exp, the instruction of the same kind
    ("Max", 0.0111, 20.12, 0.0215, 20.1333),
    ("Maxs", 0.0071, 20.0912, 0.0141, 20.0887),
    ("Min", 0.0111, 20.1104, 0.0215, 20.1271),
    ("Mins", 0.0071, 20.0896, 0.0142, 20.0876),
    ("Mul", 0.011, 23.1243, 0.0206, 23.2291),
    ("MulAddDst", 0.022, 23.1243, 0.0412, 23.2291),  # derived: Mul at half rate, as with three operands
    ("Muls", 0.0071, 23.1006, 0.0142, 23.0966),
    ("Not", 0.0107, 17.1393, 0.0112, 17.5611),  # derived: as And
    ("Or", 0.0132, 12.4018, 0.0264, 12.4018),  # ATT v1 for u16; 32-bit data are twice as many u16
    ("PairReduceSum", 0.0547, 37.159, 0.1094, 36.964),
    ("Power", 0.6647, 2516.53, 0.6199, 730.11),
    ("Reciprocal", 0.0078, 21.0076, 0.0146, 21.0639),
    ("Relu", 0.0077, 20.0173, 0.0154, 20.0189),
    ("Rsqrt", 0.0071, 21.097, 0.0143, 21.0979),
    ("Select", 0.0118, 45.9656, 0.0229, 43.9906),
    ("Sigmoid", 0.1011, 116.0436, 0.1256, 115.9747),
    ("Sign", 0.0855, 119.0821, 0.1701, 119.0656),
    ("Sqrt", 0.0312, 29.0056, 0.0313, 28.9961),
    ("Sub", 0.0107, 22.1226, 0.0213, 22.1254),
    ("Tanh", 0.1976, 181.6919, 0.157, 153.9298),
    # Derived: 16 blocks are read and written as by Copy, but by one block a cycle and not by eight.
    ("TransDataTo5HD", 0.0624, 13.0049, 0.1256, 12.9966),
    ("Ub2ub", 0.0076, 11.6372, 0.0152, 11.6372),
    ("WholeReduceMax", 0.0547, 21.0027, 0.1094, 20.0051),
    ("WholeReduceMin", 0.0547, 21.0056, 0.1094, 20.0068),
    ("WholeReduceSum", 0.0547, 35.0021, 0.1094, 32.0029),
)

#: ATT v1: Muls of int32.
MULS_INT32 = Linear(0.018, 20.7457)

#: (API as a kernel calls it, dtype of the result, '' for any) -> the row that prices it, where the names
#: differ. Of the conditions of a Compare the trace does not tell; their costs are within 5%. Rows without a
#: figure of their own go by the instruction of the same kind (derived): one operand and a scalar as Adds or
#: Muls, a sum or difference with Relu as without, an accumulation as Mul, moves as Copy.
TRACE_NAMES: Dict[Tuple[str, str], str] = {
    ("Cast", "uint8"): "Cast f16->u8",
    ("Cast", "int8"): "Cast f16->u8",
    ("Compare", ""): "CompareEQ",
    ("CompareScalar", ""): "CompareScalarEQ",
    ("CreateVecIndex", ""): "Duplicate",
    ("ArithProgression", ""): "Duplicate",
    ("DataCopy", ""): "Ub2ub",
    ("Transpose", ""): "TransDataTo5HD",
    ("Gatherb", ""): "Copy",
    ("ShiftLeft", ""): "Adds",
    ("ShiftRight", ""): "Adds",
    ("LeakyRelu", ""): "Muls",
    ("Axpy", ""): "Mul",
    ("AddRelu", ""): "Add",
    ("SubRelu", ""): "Sub",
    ("FusedMulAdd", ""): "MulAddDst",
    ("FusedMulAddRelu", ""): "MulAddDst",
    ("ReduceSum", ""): "WholeReduceSum",
    ("ReduceMax", ""): "WholeReduceMax",
    ("ReduceMin", ""): "WholeReduceMin",
}

#: Assumed, as no figure is public (the API's documents call them slow): cycles of a scalar access.
SCALAR: Dict[str, float] = {
    "LocalTensor::GetValue": 10.0,
    "LocalTensor::SetValue": 10.0,
    "GlobalTensor::GetValue": 100.0,
    "GlobalTensor::SetValue": 100.0,
}

#: Derived: an instruction without a row costs what a two-operand one does (the published model prices it as 1
#: cycle, which makes kernels full of such ops look free).
UNKNOWN_VECTOR = VectorCost(Linear(0.011, 23.0), Linear(0.0213, 23.0))

#: ATT v1: cycles of a kernel launch.
LAUNCH = 300.0

#: ATT v1: start of the V and the MTE3 pipe, cycles.
VECTOR_HEAD = 37.37
STORE_HEAD = 497.36


class LoadHead(NamedTuple):
    """Start of the MTE2 pipe: cycles = per_block * block_dim + b."""

    per_block: float
    b: float


#: ATT v1: with the kernel's largest Load at least / below DMA_LARGE_BYTES.
LOAD_HEAD_LARGE = LoadHead(32.72, 1575.03)
LOAD_HEAD_SMALL = LoadHead(15.89, 882.09)
DMA_LARGE_BYTES = 25000


class Rate(NamedTuple):
    """Bytes per cycle and core: alone + shared / block_dim."""

    alone: float
    shared: float


#: ATT v1, GM -> UB.
LOAD_RATE_LARGE = Rate(9.9074, 15.8960)
LOAD_RATE_SMALL = Rate(7.9052, 7.3100)
LOAD_START = 27.01
#: Cycles per block and byte of (GM gap mod 256).
LOAD_GAP = 0.07
#: Bytes that a strided block of less than one UB block counts as.
LOAD_SMALL_BLOCK_BYTES = 512

#: ATT v1, UB -> GM. The thresholds 32 and 512 are bytes of a block, as the published text says.
STORE_RATE = Rate(9.96, 3.79)
STORE_START = 12.09
STORE_GAP = 0.02
#: Unaligned blocks over 512 B: at least this many cycles for the last 512 B.
STORE_UNALIGNED_CYCLES = 256.0
#: Unaligned blocks of 32..512 B: bytes per cycle, and start.
STORE_UNALIGNED_RATE = 2.0
STORE_UNALIGNED_START = 1.3
#: Blocks below 32 B: cycles per block = (byte_bd * bd + byte) * bytes + (bd * block_bd + block).
STORE_TINY = (-0.101, -2.2, 8.89, 96.24)

#: Template choice (ATT v1): a difference of more cycles than this decides; else the UB ratio does.
DECISIVE_CYCLES = 5000.0
#: Derived: so does a tenth of the better one, since 5000 cycles are more than a small kernel takes.
DECISIVE_FRACTION = 0.1
#: ATT v1: a plan that uses less of UB than this is taken to be badly pipelined.
GOOD_UB_RATIO = 0.19
