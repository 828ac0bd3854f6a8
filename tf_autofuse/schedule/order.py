"""The order of execution: hoisted nodes first, then the loop body, so that few bytes live at a time.

On entry any topological order; on exit a topological one in which
    - no hoisted node stands after one of the loop;
    - a Store stands after every other reader of its tensor: then the tensor is handed to MTE3 for good;
    - each expression is finished before the next one starts (its larger operand first, as in Sethi and
      Ullman's register allocation), and a Load stands right before its first reader.
"""
from typing import Dict, List

from tf_autofuse.schedule.tile_nodes import TileGraph, TileNode

#: Nodes that stand for what the graph leaves behind; a Workspace without input is a source and places
#: nothing.
SINKS = ("Output", "Workspace")


def execution_order(tiles: TileGraph) -> List[TileNode]:
    """All nodes of the TileGraph, Data and Scalar nodes before their readers."""
    readers = tiles.readers()
    before: Dict[str, List[str]] = {n.name: list(n.inputs) for n in tiles.nodes.values()}
    for n in tiles.nodes.values():
        if n.type == "Store":
            before[n.name] += [r.name for r in readers[n.inputs[0]] if r.type != "Store"]
    need = _needs(tiles)
    placed: Dict[str, TileNode] = {}

    def place(root: str) -> None:
        stack = [(root, iter(sorted(before[root], key=lambda i: -need[i])))]
        while stack:
            name, rest = stack[-1]
            following = next((i for i in rest if i not in placed), None)
            if following is None:
                placed.setdefault(name, tiles.nodes[name])
                stack.pop()
            else:
                stack.append((following, iter(sorted(before[following], key=lambda i: -need[i]))))

    roots = list(tiles.nodes.values())
    for n in roots:
        if n.hoisted:
            place(n.name)
    for n in roots:
        if n.type in SINKS:
            place(n.name)
    return list(placed.values())


def _needs(tiles: TileGraph) -> Dict[str, int]:
    """Tensors that live at the same time while a node is computed, weighted by item size; small tensors count
    little."""
    need: Dict[str, int] = {}
    tile_axis = tiles.split.tile_in.id
    for n in tiles.nodes.values():
        if not n.runs:
            need[n.name] = 0
            continue
        own = n.dtype.bytes * (64 if tile_axis in n.pattern else 1)
        held, peak = 0, own
        for i in sorted(dict.fromkeys(n.inputs), key=lambda i: -need[i]):
            peak = max(peak, held + need[i])
            producer = tiles.nodes[i]
            if producer.makes_tensor:
                held += producer.dtype.bytes * (64 if tile_axis in producer.pattern else 1)
        need[n.name] = max(peak, held + own)
    return need
