"""The table never promises what TF 1.15 has no CPU kernel for."""
import numpy as np
import pytest

from tests.ops.tf_oracle import TfOpRunner, registered_dtypes, tf
from tf_autofuse.ir.dtypes import ALL_DTYPES, BOOL, INT32, UINT16, UINT32, UINT64
from tf_autofuse.ops.table import ASC_OPS, TF_OPS

#: Ops whose dtype attribute is not called T, or that have none (they work on bool only).
ATTR = {"Cast": "SrcT", "GatherV2": "Tparams", "Gather": "Tparams", "ResourceGather": "dtype"}
BOOL_ONLY = ("LogicalAnd", "LogicalOr", "LogicalNot", "All", "Any")
REAL = {d.name for d in ALL_DTYPES}


@pytest.mark.parametrize("name", sorted(TF_OPS))
def test_dtypes_are_a_subset_of_tensorflows(name):
    row = TF_OPS[name]
    if name in BOOL_ONLY:
        assert row.dtypes == (BOOL,)
        return
    ours = {d.name for d in row.dtypes}
    assert ours, "a row without dtypes"
    assert ours <= registered_dtypes(name, ATTR.get(name, "T"))


@pytest.mark.parametrize("dtype", (UINT16, UINT32, UINT64))
def test_tile_refuses_dtypes_when_it_runs(dtype):
    runner = TfOpRunner("Tile", [dtype, INT32], {}, {1: np.array([2], np.int32)})
    with pytest.raises(tf.errors.UnimplementedError):
        runner(np.zeros(3, dtype.numpy))


@pytest.mark.parametrize("name", sorted(set(TF_OPS) - set(BOOL_ONLY) - {"Tile"}))
def test_no_registered_dtype_is_forgotten(name):
    """Every real dtype of TF's kernels is in the row: a refusal is always a decision with a reason."""
    registered = registered_dtypes(name, ATTR.get(name, "T")) & REAL
    assert registered == {d.name for d in TF_OPS[name].dtypes}


def test_cast_takes_every_pair():
    assert registered_dtypes("Cast", "DstT") >= {d.name for d in TF_OPS["Cast"].dtypes}


def test_the_comparison_sees_a_dtype_too_many():
    assert not {"float32", "uint64"} <= registered_dtypes("Abs", "T")
    assert registered_dtypes("Relu", "T") >= {"float32", "int8"}
    assert "int32" not in registered_dtypes("LeakyRelu", "T")  # a kernel is registered, the OpDef forbids it


def test_a_text_that_names_scratch_is_given_some():
    """Codegen makes the scratch buffer only where a row asks for bytes."""
    for row in ASC_OPS.values():
        for key, forms in row.ascend.items():
            if any("{tmp}" in text for text in forms.values()):
                item = (key[0] if isinstance(key, tuple) and not hasattr(key, "bytes") else key).bytes
                assert row.tmp_bytes(item, 64) > 0, (row.type, key)
