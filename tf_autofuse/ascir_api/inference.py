"""Dtype inference and checking of the AscIR API: op.infer_dtype(), graph.infer_dtypes(), the functional
helpers.

On exit of `infer_node` every output of the node has a dtype that the platform's registry allows for its
inputs; where the outputs had one before, nothing was written. Otherwise a TypeError with the API's text.
"""

from typing import List, Optional

from tf_autofuse.ascir_api import dtypes, platform
from tf_autofuse.ascir_api.graphs import Node
from tf_autofuse.ascir_api.operators_table import Row, registry_of

_FLAG = frozenset((dtypes.UINT8, dtypes.BOOL))


def infer_node(node: Node) -> None:
    """Checks the dtypes of a node's outputs, or infers and writes them. Raises TypeError."""
    if node.row is None:
        raise TypeError("%s has no infer dtype func" % node.type)
    row: Row = node.row
    if not row.is_start and (not node.inputs or any(link is None for link in node.inputs)):
        raise TypeError("node %s %s need set input before call infer dype" % (node.name, node.type))
    arch = platform.current().soc
    if arch is None:
        raise TypeError("Failed to get npu_arch")
    ins = _inputs(node)
    lists = [port.is_list for port in row.outputs]
    if any(lists):
        outs = [t.dtype for t in node.outputs]
        if outs and all(d != dtypes.UNDEFINED for d in outs):
            if len(set(outs)) != 1:
                raise TypeError("%s dynamic_output should have uniform dtypes" % node.name)
            _check(node, row, arch, ins, outs[:1])
            return
        _write(node, _inferred(node, row, arch, ins) * len(outs))
        return
    outs = [t.dtype for t in node.outputs]
    if outs[0] == dtypes.UNDEFINED:
        _write(node, _inferred(node, row, arch, ins))
    else:
        _check(node, row, arch, ins, outs)


def _write(node: Node, found: List[int]) -> None:
    for tensor, dtype in zip(node.outputs, found):
        tensor.dtype = dtype


def _inputs(node: Node) -> List[int]:
    """One dtype for each declared input. Raises TypeError where a list of inputs is not uniform."""
    linked = [source.outputs[number].dtype for source, number in node.inputs]
    if node.type == "Output":
        if len(set(linked)) > 1:
            raise TypeError("%s Output should have uniform dtypes" % node.name)
        return linked[:1]
    if any(port.is_list for port in node.row.inputs):
        if len(set(linked)) > 1:
            raise TypeError("%s dynamic_input should have uniform dtypes" % node.name)
        return linked[:1]
    return linked


def _listed(found: List[int]) -> str:
    return "[%s]" % ", ".join(dtypes.serial(d) for d in found)


def _check(node: Node, row: Row, arch: str, ins: List[int], outs: List[int]) -> None:
    if not _allowed(row, registry_of(arch), ins, outs):
        raise TypeError(
            "Check dtype failed for %s %s; input_dtypes: %s, output_dytpes: %s"
            % (node.name, node.type, _listed(ins), _listed(outs))
        )


def _inferred(node: Node, row: Row, arch: str, ins: List[int]) -> List[int]:
    found = _infer(row, registry_of(arch), ins)
    if found is None:
        raise TypeError(
            "Infer dtype failed for %s %s; input_dtypes: %s is not supported now"
            % (node.name, node.type, _listed(ins))
        )
    return found


def _bound(row: Row, sets, ins: List[int]):
    """{symbol: dtype} of the inputs, None where they break a rule."""
    bound = {}
    for port, dtype in zip(row.inputs, ins):
        if dtype not in sets[port.symbol] or bound.setdefault(port.symbol, dtype) != dtype:
            return None
    return bound


def _by_symbol(row: Row, ins: List[int]):
    """The dtype of each input symbol in order, None where inputs that share one differ."""
    bound = {}
    for port, dtype in zip(row.inputs, ins):
        if bound.setdefault(port.symbol, dtype) != dtype:
            return None
    return tuple(bound.values())


def _allowed(row: Row, registry: int, ins: List[int], outs: List[int]) -> bool:
    if registry in row.pairs:
        return (_by_symbol(row, ins), outs[0]) in row.pairs[registry]
    sets = row.dtypes.get(registry)
    bound = _bound(row, sets, ins) if sets is not None else None
    if bound is None:
        return False
    return all(
        dtype == bound.get(port.symbol, dtype) and dtype in sets[port.symbol]
        for port, dtype in zip(row.outputs, outs)
    )


def _infer(row: Row, registry: int, ins: List[int]) -> Optional[List[int]]:
    if registry in row.pairs:
        key = _by_symbol(row, ins)
        results = [out for given, out in row.pairs[registry] if given == key]
        return results if len(results) == 1 else None
    sets = row.dtypes.get(registry)
    bound = _bound(row, sets, ins) if sets is not None else None
    if bound is None:
        return None
    found = []
    for port in row.outputs:
        choices = sets[port.symbol]
        if port.symbol in bound:
            found.append(bound[port.symbol])
        elif len(choices) == 1:
            found.append(next(iter(choices)))
        elif choices == _FLAG:
            found.append(dtypes.BOOL)
        else:
            return None
    return found
