"""Names of fused ops, and the compositions that Grappler makes."""

import pytest

from tests.graphs import GraphBuilder
from tests.lowering.checks import check_plan, keep_config, names
from tf_autofuse.ir.dtypes import FLOAT32
from tf_autofuse.lowering.naming import MAX_NAME, fused_name
from tf_autofuse.lowering.plan import plan


def test_short_names_are_whole():
    assert fused_name("pointwise", 3, ["Abs", "Add"]) == "autofuse_pointwise_3_Abs_Add"


def test_long_names_are_cut_by_a_hash():
    long, other = (fused_name("pointwise", 0, ["Abs"] * 60 + [last]) for last in ("Relu", "Add"))
    assert len(long) == len(other) == MAX_NAME and long != other
    assert len(fused_name("pointwise", 0, ["A" * (MAX_NAME - len("autofuse_pointwise_0_"))])) == MAX_NAME
    assert fused_name("pointwise", 0, ["Abs"] * 60 + ["Relu"]) == long


def composition(*ops):
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (4,))
    y = g.op("_UnaryOpsComposition", x, attrs={"op_names": [op.encode() for op in ops]})
    g.ret(g.op("Mul", y, x))
    result = plan(g.view(), keep_config(), "ascend")
    check_plan(g, result)
    return result


def test_a_composition_is_the_chain_that_it_was():
    result = composition("Neg", "Relu")
    assert names(result) == ["autofuse_pointwise_0_Neg_Relu_Mul"]
    computed = [n.type for n in result.regions[0].fused.graphs[0].nodes]
    assert [t for t in computed if t in ("Neg", "Relu", "Mul")] == ["Neg", "Relu", "Mul"]


@pytest.mark.parametrize("unknown", ["NoSuchOp", "Cast", "Identity"])
def test_a_composition_with_something_else_is_refused(unknown):
    result = composition("Neg", unknown)
    (decision,) = [d for d in result.decisions if d.op == "_UnaryOpsComposition"]
    assert decision.code == "NF2013" and unknown in decision.reason
