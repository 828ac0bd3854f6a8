"""What must hold of every plan, and running a plan against its graph op by op."""

from typing import Dict, List, Sequence

import numpy as np

from tests.graphs import GraphBuilder, evaluate_graph
from tf_autofuse.config import Config
from tf_autofuse.config_table import FAMILIES
from tf_autofuse.ir.dtypes import BOOL, BY_TF, FLOAT16
from tf_autofuse.ir.evaluate import evaluate_fused
from tf_autofuse.ir.verify import verify_fused
from tf_autofuse.lowering.plan import Plan, plan


def keep_config(**fields) -> Config:
    """A Config that keeps dtypes and fuses all families."""
    fields.setdefault("precision_mode", "must_keep_origin_dtype")
    fields.setdefault("enable_pass", FAMILIES)
    return Config(**fields)


def names(result: Plan) -> List[str]:
    return [r.fused.name for r in result.regions]


def fused_types(g: GraphBuilder, result: Plan) -> List[str]:
    return sorted(g.ops[n] for r in result.regions for n in r.nodes)


def check_plan(g: GraphBuilder, result: Plan) -> None:
    """Every region is a good FusedGraph, regions are disjoint, complete at their borders and make no
    cycle."""
    seen: Dict[int, int] = {}
    for number, region in enumerate(result.regions):
        verify_fused(region.fused)
        members = set(region.nodes)
        for node in region.nodes:
            assert node not in seen, "node %s is in two regions" % g.names[node]
            seen[node] = number
        inside = members.union(region.copies)
        reads = {t for node in inside for t in g.inputs[node] if t[0] not in inside}
        assert reads == set(region.inputs) and len(region.inputs) == len(reads)
        leaves = {
            (s, p)
            for node in range(len(g.ops))
            if node not in members and not _dies(g, node, members, region.copies)
            for s, p in g.inputs[node]
            if s in members
        }
        unread = {(n, 0) for n in members if not any(n == s for i in g.inputs for s, _ in i)}
        assert leaves | unread == set(region.outputs) and len(region.outputs) == len(leaves | unread)
        assert len(region.fused.inputs) == len(region.inputs)
        for (node, port), io in zip(region.inputs, region.fused.inputs):
            assert BY_TF[g.out_dtypes[node][port]] is io.dtype and len(io.dims) == len(
                g.out_shapes[node][port]
            )
        for (node, port), io in zip(region.outputs, region.fused.outputs):
            assert BY_TF[g.out_dtypes[node][port]] is io.dtype and len(io.dims) == len(
                g.out_shapes[node][port]
            )
        assert {g.devices[n] for n in members} == {region.device}
        assert len({g.frames[n] for n in members}) == 1
        assert region.fused.origin == tuple(g.names[n] for n in sorted(members))
    _check_acyclic(g, seen, [set(region.copies) for region in result.regions])
    for decision in result.decisions:
        assert decision.region == seen.get(decision.node, -1)
        assert bool(decision.code) == bool(decision.reason) == (decision.region < 0)
    assert [d.node for d in result.decisions] == list(range(len(g.ops)))


def _dies(g: GraphBuilder, node: int, members, copies) -> bool:
    """Whether the node is a copy of which nothing outside of the region reads anything."""
    readers = [n for n in range(len(g.ops)) if any(s == node for s, _ in g.inputs[n])]
    return node in copies and all(n in members or _dies(g, n, members, copies) for n in readers)


def _check_acyclic(g: GraphBuilder, region_of: Dict[int, int], copies) -> None:
    """Kahn's algorithm on the graph with each region as one vertex; it reads its copies from itself."""
    vertex = [("region", region_of[n]) if n in region_of else n for n in range(len(g.ops))]
    before = {v: set() for v in vertex}
    for node in range(len(g.ops)):
        for source in [s for s, _ in g.inputs[node]] + list(g.control_inputs[node]):
            back = g.ops[node] == "Merge" and g.ops[source] == "NextIteration"
            own = node in region_of and source in copies[region_of[node]]
            if vertex[source] != vertex[node] and not back and not own:
                before[vertex[node]].add(vertex[source])
    while before:
        ready = [v for v, sources in before.items() if not sources]
        assert ready, "the fused graph has a cycle"
        for v in ready:
            del before[v]
        for sources in before.values():
            sources.difference_update(ready)


def random_array(dtype, shape, seed: int) -> np.ndarray:
    rng = np.random.RandomState(seed)
    if dtype is BOOL:
        return rng.rand(*shape) < 0.5
    if dtype.is_integer:
        return rng.randint(-5, 6, size=shape).astype(dtype.numpy)
    return np.asarray(rng.randn(*shape), dtype.numpy)


def compare_with_graph(g: GraphBuilder, result: Plan, args, sums: bool = False) -> None:
    """Each region's outputs, run on the graph's own tensors, are the graph's: bit for bit for what is
    computed as in the graph; 16-bit floats, which a region rounds later, within a few units in the last
    place. sums: floats may differ in their last places, as numpy's sums along other strides do."""
    values = evaluate_graph(g, args)
    halves = any(BY_TF[d] is FLOAT16 for outs in g.out_dtypes for d in outs)
    for region in result.regions:
        outputs = evaluate_fused(region.fused, [np.asarray(values[n][p]) for n, p in region.inputs])
        for (node, port), got in zip(region.outputs, outputs):
            want = np.asarray(values[node][port])
            assert got.dtype == want.dtype and got.shape == want.shape, g.names[node]
            if halves:
                np.testing.assert_allclose(
                    got.astype(np.float64), want.astype(np.float64), rtol=4e-3, atol=4e-3
                )
            elif sums and want.dtype.kind == "f":
                np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5, err_msg=g.names[node])
            else:
                np.testing.assert_array_equal(_bits(got), _bits(want), err_msg=g.names[node])


def _bits(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), array.dtype.type("nan"), array)
        return array.view("u%d" % array.dtype.itemsize)
    return array


def run_and_compare(
    g: GraphBuilder, config: Config = None, target: str = "ascend", **shapes: Sequence[int]
) -> Plan:
    """Plans g, checks the plan, runs it on random arguments of the given shapes."""
    result = plan(g.view(), config or keep_config(), target)
    check_plan(g, result)
    dtypes = {g.names[i]: BY_TF[g.out_dtypes[i][0]] for i, op in enumerate(g.ops) if op == "_Arg"}
    args = {
        name: random_array(dtypes[name], shape, seed)
        for seed, (name, shape) in enumerate(sorted(shapes.items()))
    }
    compare_with_graph(g, result, args)
    return result
