"""AscGraph: one loop nest over tensors, as HintGraph (what to compute) and as ImplGraph (how to run it).

Grammar
    AscGraph   ::= name form axes sizes nodes
    axes       ::= Axis*                    one shared set of loop axes, outermost first in `loop_axes`
    nodes      ::= AscNode*                 in topological order = order of execution
    AscNode    ::= name type inputs outputs attrs sched origin
    inputs     ::= TensorRef*               (node name, output number)
    outputs    ::= TensorAttr*              the views that the node writes ("y")
    TensorAttr ::= dtype axis repeats strides [vectorized_axis vectorized_strides] [mem que buf]

Structural node types: Data (kernel input, attr index), Scalar (constant, attr value), Load, Gather (a Load at
a computed place), Broadcast (one axis, attr axis), Store, Output (kernel output, attr index), Workspace (attr
index: number of a tensor between the loop nests of one FusedGraph; with an input it is written by that Store,
without one Loads read it). All others are compute types of the op table (Cast among them); those whose row is
a reduction (Sum, Max, Min, Prod, Any, All, ArgMax, ArgMin) are called Reduce below.

Invariants of both forms (ir/verify.py checks all that follow, under these numbers)
    G1 node names are unique identifiers; inputs name earlier nodes and outputs that these have.
    G2 dtypes: the same along Load, Broadcast, Store, Output; by the op table's rule for compute nodes, whose
       inputs have one dtype (the condition of Where is bool).
    G3 a compute type is in the op table and has its number of inputs.
    G4 every symbol in axes, views and attrs is in `sizes`, whose names are unique; an expression source uses
       only symbols before it.
    G5 attrs are sorted by name and hold int, float, bool, str, Size, DType or tuples of these; index, value
       and axis are there where the type needs them; a Scalar's dtype represents its value exactly. A Scalar's
       value may be a Size with symbols (the divisor of a mean): known at run time, rounded to the dtype.
    G6 every node is read, except Output and a written Workspace; Data and Output indexes are unique.
    G7 axis ids and names are unique (a MERGED axis of one keeps its name); axis, repeats and strides of a
       view have equal length.

HintGraph invariants
    H1 every node but Data, Scalar, Output, Workspace lists all axes, in order, in sched.axis and
       outputs[0].axis; those four have no axes at all. All axes are ORIGINAL; loop_axes lists them all.
    H2 repeats[i] is the axis's size, or 1 where the tensor does not extend along it; strides[i] == 0 exactly
       where repeats[i] is 1 (or another extent is 0).
    H3 Load reads a Data or Workspace: strides are those in GM, in elements, over the loop axes; they may
       contain stride_or_zero where it is known only at run time whether the dim is broadcast: then repeats[i]
       is the axis's full size and the load itself repeats the element. Attr offset (a Size, elements; default
       0). Strides are never negative but need not decrease: transpose, slice, split and unpack are nothing
       but strides and an offset; so a Load may read a part of its tensor only.
    H4 compute nodes: all inputs have equal repeats; a Broadcast node stands where they would not. Broadcast
       changes exactly one repeats entry from 1 to the axis's size (attr axis: the axis id). A Scalar may be
       an input of any compute node; it has no axes. Only a Broadcast makes a tensor of it: its repeats count
       as all 1 (and the axis of such a Broadcast may have size 1).
    H5 strides of Broadcast and compute outputs are the dense row-major ones over repeats (0 where repeats is
       1).
    H6 every Store has its input's repeats and strides in GM (attr offset as in H3); it is read by exactly one
       Output or Workspace. repeats[i] is the axis's size, or 1 where some Reduce of the graph has reduced the
       axis: then the value is stored once, not per element of the axis. An Output or Workspace may have
       several inputs: Stores of disjoint parts (concat), which differ in offset.
    H7 rank 0 is one axis of size 1; there is always at least one axis.
    H8 a Reduce has attr axes (a tuple of axis ids, in loop order, none empty): its output's repeats are its
       input's with 1 there, at least one of them not 1 before (size-1 axes may be listed). ArgMax and ArgMin
       give the row-major index over the axes listed. What reads a reduced tensor together with a full one
       goes through a Broadcast, as H4 says: a softmax is one graph, Load Max Broadcast Sub Exp Sum Broadcast
       Div. The element order of the accumulation is the target's, fixed for given sizes.
    H9 a Gather reads (a Data or Workspace, an index tensor or Scalar of int32 or int64): element
       offset + sum(i_a * strides[a]) + index * index_stride, the sum over the loop axes. attrs: index_stride,
       index_size (Sizes), offset. strides as for a Load over the axes that belong to the data (0 along those
       of the index); repeats as usual. The index's repeats are 1 or the Gather's along each axis. An index
       outside of [0, index_size) fails the run: the fallback gives the error that TF gives.

ImplGraph adds, for one template and tiling case
    axes of types TILE_OUT, TILE_IN, MERGED, BLOCK_OUT, BLOCK_IN with `from_axes`; each node's sched.axis and
    loop_axis; each UB tensor's vectorized_axis/vectorized_strides (elements, row-aligned) and memory (mem +
    que or buf). Node types beside those above: RemovePad, Copy and Transpose, UB -> UB. Broadcast has attr
    axes (several may change at once). A Workspace with a negative index is private to the nests of one
    HintGraph.
    I1 axes form a forest over the ORIGINAL ones: TILE_OUT and TILE_IN, BLOCK_OUT and BLOCK_IN come in pairs
       from one axis, MERGED from one or more; nothing derives twice from one axis. loop_axes are ORIGINAL
       ones or merged of them, and every ORIGINAL axis but those of size 1 is in there once.
    I2 sizes: *_IN a symbol or number, *_OUT the ceiling of the axis over *_IN, MERGED the product.
    I3 Data, Scalar, Output have no axes in sched. Other nodes' sched.axis holds no axis twice, nor one
       together with one it derives from; loop_axis is one of them or -1.
    I4 a UB tensor's vectorized_axis are axes of its view and of sched.axis, in order, inside of loop_axis,
       with one stride each; the same for all nodes of the graph. Store writes no UB tensor.
    I5 memory: a Load's result in VECIN, a Gather's there or in VECCALC, what a Store reads in VECOUT, other
       tensors in VECCALC with one buffer; nodes without UB tensor have none. A container has one buf_num.
       Ids count from 0 per position.
    I6 tensors of one container never live at once (one made outside of the loop and read inside lives on); a
       VECCALC tensor may take over that of an input that dies with the node where the op table says in_place
       and the item sizes are equal.
    I7 nodes outside of all loops come first and read nothing that is made inside; Stores are inside.

FusedGraph invariants
    F1 its graphs are HintGraphs that hold G and H; their names are unique.
    F2 Data and Output indexes are among inputs and outputs, with the same dtypes; every element of an output
       is written exactly once, by one graph or by several that store its parts (a concat whose parts have
       loops of their own). An input without Data is passed and its dims are checked, but it is not read: a
       shape operand or a constant that only the original ops need. A Workspace is written once (or in
       disjoint parts), by graphs before those that read it; it is dense, its extent is what its Stores span.
    F3 sizes: as G4; a symbol read off an input stands alone as that very dim of the input; the graphs' sizes
       are among the fused graph's. Every symbol of dims, guards and graphs is in sizes.
    F4 guards are of a known kind and not known to fail. Dims that a broadcast_size takes for compatible are
       covered by 'broadcast' or 'eq' guards.
    F5 for dims that satisfy the guards no Load leaves its input, and the Store of an output writes every
       element exactly once (checked for the hints and a few trial dims).
"""

