"""Joining nests, in rounds.

Each round lists the pairs of nests that share a tensor, best first (bytes saved, nearness, order), and joins
what can_fuse allows at that moment. A pair that is refused may be allowed in a later round: a tensor that two
consumers read can vanish once both are one nest. Rounds end when one joins nothing, at the latest after
MAX_ROUNDS. Then the pairs that still are two for their loops' sake may become one op with a loop nest each.

Pairs of readers of one tensor are tried as neighbours in topological order only, per kind of loop (device,
frame, number of elements): a tensor with n readers gives n pairs, not n * n. Pairs of different chunks of the
graph (lowering/chunks.py) are refused.
"""

from typing import Dict, List, NamedTuple, Sequence, Tuple

from tf_autofuse.fusion.can_fuse import FusionContext, can_chain, can_fuse, score, separated
from tf_autofuse.fusion.nest import Nest, chain, join
from tf_autofuse.fusion.reasons import Verdict
from tf_autofuse.ir.loop_ir import Tensor
from tf_autofuse.ir.loop_layout import element_count

MAX_ROUNDS = 10


class Refused(NamedTuple):
    """A pair that was not joined. a, b: a TF node of each (the nests' roots); verdict: the last one."""

    a: int
    b: int
    verdict: Verdict


class Fusion(NamedTuple):
    """nests: ascending by key; refused: the last round's refusals."""

    nests: Tuple[Nest, ...]
    refused: Tuple[Refused, ...]


def fuse(nests: Sequence[Nest], context: FusionContext) -> Fusion:
    """On entry each vertex of context.graph that is a nest has the nest's key."""
    current: Dict[int, Nest] = {nest.key: nest for nest in nests}
    refused: List[Refused] = []
    for _ in range(MAX_ROUNDS):
        before = len(current)
        pairs, apart = _pairs(current, context.homes)
        pairs = _best_first(current, pairs, context)
        refused = _unite(current, pairs, context, lambda a, b, _: can_fuse(a, b, context), join)
        if len(current) == before:
            break
    # What cannot be one loop nest may still be one op of several.
    why = {(pair.a, pair.b): pair.verdict for pair in refused}
    pairs = _best_first(current, why, context)
    left = _unite(current, pairs, context, lambda a, b, pair: can_chain(a, b, why[pair], context), chain)
    left += [Refused(a, b, separated(a, b, context)) for a, b in apart if a in current and b in current]
    return Fusion(tuple(current[key] for key in sorted(current)), tuple(left))


def _best_first(current: Dict[int, Nest], pairs, context: FusionContext) -> List[Tuple[int, int]]:
    return sorted(pairs, key=lambda pair: score(current[pair[0]], current[pair[1]], context))


def _unite(
    current: Dict[int, Nest], pairs: Sequence[Tuple[int, int]], context: FusionContext, verdict_of, unite
) -> List[Refused]:
    """Makes one nest of each pair, in order, that verdict_of(nest, nest, pair) allows at that moment. Gives
    the others, under the names that their nests have in the end. unite(nest, nest, inputs): the one nest."""
    now: Dict[int, int] = {}  # key at the start -> key now
    refused: List[Refused] = []
    for pair in pairs:
        a, b = _find(now, pair[0]), _find(now, pair[1])
        if a == b:
            continue
        verdict = verdict_of(current[a], current[b], pair)
        if not verdict.ok:
            refused.append(Refused(a, b, verdict))
            continue
        joined = unite(current.pop(a), current.pop(b), context.inputs)
        context.graph.join(a, b, joined.key)
        current[joined.key] = joined
        now[a] = now[b] = joined.key
    named = [Refused(_find(now, r.a), _find(now, r.b), r.verdict) for r in refused]
    return [r for r in named if r.a != r.b]


def _find(now: Dict[int, int], key: int) -> int:
    while now.get(key, key) != key:
        key = now[key]
    return key


def _pairs(nests: Dict[int, Nest], homes) -> Tuple[List[Tuple[int, int]], List[Tuple[int, int]]]:
    """Pairs that share a tensor, each once: those of one chunk, and the others."""
    maker = {tensor: key for key, nest in nests.items() for tensor in nest.makes}
    readers: Dict[Tensor, List[int]] = {}
    for key in sorted(nests):
        for tensor in nests[key].loads:
            if maker.get(tensor) != key:
                readers.setdefault(tensor, []).append(key)
    found: Dict[Tuple[int, int], None] = {}
    for tensor in sorted(readers):
        keys = readers[tensor]
        if tensor in maker:
            for key in keys:
                found[(maker[tensor], key)] = None
        if len(keys) > 1:
            for group in _by_loop(nests, keys, homes):
                for a, b in zip(group, group[1:]):
                    found[(a, b)] = None
    if homes is None:
        return list(found), []
    together = [pair for pair in found if homes[pair[0]] == homes[pair[1]]]
    return together, [pair for pair in found if homes[pair[0]] != homes[pair[1]]]


def _by_loop(nests: Dict[int, Nest], keys: List[int], homes) -> List[List[int]]:
    groups: Dict[tuple, List[int]] = {}
    for key in keys:
        nest = nests[key]
        kind = (nest.device, nest.frame, element_count(nest.space), homes and homes[key])
        groups.setdefault(kind, []).append(key)
    return list(groups.values())
