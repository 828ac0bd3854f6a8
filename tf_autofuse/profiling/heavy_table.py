"""What ops that are never fused cost, as data: constants of the cube cores, and which instructions stand for
an op that has no lowering.

Sources: 'ATT v1' as in tiling/cost_table.py; 'ini' the platform_config files of CANN, which machine.py holds;
'derived' our own reasoning, said at the row. docs/npu-model.md sets the cube rates beside measured ones."""

from typing import Dict, NamedTuple, Tuple


class Multiply(NamedTuple):
    """One block of a product: cube_side rows x cube_side columns x `depth` in `cycles`."""

    depth: int
    cycles: float


#: 16-bit floats: ini (cube_k_size); one block a cycle gives the published 353.9 TFLOPS of 24 cores at 1.8
#: GHz. float32 (derived): a quarter of that rate, in blocks of 32 bytes of depth; two published measurements
#: of a 910B reach 84.5 and 87 of the 88.5 TFLOPS that follow.
MULTIPLY: Dict[str, Multiply] = {
    "float16": Multiply(16, 1.0),
    "bfloat16": Multiply(16, 1.0),
    "float32": Multiply(8, 2.0),
}

#: ATT v1: cycles before a copy from L1 to L0, and before one from GM to L1 that brings rows into the cube's
#: block order.
MTE1_START = 26.0
BLOCK_ORDER_START = 210.0

#: Channels that a cube core's block takes at a time (ini: cube_n_size).
BLOCK_CHANNELS = 16

#: Bytes of an element of the sums in L0C.
SUM_BYTES = 4

#: Rows and columns of L0C tiles that are tried.
TILE_SIDES = (16, 32, 64, 128, 256)


#: Look-ups; of single elements, from a table that fits a quarter of UB, they are priced by ATT v1's
#: composition (all of the table into UB of every core, twice as it counts it; then a Cast of 64-bit indices,
#: Muls, Gather), others as the gathers that we generate.
GATHERS = ("GatherV2", "Gather", "ResourceGather")


class Stream(NamedTuple):
    """A kernel that reads its inputs once and writes its outputs once. work: (row of the vector cost table,
    'in' or 'out': elements of the first input or output that it works on, how many times: a number, or
    'window', 'sort', 'scan' as heavy_ops.py counts them)."""

    work: Tuple[Tuple[str, str, object], ...]


#: Derived: the instructions that compute the op, element by element. Sorting: a pass over (value, index)
#: pairs for each merge of four lists, priced as Copy, from sorted runs of 32 on; running sums: a pass for
#: each doubling of the distance.
STREAMS: Dict[str, Stream] = {
    "MaxPool": Stream((("Max", "out", "window"),)),
    "AvgPool": Stream((("Add", "out", "window"), ("Muls", "out", 1))),
    "MaxPoolGrad": Stream((("CompareEQ", "out", "window"), ("Select", "out", "window"),
                           ("Add", "out", "window"))),
    "AvgPoolGrad": Stream((("Add", "out", "window"), ("Muls", "out", 1))),
    "TopKV2": Stream((("Copy", "in", "sort"),)),
    "Cumsum": Stream((("Add", "out", "scan"),)),
    "OneHot": Stream((("CompareScalarEQ", "out", 1), ("Select", "out", 1))),
    "MatrixBandPart": Stream((("Select", "out", 1),)),
    "Range": Stream((("Duplicate", "out", 1),)),
    "Fill": Stream((("Duplicate", "out", 1),)),
    "ZerosLike": Stream((("Duplicate", "out", 1),)),
    "OnesLike": Stream((("Duplicate", "out", 1),)),
    "BroadcastTo": Stream((("Copy", "out", 1),)),
    "SparseToDense": Stream((("Duplicate", "out", 1),)),
}
