"""Dumps at schedule time: scripts that build a graph again, and where everything is written."""

import os
import types

import pytest

from tests.ascir_api.graphs import concatenated, fresh, pointwise, reduced, wrapped
from tests.ascir_api.test_tools import toy
from tf_autofuse.ascir_api import functional as f
from tf_autofuse.ascir_api import graph_scripts
from tf_autofuse.ascir_api.expression_text import parse
from tf_autofuse.ascir_api.graphs import state_of


def again(pyautofuse, monkeypatch, graph):
    """The graph that the script of `graph` builds."""
    monkeypatch.setitem(__import__("sys").modules, "autofuse.pyautofuse", pyautofuse)
    monkeypatch.setitem(__import__("sys").modules, "autofuse", types.ModuleType("autofuse"))
    scope = {"__name__": "script"}
    exec(compile(graph_scripts.script_of(state_of(graph)), "script", "exec"), scope)
    return scope["graph"]


def rich(ascir):
    """Constants, attributes, several Stores of one Output, other compute types, an unlinked input."""
    graph = fresh(ascir)
    s0 = graph.create_size("s0")
    axes = [graph.create_axis("z0", ascir.Max(s0, 3) // 2)]
    x = f.Load(graph, f.Data(graph, dtype=1), offset=s0 * 2 - 5, axis=axes)
    y = f.LeakyRelu(graph, x, negative_slope=0.1, axis=axes)
    y = f.Add(graph, y, f.Scalar(graph, dtype=1, value='"11.1"\\'), axis=axes)
    stores = [f.Store(graph, y, offset=n, axis=axes) for n in (0, s0 % 7)]
    f.Output(graph, stores)
    loose = ascir.ops.Mul("loose")
    loose.x2 = x
    loose.attr.api.compute_type = "broadcast"
    return graph


@pytest.mark.parametrize("make", [toy, pointwise, reduced, concatenated, rich])
def test_a_script_builds_the_same_graph(pyautofuse, ascir, monkeypatch, make):
    graph = make(ascir)
    text = ascir.utils.debug_str(graph)
    assert ascir.utils.debug_str(again(pyautofuse, monkeypatch, graph)) == text


def test_split_in_a_script(pyautofuse, ascir, monkeypatch, on_5102):
    graph = fresh(ascir)
    axes = [graph.create_axis("z0", 7)]
    split = ascir.ops.Split("split", 2)
    split.x = f.Load(graph, f.Data(graph, dtype=0), axis=axes)
    split.infer_dtype()
    f.Frexp(graph, f.Abs(graph, split.y[1], axis=axes), axis=axes)
    assert ascir.utils.debug_str(again(pyautofuse, monkeypatch, graph)) == ascir.utils.debug_str(graph)


@pytest.mark.parametrize(
    "text",
    [
        "s0",
        "-20",
        "Rational(1 , 3)",
        "(100 + s0)",
        "(s0 - (2 * s1))",
        "(s0 / (s1))",
        "((1 + s0) * 2)",
        "(s1 * s1)",
        "Pow(s0, -1)",
        "Pow(2, s0)",
        "Sqrt(s0)",
        "Mod((16 + s0), s1)",
        "Floor((Rational(1 , 16) * s0))",
        "(3 + Floor(s0))",
        "Max(Max(s0, s1), s2)",
        "Min(4, Max(1, s0))",
        "((-1 * s0) - s1)",
    ],
)
def test_expressions_as_code(ascir, text):
    scope = {"ascir": ascir, "symbol": lambda name: ascir.HintGraph("g").create_size(name)}
    made = ascir.SizeExpr(eval(graph_scripts.expression_code(parse(text)), scope))
    assert made.expression == text


def test_what_is_written(pyautofuse, ascir, monkeypatch, tmp_path):
    fuser = pyautofuse.Autofuser(pyautofuse.AutofuserOptions())
    monkeypatch.setenv("AUTOFUSE_DFX_FLAGS", "--codegen_compile_debug=true;--debug_dir=%s" % tmp_path)
    graph = pointwise(ascir)
    fuser.schedule(graph)
    folder = tmp_path / "autofuse_compile_debug" / ("ascgen_dump_pid_%d" % os.getpid()) / graph.get_name()
    names = sorted(p.name for p in folder.iterdir())
    assert [n.split("_")[0] for n in names] == ["ascgraph", "ascgraph", "ge", "ge", "py"]
    assert names[0].split("_")[1].isdigit() and len(names[0].split("_")[1]) == 5
    assert names[0].endswith("_before_schedule_0.txt") and names[1].endswith("_after_schedule_0.txt")
    report = (folder / names[0]).read_text()
    for part in (
        "=" * 80,
        "VIEW 1: Loop Execution",
        "VIEW 2: Graph Structure",
        "loops over (z0 z1)",
        "End of Dump",
    ):
        assert part in report

    failing = pointwise(ascir)
    state_of(failing).nodes[2].outputs[0].strides.pop()
    with pytest.raises(RuntimeError):
        fuser.schedule(failing)
    other = folder.parent / failing.get_name()
    assert [p.name for p in other.glob("*_failed_0.txt")]

    fused = wrapped(ascir)
    fuser.schedule(fused)
    assert len(list((folder.parent / "two").glob("py_code_*.py"))) == 2

    monkeypatch.setenv("AUTOFUSE_DFX_FLAGS", "--debug_dir=%s" % (tmp_path / "none"))
    fuser.schedule(pointwise(ascir))
    assert not (tmp_path / "none").exists()


def test_a_folder_that_cannot_be_written(pyautofuse, ascir, monkeypatch, tmp_path, caplog):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(
        "AUTOFUSE_DFX_FLAGS", "--codegen_compile_debug=true;--debug_dir=%s" % (tmp_path / "file")
    )
    fuser = pyautofuse.Autofuser(pyautofuse.AutofuserOptions())
    assert fuser.schedule(pointwise(ascir)).scheduled
    assert len([r for r in caplog.records if "was not written" in r.getMessage()]) <= 1
