"""Small fused graphs that the tests of the IR share."""
from tf_autofuse.ir.asc_graph import (
    AscGraph,
    AscNode,
    Axis,
    AxisType,
    FusedGraph,
    KernelIO,
    Memory,
    Position,
    Sched,
    TensorAttr,
    TensorRef,
    attrs,
)
from tf_autofuse.ir.builder import HintBuilder
from tf_autofuse.ir.dtypes import BOOL, FLOAT16, FLOAT32, INT32, INT64
from tf_autofuse.symbolic.guards import Guard, InputDim, SizeVar
from tf_autofuse.symbolic.size import broadcast_size, ceil_div, stride_or_zero, symbol


def public_example() -> FusedGraph:
    """relu(abs(data1[128]) + data2[192, 128])."""
    b = HintBuilder("autofuse_pointwise_0_Abs_Add_Relu", [("z0", 192), ("z1", 128)])
    a = b.op("Abs", b.load(b.data(0, FLOAT32, origin=("data1",)), (0, 1)), origin=("Abs",))
    y = b.load(b.data(1, FLOAT32, origin=("data2",)), (1, 1))
    added = b.op("Add", b.broadcast_to(a, (1, 1)), y, origin=("Add",))
    b.store(b.op("Relu", added, origin=("Relu",)), 0)
    graph = b.graph()
    return FusedGraph(
        graph.name,
        "pointwise",
        (KernelIO(FLOAT32, (128,)), KernelIO(FLOAT32, (192, 128))),
        (KernelIO(FLOAT32, (192, 128)),),
        (),
        (),
        (graph,),
        ("Abs", "Add", "Relu"),
    )


def run_time_broadcast() -> FusedGraph:
    """where(x[s0, 128] > y[s1, 1], x, 0.5), float16 inside float32; s0 against s1 is decided at run time."""
    s0, s1, s2 = symbol("s0"), symbol("s1"), symbol("s2")
    sizes = (
        SizeVar("s0", InputDim(0, 0), 7),
        SizeVar("s1", InputDim(1, 0)),
        SizeVar("s2", broadcast_size(s0, s1)),
    )
    b = HintBuilder("autofuse_pointwise_1_Greater_Select", [("z0", s2), ("z1", 128)], sizes)
    x = b.load(b.data(0, FLOAT16), (1, 1), strides=(stride_or_zero(s0, 128), 1))
    y = b.load(b.data(1, FLOAT16), (1, 0), strides=(stride_or_zero(s1, 1), 0))
    x, y = b.op("Cast", x, dtype=FLOAT32), b.op("Cast", y, dtype=FLOAT32)
    mask = b.compare("Gt", x, b.broadcast_to(y, (1, 1)), origin=("model/Greater",))
    chosen = b.op("Where", mask, x, b.scalar(0.5, FLOAT32), origin=("model/Select",))
    b.store(b.op("Cast", chosen, dtype=FLOAT16), 0)
    b.store(mask, 1)
    graph = b.graph()
    return FusedGraph(
        graph.name,
        "pointwise",
        (KernelIO(FLOAT16, (s0, 128)), KernelIO(FLOAT16, (s1, 1))),
        (KernelIO(FLOAT16, (s2, 128)), KernelIO(BOOL, (s2, 128))),
        sizes,
        (Guard("broadcast", s0, s1, "model/Greater"),),
        (graph,),
        ("model/Greater", "model/Select"),
    )


def fill() -> FusedGraph:
    """A rank 0 output that is a constant, and one of 3 elements read backwards and with an offset."""
    b = HintBuilder("fill", [("z0", 3)])
    b.store(b.op("Neg", b.load(b.data(0, FLOAT32), (1,), strides=(-2,), offset=5)), 0)
    c = HintBuilder("rank0", [("z0", 1)])
    c.store(c.scalar(-0.0, FLOAT32), 1)
    return FusedGraph(
        "fill",
        "pointwise",
        (KernelIO(FLOAT32, (6,)),),
        (KernelIO(FLOAT32, (3,)), KernelIO(FLOAT32, ())),
        (),
        (),
        (b.graph(), c.graph()),
    )


