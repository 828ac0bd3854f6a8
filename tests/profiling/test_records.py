"""PROF_* folders: written, read back, refused where damaged."""

import json

import numpy as np
import pytest

from tests.profiling import samples
from tf_autofuse.profiling.records import NodeFacts, ProfileError, profiles_below, read


def test_a_folder_reads_back_as_written(tmp_path):
    writer = samples.write(tmp_path / "out")
    profile = read(writer.folder)
    expected = [
        o._replace(run=r)
        for r, run in enumerate(
            (samples.fused_run(10**9), samples.fused_run(2 * 10**9), samples.plain_run(50 * 10**9))
        )
        for o in run
    ]
    assert list(profile.ops) == expected and writer.runs == 3
    assert (
        profile.kernels[samples.FUSED].origin == ("Abs", "Add", "Relu")
        and profile.info["soc"] == "Ascend910B4-1"
    )
    before = (writer.folder / "kernels.json").stat().st_mtime_ns
    writer.add_kernels({samples.FUSED: profile.kernels[samples.FUSED]})
    assert (writer.folder / "kernels.json").stat().st_mtime_ns == before


def test_what_nodes_say_of_themselves(tmp_path):
    writer = samples.write(tmp_path)
    assert read(writer.folder).facts("Abs") == NodeFacts()
    axes = np.array([[1, -2]], np.int32)
    attrs = {"keep_dims": True, "T": 1, "ksize": [1, 3, 3, 1], "alpha": 0.5, "padding": "SAME"}
    facts = NodeFacts(attrs, {1: axes})
    writer.add_nodes({"sum": facts, "none": NodeFacts()})
    writer.add_nodes({"sum": NodeFacts()})  # the first one stays
    found = read(writer.folder)
    assert found.facts("sum").attrs == facts.attrs and list(found.facts("sum").constants) == [1]
    value = found.facts("sum").constants[1]
    assert value.dtype == axes.dtype and np.array_equal(value, axes)
    assert found.facts("none") == found.facts("other") == NodeFacts()


def test_folders_are_numbered_and_found(tmp_path):
    folders = [samples.write(tmp_path).folder for _ in range(3)]
    assert [f.name[:11] for f in folders] == ["PROF_000001", "PROF_000002", "PROF_000003"]
    assert all(len(f.name.split("_")[2]) == 17 and len(f.name.split("_")[3]) == 8 for f in folders)
    assert profiles_below(tmp_path) == folders and profiles_below(folders[1]) == [folders[1]]
    for empty in (tmp_path / "nothing", folders[0] / "other"):
        with pytest.raises(ProfileError, match="holds no profile"):
            profiles_below(empty)


def test_a_cut_last_line_is_left_out(tmp_path):
    folder = samples.write(tmp_path, fused=1, plain=0).folder
    path = folder / "ops.jsonl"
    whole = path.read_text()
    path.write_text(whole + whole.split("\n")[0][:40])
    assert len(read(folder).ops) == 3
    path.unlink()
    assert read(folder).ops == ()


@pytest.mark.parametrize(
    "change, word",
    [
        (lambda line: line[:-3], ":2 is damaged"),
        (lambda line: line.replace('"op"', '"opp"'), ":2 is damaged"),
        (lambda line: line.replace('"run":0', '"run":"x"'), ":2 is damaged"),
        (lambda line: line.replace("[128]", '["x"]'), ":2 is damaged"),
    ],
)
def test_damaged_lines_are_named(tmp_path, change, word):
    path = samples.write(tmp_path, fused=1, plain=0).folder / "ops.jsonl"
    lines = path.read_text().split("\n")
    lines[1] = change(lines[1])
    path.write_text("\n".join(lines))
    with pytest.raises(ProfileError, match=word):
        read(path.parent)


@pytest.mark.parametrize(
    "name, text",
    [
        ("info.json", '{"version": 99}'),
        ("info.json", "[]"),
        ("info.json", "{"),
        ("kernels.json", "x"),
        ("nodes.json", "x"),
        ("nodes.json", json.dumps({"n": {"attrs": {}}})),
        ("nodes.json", json.dumps({"n": {"attrs": {}, "constants": {"1": {"dtype": "?q", "dims": []}}}})),
        ("kernels.json", json.dumps({"k": {"origin": []}})),
        ("kernels.json", json.dumps({"k": {"origin": [], "asc_graph": "*"}})),
    ],
)
def test_damaged_files_are_named(tmp_path, name, text):
    folder = samples.write(tmp_path).folder
    (folder / name).write_text(text)
    with pytest.raises(ProfileError, match=name):
        read(folder)
