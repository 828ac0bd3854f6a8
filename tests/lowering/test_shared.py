"""Equal chunks are planned once, with the regions that planning all of the graph gives.

What a chunk's key sees is tested by changing one thing of one of two equal layers; that these tests would
notice a key which misses something, by taking parts of the key away.
"""
import random

import pytest

from tests.graphs import CPU, GraphBuilder
from tests.lowering.checks import keep_config
from tests.lowering.test_random_graphs import RUN_TIME, SHAPES, Source, step
from tf_autofuse.ir.dtypes import BOOL, FLOAT32, FLOAT64, INT32
from tf_autofuse.lowering import bodies, shared
from tf_autofuse.lowering.chunks import Signatures, chunks_of
from tf_autofuse.lowering.eligibility import Eligibility
from tf_autofuse.lowering.graph_view import GraphView
from tf_autofuse.lowering.plan import plan
from tf_autofuse.lowering.planner import straight

CONFIG = keep_config()


def outline(regions):
    return [(r.nodes, r.inputs, r.outputs, r.copies) for r in regions]


def same_plans(view_of, config=CONFIG, target="host"):
    """Asserts that the ways to plan the graph give the same; gives how many chunks were planned and met."""
    bodies.forget()
    apart, whole = plan(view_of(), config, target, shares=False), straight(view_of(), config, target)
    together = plan(view_of(), config, target)
    assert together.regions == apart.regions and together.operands == apart.operands
    assert together.told == apart.told
    # Nothing is lost by the cuts.
    assert outline(together.regions) == outline(whole.regions) and together.operands == whole.operands
    assert [d[:5] for d in together.decisions] == [d[:5] for d in whole.tell().decisions]
    return together


def framing_of(view, config=CONFIG, target="host"):
    chunks = chunks_of(view, Eligibility(view, config, target, {}), Signatures())
    return shared._Framing(view, chunks)


def keys_of(view):
    framing = framing_of(view)
    frames = [framing.frame(number) for number in range(len(framing.chunks.members))]
    return [framing.key(frame) for frame in framing.in_order(frames)]


# Random layers, several times each.


def random_layers(numbers, values, layers):
    g, tensors, real = GraphBuilder(), [], {}

    def add(t, actual):
        tensors.append(t)
        real[t] = actual

    first = Source(numbers[:40])
    for i in range(2 + first.pick(range(2))):
        dims = first.pick(SHAPES)
        actual = tuple(values[d] if isinstance(d, str) else d for d in dims)
        add(g.arg("x%d" % i, first.pick((FLOAT32, FLOAT32, INT32)), dims), actual)
    for _ in range(layers):
        source = Source(numbers)
        for _ in range(4 + source.pick(range(14))):
            step(g, source, tensors, real, add)
            a = source.pick(tensors[-5:])
            kind = source.pick(("", "", "reduce", "two readers"))
            if kind == "reduce" and real[a] and g.dtype(a) is not BOOL:
                axis = source.pick(range(len(real[a])))
                actual = tuple(1 if i == axis else d for i, d in enumerate(real[a]))
                add(g.reduce("Max", a, [axis], keep_dims=True), actual)
            elif kind == "two readers":
                add(g.outside(a, source.pick(tensors)), real[a])
        if source.pick((1, 1, 0)):
            a = source.pick(tensors[-3:])
            add(g.outside(a), real[a])
        del tensors[:-source.pick((3, 4, 8))]
    for t in {first.pick(tensors) for _ in range(2)} | {tensors[-1]}:
        g.ret(t)
    return g


@pytest.mark.parametrize("seed", range(5))
def test_random_layers(seed):
    rng = random.Random(seed)
    for _ in range(8):
        numbers = [rng.randrange(1 << 16) for _ in range(rng.randrange(40, 200))]
        threshold, size = rng.choice((1, 1, 2)), rng.choice((64, 5))
        config = keep_config(recomputation_threshold=threshold, max_fusion_size=size)
        values, layers = rng.choice(RUN_TIME), rng.choice((1, 2, 3, 4))
        same_plans(random_layers(numbers, values, layers).view, config)


