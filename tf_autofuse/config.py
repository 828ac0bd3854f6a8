"""One immutable Config from all places where a setting may be made.

Why: CANN's AutoFuse resets bad values silently and ignores unknown keys, so that nobody can tell what is in
force. Here every value has an origin, and everything that was not taken as written is a ConfigProblem.

Precedence, the strongest first: the session's parameter_map, the API, the environment (AUTOFUSE_FLAGS,
AUTOFUSE_DFX_FLAGS and the single variables), the default. A bad value counts as not given. On exit every
field has the type and range of its row in config_table.py. A Config belongs to one session; nothing here
keeps state or prints.
"""
import re
from dataclasses import dataclass, field, fields
from typing import Any, Dict, List, Mapping, MutableMapping, NamedTuple, Optional, Tuple

from tf_autofuse.config_table import (
    ALWAYS_ON,
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
    NONE,
    NPU_ONLY,
    PARAMETERS,
    ROWS,
    Row,
)
from tf_autofuse.config_values import BadValue, as_text, meant, nearest_of
from tf_autofuse.skip_list import SkipList, parse_skip_list

# Kinds of problems.
UNKNOWN = "unknown"  # no such setting
BAD_VALUE = "value"  # the value is outside of what is allowed
PLACE = "place"  # understood, but it belongs somewhere else
CONFLICT = "conflict"  # two settings contradict each other
COMES_LATER = "later"  # the setting has no effect in this version yet
NO_EFFECT = "no effect"  # the setting belongs to the NPU route's runtime


@dataclass(frozen=True)
class ConfigProblem:
    """name: the setting as it was written. given: its value. used: the value in force instead ('' where there
    is none). nearest: the valid name or value that may have been meant. text: all of it as a sentence."""

    name: str
    given: str
    used: str
    nearest: Optional[str]
    text: str
    kind: str

    @property
    def is_error(self) -> bool:
        """Whether the user's intention was not carried out: strict mode raises for these."""
        return self.kind in (UNKNOWN, BAD_VALUE)


def _default(name: str):
    return field(default=BY_FIELD[name].default)


