"""tf_autofuse.configure: the entry in ConfigProto."""
import pytest
from tensorflow.core.protobuf import config_pb2

import tf_autofuse


def entries(config):
    return config.graph_options.rewrite_options.custom_optimizers


def test_one_entry_with_typed_values():
    config = config_pb2.ConfigProto()
    other = entries(config).add()
    other.name = "Other"
    assert tf_autofuse.configure(config, enable_autofuse=True, max_fusion_size=32) is config
    tf_autofuse.configure(
        config, max_fusion_size=16, precision_mode="must_keep_origin_dtype", use_off_line=True
    )
    assert [entry.name for entry in entries(config)] == ["Other", "AutofuseOptimizer"]
    values = entries(config)[1].parameter_map
    assert values["enable_autofuse"].WhichOneof("value") == "b" and values["enable_autofuse"].b
    assert values["max_fusion_size"].WhichOneof("value") == "i" and values["max_fusion_size"].i == 16
    assert values["precision_mode"].s == b"must_keep_origin_dtype"
    assert not other.parameter_map


@pytest.mark.parametrize(
    "params,told",
    [
        ({"max_fusion_siz": 3}, "did you mean max_fusion_size"),
        ({"precision_mode": "force_fp15"}, "force_fp16"),
        ({"max_fusion_size": -1}, "below 0"),
        ({"autofuse_enable_pass": "reduce,concta"}, "concat"),
        ({"max_fusion_size": 3, "enable_autofuse": "perhaps"}, "neither true nor false"),
    ],
)
def test_a_bad_setting_raises_and_changes_nothing(params, told):
    config = config_pb2.ConfigProto()
    with pytest.raises(ValueError, match=told):
        tf_autofuse.configure(config, **params)
    assert not entries(config)


def test_wrong_types():
    with pytest.raises(TypeError, match="ConfigProto, not a dict"):
        tf_autofuse.configure({})
    with pytest.raises(TypeError, match="max_fusion_size.*not a list"):
        tf_autofuse.configure(config_pb2.ConfigProto(), max_fusion_size=[1])


def test_nothing_else_is_public():
    assert sorted(tf_autofuse.__all__) == ["Config", "__version__", "configure"]