import enum
from dataclasses import dataclass, field, replace
from typing import Any, Dict, Mapping, NamedTuple, Optional, Tuple

from tf_autofuse.ir.dtypes import DType
from tf_autofuse.symbolic.guards import Guard, SizeVar
from tf_autofuse.symbolic.size import Size


#: Nodes that stand for memory or constants, not for a loop over elements: they have no axes.
AXISLESS = ("Data", "Scalar", "Output", "Workspace")


class AxisType(enum.Enum):
    ORIGINAL = 0
    BLOCK_OUT = 1
    BLOCK_IN = 2
    TILE_OUT = 3
    TILE_IN = 4
    MERGED = 5


@dataclass(frozen=True)
class Axis:
    """A loop axis. from_axes: the axes that it was split off (one) or merged from (several, outermost
    first)."""

    id: int
    name: str
    size: Size
    type: AxisType = AxisType.ORIGINAL
    from_axes: Tuple[int, ...] = ()


class Position(enum.Enum):
    """Where a tensor lives: global memory, or UB as queue input, queue output or plain buffer."""

    GM = "GM"
    VECIN = "VECIN"
    VECOUT = "VECOUT"
    VECCALC = "VECCALC"


class Memory(NamedTuple):
    """position; container: id of the queue (VECIN, VECOUT) or buffer (VECCALC), numbered per position from 0;
    tensors that share a container id share its bytes one after the other. buf_num: 2 for double buffering."""

    position: Position
    container: int = -1
    buf_num: int = 1


class TensorRef(NamedTuple):
    node: str
    output: int = 0


