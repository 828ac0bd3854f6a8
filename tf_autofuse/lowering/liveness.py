"""When a node is alive: the tf.cond branches under which it runs.

Why: in TF's dataflow a dead input kills its reader. One dead input of a fused op kills all of its outputs, so
a region may hold only outputs that are alive exactly when everything that the region reads is.

A liveness is a frozenset of tokens that must all hold: (predicate tensor, branch) for a Switch output, or a
token of its own for a Merge whose inputs do not tell. The empty set: always (within an iteration of the
frame). Equal sets are the same object, so they compare by identity.
"""

from typing import Dict, FrozenSet, List

from tf_autofuse.lowering.graph_view import GraphView

Liveness = FrozenSet[tuple]
ALWAYS: Liveness = frozenset()

_SWITCH = ("Switch", "RefSwitch")
_MERGE = ("Merge", "RefMerge")
_EXIT = ("Exit", "RefExit")


def liveness_of(view: GraphView) -> List[Liveness]:
    """Per node the liveness of the node itself. An output of a Switch has its branch's token in addition."""
    known: Dict[Liveness, Liveness] = {ALWAYS: ALWAYS}
    result: List[Liveness] = []
    ops, inputs, controls = view.ops, view.inputs, view.control_inputs
    if not any(op in _SWITCH or op in _MERGE for op in set(ops)):
        return [ALWAYS] * len(view)
    for node, op in enumerate(ops):
        if op in _MERGE:
            alive = _merge(view, node, result)
        else:
            alive = ALWAYS
            for source, port in inputs[node]:
                alive = _union(alive, _edge(view, source, port, result))
            for source in controls[node]:
                alive = _union(alive, result[source])
            if op in _EXIT:
                alive = frozenset(t for t in alive if not _of_loop(view, t))
        result.append(known.setdefault(alive, alive))
    return result


def _union(a: Liveness, b: Liveness) -> Liveness:
    return a if not b or a is b else (b if not a else a | b)


def _edge(view: GraphView, source: int, port: int, result: List[Liveness]) -> Liveness:
    if view.ops[source] not in _SWITCH:
        return result[source]
    return result[source] | {(view.inputs[source][1], port)}


def _of_loop(view: GraphView, token: tuple) -> bool:
    return isinstance(token[0], tuple) and view.ops[token[0][0]] == "LoopCond"


def _merge(view: GraphView, node: int, result: List[Liveness]) -> Liveness:
    """Both branches of one predicate meet: alive whenever what they share is. The first value of a loop
    variable: as alive as what enters the loop. Anything else has a token of its own."""
    entering = [
        _edge(view, source, port, result)
        for source, port in view.inputs[node]
        if not view.is_back_edge(source, node)
    ]
    if len(entering) == 1 or (len(entering) == 2 and entering[0] == entering[1]):
        return entering[0]
    if len(entering) == 2:
        a, b = entering[0] - entering[1], entering[1] - entering[0]
        if len(a) == 1 and len(b) == 1:
            (pred, branch), (other, opposite) = tuple(a)[0], tuple(b)[0]
            if pred == other and {branch, opposite} == {0, 1}:
                return entering[0] & entering[1]
    return frozenset([("merge", node)])
