"""Config: what each place may say, which place wins, and what is told of what was not taken as written."""
import dataclasses
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tf_autofuse.config import BAD_VALUE, COMES_LATER, CONFLICT, NO_EFFECT, PLACE, UNKNOWN, Config
from tf_autofuse.config_table import (
    FAMILIES,
    API,
    BY_FIELD,
    DFX,
    DFX_ROWS,
    ENVIRONMENT,
    ENVIRONMENT_ROWS,
    FLAG_ROWS,
    FLAGS,
    LATER,
    NPU_ONLY,
    PARAMETERS,
    ROWS,
)
from tf_autofuse.config_values import Bool, Bytes, Choice, Int, Pattern, Words

ALL_FLAGS = FLAG_ROWS + DFX_ROWS
WORD = st.text(string.ascii_letters + string.digits + "_./", min_size=1, max_size=12)


def values_of(row):
    """A strategy of values that the row allows."""
    kind = row.kind
    if row.field == "skip_node_names_cfg":
        return st.just("")  # a file: tests/test_skip_list.py
    if isinstance(kind, Bool):
        return st.booleans()
    if isinstance(kind, Int):
        return st.integers(kind.low, kind.high if kind.high is not None else 10**9)
    if isinstance(kind, Bytes):
        return st.integers(0, 2**40)
    if isinstance(kind, Choice):
        return st.sampled_from(kind.words)
    if isinstance(kind, Words):
        word = st.sampled_from(kind.words) if kind.words else WORD
        return st.lists(word, unique=True, max_size=4).map(tuple)
    if isinstance(kind, Pattern):
        return st.sampled_from(["", "3", "12_R", "g0_1", "g0_1_R,g12_3"])
    return WORD


def kinds(config):
    return [problem.kind for problem in config.problems]


def errors(config):
    return [problem for problem in config.problems if problem.is_error]


def test_defaults_are_the_tables():
    config = Config.from_sources({})
    assert config == Config() and config.problems == ()
    for row in ROWS:
        assert getattr(config, row.field) == row.default
        assert config.origins[row.field] == "default"


def test_a_config_is_immutable():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Config().max_fusion_size = 3


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_every_flag_is_read_however_it_is_written(data):
    rows = data.draw(
        st.lists(st.sampled_from(ALL_FLAGS), min_size=1, max_size=6, unique_by=lambda row: row.field)
    )
    texts, wanted = {FLAGS: "", DFX: ""}, {}
    blank = st.sampled_from(["", " ", "  "])
    for row in rows:
        value = data.draw(values_of(row))
        wanted[row.field] = value
        texts[row.place] += "%s%s%s%s=%s%s;" % (
            data.draw(blank),
            data.draw(st.sampled_from(["--", ""])),
            row.key,
            data.draw(blank),
            data.draw(blank),
            row.kind.show(value),
        )
    config = Config.from_sources(texts)
    assert not errors(config)
    for row in rows:
        assert getattr(config, row.field) == wanted[row.field]
        assert type(getattr(config, row.field)) is type(row.default)
        if row.kind.show(wanted[row.field]):
            assert config.origins[row.field] == row.place


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_stronger_place_wins(data):
    row = data.draw(st.sampled_from([row for row in ROWS if row.field != "skip_node_names_cfg"]))
    places = data.draw(st.lists(st.sampled_from(row.places), min_size=1, unique=True))
    environ, parameters, api, given_values = {}, {}, {}, {}
    for place in places:
        value = data.draw(values_of(row).filter(lambda v: row.kind.show(v) != ""))
        given_values[place] = value
        text = row.kind.show(value)
        if place == PARAMETERS:
            parameters[row.parameter] = value if isinstance(value, (bool, int)) and value < 2**63 else text
        elif place == API:
            api[data.draw(st.sampled_from([row.field, row.key]))] = value
        elif place == ENVIRONMENT:
            environ[row.key] = text
        else:
            environ[place] = "--%s=%s" % (row.key, text)
    config = Config.from_sources(environ, parameters, api)
    strongest = next(place for place in (PARAMETERS, API, row.place) if place in given_values)
    assert getattr(config, row.field) == given_values[strongest]
    assert config.origins[row.field] == (row.key if strongest == ENVIRONMENT else strongest)
    assert not errors(config)