@dataclass(frozen=True)
class TensorAttr:
    """One view ("y"). repeats and strides run parallel to axis; strides in elements.
    vectorized_axis: the axes that lie in UB, outermost first; vectorized_strides: their UB strides in
    elements, 0 where the tensor does not extend along the axis."""

    dtype: DType
    axis: Tuple[int, ...] = ()
    repeats: Tuple[Size, ...] = ()
    strides: Tuple[Size, ...] = ()
    vectorized_axis: Tuple[int, ...] = ()
    vectorized_strides: Tuple[Size, ...] = ()
    memory: Optional[Memory] = None


@dataclass(frozen=True)
class Sched:
    """axis: the loop axes of the node, outermost first. loop_axis: the innermost axis that is a loop around
    the node (-1: outside of all loops, executed once per block before them)."""

    axis: Tuple[int, ...] = ()
    loop_axis: int = -1


@dataclass(frozen=True)
class AscNode:
    """origin: names of the TF nodes that this node comes from. attrs: sorted (name, value) pairs; values are
    int, float, bool, str, Size, DType or tuples of these."""

    name: str
    type: str
    inputs: Tuple[TensorRef, ...] = ()
    outputs: Tuple[TensorAttr, ...] = ()
    attrs: Tuple[Tuple[str, Any], ...] = ()
    sched: Sched = Sched()
    origin: Tuple[str, ...] = ()

    def attr(self, name: str, default: Any = None) -> Any:
        for key, value in self.attrs:
            if key == name:
                return value
        return default

    def with_attrs(self, **values: Any) -> "AscNode":
        merged = dict(self.attrs, **values)
        return replace(self, attrs=tuple(sorted(merged.items())))

    @property
    def y(self) -> TensorAttr:
        return self.outputs[0]


def attrs(**values: Any) -> Tuple[Tuple[str, Any], ...]:
    """Attribute pairs in their canonical order."""
    return tuple(sorted(values.items()))


@dataclass(frozen=True)
class AscGraph:
    """See the head of the file. loop_axes: ids of the loop axes, outermost first (HintGraph: all axes).
    sizes: the symbols that the axes, strides and offsets use."""

    name: str
    form: str  # 'hint' or 'impl'
    axes: Tuple[Axis, ...]
    nodes: Tuple[AscNode, ...]
    sizes: Tuple[SizeVar, ...] = ()
    loop_axes: Tuple[int, ...] = ()
    _index: Dict[str, AscNode] = field(default=None, compare=False, repr=False)
    _axis_index: Dict[int, Axis] = field(default=None, compare=False, repr=False)

    def __post_init__(self):
        object.__setattr__(self, "_index", {n.name: n for n in self.nodes})
        object.__setattr__(self, "_axis_index", {a.id: a for a in self.axes})

    def node(self, name: str) -> AscNode:
        return self._index[name]

    def axis(self, id_: int) -> Axis:
        return self._axis_index[id_]

    def tensor(self, ref: TensorRef) -> TensorAttr:
        return self._index[ref.node].outputs[ref.output]

    def of_type(self, *types: str) -> Tuple[AscNode, ...]:
        return tuple(n for n in self.nodes if n.type in types)

    def consumers(self) -> Mapping[str, Tuple[AscNode, ...]]:
        """Node name -> the nodes that read one of its outputs, in order."""
        readers: Dict[str, list] = {n.name: [] for n in self.nodes}
        for n in self.nodes:
            for ref in n.inputs:
                if n not in readers[ref.node]:
                    readers[ref.node].append(n)
        return {k: tuple(v) for k, v in readers.items()}

    def with_nodes(self, nodes) -> "AscGraph":
        return replace(self, nodes=tuple(nodes))


class KernelIO(NamedTuple):
    """A kernel's input or output as the outside sees it: dense row-major tensor of these dims."""

    dtype: DType
    dims: Tuple[Size, ...]


@dataclass(frozen=True)
class FusedGraph:
    """A region to be run as one op: the unit of building, caching and rewriting.

    name: the fused op's name (autofuse_<kind>_<n>_<Op>_...); kind: pointwise | reduce | ...
    inputs/outputs: in the order of the op's arguments; Data/Output nodes refer to them by attr index.
    sizes: every symbol with its source, sources first. What a run checks of the inputs' dims: every dim
    equals the value of its Size in `inputs` (so a symbol or number that several dims share needs no guard),
    then `guards`.
    graphs: the loop nests, in execution order (one: AscBackend; several: FusedAscBackend).
    origin: names of the original TF nodes in topological order.
    """

    name: str
    kind: str
    inputs: Tuple[KernelIO, ...]
    outputs: Tuple[KernelIO, ...]
    sizes: Tuple[SizeVar, ...]
    guards: Tuple[Guard, ...]
    graphs: Tuple[AscGraph, ...]
    origin: Tuple[str, ...] = ()

    @property
    def op_type(self) -> str:
        return "AscBackend" if len(self.graphs) == 1 else "FusedAscBackend"
