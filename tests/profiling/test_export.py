"""op_summary, timeline and the command that writes them."""

import csv
import itertools
import json

import pytest
from click.testing import CliRunner

from tests.profiling import samples
from tf_autofuse.cli import cli
from tf_autofuse.machine import machine_for
from tf_autofuse.profiling import op_summary, timeline
from tf_autofuse.profiling.export import export
from tf_autofuse.profiling.records import ProfileError, read

#: What users of msprof look for.
MSPROF = (
    "Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us),Block Dim,Input Shapes,"
    "Input Data Types,Input Formats,Output Shapes,Output Data Types,Output Formats,"
    "aiv_time(us),aiv_vec_time(us),aiv_vec_ratio,aiv_mte2_time(us),"
    "aiv_mte2_ratio,aiv_mte3_time(us),aiv_mte3_ratio,aic_mac_time(us),aic_mac_ratio,aic_mte1_time(us),"
    "aic_mte1_ratio,aic_mte2_time(us),aic_mte2_ratio,aic_fixpipe_time(us),aic_fixpipe_ratio"
).split(",")


def rows_of(item):
    with open(str(item.summary), newline="") as stream:
        return list(csv.DictReader(stream))


def test_op_summary(tmp_path):
    samples.write(tmp_path)
    (item,) = export(tmp_path)
    rows = rows_of(item)
    assert set(MSPROF) <= set(rows[0]) and list(rows[0]) == [c.name for c in op_summary.COLUMNS]
    measured = [r for r in rows if r["Time Source"] == op_summary.MEASURED]
    modelled = [r for r in rows if r["Time Source"] == "modelled for Ascend910B4-1"]
    assert (len(measured), len(modelled)) == (item.measured, item.modelled) == (11, 5)
    assert len(rows) == 16 and item.missing == (("Unique", 1),)

    first = measured[1]
    assert first["Op Name"] == samples.FUSED and first["Original Ops"] == "Abs;Add;Relu"
    assert (
        first["Task Type"] == "HOST_CPU"
        and first["Task Duration(us)"] == "9.000"
        and first["aiv_time(us)"] == ""
    )
    assert first["Input Shapes"] == '"128;192,128"' and first["Input Data Types"] == "FLOAT;FLOAT"
    assert (
        first["Task Wait Time(us)"] == "1.500" and first["Model ID"] == "0" and measured[4]["Model ID"] == "1"
    )
    assert (
        measured[0]["Input Shapes"] == "" and measured[8]["Task Wait Time(us)"] == "0.000"
    )  # another thread

    kernel = modelled[0]
    assert kernel["Op Name"] == samples.FUSED and kernel["Task Type"] == "AI_VECTOR_CORE"
    assert kernel["Task Duration(us)"] == kernel["aiv_time(us)"] and float(kernel["aiv_mte2_time(us)"]) > 0
    assert int(kernel["Block Dim"]) > 1 and kernel["OP State"] == "static"
    assert float(kernel["aiv_mte2_ratio"]) == pytest.approx(
        float(kernel["aiv_mte2_time(us)"]) / float(kernel["aiv_time(us)"]), abs=2e-3
    )
    assert [r["Op Name"] for r in modelled[1:]] == ["Abs", "Add", "Relu", "MatMul"]
    assert kernel["aicore_time(us)"] == "0.000" and kernel["cube_utilization(%)"] == "0.000"
    product = modelled[4]
    assert product["Task Type"] == "AI_CORE" and product["aiv_time(us)"] == "0.000"
    assert product["aicore_time(us)"] == product["Task Duration(us)"]
    assert 0 < float(product["aic_mac_time(us)"]) < float(product["aicore_time(us)"])
    assert 0 < float(product["cube_utilization(%)"]) < 100 and int(product["Block Dim"]) <= 20
    ends = 0.0
    for row in modelled:  # one kernel after the other
        assert float(row["Task Start Time(us)"]) == pytest.approx(ends, abs=2e-3)
        ends = float(row["Task Start Time(us)"]) + float(row["Task Duration(us)"])
    assert item.microseconds == pytest.approx(ends, abs=5e-3)


def test_another_chip(tmp_path):
    folder = samples.write(tmp_path).folder
    (default,), (fast,) = export(folder), export(folder, "910B1")
    assert fast.microseconds < default.microseconds
    assert {r["Time Source"] for r in rows_of(fast)} == {op_summary.MEASURED, "modelled for Ascend910B1"}
    with pytest.raises(ValueError, match="unknown SoC"):
        export(folder, "910Z")


