"""The suite of benchmarks: its arithmetic, its documents, and that contenders are checked before they are
timed."""
import json
import sys

import numpy as np
import pytest

from bench import _documents
from bench.suite import backend_c, cases, harness, main, report, results, worker
from bench.suite.harness import Contender, Figure, Outcome, Settings, Worker

SMALLEST = {}
for _case in cases.MICRO:
    SMALLEST.setdefault(_case.c_function, _case)
HAND = Contender("C", "backend_c", {"threads": 1}, {}, sys.executable)


def figure(rounds, note="", noise=0.0):
    return harness.figure(list(rounds), 0.0, noise, 0.0, note)


@pytest.mark.parametrize("name", sorted(SMALLEST))
@pytest.mark.parametrize("threads", (1, 2))
def test_hand_written_c_computes_the_formula(name, threads):
    backend_c.prepare(SMALLEST[name].name, {"threads": threads})


def test_a_wrong_result_is_seen():
    case = SMALLEST["softmax"]
    inputs = cases.seeded_inputs(case)
    exact = case.formula(cases.numpy_functions, *[x.astype(np.float64) for x in inputs])
    cases.check(case, exact.astype(np.float32), inputs)
    with pytest.raises(AssertionError, match="softmax"):
        cases.check(case, exact * 1.01, inputs)


def test_inputs_are_the_same_everywhere_and_aligned():
    for case in SMALLEST.values():
        first, second = cases.seeded_inputs(case), cases.seeded_inputs(case)
        for a, b, (shape, dtype) in zip(first, second, case.inputs):
            assert (a == b).all() and a.shape == shape and a.dtype == dtype and a.ctypes.data % 64 == 0


def test_the_least_that_must_be_moved_counts_every_array_once():
    assert cases.BY_NAME["bias_relu [192,128]"].bytes == 4 * (128 + 2 * 192 * 128)
    assert cases.BY_NAME["half_chain [1024,1024]"].bytes == 2 * 3 * 1024 * 1024


def test_the_floor_is_taken_off_pair_by_pair():
    found = harness.round_of([5.0, 17.0, 6.0], [1.0, 12.0, 0.5])
    assert (found.left, found.floor) == (5.0, 1.0)
    assert harness.round_of([3.0], []) == (3.0, 0.0, 0.0)
    rounds = [harness.Round(4.0, 1.0, 0.1), harness.Round(6.0, 2.0, 0.3), harness.Round(5.0, 3.0, 0.2)]
    whole = harness._figure(rounds, {"first": 9.0, "note": "1 fused"})
    assert whole == Figure(5.0, 4.0, 6.0, 2.0, 0.2, [4.0, 6.0, 5.0], 9.0, "1 fused")


def test_microseconds_are_seen_on_a_floor_that_wobbles_by_more():
    """Work of 3 us on calls of 10 us whose speed changes within a round, with pauses now and then."""
    random = np.random.RandomState(0)
    drift = 1e-5 * (1 + 0.5 * np.sin(np.arange(2000) / 200))
    pauses = lambda: 1e-4 * (random.uniform(size=2000) < 0.02) + random.normal(0, 1e-6, 2000)
    found = harness.round_of(list(drift + 3e-6 + pauses()), list(drift + pauses()))
    assert abs(found.left - 3e-6) < 3 * found.noise < 1e-6
    nothing = harness.round_of(list(drift + pauses()), list(drift + pauses()))
    assert abs(nothing.left) < 3 * nothing.noise


def test_the_floor_goes_before_each_call():
    order = []
    answer = worker.timed(lambda: order.append("call"), lambda: order.append("floor"), 3)
    assert order == ["floor", "call"] * 3 and len(answer["seconds"]) == len(answer["floors"]) == 3
    assert worker.timed(lambda: None, None, 2)["floors"] == []


def test_ratios_are_taken_within_rounds():
    outcome = Outcome({"a": figure([1.0, 10.0, 4.0]), "b": figure([2.0, 20.0, 2.0])}, {"c": "no"})
    assert harness.ratio(outcome, "a", "b") == (0.5, 0.5, 2.0)
    assert harness.ratio(outcome, "a", "c") is None
    many = Outcome({"a": figure([1.0, 9.0, 3.0, 4.0, 2.0, 100.0, 5.0]), "b": figure([1.0] * 7)}, {})
    assert harness.ratio(many, "a", "b") == (4.0, 2.0, 9.0)


def test_what_cannot_be_seen_is_in_no_ratio():
    rounds = {"seen": figure([4.0, 5.0, 4.0, 6.0]), "partly": figure([0.2, 2.0, 2.0, 3.0], noise=0.2),
              "hardly": figure([0.2, 0.2, -2.0, 3.0], noise=0.2)}
    outcome = Outcome(rounds, {})
    assert harness.ratio(outcome, "seen", "partly") == (2.0, 2.0, 2.5)
    assert harness.ratio(outcome, "partly", "seen") == (0.5, 0.4, 0.5)
    assert harness.ratio(outcome, "hardly", "seen") is harness.ratio(outcome, "seen", "hardly") is None
    assert report.times_table({"x": outcome}, ("hardly", "seen"))[-1].startswith("| x | < 3e+05 | 4500000 |")