# A tower of layers, and what it may differ in.


def layer(g, x, *, dims=("b", 8), op="Add", value=0.5, dtype=FLOAT32, alpha=0.1, second=False, reads="",
          constant_read=False, control=(), followed=False, mixed="b", device=CPU,
          apart=False, elements=(1.0,) * 8, extent=8):
    """outside -> four light ops. Each argument is one thing that a plan depends on."""
    g.device = device
    y = g.outside(x, dims=dims)
    z = g.arg("z%d" % len(g.names), dtype, (mixed, extent))
    constant = g.const(value, dtype)
    a = g.op(op, y, z, control=control)
    if apart:
        g.arg("between%d" % len(g.names), FLOAT32, ())
    b = g.op("LeakyRelu", a, attrs={"alpha": alpha})
    c = g.op("Mul", b, constant)
    d = g.op("Maximum", c, b if second else g.const(elements, dtype))
    if reads:
        g.ret({"first": a, "second": b}[reads])
    if constant_read:
        g.ret(constant)
    if followed:
        g.node("NoOp", control=(b,))
    return d


def tower(*changes, base=None):
    g = GraphBuilder()
    x = g.arg("x", (base or {}).get("dtype", FLOAT32), ("b", 8))
    for change in changes:
        x = layer(g, x, **dict(base or {}, **change))
    g.ret(g.outside(x))
    return g


CHANGES = {
    "the op": {"op": "Sub"},
    "an attribute": {"alpha": 0.2},
    "the sign of a zero attribute": {"alpha": -0.0},
    "a constant's value": {"value": 0.25},
    "the sign of a zero": {"value": -0.0},
    "whether a constant is uniform": {"elements": (1.0,) * 7 + (2.0,)},
    "which tensor is read": {"second": True},
    "a reader outside": {"reads": "first"},
    "what a reader outside reads": {"reads": "second"},
    "another reader of a constant": {"constant_read": True},
    "a control edge from it": {"followed": True},
    "which run-time dims are equal": {"mixed": "c"},
    "whether a dim is known": {"mixed": 4},
    "an extent": {"extent": 1},
    "the place of a node": {"apart": True},
    "the device": {"device": "/job:localhost/replica:0/task:0/device:CPU:1"},
}
#: What the changes are made to, where it is not a plain layer.
BASES = {
    "what a reader outside reads": {"reads": "first"},
    "the sign of a zero attribute": {"alpha": 0.0},
    "the sign of a zero": {"value": 0.0},
}


def test_equal_layers_are_planned_once(monkeypatch):
    planned = []
    monkeypatch.setattr(shared, "_planned", lambda *a, real=shared._planned: planned.append(a) or real(*a))
    g = tower({}, {}, {}, {})
    result = same_plans(g.view)
    assert len(planned) == 1
    assert len(result.regions) == 4 and len({id(r.emitted.body) for r in result.regions}) == 1
    assert [r.name.split("_")[2] for r in result.regions] == ["0", "1", "2", "3"]
    plan(tower({}, {"op": "Sub"}, {}).view(), CONFIG, "host")
    assert len(planned) == 2  # what another graph has in common with this one is known


@pytest.mark.parametrize("name", CHANGES)
def test_a_key_sees(name):
    base = BASES.get(name)
    equal = keys_of(tower({}, {}, base=base).view())
    assert len(set(equal)) == 1
    for changes in (({}, CHANGES[name]), (CHANGES[name], {})):
        g = tower(*changes, base=base)
        assert len(set(keys_of(g.view()))) > 1
        same_plans(g.view)


def test_a_key_sees_dtypes_and_control_edges_into_it():
    assert set(keys_of(tower({}, base={"dtype": FLOAT64}).view())).isdisjoint(keys_of(tower({}).view()))
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, ("b", 8))
    x = layer(g, x)
    y = layer(g, x, control=(g.arg("first", FLOAT32, ()),))
    g.ret(g.outside(y))
    assert len(set(keys_of(g.view()))) == 2
    same_plans(g.view)