@dataclass(frozen=True)
class Config:
    """Every setting, typed; config_table.py says what each means. `Config()` has the defaults.

    origins: field -> 'parameter_map', 'API', 'AUTOFUSE_FLAGS', 'AUTOFUSE_DFX_FLAGS', a variable's name, or
    'default'. problems: what was not taken as written. Neither takes part in comparison.
    """

    enable_autofuse: bool = _default("enable_autofuse")
    enable_pass: Tuple[str, ...] = _default("enable_pass")
    disable_pass: Tuple[str, ...] = _default("disable_pass")
    enhance_precision_blacklist: Tuple[str, ...] = _default("enhance_precision_blacklist")
    max_fusion_size: int = _default("max_fusion_size")
    recomputation_threshold: int = _default("recomputation_threshold")
    enable_pgo: bool = _default("enable_pgo")
    enable_jit_executor: bool = _default("enable_jit_executor")

    att_algorithm: str = _default("att_algorithm")
    att_accuracy_level: int = _default("att_accuracy_level")
    att_enable_multicore_ub_tradeoff: bool = _default("att_enable_multicore_ub_tradeoff")
    att_ub_threshold: int = _default("att_ub_threshold")
    att_corenum_threshold: int = _default("att_corenum_threshold")
    att_profiling: bool = _default("att_profiling")
    att_enable_small_shape_strategy: bool = _default("att_enable_small_shape_strategy")
    enable_tiling_cache: bool = _default("enable_tiling_cache")
    force_schedule_result: int = _default("force_schedule_result")
    force_tiling_case: str = _default("force_tiling_case")
    force_template_op_name: str = _default("force_template_op_name")
    pgo_algo: str = _default("pgo_algo")
    pgo_step_max: int = _default("pgo_step_max")
    pgo_topn: int = _default("pgo_topn")
    codegen_compile_debug: bool = _default("codegen_compile_debug")
    debug_dir: str = _default("debug_dir")
    disable_lifting: bool = _default("disable_lifting")
    subgraph_recover: str = _default("subgraph_recover")
    replace_kernel: str = _default("replace_kernel")
    skip_node_names_cfg: str = _default("skip_node_names_cfg")

    target: str = _default("target")
    cache_dir: str = _default("cache_dir")
    cache_size: int = _default("cache_size")
    tensor_memory: int = _default("tensor_memory")
    strict: bool = _default("strict")
    build: str = _default("build")
    twin_check: bool = _default("twin_check")
    verbose: int = _default("verbose")
    cxx: str = _default("cxx")
    ascend_home: str = _default("ascend_home")
    ascend_toolkit_home: str = _default("ascend_toolkit_home")
    ascend_device: int = _default("ascend_device")
    dump_ge_graph: int = _default("dump_ge_graph")
    dump_graph_level: int = _default("dump_graph_level")
    dump_graph_path: str = _default("dump_graph_path")

    graph_run_mode: int = _default("graph_run_mode")
    precision_mode: str = _default("precision_mode")
    soc_version: str = _default("soc_version")
    profiling_mode: bool = _default("profiling_mode")
    profiling_options: str = _default("profiling_options")

    skip_list: SkipList = SkipList()
    origins: Mapping[str, str] = field(
        default_factory=lambda: dict.fromkeys(BY_FIELD, "default"), compare=False
    )
    problems: Tuple[ConfigProblem, ...] = field(default=(), compare=False)

    @classmethod
    def from_sources(
        cls,
        environ: Mapping[str, str],
        parameter_map: Optional[Mapping[str, Any]] = None,
        api: Optional[Mapping[str, Any]] = None,
    ) -> "Config":
        """environ: as os.environ. parameter_map: name -> str, bytes, int, float or bool. api: field or key ->
        value. Never raises for what a user wrote: see `problems`."""
        return _Reader(environ, parameter_map or {}, api or {}).read()

    def families_for(self, target: str) -> frozenset:
        """Kernel families that may be fused; elementwise and broadcast are always among them. The others are
        off on the ascend target unless named, as in AutoFuse; elsewhere all are on unless some are named."""
        named = self.enable_pass or (() if target == "ascend" else FAMILIES)
        return frozenset(ALWAYS_ON) | (frozenset(named) - frozenset(self.disable_pass))

    def precision_mode_for(self, target: str) -> str:
        """precision_mode, or its default: that of CANN's TF Adapter on the ascend target, else no Casts at
        all."""
        if self.precision_mode:
            return self.precision_mode
        if target != "ascend":
            return "must_keep_origin_dtype"
        return "allow_fp32_to_fp16" if self.graph_run_mode == 1 else "force_fp16"

    def skip_reason(self, node: str, op: str) -> Optional[str]:
        """Why --skip_node_names_cfg keeps this TF node from being fused, or None."""
        return self.skip_list.reason(node, op)

    def enhances_precision(self, ascir_type: str) -> bool:
        """Whether this AscIR type computes float16 and bfloat16 in float32. Sums always do (as in CANN)."""
        if ascir_type in ("Sum", "Mean", "Prod"):
            return True
        return not {"all", ascir_type.lower()} & {word.lower() for word in self.enhance_precision_blacklist}

    def cache_key(self) -> Tuple[Tuple[str, Any], ...]:
        """The values that can change the code generated for one and the same fused graph, by name."""
        return tuple((row.field, getattr(self, row.field)) for row in ROWS if row.code)


class _Token(NamedTuple):
    """A setting as it was found. place: the table's place; where: its name in messages."""

    place: str
    where: str
    name: str
    raw: Any

    @property
    def label(self) -> str:
        return self.name if self.name == self.where else "%s: %s" % (self.where, self.name)


