"""The tiling problem of one kernel variant, as formulas: what may be chosen, what must hold, what it costs.

Variables: the tile size (elements of the cut axis) and the number of tiles of one block. On exit everything
is symbolic in the graph's sizes, the tile and the block dim; no number of a machine is inside, so that one
generated tiling function serves every machine. tiling/solve.py and the C++ of tiling/cpp.py run the same
model.
"""
from dataclasses import dataclass
from typing import Mapping, Tuple

from tf_autofuse.machine import SELECT_SCRATCH
from tf_autofuse.ops.schema import AscOp
from tf_autofuse.ops.table import ASC_OPS
from tf_autofuse.schedule.impl_graph import ImplGraph, Limit
from tf_autofuse.symbolic.guards import Guard
from tf_autofuse.symbolic.size import Size, product, symbol
from tf_autofuse.tiling.cost_model import PipeCost, head, objective, pipe_costs
from tf_autofuse.tiling.formula import Formula

#: Bytes that tiles of one-axis kernels are a multiple of where they are larger: GM's access granule.
CACHE_LINE = 512
#: Symbols of formulas beside the graph's: the number of blocks, the tiles of one block, the tile.
TILES_PER_BLOCK = "block_in"


@dataclass(frozen=True)
class ContainerBytes:
    """field: the tiling data's field; sizes: as in Container.tensor_bytes."""

    field: str
    buf_num: int
    sizes: Tuple[Size, ...]


@dataclass(frozen=True)
class TilingModel:
    """cut: size of the cut axis; outer: product of the other outer axes; inner: of the vectorized axes but
    the tile. align, line: elements that a small and a large tile are a multiple of (1: any). rows: so many
    rows without gaps are whole blocks of memory. reserved: bytes of UB that must stay free beside the
    containers. pipes: what the cost is made of. cost: cycles over sizes, tile, TILES_PER_BLOCK and
    cost_model.BLOCK_DIM. head: of them launch and the starts of the pipes."""

    key: int
    template: str
    conditions: Tuple[Guard, ...]
    tile_symbol: str
    block_symbol: str
    cut: Size
    outer: Size
    inner: Size
    inner_sizes: Tuple[Size, ...]
    align: int
    line: int
    rows: int
    containers: Tuple[ContainerBytes, ...]
    tmp_bytes: Tuple[Size, ...]
    reserved: int
    limits: Tuple[Limit, ...]
    pipes: Tuple[PipeCost, ...]
    cost: Formula

    @property
    def last_resort(self) -> bool:
        """Whether it is taken only where no other variant has a plan: costs are those of copies which overlap
        with computing, and its do not."""
        return self.template == "tight"

    @property
    def head(self) -> Formula:
        """Of the cost what launching and the starts of the pipes take."""
        return head(self.pipes)


def build_model(impl: ImplGraph, ops: Mapping[str, AscOp] = ASC_OPS) -> TilingModel:
    """The model of one ImplGraph."""
    axis = impl.graph.axis
    pipes = pipe_costs(impl, ops)
    inner = tuple(axis(a).size for a in impl.vectorized_axes if a != impl.tile_axis)
    # Copies of a tile are whole blocks of memory where the tile axis is the innermost one.
    alone = impl.vectorized_axes[-1] == impl.tile_axis
    item = 32 // impl.row_align
    return TilingModel(
        impl.tiling_key, impl.template, impl.conditions, impl.tile_symbol, impl.block_symbol,
        axis(impl.cut_axis).size, product(axis(a).size for a in impl.outer_axes[:-1]), product(inner), inner,
        impl.row_align if alone else 1, CACHE_LINE // item if alone else 1, impl.row_align,
        tuple(ContainerBytes(c.field, c.buf_num, c.tensor_bytes) for c in impl.containers), impl.tmp_bytes,
        SELECT_SCRATCH if impl.uses_scratch else 0, impl.limits, pipes,
        objective(pipes, symbol(TILES_PER_BLOCK)))