def through_workspace() -> FusedGraph:
    """exp(x[4, 3]) kept in a workspace by one loop nest, read transposed by the next."""
    b = HintBuilder("first", [("z0", 4), ("z1", 3)])
    b.workspace_store(b.op("Exp", b.load(b.data(0, FLOAT32), (1, 1))), 0)
    c = HintBuilder("second", [("z0", 3), ("z1", 4)])
    c.store(c.op("Neg", c.workspace_load(0, FLOAT32, (1, 1), strides=(1, 3))), 0)
    return _plain("through_workspace", ((4, 3),), ((3, 4),), (b.graph(), c.graph()))


def _plain(name, in_dims, out_dims, graphs, kind="pointwise", sizes=(), in_dtypes=None):
    """A FusedGraph without guards whose outputs are float32."""
    in_dtypes = in_dtypes or [FLOAT32] * len(in_dims)
    return FusedGraph(
        name,
        kind,
        tuple(map(KernelIO, in_dtypes, in_dims)),
        tuple(KernelIO(FLOAT32, dims) for dims in out_dims),
        tuple(sizes),
        (),
        tuple(graphs),
    )


def softmax() -> FusedGraph:
    """softmax(x[3, s0]), and the mean of every row, with its divisor known at run time."""
    s0 = symbol("s0")
    sizes = (SizeVar("s0", InputDim(0, 1), 5),)
    b = HintBuilder("softmax", [("z0", 3), ("z1", s0)], sizes)
    x = b.load(b.data(0, FLOAT32), (1, 1))
    shifted = b.op("Exp", b.op("Sub", x, b.broadcast_to(b.reduce("Max", x, (1,)), (1, 1))))
    b.store(b.op("Div", shifted, b.broadcast_to(b.reduce("Sum", shifted, (1,)), (1, 1))), 0)
    b.store(b.op("Div", b.reduce("Sum", x, (1,)), b.scalar(s0, FLOAT32)), 1)
    return _plain("softmax", ((3, s0),), ((3, s0), (3,)), (b.graph(),), "reduce", sizes)


def embedding() -> FusedGraph:
    """The sum over a sequence of rows of a table: table[10, 4], ids[6] -> [4]; and row 2 of the table."""
    b = HintBuilder("embedding", [("z0", 6), ("z1", 4)])
    table = b.data(0, FLOAT32)
    ids = b.load(b.data(1, INT64), (1, 0))
    rows = b.gather(table, ids, (1, 1), (0, 1), index_stride=4, index_size=10)
    b.store(b.reduce("Sum", rows, (0,)), 0)
    c = HintBuilder("row", [("z0", 4)])
    two = c.gather(c.data(0, FLOAT32), c.scalar(2, INT32), (1,), (1,), index_stride=4, index_size=10)
    c.store(two, 1)
    graphs = (b.graph(), c.graph())
    return _plain("embedding", ((10, 4), (6,)), ((4,), (4,)), graphs, "gather", (), (FLOAT32, INT64))


def concat() -> FusedGraph:
    """concat([-x[4, 2], x[4, 2], y[4, 2]], axis 1): two parts of equal loops in one graph, one in another."""
    b = HintBuilder("parts", [("z0", 4), ("z1", 2)])
    x = b.load(b.data(0, FLOAT32), (1, 1))
    b.store(b.op("Neg", x), 0, strides=(6, 1))
    b.store(x, 0, strides=(6, 1), offset=2)
    c = HintBuilder("last", [("z0", 4), ("z1", 2)])
    c.store(c.load(c.data(1, FLOAT32), (1, 1)), 0, strides=(6, 1), offset=4)
    return _plain("concat", ((4, 2), (4, 2)), ((4, 6),), (b.graph(), c.graph()), "concat")