def test_tables():
    outcomes = {"x [2]": Outcome({"a": figure([4e-6]), "ours 2": figure([2e-6], "3 fused")}, {}),
                "model:M:64": Outcome({"a": figure([1e-6]), "ours 2": figure([2e-6])}, {"b": "ended"})}
    assert report.times_table(outcomes, ("a", "b", "ours 2"))[2:] == [
        "| x [2] | 4.0 |  | 2.0 |  | 3 fused |", "| M, batch 64 | 1.0 |  | 2.0 |  |  |"]
    assert report.ratios_table(outcomes, (("ours 2", "a"), ("ours 2", "b")))[2:] == [
        "| x [2] | 0.50 [0.50, 0.50] |  |", "| M, batch 64 | 2.00 [2.00, 2.00] |  |",
        "| geometric mean | 1.00 |  |"]
    assert report.missing_lines(outcomes, {"JAX": "gone"}) == ["- JAX: gone", "- model:M:64, b: ended"]
    streams = {"stream:add:32": Outcome({"C 1": figure([1e-6])}, {})}
    assert report.roofline_table(streams, {"stream:add:32": 50000})[-1] == "| add, 32 KiB an array | 50 |"


def test_bandwidth_is_a_share_of_the_addition_with_the_same_threads():
    add = Outcome({"C 1": figure([2e-3]), "C 2": figure([1e-3])}, {})
    cases_ = {"large": Outcome({"ours 1": figure([4e-3]), "ours 2": figure([4e-3])}, {}),
              "small": Outcome({"ours 1": figure([1e-6])}, {})}
    lines = report.bandwidth_table(cases_, {"large": 40 << 20, "small": 1000}, add, 40 << 20)
    assert lines[2:] == ["| large | 10.5 (50%) |  | 10.5 (25%) |  |"]


def test_documents_are_written_between_their_marks(tmp_path):
    path = tmp_path / "d.md"
    path.write_text("a\n<!-- begin t -->\nold\n<!-- end t -->\nb\n")
    _documents.replace(path, "t", ["1", "2"])
    assert path.read_text() == "a\n<!-- begin t -->\n1\n2\n<!-- end t -->\nb\n"
    with pytest.raises(ValueError, match="begin u"):
        _documents.replace(path, "u", [])


def test_results_come_back_and_a_case_is_replaced_as_a_whole(tmp_path):
    noted = figure([1e-6, 3e-6, 2e-6], "note", 1e-8)
    outcomes = {"x": Outcome({"a": noted, "b": figure([1.0])}, {"c": "no"}),
                "y": Outcome({"a": figure([2.0])}, {})}
    first = results.Results(outcomes, {"x": "one", "y": "one"}, {"d": "gone", "model:M": "broken"})
    path = tmp_path / "performance.json"
    assert results.load(path) == results.NONE
    results.save(path, first)
    assert results.load(path) == first and first.run_lines() == ["one"]
    second = results.Results({"x": Outcome({"d": figure([4.0])}, {}), "model:M:64": Outcome({}, {})},
                             {"x": "two", "model:M:64": "two"}, {"e": "lost"})
    both = results.merged(first, second)
    assert set(both.of(["y", "x", "z"])) == {"x", "y"} and set(both.outcomes["x"].figures) == {"d"}
    assert both.absent == {"e": "lost"}
    assert both.run_lines() == ["- one: y", "- two: model:M:64, x"]


def test_the_document_is_written_from_all_results(tmp_path):
    for name in ("performance.md",):
        (tmp_path / name).write_text((harness.ROOT / "docs" / name).read_text())
    names = [case.name for case in cases.MICRO[:2]]
    for name in names:
        main.write(results.Results({name: Outcome({"C 2": figure([2e-6]), "ours 2": figure([3e-6])}, {})},
                                   {name: "run of " + name}, {}), tmp_path)
    text = (tmp_path / "performance.md").read_text()
    assert all("| %s |" % n in text and "- run of %s: %s\n" % (n, n) in text for n in names)


def test_an_unknown_contender_is_refused_with_the_nearest():
    assert [c.name for c in harness.contenders(["C 2", "ours 1"])] == ["ours 1", "C 2"]
    with pytest.raises(ValueError, match="did you mean 'ours 2'"):
        harness.contenders(["our 2"])


def test_performance_document_has_all_marks():
    text = (harness.ROOT / "docs" / "performance.md").read_text()
    for name in ("machine", "micro times", "micro ratios", "roofline", "bandwidth", "model times",
                 "model ratios", "missing"):
        assert "<!-- begin %s -->" % name in text and "<!-- end %s -->" % name in text


def test_contenders_take_turns_and_who_fails_is_left_out():
    """Real workers: hand-written C, one that has no such case, and one whose process cannot start its
    backend."""
    chosen = [HAND, HAND._replace(name="lost", backend="backend_of_nothing")]
    workers = [Worker(c, {}) for c in chosen]
    try:
        outcome = harness.run_case("bias_relu [192,128]", workers, Settings(2, 1e-4, False, 5))
        nothing = harness.run_case("no such case", workers[:1], Settings(1, 1e-4, False, 5))
    finally:
        for worker in workers:
            worker.close()
    assert set(outcome.figures) == {"C"} and outcome.missing == {"lost": "the process ended"}
    assert len(outcome.figures["C"].rounds) == 2 and outcome.figures["C"].floor > 0
    assert not nothing.figures and "KeyError" in nothing.missing["C"]


def test_contenders_without_their_environment_are_named():
    workers, absent = harness.start([HAND._replace(name="peer", python=None)], {})
    assert not workers and "bench_environments" in absent["peer"]


def test_options_travel_as_json():
    for contender in harness.contenders():
        assert json.loads(json.dumps(contender.options)) == contender.options
