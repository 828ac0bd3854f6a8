"""Random graphs on the host target: what is drawn is verified, scheduled, generated, built and run; the bits
are those of numpy. Elementwise graphs of any dtype are those of tests/strategies.py; graphs of reductions are
drawn here on int32, whose sums are exact in any order."""
import random

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.codegen.host.conftest import MACHINE
from tests.codegen.test_end_to_end import same
from tests.strategies import arrays_for, dims_for, fused_graphs
from tf_autofuse.build.kernels import BuildSettings, KernelBinary, build_kernels
from tf_autofuse.codegen.targets import HOST
from tf_autofuse.ir.asc_graph import FusedGraph, KernelIO
from tf_autofuse.ir.builder import HintBuilder
from tf_autofuse.ir.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, INT32
from tf_autofuse.ir.evaluate import evaluate_fused
from tf_autofuse.ir.text import dump
from tf_autofuse.ir.verify import verify_fused
from tf_autofuse.runtime import registry

DTYPES = (FLOAT32, FLOAT16, INT32, BFLOAT16, BOOL)
NUMBERS = st.lists(st.integers(0, 99), min_size=8, max_size=8)
EXTENTS = (1, 2, 3, 5, 7, 8, 16, 17, 31, 33, 64, 65)
GRAPHS = 24


def reduction_graph(seed: int) -> FusedGraph:
    """Loads in several layouts, reductions over drawn axes, what comes back by broadcasts, several Stores."""
    draw = random.Random(seed)
    sizes = [draw.choice(EXTENTS) for _ in range(draw.randint(1, 4))]
    if all(s == 1 for s in sizes):
        sizes[-1] = 19
    b = HintBuilder("g", [("z%d" % i, s) for i, s in enumerate(sizes)])
    inputs = []

    def load():
        order = list(range(len(sizes)))
        if draw.random() < 0.3:
            draw.shuffle(order)
        extends = [1 if draw.random() < 0.8 else 0 for _ in sizes]
        strides, step = [0] * len(sizes), 1
        for axis in reversed(order):
            if extends[axis] and sizes[axis] > 1:
                strides[axis] = step
                step *= sizes[axis]
        inputs.append(KernelIO(INT32, tuple(sizes[a] if extends[a] else 1 for a in order)))
        return b.load(b.data(len(inputs) - 1, INT32), extends, strides=strides)

    full = tuple(1 for _ in sizes)
    values = [b.broadcast_to(load(), full) for _ in range(draw.randint(1, 3))]
    stored = []
    for _ in range(draw.randint(2, 7)):
        kind = draw.random()
        if kind < 0.45:
            axes = [a for a, s in enumerate(sizes) if draw.random() < 0.5]
            if any(sizes[a] > 1 for a in axes):
                reduced = b.reduce(draw.choice(("Sum", "Max", "Min", "Prod")), draw.choice(values), axes)
                if draw.random() < 0.6:
                    stored.append(reduced)
                if draw.random() < 0.5:
                    reduced = b.op("Neg", reduced)
                values.append(b.broadcast_to(reduced, full))
        else:
            values.append(b.op(draw.choice(("Add", "Sub", "Mul", "Maximum")), draw.choice(values),
                               draw.choice(values)))
    stored.append(values[-1])
    outputs = []
    for ref in dict.fromkeys(stored):
        b.store(ref, len(outputs))
        outputs.append(KernelIO(INT32, tuple(b.tensor(ref).repeats)))
    return FusedGraph("g%d" % seed, "reduce", tuple(inputs), tuple(outputs), (), (), (_read(b.graph()),))


def _read(graph):
    """The graph without values that nothing reads."""
    wanted = set()
    for n in reversed(graph.nodes):
        if n.type == "Output" or n.name in wanted:
            wanted.add(n.name)
            wanted.update(r.node for r in n.inputs)
    return graph.with_nodes(n for n in graph.nodes if n.name in wanted)


def _built(graphs, build_settings):
    for fused in graphs:
        verify_fused(fused)
    sources = [HOST.generate(f, HOST.schedule(f, MACHINE), MACHINE, None) for f in graphs]
    results = build_kernels(sources, BuildSettings(
        cache_dir=build_settings.cache_dir, extra_flags=("-Wall", "-Wextra", "-Werror")))
    for fused, result in zip(graphs, results):
        assert isinstance(result, KernelBinary), "%s\n%s" % (dump(fused), result)
    return results


def _check(fused, result, dims, seed):
    inputs = arrays_for(fused, dims, seed)
    with np.errstate(all="ignore"):
        expected = evaluate_fused(fused, inputs)
    outputs, info = registry.run(result, fused, inputs, MACHINE)
    for t, a, b in zip(fused.outputs, outputs, expected):
        assert same(t.dtype, a, b), "%s\n%s\n%s" % (dump(fused), dims, info)


@pytest.mark.once
@settings(max_examples=1, derandomize=True, deadline=None, phases=[Phase.generate], database=None,
          suppress_health_check=list(HealthCheck))
@given(st.lists(fused_graphs(input_dtypes=DTYPES), min_size=GRAPHS, max_size=GRAPHS, unique_by=dump),
       st.lists(NUMBERS, min_size=5, max_size=5))
def test_random_elementwise_graphs(build_settings, graphs, numbers):
    for fused, result in zip(graphs, _built(graphs, build_settings)):
        for seed, choices in enumerate(numbers):
            _check(fused, result, dims_for(fused, choices), seed)


@pytest.mark.once
def test_random_reductions(build_settings):
    graphs = [reduction_graph(seed) for seed in range(GRAPHS)]
    for fused, result in zip(graphs, _built(graphs, build_settings)):
        _check(fused, result, [io.dims for io in fused.inputs], 0)