class _Reader:
    """Collects the tokens of every place, gives them to the rows, and gathers problems."""

    def __init__(self, environ, parameter_map, api):
        self.environ = environ
        self.problems: List[ConfigProblem] = []
        self.given: Dict[str, Dict[str, _Token]] = {row.field: {} for row in ROWS}  # field -> place -> token
        self._read_variable(
            FLAGS, {row.key: row for row in FLAG_ROWS}, {row.key: row for row in DFX_ROWS}, DFX
        )
        self._read_variable(
            DFX, {row.key: row for row in DFX_ROWS}, {row.key: row for row in FLAG_ROWS}, FLAGS
        )
        self._read_environment()
        self._read_parameters(parameter_map)
        self._read_api(api)

    def read(self) -> Config:
        values, origins = {}, {}
        for row in ROWS:
            values[row.field], origins[row.field] = self._value(row)
        self._check_passes(values, origins)
        skip_list = self._skip_list(values["skip_node_names_cfg"])
        order = {UNKNOWN: 0, BAD_VALUE: 0, PLACE: 1, CONFLICT: 1, COMES_LATER: 2, NO_EFFECT: 3}
        problems = tuple(sorted(self.problems, key=lambda p: order[p.kind]))
        return Config(skip_list=skip_list, origins=origins, problems=problems, **values)

    # -- where settings are found

    def _read_variable(self, variable, mine, others, home_of_others) -> None:
        seen = set()
        for token in split_flags(self.environ.get(variable, "")):
            name, has_value, raw = token.partition("=")
            name, raw = name.strip().lstrip("-").strip(), _unquote(raw.strip())
            row = mine.get(name) or others.get(name)
            if row is None:
                allowed = list(mine) + list(others)
                self._unknown(variable, name, raw, nearest_of(name, allowed))
                continue
            if not has_value:
                hint = "true" if row.kind.type_name == "bool" else "VALUE"
                self._problem(
                    name,
                    "",
                    "",
                    "%s=%s" % (name, hint),
                    BAD_VALUE,
                    "%s: %s has no value and is ignored; write --%s=%s" % (variable, name, name, hint),
                )
                continue
            if name in others:
                self._problem(
                    name,
                    raw,
                    raw,
                    None,
                    PLACE,
                    "%s: %s belongs in %s; it is used all the same" % (variable, name, home_of_others),
                )
                if self.given[row.field].get(row.place):
                    continue  # what stands in its own variable wins
            elif name in seen:
                self._problem(
                    name,
                    raw,
                    raw,
                    None,
                    CONFLICT,
                    "%s: %s is given more than once; the last one is used" % (variable, name),
                )
            seen.add(name)
            self.given[row.field][row.place] = _Token(row.place, variable, name, raw)

    def _read_environment(self) -> None:
        known = {row.key: row for row in ENVIRONMENT_ROWS}
        for variable, row in known.items():
            raw = self.environ.get(variable, "")
            if raw.strip():
                self.given[row.field][ENVIRONMENT] = _Token(ENVIRONMENT, variable, variable, raw)
        # Others may use the prefix too, so only what is very like one of ours is a likely mistake.
        for variable in sorted(self.environ):
            if variable.startswith("AUTOFUSE") and variable not in known and variable not in (FLAGS, DFX):
                nearest = nearest_of(variable, list(known) + [FLAGS, DFX], cutoff=0.85)
                if nearest:
                    self._unknown("environment", variable, self.environ[variable], nearest)

    def _read_parameters(self, parameter_map) -> None:
        aliases = {row.alias: row for row in ROWS if row.alias}
        known = dict(aliases, **{row.parameter: row for row in ROWS if row.parameter})
        # aliases first: where both names are given, the real one wins
        for name in sorted(parameter_map, key=lambda word: (word not in aliases, word)):
            raw = parameter_map[name]
            if name in known:
                row = known[name]
                self.given[row.field][PARAMETERS] = _Token(PARAMETERS, PARAMETERS, name, raw)
            elif name in NPU_ONLY:
                self._problem(
                    name,
                    as_text(raw),
                    "",
                    None,
                    NO_EFFECT,
                    "parameter_map: %s is an option of the NPU route and has no effect here" % name,
                )
            else:
                self._unknown(PARAMETERS, name, as_text(raw), nearest_of(name, list(known) + list(NPU_ONLY)))

    def _read_api(self, api) -> None:
        known = {row.key: row for row in ROWS}
        known.update(BY_FIELD)
        for name in sorted(api):
            row = known.get(name)
            if row is None:
                self._unknown(API, name, _shown(api[name]), nearest_of(name, known))
                continue
            raw = api[name]
            if isinstance(raw, (tuple, list, set, frozenset)):
                raw = ",".join(str(word) for word in raw)
            self.given[row.field][API] = _Token(API, API, name, raw)

    # -- what is made of them

    def _value(self, row: Row) -> Tuple[Any, str]:
        rejected: List[Tuple[_Token, str, Optional[str]]] = []
        value, origin = row.default, "default"
        for place in row.places:
            token = self.given[row.field].get(place)
            if token is None or (as_text(token.raw) == "" and row.default in ("", ())):
                continue
            remarks: List[Tuple[str, Optional[str]]] = []
            try:
                value = row.kind.parse(token.raw, lambda text, nearest: remarks.append((text, nearest)))
            except BadValue as bad:
                rejected.append((token, str(bad), bad.nearest))
                continue
            origin = token.where
            for text, nearest in remarks:
                self._problem(
                    token.name,
                    as_text(token.raw),
                    row.kind.show(value),
                    nearest,
                    BAD_VALUE,
                    "%s: %s%s; used: %s"
                    % (token.label, text, meant(nearest), row.kind.show(value) or "none"),
                )
            self._effect(row, token, value)
            break
        for token, text, nearest in rejected:
            used = row.kind.show(value)
            self._problem(
                token.name,
                as_text(token.raw),
                used,
                nearest,
                BAD_VALUE,
                "%s=%s: %s%s; used instead: %s (%s)"
                % (token.label, as_text(token.raw), text, meant(nearest), used or "unset", origin),
            )
        return value, origin

    def _effect(self, row: Row, token: _Token, value) -> None:
        if row.effect == NONE:
            self._problem(
                token.name, as_text(token.raw), "", None, NO_EFFECT, "%s has no effect here" % token.label
            )
        elif (row.effect == LATER and value != row.default) or value in row.later:
            self._problem(
                token.name,
                as_text(token.raw),
                row.kind.show(value),
                None,
                COMES_LATER,
                "%s=%s is read, but has no effect in this version yet" % (token.label, row.kind.show(value)),
            )

    def _check_passes(self, values, origins) -> None:
        if not values["disable_pass"]:
            return
        name = BY_FIELD["disable_pass"].key
        shown = ",".join(values["disable_pass"])
        if not values["enable_pass"]:
            self._problem(
                name,
                shown,
                shown,
                None,
                CONFLICT,
                "%s: on the ascend target %s is read only together with "
                "autofuse_enable_pass, which is not set" % (origins["disable_pass"], name),
            )
        for family in values["disable_pass"]:
            if family in values["enable_pass"]:
                self._problem(
                    name,
                    shown,
                    shown,
                    None,
                    CONFLICT,
                    "%s: %s is both in autofuse_enable_pass and in %s; "
                    "it is disabled" % (origins["disable_pass"], family, name),
                )

    def _skip_list(self, path: str) -> SkipList:
        if not path:
            return SkipList()
        name = "skip_node_names_cfg"

        def remark(text, nearest):
            self._problem(
                name, path, "", nearest, BAD_VALUE, "%s: %s: %s%s" % (name, path, text, meant(nearest))
            )

        try:
            with open(path, encoding="utf-8") as stream:
                text = stream.read()
        except (OSError, ValueError) as error:  # ValueError: not UTF-8, or a name that no file can have
            reason = getattr(error, "strerror", None) or str(error)
            remark("it can't be read (%s); no node is skipped" % reason, None)
            return SkipList()
        return parse_skip_list(text, remark)

    def _unknown(self, where: str, name: str, raw: str, nearest: Optional[str]) -> None:
        self._problem(
            name,
            raw,
            "",
            nearest,
            UNKNOWN,
            "%s: there is no setting %s, it is ignored%s"
            % (where, name or "without a name", meant(nearest) or " (docs/flags.md lists them all)"),
        )

    def _problem(self, name, given, used, nearest, kind, text) -> None:
        self.problems.append(ConfigProblem(name, given, used, nearest, text, kind))


