"""What structured text from the user must look like, as JSON schemas, and what is wrong with it in words.

On entry a value as a parser gave it. On exit one text for each fault: where it is, what is wrong, and for a
name that is not known the nearest that is. The library that checks is imported by the first check.
"""
from typing import Any, Dict, List, Mapping

from tf_autofuse.config_values import meant, nearest_of

_SWITCH = {"enum": ["on", "off"]}
_FREQUENCY = {"type": ["integer", "string"]}

#: `profiling_options`, as CANN documents them. Only output and task_trace have an effect here.
PROFILING_OPTIONS: Dict[str, Any] = {
    "type": "object",
    "properties": dict(
        {
            "output": {"type": "string", "minLength": 1},
            "storage_limit": {"type": "string"},
            "task_time": {"enum": ["on", "off", "l0", "l1"]},
            "fp_point": {"type": "string"},
            "bp_point": {"type": "string"},
            "aic_metrics": {"type": "string"},
            "host_sys": {"type": "string"},
            "host_sys_pid": {"type": ["integer", "string"]},
            "host_sys_usage": {"type": "string"},
            "llc_profiling": {"type": "string"},
        },
        **dict.fromkeys(
            ("training_trace", "task_trace", "aicpu", "hccl", "l2", "msproftx", "runtime_api", "ge_api"),
            _SWITCH,
        ),
        **dict.fromkeys(
            (
                "sys_hardware_mem_freq",
                "sys_io_sampling_freq",
                "sys_interconnection_freq",
                "dvpp_freq",
                "instr_profiling_freq",
                "host_sys_usage_freq",
            ),
            _FREQUENCY,
        )
    ),
    "additionalProperties": False,
}


def platform_ini(wanted: Mapping[str, Any]) -> Dict[str, Any]:
    """The schema of a platform_config ini as {section: {key: text}}, for the keys that are read. wanted:
    field -> (section, keys); other sections and keys are CANN's own."""
    sections: Dict[str, Any] = {}
    for section, keys in wanted.values():
        properties = sections.setdefault(section, {"type": "object", "properties": {}})["properties"]
        properties.update(dict.fromkeys(keys, {"type": "string", "pattern": "^([1-9][0-9]*)?$"}))
    return {"type": "object", "properties": sections}


def faults(value: Any, schema: Mapping[str, Any]) -> List[str]:
    """Every fault as one sentence without a full stop, in the order of the value."""
    import jsonschema

    errors = jsonschema.Draft7Validator(schema).iter_errors(value)
    found = sorted(errors, key=lambda e: list(map(str, e.path)))
    return [text for error in found for text in _texts(error)]


def _texts(error) -> List[str]:
    where = "".join("[%s]" % part for part in error.path)
    if error.validator == "additionalProperties":
        known = list(error.schema["properties"])
        texts = []
        for name in error.instance:
            if name not in known:
                nearest = nearest_of(name, known)
                advice = "; did you mean %s?" % nearest if nearest else ""
                texts.append("%s%s is not known%s" % (where, name, advice))
        return texts
    name = str(error.path[-1]) if error.path else "the whole"
    if error.validator == "enum":
        nearest = nearest_of(str(error.instance), [str(v) for v in error.validator_value])
        return [
            "%s is %r; it may be %s%s"
            % (
                name,
                error.instance,
                " or ".join(map(str, error.validator_value)),
                meant(nearest),
            )
        ]
    if error.validator == "type":
        kinds = error.validator_value if isinstance(error.validator_value, list) else [error.validator_value]
        return ["%s is %r; it must be %s" % (name, error.instance, " or ".join(kinds))]
    if error.validator == "pattern":
        return ["%s=%s is no whole number above 0" % (" ".join(map(str, error.path)), error.instance)]
    return ["%s: %s" % (name, error.message)]