@settings(max_examples=150, deadline=None)
@given(
    st.text(max_size=60),
    st.text(max_size=60),
    st.dictionaries(
        st.sampled_from([row.parameter for row in ROWS if row.parameter] + list(NPU_ONLY[:3]) + ["x"]),
        st.one_of(st.text(max_size=20), st.booleans(), st.integers(), st.floats(), st.binary(max_size=9)),
        max_size=5,
    ),
    st.dictionaries(st.sampled_from([row.key for row in ENVIRONMENT_ROWS]), st.text(max_size=20), max_size=4),
)
def test_nothing_that_a_user_writes_raises(flags, dfx, parameters, variables):
    config = Config.from_sources(dict(variables, AUTOFUSE_FLAGS=flags, AUTOFUSE_DFX_FLAGS=dfx), parameters)
    for row in ROWS:
        value = getattr(config, row.field)
        assert type(value) is type(row.default)
        if isinstance(row.kind, Int):
            assert row.kind.low <= value and (row.kind.high is None or value <= row.kind.high)
    hash(config)


@pytest.mark.parametrize(
    "row", [row for row in ALL_FLAGS if row.field != "skip_node_names_cfg"], ids=lambda row: row.key
)
def test_a_misspelt_flag_is_named_with_the_right_one(row):
    for wrong in (row.key[:-1] + "x", row.key[1:], row.key[:3] + row.key[4] + row.key[3] + row.key[5:]):
        if wrong in {other.key for other in ALL_FLAGS}:
            continue
        config = Config.from_sources({row.place: "--%s=%s" % (wrong, row.kind.show(row.default) or "true")})
        (problem,) = config.problems
        assert problem.kind == UNKNOWN and problem.name == wrong and problem.nearest == row.key
        assert wrong in problem.text and "did you mean %s?" % row.key in problem.text
        assert getattr(config, row.field) == row.default


BAD = [
    (FLAGS, "max_fusion_size", "abc", 64, None),
    (FLAGS, "max_fusion_size", "-1", 64, "0"),
    (FLAGS, "max_fusion_size", "64k", 64, None),
    (FLAGS, "max_fusion_size", "9" * 50, 64, None),
    (FLAGS, "max_fusion_size", str(2**64), 64, str(2**64 - 1)),
    (FLAGS, "recomputation_threshold", "256", 1, "255"),
    (FLAGS, "enable_autofuse", "treu", False, "true"),
    (FLAGS, "enable_autofuse", "2", False, None),
    (DFX, "autofuse_att_algorithm", "HighPref", "AxesReorder", "HighPerf"),
    (DFX, "att_ub_threshold", "101", 20, "100"),
    (DFX, "force_tiling_case", "g1", "", None),
    (DFX, "autofuse_pgo_topn", "-3", 5, "0"),
    (DFX, "autofuse_pgo_step_max", "0", 16, "1"),
]


@pytest.mark.parametrize("place,key,raw,used,nearest", BAD)
def test_a_bad_value_is_reported_and_the_default_used(place, key, raw, used, nearest):
    config = Config.from_sources({place: "%s=%s" % (key, raw)})
    row = next(row for row in ALL_FLAGS if row.key == key)
    assert getattr(config, row.field) == used and config.origins[row.field] == "default"
    (problem,) = config.problems
    assert (problem.kind, problem.name, problem.given, problem.nearest) == (BAD_VALUE, key, raw, nearest)
    assert problem.used == row.kind.show(used) and (problem.used or "unset") in problem.text


def test_a_bad_value_lets_the_next_place_speak():
    config = Config.from_sources({"AUTOFUSE_FLAGS": "max_fusion_size=7"}, {"max_fusion_size": "many"})
    assert config.max_fusion_size == 7 and config.origins["max_fusion_size"] == FLAGS
    assert config.problems[0].used == "7"


@pytest.mark.parametrize(
    "text",
    [
        "--enable_autofuse=true;--max_fusion_size=8",
        "enable_autofuse=true;max_fusion_size=8;",
        " --enable_autofuse = true ; --max_fusion_size = 8 ; ",
        "--enable_autofuse=true --max_fusion_size=8",
        "'--enable_autofuse=true;--max_fusion_size=8'",
        '"--enable_autofuse=true";max_fusion_size="8"',
        ";;--enable_autofuse=TRUE;;max_fusion_size=+8",
    ],
)
def test_forms_of_writing(text):
    config = Config.from_sources({"AUTOFUSE_FLAGS": text})
    assert config.enable_autofuse is True and config.max_fusion_size == 8 and not config.problems


def test_a_value_may_hold_an_equals_sign():
    assert Config.from_sources({"AUTOFUSE_DFX_FLAGS": "debug_dir=/a=b/c"}).debug_dir == "/a=b/c"


