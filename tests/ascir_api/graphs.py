"""Graphs of the API that several test modules build, with the functional helpers."""

from tf_autofuse.ascir_api import functional as f


def fresh(ascir, name="g"):
    """A graph whose name no other has had: the helpers count per graph name."""
    fresh.count = getattr(fresh, "count", 0) + 1
    return ascir.HintGraph("%s_%d" % (name, fresh.count))


def pointwise(ascir, dtype=0, make=None, sizes=None):
    """make(graph, x, axes) of x[s0, s1], or of x[sizes], stored; default: Abs."""
    graph = fresh(ascir)
    dims = sizes or [graph.create_size("s%d" % i) for i in range(2)]
    axes = [graph.create_axis("z%d" % i, dim) for i, dim in enumerate(dims)]
    x = f.Load(graph, f.Data(graph, dtype=dtype), axis=axes)
    y = make(graph, x, axes) if make else f.Abs(graph, x, axis=axes)
    f.Output(graph, f.Store(graph, y, axis=axes))
    return graph


def reduced(ascir, op="Max", dtype=0):
    """reduce(abs(x[s0, s1])) over the second axis."""
    graph = fresh(ascir)
    s0, s1 = graph.create_size("s0"), graph.create_size("s1")
    axes = [graph.create_axis("z0", s0), graph.create_axis("z1", s1)]
    x = f.Abs(graph, f.Load(graph, f.Data(graph, dtype=dtype), axis=axes), axis=axes)
    y = getattr(f, op)(graph, x, axis=axes, size=[s0, 1], stride=[1, 0])
    f.Output(graph, f.Store(graph, y, axis=axes, size=[s0, 1], stride=[1, 0]))
    return graph


def concatenated(ascir, count=3):
    """relu(concat of x_i[s0, n_i] along the second axis), n_i a symbol each."""
    graph = fresh(ascir)
    s0 = graph.create_size("s0")
    widths = [graph.create_size("n%d" % i) for i in range(count)]
    total = sum(widths[1:], widths[0])
    axes = [graph.create_axis("z0", s0), graph.create_axis("z1", total)]
    loads = [f.Load(graph, f.Data(graph, dtype=0), axis=axes, size=[s0, n]) for n in widths]
    joined = f.Concat(graph, loads, axis=axes)
    f.Output(graph, f.Store(graph, f.Relu(graph, joined, axis=axes), axis=axes))
    return graph


def wrapped(ascir):
    """neg(abs(x)) as two wrapped graphs in a FusedGraph; the first one's result is an output as well."""
    inner = pointwise(ascir), pointwise(ascir, make=lambda g, x, axes: f.Neg(g, x, axis=axes))
    fused, ops = ascir.FusedGraph("two"), ascir.ops
    data, first, second = ops.Data("x", fused), ops.AscGraph("a", inner[0]), ops.AscBackend("b", inner[1])
    first.x = [data]
    second.x = [first.y[0]]
    for index, node in enumerate((second, first)):
        output = ops.Output("o%d" % index)
        output.x = node.y[0]
        output.attr.ir_attr.index = index
    return fused