def test_kinds_of_runs(tmp_path):
    profile = read(samples.write(tmp_path, fused=3, plain=2).folder)
    kinds = op_summary.kinds_of_runs(profile)
    assert [k.runs for k in kinds] == [(0, 1, 2), (3, 4)]
    assert [o.name for o in kinds[1].ops] == ["Abs", "Add", "Relu", "MatMul", "Unique"]
    assert kinds[0].ops[0].run == 2


def test_timeline(tmp_path):
    (item,) = export(samples.write(tmp_path).folder)
    with open(str(item.timeline)) as stream:
        events = json.load(stream)["traceEvents"]
    assert all({"name", "ph", "pid", "tid"} <= set(e) for e in events)
    lanes = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert [lanes[timeline.CHIP, i] for i in range(4)] == [
        "kernels",
        "MTE2 (GM to UB)",
        "V (vector)",
        "MTE3 (UB to GM)",
    ]
    bars = [e for e in events if e["ph"] == "X"]
    assert all(e["dur"] >= 0 and e["ts"] >= 0 and (e["pid"], e["tid"]) in lanes for e in bars)
    assert len([e for e in bars if e["pid"] == timeline.HOST]) == 11
    chip = [e for e in bars if e["pid"] == timeline.CHIP and e["name"] == samples.FUSED]
    assert len(chip) == 4 and all(e["args"]["original ops"] == ["Abs", "Add", "Relu"] for e in chip)
    assert max(e["dur"] for e in chip) == chip[0]["dur"]  # no pipe is longer than its kernel
    assert {e["args"]["time"] for e in chip} == {"modelled for Ascend910B4-1"}
    assert {e["tid"] for e in bars if e["pid"] == timeline.HOST} == {0, 1}


def test_a_timeline_is_what_viewers_take(tmp_path):
    """Chrome's trace format, as Perfetto imports it: complete events and metadata only, whole numbers for
    lanes, finite times, and bars of a lane that lie apart or one within the other."""
    (item,) = export(samples.write(tmp_path, fused=3, plain=3).folder)
    with open(str(item.timeline)) as stream:
        trace = json.load(stream, parse_constant=lambda word: pytest.fail("%s is no JSON" % word))
    assert trace["displayTimeUnit"] in ("ms", "ns") and set(trace) == {"displayTimeUnit", "traceEvents"}
    lanes = {}
    for event in trace["traceEvents"]:
        assert event["ph"] in ("X", "M") and type(event["pid"]) is type(event["tid"]) is int
        assert isinstance(event["name"], str) and isinstance(event["args"], dict)
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name") and event["args"]["name"]
            continue
        assert event["ts"] >= 0 and event["dur"] >= 0 and isinstance(event["cat"], str)
        lanes.setdefault((event["pid"], event["tid"]), []).append((event["ts"], event["ts"] + event["dur"]))
    assert len(lanes) >= 8
    for bars in lanes.values():
        bars.sort()
        assert all(a[1] <= b[0] + 1e-9 or b[1] <= a[1] for a, b in zip(bars, bars[1:]))


def test_bars_end_where_the_next_begins():
    """Rounding starts and lengths apart would make them overlap."""
    row = op_summary.Row(samples.op("a", "Relu", 0, 1), 0.0, 0.0, 0.0, "", (), None, 0)
    length = 0.0657
    starts = list(itertools.accumulate([0.0] + [length] * 199))
    bars = [timeline._bar(row, 1, 0, start, length) for start in starts]
    assert all(a["ts"] + a["dur"] <= b["ts"] + 1e-9 for a, b in zip(bars, bars[1:]))
    apart = [round(start, 3) + round(length, 3) for start in starts]
    assert any(end > bar["ts"] + 1e-9 for end, bar in zip(apart, bars[1:]))


def test_an_empty_profile(tmp_path):
    (item,) = export(samples.write(tmp_path, fused=0, plain=0).folder)
    assert (item.measured, item.modelled, rows_of(item)) == (0, 0, [])


def test_the_command(tmp_path):
    folder = samples.write(tmp_path).folder
    done = CliRunner().invoke(cli, ["msprof", "--export=on", "--output=%s" % folder])
    assert done.exit_code == 0 and "11 rows measured on the host, 5 modelled" in done.output
    assert "not modelled: Unique x1" in done.output
    assert len(list((folder / "mindstudio_profiler_output").iterdir())) == 2
    for arguments, word in (
        (["--output=%s" % (tmp_path / "none")], "holds no profile"),
        (["--export=off", "--output=x"], "--export=on"),
        (["--soc=1", "--output=%s" % folder], "unknown SoC"),
    ):
        done = CliRunner().invoke(cli, ["msprof"] + arguments)
        assert done.exit_code == 2 and word in done.output
    (folder / "info.json").write_text("{")
    with pytest.raises(ProfileError):
        export(folder)
    assert machine_for("").soc == "Ascend910B4-1"