def two_reductions() -> FusedGraph:
    """relu(x[3, 4]) kept in a workspace of two parts, then its sums over both axes, by a loop nest each."""
    graphs = []
    for part in (0, 1):
        b = HintBuilder("half_%d" % part, [("z0", 3), ("z1", 2)])
        x = b.load(b.data(0, FLOAT32), (1, 1), strides=(4, 1), offset=2 * part)
        b.workspace_store(b.op("Relu", x), 0, strides=(4, 1), offset=2 * part)
        graphs.append(b.graph())
    for axis in (0, 1):
        c = HintBuilder("sum_%d" % axis, [("z0", 3), ("z1", 4)])
        c.store(c.reduce("Sum", c.workspace_load(0, FLOAT32, (1, 1)), (axis,)), axis)
        graphs.append(c.graph())
    return _plain("two_reductions", ((3, 4),), ((4,), (3,)), graphs, "reduce")


ALL = {
    f.__name__: f
    for f in (
        public_example,
        run_time_broadcast,
        fill,
        through_workspace,
        softmax,
        embedding,
        concat,
        two_reductions,
    )
}


def impl_example():
    """The public example scheduled by hand: z0 cut into tiles, abs and its broadcast hoisted out of the
    loop."""
    t, blocks = symbol("z0t_size"), symbol("z0Tb_size")
    outer = ceil_div(192, t)
    axes = (
        Axis(0, "z0", 192),
        Axis(1, "z1", 128),
        Axis(2, "z0T", outer, AxisType.TILE_OUT, (0,)),
        Axis(3, "z0t", t, AxisType.TILE_IN, (0,)),
        Axis(4, "z0T", outer, AxisType.MERGED, (2,)),
        Axis(5, "z0TB", ceil_div(outer, blocks), AxisType.BLOCK_OUT, (4,)),
        Axis(6, "z0Tb", blocks, AxisType.BLOCK_IN, (4,)),
    )

    def view(full, strides, memory):
        ub = (128, 1) if full else (0, 1)
        return TensorAttr(
            FLOAT32,
            (2, 3, 1),
            (outer if full else 1, t if full else 1, 128),
            strides or (0,) + ub,
            (3, 1),
            ub,
            memory,
        )

    def run(name, type_, inputs, y, hoisted, **values):
        return AscNode(
            name,
            type_,
            tuple(map(TensorRef, inputs)),
            (y,),
            attrs(**values),
            Sched((5, 6, 3, 1), -1 if hoisted else 6),
        )

    def outside(name, type_, inputs, **values):
        return AscNode(name, type_, tuple(map(TensorRef, inputs)), (TensorAttr(FLOAT32),), attrs(**values))

    gm = (t * 128, 128, 1)
    calc, out = Position.VECCALC, Position.VECOUT
    nodes = (
        outside("data_0", "Data", (), index=0),
        run(
            "load_0",
            "Load",
            ("data_0",),
            view(False, (0, 0, 1), Memory(Position.VECIN, 0, 1)),
            True,
            offset=0,
        ),
        run("abs_0", "Abs", ("load_0",), view(False, None, Memory(calc, 0, 1)), True),
        run("wide", "Broadcast", ("abs_0",), view(True, None, Memory(calc, 1, 1)), True, axes=(3,)),
        outside("data_1", "Data", (), index=1),
        run("load_1", "Load", ("data_1",), view(True, gm, Memory(Position.VECIN, 1, 2)), False, offset=0),
        run("add_0", "Add", ("wide", "load_1"), view(True, None, Memory(calc, 2, 1)), False),
        run("neg_0", "Neg", ("add_0",), view(True, None, Memory(calc, 2, 1)), False),
        run("relu_0", "Relu", ("neg_0",), view(True, None, Memory(out, 0, 2)), False),
        run("store_0", "Store", ("relu_0",), view(True, gm, None), False, offset=0),
        outside("output_0", "Output", ("store_0",), index=0),
    )
    return AscGraph("impl_example", "impl", axes, nodes, (), (0, 1))
