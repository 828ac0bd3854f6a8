"""Schedules compute what their HintGraph says, for every variant, tile and block split."""
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.schedule.family_graphs import gathering_samples, index_limit, moving_samples, reducing_samples
from tests.schedule.graphs import SAMPLES, samples, shapes
from tests.schedule.ub_machine import UbMachine, containers_at, reference
from tf_autofuse.ir.verify_impl import verify_impl
from tf_autofuse.machine import machine_for
from tf_autofuse.schedule.schedule import schedule
from tf_autofuse.symbolic.size import evaluate

MACHINE = machine_for()
#: Tilings with more tiles than this show nothing new and take long.
MOST_TILES = 150


def run_variant(sample, impl, values, tile, tiles_per_block, change=lambda inputs: inputs):
    """Checks one variant with one tiling; a variant whose conditions do not hold or whose shape is empty is
    skipped."""
    if not all(g.holds(values) for g in impl.conditions) or sample.output_elements(values) == 0:
        return False
    inputs = change(sample.inputs(values))
    expected = reference(sample.graph, values, inputs, sample.outputs)
    outputs = [np.zeros(e.size, e.dtype) for e in expected]
    env = dict(values, **{impl.tile_symbol: tile})
    if not all(evaluate(l.value, env) <= l.bound for l in impl.limits):
        return False
    total = int(np.prod([evaluate(impl.graph.axis(a).size, env) for a in impl.outer_axes]))
    if total > MOST_TILES:
        return False
    tiles_per_block = min(tiles_per_block, total)
    machine = UbMachine(impl, values, tile, tiles_per_block, -(-total // tiles_per_block),
                        containers_at(impl, values, tile), inputs, outputs)
    machine.run()
    for got, want, written in zip(outputs, expected, machine.written):
        np.testing.assert_array_equal(got, want)
        assert (written == 1).all()
    return True


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_samples(name):
    sample = SAMPLES[name]()
    ran = 0
    for chosen in ([{s: n for s in sample.symbols} for n in (0, 1, 2, 11)] if sample.symbols else [{}]) + (
            [{"s0": 3, "s1": 4, "s2": 1, "s3": 4}, {"s0": 3, "s1": 1, "s2": 3, "s3": 9},
             {"s0": 1, "s1": 6, "s2": 5, "s3": 1}] if sample.derived else []):
        values = sample.values(chosen)
        for impl in schedule(sample.graph, MACHINE):
            cut = evaluate(impl.graph.axis(impl.cut_axis).size, values)
            for tile in {1, 2, max(1, cut // 3), max(cut, 1)}:
                for per_block in (1, 3):
                    ran += run_variant(sample, impl, values, tile, per_block)
    assert ran > 0


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_random_graphs(data):
    sample = data.draw(samples())
    values = sample.values(data.draw(shapes(sample)))
    assume(sample.output_elements(values) < 3000)
    for impl in schedule(sample.graph, MACHINE):
        verify_impl(impl.graph)
        cut = evaluate(impl.graph.axis(impl.cut_axis).size, values)
        tile = data.draw(st.integers(1, max(cut, 1)))
        run_variant(sample, impl, values, tile, data.draw(st.integers(1, 4)))


def run_whole(data, sample, change=lambda inputs: inputs):
    """All variants of the nest that runs the graph as a whole, with a random tiling each."""
    values = sample.values(data.draw(st.fixed_dictionaries({s: st.integers(1, 9) for s in sample.symbols})))
    assume(sample.output_elements(values) < 3000)
    for impl in schedule(sample.graph, MACHINE):
        verify_impl(impl.graph)
        if impl.way == "whole":
            tile = data.draw(st.integers(1, max(evaluate(impl.cut_size, values), 1)))
            run_variant(sample, impl, values, tile, data.draw(st.integers(1, 4)), change)


@pytest.mark.parametrize("samples_of", [moving_samples, reducing_samples])
def test_random_moves_and_reductions(samples_of):
    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def run(data):
        run_whole(data, data.draw(samples_of()))

    run()


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_random_gathers(data):
    sample = data.draw(gathering_samples())
    run_whole(data, sample, lambda inputs: [inputs[0], inputs[1] % index_limit(sample)])