def test_a_flag_without_value():
    (problem,) = Config.from_sources({"AUTOFUSE_FLAGS": "--enable_autofuse"}).problems
    assert problem.is_error and problem.nearest == "enable_autofuse=true"


def test_a_debug_flag_in_the_other_variable_is_used_with_a_note():
    config = Config.from_sources({"AUTOFUSE_FLAGS": "--codegen_compile_debug=true"})
    assert config.codegen_compile_debug and config.origins["codegen_compile_debug"] == FLAGS
    assert kinds(config) == [PLACE] and DFX in config.problems[0].text
    both = Config.from_sources({"AUTOFUSE_FLAGS": "debug_dir=a", "AUTOFUSE_DFX_FLAGS": "debug_dir=b"})
    assert both.debug_dir == "b"
    both = Config.from_sources(
        {"AUTOFUSE_FLAGS": "max_fusion_size=1", "AUTOFUSE_DFX_FLAGS": "max_fusion_size=2"}
    )
    assert both.max_fusion_size == 1


def test_a_flag_given_twice():
    config = Config.from_sources({"AUTOFUSE_FLAGS": "max_fusion_size=1;max_fusion_size=2"})
    assert config.max_fusion_size == 2 and kinds(config) == [CONFLICT]


def test_families():
    assert Config().families_for("ascend") == {"elementwise", "broadcast"}
    assert Config().families_for("host") == {"elementwise", "broadcast"} | set(FAMILIES)
    config = Config.from_sources(
        {"AUTOFUSE_FLAGS": "autofuse_enable_pass=reduce,concta, Slice;" "autofuse_disable_pass=slice"}
    )
    for target in ("ascend", "host"):
        assert config.families_for(target) == {"elementwise", "broadcast", "reduce"}
    assert config.enable_pass == ("reduce", "slice")
    bad = [problem for problem in config.problems if problem.kind == BAD_VALUE]
    assert [problem.nearest for problem in bad] == ["concat"] and "reduce,slice" in bad[0].text
    assert any(problem.kind == CONFLICT and "slice" in problem.text for problem in config.problems)
    alone = Config.from_sources({"AUTOFUSE_FLAGS": "autofuse_disable_pass=slice"})
    assert CONFLICT in kinds(alone) and alone.families_for("ascend") == {"elementwise", "broadcast"}
    assert "reduce" in alone.families_for("host") and "slice" not in alone.families_for("host")


def test_what_comes_later_says_so_only_when_it_changes_something():
    for row in ROWS:
        if row.effect != LATER or not isinstance(row.kind, Bool):
            continue
        name = {"parameter_map": {row.parameter: True}} if row.parameter else {"api": {row.field: True}}
        assert kinds(Config.from_sources({}, **name)) == [COMES_LATER]
        name = {"parameter_map": {row.parameter: False}} if row.parameter else {"api": {row.field: False}}
        assert kinds(Config.from_sources({}, **name)) == []
    assert kinds(Config.from_sources({"AUTOFUSE_TARGET": "host"})) == []


def test_the_public_examples_parameter_map_has_no_errors():
    config = Config.from_sources(
        {"AUTOFUSE_FLAGS": "--enable_autofuse=true;--autofuse_enable_pass=reduce,concat,slice;"},
        {
            "use_off_line": True,
            "graph_run_mode": 0,
            "profiling_mode": True,
            "profiling_options": '{"output":"./output","task_trace":"on"}',
        },
    )
    assert not errors(config)
    assert config.enable_autofuse and config.graph_run_mode == 0 and config.profiling_mode
    assert {p.name for p in config.problems if p.kind == NO_EFFECT} == {"use_off_line"}


def test_an_unknown_parameter_is_named_with_the_nearest():
    config = Config.from_sources({}, {"precison_mode": "force_fp16", "use_of_line": True, "zzzzzzzz": 1})
    assert {p.name: p.nearest for p in config.problems} == {
        "precison_mode": "precision_mode",
        "use_of_line": "use_off_line",
        "zzzzzzzz": None,
    }
    assert config.precision_mode == ""


def test_a_misspelt_variable_is_noticed_but_foreign_ones_are_not():
    config = Config.from_sources(
        {"AUTOFUSE_FLGAS": "x", "AUTOFUSE_TARGTE": "ascend", "AUTOFUSE_RANDOM_GRAPHS": "3", "OTHER": "1"}
    )
    assert {p.name: p.nearest for p in config.problems} == {
        "AUTOFUSE_FLGAS": "AUTOFUSE_FLAGS",
        "AUTOFUSE_TARGTE": "AUTOFUSE_TARGET",
    }


