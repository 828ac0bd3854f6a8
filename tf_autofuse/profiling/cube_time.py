"""The modelled time of a matrix product (or of a convolution, taken as one) on the cube cores.

A core takes tiles of the result, [rows, columns] in L0C; for each the factors go GM -> L1 (MTE2), L1 -> L0
(MTE1) and through the cube (M) in steps of the common dim, the sums go to GM by FIXPIPE. The pipes work side
by side, double-buffered; the slowest one works without a gap from the arrival of its first step on, and what
the pipes behind it do with the last step comes on top, as in tiling/cost_model.py. Tile sides are those that
the model finds cheapest, over what L0 and L1 hold.

What is read more than once comes from L2, the first time from GM; factors larger than L2 are worked on in
panels that fit there, and are read from GM once for each panel of the other one. Not modelled: splitting the
common dim over cores, TransData between layouts, conflicts in L2.

On entry a `Product`; on exit a `CubePlan` in cycles of the machine's clock. docs/npu-model.md has it beside
published measurements."""

from functools import lru_cache
from itertools import product
from typing import Iterator, NamedTuple, Optional, Tuple

from tf_autofuse.ir.dtypes import BY_NAME
from tf_autofuse.machine import Machine
from tf_autofuse.profiling import heavy_table as heavy
from tf_autofuse.symbolic.size import align_up
from tf_autofuse.tiling import cost_table as table


class Product(NamedTuple):
    """`batch` products [m, k] x [k, n]. row_bytes: what a row of the left factor brings from GM (less than k
    elements where it is a patch of an image, which neighbours share); once_bytes: of both factors as they lie
    in GM. dtype: of the factors, a key of heavy_table.MULTIPLY; out_bytes: of an element of the result."""

    batch: int
    m: int
    n: int
    k: int
    row_bytes: float
    once_bytes: int
    dtype: str
    out_bytes: int

    @property
    def flops(self) -> int:
        return 2 * self.batch * self.m * self.n * self.k


class CubePlan(NamedTuple):
    """cycles: of the kernel; rows, columns: of a tile; cores: cube cores that work; mte2, mte1, mac, fixpipe:
    busy cycles of the busiest core; read: bytes that all cores load, from GM and L2."""

    cycles: float
    rows: int
    columns: int
    cores: int
    mte2: float
    mte1: float
    mac: float
    fixpipe: float
    read: float


def product_plan(p: Product, machine: Machine) -> Optional[CubePlan]:
    """The cheapest plan; None for an empty result (no kernel). Raises KeyError for a dtype that the cube does
    not take."""
    heavy.MULTIPLY[p.dtype]
    if min(p.batch, p.m, p.n) == 0:
        return None
    return _cheapest(p, machine)


@lru_cache(maxsize=4096)
def _cheapest(p: Product, machine: Machine) -> CubePlan:
    return min((plan_with(p, machine, *sides) for sides in _tiles(p, machine)), key=lambda plan: plan.cycles)


def _tiles(p: Product, machine: Machine) -> Iterator[Tuple[int, int]]:
    """(rows, columns) that L0C holds; no more than the product has."""
    side = machine.cube_side
    found = set()
    for rows, columns in product(heavy.TILE_SIDES, repeat=2):
        tile = min(rows, align_up(p.m, side)), min(columns, align_up(p.n, side))
        if tile[0] * tile[1] * heavy.SUM_BYTES <= machine.l0c_bytes:
            found.add(tile)
    return iter(sorted(found))


def plan_with(p: Product, machine: Machine, rows: int, columns: int) -> CubePlan:
    """The plan with this tile; rows and columns are multiples of machine.cube_side that L0C holds."""
    block, side = heavy.MULTIPLY[p.dtype], machine.cube_side
    item = BY_NAME[p.dtype].bytes
    depth = _depth(max(1, p.k), block.depth, item, rows, columns, machine)
    steps = -(-max(1, p.k) // depth)
    loads = -(-max(1, p.k) // _loaded_depth(depth, item, rows, columns, machine))
    tiles = p.batch * -(-p.m // rows) * -(-p.n // columns)
    cores = min(tiles, machine.cube_cores)
    rounds = -(-tiles // cores)

    left, right = rows * p.row_bytes, columns * p.k * item
    read = tiles * (left + right)
    mte2 = 2 * loads * heavy.BLOCK_ORDER_START + (left + right) * _load_cycles(p, read, machine)
    mte1 = (
        rows * depth * item / machine.l1_l0a_rate
        + depth * columns * item / machine.l1_l0b_rate
        + 2 * heavy.MTE1_START
    )
    mac = (rows // side) * (columns // side) * (depth // block.depth) * block.cycles
    result = rows * columns * p.out_bytes
    kept = p.batch * p.m * p.n * p.out_bytes <= machine.l2_bytes
    fixpipe = table.STORE_START + result / (machine.l2_write_rate if kept else machine.ddr_rate)
    # Sums of one tile only in L0C: the next tile waits until they have left.
    waits = fixpipe if 2 * rows * columns * heavy.SUM_BYTES > machine.l0c_bytes else 0.0

    head = table.LAUNCH + table.LOAD_HEAD_SMALL.per_block * cores + table.LOAD_HEAD_SMALL.b
    first = head + mte2 / loads
    cycles = max(
        head + rounds * mte2 + mte1 + mac + fixpipe,
        first + rounds * steps * mte1 + mac + fixpipe,
        first + mte1 + rounds * steps * mac + (rounds - 1) * waits + fixpipe,
        first + mte1 + steps * mac + rounds * fixpipe,
    )
    busy = (rounds * mte2, rounds * steps * mte1, rounds * steps * mac, rounds * fixpipe)
    return CubePlan(cycles, rows, columns, cores, *busy, read)


def _depth(k: int, unit: int, item: int, rows: int, columns: int, machine: Machine) -> int:
    """Elements of the common dim in one step: what L0A and L0B hold twice."""
    most = min(machine.l0a_bytes // (2 * rows * item), machine.l0b_bytes // (2 * columns * item))
    return min(max(unit, most // unit * unit), align_up(k, unit))


def _loaded_depth(depth: int, item: int, rows: int, columns: int, machine: Machine) -> int:
    """Elements of the common dim that one load brings to L1, which holds two of them."""
    return max(1, machine.l1_bytes // (2 * (rows + columns) * item) // depth) * depth


def _load_cycles(p: Product, read: float, machine: Machine) -> float:
    """Cycles for a byte of a load. read: bytes that all loads bring."""
    column_bytes = p.k * BY_NAME[p.dtype].bytes
    from_gm = p.once_bytes
    if p.once_bytes > machine.l2_bytes:
        # Square panels: rows of one factor and columns of the other take half of L2.
        panel = max(machine.cube_side, machine.l2_bytes / (2.0 * (p.row_bytes + column_bytes)))
        from_gm = max(from_gm, p.batch * p.m * p.n / panel * (p.row_bytes + column_bytes))
    first = min(1.0, from_gm / max(read, 1.0))
    return first / machine.ddr_rate + (1.0 - first) / machine.l2_read_rate
