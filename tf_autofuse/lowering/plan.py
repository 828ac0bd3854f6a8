"""plan(): from a graph to the regions that are to be fused.

Equal chunks of the graph are planned once (shared.py); where the graph is not made of chunks, or what a chunk
says does not stay in it, all of it is planned straight (planner.py), with the same regions.
"""

from tf_autofuse.lowering.graph_view import GraphView
from tf_autofuse.lowering.planner import Decision, PairRefusal, Plan, Region, Told, straight
from tf_autofuse.lowering.shared import shared_plan


def plan(view: GraphView, config, target: str, shares: bool = True) -> Plan:
    """config: tf_autofuse.config.Config; target: 'ascend' or 'host'. Never raises for what the graph
    contains. shares: whether equal chunks are planned once; the regions are the same either way."""
    found = shared_plan(view, config, target, shares)
    if found is None:
        outcome = straight(view, config, target)
        found = Plan(outcome.regions, outcome.operands, outcome.tell)
    return found


__all__ = ("Decision", "PairRefusal", "Plan", "Region", "Told", "plan")