def test_an_empty_variable_is_an_unset_one():
    config = Config.from_sources({row.key: " " for row in ENVIRONMENT_ROWS})
    assert config == Config() and not config.problems


@pytest.mark.parametrize(
    "text,size",
    [("500M", 500 << 20), ("2g", 2 << 30), ("1.5K", 1536), ("7", 7), ("3 GiB", 3 << 30), ("10kb", 10240)],
)
def test_cache_size(text, size):
    assert Config.from_sources({"AUTOFUSE_CACHE_SIZE": text}).cache_size == size


def test_soc_names():
    for name in ("Ascend910B2", "910b2", "ascend910b2"):
        assert Config.from_sources({}, {"soc_version": name}).soc_version == "Ascend910B2"
        assert Config.from_sources({}, {"soc_config": name}).soc_version == "Ascend910B2"
    both = Config.from_sources({}, {"soc_version": "Ascend910B1", "soc_config": "Ascend910B2"})
    assert both.soc_version == "Ascend910B1"
    (problem,) = Config.from_sources({}, {"soc_version": "Ascend910B9"}).problems
    assert problem.kind == BAD_VALUE and problem.nearest.startswith("Ascend910B")


def test_precision_mode_defaults_as_the_npu_route_has_them():
    assert Config().precision_mode_for("ascend") == "allow_fp32_to_fp16"
    inference = Config.from_sources({}, {"graph_run_mode": 0})
    assert inference.precision_mode_for("ascend") == "force_fp16"
    assert inference.precision_mode_for("host") == "must_keep_origin_dtype"
    kept = Config.from_sources({}, {"graph_run_mode": 0, "precision_mode": b"must_keep_origin_dtype"})
    assert kept.precision_mode_for("ascend") == "must_keep_origin_dtype"


def test_precision_blacklist():
    config = Config.from_sources({"AUTOFUSE_FLAGS": "autofuse_enhance_precision_blacklist=Exp,Sum"})
    assert (
        not config.enhances_precision("Exp")
        and config.enhances_precision("Abs")
        and config.enhances_precision("Sum")
    )
    everything = Config.from_sources({"AUTOFUSE_FLAGS": "autofuse_enhance_precision_blacklist=all"})
    assert not everything.enhances_precision("Abs") and everything.enhances_precision("Mean")


def other_value(row):
    if isinstance(row.kind, Bool):
        return not row.default
    if isinstance(row.kind, (Int, Bytes)):
        return row.default - 1 if row.default > row.kind.low else row.default + 1
    if isinstance(row.kind, Choice):
        return next(word for word in row.kind.words if word != row.default)
    if isinstance(row.kind, Words):
        return row.kind.words[:1] or ("Exp",)
    return "7"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.field)
def test_the_cache_key_has_exactly_what_can_change_code(row):
    if row.field in ("cache_size", "tensor_memory"):
        changed = dataclasses.replace(Config(), **{row.field: 1})
    else:
        changed = dataclasses.replace(Config(), **{row.field: other_value(row)})
    assert (changed.cache_key() != Config().cache_key()) == row.code
    hash(changed.cache_key())


def test_two_sessions_have_two_configs():
    environ = {"AUTOFUSE_FLAGS": "enable_autofuse=true"}
    one = Config.from_sources(environ, {"precision_mode": "force_fp16"})
    two = Config.from_sources(environ, {"precision_mode": "must_keep_origin_dtype", "enable_autofuse": False})
    assert one.enable_autofuse and not two.enable_autofuse
    assert two.origins["enable_autofuse"] == PARAMETERS and one != two


def test_every_row_is_sound():
    assert len({row.field for row in ROWS}) == len(ROWS) == len(BY_FIELD)
    keys = [row.key for row in ROWS]
    assert len(set(keys)) == len(keys)
    assert not set(NPU_ONLY) & set(keys) and not set(NPU_ONLY) & {row.parameter for row in ROWS}
    for row in ROWS:
        assert row.meaning.endswith(".") and row.kind.allowed
        if row.kind.show(row.default):
            assert row.kind.parse(row.kind.show(row.default), None) == row.default


def test_the_api_takes_python_values():
    config = Config.from_sources(
        {}, api={"enable_pass": ["reduce", "concat"], "enable_autofuse": True, "max_fusion": 3}
    )
    assert config.enable_pass == ("reduce", "concat") and config.origins["enable_pass"] == API
    (problem,) = errors(config)
    assert problem.nearest == "max_fusion_size"