@pytest.mark.parametrize("column", ("liveness", "hint", "binding"))
def test_a_key_sees_what_is_known_elsewhere(column):
    view = tower({}, {}).view()
    framing = framing_of(view)
    frames = [framing.frame(number) for number in (0, 1)]
    assert framing.key(frames[0]) == framing.key(frames[1])
    if column == "liveness":
        framing.lives = True
        framing.alive = [frozenset([("merge", 0)]) if node in frames[1].members[2:] else frozenset()
                         for node in range(len(view))]
        frames = [framing.frame(number) for number in (0, 1)]
    elif column == "hint":
        before = framing.key(frames[1])
        view.symbols[0]["hint"] = 7
        assert framing.key(frames[1]) != before
        return
    else:
        from tf_autofuse.symbolic.size import symbol
        framing.first[1] = 0
        before = framing.key(frames[1])
        framing.bound[0] = symbol("d1") * 4
        frames[1] = framing.frame(1)
        assert framing.key(frames[1]) != before
        framing.bound[0] = None
        assert framing.key(frames[1]) is None
        return
    assert framing.key(frames[0]) != framing.key(frames[1])


BLIND = {
    "signatures": ("the op", lambda m: m.setattr(Signatures, "add", lambda self, key, kind: (
        self.kinds.append(kind), self.numbers.setdefault(key, 0))[1])),
    "constants": ("a constant's value", lambda m: m.setattr(shared._Framing, "constant", lambda *_: ())),
    "readers": ("what a reader outside reads", lambda m: m.setattr(shared._Framing, "reader", lambda *_: ())),
    "dims": ("whether a dim is known", lambda m: m.setattr(shared._Shapes, "of", lambda self, shapes: (
        [self.of_dim(-d - 1) for c in shapes for d in c if d < 0], 0)[1:])),
}


@pytest.mark.parametrize("name", BLIND)
def test_a_blind_key_is_noticed(name, monkeypatch):
    change, blind = BLIND[name]
    blind(monkeypatch)
    with pytest.raises((AssertionError, IndexError, KeyError)):
        test_a_key_sees(change)


# What has to stay in one chunk.


def test_a_residual_is_cut_and_a_branch_is_not():
    g = GraphBuilder()
    x = g.op("Relu", g.arg("x", FLOAT32, ("b", 8)))
    y = g.op("Add", g.outside(g.op("Neg", x)), x)  # a path leads through outside: two chunks
    z = g.op("Abs", y)
    branch = g.op("Neg", g.arg("w", FLOAT32, (8,)))
    g.ret(g.op("Mul", g.outside(z), branch))  # none does: one chunk
    chunks = framing_of(g.view()).chunks
    home = dict(zip(g.names, chunks.home))
    assert home["relu_0"] == home["neg_0"] != home["add_0"] == home["abs_0"]
    assert home["neg_1"] == home["mul_0"] != home["abs_0"]
    same_plans(g.view)


def test_what_lies_between_the_parts_of_a_chunk_is_put_into_it():
    g = GraphBuilder()
    x, w = g.arg("x", FLOAT32, (8,)), g.arg("w", FLOAT32, (8,))
    a = g.op("Neg", x)
    first = g.op("Add", a, g.outside(w))  # not behind what reads a: may be fused with it
    g.ret(g.outside(g.op("Abs", g.outside(g.op("Abs", a)))), first)
    chunks = framing_of(g.view()).chunks
    assert chunks.home[g.names.index("neg_0")] == chunks.home[g.names.index("add_0")]
    same_plans(g.view)


def test_models():
    pytest.importorskip("tensorflow")
    from bench.analysis_speed import graph_def
    from tf_autofuse.frontend import plugin

    columns = plugin.native().graph_columns(graph_def(8))
    result = same_plans(lambda: GraphView.from_columns(columns))
    assert len(result.regions) == 24