def split_flags(text: str) -> List[str]:
    """The tokens of a flags variable: separated by ';', or by blanks before a '--'; quotes around them are
    dropped."""
    parts = (
        part for piece in _unquote(text.strip()).split(";") for part in re.split(r"\s+(?=--)", piece.strip())
    )
    return [part for part in map(_unquote, parts) if part]


def _unquote(text: str) -> str:
    quoted = len(text) > 1 and text[0] in "'\"" and text[0] == text[-1] and text[0] not in text[1:-1]
    return text[1:-1].strip() if quoted else text


def _shown(raw: Any) -> str:
    return as_text(raw) if isinstance(raw, (str, bytes, bool, int, float)) else repr(raw)


def wait_for_kernels(environ: MutableMapping[str, str]) -> None:
    """All kernels are there before a session runs, unless none may be built."""
    if environ.get("AUTOFUSE_BUILD") != "cached":
        environ["AUTOFUSE_BUILD"] = "sync"


def switch_on(environ: MutableMapping[str, str]) -> None:
    """Fusion, where the flags do not say whether."""
    flags = environ.get("AUTOFUSE_FLAGS", "").strip(";")
    if "enable_autofuse" not in flags:
        environ["AUTOFUSE_FLAGS"] = ";".join(f for f in (flags, "--enable_autofuse=true") if f)


assert {f.name for f in fields(Config)} - {"skip_list", "origins", "problems"} == set(BY_FIELD)
