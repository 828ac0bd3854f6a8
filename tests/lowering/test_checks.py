"""The checker of plans finds broken plans: each mutation of a good one."""

import numpy as np
import pytest

from tests.graphs import GraphBuilder
from tests.lowering.checks import check_plan, compare_with_graph, keep_config
from tf_autofuse.ir.dtypes import FLOAT32
from tf_autofuse.lowering.plan import Plan, plan


def graph():
    g = GraphBuilder()
    x = g.arg("x", FLOAT32, (4,))
    a = g.op("Abs", g.op("Neg", x))
    g.ret(a, g.op("Relu", g.op("Mul", g.outside(a), x)))
    return g


def change(region_index, **fields):
    def apply(result):
        regions = list(result.regions)
        for name, value in fields.items():
            regions[region_index] = regions[region_index]._replace(**{name: value(regions[region_index])})
        return Plan(regions, result.operands, lambda: result.told)

    return apply


MUTATIONS = {
    "a node in two regions": lambda p: Plan(p.regions + p.regions[:1], (), lambda: p.told),
    "a cycle": lambda p: Plan(
        (p.regions[0]._replace(nodes=p.regions[0].nodes + p.regions[1].nodes),), (), lambda: p.told
    ),
    "an input too few": change(1, inputs=lambda r: r.inputs[:-1]),
    "an output too few": change(0, outputs=lambda r: ()),
    "another device": change(0, device=lambda r: "elsewhere"),
    "a wrong decision": lambda p: Plan(p.regions, (), lambda: p.told._replace(
        decisions=p.decisions[:2] + p.decisions[:1] + p.decisions[3:])),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_broken_plans_are_found(name):
    g = graph()
    good = plan(g.view(), keep_config(), "ascend")
    check_plan(g, good)
    with pytest.raises(AssertionError):
        check_plan(g, MUTATIONS[name](good))


def test_wrong_values_are_found():
    g, other = graph(), graph()
    other.ops[other.names.index("neg_0")] = "Identity"
    wrong = plan(other.view(), keep_config(), "ascend")
    args = {"x": np.array([-1, 2, -0.0, 5], np.float32)}
    compare_with_graph(other, wrong, args)
    other.ops[other.names.index("relu_0")] = "Abs"
    with pytest.raises(AssertionError):
        compare_with_graph(g, plan(other.view(), keep_config(), "ascend"), args)
