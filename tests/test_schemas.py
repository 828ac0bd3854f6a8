"""What structured text of the user is told that is wrong with it."""
import jsonschema
import pytest

from tf_autofuse import schemas
from tf_autofuse.machine import _INI


@pytest.mark.parametrize(
    "value, told",
    [
        ({}, []),
        ({"output": "./profiling", "task_trace": "on"}, []),
        ({"output": "a", "training_trace": "off", "aic_metrics": "PipeUtilization", "task_time": "l1"}, []),
        ({"outptu": "a"}, ["outptu is not known; did you mean output?"]),
        ({"nonsense": 1}, ["nonsense is not known"]),
        ({"task_trace": "of"}, ["task_trace is 'of'; it may be on or off (did you mean off?)"]),
        ({"task_trace": True}, ["task_trace is True; it may be on or off"]),
        ({"output": 3}, ["output is 3; it must be string"]),
        ({"output": ""}, ["output: '' is too short"]),
        ([1], ["the whole is [1]; it must be object"]),
        (
            {"task_trace": "no", "output": None, "l3": "on"},
            ["l3 is not known", "output is None; it must be string", "task_trace is 'no'"],
        ),
    ],
)
def test_profiling_options(value, told):
    found = schemas.faults(value, schemas.PROFILING_OPTIONS)
    assert len(found) == len(told)
    for text, beginning in zip(found, told):
        assert text.startswith(beginning), found


@pytest.mark.parametrize("text, good", [("20", True), ("", True), ("0", False), ("-1", False), ("2x", False)])
def test_platform_ini(text, good):
    schema = schemas.platform_ini(_INI)
    found = schemas.faults({"SoCInfo": {"l2_size": text, "other": "x"}, "Other": {"a": "b"}}, schema)
    assert found == ([] if good else ["SoCInfo l2_size=%s is no whole number above 0" % text])


def test_the_schemas_are_schemas():
    for schema in (schemas.PROFILING_OPTIONS, schemas.platform_ini(_INI)):
        jsonschema.Draft7Validator.check_schema(schema)
