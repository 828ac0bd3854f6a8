"""Kept answers: what tells graphs apart, and that a kept answer is the one that was given."""
import copy

import numpy as np
import pytest

from tests.graphs import GraphBuilder
from tf_autofuse.build.kernels import BuildSettings, open_cache
from tf_autofuse.config import Config
from tf_autofuse.frontend import answers
from tf_autofuse.frontend.answers import Answer
from tf_autofuse.ir.dtypes import FLOAT32
from tf_autofuse.skip_list import SkipList


@pytest.fixture(autouse=True)
def forgetful():
    answers.forget()
    yield
    answers.forget()


def columns():
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, ("b", 8))
    y = g.op("Add", x, g.const([0.5, 1.5]), dims=("b", 8))
    g.ret(g.op("LeakyRelu", y, attrs={"alpha": 0.25, "T": 1}))
    made = g.columns()
    made["devices"] = list(made["devices"])
    return made


CONFIG = Config()


def key(changed=None, config=CONFIG, target="host"):
    return answers.key_of(changed or columns(), config, target)


def test_equal_graphs_have_equal_keys_whatever_objects_they_are_of():
    first = columns()
    second = copy.deepcopy(first)
    second["names"] = ["".join(list(name)) for name in second["names"]]
    assert key(first) == key(second) == key(first)


def changed_columns():
    """(what, columns with one thing changed) for every column and for what stands inside."""
    base = columns()
    for name in base:
        if name not in ("constants", "symbols"):
            for i in range(len(base[name])):
                made = copy.deepcopy(base)
                made[name] = list(made[name])
                made[name][i] = {"attrs": {"other": 1}, "names": "other", "ops": "Other", "devices": "other",
                                 "frames": "loop", "stateful": not base["stateful"][i]}.get(name, ((77, 1),))
                yield "%s %d" % (name, i), made
    for what, value in (("value", np.float32([0.5, 1.25])), ("zero", np.float32([0.5, -0.0])),
                        ("shape", np.float32([[0.5, 1.5]])), ("dtype", np.int32([0, 1]))):
        made = copy.deepcopy(base)
        made["constants"][next(iter(made["constants"]))] = value
        yield "constant " + what, made
    made = copy.deepcopy(base)
    made["symbols"][0]["hint"] = 5
    yield "hint", made
    made = copy.deepcopy(base)
    made["attrs"][3]["alpha"] = 0.5
    yield "attribute", made


def test_every_column_is_in_the_key():
    keys = {"as it is": key()}
    for what, made in changed_columns():
        keys[what] = key(made)
    assert len(keys) > 40
    assert len(set(keys.values())) == len(keys)


@pytest.mark.parametrize("changes", [
    {"max_fusion_size": 3}, {"disable_lifting": True}, {"soc_version": "Ascend910B1"},
    {"precision_mode": "force_fp16"},
    {"skip_list": SkipList(names=("y*",))}, {"skip_list": SkipList(types=("Abs",))},
], ids=str)
def test_settings_are_in_the_key(changes):
    assert key(config=Config(**changes)) != key()
    assert key(target="ascend") != key()


def test_stamps_are_in_the_key(monkeypatch):
    before = key()
    for name in ("project_stamp", "compiler_stamp"):
        with monkeypatch.context() as patch:
            patch.setattr(answers, name, lambda *_: "another")
            assert key() != before


def test_no_key_where_every_stage_is_to_run_or_something_cannot_be_told():
    assert key(config=Config(strict=True)) is None
    for settings in ({"codegen_compile_debug": True}, {"enable_pgo": True}, {"replace_kernel": "folder"},
                     {"force_tiling_case": "1"}, {"force_schedule_result": 0}):
        assert key(config=Config(**settings)) is None, settings
    odd = columns()
    odd["attrs"][0]["odd"] = object()
    assert key(odd) is None


@pytest.fixture
def kept(tmp_path):
    """(config, key, answer) of an answer that is kept with its kernel."""
    config = Config(cache_dir=str(tmp_path))

    def write(folder):
        (folder / "kernel.so").write_text("a library")
        return {"name": "kernel"}

    entry, _ = open_cache(BuildSettings.of(config)).find_or_make("kernel", "ab" * 16, write)
    edit = {
        "name": "autofuse_pointwise_0_Add_LeakyRelu",
        "op": "AscBackend",
        "nodes": [1, 2, 3],
        "inputs": [(0, 0)],
        "outputs": [(3, 0)],
        "attrs": {"kernel_key": "ab" * 16, "asc_graph": b"\x00\xff"},
    }
    library = str(entry.file("kernel.so"))
    meta = {"library": library, "name": "kernel", "input_ranks": [2], "forward": [[0, 0]]}
    answer = Answer([edit], [("ab" * 16, meta)])
    answers.keep("cd" * 16, answer, config)
    return config, "cd" * 16, answer


def test_what_edits_of_one_kernel_share_is_written_once_and_read_back():
    body = bytes(range(256)) * 40
    tails = [("k", body + b"first"), ("k", body + b"second"), ("other", body), ("k", body[:-1]), ("k", b"")]
    edits = [{"name": str(i), "attrs": {"kernel_key": key, "asc_graph": graph}}
             for i, (key, graph) in enumerate(tails)]
    for several in (edits, edits[:3], edits[:1], []):
        answer = Answer(several, [("k", {"library": "x"})])
        assert answers._read(answers._written(answer)) == tuple(answer)
    assert len(answers._written(Answer(edits[:2], []))) < 1.1 * len(body)


def test_a_kept_answer_is_found_here_and_by_another_process(kept):
    config, name, answer = kept
    assert answers.find(name, config) is answer
    answers.forget()
    found = answers.find(name, config)
    assert found == answer and found is not answer
    assert answers.find("ef" * 16, config) is None


@pytest.mark.parametrize("what", ["kernel.so", answers.FILE])
def test_nothing_damaged_is_taken(kept, what, tmp_path):
    config, name, _ = kept
    answers.forget()
    (path,) = tmp_path.glob("**/" + what)
    path.write_bytes(b"x" * path.stat().st_size)
    assert answers.find(name, config) is None


def test_a_kernel_that_is_gone_takes_the_answer_with_it(kept, tmp_path):
    config, name, _ = kept
    (path,) = tmp_path.glob("**/kernel.so")
    path.unlink()
    assert answers.find(name, config) is None


def test_few_are_remembered(tmp_path):
    config = Config(cache_dir=str(tmp_path / "nothing"), build="cached")
    for i in range(answers.MOST_ANSWERS + 5):
        answers._remember("%032x" % i, Answer([], []))
    assert len(answers._known) == answers.MOST_ANSWERS
    assert answers.find("%032x" % (answers.MOST_ANSWERS + 4), config) is not None
